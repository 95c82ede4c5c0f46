//! Text format of arrays: `{1,NULL,"a b"}`, with a prefix such as `[2:3]=` if a lower bound is
//! not 1.

use super::{TextStyle, parse as parse_value, write_at};
use crate::datatype::DataType;
use crate::datum::{Array, Datum, Dimension, MAX_DIMENSIONS, MAX_ELEMENTS};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;

/// Appends an array.
pub(super) fn write(
    array: &Array,
    element: &DataType,
    style: &TextStyle,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if array.dimensions.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    if array.dimensions.iter().any(|dimension| dimension.lower != 1) {
        for dimension in &array.dimensions {
            let bounds = format!("[{}:{}]", dimension.lower, dimension.upper());
            out.extend_from_slice(bounds.as_bytes());
        }
        out.push(b'=');
    }
    Writer { elements: array.elements.iter(), element: element.clone(), style, pace, out }
        .level(&array.dimensions)
}

/// Appends an `int2vector` or `oidvector`: numbers separated by blanks.
pub(super) fn write_vector(array: &Array, out: &mut Vec<u8>) {
    for (index, value) in array.elements.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        super::write_i64(value.as_i64().unwrap_or_default(), out);
    }
}

/// Parses an `int2vector` or `oidvector`.
pub(super) fn parse_vector(text: &str, data_type: &DataType, style: &TextStyle) -> Result<Array> {
    let element = data_type.element().unwrap_or(&DataType::Oid);
    let numbers = text.split_ascii_whitespace();
    let elements: Vec<Datum> =
        numbers.map(|number| parse_value(number, element, style)).collect::<Result<_>>()?;
    Ok(Array::from_zero(elements))
}

/// Writer of the remaining elements.
struct Writer<'a, 'p> {
    elements: std::slice::Iter<'a, Datum>,
    element: DataType,
    style: &'a TextStyle,
    pace: &'a mut InterruptPacer<'p>,
    out: &'a mut Vec<u8>,
}

impl Writer<'_, '_> {
    fn level(&mut self, dimensions: &[Dimension]) -> Result<()> {
        let Some((outer, inner)) = dimensions.split_first() else { return Ok(()) };
        self.out.push(b'{');
        for index in 0..outer.length {
            self.pace.step(self.out, ELEMENT)?;
            if index > 0 {
                self.out.push(self.element.delimiter() as u8);
            }
            if inner.is_empty() {
                match self.elements.next() {
                    None | Some(Datum::Null) => self.out.extend_from_slice(b"NULL"),
                    Some(value) => self.value(value)?,
                }
            } else {
                self.level(inner)?;
            }
        }
        self.out.push(b'}');
        Ok(())
    }

    fn value(&mut self, value: &Datum) -> Result<()> {
        let start = self.out.len();
        write_at(value, &self.element, self.style, self.pace, self.out)?;
        let written = &self.out[start..];
        self.pace.count_steps(written.len())?;
        let delimiter = self.element.delimiter() as u8;
        let special = |byte: &u8| {
            *byte == delimiter || matches!(byte, b'"' | b'\\' | b'{' | b'}' | b' ' | b'\t'..=b'\r')
        };
        let quoted = written.is_empty()
            || written.iter().any(special)
            || written.eq_ignore_ascii_case(b"null");
        if !quoted {
            return Ok(());
        }
        let written: Vec<u8> = self.pace.copy(written)?;
        self.out.truncate(start);
        self.out.push(b'"');
        for byte in written {
            self.pace.step(self.out, 1)?;
            if matches!(byte, b'"' | b'\\') {
                self.out.push(b'\\');
            }
            self.out.push(byte);
        }
        self.out.push(b'"');
        Ok(())
    }
}

/// Cost of an element in addition to its bytes, for the interrupt check.
const ELEMENT: usize = 16;

/// Parses an array.
pub(super) fn parse(text: &str, element: &DataType, style: &TextStyle) -> Result<Array> {
    let pace = InterruptPacer::new(&style.interrupt);
    let delimiter = element.delimiter();
    let (elements, lengths) = (Vec::new(), Vec::new());
    let mut reader = Reader { text, rest: text, delimiter, elements, lengths, pace };
    let bounds = reader.bounds()?;
    if !reader.rest.starts_with('{') {
        return Err(match bounds {
            Some(_) => malformed(text, "Array contents must start with \"{\"."),
            None => malformed(text, "Array value must start with \"{\" or dimension information."),
        });
    }
    reader.level(0)?;
    if !reader.rest.trim_start().is_empty() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    if reader.elements.is_empty() {
        return Ok(Array::default());
    }
    let lengths = reader.lengths;
    let dimensions = match bounds {
        None => lengths.iter().map(|&length| Dimension { lower: 1, length }).collect(),
        Some(bounds) => {
            let given: Vec<usize> = bounds.iter().map(|bound| bound.length).collect();
            if given != lengths {
                let detail = "Specified array dimensions do not match array contents.";
                return Err(malformed(text, detail));
            }
            bounds
        }
    };
    // The syntax of the whole text is checked before elements are parsed.
    let mut elements = reader.pace.list(reader.elements.len())?;
    for text in reader.elements {
        reader.pace.count_steps(ELEMENT)?;
        elements.push(match text {
            Some(text) => parse_value(&text, element, style)?,
            None => Datum::Null,
        });
    }
    Ok(Array { dimensions, elements })
}

fn malformed(text: &str, detail: &str) -> Error {
    err!(INVALID_TEXT_REPRESENTATION: "malformed array literal: \"{text}\""; detail detail)
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    delimiter: char,
    /// Texts of the elements; `None` for NULL.
    elements: Vec<Option<String>>,
    /// Length of each dimension, from its first array.
    lengths: Vec<usize>,
    pace: InterruptPacer<'a>,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    }

    /// Parses `[1:3][2:5]=`.
    fn bounds(&mut self) -> Result<Option<Vec<Dimension>>> {
        self.skip_blanks();
        let mut bounds = Vec::new();
        while let Some(rest) = self.rest.strip_prefix('[') {
            let detail = "Missing \"]\" after array dimensions.";
            let (inside, rest) =
                rest.split_once(']').ok_or_else(|| malformed(self.text, detail))?;
            let (lower, upper) = inside.split_once(':').unwrap_or(("1", inside));
            let number = |text: &str| {
                let detail = "\"[\" must introduce explicitly-specified array dimensions.";
                text.trim().parse::<i32>().map_err(|_| malformed(self.text, detail))
            };
            let (lower, upper) = (number(lower)?, number(upper)?);
            if upper < lower {
                bail!(ARRAY_SUBSCRIPT_ERROR: "upper bound cannot be less than lower bound");
            }
            if bounds.len() == MAX_DIMENSIONS {
                return Err(too_many_dimensions(bounds.len() + 1));
            }
            let length = usize::try_from(i64::from(upper) - i64::from(lower) + 1)
                .map_err(|_| too_large())?;
            if length > MAX_ELEMENTS {
                return Err(too_large());
            }
            bounds.push(Dimension { lower, length });
            self.rest = rest;
            self.skip_blanks();
        }
        if bounds.is_empty() {
            return Ok(None);
        }
        let detail = "Missing \"=\" after array dimensions.";
        self.rest = self.rest.strip_prefix('=').ok_or_else(|| malformed(self.text, detail))?;
        self.skip_blanks();
        Ok(Some(bounds))
    }

    /// Parses `{…}` at a depth, from 0. The brace was checked.
    fn level(&mut self, depth: usize) -> Result<()> {
        self.rest = &self.rest[1..];
        if depth == MAX_DIMENSIONS {
            return Err(too_many_dimensions(depth + 1));
        }
        let mut length = 0;
        self.skip_blanks();
        if self.rest.starts_with('}') {
            self.rest = &self.rest[1..];
            if depth > 0 {
                return Err(malformed(self.text, "Unexpected \"}\" character."));
            }
            return Ok(());
        }
        if self.lengths.len() == depth {
            // The length is set at the end of the level.
            self.lengths.push(0);
        }
        loop {
            self.skip_blanks();
            if self.rest.starts_with('{') {
                if !self.elements.is_empty() && self.lengths.len() == depth + 1 {
                    return Err(self.ragged());
                }
                self.level(depth + 1)?;
            } else {
                if self.lengths.len() > depth + 1 {
                    return Err(self.ragged());
                }
                let value = self.element()?;
                self.pace.push(&mut self.elements, value)?;
                if self.elements.len() > MAX_ELEMENTS {
                    return Err(too_large());
                }
            }
            length += 1;
            self.skip_blanks();
            let next = self.rest.chars().next();
            self.rest = self.rest.get(1..).unwrap_or_default();
            match next {
                Some(other) if other == self.delimiter => {}
                Some('}') => break,
                None => return Err(malformed(self.text, "Unexpected end of input.")),
                Some(_) => return Err(malformed(self.text, "Unexpected array element.")),
            }
        }
        match self.lengths[depth] {
            0 => self.lengths[depth] = length,
            first if first != length => return Err(self.ragged()),
            _ => {}
        }
        Ok(())
    }

    fn ragged(&self) -> Error {
        let detail = "Multidimensional arrays must have sub-arrays with matching dimensions.";
        malformed(self.text, detail)
    }

    fn element(&mut self) -> Result<Option<String>> {
        if let Some(quoted) = self.rest.strip_prefix('"') {
            let mut value = String::new();
            let mut characters = quoted.chars();
            loop {
                self.pace.step(&mut value, 1)?;
                match characters.next() {
                    Some('"') => break,
                    Some('\\') => value.extend(characters.next()),
                    Some(other) => value.push(other),
                    None => return Err(malformed(self.text, "Unexpected end of input.")),
                }
            }
            self.rest = characters.as_str();
            return Ok(Some(value));
        }
        let mut value = String::new();
        let mut escaped = false;
        // Trailing blanks are ignored unless they are escaped.
        let mut kept = 0;
        let mut characters = self.rest.chars();
        loop {
            self.pace.step(&mut value, 1)?;
            self.rest = characters.as_str();
            match characters.next() {
                None => return Err(malformed(self.text, "Unexpected end of input.")),
                Some('}') => break,
                Some(other) if other == self.delimiter => break,
                Some(brace @ ('{' | '"')) => {
                    let detail = match brace {
                        '{' => "Unexpected \"{\" character.",
                        _ => "Unexpected array element.",
                    };
                    return Err(malformed(self.text, detail));
                }
                Some('\\') => {
                    escaped = true;
                    value.extend(characters.next());
                    kept = value.len();
                }
                Some(other) => {
                    value.push(other);
                    if !other.is_ascii_whitespace() {
                        kept = value.len();
                    }
                }
            }
        }
        value.truncate(kept);
        if value.is_empty() && !escaped {
            let found = self.rest.chars().next().unwrap_or(self.delimiter);
            let detail = format!("Unexpected \"{found}\" character.");
            return Err(malformed(self.text, &detail));
        }
        if !escaped && value.eq_ignore_ascii_case("null") {
            return Ok(None);
        }
        Ok(Some(value))
    }
}

fn too_many_dimensions(count: usize) -> Error {
    err!(PROGRAM_LIMIT_EXCEEDED: "number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})")
}

fn too_large() -> Error {
    err!(PROGRAM_LIMIT_EXCEEDED: "array size exceeds the maximum allowed ({MAX_ELEMENTS})")
}
