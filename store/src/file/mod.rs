//! Store files: immutable, sorted, checksummed. Byte by byte: `docs/formats/store-file.md`.
//!
//! ```text
//!   data and bloom blocks … | data index | bloom index | properties | trailer
//! ```
//!
//! Every byte of a file is under a CRC32C, and every read is checked, so damage is an
//! [`Error::Corrupt`](crate::Error::Corrupt) and never a wrong answer.

mod format;
mod encoding;
mod row_block;
mod columnar;
mod bloom;
mod index;
mod writer;
mod reader;

pub use format::FileProperties;
pub use reader::{Caching, FileCursor, StoreFile};
pub use writer::FileWriter;

#[cfg(test)]
mod tests;
