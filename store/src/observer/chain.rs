//! Chain of the observers of one place in the order of their calls, and the call of one observer.
//!
//! ```text
//!   operation --> Slot: is this hook declared?  --no-->  proceeds: a load and a bit test
//!                    | yes
//!                    v
//!                 Chain: its observers, by priority --> suspended? --> called, timed, judged
//! ```
//!
//! # Invariants
//!
//! 1. A panic never propagates from a call: it becomes an error of the operation, or is only
//!    logged.
//! 2. A suspended essential observer is never skipped for a hook that can veto.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

use crate::env::Env;
use crate::error::{Error, Result};
use crate::observer::call_statistics::{
    Call, CoprocessorScope, CoprocessorStatus, Failure, Meter, failure_error, guarded, is_failure,
    panic_text,
};
use crate::observer::context::HookContext;
use crate::observer::hook::{Flow, Hook, Hooks};
use crate::observer::master::MasterObserver;
use crate::observer::region::RegionObserver;
use crate::observer::wal::WalObserver;
use crate::options::CoprocessorLimits;

/// Environment and limits shared by all calls of a store.
pub(crate) struct Runtime {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) limits: CoprocessorLimits,
}

/// Common interface of the three kinds of observers.
pub(crate) trait Observing {
    fn name(&self) -> &str;
    fn hooks(&self) -> Hooks;
    fn is_essential(&self) -> bool;
}

/// Implements the common interface for a kind of observers.
macro_rules! observing {
    ($($kind:ident),*) => {
        $(impl Observing for dyn $kind {
            fn name(&self) -> &str {
                $kind::name(self)
            }

            fn hooks(&self) -> Hooks {
                $kind::hooks(self)
            }

            fn is_essential(&self) -> bool {
                $kind::is_essential(self)
            }
        })*
    };
}

observing!(RegionObserver, WalObserver, MasterObserver);

/// Observers with their priorities.
pub(crate) type Attached<O> = Vec<(i32, Arc<O>)>;

/// Holder of the chain of a place, if there are observers.
pub(crate) struct ObserverSlot<O: ?Sized> {
    chain: ArcSwapOption<Chain<O>>,
    /// The hooks of the chain, so that most operations need not load the chain.
    hooks: AtomicU64,
}

impl<O: ?Sized> Default for ObserverSlot<O> {
    fn default() -> ObserverSlot<O> {
        ObserverSlot { chain: ArcSwapOption::default(), hooks: AtomicU64::new(0) }
    }
}

impl<O: ?Sized> ObserverSlot<O> {
    /// Returns whether an observer declares one of these hooks.
    #[inline]
    pub(crate) fn wants(&self, hooks: Hooks) -> bool {
        Hooks::from_bits(self.hooks.load(Ordering::Acquire)).meets(hooks)
    }

    /// Returns the chain if an observer in it declares one of these hooks.
    #[inline]
    pub(crate) fn chain_for(&self, hooks: Hooks) -> Option<Arc<Chain<O>>> {
        if self.wants(hooks) { self.chain.load_full() } else { None }
    }

    /// Returns the chain.
    pub(crate) fn chain(&self) -> Option<Arc<Chain<O>>> {
        self.chain.load_full()
    }

    /// Removes the chain and returns it.
    pub(crate) fn take(&self) -> Option<Arc<Chain<O>>> {
        self.hooks.store(0, Ordering::Release);
        self.chain.swap(None)
    }

    /// Replaces the chain.
    pub(crate) fn set(&self, chain: Chain<O>) {
        let hooks = chain.hooks.bits();
        // A reader that sees the hooks must see the chain.
        let chain = (!chain.seats.is_empty()).then(|| Arc::new(chain));
        self.chain.store(chain);
        self.hooks.store(hooks, Ordering::Release);
    }
}

/// The observers of one place.
pub(crate) struct Chain<O: ?Sized> {
    scope: CoprocessorScope,
    /// Name of the table; unused in other scopes.
    pub(super) table_name: Arc<str>,
    hooks: Hooks,
    pub(super) seats: Vec<Seat<O>>,
}

/// An observer in its chain.
pub(super) struct Seat<O: ?Sized> {
    pub(super) observer: Arc<O>,
    pub(super) hooks: Hooks,
    pub(super) warden: Arc<CallMonitor>,
}

/// Monitor of the calls of one observer.
pub(super) struct CallMonitor {
    pub(super) name: String,
    priority: i32,
    is_essential: bool,
    /// Place where it is attached, for messages.
    place: String,
    meter: Arc<Meter>,
    runtime: Arc<Runtime>,
}

/// Outcome of a call, for the statistics.
pub(super) enum CallOutcome {
    Succeeded,
    Refused,
    /// Kind of failure, and message.
    Failed(Failure, String),
}

impl CallMonitor {
    /// Returns whether to call the observer.
    ///
    /// # Errors
    ///
    /// It is suspended, and the hook must not be skipped.
    pub(super) fn admit(&self, hook: Hook) -> Result<bool> {
        match self.meter.is_suspended() {
            false => Ok(true),
            true if self.is_essential && hook.can_refuse() => self.check_active().map(|()| false),
            true => Ok(false),
        }
    }

    /// Returns an error if the coprocessor, which the caller requires, is suspended.
    pub(super) fn check_active(&self) -> Result<()> {
        match self.meter.is_suspended() {
            true => Err(self.meter.suspension(&self.name, &self.place)),
            false => Ok(()),
        }
    }

    pub(super) fn now_micros(&self) -> i64 {
        self.runtime.env.now_micros()
    }

    pub(super) fn begin(&self) -> HookContext<'_> {
        HookContext::begin(&*self.runtime.env, self.runtime.limits.time)
    }

    /// Adds calls to the statistics.
    pub(super) fn count(&self, calls: u64, spent_micros: i64, longest_micros: i64) {
        self.meter.count(calls, spent_micros, longest_micros);
    }

    /// Records a successful call.
    pub(super) fn succeeded(&self, call: Call) {
        self.meter.succeeded(call);
    }

    /// Records the outcome and the time of a call, and returns its result for the operation.
    pub(super) fn record_outcome<T>(
        &self,
        call: Call,
        ended: std::thread::Result<Result<T>>,
        timed: (&HookContext<'_>, i64),
    ) -> Result<T> {
        let (result, ending) = self.judge(call, ended, timed);
        self.note(call, ending);
        result
    }

    /// Returns the result and the outcome of a call that took `spent` time.
    pub(super) fn judge<T>(
        &self,
        call: Call,
        ended: std::thread::Result<Result<T>>,
        (context, spent_micros): (&HookContext<'_>, i64),
    ) -> (Result<T>, CallOutcome) {
        let (name, within) = (&self.name, call.name());
        match ended {
            Err(panic) => {
                let message = format!("coprocessor \"{name}\" panicked");
                self.failure(Failure::Panic, message, panic_text(&*panic))
            }
            Ok(result) if context.is_overrun(spent_micros) => {
                let took = spent_micros / 1000;
                let may = self.runtime.limits.time.unwrap_or_default().as_millis();
                let message = format!(
                    "coprocessor \"{name}\" took {took} ms in {within}, which exceeds the limit of \
                     {may} ms"
                );
                let detail = result.err().map(|error| error.to_string()).unwrap_or_default();
                self.failure(Failure::Overrun, message, detail)
            }
            Ok(Ok(value)) => (Ok(value), CallOutcome::Succeeded),
            Ok(Err(error)) if !is_failure(name, call, &error) => {
                (Err(self.signed(error)), CallOutcome::Refused)
            }
            Ok(Err(error @ Error::Vetoed(_))) => {
                let ending = CallOutcome::Failed(Failure::Error, error.to_string());
                (Err(self.signed(error)), ending)
            }
            Ok(Err(error)) => {
                let message = format!("coprocessor \"{name}\" failed in {within}: {error}");
                self.failure(Failure::Error, message, String::new())
            }
        }
    }

    fn failure<T>(
        &self,
        failure: Failure,
        message: String,
        detail: String,
    ) -> (Result<T>, CallOutcome) {
        let noted = match detail.is_empty() {
            true => message.clone(),
            false => format!("{message}: {detail}"),
        };
        (Err(failure_error(&self.name, message, detail)), CallOutcome::Failed(failure, noted))
    }

    /// Records the outcome of a call.
    pub(super) fn note(&self, call: Call, ending: CallOutcome) {
        let (failure, message) = match ending {
            CallOutcome::Succeeded => return self.meter.succeeded(call),
            CallOutcome::Refused => return self.meter.refused(call),
            CallOutcome::Failed(failure, message) => (failure, message),
        };
        let (name, place) = (&self.name, &self.place);
        tracing::warn!(coprocessor = name, place, message, "a coprocessor failed");
        let now = self.runtime.env.now_micros();
        if self.meter.failed((call, failure), message, now, self.runtime.limits.failures_max) {
            tracing::error!(coprocessor = name, place, "a coprocessor is suspended");
        }
    }

    /// Fills in the coprocessor's name in a veto without one.
    fn signed(&self, error: Error) -> Error {
        match error {
            Error::Vetoed(mut veto) if veto.coprocessor.is_empty() => {
                veto.coprocessor.clone_from(&self.name);
                Error::Vetoed(veto)
            }
            error => error,
        }
    }
}

impl<O: Observing + ?Sized> Chain<O> {
    /// Returns the chain of these observers: by priority, lower first, equal ones in the given
    /// order. An observer of the previous chain, or one with the same name, retains its
    /// statistics and state.
    ///
    /// # Errors
    ///
    /// A panic of an observer when it is queried for its name and hooks.
    pub(crate) fn new(
        (scope, table_name): (CoprocessorScope, &str),
        mut observers: Attached<O>,
        before: Option<&Chain<O>>,
        runtime: &Arc<Runtime>,
    ) -> Result<Chain<O>> {
        observers.sort_by_key(|(priority, _)| *priority);
        let place = match scope {
            CoprocessorScope::Table(_) => format!("table \"{table_name}\""),
            CoprocessorScope::Wal => "the log".to_owned(),
            CoprocessorScope::Master => "the master".to_owned(),
        };
        let mut meters: Vec<(&Seat<O>, bool)> =
            before.iter().flat_map(|chain| &chain.seats).map(|seat| (seat, false)).collect();
        let mut take = |same: &dyn Fn(&Seat<O>) -> bool| {
            let (seat, taken) = meters.iter_mut().find(|(seat, taken)| !taken && same(seat))?;
            *taken = true;
            Some(Arc::clone(&seat.warden.meter))
        };
        let mut seats = Vec::with_capacity(observers.len());
        for (priority, observer) in observers {
            let (name, hooks, is_essential) = guarded("unnamed", || {
                Ok((observer.name().to_owned(), observer.hooks(), observer.is_essential()))
            })?;
            let meter = take(&|seat| is_same(&seat.observer, &observer))
                .or_else(|| take(&|seat| seat.warden.name == name))
                .unwrap_or_default();
            let (place, runtime) = (place.clone(), Arc::clone(runtime));
            let warden = CallMonitor { name, priority, is_essential, place, meter, runtime };
            seats.push(Seat { observer, hooks, warden: Arc::new(warden) });
        }
        let hooks = seats.iter().fold(Hooks::NONE, |all, seat| all.with(seat.hooks));
        Ok(Chain { scope, table_name: table_name.into(), hooks, seats })
    }

    /// Returns the seats of this chain that another one lacks, with their statistics.
    pub(crate) fn without(&self, other: Option<&Chain<O>>) -> Chain<O> {
        let is_there = |seat: &Seat<O>| {
            let mut others = other.iter().flat_map(|chain| &chain.seats);
            others.any(|other| is_same(&other.observer, &seat.observer))
        };
        let left = self.seats.iter().filter(|seat| !is_there(seat)).map(|seat| Seat {
            observer: Arc::clone(&seat.observer),
            hooks: seat.hooks,
            warden: Arc::clone(&seat.warden),
        });
        let table_name = Arc::clone(&self.table_name);
        Chain { scope: self.scope, table_name, hooks: self.hooks, seats: left.collect() }
    }

    /// Returns whether an observer declares one of these hooks.
    pub(crate) fn wants(&self, hooks: Hooks) -> bool {
        self.hooks.meets(hooks)
    }

    /// Returns the scope of the chain.
    pub(super) fn scope(&self) -> CoprocessorScope {
        self.scope
    }

    /// Calls a hook of all observers that declare it; the first error ends the calls.
    pub(super) fn call_vetoable(
        &self,
        hook: Hook,
        mut code: impl FnMut(&Seat<O>, &HookContext<'_>) -> Result<()>,
    ) -> Result<()> {
        self.seats.iter().try_for_each(|seat| seat.call(hook, &mut code).map(drop))
    }

    /// As `call_vetoable`, for a hook that may bypass; a bypass ends the calls, too.
    pub(super) fn ask_until<T>(
        &self,
        hook: Hook,
        mut code: impl FnMut(&Seat<O>, &HookContext<'_>) -> Result<Flow<T>>,
    ) -> Result<Flow<T>> {
        for seat in &self.seats {
            if let Some(Flow::Bypass(answer)) = seat.call(hook, &mut code)? {
                return Ok(Flow::Bypass(answer));
            }
        }
        Ok(Flow::Proceed)
    }

    /// Calls a hook of all observers that declare it, after something that cannot be undone:
    /// errors are logged.
    pub(super) fn notify(
        &self,
        hook: Hook,
        mut code: impl FnMut(&Seat<O>, &HookContext<'_>) -> Result<()>,
    ) {
        for seat in &self.seats {
            if let Err(error) = seat.call(hook, &mut code) {
                let (coprocessor, place) = (&seat.warden.name, &seat.warden.place);
                let hook = hook.name();
                tracing::warn!(%error, coprocessor, place, hook, "could not run a hook");
            }
        }
    }

    /// Returns the statistics of the observers in the order of their calls.
    pub(crate) fn status(&self) -> impl Iterator<Item = CoprocessorStatus> {
        self.seats.iter().map(|seat| {
            let warden = &seat.warden;
            let named = (warden.name.as_str(), warden.priority);
            warden.meter.status(self.scope, named, (seat.hooks, warden.is_essential))
        })
    }

    /// Resumes the observers with a name; returns whether there are any.
    pub(crate) fn resume(&self, name: &str) -> bool {
        let named = self.seats.iter().filter(|seat| seat.warden.name == name);
        named.map(|seat| seat.warden.meter.resume()).count() > 0
    }
}

impl<O: ?Sized> Seat<O> {
    /// Calls a hook if it is declared; `None` if it was not called.
    pub(super) fn call<T>(
        &self,
        hook: Hook,
        code: &mut impl FnMut(&Seat<O>, &HookContext<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        if !self.hooks.has(hook) || !self.warden.admit(hook)? {
            return Ok(None);
        }
        let context = self.warden.begin();
        let ended = catch_unwind(AssertUnwindSafe(|| code(self, &context)));
        let spent = context.spent_micros();
        self.warden.count(1, spent, spent);
        self.warden.record_outcome(Call::Hook(hook), ended, (&context, spent)).map(Some)
    }
}

fn is_same<O: ?Sized>(one: &Arc<O>, other: &Arc<O>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}
