//! Endpoints that are attached to a table: a seat in its chain that has a name, figures and a state
//! and no hooks, so that it costs the table nothing.
//!
//! The pages of one call are made side by side. Together they are one call that went well, or
//! failed once: a region that can answer says nothing of one that cannot.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::observer::chain::{Ending, Warden};
use crate::observer::context::HookContext;
use crate::observer::hook::Hooks;
use crate::observer::meter::Call;
use crate::observer::region::RegionObserver;
use crate::observer::region_chain::RegionChain;

/// The seat of an endpoint in the chain of the table that it is attached to:
/// [`Transaction::attached_endpoint`](crate::Transaction::attached_endpoint) finds it by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSeat {
    name: String,
}

impl EndpointSeat {
    /// Returns a seat of this name.
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

/// Watches over one call of an endpoint, in all regions.
pub(crate) struct EndpointWatch {
    warden: Arc<Warden>,
    /// Whether how the call ends is known.
    ended: AtomicBool,
}

impl RegionChain {
    /// Returns what watches over a call of an endpoint that is attached by this name.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if there is none; one with code `55000` if it is suspended.
    pub(crate) fn watch_endpoint(&self, name: &str) -> Result<EndpointWatch> {
        let mut seats = self.seats.iter().filter(|seat| seat.hooks == Hooks::NONE);
        let Some(seat) = seats.find(|seat| seat.warden.name == name) else {
            return Err(no_endpoint(&self.table_name, name));
        };
        seat.warden.check_active()?;
        Ok(EndpointWatch { warden: Arc::clone(&seat.warden), ended: AtomicBool::new(false) })
    }
}

/// Returns the error of a table without such an endpoint.
pub(crate) fn no_endpoint(table: &str, name: &str) -> Error {
    Error::InvalidRequest(format!("table \"{table}\" has no endpoint \"{name}\" attached"))
}

impl EndpointWatch {
    /// Returns the name of the endpoint.
    pub(crate) fn name(&self) -> &str {
        &self.warden.name
    }

    /// Runs code of the endpoint, which makes so many pages.
    ///
    /// # Errors
    ///
    /// What it returns, and how it failed. Of one call only the first is counted.
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
        if !matches!(ending, Ending::Succeeded) {
            self.end(ending);
        }
        result
    }

    /// Takes note that the whole call went well.
    pub(crate) fn succeeded(&self) {
        self.end(Ending::Succeeded);
    }

    fn end(&self, ending: Ending) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            self.warden.note(Call::Endpoint, ending);
        }
    }
}
