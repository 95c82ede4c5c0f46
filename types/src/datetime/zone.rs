//! Time zones: names, fixed offsets and POSIX rules.
//!
//! The rules of named zones come from the tz database bundled with `jiff`, whose calendar ends
//! in 9999. Later instants are mapped to an earlier cycle of 400 years, which has the same
//! weekdays and the present rules. A local time in a gap has the offset before the gap; an
//! ambiguous local time has the later offset, as in PostgreSQL.

use std::fmt;
use std::sync::Arc;

use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;

use super::abbreviation::{AbbreviationMeaning, abbreviation};
use super::calendar::civil_from_timestamp;
use super::{MICROS_PER_SECOND, UNIX_EPOCH_SECONDS};
use crate::error::Error;
use crate::error::Result;

/// Seconds of 400 Gregorian years.
const CYCLE_SECONDS: i64 = 146_097 * 86_400;
/// Unix seconds at 9000-01-01, from which on instants are mapped to the earlier cycle.
const FOLD_SECONDS: i64 = 221_845_392_000;
/// Exclusive limit of offsets from UTC in text, in seconds.
const MAX_OFFSET: i32 = 168 * 3600;

/// A time zone; cheap to clone. The default is UTC.
#[derive(Clone, Default)]
pub struct TimeZone(Rule);

#[derive(Clone, Default)]
enum Rule {
    #[default]
    Utc,
    /// Seconds east of Greenwich.
    Fixed { seconds: i32, name: Arc<str> },
    /// Rules of the tz database or of a POSIX string.
    Zone { zone: jiff::tz::TimeZone, name: Arc<str> },
    /// An abbreviation, with its offset in the zone at the given time or last before it.
    Abbreviation { zone: jiff::tz::TimeZone, name: Arc<str> },
}

impl TimeZone {
    /// UTC
    pub const UTC: TimeZone = TimeZone(Rule::Utc);

    /// Returns the zone of a name in `AT TIME ZONE`: an abbreviation, a name of the tz database
    /// in any case, or a POSIX rule. In POSIX rules positive offsets are *west* of Greenwich,
    /// also in a bare `+02`.
    ///
    /// # Errors
    ///
    /// `22023` if there is no such zone.
    pub fn parse(name: &str) -> Result<TimeZone> {
        match TimeZone::abbreviation(name) {
            Some((zone, _)) => Ok(zone),
            None => TimeZone::named(name),
        }
    }

    /// Returns the zone of an abbreviation in any case, and whether it is daylight saving time.
    pub(super) fn abbreviation(name: &str) -> Option<(TimeZone, bool)> {
        let (meaning, summer) = abbreviation(name)?;
        let name: Arc<str> = name.to_ascii_uppercase().into();
        let rule = match meaning {
            AbbreviationMeaning::Offset(0) if &*name == "UTC" => Rule::Utc,
            AbbreviationMeaning::Offset(seconds) => Rule::Fixed { seconds, name },
            AbbreviationMeaning::Zone(zone) => {
                let zone = jiff::tz::TimeZone::get(zone).ok()?;
                Rule::Abbreviation { zone, name }
            }
        };
        Some((TimeZone(rule), summer))
    }

    /// Returns the zone of a full name, as in the text of dates.
    pub(super) fn full(name: &str) -> Result<TimeZone> {
        TimeZone::named(name)
    }

    /// Returns whether the zone is an abbreviation whose offset has changed over time.
    pub(super) fn is_abbreviation(&self) -> bool {
        matches!(self.0, Rule::Abbreviation { .. })
    }

    /// Returns the seconds east of Greenwich of a zone with a fixed offset.
    pub(super) fn fixed_offset(&self) -> Option<i32> {
        match &self.0 {
            Rule::Utc => Some(0),
            Rule::Fixed { seconds, .. } => Some(*seconds),
            Rule::Zone { .. } | Rule::Abbreviation { .. } => None,
        }
    }

    /// Returns the zone of a name in `SET TIME ZONE`: as [`TimeZone::parse`], but names of the tz
    /// database take precedence over abbreviations, and a bare number is hours *east* of
    /// Greenwich.
    ///
    /// # Errors
    ///
    /// `22023` if there is no such zone.
    pub fn parse_setting(name: &str) -> Result<TimeZone> {
        if name.eq_ignore_ascii_case("utc") {
            return Ok(TimeZone::UTC);
        }
        if let Ok(hours) = name.trim().parse::<f64>() {
            let seconds = hours * 3600.0;
            if seconds.abs() < f64::from(MAX_OFFSET) {
                return Ok(TimeZone::fixed(seconds as i32));
            }
        }
        TimeZone::named(name)
    }

    fn named(name: &str) -> Result<TimeZone> {
        let unknown = || err!(INVALID_PARAMETER_VALUE: "time zone \"{name}\" not recognized");
        if let Some(seconds) = bare_offset(name) {
            let fixed = TimeZone::fixed(-seconds);
            return Ok(TimeZone(Rule::Fixed { seconds: -seconds, name: fixed.name().into() }));
        }
        if let Ok(zone) = jiff::tz::TimeZone::get(name) {
            let name = zone.iana_name().unwrap_or(name).into();
            return Ok(TimeZone(Rule::Zone { zone, name }));
        }
        if let Some(zone) = letters_and_offset(name) {
            return Ok(zone);
        }
        let zone = jiff::tz::TimeZone::posix(name).map_err(|_| unknown())?;
        Ok(TimeZone(Rule::Zone { zone, name: name.to_ascii_uppercase().into() }))
    }

    /// Returns the zone with a fixed offset in seconds east of Greenwich.
    pub fn fixed(seconds: i32) -> TimeZone {
        if seconds == 0 {
            return TimeZone::UTC;
        }
        let offset = OffsetText(seconds);
        let inverse = OffsetText(-seconds);
        TimeZone(Rule::Fixed { seconds, name: format!("<{offset}>{inverse}").into() })
    }

    /// Returns the name, as in SHOW.
    pub fn name(&self) -> &str {
        match &self.0 {
            Rule::Utc => "UTC",
            Rule::Fixed { name, .. } | Rule::Zone { name, .. } => name,
            Rule::Abbreviation { name, .. } => name,
        }
    }

    /// Returns the seconds east of Greenwich at an instant (microseconds since 2000-01-01 UTC).
    pub fn offset_at(&self, timestamptz: i64) -> i32 {
        match &self.0 {
            Rule::Utc => 0,
            Rule::Fixed { seconds, .. } => *seconds,
            Rule::Zone { zone, .. } => zone.to_offset(instant(timestamptz)).seconds(),
            Rule::Abbreviation { zone, name } => meant(zone, name, instant(timestamptz)),
        }
    }

    /// Returns the zone's abbreviation at an instant, such as `CEST`.
    pub fn abbreviation_at(&self, timestamptz: i64) -> String {
        match &self.0 {
            Rule::Utc => "UTC".to_string(),
            Rule::Fixed { seconds, name } => {
                if name.starts_with('<') {
                    OffsetText(*seconds).to_string()
                } else {
                    name.trim_end_matches(|c: char| !c.is_ascii_alphabetic()).to_string()
                }
            }
            Rule::Abbreviation { name, .. } => name.to_string(),
            Rule::Zone { zone, .. } => {
                zone.to_offset_info(instant(timestamptz)).abbreviation().to_string()
            }
        }
    }

    /// Returns the offset in seconds east of Greenwich of a local time (microseconds since
    /// 2000-01-01 00:00 local).
    pub fn offset_of_local(&self, local: i64) -> i32 {
        let zone = match &self.0 {
            Rule::Utc => return 0,
            Rule::Fixed { seconds, .. } => return *seconds,
            Rule::Zone { zone, .. } | Rule::Abbreviation { zone, .. } => zone,
        };
        if let Rule::Abbreviation { zone, name } = &self.0 {
            let plain = TimeZone(Rule::Zone { zone: zone.clone(), name: Arc::clone(name) });
            let offset = plain.offset_of_local(local);
            let at = local.saturating_sub(i64::from(offset) * MICROS_PER_SECOND);
            return meant(zone, name, instant(at));
        }
        let mut local = local;
        if local.div_euclid(MICROS_PER_SECOND) + UNIX_EPOCH_SECONDS >= FOLD_SECONDS {
            let cycle = CYCLE_SECONDS * MICROS_PER_SECOND;
            local = local % cycle + cycle;
        }
        let civil = civil_from_timestamp(local);
        let civil = DateTime::new(
            civil.year as i16,
            civil.month as i8,
            civil.day as i8,
            civil.hour as i8,
            civil.minute as i8,
            civil.second as i8,
            0,
        );
        let Ok(civil) = civil else { return 0 };
        match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.seconds(),
            AmbiguousOffset::Gap { before, .. } => before.seconds(),
            AmbiguousOffset::Fold { after, .. } => after.seconds(),
        }
    }
}

/// Returns the offset of an abbreviation in a zone at an instant: its last one before, or the
/// first one after; otherwise that of the zone.
fn meant(zone: &jiff::tz::TimeZone, name: &str, at: jiff::Timestamp) -> i32 {
    let now = zone.to_offset_info(at);
    if now.abbreviation() == name {
        return now.offset().seconds();
    }
    let mut before = zone.preceding(at).filter(|change| change.abbreviation() == name);
    let found = before.next().or_else(|| {
        // A zone with recurring rules has an infinite number of changes.
        zone.following(at).take(400).find(|change| change.abbreviation() == name)
    });
    found.map_or(now.offset(), |change| change.offset()).seconds()
}

/// Returns the instant, mapped to the range of `jiff`.
fn instant(timestamptz: i64) -> jiff::Timestamp {
    let mut seconds = timestamptz.div_euclid(MICROS_PER_SECOND) + UNIX_EPOCH_SECONDS;
    if seconds >= FOLD_SECONDS {
        seconds = seconds % CYCLE_SECONDS + CYCLE_SECONDS;
    }
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MIN)
}

/// Parses `[+-]hh[:mm[:ss]]` to seconds, with the sign as written.
fn bare_offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        b'0'..=b'9' => (1, text),
        _ => return None,
    };
    let mut seconds = 0;
    let mut unit = 3600;
    for part in rest.split(':') {
        if unit == 0 || part.is_empty() || part.len() > 3 {
            return None;
        }
        if !part.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let value: i32 = part.parse().ok()?;
        if unit < 3600 && value > 59 {
            return None;
        }
        seconds += value * unit;
        unit /= 60;
    }
    (seconds < MAX_OFFSET).then_some(sign * seconds)
}

/// Parses a zone of letters and an offset west of Greenwich, optionally with letters for daylight
/// saving time: `XYZ-3:30`.
fn letters_and_offset(name: &str) -> Option<TimeZone> {
    let at = name.find(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ','))?;
    let (letters, offset) = name.split_at(at);
    if letters.is_empty() || letters.starts_with('<') {
        return None;
    }
    let unsigned = offset.trim_start_matches(['+', '-']);
    let digits = unsigned.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(unsigned.len());
    let (offset, summer) = offset.split_at(offset.len() - unsigned.len() + digits);
    if !summer.is_empty() {
        let is_name = |c: char| !c.is_ascii_digit() && !matches!(c, '+' | '-' | ',');
        let rest = summer.trim_start_matches(is_name);
        if rest.len() == summer.len() {
            return None;
        }
        // Without rules, daylight saving time follows those of the United States.
        let rules = if rest.contains(',') { "" } else { ",M3.2.0,M11.1.0" };
        let summer = &summer[..summer.len() - rest.len()];
        let (letters, summer) = (quoted(letters, "<+00>"), quoted(summer, "<+01>"));
        let rule = format!("{letters}{offset}{summer}{rest}{rules}");
        let zone = jiff::tz::TimeZone::posix(&rule).ok()?;
        return Some(TimeZone(Rule::Zone { zone, name: name.to_ascii_uppercase().into() }));
    }
    let seconds = -bare_offset(offset)?;
    Some(TimeZone(Rule::Fixed { seconds, name: name.to_ascii_uppercase().into() }))
}

/// Returns a name in the syntax of `jiff`, which accepts no short names and no signs.
fn quoted(name: &str, otherwise: &str) -> String {
    let fits = name.len() >= 3 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    if fits { format!("<{name}>") } else { otherwise.to_string() }
}

/// An offset as `+02`, `-03:30` or `+00:19:32`.
pub(super) struct OffsetText(pub(super) i32);

impl fmt::Display for OffsetText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.unsigned_abs();
        let sign = if self.0 < 0 { '-' } else { '+' };
        write!(f, "{sign}{:02}", seconds / 3600)?;
        if !seconds.is_multiple_of(3600) {
            write!(f, ":{:02}", seconds / 60 % 60)?;
        }
        if !seconds.is_multiple_of(60) {
            write!(f, ":{:02}", seconds % 60)?;
        }
        Ok(())
    }
}

impl fmt::Debug for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimeZone({})", self.name())
    }
}

impl PartialEq for TimeZone {
    fn eq(&self, other: &TimeZone) -> bool {
        self.name() == other.name()
    }
}

impl Eq for TimeZone {}
