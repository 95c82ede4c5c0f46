//! Block frames and the trailer of a store file.

use smallvec::SmallVec;

use crate::cache::Block;
use crate::descriptor::Compression;
use crate::file::compression::{Compressor, decompress};

/// The last bytes of a file.
pub(super) const FILE_MAGIC: [u8; 8] = *b"bennusfl";
/// The version this code writes and reads.
pub(super) const FILE_VERSION: u32 = 3;
/// Kind, compression, encoding, zero, raw length, stored length.
pub(super) const BLOCK_HEADER_BYTES: usize = 1 + 1 + 1 + 1 + 4 + 4;
pub(super) const CHECKSUM_BYTES: usize = 4;
/// Offset and size of the properties, version, file length, checksum, magic.
pub(super) const TRAILER_BYTES: usize = 8 + 4 + 4 + 8 + 4 + 8;

// The offsets below rely on these.
const _: () = assert!(BLOCK_HEADER_BYTES == 12 && TRAILER_BYTES == 28 + FILE_MAGIC.len());

/// Content of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Cells, in the encoding named by the header.
    Data = 1,
    Bloom = 2,
    Index = 3,
    Properties = 4,
}

/// Header fields of a block to be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockFrame {
    pub(super) kind: BlockKind,
    /// Encoding of data blocks; 0 in others.
    pub(super) encoding: u8,
    pub(super) compression: Compression,
}

/// Position and size of a block, including its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BlockHandle {
    pub(super) offset: u64,
    pub(super) size: u32,
    /// Bytes of its front, which can be read separately; 0 if it has none.
    pub(super) front: u32,
}

impl BlockHandle {
    pub(super) const BYTES: usize = 8 + 4;
    const FRONT_BYTES: usize = BlockHandle::BYTES + 4;

    /// Returns the handle of a block without a front.
    pub(super) fn whole(offset: u64, size: u32) -> BlockHandle {
        BlockHandle { offset, size, front: 0 }
    }

    pub(super) fn encode(self) -> SmallVec<[u8; BlockHandle::FRONT_BYTES]> {
        let mut bytes = SmallVec::new();
        bytes.extend_from_slice(&self.offset.to_le_bytes());
        bytes.extend_from_slice(&self.size.to_le_bytes());
        if self.front > 0 {
            bytes.extend_from_slice(&self.front.to_le_bytes());
        }
        bytes
    }

    /// Returns the handle of exactly these bytes.
    pub(super) fn decode(bytes: &[u8]) -> Option<BlockHandle> {
        let front = match bytes.len() {
            BlockHandle::BYTES => 0,
            BlockHandle::FRONT_BYTES => u32_at(bytes, BlockHandle::BYTES)?,
            _ => return None,
        };
        Some(BlockHandle { offset: u64_at(bytes, 0)?, size: u32_at(bytes, 8)?, front })
    }
}

/// Appends a block with its frame to `out`.
pub(super) fn append_block(
    frame: BlockFrame,
    compressor: &mut Compressor,
    raw: &[u8],
    out: &mut Vec<u8>,
) {
    assert!(u32::try_from(raw.len()).is_ok(), "the length of a block fits its header");
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

/// Returns the header of a data block that is not compressed as a whole.
pub(super) fn data_header(encoding: u8, length: usize) -> [u8; BLOCK_HEADER_BYTES] {
    let mut header = [0; BLOCK_HEADER_BYTES];
    header[0] = BlockKind::Data as u8;
    header[2] = encoding;
    header[4..8].copy_from_slice(&(length as u32).to_le_bytes());
    header[8..].copy_from_slice(&(length as u32).to_le_bytes());
    header
}

/// Checks the front of a data block of `size` bytes with its frame, and returns its encoding.
///
/// # Errors
///
/// A description of the damage.
pub(super) fn open_front(front: &[u8], size: u32) -> Result<u8, String> {
    check(front)?;
    let length = (size as usize).saturating_sub(BLOCK_HEADER_BYTES + CHECKSUM_BYTES);
    match *front {
        [_, _, encoding, ..] if front.starts_with(&data_header(encoding, length)) => Ok(encoding),
        _ => Err("not the header of a data block".to_owned()),
    }
}

/// Checks bytes that end with the checksum of all before.
///
/// # Errors
///
/// A description of the damage.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let Some((covered, stored)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err("the block is too short".to_owned());
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), crc32c::crc32c(covered));
    if stored != computed {
        return Err(format!("checksum mismatch: computed {computed:08x}, stored {stored:08x}"));
    }
    Ok(())
}

/// Checks the frame of a block and returns its raw bytes with their encoding.
///
/// # Errors
///
/// A description of the damage.
pub(super) fn open_block(kind: BlockKind, framed: &[u8]) -> Result<Block, String> {
    check(framed)?;
    let end = framed.len() - CHECKSUM_BYTES;
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

/// Checks a trailer and returns the handle of the properties.
pub(super) fn open_trailer(
    trailer: &[u8; TRAILER_BYTES],
    file_bytes: u64,
) -> Result<BlockHandle, String> {
    if trailer[28..] != FILE_MAGIC {
        return Err("not a store file, or truncated".to_owned());
    }
    let (stored, computed) = (u32_at(trailer, 24), crc32c::crc32c(&trailer[..24]));
    if stored != Some(computed) {
        return Err(format!("checksum mismatch of the trailer: computed {computed:08x}"));
    }
    let version = u32_at(trailer, 12).unwrap_or_default();
    if version != FILE_VERSION {
        let known = format!("the supported version is {FILE_VERSION}");
        return Err(format!("unsupported file version {version}; {known}"));
    }
    if u64_at(trailer, 16) != Some(file_bytes) {
        return Err(format!("the file size of {file_bytes} bytes does not match the trailer"));
    }
    let offset = u64_at(trailer, 0).unwrap_or_default();
    Ok(BlockHandle::whole(offset, u32_at(trailer, 8).unwrap_or_default()))
}
