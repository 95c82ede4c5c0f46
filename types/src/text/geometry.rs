//! Text format of geometric types; the parser is as lenient as PostgreSQL's.
//!
//! ```text
//! point    (x,y)                 lseg     [(x,y),(x,y)]
//! path     ((x,y),…) [(x,y),…]   box      (x,y),(x,y)
//! polygon  ((x,y),…)             line     {A,B,C}
//! circle   <(x,y),r>
//! ```

use std::sync::Arc;

use super::float;
use crate::datatype::{DataType, GeometryKind};
use crate::datum::{Datum, Geometry, Nested, Point};
use crate::error::{Error, Result};
use crate::geometry::{is_zero, line_through, ordered_corners, same_point};
use crate::interruptible::InterruptPacer;

/// Approximate length of the text of a point.
const POINT_BYTES: usize = 16;

/// Appends a value.
pub(super) fn write(
    value: &Geometry,
    float_digits: i8,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let number = |number: f64, out: &mut Vec<u8>| float::put_f64(number, float_digits, out);
    let (open, close) = match value {
        Geometry::Point(_) | Geometry::Box(_) => ("", ""),
        Geometry::Lseg(_) | Geometry::Path { is_closed: false, .. } => ("[", "]"),
        Geometry::Path { .. } | Geometry::Polygon(_) => ("(", ")"),
        Geometry::Line(_) => ("{", "}"),
        Geometry::Circle { .. } => ("<", ">"),
    };
    out.extend_from_slice(open.as_bytes());
    let points = match value {
        Geometry::Point(point) | Geometry::Circle { center: point, .. } => {
            std::slice::from_ref(point)
        }
        Geometry::Lseg(points) | Geometry::Box(points) => points.as_slice(),
        Geometry::Path { points, .. } | Geometry::Polygon(points) => points,
        Geometry::Line(_) => &[],
    };
    for (index, point) in points.iter().enumerate() {
        pace.step(out, POINT_BYTES)?;
        out.extend_from_slice(if index > 0 { b",(" } else { b"(" });
        number(point.x, out);
        out.push(b',');
        number(point.y, out);
        out.push(b')');
    }
    match value {
        Geometry::Line(coefficients) => {
            for (index, coefficient) in coefficients.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                number(*coefficient, out);
            }
        }
        Geometry::Circle { radius, .. } => {
            out.push(b',');
            number(*radius, out);
        }
        _ => {}
    }
    out.extend_from_slice(close.as_bytes());
    Ok(())
}

/// Parses a value.
pub(super) fn parse(
    text: &str,
    kind: GeometryKind,
    pace: &mut InterruptPacer<'_>,
) -> Result<Datum> {
    let mut reader = Reader { text, rest: text, kind, pace };
    let geometry = match kind {
        GeometryKind::Point => Geometry::Point(reader.pair()?),
        GeometryKind::Lseg => {
            let (points, _) = reader.points(2, true)?;
            Geometry::Lseg(reader.two(&points)?)
        }
        GeometryKind::Box => {
            let (points, _) = reader.points(2, false)?;
            Geometry::Box(ordered_corners(reader.two(&points)?))
        }
        GeometryKind::Path => reader.path()?,
        GeometryKind::Polygon => {
            let count = reader.pair_count()?;
            Geometry::Polygon(reader.points(count, false)?.0)
        }
        GeometryKind::Line => reader.line()?,
        GeometryKind::Circle => reader.circle()?,
    };
    if !reader.rest.is_empty() {
        return Err(reader.bad());
    }
    Ok(Datum::Nested(Nested::Geometry(Arc::new(geometry))))
}

/// Parser state.
struct Reader<'a, 'p> {
    text: &'a str,
    rest: &'a str,
    kind: GeometryKind,
    pace: &'a mut InterruptPacer<'p>,
}

impl Reader<'_, '_> {
    fn bad(&self) -> Error {
        Error::bad_text(DataType::Geometry(self.kind).sql_name(), self.text)
    }

    fn skip_blanks(&mut self) {
        self.rest = super::trimmed_start(self.rest);
    }

    /// Consumes a character if it is next.
    fn takes(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<()> {
        if self.takes(wanted) { Ok(()) } else { Err(self.bad()) }
    }

    /// Consumes a closing bracket and the following blanks.
    fn close(&mut self, bracket: char) -> Result<()> {
        self.expect(bracket)?;
        self.skip_blanks();
        Ok(())
    }

    fn number(&mut self) -> Result<f64> {
        self.skip_blanks();
        let length = float::number_length(self.rest);
        if length == 0 {
            return Err(self.bad());
        }
        let (number, rest) = self.rest.split_at(length);
        let value = float::parse_f64(number)?;
        self.rest = rest;
        self.skip_blanks();
        Ok(value)
    }

    /// Parses `x,y`, with or without parentheses.
    fn pair(&mut self) -> Result<Point> {
        self.skip_blanks();
        let has_parentheses = self.takes('(');
        let x = self.number()?;
        self.expect(',')?;
        let y = self.number()?;
        if has_parentheses {
            self.close(')')?;
        }
        Ok(Point { x, y })
    }

    /// Returns the number of pairs, from the odd number of commas.
    fn pair_count(&self) -> Result<usize> {
        let commas = self.text.bytes().filter(|byte| *byte == b',').count();
        if commas % 2 == 1 { Ok(commas.div_ceil(2)) } else { Err(self.bad()) }
    }

    /// Returns whether the next parenthesis is the last opening one.
    fn is_last_parenthesis(&self) -> bool {
        self.rest.rfind('(') == Some(0)
    }

    /// Parses a number of pairs, with or without brackets or parentheses; also returns whether
    /// they are in brackets.
    fn points(&mut self, count: usize, may_be_open: bool) -> Result<(Vec<Point>, bool)> {
        let mut depth = 0;
        self.skip_blanks();
        let is_open = self.rest.starts_with('[');
        if is_open {
            if !may_be_open {
                return Err(self.bad());
            }
            depth += 1;
            self.takes('[');
        } else if let Some(inside) = self.rest.strip_prefix('(') {
            let inside = super::trimmed_start(inside);
            if inside.starts_with('(') || self.is_last_parenthesis() {
                depth += 1;
                self.rest = inside;
            }
        }
        let mut points = Vec::new();
        for _ in 0..count {
            let point = self.pair()?;
            self.pace.push(&mut points, point)?;
            self.takes(',');
        }
        while depth > 0 {
            if !(self.takes(')') || is_open && depth == 1 && self.takes(']')) {
                return Err(self.bad());
            }
            depth -= 1;
            self.skip_blanks();
        }
        Ok((points, is_open))
    }

    fn two(&self, points: &[Point]) -> Result<[Point; 2]> {
        points.try_into().map_err(|_| self.bad())
    }

    fn path(&mut self) -> Result<Geometry> {
        let count = self.pair_count()?;
        self.skip_blanks();
        let is_wrapped = self.is_last_parenthesis() && self.takes('(');
        let (points, is_open) = self.points(count, true)?;
        if is_wrapped {
            self.close(')')?;
        }
        Ok(Geometry::Path { is_closed: !is_open, points })
    }

    fn line(&mut self) -> Result<Geometry> {
        let invalid =
            |what: &str| err!(INVALID_TEXT_REPRESENTATION: "invalid line specification: {what}");
        self.skip_blanks();
        if !self.takes('{') {
            let (points, _) = self.points(2, true)?;
            let [first, second] = self.two(&points)?;
            if !self.rest.is_empty() {
                return Err(self.bad());
            }
            if same_point(first, second) {
                return Err(invalid("must be two distinct points"));
            }
            return line_through(first, second).map(Geometry::Line);
        }
        let a = self.number()?;
        self.expect(',')?;
        let b = self.number()?;
        self.expect(',')?;
        let c = self.number()?;
        self.close('}')?;
        if !self.rest.is_empty() {
            return Err(self.bad());
        }
        if is_zero(a) && is_zero(b) {
            return Err(invalid("A and B cannot both be zero"));
        }
        Ok(Geometry::Line([a, b, c]))
    }

    fn circle(&mut self) -> Result<Geometry> {
        self.skip_blanks();
        let is_angular = self.takes('<');
        let mut depth = u8::from(is_angular);
        if !is_angular && let Some(inside) = self.rest.strip_prefix('(') {
            let inside = super::trimmed_start(inside);
            if inside.starts_with('(') {
                depth += 1;
                self.rest = inside;
            }
        }
        let center = self.pair()?;
        self.takes(',');
        let radius = self.number()?;
        if radius < 0.0 {
            return Err(self.bad());
        }
        while depth > 0 {
            if !self.takes(')') && !self.takes('>') {
                return Err(self.bad());
            }
            depth -= 1;
            self.skip_blanks();
        }
        Ok(Geometry::Circle { center, radius })
    }
}
