//! Statements with data-changing WITH: a sequence of steps.

use crate::logical::BoundPlan;

/// Statement with data-changing WITH. All steps use the snapshot of the statement.
#[derive(Debug, Clone)]
pub struct Steps {
    /// Parts of WITH, in order.
    pub before: Vec<NamedStep>,
    /// Main statement.
    pub last: Box<BoundPlan>,
}

/// Part of WITH whose rows later steps may read by its number.
#[derive(Debug, Clone)]
pub struct NamedStep {
    /// Number within the statement.
    pub id: usize,
    /// Name, for EXPLAIN.
    pub name: String,
    /// Statement: a query is computed on demand, a change is executed to completion.
    pub bound: BoundPlan,
}
