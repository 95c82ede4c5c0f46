//! The clock: `now()` and its kin, and the keywords that the binder makes calls of.
//!
//! All but `clock_timestamp()` read the times in the [`EvalContext`], so that a statement sees one
//! time wherever its parts run.


use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Date, Int4, Time, Timestamp, Timestamptz};
use crate::datum::Datum;
use crate::error::Result;

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("now", &[], Timestamptz, pending).stable(),
    row("transaction_timestamp", &[], Timestamptz, pending).stable(),
    row("current_timestamp", &[], Timestamptz, pending).stable(),
    row("current_timestamp", &[Int4], Timestamptz, pending)
    .stable(),
    row("statement_timestamp", &[], Timestamptz, pending)
    .stable(),
    row("clock_timestamp", &[], Timestamptz, pending).volatile(),
    row("current_date", &[], Date, pending)
    .stable(),
    row("localtimestamp", &[], Timestamp, pending).stable(),
    row("localtimestamp", &[Int4], Timestamp, pending)
    .stable(),
    row("localtime", &[], Time, pending)
    .stable(),
    row("localtime", &[Int4], Time, pending)
    .stable(),
];

fn pending(_: &[Datum], _: &EvalContext) -> Result<Datum> {
    todo!("types/function")
}
