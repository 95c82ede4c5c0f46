//! Temporary tables: ON COMMIT actions, and their removal at the end of the session.

use crate::ast::OnCommit;
use crate::error::{Result, sqlstate};
use crate::session::Session;

/// Number of attempts to drop temporary tables at the end of a session: a late cancel request may
/// stop one.
const DROP_ATTEMPTS: usize = 5;

impl Session {
    /// Executes the ON COMMIT actions of temporary tables, in the transaction.
    pub(super) fn end_temporary(&mut self) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let catalog = open.changes.catalog(&self.engine);
        let Some(schema) = catalog.schema(self.settings.temp_schema()) else { return Ok(()) };
        let is_due = |oid: &u32| {
            let Some(record) = catalog.record(*oid) else { return false };
            match record.on_commit {
                OnCommit::PreserveRows => false,
                OnCommit::DeleteRows => {
                    open.has_locked(record.descriptor.id) || !open.changes.is_empty()
                }
                OnCommit::Drop => true,
            }
        };
        let mut due: Vec<u32> = schema.tables().filter(is_due).collect();
        due.sort_unstable();
        if due.is_empty() {
            return Ok(());
        }
        self.in_any_ddl(|ddl| {
            // Another role may have created them in the session.
            ddl.changes_others = true;
            ddl.end_temporary(&due)
        })
    }

    /// Drops all temporary objects, in the transaction.
    pub(super) fn discard_temporary(&mut self) -> Result<()> {
        let schema = self.settings.temp_schema().to_owned();
        let known = !schema.is_empty() && self.catalog().schema(&schema).is_some();
        match known {
            true => self.in_any_ddl(|ddl| ddl.drop_temporary(&schema)),
            false => Ok(()),
        }
    }

    /// Drops all temporary objects. After a failure the next start drops them.
    pub(super) fn drop_temporary(&mut self) {
        let schema = self.settings.temp_schema().to_owned();
        if schema.is_empty() || self.engine.catalog().schema(&schema).is_none() {
            return;
        }
        for _ in 0..DROP_ATTEMPTS {
            self.stop.clear_for_cleanup();
            let dropped = self
                .settings
                .set("lock_timeout", Some("10s"))
                .and_then(|()| self.in_any_ddl(|ddl| ddl.drop_temporary(&schema)))
                .and_then(|()| self.commit().map(|_| ()));
            let Err(error) = dropped else { return };
            self.rollback();
            if error.sqlstate != sqlstate::QUERY_CANCELED {
                tracing::warn!(%schema, %error, "could not drop the temporary tables of a session");
                return;
            }
        }
    }
}
