//! Settings of a store.

use std::sync::Arc;

/// Settings of a store. [`Options::default`] suits tests and small machines.
#[derive(Clone)]
pub struct Options {
    /// The memory budget, in bytes: memstores 40 %, block cache 40 %. Default 512 MiB.
    pub memory_bytes: u64,
    /// Bytes of cells at which the memstores of one region are flushed. Default 64 MiB.
    pub memstore_flush_bytes: u64,
    /// Bytes at which a log segment is closed and the next begun. Default 64 MiB.
    pub wal_segment_bytes: u64,
    /// Threads that work on regions in parallel for one caller (endpoints, parallel scans).
    /// Default: the number of cores.
    pub region_threads: usize,
    /// Called around every wait of a thread that may serve other clients; see [`BlockingSection`].
    pub blocking: Arc<dyn BlockingSection>,
    /// Files, clock and randomness.
    pub env: Arc<dyn crate::env::Env>,
}

/// Lets a server know that its thread is about to wait (for a row lock, for memory), so that it can
/// move its other clients to another thread.
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
            wal_segment_bytes: 64 << 20,
            region_threads: std::thread::available_parallelism().map_or(1, usize::from),
            blocking: Arc::new(PlainWait),
            env: Arc::new(crate::env::RealEnv::default()),
        }
    }
}
