//! Row decoding: cells of the store to column values, by a layout.
//!
//! A row of ROW storage has one cell for each family, with an empty qualifier; one of CELL storage
//! has also one for each column. A cell holds a packed row ([`RowLayout`]). These functions name
//! the cells that a read needs, find them in a row and decode the requested columns without an
//! allocation per row. The SQL executor and the coprocessors use them.

use smallvec::SmallVec;
use store::error::RejectedPut;
use store::scan::FamilyRead;
use store::{CellBatch, Get, Mutation, RowRef, Scan};
use types::rowcode::{ColumnPlace, RowDecoder, RowLayout, key_loses_form};
use types::{Datum, Vector};

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

/// The packed rows of a row, by the numbers of its cells in the layout; `None` where the row has
/// no such cell.
pub type PackedCells<'a> = SmallVec<[Option<&'a [u8]>; 2]>;

/// Returns the packed rows of a row.
#[inline]
pub fn packed_cells<'a>(row: &RowRef<'a>, layout: &RowLayout) -> PackedCells<'a> {
    let mut packed = PackedCells::new();
    read_packed_cells(row, layout, &mut packed);
    packed
}

/// Replaces the content of `packed` by the packed rows of a row.
#[inline]
pub fn read_packed_cells<'a>(row: &RowRef<'a>, layout: &RowLayout, packed: &mut PackedCells<'a>) {
    packed.clear();
    packed.resize(layout.cell_count(), None);
    if layout.has_column_cells() {
        return read_column_cells(row, layout, packed);
    }
    for (family, value) in row.values(&[]) {
        if let Some(slot) = packed.get_mut(usize::from(family))
            && slot.is_none()
        {
            *slot = Some(value);
        }
    }
}

fn read_column_cells<'a>(row: &RowRef<'a>, layout: &RowLayout, packed: &mut PackedCells<'a>) {
    for cell in row.cells() {
        if let Some(number) = layout.cell_named(usize::from(cell.family), cell.qualifier)
            && let Some(slot) = packed.get_mut(number)
            && slot.is_none()
        {
            *slot = Some(cell.value);
        }
    }
}

/// Returns the packed rows that a rejected mutation puts.
pub fn packed_puts<'a>(puts: &'a [RejectedPut], layout: &RowLayout) -> PackedCells<'a> {
    let mut packed: PackedCells<'a> = SmallVec::from_elem(None, layout.cell_count());
    for RejectedPut { family, qualifier, value } in puts {
        let number = layout.cell_named(usize::from(*family), qualifier);
        if let Some(slot) = number.and_then(|number| packed.get_mut(number)) {
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
    let mut packed = PackedCells::new();
    for row in batch.rows() {
        read_packed_cells(&row, layout, &mut packed);
        decoder.decode(row.key(), &packed, vectors)?;
    }
    Ok(())
}

/// Adds the puts of all cells of a row, with its values in table order.
///
/// # Errors
///
/// `42804` if a value is not of its column's type.
pub fn puts_of_row(
    layout: &RowLayout,
    mutation: Mutation,
    values: &[Datum],
) -> types::Result<Mutation> {
    let cells = (0..layout.cell_count()).filter(|&cell| layout.is_stored(cell));
    cells.into_iter().try_fold(mutation, |mutation, cell| {
        let family = layout.family_of_cell(cell) as u8;
        Ok(mutation.put(family, layout.qualifier_of_cell(cell), layout.pack(cell, values)?))
    })
}

/// Returns empty vectors for `columns` (positions in table order).
pub fn vectors_for(layout: &RowLayout, columns: &[usize], capacity: usize) -> Vec<Vector> {
    let vector = |&column: &usize| Vector::new(&layout.columns[column].data_type, capacity);
    columns.iter().map(vector).collect()
}

/// The families and columns that a read of rows needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadColumns {
    /// The families; `None` for all.
    pub families: Option<Vec<u8>>,
    /// The columns of each family; those of a family without an entry are read whole.
    pub family_reads: Vec<FamilyRead>,
}

impl ReadColumns {
    /// Returns what a read of these columns needs. The cell of family 0 is always included,
    /// because it determines the existence of a row; if it is not permanent, those of all families
    /// are needed.
    pub fn of(layout: &RowLayout, columns: &[usize]) -> ReadColumns {
        if layout.has_column_cells() {
            return ReadColumns::of_cells(layout, cells_with(layout, columns));
        }
        ReadColumns { families: families_of(layout, columns), family_reads: Vec::new() }
    }

    /// Returns what a read of all columns and of the version of a row needs: cells of columns that
    /// the layout does not have are left out.
    pub fn of_whole_rows(layout: &RowLayout) -> ReadColumns {
        match layout.has_column_cells() {
            true => ReadColumns::of_cells(layout, 0..layout.cell_count()),
            false => ReadColumns::default(),
        }
    }

    fn of_cells(layout: &RowLayout, cells: impl IntoIterator<Item = usize>) -> ReadColumns {
        let mut reads: Vec<Vec<Vec<u8>>> = vec![Vec::new(); layout.family_count];
        let cells = layout.row_cells().chain(cells);
        for cell in cells.filter(|&cell| layout.is_stored(cell)) {
            let qualifier = layout.qualifier_of_cell(cell).to_vec();
            reads[layout.family_of_cell(cell)].push(qualifier);
        }
        let mut wanted = ReadColumns { families: Some(Vec::new()), family_reads: Vec::new() };
        for (family, mut columns) in (0u8..).zip(reads).filter(|(_, columns)| !columns.is_empty()) {
            columns.sort_unstable();
            columns.dedup();
            wanted.families.get_or_insert_default().push(family);
            let columns = Some(columns);
            wanted.family_reads.push(FamilyRead { family, columns, ..FamilyRead::default() });
        }
        wanted
    }

    /// Returns a scan of these columns.
    #[must_use]
    pub fn scan(&self, scan: Scan) -> Scan {
        let (families, family_reads) = (self.families.clone(), self.family_reads.clone());
        Scan { families, family_reads, ..scan }
    }

    /// Returns a get of these columns.
    #[must_use]
    pub fn get(&self, get: Get) -> Get {
        let (families, family_reads) = (self.families.clone(), self.family_reads.clone());
        Get { families, family_reads, ..get }
    }
}

/// Returns the families that store these columns and the existence of rows; `None` for all.
fn families_of(layout: &RowLayout, columns: &[usize]) -> Option<Vec<u8>> {
    if !layout.is_first_family_permanent() {
        return None;
    }
    let mut wanted: SmallVec<[bool; 8]> = SmallVec::from_elem(false, layout.family_count);
    if let Some(first) = wanted.first_mut() {
        *first = true;
    }
    for &column in columns {
        if let Some(family) = layout.family_of(column) {
            wanted[family] = true;
        }
    }
    if wanted.iter().all(|&is_wanted| is_wanted) {
        return None;
    }
    let families = wanted.iter().enumerate().filter(|&(_, &is_wanted)| is_wanted);
    Some(families.map(|(family, _)| family as u8).collect())
}

/// Returns the cells that store these columns, ascending. A key column whose key does not
/// preserve the value's original form is also stored in cell 0.
pub(crate) fn cells_with(layout: &RowLayout, columns: &[usize]) -> Vec<usize> {
    let cell = |&column: &usize| match layout.columns[column].place {
        ColumnPlace::Packed { cell, .. } => Some(cell),
        ColumnPlace::Key(_) => key_loses_form(&layout.columns[column].data_type).then_some(0),
    };
    let mut cells: Vec<usize> = columns.iter().filter_map(cell).collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{key, layout, row_of_cells, stored_row, text};
    use types::DataType;

    fn two_families() -> RowLayout {
        let columns = [(DataType::Int4, 0), (DataType::Text, 0), (DataType::Int8, 1)];
        layout(&columns, &[key(0, false)], 0)
    }

    #[test]
    fn cells_are_found_by_family() {
        let batch = row_of_cells(b"r", &[(1, b"b", 1), (5, b"x", 1)]);
        let packed = packed_cells(&batch.row(0), &two_families());
        assert_eq!(packed[..], [None, Some(&b"b"[..])]);
    }

    #[test]
    fn scan_reads_needed_families_and_first() {
        let layout = two_families();
        let families = |column: usize| ReadColumns::of(&layout, &[column]).families;
        assert_eq!(families(0), Some(vec![0]));
        assert_eq!(families(1), Some(vec![0]));
        assert_eq!(families(2), None);
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
