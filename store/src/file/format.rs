//! The frame around every block, the properties and the trailer.

use crate::cache::Block;
use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::descriptor::{BloomFilter, Compression};

/// The last bytes of a file.
pub(super) const FILE_MAGIC: [u8; 8] = *b"bennusfl";
/// The version this code writes and reads.
pub(super) const FILE_VERSION: u32 = 1;
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

/// Appends a block with its frame to `out`.
pub(super) fn append_block(frame: BlockFrame, raw: &[u8], out: &mut Vec<u8>) {
    let BlockFrame { kind, encoding, compression } = frame;
    let start = out.len();
    out.extend_from_slice(&[kind as u8, 0, encoding, 0]);
    out.extend_from_slice(&(raw.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    let body = out.len();
    if compression == Compression::Lz4 {
        out.resize(body + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
        match lz4_flex::block::compress_into(raw, &mut out[body..]) {
            Ok(length) if length < raw.len() => {
                out.truncate(body + length);
                out[start + 1] = 1;
            }
            // Does not get smaller: stored as it is.
            _ => out.truncate(body),
        }
    }
    if out[start + 1] == 0 {
        out.extend_from_slice(raw);
    }
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
pub(super) fn open_block(kind: BlockKind, framed: Vec<u8>) -> Result<Block, String> {
    let Some(end) = framed.len().checked_sub(CHECKSUM_BYTES) else {
        return Err("the block is too short".to_owned());
    };
    let stored = u32_at(&framed, end).unwrap_or_default();
    let computed = crc32c::crc32c(&framed[..end]);
    if stored != computed {
        return Err(format!("crc32c is {computed:08x}, the block says {stored:08x}"));
    }
    let (Some(raw_length), Some(stored_length)) = (u32_at(&framed, 4), u32_at(&framed, 8)) else {
        return Err("the block is too short".to_owned());
    };
    let (raw_length, stored_length) = (raw_length as usize, stored_length as usize);
    if framed[0] != kind as u8 || BLOCK_HEADER_BYTES + stored_length != end {
        return Err(format!("not a block of kind {}", kind as u8));
    }
    let encoding = framed[2];
    match framed[1] {
        0 if raw_length == stored_length => {
            let mut raw = framed;
            raw.truncate(end);
            raw.drain(..BLOCK_HEADER_BYTES);
            Ok(Block::new(encoding, raw))
        }
        // LZ4 cannot shrink by more than 255 times: no more is allocated on the header's word.
        1 if raw_length / 256 <= stored_length => {
            let mut raw = vec![0; raw_length];
            let body = &framed[BLOCK_HEADER_BYTES..end];
            match lz4_flex::block::decompress_into(body, &mut raw) {
                Ok(length) if length == raw_length => Ok(Block::new(encoding, raw)),
                _ => Err("the block cannot be decompressed".to_owned()),
            }
        }
        _ => Err("the block's compression or length is unknown".to_owned()),
    }
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

/// What a file knows about its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProperties {
    /// First row.
    pub first_row: Vec<u8>,
    /// Last row.
    pub last_row: Vec<u8>,
    /// Lowest timestamp of any cell.
    pub min_timestamp: Timestamp,
    /// Highest timestamp of any cell.
    pub max_timestamp: Timestamp,
    /// Lowest timestamp of a put; `i64::MAX` if there is none.
    pub min_put_timestamp: Timestamp,
    /// Lowest sequence.
    pub min_sequence: Sequence,
    /// Highest sequence.
    pub max_sequence: Sequence,
    /// Cells.
    pub cell_count: u64,
    /// Cells of each type: put, delete, delete family version, delete column, delete family.
    pub type_counts: [u64; 5],
    /// Bytes of keys and values before any compression.
    pub raw_bytes: u64,
    /// What the bloom blocks hold.
    pub bloom_filter: BloomFilter,
    pub(super) data_index: BlockHandle,
    pub(super) bloom_index: BlockHandle,
}

// Tags of properties. A reader skips those that it does not know.
const FIRST_ROW: u8 = 1;
const LAST_ROW: u8 = 2;
const NUMBERS: u8 = 3;
const TYPE_COUNTS: u8 = 4;
const BLOOM: u8 = 5;
const DATA_INDEX: u8 = 6;
const BLOOM_INDEX: u8 = 7;

/// Levels of the data index: the root lists data blocks.
const INDEX_LEVELS: u8 = 1;

fn type_slot(cell_type: CellType) -> usize {
    match cell_type {
        CellType::Put => 0,
        CellType::Delete => 1,
        CellType::DeleteFamilyVersion => 2,
        CellType::DeleteColumn => 3,
        CellType::DeleteFamily => 4,
    }
}

impl FileProperties {
    pub(super) fn new(bloom_filter: BloomFilter) -> FileProperties {
        FileProperties {
            first_row: Vec::new(),
            last_row: Vec::new(),
            min_timestamp: Timestamp(i64::MAX),
            max_timestamp: Timestamp(i64::MIN),
            min_put_timestamp: Timestamp(i64::MAX),
            min_sequence: Sequence(u64::MAX),
            max_sequence: Sequence(0),
            cell_count: 0,
            type_counts: [0; 5],
            raw_bytes: 0,
            bloom_filter,
            data_index: BlockHandle::default(),
            bloom_index: BlockHandle::default(),
        }
    }

    /// Returns the number of cells of a type.
    pub fn count_of(&self, cell_type: CellType) -> u64 {
        self.type_counts[type_slot(cell_type)]
    }

    /// Returns the number of delete markers.
    pub fn marker_count(&self) -> u64 {
        self.type_counts[1..].iter().sum()
    }

    pub(super) fn count(&mut self, parts: &KeyParts<'_>, byte_count: usize) {
        self.min_timestamp = self.min_timestamp.min(parts.timestamp);
        self.max_timestamp = self.max_timestamp.max(parts.timestamp);
        if parts.cell_type == CellType::Put {
            self.min_put_timestamp = self.min_put_timestamp.min(parts.timestamp);
        }
        self.min_sequence = self.min_sequence.min(parts.sequence);
        self.max_sequence = self.max_sequence.max(parts.sequence);
        self.cell_count += 1;
        self.type_counts[type_slot(parts.cell_type)] += 1;
        self.raw_bytes += byte_count as u64;
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut property = |tag: u8, parts: &[&[u8]]| {
            out.push(tag);
            let length: usize = parts.iter().map(|part| part.len()).sum();
            out.extend_from_slice(&(length as u32).to_le_bytes());
            parts.iter().for_each(|part| out.extend_from_slice(part));
        };
        property(FIRST_ROW, &[&self.first_row]);
        property(LAST_ROW, &[&self.last_row]);
        property(
            NUMBERS,
            &[
                &self.min_timestamp.0.to_le_bytes(),
                &self.max_timestamp.0.to_le_bytes(),
                &self.min_put_timestamp.0.to_le_bytes(),
                &self.min_sequence.0.to_le_bytes(),
                &self.max_sequence.0.to_le_bytes(),
                &self.cell_count.to_le_bytes(),
                &self.raw_bytes.to_le_bytes(),
            ],
        );
        let counts = self.type_counts.map(u64::to_le_bytes);
        property(TYPE_COUNTS, &[counts.as_flattened()]);
        let bloom = match self.bloom_filter {
            BloomFilter::None => 0,
            BloomFilter::Row => 1,
            BloomFilter::RowCol => 2,
        };
        property(BLOOM, &[&[bloom]]);
        let index = self.data_index;
        let (offset, size) = (index.offset.to_le_bytes(), index.size.to_le_bytes());
        property(DATA_INDEX, &[&[INDEX_LEVELS], &offset, &size]);
        let index = self.bloom_index;
        property(BLOOM_INDEX, &[&index.offset.to_le_bytes(), &index.size.to_le_bytes()]);
    }

    /// Returns the properties of their block, or `None` if it is malformed.
    pub(super) fn decode(mut bytes: &[u8]) -> Option<FileProperties> {
        let mut properties = FileProperties::new(BloomFilter::None);
        let mut seen = 0_u32;
        while !bytes.is_empty() {
            let tag = bytes[0];
            let length = u32_at(bytes, 1)? as usize;
            let (value, rest) = bytes[5..].split_at_checked(length)?;
            bytes = rest;
            properties.take(tag, value)?;
            seen |= 1_u32.checked_shl(u32::from(tag)).unwrap_or(0);
        }
        (seen & 0b1111_1110 == 0b1111_1110).then_some(properties)
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<()> {
        match tag {
            FIRST_ROW => self.first_row = value.to_vec(),
            LAST_ROW => self.last_row = value.to_vec(),
            NUMBERS => {
                self.min_timestamp = Timestamp(u64_at(value, 0)? as i64);
                self.max_timestamp = Timestamp(u64_at(value, 8)? as i64);
                self.min_put_timestamp = Timestamp(u64_at(value, 16)? as i64);
                self.min_sequence = Sequence(u64_at(value, 24)?);
                self.max_sequence = Sequence(u64_at(value, 32)?);
                self.cell_count = u64_at(value, 40)?;
                self.raw_bytes = u64_at(value, 48)?;
            }
            TYPE_COUNTS => {
                for (slot, count) in self.type_counts.iter_mut().enumerate() {
                    *count = u64_at(value, slot * 8)?;
                }
            }
            BLOOM => {
                self.bloom_filter = match value.first()? {
                    0 => BloomFilter::None,
                    1 => BloomFilter::Row,
                    2 => BloomFilter::RowCol,
                    _ => return None,
                }
            }
            DATA_INDEX => {
                if *value.first()? != INDEX_LEVELS {
                    return None;
                }
                self.data_index =
                    BlockHandle { offset: u64_at(value, 1)?, size: u32_at(value, 9)? };
            }
            BLOOM_INDEX => {
                self.bloom_index =
                    BlockHandle { offset: u64_at(value, 0)?, size: u32_at(value, 8)? };
            }
            _ => {}
        }
        Some(())
    }
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
