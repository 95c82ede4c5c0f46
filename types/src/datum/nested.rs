//! Nested values: arrays, `json` and `jsonb`, records; and other rare types.
//!
//! They share one variant of [`Datum`](crate::Datum) and of vectors: they are compared, hashed,
//! copied and stored one by one, most of them behind a pointer.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::array::Array;
use super::bits::Bits;
use super::geometry::Geometry;
use super::json_path::JsonPath;
use super::jsonb::Jsonb;
use super::record::Record;
use crate::datatype::DataType;

/// A nested value. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub enum Nested {
    /// An array of any type.
    Array(Arc<Array>),
    /// `json`: its text, which was validated.
    Json(Arc<String>),
    /// `jsonb`
    Jsonb(Jsonb),
    /// `jsonpath`
    JsonPath(Arc<JsonPath>),
    /// `record`
    Record(Arc<Record>),
    /// `bit` and `bit varying`
    Bits(Arc<Bits>),
    /// `point` and the other geometric types
    Geometry(Arc<Geometry>),
    /// `timetz`
    Timetz {
        /// Microseconds since midnight, 0..=86,400,000,000.
        time: i64,
        /// Seconds west of Greenwich.
        west: i32,
    },
}

const _: () = assert!(size_of::<Nested>() == 16);

impl Default for Nested {
    /// Returns the placeholder at NULL positions of vectors.
    fn default() -> Nested {
        Nested::Timetz { time: 0, west: 0 }
    }
}

impl Nested {
    /// Returns whether the value has the representation of a type.
    pub fn fits(&self, data_type: &DataType) -> bool {
        match self {
            Nested::Array(array) => match data_type.element() {
                Some(element) => array.elements.iter().all(|value| value.fits(element)),
                None => false,
            },
            Nested::Json(_) => *data_type == DataType::Json,
            Nested::Jsonb(_) => *data_type == DataType::Jsonb,
            Nested::JsonPath(_) => *data_type == DataType::JsonPath,
            Nested::Record(record) => match data_type {
                DataType::Composite(of) => record.of.as_ref() == Some(of),
                other => *other == DataType::Record && record.of.is_none(),
            },
            Nested::Bits(_) => matches!(data_type, DataType::Bit | DataType::Varbit),
            Nested::Geometry(value) => *data_type == DataType::Geometry(value.kind()),
            Nested::Timetz { .. } => *data_type == DataType::Timetz,
        }
    }

    /// Compares in SQL's order. Types without an order in SQL: all `jsonpath` values are equal,
    /// `json` is ordered by its text, and geometric values are equal only if they are identical.
    pub fn compare(&self, other: &Nested, data_type: &DataType) -> Ordering {
        match (self, other) {
            (Nested::Array(a), Nested::Array(b)) => {
                a.compare(b, data_type.element().unwrap_or(&DataType::Unknown))
            }
            (Nested::Json(a), Nested::Json(b)) => a.cmp(b),
            (Nested::Jsonb(a), Nested::Jsonb(b)) => a.compare(b),
            (Nested::Record(a), Nested::Record(b)) => a.compare(b),
            (Nested::Bits(a), Nested::Bits(b)) => a.compare(b),
            (Nested::Geometry(a), Nested::Geometry(b)) => a.compare(b),
            (
                Nested::Timetz { time, west },
                Nested::Timetz { time: other_time, west: other_west },
            ) => (utc_order(*time, *west), west)
                .cmp(&(utc_order(*other_time, *other_west), other_west)),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// Feeds a hasher consistently with [`Nested::compare`].
    pub fn hash_into(&self, data_type: &DataType, state: &mut impl Hasher) {
        match self {
            Nested::Array(array) => {
                array.hash_into(data_type.element().unwrap_or(&DataType::Unknown), state);
            }
            Nested::Json(text) => text.hash(state),
            Nested::Jsonb(json) => json.hash_into(state),
            Nested::JsonPath(_) => {}
            Nested::Record(record) => record.hash_into(state),
            Nested::Bits(bits) => bits.hash(state),
            Nested::Geometry(value) => value.hash(state),
            Nested::Timetz { time, west } => (time, west).hash(state),
        }
    }

    /// Returns the approximate bytes held.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Nested::Array(array) => array.heap_bytes(),
            Nested::Json(text) => text.len() + 40,
            Nested::Jsonb(json) => json.heap_bytes(),
            Nested::JsonPath(path) => path.heap_bytes(),
            Nested::Record(record) => record.heap_bytes(),
            Nested::Bits(bits) => bits.bytes().len() + 48,
            Nested::Geometry(value) => value.heap_bytes() + 16,
            Nested::Timetz { .. } => 0,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Nested::Array(_) => 0,
            Nested::Json(_) => 1,
            Nested::Jsonb(_) => 2,
            Nested::JsonPath(_) => 3,
            Nested::Record(_) => 4,
            Nested::Bits(_) => 5,
            Nested::Timetz { .. } => 6,
            Nested::Geometry(_) => 7,
        }
    }
}

/// Returns the first sort key of times with time zone: the instant, in microseconds.
pub(crate) fn utc_order(time: i64, west: i32) -> i64 {
    time + i64::from(west) * 1_000_000
}
