//! Constraint queue: foreign keys, deferrable UNIQUE constraints and AFTER triggers of the rows
//! that a statement changes.
//!
//! ```text
//! changed row -> references      -> batch: lock and look up the keys, after the rows are staged
//!            |-> queued checks   -> after the statement, in the order of the changes
//!            |-> AFTER triggers  -> after the statement, in the order of the changes
//!            \-> new unique keys -> after the statement
//! ```
//!
//! A new reference is checked in the batch of its row, unless the statement may also write the
//! referenced table: it is then queued, like the removal of referenced keys. A violation of a
//! deferred constraint is checked again at the end of the transaction.
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
use store::transaction::LockMode;
use store::{CellBatch, Get, RowRef, TableId, Transaction};
use types::expr::Routine;
use types::text::TextStyle;
use types::{DataType, Datum};

use crate::ast::{TriggerEvent, TriggerTiming};
use crate::catalog::foreign_key::{ForeignKey, KeyLocation};
use crate::catalog::table::{Index, Table};
use crate::catalog::trigger::Trigger;
use crate::error::{Error, Result};
use crate::exec::target_rows::read_locked;
use crate::exec::triggers::{FunctionRows, TransitionRows, TriggerCall, TriggerRows};
use crate::exec::{Context, SystemSource, memory};

/// Maximum number of cached existing keys.
const KNOWN_KEYS_MAX: usize = 65_536;
/// Maximum number of references that are checked together.
pub const REFERENCES_MAX: usize = 1_000;

/// Constraints of the tables that a statement may change, and its queued checks.
#[derive(Default)]
pub struct ConstraintQueue {
    tables: AHashMap<TableId, TableConstraints>,
    queued: Mutex<QueuedChecks>,
}

/// Constraints of a table.
pub struct TableConstraints {
    /// Number of the table.
    pub table: u32,
    /// Its foreign keys.
    pub references: Vec<Arc<ForeignKeyCheck>>,
    /// Foreign keys that reference it.
    pub referencing: Vec<Arc<ForeignKeyCheck>>,
    /// Indexes of its deferrable UNIQUE constraints.
    pub unique: Vec<Arc<Index>>,
    /// Its triggers that are called in the session, by name.
    pub triggers: Vec<Arc<Trigger>>,
}

/// Foreign key with its tables, as a statement checks it.
pub struct ForeignKeyCheck {
    /// The constraint.
    pub key: ForeignKey,
    /// The referencing table.
    pub referencing: Arc<Table>,
    /// The referenced table.
    pub referenced: Arc<Table>,
    /// True if new references can be checked before the statement ends.
    pub at_once: bool,
    /// True if its violations are deferred to the end of the transaction.
    pub is_deferred: bool,
}

/// Check of a foreign key for one changed row.
#[derive(Clone)]
pub struct ReferenceCheck {
    /// The foreign key.
    pub foreign_key: Arc<ForeignKeyCheck>,
    /// Values of the referencing columns of the new row, or of the referenced columns of the old
    /// one. Some are NULL only for a new row with MATCH FULL.
    pub values: Vec<Datum>,
    /// Change of the row.
    pub change: KeyChange,
}

/// Change that requires the check of a foreign key.
#[derive(Clone)]
pub enum KeyChange {
    /// A row with a new reference; its row key, if the check is queued.
    Reference(Option<Vec<u8>>),
    /// Removal of a referenced key; the new key, if it was updated.
    Removal(Option<Vec<Datum>>),
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

/// Check or trigger call after a statement.
pub enum QueuedCheck {
    /// Check of a foreign key.
    Reference(ReferenceCheck),
    /// Call of an AFTER trigger.
    Call(TriggerCall),
}

#[derive(Default)]
struct QueuedChecks {
    /// New references to be checked with the next batch of rows.
    references: Vec<ReferenceCheck>,
    /// Checks and calls after the statement.
    checks: VecDeque<QueuedCheck>,
    /// Rows of transition tables.
    transitions: AHashMap<(TableId, TriggerEvent), TransitionRows>,
    /// Tables and events whose BEFORE STATEMENT triggers were called.
    begun: AHashSet<(TableId, TriggerEvent)>,
    /// Keys that exist and whose locks are held.
    known: AHashSet<KeyLocation>,
    /// First violation found before the statement has ended.
    violation: Option<Error>,
    /// Violations of deferred constraints.
    deferred: Vec<ReferenceCheck>,
    /// New keys of deferrable UNIQUE constraints, in the order of the rows.
    keys: Vec<DeferrableKey>,
    known_keys: AHashSet<DeferrableKey>,
    /// Size of `checks`, `transitions` and `keys` in bytes.
    bytes: usize,
}

/// Referenced keys of a foreign key that are looked up together.
struct KeyGroup<'a> {
    foreign_key: &'a Arc<ForeignKeyCheck>,
    table: TableId,
    /// Distinct row keys.
    keys: Vec<&'a [u8]>,
    /// Positions in `keys`.
    positions: AHashMap<&'a [u8], usize>,
    /// Numbers of the references, each with the position of its key.
    references: Vec<(usize, usize)>,
}

impl ForeignKeyCheck {
    /// Locks referenced rows FOR KEY SHARE, given the distinct row keys of the primary key or of
    /// the index that the foreign key references; returns which of them exist.
    ///
    /// # Errors
    ///
    /// Errors that end a wait.
    pub fn lock_keys(&self, transaction: &Transaction, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let (referenced, mode) = (&self.referenced, LockMode::KeyShared);
        let Some(index) = self.key.index_of(referenced) else {
            transaction.lock_present_rows(referenced.id, keys, mode)?;
            let exists = |key: &&[u8]| Ok(transaction.exists_locked(referenced.id, key)?);
            return keys.iter().map(exists).collect();
        };
        // The owner of an entry is known for sure only once that row is locked.
        let mut locked: Vec<Option<Vec<u8>>> = vec![None; keys.len()];
        loop {
            let entries = index.spec.store_table;
            let owner = |entry: RowRef<'_>| Ok::<_, Error>(base_key(&index.spec, &entry)?);
            let owners = transaction
                .multi_get_locked(entries, keys, |entry| entry.map(owner).transpose())?;
            let is_unlocked = |(owner, locked): &(&Option<Vec<u8>>, _)| owner != locked;
            let rows = owners.iter().zip(&locked).filter(is_unlocked);
            let rows: Vec<&[u8]> = rows.filter_map(|(owner, _)| owner.as_deref()).collect();
            if rows.is_empty() {
                return Ok(owners.iter().map(Option::is_some).collect());
            }
            transaction.lock_present_rows(referenced.id, &rows, mode)?;
            locked = owners;
        }
    }

    /// Returns which keys exist for new references. At REPEATABLE READ a row that was committed
    /// after the snapshot does not exist.
    fn visible_keys(&self, table: TableId, keys: &[&[u8]], own: &Transaction) -> Result<Vec<bool>> {
        let mut found = self.lock_keys(own, keys)?;
        if !own.isolation().is_repeatable() {
            return Ok(found);
        }
        let view = own.view()?;
        for (key, is_there) in keys.iter().zip(&mut found) {
            let is_seen = own.exists(table, &Get::new(*key))?;
            if is_seen && !*is_there {
                let detail = "due to concurrent update".to_owned();
                return Err(store::Error::Serialization { detail }.into());
            }
            *is_there = *is_there && (is_seen || !own.is_newer(table, key, &view)?);
        }
        Ok(found)
    }
}

impl ReferenceCheck {
    /// Returns its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<ReferenceCheck>() + 4 * self.values.len() * size_of::<Datum>()
    }

    /// Returns the types of its values.
    pub fn types(&self) -> Vec<DataType> {
        let ForeignKeyCheck { key, referencing, referenced, .. } = &*self.foreign_key;
        let (table, columns) = match self.change {
            KeyChange::Reference(_) => (referencing, &key.columns),
            KeyChange::Removal(_) => (referenced, &key.referenced),
        };
        columns.iter().map(|column| table.columns[*column as usize].sql_type.base.clone()).collect()
    }

    /// Returns the error of a new reference without a referenced row, or of a partly NULL one.
    pub fn violation(&self, style: &TextStyle) -> Error {
        let ForeignKeyCheck { key, referencing, referenced, .. } = &*self.foreign_key;
        let message = format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
            referencing.name, key.name
        );
        let detail = match self.values.iter().any(Datum::is_null) {
            true => "MATCH FULL does not allow mixing of null and nonnull key values.".to_owned(),
            false => format!(
                "Key {} is not present in table \"{}\".",
                key_text(referencing, &key.columns, &self.values, style),
                referenced.name
            ),
        };
        violated(referencing, key, message, detail)
    }

    /// Returns whether the row of a queued reference exists and has the same reference.
    fn still_refers(&self, context: &Context) -> Result<bool> {
        let KeyChange::Reference(Some(row)) = &self.change else { return Ok(true) };
        let ForeignKeyCheck { key, referencing, .. } = &*self.foreign_key;
        let current = read_locked((referencing, row), &mut CellBatch::new(), context)?;
        Ok(current.is_some_and(|row| key.values(&row) == self.values))
    }
}

impl ConstraintQueue {
    /// Adds a table.
    pub fn add(&mut self, table: TableId, constraints: TableConstraints) {
        self.tables.insert(table, constraints);
    }

    /// Removes and returns the first check or call to be made after the statement.
    pub fn next(&self) -> Option<QueuedCheck> {
        let mut queued = self.queued.lock();
        let check = queued.checks.pop_front()?;
        queued.bytes -= match &check {
            QueuedCheck::Reference(check) => check.bytes(),
            QueuedCheck::Call(call) => call.bytes(),
        };
        Some(check)
    }

    /// Removes and returns the new keys of deferrable UNIQUE constraints.
    pub fn take_keys(&self) -> Vec<DeferrableKey> {
        std::mem::take(&mut self.queued.lock().keys)
    }

    /// Removes and returns the violations of deferred constraints.
    pub fn take_deferred(&self) -> Vec<ReferenceCheck> {
        std::mem::take(&mut self.queued.lock().deferred)
    }

    /// Raises the first violation that was found during the statement: all errors of the rows
    /// themselves come first.
    ///
    /// # Errors
    ///
    /// 23503.
    pub fn raise_violation(&self) -> Result<()> {
        let mut queued = self.queued.lock();
        debug_assert!(queued.references.is_empty(), "unchecked references after a statement");
        queued.violation.take().map_or(Ok(()), Err)
    }

    /// Checks the new references of the present batch of rows; records the violations.
    fn check_batch(&self, context: &Context) -> Result<()> {
        let references = std::mem::take(&mut self.queued.lock().references);
        if references.is_empty() {
            return Ok(());
        }
        for check in self.violations(references, context)? {
            let mut queued = self.queued.lock();
            if check.foreign_key.is_deferred {
                queued.deferred.push(check);
            } else {
                queued.violation.get_or_insert_with(|| check.violation(&context.eval.style));
            }
        }
        Ok(())
    }

    /// Checks queued references, after the statement. A row that was deleted, or whose reference
    /// was changed, since it was queued is no violation.
    ///
    /// # Errors
    ///
    /// 23503 if a referenced row does not exist.
    pub fn check_queued(&self, references: Vec<ReferenceCheck>, context: &Context) -> Result<()> {
        for check in self.violations(references, context)? {
            if check.still_refers(context)? {
                return Err(check.violation(&context.eval.style));
            }
        }
        Ok(())
    }

    /// Locks and looks up the keys of new references, those of each foreign key together. Returns
    /// the references without a referenced row, in order.
    fn violations(
        &self,
        references: Vec<ReferenceCheck>,
        context: &Context,
    ) -> Result<Vec<ReferenceCheck>> {
        let location = |check: &ReferenceCheck| match check.values.iter().any(Datum::is_null) {
            true => Ok(None),
            false => check.foreign_key.key.place(&check.foreign_key.referenced, &check.values),
        };
        let locations = references.iter().map(location).collect::<Result<Vec<_>>>()?;
        let mut is_missing: Vec<bool> = locations.iter().map(Option::is_none).collect();
        for group in self.unknown_keys(&references, &locations) {
            let KeyGroup { foreign_key, table, keys, references, .. } = group;
            let found = foreign_key.visible_keys(table, &keys, &context.transaction)?;
            for (reference, at) in references {
                is_missing[reference] = !found[at];
            }
            // A key that this statement may remove is searched each time.
            let cached =
                keys.iter().zip(&found).filter(|(_, found)| **found && foreign_key.at_once);
            let known = &mut self.queued.lock().known;
            for (key, _) in cached.take(KNOWN_KEYS_MAX.saturating_sub(known.len())) {
                known.insert(KeyLocation { table, row: key.to_vec() });
            }
        }
        let missing = references.into_iter().zip(is_missing).filter(|(_, is_missing)| *is_missing);
        Ok(missing.map(|(check, _)| check).collect())
    }

    /// Returns the referenced keys that are not known to exist, in the order of the references.
    fn unknown_keys<'a>(
        &self,
        references: &'a [ReferenceCheck],
        locations: &'a [Option<KeyLocation>],
    ) -> Vec<KeyGroup<'a>> {
        let known = &self.queued.lock().known;
        let mut groups: Vec<KeyGroup<'_>> = Vec::new();
        for (number, (check, location)) in references.iter().zip(locations).enumerate() {
            let Some(location) = location.as_ref().filter(|one| !known.contains(*one)) else {
                continue;
            };
            let (foreign_key, row) = (&check.foreign_key, location.row.as_slice());
            let is_of = |group: &KeyGroup<'_>| Arc::ptr_eq(group.foreign_key, foreign_key);
            let at = groups.iter().position(is_of).unwrap_or_else(|| {
                let (keys, positions, references) = (Vec::new(), AHashMap::new(), Vec::new());
                let table = location.table;
                groups.push(KeyGroup { foreign_key, table, keys, positions, references });
                groups.len() - 1
            });
            let group = &mut groups[at];
            let position = *group.positions.entry(row).or_insert(group.keys.len());
            if position == group.keys.len() {
                group.keys.push(row);
            }
            group.references.push((number, position));
        }
        groups
    }

    /// Records the new keys of deferrable UNIQUE constraints.
    fn note_keys(
        &self,
        constraints: &TableConstraints,
        old: Option<&[Datum]>,
        new: &[Datum],
        context: &Context,
    ) -> Result<()> {
        for index in &constraints.unique {
            let Some(prefix) = key_prefix(&index.spec, new, &context.eval)? else { continue };
            let before =
                old.map(|old| key_prefix(&index.spec, old, &context.eval)).transpose()?.flatten();
            if before.as_ref() == Some(&prefix) {
                continue;
            }
            let key = DeferrableKey { table: constraints.table, index: index.oid, prefix };
            let queued = &mut *self.queued.lock();
            if queued.known_keys.insert(key.clone()) {
                queued.bytes += 2 * (size_of::<DeferrableKey>() + key.prefix.len());
                memory::check(queued.bytes, context.work_mem())?;
                queued.keys.push(key);
            }
        }
        Ok(())
    }

    /// Queues the checks of a changed row.
    fn note(&self, table: &Arc<Table>, rows: TriggerRows<'_>, context: &Context) -> Result<()> {
        let Some(constraints) = self.tables.get(&table.id) else { return Ok(()) };
        let TriggerRows { old, new, .. } = rows;
        debug_assert!(old.is_some() || new.is_some(), "a change without a row");
        for row in old.iter().chain(&new) {
            let (found, width) = (row.len(), table.columns.len());
            debug_assert!(found >= width, "{found} values of {width} columns");
        }
        for foreign_key in constraints.referencing.iter().filter(|_| old.is_some()) {
            let values = |row: &[Datum]| foreign_key.key.referenced_values(row);
            let (old, new) = (old.map(values).unwrap_or_default(), new.map(values));
            if new.as_ref() != Some(&old) && !old.iter().any(Datum::is_null) {
                self.queue(foreign_key, old, KeyChange::Removal(new), context)?;
            }
        }
        if let Some(new) = new {
            self.note_new(constraints, table, (old, new), context)?;
        }
        match constraints.triggers.is_empty() {
            true => Ok(()),
            false => self.note_calls(constraints, table, rows, context),
        }
    }

    /// Queues the checks of an inserted or updated row.
    fn note_new(
        &self,
        constraints: &TableConstraints,
        table: &Table,
        (old, new): (Option<&[Datum]>, &[Datum]),
        context: &Context,
    ) -> Result<()> {
        self.note_keys(constraints, old, new, context)?;
        for foreign_key in &constraints.references {
            let key = &foreign_key.key;
            let values = key.values(new);
            let is_same = old.is_some_and(|old| key.values(old) == values);
            let has_null = values.iter().any(Datum::is_null);
            let is_checked = !has_null || key.match_full && !values.iter().all(Datum::is_null);
            if !is_same && is_checked {
                let is_queued = !foreign_key.at_once;
                let row = is_queued.then(|| table.layout.encode_key(new)).transpose()?;
                self.queue(foreign_key, values, KeyChange::Reference(row), context)?;
            }
        }
        Ok(())
    }

    /// Queues the calls of AFTER triggers for a changed row, and adds it to transition tables.
    fn note_calls(
        &self,
        constraints: &TableConstraints,
        table: &Arc<Table>,
        rows: TriggerRows<'_>,
        context: &Context,
    ) -> Result<()> {
        let event = match (rows.old, rows.new) {
            (None, _) => TriggerEvent::Insert,
            (_, None) => TriggerEvent::Delete,
            _ => TriggerEvent::Update,
        };
        let mut has_transitions = false;
        for trigger in &constraints.triggers {
            let record = &trigger.record;
            has_transitions |= record.has_transitions() && record.events.contains(&event);
            if trigger.is_called(
                (TriggerTiming::After, event, true),
                (table, rows),
                &context.eval,
            )? {
                self.queue_call(TriggerCall::new(trigger, table, event, rows), context)?;
            }
        }
        if has_transitions {
            let mut queued = self.queued.lock();
            let captured = queued.transitions.entry((table.id, event)).or_default();
            let bytes = captured.add(table, rows);
            queued.bytes += bytes;
            memory::check(queued.bytes, context.work_mem())?;
        }
        Ok(())
    }

    fn queue_call(&self, call: TriggerCall, context: &Context) -> Result<()> {
        let mut queued = self.queued.lock();
        queued.bytes += call.bytes();
        memory::check(queued.bytes, context.work_mem())?;
        queued.checks.push_back(QueuedCheck::Call(call));
        Ok(())
    }

    /// Removes a call of a statement trigger from the queue, if there is one.
    fn cancel_statement_call(&self, trigger: &Arc<Trigger>, event: TriggerEvent) {
        let mut queued = self.queued.lock();
        let is_same = |check: &QueuedCheck| match check {
            QueuedCheck::Call(call) => Arc::ptr_eq(&call.trigger, trigger) && call.event == event,
            QueuedCheck::Reference(_) => false,
        };
        if let Some(at) = queued.checks.iter().position(is_same) {
            let gone = queued.checks.remove(at);
            let bytes = gone.map_or(0, |gone| match gone {
                QueuedCheck::Call(call) => call.bytes(),
                QueuedCheck::Reference(check) => check.bytes(),
            });
            queued.bytes -= bytes;
        }
    }

    /// Executes a queued call.
    ///
    /// # Errors
    ///
    /// Errors of the function.
    pub fn call(&self, call: &TriggerCall, system: &dyn SystemSource) -> Result<()> {
        let transitions = match call.trigger.record.has_transitions() {
            true => {
                let mut queued = self.queued.lock();
                let rows = queued.transitions.entry((call.table.id, call.event)).or_default();
                Some(rows.arrays())
            }
            false => None,
        };
        if !call.trigger.record.is_row {
            self.queued.lock().begun.remove(&(call.table.id, call.event));
        }
        call.execute(transitions, &|routine: &Routine, arguments: Vec<Datum>| {
            system.routine_rows(routine, arguments)
        })
        .map(drop)
    }

    fn queue(
        &self,
        foreign_key: &Arc<ForeignKeyCheck>,
        values: Vec<Datum>,
        change: KeyChange,
        context: &Context,
    ) -> Result<()> {
        let foreign_key = Arc::clone(foreign_key);
        let is_early = foreign_key.at_once && matches!(change, KeyChange::Reference(_));
        let check = ReferenceCheck { foreign_key, values, change };
        let mut queued = self.queued.lock();
        if is_early {
            queued.references.push(check);
            return Ok(());
        }
        queued.bytes += check.bytes();
        memory::check(queued.bytes, context.work_mem())?;
        queued.checks.push_back(QueuedCheck::Reference(check));
        Ok(())
    }
}

impl Context {
    /// Queues the constraint checks and trigger calls of an insert, update or delete of a row, in
    /// table order; further columns are ignored.
    pub(super) fn row_changed(&self, table: &Arc<Table>, rows: TriggerRows<'_>) -> Result<()> {
        match &self.constraint_queue {
            None => Ok(()),
            Some(queue) => queue.note(table, rows, self),
        }
    }

    /// Returns the triggers of a table that are called in the session.
    pub(super) fn triggers_of(&self, table: &Table) -> &[Arc<Trigger>] {
        let queue = self.constraint_queue.as_ref();
        let constraints = queue.and_then(|queue| queue.tables.get(&table.id));
        constraints.map_or(&[], |constraints| &constraints.triggers)
    }

    /// Returns the caller of trigger functions.
    fn caller(&self) -> impl Fn(&Routine, Vec<Datum>) -> Result<FunctionRows> {
        |routine: &Routine, arguments: Vec<Datum>| self.system.routine_rows(routine, arguments)
    }

    /// Returns whether a table has row triggers of this time that are called in the session.
    pub(super) fn has_row_triggers(&self, table: &Table, timing: TriggerTiming) -> bool {
        let is_of = |one: &Arc<Trigger>| one.record.is_row && one.record.timing == timing;
        self.triggers_of(table).iter().any(is_of)
    }

    /// Calls the BEFORE or INSTEAD OF triggers of a row, in table order. Returns the row to write,
    /// or the row to delete; `None` if a trigger skips the change.
    pub(super) fn call_row_triggers(
        &self,
        table: &Arc<Table>,
        (timing, event): (TriggerTiming, TriggerEvent),
        rows: TriggerRows<'_>,
    ) -> Result<Option<Vec<Datum>>> {
        let mut new = rows.new.map(<[Datum]>::to_vec);
        for trigger in self.triggers_of(table) {
            let rows = TriggerRows { new: new.as_deref(), ..rows };
            let kind = (timing, event, true);
            if !trigger.is_called(kind, (table, rows), &self.eval)? {
                continue;
            }
            let call = TriggerCall::new(trigger, table, event, rows);
            let Some(returned) = call.execute(None, &self.caller())? else { return Ok(None) };
            if new.is_some() {
                new = Some(returned);
            }
        }
        Ok(Some(new.unwrap_or_default()))
    }

    /// Calls the BEFORE STATEMENT triggers of a change, once for each event of the statement.
    pub(crate) fn call_before_statement(
        &self,
        table: &Arc<Table>,
        (event, assigned): (TriggerEvent, &[usize]),
    ) -> Result<()> {
        let Some(queue) = &self.constraint_queue else { return Ok(()) };
        if self.triggers_of(table).is_empty()
            || !queue.queued.lock().begun.insert((table.id, event))
        {
            return Ok(());
        }
        let rows = TriggerRows { old: None, new: None, assigned };
        for trigger in self.triggers_of(table) {
            if trigger.is_called(
                (TriggerTiming::Before, event, false),
                (table, rows),
                &self.eval,
            )? {
                TriggerCall::new(trigger, table, event, rows).execute(None, &self.caller())?;
            }
        }
        Ok(())
    }

    /// Queues the calls of the AFTER STATEMENT triggers of a change; earlier ones of the same
    /// event in the queue are dropped.
    pub(crate) fn queue_after_statement(
        &self,
        table: &Arc<Table>,
        (event, assigned): (TriggerEvent, &[usize]),
    ) -> Result<()> {
        let Some(queue) = &self.constraint_queue else { return Ok(()) };
        let rows = TriggerRows { old: None, new: None, assigned };
        for trigger in self.triggers_of(table) {
            if !trigger.is_called(
                (TriggerTiming::After, event, false),
                (table, rows),
                &self.eval,
            )? {
                continue;
            }
            queue.cancel_statement_call(trigger, event);
            queue.queue_call(TriggerCall::new(trigger, table, event, rows), self)?;
        }
        Ok(())
    }

    /// Checks the references of the changed rows, after they are staged.
    pub(super) fn check_references(&self) -> Result<()> {
        self.constraint_queue.as_ref().map_or(Ok(()), |queue| queue.check_batch(self))
    }

    /// Returns whether the constraint queue covers a table.
    pub(super) fn watches(&self, table: &Table) -> bool {
        self.constraint_queue.as_ref().is_some_and(|queue| queue.tables.contains_key(&table.id))
    }
}

/// Returns the text `(a, b)=(1, x)` of key columns.
pub fn key_text(table: &Table, columns: &[u32], values: &[Datum], style: &TextStyle) -> String {
    let columns = || columns.iter().map(|column| &table.columns[*column as usize]);
    let names: Vec<&str> = columns().map(|column| column.name.as_str()).collect();
    let types: Vec<_> = columns().map(|column| column.sql_type.base.clone()).collect();
    violation::key_text((&names, &types), values, style)
}

/// Returns a foreign key violation.
pub fn violated(table: &Table, key: &ForeignKey, message: String, detail: String) -> Error {
    err!(FOREIGN_KEY_VIOLATION: message; detail detail;
        of_table &table.schema, &table.name; of_constraint &key.name)
}
