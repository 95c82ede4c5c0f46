//! Statement executor, shared by a session and the functions that its statements call.
//!
//! It has the open transaction, the settings and the session environment, acquires the locks of a
//! statement, and builds its [`exec::Context`].

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use store::transaction::{TableLockMode, TransactionLimits};
use store::{ReadLocks, Sequence, TableId, TimelineProgress, TimelineRead, memory};
use types::context::{ItemSets, Sequences};
use types::expr::EvalContext;
use types::random::Random;
use types::system::CatalogHandle;
use types::text::TextStyle;
use types::{Datum, SqlType};

use crate::activity::{SessionActivity, SessionPlans};
use crate::advisory::SessionLocks;
use crate::binder::SessionConstants;
use crate::catalog::Catalog;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::{DELETE, INSERT, SELECT, TRUNCATE, UPDATE};
use crate::catalog::name::{SearchPath, is_temporary};
use crate::catalog::policy::RowSecurityMode;
use crate::catalog::table::Table;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::exec;
use crate::exec::SharedView;
use crate::notifications::SessionNotifications;
use crate::parser;
use crate::relation_visibility::InvisibleRelations;
use crate::session::cursors::OpenCursors;
use crate::session::plan_cache::{CachedPlan, PlanCache, PlanCacheKey, PlanningState};
use crate::session::prepared::{CachedStatement, PlanningContext, StatementPlan};
use crate::session::routine_calls::{CallStack, SessionRoutines};
use crate::session::sequences::SessionSequences;
use crate::session::transaction::{self, OpenTransaction, SessionHandles};
use crate::session::{Notice, NoticeSink, read_only};
use crate::session_objects::SessionObjects;
use crate::settings::{Settings, TransactionModeSet};
use crate::system::{ChangedSettings, SystemContext, SystemNames, set_roles};
use crate::timer::StopFlag;

/// Statement executor; see the module.
pub struct StatementExecutor {
    pub(super) environment: Arc<SessionEnvironment>,
    pub(super) settings: Settings,
    pub(super) open: Option<OpenTransaction>,
    /// Nested function calls and their plans.
    pub(super) call_stack: CallStack,
    /// Snapshot policy of its statements.
    pub(super) snapshots: SnapshotPolicy,
    /// True if the statement is one of several in a message, which share a transaction.
    pub(super) in_script: bool,
    /// True while a statement runs that must read the primaries, also in a TIMELINE session.
    pub(super) primary_only: bool,
}

/// Snapshot policy.
#[derive(Clone)]
pub(super) enum SnapshotPolicy {
    /// Session: by the isolation level of the transaction.
    Session,
    /// VOLATILE function: a new snapshot before each statement.
    Inner,
    /// Other functions: the snapshot of the calling statement.
    Fixed(SharedView),
}

/// Session environment, shared with statements of functions.
#[derive(Clone)]
pub struct SessionEnvironment {
    pub(super) engine: Arc<Engine>,
    pub(super) constants: Arc<SessionConstants>,
    pub(super) sequences: SessionSequences,
    /// Sequence functions of transactions that are not read-only and have no catalog changes.
    pub(super) shared_sequences: Sequences,
    /// State of `random()`.
    pub(super) random: Random,
    /// Advisory locks of the session.
    pub(super) locks: Arc<SessionLocks>,
    /// Notifications of the session.
    pub(super) notifications: Arc<SessionNotifications>,
    /// Settings that functions of the running statement changed.
    pub(super) changed: Arc<ChangedSettings>,
    /// Prepared statements and cursors for system views.
    pub(super) objects: Arc<SessionObjects>,
    /// Value of `search_path` that names are resolved by.
    pub(super) search_path: Arc<str>,
    pub(super) stop: Arc<StopFlag>,
    /// Registry of the tables that its transactions read.
    pub(super) reads: Arc<ReadLocks>,
    /// Commits that the session has made or read, for its TIMELINE reads.
    pub(super) progress: Arc<TimelineProgress>,
    /// Session number.
    pub(super) process_id: i32,
    /// Entry in the session registry.
    pub(super) activity: Arc<SessionActivity>,
    /// Pending notices for the client.
    pub(super) notices: Arc<Mutex<Vec<Notice>>>,
    /// Callback that sends notices at once, if there is one.
    pub(super) notice_sink: Option<NoticeSink>,
    /// Open cursors.
    pub(super) open_cursors: OpenCursors,
    /// Cached plans.
    pub(super) plan_cache: Arc<PlanCache>,
}

impl SessionEnvironment {
    /// Returns the session state that a transaction uses.
    pub(super) fn handles(&self) -> SessionHandles<'_> {
        SessionHandles {
            stop: &self.stop,
            reads: &self.reads,
            progress: &self.progress,
            advisory: &self.locks,
            notifications: &self.notifications,
        }
    }
}

impl Deref for StatementExecutor {
    type Target = SessionEnvironment;

    fn deref(&self) -> &SessionEnvironment {
        &self.environment
    }
}

impl StatementExecutor {
    /// Returns the catalog as the open transaction sees it.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        match &self.open {
            Some(open) => open.changes.catalog(&self.engine),
            None => self.engine.catalog(),
        }
    }

    /// Runs a check of integrity of a table with the privileges of a role. It reads the present,
    /// also if `as_of` is set since the writes that it checks, and rows that forced policies hide
    /// from the owner.
    pub(super) fn in_present_as<T>(
        &mut self,
        (role, is_forced): (u32, bool),
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let path = self.constants.search_path();
        let mode = match is_forced {
            true => RowSecurityMode::Integrity,
            false => path.row_security(),
        };
        if path.as_of().is_none() && path.role() == role && path.row_security() == mode {
            return run(self);
        }
        let former = Arc::clone(&self.environment);
        let path = SearchPath::clone(path).with_as_of(None).with_role(role);
        let path = path.with_row_security(mode);
        let environment = Arc::make_mut(&mut self.environment);
        Arc::make_mut(&mut environment.constants).set_search_path(Arc::new(path));
        let result = run(self);
        self.environment = former;
        result
    }

    /// Returns whether writes are rejected: by the mode of the open transaction, or because
    /// tables are read as of a time.
    pub(super) fn is_read_only(&self) -> bool {
        let reads_past = self.settings.parsed().as_of.is_some();
        self.open.as_ref().is_some_and(|open| reads_past || open.modes.read_only)
    }

    /// Returns the error 25006 of a write.
    pub(super) fn read_only(&self, what: &str) -> Error {
        match self.settings.parsed().as_of {
            None => read_only(what),
            Some(_) => read_only(what).with_hint("Setting as_of is set. RESET as_of to write."),
        }
    }

    /// Updates the search path and the roles from the settings, after SET or the end of a
    /// transaction with SET LOCAL.
    pub(super) fn follow_search_path(&mut self) {
        let parsed = self.settings.parsed();
        let value = &parsed.search_path;
        let path = self.constants.search_path();
        let (roles, former) = (self.settings.roles(), self.constants.roles());
        let is_same_role = Arc::ptr_eq(roles, former) || roles == former;
        if is_same_role
            && Arc::ptr_eq(value, &self.search_path)
            && parsed.as_of == path.as_of()
            && parsed.row_security == path.row_security()
            && parsed.phoenix_compatibility == path.ignores_case()
        {
            return;
        }
        let is_same_session = roles.session == former.session;
        let around = Arc::make_mut(&mut self.environment);
        around.search_path = Arc::clone(value);
        let path = Arc::new(self.settings.search_path());
        let constants = Arc::make_mut(&mut around.constants);
        constants.set_search_path(Arc::clone(&path));
        if !is_same_role {
            if !is_same_session {
                // The current role is part of the search path, but not that of the session.
                around.plan_cache.drop_plans();
            }
            set_roles(constants, self.settings.roles());
        }
        around.sequences.set_search_path(path);
        around.shared_sequences = Sequences(Some(Arc::new(around.sequences.clone())));
    }

    pub(super) fn with_planning<T>(
        &self,
        run: impl FnOnce(&PlanningContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let (catalog, newer) = (self.catalog(), self.newer_relations());
        let old_snapshot = newer.as_ref().map(InvisibleRelations::snapshot);
        run(&PlanningContext {
            catalog: &catalog,
            system: SystemNames::of(&self.engine).for_session(&self.settings),
            constants: self.constants.as_ref(),
            state: self.planning_state(catalog.version, old_snapshot),
            newer,
            plans: self.plan_cache.as_ref(),
        })
    }

    /// Returns the indexes and tables that the next statement will not see, if there may be any.
    pub(super) fn newer_relations(&self) -> Option<InvisibleRelations> {
        // At READ COMMITTED a statement takes its snapshot after planning.
        let keeps_snapshot = |open: &&OpenTransaction| open.is_repeatable() || open.is_in_function;
        let snapshot = self.open.as_ref().filter(keeps_snapshot);
        let snapshot = snapshot.and_then(|open| open.transaction.present_snapshot());
        snapshot.and_then(|snapshot| self.engine.relations_newer_than(snapshot))
    }

    /// Returns the present state of what plans depend on.
    pub(super) fn planning_state(
        &self,
        catalog_version: u64,
        old_snapshot: Option<Sequence>,
    ) -> PlanningState<'_> {
        PlanningState {
            catalog_version,
            search_path: self.constants.search_path(),
            old_snapshot,
            reads_views: self.settings.parsed().enable_maintained_views,
            reads_followed: self.engine.followers.is_used().then(|| self.may_read_followed()),
            statistics: self.engine.as_ref(),
        }
    }

    /// Returns whether a query may read eventual indexes, which show an earlier moment: not if all
    /// statements of the transaction see one snapshot, or if it has writes.
    fn may_read_followed(&self) -> bool {
        let is_own = matches!(self.snapshots, SnapshotPolicy::Session) && !self.primary_only;
        let is_present = self.constants.search_path().as_of().is_none();
        let is_free = match &self.open {
            Some(open) => {
                let sees_one_snapshot = open.is_repeatable() || open.is_in_function;
                !sees_one_snapshot && !open.transaction.has_writes()
            }
            None => !self.settings.parsed().default_modes.is_repeatable(),
        };
        is_own && is_present && is_free
    }

    /// Returns the plan of a key from the plan cache; makes and adds it if there is none that is
    /// valid.
    pub(super) fn cached_plan<T: CachedPlan>(
        &self,
        key: PlanCacheKey<'_>,
        make: impl FnOnce(&PlanningContext<'_>) -> Result<T>,
    ) -> Result<Arc<T>> {
        self.with_planning(|planning| {
            let known = planning.plans.find::<T>(&key);
            if let Some(known) = known.filter(|known| known.is_current(&planning.state)) {
                return Ok(known);
            }
            let (made, bytes) = memory::measure(|| make(planning));
            let made = Arc::new(made?);
            made.usage().bytes.store(bytes, Ordering::Relaxed);
            planning.plans.add(key, &made);
            Ok(made)
        })
    }

    /// Returns an internal statement with its plan.
    pub(super) fn cached_statement(
        &self,
        text: &str,
        types: &[SqlType],
    ) -> Result<Arc<CachedStatement>> {
        let key = PlanCacheKey::of_statement(text, types, self.constants.search_path());
        self.cached_plan(key, |planning| {
            let parsed = parser::parse_statements(text)?.pop();
            let parsed = parsed.ok_or_else(|| err!(INTERNAL_ERROR: "a text has no statement"))?;
            let types: Vec<_> = types.iter().cloned().map(Some).collect();
            CachedStatement::new(planning, &parsed, &types)
        })
    }

    /// Begins a statement in the open transaction, which is begun if necessary.
    pub(super) fn begin_statement(&mut self) -> &mut OpenTransaction {
        let is_own = matches!(self.snapshots, SnapshotPolicy::Session);
        let open = self.begin_locking();
        if is_own {
            open.transaction.begin_statement();
        }
        open
    }

    /// Returns the notices collected since the last call, at the end of a statement.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.end_reads();
        std::mem::take(&mut *self.notices.lock())
    }

    /// Lets `last_read_stale` and `last_read_staleness` show the reads of the last statement.
    pub(super) fn show_last_read(&mut self) {
        self.end_reads();
        if let Some(read) = self.progress.last_read() {
            self.settings.show_last_read(read);
        }
    }

    /// Ends the TIMELINE reads of a statement, with a notice if the session wants one.
    pub(super) fn end_reads(&self) -> Option<TimelineRead> {
        let read = self.progress.end_statement()?;
        let is_usual = read.replica_requests == 0 && !read.is_stale();
        if !is_usual
            && self.settings.parsed().timeline_notice
            && self.settings.wants_message("NOTICE")
        {
            self.notices.lock().push(Notice { severity: "NOTICE", error: reads_notice(read) });
        }
        Some(read)
    }

    /// Returns the limits of the transaction for the running statement.
    pub(super) fn limits(&self) -> TransactionLimits {
        match self.primary_only {
            true => transaction::primary_limits(&self.settings),
            false => transaction::limits(&self.settings),
        }
    }

    /// Begins a statement of a function.
    fn begin_inner(&mut self) -> &mut OpenTransaction {
        let open = self.open.as_mut().expect("a function is called within a transaction");
        if matches!(self.snapshots, SnapshotPolicy::Inner) {
            open.transaction.begin_inner_statement();
        }
        open
    }

    /// Begins a statement without taking the transaction's snapshot, for statements that acquire
    /// locks and read no rows.
    pub(super) fn begin_locking(&mut self) -> &mut OpenTransaction {
        if !matches!(self.snapshots, SnapshotPolicy::Session) {
            return self.begin_inner();
        }
        // SET LOCAL may have changed the limits.
        let limits = self.limits();
        let (engine, session) = (&self.environment.engine, self.environment.handles());
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                let modes = self.settings.parsed().default_modes;
                none.insert(OpenTransaction::begin(engine, &self.settings, modes, session))
            }
        };
        open.transaction.set_limits(limits);
        engine.drop_unseen(None);
        open.used = true;
        self.environment.locks.link_transaction(&open.transaction);
        open.transaction.begin_without_snapshot();
        open
    }

    /// Begins a transaction with these modes, or sets the modes of the open one.
    pub(super) fn begin_with(&mut self, modes: TransactionModeSet) -> Result<&mut OpenTransaction> {
        let (engine, session) = (&self.environment.engine, self.environment.handles());
        match &mut self.open {
            Some(open) => {
                open.set_modes(engine, &self.settings, modes, session)?;
                Ok(open)
            }
            none => Ok(none.insert(OpenTransaction::begin(engine, &self.settings, modes, session))),
        }
    }

    /// Rejects a statement that changes or locks rows in a read-only transaction.
    pub(super) fn check_permitted(&self, planned: &StatementPlan, tag: &str) -> Result<()> {
        if !self.is_read_only() {
            return Ok(());
        }
        self.check_writes(&planned.changes, tag)?;
        let clause = planned.locks.first().map_or("", |(_, strength)| strength.clause());
        let tag = match planned.plan.is_query() {
            true => format!("SELECT {clause}"),
            false => tag.to_owned(),
        };
        let locked: Vec<TableId> = planned.locks.iter().map(|(table, _)| *table).collect();
        self.check_temporary(&locked, &tag)
    }

    /// Rejects writes to these tables in a read-only transaction. Temporary tables may be
    /// written, unless a coprocessor writes to another table then.
    pub(super) fn check_writes(&self, tables: &[TableId], tag: &str) -> Result<()> {
        if !self.is_read_only() {
            return Ok(());
        }
        let (mut all, mut next) = (tables.to_vec(), 0);
        while let Some(table) = all.get(next) {
            let attached = self.engine.attached(*table);
            all.extend(attached.iter().flat_map(|known| known.iter()).flat_map(|one| &one.writes));
            next += 1;
        }
        self.check_temporary(&all, tag)
    }

    fn check_temporary(&self, tables: &[TableId], tag: &str) -> Result<()> {
        let catalog = self.catalog();
        let is_own = |table: &TableId| {
            catalog.table_stored(*table).is_some_and(|table| is_temporary(&table.schema))
        };
        match tables.iter().all(is_own) {
            true => Ok(()),
            false => Err(self.read_only(tag)),
        }
    }

    /// Locks a table that the current statement writes to. The statement sees the commits of
    /// previous lock holders.
    pub(super) fn lock_for_write(&mut self, table: TableId) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.lock_for_write(&self.environment.engine, table)?;
        open.transaction.refresh_statement();
        Ok(())
    }

    /// Locks the tables whose rows the current statement locks; returns whether there are any.
    pub(super) fn lock_for_row_locks(&mut self, planned: &StatementPlan) -> Result<bool> {
        let Some(open) = self.open.as_mut().filter(|_| !planned.locks.is_empty()) else {
            return Ok(false);
        };
        for (table, _) in &planned.locks {
            open.lock_shared(&self.environment.engine, *table, TableLockMode::RowShare)?;
        }
        open.transaction.refresh_statement();
        Ok(true)
    }

    /// Locks the tables that the current statement reads against ACCESS EXCLUSIVE locks; returns
    /// whether it may have waited for one.
    pub(super) fn lock_to_read(&self, planned: &StatementPlan) -> Result<bool> {
        let Some(open) = &self.open else { return Ok(false) };
        let had_to_ask = open.transaction.lock_to_read(&planned.reads)?;
        if had_to_ask {
            open.transaction.refresh_statement();
            self.wait_for_publication();
        }
        Ok(had_to_ask)
    }

    /// Waits until a previous lock holder has published its catalog.
    pub(super) fn wait_for_publication(&self) {
        if self.engine.publishing.is_locked() {
            drop(self.engine.publishing.lock());
        }
    }

    /// Begins a statement that is subject to request quotas.
    pub(super) fn begin_request(&mut self) -> &mut OpenTransaction {
        let is_own = matches!(self.snapshots, SnapshotPolicy::Session);
        let open = self.begin_statement();
        if is_own {
            open.transaction.begin_request();
        }
        open
    }

    /// Returns the executor context of a statement, which has begun.
    pub(super) fn context(&self, open: &OpenTransaction, parameters: Vec<Datum>) -> exec::Context {
        let view = match &self.snapshots {
            SnapshotPolicy::Fixed(view) => Arc::clone(view),
            SnapshotPolicy::Session | SnapshotPolicy::Inner => Arc::default(),
        };
        let system = self.system(open, &view);
        exec::Context {
            transaction: Arc::clone(&open.transaction),
            eval: self.eval_with(open, parameters, &system),
            system,
            requires_key_order: false,
            locks_one_by_one: false,
            row_by_row: false,
            nested_statements_before: open.transaction.inner_statements(),
            parallel: true,
            profile: None,
            cte_scope: exec::CteScope::default(),
            uncorrelated_results: exec::UncorrelatedResults::default(),
            changed_rows: None,
            key_updates: Arc::clone(&open.key_updates),
            constraint_queue: None,
            work_mem: self.settings.parsed().work_mem_bytes,
            spill: self.engine.spill.begin(self.settings.parsed().temp_file_limit),
            view,
            followed_views: exec::SharedFollowedViews::default(),
        }
    }

    /// Returns the source of system rows and function results for a statement.
    pub(super) fn system(&self, open: &OpenTransaction, view: &SharedView) -> Arc<SystemContext> {
        let mut settings = self.settings.clone();
        open.modes.show_in(&mut settings);
        Arc::new(SystemContext {
            engine: Arc::clone(&self.engine),
            catalog: open.changes.catalog(&self.engine),
            settings,
            transaction: Arc::clone(&open.transaction),
            changed: Arc::clone(&self.changed),
            locks: Arc::clone(&self.locks),
            notifications: Arc::clone(&self.notifications),
            own_objects: Arc::clone(&self.objects),
            cancelled: Arc::clone(&self.stop.stop),
            constants: Arc::clone(&self.constants),
            trigger_depth: self.call_stack.trigger_depth,
            routines: Arc::new(SessionRoutines::new(self, open, view)),
        })
    }

    pub(super) fn eval_context(
        &self,
        open: &OpenTransaction,
        parameters: Vec<Datum>,
    ) -> EvalContext {
        self.eval_with(open, parameters, &self.system(open, &Arc::default()))
    }

    fn eval_with(
        &self,
        open: &OpenTransaction,
        parameters: Vec<Datum>,
        system: &Arc<SystemContext>,
    ) -> EvalContext {
        EvalContext {
            style: TextStyle {
                now: Some(open.started),
                system: CatalogHandle(Some(Arc::clone(system) as _)),
                interrupt: self.stop.interrupt(),
                ..self.settings.style().clone()
            },
            parameters,
            statement_timestamp: transaction::now(&self.engine),
            sequences: self.sequences_of(open),
            random: self.random.clone(),
            item_sets: ItemSets::default(),
        }
    }

    /// Returns the sequence functions for statements of a transaction.
    pub(super) fn sequences_of(&self, open: &OpenTransaction) -> Sequences {
        let read_only = open.modes.read_only || self.settings.parsed().as_of.is_some();
        self.sequences.enter(&open.transaction);
        if open.changes.is_empty() && !read_only {
            return self.shared_sequences.clone();
        }
        let own = (!open.changes.is_empty()).then(|| open.changes.clone());
        Sequences(Some(Arc::new(self.sequences.within(own, read_only))))
    }
}

/// Returns the notice about reads of replicas, or of an earlier snapshot.
fn reads_notice(read: TimelineRead) -> Error {
    let message = match read.replica_requests {
        0 => "the statement read an earlier snapshot",
        _ => "region replica 1 has answered",
    };
    let millis = read.staleness.as_secs_f64() * 1e3;
    let detail = match read.is_stale() {
        true => format!("The snapshot lacks commits of the last {millis:.3} ms."),
        false => "The snapshot lacks no commits.".to_owned(),
    };
    err!(SUCCESSFUL_COMPLETION: "{message}").with_detail(detail)
}

impl StatementExecutor {
    /// Returns the number of the current role.
    pub(super) fn current_role(&self) -> u32 {
        self.constants.search_path().role()
    }

    /// Checks that the current role owns a table.
    ///
    /// # Errors
    ///
    /// 42501.
    pub(super) fn check_owns(&self, table: &Table) -> Result<()> {
        let (catalog, subject) = (self.catalog(), AccessSubject::Relation(table.oid));
        match catalog.is_owner(self.current_role(), subject) {
            true => Ok(()),
            false => Err(catalog.not_owner(subject)),
        }
    }

    /// Checks that the current role may insert values of these columns.
    ///
    /// # Errors
    ///
    /// 42501.
    pub(super) fn check_may_copy(&self, table: &Table, columns: &[usize]) -> Result<()> {
        let catalog = self.catalog();
        let subject = AccessSubject::Relation(table.oid);
        let of_columns = |role| columns.iter().map(move |at| (role, *at));
        let may_insert = |(role, at)| catalog.column_privileges(role, table.oid, at) & INSERT != 0;
        let has_table = |role| catalog.privileges_on(role, subject).0 & INSERT != 0;
        let role = self.current_role();
        if !has_table(role) && (columns.is_empty() || !of_columns(role).all(may_insert)) {
            return Err(catalog.denied(subject));
        }
        self.audit_copy(table, |role| has_table(role) || of_columns(role).any(may_insert));
        Ok(())
    }

    /// Checks that the current role may lock a table or view in a mode.
    ///
    /// # Errors
    ///
    /// 42501.
    pub(super) fn check_may_lock(&self, relation: u32, mode: TableLockMode) -> Result<()> {
        let wanted = match mode {
            TableLockMode::AccessShare => SELECT | UPDATE | DELETE | TRUNCATE,
            TableLockMode::RowShare => SELECT | UPDATE | DELETE | TRUNCATE,
            TableLockMode::RowExclusive => INSERT | UPDATE | DELETE | TRUNCATE,
            _ => UPDATE | DELETE | TRUNCATE,
        };
        let (catalog, subject) = (self.catalog(), AccessSubject::Relation(relation));
        match catalog.privileges_on(self.current_role(), subject).0 & wanted {
            0 => Err(catalog.denied(subject)),
            _ => Ok(()),
        }
    }
}
