//! Settings of a store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a store. [`Options::default`] suits tests and small machines.
#[derive(Clone)]
pub struct Options {
    /// The memory budget, in bytes: approximately the size of the process. A quarter and 24 MiB
    /// are reserved, at most half; of the rest the block cache has 40 %, and memstores 40 %,
    /// until writers wait at 60 %. Open transactions count with the memstores, and may take 40 %.
    /// Default 512 MiB.
    pub memory_bytes: u64,
    /// Bytes of cells at which the memstores of one region are flushed. Default 64 MiB.
    pub memstore_flush_bytes: u64,
    /// Staged bytes of a transaction that stay in memory; more are spilled to files next to the
    /// regions' until the commit. `None`, the default: a tenth of the shared part of
    /// [`Options::memory_bytes`].
    pub staged_bytes_max: Option<u64>,
    /// Size at which a log segment is closed and the next one started. Default 64 MiB.
    pub wal_segment_bytes: u64,
    /// Directory to which obsolete log segments are moved, on the same file system unless they
    /// are to be copied. Default `None`: they are removed.
    pub wal_archive: Option<PathBuf>,
    /// Threads that work on regions in parallel for one caller (endpoints, parallel scans).
    /// Default: the number of cores.
    pub region_threads: usize,
    /// Rows that one call of an endpoint reads before it returns and is called again; a slow one
    /// returns earlier. Default 262,144.
    pub endpoint_page_rows: u64,
    /// Rows that a caller reads alone before region threads join: shorter reads use no other
    /// thread. Default 4,096: about the number read while a thread wakes up.
    pub parallel_after_rows: u64,
    /// Bytes of files per scan partition of a region that threads read in parallel; a region has
    /// at most 64 partitions. Default 1 MiB: some milliseconds of work.
    pub parallel_piece_bytes: u64,
    /// Threads that flush memstores, separate from compaction threads, so that no compaction
    /// delays a flush. Default 1: a flush is bound by one disk, and its duration by the size of a
    /// memstore.
    pub flush_threads: usize,
    /// Limits of compactions.
    pub compactions: CompactionLimits,
    /// Limits of coprocessors.
    pub coprocessors: CoprocessorLimits,
    /// Limits of concurrent long statements.
    pub admission: AdmissionOptions,
    /// Age at which an open snapshot is closed, so that versions visible only to it can be
    /// dropped: its reads then fail with [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld).
    /// Checked by flushes and compactions. Default: none.
    pub snapshot_age_max: Option<Duration>,
    /// Maximal number of open snapshots; beyond it, the oldest are closed as above. Default: no
    /// limit.
    pub snapshot_count_max: Option<usize>,
    /// Retains all versions that were found at the opening, until
    /// [`Store::release_recovered_versions`](crate::Store::release_recovered_versions): the caller
    /// opens views at commits before the opening. Default: false.
    pub holds_recovered_versions: bool,
    /// Age from which the normaliser merges a region. Default 3 days: HBase's.
    pub normalizer_min_age: Duration,
    /// Called around every wait of a thread that may serve other clients; see [`BlockingSection`].
    pub blocking: Arc<dyn BlockingSection>,
    /// Files, clock and randomness.
    pub env: Arc<dyn crate::env::Env>,
}

/// Limits of the resources that compactions take.
#[derive(Debug, Clone)]
pub struct CompactionLimits {
    /// Number of concurrent compactions. One that reads more than 20 flushes' worth never takes
    /// the last thread, if there are several. Default 2.
    pub threads: usize,
    /// Limit of bytes per second that all compactions together read. `None`, the default: no
    /// limit.
    pub throughput: Option<Throughput>,
    /// Hours of low load, in which compactions may be larger. Default: none.
    pub off_peak: Option<OffPeak>,
    /// Maximal time that a commit waits for compactions of a region that has too many files.
    /// Default 10 s.
    pub stall_max: Duration,
}

/// Limits of coprocessors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoprocessorLimits {
    /// Time limit of a hook's own code, by the wall clock; the store's work on its behalf (reads,
    /// locks, added mutations) is not counted. Checked when the hook has returned. Default 5 s;
    /// `None`: no limit.
    pub time: Option<Duration>,
    /// Number of consecutive failures after which a coprocessor is suspended. Default 10.
    pub failures_max: u32,
}

impl Default for CoprocessorLimits {
    fn default() -> CoprocessorLimits {
        CoprocessorLimits { time: Some(Duration::from_secs(5)), failures_max: 10 }
    }
}

/// A throughput limit that rises with the number of files, from the number at which a merge is
/// selected to nearly the number at which writers wait; above that there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throughput {
    /// Bytes per second without pressure.
    pub low_bytes: u64,
    /// Bytes per second at the limit of files.
    pub high_bytes: u64,
}

/// Hours of the day in UTC, which may extend past midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffPeak {
    /// The first hour, 0 to 23.
    pub start_hour: u8,
    /// The hour after the last, 0 to 23.
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

/// Limits of concurrent long statements, which need execution slots ([`crate::admission`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionOptions {
    /// Number of threads of long statements that compute concurrently, at least one. Default: the
    /// number of cores.
    pub handlers: usize,
}

impl Default for AdmissionOptions {
    fn default() -> AdmissionOptions {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        AdmissionOptions { handlers: cores }
    }
}

/// Notifies a program that one of its threads is about to wait (for a row lock, for memory), so
/// that it can use the core otherwise.
pub trait BlockingSection: Send + Sync {
    /// Runs `wait`, which may block for a long time.
    fn run(&self, wait: &mut dyn FnMut());
}

/// Waits without further action: for programs with a thread per client.
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
            holds_recovered_versions: false,
            normalizer_min_age: Duration::from_secs(3 * 24 * 3600),
            blocking: Arc::new(PlainWait),
            env: Arc::new(crate::env::RealEnv::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_peak_hours_may_span_midnight() {
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
