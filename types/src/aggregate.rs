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
    /// `stddev_pop(x)`
    StddevPop,
    /// `stddev_samp(x)`, `stddev(x)`
    StddevSamp,
    /// `var_pop(x)`
    VarPop,
    /// `var_samp(x)`, `variance(x)`
    VarSamp,
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
///
/// The cast is one that happens by itself (`varchar` to `text`, for one). An argument of type
/// `unknown` counts as text.
pub fn resolve(
    name: &str,
    argument: Option<DataType>,
) -> Option<(AggregateKind, DataType, DataType)> {
    let kind = AggregateKind::from_name(name)?;
    let Some(argument) = argument else {
        return (kind == AggregateKind::Count).then_some((
            AggregateKind::CountRows,
            DataType::Int8,
            DataType::Int8,
        ));
    };
    let (taken, result) = match kind {
        AggregateKind::CountRows => return None,
        AggregateKind::Count => (argument, DataType::Int8),
        AggregateKind::Sum => (argument, sum_type(argument)?),
        AggregateKind::Avg => (argument, average_type(argument)?),
        AggregateKind::Min | AggregateKind::Max => {
            let ordered = ordered_type(argument)?;
            (ordered, ordered)
        }
        AggregateKind::BoolAnd | AggregateKind::BoolOr => match argument {
            DataType::Bool | DataType::Unknown => (DataType::Bool, DataType::Bool),
            _ => return None,
        },
        AggregateKind::StddevPop
        | AggregateKind::StddevSamp
        | AggregateKind::VarPop
        | AggregateKind::VarSamp => match average_type(argument)? {
            DataType::Interval => return None,
            result => (argument, result),
        },
    };
    Some((kind, taken, result))
}

impl AggregateKind {
    /// Returns the aggregate of this name; `count` is [`AggregateKind::Count`].
    pub fn from_name(name: &str) -> Option<AggregateKind> {
        Some(match name {
            "count" => AggregateKind::Count,
            "sum" => AggregateKind::Sum,
            "min" => AggregateKind::Min,
            "max" => AggregateKind::Max,
            "avg" => AggregateKind::Avg,
            "bool_and" | "every" => AggregateKind::BoolAnd,
            "bool_or" => AggregateKind::BoolOr,
            "stddev_pop" => AggregateKind::StddevPop,
            "stddev_samp" | "stddev" => AggregateKind::StddevSamp,
            "var_pop" => AggregateKind::VarPop,
            "var_samp" | "variance" => AggregateKind::VarSamp,
            _ => return None,
        })
    }

    /// Returns the name, as EXPLAIN and result columns show it.
    pub fn name(self) -> &'static str {
        match self {
            AggregateKind::CountRows | AggregateKind::Count => "count",
            AggregateKind::Sum => "sum",
            AggregateKind::Min => "min",
            AggregateKind::Max => "max",
            AggregateKind::Avg => "avg",
            AggregateKind::BoolAnd => "bool_and",
            AggregateKind::BoolOr => "bool_or",
            AggregateKind::StddevPop => "stddev_pop",
            AggregateKind::StddevSamp => "stddev_samp",
            AggregateKind::VarPop => "var_pop",
            AggregateKind::VarSamp => "var_samp",
        }
    }
}

fn sum_type(argument: DataType) -> Option<DataType> {
    match argument {
        DataType::Int2 | DataType::Int4 => Some(DataType::Int8),
        DataType::Int8 | DataType::Numeric => Some(DataType::Numeric),
        DataType::Float4 | DataType::Float8 | DataType::Interval => Some(argument),
        _ => None,
    }
}

fn average_type(argument: DataType) -> Option<DataType> {
    match argument {
        DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Numeric => {
            Some(DataType::Numeric)
        }
        DataType::Float4 | DataType::Float8 => Some(DataType::Float8),
        DataType::Interval => Some(DataType::Interval),
        _ => None,
    }
}

/// Returns the type as which `min` and `max` compare an argument.
fn ordered_type(argument: DataType) -> Option<DataType> {
    match argument {
        DataType::Bool | DataType::Bytea | DataType::Uuid => None,
        DataType::Varchar | DataType::Name | DataType::Unknown => Some(DataType::Text),
        other => Some(other),
    }
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
