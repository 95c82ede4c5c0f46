//! State of a group of a maintained view: what its aggregates need to be changed exactly in both
//! directions.
//!
//! Format: `docs/formats/maintained-view.md`.
//!
//! # Invariants
//!
//! 1. A sum has the scale of the value with the most digits after the point, and NaN or infinity if
//!    a value has. These cannot be subtracted, so they are counted: the forms of the values are
//!    their scales, and three numbers for NaN and the infinities.
//! 2. All counts are at least 0, and none exceeds the number of rows.

use std::collections::BTreeMap;

use types::numeric::Numeric;
use types::{DataType, Datum, Error, Result, keycode};

/// First byte of an encoded state.
const VERSION: u8 = 1;

/// Forms of the values that are no finite numbers.
const NEGATIVE_INFINITY: u32 = u32::MAX - 2;
const INFINITY: u32 = u32::MAX - 1;
const NAN: u32 = u32::MAX;

/// The state of a group, or its change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupState {
    /// Rows of the group.
    pub rows: i64,
    /// A total for each aggregate.
    pub totals: Vec<AggregateTotal>,
}

/// Count and sum of the values of an aggregate.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AggregateTotal {
    /// Values that are counted.
    pub count: i64,
    sum: Numeric,
    forms: BTreeMap<u32, i64>,
}

impl GroupState {
    /// Returns the state of no rows.
    pub(crate) fn zero(aggregate_count: usize) -> GroupState {
        GroupState { rows: 0, totals: vec![AggregateTotal::default(); aggregate_count] }
    }

    /// Returns whether it is that of no rows, or changes nothing.
    pub(crate) fn is_zero(&self) -> bool {
        self.rows == 0 && self.totals.iter().all(AggregateTotal::is_zero)
    }

    /// Adds a change.
    pub(crate) fn add(&mut self, delta: &GroupState) -> Result<()> {
        self.rows += delta.rows;
        self.totals.iter_mut().zip(&delta.totals).try_for_each(|(total, delta)| total.add(delta))
    }

    /// Returns whether a set of rows can have this state.
    pub(crate) fn is_possible(&self) -> bool {
        let possible = |total: &AggregateTotal| {
            (0..=self.rows).contains(&total.count)
                && total.forms.values().all(|&count| count > 0)
                && (!total.forms.is_empty() || total.sum.is_zero())
        };
        self.rows >= 0 && self.totals.iter().all(possible)
    }

    /// Returns the encoded state.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut out = vec![VERSION];
        out.extend(self.rows.to_le_bytes());
        for total in &self.totals {
            out.extend(total.count.to_le_bytes());
            out.extend((total.forms.len() as u16).to_le_bytes());
            for (form, count) in &total.forms {
                out.extend(form.to_le_bytes());
                out.extend(count.to_le_bytes());
            }
            let mut sum = Vec::new();
            let value = Datum::Numeric(total.sum.clone());
            keycode::encode(&value, &DataType::Numeric, false, false, &mut sum)?;
            out.extend((sum.len() as u16).to_le_bytes());
            out.extend(sum);
        }
        Ok(out)
    }

    /// Decodes a state.
    ///
    /// # Errors
    ///
    /// XX001 if the bytes are damaged.
    pub(crate) fn decode(bytes: &[u8], aggregate_count: usize) -> Result<GroupState> {
        let mut reader = StateReader { rest: bytes };
        let [version] = reader.take()?;
        if version != VERSION {
            return Err(damaged());
        }
        let mut state = GroupState::zero(aggregate_count);
        state.rows = i64::from_le_bytes(reader.take()?);
        for total in &mut state.totals {
            total.count = i64::from_le_bytes(reader.take()?);
            for _ in 0..u16::from_le_bytes(reader.take()?) {
                let form = u32::from_le_bytes(reader.take()?);
                total.forms.insert(form, i64::from_le_bytes(reader.take()?));
            }
            let length = usize::from(u16::from_le_bytes(reader.take()?));
            let sum = reader.bytes(length)?;
            match keycode::decode(sum, &DataType::Numeric, false, false)? {
                (Datum::Numeric(sum), taken) if taken == length => total.sum = sum,
                _ => return Err(damaged()),
            }
        }
        if reader.rest.is_empty() { Ok(state) } else { Err(damaged()) }
    }
}

impl AggregateTotal {
    /// Adds a value (`sign` 1), or subtracts it (-1).
    pub(crate) fn add_value(&mut self, value: &Numeric, sign: i64) -> Result<()> {
        self.count += sign;
        let form = match value.is_finite() {
            true => value.scale(),
            false if value.is_nan() => NAN,
            false if *value == Numeric::INFINITY => INFINITY,
            false => NEGATIVE_INFINITY,
        };
        if value.is_finite() {
            self.sum = match sign > 0 {
                true => self.sum.checked_add(value)?,
                false => self.sum.checked_sub(value)?,
            };
        }
        self.add_form(form, sign);
        Ok(())
    }

    fn add_form(&mut self, form: u32, change: i64) {
        let count = self.forms.entry(form).or_default();
        *count += change;
        if *count == 0 {
            self.forms.remove(&form);
        }
    }

    fn is_zero(&self) -> bool {
        self.count == 0 && self.forms.is_empty() && self.sum.is_zero()
    }

    fn add(&mut self, delta: &AggregateTotal) -> Result<()> {
        self.count += delta.count;
        self.sum = self.sum.checked_add(&delta.sum)?;
        delta.forms.iter().for_each(|(form, count)| self.add_form(*form, *count));
        Ok(())
    }

    /// Returns the sum of the values.
    pub(crate) fn sum(&self) -> Numeric {
        let has = |form: u32| self.forms.contains_key(&form);
        if has(NAN) || (has(INFINITY) && has(NEGATIVE_INFINITY)) {
            return Numeric::NAN;
        }
        if has(INFINITY) {
            return Numeric::INFINITY;
        }
        if has(NEGATIVE_INFINITY) {
            return Numeric::NEGATIVE_INFINITY;
        }
        let scale = self.forms.last_key_value().map_or(0, |(scale, _)| *scale);
        self.sum.with_scale(scale)
    }
}

struct StateReader<'a> {
    rest: &'a [u8],
}

impl<'a> StateReader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.bytes(N)?.try_into().map_err(|_| damaged())
    }
}

fn damaged() -> Error {
    err!(DATA_CORRUPTED: "damaged state of a group of a maintained view")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Numeric {
        Numeric::parse(text).unwrap()
    }

    #[test]
    fn sum_has_scale_of_remaining_values() {
        let mut total = AggregateTotal::default();
        for value in ["1.5", "2.25", "NaN", "Infinity"] {
            total.add_value(&number(value), 1).unwrap();
        }
        assert!(total.sum().is_nan());
        total.add_value(&number("NaN"), -1).unwrap();
        assert_eq!(total.sum().to_string(), "Infinity");
        total.add_value(&number("Infinity"), -1).unwrap();
        assert_eq!(total.sum().to_string(), "3.75");
        total.add_value(&number("2.25"), -1).unwrap();
        assert_eq!(total.sum().to_string(), "1.5");
        total.add_value(&number("1.5"), -1).unwrap();
        assert!(total.is_zero());
    }

    /// Returns the bytes of the example of the format.
    fn documented() -> Vec<u8> {
        let page = include_str!("../../../docs/formats/maintained-view.md");
        let example = page.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next());
        let lines = example.unwrap().lines().map(|line| line.split('|').next().unwrap());
        let bytes = lines.flat_map(str::split_whitespace);
        bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    }

    #[test]
    fn state_is_encoded_as_documented() {
        let mut state = GroupState::zero(2);
        state.rows = 3;
        state.totals[1].add_value(&number("-12.340"), 1).unwrap();
        state.totals[1].add_value(&number("NaN"), 1).unwrap();
        let bytes = state.encode().unwrap();
        assert_eq!(bytes, documented(), "{bytes:02x?}");
        let decoded = GroupState::decode(&bytes, 2).unwrap();
        assert_eq!(decoded, state);
        assert_eq!(decoded.encode().unwrap(), bytes);
        for length in 0..bytes.len() {
            assert!(GroupState::decode(&bytes[..length], 2).is_err(), "{length}");
        }
    }

    #[test]
    fn state_of_fewer_than_no_rows_is_impossible() {
        let mut state = GroupState::zero(1);
        state.totals[0].add_value(&number("1"), -1).unwrap();
        assert!(!state.is_possible());
        state.totals[0].add_value(&number("1"), 1).unwrap();
        assert!(state.is_possible());
    }
}
