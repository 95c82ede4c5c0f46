//! Text output of intervals in the formats of `IntervalStyle`.

use std::io::Write;

use super::interval::Interval;
use super::style::IntervalStyle;
use super::write::put_seconds;
use super::{MICROS_PER_HOUR, MICROS_PER_MINUTE};

/// The fields of an interval; all time fields have its sign.
struct IntervalParts {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    /// Seconds, in microseconds.
    micros: i64,
}

impl IntervalParts {
    fn new(interval: Interval) -> IntervalParts {
        IntervalParts {
            years: i64::from(interval.months / 12),
            months: i64::from(interval.months % 12),
            days: i64::from(interval.days),
            hours: interval.microseconds / MICROS_PER_HOUR,
            minutes: interval.microseconds / MICROS_PER_MINUTE % 60,
            micros: interval.microseconds % MICROS_PER_MINUTE,
        }
    }

    /// Returns the fields except seconds, with their units in the `postgres` styles.
    fn units(&self) -> [(i64, &'static str); 5] {
        [
            (self.years, "year"),
            (self.months, "mon"),
            (self.days, "day"),
            (self.hours, "hour"),
            (self.minutes, "min"),
        ]
    }
}

/// Appends an interval.
pub(crate) fn write_interval(interval: Interval, style: IntervalStyle, out: &mut Vec<u8>) {
    match style {
        IntervalStyle::Postgres => write_postgres(interval, out),
        IntervalStyle::PostgresVerbose => write_verbose(&IntervalParts::new(interval), out),
        IntervalStyle::SqlStandard => write_standard(interval, out),
        IntervalStyle::Iso8601 => write_iso(&IntervalParts::new(interval), out),
    }
}

/// Appends `1 year 2 mons -3 days +04:05:06`.
fn write_postgres(interval: Interval, out: &mut Vec<u8>) {
    let mut empty = true;
    let mut negative_before = false;
    for (value, unit) in &IntervalParts::new(interval).units()[..3] {
        if *value == 0 {
            continue;
        }
        let space = if empty { "" } else { " " };
        let sign = if negative_before && *value > 0 { "+" } else { "" };
        let plural = if *value == 1 { "" } else { "s" };
        let _ = write!(out, "{space}{sign}{value} {unit}{plural}");
        negative_before = *value < 0;
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
    put_clock(interval.microseconds, true, out);
}

/// Appends hours, minutes and seconds without a sign.
fn put_clock(microseconds: i64, two_digits: bool, out: &mut Vec<u8>) {
    let micros = microseconds.unsigned_abs();
    let (hour, minute) = (micros / MICROS_PER_HOUR as u64, micros / MICROS_PER_MINUTE as u64 % 60);
    let _ = match two_digits {
        true => write!(out, "{hour:02}:{minute:02}:"),
        false => write!(out, "{hour}:{minute:02}:"),
    };
    put_seconds((micros % MICROS_PER_MINUTE as u64) as i64, out);
}

/// Appends seconds without a leading zero.
fn put_short_seconds(micros: i64, out: &mut Vec<u8>) {
    let at = out.len();
    put_seconds(micros.abs(), out);
    if out[at] == b'0' {
        out.remove(at);
    }
}

/// Appends `@ 1 year 2 mons -3 days 4 hours 5 mins 6 secs`, with `ago` if the first field is
/// negative.
fn write_verbose(parts: &IntervalParts, out: &mut Vec<u8>) {
    out.push(b'@');
    let (mut is_zero, mut ago) = (true, false);
    for (value, unit) in parts.units() {
        if value == 0 {
            continue;
        }
        if is_zero {
            ago = value < 0;
        }
        let value = if ago { -value } else { value };
        let plural = if value == 1 { "" } else { "s" };
        let _ = write!(out, " {value} {unit}{plural}");
        is_zero = false;
    }
    if parts.micros != 0 {
        out.push(b' ');
        if is_zero {
            ago = parts.micros < 0;
        } else if ago != (parts.micros < 0) {
            out.push(b'-');
        }
        put_short_seconds(parts.micros, out);
        let plural = if parts.micros.abs() == 1_000_000 { "" } else { "s" };
        let _ = write!(out, " sec{plural}");
        is_zero = false;
    }
    if is_zero {
        out.extend_from_slice(b" 0");
    }
    if ago {
        out.extend_from_slice(b" ago");
    }
}

/// Appends the SQL standard format: years and months, or days and time, with one sign. If both
/// are present, or signs differ, each part has a sign.
fn write_standard(interval: Interval, out: &mut Vec<u8>) {
    let Interval { months, days, microseconds } = interval;
    let signs = [i64::from(months).signum(), i64::from(days).signum(), microseconds.signum()];
    let negative = signs.contains(&-1);
    let mixed = negative && signs.contains(&1);
    if !negative && !signs.contains(&1) {
        out.push(b'0');
        return;
    }
    let (years, rest) = (months.unsigned_abs() / 12, months.unsigned_abs() % 12);
    if mixed || months != 0 && (days != 0 || microseconds != 0) {
        let sign = |negative| if negative { '-' } else { '+' };
        let (first, second, third) = (sign(months < 0), sign(days < 0), sign(microseconds < 0));
        let days = days.unsigned_abs();
        let _ = write!(out, "{first}{years}-{rest} {second}{days} {third}");
        return put_clock(microseconds, false, out);
    }
    if negative {
        out.push(b'-');
    }
    if months != 0 {
        let _ = write!(out, "{years}-{rest}");
        return;
    }
    if days != 0 {
        let _ = write!(out, "{} ", days.unsigned_abs());
    }
    put_clock(microseconds, false, out);
}

/// Appends `P1Y2M-3DT4H5M6S`.
fn write_iso(parts: &IntervalParts, out: &mut Vec<u8>) {
    let at = out.len();
    out.push(b'P');
    for (value, letter) in [(parts.years, 'Y'), (parts.months, 'M'), (parts.days, 'D')] {
        if value != 0 {
            let _ = write!(out, "{value}{letter}");
        }
    }
    if parts.hours != 0 || parts.minutes != 0 || parts.micros != 0 {
        out.push(b'T');
    }
    for (value, letter) in [(parts.hours, 'H'), (parts.minutes, 'M')] {
        if value != 0 {
            let _ = write!(out, "{value}{letter}");
        }
    }
    if parts.micros != 0 {
        if parts.micros < 0 {
            out.push(b'-');
        }
        put_short_seconds(parts.micros, out);
        out.push(b'S');
    }
    if out.len() == at + 1 {
        out.extend_from_slice(b"T0S");
    }
}
