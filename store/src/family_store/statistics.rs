//! Statistics of flushes and compactions: write amplification and space amplification.

use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::family_store::CompactionOutcome;
use crate::run::{LiveFile, Run};

/// Statistics of flushes and compactions, of one store or summed over many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionStatistics {
    /// Bytes of files written by flushes since the start.
    pub flushed_bytes: u64,
    /// Bytes of files read by compactions since the start.
    pub compacted_in_bytes: u64,
    /// Bytes of files written by compactions since the start.
    pub compacted_out_bytes: u64,
    /// Cells read by compactions since the start.
    pub compacted_in_cells: u64,
    /// Number of successful compactions since the start.
    pub compactions: u64,
    /// Number of files removed without being read since the start, because all their cells had
    /// expired.
    pub expired_files: u64,
    /// Number of files moved to another level without being read since the start.
    pub moved_files: u64,
    /// Present number of store files.
    pub files: u64,
    /// Present number of sorted runs that a read may access, summed over stores.
    pub runs: u64,
    /// Present bytes of store files.
    pub file_bytes: u64,
    /// Estimate of the bytes after merging everything: those of the oldest file of each range of
    /// rows.
    pub live_bytes: u64,
}

impl CompactionStatistics {
    /// Returns the bytes written per flushed byte, including the flush. 1 if nothing was flushed.
    pub fn write_amplification(&self) -> f64 {
        if self.flushed_bytes == 0 {
            return 1.0;
        }
        1.0 + self.compacted_out_bytes as f64 / self.flushed_bytes as f64
    }

    /// Returns the bytes on disk per live byte, by estimate. 1 if there are none.
    pub fn space_amplification(&self) -> f64 {
        if self.live_bytes == 0 {
            return 1.0;
        }
        self.file_bytes as f64 / self.live_bytes as f64
    }
}

impl AddAssign for CompactionStatistics {
    fn add_assign(&mut self, other: CompactionStatistics) {
        self.flushed_bytes += other.flushed_bytes;
        self.compacted_in_bytes += other.compacted_in_bytes;
        self.compacted_out_bytes += other.compacted_out_bytes;
        self.compacted_in_cells += other.compacted_in_cells;
        self.compactions += other.compactions;
        self.expired_files += other.expired_files;
        self.moved_files += other.moved_files;
        self.files += other.files;
        self.runs += other.runs;
        self.file_bytes += other.file_bytes;
        self.live_bytes += other.live_bytes;
    }
}

/// Counters updated by flushes and compactions.
#[derive(Default)]
pub(super) struct Counters {
    flushed_bytes: AtomicU64,
    compacted_in_bytes: AtomicU64,
    compacted_out_bytes: AtomicU64,
    compacted_in_cells: AtomicU64,
    compactions: AtomicU64,
    expired_files: AtomicU64,
    moved_files: AtomicU64,
}

impl Counters {
    pub(super) fn flushed(&self, file: Option<&LiveFile>) {
        let bytes = file.map_or(0, |live| live.file.byte_count());
        self.flushed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn compacted(&self, outcome: &CompactionOutcome) {
        let add = |counter: &AtomicU64, count: u64| counter.fetch_add(count, Ordering::Relaxed);
        add(&self.compacted_in_bytes, outcome.bytes_in);
        add(&self.compacted_out_bytes, outcome.bytes_out);
        add(&self.compacted_in_cells, outcome.cells_in);
        add(&self.compactions, 1);
        let moved =
            outcome.outputs.iter().filter(|file| outcome.inputs.contains(&file.id)).count() as u64;
        add(&self.moved_files, moved);
        if outcome.outputs.is_empty() && outcome.bytes_in == 0 {
            add(&self.expired_files, outcome.inputs.len() as u64);
        }
    }

    pub(super) fn figures(&self, runs: &[Arc<Run>]) -> CompactionStatistics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CompactionStatistics {
            flushed_bytes: get(&self.flushed_bytes),
            compacted_in_bytes: get(&self.compacted_in_bytes),
            compacted_out_bytes: get(&self.compacted_out_bytes),
            compacted_in_cells: get(&self.compacted_in_cells),
            compactions: get(&self.compactions),
            expired_files: get(&self.expired_files),
            moved_files: get(&self.moved_files),
            files: runs.iter().map(|run| run.files().len() as u64).sum(),
            runs: runs.len() as u64,
            file_bytes: runs.iter().map(|run| run.byte_count()).sum(),
            live_bytes: live_bytes(runs),
        }
    }
}

/// Sums the files whose row range no older file overlaps.
fn live_bytes(runs: &[Arc<Run>]) -> u64 {
    let mut bytes = 0;
    for (index, run) in runs.iter().enumerate() {
        for live in run.files() {
            let properties = live.file.properties();
            let covered = runs[..index]
                .iter()
                .any(|older| older.has_rows_in(&properties.first_row, &properties.last_row));
            if !covered {
                bytes += live.file.byte_count();
            }
        }
    }
    bytes
}
