//! Open tables: descriptor, region map, observers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use parking_lot::{Mutex, MutexGuard};

use crate::descriptor::{TableDescriptor, TableId};
use crate::error::{Error, Result};
use crate::lock::Owner;
use crate::observer::{Hooks, ObserverSlot, RegionObserver};
use crate::quota::Quota;
use crate::region::RegionMap;

/// An open table.
pub(crate) struct Table {
    id: TableId,
    descriptor: ArcSwap<TableDescriptor>,
    regions: ArcSwap<RegionMap>,
    /// Number of bulk loads that require the present regions; locked while regions are replaced.
    loads: Mutex<usize>,
    observers: ObserverSlot<dyn RegionObserver>,
    /// The transaction that has created the table, while it is open.
    private_to: OnceLock<Owner>,
    quotas: ArcSwapOption<Vec<Arc<Quota>>>,
    /// Families in which a row must have a visible cell to exist, ascending.
    required: ArcSwapOption<Vec<u8>>,
    /// True if its commits are logged regardless of its durability.
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
            observers: ObserverSlot::default(),
            private_to: OnceLock::new(),
            quotas: ArcSwapOption::empty(),
            required: ArcSwapOption::empty(),
            logged: AtomicBool::new(false),
            attaching: Mutex::default(),
        }
    }

    /// Returns its id.
    pub(crate) fn id(&self) -> TableId {
        self.id
    }

    /// Marks the table as private to a transaction until that ends. Only the first call has an
    /// effect.
    pub(crate) fn make_private_to(&self, owner: Owner) {
        self.private_to.get_or_init(|| owner);
    }

    /// Returns whether the table is private to a transaction. Owners are unique, so that ends
    /// with the transaction.
    pub(crate) fn is_private_to(&self, owner: Owner) -> bool {
        self.private_to.get() == Some(&owner)
    }

    /// Returns its descriptor.
    pub(crate) fn descriptor(&self) -> Guard<Arc<TableDescriptor>> {
        self.descriptor.load()
    }

    /// Returns its quotas; `None` if it has none.
    pub(crate) fn quotas(&self) -> Guard<Option<Arc<Vec<Arc<Quota>>>>> {
        self.quotas.load()
    }

    /// Replaces its quotas.
    pub(crate) fn set_quotas(&self, quotas: Vec<Arc<Quota>>) {
        self.quotas.store((!quotas.is_empty()).then(|| Arc::new(quotas)));
    }

    /// Returns the families in which a row must have a visible cell; `None`: it exists as long as
    /// it has one in any.
    pub(crate) fn required(&self) -> Option<Arc<Vec<u8>>> {
        self.required.load_full()
    }

    /// Sets the families in which a row must have a visible cell.
    pub(crate) fn set_required(&self, families: Vec<u8>) {
        self.required.store((!families.is_empty()).then(|| Arc::new(families)));
    }

    /// Sets whether its commits are logged regardless of its durability.
    pub(crate) fn set_logged(&self, logged: bool) {
        self.logged.store(logged, Ordering::Release);
    }

    /// Returns whether its commits are logged regardless of its durability.
    pub(crate) fn is_logged(&self) -> bool {
        self.logged.load(Ordering::Acquire)
    }

    /// Replaces its descriptor.
    pub(crate) fn set_descriptor(&self, descriptor: Arc<TableDescriptor>) {
        assert_eq!(descriptor.id, self.id, "a descriptor of another table");
        assert!(
            descriptor.families.len() >= self.descriptor.load().families.len(),
            "column families are never removed"
        );
        self.descriptor.store(descriptor);
    }

    /// Returns its present regions. A split or merge may replace them at any time: two calls may
    /// return two maps. Must be called after the snapshot of a read is taken: a cell that a
    /// replaced region lacks is not visible to snapshots older than the replacement.
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
        let mut loads = self.loads.lock();
        assert!(*loads > 0, "a bulk load ends that has not begun");
        *loads -= 1;
    }

    /// Prevents bulk loads from beginning while regions are replaced.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if one is in progress.
    pub(crate) fn hold_loads(&self) -> Result<MutexGuard<'_, usize>> {
        let loads = self.loads.lock();
        match *loads {
            0 => Ok(loads),
            _ => Err(Error::InvalidRequest(format!(
                "cannot split or merge regions of table \"{}\" during a bulk load",
                self.descriptor().name
            ))),
        }
    }

    /// Returns its observers.
    pub(crate) fn observers(&self) -> &ObserverSlot<dyn RegionObserver> {
        &self.observers
    }

    /// Returns whether any of them observe writes.
    pub(crate) fn is_observed(&self) -> bool {
        self.observers.wants(Hooks::WRITE)
    }
}

/// Validates a descriptor.
///
/// # Errors
///
/// [`Error::InvalidRequest`] with the reason.
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
    if descriptor.colocated_with.is_some() && descriptor.region_replication > 1 {
        return refuse("a colocated table cannot have region replicas".into());
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
