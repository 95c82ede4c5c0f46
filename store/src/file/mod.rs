//! Store files: immutable, sorted, checksummed. The byte format is in
//! `docs/formats/store-file.md`.
//!
//! ```text
//!   data, bloom and index blocks … | properties | trailer
//! ```
//!
//! Every byte of a file is covered by a CRC32C, and every read is checked, so damage is an
//! [`Error::Corrupt`](crate::Error::Corrupt) and never a wrong answer.

mod compression;
mod format;
mod piece_source;
mod encoding;
mod row_block;
mod row_slots;
mod columnar;
mod bloom;
mod index;
mod properties;
mod sink_threads;
mod sink;
mod writer;
mod tree;
mod reader;
mod index_cursor;
mod cursor;
mod plain_row;
mod half_file;
mod dump;
mod salvage;
pub(crate) mod fuzzing;

pub(crate) use bloom::{FilterResult, HashedRow};
pub use columnar::{ColumnSlice, VariableColumn};
pub(crate) use columnar::{Span, WantedColumns};
pub use cursor::FileCursor;
pub use dump::{DumpSpec, dump, verify};
pub(crate) use plain_row::{PlainBlock, PlainRow, RowSearchResult};
pub use properties::FileProperties;
pub use reader::{Caching, StoreFile};
pub(crate) use salvage::rescue;
pub use writer::FileWriter;
pub(crate) use writer::PendingFile;

#[cfg(test)]
mod tests;
