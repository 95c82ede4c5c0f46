//! Tests of a damaged store file that cannot be opened: the rest of the store works, operations
//! that need the file return its name, and nothing is lost once it is restored. If the file is
//! missing, or replaced by another one, nothing is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use store::env::Env;
use store::env::fault::FaultEnv;
use store::transaction::TransactionOptions;
use store::{
    Error, FamilyDescriptor, Get, Mutation, Result, Scan, Store, TableDescriptor, TableId,
};

use crate::cases::{TABLE, begin, descriptor, open, scan};

const OTHER: TableId = TableId(2);

/// Puts a value into a family.
fn put(store: &Arc<Store>, table: TableId, (row, family): (&str, u8), value: &str) -> Result<()> {
    let transaction = store.begin(TransactionOptions::default());
    let mutation = Mutation::new(row).put(family, "q", value.into());
    transaction.mutate(table, vec![mutation])?;
    transaction.commit()?.durable.wait()
}

/// Two regions, two families, rows in files and in the log; and another table.
fn filled(env: &FaultEnv) {
    let store = open(env).unwrap();
    let families = vec![FamilyDescriptor::new("d"), FamilyDescriptor::new("e")];
    let table = TableDescriptor { families, ..descriptor(&["m"], 2) };
    store.create_table(table.clone()).unwrap();
    store.create_table(TableDescriptor { id: OTHER, name: "other".into(), ..table }).unwrap();
    for table in [TABLE, OTHER] {
        for (place, value) in [(("a", 0), "1"), (("a", 1), "2"), (("z", 0), "3")] {
            put(&store, table, place, value).unwrap();
        }
        store.flush_table(table).unwrap();
        put(&store, table, ("b", 0), "in the log").unwrap();
    }
}

/// Returns the file of family 0 of the first region of the table.
fn victim(env: &FaultEnv) -> PathBuf {
    let store = open(env).unwrap();
    let region = store.regions(TABLE).unwrap()[0].region.0;
    let prefix = format!("/data/regions/{region}/0/");
    let mut paths = env.paths();
    paths.retain(|path| path.starts_with(&prefix));
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths.swap_remove(0)
}

fn names<T>(done: Result<T>, path: &Path) {
    match done {
        Err(Error::Corrupt { path: named, .. }) => assert_eq!(named, path),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{} is not needed", path.display()),
    }
}

fn get(store: &Arc<Store>, get: &Get) -> Result<bool> {
    let mut row = store::CellBatch::new();
    let found = begin(store).get(TABLE, get, &mut row);
    assert_eq!(store.get(TABLE, get, &mut row).is_ok(), found.is_ok());
    found
}

/// Checks that all operations that need the file report it, and that all others work.
fn check_damaged(store: &Arc<Store>, path: &Path) {
    names(scan(&begin(store)), path);
    names(get(store, &Get::new("a")), path);
    names(get(store, &Get::new("a").column(0, "q")), path);
    assert!(get(store, &Get::new("a").family(1)).unwrap(), "the other family");
    assert!(get(store, &Get::new("z")).unwrap(), "the other region");
    names(put(store, TABLE, ("a", 0), "x"), path);
    names(put(store, TABLE, ("a", 1), "x"), path);
    put(store, TABLE, ("z", 0), "3").unwrap();
    names(store.compact_table(TABLE, true), path);
    names(store.compact_table(TABLE, false), path);
    names(store.checkpoint(Path::new("/copy")), path);
    // Cells that are only in the log may be flushed.
    store.flush_table(TABLE).unwrap();
    names(scan(&begin(store)), path);
    let regions = store.regions(TABLE).unwrap();
    let damage = regions[0].damage.as_deref().unwrap();
    assert!(damage.contains(&path.display().to_string()), "{damage}");
    assert_eq!((&regions[1].damage, store.status().damaged_regions), (&None, 1));
    // The other table is not affected.
    put(store, OTHER, ("c", 0), "new").unwrap();
    store.flush_table(OTHER).unwrap();
    store.compact_table(OTHER, true).unwrap();
    let mut rows = store::CellBatch::new();
    let reader = begin(store);
    let mut scanner = reader.scan(OTHER, Scan::all()).unwrap();
    assert!(scanner.next_batch(100, &mut rows).unwrap());
    assert_eq!(rows.row_count(), 4);
}

/// Modifies the bytes of a file.
type Damaging = fn(&[u8]) -> Vec<u8>;

fn flipped(bytes: &[u8], from_end: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = bytes.len() - from_end;
    bytes[at] ^= 4;
    bytes
}

#[test]
fn unopenable_file_affects_only_its_region() {
    let damages: [Damaging; 4] = [
        |bytes| bytes[..bytes.len() - 20].to_vec(),
        |_| Vec::new(),
        // The trailer; the properties, which precede it.
        |bytes| flipped(bytes, 30),
        |bytes| flipped(bytes, 60),
    ];
    for damage in damages {
        let env = FaultEnv::new(1);
        filled(&env);
        let path = victim(&env);
        let whole = env.bytes(&path).unwrap();
        env.place(&path, damage(&whole));
        let store = open(&env).unwrap();
        check_damaged(&store, &path);
        drop(store);
        // Again, with the cells flushed meanwhile; then with the file restored.
        let store = open(&env).unwrap();
        names(scan(&begin(&store)), &path);
        drop(store);
        env.place(&path, whole);
        let store = open(&env).unwrap();
        assert_eq!(store.status().damaged_regions, 0);
        let rows = || scan(&begin(&store)).unwrap();
        let of = |row: &str, value: &str| (row.to_owned(), value.to_owned());
        let expected = [of("a", "1"), of("a", "2"), of("b", "in the log"), of("z", "3")];
        assert_eq!(rows(), expected);
        put(&store, TABLE, ("a", 0), "4").unwrap();
        store.compact_table(TABLE, true).unwrap();
        assert_eq!(rows()[0], of("a", "4"));
    }
}

#[test]
fn missing_file_fails_open_and_removes_nothing() {
    let env = FaultEnv::new(1);
    filled(&env);
    let path = victim(&env);
    let whole = env.bytes(&path).unwrap();
    let other = env
        .paths()
        .into_iter()
        .find(|other| other.extension().is_some_and(|name| name == "store") && *other != path);
    for instead in [None, env.bytes(&other.unwrap())] {
        match instead {
            None => env.remove(&path).unwrap(),
            Some(bytes) => env.place(&path, bytes),
        }
        let before = env.paths();
        for _ in 0..2 {
            names(open(&env), &path);
            assert_eq!(env.paths(), before);
        }
        env.place(&path, whole.clone());
    }
    let store = open(&env).unwrap();
    assert_eq!(store.status().damaged_regions, 0);
    assert_eq!(scan(&begin(&store)).unwrap().len(), 4);
}

#[test]
fn table_with_corrupt_file_can_be_dropped() {
    let env = FaultEnv::new(1);
    filled(&env);
    let path = victim(&env);
    env.place(&path, b"not a store file".to_vec());
    let store = open(&env).unwrap();
    store.drop_table(TABLE).unwrap();
    assert_eq!(store.status().damaged_regions, 0);
    store.checkpoint(Path::new("/copy")).unwrap();
    drop(store);
    assert_eq!(open(&env).unwrap().tables().len(), 1);
    assert_eq!(env.bytes(&path), None);
}
