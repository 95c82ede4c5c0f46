//! Coprocessors: code that runs inside a region, next to the data.
//!
//! An *observer* sees the operations of a table and may veto them or add to them; an *endpoint* is
//! called for a key range and computes a partial answer in each region of it.
//!
//! ```text
//! statement stages a batch (Transaction::mutate)
//!   -> lock rows
//!   -> pre_batch    (observers by priority, then in the order they were attached)
//!   -> staged in the transaction
//! commit
//!   -> one WAL record for all that was staged, in whatever regions
//!   -> apply to memstores
//!   -> post_batch   (same order)
//!   -> unlock rows, answer the client when the record is durable
//! ```
//!
//! Row locks are held from before `pre_batch` to the commit, so an observer may read the old
//! version of a row and trust it.

mod endpoint;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::cell::CellBatch;
use crate::descriptor::TableId;
use crate::error::{Error, Result, Veto};
use crate::mutation::Mutation;
use crate::scan::Get;

pub use endpoint::{Endpoint, EndpointContext, Page};

/// Code that runs around the writes of a region.
///
/// Every method has a default that does nothing, so an observer names only the hooks it wants.
///
/// # Threads
///
/// Hooks run on the thread that serves the call, concurrently for different rows. Keep state behind
/// `&self`.
pub trait RegionObserver: Send + Sync {
    /// A short fixed name for logs, errors and system views, for example `index`.
    fn name(&self) -> &str;

    /// Runs when a batch is staged, with its rows locked. May change it, or add to the transaction
    /// through `context`.
    ///
    /// # Errors
    ///
    /// Any error rejects the whole batch: nothing of it is staged, neither its rows nor what
    /// observers added.
    fn pre_batch(&self, context: &dyn ObserverContext, batch: &mut [Mutation]) -> Result<()> {
        let _ = (context, batch);
        Ok(())
    }

    /// Runs after the commit was applied, with the row locks still held. Cannot undo it: an error
    /// is logged and counted.
    fn post_batch(&self, table: TableId, batch: &[Mutation]) -> Result<()> {
        let _ = (table, batch);
        Ok(())
    }

    /// Whether [`RegionObserver::post_batch`] does anything, so that batches need not be kept until
    /// the commit for it.
    fn wants_post_batch(&self) -> bool {
        false
    }
}

/// What an observer may do beside changing the batch.
pub trait ObserverContext {
    /// The table whose observer is called.
    fn table(&self) -> TableId;

    /// Appends the current state of a row to `out`: the transaction's own writes over the newest
    /// committed version. Meant for rows of the batch (locked) and rows locked with
    /// [`ObserverContext::lock`]. Returns whether the row exists.
    ///
    /// For a row of the batch whose mutation carries
    /// [`Mutation::previous`], that is the cheaper answer.
    fn get(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool>;

    /// Takes the exclusive lock of a row, of any table, until the end of the transaction.
    fn lock(&self, table: TableId, row: &[u8]) -> Result<()>;

    /// Adds mutations, of any table, to the same transaction; they run through that table's own
    /// observers.
    fn add(&self, table: TableId, mutations: Vec<Mutation>) -> Result<()>;
}

/// The observers of a table in the order in which they run.
#[derive(Clone, Default)]
pub(crate) struct Chain {
    observers: Vec<Arc<dyn RegionObserver>>,
}

impl Chain {
    /// Returns the chain of these observers: by priority, lower first, equal ones in the given
    /// order.
    pub(crate) fn new(mut observers: Vec<(i32, Arc<dyn RegionObserver>)>) -> Chain {
        observers.sort_by_key(|(priority, _)| *priority);
        Chain { observers: observers.into_iter().map(|(_, observer)| observer).collect() }
    }

    /// Returns whether nobody observes.
    pub(crate) fn is_empty(&self) -> bool {
        self.observers.is_empty()
    }

    /// Returns whether anybody wants to see committed batches.
    pub(crate) fn wants_post_batch(&self) -> bool {
        self.observers.iter().any(|observer| observer.wants_post_batch())
    }

    /// Runs the hooks before a batch is staged; the first error ends it.
    pub(crate) fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> Result<()> {
        self.observers.iter().try_for_each(|observer| {
            guarded(observer.name(), || observer.pre_batch(context, batch))
        })
    }

    /// Runs the hooks after a commit was applied.
    pub(crate) fn post_batch(&self, table: TableId, batch: &[Mutation]) {
        for observer in &self.observers {
            if !observer.wants_post_batch() {
                continue;
            }
            if let Err(error) = guarded(observer.name(), || observer.post_batch(table, batch)) {
                let observer = observer.name();
                tracing::warn!(%error, observer, table = table.0, "post_batch failed");
            }
        }
    }
}

/// Runs a coprocessor's code: a panic becomes an error that names it.
pub(crate) fn guarded<T>(name: &str, code: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(code)).unwrap_or_else(|panic| {
        let reason = panic
            .downcast_ref::<&str>()
            .map(|reason| (*reason).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(Error::Vetoed(Box::new(Veto {
            coprocessor: name.to_owned(),
            code: "XX000".into(),
            message: format!("coprocessor \"{name}\" panicked"),
            detail: reason,
            ..Veto::default()
        })))
    })
}
