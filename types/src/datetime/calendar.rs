//! The proleptic Gregorian calendar: conversion between day counts and year, month and day.
//!
//! Years are astronomical: year 0 is 1 BC. Day counts start at 2000-01-01.

use super::{EPOCH_JULIAN_DAY, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE};
use super::{MICROS_PER_SECOND, TIMESTAMP_END, TIMESTAMP_MIN};

/// The fields of a date and time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CivilTime {
    /// The year; 0 is 1 BC.
    pub year: i32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 to 999,999.
    pub microsecond: u32,
}

/// Returns the days from 2000-01-01 to a date; month and day are in range, the year within ±6
/// million.
pub fn days_from_civil(year: i32, month: u32, day: u32) -> i32 {
    debug_assert!((1..=12).contains(&month), "month {month}");
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    // 730,425 days from 0000-03-01 to 2000-01-01.
    let days = era * 146_097 + day_of_era - 730_425;
    days.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// Returns year, month and day of a day count.
pub fn civil_from_days(days: i32) -> (i32, u32, u32) {
    let days = i64::from(days) + 730_425;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (year, month, day) = (year as i32, month as u32, day as u32);
    debug_assert_eq!(
        i64::from(days_from_civil(year, month, day)) + 730_425,
        days,
        "{year} {month} {day}"
    );
    (year, month, day)
}

/// Returns the fields of a finite timestamp.
pub fn civil_from_timestamp(timestamp: i64) -> CivilTime {
    debug_assert!((TIMESTAMP_MIN..TIMESTAMP_END).contains(&timestamp), "{timestamp} is infinite");
    let (year, month, day) = civil_from_days(timestamp.div_euclid(MICROS_PER_DAY) as i32);
    let time = timestamp.rem_euclid(MICROS_PER_DAY);
    CivilTime {
        year,
        month,
        day,
        hour: (time / MICROS_PER_HOUR) as u32,
        minute: (time / MICROS_PER_MINUTE % 60) as u32,
        second: (time / MICROS_PER_SECOND % 60) as u32,
        microsecond: (time % MICROS_PER_SECOND) as u32,
    }
}

/// Returns the microseconds since midnight of a time of day.
pub(super) fn micros_of_day(civil: &CivilTime) -> i64 {
    debug_assert!(civil.hour <= 24 && civil.minute < 60 && civil.second <= 60, "{civil:?}");
    i64::from(civil.hour) * MICROS_PER_HOUR
        + i64::from(civil.minute) * MICROS_PER_MINUTE
        + i64::from(civil.second) * MICROS_PER_SECOND
        + i64::from(civil.microsecond)
}

/// Returns the timestamp of a date and time; `None` if it is out of range. Hour 24 and second 60
/// carry into the next day or minute.
pub fn timestamp_from_civil(civil: &CivilTime) -> Option<i64> {
    let days = i64::from(days_from_civil(civil.year, civil.month, civil.day));
    let timestamp = days.checked_mul(MICROS_PER_DAY)?.checked_add(micros_of_day(civil))?;
    (TIMESTAMP_MIN..TIMESTAMP_END).contains(&timestamp).then_some(timestamp)
}

/// Returns whether a year has 366 days.
pub(super) fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns the number of days of a month.
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the day of the week, 0 for Sunday.
pub fn day_of_week(days: i32) -> u32 {
    (i64::from(days) + 6).rem_euclid(7) as u32
}

/// Returns the Julian day number.
pub(super) fn julian_day(days: i32) -> i64 {
    i64::from(days) + i64::from(EPOCH_JULIAN_DAY)
}

/// Returns the day count of the Monday that begins the first ISO week of a year.
pub(super) fn iso_year_start(year: i32) -> i32 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - (day_of_week(fourth) as i32 + 6) % 7
}

/// Returns ISO year and week of a day.
pub fn iso_week(days: i32) -> (i32, u32) {
    let (mut year, _, _) = civil_from_days(days);
    if days < iso_year_start(year) {
        year -= 1;
    } else if days >= iso_year_start(year + 1) {
        year += 1;
    }
    (year, ((days - iso_year_start(year)) / 7 + 1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn day_numbers_and_civil_dates_round_trip() {
        assert_eq!(days_from_civil(2000, 1, 1), 0);
        assert_eq!(days_from_civil(1970, 1, 1), -10_957);
        assert_eq!(days_from_civil(-4712, 1, 1), -2_451_507);
        assert_eq!(days_from_civil(-4713, 11, 24), super::super::DATE_MIN);
        assert_eq!(days_from_civil(5_874_897, 12, 31), super::super::DATE_MAX);
        let mut days = super::super::DATE_MIN;
        while days < super::super::DATE_MAX - 100_000 {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
            days += 99_991;
        }
    }

    #[test]
    fn iso_weeks_begin_on_monday() {
        assert_eq!(day_of_week(0), 6);
        assert_eq!(iso_week(days_from_civil(2005, 1, 1)), (2004, 53));
        assert_eq!(iso_week(days_from_civil(2007, 12, 31)), (2008, 1));
        assert_eq!(iso_week(days_from_civil(2010, 1, 3)), (2009, 53));
    }
}
