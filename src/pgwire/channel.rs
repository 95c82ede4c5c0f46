//! A client's socket with its two buffers: checked messages in, whole messages out.
//!
//! # Invariants
//!
//! 1. Nothing is sent before someone asks for it ([`Channel::flush`]) or the output passes
//!    [`OUTPUT_BYTES`]; so the answers to Bind, Execute and Sync leave in one write.
//! 2. Reading can be given up at any wait and taken up again: bytes that came stay in the buffer.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use pgwire::messages::DecodeContext;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use types::encoding::Encoding;

use crate::pgwire::frame;
use crate::pgwire::frame::{Frame, Malformed, Phase};
use crate::pgwire::message::Output;

/// The output is sent when it is longer than this, so that results of any size take little memory.
pub(crate) const OUTPUT_BYTES: usize = 64 << 10;
/// How much is read at once, at least.
const READ_BYTES: usize = 16 << 10;
/// A buffer that a message has made larger than this is given back afterwards.
const KEPT_BYTES: usize = 1 << 20;

/// The socket, with TLS or without.
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// TLS was being set up and failed.
    Closed,
}

/// A client's connection.
pub(crate) struct Channel {
    stream: Stream,
    input: BytesMut,
    /// Messages that wait to be sent.
    pub(crate) output: Output,
    context: DecodeContext,
}

impl Channel {
    /// Returns the channel of a new connection.
    pub(crate) fn new(stream: TcpStream) -> Channel {
        Channel {
            stream: Stream::Plain(stream),
            input: BytesMut::new(),
            output: Output::default(),
            context: frame::decode_context(),
        }
    }

    /// Returns whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// Returns another handle of the socket, which ends with neither.
    pub(crate) fn socket(&self) -> io::Result<OwnedFd> {
        match &self.stream {
            Stream::Plain(stream) => stream.as_fd().try_clone_to_owned(),
            Stream::Tls(stream) => stream.get_ref().0.as_fd().try_clone_to_owned(),
            Stream::Closed => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Returns what has been read and not taken yet.
    pub(crate) fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Sets up TLS. Nothing of the plaintext is carried over: the caller has checked that nothing
    /// followed the request.
    pub(crate) async fn encrypt(&mut self, acceptor: &TlsAcceptor) -> io::Result<()> {
        assert!(self.input.is_empty(), "plaintext must not be carried into TLS");
        let Stream::Plain(stream) = std::mem::replace(&mut self.stream, Stream::Closed) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        self.stream = Stream::Tls(Box::new(acceptor.accept(stream).await?));
        Ok(())
    }

    /// Takes the next message of a client with this encoding, if it is there already.
    pub(crate) fn take(
        &mut self,
        phase: Phase,
        encoding: &'static Encoding,
    ) -> Result<Option<Frame>, Malformed> {
        frame::take(&mut self.input, phase, encoding, &self.context)
    }

    /// Waits for bytes. Returns whether any came; none come after the end.
    pub(crate) async fn read(&mut self) -> io::Result<bool> {
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES {
            self.input = BytesMut::new();
        }
        self.input.reserve(READ_BYTES);
        Ok(self.stream.read_buf(&mut self.input).await? > 0)
    }

    /// Returns whether there is so much output that [`Channel::relieve`] sends it.
    pub(crate) fn is_full(&self) -> bool {
        self.output.bytes.len() >= OUTPUT_BYTES
    }

    /// Sends the output if there is much of it; waits while the client does not read.
    pub(crate) async fn relieve(&mut self) -> io::Result<()> {
        if self.is_full() { self.flush().await } else { Ok(()) }
    }

    /// Sends the output; waits while the client does not read.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.output.bytes).await?;
        self.output.bytes.clear();
        if self.output.bytes.capacity() > KEPT_BYTES {
            self.output.bytes = Vec::new();
        }
        self.stream.flush().await
    }

    /// Sends the output and closes the connection. The client may be gone already.
    pub(crate) async fn close(mut self) {
        if self.flush().await.is_ok() {
            let _ = self.stream.shutdown().await;
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Closed => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Closed => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
            Stream::Closed => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Closed => Poll::Ready(Ok(())),
        }
    }
}
