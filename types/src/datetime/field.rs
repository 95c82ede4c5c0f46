//! Fields of dates and intervals: `extract` and `date_trunc`.
//!
//! `extract` returns `numeric` with PostgreSQL's scales: seconds and epochs with six digits,
//! milliseconds with three.

use super::arithmetic::check_timestamp;
use super::arithmetic::day_of_year;
use super::arithmetic::local_to_timestamptz;
use super::arithmetic::timestamptz_to_local;
use super::calendar::{CivilTime, civil_from_days, civil_from_timestamp, day_of_week};
use super::calendar::{iso_week, iso_year_start, julian_day, timestamp_from_civil};
use super::interval::Interval;
use super::timetz::TimeWest;
use super::zone::TimeZone;
use super::{DATE_INFINITY, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE};
use super::{MICROS_PER_SECOND, TIMESTAMP_INFINITY, UNIX_EPOCH_DAYS, UNIX_EPOCH_SECONDS};
use super::{is_finite_date, is_finite_timestamp, out_of_range};
use crate::datatype::DataType;
use crate::error::Error;
use crate::error::Result;
use crate::interruptible::InterruptPacer;
use crate::numeric::Numeric;

/// A field of a date, time or interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Microseconds of the minute.
    Microseconds,
    /// Milliseconds of the minute.
    Milliseconds,
    /// Seconds.
    Second,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
    /// Day of the month.
    Day,
    /// Day of the week, 0 for Sunday.
    Dow,
    /// Day of the week, 7 for Sunday.
    IsoDow,
    /// Day of the year.
    Doy,
    /// ISO week.
    Week,
    /// Month.
    Month,
    /// Quarter.
    Quarter,
    /// Year.
    Year,
    /// Year of the ISO week.
    IsoYear,
    /// Year divided by 10.
    Decade,
    /// Century.
    Century,
    /// Millennium.
    Millennium,
    /// Julian day with fraction.
    Julian,
    /// Seconds since 1970, or the seconds of an interval.
    Epoch,
    /// Seconds east of Greenwich.
    Timezone,
    /// Hours of the time zone offset.
    TimezoneHour,
    /// Minutes of the time zone offset.
    TimezoneMinute,
}

/// Significant bytes of a unit name, as in PostgreSQL: `millenniums` equals `millennium`.
const WORD_BYTES: usize = 10;

/// The accepted spellings, as in PostgreSQL.
const NAMES: &[(&str, Field)] = &[
    ("microseconds", Field::Microseconds),
    ("microsecond", Field::Microseconds),
    ("us", Field::Microseconds),
    ("usec", Field::Microseconds),
    ("usecs", Field::Microseconds),
    ("microsecon", Field::Microseconds),
    ("milliseconds", Field::Milliseconds),
    ("millisecond", Field::Milliseconds),
    ("ms", Field::Milliseconds),
    ("msec", Field::Milliseconds),
    ("msecs", Field::Milliseconds),
    ("second", Field::Second),
    ("seconds", Field::Second),
    ("s", Field::Second),
    ("sec", Field::Second),
    ("secs", Field::Second),
    ("minute", Field::Minute),
    ("minutes", Field::Minute),
    ("m", Field::Minute),
    ("min", Field::Minute),
    ("mins", Field::Minute),
    ("hour", Field::Hour),
    ("hours", Field::Hour),
    ("h", Field::Hour),
    ("hr", Field::Hour),
    ("hrs", Field::Hour),
    ("day", Field::Day),
    ("days", Field::Day),
    ("d", Field::Day),
    ("dow", Field::Dow),
    ("isodow", Field::IsoDow),
    ("doy", Field::Doy),
    ("week", Field::Week),
    ("weeks", Field::Week),
    ("w", Field::Week),
    ("month", Field::Month),
    ("months", Field::Month),
    ("mon", Field::Month),
    ("mons", Field::Month),
    ("quarter", Field::Quarter),
    ("qtr", Field::Quarter),
    ("year", Field::Year),
    ("years", Field::Year),
    ("y", Field::Year),
    ("yr", Field::Year),
    ("yrs", Field::Year),
    ("isoyear", Field::IsoYear),
    ("decade", Field::Decade),
    ("decades", Field::Decade),
    ("dec", Field::Decade),
    ("decs", Field::Decade),
    ("century", Field::Century),
    ("centuries", Field::Century),
    ("c", Field::Century),
    ("cent", Field::Century),
    ("millennium", Field::Millennium),
    ("millennia", Field::Millennium),
    ("mil", Field::Millennium),
    ("mils", Field::Millennium),
    ("julian", Field::Julian),
    ("j", Field::Julian),
    ("jd", Field::Julian),
    ("epoch", Field::Epoch),
    ("timezone", Field::Timezone),
    ("timezone_hour", Field::TimezoneHour),
    ("timezone_h", Field::TimezoneHour),
    ("timezone_minute", Field::TimezoneMinute),
    ("timezone_m", Field::TimezoneMinute),
];

impl Field {
    /// Returns the field of a name, case-insensitively.
    pub fn from_name(name: &str) -> Option<Field> {
        let start =
            |word: &'_ str| word.as_bytes()[..word.len().min(WORD_BYTES)].to_ascii_lowercase();
        let name = start(name.trim());
        NAMES.iter().find(|(spelling, _)| start(spelling) == name).map(|(_, f)| *f)
    }

    /// Returns the field of a name, case-insensitively, or PostgreSQL's error for the type.
    ///
    /// # Errors
    ///
    /// `22023` if there is no such field.
    pub fn parse(name: &str, data_type: &DataType) -> Result<Field> {
        Field::from_name(name).ok_or_else(|| {
            let (name, of) = (name.to_ascii_lowercase(), data_type.sql_name());
            err!(INVALID_PARAMETER_VALUE: "unit \"{name}\" not recognized for type {of}")
        })
    }

    /// Returns the canonical name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, field)| *field == self).map_or("", |(name, _)| name)
    }

    fn not_supported(self, data_type: &DataType) -> Error {
        err!(FEATURE_NOT_SUPPORTED: "unit \"{}\" not supported for type {}", self.name(), data_type.sql_name())
    }

    /// Returns the error of a field that `date_trunc` does not support. PostgreSQL has different
    /// errors for fields that only `extract` knows.
    fn no_unit(self, data_type: &DataType) -> Error {
        let extracted_only = matches!(
            self,
            Field::Dow | Field::IsoDow | Field::Doy | Field::IsoYear | Field::Julian | Field::Epoch
        );
        if extracted_only {
            let (name, type_name) = (self.name(), data_type.sql_name());
            return err!(INVALID_PARAMETER_VALUE: "unit \"{name}\" not recognized for type {type_name}");
        }
        self.not_supported(data_type)
    }

    /// Returns the result of `extract` for an infinite date: an infinity for monotonic fields,
    /// otherwise NULL.
    fn of_infinity(self, positive: bool) -> Option<Numeric> {
        let grows = matches!(
            self,
            Field::Year
                | Field::IsoYear
                | Field::Decade
                | Field::Century
                | Field::Millennium
                | Field::Julian
                | Field::Epoch
        );
        let infinity = if positive { Numeric::INFINITY } else { Numeric::NEGATIVE_INFINITY };
        grows.then_some(infinity)
    }
}

fn whole(value: i64) -> Numeric {
    Numeric::from(value)
}

/// Returns microseconds as a number of seconds.
fn seconds(micros: i64) -> Numeric {
    Numeric::from_mantissa(i128::from(micros), 6)
}

/// Returns a year in AD and BC numbering, without a year 0.
fn shown_year(year: i32) -> i64 {
    i64::from(if year > 0 { year } else { year - 1 })
}

fn decade(year: i32) -> i32 {
    year.div_euclid(10)
}

/// Returns the century (`length` 100) or millennium (1000) of an astronomical year.
fn period(year: i32, length: i32) -> i32 {
    if year > 0 { (year + length - 1) / length } else { -((length - 1 - (year - 1)) / length) }
}

/// Returns a field of a finite date; `None` if dates do not have it.
fn date_field(field: Field, days: i32) -> Option<Numeric> {
    let (year, month, day) = civil_from_days(days);
    Some(whole(match field {
        Field::Day => i64::from(day),
        Field::Month => i64::from(month),
        Field::Quarter => i64::from((month - 1) / 3 + 1),
        Field::Week => i64::from(iso_week(days).1),
        Field::Year => shown_year(year),
        Field::IsoYear => shown_year(iso_week(days).0),
        Field::Decade => i64::from(decade(year)),
        Field::Century => i64::from(period(year, 100)),
        Field::Millennium => i64::from(period(year, 1000)),
        Field::Dow => i64::from(day_of_week(days)),
        Field::IsoDow => i64::from((day_of_week(days) + 6) % 7 + 1),
        Field::Doy => i64::from(day_of_year(days)),
        Field::Julian => julian_day(days),
        _ => return None,
    }))
}

/// Returns a field of a time of day; `None` if times do not have it.
fn time_field(field: Field, time: i64) -> Option<Numeric> {
    Some(match field {
        Field::Microseconds => whole(time % MICROS_PER_MINUTE),
        Field::Milliseconds => Numeric::from_mantissa(i128::from(time % MICROS_PER_MINUTE), 3),
        Field::Second => seconds(time % MICROS_PER_MINUTE),
        Field::Minute => whole(time / MICROS_PER_MINUTE % 60),
        Field::Hour => whole(time / MICROS_PER_HOUR),
        _ => return None,
    })
}

/// Returns a field of a date; `None` (NULL) for some fields of infinite dates.
///
/// # Errors
///
/// `0A000` if dates do not have the field; likewise for the other types.
pub fn extract_from_date(field: Field, date: i32) -> Result<Option<Numeric>> {
    let unsupported = || field.not_supported(&DataType::Date);
    if !is_finite_date(date) {
        let known = field == Field::Epoch || date_field(field, 0).is_some();
        let value = field.of_infinity(date == DATE_INFINITY);
        return if known { Ok(value) } else { Err(unsupported()) };
    }
    if field == Field::Epoch {
        let days = i64::from(date) + i64::from(UNIX_EPOCH_DAYS);
        return Ok(Some(whole(days * 86_400)));
    }
    date_field(field, date).map(Some).ok_or_else(unsupported)
}

/// Returns a field of a time of day.
pub fn extract_from_time(field: Field, time: i64) -> Result<Option<Numeric>> {
    if field == Field::Epoch {
        return Ok(Some(seconds(time)));
    }
    time_field(field, time).map(Some).ok_or_else(|| field.not_supported(&DataType::Time))
}

/// Returns a field of a time with time zone.
pub fn extract_from_timetz(field: Field, (time, west): TimeWest) -> Result<Option<Numeric>> {
    let value = match field {
        Field::Epoch => seconds(time + i64::from(west) * MICROS_PER_SECOND),
        Field::Timezone => whole(i64::from(-west)),
        Field::TimezoneHour => whole(i64::from(-west / 3600)),
        Field::TimezoneMinute => whole(i64::from(-west / 60 % 60)),
        _ => time_field(field, time).ok_or_else(|| field.not_supported(&DataType::Timetz))?,
    };
    Ok(Some(value))
}

/// Returns a field of a local timestamp that does not depend on a zone.
fn timestamp_field(field: Field, timestamp: i64) -> Option<Numeric> {
    let days = timestamp.div_euclid(MICROS_PER_DAY) as i32;
    let time = timestamp.rem_euclid(MICROS_PER_DAY);
    if field == Field::Julian {
        let fraction = whole(time)
            .checked_div(&whole(MICROS_PER_DAY), &mut InterruptPacer::without_interrupt())
            .ok()?;
        return whole(julian_day(days)).checked_add(&fraction).ok();
    }
    date_field(field, days).or_else(|| time_field(field, time))
}

/// Returns the seconds from 1970 to a timestamp.
fn epoch(timestamp: i64) -> Numeric {
    let micros = i128::from(timestamp) + i128::from(UNIX_EPOCH_SECONDS * MICROS_PER_SECOND);
    Numeric::from_mantissa(micros, 6)
}

/// Returns a field of a timestamp; `None` (NULL) for some fields of infinite timestamps.
pub fn extract_from_timestamp(field: Field, timestamp: i64) -> Result<Option<Numeric>> {
    let unsupported = || field.not_supported(&DataType::Timestamp);
    if !is_finite_timestamp(timestamp) {
        let of_zone =
            matches!(field, Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute);
        let known = field == Field::Epoch || of_zone || timestamp_field(field, 0).is_some();
        let value = field.of_infinity(timestamp == TIMESTAMP_INFINITY);
        return if known { Ok(value) } else { Err(unsupported()) };
    }
    if field == Field::Epoch {
        return Ok(Some(epoch(timestamp)));
    }
    timestamp_field(field, timestamp).map(Some).ok_or_else(unsupported)
}

/// Returns a field of an instant in a zone; `None` (NULL) for some fields of infinite instants.
pub fn extract_from_timestamptz(
    field: Field,
    timestamptz: i64,
    zone: &TimeZone,
) -> Result<Option<Numeric>> {
    if !is_finite_timestamp(timestamptz) {
        return Ok(field.of_infinity(timestamptz == TIMESTAMP_INFINITY));
    }
    let offset = i64::from(zone.offset_at(timestamptz));
    let value = match field {
        Field::Epoch => Some(epoch(timestamptz)),
        Field::Timezone => Some(whole(offset)),
        Field::TimezoneHour => Some(whole(offset / 3600)),
        Field::TimezoneMinute => Some(whole(offset / 60 % 60)),
        _ => timestamp_field(field, timestamptz_to_local(timestamptz, zone)?),
    };
    value.map(Some).ok_or_else(|| field.not_supported(&DataType::Timestamptz))
}

/// Returns a field of an interval.
pub fn extract_from_interval(field: Field, interval: Interval) -> Result<Option<Numeric>> {
    let years = i64::from(interval.months / 12);
    let months = i64::from(interval.months % 12);
    let value = match field {
        Field::Day => whole(i64::from(interval.days)),
        Field::Month => whole(months),
        Field::Quarter => whole(months / 3 + 1),
        Field::Year => whole(years),
        Field::Decade => whole(years / 10),
        Field::Century => whole(years / 100),
        Field::Millennium => whole(years / 1000),
        Field::Epoch => {
            let quarter_days = 1461 * years + 120 * months + 4 * i64::from(interval.days);
            let seconds = i128::from(quarter_days) * 21_600;
            let micros = seconds * 1_000_000 + i128::from(interval.microseconds);
            Numeric::from_mantissa(micros, 6)
        }
        _ => time_field(field, interval.microseconds)
            .ok_or_else(|| field.not_supported(&DataType::Interval))?,
    };
    Ok(Some(value))
}

/// Returns a finite local timestamp truncated to a field; `None` if that is not supported.
fn trunc(field: Field, timestamp: i64) -> Option<Result<i64>> {
    let unit = match field {
        Field::Microseconds => Some(1),
        Field::Milliseconds => Some(1000),
        Field::Second => Some(MICROS_PER_SECOND),
        Field::Minute => Some(MICROS_PER_MINUTE),
        Field::Hour => Some(MICROS_PER_HOUR),
        Field::Day => Some(MICROS_PER_DAY),
        _ => None,
    };
    if let Some(unit) = unit {
        return Some(Ok(timestamp - timestamp.rem_euclid(unit)));
    }
    let civil = civil_from_timestamp(timestamp);
    let start = |year: i32, month: u32| CivilTime { year, month, day: 1, ..CivilTime::default() };
    let first = match field {
        Field::Week => {
            let days = timestamp.div_euclid(MICROS_PER_DAY) as i32;
            let (year, week) = iso_week(days);
            let monday = iso_year_start(year) + (week as i32 - 1) * 7;
            return Some(check_timestamp(i64::from(monday) * MICROS_PER_DAY));
        }
        Field::Month => start(civil.year, civil.month),
        Field::Quarter => start(civil.year, (civil.month - 1) / 3 * 3 + 1),
        Field::Year => start(civil.year, 1),
        Field::Decade => start(decade(civil.year) * 10, 1),
        Field::Century | Field::Millennium => {
            let length = if field == Field::Century { 100 } else { 1000 };
            let year = if civil.year > 0 {
                (civil.year + length - 1) / length * length - (length - 1)
            } else {
                -((length - 1 - (civil.year - 1)) / length) * length + 1
            };
            start(year, 1)
        }
        _ => return None,
    };
    Some(timestamp_from_civil(&first).ok_or_else(|| out_of_range("timestamp")))
}

/// Returns a timestamp truncated to a field.
///
/// # Errors
///
/// `0A000` if that is not supported; `22008` if the result is out of range.
pub fn date_trunc_timestamp(field: Field, timestamp: i64) -> Result<i64> {
    if !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    trunc(field, timestamp).ok_or_else(|| field.no_unit(&DataType::Timestamp))?
}

/// Returns an instant truncated to a field of its local time in a zone.
///
/// # Errors
///
/// `0A000` if that is not supported; `22008` if the result is out of range.
pub fn date_trunc_timestamptz(field: Field, timestamptz: i64, zone: &TimeZone) -> Result<i64> {
    if !is_finite_timestamp(timestamptz) {
        return Ok(timestamptz);
    }
    let local = timestamptz_to_local(timestamptz, zone)?;
    let cut = trunc(field, local).ok_or_else(|| field.no_unit(&DataType::Timestamptz))??;
    let keeps_offset = matches!(
        field,
        Field::Microseconds | Field::Milliseconds | Field::Second | Field::Minute | Field::Hour
    );
    if keeps_offset {
        return check_timestamp(timestamptz - (local - cut));
    }
    local_to_timestamptz(cut, zone)
}

/// Returns an interval truncated to a field.
///
/// # Errors
///
/// `0A000` if that is not supported.
pub fn date_trunc_interval(field: Field, interval: Interval) -> Result<Interval> {
    let cut_months = |unit: i32| Interval::new(interval.months / unit * unit, 0, 0);
    let cut_time =
        |unit: i64| Interval { microseconds: interval.microseconds / unit * unit, ..interval };
    Ok(match field {
        Field::Millennium => cut_months(12_000),
        Field::Century => cut_months(1200),
        Field::Decade => cut_months(120),
        Field::Year => cut_months(12),
        Field::Quarter => cut_months(3),
        Field::Month => cut_months(1),
        Field::Day => Interval { microseconds: 0, ..interval },
        Field::Hour => cut_time(MICROS_PER_HOUR),
        Field::Minute => cut_time(MICROS_PER_MINUTE),
        Field::Second => cut_time(MICROS_PER_SECOND),
        Field::Milliseconds => cut_time(1000),
        Field::Microseconds => interval,
        Field::Week => {
            return Err(field
                .not_supported(&DataType::Interval)
                .with_detail("Months usually have fractional weeks."));
        }
        _ => return Err(field.no_unit(&DataType::Interval)),
    })
}
