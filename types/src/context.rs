//! What an evaluation knows beside its input row.
//!
//! A plain value, so that it can travel to a region with the expression that needs it.

use crate::datetime::TimeZone;
use crate::datum::Datum;

/// What an evaluation may know beside its row.
#[derive(Debug, Clone, Default)]
pub struct EvalContext {
    /// Values of [`Expr::Parameter`](crate::expr::Expr::Parameter).
    pub parameters: Vec<Datum>,
    /// `now()`: the start of the transaction, microseconds since 2000-01-01 UTC.
    pub transaction_timestamp: i64,
    /// `statement_timestamp()`, same unit.
    pub statement_timestamp: i64,
    /// Name of the session's time zone, as [`datetime`](crate::datetime) resolves it.
    pub time_zone: TimeZone,
}
