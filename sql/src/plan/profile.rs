//! Execution statistics of plan nodes, for EXPLAIN ANALYZE.

use std::time::Duration;

use ahash::AHashMap;
use parking_lot::Mutex;
use store::ReadStatistics;

/// Statistics of one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeStatistics {
    /// Number of times that it was opened.
    pub loops: u64,
    /// Number of rows over all loops.
    pub rows: u64,
    /// Time in the node and its inputs.
    pub time: Duration,
    /// Blocks and files read by the node and its inputs.
    pub reads: ReadStatistics,
}

/// Statistics of the nodes of one execution, by [`Node::address`](crate::plan::Node::address).
#[derive(Debug, Default)]
pub struct ExecutionProfile(Mutex<AHashMap<usize, NodeStatistics>>);

impl ExecutionProfile {
    /// Counts an opening of a node.
    pub fn open(&self, step: usize) {
        self.0.lock().entry(step).or_default().loops += 1;
    }

    /// Adds rows of a node, their time and their reads.
    pub fn add(&self, step: usize, rows: u64, time: Duration, reads: ReadStatistics) {
        let mut steps = self.0.lock();
        let figures = steps.entry(step).or_default();
        figures.rows += rows;
        figures.time += time;
        figures.reads = figures.reads + reads;
    }

    /// Returns the statistics of a node; zeros if it was never opened.
    pub fn of(&self, step: usize) -> NodeStatistics {
        self.0.lock().get(&step).copied().unwrap_or_default()
    }
}
