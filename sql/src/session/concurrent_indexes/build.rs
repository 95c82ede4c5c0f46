//! Builds of indexes with concurrent writers: of a statement, or of the server, which resumes
//! those that a crash interrupted and executes those with ASYNC.

use std::sync::Arc;

use coprocessors::index::{IndexFill, index_fill};
use store::Transaction;

use crate::catalog::access::owner_context::as_owner;
use crate::ddl::{IndexOf, index_of};
use crate::error::{Error, Result, sqlstate};
use crate::index_builds::{BuildClaim, IndexBuild};
use crate::session::Session;

impl Session {
    /// Executes the stored builds that no session has, and returns the number of completed ones.
    /// A build that fails is recorded with its error, and its index remains invalid; the copy of
    /// REINDEX is dropped.
    ///
    /// # Errors
    ///
    /// 57014 if it was cancelled; the build resumes with the next call.
    pub fn build_due(&mut self) -> Result<usize> {
        self.stop.begin_statement();
        let mut count = 0;
        for build in self.engine.due_builds()? {
            let index = (build.table, build.index);
            let Some(claim) = self.claim_build(index, "CREATE INDEX ASYNC") else { continue };
            let Err(mut error) = self.resume_build(build.clone(), &claim) else {
                count += 1;
                continue;
            };
            self.fail(&mut error);
            if [sqlstate::QUERY_CANCELED, sqlstate::ADMIN_SHUTDOWN].contains(&&*error.sqlstate) {
                return Err(error);
            }
            tracing::warn!(index = build.index, %error, "could not build an index");
            if !self.engine.index_builds.is_abandoned(build.index) {
                self.record_failure(build, &error)?;
            }
        }
        Ok(count)
    }

    /// Claims the build of an index; `None` if another session has it.
    pub(super) fn claim_build(&self, index: IndexOf, command: &'static str) -> Option<BuildClaim> {
        self.engine.claim_build(&self.catalog(), index, (self.process_id, command))
    }

    /// Drops an index that could not be built.
    pub(super) fn abandon_index(&mut self, index: IndexOf) -> Result<()> {
        self.in_any_ddl(|ddl| ddl.abandon_index(index))?;
        self.commit_durably()?;
        self.engine.index_builds.note_dropped(index.1);
        Ok(())
    }

    pub(super) fn commit_durably(&mut self) -> Result<()> {
        match self.commit()? {
            Some(ticket) => Ok(ticket.wait()?),
            None => Ok(()),
        }
    }

    fn resume_build(&mut self, build: IndexBuild, claim: &BuildClaim) -> Result<()> {
        if self.engine.index_builds.is_abandoned(build.index) {
            return self.abandon_index((build.table, build.index));
        }
        let catalog = self.engine.catalog();
        let record = catalog.record(build.table);
        let record =
            record.and_then(|table| table.indexes.iter().find(|one| one.oid == build.index));
        if record.is_some_and(|index| index.building) {
            return self.fill_and_finish(build, claim);
        }
        // The index was dropped with its table, or built by another statement.
        self.in_any_ddl(|ddl| ddl.end_build(build.index))?;
        self.commit_durably()
    }

    fn record_failure(&mut self, build: IndexBuild, error: &Error) -> Result<()> {
        let index = (build.table, build.index);
        let failed = IndexBuild { error: Some(error.message.clone()), ..build };
        self.in_any_ddl(|ddl| match failed.replaces {
            Some(_) => ddl.abandon_index(index),
            None => ddl.store_build(&failed),
        })?;
        self.commit_durably()
    }

    /// Fills an index that is being built, and makes it usable or replaces the former one by it.
    pub(super) fn fill_and_finish(&mut self, build: IndexBuild, claim: &BuildClaim) -> Result<()> {
        let of = (build.table, build.index);
        let mut build = build;
        loop {
            let catalog = self.engine.catalog();
            let Some((table, index)) = index_of(&catalog, of) else { return Ok(()) };
            let filled = (table, index.spec.store_table);
            build = build.for_stores(filled.0, filled.1);
            match self.fill_beside_writers(&mut build, claim) {
                // The rows are rewritten by another statement.
                Err(error)
                    if index_of(&self.engine.catalog(), of).is_some_and(|(table, index)| {
                        (table, index.spec.store_table) != filled
                    }) =>
                {
                    tracing::info!(index = index.name, %error, "restarting the build of an index")
                }
                Err(error) => return Err(error),
                Ok(()) => {
                    let finished = self.in_any_ddl(|ddl| match build.replaces {
                        Some(old) => ddl.replace_index((build.table, old), build.index, filled),
                        None => ddl.finish_index(of, filled),
                    })?;
                    if finished {
                        self.commit().map(|ticket| self.await_also(ticket))?;
                        return Ok(());
                    }
                }
            }
        }
    }

    fn fill_beside_writers(&self, build: &mut IndexBuild, claim: &BuildClaim) -> Result<()> {
        let catalog = self.engine.catalog();
        let Some((table, index)) = index_of(&catalog, (build.table, build.index)) else {
            return Ok(());
        };
        self.engine.store().wait_for_commits()?;
        let context = self.eval_context(&self.begin_short(), Vec::new());
        let context = as_owner(&context, &catalog, build.table);
        let begin = || Arc::clone(&self.begin_short().transaction);
        let first_row = build.next_row.clone();
        let inputs = IndexFill {
            base_table: table,
            spec: &index.spec,
            context: &context,
            first_row: &first_row,
        };
        let rows_before = build.row_count;
        claim.progress().set_row_count(rows_before);
        index_fill(&begin, &inputs, |transaction: &Transaction, last_row, row_count| {
            build.next_row = [last_row, &[0]].concat();
            build.row_count = rows_before + row_count;
            claim.progress().set_row_count(build.row_count);
            transaction.mutate(self.engine.catalog_table, vec![build.row()])
        })?;
        Ok(())
    }
}
