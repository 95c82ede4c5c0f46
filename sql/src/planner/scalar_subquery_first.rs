//! Rule: an uncorrelated scalar subquery is computed first if a key can use its value.
//!
//! ```text
//! t WHERE id = (SELECT max(id) FROM u)     the value, then t WHERE id = $1: a get by key
//! ```
//!
//! Otherwise the filter on the subquery's value would apply to all rows of `t`. The plan is a
//! lateral join of the single value row with the table.

use types::expr::Expr;

use crate::logical::{Apply, ApplyKind, Logical};
use crate::planner::access_paths::{ScanRequirements, choose};
use crate::planner::conjunct::{as_column, column, is_volatile};
use crate::planner::lookup::filtered_table;

/// Replacement of an apply.
pub(super) struct ValueFirst {
    /// Plan of the value.
    pub value: Logical,
    /// Table that is read with it.
    pub table: Logical,
    /// Conditions on the table's rows; the value is `parameter`.
    pub conjuncts: Vec<Expr>,
    /// Output columns of the apply, over the value and the table's columns.
    pub output: Vec<Expr>,
    /// Other conditions on the apply's output.
    pub rest: Vec<Expr>,
}

/// Returns the replacement if a key of the table can use the value. `go`: conditions on the
/// table's rows; `stay`: on the apply's output.
pub(super) fn value_first(
    apply: &Apply,
    (go, stay): (&[Expr], &[Expr]),
    parameter: usize,
) -> Option<ValueFirst> {
    let is_asked = apply.guard.is_none() || !apply.subquery.may_fail();
    if apply.kind != ApplyKind::Scalar || !apply.bindings.is_empty() || !is_asked {
        return None;
    }
    let types = apply.input.column_types();
    let subquery_types = apply.subquery.column_types();
    let [value_type] = subquery_types.as_slice() else { return None };
    let with_value = |conjunct: &Expr| {
        conjunct.clone().transform(&mut |part| match as_column(&part) {
            Some(index) if index == types.len() => {
                Expr::Parameter { index: parameter, data_type: value_type.clone() }
            }
            _ => part,
        })
    };
    let (bound, rest): (Vec<&Expr>, Vec<&Expr>) =
        stay.iter().partition(|conjunct| !is_volatile(conjunct));
    let bound: Vec<Expr> = bound.into_iter().map(with_value).collect();
    let table = filtered_table(&apply.input).filter(|table| table.scan.lock.is_none())?;
    let others = go.iter().chain(&bound).cloned().map(|conjunct| table.over_table(conjunct));
    let conjuncts: Vec<Expr> = table.conjuncts.iter().cloned().chain(others).collect();
    let candidate = choose(&ScanRequirements::of_all(table.scan, &conjuncts));
    let first = conjuncts.len() - bound.len();
    if (first..conjuncts.len()).all(|position| candidate.rest.contains(&position)) {
        return None;
    }
    let one_row = Logical::Values { types: Vec::new(), rows: vec![Vec::new()] };
    let of_table = types.iter().enumerate().map(|(index, t)| column(index + 1, t));
    Some(ValueFirst {
        value: Logical::Apply(Apply {
            input: Box::new(one_row),
            subquery: apply.subquery.clone(),
            bindings: Vec::new(),
            kind: ApplyKind::Scalar,
            guard: None,
            groups: None,
        }),
        table: apply.input.as_ref().clone(),
        conjuncts: go.iter().cloned().chain(bound).collect(),
        output: of_table.chain([column(0, value_type)]).collect(),
        rest: rest.into_iter().cloned().collect(),
    })
}
