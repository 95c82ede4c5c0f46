//! `to_char` of timestamps: templates such as `YYYY-MM-DD HH24:MI`.
//!
//! A template is read from left to right; the longest keyword wins, text in double quotes and what
//! is no keyword stands for itself. `FM` before a keyword drops padding, `TH` after it adds the
//! ordinal.

use std::fmt::Write;

use super::argument::{text, text_datum, timestamp, timestamptz};
use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Text, Timestamp, Timestamptz};
use crate::datetime::{self, CivilTime};
use crate::datum::Datum;
use crate::error::Result;

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("to_char", &[Timestamp, Text], Text, |a, _| {
        Ok(format(timestamp(&a[0]), text(&a[1]), None))
    })
    .stable(),
    row("to_char", &[Timestamptz, Text], Text, to_char_zoned).stable(),
];

/// The keywords; of those that begin alike the longer first.
const KEYWORDS: &[&str] = &[
    "SSSSS", "SSSS", "SS", "Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "IDDD", "ID",
    "IW", "I", "MONTH", "MON", "MM", "MI", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
    "HH24", "HH12", "HH", "A.M.", "P.M.", "A.D.", "B.C.", "AM", "PM", "AD", "BC", "DAY", "DY",
    "DDD", "DD", "D", "WW", "W", "CC", "J", "Q", "RM", "TZH", "TZM", "TZ", "OF",
];

const MONTHS: [&str; 12] = [
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

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const ROMAN: [&str; 12] =
    ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// The offset from UTC and the abbreviation of a zone at some instant.
struct Zone {
    offset_seconds: i32,
    abbreviation: String,
}

fn to_char_zoned(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let at = timestamptz(&arguments[0]);
    let local = datetime::timestamptz_to_local(at, &context.time_zone)?;
    let finite = datetime::is_finite_timestamp(at);
    let zone = finite.then(|| Zone {
        offset_seconds: context.time_zone.offset_at(at),
        abbreviation: context.time_zone.abbreviation_at(at),
    });
    Ok(format(local, text(&arguments[1]), zone))
}

/// A timestamp taken apart, with what templates ask for.
struct Moment {
    civil: CivilTime,
    days: i32,
    day_of_year: i32,
    zone: Option<Zone>,
}

fn format(local: i64, template: &str, zone: Option<Zone>) -> Datum {
    if !datetime::is_finite_timestamp(local) || template.is_empty() {
        return Datum::Null;
    }
    let civil = datetime::civil_from_timestamp(local);
    let days = datetime::timestamp_to_date(local);
    let day_of_year = days - datetime::days_from_civil(civil.year, 1, 1) + 1;
    let moment = Moment { civil, days, day_of_year, zone };
    let mut out = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        let unfilled = starts_with_keyword(rest, "FM").then(|| &rest[2..]);
        let candidate = unfilled.unwrap_or(rest);
        if let Some(keyword) = KEYWORDS.iter().find(|k| starts_with_keyword(candidate, k)) {
            let spelled = &candidate[..keyword.len()];
            rest = &candidate[keyword.len()..];
            let start = out.len();
            moment.write(keyword, spelled, unfilled.is_none(), &mut out);
            if starts_with_keyword(rest, "TH") {
                let suffix = ordinal(&out[start..]);
                let upper = rest.starts_with('T');
                out.push_str(&if upper { suffix.to_uppercase() } else { suffix.to_owned() });
                rest = &rest[2..];
            }
        } else if let Some(after) = unfilled {
            rest = after;
        } else if first == '"' {
            rest = quoted(&rest[1..], &mut out);
        } else if let Some(after) = rest.strip_prefix("\\\"") {
            out.push('"');
            rest = after;
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    text_datum(out)
}

fn starts_with_keyword(template: &str, keyword: &str) -> bool {
    template.get(..keyword.len()).is_some_and(|start| start.eq_ignore_ascii_case(keyword))
}

/// Copies text up to the closing quote and returns what comes after it.
fn quoted<'a>(template: &'a str, out: &mut String) -> &'a str {
    let mut characters = template.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => break,
            '\\' => out.extend(characters.next()),
            other => out.push(other),
        }
    }
    characters.as_str()
}

/// Returns the ordinal suffix of a number in digits.
fn ordinal(number: &str) -> &'static str {
    let digits = number.trim_start_matches('-').as_bytes();
    match digits {
        [.., b'1', _] => "th",
        [.., b'1'] => "st",
        [.., b'2'] => "nd",
        [.., b'3'] => "rd",
        _ => "th",
    }
}

impl Moment {
    /// Writes the field of a keyword. `spelled` is the keyword as the template has it, whose case
    /// decides that of names; `filled` is whether the field is padded.
    fn write(&self, keyword: &str, spelled: &str, filled: bool, out: &mut String) {
        match keyword {
            "MONTH" => name(MONTHS[self.month_index()], spelled, filled, 9, out),
            "MON" => name(&MONTHS[self.month_index()][..3], spelled, false, 0, out),
            "DAY" => name(DAYS[self.weekday()], spelled, filled, 9, out),
            "DY" => name(&DAYS[self.weekday()][..3], spelled, false, 0, out),
            "RM" => {
                let upper = spelled.starts_with('R');
                let roman = ROMAN[self.month_index()];
                let roman = if upper { roman.to_owned() } else { roman.to_lowercase() };
                pad_right(&roman, if filled { 4 } else { 0 }, out);
            }
            "AM" | "PM" | "A.M." | "P.M." => {
                let half = if self.civil.hour < 12 { "AM" } else { "PM" };
                era(half, spelled, out);
            }
            "AD" | "BC" | "A.D." | "B.C." => {
                era(if self.civil.year > 0 { "AD" } else { "BC" }, spelled, out);
            }
            "TZ" => {
                if let Some(zone) = &self.zone {
                    let upper = spelled.starts_with('T');
                    let name = &zone.abbreviation;
                    out.push_str(&if upper { name.to_uppercase() } else { name.to_lowercase() });
                }
            }
            "TZH" | "TZM" | "OF" => self.write_offset(keyword, out),
            "Y,YYY" => {
                let year = self.year();
                push(out, format_args!("{},{:03}", year / 1000, year % 1000));
            }
            number => {
                let (value, width) = self.number(number);
                let width = if filled { width } else { 0 };
                push(out, format_args!("{value:0width$}"));
            }
        }
    }

    /// Returns the value of a numeric keyword and the digits it is padded to.
    fn number(&self, keyword: &str) -> (i64, usize) {
        let civil = &self.civil;
        let of = |value: u32| i64::from(value);
        let micros = of(civil.microsecond);
        let hour12 = (civil.hour + 11) % 12 + 1;
        let (iso_year, iso_week) = datetime::iso_week(self.days);
        let iso_year = i64::from(if iso_year > 0 { iso_year } else { 1 - iso_year });
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
            "IYYY" => (iso_year, 4),
            "IYY" => (iso_year % 1000, 3),
            "IY" => (iso_year % 100, 2),
            "I" => (iso_year % 10, 1),
            "IW" => (of(iso_week), 2),
            "IDDD" => ((of(iso_week) - 1) * 7 + monday_first, 3),
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

    /// Returns the year, those before Christ counted backwards from 1.
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

    /// Returns the day of the week, Sunday being 0.
    fn weekday(&self) -> usize {
        datetime::day_of_week(self.days) as usize
    }
}

fn push(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to a String cannot fail");
}

fn pad_right(word: &str, width: usize, out: &mut String) {
    push(out, format_args!("{word:<width$}"));
}

/// Writes a name in the case of the keyword: `MONTH`, `Month` or `month`.
fn name(word: &str, spelled: &str, filled: bool, width: usize, out: &mut String) {
    let mut letters = spelled.chars().map(|letter| letter.is_ascii_uppercase());
    let word = match (letters.next(), letters.next()) {
        (Some(true), Some(true)) => word.to_uppercase(),
        (Some(true), _) => word.to_owned(),
        _ => word.to_lowercase(),
    };
    pad_right(&word, if filled { width } else { 0 }, out);
}

/// Writes `AM` and the like in the case and with the dots of the keyword.
fn era(letters: &str, spelled: &str, out: &mut String) {
    for letter in letters.chars() {
        let upper = spelled.starts_with(|first: char| first.is_ascii_uppercase());
        out.push(if upper { letter } else { letter.to_ascii_lowercase() });
        if spelled.contains('.') {
            out.push('.');
        }
    }
}
