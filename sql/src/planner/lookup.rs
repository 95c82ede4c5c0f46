//! Costs of look-ups by key and of complete scans, for join planning.
//!
//! A look-up is a scan with comparisons whose other sides are parameters: [`access_paths`] finds
//! its path as for any scan. Equalities make keys, inequalities make ranges.
//!
//! [`access_paths`]: crate::planner::access_paths

use types::DataType;
use types::expr::{CompareOp, Expr};

use crate::logical::{Logical, TableScan};
use crate::planner::access_paths::{ScanRequirements, choose};
use crate::planner::conjunct::{is_free, is_volatile, renumber, split};
use crate::planner::equivalence::{compared, sides};
use crate::planner::estimate::Estimator;

/// Table with conditions.
pub(super) struct FilteredTable<'a> {
    /// The table.
    pub scan: &'a TableScan,
    /// Conditions over the table's columns.
    pub conjuncts: Vec<Expr>,
}

/// Access path that uses values of another node.
pub(super) struct KeyPath {
    /// Positions of the keys that it uses, ascending.
    pub used: Vec<usize>,
    /// Cost per combination of values.
    pub cost: f64,
}

/// Returns the table that a plan reads, if the plan only filters its rows.
pub(super) fn filtered_table(plan: &Logical) -> Option<FilteredTable<'_>> {
    match plan {
        Logical::Scan(scan) => Some(FilteredTable { scan, conjuncts: Vec::new() }),
        Logical::Barrier { input } => filtered_table(input),
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

/// Comparison of a table's expression with a value of the outer rows.
#[derive(Debug, Clone)]
pub(super) struct LookupKey {
    /// Side of the table, over the columns of the scan.
    pub inner: Expr,
    /// The operator, with `inner` on the left.
    pub op: CompareOp,
    /// Type of the other side.
    pub data_type: DataType,
}

/// Sides of a condition that a look-up can use.
pub(super) struct LookupSides<'e> {
    /// Side of the table that is looked up.
    pub inner: &'e Expr,
    /// The operator, with `inner` on the left.
    pub op: CompareOp,
    /// Side of the outer rows.
    pub outer: &'e Expr,
}

impl LookupKey {
    /// Returns an equality.
    pub(super) fn equal(inner: Expr, data_type: &DataType) -> LookupKey {
        LookupKey { inner, op: CompareOp::Eq, data_type: data_type.clone() }
    }

    /// Returns the comparison with a parameter, over the table's columns.
    pub(super) fn bound(&self, scan: &TableScan, parameter: usize) -> Option<Expr> {
        let inner = renumber(self.inner.clone(), &|index| scan.columns[index]);
        let parameter = Expr::Parameter { index: parameter, data_type: self.data_type.clone() };
        compared(self.op, &inner, &parameter)
    }
}

/// Returns the sides of a comparison that a look-up can use: an equality, or a bound of a range.
pub(super) fn lookup_sides<'e>(
    conjunct: &'e Expr,
    is_inner: &dyn Fn(&Expr) -> bool,
    is_outer: &dyn Fn(&Expr) -> bool,
) -> Option<LookupSides<'e>> {
    let (a, op, b) = conjunct.as_comparison()?;
    let is_usable = match op {
        CompareOp::Eq => sides(conjunct).is_some(),
        CompareOp::Ne => false,
        _ => true,
    };
    if !is_usable || is_volatile(conjunct) {
        return None;
    }
    let are = |inner: &Expr, outer: &Expr| {
        is_inner(inner) && !is_free(inner) && is_outer(outer) && !is_free(outer)
    };
    if are(a, b) {
        Some(LookupSides { inner: a, op, outer: b })
    } else if are(b, a) {
        Some(LookupSides { inner: b, op: op.flip(), outer: a })
    } else {
        None
    }
}

impl FilteredTable<'_> {
    /// Converts an expression over the scan's columns to one over the table's.
    pub(super) fn over_table(&self, expression: Expr) -> Expr {
        renumber(expression, &|index| self.scan.columns[index])
    }

    /// Returns the cost of reading all rows that satisfy the conditions.
    pub(super) fn scan_cost(&self, estimator: Estimator<'_>) -> f64 {
        let question = ScanRequirements::of_all(self.scan, &self.conjuncts);
        choose(&question).cost(&question, estimator)
    }

    /// Returns the best path that uses some of these keys.
    pub(super) fn key_path(&self, keys: &[LookupKey], estimator: Estimator<'_>) -> Option<KeyPath> {
        if self.scan.lock.is_some() || self.scan.has_versions() {
            return None;
        }
        let mut conjuncts = self.conjuncts.clone();
        for key in keys {
            conjuncts.push(key.bound(self.scan, 0)?);
        }
        let question = ScanRequirements::of_lookup(self.scan, &conjuncts);
        let candidate = choose(&question);
        let own = self.conjuncts.len();
        let used: Vec<usize> =
            (0..keys.len()).filter(|key| !candidate.rest.contains(&(own + key))).collect();
        let cost = candidate.cost(&question, estimator);
        (!used.is_empty()).then_some(KeyPath { used, cost })
    }
}
