//! Dates and times: arithmetic, fields, truncation, construction, time zones, formatting.
//!
//! The computations are in [`crate::datetime`]; this module defines the SQL functions.

use super::argument::{
    date, float8, int4, interval, text as string, time, timestamp, timestamptz, timetz,
};
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{
    self, Bool, Date, Float8, Int4, Interval, Numeric, Text, Time, Timestamp, Timestamptz, Timetz,
};
use crate::datetime::{self, Field, MICROS_PER_DAY, MICROS_PER_SECOND, TimeZone};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::text::{self, TextStyle};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("+", &[Date, Int4], Date, date_plus_days),
    row("+", &[Int4, Date], Date, |a, c| swapped(a, c, date_plus_days)),
    row("-", &[Date, Int4], Date, date_minus_days),
    row("-", &[Date, Date], Int4, date_minus_date),
    row("+", &[Date, Interval], Timestamp, date_plus_interval),
    row("+", &[Interval, Date], Timestamp, |a, c| swapped(a, c, date_plus_interval)),
    row("-", &[Date, Interval], Timestamp, date_minus_interval),
    row("+", &[Date, Time], Timestamp, date_plus_time),
    row("+", &[Time, Date], Timestamp, |a, c| swapped(a, c, date_plus_time)),
    row("timestamp", &[Date, Time], Timestamp, date_plus_time),
    row("timestamptz", &[Date, Time], Timestamptz, |a, c| {
        let local = Datum::Timestamp(datetime::date_to_timestamp(date(&a[0]))?);
        let local = if is_infinite(&local) { local } else { date_plus_time(a, c)? };
        datetime::local_to_timestamptz(timestamp(&local), &c.style.time_zone)
            .map(Datum::Timestamptz)
    })
    .stable(),
    row("+", &[Timestamp, Interval], Timestamp, timestamp_plus_interval),
    row("+", &[Interval, Timestamp], Timestamp, |a, c| swapped(a, c, timestamp_plus_interval)),
    row("-", &[Timestamp, Interval], Timestamp, timestamp_minus_interval),
    row("+", &[Timestamptz, Interval], Timestamptz, timestamptz_plus_interval).stable(),
    row("+", &[Interval, Timestamptz], Timestamptz, |a, c| {
        swapped(a, c, timestamptz_plus_interval)
    })
    .stable(),
    row("-", &[Timestamptz, Interval], Timestamptz, timestamptz_minus_interval).stable(),
    row("-", &[Timestamp, Timestamp], Interval, timestamp_minus_timestamp),
    row("-", &[Timestamptz, Timestamptz], Interval, timestamptz_minus_timestamptz),
    row("+", &[Time, Interval], Time, time_plus_interval),
    row("+", &[Interval, Time], Time, |a, c| swapped(a, c, time_plus_interval)),
    row("-", &[Time, Interval], Time, time_minus_interval),
    row("-", &[Time, Time], Interval, time_minus_time),
    row("+", &[Interval, Interval], Interval, interval_plus_interval),
    row("-", &[Interval, Interval], Interval, interval_minus_interval),
    row("-", &[Interval], Interval, interval_negated),
    row("*", &[Interval, Float8], Interval, interval_times),
    row("*", &[Float8, Interval], Interval, |a, c| swapped(a, c, interval_times)),
    row("/", &[Interval, Float8], Interval, interval_divided),
    row("extract", &[Text, Date], Numeric, extract),
    row("extract", &[Text, Time], Numeric, extract),
    row("extract", &[Text, Timetz], Numeric, extract),
    row("extract", &[Text, Timestamp], Numeric, extract),
    row("extract", &[Text, Timestamptz], Numeric, extract).stable(),
    row("extract", &[Text, Interval], Numeric, extract),
    row("date_part", &[Text, Date], Float8, date_part),
    row("date_part", &[Text, Time], Float8, date_part),
    row("date_part", &[Text, Timetz], Float8, date_part),
    row("date_part", &[Text, Timestamp], Float8, date_part),
    row("date_part", &[Text, Timestamptz], Float8, date_part).stable(),
    row("date_part", &[Text, Interval], Float8, date_part),
    row("date_trunc", &[Text, Timestamp], Timestamp, date_trunc),
    row("date_trunc", &[Text, Timestamptz], Timestamptz, date_trunc).stable(),
    row("date_trunc", &[Text, Timestamptz, Text], Timestamptz, date_trunc_in_zone).stable(),
    row("date_trunc", &[Text, Interval], Interval, date_trunc),
    row("age", &[Timestamp, Timestamp], Interval, age),
    row("age", &[Timestamp], Interval, age_today).stable(),
    // PostgreSQL declares it immutable, although it uses the session's time zone.
    row("age", &[Timestamptz, Timestamptz], Interval, age_zoned).stable(),
    row("age", &[Timestamptz], Interval, age_zoned_today).stable(),
    row("make_date", &[Int4, Int4, Int4], Date, make_date).named(&["year", "month", "day"]),
    row("make_time", &[Int4, Int4, Float8], Time, make_time).named(&["hour", "min", "sec"]),
    row("make_timestamp", &[Int4, Int4, Int4, Int4, Int4, Float8], Timestamp, make_timestamp)
        .named(&["year", "month", "mday", "hour", "min", "sec"]),
    row("make_timestamptz", &[Int4, Int4, Int4, Int4, Int4, Float8], Timestamptz, make_timestamptz)
        .named(&["year", "month", "mday", "hour", "min", "sec"])
        .stable(),
    row(
        "make_timestamptz",
        &[Int4, Int4, Int4, Int4, Int4, Float8, Text],
        Timestamptz,
        make_timestamptz,
    )
    .named(&["year", "month", "mday", "hour", "min", "sec", "timezone"])
    .stable(),
    row("make_interval", &[], Interval, make_interval),
    row("make_interval", &[Int4], Interval, make_interval),
    row("make_interval", &[Int4, Int4], Interval, make_interval),
    row("make_interval", &[Int4, Int4, Int4], Interval, make_interval),
    row("make_interval", &[Int4, Int4, Int4, Int4], Interval, make_interval),
    row("make_interval", &[Int4, Int4, Int4, Int4, Int4], Interval, make_interval),
    row("make_interval", &[Int4, Int4, Int4, Int4, Int4, Int4], Interval, make_interval),
    row("make_interval", &[Int4, Int4, Int4, Int4, Int4, Int4, Float8], Interval, make_interval)
        .named(&["years", "months", "weeks", "days", "hours", "mins", "secs"]),
    row("to_timestamp", &[Float8], Timestamptz, to_timestamp),
    row("timezone", &[Text, Timestamp], Timestamptz, timezone_of_local),
    row("timezone", &[Text, Timestamptz], Timestamp, timezone_of_instant),
    row("timezone", &[Interval, Timestamp], Timestamptz, timezone_of_local),
    row("timezone", &[Interval, Timestamptz], Timestamp, timezone_of_instant),
    row("justify_days", &[Interval], Interval, justify_days),
    row("justify_hours", &[Interval], Interval, justify_hours),
    row("justify_interval", &[Interval], Interval, justify_interval),
    row("isfinite", &[Date], Bool, is_finite),
    row("isfinite", &[Timestamp], Bool, is_finite),
    row("isfinite", &[Timestamptz], Bool, is_finite),
    row("isfinite", &[Interval], Bool, is_finite),
    row("date_bin", &[Interval, Timestamp, Timestamp], Timestamp, date_bin),
    row("date_bin", &[Interval, Timestamptz, Timestamptz], Timestamptz, date_bin),
];

/// Calls an implementation with its two arguments exchanged.
fn swapped(
    arguments: &[Datum],
    context: &EvalContext,
    implementation: super::Implementation,
) -> Result<Datum> {
    implementation(&[arguments[1].clone(), arguments[0].clone()], context)
}

fn date_plus_days(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    datetime::date_plus_days(date(&arguments[0]), int4(&arguments[1])).map(Datum::Date)
}

fn date_minus_days(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (from, days) = (date(&arguments[0]), int4(&arguments[1]));
    match days.checked_neg() {
        Some(days) => datetime::date_plus_days(from, days).map(Datum::Date),
        None if !datetime::is_finite_date(from) => Ok(Datum::Date(from)),
        None => Err(overflow("date out of range")),
    }
}

fn date_minus_date(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (left, right) = (date(&arguments[0]), date(&arguments[1]));
    if !datetime::is_finite_date(left) || !datetime::is_finite_date(right) {
        return Err(overflow("cannot subtract infinite dates"));
    }
    Ok(Datum::Int4(left - right))
}

fn date_plus_interval(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let midnight = datetime::date_to_timestamp(date(&arguments[0]))?;
    datetime::timestamp_plus_interval(midnight, interval(&arguments[1])).map(Datum::Timestamp)
}

fn date_minus_interval(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let midnight = datetime::date_to_timestamp(date(&arguments[0]))?;
    let back = interval(&arguments[1]).checked_neg()?;
    datetime::timestamp_plus_interval(midnight, back).map(Datum::Timestamp)
}

fn date_plus_time(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let midnight = datetime::date_to_timestamp(date(&arguments[0]))?;
    if !datetime::is_finite_timestamp(midnight) {
        return Ok(Datum::Timestamp(midnight));
    }
    let at = midnight.checked_add(time(&arguments[1])).filter(|at| *at < datetime::TIMESTAMP_END);
    at.map(Datum::Timestamp).ok_or_else(|| overflow("timestamp out of range"))
}

fn timestamp_plus_interval(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    datetime::timestamp_plus_interval(timestamp(&arguments[0]), interval(&arguments[1]))
        .map(Datum::Timestamp)
}

fn timestamp_minus_interval(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let back = interval(&arguments[1]).checked_neg()?;
    datetime::timestamp_plus_interval(timestamp(&arguments[0]), back).map(Datum::Timestamp)
}

fn timestamptz_plus_interval(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (at, moved) = (timestamptz(&arguments[0]), interval(&arguments[1]));
    datetime::timestamptz_plus_interval(at, moved, &context.style.time_zone).map(Datum::Timestamptz)
}

fn timestamptz_minus_interval(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (at, back) = (timestamptz(&arguments[0]), interval(&arguments[1]).checked_neg()?);
    datetime::timestamptz_plus_interval(at, back, &context.style.time_zone).map(Datum::Timestamptz)
}

fn timestamp_minus_timestamp(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    datetime::timestamp_minus_timestamp(timestamp(&arguments[0]), timestamp(&arguments[1]))
        .map(Datum::Interval)
}

fn timestamptz_minus_timestamptz(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    datetime::timestamp_minus_timestamp(timestamptz(&arguments[0]), timestamptz(&arguments[1]))
        .map(Datum::Interval)
}

fn time_plus_interval(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    Ok(Datum::Time(datetime::time_plus_interval(time(&arguments[0]), interval(&arguments[1]))))
}

fn time_minus_interval(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let within_day = interval(&arguments[1]).microseconds % MICROS_PER_DAY;
    let back = datetime::Interval::new(0, 0, -within_day);
    Ok(Datum::Time(datetime::time_plus_interval(time(&arguments[0]), back)))
}

fn time_minus_time(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let difference = time(&arguments[0]) - time(&arguments[1]);
    Ok(Datum::Interval(datetime::Interval::new(0, 0, difference)))
}

fn interval_plus_interval(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    interval(&arguments[0]).checked_add(&interval(&arguments[1])).map(Datum::Interval)
}

fn interval_minus_interval(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    interval(&arguments[0]).checked_sub(&interval(&arguments[1])).map(Datum::Interval)
}

fn interval_negated(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    interval(&arguments[0]).checked_neg().map(Datum::Interval)
}

fn interval_times(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    interval(&arguments[0]).checked_mul(float8(&arguments[1])).map(Datum::Interval)
}

fn interval_divided(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    interval(&arguments[0]).checked_div(float8(&arguments[1])).map(Datum::Interval)
}

/// Returns a field of any date or time type as a numeric, or NULL.
fn extract(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let name = string(&arguments[0]);
    let field = |data_type| Field::parse(name, data_type);
    let value = match &arguments[1] {
        Datum::Date(value) => datetime::extract_from_date(field(&Date)?, *value),
        Datum::Time(value) => datetime::extract_from_time(field(&Time)?, *value),
        Datum::Timestamp(value) => datetime::extract_from_timestamp(field(&Timestamp)?, *value),
        Datum::Timestamptz(value) => datetime::extract_from_timestamptz(
            field(&Timestamptz)?,
            *value,
            &context.style.time_zone,
        ),
        other @ Datum::Nested(_) => datetime::extract_from_timetz(field(&Timetz)?, timetz(other)),
        other => datetime::extract_from_interval(field(&Interval)?, interval(other)),
    }?;
    Ok(value.map_or(Datum::Null, Datum::Numeric))
}

fn date_part(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    // Dates have the fields of timestamps here, unlike in `extract`.
    let extracted = match &arguments[1] {
        Datum::Date(value) => {
            let midnight = Datum::Timestamp(datetime::date_to_timestamp(*value)?);
            extract(&[arguments[0].clone(), midnight], context)?
        }
        _ => extract(arguments, context)?,
    };
    Ok(match extracted {
        Datum::Numeric(value) => Datum::Float8(value.to_f64()),
        other => other,
    })
}

fn date_trunc(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    if is_infinite(&arguments[1]) {
        return Ok(arguments[1].clone());
    }
    let name = string(&arguments[0]);
    let field = |data_type: DataType| Field::parse(name, &data_type);
    match &arguments[1] {
        Datum::Timestamp(value) => {
            datetime::date_trunc_timestamp(field(Timestamp)?, *value).map(Datum::Timestamp)
        }
        Datum::Timestamptz(value) => {
            datetime::date_trunc_timestamptz(field(Timestamptz)?, *value, &context.style.time_zone)
                .map(Datum::Timestamptz)
        }
        other => {
            datetime::date_trunc_interval(field(Interval)?, interval(other)).map(Datum::Interval)
        }
    }
}

fn date_trunc_in_zone(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    if is_infinite(&arguments[1]) {
        return Ok(arguments[1].clone());
    }
    let zone = TimeZone::parse(string(&arguments[2]))?;
    let field = Field::parse(string(&arguments[0]), &Timestamptz)?;
    datetime::date_trunc_timestamptz(field, timestamptz(&arguments[1]), &zone)
        .map(Datum::Timestamptz)
}

fn age(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    datetime::age(timestamp(&arguments[0]), timestamp(&arguments[1])).map(Datum::Interval)
}

/// Returns midnight of the session's current date, as a timestamp.
fn today(context: &EvalContext) -> Result<i64> {
    let now =
        datetime::timestamptz_to_local(context.transaction_timestamp(), &context.style.time_zone)?;
    datetime::date_to_timestamp(datetime::timestamp_to_date(now))
}

fn age_today(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    datetime::age(today(context)?, timestamp(&arguments[0])).map(Datum::Interval)
}

fn age_zoned(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let local =
        |at: &Datum| datetime::timestamptz_to_local(timestamptz(at), &context.style.time_zone);
    datetime::age(local(&arguments[0])?, local(&arguments[1])?).map(Datum::Interval)
}

fn age_zoned_today(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let at = datetime::timestamptz_to_local(timestamptz(&arguments[0]), &context.style.time_zone)?;
    datetime::age(today(context)?, at).map(Datum::Interval)
}

fn make_date(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    datetime::make_date(int4(&arguments[0]), int4(&arguments[1]), int4(&arguments[2]))
        .map(Datum::Date)
}

fn make_time(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    time_of(arguments).map(Datum::Time)
}

/// Returns the time of hour, minute and second arguments.
fn time_of(arguments: &[Datum]) -> Result<i64> {
    let (hour, minute) = (int4(&arguments[0]), int4(&arguments[1]));
    let second = float8(&arguments[2]);
    datetime::make_time(hour, minute, second).ok_or_else(|| {
        let second = text::general(second);
        let message = format!("time field value out of range: {hour}:{minute:02}:{second:0>2}");
        overflow(&message)
    })
}

/// Returns the timestamp of the first six arguments: year to second.
fn timestamp_of(arguments: &[Datum]) -> Result<i64> {
    let date = (int4(&arguments[0]), int4(&arguments[1]), int4(&arguments[2]));
    datetime::make_timestamp(date, || time_of(&arguments[3..6]))
}

fn make_timestamp(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    timestamp_of(arguments).map(Datum::Timestamp)
}

fn make_timestamptz(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let local = timestamp_of(arguments)?;
    let zone = match arguments.get(6) {
        Some(name) => zone_argument(string(name))?,
        None => context.style.time_zone.clone(),
    };
    datetime::local_to_timestamptz(local, &zone).map(Datum::Timestamptz)
}

/// Returns the zone of a text: an offset, in which `+` is *east* of Greenwich, or a name. Source:
/// PostgreSQL's `parse_sane_timezone` and `DecodeTimezone`.
fn zone_argument(name: &str) -> Result<TimeZone> {
    let invalid = |message: String| err!(INVALID_PARAMETER_VALUE: message);
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        let message = format!("invalid input syntax for type numeric time zone: \"{name}\"");
        let hint = "Numeric time zones must have \"-\" or \"+\" as first character.";
        return Err(invalid(message).with_hint(hint));
    }
    let Some(written) = name.strip_prefix(['+', '-']) else { return TimeZone::parse(name) };
    let mut fields: Vec<&str> = written.splitn(3, ':').collect();
    if fields.iter().any(|field| !field.bytes().all(|byte| byte.is_ascii_digit())) {
        return TimeZone::parse(name);
    }
    if fields.len() == 1 && written.len() > 2 {
        fields = vec![&written[..written.len() - 2], &written[written.len() - 2..]];
    }
    let mut seconds = 0;
    for (at, unit, end) in [(0, 3600, 16), (1, 60, 60), (2, 1, 60)] {
        let field = fields.get(at).filter(|field| !field.is_empty());
        let value = field.map_or(Ok(0), |field| field.parse::<i32>());
        let value = value.ok().filter(|value| *value < end);
        seconds += unit
            * value.ok_or_else(|| invalid(format!("numeric time zone \"{name}\" out of range")))?;
    }
    Ok(TimeZone::fixed(if name.starts_with('-') { -seconds } else { seconds }))
}

/// Returns the interval of years, months, weeks, days, hours, minutes and seconds, each 0 by
/// default.
fn make_interval(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let part = |index: usize| arguments.get(index).map_or(0, int4);
    let seconds = arguments.get(6).map_or(0.0, float8);
    let out_of_range = || overflow("interval out of range");
    let months = part(0).checked_mul(12).and_then(|months| months.checked_add(part(1)));
    let days = part(2).checked_mul(7).and_then(|days| days.checked_add(part(3)));
    let minutes = i64::from(part(4)) * 60 + i64::from(part(5));
    let fraction = (seconds * MICROS_PER_SECOND as f64).round_ties_even();
    if !fraction.is_finite() || fraction.abs() >= i64::MAX as f64 {
        return Err(out_of_range());
    }
    let microseconds = (minutes * 60 * MICROS_PER_SECOND).checked_add(fraction as i64);
    match (months, days, microseconds) {
        (Some(months), Some(days), Some(microseconds)) => {
            Ok(Datum::Interval(datetime::Interval::new(months, days, microseconds)))
        }
        _ => Err(out_of_range()),
    }
}

fn to_timestamp(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let seconds = float8(&arguments[0]);
    if seconds.is_nan() {
        return Err(overflow("timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        let end = if seconds > 0.0 {
            datetime::TIMESTAMP_INFINITY
        } else {
            datetime::TIMESTAMP_NEGATIVE_INFINITY
        };
        return Ok(Datum::Timestamptz(end));
    }
    let since_2000 = seconds - datetime::UNIX_EPOCH_SECONDS as f64;
    let micros = (since_2000 * MICROS_PER_SECOND as f64).round_ties_even();
    if micros < datetime::TIMESTAMP_MIN as f64 || micros >= datetime::TIMESTAMP_END as f64 {
        let seconds = text::general(seconds);
        return Err(overflow(&format!("timestamp out of range: \"{seconds}\"")));
    }
    Ok(Datum::Timestamptz(micros as i64))
}

/// Returns whether a timestamp is infinite; other conditions do not apply then.
fn is_infinite(at: &Datum) -> bool {
    matches!(at, Datum::Timestamp(at) | Datum::Timestamptz(at) if !datetime::is_finite_timestamp(*at))
}

/// Returns the zone of a name or an interval.
pub(super) fn zone_of(argument: &Datum) -> Result<TimeZone> {
    match argument {
        Datum::Interval(offset) if offset.months != 0 || offset.days != 0 => {
            let mut written = Vec::new();
            text::write_short(argument, &Interval, &TextStyle::default(), &mut written);
            let written = String::from_utf8_lossy(&written);
            bail!(INVALID_PARAMETER_VALUE: "interval time zone \"{written}\" must not include months or days")
        }
        Datum::Interval(offset) => {
            let seconds = i32::try_from(offset.microseconds / MICROS_PER_SECOND);
            Ok(TimeZone::fixed(seconds.map_err(|_| overflow("interval out of range"))?))
        }
        name => TimeZone::parse(string(name)),
    }
}

fn timezone_of_local(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    if is_infinite(&arguments[1]) {
        return Ok(Datum::Timestamptz(timestamp(&arguments[1])));
    }
    let zone = zone_of(&arguments[0])?;
    datetime::local_to_timestamptz(timestamp(&arguments[1]), &zone).map(Datum::Timestamptz)
}

fn timezone_of_instant(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    if is_infinite(&arguments[1]) {
        return Ok(Datum::Timestamp(timestamptz(&arguments[1])));
    }
    let zone = zone_of(&arguments[0])?;
    datetime::timestamptz_to_local(timestamptz(&arguments[1]), &zone).map(Datum::Timestamp)
}

fn justify_days(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    interval(&arguments[0]).justify_days().map(Datum::Interval)
}

fn justify_hours(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    interval(&arguments[0]).justify_hours().map(Datum::Interval)
}

fn justify_interval(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    interval(&arguments[0]).justify_interval().map(Datum::Interval)
}

fn is_finite(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    Ok(Datum::Bool(match &arguments[0] {
        Datum::Date(value) => datetime::is_finite_date(*value),
        Datum::Timestamp(value) | Datum::Timestamptz(value) => {
            datetime::is_finite_timestamp(*value)
        }
        _ => true,
    }))
}

/// Returns the start of a timestamp's bin; bins are `stride` wide and aligned to `origin`.
fn date_bin(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let stride = interval(&arguments[0]);
    let instant = |datum: &Datum| match datum {
        Datum::Timestamptz(at) => *at,
        other => timestamp(other),
    };
    let (at, origin) = (instant(&arguments[1]), instant(&arguments[2]));
    if !datetime::is_finite_timestamp(at) {
        return Ok(arguments[1].clone());
    }
    if !datetime::is_finite_timestamp(origin) {
        return Err(overflow("origin out of range"));
    }
    if stride.months != 0 {
        bail!(FEATURE_NOT_SUPPORTED: "timestamps cannot be binned into intervals containing months or years");
    }
    let out_of_range = || overflow("interval out of range");
    let days = i64::from(stride.days).checked_mul(MICROS_PER_DAY);
    let width = days.and_then(|days| days.checked_add(stride.microseconds));
    let width = width.ok_or_else(out_of_range)?;
    if width <= 0 {
        return Err(overflow("stride must be greater than zero"));
    }
    let distance = at.checked_sub(origin).ok_or_else(out_of_range)?;
    let mut start = origin + (distance - distance % width);
    if distance % width < 0 {
        let before = start.checked_sub(width).filter(|start| *start >= datetime::TIMESTAMP_MIN);
        start = before.ok_or_else(|| overflow("timestamp out of range"))?;
    }
    Ok(match &arguments[1] {
        Datum::Timestamptz(_) => Datum::Timestamptz(start),
        _ => Datum::Timestamp(start),
    })
}

fn overflow(message: &str) -> Error {
    err!(DATETIME_FIELD_OVERFLOW: message)
}
