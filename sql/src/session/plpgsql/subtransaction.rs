//! PL/pgSQL subtransactions: savepoints of blocks with EXCEPTION.

use crate::error::Result;
use crate::session::Session;
use crate::session::plpgsql::evaluation::no_transaction;
use crate::session::statement_executor::{SnapshotPolicy, StatementExecutor};

/// Savepoint name, which no statement can specify.
const NAME: &str = "\0";

/// An open subtransaction.
pub(super) struct Subtransaction {
    /// Number of settings that functions had changed at its start.
    changed: usize,
}

impl Session {
    /// Starts a subtransaction.
    pub(super) fn begin_subtransaction(&mut self) -> Result<Subtransaction> {
        let Session {
            worker: StatementExecutor { environment: around, settings, open, .. }, ..
        } = self;
        let open = open.as_mut().ok_or_else(no_transaction)?;
        open.savepoint(NAME, settings);
        Ok(Subtransaction { changed: around.changed.count() })
    }

    /// Releases a subtransaction into the enclosing one.
    pub(super) fn release_subtransaction(&mut self) -> Result<()> {
        let Session { worker: StatementExecutor { open, .. }, cursors, .. } = self;
        let open = open.as_mut().ok_or_else(no_transaction)?;
        let before = open.modes;
        open.release(NAME)?;
        cursors.release(open.savepoint_count());
        match open.modes == before {
            true => Ok(()),
            false => self.report_modes(),
        }
    }

    /// Rolls a subtransaction back.
    pub(super) fn undo_subtransaction(&mut self, of: &Subtransaction) -> Result<()> {
        let Session {
            worker: StatementExecutor { environment: around, settings, open, .. },
            cursors,
            ..
        } = self;
        let open = open.as_mut().ok_or_else(no_transaction)?;
        *settings = open.rollback_to(&around.engine, NAME)?;
        cursors.rollback_to(open.savepoint_count());
        open.release(NAME)?;
        cursors.release(open.savepoint_count());
        around.changed.truncate(of.changed);
        self.follow_search_path();
        Ok(())
    }

    /// Applies the settings that functions of the last statement changed.
    pub(super) fn follow_changed_settings(&mut self) {
        let is_own = matches!(self.snapshots, SnapshotPolicy::Session);
        match is_own {
            // An invalid value was reported when it was set.
            true => drop(self.take_over_settings()),
            false => {
                let StatementExecutor { environment: around, settings, .. } = &mut self.worker;
                around.changed.apply_to(settings);
            }
        }
        self.follow_search_path();
    }
}
