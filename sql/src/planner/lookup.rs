//! Which tables can be looked up by key for the rows of another step, and what that costs; and what
//! it costs to read a table whole.
//!
//! A look-up is a scan under equalities whose other sides are parameters: [`access`] finds its
//! path as it finds that of any scan.
//!
//! [`access`]: crate::planner::access

use types::DataType;
use types::expr::Expr;

use crate::logical::{Logical, TableScan};
use crate::planner::access::{Question, choose};
use crate::planner::conjunct::{is_volatile, renumber, split};
use crate::planner::equivalence::equal;
use crate::planner::estimate::Estimator;

/// A table with conditions.
pub(super) struct FilteredTable<'a> {
    /// The table.
    pub scan: &'a TableScan,
    /// The conditions, over the table's columns.
    pub conjuncts: Vec<Expr>,
}

/// A path that uses values of another step.
pub(super) struct KeyPath {
    /// Which of the keys it uses, ascending.
    pub used: Vec<usize>,
    /// Cost of the rows of one combination of values.
    pub cost: f64,
}

/// Returns the table that a plan reads, if it does no more than check its rows.
pub(super) fn filtered_table(plan: &Logical) -> Option<FilteredTable<'_>> {
    match plan {
        Logical::Scan(scan) => Some(FilteredTable { scan, conjuncts: Vec::new() }),
        Logical::Filter { input, predicate } if !is_volatile(predicate) => {
            let Logical::Scan(scan) = input.as_ref() else { return None };
            let mut conjuncts = Vec::new();
            split(predicate.clone(), &mut conjuncts);
            let mut table = FilteredTable { scan, conjuncts: Vec::new() };
            table.conjuncts = conjuncts.into_iter().map(|c| table.over_table(c)).collect();
            Some(table)
        }
        _ => None,
    }
}

/// Returns the equality of a key, over the scan's columns, and a parameter, over the table's.
pub(super) fn bound_key(
    scan: &TableScan,
    key: &Expr,
    parameter: usize,
    data_type: DataType,
) -> Option<Expr> {
    let key = renumber(key.clone(), &|index| scan.columns[index]);
    equal(&key, &Expr::Parameter { index: parameter, data_type })
}

impl FilteredTable<'_> {
    /// Returns an expression over the scan's columns as one over the table's.
    pub(super) fn over_table(&self, expression: Expr) -> Expr {
        renumber(expression, &|index| self.scan.columns[index])
    }

    /// Returns the cost of reading all rows that meet the conditions.
    pub(super) fn scan_cost(&self, estimator: Estimator<'_>) -> f64 {
        let question = Question::of_all(self.scan, &self.conjuncts);
        choose(&question).cost(&question, estimator)
    }

    /// Returns the best path that uses some of these keys, which are over the scan's columns; with
    /// each the type of the values that it is to equal.
    pub(super) fn key_path(
        &self,
        keys: &[(Expr, DataType)],
        estimator: Estimator<'_>,
    ) -> Option<KeyPath> {
        if self.scan.lock.is_some() {
            return None;
        }
        let mut conjuncts = self.conjuncts.clone();
        for (key, data_type) in keys {
            conjuncts.push(bound_key(self.scan, key, 0, *data_type)?);
        }
        let question = Question::of_all(self.scan, &conjuncts);
        let candidate = choose(&question);
        let own = self.conjuncts.len();
        let used: Vec<usize> =
            (0..keys.len()).filter(|key| !candidate.rest.contains(&(own + key))).collect();
        let cost = candidate.cost(&question, estimator);
        (!used.is_empty()).then_some(KeyPath { used, cost })
    }
}
