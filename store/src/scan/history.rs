//! History tracker: the time from which time travel reads are complete after a flush or
//! compaction.
//!
//! A time travel read ([`TimeRange::as_of`](crate::TimeRange::as_of)) takes the cells up to a
//! timestamp and applies [`retention`](crate::scan::retention) to those only. It is correct as
//! long as no version was dropped that was visible at that time. A dropped version was visible
//! until the first of these, at the latest:
//!
//! * the timestamp of a version above it that remains;
//! * that of a marker that covers it and was written after it;
//! * the end of its TTL: the family's, unless MIN_VERSIONS keeps versions beyond it, or its own;
//! * the highest timestamp in its column, unless it has expired: then all cells that decide about
//!   it were written.
//!
//! The maximum of these times, over all versions that were ever dropped, is the begin of the
//! history of a store. The manifest records it with the files; it never decreases.
//!
//! # Invariants
//!
//! 1. Every dropped version ended no later than [`HistoryTracker::begin`], which may be later
//!    than necessary, never earlier.

use smallvec::SmallVec;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::descriptor::FamilyDescriptor;
use crate::scan::rules::ExpirySteps;

/// Tracker of the versions that one flush or compaction drops.
pub(crate) struct HistoryTracker {
    begin: Timestamp,
    /// The TTLs of the family.
    steps: ExpirySteps,
    /// Time by which the rewrite decides expiry.
    now: Timestamp,
    row_markers: SmallVec<[Marker; 2]>,
    column_markers: SmallVec<[Marker; 2]>,
    /// Highest timestamp of the row's family markers, and of the cells of the column.
    row_highest: Timestamp,
    highest: Timestamp,
}

#[derive(Debug, Clone, Copy)]
struct Marker {
    timestamp: Timestamp,
    sequence: Sequence,
    /// True for a marker of a single version.
    of_version: bool,
}

const NEVER: Timestamp = Timestamp(i64::MIN);

impl HistoryTracker {
    /// Returns the tracker of a rewrite that has dropped nothing yet.
    pub(crate) fn new(family: &FamilyDescriptor, now: Timestamp) -> HistoryTracker {
        HistoryTracker {
            begin: NEVER,
            steps: family.expiry_steps(),
            now,
            row_markers: SmallVec::new(),
            column_markers: SmallVec::new(),
            row_highest: NEVER,
            highest: NEVER,
        }
    }

    /// Returns the time from which on the history is complete.
    pub(crate) fn begin(&self) -> Timestamp {
        self.begin
    }

    /// Begins a row.
    pub(crate) fn start_row(&mut self) {
        self.row_markers.clear();
        self.row_highest = NEVER;
    }

    /// Begins a column.
    pub(crate) fn start_column(&mut self) {
        self.column_markers.clear();
        self.highest = NEVER;
    }

    /// Records a cell, before retention decides about it.
    pub(crate) fn meet(&mut self, cell: &KeyParts<'_>) {
        self.highest = self.highest.max(cell.timestamp);
        if cell.cell_type.is_put() {
            return;
        }
        let (timestamp, sequence) = (cell.timestamp, cell.sequence);
        let of_version = matches!(cell.cell_type, CellType::Delete | CellType::DeleteFamilyVersion);
        let marker = Marker { timestamp, sequence, of_version };
        if cell.cell_type.is_family_marker() {
            self.row_highest = self.row_highest.max(timestamp);
            self.row_markers.push(marker);
        } else {
            self.column_markers.push(marker);
        }
    }

    /// Records a dropped put, which without this was the last version of its timestamp. Its own
    /// TTL would end it at `until`; `live_at` is the timestamp of the last version before it in
    /// the column that remains.
    pub(crate) fn drop_put(
        &mut self,
        put: &KeyParts<'_>,
        until: Timestamp,
        live_at: Option<Timestamp>,
    ) {
        let last_seen = until.min(Timestamp(self.steps.last_visible(put.timestamp)));
        let mut end = match last_seen < self.now {
            true => Timestamp(last_seen.0 + 1),
            false => self.highest.max(self.row_highest),
        };
        for marker in self.row_markers.iter().chain(&self.column_markers) {
            if marker.timestamp < put.timestamp || marker.sequence <= put.sequence {
                continue;
            }
            if !marker.of_version {
                end = end.min(marker.timestamp);
            } else if marker.timestamp == put.timestamp {
                return;
            }
        }
        end = end.min(live_at.unwrap_or(end));
        if end > put.timestamp {
            self.begin = self.begin.max(end);
        }
    }
}

/// Returns the time from which on the history is complete without the cells of a file, all of
/// which have expired: by the family's TTL the last of them at `newest`, or by their own TTL at
/// `last_seen`.
pub(crate) fn begin_without(
    family: &FamilyDescriptor,
    (newest, last_seen): (Timestamp, Timestamp),
) -> Timestamp {
    let by_family = family.expiry_steps().last_visible(newest);
    Timestamp(by_family.min(last_seen.0).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn put(timestamp: i64, sequence: u64) -> KeyParts<'static> {
        cell(timestamp, sequence, CellType::Put)
    }

    fn cell(timestamp: i64, sequence: u64, cell_type: CellType) -> KeyParts<'static> {
        let (timestamp, sequence) = (Timestamp(timestamp), Sequence(sequence));
        KeyParts { row: b"r", qualifier: b"q", timestamp, sequence, cell_type }
    }

    fn begin_of(
        family: &FamilyDescriptor,
        met: &[KeyParts<'_>],
        until: i64,
        live_at: Option<i64>,
    ) -> i64 {
        let mut tracker = HistoryTracker::new(family, Timestamp(90));
        tracker.start_row();
        tracker.start_column();
        met.iter().for_each(|cell| tracker.meet(cell));
        tracker.drop_put(met.last().unwrap(), Timestamp(until), live_at.map(Timestamp));
        tracker.begin().0
    }

    #[test]
    fn history_begins_at_earliest_end_of_dropped_cells() {
        let family = FamilyDescriptor::new("d");
        let brief =
            FamilyDescriptor { ttl: Some(Duration::from_micros(4)), ..FamilyDescriptor::new("d") };
        let kept = FamilyDescriptor { min_versions: 1, ..brief.clone() };
        const EVER: i64 = i64::MAX;
        assert_eq!(begin_of(&family, &[put(9, 2), put(5, 1)], EVER, Some(9)), 9);
        assert_eq!(begin_of(&family, &[put(9, 3), put(7, 2), put(5, 1)], EVER, Some(7)), 7);
        assert_eq!(begin_of(&family, &[put(9, 3), put(5, 1)], EVER, None), 9);
        let marker = cell(8, 2, CellType::DeleteColumn);
        assert_eq!(begin_of(&family, &[put(9, 3), marker, put(5, 1)], EVER, Some(9)), 8);
        assert_eq!(begin_of(&family, &[put(9, 3), marker, put(5, 4)], EVER, Some(9)), 9);
        assert_eq!(begin_of(&brief, &[put(99, 3), put(5, 1)], EVER, Some(99)), 10);
        assert_eq!(begin_of(&kept, &[put(99, 3), put(5, 1)], EVER, Some(99)), 99);
        assert_eq!(begin_of(&family, &[put(99, 3), put(5, 1)], 30, Some(99)), 31);
        let exact = cell(5, 2, CellType::Delete);
        assert_eq!(begin_of(&family, &[put(9, 3), exact, put(5, 1)], EVER, Some(9)), i64::MIN);
        assert_eq!(begin_without(&brief, (Timestamp(5), Timestamp(EVER))).0, 10);
        assert_eq!(begin_without(&kept, (Timestamp(5), Timestamp(7))).0, 8);
    }
}
