//! Paths: points connected by segments; closed paths also connect the last point with the first.

use super::number::{add, divide, multiply, same, sorts_before, subtract};
use super::point::distance;
use super::rectangle::{bounds, overlap};
use super::segment::{Segment, closest_to_point, crossing_of_segments, distance_of_segments};
use crate::datum::Point;
use crate::error::Result;
use crate::interruptible::InterruptPacer;

/// Cost of a pair of segments in steps of a [`InterruptPacer`].
pub(super) const SEGMENT_STEPS: usize = 128;

/// The points of a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathPoints<'a> {
    pub(crate) is_closed: bool,
    pub(crate) points: &'a [Point],
}

impl<'a> PathPoints<'a> {
    /// Returns the segments; the closing segment is first.
    pub(crate) fn segments(self) -> impl Iterator<Item = Segment> + 'a {
        let last = self.points.last().copied().filter(|_| self.is_closed);
        let closing = last.into_iter().zip(self.points.first()).map(|(from, to)| [from, *to]);
        closing.chain(self.points.windows(2).map(|pair| [pair[0], pair[1]]))
    }

    /// Returns the length.
    pub(crate) fn length(self) -> Result<f64> {
        self.segments().try_fold(0.0, |sum, [from, to]| add(sum, distance(from, to)?))
    }

    /// Returns the enclosed area; `None` if the path is open.
    pub(crate) fn area(self) -> Result<Option<f64>> {
        if !self.is_closed {
            return Ok(None);
        }
        let mut area = 0.0;
        for (index, from) in self.points.iter().enumerate() {
            let to = &self.points[(index + 1) % self.points.len()];
            area = add(area, multiply(from.x, to.y)?)?;
            area = subtract(area, multiply(from.y, to.x)?)?;
        }
        divide(area.abs(), 2.0).map(Some)
    }

    /// Returns whether paths intersect.
    pub(crate) fn meets(
        self,
        other: PathPoints<'_>,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<bool> {
        if !overlap(&bounds(self.points), &bounds(other.points)) {
            return Ok(false);
        }
        for own in self.segments() {
            for segment in other.segments() {
                pace.count_steps(SEGMENT_STEPS)?;
                if crossing_of_segments(&own, &segment)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the minimum distance of segments; `None` if a path has none.
    pub(crate) fn distance(
        self,
        other: PathPoints<'_>,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<Option<f64>> {
        let mut least = None;
        for own in self.segments() {
            for segment in other.segments() {
                pace.count_steps(SEGMENT_STEPS)?;
                let found = distance_of_segments(&own, &segment)?;
                if least.is_none_or(|least| sorts_before(found, least)) {
                    least = Some(found);
                }
            }
        }
        Ok(least)
    }

    /// Returns the distance of a point to the nearest segment; 0 if there are no segments.
    pub(crate) fn distance_to(self, point: Point) -> Result<f64> {
        let mut least: Option<f64> = None;
        for segment in self.segments() {
            let (_, found) = closest_to_point(&segment, point)?;
            if least.is_none_or(|least| sorts_before(found, least)) {
                least = Some(found);
            }
        }
        Ok(least.unwrap_or(0.0))
    }

    /// Returns whether a point is on an open path.
    pub(crate) fn passes(self, point: Point) -> Result<bool> {
        for pair in self.points.windows(2) {
            let detour = add(distance(point, pair[0])?, distance(point, pair[1])?)?;
            if same(detour, distance(pair[0], pair[1])?) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
