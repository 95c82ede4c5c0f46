//! Which cells exist: the one rule that reads, flushes and compactions share.
//!
//! # The rule
//!
//! Take the commits of a column in the order of their sequences:
//!
//! * a put adds the version of its timestamp, or replaces it;
//! * a marker removes the versions that it covers by timestamp (so only older commits' versions);
//! * then, while there are more than VERSIONS, the one with the lowest timestamp goes.
//!
//! What is left at a snapshot is what a read at the snapshot sees. History alone decides, so no
//! flush and no compaction can change an answer: a version is gone from the commit that ended it.
//!
//! [`Retention`] finds the same set in one pass over the cells in *cell order*. Each put has a life
//! `[its sequence, the sequence that ended it)`, ended by a newer put of the same timestamp, by a
//! marker, or by VERSIONS versions with higher timestamps that lived at one time. Those with higher
//! timestamps come first in cell order, so their lives are known.
//!
//! In a column without markers of single versions no life ends in the middle but by being replaced,
//! and the rule is plain counting.
//!
//! # KEEP_DELETED_CELLS
//!
//! With `True` markers end no life; they hide from the reader whose time range includes them. `Ttl`
//! is the same while the marker is younger than the TTL; an older one ends lives.
//!
//! # What a rewrite may drop
//!
//! Cells above the oldest snapshot stay. Of the others, a flush or minor compaction sees only a
//! part: it drops what was evicted, what a marker of a range masked (that marker stays, and masks
//! whatever the dropped version could have evicted), and what has expired. Where a marker of a
//! single version is among its cells, it keeps what that marker ended and what it believes to be
//! evicted: a version in an older file, ended by that marker since, may have evicted the evictor
//! first. It also keeps versions that were replaced where VERSIONS > 1: their lives may have ended
//! a life in another file. A major compaction sees all files, drops all that is dead, and the
//! markers.
//!
//! # Expiry
//!
//! Happens in time, not in history: MIN_VERSIONS counts the versions that are alive at the read, so
//! a version that has expired and was dropped does not come back when a newer one is deleted.

use smallvec::SmallVec;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::descriptor::{FamilyDescriptor, KeepDeletedCells};
use crate::scan::ReadSpec;

/// What to do with a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is part of the answer, or of the new file.
    Keep,
    /// It is not.
    Skip,
    /// Neither it nor anything that follows in its column is.
    SkipColumn,
}

/// How much of a store a rewrite sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteKind {
    /// A memstore, or some of the files.
    Partial,
    /// All of the files.
    Major,
}

/// A flush or a compaction.
#[derive(Debug, Clone, Copy)]
pub struct RewriteSpec {
    /// How much it sees.
    pub kind: RewriteKind,
    /// Cells above it are kept.
    pub oldest_snapshot: Sequence,
    /// The time that decides expiry: microseconds since 1970.
    pub now_micros: i64,
    /// Lowest timestamp of any put it reads: a marker below masks nothing.
    pub earliest_put: Timestamp,
}

#[derive(Debug, Clone, Copy)]
enum Task {
    Read(ReadSpec),
    Rewrite(RewriteSpec),
}

/// Judges the cells of one family, row by row, in cell order.
pub struct Retention {
    versions: u32,
    min_versions: u32,
    keep_deleted: KeepDeletedCells,
    /// Cells below have expired.
    expiry: Timestamp,
    task: Task,
    /// Whether a family marker may follow in the column without a name.
    family_markers: bool,
    row: RowMarkers,
    column: Column,
}

/// The family markers of a row that apply.
#[derive(Default)]
struct RowMarkers {
    /// DeleteFamily, by descending timestamp, with the highest sequences so far.
    ranges: SmallVec<[RangeMarker; 2]>,
    /// DeleteFamilyVersion, by descending timestamp.
    points: SmallVec<[PointMarker; 2]>,
}

/// What a marker does to the versions that it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// They are gone, for every reader and for good.
    Ends,
    /// This reader does not see them.
    Hides,
}

/// The highest sequences of markers, by effect.
#[derive(Debug, Clone, Copy, Default)]
struct Masks {
    ends: Sequence,
    hides: Sequence,
}

impl Masks {
    fn add(&mut self, effect: Effect, sequence: Sequence) {
        let slot = match effect {
            Effect::Ends => &mut self.ends,
            Effect::Hides => &mut self.hides,
        };
        *slot = sequence.max(*slot);
    }

    fn on(self, put: &KeyParts<'_>) -> Option<Effect> {
        if self.ends > put.sequence {
            return Some(Effect::Ends);
        }
        (self.hides > put.sequence).then_some(Effect::Hides)
    }
}

#[derive(Clone, Copy)]
struct PointMarker {
    timestamp: Timestamp,
    sequence: Sequence,
    effect: Effect,
}

#[derive(Clone, Copy)]
struct RangeMarker {
    timestamp: Timestamp,
    masks: Masks,
}

/// What was seen of a column.
#[derive(Default)]
struct Column {
    begun: bool,
    qualifier: SmallVec<[u8; 32]>,
    /// DeleteColumn markers; all have timestamps at or above the cells that follow.
    ranges: Masks,
    /// Delete markers of the timestamp seen last.
    points: SmallVec<[PointMarker; 2]>,
    /// Whether there were any.
    had_points: bool,
    /// The last put seen.
    put: Option<(Timestamp, Sequence)>,
    /// Lives of the versions seen that may end another's.
    lives: SmallVec<[(u64, u64); 4]>,
    /// Lives that have no end.
    live_count: u32,
    /// Puts given to the reader.
    returned_count: u32,
    /// Every put that follows is dead or unwanted.
    done: bool,
}

const FOREVER: u64 = u64::MAX;

impl Retention {
    /// Returns the judge of a read.
    pub fn of_read(family: &FamilyDescriptor, spec: ReadSpec) -> Retention {
        Retention::new(family, Task::Read(spec), spec.now_micros)
    }

    /// Returns the judge of a flush or compaction.
    pub fn of_rewrite(family: &FamilyDescriptor, spec: RewriteSpec) -> Retention {
        Retention::new(family, Task::Rewrite(spec), spec.now_micros)
    }

    fn new(family: &FamilyDescriptor, task: Task, now_micros: i64) -> Retention {
        Retention {
            versions: family.versions.max(1),
            min_versions: family.min_versions,
            keep_deleted: family.keep_deleted_cells,
            expiry: expiry(family, now_micros),
            task,
            family_markers: true,
            row: RowMarkers::default(),
            column: Column::default(),
        }
    }

    /// Promises that no visible cell is a family marker, so that the column without a name can be
    /// skipped like any other.
    pub fn without_family_markers(mut self) -> Retention {
        self.family_markers = false;
        self
    }

    /// Returns whether a read sees every put with these timestamps, up to this sequence, that is the
    /// only cell of its row.
    pub(crate) fn sees_all(&self, timestamps: (Timestamp, Timestamp), last: Sequence) -> bool {
        let Task::Read(spec) = &self.task else { return false };
        let range = &spec.time_range;
        !spec.raw
            && spec.sees(last)
            && spec.max_versions > 0
            && range.contains(timestamps.0)
            && range.contains(timestamps.1)
            && timestamps.0 >= self.expiry
    }

    /// Returns whether a family marker may come in the column without a name.
    pub fn expects_family_markers(&self) -> bool {
        self.family_markers
    }

    /// Begins a row.
    pub fn start_row(&mut self) {
        self.row.ranges.clear();
        self.row.points.clear();
        self.column.begun = false;
    }

    /// Judges the next cell of the row.
    pub fn judge(&mut self, cell: &KeyParts<'_>) -> Verdict {
        match &self.task {
            Task::Read(spec) if !spec.sees(cell.sequence) => return Verdict::Skip,
            Task::Rewrite(spec) if cell.sequence > spec.oldest_snapshot => return Verdict::Keep,
            _ => {}
        }
        if !self.column.begun || self.column.qualifier[..] != *cell.qualifier {
            self.column.begin(cell.qualifier);
        }
        match &self.task {
            Task::Read(spec) if spec.raw => {
                let spec = *spec;
                self.judge_raw(cell, &spec)
            }
            _ if cell.cell_type == CellType::Put => self.judge_put(cell),
            _ => self.judge_marker(cell),
        }
    }

    fn judge_raw(&mut self, cell: &KeyParts<'_>, spec: &ReadSpec) -> Verdict {
        if !spec.time_range.contains(cell.timestamp) {
            return Verdict::Skip;
        }
        if cell.cell_type == CellType::Put {
            if self.column.returned_count >= spec.max_versions {
                return Verdict::Skip;
            }
            self.column.returned_count += 1;
        }
        Verdict::Keep
    }

    /// Returns what a marker of this timestamp does, for this task.
    fn effect(&self, timestamp: Timestamp) -> Option<Effect> {
        let ends = match self.keep_deleted {
            KeepDeletedCells::False => true,
            KeepDeletedCells::True => false,
            KeepDeletedCells::Ttl => timestamp < self.expiry,
        };
        if ends {
            return Some(Effect::Ends);
        }
        match &self.task {
            Task::Read(spec) => spec.time_range.is_before_max(timestamp).then_some(Effect::Hides),
            Task::Rewrite(_) => None,
        }
    }

    fn judge_marker(&mut self, marker: &KeyParts<'_>) -> Verdict {
        let (timestamp, sequence) = (marker.timestamp, marker.sequence);
        if let Some(effect) = self.effect(timestamp) {
            match marker.cell_type {
                CellType::DeleteFamily => {
                    let mut masks =
                        self.row.ranges.last().map(|last| last.masks).unwrap_or_default();
                    masks.add(effect, sequence);
                    self.row.ranges.push(RangeMarker { timestamp, masks });
                }
                CellType::DeleteFamilyVersion => {
                    self.row.points.push(PointMarker { timestamp, sequence, effect });
                }
                CellType::DeleteColumn => self.column.ranges.add(effect, sequence),
                CellType::Delete => {
                    self.column.points.retain(|point| point.timestamp == timestamp);
                    self.column.had_points = true;
                    self.column.points.push(PointMarker { timestamp, sequence, effect });
                }
                CellType::Put => {}
            }
        }
        match &self.task {
            Task::Read(_) => Verdict::Skip,
            Task::Rewrite(spec) if self.must_stay(marker, spec) => Verdict::Keep,
            Task::Rewrite(_) => Verdict::Skip,
        }
    }

    fn must_stay(&self, marker: &KeyParts<'_>, spec: &RewriteSpec) -> bool {
        if spec.kind == RewriteKind::Partial {
            return true;
        }
        let expired = marker.timestamp < self.expiry;
        let may_mask = marker.timestamp >= spec.earliest_put
            && (marker.cell_type.is_family_marker() || !self.column.done);
        match self.keep_deleted {
            KeepDeletedCells::False => false,
            KeepDeletedCells::True => may_mask && !(expired && self.min_versions == 0),
            KeepDeletedCells::Ttl => may_mask && !expired,
        }
    }

    fn judge_put(&mut self, put: &KeyParts<'_>) -> Verdict {
        if self.column.done {
            return if self.doubts_evictions() { Verdict::Keep } else { self.leave_column() };
        }
        let birth = put.sequence.0;
        let replaced = self.column.put.filter(|(at, _)| *at == put.timestamp);
        self.column.put = Some((put.timestamp, put.sequence));
        let range = self.range_mask(put);
        if range == Some(Effect::Ends) {
            // Whatever it could have evicted is masked by the same marker, or was written after it.
            return Verdict::Skip;
        }
        let ended = self.first_point_mask(put, Effect::Ends);
        let replaced = replaced.map(|(_, sequence)| sequence.0);
        let death = replaced.unwrap_or(FOREVER).min(ended.unwrap_or(FOREVER));
        if self.column.has_ended_lives() {
            let evicted = self.column.eviction(birth, self.versions as usize);
            if evicted < death {
                self.column.lives.push((birth, evicted));
                return if self.doubts_evictions() { Verdict::Keep } else { Verdict::Skip };
            }
        }
        self.column.lives.push((birth, death));
        if death != FOREVER {
            let stays = ended.is_some() || self.versions > 1;
            return if stays && self.is_partial() { Verdict::Keep } else { Verdict::Skip };
        }
        self.column.live_count += 1;
        let index = self.column.live_count - 1;
        if self.column.live_count >= self.versions {
            self.column.done = true;
        }
        let hidden = range.is_some() || self.first_point_mask(put, Effect::Hides).is_some();
        self.judge_live(put, index, hidden)
    }

    /// Judges a put that is one of the newest VERSIONS; `index` of them are newer.
    fn judge_live(&mut self, put: &KeyParts<'_>, index: u32, hidden: bool) -> Verdict {
        let expired = put.timestamp < self.expiry && index >= self.min_versions;
        if expired {
            self.column.done = true;
            return self.leave_column();
        }
        let spec = match &self.task {
            Task::Rewrite(_) => return Verdict::Keep,
            Task::Read(spec) => *spec,
        };
        if put.timestamp < spec.time_range.min {
            self.column.done = true;
            return self.leave_column();
        }
        if hidden || !spec.time_range.contains(put.timestamp) {
            return Verdict::Skip;
        }
        if self.column.returned_count >= spec.max_versions {
            self.column.done = true;
            return self.leave_column();
        }
        self.column.returned_count += 1;
        self.column.done |= self.column.returned_count >= spec.max_versions;
        Verdict::Keep
    }

    /// Returns the verdict on a put after which no put of the column is wanted.
    fn leave_column(&self) -> Verdict {
        let nothing_hides = self.family_markers && self.column.qualifier.is_empty();
        match &self.task {
            Task::Read(_) if !nothing_hides => Verdict::SkipColumn,
            _ => Verdict::Skip,
        }
    }

    /// Whether versions that this rewrite does not see may have changed who evicted whom.
    fn doubts_evictions(&self) -> bool {
        self.is_partial() && (self.column.had_points || !self.row.points.is_empty())
    }

    fn is_partial(&self) -> bool {
        matches!(&self.task, Task::Rewrite(spec) if spec.kind == RewriteKind::Partial)
    }

    fn range_mask(&self, put: &KeyParts<'_>) -> Option<Effect> {
        let ranges = &self.row.ranges;
        let covering = ranges.partition_point(|marker| marker.timestamp >= put.timestamp);
        let mut masks = self.column.ranges;
        if let Some(last) = covering.checked_sub(1) {
            masks.add(Effect::Ends, ranges[last].masks.ends);
            masks.add(Effect::Hides, ranges[last].masks.hides);
        }
        masks.on(put)
    }

    /// Returns the sequence of the first marker of exactly this version that came after it.
    fn first_point_mask(&self, put: &KeyParts<'_>, effect: Effect) -> Option<u64> {
        let points = self.column.points.iter().chain(&self.row.points);
        points
            .filter(|point| point.timestamp == put.timestamp && point.effect == effect)
            .filter(|point| point.sequence > put.sequence)
            .map(|point| point.sequence.0)
            .min()
    }
}

/// Returns the timestamp below which cells of a family have expired.
pub fn expiry(family: &FamilyDescriptor, now_micros: i64) -> Timestamp {
    let ttl = family.ttl.map(|ttl| i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX));
    Timestamp(ttl.map_or(i64::MIN, |ttl| now_micros.saturating_sub(ttl)))
}

impl Column {
    fn begin(&mut self, qualifier: &[u8]) {
        self.begun = true;
        self.qualifier.clear();
        self.qualifier.extend_from_slice(qualifier);
        self.ranges = Masks::default();
        self.points.clear();
        self.had_points = false;
        self.put = None;
        self.lives.clear();
        self.live_count = 0;
        self.returned_count = 0;
        self.done = false;
    }

    fn has_ended_lives(&self) -> bool {
        self.lives.len() > self.live_count as usize
    }

    /// Returns the first moment from `birth` on at which `versions` of the lives seen went on, or
    /// [`FOREVER`].
    fn eviction(&self, birth: u64, versions: usize) -> u64 {
        let mut starts: SmallVec<[u64; 8]> = SmallVec::new();
        let mut ends: SmallVec<[u64; 8]> = SmallVec::new();
        for &(start, end) in self.lives.iter().filter(|(_, end)| *end > birth) {
            starts.push(start.max(birth));
            ends.push(end);
        }
        starts.sort_unstable();
        ends.sort_unstable();
        let mut ended = 0;
        for (begun, &start) in starts.iter().enumerate() {
            while ends[ended] <= start {
                ended += 1;
            }
            if begun + 1 - ended >= versions {
                return start;
            }
        }
        FOREVER
    }
}
