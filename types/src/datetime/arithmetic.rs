//! Arithmetic and conversions of dates, times and timestamps.
//!
//! Months are added first, with the day limited to the length of the month, then days, then time;
//! with a time zone, months and days are added to the local time. Infinities are unchanged.

use super::calendar::{CivilTime, civil_from_days, civil_from_timestamp, days_from_civil};
use super::calendar::{days_in_month, timestamp_from_civil};
use super::interval::Interval;
use super::interval::interval_out_of_range;
use super::zone::TimeZone;
use super::{DATE_INFINITY, DATE_MAX, DATE_MIN, DATE_NEGATIVE_INFINITY, MICROS_PER_DAY};
use super::{MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, TIMESTAMP_END};
use super::{TIMESTAMP_INFINITY, TIMESTAMP_MIN, TIMESTAMP_NEGATIVE_INFINITY};
use super::{is_finite_date, is_finite_timestamp, out_of_range};
use crate::error::Error;
use crate::error::Result;

fn timestamp_out_of_range() -> Error {
    out_of_range("timestamp")
}

/// Returns a timestamp if it is in range.
pub(super) fn check_timestamp(timestamp: i64) -> Result<i64> {
    if (TIMESTAMP_MIN..TIMESTAMP_END).contains(&timestamp) {
        Ok(timestamp)
    } else {
        Err(timestamp_out_of_range())
    }
}

/// Adds months and days to a finite local timestamp.
fn plus_calendar(timestamp: i64, months: i32, days: i32) -> Result<i64> {
    let mut timestamp = timestamp;
    if months != 0 {
        let mut civil = civil_from_timestamp(timestamp);
        let month = i64::from(civil.year) * 12 + i64::from(civil.month) - 1 + i64::from(months);
        civil.year = month.div_euclid(12) as i32;
        civil.month = month.rem_euclid(12) as u32 + 1;
        civil.day = civil.day.min(days_in_month(civil.year, civil.month));
        timestamp = timestamp_from_civil(&civil).ok_or_else(timestamp_out_of_range)?;
    }
    if days != 0 {
        let moved = i128::from(timestamp) + i128::from(days) * i128::from(MICROS_PER_DAY);
        let moved = i64::try_from(moved).map_err(|_| timestamp_out_of_range())?;
        timestamp = check_timestamp(moved)?;
    }
    Ok(timestamp)
}

/// Returns a timestamp plus an interval.
///
/// # Errors
///
/// `22008` if the result is out of range.
pub fn timestamp_plus_interval(timestamp: i64, interval: Interval) -> Result<i64> {
    if !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    let moved = plus_calendar(timestamp, interval.months, interval.days)?;
    let moved = moved.checked_add(interval.microseconds).ok_or_else(timestamp_out_of_range)?;
    check_timestamp(moved)
}

/// Returns an instant plus an interval whose months and days are added in the zone.
///
/// # Errors
///
/// `22008` if the result is out of range.
pub fn timestamptz_plus_interval(
    timestamptz: i64,
    interval: Interval,
    zone: &TimeZone,
) -> Result<i64> {
    if !is_finite_timestamp(timestamptz) {
        return Ok(timestamptz);
    }
    let mut moved = timestamptz;
    for (months, days) in [(interval.months, 0), (0, interval.days)] {
        if months != 0 || days != 0 {
            let local = timestamptz_to_local(moved, zone)?;
            moved = local_to_timestamptz(plus_calendar(local, months, days)?, zone)?;
        }
    }
    let moved = moved.checked_add(interval.microseconds).ok_or_else(timestamp_out_of_range)?;
    check_timestamp(moved)
}

/// Returns the interval between two timestamps (or two instants), in days and time.
///
/// # Errors
///
/// `22008` if one is infinite.
pub fn timestamp_minus_timestamp(left: i64, right: i64) -> Result<Interval> {
    if !is_finite_timestamp(left) || !is_finite_timestamp(right) {
        bail!(DATETIME_FIELD_OVERFLOW: "cannot subtract infinite timestamps");
    }
    let difference = left.checked_sub(right).ok_or_else(interval_out_of_range)?;
    Interval::new(0, 0, difference).justify_hours()
}

/// Returns a date plus a number of days.
///
/// # Errors
///
/// `22008` if the result is out of range.
pub fn date_plus_days(date: i32, days: i32) -> Result<i32> {
    if !is_finite_date(date) {
        return Ok(date);
    }
    match date.checked_add(days) {
        Some(moved) if (DATE_MIN..=DATE_MAX).contains(&moved) => Ok(moved),
        _ => Err(out_of_range("date")),
    }
}

/// Returns a time of day plus an interval, modulo 24 hours.
pub fn time_plus_interval(time: i64, interval: Interval) -> i64 {
    (time + interval.microseconds % MICROS_PER_DAY).rem_euclid(MICROS_PER_DAY)
}

/// Returns the local time of an instant.
///
/// # Errors
///
/// `22008` if it is out of range.
pub fn timestamptz_to_local(timestamptz: i64, zone: &TimeZone) -> Result<i64> {
    if !is_finite_timestamp(timestamptz) {
        return Ok(timestamptz);
    }
    let offset = i64::from(zone.offset_at(timestamptz)) * MICROS_PER_SECOND;
    timestamptz.checked_add(offset).ok_or_else(timestamp_out_of_range)
}

/// Returns the instant of a local time; see [`TimeZone`] for times that do not exist or exist
/// twice.
///
/// # Errors
///
/// `22008` if it is out of range.
pub fn local_to_timestamptz(local: i64, zone: &TimeZone) -> Result<i64> {
    if !is_finite_timestamp(local) {
        return Ok(local);
    }
    let offset = i64::from(zone.offset_of_local(local)) * MICROS_PER_SECOND;
    check_timestamp(local.checked_sub(offset).ok_or_else(timestamp_out_of_range)?)
}

/// Returns midnight of a date.
///
/// # Errors
///
/// `22008` if the date is beyond the range of timestamps.
pub fn date_to_timestamp(date: i32) -> Result<i64> {
    match date {
        DATE_INFINITY => Ok(TIMESTAMP_INFINITY),
        DATE_NEGATIVE_INFINITY => Ok(TIMESTAMP_NEGATIVE_INFINITY),
        _ => i64::from(date)
            .checked_mul(MICROS_PER_DAY)
            .and_then(|timestamp| check_timestamp(timestamp).ok())
            .ok_or_else(date_out_of_range),
    }
}

fn date_out_of_range() -> Error {
    err!(DATETIME_FIELD_OVERFLOW: "date out of range for timestamp")
}

/// Returns midnight of a date in a zone.
///
/// # Errors
///
/// `22008` if the date is beyond the range of timestamps.
pub fn date_to_timestamptz(date: i32, zone: &TimeZone) -> Result<i64> {
    local_to_timestamptz(date_to_timestamp(date)?, zone).map_err(|_| date_out_of_range())
}

/// Returns the date of a timestamp.
pub fn timestamp_to_date(timestamp: i64) -> i32 {
    match timestamp {
        TIMESTAMP_INFINITY => DATE_INFINITY,
        TIMESTAMP_NEGATIVE_INFINITY => DATE_NEGATIVE_INFINITY,
        _ => timestamp.div_euclid(MICROS_PER_DAY) as i32,
    }
}

/// Returns the time of day of a timestamp; `None` for the infinities.
pub fn timestamp_to_time(timestamp: i64) -> Option<i64> {
    is_finite_timestamp(timestamp).then(|| timestamp.rem_euclid(MICROS_PER_DAY))
}

/// Returns a date of year, month and day; negative years are BC.
///
/// # Errors
///
/// `22008` if there is no such date.
pub fn make_date(year: i32, month: i32, day: i32) -> Result<i32> {
    // PostgreSQL converts the year to astronomical numbering before it reports the error.
    let shown = if year < 0 && year > i32::MIN { year + 1 } else { year };
    date_of(year, month, day, shown)
}

/// Returns a date; error messages show the year `shown`.
fn date_of(year: i32, month: i32, day: i32, shown: i32) -> Result<i32> {
    let failed = |what: &str| {
        let year = shown;
        err!(DATETIME_FIELD_OVERFLOW: "{what} out of range: {year}-{month:02}-{day:02}")
    };
    if year == 0 || !(1..=12).contains(&month) {
        return Err(failed("date field value"));
    }
    let astronomical = if year < 0 { year + 1 } else { year };
    if day < 1 || day as u32 > days_in_month(astronomical, month as u32) {
        return Err(failed("date field value"));
    }
    if year.unsigned_abs() > 5_874_898 {
        return Err(failed("date"));
    }
    let days = days_from_civil(astronomical, month as u32, day as u32);
    if !(DATE_MIN..=DATE_MAX).contains(&days) {
        bail!(DATETIME_FIELD_OVERFLOW: "date out of range: {year}-{month:02}-{day:02}");
    }
    Ok(days)
}

/// Returns a time of day; 24:00:00 and second 60 are allowed. `None` if the time is invalid.
pub fn make_time(hour: i32, minute: i32, second: f64) -> Option<i64> {
    let micros = (second * 1e6).round_ties_even();
    let time = f64::from(hour) * MICROS_PER_HOUR as f64
        + f64::from(minute) * MICROS_PER_MINUTE as f64
        + micros;
    let ok = (0..=24).contains(&hour)
        && (0..=59).contains(&minute)
        && (0.0..=60e6).contains(&micros)
        && time <= MICROS_PER_DAY as f64;
    ok.then_some(time as i64)
}

/// Returns a timestamp of year, month and day, and a time; negative years are BC.
///
/// # Errors
///
/// `22008` if there is no such date; errors of `time`.
pub fn make_timestamp(date: (i32, i32, i32), time: impl FnOnce() -> Result<i64>) -> Result<i64> {
    let days = date_of(date.0, date.1, date.2, date.0)?;
    let time = time()?;
    let timestamp = i64::from(days).checked_mul(MICROS_PER_DAY).and_then(|t| t.checked_add(time));
    check_timestamp(timestamp.ok_or_else(timestamp_out_of_range)?)
}

/// Returns the difference of two finite timestamps in years, months, days and time (`age`).
///
/// # Errors
///
/// `22008` if one is infinite.
pub fn age(left: i64, right: i64) -> Result<Interval> {
    if !is_finite_timestamp(left) || !is_finite_timestamp(right) {
        return Err(timestamp_out_of_range());
    }
    let (late, early) = (left.max(right), left.min(right));
    let a = civil_from_timestamp(late);
    let b = civil_from_timestamp(early);
    let month_of = |civil: &CivilTime| i64::from(civil.year) * 12 + i64::from(civil.month);
    let mut months = month_of(&a) - month_of(&b);
    let mut days = i64::from(a.day) - i64::from(b.day);
    let mut time = late.rem_euclid(MICROS_PER_DAY) - early.rem_euclid(MICROS_PER_DAY);
    if time < 0 {
        time += MICROS_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        // Borrow a month: that of the earlier timestamp.
        days += i64::from(days_in_month(b.year, b.month));
        months -= 1;
    }
    let sign = if left < right { -1 } else { 1 };
    Ok(Interval::new(months as i32 * sign, days as i32 * sign, time * i64::from(sign)))
}

/// Returns the day of the year, 1 for the first of January.
pub(super) fn day_of_year(days: i32) -> i32 {
    let (year, _, _) = civil_from_days(days);
    days - days_from_civil(year, 1, 1) + 1
}
