//! Functions of times with time zone. Comparisons are in `comparison`, input and output in
//! [`crate::datetime`].

use super::argument::{date, int4, interval, text as string, time, timetz};
use super::datetime::zone_of;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Date, Int4, Interval, Numeric, Text, Time, Timestamptz, Timetz};
use crate::datetime::{self, MICROS_PER_SECOND, TimeWest};
use crate::datum::{Datum, Nested};
use crate::error::{Error, Result};
use crate::modifier::round_second;
use crate::numeric;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("+", &[Timetz, Interval], Timetz, |a, _| plus(&a[0], &a[1], 1)),
    row("+", &[Interval, Timetz], Timetz, |a, _| plus(&a[1], &a[0], 1)),
    row("-", &[Timetz, Interval], Timetz, |a, _| plus(&a[0], &a[1], -1)),
    row("+", &[Date, Timetz], Timestamptz, |a, _| on_date(&a[0], &a[1])),
    row("+", &[Timetz, Date], Timestamptz, |a, _| on_date(&a[1], &a[0])),
    row("timestamptz", &[Date, Timetz], Timestamptz, |a, _| on_date(&a[0], &a[1])),
    row("timetz", &[Timetz, Int4], Timetz, |a, _| {
        let (time, west) = timetz(&a[0]);
        Ok(datum((round_second(time, int4(&a[1])), west)))
    }),
    row("timetz", &[Time], Timetz, |a, c| {
        datetime::time_to_timetz(time(&a[0]), &c.style.time_zone, c.transaction_timestamp())
            .map(datum)
    })
    .stable(),
    row("time", &[Timetz], Time, |a, _| Ok(Datum::Time(timetz(&a[0]).0))),
    row("current_time", &[], Timetz, |_, c| now(c)).stable(),
    row("current_time", &[Int4], Timetz, |a, c| {
        let (time, west) = timetz(&now(c)?);
        Ok(datum((round_second(time, int4(&a[0])), west)))
    })
    .stable(),
    row("timezone", &[Text, Timetz], Timetz, |a, c| {
        let zone = datetime::TimeZone::parse(string(&a[0]))?;
        let west = -zone.offset_at(c.transaction_timestamp());
        Ok(datum(datetime::timetz_in(timetz(&a[1]), west)))
    })
    .stable(),
    row("timezone", &[Interval, Timetz], Timetz, |a, c| {
        let west = -zone_of(&a[0])?.offset_at(c.transaction_timestamp());
        Ok(datum(datetime::timetz_in(timetz(&a[1]), west)))
    }),
    // For window frames in RANGE mode.
    row("clock part", &[Interval], Interval, |a, _| {
        Ok(Datum::Interval(clock_part(interval(&a[0]))))
    }),
    row("clock place", &[Timetz], Numeric, |a, _| Ok(number(clock_place(timetz(&a[0]))))),
    row("clock steps", &[Interval], Numeric, |a, _| Ok(number(clock_steps(interval(&a[0]))))),
];

/// Number of zone offsets per instant in the sort number of a `timetz`.
const ZONE_STEPS: i128 = 1 << 17;

/// Returns a number with the order of times with zones: by instant, then by zone. Adding
/// [`clock_steps`] to it does not wrap at midnight.
fn clock_place((time, west): TimeWest) -> i128 {
    let instant = i128::from(time) + i128::from(west) * i128::from(MICROS_PER_SECOND);
    instant * ZONE_STEPS + i128::from(west)
}

/// Returns the time part of an interval.
fn clock_part(of: datetime::Interval) -> datetime::Interval {
    datetime::Interval::new(0, 0, of.microseconds)
}

/// Returns the distance that the time part of an interval adds to a [`clock_place`].
fn clock_steps(of: datetime::Interval) -> i128 {
    i128::from(of.microseconds) * ZONE_STEPS
}

fn number(value: i128) -> Datum {
    Datum::Numeric(numeric::Numeric::from_i128(value))
}

fn datum((time, west): TimeWest) -> Datum {
    Datum::Nested(Nested::Timetz { time, west })
}

fn now(context: &EvalContext) -> Result<Datum> {
    let now = context.transaction_timestamp();
    let time = datetime::timestamptz_to_timetz(now, &context.style.time_zone)?;
    Ok(time.map_or(Datum::Null, datum))
}

/// Adds or subtracts the time part of an interval.
fn plus(value: &Datum, length: &Datum, sign: i64) -> Result<Datum> {
    let (time, west) = timetz(value);
    let within_day = interval(length).microseconds % datetime::MICROS_PER_DAY;
    let shift = datetime::Interval::new(0, 0, sign * within_day);
    Ok(datum((datetime::time_plus_interval(time, shift), west)))
}

fn on_date(day: &Datum, value: &Datum) -> Result<Datum> {
    let (time, west) = timetz(value);
    let midnight = datetime::date_to_timestamp(date(day))?;
    if !datetime::is_finite_timestamp(midnight) {
        return Ok(Datum::Timestamptz(midnight));
    }
    let shift = time + i64::from(west) * MICROS_PER_SECOND;
    let at = midnight
        .checked_add(shift)
        .filter(|at| (datetime::TIMESTAMP_MIN..datetime::TIMESTAMP_END).contains(at));
    at.map(Datum::Timestamptz)
        .ok_or_else(|| err!(DATETIME_FIELD_OVERFLOW: "date out of range for timestamp"))
}
