//! Cache of catalog objects and system view rows, one for each catalog snapshot and shared by all
//! statements that read it.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use types::Batch;

use crate::batch_buffer::byte_count;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system::catalog_objects::{CatalogObjects, SystemRelation};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::updatable::Updatable;

/// Maximum size of the cached rows of a snapshot, in bytes. The rows of larger views are computed
/// for each statement, which holds them in its own account.
const CACHED_BYTES_MAX: usize = 32 << 20;

/// The objects of a catalog snapshot, and the rows of the views that were read.
pub(super) struct SystemViewCache {
    pub(super) objects: CatalogObjects,
    views: Mutex<CachedViews>,
    updatable: Mutex<AHashMap<u32, Arc<Updatable>>>,
}

/// The cached views by OID, and the size of their rows in bytes.
#[derive(Default)]
struct CachedViews {
    by_oid: AHashMap<u32, CachedView>,
    bytes: usize,
}

/// The rows of a view, and the session settings that their texts depend on; empty if on none.
struct CachedView {
    settings: String,
    rows: Arc<Vec<Batch>>,
    bytes: usize,
}

impl CachedViews {
    /// Adds the rows of a view, if there is room, and removes those for other settings.
    fn insert(&mut self, oid: u32, view: CachedView) {
        if let Some(former) = self.by_oid.remove(&oid) {
            self.bytes -= former.bytes;
        }
        if self.bytes + view.bytes <= CACHED_BYTES_MAX {
            self.bytes += view.bytes;
            self.by_oid.insert(oid, view);
        }
    }
}

impl SystemViewCache {
    /// Returns the cache of a catalog; the first call creates it.
    pub(super) fn of(catalog: &Catalog) -> Arc<SystemViewCache> {
        catalog.derived(|catalog| SystemViewCache {
            objects: CatalogObjects::of(catalog),
            views: Mutex::default(),
            updatable: Mutex::default(),
        })
    }

    /// Returns the rows of a view that depends on nothing but the catalog and these settings. They
    /// are cached for the last settings, up to [`CACHED_BYTES_MAX`] of all views. `None` if `make`
    /// returns `None`.
    ///
    /// # Errors
    ///
    /// Errors of `make`.
    pub(super) fn view(
        &self,
        shape: &RelationDefinition,
        settings: String,
        make: impl FnOnce() -> Result<Option<Vec<Batch>>>,
    ) -> Result<Option<Arc<Vec<Batch>>>> {
        if let Some(known) = self.views.lock().by_oid.get(&shape.oid)
            && known.settings == settings
        {
            return Ok(Some(Arc::clone(&known.rows)));
        }
        let Some(rows) = make()? else { return Ok(None) };
        let rows = Arc::new(rows);
        let bytes = rows.iter().map(byte_count).sum();
        let cached = CachedView { settings, rows: Arc::clone(&rows), bytes };
        self.views.lock().insert(shape.oid, cached);
        Ok(Some(rows))
    }

    /// Returns the updatable columns of a relation.
    pub(super) fn updatable(&self, catalog: &Catalog, relation: &SystemRelation) -> Arc<Updatable> {
        if let Some(known) = self.updatable.lock().get(&relation.oid) {
            return Arc::clone(known);
        }
        let columns = Arc::new(Updatable::of(catalog, relation));
        self.updatable.lock().insert(relation.oid, Arc::clone(&columns));
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_rows_stay_within_limit() {
        let view = |settings: &str, bytes| CachedView {
            settings: settings.to_owned(),
            rows: Arc::default(),
            bytes,
        };
        let mut views = CachedViews::default();
        views.insert(1, view("utc", CACHED_BYTES_MAX / 2));
        views.insert(2, view("", CACHED_BYTES_MAX));
        assert_eq!(views.by_oid.keys().collect::<Vec<_>>(), [&1]);
        // Rows for other settings take the place of the former ones.
        views.insert(1, view("cet", CACHED_BYTES_MAX));
        assert_eq!((views.by_oid[&1].settings.as_str(), views.bytes), ("cet", CACHED_BYTES_MAX));
    }
}
