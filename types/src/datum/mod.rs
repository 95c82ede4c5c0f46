//! A single SQL value.
//!
//! A [`Datum`] is used by row-at-a-time code: keys, parameters, constants, single rows. Scans use
//! [`Vector`](crate::vector::Vector)s instead.
//!
//! Several types share a variant, because their values have the same representation: `text`,
//! `varchar`, `char` and `name` are `Text` (`char` values are padded), and so is `"char"`: its byte
//! as the character with that code, empty for 0; `oid` and the `reg…` types are `Int8` within
//! 0..2^32; enum values are their ranks, `Int8`, and so are `macaddr`, `pg_lsn` and others
//! ([`FixedWidthKind`](crate::FixedWidthKind)). The type of a datum is that of its column or
//! expression.

mod array;
mod bits;
mod geometry;
mod json;
mod jsonb;
pub mod json_path;
mod nested;
mod record;
mod shared;
pub(crate) mod stored_json;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::datatype::{DataType, Representation};
use crate::datetime::Interval;
use crate::numeric::Numeric;

pub use self::array::{Array, Dimension, MAX_DIMENSIONS, MAX_ELEMENTS};
pub use self::bits::{Bits, MAX_BITS};
pub use self::geometry::{Geometry, Point};
pub use self::json::{Json, MAX_JSON_DEPTH};
pub use self::json_path::JsonPath;
pub use self::jsonb::Jsonb;
pub use self::nested::Nested;
pub(crate) use self::nested::utc_order;
pub use self::record::{Fields, Record};
pub use self::shared::{Bytes, SharedBuffer, Text};

/// One SQL value, or NULL.
///
/// `PartialEq` is identity, with floats compared bit for bit, so that NaN equals itself; SQL
/// comparison is [`Datum::compare`](crate::datum::Datum::compare).
#[derive(Debug, Clone)]
pub enum Datum {
    /// NULL of any type.
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`
    Int2(i16),
    /// `integer`
    Int4(i32),
    /// `bigint`, `oid`, the `reg…` types, word types such as `macaddr`, and enums by rank
    Int8(i64),
    /// `real`
    Float4(f32),
    /// `double precision`
    Float8(f64),
    /// `numeric`
    Numeric(Numeric),
    /// `text`, `varchar`, `char`, `name`, `aclitem`, `refcursor`, and literals of type `unknown`
    Text(Text),
    /// `bytea`
    Bytea(Bytes),
    /// `date`: days since 2000-01-01; `i32::MIN` and `i32::MAX` are the infinities
    Date(i32),
    /// `time`: microseconds since midnight, 0..=86,400,000,000
    Time(i64),
    /// `timestamp`: microseconds since 2000-01-01 00:00; the extremes of i64 are the infinities
    Timestamp(i64),
    /// `timestamptz`: microseconds since 2000-01-01 00:00 UTC; the extremes are the infinities
    Timestamptz(i64),
    /// `interval`
    Interval(Interval),
    /// `uuid`
    Uuid([u8; 16]),
    /// Arrays, `json`, `jsonb`, `jsonpath`, records, bit strings, geometric types and `timetz`
    Nested(Nested),
}

const _: () = assert!(size_of::<Datum>() == 24);

impl PartialEq for Datum {
    fn eq(&self, other: &Datum) -> bool {
        match (self, other) {
            (Datum::Null, Datum::Null) => true,
            (Datum::Bool(a), Datum::Bool(b)) => a == b,
            (Datum::Int2(a), Datum::Int2(b)) => a == b,
            (Datum::Int4(a), Datum::Int4(b)) | (Datum::Date(a), Datum::Date(b)) => a == b,
            (Datum::Int8(a), Datum::Int8(b))
            | (Datum::Time(a), Datum::Time(b))
            | (Datum::Timestamp(a), Datum::Timestamp(b))
            | (Datum::Timestamptz(a), Datum::Timestamptz(b)) => a == b,
            (Datum::Float4(a), Datum::Float4(b)) => a.to_bits() == b.to_bits(),
            (Datum::Float8(a), Datum::Float8(b)) => a.to_bits() == b.to_bits(),
            (Datum::Numeric(a), Datum::Numeric(b)) => a == b,
            (Datum::Text(a), Datum::Text(b)) => a == b,
            (Datum::Bytea(a), Datum::Bytea(b)) => a == b,
            (Datum::Interval(a), Datum::Interval(b)) => a == b,
            (Datum::Uuid(a), Datum::Uuid(b)) => a == b,
            (Datum::Nested(a), Datum::Nested(b)) => a == b,
            _ => false,
        }
    }
}

impl Datum {
    /// Returns a text value.
    pub fn text(text: impl Into<Text>) -> Datum {
        Datum::Text(text.into())
    }

    /// Returns a bytea value.
    pub fn bytea(bytes: impl Into<Bytes>) -> Datum {
        Datum::Bytea(bytes.into())
    }

    /// Returns whether this is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// Returns the value of a boolean; `None` for NULL and other values.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Datum::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the value of an integer of any width; `None` for NULL and other values.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Datum::Int2(value) => Some(i64::from(*value)),
            Datum::Int4(value) => Some(i64::from(*value)),
            Datum::Int8(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the value of a float of any width; `None` for NULL and other values.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Datum::Float4(value) => Some(f64::from(*value)),
            Datum::Float8(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the value of a text; `None` for NULL and other values.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Datum::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of a bytea; `None` for NULL and other values.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Datum::Bytea(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns whether the value has the representation of `data_type`; NULL fits all types.
    pub fn fits(&self, data_type: &DataType) -> bool {
        match self {
            Datum::Null => true,
            Datum::Nested(nested) => nested.fits(data_type),
            other => other.representation() == data_type.representation(),
        }
    }

    /// Returns the variant; undefined for NULL.
    fn representation(&self) -> Representation {
        match self {
            Datum::Bool(_) => Representation::Bool,
            Datum::Int2(_) => Representation::Int2,
            Datum::Int4(_) => Representation::Int4,
            Datum::Int8(_) => Representation::Int8,
            Datum::Float4(_) => Representation::Float4,
            Datum::Float8(_) => Representation::Float8,
            Datum::Numeric(_) => Representation::Numeric,
            Datum::Text(_) => Representation::Text,
            Datum::Bytea(_) => Representation::Bytea,
            Datum::Date(_) => Representation::Date,
            Datum::Time(_) => Representation::Time,
            Datum::Timestamp(_) => Representation::Timestamp,
            Datum::Timestamptz(_) => Representation::Timestamptz,
            Datum::Interval(_) => Representation::Interval,
            Datum::Uuid(_) => Representation::Uuid,
            Datum::Null | Datum::Nested(_) => Representation::Nested,
        }
    }

    /// Compares two values of one type in SQL's order: NULL is greatest and equals NULL, NaN is
    /// the greatest number, text is compared byte by byte. Values of different representations
    /// are ordered by variant, which is total but arbitrary.
    pub fn compare(&self, other: &Datum) -> Ordering {
        match (self, other) {
            (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
            (Datum::Int2(a), Datum::Int2(b)) => a.cmp(b),
            (Datum::Int4(a), Datum::Int4(b)) => a.cmp(b),
            (Datum::Int8(a), Datum::Int8(b)) => a.cmp(b),
            (Datum::Float4(a), Datum::Float4(b)) => compare_floats(f64::from(*a), f64::from(*b)),
            (Datum::Float8(a), Datum::Float8(b)) => compare_floats(*a, *b),
            (Datum::Numeric(a), Datum::Numeric(b)) => a.cmp(b),
            (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Datum::Bytea(a), Datum::Bytea(b)) => (**a).cmp(&**b),
            (Datum::Date(a), Datum::Date(b)) => a.cmp(b),
            (Datum::Time(a), Datum::Time(b))
            | (Datum::Timestamp(a), Datum::Timestamp(b))
            | (Datum::Timestamptz(a), Datum::Timestamptz(b)) => a.cmp(b),
            (Datum::Interval(a), Datum::Interval(b)) => a.cmp(b),
            (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
            (Datum::Nested(a), Datum::Nested(b)) => a.compare(b, &DataType::Unknown),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// Compares like [`Datum::compare`], but ignores trailing blanks of `char`.
    pub fn compare_typed(&self, other: &Datum, data_type: &DataType) -> Ordering {
        match (self, other) {
            (Datum::Text(a), Datum::Text(b)) if *data_type == DataType::Char => {
                without_blanks(a).as_bytes().cmp(without_blanks(b).as_bytes())
            }
            (Datum::Nested(a), Datum::Nested(b)) => a.compare(b, data_type),
            _ => self.compare(other),
        }
    }

    /// Feeds a hasher so that values that compare equal have equal hashes.
    pub fn hash_into(&self, state: &mut impl Hasher) {
        match self {
            Datum::Null => state.write_u8(0xff),
            Datum::Bool(value) => state.write_u8(u8::from(*value)),
            Datum::Int2(value) => state.write_i64(i64::from(*value)),
            Datum::Int4(value) => state.write_i64(i64::from(*value)),
            Datum::Int8(value) => state.write_i64(*value),
            Datum::Float4(value) => state.write_u64(canonical_bits(f64::from(*value))),
            Datum::Float8(value) => state.write_u64(canonical_bits(*value)),
            Datum::Numeric(value) => value.hash(state),
            Datum::Text(text) => text.hash(state),
            Datum::Bytea(bytes) => bytes.hash(state),
            Datum::Date(value) => state.write_i32(*value),
            Datum::Time(value) | Datum::Timestamp(value) | Datum::Timestamptz(value) => {
                state.write_i64(*value);
            }
            Datum::Interval(value) => value.hash(state),
            Datum::Uuid(value) => state.write(value),
            Datum::Nested(nested) => nested.hash_into(&DataType::Unknown, state),
        }
    }

    /// Feeds a hasher consistently with [`Datum::compare_typed`].
    pub fn hash_typed(&self, data_type: &DataType, state: &mut impl Hasher) {
        match self {
            Datum::Text(text) if *data_type == DataType::Char => without_blanks(text).hash(state),
            Datum::Nested(nested) => nested.hash_into(data_type, state),
            _ => self.hash_into(state),
        }
    }

    /// Returns the approximate bytes held outside of the datum itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Datum::Text(text) => text.len() + 16,
            Datum::Bytea(bytes) => bytes.len() + 16,
            Datum::Numeric(value) => value.heap_bytes(),
            Datum::Nested(nested) => nested.heap_bytes(),
            _ => 0,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Datum::Bool(_) => 0,
            Datum::Int2(_) => 1,
            Datum::Int4(_) => 2,
            Datum::Int8(_) => 3,
            Datum::Float4(_) => 4,
            Datum::Float8(_) => 5,
            Datum::Numeric(_) => 6,
            Datum::Text(_) => 7,
            Datum::Bytea(_) => 8,
            Datum::Date(_) => 9,
            Datum::Time(_) => 10,
            Datum::Timestamp(_) => 11,
            Datum::Timestamptz(_) => 12,
            Datum::Interval(_) => 13,
            Datum::Uuid(_) => 14,
            Datum::Nested(_) => 15,
            Datum::Null => u8::MAX,
        }
    }
}

/// Compares floats in SQL's order: NaN equals NaN and is greatest, -0 equals 0.
#[inline]
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Returns a text without trailing blanks, as for comparisons of `char`.
#[inline]
pub fn without_blanks(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// Returns bits that are equal for floats that compare equal.
fn canonical_bits(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else if value == 0.0 {
        0
    } else {
        value.to_bits()
    }
}
