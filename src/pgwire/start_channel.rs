//! The socket of a client before login. It is asynchronous, so that a client that sends nothing
//! holds no thread. The session continues with a [`Channel`].

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::StreamOwned;
use tokio_rustls::server::TlsStream;
use types::encoding::Encoding;
use x509_certificate::X509Certificate;

use crate::pgwire::cancel::ClientSocket;
use crate::pgwire::channel::{Buffers, Channel, Stream};
use crate::pgwire::frame::{Frame, Phase, ProtocolViolation};
use crate::pgwire::message::Output;

/// Minimum space for one read.
const READ_BYTES: usize = 4 << 10;

/// The socket, with or without TLS.
enum StartStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// The TLS handshake has failed.
    Closed,
}

/// The connection of a client before login.
pub(crate) struct StartChannel {
    stream: StartStream,
    buffers: Buffers,
}

impl StartChannel {
    /// Creates the channel of a new connection.
    pub(crate) fn new(stream: TcpStream) -> StartChannel {
        StartChannel { stream: StartStream::Plain(stream), buffers: Buffers::default() }
    }

    /// Returns whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self.stream, StartStream::Tls(_))
    }

    /// Returns the common name of the client's certificate, which was verified in the handshake.
    pub(crate) fn certificate_name(&self) -> Option<String> {
        let StartStream::Tls(stream) = &self.stream else { return None };
        let certificate = stream.get_ref().1.peer_certificates()?.first()?;
        X509Certificate::from_der(certificate).ok()?.subject_common_name()
    }

    /// Returns a duplicate of the socket, which remains open when either is closed.
    pub(crate) fn socket(&self) -> io::Result<OwnedFd> {
        match &self.stream {
            StartStream::Plain(stream) => stream.as_fd().try_clone_to_owned(),
            StartStream::Tls(stream) => stream.get_ref().0.as_fd().try_clone_to_owned(),
            StartStream::Closed => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Returns the received data that was not taken yet.
    pub(crate) fn input(&mut self) -> &mut BytesMut {
        self.buffers.input()
    }

    /// Returns the output that was not sent yet.
    pub(crate) fn output(&mut self) -> &mut Output {
        &mut self.buffers.output
    }

    /// Starts TLS. The caller has checked that no plaintext followed the request; none is carried
    /// over.
    pub(crate) async fn encrypt(&mut self, acceptor: &TlsAcceptor) -> io::Result<()> {
        assert!(self.input().is_empty(), "plaintext must not be carried into TLS");
        let StartStream::Plain(stream) = std::mem::replace(&mut self.stream, StartStream::Closed)
        else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        self.stream = StartStream::Tls(Box::new(acceptor.accept(stream).await?));
        Ok(())
    }

    /// Takes the next message, if it is complete.
    pub(crate) fn take(&mut self, phase: Phase) -> Result<Option<Frame>, ProtocolViolation> {
        self.buffers.take(phase, Encoding::utf8())
    }

    /// Waits for data. Returns whether any was received; none is after the end of the stream.
    pub(crate) async fn read(&mut self) -> io::Result<bool> {
        let input = self.buffers.input_to_fill();
        input.reserve(READ_BYTES);
        let count = match &mut self.stream {
            StartStream::Plain(stream) => stream.read_buf(input).await?,
            StartStream::Tls(stream) => stream.read_buf(input).await?,
            StartStream::Closed => 0,
        };
        Ok(count > 0)
    }

    /// Sends the output; waits while the client does not read.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let output = &self.buffers.output.bytes;
        match &mut self.stream {
            StartStream::Plain(stream) => stream.write_all(output).await?,
            StartStream::Tls(stream) => {
                stream.write_all(output).await?;
                stream.flush().await?;
            }
            StartStream::Closed => return Err(io::ErrorKind::NotConnected.into()),
        }
        self.buffers.sent();
        Ok(())
    }

    /// Sends the output and closes the connection. The client may already be disconnected.
    pub(crate) async fn close(mut self) {
        if self.flush().await.is_err() {
            return;
        }
        let _ = match &mut self.stream {
            StartStream::Plain(stream) => stream.shutdown().await,
            StartStream::Tls(stream) => stream.shutdown().await,
            StartStream::Closed => Ok(()),
        };
    }

    /// Returns the channel of the session, whose reads time out after `patience`.
    pub(crate) fn into_channel(
        self,
        patience: Duration,
        ending: Arc<ClientSocket>,
    ) -> io::Result<Channel> {
        let stream = match self.stream {
            StartStream::Plain(stream) => Stream::Plain(stream.into_std()?),
            StartStream::Tls(stream) => {
                let (stream, connection) = stream.into_inner();
                Stream::Tls(Box::new(StreamOwned::new(connection, stream.into_std()?)))
            }
            StartStream::Closed => return Err(io::ErrorKind::NotConnected.into()),
        };
        Channel::new(stream, self.buffers, patience, ending)
    }
}
