//! Progress of a session in the history, for TIMELINE reads: the newest commit that it has seen,
//! and the use of replicas by its present statement.
//!
//! The transactions of a session share one object. Their snapshots raise `seen`, and the next
//! TIMELINE snapshot includes it, so that the reads of a session never go back and include its
//! own commits. HBase's clients receive `Result.isStale` instead, which says that a replica has
//! answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cell::Sequence;

/// Progress of a session in the history.
#[derive(Debug, Default)]
pub struct TimelineProgress {
    seen: AtomicU64,
    replica_requests: AtomicU64,
    staleness_micros: AtomicU64,
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

impl TimelineProgress {
    /// Records that the session has made or read the commits up to `sequence`.
    pub fn see(&self, sequence: Sequence) {
        self.seen.fetch_max(sequence.0, Ordering::AcqRel);
    }

    /// Returns the newest commit that the session has made or may have read.
    pub fn seen(&self) -> Sequence {
        Sequence(self.seen.load(Ordering::Acquire))
    }

    /// Records a read.
    pub(crate) fn note(&self, replica_requests: u64, staleness: Duration) {
        self.replica_requests.fetch_add(replica_requests, Ordering::Relaxed);
        let micros = u64::try_from(staleness.as_micros()).unwrap_or(u64::MAX);
        self.staleness_micros.fetch_max(micros, Ordering::Relaxed);
    }

    /// Returns the reads that were recorded since the last call.
    pub fn take_read(&self) -> TimelineRead {
        TimelineRead {
            replica_requests: self.replica_requests.swap(0, Ordering::Relaxed),
            staleness: Duration::from_micros(self.staleness_micros.swap(0, Ordering::Relaxed)),
        }
    }
}
