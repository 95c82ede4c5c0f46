//! Functions of circles.

use super::super::argument::float8;
use super::super::{FunctionRow, row};
use super::value::{circle, made_circle, made_point, number, point, polygon, truth};
use crate::datatype::DataType::{self, Bool, Float8};
use crate::datum::{Datum, Point};
use crate::error::Result;
use crate::geometry::{self as g, Circle, RectangleSide};

const P: DataType = DataType::POINT;
const G: DataType = DataType::POLYGON;
const C: DataType = DataType::CIRCLE;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("circle", &[P, Float8], C, |a, _| {
        made_circle(Circle { center: point(&a[0]), radius: float8(&a[1]) })
    }),
    row("~=", &[C, C], Bool, |a, _| truth(same_circle(circle(&a[0]), circle(&a[1])))),
    row("&&", &[C, C], Bool, |a, _| {
        truth(g::at_most(
            between(circle(&a[0]), circle(&a[1]))?,
            g::add(circle(&a[0]).radius, circle(&a[1]).radius)?,
        ))
    }),
    row("<<", &[C, C], Bool, |a, _| {
        truth(
            RectangleSide::Before.holds(circle(&a[0]).span_across()?, circle(&a[1]).span_across()?),
        )
    }),
    row("&<", &[C, C], Bool, |a, _| {
        truth(
            RectangleSide::NotBeyond
                .holds(circle(&a[0]).span_across()?, circle(&a[1]).span_across()?),
        )
    }),
    row(">>", &[C, C], Bool, |a, _| {
        truth(
            RectangleSide::Behind.holds(circle(&a[0]).span_across()?, circle(&a[1]).span_across()?),
        )
    }),
    row("&>", &[C, C], Bool, |a, _| {
        truth(
            RectangleSide::NotBefore
                .holds(circle(&a[0]).span_across()?, circle(&a[1]).span_across()?),
        )
    }),
    row("<<|", &[C, C], Bool, |a, _| {
        truth(RectangleSide::Before.holds(circle(&a[0]).span_up()?, circle(&a[1]).span_up()?))
    }),
    row("&<|", &[C, C], Bool, |a, _| {
        truth(RectangleSide::NotBeyond.holds(circle(&a[0]).span_up()?, circle(&a[1]).span_up()?))
    }),
    row("|>>", &[C, C], Bool, |a, _| {
        truth(RectangleSide::Behind.holds(circle(&a[0]).span_up()?, circle(&a[1]).span_up()?))
    }),
    row("|&>", &[C, C], Bool, |a, _| {
        truth(RectangleSide::NotBefore.holds(circle(&a[0]).span_up()?, circle(&a[1]).span_up()?))
    }),
    row("@>", &[C, C], Bool, |a, _| {
        truth(g::at_most(
            between(circle(&a[0]), circle(&a[1]))?,
            g::subtract(circle(&a[0]).radius, circle(&a[1]).radius)?,
        ))
    }),
    row("<@", &[C, C], Bool, |a, _| {
        truth(g::at_most(
            between(circle(&a[0]), circle(&a[1]))?,
            g::subtract(circle(&a[1]).radius, circle(&a[0]).radius)?,
        ))
    }),
    row("=", &[C, C], Bool, |a, _| truth(g::same(circle(&a[0]).area()?, circle(&a[1]).area()?))),
    row("<", &[C, C], Bool, |a, _| truth(g::less(circle(&a[0]).area()?, circle(&a[1]).area()?))),
    row("<=", &[C, C], Bool, |a, _| {
        truth(g::at_most(circle(&a[0]).area()?, circle(&a[1]).area()?))
    }),
    row(">", &[C, C], Bool, |a, _| truth(g::greater(circle(&a[0]).area()?, circle(&a[1]).area()?))),
    row(">=", &[C, C], Bool, |a, _| {
        truth(g::at_least(circle(&a[0]).area()?, circle(&a[1]).area()?))
    }),
    row("<>", &[C, C], Bool, |a, _| truth(g::differ(circle(&a[0]).area()?, circle(&a[1]).area()?))),
    row("!=", &[C, C], Bool, |a, _| truth(g::differ(circle(&a[0]).area()?, circle(&a[1]).area()?))),
    row("+", &[C, P], C, |a, _| {
        made_circle(Circle {
            center: g::add_points(circle(&a[0]).center, point(&a[1]))?,
            ..circle(&a[0])
        })
    }),
    row("-", &[C, P], C, |a, _| {
        made_circle(Circle {
            center: g::subtract_points(circle(&a[0]).center, point(&a[1]))?,
            ..circle(&a[0])
        })
    }),
    row("*", &[C, P], C, |a, _| scaled(circle(&a[0]), point(&a[1]))),
    row("/", &[C, P], C, |a, _| shrunk(circle(&a[0]), point(&a[1]))),
    row("area", &[C], Float8, |a, _| number(circle(&a[0]).area()?)),
    row("diameter", &[C], Float8, |a, _| number(g::multiply(circle(&a[0]).radius, 2.0)?)),
    row("radius", &[C], Float8, |a, _| number(circle(&a[0]).radius)),
    row("center", &[C], P, |a, _| made_point(circle(&a[0]).center)),
    row("@@", &[C], P, |a, _| made_point(circle(&a[0]).center)),
    row("<->", &[C, C], Float8, |a, _| {
        number(at_least_none(g::subtract(
            between(circle(&a[0]), circle(&a[1]))?,
            g::add(circle(&a[0]).radius, circle(&a[1]).radius)?,
        )?))
    }),
    row("<->", &[C, P], Float8, |a, _| number(distance(circle(&a[0]), point(&a[1]))?)),
    row("<->", &[P, C], Float8, |a, _| number(distance(circle(&a[1]), point(&a[0]))?)),
    row("<->", &[C, G], Float8, |a, _| number(circle(&a[0]).distance_to(polygon(&a[1]))?)),
    row("<->", &[G, C], Float8, |a, _| number(circle(&a[1]).distance_to(polygon(&a[0]))?)),
    row("@>", &[C, P], Bool, |a, _| {
        truth(g::distance(circle(&a[0]).center, point(&a[1]))? <= circle(&a[0]).radius)
    }),
    row("<@", &[P, C], Bool, |a, _| {
        truth(g::distance(circle(&a[1]).center, point(&a[0]))? <= circle(&a[1]).radius)
    }),
];

/// Returns the distance of the centers.
fn between(one: Circle, other: Circle) -> Result<f64> {
    g::distance(one.center, other.center)
}

fn at_least_none(distance: f64) -> f64 {
    if distance < 0.0 { 0.0 } else { distance }
}

fn distance(circle: Circle, point: Point) -> Result<f64> {
    g::subtract(g::distance(circle.center, point)?, circle.radius).map(at_least_none)
}

fn same_circle(one: Circle, other: Circle) -> bool {
    let same_radius =
        one.radius.is_nan() && other.radius.is_nan() || g::same(one.radius, other.radius);
    same_radius && g::same_point(one.center, other.center)
}

fn scaled(circle: Circle, by: Point) -> Result<Datum> {
    let center = g::multiply_points(circle.center, by)?;
    let radius = g::multiply(circle.radius, g::hypotenuse(by.x, by.y)?)?;
    made_circle(Circle { center, radius })
}

fn shrunk(circle: Circle, by: Point) -> Result<Datum> {
    let center = g::divide_points(circle.center, by)?;
    let radius = g::divide(circle.radius, g::hypotenuse(by.x, by.y)?)?;
    made_circle(Circle { center, radius })
}
