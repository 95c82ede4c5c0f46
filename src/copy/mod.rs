//! COPY data: encoders and decoders of PostgreSQL's text, CSV and binary formats.
//!
//! The modules convert between fields and a stream of bytes that arrives in chunks of any size.
//! Rows and types belong to the SQL layer.

pub mod binary;
pub mod decode;
pub mod encode;
pub mod input;
