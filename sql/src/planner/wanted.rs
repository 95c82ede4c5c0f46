//! What a step would like of the step below it, and what it gets.

use crate::logical::SortKey;
use crate::plan::{Node, RowGoal};

/// What the step above would like.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    /// An order, over the plan's columns; empty: any.
    pub order: Vec<SortKey>,
    /// How many rows will be taken.
    pub goal: Option<RowGoal>,
}

/// A step, and whether its rows come in the wanted order.
pub(super) struct Built {
    /// The step.
    pub node: Node,
    /// The order is as wanted.
    pub ordered: bool,
}
