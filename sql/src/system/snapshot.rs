//! What is derived of a catalog snapshot once, and shared by all statements that see it.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType};

use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::system::Row;
use crate::system::objects::Objects;
use crate::system::shape::Shape;

/// The objects of a catalog, and the rows of the views that were asked for.
pub(super) struct Snapshot {
    pub(super) objects: Objects,
    views: Mutex<AHashMap<u32, Shared>>,
}

/// The rows of a view, and the search path that their texts are for: `None` if for any.
struct Shared {
    path: Option<SearchPath>,
    rows: Arc<Vec<Batch>>,
}

impl Snapshot {
    /// Returns that of a catalog.
    pub(super) fn of(catalog: &Catalog) -> Arc<Snapshot> {
        catalog
            .derived(|catalog| Snapshot { objects: Objects::of(catalog), views: Mutex::default() })
    }

    /// Returns the rows of a view that depends on nothing but the catalog and, if one is given, a
    /// search path, made by the first call; `None` if `make` says that it is no such view.
    pub(super) fn view(
        &self,
        shape: &Shape,
        path: Option<&SearchPath>,
        make: impl FnOnce(&Objects) -> Option<Vec<Row>>,
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
        let shared = Shared { path: path.cloned(), rows: Arc::clone(&rows) };
        self.views.lock().insert(shape.oid, shared);
        Some(rows)
    }
}
