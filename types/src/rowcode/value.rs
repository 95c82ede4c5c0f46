//! Encoding of one value in a packed row: little-endian fixed-width values, and the bytes of
//! variable ones.

use super::{corrupt, nested};
use crate::datatype::composite::Fields;
use crate::datatype::{DataType, Representation};
use crate::datetime::Interval;
use crate::datum::Datum;
use crate::error::Result;
use crate::numeric::Numeric;
use crate::vector::ValueSink;

/// Returns the bytes of a type in the fixed-width section; `None` for variable-length types.
pub(crate) fn width(data_type: &DataType) -> Option<usize> {
    match data_type.representation() {
        Representation::Bool => Some(1),
        Representation::Int2 => Some(2),
        Representation::Int4 | Representation::Float4 | Representation::Date => Some(4),
        Representation::Int8
        | Representation::Float8
        | Representation::Time
        | Representation::Timestamp
        | Representation::Timestamptz => Some(8),
        Representation::Interval | Representation::Uuid => Some(16),
        Representation::Numeric
        | Representation::Text
        | Representation::Bytea
        | Representation::Nested => None,
    }
}

/// Appends a value; nothing for NULL. `fields` receives the fields of records.
#[inline]
pub(crate) fn write(value: &Datum, fields: &mut Vec<Fields>, out: &mut Vec<u8>) {
    match value {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int2(value) => out.extend_from_slice(&value.to_le_bytes()),
        Datum::Int4(value) | Datum::Date(value) => out.extend_from_slice(&value.to_le_bytes()),
        Datum::Int8(value)
        | Datum::Time(value)
        | Datum::Timestamp(value)
        | Datum::Timestamptz(value) => out.extend_from_slice(&value.to_le_bytes()),
        Datum::Float4(value) => out.extend_from_slice(&value.to_le_bytes()),
        Datum::Float8(value) => out.extend_from_slice(&value.to_le_bytes()),
        Datum::Interval(value) => out.extend_from_slice(&interval_bytes(value)),
        Datum::Uuid(value) => out.extend_from_slice(value),
        Datum::Text(text) => out.extend_from_slice(text.as_bytes()),
        Datum::Bytea(bytes) => out.extend_from_slice(bytes),
        Datum::Numeric(number) => number.write_stored(out),
        Datum::Nested(value) => nested::write(value, fields, out),
    }
}

/// Returns the encoded months, days and microseconds.
pub(super) fn interval_bytes(value: &Interval) -> [u8; 16] {
    let mut bytes = [0u8; 16];
    bytes[..4].copy_from_slice(&value.months.to_le_bytes());
    bytes[4..8].copy_from_slice(&value.days.to_le_bytes());
    bytes[8..].copy_from_slice(&value.microseconds.to_le_bytes());
    bytes
}

/// Returns the interval of [`interval_bytes`].
pub(super) fn interval_of(bytes: [u8; 16]) -> Interval {
    let value = u128::from_le_bytes(bytes);
    Interval::new(value as u32 as i32, (value >> 32) as u32 as i32, (value >> 64) as u64 as i64)
}

/// Returns the first `N` bytes.
#[inline]
fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.first_chunk().copied().ok_or_else(|| corrupt("truncated fixed-width value"))
}

/// Decodes a value into a sink: a fixed-width one at the start of `bytes`, or all of `bytes`.
/// `fields` are those that [`write()`] has received.
#[inline]
pub(crate) fn read(
    bytes: &[u8],
    data_type: &DataType,
    fields: &[Fields],
    sink: &mut impl ValueSink,
) -> Result<()> {
    match data_type.representation() {
        Representation::Bool => {
            let [byte] = fixed(bytes)?;
            if byte > 1 {
                return Err(corrupt("a boolean is neither 0 nor 1"));
            }
            sink.put_bool(byte == 1);
        }
        Representation::Int2 => sink.put_i16(i16::from_le_bytes(fixed(bytes)?)),
        Representation::Int4 => sink.put_i32(i32::from_le_bytes(fixed(bytes)?)),
        Representation::Date => sink.put_date(i32::from_le_bytes(fixed(bytes)?)),
        Representation::Int8 => {
            sink.put_i64(i64::from_le_bytes(fixed(bytes)?));
        }
        Representation::Time => sink.put_time(i64::from_le_bytes(fixed(bytes)?)),
        Representation::Timestamp => sink.put_timestamp(i64::from_le_bytes(fixed(bytes)?)),
        Representation::Timestamptz => sink.put_timestamptz(i64::from_le_bytes(fixed(bytes)?)),
        Representation::Float4 => sink.put_f32(f32::from_le_bytes(fixed(bytes)?)),
        Representation::Float8 => sink.put_f64(f64::from_le_bytes(fixed(bytes)?)),
        Representation::Interval => sink.put_interval(interval_of(fixed(bytes)?)),
        Representation::Uuid => sink.put_uuid(fixed(bytes)?),
        Representation::Bytea => sink.put_bytea(bytes),
        Representation::Nested => sink.put_nested(nested::read(bytes, data_type, fields)?),
        Representation::Numeric => {
            let number = Numeric::read_stored(bytes).ok_or_else(|| corrupt("invalid numeric"))?;
            sink.put_numeric(number);
        }
        Representation::Text => {
            if !sink.put_ascii(bytes) {
                let text = std::str::from_utf8(bytes);
                sink.put_text(text.map_err(|_| corrupt("invalid UTF-8 text"))?);
            }
        }
    }
    Ok(())
}
