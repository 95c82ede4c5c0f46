//! Functions of paths and polygons.

use super::super::argument::int4;
use super::super::{FunctionRow, row};
use super::value::{
    circle, count, made, made_path, made_point, number, path, point, polygon, truth,
};
use crate::datatype::DataType::{self, Bool, Float8, Int4};
use crate::datum::{Datum, Geometry, Point};
use crate::error::Result;
use crate::geometry::{self as g, Corners, PathPoints};

const P: DataType = DataType::POINT;
const W: DataType = DataType::PATH;
const G: DataType = DataType::POLYGON;
const C: DataType = DataType::CIRCLE;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("area", &[W], Float8, |a, _| Ok(path(&a[0]).area()?.map_or(Datum::Null, Datum::Float8))),
    row("=", &[W, W], Bool, |a, _| {
        truth(path(&a[0]).points.len().cmp(&path(&a[1]).points.len()).is_eq())
    }),
    row("<", &[W, W], Bool, |a, _| {
        truth(path(&a[0]).points.len().cmp(&path(&a[1]).points.len()).is_lt())
    }),
    row("<=", &[W, W], Bool, |a, _| {
        truth(path(&a[0]).points.len().cmp(&path(&a[1]).points.len()).is_le())
    }),
    row(">", &[W, W], Bool, |a, _| {
        truth(path(&a[0]).points.len().cmp(&path(&a[1]).points.len()).is_gt())
    }),
    row(">=", &[W, W], Bool, |a, _| {
        truth(path(&a[0]).points.len().cmp(&path(&a[1]).points.len()).is_ge())
    }),
    row("#", &[W], Int4, |a, _| count(path(&a[0]).points)),
    row("npoints", &[W], Int4, |a, _| count(path(&a[0]).points)),
    row("isclosed", &[W], Bool, |a, _| truth(path(&a[0]).is_closed)),
    row("isopen", &[W], Bool, |a, _| truth(!path(&a[0]).is_closed)),
    row("pclose", &[W], W, |a, _| made_path(true, path(&a[0]).points.to_vec())),
    row("popen", &[W], W, |a, _| made_path(false, path(&a[0]).points.to_vec())),
    row("@-@", &[W], Float8, |a, _| number(path(&a[0]).length()?)),
    row("length", &[W], Float8, |a, _| number(path(&a[0]).length()?)),
    row("?#", &[W, W], Bool, |a, c| truth(path(&a[0]).meets(path(&a[1]), &mut c.pace())?)),
    row("<->", &[W, W], Float8, |a, c| {
        Ok(path(&a[0]).distance(path(&a[1]), &mut c.pace())?.map_or(Datum::Null, Datum::Float8))
    }),
    row("<->", &[W, P], Float8, |a, _| number(path(&a[0]).distance_to(point(&a[1]))?)),
    row("<->", &[P, W], Float8, |a, _| number(path(&a[1]).distance_to(point(&a[0]))?)),
    row("@>", &[W, P], Bool, |a, _| truth(is_on(path(&a[0]), point(&a[1]))?)),
    row("<@", &[P, W], Bool, |a, _| truth(is_on(path(&a[1]), point(&a[0]))?)),
    row("+", &[W, W], W, |a, _| joined(path(&a[0]), path(&a[1]))),
    row("+", &[W, P], W, |a, _| moved(path(&a[0]), |place| g::add_points(place, point(&a[1])))),
    row("-", &[W, P], W, |a, _| {
        moved(path(&a[0]), |place| g::subtract_points(place, point(&a[1])))
    }),
    row("*", &[W, P], W, |a, _| {
        moved(path(&a[0]), |place| g::multiply_points(place, point(&a[1])))
    }),
    row("/", &[W, P], W, |a, _| moved(path(&a[0]), |place| g::divide_points(place, point(&a[1])))),
    row("polygon", &[Int4, C], G, |a, c| {
        made(Geometry::Polygon(circle(&a[1]).polygon(int4(&a[0]), &mut c.pace())?))
    }),
    row("#", &[G], Int4, |a, _| count(polygon(&a[0]))),
    row("npoints", &[G], Int4, |a, _| count(polygon(&a[0]))),
    row("@@", &[G], P, |a, _| made_point(g::circle_of_polygon(polygon(&a[0]))?.0)),
    row("~=", &[G, G], Bool, |a, _| truth(g::same_polygon(polygon(&a[0]), polygon(&a[1])))),
    row("<<", &[G, G], Bool, |a, _| {
        lies(polygon(&a[0]), polygon(&a[1]), |one, other| one[0].x < other[1].x)
    }),
    row("&<", &[G, G], Bool, |a, _| {
        lies(polygon(&a[0]), polygon(&a[1]), |one, other| one[0].x <= other[0].x)
    }),
    row(">>", &[G, G], Bool, |a, _| {
        lies(polygon(&a[0]), polygon(&a[1]), |one, other| one[1].x > other[0].x)
    }),
    row("&>", &[G, G], Bool, |a, _| {
        lies(polygon(&a[0]), polygon(&a[1]), |one, other| one[1].x >= other[1].x)
    }),
    row("<<|", &[G, G], Bool, |a, _| {
        lies(polygon(&a[0]), polygon(&a[1]), |one, other| one[0].y < other[1].y)
    }),
    row("&<|", &[G, G], Bool, |a, _| {
        lies(polygon(&a[0]), polygon(&a[1]), |one, other| one[0].y <= other[0].y)
    }),
    row("|>>", &[G, G], Bool, |a, _| {
        lies(polygon(&a[0]), polygon(&a[1]), |one, other| one[1].y > other[0].y)
    }),
    row("|&>", &[G, G], Bool, |a, _| {
        lies(polygon(&a[0]), polygon(&a[1]), |one, other| one[1].y >= other[1].y)
    }),
    row("&&", &[G, G], Bool, |a, c| {
        truth(g::polygons_overlap(polygon(&a[0]), polygon(&a[1]), &mut c.pace())?)
    }),
    row("@>", &[G, G], Bool, |a, c| {
        truth(g::polygon_contains_polygon(polygon(&a[0]), polygon(&a[1]), &mut c.pace())?)
    }),
    row("<@", &[G, G], Bool, |a, c| {
        truth(g::polygon_contains_polygon(polygon(&a[1]), polygon(&a[0]), &mut c.pace())?)
    }),
    row("@>", &[G, P], Bool, |a, _| truth(g::polygon_contains(polygon(&a[0]), point(&a[1]))?)),
    row("<@", &[P, G], Bool, |a, _| truth(g::polygon_contains(polygon(&a[1]), point(&a[0]))?)),
    row("<->", &[G, G], Float8, |a, c| {
        Ok(g::distance_of_polygons(polygon(&a[0]), polygon(&a[1]), &mut c.pace())?
            .map_or(Datum::Null, Datum::Float8))
    }),
    row("<->", &[P, G], Float8, |a, _| {
        number(g::distance_to_polygon(polygon(&a[1]), point(&a[0]))?)
    }),
    row("<->", &[G, P], Float8, |a, _| {
        number(g::distance_to_polygon(polygon(&a[0]), point(&a[1]))?)
    }),
];

/// Returns whether a point is on an open path, or inside a closed one.
fn is_on(path: PathPoints<'_>, point: Point) -> Result<bool> {
    match path.is_closed {
        true => g::polygon_contains(path.points, point),
        false => path.passes(point),
    }
}

fn joined(first: PathPoints<'_>, second: PathPoints<'_>) -> Result<Datum> {
    if first.is_closed || second.is_closed {
        return Ok(Datum::Null);
    }
    made_path(false, [first.points, second.points].concat())
}

fn moved(path: PathPoints<'_>, change: impl Fn(Point) -> Result<Point>) -> Result<Datum> {
    let points = path.points.iter().map(|point| change(*point)).collect::<Result<_>>()?;
    made_path(path.is_closed, points)
}

/// Returns whether the bounding boxes of polygons satisfy `test`.
fn lies(one: &[Point], other: &[Point], test: impl Fn(Corners, Corners) -> bool) -> Result<Datum> {
    truth(test(g::bounds(one), g::bounds(other)))
}
