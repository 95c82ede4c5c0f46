//! Window functions in logical plans: partitions, orders and frames.

use types::DataType;
use types::aggregate::Aggregate;
use types::expr::Expr;

use super::{Logical, SortKey};

pub use crate::ast::{Exclusion, FrameUnits};

/// Window functions over one order of the rows. Output: the input's columns, then one for each
/// function. Rows come sorted by [`sort_keys`].
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Where the rows come from.
    pub input: Box<Logical>,
    /// Rows that agree in these are a partition.
    pub partition_by: Vec<Expr>,
    /// The order within a partition.
    pub order_by: Vec<SortKey>,
    /// The functions.
    pub functions: Vec<WindowFunction>,
}

/// A call of a window function.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowFunction {
    /// Which.
    pub kind: WindowKind,
    /// Its arguments, of the types that it takes; those of an aggregate are its own.
    pub arguments: Vec<Expr>,
    /// Which rows it looks at, if it is one that minds.
    pub frame: Frame,
    /// Type of the result.
    pub data_type: DataType,
}

/// Which window function.
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

/// The rows of the partition that a function looks at.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// What bounds count.
    pub units: FrameUnits,
    /// Where it starts.
    pub start: FrameBound,
    /// Where it ends.
    pub end: FrameBound,
    /// Which rows are left out.
    pub exclusion: Exclusion,
}

/// A bound of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameBound {
    /// The first row of the partition.
    UnboundedPreceding,
    /// The row itself; with RANGE and GROUPS its peers.
    CurrentRow,
    /// The last row of the partition.
    UnboundedFollowing,
    /// So far from the row.
    Offset {
        /// How far, without columns: bigint, or with RANGE of the key's kind.
        offset: Expr,
        /// After the row, not before it.
        following: bool,
        /// With RANGE.
        reach: Option<Reach>,
    },
}

/// RANGE with an offset, over the input's columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Reach {
    /// A row's key, of a type in which keys are compared.
    pub key: Expr,
    /// The key up to which the row's frame reaches, of the same type.
    pub limit: Expr,
}

impl Default for Frame {
    /// From the start of the partition to the last peer of the row.
    fn default() -> Frame {
        Frame {
            units: FrameUnits::Range,
            start: FrameBound::UnboundedPreceding,
            end: FrameBound::CurrentRow,
            exclusion: Exclusion::NoOthers,
        }
    }
}

/// Returns the order in which rows come to window functions: partition by partition.
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
                if let Some(Reach { key, limit }) = reach {
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
                if let Some(Reach { key, limit }) = reach {
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
