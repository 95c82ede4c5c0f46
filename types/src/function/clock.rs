//! The clock: `now()` and related functions, and the keywords that the binder translates to
//! calls.
//!
//! All except `clock_timestamp()` use the times in the [`EvalContext`], so that all parts of a
//! statement see the same time.

use std::time::{SystemTime, UNIX_EPOCH};

use super::argument::int4;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Date, Int4, Text, Time, Timestamp, Timestamptz};
use crate::datetime::{self, DateStyle, MICROS_PER_DAY, MICROS_PER_SECOND, Style};
use crate::datum::Datum;
use crate::error::Result;
use crate::modifier::round_second;
use crate::text;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("now", &[], Timestamptz, transaction).stable(),
    row("transaction_timestamp", &[], Timestamptz, transaction).stable(),
    row("current_timestamp", &[], Timestamptz, transaction).stable(),
    row("current_timestamp", &[Int4], Timestamptz, |a, c| {
        Ok(Datum::Timestamptz(round_second(c.transaction_timestamp(), int4(&a[0]))))
    })
    .stable(),
    row("statement_timestamp", &[], Timestamptz, |_, c| {
        Ok(Datum::Timestamptz(c.statement_timestamp))
    })
    .stable(),
    row("clock_timestamp", &[], Timestamptz, |_, _| Ok(Datum::Timestamptz(clock()))).volatile(),
    row("timeofday", &[], Text, time_of_day).volatile(),
    row("current_date", &[], Date, |_, c| {
        let days = local(c)?.div_euclid(MICROS_PER_DAY);
        Ok(Datum::Date(i32::try_from(days).expect("a timestamp's day fits a date")))
    })
    .stable(),
    row("localtimestamp", &[], Timestamp, |_, c| Ok(Datum::Timestamp(local(c)?))).stable(),
    row("localtimestamp", &[Int4], Timestamp, |a, c| {
        Ok(Datum::Timestamp(round_second(local(c)?, int4(&a[0]))))
    })
    .stable(),
    row("localtime", &[], Time, |_, c| Ok(Datum::Time(local(c)?.rem_euclid(MICROS_PER_DAY))))
        .stable(),
    row("localtime", &[Int4], Time, |a, c| {
        let time = local(c)?.rem_euclid(MICROS_PER_DAY);
        Ok(Datum::Time(round_second(time, int4(&a[0]))))
    })
    .stable(),
];

fn transaction(_: &[Datum], context: &EvalContext) -> Result<Datum> {
    Ok(Datum::Timestamptz(context.transaction_timestamp()))
}

/// Formats the current time in the session's zone: `Wed Feb 26 08:13:41.123456 2020 UTC`.
fn time_of_day(_: &[Datum], context: &EvalContext) -> Result<Datum> {
    let now = clock();
    let micros = now.rem_euclid(MICROS_PER_SECOND);
    let mut style = context.style.clone();
    style.formats.style = Style { date: DateStyle::Postgres, ..Style::default() };
    let mut written = Vec::new();
    text::write_short(&Datum::Timestamptz(now - micros), &Timestamptz, &style, &mut written);
    let written = String::from_utf8_lossy(&written);
    const BEFORE_FRACTION: usize = "Wed Feb 26 08:13:41".len();
    let (clock, year) = written.split_at_checked(BEFORE_FRACTION).unwrap_or((&written, ""));
    Ok(Datum::text(format!("{clock}.{micros:06}{year}")))
}

/// Returns the start of the transaction as local time.
fn local(context: &EvalContext) -> Result<i64> {
    datetime::timestamptz_to_local(context.transaction_timestamp(), &context.style.time_zone)
}

/// Returns the current time in microseconds since 2000-01-01 UTC.
fn clock() -> i64 {
    const SECONDS_FROM_1970_TO_2000: i64 = 946_684_800;
    #[expect(clippy::disallowed_methods, reason = "the clock of the store is in a crate above")]
    let now = SystemTime::now();
    let since_1970 = match now.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    };
    since_1970.saturating_sub(SECONDS_FROM_1970_TO_2000 * 1_000_000)
}
