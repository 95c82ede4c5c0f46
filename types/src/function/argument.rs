//! Argument access: converts a datum to the Rust value that the signature implies.
//!
//! The binder passes arguments of the signature's types to every call; another representation is
//! a bug and panics.

use std::sync::Arc;

use crate::datetime::{Interval, TimeWest};
use crate::datum::{
    Array, Bits, Bytes, Datum, Json, JsonPath, Jsonb, MAX_JSON_DEPTH, Nested, Text,
};
use crate::error::Result;
use crate::numeric::Numeric;
use crate::text::json_too_deep;

macro_rules! by_copy {
    ($($name:ident: $variant:ident -> $type:ty;)*) => {
        $(
            #[doc = concat!("Returns the value of a `", stringify!($variant), "`.")]
            pub(super) fn $name(datum: &Datum) -> $type {
                match datum {
                    Datum::$variant(value) => *value,
                    other => mismatch(stringify!($variant), other),
                }
            }
        )*
    };
}

by_copy! {
    int2: Int2 -> i16;
    int4: Int4 -> i32;
    int8: Int8 -> i64;
    float4: Float4 -> f32;
    float8: Float8 -> f64;
    date: Date -> i32;
    time: Time -> i64;
    timestamp: Timestamp -> i64;
    timestamptz: Timestamptz -> i64;
    interval: Interval -> Interval;
}

/// Returns the value of a `Numeric`.
pub(super) fn numeric(datum: &Datum) -> &Numeric {
    match datum {
        Datum::Numeric(value) => value,
        other => mismatch("Numeric", other),
    }
}

/// Returns the value of a `Text`.
pub(super) fn text(datum: &Datum) -> &str {
    match datum {
        Datum::Text(value) => value,
        other => mismatch("Text", other),
    }
}

/// Returns the value of a `Bytea`.
pub(super) fn bytea(datum: &Datum) -> &[u8] {
    match datum {
        Datum::Bytea(value) => value,
        other => mismatch("Bytea", other),
    }
}

/// Returns the value of an array.
pub(super) fn array(datum: &Datum) -> &Array {
    match datum {
        Datum::Nested(Nested::Array(value)) => value,
        other => mismatch("an array", other),
    }
}

/// Returns whether a boolean is true.
pub(super) fn bool_of(datum: &Datum) -> bool {
    datum.as_bool() == Some(true)
}

/// Returns the value of a `timetz`.
pub(super) fn timetz(datum: &Datum) -> TimeWest {
    match datum {
        Datum::Nested(Nested::Timetz { time, west }) => (*time, *west),
        other => mismatch("a timetz", other),
    }
}

/// Returns the value of a bit string.
pub(super) fn bits(datum: &Datum) -> &Bits {
    match datum {
        Datum::Nested(Nested::Bits(value)) => value,
        other => mismatch("a bit string", other),
    }
}

/// Returns a bit string datum.
pub(super) fn bits_datum(bits: Bits) -> Datum {
    Datum::Nested(Nested::Bits(Arc::new(bits)))
}

/// Returns the value of a `jsonpath`.
pub(super) fn json_path(datum: &Datum) -> &JsonPath {
    match datum {
        Datum::Nested(Nested::JsonPath(value)) => value,
        other => mismatch("a jsonpath", other),
    }
}

/// Returns an array datum.
pub(super) fn array_datum(array: Array) -> Datum {
    Datum::Nested(Nested::Array(Arc::new(array)))
}

/// Returns the text of a `json`.
pub(super) fn json_text(datum: &Datum) -> &str {
    match datum {
        Datum::Nested(Nested::Json(text)) => text,
        other => mismatch("json", other),
    }
}

/// Returns a `json` datum of a valid text.
pub(super) fn json_datum(text: String) -> Datum {
    Datum::Nested(Nested::Json(Arc::new(text)))
}

/// Returns the value of a `jsonb`.
pub(super) fn jsonb(datum: &Datum) -> &Json {
    jsonb_form(datum)
}

/// Returns a `jsonb` in its present form.
pub(super) fn jsonb_form(datum: &Datum) -> &Jsonb {
    match datum {
        Datum::Nested(Nested::Jsonb(json)) => json,
        other => mismatch("jsonb", other),
    }
}

/// Returns a `jsonb` datum of a value whose depth has grown.
pub(super) fn grown_jsonb(json: Json) -> Result<Datum> {
    if json.depth() > MAX_JSON_DEPTH {
        return Err(json_too_deep());
    }
    Ok(jsonb_datum(json))
}

/// Returns a `jsonb` datum.
pub(super) fn jsonb_datum(json: Json) -> Datum {
    Datum::Nested(Nested::Jsonb(json.into()))
}

/// Returns a `Text` datum.
pub(super) fn text_datum(text: impl Into<Text>) -> Datum {
    Datum::Text(text.into())
}

/// Returns a `Bytea` datum.
pub(super) fn bytea_datum(bytes: impl Into<Bytes>) -> Datum {
    Datum::Bytea(bytes.into())
}

#[cold]
fn mismatch(expected: &str, found: &Datum) -> ! {
    panic!("a function takes {expected} here but was bound to {found:?}")
}
