//! Formatting of intervals by a template. Fields that only dates have are errors.
//!
//! Source: PostgreSQL's formatting.c (`DCH_to_char` with `is_interval`).

use super::date_format::{ROMAN, era, format_items, is_fraction, pad_right, push};
use super::date_template::{Spelling, TemplateField};
use crate::context::EvalContext;
use crate::datetime::{Interval, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::datum::Datum;
use crate::error::{Error, Result};

/// Formats an interval; NULL for an empty template.
pub(super) fn format(interval: Interval, template: &str, context: &EvalContext) -> Result<Datum> {
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    format_items(template, context, |field, out| write(&interval, field, out))
}

fn write(interval: &Interval, field: &TemplateField, out: &mut String) -> Result<()> {
    let hour = interval.microseconds / MICROS_PER_HOUR;
    match field.keyword {
        "FX" => {}
        "AM" | "PM" | "A.M." | "P.M." => {
            era(if hour % 24 >= 12 { "PM" } else { "AM" }, field, out);
        }
        "RM" => roman(interval, field, out),
        "Y,YYY" => {
            let year = interval.months / 12;
            push(out, format_args!("{},{:03}", year / 1000, year % 1000));
        }
        "Q" if interval.months % 12 == 0 => {}
        keyword => match number(interval, keyword) {
            Some((value, width)) => {
                // The sign needs an additional position.
                let sign = usize::from(value < 0 && keyword != "DD");
                let unpadded = field.unpadded && !is_fraction(keyword);
                let width = if unpadded { 0 } else { width + sign };
                push(out, format_args!("{value:0width$}"));
            }
            None => {
                bail!(INVALID_DATETIME_FORMAT: "invalid format specification for an interval value";
                    hint "Intervals are not tied to specific calendar dates.");
            }
        },
    }
    Ok(())
}

/// Returns the value of a numeric keyword and its padded width.
fn number(interval: &Interval, keyword: &str) -> Option<(i64, usize)> {
    let time = interval.microseconds;
    let (hour, minute) = (time / MICROS_PER_HOUR, time / MICROS_PER_MINUTE % 60);
    let (second, micros) = (time / MICROS_PER_SECOND % 60, time % MICROS_PER_SECOND);
    let (year, month) = (i64::from(interval.months / 12), i64::from(interval.months % 12));
    let day = i64::from(interval.days);
    let day_of_year = i64::from(interval.months) * 30 + day;
    Some(match keyword {
        "SSSSS" | "SSSS" => (hour * 3600 + minute * 60 + second, 0),
        "SS" => (second, 2),
        "MI" => (minute, 2),
        "HH24" => (hour, 2),
        "HH12" | "HH" => (if hour % 12 == 0 { 12 } else { hour % 12 }, 2),
        "MS" | "FF3" => (micros / 1_000, 3),
        "US" | "FF6" => (micros, 6),
        "FF1" => (micros / 100_000, 1),
        "FF2" => (micros / 10_000, 2),
        "FF4" => (micros / 100, 4),
        "FF5" => (micros / 10, 5),
        "YYYY" | "IYYY" => (year, 4),
        "YYY" | "IYY" => (year % 1000, 3),
        "YY" | "IY" => (year % 100, 2),
        "Y" | "I" => (year % 10, 1),
        "MM" => (month, 2),
        "DDD" => (day_of_year, 3),
        "DD" => (day, 2),
        "WW" => ((day_of_year - 1) / 7 + 1, 2),
        "W" => ((day - 1) / 7 + 1, 1),
        "CC" => (year / 100, 2),
        "Q" => ((month - 1) / 3 + 1, 1),
        "J" => (julian_day(year, month, day), 0),
        _ => return None,
    })
}

/// Computes PostgreSQL's `date2j` on the parts of an interval.
fn julian_day(year: i64, month: i64, day: i64) -> i64 {
    let (month, year) =
        if month > 2 { (month + 1, year + 4800) } else { (month + 13, year + 4799) };
    let century = year / 100;
    year * 365 - 32_167 + year / 4 - century + century / 4 + 7834 * month / 256 + day
}

fn roman(interval: &Interval, field: &TemplateField, out: &mut String) {
    let (year, month) = (interval.months / 12, interval.months % 12);
    let index = match month {
        0 if year == 0 => return,
        // The names count from the end of the year.
        0 if year > 0 => 11,
        0 => 0,
        1.. => month - 1,
        _ => 12 + month,
    };
    let word = ROMAN[usize::try_from(index).unwrap_or(0)];
    let lower = field.spelling == Spelling::Lower;
    let word = if lower { word.to_lowercase() } else { word.to_owned() };
    pad_right(&word, if field.unpadded { 0 } else { 4 }, out);
}
