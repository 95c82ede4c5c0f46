//! Final state of a transaction: its staged cells reduced to those that one commit writes.
//!
//! All cells of a commit have one sequence, and a marker masks only cells that are strictly
//! older. So a put that the transaction deleted again is dropped here, and a put made after a
//! delete stays with the marker. Of several versions with the same timestamp, the one staged last
//! stays.
//!
//! Cells are visited in cell order, so all markers that can mask a put (not older by timestamp)
//! come before it, and versions with the same timestamp are adjacent, the newest first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::engine::CommitWrites;
use crate::error::{Error, Result};
use crate::region::RegionMap;
use crate::staged::StagedFamily;
use crate::transaction::staging::StagedTable;

/// Adds the final state of a table's staged cells to `writes`.
///
/// # Errors
///
/// [`Error::Cancelled`].
pub(crate) fn collapse(
    staged: &StagedTable,
    writes: &mut CommitWrites,
    cancelled: &AtomicBool,
) -> Result<()> {
    let map = staged.table.regions();
    let first_of_table = writes.regions.len();
    let counted = staged.families.iter().flatten().position(|family| !family.is_empty());
    let written = staged
        .families
        .iter()
        .enumerate()
        .filter_map(|(family, cells)| Some((family, cells.as_ref()?)));
    for (index, (family, cells)) in written.enumerate() {
        let mut place = RegionSlot { map: &map, region: usize::MAX, slot: 0 };
        for_each_cell(cells, cancelled, |parts, value, (new_row, is_kept)| {
            if new_row {
                place.move_to(parts.row, first_of_table, writes);
            }
            if is_kept {
                let part = &mut writes.regions[place.slot];
                part.row_count += u64::from(new_row && counted == Some(index));
                part.cells.push(family as u8, parts, value);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Calls `visit` with every cell of a family, in cell order, with two flags: the cell is the
/// first one of its row, and it is part of the final state.
///
/// # Errors
///
/// [`Error::Cancelled`]; errors of `visit` and of reading.
pub(super) fn for_each_cell(
    cells: &StagedFamily,
    cancelled: &AtomicBool,
    mut visit: impl FnMut(&KeyParts<'_>, &[u8], (bool, bool)) -> Result<()>,
) -> Result<()> {
    let mut column = ColumnMarkers::default();
    cells.try_for_each(|parts, value| {
        if cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let is_new_row = column.enter(&parts);
        let is_kept = column.keeps(&parts);
        visit(&parts, value, (is_new_row, is_kept))
    })
}

/// Region of the current row, and its entry in the writes.
struct RegionSlot<'a> {
    map: &'a Arc<RegionMap>,
    /// Index of the region; past the end at first.
    region: usize,
    /// Index of its entry in the writes.
    slot: usize,
}

impl RegionSlot<'_> {
    /// Moves on to the region of `row`, if the current one ends before it.
    fn move_to(&mut self, row: &[u8], first_of_table: usize, writes: &mut CommitWrites) {
        if let Some(region) = self.map.all().get(self.region)
            && !self.map.is_colocated()
            && region.stop().is_none_or(|stop| row < stop)
        {
            return;
        }
        self.region = self.map.index_of(row);
        self.slot = writes.slot_of(&self.map.all()[self.region], first_of_table);
    }
}

/// Current row and column of one family, with the markers seen.
#[derive(Default)]
struct ColumnMarkers {
    row: Vec<u8>,
    qualifier: Vec<u8>,
    started: bool,
    family_markers: SmallVec<[Marker; 2]>,
    column_markers: SmallVec<[Marker; 2]>,
    /// The last cell of the column, in the final state or dropped.
    last: Option<(Timestamp, CellType)>,
}

#[derive(Clone, Copy)]
struct Marker {
    timestamp: Timestamp,
    sequence: Sequence,
    /// Masks one version only, not the older ones.
    exact: bool,
}

impl Marker {
    fn masks(&self, put: &KeyParts<'_>) -> bool {
        let covers = match self.exact {
            true => self.timestamp == put.timestamp,
            false => self.timestamp >= put.timestamp,
        };
        covers && self.sequence > put.sequence
    }
}

impl ColumnMarkers {
    /// Moves to the column of a cell; returns whether its row is new.
    fn enter(&mut self, parts: &KeyParts<'_>) -> bool {
        let new_row = !self.started || self.row != parts.row;
        if new_row {
            self.started = true;
            self.row.clear();
            self.row.extend_from_slice(parts.row);
            self.family_markers.clear();
        }
        if new_row || self.qualifier != parts.qualifier {
            self.qualifier.clear();
            self.qualifier.extend_from_slice(parts.qualifier);
            self.column_markers.clear();
            self.last = None;
        }
        new_row
    }

    /// Returns whether a cell is part of the final state.
    fn keeps(&mut self, parts: &KeyParts<'_>) -> bool {
        // The same version again, with or without a TTL: it was staged earlier.
        let cell_type = if parts.cell_type.is_put() { CellType::Put } else { parts.cell_type };
        let version = Some((parts.timestamp, cell_type));
        if std::mem::replace(&mut self.last, version) == version {
            return false;
        }
        let (timestamp, sequence) = (parts.timestamp, parts.sequence);
        let mark = |markers: &mut SmallVec<[Marker; 2]>, exact| {
            markers.push(Marker { timestamp, sequence, exact });
            true
        };
        match parts.cell_type {
            CellType::DeleteFamily => mark(&mut self.family_markers, false),
            CellType::DeleteFamilyVersion => mark(&mut self.family_markers, true),
            CellType::DeleteColumn => mark(&mut self.column_markers, false),
            CellType::Delete => mark(&mut self.column_markers, true),
            CellType::Put | CellType::ExpiringPut => {
                let markers = self.family_markers.iter().chain(&self.column_markers);
                !markers.into_iter().any(|marker| marker.masks(parts))
            }
        }
    }
}
