//! Required and provided properties of plan nodes: order, row goal and groups.

use types::expr::Expr;

use crate::logical::{Logical, SortKey};
use crate::plan::{Node, RowGoal};

/// Properties that the parent node requires.
#[derive(Debug, Clone, Default)]
pub(super) struct RequiredProperties {
    /// Required order over the plan's columns; empty: any.
    pub order: Vec<SortKey>,
    /// Row goal, with required groups in groups.
    pub goal: Option<RowGoal>,
    /// Groups of which the first rows suffice; `None`: all rows are required.
    pub groups: Option<RequiredGroups>,
}

/// Groups of rows with equal keys. Of each the first row is required in the required order, or in
/// that of the groups where none is required; other rows are ignored.
#[derive(Debug, Clone)]
pub(super) struct RequiredGroups {
    /// Keys, over the plan's columns.
    pub keys: Vec<Expr>,
    /// Order within a group; empty: any.
    pub order: Vec<SortKey>,
}

impl RequiredGroups {
    /// Converts the expressions.
    pub(super) fn map(&self, convert: &dyn Fn(Expr) -> Expr) -> RequiredGroups {
        let order = self.order.iter();
        RequiredGroups {
            keys: self.keys.iter().cloned().map(convert).collect(),
            order: order
                .map(|key| SortKey { expression: convert(key.expression.clone()), ..*key })
                .collect(),
        }
    }
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

    /// Returns the requirements of a sort by these keys, or of a limit.
    pub(super) fn of_sort(order: Vec<SortKey>, goal: Option<RowGoal>) -> RequiredProperties {
        RequiredProperties { order, goal, groups: None }
    }

    /// Returns the requirements as far as a plan passes them on: groups to the scan of a table.
    pub(super) fn of_rows(self, plan: &Logical) -> RequiredProperties {
        match plan {
            Logical::Scan(_) | Logical::Project { .. } => self,
            Logical::Filter { input, .. } if matches!(**input, Logical::Scan(_)) => self,
            _ => self.of_all_rows(),
        }
    }

    /// Returns the requirements of a node that may reject rows or join them: it needs all rows.
    pub(super) fn of_all_rows(self) -> RequiredProperties {
        RequiredProperties { groups: None, ..self }
    }

    /// Returns the goal if no row beyond it is read.
    pub(super) fn exact_goal(&self) -> Option<RowGoal> {
        self.goal.clone().filter(RowGoal::is_exact)
    }
}
