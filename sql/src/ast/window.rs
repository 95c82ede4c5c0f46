//! Syntax tree of window definitions.

use super::Ident;
use super::expr::Expr;
use super::query::OrderItem;

/// The window of an OVER clause.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    /// `OVER w`: a named window, with its frame.
    Name(Ident),
    /// `OVER (…)`
    Window(WindowClause),
}

/// `name AS (…)` of a WINDOW clause.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedWindow {
    /// Its name.
    pub name: Ident,
    /// Its definition.
    pub window: WindowClause,
}

/// `([base] [PARTITION BY …] [ORDER BY …] [frame])`
#[derive(Debug, Clone, PartialEq)]
pub struct WindowClause {
    /// The named window whose partitioning and order it copies.
    pub base: Option<Ident>,
    /// `PARTITION BY`
    pub partition_by: Vec<Expr>,
    /// `ORDER BY`
    pub order_by: Vec<OrderItem>,
    /// The frame, if written.
    pub frame: Option<FrameClause>,
    /// The position of its opening parenthesis.
    pub position: usize,
}

/// `ROWS | RANGE | GROUPS BETWEEN start AND end EXCLUDE …`
#[derive(Debug, Clone, PartialEq)]
pub struct FrameClause {
    /// The units of the bounds.
    pub units: FrameUnits,
    /// Its start.
    pub start: FrameBoundClause,
    /// True if both bounds are written.
    pub is_between: bool,
    /// Its end; the current row if not written.
    pub end: FrameBoundClause,
    /// The excluded rows.
    pub exclusion: Exclusion,
}

/// The units of the bounds of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameUnits {
    /// `ROWS`
    Rows,
    /// `RANGE`: offsets of the value of the ORDER BY key.
    Range,
    /// `GROUPS`: groups of peers, which are rows that are equal in ORDER BY.
    Groups,
}

/// A bound of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameBoundClause {
    /// `UNBOUNDED PRECEDING`
    UnboundedPreceding,
    /// `n PRECEDING`
    Preceding(Box<Expr>),
    /// `CURRENT ROW`
    CurrentRow,
    /// `n FOLLOWING`
    Following(Box<Expr>),
    /// `UNBOUNDED FOLLOWING`
    UnboundedFollowing,
}

/// The excluded rows of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exclusion {
    /// `EXCLUDE NO OTHERS`, the default
    #[default]
    NoOthers,
    /// `EXCLUDE CURRENT ROW`
    CurrentRow,
    /// `EXCLUDE GROUP`: the current row and its peers.
    Group,
    /// `EXCLUDE TIES`: its peers only.
    Ties,
}
