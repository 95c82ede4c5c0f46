//! Workload of list-append transactions: sessions read and append to lists with various
//! statements and locks, and record the results.
//!
//! A list is a text in a row, accessed by primary key, by unique index or in a range of keys. The
//! append method depends on the key, so that appends to a key exclude each other: in one
//! statement (UPDATE, ON CONFLICT by primary key or by unique index), or by reading the list and
//! writing a longer one under a lock: of the row, of a row that represents it, of an updated row,
//! of a table, or an advisory lock. With each of these, appends are not lost at READ COMMITTED
//! either.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::histories::checker::{Level, Operation, Outcome, RecordedTransaction};
use crate::random_queries::seeded_random::SeededRandom;
use crate::raw::{Frames, Raw, rows, sqlstate};

/// Number of keys in use at a time, and appends after which the first of them is retired.
const KEYS_AT_A_TIME: u64 = 7;
const APPENDS_PER_KEY: u64 = 40;

/// State shared by the sessions of a history.
pub(crate) struct Workload {
    pub(crate) level: Level,
    started: Instant,
    next_value: AtomicU64,
    pub(crate) committed: AtomicU64,
}

/// Reason for the end of a transaction.
enum Failure {
    /// The server has aborted it: 40001, 40P01.
    Aborted,
    /// The connection broke.
    Gone,
}

/// Append method of a key.
#[derive(Clone, Copy)]
enum Way {
    Statement,
    RowItself,
    MutexRow,
    UpdatedMutexRow,
    Advisory,
    Table,
}

const WAYS: [Way; 6] = [
    Way::Statement,
    Way::RowItself,
    Way::MutexRow,
    Way::UpdatedMutexRow,
    Way::Advisory,
    Way::Table,
];

fn way_of(key: u64) -> Way {
    WAYS[key as usize % WAYS.len()]
}

/// Creates the tables.
pub(crate) fn set_up(address: SocketAddr) {
    let mut raw = Raw::login(address);
    for sql in [
        "create table lists (k int primary key, name text unique, v text not null)",
        "create table mutex (k int primary key, n int)",
        "create table gate (k int primary key)",
        "insert into mutex select i, 0 from generate_series(0, 9999) i",
        // Single-statement methods insert their rows.
        "insert into lists select i, 'k' || i, '' from generate_series(0, 9999) i where i % 6 <> 0",
    ] {
        let answer = raw.query(sql);
        assert_eq!(sqlstate(&answer), None, "{sql}: {answer:?}");
    }
}

/// Returns the current lists that are not empty.
pub(crate) fn final_lists(address: SocketAddr) -> std::collections::BTreeMap<u64, Vec<u64>> {
    let mut raw = Raw::login(address);
    let by_scan = rows(&raw.query("select k, v from lists where v <> '' order by k"));
    let read = |row: &Vec<Option<String>>| {
        let key = row[0].as_deref().and_then(|key| key.parse().ok()).unwrap();
        (key, parse_list(row[1].as_deref().unwrap_or_default()))
    };
    let lists: std::collections::BTreeMap<u64, Vec<u64>> = by_scan.iter().map(read).collect();
    for (key, list) in &lists {
        let sql = format!("select k, v from lists where name = 'k{key}'");
        let by_index: Vec<_> = rows(&raw.query(&sql)).iter().map(read).collect();
        assert_eq!(by_index, [(*key, list.clone())], "the unique index says otherwise");
    }
    lists
}

fn parse_list(text: &str) -> Vec<u64> {
    text.split(',').filter(|value| !value.is_empty()).map(|value| value.parse().unwrap()).collect()
}

impl Workload {
    pub(crate) fn new(level: Level) -> Workload {
        Workload {
            level,
            started: Instant::now(),
            next_value: AtomicU64::new(1),
            committed: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Runs transactions until `enough` returns true or the connection breaks; returns them.
    pub(crate) fn run_session(
        &self,
        address: SocketAddr,
        (session, seed): (u64, u64),
        enough: impl Fn() -> bool,
    ) -> Vec<RecordedTransaction> {
        let mut client = WorkloadSession {
            workload: self,
            raw: Raw::login(address),
            chance: SeededRandom::new(seed),
        };
        client.raw.query("set lock_timeout = '30s'");
        let mut recorded = Vec::new();
        while !enough() {
            let begin = self.now();
            let mut operations = Vec::new();
            let ended = client.transaction(&mut operations);
            let (Ok(outcome) | Err(outcome)) = ended;
            recorded.push(RecordedTransaction {
                session,
                begin,
                end: self.now(),
                operations,
                outcome,
            });
            if ended.is_err() {
                break;
            }
            if outcome == Outcome::Committed {
                self.committed.fetch_add(1, Ordering::Relaxed);
            }
        }
        recorded
    }
}

struct WorkloadSession<'a> {
    workload: &'a Workload,
    raw: Raw,
    chance: SeededRandom,
}

impl WorkloadSession<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.chance.below(bound as usize) as u64
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Failure> {
        self.raw.try_send(&Frames::new().query(sql).0);
        let answer = self.raw.until_ready();
        if answer.last().is_none_or(|message| message.kind != b'Z') {
            return Err(Failure::Gone);
        }
        match sqlstate(&answer).as_deref() {
            None => Ok(rows(&answer)),
            Some("40001" | "40P01") => Err(Failure::Aborted),
            Some(_) => panic!("{sql}: {answer:?}"),
        }
    }

    /// Returns the outcome of the transaction; as an error if the connection broke.
    fn transaction(&mut self, operations: &mut Vec<Operation>) -> Result<Outcome, Outcome> {
        let level = match self.workload.level {
            Level::ReadCommitted => "read committed",
            Level::RepeatableRead => "repeatable read",
            Level::Serializable => "serializable",
        };
        let ran = self.query(&format!("begin isolation level {level}")).and_then(|_| {
            for _ in 0..=self.below(4) {
                let key = self.key();
                match self.below(5) {
                    0 | 1 => self.append(key, operations)?,
                    2 => self.read(&format!("k = {key}"), key..key + 1, operations)?,
                    3 => self.read(&format!("name = 'k{key}'"), key..key + 1, operations)?,
                    _ => {
                        let end = key + KEYS_AT_A_TIME;
                        self.read(&format!("k >= {key} and k < {end}"), key..end, operations)?;
                    }
                }
            }
            Ok(())
        });
        match ran {
            Ok(()) if self.below(20) > 0 => match self.query("commit") {
                Ok(_) => Ok(Outcome::Committed),
                Err(Failure::Aborted) => Ok(Outcome::Aborted),
                Err(Failure::Gone) => Err(Outcome::Unknown),
            },
            Ok(()) | Err(Failure::Aborted) => match self.query("rollback") {
                Ok(_) | Err(Failure::Aborted) => Ok(Outcome::Aborted),
                Err(Failure::Gone) => Err(Outcome::Aborted),
            },
            Err(Failure::Gone) => Err(Outcome::Aborted),
        }
    }

    fn key(&mut self) -> u64 {
        let appended = self.workload.next_value.load(Ordering::Relaxed);
        appended / APPENDS_PER_KEY + self.below(KEYS_AT_A_TIME)
    }

    fn read(
        &mut self,
        condition: &str,
        keys: std::ops::Range<u64>,
        operations: &mut Vec<Operation>,
    ) -> Result<(), Failure> {
        let found = self.query(&format!("select k, v from lists where {condition} order by k"))?;
        for key in keys {
            let name = key.to_string();
            let row = found.iter().find(|row| row[0].as_deref() == Some(&name));
            let text = row.and_then(|row| row[1].as_deref()).unwrap_or_default();
            operations.push(Operation::Read { key, list: parse_list(text) });
        }
        Ok(())
    }

    fn append(&mut self, key: u64, operations: &mut Vec<Operation>) -> Result<(), Failure> {
        let value = self.workload.next_value.fetch_add(1, Ordering::Relaxed);
        let lock = match way_of(key) {
            Way::Statement => {
                let target = if self.below(2) == 0 { "k" } else { "name" };
                let sql = match self.below(2) {
                    0 => format!(
                        "insert into lists values ({key}, 'k{key}', '{value}') \
                         on conflict ({target}) do update set v = lists.v || ',{value}'"
                    ),
                    _ => format!(
                        "merge into lists using (values ({key})) n (k) on lists.k = n.k \
                         when matched then update set v = lists.v || ',{value}'"
                    ),
                };
                self.query(&sql)?;
                let there = self.query(&format!("select v from lists where k = {key}"))?;
                let text = there.first().and_then(|row| row[0].as_deref()).unwrap_or_default();
                let list = parse_list(text);
                // MERGE without a matching row appends nothing.
                if list.contains(&value) || sql.starts_with("insert") {
                    operations.push(Operation::Append { key, value });
                }
                operations.push(Operation::Read { key, list });
                return Ok(());
            }
            Way::RowItself => format!("select 1 from lists where name = 'k{key}' for update"),
            Way::MutexRow => format!("select 1 from mutex where k = {key} for update"),
            Way::UpdatedMutexRow => format!("update mutex set n = n + 1 where k = {key}"),
            Way::Advisory => format!("select pg_advisory_xact_lock({key})"),
            Way::Table => "lock table gate in exclusive mode".to_owned(),
        };
        self.query(&lock)?;
        let condition =
            if self.below(2) == 0 { format!("k = {key}") } else { format!("name = 'k{key}'") };
        self.read(&condition, key..key + 1, operations)?;
        let Some(Operation::Read { list, .. }) = operations.last() else { return Ok(()) };
        let longer: Vec<String> = list.iter().chain([&value]).map(u64::to_string).collect();
        let longer = longer.join(",");
        self.query(&format!("update lists set v = '{longer}' where {condition}"))?;
        operations.push(Operation::Append { key, value });
        Ok(())
    }
}
