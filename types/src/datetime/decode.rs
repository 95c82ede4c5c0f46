//! Decoder of date and time fields, token by token: PostgreSQL's `DecodeDate`, `DecodeTime`,
//! `DecodeNumber`, `DecodeNumberField`, `DecodeTimezone` and `ValidateDate`.
//!
//! `datetime/parse.rs` selects the function for each token.

use super::calendar::{civil_from_days, days_from_civil, days_in_month};
use super::style::DateOrder;
use super::token::month_of;
use super::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::error::Error;

/// Error of parsing a date or time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DatetimeError {
    /// Invalid syntax.
    BadFormat,
    /// A field is out of its range.
    FieldOverflow,
    /// Day or month is out of its range, possibly because of another field order.
    MonthDayOverflow,
    /// The offset of the zone is too large.
    ZoneOverflow,
    /// There is no such zone.
    UnknownZone(String),
    /// The fields exceed the range of intervals.
    IntervalRange,
    /// `now` or a related word is used without a clock.
    NoClock,
}

/// The result of a parsing step.
pub(super) type Step<T> = Result<T, DatetimeError>;

impl DatetimeError {
    pub(super) fn error(self, type_name: &str, text: &str) -> Error {
        let out_of_range =
            || err!(DATETIME_FIELD_OVERFLOW: "date/time field value out of range: \"{text}\"");
        match self {
            DatetimeError::BadFormat => {
                err!(INVALID_DATETIME_FORMAT: "invalid input syntax for type {type_name}: \"{text}\"")
            }
            DatetimeError::FieldOverflow => out_of_range(),
            DatetimeError::MonthDayOverflow => {
                out_of_range().with_hint("Perhaps you need a different \"datestyle\" setting.")
            }
            DatetimeError::ZoneOverflow => {
                err!(INVALID_TIME_ZONE_DISPLACEMENT_VALUE: "time zone displacement out of range: \"{text}\"")
            }
            DatetimeError::UnknownZone(name) => {
                err!(INVALID_PARAMETER_VALUE: "time zone \"{name}\" not recognized")
            }
            DatetimeError::IntervalRange => super::interval::interval_out_of_range(),
            DatetimeError::NoClock => {
                err!(FEATURE_NOT_SUPPORTED: "\"{text}\" cannot be used where the current time is not available")
            }
        }
    }
}

/// Flags of the fields that were found. Each kind of PostgreSQL may occur once.
pub(super) mod field_flags {
    pub(crate) const YEAR: u32 = 1;
    pub(crate) const MONTH: u32 = 1 << 1;
    pub(crate) const DAY: u32 = 1 << 2;
    pub(crate) const HOUR: u32 = 1 << 3;
    pub(crate) const MINUTE: u32 = 1 << 4;
    pub(crate) const SECOND: u32 = 1 << 5;
    pub(crate) const FRACTION: u32 = 1 << 6;
    pub(crate) const ZONE: u32 = 1 << 7;
    pub(crate) const SUMMER_ZONE: u32 = 1 << 8;
    pub(crate) const SUMMER: u32 = 1 << 9;
    pub(crate) const DAY_OF_YEAR: u32 = 1 << 10;
    pub(crate) const HALF: u32 = 1 << 11;
    pub(crate) const ERA: u32 = 1 << 12;
    pub(crate) const DAY_OF_WEEK: u32 = 1 << 13;
    pub(crate) const ALL_SECONDS: u32 = SECOND | FRACTION;
    pub(crate) const DATE: u32 = YEAR | MONTH | DAY;
    pub(crate) const TIME: u32 = HOUR | MINUTE | ALL_SECONDS;
}

/// Half of a day.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DayHalf {
    Morning,
    Afternoon,
}

/// The fields of a date and time that were parsed so far, as written.
#[derive(Default)]
pub(super) struct DecodedFields {
    /// Flags of [`field_flags`].
    pub(super) given: u32,
    pub(super) year: i32,
    pub(super) month: i32,
    pub(super) day: i32,
    pub(super) day_of_year: i32,
    pub(super) hour: i32,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) micros: i64,
    pub(super) text_month: bool,
    pub(super) two_digit_year: bool,
    pub(super) julian: bool,
    pub(super) before_christ: bool,
    pub(super) half: Option<DayHalf>,
}

/// Parses digits at the start of a text as C does: without digits the result is 0, too many are
/// an overflow.
pub(super) fn leading_integer(text: &str) -> Step<(i32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 {
        return Ok((0, text));
    }
    let value = text[..end].parse().map_err(|_| DatetimeError::FieldOverflow)?;
    Ok((value, &text[end..]))
}

fn digits(text: &str) -> i32 {
    text.parse().unwrap_or(i32::MAX)
}

/// Returns the microseconds of `.123456`; 0 if there is nothing after the point.
pub(super) fn fraction_micros(text: &str) -> Step<i64> {
    if text.len() == 1 {
        return Ok(0);
    }
    if !text.bytes().skip(1).all(|c| c.is_ascii_digit()) {
        return Err(DatetimeError::BadFormat);
    }
    let value: f64 = text.parse().map_err(|_| DatetimeError::BadFormat)?;
    Ok((value * 1e6).round_ties_even() as i64)
}

impl DecodedFields {
    pub(super) fn has(&self, fields: u32) -> bool {
        self.given & fields == fields
    }

    /// Records fields, each of which may occur once.
    pub(super) fn record_fields(&mut self, fields: u32) -> Step<()> {
        if self.given & fields != 0 {
            return Err(DatetimeError::BadFormat);
        }
        self.given |= fields;
        Ok(())
    }

    /// Sets the date from a day count.
    pub(super) fn set_days(&mut self, days: i32) {
        (self.year, self.month, self.day) = {
            let (year, month, day) = civil_from_days(days);
            (year, month as i32, day as i32)
        };
    }

    /// Parses a date with separators and records its fields.
    pub(super) fn take_date(&mut self, text: &str, order: DateOrder) -> Step<()> {
        let mut parts = date_parts(text)?;
        for part in &mut parts {
            if part.starts_with(|c: char| c.is_ascii_alphabetic()) {
                if matches!(*part, "at" | "on") {
                    *part = "";
                    continue;
                }
                let month = month_of(part).ok_or(DatetimeError::BadFormat)?;
                self.record_fields(field_flags::MONTH)?;
                self.month = month as i32;
                self.text_month = true;
                *part = "";
            }
        }
        for part in parts.iter().filter(|part| !part.is_empty()) {
            self.take_number(part, order)?;
        }
        let whole =
            self.given & !(field_flags::DAY_OF_YEAR | field_flags::ZONE) == field_flags::DATE;
        if whole { Ok(()) } else { Err(DatetimeError::BadFormat) }
    }

    /// Parses a number whose meaning depends on the fields found before.
    pub(super) fn take_number(&mut self, text: &str, order: DateOrder) -> Step<()> {
        let (value, rest) = leading_integer(text)?;
        if rest.len() == text.len() {
            return Err(DatetimeError::BadFormat);
        }
        let mut micros = None;
        if rest.starts_with('.') {
            if text.len() - rest.len() > 2 {
                return self.take_run(text, field_flags::DATE);
            }
            micros = Some(fraction_micros(rest)?);
        } else if !rest.is_empty() {
            return Err(DatetimeError::BadFormat);
        }
        self.micros = micros.unwrap_or(self.micros);
        let long = text.len() >= 3;
        let known = self.given & field_flags::DATE;
        if text.len() == 3 && known == field_flags::YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return self
                .record_fields(field_flags::DAY_OF_YEAR | field_flags::MONTH | field_flags::DAY);
        }
        const YEAR_MONTH: u32 = field_flags::YEAR | field_flags::MONTH;
        const MONTH_DAY: u32 = field_flags::MONTH | field_flags::DAY;
        let field = match known {
            0 if long || order == DateOrder::Ymd => field_flags::YEAR,
            0 if order == DateOrder::Dmy => field_flags::DAY,
            0 | field_flags::YEAR | field_flags::DAY => field_flags::MONTH,
            field_flags::MONTH if self.text_month && (long || order == DateOrder::Ymd) => {
                field_flags::YEAR
            }
            YEAR_MONTH if self.text_month && long && self.two_digit_year => {
                self.day = self.year;
                self.year = value;
                self.two_digit_year = false;
                return self.record_fields(field_flags::DAY);
            }
            field_flags::MONTH | YEAR_MONTH => field_flags::DAY,
            MONTH_DAY => field_flags::YEAR,
            field_flags::DATE => return self.take_run(text, 0),
            _ => return Err(DatetimeError::BadFormat),
        };
        match field {
            field_flags::YEAR => {
                self.year = value;
                self.two_digit_year = text.len() <= 2;
            }
            field_flags::MONTH => self.month = value,
            _ => self.day = value,
        }
        self.record_fields(field)
    }

    /// Parses a run of digits: `YYYYMMDD`, `YYMMDD`, `hhmmss` or `hhmm`, with fractional seconds.
    /// Fields in `assumed` count as found.
    pub(super) fn take_run(&mut self, text: &str, assumed: u32) -> Step<()> {
        let known = self.given | assumed;
        let (whole, fraction) = match text.find('.') {
            Some(at) => (&text[..at], Some(&text[at..])),
            None => (text, None),
        };
        let end = whole.find(|c: char| !c.is_ascii_digit()).unwrap_or(whole.len());
        if end < whole.len() {
            return Err(DatetimeError::BadFormat);
        }
        match fraction {
            Some(fraction) => self.micros = fraction_micros(fraction)?,
            None if known & field_flags::DATE != field_flags::DATE && whole.len() >= 6 => {
                let (year, rest) = whole.split_at(whole.len() - 4);
                self.year = digits(year);
                self.month = digits(&rest[..2]);
                self.day = digits(&rest[2..]);
                self.two_digit_year |= year.len() == 2;
                return self.record_fields(field_flags::DATE);
            }
            None => {}
        }
        if known & field_flags::TIME == field_flags::TIME || !matches!(whole.len(), 4 | 6) {
            return Err(DatetimeError::BadFormat);
        }
        self.hour = digits(&whole[..2]);
        self.minute = digits(&whole[2..4]);
        self.second = if whole.len() == 6 { digits(&whole[4..]) } else { 0 };
        self.record_fields(field_flags::TIME)
    }

    /// Parses a time with colons.
    pub(super) fn take_time(&mut self, text: &str) -> Step<()> {
        let clock = ClockTime::read(text, false)?;
        self.hour = i32::try_from(clock.hour).map_err(|_| DatetimeError::FieldOverflow)?;
        (self.minute, self.second, self.micros) = (clock.minute, clock.second, clock.micros);
        self.record_fields(field_flags::TIME)
    }

    /// Completes the year and validates the date, as far as it was found.
    pub(super) fn validate(&mut self) -> Step<()> {
        if self.given & field_flags::YEAR != 0 && !self.julian {
            if self.year < i32::from(!self.two_digit_year || self.before_christ) {
                return Err(DatetimeError::FieldOverflow);
            }
            self.year = match self.year {
                year if self.before_christ => 1 - year,
                year @ ..70 if self.two_digit_year => year + 2000,
                year @ 70..100 if self.two_digit_year => year + 1900,
                year => year,
            };
        }
        if self.given & field_flags::DAY_OF_YEAR != 0 && self.year.abs() < 6_000_000 {
            self.set_days(days_from_civil(self.year, 1, 1) + self.day_of_year - 1);
        }
        let bad_month = self.given & field_flags::MONTH != 0 && !(1..=12).contains(&self.month);
        let bad_day = self.given & field_flags::DAY != 0 && !(1..=31).contains(&self.day);
        if bad_month || bad_day {
            return Err(DatetimeError::MonthDayOverflow);
        }
        if self.has(field_flags::DATE)
            && self.day > days_in_month(self.year, self.month as u32) as i32
        {
            return Err(DatetimeError::FieldOverflow);
        }
        Ok(())
    }

    /// Applies AM and PM, for hours up to 12.
    pub(super) fn apply_half(&mut self) -> Step<()> {
        match self.half {
            Some(_) if self.hour > 12 => return Err(DatetimeError::FieldOverflow),
            Some(DayHalf::Morning) if self.hour == 12 => self.hour = 0,
            Some(DayHalf::Afternoon) if self.hour != 12 => self.hour += 12,
            _ => {}
        }
        Ok(())
    }

    /// Returns the microseconds since midnight.
    pub(super) fn time_of_day(&self) -> i64 {
        i64::from(self.hour) * MICROS_PER_HOUR
            + i64::from(self.minute) * MICROS_PER_MINUTE
            + i64::from(self.second) * MICROS_PER_SECOND
            + self.micros
    }

    /// Returns an error for a time beyond 24:00.
    pub(super) fn check_time(&self) -> Step<()> {
        let fields = (0..=24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && (0..=MICROS_PER_SECOND).contains(&self.micros);
        if fields && self.time_of_day() <= MICROS_PER_DAY {
            return Ok(());
        }
        Err(DatetimeError::FieldOverflow)
    }

    /// Returns the day count of the date; `None` beyond the range of dates.
    pub(super) fn days(&self) -> Option<i32> {
        let days = self.days_of_moment()?;
        (super::DATE_MIN..=super::DATE_MAX).contains(&days).then_some(days)
    }

    /// Returns the day count of a date whose time zone may move it into the range of dates: from
    /// the month of the first date on.
    pub(super) fn days_of_moment(&self) -> Option<i32> {
        let within = (-4713..5_874_898).contains(&self.year);
        let within = within && (self.year > -4713 || self.month >= 11);
        within.then(|| days_from_civil(self.year, self.month as u32, self.day as u32))
    }
}

/// Splits a date at characters other than digits and letters. Where digits and letters are
/// adjacent, the first character after the change is lost, as in PostgreSQL: `8-jan1999` is in
/// the year 999.
fn date_parts(text: &str) -> Step<Vec<&str>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let first = rest.chars().next().ok_or(DatetimeError::BadFormat)?;
        let digit = first.is_ascii_digit();
        let same = |c: char| if digit { c.is_ascii_digit() } else { c.is_ascii_alphabetic() };
        let end = rest.find(|c: char| !same(c)).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = &rest[end..];
        rest = rest.get(1..).unwrap_or_default();
    }
    Ok(parts)
}

/// A time with colons.
pub(super) struct ClockTime {
    pub(super) hour: i64,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) micros: i64,
}

impl ClockTime {
    /// Parses `hh:mm[:ss[.ffffff]]` or `mm:ss.ffffff`. With `minutes`, two fields are minutes and
    /// seconds.
    pub(super) fn read(text: &str, minutes: bool) -> Step<ClockTime> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let hour: i64 = match &text[..end] {
            "" => 0,
            digits => digits.parse().map_err(|_| DatetimeError::FieldOverflow)?,
        };
        let rest = text[end..].strip_prefix(':').ok_or(DatetimeError::BadFormat)?;
        let (minute, rest) = leading_integer(rest)?;
        let small = |hour: i64| i32::try_from(hour).map_err(|_| DatetimeError::FieldOverflow);
        let clock = match rest.chars().next() {
            None if minutes => {
                ClockTime { hour: 0, minute: small(hour)?, second: minute, micros: 0 }
            }
            None => ClockTime { hour, minute, second: 0, micros: 0 },
            Some('.') => {
                let micros = fraction_micros(rest)?;
                ClockTime { hour: 0, minute: small(hour)?, second: minute, micros }
            }
            Some(':') => {
                let (second, rest) = leading_integer(&rest[1..])?;
                let micros = match rest.chars().next() {
                    None => 0,
                    Some('.') => fraction_micros(rest)?,
                    Some(_) => return Err(DatetimeError::BadFormat),
                };
                ClockTime { hour, minute, second, micros }
            }
            Some(_) => return Err(DatetimeError::BadFormat),
        };
        let fits = (0..60).contains(&clock.minute) && (0..=60).contains(&clock.second);
        if fits { Ok(clock) } else { Err(DatetimeError::FieldOverflow) }
    }
}

/// Returns the seconds east of Greenwich of `+hh`, `+hhmm` or `+hh:mm[:ss]`.
pub(super) fn zone_offset(text: &str) -> Step<i32> {
    let sign = match text.as_bytes().first() {
        Some(b'-') => -1,
        Some(b'+') => 1,
        _ => return Err(DatetimeError::BadFormat),
    };
    let number = |text| leading_integer(text).map_err(|_| DatetimeError::ZoneOverflow);
    let (mut hour, mut rest) = number(&text[1..])?;
    let (mut minute, mut second) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (minute, rest) = number(after)?;
        if let Some(after) = rest.strip_prefix(':') {
            (second, rest) = number(after)?;
        }
    } else if rest.is_empty() && text.len() > 3 {
        minute = hour % 100;
        hour /= 100;
    }
    if hour > 15 || minute > 59 || second > 59 {
        return Err(DatetimeError::ZoneOverflow);
    }
    if !rest.is_empty() {
        return Err(DatetimeError::BadFormat);
    }
    Ok(sign * (hour * 3600 + minute * 60 + second))
}
