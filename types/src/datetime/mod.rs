//! Dates, times, timestamps, intervals and time zones with PostgreSQL's range and arithmetic.
//!
//! A date is a count of days since 2000-01-01, a time and a timestamp counts of microseconds; the
//! extremes of the integers are the infinities. The calendar is the proleptic Gregorian one, from
//! 4713 BC to 5874897 AD for dates and to 294276 AD for timestamps. Time zone rules come from
//! `jiff` with the bundled tz database.
//!
//! Text is parsed in `datetime/parse.rs` and `datetime/interval_text.rs` and written in
//! `datetime/write.rs`; [`text`](crate::text) calls them.

mod abbreviation;
mod calendar;
mod style;
mod zone;
mod interval;
mod arithmetic;
mod timetz;
mod field;
mod token;
mod decode;
mod parse;
mod interval_text;
mod write;
mod interval_write;

pub use self::arithmetic::{
    age, date_plus_days, date_to_timestamp, date_to_timestamptz, local_to_timestamptz, make_date,
    make_time, make_timestamp, time_plus_interval, timestamp_minus_timestamp,
    timestamp_plus_interval, timestamp_to_date, timestamp_to_time, timestamptz_plus_interval,
    timestamptz_to_local,
};
pub use self::calendar::{
    CivilTime, civil_from_days, civil_from_timestamp, day_of_week, days_from_civil, days_in_month,
    iso_week, timestamp_from_civil,
};
pub use self::field::{
    Field, date_trunc_interval, date_trunc_timestamp, date_trunc_timestamptz, extract_from_date,
    extract_from_interval, extract_from_time, extract_from_timestamp, extract_from_timestamptz,
    extract_from_timetz,
};
pub use self::interval::Interval;
pub use self::style::{DateOrder, DateStyle, IntervalStyle, Style};
pub use self::timetz::{TimeWest, time_to_timetz, timestamptz_to_timetz, timetz_in};
pub use self::zone::TimeZone;

pub(crate) use self::interval_text::parse_interval;
pub(crate) use self::interval_write::write_interval;
pub(crate) use self::parse::{
    ParseSettings, parse_date, parse_time, parse_timestamp, parse_timestamptz, parse_timetz,
};
pub(crate) use self::write::{
    write_date, write_time, write_timestamp, write_timestamptz, write_timetz,
};

use crate::error::Error;

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a minute.
pub const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
/// Microseconds in an hour.
pub const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;
/// Seconds from 1970-01-01 to 2000-01-01, the epochs of Unix and of PostgreSQL.
pub const UNIX_EPOCH_SECONDS: i64 = 946_684_800;
/// Days from 1970-01-01 to 2000-01-01.
pub const UNIX_EPOCH_DAYS: i32 = 10_957;
/// The Julian day number of 2000-01-01.
pub const EPOCH_JULIAN_DAY: i32 = 2_451_545;

/// The date `-infinity`.
pub const DATE_NEGATIVE_INFINITY: i32 = i32::MIN;
/// The date `infinity`.
pub const DATE_INFINITY: i32 = i32::MAX;
/// The first date, 4713-11-24 BC.
pub const DATE_MIN: i32 = -EPOCH_JULIAN_DAY;
/// The last date, 5874897-12-31.
pub const DATE_MAX: i32 = 2_145_031_948;
/// The timestamp `-infinity`.
pub const TIMESTAMP_NEGATIVE_INFINITY: i64 = i64::MIN;
/// The timestamp `infinity`.
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;
/// The first timestamp, 4713-11-24 BC 00:00.
pub const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// The exclusive upper bound of timestamps, 294277-01-01 00:00.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// Returns whether a timestamp is finite.
pub fn is_finite_timestamp(timestamp: i64) -> bool {
    timestamp != TIMESTAMP_INFINITY && timestamp != TIMESTAMP_NEGATIVE_INFINITY
}

/// Returns whether a date is finite.
pub fn is_finite_date(date: i32) -> bool {
    date != DATE_INFINITY && date != DATE_NEGATIVE_INFINITY
}

/// Returns PostgreSQL's `date out of range`, `timestamp out of range`, …
pub(crate) fn out_of_range(what: &str) -> Error {
    err!(DATETIME_FIELD_OVERFLOW: "{what} out of range")
}

#[cfg(test)]
mod tests;
