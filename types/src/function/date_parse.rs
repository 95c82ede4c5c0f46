//! Parsing of dates and timestamps by a template: `to_date('31.12.2024', 'DD.MM.YYYY')`.
//!
//! Source: PostgreSQL's formatting.c (`DCH_from_char`, `do_to_timestamp`). The parsed fields
//! ([`ParsedFields`]) are combined to a date and a time.

use super::argument::text;
use super::date_fields::{DateFieldReader, ParsedFields};
use super::date_template::{FieldKinds, named};
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, Date, Text, Time, Timestamp, Timestamptz, Timetz};
use crate::datatype::SqlType;
use crate::datetime::{self, CivilTime, MICROS_PER_SECOND, TimeZone};
use crate::datum::{Datum, Nested};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::modifier;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("to_date", &[Text, Text], Date, to_date).stable(),
    row("to_timestamp", &[Text, Text], Timestamptz, to_timestamp).stable(),
];

/// A parsed date and time.
struct ParsedTime {
    year: i32,
    month: i32,
    day: i32,
    /// Microseconds since midnight.
    time: i64,
    /// Seconds east of UTC, if the input has an offset.
    offset: Option<i32>,
    /// Digits of fractional seconds; 0 for all.
    fraction_digits: i32,
}

fn to_date(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let input = text(&arguments[0]);
    let pace = &mut context.pace();
    let moment = moment(input, text(&arguments[1]), pace, DateFieldReader::new)?;
    let days = days(&moment);
    if !(datetime::DATE_MIN..=datetime::DATE_MAX).contains(&days) {
        bail!(DATETIME_FIELD_OVERFLOW: "date out of range: \"{input}\"");
    }
    Ok(Datum::Date(days))
}

/// `to_timestamp(text, text)`
pub(super) fn to_timestamp(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let pace = &mut context.pace();
    let moment = moment(text(&arguments[0]), text(&arguments[1]), pace, DateFieldReader::new)?;
    let local = local(&moment)?;
    let zone = moment.offset.map(TimeZone::fixed);
    let zone = zone.as_ref().unwrap_or(&context.style.time_zone);
    let at = datetime::local_to_timestamptz(local, zone).map(Datum::Timestamptz)?;
    rounded(at, &Timestamptz, &moment)
}

/// Returns the local time in microseconds since 2000.
fn local(moment: &ParsedTime) -> Result<i64> {
    let midnight = datetime::civil_from_days(days(moment));
    let civil =
        CivilTime { year: midnight.0, month: midnight.1, day: midnight.2, ..Default::default() };
    let out_of_range = || err!(DATETIME_FIELD_OVERFLOW: "timestamp out of range");
    Ok(datetime::timestamp_from_civil(&civil).ok_or_else(out_of_range)? + moment.time)
}

/// Rounds to the precision of `FF`.
fn rounded(value: Datum, data_type: &DataType, moment: &ParsedTime) -> Result<Datum> {
    match moment.fraction_digits {
        0 => Ok(value),
        digits => modifier::apply(value, &SqlType::new(data_type.clone(), digits), false),
    }
}

/// Parses a string by a template of SQL/JSON, whose fields determine the type. Returns the value,
/// and its offset in seconds east.
///
/// Source: PostgreSQL's `parse_datetime`.
pub(super) fn standard(
    input: &str,
    template: &str,
    pace: &mut InterruptPacer<'_>,
) -> Result<(Datum, i32)> {
    let moment = moment(input, template, pace, DateFieldReader::for_json_template)?;
    let invalid = |message: &str| err!(INVALID_DATETIME_FORMAT: message);
    let FieldKinds { date, time, zone } = named(template, pace)?;
    let offset = |of: &str| {
        let missing = format!("missing time zone in input string for type {of}");
        moment.offset.ok_or_else(|| invalid(&missing))
    };
    match (date, time, zone) {
        (true, true, true) => {
            let offset = offset("timestamptz")?;
            let at = datetime::local_to_timestamptz(local(&moment)?, &TimeZone::fixed(offset))?;
            Ok((rounded(Datum::Timestamptz(at), &Timestamptz, &moment)?, offset))
        }
        (true, true, false) => {
            Ok((rounded(Datum::Timestamp(local(&moment)?), &Timestamp, &moment)?, 0))
        }
        (true, false, true) => Err(invalid("datetime format is zoned but not timed")),
        (true, false, false) => {
            local(&moment)?;
            Ok((Datum::Date(days(&moment)), 0))
        }
        (false, true, true) => {
            let offset = offset("timetz")?;
            let time = Datum::Nested(Nested::Timetz { time: moment.time, west: -offset });
            Ok((rounded(time, &Timetz, &moment)?, offset))
        }
        (false, true, false) => Ok((rounded(Datum::Time(moment.time), &Time, &moment)?, 0)),
        (false, false, _) => Err(invalid("datetime format is not dated and not timed")),
    }
}

fn days(moment: &ParsedTime) -> i32 {
    let first = datetime::days_from_civil(moment.year, moment.month.unsigned_abs(), 1);
    first.saturating_add(moment.day - 1)
}

fn moment<'a>(
    input: &'a str,
    template: &str,
    pace: &mut InterruptPacer<'_>,
    reader: fn(&'a str) -> DateFieldReader<'a>,
) -> Result<ParsedTime> {
    let parts = reader(input).run(template, pace)?;
    let time = time(&parts, input)?;
    let (year, month, day) = date(&parts, input)?;
    let offset = offset(&parts, input)?;
    let fraction_digits = parts.fraction_digits;
    Ok(ParsedTime { year, month, day, time, offset, fraction_digits })
}

fn field_overflow(input: &str) -> Error {
    err!(DATETIME_FIELD_OVERFLOW: "date/time field value out of range: \"{input}\"")
}

fn time(parts: &ParsedFields, input: &str) -> Result<i64> {
    let or = |value: i32, otherwise: i32| if value == 0 { otherwise } else { value };
    let mut hour = or(parts.hh, parts.ssss / 3600);
    let minute = or(parts.mi, parts.ssss / 60 % 60);
    let second = or(parts.ss, parts.ssss % 60);
    if parts.twelve_hours {
        if !(1..=12).contains(&hour) {
            bail!(INVALID_DATETIME_FORMAT: "hour \"{hour}\" is invalid for the 12-hour clock";
                hint "Use the 24-hour clock, or give an hour between 1 and 12.");
        }
        if parts.pm != 0 && hour < 12 {
            hour += 12;
        } else if parts.pm == 0 && hour == 12 {
            hour = 0;
        }
    }
    let micros = i64::from(parts.ms) * 1000 + i64::from(parts.us);
    let fits = (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && (0..MICROS_PER_SECOND).contains(&micros);
    if !fits {
        return Err(field_overflow(input));
    }
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    Ok(seconds * MICROS_PER_SECOND + micros)
}

/// Returns the astronomical year, if the input has one.
fn year(parts: &ParsedFields) -> Option<i32> {
    let century = if parts.bc != 0 { -parts.cc } else { parts.cc };
    if parts.year != 0 {
        if parts.cc != 0 && parts.year_digits <= 2 {
            // The last two digits of a year in that century; the 21st begins in 2001.
            let low = parts.year % 100;
            return Some(match (low, century) {
                (0, 0..) => century * 100,
                (0, _) => century * 100 + 1,
                (_, 0..) => low + (century - 1) * 100,
                _ => (century + 1) * 100 - low + 1,
            });
        }
        let year = if parts.bc != 0 { -parts.year } else { parts.year };
        return Some(if year < 0 { year + 1 } else { year });
    }
    match (parts.cc, century) {
        (0, _) => None,
        (_, 0..) => Some((century - 1) * 100 + 1),
        _ => Some(century * 100 + 1),
    }
}

/// Returns year, month and day.
fn date(parts: &ParsedFields, input: &str) -> Result<(i32, i32, i32)> {
    let read_year = year(parts);
    let (mut year, mut month, mut day) = (read_year.unwrap_or(0), 1, 1);
    let mut known = (read_year.is_some(), false, false);
    let mut day_of_year = parts.ddd;
    if parts.j != 0 {
        let epoch = i64::from(datetime::EPOCH_JULIAN_DAY);
        (year, month, day) = civil(i64::from(parts.j) - epoch);
        known = (true, true, true);
    }
    if parts.ww != 0 {
        if parts.iso {
            let monday = iso_start(year) + (i64::from(parts.ww) - 1) * 7;
            // Sunday is 1 here, but the last day of an ISO week.
            let weekday = match parts.d {
                0 => 0,
                1 => 6,
                other => i64::from(other) - 2,
            };
            (year, month, day) = civil(monday + weekday);
            known = (true, true, true);
        } else {
            day_of_year = (parts.ww - 1) * 7 + 1;
        }
    }
    let day_of_month = if parts.w != 0 { (parts.w - 1) * 7 + 1 } else { parts.dd };
    if day_of_month != 0 {
        (day, known.2) = (day_of_month, true);
    }
    if parts.mm != 0 {
        (month, known.1) = (parts.mm, true);
    }
    if day_of_year != 0 && (month <= 1 || day <= 1) {
        if year == 0 && parts.bc == 0 {
            bail!(INVALID_DATETIME_FORMAT: "cannot calculate day of year without year information");
        }
        if parts.iso {
            (year, month, day) = civil(iso_start(year) + i64::from(day_of_year) - 1);
            known = (true, true, true);
        } else {
            let (of_year, of_month) = month_of(year, day_of_year);
            month = if month <= 1 { of_year } else { month };
            day = if day <= 1 { of_month } else { day };
            (known.1, known.2) = (true, true);
        }
    }
    let wrong = known.1 && !(1..=12).contains(&month)
        || known.2 && !(1..=31).contains(&day)
        || known == (true, true, true)
            && day.unsigned_abs() > datetime::days_in_month(year, month.unsigned_abs());
    if wrong {
        return Err(field_overflow(input));
    }
    Ok((year, month, day))
}

fn civil(days: i64) -> (i32, i32, i32) {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    let (year, month, day) = datetime::civil_from_days(days);
    (year, month.cast_signed(), day.cast_signed())
}

/// Returns the month and the day of the month of a day of the year; month 13 if it is beyond the
/// end.
fn month_of(year: i32, day_of_year: i32) -> (i32, i32) {
    let mut left = day_of_year;
    for month in 1..=12 {
        let length = datetime::days_in_month(year, month).cast_signed();
        if left <= length {
            return (month.cast_signed(), left);
        }
        left -= length;
    }
    (13, left)
}

/// Returns the first day of the first ISO week of a year.
fn iso_start(year: i32) -> i64 {
    let fourth = datetime::days_from_civil(year, 1, 4);
    i64::from(fourth) - (i64::from(datetime::day_of_week(fourth)) + 6) % 7
}

fn offset(parts: &ParsedFields, input: &str) -> Result<Option<i32>> {
    if parts.zone_sign == 0 {
        return Ok(None);
    }
    if !(0..=15).contains(&parts.tzh) || !(0..60).contains(&parts.tzm) {
        bail!(INVALID_TIME_ZONE_DISPLACEMENT_VALUE: "time zone displacement out of range: \"{input}\"");
    }
    Ok(Some(parts.zone_sign * (parts.tzh * 3600 + parts.tzm * 60)))
}
