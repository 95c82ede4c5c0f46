//! Value layouts: the sections of a family's values, as plain data that the family declares, so
//! that columnar blocks can store each section of many values together.
//!
//! ```text
//!   shape 1:  prefix | Fixed 0 | Fixed 2          | ends | Variable 3, 4 | Rest 5
//!   shape 2:  prefix | Fixed 0 | Fixed 1, Fixed 2 | ends | Variable 3, 4 | Rest 5
//! ```
//!
//! The store does not interpret the sections. A value *matches* a shape if it begins with the
//! shape's prefix and its pieces take exactly the rest; otherwise it is stored whole, so that
//! every value is accepted and returned byte for byte.
//!
//! Sections and shapes are numbered within the blocks of a file, which have the family's layout
//! at the time when the file was written. Values of a schema with an additional column have a
//! separate shape, which shares sections with the older ones.
//!
//! The encoded form, which is in every columnar block, is decoded only to the form that assembles
//! values (`ReadLayout`). The byte format is in `docs/formats/columnar-block.md`.

use std::ops::Range;

/// Maximal number of sections of a layout.
const SECTIONS_MAX: usize = 10_000;
/// Maximal number of shapes of a layout: the number of a shape fits a byte, and 0 means none.
const SHAPES_MAX: usize = 255;
/// Maximal bytes of a section of fixed width, or of a prefix.
const WIDTH_MAX: usize = 1 << 12;

/// Sections and shapes of a family's values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueLayout {
    /// The sections, by number.
    pub sections: Vec<SectionKind>,
    /// The shapes; a value is divided by the first that it matches.
    pub shapes: Vec<ValueShape>,
}

/// Kind of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionKind {
    /// This number of bytes, from 1 to 4,096; zeros for values that do not have the section.
    Fixed(u16),
    /// Any number of bytes; empty for values that do not have the section.
    Variable,
}

/// A sequence of prefix and sections that makes up a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValueShape {
    /// Common prefix of such values.
    pub prefix: Vec<u8>,
    /// The pieces after it, in order. Each section occurs at most once.
    pub pieces: Vec<ValuePiece>,
}

/// A piece of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValuePiece {
    /// The fixed section of this number.
    Fixed(u16),
    /// A table with the end of each of these variable sections, relative to the end of the table;
    /// then the bytes of the sections.
    Variable {
        /// Bytes of an entry of the table; ends are little endian.
        ends: EndWidth,
        /// The sections, in order.
        sections: Vec<u16>,
    },
    /// All remaining bytes, in a variable section; the last piece.
    Rest(u16),
}

/// Bytes of the end of a variable section within a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndWidth {
    /// `u16`
    Two,
    /// `u32`
    Four,
}

impl EndWidth {
    fn bytes(self) -> usize {
        match self {
            EndWidth::Two => 2,
            EndWidth::Four => 4,
        }
    }
}

impl ValueLayout {
    /// Validates the layout.
    ///
    /// # Errors
    ///
    /// A description of the error.
    pub fn check(&self) -> Result<(), String> {
        if self.sections.len() > SECTIONS_MAX || self.shapes.len() > SHAPES_MAX {
            return Err("the layout of values has too many sections or shapes".to_owned());
        }
        let fits = |section: &SectionKind| match section {
            SectionKind::Fixed(width) => (1..=WIDTH_MAX).contains(&usize::from(*width)),
            SectionKind::Variable => true,
        };
        if !self.sections.iter().all(fits) {
            return Err(format!("a section is not from 1 to {WIDTH_MAX} bytes wide"));
        }
        self.shapes.iter().try_for_each(|shape| self.check_shape(shape))
    }

    fn check_shape(&self, shape: &ValueShape) -> Result<(), String> {
        if shape.prefix.len() > WIDTH_MAX {
            return Err(format!("a prefix is longer than {WIDTH_MAX} bytes"));
        }
        let mut seen = vec![false; self.sections.len()];
        let mut take = |section: u16, is_fixed: bool| -> Result<(), String> {
            let kind = self.sections.get(usize::from(section));
            let kind_fits = match kind {
                None => return Err(format!("section {section} does not exist")),
                Some(SectionKind::Fixed(_)) => is_fixed,
                Some(SectionKind::Variable) => !is_fixed,
            };
            if !kind_fits {
                return Err(format!("section {section} is of another kind"));
            }
            match std::mem::replace(&mut seen[usize::from(section)], true) {
                true => Err(format!("section {section} occurs twice in a shape")),
                false => Ok(()),
            }
        };
        for (index, piece) in shape.pieces.iter().enumerate() {
            match piece {
                ValuePiece::Fixed(section) => take(*section, true)?,
                ValuePiece::Variable { sections, .. } => {
                    sections.iter().try_for_each(|section| take(*section, false))?;
                }
                ValuePiece::Rest(section) => {
                    take(*section, false)?;
                    if index + 1 < shape.pieces.len() {
                        return Err("a section follows the remainder section of a value".to_owned());
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns for each section whether the shape has it.
    pub(crate) fn sections_of(&self, shape: &ValueShape) -> Vec<bool> {
        let mut present = vec![false; self.sections.len()];
        for piece in &shape.pieces {
            match piece {
                ValuePiece::Fixed(section) | ValuePiece::Rest(section) => {
                    present[usize::from(*section)] = true;
                }
                ValuePiece::Variable { sections, .. } => {
                    sections.iter().for_each(|section| present[usize::from(*section)] = true);
                }
            }
        }
        present
    }

    /// Divides a value: `parts[section]` becomes the range of that section, for the sections of
    /// the shape; others are unchanged. Returns the index of the shape, or `None` if the value
    /// matches none.
    pub(crate) fn cut(&self, value: &[u8], parts: &mut [Range<usize>]) -> Option<usize> {
        self.shapes.iter().position(|shape| self.cut_shape(shape, value, parts).is_some())
    }

    fn cut_shape(
        &self,
        shape: &ValueShape,
        value: &[u8],
        parts: &mut [Range<usize>],
    ) -> Option<()> {
        if !value.starts_with(&shape.prefix) {
            return None;
        }
        let mut at = shape.prefix.len();
        for piece in &shape.pieces {
            match piece {
                ValuePiece::Fixed(section) => {
                    let SectionKind::Fixed(width) = self.sections[usize::from(*section)] else {
                        return None;
                    };
                    parts[usize::from(*section)] = at..at + usize::from(width);
                    at += usize::from(width);
                }
                ValuePiece::Variable { ends, sections } => {
                    at = cut_variable(value, at, *ends, sections, parts)?;
                }
                ValuePiece::Rest(section) => {
                    parts[usize::from(*section)] = at.min(value.len())..value.len();
                    at = at.max(value.len());
                }
            }
        }
        (at == value.len()).then_some(())
    }

    /// Appends the encoded form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.sections.len() as u16).to_le_bytes());
        for section in &self.sections {
            let width = match section {
                SectionKind::Fixed(width) => *width,
                SectionKind::Variable => 0,
            };
            out.extend_from_slice(&width.to_le_bytes());
        }
        out.push(self.shapes.len() as u8);
        for shape in &self.shapes {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&(shape.prefix.len() as u16).to_le_bytes());
            out.extend_from_slice(&shape.prefix);
            for piece in &shape.pieces {
                let (code, sections) = match piece {
                    ValuePiece::Fixed(section) => (FIXED, std::slice::from_ref(section)),
                    ValuePiece::Variable { ends: EndWidth::Two, sections } => {
                        (ENDS_OF_2, &sections[..])
                    }
                    ValuePiece::Variable { ends: EndWidth::Four, sections } => {
                        (ENDS_OF_4, &sections[..])
                    }
                    ValuePiece::Rest(section) => (REST, std::slice::from_ref(section)),
                };
                out.push(code);
                out.extend_from_slice(&(sections.len() as u16).to_le_bytes());
                sections.iter().for_each(|section| out.extend_from_slice(&section.to_le_bytes()));
            }
            let byte_count = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&byte_count.to_le_bytes());
        }
    }
}

fn cut_variable(
    value: &[u8],
    table: usize,
    ends: EndWidth,
    sections: &[u16],
    parts: &mut [Range<usize>],
) -> Option<usize> {
    let base = table + sections.len() * ends.bytes();
    let mut entries = value.get(table..base)?.chunks_exact(ends.bytes());
    let mut start = base;
    for &section in sections {
        let end = match *entries.next()? {
            [a, b] => usize::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
            _ => return None,
        };
        let end = base.checked_add(end)?;
        if end < start || end > value.len() {
            return None;
        }
        parts[usize::from(section)] = start..end;
        start = end;
    }
    Some(start)
}

/// The sections of a family's values that a reader needs, so that no others are read for a value
/// in a columnar block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionSelection {
    family: u8,
    /// Widths of all sections known to the reader, 0 for variable ones: they show if a block's
    /// numbering of sections is compatible.
    widths: Box<[u16]>,
    /// For each section, true if it is needed.
    is_wanted: Box<[bool]>,
}

/// Replacement for fixed sections that are not needed.
static ZEROS: [u8; WIDTH_MAX] = [0; WIDTH_MAX];

impl SectionSelection {
    /// Returns a selection from a family whose layout has `sections`.
    pub fn new(
        family: u8,
        sections: &[SectionKind],
        wanted: impl IntoIterator<Item = u16>,
    ) -> SectionSelection {
        let width = |section: &SectionKind| match section {
            SectionKind::Fixed(width) => *width,
            SectionKind::Variable => 0,
        };
        let mut is_wanted = vec![false; sections.len()].into_boxed_slice();
        wanted.into_iter().for_each(|section| is_wanted[usize::from(section)] = true);
        SectionSelection { family, widths: sections.iter().map(width).collect(), is_wanted }
    }

    /// Returns the family.
    pub(crate) fn family(&self) -> u8 {
        self.family
    }

    /// Returns whether the numbering of sections is compatible with a layout.
    pub(crate) fn fits(&self, layout: &ReadLayout) -> bool {
        self.widths.starts_with(layout.widths())
    }

    /// Returns the replacement of a section that is not needed; `None` for one that is.
    #[inline]
    pub(crate) fn stand_in(&self, section: usize, width: usize) -> Option<&'static [u8]> {
        match self.is_wanted.get(section) {
            Some(false) => ZEROS.get(..width),
            _ => None,
        }
    }
}

const FIXED: u8 = 1;
const ENDS_OF_2: u8 = 2;
const ENDS_OF_4: u8 = 3;
const REST: u8 = 4;

/// A layout for assembling values, decoded from the encoded form.
#[derive(Debug)]
pub(crate) struct ReadLayout {
    encoded: Box<[u8]>,
    /// Width of each section; 0 if it is variable.
    widths: Box<[u16]>,
    shapes: Box<[ReadShape]>,
}

#[derive(Debug)]
struct ReadShape {
    prefix: Box<[u8]>,
    pieces: Box<[ReadPiece]>,
    /// Bytes of a value without those of its variable sections.
    fixed_bytes: usize,
}

/// Adjacent sections of a value.
#[derive(Debug)]
struct ReadPiece {
    /// Bytes of each entry of the table of ends before them; 0 if there is none.
    end_bytes: usize,
    sections: Box<[ReadSection]>,
}

#[derive(Debug, Clone, Copy)]
struct ReadSection {
    number: u16,
    /// 0 if it is variable.
    width: u16,
}

/// Initial capacity for the bytes of variable sections.
const VARIABLE_BYTES_GUESS: usize = 64;

impl ReadLayout {
    /// Decodes a layout. `None` if it is malformed.
    pub(crate) fn decode(encoded: &[u8]) -> Option<ReadLayout> {
        let (count, rest) = encoded.split_first_chunk::<2>()?;
        let (widths, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*count)) * 2)?;
        let widths: Box<[u16]> = numbers(widths).collect();
        let (&shape_count, mut rest) = rest.split_first()?;
        let mut shapes = Vec::new();
        for _ in 0..shape_count {
            let (byte_count, tail) = rest.split_first_chunk::<4>()?;
            let (shape, tail) = tail.split_at_checked(u32::from_le_bytes(*byte_count) as usize)?;
            shapes.push(ReadShape::decode(shape, &widths)?);
            rest = tail;
        }
        let shapes = shapes.into();
        rest.is_empty().then(|| ReadLayout { encoded: encoded.into(), widths, shapes })
    }

    /// Returns the encoded form.
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// Returns the width of each section, 0 for variable ones.
    pub(crate) fn widths(&self) -> &[u16] {
        &self.widths
    }

    /// Returns the prefix of the values of each shape.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = &[u8]> {
        self.shapes.iter().map(|shape| &shape.prefix[..])
    }

    /// Returns the number of sections.
    pub(crate) fn section_count(&self) -> usize {
        self.widths.len()
    }

    /// Returns the width of a section, 0 if it is variable.
    pub(crate) fn width(&self, section: usize) -> Option<usize> {
        self.widths.get(section).copied().map(usize::from)
    }

    /// Assembles a value of shape `shape` from its sections, which `section` returns by number
    /// and width.
    #[inline]
    pub(crate) fn join<'s>(
        &self,
        shape: usize,
        section: impl Fn(usize, usize) -> Option<&'s [u8]>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let shape = self.shapes.get(shape)?;
        out.reserve(shape.fixed_bytes + VARIABLE_BYTES_GUESS);
        out.extend_from_slice(&shape.prefix);
        for ReadPiece { end_bytes, sections } in &shape.pieces {
            let mut end_at = out.len();
            out.resize(end_at + sections.len() * end_bytes, 0);
            let base = out.len();
            for ReadSection { number, width } in sections {
                let bytes = section(usize::from(*number), usize::from(*width))?;
                match bytes.as_array::<8>() {
                    // The most common width, inlined.
                    Some(bytes) => out.extend_from_slice(bytes),
                    None => out.extend_from_slice(bytes),
                }
                if *end_bytes > 0 {
                    let end = u32::try_from(out.len() - base).ok()?;
                    if *end_bytes == 2 && u16::try_from(end).is_err() {
                        return None;
                    }
                    out[end_at..end_at + end_bytes]
                        .copy_from_slice(&end.to_le_bytes()[..*end_bytes]);
                    end_at += end_bytes;
                }
            }
        }
        Some(())
    }
}

impl ReadShape {
    fn decode(shape: &[u8], widths: &[u16]) -> Option<ReadShape> {
        let (prefix_length, rest) = shape.split_first_chunk::<2>()?;
        let (prefix, mut rest) =
            rest.split_at_checked(usize::from(u16::from_le_bytes(*prefix_length)))?;
        let mut pieces: Vec<(usize, Vec<ReadSection>)> = Vec::new();
        while let [code, count_low, count_high, tail @ ..] = rest {
            let count = usize::from(u16::from_le_bytes([*count_low, *count_high]));
            let (sections, next) = tail.split_at_checked(count * 2)?;
            rest = next;
            let end_bytes = match *code {
                FIXED | REST => 0,
                ENDS_OF_2 => 2,
                ENDS_OF_4 => 4,
                _ => return None,
            };
            // Adjacent pieces without a table form one piece.
            if end_bytes > 0 || pieces.last().is_none_or(|(end_bytes, _)| *end_bytes > 0) {
                pieces.push((end_bytes, Vec::new()));
            }
            let (_, last) = pieces.last_mut()?;
            for number in numbers(sections) {
                last.push(ReadSection { number, width: *widths.get(usize::from(number))? });
            }
        }
        if !rest.is_empty() {
            return None;
        }
        let bytes_of = |(end_bytes, sections): &(usize, Vec<ReadSection>)| {
            sections.iter().map(|section| end_bytes + usize::from(section.width)).sum::<usize>()
        };
        Some(ReadShape {
            prefix: prefix.into(),
            fixed_bytes: prefix.len() + pieces.iter().map(bytes_of).sum::<usize>(),
            pieces: pieces
                .into_iter()
                .map(|(end_bytes, sections)| ReadPiece { end_bytes, sections: sections.into() })
                .collect(),
        })
    }
}

/// Decodes two-byte numbers.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.as_chunks::<2>().0.iter().map(|bytes| u16::from_le_bytes(*bytes))
}

#[cfg(test)]
pub(crate) mod tests;
