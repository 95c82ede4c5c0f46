//! Formatting of dates, times and intervals by a template: `to_char(at, 'YYYY-MM-DD HH24:MI')`.
//!
//! Source: PostgreSQL's formatting.c (`DCH_to_char`), with English names.

use std::fmt::Write;

use super::argument::{interval, text, text_datum, timestamp, timestamptz};
use super::date_template::{DateTemplateItem, Spelling, TemplateField, read};
use super::interval_format;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Interval, Text, Timestamp, Timestamptz};
use crate::datetime::{self, CivilTime};
use crate::datum::Datum;
use crate::error::Result;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("to_char", &[Timestamp, Text], Text, |a, context| {
        format(timestamp(&a[0]), text(&a[1]), None, context)
    })
    .stable(),
    row("to_char", &[Timestamptz, Text], Text, to_char_zoned).stable(),
    row("to_char", &[Interval, Text], Text, |a, context| {
        interval_format::format(interval(&a[0]), text(&a[1]), context)
    })
    .stable(),
];

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

pub(super) const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The offset from UTC and the abbreviation of a zone at some instant.
struct Zone {
    offset_seconds: i32,
    abbreviation: String,
}

fn to_char_zoned(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let at = timestamptz(&arguments[0]);
    let local = datetime::timestamptz_to_local(at, &context.style.time_zone)?;
    let finite = datetime::is_finite_timestamp(at);
    let zone = finite.then(|| Zone {
        offset_seconds: context.style.time_zone.offset_at(at),
        abbreviation: context.style.time_zone.abbreviation_at(at),
    });
    format(local, text(&arguments[1]), zone, context)
}

/// The fields of a timestamp for templates.
struct FormatInput {
    civil: CivilTime,
    days: i32,
    day_of_year: i32,
    zone: Option<Zone>,
}

fn format(local: i64, template: &str, zone: Option<Zone>, context: &EvalContext) -> Result<Datum> {
    if !datetime::is_finite_timestamp(local) || template.is_empty() {
        return Ok(Datum::Null);
    }
    let civil = datetime::civil_from_timestamp(local);
    let days = datetime::timestamp_to_date(local);
    let day_of_year = days - datetime::days_from_civil(civil.year, 1, 1) + 1;
    let moment = FormatInput { civil, days, day_of_year, zone };
    format_items(template, context, |field, out| {
        moment.write(field, out);
        Ok(())
    })
}

/// Formats the items of a template; `write` writes a field without its ordinal suffix.
pub(super) fn format_items(
    template: &str,
    context: &EvalContext,
    write: impl Fn(&TemplateField, &mut String) -> Result<()>,
) -> Result<Datum> {
    /// Number of items between two checks for an interrupt.
    const ITEMS_PER_CHECK: usize = 256;
    /// Space that is reserved for an item; a longer one grows the text by a few bytes.
    const ITEM_BYTES: usize = 8;
    let pace = &mut context.pace();
    let mut out = String::new();
    for items in read(template, pace)?.chunks(ITEMS_PER_CHECK) {
        pace.count_steps(items.len())?;
        pace.reserve(&mut out, items.len() * ITEM_BYTES)?;
        for item in items {
            match item {
                DateTemplateItem::Field(field) => {
                    let start = out.len();
                    write(field, &mut out)?;
                    write_ordinal(field, start, &mut out);
                }
                DateTemplateItem::Space(c)
                | DateTemplateItem::Separator(c)
                | DateTemplateItem::Literal(c) => out.push(*c),
            }
        }
    }
    Ok(text_datum(out))
}

/// Writes the ordinal suffix `TH` of a field that begins at `start`.
fn write_ordinal(field: &TemplateField, start: usize, out: &mut String) {
    if let Some(spelling) = field.ordinal.filter(|_| field.is_counted()) {
        let suffix = ordinal(&out[start..]);
        let upper = spelling == Spelling::Upper;
        out.push_str(&if upper { suffix.to_uppercase() } else { suffix.to_owned() });
    }
}

/// Returns the ordinal suffix of a number in digits.
pub(super) fn ordinal(number: &str) -> &'static str {
    let digits = number.trim_start_matches('-').as_bytes();
    match digits {
        [.., b'1', _] => "th",
        [.., b'1'] => "st",
        [.., b'2'] => "nd",
        [.., b'3'] => "rd",
        _ => "th",
    }
}

impl FormatInput {
    fn write(&self, field: &TemplateField, out: &mut String) {
        let (spelling, filled) = (field.spelling, !field.unpadded);
        match field.keyword {
            "FX" => {}
            "MONTH" => name(MONTHS[self.month_index()], spelling, filled, 9, out),
            "MON" => name(&MONTHS[self.month_index()][..3], spelling, false, 0, out),
            "DAY" => name(DAYS[self.weekday()], spelling, filled, 9, out),
            "DY" => name(&DAYS[self.weekday()][..3], spelling, false, 0, out),
            "RM" => name(ROMAN[self.month_index()], spelling, filled, 4, out),
            "AM" | "PM" | "A.M." | "P.M." => {
                let half = if self.civil.hour < 12 { "AM" } else { "PM" };
                era(half, field, out);
            }
            "AD" | "BC" | "A.D." | "B.C." => {
                era(if self.civil.year > 0 { "AD" } else { "BC" }, field, out);
            }
            "TZ" => {
                if let Some(zone) = &self.zone {
                    let upper = spelling == Spelling::Upper;
                    let name = &zone.abbreviation;
                    out.push_str(&if upper { name.to_uppercase() } else { name.to_lowercase() });
                }
            }
            "TZH" | "TZM" | "OF" => self.write_offset(field.keyword, out),
            "Y,YYY" => {
                let year = self.year();
                push(out, format_args!("{},{:03}", year / 1000, year % 1000));
            }
            number => {
                let (value, width) = self.number(number);
                let filled = filled || is_fraction(number);
                number_text(value, if filled { width } else { 0 }, out);
            }
        }
    }

    /// Returns the value of a numeric keyword and its padded width.
    fn number(&self, keyword: &str) -> (i64, usize) {
        let civil = &self.civil;
        let of = |value: u32| i64::from(value);
        let micros = of(civil.microsecond);
        let hour12 = (civil.hour + 11) % 12 + 1;
        let iso_week = || of(datetime::iso_week(self.days).1);
        let iso_year = || match datetime::iso_week(self.days).0 {
            year @ 1.. => i64::from(year),
            before_christ => i64::from(1 - before_christ),
        };
        let monday_first = if self.weekday() == 0 { 7 } else { self.weekday() as i64 };
        match keyword {
            "SSSSS" | "SSSS" => {
                (of(civil.hour) * 3600 + of(civil.minute) * 60 + of(civil.second), 0)
            }
            "SS" => (of(civil.second), 2),
            "MI" => (of(civil.minute), 2),
            "HH24" => (of(civil.hour), 2),
            "HH12" | "HH" => (of(hour12), 2),
            "MS" | "FF3" => (micros / 1_000, 3),
            "US" | "FF6" => (micros, 6),
            "FF1" => (micros / 100_000, 1),
            "FF2" => (micros / 10_000, 2),
            "FF4" => (micros / 100, 4),
            "FF5" => (micros / 10, 5),
            "YYYY" => (self.year(), 4),
            "YYY" => (self.year() % 1000, 3),
            "YY" => (self.year() % 100, 2),
            "Y" => (self.year() % 10, 1),
            "IYYY" => (iso_year(), 4),
            "IYY" => (iso_year() % 1000, 3),
            "IY" => (iso_year() % 100, 2),
            "I" => (iso_year() % 10, 1),
            "IW" => (iso_week(), 2),
            "IDDD" => ((iso_week() - 1) * 7 + monday_first, 3),
            "ID" => (monday_first, 1),
            "MM" => (of(civil.month), 2),
            "DDD" => (i64::from(self.day_of_year), 3),
            "DD" => (of(civil.day), 2),
            "D" => (self.weekday() as i64 + 1, 1),
            "WW" => (i64::from((self.day_of_year - 1) / 7 + 1), 2),
            "W" => (of((civil.day - 1) / 7 + 1), 1),
            "CC" => (self.century(), if self.century() < 0 { 3 } else { 2 }),
            "J" => (i64::from(self.days) + i64::from(datetime::EPOCH_JULIAN_DAY), 0),
            "Q" => (of((civil.month - 1) / 3 + 1), 1),
            other => unreachable!("{other} is in the list of keywords"),
        }
    }

    fn write_offset(&self, keyword: &str, out: &mut String) {
        let seconds = self.zone.as_ref().map_or(0, |zone| zone.offset_seconds);
        let sign = if seconds < 0 { '-' } else { '+' };
        let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
        match keyword {
            "TZM" => push(out, format_args!("{minutes:02}")),
            "OF" if minutes != 0 => push(out, format_args!("{sign}{hours:02}:{minutes:02}")),
            _ => push(out, format_args!("{sign}{hours:02}")),
        }
    }

    /// Returns the year in AD and BC numbering, without a sign.
    fn year(&self) -> i64 {
        let year = i64::from(self.civil.year);
        if year > 0 { year } else { 1 - year }
    }

    fn century(&self) -> i64 {
        let year = i64::from(self.civil.year);
        if year > 0 { (year - 1) / 100 + 1 } else { year / 100 - 1 }
    }

    fn month_index(&self) -> usize {
        self.civil.month as usize - 1
    }

    /// Returns the day of the week, 0 for Sunday.
    fn weekday(&self) -> usize {
        datetime::day_of_week(self.days) as usize
    }
}

/// Returns whether a keyword is fractional seconds: FM does not strip its zeros.
pub(super) fn is_fraction(keyword: &str) -> bool {
    keyword == "MS" || keyword == "US" || keyword.starts_with("FF")
}

/// Writes a number with leading zeros up to a width, which includes the sign.
pub(super) fn number_text(value: i64, width: usize, out: &mut String) {
    match (value, width) {
        (0..10, 0 | 1) => out.push(char::from(b'0' + value as u8)),
        (0..100, 2) => {
            out.push(char::from(b'0' + (value / 10) as u8));
            out.push(char::from(b'0' + (value % 10) as u8));
        }
        _ => push(out, format_args!("{value:0width$}")),
    }
}

pub(super) fn push(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to a String cannot fail");
}

pub(super) fn pad_right(word: &str, width: usize, out: &mut String) {
    push(out, format_args!("{word:<width$}"));
}

/// Writes a name in the case of its keyword.
fn name(word: &str, spelling: Spelling, filled: bool, width: usize, out: &mut String) {
    let word = match spelling {
        Spelling::Upper => word.to_uppercase(),
        Spelling::Title => word.to_owned(),
        Spelling::Lower => word.to_lowercase(),
    };
    pad_right(&word, if filled { width } else { 0 }, out);
}

/// Writes `AM`, `BC` etc. in the case and with the dots of the keyword.
pub(super) fn era(letters: &str, field: &TemplateField, out: &mut String) {
    for letter in letters.chars() {
        let upper = field.spelling == Spelling::Upper;
        out.push(if upper { letter } else { letter.to_ascii_lowercase() });
        if field.keyword.contains('.') {
            out.push('.');
        }
    }
}
