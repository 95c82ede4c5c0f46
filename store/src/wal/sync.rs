//! Synchronization primitives of the log: the ordinary ones, or, with the feature `model-check`
//! of the crate in `store/model`, those of a model checker, which runs the same steps in many
//! orders.

#![allow(clippy::disallowed_methods, reason = "this module accesses the system for others")]

pub(super) use chosen::*;

#[cfg(not(feature = "model-check"))]
mod chosen {
    pub(in crate::wal) use std::sync::atomic::{AtomicBool, AtomicU64};
    pub(in crate::wal) use std::thread::{Builder, JoinHandle, Thread, current, park};

    pub(in crate::wal) use parking_lot::{Condvar, Mutex};
}

#[cfg(feature = "model-check")]
mod chosen {
    use std::ops::{Deref, DerefMut};
    use std::time::Duration;

    pub(in crate::wal) use shuttle::sync::atomic::{AtomicBool, AtomicU64};
    pub(in crate::wal) use shuttle::thread::{Builder, JoinHandle, Thread, current, park};

    /// A mutex with the interface of `parking_lot`.
    pub(in crate::wal) struct Mutex<T>(shuttle::sync::Mutex<T>);

    pub(in crate::wal) struct MutexGuard<'a, T> {
        mutex: &'a shuttle::sync::Mutex<T>,
        /// `None` only during a wait.
        guard: Option<shuttle::sync::MutexGuard<'a, T>>,
    }

    impl<T> Mutex<T> {
        pub(in crate::wal) fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(in crate::wal) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard { mutex: &self.0, guard: Some(locked(&self.0)) }
        }
    }

    fn locked<T>(mutex: &shuttle::sync::Mutex<T>) -> shuttle::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.guard.as_ref().expect("nobody looks within a wait")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.guard.as_mut().expect("nobody looks within a wait")
        }
    }

    /// A condition variable with the interface of `parking_lot`.
    pub(in crate::wal) struct Condvar(shuttle::sync::Condvar);

    pub(in crate::wal) struct TimedOut(bool);

    impl TimedOut {
        pub(in crate::wal) fn timed_out(&self) -> bool {
            self.0
        }
    }

    impl Condvar {
        pub(in crate::wal) fn new() -> Condvar {
            Condvar(shuttle::sync::Condvar::new())
        }

        pub(in crate::wal) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(in crate::wal) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.guard.take().expect("the lock is held");
            let again = self.0.wait(held).unwrap_or_else(std::sync::PoisonError::into_inner);
            guard.guard = Some(again);
        }

        /// The timeout passes at once or never, so progress must not depend on it.
        pub(in crate::wal) fn wait_for<T>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            _time: Duration,
        ) -> TimedOut {
            use shuttle::rand::Rng;
            let passes = shuttle::rand::thread_rng().r#gen::<bool>();
            if passes {
                guard.guard = None;
                shuttle::thread::yield_now();
                guard.guard = Some(locked(guard.mutex));
            } else {
                self.wait(guard);
            }
            TimedOut(passes)
        }
    }
}
