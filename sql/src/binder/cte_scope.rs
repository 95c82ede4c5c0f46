//! WITH queries in scope while a statement is bound.

use crate::logical::OutputColumn;

/// A WITH query, by name.
#[derive(Debug)]
pub(super) struct CteEntry {
    /// The name.
    pub(super) name: String,
    /// Its number within the statement.
    pub(super) id: usize,
    /// Its state.
    pub(super) state: CteState,
}

/// The state of a WITH query.
#[derive(Debug)]
pub(super) enum CteState {
    /// Bound: it can be read.
    Bound(Vec<OutputColumn>),
    /// A data-modifying statement without RETURNING.
    Silent,
    /// A later query, or the one that is being bound, if not recursive.
    Later,
    /// The recursive query that is being bound: the name is its work table.
    Recursive {
        /// The columns, once the first term is bound.
        columns: Vec<OutputColumn>,
        /// The number of columns that SEARCH and CYCLE append; `*` does not include them.
        carried: usize,
        /// True if it was referenced already.
        read: bool,
        /// The construct that must not refer to it, if the current expression is in one.
        refused: Option<&'static str>,
    },
}
