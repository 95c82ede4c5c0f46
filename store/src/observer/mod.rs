//! Observers: code that runs around what is done to tables, in the same process.
//!
//! A [`RegionObserver`] watches a table: its regions, rows, scans and files. A [`WalObserver`]
//! watches the log, a [`MasterObserver`] the definitions of tables. They may refuse what they see,
//! change it, answer in its place, and add writes to the same transaction. What computes an answer
//! next to the data is an endpoint ([`crate::endpoint`]). How they fit together, with the hooks
//! that HBase has and this store has not: `docs/coprocessors.md`.
//!
//! ```text
//! statement stages a batch (Transaction::mutate)
//!   -> pre_put, pre_delete    (observers by priority, then in the order they were attached)
//!   -> lock rows, check what is expected of them
//!   -> pre_batch
//!   -> staged in the transaction
//! commit
//!   -> pre_wal_append
//!   -> one WAL record for all that was staged, in whatever regions
//!   -> apply to memstores
//!   -> post_wal_append
//!   -> post_batch
//!   -> unlock rows
//!   -> post_put, post_delete, post_batch_indispensably
//!   -> answer the client when the record is durable
//! ```
//!
//! Row locks are held from before `pre_batch` to the commit, so an observer may read the old
//! version of a row and trust it.
//!
//! Modules: names and sets of hooks (`hook`), what hooks are given (`context`), the traits
//! (`region`, `wal`, `master`), how they are called (`chain`, and for each kind `region_chain`,
//! `server_chain`; `filters` for single cells, `service` for endpoints), figures and suspension
//! (`meter`).

mod hook;
mod context;
mod region;
mod wal;
mod master;
mod meter;
mod chain;
mod filters;
mod region_chain;
mod service;
mod server_chain;

pub use crate::compaction::{CellFilter, CellVerdict};
pub use crate::options::CoprocessorLimits;
pub use context::{Attachment, HookContext, ObserverContext, RegionRef, TableContext};
pub use hook::{Fate, Flow, Hook, Hooks};
pub use master::MasterObserver;
pub use meter::{CoprocessorScope, CoprocessorState, CoprocessorStatus};
pub use region::{
    BulkLoadRef, FileOrigin, RegionObserver, Rewrite, RewriteKind, Rewritten, StoreFileRef,
};
pub use service::EndpointSeat;
pub use wal::{WalCommit, WalEdit, WalObserver, WalRoll};

pub(crate) use chain::{Chain, Slot};
pub(crate) use context::{Caller, Transacting};
pub(crate) use meter::guarded;
pub(crate) use region_chain::{RegionChain, Write};
pub(crate) use server_chain::{ServerObservers, WalChain};
pub(crate) use service::{EndpointWatch, no_endpoint};

/// The code of a statement that fails because a coprocessor did: external routine exception.
const FAILED: &str = "38000";
