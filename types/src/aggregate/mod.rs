//! Aggregates as states that can be fed, merged and finished, so that regions compute parts of an
//! answer and the session puts them together.
//!
//! Types and results are PostgreSQL's: `sum(int4)` is bigint, `sum(int8)` and `avg(int)` numeric,
//! `sum(float8)` double; an aggregate over no rows is NULL, `count` 0.
//!
//! [`AggregateStates`] holds the states of all groups side by side, typed, and is fed batches;
//! [`GroupTable`] says which group a row belongs to.

mod bits;
mod extreme;
mod group_table;
mod groups;
mod pairs;
mod percentile;
mod sketch;
mod sum;
mod variance;
mod states;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::Expr;
use crate::vector::Vector;

pub use group_table::{GroupTable, key_hashes};
pub use groups::{Groups, PartialGroups};
pub use pairs::PairStatistic;
pub use states::{AggregateStates, PartialStates};

use bits::{AnyValue, Bits};
use extreme::{Extreme, Truth};
use pairs::PairMoments;
use percentile::Percentiles;
use sketch::DistinctSketches;
use sum::{Count, FloatSum, IntegerSum, IntervalSum, NumericSum};
use variance::{FloatVariance, NumericVariance};

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
    /// `approx_count_distinct(x)`
    ApproxCountDistinct,
    /// `approx_percentile(x, fraction)`
    ApproxPercentile,
    /// `bit_and(x)`
    BitAnd,
    /// `bit_or(x)`
    BitOr,
    /// `bit_xor(x)`
    BitXor,
    /// `any_value(x)`
    AnyValue,
    /// `regr_…(y, x)`, `corr`, `covar_…`
    Pairs(PairStatistic),
}

impl AggregateKind {
    /// Returns the number of arguments; that of `count` is 1.
    fn argument_count(self) -> usize {
        match self {
            AggregateKind::CountRows => 0,
            AggregateKind::ApproxPercentile | AggregateKind::Pairs(_) => 2,
            _ => 1,
        }
    }
}

/// One aggregate call, bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Which one.
    pub kind: AggregateKind,
    /// What it is over; nothing for `count(*)`. Already cast to types that the aggregate takes.
    pub arguments: Vec<Expr>,
    /// Over distinct values only.
    pub distinct: bool,
    /// `FILTER (WHERE …)`
    pub filter: Option<Expr>,
    /// Type of the result.
    pub data_type: DataType,
}

/// Resolves an aggregate by name and argument types: the kind, the type that all arguments are cast
/// to, and the type of the result. `None` if there is no such aggregate for the types.
///
/// The cast is one that happens by itself (`varchar` to `text`, for one). An argument of type
/// `unknown` counts as text, or as a number where only numbers are taken.
pub fn resolve(name: &str, arguments: &[DataType]) -> Option<(AggregateKind, DataType, DataType)> {
    let kind = AggregateKind::from_name(name)?;
    let Some(&argument) = arguments.first() else {
        return (kind == AggregateKind::Count).then_some((
            AggregateKind::CountRows,
            DataType::Int8,
            DataType::Int8,
        ));
    };
    if arguments.len() != kind.argument_count() {
        return None;
    }
    let (taken, result) = match kind {
        AggregateKind::CountRows => return None,
        AggregateKind::ApproxPercentile | AggregateKind::Pairs(_) => {
            if !arguments.iter().all(|argument| is_number(*argument)) {
                return None;
            }
            let counts = kind == AggregateKind::Pairs(PairStatistic::Count);
            (DataType::Float8, if counts { DataType::Int8 } else { DataType::Float8 })
        }
        AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => match argument {
            DataType::Int2 | DataType::Int4 | DataType::Int8 => (argument, argument),
            _ => return None,
        },
        AggregateKind::AnyValue if argument == DataType::Unknown => {
            (DataType::Text, DataType::Text)
        }
        AggregateKind::AnyValue => (argument, argument),
        AggregateKind::Count => (argument, DataType::Int8),
        AggregateKind::ApproxCountDistinct if argument == DataType::Unknown => {
            (DataType::Text, DataType::Int8)
        }
        AggregateKind::ApproxCountDistinct => (argument, DataType::Int8),
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
            "approx_count_distinct" => AggregateKind::ApproxCountDistinct,
            "approx_percentile" => AggregateKind::ApproxPercentile,
            "bit_and" => AggregateKind::BitAnd,
            "bit_or" => AggregateKind::BitOr,
            "bit_xor" => AggregateKind::BitXor,
            "any_value" => AggregateKind::AnyValue,
            name => return PairStatistic::from_name(name).map(AggregateKind::Pairs),
        })
    }

    /// Returns whether a value that comes twice counts once anyhow.
    pub fn ignores_duplicates(self) -> bool {
        matches!(
            self,
            AggregateKind::Min
                | AggregateKind::Max
                | AggregateKind::BoolAnd
                | AggregateKind::BoolOr
                | AggregateKind::ApproxCountDistinct
                | AggregateKind::BitAnd
                | AggregateKind::BitOr
                | AggregateKind::AnyValue
        )
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
            AggregateKind::ApproxCountDistinct => "approx_count_distinct",
            AggregateKind::ApproxPercentile => "approx_percentile",
            AggregateKind::BitAnd => "bit_and",
            AggregateKind::BitOr => "bit_or",
            AggregateKind::BitXor => "bit_xor",
            AggregateKind::AnyValue => "any_value",
            AggregateKind::Pairs(statistic) => statistic.name(),
        }
    }
}

/// Returns whether values of a type become double precision by themselves.
fn is_number(argument: DataType) -> bool {
    matches!(
        argument,
        DataType::Int2
            | DataType::Int4
            | DataType::Int8
            | DataType::Numeric
            | DataType::Float4
            | DataType::Float8
            | DataType::Unknown
    )
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
        DataType::Bool | DataType::Bytea | DataType::Uuid | DataType::Json | DataType::Jsonb => {
            None
        }
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

    /// Feeds row `i` of the arguments (none for `count(*)`) to group `groups[i]`, for each `i`.
    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()>;

    /// Returns the state of a group as datums that can cross a network; [`Accumulator::merge`]
    /// takes them.
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
        let argument = self.argument_type();
        match self.kind {
            AggregateKind::CountRows | AggregateKind::Count => Box::new(Count::default()),
            AggregateKind::Sum | AggregateKind::Avg => {
                let average = self.kind == AggregateKind::Avg;
                match argument {
                    DataType::Float4 | DataType::Float8 => {
                        Box::new(FloatSum::new(argument, average))
                    }
                    DataType::Numeric => Box::new(NumericSum::new(average)),
                    DataType::Interval => Box::new(IntervalSum::new(average)),
                    _ => Box::new(IntegerSum::new(argument, average)),
                }
            }
            AggregateKind::ApproxCountDistinct => Box::new(DistinctSketches::new(argument)),
            AggregateKind::ApproxPercentile => Box::new(Percentiles::default()),
            AggregateKind::BitAnd => Box::new(Bits::new(argument, |a, b| a & b)),
            AggregateKind::BitOr => Box::new(Bits::new(argument, |a, b| a | b)),
            AggregateKind::BitXor => Box::new(Bits::new(argument, |a, b| a ^ b)),
            AggregateKind::AnyValue => Box::new(AnyValue::default()),
            AggregateKind::Pairs(statistic) => Box::new(PairMoments::new(statistic)),
            AggregateKind::Min => Box::new(Extreme::new(argument, Ordering::Less)),
            AggregateKind::Max => Box::new(Extreme::new(argument, Ordering::Greater)),
            AggregateKind::BoolAnd => Box::new(Truth::new(false)),
            AggregateKind::BoolOr => Box::new(Truth::new(true)),
            AggregateKind::StddevPop
            | AggregateKind::StddevSamp
            | AggregateKind::VarPop
            | AggregateKind::VarSamp => match argument {
                DataType::Float4 | DataType::Float8 => Box::new(FloatVariance::new(self.kind)),
                _ => Box::new(NumericVariance::new(self.kind)),
            },
        }
    }

    /// Returns the type of the first argument; that of a count for `count(*)`.
    fn argument_type(&self) -> DataType {
        self.arguments.first().map_or(DataType::Int8, Expr::data_type)
    }

    /// Returns whether the order of rows shows in the answer, if only in the last digit.
    pub fn depends_on_order(&self) -> bool {
        matches!(self.argument_type(), DataType::Float4 | DataType::Float8)
    }

    /// Returns all expressions of the call.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.arguments.iter().chain(&self.filter)
    }

    /// Returns all expressions of the call, to be changed.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.arguments.iter_mut().chain(&mut self.filter)
    }

    /// Returns the call with each of its expressions put through `change`.
    #[must_use]
    pub fn map_expressions(mut self, change: &dyn Fn(Expr) -> Expr) -> Aggregate {
        self.arguments = self.arguments.into_iter().map(change).collect();
        self.filter = self.filter.map(change);
        self
    }

    /// Returns the number of datums in a partial state.
    pub fn partial_width(&self) -> usize {
        self.partial_types().len()
    }

    /// Returns the types of the datums in a partial state. Any of them may be NULL.
    pub fn partial_types(&self) -> Vec<DataType> {
        let argument = self.argument_type();
        match self.kind {
            AggregateKind::CountRows | AggregateKind::Count => vec![DataType::Int8],
            AggregateKind::Sum | AggregateKind::Avg => match argument {
                DataType::Float4 | DataType::Float8 => vec![DataType::Int8, DataType::Float8],
                DataType::Interval => vec![DataType::Int8, DataType::Interval],
                _ => vec![DataType::Int8, DataType::Numeric],
            },
            AggregateKind::Min | AggregateKind::Max | AggregateKind::AnyValue => vec![argument],
            AggregateKind::BoolAnd | AggregateKind::BoolOr => vec![DataType::Bool],
            AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => {
                vec![DataType::Int8]
            }
            AggregateKind::ApproxPercentile => vec![DataType::Float8, DataType::Bytea],
            AggregateKind::Pairs(_) => [&[DataType::Int8][..], &[DataType::Float8; 5]].concat(),
            AggregateKind::ApproxCountDistinct => vec![DataType::Bytea],
            AggregateKind::StddevPop
            | AggregateKind::StddevSamp
            | AggregateKind::VarPop
            | AggregateKind::VarSamp => match argument {
                DataType::Float4 | DataType::Float8 => {
                    vec![DataType::Int8, DataType::Float8, DataType::Float8]
                }
                _ => vec![DataType::Int8, DataType::Numeric, DataType::Numeric],
            },
        }
    }

    /// Returns the call as text, as EXPLAIN shows it.
    pub fn describe(&self, column_name: &dyn Fn(usize) -> String) -> String {
        self.describe_with(&|part| part.describe(column_name))
    }

    /// Returns the call as text, its expressions as `text` has them.
    pub fn describe_with(&self, text: &dyn Fn(&Expr) -> String) -> String {
        let arguments: Vec<String> = self.arguments.iter().map(text).collect();
        let arguments = if arguments.is_empty() { "*".to_owned() } else { arguments.join(", ") };
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        let call = format!("{}({distinct}{arguments})", self.kind.name());
        match &self.filter {
            None => call,
            Some(filter) => format!("{call} FILTER (WHERE {})", text(filter)),
        }
    }
}
