//! Tests of the log as a whole, in a world that fails on purpose.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::cell::CellType;
use crate::env::fault::{FaultEnv, Unsynced};

const DIRECTORY: &str = "/data/wal";

fn record(sequence: u64, value_bytes: usize) -> Arc<Record> {
    Arc::new(Record {
        sequence: Sequence(sequence),
        timestamp: Timestamp(sequence as i64 * 10),
        edits: vec![RegionEdit {
            region: RegionId(sequence % 3),
            cells: vec![Cell {
                row: format!("row{sequence}").into_bytes(),
                family: 0,
                qualifier: b"q".to_vec(),
                timestamp: Timestamp(sequence as i64 * 10),
                sequence: Sequence(sequence),
                cell_type: CellType::Put,
                value: vec![sequence as u8; value_bytes],
            }],
        }],
    })
}

fn open(env: &FaultEnv, segment_bytes: u64, after: u64) -> Result<(Wal, Vec<Record>)> {
    let mut records = Vec::new();
    let wal = Wal::open(
        Arc::new(env.clone()),
        Path::new(DIRECTORY),
        segment_bytes,
        Sequence(after),
        &mut |record| {
            records.push(record);
            Ok(())
        },
    )?;
    Ok((wal, records))
}

fn sequences(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.sequence.0).collect()
}

#[test]
fn records_come_back_in_order() {
    let env = FaultEnv::new(1);
    let (wal, replayed) = open(&env, 500, 0).unwrap();
    assert!(replayed.is_empty());
    for sequence in 1..=50 {
        wal.append(record(sequence, 10), Durability::SyncWal);
    }
    wal.wait_for(Sequence(50)).wait().unwrap();
    assert_eq!(wal.durable(), Sequence(50));
    assert!(env.list(Path::new(DIRECTORY)).unwrap().len() > 3);
    drop(wal);
    let (_wal, replayed) = open(&env, 500, 20).unwrap();
    assert_eq!(sequences(&replayed), (21..=50).collect::<Vec<_>>());
    assert_eq!(replayed[0], *record(21, 10));
}

#[test]
fn large_records_are_whole_or_absent() {
    let env = FaultEnv::new(1);
    let (wal, _) = open(&env, 1 << 20, 0).unwrap();
    wal.append(record(1, 20 << 20), Durability::SyncWal);
    wal.append(record(2, 10), Durability::SyncWal);
    wal.wait_for(Sequence(2)).wait().unwrap();
    drop(wal);
    let (_wal, replayed) = open(&env, 1 << 20, 0).unwrap();
    assert_eq!(sequences(&replayed), [1, 2]);
    assert_eq!(replayed[0], *record(1, 20 << 20));
}

#[test]
fn released_segments_go() {
    let env = FaultEnv::new(1);
    let (wal, _) = open(&env, 500, 0).unwrap();
    for sequence in 1..=50 {
        wal.append(record(sequence, 10), Durability::SyncWal);
    }
    wal.wait_for(Sequence(50)).wait().unwrap();
    let bytes_before = wal.byte_count();
    wal.release(Sequence(25)).unwrap();
    assert!(wal.byte_count() < bytes_before);
    drop(wal);
    let (wal, replayed) = open(&env, 500, 0).unwrap();
    assert!(replayed[0].sequence > Sequence(10) && replayed[0].sequence <= Sequence(26));
    wal.append(record(51, 10), Durability::SyncWal);
    wal.wait_for(Sequence(51)).wait().unwrap();
    // The active segment goes too once all in it is flushed.
    wal.release(Sequence(51)).unwrap();
    assert_eq!(env.list(Path::new(DIRECTORY)).unwrap().len(), 1);
    wal.append(record(52, 10), Durability::SyncWal);
    drop(wal);
    let (_wal, replayed) = open(&env, 500, 51).unwrap();
    assert_eq!(sequences(&replayed), [52]);
}

#[test]
fn weaker_durability_keeps_its_place() {
    let env = FaultEnv::new(1);
    let (wal, _) = open(&env, 1 << 20, 0).unwrap();
    wal.append(record(1, 10), Durability::SkipWal);
    wal.append(record(2, 10), Durability::AsyncWal);
    wal.wait_for(Sequence(2)).wait().unwrap();
    wal.append(record(3, 10), Durability::SyncWal);
    wal.append(record(4, 10), Durability::SkipWal);
    wal.wait_for(Sequence(4)).wait().unwrap();
    let (_wal, replayed) = open(&env.after_crash(Unsynced::Lost), 1 << 20, 0).unwrap();
    assert_eq!(sequences(&replayed), [2, 3]);
}

#[test]
fn a_failed_log_fails_every_ticket() {
    let env = FaultEnv::new(1);
    let (wal, _) = open(&env, 1 << 20, 0).unwrap();
    env.fail_after(1);
    wal.append(record(1, 10), Durability::SyncWal);
    assert!(matches!(wal.wait_for(Sequence(1)).wait(), Err(Error::LogFailed { .. })));
    wal.append(record(2, 10), Durability::SyncWal);
    assert!(matches!(wal.wait_for(Sequence(2)).wait(), Err(Error::LogFailed { .. })));
    assert_eq!(wal.durable(), Sequence(0));
    wal.shut_down();
}

#[test]
fn waiting_after_the_end_does_not_hang() {
    let env = FaultEnv::new(1);
    let (wal, _) = open(&env, 1 << 20, 0).unwrap();
    wal.append(record(1, 10), Durability::SyncWal);
    wal.shut_down();
    wal.wait_for(Sequence(1)).wait().unwrap();
    assert!(matches!(wal.wait_for(Sequence(2)).wait(), Err(Error::ShutDown)));
}

struct Follower(Mutex<Vec<u64>>);

impl WalFollower for Follower {
    fn follow(&self, record: &Arc<Record>) {
        self.0.lock().push(record.sequence.0);
    }
}

#[test]
fn followers_see_commits_in_order() {
    let env = FaultEnv::new(1);
    let (wal, _) = open(&env, 1 << 20, 0).unwrap();
    wal.append(record(1, 10), Durability::SyncWal);
    let follower = Arc::new(Follower(Mutex::default()));
    wal.follow(follower.clone());
    for sequence in 2..=100 {
        wal.append(record(sequence, 10), Durability::SyncWal);
    }
    wal.shut_down();
    assert_eq!(*follower.0.lock(), (2..=100).collect::<Vec<_>>());
}

#[test]
fn damage_before_the_tail_is_an_error() {
    let env = FaultEnv::new(1);
    let (wal, _) = open(&env, 1 << 20, 0).unwrap();
    for sequence in 1..=5 {
        wal.append(record(sequence, 10), Durability::SyncWal);
        wal.wait_for(Sequence(sequence)).wait().unwrap();
    }
    drop(wal);
    let path = segment_path(Path::new(DIRECTORY), 1);
    let good = env.bytes(&path).unwrap();
    let mut cut_at = BTreeSet::new();
    for position in 0..good.len() {
        let env = FaultEnv::new(1);
        let mut bytes = good.clone();
        bytes[position] ^= 0x10;
        env.place(&path, bytes);
        match open(&env, 1 << 20, 0) {
            Err(Error::Corrupt { path: named, .. }) => assert_eq!(named, path),
            Err(other) => panic!("{other}"),
            Ok((_, replayed)) => {
                assert_eq!(sequences(&replayed), [1, 2, 3, 4], "only the last may be cut");
                cut_at.insert(position);
            }
        }
    }
    assert_eq!(cut_at.len(), good.len() - *cut_at.first().unwrap());
    for length in 0..good.len() {
        let env = FaultEnv::new(1);
        env.place(&path, good[..length].to_vec());
        let (_, replayed) = open(&env, 1 << 20, 0).unwrap();
        let expected: Vec<u64> = (1..=replayed.len() as u64).collect();
        assert_eq!(sequences(&replayed), expected);
    }
}

#[test]
fn a_missing_segment_is_an_error() {
    let env = FaultEnv::new(1);
    let (wal, _) = open(&env, 100, 0).unwrap();
    for sequence in 1..=9 {
        wal.append(record(sequence, 50), Durability::SyncWal);
    }
    drop(wal);
    let path = segment_path(Path::new(DIRECTORY), 2);
    env.remove(&path).unwrap();
    assert!(matches!(open(&env, 100, 0), Err(Error::Corrupt { path: named, .. }) if named == path));
}

/// Crashes and failures at random: what was acknowledged is there, and what is there is a prefix.
#[test]
fn crashes_lose_nothing_that_was_acknowledged() {
    for seed in 0..400_u64 {
        let mut env = FaultEnv::new(seed + 1);
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % bound
        };
        let (mut appended, mut acknowledged) = (0, 0);
        for _life in 0..4 {
            let opened = open(&env, 300, 0);
            let (wal, replayed) = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let found = replayed.len() as u64;
            assert_eq!(sequences(&replayed), (1..=found).collect::<Vec<_>>(), "seed {seed}");
            assert!(found >= acknowledged, "seed {seed}: {found} of {acknowledged}");
            assert!(found <= appended, "seed {seed}");
            appended = found;
            if next(2) == 0 {
                env.fail_after(next(25));
            }
            for _ in 0..next(20) {
                appended += 1;
                let durability =
                    if next(3) == 0 { Durability::AsyncWal } else { Durability::SyncWal };
                wal.append(record(appended, next(120) as usize), durability);
                let waits = next(3) == 0 && durability == Durability::SyncWal;
                if waits && wal.wait_for(Sequence(appended)).wait().is_ok() {
                    acknowledged = appended;
                }
            }
            let unsynced = [Unsynced::Lost, Unsynced::Torn, Unsynced::Holed][next(3) as usize];
            env.crash();
            let after = env.after_crash(unsynced);
            drop(wal);
            env = after;
        }
    }
}
