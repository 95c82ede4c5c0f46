//! Tests of the dump: its text, and its detection of damage.

use super::*;
use crate::cell::{CellType, Sequence, Timestamp};
use crate::descriptor::{Compression, FamilyDescriptor};
use crate::env::fault::FaultEnv;
use crate::file::FileWriter;

const PATH: &str = "/f000-0000000001.store";

fn write(env: &FaultEnv) {
    let family = FamilyDescriptor {
        block_bytes: 120,
        bloom_filter: BloomFilter::RowCol,
        compression: Compression::Lz4,
        ..FamilyDescriptor::new("f")
    };
    let mut writer = FileWriter::new(Arc::new(env.clone()), Path::new(PATH), &family);
    let mut add = |row: &[u8], qualifier: &[u8], sequence: u64, cell_type, value: &[u8]| {
        let (timestamp, sequence) = (Timestamp(sequence as i64 * 10), Sequence(sequence));
        let mut key = Vec::new();
        KeyParts { row, qualifier, timestamp, sequence, cell_type }.encode(&mut key);
        writer.add(&key, value).unwrap();
    };
    add(b"a\xff", b"", 3, CellType::DeleteFamily, b"");
    add(b"a\xff", b"q\"", 5, CellType::Put, &[b'v'; 90]);
    add(b"b", b"q", 4, CellType::Put, b"say \"hi\"");
    add(b"b", b"r", 4, CellType::DeleteColumn, b"");
    writer.finish().unwrap();
}

fn dumped(env: &FaultEnv, spec: DumpSpec) -> Result<String> {
    let mut out = Vec::new();
    dump(Arc::new(env.clone()), Path::new(PATH), spec, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn dump_prints_properties_blocks_and_cells() {
    let env = FaultEnv::new(1);
    write(&env);
    let full = dumped(&env, DumpSpec { blocks: true, cells: true }).unwrap();
    assert_eq!(
        full,
        r#"store file, version 3, 665 bytes
rows: 2, from "a\xff" to "b"
cells: 4, 184 bytes of keys and values
puts: 2, deletes: 0 of versions, 1 of columns, 1 of families, 0 of family versions
timestamps: 30 to 50, puts from 40
sequence numbers: 3 to 5
filter: rows and columns; index levels: 1, root of 59 bytes at 385
data index levels: 1, root of 128 bytes at 257
block at 385: index, 59 bytes, 54 raw, lz4
block at 177: bloom, 80 bytes, 64 raw, not compressed
block at 257: index, 128 bytes, 151 raw, lz4
block at 0: data, rows, 49 bytes, 43 raw, lz4
"a\xff" "" @30 #3 DeleteFamily = ""
block at 49: data, rows, 60 bytes, 135 raw, lz4
"a\xff" "q\"" @50 #5 Put = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
block at 109: data, rows, 68 bytes, 73 raw, lz4
"b" "q" @40 #4 Put = "say \"hi\""
"b" "r" @40 #4 DeleteColumn = ""
block at 444: properties, 185 bytes, 169 raw, not compressed
all blocks are valid: 3 data, 2 index, 1 bloom blocks
"#
    );
    let short = dumped(&env, DumpSpec::default()).unwrap();
    assert!(full.lines().filter(|line| !line.starts_with(['"', 'b'])).eq(short.lines()));
}

#[test]
fn dump_detects_corruption_of_any_byte() {
    let env = FaultEnv::new(1);
    write(&env);
    let good = env.bytes(Path::new(PATH)).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        env.place(Path::new(PATH), bad);
        assert!(
            matches!(dumped(&env, DumpSpec::default()), Err(Error::Corrupt { .. })),
            "byte {at}"
        );
    }
}
