//! Windows, as written.

use super::Ident;
use super::expr::Expr;
use super::query::OrderItem;

/// What stands behind OVER.
#[derive(Debug, Clone, PartialEq)]
pub enum Over {
    /// `OVER w`: the window as it was defined, with its frame.
    Name(Ident),
    /// `OVER (…)`
    Window(Window),
}

/// `name AS (…)` of WINDOW.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedWindow {
    /// Its name.
    pub name: Ident,
    /// What it is.
    pub window: Window,
}

/// `([base] [PARTITION BY …] [ORDER BY …] [frame])`
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The window whose partitions and order it has.
    pub base: Option<Ident>,
    /// `PARTITION BY`
    pub partition_by: Vec<Expr>,
    /// `ORDER BY`
    pub order_by: Vec<OrderItem>,
    /// The frame, if written.
    pub frame: Option<Frame>,
    /// Where its parenthesis opens.
    pub position: usize,
}

/// `ROWS | RANGE | GROUPS BETWEEN start AND end EXCLUDE …`
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// What bounds count.
    pub units: FrameUnits,
    /// Where it starts.
    pub start: FrameBound,
    /// Both bounds are written.
    pub is_between: bool,
    /// Where it ends; if it is not written, at the current row.
    pub end: FrameBound,
    /// Which rows are left out.
    pub exclusion: Exclusion,
}

/// What the bounds of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameUnits {
    /// `ROWS`
    Rows,
    /// `RANGE`: values of the order's key.
    Range,
    /// `GROUPS`: groups of rows that the order does not tell apart.
    Groups,
}

/// A bound of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
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

/// Which rows of a frame are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exclusion {
    /// `EXCLUDE NO OTHERS`, the default
    #[default]
    NoOthers,
    /// `EXCLUDE CURRENT ROW`
    CurrentRow,
    /// `EXCLUDE GROUP`: the row and its peers.
    Group,
    /// `EXCLUDE TIES`: its peers.
    Ties,
}
