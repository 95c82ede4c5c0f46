//! The documented example. That cells come back as they were is tested in
//! [`crate::file::encoding`], for all encodings.

use super::*;
use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::descriptor::Compression;
use crate::file::encoding::BlockBuilder;
use crate::layout::{Piece, SectionKind, ValueLayout, ValueShape};

fn key(row: &[u8], timestamp: i64, sequence: u64) -> Vec<u8> {
    let (timestamp, sequence) = (Timestamp(timestamp), Sequence(sequence));
    let mut key = Vec::new();
    KeyParts { row, qualifier: b"", timestamp, sequence, cell_type: CellType::Put }
        .encode(&mut key);
    key
}

/// The example of `docs/formats/store-file.md`.
#[test]
fn the_documented_example_holds() {
    let layout = ValueLayout {
        sections: vec![SectionKind::Fixed(2), SectionKind::Variable],
        shapes: vec![ValueShape { prefix: vec![1], pieces: vec![Piece::Fixed(0), Piece::Rest(1)] }],
    };
    let mut builder = ColumnarBuilder::new(&layout, Compression::Lz4);
    builder.add(&key(b"a", 10, 1), &[1, 0x2a, 0, b'x']);
    builder.add(&key(b"b", 12, 2), &[2]);
    let mut raw = Vec::new();
    builder.finish(&mut raw);
    let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    let documented: String = include_str!("../../../../docs/formats/store-file.md")
        .lines()
        .skip_while(|line| *line != "```columnar")
        .skip(1)
        .take_while(|line| *line != "```")
        .flat_map(|line| line.split_once('|').map_or(line, |(hex, _)| hex).chars())
        .filter(|c| !c.is_whitespace())
        .collect();
    assert_eq!(hex, documented);
}
