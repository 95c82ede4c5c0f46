//! Row order: comparison and sorting of rows by sort keys.
//!
//! Rows are sorted by an abbreviated key, a 64-bit number that sorts like the first key
//! ([`KeyOrder::sort_prefixes`]): most comparisons compare two adjacent numbers instead of columns.
//! The other keys, or the rest of a text, decide between equal ones.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use types::expr::Expr;
use types::interrupt::{self, Interrupt};
use types::order::KeyOrder;
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::Context;
use crate::exec::join_core::ColumnRows;
use crate::exec::project::columns_of;
use crate::logical::SortKey;

/// Sort order of rows by some of their columns.
pub(super) struct RowOrder {
    keys: Vec<OrderKey>,
    /// Column types: those of the rows, then those of computed sort keys.
    pub(super) types: Arc<[DataType]>,
    /// Expressions of computed sort keys.
    computed: Vec<Expr>,
}

/// Sort column.
struct OrderKey {
    column: usize,
    order: KeyOrder,
}

impl RowOrder {
    /// Returns the order of rows with columns of `types` by `keys`, most significant first.
    pub(super) fn new(keys: &[SortKey], types: &[DataType]) -> RowOrder {
        let (mut types, mut computed) = (types.to_vec(), Vec::new());
        let key = |key: &SortKey| {
            let column = match &key.expression {
                Expr::Column { index, .. } => *index,
                expression => {
                    types.push(expression.data_type().clone());
                    computed.push(expression.clone());
                    types.len() - 1
                }
            };
            OrderKey { column, order: KeyOrder::from(key) }
        };
        let keys = keys.iter().map(key).collect();
        RowOrder { keys, types: types.into(), computed }
    }

    /// Appends the computed sort keys to a batch.
    pub(super) fn complete(&self, mut batch: Batch, context: &Context) -> Result<Batch> {
        if !self.computed.is_empty() {
            let columns = columns_of(&self.computed, &batch, &context.eval)?;
            batch.columns.extend(columns);
        }
        Ok(batch)
    }

    /// Compares row `i` of some columns with row `j` of others.
    pub(super) fn compare<V: Borrow<Vector>, W: Borrow<Vector>>(
        &self,
        (a, i): (&[V], usize),
        (b, j): (&[W], usize),
    ) -> Ordering {
        compare_by(&self.keys, (a, i), (b, j))
    }

    /// Returns the first `goal` rows in order. The sort is stable.
    ///
    /// # Errors
    ///
    /// 57014 once the statement is cancelled.
    pub(super) fn sort(
        &self,
        rows: &ColumnRows,
        goal: Option<usize>,
        interrupt: &Interrupt,
    ) -> Result<Vec<u32>> {
        let columns = &rows.columns[..];
        let Some(first) = self.keys.first() else {
            return Ok((0..rows.row_count.min(goal.unwrap_or(usize::MAX)) as u32).collect());
        };
        let (nulls, values): (Vec<u32>, Vec<u32>) = (0..rows.row_count as u32)
            .partition(|row| columns[first.column].is_null(*row as usize));
        let (numbers, are_exact) = first.order.sort_prefixes(&columns[first.column], &values);
        // For equal numbers, the keys from here on decide.
        let rest = &self.keys[usize::from(are_exact)..];
        let compare_values = |a: &(u64, u32), b: &(u64, u32)| {
            (a.0.cmp(&b.0))
                .then_with(|| compare_by(rest, (columns, a.1 as usize), (columns, b.1 as usize)))
                .then(a.1.cmp(&b.1))
        };
        let compare_nulls = |a: &u32, b: &u32| {
            compare_by(&self.keys[1..], (columns, *a as usize), (columns, *b as usize))
                .then(a.cmp(b))
        };
        let goal = goal.unwrap_or(usize::MAX);
        let values: Vec<(u64, u32)> = numbers.into_iter().zip(values).collect();
        let (of_nulls, of_values) = match first.order.nulls_first {
            true => (goal, goal.saturating_sub(nulls.len())),
            false => (goal.saturating_sub(values.len()), goal),
        };
        let nulls = interrupt::sort(cut(nulls, of_nulls, compare_nulls), interrupt, compare_nulls)?;
        let values = cut(values, of_values, compare_values);
        let values = interrupt::sort(values, interrupt, compare_values)?;
        let values = values.into_iter().map(|(_, row)| row);
        let sorted: Vec<u32> = match first.order.nulls_first {
            true => nulls.into_iter().chain(values).collect(),
            false => values.chain(nulls).collect(),
        };
        debug_assert_eq!(sorted.len(), goal.min(rows.row_count), "rows of a sort");
        debug_assert!(
            sorted.windows(2).all(|pair| {
                let [a, b] = [pair[0] as usize, pair[1] as usize];
                compare_by(&self.keys, (columns, a), (columns, b)).then(a.cmp(&b)).is_lt()
            }),
            "a sort returned rows that are not in order"
        );
        Ok(sorted)
    }

    /// Memory of sorting in bytes per row, in addition to the rows.
    pub(super) const ROW_BYTES: usize = 2 * size_of::<(u64, u32)>();
}

/// Returns the first `goal` items of an order, unsorted; all if there are no more.
fn cut<T>(mut items: Vec<T>, goal: usize, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    if goal < items.len() {
        if goal > 0 {
            items.select_nth_unstable_by(goal - 1, compare);
        }
        items.truncate(goal);
    }
    items
}

/// Compares row `i` of some columns with row `j` of others by some keys.
fn compare_by<V: Borrow<Vector>, W: Borrow<Vector>>(
    keys: &[OrderKey],
    (a, i): (&[V], usize),
    (b, j): (&[W], usize),
) -> Ordering {
    for key in keys {
        let (a, b): (&Vector, &Vector) = (a[key.column].borrow(), b[key.column].borrow());
        let order = key.order.compare((a, i), (b, j));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use types::Datum;
    use types::numeric::Numeric;

    use super::*;

    /// Returns values of a type that are close in its order, with NULLs.
    fn values(data_type: &DataType) -> Vec<Datum> {
        let texts = |texts: &[&str]| texts.iter().map(|text| Datum::text(*text)).collect();
        let floats =
            [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 1.5, -1e300];
        let mut values: Vec<Datum> = match data_type {
            DataType::Int4 => [0, -1, i32::MIN, i32::MAX, 7].map(Datum::Int4).into(),
            DataType::Int8 => [0, -1, i64::MIN, i64::MAX, 7].map(Datum::Int8).into(),
            DataType::Bool => [true, false].map(Datum::Bool).into(),
            DataType::Float8 => floats.map(Datum::Float8).into(),
            DataType::Float4 => floats.map(|float| Datum::Float4(float as f32)).into(),
            DataType::Numeric => ["0", "-1.5", "NaN", "1e40"]
                .map(|text| Datum::Numeric(Numeric::parse(text).unwrap()))
                .into(),
            DataType::Char => texts(&["a", "a   ", "a b", "", "  ", "phoenix  ", "phoenix x", "é"]),
            _ => texts(&["", "a", "a ", "abcdefgh", "abcdefghi", "abcdefghz", "abcdefg", "é", "z"]),
        };
        values.push(Datum::Null);
        values
    }

    #[test]
    fn sorted_rows_are_in_order_for_all_types() {
        let types = [
            DataType::Int4,
            DataType::Int8,
            DataType::Bool,
            DataType::Float4,
            DataType::Float8,
            DataType::Numeric,
            DataType::Text,
            DataType::Char,
        ];
        for data_type in types {
            let values = values(&data_type);
            // Each value three times, followed by a varying number.
            let rows: Vec<Vec<Datum>> = (0..values.len() * 3)
                .map(|i| vec![values[i * 5 % values.len()].clone(), Datum::Int4((i % 4) as i32)])
                .collect();
            let types = [data_type, DataType::Int4];
            let mut collected = ColumnRows::new(&types);
            collected.add(&Batch::from_rows(&types, &rows));
            for flags in 0..4 {
                let (descending, nulls_first) = (flags & 1 == 1, flags & 2 == 2);
                let key = |index: usize, descending: bool| SortKey {
                    expression: Expr::Column { index, data_type: types[index].clone() },
                    descending,
                    nulls_first,
                };
                let order = RowOrder::new(&[key(0, descending), key(1, true)], &types);
                let sort = |goal| order.sort(&collected, goal, &Interrupt::default()).unwrap();
                let sorted = sort(None);
                let columns = &collected.columns[..];
                for pair in sorted.windows(2) {
                    let [a, b] = [pair[0] as usize, pair[1] as usize];
                    let follows = order.compare((columns, a), (columns, b)).then(a.cmp(&b));
                    assert_eq!(follows, Ordering::Less, "{:?} {:?}", rows[a], rows[b]);
                }
                assert_eq!(sorted.len(), rows.len());
                for goal in [0, 1, 4, rows.len() - 1, rows.len() + 1] {
                    assert_eq!(sort(Some(goal)), sorted[..goal.min(sorted.len())], "{goal}");
                }
            }
        }
    }
}
