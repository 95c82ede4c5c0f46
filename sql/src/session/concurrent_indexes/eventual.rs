//! Eventual indexes: handover to the server, which then follows the commits, and ALTER INDEX …
//! CONSISTENCY.

use std::sync::Arc;
use std::time::Duration;

use crate::ddl::IndexOf;
use crate::error::{Error, Result, sqlstate};
use crate::exec::FollowedViews;
use crate::index_builds::followers::LostIndex;
use crate::session::Session;

/// The longest wait of a handover for statements of a table: others are handed over meanwhile.
const HANDOVER_LOCK_TIMEOUT: &str = "100ms";
/// The longest wait of a handover for a round of the followed indexes.
const HANDOVER_WAIT_MAX: Duration = Duration::from_millis(100);

impl Session {
    /// Brings the followed indexes to the newest commit; returns 0.
    ///
    /// # Errors
    ///
    /// 57014 if it was cancelled, errors of the store; the next call repeats it.
    pub fn follow_due(&mut self) -> Result<usize> {
        self.stop.begin_statement();
        self.advance_followers()?;
        Ok(0)
    }

    fn advance_followers(&self) -> Result<()> {
        let context = self.eval_context(&self.begin_short(), Vec::new());
        let engine = &self.engine;
        let waits = (&context, &self.stop.stop);
        engine.followers.advance(engine.store(), || engine.catalog(), waits)
    }

    /// Hands the eventual indexes over to the server that writers maintain; disables and rebuilds
    /// those that cannot be followed any more. Returns the number of changed indexes. Sets
    /// `lock_timeout`: the session is used for nothing else.
    ///
    /// # Errors
    ///
    /// 57014 if it was cancelled.
    pub fn hand_over_due(&mut self) -> Result<usize> {
        self.stop.begin_statement();
        self.settings.set("lock_timeout", Some(HANDOVER_LOCK_TIMEOUT))?;
        let mut count = 0;
        for lost in self.engine.followers.lost(self.engine.store()) {
            let done = self.disable_lost(&lost);
            count += usize::from(self.is_done(lost.index, done)?);
        }
        let done = self.forget_positions();
        self.is_done(0, done)?;
        for of in self.engine.indexes_to_hand_over() {
            let done = self.hand_over(of);
            count += usize::from(self.is_done(of.1, done)?);
        }
        Ok(count)
    }

    /// Returns whether a definition succeeded; logs its error, unless it was cancelled.
    fn is_done(&mut self, index: u32, outcome: Result<()>) -> Result<bool> {
        let Err(mut error) = outcome else { return Ok(true) };
        self.fail(&mut error);
        self.rollback();
        if [sqlstate::QUERY_CANCELED, sqlstate::ADMIN_SHUTDOWN].contains(&&*error.sqlstate) {
            return Err(error);
        }
        tracing::debug!(index, %error, "an eventual index will be handed over later");
        Ok(false)
    }

    fn hand_over(&mut self, of: IndexOf) -> Result<()> {
        self.engine.followers.begin(self.engine.store());
        let begun = self.in_any_ddl(|ddl| ddl.hand_over_index(of))?;
        let engine = Arc::clone(&self.engine);
        let Some(_paused) = engine.followers.pause(HANDOVER_WAIT_MAX) else {
            bail!(LOCK_NOT_AVAILABLE: "a round of the followed indexes is not done");
        };
        self.commit_durably()?;
        if let Some((position, view)) = begun {
            let time_micros = view.opened_micros();
            let views = FollowedViews { rows: view.clone(), entries: view, time_micros };
            self.engine.followers.add(position, views);
        }
        Ok(())
    }

    fn disable_lost(&mut self, lost: &LostIndex) -> Result<()> {
        self.in_any_ddl(|ddl| ddl.disable_lost_index(lost))?;
        self.commit_durably()?;
        self.engine.followers.note_disabled(lost.index);
        Ok(())
    }

    /// Removes the stored positions of indexes that are no longer followed.
    fn forget_positions(&mut self) -> Result<()> {
        let catalog = self.engine.catalog();
        let mut gone = Vec::new();
        for position in self.engine.stored_positions()? {
            let table = catalog.table(position.table);
            let mut indexes = table.iter().flat_map(|table| &table.indexes);
            if !indexes.any(|one| one.oid == position.index && one.is_followed) {
                gone.push(position.index);
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        self.in_any_ddl(|ddl| ddl.forget_positions(&gone))?;
        self.commit_durably()
    }

    /// Executes ALTER INDEX … CONSISTENCY. A followed index that becomes strong is first brought
    /// to the newest commit, while writers wait.
    pub(super) fn set_index_consistency(&mut self, of: IndexOf, eventual: bool) -> Result<()> {
        self.check_may_define("ALTER INDEX")?;
        let is_followed = self.in_any_ddl(|ddl| ddl.lock_followed(of))?;
        if is_followed && !eventual {
            self.advance_followers()?;
            let index = self
                .catalog()
                .table(of.0)
                .and_then(|table| table.indexes.iter().find(|one| one.oid == of.1).map(Arc::clone));
            let views = index.and_then(|index| self.engine.followers.views(index.spec.store_table));
            if views.is_none() {
                return Err(behind());
            }
        }
        self.in_ddl("ALTER INDEX", |ddl| ddl.set_consistency(of, eventual))
    }
}

/// Returns the error for an index that cannot be followed, and will be rebuilt.
fn behind() -> Error {
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "the index cannot be brought up to date";
        hint "The server rebuilds it; bennu.indexes shows its state.")
}
