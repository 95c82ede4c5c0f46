//! Bit strings: `bit` and `bit varying`.

use super::argument::{bits, bits_datum, int4};
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::datatype::DataType::{Bit, Int4, Int8, Varbit};
use crate::datum::{Bits, Datum};
use crate::error::{Error, Result};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("&", &[Bit, Bit], Bit, |a, _| combine(a, "AND", |x, y| x & y)),
    row("|", &[Bit, Bit], Bit, |a, _| combine(a, "OR", |x, y| x | y)),
    row("#", &[Bit, Bit], Bit, |a, _| combine(a, "XOR", |x, y| x ^ y)),
    row("~", &[Bit], Bit, |a, _| Ok(bits_datum(bits(&a[0]).map_bytes(|_, byte| !byte)))),
    row("<<", &[Bit, Int4], Bit, |a, _| Ok(shifted(bits(&a[0]), i64::from(int4(&a[1]))))),
    row(">>", &[Bit, Int4], Bit, |a, _| Ok(shifted(bits(&a[0]), -i64::from(int4(&a[1]))))),
    row("||", &[Varbit, Varbit], Varbit, |a, _| bits(&a[0]).concat(bits(&a[1])).map(bits_datum)),
    row("bit_count", &[Bit], Int8, |a, _| {
        let ones: u32 = bits(&a[0]).bytes().iter().map(|byte| byte.count_ones()).sum();
        Ok(Datum::Int8(i64::from(ones)))
    }),
    row("bit_length", &[Bit], Int4, |a, _| Ok(length(bits(&a[0]).len()))),
    row("length", &[Bit], Int4, |a, _| Ok(length(bits(&a[0]).len()))),
    row("octet_length", &[Bit], Int4, |a, _| Ok(length(bits(&a[0]).bytes().len()))),
    row("get_bit", &[Bit, Int4], Int4, |a, _| {
        let index = index_of(bits(&a[0]), int4(&a[1]))?;
        Ok(Datum::Int4(i32::from(bits(&a[0]).get(index) == Some(true))))
    }),
    row("set_bit", &[Bit, Int4, Int4], Bit, |a, _| {
        let index = index_of(bits(&a[0]), int4(&a[1]))?;
        let mut changed = bits(&a[0]).clone();
        match int4(&a[2]) {
            0 => changed.set(index, false),
            1 => changed.set(index, true),
            _ => return Err(invalid_parameter("new bit must be 0 or 1")),
        }
        Ok(bits_datum(changed))
    }),
    row("position", &[Bit, Bit], Int4, |a, _| Ok(length(position(bits(&a[0]), bits(&a[1]))))),
    row("substring", &[Bit, Int4], Bit, |a, _| piece(bits(&a[0]), int4(&a[1]), None)),
    row("substring", &[Bit, Int4, Int4], Bit, |a, _| {
        piece(bits(&a[0]), int4(&a[1]), Some(int4(&a[2])))
    }),
    row("overlay", &[Bit, Bit, Int4], Bit, |a, _| {
        let length = i32::try_from(bits(&a[1]).len()).unwrap_or(i32::MAX);
        overlay(bits(&a[0]), bits(&a[1]), int4(&a[2]), length)
    }),
    row("overlay", &[Bit, Bit, Int4, Int4], Bit, |a, _| {
        overlay(bits(&a[0]), bits(&a[1]), int4(&a[2]), int4(&a[3]))
    }),
];

/// Returns the error of two strings with different lengths.
pub(crate) fn different_sizes(operation: &str) -> Error {
    err!(STRING_DATA_LENGTH_MISMATCH: "cannot {operation} bit strings of different sizes")
}

fn combine(arguments: &[Datum], operation: &str, of: fn(u8, u8) -> u8) -> Result<Datum> {
    combined(bits(&arguments[0]), bits(&arguments[1]), operation, of).map(bits_datum)
}

/// Combines two strings byte by byte.
///
/// # Errors
///
/// 22026 if they are of different lengths.
pub(crate) fn combined(
    left: &Bits,
    right: &Bits,
    operation: &str,
    of: fn(u8, u8) -> u8,
) -> Result<Bits> {
    if left.len() != right.len() {
        return Err(different_sizes(operation));
    }
    Ok(left.map_bytes(|index, byte| of(byte, right.bytes()[index])))
}

fn length(value: usize) -> Datum {
    Datum::Int4(i32::try_from(value).unwrap_or(i32::MAX))
}

/// Shifts to the left by a number of bits; to the right if it is negative.
fn shifted(value: &Bits, by: i64) -> Datum {
    let length = value.len();
    let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX).min(length);
    bits_datum(match by {
        0 => value.clone(),
        1.. => value.slice(distance, length).resized(length),
        _ => {
            let zeros = std::iter::repeat_n(false, distance);
            Bits::from_bits(zeros.chain(value.iter().take(length - distance)))
        }
    })
}

fn index_of(value: &Bits, index: i32) -> Result<usize> {
    let found = usize::try_from(index).ok().filter(|index| *index < value.len());
    found.ok_or_else(|| {
        let last = value.len() as i64 - 1;
        err!(ARRAY_SUBSCRIPT_ERROR: "bit index {index} out of valid range (0..{last})")
    })
}

/// Returns the position of `part`, from 1; 0 if it is not found.
fn position(value: &Bits, part: &Bits) -> usize {
    if value.is_empty() {
        return 0;
    }
    if part.is_empty() {
        return 1;
    }
    let matches =
        |start: &usize| (0..part.len()).all(|index| value.get(start + index) == part.get(index));
    match value.len().checked_sub(part.len()) {
        Some(last) => (0..=last).find(matches).map_or(0, |start| start + 1),
        None => 0,
    }
}

fn negative_length() -> Error {
    err!(SUBSTRING_ERROR: "negative substring length not allowed")
}

/// Returns the bits from `start` on, counted from 1; it may be before the first bit.
fn slice(value: &Bits, start: i32, length: Option<i32>) -> Result<Bits> {
    if length.is_some_and(|length| length < 0) {
        return Err(negative_length());
    }
    let from = i64::from(start) - 1;
    let end = length.map_or(i64::MAX, |length| from + i64::from(length));
    let place = |at: i64| usize::try_from(at.max(0)).unwrap_or(usize::MAX).min(value.len());
    let (from, end) = (place(from), place(end));
    Ok(value.slice(from, end.saturating_sub(from)))
}

fn piece(value: &Bits, start: i32, length: Option<i32>) -> Result<Datum> {
    slice(value, start, length).map(bits_datum)
}

fn overlay(value: &Bits, part: &Bits, start: i32, length: i32) -> Result<Datum> {
    if start <= 0 {
        return Err(negative_length());
    }
    let after = start.checked_add(length);
    let after = after.ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE: "integer out of range"))?;
    let head = slice(value, 1, Some(start - 1))?;
    head.concat(part)?.concat(&slice(value, after, None)?).map(bits_datum)
}
