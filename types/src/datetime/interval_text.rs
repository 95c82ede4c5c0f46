//! Reading intervals: PostgreSQL's `1 year 2 mons 3 days 04:05:06 ago`, SQL's `1-2 3 04:05:06` and
//! ISO 8601's `P1Y2M3DT4H5M6S`.
//!
//! As in PostgreSQL's `DecodeInterval` the tokens are read from the last to the first, so that a
//! unit is known before its number.

use super::field::Field;
use super::interval::Interval;
use super::parse::{Failure, clock_fields};
use super::token::{Shape, Token, tokens};
use super::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::error::Error;
use crate::error::Result;

type Step<T> = std::result::Result<T, Failure>;

/// An interval being put together.
#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i128,
    /// The fields that have been given, as bits by [`Field`].
    given: u32,
}

impl Sum {
    fn mark(&mut self, fields: &[Field]) -> Step<()> {
        let bits = fields.iter().fold(0, |bits, field| bits | 1 << *field as u32);
        if self.given & bits != 0 {
            return Err(Failure::BadFormat);
        }
        self.given |= bits;
        Ok(())
    }

    fn add_days(&mut self, days: f64) {
        self.days = self.days.saturating_add(days as i64);
        self.micros += (days.fract() * MICROS_PER_DAY as f64).round_ties_even() as i128;
    }

    fn add_months(&mut self, months: i64) {
        self.months = self.months.saturating_add(months);
    }

    /// Adds `whole + fraction` of a unit.
    fn add(&mut self, field: Field, whole: i64, fraction: f64) -> Step<()> {
        let time = |unit: i64| {
            i128::from(whole) * i128::from(unit)
                + (fraction * unit as f64).round_ties_even() as i128
        };
        let months = |unit: i64| {
            let part = (fraction * unit as f64).round_ties_even() as i64;
            whole.checked_mul(unit).and_then(|m| m.checked_add(part)).ok_or(Failure::FieldOverflow)
        };
        match field {
            Field::Microseconds => self.micros += time(1),
            Field::Milliseconds => self.micros += time(1000),
            Field::Second => self.micros += time(MICROS_PER_SECOND),
            Field::Minute => self.micros += time(MICROS_PER_MINUTE),
            Field::Hour => self.micros += time(MICROS_PER_HOUR),
            Field::Day => {
                self.days = self.days.saturating_add(whole);
                self.micros += (fraction * MICROS_PER_DAY as f64).round_ties_even() as i128;
            }
            Field::Week => {
                let days = whole.checked_mul(7).ok_or(Failure::FieldOverflow)?;
                self.days = self.days.saturating_add(days);
                self.add_days(fraction * 7.0);
            }
            Field::Month => {
                self.add_months(whole);
                self.add_days(fraction * 30.0);
            }
            Field::Year => self.add_months(months(12)?),
            Field::Decade => self.add_months(months(120)?),
            Field::Century => self.add_months(months(1200)?),
            Field::Millennium => self.add_months(months(12_000)?),
            _ => return Err(Failure::BadFormat),
        }
        Ok(())
    }

    fn add_clock(&mut self, text: &str, negative: bool) -> Step<()> {
        let (hour, minute, second, micros) = clock_fields(text)?;
        if minute > 59 || second > 60 {
            return Err(Failure::FieldOverflow);
        }
        let time = i128::from(hour) * i128::from(MICROS_PER_HOUR)
            + i128::from(minute * MICROS_PER_MINUTE + second * MICROS_PER_SECOND + micros);
        self.micros += if negative { -time } else { time };
        Ok(())
    }

    fn finish(&self, ago: bool) -> Step<Interval> {
        let sign: i128 = if ago { -1 } else { 1 };
        let small = |value: i64| {
            i32::try_from(i128::from(value) * sign).map_err(|_| Failure::FieldOverflow)
        };
        let micros = self.micros * sign;
        let years = self.given & (1 << Field::Year as u32) != 0;
        Ok(Interval {
            months: small(self.months)
                .map_err(|failure| if years { Failure::IntervalRange } else { failure })?,
            days: small(self.days)?,
            microseconds: i64::try_from(micros).map_err(|_| Failure::FieldOverflow)?,
        })
    }
}

/// Returns the unit of a word as intervals know it.
fn unit(word: &str) -> Option<Field> {
    let field = Field::from_name(word)?;
    let known = matches!(
        field,
        Field::Microseconds
            | Field::Milliseconds
            | Field::Second
            | Field::Minute
            | Field::Hour
            | Field::Day
            | Field::Week
            | Field::Month
            | Field::Year
            | Field::Decade
            | Field::Century
            | Field::Millennium
    );
    known.then_some(field)
}

/// Splits a signed decimal number into whole and fraction, both with its sign.
fn number(text: &str) -> Step<(i64, f64)> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
    let negative = whole.starts_with('-');
    let digits = whole.trim_start_matches(['-', '+']);
    let value: i64 = match (digits.is_empty(), fraction) {
        (true, None | Some("")) => return Err(Failure::BadFormat),
        (true, Some(_)) => 0,
        (false, _) if !digits.bytes().all(|c| c.is_ascii_digit()) => {
            return Err(Failure::BadFormat);
        }
        (false, _) => digits.parse().map_err(|_| Failure::FieldOverflow)?,
    };
    let part: f64 = match fraction {
        None | Some("") => 0.0,
        Some(digits) if digits.bytes().all(|c| c.is_ascii_digit()) => {
            format!("0.{digits}").parse().map_err(|_| Failure::BadFormat)?
        }
        Some(_) => return Err(Failure::BadFormat),
    };
    Ok(if negative { (-value, -part) } else { (value, part) })
}

/// Takes a number, or SQL's years and months.
fn take_number(text: &str, field: Field, sum: &mut Sum) -> Step<Field> {
    let unsigned = text.trim_start_matches(['-', '+']);
    if let Some((years, months)) = unsigned.split_once('-') {
        let years: i64 = years.parse().map_err(|_| Failure::BadFormat)?;
        let months: i64 = months.parse().map_err(|_| Failure::BadFormat)?;
        if months >= 12 {
            return Err(Failure::FieldOverflow);
        }
        sum.mark(&[Field::Year, Field::Month])?;
        let total = years.checked_mul(12).and_then(|total| total.checked_add(months));
        let total = total.ok_or(Failure::FieldOverflow)?;
        sum.add_months(if text.starts_with('-') { -total } else { total });
        return Ok(Field::Month);
    }
    let (whole, fraction) = number(text)?;
    sum.mark(&[field])?;
    sum.add(field, whole, fraction)?;
    Ok(field)
}

fn decode(tokens: &[Token]) -> Step<Interval> {
    let clock = [Field::Hour, Field::Minute, Field::Second];
    let mut sum = Sum::default();
    let mut field = Field::Second;
    let mut ago = false;
    for token in tokens.iter().rev() {
        let text = token.text.as_str();
        match token.shape {
            Shape::Time => {
                sum.mark(&clock)?;
                sum.add_clock(text, false)?;
                field = Field::Day;
            }
            Shape::Signed if text.contains(':') => {
                sum.mark(&clock)?;
                sum.add_clock(&text[1..], text.starts_with('-'))?;
                field = Field::Day;
            }
            Shape::Signed | Shape::Date | Shape::Number => {
                field = take_number(text, field, &mut sum)?;
            }
            Shape::Word if text == "ago" => ago = true,
            Shape::Word => field = unit(text).ok_or(Failure::BadFormat)?,
        }
    }
    if sum.given == 0 {
        return Err(Failure::BadFormat);
    }
    sum.finish(ago)
}

/// Reads the designators of ISO 8601: `1Y2M3DT4H5M6S`, or the form `0001-02-03T04:05:06`.
fn decode_iso(text: &str) -> Step<Interval> {
    let mut sum = Sum::default();
    let mut rest = text;
    let mut in_time = false;
    let mut found = false;
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix(['T', 't']) {
            if in_time {
                return Err(Failure::BadFormat);
            }
            in_time = true;
            rest = tail;
            continue;
        }
        let sign = usize::from(rest.starts_with(['-', '+']));
        let end = rest[sign..]
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .map_or(rest.len(), |at| at + sign);
        let (whole, fraction) = number(&rest[..end])?;
        let designator = rest[end..].chars().next();
        let field = match (designator.map(|c| c.to_ascii_uppercase()), in_time) {
            (Some('Y'), false) => Field::Year,
            (Some('M'), false) => Field::Month,
            (Some('W'), false) => Field::Week,
            (Some('D'), false) => Field::Day,
            (Some('H'), true) => Field::Hour,
            (Some('M'), true) => Field::Minute,
            (Some('S'), true) => Field::Second,
            (Some('-'), false) if !found => return decode_iso_alternative(text),
            (Some(':'), true) => {
                sum.add_clock(rest.trim_start_matches('-'), rest.starts_with('-'))?;
                return sum.finish(false);
            }
            _ => return Err(Failure::BadFormat),
        };
        sum.add(field, whole, fraction)?;
        found = true;
        rest = &rest[end + 1..];
    }
    if found { sum.finish(false) } else { Err(Failure::BadFormat) }
}

/// Reads `YYYY-MM-DD[Thh:mm:ss]`.
fn decode_iso_alternative(text: &str) -> Step<Interval> {
    let (date, time) = match text.split_once(['T', 't']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut sum = Sum::default();
    let mut fields = [Field::Year, Field::Month, Field::Day].into_iter();
    for part in date.split('-') {
        let (whole, fraction) = number(part)?;
        sum.add(fields.next().ok_or(Failure::BadFormat)?, whole, fraction)?;
    }
    if let Some(time) = time {
        sum.add_clock(time, false)?;
    }
    sum.finish(false)
}

/// Reads an interval.
pub(crate) fn parse_interval(text: &str) -> Result<Interval> {
    let trimmed = text.trim();
    let iso = trimmed.strip_prefix(['P', 'p']).filter(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, 'T' | 't' | '-' | '+' | '.'))
    });
    let read = match iso {
        Some(rest) => decode_iso(rest),
        None => tokens(text).ok_or(Failure::BadFormat).and_then(|tokens| decode(&tokens)),
    };
    read.map_err(|failure| match failure {
        Failure::FieldOverflow => {
            Error::new("22015", format!("interval field value out of range: \"{text}\""))
        }
        other => other.error("interval", text),
    })
}
