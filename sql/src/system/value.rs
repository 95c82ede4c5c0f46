//! Constructors of values for system views.

use std::sync::Arc;

use types::datum::{Array, Nested};
use types::{DataType, Datum};

/// The type of columns that PostgreSQL declares as `"char"`.
pub(super) const CHAR: DataType = DataType::InternalChar;

pub(super) fn text(value: impl AsRef<str>) -> Datum {
    Datum::text(value.as_ref())
}

/// Returns a text, or NULL.
pub(super) fn text_or_null(value: Option<impl AsRef<str>>) -> Datum {
    value.map_or(Datum::Null, text)
}

pub(super) fn bytes(value: &[u8]) -> Datum {
    Datum::bytea(value)
}

pub(super) fn int8(value: impl TryInto<i64>) -> Datum {
    Datum::Int8(value.try_into().unwrap_or(i64::MAX))
}

pub(super) fn int4(value: impl TryInto<i32>) -> Datum {
    Datum::Int4(value.try_into().unwrap_or(i32::MAX))
}

pub(super) fn int2(value: impl TryInto<i16>) -> Datum {
    Datum::Int2(value.try_into().unwrap_or(i16::MAX))
}

pub(super) fn oid(value: u32) -> Datum {
    Datum::Int8(i64::from(value))
}

/// Returns a value of type `"char"`.
pub(super) fn char(value: char) -> Datum {
    text(value.encode_utf8(&mut [0; 4]))
}

pub(super) fn array(elements: Vec<Datum>) -> Datum {
    Datum::Nested(Nested::Array(Arc::new(Array::from_elements(elements))))
}

/// Returns an `int2vector` or `oidvector`.
pub(super) fn vector(elements: Vec<Datum>) -> Datum {
    Datum::Nested(Nested::Array(Arc::new(Array::from_zero(elements))))
}
