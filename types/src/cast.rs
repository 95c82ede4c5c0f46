//! Casts: which there are, when they happen by themselves, and how to do one.
//!
//! [`cast_context`] is PostgreSQL's `pg_cast` for the types that bennu has, plus the automatic
//! conversions through text: any type *to* a string type in assignments, any type *from* a string
//! type when the cast is written.

use crate::context::EvalContext;
use crate::datatype::{DataType, SqlType};
use crate::datum::Datum;
use crate::error::Result;

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
///
/// A literal of type `unknown` becomes anything by itself; nothing becomes `unknown`.
pub fn cast_context(from: DataType, to: DataType) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use DataType::{
        Bool, Char, Date, Float4, Float8, Int2, Int4, Int8, Interval, Name, Numeric, Oid, Text,
        Time, Timestamp, Timestamptz, Unknown, Varchar,
    };
    if from == to || from == Unknown {
        return Some(Implicit);
    }
    if to == Unknown {
        return None;
    }
    let context = match (from, to) {
        (Bool, Int4) | (Int4, Bool) => Explicit,
        (Int2, Int4 | Int8 | Float4 | Float8 | Numeric | Oid)
        | (Int4, Int8 | Float4 | Float8 | Numeric | Oid)
        | (Int8, Float4 | Float8 | Numeric | Oid)
        | (Float4, Float8)
        | (Numeric, Float4 | Float8) => Implicit,
        (Int4, Int2)
        | (Int8, Int2 | Int4)
        | (Oid, Int4 | Int8)
        | (Float4, Int2 | Int4 | Int8 | Numeric)
        | (Float8, Int2 | Int4 | Int8 | Float4 | Numeric)
        | (Numeric, Int2 | Int4 | Int8) => Assignment,
        (Text, Varchar | Char | Name)
        | (Varchar, Text | Char | Name)
        | (Char, Text | Varchar | Name)
        | (Name, Text) => Implicit,
        (Name, Varchar | Char) => Assignment,
        (Date, Timestamp | Timestamptz) | (Timestamp, Timestamptz) | (Time, Interval) => Implicit,
        (Timestamp, Date | Time)
        | (Timestamptz, Date | Time | Timestamp)
        | (Interval, Time) => Assignment,
        (_, string) if string.is_text() => Assignment,
        (string, _) if string.is_text() => Explicit,
        _ => return None,
    };
    Some(context)
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
