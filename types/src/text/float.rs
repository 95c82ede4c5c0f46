//! Text format of floats: the shortest digits that parse to the same value, or as many as
//! `extra_float_digits` allows, in PostgreSQL's notation: plain from 0.0001 up to 6 (`real`) or
//! 15 digits (`double precision`) before the point, otherwise with an exponent of at least two
//! digits.

use std::io::Write;

use crate::error::Error;
use crate::error::Result;

/// Minimum exponent in plain notation.
const MIN_PLAIN_EXPONENT: i32 = -4;

/// Appends a `double precision`.
pub fn write_f64(value: f64, out: &mut Vec<u8>) {
    // Integers, the most frequent values, have a fast path.
    if value.abs() < 1e15 && value == value.trunc() && (value != 0.0 || value.is_sign_positive()) {
        super::write_i64(value as i64, out);
        return;
    }
    let mut scratch = [0u8; 32];
    let mut rest = &mut scratch[..];
    let _ = write!(rest, "{value:e}");
    let unused = rest.len();
    lay_out(&scratch[..scratch.len() - unused], value, 15, out);
}

/// Appends a `real`.
pub fn write_f32(value: f32, out: &mut Vec<u8>) {
    let mut scratch = [0u8; 32];
    let mut rest = &mut scratch[..];
    let _ = write!(rest, "{value:e}");
    let unused = rest.len();
    lay_out(&scratch[..scratch.len() - unused], f64::from(value), 6, out);
}

/// Appends a `double precision` according to `extra_float_digits`.
pub(super) fn put_f64(value: f64, extra_digits: i8, out: &mut Vec<u8>) {
    match extra_digits {
        1.. => write_f64(value, out),
        _ => put_rounded(value, (15 + i32::from(extra_digits)).max(1), out),
    }
}

/// Appends a `real` according to `extra_float_digits`.
pub(super) fn put_f32(value: f32, extra_digits: i8, out: &mut Vec<u8>) {
    match extra_digits {
        1.. => write_f32(value, out),
        _ => put_rounded(f64::from(value), (6 + i32::from(extra_digits)).max(1), out),
    }
}

/// Returns a float in the format of C's `%g`, for messages.
pub(crate) fn general(value: f64) -> String {
    let mut out = Vec::new();
    put_rounded(value, 6, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends a float with at most `digits` digits, as C's `%g` does.
fn put_rounded(value: f64, digits: i32, out: &mut Vec<u8>) {
    let text = format!("{value:.*e}", (digits - 1) as usize);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = match mantissa.contains('.') {
        true => mantissa.trim_end_matches('0').trim_end_matches('.'),
        false => mantissa,
    };
    lay_out(format!("{mantissa}e{exponent}").as_bytes(), value, digits, out);
}

/// Formats `d.ddde±x` in plain or exponent notation.
fn lay_out(scientific: &[u8], value: f64, plain_digits: i32, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value.is_infinite() {
        out.extend_from_slice(b"Infinity");
        return;
    }
    let unsigned = scientific.strip_prefix(b"-").unwrap_or(scientific);
    let at = unsigned.iter().position(|&c| c == b'e').unwrap_or(unsigned.len());
    let exponent: i32 = std::str::from_utf8(unsigned.get(at + 1..).unwrap_or_default())
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let first = &unsigned[..1];
    let fraction = unsigned.get(2..at).unwrap_or_default();
    if (MIN_PLAIN_EXPONENT..plain_digits).contains(&exponent) {
        lay_out_plain(first, fraction, exponent, out);
        return;
    }
    out.extend_from_slice(first);
    if !fraction.is_empty() {
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
}

fn lay_out_plain(first: &[u8], fraction: &[u8], exponent: i32, out: &mut Vec<u8>) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(first);
        out.extend_from_slice(fraction);
        return;
    }
    let exponent = exponent as usize;
    out.extend_from_slice(first);
    let whole = fraction.len().min(exponent);
    out.extend_from_slice(&fraction[..whole]);
    out.resize(out.len() + exponent - whole, b'0');
    if fraction.len() > exponent {
        out.push(b'.');
        out.extend_from_slice(&fraction[exponent..]);
    }
}

/// Result of parsing a float.
enum FloatParse {
    Value(f64, f32),
    OutOfRange,
    Bad,
}

fn read(text: &str) -> FloatParse {
    let trimmed = super::trimmed(text);
    let unsigned = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if let Some(digits) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let Some(value) = hexadecimal(digits) else { return FloatParse::Bad };
        let value = if trimmed.starts_with('-') { -value } else { value };
        return if value.is_infinite() {
            FloatParse::OutOfRange
        } else {
            FloatParse::Value(value, value as f32)
        };
    }
    let special = ["inf", "infinity", "nan"].iter().any(|word| unsigned.eq_ignore_ascii_case(word));
    let shaped = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if !special && !shaped {
        return FloatParse::Bad;
    }
    let (Ok(double), Ok(single)) = (trimmed.parse::<f64>(), trimmed.parse::<f32>()) else {
        return FloatParse::Bad;
    };
    if special {
        return FloatParse::Value(double, single);
    }
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.bytes().any(|c| (b'1'..=b'9').contains(&c));
    if double.is_infinite() || (double == 0.0 && !is_zero) {
        return FloatParse::OutOfRange;
    }
    FloatParse::Value(double, single)
}

/// Parses `1a.8p3`, as C's `strtod` does after `0x`.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, power) = match text.split_once(['p', 'P']) {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let places = i32::try_from(fraction.len()).ok()?;
    Some(value * 2.0_f64.powi(power.saturating_sub(places.saturating_mul(4))))
}

fn out_of_range(text: &str, type_name: &str) -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "\"{text}\" is out of range for type {type_name}")
}

/// Returns the length of the number at the start of a text according to C's `strtod`; 0 if there
/// is none.
pub(super) fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize, test: fn(&u8) -> bool| {
        bytes.get(from..).unwrap_or_default().iter().take_while(|byte| test(byte)).count()
    };
    let sign = |at: usize| usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
    let start = sign(0);
    let word = |word: &str| {
        let head = bytes.get(start..start + word.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()))
    };
    if let Some(word) = ["infinity", "inf", "nan"].into_iter().find(|one| word(one)) {
        return start + word.len();
    }
    let is_hex = word("0x") && digits(start + 2, u8::is_ascii_hexdigit) > 0;
    let (first, test): (usize, fn(&u8) -> bool) =
        if is_hex { (start + 2, u8::is_ascii_hexdigit) } else { (start, u8::is_ascii_digit) };
    let whole = digits(first, test);
    let mut at = first + whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1, test);
        if whole + fraction > 0 {
            at += 1 + fraction;
        }
    }
    if at == first {
        return 0;
    }
    let marks: &[u8] = if is_hex { b"pP" } else { b"eE" };
    if bytes.get(at).is_some_and(|byte| marks.contains(byte)) {
        let from = at + 1 + sign(at + 1);
        let exponent = digits(from, u8::is_ascii_digit);
        if exponent > 0 {
            at = from + exponent;
        }
    }
    at
}

/// Parses a `double precision`.
pub(super) fn parse_f64(text: &str) -> Result<f64> {
    match read(text) {
        FloatParse::Value(value, _) => Ok(value),
        FloatParse::OutOfRange => Err(out_of_range(super::trimmed(text), "double precision")),
        FloatParse::Bad => Err(Error::bad_text("double precision", text)),
    }
}

/// Parses a `real`.
pub(super) fn parse_f32(text: &str) -> Result<f32> {
    match read(text) {
        FloatParse::Value(double, single)
            if (single.is_infinite() && double.is_finite()) || (single == 0.0 && double != 0.0) =>
        {
            Err(out_of_range(super::trimmed(text), "real"))
        }
        FloatParse::Value(_, single) => Ok(single),
        FloatParse::OutOfRange => Err(out_of_range(super::trimmed(text), "real")),
        FloatParse::Bad => Err(Error::bad_text("real", text)),
    }
}
