//! Fuzzing entry points: arbitrary bytes as disk content, passed to their readers.
//!
//! Each function accepts any bytes and must return, possibly after an internal error, without a
//! panic, a hang or excessive memory. Checksums are corrected first where there are any, so that
//! a fuzzer gets past them. The targets that call them are in `fuzz/`; a test of this crate also
//! runs the corpus there.

use std::path::Path;
use std::sync::Arc;

use crate::cell::{KeyParts, compare_keys, is_key};
use crate::codec;
use crate::descriptor::{FamilyDescriptor, RegionId, TableDescriptor, TableId};
use crate::env::fault::FaultEnv;
use crate::error::Error;
use crate::file;
use crate::manifest::{
    FamilyChange, Manifest, ManifestEdit, NO_BEGIN, RegionRecord, append_noted, empty_manifest,
};
use crate::mutation::Mutation;
use crate::options::Options;
use crate::run::FileRecord;
use crate::store::Store;
use crate::transaction::TransactionOptions;
use crate::wal;
use crate::wal::fuzzing::{AS_IT_IS, PREFIX_BYTES};

const DIRECTORY: &str = "/data";

/// Name of a fuzz target, and its entry point.
pub type Door = (&'static str, fn(&[u8]));

/// All entry points by the names of their targets.
pub const ENTRY_POINTS: [Door; 6] = [
    ("wal", wal::fuzzing::log),
    ("block", file::fuzzing::block),
    ("trailer", file::fuzzing::trailer),
    ("store_file", file::fuzzing::store_file),
    ("manifest", manifest),
    ("key", key),
];

fn options(env: &FaultEnv) -> Options {
    let env = Arc::new(env.clone());
    Options { env, memory_bytes: 1 << 20, region_threads: 1, ..Options::default() }
}

fn table() -> TableDescriptor {
    TableDescriptor::new(TableId(1), "t", vec![FamilyDescriptor::new("d")])
}

fn put_table() -> ManifestEdit {
    let region = RegionRecord {
        id: RegionId(1),
        start: Vec::new(),
        stop: None,
        flushed: 0,
        files: vec![Vec::new()],
        history: vec![NO_BEGIN],
        created_micros: 7,
    };
    ManifestEdit::PutTable { descriptor: table().into(), regions: vec![region] }
}

/// Opens a manifest of these records: each has a two-byte length in front, and gets a frame with
/// a correct checksum.
pub fn manifest(mut bytes: &[u8]) {
    let mut whole = empty_manifest();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let (payload, rest) =
            rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        whole.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        whole.extend_from_slice(&crc32c::crc32c(payload).to_le_bytes());
        whole.extend_from_slice(payload);
        bytes = rest;
    }
    let env = FaultEnv::new(1);
    env.place(&Path::new(DIRECTORY).join("MANIFEST"), whole);
    match Manifest::open(Arc::new(env.clone()), Path::new(DIRECTORY)) {
        Err(Error::Corrupt { .. }) => {}
        opened => {
            // An accepted manifest must be rewritten to an equal one.
            let state = opened.expect("only damage keeps a manifest from opening").state().clone();
            let again = Manifest::open(Arc::new(env), Path::new(DIRECTORY));
            assert_eq!(*again.expect("it was just written").state(), state);
        }
    }
}

/// Decodes bytes as one encoded key, and as two.
pub fn key(bytes: &[u8]) {
    let parts = KeyParts::decode(bytes);
    assert_eq!(is_key(bytes), parts.is_some(), "what can be decoded is a key");
    if let Some(parts) = parts {
        let mut encoded = Vec::new();
        parts.encode(&mut encoded);
        assert_eq!(encoded, bytes, "a key has one encoding");
    }
    let (a, b) = bytes.split_at(bytes.len() / 2);
    if is_key(a) && is_key(b) {
        assert_eq!(compare_keys(a, b), compare_keys(b, a).reverse());
    }
}

/// Returns valid inputs: output of the store itself, with the names of their targets.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = file::fuzzing::seeds();
    let parts = KeyParts {
        row: b"row",
        qualifier: b"qualifier",
        timestamp: crate::cell::Timestamp(7),
        sequence: crate::cell::Sequence(9),
        cell_type: crate::cell::CellType::Put,
    };
    let mut key = Vec::new();
    parts.encode(&mut key);
    seeds.push(("key", key.repeat(2)));
    seeds.push(("key", key));
    let log = log_of_a_store();
    let mut as_it_is = log.clone();
    as_it_is[PREFIX_BYTES - 1] = AS_IT_IS;
    seeds.push(("wal", as_it_is));
    seeds.push(("wal", log));
    let change = FamilyChange {
        family: 0,
        removed: Vec::new(),
        added: vec![FileRecord::alone(crate::descriptor::FileId(4), 5)],
        history: Some(7),
    };
    let edits = [
        put_table(),
        ManifestEdit::AlterTables { descriptors: vec![table().into()] },
        ManifestEdit::Region {
            table: TableId(1),
            region: RegionId(1),
            changes: vec![change],
            flushed: Some(300),
        },
        ManifestEdit::Marks { next_region: 3, last_sequence: 400, last_timestamp: 5, released: 2 },
        ManifestEdit::DropTable { table: TableId(1) },
    ];
    let mut records = Vec::new();
    for edit in &edits {
        let mut framed = Vec::new();
        append_noted(edit, None, &mut framed);
        let payload = &framed[codec::FRAME_HEAD_BYTES..];
        records.extend_from_slice(&(payload.len() as u16).to_le_bytes());
        records.extend_from_slice(payload);
    }
    seeds.push(("manifest", records));
    seeds
}

/// Returns the segments of a store that has made some commits, the last one as after a crash, in
/// the format of the entry point "wal".
fn log_of_a_store() -> Vec<u8> {
    let env = FaultEnv::new(1);
    let options = Options { wal_segment_bytes: 150, ..options(&env) };
    let store = Store::open(Path::new(DIRECTORY), options).expect("the disk is in memory");
    store.create_table(table()).expect("the disk is in memory");
    for number in 0..6_u8 {
        let transaction = store.begin(TransactionOptions::default());
        let value = vec![number; usize::from(number) * 20];
        let batch =
            vec![Mutation::new([number]).put(0, "q", value), Mutation::new("r").delete_row()];
        transaction.mutate(TableId(1), batch).expect("nobody else writes");
        let commit = transaction.commit().expect("the disk is in memory");
        commit.durable.wait().expect("the disk is in memory");
    }
    drop(store);
    let is_log = |path: &std::path::PathBuf| path.extension().is_some_and(|name| name == "log");
    let mut log = Vec::new();
    for path in env.paths().into_iter().filter(is_log) {
        let segment = env.bytes(&path).expect("it was just listed");
        // Prepared and unused space is zero.
        let used = segment.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let mut prefix = [0; PREFIX_BYTES];
        prefix[..2].copy_from_slice(&(used as u16).to_le_bytes());
        log.extend_from_slice(&prefix);
        log.extend_from_slice(&segment[..used]);
    }
    log
}
