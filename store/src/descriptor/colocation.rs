//! Colocated tables: the regions of one follow those of another table, its base table.
//!
//! Each row of a colocated table belongs to a row of the base table, whose key it ends with, and is
//! in the region with the rows of that part of the base table:
//!
//! ```text
//!   prefix | base row                             | length
//!   prefix | base row without first byte | byte   | length + 8000
//! ```
//!
//! The length of the base row has two bytes, big-endian. In the second form the first byte of the
//! base row, the salt of a salted table, follows the others, so that rows with the same prefix sort
//! by the key without the salt.
//!
//! So regions are ranges of base rows, and neighbouring rows may be in any of them: a scan merges
//! all regions of its base rows. A split leaves the files of a region to both daughters, which read
//! the rows of their base rows only, until a compaction rewrites them.
//!
//! # Invariants
//!
//! 1. A row is in the region of its base row: its key never changes.
//! 2. The table is complete with any regions. They differ from those of the base table only from a
//!    moment after a split or merge of it, or until one that failed is repeated.

use std::borrow::Cow;

use crate::descriptor::{RowRange, TableDescriptor};

/// Bytes of the length.
const LENGTH_BYTES: usize = 2;
/// Mark of a base row whose first byte follows the others.
const ROTATED: u16 = 0x8000;

/// Appends a base row and its length to a prefix.
pub fn append_base_row(base_row: &[u8], is_salted: bool, out: &mut Vec<u8>) {
    // A row key has at most 32767 bytes.
    let mut length = base_row.len() as u16;
    match base_row.split_first() {
        Some((salt, rest)) if is_salted => {
            out.extend_from_slice(rest);
            out.push(*salt);
            length |= ROTATED;
        }
        _ => out.extend_from_slice(base_row),
    }
    out.extend_from_slice(&length.to_be_bytes());
}

/// Returns the base row of a row of a colocated table; empty if the row does not end with one.
pub fn base_row(row: &[u8]) -> Cow<'_, [u8]> {
    let Some((rest, length)) = row.split_last_chunk::<LENGTH_BYTES>() else {
        return Cow::Borrowed(&[]);
    };
    let length = u16::from_be_bytes(*length);
    let start = rest.len().checked_sub(usize::from(length & !ROTATED));
    let found = start.map_or(&[][..], |start| &rest[start..]);
    match found.split_last() {
        Some((salt, others)) if length & ROTATED != 0 => {
            let mut base_row = Vec::with_capacity(found.len());
            base_row.push(*salt);
            base_row.extend_from_slice(others);
            Cow::Owned(base_row)
        }
        _ => Cow::Borrowed(found),
    }
}

/// Assignment of a table's rows to its regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioning {
    /// By the row.
    Row,
    /// By the base row: the table is colocated.
    BaseRow,
}

impl Partitioning {
    /// Returns the partitioning of a table.
    pub fn of(table: &TableDescriptor) -> Partitioning {
        match table.colocated_with {
            None => Partitioning::Row,
            Some(_) => Partitioning::BaseRow,
        }
    }

    /// Returns the row that decides the region of a row.
    pub fn deciding_row(self, row: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Partitioning::Row => Cow::Borrowed(row),
            Partitioning::BaseRow => base_row(row),
        }
    }

    /// Returns whether a region of these rows holds a row.
    pub fn holds(self, region: &RowRange, row: &[u8]) -> bool {
        region.contains(&self.deciding_row(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_row_is_end_of_row() {
        for (is_salted, base) in
            [(false, &b"abc"[..]), (true, b"\x03abc"), (true, b""), (false, b"")]
        {
            let mut row = b"prefix".to_vec();
            append_base_row(base, is_salted, &mut row);
            assert_eq!(&*base_row(&row), base);
        }
        let mut row = Vec::new();
        append_base_row(b"\x03abc", true, &mut row);
        assert_eq!(row, b"abc\x03\x80\x04");
    }

    #[test]
    fn base_row_of_malformed_row_is_empty() {
        for row in [&b""[..], b"\x01", b"a\x00\x02", b"\xff\xff"] {
            assert_eq!(&*base_row(row), b"");
        }
    }
}
