//! Open databases of a cluster, and the claims of statements on databases.
//!
//! A claim waits until no other session is connected to the database, and makes new sessions wait.
//! CREATE DATABASE claims its template, ALTER DATABASE … RENAME and DROP DATABASE claim the
//! database, until their transactions end.
//!
//! Source: PostgreSQL's locks of databases, and `CountOtherDBBackends`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use store::env::process::monotonic_now;
use types::interrupt::Interrupt;

use crate::activity::SessionRegistry;
use crate::error::Result;

/// Maximum wait for other sessions to end, as in PostgreSQL.
const CLAIM_WAIT: Duration = Duration::from_secs(5);
/// Interval of the checks for cancellation within it.
const CLAIM_LOOK: Duration = Duration::from_millis(50);

/// Slots of the databases, by number, with the engines of the open ones.
pub struct DatabaseSlots<E> {
    state: Mutex<SlotTable<E>>,
    /// Notified when a session ends or a claim is dropped.
    changed: Condvar,
}

struct SlotTable<E> {
    /// The default database is open as long as its engine is in use. The others are retained.
    default: Weak<E>,
    open: BTreeMap<u32, OpenSlot<E>>,
    claimed: BTreeSet<u32>,
    /// True once no database is opened any more.
    is_closed: bool,
}

struct OpenSlot<E> {
    engine: Arc<E>,
    /// False while the engine is being opened: changes of shared objects are published to it, but
    /// no session uses it.
    is_ready: bool,
}

/// Claim of a database by a statement.
pub struct DatabaseClaim<E> {
    slots: Arc<DatabaseSlots<E>>,
    database: u32,
}

impl<E> DatabaseClaim<E> {
    /// Returns the number of the database.
    pub fn database(&self) -> u32 {
        self.database
    }
}

impl<E> Drop for DatabaseClaim<E> {
    fn drop(&mut self) {
        self.slots.state.lock().claimed.remove(&self.database);
        self.slots.changed.notify_all();
    }
}

impl<E> Default for DatabaseSlots<E> {
    fn default() -> DatabaseSlots<E> {
        let state = SlotTable {
            default: Weak::new(),
            open: BTreeMap::new(),
            claimed: BTreeSet::new(),
            is_closed: false,
        };
        DatabaseSlots { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<E> DatabaseSlots<E> {
    /// Sets the engine of the default database.
    pub fn set_default(&self, engine: &Arc<E>) {
        self.state.lock().default = Arc::downgrade(engine);
    }

    /// Adds the engine of another database, which is being opened. It is retained until
    /// [`DatabaseSlots::close`].
    pub fn add(&self, database: u32, engine: &Arc<E>) {
        let mut state = self.state.lock();
        if !state.is_closed {
            let slot = OpenSlot { engine: Arc::clone(engine), is_ready: false };
            let other = state.open.insert(database, slot);
            debug_assert!(other.is_none(), "database {database} is opened twice");
        }
    }

    /// Notes that a database is open.
    pub fn set_ready(&self, database: u32) {
        if let Some(slot) = self.state.lock().open.get_mut(&database) {
            slot.is_ready = true;
        }
    }

    /// Returns the engine of a database other than the default one, if it is open.
    pub fn get(&self, database: u32) -> Option<Arc<E>> {
        let state = self.state.lock();
        state.open.get(&database).filter(|slot| slot.is_ready).map(|slot| Arc::clone(&slot.engine))
    }

    /// Returns the engines of all open databases, that of the default one first.
    pub fn engines(&self) -> Vec<Arc<E>> {
        self.engines_with(|slot| slot.is_ready)
    }

    /// Returns the engines of the databases that are open or being opened.
    pub fn engines_to_publish(&self) -> Vec<Arc<E>> {
        self.engines_with(|_| true)
    }

    fn engines_with(&self, is_meant: fn(&OpenSlot<E>) -> bool) -> Vec<Arc<E>> {
        let state = self.state.lock();
        let others = state.open.values().filter(|slot| is_meant(slot));
        let others = others.map(|slot| Arc::clone(&slot.engine));
        state.default.upgrade().into_iter().chain(others).collect()
    }

    /// Removes the engine of a database.
    pub fn close(&self, database: u32) -> Option<Arc<E>> {
        self.state.lock().open.remove(&database).map(|slot| slot.engine)
    }

    /// Removes and returns the engines that only the slots have, and that `is_unused` accepts.
    pub fn close_unused(&self, is_unused: impl Fn(&E) -> bool) -> Vec<Arc<E>> {
        let mut state = self.state.lock();
        let SlotTable { open, claimed, .. } = &mut *state;
        let is_closable = |(database, slot): &(&u32, &OpenSlot<E>)| {
            let is_used = claimed.contains(database) || Arc::strong_count(&slot.engine) > 1;
            slot.is_ready && !is_used && is_unused(&slot.engine)
        };
        let unused: Vec<u32> = open.iter().filter(is_closable).map(|(number, _)| *number).collect();
        unused.iter().filter_map(|database| Some(open.remove(database)?.engine)).collect()
    }

    /// Removes all engines; no database is retained any more.
    pub fn close_all(&self) -> Vec<Arc<E>> {
        let mut state = self.state.lock();
        state.is_closed = true;
        std::mem::take(&mut state.open).into_values().map(|slot| slot.engine).collect()
    }

    /// Registers a session of a database with `begin`, after waiting for claims.
    pub fn begin_session<T>(&self, database: u32, begin: impl FnOnce() -> T) -> T {
        let mut state = self.state.lock();
        while state.claimed.contains(&database) {
            self.changed.wait(&mut state);
        }
        begin()
    }

    /// Notes that a session has ended.
    pub fn end_session(&self) {
        self.changed.notify_all();
    }

    /// Returns whether a statement has claimed a database.
    pub fn is_claimed(&self, database: u32) -> bool {
        self.state.lock().claimed.contains(&database)
    }

    /// Claims a database; `None` if sessions other than `own` are connected to it, and do not end
    /// within some seconds, or if another statement has claimed it.
    ///
    /// # Errors
    ///
    /// 57014 if the statement is cancelled.
    pub fn claim(
        self: &Arc<Self>,
        database: u32,
        (sessions, own): (&SessionRegistry, i32),
        interrupt: &Interrupt,
    ) -> Result<Option<DatabaseClaim<E>>> {
        let deadline = monotonic_now() + CLAIM_WAIT;
        let mut state = self.state.lock();
        loop {
            if !state.claimed.contains(&database) && sessions.others_in(database, own) == 0 {
                state.claimed.insert(database);
                return Ok(Some(DatabaseClaim { slots: Arc::clone(self), database }));
            }
            if monotonic_now() >= deadline {
                return Ok(None);
            }
            self.changed.wait_for(&mut state, CLAIM_LOOK);
            interrupt.check()?;
        }
    }
}
