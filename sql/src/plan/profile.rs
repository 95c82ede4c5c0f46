//! What the steps of a plan did when it ran, for EXPLAIN ANALYZE.

use std::time::Duration;

use ahash::AHashMap;
use parking_lot::Mutex;
use store::ReadFigures;

/// What one step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepFigures {
    /// How often it was opened.
    pub loops: u64,
    /// Rows that it yielded, in all of them.
    pub rows: u64,
    /// Time in it and in the steps below it.
    pub time: Duration,
    /// Blocks and files read in it and in the steps below it.
    pub reads: ReadFigures,
}

/// Figures of the steps of one execution, by [`Node::address`](crate::plan::Node::address).
#[derive(Debug, Default)]
pub struct Profile(Mutex<AHashMap<usize, StepFigures>>);

impl Profile {
    /// Counts that a step is opened.
    pub fn open(&self, step: usize) {
        self.0.lock().entry(step).or_default().loops += 1;
    }

    /// Adds rows that a step has yielded, the time they took and what was read for them.
    pub fn add(&self, step: usize, rows: u64, time: Duration, reads: ReadFigures) {
        let mut steps = self.0.lock();
        let figures = steps.entry(step).or_default();
        figures.rows += rows;
        figures.time += time;
        figures.reads = figures.reads + reads;
    }

    /// Returns what a step did; nothing if it was never opened.
    pub fn of(&self, step: usize) -> StepFigures {
        self.0.lock().get(&step).copied().unwrap_or_default()
    }
}
