//! Sizes of rows, for splitting rows with long values into batches.

use std::borrow::Borrow;

use super::{BATCH_BYTES, BATCH_ROWS, Vector, VectorData};
use crate::datum::Nested;

/// The columns of some rows with possibly long values.
pub struct RowSizes<'a> {
    columns: Vec<&'a Vector>,
}

impl<'a> RowSizes<'a> {
    /// Creates the sizes of rows that are output once each.
    pub fn of<V: Borrow<Vector>>(columns: &'a [V]) -> RowSizes<'a> {
        let columns: Vec<&Vector> = columns.iter().map(Borrow::borrow).collect();
        let all: usize = columns.iter().map(|column| data_bytes(column)).sum();
        let is_long = |column: &&Vector| data_bytes(column) > 0;
        match all > BATCH_BYTES {
            true => RowSizes { columns: columns.into_iter().filter(is_long).collect() },
            false => RowSizes { columns: Vec::new() },
        }
    }

    /// Creates the sizes of rows that may be output any number of times. Values that rows share
    /// are not counted.
    pub fn repeated<V: Borrow<Vector>>(columns: &'a [V]) -> RowSizes<'a> {
        let columns = columns.iter().map(Borrow::borrow);
        let may_be_long = |column: &&Vector| {
            let bytes = column.as_bytes_vector().map_or(0, |values| values.bytes.len());
            bytes > BATCH_BYTES / BATCH_ROWS
        };
        RowSizes { columns: columns.filter(may_be_long).collect() }
    }

    /// Returns whether the values of all rows are short.
    pub fn is_short(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the bytes of the possibly long values of a row.
    #[inline]
    pub fn byte_count(&self, row: usize) -> usize {
        self.columns.iter().map(|column| value_bytes(column, row)).sum()
    }

    /// Returns the number of leading rows that fit one batch: at least one if there are any.
    pub fn batch_len(&self, rows: impl IntoIterator<Item = usize>) -> usize {
        self.len_within(BATCH_BYTES, rows.into_iter().take(BATCH_ROWS))
    }

    /// As [`RowSizes::batch_len`], with a limit of bytes.
    pub fn len_within(&self, byte_limit: usize, rows: impl IntoIterator<Item = usize>) -> usize {
        let rows = rows.into_iter();
        if self.is_short() {
            return rows.count();
        }
        let (mut bytes, mut count) = (0, 0);
        for row in rows {
            bytes += self.byte_count(row);
            if bytes > byte_limit && count > 0 {
                break;
            }
            count += 1;
        }
        count
    }

    /// Splits rows into batches.
    pub fn batches<'r>(&'r self, mut rows: &'r [u32]) -> impl Iterator<Item = &'r [u32]> {
        std::iter::from_fn(move || {
            let count = self.batch_len(rows.iter().map(|row| *row as usize));
            let (batch, rest) = rows.split_at(count);
            rows = rest;
            (count > 0).then_some(batch)
        })
    }
}

/// Returns the bytes of all values of a column with variable lengths.
fn data_bytes(column: &Vector) -> usize {
    match &column.data {
        VectorData::Text(values) | VectorData::Bytea(values) => values.bytes.len(),
        VectorData::Nested(values) => values.iter().map(Nested::heap_bytes).sum(),
        _ => 0,
    }
}

#[inline]
fn value_bytes(column: &Vector, row: usize) -> usize {
    match &column.data {
        VectorData::Text(values) | VectorData::Bytea(values) => values.get(row).len(),
        VectorData::Nested(values) => values[row].heap_bytes(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType, Datum};

    fn texts(lengths: &[usize]) -> Vector {
        let mut column = Vector::new(&DataType::Text, 0);
        lengths.iter().for_each(|length| column.push(&Datum::text("x".repeat(*length))));
        column
    }

    #[test]
    fn batches_of_long_values_are_limited_by_bytes() {
        let half = BATCH_BYTES / 2;
        let columns = [texts(&[half, half, half, 3 * half, 1, 1]), texts(&[0, 0, 0, 0, 0, 0])];
        let sizes = RowSizes::of(&columns);
        let rows = [0, 1, 2, 3, 4, 5];
        let batches: Vec<&[u32]> = sizes.batches(&rows).collect();
        assert_eq!(batches, [&[0, 1][..], &[2], &[3], &[4, 5]]);
        assert_eq!(sizes.len_within(1, [4, 5]), 1);
        assert_eq!(sizes.batch_len([]), 0);
    }

    #[test]
    fn batches_of_short_values_are_limited_by_row_count() {
        let columns = [texts(&vec![10; BATCH_ROWS + 7])];
        let sizes = RowSizes::of(&columns);
        assert!(sizes.is_short());
        let rows: Vec<u32> = (0..columns[0].len() as u32).collect();
        let lengths: Vec<usize> = sizes.batches(&rows).map(<[u32]>::len).collect();
        assert_eq!(lengths, [BATCH_ROWS, 7]);
        // Output repeatedly, one of them exceeds a batch.
        let one = [texts(&[half_of_a_batch()])];
        assert!(RowSizes::of(&one).is_short());
        assert_eq!(RowSizes::repeated(&one).batch_len([0; 9]), 2);
    }

    fn half_of_a_batch() -> usize {
        BATCH_BYTES / 2
    }
}
