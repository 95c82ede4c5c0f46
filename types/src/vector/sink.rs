//! Value sinks: the destinations of decoders.

use super::Vector;
use crate::datetime::Interval;
use crate::datum::{Datum, Nested};
use crate::numeric::Numeric;

/// A destination of decoded values, with one call per value, so that the same decoder fills a
/// [`Vector`], a [`Datum`] or nothing (`()`, to skip a value).
pub trait ValueSink {
    /// Takes a NULL.
    fn put_null(&mut self);
    /// Takes a `boolean`.
    fn put_bool(&mut self, value: bool);
    /// Takes a `smallint`.
    fn put_i16(&mut self, value: i16);
    /// Takes an `integer`.
    fn put_i32(&mut self, value: i32);
    /// Takes a `bigint` or `oid`.
    fn put_i64(&mut self, value: i64);
    /// Takes a `real`.
    fn put_f32(&mut self, value: f32);
    /// Takes a `double precision`.
    fn put_f64(&mut self, value: f64);
    /// Takes a `numeric`.
    fn put_numeric(&mut self, value: Numeric);
    /// Takes a text of any type.
    fn put_text(&mut self, value: &str);
    /// Takes a `bytea`.
    fn put_bytea(&mut self, value: &[u8]);
    /// Takes a `date`.
    fn put_date(&mut self, value: i32);
    /// Takes a `time`.
    fn put_time(&mut self, value: i64);
    /// Takes a `timestamp`.
    fn put_timestamp(&mut self, value: i64);
    /// Takes a `timestamptz`.
    fn put_timestamptz(&mut self, value: i64);
    /// Takes an `interval`.
    fn put_interval(&mut self, value: Interval);
    /// Takes a `uuid`.
    fn put_uuid(&mut self, value: [u8; 16]);
    /// Takes an array, a `json` or a `jsonb`.
    fn put_nested(&mut self, value: Nested);

    /// Takes a text if it is ASCII and the sink stores bytes; returns whether it did.
    #[inline]
    fn put_ascii(&mut self, _value: &[u8]) -> bool {
        false
    }

    /// Takes any value.
    fn put_datum(&mut self, datum: &Datum) {
        match datum {
            Datum::Null => self.put_null(),
            Datum::Bool(value) => self.put_bool(*value),
            Datum::Int2(value) => self.put_i16(*value),
            Datum::Int4(value) => self.put_i32(*value),
            Datum::Int8(value) => self.put_i64(*value),
            Datum::Float4(value) => self.put_f32(*value),
            Datum::Float8(value) => self.put_f64(*value),
            Datum::Numeric(value) => self.put_numeric(value.clone()),
            Datum::Text(value) => self.put_text(value),
            Datum::Bytea(value) => self.put_bytea(value),
            Datum::Date(value) => self.put_date(*value),
            Datum::Time(value) => self.put_time(*value),
            Datum::Timestamp(value) => self.put_timestamp(*value),
            Datum::Timestamptz(value) => self.put_timestamptz(*value),
            Datum::Interval(value) => self.put_interval(*value),
            Datum::Uuid(value) => self.put_uuid(*value),
            Datum::Nested(value) => self.put_nested(value.clone()),
        }
    }
}

/// Implements [`ValueSink`] method by method.
macro_rules! sink {
    ($sink:ty, $self:ident, $([ascii $ascii:expr])? $($method:ident($value:ident: $kind:ty) $body:expr;)*) => {
        impl ValueSink for $sink {
            #[inline]
            fn put_null(&mut self) {
                let $self = self;
                $self.take_null();
            }
            $(#[inline]
            fn put_ascii(&mut self, value: &[u8]) -> bool {
                $ascii(self, value)
            })?
            $(#[inline]
            fn $method(&mut self, $value: $kind) {
                let $self = self;
                $body
            })*
        }
    };
}

/// The treatment of NULL, which differs between the three sinks.
trait TakeNull {
    fn take_null(&mut self);
}

impl TakeNull for () {
    fn take_null(&mut self) {}
}

impl TakeNull for Datum {
    fn take_null(&mut self) {
        *self = Datum::Null;
    }
}

impl TakeNull for Vector {
    fn take_null(&mut self) {
        self.push_null();
    }
}

sink! { (), _sink,
    put_bool(_v: bool) ();
    put_i16(_v: i16) ();
    put_i32(_v: i32) ();
    put_i64(_v: i64) ();
    put_f32(_v: f32) ();
    put_f64(_v: f64) ();
    put_numeric(_v: Numeric) ();
    put_text(_v: &str) ();
    put_bytea(_v: &[u8]) ();
    put_date(_v: i32) ();
    put_time(_v: i64) ();
    put_timestamp(_v: i64) ();
    put_timestamptz(_v: i64) ();
    put_interval(_v: Interval) ();
    put_uuid(_v: [u8; 16]) ();
    put_nested(_v: Nested) ();
}

sink! { Datum, datum,
    put_bool(v: bool) *datum = Datum::Bool(v);
    put_i16(v: i16) *datum = Datum::Int2(v);
    put_i32(v: i32) *datum = Datum::Int4(v);
    put_i64(v: i64) *datum = Datum::Int8(v);
    put_f32(v: f32) *datum = Datum::Float4(v);
    put_f64(v: f64) *datum = Datum::Float8(v);
    put_numeric(v: Numeric) *datum = Datum::Numeric(v);
    put_text(v: &str) *datum = Datum::text(v);
    put_bytea(v: &[u8]) *datum = Datum::bytea(v);
    put_date(v: i32) *datum = Datum::Date(v);
    put_time(v: i64) *datum = Datum::Time(v);
    put_timestamp(v: i64) *datum = Datum::Timestamp(v);
    put_timestamptz(v: i64) *datum = Datum::Timestamptz(v);
    put_interval(v: Interval) *datum = Datum::Interval(v);
    put_uuid(v: [u8; 16]) *datum = Datum::Uuid(v);
    put_nested(v: Nested) *datum = Datum::Nested(v);
}

sink! { Vector, vector,
    [ascii Vector::push_ascii]
    put_bool(v: bool) vector.push_bool(v);
    put_i16(v: i16) vector.push_i16(v);
    put_i32(v: i32) vector.push_i32(v);
    put_i64(v: i64) vector.push_i64(v);
    put_f32(v: f32) vector.push_f32(v);
    put_f64(v: f64) vector.push_f64(v);
    put_numeric(v: Numeric) vector.push_numeric(v);
    put_text(v: &str) vector.push_text(v);
    put_bytea(v: &[u8]) vector.push_bytea(v);
    put_date(v: i32) vector.push_i32(v);
    put_time(v: i64) vector.push_i64(v);
    put_timestamp(v: i64) vector.push_i64(v);
    put_timestamptz(v: i64) vector.push_i64(v);
    put_interval(v: Interval) vector.push_interval(v);
    put_uuid(v: [u8; 16]) vector.push_uuid(v);
    put_nested(v: Nested) vector.push_nested(v);
}
