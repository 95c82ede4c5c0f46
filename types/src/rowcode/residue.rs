//! Residues: information about key values that keys do not preserve, stored in packed rows.
//!
//! ```text
//! numeric           [digits after the point u16]
//! real, double      nothing: the value is -0
//! char              [number of trailing blanks u32]
//! interval          [months i32][days i32][microseconds i64]
//! jsonb             ([numbers in between varint][digits after the point varint])*
//! ```
//!
//! A residue of 255 bytes continues in the next entry of its column.
//!
//! A value whose form the key preserves has no residue.

use std::borrow::Cow;

use super::corrupt;
use super::value::{interval_bytes, interval_of};
use crate::datatype::DataType;
use crate::datetime::Interval;
use crate::datum::without_blanks;
use crate::datum::{Datum, Json, Nested};
use crate::error::Result;
use crate::keycode;
use crate::varint;

/// Maximum number of trailing blanks that is accepted; PostgreSQL's maximum length of `char(n)`.
const MAX_BLANKS: u32 = 10_485_760;

/// Maximum bytes of an entry.
const MAX_ENTRY: usize = 255;

/// Returns whether values of a type may have residues.
pub(super) fn possible(data_type: &DataType) -> bool {
    keycode::loses_form(data_type)
}

/// Appends the residue of key column `position`, if its value has one.
pub(super) fn write(position: usize, value: &Datum, data_type: &DataType, out: &mut Vec<u8>) {
    let mut put = |residue: &[u8]| {
        let mut rest = residue;
        loop {
            let (entry, behind) = rest.split_at(rest.len().min(MAX_ENTRY));
            out.push(position as u8);
            out.push(entry.len() as u8);
            out.extend_from_slice(entry);
            rest = behind;
            if entry.len() < MAX_ENTRY {
                break;
            }
        }
    };
    match value {
        Datum::Numeric(number) if number.scale() != number.min_scale() => {
            put(&(number.scale() as u16).to_le_bytes());
        }
        Datum::Float4(value) if *value == 0.0 && value.is_sign_negative() => put(&[]),
        Datum::Float8(value) if *value == 0.0 && value.is_sign_negative() => put(&[]),
        Datum::Text(text) if *data_type == DataType::Char => {
            let blanks = text.len() - without_blanks(text).len();
            if blanks > 0 {
                put(&(blanks as u32).to_le_bytes());
            }
        }
        Datum::Interval(value) => {
            let plain = Interval::from_span(value.span());
            if !plain.is_some_and(|plain| plain.is_identical(value)) {
                put(&interval_bytes(value));
            }
        }
        Datum::Nested(Nested::Jsonb(json)) => {
            let mut scales = Scales::default();
            scales.collect(json);
            if !scales.written.is_empty() {
                put(&scales.written);
            }
        }
        _ => {}
    }
}

/// The scales of the numbers of a `jsonb` whose display scale exceeds the minimum.
#[derive(Default)]
struct Scales {
    written: Vec<u8>,
    /// Numbers since the last of these.
    between: u64,
}

impl Scales {
    fn collect(&mut self, json: &Json) {
        match json {
            Json::Number(number) if number.scale() != number.min_scale() => {
                varint::put(self.between, &mut self.written);
                varint::put(number.scale().into(), &mut self.written);
                self.between = 0;
            }
            Json::Number(_) => self.between += 1,
            Json::Array(elements) => elements.iter().for_each(|element| self.collect(element)),
            Json::Object(pairs) => pairs.iter().for_each(|(_, value)| self.collect(value)),
            Json::Null | Json::String(_) | Json::Bool(_) => {}
        }
    }
}

/// Sets the scales of the numbers of a `jsonb` from the rest of a residue.
fn rescale(json: &mut Json, rest: &mut &[u8], between: &mut Option<u64>) -> Option<()> {
    match json {
        Json::Number(number) => match between {
            Some(0) => {
                let scale = u32::try_from(varint::take(rest)?).ok()?;
                *number = number.with_scale(scale);
                *between = varint::take(rest);
            }
            Some(left) => *left -= 1,
            None => {}
        },
        Json::Array(elements) => {
            elements.iter_mut().try_for_each(|element| rescale(element, rest, between))?;
        }
        Json::Object(pairs) => {
            pairs.iter_mut().try_for_each(|(_, value)| rescale(value, rest, between))?;
        }
        Json::Null | Json::String(_) | Json::Bool(_) => {}
    }
    Some(())
}

/// The residues of a packed row.
#[derive(Clone, Copy, Default)]
pub(super) struct Residues<'a>(pub(super) &'a [u8]);

impl<'a> Residues<'a> {
    /// Returns the residue of key column `position`.
    #[inline]
    pub(super) fn find(&self, position: usize) -> Result<Option<Cow<'a, [u8]>>> {
        let mut rest = self.0;
        let mut found: Option<Cow<'a, [u8]>> = None;
        while let [of, length, tail @ ..] = rest {
            let (residue, tail) = tail
                .split_at_checked(usize::from(*length))
                .ok_or_else(|| corrupt("truncated residue"))?;
            if usize::from(*of) == position {
                match &mut found {
                    None => found = Some(Cow::Borrowed(residue)),
                    Some(before) => before.to_mut().extend_from_slice(residue),
                }
                if residue.len() < MAX_ENTRY {
                    return Ok(found);
                }
            }
            rest = tail;
        }
        Ok(None)
    }
}

/// Returns the original form of a key value.
pub(super) fn apply(value: Datum, residue: &[u8]) -> Result<Datum> {
    let bad = || corrupt("a residue does not fit its key");
    match value {
        Datum::Numeric(number) => {
            let scale = residue.try_into().map_err(|_| bad())?;
            Ok(Datum::Numeric(number.with_scale(u32::from(u16::from_le_bytes(scale)))))
        }
        Datum::Float4(0.0) => Ok(Datum::Float4(-0.0)),
        Datum::Float8(0.0) => Ok(Datum::Float8(-0.0)),
        Datum::Text(text) => {
            let blanks = u32::from_le_bytes(residue.try_into().map_err(|_| bad())?);
            if blanks > MAX_BLANKS {
                return Err(bad());
            }
            let mut padded = String::with_capacity(text.len() + blanks as usize);
            padded.push_str(&text);
            padded.extend(std::iter::repeat_n(' ', blanks as usize));
            Ok(Datum::text(padded))
        }
        Datum::Interval(value) => {
            let shown = interval_of(residue.try_into().map_err(|_| bad())?);
            if shown == value { Ok(Datum::Interval(shown)) } else { Err(bad()) }
        }
        Datum::Nested(Nested::Jsonb(json)) => {
            let (mut json, mut rest) = (json.into_json(), residue);
            let mut between = varint::take(&mut rest);
            rescale(&mut json, &mut rest, &mut between).ok_or_else(bad)?;
            Ok(Datum::Nested(Nested::Jsonb(json.into())))
        }
        _ => Err(bad()),
    }
}
