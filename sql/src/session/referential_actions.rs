//! Referential actions and checks of foreign keys, after a statement has changed rows.
//!
//! The executor queues removals of referenced keys and unchecked references in a
//! [`ConstraintQueue`]; this module processes the queue. As in PostgreSQL, actions on referencing
//! rows are executed as SQL statements: they use indexes like other statements, and their changes
//! are queued in turn.

use std::sync::Arc;

use store::transaction::TableLockMode;
use store::{TableId, Transaction};
use types::{Datum, SqlType};

use crate::ast::{Deferral, ReferentialAction};
use crate::catalog::Catalog;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::table::Table;
use crate::error::Result;
use crate::exec;
use crate::exec::constraint_queue::{
    ConstraintQueue, ForeignKeyCheck, KeyChange, QueuedCheck, REFERENCES_MAX, ReferenceCheck,
    TableConstraints, key_text, violated,
};
use crate::exec::triggers::TriggerCall;
use crate::exec::{Context, ModifyOutcome};
use crate::parser::quoted;
use crate::session::deferred_constraints::DeferredConstraints;
use crate::session::prepared::StatementPlan;
use crate::session::statement_executor::StatementExecutor;

/// Look-up of a referencing row.
const LOOK_UP: &str = " LIMIT 1";
/// Look-up that waits for a transaction that deletes or changes the row, as in PostgreSQL.
const LOCK: &str = " LIMIT 1 FOR KEY SHARE";

/// Executor of the checks and actions of foreign keys.
pub(super) struct ReferentialActions<'a> {
    executor: &'a mut StatementExecutor,
    /// Queue of the statement, also for the changes of actions.
    queue: Arc<ConstraintQueue>,
    /// Context of trigger calls.
    call_context: Option<Context>,
}

impl StatementExecutor {
    /// Executes a data-changing statement with its referential checks and actions.
    pub(super) fn modify(
        &mut self,
        planned: &StatementPlan,
        context: Context,
    ) -> Result<ModifyOutcome> {
        let modified = self.modify_and_check(planned, context);
        modified.map_err(|error| self.without_secured_detail(error, &planned.writes))
    }

    fn modify_and_check(
        &mut self,
        planned: &StatementPlan,
        context: Context,
    ) -> Result<ModifyOutcome> {
        let queue = self.constraint_queue(&planned.writes)?;
        let context = Context { constraint_queue: queue.clone(), ..context };
        let Some(queue) = queue else { return exec::modify(&planned.plan, context) };
        let in_use = self.use_tables(&planned.writes);
        let outcome = exec::modify(&planned.plan, context)
            .and_then(|outcome| self.process_queue(Some(queue)).map(|()| outcome));
        self.release_tables(in_use);
        outcome
    }

    /// Records tables that a statement changes, against DDL of the functions that it calls.
    /// Returns the number of those of the calling statements.
    fn use_tables(&self, tables: &[TableId]) -> usize {
        let Some(open) = &self.open else { return 0 };
        let in_use = &mut open.constraints.lock().in_use;
        in_use.extend_from_slice(tables);
        in_use.len() - tables.len()
    }

    /// Returns to the number of tables in use before [`StatementExecutor::use_tables`].
    fn release_tables(&self, count: usize) {
        if let Some(open) = &self.open {
            open.constraints.lock().in_use.truncate(count);
        }
    }

    /// Returns the constraint queue for writes to these tables, and locks the tables of the
    /// foreign keys involved. `None` if no constraint needs it.
    pub(super) fn constraint_queue(
        &mut self,
        tables: &[TableId],
    ) -> Result<Option<Arc<ConstraintQueue>>> {
        loop {
            let catalog = self.catalog();
            let concerned = concerned(&catalog, tables);
            if concerned.is_empty() {
                return Ok(None);
            }
            let others = concerned.iter().flat_map(|table| &table.foreign_keys);
            let others = others.filter_map(|key| catalog.table(key.table));
            let locked = concerned.iter().map(|table| (table.id, TableLockMode::RowExclusive));
            let others = others.map(|table| (table.id, TableLockMode::RowShare));
            let mut locked: Vec<(TableId, TableLockMode)> = locked.chain(others).collect();
            locked.sort_unstable();
            locked.dedup();
            if let Some(open) = &mut self.open {
                for (table, mode) in locked {
                    open.lock_shared(&self.environment.engine, table, mode)?;
                }
            }
            // A previous holder of a table's lock publishes its catalog after releasing it.
            drop(self.engine.publishing.lock());
            if self.catalog().version == catalog.version {
                let held = self.open.as_ref().map(|open| open.constraints.lock());
                let deferred = held.as_ref().map(|held| &held.deferred);
                let is_replica = self.settings.value("session_replication_role") == "replica";
                return Ok(Some(Arc::new(queue_of(&catalog, &concerned, deferred, is_replica))));
            }
        }
    }

    /// Processes the constraint queue at the end of the statement.
    pub(super) fn process_queue(&mut self, queue: Option<Arc<ConstraintQueue>>) -> Result<()> {
        let Some(queue) = queue else { return Ok(()) };
        ReferentialActions::new(self, Arc::clone(&queue)).process()?;
        queue.take_deferred().into_iter().try_for_each(|check| self.defer(check))?;
        self.check_keys(queue.take_keys())
    }

    fn defer(&mut self, check: ReferenceCheck) -> Result<()> {
        let work_mem = self.settings.parsed().work_mem_bytes;
        match &self.open {
            Some(open) => open.constraints.lock().deferred.defer(check, work_mem),
            None => Ok(()),
        }
    }
}

impl ReferentialActions<'_> {
    /// Returns an executor for the statement that has begun.
    pub(super) fn new(
        executor: &mut StatementExecutor,
        queue: Arc<ConstraintQueue>,
    ) -> ReferentialActions<'_> {
        ReferentialActions { executor, queue, call_context: None }
    }

    /// Processes the queue in its order; consecutive references are checked together.
    fn process(&mut self) -> Result<()> {
        self.queue.raise_violation()?;
        let mut references = Vec::new();
        loop {
            let next = self.queue.next();
            let is_reference = next.as_ref().is_some_and(|next| match next {
                QueuedCheck::Reference(check) => matches!(check.change, KeyChange::Reference(_)),
                QueuedCheck::Call(_) => false,
            });
            let is_complete = !is_reference || references.len() >= REFERENCES_MAX;
            if is_complete && !references.is_empty() {
                let context = self.context(&[], None);
                if context.transaction.isolation().is_repeatable() {
                    // The snapshot must show the transaction's own deletes.
                    context.transaction.begin_statement();
                }
                self.queue.check_queued(std::mem::take(&mut references), &context)?;
            }
            match next {
                None => return self.queue.raise_violation(),
                Some(QueuedCheck::Reference(check)) if is_reference => references.push(check),
                Some(QueuedCheck::Reference(check)) => self.react(check)?,
                Some(QueuedCheck::Call(call)) => self.call_or_defer(call)?,
            }
        }
    }

    /// Calls an AFTER trigger, or queues the call for the end of the transaction.
    fn call_or_defer(&mut self, call: TriggerCall) -> Result<()> {
        let work_mem = self.executor.settings.parsed().work_mem_bytes;
        if let Some(open) = &self.executor.open {
            let deferred = &mut open.constraints.lock().deferred;
            if deferred.is_call_deferred(&call) {
                return deferred.defer_call(call, work_mem);
            }
        }
        self.call(&call)
    }

    /// Calls an AFTER trigger.
    pub(super) fn call(&mut self, call: &TriggerCall) -> Result<()> {
        self.transaction().begin_statement();
        let context = match &self.call_context {
            Some(context) => context,
            None => {
                let context = self.context(&[], None);
                self.call_context.insert(context)
            }
        };
        self.queue.call(call, context.system.as_ref())
    }

    /// Executes the referential action of a removed key; a possible violation of a deferred
    /// constraint is queued, without a wait for other transactions.
    fn react(&mut self, check: ReferenceCheck) -> Result<()> {
        let is_deferred =
            check.foreign_key.is_deferred && action(&check) == ReferentialAction::NoAction;
        if !is_deferred {
            return self.execute_action(&check);
        }
        let transaction = self.transaction();
        transaction.begin_statement();
        let _newest = transaction.read_newest()?;
        match self.is_referenced(&check, LOOK_UP)? {
            true => self.executor.defer(check),
            // The lock of the row excludes new references until the transaction ends.
            false => Ok(()),
        }
    }

    /// Checks a deferred constraint again: the key may have been inserted, or the referencing row
    /// deleted.
    ///
    /// # Errors
    ///
    /// 23503
    pub(super) fn recheck(&mut self, check: &ReferenceCheck) -> Result<()> {
        if matches!(check.change, KeyChange::Removal(_)) {
            return self.execute_action(check);
        }
        let foreign_key = &check.foreign_key;
        // A partly NULL key never matches.
        let is_partly_null = check.values.iter().any(Datum::is_null);
        if !is_partly_null
            && let Some(place) = foreign_key.key.place(&foreign_key.referenced, &check.values)?
            && foreign_key.lock_keys(&self.transaction(), &[&place.row])? == [true]
        {
            return Ok(());
        }
        match self.is_referenced(check, LOCK)? {
            true => Err(check.violation(self.executor.settings.style())),
            false => Ok(()),
        }
    }

    /// Executes the referential action of a constraint on the referencing rows.
    fn execute_action(&mut self, check: &ReferenceCheck) -> Result<()> {
        let ReferenceCheck { foreign_key, values: old, change } = check;
        let ForeignKeyCheck { key, referencing, referenced, .. } = &**foreign_key;
        let Some(place) = key.place(referenced, old)? else { return Ok(()) };
        let transaction = self.transaction();
        // The row has been locked only since it was written.
        transaction.begin_statement();
        let _newest = transaction.read_newest()?;
        let action = action(check);
        if action == ReferentialAction::NoAction {
            // Another row has the key now.
            if transaction.exists_locked(place.table, &place.row)? {
                return Ok(());
            }
        }
        let new = match change {
            KeyChange::Removal(new) => new.as_ref(),
            KeyChange::Reference(_) => None,
        };
        let set = |value: &dyn Fn(usize) -> String| {
            let is_set = |column: &u32| {
                new.is_some()
                    || key.delete_columns.is_empty()
                    || key.delete_columns.contains(column)
            };
            let columns = key.columns.iter().enumerate().filter(|(_, column)| is_set(column));
            let columns = columns.map(|(at, column)| {
                format!("{} = {}", quoted(&referencing.columns[*column as usize].name), value(at))
            });
            let columns: Vec<String> = columns.collect();
            format!("UPDATE {} SET {}", referencing.full_name(), columns.join(", "))
        };
        let mut parameters = old.clone();
        let statement = match (action, new) {
            (ReferentialAction::NoAction | ReferentialAction::Restrict, _) => {
                return self.refuse_referenced(check);
            }
            (ReferentialAction::Cascade, None) => {
                format!("DELETE FROM {}", referencing.full_name())
            }
            (ReferentialAction::Cascade, Some(new)) => {
                parameters.extend(new.iter().cloned());
                set(&|at| format!("${}", old.len() + at + 1))
            }
            (ReferentialAction::SetNull, _) => set(&|_| "NULL".to_owned()),
            (ReferentialAction::SetDefault, _) => set(&|_| "DEFAULT".to_owned()),
        };
        let planned = self.plan((&statement, ""), check)?;
        exec::modify(&planned.plan, self.context(&parameters, Some(&planned)))?;
        if action == ReferentialAction::SetDefault {
            transaction.begin_statement();
            return self.refuse_referenced(check);
        }
        Ok(())
    }

    /// Fails if a row references the key.
    fn refuse_referenced(&mut self, check: &ReferenceCheck) -> Result<()> {
        if !self.is_referenced(check, LOCK)? {
            return Ok(());
        }
        let ForeignKeyCheck { key, referencing, referenced, .. } = &*check.foreign_key;
        let message = format!(
            "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \
             \"{}\"",
            referenced.name, key.name, referencing.name
        );
        let style = self.executor.settings.style();
        let detail = format!(
            "Key {} is still referenced from table \"{}\".",
            key_text(referenced, &key.referenced, &check.values, style),
            referencing.name
        );
        Err(violated(referencing, key, message, detail))
    }

    /// Returns whether a row references the key, by [`LOOK_UP`] or [`LOCK`].
    fn is_referenced(&mut self, check: &ReferenceCheck, look_up: &str) -> Result<bool> {
        let planned = self.plan(("SELECT 1 FROM", look_up), check)?;
        let mut rows = exec::open(&planned.plan, self.context(&check.values, Some(&planned)))?;
        // A batch has at least one row.
        Ok(rows.next()?.is_some())
    }

    /// Returns the plan of an internal statement over the rows that reference a key, with
    /// parameters `$1` and so on. `suffix`: text behind the condition.
    fn plan(
        &mut self,
        (statement, suffix): (&str, &str),
        check: &ReferenceCheck,
    ) -> Result<Arc<StatementPlan>> {
        let ForeignKeyCheck { key, referencing, .. } = &*check.foreign_key;
        let from = match statement.ends_with(" FROM") {
            true => format!(" {}", referencing.full_name()),
            false => String::new(),
        };
        let conditions = key.columns.iter().enumerate().map(|(at, column)| {
            let name = quoted(&referencing.columns[*column as usize].name);
            match check.values[at].is_null() {
                true => format!("{name} IS NULL"),
                false => format!("{name} = ${}", at + 1),
            }
        });
        let conditions: Vec<String> = conditions.collect();
        let text = format!("{statement}{from} WHERE {}{suffix}", conditions.join(" AND "));
        let types = check.types();
        let types: Vec<SqlType> = types.iter().chain(&types).map(SqlType::from).collect();
        // As in PostgreSQL, with the privileges of the owner of the rows that change.
        let subject = AccessSubject::Relation(referencing.oid);
        let owner = self.executor.catalog().access(subject).owner;
        let is_forced = referencing.row_security.is_forced;
        self.executor.in_present_as((owner, is_forced), |executor| {
            let statement = executor.cached_statement(&text, &types)?;
            executor.with_planning(|planning| statement.planned(planning))
        })
    }

    fn transaction(&self) -> Arc<Transaction> {
        Arc::clone(&self.executor.open.as_ref().expect("a statement was begun").transaction)
    }

    fn context(&self, parameters: &[Datum], planned: Option<&StatementPlan>) -> Context {
        let open = self.executor.open.as_ref().expect("a statement was begun");
        let mut parameters = parameters.to_vec();
        parameters.resize(planned.map_or(0, |planned| planned.parameter_count), Datum::Null);
        let constraint_queue = Some(Arc::clone(&self.queue));
        Context { constraint_queue, ..self.executor.context(open, parameters) }
    }
}

/// Returns the action of a constraint for a removed key.
fn action(check: &ReferenceCheck) -> ReferentialAction {
    let key = &check.foreign_key.key;
    match check.change {
        KeyChange::Removal(Some(_)) => key.on_update,
        KeyChange::Removal(None) | KeyChange::Reference(_) => key.on_delete,
    }
}

/// Returns the written tables and those that referential actions write to; empty if there is no
/// foreign key, no deferrable UNIQUE constraint and no trigger.
fn concerned(catalog: &Catalog, tables: &[TableId]) -> Vec<Arc<Table>> {
    let written = tables.iter().filter_map(|table| catalog.target(*table));
    let mut found: Vec<Arc<Table>> = written.cloned().collect();
    let is_concerned = |table: &Arc<Table>| {
        !table.foreign_keys.is_empty()
            || !table.triggers.is_empty()
            || catalog.referencing(table.oid).next().is_some()
            || table.indexes.iter().any(|index| index.deferral != Deferral::Never)
    };
    if !found.iter().any(is_concerned) {
        return Vec::new();
    }
    let mut next = 0;
    while let Some(table) = found.get(next).map(Arc::clone) {
        next += 1;
        for (referencing, _) in catalog.referencing(table.oid) {
            if found.iter().all(|one| one.oid != referencing.oid) {
                found.push(Arc::clone(referencing));
            }
        }
    }
    found
}

/// Returns the constraint queue of the tables. `is_replica`: foreign keys are not checked.
fn queue_of(
    catalog: &Catalog,
    tables: &[Arc<Table>],
    deferred: Option<&DeferredConstraints>,
    is_replica: bool,
) -> ConstraintQueue {
    let check = |(referencing, key): (&Arc<Table>, &ForeignKey)| {
        let referenced = Arc::clone(catalog.table(key.table)?);
        let is_deferred = deferred
            .is_some_and(|modes| modes.is_deferred(referencing.oid, &key.name, key.deferral));
        // A premature violation of a deferred constraint is checked again later.
        // Triggers may write it, too.
        let at_once = is_deferred
            || tables.iter().all(|one| one.oid != referenced.oid && one.triggers.is_empty());
        let (key, referencing) = (key.clone(), Arc::clone(referencing));
        Some(Arc::new(ForeignKeyCheck { key, referencing, referenced, at_once, is_deferred }))
    };
    let keys =
        tables.iter().flat_map(|table| table.foreign_keys.iter().map(move |key| (table, key)));
    let checks: Vec<Arc<ForeignKeyCheck>> = keys.filter_map(check).collect();
    let mut queue = ConstraintQueue::default();
    for table in tables {
        let has_triggers = !is_replica && !table.without_triggers;
        let own = checks.iter().filter(|one| has_triggers && one.referencing.oid == table.oid);
        let others = catalog.referencing(table.oid).filter(|_| has_triggers);
        let others = others.filter_map(|(referencing, key)| {
            checks.iter().find(|one| one.referencing.oid == referencing.oid && one.key == *key)
        });
        let deferrable = table.indexes.iter().filter(|one| one.deferral != Deferral::Never);
        let called = table.triggers.iter().filter(|one| one.record.fires_in(is_replica));
        let constraints = TableConstraints {
            table: table.oid,
            references: own.cloned().collect(),
            referencing: others.cloned().collect(),
            unique: deferrable.cloned().collect(),
            triggers: called.cloned().collect(),
        };
        queue.add(table.id, constraints);
    }
    queue
}
