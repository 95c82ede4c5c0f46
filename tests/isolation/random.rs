//! Random steps of two and three sessions beside PostgreSQL.
//!
//! A scenario has two tables, a parent with a unique column and a child that references it, and
//! 8 to 16 steps: transactions of READ COMMITTED and REPEATABLE READ, savepoints, all row locks,
//! INSERT with and without ON CONFLICT, UPDATE of keys and of other columns, DELETE, and changes
//! by subqueries. Answers, errors, waits and the final rows are compared. Left out: which
//! transaction of a deadlock is ended, if both servers end one; a new row whose unique value is in
//! a row that another transaction changes elsewhere, for which PostgreSQL waits.
//!
//! `BENNU_SEED` is the first seed, `BENNU_CASES` the number of scenarios; a scenario that differs
//! is shrunk by leaving out steps.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::harness::TestServer;
use crate::isolation::{Oracle, run_script};
use crate::random_queries::{number, seeded_random::SeededRandom};

/// The tables of each scenario.
const SETUP: [&str; 4] = [
    "create table p (id int primary key, u int unique, v int)",
    "create table c (id int primary key, p int references p on update cascade, v int)",
    "insert into p values (1, 10, 0), (2, 20, 0), (3, 30, 0)",
    "insert into c values (1, 1, 0), (2, 2, 0), (3, null, 0)",
];

/// The statements; `K`, `L` are keys, `V` a value.
const STATEMENTS: [&str; 30] = [
    "update p set v = v + V where id = K",
    "update p set v = v + V where u = K0",
    "update p set v = v + V where v < V",
    "update p set u = L5 where id = K",
    "update p set id = L where id = K",
    "update p set v = V where id in (select p from c where c.id = L)",
    "update p set v = (select count(*) from c) where id = K",
    "update c set v = v + V where id = K",
    "update c set p = L where id = K",
    "update c set v = p.v + V from p where p.id = c.p and p.id = K",
    "insert into p values (K, K0, V)",
    "insert into p values (K, K7, V) on conflict do nothing",
    "insert into p values (K, K0, V) on conflict (id) do update set v = p.v + V",
    "insert into p values (K, K0, V) on conflict (u) do update set v = excluded.v",
    "insert into c values (K, L, V)",
    "insert into c select id + L, id, v from p where id = K",
    "delete from p where id = K",
    "delete from p where v > V",
    "delete from c where id = K",
    "delete from c where p = K",
    "select id, v from p where id = K for update",
    "select id, v from p where id = K for no key update",
    "select id, v from p where id = K for share",
    "select id from p where id = K for key share",
    "select id, v from p where id >= K order by id for update skip locked",
    "select id, v from p where id = K for update nowait",
    "select p.id, c.id from p join c on c.p = p.id where p.id = K order by 2 for update of c",
    "select * from p order by id",
    "select id, p, v from c order by id",
    "select sum(v) from p",
];

/// Returns a random statement.
fn statement(chance: &mut SeededRandom) -> String {
    let mut key = || (1 + chance.below(4)).to_string();
    let (first, second) = (key(), key());
    let value = chance.below(4).to_string();
    chance.one_of(&STATEMENTS).replace('K', &first).replace('L', &second).replace('V', &value)
}

/// Returns the steps of a scenario.
fn steps(chance: &mut SeededRandom) -> Vec<String> {
    let sessions = &["a", "b", "c"][..2 + chance.below(2)];
    let mut open = [false; 3];
    let mut steps = Vec::new();
    for _ in 0..8 + chance.below(9) {
        let at = chance.below(sessions.len());
        let name = sessions[at];
        let begins = !open[at] && chance.percent(75);
        if begins {
            let level = *chance.one_of(&["read committed", "read committed", "repeatable read"]);
            steps.push(format!("{name}: begin isolation level {level}"));
            open[at] = true;
        }
        match chance.below(12) {
            0 | 1 if open[at] && !begins => {
                steps.push(format!("{name}: {}", chance.one_of(&["commit", "commit", "rollback"])));
                open[at] = false;
            }
            2 if open[at] => steps.push(format!("{name}: savepoint s")),
            3 if open[at] => steps.push(format!("{name}: rollback to s")),
            _ => steps.push(format!("{name}: {}", statement(chance))),
        }
    }
    // Sessions that wait get their answers when the others end.
    for _ in 0..2 {
        steps.extend(sessions.iter().map(|name| format!("{name}: commit")));
    }
    steps.push("z: select * from p order by id".to_owned());
    steps.push("z: select * from c order by id".to_owned());
    steps
}

/// Runs the steps on a server and returns the script with its answers.
fn answers(steps: &[String], address: SocketAddr, server: Oracle) -> String {
    let mut script = String::from("== random steps\n");
    for line in SETUP.iter().map(|sql| format!("setup: {sql}")).chain(steps.iter().cloned()) {
        writeln!(script, "{line}").unwrap();
    }
    run_script(&script, address, server)
}

#[test]
#[ignore = "needs a PostgreSQL 15 at BENNU_ORACLE"]
fn random_isolation_steps_match_postgresql() {
    let oracle = std::env::var("BENNU_ORACLE").unwrap().parse().unwrap();
    let server = TestServer::start();
    let both = |steps: &[String]| {
        let own = answers(steps, server.address(), Oracle::Bennu);
        let expected = answers(steps, oracle, Oracle::Postgres);
        let has_deadlock = |script: &String| script.contains("40P01");
        let is_left_out = [&own, &expected].into_iter().all(has_deadlock);
        (own != expected && !is_left_out).then_some((own, expected))
    };
    let (first, mut found) = (number("BENNU_SEED", 1), 0);
    for seed in first..first + number("BENNU_CASES", 50) {
        let mut steps = steps(&mut SeededRandom::new(seed));
        let Some(mut difference) = both(&steps) else { continue };
        let mut at = steps.len();
        while at > 0 {
            at -= 1;
            let mut fewer = steps.clone();
            fewer.remove(at);
            if let Some(smaller) = both(&fewer) {
                (steps, difference) = (fewer, smaller);
            }
        }
        let (own, expected) = difference;
        println!("-- seed {seed}\n-- bennu\n{own}-- PostgreSQL\n{expected}");
        found += 1;
    }
    assert_eq!(found, 0, "scenarios differ");
}
