//! The names that WITH gives to queries, while a statement is bound.

use crate::logical::OutputColumn;

/// A query of WITH, by name.
#[derive(Debug)]
pub(super) struct NamedRows {
    /// The name.
    pub(super) name: String,
    /// Its number within the statement.
    pub(super) id: usize,
    /// What may be done with it.
    pub(super) state: State,
}

/// What may be done with a name.
#[derive(Debug)]
pub(super) enum State {
    /// It can be read.
    Bound(Vec<OutputColumn>),
    /// It changes data and returns no rows.
    Silent,
    /// It comes later, or is being bound and not recursive.
    Later,
    /// It is being bound: the name is its work table.
    Recursive {
        /// The columns, once the first term is bound.
        columns: Vec<OutputColumn>,
        /// How many of them, the last ones, SEARCH and CYCLE add: these are not in `*`.
        carried: usize,
        /// Whether it was read already.
        read: bool,
        /// Where the expression at hand stands, if it may not be read there.
        refused: Option<&'static str>,
    },
}
