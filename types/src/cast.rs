//! Casts: which there are, when they happen by themselves, and how to do one.

use crate::datatype::{DataType, SqlType};
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::EvalContext;

/// When a cast may be applied, as in `pg_cast.castcontext`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Anywhere, by itself.
    Implicit,
    /// When a value is stored into a column.
    Assignment,
    /// Only when written.
    Explicit,
}

/// Returns the least demanding context in which values of `from` become `to`, or `None` if never.
/// Casts through text (PostgreSQL's automatic I/O conversions) are included as PostgreSQL rules.
pub fn cast_context(from: DataType, to: DataType) -> Option<CastContext> {
    let _ = (from, to);
    todo!("types/cast")
}

/// Casts a value and applies the modifier of `to`.
///
/// # Errors
///
/// Bad text, overflow; a value too long for `varchar(n)` unless `explicit`.
pub fn cast(
    value: &Datum,
    from: DataType,
    to: SqlType,
    explicit: bool,
    context: &EvalContext,
) -> Result<Datum> {
    let _ = (value, from, to, explicit, context);
    todo!("types/cast")
}
