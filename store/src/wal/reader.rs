//! Reader of the log: segments in chain order, record by record, distinguishing a torn tail from
//! damage.
//!
//! ```text
//!   segment 7                      segment 9
//!   | start | a | b | c |          | start: log ends in 7 after b | c | d | 0 0 0 …
//!                       `- ignored
//! ```
//!
//! The first record of a segment says where the log before it ends. So the segments form a chain,
//! which is followed backwards from the newest one. Anything outside the chain is
//! obsolete: a segment that was prepared and never used, or records that were rewritten to
//! another segment.
//!
//! After a crash, bytes at the end of the log that were never synced may be missing, truncated,
//! or present with holes. Each record states the synced end of the log when it was made. So an
//! invalid record that a later record states to have been on disk is damage; one that no later
//! record covers is a torn tail, and is cut. Space for records is on disk before it is used, and
//! earlier records state its length: a file that is shorter was truncated. The manifest too
//! states how far the log was on disk when an edit was made, or its end when the store was
//! stopped.
//!
//! [`recover`] replays the log when a store opens; [`WalReader`] also serves archives and tools.

use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cell::Sequence;
use crate::descriptor::DatabaseId;
use crate::env::{Env, ReadFile};
use crate::error::{Error, RESTORE, Result};
use crate::wal::record::{
    Header, LogEnd, ManifestMark, RECORD_HEADER_BYTES, Record, RecordKind, SEGMENT_HEADER_BYTES,
    SEGMENT_VERSION, Start, StatedLengths, parse_header, parse_mark, parse_segment_header,
    parse_start,
};

/// Bytes per read.
const WINDOW_BYTES: usize = 256 << 10;

/// The part of a segment that belongs to the log.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) number: u32,
    /// Length of that part.
    pub(super) byte_count: u64,
    /// The last sequence in the log up to its end.
    pub(super) highest: Sequence,
    /// The last sequence in the log before it.
    pub(super) before: Sequence,
}

impl Segment {
    pub(super) fn end(&self) -> LogEnd {
        LogEnd { segment: self.number, byte_count: self.byte_count }
    }

    /// Returns whether it contains commits.
    pub(super) fn has_commits(&self) -> bool {
        self.highest > self.before
    }
}

/// A position in the log: of a record, or of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// Number of the segment.
    pub segment: u32,
    /// Offset of the record in the segment.
    pub offset: u64,
}

impl From<LogEnd> for LogPosition {
    fn from(LogEnd { segment, byte_count }: LogEnd) -> LogPosition {
        LogPosition { segment, offset: byte_count }
    }
}

/// Iterator over the records of a log, oldest first: of a data directory, also while a store has
/// it open, of an archive, or of one segment.
///
/// Holds one record and a window of a segment in memory. A torn tail ends the iteration.
pub struct WalReader {
    env: Arc<dyn Env>,
    directory: PathBuf,
    links: Vec<Link>,
    /// Index of the link after the open one.
    next: usize,
    scan: Option<SegmentScan>,
    from: Bound<Sequence>,
    to: Bound<Sequence>,
    last: Sequence,
    /// The last sequence before the open segment.
    before: Sequence,
    /// Length of the manifest on disk, as far as the records read so far state it.
    manifest: ManifestMark,
    /// The segments read so far.
    pub(super) segments: Vec<Segment>,
    /// Segments outside the chain.
    pub(super) obsolete_segments: Vec<u32>,
}

/// A segment of the chain.
#[derive(Debug, Clone)]
struct Link {
    number: u32,
    /// The end of the log before it.
    before: LogEnd,
    /// The last sequence before it.
    last: Sequence,
    database: DatabaseId,
}

/// Returns the path of a segment.
pub(super) fn segment_path(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("wal-{number:08}.log"))
}

/// Returns the number in the name of a segment, which has eight digits or more.
fn segment_number(name: &Path) -> Option<u32> {
    let number = name.to_str()?.strip_prefix("wal-")?.strip_suffix(".log")?.parse().ok()?;
    // Not "wal-+7.log" or "wal-7.log".
    segment_path(Path::new(""), number).as_os_str().eq(name.as_os_str()).then_some(number)
}

/// Logs a warning for each file in the directory of the log that is not a segment. Such files are
/// not removed.
pub(super) fn warn_of_other_files(env: &dyn Env, directory: &Path) -> Result<()> {
    for name in env.list(directory)? {
        if segment_number(&name).is_none() {
            let name = name.display();
            tracing::warn!(%name, "ignoring a file that is not a WAL segment");
        }
    }
    Ok(())
}

/// Returns the numbers of the segments in a directory, ascending.
pub(super) fn segment_numbers(env: &dyn Env, directory: &Path) -> Result<Vec<u32>> {
    let mut numbers: Vec<u32> =
        env.list(directory)?.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

impl WalReader {
    /// Opens the log or archive in a directory.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a segment is missing between others, or damaged at its start.
    pub fn open(env: Arc<dyn Env>, directory: &Path) -> Result<WalReader> {
        let numbers = segment_numbers(&*env, directory)?;
        let mut starts = Vec::new();
        for &number in &numbers {
            let mut scan = SegmentScan::open(&*env, directory, number)?;
            starts.push(scan.link()?);
        }
        // A segment whose chain does not lead back to the beginning was never completely on disk.
        let newest = starts.iter().flatten().rev();
        let mut links = Vec::new();
        for newest in newest {
            let (chain, broken_at) = chain_of(newest, &starts, &numbers);
            let Some(broken_at) = broken_at else {
                links = chain;
                break;
            };
            check_start(&*env, directory, broken_at, chain.iter().map(|link| link.number))?;
        }
        let is_link = |number: &u32| links.iter().any(|link| link.number == *number);
        let strays: Vec<u32> = numbers.into_iter().filter(|number| !is_link(number)).collect();
        for &number in &strays {
            check_start(&*env, directory, number, std::iter::once(number))?;
        }
        Ok(WalReader::of(env, directory, links, strays))
    }

    /// Opens one segment, regardless of other files in its directory.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if its start is invalid; [`Error::InvalidRequest`] if its file name is
    /// not that of a segment.
    pub fn open_segment(env: Arc<dyn Env>, path: &Path) -> Result<WalReader> {
        let named = path.file_name().and_then(|name| segment_number(Path::new(name)));
        let not_named =
            || Error::InvalidRequest(format!("\"{}\" is not a WAL segment", path.display()));
        let number = named.ok_or_else(not_named)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let link = SegmentScan::open(&*env, directory, number)?
            .link()?
            .ok_or_else(|| Error::corrupt(path, 0, "invalid segment header"))?;
        Ok(WalReader::of(env, directory, vec![link], Vec::new()))
    }

    fn of(env: Arc<dyn Env>, directory: &Path, links: Vec<Link>, strays: Vec<u32>) -> WalReader {
        WalReader {
            env,
            directory: directory.to_owned(),
            last: links.first().map_or(Sequence(0), |link| link.last),
            before: Sequence(0),
            manifest: ManifestMark::default(),
            links,
            next: 0,
            scan: None,
            from: Bound::Unbounded,
            to: Bound::Unbounded,
            segments: Vec::new(),
            obsolete_segments: strays,
        }
    }

    /// Restricts the reader to records with a sequence in `sequences` from now on.
    #[must_use]
    pub fn range(mut self, sequences: impl RangeBounds<Sequence>) -> WalReader {
        self.from = sequences.start_bound().cloned();
        self.to = sequences.end_bound().cloned();
        self
    }

    /// Returns the last sequence before the first segment, that is, of the removed segments.
    /// `None` if there is no segment, or none before.
    pub(super) fn missing_before(&self) -> Option<(PathBuf, Sequence)> {
        let first = self.links.first()?;
        let path = segment_path(&self.directory, first.before.segment);
        (first.before.segment > 0).then_some((path, first.last))
    }

    /// Returns the next record and its position, `None` at the end of the log.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for damage before the end.
    pub fn next_record(&mut self) -> Result<Option<(LogPosition, Record<'_>)>> {
        loop {
            let Some(mut scan) = self.scan.take() else {
                if !self.open_next()? {
                    return Ok(None);
                }
                continue;
            };
            let offset = scan.position;
            let limit = self.links.get(self.next).map(|link| link.before.byte_count);
            let at_limit = limit.is_some_and(|limit| offset >= limit);
            let header = if at_limit { None } else { scan.next_header()? };
            let Some(header) = header else {
                self.close(scan, limit)?;
                continue;
            };
            let position = LogPosition { segment: scan.number, offset };
            if header.kind != RecordKind::Commit {
                let known = match header.kind {
                    RecordKind::Mark => parse_mark(scan.body()),
                    _ => parse_start(scan.body(), scan.number).map(|start| start.known),
                };
                let Some(known) = known else {
                    return Err(self.corrupt(position, "the record is malformed"));
                };
                scan.learn(known);
                self.manifest = self.manifest.max(known.manifest);
                self.scan = Some(scan);
                continue;
            }
            self.scan = Some(scan);
            if header.clock.sequence <= self.last {
                return Err(self.corrupt(
                    position,
                    "sequence number of the record is not greater than the previous one",
                ));
            }
            self.last = header.clock.sequence;
            if (self.from, self.to).contains(&self.last) {
                return self.record(position, &header);
            }
        }
    }

    fn record(
        &self,
        position: LogPosition,
        header: &Header,
    ) -> Result<Option<(LogPosition, Record<'_>)>> {
        let body = self.scan.as_ref().map_or(&[][..], SegmentScan::body);
        match Record::of(header.clock, body) {
            Some(record) => Ok(Some((position, record))),
            None => Err(self.corrupt(position, "the record is malformed")),
        }
    }

    fn corrupt(&self, position: LogPosition, detail: &str) -> Error {
        let path = segment_path(&self.directory, position.segment);
        Error::corrupt(path, position.offset, detail)
    }

    fn open_next(&mut self) -> Result<bool> {
        let Some(link) = self.links.get(self.next) else { return Ok(false) };
        self.next += 1;
        let mut scan = SegmentScan::open(&*self.env, &self.directory, link.number)?;
        scan.skip_header()?;
        self.before = self.last;
        self.scan = Some(scan);
        Ok(true)
    }

    /// Ends a segment at its last valid record; `limit` is its expected end.
    fn close(&mut self, mut scan: SegmentScan, limit: Option<u64>) -> Result<()> {
        let (number, end) = (scan.number, scan.position);
        let (highest, before) = (self.last, self.before);
        self.segments.push(Segment { number, byte_count: end, highest, before });
        if limit == Some(end) {
            return Ok(());
        }
        if limit.is_none() {
            scan.check_length()?;
        }
        let bad = LogEnd { segment: number, byte_count: end };
        let position = LogPosition { segment: number, offset: end };
        if limit.is_some_and(|limit| end > limit) {
            return Err(self.corrupt(position, "the record extends past the end of the segment"));
        }
        let mut vouched = scan.vouches_for(bad)?;
        for link in &self.links[self.next..] {
            let mut later = SegmentScan::open(&*self.env, &self.directory, link.number)?;
            vouched = vouched || later.vouches_for(bad)?;
        }
        if vouched {
            let detail =
                format!("a record is damaged before the end of the write-ahead log; {RESTORE}");
            return Err(self.corrupt(position, &detail));
        }
        // The log ends here.
        self.obsolete_segments.extend(self.links.drain(self.next..).map(|link| link.number));
        Ok(())
    }

    /// Returns the last sequence that was read, or that was before the first segment.
    pub(super) fn last(&self) -> Sequence {
        self.last
    }
}

/// Returns the segments that lead up to `newest`, oldest first, and the number of the preceding
/// segment that exists but has an invalid start.
fn chain_of(newest: &Link, starts: &[Option<Link>], numbers: &[u32]) -> (Vec<Link>, Option<u32>) {
    let mut chain = vec![newest.clone()];
    let mut broken_at = None;
    let mut before = newest.before.segment;
    while let Ok(index) = numbers.binary_search(&before) {
        let Some(link) = &starts[index] else {
            broken_at = Some(before);
            break;
        };
        chain.push(link.clone());
        // A segment cannot follow itself; a damaged one could state that.
        before = link.before.segment.min(link.number.saturating_sub(1));
    }
    chain.reverse();
    (chain, broken_at)
}

/// Returns an error if the start of a segment is invalid although a record in `later` states that
/// it was on disk: a segment is synced together with its start.
fn check_start(
    env: &dyn Env,
    directory: &Path,
    number: u32,
    later: impl Iterator<Item = u32>,
) -> Result<()> {
    if SegmentScan::open(env, directory, number)?.link()?.is_some() {
        return Ok(());
    }
    for later in later {
        let mut scan = SegmentScan::open(env, directory, later)?;
        if scan.vouches_for(LogEnd { segment: number, byte_count: 0 })? {
            let path = segment_path(directory, number);
            return Err(Error::corrupt(path, 0, format!("{HEADLESS}; {RESTORE}")));
        }
    }
    Ok(())
}

const HEADLESS: &str = "invalid segment header";

/// Cursor over the records of one segment.
pub(super) struct SegmentScan {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
    number: u32,
    byte_count: u64,
    /// Offset after the last valid record.
    position: u64,
    window: Vec<u8>,
    window_start: u64,
    /// The body of the last record, within the window.
    body: std::ops::Range<usize>,
    /// Length of the file on disk, as stated by its records.
    allocated_bytes: u64,
}

impl SegmentScan {
    pub(super) fn open(env: &dyn Env, directory: &Path, number: u32) -> Result<SegmentScan> {
        let path = segment_path(directory, number);
        let file = env.open(&path)?;
        let byte_count = file.byte_count()?;
        Ok(SegmentScan {
            file,
            path,
            number,
            byte_count,
            position: 0,
            window: Vec::new(),
            window_start: 0,
            body: 0..0,
            allocated_bytes: 0,
        })
    }

    /// Advances past the header; returns the database that it names. `None` if the header is
    /// invalid.
    pub(super) fn skip_header(&mut self) -> Result<Option<DatabaseId>> {
        let Some(bytes) = self.bytes(0, SEGMENT_HEADER_BYTES)? else { return Ok(None) };
        let Some(header) = parse_segment_header(bytes) else { return Ok(None) };
        if header.version != SEGMENT_VERSION {
            let version = header.version;
            let detail = format!(
                "unsupported segment version {version}; the supported version is {SEGMENT_VERSION}"
            );
            return Err(Error::corrupt(&self.path, 8, detail));
        }
        self.position = SEGMENT_HEADER_BYTES as u64;
        Ok((header.number == self.number).then_some(header.database))
    }

    /// Returns the content of the first record; `None` if the start of the segment is invalid.
    fn link(&mut self) -> Result<Option<Link>> {
        let Some(database) = self.skip_header()? else { return Ok(None) };
        let Some((start, last)) = self.read_start()? else { return Ok(None) };
        Ok(Some(Link { number: self.number, before: start.before, last, database }))
    }

    /// Returns the first record, and the last sequence before it; `None` if the start of the
    /// segment is invalid.
    pub(super) fn start(&mut self) -> Result<Option<(Start, Sequence)>> {
        match self.skip_header()? {
            Some(_) => self.read_start(),
            None => Ok(None),
        }
    }

    fn read_start(&mut self) -> Result<Option<(Start, Sequence)>> {
        let first = self.next_header()?.filter(|header| header.kind == RecordKind::Start);
        let Some(header) = first else { return Ok(None) };
        let start = parse_start(self.body(), self.number);
        Ok(start.map(|start| (start, header.clock.sequence)))
    }

    /// Returns the current offset.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Updates the stated length of this file from a record.
    fn learn(&mut self, known: StatedLengths) {
        if known.segment == self.number {
            self.allocated_bytes = self.allocated_bytes.max(known.allocated_bytes);
        }
    }

    /// Checks that the file is not shorter than its records state.
    fn check_length(&self) -> Result<()> {
        if self.byte_count >= self.allocated_bytes {
            return Ok(());
        }
        let detail = format!(
            "the segment is truncated: it has {} bytes, expected at least {}; {RESTORE}",
            self.byte_count, self.allocated_bytes
        );
        Err(Error::corrupt(&self.path, self.byte_count, detail))
    }

    /// Advances to the next record; `None` at the first offset without a valid one.
    pub(super) fn next_header(&mut self) -> Result<Option<Header>> {
        let number = self.number;
        let Some(bytes) = self.bytes(self.position, RECORD_HEADER_BYTES)? else { return Ok(None) };
        let Some(header) = parse_header(bytes, number) else { return Ok(None) };
        let body_start = self.position + RECORD_HEADER_BYTES as u64;
        let Some(body) = self.bytes(body_start, header.body_bytes)? else { return Ok(None) };
        if crc32c::crc32c(body) != header.body_checksum {
            return Ok(None);
        }
        let start = (body_start - self.window_start) as usize;
        self.body = start..start + header.body_bytes;
        self.position = body_start + header.body_bytes as u64;
        Ok(Some(header))
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.window[self.body.clone()]
    }

    /// Returns bytes of the file, `None` beyond its end.
    fn bytes(&mut self, offset: u64, length: usize) -> Result<Option<&[u8]>> {
        if offset + length as u64 > self.byte_count {
            return Ok(None);
        }
        let held = self.window_start..=self.window_start + self.window.len() as u64;
        if !held.contains(&offset) || !held.contains(&(offset + length as u64)) {
            let left = self.byte_count - offset;
            let wanted = left.min(length.max(WINDOW_BYTES) as u64);
            // The old window is freed first: it may be as large as a record.
            if self.window.capacity() > 2 * WINDOW_BYTES {
                self.window = Vec::new();
            }
            self.window.resize(wanted as usize, 0);
            self.window_start = offset;
            self.file.read_at(offset, &mut self.window)?;
        }
        let start = (offset - self.window_start) as usize;
        Ok(Some(&self.window[start..start + length]))
    }

    /// Returns whether a record header behind `bad` states that `bad` was on disk.
    fn vouches_for(&mut self, bad: LogEnd) -> Result<bool> {
        let from = match self.number == bad.segment {
            true => bad.byte_count,
            false => 0,
        };
        Ok(self.find_header(from, |header| header.synced > bad)?.is_some())
    }

    /// Advances to the first valid record header behind `from`; returns whether there is one.
    pub(super) fn find_record(&mut self, from: u64) -> Result<bool> {
        let found = self.find_header(from + 1, |_| true)?;
        self.position = found.unwrap_or(self.position);
        Ok(found.is_some())
    }

    /// Returns the offset of the first valid header at or after `offset` that satisfies
    /// `is_wanted`.
    fn find_header(
        &mut self,
        mut offset: u64,
        is_wanted: impl Fn(Header) -> bool,
    ) -> Result<Option<u64>> {
        let number = self.number;
        while offset < self.byte_count {
            let length = (self.byte_count - offset).min(WINDOW_BYTES as u64) as usize;
            let Some(bytes) = self.bytes(offset, length)? else { return Ok(None) };
            // Unused space is usually zero.
            if bytes.iter().any(|byte| *byte != 0) {
                let mut starts = 0..length.saturating_sub(RECORD_HEADER_BYTES - 1);
                let found = starts
                    .find(|start| parse_header(&bytes[*start..], number).is_some_and(&is_wanted));
                if let Some(start) = found {
                    return Ok(Some(offset + start as u64));
                }
            }
            if length < RECORD_HEADER_BYTES {
                break;
            }
            // Overlapping, so that a header across the border is found too.
            offset += (length - RECORD_HEADER_BYTES + 1) as u64;
        }
        Ok(None)
    }
}

/// Result of recovery.
pub(super) struct Recovered {
    /// The segments with commits, oldest first.
    pub(super) segments: Vec<Segment>,
    /// Segments outside the chain, to be removed.
    pub(super) strays: Vec<u32>,
    /// The highest number of any segment.
    pub(super) last_number: u32,
    /// The last sequence in the log, including removed segments.
    pub(super) last: Sequence,
    /// Length of the manifest on disk, as far as the log states it.
    pub(super) manifest: ManifestMark,
}

/// Properties of the log that other files state.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExpectedLog {
    /// Commits at or below this sequence are in store files.
    pub(super) released: Sequence,
    /// The log was on disk up to here.
    pub(super) durable: Option<LogPosition>,
    /// The database that the log belongs to.
    pub(super) database: Option<DatabaseId>,
}

/// Passes all records above the released sequence to `replay`. Changes nothing.
pub(super) fn recover(
    env: &Arc<dyn Env>,
    directory: &Path,
    expected: ExpectedLog,
    replay: &mut dyn FnMut(&Record<'_>) -> Result<()>,
) -> Result<Recovered> {
    let mut reader = WalReader::open(Arc::clone(env), directory)?;
    let linked = reader.links.iter().map(|link| link.number);
    let last_number = linked.chain(reader.obsolete_segments.iter().copied()).max().unwrap_or(0);
    reader.check_database(expected.database)?;
    let after = expected.released;
    if let Some((path, last)) = reader.missing_before()
        && last > after
    {
        return Err(Error::corrupt(path, 0, format!("the segment is missing; {RESTORE}")));
    }
    reader = reader.range((Bound::Excluded(after), Bound::Unbounded));
    while let Some((_, record)) = reader.next_record()? {
        replay(&record)?;
    }
    if let Some(durable) = expected.durable {
        reader.check_reaches(durable)?;
    }
    let last = reader.last();
    let WalReader { mut segments, obsolete_segments: mut strays, manifest, .. } = reader;
    while segments.last().is_some_and(|segment| !segment.has_commits()) {
        strays.extend(segments.pop().map(|segment| segment.number));
    }
    Ok(Recovered { segments, strays, last_number, last, manifest })
}

impl WalReader {
    /// Checks that the segments belong to a database.
    fn check_database(&self, expected: Option<DatabaseId>) -> Result<()> {
        let Some(expected) = expected else { return Ok(()) };
        for link in &self.links {
            let found = link.database;
            if found != expected {
                let path = segment_path(&self.directory, link.number);
                let detail = format!(
                    "the segment belongs to database {found}, the manifest to {expected}; {RESTORE}"
                );
                return Err(Error::corrupt(path, 16, detail));
            }
        }
        Ok(())
    }

    /// Checks that the log reaches a position up to which it was on disk.
    fn check_reaches(&self, durable: LogPosition) -> Result<()> {
        let end = self.segments.last().map(Segment::end);
        let wanted = LogEnd { segment: durable.segment, byte_count: durable.offset };
        if end.is_some_and(|end| end >= wanted) {
            return Ok(());
        }
        let path = segment_path(&self.directory, durable.segment);
        let of_segment = end.filter(|end| end.segment == durable.segment);
        let (offset, found) = match of_segment {
            Some(end) => (end.byte_count, "the last complete record ends here".to_owned()),
            None if self.obsolete_segments.contains(&durable.segment) => (0, HEADLESS.to_owned()),
            None => (0, "the segment is missing".to_owned()),
        };
        let detail = format!(
            "according to the manifest, the write-ahead log was synced up to byte {} of the \
             segment, but {found}; {RESTORE}",
            durable.offset
        );
        Err(Error::corrupt(path, offset, detail))
    }
}
