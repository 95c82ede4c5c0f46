//! Plane geometry of PostgreSQL: distances, intersections and closest points of points, segments,
//! lines, boxes, paths, polygons and circles.
//!
//! The algorithms are those of PostgreSQL's `geo_ops.c`, operation by operation, so that answers
//! are the same to the last bit: what lies within 1e-6 of each other is the same, and arithmetic
//! fails where it overflows or vanishes.
//!
//! Modules, bottom up.

mod number;
mod point;
mod line;
mod segment;
mod rectangle;
mod path;
mod polygon;
mod circle;

pub(crate) use self::circle::*;
pub(crate) use self::line::*;
pub(crate) use self::number::*;
pub(crate) use self::path::*;
pub(crate) use self::point::*;
pub(crate) use self::polygon::*;
pub(crate) use self::rectangle::*;
pub(crate) use self::segment::*;
