//! `encode` and `decode` of bytes in hex, base64 and escape format; uuids.

use super::argument::{bytea, bytea_datum, text, text_datum};
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bytea, Text, Uuid};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::{InterruptPacer, chunks};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("encode", &[Bytea, Text], Text, encode),
    row("decode", &[Text, Text], Bytea, decode),
    // The database encoding is UTF8, for which there is no conversion.
    row("gen_random_uuid", &[], Uuid, |_, _| Ok(Datum::Uuid(uuid::Uuid::new_v4().into_bytes())))
        .volatile(),
];

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (bytes, pace) = (bytea(&arguments[0]), &mut context.pace());
    let encoded = match text(&arguments[1]).to_ascii_lowercase().as_str() {
        "hex" => to_hex(bytes, pace),
        "base64" => base64(bytes, pace),
        "escape" => escape(bytes, pace),
        _ => Err(unrecognized(arguments)),
    };
    encoded.map(text_datum)
}

fn unrecognized(arguments: &[Datum]) -> Error {
    invalid_parameter(format!("unrecognized encoding: \"{}\"", text(&arguments[1])))
}

fn decode(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (string, pace) = (text(&arguments[0]), &mut context.pace());
    let decoded = match text(&arguments[1]).to_ascii_lowercase().as_str() {
        "hex" => from_hex(string, pace),
        "base64" => from_base64(string, pace),
        "escape" => from_escape(string, pace),
        _ => Err(unrecognized(arguments)),
    };
    decoded.map(bytea_datum)
}

/// Returns bytes in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    put_hex(bytes, &mut out);
    out
}

fn put_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    for byte in bytes {
        out.push(digit(byte >> 4));
        out.push(digit(byte & 15));
    }
}

fn to_hex(bytes: &[u8], pace: &mut InterruptPacer<'_>) -> Result<String> {
    let mut out: String = pace.buffer(bytes.len() * 2)?;
    for piece in chunks(bytes) {
        put_hex(piece, &mut out);
        pace.count_steps(piece.len() * 2)?;
    }
    Ok(out)
}

fn from_hex(string: &str, pace: &mut InterruptPacer<'_>) -> Result<Vec<u8>> {
    let mut decoded: Vec<u8> = pace.buffer(string.len() / 2)?;
    let mut high: Option<u8> = None;
    for character in string.chars().filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r')) {
        pace.count_steps(1)?;
        let Some(digit) = character.to_digit(16) else {
            let message = format!("invalid hexadecimal digit: \"{character}\"");
            return Err(invalid_parameter(message));
        };
        match high.take() {
            None => high = Some(digit as u8),
            Some(high) => decoded.push(high << 4 | digit as u8),
        }
    }
    match high {
        Some(_) => Err(invalid_parameter("invalid hexadecimal data: odd number of digits")),
        None => Ok(decoded),
    }
}

/// Encodes bytes in lines of 76 characters, as in MIME and PostgreSQL.
fn base64(bytes: &[u8], pace: &mut InterruptPacer<'_>) -> Result<String> {
    const LINE: usize = 76;
    let mut encoded: String = pace.buffer(bytes.len().div_ceil(3) * 4 + bytes.len() / 57)?;
    let mut column = 0;
    for chunk in bytes.chunks(3) {
        if column == LINE {
            encoded.push('\n');
            column = 0;
        }
        let word = chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for index in 0..4 {
            let sextet = (word >> (18 - 6 * index)) & 63;
            let character = if index <= chunk.len() { BASE64[sextet as usize] } else { b'=' };
            encoded.push(char::from(character));
        }
        column += 4;
        pace.count_steps(4)?;
    }
    Ok(encoded)
}

fn from_base64(string: &str, pace: &mut InterruptPacer<'_>) -> Result<Vec<u8>> {
    let mut decoded: Vec<u8> = pace.buffer(string.len() / 4 * 3)?;
    let (mut word, mut count, mut padding) = (0_u32, 0, 0);
    for character in string.chars().filter(|c| !matches!(c, ' ' | '\n' | '\t' | '\r')) {
        pace.count_steps(1)?;
        if character == '=' {
            if padding == 0 && count < 2 {
                return Err(invalid_parameter("unexpected \"=\" while decoding base64 sequence"));
            }
            padding += 1;
            word <<= 6;
        } else {
            let sextet = BASE64.iter().position(|symbol| char::from(*symbol) == character);
            let Some(sextet) = sextet.filter(|_| padding == 0) else {
                return Err(invalid_parameter(format!(
                    "invalid symbol \"{character}\" found while decoding base64 sequence"
                )));
            };
            word = word << 6 | sextet as u32;
        }
        count += 1;
        if count == 4 {
            decoded.extend_from_slice(&word.to_be_bytes()[1..4 - padding.min(2)]);
            (word, count) = (0, 0);
        }
    }
    if count != 0 {
        let hint = "Input data is missing padding, is truncated, or is otherwise corrupted.";
        return Err(invalid_parameter("invalid base64 end sequence").with_hint(hint));
    }
    Ok(decoded)
}

fn escape(bytes: &[u8], pace: &mut InterruptPacer<'_>) -> Result<String> {
    let mut escaped: String = pace.buffer(bytes.len())?;
    for piece in chunks(bytes) {
        pace.reserve(&mut escaped, piece.len() * 4)?;
        for byte in piece {
            match byte {
                0 | 0x80.. => escaped.push_str(&format!("\\{byte:03o}")),
                b'\\' => escaped.push_str("\\\\"),
                _ => escaped.push(char::from(*byte)),
            }
        }
        pace.count_steps(piece.len())?;
    }
    Ok(escaped)
}

fn from_escape(string: &str, pace: &mut InterruptPacer<'_>) -> Result<Vec<u8>> {
    let mut rest = string.as_bytes();
    let mut decoded: Vec<u8> = pace.buffer(rest.len())?;
    while let Some((first, tail)) = rest.split_first() {
        pace.count_steps(1)?;
        match (first, tail) {
            (b'\\', [b'\\', after @ ..]) => {
                decoded.push(b'\\');
                rest = after;
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                decoded.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            (b'\\', _) => bail!(INVALID_TEXT_REPRESENTATION: "invalid input syntax for type bytea"),
            (byte, after) => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    Ok(decoded)
}
