//! Session registry: the open sessions and the statement that each one runs.
//!
//! A session registers itself when it is opened and is removed when it is dropped; it updates its
//! entry at the start and the end of each statement. `pg_stat_activity`, `pg_locks`,
//! `pg_cancel_backend`, `pg_terminate_backend` and the memory governor read the registry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use store::memory::{Account, AccountId};

use crate::catalog::access::role::SessionRole;
use crate::parser::StatementText;
use crate::settings::Settings;
use crate::timer::{MemoryShortage, StopFlag};

/// Registry of the open sessions, by session number.
#[derive(Default)]
pub struct SessionRegistry(Mutex<BTreeMap<i32, Arc<SessionActivity>>>);

/// One session.
pub struct SessionActivity {
    /// Session number, shown as its process id.
    pub session: i32,
    /// Role of the session when it was opened.
    pub role: SessionRole,
    /// Number of the database.
    pub database: u32,
    /// Start of the session, in microseconds of the Unix epoch.
    pub began: i64,
    stop: Arc<StopFlag>,
    /// Memory account that the session's allocations are charged to.
    account: Account,
    now: Mutex<ActivityState>,
    plans: Arc<dyn SessionPlans>,
}

/// Cached plans of a session, which can be dropped and are rebuilt at their next use.
pub trait SessionPlans: Send + Sync {
    /// Drops the plans, except those that are being executed.
    fn drop_plans(&self);
}

/// Present state of a session, and its current or last statement.
#[derive(Clone)]
pub struct ActivityState {
    /// State as in `pg_stat_activity.state`.
    pub state: &'static str,
    /// Time at which the state began, in microseconds of the Unix epoch.
    pub since: i64,
    /// Current or last statement, and its start time.
    pub statement: Option<(StatementText, i64)>,
    /// Settings of the session at the start of the statement.
    pub settings: Settings,
}

impl SessionRegistry {
    /// Adds a session.
    pub fn begin(
        &self,
        (session, role, database): (i32, &SessionRole, u32),
        settings: &Settings,
        (stop, plans): (&Arc<StopFlag>, Arc<dyn SessionPlans>),
        at: i64,
    ) -> Arc<SessionActivity> {
        let now =
            ActivityState { state: "idle", since: at, statement: None, settings: settings.clone() };
        let activity = Arc::new(SessionActivity {
            session,
            role: role.clone(),
            database,
            began: at,
            stop: Arc::clone(stop),
            account: Account::open(),
            now: Mutex::new(now),
            plans,
        });
        let other = self.0.lock().insert(session, Arc::clone(&activity));
        debug_assert!(other.is_none(), "two sessions have the number {session}");
        activity
    }

    /// Removes a session.
    pub fn end(&self, session: i32) {
        self.0.lock().remove(&session);
    }

    /// Returns the number of sessions of a database other than `own`.
    pub fn others_in(&self, database: u32, own: i32) -> usize {
        let sessions = self.0.lock();
        let others = sessions.values().filter(|one| one.database == database);
        others.filter(|one| one.session != own).count()
    }

    /// Returns all sessions, by number.
    pub fn all(&self) -> Vec<Arc<SessionActivity>> {
        self.0.lock().values().cloned().collect()
    }

    /// Cancels the running statement of a session; returns `false` if there is no such session.
    pub fn cancel(&self, session: i32) -> bool {
        let found = self.0.lock().get(&session).cloned();
        found.map(|activity| activity.stop.stop.store(true, Ordering::Relaxed)).is_some()
    }

    /// Terminates a session after its running statement is cancelled; returns `false` if there is
    /// no such session.
    pub fn terminate(&self, session: i32) -> bool {
        let found = self.0.lock().get(&session).cloned();
        found.map(|activity| activity.stop.terminate()).is_some()
    }

    /// Returns the number of open sessions of a role.
    pub fn count_of(&self, role: u32) -> usize {
        self.0.lock().values().filter(|activity| activity.role.number == role).count()
    }

    /// Returns whether a session is open.
    pub fn is_open(&self, session: i32) -> bool {
        self.0.lock().contains_key(&session)
    }

    /// Returns session numbers by transaction id: of the open transaction, or of the last one if
    /// none is open.
    pub fn by_transaction(&self) -> BTreeMap<u64, i32> {
        let sessions = self.0.lock();
        sessions.values().map(|activity| (activity.stop.transaction(), activity.session)).collect()
    }
}

impl SessionActivity {
    /// Returns the text of the current or last statement; empty before the first.
    pub fn statement_text(&self) -> String {
        let now = self.now.lock();
        now.statement.as_ref().map_or_else(String::new, |(text, _)| text.as_str().to_owned())
    }

    /// Records the start of a statement.
    pub fn statement_started(&self, statement: &StatementText, settings: &Settings, at: i64) {
        let statement = Some((statement.clone(), at));
        let settings = settings.clone();
        *self.now.lock() = ActivityState { state: "active", since: at, statement, settings };
    }

    /// Records that the session waits for its client, in an idle `state`.
    pub fn set_idle(&self, state: &'static str, at: i64) {
        let mut now = self.now.lock();
        if now.state != state {
            (now.state, now.since) = (state, at);
        }
    }

    /// Drops the cached plans of the session, except those that are being executed.
    pub(crate) fn drop_plans(&self) {
        // The freed memory is credited to the session's account.
        let _entered = self.account().enter();
        self.plans.drop_plans();
    }

    /// Returns the session's memory account.
    pub fn account(&self) -> AccountId {
        self.account.id()
    }

    /// Returns whether the session runs a statement.
    pub fn is_active(&self) -> bool {
        self.now.lock().state == "active"
    }

    /// Returns whether the session's last statement was stopped to free its memory.
    pub(crate) fn is_stopped_for_memory(&self) -> bool {
        self.stop.memory_shortage().is_some()
    }

    /// Stops the session's statement to free its memory.
    pub(crate) fn cancel_for_memory(&self, shortage: MemoryShortage) {
        self.stop.stop_for_memory(shortage);
    }

    /// Returns the store's number of the open transaction, or of the last one if none is open.
    pub fn transaction(&self) -> u64 {
        self.stop.transaction()
    }

    /// Returns the present state of the session.
    pub fn now(&self) -> ActivityState {
        self.now.lock().clone()
    }
}
