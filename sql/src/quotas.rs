//! Request quotas in force: those of the committed catalog, with their token buckets.
//!
//! A table and its indexes share one quota, as all tables of a schema do. A quota whose limits have
//! not changed keeps its buckets, including their debt.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use store::Store;
use store::quota::{Quota, QuotaLimits};

use crate::catalog::Catalog;
use crate::catalog::quota::QuotaSubject;

/// Quotas of roles, which the databases share.
#[derive(Default)]
pub struct RoleQuotas(Mutex<BTreeMap<QuotaSubject, Arc<Quota>>>);

impl RoleQuotas {
    /// Returns the quota of a role with these limits.
    fn quota(
        &self,
        role: &QuotaSubject,
        make: impl FnOnce() -> Quota,
        limits: QuotaLimits,
    ) -> Arc<Quota> {
        let mut quotas = self.0.lock();
        match quotas.get(role) {
            Some(quota) if quota.limits() == limits => Arc::clone(quota),
            _ => {
                let quota = Arc::new(make());
                quotas.insert(role.clone(), Arc::clone(&quota));
                quota
            }
        }
    }
}

/// Quotas in a database, by subject.
pub struct Quotas {
    roles: Arc<RoleQuotas>,
    live: ArcSwap<BTreeMap<QuotaSubject, Arc<Quota>>>,
}

impl Quotas {
    /// Returns the quotas of a database; none is in force.
    pub(crate) fn new(roles: &Arc<RoleQuotas>) -> Quotas {
        Quotas { roles: Arc::clone(roles), live: ArcSwap::default() }
    }

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
                QuotaSubject::Schema(number) => {
                    match catalog.schemas().find(|one| one.oid == *number) {
                        Some(schema) => format!("schema \"{}\"", schema.name),
                        None => continue,
                    }
                }
                QuotaSubject::Role(name) => format!("role \"{name}\""),
                QuotaSubject::Database(number) => match catalog.database(*number) {
                    Some(database) => format!("database \"{}\"", database.name),
                    None => continue,
                },
            };
            let quota = match before.get(subject) {
                Some(quota) if quota.limits() == limits => Arc::clone(quota),
                _ if matches!(subject, QuotaSubject::Role(_)) => {
                    self.roles.quota(subject, || Quota::new(named, limits), limits)
                }
                _ => Arc::new(Quota::new(named, limits)),
            };
            live.insert(subject.clone(), quota);
        }
        for table in catalog.tables_by_age() {
            let schema = catalog.schema(&table.schema).map(|one| QuotaSubject::Schema(one.oid));
            let subjects = [Some(QuotaSubject::Table(table.id)), schema];
            let quotas = subjects.iter().flatten().filter_map(|subject| live.get(subject));
            let quotas: Vec<Arc<Quota>> = quotas.cloned().collect();
            let indexes = table.indexes.iter().map(|index| index.spec.store_table);
            for id in std::iter::once(table.id).chain(indexes) {
                store.set_quotas(id, quotas.clone())?;
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

    /// Returns the quota of a database.
    pub(crate) fn of_database(&self, database: u32) -> Option<Arc<Quota>> {
        let live = self.live.load();
        if live.is_empty() {
            return None;
        }
        live.get(&QuotaSubject::Database(database)).cloned()
    }

    /// Returns all quotas.
    pub(crate) fn all(&self) -> Arc<BTreeMap<QuotaSubject, Arc<Quota>>> {
        self.live.load_full()
    }
}
