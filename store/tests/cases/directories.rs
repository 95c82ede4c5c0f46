//! Tests of damaged data directories: each file truncated, removed, exchanged or modified. A
//! store opens with all acknowledged commits, or not at all; in that case nothing in the
//! directory has changed.
//!
//! `BENNU_DAMAGE=all` tries every length and every bit, instead of some of each kind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::env::Env;
use store::env::fault::{FaultEnv, Unsynced};
use store::salvage::{Salvaged, salvage};
use store::store::SplitPoint;
use store::{
    CellBatch, Error, FamilyDescriptor, Mutation, Options, Result, Scan, Store, TableDescriptor,
    TableId,
};

use crate::cases::{begin, descriptor, options};

/// Each transaction writes a row to each of them.
const TABLES: [TableId; 3] = [TableId(1), TableId(2), TableId(3)];
/// Number of transactions before the tables are flushed, and after.
const FLUSHED: u32 = 20;
const COUNT: u32 = 32;

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The end of the process that wrote the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stopped,
    Killed,
}

fn small(env: &FaultEnv) -> Options {
    // Several records fit into the zeros ahead, so that some are left at the end.
    Options { wal_segment_bytes: 16_000, region_threads: 1, ..options(env) }
}

fn open(env: &FaultEnv) -> Result<Arc<Store>> {
    Store::open(Path::new("/data"), small(env))
}

fn open_copy(env: &FaultEnv) -> Arc<Store> {
    Store::open(Path::new("/copy"), small(env)).unwrap()
}

fn write(store: &Arc<Store>, number: u32) {
    let transaction = begin(store);
    for table in TABLES {
        let row = format!("{number:04}");
        let value = format!("{}-{number}", table.0);
        transaction.mutate(table, vec![Mutation::new(row).put(0, "q", value.into())]).unwrap();
    }
    transaction.commit().unwrap().durable.wait().unwrap();
}

/// Returns the files of a store with three tables, one of them split: with rows in files, in the
/// log, in both.
fn directory(end: End) -> Files {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    for id in TABLES {
        let families = vec![FamilyDescriptor::new("d")];
        let table = TableDescriptor { id, families, ..descriptor(&[], 1) };
        store.create_table(table).unwrap();
    }
    for number in 1..=COUNT {
        write(&store, number);
        if number == FLUSHED {
            store.flush(TABLES[0]).unwrap();
            store.flush(TABLES[1]).unwrap();
            store.split_region(TABLES[0], SplitPoint::At(b"0010".to_vec())).unwrap();
        }
        if number == FLUSHED + 3 {
            store.flush(TABLES[2]).unwrap();
            store.flush(TABLES[1]).unwrap();
        }
    }
    let env = match end {
        End::Stopped => {
            store.shut_down().unwrap();
            env
        }
        End::Killed => env.after_crash(Unsynced::Kept),
    };
    drop(store);
    files_of(&env)
}

fn files_of(env: &FaultEnv) -> Files {
    let paths = env.paths().into_iter();
    paths.map(|path| (path.clone(), env.bytes(&path).unwrap())).collect()
}

fn env_of(files: &Files) -> FaultEnv {
    let env = FaultEnv::new(1);
    for (path, bytes) in files {
        env.place(path, bytes.clone());
    }
    env
}

/// Returns the content of a table: the numbers of the transactions, or the error of reading it.
fn rows(store: &Arc<Store>, table: TableId) -> Result<Vec<u32>> {
    let reader = begin(store);
    let mut scanner = reader.scan(table, Scan::all())?;
    let (mut batch, mut found) = (CellBatch::new(), Vec::new());
    while scanner.next_batch(100, &mut batch)? {
        for cell in batch.rows().flat_map(|row| row.cells()) {
            let number = std::str::from_utf8(cell.row).unwrap().parse().unwrap();
            assert_eq!(cell.value, format!("{}-{number}", table.0).as_bytes());
            found.push(number);
        }
    }
    Ok(found)
}

/// Permitted loss: commits that are covered only by bytes at the end of the log may be mistaken
/// for a torn tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    None,
    Tail,
}

/// Opens a damaged directory and checks the result. Returns whether it was opened.
fn check(what: &str, files: &Files, loss: Loss) -> bool {
    let env = env_of(files);
    let store = match open(&env) {
        Ok(store) => store,
        Err(Error::Corrupt { path, detail, .. }) => {
            assert!(path.starts_with("/data"), "{what}: {}: {detail}", path.display());
            assert!(files_of(&env) == *files, "{what}: a store that was not opened has changed it");
            return false;
        }
        Err(other) => panic!("{what}: {other}"),
    };
    let mut counts = Vec::new();
    for table in TABLES {
        match rows(&store, table) {
            Err(Error::Corrupt { .. }) => {}
            Err(other) => panic!("{what}: {other}"),
            Ok(found) => {
                let prefix: Vec<u32> = (1..=found.len() as u32).collect();
                assert_eq!(found, prefix, "{what}: table {}", table.0);
                counts.push(found.len() as u32);
            }
        }
    }
    assert!(counts.windows(2).all(|pair| pair[0] == pair[1]), "{what}: {counts:?}");
    let least = if loss == Loss::Tail { FLUSHED + 3 } else { COUNT };
    assert!(counts.iter().all(|count| *count >= least), "{what}: {counts:?}");
    true
}

/// Returns numbers below `end`: all, or those near `marks` and at the ends, and some between.
fn some(end: usize, marks: &[usize]) -> Vec<usize> {
    if std::env::var("BENNU_DAMAGE").is_ok_and(|value| value == "all") {
        return (0..end).collect();
    }
    let near = marks.iter().flat_map(|mark| mark.saturating_sub(1)..=mark + 1);
    let between = (0..end).step_by((end / 7).max(1));
    let mut some: Vec<usize> = near.chain(between).filter(|number| *number < end).collect();
    some.sort_unstable();
    some.dedup();
    some
}

fn kind(path: &Path) -> &str {
    path.extension().and_then(|name| name.to_str()).unwrap_or("manifest")
}

/// Returns the length of a file up to the last byte that is not zero.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

fn run(end: End, damage: impl Fn(&mut Files, &Path) -> Vec<(String, Files, Loss)>) {
    let whole = directory(end);
    assert!(check("nothing", &whole, Loss::None));
    let (mut opened, mut count) = (0, 0);
    for path in whole.keys() {
        for (what, files, loss) in damage(&mut whole.clone(), path) {
            let what = format!("{end:?}, {}, {what}", path.display());
            opened += u32::from(check(&what, &files, loss));
            count += 1;
        }
    }
    assert!(opened < count, "{end:?}: all of {count} cases were opened");
}

/// Returns the cases of one file: modified bytes, or no file.
fn cases(
    files: &Files,
    path: &Path,
    others: impl IntoIterator<Item = (String, Option<Vec<u8>>, Loss)>,
) -> Vec<(String, Files, Loss)> {
    let other = |(what, bytes, loss): (String, Option<Vec<u8>>, Loss)| {
        let mut files = files.clone();
        match bytes {
            Some(bytes) => drop(files.insert(path.to_owned(), bytes)),
            None => drop(files.remove(path)),
        }
        (what, files, loss)
    };
    others.into_iter().map(other).collect()
}

#[test]
fn truncated_or_missing_file_is_detected() {
    for end in [End::Stopped, End::Killed] {
        run(end, |files, path| {
            let bytes = files[path].clone();
            let marks = [12, 20, 36, 52, 113, used(&bytes), bytes.len() - 1];
            let cut = some(bytes.len(), &marks).into_iter().map(|length| {
                (format!("cut to {length}"), Some(bytes[..length].to_vec()), Loss::None)
            });
            let removed = std::iter::once(("removed".to_owned(), None, Loss::None));
            cases(files, path, cut.chain(removed))
        });
    }
}

#[test]
fn swapped_files_are_detected() {
    for end in [End::Stopped, End::Killed] {
        run(end, |files, path| {
            let siblings: Vec<PathBuf> = files.keys().cloned().collect();
            let is_sibling = |other: &PathBuf| kind(other) == kind(path) && *other != path;
            let mut exchanged = Vec::new();
            for other in siblings.into_iter().filter(is_sibling) {
                // A split has given both regions the same file.
                if files[&other] == files[path] {
                    continue;
                }
                let mut files = files.clone();
                let (first, second) = (files[path].clone(), files[&other].clone());
                files.insert(path.to_owned(), second);
                files.insert(other.clone(), first);
                exchanged.push((format!("is {}", other.display()), files, Loss::None));
            }
            exchanged
        });
    }
}

#[test]
fn changed_bytes_are_detected() {
    for end in [End::Stopped, End::Killed] {
        run(end, |files, path| {
            let bytes = files[path].clone();
            // After a kill the end of the last segment may be one that never reached the disk.
            let loss = match (end, kind(path)) {
                (End::Killed, "log") => Loss::Tail,
                _ => Loss::None,
            };
            let marks = [0, 8, 12, 20, 36, 44, 52, 113, used(&bytes), bytes.len() - 1];
            let flipped = some(bytes.len(), &marks).into_iter().map(|at| {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << (at % 8);
                (format!("bit flipped in {at}"), Some(bytes), loss)
            });
            let zeroed = some(bytes.len(), &marks).into_iter().map(|from| {
                let mut bytes = bytes.clone();
                let to = bytes.len().min(from + 64);
                bytes[from..to].fill(0);
                (format!("zeros from {from}"), Some(bytes), loss)
            });
            let all =
                [(0, "all zeros"), (bytes.len() / 2, "second half zeros")].map(|(from, what)| {
                    let mut bytes = bytes.clone();
                    bytes[from..].fill(0);
                    (what.to_owned(), Some(bytes), loss)
                });
            cases(files, path, flipped.chain(zeroed).chain(all))
        });
    }
}

/// Salvages a directory, which must not change; returns the content of each table of the copy.
fn salvaged(what: &str, files: &Files) -> (Salvaged, Vec<Vec<u32>>) {
    let env = env_of(files);
    let disk: Arc<dyn Env> = Arc::new(env.clone());
    let salvaged = salvage(&disk, Path::new("/data"), Path::new("/copy"))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut after = files_of(&env);
    after.retain(|path, _| path.starts_with("/data"));
    assert!(after == *files, "{what}: the damaged directory has changed");
    let store = open_copy(&env);
    let found: Vec<Vec<u32>> = TABLES.iter().map(|table| rows(&store, *table).unwrap()).collect();
    write(&store, COUNT + 1);
    drop(store);
    // Again, from the manifest that the first opening has written.
    let store = open_copy(&env);
    for (table, before) in TABLES.iter().zip(&found) {
        assert_eq!(rows(&store, *table).unwrap()[..before.len()], before[..], "{what}");
    }
    (salvaged, found)
}

#[test]
fn readable_data_is_salvaged() {
    let all: Vec<u32> = (1..=COUNT).collect();
    for end in [End::Stopped, End::Killed] {
        let whole = directory(end);
        let (nothing, found) = salvaged("nothing", &whole);
        assert_eq!((nothing.losses.as_slice(), found), (&[][..], vec![all.clone(); 3]));
        for (path, bytes) in &whole {
            let others = [
                ("removed", None),
                ("cut", Some(bytes[..bytes.len() / 2].to_vec())),
                ("zeros", Some(vec![0; bytes.len()])),
                ("zeros in it", {
                    let (mut bytes, used) = (bytes.clone(), used(bytes));
                    bytes[used / 2..(used / 2 + 16).min(used)].fill(0);
                    Some(bytes)
                }),
            ];
            for (how, bytes) in others {
                let what = format!("{end:?}, {}, {how}", path.display());
                let (_, files, _) =
                    cases(&whole, path, [(what.clone(), bytes, Loss::None)]).swap_remove(0);
                if path.ends_with("REGION") {
                    assert!(check(&what, &files, Loss::None), "{what}: nobody needs it");
                    continue;
                }
                let is_manifest = path.ends_with("MANIFEST");
                let (report, found) = salvaged(&what, &files);
                for found in found {
                    assert!(found.iter().all(|number| all.contains(number)), "{what}: {found:?}");
                    let is_lost = found.len() < all.len();
                    assert!(!is_lost || !report.losses.is_empty(), "{what}: a loss untold");
                    // The content of the manifest is known without it.
                    assert!(!is_lost || !is_manifest, "{what}: {found:?}, {report:?}");
                }
            }
        }
    }
}

/// Writes some rows to all tables, and flushes the first.
fn write_and_flush(store: &Arc<Store>, numbers: std::ops::RangeInclusive<u32>) {
    numbers.for_each(|number| write(store, number));
    store.flush(TABLES[0]).unwrap();
}

/// Returns the files of a directory in which the edits of `change` are missing from the end of
/// the manifest, and the files that it has removed still exist if `removes` is not set.
fn directory_with_older_manifest(removes: bool, change: impl Fn(&Arc<Store>)) -> Files {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    for id in TABLES {
        let families = vec![FamilyDescriptor::new("d")];
        store.create_table(TableDescriptor { id, families, ..descriptor(&[], 1) }).unwrap();
    }
    write_and_flush(&store, 1..=10);
    write_and_flush(&store, 11..=20);
    let before = files_of(&env);
    change(&store);
    (21..=COUNT).for_each(|number| write(&store, number));
    let mut files = files_of(&env.after_crash(Unsynced::Kept));
    let manifest = PathBuf::from("/data/MANIFEST");
    files.insert(manifest.clone(), before[&manifest].clone());
    if !removes {
        let kept = before.into_iter().filter(|(path, _)| path.starts_with("/data/regions"));
        files.extend(kept);
    }
    files
}

#[test]
fn files_missing_from_manifest_are_salvaged() {
    let all: Vec<u32> = (1..=COUNT).collect();
    type Change = fn(&Arc<Store>);
    let changes: [(&str, Change); 4] = [
        ("a flush", |store| write_and_flush(store, 21..=21)),
        ("a compaction", |store| store.compact(TABLES[0], true).unwrap()),
        ("a split", |store| {
            store.split_region(TABLES[0], SplitPoint::At(b"0010".to_vec())).unwrap();
        }),
        ("a split and a flush", |store| {
            store.split_region(TABLES[0], SplitPoint::At(b"0010".to_vec())).unwrap();
            write_and_flush(store, 21..=21);
        }),
    ];
    for (change, run) in changes {
        for removes in [true, false] {
            let what = format!("{change}, old files removed: {removes}");
            let (report, found) = salvaged(&what, &directory_with_older_manifest(removes, run));
            assert_eq!(found, vec![all.clone(); 3], "{what}: {report:?}");
        }
    }
}

#[test]
fn undescribed_region_is_reported_as_lost() {
    let mut files = directory(End::Stopped);
    let described = files.keys().rfind(|path| path.ends_with("REGION")).cloned().unwrap();
    files.retain(|path, _| !path.ends_with("MANIFEST") && *path != described);
    let (report, _) = salvaged("no description", &files);
    let is_told = |loss: &String| loss.starts_with("region ");
    assert!(report.losses.iter().any(is_told), "{report:?}");
}

#[test]
fn salvage_recovers_lost_file_from_log() {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    let families = vec![FamilyDescriptor::new("d"), FamilyDescriptor::new("e")];
    let of = |id| TableDescriptor { id, families: families.clone(), ..descriptor(&[], 1) };
    TABLES.into_iter().for_each(|id| store.create_table(of(id)).unwrap());
    let write = |row: &str| {
        let transaction = begin(&store);
        for table in TABLES {
            let put = Mutation::new(row).put(0, "q", "0".into()).put(1, "q", "1".into());
            transaction.mutate(table, vec![put]).unwrap();
        }
        transaction.commit().unwrap().durable.wait().unwrap();
    };
    // The other tables are not flushed, so that the log stays.
    for rows in [["a", "b"], ["c", "d"]] {
        rows.into_iter().for_each(write);
        store.flush(TABLES[0]).unwrap();
    }
    let files = files_of(&env.after_crash(Unsynced::Kept));
    let is_file = |path: &&PathBuf| kind(path) == "store";
    for lost in files.keys().filter(is_file).chain([&PathBuf::from("/data/MANIFEST")]) {
        let mut damaged = files.clone();
        damaged.insert(lost.clone(), vec![0; files[lost].len()]);
        let env = env_of(&damaged);
        let disk: Arc<dyn Env> = Arc::new(env.clone());
        salvage(&disk, Path::new("/data"), Path::new("/copy")).unwrap();
        let store = open_copy(&env);
        let reader = begin(&store);
        for table in TABLES {
            let mut scanner = reader.scan(table, Scan::all()).unwrap();
            let (mut batch, mut found) = (CellBatch::new(), Vec::new());
            while scanner.next_batch(100, &mut batch).unwrap() {
                for cell in batch.rows().flat_map(|row| row.cells()) {
                    found.push(format!("{}{}", String::from_utf8_lossy(cell.row), cell.family));
                }
            }
            let all = ["a0", "a1", "b0", "b1", "c0", "c1", "d0", "d1"];
            assert_eq!(found, all, "{}: table {}", lost.display(), table.0);
        }
    }
}
