//! Manifest: the list of live tables, regions and store files.
//!
//! One file, `MANIFEST`, of edits. Their sum is held in memory ([`ManifestState`]) and rewritten,
//! with as few edits as possible, at every open and whenever the log of edits has outgrown it.
//! The byte format is in `docs/formats/manifest.md`.
//!
//! # Detection of lost tails
//!
//! The manifest and the WAL record each other's length. Each edit is followed by the synced end
//! of the WAL ([`ManifestState::log`]), and the WAL records the length of the manifest
//! ([`Manifest::mark`]); opening the directory compares them. A closed manifest records its final
//! length, and the end of the WAL.
//!
//! # Invariants
//!
//! 1. An edit is on disk before [`Manifest::append`] returns; the files that it names were on
//!    disk before.
//! 2. `MANIFEST` is replaced by rename only, so there is always one complete manifest.
//! 3. After a failed write nothing is appended behind bytes whose state is unknown: the file is
//!    rewritten, at once or by the next append.
//! 4. The regions of a table cover all rows once, in row order. Ids of regions are never reused.
//!
//! [`Manifest::append`] asserts 4 for each edit before it is written. The reader returns
//! [`Error::Corrupt`] for a file that violates it.
//!
//! Files and directories that the manifest does not list are leftovers, unless something is
//! missing; the opening of the directory decides.

mod records;

pub(crate) use records::ManifestVersion;
pub use records::{FamilyChange, NO_BEGIN, RegionRecord, UNKNOWN_CREATION};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use imbl::OrdMap;

use crate::cell::Timestamp;
use crate::codec;
use crate::codec::RecordDamage;
use crate::descriptor::{DatabaseId, FamilyDescriptor, RegionId, TableDescriptor, TableId};
use crate::env::{AppendFile, Env};
use crate::error::{Error, RESTORE, Result};
use crate::wal::{LogPosition, ManifestMark};

/// The first bytes of a manifest. Never change.
pub const MAGIC: [u8; 8] = *b"bennu-mf";
/// The layout of the file: magic, version, records.
pub const FORMAT_VERSION: u32 = 10;
/// The oldest version that is read.
const FORMAT_VERSION_MIN: u32 = 9;
/// Magic and version.
const MAGIC_BYTES: usize = 12;
/// Name of the file.
pub(crate) const NAME: &str = "MANIFEST";
/// Magic, version, database, generation, base length, whether it is closed, checksum.
const HEADER_BYTES: usize = MAGIC_BYTES + 16 + 8 + 8 + 4 + 4;
/// Bytes of the header before its checksum.
const CHECKED_BYTES: usize = 48;
const _: () = assert!(HEADER_BYTES == CHECKED_BYTES + 4, "the checksum ends the header");
/// Size of the log of edits below which it is not rewritten.
const REWRITE_BYTES_MIN: usize = 1 << 20;

/// File changes of a table's regions.
pub type RegionChanges = Vec<(RegionId, Vec<FamilyChange>)>;

/// A change of the manifest. Atomic on disk.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
#[bincode(decode_context = "ManifestVersion")]
pub enum ManifestEdit {
    /// A table with its regions.
    PutTable {
        /// The table.
        descriptor: Arc<TableDescriptor>,
        /// Its regions in row order.
        regions: Vec<RegionRecord>,
    },
    /// New settings of tables; their regions stay.
    AlterTables {
        /// The tables.
        descriptors: Vec<Arc<TableDescriptor>>,
    },
    /// A table is dropped, with its regions.
    DropTable {
        /// The table.
        table: TableId,
    },
    /// A flush or a compaction of a region.
    Region {
        /// Its table.
        table: TableId,
        /// The region.
        region: RegionId,
        /// The file changes.
        changes: Vec<FamilyChange>,
        /// After a flush: all commits up to here are in files.
        flushed: Option<u64>,
    },
    /// Counters that never decrease.
    Marks {
        /// Lower bound of the next region id.
        next_region: u64,
        /// Sequences up to here were assigned.
        last_sequence: u64,
        /// Commit times up to here were assigned.
        last_timestamp: i64,
        /// All commits up to here are in files of all regions.
        released: u64,
    },
    /// A bulk load: files of a table's regions, all with one commit.
    Adopt {
        /// The table.
        table: TableId,
        /// The added files, by region.
        regions: Vec<(RegionId, Vec<FamilyChange>)>,
        /// The commit.
        sequence: u64,
        /// Its time.
        timestamp: i64,
    },
    /// Regions of a table replaced others that held the same rows: a split or a merge.
    ReplaceRegions {
        /// The table.
        table: TableId,
        /// The replaced regions.
        removed: Vec<RegionId>,
        /// The new regions, in row order.
        added: Vec<RegionRecord>,
    },
    /// A transaction that has spilled: files of regions of several tables, all with one commit.
    AdoptAll {
        /// The added files, by table and region.
        tables: Vec<(TableId, RegionChanges)>,
        /// The commit.
        sequence: u64,
        /// Its time.
        timestamp: i64,
    },
}

/// An edit in its stored form.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
#[bincode(decode_context = "ManifestVersion")]
struct EditRecord {
    /// The synced end of the WAL: segment and offset. `None`: unchanged.
    log: Option<(u32, u64)>,
    edit: ManifestEdit,
}

/// A table in the manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRecord {
    /// Its settings.
    pub descriptor: Arc<TableDescriptor>,
    /// Its regions in row order.
    pub regions: Vec<RegionRecord>,
}

impl TableRecord {
    fn families(&self) -> usize {
        self.descriptor.families.len()
    }

    /// Makes the regions have the families of the table; new and dropped ones have no files.
    fn fit_regions(&mut self) {
        let family_count = self.families();
        for region in &mut self.regions {
            region.files.resize(family_count, Vec::new());
            region.history.resize(family_count, NO_BEGIN);
            let files = region.files.iter_mut().zip(&mut region.history);
            for ((files, begin), family) in files.zip(&self.descriptor.families) {
                if family.is_dropped() {
                    files.clear();
                    *begin = NO_BEGIN;
                }
            }
        }
    }
}

/// The sum of all edits.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ManifestState {
    /// Live tables. An edit is applied to a copy of the state, because it may fail; the copy shares
    /// all tables but the edit's own.
    pub tables: OrdMap<TableId, Arc<TableRecord>>,
    /// The next region's id.
    pub next_region: u64,
    /// Sequences up to here were assigned.
    pub last_sequence: u64,
    /// Commit times up to here were assigned.
    pub last_timestamp: i64,
    /// All commits up to here are in files of all regions.
    pub released: u64,
    /// The synced end of the WAL. `None` if there is no WAL yet.
    pub log: Option<LogPosition>,
}

/// The open manifest.
pub struct Manifest {
    env: Arc<dyn Env>,
    directory: PathBuf,
    state: ManifestState,
    header: Header,
    /// The synced end of the WAL, to be recorded with the next edit.
    log: Option<LogPosition>,
    /// `None` after a failed write: the next append rewrites the file.
    file: Option<Box<dyn AppendFile>>,
    written_bytes: usize,
    /// Size of the file when it was rewritten.
    base_bytes: usize,
    scratch: Vec<u8>,
}

impl ManifestState {
    /// Applies an edit. `Err` is the reason why it contradicts the previous ones.
    fn apply(&mut self, edit: &ManifestEdit) -> std::result::Result<(), String> {
        match edit {
            ManifestEdit::PutTable { descriptor, regions } => {
                check_cover(regions)?;
                for region in regions {
                    self.next_region = self.next_region.max(region.id.0 + 1);
                    self.last_sequence = self.last_sequence.max(region.flushed);
                }
                let mut record =
                    TableRecord { descriptor: Arc::clone(descriptor), regions: regions.clone() };
                record.fit_regions();
                if self.tables.insert(descriptor.id, Arc::new(record)).is_some() {
                    return Err(format!("table {} is created twice", descriptor.id.0));
                }
            }
            ManifestEdit::AlterTables { descriptors } => {
                for descriptor in descriptors {
                    let table = self.table(descriptor.id)?;
                    table.descriptor = Arc::clone(descriptor);
                    table.fit_regions();
                }
            }
            ManifestEdit::DropTable { table } => {
                self.table(*table)?;
                self.tables.remove(table);
            }
            ManifestEdit::ReplaceRegions { table, removed, added } => {
                for region in added {
                    self.next_region = self.next_region.max(region.id.0 + 1);
                    self.last_sequence = self.last_sequence.max(region.flushed);
                }
                let table = self.table(*table)?;
                replace(&mut table.regions, removed, added)?;
                check_cover(&table.regions)?;
                // The split may not know a family that was added but could not be opened.
                table.fit_regions();
            }
            ManifestEdit::Region { table, region, changes, flushed } => {
                self.apply_region(*table, *region, changes, *flushed)?;
            }
            ManifestEdit::Adopt { table, regions, sequence, timestamp } => {
                for (region, changes) in regions {
                    self.apply_region(*table, *region, changes, Some(*sequence))?;
                }
                self.last_timestamp = self.last_timestamp.max(*timestamp);
            }
            ManifestEdit::AdoptAll { tables, sequence, timestamp } => {
                for (table, regions) in tables {
                    for (region, changes) in regions {
                        self.apply_region(*table, *region, changes, Some(*sequence))?;
                    }
                }
                self.last_timestamp = self.last_timestamp.max(*timestamp);
            }
            ManifestEdit::Marks { next_region, last_sequence, last_timestamp, released } => {
                self.next_region = self.next_region.max(*next_region);
                self.last_sequence = self.last_sequence.max(*last_sequence);
                self.last_timestamp = self.last_timestamp.max(*last_timestamp);
                self.released = self.released.max(*released);
            }
        }
        Ok(())
    }

    fn table(&mut self, table: TableId) -> std::result::Result<&mut TableRecord, String> {
        let record = self.tables.get_mut(&table);
        record.map(Arc::make_mut).ok_or_else(|| format!("table {} does not exist", table.0))
    }

    fn apply_region(
        &mut self,
        table: TableId,
        region: RegionId,
        changes: &[FamilyChange],
        flushed: Option<u64>,
    ) -> std::result::Result<(), String> {
        if let Some(flushed) = flushed {
            self.last_sequence = self.last_sequence.max(flushed);
        }
        let TableRecord { descriptor, regions } = self.table(table)?;
        let record = regions
            .iter_mut()
            .find(|record| record.id == region)
            .ok_or_else(|| format!("region {} does not exist", region.0))?;
        for change in changes {
            let family = usize::from(change.family);
            if descriptor.families.get(family).is_some_and(FamilyDescriptor::is_dropped) {
                // Dropped while the files were written.
                continue;
            }
            let files = record
                .files
                .get_mut(family)
                .ok_or_else(|| format!("column family {} does not exist", change.family))?;
            let begin = &mut record.history[family];
            *begin = (*begin).max(change.history.unwrap_or(NO_BEGIN));
            for removed in &change.removed {
                let before = files.len();
                files.retain(|file| file.id != *removed);
                if files.len() == before {
                    return Err(format!("file {} is removed but does not exist", removed.0));
                }
            }
            for added in &change.added {
                if files.iter().any(|file| file.id == added.id) {
                    return Err(format!("file {} is added but already exists", added.id.0));
                }
                files.push(*added);
            }
        }
        record.flushed = record.flushed.max(flushed.unwrap_or(0));
        Ok(())
    }

    /// Raises the begin of all histories to at least `begin`: the dropped versions are unknown.
    pub(crate) fn begin_histories(&mut self, begin: Timestamp) {
        let raised = self.tables.iter().map(|(id, table)| {
            let mut table = TableRecord::clone(table);
            let histories = table.regions.iter_mut().flat_map(|region| &mut region.history);
            histories.for_each(|known| *known = begin.0.max(*known));
            (*id, Arc::new(table))
        });
        self.tables = raised.collect();
    }

    fn edits(&self) -> Vec<ManifestEdit> {
        let marks = ManifestEdit::Marks {
            next_region: self.next_region,
            last_sequence: self.last_sequence,
            last_timestamp: self.last_timestamp,
            released: self.released,
        };
        let tables = self.tables.values().map(|table| ManifestEdit::PutTable {
            descriptor: Arc::clone(&table.descriptor),
            regions: table.regions.clone(),
        });
        std::iter::once(marks).chain(tables).collect()
    }
}

/// Header in front of the edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    database: DatabaseId,
    /// Incremented by each rewrite.
    generation: u64,
    /// Bytes of the file when it was renamed: all of them were on disk.
    base_bytes: u64,
    /// True if nothing was appended since.
    closed: bool,
}

/// Checks that regions cover all rows once, in row order. `Err` is the reason why they do not.
fn check_cover(regions: &[RegionRecord]) -> std::result::Result<(), String> {
    let ends_are_open = regions.first().is_some_and(|first| first.start.is_empty())
        && regions.last().is_some_and(|last| last.stop.is_none());
    let is_joined = |pair: &[RegionRecord]| pair[0].stop.as_ref() == Some(&pair[1].start);
    let ascends =
        |region: &RegionRecord| region.stop.as_ref().is_none_or(|stop| region.start < *stop);
    if ends_are_open && regions.windows(2).all(is_joined) && regions.iter().all(ascends) {
        return Ok(());
    }
    Err("the regions of a table do not cover all rows once".to_owned())
}

/// Asserts that an edit keeps what later edits and the log rely on.
///
/// # Panics
///
/// If it does not: the damage would be permanent.
fn check_edit(before: &ManifestState, edit: &ManifestEdit, after: &ManifestState) {
    assert!(
        after.next_region >= before.next_region
            && after.last_sequence >= before.last_sequence
            && after.last_timestamp >= before.last_timestamp
            && after.released >= before.released,
        "counters never decrease"
    );
    assert!(after.released <= after.last_sequence, "no commit is released before it is made");
    if let ManifestEdit::PutTable { regions: added, .. }
    | ManifestEdit::ReplaceRegions { added, .. } = edit
    {
        // The log names regions by their ids.
        assert!(
            added.iter().all(|region| region.id.0 >= before.next_region),
            "the id of a region is reused"
        );
        assert!(
            added.iter().zip(added.iter().skip(1)).all(|(one, next)| one.id != next.id),
            "two regions have one id"
        );
    }
    if let ManifestEdit::AlterTables { descriptors } = edit {
        for descriptor in descriptors {
            let family_count = before.tables.get(&descriptor.id).map(|table| table.families());
            assert!(
                family_count.is_none_or(|count| count <= descriptor.families.len()),
                "column families are never removed"
            );
        }
    }
}

/// Replaces adjacent regions by others that cover the same rows.
fn replace(
    regions: &mut Vec<RegionRecord>,
    removed: &[RegionId],
    added: &[RegionRecord],
) -> std::result::Result<(), String> {
    let at = regions.iter().position(|region| removed.contains(&region.id));
    let at = at.ok_or("split or merge of regions that do not exist")?;
    let gone = regions.get(at..at + removed.len()).ok_or("regions to be replaced are missing")?;
    if !gone.iter().map(|region| region.id).eq(removed.iter().copied()) {
        return Err("regions to be replaced are not adjacent in this order".to_owned());
    }
    let ends = |of: &[RegionRecord]| Some((of.first()?.start.clone(), of.last()?.stop.clone()));
    let joined = added.windows(2).all(|pair| pair[0].stop.as_ref() == Some(&pair[1].start));
    if !joined || ends(gone) != ends(added) {
        return Err("replacing regions do not cover the same rows".to_owned());
    }
    regions.splice(at..at + removed.len(), added.iter().cloned());
    Ok(())
}

impl Manifest {
    /// Opens the manifest of a data directory, or creates one, and rewrites it.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for damage that is not a torn last write.
    pub fn open(env: Arc<dyn Env>, directory: &Path) -> Result<Manifest> {
        let mut manifest = Manifest::read(env, directory)?;
        manifest.begin(None)?;
        Ok(manifest)
    }

    /// Reads the manifest of a data directory, if there is one. Changes nothing.
    ///
    /// # Errors
    ///
    /// As for [`Manifest::open`].
    pub(crate) fn read(env: Arc<dyn Env>, directory: &Path) -> Result<Manifest> {
        let exists = env.list(directory)?.iter().any(|name| name.as_os_str() == NAME);
        let found = match exists {
            true => read(&*env, &directory.join(NAME))?,
            false => ManifestContent::of_new(env.new_id()?),
        };
        Ok(Manifest {
            env,
            directory: directory.to_owned(),
            state: found.state,
            header: found.header,
            log: None,
            file: None,
            written_bytes: found.byte_count,
            base_bytes: found.byte_count,
            scratch: Vec::new(),
        })
    }

    /// Rewrites the manifest for appending, with the synced end of the WAL.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(crate) fn begin(&mut self, log: Option<LogPosition>) -> Result<()> {
        self.header.closed = false;
        self.state.log = self.state.log.max(log);
        self.rewrite()
    }

    /// Rewrites the manifest a last time: the WAL ends at `log`, all of it on disk.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; nothing can be appended afterwards in any case.
    pub(crate) fn close(&mut self, log: LogPosition) -> Result<()> {
        debug_assert!(self.state.log <= Some(log), "the log ends before its synced end");
        self.header.closed = true;
        self.state.log = Some(log);
        self.rewrite()
    }

    /// Returns whether it was closed: appends fail.
    pub(crate) fn is_closed(&self) -> bool {
        self.header.closed
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    /// Returns whether there is no file yet: every written one has a generation.
    pub(crate) fn is_new(&self) -> bool {
        self.header.generation == 0
    }

    /// Returns the database that it belongs to.
    pub(crate) fn database(&self) -> DatabaseId {
        self.header.database
    }

    /// Returns its length on disk, to be recorded in the WAL.
    pub(crate) fn mark(&self) -> ManifestMark {
        let byte_count = self.written_bytes as u64;
        ManifestMark { generation: self.header.generation, byte_count }
    }

    /// Sets the synced end of the WAL, which the next edit records.
    pub(crate) fn note_log(&mut self, log: LogPosition) {
        self.log = self.log.max(Some(log));
    }

    /// Reserves the region ids below `next_region`.
    pub(crate) fn skip_regions(&mut self, next_region: u64) {
        self.state.next_region = self.state.next_region.max(next_region);
    }

    /// Returns the present state.
    pub fn state(&self) -> &ManifestState {
        &self.state
    }

    /// Writes an edit; it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the edit is not applicable (a table dropped meanwhile);
    /// [`Error::ShutDown`] if the manifest was closed; [`Error::Io`] if it could not be written:
    /// the edit is lost if the manifest [is settled](Manifest::is_settled), otherwise its outcome
    /// is unknown until a restart.
    pub fn append(&mut self, edit: &ManifestEdit) -> Result<()> {
        self.append_all(std::slice::from_ref(edit))
    }

    /// Applies edits together: more than one by a rewrite of the file, because a crash during the
    /// append of several records may leave a later one without an earlier one.
    ///
    /// # Errors
    ///
    /// Those of [`Manifest::append`], for all of the edits.
    pub fn append_all(&mut self, edits: &[ManifestEdit]) -> Result<()> {
        if self.header.closed {
            return Err(Error::ShutDown);
        }
        let mut next = self.state.clone();
        for edit in edits {
            let before = next.clone();
            next.apply(edit)
                .map_err(|detail| Error::InvalidRequest(format!("manifest: {detail}")))?;
            check_edit(&before, edit, &next);
        }
        let log = self.log.take().filter(|log| next.log < Some(*log));
        next.log = next.log.max(log);
        let before = std::mem::replace(&mut self.state, next);
        let outgrown = self.written_bytes > REWRITE_BYTES_MIN.max(4 * self.base_bytes);
        let written = match edits {
            [edit] if self.file.is_some() && !outgrown => self.write(edit, log),
            _ => self.rewrite(),
        };
        if written.is_err() {
            self.file = None;
            self.state = before;
            // If this fails too, it is retried before it matters.
            let _ = self.rewrite();
        }
        debug_assert!(written.is_err() || self.is_settled(), "the file has the state");
        written
    }

    /// Returns whether the file is known to have the content of [`Manifest::state`].
    pub fn is_settled(&self) -> bool {
        self.file.is_some() || self.header.closed
    }

    /// Ensures that the file has the content of [`Manifest::state`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it could not be written.
    pub fn settle(&mut self) -> Result<()> {
        if self.is_settled() { Ok(()) } else { self.rewrite() }
    }

    fn write(&mut self, edit: &ManifestEdit, log: Option<LogPosition>) -> Result<()> {
        self.scratch.clear();
        append_noted(edit, log, &mut self.scratch);
        let file = self.file.as_mut().expect("the caller has looked");
        file.append(&self.scratch)?;
        file.sync()?;
        self.written_bytes += self.scratch.len();
        Ok(())
    }

    fn rewrite(&mut self) -> Result<()> {
        self.file = None;
        // A new generation for each attempt: the outcome of a failed one is unknown.
        self.header.generation += 1;
        let (file, byte_count) = write(&*self.env, &self.directory, self.header, &self.state)?;
        if !self.header.closed {
            self.file = Some(file);
        }
        self.written_bytes = byte_count;
        self.base_bytes = byte_count;
        Ok(())
    }
}

/// Writes the manifest of a new database with this state; durable on return.
pub(crate) fn write_manifest(env: &dyn Env, directory: &Path, state: &ManifestState) -> Result<()> {
    write_closed(env, directory, env.new_id()?, state)
}

/// Writes the closed manifest of a database that was never opened; durable on return.
pub(crate) fn write_closed(
    env: &dyn Env,
    directory: &Path,
    database: DatabaseId,
    state: &ManifestState,
) -> Result<()> {
    let header = Header { database, generation: 1, base_bytes: 0, closed: true };
    write(env, directory, header, state).map(drop)
}

/// Returns the bytes of a manifest without edits.
pub(crate) fn empty_manifest() -> Vec<u8> {
    let header = Header { database: DatabaseId(1), generation: 1, base_bytes: 0, closed: false };
    header.encode().to_vec()
}

/// Returns the written file and its size.
fn write(
    env: &dyn Env,
    directory: &Path,
    header: Header,
    state: &ManifestState,
) -> Result<(Box<dyn AppendFile>, usize)> {
    let bytes = encode(header, state);
    let new = directory.join("MANIFEST.new");
    let mut file = env.create(&new)?;
    file.append(&bytes)?;
    file.sync()?;
    env.rename(&new, &directory.join(NAME))?;
    Ok((file, bytes.len()))
}

/// Appends an edit with the synced end of the WAL: in one record, so that a torn write loses both
/// or neither.
pub(crate) fn append_noted(edit: &ManifestEdit, log: Option<LogPosition>, out: &mut Vec<u8>) {
    let log = log.map(|LogPosition { segment, offset }| (segment, offset));
    codec::append_record(&EditRecord { log, edit: edit.clone() }, out);
}

fn encode(header: Header, state: &ManifestState) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    for (index, edit) in state.edits().iter().enumerate() {
        append_noted(edit, state.log.filter(|_| index == 0), &mut bytes);
    }
    let base_bytes = bytes.len() as u64;
    bytes[..HEADER_BYTES].copy_from_slice(&Header { base_bytes, ..header }.encode());
    let header = Header { base_bytes, ..header };
    debug_assert_eq!(Header::decode(&bytes), Some(header), "the header is read as it is written");
    bytes
}

impl Header {
    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..28].copy_from_slice(&self.database.0.to_le_bytes());
        bytes[28..36].copy_from_slice(&self.generation.to_le_bytes());
        bytes[36..44].copy_from_slice(&self.base_bytes.to_le_bytes());
        bytes[44] = u8::from(self.closed);
        let checksum = crc32c::crc32c(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes the header of a file; `None` if it is truncated or its checksum is wrong.
    fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
        let (covered, checksum) = bytes.split_at(CHECKED_BYTES);
        if crc32c::crc32c(covered).to_le_bytes() != checksum {
            return None;
        }
        let long = |at: usize| bytes[at..at + 8].try_into().ok().map(u64::from_le_bytes);
        Some(Header {
            database: DatabaseId(u128::from(long(20)?) << 64 | u128::from(long(12)?)),
            generation: long(28)?,
            base_bytes: long(36)?,
            closed: bytes[44] == 1,
        })
    }
}

/// Content of a manifest file.
pub(crate) struct ManifestContent {
    header: Header,
    /// The sum of all edits.
    pub(crate) state: ManifestState,
    /// Offset of the end of the last complete record.
    byte_count: usize,
}

impl ManifestContent {
    /// Returns the length that was read.
    pub(crate) fn mark(&self) -> ManifestMark {
        let byte_count = self.byte_count as u64;
        ManifestMark { generation: self.header.generation, byte_count }
    }

    fn of_new(database: DatabaseId) -> ManifestContent {
        ManifestContent {
            header: Header { database, generation: 0, base_bytes: 0, closed: false },
            state: ManifestState::default(),
            byte_count: 0,
        }
    }
}

fn read(env: &dyn Env, path: &Path) -> Result<ManifestContent> {
    match read_some(env, path)? {
        (content, None) => Ok(content),
        (_, Some(damage)) => Err(damage),
    }
}

/// Reads a manifest as far as possible, and returns the error of the rest.
///
/// # Errors
///
/// [`Error::Corrupt`] if nothing can be read.
pub(crate) fn read_some(env: &dyn Env, path: &Path) -> Result<(ManifestContent, Option<Error>)> {
    let file = env.open(path)?;
    let mut bytes = vec![0; file.byte_count()? as usize];
    file.read_at(0, &mut bytes)?;
    let corrupt = |offset: usize, detail: &str| {
        Error::corrupt(path, offset as u64, format!("{detail}; {RESTORE}"))
    };
    if bytes.len() < MAGIC_BYTES || bytes[..8] != MAGIC {
        return Err(corrupt(0, "not a manifest, or truncated"));
    }
    let version = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    if !(FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&version) {
        let detail = format!(
            "unsupported format version {version}; the supported versions are \
             {FORMAT_VERSION_MIN} to {FORMAT_VERSION}"
        );
        return Err(Error::corrupt(path, 8, detail));
    }
    let Some(header) = Header::decode(&bytes) else {
        return Err(corrupt(0, "the header is damaged or truncated"));
    };
    let state = ManifestState::default();
    let mut content = ManifestContent { header, state, byte_count: HEADER_BYTES };
    let Header { base_bytes, closed, .. } = content.header;
    let found = bytes.len() as u64;
    let damage = (found < base_bytes || closed && found != base_bytes).then(|| {
        let detail = format!("the file is truncated to {found} of {base_bytes} bytes");
        corrupt(bytes.len().min(base_bytes as usize), &detail)
    });
    let damage_of_edits = content.read_edits(&bytes, path, ManifestVersion(version)).err();
    Ok((content, damage.or(damage_of_edits)))
}

impl ManifestContent {
    /// Reads the edits, up to a torn tail behind the bytes of the last rewrite.
    fn read_edits(&mut self, bytes: &[u8], path: &Path, version: ManifestVersion) -> Result<()> {
        let corrupt = |offset: usize, detail: String| {
            Error::corrupt(path, offset as u64, format!("{detail}; {RESTORE}"))
        };
        while self.byte_count < bytes.len() {
            let offset = self.byte_count;
            match codec::read_record(&bytes[offset..], version) {
                Ok((EditRecord { log, edit }, used)) => {
                    self.state.apply(&edit).map_err(|detail| corrupt(offset, detail))?;
                    let log = log.map(|(segment, offset)| LogPosition { segment, offset });
                    self.state.log = self.state.log.max(log);
                    self.byte_count += used;
                }
                Err(RecordDamage::Broken(detail)) => {
                    let was_whole = (offset as u64) < self.header.base_bytes;
                    if was_whole || codec::holds_record(&bytes[offset + 1..]) {
                        return Err(corrupt(offset, detail));
                    }
                    tracing::warn!(offset, %detail, "the tail of the manifest is torn");
                    break;
                }
                Err(RecordDamage::Unreadable(detail)) => return Err(corrupt(offset, detail)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
