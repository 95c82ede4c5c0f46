//! Row order of ORDER BY, and the first n rows in that order.
//!
//! Used by regions for their first rows ([`FirstRows`]), and by the session to merge these.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::datatype::DataType;
use crate::expr::Expr;
use crate::vector::{Batch, Vector, VectorData, positions};

/// A sort key.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// The sorted expression.
    pub expression: Expr,
    /// Descending.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

impl SortKey {
    /// Returns the key as text, with its expression formatted by `text`.
    pub fn describe_with(&self, text: &dyn Fn(&Expr) -> String) -> String {
        let direction = if self.descending { " DESC" } else { "" };
        let nulls = match (self.nulls_first, self.descending) {
            (true, false) => " NULLS FIRST",
            (false, true) => " NULLS LAST",
            _ => "",
        };
        format!("{}{direction}{nulls}", text(&self.expression))
    }
}

/// Order of the values of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOrder {
    /// Type of the values.
    pub data_type: DataType,
    /// Descending.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

impl From<&SortKey> for KeyOrder {
    fn from(key: &SortKey) -> KeyOrder {
        KeyOrder {
            data_type: key.expression.data_type().clone(),
            descending: key.descending,
            nulls_first: key.nulls_first,
        }
    }
}

impl KeyOrder {
    /// Compares a value with one of another vector of the same representation.
    pub fn compare(&self, (a, row): (&Vector, usize), (b, other): (&Vector, usize)) -> Ordering {
        match (a.is_null(row), b.is_null(other)) {
            (false, false) => {
                let order = a.compare_typed(row, b, other, &self.data_type);
                if self.descending { order.reverse() } else { order }
            }
            (a_null, b_null) if self.nulls_first => b_null.cmp(&a_null),
            (a_null, b_null) => a_null.cmp(&b_null),
        }
    }

    /// Returns the rows whose value does not sort after row `last` of another vector, if there is
    /// a vectorized kernel for the type.
    fn rows_up_to(&self, keys: &Vector, (other, last): (&Vector, usize)) -> Option<Vec<u32>> {
        if keys.validity.is_some() || other.is_null(last) {
            return None;
        }
        Some(match (&keys.data, &other.data) {
            (VectorData::Int2(keys), VectorData::Int2(other)) => self.up_to(keys, other[last]),
            (VectorData::Int4(keys), VectorData::Int4(other))
            | (VectorData::Date(keys), VectorData::Date(other)) => self.up_to(keys, other[last]),
            (VectorData::Int8(keys), VectorData::Int8(other))
            | (VectorData::Time(keys), VectorData::Time(other))
            | (VectorData::Timestamp(keys), VectorData::Timestamp(other))
            | (VectorData::Timestamptz(keys), VectorData::Timestamptz(other)) => {
                self.up_to(keys, other[last])
            }
            _ => return None,
        })
    }

    /// Returns for some rows without NULLs numbers in the order of the values, and whether equal
    /// numbers imply equal values.
    pub fn sort_prefixes(&self, column: &Vector, rows: &[u32]) -> (Vec<u64>, bool) {
        let signed = |number: i64| number as u64 ^ 1 << 63;
        let float = |number: f64| {
            // In SQL's order: -0 equals 0, NaN is greatest.
            let bits = if number.is_nan() { f64::NAN.to_bits() } else { (number + 0.0).to_bits() };
            if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
        };
        let rows = || rows.iter().map(|row| *row as usize);
        let (mut numbers, are_exact): (Vec<u64>, bool) = match &column.data {
            VectorData::Bool(values) => (rows().map(|row| u64::from(values[row])).collect(), true),
            VectorData::Int2(values) => {
                (rows().map(|row| signed(i64::from(values[row]))).collect(), true)
            }
            VectorData::Int4(values) | VectorData::Date(values) => {
                (rows().map(|row| signed(i64::from(values[row]))).collect(), true)
            }
            VectorData::Int8(values)
            | VectorData::Time(values)
            | VectorData::Timestamp(values)
            | VectorData::Timestamptz(values) => {
                (rows().map(|row| signed(values[row])).collect(), true)
            }
            VectorData::Float4(values) => {
                (rows().map(|row| float(f64::from(values[row]))).collect(), true)
            }
            VectorData::Float8(values) => (rows().map(|row| float(values[row])).collect(), true),
            VectorData::Text(values) => {
                let is_char = self.data_type == DataType::Char;
                let head = |row| first_bytes(values.get(row), is_char);
                (rows().map(head).collect(), false)
            }
            VectorData::Bytea(values) => {
                (rows().map(|row| first_bytes(values.get(row), false)).collect(), false)
            }
            _ => (vec![0; rows().len()], false),
        };
        if self.descending {
            numbers.iter_mut().for_each(|number| *number = !*number);
        }
        (numbers, are_exact)
    }

    fn up_to<T: Copy + Ord>(&self, keys: &[T], last: T) -> Vec<u32> {
        match self.descending {
            true => positions(keys.iter().map(|key| *key >= last)),
            false => positions(keys.iter().map(|key| *key <= last)),
        }
    }
}

/// Returns the first eight bytes, without insignificant trailing blanks, as a number with the
/// same order.
fn first_bytes(bytes: &[u8], without_blanks: bool) -> u64 {
    let mut head = [0; 8];
    let length = match without_blanks {
        true => bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1),
        false => bytes.len(),
    };
    let length = length.min(8);
    head[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(head)
}

/// Compares a row of key columns with a row of other key columns.
pub fn compare_rows<'v>(
    orders: &[KeyOrder],
    (a, row): (impl IntoIterator<Item = &'v Vector>, usize),
    (b, other): (impl IntoIterator<Item = &'v Vector>, usize),
) -> Ordering {
    for ((order, a), b) in orders.iter().zip(a).zip(b) {
        let order = order.compare((a, row), (b, other));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// The first rows in a sort order of all added rows; equal rows keep their input order.
///
/// # Invariants
///
/// 1. No row that was dropped, here or by [`FirstRows::candidates`], is among the first.
/// 2. Rows are in input order.
///
/// A property test compares the rows with those of a stable sort. In debug builds,
/// [`FirstRows::check`] asserts that all columns and keys have the same rows.
pub struct FirstRows {
    orders: Vec<KeyOrder>,
    /// Maximum number of rows.
    goal: usize,
    columns: Vec<Vector>,
    keys: Vec<Vector>,
    row_count: usize,
    /// The last row of the result so far, once there were more rows than the maximum: only rows
    /// that sort before it can be in the result.
    last: Option<usize>,
    /// Heap bytes of numerics outside the columns.
    numeric_bytes: usize,
}

/// Minimum number of rows that are accumulated before a cut.
const SLACK_ROWS: usize = 1024;

impl FirstRows {
    /// Creates an empty result; `goal` is the maximum number of rows, `usize::MAX` for no limit.
    pub fn new(types: &[DataType], orders: Vec<KeyOrder>, goal: usize) -> FirstRows {
        let vector = |data_type: &DataType| Vector::new(data_type, 0);
        FirstRows {
            columns: types.iter().map(vector).collect(),
            keys: orders.iter().map(|order| vector(&order.data_type)).collect(),
            orders,
            goal,
            row_count: 0,
            last: None,
            numeric_bytes: 0,
        }
    }

    /// Returns the rows that may be among the first, judging by a prefix of their keys (at least
    /// one); `None` if all may.
    pub fn candidates(&self, keys: &[Arc<Vector>], row_count: usize) -> Option<Vec<u32>> {
        if self.goal == 0 {
            return Some(Vec::new());
        }
        let candidates = match self.last {
            Some(last) => self.not_behind(last, keys, row_count),
            None if row_count <= self.goal => return None,
            None => (0..row_count as u32).collect(),
        };
        let candidates = self.first_of(candidates, keys);
        (candidates.len() < row_count).then_some(candidates)
    }

    /// Returns the rows that do not sort after row `last` of the result.
    fn not_behind(&self, last: usize, keys: &[Arc<Vector>], row_count: usize) -> Vec<u32> {
        // A row that is equal in all keys sorts after the last; if only a prefix is known, it may
        // sort before.
        let worst = if keys.len() < self.orders.len() { Ordering::Equal } else { Ordering::Less };
        let stays = |row: &u32| {
            let keys = keys.iter().map(Arc::as_ref);
            compare_rows(&self.orders, (keys, *row as usize), (&self.keys, last)) <= worst
        };
        let by_first_key = match (self.orders.first(), keys.first()) {
            (Some(order), Some(key)) => order.rows_up_to(key, (&self.keys[0], last)),
            _ => None,
        };
        match by_first_key {
            Some(rows) => rows.into_iter().filter(stays).collect(),
            None => (0..row_count as u32).filter(stays).collect(),
        }
    }

    /// Returns the ascending `rows` that may be among their first `goal`. This matters for input
    /// in the opposite order, where each batch sorts before all earlier rows.
    fn first_of(&self, mut rows: Vec<u32>, keys: &[Arc<Vector>]) -> Vec<u32> {
        if rows.len() <= self.goal {
            return rows;
        }
        let by_keys = |a: u32, b: u32| {
            let keys = || keys.iter().map(Arc::as_ref);
            compare_rows(&self.orders, (keys(), a as usize), (keys(), b as usize))
        };
        let mut sorted = rows.clone();
        let place = self.goal - 1;
        let (_, last, _) =
            sorted.select_nth_unstable_by(place, |a, b| by_keys(*a, *b).then(a.cmp(b)));
        let last = *last;
        let whole = keys.len() == self.orders.len();
        rows.retain(|row| match by_keys(*row, last) {
            Ordering::Less => true,
            Ordering::Equal => !whole || *row <= last,
            Ordering::Greater => false,
        });
        rows
    }

    /// Adds the rows that may be among the first.
    pub fn add_candidates(&mut self, rows: Batch, keys: Vec<Arc<Vector>>) {
        let Some(wanted) = self.candidates(&keys, rows.row_count) else {
            return self.add(&rows.columns, &keys, rows.row_count);
        };
        let keys = Batch { columns: keys, row_count: rows.row_count }.take(&wanted);
        let rows = rows.take(&wanted);
        self.add(&rows.columns, &keys.columns, rows.row_count);
    }

    /// Adds rows, given as columns and keys.
    pub fn add(&mut self, columns: &[Arc<Vector>], keys: &[Arc<Vector>], row_count: usize) {
        debug_assert_eq!(columns.len(), self.columns.len(), "all columns are added to");
        debug_assert_eq!(keys.len(), self.keys.len(), "all keys are added to");
        let parts = self.columns.iter_mut().chain(&mut self.keys);
        for (all, one) in parts.zip(columns.iter().chain(keys)) {
            all.append(one);
            self.numeric_bytes += one.byte_count() - one.flat_byte_count();
        }
        self.row_count += row_count;
        self.check();
        if self.row_count >= self.goal.saturating_add(self.goal.min(SLACK_ROWS)) {
            self.prune();
        }
    }

    /// Asserts that all columns have all rows.
    fn check(&self) {
        debug_assert_eq!(self.keys.len(), self.orders.len(), "a key for each order");
        let mut all = self.columns.iter().chain(&self.keys);
        debug_assert!(all.all(|column| column.len() == self.row_count), "{} rows", self.row_count);
        debug_assert!(self.last.is_none_or(|last| last < self.row_count), "{:?}", self.last);
    }

    /// Drops the rows that are not among the first.
    pub fn prune(&mut self) {
        if self.row_count <= self.goal || self.goal == 0 {
            return;
        }
        let mut order: Vec<u32> = (0..self.row_count as u32).collect();
        order.select_nth_unstable_by(self.goal - 1, |a, b| self.compare(*a, *b));
        order.truncate(self.goal);
        let last = order[self.goal - 1];
        order.sort_unstable();
        self.last = order.binary_search(&last).ok();
        self.row_count = self.goal;
        self.numeric_bytes = 0;
        for column in self.columns.iter_mut().chain(&mut self.keys) {
            *column = column.take(&order);
            self.numeric_bytes += column.byte_count() - column.flat_byte_count();
        }
        self.check();
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        let order = compare_rows(&self.orders, (&self.keys, a as usize), (&self.keys, b as usize));
        order.then(a.cmp(&b))
    }

    /// Returns the columns, the keys and the number of rows, in input order.
    pub fn into_unsorted(mut self) -> (Vec<Vector>, Vec<Vector>, usize) {
        self.prune();
        (self.columns, self.keys, self.row_count)
    }

    /// Returns the columns, and the sorted numbers of the first rows.
    pub fn into_sorted(mut self) -> (Vec<Vector>, Vec<u32>) {
        self.prune();
        let mut order: Vec<u32> = (0..self.row_count.min(self.goal) as u32).collect();
        order.sort_unstable_by(|a, b| self.compare(*a, *b));
        (self.columns, order)
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        let columns = self.columns.iter().chain(&self.keys).map(Vector::flat_byte_count);
        columns.sum::<usize>() + self.numeric_bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::datum::Datum;

    /// Adds the rows of a batch that may be among the first, sorted by its first columns; a
    /// prefix of `early` keys selects them before the others are compared.
    fn add(rows: &mut FirstRows, batch: &Batch, early: usize) {
        let candidates = rows.candidates(&batch.columns[..early], batch.row_count);
        let batch = candidates.map_or_else(|| batch.clone(), |candidates| batch.take(&candidates));
        let keys = batch.columns[..rows.orders.len()].to_vec();
        rows.add_candidates(batch, keys);
    }

    fn batches(rows: &[(Option<i32>, i32)], size: usize) -> Vec<Batch> {
        let row = |(number, (a, b)): (usize, &(Option<i32>, i32))| {
            let a = a.map_or(Datum::Null, Datum::Int4);
            vec![a, Datum::text(format!("{b:03}")), Datum::Int8(number as i64)]
        };
        let rows: Vec<Vec<Datum>> = rows.iter().enumerate().map(row).collect();
        let types = [DataType::Int4, DataType::Text, DataType::Int8];
        rows.chunks(size).map(|rows| Batch::from_rows(&types, rows)).collect()
    }

    proptest! {
        #[test]
        fn top_n_matches_stable_sort(
            rows in prop::collection::vec((prop::option::of(0..6_i32), 0..4_i32), 0..200),
            goal in prop_oneof![0..12_usize, Just(150), Just(usize::MAX)],
            (a_descends, b_descends, nulls_first) in any::<(bool, bool, bool)>(),
            size in 1..40_usize,
            early in 1..3_usize,
        ) {
            let order = |data_type: DataType, descending: bool| {
                KeyOrder { data_type, descending, nulls_first }
            };
            let orders = [order(DataType::Int4, a_descends), order(DataType::Text, b_descends)];
            let types = [DataType::Int4, DataType::Text, DataType::Int8];
            let mut first = FirstRows::new(&types, orders.to_vec(), goal);
            // The same with parts, each cut to its first rows.
            let mut merged = FirstRows::new(&types, orders.to_vec(), goal);
            for batch in batches(&rows, size) {
                add(&mut first, &batch, early);
                let mut part = FirstRows::new(&types, orders.to_vec(), goal);
                add(&mut part, &batch, early);
                let (columns, _, row_count) = part.into_unsorted();
                let columns = columns.into_iter().map(Arc::new).collect();
                add(&mut merged, &Batch { columns, row_count }, 2);
            }
            let mut expected: Vec<(usize, (Option<i32>, i32))> =
                rows.iter().copied().enumerate().collect();
            expected.sort_by(|(_, a), (_, b)| {
                let direct = |order: Ordering, descends: bool| {
                    if descends { order.reverse() } else { order }
                };
                let nulls = match (a.0, b.0) {
                    (Some(a), Some(b)) => direct(a.cmp(&b), a_descends),
                    (a, b) if nulls_first => a.is_some().cmp(&b.is_some()),
                    (a, b) => a.is_none().cmp(&b.is_none()),
                };
                nulls.then(direct(a.1.cmp(&b.1), b_descends))
            });
            let expected: Vec<i64> =
                expected.iter().take(goal).map(|(number, _)| *number as i64).collect();
            for rows in [first, merged] {
                let (columns, order) = rows.into_sorted();
                let numbers = columns[2].take(&order);
                let numbers: Vec<i64> =
                    (0..order.len()).map(|row| numbers.datum(row).as_i64().unwrap()).collect();
                prop_assert_eq!(&numbers, &expected);
            }
        }
    }
}
