//! What a key forgets of its values and a packed row keeps: the residues.
//!
//! ```text
//! numeric           [digits after the point u16]
//! real, double      nothing: the value is -0
//! char              [number of trailing blanks u32]
//! interval          [months i32][days i32][microseconds i64]
//! ```
//!
//! A value whose looks the key gives back by itself has no residue.

use super::corrupt;
use super::value::{interval_bytes, interval_of};
use crate::datatype::DataType;
use crate::datetime::Interval;
use crate::datum::Datum;
use crate::datum::without_blanks;
use crate::error::Result;
use crate::keycode;

/// The longest run of blanks that is believed; PostgreSQL's longest `char(n)`.
const MAX_BLANKS: u32 = 10_485_760;

/// Returns whether values of a type may have residues.
pub(super) fn possible(data_type: DataType) -> bool {
    keycode::forgets(data_type)
}

/// Appends the residue of key column `position`, if its value has one.
pub(super) fn write(position: usize, value: &Datum, data_type: DataType, out: &mut Vec<u8>) {
    let mut put = |residue: &[u8]| {
        out.push(position as u8);
        out.push(residue.len() as u8);
        out.extend_from_slice(residue);
    };
    match value {
        Datum::Numeric(number) if number.scale() != number.min_scale() => {
            put(&(number.scale() as u16).to_le_bytes());
        }
        Datum::Float4(value) if *value == 0.0 && value.is_sign_negative() => put(&[]),
        Datum::Float8(value) if *value == 0.0 && value.is_sign_negative() => put(&[]),
        Datum::Text(text) if data_type == DataType::Char => {
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
        _ => {}
    }
}

/// The residues of a packed row.
#[derive(Clone, Copy, Default)]
pub(super) struct Residues<'a>(pub(super) &'a [u8]);

impl<'a> Residues<'a> {
    /// Returns the residue of key column `position`.
    #[inline]
    pub(super) fn find(&self, position: usize) -> Result<Option<&'a [u8]>> {
        let mut rest = self.0;
        while let [of, length, tail @ ..] = rest {
            let (residue, tail) = tail
                .split_at_checked(usize::from(*length))
                .ok_or_else(|| corrupt("a residue is cut off"))?;
            if usize::from(*of) == position {
                return Ok(Some(residue));
            }
            rest = tail;
        }
        Ok(None)
    }
}

/// Returns the value as it was before it became a key.
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
        _ => Err(bad()),
    }
}
