//! A versioned, region-partitioned LSM store of cells: bytes only, no SQL.
//!
//! The bottom layer, next to `types`; neither depends on the other. The crate can be used without
//! the SQL layers, as an embedded HBase with transactions.
//!
//! # The write path of a put
//!
//! [`Transaction::mutate`](transaction::Transaction::mutate) locks the rows, runs the table's
//! observers ([`observer`]), and stages the cells. `commit` assigns the transaction's sequence
//! and timestamp, appends one record to the log ([`wal`]), applies the cells to the memstores of
//! their regions ([`family_store`]), releases the row locks and returns a ticket that becomes
//! ready when the record is on disk.
//!
//! # The read path of a scan
//!
//! [`Transaction::scan`](transaction::Transaction::scan) visits the regions of the range in key
//! order. In each, memstores, store files and the transaction's own staged cells are merged in
//! cell order ([`scan`]), and one rule ([`scan::retention`]) decides which versions are visible.
//!
//! Modules, bottom up; each uses only the ones above it.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the system directly"))]
#![deny(unsafe_code)]

pub mod codec;
pub mod layout;
pub mod descriptor;
pub mod error;
pub mod env;
pub mod memory;
pub mod cell;
pub mod options;
mod budget;
pub mod admission;
pub mod quota;
pub mod scan;
pub mod memstore;
mod prefetch;
mod read_statistics;
pub mod cache;
pub mod file;
pub mod wal;
pub mod run;
pub mod compaction;
pub mod source;
pub mod staged;
pub mod read_view;
pub mod family_store;
pub mod manifest;
mod description;
mod snapshot;
pub mod lock_mode;
pub mod mutation;
pub mod row_mutation;
pub mod observer;
mod spill;
mod lock;
mod key_changes;
mod serializable;
mod endpoint_calls;
pub mod read_ahead;
mod replica;
pub mod region;
mod read_path;
pub mod scanner;
pub mod endpoint;
mod table;
mod memory_limits;
mod schedule;
mod split_queue;
mod engine;
mod region_replacement;
mod table_link;
mod auto_split;
mod applied_rules;
pub mod bulk_load;
pub mod transaction;
mod background;
pub mod sorted_load;
pub mod checkpoint;
mod open;
pub mod salvage;
pub mod store;

#[doc(hidden)]
pub mod fuzzing;
mod autocommit;
pub mod normalizer;
mod session_locks;
mod table_attachments;

pub use autocommit::{Column, PutBatch};
pub use cell::{Cell, CellBatch, CellType, RowRef, Sequence, Timestamp};

pub use descriptor::{FamilyDescriptor, TableDescriptor, TableId};
pub use error::{Error, Result, WriteFailure};
pub use file::{ColumnSlice, VariableColumn};
pub use layout::{SectionSelection, ValueLayout};
pub use lock::{ADVISORY_LOCKS, LockName, LockOwner, LockStatus, ReadLocks, TRANSACTION_ENDS};
pub use options::Options;
pub use read_statistics::{
    ReadStatistics, RegionReadStatistics, RegionReads, read_by_region, read_figures,
};
pub use read_view::RowEstimate;
pub use row_mutation::{ColumnName, Condition, RowChange, RowMutation};
pub use scan::{Filter, Get, RowVersions, Scan, TimeRange, VERSION_FAMILY};
pub use session_locks::SessionWait;
pub use snapshot::{ExportedSnapshot, TimelineProgress, TimelineRead};
pub use store::Store;
pub use store::change_feed::{ChangeFeed, ChangedRows};
pub use transaction::{Edit, Mutation, StatementView, Transaction};
