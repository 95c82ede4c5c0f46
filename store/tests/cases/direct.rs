//! Tests of autocommit calls without a transaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use store::descriptor::{Durability, TableDescriptor};
use store::env::fault::FaultEnv;
use store::layout::SectionKind;
use store::scan::Filter;
use store::transaction::{LockMode, LockWait};
use store::{
    CellBatch, Column, Error, Get, Mutation, PutBatch, SectionSelection, Store, TableId, Timestamp,
};

use crate::cases::{TABLE, begin, columnar_family, descriptor, open, put, value};

fn get(store: &Store, row: &str) -> Option<String> {
    let mut out = CellBatch::new();
    let found = store.get(TABLE, &Get::new(row), &mut out).unwrap();
    assert_eq!(found, !out.is_empty());
    value(&out)
}

#[test]
fn direct_get_sees_committed_rows() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    put(&store, "a", "1");
    put(&store, "z", "2");
    assert_eq!(get(&store, "a").as_deref(), Some("1"));
    store.flush(TABLE).unwrap();
    put(&store, "a", "3");
    let open = begin(&store);
    open.mutate(TABLE, vec![Mutation::new(*b"a").put(0, "q", b"4".into())]).unwrap();
    assert_eq!(get(&store, "a").as_deref(), Some("3"), "what is staged is not committed");
    assert_eq!(get(&store, "z").as_deref(), Some("2"));
    assert_eq!(get(&store, "zz"), None);
    drop(open);
    let delete = begin(&store);
    delete.mutate(TABLE, vec![Mutation::new(*b"z").delete_row()]).unwrap();
    delete.commit().unwrap().durable.wait().unwrap();
    assert_eq!(get(&store, "z"), None);
}

fn column(row: &str) -> Column<'_> {
    Column { row: row.as_bytes(), family: 0, qualifier: b"q" }
}

fn batch(puts: &[(&str, &str)]) -> PutBatch {
    let mut batch = PutBatch::new();
    for (row, value) in puts {
        batch.put(column(row), Timestamp::LATEST, value.as_bytes());
    }
    batch
}

#[test]
fn put_batch_commits_atomically_across_regions() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["m"], 1)).unwrap();
    let commit = store.put(TABLE, batch(&[("z", "1"), ("a", "2"), ("z", "3")]), None).unwrap();
    commit.durable.wait().unwrap();
    assert_eq!(get(&store, "z").as_deref(), Some("3"), "the later put counts");
    assert_eq!(get(&store, "a").as_deref(), Some("2"));
    let mut old = PutBatch::with_capacity(100);
    old.put(column("a"), Timestamp(5), b"old");
    store.put(TABLE, old, Some(Durability::SkipWal)).unwrap();
    assert_eq!(get(&store, "a").as_deref(), Some("2"), "a version of long ago is not the newest");
    let rows: u64 =
        store.regions(TABLE).unwrap().iter().map(|region| region.load.rows_written).sum();
    assert_eq!(rows, 3);
    let nothing = store.put(TABLE, PutBatch::new(), None).unwrap();
    assert_eq!(nothing.sequence, None);
}

#[test]
fn direct_put_waits_for_row_lock() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    put(&store, "n", "1");
    for many in [&["n"][..], &["other", "n"]] {
        let holder = begin(&store);
        holder.lock_row(TABLE, b"n", LockMode::Exclusive, LockWait::Wait).unwrap();
        let puts: Vec<(&str, &str)> = many.iter().map(|row| (*row, "blind")).collect();
        std::thread::scope(|scope| {
            let blind = scope.spawn(|| store.put(TABLE, batch(&puts), None).unwrap().sequence);
            let held = holder.mutate(TABLE, vec![Mutation::new(*b"n").put(0, "q", b"2".into())]);
            held.unwrap();
            let first = holder.commit().unwrap();
            first.durable.wait().unwrap();
            assert!(
                blind.join().unwrap() > first.sequence,
                "the put came before the lock was free"
            );
        });
        store.wait_for_commits().unwrap();
        assert_eq!(get(&store, "n").as_deref(), Some("blind"));
    }
}

#[test]
fn increments_and_blind_puts_are_not_lost() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    put(&store, "n", "0");
    // Each put adds 1000 to the count below it; an increment that read before the put and wrote
    // after it would undo that.
    std::thread::scope(|scope| {
        let counter = scope.spawn(|| {
            for _ in 0..500 {
                let transaction = begin(&store);
                transaction.lock_row(TABLE, b"n", LockMode::Exclusive, LockWait::Wait).unwrap();
                let mut out = CellBatch::new();
                transaction.get_locked(TABLE, &Get::new("n"), &mut out).unwrap();
                let count: u64 = value(&out).unwrap().parse().unwrap();
                let next = (count + 1).to_string().into_bytes();
                let mutation = Mutation::new(*b"n").put(0, "q", next);
                transaction.mutate(TABLE, vec![mutation]).unwrap();
                transaction.commit().unwrap();
            }
        });
        for thousands in 1..=50 {
            let now = (thousands * 1000).to_string();
            store.put(TABLE, batch(&[("n", &now)]), None).unwrap();
        }
        counter.join().unwrap();
    });
    store.wait_for_commits().unwrap();
    let count: u64 = get(&store, "n").unwrap().parse().unwrap();
    assert!((50_000..=50_500).contains(&count), "{count}");
}

#[test]
fn unread_sections_of_columnar_values_may_be_omitted() {
    let store = open(&FaultEnv::new(1)).unwrap();
    let family = columnar_family();
    let sections = family.value_layout.sections.clone();
    let families = vec![family];
    store.create_table(TableDescriptor { families, ..descriptor(&[], 1) }).unwrap();
    put(&store, "a", "first");
    let wanting = |wanted: &[u16], filter: Option<Filter>| {
        let wanted = SectionSelection::new(0, &sections, wanted.iter().copied());
        let mut get = Get { filter, ..Get::new("a") };
        get.sections = Some(vec![Arc::new(wanted)].into());
        let mut out = CellBatch::new();
        assert!(begin(&store).get(TABLE, &get, &mut out).unwrap());
        value(&out).unwrap()
    };
    assert_eq!(wanting(&[0], None), "first", "a memstore has whole values");
    store.flush(TABLE).unwrap();
    assert_eq!(wanting(&[0], None), "f");
    assert_eq!(wanting(&[1], None), "\0irst");
    assert_eq!(wanting(&[0, 1], None), "first");
    let all = Filter::All(Vec::new());
    assert_eq!(wanting(&[0], Some(all)), "first", "a filter sees whole values");
    // A selection for another layout has no effect.
    let other = SectionSelection::new(0, &[SectionKind::Fixed(4)], [0]);
    let get = Get { sections: Some(vec![Arc::new(other)].into()), ..Get::new("a") };
    let mut out = CellBatch::new();
    begin(&store).get(TABLE, &get, &mut out).unwrap();
    assert_eq!(value(&out).as_deref(), Some("first"));
}

#[test]
fn missing_table_or_family_is_error() {
    let store = open(&FaultEnv::new(1)).unwrap();
    let mut out = CellBatch::new();
    let missing = store.get(TableId(9), &Get::new("a"), &mut out);
    assert!(matches!(missing, Err(Error::NoSuchTable(TableId(9)))));
    store.create_table(descriptor(&[], 1)).unwrap();
    let mut wrong = PutBatch::new();
    wrong.put(Column { family: 3, ..column("a") }, Timestamp::LATEST, b"v");
    assert!(matches!(store.put(TABLE, wrong, None), Err(Error::InvalidRequest(_))));
    let long = "x".repeat(40_000);
    let long = store.put(TABLE, batch(&[(&long, "v")]), None);
    assert!(matches!(long, Err(Error::KeyTooLong { bytes: 40_000, .. })));
    let family = Get { families: Some(vec![3]), ..Get::new("a") };
    assert!(matches!(store.get(TABLE, &family, &mut out), Err(Error::InvalidRequest(_))));
    assert!(out.is_empty());
    store.shut_down().unwrap();
    assert!(matches!(store.get(TABLE, &Get::new("a"), &mut out), Err(Error::ShutDown)));
}

#[test]
fn counter_is_monotonic_across_flushes() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    put(&store, "n", "000");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = String::new();
            while !done.load(Ordering::Acquire) {
                let now = get(&store, "n").expect("the row is always there");
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
        });
        for count in 1..200 {
            put(&store, "n", &format!("{count:03}"));
            match count % 10 {
                0 => store.flush(TABLE).unwrap(),
                5 => store.compact(TABLE, count % 20 == 5).unwrap(),
                _ => {}
            }
        }
        done.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    assert_eq!(get(&store, "n").as_deref(), Some("199"));
}
