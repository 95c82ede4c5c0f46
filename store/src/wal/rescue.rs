//! Salvage of a damaged log: copies all readable records to a new log, past damaged or missing
//! ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::cell::Sequence;
use crate::descriptor::{DatabaseId, RegionId};
use crate::env::{Env, SegmentFile};
use crate::error::Result;
use crate::wal::cells::CommitClock;
use crate::wal::reader::{LogPosition, SegmentScan, segment_numbers, segment_path};
use crate::wal::record::{Header, LogEnd, ManifestMark, Record, RecordKind, StatedLengths};
use crate::wal::record::{SEGMENT_HEADER_BYTES, Start, parse_mark, parse_start};
use crate::wal::record::{push_read_commit, push_start, seal, segment_header};

/// Bytes per write.
const WRITE_BYTES: usize = 1 << 20;

/// Result of copying a log.
pub(crate) struct RescuedLog {
    /// Number of commits.
    pub(crate) record_count: u64,
    /// The last commit.
    pub(crate) last: CommitClock,
    /// End of the copy.
    pub(crate) end: LogPosition,
    /// End of the log that was read.
    pub(crate) read_to: LogPosition,
    /// Length of the manifest on disk, as far as the log states it.
    pub(crate) manifest: ManifestMark,
    /// Descriptions of the missing parts.
    pub(crate) losses: Vec<String>,
}

/// The only segment of the copy.
const NUMBER: u32 = 1;

/// Copies the readable commits of the log in `from`, in order, to a new log in `to`. Commits at
/// or below `released` are not reported as missing. `seen` is called with each commit and each of
/// its regions.
///
/// # Errors
///
/// Errors of writing the copy, and I/O errors.
pub(crate) fn rescue(
    env: &dyn Env,
    from: &Path,
    (to, database): (&Path, DatabaseId),
    released: Sequence,
    seen: &mut dyn FnMut(RegionId, Sequence),
) -> Result<RescuedLog> {
    let numbers = segment_numbers(env, from)?;
    let chain = Chain::of(env, from, &numbers)?;
    let mut copy = LogCopy::begin(env, to, database)?;
    let mut losses = chain.missing(&numbers, released);
    let mut read_to = LogPosition { segment: 0, offset: 0 };
    for number in numbers.into_iter().filter(|number| !chain.is_given_up(*number)) {
        let mut scan = SegmentScan::open(env, from, number)?;
        let limit = chain.ends.get(&number).copied().unwrap_or(u64::MAX);
        let path = segment_path(from, number);
        let mut whole_to = scan.skip_header()?.map_or(0, |_| scan.position());
        loop {
            let start = scan.position();
            match if start < limit { scan.next_header()? } else { None } {
                Some(header) => {
                    if start != whole_to {
                        losses.push(format!(
                            "{}: bytes {whole_to} to {start} cannot be read: commits after \
                             sequence number {} are missing",
                            path.display(),
                            copy.last.sequence.0
                        ));
                    }
                    whole_to = scan.position();
                    copy.note(&header, scan.body(), number);
                    let is_new = header.clock.sequence > copy.last.sequence;
                    if header.kind == RecordKind::Commit && is_new {
                        copy.add(header.clock, scan.body(), seen)?;
                    }
                }
                None if start < limit && scan.find_record(start)? => {}
                None => break,
            }
        }
        read_to = LogPosition { segment: number, offset: whole_to };
        if chain.ends.contains_key(&number) && whole_to < limit {
            losses.push(format!(
                "{}: bytes {whole_to} to {limit} cannot be read: commits after sequence number {} \
                 are missing",
                path.display(),
                copy.last.sequence.0
            ));
        }
    }
    copy.finish(read_to, losses)
}

/// Chain of the segments, as far as their starts can be read.
struct Chain {
    /// End of each segment that is not the last.
    ends: BTreeMap<u32, u64>,
    /// The predecessor of each segment, and the last sequence there.
    before: BTreeMap<u32, (u32, Sequence)>,
}

impl Chain {
    fn of(env: &dyn Env, from: &Path, numbers: &[u32]) -> Result<Chain> {
        let mut chain = Chain { ends: BTreeMap::new(), before: BTreeMap::new() };
        for &number in numbers {
            if let Some((Start { before, .. }, last)) =
                SegmentScan::open(env, from, number)?.start()?
            {
                // Of two segments with the same predecessor, the one with the higher number
                // counts.
                chain.ends.insert(before.segment, before.byte_count);
                chain.before.retain(|_, (segment, _)| *segment != before.segment);
                chain.before.insert(number, (before.segment, last));
            }
        }
        Ok(chain)
    }

    /// Returns whether a later segment replaces this one.
    fn is_given_up(&self, number: u32) -> bool {
        self.before.iter().any(|(after, (before, _))| *before < number && number < *after)
    }

    /// Describes what is missing between segments.
    fn missing(&self, numbers: &[u32], released: Sequence) -> Vec<String> {
        let missing = self
            .before
            .values()
            .filter(|(before, last)| *before > 0 && *last > released && !numbers.contains(before));
        missing
            .map(|(before, last)| {
                format!(
                    "segment {before} is missing: commits up to sequence number {} are lost",
                    last.0
                )
            })
            .collect()
    }
}

/// The log that is written.
struct LogCopy {
    file: Arc<dyn SegmentFile>,
    pending: Vec<u8>,
    byte_count: u64,
    record_count: u64,
    last: CommitClock,
    manifest: ManifestMark,
}

impl LogCopy {
    fn begin(env: &dyn Env, to: &Path, database: DatabaseId) -> Result<LogCopy> {
        env.create_directory(to)?;
        let file = env.create_segment(&segment_path(to, NUMBER))?;
        env.sync_directory(to)?;
        let mut pending = segment_header(NUMBER, database).to_vec();
        let nowhere = LogEnd { segment: 0, byte_count: 0 };
        push_start(&mut pending, (nowhere, Sequence(0)), StatedLengths::default());
        seal(&mut pending[SEGMENT_HEADER_BYTES..], NUMBER, nowhere);
        let last = CommitClock::default();
        let manifest = ManifestMark::default();
        Ok(LogCopy { file, pending, byte_count: 0, record_count: 0, last, manifest })
    }

    /// Updates the length of the manifest from a record.
    fn note(&mut self, header: &Header, body: &[u8], number: u32) {
        let known = match header.kind {
            RecordKind::Commit => None,
            RecordKind::Mark => parse_mark(body),
            RecordKind::Start => parse_start(body, number).map(|start| start.known),
        };
        self.manifest = self.manifest.max(known.unwrap_or_default().manifest);
    }

    fn add(
        &mut self,
        clock: CommitClock,
        body: &[u8],
        seen: &mut dyn FnMut(RegionId, Sequence),
    ) -> Result<()> {
        let Some(record) = Record::of(clock, body) else { return Ok(()) };
        record.edits().for_each(|(region, _)| seen(region, clock.sequence));
        let start = self.pending.len();
        push_read_commit(&mut self.pending, clock, body);
        seal(&mut self.pending[start..], NUMBER, LogEnd { segment: 0, byte_count: 0 });
        self.record_count += 1;
        self.last = clock;
        if self.pending.len() >= WRITE_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        self.file.write_at(self.byte_count, &self.pending)?;
        self.byte_count += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    fn finish(mut self, read_to: LogPosition, losses: Vec<String>) -> Result<RescuedLog> {
        self.write()?;
        self.file.sync()?;
        Ok(RescuedLog {
            record_count: self.record_count,
            last: self.last,
            end: LogPosition { segment: NUMBER, offset: self.byte_count },
            read_to,
            manifest: self.manifest,
            losses,
        })
    }
}
