//! One SQL value.
//!
//! A [`Datum`] is what a row-at-a-time path carries: keys, parameters, constants, single rows.
//! Scans carry [`Vector`](crate::vector::Vector)s instead.
//!
//! Several types share a variant, because their values are the same thing: `text`, `varchar`,
//! `char` and `name` are `Text` (`char` values are kept padded); `oid` is `Int8` within 0..2^32.
//! What type a datum has is known by its column or expression.

use std::sync::Arc;

use crate::datetime::Interval;
use crate::numeric::Numeric;

/// One SQL value, or NULL.
///
/// `PartialEq` compares representations and is for tests; SQL comparison is
/// [`Datum::compare`](crate::datum::Datum::compare).
#[derive(Debug, Clone, PartialEq)]
pub enum Datum {
    /// NULL of any type.
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`
    Int2(i16),
    /// `integer`
    Int4(i32),
    /// `bigint` and `oid`
    Int8(i64),
    /// `real`
    Float4(f32),
    /// `double precision`
    Float8(f64),
    /// `numeric`
    Numeric(Numeric),
    /// `text`, `varchar`, `char`, `name`, and literals of type `unknown`
    Text(Arc<str>),
    /// `bytea`
    Bytea(Arc<[u8]>),
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
}
