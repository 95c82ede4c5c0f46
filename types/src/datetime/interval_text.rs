//! Parser of intervals: PostgreSQL's `1 year 2 mons 3 days 04:05:06 ago`, SQL's `1-2 3 04:05:06`
//! and ISO 8601's `P1Y2M3DT4H5M6S`.
//!
//! As in PostgreSQL's `DecodeInterval`, tokens are parsed from the last to the first, so that a
//! unit is known before its number. Text that fails is parsed as ISO 8601.

use super::decode::{ClockTime, DatetimeError, Step, leading_integer};
use super::field::Field;
use super::interval::Interval;
use super::style::IntervalStyle;
use super::token::{DateToken, TokenKind, tokens};
use super::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::datatype::IntervalFields;
use crate::error::Error;
use crate::error::Result;

/// The sum of the interval's parts.
#[derive(Default)]
struct Sum {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

fn small(value: i64) -> Option<i32> {
    i32::try_from(value).ok()
}

impl Sum {
    fn add_fraction(&mut self, fraction: f64, unit: i64) -> Option<()> {
        let exact = fraction * unit as f64;
        let whole = exact as i64;
        let rest = exact - whole as f64;
        let rounded = whole + i64::from(rest > 0.5) - i64::from(rest < -0.5);
        self.micros = self.micros.checked_add(rounded)?;
        Some(())
    }

    fn add_time(&mut self, whole: i64, fraction: f64, unit: i64) -> Option<()> {
        self.micros = self.micros.checked_add(whole.checked_mul(unit)?)?;
        self.add_fraction(fraction, unit)
    }

    fn add_days(&mut self, whole: i64, scale: i32) -> Option<()> {
        self.days = self.days.checked_add(small(whole)?.checked_mul(scale)?)?;
        Some(())
    }

    /// Adds a fraction of a unit of `scale` days.
    fn add_part_of_days(&mut self, fraction: f64, scale: i32) -> Option<()> {
        let exact = fraction * f64::from(scale);
        let whole = exact as i32;
        self.days = self.days.checked_add(whole)?;
        self.add_fraction(exact - f64::from(whole), MICROS_PER_DAY)
    }

    fn add_months(&mut self, whole: i64) -> Option<()> {
        self.months = self.months.checked_add(small(whole)?)?;
        Some(())
    }

    fn add_years(&mut self, whole: i64, fraction: f64, scale: i32) -> Option<()> {
        self.years = self.years.checked_add(small(whole)?.checked_mul(scale)?)?;
        let months = (fraction * f64::from(scale) * 12.0).round_ties_even() as i32;
        self.months = self.months.checked_add(months)?;
        Some(())
    }

    /// Adds `whole + fraction` of a unit; `None` on overflow.
    fn add(&mut self, field: Field, whole: i64, fraction: f64) -> Option<()> {
        match field {
            Field::Microseconds => self.add_time(whole, fraction, 1),
            Field::Milliseconds => self.add_time(whole, fraction, 1000),
            Field::Second => self.add_time(whole, fraction, MICROS_PER_SECOND),
            Field::Minute => self.add_time(whole, fraction, MICROS_PER_MINUTE),
            Field::Hour => self.add_time(whole, fraction, MICROS_PER_HOUR),
            Field::Day => {
                self.add_days(whole, 1)?;
                self.add_fraction(fraction, MICROS_PER_DAY)
            }
            Field::Week => {
                self.add_days(whole, 7)?;
                self.add_part_of_days(fraction, 7)
            }
            Field::Month => {
                self.add_months(whole)?;
                self.add_part_of_days(fraction, 30)
            }
            Field::Decade => self.add_years(whole, fraction, 10),
            Field::Century => self.add_years(whole, fraction, 100),
            Field::Millennium => self.add_years(whole, fraction, 1000),
            _ => self.add_years(whole, fraction, 1),
        }
    }

    fn negated(&self) -> Option<Sum> {
        Some(Sum {
            years: self.years.checked_neg()?,
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }

    fn finish(&self) -> Step<Interval> {
        let months = i64::from(self.years) * 12 + i64::from(self.months);
        let months = small(months).ok_or(DatetimeError::IntervalRange)?;
        Ok(Interval { months, days: self.days, microseconds: self.micros })
    }
}

/// Returns the unit of a word, if intervals support it.
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

/// Parses a time with colons, without a sign.
fn clock(text: &str, fields: Option<IntervalFields>) -> Step<i64> {
    let clock = ClockTime::read(text, fields == Some(IntervalFields::MinuteToSecond))?;
    let micros = i64::from(clock.minute) * MICROS_PER_MINUTE
        + i64::from(clock.second) * MICROS_PER_SECOND
        + clock.micros;
    let hours = clock.hour.checked_mul(MICROS_PER_HOUR);
    hours.and_then(|hours| hours.checked_add(micros)).ok_or(DatetimeError::FieldOverflow)
}

/// A signed number with a fraction, or SQL's years and months.
enum Number {
    Plain(i64, f64),
    Months(i64),
}

fn number(text: &str) -> Step<Number> {
    let digits = text.trim_start_matches(['-', '+']);
    let negative = text.starts_with('-');
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let sign = if negative { -1 } else { 1 };
    let whole: i64 = match &digits[..end] {
        "" if text.starts_with(['-', '+']) => return Err(DatetimeError::BadFormat),
        "" => 0,
        digits => {
            let minus = if negative { "-" } else { "" };
            format!("{minus}{digits}").parse().map_err(|_| DatetimeError::FieldOverflow)?
        }
    };
    let rest = &digits[end..];
    match rest.chars().next() {
        None => Ok(Number::Plain(whole, 0.0)),
        Some('.') => {
            let fraction = match rest.len() {
                1 => 0.0,
                _ => rest.parse::<f64>().map_err(|_| DatetimeError::BadFormat)?,
            };
            Ok(Number::Plain(whole, fraction * sign as f64))
        }
        Some('-') => {
            let (months, rest) = leading_integer(&rest[1..])?;
            if months >= 12 {
                return Err(DatetimeError::FieldOverflow);
            }
            if !rest.is_empty() {
                return Err(DatetimeError::BadFormat);
            }
            let years = whole.checked_mul(12).ok_or(DatetimeError::FieldOverflow)?;
            Ok(Number::Months(years + i64::from(months) * sign))
        }
        Some(_) => Err(DatetimeError::BadFormat),
    }
}

/// Parser state of an interval.
#[derive(Default)]
struct Reader {
    sum: Sum,
    /// The fields that were found, as bits by [`Field`].
    given: u32,
    /// The unit of the next number.
    unit: Option<Field>,
    ago: bool,
    /// SQL standard style: the first sign applies to all fields.
    negative: bool,
    /// The fields of the interval type.
    fields: Option<IntervalFields>,
}

impl Reader {
    fn give(&mut self, fields: &[Field]) -> Step<()> {
        let bits = fields.iter().fold(0, |bits, field| bits | 1 << *field as u32);
        if self.given & bits != 0 {
            return Err(DatetimeError::BadFormat);
        }
        self.given |= bits;
        Ok(())
    }

    fn take_clock(&mut self, micros: i64) -> Step<()> {
        // A time replaces the time part that was found before.
        self.sum.micros = if self.negative { -micros.abs() } else { micros };
        self.unit = Some(Field::Day);
        self.give(&[
            Field::Hour,
            Field::Minute,
            Field::Second,
            Field::Milliseconds,
            Field::Microseconds,
        ])
    }

    fn take_number(&mut self, text: &str) -> Step<()> {
        let mut field = match self.unit {
            Some(field) => field,
            None if self.ago => return Err(DatetimeError::BadFormat),
            None => last_field(self.fields),
        };
        let (mut whole, mut fraction) = match number(text)? {
            Number::Plain(whole, fraction) => (whole, fraction),
            Number::Months(months) => {
                field = Field::Month;
                (months, 0.0)
            }
        };
        if self.negative {
            (whole, fraction) = (whole.min(-whole.saturating_abs()), -fraction.abs());
        }
        self.sum.add(field, whole, fraction).ok_or(DatetimeError::FieldOverflow)?;
        self.unit = Some(if field == Field::Hour { Field::Day } else { field });
        match field {
            Field::Second if fraction != 0.0 => {
                self.give(&[Field::Second, Field::Milliseconds, Field::Microseconds])
            }
            field => self.give(&[field]),
        }
    }

    fn take(&mut self, token: &DateToken) -> Step<()> {
        let text = token.text.as_str();
        match token.shape {
            TokenKind::Time => self.take_clock(clock(text, self.fields)?),
            TokenKind::Signed => {
                let time =
                    text.contains(':').then(|| clock(&text[1..], self.fields).ok()).flatten();
                match time {
                    Some(micros) if text.starts_with('-') => self.take_clock(-micros),
                    Some(micros) => self.take_clock(micros),
                    None => self.take_number(text),
                }
            }
            TokenKind::Date | TokenKind::Number => self.take_number(text),
            TokenKind::Word if text == "ago" => {
                self.ago = true;
                self.unit = None;
                Ok(())
            }
            TokenKind::Word => {
                self.unit = Some(unit(text).ok_or(DatetimeError::BadFormat)?);
                Ok(())
            }
        }
    }
}

fn decode(tokens: &[DateToken], style: IntervalStyle, fields: Option<IntervalFields>) -> Step<Sum> {
    let mut reader = Reader { fields, ..Reader::default() };
    if let [first, others @ ..] = tokens
        && style == IntervalStyle::SqlStandard
    {
        reader.negative = first.text.starts_with('-')
            && !others.iter().any(|token| token.text.starts_with(['-', '+']));
    }
    for token in tokens.iter().rev() {
        reader.take(token)?;
    }
    if reader.given == 0 {
        return Err(DatetimeError::BadFormat);
    }
    match reader.ago {
        true => reader.sum.negated().ok_or(DatetimeError::FieldOverflow),
        false => Ok(reader.sum),
    }
}

/// Parser of ISO 8601 text.
struct Iso<'a> {
    rest: &'a str,
}

impl Iso<'_> {
    /// Parses a number: its integer part, its fraction, and the number of digits.
    fn number(&mut self) -> Step<(i64, f64, usize)> {
        if !self.rest.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.')) {
            return Err(DatetimeError::BadFormat);
        }
        let sign = usize::from(self.rest.starts_with('-'));
        let is_digit = |c: char| c.is_ascii_digit() || c == '.';
        let end = self.rest[sign..].find(|c| !is_digit(c)).map_or(self.rest.len(), |at| at + sign);
        let end = end + exponent_length(&self.rest[end..]);
        let digits = self.rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let value: f64 = self.rest[..end].parse().map_err(|_| DatetimeError::BadFormat)?;
        if !(-1.0e15..=1.0e15).contains(&value) {
            return Err(DatetimeError::FieldOverflow);
        }
        self.rest = &self.rest[end..];
        Ok((value.trunc() as i64, value.fract(), digits))
    }

    /// Consumes a character; `None` at the end.
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Adds the numbers of fields separated by `separator`, after the first one; returns true if
    /// a time follows.
    fn separated(
        &mut self,
        (separator, fields): (char, &[Field]),
        first: (i64, f64),
        sum: &mut Sum,
    ) -> Step<bool> {
        let (mut whole, mut fraction) = first;
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                (whole, fraction, _) = self.number()?;
            }
            sum.add(*field, whole, fraction).ok_or(DatetimeError::FieldOverflow)?;
            let last = index + 1 == fields.len();
            match if index == 0 { Some(separator) } else { self.next() } {
                None => return Ok(false),
                Some('T') if separator == '-' => return Ok(true),
                Some(found) if found == separator && !last => {}
                Some(_) => return Err(DatetimeError::BadFormat),
            }
        }
        Ok(false)
    }
}

/// Returns the length of the exponent at the start of a text, as `strtod` parses it.
fn exponent_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['e', 'E']) else { return 0 };
    let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    match unsigned.bytes().take_while(u8::is_ascii_digit).count() {
        0 => 0,
        digits => text.len() - unsigned.len() + digits,
    }
}

/// Parses `P1Y2M3DT4H5M6S`, `P00010203T040506` or `P0001-02-03T04:05:06`.
fn decode_iso(text: &str) -> Step<Sum> {
    const DATE: (char, &[Field]) = ('-', &[Field::Year, Field::Month, Field::Day]);
    const TIME: (char, &[Field]) = (':', &[Field::Hour, Field::Minute, Field::Second]);
    let rest = text.strip_prefix('P').filter(|rest| !rest.is_empty());
    let mut iso = Iso { rest: rest.ok_or(DatetimeError::BadFormat)? };
    let mut sum = Sum::default();
    let (mut in_time, mut has_field) = (false, false);
    while !iso.rest.is_empty() {
        if iso.rest.starts_with('T') {
            iso.next();
            (in_time, has_field) = (true, false);
            continue;
        }
        let (whole, fraction, digits) = iso.number()?;
        let designator = iso.next();
        let field = match (designator, in_time) {
            (Some('Y'), false) => Field::Year,
            (Some('M'), false) => Field::Month,
            (Some('W'), false) => Field::Week,
            (Some('D'), false) => Field::Day,
            (Some('H'), true) => Field::Hour,
            (Some('M'), true) => Field::Minute,
            (Some('S'), true) => Field::Second,
            (None | Some('T' | '-'), false) | (None | Some(':'), true) if has_field => {
                return Err(DatetimeError::BadFormat);
            }
            (None | Some('T'), false) if digits == 8 => {
                let parts = [(Field::Year, whole / 10_000), (Field::Month, whole / 100 % 100)];
                for (field, value) in parts {
                    sum.add(field, value, 0.0).ok_or(DatetimeError::FieldOverflow)?;
                }
                sum.add(Field::Day, whole % 100, fraction).ok_or(DatetimeError::FieldOverflow)?;
                in_time = true;
                continue;
            }
            (None, true) if digits == 6 => {
                let parts = [(Field::Hour, whole / 10_000), (Field::Minute, whole / 100 % 100)];
                for (field, value) in parts {
                    sum.add(field, value, 0.0).ok_or(DatetimeError::FieldOverflow)?;
                }
                sum.add(Field::Second, whole % 100, 0.0).ok_or(DatetimeError::FieldOverflow)?;
                sum.add_fraction(fraction, 1).ok_or(DatetimeError::FieldOverflow)?;
                return Ok(sum);
            }
            (None | Some('T'), false) => {
                sum.add(Field::Year, whole, fraction).ok_or(DatetimeError::FieldOverflow)?;
                in_time = true;
                continue;
            }
            (None, true) => {
                sum.add(Field::Hour, whole, fraction).ok_or(DatetimeError::FieldOverflow)?;
                continue;
            }
            (Some('-'), false) => {
                in_time = iso.separated(DATE, (whole, fraction), &mut sum)?;
                if in_time {
                    continue;
                }
                return Ok(sum);
            }
            (Some(':'), true) => {
                iso.separated(TIME, (whole, fraction), &mut sum)?;
                return Ok(sum);
            }
            _ => return Err(DatetimeError::BadFormat),
        };
        sum.add(field, whole, fraction).ok_or(DatetimeError::FieldOverflow)?;
        has_field = true;
    }
    Ok(sum)
}

/// Returns the default unit of a number.
fn last_field(fields: Option<IntervalFields>) -> Field {
    match fields {
        Some(IntervalFields::Year) => Field::Year,
        Some(IntervalFields::Month | IntervalFields::YearToMonth) => Field::Month,
        Some(IntervalFields::Day) => Field::Day,
        Some(IntervalFields::Hour | IntervalFields::DayToHour) => Field::Hour,
        Some(
            IntervalFields::Minute | IntervalFields::HourToMinute | IntervalFields::DayToMinute,
        ) => Field::Minute,
        _ => Field::Second,
    }
}

/// Parses an interval; a number without a unit is in the last of the type's fields.
pub(crate) fn parse_interval(
    text: &str,
    style: IntervalStyle,
    fields: Option<IntervalFields>,
) -> Result<Interval> {
    let tokens = tokens(text).ok_or(DatetimeError::BadFormat);
    let read = match tokens.and_then(|tokens| decode(&tokens, style, fields)) {
        Err(DatetimeError::BadFormat) => decode_iso(text),
        read => read,
    };
    read.and_then(|sum| sum.finish()).map_err(|failure| match failure {
        DatetimeError::FieldOverflow => {
            err!(INTERVAL_FIELD_OVERFLOW: "interval field value out of range: \"{text}\"")
        }
        other => other.error("interval", text),
    })
}
