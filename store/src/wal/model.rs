//! Model checking of the log: leadership, waiting and wake-ups under thousands of thread
//! schedules.
//!
//! `cargo test --manifest-path store/model/Cargo.toml model`; `BENNU_MODELS` sets the number of
//! schedules of each model. A failing schedule is printed, to be replayed with shuttle's
//! `replay`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use shuttle::rand::Rng;
use shuttle::thread;

use crate::cell::{Sequence, Timestamp};
use crate::descriptor::{DatabaseId, Durability, RegionId};
use crate::env::Env;
use crate::env::fault::{Fault, FaultEnv, Operation, Unsynced};
use crate::error::Error;
use crate::wal::{Cells, ManifestLogState, RegionEdit, Wal, WalOptions, WalReader};

fn check(model: impl Fn() + Send + Sync + Copy + 'static) {
    let count = std::env::var("BENNU_MODELS").ok().map_or(3000, |text| text.parse().unwrap());
    shuttle::check_random(model, count);
    shuttle::check_pct(model, count, 3);
}

fn open(env: &FaultEnv, segment_bytes: u64) -> Wal {
    let options = WalOptions {
        env: Arc::new(env.clone()),
        directory: PathBuf::from("/wal"),
        database: DatabaseId(1),
        segment_bytes,
        archive: None,
        unsynced_bytes_max: 64 << 20,
    };
    Wal::open(options, &ManifestLogState::default(), &mut |_| Ok(())).unwrap()
}

/// Commits and waits; returns the sequence if it was acknowledged.
fn commit(wal: &Wal, durability: Durability) -> Result<Sequence, Error> {
    let edits = [RegionEdit { region: RegionId(1), cells: Cells::default() }];
    let clock = wal.append(Timestamp(0), durability, &edits, None)?;
    if durability != Durability::SyncWal {
        wal.write_through(clock.sequence);
    }
    wal.wait_for(clock.sequence).wait()?;
    assert!(wal.durable() >= clock.sequence);
    Ok(clock.sequence)
}

/// Returns the sequences in the log after power loss.
fn after_crash(env: &FaultEnv) -> Vec<u64> {
    let env: Arc<dyn Env> = Arc::new(env.after_crash(Unsynced::Lost));
    let mut reader = WalReader::open(env, Path::new("/wal")).unwrap();
    let mut found = Vec::new();
    while let Some((_, record)) = reader.next_record().unwrap() {
        found.push(record.clock().sequence.0);
    }
    found
}

/// The acknowledged commits, and the number of them after which power loss is simulated.
struct Acknowledged {
    env: FaultEnv,
    sequences: parking_lot::Mutex<Vec<u64>>,
    crash_at: usize,
}

impl Acknowledged {
    fn add(&self, sequence: Sequence) {
        let mut sequences = self.sequences.lock();
        sequences.push(sequence.0);
        if sequences.len() == self.crash_at {
            self.check(&sequences);
        }
    }

    /// Checks that a crash now would lose no acknowledged commit.
    fn check(&self, acknowledged: &[u64]) {
        let found = after_crash(&self.env);
        assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>());
        let lost = acknowledged.iter().find(|sequence| !found.contains(sequence));
        assert_eq!(lost, None, "acknowledged {acknowledged:?}, found {found:?}");
    }
}

/// Checks that concurrent commits all return, and that acknowledgements are true.
fn concurrent_commits(segment_bytes: u64, disturb: fn(&FaultEnv)) {
    let env = FaultEnv::new(1);
    let wal = Arc::new(open(&env, segment_bytes));
    disturb(&env);
    let crash_at = shuttle::rand::thread_rng().gen_range(1..8);
    let sequences = parking_lot::Mutex::default();
    let acknowledged = Arc::new(Acknowledged { env, sequences, crash_at });
    let sync = [Durability::SyncWal, Durability::SyncWal];
    let mixed = [Durability::AsyncWal, Durability::SyncWal];
    let threads: Vec<_> = [sync, sync, mixed]
        .into_iter()
        .map(|durabilities| {
            let (wal, acknowledged) = (Arc::clone(&wal), Arc::clone(&acknowledged));
            thread::spawn(move || {
                for durability in durabilities {
                    if let Ok(sequence) = commit(&wal, durability)
                        && durability == Durability::SyncWal
                    {
                        acknowledged.add(sequence);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // Before the log is shut down, which syncs.
    acknowledged.check(&acknowledged.sequences.lock());
}

#[test]
fn model_concurrent_commits() {
    check(|| concurrent_commits(1 << 20, |_| {}));
}

#[test]
fn model_concurrent_commits_at_segment_end() {
    check(|| concurrent_commits(120, |_| {}));
}

#[test]
fn model_concurrent_commits_with_failed_sync() {
    let fault = |env: &FaultEnv| {
        env.inject(Fault { operation: Operation::Sync, after: 1, count: 1 });
    };
    check(move || concurrent_commits(1 << 20, fault));
}

#[test]
fn model_concurrent_commits_with_failed_disk() {
    check(|| concurrent_commits(1 << 20, |env| env.fail_after(3)));
}

#[test]
fn model_tasks_and_threads_wait_for_sync() {
    check(|| {
        let env = FaultEnv::new(1);
        let wal = Arc::new(open(&env, 1 << 20));
        let edits = [RegionEdit { region: RegionId(1), cells: Cells::default() }];
        let task_wal = Arc::clone(&wal);
        let task = thread::spawn(move || {
            for _ in 0..2 {
                let clock =
                    task_wal.append(Timestamp(0), Durability::SyncWal, &edits, None).unwrap();
                shuttle::future::block_on(task_wal.wait_for(clock.sequence)).unwrap();
                assert!(task_wal.durable() >= clock.sequence);
            }
        });
        let thread_wal = Arc::clone(&wal);
        let waiting = thread::spawn(move || {
            let sequence = commit(&thread_wal, Durability::SyncWal).unwrap();
            thread_wal.sync_through(sequence).unwrap();
        });
        let sequence = commit(&wal, Durability::AsyncWal).unwrap();
        wal.sync_through(sequence).unwrap();
        task.join().unwrap();
        waiting.join().unwrap();
        assert_eq!(after_crash(&env), [1, 2, 3, 4]);
    });
}

#[test]
fn model_shutdown_wakes_all_waiters() {
    check(|| {
        let env = FaultEnv::new(1);
        let wal = Arc::new(open(&env, 1 << 20));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let wal = Arc::clone(&wal);
                thread::spawn(move || match commit(&wal, Durability::SyncWal) {
                    Ok(_) | Err(Error::ShutDown) => {}
                    Err(other) => panic!("{other}"),
                })
            })
            .collect();
        wal.shut_down();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
