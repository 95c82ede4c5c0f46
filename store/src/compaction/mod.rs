//! Compaction: selection of files, and the rewrite loop that flushes and compactions share.
//!
//! A policy is a pure function from a [`Layout`], the properties of all files of a store, to a
//! [`Selection`], so that hours of its behaviour can be simulated in milliseconds.
//! Module `schedule` runs the compactions.
//!
//! # Invariants
//!
//! 1. For any one row the inputs are adjacent: no file that is left out lies between two of them.
//!    So the sequences of a row's cells in different runs never overlap, which
//!    [`crate::scan::retention`] relies on ([`Layout::keeps_order`] checks it).
//! 2. A file is the input of one compaction at a time.
//! 3. An input whose rows overlap no other input is not rewritten by a policy's merge, if a
//!    rewrite would have no effect ([`Layout::portions`]): data that is written in row order is
//!    written once.
//! 4. A merge may drop markers only if no file that is left out can have older cells of a row
//!    between the first and the last of its inputs ([`Layout::sees_oldest`]). Newer cells that
//!    are left out do not matter: those in memory always are.
//!
//! The planning of a compaction checks 1 and 4 and asserts 2; the plan asserts in debug builds that
//! a file that is left as it is shares no row with a merged one.

mod layout;
mod exploring;
mod leveled;
mod date_tiered;
mod output;
mod rewrite;
mod filter;
mod select;
mod throttle;

pub(crate) use filter::FilteredSink;
pub use filter::{CellFilter, CellVerdict};
pub use layout::{FileFacts, Layout, Portion, RunFacts};
pub use output::{OutputFile, OutputSpec, RunWriter};
pub use rewrite::{NoProgress, RewriteProgress, Sink, rewrite};
pub use select::{Action, CompactionRequest, Reason, Selection, SelectionInputs, priority, select};
pub use throttle::{TokenBucket, rate};
