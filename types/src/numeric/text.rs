//! Text format of `numeric`.

use std::fmt;

use super::digits::Digits;
use super::{MAX_SCALE, MAX_SMALL_SCALE, Numeric, Repr, overflow};
use crate::error::Error;
use crate::error::Result;

/// Exponents from this limit on are rejected, as in PostgreSQL.
const MAX_EXPONENT: i64 = (i32::MAX / 2) as i64;

impl Numeric {
    /// Parses a number: digits with at most one point, an optional exponent, or `NaN`, `inf`,
    /// `infinity` in any case; surrounding blanks are ignored.
    ///
    /// # Errors
    ///
    /// `22P02` if it is malformed, `22003` if it has too many digits.
    pub fn parse(text: &str) -> Result<Numeric> {
        let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        if let Some(value) = parse_short(trimmed.as_bytes()) {
            return Ok(value);
        }
        let (negative, unsigned) = match trimmed.as_bytes().first() {
            Some(b'-') => (true, &trimmed[1..]),
            Some(b'+') => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        let bad = || Error::bad_text("numeric", text);
        if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
            let infinity = Numeric::INFINITY;
            return Ok(if negative { infinity.neg() } else { infinity });
        }
        if trimmed.eq_ignore_ascii_case("nan") {
            return Ok(Numeric::NAN);
        }
        let number = Decimal::split(unsigned.as_bytes()).ok_or_else(bad)?;
        number.value(negative)
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Repr::Small { scale, mantissa } => {
                write_small(*mantissa, usize::from(*scale), out);
            }
            Repr::Big(digits) => digits.write(out),
            Repr::NaN => out.extend_from_slice(b"NaN"),
            Repr::Infinity => out.extend_from_slice(b"Infinity"),
            Repr::NegativeInfinity => out.extend_from_slice(b"-Infinity"),
        }
    }
}

/// Returns the value of plain digits that fit the inline form.
fn parse_short(text: &[u8]) -> Option<Numeric> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    if digits.len() > 18 {
        return None;
    }
    let mut mantissa = 0i64;
    let mut point = None;
    for (i, &c) in digits.iter().enumerate() {
        match c {
            b'0'..=b'9' => mantissa = mantissa * 10 + i64::from(c - b'0'),
            b'.' if point.is_none() => point = Some(i),
            _ => return None,
        }
    }
    let scale = point.map_or(0, |i| digits.len() - 1 - i);
    if digits.len() == usize::from(point.is_some()) {
        return None;
    }
    let mantissa = if negative { -mantissa } else { mantissa };
    Some(Numeric(Repr::Small { scale: scale as u16, mantissa }))
}

/// The parts of an unsigned number.
struct Decimal<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn split(text: &'a [u8]) -> Option<Decimal<'a>> {
        let (mantissa, exponent) = match text.iter().position(|c| matches!(c, b'e' | b'E')) {
            Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.iter().position(|&c| c == b'.') {
            Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
            None => (mantissa, &mantissa[..0]),
        };
        let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
        let ok = digits(whole) && digits(fraction) && whole.len() + fraction.len() > 0;
        ok.then_some(Decimal { whole, fraction, exponent })
    }

    fn value(&self, negative: bool) -> Result<Numeric> {
        if self.exponent.abs() >= MAX_EXPONENT {
            return Err(overflow());
        }
        let scale = (self.fraction.len() as i64 - self.exponent).max(0);
        if scale > i64::from(MAX_SCALE) {
            return Err(overflow());
        }
        let all = || self.whole.iter().chain(self.fraction);
        let zeros = all().take_while(|&&c| c == b'0').count();
        let count = self.whole.len() + self.fraction.len();
        if zeros == count {
            return Ok(Numeric::from_mantissa(0, scale as u32));
        }
        // The exponent of the first significant digit, as a power of ten.
        let first = self.whole.len() as i64 - 1 - zeros as i64 + self.exponent;
        let weight = first.div_euclid(4);
        if weight > i64::from(super::MAX_WEIGHT) {
            return Err(overflow());
        }
        let pad = 3 - first.rem_euclid(4) as usize;
        let mut digits = Vec::with_capacity((count - zeros + pad).div_ceil(4));
        let mut group = 0u16;
        let mut filled = pad;
        for &c in all().skip(zeros) {
            group = group * 10 + u16::from(c - b'0');
            filled += 1;
            if filled == 4 {
                digits.push(group);
                (group, filled) = (0, 0);
            }
        }
        if filled > 0 {
            digits.push(group * 10u16.pow(4 - filled as u32));
        }
        let mut value = Digits { negative, weight: weight as i32, scale: scale as u32, digits };
        value.normalize();
        Numeric::from_digits(value)
    }
}

fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value =
        digits.iter().fold(0i64, |sum, c| (sum * 10 + i64::from(c - b'0')).min(MAX_EXPONENT));
    Some(if negative { -value } else { value })
}

fn write_small(mantissa: i64, scale: usize, out: &mut Vec<u8>) {
    debug_assert!(scale <= MAX_SMALL_SCALE as usize, "small scale");
    if mantissa < 0 {
        out.push(b'-');
    }
    let mut buffer = [b'0'; 64];
    let mut at = buffer.len();
    let mut rest = mantissa.unsigned_abs();
    let mut places = 0;
    while rest != 0 || places <= scale {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        places += 1;
        if places == scale && scale > 0 {
            at -= 1;
            buffer[at] = b'.';
        }
    }
    out.extend_from_slice(&buffer[at..]);
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write(&mut text);
        f.pad(&String::from_utf8_lossy(&text))
    }
}

impl fmt::Debug for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
