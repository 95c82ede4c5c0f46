//! Ordered-set aggregates `percentile_cont`, `percentile_disc` and `mode`, and the
//! hypothetical-set aggregates `rank`, `dense_rank`, `percent_rank` and `cume_dist`.
//!
//! Rows are fed in the order of WITHIN GROUP at the end
//! ([`AggregateRowBuffer`](super::row_buffer::AggregateRowBuffer)), except for hypothetical-set
//! aggregates that only count. Direct arguments are fed with each row and are equal within a group.
//! NULLs among the sorted values count for hypothetical-set aggregates only.
//!
//! Source: PostgreSQL's `orderedsetaggs.c`.

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::smallvec;

use super::{Accumulator, PartialState};
use crate::datatype::DataType;
use crate::datum::{Array, Datum, Nested};
use crate::error::{Error, Result};
use crate::order::{KeyOrder, compare_rows};
use crate::text::general;
use crate::vector::Vector;

/// The hypothetical-set aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HypotheticalSetFunction {
    /// `rank`
    Rank,
    /// `dense_rank`
    DenseRank,
    /// `percent_rank`
    PercentRank,
    /// `cume_dist`
    CumeDist,
}

impl HypotheticalSetFunction {
    /// Returns the aggregate of this name.
    pub fn from_name(name: &str) -> Option<HypotheticalSetFunction> {
        Some(match name {
            "rank" => HypotheticalSetFunction::Rank,
            "dense_rank" => HypotheticalSetFunction::DenseRank,
            "percent_rank" => HypotheticalSetFunction::PercentRank,
            "cume_dist" => HypotheticalSetFunction::CumeDist,
            _ => return None,
        })
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            HypotheticalSetFunction::Rank => "rank",
            HypotheticalSetFunction::DenseRank => "dense_rank",
            HypotheticalSetFunction::PercentRank => "percent_rank",
            HypotheticalSetFunction::CumeDist => "cume_dist",
        }
    }

    /// Returns the type of the result.
    pub fn data_type(self) -> DataType {
        match self {
            HypotheticalSetFunction::Rank | HypotheticalSetFunction::DenseRank => DataType::Int8,
            HypotheticalSetFunction::PercentRank | HypotheticalSetFunction::CumeDist => {
                DataType::Float8
            }
        }
    }
}

/// The ordered-set aggregate function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderedSetFunction {
    /// `percentile_cont`: interpolates between two values at a fraction.
    Between,
    /// `percentile_disc`: the first value at or after a fraction.
    At,
    /// `mode`: the most frequent value.
    Mode,
}

/// The sorted values of all groups, without NULLs.
pub(super) struct SortedValues {
    question: OrderedSetFunction,
    value_type: DataType,
    /// The direct argument: a fraction or an array of them; `None` before the first row.
    fractions: Vec<Option<Datum>>,
    values: Vec<Vector>,
}

impl SortedValues {
    pub(super) fn new(question: OrderedSetFunction, value_type: &DataType) -> SortedValues {
        SortedValues {
            question,
            value_type: value_type.clone(),
            fractions: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Returns the value at a fraction.
    fn at(&self, values: &Vector, fraction: &Datum) -> Result<Datum> {
        let &Datum::Float8(fraction) = fraction else { return Ok(Datum::Null) };
        if !(0.0..=1.0).contains(&fraction) {
            let fraction = general(fraction);
            bail!(NUMERIC_VALUE_OUT_OF_RANGE: "percentile value {fraction} is not between 0 and 1");
        }
        let Some(last) = values.len().checked_sub(1) else { return Ok(Datum::Null) };
        if self.question == OrderedSetFunction::At {
            let row = (fraction * values.len() as f64).ceil() as usize;
            return Ok(values.datum(row.saturating_sub(1)));
        }
        let place = fraction * last as f64;
        let (low, high) = (place.floor() as usize, place.ceil() as usize);
        if low == high {
            return Ok(values.datum(low));
        }
        let share = place - low as f64;
        match (values.datum(low), values.datum(high)) {
            (Datum::Float8(low), Datum::Float8(high)) => {
                Ok(Datum::Float8(low + share * (high - low)))
            }
            (Datum::Interval(low), Datum::Interval(high)) => {
                let part = high.checked_sub(&low)?.checked_mul(share)?;
                low.checked_add(&part).map(Datum::Interval)
            }
            (other, _) => Ok(other),
        }
    }

    fn mode(&self, values: &Vector) -> Datum {
        let (mut best, mut best_count) = (Datum::Null, 0);
        let mut start = 0;
        for row in 0..values.len() {
            let ends = row + 1 == values.len()
                || values.compare_typed(row, values, row + 1, &self.value_type).is_ne();
            if ends {
                if row + 1 - start > best_count {
                    best_count = row + 1 - start;
                    best = values.datum(start);
                }
                start = row + 1;
            }
        }
        best
    }
}

impl Accumulator for SortedValues {
    fn resize(&mut self, group_count: usize) {
        self.fractions.resize(group_count, None);
        self.values.resize_with(group_count, || Vector::new(&self.value_type, 0));
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let Some((values, direct)) = arguments.split_last() else { return Ok(()) };
        for (row, &group) in groups.iter().enumerate() {
            let group = group as usize;
            if let ([fractions], noted @ None) = (direct, &mut self.fractions[group]) {
                *noted = Some(fractions.datum(row));
            }
            if !values.is_null(row) {
                self.values[group].append_rows(values, row..row + 1);
            }
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let values = &self.values[group];
        let values = (0..values.len()).map(|row| values.datum(row)).collect();
        Ok(smallvec![
            self.fractions[group].clone().unwrap_or(Datum::Null),
            Datum::Nested(Nested::Array(Arc::new(Array::from_elements(values)))),
        ])
    }

    fn merge(&mut self, _: usize, _: &[Datum]) -> Result<()> {
        // Partial results contain rows, which are fed in order at the end, so there are no states
        // to merge.
        bail!(INTERNAL_ERROR: "partial ordered-set aggregates cannot be merged")
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let values = &self.values[group];
        if self.question == OrderedSetFunction::Mode {
            return Ok(self.mode(values));
        }
        match &self.fractions[group] {
            Some(Datum::Nested(Nested::Array(_))) if values.is_empty() => Ok(Datum::Null),
            Some(Datum::Nested(Nested::Array(fractions))) => {
                let each = fractions.elements.iter().map(|fraction| self.at(values, fraction));
                let elements = each.collect::<Result<Vec<Datum>>>()?;
                let array = Array { dimensions: fractions.dimensions.clone(), elements };
                Ok(Datum::Nested(Nested::Array(Arc::new(array))))
            }
            Some(fraction) => self.at(values, fraction),
            None => Ok(Datum::Null),
        }
    }

    fn byte_count(&self) -> usize {
        self.values.iter().map(Vector::flat_byte_count).sum::<usize>()
            + self.fractions.capacity() * size_of::<Option<Datum>>()
    }
}

/// Counts of rows relative to the hypothetical row.
#[derive(Debug, Clone, Default)]
struct HypotheticalRank {
    /// Rows before it, rows equal to it, and all rows.
    before: i64,
    equal: i64,
    all: i64,
    /// For `dense_rank`: distinct rows before it, and the last row.
    steps: i64,
    last: Option<Vec<Datum>>,
}

/// The hypothetical-set aggregates of all groups.
pub(super) struct HypotheticalRanks {
    kind: HypotheticalSetFunction,
    orders: Vec<KeyOrder>,
    states: Vec<HypotheticalRank>,
}

impl HypotheticalRanks {
    pub(super) fn new(kind: HypotheticalSetFunction, orders: Vec<KeyOrder>) -> HypotheticalRanks {
        HypotheticalRanks { kind, orders, states: Vec::new() }
    }

    fn add(&mut self, group: usize, row: usize, direct: &[&Vector], sorted: &[&Vector]) {
        let state = &mut self.states[group];
        let (came, asked) = (sorted.iter().copied(), direct.iter().copied());
        let stands = compare_rows(&self.orders, (came, row), (asked, row));
        state.all += 1;
        match stands {
            Ordering::Less => state.before += 1,
            Ordering::Equal => state.equal += 1,
            Ordering::Greater => {}
        }
        if self.kind != HypotheticalSetFunction::DenseRank || stands.is_ge() {
            return;
        }
        let values: Vec<Datum> = sorted.iter().map(|vector| vector.datum(row)).collect();
        let same = |last: &Vec<Datum>| {
            let pairs = last.iter().zip(&values).zip(&self.orders);
            let mut pairs = pairs.map(|((a, b), order)| a.compare_typed(b, &order.data_type));
            pairs.all(Ordering::is_eq)
        };
        if !state.last.as_ref().is_some_and(same) {
            state.steps += 1;
            state.last = Some(values);
        }
    }
}

impl Accumulator for HypotheticalRanks {
    fn resize(&mut self, group_count: usize) {
        self.states.resize(group_count, HypotheticalRank::default());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let (direct, sorted) = arguments.split_at(arguments.len() / 2);
        for (row, &group) in groups.iter().enumerate() {
            self.add(group as usize, row, direct, sorted);
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let state = &self.states[group];
        Ok(smallvec![Datum::Int8(state.before), Datum::Int8(state.equal), Datum::Int8(state.all)])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        let state = &mut self.states[group];
        let mut totals = [&mut state.before, &mut state.equal, &mut state.all];
        for (total, part) in totals.iter_mut().zip(partial) {
            **total += part.as_i64().unwrap_or(0);
        }
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let state = &self.states[group];
        Ok(match self.kind {
            HypotheticalSetFunction::Rank => Datum::Int8(state.before + 1),
            HypotheticalSetFunction::DenseRank => Datum::Int8(state.steps + 1),
            HypotheticalSetFunction::PercentRank if state.all == 0 => Datum::Float8(0.0),
            HypotheticalSetFunction::PercentRank => {
                Datum::Float8(state.before as f64 / state.all as f64)
            }
            HypotheticalSetFunction::CumeDist => {
                let reached = (state.before + state.equal + 1) as f64;
                Datum::Float8(reached / (state.all + 1) as f64)
            }
        })
    }

    fn byte_count(&self) -> usize {
        self.states.capacity() * size_of::<HypotheticalRank>()
    }
}
