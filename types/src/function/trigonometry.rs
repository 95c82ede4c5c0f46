//! Trigonometric functions of radians and degrees, and hyperbolic functions.
//!
//! Functions of degrees return exact results where these exist (`sind(30)` is 0.5), as in
//! PostgreSQL: library results are scaled by those at 30, 45 and 60 degrees.

use super::argument::float8;
use super::arithmetic::{overflow, underflow};
use super::{FunctionRow, row};
use crate::datatype::DataType::Float8;
use crate::datum::Datum;
use crate::error::{Error, Result};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("degrees", &[Float8], Float8, |a, _| scaled(&a[0], |x| x / RADIANS_PER_DEGREE)),
    row("radians", &[Float8], Float8, |a, _| scaled(&a[0], |x| x * RADIANS_PER_DEGREE)),
    row("sin", &[Float8], Float8, |a, _| circular(float8(&a[0]), f64::sin)),
    row("cos", &[Float8], Float8, |a, _| circular(float8(&a[0]), f64::cos)),
    row("tan", &[Float8], Float8, |a, _| circular(float8(&a[0]), f64::tan)),
    row("cot", &[Float8], Float8, |a, _| circular(float8(&a[0]), |x| 1.0 / x.tan())),
    row("asin", &[Float8], Float8, |a, _| bounded(float8(&a[0]), -1.0..=1.0, f64::asin)),
    row("acos", &[Float8], Float8, |a, _| bounded(float8(&a[0]), -1.0..=1.0, f64::acos)),
    row("atan", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).atan()))),
    row("atan2", &[Float8, Float8], Float8, |a, _| {
        Ok(Datum::Float8(float8(&a[0]).atan2(float8(&a[1]))))
    }),
    row("sinh", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).sinh()))),
    row("cosh", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).cosh()))),
    row("tanh", &[Float8], Float8, |a, _| Ok(Datum::Float8(float8(&a[0]).tanh()))),
    row("asinh", &[Float8], Float8, |a, _| Ok(Datum::Float8(area_sine(float8(&a[0]))))),
    row("acosh", &[Float8], Float8, |a, _| {
        bounded(float8(&a[0]), 1.0..=f64::INFINITY, area_cosine)
    }),
    row("atanh", &[Float8], Float8, |a, _| bounded(float8(&a[0]), -1.0..=1.0, f64::atanh)),
    row("sind", &[Float8], Float8, |a, _| circular(float8(&a[0]), sine)),
    row("cosd", &[Float8], Float8, |a, _| circular(float8(&a[0]), cosine)),
    row("tand", &[Float8], Float8, |a, _| circular(float8(&a[0]), tangent)),
    row("cotd", &[Float8], Float8, |a, _| circular(float8(&a[0]), cotangent)),
    row("asind", &[Float8], Float8, |a, _| bounded(float8(&a[0]), -1.0..=1.0, arc_sine)),
    row("acosd", &[Float8], Float8, |a, _| bounded(float8(&a[0]), -1.0..=1.0, arc_cosine)),
    row("atand", &[Float8], Float8, |a, _| Ok(Datum::Float8(turned(float8(&a[0]).atan())))),
    row("atan2d", &[Float8, Float8], Float8, |a, _| {
        Ok(Datum::Float8(turned(float8(&a[0]).atan2(float8(&a[1])))))
    }),
];

const RADIANS_PER_DEGREE: f64 = std::f64::consts::PI / 180.0;

/// Limit above which the square of a number may overflow, and adding 1 to it has no effect.
const LARGE: f64 = 1e150;

fn area_sine(value: f64) -> f64 {
    match value.abs() {
        large if large > LARGE => (large.ln() + std::f64::consts::LN_2).copysign(value),
        _ => value.asinh(),
    }
}

fn area_cosine(value: f64) -> f64 {
    if value > LARGE { value.ln() + std::f64::consts::LN_2 } else { value.acosh() }
}

/// Converts an angle; infinity is unchanged.
fn scaled(angle: &Datum, convert: fn(f64) -> f64) -> Result<Datum> {
    let angle = float8(angle);
    let value = convert(angle);
    if value.is_infinite() && angle.is_finite() {
        return Err(overflow());
    }
    if value == 0.0 && angle != 0.0 {
        return Err(underflow());
    }
    Ok(Datum::Float8(value))
}

fn circular(value: f64, compute: fn(f64) -> f64) -> Result<Datum> {
    if value.is_infinite() {
        return Err(input_out_of_range());
    }
    Ok(Datum::Float8(compute(value)))
}

/// Computes a function that is defined on an interval.
fn bounded(
    value: f64,
    bounds: std::ops::RangeInclusive<f64>,
    compute: fn(f64) -> f64,
) -> Result<Datum> {
    if !value.is_nan() && !bounds.contains(&value) {
        return Err(input_out_of_range());
    }
    Ok(Datum::Float8(compute(value)))
}

fn input_out_of_range() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "input is out of range")
}

/// Returns the sine of 0 to 30 degrees.
fn low_sine(degrees: f64) -> f64 {
    (degrees * RADIANS_PER_DEGREE).sin() / (30.0 * RADIANS_PER_DEGREE).sin() / 2.0
}

/// Returns the cosine of 0 to 60 degrees.
fn low_cosine(degrees: f64) -> f64 {
    let missing = |degrees: f64| 1.0 - (degrees * RADIANS_PER_DEGREE).cos();
    1.0 - missing(degrees) / missing(60.0) / 2.0
}

/// Returns the sine of 0 to 90 degrees.
fn first_sine(degrees: f64) -> f64 {
    if degrees <= 30.0 { low_sine(degrees) } else { low_cosine(90.0 - degrees) }
}

/// Returns the cosine of 0 to 90 degrees.
fn first_cosine(degrees: f64) -> f64 {
    if degrees <= 60.0 { low_cosine(degrees) } else { low_sine(90.0 - degrees) }
}

/// An angle reflected into the first quadrant, with the reflections.
struct ReflectedAngle {
    degrees: f64,
    was_negative: bool,
    beyond_half_turn: bool,
    beyond_right_angle: bool,
}

fn folded(degrees: f64) -> ReflectedAngle {
    let mut degrees = degrees % 360.0;
    let was_negative = degrees < 0.0;
    // Minus zero is unchanged.
    if was_negative {
        degrees = -degrees;
    }
    let beyond_half_turn = degrees > 180.0;
    if beyond_half_turn {
        degrees = 360.0 - degrees;
    }
    let beyond_right_angle = degrees > 90.0;
    if beyond_right_angle {
        degrees = 180.0 - degrees;
    }
    ReflectedAngle { degrees, was_negative, beyond_half_turn, beyond_right_angle }
}

fn signed(value: f64, negative: bool) -> f64 {
    if negative { -value } else { value }
}

fn sine(degrees: f64) -> f64 {
    let angle = folded(degrees);
    signed(first_sine(angle.degrees), angle.was_negative ^ angle.beyond_half_turn)
}

fn cosine(degrees: f64) -> f64 {
    let angle = folded(degrees);
    signed(first_cosine(angle.degrees), angle.beyond_right_angle)
}

fn tangent(degrees: f64) -> f64 {
    let of = |degrees: f64| first_sine(degrees) / first_cosine(degrees);
    quotient(degrees, of)
}

fn cotangent(degrees: f64) -> f64 {
    let of = |degrees: f64| first_cosine(degrees) / first_sine(degrees);
    quotient(degrees, of)
}

/// Returns a tangent or cotangent; minus zero becomes zero.
fn quotient(degrees: f64, of: impl Fn(f64) -> f64) -> f64 {
    let angle = folded(degrees);
    let negative = angle.was_negative ^ angle.beyond_half_turn ^ angle.beyond_right_angle;
    let result = signed(of(angle.degrees) / of(45.0), negative);
    if result == 0.0 { 0.0 } else { result }
}

/// Returns the arc sine of 0 to 1, in degrees.
fn first_arc_sine(value: f64) -> f64 {
    if value <= 0.5 {
        value.asin() / 0.5_f64.asin() * 30.0
    } else {
        90.0 - value.acos() / 0.5_f64.acos() * 60.0
    }
}

/// Returns the arc cosine of 0 to 1, in degrees.
fn first_arc_cosine(value: f64) -> f64 {
    if value <= 0.5 {
        90.0 - value.asin() / 0.5_f64.asin() * 30.0
    } else {
        value.acos() / 0.5_f64.acos() * 60.0
    }
}

fn arc_sine(value: f64) -> f64 {
    if value >= 0.0 { first_arc_sine(value) } else { -first_arc_sine(-value) }
}

fn arc_cosine(value: f64) -> f64 {
    if value >= 0.0 { first_arc_cosine(value) } else { 90.0 + first_arc_sine(-value) }
}

/// Converts an arc tangent from radians to degrees.
fn turned(radians: f64) -> f64 {
    radians / 1.0_f64.atan() * 45.0
}
