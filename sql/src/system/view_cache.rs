//! Cache of catalog objects and system view rows, one for each catalog snapshot and shared by all
//! statements that read it.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use types::Batch;

use crate::catalog::Catalog;
use crate::error::Result;
use crate::system::catalog_objects::{CatalogObjects, SystemRelation};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::updatable::Updatable;

/// The objects of a catalog snapshot, and the rows of the views that were read.
pub(super) struct SystemViewCache {
    pub(super) objects: CatalogObjects,
    views: Mutex<AHashMap<u32, CachedView>>,
    updatable: Mutex<AHashMap<u32, Arc<Updatable>>>,
}

/// The rows of a view, and the session settings that their texts depend on; empty if on none.
struct CachedView {
    settings: String,
    rows: Arc<Vec<Batch>>,
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
    /// are cached for the last settings. `None` if `make` returns `None`.
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
        if let Some(known) = self.views.lock().get(&shape.oid)
            && known.settings == settings
        {
            return Ok(Some(Arc::clone(&known.rows)));
        }
        let Some(rows) = make()? else { return Ok(None) };
        let rows = Arc::new(rows);
        let cached = CachedView { settings, rows: Arc::clone(&rows) };
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
