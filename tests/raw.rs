//! Raw client of the wire protocol: sends and receives frames.
//!
//! For messages that a driver would not send (malformed frames, batches, text results of the
//! extended protocol), and for details that it does not show (the number of writes of an answer).

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// Its type byte.
    pub(crate) kind: u8,
    /// The body after the length.
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// Returns a field of an ErrorResponse or NoticeResponse, for example `b'C'` for the SQLSTATE.
    pub(crate) fn field(&self, code: u8) -> Option<String> {
        let fields = self.body.split(|byte| *byte == 0);
        let field = fields.into_iter().find(|field| field.first() == Some(&code))?;
        // PostgreSQL cuts a value that it quotes, also within a character.
        Some(String::from_utf8_lossy(&field[1..]).into_owned())
    }

    /// Returns the values of a DataRow as text; `None` is NULL.
    pub(crate) fn values(&self) -> Vec<Option<String>> {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        self.bytes().into_iter().map(|value| value.map(text)).collect()
    }

    /// Returns the raw values of a DataRow; `None` is NULL.
    pub(crate) fn bytes(&self) -> Vec<Option<Vec<u8>>> {
        let mut rest = &self.body[2..];
        let count = i16::from_be_bytes([self.body[0], self.body[1]]);
        let mut values = Vec::new();
        for _ in 0..count {
            let length = i32::from_be_bytes(rest[..4].try_into().unwrap());
            rest = &rest[4..];
            values.push(usize::try_from(length).ok().map(|length| {
                let value = rest[..length].to_vec();
                rest = &rest[length..];
                value
            }));
        }
        assert!(rest.is_empty(), "bytes after the last value");
        values
    }

    /// Returns name and type of the columns of a RowDescription.
    pub(crate) fn columns(&self) -> Vec<(String, u32)> {
        let count = i16::from_be_bytes([self.body[0], self.body[1]]);
        let mut rest = &self.body[2..];
        let mut columns = Vec::new();
        for _ in 0..count {
            let end = rest.iter().position(|byte| *byte == 0).unwrap();
            let name = String::from_utf8(rest[..end].to_vec()).unwrap();
            let fixed = &rest[end + 1..];
            columns.push((name, u32::from_be_bytes(fixed[6..10].try_into().unwrap())));
            rest = &fixed[18..];
        }
        columns
    }

    /// Returns the tag of a CommandComplete.
    pub(crate) fn tag(&self) -> String {
        String::from_utf8(self.body[..self.body.len() - 1].to_vec()).unwrap()
    }
}

/// Frames that are sent in one write.
#[derive(Debug, Default, Clone)]
pub(crate) struct Frames(pub(crate) Vec<u8>);

impl Frames {
    /// Creates an empty list of frames.
    pub(crate) fn new() -> Frames {
        Frames::default()
    }

    /// Adds a frame.
    #[must_use]
    pub(crate) fn frame(mut self, kind: u8, body: &[u8]) -> Frames {
        self.0.push(kind);
        self.0.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        self.0.extend_from_slice(body);
        self
    }

    /// Adds a simple query.
    #[must_use]
    pub(crate) fn query(self, sql: &str) -> Frames {
        self.frame(b'Q', &text(sql))
    }

    /// Adds a Parse without parameter types.
    #[must_use]
    pub(crate) fn parse(self, name: &str, sql: &str) -> Frames {
        self.frame(b'P', &[text(name), text(sql), vec![0, 0]].concat())
    }

    /// Adds a Bind with text parameters and text results.
    #[must_use]
    pub(crate) fn bind(self, portal: &str, statement: &str, parameters: &[Option<&str>]) -> Frames {
        let mut body = [text(portal), text(statement), vec![0, 0]].concat();
        body.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        for parameter in parameters {
            let length = parameter.map_or(-1, |value| value.len() as i32);
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(parameter.unwrap_or_default().as_bytes());
        }
        body.extend_from_slice(&[0, 0]);
        self.frame(b'B', &body)
    }

    /// Adds a Bind to the unnamed statement and portal with binary parameters, and results in
    /// binary or text format.
    #[must_use]
    pub(crate) fn bind_binary(self, parameters: &[Option<Vec<u8>>], results: bool) -> Frames {
        let mut body = [text(""), text(""), vec![0, 1, 0, 1]].concat();
        body.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        for parameter in parameters {
            let length = parameter.as_ref().map_or(-1, |value| value.len() as i32);
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(parameter.as_deref().unwrap_or_default());
        }
        body.extend_from_slice(&[0, 1, 0, u8::from(results)]);
        self.frame(b'B', &body)
    }

    /// Adds a Describe of a portal (`P`) or statement (`S`).
    #[must_use]
    pub(crate) fn describe(self, what: u8, name: &str) -> Frames {
        self.frame(b'D', &[vec![what], text(name)].concat())
    }

    /// Adds an Execute; 0 means all rows.
    #[must_use]
    pub(crate) fn execute(self, portal: &str, rows: u32) -> Frames {
        self.frame(b'E', &[text(portal), rows.to_be_bytes().to_vec()].concat())
    }

    /// Adds a Sync.
    #[must_use]
    pub(crate) fn sync(self) -> Frames {
        self.frame(b'S', &[])
    }
}

/// Returns a string in protocol format.
pub(crate) fn text(value: &str) -> Vec<u8> {
    [value.as_bytes(), &[0]].concat()
}

/// Returns a StartupMessage of protocol 3.0.
pub(crate) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = 196_608_u32.to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend_from_slice(&text(name));
        body.extend_from_slice(&text(value));
    }
    body.push(0);
    [&(body.len() as u32 + 4).to_be_bytes()[..], &body].concat()
}

/// A connection.
pub(crate) struct Raw {
    stream: TcpStream,
    received: Vec<u8>,
    /// Number of bytes of `received` that the test has read.
    taken: usize,
    /// Number of reads with data: an upper bound of the server's separate writes.
    pub(crate) reads: usize,
}

impl Raw {
    /// Connects without sending anything.
    pub(crate) fn connect(address: SocketAddr) -> Raw {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Raw { stream, received: Vec::new(), taken: 0, reads: 0 }
    }

    /// Connects as the default user to the default database.
    pub(crate) fn login(address: SocketAddr) -> Raw {
        Raw::login_with(address, &[])
    }

    /// Connects like [`Raw::login`], with other startup parameters in addition.
    pub(crate) fn login_with(address: SocketAddr, parameters: &[(&str, &str)]) -> Raw {
        let mut raw = Raw::connect(address);
        raw.send(&startup(&[&[("user", "bennu"), ("database", "bennu")], parameters].concat()));
        let greeting = raw.until_ready();
        assert!(greeting.iter().all(|message| message.kind != b'E'), "{greeting:?}");
        raw
    }

    /// Sets the time limit of an answer.
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.stream.set_read_timeout(Some(patience)).unwrap();
    }

    /// Sends bytes in one write.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends bytes; ignores errors, since the server may close the connection.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Closes the sending side.
    pub(crate) fn finish(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Returns one byte, such as the answer to an SSLRequest; `None` if the server closed the
    /// connection.
    pub(crate) fn read_byte(&mut self) -> Option<u8> {
        if self.pending().is_empty() && !self.fill() {
            return None;
        }
        self.taken += 1;
        Some(self.received[self.taken - 1])
    }

    /// Returns the next message; `None` if the server closed the connection.
    pub(crate) fn read(&mut self) -> Option<Message> {
        while self.pending().len() < 5 || self.pending().len() < self.frame_length() {
            if !self.fill() {
                return None;
            }
        }
        let length = self.frame_length();
        let frame = &self.pending()[..length];
        let message = Message { kind: frame[0], body: frame[5..].to_vec() };
        self.taken += length;
        Some(message)
    }

    /// Returns the messages up to ReadyForQuery, or up to the end of the connection.
    pub(crate) fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.read() {
            let ready = message.kind == b'Z';
            messages.push(message);
            if ready {
                break;
            }
        }
        messages
    }

    /// Runs a simple query and returns the messages up to ReadyForQuery.
    pub(crate) fn query(&mut self, sql: &str) -> Vec<Message> {
        self.send(&Frames::new().query(sql).0);
        self.until_ready()
    }

    fn pending(&self) -> &[u8] {
        &self.received[self.taken..]
    }

    fn frame_length(&self) -> usize {
        let length: [u8; 4] = self.pending()[1..5].try_into().unwrap();
        u32::from_be_bytes(length) as usize + 1
    }

    fn fill(&mut self) -> bool {
        self.received.drain(..std::mem::take(&mut self.taken));
        let mut chunk = [0; 1 << 16];
        match self.stream.read(&mut chunk) {
            Ok(0) => false,
            Ok(count) => {
                self.reads += 1;
                self.received.extend_from_slice(&chunk[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("no answer from the server: {error}"),
        }
    }
}

/// Returns the type bytes of messages as text, for example `TDCZ`.
pub(crate) fn kinds(messages: &[Message]) -> String {
    messages.iter().map(|message| char::from(message.kind)).collect()
}

/// Returns the values of all data rows.
pub(crate) fn rows(messages: &[Message]) -> Vec<Vec<Option<String>>> {
    messages.iter().filter(|message| message.kind == b'D').map(Message::values).collect()
}

/// Returns the SQLSTATE of the first error.
pub(crate) fn sqlstate(messages: &[Message]) -> Option<String> {
    messages.iter().find(|message| message.kind == b'E').and_then(|message| message.field(b'C'))
}
