//! Read statistics of a thread: cells, blocks and files, counted as they are read or skipped.
//!
//! A thread's counters only grow; to measure a portion of work, take the difference of two calls
//! ([`read_figures`]). Reads of other threads on behalf of a caller, in [`read_ahead`], are added
//! to the caller's counters when it takes the results. RocksDB's perf context is similar.
//!
//! [`read_by_region`] also collects statistics for each region; without it, these cost only the
//! check of a flag.
//!
//! [`read_ahead`]: crate::read_ahead

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::{Add, Sub};
use std::time::{Duration, Instant};

use crate::descriptor::RegionId;
use crate::env::process::monotonic_now;

/// Cost of reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadStatistics {
    /// Cells returned by scans and gets, from memory or files.
    pub cells: u64,
    /// Blocks of store files found in the cache.
    pub blocks_cached: u64,
    /// Blocks read from files.
    pub blocks_read: u64,
    /// Files skipped because of their Bloom filter.
    pub files_without_row: u64,
    /// Files skipped because all of their cells are too old, or too new.
    pub files_of_other_times: u64,
}

impl Add for ReadStatistics {
    type Output = ReadStatistics;

    fn add(self, other: ReadStatistics) -> ReadStatistics {
        ReadStatistics {
            cells: self.cells + other.cells,
            blocks_cached: self.blocks_cached + other.blocks_cached,
            blocks_read: self.blocks_read + other.blocks_read,
            files_without_row: self.files_without_row + other.files_without_row,
            files_of_other_times: self.files_of_other_times + other.files_of_other_times,
        }
    }
}

impl Sub for ReadStatistics {
    type Output = ReadStatistics;

    /// Returns the difference to `other`.
    fn sub(self, other: ReadStatistics) -> ReadStatistics {
        ReadStatistics {
            cells: self.cells - other.cells,
            blocks_cached: self.blocks_cached - other.blocks_cached,
            blocks_read: self.blocks_read - other.blocks_read,
            files_without_row: self.files_without_row - other.files_without_row,
            files_of_other_times: self.files_of_other_times - other.files_of_other_times,
        }
    }
}

thread_local! {
    static FIGURES: Cell<ReadStatistics> = const {
        Cell::new(ReadStatistics {
            cells: 0,
            blocks_cached: 0,
            blocks_read: 0,
            files_without_row: 0,
            files_of_other_times: 0,
        })
    };
}

/// Returns the cost of this thread's reads so far.
pub fn read_figures() -> ReadStatistics {
    FIGURES.get()
}

/// Adds to the cost of this thread's reads.
pub(crate) fn add_read_figures(more: ReadStatistics) {
    FIGURES.set(FIGURES.get() + more);
}

/// Updates the counters.
pub(crate) fn note_read(note: impl FnOnce(&mut ReadStatistics)) {
    let mut figures = FIGURES.get();
    note(&mut figures);
    FIGURES.set(figures);
}

/// Reads of one region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionReadStatistics {
    /// Number of gets, and of scans that entered the region.
    pub requests: u64,
    /// Number of rows returned.
    pub rows: u64,
    /// Bytes returned: of keys and values, or of the blocks whose columns were read.
    pub bytes: u64,
    /// Cost of the reads.
    pub reads: ReadStatistics,
    /// Sum of the threads' time in reads, without the processing of the rows.
    pub time: Duration,
}

/// Reads of regions, by region.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegionReads(pub BTreeMap<RegionId, RegionReadStatistics>);

impl RegionReads {
    fn add(&mut self, region: RegionId, more: RegionReadStatistics) {
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
    /// `None` unless statistics by region are collected.
    static BY_REGION: RefCell<Option<RegionReads>> = const { RefCell::new(None) };
}

/// Runs `work` and returns its result with the reads of each region, by this thread and by those
/// that read for it.
pub fn read_by_region<T>(work: impl FnOnce() -> T) -> (T, RegionReads) {
    let outer = BY_REGION.replace(Some(RegionReads::default()));
    let result = work();
    let found = BY_REGION.replace(outer).unwrap_or_default();
    add_region_reads(&found);
    (result, found)
}

/// Returns whether this thread collects statistics by region.
pub(crate) fn is_read_by_region() -> bool {
    BY_REGION.with_borrow(Option::is_some)
}

/// Adds the reads of other threads on behalf of this one, if statistics by region are collected.
pub(crate) fn add_region_reads(more: &RegionReads) {
    BY_REGION.with_borrow_mut(|regions| {
        if let Some(regions) = regions {
            regions.merge(more);
        }
    });
}

/// The start of a portion of work in one region, if statistics by region are collected.
#[derive(Clone, Copy)]
pub(crate) struct RegionMark(Option<(Instant, ReadStatistics)>);

impl RegionMark {
    /// Marks the present moment.
    #[inline]
    pub(crate) fn now() -> RegionMark {
        RegionMark(is_read_by_region().then(|| (monotonic_now(), read_figures())))
    }

    /// Adds the requests, rows and bytes that the region returned since, and their cost.
    #[inline]
    pub(crate) fn note(self, region: RegionId, given: RegionReadStatistics) {
        let Some((began, before)) = self.0 else { return };
        let reads = read_figures() - before;
        let more = RegionReadStatistics { reads, time: began.elapsed(), ..given };
        BY_REGION.with_borrow_mut(|regions| {
            if let Some(regions) = regions {
                regions.add(region, more);
            }
        });
    }
}
