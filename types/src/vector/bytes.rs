//! Columns of variable-length values: texts and bytes.

use super::BATCH_ROWS;
use crate::error::{Error, Result};

/// Variable-length values, stored end to end: value `i` is `bytes[ends[i - 1]..ends[i]]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BytesVector {
    /// End of each value in `bytes`.
    pub ends: Vec<u32>,
    /// The values, one after the other.
    pub bytes: Vec<u8>,
}

impl BytesVector {
    /// Creates an empty vector with capacity for `capacity` values of about 16 bytes.
    pub fn with_capacity(capacity: usize) -> BytesVector {
        BytesVector {
            ends: Vec::with_capacity(capacity),
            bytes: Vec::with_capacity(capacity.min(BATCH_ROWS) * 16),
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns value `index`.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    /// Returns value `index` of a text vector.
    ///
    /// # Panics
    ///
    /// If the value is not UTF-8: the vector was not a text vector.
    #[inline]
    pub fn str(&self, index: usize) -> &str {
        std::str::from_utf8(self.get(index)).expect("text vectors hold UTF-8")
    }

    /// Appends a value.
    ///
    /// # Panics
    ///
    /// If the vector would exceed 4 GiB; producers stop at [`BATCH_ROWS`].
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        debug_assert_eq!(self.ended_bytes(), self.bytes.len(), "a value has not ended");
        self.bytes.extend_from_slice(value);
        self.end_value();
    }

    /// Appends texts that are stored end to end in `all`, with their ends. Returns `false`,
    /// without appending, if the ends are not ascending character boundaries within `all`.
    ///
    /// # Panics
    ///
    /// Like [`BytesVector::push`].
    pub fn append_texts(&mut self, all: &str, ends: &[u32]) -> bool {
        let last = ends.last().map_or(0, |last| *last as usize);
        let are_boundaries = || ends.iter().all(|end| all.is_char_boundary(*end as usize));
        if last > all.len() || !ends.is_sorted() || !(all.is_ascii() || are_boundaries()) {
            return false;
        }
        u32::try_from(self.bytes.len() + last).expect("a vector holds less than 4 GiB");
        debug_assert_eq!(self.ended_bytes(), self.bytes.len(), "a value has not ended");
        let base = self.bytes.len() as u32;
        self.ends.extend(ends.iter().map(|end| base + end));
        self.bytes.extend_from_slice(&all.as_bytes()[..last]);
        true
    }

    /// Ends a value whose bytes have been appended to `bytes`.
    ///
    /// # Panics
    ///
    /// Like [`BytesVector::push`].
    #[inline]
    pub fn end_value(&mut self) {
        self.ends.push(u32::try_from(self.bytes.len()).expect("a vector holds less than 4 GiB"));
    }

    /// Ends a value of any length, as [`BytesVector::end_value`] does.
    ///
    /// # Errors
    ///
    /// `54000` if the vector would exceed 4 GiB.
    #[inline]
    pub fn try_end_value(&mut self) -> Result<()> {
        self.ends.push(u32::try_from(self.bytes.len()).map_err(|_| too_many_bytes())?);
        Ok(())
    }

    /// Returns the bytes of values that have ended.
    fn ended_bytes(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }

    /// Iterates over the values.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    pub(super) fn take(&self, selection: &[u32]) -> BytesVector {
        let size = selection.iter().map(|&index| self.get(index as usize).len()).sum();
        let mut taken = BytesVector {
            ends: Vec::with_capacity(selection.len()),
            bytes: Vec::with_capacity(size),
        };
        for &index in selection {
            taken.push(self.get(index as usize));
        }
        taken
    }

    pub(super) fn append(&mut self, other: &BytesVector) {
        debug_assert_eq!(self.ended_bytes(), self.bytes.len(), "a value has not ended");
        debug_assert!(other.ends.is_sorted(), "values end before their start");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        u32::try_from(self.bytes.len()).expect("a vector holds less than 4 GiB");
        self.ends.extend(other.ends.iter().map(|&end| end + start as u32));
    }
}

#[cold]
pub(super) fn too_many_bytes() -> Error {
    err!(PROGRAM_LIMIT_EXCEEDED: "out of memory"; detail "A batch of rows has more than 4 GiB.")
}
