//! Calls of user-defined functions from a statement.
//!
//! A function is bound and planned for the argument types of a call; the plan is cached by the
//! session. The first call of a statement checks it and locks its tables; the plan is valid until
//! the calling statement ends. Its statements run in the transaction of the
//! session. Those of a VOLATILE function see what was committed and written before each of them;
//! those of others see what the calling statement sees.
//!
//! Source: PostgreSQL's `fmgr_sql`, `init_execution_state` and `postquel_start` (functions.c).

use std::ops::DerefMut;
use std::sync::{Arc, OnceLock};

use ahash::AHashMap;
use parking_lot::Mutex;
use types::expr::{Expr, Routine};
use types::{Batch, Datum};

use crate::ast::Language;
use crate::ast::{Statement, Volatility};
use crate::binder::BodyStatement;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::role::SessionRole;
use crate::catalog::function::{Function, FunctionRecord};
use crate::error::{Error, Result};
use crate::exec::{self, SharedView, memory};
use crate::planner::statistics::TableSizes;
use crate::session::Session;
use crate::session::plan_cache::{
    CachedPlan, PlanCacheKey, PlanUsage, PlanValidity, PlanningState,
};
use crate::session::prepared::{PlanningContext, StatementPlan};
use crate::session::statement_executor::{SessionEnvironment, SnapshotPolicy, StatementExecutor};
use crate::session::transaction::{OpenTransaction, SharedTransactionState};
use crate::settings::Settings;
use crate::system::{RoutineExecutor, SystemContext};

/// Maximum nesting depth of calls, which bounds their memory.
pub(super) const DEPTH_MAX: usize = 400;
/// Remaining stack at which a call gets a new stack segment, and the size of that. An expression
/// in a function may be as deep as one in a statement.
pub(super) const RED_ZONE_BYTES: usize = 32 << 20;
pub(super) const STACK_BYTES: usize = 64 << 20;

/// Returns the error of too deeply nested calls.
pub(super) fn too_deep() -> Error {
    err!(STATEMENT_TOO_COMPLEX: "stack depth limit exceeded"; hint "The maximum depth of nested function calls is {DEPTH_MAX}.")
}

/// Nesting depth of the calls around a statement, and their plans.
#[derive(Clone, Default)]
pub(super) struct CallStack {
    depth: usize,
    /// Nesting depth of trigger calls: `pg_trigger_depth()`.
    pub(super) trigger_depth: usize,
    /// Plans of one top-level statement and all functions that it calls.
    plans: Option<Arc<RoutinePlans>>,
}

type RoutinePlans = Mutex<AHashMap<PlanCacheKey<'static>, Arc<PlannedBody>>>;

/// Body of a function, planned for calls.
struct PlannedBody {
    statements: Vec<PlannedStep>,
    /// VOLATILE: the statements may change data and see concurrent commits.
    is_volatile: bool,
    /// True if it returns a set; otherwise it returns at most one row.
    is_set: bool,
    validity: PlanValidity,
    usage: PlanUsage,
}

impl CachedPlan for PlannedBody {
    fn usage(&self) -> &PlanUsage {
        &self.usage
    }

    fn is_current(&self, now: &PlanningState<'_>) -> bool {
        let mut steps = self.statements.iter();
        self.validity.is_current(now) && steps.all(|step| step.planned.validity.is_current(now))
    }
}

/// Planned statement of a body.
struct PlannedStep {
    tag: &'static str,
    planned: StatementPlan,
    /// Expressions of the function's row over the columns of the statement.
    result: Option<Vec<Expr>>,
}

/// Executor of the functions that one statement calls; see the module.
pub(super) struct SessionRoutines {
    around: Arc<SessionEnvironment>,
    seen: SharedTransactionState,
    /// Snapshot of the calling statement.
    view: SharedView,
    called: CallStack,
    inner: Mutex<Option<StatementExecutor>>,
    /// Inner session for procedural bodies.
    session: Mutex<Option<Box<Session>>>,
}

impl SessionRoutines {
    /// Returns the function executor of a statement.
    pub(super) fn new(
        work: &StatementExecutor,
        open: &OpenTransaction,
        view: &SharedView,
    ) -> SessionRoutines {
        SessionRoutines {
            around: Arc::clone(&work.environment),
            seen: open.shared_state(),
            view: Arc::clone(view),
            called: work.call_stack.clone(),
            inner: Mutex::new(None),
            session: Mutex::new(None),
        }
    }

    /// Returns the statement executor of a function's statements.
    fn work(&self, source: &SystemContext) -> StatementExecutor {
        let open = OpenTransaction::for_function(&self.seen, &source.settings, &source.transaction);
        let plans = self.called.plans.clone().unwrap_or_default();
        let CallStack { depth, trigger_depth, .. } = self.called;
        let called = CallStack { depth: depth + 1, trigger_depth, plans: Some(plans) };
        let (around, settings) = (Arc::clone(&self.around), source.settings.clone());
        let snapshots = SnapshotPolicy::Session;
        let mut work = StatementExecutor {
            environment: around,
            settings,
            open: Some(open),
            call_stack: called,
            snapshots,
            in_script: false,
            primary_only: false,
        };
        // The role may be another one.
        work.follow_search_path();
        work
    }
}

impl SessionRoutines {
    /// Executes a call of a function with a procedural body.
    fn call_body(
        &self,
        source: &SystemContext,
        (function, routine): (&Arc<Function>, &Routine),
        arguments: Vec<Datum>,
    ) -> Result<Vec<Vec<Datum>>> {
        let transaction = &source.transaction;
        let seen = match self.view.get() {
            Some(seen) => seen.clone(),
            None => transaction.view()?,
        };
        // A nested call in an argument uses a separate session.
        let known = self.session.lock().take();
        let mut session = known.unwrap_or_else(|| {
            let worker = self.work(source);
            Box::new(Session::inner(StatementExecutor {
                snapshots: SnapshotPolicy::Inner,
                ..worker
            }))
        });
        let is_trigger = usize::from(function.is_trigger());
        session.call_stack.trigger_depth = self.called.trigger_depth + is_trigger;
        let is_volatile = function.record.volatility == Volatility::Volatile;
        session.snapshots = match is_volatile {
            true => SnapshotPolicy::Inner,
            false => SnapshotPolicy::Fixed(Arc::new(OnceLock::from(seen.clone()))),
        };
        let rows = with_settings_of(&mut *session, Some(function), |session| {
            session.call_body(function, routine, arguments)
        });
        if is_volatile {
            transaction.resume_statement(&seen);
        }
        *self.session.lock() = Some(session);
        rows
    }
}

impl RoutineExecutor for SessionRoutines {
    fn for_other_settings(&self) -> Arc<dyn RoutineExecutor> {
        Arc::new(SessionRoutines {
            around: Arc::clone(&self.around),
            seen: self.seen.clone(),
            view: Arc::clone(&self.view),
            called: CallStack { plans: None, ..self.called.clone() },
            inner: Mutex::new(None),
            session: Mutex::new(None),
        })
    }

    fn rows(
        &self,
        source: &SystemContext,
        routine: &Routine,
        arguments: Vec<Datum>,
    ) -> Result<Vec<Vec<Datum>>> {
        if self.called.depth >= DEPTH_MAX {
            return Err(too_deep());
        }
        let function = source.catalog.function(routine.number);
        if let Some(function) = function.filter(|one| one.record.language == Language::PlPgSql) {
            let run = || self.call_body(source, (function, routine), arguments);
            return stacker::maybe_grow(RED_ZONE_BYTES, STACK_BYTES, run);
        }
        let mut inner = self.inner.lock();
        let mut work = inner.get_or_insert_with(|| self.work(source));
        let function = source.catalog.function(routine.number);
        let run = || {
            with_settings_of(&mut work, function, |work| work.call(routine, arguments, &self.view))
        };
        stacker::maybe_grow(RED_ZONE_BYTES, STACK_BYTES, run)
    }
}

/// Runs a closure in the environment of a function: with its SET clauses applied and, with SECURITY
/// DEFINER, as its owner. What it sets in the session itself remains.
fn with_settings_of<W: DerefMut<Target = StatementExecutor>, T>(
    work: &mut W,
    function: Option<&Arc<Function>>,
    run: impl FnOnce(&mut W) -> Result<T>,
) -> Result<T> {
    let Some(record) = function.map(|one| &one.record).filter(|one| one.has_own_environment())
    else {
        return run(work);
    };
    let before = work.enter_settings(record)?;
    let done = run(work);
    work.leave_settings(&record.settings, before);
    done
}

/// Settings to restore after a function with SET clauses or SECURITY DEFINER.
struct SettingsBefore {
    settings: Settings,
    /// Number of recorded setting changes before the call.
    changes: usize,
}

impl StatementExecutor {
    /// Becomes the owner of a function with SECURITY DEFINER, and applies the SET clauses.
    fn enter_settings(&mut self, function: &FunctionRecord) -> Result<SettingsBefore> {
        let before =
            SettingsBefore { settings: self.settings.clone(), changes: self.changed.count() };
        self.environment.changed.apply_to(&mut self.settings);
        let settings = function.settings.as_slice();
        let mut given = settings.iter();
        let catalog = self.catalog();
        if function.security_definer {
            let owner = catalog.access(AccessSubject::Function(function.number)).owner;
            let owner = catalog.role(owner).map(|role| SessionRole::of(role));
            let missing = || err!(UNDEFINED_OBJECT: "the owner of function \"{}\" does not exist", function.name);
            self.settings.enter_definer(owner.ok_or_else(missing)?);
        }
        let set =
            given.try_for_each(|(name, value)| self.settings.set_with(&catalog, name, Some(value)));
        if let Err(error) = set {
            self.settings = before.settings;
            return Err(error);
        }
        self.changed.push_function_settings(settings, &self.settings);
        self.follow_settings();
        Ok(before)
    }

    /// Restores the settings from before a function call.
    fn leave_settings(&mut self, settings: &[(String, String)], before: SettingsBefore) {
        self.changed.pop_function_settings(settings, before.changes);
        self.settings = before.settings;
        self.environment.changed.apply_to(&mut self.settings);
        self.follow_settings();
    }

    fn follow_settings(&mut self) {
        self.follow_search_path();
        if let Some(open) = &self.open {
            open.transaction.set_limits(self.limits());
        }
    }
}

impl StatementExecutor {
    /// Executes a call and returns its rows.
    fn call(
        &mut self,
        routine: &Routine,
        arguments: Vec<Datum>,
        view: &SharedView,
    ) -> Result<Vec<Vec<Datum>>> {
        let within = |error: Error, place: &str| {
            let here = || Some(format!("SQL function \"{}\" {place}", routine.name));
            let context = error.context.or_else(here);
            Error { position: None, context, ..error }
        };
        let body = self.body(routine).map_err(|error| within(error, "during startup"))?;
        let open = self.open.as_ref().expect("it was made with one");
        let transaction = Arc::clone(&open.transaction);
        let seen = match view.get() {
            Some(seen) => seen.clone(),
            None => transaction.view()?,
        };
        let mut rows = Vec::new();
        for (at, step) in body.statements.iter().enumerate() {
            let run = match body.is_volatile {
                true => {
                    transaction.begin_inner_statement();
                    self.run_step(step, &arguments, Arc::default(), body.is_set)
                }
                false => {
                    let seen = Arc::new(OnceLock::from(seen.clone()));
                    self.run_step(step, &arguments, seen, body.is_set)
                }
            };
            rows = run.map_err(|error| within(error, &format!("statement {}", at + 1)))?;
        }
        if body.is_volatile {
            transaction.resume_statement(&seen);
        }
        Ok(rows)
    }

    /// Returns the body of a function, planned for a call.
    fn body(&mut self, routine: &Routine) -> Result<Arc<PlannedBody>> {
        let key = PlanCacheKey::of_call(routine, self.constants.search_path());
        let plans = self.call_stack.plans.clone().unwrap_or_default();
        if let Some(body) = plans.lock().get(&key) {
            return Ok(Arc::clone(body));
        }
        let body = loop {
            let body = self.cached_plan(key.clone(), |planning| planning.plan_body(routine))?;
            for step in &body.statements {
                for table in &step.planned.writes {
                    self.lock_for_write(*table)?;
                }
                self.lock_to_read(&step.planned)?;
            }
            self.wait_for_publication();
            if self.catalog().version == body.validity.catalog_version {
                break body;
            }
        };
        plans.lock().insert(key.into_owned(), Arc::clone(&body));
        Ok(body)
    }

    /// Executes a statement of a body; returns the function's rows from it.
    fn run_step(
        &mut self,
        step: &PlannedStep,
        arguments: &[Datum],
        view: SharedView,
        is_set: bool,
    ) -> Result<Vec<Vec<Datum>>> {
        let PlannedStep { tag, planned, result } = step;
        self.check_readiness(planned)?;
        self.check_permitted(planned, tag)?;
        let open = self.open.as_ref().expect("it was made with one");
        let mut parameters = arguments.to_vec();
        parameters.resize(planned.parameter_count.max(arguments.len()), Datum::Null);
        let context = exec::Context { view, ..self.context(open, parameters) };
        let (eval, work_mem) = (context.eval.clone(), context.work_mem());
        let mut rows = Vec::new();
        let mut bytes = 0;
        let mut add = |batch: &Batch| -> Result<bool> {
            let Some(result) = result else { return Ok(false) };
            for at in 0..batch.row_count {
                let row: Vec<Datum> = batch.row(at);
                let row = result.iter().map(|value| value.eval_row(&row, &eval));
                let row = row.collect::<types::Result<Vec<Datum>>>()?;
                bytes +=
                    row.iter().map(|value| size_of_val(value) + value.heap_bytes()).sum::<usize>();
                memory::check(bytes, work_mem)?;
                rows.push(row);
                if !is_set {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        if !planned.plan.is_query() {
            let mut returned = self.modify(planned, context)?.returning;
            while let Some(batch) = returned.pop_front()? {
                if add(&batch)? {
                    break;
                }
            }
            return Ok(rows);
        }
        let mut operator = exec::open(&planned.plan, context)?;
        while let Some(batch) = operator.next()? {
            if add(&batch)? {
                break;
            }
        }
        Ok(rows)
    }
}

impl PlanningContext<'_> {
    /// Binds and plans the statements of a function.
    fn plan_body(&self, routine: &Routine) -> Result<PlannedBody> {
        let function = self.catalog.function(routine.number).ok_or_else(
            || err!(UNDEFINED_FUNCTION: "function \"{}\" no longer exists", routine.name),
        )?;
        let is_volatile = function.record.volatility == Volatility::Volatile;
        let statements = function.statements.iter().enumerate();
        let statements = statements.map(|(at, statement)| {
            let changes = !matches!(statement, Statement::Query(_));
            if changes && !is_volatile {
                bail!(FEATURE_NOT_SUPPORTED: "{} is not allowed in a non-volatile function", statement.tag());
            }
            self.plan_step(function, at, routine)
        });
        let statements = statements.collect::<Result<Vec<PlannedStep>>>()?;
        let validity =
            PlanValidity::new(&self.state, self.state.reads_followed, TableSizes::default());
        let (is_set, usage) = (function.is_set(), PlanUsage::default());
        Ok(PlannedBody { statements, is_volatile, is_set, validity, usage })
    }

    fn plan_step(
        &self,
        function: &Arc<Function>,
        at: usize,
        routine: &Routine,
    ) -> Result<PlannedStep> {
        let BodyStatement { bound, result } = self.bind_body(function, at, routine)?;
        let planned = self.plan_bound(bound)?.planned;
        planned.constants.check_generic()?;
        Ok(PlannedStep { tag: function.statements[at].tag(), planned, result })
    }
}
