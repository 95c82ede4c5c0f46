//! Arithmetic on numbers: `+ - * / %`, signs, `abs` and `@`.
//!
//! Integer overflow is an error. Floats that become infinite, or zero by rounding, are errors,
//! too, as in PostgreSQL.

use super::argument::{float4, float8, int2, int4, int8, numeric};
use super::{FunctionRow, KernelKind, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, Float4, Float8, Int2, Int4, Int8, Numeric};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;

/// An arithmetic operator on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArithmeticOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`, `mod`
    Remainder,
}

/// The operators on pairs of integers and pairs of floats, with the type of the result.
const PAIRS: &[([DataType; 2], DataType)] = &[
    ([Int2, Int2], Int2),
    ([Int4, Int4], Int4),
    ([Int8, Int8], Int8),
    ([Int2, Int4], Int4),
    ([Int4, Int2], Int4),
    ([Int2, Int8], Int8),
    ([Int8, Int2], Int8),
    ([Int4, Int8], Int8),
    ([Int8, Int4], Int8),
    ([Float4, Float4], Float4),
    ([Float8, Float8], Float8),
    ([Float4, Float8], Float8),
    ([Float8, Float4], Float8),
    ([Numeric, Numeric], Numeric),
];

/// Returns the function table of this family.
pub(super) fn functions() -> Vec<FunctionRow> {
    let mut rows = Vec::new();
    for (pair, result) in PAIRS {
        rows.push(operator("+", ArithmeticOp::Add, pair, result));
        rows.push(operator("-", ArithmeticOp::Subtract, pair, result));
        rows.push(operator("*", ArithmeticOp::Multiply, pair, result));
        rows.push(operator("/", ArithmeticOp::Divide, pair, result));
        if pair[0] == pair[1] && !matches!(result, Float4 | Float8) {
            rows.push(operator("%", ArithmeticOp::Remainder, pair, result));
            rows.push(operator("mod", ArithmeticOp::Remainder, pair, result));
        }
    }
    rows.extend_from_slice(UNARY);
    rows
}

fn operator(
    symbol: &'static str,
    op: ArithmeticOp,
    pair: &'static [DataType; 2],
    result: &DataType,
) -> FunctionRow {
    let implementation = match op {
        ArithmeticOp::Add => |a: &[Datum], c: &EvalContext| compute(ArithmeticOp::Add, a, c),
        ArithmeticOp::Subtract => {
            |a: &[Datum], c: &EvalContext| compute(ArithmeticOp::Subtract, a, c)
        }
        ArithmeticOp::Multiply => {
            |a: &[Datum], c: &EvalContext| compute(ArithmeticOp::Multiply, a, c)
        }
        ArithmeticOp::Divide => |a: &[Datum], c: &EvalContext| compute(ArithmeticOp::Divide, a, c),
        ArithmeticOp::Remainder => {
            |a: &[Datum], c: &EvalContext| compute(ArithmeticOp::Remainder, a, c)
        }
    };
    row(symbol, pair, result.clone(), implementation).shaped(KernelKind::Arithmetic(op))
}

const UNARY: &[FunctionRow] = &[
    row("-", &[Int2], Int2, |a, _| {
        int2(&a[0]).checked_neg().map(Datum::Int2).ok_or_else(int2_range)
    }),
    row("-", &[Int4], Int4, |a, _| {
        int4(&a[0]).checked_neg().map(Datum::Int4).ok_or_else(int4_range)
    }),
    row("-", &[Int8], Int8, |a, _| {
        int8(&a[0]).checked_neg().map(Datum::Int8).ok_or_else(int8_range)
    }),
    row("-", &[Float4], Float4, |a, _| Ok(Datum::Float4(-float4(&a[0])))),
    row("-", &[Float8], Float8, |a, _| Ok(Datum::Float8(-float8(&a[0])))),
    row("-", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).neg()))),
    row("+", &[Int2], Int2, same),
    row("+", &[Int4], Int4, same),
    row("+", &[Int8], Int8, same),
    row("+", &[Float4], Float4, same),
    row("+", &[Float8], Float8, same),
    row("+", &[Numeric], Numeric, same),
    row("abs", &[Int2], Int2, absolute),
    row("abs", &[Int4], Int4, absolute),
    row("abs", &[Int8], Int8, absolute),
    row("abs", &[Float4], Float4, absolute),
    row("abs", &[Float8], Float8, absolute),
    row("abs", &[Numeric], Numeric, absolute),
    row("@", &[Int2], Int2, absolute),
    row("@", &[Int4], Int4, absolute),
    row("@", &[Int8], Int8, absolute),
    row("@", &[Float4], Float4, absolute),
    row("@", &[Float8], Float8, absolute),
    row("@", &[Numeric], Numeric, absolute),
];

fn same(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    Ok(arguments[0].clone())
}

fn absolute(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    match &arguments[0] {
        Datum::Int2(value) => value.checked_abs().map(Datum::Int2).ok_or_else(int2_range),
        Datum::Int4(value) => value.checked_abs().map(Datum::Int4).ok_or_else(int4_range),
        Datum::Int8(value) => value.checked_abs().map(Datum::Int8).ok_or_else(int8_range),
        Datum::Float4(value) => Ok(Datum::Float4(value.abs())),
        Datum::Float8(value) => Ok(Datum::Float8(value.abs())),
        other => Ok(Datum::Numeric(numeric(other).abs())),
    }
}

/// Computes an operator on one of [`PAIRS`].
fn compute(op: ArithmeticOp, arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    match (&arguments[0], &arguments[1]) {
        (Datum::Int2(left), Datum::Int2(right)) => {
            let wide = integer(op, i64::from(*left), i64::from(*right))?;
            i16::try_from(wide).map(Datum::Int2).map_err(|_| int2_range())
        }
        (Datum::Int4(left), Datum::Int4(right)) => medium(op, *left, *right),
        (Datum::Int2(left), Datum::Int4(right)) => medium(op, i32::from(*left), *right),
        (Datum::Int4(left), Datum::Int2(right)) => medium(op, *left, i32::from(*right)),
        (Datum::Int8(left), Datum::Int8(right)) => integer(op, *left, *right).map(Datum::Int8),
        (Datum::Int8(left), Datum::Int4(right)) => {
            integer(op, *left, i64::from(*right)).map(Datum::Int8)
        }
        (Datum::Int4(left), Datum::Int8(right)) => {
            integer(op, i64::from(*left), *right).map(Datum::Int8)
        }
        (Datum::Int8(left), Datum::Int2(right)) => {
            integer(op, *left, i64::from(*right)).map(Datum::Int8)
        }
        (Datum::Int2(left), Datum::Int8(right)) => {
            integer(op, i64::from(*left), *right).map(Datum::Int8)
        }
        (Datum::Float4(left), Datum::Float4(right)) => single(op, *left, *right).map(Datum::Float4),
        (Datum::Float8(left), Datum::Float8(right)) => double(op, *left, *right).map(Datum::Float8),
        (Datum::Float4(left), right) => {
            double(op, f64::from(*left), float8(right)).map(Datum::Float8)
        }
        (Datum::Float8(left), right) => {
            double(op, *left, f64::from(float4(right))).map(Datum::Float8)
        }
        (left, right) => {
            let pace = &mut context.pace();
            decimal(op, numeric(left), numeric(right), pace).map(Datum::Numeric)
        }
    }
}

fn medium(op: ArithmeticOp, left: i32, right: i32) -> Result<Datum> {
    let wide = integer(op, i64::from(left), i64::from(right))?;
    i32::try_from(wide).map(Datum::Int4).map_err(|_| int4_range())
}

/// Computes on bigints; results of narrower integers are then range-checked.
pub(super) fn integer(op: ArithmeticOp, left: i64, right: i64) -> Result<i64> {
    match op {
        ArithmeticOp::Add => left.checked_add(right).ok_or_else(int8_range),
        ArithmeticOp::Subtract => left.checked_sub(right).ok_or_else(int8_range),
        ArithmeticOp::Multiply => left.checked_mul(right).ok_or_else(int8_range),
        ArithmeticOp::Divide if right == 0 => Err(division_by_zero()),
        ArithmeticOp::Divide => left.checked_div(right).ok_or_else(int8_range),
        ArithmeticOp::Remainder if right == 0 => Err(division_by_zero()),
        ArithmeticOp::Remainder => Ok(left.wrapping_rem(right)),
    }
}

fn decimal(
    op: ArithmeticOp,
    left: &crate::numeric::Numeric,
    right: &crate::numeric::Numeric,
    pace: &mut InterruptPacer<'_>,
) -> Result<crate::numeric::Numeric> {
    match op {
        ArithmeticOp::Add => left.checked_add(right),
        ArithmeticOp::Subtract => left.checked_sub(right),
        ArithmeticOp::Multiply => left.checked_mul(right, pace),
        ArithmeticOp::Divide => left.checked_div(right, pace),
        ArithmeticOp::Remainder => left.checked_rem(right, pace),
    }
}

/// Computes on double precision, with PostgreSQL's checks.
pub(super) fn double(op: ArithmeticOp, left: f64, right: f64) -> Result<f64> {
    let result = match op {
        ArithmeticOp::Add => left + right,
        ArithmeticOp::Subtract => left - right,
        ArithmeticOp::Multiply => left * right,
        ArithmeticOp::Divide if right == 0.0 && !left.is_nan() => return Err(division_by_zero()),
        ArithmeticOp::Divide => left / right,
        ArithmeticOp::Remainder => left % right,
    };
    if result.is_infinite() && !left.is_infinite() && !right.is_infinite() {
        return Err(overflow());
    }
    if result == 0.0 && underflows(op, left != 0.0, right != 0.0 && right.is_finite()) {
        return Err(underflow());
    }
    Ok(result)
}

/// Computes on reals, with PostgreSQL's checks.
fn single(op: ArithmeticOp, left: f32, right: f32) -> Result<f32> {
    let result = match op {
        ArithmeticOp::Add => left + right,
        ArithmeticOp::Subtract => left - right,
        ArithmeticOp::Multiply => left * right,
        ArithmeticOp::Divide if right == 0.0 && !left.is_nan() => return Err(division_by_zero()),
        ArithmeticOp::Divide => left / right,
        ArithmeticOp::Remainder => left % right,
    };
    if result.is_infinite() && !left.is_infinite() && !right.is_infinite() {
        return Err(overflow());
    }
    if result == 0.0 && underflows(op, left != 0.0, right != 0.0 && right.is_finite()) {
        return Err(underflow());
    }
    Ok(result)
}

/// Returns whether a zero result of these operands is an underflow.
fn underflows(op: ArithmeticOp, left_counts: bool, right_counts: bool) -> bool {
    matches!(op, ArithmeticOp::Multiply | ArithmeticOp::Divide) && left_counts && right_counts
}

/// `smallint out of range`
#[cold]
pub(super) fn int2_range() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "smallint out of range")
}

/// `integer out of range`
#[cold]
pub(super) fn int4_range() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "integer out of range")
}

/// `bigint out of range`
#[cold]
pub(super) fn int8_range() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "bigint out of range")
}

/// `division by zero`
#[cold]
pub(super) fn division_by_zero() -> Error {
    err!(DIVISION_BY_ZERO: "division by zero")
}

/// `value out of range: overflow`
#[cold]
pub(super) fn overflow() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "value out of range: overflow")
}

/// `value out of range: underflow`
#[cold]
pub(super) fn underflow() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "value out of range: underflow")
}
