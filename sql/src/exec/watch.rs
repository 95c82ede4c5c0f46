//! Foreign keys and deferrable UNIQUE constraints of the rows that a statement changes.
//!
//! A new reference is checked when its row is written, unless the statement may write the
//! referenced table too: then, as all that happens to rows that others refer to, it is noted, and
//! looked at by the session when the statement has done its work, in the order of the changes.
//!
//! Of a deferrable UNIQUE constraint the keys of new rows are noted; the session looks at them when
//! the statement has done its work.
//!
//! # Races
//!
//! Who refers to a key locks the row that has it, such that others may change the row, but not its
//! key; who removes the key locks the row alone before it looks for references. Both hold the lock
//! until their transactions end, and both look at what is committed by then. So of two such
//! transactions the later one sees what the other has done.

use std::collections::VecDeque;
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use coprocessors::index::{base_key, key_prefix};
use coprocessors::violation;
use parking_lot::Mutex;
use store::transaction::{LockMode, LockWait};
use store::{CellBatch, Get, TableId, Transaction};
use types::Datum;
use types::text::TextStyle;

use crate::catalog::foreign_key::{ForeignKey, KeyPlace};
use crate::catalog::table::{Index, Table};
use crate::error::{Error, Result, sqlstate};
use crate::exec::target::read_locked;
use crate::exec::{Context, memory};

/// Keys known to be there that are remembered, so that they are not looked for again.
const KNOWN_KEYS_MAX: usize = 65_536;

/// What a statement may change that foreign keys are about, and what it has changed.
#[derive(Default)]
pub struct Watch {
    tables: AHashMap<TableId, Watched>,
    changes: Mutex<Changes>,
    /// Keys that are there and whose locks are held.
    known: Mutex<AHashSet<KeyPlace>>,
    /// The first reference to what is not there, found while the statement does its work.
    violation: Mutex<Option<Error>>,
    /// What deferred constraints have found.
    late: Mutex<Vec<Late>>,
    /// Keys of deferrable UNIQUE constraints that rows have got.
    keys: Mutex<NewKeys>,
}

#[derive(Default)]
struct NewKeys {
    known: AHashSet<NewKey>,
    /// In the order of the rows.
    order: Vec<NewKey>,
    bytes: usize,
}

/// Has the row that a foreign key refers to keep its key until the transaction ends; returns
/// whether there is one.
///
/// # Errors
///
/// What ends a wait.
pub fn lock_key(
    transaction: &Transaction,
    referenced: &Table,
    key: &ForeignKey,
    place: &KeyPlace,
) -> Result<bool> {
    let (mode, get) = (LockMode::KeyShared, Get::new(place.row.clone()));
    let mut cells = CellBatch::new();
    let Some(index) = key.index_of(referenced) else {
        transaction.lock_present_row(place.table, &place.row, mode, LockWait::Wait)?;
        return Ok(transaction.get_locked(place.table, &get, &mut cells)?);
    };
    // Whose entry it is, is known for sure only once that row is locked.
    let mut locked = None;
    loop {
        cells.clear();
        if !transaction.get_locked(place.table, &get, &mut cells)? {
            return Ok(false);
        }
        let row = base_key(&index.spec, &cells.row(0))?;
        if locked.as_ref() == Some(&row) {
            return Ok(true);
        }
        transaction.lock_present_row(referenced.id, &row, mode, LockWait::Wait)?;
        locked = Some(row);
    }
}

/// A key of a deferrable UNIQUE constraint that a row has got.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NewKey {
    /// The number of the table.
    pub table: u32,
    /// The number of the index.
    pub index: u32,
    /// What the row keys of all its entries begin with.
    pub prefix: Vec<u8>,
}

/// What a deferred constraint has found, to be looked at again when the transaction ends.
#[derive(Debug, Clone)]
pub struct Late {
    /// The number of the referencing table.
    pub table: u32,
    /// The constraint.
    pub key: ForeignKey,
    /// The values of the referencing columns, or of the referenced ones of a row that has gone;
    /// none is NULL.
    pub values: Vec<Datum>,
    /// A row that is referred to has gone, or has another key; else a row refers to nothing.
    pub is_removal: bool,
    /// The other key, if it has one.
    pub new: Option<Vec<Datum>>,
}

#[derive(Default)]
struct Changes {
    queue: VecDeque<RowChange>,
    bytes: usize,
}

/// A table with foreign keys, or that others refer to.
pub struct Watched {
    /// The table.
    pub table: Arc<Table>,
    /// Its foreign keys.
    pub references: Vec<Reference>,
    /// Others refer to it.
    pub is_referenced: bool,
    /// The indexes of its deferrable UNIQUE constraints.
    pub unique: Vec<Arc<Index>>,
}

/// A foreign key of a table.
#[derive(Clone)]
pub struct Reference {
    /// The constraint.
    pub key: ForeignKey,
    /// The referenced table.
    pub referenced: Arc<Table>,
    /// It can be checked before the statement ends.
    pub at_once: bool,
    /// What it finds is put off to the end of the transaction.
    pub is_deferred: bool,
}

impl Late {
    /// Returns about how many bytes it takes.
    pub fn bytes(&self) -> usize {
        size_of::<Late>() + 4 * self.values.len() * size_of::<Datum>()
    }
}

/// A change that is to be looked at when the statement has done its work.
pub struct RowChange {
    /// The table.
    pub table: TableId,
    /// The row before; `None` for a new one.
    pub old: Option<Vec<Datum>>,
    /// The row after; `None` for one that was deleted.
    pub new: Option<Vec<Datum>>,
}

impl Watch {
    /// Adds a table.
    pub fn add(&mut self, watched: Watched) {
        self.tables.insert(watched.table.id, watched);
    }

    /// Returns whether no table is watched.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Returns a watched table.
    pub fn table(&self, table: TableId) -> Option<&Watched> {
        self.tables.get(&table)
    }

    /// Takes the first change that was not looked at.
    pub fn next(&self) -> Option<RowChange> {
        let mut changes = self.changes.lock();
        let change = changes.queue.pop_front();
        if changes.queue.is_empty() {
            changes.bytes = 0;
        }
        change
    }

    /// Takes the keys of deferrable UNIQUE constraints that rows have got.
    pub fn take_keys(&self) -> Vec<NewKey> {
        std::mem::take(&mut *self.keys.lock()).order
    }

    /// Notes the keys of deferrable UNIQUE constraints that a row has got.
    fn note_keys(
        &self,
        watched: &Watched,
        old: Option<&[Datum]>,
        new: &[Datum],
        context: &Context,
    ) -> Result<()> {
        for index in &watched.unique {
            let Some(prefix) = key_prefix(&index.spec, new, &context.eval)? else { continue };
            let before =
                old.map(|old| key_prefix(&index.spec, old, &context.eval)).transpose()?.flatten();
            if before.as_ref() == Some(&prefix) {
                continue;
            }
            let mut keys = self.keys.lock();
            let key = NewKey { table: watched.table.oid, index: index.oid, prefix };
            if keys.known.insert(key.clone()) {
                keys.bytes += 2 * (size_of::<NewKey>() + key.prefix.len());
                memory::check(keys.bytes, context.work_mem())?;
                keys.order.push(key);
            }
        }
        Ok(())
    }

    /// Takes what deferred constraints have found.
    pub fn take_late(&self) -> Vec<Late> {
        std::mem::take(&mut self.late.lock())
    }

    /// As [`Watch::look`], before the statement has done its work: a reference to what is not there
    /// is an error only then, after all that is wrong with the rows themselves.
    fn look_early(
        &self,
        watched: &Watched,
        reference: &Reference,
        new: &[Datum],
        context: &Context,
    ) -> Result<()> {
        match self.look(watched, reference, new, context) {
            Err(error) if error.sqlstate.as_ref() == sqlstate::FOREIGN_KEY_VIOLATION => {
                self.violation.lock().get_or_insert(error);
                Ok(())
            }
            looked => looked,
        }
    }

    /// Raises the first violation that was found while the statement did its work.
    ///
    /// # Errors
    ///
    /// 23503.
    pub fn raise(&self) -> Result<()> {
        self.violation.lock().take().map_or(Ok(()), Err)
    }

    /// Checks a reference of a row that is new, or has changed; what a deferred one finds is noted.
    ///
    /// # Errors
    ///
    /// 23503 if what a reference names is not there.
    pub fn look(
        &self,
        watched: &Watched,
        reference: &Reference,
        new: &[Datum],
        context: &Context,
    ) -> Result<()> {
        let found = self.check(watched, reference, new, context);
        let Err(error) = found else { return Ok(()) };
        let values = reference.key.values(new);
        let is_violation = error.sqlstate.as_ref() == sqlstate::FOREIGN_KEY_VIOLATION;
        if !reference.is_deferred || !is_violation {
            return Err(error);
        }
        let (table, key) = (watched.table.oid, reference.key.clone());
        self.late.lock().push(Late { table, key, values, is_removal: false, new: None });
        Ok(())
    }

    /// As [`Watch::look`], when the statement has done its work. A row that has been deleted, or
    /// has got another reference, since it was noted refers to nothing any more.
    ///
    /// # Errors
    ///
    /// As for [`Watch::look`].
    pub fn look_late(
        &self,
        watched: &Watched,
        reference: &Reference,
        new: &[Datum],
        context: &Context,
    ) -> Result<()> {
        match self.look(watched, reference, new, context) {
            Err(error)
                if error.sqlstate.as_ref() == sqlstate::FOREIGN_KEY_VIOLATION
                    && !still_refers(&watched.table, reference, new, context)? =>
            {
                Ok(())
            }
            looked => looked,
        }
    }

    /// Checks the references of a row that is new, or has changed.
    ///
    /// # Errors
    ///
    /// 23503 if what a reference names is not there.
    pub fn check(
        &self,
        watched: &Watched,
        reference: &Reference,
        new: &[Datum],
        context: &Context,
    ) -> Result<()> {
        let values = reference.key.values(new);
        if values.iter().any(Datum::is_null) {
            let partly = reference.key.match_full && !values.iter().all(Datum::is_null);
            return if partly { Err(mixed(&watched.table, &reference.key)) } else { Ok(()) };
        }
        let referenced = &reference.referenced;
        let Some(place) = reference.key.place(referenced, &values)? else {
            return Err(missing(&watched.table, reference, &values, &context.eval.style));
        };
        if self.known.lock().contains(&place) {
            return Ok(());
        }
        let transaction = &context.transaction;
        let is_there = lock_key(transaction, referenced, &reference.key, &place)?;
        if transaction.isolation().is_repeatable() {
            let get = Get::new(place.row.as_slice());
            let is_seen = transaction.get(place.table, &get, &mut CellBatch::new())?;
            if is_seen && !is_there {
                let detail = "due to concurrent update".to_owned();
                return Err(store::Error::Serialization { detail }.into());
            }
            // One that another transaction has committed since is not there for this one.
            let is_new = is_there && !is_seen && {
                transaction.is_newer(place.table, &place.row, &transaction.view()?)?
            };
            if is_new {
                return Err(missing(&watched.table, reference, &values, &context.eval.style));
            }
        }
        if !is_there {
            return Err(missing(&watched.table, reference, &values, &context.eval.style));
        }
        let mut known = self.known.lock();
        // A key that this statement may remove is looked for each time.
        if reference.at_once && known.len() < KNOWN_KEYS_MAX {
            known.insert(place);
        }
        Ok(())
    }

    fn note(
        &self,
        table: &Table,
        old: Option<&[Datum]>,
        new: Option<&[Datum]>,
        context: &Context,
    ) -> Result<()> {
        let Some(watched) = self.tables.get(&table.id) else { return Ok(()) };
        let width = table.columns.len();
        let mut later = watched.is_referenced && old.is_some();
        if let Some(new) = new {
            self.note_keys(watched, old, new, context)?;
            for reference in &watched.references {
                if old.is_some_and(|old| reference.key.values(old) == reference.key.values(new)) {
                    continue;
                }
                match reference.at_once {
                    true => self.look_early(watched, reference, new, context)?,
                    false => later = true,
                }
            }
        }
        if !later {
            return Ok(());
        }
        let kept = |row: Option<&[Datum]>| row.map(|row| row[..width].to_vec());
        let change = RowChange { table: table.id, old: kept(old), new: kept(new) };
        let mut changes = self.changes.lock();
        changes.bytes += width * 2 * size_of::<Datum>();
        memory::check(changes.bytes, context.work_mem())?;
        changes.queue.push_back(change);
        Ok(())
    }
}

impl Context {
    /// Notes that a row of a table was made, changed or removed: in table order, what comes behind
    /// does not matter.
    pub(super) fn row_changed(
        &self,
        table: &Table,
        old: Option<&[Datum]>,
        new: Option<&[Datum]>,
    ) -> Result<()> {
        match &self.watch {
            None => Ok(()),
            Some(watch) => watch.note(table, old, new, self),
        }
    }

    /// Returns whether changes of a table's rows are watched.
    pub(super) fn watches(&self, table: &Table) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.tables.contains_key(&table.id))
    }
}

/// Returns whether a row that the transaction has written is there with the same reference.
fn still_refers(
    table: &Table,
    reference: &Reference,
    new: &[Datum],
    context: &Context,
) -> Result<bool> {
    let key = table.layout.encode_key(new)?;
    let current = read_locked((table, &key), &mut CellBatch::new(), context)?;
    let values = |row: &[Datum]| reference.key.values(row);
    Ok(current.is_some_and(|row| values(&row) == values(new)))
}

/// Returns `(a, b)=(1, x)` of columns of a table.
pub fn key_text(table: &Table, columns: &[u32], values: &[Datum], style: &TextStyle) -> String {
    let columns = || columns.iter().map(|column| &table.columns[*column as usize]);
    let names: Vec<&str> = columns().map(|column| column.name.as_str()).collect();
    let types: Vec<_> = columns().map(|column| column.sql_type.base).collect();
    violation::key_text((&names, &types), values, style)
}

/// Returns an error of a foreign key.
pub fn violated(table: &Table, key: &ForeignKey, message: String, detail: String) -> Error {
    Error {
        schema: Some(table.schema.clone()),
        table: Some(table.name.clone()),
        constraint: Some(key.name.clone()),
        ..Error::new(sqlstate::FOREIGN_KEY_VIOLATION, message).with_detail(detail)
    }
}

/// Returns the error of a reference to a row that is not there.
pub fn missing(table: &Table, reference: &Reference, values: &[Datum], style: &TextStyle) -> Error {
    let key = &reference.key;
    let detail = format!(
        "Key {} is not present in table \"{}\".",
        key_text(table, &key.columns, values, style),
        reference.referenced.name
    );
    violated(table, key, not_inserted(table, key), detail)
}

/// Returns the error of a row whose reference, which is MATCH FULL, is NULL in part.
pub fn mixed(table: &Table, key: &ForeignKey) -> Error {
    let detail = "MATCH FULL does not allow mixing of null and nonnull key values.";
    violated(table, key, not_inserted(table, key), detail.to_owned())
}

fn not_inserted(table: &Table, key: &ForeignKey) -> String {
    format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        table.name, key.name
    )
}
