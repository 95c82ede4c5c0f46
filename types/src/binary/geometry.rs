//! Binary format of geometric types: their numbers (8 bytes each), preceded by the number of
//! points (4 bytes) for polygons and paths, and before that by a byte, 1 if closed, for paths.

use super::bad;
use crate::datatype::{DataType, GeometryKind};
use crate::datum::Geometry;
use crate::error::Result;
use crate::geometry::{is_zero, ordered_corners};
use crate::interruptible::InterruptPacer;

/// Appends a value.
pub(super) fn write(
    value: &Geometry,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if let Geometry::Path { points, .. } | Geometry::Polygon(points) = value {
        if value.kind() == GeometryKind::Path {
            out.push(u8::from(value.is_closed_path()));
        }
        out.extend_from_slice(&(points.len() as u32).to_be_bytes());
    }
    for number in value.numbers() {
        pace.step(out, size_of::<f64>())?;
        out.extend_from_slice(&number.to_be_bytes());
    }
    Ok(())
}

/// Decodes a value.
pub(super) fn parse(bytes: &[u8], kind: GeometryKind) -> Result<Geometry> {
    let data_type = DataType::Geometry(kind);
    let name = data_type.sql_name();
    let short = || bad("insufficient data left in message");
    let (mut is_closed, mut rest, mut wanted) = (false, bytes, None);
    if kind == GeometryKind::Path {
        let (closed, behind) = bytes.split_first().ok_or_else(short)?;
        (is_closed, rest) = (*closed != 0, behind);
    }
    if matches!(kind, GeometryKind::Path | GeometryKind::Polygon) {
        let (count, behind) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        let count = usize::try_from(i32::from_be_bytes(*count)).ok();
        let count = count.filter(|count| (1..i32::MAX as usize / 16).contains(count));
        let count = count.ok_or_else(|| {
            bad(&format!("invalid number of points in external \"{name}\" value"))
        })?;
        (wanted, rest) = (Some(2 * count), behind);
    }
    let wanted = wanted.unwrap_or(match kind {
        GeometryKind::Point => 2,
        GeometryKind::Line | GeometryKind::Circle => 3,
        _ => 4,
    });
    let (numbers, left) = rest.as_chunks::<8>();
    if numbers.len() < wanted {
        return Err(short());
    }
    if numbers.len() > wanted || !left.is_empty() {
        return Err(bad(&format!("incorrect binary data format for type {name}")));
    }
    let numbers: Vec<f64> = numbers.iter().map(|bytes| f64::from_be_bytes(*bytes)).collect();
    match Geometry::of_numbers(kind, is_closed, &numbers).ok_or_else(short)? {
        Geometry::Box(corners) => Ok(Geometry::Box(ordered_corners(corners))),
        Geometry::Line([a, b, _]) if is_zero(a) && is_zero(b) => {
            Err(bad("invalid line specification: A and B cannot both be zero"))
        }
        Geometry::Circle { radius, .. } if radius < 0.0 => {
            Err(bad("invalid radius in external \"circle\" value"))
        }
        other => Ok(other),
    }
}
