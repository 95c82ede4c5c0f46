//! Selectivity by evaluation on sampled values: the most common values and the histogram bounds.
//!
//! PostgreSQL does this for patterns (`histogram_selectivity` in `selfuncs.c`); here it applies
//! to all conditions without a specific rule.

use std::sync::Arc;

use types::expr::{EvalContext, Expr};
use types::{Batch, DataType};

use crate::catalog::statistics::ColumnStatistics;
use crate::planner::conjunct::{column, columns_of, parameter_count, substitute};

/// Minimum number of histogram bounds that represent the values between them.
const BOUNDS_MIN: usize = 10;
/// Maximum fraction of values outside of the most common ones that may be unknown.
const UNKNOWN_MAX: f64 = 0.1;

/// Returns the only column that a condition depends on.
pub(super) fn only_column(condition: &Expr) -> Option<usize> {
    let columns = columns_of(condition);
    let first = columns.first().copied().filter(|_| columns.len() == 1)?;
    (parameter_count(condition) == 0 && condition.is_immutable()).then_some(first)
}

/// Returns the selectivity of `condition`, which depends on one column. `None`: there are too few
/// sampled values, or the condition fails on one.
pub(super) fn sampled_selectivity(
    condition: &Expr,
    known: &ColumnStatistics,
    data_type: &DataType,
) -> Option<f64> {
    let others = known.other_part();
    if known.bounds.len() < BOUNDS_MIN && others > UNKNOWN_MAX {
        return None;
    }
    let values = known.sampled(data_type)?;
    let (nulls, row_count) = (values.len() - 1, values.len());
    let width = columns_of(condition).last()? + 1;
    let only = substitute(condition.clone(), &vec![column(0, data_type); width]);
    let batch = Batch { columns: vec![Arc::clone(values)], row_count };
    let hits = only.filter_batch(&batch, &EvalContext::default()).ok()?;
    let (mut part, mut bounds_hit) = (0.0, 0.0);
    for hit in hits.into_iter().map(|hit| hit as usize) {
        match known.common.get(hit) {
            Some((_, weight)) => part += weight,
            None if hit == nulls => part += known.null_fraction,
            None => bounds_hit += 1.0,
        }
    }
    // Corrected for the sample size: no or all hits do not mean no or all values.
    let of_others = (bounds_hit + 0.5) / (known.bounds.len() as f64 + 1.0);
    Some(part + others * of_others)
}

#[cfg(test)]
mod tests {
    use types::Datum;
    use types::expr::CompareOp;

    use super::*;
    use crate::catalog::statistics::key_form;

    fn int(value: i32) -> Vec<u8> {
        key_form(&Datum::Int4(value), &DataType::Int4, &DataType::Int4).unwrap()
    }

    fn remainder_is(value: i32) -> Expr {
        let number = |value| Expr::constant(Datum::Int4(value), DataType::Int4);
        let remainder = Expr::Call {
            function: types::function::find("%", &[DataType::Int4, DataType::Int4]).unwrap(),
            arguments: vec![column(3, DataType::Int4), number(10)],
            data_type: DataType::Int4,
        };
        Expr::compare(CompareOp::Eq, remainder, number(value))
    }

    #[test]
    fn condition_is_evaluated_on_sample() {
        let known = ColumnStatistics {
            null_fraction: 0.1,
            common: vec![(int(7), 0.4)],
            bounds: (0..100).map(int).collect(),
            ..ColumnStatistics::default()
        };
        let part =
            |value| sampled_selectivity(&remainder_is(value), &known, &DataType::Int4).unwrap();
        assert!((part(3) - 0.5 * 10.5 / 101.0).abs() < 1e-9);
        assert!((part(7) - (0.4 + 0.5 * 10.5 / 101.0)).abs() < 1e-9);
        assert_eq!(only_column(&remainder_is(3)), Some(3));
        let few = ColumnStatistics { bounds: vec![int(0), int(9)], ..known };
        assert_eq!(sampled_selectivity(&remainder_is(3), &few, &DataType::Int4), None);
    }
}
