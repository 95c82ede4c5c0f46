//! Crashes at every write: acknowledged commits are complete, others complete or absent.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::env::fault::{FaultEnv, Unsynced};
use store::{Mutation, Result, Store};

use crate::cases::{TABLE, begin, descriptor, open, scan};

/// Writes the number of the commit to two rows in two regions.
fn commit(store: &Arc<Store>, number: u64) -> Result<()> {
    let transaction = begin(store);
    let cell = |row: String| Mutation::new(row).put(0, "q", number.to_string().into());
    let batch = vec![cell(format!("a{:02}", number % 7)), cell(format!("z{:02}", number % 7))];
    transaction.mutate(TABLE, batch)?;
    transaction.commit()?.durable.wait()
}

/// Commits until the environment fails; returns the number of acknowledged commits.
fn work(env: &FaultEnv) -> Result<u64> {
    let mut acknowledged = 0;
    let mut run = || -> Result<()> {
        let store = open(env)?;
        if store.tables().is_empty() {
            store.create_table(descriptor(&["m"], 1))?;
        }
        for number in 1..40 {
            commit(&store, number)?;
            acknowledged = number;
            if number % 9 == 0 {
                store.flush_table(TABLE)?;
            }
            if number % 25 == 0 {
                store.compact_table(TABLE, true)?;
            }
        }
        store.shut_down()
    };
    run().map(|()| acknowledged).or(Ok(acknowledged))
}

#[test]
fn acknowledged_commits_survive_crash_at_any_write() {
    let calm = FaultEnv::new(1);
    assert_eq!(work(&calm).unwrap(), 39);
    let operations = calm.operation_count();
    for failing in 0..operations {
        let env = FaultEnv::new(failing);
        env.fail_after(failing);
        let acknowledged = work(&env).unwrap();
        let unsynced = [Unsynced::Lost, Unsynced::Torn, Unsynced::Holed][failing as usize % 3];
        let after = env.after_crash(unsynced);
        let store = open(&after).unwrap_or_else(|error| panic!("failing at {failing}: {error}"));
        if store.tables().is_empty() {
            assert_eq!(acknowledged, 0);
            continue;
        }
        let rows: BTreeMap<String, String> = scan(&begin(&store)).unwrap().into_iter().collect();
        check(&rows, acknowledged, failing);
        // And it continues from there.
        commit(&store, 100).unwrap();
        store.flush_table(TABLE).unwrap();
        assert_eq!(scan(&begin(&store)).unwrap().iter().filter(|(_, v)| v == "100").count(), 2);
    }
}

fn check(rows: &BTreeMap<String, String>, acknowledged: u64, failing: u64) {
    let at_least = expected(acknowledged);
    let at_most = expected(acknowledged + 1);
    assert!(
        *rows == at_least || *rows == at_most,
        "failing at {failing}, acknowledged {acknowledged}: {rows:?}"
    );
}

fn expected(commits: u64) -> BTreeMap<String, String> {
    let mut rows = BTreeMap::new();
    for number in 1..=commits {
        rows.insert(format!("a{:02}", number % 7), number.to_string());
        rows.insert(format!("z{:02}", number % 7), number.to_string());
    }
    rows
}
