//! Compaction: which files to merge, and the loop that flush and compaction share.
//!
//! A policy looks at a [`Layout`], the facts of all files of a store, and answers with a
//! [`Selection`]. It is a pure function, so that what it does over hours can be simulated in
//! milliseconds.
//!
//! # Invariants
//!
//! 1. For any one row the inputs are neighbours: no file that is left out lies between two of them.
//!    So the sequences of a row's cells in different runs never overlap, which
//!    [`crate::scan::retention`] relies on ([`Layout::keeps_order`] checks it).
//! 2. A file is the input of one compaction at a time.
//! 3. A file whose rows no other input reaches into stays as it is when a policy merges, if there
//!    is nothing to gain by reading it ([`Layout::portions`]): what comes in the order of its rows
//!    is written once.
//! 4. A merge may drop markers only if no file that is left out can have older cells of a row
//!    between the first and the last of its inputs ([`Layout::sees_oldest`]). That newer cells are
//!    left out does not matter: those in memory always are.

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
pub use rewrite::{Progress, Sink, Unwatched, rewrite};
pub use select::{Action, Occasion, Reason, Request, Selection, priority, select};
pub use throttle::{TokenBucket, rate};
