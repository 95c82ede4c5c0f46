//! A node of the tree: up to [`SLOTS`] entries, which a writer adds while readers read.
//!
//! ```text
//!   permutation  count, then the slots in the order of their entries, then the free slots
//!   prefixes     per slot: eight bytes of the entry's key
//!   slots        per slot: a cell (in a leaf) or a child
//! ```
//!
//! An entry is written into a free slot first and published after that, by one store of the
//! permutation (as in Masstree). A reader that has loaded the permutation has all entries that it
//! names, in order, and no others; an insert never disturbs it.
//!
//! Only a split removes entries, and later inserts reuse their slots. So a split increments
//! `reuses` after it has shortened the permutation and before any slot is reused. Slots are
//! stored with release and loaded with acquire: a reader that loads a reused slot sees the
//! increment, and restarts ([`Node::is_unreused`]).
//!
//! # Invariants
//!
//! 1. The target of a slot was complete before the slot was stored, and stays.
//! 2. A slot that the permutation names is not stored, except with an equal target: a cell of the
//!    same key, or a node of the same range.
//! 3. Between two changes of `reuses` the permutation's count only grows: a permutation never
//!    recurs with the same `reuses`.
//! 4. All pointers in a node point into the arena that holds the node itself.
//!
//! Debug assertions of the writer check 2 and 3, and that the entries of a node ascend. Miri and
//! the model tests check 1 and 4.

#![allow(unsafe_code, reason = "readers follow links while a writer adds nodes; run under Miri")]

use std::ptr::null_mut;

use super::arena::{Arena, ArenaCell, CellPtr, prefetch};
use super::prefix::{CommonPrefix, Probe};
use super::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, SLOTS};
use crate::cell::compare_keys;

/// A node in an arena.
pub(super) struct Node {
    permutation: AtomicU64,
    reuses: AtomicU32,
    /// The common prefix that the prefixes skip.
    skip: CommonPrefix,
    /// 0 for a leaf.
    level: u8,
    /// The lower fence: the least key that belongs here; `None` if there is no bound.
    low: Option<CellPtr>,
    /// Leaves only: the leaf after this one.
    next: AtomicPtr<Node>,
    /// Leaves only: a preceding leaf, usually the last such.
    previous: AtomicPtr<Node>,
    prefixes: [AtomicU64; SLOTS],
    slots: [AtomicPtr<()>; SLOTS],
}

/// The entries of a node at one moment.
#[derive(Clone, Copy)]
pub(super) struct NodeSnapshot {
    permutation: Permutation,
    reuses: u32,
}

impl NodeSnapshot {
    /// Returns the number of entries.
    pub(super) fn count(self) -> usize {
        self.permutation.count()
    }
}

/// Target of an entry.
#[derive(Clone, Copy)]
pub(super) enum NodeEntry<'a> {
    Cell(ArenaCell<'a>),
    Child(&'a Node),
}

impl<'a> NodeEntry<'a> {
    /// Returns the least key of the target; `None` if there is no bound.
    pub(super) fn low(self) -> Option<ArenaCell<'a>> {
        match self {
            NodeEntry::Cell(cell) => Some(cell),
            NodeEntry::Child(node) => node.low(),
        }
    }

    fn pointer(self) -> *mut () {
        match self {
            NodeEntry::Cell(cell) => cell.pointer().as_ptr(),
            NodeEntry::Child(node) => std::ptr::from_ref(node).cast_mut().cast(),
        }
    }

    /// Returns the prefix of its least key. That of a first child without a bound is never used.
    fn prefix(self, skip: CommonPrefix) -> u64 {
        self.low().map_or(0, |low| Probe::key(low.key()).prefix(skip))
    }
}

impl Node {
    /// Returns an empty node, which no reader can see yet.
    pub(super) fn new(level: u8, low: Option<ArenaCell<'_>>, skip: CommonPrefix) -> Node {
        Node {
            permutation: AtomicU64::new(Permutation::EMPTY.0),
            reuses: AtomicU32::new(0),
            skip,
            level,
            low: low.map(ArenaCell::pointer),
            next: AtomicPtr::new(null_mut()),
            previous: AtomicPtr::new(null_mut()),
            prefixes: std::array::from_fn(|_| AtomicU64::new(0)),
            slots: std::array::from_fn(|_| AtomicPtr::new(null_mut())),
        }
    }

    /// Moves the node into an arena.
    ///
    /// # Safety
    ///
    /// The arena outlives `'a`.
    pub(super) unsafe fn place<'a>(self, arena: &mut Arena) -> &'a Node {
        let place = arena.place(self);
        // SAFETY: the arena never modifies it, and the caller ensures that it lives for `'a`.
        unsafe { place.as_ref() }
    }

    /// Returns whether its entries are cells.
    pub(super) fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// Returns its distance from the leaves.
    pub(super) fn level(&self) -> u8 {
        self.level
    }

    /// Returns the common prefix that its prefixes skip.
    pub(super) fn skip(&self) -> CommonPrefix {
        self.skip
    }

    /// Returns the cell of the lower fence; `None` if there is no bound.
    pub(super) fn low(&self) -> Option<ArenaCell<'_>> {
        // SAFETY: it was in the arena before the node was, which holds both (invariant 4).
        self.low.map(|low| unsafe { low.cell() })
    }

    /// Returns whether two leaves have the same lower fence: one has replaced the other.
    pub(super) fn begins_as(&self, other: &Node) -> bool {
        self.low == other.low
    }

    /// Returns the leaf after this one.
    pub(super) fn next(&self) -> Option<&Node> {
        follow(&self.next)
    }

    /// Returns a preceding leaf: the last such, or one from which `next` leads to it.
    pub(super) fn previous(&self) -> Option<&Node> {
        follow(&self.previous)
    }

    /// Returns the present entries.
    pub(super) fn snapshot(&self) -> NodeSnapshot {
        // In this order: a permutation loaded after its `reuses` is not older than that.
        let reuses = self.reuses.load(Ordering::Acquire);
        let permutation = Permutation(self.permutation.load(Ordering::Acquire));
        NodeSnapshot { permutation, reuses }
    }

    /// Returns whether all reads through a snapshot so far returned the entries that it names.
    pub(super) fn is_unreused(&self, seen: NodeSnapshot) -> bool {
        self.reuses.load(Ordering::Acquire) == seen.reuses
    }

    /// Returns whether the node still has exactly the entries of a snapshot, and all reads
    /// through it returned them.
    pub(super) fn is_unchanged(&self, seen: NodeSnapshot) -> bool {
        self.permutation.load(Ordering::Acquire) == seen.permutation.0 && self.is_unreused(seen)
    }

    /// Returns a cell of a leaf; any cell if the snapshot is no longer [`Node::is_unreused`].
    pub(super) fn cell(&self, seen: NodeSnapshot, position: usize) -> ArenaCell<'_> {
        debug_assert!(self.is_leaf());
        let slot = &self.slots[seen.permutation.slot(position)];
        let pointer = CellPtr::from_ptr(slot.load(Ordering::Acquire));
        let pointer = pointer.expect("a slot is stored before it is named");
        // SAFETY: invariants 1 and 4: slots of leaves point to cells of the arena that holds the
        // node, and the acquire makes the cell's placing happen before.
        unsafe { pointer.cell() }
    }

    /// Returns a child of an inner node; any child if the snapshot is no longer
    /// [`Node::is_unreused`].
    pub(super) fn child(&self, seen: NodeSnapshot, position: usize) -> &Node {
        debug_assert!(!self.is_leaf());
        let slot = &self.slots[seen.permutation.slot(position)];
        let pointer = slot.load(Ordering::Acquire).cast::<Node>();
        // SAFETY: invariants 1 and 4: slots of inner nodes that a permutation has named point to
        // nodes of the arena that holds this one, and the acquire makes their placing happen
        // before.
        unsafe { pointer.as_ref() }.expect("a slot is stored before it is named")
    }

    /// Returns the prefix of an entry.
    pub(super) fn prefix(&self, seen: NodeSnapshot, position: usize) -> u64 {
        self.prefixes[seen.permutation.slot(position)].load(Ordering::Acquire)
    }

    /// Returns the number of cells of a leaf before `probe`, which must be within its fences.
    pub(super) fn lower_bound(&self, seen: NodeSnapshot, probe: &Probe<'_>) -> usize {
        self.partition_point(seen, 0, probe, |position| {
            probe.compare(self.cell(seen, position).key()).is_gt()
        })
    }

    /// Returns the position of the child of an inner node for `probe`, if it is within the
    /// fences.
    pub(super) fn child_position(&self, seen: NodeSnapshot, probe: &Probe<'_>) -> usize {
        // The first child covers all keys below the second.
        let after = self.partition_point(seen, 1, probe, |position| {
            let low = self.child(seen, position).low();
            low.is_none_or(|low| probe.compare(low.key()).is_ge())
        });
        after - 1
    }

    /// Returns the first position from `start` on whose entry is not before the probe;
    /// `is_before` decides where prefixes are equal.
    fn partition_point(
        &self,
        seen: NodeSnapshot,
        start: usize,
        probe: &Probe<'_>,
        is_before: impl Fn(usize) -> bool,
    ) -> usize {
        let wanted = probe.prefix(self.skip);
        let mut first = start;
        let mut length = seen.count().saturating_sub(start);
        while length > 0 {
            let half = length / 2;
            let position = first + half;
            let prefix = self.prefix(seen, position);
            let before = if prefix == wanted { is_before(position) } else { prefix < wanted };
            if before {
                first = position + 1;
                length -= half + 1;
            } else {
                length = half;
            }
        }
        first
    }

    /// Prefetches the cache lines of the node.
    pub(super) fn prefetch(&self) {
        let start = std::ptr::from_ref(self).cast::<u8>();
        for line in (0..size_of::<Node>()).step_by(64) {
            prefetch(start.wrapping_add(line));
        }
    }
}

/// Operations of the writer.
impl Node {
    /// Returns whether there is no free slot.
    pub(super) fn is_full(&self) -> bool {
        self.snapshot().count() == SLOTS
    }

    /// Inserts an entry at a position. There must be a free slot.
    pub(super) fn put(&self, position: usize, entry: NodeEntry<'_>) {
        let seen = self.snapshot();
        let (permutation, slot) = seen.permutation.insert(position);
        debug_assert!(
            (0..seen.count()).all(|other| seen.permutation.slot(other) != slot),
            "the slot of an entry is stored"
        );
        debug_assert_eq!(permutation.count(), seen.count() + 1, "the count only grows");
        debug_assert!(self.fits(seen, position, entry), "the entries of a node ascend");
        self.prefixes[slot].store(entry.prefix(self.skip), Ordering::Release);
        self.slots[slot].store(entry.pointer(), Ordering::Release);
        self.permutation.store(permutation.0, Ordering::Release);
    }

    /// Returns whether an entry belongs between its neighbours at a position.
    fn fits(&self, seen: NodeSnapshot, position: usize, entry: NodeEntry<'_>) -> bool {
        let Some(key) = entry.low().map(ArenaCell::key) else { return position == 0 };
        let low = |at: usize| self.entry(seen, at).low().map(ArenaCell::key);
        let is_behind = |before: usize| low(before).is_none_or(|b| compare_keys(b, key).is_lt());
        let is_before = |next: usize| low(next).is_some_and(|n| compare_keys(key, n).is_lt());
        position.checked_sub(1).is_none_or(is_behind)
            && (position >= seen.count() || is_before(position))
    }

    /// Replaces the target of an entry by an equal one.
    pub(super) fn replace(&self, position: usize, entry: NodeEntry<'_>) {
        let seen = self.snapshot();
        let slot = seen.permutation.slot(position);
        debug_assert_eq!(
            self.entry(seen, position).low().map(ArenaCell::key),
            entry.low().map(ArenaCell::key),
            "an entry is replaced by another one"
        );
        self.slots[slot].store(entry.pointer(), Ordering::Release);
    }

    /// Removes the entries from `position` on.
    pub(super) fn truncate(&self, position: usize) {
        let permutation = self.snapshot().permutation.truncate(position);
        self.show_fewer(permutation);
    }

    /// Keeps the cells of a leaf for which `keep` is `true`; returns the number of removed ones.
    pub(super) fn retain(&self, keep: impl Fn(ArenaCell<'_>) -> bool) -> usize {
        let seen = self.snapshot();
        let kept = |position: &usize| keep(self.cell(seen, *position));
        let (kept, removed): (Vec<usize>, Vec<usize>) = (0..seen.count()).partition(kept);
        if !removed.is_empty() {
            self.show_fewer(seen.permutation.keep(&kept, &removed));
        }
        removed.len()
    }

    fn show_fewer(&self, permutation: Permutation) {
        debug_assert!(permutation.count() < self.snapshot().count(), "no entry is removed");
        self.permutation.store(permutation.0, Ordering::Release);
        let reuses = self.reuses.load(Ordering::Relaxed);
        self.reuses.store(reuses.wrapping_add(1), Ordering::Release);
    }

    /// Copies entries of another node into this one, which is empty and not visible to readers.
    pub(super) fn copy_from(&self, other: &Node, positions: std::ops::Range<usize>) {
        let seen = other.snapshot();
        debug_assert!(positions.end <= seen.count(), "entries that are not there");
        debug_assert_eq!(self.level, other.level, "entries of another level");
        for (position, from) in positions.enumerate() {
            self.put(position, other.entry(seen, from));
        }
    }

    fn entry(&self, seen: NodeSnapshot, position: usize) -> NodeEntry<'_> {
        match self.is_leaf() {
            true => NodeEntry::Cell(self.cell(seen, position)),
            false => NodeEntry::Child(self.child(seen, position)),
        }
    }

    /// Returns whether a cell with the key of `probe` is at the position of a leaf where it
    /// belongs.
    pub(super) fn has(&self, position: usize, probe: &Probe<'_>) -> bool {
        let seen = self.snapshot();
        position < seen.count()
            && self.prefix(seen, position) == probe.prefix(self.skip)
            && probe.compare(self.cell(seen, position).key()).is_eq()
    }

    /// Returns whether `probe` comes after the last cell of a leaf that has one.
    pub(super) fn ends_before(&self, probe: &Probe<'_>) -> bool {
        let seen = self.snapshot();
        let last = seen.count() - 1;
        let (prefix, wanted) = (self.prefix(seen, last), probe.prefix(self.skip));
        prefix < wanted || prefix == wanted && probe.compare(self.cell(seen, last).key()).is_gt()
    }

    /// Returns whether the prefixes of the entries before `end` are all equal, and so useless.
    pub(super) fn is_blind(&self, end: usize) -> bool {
        let seen = self.snapshot();
        let first = usize::from(!self.is_leaf());
        first + 1 < end && self.prefix(seen, first) == self.prefix(seen, end - 1)
    }

    /// Sets the leaf after this one.
    pub(super) fn set_next(&self, next: Option<&Node>) {
        self.next.store(as_link(next), Ordering::Release);
    }

    /// Sets a preceding leaf.
    pub(super) fn set_previous(&self, previous: Option<&Node>) {
        self.previous.store(as_link(previous), Ordering::Release);
    }
}

fn as_link(node: Option<&Node>) -> *mut Node {
    node.map_or(null_mut(), |node| std::ptr::from_ref(node).cast_mut())
}

/// Returns the target of a link. The link is in the arena of that node, or next to it.
pub(super) fn follow(link: &AtomicPtr<Node>) -> Option<&Node> {
    // SAFETY: invariants 1 and 4: a link is stored when the node is complete, and the node lives
    // as long as the link.
    unsafe { link.load(Ordering::Acquire).as_ref() }
}

/// The number of entries in the lowest four bits, then the slots, four bits each: those of the
/// entries in order, then the free ones.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Permutation(u64);

impl Permutation {
    const EMPTY: Permutation = {
        assert!(SLOTS <= 15);
        let mut bits = 0;
        let mut slot = 0;
        while slot < SLOTS {
            bits |= (slot as u64) << (4 * (slot + 1));
            slot += 1;
        }
        Permutation(bits)
    };

    fn count(self) -> usize {
        (self.0 & 15) as usize
    }

    fn slot(self, position: usize) -> usize {
        (self.0 >> (4 * (position + 1)) & 15) as usize
    }

    /// Returns the permutation with the first free slot inserted at `position`, and that slot.
    fn insert(self, position: usize) -> (Permutation, usize) {
        let count = self.count();
        debug_assert!(position <= count && count < SLOTS);
        let slot = self.slot(count);
        let below = |position: usize| (1 << (4 * (position + 1))) - 1;
        let before = self.0 & below(position);
        let moved = (self.0 & below(count) & !below(position)) << 4;
        // Behind the last of fifteen slots there are no bits to keep.
        let after = if count + 2 < 16 { self.0 & !below(count + 1) } else { 0 };
        let inserted = (slot as u64) << (4 * (position + 1));
        (Permutation((before | inserted | moved | after) + 1), slot)
    }

    fn truncate(self, count: usize) -> Permutation {
        debug_assert!(count <= self.count());
        Permutation(self.0 & !15 | count as u64)
    }

    /// Returns the permutation with the entries at `kept`; those at `removed` are free.
    fn keep(self, kept: &[usize], removed: &[usize]) -> Permutation {
        let free = self.count()..SLOTS;
        let order = kept.iter().chain(removed).copied().chain(free);
        let slots = order.enumerate().map(|(to, from)| (self.slot(from) as u64) << (4 * (to + 1)));
        Permutation(slots.sum::<u64>() | kept.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(permutation: Permutation) -> Vec<usize> {
        (0..permutation.count()).map(|position| permutation.slot(position)).collect()
    }

    #[test]
    fn permutation_matches_list_model() {
        // All insertion orders, by a number whose digits are the positions.
        for seed in 0..if cfg!(miri) { 5 } else { 2000_u64 } {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (mut permutation, mut model, mut free) =
                (Permutation::EMPTY, Vec::new(), (0..SLOTS).collect::<Vec<_>>());
            for _ in 0..60 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let choice = (random >> 33) as usize;
                if model.len() < SLOTS && choice & 7 != 0 {
                    let position = choice / 8 % (model.len() + 1);
                    let slot;
                    (permutation, slot) = permutation.insert(position);
                    assert!(free.contains(&slot));
                    free.retain(|other| *other != slot);
                    model.insert(position, slot);
                } else if choice & 8 == 0 {
                    let count = choice / 16 % (model.len() + 1);
                    permutation = permutation.truncate(count);
                    free.extend(model.drain(count..));
                } else {
                    let (kept, removed): (Vec<usize>, Vec<usize>) =
                        (0..model.len()).partition(|position| choice >> position & 1 == 0);
                    permutation = permutation.keep(&kept, &removed);
                    free.extend(removed.iter().map(|&position| model[position]));
                    model = kept.iter().map(|&position| model[position]).collect();
                }
                assert_eq!(slots(permutation), model);
            }
        }
    }
}
