//! ALTER TABLE … SET (split_policy, max_filesize): transactional, and applied to the store at
//! commit.

use sql::EngineOptions;
use sql::catalog::name::ObjectName;
use store::descriptor::{SplitOptions, SplitPolicy};

use crate::server::Server;

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
    let busy = SplitOptions { policy: SplitPolicy::Busy, max_file_bytes: 1_000_000 };
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
        store.alter_table(store::TableDescriptor { split, ..known.as_ref().clone() }).unwrap();
    }
    assert_ne!(splits(&server), after);
    server.restart();
    assert_eq!(splits(&server), after);
}
