//! Model checking of the replacement of versions: a reader without a snapshot against commits, a
//! rotation and a flush, in many interleavings.
//!
//! There are two families, and every commit writes the one column of both. The model covers the
//! assumptions of [`Region::views_of_now`](crate::region::Region): commits are applied before
//! they are visible, no commit is partly applied at a rotation, and a flush drops only versions
//! that no later reader can see.

#[path = "versioned.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "compiled again, for a part of it")]
mod versioned;

/// Replacement of `super::sync` for the file above.
mod sync {
    use std::sync::Arc;

    pub(super) use shuttle::sync::atomic::{AtomicPtr, Ordering::SeqCst};
    pub(super) use shuttle::thread::yield_now;

    pub(super) type Guard<T> = T;

    pub(super) struct ArcSwap<T>(shuttle::sync::Mutex<Arc<T>>);

    impl<T> ArcSwap<T> {
        pub(super) fn new(version: Arc<T>) -> ArcSwap<T> {
            ArcSwap(shuttle::sync::Mutex::new(version))
        }

        pub(super) fn load(&self) -> Arc<T> {
            Arc::clone(&self.0.lock().expect("no thread panics while it holds the lock"))
        }

        pub(super) fn load_full(&self) -> Arc<T> {
            self.load()
        }

        pub(super) fn store(&self, version: Arc<T>) {
            *self.0.lock().expect("no thread panics while it holds the lock") = version;
        }
    }
}

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::sync::{Mutex, RwLock};
use shuttle::thread;
use versioned::{VersionedValue, at_one_moment};

const COMMITS: u64 = 3;

/// Sequences of versions of the one column.
#[derive(Default)]
struct View {
    active: Arc<Mutex<Vec<u64>>>,
    frozen: Vec<u64>,
    file: Vec<u64>,
}

#[derive(Default)]
struct State {
    /// Commits are applied under its read lock.
    gate: RwLock<()>,
    visible: AtomicU64,
}

fn commits(state: &State, families: &[VersionedValue<View>; 2]) {
    for sequence in 1..=COMMITS {
        let gate = state.gate.read().unwrap();
        for family in families {
            family.load().active.lock().unwrap().push(sequence);
        }
        drop(gate);
        state.visible.store(sequence, SeqCst);
    }
}

fn rotate_and_flush(state: &State, family: &VersionedValue<View>) {
    let gate = state.gate.write().unwrap();
    let old = family.load();
    let frozen = old.active.lock().unwrap().clone();
    family.replace(Arc::new(View { active: Arc::default(), frozen, file: Vec::new() }));
    drop(gate);
    let oldest = state.visible.load(SeqCst);
    let rotated = family.load();
    let newest_seen = rotated.frozen.iter().filter(|version| **version <= oldest).max();
    let is_kept = |version: &u64| *version > oldest || Some(version) == newest_seen;
    let file = rotated.frozen.iter().copied().filter(is_kept).collect();
    let active = Arc::clone(&rotated.active);
    family.replace(Arc::new(View { active, frozen: Vec::new(), file }));
}

fn read(state: &State, families: &[VersionedValue<View>; 2]) {
    let (views, snapshot) = at_one_moment(
        || families.each_ref().map(VersionedValue::load),
        || state.visible.load(SeqCst),
        |views| families.iter().zip(views).all(|(family, view)| family.is_present(view)),
    );
    for view in views {
        let active = view.active.lock().unwrap();
        let versions = active.iter().chain(&view.frozen).chain(&view.file);
        let newest = versions.copied().filter(|version| *version <= snapshot).max();
        assert_eq!(newest.unwrap_or(0), snapshot);
    }
}

#[test]
fn reader_sees_all_cells_visible_at_snapshot() {
    let run = || {
        let state = Arc::new(State::default());
        let families = Arc::new([0, 1].map(|_| VersionedValue::new(Arc::new(View::default()))));
        let shared = || (Arc::clone(&state), Arc::clone(&families));
        let (state_of_commits, families_of_commits) = shared();
        let (state_of_flush, families_of_flush) = shared();
        let writers = [
            thread::spawn(move || commits(&state_of_commits, &families_of_commits)),
            thread::spawn(move || {
                families_of_flush
                    .iter()
                    .for_each(|family| rotate_and_flush(&state_of_flush, family));
            }),
        ];
        read(&state, &families);
        read(&state, &families);
        for writer in writers {
            writer.join().unwrap();
        }
        read(&state, &families);
    };
    shuttle::check_random(run, 3_000);
    shuttle::check_pct(run, 1_000, 3);
}
