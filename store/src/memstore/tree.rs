//! A B+-tree of cells in an arena: one writer at a time, readers without locks.
//!
//! Nodes and cells are added to the arena and freed only with the tree, so a reader can use a
//! reference as long as it likes. [`super::node`] describes how a reader gets all entries of
//! *one* node; this module finds the node.
//!
//! # Splits
//!
//! A full node keeps its lower half and a new node takes the upper half, in this order:
//!
//! 1. the new node is filled, and linked after the old one (leaves);
//! 2. it is added to the parent, or to a new root; the parent may have to be split before that;
//! 3. the old node is cut to its lower half.
//!
//! Until 3 the upper half is in both, and nothing is added to either.
//!
//! A reader takes a snapshot of a node, finds the child, takes a snapshot of the child, and then
//! checks that the node is unchanged ([`Node::is_unchanged`]; for the root: that it is still the
//! root). If so, the child had not been cut when the reader saw it: the cut comes after the
//! change of the parent. So the child's snapshot has all of the child's range, as in the parent.
//! If not, it restarts at the root; each time a split has been completed.
//!
//! Along the leaves, a reader may see cells again that it had in the previous leaf (between 1 and
//! 3), and skips them; it never misses any, because cells only ever move to the right.
//!
//! # Rebuilding prefixes
//!
//! A node's prefixes begin after the common prefix of its fences at its creation
//! ([`CommonPrefix`]). A node without an upper fence, as all are when cells are inserted in order,
//! may have equal prefixes. It is then rebuilt when it is split, and the copy replaces it in the
//! parent after 2. Readers of the old one still find all cells that were inserted before; it stays
//! in the arena.
//!
//! # Visibility to readers
//!
//! A reader sees all cells whose insert returned before it began, and possibly some inserted
//! meanwhile. The sequences decide, elsewhere, if they are visible to a snapshot.

#![allow(unsafe_code, reason = "ties what is in the arena to the tree's lifetime; run under Miri")]

use std::ptr::{self, null_mut};

use smallvec::SmallVec;

use super::arena::{Arena, ArenaCell, CellPtr};
use super::leaf_cells::LeafCells;
use super::node::{Node, NodeEntry, NodeSnapshot, follow};
use super::prefix::{CommonPrefix, Probe};
use super::sync::{AtomicPtr, AtomicU64, Mutex, Ordering, SLOTS};
use crate::cell::KeyParts;

/// Tree of cells.
pub(super) struct Tree {
    /// Null while there is no cell.
    root: AtomicPtr<Node>,
    /// The first eight bytes of the least row ever inserted, and of the greatest.
    first_prefix: AtomicU64,
    last_prefix: AtomicU64,
    /// The last leaf, and the leaf of the last insert (null after a split). Used only by the
    /// writer.
    last: AtomicPtr<Node>,
    recent: AtomicPtr<Node>,
    writer: Mutex<Writer>,
}

/// State of the writer.
#[derive(Default)]
struct Writer {
    arena: Arena,
    /// The last inserted cell.
    recent_cell: Option<CellPtr>,
}

/// Growth of the tree by inserts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Growth {
    /// Number of new keys.
    pub(super) cells: u64,
    /// Total bytes of allocations.
    pub(super) used_bytes: u64,
    /// Bytes of all chunks.
    pub(super) held_bytes: u64,
}

/// Inner nodes from the root to a node, with the positions of the children.
type Path<'a> = SmallVec<[(&'a Node, usize); 12]>;

impl Default for Tree {
    fn default() -> Tree {
        Tree {
            root: AtomicPtr::new(null_mut()),
            first_prefix: AtomicU64::new(u64::MAX),
            last_prefix: AtomicU64::new(0),
            last: AtomicPtr::new(null_mut()),
            recent: AtomicPtr::new(null_mut()),
            writer: Mutex::new(Writer::default()),
        }
    }
}

/// Reading.
impl Tree {
    fn root(&self) -> Option<&Node> {
        follow(&self.root)
    }

    /// Returns whether a row lies outside the range of all rows, by its first bytes.
    pub(super) fn is_outside(&self, row: &[u8]) -> bool {
        let prefix = Probe::row_start(row).prefix(CommonPrefix::NOTHING);
        prefix < self.first_prefix.load(Ordering::Relaxed)
            || prefix > self.last_prefix.load(Ordering::Relaxed)
    }

    /// Returns the leaf for a position, or the last leaf.
    fn leaf_of(&self, probe: Option<&Probe<'_>>) -> Option<(&Node, NodeSnapshot)> {
        loop {
            let root = self.root()?;
            let seen = root.snapshot();
            if !self.root().is_some_and(|now| ptr::eq(now, root)) {
                continue;
            }
            if let Some(found) = descend(root, seen, probe) {
                return Some(found);
            }
        }
    }

    /// Fills `cells` with those of a leaf from the first one after `probe`; leaves it empty if
    /// there is none.
    pub(super) fn seek<'a>(&'a self, probe: &Probe<'_>, cells: &mut LeafCells<'a>) {
        cells.clear();
        while let Some((leaf, seen)) = self.leaf_of(Some(probe)) {
            let from = leaf.lower_bound(seen, probe);
            if cells.copy(leaf, seen, from..seen.count()) {
                if cells.is_empty() {
                    cells.go_on(probe);
                }
                return;
            }
        }
    }

    /// Fills `cells` with those of a leaf that have the same first bytes as `row`. If there may
    /// be more in the next leaf, the copy continues there.
    pub(super) fn seek_row<'a>(&'a self, row: &[u8], cells: &mut LeafCells<'a>) {
        let probe = Probe::row_start(row);
        cells.clear();
        while let Some((leaf, seen)) = self.leaf_of(Some(&probe)) {
            let from = leaf.lower_bound(seen, &probe);
            let mut end = seen.count();
            if leaf.skip().is_within_row() {
                let wanted = probe.prefix(leaf.skip());
                end = (from..end).find(|&at| leaf.prefix(seen, at) != wanted).unwrap_or(end);
            }
            if cells.copy(leaf, seen, from..end) {
                if end < seen.count() {
                    cells.ends_here();
                } else if cells.is_empty() {
                    cells.go_on(&probe);
                }
                return;
            }
        }
    }

    /// Fills `cells` with those of a leaf up to the last one before `probe`, or before the end;
    /// leaves it empty if there is none.
    pub(super) fn seek_before<'a>(&'a self, probe: Option<&Probe<'_>>, cells: &mut LeafCells<'a>) {
        cells.clear();
        while let Some((leaf, seen)) = self.leaf_of(probe) {
            let end = probe.map_or(seen.count(), |probe| leaf.lower_bound(seen, probe));
            if cells.copy(leaf, seen, 0..end) {
                if cells.is_empty() {
                    cells.go_back();
                }
                return;
            }
        }
    }
}

/// Descends to the leaf for a position; `None` if a node changed on the way.
fn descend<'a>(
    root: &'a Node,
    seen: NodeSnapshot,
    probe: Option<&Probe<'_>>,
) -> Option<(&'a Node, NodeSnapshot)> {
    let (mut node, mut seen) = (root, seen);
    while !node.is_leaf() {
        let last = seen.count() - 1;
        let position = probe.map_or(last, |probe| node.child_position(seen, probe));
        let child = node.child(seen, position);
        child.prefetch();
        let child_seen = child.snapshot();
        if !node.is_unchanged(seen) {
            return None;
        }
        (node, seen) = (child, child_seen);
    }
    Some((node, seen))
}

/// Writing.
impl Tree {
    /// Inserts cells. A cell replaces one with the same key.
    pub(super) fn insert<'c>(
        &self,
        cells: impl Iterator<Item = (KeyParts<'c>, &'c [u8])>,
    ) -> Growth {
        let mut writer = self.writer.lock();
        let mut added = 0;
        for (key, value) in cells {
            let cell = writer.arena.place_cell(&key, value);
            // SAFETY: the arena lives as long as the tree.
            let cell = unsafe { cell.cell() };
            added += u64::from(self.insert_cell(&mut writer, cell));
        }
        let arena = &writer.arena;
        Growth { cells: added, used_bytes: arena.used_bytes(), held_bytes: arena.held_bytes() }
    }

    /// Inserts a cell; returns whether its key is new.
    fn insert_cell<'a>(&'a self, writer: &mut Writer, cell: ArenaCell<'a>) -> bool {
        let probe = Probe::key(cell.key());
        let prefix = probe.prefix(CommonPrefix::NOTHING);
        if prefix < self.first_prefix.load(Ordering::Relaxed) {
            self.first_prefix.store(prefix, Ordering::Relaxed);
        }
        if prefix > self.last_prefix.load(Ordering::Relaxed) {
            self.last_prefix.store(prefix, Ordering::Relaxed);
        }
        let Some(root) = self.root() else {
            let leaf = self.place(writer, Node::new(0, None, CommonPrefix::NOTHING));
            leaf.put(0, NodeEntry::Cell(cell));
            self.last.store(as_link(leaf), Ordering::Relaxed);
            self.root.store(as_link(leaf), Ordering::Release);
            return true;
        };
        let mut path = Path::new();
        let (leaf, position) = self.near(writer, &probe).unwrap_or_else(|| {
            let leaf = descend_for_insert(root, &probe, 0, &mut path);
            (leaf, leaf.lower_bound(leaf.snapshot(), &probe))
        });
        if leaf.has(position, &probe) {
            leaf.replace(position, NodeEntry::Cell(cell));
            return false;
        }
        self.recent.store(as_link(leaf), Ordering::Relaxed);
        writer.recent_cell = Some(cell.pointer());
        self.add(writer, &path, leaf, (position, NodeEntry::Cell(cell)));
        true
    }

    /// Adds an entry to a node; a full node is split first. `path` leads to a full node.
    fn add<'a>(
        &'a self,
        writer: &mut Writer,
        path: &[(&'a Node, usize)],
        node: &'a Node,
        (position, entry): (usize, NodeEntry<'a>),
    ) {
        if !node.is_full() {
            node.put(position, entry);
            return;
        }
        self.recent.store(null_mut(), Ordering::Relaxed);
        let split = self.divide(writer, path, node, (position, entry));
        let Split { at, left, right } = split;
        if node.is_leaf() {
            self.link_leaves(node, left, right);
        }
        let child = NodeEntry::Child(right);
        match path.split_last() {
            Some((&(parent, parent_position), above)) => {
                self.add(writer, above, parent, (parent_position + 1, child));
            }
            None => {
                let root =
                    self.place(writer, Node::new(node.level() + 1, None, CommonPrefix::NOTHING));
                root.put(0, NodeEntry::Child(left));
                root.put(1, child);
                self.root.store(as_link(root), Ordering::Release);
            }
        }
        if !ptr::eq(left, node) {
            self.exchange(node, left);
        } else if at < SLOTS {
            node.truncate(at);
        }
        if position <= at && at < SLOTS {
            left.put(position, entry);
        } else if at < SLOTS {
            right.put(position - at, entry);
        }
    }

    /// Creates the new nodes of a split, which no reader can see yet.
    fn divide<'a>(
        &'a self,
        writer: &mut Writer,
        path: &[(&'a Node, usize)],
        node: &'a Node,
        (position, entry): (usize, NodeEntry<'a>),
    ) -> Split<'a> {
        let seen = node.snapshot();
        let high = upper_fence(path);
        // Cells inserted in order fill their nodes.
        let at_end = position == SLOTS && high.is_none();
        let at = if at_end { SLOTS } else { SLOTS.div_ceil(2) };
        let first_right = match () {
            () if at_end => entry,
            () if node.is_leaf() => NodeEntry::Cell(node.cell(seen, at)),
            () => NodeEntry::Child(node.child(seen, at)),
        };
        let right_low = first_right.low().expect("only the first child of all has no bound");
        let skip = high.map_or(CommonPrefix::NOTHING, |high| {
            CommonPrefix::between(right_low.key(), high.key())
        });
        let right = self.place(writer, Node::new(node.level(), Some(right_low), skip));
        match at_end {
            true => right.put(0, entry),
            false => right.copy_from(node, at..SLOTS),
        }
        let left =
            match node.low().map(|low| (low, CommonPrefix::between(low.key(), right_low.key()))) {
                Some((low, skip)) if skip > node.skip() && node.is_blind(at) => {
                    let left = self.place(writer, Node::new(node.level(), Some(low), skip));
                    left.copy_from(node, 0..at);
                    left
                }
                _ => node,
            };
        Split { at, left, right }
    }

    /// Replaces a node by another one with the same first key.
    fn exchange(&self, old: &Node, new: &Node) {
        let (Some(root), Some(low)) = (self.root(), new.low()) else { return };
        let probe = Probe::key(low.key());
        let mut path = Path::new();
        descend_for_insert(root, &probe, old.level(), &mut path);
        if let Some(&(parent, position)) = path.last() {
            debug_assert!(ptr::eq(parent.child(parent.snapshot(), position), old));
            parent.replace(position, NodeEntry::Child(new));
        }
    }

    /// Returns the leaf with room that certainly includes a position, and the index in it, if it
    /// is the last leaf, behind its last cell, or the leaf of the last insert.
    fn near(&self, writer: &Writer, probe: &Probe<'_>) -> Option<(&Node, usize)> {
        if let Some(last) = follow(&self.last) {
            let count = last.snapshot().count();
            if 0 < count && last.ends_before(probe) {
                return (count < SLOTS).then_some((last, count));
            }
        }
        let recent = follow(&self.recent)?;
        // SAFETY: the arena is the writer's.
        let cell = unsafe { writer.recent_cell?.cell() };
        let seen = recent.snapshot();
        // A key with this common prefix with a cell of the leaf can be located by the leaf's
        // prefixes.
        if seen.count() == SLOTS || !probe.shares(&Probe::key(cell.key()), recent.skip()) {
            return None;
        }
        let position = recent.lower_bound(seen, probe);
        (0 < position && position < seen.count()).then_some((recent, position))
    }

    /// Links the leaves that a split made.
    fn link_leaves(&self, old: &Node, left: &Node, right: &Node) {
        right.set_next(old.next());
        right.set_previous(Some(left));
        if !ptr::eq(left, old) {
            left.set_next(Some(right));
            left.set_previous(old.previous());
            if let Some(previous) = old.previous() {
                previous.set_next(Some(left));
            }
        } else {
            old.set_next(Some(right));
        }
        match right.next() {
            Some(next) => next.set_previous(Some(right)),
            None => self.last.store(as_link(right), Ordering::Relaxed),
        }
    }

    fn place(&self, writer: &mut Writer, node: Node) -> &Node {
        // SAFETY: the arena lives as long as the tree.
        unsafe { node.place(&mut writer.arena) }
    }

    /// Removes the cells for which `keep` is `false`; returns their number. Their bytes stay in
    /// use.
    pub(super) fn retain(&self, keep: impl Fn(ArenaCell<'_>) -> bool) -> u64 {
        let _writer = self.writer.lock();
        let mut next = self.root();
        while let Some(node) = next.filter(|node| !node.is_leaf()) {
            next = Some(node.child(node.snapshot(), 0));
        }
        let mut removed = 0;
        while let Some(leaf) = next {
            removed += leaf.retain(&keep) as u64;
            next = leaf.next();
        }
        removed
    }
}

/// Result of dividing a full node.
struct Split<'a> {
    /// The position of the first entry that moved to the right; [`SLOTS`] if only the new entry
    /// is there.
    at: usize,
    /// The node itself, not yet cut, or a new one for its lower half.
    left: &'a Node,
    right: &'a Node,
}

/// Descends to the node of a level for a position. Called by the writer.
fn descend_for_insert<'a>(
    root: &'a Node,
    probe: &Probe<'_>,
    level: u8,
    path: &mut Path<'a>,
) -> &'a Node {
    let mut node = root;
    while node.level() > level {
        let seen = node.snapshot();
        let position = node.child_position(seen, probe);
        path.push((node, position));
        node = node.child(seen, position);
        node.prefetch();
    }
    node
}

/// Returns the upper fence of the node to which a path leads.
fn upper_fence<'a>(path: &[(&'a Node, usize)]) -> Option<ArenaCell<'a>> {
    path.iter().rev().find_map(|&(node, position)| {
        let seen = node.snapshot();
        let after = Some(position + 1).filter(|after| *after < seen.count())?;
        node.child(seen, after).low()
    })
}

fn as_link(node: &Node) -> *mut Node {
    ptr::from_ref(node).cast_mut()
}
