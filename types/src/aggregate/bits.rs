//! Bitwise aggregates: `bit_and`, `bit_or`, `bit_xor`; and `any_value`.

use std::sync::Arc;

use smallvec::smallvec;

use super::sum::{each_valid, expect_argument, unexpected};
use super::{Accumulator, AggregateKind, PartialState};
use crate::datatype::DataType;
use crate::datum::{Datum, Nested};
use crate::error::Result;
use crate::function::combined;
use crate::vector::{Vector, VectorData};

/// A bitwise operation on two integers.
pub(super) type Combine = fn(i64, i64) -> i64;

/// Bitwise aggregates of integers. Narrower types are sign-extended.
pub(super) struct IntegerBitAggregate {
    data_type: DataType,
    combine: Combine,
    states: Vec<Option<i64>>,
}

impl IntegerBitAggregate {
    pub(super) fn new(data_type: &DataType, combine: Combine) -> IntegerBitAggregate {
        IntegerBitAggregate { data_type: data_type.clone(), combine, states: Vec::new() }
    }

    fn add<T: Copy + Into<i64>>(
        &mut self,
        groups: &[u32],
        values: &[T],
        validity: Option<&[bool]>,
    ) {
        let (states, combine) = (&mut self.states, self.combine);
        each_valid(groups, values, validity, |group, value| {
            let value: i64 = (*value).into();
            let state = &mut states[group];
            *state = Some(state.map_or(value, |state| combine(state, value)));
        });
    }
}

impl Accumulator for IntegerBitAggregate {
    fn resize(&mut self, group_count: usize) {
        self.states.resize(group_count, None);
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let validity = argument.validity.as_deref();
        match &argument.data {
            VectorData::Int2(values) => self.add(groups, values, validity),
            VectorData::Int4(values) => self.add(groups, values, validity),
            VectorData::Int8(values) => self.add(groups, values, validity),
            other => unexpected(other),
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        Ok(smallvec![self.states[group].map_or(Datum::Null, Datum::Int8)])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        if let Datum::Int8(value) = partial[0] {
            let state = &mut self.states[group];
            *state = Some(state.map_or(value, |state| (self.combine)(state, value)));
        }
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        Ok(match (self.states[group], &self.data_type) {
            (None, _) => Datum::Null,
            (Some(value), DataType::Int2) => Datum::Int2(value as i16),
            (Some(value), DataType::Int4) => Datum::Int4(value as i32),
            (Some(value), _) => Datum::Int8(value),
        })
    }

    fn byte_count(&self) -> usize {
        self.states.capacity() * size_of::<Option<i64>>()
    }
}

/// Bitwise aggregates of bit strings of equal length.
pub(super) struct BitStrings {
    /// Name of the operation for errors, and the operation on bytes.
    operation: (&'static str, fn(u8, u8) -> u8),
    states: Vec<Datum>,
    heap_bytes: usize,
}

impl BitStrings {
    pub(super) fn new(kind: AggregateKind) -> BitStrings {
        let operation: (_, fn(u8, u8) -> u8) = match kind {
            AggregateKind::BitAnd => ("AND", |a, b| a & b),
            AggregateKind::BitOr => ("OR", |a, b| a | b),
            _ => ("XOR", |a, b| a ^ b),
        };
        BitStrings { operation, states: Vec::new(), heap_bytes: 0 }
    }

    fn add(&mut self, group: usize, value: Datum) -> Result<()> {
        let Datum::Nested(Nested::Bits(added)) = &value else { return Ok(()) };
        let (name, of) = self.operation;
        let state = &mut self.states[group];
        if let Datum::Nested(Nested::Bits(before)) = state {
            let bits = combined(before, added, name, of)?;
            *state = Datum::Nested(Nested::Bits(Arc::new(bits)));
        } else {
            self.heap_bytes += value.heap_bytes();
            *state = value;
        }
        Ok(())
    }
}

impl Accumulator for BitStrings {
    fn resize(&mut self, group_count: usize) {
        self.states.resize(group_count, Datum::Null);
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let mut rows = groups.iter().enumerate();
        rows.try_for_each(|(row, &group)| self.add(group as usize, argument.datum(row)))
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        Ok(smallvec![self.states[group].clone()])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        self.add(group, partial[0].clone())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        Ok(self.states[group].clone())
    }

    fn byte_count(&self) -> usize {
        self.states.capacity() * size_of::<Datum>() + self.heap_bytes
    }
}

/// `any_value`: the first value of each group.
#[derive(Default)]
pub(super) struct AnyValue {
    values: Vec<Datum>,
    heap_bytes: usize,
}

impl AnyValue {
    fn offer(&mut self, group: usize, value: Datum) {
        if self.values[group].is_null() {
            self.heap_bytes += value.heap_bytes();
            self.values[group] = value;
        }
    }
}

impl Accumulator for AnyValue {
    fn resize(&mut self, group_count: usize) {
        self.values.resize(group_count, Datum::Null);
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        for (row, &group) in groups.iter().enumerate() {
            if self.values[group as usize].is_null() {
                self.offer(group as usize, argument.datum(row));
            }
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        Ok(smallvec![self.values[group].clone()])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        self.offer(group, partial[0].clone());
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        Ok(self.values[group].clone())
    }

    fn byte_count(&self) -> usize {
        self.values.capacity() * size_of::<Datum>() + self.heap_bytes
    }
}
