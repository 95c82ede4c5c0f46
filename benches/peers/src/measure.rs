//! Measurement of workloads: time, latency and bytes, and their output.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use crate::load::Random;

/// Latency histogram in nanoseconds: log-linear, with 32 buckets per octave.
#[derive(Clone)]
pub struct Latencies {
    counts: Vec<u64>,
    total: u64,
}

impl Latencies {
    pub fn new() -> Latencies {
        Latencies { counts: vec![0; 64 * 32], total: 0 }
    }

    pub fn add(&mut self, nanos: u64) {
        let nanos = nanos.max(32);
        let octave = 63 - nanos.leading_zeros() as usize;
        self.counts[(octave << 5) | ((nanos >> (octave - 5)) & 31) as usize] += 1;
        self.total += 1;
    }

    fn merge(&mut self, other: &Latencies) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        self.total += other.total;
    }

    /// Returns the latency in microseconds of a quantile.
    pub fn quantile(&self, quantile: f64) -> f64 {
        let wanted = (self.total as f64 * quantile) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen > wanted {
                let step = (32 + (index & 31)) as f64;
                return step * ((1u64 << (index >> 5)) as f64 / 32.0) / 1e3;
            }
        }
        0.0
    }
}

/// The measurement of a run of calls.
pub struct Timed {
    /// The sum of the results of the calls.
    pub operations: u64,
    /// From the first call to the last, in seconds.
    pub seconds: f64,
    /// Latencies of single calls.
    pub latencies: Latencies,
    /// CPU time of this process during the run, in seconds.
    pub cpu_seconds: f64,
}

/// End of a run.
#[derive(Clone, Copy)]
pub enum Until {
    /// After this number of calls on each thread.
    Calls(u64),
    /// After this number of seconds.
    Seconds(f64),
}

/// Runs `call(thread, number of the call, random)` on a number of threads.
pub fn timed(
    threads: usize,
    until: Until,
    call: impl Fn(usize, u64, &mut Random) -> u64 + Send + Sync,
) -> Timed {
    let (calls, limit) = match until {
        Until::Calls(calls) => (calls, Duration::MAX),
        Until::Seconds(seconds) => (u64::MAX, Duration::from_secs_f64(seconds)),
    };
    let stop = AtomicBool::new(false);
    let running = AtomicU64::new(threads as u64);
    let begin = Barrier::new(threads + 1);
    let work = &|thread: usize| {
        let mut random = Random::new(thread as u64 + 1);
        let mut latencies = Latencies::new();
        let mut operations = 0;
        begin.wait();
        let mut number = 0;
        while number < calls && !(number % 8 == 0 && stop.load(Relaxed)) {
            // Reading the clock costs as much as a fast call, so only one call in four is timed.
            if number % 4 == 0 {
                let began = Instant::now();
                operations += call(thread, number, &mut random);
                latencies.add(began.elapsed().as_nanos() as u64);
            } else {
                operations += call(thread, number, &mut random);
            }
            number += 1;
        }
        running.fetch_sub(1, Relaxed);
        (operations, latencies)
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        let cpu = cpu_seconds();
        begin.wait();
        let began = Instant::now();
        while running.load(Relaxed) > 0 && began.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Relaxed);
        let mut timed = Timed { operations: 0, seconds: 0.0, latencies: Latencies::new(), cpu_seconds: 0.0 };
        for handle in handles {
            let (operations, latencies) = handle.join().expect("a worker panicked");
            timed.operations += operations;
            timed.latencies.merge(&latencies);
        }
        timed.seconds = began.elapsed().as_secs_f64();
        timed.cpu_seconds = cpu_seconds() - cpu;
        timed
    })
}

/// Returns the user and system CPU time of this process.
pub fn cpu_seconds() -> f64 {
    // SAFETY: an rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole rusage of ours.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Returns the bytes that this process has caused to be written to disk.
pub fn bytes_written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Returns the bytes on disk below a directory.
pub fn disk_bytes(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

/// Drops the page cache of the files below a directory.
pub fn drop_page_cache(path: &Path) {
    use std::os::fd::AsRawFd;
    let Ok(entries) = std::fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        if entry.path().is_dir() {
            drop_page_cache(&entry.path());
        } else if let Ok(file) = std::fs::File::open(entry.path()) {
            // Dirty pages are not dropped.
            let _ = file.sync_all();
            // SAFETY: plain call with an open file.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        }
    }
}

/// Touches free memory of the machine, so that its pages are present. The host of a virtual machine
/// takes back pages that are free for seconds; the next access to such a page costs more than the
/// read of a block, and which store pays for it depends on the order of the stores.
pub fn touch_free_memory(bytes: usize) {
    const PAGE_BYTES: usize = 4096;
    // SAFETY: a mapping of its own, which is written within its length and then removed.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_WRITE, flags, -1, 0);
        assert!(start != libc::MAP_FAILED, "the machine has memory for the cache");
        libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
        for offset in (0..bytes).step_by(PAGE_BYTES) {
            start.cast::<u8>().add(offset).write_volatile(1);
        }
        libc::munmap(start, bytes);
    }
}

/// Prints the column headings.
pub fn print_heads() {
    println!(
        "{:<8} {:<22} {:>3} {:>3} {:>12} {:>9} {:>9} {:>5}  more",
        "store", "work", "thr", "rep", "ops/s", "p50 µs", "p99 µs", "cpu"
    );
}

/// Prints one line. `cpu` is the number of cores used by this process.
pub fn print_line(store: &str, work: &str, (threads, repetition): (usize, usize), timed: &Timed, more: &str) {
    let (p50, p99) = match timed.latencies.total {
        0 => ("-".to_owned(), "-".to_owned()),
        _ => (
            format!("{:.2}", timed.latencies.quantile(0.5)),
            format!("{:.2}", timed.latencies.quantile(0.99)),
        ),
    };
    let rate = timed.operations as f64 / timed.seconds;
    let cpu = timed.cpu_seconds / timed.seconds;
    println!(
        "{store:<8} {work:<22} {threads:>3} {repetition:>3} {rate:>12.0} {p50:>9} {p99:>9} {cpu:>5.2}  {more}"
    );
    let _ = std::io::stdout().flush();
}
