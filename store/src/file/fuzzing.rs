//! Fuzzing entry points for the readers of store files; see [`crate::fuzzing`].

use std::path::Path;
use std::sync::Arc;

use crate::cache::{Block, BlockCache, FamilyCache};
use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::descriptor::{Compression, DataBlockEncoding, FamilyDescriptor};
use crate::env::Env;
use crate::env::fault::FaultEnv;
use crate::file::columnar::KnownLayout;
use crate::file::encoding::{AnyBuilder, AnyCursor, BlockBuilder, BlockCursor};
use crate::file::encoding::{encoding_code, front_bytes, prepare};
use crate::file::format::{BLOCK_HEADER_BYTES, BlockHandle, CHECKSUM_BYTES, TRAILER_BYTES};
use crate::file::format::{open_trailer, u32_at};
use crate::file::properties::FileProperties;
use crate::file::row_block::RowBlock;
use crate::file::{Caching, FileCursor, FileWriter, StoreFile, bloom};
use crate::layout::{SectionKind, ValueLayout, ValuePiece, ValueShape};
use crate::scan::merge::Cursor;

const PATH: &str = "/data/f";

/// Reads a data block in all directions: the first byte is its encoding. It is also read as a
/// Bloom and as an index block.
pub(crate) fn block(bytes: &[u8]) {
    let Some((&encoding, raw)) = bytes.split_first() else { return };
    let _ = bloom::FilterResult::of(raw, 7).may_contain();
    if let Ok(view) = RowBlock::of(raw) {
        let _ = view.restarts_before(&key_of(1));
    }
    let Ok(block) = prepare(Block::new(encoding, raw), &KnownLayout::default()) else { return };
    let mut cursor = AnyCursor::default();
    if cursor.open(block).is_err() {
        return;
    }
    let mut keys = vec![key_of(0), key_of(3)];
    let mut steps = 0;
    let mut moved = cursor.first();
    while moved.is_ok()
        && let Some(key) = cursor.key()
        && steps <= raw.len()
    {
        let _ = cursor.value();
        if keys.len() < 8 {
            keys.push(key.to_vec());
        }
        steps += 1;
        moved = cursor.advance();
    }
    moved = cursor.last();
    while moved.is_ok() && cursor.key().is_some() && steps <= 2 * raw.len() {
        let _ = cursor.value();
        steps += 1;
        moved = cursor.retreat();
    }
    assert!(moved.is_ok() || cursor.key().is_none(), "on a cell after an error");
    for key in &keys {
        let moved = cursor.seek(key).and_then(|()| cursor.skip_column());
        assert!(moved.is_ok() || cursor.key().is_none(), "on a cell after an error");
        let moved = cursor.seek_before(key);
        assert!(moved.is_ok() || cursor.key().is_none(), "on a cell after an error");
    }
}

/// Opens a trailer of these bytes, with a correct checksum, magic and version; also reads them as
/// properties.
pub(crate) fn trailer(bytes: &[u8]) {
    let _ = FileProperties::decode(bytes);
    let mut trailer = super::format::trailer(BlockHandle::default(), 0);
    let count = bytes.len().min(24);
    trailer[..count].copy_from_slice(&bytes[..count]);
    let checksum = crc32c::crc32c(&trailer[..24]);
    trailer[24..28].copy_from_slice(&checksum.to_le_bytes());
    const _: () = assert!(TRAILER_BYTES == 36);
    let _ = open_trailer(&trailer, 1000);
}

/// Reads a file of these bytes in all ways: unmodified, and with corrected block frames and
/// trailer.
pub(crate) fn store_file(bytes: &[u8]) {
    read_file(bytes);
    let mut right = bytes.to_vec();
    if make_right(&mut right).is_some() && right != bytes {
        read_file(&right);
    }
}

/// Corrects lengths and checksums of consecutive blocks, and makes the trailer point at the last
/// of them, the properties. `None` if there is no room for that.
fn make_right(bytes: &mut [u8]) -> Option<()> {
    let file_bytes = bytes.len() as u64;
    let (mut rest, end) = bytes.split_last_chunk_mut::<TRAILER_BYTES>()?;
    let (mut offset, mut last) = (0, BlockHandle::default());
    while rest.len() > BLOCK_HEADER_BYTES + CHECKSUM_BYTES {
        let room = rest.len() - BLOCK_HEADER_BYTES - CHECKSUM_BYTES;
        let stored = (u32_at(rest, 8)? as usize).min(room);
        rest[8..12].copy_from_slice(&(stored as u32).to_le_bytes());
        let size = BLOCK_HEADER_BYTES + stored + CHECKSUM_BYTES;
        let (framed, next) = rest.split_at_mut(size);
        make_front_right(framed);
        let (block, checksum) = framed.split_last_chunk_mut::<CHECKSUM_BYTES>()?;
        *checksum = crc32c::crc32c(block).to_le_bytes();
        last = BlockHandle::whole(offset, size as u32);
        offset += size as u64;
        rest = next;
    }
    *end = super::format::trailer(last, file_bytes);
    Some(())
}

/// Corrects the checksum of the front of a columnar block, if it has one.
fn make_front_right(framed: &mut [u8]) {
    let (Some(&encoding), Some(raw)) = (framed.get(2), framed.get(BLOCK_HEADER_BYTES..)) else {
        return;
    };
    let front = front_bytes(encoding, raw) as usize;
    if let Some(front) = framed.get_mut(..front)
        && let Some((front, checksum)) = front.split_last_chunk_mut::<CHECKSUM_BYTES>()
    {
        *checksum = crc32c::crc32c(front).to_le_bytes();
    }
}

fn read_file(bytes: &[u8]) {
    let env = FaultEnv::new(1);
    env.place(Path::new(PATH), bytes.to_vec());
    let cache = Arc::new(FamilyCache::new(Arc::new(BlockCache::new(1 << 20))));
    let Ok(file) = StoreFile::open(Arc::new(env), Path::new(PATH), cache) else { return };
    let file = Arc::new(file);
    let _ = file.may_contain_row(b"\x01");
    let _ = file.may_contain_column(b"\x01", b"q");
    let cursors = [
        FileCursor::forward(file.clone(), b"", Caching::Keep),
        FileCursor::forward(file.clone(), b"\x02", Caching::Bypass),
        FileCursor::reverse(file.clone(), None, Caching::Keep),
        FileCursor::reverse(file, Some(b"\x02"), Caching::Keep),
    ];
    for mut cursor in cursors.into_iter().flatten() {
        let mut steps = 0;
        while cursor.key().is_some() && steps < bytes.len() && cursor.advance().is_ok() {
            steps += 1;
        }
    }
}

fn key_of(row: u8) -> Vec<u8> {
    let parts = KeyParts {
        row: &[row],
        qualifier: b"q",
        timestamp: Timestamp(i64::from(row)),
        sequence: Sequence(5),
        cell_type: if row % 4 == 3 { CellType::DeleteColumn } else { CellType::Put },
    };
    let mut key = Vec::new();
    parts.encode(&mut key);
    key
}

fn families() -> [FamilyDescriptor; 3] {
    let pieces = vec![ValuePiece::Fixed(0), ValuePiece::Rest(1)];
    let columnar = FamilyDescriptor {
        data_block_encoding: DataBlockEncoding::Columnar,
        value_layout: ValueLayout {
            sections: vec![SectionKind::Fixed(1), SectionKind::Variable],
            shapes: vec![ValueShape { prefix: b"value ".to_vec(), pieces }],
        }
        .into(),
        block_bytes: 200,
        ..FamilyDescriptor::new("d")
    };
    let rows = FamilyDescriptor { block_bytes: 200, ..FamilyDescriptor::new("d") };
    [FamilyDescriptor { compression: Compression::None, ..rows.clone() }, rows, columnar]
}

/// Returns blocks and files of all encodings.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = Vec::new();
    for family in families() {
        let mut builder = AnyBuilder::new(&family);
        let env = FaultEnv::new(1);
        let env_of_writer: Arc<dyn Env> = Arc::new(env.clone());
        let mut writer = FileWriter::new(env_of_writer, Path::new(PATH), &family);
        for row in 0..20 {
            let (key, value) = (key_of(row), format!("value {row} and more of it"));
            builder.add(&key, value.as_bytes());
            writer.add(&key, value.as_bytes()).expect("the disk is in memory");
        }
        let mut block = vec![encoding_code(family.data_block_encoding)];
        builder.finish(&mut block);
        seeds.push(("block", block));
        let properties = writer.finish().expect("the disk is in memory").expect("cells were added");
        let bytes = env.bytes(Path::new(PATH)).expect("it was just written");
        seeds.push(("trailer", bytes[bytes.len() - TRAILER_BYTES..].to_vec()));
        seeds.push(("store_file", bytes));
        let mut raw = Vec::new();
        properties.encode(&mut raw);
        seeds.push(("trailer", raw));
    }
    seeds
}
