//! A value derived from a catalog on first use, and cached as long as the snapshot.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A lazily computed value of the caller's type. A clone is empty, because it belongs to a catalog
/// that is about to change.
#[derive(Default)]
pub(super) struct DerivedCache(OnceLock<Arc<dyn Any + Send + Sync>>);

impl DerivedCache {
    /// Returns the value; the first call computes it.
    ///
    /// # Panics
    ///
    /// If two callers request different types.
    pub(super) fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let value = Arc::clone(self.0.get_or_init(|| Arc::new(make())));
        value.downcast().expect("a catalog has one derived value")
    }
}

impl Clone for DerivedCache {
    fn clone(&self) -> DerivedCache {
        DerivedCache::default()
    }
}

impl fmt::Debug for DerivedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "made" } else { "not made" })
    }
}
