//! Progress of a session in the history, for TIMELINE reads: the newest commit that it has seen,
//! and the use of replicas by its present statement.
//!
//! The transactions of a session share one object. Their snapshots raise `seen`, and the next
//! TIMELINE snapshot includes it, so that the reads of a session never go back and include its
//! own commits. HBase's clients receive `Result.isStale` instead, which says that a replica has
//! answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::cell::Sequence;

/// Progress of a session in the history.
#[derive(Debug, Default)]
pub struct TimelineProgress {
    seen: AtomicU64,
    made: AtomicU64,
    /// Reads of the present statement; `None` before the first one.
    present: Mutex<Option<TimelineRead>>,
    /// Reads of the last statement that had any.
    last: Mutex<Option<TimelineRead>>,
}

/// Use of region replicas by the reads of a statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimelineRead {
    /// Number of times that a replica was read because the primary did not answer.
    pub replica_requests: u64,
    /// Age of the oldest commit that was visible when the statement began and that its reads do
    /// not show; zero if they show all.
    pub staleness: Duration,
}

impl TimelineRead {
    /// Returns whether the reads lacked a commit that was visible.
    pub fn is_stale(&self) -> bool {
        !self.staleness.is_zero()
    }
}

impl TimelineProgress {
    /// Records that the session has made or read the commits up to `sequence`.
    pub fn see(&self, sequence: Sequence) {
        self.seen.fetch_max(sequence.0, Ordering::AcqRel);
    }

    /// Records that the session has made the commit `sequence`.
    pub(crate) fn make(&self, sequence: Sequence) {
        self.see(sequence);
        self.made.fetch_max(sequence.0, Ordering::AcqRel);
    }

    /// Returns the newest commit that the session has made.
    pub fn made(&self) -> Sequence {
        Sequence(self.made.load(Ordering::Acquire))
    }

    /// Returns the newest commit that the session has made or may have read.
    pub fn seen(&self) -> Sequence {
        Sequence(self.seen.load(Ordering::Acquire))
    }

    /// Records a read that may lack commits.
    pub fn note(&self, replica_requests: u64, staleness: Duration) {
        let mut present = self.present.lock();
        let read = present.get_or_insert_default();
        read.replica_requests += replica_requests;
        read.staleness = read.staleness.max(staleness);
    }

    /// Ends a statement: returns its reads, if it had any with TIMELINE consistency.
    pub fn end_statement(&self) -> Option<TimelineRead> {
        let read = self.present.lock().take()?;
        *self.last.lock() = Some(read);
        Some(read)
    }

    /// Returns the reads of the last statement that had any and was ended.
    pub fn last_read(&self) -> Option<TimelineRead> {
        *self.last.lock()
    }
}
