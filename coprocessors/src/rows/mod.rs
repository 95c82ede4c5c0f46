//! Batches of stored rows, and decoders of their columns.
//!
//! A scan returns cells, or slices of columnar blocks where no other cell hides or changes their
//! rows. [`StoredRows`] holds a batch of both, in scan order. A [`Decoder`] appends their columns
//! to vectors, for all rows or a selection, so that a filter decodes the columns of its condition
//! first and the others only for the rows that pass ([`FilteredDecoder`]). Plain scans and
//! endpoints read in this way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use store::scanner::{ScanStep, Scanner};
use store::{CellBatch, ColumnSlice, RowRef, Timestamp};
use types::expr::{EvalContext, Expr};
use types::rowcode::{RowDecoder, RowLayout};
use types::vector::VectorData;
use types::{Batch, DataType, Datum, Vector};

use crate::columns::{SliceDecoder, numbers};
use crate::row::{PackedCells, ReadColumns, RowError, read_packed_cells, vectors_for};

/// Pseudo column position: the commit time of the row, as `timestamptz`.
pub const TIMESTAMP_COLUMN: usize = usize::MAX;

/// Column position of the kind of a row version, as text: `PUT`, or `DELETE` for a deletion.
pub const OPERATION_COLUMN: usize = usize::MAX - 1;

/// Returns the type of a pseudo-column; `None` for a column of the layout.
pub fn pseudo_column_type(column: usize) -> Option<DataType> {
    match column {
        TIMESTAMP_COLUMN => Some(DataType::Timestamptz),
        OPERATION_COLUMN => Some(DataType::Text),
        _ => None,
    }
}
/// Microseconds from 1970-01-01, the epoch of cells, to 2000-01-01, the epoch of SQL.
pub const EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

/// Maximum number of rows that are copied to the preceding rows, so that a batch has few pieces.
const COPIED_ROWS: usize = 64;
/// Stored bytes at which a batch is full, regardless of its row count.
const BATCH_BYTES: u64 = 1 << 20;
/// Value bytes at which a batch is full; not all of them may be decoded.
const BATCH_VALUE_BYTES: u64 = 2 << 20;

/// A batch of rows that are not decoded yet.
#[derive(Default)]
pub struct StoredRows {
    /// In scan order.
    pieces: Vec<StoredRowsChunk>,
    row_count: usize,
    byte_count: u64,
    /// Uncompressed bytes of the values of slices.
    value_bytes: u64,
    /// Unused buffers.
    spare: Vec<CellBatch>,
}

/// Rows that were read together.
pub(crate) enum StoredRowsChunk {
    Cells(CellBatch),
    Slice(ColumnSlice),
}

impl StoredRowsChunk {
    fn row_count(&self) -> usize {
        match self {
            StoredRowsChunk::Cells(cells) => cells.row_count(),
            StoredRowsChunk::Slice(slice) => slice.row_count(),
        }
    }
}

impl StoredRows {
    /// Creates an empty batch.
    pub fn new() -> StoredRows {
        StoredRows::default()
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Returns whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.row_count == 0
    }

    /// Returns whether the batch is full, given a maximum number of rows.
    pub fn is_full(&self, row_limit: usize) -> bool {
        self.row_count >= row_limit
            || self.byte_count >= BATCH_BYTES
            || self.value_bytes >= BATCH_VALUE_BYTES
    }

    /// Returns whether some rows are slices.
    fn has_slices(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, StoredRowsChunk::Slice(_)))
    }

    /// Removes all rows and retains the memory.
    pub fn clear(&mut self) {
        self.row_count = 0;
        self.byte_count = 0;
        self.value_bytes = 0;
        let cells = self.pieces.drain(..).filter_map(|piece| match piece {
            StoredRowsChunk::Cells(cells) => Some(cells),
            StoredRowsChunk::Slice(_) => None,
        });
        self.spare.extend(cells);
    }

    /// Adds rows as cells: `read` fills a batch of cells.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn add_cells<E>(
        &mut self,
        read: impl FnOnce(&mut CellBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut cells = self.spare.pop().unwrap_or_default();
        cells.clear();
        read(&mut cells)?;
        self.push_cells(cells);
        Ok(())
    }

    fn push_cells(&mut self, cells: CellBatch) {
        self.row_count += cells.row_count();
        self.byte_count += cells.byte_count() as u64;
        match self.pieces.last_mut() {
            Some(StoredRowsChunk::Cells(last)) if cells.row_count() < COPIED_ROWS => {
                last.append(&cells);
                self.spare.push(cells);
            }
            _ if cells.is_empty() => self.spare.push(cells),
            _ => self.pieces.push(StoredRowsChunk::Cells(cells)),
        }
    }

    /// Adds the next rows of a scan until the batch is full. Returns `false` if the scan was read
    /// to its end.
    ///
    /// # Errors
    ///
    /// Those of the scan.
    pub fn read(&mut self, scanner: &mut Scanner, row_limit: usize) -> store::Result<bool> {
        while !self.is_full(row_limit) {
            let mut cells = self.spare.pop().unwrap_or_default();
            match scanner.next_columns(row_limit - self.row_count, &mut cells)? {
                ScanStep::Rows => self.push_cells(cells),
                ScanStep::Columns(slice) => {
                    self.spare.push(cells);
                    self.row_count += slice.row_count();
                    self.byte_count += slice.stored_bytes();
                    self.value_bytes += slice.value_bytes();
                    self.pieces.push(StoredRowsChunk::Slice(slice));
                }
                ScanStep::End => {
                    self.spare.push(cells);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns the keys of the selected rows (ascending), or of all.
    ///
    /// # Errors
    ///
    /// [`store::Error::Corrupt`].
    pub fn row_keys(&self, selection: Option<&[u32]>) -> store::Result<Vec<Vec<u8>>> {
        let mut found = Vec::with_capacity(selection.map_or(self.row_count, <[u32]>::len));
        self.each_piece::<store::Error>(selection, |piece, selection| {
            match piece {
                StoredRowsChunk::Cells(cells) => {
                    found.extend(
                        numbers(selection, cells.row_count())
                            .map(|row| cells.row(row).key().to_vec()),
                    );
                }
                StoredRowsChunk::Slice(slice) => {
                    let (mut keys, mut ends) = (Vec::new(), Vec::new());
                    let rows = numbers(selection, slice.row_count());
                    slice.append_row_keys(rows, &mut keys, &mut ends)?;
                    let mut start = 0;
                    for end in ends {
                        found.push(keys[start..end as usize].to_vec());
                        start = end as usize;
                    }
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the rows as they were read, in their order.
    pub(crate) fn chunks(&self) -> &[StoredRowsChunk] {
        &self.pieces
    }

    /// Calls `visit` for each piece with selected rows, with their numbers in the piece, or
    /// `None` for all.
    fn each_piece<E>(
        &self,
        selection: Option<&[u32]>,
        mut visit: impl FnMut(&StoredRowsChunk, Option<&[u32]>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut start, mut rest, mut local) = (0, selection, Vec::new());
        for piece in &self.pieces {
            let end = start + piece.row_count() as u32;
            let Some(selection) = &mut rest else {
                visit(piece, None)?;
                continue;
            };
            let count = selection.partition_point(|row| *row < end);
            let (here, behind) = selection.split_at(count);
            *selection = behind;
            if count == piece.row_count() {
                visit(piece, None)?;
            } else if count > 0 && start == 0 {
                visit(piece, Some(here))?;
            } else if count > 0 {
                local.clear();
                local.extend(here.iter().map(|row| row - start));
                visit(piece, Some(&local))?;
            }
            start = end;
        }
        Ok(())
    }
}

/// Decoder of some columns, for all forms of stored rows.
pub struct Decoder {
    layout: Arc<RowLayout>,
    /// The stored columns.
    stored: Vec<usize>,
    /// Output positions of pseudo-columns, ascending, with the columns.
    pseudo_columns: Vec<(usize, usize)>,
    /// Made when the first slice is seen: many decoders are made for a few rows, as cells.
    slices: OnceLock<SliceDecoder>,
}

impl Decoder {
    /// Returns a decoder of `columns`, positions in the layout or pseudo-columns.
    ///
    /// # Errors
    ///
    /// `XX001` if a slot of a family belongs to no column.
    pub fn new(layout: &Arc<RowLayout>, columns: &[usize]) -> types::Result<Decoder> {
        let is_stored = |column: usize| pseudo_column_type(column).is_none();
        let stored: Vec<usize> =
            columns.iter().copied().filter(|&column| is_stored(column)).collect();
        let pseudo_columns = columns.iter().copied().enumerate();
        let pseudo_columns = pseudo_columns.filter(|&(_, column)| !is_stored(column)).collect();
        let slices = OnceLock::new();
        Ok(Decoder { layout: Arc::clone(layout), stored, pseudo_columns, slices })
    }

    /// Returns the columns to read.
    pub fn read_columns(&self) -> ReadColumns {
        // A row has the timestamp of its newest cell. With column cells, each write of a row writes
        // the cells that are always read.
        match self.pseudo_columns.is_empty() || self.layout.has_column_cells() {
            true => ReadColumns::of(&self.layout, &self.stored),
            false => ReadColumns::default(),
        }
    }

    /// Returns the columns of the selected rows (ascending), or of all.
    ///
    /// # Errors
    ///
    /// [`store::Error::Corrupt`]; `XX001` if the bytes do not decode.
    pub fn decode(
        &self,
        rows: &StoredRows,
        selection: Option<&[u32]>,
        context: &EvalContext,
    ) -> Result<Vec<Arc<Vector>>, RowError> {
        let row_count = selection.map_or(rows.row_count, <[u32]>::len);
        let mut vectors = vectors_for(&self.layout, &self.stored, row_count);
        if !self.stored.is_empty() {
            rows.each_piece(selection, |piece, selection| {
                self.decode_piece(piece, selection, &mut vectors)
            })?;
        }
        let mut columns: Vec<Arc<Vector>> = vectors.into_iter().map(Arc::new).collect();
        for &(position, column) in &self.pseudo_columns {
            let vector = match column {
                OPERATION_COLUMN => operations(rows, selection)?,
                _ => timestamps(rows, selection, context)?,
            };
            columns.insert(position, Arc::new(vector));
        }
        Ok(columns)
    }

    fn slices(&self) -> types::Result<&SliceDecoder> {
        if let Some(slices) = self.slices.get() {
            return Ok(slices);
        }
        let slices = SliceDecoder::new(&self.layout, &self.stored)?;
        Ok(self.slices.get_or_init(|| slices))
    }

    fn decode_piece(
        &self,
        piece: &StoredRowsChunk,
        selection: Option<&[u32]>,
        vectors: &mut [Vector],
    ) -> Result<(), RowError> {
        let cells = match piece {
            StoredRowsChunk::Cells(cells) => cells,
            StoredRowsChunk::Slice(slice) => {
                return self.slices()?.decode(slice, selection, vectors);
            }
        };
        let decoder = RowDecoder::new(&self.layout, &self.stored)?;
        let mut packed = PackedCells::new();
        for row in numbers(selection, cells.row_count()) {
            let row = cells.row(row);
            read_packed_cells(&row, &self.layout, &mut packed);
            decoder.decode(row.key(), &packed, vectors)?;
        }
        Ok(())
    }
}

/// Returns the commit time of a row as timestamptz; for an uncommitted row, the transaction's own
/// time.
pub fn row_timestamp(row: &RowRef<'_>, context: &EvalContext) -> Datum {
    let newest = row.cells().map(|cell| cell.timestamp).max();
    Datum::Timestamptz(commit_time(newest, context))
}

fn commit_time(time: Option<Timestamp>, context: &EvalContext) -> i64 {
    match time {
        None | Some(Timestamp::LATEST) => context.transaction_timestamp(),
        Some(Timestamp(time)) => time.saturating_sub(EPOCH_MICROSECONDS),
    }
}

/// As [`row_timestamp`], for several rows.
fn timestamps(
    rows: &StoredRows,
    selection: Option<&[u32]>,
    context: &EvalContext,
) -> store::Result<Vector> {
    let time = |time| commit_time(time, context);
    let mut times = Vec::new();
    rows.each_piece::<store::Error>(selection, |piece, selection| {
        match piece {
            StoredRowsChunk::Cells(cells) => {
                let newest = |row: usize| cells.row(row).cells().map(|cell| cell.timestamp).max();
                let wanted = numbers(selection, cells.row_count());
                times.extend(wanted.map(|row| time(newest(row))));
            }
            StoredRowsChunk::Slice(slice) => {
                let all: Vec<Timestamp> = slice.timestamps()?.collect();
                let wanted = numbers(selection, slice.row_count());
                times.extend(wanted.map(|row| time(Some(all[row]))));
            }
        }
        Ok(())
    })?;
    Ok(Vector { data: VectorData::Timestamptz(times), validity: None })
}

/// Returns the kinds of row versions.
fn operations(rows: &StoredRows, selection: Option<&[u32]>) -> store::Result<Vector> {
    let mut kinds = Vector::new(&DataType::Text, rows.row_count);
    let mut push = |is_put: bool| kinds.push(&Datum::text(if is_put { "PUT" } else { "DELETE" }));
    rows.each_piece::<store::Error>(selection, |piece, selection| {
        match piece {
            StoredRowsChunk::Cells(cells) => {
                let is_put = |row| cells.row(row).cells().all(|cell| cell.cell_type.is_put());
                numbers(selection, cells.row_count()).for_each(|row| push(is_put(row)));
            }
            StoredRowsChunk::Slice(slice) => {
                numbers(selection, slice.row_count()).for_each(|_| push(true));
            }
        }
        Ok(())
    })?;
    Ok(kinds)
}

/// Decoder with a filter: decodes the columns of the condition first, and the others for the rows
/// that pass.
pub struct FilteredDecoder {
    /// The condition over the columns of `early`.
    filter: Option<Expr>,
    /// All columns, in their order: for rows from cells of which most pass.
    all: Decoder,
    /// The condition over the columns of `all`.
    filter_of_all: Option<Expr>,
    early: Decoder,
    late: Decoder,
    /// Position of each column: in `early`, or behind it in `late`.
    places: Vec<usize>,
    /// True if most rows of the last batch passed.
    most_pass: AtomicBool,
}

/// Rows that passed a filter.
pub struct FilteredRows {
    /// Their columns.
    pub batch: Batch,
    /// Their numbers among the decoded rows; `None` for all.
    pub selection: Option<Vec<u32>>,
    /// Error of the condition, for the row after the last one that was evaluated.
    pub failure: Option<types::Error>,
}

impl FilteredDecoder {
    /// Creates a decoder of `columns`, see [`Decoder::new`], for rows that pass `filter`, a
    /// condition over positions in this list.
    ///
    /// # Errors
    ///
    /// As for [`Decoder::new`].
    pub fn new(
        layout: &Arc<RowLayout>,
        columns: &[usize],
        filter: Option<&Expr>,
    ) -> types::Result<FilteredDecoder> {
        let used = filter.map_or_else(|| (0..columns.len()).collect(), Expr::columns);
        let (early, late): (Vec<usize>, Vec<usize>) =
            (0..columns.len()).partition(|position| used.contains(position));
        let order: Vec<usize> = early.iter().chain(&late).copied().collect();
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &position)| places[position] = place);
        let of_table = |positions: &[usize]| -> Vec<usize> {
            positions.iter().map(|&position| columns[position]).collect()
        };
        Ok(FilteredDecoder {
            filter: filter.map(|filter| filter.clone().remap_columns(&|at| places[at])),
            all: Decoder::new(layout, columns)?,
            filter_of_all: filter.cloned(),
            early: Decoder::new(layout, &of_table(&early))?,
            late: Decoder::new(layout, &of_table(&late))?,
            places,
            most_pass: AtomicBool::new(false),
        })
    }

    /// Returns the columns to read.
    pub fn read_columns(&self) -> ReadColumns {
        self.all.read_columns()
    }

    /// Returns the rows that pass; `None` if none does.
    ///
    /// # Errors
    ///
    /// As for [`Decoder::decode`]; those of the condition.
    pub fn decode(
        &self,
        rows: &StoredRows,
        context: &EvalContext,
    ) -> Result<Option<FilteredRows>, RowError> {
        let mut passed = self.decode_until(rows, context)?;
        match passed.as_mut().and_then(|passed| passed.failure.take()) {
            Some(failure) => Err(failure.into()),
            None => Ok(passed),
        }
    }

    /// As [`FilteredDecoder::decode`], but also returns the rows that passed before the condition
    /// failed: the caller may not need more.
    ///
    /// # Errors
    ///
    /// As for [`Decoder::decode`]; the error of the condition if no row passed before it.
    pub fn decode_until(
        &self,
        rows: &StoredRows,
        context: &EvalContext,
    ) -> Result<Option<FilteredRows>, RowError> {
        let row_count = rows.row_count();
        // Locating the columns of a packed row twice costs more than decoding some in vain.
        let at_once = self.late.stored.is_empty()
            || (self.most_pass.load(Ordering::Relaxed) && !rows.has_slices());
        let (first, filter) = match at_once {
            true => (&self.all, &self.filter_of_all),
            false => (&self.early, &self.filter),
        };
        let mut batch = Batch { columns: first.decode(rows, None, context)?, row_count };
        let mut failure = None;
        let selection = match filter {
            None => None,
            Some(filter) => {
                let passed;
                (passed, failure) = filter.filter_until(&batch, context);
                self.most_pass.store(passed.len() * 2 > row_count, Ordering::Relaxed);
                (passed.len() < row_count).then_some(passed)
            }
        };
        if row_count == 0 || selection.as_ref().is_some_and(Vec::is_empty) {
            return failure.map_or(Ok(None), |failure| Err(failure.into()));
        }
        if let Some(selection) = &selection {
            batch = batch.take(selection);
        }
        if !at_once {
            batch.columns.extend(self.late.decode(rows, selection.as_deref(), context)?);
            let columns = self.places.iter().map(|&place| Arc::clone(&batch.columns[place]));
            batch.columns = columns.collect();
        }
        Ok(Some(FilteredRows { batch, selection, failure }))
    }
}

#[cfg(test)]
mod tests;
