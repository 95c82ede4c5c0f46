//! Modifier of interval types: fields and precision, as in `interval day to second(3)`.

/// The fields of a restricted interval; a number without a unit is in the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalFields {
    /// `YEAR`
    Year,
    /// `MONTH`
    Month,
    /// `DAY`
    Day,
    /// `HOUR`
    Hour,
    /// `MINUTE`
    Minute,
    /// `SECOND`
    Second,
    /// `YEAR TO MONTH`
    YearToMonth,
    /// `DAY TO HOUR`
    DayToHour,
    /// `DAY TO MINUTE`
    DayToMinute,
    /// `DAY TO SECOND`
    DayToSecond,
    /// `HOUR TO MINUTE`
    HourToMinute,
    /// `HOUR TO SECOND`
    HourToSecond,
    /// `MINUTE TO SECOND`
    MinuteToSecond,
}

use IntervalFields as Fields;

const MONTH: i32 = 1 << 1;
const YEAR: i32 = 1 << 2;
const DAY: i32 = 1 << 3;
const HOUR: i32 = 1 << 10;
const MINUTE: i32 = 1 << 11;
const SECOND: i32 = 1 << 12;
/// No restriction of fields.
const FULL: i32 = 0x7fff;
/// No restriction of the precision.
const ALL_DIGITS: i32 = 0xffff;

/// All restrictions: the words, and the bits of PostgreSQL's modifier.
const ALL: [(IntervalFields, &str, i32); 13] = [
    (Fields::Year, "year", YEAR),
    (Fields::Month, "month", MONTH),
    (Fields::Day, "day", DAY),
    (Fields::Hour, "hour", HOUR),
    (Fields::Minute, "minute", MINUTE),
    (Fields::Second, "second", SECOND),
    (Fields::YearToMonth, "year to month", YEAR | MONTH),
    (Fields::DayToHour, "day to hour", DAY | HOUR),
    (Fields::DayToMinute, "day to minute", DAY | HOUR | MINUTE),
    (Fields::DayToSecond, "day to second", DAY | HOUR | MINUTE | SECOND),
    (Fields::HourToMinute, "hour to minute", HOUR | MINUTE),
    (Fields::HourToSecond, "hour to second", HOUR | MINUTE | SECOND),
    (Fields::MinuteToSecond, "minute to second", MINUTE | SECOND),
];

impl IntervalFields {
    /// Returns the restriction of lower-case words such as `day to second`.
    pub fn from_words(words: &str) -> Option<IntervalFields> {
        ALL.iter().find(|(_, written, _)| *written == words).map(|(fields, ..)| *fields)
    }

    /// Returns the restriction of a modifier; `None` if there is none.
    pub fn from_modifier(modifier: i32) -> Option<IntervalFields> {
        let range = (modifier >> 16) & FULL;
        let found = ALL.iter().find(|(_, _, bits)| *bits == range).map(|(fields, ..)| *fields);
        found.filter(|_| modifier >= 0)
    }
}

/// Returns the modifier of an interval type, -1 if nothing is restricted.
pub fn interval_modifier(fields: Option<IntervalFields>, digits: Option<i32>) -> i32 {
    if fields.is_none() && digits.is_none() {
        return -1;
    }
    let bits = ALL.iter().find(|(known, ..)| Some(*known) == fields).map_or(FULL, |row| row.2);
    bits << 16 | digits.unwrap_or(ALL_DIGITS)
}

/// Returns the name of an interval type.
pub fn interval_name(modifier: i32) -> String {
    let fields = IntervalFields::from_modifier(modifier);
    let words = ALL.iter().find(|(known, ..)| Some(*known) == fields).map_or("", |row| row.1);
    let space = if words.is_empty() { "" } else { " " };
    match modifier & ALL_DIGITS {
        _ if modifier < 0 => "interval".to_owned(),
        ALL_DIGITS => format!("interval{space}{words}"),
        digits => format!("interval{space}{words}({digits})"),
    }
}
