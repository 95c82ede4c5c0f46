//! Searches: what is looked for, and the eight bytes of a key by which a node orders most of its
//! entries without a look at the keys.
//!
//! All keys of a node lie between two fences, so they share whatever the fences share: the first
//! bytes of the row, or the row and the first bytes of the qualifier, or the whole column. A node
//! keeps of each key the eight bytes that come next ([`Skip`] says from where), as a number that
//! orders as the bytes do. Shorter ones are filled with zeros: different prefixes decide, equal
//! ones say nothing.

use std::cmp::Ordering;

use crate::cell::{KEY_TAIL_BYTES, column_of};

/// Bytes of a key's tail that order it: without the length of the row.
const ORDERED_TAIL_BYTES: usize = KEY_TAIL_BYTES - 2;

/// A place among the keys: of a cell, or before or after all cells of a row or column.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    row: &'a [u8],
    qualifier: &'a [u8],
    tail: &'a [u8],
}

impl<'a> Probe<'a> {
    /// Returns the place of an encoded key.
    pub(super) fn key(key: &'a [u8]) -> Probe<'a> {
        let (row, qualifier) = column_of(key);
        Probe { row, qualifier, tail: &key[key.len() - KEY_TAIL_BYTES..][..ORDERED_TAIL_BYTES] }
    }

    /// Returns the place before all cells of a row.
    pub(super) fn row_start(row: &'a [u8]) -> Probe<'a> {
        Probe::column_start(row, &[])
    }

    /// Returns the place before all cells of a column.
    pub(super) fn column_start(row: &'a [u8], qualifier: &'a [u8]) -> Probe<'a> {
        Probe { row, qualifier, tail: &[0; ORDERED_TAIL_BYTES] }
    }

    /// Returns the place after all cells of a column.
    pub(super) fn column_end(row: &'a [u8], qualifier: &'a [u8]) -> Probe<'a> {
        Probe { row, qualifier, tail: &[0xff; ORDERED_TAIL_BYTES] }
    }

    /// Compares the place with that of an encoded key.
    pub(super) fn compare(&self, key: &[u8]) -> Ordering {
        let other = Probe::key(key);
        self.row
            .cmp(other.row)
            .then_with(|| self.qualifier.cmp(other.qualifier))
            .then_with(|| self.tail.cmp(other.tail))
    }

    /// Returns the eight bytes after what `skip` leaves out.
    pub(super) fn prefix(&self, skip: Skip) -> u64 {
        let part = match skip.part {
            Part::Row => self.row,
            Part::Qualifier => self.qualifier,
            Part::Tail => self.tail,
        };
        eight_bytes(part, usize::from(skip.offset))
    }

    /// Returns whether both places agree in what `skip` leaves out.
    pub(super) fn shares(&self, other: &Probe<'_>, skip: Skip) -> bool {
        let offset = usize::from(skip.offset);
        let share = |a: &[u8], b: &[u8]| match (a.get(..offset), b.get(..offset)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        };
        match skip.part {
            Part::Row => share(self.row, other.row),
            Part::Qualifier => self.row == other.row && share(self.qualifier, other.qualifier),
            Part::Tail => {
                self.row == other.row
                    && self.qualifier == other.qualifier
                    && share(self.tail, other.tail)
            }
        }
    }
}

/// What the keys of a node share, and its entries' prefixes therefore leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Skip {
    part: Part,
    offset: u16,
}

/// The parts of a key in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Row,
    /// The whole row is shared.
    Qualifier,
    /// Row and qualifier are shared.
    Tail,
}

impl Skip {
    /// Leaves out nothing.
    pub(super) const NOTHING: Skip = Skip { part: Part::Row, offset: 0 };

    /// Returns what all keys from `low` up to `high` share.
    pub(super) fn between(low: &[u8], high: &[u8]) -> Skip {
        let (low, high) = (Probe::key(low), Probe::key(high));
        let (part, a, b) = if low.row != high.row {
            (Part::Row, low.row, high.row)
        } else if low.qualifier != high.qualifier {
            (Part::Qualifier, low.qualifier, high.qualifier)
        } else {
            (Part::Tail, low.tail, high.tail)
        };
        let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        Skip { part, offset: shared.min(usize::from(u16::MAX)) as u16 }
    }

    /// Returns whether entries whose prefixes differ from `probe`'s are of other rows.
    pub(super) fn is_within_row(self) -> bool {
        self.part == Part::Row
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
    // The last eight bytes hold them, after others that are shifted out.
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
