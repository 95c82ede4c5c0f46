//! Functions of lines and segments.

use super::super::{FunctionRow, row};
use super::value::{closest, line, made, number, point, point_or_null, segment, truth};
use crate::datatype::DataType::{self, Bool, Float8};
use crate::datum::{Datum, Geometry, Point};
use crate::error::{Error, Result};
use crate::geometry::{self as g, Line, Segment};

const P: DataType = DataType::POINT;
const S: DataType = DataType::LSEG;
const L: DataType = DataType::LINE;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("line", &[P, P], L, |a, _| new_line(point(&a[0]), point(&a[1]))),
    row("?#", &[L, L], Bool, |a, _| truth(g::crossing(line(&a[0]), line(&a[1]))?.is_some())),
    row("?||", &[L, L], Bool, |a, _| truth(g::crossing(line(&a[0]), line(&a[1]))?.is_none())),
    row("isparallel", &[L, L], Bool, |a, _| {
        truth(g::crossing(line(&a[0]), line(&a[1]))?.is_none())
    }),
    row("?-|", &[L, L], Bool, |a, _| truth(g::are_perpendicular(line(&a[0]), line(&a[1]))?)),
    row("isperp", &[L, L], Bool, |a, _| truth(g::are_perpendicular(line(&a[0]), line(&a[1]))?)),
    row("?|", &[L], Bool, |a, _| truth(g::is_zero(line(&a[0])[1]))),
    row("isvertical", &[L], Bool, |a, _| truth(g::is_zero(line(&a[0])[1]))),
    row("?-", &[L], Bool, |a, _| truth(g::is_zero(line(&a[0])[0]))),
    row("ishorizontal", &[L], Bool, |a, _| truth(g::is_zero(line(&a[0])[0]))),
    row("=", &[L, L], Bool, |a, _| truth(g::same_line(line(&a[0]), line(&a[1]))?)),
    row("<->", &[L, L], Float8, |a, _| number(g::distance_of_lines(line(&a[0]), line(&a[1]))?)),
    row("#", &[L, L], P, |a, _| point_or_null(g::crossing(line(&a[0]), line(&a[1]))?)),
    row("lseg", &[P, P], S, |a, _| made(Geometry::Lseg([point(&a[0]), point(&a[1])]))),
    row("@-@", &[S], Float8, |a, _| number(length(segment(&a[0]))?)),
    row("length", &[S], Float8, |a, _| number(length(segment(&a[0]))?)),
    row("?#", &[S, S], Bool, |a, _| {
        truth(g::crossing_of_segments(segment(&a[0]), segment(&a[1]))?.is_some())
    }),
    row("#", &[S, S], P, |a, _| {
        point_or_null(g::crossing_of_segments(segment(&a[0]), segment(&a[1]))?)
    }),
    row("?||", &[S, S], Bool, |a, _| {
        truth(g::same(slope(segment(&a[0]))?, slope(segment(&a[1]))?))
    }),
    row("isparallel", &[S, S], Bool, |a, _| {
        truth(g::same(slope(segment(&a[0]))?, slope(segment(&a[1]))?))
    }),
    row("?-|", &[S, S], Bool, |a, _| {
        truth(g::same(
            slope(segment(&a[0]))?,
            g::inverse_slope(segment(&a[1])[0], segment(&a[1])[1])?,
        ))
    }),
    row("isperp", &[S, S], Bool, |a, _| {
        truth(g::same(
            slope(segment(&a[0]))?,
            g::inverse_slope(segment(&a[1])[0], segment(&a[1])[1])?,
        ))
    }),
    row("?|", &[S], Bool, |a, _| truth(g::same(segment(&a[0])[0].x, segment(&a[0])[1].x))),
    row("isvertical", &[S], Bool, |a, _| truth(g::same(segment(&a[0])[0].x, segment(&a[0])[1].x))),
    row("?-", &[S], Bool, |a, _| truth(g::same(segment(&a[0])[0].y, segment(&a[0])[1].y))),
    row("ishorizontal", &[S], Bool, |a, _| {
        truth(g::same(segment(&a[0])[0].y, segment(&a[0])[1].y))
    }),
    row("=", &[S, S], Bool, |a, _| truth(same_segment(segment(&a[0]), segment(&a[1])))),
    row("<>", &[S, S], Bool, |a, _| truth(!same_segment(segment(&a[0]), segment(&a[1])))),
    row("!=", &[S, S], Bool, |a, _| truth(!same_segment(segment(&a[0]), segment(&a[1])))),
    row("<", &[S, S], Bool, |a, _| {
        truth(g::less(length(segment(&a[0]))?, length(segment(&a[1]))?))
    }),
    row("<=", &[S, S], Bool, |a, _| {
        truth(g::at_most(length(segment(&a[0]))?, length(segment(&a[1]))?))
    }),
    row(">", &[S, S], Bool, |a, _| {
        truth(g::greater(length(segment(&a[0]))?, length(segment(&a[1]))?))
    }),
    row(">=", &[S, S], Bool, |a, _| {
        truth(g::at_least(length(segment(&a[0]))?, length(segment(&a[1]))?))
    }),
    row("<->", &[S, S], Float8, |a, _| {
        number(g::distance_of_segments(segment(&a[0]), segment(&a[1]))?)
    }),
    row("?#", &[S, L], Bool, |a, _| {
        truth(g::crossing_of_line(segment(&a[0]), line(&a[1]))?.is_some())
    }),
    row("<->", &[S, L], Float8, |a, _| number(g::closest_to_line(segment(&a[0]), line(&a[1]))?.1)),
    row("<->", &[L, S], Float8, |a, _| number(g::closest_to_line(segment(&a[1]), line(&a[0]))?.1)),
    row("<@", &[S, L], Bool, |a, _| {
        truth(
            g::line_contains(line(&a[1]), segment(&a[0])[0])?
                && g::line_contains(line(&a[1]), segment(&a[0])[1])?,
        )
    }),
    row("##", &[S, S], P, |a, _| closest_of_segments(segment(&a[0]), segment(&a[1]))),
    row("##", &[L, S], P, |a, _| closest_of_line(line(&a[0]), segment(&a[1]))),
];

fn new_line(from: Point, to: Point) -> Result<Datum> {
    if g::same_point(from, to) {
        bail!(INVALID_PARAMETER_VALUE: "invalid line specification: must be two distinct points");
    }
    made(Geometry::Line(g::line_through(from, to)?))
}

fn length([from, to]: &Segment) -> Result<f64> {
    g::distance(*from, *to)
}

fn slope([from, to]: &Segment) -> Result<f64> {
    g::slope(*from, *to)
}

fn same_segment([from, to]: &Segment, [other_from, other_to]: &Segment) -> bool {
    g::same_point(*from, *other_from) && g::same_point(*to, *other_to)
}

/// Returns the point of the second segment that is closest to the first; NULL if they are
/// parallel.
fn closest_of_segments(to: &Segment, on: &Segment) -> Result<Datum> {
    if slope(to)? == slope(on)? {
        return Ok(Datum::Null);
    }
    closest(g::closest_to_segment(on, to)?)
}

/// Returns the point of a segment that is closest to a line; NULL if they are parallel.
fn closest_of_line(to: &Line, on: &Segment) -> Result<Datum> {
    if slope(on)? == g::slope_of_line(to)? {
        return Ok(Datum::Null);
    }
    closest(g::closest_to_line(on, to)?)
}
