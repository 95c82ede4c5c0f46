//! `greatest` and `least`, `num_nulls` and `num_nonnulls`.
//!
//! `greatest` and `least` have one overload for each ordered type. NULLs are skipped; the result
//! is NULL only if all arguments are.

use std::cmp::Ordering;

use super::{FunctionRow, row, typed_row};
use crate::context::EvalContext;
use crate::datatype::DataType::{
    self, AnyArray, AnyEnum, Bit, Bool, Bytea, Char, Date, Float4, Float8, Int2, Int4, Int8,
    InternalChar, Interval, Jsonb, Name, Numeric, Oid, Text, Time, Timestamp, Timestamptz, Timetz,
    Uuid, Varbit, Varchar,
};
use crate::datum::Datum;
use crate::error::Result;

/// The first argument is required; more may follow.
const PAIRS: &[[DataType; 2]] = &[
    [Bool, Bool],
    [Int2, Int2],
    [Int4, Int4],
    [Int8, Int8],
    [Float4, Float4],
    [Float8, Float8],
    [Numeric, Numeric],
    [Text, Text],
    [Varchar, Varchar],
    [Char, Char],
    [Name, Name],
    [Bytea, Bytea],
    [Date, Date],
    [Time, Time],
    [Timetz, Timetz],
    [InternalChar, InternalChar],
    [Bit, Bit],
    [Varbit, Varbit],
    [Timestamp, Timestamp],
    [Timestamptz, Timestamptz],
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

/// Returns the function table of this family.
pub(super) fn functions() -> Vec<FunctionRow> {
    let overload = |pair: &'static [DataType; 2]| {
        [
            typed_row("greatest", pair, pair[0].clone(), greatest).variadic().takes_null(),
            typed_row("least", pair, pair[0].clone(), least).variadic().takes_null(),
        ]
    };
    let mut rows: Vec<FunctionRow> = PAIRS.iter().flat_map(overload).collect();
    // The binder passes for each argument whether it is NULL.
    rows.push(row("num_nulls", &[Bool, Bool], Int4, |a, _| Ok(count(a, true))).variadic());
    rows.push(row("num_nonnulls", &[Bool, Bool], Int4, |a, _| Ok(count(a, false))).variadic());
    rows
}

fn count(arguments: &[Datum], wanted: bool) -> Datum {
    let found = arguments.iter().filter(|argument| argument.as_bool() == Some(wanted)).count();
    Datum::Int4(i32::try_from(found).unwrap_or(i32::MAX))
}

fn greatest(arguments: &[Datum], of: &DataType, _: &EvalContext) -> Result<Datum> {
    Ok(extreme(arguments, of, Ordering::Greater))
}

fn least(arguments: &[Datum], of: &DataType, _: &EvalContext) -> Result<Datum> {
    Ok(extreme(arguments, of, Ordering::Less))
}

/// Returns the first argument such that no other has the ordering `wanted` to it.
fn extreme(arguments: &[Datum], of: &DataType, wanted: Ordering) -> Datum {
    let mut best = &Datum::Null;
    for argument in arguments.iter().filter(|argument| !matches!(argument, Datum::Null)) {
        if matches!(best, Datum::Null) || argument.compare_typed(best, of) == wanted {
            best = argument;
        }
    }
    best.clone()
}
