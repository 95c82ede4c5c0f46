//! What steps were thought to yield and to cost when they were chosen, for EXPLAIN.

use ahash::AHashMap;

use crate::plan::Node;

/// Of one step, and those below it. Costs are in the planner's units: reading one row of a scan
/// is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// What its first row costs.
    pub startup: f64,
    /// What all its rows cost.
    pub total: f64,
    /// How many they are.
    pub rows: f64,
    /// Bytes of a row.
    pub width: usize,
}

/// Of the steps of a plan, by [`Node::address`].
#[derive(Debug, Default)]
pub struct Estimates(AHashMap<usize, Estimate>);

impl Estimates {
    /// Keeps what is thought of a step; what was thought of it before is forgotten.
    pub(crate) fn set(&mut self, node: &Node, estimate: Estimate) {
        self.0.insert(node.address(), estimate);
    }

    /// Returns what is thought of a step.
    pub(crate) fn of(&self, address: usize) -> Option<Estimate> {
        self.0.get(&address).copied()
    }
}
