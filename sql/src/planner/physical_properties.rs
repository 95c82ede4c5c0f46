//! Required and provided properties of plan nodes: order and row goal.

use crate::logical::SortKey;
use crate::plan::{Node, RowGoal};

/// Properties that the parent node requires.
#[derive(Debug, Clone, Default)]
pub(super) struct RequiredProperties {
    /// Required order over the plan's columns; empty: any.
    pub order: Vec<SortKey>,
    /// Row goal.
    pub goal: Option<RowGoal>,
}

/// Plan node with its provided properties.
pub(super) struct ProvidedProperties {
    /// Plan node.
    pub node: Node,
    /// True if the node provides the required order.
    pub ordered: bool,
}

impl RequiredProperties {
    /// Returns the requirements of an order-preserving node's input, of which it reads about
    /// `rows_for_each` rows per row that it yields.
    pub(super) fn below(self, rows_for_each: f64) -> RequiredProperties {
        RequiredProperties { goal: self.goal.map(|goal| goal.below(rows_for_each)), ..self }
    }

    /// Returns the goal if no row beyond it is read.
    pub(super) fn exact_goal(&self) -> Option<RowGoal> {
        self.goal.clone().filter(RowGoal::is_exact)
    }
}
