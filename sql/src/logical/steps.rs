//! Statements of several steps.

use crate::logical::Bound;

/// A statement with others in WITH that change data. All of them see what the statement saw when it
/// began.
#[derive(Debug, Clone)]
pub struct Steps {
    /// What comes before, in this order.
    pub before: Vec<NamedStep>,
    /// What the client asked for.
    pub last: Box<Bound>,
}

/// A step whose rows later ones may read by its number.
#[derive(Debug, Clone)]
pub struct NamedStep {
    /// Its number within the statement.
    pub id: usize,
    /// Its name, for EXPLAIN.
    pub name: String,
    /// What it does: a query is computed as far as it is read, a change runs to its end.
    pub bound: Bound,
}
