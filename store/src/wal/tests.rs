//! Tests of the log as a whole, with fault injection.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use super::*;
use crate::cell::{CellType, KeyParts};
use crate::descriptor::{DatabaseId, RegionId};
use crate::env::Env;
use crate::env::fault::{Fault, FaultEnv, Operation, Unsynced};
use crate::wal::record::{SEGMENT_HEADER_BYTES, START_BYTES, segment_header};

const DIRECTORY: &str = "/data/wal";

/// Returns the edits that a test writes as the commit of this number.
fn edits(number: u64, value_bytes: usize) -> Vec<RegionEdit> {
    let row = format!("row{number}");
    let key = KeyParts {
        row: row.as_bytes(),
        qualifier: b"q",
        timestamp: Timestamp(number as i64 * 10),
        sequence: Sequence(0),
        cell_type: CellType::Put,
    };
    let mut cells = Cells::default();
    cells.push(0, &key, &vec![number as u8; value_bytes]);
    vec![RegionEdit { region: RegionId(number % 3), cells }]
}

struct Opened {
    wal: Wal,
    /// The records that were replayed: sequence and length of the value.
    replayed: Vec<(u64, usize)>,
}

impl Opened {
    fn sequences(&self) -> Vec<u64> {
        self.replayed.iter().map(|(sequence, _)| *sequence).collect()
    }

    /// Appends a commit and checks that its sequence follows the previous one.
    fn append(&self, value_bytes: usize, durability: Durability) -> Result<Sequence> {
        let number = self.wal.clock().sequence.0 + 1;
        let edits = edits(number, value_bytes);
        let clock = self.wal.append(Timestamp(0), durability, &edits, None)?;
        assert_eq!(clock.sequence.0, number);
        Ok(clock.sequence)
    }

    fn append_all(&self, count: u64, value_bytes: usize) {
        for _ in 0..count {
            self.append(value_bytes, Durability::SyncWal).unwrap();
            // One after the other, so that segments fill up.
            self.wal.write_through(self.wal.clock().sequence);
        }
        self.wal.wait_for(self.wal.clock().sequence).wait().unwrap();
    }
}

fn options(env: &FaultEnv, segment_bytes: u64) -> WalOptions {
    WalOptions {
        env: Arc::new(env.clone()),
        directory: PathBuf::from(DIRECTORY),
        database: DatabaseId(1),
        segment_bytes,
        archive: None,
        unsynced_bytes_max: 64 << 20,
    }
}

fn open_with(options: WalOptions, released: u64) -> Result<Opened> {
    let mut replayed = Vec::new();
    let last = CommitClock { sequence: Sequence(released), timestamp: Timestamp(0) };
    let known =
        ManifestLogState { released: Sequence(released), last, ..ManifestLogState::default() };
    let wal = Wal::open(options, &known, &mut |record| {
        let sequence = record.clock().sequence;
        for (region, mut cells) in record.edits() {
            let cell = cells.next().unwrap();
            assert_eq!(region, RegionId(sequence.0 % 3));
            assert_eq!(cell.key.row, format!("row{}", sequence.0).as_bytes());
            assert_eq!(cell.key.sequence, sequence);
            assert!(cell.value.iter().all(|byte| *byte == sequence.0 as u8));
            replayed.push((sequence.0, cell.value.len()));
        }
        Ok(())
    })?;
    Ok(Opened { wal, replayed })
}

fn open(env: &FaultEnv, segment_bytes: u64, released: u64) -> Result<Opened> {
    open_with(options(env, segment_bytes), released)
}

fn files(env: &FaultEnv) -> Vec<PathBuf> {
    env.list(Path::new(DIRECTORY)).unwrap()
}

#[test]
fn records_are_replayed_in_order() {
    let env = FaultEnv::new(1);
    let log = open(&env, 500, 0).unwrap();
    assert!(log.replayed.is_empty());
    log.append_all(50, 10);
    assert_eq!(log.wal.durable(), Sequence(50));
    assert!(files(&env).len() > 3);
    drop(log);
    let log = open(&env, 500, 0).unwrap();
    assert_eq!(log.replayed, (1..=50).map(|n| (n, 10)).collect::<Vec<_>>());
    assert_eq!(log.wal.clock().sequence, Sequence(50));
    assert!(log.wal.clock().timestamp >= Timestamp(50));
}

#[test]
fn log_keeps_unknown_files_of_its_directory() {
    let env = FaultEnv::new(1);
    let log = open(&env, 500, 0).unwrap();
    drop(env.create(&Path::new(DIRECTORY).join("notes.txt")).unwrap());
    log.append_all(50, 10);
    log.wal.release(Sequence(25)).unwrap();
    drop(log);
    let log = open(&env, 500, 25).unwrap();
    assert_eq!(log.sequences(), (26..=50).collect::<Vec<_>>());
    assert!(files(&env).contains(&PathBuf::from("notes.txt")));
}

#[test]
fn large_records_are_replayed_whole() {
    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    log.append_all(1, 20 << 20);
    log.append_all(1, 10);
    drop(log);
    let log = open(&env, 1 << 20, 0).unwrap();
    assert_eq!(log.replayed, [(1, 20 << 20), (2, 10)]);
}

#[test]
fn released_segments_are_removed() {
    let env = FaultEnv::new(1);
    let log = open(&env, 500, 0).unwrap();
    log.append_all(50, 10);
    let bytes_before = log.wal.byte_count();
    log.wal.release(Sequence(25)).unwrap();
    assert!(log.wal.byte_count() < bytes_before);
    drop(log);
    let log = open(&env, 500, 25).unwrap();
    assert_eq!(log.sequences(), (26..=50).collect::<Vec<_>>());
    log.append_all(1, 10);
    // The active segment is removed too once all its commits are flushed.
    let before = files(&env);
    log.wal.release(Sequence(51)).unwrap();
    let after = files(&env);
    assert!(before.iter().any(|name| !after.contains(name)), "{before:?} became {after:?}");
    log.append(10, Durability::SyncWal).unwrap();
    drop(log);
    let log = open(&env, 500, 51).unwrap();
    assert_eq!(log.sequences(), [52]);
    drop(log);
    // Segments that were not released must exist.
    assert!(matches!(open(&env, 500, 50), Err(Error::Corrupt { .. })));
}

#[test]
fn weaker_durability_preserves_commit_order() {
    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    log.append(10, Durability::SkipWal).unwrap();
    log.append(10, Durability::AsyncWal).unwrap();
    assert!(!log.wal.write_through(Sequence(2)));
    assert_eq!(log.wal.durable(), Sequence(2));
    log.append(10, Durability::SyncWal).unwrap();
    log.append(10, Durability::SkipWal).unwrap();
    log.wal.write_through(Sequence(4));
    assert_eq!(log.wal.durable(), Sequence(2), "the third is not on disk");
    let killed = open(&env.after_crash(Unsynced::Kept), 1 << 20, 0).unwrap();
    assert_eq!(killed.sequences(), [2, 3]);
    assert!(log.wal.wait_for(Sequence(4)).wait().is_err(), "the world has ended");
    drop(log);

    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    log.append(10, Durability::AsyncWal).unwrap();
    log.append(10, Durability::SyncWal).unwrap();
    log.append(10, Durability::SkipWal).unwrap();
    log.wal.wait_for(Sequence(3)).wait().unwrap();
    let lost = open(&env.after_crash(Unsynced::Lost), 1 << 20, 0).unwrap();
    assert_eq!(lost.sequences(), [1, 2]);
}

#[test]
fn records_without_waiters_are_synced() {
    for durability in [Durability::AsyncWal, Durability::SyncWal] {
        let env = FaultEnv::new(1);
        let log = open(&env, 1 << 20, 0).unwrap();
        log.append(10, durability).unwrap();
        log.wal.write_through(Sequence(1));
        while log.wal.status().synced < Sequence(1) {
            std::thread::yield_now();
        }
        let lost = open(&env.after_crash(Unsynced::Lost), 1 << 20, 0).unwrap();
        assert_eq!(lost.sequences(), [1]);
    }
}

#[test]
fn sync_through_makes_async_records_durable() {
    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    log.append(10, Durability::AsyncWal).unwrap();
    log.wal.sync_through(Sequence(1)).unwrap();
    let lost = open(&env.after_crash(Unsynced::Lost), 1 << 20, 0).unwrap();
    assert_eq!(lost.sequences(), [1]);
}

#[test]
fn small_synced_records_overwrite_zeros() {
    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    log.append_all(1, 10);
    let path = segment_path(Path::new(DIRECTORY), 1);
    let length = env.bytes(&path).unwrap().len();
    assert!(length > 1 << 16);
    log.append_all(100, 10);
    assert_eq!(env.bytes(&path).unwrap().len(), length);
    let lost = open(&env.after_crash(Unsynced::Lost), 1 << 20, 0).unwrap();
    assert_eq!(lost.replayed.len(), 101);
}

/// Fails the next calls of an operation.
fn fail(env: &FaultEnv, operation: Operation, count: u64) {
    env.inject(Fault { operation, after: 0, count });
}

#[test]
fn failed_write_or_sync_switches_to_new_segment() {
    for operation in [Operation::Append, Operation::Sync] {
        let env = FaultEnv::new(1);
        let log = open(&env, 1 << 20, 0).unwrap();
        log.append_all(3, 10);
        log.append(10, Durability::AsyncWal).unwrap();
        log.wal.write_through(Sequence(4));
        fail(&env, operation, 1);
        log.append(10, Durability::SyncWal).unwrap();
        log.wal.wait_for(Sequence(5)).wait().unwrap();
        let status = log.wal.status();
        assert_eq!((status.new_segments, status.failed), (1, None), "{operation:?}");
        log.append_all(3, 10);
        for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept] {
            let log = open(&env.after_crash(unsynced), 1 << 20, 0).unwrap();
            assert_eq!(log.sequences(), [1, 2, 3, 4, 5, 6, 7, 8]);
        }
    }
}

#[test]
fn full_disk_rejects_commits_until_space_is_free() {
    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    log.append_all(1, 10);
    env.leave_room(0);
    // More than the zeros that were written ahead.
    log.append(1 << 20, Durability::SyncWal).unwrap();
    assert!(matches!(
        log.wal.wait_for(Sequence(2)).wait(),
        Err(Error::LogFailed { outcome_unknown: true, .. })
    ));
    assert!(matches!(
        log.append(10, Durability::SyncWal),
        Err(Error::LogFailed { outcome_unknown: false, .. })
    ));
    assert!(log.wal.status().failed.is_some());
    assert_eq!(log.wal.durable(), Sequence(1));
    env.calm();
    while log.wal.status().failed.is_some() {
        std::thread::yield_now();
    }
    // The commits whose outcome was unknown are committed.
    log.wal.wait_for(Sequence(2)).wait().unwrap();
    log.append_all(1, 10);
    drop(log);
    let log = open(&env, 1 << 20, 0).unwrap();
    assert_eq!(log.replayed, [(1, 10), (2, 1 << 20), (3, 10)]);
}

#[test]
fn log_opens_on_full_disk_and_rejects_commits() {
    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    log.append_all(3, 10);
    drop(log);
    for _ in 0..2 {
        env.leave_room(0);
        let log = open(&env, 1 << 20, 0).unwrap();
        assert_eq!(log.sequences(), [1, 2, 3]);
        assert!(log.wal.status().failed.is_some());
        assert!(matches!(
            log.append(10, Durability::SyncWal),
            Err(Error::LogFailed { outcome_unknown: false, .. })
        ));
    }
    let log = open(&env, 1 << 20, 0).unwrap();
    env.calm();
    while log.wal.status().failed.is_some() {
        std::thread::yield_now();
    }
    log.append_all(1, 10);
    for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Kept] {
        let log = open(&env.after_crash(unsynced), 1 << 20, 0).unwrap();
        assert_eq!(log.sequences(), [1, 2, 3, 4]);
    }
}

#[test]
fn permanent_log_failure_fails_every_ticket() {
    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    env.fail_after(0);
    log.append(10, Durability::SyncWal).unwrap();
    assert!(matches!(
        log.wal.wait_for(Sequence(1)).wait(),
        Err(Error::LogFailed { outcome_unknown: true, .. })
    ));
    assert!(matches!(
        log.wal.sync_through(Sequence(1)),
        Err(Error::LogFailed { outcome_unknown: true, .. })
    ));
    assert!(matches!(
        log.append(10, Durability::SyncWal),
        Err(Error::LogFailed { outcome_unknown: false, .. })
    ));
    assert_eq!(log.wal.durable(), Sequence(0));
    log.wal.shut_down();
}

#[test]
fn waiting_after_shutdown_does_not_hang() {
    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    log.append(10, Durability::SyncWal).unwrap();
    log.wal.shut_down();
    log.wal.wait_for(Sequence(1)).wait().unwrap();
    assert!(matches!(log.wal.wait_for(Sequence(2)).wait(), Err(Error::ShutDown)));
    assert!(matches!(log.append(10, Durability::SyncWal), Err(Error::ShutDown)));
}

#[derive(Default)]
struct Follower {
    told: Mutex<Vec<u64>>,
}

impl WalFollower for Follower {
    fn follow(&self, clock: CommitClock, edits: Option<&Arc<Vec<RegionEdit>>>) {
        assert_eq!(edits.unwrap()[0].region, RegionId(clock.sequence.0 % 3));
        self.told.lock().push(clock.sequence.0);
    }
}

#[test]
fn followers_see_commits_in_order() {
    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    log.append(10, Durability::SyncWal).unwrap();
    let follower = Arc::new(Follower::default());
    assert_eq!(log.wal.follow(follower.clone()).sequence, Sequence(1));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..50 {
                    let durability = [Durability::AsyncWal, Durability::SyncWal][number % 2];
                    append_somewhere(&log.wal, durability);
                }
            });
        }
    });
    log.wal.shut_down();
    assert_eq!(*follower.told.lock(), (2..=201).collect::<Vec<_>>());
}

/// Commits at the next sequence, and waits; the region in the record must match it.
fn append_somewhere(wal: &Wal, durability: Durability) {
    // The region is that of the next sequence: threads take turns until it fits.
    static TURN: Mutex<()> = Mutex::new(());
    let clock = {
        let _turn = TURN.lock();
        let edits = Arc::new(edits(wal.clock().sequence.0 + 1, 10));
        wal.append(Timestamp(0), durability, &edits, Some(&edits)).unwrap()
    };
    if durability != Durability::SyncWal {
        wal.write_through(clock.sequence);
    }
    wal.wait_for(clock.sequence).wait().unwrap();
}

struct CountedWakes(std::sync::Barrier);

impl Wake for CountedWakes {
    fn wake(self: Arc<CountedWakes>) {
        self.0.wait();
    }
}

#[test]
fn tickets_are_futures() {
    let env = FaultEnv::new(1);
    let log = open(&env, 1 << 20, 0).unwrap();
    log.append(10, Durability::SyncWal).unwrap();
    let woken = Arc::new(CountedWakes(std::sync::Barrier::new(2)));
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    let mut ticket = pin!(log.wal.wait_for(Sequence(1)));
    assert!(ticket.as_mut().poll(&mut context).is_pending());
    woken.0.wait();
    assert!(matches!(ticket.poll(&mut context), Poll::Ready(Ok(()))));
}

#[test]
fn corruption_before_tail_is_error() {
    let env = FaultEnv::new(1);
    let log = open(&env, 20_000, 0).unwrap();
    for _ in 0..5 {
        log.append_all(1, 10);
    }
    let path = segment_path(Path::new(DIRECTORY), 1);
    let good = env.bytes(&path).unwrap();
    let used = log.wal.byte_count() as usize;
    assert!(used < good.len(), "there are zeros ahead");
    drop(log);
    let mut cut_at = BTreeSet::new();
    for position in 0..used {
        let env = FaultEnv::new(1);
        let mut bytes = good.clone();
        bytes[position] ^= 0x10;
        env.place(&path, bytes);
        match open(&env, 20_000, 0) {
            Err(Error::Corrupt { path: named, .. }) => assert_eq!(named, path),
            Err(other) => panic!("{other}"),
            Ok(log) => {
                let found = log.sequences();
                // The last commit record, or a mark behind it that is not needed.
                assert!(found == [1, 2, 3, 4] || found == [1, 2, 3, 4, 5], "only the last is cut");
                if found.len() == 4 {
                    cut_at.insert(position);
                }
            }
        }
    }
    let (first, last) = (*cut_at.first().unwrap(), *cut_at.last().unwrap());
    assert_eq!(cut_at.len(), last + 1 - first);
    for length in 0..good.len() {
        let env = FaultEnv::new(1);
        env.place(&path, good[..length].to_vec());
        match open(&env, 20_000, 0) {
            Err(Error::Corrupt { path: named, offset, .. }) => {
                assert_eq!((named, offset), (path.clone(), length as u64));
            }
            Err(other) => panic!("{other}"),
            // Without its start, nothing in the segment was on disk as far as it states; and the
            // last zeros are not recorded before there are records over the zeros before them.
            Ok(log) if length < START_BYTES as usize => assert!(log.replayed.is_empty()),
            Ok(log) => assert_eq!(log.sequences(), [1, 2, 3, 4, 5]),
        }
    }
}

#[test]
fn segment_of_another_version_is_rejected() {
    // Bytes of the header up to its checksum.
    for (version, checked) in [(1_u8, 16), (2, 16), (4, 32)] {
        let mut bytes = vec![0; 100];
        bytes[..SEGMENT_HEADER_BYTES].copy_from_slice(&segment_header(1, DatabaseId(1)));
        bytes[8] = version;
        let checksum = crc32c::crc32c(&bytes[..checked]);
        bytes[checked..checked + 4].copy_from_slice(&checksum.to_le_bytes());
        let env = FaultEnv::new(1);
        env.place(&segment_path(Path::new(DIRECTORY), 1), bytes);
        let error = open(&env, 20_000, 0).err().unwrap().to_string();
        assert!(error.contains(&format!("unsupported segment version {version}")), "{error}");
    }
}

#[test]
fn missing_segment_is_error() {
    let env = FaultEnv::new(1);
    let log = open(&env, 100, 0).unwrap();
    log.append_all(9, 50);
    drop(log);
    let mut names = files(&env);
    assert!(names.len() > 4);
    let path = Path::new(DIRECTORY).join(names.remove(1));
    env.remove(&path).unwrap();
    match open(&env, 100, 0) {
        Err(Error::Corrupt { path: named, .. }) => assert_eq!(named, path, "{names:?}"),
        Err(other) => panic!("{other}"),
        // A prepared segment that was skipped has no records that could be missing.
        Ok(log) => assert_eq!(log.sequences(), [1, 2, 3, 4, 5, 6, 7, 8, 9], "{path:?}"),
    }
}

#[test]
fn released_segments_are_archived_and_readable() {
    let env = FaultEnv::new(1);
    let archive = PathBuf::from("/archive");
    let with_archive = WalOptions { archive: Some(archive.clone()), ..options(&env, 500) };
    let log = open_with(with_archive, 0).unwrap();
    log.append_all(50, 10);
    log.wal.release(Sequence(50)).unwrap();
    // The remaining segments are empty: the active one, and the prepared one.
    let moved = env.list(&archive).unwrap();
    assert!(moved.len() > 1);
    assert!(files(&env).iter().all(|name| !moved.contains(name)));
    drop(log);
    let read = |reader: Result<WalReader>| {
        let mut reader = reader.unwrap();
        let mut found = Vec::new();
        while let Some((position, record)) = reader.next_record().unwrap() {
            found.push((position.segment, record.clock().sequence.0));
        }
        found
    };
    let env: Arc<dyn Env> = Arc::new(env.after_crash(Unsynced::Lost));
    let all = read(WalReader::open(Arc::clone(&env), &archive));
    assert_eq!(all.iter().map(|(_, n)| *n).collect::<Vec<_>>(), (1..=50).collect::<Vec<_>>());
    let some = WalReader::open(Arc::clone(&env), &archive);
    let some = read(some.map(|reader| reader.range(Sequence(7)..=Sequence(9))));
    assert_eq!(some.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [7, 8, 9]);
    let segment = all[20].0;
    let one = read(WalReader::open_segment(env, &segment_path(&archive, segment)));
    assert!(one.len() > 1 && one.len() < 20);
    assert!(one.iter().all(|found| all.contains(found) && found.0 == segment));
}

#[test]
fn record_encoding_replaces_latest_by_commit_time() {
    let mut cells = Cells::default();
    let key = |row: &'static [u8], timestamp| KeyParts {
        row,
        qualifier: b"q",
        timestamp: Timestamp(timestamp),
        sequence: Sequence(0),
        cell_type: CellType::Put,
    };
    cells.push(1, &key(b"a", i64::MAX), b"v");
    cells.push(1, &key(b"a", -5), b"");
    cells.push(2, &key(b"b", 99), &[1; 300]);
    let clock = CommitClock { sequence: Sequence(7), timestamp: Timestamp(99) };
    let mut found = cells.of(clock);
    let mut read = Vec::new();
    while let Some((family, cells)) = found.next_family() {
        for (key, value) in cells {
            assert_eq!(key.sequence, Sequence(7));
            let row = String::from_utf8_lossy(key.row);
            read.push(format!("{family} {row} @{} {} bytes", key.timestamp.0, value.len()));
        }
    }
    assert_eq!(read, ["1 a @99 1 bytes", "1 a @-5 0 bytes", "2 b @99 300 bytes"]);
}

#[test]
fn model_crate_has_all_store_dependencies() {
    let names = |manifest: &'static str| {
        let (_, list) = manifest.split_once("\n[dependencies]\n").unwrap();
        let list = list.split("\n[").next().unwrap();
        let name = |line: &'static str| line.split(['.', ' ', '=']).next().unwrap();
        list.lines().map(name).filter(|name| !name.is_empty()).collect::<BTreeSet<_>>()
    };
    let of_store = names(include_str!("../../Cargo.toml"));
    let of_model = names(include_str!("../../model/Cargo.toml"));
    assert!(of_store.is_subset(&of_model), "store {of_store:?}, model {of_model:?}");
}

/// The example of `docs/formats/wal.md`.
#[test]
fn documented_wal_example_matches_writer() {
    let env = FaultEnv::new(1);
    let log = open(&env, 100, 6).unwrap();
    let mut cells = Cells::default();
    let key = KeyParts {
        row: b"r",
        qualifier: b"q",
        timestamp: Timestamp::LATEST,
        sequence: Sequence(0),
        cell_type: CellType::Put,
    };
    cells.push(1, &key, b"v");
    let edits = [RegionEdit { region: RegionId(1), cells }];
    let clock = log.wal.append(Timestamp(9), Durability::AsyncWal, &edits, None).unwrap();
    assert_eq!(clock, CommitClock { sequence: Sequence(7), timestamp: Timestamp(9) });
    log.wal.write_through(Sequence(7));
    let bytes = env.bytes(&segment_path(Path::new(DIRECTORY), 1)).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let documented: String = include_str!("../../../docs/formats/wal.md")
        .lines()
        .skip_while(|line| *line != "```hex")
        .skip(1)
        .take_while(|line| *line != "```")
        .flat_map(|line| line.split_once('|').map_or(line, |(hex, _)| hex).chars())
        .filter(|c| !c.is_whitespace())
        .collect();
    assert_eq!(hex, documented);
}

/// Random crashes and failures: acknowledged commits survive, and surviving commits are a prefix.
#[test]
fn acknowledged_commits_survive_crashes() {
    for seed in 0..3000_u64 {
        let mut env = FaultEnv::new(seed + 1);
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % bound
        };
        let mut history = History::default();
        for _life in 0..4 {
            let log = open(&env, [100, 300, 5000][next(3) as usize], 0)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            history.check(&log, seed);
            let syncs_may_fail = disturb(&env, &mut next);
            for _ in 0..next(20) {
                history.commit(&log, &mut next);
            }
            let unsynced =
                [Unsynced::Lost, Unsynced::Torn, Unsynced::Holed, Unsynced::Kept][next(4) as usize];
            let after = env.after_crash(unsynced);
            drop(log);
            // After a failed sync the system may have lost the bytes that it was passed.
            if unsynced == Unsynced::Kept && !syncs_may_fail {
                history.synced = history.handed_over.max(history.synced);
            }
            env = after;
        }
    }
}

/// Injects a permanent or temporary fault. Returns whether syncs may fail.
fn disturb(env: &FaultEnv, next: &mut impl FnMut(u64) -> u64) -> bool {
    let mut syncs_may_fail = false;
    match next(4) {
        0 => {
            env.fail_after(next(25));
            syncs_may_fail = true;
        }
        1 => env.leave_room(next(2000)),
        2 => {
            let kinds =
                [Operation::Append, Operation::Create, Operation::SyncDirectory, Operation::Sync];
            for _ in 0..next(3) {
                let operation = kinds[next(4) as usize];
                env.inject(Fault { operation, after: next(8), count: 1 + next(3) });
                syncs_may_fail |= operation == Operation::Sync;
            }
        }
        _ => {}
    }
    syncs_may_fail
}

/// The commits made to a log, and their durability.
#[derive(Default)]
struct History {
    appended: u64,
    /// All up to here must survive the loss of power.
    synced: u64,
    /// All up to here must survive the end of the process.
    handed_over: u64,
}

impl History {
    fn check(&mut self, log: &Opened, seed: u64) {
        let found = log.replayed.len() as u64;
        assert_eq!(log.sequences(), (1..=found).collect::<Vec<_>>(), "seed {seed}");
        assert!(found >= self.synced, "seed {seed}: {found} of {}", self.synced);
        assert!(found <= self.appended, "seed {seed}");
        *self = History { appended: found, synced: found, handed_over: found };
    }

    fn commit(&mut self, log: &Opened, next: &mut impl FnMut(u64) -> u64) {
        let durability =
            [Durability::AsyncWal, Durability::SyncWal, Durability::SyncWal][next(3) as usize];
        let Ok(sequence) = log.append(next(120) as usize, durability) else { return };
        self.appended = sequence.0;
        if durability == Durability::AsyncWal {
            log.wal.write_through(sequence);
            if log.wal.wait_for(sequence).wait().is_ok() {
                self.handed_over = sequence.0;
            }
        } else if next(2) == 0 && log.wal.wait_for(sequence).wait().is_ok() {
            (self.synced, self.handed_over) = (sequence.0, sequence.0);
        }
        if next(10) == 0 && log.wal.sync_through(sequence).is_ok() {
            self.synced = sequence.0;
        }
    }
}
