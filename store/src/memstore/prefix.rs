//! Search positions, and the eight-byte key prefixes by which a node orders most of its entries
//! without access to the keys.
//!
//! All keys of a node lie between two fences, so they have the common prefix of the fences: the
//! first bytes of the row, or the row and the first bytes of the qualifier, or the whole column. A
//! node stores the next eight bytes of each key ([`CommonPrefix`] is the offset), as a number that
//! orders as the bytes do. Shorter ones are padded with zeros: different prefixes decide, equal
//! ones do not.

use std::cmp::Ordering;

use crate::cell::{KEY_TAIL_BYTES, column_of};

/// Bytes of a key's tail that determine its order: without the length of the row.
const ORDERED_TAIL_BYTES: usize = KEY_TAIL_BYTES - 2;

/// A position among the keys: of a cell, or before or after all cells of a row or column.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    row: &'a [u8],
    qualifier: &'a [u8],
    tail: &'a [u8],
}

impl<'a> Probe<'a> {
    /// Returns the position of an encoded key.
    pub(super) fn key(key: &'a [u8]) -> Probe<'a> {
        let (row, qualifier) = column_of(key);
        Probe { row, qualifier, tail: &key[key.len() - KEY_TAIL_BYTES..][..ORDERED_TAIL_BYTES] }
    }

    /// Returns the position before all cells of a row.
    pub(super) fn row_start(row: &'a [u8]) -> Probe<'a> {
        Probe::column_start(row, &[])
    }

    /// Returns the position before all cells of a column.
    pub(super) fn column_start(row: &'a [u8], qualifier: &'a [u8]) -> Probe<'a> {
        Probe { row, qualifier, tail: &[0; ORDERED_TAIL_BYTES] }
    }

    /// Returns the position after all cells of a column.
    pub(super) fn column_end(row: &'a [u8], qualifier: &'a [u8]) -> Probe<'a> {
        Probe { row, qualifier, tail: &[0xff; ORDERED_TAIL_BYTES] }
    }

    /// Compares the position with that of an encoded key.
    pub(super) fn compare(&self, key: &[u8]) -> Ordering {
        let other = Probe::key(key);
        self.row
            .cmp(other.row)
            .then_with(|| self.qualifier.cmp(other.qualifier))
            .then_with(|| self.tail.cmp(other.tail))
    }

    /// Returns the eight bytes after the skipped ones.
    pub(super) fn prefix(&self, skip: CommonPrefix) -> u64 {
        let part = match skip.part {
            KeyPart::Row => self.row,
            KeyPart::Qualifier => self.qualifier,
            KeyPart::Tail => self.tail,
        };
        eight_bytes(part, usize::from(skip.offset))
    }

    /// Returns whether both positions have equal skipped bytes.
    pub(super) fn shares(&self, other: &Probe<'_>, skip: CommonPrefix) -> bool {
        let offset = usize::from(skip.offset);
        let share = |a: &[u8], b: &[u8]| match (a.get(..offset), b.get(..offset)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        };
        match skip.part {
            KeyPart::Row => share(self.row, other.row),
            KeyPart::Qualifier => self.row == other.row && share(self.qualifier, other.qualifier),
            KeyPart::Tail => {
                self.row == other.row
                    && self.qualifier == other.qualifier
                    && share(self.tail, other.tail)
            }
        }
    }
}

/// The common prefix of a node's keys, which its entries' prefixes skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CommonPrefix {
    part: KeyPart,
    offset: u16,
}

/// The parts of a key in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum KeyPart {
    Row,
    /// The whole row is common.
    Qualifier,
    /// Row and qualifier are common.
    Tail,
}

impl CommonPrefix {
    /// Skips nothing.
    pub(super) const NOTHING: CommonPrefix = CommonPrefix { part: KeyPart::Row, offset: 0 };

    /// Returns the common prefix of all keys from `low` up to `high`.
    pub(super) fn between(low: &[u8], high: &[u8]) -> CommonPrefix {
        let (low, high) = (Probe::key(low), Probe::key(high));
        let (part, a, b) = if low.row != high.row {
            (KeyPart::Row, low.row, high.row)
        } else if low.qualifier != high.qualifier {
            (KeyPart::Qualifier, low.qualifier, high.qualifier)
        } else {
            (KeyPart::Tail, low.tail, high.tail)
        };
        let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        CommonPrefix { part, offset: shared.min(usize::from(u16::MAX)) as u16 }
    }

    /// Returns whether entries whose prefixes differ from `probe`'s are of other rows.
    pub(super) fn is_within_row(self) -> bool {
        self.part == KeyPart::Row
    }
}

fn eight_bytes(part: &[u8], offset: usize) -> u64 {
    let number = |start: usize| {
        let bytes: Option<&[u8; 8]> = part.get(start..start + 8).and_then(|b| b.try_into().ok());
        bytes.map(|bytes| u64::from_be_bytes(*bytes))
    };
    if let Some(number) = number(offset) {
        return number;
    }
    let missing = (offset + 8).saturating_sub(part.len());
    if missing >= 8 {
        return 0;
    }
    // The last eight bytes include them, after others that are shifted out.
    if part.len() >= 8
        && let Some(last) = number(part.len() - 8)
    {
        return last << (8 * missing);
    }
    let mut bytes = [0; 8];
    for (byte, from) in bytes.iter_mut().zip(&part[offset..]) {
        *byte = *from;
    }
    u64::from_be_bytes(bytes)
}
