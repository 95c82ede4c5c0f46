//! The socket of a logged-in client with an input and an output buffer of whole messages.
//!
//! The session's thread blocks on it. Before login the client has a
//! [`StartChannel`](crate::pgwire::start_channel::StartChannel).
//!
//! # Invariants
//!
//! 1. Output is sent only by [`Channel::flush`], or when it exceeds [`OUTPUT_BYTES`]; so the
//!    answers to Bind, Execute and Sync are sent in one write.
//! 2. A read that times out loses no data: received bytes stay in the buffer.

use std::cell::RefCell;
use std::io;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pgwire::messages::DecodeContext;
use tokio_rustls::rustls::{ServerConnection, StreamOwned};
use types::encoding::Encoding;

use crate::pgwire::cancel::ClientSocket;
use crate::pgwire::frame;
use crate::pgwire::frame::{Frame, Phase, ProtocolViolation};
use crate::pgwire::message::Output;

/// Bytes of output at which it is sent, so that results of any size take little memory.
pub(crate) const OUTPUT_BYTES: usize = 64 << 10;
/// Maximum bytes of one read.
const READ_BYTES: usize = 16 << 10;
/// Capacity above which a buffer is freed after a large message.
const KEPT_BYTES: usize = 1 << 20;

/// Interval at which a blocked write checks whether the connection is to end.
const WRITE_LOOK: Duration = Duration::from_millis(500);

thread_local! {
    /// Buffer of reads, shared by the connections of a thread: an idle connection holds only the
    /// bytes that it has received.
    static READ_BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
}

/// The socket, with or without TLS.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

/// Received data that was not taken yet, and output that was not sent yet.
pub(crate) struct Buffers {
    input: BytesMut,
    /// Messages that were not sent yet.
    pub(crate) output: Output,
    context: DecodeContext,
}

/// A client's connection.
pub(crate) struct Channel {
    stream: Stream,
    buffers: Buffers,
    ending: Arc<ClientSocket>,
}

/// Outcome of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// Bytes were received.
    Bytes,
    /// The read timed out.
    Nothing,
    /// The client has closed the connection.
    End,
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers {
            input: BytesMut::new(),
            output: Output::default(),
            context: frame::decode_context(),
        }
    }
}

impl Buffers {
    /// Returns the received data that was not taken yet.
    pub(super) fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Takes the next message of a client with this encoding, if it is complete.
    pub(super) fn take(
        &mut self,
        phase: Phase,
        encoding: &'static Encoding,
    ) -> Result<Option<Frame>, ProtocolViolation> {
        frame::take(&mut self.input, phase, encoding, &self.context)
    }

    /// Returns the bytes that the input holds, and the announced length of its first message.
    /// Capacity beyond that length is not counted, because it is untouched memory.
    fn incoming(&self) -> (usize, usize) {
        let announced = frame::announced_length(&self.input);
        let filled = self.input.len().max(announced.saturating_add(1));
        (self.input.capacity().min(filled), announced)
    }

    /// Returns the input for appending.
    pub(super) fn input_to_fill(&mut self) -> &mut BytesMut {
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES {
            self.input = BytesMut::new();
        }
        &mut self.input
    }

    /// Appends received bytes. The memory of a large message is allocated fallibly: if the system
    /// has none, the connection ends and not the process.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`].
    fn receive(&mut self, bytes: &[u8]) -> io::Result<()> {
        let input = self.input_to_fill();
        let needed = input.len() + bytes.len();
        if needed <= KEPT_BYTES || input.try_reclaim(bytes.len()) {
            input.extend_from_slice(bytes);
            return Ok(());
        }
        // The announced length does not count the type byte.
        let capacity = (2 * needed).min(frame::announced_length(input) + 1).max(needed);
        let mut grown = Vec::from(std::mem::take(input));
        let reserved = grown.try_reserve_exact(capacity - grown.len());
        if reserved.is_ok() {
            grown.extend_from_slice(bytes);
        }
        *input = BytesMut::from(Bytes::from(grown));
        debug_assert!(reserved.is_err() || input.len() == needed, "received bytes were lost");
        reserved.map_err(|_| ErrorKind::OutOfMemory.into())
    }

    /// Clears the output after it was sent.
    pub(super) fn sent(&mut self) {
        self.output.bytes.clear();
        if self.output.bytes.capacity() > KEPT_BYTES {
            self.output.bytes = Vec::new();
        }
    }
}

impl Channel {
    /// Creates the channel of a logged-in client. A read times out after `patience`.
    pub(super) fn new(
        stream: Stream,
        buffers: Buffers,
        patience: Duration,
        ending: Arc<ClientSocket>,
    ) -> io::Result<Channel> {
        let channel = Channel { stream, buffers, ending };
        channel.block()?;
        channel.socket().set_read_timeout(Some(patience))?;
        channel.socket().set_write_timeout(Some(WRITE_LOOK))?;
        Ok(channel)
    }

    fn socket(&self) -> &TcpStream {
        match &self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => &stream.sock,
        }
    }

    /// Returns a duplicate of the socket, for a task that waits for data after [`Channel::read`]
    /// has timed out. Reads and writes block again after [`Channel::block`].
    pub(crate) fn duplicate_socket(&self) -> io::Result<tokio::net::TcpStream> {
        let socket = self.socket().try_clone()?;
        socket.set_nonblocking(true)?;
        tokio::net::TcpStream::from_std(socket)
    }

    /// Returns whether there is data or the end of the stream; the channel must be non-blocking.
    pub(crate) fn has_bytes(&self) -> bool {
        self.socket().peek(&mut [0]).is_ok()
    }

    /// Makes reads and writes block.
    pub(crate) fn block(&self) -> io::Result<()> {
        self.socket().set_nonblocking(false)
    }

    /// Returns the output that was not sent yet.
    pub(crate) fn output(&mut self) -> &mut Output {
        &mut self.buffers.output
    }

    /// Takes the next message of a client with this encoding, if it is complete.
    pub(crate) fn take(
        &mut self,
        phase: Phase,
        encoding: &'static Encoding,
    ) -> Result<Option<Frame>, ProtocolViolation> {
        self.buffers.take(phase, encoding)
    }

    /// Returns the bytes that the incomplete message holds, and its announced length.
    pub(crate) fn incoming(&self) -> (usize, usize) {
        self.buffers.incoming()
    }

    /// Reads what has arrived, without waiting for data.
    pub(crate) fn read_arrived(&mut self) -> io::Result<ReadOutcome> {
        self.socket().set_nonblocking(true)?;
        let read = self.read();
        self.block()?;
        read
    }

    /// Waits for data until the read timeout.
    pub(crate) fn read(&mut self) -> io::Result<ReadOutcome> {
        READ_BUFFER.with_borrow_mut(|buffer| {
            let read = loop {
                let read = match &mut self.stream {
                    Stream::Plain(socket) => socket.read(buffer),
                    Stream::Tls(stream) => stream.read(buffer),
                };
                match read {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            match read {
                Ok(0) => Ok(ReadOutcome::End),
                Ok(count) => self.buffers.receive(&buffer[..count]).map(|()| ReadOutcome::Bytes),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(ReadOutcome::Nothing),
                    // Most clients close a connection without a TLS close_notify.
                    ErrorKind::UnexpectedEof => Ok(ReadOutcome::End),
                    _ => Err(error),
                },
            }
        })
    }

    /// Returns whether a complete message was received and not taken.
    pub(crate) fn holds_message(&self) -> bool {
        let announced = frame::announced_length(&self.buffers.input);
        announced > 0 && self.buffers.input.len() > announced
    }

    /// Returns whether [`Channel::flush_if_full`] would send the output.
    pub(crate) fn is_full(&self) -> bool {
        self.buffers.output.bytes.len() >= OUTPUT_BYTES
    }

    /// Sends the output if it exceeds [`OUTPUT_BYTES`]; blocks while the client does not read.
    pub(crate) fn flush_if_full(&mut self) -> io::Result<()> {
        if self.is_full() { self.flush() } else { Ok(()) }
    }

    /// Sends the output; blocks while the client does not read, unless the connection is to end.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let output = &self.buffers.output.bytes;
        let mut sent = 0;
        loop {
            let rest = &output[sent..];
            let written = match &mut self.stream {
                Stream::Plain(_) if rest.is_empty() => break,
                Stream::Plain(socket) => socket.write(rest),
                Stream::Tls(stream) if rest.is_empty() => match stream.flush() {
                    Ok(()) => break,
                    Err(error) => Err(error),
                },
                Stream::Tls(stream) => stream.write(rest),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => sent += count,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::TimedOut if !self.ending.must_end() => {}
                    _ => return Err(error),
                },
            }
        }
        self.buffers.sent();
        Ok(())
    }

    /// Sends as much output as the socket accepts without blocking. Socket errors are left to the
    /// next blocking call.
    pub(crate) fn send_some(&mut self) {
        if self.socket().set_nonblocking(true).is_err() {
            return;
        }
        let bytes = &mut self.buffers.output.bytes;
        let mut sent = 0;
        while sent < bytes.len() {
            let written = match &mut self.stream {
                Stream::Plain(socket) => socket.write(&bytes[sent..]),
                Stream::Tls(stream) => stream.write(&bytes[sent..]),
            };
            match written {
                Ok(count) if count > 0 => sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        bytes.drain(..sent);
        // If this fails, the next write returns the error.
        let _ = self.block();
    }

    /// Sends the output and closes the connection, within a time limit. The client may already be
    /// disconnected.
    pub(crate) fn close(mut self, limit: Duration) {
        // A client that does not read in time loses the output.
        self.ending.end();
        if self.socket().set_write_timeout(Some(limit)).is_err() || self.flush().is_err() {
            return;
        }
        if let Stream::Tls(stream) = &mut self.stream {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
        let _ = self.socket().shutdown(std::net::Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_buffer_grows_to_announced_length() {
        const LENGTH: usize = 5 << 20;
        let mut buffers = Buffers::default();
        let message =
            [&[b'B'][..], &(LENGTH as u32).to_be_bytes(), &vec![b'x'; LENGTH - 4]].concat();
        for part in message.chunks(READ_BYTES) {
            buffers.receive(part).unwrap();
            let input = buffers.input();
            assert!(input.len() <= KEPT_BYTES || input.capacity() <= LENGTH + 1);
        }
        assert_eq!(buffers.input()[..], message[..]);
        // The following message makes the buffer grow again.
        buffers.receive(b"S\0\0\0\x04").unwrap();
        assert_eq!(buffers.input().len(), message.len() + 5);
        assert!(buffers.input().ends_with(b"S\0\0\0\x04"));
    }
}
