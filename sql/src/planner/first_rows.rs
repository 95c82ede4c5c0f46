//! Row goals of logical plans: the first rows in an order, below a LIMIT, and their cost.
//!
//! With a LIMIT above joins, the join order should minimise the cost of the first rows
//! ([`JoinGraph::streamed`](crate::planner::join_order::JoinGraph::streamed)): the outer table is
//! read in the required order as far as needed, and the others are looked up or hashed.

use types::expr::Expr;

use crate::logical::{Logical, SortKey};
use crate::plan::RowGoal;
use crate::planner::access_paths::{ScanRequirements, choose};
use crate::planner::conjunct::{is_volatile, renumber, substitute, within};
use crate::planner::estimate::Estimator;
use crate::planner::lookup::filtered_table;

/// First rows of a plan in an order.
#[derive(Debug, Clone)]
pub(super) struct FirstRows {
    /// Approximate number of rows.
    pub rows: f64,
    /// Order over the plan's columns; empty: any.
    pub order: Vec<SortKey>,
}

impl FirstRows {
    /// Returns the first rows of a plan in any order.
    pub(super) fn of(rows: f64) -> FirstRows {
        FirstRows { rows, order: Vec::new() }
    }

    /// Returns the rows that a LIMIT reads; `None` if it has no limit, or WITH TIES.
    pub(super) fn of_limit(
        limit: &Option<Expr>,
        offset: &Option<Expr>,
        ties: &[Expr],
    ) -> Option<FirstRows> {
        let goal = RowGoal::of(limit, offset).filter(|_| ties.is_empty())?;
        Some(FirstRows::of(goal.estimate()))
    }

    /// Returns the goal of a sort's input: the first rows by these keys.
    pub(super) fn sorted(self, keys: &[SortKey]) -> Option<FirstRows> {
        let is_plain =
            self.order.is_empty() && !keys.iter().any(|key| is_volatile(&key.expression));
        is_plain.then(|| FirstRows { order: keys.to_vec(), ..self })
    }

    /// Returns the goal of a projection's input.
    pub(super) fn over(self, expressions: &[Expr]) -> FirstRows {
        let over =
            |key: SortKey| SortKey { expression: substitute(key.expression, expressions), ..key };
        FirstRows { order: self.order.into_iter().map(over).collect(), ..self }
    }

    /// Returns the goal for the part of a plan with these columns; `None` if the order uses
    /// others.
    pub(super) fn within(&self, columns: std::ops::Range<usize>) -> Option<FirstRows> {
        let is_own = |key: &SortKey| within(&key.expression, columns.clone());
        let own = |key: &SortKey| SortKey {
            expression: renumber(key.expression.clone(), &|index| index - columns.start),
            ..*key
        };
        let order = || self.order.iter().map(own).collect();
        self.order.iter().all(is_own).then(|| FirstRows { order: order(), ..*self })
    }

    /// Returns the cost of the first rows of a plan; `None` if it must be sorted for them.
    pub(super) fn cost(&self, plan: &Logical, estimator: Estimator<'_>) -> Option<f64> {
        let Some(table) = filtered_table(plan) else {
            return self.order.is_empty().then(|| estimator.rows(plan));
        };
        let order: Vec<SortKey> = self
            .order
            .iter()
            .map(|key| SortKey { expression: table.over_table(key.expression.clone()), ..*key })
            .collect();
        let (scan, conjuncts) = (table.scan, table.conjuncts.as_slice());
        let question = ScanRequirements::of_first(scan, conjuncts, (&order, Some(self.rows)));
        let candidate = choose(&question);
        let has_order = order.is_empty() || candidate.order.is_some();
        has_order.then(|| candidate.cost(&question, estimator))
    }
}
