//! Referential actions and checks of foreign keys, after a statement has changed rows.
//!
//! The executor queues changes of referenced rows and unchecked references in a
//! [`ConstraintQueue`]; this module processes the queue. As in PostgreSQL, actions on referencing
//! rows are executed as SQL statements: they use indexes like other statements, and their changes
//! are queued in turn.

use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use store::transaction::{Isolation, TableLockMode, TransactionOptions};
use store::{CellBatch, Get, TableId};
use types::text::TextStyle;
use types::{DataType, Datum, SqlType};

use crate::ast::{Deferral, ReferentialAction};
use crate::catalog::Catalog;
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::table::Table;
use crate::error::{Error, Result, sqlstate};
use crate::exec;
use crate::exec::constraint_queue::{
    ConstraintQueue, DeferredViolation, ForeignKeyCheck, TableConstraints, key_text, lock_key,
    missing_row_violation, partly_null_violation, violated,
};
use crate::exec::{Context, ModifyOutcome};
use crate::parser::quoted;
use crate::session::CachedStatementPlan;
use crate::session::deferred_constraints::DeferredConstraints;
use crate::session::statement_executor::StatementExecutor;

/// Old and new version of a row that is referenced by a foreign key.
pub(super) struct ReferencedRowChange<'a> {
    pub(super) referenced: &'a Arc<Table>,
    pub(super) referencing: &'a Arc<Table>,
    pub(super) key: &'a ForeignKey,
    pub(super) old: Vec<Datum>,
    pub(super) new: Option<Vec<Datum>>,
    /// Types of the key values.
    pub(super) types: Vec<DataType>,
}

/// Cached plans of the internal statements, by text and parameter types.
pub(super) type ReferentialPlans = AHashMap<(String, Vec<DataType>), Arc<CachedStatementPlan>>;

impl StatementExecutor {
    /// Executes a data-changing statement with its referential checks and actions.
    pub(super) fn modify(
        &mut self,
        planned: &CachedStatementPlan,
        context: Context,
    ) -> Result<ModifyOutcome> {
        let watch = self.constraint_queue(&planned.writes)?;
        let context = Context { constraint_queue: watch.clone(), ..context };
        let outcome = exec::modify(&planned.plan, context)?;
        self.process_queue(watch)?;
        Ok(outcome)
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
                return Ok(Some(Arc::new(watched(&catalog, &concerned, deferred, is_replica))));
            }
        }
    }

    /// Processes the constraint queue at the end of the statement.
    pub(super) fn process_queue(&mut self, watch: Option<Arc<ConstraintQueue>>) -> Result<()> {
        let Some(watch) = watch else { return Ok(()) };
        watch.raise_violation()?;
        let mut plans = ReferentialPlans::new();
        while let Some(change) = watch.next() {
            let Some(watched) = watch.table(change.table) else { continue };
            let catalog = self.catalog();
            if let Some(old) = change.old.as_ref().filter(|_| watched.is_referenced) {
                for (referencing, key) in catalog.referencing(watched.table.oid) {
                    let types = key.referenced.iter();
                    let types = types.map(|one| watched.table.columns[*one as usize].sql_type.base);
                    let gone = ReferencedRowChange {
                        types: types.collect(),
                        referenced: &watched.table,
                        referencing,
                        key,
                        old: key.referenced_values(old),
                        new: change.new.as_ref().map(|new| key.referenced_values(new)),
                    };
                    if !gone.old.iter().any(Datum::is_null) && gone.new.as_ref() != Some(&gone.old)
                    {
                        self.react_now(&gone, &watch, &mut plans)?;
                    }
                }
            }
            let Some(new) = &change.new else { continue };
            let late = watched.references.iter().filter(|reference| !reference.at_once);
            let late: Vec<ForeignKeyCheck> = late.cloned().collect();
            for reference in late {
                let values = reference.key.values(new);
                let same =
                    change.old.as_ref().is_some_and(|old| reference.key.values(old) == values);
                if !same {
                    let context = self.inner_context(&[], None, &watch);
                    if self.open.as_ref().is_some_and(|open| open.is_repeatable()) {
                        // The snapshot must show the transaction's own deletes.
                        context.transaction.begin_statement();
                    }
                    watch.check_queued_reference(watched, &reference, new, &context)?;
                }
            }
        }
        watch.raise_violation()?;
        watch.take_late().into_iter().try_for_each(|late| self.put_off(late))?;
        self.check_keys(watch.take_keys())
    }

    fn put_off(&mut self, late: DeferredViolation) -> Result<()> {
        let work_mem = self.settings.parsed().work_mem_bytes;
        match &self.open {
            Some(open) => open.constraints.lock().deferred.defer(late, work_mem),
            None => Ok(()),
        }
    }

    /// Like [`StatementExecutor::execute_action`], but queues the violation of a deferred
    /// constraint.
    fn react_now(
        &mut self,
        gone: &ReferencedRowChange<'_>,
        watch: &Arc<ConstraintQueue>,
        plans: &mut ReferentialPlans,
    ) -> Result<()> {
        let ReferencedRowChange { referencing, key, old, new, .. } = gone;
        let action = if new.is_some() { key.on_update } else { key.on_delete };
        let is_deferred = action == ReferentialAction::NoAction
            && self.open.as_ref().is_some_and(|open| {
                open.constraints.lock().deferred.is_deferred(
                    referencing.oid,
                    &key.name,
                    key.deferral,
                )
            });
        match self.execute_action(gone, watch, plans) {
            Err(error)
                if is_deferred && error.sqlstate.as_ref() == sqlstate::FOREIGN_KEY_VIOLATION =>
            {
                let (table, key) = (referencing.oid, (*key).clone());
                let (values, new) = (old.clone(), new.clone());
                self.put_off(DeferredViolation { table, key, values, is_removal: true, new })
            }
            done => done,
        }
    }

    /// Checks a reference without a referenced row again: the key may have been inserted, or the
    /// referencing row deleted.
    pub(super) fn check_late(
        &mut self,
        gone: &ReferencedRowChange<'_>,
        watch: &Arc<ConstraintQueue>,
        plans: &mut ReferentialPlans,
    ) -> Result<()> {
        let ReferencedRowChange { referenced, referencing, key, old, .. } = gone;
        // A partly NULL key never matches.
        if old.iter().any(Datum::is_null) {
            return match self.is_referenced(gone, watch, plans)? {
                true => Err(partly_null_violation(referencing, key)),
                false => Ok(()),
            };
        }
        let context = self.inner_context(&[], None, watch);
        let transaction = Arc::clone(&context.transaction);
        if let Some(place) = key.place(referenced, old)?
            && lock_key(&transaction, referenced, key, &place)?
        {
            return Ok(());
        }
        if !self.is_referenced(gone, watch, plans)? {
            return Ok(());
        }
        let referenced = Arc::clone(referenced);
        let key = (*key).clone();
        let reference = ForeignKeyCheck { key, referenced, at_once: false, is_deferred: false };
        Err(missing_row_violation(referencing, &reference, old, &context.eval.style))
    }

    /// Executes the referential action of a constraint on the referencing rows.
    pub(super) fn execute_action(
        &mut self,
        gone: &ReferencedRowChange<'_>,
        watch: &Arc<ConstraintQueue>,
        plans: &mut ReferentialPlans,
    ) -> Result<()> {
        let ReferencedRowChange { referenced, referencing, key, old, new, .. } = gone;
        let Some(place) = key.place(referenced, old)? else { return Ok(()) };
        let context = self.inner_context(&[], None, watch);
        let transaction = Arc::clone(&context.transaction);
        // The row has been locked only since it was written.
        transaction.begin_statement();
        let repeatable = self.open.as_ref().is_some_and(|open| open.is_repeatable());
        if repeatable {
            self.refuse_unseen(gone, watch, plans)?;
        }
        let action = if new.is_some() { key.on_update } else { key.on_delete };
        if action == ReferentialAction::NoAction {
            let mut cells = CellBatch::new();
            // Another row has the key now.
            if transaction.get_locked(place.table, &Get::new(place.row), &mut cells)? {
                return Ok(());
            }
        }
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
                return self.refuse_referenced(gone, watch, plans);
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
        let planned = self.inner_plan((&statement, ""), gone, plans)?;
        let context = self.inner_context(&parameters, Some(&planned), watch);
        exec::modify(&planned.plan, context)?;
        if action == ReferentialAction::SetDefault {
            transaction.begin_statement();
            return self.refuse_referenced(gone, watch, plans);
        }
        Ok(())
    }

    /// Fails if a row references the key.
    fn refuse_referenced(
        &mut self,
        gone: &ReferencedRowChange<'_>,
        watch: &Arc<ConstraintQueue>,
        plans: &mut ReferentialPlans,
    ) -> Result<()> {
        match self.is_referenced(gone, watch, plans)? {
            true => Err(still_referenced(gone, self.settings.style())),
            false => Ok(()),
        }
    }

    /// Returns whether a row references the key. At READ COMMITTED a row that another transaction
    /// deletes or changes is waited for, as in PostgreSQL.
    fn is_referenced(
        &mut self,
        gone: &ReferencedRowChange<'_>,
        watch: &Arc<ConstraintQueue>,
        plans: &mut ReferentialPlans,
    ) -> Result<bool> {
        let is_repeatable = self.open.as_ref().is_some_and(|open| open.is_repeatable());
        let lock = if is_repeatable { "" } else { " FOR KEY SHARE" };
        let planned = self.inner_plan(("SELECT 1 FROM", lock), gone, plans)?;
        let mut rows =
            exec::open(&planned.plan, self.inner_context(&gone.old, Some(&planned), watch))?;
        while let Some(batch) = rows.next()? {
            if batch.row_count > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// At REPEATABLE READ the internal statements use the transaction's snapshot: fails for a
    /// reference that was committed after it.
    fn refuse_unseen(
        &mut self,
        gone: &ReferencedRowChange<'_>,
        watch: &Arc<ConstraintQueue>,
        plans: &mut ReferentialPlans,
    ) -> Result<()> {
        let table = gone.referencing;
        let keys: Vec<usize> = table.key_columns().collect();
        let planned = self.inner_plan(("SELECT * FROM", ""), gone, plans)?;
        let own = self.inner_context(&gone.old, Some(&planned), watch);
        let mut seen = AHashSet::new();
        let latest = TransactionOptions {
            isolation: Isolation::ReadCommitted,
            read_only: true,
            ..TransactionOptions::default()
        };
        let latest = Arc::new(self.engine.store().begin(latest));
        latest.require_commit(own.transaction.required_commit());
        latest.begin_statement();
        let fresh = Context { transaction: latest, view: Arc::default(), ..own.clone() };
        let visible: Vec<usize> = table.visible_columns().collect();
        let row_key = |values: Vec<Datum>| -> Result<Option<Vec<u8>>> {
            let mut row = vec![Datum::Null; table.columns.len()];
            for (column, value) in visible.iter().zip(values) {
                row[*column] = value;
            }
            match keys.iter().all(|key| visible.contains(key)) {
                true => Ok(Some(table.layout.encode_key(&row)?)),
                false => Ok(None),
            }
        };
        let own = Context { view: Arc::default(), ..own };
        for (context, is_own) in [(own.clone(), true), (fresh, false)] {
            let mut rows = exec::open(&planned.plan, context)?;
            while let Some(batch) = rows.next()? {
                for at in 0..batch.row_count {
                    let key = row_key(batch.row(at))?;
                    if is_own {
                        seen.insert(key);
                    } else if !seen.contains(&key) && self.is_there(&own, table, key.as_deref())? {
                        bail!(SERIALIZATION_FAILURE: "could not serialize access due to concurrent update");
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns whether a row exists for this transaction, including its own changes.
    fn is_there(&self, own: &Context, table: &Table, key: Option<&[u8]>) -> Result<bool> {
        let Some(key) = key else { return Ok(true) };
        let mut cells = CellBatch::new();
        Ok(own.transaction.get_locked(table.id, &Get::new(key), &mut cells)?)
    }

    /// Returns the plan of an internal statement over the rows that reference a key, with
    /// parameters `$1` and so on. `suffix`: text behind the condition.
    fn inner_plan(
        &mut self,
        (statement, suffix): (&str, &str),
        gone: &ReferencedRowChange<'_>,
        plans: &mut ReferentialPlans,
    ) -> Result<Arc<CachedStatementPlan>> {
        let ReferencedRowChange { referencing, key, types, .. } = gone;
        let from = match statement.ends_with(" FROM") {
            true => format!(" {}", referencing.full_name()),
            false => String::new(),
        };
        let conditions = key.columns.iter().enumerate().map(|(at, column)| {
            let name = quoted(&referencing.columns[*column as usize].name);
            match gone.old[at].is_null() {
                true => format!("{name} IS NULL"),
                false => format!("{name} = ${}", at + 1),
            }
        });
        let conditions: Vec<String> = conditions.collect();
        let text = format!("{statement}{from} WHERE {}{suffix}", conditions.join(" AND "));
        let kept = (text.clone(), types.clone());
        if let Some(planned) = plans.get(&kept) {
            return Ok(Arc::clone(planned));
        }
        let types = types.iter().chain(types).map(|base| Some(SqlType::from(*base)));
        let types: Vec<Option<SqlType>> = types.collect();
        let parsed = super::parse(&text)?.pop();
        let parsed = parsed
            .ok_or_else(|| err!(INTERNAL_ERROR: "the statement of a foreign key is empty"))?;
        let statement = &parsed.statement.statement;
        let planned = self.with_planning(|planning| planning.plan(statement, &types))?.planned;
        let planned = Arc::new(planned);
        plans.insert(kept, Arc::clone(&planned));
        Ok(planned)
    }

    fn inner_context(
        &self,
        parameters: &[Datum],
        planned: Option<&CachedStatementPlan>,
        watch: &Arc<ConstraintQueue>,
    ) -> Context {
        let open = self.open.as_ref().expect("a statement was begun");
        let mut parameters = parameters.to_vec();
        parameters.resize(planned.map_or(0, |planned| planned.parameter_count), Datum::Null);
        Context { constraint_queue: Some(Arc::clone(watch)), ..self.context(open, parameters) }
    }
}

/// Returns the written tables and those that referential actions write to; empty if there is no
/// foreign key and no deferrable UNIQUE constraint.
fn concerned(catalog: &Catalog, tables: &[TableId]) -> Vec<Arc<Table>> {
    let written = tables.iter().filter_map(|table| catalog.table_stored(*table));
    let mut found: Vec<Arc<Table>> = written.cloned().collect();
    let is_concerned = |table: &Arc<Table>| {
        !table.foreign_keys.is_empty()
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
fn watched(
    catalog: &Catalog,
    tables: &[Arc<Table>],
    deferred: Option<&DeferredConstraints>,
    is_replica: bool,
) -> ConstraintQueue {
    let mut watch = ConstraintQueue::default();
    for table in tables {
        let has_triggers = !is_replica && !table.without_triggers;
        let keys = table.foreign_keys.iter().filter(|_| has_triggers);
        let references = keys.filter_map(|key| {
            let referenced = Arc::clone(catalog.table(key.table)?);
            let at_once = tables.iter().all(|one| one.oid != referenced.oid);
            let is_deferred =
                deferred.is_some_and(|modes| modes.is_deferred(table.oid, &key.name, key.deferral));
            // A premature violation of a deferred constraint is checked again later.
            let at_once = at_once || is_deferred;
            Some(ForeignKeyCheck { key: key.clone(), referenced, at_once, is_deferred })
        });
        let deferrable = table.indexes.iter().filter(|one| one.deferral != Deferral::Never);
        watch.add(TableConstraints {
            table: Arc::clone(table),
            references: references.collect(),
            is_referenced: has_triggers && catalog.referencing(table.oid).next().is_some(),
            unique: deferrable.cloned().collect(),
        });
    }
    watch
}

fn still_referenced(gone: &ReferencedRowChange<'_>, style: &TextStyle) -> Error {
    let ReferencedRowChange { referenced, referencing, key, old, .. } = gone;
    let message = format!(
        "update or delete on table \"{}\" violates foreign key constraint \"{}\" on table \"{}\"",
        referenced.name, key.name, referencing.name
    );
    let detail = format!(
        "Key {} is still referenced from table \"{}\".",
        key_text(referenced, &key.referenced, old, style),
        referencing.name
    );
    violated(referencing, key, message, detail)
}
