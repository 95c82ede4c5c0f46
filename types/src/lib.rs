//! SQL values: data types, datums and vectors, text and binary formats, order, storage encodings,
//! expressions and aggregates.
//!
//! This crate and `store` are at the bottom, and do not depend on each other. It does not access
//! files, sockets, tables or SQL text, so it can be tested as pure functions.
//!
//! Modules, bottom up; each uses only those above it.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the system directly"))]
#![forbid(unsafe_code)]

pub mod sqlstate;
#[macro_use]
pub mod error;
pub mod interrupt;
pub mod interruptible;
pub mod encoding;
pub mod key_words;
mod varint;
pub mod datatype;
pub mod numeric;
pub mod datetime;
pub mod datum;
mod geometry;
pub mod vector;
mod item_set;
pub mod modifier;
pub mod routine;
pub mod system;
pub mod regex;
pub mod text;
pub mod binary;
pub mod keycode;
pub mod rowcode;
pub mod batchcode;
pub mod random;
pub mod context;
pub mod cast;
pub mod function;
pub mod inverted;
pub mod expr;
pub mod order;
pub mod aggregate;

pub use datatype::enumeration;
pub use datatype::{DataType, FixedWidthKind, GeometryKind, RegKind, Representation, SqlType};
pub use datum::Datum;
pub use error::{Error, Result};
pub use vector::{Batch, Vector};
