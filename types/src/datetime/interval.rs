//! Intervals: months, days and microseconds, which are normalised only on request.
//!
//! In comparisons a month has 30 days and a day 24 hours, so `1 mon` equals `30 days` although
//! the two have different text and different effects on a date.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::MICROS_PER_DAY;
use super::out_of_range;
use crate::error::Error;
use crate::error::Result;

/// An interval of three parts, which are not normalised into each other.
///
/// Equality, order and hash are those of SQL.
#[derive(Debug, Clone, Copy, Default)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub microseconds: i64,
}

impl Interval {
    /// Creates an interval of these parts.
    pub fn new(months: i32, days: i32, microseconds: i64) -> Interval {
        Interval { months, days, microseconds }
    }

    /// Returns the length in microseconds by which intervals are compared: a month has 30 days of
    /// 24 hours.
    pub fn span(&self) -> i128 {
        let days = i128::from(self.months) * 30 + i128::from(self.days);
        days * i128::from(MICROS_PER_DAY) + i128::from(self.microseconds)
    }

    /// Returns the interval of a span with days below 30 and time below a day, all of one sign;
    /// if the months overflow, the rest is in days and time. `None` if the span exceeds the range
    /// of intervals.
    pub fn from_span(span: i128) -> Option<Interval> {
        let day = i128::from(MICROS_PER_DAY);
        let clamp = |value: i128| value.clamp(i128::from(i32::MIN), i128::from(i32::MAX));
        let months = clamp(span / day / 30);
        let days = clamp(span / day - months * 30);
        let microseconds = i64::try_from(span - (months * 30 + days) * day).ok()?;
        let interval = Interval { months: months as i32, days: days as i32, microseconds };
        debug_assert_eq!(interval.span(), span);
        Some(interval)
    }

    /// Returns whether all parts are equal, not only the spans.
    pub fn is_identical(&self, other: &Interval) -> bool {
        self.months == other.months
            && self.days == other.days
            && self.microseconds == other.microseconds
    }

    /// Returns the sum, part by part.
    ///
    /// # Errors
    ///
    /// `22008` if a part overflows; likewise for the other operations.
    pub fn checked_add(&self, other: &Interval) -> Result<Interval> {
        let sum = || {
            Some(Interval {
                months: self.months.checked_add(other.months)?,
                days: self.days.checked_add(other.days)?,
                microseconds: self.microseconds.checked_add(other.microseconds)?,
            })
        };
        sum().ok_or_else(interval_out_of_range)
    }

    /// Returns the difference, part by part.
    pub fn checked_sub(&self, other: &Interval) -> Result<Interval> {
        let difference = || {
            Some(Interval {
                months: self.months.checked_sub(other.months)?,
                days: self.days.checked_sub(other.days)?,
                microseconds: self.microseconds.checked_sub(other.microseconds)?,
            })
        };
        difference().ok_or_else(interval_out_of_range)
    }

    /// Returns the interval with all signs changed.
    pub fn checked_neg(&self) -> Result<Interval> {
        Interval::default().checked_sub(self)
    }

    /// Returns the product; fractions of months become days, fractions of days time.
    pub fn checked_mul(&self, factor: f64) -> Result<Interval> {
        self.scaled(|part| part * factor)
    }

    /// Returns the quotient; fractions of months become days, fractions of days time.
    ///
    /// # Errors
    ///
    /// `22012` for a division by zero.
    pub fn checked_div(&self, divisor: f64) -> Result<Interval> {
        if divisor == 0.0 {
            bail!(DIVISION_BY_ZERO: "division by zero");
        }
        self.scaled(|part| part / divisor)
    }

    fn scaled(&self, scale: impl Fn(f64) -> f64) -> Result<Interval> {
        let whole = |value: f64| {
            let fits = value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX);
            if fits { Ok(value as i32) } else { Err(interval_out_of_range()) }
        };
        let months_exact = scale(f64::from(self.months));
        let days_exact = scale(f64::from(self.days));
        let months = whole(months_exact)?;
        let days = whole(days_exact)?;
        let month_days = to_micros((months_exact - f64::from(months)) * 30.0);
        let mut seconds =
            to_micros((days_exact - f64::from(days) + month_days - month_days.trunc()) * 86_400.0);
        let mut carried = 0i32;
        if seconds.abs() >= 86_400.0 {
            carried = (seconds / 86_400.0) as i32;
            seconds -= f64::from(carried) * 86_400.0;
        }
        let days = days.checked_add(carried).and_then(|days| days.checked_add(month_days as i32));
        let time = (scale(self.microseconds as f64) + seconds * 1e6).round_ties_even();
        let fits = time >= i64::MIN as f64 && time < -(i64::MIN as f64);
        match days {
            Some(days) if fits => Ok(Interval { months, days, microseconds: time as i64 }),
            _ => Err(interval_out_of_range()),
        }
    }

    /// Converts each 24 hours into a day.
    pub fn justify_hours(&self) -> Result<Interval> {
        let mut result = *self;
        result.carry_time()?;
        result.align_time();
        debug_assert_eq!(result.span(), self.span(), "{self:?} is as long as {result:?}");
        Ok(result)
    }

    /// Converts each 30 days into a month.
    pub fn justify_days(&self) -> Result<Interval> {
        let mut result = *self;
        result.carry_days()?;
        if result.months > 0 && result.days < 0 {
            result.days += 30;
            result.months -= 1;
        } else if result.months < 0 && result.days > 0 {
            result.days -= 30;
            result.months += 1;
        }
        debug_assert_eq!(result.span(), self.span(), "{self:?} is as long as {result:?}");
        Ok(result)
    }

    /// Converts time into days and days into months, and makes all signs equal.
    pub fn justify_interval(&self) -> Result<Interval> {
        let mut result = *self;
        if (result.days > 0 && result.microseconds > 0)
            || (result.days < 0 && result.microseconds < 0)
        {
            result.carry_days()?;
        }
        result.carry_time()?;
        result.carry_days()?;
        let Interval { months, days, microseconds } = result;
        if months > 0 && (days < 0 || (days == 0 && microseconds < 0)) {
            result.days += 30;
            result.months -= 1;
        } else if months < 0 && (days > 0 || (days == 0 && microseconds > 0)) {
            result.days -= 30;
            result.months += 1;
        }
        result.align_time();
        debug_assert_eq!(result.span(), self.span(), "{self:?} is as long as {result:?}");
        let signs =
            [result.months.signum(), result.days.signum(), result.microseconds.signum() as i32];
        debug_assert!(!(signs.contains(&1) && signs.contains(&-1)), "{result:?} has two signs");
        Ok(result)
    }

    fn carry_time(&mut self) -> Result<()> {
        let days = (self.microseconds / MICROS_PER_DAY) as i32;
        self.days = self.days.checked_add(days).ok_or_else(interval_out_of_range)?;
        self.microseconds %= MICROS_PER_DAY;
        Ok(())
    }

    fn carry_days(&mut self) -> Result<()> {
        self.months = self.months.checked_add(self.days / 30).ok_or_else(interval_out_of_range)?;
        self.days %= 30;
        Ok(())
    }

    fn align_time(&mut self) {
        if self.days > 0 && self.microseconds < 0 {
            self.microseconds += MICROS_PER_DAY;
            self.days -= 1;
        } else if self.days < 0 && self.microseconds > 0 {
            self.microseconds -= MICROS_PER_DAY;
            self.days += 1;
        }
    }
}

/// Rounds to six decimal places.
fn to_micros(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

/// Returns PostgreSQL's `interval out of range`.
pub(super) fn interval_out_of_range() -> Error {
    out_of_range("interval")
}

impl PartialEq for Interval {
    fn eq(&self, other: &Interval) -> bool {
        self.span() == other.span()
    }
}

impl Eq for Interval {}

impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Interval) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Interval {
    fn cmp(&self, other: &Interval) -> Ordering {
        self.span().cmp(&other.span())
    }
}

impl Hash for Interval {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.span().hash(state);
    }
}
