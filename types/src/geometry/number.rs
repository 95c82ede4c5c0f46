//! Checked arithmetic and comparison with tolerance.

use crate::datum::compare_floats;
use crate::error::{Error, Result};

/// Tolerance of comparisons.
const EPSILON: f64 = 1.0e-6;

#[cold]
fn out_of_range(what: &str) -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "value out of range: {what}")
}

fn finite(result: f64, may_be_infinite: bool) -> Result<f64> {
    if result.is_infinite() && !may_be_infinite {
        return Err(out_of_range("overflow"));
    }
    Ok(result)
}

/// Returns a + b.
pub(crate) fn add(a: f64, b: f64) -> Result<f64> {
    finite(a + b, a.is_infinite() || b.is_infinite())
}

/// Returns a - b.
pub(crate) fn subtract(a: f64, b: f64) -> Result<f64> {
    finite(a - b, a.is_infinite() || b.is_infinite())
}

/// Returns a * b.
pub(crate) fn multiply(a: f64, b: f64) -> Result<f64> {
    let product = finite(a * b, a.is_infinite() || b.is_infinite())?;
    if product == 0.0 && a != 0.0 && b != 0.0 {
        return Err(out_of_range("underflow"));
    }
    Ok(product)
}

/// Returns a / b.
pub(crate) fn divide(a: f64, b: f64) -> Result<f64> {
    if b == 0.0 && !a.is_nan() {
        bail!(DIVISION_BY_ZERO: "division by zero");
    }
    let quotient = finite(a / b, a.is_infinite())?;
    if quotient == 0.0 && a != 0.0 && !b.is_infinite() {
        return Err(out_of_range("underflow"));
    }
    Ok(quotient)
}

/// Returns the length of the hypotenuse.
pub(crate) fn hypotenuse(x: f64, y: f64) -> Result<f64> {
    if x.is_infinite() || y.is_infinite() {
        return Ok(f64::INFINITY);
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN);
    }
    let (x, y) = (x.abs(), y.abs());
    let (x, y) = if x < y { (y, x) } else { (x, y) };
    if y == 0.0 {
        return Ok(x);
    }
    let ratio = y / x;
    let length = finite(x * (1.0 + ratio * ratio).sqrt(), false)?;
    if length == 0.0 {
        return Err(out_of_range("underflow"));
    }
    Ok(length)
}

/// Returns whether a number is 0 within the tolerance.
pub(crate) fn is_zero(a: f64) -> bool {
    a.abs() <= EPSILON
}

/// Returns whether numbers are equal within the tolerance.
pub(crate) fn same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= EPSILON
}

/// Returns whether numbers differ by more than the tolerance; false for NaN.
#[must_use]
pub(crate) fn differ(a: f64, b: f64) -> bool {
    (a - b).abs() > EPSILON
}

/// Returns whether a is less than b by more than the tolerance.
pub(crate) fn less(a: f64, b: f64) -> bool {
    a + EPSILON < b
}

/// Returns whether a is at most b within the tolerance.
pub(crate) fn at_most(a: f64, b: f64) -> bool {
    a <= b + EPSILON
}

/// Returns whether a is greater than b by more than the tolerance.
pub(crate) fn greater(a: f64, b: f64) -> bool {
    a > b + EPSILON
}

/// Returns whether a is at least b within the tolerance.
pub(crate) fn at_least(a: f64, b: f64) -> bool {
    a + EPSILON >= b
}

/// Returns whether a sorts before b; NaN is greatest.
pub(crate) fn sorts_before(a: f64, b: f64) -> bool {
    compare_floats(a, b).is_lt()
}

/// Returns the smaller number in SQL's order.
pub(crate) fn smaller(a: f64, b: f64) -> f64 {
    if compare_floats(a, b).is_lt() { a } else { b }
}

/// Returns the larger number in SQL's order.
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if compare_floats(a, b).is_gt() { a } else { b }
}
