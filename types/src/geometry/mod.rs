//! Plane geometry as in PostgreSQL: distances, intersections and closest points of points,
//! segments, lines, boxes, paths, polygons and circles.
//!
//! The algorithms are those of PostgreSQL's `geo_ops.c`, operation by operation, so that results
//! are identical to the last bit. Numbers within 1e-6 of each other are equal, and overflow and
//! underflow are errors.
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
