//! Read path into a region: through its service gate to the primary, or to a replica.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use arc_swap::Guard;

use crate::cell::{CellBatch, RowRef, Sequence};
use crate::descriptor::{FamilyDescriptor, TableDescriptor, TableId};
use crate::error::{Error, Result};
use crate::family_store::{ReadSpec, ReadView};
use crate::mutation::Consistency;
use crate::options::Options;
use crate::read_statistics::{RegionMark, RegionReadStatistics, note_read};
use crate::read_view::{Newest, PlainGet, Views};
use crate::region::{Region, Volume};
use crate::replica::ReplicaFeed;
use crate::scan::filter::run::{FilterRun, RowAnswer};
use crate::scan::merge::RowOrder;
use crate::scan::rows::{FamilyRules, RowOutput};
use crate::scan::{FamilyRead, Filter, Get};
use crate::snapshot::{Snapshot, Snapshots};
use crate::staged::StagedFamilies;

/// Context shared by all reads of a store.
pub(crate) struct ReadPath {
    /// Settings.
    pub(crate) options: Options,
    /// The open snapshots.
    pub(crate) snapshots: Arc<Snapshots>,
    /// Feed of the replicas.
    pub(crate) feed: Arc<ReplicaFeed>,
}

/// Copy of the region that serves a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadTarget {
    /// The primary.
    Primary,
    /// A replica, which has applied the commits that the read shows.
    Replica,
}

/// The least lag of replicas that lack a commit.
const LAG_MIN: Duration = Duration::from_micros(1);

/// Interval at which a read that waits for the primary also looks at what the replicas have
/// applied.
const REPLICA_POLL: Duration = Duration::from_millis(2);

/// Gets that are started together: about as many as the cache misses that a processor overlaps.
pub(crate) const GETS_AT_ONCE: usize = 16;

/// Requirements of a caller.
pub(crate) struct ReadCaller<'a> {
    /// Copies of a region that may serve its reads.
    pub(crate) consistency: Consistency,
    /// Snapshot of the statement; `None` if the read shows the newest commits.
    pub(crate) snapshot: Option<&'a Snapshot>,
    /// Flags that end the wait when set.
    pub(crate) cancelled: &'a [&'a AtomicBool],
}

impl ReadPath {
    /// Admits a read to a region; returns the copy to read and the newest commit to show, which
    /// is `newest` without a snapshot.
    ///
    /// A TIMELINE read that the primary does not admit in time is admitted by the first of: the
    /// primary, or the replicas, once they have applied the snapshot and, if this read fixes it,
    /// are not staler than allowed.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::RegionTimeout`].
    pub(crate) fn enter(
        &self,
        region: &Region,
        table: TableId,
        newest: Sequence,
        caller: &ReadCaller<'_>,
    ) -> Result<(ReadTarget, Sequence)> {
        let admitted = |target, replica_requests| {
            let Some(snapshot) = caller.snapshot else { return (target, newest) };
            let shown = snapshot.sequence();
            snapshot.note_read(replica_requests);
            (target, shown)
        };
        let (gate, blocking) = (region.service(), &*self.options.blocking);
        let Consistency::Timeline { timeout, max_staleness } = caller.consistency else {
            gate.enter(None, caller.cancelled, blocking)?;
            return Ok(admitted(ReadTarget::Primary, 0));
        };
        let mut timeout = timeout;
        while !gate.enter(Some(timeout), caller.cancelled, blocking)? {
            if region.replicas().is_empty() {
                return Err(Error::RegionTimeout { table });
            }
            if self.may_read_replica(newest, caller.snapshot, max_staleness) {
                return Ok(admitted(ReadTarget::Replica, 1));
            }
            timeout = REPLICA_POLL;
        }
        Ok(admitted(ReadTarget::Primary, 0))
    }

    /// Returns whether the replicas have applied a snapshot, or all commits up to `newest`
    /// without one. Fixes the snapshot at what they have applied if it may be that old.
    fn may_read_replica(
        &self,
        newest: Sequence,
        snapshot: Option<&Snapshot>,
        max_staleness: Option<Duration>,
    ) -> bool {
        let applied = self.feed.applied();
        let Some(snapshot) = snapshot else { return applied >= newest };
        if snapshot.fixed().is_none() && applied >= snapshot.oldest() {
            let staleness = match applied >= snapshot.newest() {
                true => Duration::ZERO,
                false => self.replica_lag(),
            };
            if max_staleness.is_none_or(|max| staleness <= max) {
                snapshot.fix(applied, staleness);
            }
        }
        snapshot.fixed().is_some_and(|fixed| applied >= fixed)
    }

    /// Returns the age of the oldest commit that the replicas have still to apply; they may be
    /// about to receive it.
    fn replica_lag(&self) -> Duration {
        let now = self.options.env.now_micros();
        let age = self.feed.queued_since().map_or(0, |since| now.saturating_sub(since.0));
        Duration::from_micros(u64::try_from(age).unwrap_or(0)).max(LAG_MIN)
    }

    /// Starts gets of one row each, from these views of a region. [`ReadPath::get`] continues
    /// each one that was started on the fast path.
    pub(crate) fn begin<'v>(
        (region, source): (&Region, ReadTarget),
        views: &'v Views,
        gets: &[(&Get, ReadSpec)],
        staged: Option<&StagedFamilies>,
    ) -> Result<Vec<Option<PlainGet<'v>>>> {
        let since = RegionMark::now();
        let mut begun = Vec::with_capacity(gets.len());
        for (get, spec) in gets {
            begun.push(begin_plain((source, views), (get, spec), staged)?);
        }
        look_up(&mut begun, gets)?;
        begun.iter().flatten().for_each(PlainGet::near_value);
        // The results are counted later.
        since.note(region.id(), RegionReadStatistics::default());
        Ok(begun)
    }

    /// As `begin`, for one get.
    pub(crate) fn begin_one<'v>(
        (region, source): (&Region, ReadTarget),
        views: &'v Views,
        (get, spec): (&Get, &ReadSpec),
        staged: Option<&StagedFamilies>,
    ) -> Result<Option<PlainGet<'v>>> {
        let since = RegionMark::now();
        let mut begun = [begin_plain((source, views), (get, spec), staged)?];
        look_up(&mut begun, &[(get, *spec)])?;
        since.note(region.id(), RegionReadStatistics::default());
        let [begun] = begun;
        Ok(begun)
    }

    /// Reads one row, from these views of a region; continues if it was started.
    pub(crate) fn get(
        &self,
        (region, source): (&Region, ReadTarget),
        views: &Views,
        (get, spec, begun): (&Get, &ReadSpec, Option<PlainGet<'_>>),
        staged: Option<&StagedFamilies>,
        out: &mut CellBatch,
    ) -> Result<bool> {
        let (before, since) = (BatchMark::of(out), RegionMark::now());
        let found = match &get.filter {
            None => {
                out.start_row(&get.row);
                let output = RowOutput { filter: None, batch: out, room: u32::MAX };
                read_families(views, (get, spec, begun), staged, output)
                    .map(|()| out.last_cell().is_some())
            }
            Some(filter) => {
                let mut filter = prepare(filter, region, source)?;
                if filter.start_row(&get.row) != RowAnswer::Read {
                    return Ok(false);
                }
                out.start_row(&get.row);
                let output = RowOutput { filter: Some(&mut filter), batch: out, room: u32::MAX };
                read_families(views, (get, spec, None), staged, output).and_then(|()| {
                    let row = out.last_cell().map(|_| out.row(out.row_count() - 1));
                    row.map_or(Ok(false), |row| filter.keeps_row(&row))
                })
            }
        };
        match found {
            Ok(true) => count_read((region, source), since, 1, before.until(out)),
            _ => {
                out.cancel_row();
                count_read((region, source), since, 1, Volume::default());
            }
        }
        found
    }
}

/// Starts a get on the fast path, if the views are of one family of the primary.
#[inline]
fn begin_plain<'v>(
    (source, views): (ReadTarget, &'v Views),
    asked: (&Get, &ReadSpec),
    staged: Option<&StagedFamilies>,
) -> Result<Option<PlainGet<'v>>> {
    let ([(family, view)], ReadTarget::Primary) = (&views[..], source) else { return Ok(None) };
    view.check_whole()?;
    let staged = staged.and_then(|families| families.get(usize::from(*family)));
    PlainGet::begin(view, asked, staged.and_then(Option::as_ref))
}

/// Takes gets through the steps of the fast path, all through each step together.
#[inline]
fn look_up(begun: &mut [Option<PlainGet<'_>>], gets: &[(&Get, ReadSpec)]) -> Result<()> {
    for (begun, (get, _)) in begun.iter_mut().zip(gets) {
        begun.as_mut().map_or(Ok(()), |begun| begun.choose_block(&get.row))?;
    }
    for (begun, (_, spec)) in begun.iter_mut().zip(gets) {
        begun.as_mut().map_or(Ok(()), |begun| begun.look_into_block(spec))?;
    }
    for (begun, (get, _)) in begun.iter_mut().zip(gets) {
        begun.as_mut().map_or(Ok(()), |begun| begun.find(&get.row))?;
    }
    Ok(())
}

/// Prepares the filter of a get.
fn prepare(filter: &Filter, region: &Region, source: ReadTarget) -> Result<FilterRun> {
    let families: Result<Vec<FamilyDescriptor>> = (0..region.family_count())
        .map(|family| Ok(FamilyDescriptor::clone(view_of(region, source, family)?.family())))
        .collect();
    FilterRun::new(filter, &families?, RowOrder::Forward)
}

fn read_families(
    views: &Views,
    (get, spec, mut begun): (&Get, &ReadSpec, Option<PlainGet<'_>>),
    staged: Option<&StagedFamilies>,
    mut output: RowOutput<'_>,
) -> Result<()> {
    for (family, view) in views {
        view.check_whole()?;
        let staged = staged.and_then(|families| families.get(usize::from(*family)));
        let staged = staged.and_then(Option::as_ref);
        if let Some(begun) = begun.take()
            && begun.answer(get, output.batch)?
        {
            continue;
        }
        if let Some(newest) = Newest::of(get, spec, *family)
            && newest.answer(view, staged, output.batch)?
        {
            continue;
        }
        let filter = output.filter.as_deref();
        let sections = get.sections.as_deref().filter(|_| filter.is_none()).unwrap_or_default();
        let rules = FamilyRules {
            sections: sections.iter().find(|sections| sections.family() == *family),
            ..FamilyRules::of_request(*spec, *family, &get.family_reads, get.cells, filter)
        };
        view.get(&get.row, rules, staged, &mut output)?;
    }
    Ok(())
}

/// Checks that a request names only existing families.
pub(crate) fn check_families(
    families: Option<&[u8]>,
    reads: &[FamilyRead],
    table: &TableDescriptor,
) -> Result<()> {
    let named = families.unwrap_or_default().iter().chain(reads.iter().map(|read| &read.family));
    match named.copied().find(|family| usize::from(*family) >= table.families.len()) {
        Some(family) => Err(no_family(family)),
        None => Ok(()),
    }
}

/// Returns the views of the families that a get reads, at the source.
///
/// # Errors
///
/// [`Error::InvalidRequest`] if there is no such family.
pub(crate) fn views_of(
    region: &Region,
    source: ReadTarget,
    wanted: Option<&[u8]>,
) -> Result<Views> {
    let views = match source {
        ReadTarget::Primary => region.views(wanted),
        ReadTarget::Replica => {
            let families = match wanted {
                Some(wanted) => wanted.to_vec(),
                None => (0..region.family_count() as u8).collect(),
            };
            let view = |family: u8| {
                Ok((family, Guard::from_inner(view_of(region, source, usize::from(family))?)))
            };
            families.into_iter().map(view).collect::<Result<Views>>()?
        }
    };
    check_views(&views, wanted)?;
    Ok(views)
}

/// The families that a row requires, if the table has any: reads include them.
pub(crate) struct RequiredFamilies(pub(crate) Option<Arc<Vec<u8>>>);

impl RequiredFamilies {
    /// Returns the families to read for a request for `wanted`.
    pub(crate) fn with<'f>(&self, wanted: Option<&'f [u8]>) -> Option<Cow<'f, [u8]>> {
        let (Some(wanted), Some(required)) = (wanted, &self.0) else {
            return wanted.map(Cow::Borrowed);
        };
        let mut all = wanted.to_vec();
        all.extend(required.iter());
        all.sort_unstable();
        all.dedup();
        Some(Cow::Owned(all))
    }

    /// Returns whether a row that was read exists.
    pub(crate) fn hold(&self, row: &RowRef<'_>) -> bool {
        let Some(required) = &self.0 else { return true };
        required.iter().all(|family| row.cells().any(|cell| cell.family == *family))
    }

    /// Removes the last row of a batch if it does not exist; returns whether it does.
    pub(crate) fn keep_last(&self, out: &mut CellBatch) -> bool {
        let holds = self.0.is_none() || self.hold(&out.row(out.row_count() - 1));
        if !holds {
            out.cancel_row();
        }
        holds
    }
}

/// Checks that there is a view of each requested family.
pub(crate) fn check_views(views: &Views, wanted: Option<&[u8]>) -> Result<()> {
    let lacks = |family: &&u8| !views.iter().any(|(present, _)| present == *family);
    match wanted.unwrap_or_default().iter().find(lacks) {
        Some(family) => Err(no_family(*family)),
        None => Ok(()),
    }
}

fn no_family(family: impl std::fmt::Display) -> Error {
    Error::InvalidRequest(format!("column family {family} does not exist"))
}

/// Returns the view of a family at the source.
pub(crate) fn view_of(region: &Region, source: ReadTarget, family: usize) -> Result<Arc<ReadView>> {
    let view = match source {
        ReadTarget::Primary => region.view(family),
        ReadTarget::Replica => region.replicas().first().and_then(|replica| replica.view(family)),
    };
    view.ok_or_else(|| no_family(family))
}

/// End of a batch, to measure later additions.
#[derive(Clone, Copy)]
pub(crate) struct BatchMark(Volume);

impl BatchMark {
    /// Marks the end of a batch.
    #[inline]
    pub(crate) fn of(batch: &CellBatch) -> BatchMark {
        BatchMark(Volume {
            rows: batch.row_count() as u64,
            cells: batch.cell_count() as u64,
            bytes: batch.byte_count() as u64,
        })
    }

    /// Returns the additions.
    #[inline]
    pub(crate) fn until(self, batch: &CellBatch) -> Volume {
        let (BatchMark(before), BatchMark(now)) = (self, BatchMark::of(batch));
        Volume {
            rows: now.rows.saturating_sub(before.rows),
            cells: now.cells.saturating_sub(before.cells),
            bytes: now.bytes.saturating_sub(before.bytes),
        }
    }
}

/// Counts the rows that some requests returned since the mark.
#[inline]
pub(crate) fn count_read(
    (region, source): (&Region, ReadTarget),
    since: RegionMark,
    requests: u64,
    volume: Volume,
) {
    note_read(|figures| figures.cells += volume.cells);
    let Volume { rows, bytes, .. } = volume;
    since.note(
        region.id(),
        RegionReadStatistics { requests, rows, bytes, ..RegionReadStatistics::default() },
    );
    match source {
        ReadTarget::Primary => region.load().read(requests, volume),
        ReadTarget::Replica => {
            if let Some(replica) = region.replicas().first() {
                replica.count_rows(volume.rows);
            }
        }
    }
}
