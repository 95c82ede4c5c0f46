//! Frames of the client's messages, which are validated before they are decoded.
//!
//! The decoder of the `pgwire` crate trusts inner lengths, so a malformed frame would make it
//! panic or read into the next message. A frame is taken only if its length is within the bounds
//! of its type. It is decoded only after a walk over its body has validated every terminator,
//! count and length, from a buffer that ends with the frame.
//!
//! Names and statements arrive in the client's encoding and are converted to UTF-8 before
//! decoding. Invalid text makes a frame [`Frame::Unreadable`]: the statement fails, and the
//! connection continues.
//!
//! Out of scope: the meaning of messages, and the parameters of the startup packet (`startup`).

use std::ops::Range;

use bytes::BytesMut;
use pgwire::messages::startup::Startup;
use pgwire::messages::{DecodeContext, Message as _, PgWireFrontendMessage, ProtocolVersion};
use smallvec::SmallVec;
use types::encoding::Encoding;

/// Maximum length of a message with data; the limit of the codec.
const LARGE: usize = 0x3fff_fffd;
/// Maximum length of a message without data.
const SMALL: usize = 10_000;
/// Maximum length of a startup packet, as in PostgreSQL.
const STARTUP_BYTES_MAX: usize = 10_000;

/// A protocol violation, after which the connection cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtocolViolation(pub(crate) String);

/// A frame of a client.
#[derive(Debug)]
pub(crate) enum Frame {
    /// A message.
    Message(PgWireFrontendMessage),
    /// A message whose text is not valid in the client's encoding.
    Unreadable {
        /// The message type.
        kind: u8,
        /// The error of the text.
        error: types::Error,
    },
}

type Result<T> = std::result::Result<T, ProtocolViolation>;

/// The set of allowed messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Answers to an authentication request.
    Authentication,
    /// Messages of an authenticated client.
    Session,
}

/// Returns the bounds of a message's length word, which counts itself.
fn bounds(kind: u8, phase: Phase) -> Option<(usize, usize)> {
    match (phase, kind) {
        (Phase::Authentication, b'p') => Some((5, SMALL)),
        (Phase::Authentication, _) | (Phase::Session, b'p') => None,
        (_, b'Q') => Some((5, LARGE)),
        (_, b'P') => Some((8, LARGE)),
        (_, b'B') => Some((12, LARGE)),
        (_, b'C' | b'D') => Some((6, SMALL)),
        (_, b'E') => Some((9, SMALL)),
        (_, b'H' | b'S' | b'X' | b'c') => Some((4, 4)),
        (_, b'd') => Some((4, LARGE)),
        (_, b'f') => Some((5, SMALL)),
        _ => None,
    }
}

/// Returns the context in which the codec decodes messages other than startup packets.
pub(crate) fn decode_context() -> DecodeContext {
    let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
    context.awaiting_frontend_ssl = false;
    context.awaiting_frontend_startup = false;
    context
}

/// Takes the next message of a client with this encoding, if it is complete.
pub(crate) fn take(
    input: &mut BytesMut,
    phase: Phase,
    encoding: &'static Encoding,
    context: &DecodeContext,
) -> Result<Option<Frame>> {
    let Some(&kind) = input.first() else { return Ok(None) };
    let Some((least, most)) = bounds(kind, phase) else { return Err(unexpected(kind, phase)) };
    let Some(length) = length_word(&input[1..]) else { return Ok(None) };
    if !(least..=most).contains(&length) {
        return Err(ProtocolViolation(format!(
            "invalid length {length} of message type {}",
            name(kind)
        )));
    }
    if input.len() <= length {
        return Ok(None);
    }
    let mut frame = input.split_to(1 + length);
    let texts = check(kind, &frame[5..]).map_err(|error| {
        ProtocolViolation(format!("{} in message type {}", error.0, name(kind)))
    })?;
    match converted(&frame, &texts, encoding) {
        Ok(Some(converted)) => frame = converted,
        Ok(None) => {}
        Err(error) => return Ok(Some(Frame::Unreadable { kind, error })),
    }
    match PgWireFrontendMessage::decode(&mut frame, context) {
        Ok(Some(message)) => Ok(Some(Frame::Message(message))),
        Ok(None) => Err(ProtocolViolation(format!("incomplete message type {}", name(kind)))),
        Err(error) => Err(ProtocolViolation(error.to_string())),
    }
}

/// Returns the announced length of the first message of the input; 0 if it is not known yet.
pub(crate) fn announced_length(input: &[u8]) -> usize {
    input.get(1..).and_then(length_word).unwrap_or(0)
}

/// Returns a frame with texts converted to UTF-8; `None` if they already are.
fn converted(
    frame: &[u8],
    texts: &[Range<usize>],
    encoding: &'static Encoding,
) -> types::Result<Option<BytesMut>> {
    let text_at = |text: &Range<usize>| &frame[5 + text.start..5 + text.end];
    if encoding.is_utf8() {
        texts.iter().try_for_each(|text| encoding.decode(text_at(text)).map(|_| ()))?;
        return Ok(None);
    }
    if texts.iter().all(|text| text_at(text).is_ascii()) {
        return Ok(None);
    }
    debug_assert!(texts.is_sorted_by(|a, b| a.end < b.start), "texts follow each other");
    let mut converted = BytesMut::from(&frame[..5]);
    let mut copied = 5;
    for text in texts {
        converted.extend_from_slice(&frame[copied..5 + text.start]);
        converted.extend_from_slice(encoding.decode(text_at(text))?.as_bytes());
        copied = 5 + text.end;
    }
    converted.extend_from_slice(&frame[copied..]);
    let length = (converted.len() - 1) as u32;
    converted[1..5].copy_from_slice(&length.to_be_bytes());
    Ok(Some(converted))
}

fn unexpected(kind: u8, phase: Phase) -> ProtocolViolation {
    ProtocolViolation(match phase {
        Phase::Authentication => format!("expected SASL response, got message type {kind}"),
        Phase::Session => format!("invalid frontend message type {kind}"),
    })
}

/// Takes the startup packet, without decoding it, if it is complete.
pub(crate) fn take_startup(input: &mut BytesMut) -> Result<Option<BytesMut>> {
    let Some(length) = length_word(input) else { return Ok(None) };
    if !(8..=STARTUP_BYTES_MAX).contains(&length) {
        return Err(ProtocolViolation("invalid length of startup packet".to_owned()));
    }
    if input.len() < length {
        return Ok(None);
    }
    Ok(Some(input.split_to(length)))
}

/// Decodes a startup packet of protocol 3.
pub(crate) fn decode_startup(mut packet: BytesMut) -> Result<Startup> {
    let body = packet.get(8..).unwrap_or_default();
    let mut walk = BodyReader::of(body);
    let invalid = || ProtocolViolation("invalid startup packet layout".to_owned());
    // The client's encoding is not known yet.
    let is_empty = |walk: &mut BodyReader<'_>| {
        let text = walk.cstring().map_err(|_| invalid())?;
        std::str::from_utf8(&body[text.clone()]).map_err(|_| invalid())?;
        Ok(text.is_empty())
    };
    while !is_empty(&mut walk)? {
        is_empty(&mut walk)?;
    }
    walk.end().map_err(|_| {
        ProtocolViolation(
            "invalid startup packet layout: expected terminator as last byte".to_owned(),
        )
    })?;
    match Startup::decode(&mut packet, &decode_context()) {
        Ok(Some(startup)) => Ok(startup),
        _ => Err(invalid()),
    }
}

/// Validates the body of the first SASL message, which the codec returns undecoded.
pub(crate) fn check_sasl_initial(body: &[u8]) -> Result<()> {
    let mut walk = BodyReader::of(body);
    walk.cstring()?;
    walk.value()?;
    walk.end()
}

fn length_word(bytes: &[u8]) -> Option<usize> {
    let word = bytes.first_chunk::<4>()?;
    // A negative length is read as one above every bound.
    Some(u32::from_be_bytes(*word) as usize)
}

/// Returns a message type for error messages.
fn name(kind: u8) -> String {
    if kind.is_ascii_graphic() {
        format!("\"{}\"", char::from(kind))
    } else {
        format!("0x{kind:02x}")
    }
}

/// Ranges of the texts in the body of a message.
type Texts = SmallVec<[Range<usize>; 2]>;

/// Validates the body of a message against its type. Returns the ranges of its texts.
fn check(kind: u8, body: &[u8]) -> Result<Texts> {
    let mut walk = BodyReader::of(body);
    let mut texts = Texts::new();
    match kind {
        b'Q' | b'f' => texts.push(walk.cstring()?),
        b'P' => {
            texts.push(walk.cstring()?);
            texts.push(walk.cstring()?);
            let count = walk.count()?;
            walk.bytes(count * 4)?;
        }
        b'B' => {
            texts.push(walk.cstring()?);
            texts.push(walk.cstring()?);
            let formats = walk.count()?;
            walk.bytes(formats * 2)?;
            for _ in 0..walk.count()? {
                walk.value()?;
            }
            let formats = walk.count()?;
            walk.bytes(formats * 2)?;
        }
        b'C' | b'D' => {
            let target = walk.bytes(1)?[0];
            if !matches!(target, b'S' | b'P') {
                return Err(ProtocolViolation(format!("invalid target {}", name(target))));
            }
            texts.push(walk.cstring()?);
        }
        b'E' => {
            texts.push(walk.cstring()?);
            walk.bytes(4)?;
        }
        // Messages with plain data, or without a body.
        _ => return Ok(texts),
    }
    walk.end()?;
    Ok(texts)
}

/// The unread part of a body.
struct BodyReader<'a> {
    rest: &'a [u8],
    /// The length of the body.
    length: usize,
}

impl<'a> BodyReader<'a> {
    fn of(body: &'a [u8]) -> BodyReader<'a> {
        BodyReader { rest: body, length: body.len() }
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(ProtocolViolation("insufficient data left".to_owned()));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn count(&mut self) -> Result<usize> {
        let bytes = self.bytes(2)?;
        Ok(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    }

    /// Skips a length and as many bytes; a length of -1 stands for NULL.
    fn value(&mut self) -> Result<()> {
        let bytes = self.bytes(4)?;
        let length = i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if length == -1 {
            return Ok(());
        }
        let length = usize::try_from(length)
            .map_err(|_| ProtocolViolation(format!("invalid length {length} of a value")))?;
        self.bytes(length).map(|_| ())
    }

    /// Skips a text and its terminator; returns its range in the body.
    fn cstring(&mut self) -> Result<Range<usize>> {
        let Some(end) = self.rest.iter().position(|byte| *byte == 0) else {
            return Err(ProtocolViolation("invalid string: no terminator".to_owned()));
        };
        let start = self.length - self.rest.len();
        self.rest = &self.rest[end + 1..];
        Ok(start..start + end)
    }

    fn end(&self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(ProtocolViolation("invalid message format: extra bytes".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![kind];
        frame.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        frame.extend_from_slice(body);
        frame
    }

    fn take_one(bytes: &[u8]) -> Result<Option<Frame>> {
        take_of(bytes, Encoding::utf8())
    }

    fn take_of(bytes: &[u8], encoding: &'static Encoding) -> Result<Option<Frame>> {
        take(&mut BytesMut::from(bytes), Phase::Session, encoding, &decode_context())
    }

    fn refusal(kind: u8, body: &[u8]) -> String {
        take_one(&frame(kind, body)).unwrap_err().0
    }

    /// Returns the next number of a deterministic pseudorandom sequence.
    fn next(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    const KINDS: &[u8] = b"QPBCDEHSXdcfpFr\0";

    #[test]
    fn complete_frames_are_decoded_and_partial_ones_retained() {
        let bind = frame(b'B', b"\0stmt\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0");
        for end in 0..bind.len() {
            assert!(take_one(&bind[..end]).unwrap().is_none(), "{end} bytes are not a frame");
        }
        let taken = take_one(&bind).unwrap();
        let Some(Frame::Message(PgWireFrontendMessage::Bind(message))) = taken else {
            panic!("not a Bind")
        };
        assert_eq!(message.statement_name.as_deref(), Some("stmt"));
        assert_eq!(message.parameters, [Some("ab".into()), None]);
        let mut both = BytesMut::from(&frame(b'S', b"")[..]);
        both.extend_from_slice(&frame(b'X', b""));
        let context = decode_context();
        for _ in 0..2 {
            assert!(take(&mut both, Phase::Session, Encoding::utf8(), &context).unwrap().is_some());
        }
        assert!(both.is_empty());
    }

    #[test]
    fn malformed_frames_have_specific_errors() {
        assert_eq!(
            refusal(b'Q', b"select 1"),
            "invalid string: no terminator in message type \"Q\""
        );
        assert!(refusal(b'Q', b"a\0b\0").contains("extra bytes"));
        assert!(refusal(b'P', b"\0select 1\0\0\x02\0\0\0\x17").contains("insufficient data"));
        assert!(refusal(b'B', b"\0\0\0\0\0\x01\0\0\0\x09abc\0\0").contains("insufficient data"));
        assert!(refusal(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0").contains("length -2"));
        assert!(refusal(b'B', b"\0\0\xff\xff\0\0\0\0").contains("insufficient data"));
        assert!(refusal(b'D', b"Z\0").contains("target"));
        assert!(refusal(b'E', b"\0\0\0").contains("invalid length"));
        assert!(refusal(b'S', b"x").contains("invalid length 5"));
        assert!(refusal(b'p', b"secret\0").contains("invalid frontend message type 112"));
        let huge = [b'Q', 0xff, 0xff, 0xff, 0xff];
        assert!(take_one(&huge).is_err());
    }

    #[test]
    fn undecodable_text_does_not_end_connection() {
        let latin = Encoding::by_name("latin1").unwrap();
        let taken = take_of(&frame(b'P', b"\xe9\0select '\xe9'\0\0\x01\0\0\0\x19"), latin);
        let Ok(Some(Frame::Message(PgWireFrontendMessage::Parse(parse)))) = taken else {
            panic!("not a Parse: {taken:?}")
        };
        assert_eq!((parse.name.as_deref(), &*parse.query), (Some("é"), "select 'é'"));
        assert_eq!(parse.type_oids, [25]);
        let taken = take_of(&frame(b'B', b"\xe9\0\0\0\0\0\x01\0\0\0\x01\xe9\0\0"), latin);
        let Ok(Some(Frame::Message(PgWireFrontendMessage::Bind(bind)))) = taken else {
            panic!("not a Bind: {taken:?}")
        };
        assert_eq!(bind.portal_name.as_deref(), Some("é"));
        // Values are converted later, by their types.
        assert_eq!(bind.parameters, [Some(bytes::Bytes::from_static(b"\xe9"))]);
        let win = Encoding::by_name("win1252").unwrap();
        for (encoding, text, sqlstate) in
            [(Encoding::utf8(), b"\xc3(", "22021"), (win, b"\x81(", "22P05")]
        {
            for kind in [b'Q', b'f'] {
                let taken = take_of(&frame(kind, &[text, &b"\0"[..]].concat()), encoding);
                let Ok(Some(Frame::Unreadable { kind: unreadable, error })) = taken else {
                    panic!("read: {taken:?}")
                };
                assert_eq!((unreadable, error.sqlstate), (kind, sqlstate));
            }
        }
    }

    #[test]
    fn only_password_messages_precede_authentication() {
        let context = decode_context();
        let mut query = BytesMut::from(&frame(b'Q', b"select 1\0")[..]);
        let error =
            take(&mut query, Phase::Authentication, Encoding::utf8(), &context).unwrap_err();
        assert_eq!(error.0, "expected SASL response, got message type 81");
        let mut long = BytesMut::from(&b"p\x00\x01\x00\x00"[..]);
        assert!(take(&mut long, Phase::Authentication, Encoding::utf8(), &context).is_err());
    }

    #[test]
    fn random_frames_do_not_panic_decoder() {
        let mut state = 0x9e37_79b9_7f4a_7c15;
        let mut decoded = 0;
        let japanese = Encoding::by_name("sjis").unwrap();
        for _ in 0..60_000 {
            let kind = KINDS[next(&mut state) as usize % KINDS.len()];
            let length = next(&mut state) as usize % 40;
            // Mostly small numbers, so that counts and terminators are frequent.
            let body: Vec<u8> = (0..length)
                .map(|_| match next(&mut state) % 6 {
                    0 | 1 => 0,
                    2 => (next(&mut state) % 5) as u8,
                    3 => b'S',
                    4 => 0xff,
                    _ => next(&mut state) as u8,
                })
                .collect();
            let mut bytes = BytesMut::from(&frame(kind, &body)[..]);
            bytes.extend_from_slice(b"following");
            let phase = if kind == b'p' { Phase::Authentication } else { Phase::Session };
            let encoding =
                if next(&mut state).is_multiple_of(2) { Encoding::utf8() } else { japanese };
            if let Ok(Some(_)) = take(&mut bytes, phase, encoding, &decode_context()) {
                decoded += 1;
                assert_eq!(&bytes[..], b"following", "kind {kind} read beyond its frame");
            }
            let _ = check_sasl_initial(&body);
        }
        assert!(decoded > 1_000, "only {decoded} frames were well-formed");
    }

    #[test]
    fn mutated_frames_do_not_panic_decoder() {
        let good = [
            frame(b'Q', b"select 1\0"),
            frame(b'P', b"s\0select $1\0\0\x01\0\0\0\x17"),
            frame(b'B', b"p\0s\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x07\0\x01\0\x01"),
            frame(b'E', b"p\0\0\0\0\x05"),
            frame(b'f', b"enough\0"),
        ];
        let context = decode_context();
        for bytes in &good {
            assert!(take_one(bytes).unwrap().is_some());
            for position in 0..bytes.len() {
                for value in 0..=255 {
                    let mut changed = bytes.clone();
                    changed[position] = value;
                    for encoding in [Encoding::utf8(), Encoding::by_name("gbk").unwrap()] {
                        let mut bytes = BytesMut::from(&changed[..]);
                        let _ = take(&mut bytes, Phase::Session, encoding, &context);
                    }
                }
                // Body truncated, with the length adapted.
                if position > 5 {
                    let _ = take_one(&frame(bytes[0], &bytes[5..position]));
                }
            }
        }
    }

    #[test]
    fn malformed_startup_packets_are_rejected() {
        let packet = |body: &[u8]| {
            let mut packet = u32::try_from(body.len() + 4).unwrap().to_be_bytes().to_vec();
            packet.extend_from_slice(body);
            BytesMut::from(&packet[..])
        };
        let mut good = packet(b"\0\x03\0\0user\0ann\0database\0\0\0");
        let taken = take_startup(&mut good).unwrap().unwrap();
        let startup = decode_startup(taken).unwrap();
        assert_eq!(startup.parameters["user"], "ann");
        assert_eq!(startup.parameters["database"], "");
        for bad in [&b"\0\x03\0\0user\0"[..], b"\0\x03\0\0user", b"\0\x03\0\0", b"\0\x03\0\0\0x"] {
            assert!(decode_startup(packet(bad)).is_err(), "{bad:?}");
        }
        assert!(take_startup(&mut BytesMut::from(&b"GET / HTTP/1.1"[..])).is_err());
        assert!(take_startup(&mut BytesMut::from(&b"\0\0\0\x04"[..])).is_err());
        assert!(take_startup(&mut BytesMut::from(&b"\0\0"[..])).unwrap().is_none());
    }
}
