//! The version of something that is present: swapped as a whole, read without a lock.
//!
//! Whoever replaces the version announces the address of the new one first. So a reader that took
//! versions, looked at something else, and finds the versions' addresses announced still, knows
//! that they were all present when it looked ([`at_one_moment`]).
//!
//! The model checker's test (`model.rs`) compiles this file over types of its own, which is why it
//! names what it synchronizes with through `super::sync`.

use std::sync::Arc;

use super::sync::{ArcSwap, AtomicPtr, Guard, SeqCst, yield_now};

/// The present version of a `T`.
pub(crate) struct Present<T> {
    version: ArcSwap<T>,
    /// Where the present version is, or the one that is about to be.
    announced: AtomicPtr<T>,
}

impl<T> Present<T> {
    /// Returns the place of a first version.
    pub(crate) fn new(version: Arc<T>) -> Present<T> {
        let announced = AtomicPtr::new(Arc::as_ptr(&version).cast_mut());
        Present { version: ArcSwap::new(version), announced }
    }

    /// Returns the present version for a moment, without counting an owner.
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

    /// Returns whether a version that was taken from here is present, and none is about to take its
    /// place. That it is held keeps its address from being another's.
    pub(crate) fn is_present(&self, version: &Arc<T>) -> bool {
        std::ptr::eq(self.announced.load(SeqCst), Arc::as_ptr(version))
    }
}

/// Returns versions, taken by `take`, that were all present at one moment, and what `look` returned
/// at it.
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
        // Somebody is between two steps of a replacement, and perhaps not running.
        yield_now();
    }
}
