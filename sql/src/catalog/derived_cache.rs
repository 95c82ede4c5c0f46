//! A value derived from a catalog or from an object of it on first use, and cached as long as that
//! snapshot.

use std::fmt;
use std::sync::OnceLock;

/// A lazily computed value. A clone is empty, because it belongs to a copy that is about to change.
pub struct DerivedCache<T>(OnceLock<T>);

impl<T> DerivedCache<T> {
    /// Returns the value; the first call computes it.
    pub(super) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(make)
    }

    /// Returns whether the value was computed.
    pub fn is_made(&self) -> bool {
        self.0.get().is_some()
    }
}

impl<T> Default for DerivedCache<T> {
    fn default() -> DerivedCache<T> {
        DerivedCache(OnceLock::new())
    }
}

/// All are equal: a value is derived from the parts that are compared.
impl<T> PartialEq for DerivedCache<T> {
    fn eq(&self, _: &DerivedCache<T>) -> bool {
        true
    }
}

impl<T> Clone for DerivedCache<T> {
    fn clone(&self) -> DerivedCache<T> {
        DerivedCache::default()
    }
}

impl<T> fmt::Debug for DerivedCache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_made() { "made" } else { "not made" })
    }
}
