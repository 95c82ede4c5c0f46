//! `(start, end) OVERLAPS (start, end)`: returns whether two time spans have an instant in
//! common.
//!
//! The two points of a pair may be in any order; NULL is an unknown end. A length may replace an
//! end.

use super::argument::interval;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, Bool, Interval, Time, Timestamp, Timestamptz, Timetz};
use crate::datetime;
use crate::datum::{Datum, Nested, utc_order};
use crate::error::Result;

/// The function table of this family: for each type with ends, or with lengths for either of
/// them.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    overlapping(&[Time, Time, Time, Time]),
    overlapping(&[Time, Interval, Time, Time]),
    overlapping(&[Time, Time, Time, Interval]),
    overlapping(&[Time, Interval, Time, Interval]),
    overlapping(&[Timetz, Timetz, Timetz, Timetz]),
    overlapping(&[Timestamp, Timestamp, Timestamp, Timestamp]),
    overlapping(&[Timestamp, Interval, Timestamp, Timestamp]),
    overlapping(&[Timestamp, Timestamp, Timestamp, Interval]),
    overlapping(&[Timestamp, Interval, Timestamp, Interval]),
    overlapping(&[Timestamptz, Timestamptz, Timestamptz, Timestamptz]),
    overlapping(&[Timestamptz, Interval, Timestamptz, Timestamptz]).stable(),
    overlapping(&[Timestamptz, Timestamptz, Timestamptz, Interval]).stable(),
    overlapping(&[Timestamptz, Interval, Timestamptz, Interval]).stable(),
];

const fn overlapping(arguments: &'static [DataType]) -> FunctionRow {
    row("overlaps", arguments, Bool, overlaps).takes_null()
}

fn overlaps(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let first = span(&arguments[0], &arguments[1], context)?;
    let second = span(&arguments[2], &arguments[3], context)?;
    let (Some(first), Some(second)) = (first, second) else { return Ok(Datum::Null) };
    // The span that begins first must not end before the other begins.
    let (early, late) = if first.0 > second.0 { (second, first) } else { (first, second) };
    if early.0 == late.0 {
        // They share an instant, unless an end is unknown.
        let known = early.1.is_some() && late.1.is_some();
        return Ok(if known { Datum::Bool(true) } else { Datum::Null });
    }
    Ok(match (early.1, late.1) {
        (Some(end), _) if late.0 < end => Datum::Bool(true),
        (None, _) | (_, None) => Datum::Null,
        _ => Datum::Bool(false),
    })
}

/// Returns start and end in order, with `None` for a NULL end; `None` if both are NULL.
fn span(start: &Datum, end: &Datum, context: &EvalContext) -> Result<Option<(i64, Option<i64>)>> {
    let end = match (start, end) {
        (Datum::Null, Datum::Interval(_)) => Datum::Null,
        (Datum::Time(at), Datum::Interval(length)) => {
            Datum::Time(datetime::time_plus_interval(*at, *length))
        }
        (Datum::Timestamp(at), Datum::Interval(length)) => {
            Datum::Timestamp(datetime::timestamp_plus_interval(*at, *length)?)
        }
        (Datum::Timestamptz(at), length @ Datum::Interval(_)) => Datum::Timestamptz(
            datetime::timestamptz_plus_interval(*at, interval(length), &context.style.time_zone)?,
        ),
        (_, end) => end.clone(),
    };
    Ok(match (instant(start), instant(&end)) {
        (Some(start), Some(end)) => Some((start.min(end), Some(start.max(end)))),
        (Some(only), None) | (None, Some(only)) => Some((only, None)),
        (None, None) => None,
    })
}

fn instant(datum: &Datum) -> Option<i64> {
    match datum {
        Datum::Time(at) | Datum::Timestamp(at) | Datum::Timestamptz(at) => Some(*at),
        Datum::Nested(Nested::Timetz { time, west }) => Some(utc_order(*time, *west)),
        _ => None,
    }
}
