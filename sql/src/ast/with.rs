//! Syntax tree of the WITH clause.

use super::expr::Expr;
use super::query::QueryExpr;
use super::{Ident, Statement};

/// `WITH [RECURSIVE] …`
#[derive(Debug, Clone, PartialEq)]
pub struct WithClause {
    /// The named queries, in their order.
    pub queries: Vec<NamedQuery>,
    /// `RECURSIVE`
    pub recursive: bool,
    /// The position of the word WITH.
    pub position: usize,
}

/// `name [(columns)] AS [[NOT] MATERIALIZED] (…)`
#[derive(Debug, Clone, PartialEq)]
pub struct NamedQuery {
    /// Its name.
    pub name: Ident,
    /// New names of its leading columns.
    pub columns: Vec<Ident>,
    /// `MATERIALIZED`, `NOT MATERIALIZED`, or neither.
    pub materialized: Option<bool>,
    /// The query or statement that produces the rows.
    pub body: NamedQueryBody,
    /// True if it is in WITH RECURSIVE and refers to itself.
    pub is_recursive: bool,
    /// `SEARCH …`
    pub search: Option<Search>,
    /// `CYCLE …`
    pub cycle: Option<Cycle>,
}

/// `SEARCH DEPTH | BREADTH FIRST BY columns SET sequence`
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// True for DEPTH FIRST.
    pub depth_first: bool,
    /// The columns that order the rows of one iteration.
    pub columns: Vec<Ident>,
    /// The column that is added.
    pub sequence: Ident,
    /// The position of the clause.
    pub position: usize,
}

/// `CYCLE columns SET mark [TO value DEFAULT value] USING path`
#[derive(Debug, Clone, PartialEq)]
pub struct Cycle {
    /// The columns whose values identify a row that was visited before.
    pub columns: Vec<Ident>,
    /// The column that marks such rows.
    pub mark: Ident,
    /// The marks of rows with and without a cycle; true and false if omitted.
    pub values: Option<(Expr, Expr)>,
    /// The column with the path of visited rows.
    pub path: Ident,
    /// The position of the clause.
    pub position: usize,
}

/// The query or statement that produces the rows of a named query.
#[derive(Debug, Clone, PartialEq)]
pub enum NamedQueryBody {
    /// A query.
    Query(Box<QueryExpr>),
    /// INSERT, UPDATE or DELETE: the rows of its RETURNING.
    Change(Box<Statement>),
}
