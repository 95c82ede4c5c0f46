//! The manifest: which tables, regions and files are alive.
//!
//! One file, `MANIFEST`, of edits. What they add up to is held in memory ([`ManifestState`]) and
//! written anew, as few edits as possible, at every open and whenever the log of edits has outgrown
//! it. Byte by byte: `docs/formats/manifest.md`.
//!
//! # Invariants
//!
//! 1. An edit is on disk before [`Manifest::append`] returns; what it names was on disk before.
//! 2. `MANIFEST` is replaced by rename only, so there is always one whole manifest.
//! 3. After a failed write nothing is appended behind bytes whose fate is unknown: the file is
//!    written anew, at once or by the next append.
//!
//! Files and directories that the manifest does not name are leftovers; who opens the directory
//! removes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codec;
use crate::codec::Damage;
use crate::descriptor::FileId;
use crate::descriptor::{RegionId, TableDescriptor, TableId};
use crate::env::{AppendFile, Env};
use crate::error::{Error, Result};
use crate::run::FileRecord;

/// The first bytes of a manifest. Never change.
pub const MAGIC: [u8; 8] = *b"bennu-mf";
/// The layout of the file: magic, version, records.
pub const FORMAT_VERSION: u32 = 5;
const HEADER_BYTES: usize = 12;
/// A log of edits below this is not worth rewriting.
const REWRITE_BYTES_MIN: usize = 1 << 20;

/// A region as the manifest knows it.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct RegionRecord {
    /// Its id.
    pub id: RegionId,
    /// First row.
    pub start: Vec<u8>,
    /// Row after the last; `None` for open.
    pub stop: Option<Vec<u8>>,
    /// All commits up to here are in its files.
    pub flushed: u64,
    /// Live files of each family.
    pub files: Vec<Vec<FileRecord>>,
}

/// Files of one family that came and went.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct FamilyChange {
    /// Index of the family.
    pub family: u8,
    /// Files that are not read any more, or not where they were.
    pub removed: Vec<FileId>,
    /// New files, and files in a new place: what is removed goes first.
    pub added: Vec<FileRecord>,
}

/// A change of what is alive. Whole on disk or not there at all.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub enum ManifestEdit {
    /// A table with its regions.
    PutTable {
        /// The table.
        descriptor: TableDescriptor,
        /// Its regions in row order.
        regions: Vec<RegionRecord>,
    },
    /// Other settings for a table; its regions stay.
    AlterTable {
        /// The table.
        descriptor: TableDescriptor,
    },
    /// The table and its regions are gone.
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
        /// What came and went.
        changes: Vec<FamilyChange>,
        /// After a flush: all commits up to here are in files.
        flushed: Option<u64>,
    },
    /// Counters that never go back.
    Marks {
        /// The next region gets this id or a higher one.
        next_region: u64,
        /// Sequences up to here were given.
        last_sequence: u64,
        /// Commit times up to here were given.
        last_timestamp: i64,
        /// All commits up to here are in files of all regions.
        released: u64,
    },
    /// A bulk load: files of a table's regions, all of one commit.
    Adopt {
        /// The table.
        table: TableId,
        /// What came, by region.
        regions: Vec<(RegionId, Vec<FamilyChange>)>,
        /// The commit.
        sequence: u64,
        /// Its time.
        timestamp: i64,
    },
    /// Regions of a table took the place of others that held the same rows: a split or a merge.
    ReplaceRegions {
        /// The table.
        table: TableId,
        /// The regions that are gone.
        removed: Vec<RegionId>,
        /// Those in their place, in row order.
        added: Vec<RegionRecord>,
    },
}

/// A table as the manifest knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRecord {
    /// Its settings.
    pub descriptor: TableDescriptor,
    /// Its regions in row order.
    pub regions: Vec<RegionRecord>,
}

/// What all edits add up to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ManifestState {
    /// Live tables. An edit copies the state, for it may fail, and of the tables only its own.
    pub tables: BTreeMap<TableId, Arc<TableRecord>>,
    /// The next region's id.
    pub next_region: u64,
    /// Sequences up to here were given.
    pub last_sequence: u64,
    /// Commit times up to here were given.
    pub last_timestamp: i64,
    /// All commits up to here are in files of all regions.
    pub released: u64,
}

/// The open manifest.
pub struct Manifest {
    env: Arc<dyn Env>,
    directory: PathBuf,
    state: ManifestState,
    /// `None` after a failed write: the next append writes the file anew.
    file: Option<Box<dyn AppendFile>>,
    written_bytes: usize,
    /// Bytes of the file when it was written anew.
    base_bytes: usize,
    scratch: Vec<u8>,
}

impl ManifestState {
    /// Applies an edit. `Err` says why it makes no sense after those before it.
    fn apply(&mut self, edit: &ManifestEdit) -> std::result::Result<(), String> {
        match edit {
            ManifestEdit::PutTable { descriptor, regions } => {
                for region in regions {
                    self.next_region = self.next_region.max(region.id.0 + 1);
                    self.last_sequence = self.last_sequence.max(region.flushed);
                }
                let record =
                    TableRecord { descriptor: descriptor.clone(), regions: regions.clone() };
                if self.tables.insert(descriptor.id, Arc::new(record)).is_some() {
                    return Err(format!("table {} is created twice", descriptor.id.0));
                }
            }
            ManifestEdit::AlterTable { descriptor } => {
                let table = self.table(descriptor.id)?;
                for region in &mut table.regions {
                    region.files.resize(descriptor.families.len(), Vec::new());
                }
                table.descriptor = descriptor.clone();
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
                // The split may know nothing of a family that was added, but could not be opened.
                for region in &mut table.regions {
                    region.files.resize(table.descriptor.families.len(), Vec::new());
                }
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
        record.map(Arc::make_mut).ok_or_else(|| format!("table {} is not there", table.0))
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
        let record = self
            .table(table)?
            .regions
            .iter_mut()
            .find(|record| record.id == region)
            .ok_or_else(|| format!("region {} is not there", region.0))?;
        for change in changes {
            let files = record
                .files
                .get_mut(usize::from(change.family))
                .ok_or_else(|| format!("family {} is not there", change.family))?;
            for removed in &change.removed {
                let before = files.len();
                files.retain(|file| file.id != *removed);
                if files.len() == before {
                    return Err(format!("file {} is removed but not there", removed.0));
                }
            }
            for added in &change.added {
                if files.iter().any(|file| file.id == added.id) {
                    return Err(format!("file {} is added but there", added.id.0));
                }
                files.push(*added);
            }
        }
        record.flushed = record.flushed.max(flushed.unwrap_or(0));
        Ok(())
    }

    fn edits(&self) -> Vec<ManifestEdit> {
        let marks = ManifestEdit::Marks {
            next_region: self.next_region,
            last_sequence: self.last_sequence,
            last_timestamp: self.last_timestamp,
            released: self.released,
        };
        let tables = self.tables.values().map(|table| ManifestEdit::PutTable {
            descriptor: table.descriptor.clone(),
            regions: table.regions.clone(),
        });
        std::iter::once(marks).chain(tables).collect()
    }
}

/// Puts regions in the place of neighbours that cover the same rows.
fn replace(
    regions: &mut Vec<RegionRecord>,
    removed: &[RegionId],
    added: &[RegionRecord],
) -> std::result::Result<(), String> {
    let at = regions.iter().position(|region| removed.contains(&region.id));
    let at = at.ok_or("a split or merge of regions that are not there")?;
    let gone = regions.get(at..at + removed.len()).ok_or("regions to be replaced are missing")?;
    if !gone.iter().map(|region| region.id).eq(removed.iter().copied()) {
        return Err("regions to be replaced are not neighbours in this order".to_owned());
    }
    let ends = |of: &[RegionRecord]| Some((of.first()?.start.clone(), of.last()?.stop.clone()));
    let joined = added.windows(2).all(|pair| pair[0].stop.as_ref() == Some(&pair[1].start));
    if !joined || ends(gone) != ends(added) {
        return Err("regions are replaced by others that do not cover the same rows".to_owned());
    }
    regions.splice(at..at + removed.len(), added.iter().cloned());
    Ok(())
}

impl Manifest {
    /// Opens the manifest of a data directory, or begins one, and writes it anew.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for damage that a torn last write does not explain.
    pub fn open(env: Arc<dyn Env>, directory: &Path) -> Result<Manifest> {
        let path = directory.join("MANIFEST");
        let exists = env.list(directory)?.iter().any(|name| name.ends_with("MANIFEST"));
        let state = if exists { read(&*env, &path)? } else { ManifestState::default() };
        let mut manifest = Manifest {
            env,
            directory: directory.to_owned(),
            state,
            file: None,
            written_bytes: 0,
            base_bytes: 0,
            scratch: Vec::new(),
        };
        manifest.rewrite()?;
        Ok(manifest)
    }

    /// Returns what is alive.
    pub fn state(&self) -> &ManifestState {
        &self.state
    }

    /// Writes an edit; it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if the edit makes no sense (a table dropped meanwhile);
    /// [`Error::Io`] if it could not be written: it is not there after a restart if the manifest
    /// [is settled](Manifest::is_settled), else it may or may not be.
    pub fn append(&mut self, edit: &ManifestEdit) -> Result<()> {
        let mut next = self.state.clone();
        next.apply(edit).map_err(|detail| Error::InvalidRequest(format!("manifest: {detail}")))?;
        let before = std::mem::replace(&mut self.state, next);
        let outgrown = self.written_bytes > REWRITE_BYTES_MIN.max(4 * self.base_bytes);
        let written =
            if self.file.is_none() || outgrown { self.rewrite() } else { self.write(edit) };
        if written.is_err() {
            self.file = None;
            self.state = before;
            // If this fails too, it is tried again before it matters.
            let _ = self.rewrite();
        }
        written
    }

    /// Returns whether it is known what is on disk: what [`Manifest::state`] says.
    pub fn is_settled(&self) -> bool {
        self.file.is_some()
    }

    /// Makes sure that what is on disk is what [`Manifest::state`] says.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it could not be written.
    pub fn settle(&mut self) -> Result<()> {
        if self.is_settled() { Ok(()) } else { self.rewrite() }
    }

    fn write(&mut self, edit: &ManifestEdit) -> Result<()> {
        self.scratch.clear();
        codec::append_record(edit, &mut self.scratch);
        let file = self.file.as_mut().expect("the caller has looked");
        file.append(&self.scratch)?;
        file.sync()?;
        self.written_bytes += self.scratch.len();
        Ok(())
    }

    fn rewrite(&mut self) -> Result<()> {
        self.file = None;
        let (file, byte_count) = write(&*self.env, &self.directory, &self.state)?;
        self.file = Some(file);
        self.written_bytes = byte_count;
        self.base_bytes = byte_count;
        Ok(())
    }
}

/// Writes the manifest of a directory that holds what `state` names; durable on return.
pub(crate) fn write_manifest(env: &dyn Env, directory: &Path, state: &ManifestState) -> Result<()> {
    write(env, directory, state).map(drop)
}

/// Returns the written file and its bytes.
fn write(
    env: &dyn Env,
    directory: &Path,
    state: &ManifestState,
) -> Result<(Box<dyn AppendFile>, usize)> {
    let bytes = encode(state);
    let new = directory.join("MANIFEST.new");
    let mut file = env.create(&new)?;
    file.append(&bytes)?;
    file.sync()?;
    env.rename(&new, &directory.join("MANIFEST"))?;
    Ok((file, bytes.len()))
}

fn encode(state: &ManifestState) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    for edit in state.edits() {
        codec::append_record(&edit, &mut bytes);
    }
    bytes
}

fn read(env: &dyn Env, path: &Path) -> Result<ManifestState> {
    let file = env.open(path)?;
    let mut bytes = vec![0; file.byte_count()? as usize];
    file.read_at(0, &mut bytes)?;
    if bytes.len() < HEADER_BYTES || bytes[..8] != MAGIC {
        return Err(Error::corrupt(path, 0, "not a manifest"));
    }
    let version = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    if version != FORMAT_VERSION {
        let detail = format!("format version is {version}, this program reads {FORMAT_VERSION}");
        return Err(Error::corrupt(path, 8, detail));
    }
    let mut state = ManifestState::default();
    let mut offset = HEADER_BYTES;
    while offset < bytes.len() {
        match codec::read_record::<ManifestEdit>(&bytes[offset..]) {
            Ok((edit, used)) => {
                state.apply(&edit).map_err(|detail| Error::corrupt(path, offset as u64, detail))?;
                offset += used;
            }
            Err(Damage::Broken(detail)) => {
                if codec::holds_record(&bytes[offset + 1..]) {
                    return Err(Error::corrupt(path, offset as u64, detail));
                }
                tracing::warn!(offset, %detail, "cut the torn tail of the manifest");
                break;
            }
            Err(Damage::Unreadable(detail)) => {
                return Err(Error::corrupt(path, offset as u64, detail));
            }
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::{Durability, FamilyDescriptor, SplitOptions};
    use crate::env::fault::{FaultEnv, Unsynced};

    const DIRECTORY: &str = "/data";

    fn table(id: u32) -> ManifestEdit {
        ManifestEdit::PutTable {
            descriptor: TableDescriptor {
                id: TableId(id),
                name: format!("t{id}"),
                families: vec![FamilyDescriptor::new("d")],
                region_replication: 1,
                durability: Durability::SyncWal,
                split_points: Vec::new(),
                memstore_flush_bytes: None,
                split: SplitOptions::default(),
            },
            regions: vec![RegionRecord {
                id: RegionId(u64::from(id) * 10),
                start: Vec::new(),
                stop: None,
                flushed: 0,
                files: vec![Vec::new()],
            }],
        }
    }

    fn files(table: u32, added: &[u64], removed: &[u64], flushed: Option<u64>) -> ManifestEdit {
        let added = added.iter().map(|&id| FileRecord::alone(FileId(id), 5)).collect();
        let removed = removed.iter().copied().map(FileId).collect();
        ManifestEdit::Region {
            table: TableId(table),
            region: RegionId(u64::from(table) * 10),
            changes: vec![FamilyChange { family: 0, added, removed }],
            flushed,
        }
    }

    fn open(env: &FaultEnv) -> Result<Manifest> {
        env.create_directory(Path::new(DIRECTORY)).unwrap();
        Manifest::open(Arc::new(env.clone()), Path::new(DIRECTORY))
    }

    fn path() -> PathBuf {
        Path::new(DIRECTORY).join("MANIFEST")
    }

    fn bytes_of(edits: &[ManifestEdit]) -> Vec<u8> {
        let env = FaultEnv::new(1);
        let mut manifest = open(&env).unwrap();
        edits.iter().for_each(|edit| manifest.append(edit).unwrap());
        env.bytes(&path()).unwrap()
    }

    #[test]
    fn edits_add_up_and_survive_a_crash() {
        let env = FaultEnv::new(1);
        let mut manifest = open(&env).unwrap();
        manifest.append(&table(1)).unwrap();
        manifest.append(&table(2)).unwrap();
        manifest.append(&files(1, &[1], &[], Some(7))).unwrap();
        manifest.append(&files(1, &[2], &[], Some(9))).unwrap();
        manifest.append(&files(1, &[3], &[1, 2], None)).unwrap();
        manifest.append(&ManifestEdit::DropTable { table: TableId(2) }).unwrap();
        let state = manifest.state().clone();
        assert_eq!(state.next_region, 21);
        let region = &state.tables[&TableId(1)].regions[0];
        assert_eq!(
            (region.flushed, region.files.clone()),
            (9, vec![vec![FileRecord::alone(FileId(3), 5)]])
        );
        for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Holed] {
            assert_eq!(*open(&env.after_crash(unsynced)).unwrap().state(), state);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_changes_nothing() {
        let env = FaultEnv::new(1);
        let mut manifest = open(&env).unwrap();
        manifest.append(&table(1)).unwrap();
        let state = manifest.state().clone();
        for edit in [table(1), files(2, &[1], &[], None), files(1, &[], &[4], None)] {
            assert!(matches!(manifest.append(&edit), Err(Error::InvalidRequest(_))), "{edit:?}");
        }
        assert_eq!(*manifest.state(), state);
        manifest.append(&files(1, &[5], &[], None)).unwrap();
        assert_ne!(*open(&env.after_crash(Unsynced::Lost)).unwrap().state(), state);
    }

    #[test]
    fn a_torn_tail_is_cut_and_damage_before_it_is_an_error() {
        let whole = bytes_of(&[table(1), table(2)]);
        let one = bytes_of(&[table(1)]);
        for length in one.len() + 1..whole.len() {
            let env = FaultEnv::new(1);
            env.create_directory(Path::new(DIRECTORY)).unwrap();
            env.place(&path(), whole[..length].to_vec());
            assert_eq!(open(&env).unwrap().state().tables.len(), 1, "cut at {length}");
        }
        for flipped in 0..one.len() {
            let env = FaultEnv::new(1);
            env.create_directory(Path::new(DIRECTORY)).unwrap();
            let mut bytes = whole.clone();
            bytes[flipped] ^= 0x40;
            env.place(&path(), bytes);
            let opened = open(&env);
            assert!(matches!(opened, Err(Error::Corrupt { .. })), "bit flipped in {flipped}");
        }
    }

    #[test]
    fn after_a_failed_write_the_file_is_written_anew() {
        for failing in 0..4 {
            let env = FaultEnv::new(failing);
            let mut manifest = open(&env).unwrap();
            manifest.append(&table(1)).unwrap();
            env.fail_after(failing);
            let second = manifest.append(&table(2)).is_ok();
            let after = open(&env.after_crash(Unsynced::Torn)).unwrap();
            let count = after.state().tables.len();
            assert!(count == 2 || !second && count == 1, "{count} after write {failing}");
        }
    }

    /// The example of `docs/formats/manifest.md`.
    #[test]
    fn the_documented_example_holds() {
        let state = ManifestState {
            next_region: 3,
            last_sequence: 300,
            last_timestamp: 5,
            released: 2,
            ..ManifestState::default()
        };
        let hex: String = encode(&state).iter().map(|byte| format!("{byte:02x}")).collect();
        let documented: String = include_str!("../../docs/formats/manifest.md")
            .lines()
            .skip_while(|line| *line != "```hex")
            .skip(1)
            .take_while(|line| *line != "```")
            .flat_map(|line| line.split('|').next().unwrap_or("").chars())
            .filter(|c| !c.is_whitespace())
            .collect();
        assert_eq!(hex, documented);
    }
}
