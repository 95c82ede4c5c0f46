//! Aggregates as mergeable states: regions compute partial states of their rows, and the session
//! merges and finishes them.
//!
//! Types and results are PostgreSQL's: `sum(int4)` is bigint, `sum(int8)` and `avg(int)` numeric,
//! `sum(float8)` double; an aggregate over no rows is NULL, `count` 0.
//!
//! [`AggregateStates`] stores the states of all groups in typed arrays and is fed batches;
//! [`GroupTable`] assigns rows to groups.

mod bits;
mod extreme;
mod collect;
mod group_table;
mod groups;
mod row_buffer;
mod narrow_sum;
mod partition;
mod ordered_set;
mod pairs;
mod percentile;
mod adaptive_groups;
mod resolve;
mod sketch;
mod sum;
mod variance;
mod states;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::ops::Range;

use smallvec::SmallVec;

use crate::context::EvalContext;
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::Expr;
use crate::order::{KeyOrder, SortKey};
use crate::vector::Vector;

pub use adaptive_groups::AdaptiveGroups;
pub use group_table::{GroupTable, key_hashes};
pub use groups::{Groups, PartialGroups};
pub use ordered_set::HypotheticalSetFunction;
pub use pairs::PairStatistic;
pub use partition::{PARTITION_COUNT, PartialGroupSet, PartitionedGroups};
pub use resolve::{ResolvedAggregate, resolve, resolve_ordered};
pub use states::{AggregateStates, PartialStates};

use bits::{AnyValue, BitStrings, IntegerBitAggregate};
use collect::{ArrayAgg, JsonTexts, JsonValues, StringAgg};
use extreme::{BooleanAggregate, MinMax};
use narrow_sum::NarrowSum;
use ordered_set::{HypotheticalRanks, OrderedSetFunction, SortedValues};
use pairs::PairMoments;
use percentile::Percentiles;
use sketch::DistinctSketches;
use sum::{CountState, FloatSum, IntegerSum, IntervalSum, NumericSum};
use variance::{FloatVariance, NumericVariance};

/// The aggregate function.
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
    /// `array_agg(x)`
    ArrayAgg,
    /// `string_agg(x, delimiter)`
    StringAgg,
    /// `json_agg(x)`
    JsonAgg,
    /// `jsonb_agg(x)`
    JsonbAgg,
    /// `json_object_agg(key, value)`
    JsonObjectAgg,
    /// `jsonb_object_agg(key, value)`
    JsonbObjectAgg,
    /// `percentile_cont(fraction) WITHIN GROUP (ORDER BY x)`
    PercentileCont,
    /// `percentile_disc(fraction) WITHIN GROUP (ORDER BY x)`
    PercentileDisc,
    /// `mode() WITHIN GROUP (ORDER BY x)`
    Mode,
    /// `rank(…) WITHIN GROUP (ORDER BY …)` and related functions
    Hypothetical(HypotheticalSetFunction),
}

/// One bound aggregate call.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// The function.
    pub kind: AggregateKind,
    /// The arguments, already cast to types that the aggregate accepts; empty for `count(*)`.
    /// With WITHIN GROUP the direct arguments, then the sorted ones.
    pub arguments: Vec<Expr>,
    /// DISTINCT was specified.
    pub distinct: bool,
    /// ORDER BY of the call, or of WITHIN GROUP.
    pub order_by: Vec<SortKey>,
    /// `FILTER (WHERE …)`
    pub filter: Option<Expr>,
    /// Type of the result.
    pub data_type: DataType,
}

/// Names of aggregates; the first one of a kind is its canonical name.
const NAMES: [(&str, AggregateKind); 29] = [
    ("count", AggregateKind::Count),
    ("sum", AggregateKind::Sum),
    ("min", AggregateKind::Min),
    ("max", AggregateKind::Max),
    ("avg", AggregateKind::Avg),
    ("bool_and", AggregateKind::BoolAnd),
    ("every", AggregateKind::BoolAnd),
    ("bool_or", AggregateKind::BoolOr),
    ("stddev_pop", AggregateKind::StddevPop),
    ("stddev_samp", AggregateKind::StddevSamp),
    ("stddev", AggregateKind::StddevSamp),
    ("var_pop", AggregateKind::VarPop),
    ("var_samp", AggregateKind::VarSamp),
    ("variance", AggregateKind::VarSamp),
    ("approx_count_distinct", AggregateKind::ApproxCountDistinct),
    ("approx_percentile", AggregateKind::ApproxPercentile),
    ("bit_and", AggregateKind::BitAnd),
    ("bit_or", AggregateKind::BitOr),
    ("bit_xor", AggregateKind::BitXor),
    ("any_value", AggregateKind::AnyValue),
    ("array_agg", AggregateKind::ArrayAgg),
    ("string_agg", AggregateKind::StringAgg),
    ("json_agg", AggregateKind::JsonAgg),
    ("jsonb_agg", AggregateKind::JsonbAgg),
    ("json_object_agg", AggregateKind::JsonObjectAgg),
    ("jsonb_object_agg", AggregateKind::JsonbObjectAgg),
    ("percentile_cont", AggregateKind::PercentileCont),
    ("percentile_disc", AggregateKind::PercentileDisc),
    ("mode", AggregateKind::Mode),
];

impl AggregateKind {
    /// Returns the aggregate of this name; `count` is [`AggregateKind::Count`]. Hypothetical-set
    /// aggregates are not included: without WITHIN GROUP these are window functions.
    pub fn from_name(name: &str) -> Option<AggregateKind> {
        let found = NAMES.iter().find(|(other, _)| *other == name).map(|(_, kind)| *kind);
        found.or_else(|| PairStatistic::from_name(name).map(AggregateKind::Pairs))
    }

    /// Returns the names that [`from_name`](Self::from_name) accepts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name).chain(PairStatistic::names())
    }

    /// Returns whether duplicate values do not change the result.
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

    /// Returns whether this is an ordered-set aggregate, which needs WITHIN GROUP.
    pub fn is_ordered_set(self) -> bool {
        matches!(
            self,
            AggregateKind::PercentileCont
                | AggregateKind::PercentileDisc
                | AggregateKind::Mode
                | AggregateKind::Hypothetical(_)
        )
    }

    /// Returns whether the result contains all values.
    fn gathers(self) -> bool {
        matches!(
            self,
            AggregateKind::ArrayAgg
                | AggregateKind::StringAgg
                | AggregateKind::JsonAgg
                | AggregateKind::JsonbAgg
                | AggregateKind::JsonObjectAgg
                | AggregateKind::JsonbObjectAgg
        )
    }

    /// Returns the name, as shown by EXPLAIN and result columns.
    pub fn name(self) -> &'static str {
        match self {
            AggregateKind::CountRows => "count",
            AggregateKind::Pairs(statistic) => statistic.name(),
            AggregateKind::Hypothetical(kind) => kind.name(),
            kind => NAMES.iter().find(|(_, other)| *other == kind).map_or("", |(name, _)| *name),
        }
    }
}

/// The state of a group as datums; usually one or two.
pub type PartialState = SmallVec<[Datum; 2]>;

/// The states of one aggregate for any number of groups, numbered from 0.
///
/// One object holds all groups of an operator, so that feeding a batch is one virtual call.
pub trait Accumulator: Send {
    /// Resizes to groups `0..group_count`.
    fn resize(&mut self, group_count: usize);

    /// Feeds row `i` of the arguments (none for `count(*)`) to group `groups[i]`, for each `i`.
    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()>;

    /// Returns the state of a group as datums that can be serialized, for [`Accumulator::merge`].
    fn partial(&self, group: usize) -> Result<PartialState>;

    /// Merges a state returned by [`Accumulator::partial`].
    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()>;

    /// Returns the states of groups `0..group_count`, one column for each of `types`, which are
    /// those of [`Aggregate::partial_types`]. Frequently used aggregates override it to avoid
    /// datums.
    fn partial_columns(&self, group_count: usize, types: &[DataType]) -> Result<Vec<Vector>> {
        let column = |data_type: &DataType| Vector::new(data_type, group_count);
        let mut columns: Vec<Vector> = types.iter().map(column).collect();
        for group in 0..group_count {
            let partial = self.partial(group)?;
            columns.iter_mut().zip(&partial).for_each(|(column, datum)| column.push(datum));
        }
        Ok(columns)
    }

    /// Merges states returned by [`Accumulator::partial_columns`]: row `i` into group
    /// `groups[i]`.
    fn merge_columns(&mut self, groups: &[u32], columns: &[Vector]) -> Result<()> {
        let mut state = PartialState::new();
        for (row, group) in groups.iter().enumerate() {
            state.clear();
            state.extend(columns.iter().map(|column| column.datum(row)));
            self.merge(*group as usize, &state)?;
        }
        Ok(())
    }

    /// Returns the result of a group.
    fn finish(&self, group: usize) -> Result<Datum>;

    /// Appends the results of some groups to a vector of their type.
    fn finish_all(&self, groups: Range<usize>, results: &mut Vector) -> Result<()> {
        for group in groups {
            results.push(&self.finish(group)?);
        }
        Ok(())
    }

    /// Returns the bytes held.
    fn byte_count(&self) -> usize;
}

impl Aggregate {
    /// Returns whether it may raise an error in addition to those of its expressions.
    pub fn may_fail(&self) -> bool {
        use AggregateKind::{
            AnyValue, ApproxCountDistinct, Avg, BitAnd, BitOr, BitXor, BoolAnd, BoolOr, Count,
            CountRows, Max, Min, Sum,
        };
        match self.kind {
            CountRows | Count | Min | Max | BoolAnd | BoolOr | BitAnd | BitOr | BitXor
            | AnyValue | ApproxCountDistinct => false,
            Sum | Avg => matches!(
                self.argument_type(),
                DataType::Float4 | DataType::Float8 | DataType::Interval
            ),
            _ => true,
        }
    }

    /// Creates an accumulator without groups. The caller applies `distinct`, `order_by` and
    /// `filter`.
    pub fn accumulator(&self, context: &EvalContext) -> Box<dyn Accumulator> {
        let argument = self.argument_type();
        let sorted = |question| {
            let value = self.arguments.last().map_or(&DataType::Text, Expr::data_type);
            Box::new(SortedValues::new(question, value))
        };
        match self.kind {
            AggregateKind::CountRows | AggregateKind::Count => Box::new(CountState::default()),
            AggregateKind::Sum | AggregateKind::Avg => {
                let average = self.kind == AggregateKind::Avg;
                match argument {
                    DataType::Float4 | DataType::Float8 => {
                        Box::new(FloatSum::new(argument, average))
                    }
                    DataType::Numeric => Box::new(NumericSum::new(average)),
                    DataType::Interval => Box::new(IntervalSum::new(average)),
                    DataType::Int2 | DataType::Int4 => Box::new(NarrowSum::new(average)),
                    _ => Box::new(IntegerSum::new(argument, average)),
                }
            }
            AggregateKind::ApproxCountDistinct => Box::new(DistinctSketches::new(argument)),
            AggregateKind::ApproxPercentile => Box::new(Percentiles::default()),
            AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor
                if *argument == DataType::Bit =>
            {
                Box::new(BitStrings::new(self.kind))
            }
            AggregateKind::BitAnd => Box::new(IntegerBitAggregate::new(argument, |a, b| a & b)),
            AggregateKind::BitOr => Box::new(IntegerBitAggregate::new(argument, |a, b| a | b)),
            AggregateKind::BitXor => Box::new(IntegerBitAggregate::new(argument, |a, b| a ^ b)),
            AggregateKind::AnyValue => Box::new(AnyValue::default()),
            AggregateKind::Pairs(statistic) => Box::new(PairMoments::new(statistic)),
            AggregateKind::ArrayAgg => Box::new(ArrayAgg::new(argument, &context.style.interrupt)),
            AggregateKind::StringAgg => {
                Box::new(StringAgg::new(argument, &context.style.interrupt))
            }
            AggregateKind::JsonAgg => Box::new(JsonTexts::new(argument, false, context)),
            AggregateKind::JsonObjectAgg => Box::new(JsonTexts::new(argument, true, context)),
            AggregateKind::JsonbAgg => Box::new(JsonValues::new(false, context)),
            AggregateKind::JsonbObjectAgg => Box::new(JsonValues::new(true, context)),
            AggregateKind::PercentileCont => sorted(OrderedSetFunction::Between),
            AggregateKind::PercentileDisc => sorted(OrderedSetFunction::At),
            AggregateKind::Mode => sorted(OrderedSetFunction::Mode),
            AggregateKind::Hypothetical(kind) => {
                let orders = self.order_by.iter().map(KeyOrder::from).collect();
                Box::new(HypotheticalRanks::new(kind, orders))
            }
            AggregateKind::Min => Box::new(MinMax::new(argument, Ordering::Less)),
            AggregateKind::Max => Box::new(MinMax::new(argument, Ordering::Greater)),
            AggregateKind::BoolAnd => Box::new(BooleanAggregate::new(false)),
            AggregateKind::BoolOr => Box::new(BooleanAggregate::new(true)),
            AggregateKind::StddevPop
            | AggregateKind::StddevSamp
            | AggregateKind::VarPop
            | AggregateKind::VarSamp => match argument {
                DataType::Float4 | DataType::Float8 => Box::new(FloatVariance::new(self.kind)),
                _ => Box::new(NumericVariance::new(self.kind, &context.style.interrupt)),
            },
        }
    }

    /// Returns the type of the first argument; bigint for `count(*)`.
    fn argument_type(&self) -> &DataType {
        self.arguments.first().map_or(&DataType::Int8, Expr::data_type)
    }

    /// Returns whether the order of rows can change the result, if only in the last digit.
    pub fn depends_on_order(&self) -> bool {
        match self.kind {
            AggregateKind::Hypothetical(kind) => kind == HypotheticalSetFunction::DenseRank,
            AggregateKind::PercentileCont
            | AggregateKind::PercentileDisc
            | AggregateKind::Mode
            | AggregateKind::AnyValue => true,
            AggregateKind::CountRows
            | AggregateKind::Count
            | AggregateKind::Min
            | AggregateKind::Max
            | AggregateKind::ApproxCountDistinct => false,
            kind if kind.gathers() => true,
            _ => matches!(self.argument_type(), DataType::Float4 | DataType::Float8),
        }
    }

    /// Returns whether rows are buffered until the end, for DISTINCT or a sort.
    pub fn buffers_rows(&self) -> bool {
        (self.distinct && !self.kind.ignores_duplicates())
            || (!self.order_by.is_empty() && self.depends_on_order())
    }

    /// Returns whether a partial result is as large as its rows.
    pub fn is_partial_unreduced(&self) -> bool {
        !self.distinct && (self.buffers_rows() || self.kind.gathers())
    }

    /// Returns the keys by which buffered rows are sorted, or deduplicated for DISTINCT.
    pub fn sort_keys(&self) -> Vec<SortKey> {
        let mut keys = self.order_by.clone();
        for argument in self.arguments.iter().filter(|_| self.distinct) {
            if !keys.iter().any(|key| key.expression == *argument) {
                let expression = argument.clone();
                keys.push(SortKey { expression, descending: false, nulls_first: false });
            }
        }
        keys
    }

    /// Returns the expressions of buffered rows: the sort keys, then the other arguments that are
    /// not constants.
    fn kept_expressions(&self) -> Vec<Expr> {
        let keys = self.sort_keys().into_iter().map(|key| key.expression);
        let mut kept: Vec<Expr> = keys.collect();
        for argument in &self.arguments {
            if !kept.contains(argument) && !matches!(argument, Expr::Constant { .. }) {
                kept.push(argument.clone());
            }
        }
        kept
    }

    /// Returns the types of the columns of buffered rows: the group number (bigint), then their
    /// expressions.
    pub fn buffered_types(&self) -> Vec<DataType> {
        let kept = self.kept_expressions();
        let kept = kept.iter().map(|one| one.data_type().clone());
        std::iter::once(DataType::Int8).chain(kept).collect()
    }

    /// Returns all expressions of the call.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let keys = self.order_by.iter().map(|key| &key.expression);
        self.arguments.iter().chain(keys).chain(&self.filter)
    }

    /// Returns mutable references to all expressions of the call.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let keys = self.order_by.iter_mut().map(|key| &mut key.expression);
        self.arguments.iter_mut().chain(keys).chain(&mut self.filter)
    }

    /// Returns the call with `change` applied to each of its expressions.
    #[must_use]
    pub fn map_expressions(mut self, change: &dyn Fn(Expr) -> Expr) -> Aggregate {
        let key = |key: SortKey| SortKey { expression: change(key.expression), ..key };
        self.order_by = self.order_by.into_iter().map(key).collect();
        self.arguments = self.arguments.into_iter().map(change).collect();
        self.filter = self.filter.map(change);
        self
    }

    /// Returns the direct arguments of an ordered-set aggregate; the other arguments are sorted.
    pub fn direct_arguments(&self) -> &[Expr] {
        &self.arguments[..self.direct_count()]
    }

    /// Returns mutable references to the direct arguments.
    pub fn direct_arguments_mut(&mut self) -> &mut [Expr] {
        let count = self.direct_count();
        &mut self.arguments[..count]
    }

    fn direct_count(&self) -> usize {
        match self.kind.is_ordered_set() {
            true => self.arguments.len().saturating_sub(self.order_by.len()),
            false => 0,
        }
    }

    /// Returns the types of the datums in a partial state. Any of them may be NULL.
    pub fn partial_types(&self) -> Vec<DataType> {
        let argument = self.argument_type();
        match self.kind {
            AggregateKind::CountRows | AggregateKind::Count => vec![DataType::Int8],
            AggregateKind::Sum | AggregateKind::Avg => match argument {
                DataType::Float4 | DataType::Float8 => vec![DataType::Int8, DataType::Float8],
                DataType::Interval => vec![DataType::Int8, DataType::Interval],
                DataType::Int2 | DataType::Int4 => vec![DataType::Int8; 2],
                _ => vec![DataType::Int8, DataType::Numeric],
            },
            AggregateKind::Min | AggregateKind::Max | AggregateKind::AnyValue => {
                vec![argument.clone()]
            }
            AggregateKind::ArrayAgg | AggregateKind::JsonbAgg | AggregateKind::JsonbObjectAgg => {
                vec![self.data_type.clone()]
            }
            AggregateKind::StringAgg => vec![self.data_type.clone(); 2],
            AggregateKind::JsonAgg | AggregateKind::JsonObjectAgg => vec![DataType::Text],
            AggregateKind::PercentileCont | AggregateKind::PercentileDisc | AggregateKind::Mode => {
                let value = self.arguments.last().map_or(&DataType::Text, Expr::data_type);
                vec![argument.clone(), value.array().unwrap_or_else(|| value.clone())]
            }
            AggregateKind::Hypothetical(_) => vec![DataType::Int8; 3],
            AggregateKind::BoolAnd | AggregateKind::BoolOr => vec![DataType::Bool],
            AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor => {
                vec![if *argument == DataType::Bit { DataType::Bit } else { DataType::Int8 }]
            }
            AggregateKind::ApproxPercentile => vec![DataType::Float8, DataType::Bytea],
            AggregateKind::Pairs(_) => {
                [&[DataType::Int8][..], &[const { DataType::Float8 }; 5]].concat()
            }
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

    /// Returns the call as text, with its expressions formatted by `text`.
    pub fn describe_with(&self, text: &dyn Fn(&Expr) -> String) -> String {
        let mut arguments: Vec<String> = self.arguments.iter().map(text).collect();
        let order: Vec<String> = self.order_by.iter().map(|key| key.describe_with(text)).collect();
        let order = order.join(", ");
        let distinct = if self.distinct { "DISTINCT " } else { "" };
        let name = self.kind.name();
        let call = if self.kind.is_ordered_set() {
            arguments.truncate(self.direct_count());
            format!("{name}({}) WITHIN GROUP (ORDER BY {order})", arguments.join(", "))
        } else if self.kind == AggregateKind::CountRows {
            format!("{name}(*)")
        } else if order.is_empty() {
            format!("{name}({distinct}{})", arguments.join(", "))
        } else {
            format!("{name}({distinct}{} ORDER BY {order})", arguments.join(", "))
        };
        match &self.filter {
            None => call,
            Some(filter) => format!("{call} FILTER (WHERE {})", text(filter)),
        }
    }
}
