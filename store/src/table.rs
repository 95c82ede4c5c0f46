//! A table: its descriptor, its regions, its observers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use parking_lot::{Mutex, MutexGuard};

use crate::descriptor::{TableDescriptor, TableId};
use crate::error::{Error, Result};
use crate::lock::Owner;
use crate::observer::{Hooks, RegionObserver, Slot};
use crate::quota::Quota;
use crate::region::RegionMap;

/// An open table.
pub(crate) struct Table {
    id: TableId,
    descriptor: ArcSwap<TableDescriptor>,
    regions: ArcSwap<RegionMap>,
    /// Bulk loads that count on the regions as they are; held while regions are replaced.
    loads: Mutex<usize>,
    observers: Slot<dyn RegionObserver>,
    /// The transaction that alone knows of the table, while it is open.
    private_to: OnceLock<Owner>,
    quota: ArcSwapOption<Quota>,
    /// Families without a visible cell in which a row is not there, ascending.
    required: ArcSwapOption<Vec<u8>>,
    /// Its commits are logged, whatever its durability says.
    logged: AtomicBool,
    /// Held while the observers are replaced.
    pub(crate) attaching: Mutex<()>,
}

impl Table {
    /// Returns a table without observers.
    pub(crate) fn new(descriptor: Arc<TableDescriptor>, regions: RegionMap) -> Table {
        Table {
            id: descriptor.id,
            descriptor: ArcSwap::new(descriptor),
            regions: ArcSwap::from_pointee(regions),
            loads: Mutex::default(),
            observers: Slot::default(),
            private_to: OnceLock::new(),
            quota: ArcSwapOption::empty(),
            required: ArcSwapOption::empty(),
            logged: AtomicBool::new(false),
            attaching: Mutex::default(),
        }
    }

    /// Returns its id.
    pub(crate) fn id(&self) -> TableId {
        self.id
    }

    /// Says that nobody but a transaction knows of the table until that ends. Only the first one
    /// can be it.
    pub(crate) fn make_private_to(&self, owner: Owner) {
        self.private_to.get_or_init(|| owner);
    }

    /// Returns whether nobody else knows of the table. No two transactions are the same owner, so
    /// it ends with the transaction.
    pub(crate) fn is_private_to(&self, owner: Owner) -> bool {
        self.private_to.get() == Some(&owner)
    }

    /// Returns its descriptor.
    pub(crate) fn descriptor(&self) -> Guard<Arc<TableDescriptor>> {
        self.descriptor.load()
    }

    /// Returns the quota that requests of it are held to.
    pub(crate) fn quota(&self) -> Option<Arc<Quota>> {
        self.quota.load_full()
    }

    /// Replaces its quota.
    pub(crate) fn set_quota(&self, quota: Option<Arc<Quota>>) {
        self.quota.store(quota);
    }

    /// Returns the families that a row must have a visible cell in; `None`: it is there as long as
    /// it has one in any.
    pub(crate) fn required(&self) -> Option<Arc<Vec<u8>>> {
        self.required.load_full()
    }

    /// Replaces the families that a row must have a visible cell in.
    pub(crate) fn set_required(&self, families: Vec<u8>) {
        self.required.store((!families.is_empty()).then(|| Arc::new(families)));
    }

    /// Has its commits logged, or not, whatever its durability says.
    pub(crate) fn set_logged(&self, logged: bool) {
        self.logged.store(logged, Ordering::Release);
    }

    /// Returns whether its commits are logged, whatever its durability says.
    pub(crate) fn is_logged(&self) -> bool {
        self.logged.load(Ordering::Acquire)
    }

    /// Replaces its descriptor.
    pub(crate) fn set_descriptor(&self, descriptor: Arc<TableDescriptor>) {
        self.descriptor.store(descriptor);
    }

    /// Returns its present regions. A split or merge may put others in their place at any time: who
    /// looks twice may see two maps. To be taken after the snapshot of a read: what a region lacks
    /// that others have replaced, no snapshot sees that is older than the replacement.
    pub(crate) fn regions(&self) -> Guard<Arc<RegionMap>> {
        self.regions.load()
    }

    /// Replaces the map of its regions.
    pub(crate) fn set_regions(&self, regions: RegionMap) {
        self.regions.store(Arc::new(regions));
    }

    /// Returns the regions for a bulk load; they stay until [`Table::end_load`].
    pub(crate) fn begin_load(&self) -> Arc<RegionMap> {
        let mut loads = self.loads.lock();
        *loads += 1;
        self.regions.load_full()
    }

    /// Ends a bulk load.
    pub(crate) fn end_load(&self) {
        *self.loads.lock() -= 1;
    }

    /// Keeps bulk loads from beginning while regions are replaced.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if one is under way.
    pub(crate) fn hold_loads(&self) -> Result<MutexGuard<'_, usize>> {
        let loads = self.loads.lock();
        match *loads {
            0 => Ok(loads),
            _ => Err(Error::InvalidRequest(format!(
                "the regions of table \"{}\" cannot change while a bulk load of it is under way",
                self.descriptor().name
            ))),
        }
    }

    /// Returns its observers.
    pub(crate) fn observers(&self) -> &Slot<dyn RegionObserver> {
        &self.observers
    }

    /// Returns whether any of them see writes.
    pub(crate) fn is_observed(&self) -> bool {
        self.observers.wants(Hooks::WRITE)
    }
}

/// Checks that a descriptor makes sense on its own.
///
/// # Errors
///
/// [`Error::InvalidRequest`] says what does not.
pub(crate) fn check_descriptor(descriptor: &TableDescriptor) -> Result<()> {
    let refuse = |why: String| Err(Error::InvalidRequest(why));
    if let Some(why) =
        descriptor.families.iter().find_map(|family| family.value_layout.check().err())
    {
        return refuse(why);
    }
    if descriptor.families.is_empty() {
        return refuse(format!("table \"{}\" has no column family", descriptor.name));
    }
    if descriptor.families.len() > usize::from(u8::MAX) {
        return refuse(format!("table \"{}\" has more than 255 column families", descriptor.name));
    }
    if descriptor.region_replication == 0 {
        return refuse("region replication must be at least 1".into());
    }
    if descriptor.families.iter().any(|family| family.versions == 0) {
        return refuse("versions must be at least 1".into());
    }
    for family in &descriptor.families {
        if let Some(why) = family.compaction.objection(family.ttl, family.min_versions) {
            return refuse(format!("column family \"{}\": {why}", family.name));
        }
    }
    let points = &descriptor.split_points;
    if points.first().is_some_and(Vec::is_empty) || !points.is_sorted_by(|a, b| a < b) {
        return refuse("split points must be ascending and not empty".into());
    }
    Ok(())
}
