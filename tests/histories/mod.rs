//! Randomised histories of concurrent transactions over the wire, checked for anomalies.
//!
//! They take some seconds in `cargo test`.
//! `BENNU_HISTORIES=600 cargo test --test tests histories:: -- --nocapture` runs each test for
//! that number of seconds; `BENNU_SEED` sets the seed (the interleaving of sessions remains
//! random).

mod checker;
mod workload;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{Process, Setup, TestServer};
use crate::histories::checker::{Level, Outcome, RecordedTransaction};
use crate::histories::workload::Workload;
use crate::raw::{Raw, sqlstate};

const SESSIONS: u64 = 8;
/// Transactions that commit in a short run.
const COMMITS: u64 = 400;
/// Kills in a short run, and transactions that commit before each.
const KILLS: u64 = 3;
const COMMITS_BEFORE_KILL: u64 = 100;

fn seed() -> u64 {
    let given = std::env::var("BENNU_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    println!("BENNU_SEED={seed}");
    seed
}

/// Returns the duration of a long run, if one is requested.
fn long_run() -> Option<Duration> {
    let seconds = std::env::var("BENNU_HISTORIES").ok()?;
    Some(Duration::from_secs(seconds.parse().unwrap()))
}

/// Runs all sessions until `enough` commits or the server is down; returns their records.
fn run_sessions(
    workload: &Workload,
    address: SocketAddr,
    (round, seed): (u64, u64),
    enough: &(dyn Fn() -> bool + Sync),
) -> Vec<RecordedTransaction> {
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|number| {
                let session = round * SESSIONS + number;
                let seed = (session, seed.wrapping_mul(1_000_003) + session);
                scope.spawn(move || workload.run_session(address, seed, enough))
            })
            .collect();
        sessions.into_iter().flat_map(|session| session.join().unwrap()).collect()
    })
}

fn assert_valid(recorded: &[RecordedTransaction], address: SocketAddr, level: Level) {
    let lists = workload::final_lists(address);
    let anomalies = checker::check(recorded, &lists, level);
    let count = |outcome| recorded.iter().filter(|one| one.outcome == outcome).count();
    println!(
        "{level:?}: {} committed, {} aborted, {} unknown, {} values in {} lists",
        count(Outcome::Committed),
        count(Outcome::Aborted),
        count(Outcome::Unknown),
        lists.values().map(Vec::len).sum::<usize>(),
        lists.len()
    );
    let shown: Vec<&str> = anomalies.iter().take(10).map(String::as_str).collect();
    assert!(shown.is_empty(), "{} anomalies:\n{}", anomalies.len(), shown.join("\n"));
    assert!(count(Outcome::Committed) > 0, "nothing was tried");
}

/// Stops the disturbance even if a session panics.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs flushes, splits, compactions and changes of salt buckets until it is stopped.
fn reorganize_regions(address: SocketAddr, stop: &AtomicBool) {
    let mut raw = Raw::login(address);
    let mut round = 0;
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        let key = round * 5;
        let mut statements = vec!["flush lists".to_owned()];
        match round % 3 {
            0 => {
                statements.push(format!("alter table lists set (salt_buckets = {})", round % 2 * 5))
            }
            1 => statements.push(format!("alter table mutex set (salt_buckets = {})", round % 2)),
            _ => {}
        }
        if round < 3 {
            statements.push(format!("alter table lists split at ({key})"));
        }
        statements.extend(["compact lists", "flush mutex"].map(str::to_owned));
        for sql in statements {
            let answer = raw.query(&sql);
            assert_eq!(sqlstate(&answer), None, "{sql}: {answer:?}");
        }
    }
}

fn search(level: Level) {
    search_on(level, &Setup::default);
}

fn search_on(level: Level, setup: &dyn Fn() -> Setup) {
    let seed = seed();
    let end = long_run().map(|time| Instant::now() + time);
    // A long run consists of many histories: anomalies appear within some seconds, if at all.
    for round in 0.. {
        let server = TestServer::start_with(setup());
        let address = server.address();
        workload::set_up(address);
        let workload = Workload::new(level);
        let stop = AtomicBool::new(false);
        let recorded = std::thread::scope(|scope| {
            scope.spawn(|| reorganize_regions(address, &stop));
            let _stop = StopOnDrop(&stop);
            let enough = || workload.committed.load(Ordering::Relaxed) >= COMMITS;
            run_sessions(&workload, address, (0, seed + round), &enough)
        });
        assert_valid(&recorded, address, level);
        if end.is_none_or(|end| Instant::now() >= end) {
            break;
        }
    }
}

#[test]
fn read_committed_has_no_circular_information_flow() {
    search(Level::ReadCommitted);
}

#[test]
fn repeatable_read_is_snapshot_isolation() {
    search(Level::RepeatableRead);
}

#[test]
fn serializable_is_serializable() {
    search(Level::Serializable);
}

/// Two sessions commit within one sync.
#[test]
fn histories_are_valid_on_slow_disk() {
    let setup = || Setup { sync_time: Some(Duration::from_millis(5)), ..Setup::default() };
    for level in [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable] {
        search_on(level, &setup);
    }
}

#[test]
fn acknowledged_transactions_survive_kills() {
    let seed = seed();
    let end = long_run().map(|time| Instant::now() + time);
    for level in [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable] {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let mut process = Some(Process::serve(&data));
        let address_of = |process: &Option<Process>| process.as_ref().unwrap().address();
        workload::set_up(address_of(&process));
        let workload = Workload::new(level);
        let mut recorded = Vec::new();
        for round in 0.. {
            let target = workload.committed.load(Ordering::Relaxed) + COMMITS_BEFORE_KILL;
            let address = address_of(&process);
            let killed = AtomicU64::new(0);
            let sessions = std::thread::scope(|scope| {
                let sessions = scope.spawn(|| {
                    let enough = || killed.load(Ordering::Relaxed) > 0;
                    run_sessions(&workload, address, (round, seed + round), &enough)
                });
                // Sessions that fail end before the kill; their panic is passed on below.
                while workload.committed.load(Ordering::Relaxed) < target && !sessions.is_finished()
                {
                    std::thread::yield_now();
                }
                process = process.take().map(Process::kill_and_restart);
                killed.store(1, Ordering::Relaxed);
                sessions.join().unwrap()
            });
            recorded.extend(sessions);
            let enough = match end {
                None => round + 1 >= KILLS,
                Some(end) => Instant::now() >= end,
            };
            if enough {
                break;
            }
        }
        assert_valid(&recorded, address_of(&process), level);
    }
}
