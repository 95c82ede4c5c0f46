//! Recovery: reads the segments of a log and tells a torn tail from damage.
//!
//! The tail of the last segment may hold anything after a crash: what was never synced may be
//! missing, cut short, or there with holes in it. A frame says how many bytes of its segment were
//! on disk when it was made; so a bad place that a later frame knows to have been on disk is
//! damage, and one that no later frame vouches for is a tail, and is cut.

use std::path::{Path, PathBuf};

use crate::cell::Sequence;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::wal::Record;
use crate::wal::record::{FRAME_HEADER_BYTES, FrameKind, SEGMENT_HEADER_BYTES, SEGMENT_MAGIC};
use crate::wal::record::{SEGMENT_VERSION, decode_record, parse_frame, segment_header};

/// A segment that is not written any more.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) number: u32,
    pub(super) byte_count: u64,
    /// Highest sequence in it; 0 if it has no record.
    pub(super) highest: Sequence,
}

/// Returns the path of a segment.
pub(super) fn segment_path(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("wal-{number:08}.log"))
}

fn segment_number(name: &Path) -> Option<u32> {
    name.to_str()?.strip_prefix("wal-")?.strip_suffix(".log")?.parse().ok()
}

/// Reads all segments, hands the records to `replay`, cuts a torn tail, and returns the segments.
pub(super) fn recover(
    env: &dyn Env,
    directory: &Path,
    after: Sequence,
    replay: &mut dyn FnMut(Record) -> Result<()>,
) -> Result<Vec<Segment>> {
    let mut numbers: Vec<u32> =
        env.list(directory)?.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    let mut segments = Vec::new();
    for (index, &number) in numbers.iter().enumerate() {
        let is_last = index + 1 == numbers.len();
        if let Some(missing) = index.checked_sub(1).map(|before| numbers[before] + 1)
            && missing != number
        {
            let path = segment_path(directory, missing);
            return Err(Error::corrupt(path, 0, "the segment is missing"));
        }
        if let Some(segment) = recover_segment(env, directory, number, is_last, after, replay)? {
            segments.push(segment);
        }
    }
    Ok(segments)
}

/// Reads one segment; `None` if nothing of it is left.
fn recover_segment(
    env: &dyn Env,
    directory: &Path,
    number: u32,
    is_last: bool,
    after: Sequence,
    replay: &mut dyn FnMut(Record) -> Result<()>,
) -> Result<Option<Segment>> {
    let path = segment_path(directory, number);
    let file = env.open(&path)?;
    let byte_count = usize::try_from(file.byte_count()?)
        .map_err(|_| Error::corrupt(&path, 0, "the segment is too large"))?;
    let mut bytes = vec![0; byte_count];
    file.read_at(0, &mut bytes)?;
    let mut highest = Sequence(0);
    let mut end = 0;
    if check_header(&path, &bytes, number, is_last)? {
        let mut scan = SegmentScan { bytes: &bytes, number, position: SEGMENT_HEADER_BYTES };
        end = scan.position;
        while let Some(payload) = scan.next_payload() {
            let record = decode_record(&payload)
                .ok_or_else(|| Error::corrupt(&path, end as u64, "the record is malformed"))?;
            highest = highest.max(record.sequence);
            end = scan.position;
            if record.sequence > after {
                replay(record)?;
            }
        }
    }
    if end < bytes.len() {
        if !is_last || vouched_for(&bytes, number, end) {
            let detail = "a log record is damaged before the end of the log; restore the segment, \
                          or cut it here and lose what follows";
            return Err(Error::corrupt(path, end as u64, detail));
        }
        tracing::warn!(segment = number, offset = end, "cut the torn tail of the log");
    }
    if end <= SEGMENT_HEADER_BYTES && is_last {
        env.remove(&path)?;
        env.sync_directory(directory)?;
        return Ok(None);
    }
    if end < bytes.len() {
        cut(env, directory, number, &bytes[..end])?;
    }
    Ok(Some(Segment { number, byte_count: end as u64, highest }))
}

/// Returns whether the header is there; `false` only for a torn one.
fn check_header(path: &Path, bytes: &[u8], number: u32, is_last: bool) -> Result<bool> {
    let Some(header) = bytes.get(..SEGMENT_HEADER_BYTES) else {
        if is_last {
            return Ok(false);
        }
        return Err(Error::corrupt(path, 0, "the segment ends within its header"));
    };
    if header == segment_header(number) {
        return Ok(true);
    }
    let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
    if header[..8] == SEGMENT_MAGIC && version != SEGMENT_VERSION {
        let detail = format!("segment version {version} is not known, {SEGMENT_VERSION} is");
        return Err(Error::corrupt(path, 8, detail));
    }
    if is_last && !vouched_for(bytes, number, 0) {
        return Ok(false);
    }
    Err(Error::corrupt(path, 0, "the segment has no right header"))
}

/// Returns whether a frame after `position` knows the bytes there to have been on disk.
fn vouched_for(bytes: &[u8], number: u32, position: usize) -> bool {
    (position + 1..bytes.len()).any(|start| {
        parse_frame(&bytes[start..], number)
            .is_some_and(|frame| frame.synced_bytes > position as u64)
    })
}

/// Replaces a segment by its whole part.
fn cut(env: &dyn Env, directory: &Path, number: u32, whole: &[u8]) -> Result<()> {
    let temporary = directory.join("wal-cut.tmp");
    let mut file = env.create(&temporary)?;
    file.append(whole)?;
    file.sync()?;
    env.rename(&temporary, &segment_path(directory, number))
}

struct SegmentScan<'a> {
    bytes: &'a [u8],
    number: u32,
    /// After the last whole record.
    position: usize,
}

impl SegmentScan<'_> {
    /// Returns the next whole payload, or `None` at the end or at the first bad byte.
    fn next_payload(&mut self) -> Option<Vec<u8>> {
        let mut payload = Vec::new();
        let mut position = self.position;
        loop {
            let frame = parse_frame(self.bytes.get(position..)?, self.number)?;
            let begins = matches!(frame.kind, FrameKind::Full | FrameKind::First);
            if begins != payload.is_empty() {
                return None;
            }
            payload.extend_from_slice(frame.payload);
            position += FRAME_HEADER_BYTES + frame.payload.len();
            if matches!(frame.kind, FrameKind::Full | FrameKind::Last) {
                self.position = position;
                return Some(payload);
            }
        }
    }
}
