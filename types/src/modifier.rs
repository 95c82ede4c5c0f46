//! Type modifiers: length coercion, such as to the 20 of `varchar(20)`.

use std::sync::Arc;

use crate::datatype::IntervalFields as Fields;
use crate::datatype::{DataType, SqlType};
use crate::datetime::{Interval, MICROS_PER_HOUR, MICROS_PER_MINUTE};
use crate::datum::{Array, Bits, Datum, Nested};
use crate::error::{Error, Result};

/// Applies the modifier of a type to a value.
///
/// # Errors
///
/// A value too long for `varchar(n)`, too large for `numeric(p, s)`, of another length than
/// `bit(n)`; unless `explicit` truncates it.
pub fn apply(value: Datum, to: &SqlType, explicit: bool) -> Result<Datum> {
    if let Datum::Nested(Nested::Array(array)) = &value
        && let Some(base) = to.base.element()
    {
        let of_element = SqlType::new(base.clone(), to.modifier);
        let fit = |value: &Datum| match value {
            Datum::Null => Ok(Datum::Null),
            value => apply(value.clone(), &of_element, explicit),
        };
        let elements = array.elements.iter().map(fit).collect::<Result<_>>()?;
        let array = Array { dimensions: array.dimensions.clone(), elements };
        return Ok(Datum::Nested(Nested::Array(Arc::new(array))));
    }
    match (value, &to.base) {
        (Datum::Text(string), DataType::Varchar) => {
            fit(&string, to, explicit).map(|fitting| match fitting {
                Some(cut) => Datum::Text(cut.into()),
                None => Datum::Text(string.clone()),
            })
        }
        (Datum::Text(string), DataType::Char) => {
            let fitting = fit(&string, to, explicit)?.unwrap_or(&string);
            let length = usize::try_from(to.modifier - 4).unwrap_or(0);
            let missing = length.saturating_sub(fitting.chars().count());
            Ok(Datum::Text([fitting, &" ".repeat(missing)].concat().into()))
        }
        (Datum::Numeric(value), DataType::Numeric) => {
            value.apply_modifier(to.modifier).map(Datum::Numeric)
        }
        (Datum::Time(time), _) => Ok(Datum::Time(round_second(time, to.modifier))),
        (Datum::Timestamp(at), _) => Ok(Datum::Timestamp(round_second(at, to.modifier))),
        (Datum::Timestamptz(at), _) => Ok(Datum::Timestamptz(round_second(at, to.modifier))),
        (Datum::Nested(Nested::Timetz { time, west }), _) => {
            let time = round_second(time, to.modifier);
            Ok(Datum::Nested(Nested::Timetz { time, west }))
        }
        (Datum::Nested(Nested::Bits(bits)), _) => {
            fit_bits(&bits, to, explicit).map(|bits| Datum::Nested(Nested::Bits(Arc::new(bits))))
        }
        (Datum::Interval(interval), _) => Ok(Datum::Interval(fit_interval(interval, to.modifier))),
        (other, _) => Ok(other),
    }
}

/// Returns an interval truncated to the fields of its type.
fn fit_interval(interval: Interval, modifier: i32) -> Interval {
    let Interval { months, days, microseconds } = interval;
    let whole = |unit: i64| Interval::new(months, days, microseconds / unit * unit);
    let fitting = match Fields::from_modifier(modifier) {
        Some(Fields::Year) => Interval::new(months / 12 * 12, 0, 0),
        Some(Fields::Month | Fields::YearToMonth) => Interval::new(months, 0, 0),
        Some(Fields::Day) => Interval::new(months, days, 0),
        Some(Fields::Hour | Fields::DayToHour) => whole(MICROS_PER_HOUR),
        Some(Fields::Minute | Fields::DayToMinute | Fields::HourToMinute) => {
            whole(MICROS_PER_MINUTE)
        }
        Some(
            Fields::Second | Fields::DayToSecond | Fields::HourToSecond | Fields::MinuteToSecond,
        )
        | None => interval,
    };
    let microseconds = round_second(fitting.microseconds, modifier & 0xffff);
    Interval { microseconds, ..fitting }
}

/// Returns a bit string coerced to the length of its type.
fn fit_bits(bits: &Bits, to: &SqlType, explicit: bool) -> Result<Bits> {
    let length = usize::try_from(to.modifier).unwrap_or(0);
    match to.base {
        DataType::Varbit if bits.len() <= length => Ok(bits.clone()),
        DataType::Varbit if !explicit => {
            bail!(STRING_DATA_RIGHT_TRUNCATION: "bit string too long for type bit varying({length})")
        }
        DataType::Bit if bits.len() != length && !explicit => {
            let found = bits.len();
            bail!(STRING_DATA_LENGTH_MISMATCH: "bit string length {found} does not match type bit({length})")
        }
        _ => Ok(bits.resized(length)),
    }
}

/// Returns the prefix of a string that fits the length of a `varchar(n)` or `char(n)`, `None` if
/// the string fits. Only blanks can be truncated unless the cast is explicit.
fn fit<'a>(string: &'a str, to: &SqlType, explicit: bool) -> Result<Option<&'a str>> {
    let length = usize::try_from(to.modifier - 4).unwrap_or(0);
    if string.len() <= length {
        return Ok(None);
    }
    let Some((end, _)) = string.char_indices().nth(length) else {
        return Ok(None);
    };
    if explicit || string[end..].bytes().all(|byte| byte == b' ') {
        return Ok(Some(&string[..end]));
    }
    bail!(STRING_DATA_RIGHT_TRUNCATION: "value too long for type {}({length})", to.base.sql_name())
}

/// Rounds microseconds to a number of digits of the second, halves away from zero; infinities are
/// unchanged.
pub(crate) fn round_second(microseconds: i64, digits: i32) -> i64 {
    if digits >= 6 || microseconds == i64::MAX || microseconds == i64::MIN {
        return microseconds;
    }
    let unit = 10_i64.pow(6 - digits.max(0).unsigned_abs());
    let half = if microseconds >= 0 { unit / 2 } else { -(unit / 2) };
    microseconds.saturating_add(half) / unit * unit
}
