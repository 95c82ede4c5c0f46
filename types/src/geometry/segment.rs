//! Line segments, by their end points.

use super::line::{Line, closest_on_line, crossing, line_at};
use super::number::{same, sorts_before};
use super::point::{distance, inverse_slope, same_point, slope};
use crate::datum::Point;
use crate::error::Result;

/// The end points.
pub(crate) type Segment = [Point; 2];

/// Returns whether a point is on a segment.
pub(crate) fn segment_contains(segment: &Segment, point: Point) -> Result<bool> {
    let [from, to] = *segment;
    Ok(same(distance(point, from)? + distance(point, to)?, distance(from, to)?))
}

/// Returns the intersection of a segment and a line.
pub(crate) fn crossing_of_line(segment: &Segment, line: &Line) -> Result<Option<Point>> {
    let [from, to] = *segment;
    let own = line_at(from, slope(from, to)?)?;
    let Some(point) = crossing(&own, line)? else { return Ok(None) };
    if !segment_contains(segment, point)? {
        return Ok(None);
    }
    let end = [from, to].into_iter().find(|end| same_point(*end, point));
    Ok(Some(end.unwrap_or(point)))
}

/// Returns the intersection of segments.
pub(crate) fn crossing_of_segments(first: &Segment, second: &Segment) -> Result<Option<Point>> {
    let line = line_at(second[0], slope(second[0], second[1])?)?;
    let Some(point) = crossing_of_line(first, &line)? else { return Ok(None) };
    Ok(segment_contains(second, point)?.then_some(point))
}

/// Returns the point of a segment that is closest to a line, and its distance.
pub(crate) fn closest_to_line(segment: &Segment, line: &Line) -> Result<(Point, f64)> {
    if let Some(point) = crossing_of_line(segment, line)? {
        return Ok((point, 0.0));
    }
    let (_, first) = closest_on_line(line, segment[0])?;
    let (_, second) = closest_on_line(line, segment[1])?;
    Ok(if first < second { (segment[0], first) } else { (segment[1], second) })
}

/// Returns the point of a segment that is closest to another point, and its distance.
pub(crate) fn closest_to_point(segment: &Segment, point: Point) -> Result<(Point, f64)> {
    let perpendicular = line_at(point, inverse_slope(segment[0], segment[1])?)?;
    let (closest, _) = closest_to_line(segment, &perpendicular)?;
    Ok((closest, distance(closest, point)?))
}

/// Returns the point of the first segment that is closest to the other, and its distance.
pub(crate) fn closest_to_segment(on: &Segment, to: &Segment) -> Result<(Point, f64)> {
    if let Some(point) = crossing_of_segments(on, to)? {
        return Ok((point, 0.0));
    }
    let mut best = closest_to_point(on, to[0])?;
    let mut better = |candidate: (Point, f64)| {
        if sorts_before(candidate.1, best.1) {
            best = candidate;
        }
    };
    better(closest_to_point(on, to[1])?);
    better((on[0], closest_to_point(to, on[0])?.1));
    better((on[1], closest_to_point(to, on[1])?.1));
    Ok(best)
}

/// Returns the distance of segments.
pub(crate) fn distance_of_segments(first: &Segment, second: &Segment) -> Result<f64> {
    closest_to_segment(first, second).map(|(_, distance)| distance)
}
