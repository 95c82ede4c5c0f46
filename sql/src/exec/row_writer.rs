//! Row writer: encodes rows as mutations and stages them in batches; and decoding of single rows.
//!
//! INSERT, UPDATE, DELETE, MERGE and COPY stage their rows through [`RowWriter`]; the store runs
//! constraints, index maintenance and coprocessors as observers of the staged mutations.

use std::sync::Arc;
use std::time::Duration;

use ahash::AHashSet;
use coprocessors::row::{packed_cells, packed_puts};
use coprocessors::rows::EPOCH_MICROSECONDS;
use smallvec::SmallVec;
use store::error::RejectedPut;
use store::transaction::Locking;
use store::transaction::{PreviousRow, RowExpectation};
use store::{CellBatch, Edit, Get, Mutation, Timestamp};
use types::Datum;
use types::expr::Expr;
use types::interruptible::InterruptPacer;
use types::rowcode::{ColumnPlace, RowLayout, RowPacker, key_loses_form};

use crate::ast::CellAttributes;
use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::exec::Context;
use crate::exec::duplicate_key_errors;

/// Maximum number of mutations in a batch.
const BATCH_MUTATIONS: usize = 1000;
/// Size of new and previous values in bytes at which a batch is staged.
const BATCH_MUTATION_BYTES: usize = 1 << 20;

/// Attributes of the cells that a statement writes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct CellStamp {
    /// Timestamp of puts; a delete masks the versions up to it. `None` for the commit time.
    pub timestamp: Option<Timestamp>,
    /// Timestamp of the only version that a delete masks.
    pub version: Option<Timestamp>,
    /// Age at which puts expire.
    pub ttl: Option<Duration>,
}

impl CellStamp {
    /// Evaluates the attributes of a statement.
    ///
    /// # Errors
    ///
    /// 22004 for NULL; 22008 for a time in the future, or that is not finite; 22023 for a TTL
    /// that is less than a millisecond.
    pub(super) fn of(attributes: &CellAttributes<Expr>, context: &Context) -> Result<CellStamp> {
        let time = |name: &str, time: &Option<Expr>| match time {
            None => Ok(None),
            Some(time) => {
                let time = context.value(time)?;
                timestamp(name, &time, context.transaction.present()).map(Some)
            }
        };
        Ok(CellStamp {
            timestamp: time("TIMESTAMP", &attributes.timestamp)?,
            version: time("VERSION", &attributes.version)?,
            ttl: match &attributes.ttl {
                None => None,
                Some(age) => Some(ttl(&context.value(age)?)?),
            },
        })
    }
}

/// Returns the timestamp of a cell; those after `present` would hide later commits.
fn timestamp(name: &str, time: &Datum, present: Timestamp) -> Result<Timestamp> {
    let micros = match time {
        Datum::Timestamptz(micros) if ![i64::MIN, i64::MAX].contains(micros) => *micros,
        Datum::Timestamptz(_) => {
            bail!(DATETIME_FIELD_OVERFLOW: "argument of WITH {name} must be finite");
        }
        _ => bail!(NULL_VALUE_NOT_ALLOWED: "argument of WITH {name} must not be null"),
    };
    let timestamp = Timestamp(micros.saturating_add(EPOCH_MICROSECONDS));
    if timestamp > present {
        bail!(DATETIME_FIELD_OVERFLOW: "argument of WITH {name} is in the future");
    }
    Ok(timestamp)
}

fn ttl(age: &Datum) -> Result<Duration> {
    let Datum::Interval(age) = age else {
        bail!(NULL_VALUE_NOT_ALLOWED: "argument of WITH TTL must not be null");
    };
    match u64::try_from(age.span()).ok().filter(|micros| *micros >= 1_000) {
        Some(micros) => Ok(Duration::from_micros(micros)),
        None => {
            bail!(INVALID_PARAMETER_VALUE: "argument of WITH TTL must be at least a millisecond")
        }
    }
}

/// Writer that stages rows of one table, in batches.
pub(super) struct RowWriter {
    table: Arc<Table>,
    /// Attributes of the written cells.
    pub(super) stamp: CellStamp,
    /// Packer of each cell, made when the cell is written first.
    packers: Vec<Option<Box<RowPacker>>>,
    pending: Vec<Mutation>,
    /// Size of `pending` in bytes.
    pending_bytes: usize,
    /// True if the keys of `pending` ascend, so that they are distinct.
    ascending: bool,
}

impl RowWriter {
    /// Returns a writer with no staged rows.
    pub(super) fn new(table: &Arc<Table>) -> RowWriter {
        RowWriter {
            table: Arc::clone(table),
            stamp: CellStamp::default(),
            packers: Vec::new(),
            pending: Vec::new(),
            pending_bytes: 0,
            ascending: true,
        }
    }

    /// Returns the table.
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the number of pending rows.
    pub(super) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Inserts a row that must not exist; its NOT NULL constraints are checked before.
    pub(super) fn insert(&mut self, values: &[Datum], context: &Context) -> Result<()> {
        let key = self.table.layout.encode_key(values)?;
        context.claims_row(self.table.id, &key);
        let mut mutation = self.puts(key, values, WrittenCells::Fresh, context)?;
        mutation.expect = RowExpectation::Absent;
        mutation.previous = PreviousRow::Absent;
        if self.table.row_id_column().is_some() {
            // The hidden key is unique, and no other transaction sees the row before the commit.
            mutation.locking = Locking::Covered;
        }
        self.push(mutation, context)
    }

    /// Overwrites these cells of a row, or inserts it.
    pub(super) fn overwrite(
        &mut self,
        (key, written): (Vec<u8>, WrittenCells),
        values: &[Datum],
        previous: PreviousRow,
        context: &Context,
    ) -> Result<()> {
        let mut mutation = self.puts(key, values, written, context)?;
        mutation.previous = previous;
        // An update of referenced columns has locked the row exclusively before.
        mutation.locking = Locking::RowKeepsKey;
        self.push(mutation, context)
    }

    /// Deletes a locked row with these values, or the versions of its cells by the attributes.
    pub(super) fn delete(
        &mut self,
        (key, values): (Vec<u8>, &[Datum]),
        previous: PreviousRow,
        context: &Context,
    ) -> Result<()> {
        let mut mutation = Mutation { previous, locking: Locking::RowGoes, ..Mutation::new(key) };
        let CellStamp { timestamp, version, .. } = self.stamp;
        match version {
            None => mutation.edits.push(Edit::DeleteRow { timestamp }),
            Some(timestamp) => {
                // Observers read all versions.
                mutation.previous = PreviousRow::Unknown;
                let families = 0..self.table.layout.family_count as u8;
                let delete = |family| Edit::DeleteFamilyVersion { family, timestamp };
                mutation.edits.extend(families.map(delete));
                mutation.locking = Locking::RowKeepsKey;
            }
        }
        if self.table.layout.has_column_cells() && (timestamp.is_some() || version.is_some()) {
            self.keep_family_cells(&mut mutation, values, context)?;
        }
        self.push(mutation, context)
    }

    /// Puts the cells that mark the families of a row, where the deleted versions include them and
    /// versions of columns remain: VERSIONS may have dropped the older ones of the family's cell.
    fn keep_family_cells(
        &mut self,
        mutation: &mut Mutation,
        values: &[Datum],
        context: &Context,
    ) -> Result<()> {
        let remains = |at: Timestamp| match (self.stamp.version, self.stamp.timestamp) {
            (Some(deleted), _) => at != deleted,
            (None, last) => last.is_none_or(|last| at > last),
        };
        let mut get = Get::new(mutation.row.as_slice());
        get.max_versions = u32::MAX;
        let mut cells = CellBatch::new();
        context.transaction.get_locked(self.table.id, &get, &mut cells)?;
        // The oldest remaining version of the family's own cell, and of its columns.
        let mut oldest = vec![[None::<Timestamp>; 2]; self.table.layout.family_count];
        for cell in cells.rows().flat_map(|row| row.cells()) {
            if remains(cell.timestamp)
                && let Some(family) = oldest.get_mut(usize::from(cell.family))
            {
                let slot = &mut family[usize::from(!cell.qualifier.is_empty())];
                *slot = Some(slot.map_or(cell.timestamp, |at| at.min(cell.timestamp)));
            }
        }
        let mut pace = context.eval.pace();
        for (family, [own, columns]) in oldest.into_iter().enumerate() {
            if let Some(at) = columns
                && own.is_none_or(|own| own > at)
            {
                let timestamp = (at != Timestamp::LATEST).then_some(at);
                mutation.edits.push(self.put((family, values), timestamp, &mut pace)?);
            }
        }
        Ok(())
    }

    /// Deletes a row that is inserted again with another key.
    pub(super) fn delete_for_key_update(
        &mut self,
        key: Vec<u8>,
        previous: PreviousRow,
        context: &Context,
    ) -> Result<()> {
        let deleted = Mutation::new(key).delete_row();
        self.push(Mutation { previous, locking: Locking::Row, ..deleted }, context)
    }

    /// Stages pending mutations, so that locked reads see them, and checks their new references:
    /// a row with a duplicate key does not wait for the row that it references.
    pub(super) fn flush(&mut self, context: &Context) -> Result<()> {
        self.stage_pending(context)?;
        context.check_references()
    }

    fn stage_pending(&mut self, context: &Context) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        context.check()?;
        // COPY holds no execution slot yet: it takes one for each batch.
        let _turn = context.transaction.turn();
        let again = self.first_duplicate();
        self.ascending = true;
        self.pending_bytes = 0;
        let mut batch = std::mem::take(&mut self.pending);
        if let Some(again) = again {
            // Errors of earlier rows come first.
            batch.truncate(again + 1);
            let Some(row) = batch.pop() else { return Ok(()) };
            self.stage(batch, context)?;
            let puts = row.puts();
            self.check(&row.row, &puts, context)?;
            return Err(duplicate_key_errors::duplicate(&self.table, (&row.row, &puts), context));
        }
        self.stage(batch, context)
    }

    fn stage(&self, batch: Vec<Mutation>, context: &Context) -> Result<()> {
        let shared = context.shared_changes(self.table.id).is_some();
        let rows = batch.iter().filter(|_| shared).map(|mutation| mutation.row.clone()).collect();
        let staged = context.transaction.mutate_with(self.table.id, batch, &context.eval);
        staged.map_err(|error| {
            let checked = match &error {
                store::Error::RowExists { table, row, puts } if *table == self.table.id => {
                    self.check(row, puts, context)
                }
                _ => Ok(()),
            };
            checked
                .err()
                .unwrap_or_else(|| duplicate_key_errors::of_store(error, &self.table, context))
        })?;
        context.wrote_rows(self.table.id, rows);
        // Long values take time to write, and a commit may follow the last statement.
        context.check()
    }

    /// Checks the constraints of a row: a CHECK violation is raised before a duplicate key.
    fn check(&self, key: &[u8], puts: &[RejectedPut], context: &Context) -> Result<()> {
        let layout = &self.table.layout;
        let row = layout.unpack(key, &packed_puts(puts, layout))?;
        Ok(self.table.constraints.check_row(&row, &context.eval)?)
    }

    /// Raises a NOT NULL violation before a duplicate key of the same row, and after the errors
    /// of earlier rows.
    pub(super) fn refuse_nulls(&mut self, values: &[Datum], context: &Context) -> Result<()> {
        let refused = &self.table.constraints.not_null;
        if refused.iter().all(|&column| !values[column].is_null()) {
            return Ok(());
        }
        self.flush(context)?;
        Ok(self.table.constraints.check_row(values, &context.eval)?)
    }

    /// Stages pending mutations if they include this row.
    pub(super) fn flush_row(&mut self, key: &[u8], context: &Context) -> Result<()> {
        let after_all =
            self.ascending && self.pending.last().is_none_or(|last| last.row.as_slice() < key);
        if after_all || self.pending.iter().all(|mutation| mutation.row != key) {
            return Ok(());
        }
        self.flush(context)
    }

    fn push(&mut self, mutation: Mutation, context: &Context) -> Result<()> {
        if let Some(last) = self.pending.last() {
            self.ascending &= last.row < mutation.row;
        }
        self.pending_bytes += mutation.byte_count();
        self.pending.push(mutation);
        // Functions that are called must see the rows before.
        let at_once = context.row_by_row || context.has_called();
        let is_full =
            self.pending.len() >= BATCH_MUTATIONS || self.pending_bytes >= BATCH_MUTATION_BYTES;
        match at_once || is_full {
            true => self.flush(context),
            false => Ok(()),
        }
    }

    /// Returns the position of the second of two inserts with the same key in the batch.
    fn first_duplicate(&self) -> Option<usize> {
        if self.ascending {
            return None;
        }
        let mut keys = AHashSet::with_capacity(self.pending.len());
        self.pending.iter().position(|mutation| {
            !keys.insert(mutation.row.as_slice()) && mutation.expect == RowExpectation::Absent
        })
    }

    fn puts(
        &mut self,
        key: Vec<u8>,
        values: &[Datum],
        written: WrittenCells,
        context: &Context,
    ) -> Result<Mutation> {
        debug_assert!(
            values.len() >= self.table.layout.columns.len(),
            "{} values of a row of {}",
            values.len(),
            self.table.name
        );
        let mut pace = context.eval.pace();
        let mut mutation = Mutation::new(key);
        let CellStamp { timestamp, ttl, .. } = self.stamp;
        let mut written = written;
        if ttl.is_some() {
            // A version without the TTL must not reappear when this one expires.
            mutation.edits.push(Edit::DeleteRow { timestamp });
            written = WrittenCells::Fresh;
        }
        for cell in 0..self.table.layout.cell_count() {
            let layout = &self.table.layout;
            let is_written = layout.is_stored(cell)
                && match &written {
                    WrittenCells::Fresh => needs_cell(layout, cell, values),
                    WrittenCells::All => true,
                    WrittenCells::Only(cells) => cells.contains(&cell),
                };
            if is_written {
                mutation.edits.push(self.put((cell, values), timestamp, &mut pace)?);
            }
        }
        Ok(mutation)
    }

    /// Returns the put of one cell of a row.
    fn put(
        &mut self,
        (cell, values): (usize, &[Datum]),
        timestamp: Option<Timestamp>,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<Edit> {
        let layout = &self.table.layout;
        if self.packers.is_empty() {
            self.packers.resize_with(layout.cell_count(), || None);
        }
        let packer = match &mut self.packers[cell] {
            Some(packer) => packer,
            packer => packer.insert(Box::new(RowPacker::new(layout, cell)?)),
        };
        Ok(Edit::Put {
            family: layout.family_of_cell(cell) as u8,
            qualifier: layout.qualifier_of_cell(cell).to_vec(),
            timestamp,
            value: packer.pack(values, pace)?,
            ttl: self.stamp.ttl,
        })
    }
}

/// Returns whether a new row needs a cell: it is one of those that every new row has, or it or its
/// family has a value that differs from the missing value.
fn needs_cell(layout: &RowLayout, cell: usize, values: &[Datum]) -> bool {
    let differs =
        |column: usize| !(values[column].is_null() && layout.columns[column].missing.is_null());
    layout.new_row_cells().contains(&cell)
        || match layout.column_of_cell(cell) {
            Some(column) => differs(column),
            None => (0..layout.columns.len())
                .any(|column| layout.family_of(column) == Some(cell) && differs(column)),
        }
}

/// Cells of a row to be written.
pub(super) enum WrittenCells {
    /// Those that a new row needs.
    Fresh,
    /// All: cells of an existing row must be covered.
    All,
    /// Only these. The others remain unchanged, with their versions and TTLs.
    Only(SmallVec<[usize; 4]>),
}

impl WrittenCells {
    /// Returns the cells to write for an update of some columns, including generated columns.
    pub(super) fn by_change(
        table: &Table,
        columns: impl IntoIterator<Item = usize>,
    ) -> WrittenCells {
        let layout = &table.layout;
        if layout.cell_count() == 1 {
            return WrittenCells::All;
        }
        let mut changed: SmallVec<[usize; 8]> = columns.into_iter().collect();
        let is_made_of_them = |column: &&usize| {
            let generated = table.columns[**column].generated.as_ref();
            generated.is_some_and(|made| made.columns().iter().any(|one| changed.contains(one)))
        };
        let generated: SmallVec<[usize; 8]> =
            table.generated.iter().filter(is_made_of_them).copied().collect();
        changed.extend(generated);
        let cells = changed.iter().filter_map(|&column| match layout.columns[column].place {
            ColumnPlace::Packed { cell, .. } => Some(cell),
            // A key that does not preserve its value exactly needs the value in the first family.
            ColumnPlace::Key(_) => key_loses_form(&layout.columns[column].data_type).then_some(0),
        });
        let mut cells: SmallVec<[usize; 4]> = cells.collect();
        if layout.has_column_cells() {
            // The row lives as long as its youngest cell, and has the version of that.
            let families: SmallVec<[usize; 4]> =
                cells.iter().map(|&cell| layout.family_of_cell(cell)).collect();
            cells.extend(families);
            cells.extend(layout.is_first_family_permanent().then_some(0));
        }
        WrittenCells::Only(cells)
    }
}

/// Returns the values of the only row in a batch, in table order.
pub(super) fn unpack(table: &Table, cells: &CellBatch) -> Result<Vec<Datum>> {
    let row = cells.row(0);
    let packed = packed_cells(&row, &table.layout);
    Ok(table.layout.unpack(row.key(), &packed)?)
}

/// Returns the previous state of a row for the observers, if there are any that need it.
pub(super) fn previous(table: &Table, cells: &mut CellBatch) -> PreviousRow {
    if table.indexes.is_empty() && table.layout.cell_count() == 1 {
        return PreviousRow::Unknown;
    }
    PreviousRow::Row(Arc::new(std::mem::take(cells)))
}
