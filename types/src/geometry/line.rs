//! Infinite lines, by the coefficients of `Ax + By + C = 0`.

use super::number::{add, divide, hypotenuse, is_zero, multiply, same, subtract};
use super::point::{at, distance, slope};
use crate::datum::{Point, compare_floats};
use crate::error::Result;

/// The coefficients A, B and C.
pub(crate) type Line = [f64; 3];

/// Returns the line through a point with a slope.
pub(crate) fn line_at(point: Point, slope: f64) -> Result<Line> {
    if slope.is_infinite() {
        return Ok([-1.0, 0.0, point.x]);
    }
    if slope == 0.0 {
        return Ok([0.0, -1.0, point.y]);
    }
    let c = subtract(point.y, multiply(slope, point.x)?)?;
    Ok([slope, -1.0, if c == 0.0 { 0.0 } else { c }])
}

/// Returns the line through two points.
pub(crate) fn line_through(a: Point, b: Point) -> Result<Line> {
    line_at(a, slope(a, b)?)
}

/// Returns the intersection of lines; `None` if they are parallel.
pub(crate) fn crossing(first: &Line, second: &Line) -> Result<Option<Point>> {
    let ([a1, b1, c1], [a2, b2, c2]) = (*first, *second);
    let (x, y) = if !is_zero(b1) {
        if same(a2, multiply(a1, divide(b2, b1)?)?) {
            return Ok(None);
        }
        let x = divide(
            subtract(multiply(b1, c2)?, multiply(b2, c1)?)?,
            subtract(multiply(a1, b2)?, multiply(a2, b1)?)?,
        )?;
        (x, divide(-add(multiply(a1, x)?, c1)?, b1)?)
    } else if !is_zero(b2) {
        if same(a1, multiply(a2, divide(b1, b2)?)?) {
            return Ok(None);
        }
        let x = divide(
            subtract(multiply(b2, c1)?, multiply(b1, c2)?)?,
            subtract(multiply(a2, b1)?, multiply(a1, b2)?)?,
        )?;
        (x, divide(-add(multiply(a2, x)?, c2)?, b2)?)
    } else {
        return Ok(None);
    };
    let positive = |number: f64| if number == 0.0 { 0.0 } else { number };
    Ok(Some(at(positive(x), positive(y))))
}

/// Returns whether lines are perpendicular.
pub(crate) fn are_perpendicular(first: &Line, second: &Line) -> Result<bool> {
    let ([a1, b1, _], [a2, b2, _]) = (*first, *second);
    if is_zero(a1) {
        return Ok(is_zero(b2));
    }
    if is_zero(a2) {
        return Ok(is_zero(b1));
    }
    if is_zero(b1) {
        return Ok(is_zero(a2));
    }
    if is_zero(b2) {
        return Ok(is_zero(a1));
    }
    Ok(same(divide(multiply(a1, a2)?, multiply(b1, b2)?)?, -1.0))
}

/// Returns whether lines are equal; their coefficients may be multiples.
pub(crate) fn same_line(first: &Line, second: &Line) -> Result<bool> {
    if first.iter().chain(second).any(|number| number.is_nan()) {
        return Ok(first.iter().zip(second).all(|(a, b)| compare_floats(*a, *b).is_eq()));
    }
    let ratio = match first.iter().zip(second).find(|(_, b)| !is_zero(**b)) {
        Some((a, b)) => divide(*a, *b)?,
        None => 1.0,
    };
    let mut all = true;
    for (a, b) in first.iter().zip(second) {
        all = all && same(*a, multiply(ratio, *b)?);
    }
    Ok(all)
}

/// Returns the slope; infinite if the line is vertical.
pub(crate) fn slope_of_line(line: &Line) -> Result<f64> {
    let [a, b, _] = *line;
    if is_zero(a) {
        return Ok(0.0);
    }
    if is_zero(b) {
        return Ok(f64::INFINITY);
    }
    divide(a, -b)
}

fn inverse_slope_of_line(line: &Line) -> Result<f64> {
    let [a, b, _] = *line;
    if is_zero(a) {
        return Ok(f64::INFINITY);
    }
    if is_zero(b) {
        return Ok(0.0);
    }
    divide(b, a)
}

/// Returns the distance of lines, 0 if they intersect.
pub(crate) fn distance_of_lines(first: &Line, second: &Line) -> Result<f64> {
    if crossing(first, second)?.is_some() {
        return Ok(0.0);
    }
    let ([a1, b1, c1], [a2, b2, c2]) = (*first, *second);
    let counts = |number: f64| !is_zero(number) && !number.is_nan();
    let ratio = if counts(a1) && counts(a2) {
        divide(a1, a2)?
    } else if counts(b1) && counts(b2) {
        divide(b1, b2)?
    } else {
        1.0
    };
    divide(subtract(c1, multiply(ratio, c2)?)?.abs(), hypotenuse(a1, b1)?)
}

/// Returns the point of a line that is closest to another point, and its distance.
pub(crate) fn closest_on_line(line: &Line, point: Point) -> Result<(Point, f64)> {
    let perpendicular = line_at(point, inverse_slope_of_line(line)?)?;
    match crossing(&perpendicular, line)? {
        None => Ok((point, f64::NAN)),
        Some(closest) => Ok((closest, distance(closest, point)?)),
    }
}

/// Returns whether a point is on a line.
pub(crate) fn line_contains(line: &Line, point: Point) -> Result<bool> {
    let [a, b, c] = *line;
    Ok(is_zero(add(add(multiply(a, point.x)?, multiply(b, point.y)?)?, c)?))
}
