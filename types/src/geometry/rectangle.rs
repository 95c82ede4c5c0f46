//! Boxes, by their upper right and their lower left corner.

use super::line::Line;
use super::number::{
    at_least, at_most, greater, larger, less, multiply, smaller, sorts_before, subtract,
};
use super::point::{at, middle};
use super::segment::{
    Segment, closest_to_point, closest_to_segment, crossing_of_line, crossing_of_segments,
};
use crate::datum::{Point, compare_floats};
use crate::error::Result;

/// The upper right corner, then the lower left one.
pub(crate) type Corners = [Point; 2];

/// Returns the box with two opposite corners.
pub(crate) fn ordered_corners([a, b]: [Point; 2]) -> Corners {
    let order = |a: f64, b: f64| if compare_floats(a, b).is_gt() { (a, b) } else { (b, a) };
    let ((right, left), (top, bottom)) = (order(a.x, b.x), order(a.y, b.y));
    [at(right, top), at(left, bottom)]
}

/// Relative position of two extents along an axis.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RectangleSide {
    /// Entirely before the other.
    Before,
    /// Not extending beyond the other.
    NotBeyond,
    /// Entirely after the other.
    Behind,
    /// Not extending before the other.
    NotBefore,
}

impl RectangleSide {
    /// Returns whether an extent, from low to high, has this position relative to another.
    pub(crate) fn holds(self, one: [f64; 2], other: [f64; 2]) -> bool {
        match self {
            RectangleSide::Before => less(one[1], other[0]),
            RectangleSide::NotBeyond => at_most(one[1], other[1]),
            RectangleSide::Behind => greater(one[0], other[1]),
            RectangleSide::NotBefore => at_least(one[0], other[0]),
        }
    }
}

/// Returns the horizontal extent.
pub(crate) fn span_across([high, low]: &Corners) -> [f64; 2] {
    [low.x, high.x]
}

/// Returns the vertical extent.
pub(crate) fn span_up([high, low]: &Corners) -> [f64; 2] {
    [low.y, high.y]
}

/// Returns whether boxes intersect.
pub(crate) fn overlap([high, low]: &Corners, [other_high, other_low]: &Corners) -> bool {
    at_most(low.x, other_high.x)
        && at_most(other_low.x, high.x)
        && at_most(low.y, other_high.y)
        && at_most(other_low.y, high.y)
}

/// Returns whether the first box contains the second.
pub(crate) fn box_contains_box([high, low]: &Corners, [inner, inner_low]: &Corners) -> bool {
    at_least(high.x, inner.x)
        && at_most(low.x, inner_low.x)
        && at_least(high.y, inner.y)
        && at_most(low.y, inner_low.y)
}

/// Returns whether a box contains a point.
pub(crate) fn box_contains([high, low]: &Corners, point: Point) -> bool {
    high.x >= point.x && low.x <= point.x && high.y >= point.y && low.y <= point.y
}

/// Returns the width.
pub(crate) fn width([high, low]: &Corners) -> Result<f64> {
    subtract(high.x, low.x)
}

/// Returns the height.
pub(crate) fn height([high, low]: &Corners) -> Result<f64> {
    subtract(high.y, low.y)
}

/// Returns the area of a box.
pub(crate) fn area_of_box(corners: &Corners) -> Result<f64> {
    multiply(width(corners)?, height(corners)?)
}

/// Returns the center of a box.
pub(crate) fn center_of_box([high, low]: &Corners) -> Result<Point> {
    middle(*high, *low)
}

/// Returns the intersection of boxes.
pub(crate) fn intersection(first: &Corners, second: &Corners) -> Option<Corners> {
    let ([high, low], [other_high, other_low]) = (first, second);
    overlap(first, second).then(|| {
        [
            at(smaller(high.x, other_high.x), smaller(high.y, other_high.y)),
            at(larger(low.x, other_low.x), larger(low.y, other_low.y)),
        ]
    })
}

/// Returns the bounding box of points.
pub(crate) fn bounds(points: &[Point]) -> Corners {
    let first = points.first().copied().unwrap_or_default();
    let (mut high, mut low) = (first, first);
    for point in points {
        high = at(larger(point.x, high.x), larger(point.y, high.y));
        low = at(smaller(point.x, low.x), smaller(point.y, low.y));
    }
    [high, low]
}

/// Returns the sides, in PostgreSQL's order.
pub(crate) fn sides([high, low]: &Corners) -> [Segment; 4] {
    let (top_left, bottom_right) = (at(low.x, high.y), at(high.x, low.y));
    [[*low, top_left], [*high, top_left], [*low, bottom_right], [*high, bottom_right]]
}

/// Returns whether a segment intersects a box.
pub(crate) fn box_meets_segment(corners: &Corners, segment: &Segment) -> Result<bool> {
    let [from, to] = *segment;
    let around = [
        at(larger(from.x, to.x), larger(from.y, to.y)),
        at(smaller(from.x, to.x), smaller(from.y, to.y)),
    ];
    if !overlap(&around, corners) {
        return Ok(false);
    }
    if box_contains(corners, from) || box_contains(corners, to) {
        return Ok(true);
    }
    for side in sides(corners) {
        if crossing_of_segments(&side, segment)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a line intersects a box.
pub(crate) fn box_meets_line([high, low]: &Corners, line: &Line) -> Result<bool> {
    let (top_left, bottom_right) = (at(low.x, high.y), at(high.x, low.y));
    let ring = [*low, top_left, *high, bottom_right, *low];
    for pair in ring.windows(2) {
        if crossing_of_line(&[pair[0], pair[1]], line)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the closest of the points that `closest` returns for the sides.
fn best_of_sides(
    corners: &Corners,
    closest: impl Fn(&Segment) -> Result<(Point, f64)>,
) -> Result<(Point, f64)> {
    let [first, others @ ..] = sides(corners);
    let mut best = closest(&first)?;
    for side in others {
        let candidate = closest(&side)?;
        if sorts_before(candidate.1, best.1) {
            best = candidate;
        }
    }
    Ok(best)
}

/// Returns the point of a box that is closest to another point, and its distance.
pub(crate) fn closest_in_box(corners: &Corners, point: Point) -> Result<(Point, f64)> {
    if box_contains(corners, point) {
        return Ok((point, 0.0));
    }
    best_of_sides(corners, |side| closest_to_point(side, point))
}

/// Returns the point of a box that is closest to a segment, and its distance.
pub(crate) fn closest_in_box_to_segment(
    corners: &Corners,
    segment: &Segment,
) -> Result<(Point, f64)> {
    if box_meets_segment(corners, segment)? {
        let (closest, _) = closest_to_point(segment, center_of_box(corners)?)?;
        return Ok((closest, 0.0));
    }
    best_of_sides(corners, |side| closest_to_segment(side, segment))
}
