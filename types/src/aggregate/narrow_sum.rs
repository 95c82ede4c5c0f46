//! `sum` and `avg` of integers of at most 32 bits, which most queries use.
//!
//! The 64-bit state is half as large as that of [`sum`](super::sum), so that more groups fit the
//! CPU caches. An overflow takes four thousand million rows and is an error, as in PostgreSQL.

use std::ops::Range;

use smallvec::smallvec;

use super::sum::{
    all_valid, each_valid, expect_argument, expect_bigints, partial_count, unexpected,
};
use super::{Accumulator, PartialState};
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::numeric::Numeric;
use crate::vector::{Vector, VectorData};

/// The sum of a group.
#[derive(Clone, Copy, Default)]
struct Total {
    sum: i64,
    count: i64,
}

/// `sum` or `avg` of all groups.
pub(super) struct NarrowSum {
    totals: Vec<Total>,
    /// The result is the average, a numeric; otherwise the sum, a bigint.
    average: bool,
}

impl Total {
    fn add(&mut self, sum: i64, count: i64) -> Result<()> {
        self.sum = self.sum.checked_add(sum).ok_or_else(out_of_range)?;
        self.count += count;
        Ok(())
    }
}

fn out_of_range() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "bigint out of range")
}

impl NarrowSum {
    pub(super) fn new(average: bool) -> NarrowSum {
        NarrowSum { totals: Vec::new(), average }
    }

    fn add<T: Copy + Into<i64>>(
        &mut self,
        groups: &[u32],
        values: &[T],
        validity: Option<&[bool]>,
    ) -> Result<()> {
        if let [total] = self.totals.as_mut_slice() {
            return add_to_one(total, values, validity);
        }
        let totals = &mut self.totals;
        let mut failed = false;
        let mut add = |group: usize, value: &T| {
            let total = &mut totals[group];
            let (sum, overflows) = total.sum.overflowing_add((*value).into());
            failed |= overflows;
            *total = Total { sum, count: total.count + 1 };
        };
        each_valid(groups, values, validity, &mut add);
        if failed { Err(out_of_range()) } else { Ok(()) }
    }
}

/// Adds values to the only group: the sum of a chunk fits 64 bits.
fn add_to_one<T: Copy + Into<i64>>(
    total: &mut Total,
    values: &[T],
    validity: Option<&[bool]>,
) -> Result<()> {
    /// Sums of this number of 32-bit values fit 64 bits.
    const CHUNK: usize = 1 << 20;
    let Some(validity) = validity else {
        return values.chunks(CHUNK).try_for_each(|chunk| {
            total.add(chunk.iter().map(|value| (*value).into()).sum(), chunk.len() as i64)
        });
    };
    for (chunk, valid) in values.chunks(CHUNK).zip(validity.chunks(CHUNK)) {
        let pairs = chunk.iter().zip(valid);
        let kept = pairs.map(|(value, valid)| (*value).into() * i64::from(*valid));
        let count = valid.iter().map(|valid| i64::from(*valid)).sum();
        total.add(kept.sum(), count)?;
    }
    Ok(())
}

impl Accumulator for NarrowSum {
    fn resize(&mut self, group_count: usize) {
        self.totals.resize(group_count, Total::default());
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let validity = argument.validity.as_deref();
        match &argument.data {
            VectorData::Int2(values) => self.add(groups, values, validity),
            VectorData::Int4(values) => self.add(groups, values, validity),
            other => unexpected(other),
        }
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        let total = self.totals[group];
        Ok(smallvec![Datum::Int8(total.count), Datum::Int8(total.sum)])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        self.totals[group].add(partial_count(&partial[1]), partial_count(&partial[0]))
    }

    fn partial_columns(&self, group_count: usize, _: &[DataType]) -> Result<Vec<Vector>> {
        let totals = &self.totals[..group_count];
        let counts = totals.iter().map(|total| total.count).collect();
        let sums = totals.iter().map(|total| total.sum).collect();
        Ok(vec![all_valid(VectorData::Int8(counts)), all_valid(VectorData::Int8(sums))])
    }

    fn merge_columns(&mut self, groups: &[u32], columns: &[Vector]) -> Result<()> {
        let (counts, sums) = (expect_bigints(&columns[0]), expect_bigints(&columns[1]));
        for ((group, count), sum) in groups.iter().zip(counts).zip(sums) {
            self.totals[*group as usize].add(*sum, *count)?;
        }
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        let Total { sum, count } = self.totals[group];
        match count {
            0 => Ok(Datum::Null),
            _ if self.average => Numeric::from(sum)
                .checked_div(&Numeric::from(count), &mut InterruptPacer::without_interrupt())
                .map(Datum::Numeric),
            _ => Ok(Datum::Int8(sum)),
        }
    }

    fn finish_all(&self, groups: Range<usize>, results: &mut Vector) -> Result<()> {
        for group in groups {
            match self.totals[group] {
                Total { sum, count } if count > 0 && !self.average => results.push_i64(sum),
                _ => results.push(&self.finish(group)?),
            }
        }
        Ok(())
    }

    fn byte_count(&self) -> usize {
        self.totals.capacity() * size_of::<Total>()
    }
}
