//! Conversion between datums and geometric values.

use std::sync::Arc;

use crate::datum::{Datum, Geometry, Nested, Point};
use crate::error::Result;
use crate::geometry::{Circle, Corners, Line, PathPoints, Segment};

fn geometry(datum: &Datum) -> &Geometry {
    match datum {
        Datum::Nested(Nested::Geometry(value)) => value,
        other => mismatch(other),
    }
}

#[cold]
fn mismatch(found: &impl std::fmt::Debug) -> ! {
    panic!("a function takes another geometric type but was bound to {found:?}")
}

/// Returns a `point`.
pub(super) fn point(datum: &Datum) -> Point {
    match geometry(datum) {
        Geometry::Point(point) => *point,
        other => mismatch(other),
    }
}

/// Returns an `lseg`.
pub(super) fn segment(datum: &Datum) -> &Segment {
    match geometry(datum) {
        Geometry::Lseg(ends) => ends,
        other => mismatch(other),
    }
}

/// Returns a `box`.
pub(super) fn corners(datum: &Datum) -> &Corners {
    match geometry(datum) {
        Geometry::Box(corners) => corners,
        other => mismatch(other),
    }
}

/// Returns a `line`.
pub(super) fn line(datum: &Datum) -> &Line {
    match geometry(datum) {
        Geometry::Line(line) => line,
        other => mismatch(other),
    }
}

/// Returns a `path`.
pub(super) fn path(datum: &Datum) -> PathPoints<'_> {
    match geometry(datum) {
        Geometry::Path { is_closed, points } => PathPoints { is_closed: *is_closed, points },
        other => mismatch(other),
    }
}

/// Returns the points of a `polygon`.
pub(super) fn polygon(datum: &Datum) -> &[Point] {
    match geometry(datum) {
        Geometry::Polygon(points) => points,
        other => mismatch(other),
    }
}

/// Returns a `circle`.
pub(super) fn circle(datum: &Datum) -> Circle {
    match geometry(datum) {
        Geometry::Circle { center, radius } => Circle { center: *center, radius: *radius },
        other => mismatch(other),
    }
}

/// Returns the datum of a value.
pub(super) fn made(value: Geometry) -> Result<Datum> {
    Ok(Datum::Nested(Nested::Geometry(Arc::new(value))))
}

/// Returns a `point` datum.
pub(super) fn made_point(point: Point) -> Result<Datum> {
    made(Geometry::Point(point))
}

/// Returns a `point` datum, or NULL.
pub(super) fn point_or_null(point: Option<Point>) -> Result<Datum> {
    point.map_or(Ok(Datum::Null), made_point)
}

/// Returns the closest point as a `point` datum; NULL if its distance is NaN.
pub(super) fn closest((point, distance): (Point, f64)) -> Result<Datum> {
    point_or_null(Some(point).filter(|_| !distance.is_nan()))
}

/// Returns a `circle` datum.
pub(super) fn made_circle(circle: Circle) -> Result<Datum> {
    made(Geometry::Circle { center: circle.center, radius: circle.radius })
}

/// Returns a `path` datum.
pub(super) fn made_path(is_closed: bool, points: Vec<Point>) -> Result<Datum> {
    made(Geometry::Path { is_closed, points })
}

/// Returns a `boolean` datum.
pub(super) fn truth(value: bool) -> Result<Datum> {
    Ok(Datum::Bool(value))
}

/// Returns a `double precision` datum.
pub(super) fn number(value: f64) -> Result<Datum> {
    Ok(Datum::Float8(value))
}

/// Returns an `integer` datum of a count of points.
pub(super) fn count(points: &[Point]) -> Result<Datum> {
    Ok(Datum::Int4(i32::try_from(points.len()).unwrap_or(i32::MAX)))
}
