//! Encoding of log records and segment headers.
//!
//! A record is a header and a body. The body and its checksum are made before the commit has its
//! sequence; the header is completed when the target segment is known, so that the same bytes can
//! be rewritten to another segment. The byte format is in `docs/formats/wal.md`.

use smallvec::SmallVec;

use crate::cell::{Sequence, Timestamp};
use crate::codec::{Input, push_varint};
use crate::descriptor::{DatabaseId, RegionId};
use crate::error::{Error, Result};
use crate::wal::cells::{CommitClock, LoggedCells, RegionEdit};

/// The first bytes of a segment.
pub(super) const SEGMENT_MAGIC: [u8; 8] = *b"bennuwal";
/// The version this code writes and reads.
pub(super) const SEGMENT_VERSION: u32 = 3;
/// Magic, version, segment number, database, checksum.
pub(super) const SEGMENT_HEADER_BYTES: usize = 8 + 4 + 4 + 16 + 4;
/// Checksum, body length, checksum of the body, segment number, synced mark, sequence, time, kind.
pub(super) const RECORD_HEADER_BYTES: usize = 4 + 4 + 4 + 4 + 8 + 8 + 8 + 1;
/// Number and end of the segment before, manifest, bytes of the file.
const START_BODY_BYTES: usize = 4 + 8 + 8 + 8 + 8;
/// Manifest, segment, bytes of its file.
const MARK_BODY_BYTES: usize = 8 + 8 + 4 + 8;
/// Bytes of a segment without commits: its header and its first record.
pub(super) const START_BYTES: u64 =
    (SEGMENT_HEADER_BYTES + RECORD_HEADER_BYTES + START_BODY_BYTES) as u64;

// Headers and bodies are encoded with these offsets.
const _: () = assert!(SEGMENT_HEADER_BYTES == 36 && RECORD_HEADER_BYTES == 41);
const _: () = assert!(START_BODY_BYTES == 36 && MARK_BODY_BYTES == 28);

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// The cells of a commit.
    Commit = 1,
    /// The end of the log before this segment; the first record of each.
    Start = 2,
    /// Lengths of the manifest and of the segment's file on disk.
    Mark = 3,
}

/// Length of the manifest on disk at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ManifestMark {
    /// Number of times that it had been rewritten.
    pub generation: u64,
    /// Its bytes.
    pub byte_count: u64,
}

impl ManifestMark {
    fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.byte_count) << 64 | u128::from(self.generation)).to_le_bytes()
    }

    fn from_bytes(bytes: [u8; 16]) -> ManifestMark {
        let packed = u128::from_le_bytes(bytes);
        ManifestMark { generation: packed as u64, byte_count: (packed >> 64) as u64 }
    }
}

/// On-disk lengths of other files when a record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StatedLengths {
    /// Length of the manifest.
    pub(super) manifest: ManifestMark,
    /// Number of this segment …
    pub(super) segment: u32,
    /// … and the length of its file.
    pub(super) allocated_bytes: u64,
}

/// Content of the first record of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    /// The end of the log before it.
    pub(super) before: LogEnd,
    /// Lengths of other files on disk.
    pub(super) known: StatedLengths,
}

/// A position in the log, exclusive: the bytes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogEnd {
    pub(super) segment: u32,
    pub(super) byte_count: u64,
}

impl LogEnd {
    fn to_bytes(self) -> [u8; 8] {
        // A mark that is too low is valid too.
        let byte_count = u32::try_from(self.byte_count).unwrap_or(u32::MAX);
        (u64::from(self.segment) << 32 | u64::from(byte_count)).to_le_bytes()
    }

    fn from_bytes(bytes: [u8; 8]) -> LogEnd {
        let packed = u64::from_le_bytes(bytes);
        LogEnd { segment: (packed >> 32) as u32, byte_count: packed & 0xffff_ffff }
    }
}

/// A header whose checksum was verified.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) kind: RecordKind,
    pub(super) body_bytes: usize,
    pub(super) body_checksum: u32,
    /// Synced end of the log when the record was written.
    pub(super) synced: LogEnd,
    pub(super) clock: CommitClock,
}

/// Length and checksum of a body, as in its header.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Body {
    byte_count: u32,
    checksum: u32,
}

impl Body {
    /// Returns length and checksum of the body of a commit.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if it is longer than a record can be.
    pub(super) fn of(edits: &[RegionEdit]) -> Result<Body> {
        let (mut byte_count, mut checksum) = (0, 0);
        for edit in edits {
            let prefix = prefix(edit);
            byte_count += prefix.len() + edit.cells.bytes().len();
            checksum = crc32c::crc32c_append(checksum, &prefix);
            checksum = crc32c::crc32c_append(checksum, edit.cells.bytes());
        }
        let too_long = |_| Error::InvalidRequest("the commit is longer than 4 GiB".into());
        Ok(Body { byte_count: u32::try_from(byte_count).map_err(too_long)?, checksum })
    }
}

/// Returns the bytes in front of the cells of a region.
fn prefix(edit: &RegionEdit) -> SmallVec<[u8; 20]> {
    let mut prefix = SmallVec::new();
    push_varint(&mut prefix, edit.region.0);
    push_varint(&mut prefix, edit.cells.bytes().len() as u64);
    prefix
}

/// Returns the header of a segment.
pub(super) fn segment_header(number: u32, database: DatabaseId) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    header[..8].copy_from_slice(&SEGMENT_MAGIC);
    header[8..12].copy_from_slice(&SEGMENT_VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&number.to_le_bytes());
    header[16..32].copy_from_slice(&database.0.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..32]);
    header[32..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Decoded header of a segment.
pub(super) struct SegmentHeader {
    pub(super) version: u32,
    pub(super) number: u32,
    pub(super) database: DatabaseId,
}

/// Decodes the header of a segment; `None` if it is truncated or its checksum is wrong. Of another
/// version, only the version is valid.
pub(super) fn parse_segment_header(bytes: &[u8]) -> Option<SegmentHeader> {
    let header = bytes.first_chunk::<SEGMENT_HEADER_BYTES>()?;
    if header[..8] != SEGMENT_MAGIC {
        return None;
    }
    let mut input = Input { bytes: &header[8..] };
    let version = u32::from_le_bytes(input.array()?);
    let number = u32::from_le_bytes(input.array()?);
    let database = DatabaseId(u128::from_le_bytes(input.array()?));
    let right = crc32c::crc32c(&header[..32]).to_le_bytes() == header[32..];
    // Earlier versions have no database: the checksum is in its place.
    let is_earlier = crc32c::crc32c(&header[..16]).to_le_bytes() == header[16..20];
    (right || is_earlier && version < SEGMENT_VERSION).then_some(SegmentHeader {
        version,
        number,
        database,
    })
}

/// Appends the record of a commit, to be sealed.
pub(super) fn push_commit(out: &mut Vec<u8>, clock: CommitClock, body: Body, edits: &[RegionEdit]) {
    out.reserve(RECORD_HEADER_BYTES + body.byte_count as usize);
    push_header(out, RecordKind::Commit, clock, body);
    let start = out.len();
    for edit in edits {
        out.extend_from_slice(&prefix(edit));
        out.extend_from_slice(edit.cells.bytes());
    }
    assert_eq!(out.len() - start, body.byte_count as usize, "the header states another length");
    debug_assert_eq!(crc32c::crc32c(&out[start..]), body.checksum, "the body was changed");
}

/// Appends the record of a commit as it was read, to be sealed.
pub(super) fn push_read_commit(out: &mut Vec<u8>, clock: CommitClock, body: &[u8]) {
    push_small(out, RecordKind::Commit, clock, body);
}

/// Appends the first record of a segment, to be sealed: the log before it ends at `previous`, and
/// the last commit there has sequence `last`. `known` is about this segment.
pub(super) fn push_start(
    out: &mut Vec<u8>,
    (previous, last): (LogEnd, Sequence),
    known: StatedLengths,
) {
    let mut bytes = [0; START_BODY_BYTES];
    bytes[..4].copy_from_slice(&previous.segment.to_le_bytes());
    bytes[4..12].copy_from_slice(&previous.byte_count.to_le_bytes());
    bytes[12..28].copy_from_slice(&known.manifest.to_bytes());
    bytes[28..].copy_from_slice(&known.allocated_bytes.to_le_bytes());
    let clock = CommitClock { sequence: last, timestamp: Timestamp(0) };
    push_small(out, RecordKind::Start, clock, &bytes);
}

/// Appends a record with lengths of other files on disk, to be sealed.
pub(super) fn push_mark(out: &mut Vec<u8>, known: StatedLengths) {
    let mut bytes = [0; MARK_BODY_BYTES];
    bytes[..16].copy_from_slice(&known.manifest.to_bytes());
    bytes[16..20].copy_from_slice(&known.segment.to_le_bytes());
    bytes[20..].copy_from_slice(&known.allocated_bytes.to_le_bytes());
    let clock = CommitClock { sequence: Sequence(0), timestamp: Timestamp(0) };
    push_small(out, RecordKind::Mark, clock, &bytes);
}

fn push_small(out: &mut Vec<u8>, kind: RecordKind, clock: CommitClock, bytes: &[u8]) {
    let body = Body { byte_count: bytes.len() as u32, checksum: crc32c::crc32c(bytes) };
    push_header(out, kind, clock, body);
    out.extend_from_slice(bytes);
}

fn push_header(out: &mut Vec<u8>, kind: RecordKind, clock: CommitClock, body: Body) {
    let mut header = [0; RECORD_HEADER_BYTES];
    header[4..8].copy_from_slice(&body.byte_count.to_le_bytes());
    header[8..12].copy_from_slice(&body.checksum.to_le_bytes());
    header[24..32].copy_from_slice(&clock.sequence.0.to_le_bytes());
    header[32..40].copy_from_slice(&clock.timestamp.0.to_le_bytes());
    header[40] = kind as u8;
    out.extend_from_slice(&header);
}

/// Completes the headers of all records in `records` for `segment`.
pub(super) fn seal(records: &mut [u8], segment: u32, synced: LogEnd) {
    let mut rest = records;
    while rest.len() >= RECORD_HEADER_BYTES {
        let first = std::mem::take(&mut rest).split_first_chunk_mut::<RECORD_HEADER_BYTES>();
        let Some((header, behind)) = first else { break };
        header[12..16].copy_from_slice(&segment.to_le_bytes());
        header[16..24].copy_from_slice(&synced.to_bytes());
        let checksum = crc32c::crc32c(&header[4..]);
        header[..4].copy_from_slice(&checksum.to_le_bytes());
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        assert!(length <= behind.len(), "a record of the log is cut");
        rest = &mut behind[length..];
    }
    assert!(rest.is_empty(), "the header of a record is cut");
}

/// Decodes the header at the start of `bytes`, if it is complete, valid and of this segment.
pub(super) fn parse_header(bytes: &[u8], segment: u32) -> Option<Header> {
    let header = bytes.first_chunk::<RECORD_HEADER_BYTES>()?;
    // The segment number first: it makes the search for records in damaged bytes cheap.
    if header[12..16] != segment.to_le_bytes() {
        return None;
    }
    let kind = match header[40] {
        1 => RecordKind::Commit,
        2 => RecordKind::Start,
        3 => RecordKind::Mark,
        _ => return None,
    };
    if header[..4] != crc32c::crc32c(&header[4..]).to_le_bytes() {
        return None;
    }
    let mut input = Input { bytes: &header[4..12] };
    let body_bytes = u32::from_le_bytes(input.array()?) as usize;
    let body_checksum = u32::from_le_bytes(input.array()?);
    input.bytes = &header[16..40];
    let synced = LogEnd::from_bytes(input.array()?);
    let sequence = Sequence(u64::from_le_bytes(input.array()?));
    let timestamp = Timestamp(i64::from_le_bytes(input.array()?));
    let clock = CommitClock { sequence, timestamp };
    Some(Header { kind, body_bytes, body_checksum, synced, clock })
}

/// Decodes the first record of a segment.
pub(super) fn parse_start(body: &[u8], number: u32) -> Option<Start> {
    let mut input = Input { bytes: body };
    let segment = u32::from_le_bytes(input.array()?);
    let byte_count = u64::from_le_bytes(input.array()?);
    let known = StatedLengths {
        manifest: ManifestMark::from_bytes(input.array()?),
        segment: number,
        allocated_bytes: u64::from_le_bytes(input.array()?),
    };
    let start = Start { before: LogEnd { segment, byte_count }, known };
    input.bytes.is_empty().then_some(start)
}

/// Decodes a mark.
pub(super) fn parse_mark(body: &[u8]) -> Option<StatedLengths> {
    let mut input = Input { bytes: body };
    let manifest = ManifestMark::from_bytes(input.array()?);
    let segment = u32::from_le_bytes(input.array()?);
    let allocated_bytes = u64::from_le_bytes(input.array()?);
    input.bytes.is_empty().then_some(StatedLengths { manifest, segment, allocated_bytes })
}

/// One commit, as read from the log.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    clock: CommitClock,
    body: &'a [u8],
}

impl<'a> Record<'a> {
    /// Returns the record of a body, or `None` if the bytes are malformed.
    pub(super) fn of(clock: CommitClock, body: &'a [u8]) -> Option<Record<'a>> {
        let record = Record { clock, body };
        let mut edits = record.edits();
        let whole = edits.by_ref().all(|(_, cells)| cells.is_whole());
        (whole && edits.input.bytes.is_empty()).then_some(record)
    }

    /// Returns the sequence and time of the commit.
    pub fn clock(&self) -> CommitClock {
        self.clock
    }

    /// Returns the cells written to each region.
    pub fn edits(&self) -> Edits<'a> {
        Edits { input: Input { bytes: self.body }, clock: self.clock }
    }
}

/// Iterator over the regions of a commit, with their cells.
#[derive(Debug, Clone)]
pub struct Edits<'a> {
    input: Input<'a>,
    clock: CommitClock,
}

impl<'a> Iterator for Edits<'a> {
    type Item = (RegionId, LoggedCells<'a>);

    fn next(&mut self) -> Option<(RegionId, LoggedCells<'a>)> {
        let mut input = self.input.clone();
        let region = RegionId(input.varint()?);
        let bytes = input.slice()?;
        self.input = input;
        Some((region, LoggedCells::new(bytes, self.clock)))
    }
}
