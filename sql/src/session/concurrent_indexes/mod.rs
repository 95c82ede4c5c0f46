//! CREATE INDEX, DROP INDEX and REINDEX with CONCURRENTLY: sequences of short transactions.
//!
//! An index is committed in the state of being built, so that writers maintain it, then filled in
//! short transactions, and finally made usable. REINDEX builds a second index in this way and
//! replaces the old one by it. The server resumes builds that a crash interrupted, and executes
//! those with ASYNC.

mod build;
mod check;
mod salting;
mod eventual;
mod states;
mod store_check;

use types::Datum;

use crate::ast::{CreateIndex, Drop, IsolationLevel, Reindex, ReindexTarget};
use crate::ddl::{IndexOf, index_of};
use crate::error::{Error, Result};
use crate::index_builds::IndexBuild;
use crate::session::Session;
use crate::session::transaction::OpenTransaction;
use crate::settings::TransactionModeSet;

impl Session {
    /// Executes CREATE INDEX CONCURRENTLY.
    ///
    /// # Errors
    ///
    /// Errors of CREATE INDEX; the index is then removed.
    pub(super) fn create_concurrently(&mut self, create: &CreateIndex) -> Result<()> {
        self.reject_in_block("CREATE INDEX CONCURRENTLY")?;
        let added = self.in_ddl("CREATE INDEX", |ddl| ddl.add_index(create))?;
        let Some(index) = added else { return Ok(()) };
        self.build_online(index, None, "CREATE INDEX CONCURRENTLY")
    }

    /// Rejects what DROP INDEX CONCURRENTLY does not support. Otherwise it is executed as DROP
    /// INDEX, which is short.
    pub(super) fn check_drop_concurrently(&self, drop: &Drop) -> Result<()> {
        if !drop.concurrently {
            return Ok(());
        }
        self.reject_in_block("DROP INDEX CONCURRENTLY")?;
        let refused = |what: &str| {
            Err(err!(FEATURE_NOT_SUPPORTED: "DROP INDEX CONCURRENTLY does not support {what}"))
        };
        match (drop.objects.len(), drop.cascade) {
            (1, false) => Ok(()),
            (1, true) => refused("CASCADE"),
            _ => refused("dropping multiple objects"),
        }
    }

    /// Executes REINDEX: of one table in the current transaction, of several in one for each.
    pub(super) fn run_reindex(&mut self, statement: &Reindex) -> Result<()> {
        let several = match &statement.target {
            ReindexTarget::Index(_) | ReindexTarget::Table(_) => None,
            ReindexTarget::Schema(_) => Some("REINDEX SCHEMA"),
            ReindexTarget::Database(_) => Some("REINDEX DATABASE"),
            ReindexTarget::System(_) => Some("REINDEX SYSTEM"),
        };
        if statement.concurrently {
            self.reject_in_block("REINDEX CONCURRENTLY")?;
        } else if let Some(what) = several {
            self.reject_in_block(what)?;
        }
        if let ReindexTarget::Database(name) | ReindexTarget::System(name) = &statement.target
            && !self.is_database(&name.value)
        {
            bail!(FEATURE_NOT_SUPPORTED: "can only reindex the currently open database");
        }
        if statement.concurrently && matches!(statement.target, ReindexTarget::System(_)) {
            bail!(FEATURE_NOT_SUPPORTED: "cannot reindex system catalogs concurrently");
        }
        let indexes = self.in_any_ddl(|ddl| ddl.to_reindex(statement))?;
        for index in indexes {
            if statement.verbose
                && let Some((_, index)) = index_of(&self.catalog(), index)
            {
                self.notice(
                    "INFO",
                    err!(SUCCESSFUL_COMPLETION: "index \"{}\" was reindexed", index.name),
                );
            }
            if statement.concurrently {
                self.rebuild_online(index, None)?;
                self.commit()?;
            } else {
                self.in_any_ddl(|ddl| ddl.rebuild_index(index, true))?;
                if several.is_some() {
                    self.commit()?;
                }
            }
        }
        Ok(())
    }

    /// Replaces an index by a new copy, which may have another number of salt buckets.
    fn rebuild_online(&mut self, index: IndexOf, salt_buckets: Option<u16>) -> Result<()> {
        let new_form = self.in_any_ddl(|ddl| ddl.begin_new_form(index, salt_buckets))?;
        let Some(new_form) = new_form else {
            return Ok(());
        };
        self.build_online(new_form, Some(index.1), "REINDEX CONCURRENTLY")
    }

    /// Commits an index in the state of being built, so that writers maintain it, fills it and
    /// makes it usable. Removes it if that fails.
    fn build_online(
        &mut self,
        index: IndexOf,
        replaces: Option<u32>,
        command: &'static str,
    ) -> Result<()> {
        let claim = self.claim_build(index, command);
        self.commit()?;
        let catalog = self.engine.catalog();
        let (Some(claim), Some((table, of))) = (claim, index_of(&catalog, index)) else {
            return Ok(());
        };
        let build = IndexBuild::new((index.0, table), (index.1, of.spec.store_table));
        let built = self.fill_and_finish(IndexBuild { replaces, ..build }, &claim);
        if built.is_err() {
            self.rollback();
            if let Err(error) = self.abandon_index(index) {
                tracing::warn!(index = index.1, %error, "could not drop an index that failed");
                self.rollback();
                self.engine.index_builds.abandon(index.1);
            }
        }
        built
    }

    /// Begins one of the short transactions that change an index.
    fn begin_short(&self) -> OpenTransaction {
        let isolation = IsolationLevel::ReadCommitted;
        let modes = TransactionModeSet { isolation, read_only: false, deferrable: false };
        OpenTransaction::begin(&self.engine, &self.settings, modes, self.handles())
    }

    fn is_database(&self, name: &str) -> bool {
        self.constants.value("current_database").and_then(Datum::as_str) == Some(name)
    }

    /// Returns whether the transaction continues after the current statement: in a transaction
    /// block, between the statements of one query message, or in a procedural body.
    pub(super) fn is_in_block(&self) -> bool {
        let in_block = self.open.as_ref().is_some_and(|open| open.in_block);
        in_block || self.in_script || self.body_depth > 0
    }

    /// Rejects a statement that cannot run in a transaction block.
    pub(super) fn reject_in_block(&self, what: &str) -> Result<()> {
        if self.is_in_block() {
            bail!(ACTIVE_SQL_TRANSACTION: "{what} cannot run inside a transaction block");
        }
        Ok(())
    }
}
