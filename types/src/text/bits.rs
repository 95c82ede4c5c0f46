//! Text format of bit strings.

use std::sync::Arc;

use crate::datum::{Bits, Datum, Nested};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;

pub(super) fn write(bits: &Bits, pace: &mut InterruptPacer<'_>, out: &mut Vec<u8>) -> Result<()> {
    for bit in bits.iter() {
        pace.step(out, 1)?;
        out.push(if bit { b'1' } else { b'0' });
    }
    Ok(())
}

/// Parses binary digits, after an optional `b`, or hexadecimal ones after an `x`.
pub(super) fn parse(text: &str, pace: &mut InterruptPacer<'_>) -> Result<Datum> {
    let bits = match text.as_bytes().first() {
        Some(b'x' | b'X') => hexadecimal(&text[1..], pace)?,
        Some(b'b' | b'B') => binary(&text[1..], pace)?,
        _ => binary(text, pace)?,
    };
    Ok(Datum::Nested(Nested::Bits(Arc::new(bits))))
}

fn bad_digit(digit: char, what: &str) -> Error {
    err!(INVALID_TEXT_REPRESENTATION: "\"{digit}\" is not a valid {what} digit")
}

fn binary(digits: &str, pace: &mut InterruptPacer<'_>) -> Result<Bits> {
    let mut bits = pace.list(digits.len())?;
    for digit in digits.chars() {
        pace.count_steps(2)?;
        bits.push(match digit {
            '0' => false,
            '1' => true,
            other => return Err(bad_digit(other, "binary")),
        });
    }
    Ok(Bits::from_bits(bits))
}

fn hexadecimal(digits: &str, pace: &mut InterruptPacer<'_>) -> Result<Bits> {
    let mut bits = pace.list(4 * digits.len())?;
    for digit in digits.chars() {
        pace.count_steps(8)?;
        let value = digit.to_digit(16).ok_or_else(|| bad_digit(digit, "hexadecimal"))?;
        bits.extend([8, 4, 2, 1].map(|mask| value & mask != 0));
    }
    Ok(Bits::from_bits(bits))
}
