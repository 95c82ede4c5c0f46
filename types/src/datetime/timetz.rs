//! Times with time zone: microseconds since midnight, and seconds west of Greenwich.

use super::arithmetic::timestamptz_to_local;
use super::zone::TimeZone;
use super::{MICROS_PER_DAY, MICROS_PER_SECOND, is_finite_timestamp};
use crate::error::Result;

/// A time and its seconds west of Greenwich.
pub type TimeWest = (i64, i32);

/// Returns the same instant with another offset.
pub fn timetz_in(time: TimeWest, west: i32) -> TimeWest {
    let shift = i64::from(time.1 - west) * MICROS_PER_SECOND;
    ((time.0 + shift).rem_euclid(MICROS_PER_DAY), west)
}

/// Returns the local time of a zone at an instant; `None` for the infinities.
///
/// # Errors
///
/// 22008 if the local date is out of range.
pub fn timestamptz_to_timetz(timestamptz: i64, zone: &TimeZone) -> Result<Option<TimeWest>> {
    if !is_finite_timestamp(timestamptz) {
        return Ok(None);
    }
    let local = timestamptz_to_local(timestamptz, zone)?;
    Ok(Some((local.rem_euclid(MICROS_PER_DAY), -zone.offset_at(timestamptz))))
}

/// Returns a time of day with the session's zone offset at that time on the date of `now`.
///
/// # Errors
///
/// 22008 if the local date is out of range.
pub fn time_to_timetz(time: i64, zone: &TimeZone, now: i64) -> Result<TimeWest> {
    let midnight = timestamptz_to_local(now, zone)?.div_euclid(MICROS_PER_DAY) * MICROS_PER_DAY;
    Ok((time, -zone.offset_of_local(midnight + time)))
}

/// Returns the offset of a zone that has never changed, in seconds east.
pub(super) fn only_offset(zone: &TimeZone) -> Option<i32> {
    const HALF_YEAR: i64 = 182 * MICROS_PER_DAY;
    // From 1900 to 2037, when daylight saving rules differ most.
    let mut offsets = (-200..75).map(|half| zone.offset_at(half * HALF_YEAR));
    let first = offsets.next()?;
    offsets.all(|offset| offset == first).then_some(first)
}

/// Returns the offset east of a time of today, for text without a zone.
pub(super) fn offset_today(time: i64, zone: &TimeZone, now: Option<i64>) -> Option<i32> {
    if let Some(only) = only_offset(zone) {
        return Some(only);
    }
    time_to_timetz(time, zone, now?).ok().map(|(_, west)| -west)
}
