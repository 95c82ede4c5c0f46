//! The ISO text of dates, times, timestamps and intervals, as PostgreSQL writes it.

use std::io::Write;

use super::TIMESTAMP_NEGATIVE_INFINITY;
use super::arithmetic::timestamptz_to_local;
use super::calendar::civil_from_days;
use super::interval::Interval;
use super::zone::OffsetText;
use super::zone::TimeZone;
use super::{DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROS_PER_DAY, MICROS_PER_HOUR};
use super::{MICROS_PER_MINUTE, MICROS_PER_SECOND, TIMESTAMP_INFINITY};

/// Appends two digits.
#[inline]
fn put_two(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8]);
}

/// Appends `YYYY-MM-DD` and returns whether the year is BC.
fn put_date(days: i32, out: &mut Vec<u8>) -> bool {
    let (year, month, day) = civil_from_days(days);
    let shown = if year > 0 { year } else { 1 - year } as u32;
    if shown < 10_000 {
        put_two(shown / 100, out);
        put_two(shown % 100, out);
    } else {
        let _ = write!(out, "{shown}");
    }
    out.push(b'-');
    put_two(month, out);
    out.push(b'-');
    put_two(day, out);
    year <= 0
}

/// Appends seconds and their fraction without trailing zeros.
fn put_seconds(micros: i64, out: &mut Vec<u8>) {
    put_two((micros / MICROS_PER_SECOND) as u32, out);
    let mut fraction = (micros % MICROS_PER_SECOND) as u32;
    if fraction == 0 {
        return;
    }
    out.push(b'.');
    let mut unit = 100_000;
    while fraction > 0 {
        out.push(b'0' + (fraction / unit) as u8);
        fraction %= unit;
        unit /= 10;
    }
}

/// Appends a time of day.
pub(crate) fn write_time(time: i64, out: &mut Vec<u8>) {
    put_two((time / MICROS_PER_HOUR) as u32, out);
    out.push(b':');
    put_two((time / MICROS_PER_MINUTE % 60) as u32, out);
    out.push(b':');
    put_seconds(time % MICROS_PER_MINUTE, out);
}

/// Appends a time of day with the offset of its zone.
pub(crate) fn write_timetz(time: i64, west: i32, out: &mut Vec<u8>) {
    write_time(time, out);
    put_offset(-west, out);
}

/// Appends the offset of a zone, in seconds east.
fn put_offset(offset: i32, out: &mut Vec<u8>) {
    if offset == 0 {
        out.extend_from_slice(b"+00");
    } else {
        let _ = write!(out, "{}", OffsetText(offset));
    }
}

/// Appends a date.
pub(crate) fn write_date(date: i32, out: &mut Vec<u8>) {
    match date {
        DATE_INFINITY => out.extend_from_slice(b"infinity"),
        DATE_NEGATIVE_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => {
            if put_date(date, out) {
                out.extend_from_slice(b" BC");
            }
        }
    }
}

/// Appends a timestamp, with an offset if one is given.
fn put_timestamp(timestamp: i64, offset: Option<i32>, out: &mut Vec<u8>) {
    let before_christ = put_date(timestamp.div_euclid(MICROS_PER_DAY) as i32, out);
    out.push(b' ');
    write_time(timestamp.rem_euclid(MICROS_PER_DAY), out);
    if let Some(offset) = offset {
        put_offset(offset, out);
    }
    if before_christ {
        out.extend_from_slice(b" BC");
    }
}

/// Appends a timestamp.
pub(crate) fn write_timestamp(timestamp: i64, out: &mut Vec<u8>) {
    match timestamp {
        TIMESTAMP_INFINITY => out.extend_from_slice(b"infinity"),
        TIMESTAMP_NEGATIVE_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => put_timestamp(timestamp, None, out),
    }
}

/// Appends an instant as local time with its offset.
pub(crate) fn write_timestamptz(timestamptz: i64, zone: &TimeZone, out: &mut Vec<u8>) {
    match (timestamptz, timestamptz_to_local(timestamptz, zone)) {
        (TIMESTAMP_INFINITY | TIMESTAMP_NEGATIVE_INFINITY, _) => write_timestamp(timestamptz, out),
        (_, Ok(local)) => put_timestamp(local, Some(zone.offset_at(timestamptz)), out),
        (_, Err(_)) => put_timestamp(timestamptz, Some(0), out),
    }
}

/// Appends an interval in PostgreSQL's style: `1 year 2 mons -3 days +04:05:06`.
pub(crate) fn write_interval(interval: Interval, out: &mut Vec<u8>) {
    let mut empty = true;
    let mut negative_before = false;
    let parts =
        [(interval.months / 12, "year"), (interval.months % 12, "mon"), (interval.days, "day")];
    for (value, unit) in parts {
        if value == 0 {
            continue;
        }
        let space = if empty { "" } else { " " };
        let sign = if negative_before && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        let _ = write!(out, "{space}{sign}{value} {unit}{plural}");
        negative_before = value < 0;
        empty = false;
    }
    if !empty && interval.microseconds == 0 {
        return;
    }
    if !empty {
        out.push(b' ');
    }
    if interval.microseconds < 0 {
        out.push(b'-');
    } else if negative_before {
        out.push(b'+');
    }
    let micros = interval.microseconds.unsigned_abs();
    let (hour, minute) = (micros / MICROS_PER_HOUR as u64, micros / MICROS_PER_MINUTE as u64 % 60);
    let _ = write!(out, "{hour:02}:{minute:02}:");
    put_seconds((micros % MICROS_PER_MINUTE as u64) as i64, out);
}
