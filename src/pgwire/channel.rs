//! The socket of a client that has been let in, with its two buffers: checked messages in, whole
//! messages out. It blocks: the thread of the session waits here. While the client is on its way in
//! it is a [`StartChannel`](crate::pgwire::start_channel::StartChannel).
//!
//! # Invariants
//!
//! 1. Nothing is sent before someone asks for it ([`Channel::flush`]) or the output passes
//!    [`OUTPUT_BYTES`]; so the answers to Bind, Execute and Sync leave in one write.
//! 2. A read that gives up loses nothing: bytes that came stay in the buffer.

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

use crate::pgwire::cancel::Endable;
use crate::pgwire::frame;
use crate::pgwire::frame::{Frame, Malformed, Phase};
use crate::pgwire::message::Output;

/// The output is sent when it is longer than this, so that results of any size take little memory.
pub(crate) const OUTPUT_BYTES: usize = 64 << 10;
/// How much is read at once, at most.
const READ_BYTES: usize = 16 << 10;
/// A buffer that a message has made larger than this is given back afterwards.
const KEPT_BYTES: usize = 1 << 20;

/// How often a write that waits for the client looks whether the connection is to end.
const WRITE_LOOK: Duration = Duration::from_millis(500);

thread_local! {
    /// Where bytes are read to before it is known how many there are: what waits in a connection
    /// takes no more memory than it has bytes.
    static READ_BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
}

/// The socket, with TLS or without.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

/// What was read and not taken yet, and what waits to be sent.
pub(crate) struct Buffers {
    input: BytesMut,
    /// Messages that wait to be sent.
    pub(crate) output: Output,
    context: DecodeContext,
}

/// A client's connection.
pub(crate) struct Channel {
    stream: Stream,
    buffers: Buffers,
    ending: Arc<Endable>,
}

/// What a read has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// Bytes.
    Bytes,
    /// Nothing within the time for it.
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
    /// Returns what has been read and not taken yet.
    pub(super) fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Takes the next message of a client with this encoding, if it is there already.
    pub(super) fn take(
        &mut self,
        phase: Phase,
        encoding: &'static Encoding,
    ) -> Result<Option<Frame>, Malformed> {
        frame::take(&mut self.input, phase, encoding, &self.context)
    }

    /// Returns the bytes that the input takes, and the length that its first message is announced
    /// to have. What a buffer has beyond that length stays untouched.
    fn incoming(&self) -> (usize, usize) {
        let announced = frame::announced(&self.input);
        let filled = self.input.len().max(announced.saturating_add(1));
        (self.input.capacity().min(filled), announced)
    }

    /// Returns the input, to put more into it.
    pub(super) fn input_to_fill(&mut self) -> &mut BytesMut {
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES {
            self.input = BytesMut::new();
        }
        &mut self.input
    }

    /// Appends bytes that were read. The memory of a large message is requested so that the
    /// system may refuse it: the connection ends then, not the process.
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
        // Its type is not counted by the length that a message announces.
        let capacity = (2 * needed).min(frame::announced(input) + 1).max(needed);
        let mut grown = Vec::from(std::mem::take(input));
        let reserved = grown.try_reserve_exact(capacity - grown.len());
        if reserved.is_ok() {
            grown.extend_from_slice(bytes);
        }
        *input = BytesMut::from(Bytes::from(grown));
        reserved.map_err(|_| ErrorKind::OutOfMemory.into())
    }

    /// Forgets the output, which was sent.
    pub(super) fn sent(&mut self) {
        self.output.bytes.clear();
        if self.output.bytes.capacity() > KEPT_BYTES {
            self.output.bytes = Vec::new();
        }
    }
}

impl Channel {
    /// Returns the channel of a client that has been let in. A read gives up after `patience`.
    pub(super) fn new(
        stream: Stream,
        buffers: Buffers,
        patience: Duration,
        ending: Arc<Endable>,
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

    /// Returns another handle of the socket, for a task that waits for bytes where
    /// [`Channel::read`] has found none. Reads and writes block again after [`Channel::block`].
    pub(crate) fn watched(&self) -> io::Result<tokio::net::TcpStream> {
        let socket = self.socket().try_clone()?;
        socket.set_nonblocking(true)?;
        tokio::net::TcpStream::from_std(socket)
    }

    /// Returns whether there are bytes, or the end; for a channel that does not block.
    pub(crate) fn has_bytes(&self) -> bool {
        self.socket().peek(&mut [0]).is_ok()
    }

    /// Has reads and writes block.
    pub(crate) fn block(&self) -> io::Result<()> {
        self.socket().set_nonblocking(false)
    }

    /// Returns the messages that wait to be sent.
    pub(crate) fn output(&mut self) -> &mut Output {
        &mut self.buffers.output
    }

    /// Takes the next message of a client with this encoding, if it is there already.
    pub(crate) fn take(
        &mut self,
        phase: Phase,
        encoding: &'static Encoding,
    ) -> Result<Option<Frame>, Malformed> {
        self.buffers.take(phase, encoding)
    }

    /// Returns the bytes that the message takes that is coming, and the length that it is announced
    /// to have.
    pub(crate) fn incoming(&self) -> (usize, usize) {
        self.buffers.incoming()
    }

    /// Waits for bytes, as long as it has the patience.
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
                    // A client that leaves without a word of TLS, as most do.
                    ErrorKind::UnexpectedEof => Ok(ReadOutcome::End),
                    _ => Err(error),
                },
            }
        })
    }

    /// Returns whether there is so much output that [`Channel::relieve`] sends it.
    pub(crate) fn is_full(&self) -> bool {
        self.buffers.output.bytes.len() >= OUTPUT_BYTES
    }

    /// Sends the output if there is much of it; waits while the client does not read.
    pub(crate) fn relieve(&mut self) -> io::Result<()> {
        if self.is_full() { self.flush() } else { Ok(()) }
    }

    /// Sends the output; waits while the client does not read, unless the connection is to end.
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
                    ErrorKind::WouldBlock | ErrorKind::TimedOut if !self.ending.is_ended() => {}
                    _ => return Err(error),
                },
            }
        }
        self.buffers.sent();
        Ok(())
    }

    /// Sends as much of the output as the socket takes at once. What is wrong with the socket is
    /// found by who waits for it.
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
        // If it does not block now, the next write says why.
        let _ = self.block();
    }

    /// Sends the output and closes the connection, within a time. The client may be gone already.
    pub(crate) fn close(mut self, limit: Duration) {
        // Whoever does not take it in this time does not get it.
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
    fn a_message_grows_to_its_announced_length_and_no_further() {
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
        // What comes behind it grows the buffer again.
        buffers.receive(b"S\0\0\0\x04").unwrap();
        assert_eq!(buffers.input().len(), message.len() + 5);
        assert!(buffers.input().ends_with(b"S\0\0\0\x04"));
    }
}
