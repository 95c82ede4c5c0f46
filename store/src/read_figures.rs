//! What reads have cost this thread: cells, blocks and files, counted as they are read or left out.
//!
//! A thread's figures only grow; whoever wants to know what a piece of work cost takes them before
//! and after it ([`read_figures`]). What other threads read for a caller, in [`read_ahead`], is
//! added to the caller's figures when it takes the results. RocksDB's perf context is of this kind.
//!
//! Who asks for it ([`read_by_region`]) hears what each region gave, too; nobody else pays for that
//! more than a look whether somebody asks.
//!
//! [`read_ahead`]: crate::read_ahead

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::{Add, Sub};
use std::time::{Duration, Instant};

use crate::descriptor::RegionId;

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

/// What a region has given to reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionFigures {
    /// Gets, and scans that came into it.
    pub requests: u64,
    /// Rows that they returned.
    pub rows: u64,
    /// Their bytes: of keys and values, or of the blocks whose columns were read.
    pub bytes: u64,
    /// What reading them cost.
    pub reads: ReadFigures,
    /// How long threads read, together; what is done with the rows is not part of it.
    pub time: Duration,
}

/// What regions have given, by their number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegionReads(pub BTreeMap<RegionId, RegionFigures>);

impl RegionReads {
    fn add(&mut self, region: RegionId, more: RegionFigures) {
        let figures = self.0.entry(region).or_default();
        figures.requests += more.requests;
        figures.rows += more.rows;
        figures.bytes += more.bytes;
        figures.reads = figures.reads + more.reads;
        figures.time += more.time;
    }

    pub(crate) fn merge(&mut self, more: &RegionReads) {
        more.0.iter().for_each(|(&region, &figures)| self.add(region, figures));
    }
}

thread_local! {
    /// If anybody asks.
    static BY_REGION: RefCell<Option<RegionReads>> = const { RefCell::new(None) };
}

/// Does some work and returns with its result what regions have given to it, on this thread and on
/// those that read for it.
pub fn read_by_region<T>(work: impl FnOnce() -> T) -> (T, RegionReads) {
    let outer = BY_REGION.replace(Some(RegionReads::default()));
    let result = work();
    let found = BY_REGION.replace(outer).unwrap_or_default();
    add_region_reads(&found);
    (result, found)
}

/// Returns whether somebody asks what regions give to this thread.
pub(crate) fn is_read_by_region() -> bool {
    BY_REGION.with_borrow(Option::is_some)
}

/// Adds what regions have given to others who read for this thread, if anybody asks.
pub(crate) fn add_region_reads(more: &RegionReads) {
    BY_REGION.with_borrow_mut(|regions| {
        if let Some(regions) = regions {
            regions.merge(more);
        }
    });
}

/// The beginning of a piece of work in one region, if anybody asks what regions give.
#[derive(Clone, Copy)]
pub(crate) struct RegionMark(Option<(Instant, ReadFigures)>);

impl RegionMark {
    /// Marks this moment.
    #[inline]
    pub(crate) fn now() -> RegionMark {
        RegionMark(is_read_by_region().then(|| (Instant::now(), read_figures())))
    }

    /// Counts the requests, rows and bytes that the region gave since, and what they cost.
    #[inline]
    pub(crate) fn note(self, region: RegionId, given: RegionFigures) {
        let Some((began, before)) = self.0 else { return };
        let reads = read_figures() - before;
        let more = RegionFigures { reads, time: began.elapsed(), ..given };
        BY_REGION.with_borrow_mut(|regions| {
            if let Some(regions) = regions {
                regions.add(region, more);
            }
        });
    }
}
