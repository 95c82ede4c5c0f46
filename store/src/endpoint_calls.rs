//! Registry of running endpoint calls, with their progress.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::descriptor::TableId;

/// A running endpoint call, for system views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointCallStatus {
    /// Number of the call in the process.
    pub call: u64,
    /// The table.
    pub table: TableId,
    /// The endpoint.
    pub endpoint: String,
    /// Id of the calling transaction.
    pub transaction: u64,
    /// Start time: microseconds since 1970.
    pub started_micros: i64,
    /// Rows read so far.
    pub rows: u64,
    /// Answers so far.
    pub pages: u64,
    /// Number of completed regions, as of the start of the call.
    pub regions_done: u64,
    /// Number of regions involved, as of the start of the call.
    pub regions: u64,
}

/// Registry of running calls.
#[derive(Default)]
pub(crate) struct EndpointCalls {
    next: AtomicU64,
    running: Mutex<BTreeMap<u64, Arc<CallProgress>>>,
}

/// Progress of a call.
pub(crate) struct CallProgress {
    begun: EndpointCallStatus,
    rows: AtomicU64,
    pages: AtomicU64,
    regions_done: AtomicU64,
}

/// A running call; dropping it removes the entry.
pub(crate) struct RunningCall {
    calls: Arc<EndpointCalls>,
    progress: Arc<CallProgress>,
}

impl EndpointCalls {
    /// Registers a call, and fills in its number and counters.
    pub(crate) fn begin(self: &Arc<EndpointCalls>, begun: EndpointCallStatus) -> RunningCall {
        let call = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let progress = Arc::new(CallProgress {
            begun: EndpointCallStatus { call, ..begun },
            rows: AtomicU64::new(0),
            pages: AtomicU64::new(0),
            regions_done: AtomicU64::new(0),
        });
        self.running.lock().insert(call, Arc::clone(&progress));
        RunningCall { calls: Arc::clone(self), progress }
    }

    /// Returns the running calls, the oldest first.
    pub(crate) fn status(&self) -> Vec<EndpointCallStatus> {
        let running: Vec<Arc<CallProgress>> = self.running.lock().values().cloned().collect();
        let status = |progress: &Arc<CallProgress>| EndpointCallStatus {
            rows: progress.rows(),
            pages: progress.pages.load(Ordering::Relaxed),
            regions_done: progress.regions_done.load(Ordering::Relaxed),
            ..progress.begun.clone()
        };
        running.iter().map(status).collect()
    }
}

impl CallProgress {
    /// Returns the rows read.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Adds rows read; returns the total.
    pub(crate) fn add_rows(&self, rows: u64) -> u64 {
        self.rows.fetch_add(rows, Ordering::Relaxed) + rows
    }

    /// Counts an answer.
    pub(crate) fn add_page(&self) {
        self.pages.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a completed region.
    pub(crate) fn add_region(&self) {
        self.regions_done.fetch_add(1, Ordering::Relaxed);
    }
}

impl RunningCall {
    /// Returns the progress.
    pub(crate) fn progress(&self) -> &CallProgress {
        &self.progress
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.calls.running.lock().remove(&self.progress.begun.call);
    }
}
