//! Circles.

use super::number::{add, divide, multiply, subtract};
use super::point::at;
use super::polygon::distance_to_polygon;
use super::rectangle::Corners;
use crate::datum::Point;
use crate::error::{Error, Result};
use crate::geometry::is_zero;
use crate::interruptible::InterruptPacer;

/// Maximum number of points of a polygon, by the size limit of values.
const MAX_POINTS: i32 = 67_108_860;

/// A circle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circle {
    pub(crate) center: Point,
    pub(crate) radius: f64,
}

impl Circle {
    /// Returns the area.
    pub(crate) fn area(self) -> Result<f64> {
        multiply(multiply(self.radius, self.radius)?, std::f64::consts::PI)
    }

    /// Returns the horizontal extent.
    pub(crate) fn span_across(self) -> Result<[f64; 2]> {
        Ok([subtract(self.center.x, self.radius)?, add(self.center.x, self.radius)?])
    }

    /// Returns the vertical extent.
    pub(crate) fn span_up(self) -> Result<[f64; 2]> {
        Ok([subtract(self.center.y, self.radius)?, add(self.center.y, self.radius)?])
    }

    /// Returns the inscribed square.
    pub(crate) fn inner_box(self) -> Result<Corners> {
        let delta = divide(self.radius, 2.0_f64.sqrt())?;
        let Point { x, y } = self.center;
        Ok([at(add(x, delta)?, add(y, delta)?), at(subtract(x, delta)?, subtract(y, delta)?)])
    }

    /// Returns the distance to a polygon, 0 if they intersect.
    pub(crate) fn distance_to(self, polygon: &[Point]) -> Result<f64> {
        let between = subtract(distance_to_polygon(polygon, self.center)?, self.radius)?;
        Ok(if between < 0.0 { 0.0 } else { between })
    }

    /// Returns a polygon of `count` points on the circle.
    pub(crate) fn polygon(self, count: i32, pace: &mut InterruptPacer<'_>) -> Result<Vec<Point>> {
        if is_zero(self.radius) {
            bail!(FEATURE_NOT_SUPPORTED: "cannot convert circle with radius zero to polygon");
        }
        if count < 2 {
            bail!(INVALID_PARAMETER_VALUE: "must request at least 2 points");
        }
        if count > MAX_POINTS {
            bail!(PROGRAM_LIMIT_EXCEEDED: "too many points requested");
        }
        let step = divide(2.0 * std::f64::consts::PI, f64::from(count))?;
        let mut points = Vec::new();
        for index in 0..count {
            let angle = multiply(step, f64::from(index))?;
            let x = subtract(self.center.x, multiply(self.radius, angle.cos())?)?;
            let y = add(self.center.y, multiply(self.radius, angle.sin())?)?;
            pace.push(&mut points, at(x, y))?;
        }
        Ok(points)
    }
}
