//! The frame around every block, and the trailer.

use crate::cache::Block;
use crate::descriptor::Compression;
use crate::file::compression::{Compressor, decompress};

/// The last bytes of a file.
pub(super) const FILE_MAGIC: [u8; 8] = *b"bennusfl";
/// The version this code writes and reads.
pub(super) const FILE_VERSION: u32 = 2;
/// Kind, compression, encoding, zero, raw length, stored length.
pub(super) const BLOCK_HEADER_BYTES: usize = 1 + 1 + 1 + 1 + 4 + 4;
pub(super) const CHECKSUM_BYTES: usize = 4;
/// Offset and size of the properties, version, file length, checksum, magic.
pub(super) const TRAILER_BYTES: usize = 8 + 4 + 4 + 8 + 4 + 8;

/// Content of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Cells, laid out as the header's encoding says.
    Data = 1,
    Bloom = 2,
    Index = 3,
    Properties = 4,
}

/// What the header of a block to be written says.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockFrame {
    pub(super) kind: BlockKind,
    /// Of data blocks; 0 in others.
    pub(super) encoding: u8,
    pub(super) compression: Compression,
}

/// Where a block is, its frame included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BlockHandle {
    pub(super) offset: u64,
    pub(super) size: u32,
}

impl BlockHandle {
    pub(super) const BYTES: usize = 8 + 4;

    pub(super) fn encode(self) -> [u8; BlockHandle::BYTES] {
        let mut bytes = [0; BlockHandle::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..].copy_from_slice(&self.size.to_le_bytes());
        bytes
    }

    /// Returns the handle of exactly these bytes.
    pub(super) fn decode(bytes: &[u8]) -> Option<BlockHandle> {
        if bytes.len() != BlockHandle::BYTES {
            return None;
        }
        Some(BlockHandle { offset: u64_at(bytes, 0)?, size: u32_at(bytes, 8)? })
    }
}

/// Appends a block with its frame to `out`.
pub(super) fn append_block(
    frame: BlockFrame,
    compressor: &mut Compressor,
    raw: &[u8],
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.extend_from_slice(&[frame.kind as u8, 0, frame.encoding, 0]);
    out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    let body = out.len();
    out[start + 1] = compressor.append(frame.compression, raw, out);
    let stored_length = (out.len() - body) as u32;
    out[start + 8..start + 12].copy_from_slice(&stored_length.to_le_bytes());
    let checksum = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Checks the frame of a block and returns its raw bytes with their encoding.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn open_block(kind: BlockKind, framed: &[u8]) -> Result<Block, String> {
    let Some(end) = framed.len().checked_sub(CHECKSUM_BYTES) else {
        return Err("the block is too short".to_owned());
    };
    let stored = u32_at(framed, end).unwrap_or_default();
    let computed = crc32c::crc32c(&framed[..end]);
    if stored != computed {
        return Err(format!("crc32c is {computed:08x}, the block says {stored:08x}"));
    }
    let (Some(raw_length), Some(stored_length)) = (u32_at(framed, 4), u32_at(framed, 8)) else {
        return Err("the block is too short".to_owned());
    };
    let (raw_length, stored_length) = (raw_length as usize, stored_length as usize);
    if framed[0] != kind as u8 || BLOCK_HEADER_BYTES + stored_length != end {
        return Err(format!("not a block of kind {}", kind as u8));
    }
    let (encoding, body) = (framed[2], &framed[BLOCK_HEADER_BYTES..end]);
    decompress(framed[1], body, raw_length)
        .map(|raw| Block::of_buffer(encoding, raw))
        .ok_or_else(|| "the block cannot be decompressed".to_owned())
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// Appends an unsigned LEB128.
pub(super) fn push_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads an unsigned LEB128 at `position` and moves it past.
pub(super) fn read_varint(bytes: &[u8], position: &mut usize) -> Option<u32> {
    let first = *bytes.get(*position)?;
    *position += 1;
    if first < 0x80 {
        return Some(u32::from(first));
    }
    let mut value = u32::from(first & 0x7f);
    for shift in (7..35).step_by(7) {
        let byte = *bytes.get(*position)?;
        *position += 1;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Returns the trailer of a file of `file_bytes`, itself included.
pub(super) fn trailer(properties: BlockHandle, file_bytes: u64) -> [u8; TRAILER_BYTES] {
    let mut trailer = [0; TRAILER_BYTES];
    trailer[..8].copy_from_slice(&properties.offset.to_le_bytes());
    trailer[8..12].copy_from_slice(&properties.size.to_le_bytes());
    trailer[12..16].copy_from_slice(&FILE_VERSION.to_le_bytes());
    trailer[16..24].copy_from_slice(&file_bytes.to_le_bytes());
    let checksum = crc32c::crc32c(&trailer[..24]);
    trailer[24..28].copy_from_slice(&checksum.to_le_bytes());
    trailer[28..].copy_from_slice(&FILE_MAGIC);
    trailer
}

/// Checks a trailer and returns where the properties are.
pub(super) fn open_trailer(
    trailer: &[u8; TRAILER_BYTES],
    file_bytes: u64,
) -> Result<BlockHandle, String> {
    if trailer[28..] != FILE_MAGIC {
        return Err("not a store file, or cut short".to_owned());
    }
    let (stored, computed) = (u32_at(trailer, 24), crc32c::crc32c(&trailer[..24]));
    if stored != Some(computed) {
        return Err(format!("crc32c of the trailer is {computed:08x}, it says otherwise"));
    }
    let version = u32_at(trailer, 12).unwrap_or_default();
    if version != FILE_VERSION {
        return Err(format!("file version {version} is not known, {FILE_VERSION} is"));
    }
    if u64_at(trailer, 16) != Some(file_bytes) {
        return Err(format!("the file has {file_bytes} bytes, its trailer says otherwise"));
    }
    let offset = u64_at(trailer, 0).unwrap_or_default();
    Ok(BlockHandle { offset, size: u32_at(trailer, 8).unwrap_or_default() })
}
