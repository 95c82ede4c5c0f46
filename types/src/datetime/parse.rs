//! Reading dates, times and timestamps from text: PostgreSQL's `ParseDateTime` and `DecodeDateTime`
//! with `DateStyle` ISO, MDY.
//!
//! The text is cut into tokens by shape (`datetime/token.rs`); the tokens are then given their
//! meaning one by one, each by what has been found before it.

use super::arithmetic::{date_plus_days, date_to_timestamp, local_to_timestamptz};
use super::arithmetic::{timestamp_to_date, timestamptz_to_local};
use super::calendar::{days_from_civil, days_in_month};
use super::timetz::{TimeWest, offset_today, only_offset, timestamptz_to_timetz};
use super::token::{Shape, Token, is_day_name, month_of, tokens};
use super::zone::{TimeZone, abbreviation_offset};
use super::{DATE_INFINITY, DATE_MAX, DATE_MIN, DATE_NEGATIVE_INFINITY, EPOCH_JULIAN_DAY};
use super::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use super::{TIMESTAMP_END, TIMESTAMP_INFINITY, TIMESTAMP_MIN, TIMESTAMP_NEGATIVE_INFINITY};
use super::{UNIX_EPOCH_DAYS, is_finite_timestamp};
use crate::error::Error;
use crate::error::Result;
use crate::error::sqlstate;

/// What a text of a date or time depends on.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// The session's time zone.
    pub(crate) zone: &'a TimeZone,
    /// The instant that `now` stands for.
    pub(crate) now: Option<i64>,
}

/// Why a text is not a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// It is not written like one.
    BadFormat,
    /// A field has a value that it cannot have.
    FieldOverflow,
    /// The offset of the zone is too large.
    ZoneOverflow,
    /// The parts do not fit an interval.
    IntervalRange,
    /// `now` and its kin without a clock.
    NoClock,
}

type Step<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(super) fn error(self, type_name: &str, text: &str) -> Error {
        match self {
            Failure::BadFormat => Error::new(
                sqlstate::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            Failure::FieldOverflow => Error::new(
                sqlstate::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            ),
            Failure::ZoneOverflow => {
                Error::new("22009", format!("time zone displacement out of range: \"{text}\""))
            }
            Failure::IntervalRange => super::interval::interval_out_of_range(),
            Failure::NoClock => Error::new(
                sqlstate::FEATURE_NOT_SUPPORTED,
                format!("\"{text}\" cannot be read here, because there is no clock"),
            ),
        }
    }
}

/// A text that stands for a moment by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    Infinity,
    NegativeInfinity,
    Epoch,
    Now,
}

/// Half of a day.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Morning,
    Afternoon,
}

/// What has been found so far.
#[derive(Default)]
struct Found {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    /// The date as a day count, where it was given so.
    days: Option<i32>,
    two_digit_year: bool,
    text_month: bool,
    time: Option<i64>,
    half: Option<Half>,
    before_christ: Option<bool>,
    offset: Option<i32>,
    zone: Option<TimeZone>,
    special: Option<Special>,
    /// The token before was the `T` of ISO 8601.
    time_follows: bool,
    julian_follows: bool,
}

impl Found {
    fn has_date(&self) -> bool {
        self.days.is_some()
            || self.special.is_some()
            || (self.year.is_some() && self.month.is_some() && self.day.is_some())
    }

    fn set_time(&mut self, time: i64) -> Step<()> {
        if self.time.replace(time).is_some() { Err(Failure::BadFormat) } else { Ok(()) }
    }

    fn set_year(&mut self, text: &str) -> Step<()> {
        self.year = Some(text.parse().map_err(|_| Failure::FieldOverflow)?);
        self.two_digit_year = text.len() <= 2;
        Ok(())
    }

    fn set_zone_name(&mut self, name: &str) -> Step<()> {
        if self.zone.is_some() || self.offset.is_some() {
            return Err(Failure::BadFormat);
        }
        self.zone = Some(TimeZone::parse(name).map_err(|_| Failure::BadFormat)?);
        Ok(())
    }

    /// Takes a number without a separator whose meaning is decided by what is known of the date.
    fn take_number(&mut self, text: &str) -> Step<()> {
        let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
        if fraction.is_some() && whole.len() > 2 {
            return self.take_run(text);
        }
        let value: u32 = whole.parse().map_err(|_| Failure::FieldOverflow)?;
        let known = (self.year.is_some(), self.month.is_some(), self.day.is_some());
        match known {
            (true, false, false) if whole.len() == 3 && (1..=366).contains(&value) => {
                self.day_of_year = Some(value);
                self.month = Some(1);
                self.day = Some(1);
            }
            (false, false, false) if whole.len() >= 3 => self.set_year(whole)?,
            (_, false, false) | (false, false, true) => self.month = Some(value),
            (false, true, false) if self.text_month && whole.len() >= 3 => self.set_year(whole)?,
            (true, true, false) if self.text_month && whole.len() >= 3 && self.two_digit_year => {
                let day = self.year.and_then(|year| u32::try_from(year).ok());
                self.day = day;
                self.set_year(whole)?;
            }
            (_, true, false) => self.day = Some(value),
            (false, true, true) => self.set_year(whole)?,
            (true, true, true) => return self.take_run(text),
            (true, false, true) => return Err(Failure::BadFormat),
        }
        Ok(())
    }

    /// Takes a run of digits: `YYYYMMDD`, `YYMMDD`, `hhmmss` or `hhmm`.
    fn take_run(&mut self, text: &str) -> Step<()> {
        let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
        let number = |part: &str| part.parse::<u32>().map_err(|_| Failure::FieldOverflow);
        if fraction.is_none() && !self.has_date() && whole.len() >= 6 {
            let (year, rest) = whole.split_at(whole.len() - 4);
            self.set_year(year)?;
            self.month = Some(number(&rest[..2])?);
            self.day = Some(number(&rest[2..])?);
            return Ok(());
        }
        let micros = fraction.map_or(Ok(0), fraction_micros)?;
        let (hour, minute, second) = match whole.len() {
            6 => (number(&whole[..2])?, number(&whole[2..4])?, number(&whole[4..])?),
            4 => (number(&whole[..2])?, number(&whole[2..])?, 0),
            _ => return Err(Failure::BadFormat),
        };
        self.set_time(clock(hour, minute, second, micros)?)
    }

    /// Takes a token with separators: a date, a time with a zone and no colon, or a zone name.
    fn take_date(&mut self, text: &str) -> Step<()> {
        let starts_with_digit = text.as_bytes().first().is_some_and(u8::is_ascii_digit);
        let has_month_and_day = self.month.is_some() && self.day.is_some();
        if self.time_follows || self.has_date() || has_month_and_day {
            if !starts_with_digit {
                return self.set_zone_name(text);
            }
            self.time_follows = false;
            let at = text.find(['-', '+']).ok_or(Failure::BadFormat)?;
            self.offset = Some(zone_offset(&text[at..])?);
            return self.take_run(&text[..at]);
        }
        let parts = || text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|p| !p.is_empty());
        let mut fields: Vec<&str> = Vec::new();
        for part in parts() {
            // A part may run letters and digits together: `8jan1999`.
            let mut rest = part;
            while let Some(first) = rest.as_bytes().first() {
                let digit = first.is_ascii_digit();
                let end = rest.find(|c: char| c.is_ascii_digit() != digit).unwrap_or(rest.len());
                fields.push(&rest[..end]);
                rest = &rest[end..];
            }
        }
        let is_word = |field: &&str| !field.as_bytes()[0].is_ascii_digit();
        if !starts_with_digit && !fields.iter().any(|field| month_of(field).is_some()) {
            return self.set_zone_name(text);
        }
        for word in fields.iter().copied().filter(|field| is_word(field)) {
            self.take_month(month_of(word).ok_or(Failure::BadFormat)?)?;
        }
        for number in fields.iter().filter(|field| !is_word(field)) {
            self.take_number(number)?;
        }
        if self.has_date() { Ok(()) } else { Err(Failure::BadFormat) }
    }

    fn take_month(&mut self, month: u32) -> Step<()> {
        if let Some(number) = self.month {
            // The number was the day after all.
            if self.text_month || self.day.is_some() {
                return Err(Failure::BadFormat);
            }
            self.day = Some(number);
        }
        self.month = Some(month);
        self.text_month = true;
        Ok(())
    }

    fn take_word(&mut self, word: &str, reading: &Reading<'_>) -> Step<()> {
        if let Some(month) = month_of(word) {
            return self.take_month(month);
        }
        match word {
            "at" | "on" => {}
            "t" => self.time_follows = true,
            "j" | "jd" | "julian" => self.julian_follows = true,
            "am" => self.half = Some(Half::Morning),
            "pm" => self.half = Some(Half::Afternoon),
            "ad" => self.before_christ = Some(false),
            "bc" => self.before_christ = Some(true),
            "infinity" | "+infinity" | "inf" | "+inf" => self.set_special(Special::Infinity)?,
            "-infinity" | "-inf" => self.set_special(Special::NegativeInfinity)?,
            "epoch" => self.set_special(Special::Epoch)?,
            "now" => self.set_special(Special::Now)?,
            "today" | "tomorrow" | "yesterday" => self.take_relative_day(word, reading)?,
            "allballs" => {
                self.set_time(0)?;
                self.offset = Some(0);
            }
            "dst" if self.offset.is_some() => {
                self.offset = self.offset.map(|offset| offset + 3600);
            }
            _ if is_day_name(word) => {}
            _ => match abbreviation_offset(word) {
                Some(_) if self.offset.is_some() => return Err(Failure::BadFormat),
                Some(offset) => self.offset = Some(offset),
                None => self.set_zone_name(word)?,
            },
        }
        Ok(())
    }

    fn set_special(&mut self, special: Special) -> Step<()> {
        if self.has_date() || self.time.is_some() {
            return Err(Failure::BadFormat);
        }
        self.special = Some(special);
        Ok(())
    }

    fn take_relative_day(&mut self, word: &str, reading: &Reading<'_>) -> Step<()> {
        let now = reading.now.ok_or(Failure::NoClock)?;
        let local = timestamptz_to_local(now, reading.zone).map_err(|_| Failure::FieldOverflow)?;
        let shift = match word {
            "tomorrow" => 1,
            "yesterday" => -1,
            _ => 0,
        };
        let day = date_plus_days(timestamp_to_date(local), shift);
        self.days = Some(day.map_err(|_| Failure::FieldOverflow)?);
        Ok(())
    }

    fn take(&mut self, token: &Token, time_only: bool, reading: &Reading<'_>) -> Step<()> {
        let text = token.text.as_str();
        if self.julian_follows {
            self.julian_follows = false;
            let day: i64 = text.parse().map_err(|_| Failure::BadFormat)?;
            self.days = Some(
                i32::try_from(day - i64::from(EPOCH_JULIAN_DAY))
                    .map_err(|_| Failure::FieldOverflow)?,
            );
            return Ok(());
        }
        match token.shape {
            Shape::Time => {
                self.time_follows = false;
                self.set_time(read_clock(text)?)
            }
            Shape::Signed => {
                if self.offset.is_some() || self.zone.is_some() {
                    return Err(Failure::BadFormat);
                }
                self.offset = Some(zone_offset(text)?);
                Ok(())
            }
            Shape::Word => self.take_word(text, reading),
            Shape::Date => self.take_date(text),
            Shape::Number => {
                let whole = text.find('.').unwrap_or(text.len());
                let none = self.year.is_none() && self.month.is_none() && self.day.is_none();
                if whole < text.len() && none && !self.has_date() && !time_only {
                    return self.take_date(text);
                }
                if std::mem::take(&mut self.time_follows) || time_only && whole >= 4 {
                    return self.take_run_as_time(text);
                }
                let run = whole >= 6 && (!self.has_date() || self.time.is_none());
                if run { self.take_run(text) } else { self.take_number(text) }
            }
        }
    }

    fn take_run_as_time(&mut self, text: &str) -> Step<()> {
        let days = self.days;
        if !self.has_date() {
            self.days = Some(0);
        }
        let result = self.take_run(text);
        self.days = days;
        result
    }

    /// Checks the date and returns it as a day count.
    fn date(&self) -> Step<i32> {
        if let Some(days) = self.days {
            return Ok(days);
        }
        let (Some(mut year), Some(month), Some(day)) = (self.year, self.month, self.day) else {
            return Err(Failure::BadFormat);
        };
        if self.before_christ == Some(true) {
            if year <= 0 {
                return Err(Failure::FieldOverflow);
            }
            year = 1 - year;
        } else if self.two_digit_year {
            year += if year < 70 { 2000 } else { 1900 };
        } else if year <= 0 {
            return Err(Failure::FieldOverflow);
        }
        if year > 5_900_000 {
            return Err(Failure::FieldOverflow);
        }
        if let Some(day_of_year) = self.day_of_year {
            return Ok(days_from_civil(year, 1, 1) + day_of_year as i32 - 1);
        }
        let ok = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
        if ok { Ok(days_from_civil(year, month, day)) } else { Err(Failure::FieldOverflow) }
    }

    /// Returns the time of day with AM and PM applied.
    fn time_of_day(&self) -> Step<i64> {
        let time = self.time.unwrap_or(0);
        let hour = time / MICROS_PER_HOUR;
        match self.half {
            Some(_) if hour > 12 => Err(Failure::FieldOverflow),
            Some(Half::Morning) if hour == 12 => Ok(time - 12 * MICROS_PER_HOUR),
            Some(Half::Afternoon) if hour != 12 => Ok(time + 12 * MICROS_PER_HOUR),
            _ => Ok(time),
        }
    }
}

/// Returns the microseconds of the digits after a point.
pub(super) fn fraction_micros(digits: &str) -> Step<i64> {
    if !digits.bytes().all(|c| c.is_ascii_digit()) {
        return Err(Failure::BadFormat);
    }
    if digits.len() <= 6 {
        let value: i64 =
            if digits.is_empty() { 0 } else { digits.parse().map_err(|_| Failure::BadFormat)? };
        return Ok(value * 10i64.pow(6 - digits.len() as u32));
    }
    let value: f64 = format!("0.{digits}").parse().map_err(|_| Failure::BadFormat)?;
    Ok((value * 1e6).round_ties_even() as i64)
}

/// Returns the microseconds of a clock reading.
fn clock(hour: u32, minute: u32, second: u32, micros: i64) -> Step<i64> {
    if hour > 24 || minute > 59 || second > 60 {
        return Err(Failure::FieldOverflow);
    }
    let time = i64::from(hour) * MICROS_PER_HOUR
        + i64::from(minute) * MICROS_PER_MINUTE
        + i64::from(second) * MICROS_PER_SECOND
        + micros;
    if time > MICROS_PER_DAY {
        return Err(Failure::FieldOverflow);
    }
    Ok(time)
}

/// Returns hour, minute, second and microsecond of `hh:mm[:ss[.ffffff]]` or `mm:ss.ffffff`.
pub(super) fn clock_fields(text: &str) -> Step<(i64, i64, i64, i64)> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
    let micros = fraction.map_or(Ok(0), fraction_micros)?;
    let mut parts = whole.split(':').map(|part| {
        if part.is_empty() {
            Err(Failure::BadFormat)
        } else {
            part.parse::<i64>().map_err(|_| Failure::FieldOverflow)
        }
    });
    let mut fields = Vec::with_capacity(3);
    for part in parts.by_ref().take(4) {
        fields.push(part?);
    }
    match (fields.as_slice(), fraction) {
        ([hour, minute, second], _) => Ok((*hour, *minute, *second, micros)),
        ([minute, second], Some(_)) => Ok((0, *minute, *second, micros)),
        ([hour, minute], None) => Ok((*hour, *minute, 0, 0)),
        _ => Err(Failure::BadFormat),
    }
}

fn read_clock(text: &str) -> Step<i64> {
    let (hour, minute, second, micros) = clock_fields(text.trim_end_matches(':'))?;
    let small = |value: i64| u32::try_from(value).map_err(|_| Failure::FieldOverflow);
    clock(small(hour)?, small(minute)?, small(second)?, micros)
}

/// Returns the seconds east of Greenwich of `+hh`, `+hhmm` or `+hh:mm[:ss]`.
fn zone_offset(text: &str) -> Step<i32> {
    let (sign, rest) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => return Err(Failure::BadFormat),
    };
    let number = |part: &str| part.parse::<i32>().map_err(|_| Failure::BadFormat);
    let mut parts = rest.split(':');
    let first = parts.next().unwrap_or_default();
    let (hour, minute) = if rest.contains(':') {
        (number(first)?, number(parts.next().unwrap_or_default())?)
    } else if first.len() > 2 {
        let value = number(first)?;
        (value / 100, value % 100)
    } else {
        (number(first)?, 0)
    };
    let second = parts.next().map_or(Ok(0), number)?;
    if parts.next().is_some() {
        return Err(Failure::BadFormat);
    }
    if hour > 15 || minute > 59 || second > 59 {
        return Err(Failure::ZoneOverflow);
    }
    Ok(sign * (hour * 3600 + minute * 60 + second))
}

fn decode(text: &str, time_only: bool, reading: &Reading<'_>) -> Step<Found> {
    let mut found = Found::default();
    for token in tokens(text).ok_or(Failure::BadFormat)? {
        found.take(&token, time_only, reading)?;
    }
    Ok(found)
}

/// Returns a date in ISO form, by far the most frequent: `YYYY-MM-DD`.
fn iso_date(bytes: &[u8]) -> Option<i32> {
    let digit = |at: usize| bytes[at].is_ascii_digit().then(|| u32::from(bytes[at] - b'0'));
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let two = |at: usize| Some(digit(at)? * 10 + digit(at + 1)?);
    let (year, month, day) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
    let ok = year > 0
        && (1..=12).contains(&month)
        && day >= 1
        && day <= days_in_month(year as i32, month);
    ok.then(|| days_from_civil(year as i32, month, day))
}

/// Returns a timestamp in ISO form: `YYYY-MM-DD hh:mm:ss[.ffffff]`.
fn iso_timestamp(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() < 19 || !matches!(bytes[10], b' ' | b'T') {
        return None;
    }
    if bytes[13] != b':' || bytes[16] != b':' {
        return None;
    }
    let days = iso_date(&bytes[..10])?;
    let two = |at: usize| {
        let (a, b) = (bytes[at], bytes[at + 1]);
        (a.is_ascii_digit() && b.is_ascii_digit())
            .then(|| u32::from(a - b'0') * 10 + u32::from(b - b'0'))
    };
    let micros = match bytes.get(19) {
        None => 0,
        Some(b'.') if (21..=26).contains(&bytes.len()) => fraction_micros(&text[20..]).ok()?,
        Some(_) => return None,
    };
    let time = clock(two(11)?, two(14)?, two(17)?, micros).ok()?;
    Some(i64::from(days) * MICROS_PER_DAY + time)
}

/// Reads a date.
pub(crate) fn parse_date(text: &str, reading: &Reading<'_>) -> Result<i32> {
    if let Some(days) = iso_date(text.as_bytes()) {
        return Ok(days);
    }
    let read = || {
        let found = decode(text, false, reading)?;
        match found.special {
            Some(Special::Infinity) => return Ok(DATE_INFINITY),
            Some(Special::NegativeInfinity) => return Ok(DATE_NEGATIVE_INFINITY),
            Some(Special::Epoch) => return Ok(-UNIX_EPOCH_DAYS),
            Some(Special::Now) => {
                let now = reading.now.ok_or(Failure::NoClock)?;
                let local = timestamptz_to_local(now, reading.zone);
                return Ok(timestamp_to_date(local.map_err(|_| Failure::FieldOverflow)?));
            }
            None => {}
        }
        found.time_of_day()?;
        found.date()
    };
    let days = read().map_err(|failure| failure.error("date", text))?;
    if (DATE_MIN..=DATE_MAX).contains(&days)
        || matches!(days, DATE_INFINITY | DATE_NEGATIVE_INFINITY)
    {
        return Ok(days);
    }
    let message = format!("date out of range: \"{text}\"");
    Err(Error::new(sqlstate::DATETIME_FIELD_OVERFLOW, message))
}

/// Reads a time of day.
pub(crate) fn parse_time(text: &str, reading: &Reading<'_>) -> Result<i64> {
    let read = || {
        let found = decode(text, true, reading)?;
        match found.special {
            Some(Special::Now) => {
                let now = reading.now.ok_or(Failure::NoClock)?;
                let local = timestamptz_to_local(now, reading.zone);
                return Ok(local.map_err(|_| Failure::FieldOverflow)?.rem_euclid(MICROS_PER_DAY));
            }
            Some(_) => return Err(Failure::BadFormat),
            None => {}
        }
        if found.time.is_none() {
            return Err(Failure::BadFormat);
        }
        if found.year.is_some() {
            found.date()?;
        }
        found.time_of_day()
    };
    read().map_err(|failure| failure.error("time", text))
}

/// Reads a time of day with time zone: the time, and the seconds west of Greenwich. Without an
/// offset or zone it is that of the session, on the date that is given or today.
pub(crate) fn parse_timetz(text: &str, reading: &Reading<'_>) -> Result<TimeWest> {
    let read = || {
        let found = decode(text, true, reading)?;
        match found.special {
            Some(Special::Now) => {
                let now = reading.now.ok_or(Failure::NoClock)?;
                let now = timestamptz_to_timetz(now, reading.zone);
                return now.ok().flatten().ok_or(Failure::FieldOverflow);
            }
            Some(_) => return Err(Failure::BadFormat),
            None => {}
        }
        if found.time.is_none() {
            return Err(Failure::BadFormat);
        }
        let time = found.time_of_day()?;
        let date = match found.year.is_some() || found.days.is_some() {
            true => Some(found.date()?),
            false => None,
        };
        let on_date = |zone: &TimeZone| {
            let midnight = date.and_then(|date| date_to_timestamp(date).ok());
            midnight.map(|midnight| zone.offset_of_local(midnight.saturating_add(time)))
        };
        let east = match (found.offset, &found.zone) {
            (Some(offset), _) => offset,
            (None, Some(zone)) => {
                on_date(zone).or_else(|| only_offset(zone)).ok_or(Failure::BadFormat)?
            }
            (None, None) => on_date(reading.zone)
                .or_else(|| offset_today(time, reading.zone, reading.now))
                .ok_or(Failure::NoClock)?,
        };
        Ok((time, -east))
    };
    read().map_err(|failure: Failure| failure.error("time with time zone", text))
}

/// Reads a timestamp; an offset or zone is checked and dropped.
pub(crate) fn parse_timestamp(text: &str, reading: &Reading<'_>) -> Result<i64> {
    if let Some(timestamp) = iso_timestamp(text) {
        return Ok(timestamp);
    }
    let name = "timestamp";
    let (local, _) = read_moment(text, reading, name)?;
    if let Moment::Instant(now) = local {
        return timestamptz_to_local(now, reading.zone);
    }
    check(local.micros(), text)
}

/// Reads an instant; without an offset or zone the text is local time.
pub(crate) fn parse_timestamptz(text: &str, reading: &Reading<'_>) -> Result<i64> {
    let name = "timestamp with time zone";
    let (moment, zone) = match iso_timestamp(text) {
        Some(local) => (Moment::Local(local), None),
        None => read_moment(text, reading, name)?,
    };
    match moment {
        Moment::Instant(instant) => Ok(instant),
        Moment::Local(local) if !is_finite_timestamp(local) => Ok(local),
        Moment::Local(local) => {
            let zone = zone.unwrap_or_else(|| reading.zone.clone());
            let instant = local_to_timestamptz(local, &zone);
            check(instant.unwrap_or(i64::MAX - 1), text)
        }
    }
}

/// A moment as text gives it.
enum Moment {
    Local(i64),
    Instant(i64),
}

impl Moment {
    fn micros(&self) -> i64 {
        match self {
            Moment::Local(micros) | Moment::Instant(micros) => *micros,
        }
    }
}

fn check(timestamp: i64, text: &str) -> Result<i64> {
    let finite = (TIMESTAMP_MIN..TIMESTAMP_END).contains(&timestamp);
    if finite || !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    let message = format!("timestamp out of range: \"{text}\"");
    Err(Error::new(sqlstate::DATETIME_FIELD_OVERFLOW, message))
}

fn read_moment(
    text: &str,
    reading: &Reading<'_>,
    type_name: &str,
) -> Result<(Moment, Option<TimeZone>)> {
    let read = || {
        let found = decode(text, false, reading)?;
        let special = match found.special {
            Some(Special::Infinity) => Some(Moment::Local(TIMESTAMP_INFINITY)),
            Some(Special::NegativeInfinity) => Some(Moment::Local(TIMESTAMP_NEGATIVE_INFINITY)),
            Some(Special::Epoch) => {
                // The instant for timestamptz; the same count as a local time otherwise.
                let epoch = i64::from(-UNIX_EPOCH_DAYS) * MICROS_PER_DAY;
                return Ok((Moment::Local(epoch), Some(TimeZone::UTC)));
            }
            Some(Special::Now) => Some(Moment::Instant(reading.now.ok_or(Failure::NoClock)?)),
            None => None,
        };
        if let Some(moment) = special {
            return Ok((moment, None));
        }
        let time = found.time_of_day()?;
        let date = found.date()?;
        let zone = found.offset.map(TimeZone::fixed).or(found.zone);
        let local = match date_to_timestamp(date) {
            Ok(midnight) => midnight.saturating_add(time).min(i64::MAX - 1),
            Err(_) => i64::MAX - 1,
        };
        Ok((Moment::Local(local), zone))
    };
    read().map_err(|failure: Failure| failure.error(type_name, text))
}
