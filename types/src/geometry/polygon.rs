//! Polygons: the areas of closed paths.

use super::number::sorts_before;
use super::number::{add, at_least, at_most, divide, greater, is_zero, less, multiply, subtract};
use super::path::{PathPoints, SEGMENT_STEPS};
use super::point::{at, distance, middle, same_point};
use super::rectangle::{bounds, box_contains_box, overlap};
use super::segment::{Segment, closest_to_point, crossing_of_segments, segment_contains};
use crate::datum::Point;
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;

/// Maximum recursion depth of the containment test.
const MAX_DEPTH: usize = 1_000;

/// Returns the outline of a polygon.
fn outline(points: &[Point]) -> PathPoints<'_> {
    PathPoints { is_closed: true, points }
}

/// Crossing of a segment with the positive x axis: plus or minus 2 by its direction, 1 if an end
/// is on the axis.
enum Crossing {
    Count(i32),
    /// The origin is on the segment.
    OnSegment,
}

/// Returns the crossing of the segment between two points.
fn axis_crossing(to: Point, from: Point) -> Result<Crossing> {
    let count = |count| Ok(Crossing::Count(count));
    let on_axis =
        |is_beside: bool| Ok(if is_beside { Crossing::Count(0) } else { Crossing::OnSegment });
    if is_zero(to.y) {
        if is_zero(to.x) {
            return Ok(Crossing::OnSegment);
        }
        if greater(to.x, 0.0) {
            if is_zero(from.y) {
                return on_axis(greater(from.x, 0.0));
            }
            return count(if less(from.y, 0.0) { 1 } else { -1 });
        }
        if is_zero(from.y) {
            return on_axis(less(from.x, 0.0));
        }
        return count(0);
    }
    let is_up = greater(to.y, 0.0);
    let sign = if is_up { 1 } else { -1 };
    if is_zero(from.y) {
        return count(if less(from.x, 0.0) { 0 } else { sign });
    }
    if !is_up && less(from.y, 0.0) || is_up && greater(from.y, 0.0) {
        return count(0);
    }
    if at_least(to.x, 0.0) && greater(from.x, 0.0) {
        return count(2 * sign);
    }
    if less(to.x, 0.0) && at_most(from.x, 0.0) {
        return count(0);
    }
    let z = subtract(
        multiply(subtract(to.x, from.x)?, to.y)?,
        multiply(subtract(to.y, from.y)?, to.x)?,
    )?;
    if is_zero(z) {
        return Ok(Crossing::OnSegment);
    }
    let is_left = !is_up && less(z, 0.0) || is_up && greater(z, 0.0);
    count(if is_left { 0 } else { 2 * sign })
}

/// Returns whether a point is inside a polygon or on its outline.
pub(crate) fn polygon_contains(points: &[Point], point: Point) -> Result<bool> {
    let relative = |other: &Point| -> Result<Point> {
        Ok(at(subtract(other.x, point.x)?, subtract(other.y, point.y)?))
    };
    let Some((first, others)) = points.split_first() else { return Ok(false) };
    let first = relative(first)?;
    let (mut from, mut total) = (first, 0);
    for next in others.iter().map(relative).chain([Ok(first)]) {
        let next = next?;
        match axis_crossing(next, from)? {
            Crossing::OnSegment => return Ok(true),
            Crossing::Count(count) => total += count,
        }
        from = next;
    }
    Ok(total != 0)
}

/// Returns whether polygons are equal, with any first point and orientation.
pub(crate) fn same_polygon(first: &[Point], second: &[Point]) -> bool {
    let count = first.len();
    if count != second.len() {
        return false;
    }
    (0..count).any(|start| {
        let agrees = |place: &dyn Fn(usize) -> usize| {
            (0..count).all(|index| same_point(second[place(index)], first[index]))
        };
        agrees(&|index| (start + index) % count) || agrees(&|index| (start + count - index) % count)
    })
}

/// Returns whether polygons intersect.
pub(crate) fn polygons_overlap(
    first: &[Point],
    second: &[Point],
    pace: &mut InterruptPacer<'_>,
) -> Result<bool> {
    if !overlap(&bounds(first), &bounds(second)) {
        return Ok(false);
    }
    for own in outline(first).segments() {
        for segment in outline(second).segments() {
            pace.count_steps(SEGMENT_STEPS)?;
            if crossing_of_segments(&own, &segment)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(polygon_contains(second, first[0])? || polygon_contains(first, second[0])?)
}

/// Returns the distance of polygons, 0 if they overlap.
pub(crate) fn distance_of_polygons(
    first: &[Point],
    second: &[Point],
    pace: &mut InterruptPacer<'_>,
) -> Result<Option<f64>> {
    if polygons_overlap(first, second, pace)? {
        return Ok(Some(0.0));
    }
    outline(first).distance(outline(second), pace)
}

/// Returns the distance of a point to a polygon, 0 if it is inside.
pub(crate) fn distance_to_polygon(points: &[Point], point: Point) -> Result<f64> {
    if polygon_contains(points, point)? {
        return Ok(0.0);
    }
    let mut least: Option<f64> = None;
    for segment in outline(points).segments() {
        // The closing segment goes from the first point to the last here.
        let segment = if least.is_none() { [segment[1], segment[0]] } else { segment };
        let (_, found) = closest_to_point(&segment, point)?;
        if least.is_none_or(|least| sorts_before(found, least)) {
            least = Some(found);
        }
    }
    Ok(least.unwrap_or(0.0))
}

/// Returns whether the first polygon contains the second.
pub(crate) fn polygon_contains_polygon(
    outer: &[Point],
    inner: &[Point],
    pace: &mut InterruptPacer<'_>,
) -> Result<bool> {
    if !box_contains_box(&bounds(outer), &bounds(inner)) {
        return Ok(false);
    }
    let mut inside = Inside { polygon: outer, pace, depth: 0 };
    for [from, to] in outline(inner).segments() {
        if !inside.segment(from, to, 0)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Test of segments for containment in a polygon.
struct Inside<'a, 'p> {
    polygon: &'a [Point],
    pace: &'a mut InterruptPacer<'p>,
    depth: usize,
}

impl Inside<'_, '_> {
    /// Returns whether a segment is inside, considering the edges from `start` on.
    fn segment(&mut self, from: Point, to: Point, start: usize) -> Result<bool> {
        if self.depth == MAX_DEPTH {
            bail!(STATEMENT_TOO_COMPLEX: "polygon is too complex");
        }
        self.depth += 1;
        let result = self.segment_within(&[from, to], start);
        self.depth -= 1;
        result
    }

    fn segment_within(&mut self, segment: &Segment, start: usize) -> Result<bool> {
        let [from, to] = *segment;
        let before = start.checked_sub(1).unwrap_or(self.polygon.len() - 1);
        let (mut edge_start, mut crosses) = (self.polygon[before], false);
        for index in start..self.polygon.len() {
            self.pace.count_steps(SEGMENT_STEPS)?;
            let edge = [edge_start, self.polygon[index]];
            let is_inside = if segment_contains(&edge, from)? {
                if segment_contains(&edge, to)? {
                    return Ok(true);
                }
                self.touching(from, to, &edge, index + 1)?
            } else if segment_contains(&edge, to)? {
                self.touching(to, from, &edge, index + 1)?
            } else if let Some(point) = crossing_of_segments(segment, &edge)? {
                crosses = true;
                self.segment(from, point, index + 1)? && self.segment(to, point, index + 1)?
            } else {
                true
            };
            if !is_inside {
                return Ok(false);
            }
            edge_start = edge[1];
        }
        if crosses {
            return Ok(true);
        }
        polygon_contains(self.polygon, middle(from, to)?)
    }

    /// As [`Inside::segment`], for a segment whose first end is on an edge.
    fn touching(&mut self, on: Point, off: Point, edge: &Segment, start: usize) -> Result<bool> {
        let segment = [on, off];
        let [first, second] = *edge;
        let beyond = if same_point(on, first) {
            segment_contains(&segment, second)?.then_some(second)
        } else if same_point(on, second) || segment_contains(&segment, first)? {
            segment_contains(&segment, first)?.then_some(first)
        } else {
            segment_contains(&segment, second)?.then_some(second)
        };
        match beyond {
            Some(end) => self.segment(off, end, start),
            None => Ok(true),
        }
    }
}

/// Returns the centroid of the points, and their mean distance to it.
pub(crate) fn circle_of_polygon(points: &[Point]) -> Result<(Point, f64)> {
    let count = points.len() as f64;
    let (mut x, mut y) = (0.0, 0.0);
    for point in points {
        (x, y) = (add(x, point.x)?, add(y, point.y)?);
    }
    let center = at(divide(x, count)?, divide(y, count)?);
    let mut sum = 0.0;
    for point in points {
        sum = add(sum, distance(*point, center)?)?;
    }
    Ok((center, divide(sum, count)?))
}
