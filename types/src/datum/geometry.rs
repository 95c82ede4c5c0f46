//! Values of the geometric types.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::datatype::GeometryKind;

/// A `point`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Point {
    /// The horizontal coordinate.
    pub x: f64,
    /// The vertical coordinate.
    pub y: f64,
}

/// A value of a geometric type.
#[derive(Debug, Clone)]
pub enum Geometry {
    /// `point`
    Point(Point),
    /// `lseg`, with its start and end
    Lseg([Point; 2]),
    /// `path`, with at least one point
    Path {
        /// Closed: the last point is connected to the first.
        is_closed: bool,
        /// The points, in order.
        points: Vec<Point>,
    },
    /// `box`: the upper right corner, then the lower left one
    Box([Point; 2]),
    /// `polygon`, with at least one point
    Polygon(Vec<Point>),
    /// `line`: A, B and C of `Ax + By + C = 0`
    Line([f64; 3]),
    /// `circle`
    Circle {
        /// The center.
        center: Point,
        /// 0 or more, or NaN.
        radius: f64,
    },
}

impl Geometry {
    /// Returns the type.
    pub fn kind(&self) -> GeometryKind {
        match self {
            Geometry::Point(_) => GeometryKind::Point,
            Geometry::Lseg(_) => GeometryKind::Lseg,
            Geometry::Path { .. } => GeometryKind::Path,
            Geometry::Box(_) => GeometryKind::Box,
            Geometry::Polygon(_) => GeometryKind::Polygon,
            Geometry::Line(_) => GeometryKind::Line,
            Geometry::Circle { .. } => GeometryKind::Circle,
        }
    }

    /// Returns the numbers in the order of the binary format.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        let (points, numbers): (&[Point], &[f64]) = match self {
            Geometry::Point(point) => (std::slice::from_ref(point), &[]),
            Geometry::Lseg(points) | Geometry::Box(points) => (points, &[]),
            Geometry::Path { points, .. } | Geometry::Polygon(points) => (points, &[]),
            Geometry::Line(numbers) => (&[], numbers),
            Geometry::Circle { center, radius } => {
                (std::slice::from_ref(center), std::slice::from_ref(radius))
            }
        };
        points.iter().flat_map(|point| [point.x, point.y]).chain(numbers.iter().copied())
    }

    /// Returns whether it is a closed path.
    pub fn is_closed_path(&self) -> bool {
        matches!(self, Geometry::Path { is_closed: true, .. })
    }

    /// Returns the value of a kind with these numbers; `None` if their count does not match.
    pub fn of_numbers(kind: GeometryKind, is_closed: bool, numbers: &[f64]) -> Option<Geometry> {
        let (pairs, rest) = numbers.as_chunks::<2>();
        let mut points = pairs.iter().map(|[x, y]| Point { x: *x, y: *y });
        let geometry = match (kind, pairs, rest) {
            (GeometryKind::Point, [_], []) => Geometry::Point(points.next()?),
            (GeometryKind::Lseg, [_, _], []) => Geometry::Lseg([points.next()?, points.next()?]),
            (GeometryKind::Box, [_, _], []) => Geometry::Box([points.next()?, points.next()?]),
            (GeometryKind::Path, [_, ..], []) => {
                Geometry::Path { is_closed, points: points.collect() }
            }
            (GeometryKind::Polygon, [_, ..], []) => Geometry::Polygon(points.collect()),
            (GeometryKind::Line, [[a, b]], [c]) => Geometry::Line([*a, *b, *c]),
            (GeometryKind::Circle, [_], [radius]) => {
                Geometry::Circle { center: points.next()?, radius: *radius }
            }
            _ => return None,
        };
        Some(geometry)
    }

    /// Compares kinds and bits: an arbitrary order in which only identical values are equal.
    pub(super) fn compare(&self, other: &Geometry) -> Ordering {
        let kinds =
            (self.kind(), self.is_closed_path()).cmp(&(other.kind(), other.is_closed_path()));
        let bits = |geometry: &Geometry| geometry.numbers().map(f64::to_bits).collect::<Vec<_>>();
        kinds.then_with(|| bits(self).cmp(&bits(other)))
    }

    /// Returns the bytes held.
    pub(super) fn heap_bytes(&self) -> usize {
        let points = match self {
            Geometry::Path { points, .. } | Geometry::Polygon(points) => points.capacity(),
            _ => 0,
        };
        size_of::<Geometry>() + points * size_of::<Point>()
    }
}

impl PartialEq for Geometry {
    fn eq(&self, other: &Geometry) -> bool {
        self.compare(other).is_eq()
    }
}

impl Hash for Geometry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind(), self.is_closed_path()).hash(state);
        self.numbers().for_each(|number| number.to_bits().hash(state));
    }
}
