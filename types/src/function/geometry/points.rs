//! Functions of points, and of points and lines.

use super::super::argument::float8;
use super::super::{FunctionRow, row};
use super::value::{closest, line, made_point, number, point, segment, truth};
use crate::datatype::DataType::{self, Bool, Float8};
use crate::geometry as g;

const P: DataType = DataType::POINT;
const S: DataType = DataType::LSEG;
const L: DataType = DataType::LINE;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("point", &[Float8, Float8], P, |a, _| made_point(g::at(float8(&a[0]), float8(&a[1])))),
    row("@@", &[S], P, |a, _| {
        let [from, to] = *segment(&a[0]);
        made_point(g::middle(from, to)?)
    }),
    row("+", &[P, P], P, |a, _| made_point(g::add_points(point(&a[0]), point(&a[1]))?)),
    row("-", &[P, P], P, |a, _| made_point(g::subtract_points(point(&a[0]), point(&a[1]))?)),
    row("*", &[P, P], P, |a, _| made_point(g::multiply_points(point(&a[0]), point(&a[1]))?)),
    row("/", &[P, P], P, |a, _| made_point(g::divide_points(point(&a[0]), point(&a[1]))?)),
    row("<<", &[P, P], Bool, |a, _| truth(g::less(point(&a[0]).x, point(&a[1]).x))),
    row(">>", &[P, P], Bool, |a, _| truth(g::greater(point(&a[0]).x, point(&a[1]).x))),
    row("<<|", &[P, P], Bool, |a, _| truth(g::less(point(&a[0]).y, point(&a[1]).y))),
    row("<^", &[P, P], Bool, |a, _| truth(g::less(point(&a[0]).y, point(&a[1]).y))),
    row("|>>", &[P, P], Bool, |a, _| truth(g::greater(point(&a[0]).y, point(&a[1]).y))),
    row(">^", &[P, P], Bool, |a, _| truth(g::greater(point(&a[0]).y, point(&a[1]).y))),
    row("?|", &[P, P], Bool, |a, _| truth(g::same(point(&a[0]).x, point(&a[1]).x))),
    row("isvertical", &[P, P], Bool, |a, _| truth(g::same(point(&a[0]).x, point(&a[1]).x))),
    row("?-", &[P, P], Bool, |a, _| truth(g::same(point(&a[0]).y, point(&a[1]).y))),
    row("ishorizontal", &[P, P], Bool, |a, _| truth(g::same(point(&a[0]).y, point(&a[1]).y))),
    row("~=", &[P, P], Bool, |a, _| truth(g::same_point(point(&a[0]), point(&a[1])))),
    row("<>", &[P, P], Bool, |a, _| truth(!g::same_point(point(&a[0]), point(&a[1])))),
    row("!=", &[P, P], Bool, |a, _| truth(!g::same_point(point(&a[0]), point(&a[1])))),
    row("<->", &[P, P], Float8, |a, _| number(g::distance(point(&a[0]), point(&a[1]))?)),
    row("slope", &[P, P], Float8, |a, _| number(g::slope(point(&a[0]), point(&a[1]))?)),
    row("<@", &[P, L], Bool, |a, _| truth(g::line_contains(line(&a[1]), point(&a[0]))?)),
    row("<@", &[P, S], Bool, |a, _| truth(g::segment_contains(segment(&a[1]), point(&a[0]))?)),
    row("<->", &[P, L], Float8, |a, _| number(g::closest_on_line(line(&a[1]), point(&a[0]))?.1)),
    row("<->", &[L, P], Float8, |a, _| number(g::closest_on_line(line(&a[0]), point(&a[1]))?.1)),
    row("<->", &[P, S], Float8, |a, _| {
        number(g::closest_to_point(segment(&a[1]), point(&a[0]))?.1)
    }),
    row("<->", &[S, P], Float8, |a, _| {
        number(g::closest_to_point(segment(&a[0]), point(&a[1]))?.1)
    }),
    row("##", &[P, L], P, |a, _| closest(g::closest_on_line(line(&a[1]), point(&a[0]))?)),
    row("##", &[P, S], P, |a, _| closest(g::closest_to_point(segment(&a[1]), point(&a[0]))?)),
];
