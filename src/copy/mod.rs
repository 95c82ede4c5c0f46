//! COPY data: bytes to fields and back, in PostgreSQL's text, CSV and binary formats.
//!
//! The SQL layer knows rows and types; here is only how fields stand in a stream of bytes that
//! arrives in pieces of any size.

pub mod binary;
pub mod decode;
pub mod encode;
pub mod input;
