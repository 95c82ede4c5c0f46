//! Arrays: elements of one type in row-major order, and dimensions with lower bounds.

use std::cmp::Ordering;
use std::hash::Hasher;

use super::Datum;
use crate::datatype::DataType;
use crate::error::Result;
use crate::interruptible::InterruptPacer;

/// Maximum number of dimensions, PostgreSQL's `MAXDIM`.
pub const MAX_DIMENSIONS: usize = 6;

/// Maximum number of elements, PostgreSQL's `MaxArraySize`.
pub const MAX_ELEMENTS: usize = 0x07ff_ffff;

/// One dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dimension {
    /// Subscript of the first element.
    pub lower: i32,
    /// Number of elements; never 0.
    pub length: usize,
}

impl Dimension {
    /// Returns the subscript of the last element.
    pub fn upper(&self) -> i32 {
        self.lower.saturating_add(self.length as i32 - 1)
    }
}

/// An array. An empty array has no dimensions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Array {
    /// The dimensions, the outermost first. The product of their lengths is the number of elements.
    pub dimensions: Vec<Dimension>,
    /// The elements, the last dimension varying fastest.
    pub elements: Vec<Datum>,
}

impl Array {
    /// Creates an array of one dimension with subscripts from 1.
    pub fn from_elements(elements: Vec<Datum>) -> Array {
        let length = elements.len();
        let dimensions =
            if length == 0 { Vec::new() } else { vec![Dimension { lower: 1, length }] };
        Array { dimensions, elements }
    }

    /// Creates an array of one dimension with subscripts from 0, like `int2vector` and
    /// `oidvector`.
    pub fn from_zero(elements: Vec<Datum>) -> Array {
        let mut array = Array::from_elements(elements);
        array.dimensions.iter_mut().for_each(|dimension| dimension.lower = 0);
        array
    }

    /// Asserts that the dimensions describe the elements.
    pub(crate) fn check(&self) {
        debug_assert!(self.dimensions.len() <= MAX_DIMENSIONS, "{:?}", self.dimensions);
        let product = self.dimensions.iter().map(|dimension| dimension.length).product::<usize>();
        let expected = if self.dimensions.is_empty() { 0 } else { product };
        debug_assert_eq!(expected, self.elements.len(), "{:?}", self.dimensions);
    }

    /// Compares element by element, then by size and dimensions, as PostgreSQL's `array_cmp`
    /// does.
    pub(super) fn compare(&self, other: &Array, element: &DataType) -> Ordering {
        let ordering = self.compare_at(other, element, &mut InterruptPacer::without_interrupt());
        ordering.expect("there is no flag to be set")
    }

    /// Compares like [`Datum::compare_typed`].
    ///
    /// # Errors
    ///
    /// `57014` if the interrupt flag is set.
    pub fn compare_at(
        &self,
        other: &Array,
        element: &DataType,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<Ordering> {
        self.check();
        other.check();
        for (left, right) in self.elements.iter().zip(&other.elements) {
            let ordering = left.compare_typed(right, element);
            if ordering.is_ne() {
                return Ok(ordering);
            }
            pace.count_steps(size_of::<Datum>())?;
        }
        let lengths = |array: &Array| array.dimensions.iter().map(|d| d.length).collect::<Vec<_>>();
        let lowers = |array: &Array| array.dimensions.iter().map(|d| d.lower).collect::<Vec<_>>();
        Ok((self.elements.len().cmp(&other.elements.len()))
            .then_with(|| self.dimensions.len().cmp(&other.dimensions.len()))
            .then_with(|| lengths(self).cmp(&lengths(other)))
            .then_with(|| lowers(self).cmp(&lowers(other))))
    }

    pub(super) fn hash_into(&self, element: &DataType, state: &mut impl Hasher) {
        state.write_usize(self.elements.len());
        self.elements.iter().for_each(|value| value.hash_typed(element, state));
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let elements: usize = self.elements.iter().map(Datum::heap_bytes).sum();
        elements
            + self.elements.len() * size_of::<Datum>()
            + self.dimensions.len() * size_of::<Dimension>()
            + 64
    }
}
