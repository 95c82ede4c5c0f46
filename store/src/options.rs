//! Settings of a store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a store. [`Options::default`] suits tests and small machines.
#[derive(Clone)]
pub struct Options {
    /// The memory budget, in bytes: about what the process takes. A quarter and 24 MiB are set
    /// aside, at most half; of the rest the block cache has 40 %, and memstores 40 %, until writers
    /// wait at 60 %. Open transactions count with the memstores, and may take 40 %.
    /// Default 512 MiB.
    pub memory_bytes: u64,
    /// Bytes of cells at which the memstores of one region are flushed. Default 64 MiB.
    pub memstore_flush_bytes: u64,
    /// Bytes of what a transaction has staged that stay in memory; what is more is written to files
    /// beside the regions' until the commit. `None`, the default: a tenth of what is shared out of
    /// [`Options::memory_bytes`].
    pub staged_bytes_max: Option<u64>,
    /// Bytes at which a log segment is closed and the next begun. Default 64 MiB.
    pub wal_segment_bytes: u64,
    /// Where segments of the log go that are not needed any more: another directory, on the same
    /// file system if they are not to be copied. Default `None`: they are removed.
    pub wal_archive: Option<PathBuf>,
    /// Threads that work on regions in parallel for one caller (endpoints, parallel scans).
    /// Default: the number of cores.
    pub region_threads: usize,
    /// Rows that one call of an endpoint reads before it answers and is called again; a slow one
    /// answers earlier. Default 262,144.
    pub endpoint_page_rows: u64,
    /// Rows that a caller reads by itself before region threads join in: what is shorter costs no
    /// other thread. Default 4,096: about what is read while a thread wakes up.
    pub parallel_after_rows: u64,
    /// Bytes of files after which a region is cut for threads that work on it side by side; a
    /// region has 64 pieces at most. Default 1 MiB: some milliseconds of work.
    pub parallel_piece_bytes: u64,
    /// Threads that flush memstores; apart from those that compact, so that no compaction delays a
    /// flush. Default 1: a flush is bound by one disk, and its length by the size of a memstore.
    pub flush_threads: usize,
    /// Bounds on compactions.
    pub compactions: CompactionLimits,
    /// How much is borne with coprocessors.
    pub coprocessors: CoprocessorLimits,
    /// How many statements work at a time.
    pub admission: AdmissionOptions,
    /// Age at which an open snapshot is closed, so that what only it can see need not be kept: its
    /// reads then fail with [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld). Looked at by
    /// flushes and compactions. Default: none.
    pub snapshot_age_max: Option<Duration>,
    /// Open snapshots at most; of more, the oldest are closed as above. Default: no limit.
    pub snapshot_count_max: Option<usize>,
    /// Called around every wait of a thread that may serve other clients; see [`BlockingSection`].
    pub blocking: Arc<dyn BlockingSection>,
    /// Files, clock and randomness.
    pub env: Arc<dyn crate::env::Env>,
}

/// Bounds on what compactions take from everything else.
#[derive(Debug, Clone)]
pub struct CompactionLimits {
    /// Compactions that run at a time. One that reads more than 20 flushes' worth never takes the
    /// last thread, if there are several. Default 2.
    pub threads: usize,
    /// Bytes a second that all compactions together may read. `None`, the default: no bound.
    pub throughput: Option<Throughput>,
    /// Hours in which more is merged at once, because nobody minds. Default: none.
    pub off_peak: Option<OffPeak>,
    /// How long a commit waits, at most, for compactions of a region that has too many files.
    /// Default 10 s.
    pub stall_max: Duration,
}

/// How much is borne with coprocessors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoprocessorLimits {
    /// Time that a hook may take for itself, by the clock; what the store does for it (reads,
    /// locks, added mutations) is not counted. Looked at when the hook has returned. Default 5 s;
    /// `None`: any.
    pub time: Option<Duration>,
    /// Failures in a row after which a coprocessor is suspended. Default 10.
    pub failures_max: u32,
}

impl Default for CoprocessorLimits {
    fn default() -> CoprocessorLimits {
        CoprocessorLimits { time: Some(Duration::from_secs(5)), failures_max: 10 }
    }
}

/// A bound that rises with need, from where no store has more files than a merge takes to where
/// one has nearly so many that writers wait; above it there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throughput {
    /// Bytes a second without need.
    pub low_bytes: u64,
    /// Bytes a second at the limit of files.
    pub high_bytes: u64,
}

/// Hours of the day by UTC, which may go past midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffPeak {
    /// The first, 0 to 23.
    pub start_hour: u8,
    /// The one after the last, 0 to 23.
    pub end_hour: u8,
}

impl Default for CompactionLimits {
    fn default() -> CompactionLimits {
        CompactionLimits {
            threads: 2,
            throughput: None,
            off_peak: None,
            stall_max: Duration::from_secs(10),
        }
    }
}

impl CompactionLimits {
    /// Returns whether a time, in microseconds since 1970, is in the off-peak hours.
    pub fn is_off_peak(&self, now_micros: i64) -> bool {
        let Some(OffPeak { start_hour, end_hour }) = self.off_peak else { return false };
        let (start, end) = (i64::from(start_hour), i64::from(end_hour));
        let hour = now_micros.div_euclid(3_600_000_000).rem_euclid(24);
        if start <= end { (start..end).contains(&hour) } else { hour >= start || hour < end }
    }
}

/// How many statements that take long work at a time: of those who take turns
/// ([`crate::admission`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionOptions {
    /// Threads of long statements that compute at a time, at least one. Default: one for each core.
    pub handlers: usize,
}

impl Default for AdmissionOptions {
    fn default() -> AdmissionOptions {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        AdmissionOptions { handlers: cores }
    }
}

/// Lets a program know that a thread of its own is about to wait (for a row lock, for memory), so
/// that it can do something else meanwhile.
pub trait BlockingSection: Send + Sync {
    /// Runs `wait`, which may block for long.
    fn run(&self, wait: &mut dyn FnMut());
}

/// Simply waits: for programs with a thread for each client.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainWait;

impl BlockingSection for PlainWait {
    fn run(&self, wait: &mut dyn FnMut()) {
        wait();
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            memory_bytes: 512 << 20,
            memstore_flush_bytes: 64 << 20,
            staged_bytes_max: None,
            wal_segment_bytes: 64 << 20,
            flush_threads: 1,
            compactions: CompactionLimits::default(),
            coprocessors: CoprocessorLimits::default(),
            admission: AdmissionOptions::default(),
            wal_archive: None,
            endpoint_page_rows: 256 << 10,
            parallel_after_rows: 4_096,
            parallel_piece_bytes: 1 << 20,
            region_threads: std::thread::available_parallelism().map_or(1, usize::from),
            snapshot_age_max: None,
            snapshot_count_max: None,
            blocking: Arc::new(PlainWait),
            env: Arc::new(crate::env::RealEnv::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_peak_hours_may_go_past_midnight() {
        let at = |hour: i64| hour * 3_600_000_000 + 1;
        let limits = |start_hour, end_hour| CompactionLimits {
            off_peak: Some(OffPeak { start_hour, end_hour }),
            ..CompactionLimits::default()
        };
        assert!(!CompactionLimits::default().is_off_peak(at(3)));
        assert!(limits(2, 5).is_off_peak(at(4)) && !limits(2, 5).is_off_peak(at(5)));
        assert!(limits(22, 2).is_off_peak(at(23)) && limits(22, 2).is_off_peak(at(25)));
        assert!(!limits(22, 2).is_off_peak(at(2)));
    }
}
