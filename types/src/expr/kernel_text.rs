//! Vectorized kernels of text concatenation, which write all results into one vector without
//! datums.
//!
//! They handle short values. Long ones are left to calls per row, which check the interrupt flag
//! within a value and enforce the maximum length.

use super::operand::{Operand, Typed};
use crate::datum::Datum;
use crate::interruptible::CHUNK_BYTES;
use crate::vector::{BytesVector, VectorData};

/// Maximum bytes that are written without an interrupt check: some milliseconds.
const MOST: usize = 8 * CHUNK_BYTES;

/// The texts of one operand.
enum TextOperand<'a> {
    Same(&'a [u8]),
    Each(&'a BytesVector, Option<&'a [bool]>),
    Nulls,
}

impl<'a> TextOperand<'a> {
    fn of(operand: &'a Operand<'_>) -> Option<TextOperand<'a>> {
        match operand.typed() {
            Typed::BytesSame(text) => Some(TextOperand::Same(text)),
            Typed::Bytes(texts) => Some(TextOperand::Each(texts, operand.validity())),
            Typed::Null => Some(TextOperand::Nulls),
            _ => None,
        }
    }

    /// Returns the approximate number of bytes of the texts of all rows.
    fn size(&self, row_count: usize) -> usize {
        match self {
            TextOperand::Same(text) => text.len().saturating_mul(row_count),
            TextOperand::Each(texts, _) => texts.bytes.len(),
            TextOperand::Nulls => 0,
        }
    }

    /// Returns the text of a row; `None` for NULL.
    #[inline]
    fn get(&self, index: usize) -> Option<&'a [u8]> {
        match self {
            TextOperand::Same(text) => Some(text),
            TextOperand::Each(texts, None) => Some(texts.get(index)),
            TextOperand::Each(texts, Some(valid)) => valid[index].then(|| texts.get(index)),
            TextOperand::Nulls => None,
        }
    }
}

/// Concatenates texts or bytes, as `||` does or, with `skip_nulls`, as `concat`. `None` if
/// operands have other types or are long.
pub(super) fn join<'a>(
    operands: &[Operand<'_>],
    skip_nulls: bool,
    row_count: usize,
) -> Option<Operand<'a>> {
    let bytes = operands.iter().any(|operand| match operand {
        Operand::Constant(value) => matches!(value, Datum::Bytea(_)),
        Operand::Vector(vector) => matches!(vector.data, VectorData::Bytea(_)),
    });
    let texts: Vec<TextOperand<'_>> =
        operands.iter().map(TextOperand::of).collect::<Option<_>>()?;
    let size = texts.iter().fold(0, |sum: usize, text| sum.saturating_add(text.size(row_count)));
    if size > MOST {
        return None;
    }
    let mut joined =
        BytesVector { ends: Vec::with_capacity(row_count), bytes: Vec::with_capacity(size) };
    let mut validity: Option<Vec<bool>> = None;
    for index in 0..row_count {
        let start = joined.bytes.len();
        for text in &texts {
            match text.get(index) {
                Some(text) => joined.bytes.extend_from_slice(text),
                None if skip_nulls => {}
                None => {
                    joined.bytes.truncate(start);
                    validity.get_or_insert_with(|| vec![true; row_count])[index] = false;
                    break;
                }
            }
        }
        joined.end_value();
    }
    let data = if bytes { VectorData::Bytea(joined) } else { VectorData::Text(joined) };
    Some(Operand::owned(data, validity))
}
