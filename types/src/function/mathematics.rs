//! Mathematical functions on double precision and numeric.


use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Float8, Int4, Int8, Numeric};
use crate::datum::Datum;
use crate::error::Result;

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("ceil", &[Float8], Float8, pending),
    row("ceil", &[Numeric], Numeric, pending),
    row("ceiling", &[Float8], Float8, pending),
    row("ceiling", &[Numeric], Numeric, pending),
    row("floor", &[Float8], Float8, pending),
    row("floor", &[Numeric], Numeric, pending),
    row("round", &[Float8], Float8, pending),
    row("round", &[Numeric], Numeric, pending),
    row("round", &[Numeric, Int4], Numeric, pending),
    row("trunc", &[Float8], Float8, pending),
    row("trunc", &[Numeric], Numeric, pending),
    row("trunc", &[Numeric, Int4], Numeric, pending),
    row("sign", &[Float8], Float8, pending),
    row("sign", &[Numeric], Numeric, pending),
    row("sqrt", &[Float8], Float8, pending),
    row("sqrt", &[Numeric], Numeric, pending),
    row("|/", &[Float8], Float8, pending),
    row("cbrt", &[Float8], Float8, pending),
    row("||/", &[Float8], Float8, pending),
    row("exp", &[Float8], Float8, pending),
    row("exp", &[Numeric], Numeric, pending),
    row("ln", &[Float8], Float8, pending),
    row("ln", &[Numeric], Numeric, pending),
    row("log", &[Float8], Float8, pending),
    row("log", &[Numeric], Numeric, pending),
    row("log", &[Numeric, Numeric], Numeric, pending),
    row("log10", &[Float8], Float8, pending),
    row("log10", &[Numeric], Numeric, pending),
    row("power", &[Float8, Float8], Float8, pending),
    row("power", &[Numeric, Numeric], Numeric, pending),
    row("pow", &[Float8, Float8], Float8, pending),
    row("pow", &[Numeric, Numeric], Numeric, pending),
    row("^", &[Float8, Float8], Float8, pending),
    row("^", &[Numeric, Numeric], Numeric, pending),
    row("pi", &[], Float8, pending),
    row("random", &[], Float8, pending).volatile(),
    row("degrees", &[Float8], Float8, pending),
    row("radians", &[Float8], Float8, pending),
    row("sin", &[Float8], Float8, pending),
    row("cos", &[Float8], Float8, pending),
    row("tan", &[Float8], Float8, pending),
    row("cot", &[Float8], Float8, pending),
    row("asin", &[Float8], Float8, pending),
    row("acos", &[Float8], Float8, pending),
    row("atan", &[Float8], Float8, pending),
    row("atan2", &[Float8, Float8], Float8, pending),
    row("sinh", &[Float8], Float8, pending),
    row("cosh", &[Float8], Float8, pending),
    row("tanh", &[Float8], Float8, pending),
    row("div", &[Numeric, Numeric], Numeric, pending),
    row("gcd", &[Int4, Int4], Int4, pending),
    row("gcd", &[Int8, Int8], Int8, pending),
    row("lcm", &[Int4, Int4], Int4, pending),
    row("lcm", &[Int8, Int8], Int8, pending),
    row("width_bucket", &[Float8, Float8, Float8, Int4], Int4, pending),
];

fn pending(_: &[Datum], _: &EvalContext) -> Result<Datum> {
    todo!("types/function")
}
