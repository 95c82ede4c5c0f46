//! Text output of dates, times and timestamps in the formats of `DateStyle`. Intervals are in
//! `datetime/interval_write.rs`.

use std::io::Write;

use super::TIMESTAMP_NEGATIVE_INFINITY;
use super::arithmetic::timestamptz_to_local;
use super::calendar::{civil_from_days, day_of_week};
use super::style::{DateOrder, DateStyle, Style};
use super::token::{DAYS, MONTHS};
use super::zone::OffsetText;
use super::zone::TimeZone;
use super::{DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROS_PER_DAY, MICROS_PER_HOUR};
use super::{MICROS_PER_MINUTE, MICROS_PER_SECOND, TIMESTAMP_INFINITY};

/// Appends two digits.
#[inline]
fn put_two(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8]);
}

fn put_year(year: i32, out: &mut Vec<u8>) {
    let shown = if year > 0 { year } else { 1 - year } as u32;
    if shown < 10_000 {
        put_two(shown / 100, out);
        put_two(shown % 100, out);
    } else {
        let _ = write!(out, "{shown}");
    }
}

/// Appends the numeric fields of a date and returns whether the year is BC.
fn put_date(days: i32, style: Style, out: &mut Vec<u8>) -> bool {
    let (year, month, day) = civil_from_days(days);
    let separator = match style.date {
        DateStyle::Iso => {
            put_year(year, out);
            out.push(b'-');
            put_two(month, out);
            out.push(b'-');
            put_two(day, out);
            return year <= 0;
        }
        DateStyle::Sql => b'/',
        DateStyle::German => b'.',
        DateStyle::Postgres => b'-',
    };
    let day_first = style.order == DateOrder::Dmy || style.date == DateStyle::German;
    let (first, second) = if day_first { (day, month) } else { (month, day) };
    put_two(first, out);
    out.push(separator);
    put_two(second, out);
    out.push(separator);
    put_year(year, out);
    year <= 0
}

/// Appends seconds and their fraction without trailing zeros.
pub(super) fn put_seconds(micros: i64, out: &mut Vec<u8>) {
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

/// Appends a time of day with its zone offset.
pub(crate) fn write_timetz(time: i64, west: i32, out: &mut Vec<u8>) {
    write_time(time, out);
    put_offset(-west, out);
}

/// Appends a zone offset, in seconds east.
fn put_offset(offset: i32, out: &mut Vec<u8>) {
    if offset == 0 {
        out.extend_from_slice(b"+00");
    } else {
        let _ = write!(out, "{}", OffsetText(offset));
    }
}

/// Appends a date.
pub(crate) fn write_date(date: i32, style: Style, out: &mut Vec<u8>) {
    match date {
        DATE_INFINITY => out.extend_from_slice(b"infinity"),
        DATE_NEGATIVE_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => {
            if put_date(date, style, out) {
                out.extend_from_slice(b" BC");
            }
        }
    }
}

/// The time zone of a local time.
#[derive(Clone, Copy)]
struct ZoneSuffix<'a> {
    offset: i32,
    abbreviation: &'a str,
}

/// Appends a timestamp, with its time zone if there is one.
fn put_timestamp(timestamp: i64, place: Option<ZoneSuffix<'_>>, style: Style, out: &mut Vec<u8>) {
    let days = timestamp.div_euclid(MICROS_PER_DAY) as i32;
    let time = timestamp.rem_euclid(MICROS_PER_DAY);
    let before_christ = if style.date == DateStyle::Postgres {
        let (year, month, day) = civil_from_days(days);
        out.extend_from_slice(short(DAYS[day_of_week(days) as usize]).as_bytes());
        out.push(b' ');
        let month = short(MONTHS[month as usize - 1]);
        if style.order == DateOrder::Dmy {
            let _ = write!(out, "{day:02} {month} ");
        } else {
            let _ = write!(out, "{month} {day:02} ");
        }
        write_time(time, out);
        out.push(b' ');
        put_year(year, out);
        year <= 0
    } else {
        let before_christ = put_date(days, style, out);
        out.push(b' ');
        write_time(time, out);
        before_christ
    };
    match place {
        None => {}
        Some(place) if style.date == DateStyle::Iso => put_offset(place.offset, out),
        Some(place) => {
            let _ = write!(out, " {:.10}", place.abbreviation);
        }
    }
    if before_christ {
        out.extend_from_slice(b" BC");
    }
}

/// Returns the first three letters of a day or month, capitalised.
fn short(name: &str) -> String {
    name[..1].to_ascii_uppercase() + &name[1..3]
}

/// Appends a timestamp.
pub(crate) fn write_timestamp(timestamp: i64, style: Style, out: &mut Vec<u8>) {
    match timestamp {
        TIMESTAMP_INFINITY => out.extend_from_slice(b"infinity"),
        TIMESTAMP_NEGATIVE_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => put_timestamp(timestamp, None, style, out),
    }
}

/// Appends an instant as local time with its zone.
pub(crate) fn write_timestamptz(
    timestamptz: i64,
    zone: &TimeZone,
    style: Style,
    out: &mut Vec<u8>,
) {
    let (local, offset) = match (timestamptz, timestamptz_to_local(timestamptz, zone)) {
        (TIMESTAMP_INFINITY | TIMESTAMP_NEGATIVE_INFINITY, _) => {
            return write_timestamp(timestamptz, style, out);
        }
        (_, Ok(local)) => (local, zone.offset_at(timestamptz)),
        (_, Err(_)) => (timestamptz, 0),
    };
    if style.date == DateStyle::Iso {
        return put_timestamp(local, Some(ZoneSuffix { offset, abbreviation: "" }), style, out);
    }
    let abbreviation = &*zone.abbreviation_at(timestamptz);
    put_timestamp(local, Some(ZoneSuffix { offset, abbreviation }), style, out);
}
