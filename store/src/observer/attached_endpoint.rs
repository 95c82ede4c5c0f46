//! Attached endpoints: a seat in a table's chain of observers with a name, statistics and a state
//! but no hooks, so that it costs the table nothing.
//!
//! The pages of one call are computed in parallel. Together they count as one successful or
//! failed call: success in one region does not offset a failure in another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::observer::call_statistics::Call;
use crate::observer::chain::{CallMonitor, CallOutcome};
use crate::observer::context::HookContext;
use crate::observer::hook::Hooks;
use crate::observer::region::RegionObserver;
use crate::observer::region_chain::RegionChain;

/// The seat of an attached endpoint in the chain of its table:
/// [`Transaction::attached_endpoint`](crate::Transaction::attached_endpoint) finds it by its
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSeat {
    name: String,
}

impl EndpointSeat {
    /// Returns a seat with this name.
    pub fn new(name: impl Into<String>) -> EndpointSeat {
        EndpointSeat { name: name.into() }
    }
}

impl RegionObserver for EndpointSeat {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }
}

/// Monitor of one call of an endpoint, in all regions.
pub(crate) struct EndpointCallMonitor {
    warden: Arc<CallMonitor>,
    /// True once the outcome of the call is recorded.
    ended: AtomicBool,
}

impl RegionChain {
    /// Returns a monitor for a call of the endpoint attached by this name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if there is none; one with code `55000` if it is suspended.
    pub(crate) fn watch_endpoint(&self, name: &str) -> Result<EndpointCallMonitor> {
        let mut seats = self.seats.iter().filter(|seat| seat.hooks == Hooks::NONE);
        let Some(seat) = seats.find(|seat| seat.warden.name == name) else {
            return Err(no_endpoint(&self.table_name, name));
        };
        seat.warden.check_active()?;
        Ok(EndpointCallMonitor { warden: Arc::clone(&seat.warden), ended: AtomicBool::new(false) })
    }
}

/// Returns the error of a table without such an endpoint.
pub(crate) fn no_endpoint(table: &str, name: &str) -> Error {
    Error::InvalidRequest(format!("table \"{table}\" has no endpoint \"{name}\" attached"))
}

impl EndpointCallMonitor {
    /// Returns the name of the endpoint.
    pub(crate) fn name(&self) -> &str {
        &self.warden.name
    }

    /// Runs code of the endpoint that computes `pages` pages.
    ///
    /// # Errors
    ///
    /// Errors of the code, and its failures. Only the first failure of a call is counted.
    pub(crate) fn run<T>(
        &self,
        pages: u64,
        code: impl FnOnce(&HookContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let context = self.warden.begin();
        let ended = catch_unwind(AssertUnwindSafe(|| code(&context)));
        let spent = context.spent_micros();
        self.warden.count(pages, spent, spent);
        let (result, ending) = self.warden.judge(Call::Endpoint, ended, (&context, spent));
        if !matches!(ending, CallOutcome::Succeeded) {
            self.end(ending);
        }
        result
    }

    /// Records the success of the whole call.
    pub(crate) fn succeeded(&self) {
        self.end(CallOutcome::Succeeded);
    }

    fn end(&self, ending: CallOutcome) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            self.warden.note(Call::Endpoint, ending);
        }
    }
}
