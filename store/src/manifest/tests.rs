//! Tests of the manifest.

use super::*;
use crate::descriptor::{FamilyDescriptor, FileId, SplitOptions};
use crate::env::fault::{FaultEnv, Unsynced};
use crate::run::FileRecord;

const DIRECTORY: &str = "/data";

fn table(id: u32) -> ManifestEdit {
    ManifestEdit::PutTable {
        descriptor: TableDescriptor {
            split: SplitOptions::default(),
            ..TableDescriptor::new(TableId(id), format!("t{id}"), vec![FamilyDescriptor::new("d")])
        }
        .into(),
        regions: vec![RegionRecord {
            id: RegionId(u64::from(id) * 10),
            start: Vec::new(),
            stop: None,
            flushed: 0,
            files: vec![Vec::new()],
            history: vec![NO_BEGIN],
            created_micros: 7,
        }],
    }
}

fn files(table: u32, added: &[u64], removed: &[u64], flushed: Option<u64>) -> ManifestEdit {
    let added = added.iter().map(|&id| FileRecord::alone(FileId(id), 5)).collect();
    let removed = removed.iter().copied().map(FileId).collect();
    ManifestEdit::Region {
        table: TableId(table),
        region: RegionId(u64::from(table) * 10),
        changes: vec![FamilyChange { family: 0, added, removed, history: None }],
        flushed,
    }
}

fn open(env: &FaultEnv) -> Result<Manifest> {
    env.create_directory(Path::new(DIRECTORY)).unwrap();
    Manifest::open(Arc::new(env.clone()), Path::new(DIRECTORY))
}

fn path() -> PathBuf {
    Path::new(DIRECTORY).join("MANIFEST")
}

fn bytes_of(edits: &[ManifestEdit]) -> Vec<u8> {
    let env = FaultEnv::new(1);
    let mut manifest = open(&env).unwrap();
    edits.iter().for_each(|edit| manifest.append(edit).unwrap());
    env.bytes(&path()).unwrap()
}

#[test]
fn manifest_edits_accumulate_and_survive_crash() {
    let env = FaultEnv::new(1);
    let mut manifest = open(&env).unwrap();
    manifest.append(&table(1)).unwrap();
    manifest.append(&table(2)).unwrap();
    manifest.append(&files(1, &[1], &[], Some(7))).unwrap();
    manifest.append(&files(1, &[2], &[], Some(9))).unwrap();
    manifest.append(&files(1, &[3], &[1, 2], None)).unwrap();
    manifest.append(&ManifestEdit::DropTable { table: TableId(2) }).unwrap();
    let state = manifest.state().clone();
    assert_eq!(state.next_region, 21);
    let region = &state.tables[&TableId(1)].regions[0];
    assert_eq!(
        (region.flushed, region.files.clone()),
        (9, vec![vec![FileRecord::alone(FileId(3), 5)]])
    );
    for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Holed] {
        assert_eq!(*open(&env.after_crash(unsynced)).unwrap().state(), state);
    }
}

#[test]
fn invalid_edit_is_rejected_without_effect() {
    let env = FaultEnv::new(1);
    let mut manifest = open(&env).unwrap();
    manifest.append(&table(1)).unwrap();
    let state = manifest.state().clone();
    for edit in [table(1), files(2, &[1], &[], None), files(1, &[], &[4], None)] {
        assert!(matches!(manifest.append(&edit), Err(Error::InvalidRequest(_))), "{edit:?}");
    }
    assert_eq!(*manifest.state(), state);
    manifest.append(&files(1, &[5], &[], None)).unwrap();
    assert_ne!(*open(&env.after_crash(Unsynced::Lost)).unwrap().state(), state);
}

#[test]
fn edits_applied_together_survive_crash_or_have_no_effect() {
    let both: Vec<ManifestEdit> =
        [1, 2].map(|id| ManifestEdit::DropTable { table: TableId(id) }).into();
    for failing in 0..6 {
        let env = FaultEnv::new(failing);
        let mut manifest = open(&env).unwrap();
        [1, 2, 3].iter().for_each(|id| manifest.append(&table(*id)).unwrap());
        env.fail_after(failing);
        let done = manifest.append_all(&both).is_ok();
        for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Holed] {
            let count = open(&env.after_crash(unsynced)).unwrap().state().tables.len();
            assert!(count == 1 || !done && count == 3, "{count} after write {failing}");
        }
    }
    let mut manifest = open(&FaultEnv::new(1)).unwrap();
    manifest.append(&table(1)).unwrap();
    assert!(matches!(manifest.append_all(&both), Err(Error::InvalidRequest(_))));
    assert_eq!(manifest.state().tables.len(), 1);
}

#[test]
fn torn_tail_is_truncated_but_earlier_corruption_is_error() {
    let whole = bytes_of(&[table(1), table(2)]);
    let one = bytes_of(&[table(1)]);
    for length in one.len() + 1..whole.len() {
        let env = FaultEnv::new(1);
        env.create_directory(Path::new(DIRECTORY)).unwrap();
        env.place(&path(), whole[..length].to_vec());
        assert_eq!(open(&env).unwrap().state().tables.len(), 1, "cut at {length}");
    }
    for flipped in 0..one.len() {
        let env = FaultEnv::new(1);
        env.create_directory(Path::new(DIRECTORY)).unwrap();
        let mut bytes = whole.clone();
        bytes[flipped] ^= 0x40;
        env.place(&path(), bytes);
        let opened = open(&env);
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "bit flipped in {flipped}");
    }
}

#[test]
fn manifest_is_rewritten_after_failed_write() {
    for failing in 0..4 {
        let env = FaultEnv::new(failing);
        let mut manifest = open(&env).unwrap();
        manifest.append(&table(1)).unwrap();
        env.fail_after(failing);
        let second = manifest.append(&table(2)).is_ok();
        let after = open(&env.after_crash(Unsynced::Torn)).unwrap();
        let count = after.state().tables.len();
        assert!(count == 2 || !second && count == 1, "{count} after write {failing}");
    }
}

#[test]
fn manifest_of_another_version_is_rejected() {
    for version in [FORMAT_VERSION_MIN - 1, FORMAT_VERSION + 1] {
        let env = FaultEnv::new(1);
        env.create_directory(Path::new(DIRECTORY)).unwrap();
        let mut bytes = empty_manifest();
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        env.place(&path(), bytes);
        let error = open(&env).err().unwrap().to_string();
        assert!(error.contains(&format!("unsupported format version {version}")), "{error}");
    }
}

/// The example of `docs/formats/manifest.md`.
#[test]
fn documented_manifest_example_matches_writer() {
    let state = ManifestState {
        next_region: 3,
        last_sequence: 300,
        last_timestamp: 5,
        released: 2,
        log: Some(LogPosition { segment: 1, offset: 113 }),
        ..ManifestState::default()
    };
    let header = Header { database: DatabaseId(1), generation: 2, base_bytes: 0, closed: false };
    assert_eq!(hex(&encode(header, &state)), documented_example(0));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn documented_example(index: usize) -> String {
    let examples = include_str!("../../../docs/formats/manifest.md").split("```hex\n");
    let example = examples.skip(1).nth(index).unwrap().split("```").next().unwrap();
    let bytes = example.lines().flat_map(|line| line.split('|').next().unwrap_or("").chars());
    bytes.filter(|c| !c.is_whitespace()).collect()
}

/// The example of a region in `docs/formats/manifest.md`, and the same region in the form of
/// version 9.
#[test]
fn region_record_has_creation_time_from_version_10_on() {
    let region = RegionRecord {
        id: RegionId(3),
        start: b"a".to_vec(),
        stop: None,
        flushed: 9,
        files: vec![Vec::new()],
        history: vec![NO_BEGIN],
        created_micros: 5,
    };
    let mut bytes = Vec::new();
    codec::append_record(&region, &mut bytes);
    let fields = &bytes[codec::FRAME_HEAD_BYTES + 1..];
    assert_eq!(hex(fields), documented_example(1));
    let read = |fields: &[u8], version| {
        let context = ManifestVersion(version);
        bincode::decode_from_slice_with_context(fields, bincode::config::standard(), context)
    };
    assert_eq!(read(fields, FORMAT_VERSION).unwrap(), (region.clone(), fields.len()));
    let older = &fields[..fields.len() - 1];
    assert!(read(older, FORMAT_VERSION).is_err());
    let region = RegionRecord { created_micros: UNKNOWN_CREATION, ..region };
    assert_eq!(read(older, FORMAT_VERSION_MIN).unwrap(), (region, older.len()));
}
