//! Cost and row estimates of plan nodes, for EXPLAIN.

use ahash::AHashMap;

use crate::plan::Node;

/// Estimate of a node including its inputs. Costs are in the planner's units: reading one row of
/// a scan is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Startup cost.
    pub startup: f64,
    /// Total cost.
    pub total: f64,
    /// Number of rows.
    pub rows: f64,
    /// Width of a row in bytes.
    pub width: usize,
}

/// Estimates of the nodes of a plan, by [`Node::address`].
#[derive(Debug, Default)]
pub struct Estimates(AHashMap<usize, Estimate>);

impl Estimates {
    /// Records the estimate of a node; replaces a previous one.
    pub(crate) fn set(&mut self, node: &Node, estimate: Estimate) {
        self.0.insert(node.address(), estimate);
    }

    /// Returns the estimate of a node.
    pub(crate) fn of(&self, address: usize) -> Option<Estimate> {
        self.0.get(&address).copied()
    }
}
