//! Order-preserving key encoding: `memcmp(encode(a), encode(b)) == compare(a, b)` for every type,
//! ascending or descending, NULLs first or last, self-delimiting.
//!
//! Byte by byte: `docs/formats/key-encoding.md`.
//!
//! A key does not preserve the form of a value: `1.0` and `1.00`, `1 mon` and `30 days`, `0` and
//! `-0`, `char` values that differ in trailing blanks, and `jsonb` with such numbers have the
//! same key. [`rowcode`](crate::rowcode) stores the lost information in the packed row.
//!
//! # Invariants
//!
//! 1. No encoding of a value is a prefix of another of the same type, so encodings can be
//!    concatenated.
//! 2. An encoding decodes to an equal value.
//!
//! In debug builds, [`encode`] asserts 2, and that decoding ends where the encoding does.
//! Encodings begin with a byte from 0x01 to 0x03.

mod array;
mod decimal;
mod json;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::datatype::{DataType, Representation};
use crate::datetime::Interval;
use crate::datetime::{MICROS_PER_DAY, MICROS_PER_SECOND};
use crate::datum::without_blanks;
use crate::datum::{Bits, Datum, Nested, utc_order};
use crate::error::Error;
use crate::error::Result;
use crate::vector::ValueSink;

/// First byte of a NULL that sorts before all values.
const NULL_FIRST: u8 = 0x01;
/// First byte of a value.
const VALUE: u8 = 0x02;
/// First byte of a NULL that sorts after all values.
const NULL_LAST: u8 = 0x03;
/// Escape for 0x00 in a variable-length value, after the 0x00.
const ESCAPED_ZERO: u8 = 0xFF;
/// Terminator of a variable-length value, after a 0x00.
const TERMINATOR: u8 = 0x01;
/// Bytes of an interval's span.
const INTERVAL_BYTES: usize = 10;
/// Bias that makes an interval's span positive.
const INTERVAL_BIAS: i128 = 1 << 79;

/// Returns the error of a malformed key.
#[cold]
pub(crate) fn corrupt(what: &str) -> Error {
    err!(DATA_CORRUPTED: "cannot decode row key: {what}")
}

/// Appends the key encoding of a value.
///
/// # Errors
///
/// `42804` if the value is not of the type.
#[inline]
pub fn encode(
    value: &Datum,
    data_type: &DataType,
    descending: bool,
    nulls_first: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    if value.is_null() {
        out.push(if nulls_first { NULL_FIRST } else { NULL_LAST });
        return Ok(());
    }
    if !value.fits(data_type) {
        bail!(DATATYPE_MISMATCH: "key value does not have type {}", data_type.sql_name());
    }
    out.push(VALUE);
    let start = out.len();
    match value {
        Datum::Text(text) => {
            let text = if *data_type == DataType::Char { without_blanks(text) } else { text };
            put_bytes(text.as_bytes(), out);
        }
        Datum::Bytea(bytes) => put_bytes(bytes, out),
        Datum::Numeric(number) => decimal::encode(number, out),
        Datum::Nested(nested) => put_nested(nested, data_type, out)?,
        fixed => put_fixed(fixed, out),
    }
    if descending {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
    debug_assert!(
        decodes_to(value, &out[start - 1..], data_type, (descending, nulls_first)),
        "the key of {value:?} as {data_type:?} does not decode to it"
    );
    Ok(())
}

/// Returns whether a key decodes to a value, and has no further bytes.
fn decodes_to(
    value: &Datum,
    key: &[u8],
    data_type: &DataType,
    (descending, nulls_first): (bool, bool),
) -> bool {
    decode(key, data_type, descending, nulls_first).is_ok_and(|(decoded, taken)| {
        taken == key.len() && decoded.compare_typed(value, data_type).is_eq()
    })
}

#[inline]
fn put_fixed(value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int2(value) => out.extend_from_slice(&(*value ^ i16::MIN).to_be_bytes()),
        Datum::Int4(value) | Datum::Date(value) => {
            out.extend_from_slice(&(*value ^ i32::MIN).to_be_bytes());
        }
        Datum::Int8(value)
        | Datum::Time(value)
        | Datum::Timestamp(value)
        | Datum::Timestamptz(value) => {
            out.extend_from_slice(&(*value ^ i64::MIN).to_be_bytes());
        }
        Datum::Float4(value) => {
            let value = if value.is_nan() { f32::NAN.abs() } else { *value + 0.0 };
            let bits = value.to_bits() as i32;
            let flip = (bits >> 31) | i32::MIN;
            out.extend_from_slice(&(bits ^ flip).to_be_bytes());
        }
        Datum::Float8(value) => {
            let value = if value.is_nan() { f64::NAN.abs() } else { *value + 0.0 };
            let bits = value.to_bits() as i64;
            let flip = (bits >> 63) | i64::MIN;
            out.extend_from_slice(&(bits ^ flip).to_be_bytes());
        }
        Datum::Interval(value) => {
            let span = (value.span() + INTERVAL_BIAS).to_be_bytes();
            out.extend_from_slice(&span[span.len() - INTERVAL_BYTES..]);
        }
        Datum::Uuid(value) => out.extend_from_slice(value),
        Datum::Null | Datum::Numeric(_) | Datum::Text(_) | Datum::Bytea(_) | Datum::Nested(_) => {
            debug_assert!(false, "not of fixed width");
        }
    }
}

fn put_nested(nested: &Nested, data_type: &DataType, out: &mut Vec<u8>) -> Result<()> {
    check_type(data_type)?;
    match (nested, data_type.element()) {
        (Nested::Array(array), Some(element)) => array::put(array, element, out),
        (Nested::Jsonb(value), _) => {
            json::put(value, out);
            Ok(())
        }
        (Nested::Timetz { time, west }, _) => {
            let moment = utc_order(*time, *west);
            out.extend_from_slice(&(moment ^ i64::MIN).to_be_bytes());
            out.extend_from_slice(&(*west ^ i32::MIN).to_be_bytes());
            Ok(())
        }
        (Nested::Bits(bits), _) => {
            put_bytes(bits.bytes(), out);
            out.push(((bits.len() + 7) % 8) as u8);
            Ok(())
        }
        _ => Err(no_key(data_type)),
    }
}

/// Checks that values of a type can be keys.
///
/// # Errors
///
/// `42704` for types without an order; `0A000` for rows, and for arrays whose elements lose
/// information in keys.
pub fn check_type(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Record | DataType::Composite(_) => Err(no_key(data_type)),
        _ if !data_type.element().unwrap_or(data_type).is_ordered() => Err(no_order(data_type)),
        DataType::Array(element) if loses_form(element) => Err(no_key(data_type)),
        DataType::Array(element) => check_type(element),
        _ => Ok(()),
    }
}

/// Returns whether keys of this type do not preserve the form of values.
pub(crate) fn loses_form(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Numeric
            | DataType::Interval
            | DataType::Float4
            | DataType::Float8
            | DataType::Char
            | DataType::Jsonb
    )
}

fn no_order(data_type: &DataType) -> Error {
    let name = data_type.sql_name();
    err!(UNDEFINED_OBJECT: "data type {name} has no default operator class for access method \"btree\"";
        hint "You must specify an operator class for the index or define a default operator class for the data type.")
}

fn no_key(data_type: &DataType) -> Error {
    err!(FEATURE_NOT_SUPPORTED: "type {} as a key is not supported", data_type.sql_name())
}

#[inline]
fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|&byte| byte == 0) {
        out.extend_from_slice(&rest[..=zero]);
        out.push(ESCAPED_ZERO);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, TERMINATOR]);
}

/// Returns the value at the start of `bytes` and its length.
///
/// # Errors
///
/// `XX001` if the bytes are not a key encoding of the type.
pub fn decode(
    bytes: &[u8],
    data_type: &DataType,
    descending: bool,
    nulls_first: bool,
) -> Result<(Datum, usize)> {
    let mut datum = Datum::Null;
    let taken = decode_into(bytes, data_type, descending, nulls_first, &mut datum)?;
    Ok((datum, taken))
}

/// Decodes the value at the start of `bytes` into a sink and returns its length. On an error the
/// sink has received nothing.
///
/// # Errors
///
/// `XX001` if the bytes are not a key encoding of the type.
#[inline]
pub fn decode_into(
    bytes: &[u8],
    data_type: &DataType,
    descending: bool,
    nulls_first: bool,
    sink: &mut impl ValueSink,
) -> Result<usize> {
    let (&marker, rest) = bytes.split_first().ok_or_else(|| corrupt("a value is missing"))?;
    match marker {
        VALUE => {}
        NULL_FIRST if nulls_first => {
            sink.put_null();
            return Ok(1);
        }
        NULL_LAST if !nulls_first => {
            sink.put_null();
            return Ok(1);
        }
        _ => return Err(corrupt("invalid first byte of a value")),
    }
    let mask = if descending { u8::MAX } else { 0 };
    Ok(1 + decode_value(rest, data_type, mask, sink)?)
}

/// Returns the first `N` bytes, unmasked.
#[inline]
fn fixed<const N: usize>(bytes: &[u8], mask: u8) -> Result<[u8; N]> {
    let mut array: [u8; N] =
        *bytes.first_chunk().ok_or_else(|| corrupt("truncated fixed-width value"))?;
    if mask != 0 {
        for byte in &mut array {
            *byte ^= mask;
        }
    }
    Ok(array)
}

#[inline]
fn decode_value(
    bytes: &[u8],
    data_type: &DataType,
    mask: u8,
    sink: &mut impl ValueSink,
) -> Result<usize> {
    let i32_value = || Ok(i32::from_be_bytes(fixed(bytes, mask)?) ^ i32::MIN);
    let i64_value = || Ok(i64::from_be_bytes(fixed(bytes, mask)?) ^ i64::MIN);
    match data_type.representation() {
        Representation::Bool => {
            let [byte] = fixed(bytes, mask)?;
            if byte > 1 {
                return Err(corrupt("a boolean is neither 0 nor 1"));
            }
            sink.put_bool(byte == 1);
            Ok(1)
        }
        Representation::Int2 => {
            sink.put_i16(i16::from_be_bytes(fixed(bytes, mask)?) ^ i16::MIN);
            Ok(2)
        }
        Representation::Int4 => i32_value().map(|value| sink.put_i32(value)).map(|()| 4),
        Representation::Date => i32_value().map(|value| sink.put_date(value)).map(|()| 4),
        Representation::Int8 => i64_value().map(|value| sink.put_i64(value)).map(|()| 8),
        Representation::Time => i64_value().map(|value| sink.put_time(value)).map(|()| 8),
        Representation::Timestamp => i64_value().map(|value| sink.put_timestamp(value)).map(|()| 8),
        Representation::Timestamptz => {
            i64_value().map(|value| sink.put_timestamptz(value)).map(|()| 8)
        }
        Representation::Float4 => {
            let bits = i32::from_be_bytes(fixed(bytes, mask)?);
            let flip = if bits < 0 { i32::MIN } else { -1 };
            sink.put_f32(f32::from_bits((bits ^ flip) as u32));
            Ok(4)
        }
        Representation::Float8 => {
            let bits = i64::from_be_bytes(fixed(bytes, mask)?);
            let flip = if bits < 0 { i64::MIN } else { -1 };
            sink.put_f64(f64::from_bits((bits ^ flip) as u64));
            Ok(8)
        }
        Representation::Interval => decode_interval(bytes, mask, sink),
        Representation::Uuid => {
            sink.put_uuid(fixed(bytes, mask)?);
            Ok(16)
        }
        Representation::Numeric => {
            let (number, taken) = decimal::decode(bytes, mask)?;
            sink.put_numeric(number);
            Ok(taken)
        }
        Representation::Nested => decode_nested(bytes, data_type, mask, sink),
        Representation::Bytea => decode_bytes(bytes, mask, |value| {
            sink.put_bytea(value);
            Ok(())
        }),
        Representation::Text => decode_bytes(bytes, mask, |value| {
            let text = std::str::from_utf8(value).map_err(|_| corrupt("invalid UTF-8 text"))?;
            sink.put_text(text);
            Ok(())
        }),
    }
}

fn decode_nested(
    bytes: &[u8],
    data_type: &DataType,
    mask: u8,
    sink: &mut impl ValueSink,
) -> Result<usize> {
    match (data_type, data_type.element()) {
        (_, Some(element)) => array::decode(bytes, element, mask, sink),
        (DataType::Jsonb, _) => json::decode(bytes, mask, sink),
        (DataType::Timetz, _) => decode_timetz(bytes, mask, sink),
        (DataType::Bit | DataType::Varbit, _) => decode_bits(bytes, mask, sink),
        _ => Err(corrupt("a value has a type that keys do not support")),
    }
}

fn decode_interval(bytes: &[u8], mask: u8, sink: &mut impl ValueSink) -> Result<usize> {
    let mut span = [0u8; 16];
    let low: [u8; INTERVAL_BYTES] = fixed(bytes, mask)?;
    span[16 - INTERVAL_BYTES..].copy_from_slice(&low);
    let interval = Interval::from_span(i128::from_be_bytes(span) - INTERVAL_BIAS);
    sink.put_interval(interval.ok_or_else(|| corrupt("an interval is out of range"))?);
    Ok(INTERVAL_BYTES)
}

fn decode_timetz(bytes: &[u8], mask: u8, sink: &mut impl ValueSink) -> Result<usize> {
    let moment = i64::from_be_bytes(fixed(bytes, mask)?) ^ i64::MIN;
    let west = i32::from_be_bytes(fixed(bytes.get(8..).unwrap_or_default(), mask)?) ^ i32::MIN;
    let time = moment.checked_sub(i64::from(west) * MICROS_PER_SECOND);
    let time = time.filter(|time| (0..=MICROS_PER_DAY).contains(time));
    let time = time.ok_or_else(|| corrupt("a time is out of range"))?;
    sink.put_nested(Nested::Timetz { time, west });
    Ok(12)
}

fn decode_bits(bytes: &[u8], mask: u8, sink: &mut impl ValueSink) -> Result<usize> {
    let mut value = Vec::new();
    let taken = decode_bytes(bytes, mask, |all| {
        value.extend_from_slice(all);
        Ok(())
    })?;
    let [rest] = fixed(bytes.get(taken..).unwrap_or_default(), mask)?;
    let length = (8 * value.len()).checked_sub(7 - usize::from(rest.min(7)));
    let length = if value.is_empty() { Some(0) } else { length };
    let bits = length.and_then(|length| Bits::from_bytes(length, &value));
    let bits = bits.ok_or_else(|| corrupt("bit string does not match its length"))?;
    sink.put_nested(Nested::Bits(Arc::new(bits)));
    Ok(taken + 1)
}

/// Passes the bytes of a variable-length value to `take` and returns the encoded length.
fn decode_bytes(bytes: &[u8], mask: u8, take: impl FnOnce(&[u8]) -> Result<()>) -> Result<usize> {
    let zero = mask;
    let next_zero = |from: usize| {
        bytes[from..]
            .iter()
            .position(|&byte| byte == zero)
            .map(|at| from + at)
            .ok_or_else(|| corrupt("unterminated variable-length value"))
    };
    let second = |at: usize| match bytes.get(at + 1).map(|byte| byte ^ mask) {
        Some(TERMINATOR) => Ok(true),
        Some(ESCAPED_ZERO) => Ok(false),
        _ => Err(corrupt("invalid escape in a variable-length value")),
    };
    let mut at = next_zero(0)?;
    if mask == 0 && second(at)? {
        take(&bytes[..at])?;
        return Ok(at + 2);
    }
    let mut value: SmallVec<[u8; 128]> = SmallVec::new();
    let mut from = 0;
    loop {
        value.extend(bytes[from..at].iter().map(|byte| byte ^ mask));
        if second(at)? {
            take(&value)?;
            return Ok(at + 2);
        }
        value.push(0);
        from = at + 2;
        at = next_zero(from)?;
    }
}

/// Returns the smallest byte string greater than every string with this prefix; `None` if there
/// is none (`prefix` is empty or all 0xFF): the range is unbounded.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use self::tests::any_value;
