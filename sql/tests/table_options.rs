//! ALTER TABLE … SET (…): transactional, applied to the store at commit, also if the server crashes
//! in between.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::path::Path;
use std::sync::Arc;

use sql::catalog::name::ObjectName;
use sql::engine::Engine;
use sql::session::{Session, SessionOptions};
use sql::{EngineOptions, Error};
use store::descriptor::{Compression, SplitOptions, SplitPolicy};
use store::env::fault::{FaultEnv, Unsynced};
use store::{Options, Store, TableDescriptor};

use crate::server::{Server, answer};

/// Returns the split options of the table's and the index's store tables.
fn splits(server: &Server) -> [SplitOptions; 2] {
    let engine = server.engine();
    let table = engine
        .catalog()
        .table_named(&ObjectName::public("t"))
        .cloned()
        .expect("the table is there");
    let ids = [table.id, table.indexes[0].spec.store_table];
    let known = engine.store().tables();
    ids.map(|id| {
        let found = known.iter().find(|known| known.id == id);
        found.expect("it is in the store").split.clone()
    })
}

#[test]
fn split_options_change_at_commit() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (id int PRIMARY KEY, a int); CREATE INDEX t_a ON t (a)");
    let default = SplitOptions::default();
    assert_eq!(splits(&server), [default.clone(), default.clone()]);
    let set = "ALTER TABLE t SET (split_policy = 'busy', max_filesize = 1000000)";
    let busy = SplitOptions {
        policy: SplitPolicy::Busy,
        max_file_bytes: 1_000_000,
        ..SplitOptions::default()
    };
    server.run("a", &format!("BEGIN; {set}; ROLLBACK"));
    assert_eq!(splits(&server), [default.clone(), default.clone()]);
    assert_eq!(
        server.run("a", &format!("BEGIN; SAVEPOINT p; {set}; ROLLBACK TO p; COMMIT")),
        "ok\n"
    );
    assert_eq!(splits(&server), [default.clone(), default.clone()]);
    assert_eq!(server.run("a", &format!("BEGIN; {set}")), "ok\n");
    assert_eq!(splits(&server), [default.clone(), default.clone()], "it is not committed");
    assert_eq!(server.run("a", "COMMIT"), "ok\n");
    assert_eq!(splits(&server), [busy.clone(), busy.clone()]);
    server.restart();
    assert_eq!(splits(&server), [busy.clone(), busy.clone()]);
    // A new index gets them, too.
    server.run("a", "DROP INDEX t_a; CREATE INDEX t_a2 ON t (a)");
    assert_eq!(splits(&server), [busy.clone(), busy.clone()]);
    assert_eq!(server.run("a", "ALTER TABLE t RESET (split_policy)"), "ok\n");
    let policy = SplitOptions { policy: default.policy.clone(), ..busy };
    assert_eq!(splits(&server), [policy.clone(), policy]);
}

#[test]
fn split_options_reach_store_after_crash() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (id int PRIMARY KEY, a int); CREATE INDEX t_a ON t (a)");
    server.run("a", "ALTER TABLE t SET (split_policy = 'disabled')");
    let after = splits(&server);
    // Simulates a crash right after the commit.
    let store = server.engine().store();
    for known in store.tables().iter().filter(|known| known.split == after[0]) {
        let split = SplitOptions::default();
        store.alter_table(TableDescriptor { split, ..known.as_ref().clone() }).unwrap();
    }
    assert_ne!(splits(&server), after);
    server.restart();
    assert_eq!(splits(&server), after);
}

const SET_OPTIONS: &str = "ALTER TABLE t SET (compression = 'zstd', memstore_flushsize = '1MB', \
                           region_replication = 2, durability = 'async_wal', versions = 3)";

fn open(env: &FaultEnv) -> Result<Arc<Engine>, Error> {
    let options = Options { env: Arc::new(env.clone()), ..Options::default() };
    Engine::open(Store::open(Path::new("/data"), options)?, EngineOptions::default())
}

fn run(engine: &Arc<Engine>, text: &str) -> String {
    answer(&mut Session::open(engine, SessionOptions { user: "ann".to_owned() }), text)
}

/// Checks that the store has the descriptors of the catalog; returns whether they are the changed
/// ones.
fn is_changed(engine: &Arc<Engine>) -> bool {
    let catalog = engine.catalog();
    let table = catalog.table_named(&ObjectName::public("t")).expect("the table is there");
    let record = catalog.record(table.oid).expect("it has a record");
    let known = engine.store().tables();
    let indexes = record.indexes.iter().map(|index| &index.descriptor);
    for wanted in std::iter::once(&record.descriptor).chain(indexes) {
        let found = known.iter().find(|known| known.id == wanted.id).expect("it is in the store");
        let mut found = TableDescriptor::clone(found);
        found.families.iter_mut().for_each(|family| family.retired.clear());
        assert_eq!(&found, &**wanted);
    }
    record.descriptor.families[0].compression == Compression::Zstd
}

/// Crashes after each number of disk operations of the statement.
#[test]
fn options_of_catalog_and_store_agree_after_crash() {
    let mut seen = [false; 2];
    for step in 0.. {
        let env = FaultEnv::new(step);
        let engine = open(&env).unwrap();
        let fill = "CREATE TABLE t (id int PRIMARY KEY, a int); CREATE INDEX t_a ON t (a); \
                    INSERT INTO t VALUES (1, 1)";
        assert_eq!(run(&engine, fill), "ok\n");
        env.fail_after(step);
        let done = run(&engine, SET_OPTIONS) == "ok\n";
        let written = run(&engine, "INSERT INTO t VALUES (2, 2)") == "ok\n";
        drop(engine);
        for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept] {
            let engine = open(&env.after_crash(unsynced)).unwrap();
            let changed = is_changed(&engine);
            assert!(!done || changed, "step {step}: an acknowledged change is lost");
            seen[usize::from(changed)] = true;
        }
        if done && written {
            break;
        }
        assert!(step < 500, "there is no end to it");
    }
    assert_eq!(seen, [true, true], "both states were found");
}

/// SKIP_WAL rows are lost by a crash until the durability is raised, which flushes them.
#[test]
fn logged_durability_saves_unlogged_rows() {
    for raised in [false, true] {
        let env = FaultEnv::new(7);
        let engine = open(&env).unwrap();
        let create = "CREATE TABLE t (id int PRIMARY KEY) WITH (durability = 'skip_wal')";
        assert_eq!(run(&engine, create), "ok\n");
        assert_eq!(run(&engine, "INSERT INTO t VALUES (1)"), "ok\n");
        if raised {
            assert_eq!(run(&engine, "ALTER TABLE t RESET (durability)"), "ok\n");
        }
        env.crash();
        drop(engine);
        let engine = open(&env.after_crash(Unsynced::Lost)).unwrap();
        let count = if raised { "1\n" } else { "0\n" };
        assert_eq!(run(&engine, "SELECT count(*) FROM t"), count);
    }
}

/// Files that are written after the change have the new form, and all rows stay readable.
#[test]
fn new_files_have_changed_options() {
    let mut server = Server::start(EngineOptions::default);
    server.run(
        "a",
        "CREATE TABLE t (id int PRIMARY KEY, a int, b text) WITH (data_block_encoding = 'row')",
    );
    server
        .run("a", "INSERT INTO t SELECT n, n % 5, repeat('x', 50) FROM generate_series(1, 3000) n");
    server.run("a", "ALTER TABLE t ADD COLUMN c int DEFAULT 9");
    server.run("a", "FLUSH t");
    let sizes = |server: &mut Server| -> Vec<u64> {
        let store = server.engine().store();
        let table = server.engine().catalog().table_named(&ObjectName::public("t")).unwrap().id;
        store.regions(table).unwrap().iter().map(|region| region.file_bytes).collect()
    };
    let sum = "SELECT count(*), sum(id), sum(a), sum(c), count(DISTINCT b) FROM t";
    let before = sizes(&mut server);
    let expected = server.run("a", sum);
    for (options, is_smaller) in [
        ("compression = 'none', bloomfilter = 'none'", false),
        ("compression = 'zstd', data_block_encoding = 'columnar', bloomfilter = 'rowcol'", true),
        (
            "data_block_encoding = 'row', blocksize = 4096, blockcache = false, compression = 'none'",
            false,
        ),
    ] {
        assert_eq!(server.run("a", &format!("ALTER TABLE t SET ({options})")), "ok\n");
        assert_eq!(server.run("a", sum), expected, "{options}");
        assert_eq!(server.run("a", "MAJOR COMPACT t"), "ok\n");
        assert_eq!(sizes(&mut server) < before, is_smaller, "{options}");
        assert_eq!(server.run("a", sum), expected, "{options}");
    }
    server.restart();
    assert_eq!(server.run("a", sum), expected);
}

/// Each compaction policy takes the files of any other over.
#[test]
fn compaction_policy_changes_under_load() {
    let mut server = Server::start(EngineOptions::default);
    server.run("a", "CREATE TABLE t (id int PRIMARY KEY, a int) WITH (ttl = '10 days')");
    let mut rows = 0;
    for policy in
        ["leveled", "exploring", "date_tiered", "fifo", "leveled", "date_tiered", "exploring"]
    {
        let set = format!(
            "ALTER TABLE t SET (compaction = '{policy}', major_compaction_period = '1 day')"
        );
        assert_eq!(server.run("a", &set), "ok\n");
        for _ in 0..5 {
            let fill = format!(
                "INSERT INTO t SELECT n, 1 FROM generate_series({rows}, {rows} + 99) n; FLUSH t"
            );
            assert_eq!(server.run("a", &fill), "ok\n");
            rows += 100;
        }
        assert_eq!(server.run("a", "COMPACT t"), "ok\n");
        assert_eq!(
            server.run("a", "SELECT count(*), sum(a) FROM t"),
            format!("{rows}|{rows}\n"),
            "{policy}"
        );
    }
}
