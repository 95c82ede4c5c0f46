//! Tests of checkpoints: a copy at one sequence, under load, and despite crashes and failures.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::env::RealEnv;
use store::env::fault::{FaultEnv, Unsynced};
use store::{Error, Mutation, Options, Sequence, Store};

use crate::cases::{TABLE, begin, descriptor, open, options, put, scan};

fn copy() -> &'static Path {
    Path::new("/copies/first")
}

fn open_copy(env: &FaultEnv, directory: &Path) -> Arc<Store> {
    Store::open(directory, options(env)).unwrap()
}

fn rows(store: &Arc<Store>) -> BTreeMap<String, String> {
    scan(&begin(store)).unwrap().into_iter().collect()
}

/// Writes the number to two rows, in two regions, in one commit.
fn write_pair(store: &Arc<Store>, writer: usize, number: u64) -> Sequence {
    let transaction = begin(store);
    let cell = |row: String| Mutation::new(row).put(0, "q", number.to_string().into());
    let batch = vec![cell(format!("a{writer}")), cell(format!("z{writer}"))];
    transaction.mutate(TABLE, batch).unwrap();
    transaction.commit().unwrap().sequence.unwrap()
}

#[test]
fn checkpoint_under_load_is_consistent_prefix() {
    let env = FaultEnv::new(1);
    let settings = Options { memstore_flush_bytes: 2000, ..options(&env) };
    let store = Store::open(Path::new("/data"), settings).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    let ended = AtomicBool::new(false);
    let (checkpoints, written) = std::thread::scope(|scope| {
        let write = |writer: usize| {
            let mut written = Vec::new();
            while !ended.load(Ordering::SeqCst) {
                written.push(write_pair(&store, writer, written.len() as u64 + 1));
            }
            written
        };
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(move || write(writer))).collect();
        let compacting = scope.spawn(|| {
            while !ended.load(Ordering::SeqCst) {
                store.flush_table(TABLE).unwrap();
                store.compact_table(TABLE, true).unwrap();
            }
        });
        let checkpoints: Vec<_> = (0..12)
            .map(|number| {
                let directory = format!("/copies/{number}");
                let checkpoint = store.checkpoint(Path::new(&directory)).unwrap();
                (directory, checkpoint)
            })
            .collect();
        ended.store(true, Ordering::SeqCst);
        compacting.join().unwrap();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        (checkpoints, written)
    });
    store.drop_table(TABLE).unwrap();
    drop(store);
    for (directory, checkpoint) in checkpoints {
        let mut expected = BTreeMap::new();
        for (writer, sequences) in written.iter().enumerate() {
            let count = sequences.partition_point(|sequence| *sequence <= checkpoint.sequence);
            if count > 0 {
                expected.insert(format!("a{writer}"), count.to_string());
                expected.insert(format!("z{writer}"), count.to_string());
            }
        }
        let opened = open_copy(&env.after_crash(Unsynced::Lost), Path::new(&directory));
        assert_eq!(rows(&opened), expected, "{directory}: {checkpoint:?}");
        // Commits continue from there.
        assert!(write_pair(&opened, 9, 9) > checkpoint.sequence);
    }
}

/// Returns a store with a row in a file and one in memory.
fn two_rows(env: &FaultEnv) -> Arc<Store> {
    let store = open(env).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    put(&store, "a", "one");
    store.flush_table(TABLE).unwrap();
    put(&store, "z", "two");
    store
}

#[test]
fn checkpoint_is_atomic_under_crash() {
    let calm = FaultEnv::new(1);
    let store = two_rows(&calm);
    let before = calm.operation_count();
    store.checkpoint(copy()).unwrap();
    let operations = calm.operation_count() - before;
    let expected: BTreeMap<String, String> =
        [("a", "one"), ("z", "two")].map(|(row, value)| (row.into(), value.into())).into();
    let (mut whole, mut absent) = (0, 0);
    for failing in 0..=operations {
        for unsynced in [Unsynced::Lost, Unsynced::Kept, Unsynced::Torn, Unsynced::Holed] {
            let env = FaultEnv::new(failing * 4 + whole + absent);
            let store = two_rows(&env);
            env.fail_after(failing);
            let made = store.checkpoint(copy()).is_ok();
            drop(store);
            let env = env.after_crash(unsynced);
            if env.paths().iter().any(|path| path.starts_with(copy())) {
                assert_eq!(rows(&open_copy(&env, copy())), expected, "{failing}, {unsynced:?}");
                whole += 1;
            } else {
                assert!(!made, "{failing}, {unsynced:?}: acknowledged and gone");
                absent += 1;
                // The next one is not affected by the leftovers.
                let store = open(&env).unwrap();
                store.checkpoint(copy()).unwrap();
                assert_eq!(rows(&open_copy(&env, copy())), expected, "{failing}, {unsynced:?}");
            }
        }
    }
    assert!(whole > 3 && absent > 0, "{whole} whole, {absent} absent");
}

#[test]
fn checkpoint_rejects_existing_directory() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    store.checkpoint(copy()).unwrap();
    put(&store, "a", "one");
    assert!(matches!(store.checkpoint(copy()), Err(Error::InvalidRequest(_))));
    assert!(matches!(store.checkpoint(Path::new("/")), Err(Error::InvalidRequest(_))));
    assert!(rows(&open_copy(&env, copy())).is_empty());
    store.shut_down().unwrap();
    assert!(matches!(store.checkpoint(Path::new("/copies/b")), Err(Error::ShutDown)));
}

#[test]
fn checkpoint_hard_links_files_on_real_disk() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Options { env: Arc::new(RealEnv::default()), ..Options::default() };
    let store = Store::open(&directory.path().join("data"), settings.clone()).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    put(&store, "a", "one");
    put(&store, "z", "two");
    let copy = directory.path().join("backups/first");
    let checkpoint = store.checkpoint(&copy).unwrap();
    assert_eq!(checkpoint.file_count, 2);
    let mut links = Vec::new();
    let mut directories = vec![copy.clone()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            } else if entry.path().extension().is_some_and(|extension| extension == "store") {
                links.push(entry.metadata().unwrap().nlink());
            }
        }
    }
    assert_eq!(links, [2, 2]);
    put(&store, "a", "three");
    drop(store);
    let opened = Store::open(&copy, settings).unwrap();
    let found = rows(&opened);
    assert_eq!((found["a"].as_str(), found["z"].as_str()), ("one", "two"));
}
