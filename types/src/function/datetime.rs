//! Dates and times: arithmetic, fields, truncation, construction, time zones, formatting.
//!
//! The arithmetic itself is that of [`crate::datetime`]; here it gets names and types.

use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{
    Bool, Date, Float4, Float8, Int4, Int8, Interval, Numeric, Text, Time, Timestamp, Timestamptz,
};
use crate::datum::Datum;
use crate::error::Result;

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("+", &[Date, Int4], Date, pending),
    row("+", &[Int4, Date], Date, pending),
    row("-", &[Date, Int4], Date, pending),
    row("-", &[Date, Date], Int4, pending),
    row("+", &[Date, Interval], Timestamp, pending),
    row("+", &[Interval, Date], Timestamp, pending),
    row("-", &[Date, Interval], Timestamp, pending),
    row("+", &[Date, Time], Timestamp, pending),
    row("+", &[Time, Date], Timestamp, pending),
    row("+", &[Timestamp, Interval], Timestamp, pending),
    row("+", &[Interval, Timestamp], Timestamp, pending),
    row("-", &[Timestamp, Interval], Timestamp, pending),
    row("+", &[Timestamptz, Interval], Timestamptz, pending).stable(),
    row("+", &[Interval, Timestamptz], Timestamptz, pending)
    .stable(),
    row("-", &[Timestamptz, Interval], Timestamptz, pending).stable(),
    row("-", &[Timestamp, Timestamp], Interval, pending),
    row("-", &[Timestamptz, Timestamptz], Interval, pending),
    row("+", &[Time, Interval], Time, pending),
    row("+", &[Interval, Time], Time, pending),
    row("-", &[Time, Interval], Time, pending),
    row("-", &[Time, Time], Interval, pending),
    row("+", &[Interval, Interval], Interval, pending),
    row("-", &[Interval, Interval], Interval, pending),
    row("-", &[Interval], Interval, pending),
    row("*", &[Interval, Float8], Interval, pending),
    row("*", &[Float8, Interval], Interval, pending),
    row("/", &[Interval, Float8], Interval, pending),
    row("extract", &[Text, Date], Numeric, pending),
    row("extract", &[Text, Time], Numeric, pending),
    row("extract", &[Text, Timestamp], Numeric, pending),
    row("extract", &[Text, Timestamptz], Numeric, pending).stable(),
    row("extract", &[Text, Interval], Numeric, pending),
    row("date_part", &[Text, Date], Float8, pending),
    row("date_part", &[Text, Time], Float8, pending),
    row("date_part", &[Text, Timestamp], Float8, pending),
    row("date_part", &[Text, Timestamptz], Float8, pending).stable(),
    row("date_part", &[Text, Interval], Float8, pending),
    row("date_trunc", &[Text, Timestamp], Timestamp, pending),
    row("date_trunc", &[Text, Timestamptz], Timestamptz, pending).stable(),
    row("date_trunc", &[Text, Timestamptz, Text], Timestamptz, pending).stable(),
    row("date_trunc", &[Text, Interval], Interval, pending),
    row("age", &[Timestamp, Timestamp], Interval, pending),
    row("age", &[Timestamp], Interval, pending).stable(),
    row("age", &[Timestamptz, Timestamptz], Interval, pending).stable(),
    row("age", &[Timestamptz], Interval, pending).stable(),
    row("make_date", &[Int4, Int4, Int4], Date, pending),
    row("make_time", &[Int4, Int4, Float8], Time, pending),
    row("make_timestamp", &[Int4, Int4, Int4, Int4, Int4, Float8], Timestamp, pending),
    row("make_timestamptz", &[Int4, Int4, Int4, Int4, Int4, Float8], Timestamptz, pending)
        .stable(),
    row("make_timestamptz", &[Int4, Int4, Int4, Int4, Int4, Float8, Text], Timestamptz, pending)
    .stable(),
    row("make_interval", &[], Interval, pending),
    row("make_interval", &[Int4], Interval, pending),
    row("make_interval", &[Int4, Int4], Interval, pending),
    row("make_interval", &[Int4, Int4, Int4], Interval, pending),
    row("make_interval", &[Int4, Int4, Int4, Int4], Interval, pending),
    row("make_interval", &[Int4, Int4, Int4, Int4, Int4], Interval, pending),
    row("make_interval", &[Int4, Int4, Int4, Int4, Int4, Int4], Interval, pending),
    row("make_interval", &[Int4, Int4, Int4, Int4, Int4, Int4, Float8], Interval, pending),
    row("to_timestamp", &[Float8], Timestamptz, pending),
    row("timezone", &[Text, Timestamp], Timestamptz, pending),
    row("timezone", &[Text, Timestamptz], Timestamp, pending),
    row("timezone", &[Interval, Timestamp], Timestamptz, pending),
    row("timezone", &[Interval, Timestamptz], Timestamp, pending),
    row("justify_days", &[Interval], Interval, pending),
    row("justify_hours", &[Interval], Interval, pending),
    row("justify_interval", &[Interval], Interval, pending),
    row("isfinite", &[Date], Bool, pending),
    row("isfinite", &[Timestamp], Bool, pending),
    row("isfinite", &[Timestamptz], Bool, pending),
    row("isfinite", &[Interval], Bool, pending),
    row("date_bin", &[Interval, Timestamp, Timestamp], Timestamp, pending),
    row("date_bin", &[Interval, Timestamptz, Timestamptz], Timestamptz, pending),
];

fn pending(_: &[Datum], _: &EvalContext) -> Result<Datum> {
    todo!("types/function")
}
