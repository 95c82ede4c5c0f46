//! Statistics and suspension of one coprocessor at one place where it is attached.
//!
//! A call has one of these outcomes: it succeeds; it vetoes, with an error that is meant for the
//! client ([`Error::Vetoed`]) or that the store returned to it (a deadlock, say); or it *fails*:
//! it panics, overruns its time limit, or returns an error that is its own fault. After a number
//! of consecutive failures ([`failures_max`](crate::options::CoprocessorLimits::failures_max))
//! the coprocessor is suspended: it is not called until it is resumed or attached again.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;

use crate::descriptor::TableId;
use crate::error::{Error, Result, Veto};
use crate::observer::FAILED;
use crate::observer::hook::{Hook, Hooks};

/// SQLSTATE of statements that need a suspended coprocessor: object not in prerequisite state.
const SUSPENDED: &str = "55000";

/// Activity state of a coprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoprocessorState {
    /// It is called.
    Active,
    /// It is not called, because of too many consecutive failures.
    Suspended,
}

/// Scope of a coprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoprocessorScope {
    /// A table, as a [`RegionObserver`](super::RegionObserver).
    Table(TableId),
    /// The log, as a [`WalObserver`](super::WalObserver).
    Wal,
    /// The definitions of tables, as a [`MasterObserver`](super::MasterObserver).
    Master,
}

/// Status of an attached coprocessor, for system views. Statistics start when it was first
/// attached; a replacement with the same name inherits them.
#[derive(Debug, Clone)]
pub struct CoprocessorStatus {
    /// Its scope.
    pub scope: CoprocessorScope,
    /// Its name.
    pub name: String,
    /// Its priority; lower runs first.
    pub priority: i32,
    /// True if observed operations fail while it is suspended, rather than proceed without it.
    pub is_essential: bool,
    /// The hooks that it declares.
    pub hooks: Hooks,
    /// Its activity state.
    pub state: CoprocessorState,
    /// Number of calls of its hooks.
    pub calls: u64,
    /// Number of calls with a veto, or with an error of the store.
    pub refusals: u64,
    /// Number of calls that failed with an error of its own.
    pub errors: u64,
    /// Number of calls that panicked.
    pub panics: u64,
    /// Number of calls that exceeded the time limit.
    pub overruns: u64,
    /// Number of failures (errors, panics, overruns) since the last success of the hook that
    /// failed.
    pub failures_in_a_row: u32,
    /// Time spent in its own code. For calls with single cells, each 64th is measured and
    /// extrapolated to all.
    pub spent: Duration,
    /// The longest call.
    pub longest: Duration,
    /// The message of the last failure.
    pub last_error: Option<String>,
    /// Time of the last failure: microseconds since 1970.
    pub last_error_micros: Option<i64>,
}

/// Kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// A hook.
    Hook(Hook),
    /// The filter that a hook returned.
    Filter(Hook),
    /// An endpoint.
    Endpoint,
}

impl Call {
    /// Returns a unique number of the call.
    fn code(self) -> u8 {
        match self {
            Call::Hook(hook) => hook as u8,
            Call::Filter(hook) => hook as u8 | 0x80,
            Call::Endpoint => ENDPOINT,
        }
    }

    /// Returns its name for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Call::Hook(hook) | Call::Filter(hook) => hook.name(),
            Call::Endpoint => "one call",
        }
    }

    /// Returns whether the operation is retried after a veto.
    fn is_upkeep(self) -> bool {
        matches!(self, Call::Hook(hook) | Call::Filter(hook) if hook.is_upkeep())
    }
}

/// The code of [`Call::Endpoint`].
const ENDPOINT: u8 = 0x7f;

const _: () = assert!(Hook::ALL.len() < ENDPOINT as usize, "the top bit tells filters from hooks");

/// Kind of failure of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Error,
    Panic,
    Overrun,
}

/// Statistics and state of one coprocessor at one place.
#[derive(Default)]
pub(super) struct Meter {
    suspended: AtomicBool,
    failures_in_a_row: AtomicU32,
    /// Code of the last failed call.
    failed: AtomicU8,
    calls: AtomicU64,
    refusals: AtomicU64,
    errors: AtomicU64,
    panics: AtomicU64,
    overruns: AtomicU64,
    spent_micros: AtomicU64,
    longest_micros: AtomicU64,
    last_error: Mutex<Option<(String, i64)>>,
}

impl Meter {
    pub(super) fn is_suspended(&self) -> bool {
        self.suspended.load(Relaxed)
    }

    pub(super) fn resume(&self) {
        self.failures_in_a_row.store(0, Relaxed);
        self.suspended.store(false, Relaxed);
    }

    /// Adds a number of calls and their time; the longest took `longest_micros`.
    pub(super) fn count(&self, calls: u64, spent_micros: i64, longest_micros: i64) {
        self.calls.fetch_add(calls, Relaxed);
        if spent_micros > 0 {
            self.spent_micros.fetch_add(spent_micros.unsigned_abs(), Relaxed);
            self.longest_micros.fetch_max(longest_micros.unsigned_abs(), Relaxed);
        }
    }

    /// Records a successful call. It resets the failure count if this call failed last; success
    /// of other hooks of the coprocessor does not.
    pub(super) fn succeeded(&self, call: Call) {
        // Usually it is 0, and other threads read it at the same time.
        if self.failures_in_a_row.load(Relaxed) > 0 && self.failed.load(Relaxed) == call.code() {
            self.failures_in_a_row.store(0, Relaxed);
        }
    }

    /// Records a call with a veto.
    pub(super) fn refused(&self, call: Call) {
        self.refusals.fetch_add(1, Relaxed);
        self.succeeded(call);
    }

    /// Records a failed call; returns whether the coprocessor is suspended because of it.
    pub(super) fn failed(
        &self,
        (call, failure): (Call, Failure),
        message: String,
        now_micros: i64,
        failures_max: u32,
    ) -> bool {
        self.failed.store(call.code(), Relaxed);
        let counter = match failure {
            Failure::Error => &self.errors,
            Failure::Panic => &self.panics,
            Failure::Overrun => &self.overruns,
        };
        counter.fetch_add(1, Relaxed);
        *self.last_error.lock() = Some((message, now_micros));
        let in_a_row = self.failures_in_a_row.fetch_add(1, Relaxed).saturating_add(1);
        in_a_row >= failures_max.max(1) && !self.suspended.swap(true, Relaxed)
    }

    /// Returns the error of an operation that requires the suspended coprocessor.
    pub(super) fn suspension(&self, name: &str, place: &str) -> Error {
        let failures = self.failures_in_a_row.load(Relaxed);
        let last = self.last_error.lock();
        let last = last.as_ref().map_or("unknown", |(message, _)| message);
        Error::Vetoed(Box::new(Veto {
            coprocessor: name.to_owned(),
            code: SUSPENDED.into(),
            message: format!(
                "coprocessor \"{name}\" of {place} is suspended after {failures} failures in a row"
            ),
            detail: format!("Last failure: {last}"),
            ..Veto::default()
        }))
    }

    /// Returns the statistics.
    pub(super) fn status(
        &self,
        scope: CoprocessorScope,
        (name, priority): (&str, i32),
        (hooks, is_essential): (Hooks, bool),
    ) -> CoprocessorStatus {
        let last_error = self.last_error.lock().clone();
        let (last_error, last_error_micros) = last_error.unzip();
        CoprocessorStatus {
            scope,
            name: name.to_owned(),
            priority,
            is_essential,
            hooks,
            state: match self.is_suspended() {
                true => CoprocessorState::Suspended,
                false => CoprocessorState::Active,
            },
            calls: self.calls.load(Relaxed),
            refusals: self.refusals.load(Relaxed),
            errors: self.errors.load(Relaxed),
            panics: self.panics.load(Relaxed),
            overruns: self.overruns.load(Relaxed),
            failures_in_a_row: self.failures_in_a_row.load(Relaxed),
            spent: Duration::from_micros(self.spent_micros.load(Relaxed)),
            longest: Duration::from_micros(self.longest_micros.load(Relaxed)),
            last_error,
            last_error_micros,
        }
    }
}

/// Returns whether an error that a call returned is a failure of the coprocessor itself.
///
/// A veto is intended unless its code indicates a defect (class XX, or 38: an external routine)
/// in this very coprocessor: a failure of a nested coprocessor was counted there. Errors that a
/// retry or another party can resolve are the store's result, not a failure of the caller.
pub(super) fn is_failure(name: &str, call: Call, error: &Error) -> bool {
    match error {
        Error::Vetoed(veto) => {
            let own = veto.coprocessor.is_empty() || veto.coprocessor == name;
            let broke = veto.code.starts_with("XX") || veto.code.starts_with("38");
            own && (broke || call.is_upkeep())
        }
        Error::InvalidRequest(_) | Error::NoSuchTable(_) => true,
        _ => false,
    }
}

/// Returns the error of a failed call, which names the coprocessor.
pub(super) fn failure_error(name: &str, message: String, detail: String) -> Error {
    Error::Vetoed(Box::new(Veto {
        coprocessor: name.to_owned(),
        code: FAILED.into(),
        message,
        detail,
        ..Veto::default()
    }))
}

/// Returns the message of a panic.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|reason| (*reason).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

/// Runs code of an endpoint; a panic becomes an error that names it.
pub(crate) fn guarded<T>(name: &str, code: impl FnOnce() -> Result<T>) -> Result<T> {
    let code = std::panic::AssertUnwindSafe(code);
    std::panic::catch_unwind(code).unwrap_or_else(|panic| {
        let message = format!("coprocessor \"{name}\" panicked");
        Err(failure_error(name, message, panic_text(&*panic)))
    })
}
