//! Mathematical functions on double precision and numeric.

use super::argument::{array, float8, int4, int8, numeric, text_datum};
use super::arithmetic::{int4_range, int8_range, overflow, underflow};
use super::{FunctionRow, row, typed_row};
use crate::context::EvalContext;
use crate::datatype::DataType::{
    self, Compatible, CompatibleArray, Float8, Int4, Int8, Numeric, Void,
};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::numeric as decimal;
use crate::text;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("ceil", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).ceil()))),
    row("ceil", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).ceil()))),
    row("ceiling", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).ceil()))),
    row("ceiling", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).ceil()))),
    row("floor", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).floor()))),
    row("floor", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).floor()))),
    row("round", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).round_ties_even()))),
    row("round", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).round(0)))),
    row("round", &[Numeric, Int4], Numeric, |a, _| {
        numeric(&a[0]).checked_round(int4(&a[1])).map(Datum::Numeric)
    }),
    row("trunc", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).trunc()))),
    row("trunc", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).trunc(0)))),
    row("trunc", &[Numeric, Int4], Numeric, |a, _| {
        Ok(Datum::Numeric(numeric(&a[0]).trunc(int4(&a[1]))))
    }),
    row("sign", &[Float8], Float8, sign_double),
    row("sign", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).signum()))),
    row("sqrt", &[Float8], Float8, square_root),
    row("sqrt", &[Numeric], Numeric, |a, c| numeric(&a[0]).sqrt(&mut c.pace()).map(Datum::Numeric)),
    row("|/", &[Float8], Float8, square_root),
    row("cbrt", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).cbrt()))),
    row("||/", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).cbrt()))),
    row("exp", &[Float8], Float8, exponential),
    row("exp", &[Numeric], Numeric, |a, c| numeric(&a[0]).exp(&mut c.pace()).map(Datum::Numeric)),
    row("ln", &[Float8], Float8, |a, _| logarithm(float8(&a[0]), f64::ln)),
    row("ln", &[Numeric], Numeric, |a, c| numeric(&a[0]).ln(&mut c.pace()).map(Datum::Numeric)),
    row("log", &[Float8], Float8, |a, _| logarithm(float8(&a[0]), f64::log10)),
    row("log", &[Numeric], Numeric, |a, c| numeric(&a[0]).log10(&mut c.pace()).map(Datum::Numeric)),
    row("log", &[Numeric, Numeric], Numeric, |a, c| {
        numeric(&a[1]).log(numeric(&a[0]), &mut c.pace()).map(Datum::Numeric)
    }),
    row("numeric_log", &[Numeric, Numeric], Numeric, |a, c| {
        numeric(&a[1]).log(numeric(&a[0]), &mut c.pace()).map(Datum::Numeric)
    }),
    row("log10", &[Float8], Float8, |a, _| logarithm(float8(&a[0]), f64::log10)),
    row("log10", &[Numeric], Numeric, |a, c| {
        numeric(&a[0]).log10(&mut c.pace()).map(Datum::Numeric)
    }),
    row("power", &[Float8, Float8], Float8, power),
    row("power", &[Numeric, Numeric], Numeric, power_numeric),
    row("pow", &[Float8, Float8], Float8, power),
    row("pow", &[Numeric, Numeric], Numeric, power_numeric),
    row("^", &[Float8, Float8], Float8, power),
    row("^", &[Numeric, Numeric], Numeric, power_numeric),
    row("pi", &[], Float8, |_, _| Ok(Datum::Float8(std::f64::consts::PI))),
    row("random", &[], Float8, |_, c| Ok(Datum::Float8(c.random.next()))).volatile(),
    row("setseed", &[Float8], Void, set_seed).volatile(),
    row("div", &[Numeric, Numeric], Numeric, |a, c| {
        numeric(&a[0]).checked_div_trunc(numeric(&a[1]), &mut c.pace()).map(Datum::Numeric)
    }),
    row("gcd", &[Int4, Int4], Int4, |a, _| {
        let divisor = gcd(int4(&a[0]).into(), int4(&a[1]).into());
        i32::try_from(divisor).map(Datum::Int4).map_err(|_| int4_range())
    }),
    row("gcd", &[Int8, Int8], Int8, |a, _| {
        let divisor = gcd(int8(&a[0]).into(), int8(&a[1]).into());
        i64::try_from(divisor).map(Datum::Int8).map_err(|_| int8_range())
    }),
    row("lcm", &[Int4, Int4], Int4, |a, _| {
        let multiple = lcm(int4(&a[0]).into(), int4(&a[1]).into());
        i32::try_from(multiple).map(Datum::Int4).map_err(|_| int4_range())
    }),
    row("lcm", &[Int8, Int8], Int8, |a, _| {
        let multiple = lcm(int8(&a[0]).into(), int8(&a[1]).into());
        i64::try_from(multiple).map(Datum::Int8).map_err(|_| int8_range())
    }),
    row("scale", &[Numeric], Int4, |a, _| Ok(finite_scale(a, decimal::Numeric::scale))),
    row("min_scale", &[Numeric], Int4, |a, _| Ok(finite_scale(a, decimal::Numeric::min_scale))),
    row("trim_scale", &[Numeric], Numeric, |a, _| {
        let value = numeric(&a[0]);
        Ok(Datum::Numeric(value.with_scale(value.min_scale())))
    }),
    row("gcd", &[Numeric, Numeric], Numeric, |a, c| {
        numeric_gcd(numeric(&a[0]), numeric(&a[1]), &mut c.pace()).map(Datum::Numeric)
    }),
    row("lcm", &[Numeric, Numeric], Numeric, |a, c| {
        numeric_lcm(numeric(&a[0]), numeric(&a[1]), &mut c.pace()).map(Datum::Numeric)
    }),
    row("factorial", &[Int8], Numeric, |a, c| {
        factorial(int8(&a[0]), &mut c.pace()).map(Datum::Numeric)
    }),
    row("width_bucket", &[Float8, Float8, Float8, Int4], Int4, width_bucket),
    typed_row("width_bucket", &[Compatible, CompatibleArray], Int4, bucket_of),
    row("width_bucket", &[Numeric, Numeric, Numeric, Int4], Int4, width_bucket_numeric),
];

/// Returns a number of digits; NULL for infinities and NaN.
fn finite_scale(arguments: &[Datum], scale: fn(&decimal::Numeric) -> u32) -> Datum {
    match numeric(&arguments[0]) {
        value if value.is_finite() => Datum::Int4(scale(value).cast_signed()),
        _ => Datum::Null,
    }
}

fn sign_double(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let value = float8(&arguments[0]);
    let sign = if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    };
    Ok(Datum::Float8(sign))
}

fn square_root(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let value = float8(&arguments[0]);
    if value < 0.0 {
        bail!(INVALID_ARGUMENT_FOR_POWER_FUNCTION: "cannot take square root of a negative number");
    }
    Ok(Datum::Float8(value.sqrt()))
}

fn exponential(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let value = float8(&arguments[0]);
    let result = value.exp();
    if result.is_infinite() && value.is_finite() {
        return Err(overflow());
    }
    if result == 0.0 && value.is_finite() {
        return Err(underflow());
    }
    Ok(Datum::Float8(result))
}

fn logarithm(value: f64, compute: fn(f64) -> f64) -> Result<Datum> {
    if value == 0.0 {
        bail!(INVALID_ARGUMENT_FOR_LOGARITHM: "cannot take logarithm of zero");
    }
    if value < 0.0 {
        bail!(INVALID_ARGUMENT_FOR_LOGARITHM: "cannot take logarithm of a negative number");
    }
    Ok(Datum::Float8(compute(value)))
}

fn power(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (base, exponent) = (float8(&arguments[0]), float8(&arguments[1]));
    if base == 0.0 && exponent < 0.0 {
        bail!(INVALID_ARGUMENT_FOR_POWER_FUNCTION: "zero raised to a negative power is undefined");
    }
    if base < 0.0 && exponent.is_finite() && exponent.floor() != exponent {
        bail!(INVALID_ARGUMENT_FOR_POWER_FUNCTION: "a negative number raised to a non-integer power yields a complex result");
    }
    let result = base.powf(exponent);
    if result.is_infinite() && base.is_finite() && exponent.is_finite() {
        return Err(overflow());
    }
    if result == 0.0 && base != 0.0 && base.is_finite() && exponent.is_finite() {
        return Err(underflow());
    }
    Ok(Datum::Float8(result))
}

fn power_numeric(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    numeric(&arguments[0]).pow(numeric(&arguments[1]), &mut context.pace()).map(Datum::Numeric)
}

fn gcd(left: i128, right: i128) -> i128 {
    let (mut a, mut b) = (left.abs(), right.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm(left: i128, right: i128) -> i128 {
    if left == 0 || right == 0 {
        return 0;
    }
    (left / gcd(left, right) * right).abs()
}

/// Returns the greatest common divisor, with the larger of the two scales.
fn numeric_gcd(
    left: &decimal::Numeric,
    right: &decimal::Numeric,
    pace: &mut InterruptPacer<'_>,
) -> Result<decimal::Numeric> {
    let scale = left.scale().max(right.scale());
    let (mut a, mut b) = (left.abs(), right.abs());
    while !b.is_zero() && a.is_finite() && b.is_finite() {
        (a, b) = (b.clone(), a.checked_rem(&b, pace)?);
    }
    if !a.is_finite() || !b.is_finite() {
        return Ok(decimal::Numeric::NAN);
    }
    Ok(a.with_scale(scale))
}

fn numeric_lcm(
    left: &decimal::Numeric,
    right: &decimal::Numeric,
    pace: &mut InterruptPacer<'_>,
) -> Result<decimal::Numeric> {
    let scale = left.scale().max(right.scale());
    if !left.is_finite() || !right.is_finite() {
        return Ok(decimal::Numeric::NAN);
    }
    if left.is_zero() || right.is_zero() {
        return Ok(decimal::Numeric::ZERO.with_scale(scale));
    }
    let shares = left.checked_div_trunc(&numeric_gcd(left, right, pace)?, pace)?;
    Ok(shares.checked_mul(right, pace)?.abs().with_scale(scale))
}

/// Computes `n!`. The maximum n that fits a numeric is 32177.
fn factorial(n: i64, pace: &mut InterruptPacer<'_>) -> Result<decimal::Numeric> {
    let out_of_range = |message: &str| err!(NUMERIC_VALUE_OUT_OF_RANGE: message);
    if n < 0 {
        return Err(out_of_range("factorial of a negative number is undefined"));
    }
    if n > 32_177 {
        return Err(out_of_range("value overflows numeric format"));
    }
    let one = decimal::Numeric::ONE;
    (2..=n).try_fold(one, |product, factor| {
        product.checked_mul(&decimal::Numeric::from_i128(factor.into()), pace)
    })
}

fn width_bucket_numeric(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (operand, low) = (numeric(&arguments[0]), numeric(&arguments[1]));
    let (high, count) = (numeric(&arguments[2]), int4(&arguments[3]));
    check_buckets(
        count,
        operand.is_nan() || low.is_nan() || high.is_nan(),
        low.is_infinite() || high.is_infinite(),
        low == high,
    )?;
    let (below, beyond) = if low < high {
        (operand < low, operand >= high)
    } else {
        (operand > low, operand <= high)
    };
    if below {
        return Ok(Datum::Int4(0));
    }
    if beyond {
        return count.checked_add(1).map(Datum::Int4).ok_or_else(int4_range);
    }
    let pace = &mut context.pace();
    let (distance, width) = (operand.checked_sub(low)?, high.checked_sub(low)?);
    let scaled = distance.checked_mul(&decimal::Numeric::from_i128(count.into()), pace)?;
    let bucket = scaled.checked_div_trunc(&width, pace)?.to_i64().unwrap_or(0) as i32;
    Ok(Datum::Int4(bucket.min(count - 1) + 1))
}

/// Returns the number of ascending thresholds that a value has reached.
fn bucket_of(arguments: &[Datum], of: &DataType, context: &EvalContext) -> Result<Datum> {
    let thresholds = array(&arguments[1]);
    if thresholds.dimensions.len() > 1 {
        bail!(ARRAY_SUBSCRIPT_ERROR: "thresholds must be one-dimensional array");
    }
    let mut pace = context.pace();
    for threshold in &thresholds.elements {
        if threshold.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED: "thresholds array must not contain NULLs");
        }
        pace.count_steps(1)?;
    }
    let reached = |one: &Datum| arguments[0].compare_typed(one, of).is_ge();
    let bucket = thresholds.elements.partition_point(reached);
    i32::try_from(bucket).map(Datum::Int4).map_err(|_| int4_range())
}

fn check_buckets(count: i32, any_nan: bool, unbounded: bool, empty: bool) -> Result<()> {
    let message = if count <= 0 {
        "count must be greater than zero"
    } else if any_nan {
        "operand, lower bound, and upper bound cannot be NaN"
    } else if unbounded {
        "lower and upper bounds must be finite"
    } else if empty {
        "lower bound cannot equal upper bound"
    } else {
        return Ok(());
    };
    bail!(INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION: message)
}

fn width_bucket(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (operand, low) = (float8(&arguments[0]), float8(&arguments[1]));
    let (high, count) = (float8(&arguments[2]), int4(&arguments[3]));
    check_buckets(
        count,
        operand.is_nan() || low.is_nan() || high.is_nan(),
        low.is_infinite() || high.is_infinite(),
        low == high,
    )?;
    let (below, beyond) = if low < high {
        (operand < low, operand >= high)
    } else {
        (operand > low, operand <= high)
    };
    if below {
        return Ok(Datum::Int4(0));
    }
    if beyond {
        return count.checked_add(1).map(Datum::Int4).ok_or_else(int4_range);
    }
    // In PostgreSQL's order of operations, so that rounding agrees.
    let bucket = f64::from(count) * (operand - low) / (high - low) + 1.0;
    Ok(Datum::Int4(bucket as i32))
}

fn set_seed(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let seed = float8(&arguments[0]);
    if !(-1.0..=1.0).contains(&seed) {
        let seed = text::general(seed);
        bail!(INVALID_PARAMETER_VALUE: "setseed parameter {seed} is out of allowed range [-1,1]");
    }
    context.random.seed(seed);
    Ok(text_datum(""))
}
