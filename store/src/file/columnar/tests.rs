//! Tests of the documented examples. Round trips of cells are tested in
//! [`crate::file::encoding`], for all encodings.

use super::*;
use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::descriptor::Compression;
use crate::file::encoding::BlockBuilder;
use crate::layout::{SectionKind, ValueLayout, ValuePiece, ValueShape};

fn key(row: &[u8], timestamp: i64, sequence: u64) -> Vec<u8> {
    let (timestamp, sequence) = (Timestamp(timestamp), Sequence(sequence));
    let mut key = Vec::new();
    KeyParts { row, qualifier: b"", timestamp, sequence, cell_type: CellType::Put }
        .encode(&mut key);
    key
}

/// Returns the hexadecimal digits of the example of `docs/formats/columnar-block.md`.
fn documented() -> String {
    include_str!("../../../../docs/formats/columnar-block.md")
        .lines()
        .skip_while(|line| *line != "```columnar")
        .skip(1)
        .take_while(|line| *line != "```")
        .flat_map(|line| line.split_once('|').map_or(line, |(hex, _)| hex).chars())
        .filter(|c| !c.is_whitespace())
        .collect()
}

fn cells() -> [(Vec<u8>, Vec<u8>); 2] {
    [(key(b"a", 10, 1), vec![1, 0x2a, 0, b'x']), (key(b"b", 12, 2), vec![2])]
}

#[test]
fn documented_block_example_matches_encoder() {
    let layout = ValueLayout {
        sections: vec![SectionKind::Fixed(2), SectionKind::Variable],
        shapes: vec![ValueShape {
            prefix: vec![1],
            pieces: vec![ValuePiece::Fixed(0), ValuePiece::Rest(1)],
        }],
    };
    let mut builder = ColumnarBuilder::new(&layout, Compression::Lz4);
    cells().iter().for_each(|(key, value)| builder.add(key, value));
    let mut raw = Vec::new();
    builder.finish(&mut raw);
    let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, documented());
}
