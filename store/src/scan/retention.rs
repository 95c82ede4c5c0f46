//! Retention: which cells are live, by the one rule that reads, flushes and compactions share.
//!
//! # The rule
//!
//! Take the commits of a column in the order of their sequences:
//!
//! * a put adds the version of its timestamp, or replaces it;
//! * a marker removes the versions that it covers by timestamp (so only older commits' versions);
//! * then, while there are more than VERSIONS, the one with the lowest timestamp is removed.
//!
//! The remaining versions at a snapshot are those that a read at the snapshot sees. Only history
//! decides, so no flush and no compaction can change a result: a version is dead from the commit
//! that ended it.
//!
//! [`Retention`] computes the same set in one pass over the cells in *cell order*. Each put has a
//! life `[its sequence, the sequence that ended it)`, ended by a newer put of the same timestamp,
//! by a marker, or by VERSIONS versions with higher timestamps that lived at one time. Those with
//! higher timestamps come first in cell order, so their lives are known.
//!
//! In a column without markers of single versions a life ends early only by replacement, and the
//! rule is plain counting.
//!
//! # Changed rules
//!
//! VERSIONS is that of the rule in force at the commit: a change of the family retires the rule
//! with its last commit ([`RetiredRule`](crate::descriptor::RetiredRule)). A higher VERSIONS does
//! not bring a version back that an earlier rule has ended; a lower one ends versions with the
//! first commit under it, for all readers. What had expired at the end of a retired rule remains
//! expired; a read of an earlier time uses the TTL of that time.
//!
//! # Cell TTL
//!
//! After its TTL has expired, a put counts as if it had never been written, for its reader and
//! for the effect of the rule on other versions. So the versions that it replaced or evicted are
//! visible again (a client can prevent that by deleting the column first), and expired cells can
//! be skipped unread, cell by cell and file by file. (In HBase that depends on whether a flush or
//! a compaction came before.)
//!
//! # KEEP_DELETED_CELLS
//!
//! With `True` markers end no life; they hide versions from readers whose time range includes
//! them. `Ttl` is the same while the marker is younger than the TTL; an older one ends lives.
//!
//! # Cells that a rewrite may drop
//!
//! Cells above the oldest snapshot stay, and the time of the oldest read ([`Horizon`]) decides
//! about expiry. Of the others, a flush or minor compaction sees only a part: it drops evicted
//! versions, versions masked by a marker of a range (that marker stays, and masks every version
//! that the dropped one could have evicted), and cells expired by the family's TTL. If a marker
//! of a single version is among its cells, it keeps the versions which that marker ended or which
//! seem evicted: a version in an older file, ended by that marker since, may have evicted the
//! evictor first. It also keeps versions that were replaced where VERSIONS > 1: their lives may
//! have ended a life in another file. A major compaction sees all files, drops all dead versions,
//! and the markers that are older than the family's delete purge delay.
//!
//! Lives may still become shorter, or vanish, with time: when a TTL passes, or when a marker with
//! KEEP_DELETED_CELLS `Ttl` ages. Where no marker ends a single version, the loss of a life never
//! removes another version: there are fewer above it. So a rewrite judges each version at the
//! last moment at which it can be visible: it counts only lives that exist then. If cells with a
//! TTL are among its cells, even a major compaction keeps markers of single versions, the
//! versions that they ended, and the versions that seem evicted in such a column: some of those
//! may have evicted, together with a version that will expire, a version that will be visible
//! again; and until then the version that they will evict is visible.
//!
//! # Expiry by the family's TTL
//!
//! It happens in time, not in history: MIN_VERSIONS counts the versions that are alive at the
//! read, so a version that has expired and was dropped does not reappear when a marker of a
//! single version removes a newer one. This is the one case in which a result depends on earlier
//! rewrites; `tests/scripts/retention/min_versions` shows it.

use std::time::Duration;

use smallvec::SmallVec;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp, equal_bytes, last_seen};
use crate::descriptor::{FamilyDescriptor, KeepDeletedCells};
use crate::scan::history::HistoryTracker;
use crate::scan::rules::ExpiryFloor;
use crate::scan::{Horizon, ReadSpec};

/// Decision about a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The cell is part of the result, or of the new file.
    Keep,
    /// The cell is not part of it.
    Skip,
    /// Neither the cell nor any that follows in its column is part of it.
    SkipColumn,
}

/// Portion of a store that a rewrite reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionKind {
    /// A memstore, or some of the files.
    Partial,
    /// All of the files.
    Major,
}

/// Specification of a flush or a compaction.
#[derive(Debug, Clone, Copy)]
pub struct RewriteSpec {
    /// Portion of the store that it reads.
    pub kind: RetentionKind,
    /// Cells above its snapshot are kept, and its time decides expiry.
    pub horizon: Horizon,
    /// Lowest timestamp of any put read: a marker below masks nothing.
    pub earliest_put: Timestamp,
    /// True if any put read has a TTL.
    pub any_expiring: bool,
}

#[derive(Debug, Clone, Copy)]
enum Task {
    Read(ReadSpec),
    Rewrite(RewriteSpec),
}

/// Applies the rule to the cells of one family, row by row, in cell order.
pub struct Retention {
    versions: u32,
    min_versions: u32,
    keep_deleted: KeepDeletedCells,
    /// VERSIONS of retired rules, with the last commits under them, ascending.
    retired: SmallVec<[(u64, u32); 2]>,
    /// Expiry at the ends of the retired rules that retained versions beyond their TTL.
    floors: SmallVec<[ExpiryFloor; 1]>,
    /// Cells below have expired by the present TTL.
    own_expiry: Timestamp,
    /// All cells below have expired.
    dead_below: Timestamp,
    /// No cell from here on has expired.
    expiry: Timestamp,
    /// A major compaction keeps markers from here on.
    purge: Timestamp,
    /// Microseconds since 1970.
    now: Timestamp,
    task: Task,
    /// True if a family marker may follow in the column without a name.
    family_markers: bool,
    row: RowMarkers,
    column: Column,
    /// Tracker of the versions that a rewrite drops, for time travel.
    history: HistoryTracker,
}

/// Fast path of a read of newest versions that needs no knowledge of other cells: a put that is
/// first in its column, in a row without family markers so far, and is not expired or out of
/// range by its timestamp, is the newest version. A marker that masks it would have come before
/// it, and the versions behind it are not needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewestOnly {
    spec: ReadSpec,
    expiry: Timestamp,
    family_markers: bool,
}

impl NewestOnly {
    /// Returns whether the remaining cells of a column can be skipped: no family marker is among
    /// them.
    pub(crate) fn may_leave(&self, qualifier: &[u8]) -> bool {
        !self.family_markers || !qualifier.is_empty()
    }

    /// Returns whether a cell is relevant for the read.
    #[inline]
    pub(crate) fn regards(&self, cell: &KeyParts<'_>) -> bool {
        self.spec.is_relevant(cell)
    }

    /// Returns whether a visible cell that is first in its column is certainly the newest
    /// version. If not, [`Retention::judge`] must decide.
    #[inline]
    pub(crate) fn takes(&self, cell: &KeyParts<'_>) -> bool {
        cell.cell_type == CellType::Put
            && cell.timestamp >= self.expiry
            && self.spec.time_range.contains(cell.timestamp)
    }
}

/// The family markers of a row that apply.
#[derive(Default)]
struct RowMarkers {
    /// DeleteFamily, by descending timestamp, with the highest sequences so far.
    ranges: SmallVec<[RangeMarker; 2]>,
    /// DeleteFamilyVersion, by descending timestamp.
    points: SmallVec<[PointMarker; 2]>,
}

/// Effect of a marker on the versions that it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// They are dead for every reader, permanently.
    Ends,
    /// They live on, but are invisible to this reader, or may turn out to have ended, for this
    /// rewrite.
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

/// State of the current column.
struct Column {
    begun: bool,
    qualifier: SmallVec<[u8; 32]>,
    /// DeleteColumn markers; all have timestamps at or above the cells that follow.
    ranges: Masks,
    /// Delete markers of the timestamp seen last.
    points: SmallVec<[PointMarker; 2]>,
    /// True if there were any.
    had_points: bool,
    /// Sequences of the puts of one timestamp, with the last moment at which each is visible.
    puts: SmallVec<[(u64, Timestamp); 2]>,
    /// That timestamp.
    at: Timestamp,
    /// Lives of the versions seen that may end another's.
    lives: SmallVec<[Life; 4]>,
    /// Number of lives that have no end and never expire.
    live_count: u32,
    /// Timestamp of the last of these.
    live_at: Option<Timestamp>,
    /// Number of puts returned to the reader.
    returned_count: u32,
    /// True if every put that follows is dead or not needed.
    done: bool,
}

/// The life of a version.
#[derive(Clone, Copy)]
struct Life {
    birth: u64,
    /// The sequence that ended it.
    end: u64,
    /// The last moment at which it is visible.
    until: Timestamp,
}

/// The lives of the versions that are newer than a put.
#[derive(Clone, Copy)]
struct NewerLives {
    /// Their number, of the lives seen.
    count: usize,
    /// Those that expire before this moment, up to which the put is visible, do not count.
    until: Timestamp,
}

/// The end of a life that has none.
const FOREVER: u64 = u64::MAX;
/// The last moment of a version that does not expire by a cell TTL.
const ALWAYS: Timestamp = Timestamp(i64::MAX);

impl Retention {
    /// Returns the retention of a read.
    pub fn of_read(family: &FamilyDescriptor, spec: ReadSpec) -> Retention {
        Retention::new(family, Task::Read(spec), spec.expires_micros())
    }

    /// Returns the retention of a flush or compaction.
    pub fn of_rewrite(family: &FamilyDescriptor, spec: RewriteSpec) -> Retention {
        Retention::new(family, Task::Rewrite(spec), spec.horizon.now_micros)
    }

    fn new(family: &FamilyDescriptor, task: Task, now_micros: i64) -> Retention {
        let rules = family.rules_at(now_micros);
        let retired = family.retired.iter().map(|rule| (rule.last_sequence, rule.versions));
        Retention {
            versions: family.versions.max(1),
            min_versions: rules.min_versions(),
            keep_deleted: family.keep_deleted_cells,
            retired: retired.collect(),
            floors: rules.floors().filter(|floor| floor.min_versions > 0).collect(),
            own_expiry: rules.own_expiry(),
            dead_below: rules.dead_below(),
            expiry: rules.live_from(),
            purge: match family.delete_purge_delay.is_zero() {
                true => Timestamp(i64::MAX),
                false => Timestamp(now_micros.saturating_sub(micros(family.delete_purge_delay))),
            },
            now: Timestamp(now_micros),
            task,
            family_markers: true,
            row: RowMarkers::default(),
            column: Column::new(),
            history: HistoryTracker::new(family, Timestamp(now_micros)),
        }
    }

    /// Returns the time from which on the cells kept by a rewrite give a complete history.
    pub(crate) fn history_begin(&self) -> Timestamp {
        self.history.begin()
    }

    /// Declares that no visible cell is a family marker, so that the column without a name can be
    /// skipped like any other.
    pub fn without_family_markers(mut self) -> Retention {
        self.family_markers = false;
        self
    }

    /// Returns whether a read sees every put that is the only cell of its row, with a timestamp
    /// in this range and a sequence up to `last`.
    pub(crate) fn sees_all(&self, timestamps: (Timestamp, Timestamp), last: Sequence) -> bool {
        let Task::Read(spec) = &self.task else { return false };
        sees_all(spec, self.expiry, timestamps, last)
    }

    /// Returns the fast path, which decides about the first put of a column without other cells,
    /// if a read needs only the newest version of each column.
    pub(crate) fn newest_only(&self) -> Option<NewestOnly> {
        match &self.task {
            Task::Read(spec) if !spec.raw && spec.max_versions.min(self.versions) == 1 => {
                let (spec, expiry, family_markers) = (*spec, self.expiry, self.family_markers);
                Some(NewestOnly { spec, expiry, family_markers })
            }
            _ => None,
        }
    }

    /// Continues in a row that was just begun, behind cells that [`NewestOnly`] decided about;
    /// the last of them is of the column `taken`.
    pub(crate) fn go_on_behind(&mut self, taken: &[u8]) {
        self.column.begin(taken);
        self.column.done = true;
    }

    /// Returns whether a family marker may follow in the column without a name.
    pub fn expects_family_markers(&self) -> bool {
        self.family_markers
    }

    /// Begins a row.
    pub fn start_row(&mut self) {
        self.row.ranges.clear();
        self.row.points.clear();
        self.column.begun = false;
        self.history.start_row();
    }

    /// Decides about the next cell of the row. `stored` returns its stored value; it is called
    /// only if the decision depends on it.
    pub fn judge<'v>(&mut self, cell: &KeyParts<'_>, stored: impl FnOnce() -> &'v [u8]) -> Verdict {
        match &self.task {
            Task::Read(spec) if !spec.is_relevant(cell) => return Verdict::Skip,
            Task::Rewrite(spec) if cell.sequence > spec.horizon.snapshot => return Verdict::Keep,
            _ => {}
        }
        if !self.column.begun || !equal_bytes(&self.column.qualifier, cell.qualifier) {
            self.column.begin(cell.qualifier);
            self.history.start_column();
        }
        if let Task::Read(spec) = &self.task
            && spec.raw
        {
            let spec = *spec;
            return self.judge_raw(cell, &spec);
        }
        let until = match cell.cell_type {
            CellType::ExpiringPut => last_seen(cell.timestamp, stored()),
            _ => ALWAYS,
        };
        match &self.task {
            Task::Read(_) if cell.cell_type.is_put() => self.judge_put(cell, until),
            Task::Read(_) => self.judge_marker(cell),
            Task::Rewrite(_) => self.judge_rewritten(cell, until),
        }
    }

    /// Decides about a cell of a rewrite, and records dropped ones.
    fn judge_rewritten(&mut self, cell: &KeyParts<'_>, until: Timestamp) -> Verdict {
        self.history.meet(cell);
        if !cell.cell_type.is_put() {
            return self.judge_marker(cell);
        }
        // Of versions with one timestamp, time travel shows the last.
        let was_seen = !self.column.replaces(cell, until);
        let live_at = self.column.live_at;
        let verdict = self.judge_put(cell, until);
        if verdict != Verdict::Keep && was_seen {
            self.history.drop_put(cell, until, live_at);
        }
        verdict
    }

    fn judge_raw(&mut self, cell: &KeyParts<'_>, spec: &ReadSpec) -> Verdict {
        if !spec.time_range.contains(cell.timestamp) {
            return Verdict::Skip;
        }
        if cell.cell_type.is_put() {
            if self.column.returned_count >= spec.max_versions {
                return Verdict::Skip;
            }
            self.column.returned_count += 1;
        }
        Verdict::Keep
    }

    /// Returns the effect of a marker of this timestamp, for this task.
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
            // Only with MIN_VERSIONS is the effect of such an old marker visible.
            Task::Rewrite(_) => (self.keep_deleted == KeepDeletedCells::Ttl
                && self.expiry.0 != i64::MIN
                && self.min_versions > 0)
                .then_some(Effect::Hides),
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
                CellType::Put | CellType::ExpiringPut => {}
            }
        }
        match &self.task {
            Task::Read(_) => Verdict::Skip,
            Task::Rewrite(spec) if self.must_stay(marker, spec) => Verdict::Keep,
            Task::Rewrite(_) => Verdict::Skip,
        }
    }

    fn must_stay(&self, marker: &KeyParts<'_>, spec: &RewriteSpec) -> bool {
        if spec.kind == RetentionKind::Partial || marker.timestamp >= self.purge {
            return true;
        }
        let is_of_version =
            matches!(marker.cell_type, CellType::Delete | CellType::DeleteFamilyVersion);
        if is_of_version && spec.any_expiring && marker.timestamp >= spec.earliest_put {
            return true;
        }
        let may_mask = marker.timestamp >= spec.earliest_put
            && (marker.cell_type.is_family_marker() || !self.column.done);
        match self.keep_deleted {
            KeepDeletedCells::False => false,
            KeepDeletedCells::True => may_mask && marker.timestamp >= self.dead_below,
            KeepDeletedCells::Ttl => may_mask && marker.timestamp >= self.expiry,
        }
    }

    /// Decides about a put, which is visible until `until` at the latest.
    fn judge_put(&mut self, put: &KeyParts<'_>, until: Timestamp) -> Verdict {
        if until < self.now {
            return Verdict::Skip;
        }
        if self.column.done {
            // A version that a range ended stays dead: its marker may be dropped.
            let in_doubt = self.doubts_evictions() && self.range_mask(put) != Some(Effect::Ends);
            return if in_doubt { Verdict::Keep } else { self.leave_column() };
        }
        let rewrites = matches!(&self.task, Task::Rewrite(_));
        // A reader reads at one moment.
        let until = if rewrites { until } else { ALWAYS };
        let birth = put.sequence.0;
        let (replaced, replaced_first) = self.column.replaced(put, until);
        let range = self.range_mask(put);
        if range == Some(Effect::Ends) {
            // Any version that it could have evicted is masked by the same marker, or was written
            // after it.
            return Verdict::Skip;
        }
        let ended = self.first_point_mask(put, Effect::Ends);
        let death = replaced.unwrap_or(FOREVER).min(ended.unwrap_or(FOREVER));
        if (self.column.has_lives_that_end() || !self.retired.is_empty())
            && self.eviction(birth, until) < death
        {
            // Its life is not needed: a version that it evicted would be evicted together with
            // it.
            return if self.doubts_evictions() { Verdict::Keep } else { Verdict::Skip };
        }
        let hidden = self.first_point_mask(put, Effect::Hides);
        let newer = NewerLives { count: self.column.lives.len(), until };
        if rewrites && range == Some(Effect::Hides) {
            return self.judge_live(put, (self.column.live_count, newer), false);
        }
        let end = death.min(replaced_first.unwrap_or(FOREVER));
        let end = if rewrites { end.min(hidden.unwrap_or(FOREVER)) } else { end };
        self.column.lives.push(Life { birth, end, until });
        if death != FOREVER {
            let versions = self.retired.iter().map(|(_, versions)| *versions);
            let stays = ended.is_some() || versions.fold(self.versions, u32::max) > 1;
            return if stays && self.keeps_ended() { Verdict::Keep } else { Verdict::Skip };
        }
        let index = self.column.live_count;
        if end == FOREVER && until == ALWAYS {
            self.column.live_count += 1;
            self.column.live_at = Some(put.timestamp);
            self.column.done |= self.column.live_count >= self.versions;
        }
        self.judge_live(put, (index, newer), range.is_some() || hidden.is_some())
    }

    /// Decides about a put that is one of the newest VERSIONS; `index` of them are newer, with the
    /// lives `newer`.
    fn judge_live(
        &mut self,
        put: &KeyParts<'_>,
        (index, newer): (u32, NewerLives),
        hidden: bool,
    ) -> Verdict {
        let expired = put.timestamp < self.own_expiry && index >= self.min_versions;
        if expired || put.timestamp < self.dead_below || self.was_expired(put, newer) {
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

    /// Returns whether a put had expired at the end of a retired rule.
    fn was_expired(&self, put: &KeyParts<'_>, newer: NewerLives) -> bool {
        self.floors.iter().any(|floor| {
            put.timestamp < floor.expiry
                && put.sequence.0 <= floor.last_sequence
                && self.column.alive_at(floor.last_sequence, newer) >= floor.min_versions as usize
        })
    }

    /// Returns the first moment from `birth` on at which VERSIONS of the lives seen were alive,
    /// counting those that exist at `until`, or [`FOREVER`]. VERSIONS is that of the rule of the
    /// moment.
    fn eviction(&self, birth: u64, until: Timestamp) -> u64 {
        let newer = NewerLives { count: self.column.lives.len(), until };
        let mut from = birth;
        for (index, &(last, versions)) in self.retired.iter().enumerate() {
            if last < birth {
                continue;
            }
            // Between two changes without a commit there is no moment.
            if from <= last {
                let evicted = self.column.eviction(from, until, versions as usize);
                if evicted <= last {
                    return evicted;
                }
            }
            // The next rule ends the surplus before its first commit.
            let next = self.retired.get(index + 1).map_or(self.versions, |rule| rule.1);
            if self.column.alive_at(last, newer) >= next as usize {
                return last;
            }
            from = last + 1;
        }
        self.column.eviction(from, until, self.versions as usize)
    }

    /// Returns the verdict on a put after which no put of the column is needed.
    fn leave_column(&self) -> Verdict {
        let nothing_hides = self.family_markers && self.column.qualifier.is_empty();
        match &self.task {
            Task::Read(_) if !nothing_hides => Verdict::SkipColumn,
            _ => Verdict::Skip,
        }
    }

    /// Returns whether versions that this rewrite does not see, or that expire, may change which
    /// version evicted which.
    fn doubts_evictions(&self) -> bool {
        self.keeps_ended() && (self.column.had_points || !self.row.points.is_empty())
    }

    /// Returns whether a version that has ended may have evicted one that becomes visible again.
    fn keeps_ended(&self) -> bool {
        matches!(&self.task, Task::Rewrite(spec) if spec.kind == RetentionKind::Partial || spec.any_expiring)
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

    /// Returns the sequence of the first later marker of exactly this version.
    fn first_point_mask(&self, put: &KeyParts<'_>, effect: Effect) -> Option<u64> {
        let points = self.column.points.iter().chain(&self.row.points);
        points
            .filter(|point| point.timestamp == put.timestamp && point.effect == effect)
            .filter(|point| point.sequence > put.sequence)
            .map(|point| point.sequence.0)
            .min()
    }
}

/// Returns the timestamp from which on no cell of a family has expired.
pub fn expiry(family: &FamilyDescriptor, now_micros: i64) -> Timestamp {
    family.rules_at(now_micros).live_from()
}

/// As [`Retention::sees_all`], where puts before `expiry` have expired.
pub(crate) fn sees_all(
    spec: &ReadSpec,
    expiry: Timestamp,
    timestamps: (Timestamp, Timestamp),
    last: Sequence,
) -> bool {
    let range = &spec.time_range;
    !spec.raw
        && spec.sees(last)
        && spec.max_versions > 0
        && range.contains(timestamps.0)
        && range.contains(timestamps.1)
        && timestamps.0 >= expiry
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl Column {
    fn new() -> Column {
        Column {
            begun: false,
            qualifier: SmallVec::new(),
            ranges: Masks::default(),
            points: SmallVec::new(),
            had_points: false,
            puts: SmallVec::new(),
            at: Timestamp::LATEST,
            lives: SmallVec::new(),
            live_count: 0,
            live_at: None,
            returned_count: 0,
            done: false,
        }
    }

    fn begin(&mut self, qualifier: &[u8]) {
        self.begun = true;
        self.qualifier.clear();
        self.qualifier.extend_from_slice(qualifier);
        self.ranges = Masks::default();
        self.points.clear();
        self.had_points = false;
        self.puts.clear();
        self.lives.clear();
        self.live_count = 0;
        self.live_at = None;
        self.returned_count = 0;
        self.done = false;
    }

    /// Returns whether a put seen before replaces this one during its whole life.
    fn replaces(&self, put: &KeyParts<'_>, until: Timestamp) -> bool {
        self.at == put.timestamp && self.puts.iter().any(|(_, other)| *other >= until)
    }

    /// Records a put, and returns the sequences of the first put that replaced it permanently,
    /// and of the first one that replaced it at all.
    fn replaced(&mut self, put: &KeyParts<'_>, until: Timestamp) -> (Option<u64>, Option<u64>) {
        if self.at != put.timestamp {
            self.at = put.timestamp;
            self.puts.clear();
        }
        // They come with descending sequences.
        let first = self.puts.last().map(|(sequence, _)| *sequence);
        let for_good = self.puts.iter().rfind(|(_, other)| *other >= until);
        let for_good = for_good.map(|(sequence, _)| *sequence);
        self.puts.push((put.sequence.0, until));
        (for_good, first)
    }

    fn has_lives_that_end(&self) -> bool {
        self.lives.len() > self.live_count as usize
    }

    /// Returns how many lives of newer versions existed after a commit.
    fn alive_at(&self, sequence: u64, newer: NewerLives) -> usize {
        let is_alive = |life: &&Life| {
            life.birth <= sequence && sequence < life.end && life.until >= newer.until
        };
        self.lives[..newer.count].iter().filter(is_alive).count()
    }

    /// Returns the first moment from `birth` on at which `versions` of the lives seen were alive,
    /// counting those that exist at `until`, or [`FOREVER`].
    fn eviction(&self, birth: u64, until: Timestamp, versions: usize) -> u64 {
        let mut starts: SmallVec<[u64; 8]> = SmallVec::new();
        let mut ends: SmallVec<[u64; 8]> = SmallVec::new();
        for life in self.lives.iter().filter(|life| life.end > birth && life.until >= until) {
            starts.push(life.birth.max(birth));
            ends.push(life.end);
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
