//! Points, and their arithmetic as complex numbers for translation, rotation and scaling.

use super::number::{add, divide, hypotenuse, multiply, same, subtract};
use crate::datum::{Point, compare_floats};
use crate::error::Result;

/// Creates a point.
pub(crate) fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

/// Returns whether points are equal within the tolerance; NaN equals only NaN.
pub(crate) fn same_point(a: Point, b: Point) -> bool {
    if [a.x, a.y, b.x, b.y].iter().any(|number| number.is_nan()) {
        return compare_floats(a.x, b.x).is_eq() && compare_floats(a.y, b.y).is_eq();
    }
    same(a.x, b.x) && same(a.y, b.y)
}

/// Returns the distance.
pub(crate) fn distance(a: Point, b: Point) -> Result<f64> {
    hypotenuse(subtract(a.x, b.x)?, subtract(a.y, b.y)?)
}

/// Returns the slope of the line through points; infinite if it is vertical.
pub(crate) fn slope(a: Point, b: Point) -> Result<f64> {
    if same(a.x, b.x) {
        return Ok(f64::INFINITY);
    }
    if same(a.y, b.y) {
        return Ok(0.0);
    }
    divide(subtract(a.y, b.y)?, subtract(a.x, b.x)?)
}

/// Returns the slope of the perpendicular of the line through points.
pub(crate) fn inverse_slope(a: Point, b: Point) -> Result<f64> {
    if same(a.x, b.x) {
        return Ok(0.0);
    }
    if same(a.y, b.y) {
        return Ok(f64::INFINITY);
    }
    divide(subtract(a.x, b.x)?, subtract(b.y, a.y)?)
}

/// Returns the sum.
pub(crate) fn add_points(a: Point, b: Point) -> Result<Point> {
    Ok(at(add(a.x, b.x)?, add(a.y, b.y)?))
}

/// Returns the difference.
pub(crate) fn subtract_points(a: Point, b: Point) -> Result<Point> {
    Ok(at(subtract(a.x, b.x)?, subtract(a.y, b.y)?))
}

/// Returns the complex product.
pub(crate) fn multiply_points(a: Point, b: Point) -> Result<Point> {
    Ok(at(
        subtract(multiply(a.x, b.x)?, multiply(a.y, b.y)?)?,
        add(multiply(a.x, b.y)?, multiply(a.y, b.x)?)?,
    ))
}

/// Returns the complex quotient.
pub(crate) fn divide_points(a: Point, b: Point) -> Result<Point> {
    let square = add(multiply(b.x, b.x)?, multiply(b.y, b.y)?)?;
    Ok(at(
        divide(add(multiply(a.x, b.x)?, multiply(a.y, b.y)?)?, square)?,
        divide(subtract(multiply(a.y, b.x)?, multiply(a.x, b.y)?)?, square)?,
    ))
}

/// Returns the midpoint.
pub(crate) fn middle(a: Point, b: Point) -> Result<Point> {
    Ok(at(divide(add(a.x, b.x)?, 2.0)?, divide(add(a.y, b.y)?, 2.0)?))
}
