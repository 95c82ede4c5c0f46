//! Load statistics of a region: reads and writes, in total and per second.
//!
//! # Counters
//!
//! A get takes about a microsecond, so a counter shared by all threads would be noticeable.
//! Therefore each of the first threads that read or write has a separate line of counters in
//! every region, and updates it without a locked instruction; threads beyond that share the last
//! line.
//!
//! # Rates
//!
//! No thread samples the counters: each query updates the rates. With `d` seconds and `n` more
//! events since the last query, and τ = 60 s,
//!
//! ```text
//! keep   = exp(-d / τ)
//! mean   = keep * mean   + (1 - keep) * n / d
//! weight = keep * weight + (1 - keep)
//! rate   = mean / weight
//! ```
//!
//! starting at zero. An event a minute ago has about a third of the weight of a present one, and
//! the rate of a new region is not biased low. Under even load the frequency of queries makes no
//! difference; a change between two queries is spread evenly over the time between.
//!
//! # Invariants
//!
//! 1. A line except the last has one writer: the living thread that holds its number. A debug
//!    assertion at each count checks that the number is held.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Time constant τ of the rates.
const DECAY_SECONDS: f64 = 60.0;
/// Number of lines of a region; the last is shared.
const LINES: usize = 16;
const SHARED: usize = LINES - 1;
/// Number of counters of a line.
const COUNTERS: usize = 8;

/// Load statistics of a region.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LoadStatistics<T> {
    /// Gets, and scans that entered the region.
    pub read_requests: T,
    /// Rows returned.
    pub rows_read: T,
    /// Cells returned.
    pub cells_read: T,
    /// Bytes of keys and values returned; for columnar blocks the share of the stored block.
    pub bytes_read: T,
    /// Commits that wrote to the region.
    pub write_requests: T,
    /// Rows written.
    pub rows_written: T,
    /// Cells written.
    pub cells_written: T,
    /// Bytes of these cells in the log.
    pub bytes_written: T,
    /// Number of waits for row locks.
    pub lock_waits: T,
}

impl<T: Copy> LoadStatistics<T> {
    fn map<U>(&self, other: &LoadStatistics<T>, change: impl Fn(T, T) -> U) -> LoadStatistics<U> {
        LoadStatistics {
            read_requests: change(self.read_requests, other.read_requests),
            rows_read: change(self.rows_read, other.rows_read),
            cells_read: change(self.cells_read, other.cells_read),
            bytes_read: change(self.bytes_read, other.bytes_read),
            write_requests: change(self.write_requests, other.write_requests),
            rows_written: change(self.rows_written, other.rows_written),
            cells_written: change(self.cells_written, other.cells_written),
            bytes_written: change(self.bytes_written, other.bytes_written),
            lock_waits: change(self.lock_waits, other.lock_waits),
        }
    }
}

/// Volume of a read or write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Volume {
    /// Rows.
    pub(crate) rows: u64,
    /// Cells.
    pub(crate) cells: u64,
    /// Bytes.
    pub(crate) bytes: u64,
}

/// Load counters of a region.
pub(crate) struct LoadCounters {
    /// Allocated at the first count: most regions of a large catalog are idle.
    lines: OnceLock<Box<[Line; LINES]>>,
    lock_waits: AtomicU64,
    rates: Mutex<Rates>,
}

/// As long as a cache line, to avoid false sharing.
#[repr(align(64))]
#[derive(Default)]
struct Line([AtomicU64; COUNTERS]);

/// First counter of a direction in a line: requests, rows, cells, bytes.
#[derive(Clone, Copy)]
enum Direction {
    Read = 0,
    Write = 4,
}

impl LoadCounters {
    /// Returns counters at zero.
    pub(crate) fn new(now_micros: i64) -> LoadCounters {
        LoadCounters {
            lines: OnceLock::new(),
            lock_waits: AtomicU64::new(0),
            rates: Mutex::new(Rates { at_micros: now_micros, ..Rates::default() }),
        }
    }

    /// Counts a read by some requests.
    #[inline]
    pub(crate) fn read(&self, requests: u64, volume: Volume) {
        self.add(Direction::Read, requests, volume);
    }

    /// Counts the volume of a commit.
    pub(crate) fn wrote(&self, volume: Volume) {
        self.add(Direction::Write, 1, volume);
    }

    /// Counts a row lock that has to be waited for.
    pub(crate) fn lock_wait(&self) {
        self.lock_waits.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    fn add(&self, direction: Direction, requests: u64, Volume { rows, cells, bytes }: Volume) {
        let number = line_number();
        debug_assert!(
            number == SHARED || HELD.load(Ordering::Relaxed) & 1 << number != 0,
            "the thread does not hold its line"
        );
        let first = direction as usize;
        let counters = &self.lines.get_or_init(Box::default)[number].0[first..first + COUNTERS / 2];
        for (counter, amount) in counters.iter().zip([requests, rows, cells, bytes]) {
            if number == SHARED {
                counter.fetch_add(amount, Ordering::Relaxed);
            } else {
                // No other thread writes it.
                let count = counter.load(Ordering::Relaxed).wrapping_add(amount);
                counter.store(count, Ordering::Relaxed);
            }
        }
    }

    /// Returns the totals.
    pub(crate) fn totals(&self) -> LoadStatistics<u64> {
        let sum = |counter: usize| {
            let lines = self.lines.get().into_iter().flat_map(|lines| lines.iter());
            lines.map(|line| line.0[counter].load(Ordering::Relaxed)).sum()
        };
        let (read, write) = (Direction::Read as usize, Direction::Write as usize);
        LoadStatistics {
            read_requests: sum(read),
            rows_read: sum(read + 1),
            cells_read: sum(read + 2),
            bytes_read: sum(read + 3),
            write_requests: sum(write),
            rows_written: sum(write + 1),
            cells_written: sum(write + 2),
            bytes_written: sum(write + 3),
            lock_waits: self.lock_waits.load(Ordering::Relaxed),
        }
    }

    /// Returns the totals, and the decayed rates per second.
    pub(crate) fn totals_and_rates(
        &self,
        now_micros: i64,
    ) -> (LoadStatistics<u64>, LoadStatistics<f64>) {
        let mut rates = self.rates.lock();
        let totals = self.totals();
        (totals, rates.look(totals, now_micros))
    }
}

/// The rates at the last query.
#[derive(Default)]
struct Rates {
    at_micros: i64,
    totals: LoadStatistics<u64>,
    mean: LoadStatistics<f64>,
    weight: f64,
}

impl Rates {
    fn look(&mut self, totals: LoadStatistics<u64>, now_micros: i64) -> LoadStatistics<f64> {
        let seconds = now_micros.saturating_sub(self.at_micros) as f64 / 1e6;
        // A clock that was set back gives no interval; the next one starts there.
        if seconds > 0.0 {
            let keep = (-seconds / DECAY_SECONDS).exp();
            let new = totals.map(&self.totals, |now, before| {
                (1.0 - keep) * now.wrapping_sub(before) as f64 / seconds
            });
            self.mean = self.mean.map(&new, |mean, new| keep * mean + new);
            self.weight = keep * self.weight + (1.0 - keep);
            self.totals = totals;
        }
        self.at_micros = now_micros;
        let weight = if self.weight > 0.0 { self.weight } else { 1.0 };
        self.mean.map(&self.mean, |mean, _| mean / weight)
    }
}

/// Numbers held by threads, a bit each.
static HELD: AtomicU32 = AtomicU32::new(0);

/// A thread's number, released when the thread ends.
struct LineNumber(usize);

thread_local! {
    static LINE: LineNumber = LineNumber::take();
}

impl LineNumber {
    fn take() -> LineNumber {
        let mut held = HELD.load(Ordering::Relaxed);
        loop {
            let number = held.trailing_ones() as usize;
            if number >= SHARED {
                return LineNumber(SHARED);
            }
            // The counts of the number's previous thread are visible to the new one.
            let (taken, order) = (held | 1 << number, Ordering::Acquire);
            match HELD.compare_exchange_weak(held, taken, order, Ordering::Relaxed) {
                Ok(_) => return LineNumber(number),
                Err(now) => held = now,
            }
        }
    }
}

impl Drop for LineNumber {
    fn drop(&mut self) {
        if self.0 < SHARED {
            let held = HELD.fetch_and(!(1 << self.0), Ordering::Release);
            debug_assert!(held & 1 << self.0 != 0, "a line is released twice");
        }
    }
}

#[inline]
fn line_number() -> usize {
    // A thread that is ending has released its number already.
    LINE.try_with(|line| line.0).unwrap_or(SHARED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn volume(rows: u64) -> Volume {
        Volume { rows, cells: 2 * rows, bytes: 10 * rows }
    }

    #[test]
    fn load_counters_are_exact_across_threads() {
        let counters = LoadCounters::new(0);
        // More threads than lines, some one after the other.
        for _ in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..2 * LINES {
                    scope.spawn(|| {
                        for _ in 0..1_000 {
                            counters.read(1, volume(2));
                            counters.wrote(volume(3));
                        }
                        counters.lock_wait();
                    });
                }
            });
        }
        let calls = 3 * 2 * LINES as u64 * 1_000;
        let totals = counters.totals();
        assert_eq!((totals.read_requests, totals.write_requests), (calls, calls));
        assert_eq!((totals.rows_read, totals.cells_read), (2 * calls, 4 * calls));
        assert_eq!((totals.bytes_read, totals.rows_written), (20 * calls, 3 * calls));
        assert_eq!((totals.cells_written, totals.bytes_written), (6 * calls, 30 * calls));
        assert_eq!(totals.lock_waits, 3 * 2 * LINES as u64);
    }

    #[test]
    fn constant_load_rate_is_independent_of_sampling_interval() {
        for step in [1, 7, 250] {
            let counters = LoadCounters::new(5);
            let mut now = 5;
            for _ in 0..4 {
                now += step * SECOND;
                (0..step).for_each(|_| counters.read(3, volume(30)));
                let (_, rates) = counters.totals_and_rates(now);
                assert!((rates.read_requests - 3.0).abs() < 1e-9, "{rates:?}");
                assert!((rates.bytes_read - 300.0).abs() < 1e-6, "{rates:?}");
                assert_eq!(rates.rows_written, 0.0);
            }
        }
    }

    #[test]
    fn load_rate_decays_when_idle() {
        let counters = LoadCounters::new(0);
        counters.wrote(volume(600));
        let (_, rates) = counters.totals_and_rates(600 * SECOND);
        let before = rates.rows_written;
        assert!((before - 1.0).abs() < 1e-9);
        let (totals, rates) = counters.totals_and_rates(660 * SECOND);
        assert_eq!(totals.rows_written, 600);
        assert!((rates.rows_written / before - (-1.0f64).exp()).abs() < 1e-3, "{rates:?}");
        let (_, same) = counters.totals_and_rates(660 * SECOND);
        assert_eq!(same, rates, "a second look at the same time changes nothing");
        let (_, back) = counters.totals_and_rates(600 * SECOND);
        assert_eq!(back, rates, "nor does a clock that was set back");
    }
}
