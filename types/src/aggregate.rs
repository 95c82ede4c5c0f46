//! Aggregates as states that can be fed, merged and finished, so that regions compute parts of an
//! answer and the session puts them together.
//!
//! Types and results are PostgreSQL's: `sum(int4)` is bigint, `sum(int8)` and `avg(int)` numeric,
//! `sum(float8)` double; an aggregate over no rows is NULL, `count` 0.

use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::{EvalContext, Expr};
use crate::vector::Vector;

/// Which aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    /// `count(*)`: rows.
    CountRows,
    /// `count(x)`: rows where x is not NULL.
    Count,
    /// `sum(x)`
    Sum,
    /// `min(x)`
    Min,
    /// `max(x)`
    Max,
    /// `avg(x)`
    Avg,
    /// `bool_and(x)`, `every(x)`
    BoolAnd,
    /// `bool_or(x)`
    BoolOr,
}

/// One aggregate call, bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Which one.
    pub kind: AggregateKind,
    /// What it is over; `None` for `count(*)`. Already cast to a type the aggregate takes.
    pub argument: Option<Expr>,
    /// Over distinct values only. Such a call is not split between regions.
    pub distinct: bool,
    /// `FILTER (WHERE …)`
    pub filter: Option<Expr>,
    /// Type of the result.
    pub data_type: DataType,
}

/// Resolves an aggregate by name and argument type: the kind, the type the argument is cast to, and
/// the type of the result. `None` if there is no such aggregate for the type.
pub fn resolve(
    name: &str,
    argument: Option<DataType>,
) -> Option<(AggregateKind, DataType, DataType)> {
    let _ = (name, argument);
    todo!("types/aggregate")
}

/// The states of one aggregate for any number of groups, numbered from 0.
///
/// One object for all groups of an operator, so that feeding a batch is one virtual call.
pub trait Accumulator: Send {
    /// Makes room for groups `0..group_count`.
    fn resize(&mut self, group_count: usize);

    /// Feeds row `i` of `argument` (`None` for `count(*)`) to group `groups[i]`, for each `i`.
    fn update(&mut self, groups: &[u32], argument: Option<&Vector>) -> Result<()>;

    /// Returns the state of a group as datums that can cross a network; [`Accumulator::merge`] takes
    /// them.
    fn partial(&self, group: usize) -> Vec<Datum>;

    /// Adds a state that [`Accumulator::partial`] returned.
    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()>;

    /// Returns the result of a group.
    fn finish(&self, group: usize) -> Result<Datum>;

    /// Returns the bytes held.
    fn byte_count(&self) -> usize;
}

impl Aggregate {
    /// Returns an accumulator without groups. `distinct` and `filter` are the caller's to apply.
    pub fn accumulator(&self) -> Box<dyn Accumulator> {
        todo!("types/aggregate")
    }

    /// Returns the number of datums in a partial state.
    pub fn partial_width(&self) -> usize {
        todo!("types/aggregate")
    }
}

/// Groups rows by the values of key columns: a hash table from key to group number.
///
/// NULLs are equal to each other here, as GROUP BY and DISTINCT want.
pub struct GroupTable {
    _private: (),
}

impl GroupTable {
    /// Returns an empty table for keys of these types.
    pub fn new(key_types: &[DataType]) -> GroupTable {
        let _ = key_types;
        todo!("types/aggregate")
    }

    /// Writes the group number of each row into `groups`, numbering new keys in order of appearance.
    pub fn assign(&mut self, keys: &[&Vector], row_count: usize, groups: &mut Vec<u32>) {
        let _ = (keys, row_count, groups);
        todo!("types/aggregate")
    }

    /// Returns the number of groups.
    pub fn group_count(&self) -> usize {
        todo!("types/aggregate")
    }

    /// Returns the key values of groups `range`, a vector for each key column.
    pub fn keys(&self, range: std::ops::Range<usize>) -> Vec<Vector> {
        let _ = range;
        todo!("types/aggregate")
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        todo!("types/aggregate")
    }
}

/// Evaluates the argument and the filter of an aggregate over a batch and feeds it.
pub fn feed(
    aggregate: &Aggregate,
    accumulator: &mut dyn Accumulator,
    groups: &[u32],
    batch: &crate::vector::Batch,
    context: &EvalContext,
) -> Result<()> {
    let _ = (aggregate, accumulator, groups, batch, context);
    todo!("types/aggregate")
}
