//! Window functions in logical plans: partitions, sort orders and frames.

use types::DataType;
use types::aggregate::Aggregate;
use types::expr::Expr;

use super::{Logical, SortKey};

pub use crate::ast::{Exclusion, FrameUnits};

/// Window functions over one window order. Output: the input's columns, then one for each
/// function. Rows are sorted by [`sort_keys`].
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Input.
    pub input: Box<Logical>,
    /// PARTITION BY expressions.
    pub partition_by: Vec<Expr>,
    /// Sort order within a partition.
    pub order_by: Vec<SortKey>,
    /// The functions.
    pub functions: Vec<WindowFunction>,
}

/// Call of a window function.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowFunction {
    /// Function.
    pub kind: WindowKind,
    /// Arguments, of the types of its parameters; the arguments of an aggregate are in its kind.
    pub arguments: Vec<Expr>,
    /// Frame, for functions that use it.
    pub frame: Frame,
    /// Result type.
    pub data_type: DataType,
}

/// Kind of a window function.
#[derive(Debug, Clone, PartialEq)]
pub enum WindowKind {
    /// `row_number()`
    RowNumber,
    /// `rank()`
    Rank,
    /// `dense_rank()`
    DenseRank,
    /// `percent_rank()`
    PercentRank,
    /// `cume_dist()`
    CumeDist,
    /// `ntile(integer)`
    Ntile,
    /// `lag(value [, integer [, default]])`
    Lag,
    /// `lead(value [, integer [, default]])`
    Lead,
    /// `first_value(value)`
    FirstValue,
    /// `last_value(value)`
    LastValue,
    /// `nth_value(value, integer)`
    NthValue,
    /// An aggregate over the frame; not DISTINCT.
    Aggregate(Aggregate),
}

/// Window frame: the rows of the partition that a function uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Units of the bounds.
    pub units: FrameUnits,
    /// Start of the frame.
    pub start: FrameBound,
    /// End of the frame.
    pub end: FrameBound,
    /// Frame exclusion.
    pub exclusion: Exclusion,
}

/// Frame bound.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
    /// The first row of the partition.
    UnboundedPreceding,
    /// Current row; with RANGE and GROUPS its peers.
    CurrentRow,
    /// The last row of the partition.
    UnboundedFollowing,
    /// Offset from the current row.
    Offset {
        /// Offset, without columns: bigint, or with RANGE of the sort key's kind.
        offset: Expr,
        /// True for FOLLOWING.
        following: bool,
        /// Bound of RANGE with an offset.
        reach: Option<RangeFrameBound>,
    },
}

/// RANGE with an offset, over the input's columns.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeFrameBound {
    /// Sort key of a row, in a type for comparison.
    pub key: Expr,
    /// Limit of the frame for the current row, of the same type.
    pub limit: Expr,
}

impl Default for Frame {
    /// Returns the default frame: from the start of the partition to the last peer of the current
    /// row.
    fn default() -> Frame {
        Frame {
            units: FrameUnits::Range,
            start: FrameBound::UnboundedPreceding,
            end: FrameBound::CurrentRow,
            exclusion: Exclusion::NoOthers,
        }
    }
}

/// Returns the sort order of the input of window functions: by partition, then by order.
pub fn sort_keys(partition_by: &[Expr], order_by: &[SortKey]) -> Vec<SortKey> {
    let mut keys: Vec<SortKey> = Vec::new();
    let partition = partition_by.iter().map(|key| SortKey {
        expression: key.clone(),
        descending: false,
        nulls_first: false,
    });
    for key in partition.chain(order_by.iter().cloned()) {
        if !keys.iter().any(|other| other.expression == key.expression) {
            keys.push(key);
        }
    }
    keys
}

impl WindowFunction {
    /// Calls `visit` on each expression.
    pub fn for_each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        self.arguments.iter().for_each(&mut *visit);
        if let WindowKind::Aggregate(aggregate) = &self.kind {
            aggregate.arguments.iter().chain(&aggregate.filter).for_each(&mut *visit);
        }
        for bound in [&self.frame.start, &self.frame.end] {
            if let FrameBound::Offset { offset, reach, .. } = bound {
                visit(offset);
                if let Some(RangeFrameBound { key, limit }) = reach {
                    visit(key);
                    visit(limit);
                }
            }
        }
    }

    /// Calls `visit` on each expression.
    pub fn for_each_expression_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.arguments.iter_mut().for_each(&mut *visit);
        if let WindowKind::Aggregate(aggregate) = &mut self.kind {
            aggregate.arguments.iter_mut().chain(&mut aggregate.filter).for_each(&mut *visit);
        }
        for bound in [&mut self.frame.start, &mut self.frame.end] {
            if let FrameBound::Offset { offset, reach, .. } = bound {
                visit(offset);
                if let Some(RangeFrameBound { key, limit }) = reach {
                    visit(key);
                    visit(limit);
                }
            }
        }
    }
}

impl Window {
    /// Calls `visit` on each expression.
    pub fn for_each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        self.partition_by.iter().for_each(&mut *visit);
        self.order_by.iter().for_each(|key| visit(&key.expression));
        self.functions.iter().for_each(|function| function.for_each_expression(visit));
    }

    /// Calls `visit` on each expression.
    pub fn for_each_expression_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.partition_by.iter_mut().for_each(&mut *visit);
        self.order_by.iter_mut().for_each(|key| visit(&mut key.expression));
        self.functions.iter_mut().for_each(|function| function.for_each_expression_mut(visit));
    }
}
