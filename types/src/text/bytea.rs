//! Text format of `bytea`: hex and escape.

use crate::error::Error;
use crate::error::Result;
use crate::interruptible::{InterruptPacer, chunks};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Returns a byte as two hexadecimal digits.
pub(super) fn hex(byte: u8) -> [u8; 2] {
    [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0x0F)]]
}

/// Appends bytes in hex or escape format.
pub(super) fn write(
    bytes: &[u8],
    escape: bool,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if !escape {
        pace.reserve(out, 2 + bytes.len() * 2)?;
        out.extend_from_slice(b"\\x");
    }
    for piece in chunks(bytes) {
        pace.reserve(out, piece.len() * if escape { 4 } else { 2 })?;
        for &byte in piece {
            match byte {
                _ if !escape => out.extend_from_slice(&hex(byte)),
                b'\\' => out.extend_from_slice(b"\\\\"),
                0x20..=0x7E => out.push(byte),
                _ => {
                    let octal = [byte >> 6, byte >> 3 & 7, byte & 7].map(|digit| b'0' + digit);
                    out.push(b'\\');
                    out.extend_from_slice(&octal);
                }
            }
        }
        pace.count_steps(piece.len())?;
    }
    Ok(())
}

/// Parses hex (`\x…`) or escape format.
pub(super) fn parse(text: &str, pace: &mut InterruptPacer<'_>) -> Result<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(digits) => parse_hex(digits, pace),
        None => parse_escape(text.as_bytes(), pace),
    }
}

fn parse_hex(text: &str, pace: &mut InterruptPacer<'_>) -> Result<Vec<u8>> {
    let mut bytes: Vec<u8> = pace.buffer(text.len() / 2)?;
    let mut chars = text.chars();
    let digit = |c: char| {
        c.to_digit(16)
            .map(|digit| digit as u8)
            .ok_or_else(|| err!(INVALID_PARAMETER_VALUE: "invalid hexadecimal digit: \"{c}\""))
    };
    while let Some(c) = chars.next() {
        pace.count_steps(1)?;
        if matches!(c, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = digit(c)?;
        let low = chars.next().ok_or_else(
            || err!(INVALID_PARAMETER_VALUE: "invalid hexadecimal data: odd number of digits"),
        )?;
        bytes.push(high << 4 | digit(low)?);
    }
    Ok(bytes)
}

fn parse_escape(text: &[u8], pace: &mut InterruptPacer<'_>) -> Result<Vec<u8>> {
    let mut bytes: Vec<u8> = pace.buffer(text.len())?;
    let mut rest = text;
    loop {
        pace.count_steps(1)?;
        rest = match rest {
            [] => return Ok(bytes),
            [b'\\', b'\\', tail @ ..] => {
                bytes.push(b'\\');
                tail
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                tail
            }
            [b'\\', ..] => {
                bail!(INVALID_TEXT_REPRESENTATION: "invalid input syntax for type bytea");
            }
            [byte, tail @ ..] => {
                bytes.push(*byte);
                tail
            }
        };
    }
}
