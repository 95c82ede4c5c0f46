//! The geometric types.

use super::DataType;

/// A type of [`DataType::Geometry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GeometryKind {
    /// `point`
    Point,
    /// `lseg`: a line segment between two points
    Lseg,
    /// `path`: open or closed
    Path,
    /// `box`: the upper right and the lower left corner
    Box,
    /// `polygon`
    Polygon,
    /// `line`, by the coefficients of `Ax + By + C = 0`
    Line,
    /// `circle`
    Circle,
}

impl DataType {
    /// `point`
    pub const POINT: DataType = DataType::Geometry(GeometryKind::Point);
    /// `lseg`
    pub const LSEG: DataType = DataType::Geometry(GeometryKind::Lseg);
    /// `path`
    pub const PATH: DataType = DataType::Geometry(GeometryKind::Path);
    /// `box`
    pub const BOX: DataType = DataType::Geometry(GeometryKind::Box);
    /// `polygon`
    pub const POLYGON: DataType = DataType::Geometry(GeometryKind::Polygon);
    /// `line`
    pub const LINE: DataType = DataType::Geometry(GeometryKind::Line);
    /// `circle`
    pub const CIRCLE: DataType = DataType::Geometry(GeometryKind::Circle);
}
