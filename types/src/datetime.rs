//! Dates, times, timestamps, intervals and time zones with PostgreSQL's range and arithmetic.

/// An interval: three parts that are never normalised into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub microseconds: i64,
}

/// A time zone; cheap to clone. The default is UTC.
#[derive(Debug, Clone, Default)]
pub struct TimeZone {
    _private: (),
}
