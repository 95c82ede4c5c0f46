//! Deferred constraints: foreign keys and unique keys that are checked at commit, and constraint
//! triggers that are called then.
//!
//! A deferred constraint is checked after the statement like any other, but a violation is queued
//! ([`ReferenceCheck`]) instead of raised, and checked again by COMMIT or SET CONSTRAINTS
//! IMMEDIATE. That check reads the present tables: a row that was deleted since, or a key that was
//! added, is no violation. Referential actions (CASCADE, SET NULL, SET DEFAULT) and RESTRICT are
//! never deferred, as in PostgreSQL.

use std::collections::VecDeque;
use std::sync::Arc;

use types::Datum;

use crate::ast::{Deferral, SetConstraints, TableName};
use crate::catalog::Catalog;
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::name::SearchPath;
use crate::error::{Error, Result, sqlstate};
use crate::exec::constraint_queue::{DeferrableKey, ForeignKeyCheck, KeyChange, ReferenceCheck};
use crate::exec::memory;
use crate::exec::triggers::TriggerCall;
use crate::session::Session;
use crate::session::referential_actions::ReferentialActions;
use crate::session::statement_executor::StatementExecutor;

/// Deferred-constraint state of a transaction.
#[derive(Clone, Default)]
pub(crate) struct DeferredConstraints {
    /// Last SET CONSTRAINTS ALL: deferred or not.
    all: Option<bool>,
    /// Later SET CONSTRAINTS of single constraints: table, name, deferred.
    named: Vec<(u32, String, bool)>,
    /// Violations of deferred foreign keys.
    checks: Vec<ReferenceCheck>,
    /// Keys of deferred unique constraints that more than one row had.
    keys: Vec<DeferrableKey>,
    /// Calls of deferred constraint triggers, in the order of the changes.
    calls: VecDeque<TriggerCall>,
    /// Size of `checks` and `calls` in bytes.
    bytes: usize,
}

impl DeferredConstraints {
    /// Returns whether a foreign key of a table is deferred now.
    pub(crate) fn is_deferred(&self, table: u32, name: &str, deferral: Deferral) -> bool {
        let said = self.named.iter().find(|(of, known, _)| *of == table && known == name);
        let now = said.map(|(.., deferred)| *deferred).or(self.all);
        deferral != Deferral::Never && now.unwrap_or(deferral == Deferral::Deferred)
    }

    /// Queues a violation for the deferred check.
    pub(crate) fn defer(&mut self, check: ReferenceCheck, work_mem: usize) -> Result<()> {
        debug_assert!(
            check.foreign_key.key.match_full || !check.values.iter().any(Datum::is_null),
            "a NULL in a violation of foreign key {}",
            check.foreign_key.key.name
        );
        self.bytes += check.bytes();
        memory::check(self.bytes, work_mem)?;
        self.checks.push(check);
        Ok(())
    }

    /// Returns whether a call of a trigger is deferred now.
    pub(crate) fn is_call_deferred(&self, call: &TriggerCall) -> bool {
        let record = &call.trigger.record;
        self.is_deferred(call.table.oid, &record.name, record.deferral)
    }

    /// Queues a call of a constraint trigger.
    pub(crate) fn defer_call(&mut self, call: TriggerCall, work_mem: usize) -> Result<()> {
        self.bytes += call.bytes();
        memory::check(self.bytes, work_mem)?;
        self.calls.push_back(call);
        Ok(())
    }

    /// Removes and returns the first queued call, or the first one that is not deferred now.
    fn take_call(&mut self, all: bool) -> Option<TriggerCall> {
        let at = self.calls.iter().position(|call| all || !self.is_call_deferred(call))?;
        let call = self.calls.remove(at)?;
        self.bytes = self.bytes.saturating_sub(call.bytes());
        Some(call)
    }

    /// Queues a duplicate key for the deferred check.
    pub(crate) fn defer_key(&mut self, key: DeferrableKey) {
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }

    /// Removes and returns the queued keys.
    pub(crate) fn take_keys(&mut self) -> Vec<DeferrableKey> {
        std::mem::take(&mut self.keys)
    }

    /// Returns the tables that have queued rows or keys.
    pub(crate) fn tables(&self) -> Vec<u32> {
        let of_check = |check: &ReferenceCheck| match check.change {
            KeyChange::Reference(_) => check.foreign_key.referencing.oid,
            KeyChange::Removal(_) => check.foreign_key.key.table,
        };
        let of_keys = self.keys.iter().map(|key| key.table);
        let of_calls = self.calls.iter().map(|call| call.table.oid);
        self.checks.iter().map(of_check).chain(of_keys).chain(of_calls).collect()
    }
}

impl Session {
    /// Executes SET CONSTRAINTS.
    pub(super) fn run_set_constraints(&mut self, statement: &SetConstraints) -> Result<()> {
        let in_block = self.is_in_block();
        if !in_block {
            let message = "SET CONSTRAINTS can only be used in transaction blocks";
            self.warn(sqlstate::NO_ACTIVE_SQL_TRANSACTION, message);
        }
        let catalog = self.catalog();
        let path = Arc::clone(self.constants.search_path());
        let mut found: Vec<(u32, String)> = Vec::new();
        for name in statement.names.iter().flatten() {
            found.extend(constraints_named(&catalog, &path, name, statement.deferred)?);
        }
        let Some(open) = self.open.as_ref().filter(|_| in_block) else { return Ok(()) };
        let mut held = open.constraints.lock();
        let modes = &mut held.deferred;
        if statement.names.is_none() {
            modes.all = Some(statement.deferred);
            modes.named.clear();
        }
        for (table, name) in found {
            modes.named.retain(|(of, known, _)| *of != table || *known != name);
            modes.named.push((table, name, statement.deferred));
        }
        drop(held);
        if statement.deferred {
            return Ok(());
        }
        self.check_deferred(false)
    }
}

impl StatementExecutor {
    /// Checks the queued violations: all of them, or those of constraints that are no longer
    /// deferred.
    ///
    /// # Errors
    ///
    /// 23503 and 23505 for a violation that still exists.
    pub(super) fn check_deferred(&mut self, all: bool) -> Result<()> {
        let checked = self.check_deferred_constraints(all);
        checked.map_err(|error| self.without_secured_detail(error, &[]))
    }

    fn check_deferred_constraints(&mut self, all: bool) -> Result<()> {
        self.check_deferred_keys(all)?;
        let Some(open) = &self.open else { return Ok(()) };
        let (has_calls, has_checks) = {
            let deferred = &open.constraints.lock().deferred;
            (!deferred.calls.is_empty(), !deferred.checks.is_empty())
        };
        if has_calls && self.call_deferred(all)? {
            // They may have changed rows.
            return self.check_deferred_constraints(all);
        }
        let Some(open) = self.open.as_ref().filter(|_| has_checks) else { return Ok(()) };
        let deferred = open.constraints.lock().deferred.clone();
        let catalog = self.catalog();
        let is_due = |check: &ReferenceCheck| {
            let ForeignKeyCheck { key, referencing, .. } = &*check.foreign_key;
            all || !deferred.is_deferred(referencing.oid, &key.name, key.deferral)
        };
        let (due, rest): (Vec<ReferenceCheck>, Vec<ReferenceCheck>) =
            deferred.checks.iter().cloned().partition(is_due);
        self.begin_statement();
        let mut actions = ReferentialActions::new(self, Arc::default());
        for check in due {
            if let Some(foreign_key) = present(&check.foreign_key, &catalog) {
                actions.recheck(&ReferenceCheck { foreign_key, ..check })?;
            }
        }
        if let Some(open) = &self.open {
            let deferred = &mut open.constraints.lock().deferred;
            deferred.bytes = rest.iter().map(ReferenceCheck::bytes).sum::<usize>()
                + deferred.calls.iter().map(TriggerCall::bytes).sum::<usize>();
            deferred.checks = rest;
        }
        Ok(())
    }
}

impl StatementExecutor {
    /// Calls deferred constraint triggers: all of them, or those that are no longer deferred.
    /// Returns whether there was one.
    fn call_deferred(&mut self, all: bool) -> Result<bool> {
        let mut has_called = false;
        loop {
            let Some(open) = &self.open else { return Ok(has_called) };
            let call = open.constraints.lock().deferred.take_call(all);
            let Some(call) = call else { return Ok(has_called) };
            has_called = true;
            self.begin_statement();
            ReferentialActions::new(self, Arc::default()).call(&call)?;
        }
    }
}

/// Returns a foreign key as it is defined now: it may have been renamed or dropped.
fn present(of: &ForeignKeyCheck, catalog: &Catalog) -> Option<Arc<ForeignKeyCheck>> {
    let same = |key: &&ForeignKey| {
        key.columns == of.key.columns
            && key.table == of.key.table
            && key.referenced == of.key.referenced
    };
    let referencing = catalog.table(of.referencing.oid)?;
    let key = referencing.foreign_keys.iter().find(same)?.clone();
    let (referencing, referenced) =
        (Arc::clone(referencing), Arc::clone(catalog.table(key.table)?));
    let (at_once, is_deferred) = (false, false);
    Some(Arc::new(ForeignKeyCheck { key, referencing, referenced, at_once, is_deferred }))
}

/// Returns the constraints of a name: those of the first schema in the search path that has any.
fn constraints_named(
    catalog: &Catalog,
    path: &SearchPath,
    name: &TableName,
    deferred: bool,
) -> Result<Vec<(u32, String)>> {
    let wanted = &name.name.value;
    let schemas: Vec<&str> = match &name.schema {
        Some(schema) => vec![schema.value.as_str()],
        None => path.schemas().iter().map(String::as_str).collect(),
    };
    for schema in schemas {
        let mut known = false;
        let mut found = Vec::new();
        for table in catalog.tables().into_iter().filter(|table| table.schema == schema) {
            let key = table.foreign_keys.iter().find(|key| key.name == *wanted);
            let mut unique = table.indexes.iter().filter(|one| one.name == *wanted);
            if key.is_some_and(|key| key.deferral != Deferral::Never)
                || unique.any(|index| index.deferral != Deferral::Never)
            {
                found.push((table.oid, wanted.clone()));
            }
            let trigger = table.trigger(wanted).filter(|one| one.record.is_constraint);
            if trigger.is_some_and(|one| one.record.deferral != Deferral::Never) {
                found.push((table.oid, wanted.clone()));
            }
            known |= key.is_some()
                || trigger.is_some()
                || table.primary_key_name == *wanted
                || table.indexes.iter().any(|index| index.constraint && index.name == *wanted)
                || table.constraints.checks.iter().any(|check| check.name == *wanted);
        }
        if known && found.is_empty() && deferred {
            bail!(WRONG_OBJECT_TYPE: "constraint \"{wanted}\" is not deferrable");
        }
        if known {
            return Ok(found);
        }
    }
    bail!(UNDEFINED_OBJECT: "constraint \"{wanted}\" does not exist")
}
