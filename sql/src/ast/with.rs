//! WITH, as written.

use super::query::Query;
use super::{Ident, Statement};

/// `WITH [RECURSIVE] …`
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    /// The named queries, in their order.
    pub queries: Vec<NamedQuery>,
    /// Where the word WITH stands.
    pub position: usize,
}

/// `name [(columns)] AS [[NOT] MATERIALIZED] (…)`
#[derive(Debug, Clone, PartialEq)]
pub struct NamedQuery {
    /// Its name.
    pub name: Ident,
    /// New names of its columns, from the first on.
    pub columns: Vec<Ident>,
    /// `MATERIALIZED`, `NOT MATERIALIZED`, or neither.
    pub materialized: Option<bool>,
    /// What gives the rows.
    pub body: NamedQueryBody,
    /// Whether it is of WITH RECURSIVE and reads itself.
    pub is_recursive: bool,
}

/// What gives the rows of a named query.
#[derive(Debug, Clone, PartialEq)]
pub enum NamedQueryBody {
    /// A query.
    Query(Box<Query>),
    /// INSERT, UPDATE or DELETE: the rows of its RETURNING.
    Change(Box<Statement>),
}
