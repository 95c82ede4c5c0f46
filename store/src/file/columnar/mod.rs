//! Columnar blocks: the keys of some cells together, then each section of their values apart.
//!
//! ```text
//!   head | directory | layout | rows | qualifiers | timestamps | sequences | types | shapes
//!        | whole values | section 0 | section 1 | …
//! ```
//!
//! How values are cut is the family's [`ValueLayout`](crate::layout::ValueLayout). Every section
//! has an entry for every cell, so that cell `i` is entry `i` everywhere: of a fixed section that
//! is `i * width`. A marker, or a value that follows no shape of the layout, is kept whole and has
//! zeros and nothing in the sections.
//!
//! The block begins with its *front*: head, directory, keys, small sections, and the tables of
//! large ones, under a checksum of their own. Behind it come pieces, each with its checksum: a
//! section, or a chunk of some rows of a large one. So a get reads the front and the pieces that
//! have its row, and a scan the sections that it wants. The cache holds the front, and with it
//! what was opened. Blocks of files of version 2 have no front and are read whole.
//! Byte by byte: `docs/formats/store-file.md`.
//!
//! # Invariants
//!
//! 1. A block that is *plain* has only puts of different rows, all of one qualifier, and no value
//!    that is kept whole: what [`ColumnSlice`] can hand out.
//! 2. All parts have as many entries as the block has cells.
//!
//! The builder is in [`builder`], what the directory says in [`directory`], a block as the cache
//! holds it in [`block`], reading cell by cell in [`cursor`], reading whole columns in
//! [`mod@slice`], one row of a plain block in [`plain_row`], and what parts are made of in
//! [`numbers`] and [`strings`].

mod numbers;
mod strings;
mod directory;
mod block;
mod builder;
mod cursor;
mod slice;
mod plain_row;

use crate::file::encoding::Malformed;

pub(super) use block::{ColumnarBlock, Division, KnownLayout, prepare};
pub(super) use builder::ColumnarBuilder;
pub(super) use builder::front_bytes;
pub(super) use cursor::{ColumnarCursor, WalkedBack};
pub(crate) use cursor::{Span, WantedColumns};
pub(super) use plain_row::RowSearch;
pub use slice::{ColumnSlice, VariableColumn};

/// Cells of a block at most.
const CELLS_MAX: usize = 1 << 16;
/// Bytes before the directory of a block without a front.
const WHOLE_HEAD_BYTES: usize = 4 + 2 + 1 + 1 + 8 + 8 + 8;
/// Bytes before the directory: after the same, those of the front, and zeros.
const HEAD_BYTES: usize = WHOLE_HEAD_BYTES + 4 + 4;
/// Bytes of a part in the directory of a block without a front.
const WHOLE_ENTRY_BYTES: usize = 4 + 4 + 1;
/// Bytes of a part in the directory.
const ENTRY_BYTES: usize = 4 + 4 + 4 + 1 + 1 + 2;
/// The block is plain.
const PLAIN: u8 = 1;

// The parts by number.
const LAYOUT: usize = 0;
const ROWS: usize = 1;
const QUALIFIERS: usize = 2;
const TIMESTAMPS: usize = 3;
const SEQUENCES: usize = 4;
const TYPES: usize = 5;
const SHAPES: usize = 6;
const WHOLE: usize = 7;
const FIRST_SECTION: usize = 8;

/// How a part is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    Plain = 0,
    Lz4 = 1,
    Zstd = 2,
    /// The stored bytes again and again.
    Repeated = 3,
    /// In chunks; the stored bytes are their table.
    Chunks = 4,
}

impl Storage {
    fn of(code: u8) -> Option<Storage> {
        Some(match code {
            0 => Storage::Plain,
            1 => Storage::Lz4,
            2 => Storage::Zstd,
            3 => Storage::Repeated,
            4 => Storage::Chunks,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
