//! WITH, as written.

use super::expr::Expr;
use super::query::Query;
use super::{Ident, Statement};

/// `WITH [RECURSIVE] …`
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    /// The named queries, in their order.
    pub queries: Vec<NamedQuery>,
    /// `RECURSIVE`
    pub recursive: bool,
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
    /// `SEARCH …`
    pub search: Option<Search>,
    /// `CYCLE …`
    pub cycle: Option<Cycle>,
}

/// `SEARCH DEPTH | BREADTH FIRST BY columns SET sequence`
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Whether it is DEPTH FIRST.
    pub depth_first: bool,
    /// What orders the rows of one step.
    pub columns: Vec<Ident>,
    /// The column that is added.
    pub sequence: Ident,
    /// Where the clause stands.
    pub position: usize,
}

/// `CYCLE columns SET mark [TO value DEFAULT value] USING path`
#[derive(Debug, Clone, PartialEq)]
pub struct Cycle {
    /// What tells that a row was met before.
    pub columns: Vec<Ident>,
    /// The column that says so.
    pub mark: Ident,
    /// Its values where it was, and where not; true and false if they are not given.
    pub values: Option<(Expr, Expr)>,
    /// The column with the rows on the way.
    pub path: Ident,
    /// Where the clause stands.
    pub position: usize,
}

/// What gives the rows of a named query.
#[derive(Debug, Clone, PartialEq)]
pub enum NamedQueryBody {
    /// A query.
    Query(Box<Query>),
    /// INSERT, UPDATE or DELETE: the rows of its RETURNING.
    Change(Box<Statement>),
}
