//! What reads have cost this thread: cells, blocks and files, counted as they are read or left out.
//!
//! A thread's figures only grow; whoever wants to know what a piece of work cost takes them before
//! and after it ([`read_figures`]). What other threads read for a caller, in [`read_ahead`], is
//! added to the caller's figures when it takes the results. RocksDB's perf context is of this kind.
//!
//! [`read_ahead`]: crate::read_ahead

use std::cell::Cell;
use std::ops::{Add, Sub};

/// What reads have cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadFigures {
    /// Cells that scans and gets have given, out of memory or files.
    pub cells: u64,
    /// Blocks of store files that were in the cache.
    pub blocks_cached: u64,
    /// Blocks that were read from files.
    pub blocks_read: u64,
    /// Files that their filter has kept from being read.
    pub files_without_row: u64,
    /// Files that were left out because all of their cells are too old, or too new.
    pub files_of_other_times: u64,
}

impl Add for ReadFigures {
    type Output = ReadFigures;

    fn add(self, other: ReadFigures) -> ReadFigures {
        ReadFigures {
            cells: self.cells + other.cells,
            blocks_cached: self.blocks_cached + other.blocks_cached,
            blocks_read: self.blocks_read + other.blocks_read,
            files_without_row: self.files_without_row + other.files_without_row,
            files_of_other_times: self.files_of_other_times + other.files_of_other_times,
        }
    }
}

impl Sub for ReadFigures {
    type Output = ReadFigures;

    /// What was added since `other`.
    fn sub(self, other: ReadFigures) -> ReadFigures {
        ReadFigures {
            cells: self.cells - other.cells,
            blocks_cached: self.blocks_cached - other.blocks_cached,
            blocks_read: self.blocks_read - other.blocks_read,
            files_without_row: self.files_without_row - other.files_without_row,
            files_of_other_times: self.files_of_other_times - other.files_of_other_times,
        }
    }
}

thread_local! {
    static FIGURES: Cell<ReadFigures> = const {
        Cell::new(ReadFigures {
            cells: 0,
            blocks_cached: 0,
            blocks_read: 0,
            files_without_row: 0,
            files_of_other_times: 0,
        })
    };
}

/// Returns what reads have cost this thread until now.
pub fn read_figures() -> ReadFigures {
    FIGURES.get()
}

/// Adds to what reads have cost this thread.
pub(crate) fn add_read_figures(more: ReadFigures) {
    FIGURES.set(FIGURES.get() + more);
}

/// Counts something.
pub(crate) fn note_read(note: impl FnOnce(&mut ReadFigures)) {
    let mut figures = FIGURES.get();
    note(&mut figures);
    FIGURES.set(figures);
}
