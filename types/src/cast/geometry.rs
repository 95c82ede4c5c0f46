//! Casts between geometric types.

use std::sync::Arc;

use super::cannot_cast;
use crate::datatype::{DataType, GeometryKind};
use crate::datum::{Datum, Geometry, Nested, Point};
use crate::error::{Error, Result};
use crate::geometry::{self as g, Circle};
use crate::interruptible::InterruptPacer;

/// Number of points of the polygon that approximates a circle.
const CIRCLE_POINTS: i32 = 12;

/// Casts a value.
pub(super) fn convert(
    value: &Geometry,
    to: &DataType,
    pace: &mut InterruptPacer<'_>,
) -> Result<Datum> {
    let from = DataType::Geometry(value.kind());
    let DataType::Geometry(kind) = to else { return Err(cannot_cast(&from, to)) };
    let circle = |(center, radius)| Geometry::Circle { center, radius };
    let converted = match (value, kind) {
        (Geometry::Lseg([from, to]), GeometryKind::Point) => {
            Geometry::Point(g::middle(*from, *to)?)
        }
        (Geometry::Box(corners), GeometryKind::Point) => {
            Geometry::Point(g::center_of_box(corners)?)
        }
        (Geometry::Polygon(points), GeometryKind::Point) => {
            Geometry::Point(g::circle_of_polygon(points)?.0)
        }
        (Geometry::Circle { center, .. }, GeometryKind::Point) => Geometry::Point(*center),
        (Geometry::Box(corners), GeometryKind::Lseg) => Geometry::Lseg(*corners),
        (Geometry::Point(point), GeometryKind::Box) => Geometry::Box([*point, *point]),
        (Geometry::Polygon(points), GeometryKind::Box) => Geometry::Box(g::bounds(points)),
        (Geometry::Circle { center, radius }, GeometryKind::Box) => {
            Geometry::Box(Circle { center: *center, radius: *radius }.inner_box()?)
        }
        (Geometry::Polygon(points), GeometryKind::Path) => {
            Geometry::Path { is_closed: true, points: points.clone() }
        }
        (Geometry::Path { is_closed, points }, GeometryKind::Polygon) => {
            if !is_closed {
                bail!(INVALID_PARAMETER_VALUE: "open path cannot be converted to polygon");
            }
            Geometry::Polygon(points.clone())
        }
        (Geometry::Box([high, low]), GeometryKind::Polygon) => {
            let (top_left, bottom_right) =
                (Point { x: low.x, y: high.y }, Point { x: high.x, y: low.y });
            Geometry::Polygon(vec![*low, top_left, *high, bottom_right])
        }
        (Geometry::Circle { center, radius }, GeometryKind::Polygon) => {
            let circle = Circle { center: *center, radius: *radius };
            Geometry::Polygon(circle.polygon(CIRCLE_POINTS, pace)?)
        }
        (Geometry::Box(corners), GeometryKind::Circle) => {
            let center = g::center_of_box(corners)?;
            circle((center, g::distance(center, corners[0])?))
        }
        (Geometry::Polygon(points), GeometryKind::Circle) => circle(g::circle_of_polygon(points)?),
        _ => return Err(cannot_cast(&from, to)),
    };
    Ok(Datum::Nested(Nested::Geometry(Arc::new(converted))))
}
