//! Decoded entries of a row block, for a cursor that moves backwards: an entry's key depends on
//! those before it, back to its restart.
//!
//! # Invariants
//!
//! 1. Slots are all the entries of `restarts`, in order, or none. `RowSlots::check` asserts it in
//!    debug builds; a block with other restarts is malformed.

use std::ops::Range;

use crate::cell::{is_key, row_of};
use crate::file::encoding::Malformed;
use crate::file::row_block::{RESTART_ENTRIES, RowBlock};

/// Maximal number of restarts decoded at once.
const RESTARTS_MAX: usize = 8;

/// Decoded entries of some restarts of a block.
#[derive(Default)]
pub(super) struct RowSlots {
    slots: Vec<RowSlot>,
    keys: Vec<u8>,
    restarts: Range<usize>,
    /// Number of restarts to decode next time.
    wanted: usize,
}

/// An entry, by offsets among the entries of its block.
pub(super) struct RowSlot {
    pub(super) at: usize,
    pub(super) value_at: usize,
    pub(super) end: usize,
    /// Range of its key in `keys`.
    key: Range<usize>,
}

impl RowSlots {
    /// Clears the slots, because the block is released.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
    }

    /// Resets the number of restarts to decode, because the cursor seeks elsewhere.
    pub(super) fn interrupt(&mut self) {
        self.wanted = 1;
    }

    /// Returns whether the entry at an offset has a slot.
    pub(super) fn covers(&self, at: usize) -> bool {
        matches!((self.slots.first(), self.slots.last()), (Some(a), Some(b)) if (a.at..=b.at).contains(&at))
    }

    /// Returns the number of slots of entries before an offset.
    pub(super) fn before(&self, at: usize) -> usize {
        self.slots.partition_point(|slot| slot.at < at)
    }

    /// Returns the number of slots; at least 1 after [`RowSlots::fill`].
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the first restart that has slots.
    pub(super) fn first_restart(&self) -> usize {
        self.restarts.start
    }

    /// Returns a slot.
    pub(super) fn slot(&self, index: usize) -> Result<&RowSlot, Malformed> {
        self.slots.get(index).ok_or(Malformed)
    }

    /// Returns the key of a slot.
    pub(super) fn key(&self, slot: &RowSlot) -> &[u8] {
        &self.keys[slot.key.clone()]
    }

    /// Returns the slots of the row that ends before slot `end`. `None` if it may begin in an
    /// earlier restart.
    pub(super) fn row_before(&self, end: usize) -> Option<Range<usize>> {
        let mut slots = self.slots[..end].iter().rev().map(|slot| row_of(self.key(slot)));
        let row = slots.next()?;
        let behind = slots.position(|other| other != row)?;
        Some(end - 1 - behind..end)
    }

    /// Decodes the entries of a restart, and of the more restarts before it, the longer the
    /// cursor moves backwards. There is at least one entry.
    pub(super) fn fill(&mut self, block: RowBlock<'_>, last: usize) -> Result<(), Malformed> {
        self.slots.clear();
        self.keys.clear();
        self.restarts = (last + 1).saturating_sub(self.wanted.max(1))..last + 1;
        self.wanted = (self.wanted.max(1) * 2).min(RESTARTS_MAX);
        let filled = self.restarts.clone().try_for_each(|restart| self.append(block, restart));
        if filled.is_err() || self.slots.is_empty() {
            self.slots.clear();
            return Err(Malformed);
        }
        self.check(block);
        Ok(())
    }

    /// Asserts invariant 1, in debug builds.
    fn check(&self, block: RowBlock<'_>) {
        if cfg!(debug_assertions) {
            let first = block.restart_range(self.restarts.start).map(|range| range.start);
            let end = block.restart_range(self.restarts.end - 1).map(|range| range.end);
            assert_eq!(self.slots.first().map(|slot| slot.at), first.ok(), "the first entry");
            assert_eq!(self.slots.last().map(|slot| slot.end), end.ok(), "the last entry");
            let is_adjacent = |pair: &[RowSlot]| pair[0].end == pair[1].at;
            assert!(self.slots.windows(2).all(is_adjacent), "an entry has no slot");
        }
    }

    fn append(&mut self, block: RowBlock<'_>, restart: usize) -> Result<(), Malformed> {
        let range = block.restart_range(restart)?;
        let mut at = range.start;
        let mut previous = self.keys.len()..self.keys.len();
        // A writer makes no more entries, and a larger number could claim much memory.
        for _ in 0..RESTART_ENTRIES {
            if at >= range.end {
                return if at == range.end { Ok(()) } else { Err(Malformed) };
            }
            let entry = block.entry(at)?;
            if entry.shared > previous.len() {
                return Err(Malformed);
            }
            let key_at = self.keys.len();
            self.keys.extend_from_within(previous.start..previous.start + entry.shared);
            self.keys.extend_from_slice(block.unshared(&entry));
            let key = key_at..self.keys.len();
            if !is_key(&self.keys[key.clone()]) {
                return Err(Malformed);
            }
            previous = key.clone();
            self.slots.push(RowSlot { at, value_at: entry.value_at, end: entry.end, key });
            at = entry.end;
        }
        if at == range.end { Ok(()) } else { Err(Malformed) }
    }
}
