//! `count`, `sum` and `avg`.
//!
//! Bigints are added in 128 bits, which no number of rows can overflow; narrower integers have a
//! smaller state ([`narrow_sum`](super::narrow_sum)). A sum over no values is NULL, so each state
//! has a count.

use std::ops::Range;

use smallvec::smallvec;

use super::{Accumulator, PartialState};
use crate::datatype::DataType;
use crate::datetime::Interval;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::numeric::Numeric;
use crate::vector::{Vector, VectorData};

/// Calls `each` with the group and the value of every row that is not NULL.
#[inline]
pub(super) fn each_valid<T>(
    groups: &[u32],
    values: &[T],
    validity: Option<&[bool]>,
    mut each: impl FnMut(usize, &T),
) {
    match validity {
        None => {
            for (group, value) in groups.iter().zip(values) {
                each(*group as usize, value);
            }
        }
        Some(validity) => {
            for ((group, value), valid) in groups.iter().zip(values).zip(validity) {
                if *valid {
                    each(*group as usize, value);
                }
            }
        }
    }
}

/// As [`each_valid`], for fallible functions.
#[inline]
pub(super) fn try_each_valid<T>(
    groups: &[u32],
    values: &[T],
    validity: Option<&[bool]>,
    mut each: impl FnMut(usize, &T) -> Result<()>,
) -> Result<()> {
    for (index, (group, value)) in groups.iter().zip(values).enumerate() {
        if validity.is_none_or(|validity| validity[index]) {
            each(*group as usize, value)?;
        }
    }
    Ok(())
}

/// Returns the first argument of an aggregate.
pub(super) fn expect_argument<'a>(arguments: &[&'a Vector]) -> &'a Vector {
    arguments.first().expect("only count(*) has no argument")
}

/// Panics for a vector of an unexpected type: a bug of the binder.
pub(super) fn unexpected(data: &VectorData) -> ! {
    panic!("an aggregate was fed values of another type: {data:?}")
}

/// Returns the count in a partial state.
pub(super) fn partial_count(datum: &Datum) -> i64 {
    match datum {
        Datum::Int8(count) => *count,
        other => panic!("a partial state begins with a count, not {other:?}"),
    }
}

/// Returns a column without NULLs.
pub(super) fn all_valid(data: VectorData) -> Vector {
    Vector { data, validity: None }
}

/// Returns the values of a bigint column of states.
pub(super) fn expect_bigints(column: &Vector) -> &[i64] {
    column.as_i64_slice().expect("states of this aggregate are bigints")
}

pub(super) fn overflow() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "value out of range: overflow")
}

/// `count(*)` and `count(x)`.
#[derive(Default)]
pub(super) struct CountState {
    counts: Vec<i64>,
}

impl Accumulator for CountState {
    fn resize(&mut self, group_count: usize) {
        self.counts.resize(group_count, 0);
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let validity = arguments.first().and_then(|argument| argument.validity.as_deref());
        match (self.counts.as_mut_slice(), validity) {
            ([count], None) => *count += groups.len() as i64,
            ([count], Some(validity)) => {
                *count += validity.iter().filter(|valid| **valid).count() as i64;
            }
            (counts, None) => {
                for group in groups {
                    counts[*group as usize] += 1;
                }
            }
            (counts, Some(validity)) => {
                for (group, valid) in groups.iter().zip(validity) {
                    counts[*group as usize] += i64::from(*valid);
                }
            }
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        Ok(smallvec![Datum::Int8(self.counts[group])])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        self.counts[group] += partial_count(&partial[0]);
        Ok(())
    }

    fn partial_columns(&self, group_count: usize, _: &[DataType]) -> Result<Vec<Vector>> {
        Ok(vec![all_valid(VectorData::Int8(self.counts[..group_count].to_vec()))])
    }

    fn merge_columns(&mut self, groups: &[u32], columns: &[Vector]) -> Result<()> {
        for (group, count) in groups.iter().zip(expect_bigints(&columns[0])) {
            self.counts[*group as usize] += count;
        }
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        Ok(Datum::Int8(self.counts[group]))
    }

    fn finish_all(&self, groups: Range<usize>, results: &mut Vector) -> Result<()> {
        self.counts[groups].iter().for_each(|count| results.push_i64(*count));
        Ok(())
    }

    fn byte_count(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }
}

/// The sum of a group of bigints.
#[derive(Clone, Copy, Default)]
struct Total {
    sum: i128,
    count: i64,
}

/// `sum` and `avg` of bigint, `sum` of money; narrower integers:
/// [`NarrowSum`](super::narrow_sum::NarrowSum).
pub(super) struct IntegerSum {
    argument: DataType,
    totals: Vec<Total>,
    average: bool,
}

impl IntegerSum {
    pub(super) fn new(argument: &DataType, average: bool) -> IntegerSum {
        IntegerSum { argument: argument.clone(), totals: Vec::new(), average }
    }
}

impl Accumulator for IntegerSum {
    fn resize(&mut self, group_count: usize) {
        self.totals.resize(group_count, Total::default());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let validity = argument.validity.as_deref();
        let VectorData::Int8(values) = &argument.data else {
            unexpected(&argument.data);
        };
        if let ([total], None) = (self.totals.as_mut_slice(), validity) {
            total.sum += values.iter().map(|value| i128::from(*value)).sum::<i128>();
            total.count += values.len() as i64;
            return Ok(());
        }
        let totals = &mut self.totals;
        each_valid(groups, values, validity, |group, value| {
            let total = &mut totals[group];
            total.sum += i128::from(*value);
            total.count += 1;
        });
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let total = self.totals[group];
        Ok(smallvec![Datum::Int8(total.count), Datum::Numeric(Numeric::from_i128(total.sum))])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        let total = &mut self.totals[group];
        total.count += partial_count(&partial[0]);
        if let Datum::Numeric(sum) = &partial[1] {
            total.sum += sum.to_i128().ok_or_else(overflow)?;
        }
        Ok(())
    }

    fn partial_columns(&self, group_count: usize, _: &[DataType]) -> Result<Vec<Vector>> {
        let totals = &self.totals[..group_count];
        let counts = totals.iter().map(|total| total.count).collect();
        let sums = totals.iter().map(|total| Numeric::from_i128(total.sum)).collect();
        Ok(vec![all_valid(VectorData::Int8(counts)), all_valid(VectorData::Numeric(sums))])
    }

    fn merge_columns(&mut self, groups: &[u32], columns: &[Vector]) -> Result<()> {
        let (counts, sums) = (expect_bigints(&columns[0]), columns[1].as_numeric_slice());
        for ((group, count), sum) in groups.iter().zip(counts).zip(sums.unwrap_or_default()) {
            let total = &mut self.totals[*group as usize];
            total.count += count;
            total.sum += sum.to_i128().ok_or_else(overflow)?;
        }
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let Total { sum, count } = self.totals[group];
        if count == 0 {
            return Ok(Datum::Null);
        }
        if self.argument == DataType::MONEY {
            let message = "money out of range";
            let range = |_| err!(NUMERIC_VALUE_OUT_OF_RANGE: message);
            return i64::try_from(sum).map(Datum::Int8).map_err(range);
        }
        let sum = Numeric::from_i128(sum);
        if self.average {
            return sum
                .checked_div(&Numeric::from(count), &mut InterruptPacer::without_interrupt())
                .map(Datum::Numeric);
        }
        Ok(Datum::Numeric(sum))
    }

    fn byte_count(&self) -> usize {
        self.totals.capacity() * size_of::<Total>()
    }
}

/// The sum of a group of numerics: an integer mantissa as long as it fits, and a remainder.
#[derive(Clone, Default)]
struct NumericTotal {
    mantissa: i128,
    scale: u32,
    count: i64,
    /// Sum of the values that did not fit.
    rest: Numeric,
}

impl NumericTotal {
    /// Adds a value that counts `count` times.
    #[inline]
    fn add(&mut self, value: &Numeric, count: i64) -> Result<()> {
        self.count += count;
        if let Some((mantissa, scale)) = value.small()
            && scale == self.scale
            && let Some(sum) = self.mantissa.checked_add(i128::from(mantissa))
        {
            self.mantissa = sum;
            return Ok(());
        }
        self.add_other(value)
    }

    /// Adds a value with another scale or a large one.
    #[cold]
    fn add_other(&mut self, value: &Numeric) -> Result<()> {
        if let Some((mantissa, scale)) = value.to_mantissa() {
            let all = self.scale.max(scale);
            let at = |mantissa: i128, from: u32| {
                10i128.checked_pow(all - from).and_then(|power| mantissa.checked_mul(power))
            };
            if let (Some(sum), Some(mantissa)) =
                (at(self.mantissa, self.scale), at(mantissa, scale))
                && let Some(sum) = sum.checked_add(mantissa)
            {
                (self.mantissa, self.scale) = (sum, all);
                return Ok(());
            }
        }
        self.rest = self.rest.checked_add(value)?;
        Ok(())
    }

    fn sum(&self) -> Result<Numeric> {
        self.rest.checked_add(&Numeric::from_mantissa(self.mantissa, self.scale))
    }
}

/// `sum` and `avg` of numeric.
pub(super) struct NumericSum {
    totals: Vec<NumericTotal>,
    average: bool,
}

impl NumericSum {
    pub(super) fn new(average: bool) -> NumericSum {
        NumericSum { totals: Vec::new(), average }
    }
}

impl Accumulator for NumericSum {
    fn resize(&mut self, group_count: usize) {
        self.totals.resize(group_count, NumericTotal::default());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let VectorData::Numeric(values) = &argument.data else {
            unexpected(&argument.data);
        };
        let totals = &mut self.totals;
        try_each_valid(groups, values, argument.validity.as_deref(), |group, value| {
            totals[group].add(value, 1)
        })
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let total = &self.totals[group];
        // A sum beyond the range of numeric is NULL here; the merge raises the error.
        let sum = total.sum().map_or(Datum::Null, Datum::Numeric);
        Ok(smallvec![Datum::Int8(total.count), sum])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        match &partial[1] {
            Datum::Numeric(sum) => self.totals[group].add(sum, partial_count(&partial[0])),
            _ => Err(overflow()),
        }
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let total = &self.totals[group];
        if total.count == 0 {
            return Ok(Datum::Null);
        }
        let sum = total.sum()?;
        if self.average {
            return sum
                .checked_div(&Numeric::from(total.count), &mut InterruptPacer::without_interrupt())
                .map(Datum::Numeric);
        }
        Ok(Datum::Numeric(sum))
    }

    fn byte_count(&self) -> usize {
        self.totals.capacity() * size_of::<NumericTotal>()
    }
}

/// `sum` and `avg` of floats. A sum of reals is rounded to real at each step, as PostgreSQL does.
pub(super) struct FloatSum {
    sums: Vec<f64>,
    counts: Vec<i64>,
    average: bool,
    real: bool,
}

impl FloatSum {
    pub(super) fn new(argument: &DataType, average: bool) -> FloatSum {
        let real = *argument == DataType::Float4 && !average;
        FloatSum { sums: Vec::new(), counts: Vec::new(), average, real }
    }

    fn add(&mut self, group: usize, value: f64) -> Result<()> {
        let sum = self.sums[group];
        let next = if self.real { f64::from(sum as f32 + value as f32) } else { sum + value };
        if next.is_infinite() && !sum.is_infinite() && !value.is_infinite() {
            return Err(overflow());
        }
        self.sums[group] = next;
        Ok(())
    }
}

impl Accumulator for FloatSum {
    fn resize(&mut self, group_count: usize) {
        // Minus zero is the neutral element of addition, also for -0.
        self.sums.resize(group_count, -0.0);
        self.counts.resize(group_count, 0);
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let validity = argument.validity.as_deref();
        match &argument.data {
            VectorData::Float4(values) => {
                try_each_valid(groups, values, validity, |group, value| {
                    self.counts[group] += 1;
                    self.add(group, f64::from(*value))
                })
            }
            VectorData::Float8(values) => {
                try_each_valid(groups, values, validity, |group, value| {
                    self.counts[group] += 1;
                    self.add(group, *value)
                })
            }
            other => unexpected(other),
        }
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        Ok(smallvec![Datum::Int8(self.counts[group]), Datum::Float8(self.sums[group])])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        self.counts[group] += partial_count(&partial[0]);
        match &partial[1] {
            Datum::Float8(sum) => self.add(group, *sum),
            _ => Ok(()),
        }
    }

    fn partial_columns(&self, group_count: usize, _: &[DataType]) -> Result<Vec<Vector>> {
        let counts = VectorData::Int8(self.counts[..group_count].to_vec());
        let sums = VectorData::Float8(self.sums[..group_count].to_vec());
        Ok(vec![all_valid(counts), all_valid(sums)])
    }

    fn merge_columns(&mut self, groups: &[u32], columns: &[Vector]) -> Result<()> {
        let (counts, sums) = (expect_bigints(&columns[0]), columns[1].as_f64_slice());
        for ((group, count), sum) in groups.iter().zip(counts).zip(sums.unwrap_or_default()) {
            self.counts[*group as usize] += count;
            self.add(*group as usize, *sum)?;
        }
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let (sum, count) = (self.sums[group], self.counts[group]);
        Ok(match count {
            0 => Datum::Null,
            // PostgreSQL starts this sum with 0.
            _ if self.average => Datum::Float8((sum + 0.0) / count as f64),
            _ if self.real => Datum::Float4(sum as f32),
            _ => Datum::Float8(sum),
        })
    }

    fn byte_count(&self) -> usize {
        (self.sums.capacity() + self.counts.capacity()) * size_of::<i64>()
    }
}

/// `sum` and `avg` of intervals.
pub(super) struct IntervalSum {
    sums: Vec<Interval>,
    counts: Vec<i64>,
    average: bool,
}

impl IntervalSum {
    pub(super) fn new(average: bool) -> IntervalSum {
        IntervalSum { sums: Vec::new(), counts: Vec::new(), average }
    }
}

impl Accumulator for IntervalSum {
    fn resize(&mut self, group_count: usize) {
        self.sums.resize(group_count, Interval::default());
        self.counts.resize(group_count, 0);
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let VectorData::Interval(values) = &argument.data else {
            unexpected(&argument.data);
        };
        let (sums, counts) = (&mut self.sums, &mut self.counts);
        try_each_valid(groups, values, argument.validity.as_deref(), |group, value| {
            sums[group] = sums[group].checked_add(value)?;
            counts[group] += 1;
            Ok(())
        })
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        Ok(smallvec![Datum::Int8(self.counts[group]), Datum::Interval(self.sums[group])])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        self.counts[group] += partial_count(&partial[0]);
        if let Datum::Interval(sum) = &partial[1] {
            self.sums[group] = self.sums[group].checked_add(sum)?;
        }
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let (sum, count) = (self.sums[group], self.counts[group]);
        match count {
            0 => Ok(Datum::Null),
            _ if self.average => sum.checked_div(count as f64).map(Datum::Interval),
            _ => Ok(Datum::Interval(sum)),
        }
    }

    fn byte_count(&self) -> usize {
        self.sums.capacity() * size_of::<Interval>() + self.counts.capacity() * size_of::<i64>()
    }
}
