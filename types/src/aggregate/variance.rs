//! `stddev` and `variance`, of samples and of populations.
//!
//! Floats use the Youngs-Cramer algorithm and numbers exact sums, both as in PostgreSQL, so that
//! the last digit agrees.

use smallvec::smallvec;

use super::sum::{expect_argument, overflow, partial_count, try_each_valid, unexpected};
use super::{Accumulator, AggregateKind, PartialState};
use crate::datum::Datum;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::interruptible::InterruptPacer;
use crate::numeric::Numeric;
use crate::vector::{Vector, VectorData};

/// Returns whether an aggregate is of a sample, and whether it is a standard deviation.
fn traits(kind: AggregateKind) -> (bool, bool) {
    let sample = matches!(kind, AggregateKind::StddevSamp | AggregateKind::VarSamp);
    let deviation = matches!(kind, AggregateKind::StddevSamp | AggregateKind::StddevPop);
    (sample, deviation)
}

/// Accumulated moments of a group of floats.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    sum: f64,
    /// Sum of the squares of the differences from the mean.
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) -> Result<()> {
        let before = *self;
        self.count += 1.0;
        self.sum += value;
        if before.count > 0.0 {
            let difference = value * self.count - self.sum;
            self.squares += difference * difference / (self.count * before.count);
            if self.sum.is_infinite() || self.squares.is_infinite() {
                if !before.sum.is_infinite() && !value.is_infinite() {
                    return Err(overflow());
                }
                self.squares = f64::NAN;
            }
        } else if !value.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }

    fn merge(&mut self, other: Moments) -> Result<()> {
        if other.count == 0.0 {
            return Ok(());
        }
        if self.count == 0.0 {
            *self = other;
            return Ok(());
        }
        let count = self.count + other.count;
        let difference = self.sum / self.count - other.sum / other.count;
        let between = self.count * other.count * difference * difference / count;
        let squares = self.squares + other.squares + between;
        if squares.is_infinite() && self.squares.is_finite() && other.squares.is_finite() {
            return Err(overflow());
        }
        *self = Moments { count, sum: self.sum + other.sum, squares };
        Ok(())
    }
}

/// `stddev` and `variance` of floats.
pub(super) struct FloatVariance {
    kind: AggregateKind,
    groups: Vec<Moments>,
}

impl FloatVariance {
    pub(super) fn new(kind: AggregateKind) -> FloatVariance {
        FloatVariance { kind, groups: Vec::new() }
    }
}

impl Accumulator for FloatVariance {
    fn resize(&mut self, group_count: usize) {
        self.groups.resize(group_count, Moments::default());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let (validity, states) = (argument.validity.as_deref(), &mut self.groups);
        match &argument.data {
            VectorData::Float4(values) => {
                try_each_valid(groups, values, validity, |group, value| {
                    states[group].add(f64::from(*value))
                })
            }
            VectorData::Float8(values) => {
                try_each_valid(groups, values, validity, |group, value| states[group].add(*value))
            }
            other => unexpected(other),
        }
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let Moments { count, sum, squares } = self.groups[group];
        Ok(smallvec![Datum::Int8(count as i64), Datum::Float8(sum), Datum::Float8(squares)])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        let [count, Datum::Float8(sum), Datum::Float8(squares)] = partial else {
            return Ok(());
        };
        let count = partial_count(count) as f64;
        self.groups[group].merge(Moments { count, sum: *sum, squares: *squares })
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let (sample, deviation) = traits(self.kind);
        let Moments { count, squares, .. } = self.groups[group];
        let divisor = if sample { count - 1.0 } else { count };
        if divisor <= 0.0 {
            return Ok(Datum::Null);
        }
        let variance = squares / divisor;
        Ok(Datum::Float8(if deviation { variance.sqrt() } else { variance }))
    }

    fn byte_count(&self) -> usize {
        self.groups.capacity() * size_of::<Moments>()
    }
}

/// Accumulated moments of a group of numbers.
#[derive(Clone, Default)]
struct ExactMoments {
    count: i64,
    sum: Numeric,
    sum_of_squares: Numeric,
}

impl ExactMoments {
    fn add(&mut self, value: &Numeric, interrupt: &Interrupt) -> Result<()> {
        self.count += 1;
        self.sum = self.sum.checked_add(value)?;
        let square = value.checked_mul(value, &mut InterruptPacer::new(interrupt))?;
        self.sum_of_squares = self.sum_of_squares.checked_add(&square)?;
        Ok(())
    }
}

/// `stddev` and `variance` of integers and numeric.
pub(super) struct NumericVariance {
    kind: AggregateKind,
    groups: Vec<ExactMoments>,
    interrupt: Interrupt,
}

impl NumericVariance {
    pub(super) fn new(kind: AggregateKind, interrupt: &Interrupt) -> NumericVariance {
        NumericVariance { kind, groups: Vec::new(), interrupt: interrupt.clone() }
    }
}

impl Accumulator for NumericVariance {
    fn resize(&mut self, group_count: usize) {
        self.groups.resize(group_count, ExactMoments::default());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let validity = argument.validity.as_deref();
        let (states, interrupt) = (&mut self.groups, &self.interrupt);
        match &argument.data {
            VectorData::Int2(values) => try_each_valid(groups, values, validity, |group, value| {
                states[group].add(&Numeric::from(i64::from(*value)), interrupt)
            }),
            VectorData::Int4(values) => try_each_valid(groups, values, validity, |group, value| {
                states[group].add(&Numeric::from(i64::from(*value)), interrupt)
            }),
            VectorData::Int8(values) => try_each_valid(groups, values, validity, |group, value| {
                states[group].add(&Numeric::from(*value), interrupt)
            }),
            VectorData::Numeric(values) => {
                try_each_valid(groups, values, validity, |group, value| {
                    states[group].add(value, interrupt)
                })
            }
            other => unexpected(other),
        }
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let ExactMoments { count, sum, sum_of_squares } = self.groups[group].clone();
        Ok(smallvec![Datum::Int8(count), Datum::Numeric(sum), Datum::Numeric(sum_of_squares)])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        let [count, Datum::Numeric(sum), Datum::Numeric(squares)] = partial else {
            return Ok(());
        };
        let state = &mut self.groups[group];
        state.count += partial_count(count);
        state.sum = state.sum.checked_add(sum)?;
        state.sum_of_squares = state.sum_of_squares.checked_add(squares)?;
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let (sample, deviation) = traits(self.kind);
        let ExactMoments { count, sum, sum_of_squares } = &self.groups[group];
        let divisor = if sample { count - 1 } else { *count };
        if divisor <= 0 {
            return Ok(Datum::Null);
        }
        let pace = &mut InterruptPacer::new(&self.interrupt);
        let scaled = sum_of_squares.checked_mul(&Numeric::from(*count), pace)?;
        let numerator = scaled.checked_sub(&sum.checked_mul(sum, pace)?)?;
        if numerator <= Numeric::from(0) {
            return Ok(Datum::Numeric(Numeric::from(0)));
        }
        let denominator = Numeric::from_i128(i128::from(*count) * i128::from(divisor));
        let variance = numerator.checked_div(&denominator, pace)?;
        if !deviation || !variance.is_finite() {
            return Ok(Datum::Numeric(variance));
        }
        Ok(Datum::Numeric(variance.sqrt_to(variance.scale().cast_signed(), pace)?))
    }

    fn byte_count(&self) -> usize {
        self.groups.capacity() * size_of::<ExactMoments>()
    }
}
