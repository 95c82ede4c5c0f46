//! Parser of dates, times and timestamps: PostgreSQL's `ParseDateTime`, `DecodeDateTime` and
//! `DecodeTimeOnly`.
//!
//! The text is split into tokens by shape (`datetime/token.rs`); each token is then interpreted
//! depending on the fields found before it (`datetime/decode.rs`).

use super::arithmetic::local_to_timestamptz;
use super::arithmetic::{timestamp_to_date, timestamptz_to_local};
use super::calendar::{days_from_civil, days_in_month};
use super::decode::{
    DatetimeError, DayHalf, DecodedFields, Step, field_flags, leading_integer, zone_offset,
};
use super::style::Style;
use super::timetz::{TimeWest, offset_today, only_offset, timestamptz_to_timetz};
use super::token::{DateToken, TokenKind, is_day_name, month_of, tokens};
use super::zone::TimeZone;
use super::{DATE_INFINITY, DATE_NEGATIVE_INFINITY, EPOCH_JULIAN_DAY};
use super::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use super::{TIMESTAMP_END, TIMESTAMP_INFINITY, TIMESTAMP_MIN, TIMESTAMP_NEGATIVE_INFINITY};
use super::{UNIX_EPOCH_DAYS, is_finite_timestamp};
use crate::error::Error;
use crate::error::Result;

/// The settings that affect the parsing of dates and times.
#[derive(Clone, Copy)]
pub(crate) struct ParseSettings<'a> {
    /// The session's time zone.
    pub(crate) zone: &'a TimeZone,
    /// The instant of `now`.
    pub(crate) now: Option<i64>,
    /// The order of day, month and year.
    pub(crate) style: Style,
}

/// A word that denotes a whole date and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    Infinity,
    NegativeInfinity,
    Epoch,
    Now,
}

/// A word that gives the meaning of the following number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldLabel {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    JulianDay,
    /// The `T` of ISO 8601.
    Time,
}

/// The time zone of a time.
enum TimeZoneSpec {
    Offset(i32),
    Zone(TimeZone),
}

/// Parser state of a text.
struct Reader<'a> {
    reading: &'a ParseSettings<'a>,
    tokens: Vec<DateToken>,
    fields: DecodedFields,
    label: Option<FieldLabel>,
    special: Option<Special>,
    place: Option<TimeZoneSpec>,
    /// The text is a time without a date.
    time_only: bool,
}

impl<'a> Reader<'a> {
    fn read(text: &str, time_only: bool, reading: &'a ParseSettings<'a>) -> Step<Reader<'a>> {
        let tokens = tokens(text).ok_or(DatetimeError::BadFormat)?;
        if tokens.len() > 25 {
            return Err(DatetimeError::BadFormat);
        }
        let fields = DecodedFields::default();
        let (label, special, place) = (None, None, None);
        let mut reader = Reader { reading, tokens, fields, label, special, place, time_only };
        for index in 0..reader.tokens.len() {
            reader.take(index)?;
        }
        reader.fields.validate()?;
        reader.fields.apply_half()?;
        if time_only {
            reader.fields.check_time()?;
            if !reader.fields.has(field_flags::TIME) {
                return Err(DatetimeError::BadFormat);
            }
        } else if reader.special.is_none() && !reader.fields.has(field_flags::DATE) {
            return Err(DatetimeError::BadFormat);
        }
        let named = matches!(reader.place, Some(TimeZoneSpec::Zone(_)) | None);
        if named && reader.fields.has(field_flags::SUMMER) {
            return Err(DatetimeError::BadFormat);
        }
        Ok(reader)
    }

    /// Returns the fields that count as found.
    fn assumed(&self) -> u32 {
        if self.time_only { field_flags::DATE } else { 0 }
    }

    fn take(&mut self, index: usize) -> Step<()> {
        let DateToken { shape, text } = self.tokens[index].clone();
        match shape {
            TokenKind::Time => {
                if self.label.take().is_some_and(|label| label != FieldLabel::Time) {
                    return Err(DatetimeError::BadFormat);
                }
                self.fields.take_time(&text)?;
                if self.time_only { Ok(()) } else { self.fields.check_time() }
            }
            TokenKind::Signed => {
                self.fields.record_fields(field_flags::ZONE)?;
                self.place = Some(TimeZoneSpec::Offset(zone_offset(&text)?));
                Ok(())
            }
            TokenKind::Word => self.take_word(&text, index),
            TokenKind::Date => self.take_date(&text, index),
            TokenKind::Number => match self.label.take() {
                Some(label) => self.take_labelled(&text, label),
                None => self.take_number(&text, index),
            },
        }
    }

    /// Parses a number that is not identified as a time or date by its separators.
    fn take_number(&mut self, text: &str, index: usize) -> Step<()> {
        let point = text.find('.');
        let order = self.reading.style.order;
        if self.time_only {
            let last = self.tokens.len() - 1;
            return match point {
                Some(_) if index == 0 && last > 0 && self.tokens[last].shape == TokenKind::Date => {
                    self.fields.take_date(text, order)
                }
                Some(..=2) => Err(DatetimeError::BadFormat),
                _ => self.fields.take_run(text, field_flags::DATE),
            };
        }
        let no_date = self.fields.given & field_flags::DATE == 0;
        let no_time = self.fields.given & field_flags::TIME == 0;
        match point {
            Some(_) if no_date => self.fields.take_date(text, order),
            Some(3..) => self.fields.take_run(text, 0),
            _ if text.len() >= 6 && (no_date || no_time) => self.fields.take_run(text, 0),
            _ => self.fields.take_number(text, order),
        }
    }

    /// Parses a number whose meaning the preceding word gives.
    fn take_labelled(&mut self, text: &str, label: FieldLabel) -> Step<()> {
        let (value, rest) = leading_integer(text)?;
        let with_fraction =
            matches!(label, FieldLabel::JulianDay | FieldLabel::Time | FieldLabel::Second);
        if !(rest.is_empty() || rest.starts_with('.') && with_fraction) {
            return Err(DatetimeError::BadFormat);
        }
        let fields = &mut self.fields;
        match label {
            FieldLabel::Year => fields.year = value,
            FieldLabel::Month if fields.has(field_flags::MONTH | field_flags::HOUR) => {
                fields.minute = value;
                return fields.record_fields(field_flags::MINUTE);
            }
            FieldLabel::Month => fields.month = value,
            FieldLabel::Day => fields.day = value,
            FieldLabel::Hour => fields.hour = value,
            FieldLabel::Minute => fields.minute = value,
            FieldLabel::Second => {
                fields.second = value;
                if rest.is_empty() {
                    return fields.record_fields(field_flags::SECOND);
                }
                fields.micros = super::decode::fraction_micros(rest)?;
            }
            FieldLabel::JulianDay => return self.take_julian_day(value, rest),
            FieldLabel::Time => {
                let before = fields.given;
                fields.take_run(text, field_flags::DATE)?;
                let time = fields.given == before | field_flags::TIME;
                return if time { Ok(()) } else { Err(DatetimeError::BadFormat) };
            }
        }
        fields.record_fields(match label {
            FieldLabel::Year => field_flags::YEAR,
            FieldLabel::Month => field_flags::MONTH,
            FieldLabel::Day => field_flags::DAY,
            FieldLabel::Hour => field_flags::HOUR,
            FieldLabel::Minute => field_flags::MINUTE,
            _ => field_flags::ALL_SECONDS,
        })
    }

    /// Parses a Julian day, whose fraction is the time of day.
    fn take_julian_day(&mut self, day: i32, fraction: &str) -> Step<()> {
        self.fields.set_days(day.saturating_sub(EPOCH_JULIAN_DAY));
        self.fields.julian = true;
        self.fields.record_fields(field_flags::DATE)?;
        if fraction.is_empty() {
            return Ok(());
        }
        let part: f64 = match fraction.len() {
            1 => 0.0,
            _ => fraction.parse().map_err(|_| DatetimeError::BadFormat)?,
        };
        let micros = (part * MICROS_PER_DAY as f64) as i64;
        self.fields.hour = (micros / MICROS_PER_HOUR) as i32;
        self.fields.minute = (micros / MICROS_PER_MINUTE % 60) as i32;
        self.fields.second = (micros / MICROS_PER_SECOND % 60) as i32;
        self.fields.micros = micros % MICROS_PER_SECOND;
        self.fields.record_fields(field_flags::TIME)
    }

    /// Parses a token with separators: a date, a time with a zone and without colons, or a zone
    /// name.
    fn take_date(&mut self, text: &str, index: usize) -> Step<()> {
        let order = self.reading.style.order;
        if self.label == Some(FieldLabel::JulianDay) && !self.time_only {
            let (day, rest) = leading_integer(text)?;
            self.label = None;
            self.place = Some(TimeZoneSpec::Offset(zone_offset(rest)?));
            self.fields.set_days(day.saturating_sub(EPOCH_JULIAN_DAY));
            self.fields.julian = true;
            return self
                .fields
                .record_fields(field_flags::DATE | field_flags::TIME | field_flags::ZONE);
        }
        let is_date = if self.time_only {
            let last = self.tokens.len() - 1;
            index == 0
                && last > 0
                && (self.tokens[last].shape == TokenKind::Date
                    || self.tokens[1].shape == TokenKind::Time)
        } else {
            self.label.is_none() && !self.fields.has(field_flags::MONTH | field_flags::DAY)
        };
        if is_date {
            return self.fields.take_date(text, order);
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) && self.label.is_none() {
            return self.take_zone(text, || DatetimeError::UnknownZone(text.to_owned()));
        }
        if self.label.take().is_some_and(|label| label != FieldLabel::Time)
            || self.fields.has(field_flags::TIME)
        {
            return Err(DatetimeError::BadFormat);
        }
        let at = text.find('-').ok_or(DatetimeError::BadFormat)?;
        self.fields.record_fields(field_flags::ZONE)?;
        self.place = Some(TimeZoneSpec::Offset(zone_offset(&text[at..])?));
        let assumed = self.assumed();
        self.fields.take_run(&text[..at], assumed)
    }

    /// Parses a zone name.
    fn take_zone(&mut self, name: &str, unknown: impl FnOnce() -> DatetimeError) -> Step<()> {
        let zone = TimeZone::full(name).map_err(|_| unknown())?;
        self.place = Some(TimeZoneSpec::Zone(zone));
        self.fields.record_fields(field_flags::ZONE)
    }

    fn take_word(&mut self, word: &str, index: usize) -> Step<()> {
        if let Some((zone, summer)) = TimeZone::abbreviation(word) {
            // Two zones conflict only if one of them is daylight saving time.
            self.fields.record_fields(
                field_flags::ZONE | if summer { field_flags::SUMMER_ZONE } else { 0 },
            )?;
            self.place = Some(match zone.fixed_offset() {
                Some(offset) => TimeZoneSpec::Offset(offset),
                None => TimeZoneSpec::Zone(zone),
            });
            return Ok(());
        }
        if let Some(month) = month_of(word) {
            return self.take_month(month as i32);
        }
        if let Some(label) = label(word) {
            if label == FieldLabel::Time {
                let next = self.tokens.get(index + 1).map(|token| token.shape);
                let date = self.time_only || self.fields.has(field_flags::DATE);
                let time =
                    matches!(next, Some(TokenKind::Number | TokenKind::Time | TokenKind::Date));
                if !date || !time {
                    return Err(DatetimeError::BadFormat);
                }
            }
            self.label = Some(label);
            return Ok(());
        }
        match word {
            "at" | "on" => Ok(()),
            "am" => self.take_half(DayHalf::Morning),
            "pm" => self.take_half(DayHalf::Afternoon),
            "ad" | "bc" => {
                self.fields.before_christ = word == "bc";
                self.fields.record_fields(field_flags::ERA)
            }
            "infinity" => self.set_special(Special::Infinity),
            "-infinity" => self.set_special(Special::NegativeInfinity),
            "epoch" => self.set_special(Special::Epoch),
            "now" => self.set_special(Special::Now),
            "today" | "tomorrow" | "yesterday" => self.take_relative_day(word),
            "allballs" => {
                self.place = Some(TimeZoneSpec::Offset(0));
                self.fields.record_fields(field_flags::TIME | field_flags::ZONE)
            }
            "dst" => {
                self.fields.record_fields(field_flags::SUMMER | field_flags::SUMMER_ZONE)?;
                if let Some(TimeZoneSpec::Offset(offset)) = &mut self.place {
                    *offset += 3600;
                }
                Ok(())
            }
            _ if is_day_name(word) => self.fields.record_fields(field_flags::DAY_OF_WEEK),
            _ => self.take_zone(word, || DatetimeError::BadFormat),
        }
    }

    fn take_half(&mut self, half: DayHalf) -> Step<()> {
        self.fields.half = Some(half);
        self.fields.record_fields(field_flags::HALF)
    }

    /// Sets a month by name; a number that was taken for the month becomes the day.
    fn take_month(&mut self, month: i32) -> Step<()> {
        if self.time_only {
            return Err(DatetimeError::BadFormat);
        }
        let fields = &mut self.fields;
        let number =
            fields.has(field_flags::MONTH) && !fields.text_month && !fields.has(field_flags::DAY);
        let new = if number && (1..=31).contains(&fields.month) {
            fields.day = fields.month;
            field_flags::DAY
        } else {
            field_flags::MONTH
        };
        fields.text_month = true;
        fields.month = month;
        fields.record_fields(new)
    }

    fn set_special(&mut self, special: Special) -> Step<()> {
        if self.time_only {
            if special != Special::Now {
                return Err(DatetimeError::BadFormat);
            }
            self.special = Some(special);
            return self.fields.record_fields(field_flags::TIME);
        }
        self.fields.record_fields(field_flags::DATE | field_flags::TIME | field_flags::ZONE)?;
        (self.fields.year, self.fields.month, self.fields.day) = (2000, 1, 1);
        self.special = Some(special);
        Ok(())
    }

    fn take_relative_day(&mut self, word: &str) -> Step<()> {
        if self.time_only {
            return Err(DatetimeError::BadFormat);
        }
        let now = self.reading.now.ok_or(DatetimeError::NoClock)?;
        let local = timestamptz_to_local(now, self.reading.zone);
        let shift = match word {
            "tomorrow" => 1,
            "yesterday" => -1,
            _ => 0,
        };
        let today = timestamp_to_date(local.map_err(|_| DatetimeError::FieldOverflow)?);
        self.fields.set_days(today + shift);
        self.fields.record_fields(field_flags::DATE)
    }

    /// Returns the local timestamp; a value beyond all timestamps if it is out of range.
    fn local(&self) -> i64 {
        let days = self.fields.days_of_moment().map(i64::from);
        let midnight = days.and_then(|days| days.checked_mul(MICROS_PER_DAY));
        midnight.map_or(i64::MAX - 1, |midnight| {
            midnight.saturating_add(self.fields.time_of_day()).min(i64::MAX - 1)
        })
    }
}

fn label(word: &str) -> Option<FieldLabel> {
    Some(match word {
        "y" => FieldLabel::Year,
        "m" => FieldLabel::Month,
        "d" => FieldLabel::Day,
        "h" => FieldLabel::Hour,
        "mm" => FieldLabel::Minute,
        "s" => FieldLabel::Second,
        "j" | "jd" | "julian" => FieldLabel::JulianDay,
        "t" => FieldLabel::Time,
        _ => return None,
    })
}

/// Parses a date in ISO format, by far the most frequent: `YYYY-MM-DD`.
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

/// Parses a timestamp in ISO format: `YYYY-MM-DD hh:mm:ss[.ffffff]`.
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
        Some(b'.') if (21..=26).contains(&bytes.len()) => {
            super::decode::fraction_micros(&text[19..]).ok()?
        }
        Some(_) => return None,
    };
    let number = |at| two(at).map(|value| value as i32);
    let (hour, minute, second) = (number(11)?, number(14)?, number(17)?);
    let fields = DecodedFields { hour, minute, second, micros, ..DecodedFields::default() };
    fields.check_time().ok()?;
    Some(i64::from(days) * MICROS_PER_DAY + fields.time_of_day())
}

/// Parses a date.
pub(crate) fn parse_date(text: &str, reading: &ParseSettings<'_>) -> Result<i32> {
    if let Some(days) = iso_date(text.as_bytes()) {
        return Ok(days);
    }
    let read = || {
        let reader = Reader::read(text, false, reading)?;
        Ok(match reader.special {
            Some(Special::Infinity) => Some(DATE_INFINITY),
            Some(Special::NegativeInfinity) => Some(DATE_NEGATIVE_INFINITY),
            Some(Special::Epoch) => Some(-UNIX_EPOCH_DAYS),
            Some(Special::Now) => {
                let now = reading.now.ok_or(DatetimeError::NoClock)?;
                let local = timestamptz_to_local(now, reading.zone);
                Some(timestamp_to_date(local.map_err(|_| DatetimeError::FieldOverflow)?))
            }
            None => reader.fields.days(),
        })
    };
    let days = read().map_err(|failure: DatetimeError| failure.error("date", text))?;
    days.ok_or_else(|| err!(DATETIME_FIELD_OVERFLOW: "date out of range: \"{text}\""))
}

/// Parses a time of day.
pub(crate) fn parse_time(text: &str, reading: &ParseSettings<'_>) -> Result<i64> {
    read_time(text, reading)
        .map(|(time, _)| time)
        .map_err(|failure: DatetimeError| failure.error("time", text))
}

/// Parses a time of day with time zone: the time, and the seconds west of Greenwich. The default
/// zone is that of the session, on the given date or today.
pub(crate) fn parse_timetz(text: &str, reading: &ParseSettings<'_>) -> Result<TimeWest> {
    let read = || {
        let (time, east) = read_time(text, reading)?;
        Ok((time, -east.ok_or(DatetimeError::NoClock)?))
    };
    read().map_err(|failure: DatetimeError| failure.error("time with time zone", text))
}

/// Parses a time of day and its offset east of Greenwich, if it can be determined.
fn read_time(text: &str, reading: &ParseSettings<'_>) -> Step<(i64, Option<i32>)> {
    let reader = Reader::read(text, true, reading)?;
    if reader.special.is_some() {
        let now = reading.now.ok_or(DatetimeError::NoClock)?;
        let now = timestamptz_to_timetz(now, reading.zone).ok().flatten();
        let (time, west) = now.ok_or(DatetimeError::FieldOverflow)?;
        return Ok((time, Some(-west)));
    }
    let time = reader.fields.time_of_day();
    let dated = reader.fields.has(field_flags::DATE);
    let part_of_date = !dated && reader.fields.given & field_flags::DATE != 0;
    let east = match &reader.place {
        Some(TimeZoneSpec::Offset(offset)) => Some(*offset),
        Some(TimeZoneSpec::Zone(zone)) if dated => Some(zone.offset_of_local(reader.local())),
        Some(TimeZoneSpec::Zone(_)) if part_of_date => return Err(DatetimeError::BadFormat),
        Some(TimeZoneSpec::Zone(zone)) if zone.is_abbreviation() => {
            offset_today(time, zone, reading.now)
        }
        Some(TimeZoneSpec::Zone(zone)) => Some(only_offset(zone).ok_or(DatetimeError::BadFormat)?),
        None if part_of_date => return Err(DatetimeError::BadFormat),
        None if dated => Some(reading.zone.offset_of_local(reader.local())),
        None => offset_today(time, reading.zone, reading.now),
    };
    Ok((time, east))
}

/// Parses a timestamp; a time zone is validated and ignored.
pub(crate) fn parse_timestamp(text: &str, reading: &ParseSettings<'_>) -> Result<i64> {
    if let Some(timestamp) = iso_timestamp(text) {
        return Ok(timestamp);
    }
    let name = "timestamp";
    let (local, _) = read_moment(text, reading, name)?;
    if let ParsedTimestamp::Instant(now) = local {
        return timestamptz_to_local(now, reading.zone);
    }
    check(local.micros(), text)
}

/// Parses an instant; the default zone is that of the session.
pub(crate) fn parse_timestamptz(text: &str, reading: &ParseSettings<'_>) -> Result<i64> {
    let name = "timestamp with time zone";
    let (moment, zone) = match iso_timestamp(text) {
        Some(local) => (ParsedTimestamp::Local(local), None),
        None => read_moment(text, reading, name)?,
    };
    match moment {
        ParsedTimestamp::Instant(instant) => Ok(instant),
        ParsedTimestamp::Local(local) if !is_finite_timestamp(local) => Ok(local),
        ParsedTimestamp::Local(local) => {
            let zone = zone.unwrap_or_else(|| reading.zone.clone());
            let instant = local_to_timestamptz(local, &zone);
            check(instant.unwrap_or(i64::MAX - 1), text)
        }
    }
}

/// A parsed timestamp.
enum ParsedTimestamp {
    Local(i64),
    Instant(i64),
}

impl ParsedTimestamp {
    fn micros(&self) -> i64 {
        match self {
            ParsedTimestamp::Local(micros) | ParsedTimestamp::Instant(micros) => *micros,
        }
    }
}

fn check(timestamp: i64, text: &str) -> Result<i64> {
    let finite = (TIMESTAMP_MIN..TIMESTAMP_END).contains(&timestamp);
    if finite || !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    bail!(DATETIME_FIELD_OVERFLOW: "timestamp out of range: \"{text}\"")
}

fn read_moment(
    text: &str,
    reading: &ParseSettings<'_>,
    type_name: &str,
) -> Result<(ParsedTimestamp, Option<TimeZone>)> {
    let read = || {
        let reader = Reader::read(text, false, reading)?;
        let epoch = ParsedTimestamp::Local(i64::from(-UNIX_EPOCH_DAYS) * MICROS_PER_DAY);
        Ok(match reader.special {
            Some(Special::Infinity) => (ParsedTimestamp::Local(TIMESTAMP_INFINITY), None),
            Some(Special::NegativeInfinity) => {
                (ParsedTimestamp::Local(TIMESTAMP_NEGATIVE_INFINITY), None)
            }
            // An instant for timestamptz; the same number as local time otherwise.
            Some(Special::Epoch) => (epoch, Some(TimeZone::UTC)),
            Some(Special::Now) => {
                (ParsedTimestamp::Instant(reading.now.ok_or(DatetimeError::NoClock)?), None)
            }
            None => {
                let local = ParsedTimestamp::Local(reader.local());
                match reader.place {
                    Some(TimeZoneSpec::Offset(offset)) => (local, Some(TimeZone::fixed(offset))),
                    Some(TimeZoneSpec::Zone(zone)) => (local, Some(zone)),
                    None => (local, None),
                }
            }
        })
    };
    read().map_err(|failure: DatetimeError| failure.error(type_name, text))
}
