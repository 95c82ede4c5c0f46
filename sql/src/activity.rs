//! What sessions do: for `pg_stat_activity`, and for those who stop others' statements.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use store::memory::{Account, AccountId};

use crate::parser::StatementText;
use crate::settings::Settings;
use crate::timer::{MemoryShortage, StopFlag};

/// The open sessions, by number.
#[derive(Default)]
pub struct Sessions(Mutex<BTreeMap<i32, Arc<Activity>>>);

/// One session.
pub struct Activity {
    /// Its number.
    pub session: i32,
    /// The user.
    pub user: String,
    /// When it began, microseconds of the Unix epoch.
    pub began: i64,
    stop: Arc<StopFlag>,
    /// What it is charged with.
    account: Account,
    now: Mutex<Now>,
    /// The statements whose plans it keeps.
    plans: Mutex<Vec<Weak<dyn KeptPlan>>>,
}

/// A plan that is kept for the next time that its statement is run, and can be made again.
pub trait KeptPlan: Send + Sync {
    /// Forgets the plan.
    fn forget_plan(&self);
}

/// What a session does, or did last.
#[derive(Clone)]
pub struct Now {
    /// `pg_stat_activity.state`
    pub state: &'static str,
    /// When that began, microseconds of the Unix epoch.
    pub since: i64,
    /// The statement, and when it began.
    pub statement: Option<(StatementText, i64)>,
    /// The session's settings as the statement found them.
    pub settings: Settings,
}

impl Sessions {
    /// Adds a session.
    pub fn begin(
        &self,
        (session, user): (i32, &str),
        settings: &Settings,
        stop: &Arc<StopFlag>,
        at: i64,
    ) -> Arc<Activity> {
        let now = Now { state: "idle", since: at, statement: None, settings: settings.clone() };
        let activity = Arc::new(Activity {
            session,
            user: user.to_owned(),
            began: at,
            stop: Arc::clone(stop),
            account: Account::open(),
            now: Mutex::new(now),
            plans: Mutex::default(),
        });
        self.0.lock().insert(session, Arc::clone(&activity));
        activity
    }

    /// Removes a session.
    pub fn end(&self, session: i32) {
        self.0.lock().remove(&session);
    }

    /// Returns all sessions, by number.
    pub fn all(&self) -> Vec<Arc<Activity>> {
        self.0.lock().values().cloned().collect()
    }

    /// Asks the running statement of a session to stop; false if there is no such session.
    pub fn cancel(&self, session: i32) -> bool {
        let found = self.0.lock().get(&session).cloned();
        found.map(|activity| activity.stop.stop.store(true, Ordering::Relaxed)).is_some()
    }

    /// Has a session end, after its running statement is stopped; false if there is no such one.
    pub fn terminate(&self, session: i32) -> bool {
        let found = self.0.lock().get(&session).cloned();
        found.map(|activity| activity.stop.terminate()).is_some()
    }

    /// Returns whether a session is open.
    pub fn is_open(&self, session: i32) -> bool {
        self.0.lock().contains_key(&session)
    }

    /// Returns the sessions by the numbers of their transactions, of the last ones if none is open.
    pub fn by_transaction(&self) -> BTreeMap<u64, i32> {
        let sessions = self.0.lock();
        sessions.values().map(|activity| (activity.stop.transaction(), activity.session)).collect()
    }
}

impl Activity {
    /// A statement begins.
    pub fn runs(&self, statement: &StatementText, settings: &Settings, at: i64) {
        let statement = Some((statement.clone(), at));
        let settings = settings.clone();
        *self.now.lock() = Now { state: "active", since: at, statement, settings };
    }

    /// The session waits for its client.
    pub fn rests(&self, state: &'static str, at: i64) {
        let mut now = self.now.lock();
        if now.state != state {
            (now.state, now.since) = (state, at);
        }
    }

    /// Notes that it keeps the plan of a statement.
    pub(crate) fn keeps(&self, plan: Weak<dyn KeptPlan>) {
        let mut plans = self.plans.lock();
        if plans.len() == plans.capacity() {
            plans.retain(|plan| plan.strong_count() > 0);
        }
        plans.push(plan);
    }

    /// Forgets the plans that it keeps, but for one that is running.
    pub(crate) fn forget_plans(&self) {
        let plans = self.plans.lock();
        if plans.is_empty() {
            return;
        }
        // What is freed is what the session was charged with.
        let _entered = self.account().enter();
        plans.iter().filter_map(Weak::upgrade).for_each(|plan| plan.forget_plan());
    }

    /// Returns its memory account.
    pub fn account(&self) -> AccountId {
        self.account.id()
    }

    /// Returns whether it runs a statement.
    pub fn is_at_work(&self) -> bool {
        self.now.lock().state == "active"
    }

    /// Returns whether its last statement was stopped to free its memory.
    pub(crate) fn is_stopped_for_memory(&self) -> bool {
        self.stop.memory_shortage().is_some()
    }

    /// Stops its statement to free its memory.
    pub(crate) fn stop_for_memory(&self, shortage: MemoryShortage) {
        self.stop.stop_for_memory(shortage);
    }

    /// Returns the number of its transaction in the store, of the last one if none is open.
    pub fn transaction(&self) -> u64 {
        self.stop.transaction()
    }

    /// Returns what the session does.
    pub fn now(&self) -> Now {
        self.now.lock().clone()
    }
}
