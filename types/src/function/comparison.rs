//! The six comparison operators for every pair of types that PostgreSQL compares directly.
//!
//! NaN equals itself and is greater than every other float; `char` values are compared without
//! trailing blanks; a date or timestamp is compared with a timestamptz in the session's time
//! zone.

use std::cmp::Ordering;

use super::{
    FunctionRow, Implementation, KernelKind, TypedImplementation, Volatility, row, typed_row,
};
use crate::context::EvalContext;
use crate::datatype::DataType::{
    self, AnyArray, AnyEnum, Bit, Bool, Bytea, Char, Date, Float4, Float8, Int2, Int4, Int8,
    InternalChar, Interval, Jsonb, Name, Numeric, Oid, Text, Time, Timestamp, Timestamptz, Timetz,
    Uuid, Varbit,
};
use crate::datetime::{self, DATE_INFINITY, DATE_NEGATIVE_INFINITY, MICROS_PER_DAY};
use crate::datum::{Datum, Nested, compare_floats};
use crate::error::Result;

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl CompareOp {
    /// All six.
    pub const ALL: [CompareOp; 6] =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

    /// Returns the operator for exchanged operands: `a < b` is `b > a`.
    #[must_use]
    pub fn flip(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Eq,
            CompareOp::Ne => CompareOp::Ne,
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
        }
    }

    /// Returns the negated operator.
    #[must_use]
    pub fn negate(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Ne,
            CompareOp::Ne => CompareOp::Eq,
            CompareOp::Lt => CompareOp::Ge,
            CompareOp::Le => CompareOp::Gt,
            CompareOp::Gt => CompareOp::Le,
            CompareOp::Ge => CompareOp::Lt,
        }
    }

    /// Returns the symbol, PostgreSQL's canonical one.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "=",
            CompareOp::Ne => "<>",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        }
    }

    /// Returns whether two values with this ordering satisfy the operator.
    #[inline]
    pub fn accepts(self, ordering: Ordering) -> bool {
        match self {
            CompareOp::Eq => ordering.is_eq(),
            CompareOp::Ne => ordering.is_ne(),
            CompareOp::Lt => ordering.is_lt(),
            CompareOp::Le => ordering.is_le(),
            CompareOp::Gt => ordering.is_gt(),
            CompareOp::Ge => ordering.is_ge(),
        }
    }
}

/// The pairs of types that are compared without a cast.
const PAIRS: &[[DataType; 2]] = &[
    [Bool, Bool],
    [Int2, Int2],
    [Int4, Int4],
    [Int8, Int8],
    [Int2, Int4],
    [Int4, Int2],
    [Int2, Int8],
    [Int8, Int2],
    [Int4, Int8],
    [Int8, Int4],
    [Float4, Float4],
    [Float8, Float8],
    [Float4, Float8],
    [Float8, Float4],
    [Numeric, Numeric],
    [Text, Text],
    [Name, Name],
    [Name, Text],
    [Text, Name],
    [Char, Char],
    [Bytea, Bytea],
    [Date, Date],
    [Time, Time],
    [Timetz, Timetz],
    [InternalChar, InternalChar],
    [Bit, Bit],
    [Varbit, Varbit],
    [Timestamp, Timestamp],
    [Timestamptz, Timestamptz],
    [Date, Timestamp],
    [Timestamp, Date],
    [Date, Timestamptz],
    [Timestamptz, Date],
    [Timestamp, Timestamptz],
    [Timestamptz, Timestamp],
    [Interval, Interval],
    [Uuid, Uuid],
    [Oid, Oid],
    [AnyArray, AnyArray],
    [AnyEnum, AnyEnum],
    [Jsonb, Jsonb],
    [DataType::TID, DataType::TID],
    [DataType::XID8, DataType::XID8],
    [DataType::PG_LSN, DataType::PG_LSN],
    [DataType::MACADDR, DataType::MACADDR],
    [DataType::MACADDR8, DataType::MACADDR8],
    [DataType::MONEY, DataType::MONEY],
];

/// Types with equality but without an order, and whether they have `<>`.
const WITHOUT_ORDER: [(&[DataType; 2], bool); 3] = [
    (&[DataType::XID, DataType::XID], true),
    (&[DataType::CID, DataType::CID], false),
    (&[DataType::AclItem, DataType::AclItem], false),
];

/// Returns the function table of this family.
pub(super) fn functions() -> Vec<FunctionRow> {
    let mut rows = Vec::new();
    for pair in PAIRS {
        for op in CompareOp::ALL {
            rows.push(comparison(op.symbol(), op, pair));
        }
        rows.push(comparison("!=", CompareOp::Ne, pair));
    }
    for (pair, has_inequality) in WITHOUT_ORDER {
        rows.push(comparison("=", CompareOp::Eq, pair));
        if has_inequality {
            rows.push(comparison("<>", CompareOp::Ne, pair));
            rows.push(comparison("!=", CompareOp::Ne, pair));
        }
    }
    // Byte by byte, like all text comparisons here.
    for pair in [&[Text, Text], &[Char, Char]] {
        rows.push(comparison("~<~", CompareOp::Lt, pair));
        rows.push(comparison("~<=~", CompareOp::Le, pair));
        rows.push(comparison("~>~", CompareOp::Gt, pair));
        rows.push(comparison("~>=~", CompareOp::Ge, pair));
    }
    rows
}

fn comparison(symbol: &'static str, op: CompareOp, pair: &'static [DataType; 2]) -> FunctionRow {
    let implementation: Implementation = match op {
        CompareOp::Eq => |a, c| relation(CompareOp::Eq, a, c),
        CompareOp::Ne => |a, c| relation(CompareOp::Ne, a, c),
        CompareOp::Lt => |a, c| relation(CompareOp::Lt, a, c),
        CompareOp::Le => |a, c| relation(CompareOp::Le, a, c),
        CompareOp::Gt => |a, c| relation(CompareOp::Gt, a, c),
        CompareOp::Ge => |a, c| relation(CompareOp::Ge, a, c),
    };
    let typed: TypedImplementation = match op {
        CompareOp::Eq => |a, of, c| typed_relation(CompareOp::Eq, a, of, c),
        CompareOp::Ne => |a, of, c| typed_relation(CompareOp::Ne, a, of, c),
        CompareOp::Lt => |a, of, c| typed_relation(CompareOp::Lt, a, of, c),
        CompareOp::Le => |a, of, c| typed_relation(CompareOp::Le, a, of, c),
        CompareOp::Gt => |a, of, c| typed_relation(CompareOp::Gt, a, of, c),
        CompareOp::Ge => |a, of, c| typed_relation(CompareOp::Ge, a, of, c),
    };
    let meets_time_zone = pair[0] != pair[1] && pair.contains(&Timestamptz);
    let base = match pair[0] {
        Char | AnyArray => typed_row(symbol, pair, Bool, typed),
        _ => row(symbol, pair, Bool, implementation),
    };
    let volatility = if meets_time_zone { Volatility::Stable } else { Volatility::Immutable };
    FunctionRow { volatility, ..base.shaped(KernelKind::Compare(op)) }
}

fn relation(op: CompareOp, arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let ordering = compare_across(&arguments[0], &arguments[1], context)?;
    Ok(Datum::Bool(op.accepts(ordering)))
}

fn typed_relation(
    op: CompareOp,
    arguments: &[Datum],
    of: &DataType,
    context: &EvalContext,
) -> Result<Datum> {
    let ordering = match (&arguments[0], &arguments[1]) {
        (Datum::Nested(Nested::Array(left)), Datum::Nested(Nested::Array(right))) => {
            let element = of.element().unwrap_or(&DataType::Unknown);
            left.compare_at(right, element, &mut context.pace())?
        }
        (left, right) => left.compare_typed(right, of),
    };
    Ok(Datum::Bool(op.accepts(ordering)))
}

/// Compares two values of one of [`PAIRS`].
pub(super) fn compare_across(
    left: &Datum,
    right: &Datum,
    context: &EvalContext,
) -> Result<Ordering> {
    if let (Some(left), Some(right)) = (integer(left), integer(right)) {
        return Ok(left.cmp(&right));
    }
    if let (Some(left), Some(right)) = (float(left), float(right)) {
        return Ok(compare_floats(left, right));
    }
    Ok(match (left, right) {
        (Datum::Date(date), Datum::Timestamp(at)) => midnight(*date).cmp(at),
        (Datum::Timestamp(at), Datum::Date(date)) => at.cmp(&midnight(*date)),
        (Datum::Timestamptz(at), Datum::Date(_) | Datum::Timestamp(_)) => {
            at.cmp(&zoned(right, context))
        }
        (Datum::Date(_) | Datum::Timestamp(_), Datum::Timestamptz(at)) => {
            zoned(left, context).cmp(at)
        }
        (Datum::Nested(Nested::Jsonb(left)), Datum::Nested(Nested::Jsonb(right))) => {
            left.compare_at(right, &mut context.pace())?
        }
        _ => left.compare(right),
    })
}

fn integer(datum: &Datum) -> Option<i64> {
    match datum {
        Datum::Int2(value) => Some(i64::from(*value)),
        Datum::Int4(value) => Some(i64::from(*value)),
        Datum::Int8(value) => Some(*value),
        _ => None,
    }
}

fn float(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Float4(value) => Some(f64::from(*value)),
        Datum::Float8(value) => Some(*value),
        _ => None,
    }
}

/// Returns midnight of a date as a timestamp for comparisons. Dates beyond the range of
/// timestamps are between the last timestamp and infinity.
pub(crate) fn midnight(date: i32) -> i64 {
    match date {
        DATE_NEGATIVE_INFINITY => i64::MIN,
        DATE_INFINITY => i64::MAX,
        days => i64::from(days).saturating_mul(MICROS_PER_DAY).clamp(i64::MIN + 1, i64::MAX - 1),
    }
}

/// Returns the instant of a date's midnight or a timestamp in the session's zone. Values beyond
/// the range of timestamps remain beyond it.
fn zoned(local: &Datum, context: &EvalContext) -> i64 {
    let at = match local {
        Datum::Date(date) => midnight(*date),
        Datum::Timestamp(at) => *at,
        other => unreachable!("only dates and timestamps are local, not {other:?}"),
    };
    if at <= i64::MIN + 1 || at >= i64::MAX - 1 {
        return at;
    }
    let outside = if at < 0 { i64::MIN + 1 } else { i64::MAX - 1 };
    datetime::local_to_timestamptz(at, &context.style.time_zone).unwrap_or(outside)
}
