//! User-defined types across a restart: columns that use them, also after a type was dropped.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::any::Any;
use std::path::Path;
use std::sync::{Arc, Weak};

use sql::EngineOptions;
use sql::catalog::user_type::UserType;
use sql::engine::Engine;
use sql::session::{Session, SessionOptions};
use store::env::fault::{FaultEnv, Unsynced};
use store::{Options, Store};

use crate::server::rows;

fn open(env: &FaultEnv) -> Arc<Engine> {
    let options = Options { env: Arc::new(env.clone()), ..Options::default() };
    let store = Store::open(Path::new("/data"), options).unwrap();
    Engine::open(store, EngineOptions::default()).unwrap()
}

fn run(engine: &Arc<Engine>, sql: &str) -> Vec<String> {
    let mut session = Session::open(engine, SessionOptions { user: "ann".to_owned() });
    let mut found = Vec::new();
    rows(&mut session, sql, &mut |row| found.push(row)).unwrap();
    found
}

#[test]
fn user_defined_types_survive_restart() {
    let env = FaultEnv::new(1);
    let engine = open(&env);
    run(
        &engine,
        "CREATE SCHEMA s; CREATE TYPE s.mood AS ENUM ('sad', 'ok');
         CREATE DOMAIN good AS s.mood CHECK (value > 'sad') DEFAULT 'ok';
         CREATE DOMAIN best AS good NOT NULL;
         CREATE TABLE t (id int PRIMARY KEY, a s.mood DEFAULT 'sad', b good, c best, d text, e s.mood[]);
         CREATE VIEW v AS SELECT id, a, b FROM t WHERE a = 'sad';
         INSERT INTO t VALUES (1, DEFAULT, DEFAULT, DEFAULT, 'd', '{ok}');
         ALTER TYPE s.mood RENAME VALUE 'sad' TO 'blue'; ALTER TYPE s.mood SET SCHEMA public",
    );
    drop(engine);
    let engine = open(&env.after_crash(Unsynced::Lost));
    assert_eq!(run(&engine, "SELECT * FROM v"), ["1|blue|ok"]);
    run(&engine, "INSERT INTO t (id) VALUES (2)");
    run(&engine, "DROP TYPE mood CASCADE");
    assert_eq!(run(&engine, "SELECT * FROM t ORDER BY id"), ["1|d", "2|NULL"]);
    let env = FaultEnv::new(2);
    let again = open(&env);
    run(
        &again,
        "CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN d AS mood;
         CREATE TABLE t (id int PRIMARY KEY, a mood, b d, c mood[], x text);
         INSERT INTO t VALUES (1, 'sad', 'sad', '{sad}', 'x'); DROP TYPE mood CASCADE",
    );
    drop(again);
    let again = open(&env.after_crash(Unsynced::Lost));
    assert_eq!(run(&again, "SELECT * FROM t"), ["1|x"]);
    run(&again, "ALTER TABLE t ADD y int DEFAULT 7; INSERT INTO t VALUES (2, 'z')");
    assert_eq!(run(&again, "SELECT * FROM t ORDER BY id"), ["1|x|7", "2|z|7"]);
}

#[test]
fn alter_table_leaves_independent_tables_and_row_types_alone() {
    let engine = open(&FaultEnv::new(3));
    for number in 0..8 {
        run(
            &engine,
            &format!("CREATE TABLE t{number} (id serial PRIMARY KEY, c text DEFAULT 'x'::varchar)"),
        );
    }
    run(
        &engine,
        "CREATE VIEW v AS SELECT CAST(NULL AS t0) AS r; CREATE VIEW w AS SELECT * FROM v;
         CREATE FUNCTION f(one t0) RETURNS int LANGUAGE sql AS 'SELECT one.id'",
    );
    let before = engine.catalog();
    run(
        &engine,
        "ALTER TABLE t1 ADD d int; ALTER TABLE t1 RENAME TO t; ALTER TABLE t DROP c; DROP TABLE t2;
         ALTER TABLE t0 ADD d int",
    );
    let after = engine.catalog();
    let changed: Vec<&str> = (before.tables_by_age())
        .filter(|one| !after.table(one.oid).is_some_and(|after| Arc::ptr_eq(one, after)))
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(changed, ["t0", "t1", "t2"]);
    let made = after.tables_by_age().filter(|one| one.row_type.is_made());
    assert_eq!(made.map(|one| one.name.as_str()).collect::<Vec<_>>(), ["t0"]);
    assert_eq!(run(&engine, "SELECT f(ROW(7, 'a', 8)), pg_typeof(r) FROM w"), ["7|t0"]);
    assert_eq!(run(&engine, "SELECT count(*) FROM pg_type WHERE typname ~ '^t[0-9]*$'"), ["7"]);
    let used = after.possible_type_users(before.tables_by_age().next().unwrap().oid);
    assert_eq!(used.len(), 3, "{used:?}");
    run(&engine, "ALTER SEQUENCE t3_id_seq RENAME TO s; CREATE VIEW u AS SELECT nextval('s')");
    assert_eq!(run(&engine, "INSERT INTO t3 DEFAULT VALUES RETURNING id"), ["1"]);
    let after = engine.catalog();
    let users = after.sequences().map(|one| after.possible_sequence_users(one.oid).len());
    assert_eq!(users.collect::<Vec<_>>(), [1, 1, 2, 1, 1, 1, 1]);
}

/// Returns the user-defined types and row types of an engine's catalog, by name.
fn types(engine: &Engine) -> Vec<(String, Weak<dyn Any + Send + Sync>)> {
    let catalog = engine.catalog();
    let types = catalog.types_and_row_types().into_iter();
    // The standard domains are shared by all databases.
    let types = types.filter(|one| one.schema() == "public");
    types
        .map(|one| {
            let shared: Arc<dyn Any + Send + Sync> = match one.as_ref() {
                UserType::Enum(of) => of.enum_type.clone(),
                UserType::Composite(of) => of.composite_type.clone(),
                UserType::Domain(of) => of.clone(),
            };
            (one.name().to_owned(), Arc::downgrade(&shared))
        })
        .collect()
}

#[test]
fn dropped_types_are_freed_and_databases_share_none() {
    let engines = [open(&FaultEnv::new(4)), open(&FaultEnv::new(5))];
    for (engine, label) in engines.iter().zip(["sad", "blue"]) {
        run(
            engine,
            &format!(
                "CREATE TYPE mood AS ENUM ('{label}'); CREATE TYPE pair AS (a mood, b mood[]);
                 CREATE TABLE t (id int PRIMARY KEY, p pair); CREATE VIEW v AS SELECT t FROM t;
                 INSERT INTO t VALUES (1, ROW('{label}', '{{{label}}}'))"
            ),
        );
    }
    assert_eq!(run(&engines[0], "SELECT * FROM v"), ["(1,\"(sad,{sad})\")"]);
    assert_eq!(run(&engines[1], "SELECT * FROM v"), ["(1,\"(blue,{blue})\")"]);
    let [first, second] = engines.each_ref().map(|engine| types(engine));
    for ((name, one), (_, other)) in first.iter().zip(&second) {
        assert!(!one.ptr_eq(other) && one.strong_count() > 0, "{name}");
    }
    run(&engines[0], "DROP VIEW v; DROP TABLE t; DROP TYPE pair, mood");
    for (name, one) in &first {
        assert_eq!(one.strong_count(), 0, "{name} is freed");
    }
    assert_eq!(run(&engines[1], "SELECT * FROM v"), ["(1,\"(blue,{blue})\")"]);
    assert!(second.iter().all(|(_, one)| one.strong_count() > 0));
}
