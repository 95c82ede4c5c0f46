//! Guard of a commit in the write gate of a region.

use std::cell::Cell;

use parking_lot::RwLockReadGuard;

thread_local! {
    /// Number of write gates that the thread is in, in debug builds.
    static WRITE_GATES: Cell<u32> = const { Cell::new(0) };
}

/// Guard of a commit in the write gate of a region.
pub(crate) struct WriteGuard<'a> {
    _gate: RwLockReadGuard<'a, ()>,
}

impl<'a> WriteGuard<'a> {
    pub(super) fn new(gate: RwLockReadGuard<'a, ()>) -> WriteGuard<'a> {
        if cfg!(debug_assertions) {
            WRITE_GATES.set(WRITE_GATES.get() + 1);
        }
        WriteGuard { _gate: gate }
    }

    /// Asserts, in debug builds, that the thread is in no write gate: it is about to wait.
    pub(crate) fn check_none() {
        debug_assert_eq!(WRITE_GATES.get(), 0, "a commit waits while it is in a write gate");
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            WRITE_GATES.set(WRITE_GATES.get() - 1);
        }
    }
}
