//! The way of a read into a region: through its service gate to the primary, or to a replica.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use smallvec::SmallVec;

use crate::cell::CellBatch;
use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::error::{Error, Result};
use crate::family_store::{ReadSpec, ReadView};
use crate::memstore::Memstore;
use crate::mutation::Consistency;
use crate::options::Options;
use crate::region::Region;
use crate::replica::ReplicaFeed;
use crate::scan::Get;
use crate::snapshot::{Holder, Snapshot, SnapshotPurpose, Snapshots};

/// The staged cells of one table, by family.
pub(crate) type StagedFamilies = SmallVec<[Option<Arc<Memstore>>; 2]>;

/// What all reads of a store share.
pub(crate) struct ReadPath {
    /// Settings.
    pub(crate) options: Options,
    /// The open snapshots.
    pub(crate) snapshots: Arc<Snapshots>,
    /// How far replicas are.
    pub(crate) feed: Arc<ReplicaFeed>,
}

/// Where a read was let in.
pub(crate) enum Source {
    /// The region itself.
    Primary,
    /// A replica, with the snapshot that is not above what the replica has.
    Replica(Snapshot),
}

/// What a caller accepts.
pub(crate) struct Caller<'a> {
    /// Where its reads may go.
    pub(crate) consistency: Consistency,
    /// Any of them set ends the wait.
    pub(crate) cancelled: &'a [&'a AtomicBool],
}

impl ReadPath {
    /// Lets a read of `snapshot` into a region.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], [`Error::RegionTimeout`].
    pub(crate) fn enter(
        &self,
        region: &Region,
        table: TableId,
        snapshot: Sequence,
        caller: &Caller<'_>,
    ) -> Result<Source> {
        let timeout = match caller.consistency {
            Consistency::Strong => None,
            Consistency::Timeline { timeout } => Some(timeout),
        };
        let blocking = &*self.options.blocking;
        if region.service().enter(timeout, caller.cancelled, blocking)? {
            return Ok(Source::Primary);
        }
        if region.replicas().is_empty() {
            return Err(Error::RegionTimeout { table });
        }
        let holder = Holder {
            purpose: SnapshotPurpose::Replica,
            transaction: 0,
            opened_micros: self.options.env.now_micros(),
        };
        let snapshot = self.snapshots.open(holder, || snapshot.min(self.feed.applied()));
        Ok(Source::Replica(snapshot))
    }

    /// Reads one row of a region.
    pub(crate) fn get(
        &self,
        region: &Region,
        source: &Source,
        (get, spec): (&Get, &ReadSpec),
        staged: Option<&StagedFamilies>,
        out: &mut CellBatch,
    ) -> Result<bool> {
        let mut spec = *spec;
        if let Source::Replica(snapshot) = source {
            spec.snapshot = snapshot.sequence();
        }
        out.start_row(&get.row);
        let found = read_families(region, source, (get, &spec), staged, out);
        if !matches!(found, Ok(true)) {
            out.cancel_row();
            return found;
        }
        count_rows(region, source, 1);
        Ok(true)
    }
}

fn read_families(
    region: &Region,
    source: &Source,
    (get, spec): (&Get, &ReadSpec),
    staged: Option<&StagedFamilies>,
    out: &mut CellBatch,
) -> Result<bool> {
    let mut found = false;
    let mut read = |family: usize| -> Result<()> {
        let staged = staged.and_then(|families| families.get(family)).and_then(Option::as_deref);
        found |= view_of(region, source, family)?.get(&get.row, spec, staged, out)?;
        Ok(())
    };
    match &get.families {
        None => (0..region.family_count()).try_for_each(&mut read)?,
        Some(families) => families.iter().try_for_each(|family| read(usize::from(*family)))?,
    }
    Ok(found)
}

/// Returns the view of a family at the source.
pub(crate) fn view_of(region: &Region, source: &Source, family: usize) -> Result<Arc<ReadView>> {
    let view = match source {
        Source::Primary => region.view(family),
        Source::Replica(_) => region.replicas().first().and_then(|replica| replica.view(family)),
    };
    view.ok_or_else(|| Error::InvalidRequest(format!("there is no column family {family}")))
}

/// Counts rows returned.
pub(crate) fn count_rows(region: &Region, source: &Source, rows: u64) {
    match source {
        Source::Primary => region.count_read(rows),
        Source::Replica(_) => {
            if let Some(replica) = region.replicas().first() {
                replica.count_rows(rows);
            }
        }
    }
}
