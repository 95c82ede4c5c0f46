//! Join parts: plans whose columns have the numbers of a join group.

use std::cell::Cell;

use types::expr::Expr;

use crate::logical::{Join, JoinDecision, JoinKind, Logical};
use crate::planner::conjunct::{all, renumber};
use crate::planner::estimate::Estimator;
use crate::planner::join_group::on;
use crate::planner::lookup::filtered_table;

/// Unit or tail join that a column of a group belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnOwner {
    Unit(usize),
    Tail(usize),
}

/// Estimator and parameter counter for join decisions.
#[derive(Clone, Copy)]
pub(super) struct JoinPlanner<'a> {
    pub estimator: Estimator<'a>,
    /// First unused parameter of the statement.
    pub next_parameter: &'a Cell<usize>,
}

impl JoinPlanner<'_> {
    /// Allocates parameters, and returns the first one.
    pub(super) fn new_parameters(&self, count: usize) -> usize {
        self.next_parameter.replace(self.next_parameter.get() + count)
    }
}

/// Callback that pushes conditions into a plan.
pub(super) type PushInto<'a> = &'a mut dyn FnMut(Logical, Vec<Expr>) -> Logical;

/// A plan, with the group's numbers of its columns.
pub(super) struct JoinPart {
    /// Plan of the rows.
    pub plan: Logical,
    /// Numbers of the columns in the group.
    pub columns: Vec<usize>,
}

impl JoinPart {
    /// Returns the positions of the group's columns, by number.
    pub(super) fn positions(&self) -> ahash::AHashMap<usize, usize> {
        self.columns.iter().enumerate().map(|(position, &column)| (column, position)).collect()
    }

    /// Converts expressions over the group's columns to the plan's.
    pub(super) fn over(&self, expressions: Vec<Expr>) -> Vec<Expr> {
        let positions = self.positions();
        expressions.into_iter().map(|e| renumber(e, &|index| positions[&index])).collect()
    }

    pub(super) fn filtered(self, conjuncts: Vec<Expr>) -> JoinPart {
        let Some(predicate) = all(self.over(conjuncts)) else { return self };
        JoinPart { plan: Logical::Filter { input: Box::new(self.plan), predicate }, ..self }
    }

    /// Returns the plan with these output columns.
    pub(super) fn yielding(self, outputs: Vec<Expr>) -> Logical {
        let as_it_is = outputs.len() == self.columns.len()
            && outputs.iter().zip(&self.columns).all(
                |(output, column)| matches!(output, Expr::Column { index, .. } if index == column),
            );
        if as_it_is {
            return self.plan;
        }
        let expressions = self.over(outputs);
        Logical::Project { input: Box::new(self.plan), expressions }
    }

    pub(super) fn joined(
        self,
        kind: JoinKind,
        right: JoinPart,
        conjuncts: Vec<Expr>,
        choice: JoinDecision,
    ) -> JoinPart {
        let both = JoinPart {
            plan: Logical::Values { types: Vec::new(), rows: Vec::new() },
            columns: self.columns.iter().chain(&right.columns).copied().collect(),
        };
        let on = on(both.over(conjuncts));
        let columns = match kind {
            JoinKind::Semi | JoinKind::Anti => self.columns,
            _ => both.columns,
        };
        let (left, right) = (Box::new(self.plan), Box::new(right.plan));
        JoinPart { plan: Logical::Join(Join { kind, left, right, on, choice }), columns }
    }
}

/// Returns the cost of all rows of a plan.
pub(super) fn read_cost(plan: &Logical, estimator: Estimator<'_>) -> f64 {
    match filtered_table(plan) {
        Some(table) => table.scan_cost(estimator),
        None => estimator.rows(plan),
    }
}
