//! What is derived of a catalog snapshot once, and shared by all statements that see it.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType};

use crate::catalog::Catalog;
use crate::system::Row;
use crate::system::objects::Objects;
use crate::system::shape::Shape;

/// The objects of a catalog, and the rows of the views that were asked for.
pub(super) struct Snapshot {
    pub(super) objects: Objects,
    views: Mutex<AHashMap<u32, Arc<Vec<Batch>>>>,
}

impl Snapshot {
    /// Returns that of a catalog.
    pub(super) fn of(catalog: &Catalog) -> Arc<Snapshot> {
        catalog
            .derived(|catalog| Snapshot { objects: Objects::of(catalog), views: Mutex::default() })
    }

    /// Returns the rows of a view that depends on nothing but the catalog, made by the first call;
    /// `None` if `make` says that it is no such view.
    pub(super) fn view(
        &self,
        shape: &Shape,
        make: impl FnOnce(&Objects) -> Option<Vec<Row>>,
    ) -> Option<Arc<Vec<Batch>>> {
        if let Some(known) = self.views.lock().get(&shape.oid) {
            return Some(Arc::clone(known));
        }
        let types: Vec<DataType> = shape.columns.iter().map(|(_, of)| of.base).collect();
        let rows = make(&self.objects)?;
        let batches = rows.chunks(BATCH_ROWS).map(|rows| Batch::from_rows(&types, rows)).collect();
        let batches = Arc::new(batches);
        self.views.lock().insert(shape.oid, Arc::clone(&batches));
        Some(batches)
    }
}
