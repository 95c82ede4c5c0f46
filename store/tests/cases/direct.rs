//! Single calls without a transaction.

use std::sync::atomic::{AtomicBool, Ordering};

use store::env::fault::FaultEnv;
use store::{CellBatch, Error, Get, Mutation, Store, TableId};

use crate::cases::{TABLE, begin, descriptor, open, put, value};

fn get(store: &Store, row: &str) -> Option<String> {
    let mut out = CellBatch::new();
    let found = store.get(TABLE, &Get::new(row), &mut out).unwrap();
    assert_eq!(found, !out.is_empty());
    value(&out)
}

#[test]
fn a_get_sees_what_is_committed() {
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

#[test]
fn what_is_not_there_is_an_error() {
    let store = open(&FaultEnv::new(1)).unwrap();
    let mut out = CellBatch::new();
    let missing = store.get(TableId(9), &Get::new("a"), &mut out);
    assert!(matches!(missing, Err(Error::NoSuchTable(TableId(9)))));
    store.create_table(descriptor(&[], 1)).unwrap();
    let family = Get { families: Some(vec![3]), ..Get::new("a") };
    assert!(matches!(store.get(TABLE, &family, &mut out), Err(Error::InvalidRequest(_))));
    assert!(out.is_empty());
    store.shut_down().unwrap();
    assert!(matches!(store.get(TABLE, &Get::new("a"), &mut out), Err(Error::ShutDown)));
}

#[test]
fn a_counter_never_goes_back_while_memstores_turn_into_files() {
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
