//! A reader's copy of a leaf: its cells at one moment, and the moves to adjacent leaves.

use std::ops::Range;

use super::arena::ArenaCell;
use super::node::{Node, NodeSnapshot};
use super::prefix::Probe;
use super::sync::SLOTS;

/// Consecutive cells of a leaf.
#[derive(Clone)]
pub(super) struct LeafCells<'a> {
    leaf: Option<&'a Node>,
    cells: [Option<ArenaCell<'a>>; SLOTS],
    length: usize,
}

impl<'a> LeafCells<'a> {
    /// Returns an empty copy without a next leaf.
    pub(super) fn new() -> LeafCells<'a> {
        LeafCells { leaf: None, cells: [None; SLOTS], length: 0 }
    }

    /// Clears the cells, without a next leaf.
    pub(super) fn clear(&mut self) {
        self.leaf = None;
        self.length = 0;
    }

    /// Keeps the cells, without a next leaf: adjacent leaves have no matching cells.
    pub(super) fn ends_here(&mut self) {
        self.leaf = None;
    }

    /// Returns whether there may be more cells in the next leaf.
    pub(super) fn goes_on(&self) -> bool {
        self.leaf.is_some()
    }

    /// Returns the number of cells.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Returns whether there is no cell.
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns a cell.
    pub(super) fn cell(&self, position: usize) -> Option<ArenaCell<'a>> {
        self.cells[..self.length].get(position).copied().flatten()
    }

    /// Returns the last cell.
    pub(super) fn last(&self) -> Option<ArenaCell<'a>> {
        self.cell(self.length.checked_sub(1)?)
    }

    /// Copies the cells of a leaf at these positions; returns `false` if some of them have
    /// changed since the snapshot.
    pub(super) fn copy(
        &mut self,
        leaf: &'a Node,
        seen: NodeSnapshot,
        positions: Range<usize>,
    ) -> bool {
        self.leaf = Some(leaf);
        self.length = positions.len();
        for (copy, position) in self.cells.iter_mut().zip(positions) {
            let cell = leaf.cell(seen, position);
            cell.prefetch();
            *copy = Some(cell);
        }
        leaf.is_unreused(seen)
    }

    /// Moves to the cells after `bound` of the next non-empty leaf; empty at the end.
    pub(super) fn go_on(&mut self, bound: &Probe<'_>) {
        self.length = 0;
        while self.length == 0
            && let Some(next) = self.leaf.and_then(Node::next)
        {
            let seen = next.snapshot();
            // Cells that the previous leaf had too are skipped. The bound may lie outside the
            // fences, so prefixes cannot be used.
            let is_new = |&at: &usize| bound.compare(next.cell(seen, at).key()).is_lt();
            let from = (0..seen.count()).find(is_new).unwrap_or(seen.count());
            let here = self.leaf;
            if !self.copy(next, seen, from..seen.count()) {
                self.leaf = here;
                self.length = 0;
            } else if let Some(after) = next.next() {
                after.prefetch();
            }
        }
    }

    /// Moves back to the cells of the previous non-empty leaf; empty at the beginning.
    pub(super) fn go_back(&mut self) {
        self.length = 0;
        while self.length == 0
            && let Some(leaf) = self.leaf
        {
            let Some(mut previous) = leaf.previous() else {
                self.leaf = None;
                return;
            };
            loop {
                let seen = previous.snapshot();
                let whole = self.copy(previous, seen, 0..seen.count());
                // Checked after the snapshot: if a split has cut the leaf before that, the new
                // leaf is between, and has the rest.
                match previous.next() {
                    Some(next) if !next.begins_as(leaf) => previous = next,
                    _ if whole => break,
                    _ => {}
                }
            }
            // If this leaf is the new one of a split, the previous one may not be cut yet.
            let Some(bound) = leaf.low().map(|low| Probe::key(low.key())) else { return };
            while self.last().is_some_and(|cell| bound.compare(cell.key()).is_le()) {
                self.length -= 1;
            }
        }
    }
}
