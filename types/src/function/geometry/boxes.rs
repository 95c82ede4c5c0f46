//! Functions of boxes.

use super::super::{FunctionRow, row};
use super::value::{closest, corners, line, made, made_point, number, point, segment, truth};
use crate::datatype::DataType::{self, Bool, Float8};
use crate::datum::{Datum, Geometry, Point};
use crate::error::Result;
use crate::geometry::{self as g, Corners, RectangleSide};

const P: DataType = DataType::POINT;
const S: DataType = DataType::LSEG;
const L: DataType = DataType::LINE;
const B: DataType = DataType::BOX;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("box", &[P, P], B, |a, _| {
        made(Geometry::Box(g::ordered_corners([point(&a[0]), point(&a[1])])))
    }),
    row("bound_box", &[B, B], B, |a, _| {
        made(Geometry::Box(g::bounds(&[
            corners(&a[0])[0],
            corners(&a[0])[1],
            corners(&a[1])[0],
            corners(&a[1])[1],
        ])))
    }),
    row("diagonal", &[B], S, |a, _| made(Geometry::Lseg(*corners(&a[0])))),
    row("~=", &[B, B], Bool, |a, _| truth(same_box(corners(&a[0]), corners(&a[1])))),
    row("&&", &[B, B], Bool, |a, _| truth(g::overlap(corners(&a[0]), corners(&a[1])))),
    row("?#", &[B, B], Bool, |a, _| truth(g::overlap(corners(&a[0]), corners(&a[1])))),
    row("<<", &[B, B], Bool, |a, _| {
        truth(
            RectangleSide::Before
                .holds(g::span_across(corners(&a[0])), g::span_across(corners(&a[1]))),
        )
    }),
    row("&<", &[B, B], Bool, |a, _| {
        truth(
            RectangleSide::NotBeyond
                .holds(g::span_across(corners(&a[0])), g::span_across(corners(&a[1]))),
        )
    }),
    row(">>", &[B, B], Bool, |a, _| {
        truth(
            RectangleSide::Behind
                .holds(g::span_across(corners(&a[0])), g::span_across(corners(&a[1]))),
        )
    }),
    row("&>", &[B, B], Bool, |a, _| {
        truth(
            RectangleSide::NotBefore
                .holds(g::span_across(corners(&a[0])), g::span_across(corners(&a[1]))),
        )
    }),
    row("<<|", &[B, B], Bool, |a, _| {
        truth(RectangleSide::Before.holds(g::span_up(corners(&a[0])), g::span_up(corners(&a[1]))))
    }),
    row("&<|", &[B, B], Bool, |a, _| {
        truth(
            RectangleSide::NotBeyond.holds(g::span_up(corners(&a[0])), g::span_up(corners(&a[1]))),
        )
    }),
    row("|>>", &[B, B], Bool, |a, _| {
        truth(RectangleSide::Behind.holds(g::span_up(corners(&a[0])), g::span_up(corners(&a[1]))))
    }),
    row("|&>", &[B, B], Bool, |a, _| {
        truth(
            RectangleSide::NotBefore.holds(g::span_up(corners(&a[0])), g::span_up(corners(&a[1]))),
        )
    }),
    row("<^", &[B, B], Bool, |a, _| truth(g::at_most(corners(&a[0])[0].y, corners(&a[1])[1].y))),
    row(">^", &[B, B], Bool, |a, _| truth(g::at_least(corners(&a[0])[1].y, corners(&a[1])[0].y))),
    row("@>", &[B, B], Bool, |a, _| truth(g::box_contains_box(corners(&a[0]), corners(&a[1])))),
    row("<@", &[B, B], Bool, |a, _| truth(g::box_contains_box(corners(&a[1]), corners(&a[0])))),
    row("@>", &[B, P], Bool, |a, _| truth(g::box_contains(corners(&a[0]), point(&a[1])))),
    row("<@", &[P, B], Bool, |a, _| truth(g::box_contains(corners(&a[1]), point(&a[0])))),
    row("<@", &[S, B], Bool, |a, _| {
        truth(
            g::box_contains(corners(&a[1]), segment(&a[0])[0])
                && g::box_contains(corners(&a[1]), segment(&a[0])[1]),
        )
    }),
    row("=", &[B, B], Bool, |a, _| {
        truth(g::same(g::area_of_box(corners(&a[0]))?, g::area_of_box(corners(&a[1]))?))
    }),
    row("<", &[B, B], Bool, |a, _| {
        truth(g::less(g::area_of_box(corners(&a[0]))?, g::area_of_box(corners(&a[1]))?))
    }),
    row("<=", &[B, B], Bool, |a, _| {
        truth(g::at_most(g::area_of_box(corners(&a[0]))?, g::area_of_box(corners(&a[1]))?))
    }),
    row(">", &[B, B], Bool, |a, _| {
        truth(g::greater(g::area_of_box(corners(&a[0]))?, g::area_of_box(corners(&a[1]))?))
    }),
    row(">=", &[B, B], Bool, |a, _| {
        truth(g::at_least(g::area_of_box(corners(&a[0]))?, g::area_of_box(corners(&a[1]))?))
    }),
    row("area", &[B], Float8, |a, _| number(g::area_of_box(corners(&a[0]))?)),
    row("width", &[B], Float8, |a, _| number(g::width(corners(&a[0]))?)),
    row("height", &[B], Float8, |a, _| number(g::height(corners(&a[0]))?)),
    row("center", &[B], P, |a, _| made_point(g::center_of_box(corners(&a[0]))?)),
    row("@@", &[B], P, |a, _| made_point(g::center_of_box(corners(&a[0]))?)),
    row("#", &[B, B], B, |a, _| {
        g::intersection(corners(&a[0]), corners(&a[1]))
            .map_or(Ok(Datum::Null), |both| made(Geometry::Box(both)))
    }),
    row("+", &[B, P], B, |a, _| {
        moved(corners(&a[0]), |corner| g::add_points(corner, point(&a[1])))
    }),
    row("-", &[B, P], B, |a, _| {
        moved(corners(&a[0]), |corner| g::subtract_points(corner, point(&a[1])))
    }),
    row("*", &[B, P], B, |a, _| {
        moved(corners(&a[0]), |corner| g::multiply_points(corner, point(&a[1])))
    }),
    row("/", &[B, P], B, |a, _| {
        moved(corners(&a[0]), |corner| g::divide_points(corner, point(&a[1])))
    }),
    row("<->", &[B, B], Float8, |a, _| {
        number(g::distance(g::center_of_box(corners(&a[0]))?, g::center_of_box(corners(&a[1]))?)?)
    }),
    row("<->", &[P, B], Float8, |a, _| number(g::closest_in_box(corners(&a[1]), point(&a[0]))?.1)),
    row("<->", &[B, P], Float8, |a, _| number(g::closest_in_box(corners(&a[0]), point(&a[1]))?.1)),
    row("<->", &[S, B], Float8, |a, _| {
        number(g::closest_in_box_to_segment(corners(&a[1]), segment(&a[0]))?.1)
    }),
    row("<->", &[B, S], Float8, |a, _| {
        number(g::closest_in_box_to_segment(corners(&a[0]), segment(&a[1]))?.1)
    }),
    row("##", &[P, B], P, |a, _| closest(g::closest_in_box(corners(&a[1]), point(&a[0]))?)),
    row("##", &[S, B], P, |a, _| {
        closest(g::closest_in_box_to_segment(corners(&a[1]), segment(&a[0]))?)
    }),
    row("?#", &[S, B], Bool, |a, _| truth(g::box_meets_segment(corners(&a[1]), segment(&a[0]))?)),
    row("?#", &[L, B], Bool, |a, _| truth(g::box_meets_line(corners(&a[1]), line(&a[0]))?)),
];

fn same_box([high, low]: &Corners, [other_high, other_low]: &Corners) -> bool {
    g::same_point(*high, *other_high) && g::same_point(*low, *other_low)
}

/// Returns the box with transformed corners.
fn moved([high, low]: &Corners, change: impl Fn(Point) -> Result<Point>) -> Result<Datum> {
    made(Geometry::Box(g::ordered_corners([change(*high)?, change(*low)?])))
}
