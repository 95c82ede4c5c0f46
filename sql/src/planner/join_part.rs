//! Parts of a group of joins: plans whose columns have the numbers of the group.

use std::cell::Cell;

use types::expr::Expr;

use crate::logical::{Join, JoinChoice, JoinKind, Logical};
use crate::planner::conjunct::{all, renumber};
use crate::planner::estimate::Estimator;
use crate::planner::join_group::on;
use crate::planner::lookup::filtered_table;

/// The unit or the join of the tail that a column of a group belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Unit(usize),
    Tail(usize),
}

/// The estimates and the parameters with which joins are chosen.
#[derive(Clone, Copy)]
pub(super) struct Chooser<'a> {
    pub estimator: Estimator<'a>,
    /// The first parameter of the statement that is not in use.
    pub next_parameter: &'a Cell<usize>,
}

impl Chooser<'_> {
    /// Returns the first of so many new parameters.
    pub(super) fn new_parameters(&self, count: usize) -> usize {
        self.next_parameter.replace(self.next_parameter.get() + count)
    }
}

/// Puts conditions on plans; the rest of the rule that this file is a part of.
pub(super) type PushInto<'a> = &'a mut dyn FnMut(Logical, Vec<Expr>) -> Logical;

/// A plan, and which columns of the group its columns are.
pub(super) struct JoinPart {
    /// Yields the rows.
    pub plan: Logical,
    /// The columns of the group, by their numbers.
    pub columns: Vec<usize>,
}

impl JoinPart {
    /// Returns the positions of the group's columns, by their numbers.
    pub(super) fn positions(&self) -> ahash::AHashMap<usize, usize> {
        self.columns.iter().enumerate().map(|(position, &column)| (column, position)).collect()
    }

    /// Returns an expression over the group's columns as one over the plan's.
    pub(super) fn over(&self, expressions: Vec<Expr>) -> Vec<Expr> {
        let positions = self.positions();
        expressions.into_iter().map(|e| renumber(e, &|index| positions[&index])).collect()
    }

    pub(super) fn filtered(self, conjuncts: Vec<Expr>) -> JoinPart {
        let Some(predicate) = all(self.over(conjuncts)) else { return self };
        JoinPart { plan: Logical::Filter { input: Box::new(self.plan), predicate }, ..self }
    }

    /// Returns the plan with these columns.
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
        choice: JoinChoice,
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
