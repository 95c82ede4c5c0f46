//! Columnar blocks: the keys of the cells together, then each section of their values separately.
//!
//! ```text
//!   head | directory | layout | rows | qualifiers | timestamps | sequences | types | shapes
//!        | whole values | section 0 | section 1 | …
//! ```
//!
//! The family's [`ValueLayout`](crate::layout::ValueLayout) defines the sections of values. Every
//! section has an entry for every cell, so that cell `i` is entry `i` everywhere: in a fixed
//! section at `i * width`. A marker, or a value that matches no shape of the layout, is stored
//! whole and has zeros and empty strings in the sections.
//!
//! The block begins with its *front*: head, directory, keys, small sections, and the tables of
//! large ones, with a checksum of their own. Behind it are pieces, each with its checksum: a
//! section, or a chunk of some rows of a large one. So a get reads the front and the pieces that
//! have its row, and a scan the sections that it needs. The cache holds the front, together with
//! the opened pieces. The byte format is in `docs/formats/columnar-block.md`.
//!
//! # Invariants
//!
//! 1. A block that is *plain* has only puts of different rows, all of one qualifier, and no value
//!    that is stored whole: [`ColumnSlice`] requires this.
//! 2. All parts have as many entries as the block has cells.
//!
//! The builder asserts both before a block is written. The reader of a part checks 2 and rejects
//! the block otherwise.
//!
//! The builder is in [`builder`], the directory in [`directory`], the cached form of a block in
//! [`block`], reading by cell in [`cursor`], reading by column in [`mod@slice`], one row of a
//! plain block in [`plain_row`], and the encodings of parts in [`numbers`] and [`strings`].

mod numbers;
mod strings;
mod directory;
mod block;
mod builder;
mod cursor;
mod slice;
mod plain_row;

use crate::file::encoding::Malformed;

pub(super) use block::{ColumnarBlock, KnownLayout, prepare};
pub(super) use builder::ColumnarBuilder;
pub(super) use builder::front_bytes;
pub(super) use cursor::{ColumnarCursor, WalkBackOutcome};
pub(crate) use cursor::{Span, WantedColumns};
pub(super) use plain_row::RowSearch;
pub use slice::{ColumnSlice, VariableColumn};

/// Maximal number of cells of a block.
const CELLS_MAX: usize = 1 << 16;
/// Offset of the length of the front.
const FRONT_LENGTH_AT: usize = 4 + 2 + 1 + 1 + 8 + 8 + 8;
/// Bytes before the directory, which end with the length of the front, and zeros.
const HEAD_BYTES: usize = FRONT_LENGTH_AT + 4 + 4;
/// Bytes of a directory entry.
const ENTRY_BYTES: usize = 4 + 4 + 4 + 1 + 1 + 2;
/// Flag of a plain block.
const PLAIN: u8 = 1;

// Numbers of the parts.
const LAYOUT: usize = 0;
const ROWS: usize = 1;
const QUALIFIERS: usize = 2;
const TIMESTAMPS: usize = 3;
const SEQUENCES: usize = 4;
const TYPES: usize = 5;
const SHAPES: usize = 6;
const WHOLE: usize = 7;
const FIRST_SECTION: usize = 8;

/// Storage of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    Plain = 0,
    Lz4 = 1,
    Zstd = 2,
    /// One entry, which is repeated.
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
