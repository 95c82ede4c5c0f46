//! Required properties of plans, order and row goal, and the step that provides them or not.

use crate::logical::SortKey;
use crate::plan::{Node, RowGoal};

/// The properties that the step above requires, if they can be had.
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

impl Wanted {
    /// Returns what a step requires of its input that passes on the order, and takes so many rows
    /// for each that it yields, about.
    pub(super) fn below(self, rows_for_each: f64) -> Wanted {
        Wanted { goal: self.goal.map(|goal| goal.below(rows_for_each)), ..self }
    }

    /// Returns the goal if no row beyond it is read.
    pub(super) fn exact_goal(&self) -> Option<RowGoal> {
        self.goal.clone().filter(RowGoal::is_exact)
    }
}
