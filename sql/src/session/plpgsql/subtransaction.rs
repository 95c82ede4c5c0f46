//! Subtransactions: what a block with EXCEPTION undoes before a handler runs.

use crate::error::Result;
use crate::session::Session;
use crate::session::plpgsql::evaluation::no_transaction;
use crate::session::worker::{Snapshots, Worker};

/// The name of the savepoint, which no statement can give.
const NAME: &str = "\0";

/// A subtransaction.
pub(super) struct Subtransaction {
    /// How many settings functions had set.
    changed: usize,
}

impl Session {
    /// Begins a subtransaction.
    pub(super) fn begin_subtransaction(&mut self) -> Result<Subtransaction> {
        let Session { worker: Worker { around, settings, open, .. }, .. } = self;
        let open = open.as_mut().ok_or_else(no_transaction)?;
        open.savepoint(NAME, settings);
        Ok(Subtransaction { changed: around.changed.count() })
    }

    /// Makes a subtransaction part of what is around it.
    pub(super) fn release_subtransaction(&mut self) -> Result<()> {
        let Session { worker: Worker { open, .. }, cursors, .. } = self;
        let open = open.as_mut().ok_or_else(no_transaction)?;
        let before = open.modes;
        open.release(NAME)?;
        cursors.release(open.savepoint_count());
        match open.modes == before {
            true => Ok(()),
            false => self.report_modes(),
        }
    }

    /// Undoes a subtransaction.
    pub(super) fn undo_subtransaction(&mut self, of: &Subtransaction) -> Result<()> {
        let Session { worker: Worker { around, settings, open, .. }, cursors, .. } = self;
        let open = open.as_mut().ok_or_else(no_transaction)?;
        *settings = open.rollback_to(&around.engine, NAME)?;
        cursors.rollback_to(open.savepoint_count());
        open.release(NAME)?;
        cursors.release(open.savepoint_count());
        around.changed.truncate(of.changed);
        self.follow_search_path();
        Ok(())
    }

    /// Sets what functions of the last statement have set.
    pub(super) fn follow_changed_settings(&mut self) {
        let is_own = matches!(self.snapshots, Snapshots::Session);
        match is_own {
            // What is wrong with a value was said when it was set.
            true => drop(self.take_over_settings()),
            false => {
                let Worker { around, settings, .. } = &mut self.worker;
                around.changed.show_in(settings);
            }
        }
        self.follow_search_path();
    }
}
