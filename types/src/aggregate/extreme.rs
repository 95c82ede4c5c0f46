//! Extremes: `min`, `max`, `bool_and` and `bool_or`.
//!
//! Of equal values with different text, such as 0 and -0, the last one is the result; of
//! `char(n)` the first, as in PostgreSQL.

use std::cmp::Ordering;

use smallvec::smallvec;

use super::sum::{each_valid, expect_argument, unexpected};
use super::{Accumulator, PartialState};
use crate::datatype::{DataType, Representation};
use crate::datum::{Datum, compare_floats};
use crate::error::Result;
use crate::vector::{Vector, VectorData};

/// The best value of each group, by representation. Undefined for groups without a value.
enum ExtremeValues {
    /// Integers, dates and times.
    Integers(Vec<i64>),
    /// Floats.
    Floats(Vec<f64>),
    /// All other types.
    Datums(Vec<Datum>),
}

/// `min` and `max`.
pub(super) struct MinMax {
    data_type: DataType,
    /// Ordering of a better value relative to the best so far.
    wanted: Ordering,
    seen: Vec<bool>,
    best: ExtremeValues,
    heap_bytes: usize,
}

impl MinMax {
    pub(super) fn new(data_type: &DataType, wanted: Ordering) -> MinMax {
        let best = match data_type.representation() {
            Representation::Int2
            | Representation::Int4
            | Representation::Int8
            | Representation::Date
            | Representation::Time
            | Representation::Timestamp
            | Representation::Timestamptz => ExtremeValues::Integers(Vec::new()),
            Representation::Float4 | Representation::Float8 => ExtremeValues::Floats(Vec::new()),
            _ => ExtremeValues::Datums(Vec::new()),
        };
        MinMax { data_type: data_type.clone(), wanted, seen: Vec::new(), best, heap_bytes: 0 }
    }

    fn integers<T: Copy + Into<i64>>(
        &mut self,
        groups: &[u32],
        values: &[T],
        validity: Option<&[bool]>,
    ) {
        let (seen, wanted) = (&mut self.seen, self.wanted);
        let ExtremeValues::Integers(best) = &mut self.best else {
            unreachable!("integers are kept as integers");
        };
        each_valid(groups, values, validity, |group, value| {
            let value: i64 = (*value).into();
            if !seen[group] || value.cmp(&best[group]) == wanted {
                best[group] = value;
                seen[group] = true;
            }
        });
    }

    fn floats<T: Copy + Into<f64>>(
        &mut self,
        groups: &[u32],
        values: &[T],
        validity: Option<&[bool]>,
    ) {
        let (seen, wanted) = (&mut self.seen, self.wanted);
        let ExtremeValues::Floats(best) = &mut self.best else {
            unreachable!("floats are kept as floats");
        };
        each_valid(groups, values, validity, |group, value| {
            let value: f64 = (*value).into();
            if !seen[group] || compare_floats(value, best[group]) != wanted.reverse() {
                best[group] = value;
                seen[group] = true;
            }
        });
    }

    fn datums(&mut self, groups: &[u32], argument: &Vector) {
        for (index, group) in groups.iter().enumerate() {
            let group = *group as usize;
            if argument.is_null(index)
                || (self.seen[group] && !self.improves(group, argument, index))
            {
                continue;
            }
            self.take(group, argument.datum(index));
        }
    }

    /// Returns whether the value of a row is better than the best of a group with a value.
    fn improves(&self, group: usize, argument: &Vector, index: usize) -> bool {
        let ExtremeValues::Datums(best) = &self.best else {
            unreachable!("other values are kept as datums");
        };
        match (&argument.data, &best[group]) {
            (VectorData::Text(values), Datum::Text(best)) if self.data_type != DataType::Char => {
                values.get(index).cmp(best.as_bytes()) == self.wanted
            }
            (VectorData::Numeric(values), Datum::Numeric(best)) => {
                values[index].cmp(best) != self.wanted.reverse()
            }
            (VectorData::Text(_), best) => {
                argument.datum(index).compare_typed(best, &self.data_type) == self.wanted
            }
            (_, best) => {
                let order = argument.datum(index).compare_typed(best, &self.data_type);
                order != self.wanted.reverse()
            }
        }
    }

    fn take(&mut self, group: usize, value: Datum) {
        let ExtremeValues::Datums(best) = &mut self.best else {
            unreachable!("other values are kept as datums");
        };
        self.heap_bytes += value.heap_bytes();
        self.heap_bytes = self.heap_bytes.saturating_sub(best[group].heap_bytes());
        best[group] = value;
        self.seen[group] = true;
    }

    fn value(&self, group: usize) -> Datum {
        if !self.seen[group] {
            return Datum::Null;
        }
        match (&self.best, &self.data_type) {
            (ExtremeValues::Integers(best), DataType::Int2) => Datum::Int2(best[group] as i16),
            (ExtremeValues::Integers(best), DataType::Int4) => Datum::Int4(best[group] as i32),
            (ExtremeValues::Integers(best), DataType::Date) => Datum::Date(best[group] as i32),
            (ExtremeValues::Integers(best), DataType::Time) => Datum::Time(best[group]),
            (ExtremeValues::Integers(best), DataType::Timestamp) => Datum::Timestamp(best[group]),
            (ExtremeValues::Integers(best), DataType::Timestamptz) => {
                Datum::Timestamptz(best[group])
            }
            (ExtremeValues::Integers(best), _) => Datum::Int8(best[group]),
            (ExtremeValues::Floats(best), DataType::Float4) => Datum::Float4(best[group] as f32),
            (ExtremeValues::Floats(best), _) => Datum::Float8(best[group]),
            (ExtremeValues::Datums(best), _) => best[group].clone(),
        }
    }
}

impl Accumulator for MinMax {
    fn resize(&mut self, group_count: usize) {
        self.seen.resize(group_count, false);
        match &mut self.best {
            ExtremeValues::Integers(best) => best.resize(group_count, 0),
            ExtremeValues::Floats(best) => best.resize(group_count, 0.0),
            ExtremeValues::Datums(best) => best.resize(group_count, Datum::Null),
        }
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let validity = argument.validity.as_deref();
        match &argument.data {
            VectorData::Int2(values) => self.integers(groups, values, validity),
            VectorData::Int4(values) | VectorData::Date(values) => {
                self.integers(groups, values, validity);
            }
            VectorData::Int8(values)
            | VectorData::Time(values)
            | VectorData::Timestamp(values)
            | VectorData::Timestamptz(values) => self.integers(groups, values, validity),
            VectorData::Float4(values) => self.floats(groups, values, validity),
            VectorData::Float8(values) => self.floats(groups, values, validity),
            _ => self.datums(groups, argument),
        }
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        Ok(smallvec![self.value(group)])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        let mut single = Vector::new(&self.data_type, 1);
        single.push(&partial[0]);
        let group = u32::try_from(group).expect("groups are numbered in 32 bits");
        self.update(&[group], &[&single])
    }

    fn merge_columns(&mut self, groups: &[u32], columns: &[Vector]) -> Result<()> {
        // A partial best value is fed like any value.
        self.update(groups, &[&columns[0]])
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        Ok(self.value(group))
    }

    fn byte_count(&self) -> usize {
        let best = match &self.best {
            ExtremeValues::Integers(best) => best.capacity() * size_of::<i64>(),
            ExtremeValues::Floats(best) => best.capacity() * size_of::<f64>(),
            ExtremeValues::Datums(best) => best.capacity() * size_of::<Datum>(),
        };
        self.seen.capacity() + best + self.heap_bytes
    }
}

/// `bool_and` (`decisive` false) and `bool_or` (`decisive` true).
pub(super) struct BooleanAggregate {
    decisive: bool,
    states: Vec<Option<bool>>,
}

impl BooleanAggregate {
    pub(super) fn new(decisive: bool) -> BooleanAggregate {
        BooleanAggregate { decisive, states: Vec::new() }
    }

    fn value(&self, group: usize) -> Datum {
        self.states[group].map_or(Datum::Null, Datum::Bool)
    }
}

impl Accumulator for BooleanAggregate {
    fn resize(&mut self, group_count: usize) {
        self.states.resize(group_count, None);
    }

    fn update(&mut self, groups: &[u32], arguments: &[&Vector]) -> Result<()> {
        let argument = expect_argument(arguments);
        let VectorData::Bool(values) = &argument.data else {
            unexpected(&argument.data);
        };
        let (states, decisive) = (&mut self.states, self.decisive);
        each_valid(groups, values, argument.validity.as_deref(), |group, value| {
            if states[group] != Some(decisive) {
                states[group] = Some(*value);
            }
        });
        Ok(())
    }

    fn partial(&self, group: usize) -> Result<PartialState> {
        Ok(smallvec![self.value(group)])
    }

    fn merge(&mut self, group: usize, partial: &[Datum]) -> Result<()> {
        if let (Datum::Bool(value), true) = (&partial[0], self.states[group] != Some(self.decisive))
        {
            self.states[group] = Some(*value);
        }
        Ok(())
    }

    fn finish(&self, group: usize) -> Result<Datum> {
        Ok(self.value(group))
    }

    fn byte_count(&self) -> usize {
        self.states.capacity()
    }
}
