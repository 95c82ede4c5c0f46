//! The text of bit strings.

use std::sync::Arc;

use crate::datum::{Bits, Datum, Nested};
use crate::error::{Error, Result, sqlstate};

pub(super) fn write(bits: &Bits, out: &mut Vec<u8>) {
    out.extend(bits.iter().map(|bit| if bit { b'1' } else { b'0' }));
}

/// Reads binary digits, behind a `b` if one is there, or hexadecimal ones behind an `x`.
pub(super) fn parse(text: &str) -> Result<Datum> {
    let bits = match text.as_bytes().first() {
        Some(b'x' | b'X') => hexadecimal(&text[1..])?,
        Some(b'b' | b'B') => binary(&text[1..])?,
        _ => binary(text)?,
    };
    Ok(Datum::Nested(Nested::Bits(Arc::new(bits))))
}

fn bad_digit(digit: char, what: &str) -> Error {
    let message = format!("\"{digit}\" is not a valid {what} digit");
    Error::new(sqlstate::INVALID_TEXT_REPRESENTATION, message)
}

fn binary(digits: &str) -> Result<Bits> {
    let bit = |digit| match digit {
        '0' => Ok(false),
        '1' => Ok(true),
        other => Err(bad_digit(other, "binary")),
    };
    digits.chars().map(bit).collect::<Result<Vec<bool>>>().map(Bits::from_bits)
}

fn hexadecimal(digits: &str) -> Result<Bits> {
    let mut bits = Vec::with_capacity(4 * digits.len());
    for digit in digits.chars() {
        let value = digit.to_digit(16).ok_or_else(|| bad_digit(digit, "hexadecimal"))?;
        bits.extend([8, 4, 2, 1].map(|mask| value & mask != 0));
    }
    Ok(Bits::from_bits(bits))
}
