//! Constraint queue: foreign keys and deferrable UNIQUE constraints of the rows that a statement
//! changes.
//!
//! A new reference is checked when its row is written, unless the statement may also write the
//! referenced table: it is then queued, like all changes of referenced rows, and the session
//! processes the queue after the statement, in the order of the changes.
//!
//! For deferrable UNIQUE constraints the keys of new rows are recorded; the session checks them
//! after the statement.
//!
//! # Concurrency
//!
//! A referencing transaction locks the referenced row FOR KEY SHARE: others may update the row,
//! but not its key. A transaction that removes the key locks the row exclusively before it
//! searches for references. Both hold their locks until the end of their transactions, and both
//! read what is committed by then. So the later of two such transactions sees the effects of the
//! other.

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

use crate::catalog::foreign_key::{ForeignKey, KeyLocation};
use crate::catalog::table::{Index, Table};
use crate::error::{Error, Result, sqlstate};
use crate::exec::target_rows::read_locked;
use crate::exec::{Context, memory};

/// Maximum number of cached existing keys.
const KNOWN_KEYS_MAX: usize = 65_536;

/// Constraints of the tables that a statement may change, and its queued changes.
#[derive(Default)]
pub struct ConstraintQueue {
    tables: AHashMap<TableId, TableConstraints>,
    changes: Mutex<RowChangeQueue>,
    /// Keys that exist and whose locks are held.
    known: Mutex<AHashSet<KeyLocation>>,
    /// First violation found before the statement has ended.
    violation: Mutex<Option<Error>>,
    /// Violations of deferred constraints.
    late: Mutex<Vec<DeferredViolation>>,
    /// New keys of deferrable UNIQUE constraints.
    keys: Mutex<NewKeySet>,
}

#[derive(Default)]
struct NewKeySet {
    known: AHashSet<DeferrableKey>,
    /// In the order of the rows.
    order: Vec<DeferrableKey>,
    bytes: usize,
}

/// Locks the row that a foreign key references FOR KEY SHARE; returns whether there is one.
///
/// # Errors
///
/// Errors that end a wait.
pub fn lock_key(
    transaction: &Transaction,
    referenced: &Table,
    key: &ForeignKey,
    place: &KeyLocation,
) -> Result<bool> {
    let (mode, get) = (LockMode::KeyShared, Get::new(place.row.clone()));
    let mut cells = CellBatch::new();
    let Some(index) = key.index_of(referenced) else {
        transaction.lock_present_row(place.table, &place.row, mode, LockWait::Wait)?;
        return Ok(transaction.get_locked(place.table, &get, &mut cells)?);
    };
    // The owner of the entry is known for sure only once that row is locked.
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

/// New key of a deferrable UNIQUE constraint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeferrableKey {
    /// Number of the table.
    pub table: u32,
    /// Number of the index.
    pub index: u32,
    /// Common prefix of the row keys of all its entries.
    pub prefix: Vec<u8>,
}

/// Violation of a deferred constraint, to be checked again at the end of the transaction.
#[derive(Debug, Clone)]
pub struct DeferredViolation {
    /// Number of the referencing table.
    pub table: u32,
    /// The constraint.
    pub key: ForeignKey,
    /// Values of the referencing columns, or of the referenced columns of a removed row. Some are
    /// NULL only in a violation of MATCH FULL.
    pub values: Vec<Datum>,
    /// True if a referenced row was deleted or its key updated; false for a row that references
    /// nothing.
    pub is_removal: bool,
    /// New key, if it was updated.
    pub new: Option<Vec<Datum>>,
}

#[derive(Default)]
struct RowChangeQueue {
    queue: VecDeque<RowChange>,
    bytes: usize,
}

/// Constraints of a table that has foreign keys or is referenced.
pub struct TableConstraints {
    /// The table.
    pub table: Arc<Table>,
    /// Its foreign keys.
    pub references: Vec<ForeignKeyCheck>,
    /// True if foreign keys reference it.
    pub is_referenced: bool,
    /// Indexes of its deferrable UNIQUE constraints.
    pub unique: Vec<Arc<Index>>,
}

/// Foreign key of a table.
#[derive(Clone)]
pub struct ForeignKeyCheck {
    /// The constraint.
    pub key: ForeignKey,
    /// The referenced table.
    pub referenced: Arc<Table>,
    /// True if it can be checked before the statement ends.
    pub at_once: bool,
    /// True if its violations are deferred to the end of the transaction.
    pub is_deferred: bool,
}

impl DeferredViolation {
    /// Returns its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<DeferredViolation>() + 4 * self.values.len() * size_of::<Datum>()
    }
}

/// Change of a row, queued for the end of the statement.
pub struct RowChange {
    /// The table.
    pub table: TableId,
    /// Old row; `None` for an insert.
    pub old: Option<Vec<Datum>>,
    /// New row; `None` for a delete.
    pub new: Option<Vec<Datum>>,
}

impl ConstraintQueue {
    /// Adds a table.
    pub fn add(&mut self, watched: TableConstraints) {
        self.tables.insert(watched.table.id, watched);
    }

    /// Returns whether the queue covers no table.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Returns the constraints of a table.
    pub fn table(&self, table: TableId) -> Option<&TableConstraints> {
        self.tables.get(&table)
    }

    /// Removes and returns the first queued change.
    pub fn next(&self) -> Option<RowChange> {
        let mut changes = self.changes.lock();
        let change = changes.queue.pop_front();
        if let Some(RowChange { table, .. }) = &change {
            debug_assert!(self.tables.contains_key(table), "a queued change of another table");
        }
        if changes.queue.is_empty() {
            changes.bytes = 0;
        }
        change
    }

    /// Removes and returns the new keys of deferrable UNIQUE constraints.
    pub fn take_keys(&self) -> Vec<DeferrableKey> {
        std::mem::take(&mut *self.keys.lock()).order
    }

    /// Records the new keys of deferrable UNIQUE constraints.
    fn note_keys(
        &self,
        watched: &TableConstraints,
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
            let key = DeferrableKey { table: watched.table.oid, index: index.oid, prefix };
            if keys.known.insert(key.clone()) {
                keys.bytes += 2 * (size_of::<DeferrableKey>() + key.prefix.len());
                memory::check(keys.bytes, context.work_mem())?;
                keys.order.push(key);
            }
        }
        Ok(())
    }

    /// Removes and returns the violations of deferred constraints.
    pub fn take_late(&self) -> Vec<DeferredViolation> {
        std::mem::take(&mut self.late.lock())
    }

    /// Like [`ConstraintQueue::check_reference`], during the statement: a violation is only raised
    /// at its end, after all errors of the rows themselves.
    fn look_early(
        &self,
        watched: &TableConstraints,
        reference: &ForeignKeyCheck,
        new: &[Datum],
        context: &Context,
    ) -> Result<()> {
        match self.check_reference(watched, reference, new, context) {
            Err(error) if error.sqlstate.as_ref() == sqlstate::FOREIGN_KEY_VIOLATION => {
                self.violation.lock().get_or_insert(error);
                Ok(())
            }
            looked => looked,
        }
    }

    /// Raises the first violation that was found during the statement.
    ///
    /// # Errors
    ///
    /// 23503.
    pub fn raise_violation(&self) -> Result<()> {
        self.violation.lock().take().map_or(Ok(()), Err)
    }

    /// Checks a reference of a new or updated row; records a violation of a deferred constraint.
    ///
    /// # Errors
    ///
    /// 23503 if the referenced row does not exist.
    pub fn check_reference(
        &self,
        watched: &TableConstraints,
        reference: &ForeignKeyCheck,
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
        self.late.lock().push(DeferredViolation {
            table,
            key,
            values,
            is_removal: false,
            new: None,
        });
        Ok(())
    }

    /// Like [`ConstraintQueue::check_reference`], after the statement. A row that was deleted, or
    /// whose reference was changed, since it was queued is no violation.
    ///
    /// # Errors
    ///
    /// See [`ConstraintQueue::check_reference`].
    pub fn check_queued_reference(
        &self,
        watched: &TableConstraints,
        reference: &ForeignKeyCheck,
        new: &[Datum],
        context: &Context,
    ) -> Result<()> {
        match self.check_reference(watched, reference, new, context) {
            Err(error)
                if error.sqlstate.as_ref() == sqlstate::FOREIGN_KEY_VIOLATION
                    && !still_refers(&watched.table, reference, new, context)? =>
            {
                Ok(())
            }
            looked => looked,
        }
    }

    /// Checks a reference of a new or updated row.
    ///
    /// # Errors
    ///
    /// 23503 if the referenced row does not exist.
    pub fn check(
        &self,
        watched: &TableConstraints,
        reference: &ForeignKeyCheck,
        new: &[Datum],
        context: &Context,
    ) -> Result<()> {
        let values = reference.key.values(new);
        if values.iter().any(Datum::is_null) {
            let partly = reference.key.match_full && !values.iter().all(Datum::is_null);
            return if partly {
                Err(partly_null_violation(&watched.table, &reference.key))
            } else {
                Ok(())
            };
        }
        let referenced = &reference.referenced;
        let Some(place) = reference.key.place(referenced, &values)? else {
            return Err(missing_row_violation(
                &watched.table,
                reference,
                &values,
                &context.eval.style,
            ));
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
            // A row that was committed after the snapshot does not exist for this transaction.
            let is_new = is_there && !is_seen && {
                transaction.is_newer(place.table, &place.row, &transaction.view()?)?
            };
            if is_new {
                return Err(missing_row_violation(
                    &watched.table,
                    reference,
                    &values,
                    &context.eval.style,
                ));
            }
        }
        if !is_there {
            return Err(missing_row_violation(
                &watched.table,
                reference,
                &values,
                &context.eval.style,
            ));
        }
        let mut known = self.known.lock();
        // A key that this statement may remove is searched each time.
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
        debug_assert!(old.is_some() || new.is_some(), "a change without a row");
        for row in old.iter().chain(&new) {
            debug_assert!(row.len() >= width, "{} values of {width} columns", row.len());
        }
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
    /// Queues the insert, update or delete of a row, in table order; further columns are ignored.
    pub(super) fn row_changed(
        &self,
        table: &Table,
        old: Option<&[Datum]>,
        new: Option<&[Datum]>,
    ) -> Result<()> {
        match &self.constraint_queue {
            None => Ok(()),
            Some(watch) => watch.note(table, old, new, self),
        }
    }

    /// Returns whether the constraint queue covers a table.
    pub(super) fn watches(&self, table: &Table) -> bool {
        self.constraint_queue.as_ref().is_some_and(|watch| watch.tables.contains_key(&table.id))
    }
}

/// Returns whether a row that the transaction has written exists with the same reference.
fn still_refers(
    table: &Table,
    reference: &ForeignKeyCheck,
    new: &[Datum],
    context: &Context,
) -> Result<bool> {
    let key = table.layout.encode_key(new)?;
    let current = read_locked((table, &key), &mut CellBatch::new(), context)?;
    let values = |row: &[Datum]| reference.key.values(row);
    Ok(current.is_some_and(|row| values(&row) == values(new)))
}

/// Returns the text `(a, b)=(1, x)` of key columns.
pub fn key_text(table: &Table, columns: &[u32], values: &[Datum], style: &TextStyle) -> String {
    let columns = || columns.iter().map(|column| &table.columns[*column as usize]);
    let names: Vec<&str> = columns().map(|column| column.name.as_str()).collect();
    let types: Vec<_> = columns().map(|column| column.sql_type.base).collect();
    violation::key_text((&names, &types), values, style)
}

/// Returns a foreign key violation.
pub fn violated(table: &Table, key: &ForeignKey, message: String, detail: String) -> Error {
    err!(FOREIGN_KEY_VIOLATION: message; detail detail;
        of_table &table.schema, &table.name; of_constraint &key.name)
}

/// Returns the violation of a reference to a missing row.
pub fn missing_row_violation(
    table: &Table,
    reference: &ForeignKeyCheck,
    values: &[Datum],
    style: &TextStyle,
) -> Error {
    let key = &reference.key;
    let detail = format!(
        "Key {} is not present in table \"{}\".",
        key_text(table, &key.columns, values, style),
        reference.referenced.name
    );
    violated(table, key, not_inserted(table, key), detail)
}

/// Returns the violation of a partly NULL reference with MATCH FULL.
pub fn partly_null_violation(table: &Table, key: &ForeignKey) -> Error {
    let detail = "MATCH FULL does not allow mixing of null and nonnull key values.";
    violated(table, key, not_inserted(table, key), detail.to_owned())
}

fn not_inserted(table: &Table, key: &ForeignKey) -> String {
    format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        table.name, key.name
    )
}
