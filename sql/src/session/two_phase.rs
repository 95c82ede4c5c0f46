//! PREPARE TRANSACTION, COMMIT PREPARED and ROLLBACK PREPARED of a session.
//!
//! The prepared transactions themselves are in
//! [`prepared_transactions`](crate::prepared_transactions).

use crate::ast::Statement;
use crate::catalog::name::is_temporary;
use crate::catalog::table::Table;
use crate::ddl::relation_lock_name;
use crate::error::{Error, Result, sqlstate};
use crate::prepared_transactions::PreparedTransactions;
use crate::rows::Completion;
use crate::session::{Execution, Session};

impl Session {
    /// Executes a statement of two-phase commit.
    ///
    /// # Errors
    ///
    /// After an error of PREPARE TRANSACTION the transaction is rolled back.
    pub(super) fn run_two_phase(&mut self, statement: &Statement) -> Result<Execution> {
        let tag = statement.tag();
        let mut done = tag;
        match statement {
            Statement::PrepareTransaction(gid) if !self.run_prepare_transaction(gid)? => {
                done = "ROLLBACK";
            }
            Statement::CommitPrepared(gid) => {
                self.reject_in_block(tag)?;
                self.ticket = self.end_prepared(|prepared, by| prepared.commit(gid, by))?;
                if let Some(ticket) = &self.ticket {
                    self.progress.see(ticket.sequence());
                }
                self.forget_ended();
            }
            Statement::RollbackPrepared(gid) => {
                self.reject_in_block(tag)?;
                self.end_prepared(|prepared, by| prepared.rollback(gid, by))?;
                self.forget_ended();
            }
            _ => {}
        }
        Ok(Execution::Done(Completion::new(done)))
    }

    /// Ends a prepared transaction of this database: one of the current role, or any as a
    /// superuser.
    fn end_prepared<T>(
        &self,
        end: impl FnOnce(&PreparedTransactions, (u32, &dyn Fn(u32) -> bool)) -> Result<T>,
    ) -> Result<T> {
        let (catalog, current) = (self.catalog(), self.settings.roles().current.number);
        let may_end = |owner: u32| owner == current || catalog.is_superuser(current);
        end(&self.engine.prepared, (self.engine.database, &may_end))
    }

    /// Prepares the transaction of the block; returns `false` if there is none or it has failed.
    fn run_prepare_transaction(&mut self, gid: &str) -> Result<bool> {
        let Some(open) = self.open.as_ref().filter(|open| open.in_block) else {
            self.warn(sqlstate::NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress");
            return Ok(false);
        };
        if open.failed {
            self.rollback();
            return Ok(false);
        }
        let prepared = self.check_deferred(true).and_then(|()| self.check_preparable());
        let prepared = prepared.and_then(|()| self.prepare_open(gid));
        if prepared.is_err() {
            self.rollback();
        }
        prepared.map(|()| true)
    }

    /// Rejects a transaction that cannot be prepared: temporary tables or catalog changes.
    fn check_preparable(&self) -> Result<()> {
        let refuse = |what: &str| {
            Err(err!(FEATURE_NOT_SUPPORTED: "cannot PREPARE a transaction that has {what}"))
        };
        let Some(open) = &self.open else { return Ok(()) };
        let catalog = self.catalog();
        let has_used = |table: &Table| open.transaction.holds(relation_lock_name(table.id.0));
        let tables = catalog.tables();
        if tables.iter().any(|table| is_temporary(&table.schema) && has_used(table)) {
            return refuse("operated on temporary objects");
        }
        if !open.changes.is_empty() {
            return refuse("changed the catalog").map_err(|error: Error| {
                error.with_hint("Commit DDL statements in a separate transaction.")
            });
        }
        if open.transaction.has_exported() {
            return refuse("exported snapshots");
        }
        if self.notifications.action_count() > 0 {
            return refuse("executed LISTEN, UNLISTEN, or NOTIFY");
        }
        if self.cursors.has_uncommitted_held() {
            return refuse("created a cursor WITH HOLD");
        }
        Ok(())
    }

    /// Releases the advisory locks of prepared transactions that have ended.
    fn forget_ended(&self) {
        let shown = self.engine.prepared.all();
        let is_prepared = |transaction| shown.iter().any(|one| one.transaction == transaction);
        self.engine.advisory.forget_ended(is_prepared);
    }

    fn prepare_open(&mut self, gid: &str) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let owner = self.settings.roles().current.number;
        let database = self.engine.database;
        self.locks.give_to(&open.transaction)?;
        let ticket = self.engine.prepared.prepare(gid, (owner, database), &open.transaction);
        let ticket = ticket.inspect_err(|_| self.forget_ended())?;
        let floor = open.transaction.required_commit();
        self.ticket = Some(ticket);
        if let Some(open) = self.open.take() {
            open.detach(&mut self.worker.settings)?;
        }
        self.cursors.end_transaction(true);
        self.locks.release_all(crate::advisory::AdvisoryLevel::Transaction, floor);
        Ok(())
    }
}

/// Returns whether a statement is one of two-phase commit.
pub(super) fn is_two_phase(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::PrepareTransaction(_)
            | Statement::CommitPrepared(_)
            | Statement::RollbackPrepared(_)
    )
}
