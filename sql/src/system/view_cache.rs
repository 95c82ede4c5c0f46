//! Cache of catalog objects and system view rows, one for each catalog snapshot and shared by all
//! statements that read it.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType};

use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::system::Row;
use crate::system::catalog_objects::CatalogObjects;
use crate::system::relation_definitions::RelationDefinition;

/// The objects of a catalog snapshot, and the rows of the views that were read.
pub(super) struct SystemViewCache {
    pub(super) objects: CatalogObjects,
    views: Mutex<AHashMap<u32, CachedView>>,
}

/// The rows of a view, and the search path that their texts depend on; `None` if on none.
struct CachedView {
    path: Option<SearchPath>,
    rows: Arc<Vec<Batch>>,
}

impl SystemViewCache {
    /// Returns the cache of a catalog; the first call creates it.
    pub(super) fn of(catalog: &Catalog) -> Arc<SystemViewCache> {
        catalog.derived(|catalog| SystemViewCache {
            objects: CatalogObjects::of(catalog),
            views: Mutex::default(),
        })
    }

    /// Returns the rows of a view that depends on nothing but the catalog and, if given, the
    /// search path. They are cached for the last search path. `None` if `make` returns `None`.
    pub(super) fn view(
        &self,
        shape: &RelationDefinition,
        path: Option<&SearchPath>,
        make: impl FnOnce(&CatalogObjects) -> Option<Vec<Row>>,
    ) -> Option<Arc<Vec<Batch>>> {
        if let Some(known) = self.views.lock().get(&shape.oid)
            && known.path.as_ref() == path
        {
            return Some(Arc::clone(&known.rows));
        }
        let types: Vec<DataType> = shape.columns.iter().map(|(_, of)| of.base).collect();
        let rows = make(&self.objects)?;
        let batches = rows.chunks(BATCH_ROWS).map(|rows| Batch::from_rows(&types, rows)).collect();
        let rows = Arc::new(batches);
        let shared = CachedView { path: path.cloned(), rows: Arc::clone(&rows) };
        self.views.lock().insert(shape.oid, shared);
        Some(rows)
    }
}
