//! How a record becomes bytes: its payload, and the frames that carry the payload.
//!
//! Byte by byte in `docs/formats/wal.md`. A payload longer than [`FRAGMENT_BYTES_MAX`] is cut into
//! several frames, so that a reader never trusts a huge length.

use crate::cell::{Cell, CellType, Sequence, Timestamp};
use crate::descriptor::RegionId;
use crate::wal::{Record, RegionEdit};

/// The first bytes of a segment.
pub(super) const SEGMENT_MAGIC: [u8; 8] = *b"bennuwal";
/// The version this code writes and reads.
pub(super) const SEGMENT_VERSION: u32 = 1;
/// Magic, version, segment number, checksum.
pub(super) const SEGMENT_HEADER_BYTES: usize = 8 + 4 + 4 + 4;
/// Checksum, length, segment number, synced bytes, kind.
pub(super) const FRAME_HEADER_BYTES: usize = 4 + 4 + 4 + 8 + 1;
/// Payload bytes of a frame at most.
pub(super) const FRAGMENT_BYTES_MAX: usize = 4 << 20;

/// Which part of a record a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Full = 1,
    First = 2,
    Middle = 3,
    Last = 4,
}

/// A frame whose checksum is right.
pub(super) struct Frame<'a> {
    pub(super) kind: FrameKind,
    /// Bytes of the segment that were known to be on disk when the frame was made.
    pub(super) synced_bytes: u64,
    pub(super) payload: &'a [u8],
}

const TIMESTAMP_FOLLOWS: u8 = 0x80;
const ROW_AS_BEFORE: u8 = 0x40;

/// Returns the header of a segment.
pub(super) fn segment_header(number: u32) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    header[..8].copy_from_slice(&SEGMENT_MAGIC);
    header[8..12].copy_from_slice(&SEGMENT_VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..16]);
    header[16..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Appends the frames of a record. `payload` is scratch.
pub(super) fn append_frames(
    record: &Record,
    segment: u32,
    synced_bytes: u64,
    payload: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    payload.clear();
    encode_record(record, payload);
    let fragment_count = payload.len().div_ceil(FRAGMENT_BYTES_MAX);
    for (index, fragment) in payload.chunks(FRAGMENT_BYTES_MAX).enumerate() {
        let kind = match (index, index + 1 == fragment_count) {
            (0, true) => FrameKind::Full,
            (0, false) => FrameKind::First,
            (_, false) => FrameKind::Middle,
            (_, true) => FrameKind::Last,
        };
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(fragment.len() as u32).to_le_bytes());
        out.extend_from_slice(&segment.to_le_bytes());
        out.extend_from_slice(&synced_bytes.to_le_bytes());
        out.push(kind as u8);
        out.extend_from_slice(fragment);
        let checksum = crc32c::crc32c(&out[start + 4..]);
        out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Returns the frame at the start of `bytes` if it is whole and right.
pub(super) fn parse_frame(bytes: &[u8], segment: u32) -> Option<Frame<'_>> {
    let header = bytes.get(..FRAME_HEADER_BYTES)?;
    // The segment number first: it makes the search for frames in damaged bytes cheap.
    if header[8..12] != segment.to_le_bytes() {
        return None;
    }
    let length = u32::from_le_bytes(header[4..8].try_into().ok()?) as usize;
    if length == 0 || length > FRAGMENT_BYTES_MAX {
        return None;
    }
    let payload = bytes[FRAME_HEADER_BYTES..].get(..length)?;
    let kind = match header[20] {
        1 => FrameKind::Full,
        2 => FrameKind::First,
        3 => FrameKind::Middle,
        4 => FrameKind::Last,
        _ => return None,
    };
    let checksum = crc32c::crc32c(&bytes[4..FRAME_HEADER_BYTES + length]);
    if header[..4] != checksum.to_le_bytes() {
        return None;
    }
    let synced_bytes = u64::from_le_bytes(header[12..20].try_into().ok()?);
    Some(Frame { kind, synced_bytes, payload })
}

fn encode_record(record: &Record, out: &mut Vec<u8>) {
    out.extend_from_slice(&record.sequence.0.to_le_bytes());
    out.extend_from_slice(&record.timestamp.0.to_le_bytes());
    push_varint(out, record.edits.len() as u64);
    for edit in &record.edits {
        push_varint(out, edit.region.0);
        push_varint(out, edit.cells.len() as u64);
        let mut previous_row: Option<&[u8]> = None;
        for cell in &edit.cells {
            encode_cell(cell, record.timestamp, previous_row, out);
            previous_row = Some(&cell.row);
        }
    }
}

fn encode_cell(cell: &Cell, commit: Timestamp, previous_row: Option<&[u8]>, out: &mut Vec<u8>) {
    let own_timestamp = cell.timestamp != commit && cell.timestamp != Timestamp::LATEST;
    let same_row = previous_row == Some(&cell.row);
    let mut code = cell.cell_type as u8;
    code |= if own_timestamp { TIMESTAMP_FOLLOWS } else { 0 };
    code |= if same_row { ROW_AS_BEFORE } else { 0 };
    out.push(code);
    out.push(cell.family);
    if own_timestamp {
        out.extend_from_slice(&cell.timestamp.0.to_le_bytes());
    }
    if !same_row {
        push_varint(out, cell.row.len() as u64);
        out.extend_from_slice(&cell.row);
    }
    push_varint(out, cell.qualifier.len() as u64);
    out.extend_from_slice(&cell.qualifier);
    push_varint(out, cell.value.len() as u64);
    out.extend_from_slice(&cell.value);
}

/// Returns the record of a payload, or `None` if the bytes are not one.
pub(super) fn decode_record(payload: &[u8]) -> Option<Record> {
    let mut input = Input { bytes: payload };
    let sequence = Sequence(u64::from_le_bytes(input.array()?));
    let timestamp = Timestamp(i64::from_le_bytes(input.array()?));
    let edit_count = input.varint()?;
    let mut edits = Vec::new();
    for _ in 0..edit_count {
        let region = RegionId(input.varint()?);
        let cell_count = input.varint()?;
        let mut cells: Vec<Cell> = Vec::new();
        for _ in 0..cell_count {
            let cell = decode_cell(&mut input, cells.last(), sequence, timestamp)?;
            cells.push(cell);
        }
        edits.push(RegionEdit { region, cells });
    }
    input.bytes.is_empty().then_some(Record { sequence, timestamp, edits })
}

fn decode_cell(
    input: &mut Input<'_>,
    previous: Option<&Cell>,
    sequence: Sequence,
    commit: Timestamp,
) -> Option<Cell> {
    let [code, family] = input.array()?;
    let cell_type = CellType::from_code(code & !(TIMESTAMP_FOLLOWS | ROW_AS_BEFORE))?;
    let timestamp = if code & TIMESTAMP_FOLLOWS == 0 {
        commit
    } else {
        Timestamp(i64::from_le_bytes(input.array()?))
    };
    let row =
        if code & ROW_AS_BEFORE == 0 { input.slice()?.to_vec() } else { previous?.row.clone() };
    let qualifier = input.slice()?.to_vec();
    let value = input.slice()?.to_vec();
    Some(Cell { row, family, qualifier, timestamp, sequence, cell_type, value })
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn slice(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(row: &[u8], timestamp: i64, value: Vec<u8>) -> Cell {
        Cell {
            row: row.to_vec(),
            family: 1,
            qualifier: b"q".to_vec(),
            timestamp: Timestamp(timestamp),
            sequence: Sequence(7),
            cell_type: CellType::Put,
            value,
        }
    }

    #[test]
    fn records_survive_and_latest_becomes_the_commit_time() {
        let record = Record {
            sequence: Sequence(7),
            timestamp: Timestamp(99),
            edits: vec![RegionEdit {
                region: RegionId(300),
                cells: vec![
                    cell(b"a", i64::MAX, b"v".to_vec()),
                    cell(b"a", -5, Vec::new()),
                    cell(b"b", 99, vec![1; FRAGMENT_BYTES_MAX * 2]),
                ],
            }],
        };
        let (mut payload, mut frames) = (Vec::new(), Vec::new());
        append_frames(&record, 3, 20, &mut payload, &mut frames);
        let (mut position, mut joined, mut kinds) = (0, Vec::new(), Vec::new());
        while position < frames.len() {
            let frame = parse_frame(&frames[position..], 3).unwrap();
            assert_eq!(frame.synced_bytes, 20);
            kinds.push(frame.kind);
            joined.extend_from_slice(frame.payload);
            position += FRAME_HEADER_BYTES + frame.payload.len();
        }
        assert_eq!(kinds, [FrameKind::First, FrameKind::Middle, FrameKind::Last]);
        let decoded = decode_record(&joined).unwrap();
        assert_eq!(decoded.edits[0].cells[0].timestamp, Timestamp(99));
        let mut expected = record;
        expected.edits[0].cells[0].timestamp = Timestamp(99);
        assert_eq!(decoded, expected);
        for length in 0..40 {
            assert_eq!(decode_record(&joined[..length]), None);
        }
        assert!(parse_frame(&frames, 4).is_none(), "the frame of another segment");
    }

    /// The example of `docs/formats/wal.md`.
    #[test]
    fn the_documented_example_holds() {
        let record = Record {
            sequence: Sequence(7),
            timestamp: Timestamp(9),
            edits: vec![RegionEdit {
                region: RegionId(1),
                cells: vec![cell(b"r", 9, b"v".to_vec())],
            }],
        };
        let mut bytes = segment_header(1).to_vec();
        append_frames(&record, 1, 20, &mut Vec::new(), &mut bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let documented: String = include_str!("../../../docs/formats/wal.md")
            .lines()
            .skip_while(|line| *line != "```hex")
            .skip(1)
            .take_while(|line| *line != "```")
            .flat_map(|line| line.split_once('|').map_or(line, |(hex, _)| hex).chars())
            .filter(|c| !c.is_whitespace())
            .collect();
        assert_eq!(hex, documented);
    }
}
