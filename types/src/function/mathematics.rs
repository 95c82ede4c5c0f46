//! Mathematical functions on double precision and numeric.

use std::cell::Cell;

use super::argument::{float8, int4, int8, numeric};
use super::arithmetic::{int4_range, int8_range, overflow, underflow};
use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Float8, Int4, Int8, Numeric};
use crate::datum::Datum;
use crate::error::{Error, Result, sqlstate};

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("ceil", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).ceil()))),
    row("ceil", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).ceil()))),
    row("ceiling", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).ceil()))),
    row("ceiling", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).ceil()))),
    row("floor", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).floor()))),
    row("floor", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).floor()))),
    row("round", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).round_ties_even()))),
    row("round", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).round(0)))),
    row("round", &[Numeric, Int4], Numeric, |a, _| {
        Ok(Datum::Numeric(numeric(&a[0]).round(int4(&a[1]))))
    }),
    row("trunc", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).trunc()))),
    row("trunc", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).trunc(0)))),
    row("trunc", &[Numeric, Int4], Numeric, |a, _| {
        Ok(Datum::Numeric(numeric(&a[0]).trunc(int4(&a[1]))))
    }),
    row("sign", &[Float8], Float8, sign_double),
    row("sign", &[Numeric], Numeric, |a, _| Ok(Datum::Numeric(numeric(&a[0]).signum()))),
    row("sqrt", &[Float8], Float8, square_root),
    row("sqrt", &[Numeric], Numeric, |a, _| numeric(&a[0]).sqrt().map(Datum::Numeric)),
    row("|/", &[Float8], Float8, square_root),
    row("cbrt", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).cbrt()))),
    row("||/", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).cbrt()))),
    row("exp", &[Float8], Float8, exponential),
    row("exp", &[Numeric], Numeric, |a, _| numeric(&a[0]).exp().map(Datum::Numeric)),
    row("ln", &[Float8], Float8, |a, _| logarithm(float8(&a[0]), f64::ln)),
    row("ln", &[Numeric], Numeric, |a, _| numeric(&a[0]).ln().map(Datum::Numeric)),
    row("log", &[Float8], Float8, |a, _| logarithm(float8(&a[0]), f64::log10)),
    row("log", &[Numeric], Numeric, |a, _| numeric(&a[0]).log10().map(Datum::Numeric)),
    row("log", &[Numeric, Numeric], Numeric, |a, _| {
        numeric(&a[1]).log(numeric(&a[0])).map(Datum::Numeric)
    }),
    row("log10", &[Float8], Float8, |a, _| logarithm(float8(&a[0]), f64::log10)),
    row("log10", &[Numeric], Numeric, |a, _| numeric(&a[0]).log10().map(Datum::Numeric)),
    row("power", &[Float8, Float8], Float8, power),
    row("power", &[Numeric, Numeric], Numeric, power_numeric),
    row("pow", &[Float8, Float8], Float8, power),
    row("pow", &[Numeric, Numeric], Numeric, power_numeric),
    row("^", &[Float8, Float8], Float8, power),
    row("^", &[Numeric, Numeric], Numeric, power_numeric),
    row("pi", &[], Float8, |_, _| Ok(Datum::Float8(std::f64::consts::PI))),
    row("random", &[], Float8, |_, _| Ok(Datum::Float8(random()))).volatile(),
    row("degrees", &[Float8], Float8, |a, _| finite(float8(&a[0]) / RADIANS_PER_DEGREE)),
    row("radians", &[Float8], Float8, |a, _| finite(float8(&a[0]) * RADIANS_PER_DEGREE)),
    row("sin", &[Float8], Float8, |a, _| circular(float8(&a[0]), f64::sin)),
    row("cos", &[Float8], Float8, |a, _| circular(float8(&a[0]), f64::cos)),
    row("tan", &[Float8], Float8, |a, _| circular(float8(&a[0]), f64::tan)),
    row("cot", &[Float8], Float8, |a, _| circular(float8(&a[0]), |x| 1.0 / x.tan())),
    row("asin", &[Float8], Float8, |a, _| inverse(float8(&a[0]), f64::asin)),
    row("acos", &[Float8], Float8, |a, _| inverse(float8(&a[0]), f64::acos)),
    row("atan", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).atan()))),
    row("atan2", &[Float8, Float8], Float8, |a, _| {
        Ok(Datum::Float8(float8(&a[0]).atan2(float8(&a[1]))))
    }),
    row("sinh", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).sinh()))),
    row("cosh", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).cosh()))),
    row("tanh", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).tanh()))),
    row("div", &[Numeric, Numeric], Numeric, |a, _| {
        numeric(&a[0]).checked_div_trunc(numeric(&a[1])).map(Datum::Numeric)
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
    row("scale", &[Numeric], Int4, |a, _| Ok(Datum::Int4(numeric(&a[0]).scale().cast_signed()))),
    row("min_scale", &[Numeric], Int4, |a, _| {
        Ok(Datum::Int4(numeric(&a[0]).min_scale().cast_signed()))
    }),
    row("trim_scale", &[Numeric], Numeric, |a, _| {
        let value = numeric(&a[0]);
        Ok(Datum::Numeric(value.with_scale(value.min_scale())))
    }),
    row("width_bucket", &[Float8, Float8, Float8, Int4], Int4, width_bucket),
];

const RADIANS_PER_DEGREE: f64 = std::f64::consts::PI / 180.0;

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
        return Err(Error::new("2201F", "cannot take square root of a negative number"));
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
        return Err(Error::new("2201E", "cannot take logarithm of zero"));
    }
    if value < 0.0 {
        return Err(Error::new("2201E", "cannot take logarithm of a negative number"));
    }
    Ok(Datum::Float8(compute(value)))
}

fn power(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (base, exponent) = (float8(&arguments[0]), float8(&arguments[1]));
    if base == 0.0 && exponent < 0.0 {
        return Err(Error::new("2201F", "zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.floor() != exponent {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(Error::new("2201F", message));
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

fn power_numeric(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    numeric(&arguments[0]).pow(numeric(&arguments[1])).map(Datum::Numeric)
}

fn finite(value: f64) -> Result<Datum> {
    if value.is_infinite() { Err(overflow()) } else { Ok(Datum::Float8(value)) }
}

fn circular(value: f64, compute: fn(f64) -> f64) -> Result<Datum> {
    if value.is_infinite() {
        return Err(input_out_of_range());
    }
    Ok(Datum::Float8(compute(value)))
}

fn inverse(value: f64, compute: fn(f64) -> f64) -> Result<Datum> {
    if value.abs() > 1.0 {
        return Err(input_out_of_range());
    }
    Ok(Datum::Float8(compute(value)))
}

fn input_out_of_range() -> Error {
    Error::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
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

fn width_bucket(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (operand, low) = (float8(&arguments[0]), float8(&arguments[1]));
    let (high, count) = (float8(&arguments[2]), int4(&arguments[3]));
    let invalid = |message: &str| Err(Error::new("2201G", message));
    if count <= 0 {
        return invalid("count must be greater than zero");
    }
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        return invalid("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return invalid("lower and upper bounds must be finite");
    }
    if low == high {
        return invalid("lower bound cannot equal upper bound");
    }
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
    let share = (operand - low) / (high - low);
    let bucket = (f64::from(count) * share) as i32;
    Ok(Datum::Int4(bucket.min(count - 1) + 1))
}

thread_local! {
    static RANDOM_STATE: Cell<u64> =
        Cell::new(uuid::Uuid::new_v4().as_u64_pair().0 | 1);
}

/// Returns a number in `0.0..1.0`, by xorshift64* seeded from the operating system.
fn random() -> f64 {
    RANDOM_STATE.with(|state| {
        let mut x = state.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        state.set(x);
        (x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    })
}
