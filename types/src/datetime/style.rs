//! How dates and intervals look: the settings `DateStyle` and `IntervalStyle`.

/// The form in which dates are written: the first half of `DateStyle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DateStyle {
    /// `1997-12-17 07:37:16-08`
    #[default]
    Iso,
    /// `12/17/1997 07:37:16 PST`
    Sql,
    /// `Wed Dec 17 07:37:16 1997 PST`
    Postgres,
    /// `17.12.1997 07:37:16 PST`
    German,
}

/// The order of the fields of a date that is only numbers: the second half of `DateStyle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DateOrder {
    /// Month, day, year.
    #[default]
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

/// The form of intervals: the setting of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IntervalStyle {
    /// `1 year 2 mons -3 days +04:05:06`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons -3 days 4 hours 5 mins 6 secs`
    PostgresVerbose,
    /// `+1-2 -3 +4:05:06`
    SqlStandard,
    /// `P1Y2M-3DT4H5M6S`
    Iso8601,
}

/// What the text of dates and intervals looks like, and how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// The form in which dates are written.
    pub date: DateStyle,
    /// The order of day, month and year, written and read.
    pub order: DateOrder,
    /// The form of intervals.
    pub interval: IntervalStyle,
}
