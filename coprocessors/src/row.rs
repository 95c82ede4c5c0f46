//! Row decoding: cells of the store to column values, by a layout.
//!
//! A row of ROW storage has one cell per family, with an empty qualifier, that holds a packed row
//! ([`RowLayout`]). These functions find the packed slices of a row and decode the requested
//! columns without an allocation per row. The SQL executor and the coprocessors use them.

use smallvec::SmallVec;
use store::{CellBatch, RowRef};
use types::Vector;
use types::rowcode::{ColumnPlace, RowDecoder, RowLayout, key_loses_form};

use crate::violation;

/// An error while reading rows.
#[derive(Debug)]
pub enum RowError {
    /// The store failed.
    Store(store::Error),
    /// A value is corrupt, or the evaluation of a condition failed.
    Value(types::Error),
}

impl From<store::Error> for RowError {
    fn from(error: store::Error) -> RowError {
        RowError::Store(error)
    }
}

impl From<types::Error> for RowError {
    fn from(error: types::Error) -> RowError {
        RowError::Value(error)
    }
}

impl RowError {
    /// Returns the store error; a value error becomes a veto of this coprocessor.
    pub fn into_store_error(self, coprocessor: &str) -> store::Error {
        match self {
            RowError::Store(error) => error,
            RowError::Value(error) => violation::value_error(coprocessor, error),
        }
    }
}

/// The packed row of each family, by family; `None` where the family has no cell.
pub type PackedCells<'a> = SmallVec<[Option<&'a [u8]>; 2]>;

/// Returns the packed rows of a row, by family.
pub fn packed_cells<'a>(row: &RowRef<'a>, family_count: usize) -> PackedCells<'a> {
    let mut packed: PackedCells<'a> = SmallVec::from_elem(None, family_count);
    for (family, value) in row.values(&[]) {
        if let Some(slot) = packed.get_mut(usize::from(family))
            && slot.is_none()
        {
            *slot = Some(value);
        }
    }
    packed
}

/// Appends the `columns` (positions in table order) of all rows of a batch to `vectors`, decoding
/// only those.
///
/// # Errors
///
/// `XX001` if the bytes do not decode.
pub fn decode_batch(
    layout: &RowLayout,
    columns: &[usize],
    batch: &CellBatch,
    vectors: &mut [Vector],
) -> types::Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    let decoder = RowDecoder::new(layout, columns)?;
    for row in batch.rows() {
        decoder.decode(row.key(), &packed_cells(&row, layout.family_count), vectors)?;
    }
    Ok(())
}

/// Returns empty vectors for `columns` (positions in table order).
pub fn vectors_for(layout: &RowLayout, columns: &[usize], capacity: usize) -> Vec<Vector> {
    let vector = |&column: &usize| Vector::new(&layout.columns[column].data_type, capacity);
    columns.iter().map(vector).collect()
}

/// Returns the families that a scan must read for these columns, for
/// [`Scan::families`](store::Scan::families): `None` for all. Family 0 is always included,
/// because its cell determines the existence of a row; if it may expire before the row, all
/// families are needed.
pub fn families_of(layout: &RowLayout, columns: &[usize]) -> Option<Vec<u8>> {
    if !layout.is_first_family_permanent() {
        return None;
    }
    let mut wanted: SmallVec<[bool; 8]> = SmallVec::from_elem(false, layout.family_count);
    if let Some(first) = wanted.first_mut() {
        *first = true;
    }
    for &column in columns {
        if let ColumnPlace::Packed { family, .. } = layout.columns[column].place {
            wanted[family] = true;
        }
    }
    if wanted.iter().all(|&is_wanted| is_wanted) {
        return None;
    }
    let families = wanted.iter().enumerate().filter(|&(_, &is_wanted)| is_wanted);
    Some(families.map(|(family, _)| family as u8).collect())
}

/// Returns the families that store these columns, ascending. A key column whose key does not
/// preserve the value's original form is also stored in family 0.
pub(crate) fn families_with(layout: &RowLayout, columns: &[usize]) -> Vec<usize> {
    let family = |&column: &usize| match layout.columns[column].place {
        ColumnPlace::Packed { family, .. } => Some(family),
        ColumnPlace::Key(_) => key_loses_form(&layout.columns[column].data_type).then_some(0),
    };
    let mut families: Vec<usize> = columns.iter().filter_map(family).collect();
    families.sort_unstable();
    families.dedup();
    families
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{key, layout, row_of_cells, stored_row, text};
    use types::{DataType, Datum};

    fn two_families() -> RowLayout {
        let columns = [(DataType::Int4, 0), (DataType::Text, 0), (DataType::Int8, 1)];
        layout(&columns, &[key(0, false)], 0)
    }

    #[test]
    fn cells_are_found_by_family() {
        let batch = row_of_cells(b"r", &[(1, b"b", 1), (5, b"x", 1)]);
        let packed = packed_cells(&batch.row(0), 2);
        assert_eq!(packed[..], [None, Some(&b"b"[..])]);
    }

    #[test]
    fn scan_reads_needed_families_and_first() {
        let layout = two_families();
        assert_eq!(families_of(&layout, &[0]), Some(vec![0]));
        assert_eq!(families_of(&layout, &[1]), Some(vec![0]));
        assert_eq!(families_of(&layout, &[2]), None);
    }

    #[test]
    fn only_requested_columns_are_decoded() {
        let layout = two_families();
        let values = [Datum::Int4(7), text("x"), Datum::Null];
        let cells = stored_row(&layout, &values, 1);
        let columns = [2, 0];
        let mut vectors = vectors_for(&layout, &columns, 1);
        decode_batch(&layout, &columns, &cells, &mut vectors).unwrap();
        decode_batch(&layout, &columns, &cells, &mut vectors).unwrap();
        assert_eq!(vectors[0].len(), 2);
        assert_eq!(vectors[0].datum(1), Datum::Null);
        assert_eq!(vectors[1].datum(1), Datum::Int4(7));
    }
}
