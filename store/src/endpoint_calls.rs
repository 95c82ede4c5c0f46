//! The endpoint calls that run, and how far they are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::descriptor::TableId;

/// An endpoint call that runs, for system views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointCallStatus {
    /// Numbers the calls of the process.
    pub call: u64,
    /// The table that is called.
    pub table: TableId,
    /// The endpoint.
    pub endpoint: String,
    /// The number of the transaction that calls.
    pub transaction: u64,
    /// When it began: microseconds since 1970.
    pub started_micros: i64,
    /// Rows read until now.
    pub rows: u64,
    /// Answers until now.
    pub pages: u64,
    /// Regions that are done, as they were when the call began.
    pub regions_done: u64,
    /// Regions that are concerned, as they were when the call began.
    pub regions: u64,
}

/// The calls that run.
#[derive(Default)]
pub(crate) struct EndpointCalls {
    next: AtomicU64,
    running: Mutex<BTreeMap<u64, Arc<Progress>>>,
}

/// How far a call is.
pub(crate) struct Progress {
    begun: EndpointCallStatus,
    rows: AtomicU64,
    pages: AtomicU64,
    regions_done: AtomicU64,
}

/// A call that runs, until dropped.
pub(crate) struct RunningCall {
    calls: Arc<EndpointCalls>,
    progress: Arc<Progress>,
}

impl EndpointCalls {
    /// Lists a call, whose number and figures are filled in.
    pub(crate) fn begin(self: &Arc<EndpointCalls>, begun: EndpointCallStatus) -> RunningCall {
        let call = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let progress = Arc::new(Progress {
            begun: EndpointCallStatus { call, ..begun },
            rows: AtomicU64::new(0),
            pages: AtomicU64::new(0),
            regions_done: AtomicU64::new(0),
        });
        self.running.lock().insert(call, Arc::clone(&progress));
        RunningCall { calls: Arc::clone(self), progress }
    }

    /// Returns the calls that run, the oldest first.
    pub(crate) fn status(&self) -> Vec<EndpointCallStatus> {
        let running: Vec<Arc<Progress>> = self.running.lock().values().cloned().collect();
        let status = |progress: &Arc<Progress>| EndpointCallStatus {
            rows: progress.rows(),
            pages: progress.pages.load(Ordering::Relaxed),
            regions_done: progress.regions_done.load(Ordering::Relaxed),
            ..progress.begun.clone()
        };
        running.iter().map(status).collect()
    }
}

impl Progress {
    /// Returns the rows read.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Counts rows read; returns all until now.
    pub(crate) fn add_rows(&self, rows: u64) -> u64 {
        self.rows.fetch_add(rows, Ordering::Relaxed) + rows
    }

    /// Counts an answer.
    pub(crate) fn add_page(&self) {
        self.pages.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a region that is done.
    pub(crate) fn add_region(&self) {
        self.regions_done.fetch_add(1, Ordering::Relaxed);
    }
}

impl RunningCall {
    /// Returns how far it is.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.calls.running.lock().remove(&self.progress.begun.call);
    }
}
