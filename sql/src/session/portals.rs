//! Portals: statements of the extended query protocol that are bound to parameters, with their
//! state.
//!
//! Portals and the cursors of DECLARE ([`cursors`](crate::session::cursors)) share one name
//! space, as in PostgreSQL: FETCH, MOVE and CLOSE accept a portal; Execute, Describe and Close
//! accept a cursor. The unnamed portal is replaced by each Bind. A portal lives as long as a
//! cursor without HOLD: until the end of its transaction, or a rollback to a savepoint before its
//! Bind.
//!
//! Executing a portal takes it out of the map and puts it back afterwards; meanwhile it is not
//! visible under its name.
//!
//! Source: PostgreSQL's portalmem.c and `exec_execute_message` (postgres.c).

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use types::Datum;

use crate::ast::FetchDirection;
use crate::batch_buffer::{BatchBuffer, BufferLimit};
use crate::error::{Error, Result};
use crate::logical::OutputColumn;
use crate::rows::ResultRows;
use crate::session::cursors::forward_range;
use crate::session::prepared::PreparedStatement;
use crate::session::{Execution, Session, TransactionStatus, aborted};
use crate::session_objects::CursorRow;

/// Format codes of the result columns, as in a Bind message.
pub type FormatCodes = SmallVec<[i16; 8]>;

/// A bound statement.
pub struct Portal {
    /// Statement; `None` for one with an empty text.
    pub prepared: Option<Arc<PreparedStatement>>,
    /// Formats of the result columns.
    pub formats: FormatCodes,
    /// Execution state.
    pub state: PortalState,
    /// Number of savepoints at its Bind.
    savepoints: usize,
}

/// Execution state of a portal.
pub enum PortalState {
    /// Not executed yet; has the parameter values.
    Bound(Vec<Datum>),
    /// Partly fetched. Used by one thread at a time, as a session is.
    Open(Box<Mutex<ResultRows>>),
    /// Completely fetched.
    Exhausted,
    /// Returned no rows or failed, and cannot be executed again.
    Done,
}

impl PortalState {
    /// Returns the state of a portal with remaining rows.
    pub fn open(rows: ResultRows) -> PortalState {
        PortalState::Open(Box::new(Mutex::new(rows)))
    }
}

/// Portals of a session.
#[derive(Default)]
pub(super) struct Portals {
    unnamed: Option<Portal>,
    named: AHashMap<String, Portal>,
}

impl Portals {
    /// Returns whether there is a portal of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub(super) fn find(&self, name: &str) -> Option<&Portal> {
        match name {
            "" => self.unnamed.as_ref(),
            name => self.named.get(name),
        }
    }

    fn insert(&mut self, name: &str, portal: Portal) {
        match name {
            "" => self.unnamed = Some(portal),
            name => {
                self.named.insert(name.to_owned(), portal);
            }
        }
    }

    /// Removes and returns a portal.
    pub(super) fn remove(&mut self, name: &str) -> Option<Portal> {
        match name {
            "" => self.unnamed.take(),
            name => self.named.remove(name),
        }
    }

    /// Closes the portals for whose savepoint count `stays` is false.
    pub(super) fn retain(&mut self, stays: impl Fn(usize) -> bool) {
        self.unnamed.take_if(|portal| !stays(portal.savepoints));
        self.named.retain(|_, portal| stays(portal.savepoints));
    }

    /// Assigns the portals that were bound after a released savepoint to the enclosing level.
    pub(super) fn release(&mut self, left: usize) {
        for portal in self.named.values_mut().chain(&mut self.unnamed) {
            portal.savepoints = portal.savepoints.min(left);
        }
    }
}

impl Portal {
    /// Returns the columns of its rows, if it has any.
    pub fn columns(&self) -> Option<&Arc<[OutputColumn]>> {
        self.prepared.as_ref()?.columns.as_ref()
    }
}

impl Session {
    /// Rejects a statement in a failed block unless it ends the block.
    ///
    /// # Errors
    ///
    /// 25P02
    pub fn check_bindable(&self, prepared: Option<&PreparedStatement>) -> Result<()> {
        prepared.map_or(Ok(()), |prepared| self.check_prepared_accepted(prepared))
    }

    /// Rejects Describe of rows in a failed block, where their tables may not exist any more.
    ///
    /// # Errors
    ///
    /// 25P02
    pub fn check_describable(&self) -> Result<()> {
        match self.transaction_status() {
            TransactionStatus::Failed => Err(aborted()),
            _ => Ok(()),
        }
    }

    /// Creates a portal.
    ///
    /// # Errors
    ///
    /// 42P03 if a portal or cursor has the name; the unnamed portal is replaced. Errors of
    /// constant expressions that depend on the parameters.
    pub fn bind_portal(
        &mut self,
        name: &str,
        prepared: Option<Arc<PreparedStatement>>,
        parameters: Vec<Datum>,
        formats: FormatCodes,
    ) -> Result<()> {
        if !name.is_empty() && self.cursors.has(name) {
            bail!(DUPLICATE_CURSOR: "cursor \"{name}\" already exists");
        }
        if let Some(prepared) = &prepared {
            self.check_constants(prepared, &parameters)?;
        }
        let shown = CursorRow {
            statement: prepared.as_ref().map(|prepared| Arc::clone(&prepared.text.input)),
            since: self.engine.store().now_micros(),
            is_held: false,
            is_binary: false,
            is_scrollable: false,
        };
        self.objects.add_cursor(name, shown);
        let savepoints = self.open.as_ref().map_or(0, |open| open.savepoint_count());
        let state = PortalState::Bound(parameters);
        let portal = Portal { prepared, formats, state, savepoints };
        self.cursors.portals.insert(name, portal);
        Ok(())
    }

    /// Returns a portal of the protocol, if there is one of the name.
    pub fn portal(&self, name: &str) -> Option<&Portal> {
        self.cursors.portals.find(name)
    }

    /// Takes a portal out of the map, to execute it.
    pub fn take_portal(&mut self, name: &str) -> Option<Portal> {
        self.cursors.portals.remove(name)
    }

    /// Puts a portal back into the map after its execution.
    pub fn put_portal_back(&mut self, name: &str, portal: Portal) {
        debug_assert!(!self.cursors.portals.has(name), "portal {name:?} was bound meanwhile");
        self.cursors.portals.insert(name, portal);
    }

    /// Closes a portal or cursor, if there is one of the name.
    pub fn close_portal(&mut self, name: &str) {
        self.cursors.close(name);
    }

    /// Returns at most `row_limit` next rows of a DECLAREd cursor, for an Execute message.
    ///
    /// # Errors
    ///
    /// Errors of the query; 34000 if there is no such cursor; 25P02 in a failed block.
    pub fn execute_cursor(&mut self, name: &str, row_limit: usize) -> Result<ResultRows> {
        self.check_describable()?;
        self.stop.begin_statement();
        let count = i64::try_from(row_limit).unwrap_or(i64::MAX);
        self.fetch_rows(FetchDirection::Forward(count), name)
    }

    /// Moves a portal as FETCH does, and returns the requested rows.
    pub(super) fn fetch_portal(
        &mut self,
        direction: FetchDirection,
        name: &str,
    ) -> Result<BatchBuffer> {
        let cannot_run =
            || err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "portal \"{name}\" cannot be run");
        let mut portal = self.cursors.portals.remove(name).ok_or_else(cannot_run)?;
        let fetched = match portal.columns() {
            Some(_) => self.fetch_from(&mut portal, direction, cannot_run),
            None => Err(cannot_run()),
        };
        // A failed portal remains, too, and cannot be executed.
        self.cursors.portals.insert(name, portal);
        fetched
    }

    fn fetch_from(
        &mut self,
        portal: &mut Portal,
        direction: FetchDirection,
        cannot_run: impl Fn() -> Error,
    ) -> Result<BatchBuffer> {
        let mut rows = match std::mem::replace(&mut portal.state, PortalState::Done) {
            PortalState::Bound(parameters) => {
                let prepared = portal.prepared.as_ref().ok_or_else(&cannot_run)?;
                match self.run_prepared(&Arc::clone(prepared), parameters)? {
                    Execution::Rows(rows) => rows,
                    _ => return Err(cannot_run()),
                }
            }
            PortalState::Open(rows) => rows.into_inner(),
            PortalState::Exhausted => {
                // After the last row; portals do not move backward.
                forward_range(direction, i64::MAX as u64)?;
                portal.state = PortalState::Exhausted;
                return Ok(BatchBuffer::default());
            }
            PortalState::Done => return Err(cannot_run()),
        };
        let (skipped, count) = forward_range(direction, rows.returned_total())?;
        let batches = forward(&mut rows, skipped, count, &self.buffer_limit())?;
        portal.state = PortalState::open(rows);
        Ok(batches)
    }
}

/// Skips rows and returns those after them.
pub(super) fn forward(
    rows: &mut ResultRows,
    skipped: u64,
    count: u64,
    room: &BufferLimit,
) -> Result<BatchBuffer> {
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let (mut skipped, mut left) = (size(skipped), size(count));
    while skipped > 0
        && let Some(batch) = rows.next_batch(skipped)?
    {
        skipped -= batch.row_count;
    }
    let mut batches = BatchBuffer::default();
    while left > 0
        && let Some(batch) = rows.next_batch(left)?
    {
        left -= batch.row_count;
        batches.push(batch, room)?;
    }
    Ok(batches)
}
