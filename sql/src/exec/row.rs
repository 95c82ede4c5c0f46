//! Single rows: from values to mutations, staged in batches, and from cells to values.

use std::sync::Arc;

use ahash::AHashSet;
use coprocessors::row::packed_cells;
use smallvec::SmallVec;
use store::transaction::Locking;
use store::transaction::{Expect, Previous};
use store::{CellBatch, Mutation};
use types::Datum;
use types::rowcode::{Place, RowPacker, key_forgets};

use crate::catalog::table::Table;
use crate::error::Result;
use crate::exec::Context;
use crate::exec::violation;

/// Rows staged at once.
const BATCH_MUTATIONS: usize = 1000;
/// Bytes of their values, and of what was in their place, after which fewer are.
const BATCH_MUTATION_BYTES: usize = 1 << 20;

/// Stages rows of one table, in batches.
pub(super) struct RowWriter {
    table: Arc<Table>,
    /// Of each family; none before the first row.
    packers: Vec<RowPacker>,
    pending: Vec<Mutation>,
    /// Bytes of `pending`.
    pending_bytes: usize,
    /// Whether the keys of `pending` ascend, so that none is there twice.
    ascending: bool,
}

impl RowWriter {
    /// Returns a writer with nothing staged.
    pub(super) fn new(table: &Arc<Table>) -> RowWriter {
        RowWriter {
            table: Arc::clone(table),
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

    /// Returns how many rows are pending.
    pub(super) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Writes a row that must not exist.
    pub(super) fn insert(&mut self, values: &[Datum], context: &Context) -> Result<()> {
        self.refuse_nulls(values, context)?;
        let key = self.table.layout.encode_key(values)?;
        context.claims_row(self.table.id, &key);
        let mut mutation = self.puts(key, values, Written::Fresh, context)?;
        mutation.expect = Expect::Absent;
        mutation.previous = Previous::Absent;
        if self.table.row_id_column().is_some() {
            // Nobody else is given this key, and nobody sees the row before it is committed.
            mutation.locking = Locking::Covered;
        }
        self.push(mutation, context)
    }

    /// Writes a row over whatever has its key: these families of it.
    pub(super) fn overwrite(
        &mut self,
        (key, written): (Vec<u8>, Written),
        values: &[Datum],
        previous: Previous,
        context: &Context,
    ) -> Result<()> {
        let mut mutation = self.puts(key, values, written, context)?;
        mutation.previous = previous;
        // Whoever changes what foreign keys could refer to has locked the row alone.
        mutation.locking = Locking::RowKeepsKey;
        self.push(mutation, context)
    }

    /// Deletes a row.
    pub(super) fn delete(
        &mut self,
        key: Vec<u8>,
        previous: Previous,
        context: &Context,
    ) -> Result<()> {
        self.push(deletion(key, previous, Locking::RowGoes), context)
    }

    /// Deletes a row that is inserted again, with another key.
    pub(super) fn take_up(
        &mut self,
        key: Vec<u8>,
        previous: Previous,
        context: &Context,
    ) -> Result<()> {
        self.push(deletion(key, previous, Locking::Row), context)
    }

    /// Stages what is pending, so that locked reads see it.
    pub(super) fn flush(&mut self, context: &Context) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        context.check()?;
        // Of COPY, which has none yet: its rows come in between.
        let _turn = context.transaction.turn();
        let again = self.first_duplicate();
        self.ascending = true;
        self.pending_bytes = 0;
        let mut batch = std::mem::take(&mut self.pending);
        if let Some(again) = again {
            // What is wrong with the rows before counts first.
            batch.truncate(again + 1);
            let Some(row) = batch.pop() else { return Ok(()) };
            self.stage(batch, context)?;
            let puts = row.puts();
            self.check(&row.row, &puts, context)?;
            return Err(violation::duplicate(&self.table, (&row.row, &puts), context));
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
            checked.err().unwrap_or_else(|| violation::of_store(error, &self.table, context))
        })?;
        context.wrote_rows(self.table.id, rows);
        // Long values take their time, and after the last statement comes the commit.
        context.check()
    }

    /// Checks the constraints of a row that is to be written: one that fails a CHECK fails that
    /// first, whether its key is taken or not.
    fn check(&self, key: &[u8], puts: &[(u8, Vec<u8>)], context: &Context) -> Result<()> {
        let put = |family: usize| {
            let of = puts.iter().find(|(of, _)| usize::from(*of) == family);
            of.map(|(_, value)| value.as_slice())
        };
        let layout = &self.table.layout;
        let packed: Vec<Option<&[u8]>> = (0..layout.family_count).map(put).collect();
        let row = layout.unpack(key, &packed)?;
        Ok(self.table.constraints.check_row(&row, &context.eval)?)
    }

    /// A NULL where none may be counts before a key that is taken, and after what is wrong with the
    /// rows before.
    fn refuse_nulls(&mut self, values: &[Datum], context: &Context) -> Result<()> {
        let refused = &self.table.constraints.not_null;
        if refused.iter().all(|&column| !values[column].is_null()) {
            return Ok(());
        }
        self.flush(context)?;
        Ok(self.table.constraints.check_row(values, &context.eval)?)
    }

    /// Stages what is pending if a mutation of this row is among it.
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
        // Functions that are called see the rows before.
        let at_once = context.row_by_row || context.has_called();
        let is_full =
            self.pending.len() >= BATCH_MUTATIONS || self.pending_bytes >= BATCH_MUTATION_BYTES;
        match at_once || is_full {
            true => self.flush(context),
            false => Ok(()),
        }
    }

    /// Two new rows of one batch may not have one key: returns which is the second.
    fn first_duplicate(&self) -> Option<usize> {
        if self.ascending {
            return None;
        }
        let mut keys = AHashSet::with_capacity(self.pending.len());
        self.pending.iter().position(|mutation| {
            !keys.insert(mutation.row.as_slice()) && mutation.expect == Expect::Absent
        })
    }

    fn puts(
        &mut self,
        key: Vec<u8>,
        values: &[Datum],
        written: Written,
        context: &Context,
    ) -> Result<Mutation> {
        if self.packers.is_empty() {
            let layout = &self.table.layout;
            let packer = |family: usize| RowPacker::new(layout, family);
            self.packers = (0..layout.family_count).map(packer).collect::<types::Result<_>>()?;
        }
        let mut pace = context.eval.pace();
        let mut mutation = Mutation::new(key);
        for (family, packer) in self.packers.iter().enumerate() {
            let is_written = match &written {
                Written::Fresh => self.needs_cell(family, values),
                Written::All => true,
                Written::Families(families) => families.contains(&family),
            };
            if !is_written {
                continue;
            }
            let packed = packer.pack(values, &mut pace)?;
            mutation = mutation.put(family as u8, Vec::new(), packed);
        }
        Ok(mutation)
    }

    /// Returns whether a new row has a cell of a family: of the first, of all where that may expire
    /// before the row, and of those that are not as if they were not there.
    fn needs_cell(&self, family: usize, values: &[Datum]) -> bool {
        let layout = &self.table.layout;
        let mut columns = layout.columns.iter().zip(values);
        family == 0
            || !layout.exists_by_first()
            || columns.any(|(column, value)| {
                in_family(column, family) && !(value.is_null() && column.missing.is_null())
            })
    }
}

/// Returns the deletion of a row that was as `previous` says.
fn deletion(key: Vec<u8>, previous: Previous, locking: Locking) -> Mutation {
    Mutation { previous, locking, ..Mutation::new(key).delete_row() }
}

fn in_family(column: &types::rowcode::LayoutColumn, family: usize) -> bool {
    matches!(column.place, Place::Packed { family: of, .. } if of == family)
}

/// Which families of a row are written.
pub(super) enum Written {
    /// Those that a new row needs.
    Fresh,
    /// All: there may be a row, whose cells are to be covered.
    All,
    /// These. What is in the others stays as it is, with its versions and its TTL.
    Families(SmallVec<[usize; 4]>),
}

impl Written {
    /// Returns the families that a change of some columns writes, with those of what is generated
    /// from them.
    pub(super) fn by_change(table: &Table, columns: impl IntoIterator<Item = usize>) -> Written {
        let layout = &table.layout;
        if layout.family_count == 1 {
            return Written::All;
        }
        let mut changed: SmallVec<[usize; 8]> = columns.into_iter().collect();
        let is_made_of_them = |column: &&usize| {
            let generated = table.columns[**column].generated.as_ref();
            generated.is_some_and(|made| made.columns().iter().any(|one| changed.contains(one)))
        };
        let generated: SmallVec<[usize; 8]> =
            table.generated.iter().filter(is_made_of_them).copied().collect();
        changed.extend(generated);
        let families = changed.iter().filter_map(|&column| match layout.columns[column].place {
            Place::Packed { family, .. } => Some(family),
            // What a key does not hold of its values.
            Place::Key(_) => key_forgets(layout.columns[column].data_type).then_some(0),
        });
        Written::Families(families.collect())
    }
}

/// Returns the values of the one row of a batch, in table order.
pub(super) fn unpack(table: &Table, cells: &CellBatch) -> Result<Vec<Datum>> {
    let row = cells.row(0);
    let packed = packed_cells(&row, table.layout.family_count);
    Ok(table.layout.unpack(row.key(), &packed)?)
}

/// Returns the state of a row before its mutation, for the observers, if there are any who ask.
pub(super) fn previous(table: &Table, cells: &mut CellBatch) -> Previous {
    if table.indexes.is_empty() && table.layout.family_count == 1 {
        return Previous::Unknown;
    }
    Previous::Row(Arc::new(std::mem::take(cells)))
}
