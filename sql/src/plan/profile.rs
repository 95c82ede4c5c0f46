//! What the steps of a plan did when it ran, for EXPLAIN ANALYZE.

use std::time::Duration;

use ahash::AHashMap;
use parking_lot::Mutex;

/// What one step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepFigures {
    /// How often it was opened.
    pub loops: u64,
    /// Rows that it yielded, in all of them.
    pub rows: u64,
    /// Time in it and in the steps below it.
    pub time: Duration,
}

/// Figures of the steps of one execution, by [`Node::address`](crate::plan::Node::address).
#[derive(Debug, Default)]
pub struct Profile(Mutex<AHashMap<usize, StepFigures>>);

impl Profile {
    /// Counts that a step is opened.
    pub fn open(&self, step: usize) {
        self.0.lock().entry(step).or_default().loops += 1;
    }

    /// Adds rows that a step has yielded and the time they took.
    pub fn add(&self, step: usize, rows: u64, time: Duration) {
        let mut steps = self.0.lock();
        let figures = steps.entry(step).or_default();
        figures.rows += rows;
        figures.time += time;
    }

    /// Returns what a step did; nothing if it was never opened.
    pub fn of(&self, step: usize) -> StepFigures {
        self.0.lock().get(&step).copied().unwrap_or_default()
    }
}
