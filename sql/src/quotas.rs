//! Request quotas in force: those of the committed catalog, with their token buckets.
//!
//! A table and its indexes share one quota. A quota whose limits have not changed keeps its
//! buckets, including their debt.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use store::Store;
use store::quota::Quota;

use crate::catalog::Catalog;
use crate::catalog::quota::QuotaSubject;

/// Quotas by subject.
#[derive(Default)]
pub struct Quotas {
    live: ArcSwap<BTreeMap<QuotaSubject, Arc<Quota>>>,
}

impl Quotas {
    /// Applies the quotas of a catalog.
    ///
    /// # Errors
    ///
    /// If a table of the catalog is not in the store.
    pub(crate) fn apply(&self, store: &Store, catalog: &Catalog) -> store::Result<()> {
        let before = self.live.load_full();
        if before.is_empty() && catalog.quotas().next().is_none() {
            return Ok(());
        }
        let mut live = BTreeMap::new();
        for (subject, limits) in catalog.quotas() {
            let named = match subject {
                QuotaSubject::Table(id) => match catalog.table_stored(*id) {
                    Some(table) => format!("table \"{}\"", table.name),
                    None => continue,
                },
                QuotaSubject::Role(name) => format!("role \"{name}\""),
            };
            let quota = match before.get(subject) {
                Some(quota) if quota.limits() == limits => Arc::clone(quota),
                _ => Arc::new(Quota::new(named, limits)),
            };
            live.insert(subject.clone(), quota);
        }
        for table in catalog.tables_by_age() {
            let quota = live.get(&QuotaSubject::Table(table.id));
            let indexes = table.indexes.iter().map(|index| index.spec.store_table);
            for id in std::iter::once(table.id).chain(indexes) {
                store.set_quota(id, quota.cloned())?;
            }
        }
        self.live.store(Arc::new(live));
        Ok(())
    }

    /// Returns the quota of a role.
    pub(crate) fn of_role(&self, role: &str) -> Option<Arc<Quota>> {
        let live = self.live.load();
        if live.is_empty() {
            return None;
        }
        live.get(&QuotaSubject::Role(role.to_owned())).cloned()
    }

    /// Returns all quotas.
    pub(crate) fn all(&self) -> Arc<BTreeMap<QuotaSubject, Arc<Quota>>> {
        self.live.load_full()
    }
}
