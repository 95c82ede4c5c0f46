//! Atomically replaceable version of a value, read without a lock.
//!
//! A writer announces the address of the new version before it replaces the old one. So a reader
//! that took versions, read something else, and finds the versions' addresses still announced,
//! knows that they were all present at that time ([`at_one_moment`]).
//!
//! The model checker's test (`model.rs`) compiles this file with its own primitives, which is why
//! it uses those in `super::sync`.

use std::sync::Arc;

use super::sync::{ArcSwap, AtomicPtr, Guard, SeqCst, yield_now};

/// The present version of a `T`.
pub(crate) struct VersionedValue<T> {
    version: ArcSwap<T>,
    /// Address of the present version, or of the one that is about to replace it.
    announced: AtomicPtr<T>,
}

impl<T> VersionedValue<T> {
    /// Returns a holder of a first version.
    pub(crate) fn new(version: Arc<T>) -> VersionedValue<T> {
        let announced = AtomicPtr::new(Arc::as_ptr(&version).cast_mut());
        VersionedValue { version: ArcSwap::new(version), announced }
    }

    /// Returns the present version as a guard, without a reference count.
    pub(crate) fn load(&self) -> Guard<Arc<T>> {
        self.version.load()
    }

    /// Returns the present version.
    pub(crate) fn load_full(&self) -> Arc<T> {
        self.version.load_full()
    }

    /// Replaces the version. One caller at a time.
    pub(crate) fn replace(&self, version: Arc<T>) {
        self.announced.store(Arc::as_ptr(&version).cast_mut(), SeqCst);
        self.version.store(version);
    }

    /// Returns whether a version that was taken from here is present, and none is about to
    /// replace it. The reference to it prevents the reuse of its address.
    pub(crate) fn is_present(&self, version: &Arc<T>) -> bool {
        std::ptr::eq(self.announced.load(SeqCst), Arc::as_ptr(version))
    }
}

/// Returns versions, taken by `take`, that were all present at one moment, and the result of
/// `look` at that moment.
pub(crate) fn at_one_moment<V, S>(
    take: impl Fn() -> V,
    look: impl Fn() -> S,
    are_present: impl Fn(&V) -> bool,
) -> (V, S) {
    loop {
        let versions = take();
        let seen = look();
        if are_present(&versions) {
            return (versions, seen);
        }
        // A writer is between the two steps of a replacement, and may be descheduled.
        yield_now();
    }
}
