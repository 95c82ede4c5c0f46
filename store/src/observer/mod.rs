//! Observers: user code that runs around operations on tables, in the same process (HBase's
//! coprocessors).
//!
//! A [`RegionObserver`] observes a table: its regions, rows, scans and files. A [`WalObserver`]
//! observes the log, a [`MasterObserver`] the definitions of tables. They may veto an operation,
//! change it, replace its result, and add writes to the same transaction. Code that computes a
//! result next to the data is an endpoint ([`crate::endpoint`]). The overview, with the hooks of
//! HBase that are missing here, is in `docs/coprocessors.md`.
//!
//! ```text
//! statement stages a batch (Transaction::mutate)
//!   -> pre_put, pre_delete    (observers by priority, then in the order they were attached)
//!   -> lock rows, check expectations
//!   -> pre_batch
//!   -> staged in the transaction
//! commit
//!   -> pre_wal_append
//!   -> one WAL record for all staged cells of all regions
//!   -> apply to memstores
//!   -> post_wal_append
//!   -> post_batch
//!   -> unlock rows
//!   -> post_put, post_delete, post_batch_indispensably
//!   -> answer the client when the record is durable
//! ```
//!
//! Row locks are held from before `pre_batch` to the commit, so an observer may rely on the old
//! version of a row that it reads.
//!
//! Modules: names and sets of hooks (`hook`), arguments of hooks (`context`), the traits
//! (`region`, `wal`, `master`), the calls (`chain`, and for each kind `region_chain`,
//! `server_chain`; `filters` for single cells, `attached_endpoint` for endpoints), statistics and
//! suspension (`call_statistics`).

mod hook;
mod context;
mod region;
mod wal;
mod master;
mod call_statistics;
mod chain;
mod filters;
mod region_chain;
mod attached_endpoint;
mod server_chain;

pub use crate::compaction::{CellFilter, CellVerdict};
pub use crate::options::CoprocessorLimits;
pub use attached_endpoint::EndpointSeat;
pub use call_statistics::{CoprocessorScope, CoprocessorState, CoprocessorStatus};
pub use context::{Attachment, HookContext, ObserverContext, RegionRef, TableContext};
pub use hook::{BatchOutcome, Flow, Hook, Hooks};
pub use master::MasterObserver;
pub use region::{
    BulkLoadRef, FileOrigin, RegionObserver, Rewrite, RewriteKind, Rewritten, StoreFileRef,
};
pub use wal::{WalCommit, WalEdit, WalObserver, WalRoll};

pub(crate) use attached_endpoint::{EndpointCallMonitor, no_endpoint};
pub(crate) use call_statistics::guarded;
pub(crate) use chain::{Chain, ObserverSlot};
pub(crate) use context::{Caller, ObservedTransaction};
pub(crate) use region_chain::{RegionChain, Write};
pub(crate) use server_chain::{ServerObservers, WalChain};

/// SQLSTATE of a statement that fails because of a coprocessor: external routine exception.
const FAILED: &str = "38000";
