//! Salvage: copies the readable content of a damaged data directory to a new one.
//!
//! ```text
//!   manifest, as far as it is readable -----------.
//!   descriptions of regions, if it is incomplete --+--> tables and regions
//!   store files, block by block   --> one file for each family of a region
//!   log, record by record         --> one segment
//!                                 --> a new manifest, of a new database
//! ```
//!
//! The damaged directory is not changed. Cells keep their timestamps and sequences, so the
//! history of the readable cells is preserved. Losses are reported; the rest need not be a state
//! that ever existed: cells deleted by a lost file or commit may reappear, and an index may refer
//! to lost rows, or lack some.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cache::{BlockCache, FamilyCache};
use crate::cell::{KeyParts, Sequence, Timestamp, compare_keys, row_of};
use crate::description::RegionDescription;
use crate::descriptor::colocation::Partitioning;
use crate::descriptor::{
    DatabaseId, FileId, FileIdentity, RegionId, RowRange, TableDescriptor, TableId,
};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::family_store::file_name;
use crate::file::{Caching, FileCursor, FileWriter, StoreFile, rescue};
use crate::manifest::{self, ManifestState, NO_BEGIN, RegionRecord, TableRecord, UNKNOWN_CREATION};
use crate::region::directory_of;
use crate::run::FileRecord;
use crate::scan::merge::{Cursor, Merge, RowOrder};
use crate::wal;

/// Result of a salvage: copied objects, and losses.
#[derive(Debug, Clone, Default)]
pub struct Salvaged {
    /// Number of tables.
    pub tables: usize,
    /// Number of regions.
    pub regions: usize,
    /// Number of store files read.
    pub files: usize,
    /// Number of cells of store files.
    pub cells: u64,
    /// Number of commits of the log.
    pub commits: u64,
    /// The losses, one line each.
    pub losses: Vec<String>,
}

/// Copies the readable content of a data directory to a new one. The old one is not changed, and
/// no other process may have it open.
///
/// # Errors
///
/// [`Error::InvalidRequest`] if the new directory exists and is not empty, or if no table is
/// known; [`Error::InUse`], [`Error::Io`].
pub fn salvage(env: &Arc<dyn Env>, from: &Path, to: &Path) -> Result<Salvaged> {
    let names = env.list(from)?;
    if !env.list(to)?.is_empty() || to.starts_with(from) {
        let to = to.display();
        return Err(Error::InvalidRequest(format!(
            "directory \"{to}\" is not empty, or is inside the damaged directory; specify a new \
             directory"
        )));
    }
    let lock = names.iter().any(|name| name.as_os_str() == "LOCK");
    let _lock = if lock { Some(env.lock(&from.join("LOCK"))?) } else { None };
    let database = env.new_id()?;
    env.create_directory(to)?;
    let cache = Arc::new(FamilyCache::new(Arc::new(BlockCache::new(16 << 20))));
    let salvaged = Salvaged::default();
    let logged = BTreeMap::new();
    let (next_region, newest) = (0, 0);
    let mut salvage =
        Salvage { env, from, to, database, cache, salvaged, next_region, newest, logged };
    salvage.run()?;
    Ok(salvage.salvaged)
}

struct Salvage<'a> {
    env: &'a Arc<dyn Env>,
    from: &'a Path,
    to: &'a Path,
    database: DatabaseId,
    cache: Arc<FamilyCache>,
    salvaged: Salvaged,
    next_region: u64,
    /// The newest commit in any file.
    newest: u64,
    /// The commits of the log in each region, ascending.
    logged: BTreeMap<RegionId, Vec<Sequence>>,
}

/// Placeholder for the commit of a bulk load that no manifest records.
const UNKNOWN_LOAD: u64 = 1;

/// A store file to be read.
struct SalvagedFile {
    path: PathBuf,
    adopted: Option<u64>,
    identity: Option<FileIdentity>,
}

/// The tables, each with the regions to be copied.
type TablesToCopy = BTreeMap<TableId, (Arc<TableDescriptor>, Vec<RegionSource>)>;

/// A region to be copied.
struct RegionSource {
    id: RegionId,
    rows: RowRange,
    flushed: u64,
    /// By family.
    files: Vec<Vec<SalvagedFile>>,
    /// True if a complete manifest lists the files.
    listed: bool,
    /// True if so, and no file is missing.
    is_complete: bool,
}

impl Salvage<'_> {
    fn run(&mut self) -> Result<()> {
        let (state, mark, mut is_whole) = self.read_manifest();
        let released = Sequence(state.released);
        let log_to = self.to.join("wal");
        let mut next_region = state.next_region;
        let mut logged: BTreeMap<RegionId, Vec<Sequence>> = BTreeMap::new();
        let mut seen = |region: RegionId, sequence| {
            next_region = next_region.max(region.0 + 1);
            logged.entry(region).or_default().push(sequence);
        };
        let copy = (log_to.as_path(), self.database);
        let log = wal::rescue(&**self.env, &self.from.join("wal"), copy, released, &mut seen)?;
        self.next_region = next_region;
        self.logged = logged;
        self.salvaged.commits = log.record_count;
        self.salvaged.losses.extend(log.losses);
        if state.log.is_some_and(|known| known > log.read_to) {
            self.lose(format!(
                "the write-ahead log: commits after sequence number {}",
                log.last.sequence.0
            ));
        }
        if is_whole && log.manifest > mark {
            self.lose("the manifest: the last edits".to_owned());
            is_whole = false;
        }
        let tables = self.tables(&state, is_whole)?;
        if tables.is_empty() && !is_whole {
            return Err(Error::InvalidRequest(
                "no table can be recovered: there is no readable manifest and no region descriptor"
                    .to_owned(),
            ));
        }
        let mut written = ManifestState {
            last_sequence: state.last_sequence.max(log.last.sequence.0),
            last_timestamp: state.last_timestamp.max(log.last.timestamp.0),
            log: Some(log.end),
            ..ManifestState::default()
        };
        for (id, (descriptor, regions)) in tables {
            let record = self.table(descriptor, regions)?;
            let flushed = record.regions.iter().map(|region| region.flushed).max();
            written.last_sequence = written.last_sequence.max(flushed.unwrap_or(0));
            written.tables.insert(id, Arc::new(record));
        }
        written.last_sequence = written.last_sequence.max(self.newest);
        written.next_region = self.next_region;
        // The dropped and lost versions are unknown, so time travel must begin now.
        let now = Timestamp(self.env.now_micros());
        written.begin_histories(now.max(Timestamp(written.last_timestamp)));
        self.salvaged.tables = written.tables.len();
        manifest::write_closed(&**self.env, self.to, self.database, &written)
    }

    fn lose(&mut self, what: String) {
        self.salvaged.losses.push(what);
    }

    /// Returns the readable content of the manifest, and whether it is complete.
    fn read_manifest(&mut self) -> (ManifestState, wal::ManifestMark, bool) {
        match manifest::read_some(&**self.env, &self.from.join(manifest::NAME)) {
            Ok((content, None)) => (content.state.clone(), content.mark(), true),
            Ok((content, Some(damage))) => {
                self.lose(format!("the manifest: edits after the damage: {damage}"));
                (content.state.clone(), content.mark(), false)
            }
            Err(error) => {
                self.lose(format!("the manifest: {error}"));
                (ManifestState::default(), wal::ManifestMark::default(), false)
            }
        }
    }

    /// Returns the tables with the regions to be copied.
    fn tables(&mut self, state: &ManifestState, is_whole: bool) -> Result<TablesToCopy> {
        let mut tables = BTreeMap::new();
        for (id, table) in &state.tables {
            let mut regions = Vec::with_capacity(table.regions.len());
            for record in &table.regions {
                regions.push(self.listed(record, is_whole)?);
            }
            tables.insert(*id, (Arc::clone(&table.descriptor), regions));
        }
        if is_whole {
            return Ok(tables);
        }
        // The newest first: where two regions overlap, a split or a merge has created the newer
        // one.
        let mut described = self.described(state)?;
        described.sort_by_key(|description| std::cmp::Reverse(description.region));
        for description in described {
            let (region, rows) = (description.region, description.rows());
            let family_count = description.table.families.len();
            let source = self.unlisted(region, rows, family_count)?;
            let (_, regions) = tables
                .entry(description.table.id)
                .or_insert_with(|| (Arc::new(description.table.clone()), Vec::new()));
            if regions.iter().any(|other| other.id == region) {
                continue;
            }
            // A region is described after the manifest lists it, when its files exist. So it has
            // all cells of older regions, regardless of their completeness, and later ones.
            let mut others = regions.iter().filter(|other| overlap(&other.rows, &source.rows));
            if others.any(|other| other.id > region) {
                let name = &description.table.name;
                self.salvaged.losses.push(format!(
                    "table \"{name}\": region {} is not copied because other regions have its rows",
                    region.0
                ));
                continue;
            }
            regions.retain(|other| !overlap(&other.rows, &source.rows));
            regions.push(source);
        }
        Ok(tables)
    }

    /// Returns the descriptions of the regions that have one.
    fn described(&mut self, state: &ManifestState) -> Result<Vec<RegionDescription>> {
        let directory = self.from.join("regions");
        let listed: BTreeSet<u64> =
            state.tables.values().flat_map(|table| &table.regions).map(|at| at.id.0).collect();
        let mut described = Vec::new();
        for name in self.env.list(&directory)? {
            let Some(region) = name.to_str().and_then(|name| name.parse::<u64>().ok()) else {
                continue;
            };
            match RegionDescription::read(&**self.env, &directory.join(&name)) {
                Some(description) => described.push(description),
                None if listed.contains(&region) => {}
                None => {
                    self.lose(format!("region {region}: not copied because its table is unknown"))
                }
            }
        }
        Ok(described)
    }

    fn listed(&mut self, record: &RegionRecord, is_whole: bool) -> Result<RegionSource> {
        let directory = directory_of(&self.from.join("regions"), record.id);
        let mut files = Vec::with_capacity(record.files.len());
        for (family, records) in record.files.iter().enumerate() {
            let directory = directory.join(family.to_string());
            let source = |record: &FileRecord| SalvagedFile {
                path: directory.join(file_name(family as u8, record.id)),
                adopted: record.adopted,
                identity: record.identity,
            };
            files.push(records.iter().map(source).collect::<Vec<SalvagedFile>>());
        }
        let rows = RowRange { start: record.start.clone(), stop: record.stop.clone() };
        let is_complete = files.iter().flatten().all(|file| self.env.open(&file.path).is_ok());
        let (id, flushed) = (record.id, record.flushed);
        let mut region = RegionSource { id, rows, flushed, files, listed: is_whole, is_complete };
        if !is_whole {
            // Files that the manifest lost may be newer than all listed ones, or may have been
            // compacted from them.
            let found = self.unlisted(record.id, RowRange::default(), region.files.len())?;
            for (listed, found) in region.files.iter_mut().zip(found.files) {
                for file in found {
                    let adds = !region.is_complete
                        || file.adopted.is_some()
                        || self.open(&file).is_ok_and(|opened| {
                            opened.properties().max_sequence.0 > record.flushed
                        });
                    if adds && !listed.iter().any(|listed| listed.path == file.path) {
                        listed.push(file);
                    }
                }
            }
        }
        Ok(region)
    }

    /// Returns a region with all files in its directory.
    fn unlisted(&self, id: RegionId, rows: RowRange, family_count: usize) -> Result<RegionSource> {
        let directory = directory_of(&self.from.join("regions"), id);
        let mut files = Vec::with_capacity(family_count);
        for family in 0..family_count {
            let directory = directory.join(family.to_string());
            let mut sources = Vec::new();
            for name in self.env.list(&directory)? {
                if name.extension().is_some_and(|extension| extension == "store") {
                    let path = directory.join(name);
                    let source = SalvagedFile { path, adopted: None, identity: None };
                    // Cells of a bulk load have no sequence; the manifest recorded it.
                    let loaded = self
                        .open(&source)
                        .is_ok_and(|file| file.properties().max_sequence == Sequence(0));
                    sources
                        .push(SalvagedFile { adopted: loaded.then_some(UNKNOWN_LOAD), ..source });
                }
            }
            files.push(sources);
        }
        Ok(RegionSource { id, rows, flushed: 0, files, listed: false, is_complete: false })
    }

    fn open(&self, source: &SalvagedFile) -> Result<StoreFile> {
        let file = StoreFile::open(Arc::clone(self.env), &source.path, Arc::clone(&self.cache))?;
        if source.identity.is_some() && file.identity() != source.identity {
            return Err(Error::corrupt(&source.path, 0, "it was replaced by another file"));
        }
        Ok(match source.adopted {
            Some(sequence) => file.adopted_at(Sequence(sequence)),
            None => file,
        })
    }

    fn table(
        &mut self,
        descriptor: Arc<TableDescriptor>,
        mut regions: Vec<RegionSource>,
    ) -> Result<TableRecord> {
        regions.sort_by(|a, b| a.rows.start.cmp(&b.rows.start));
        let mut records: Vec<RegionRecord> = Vec::with_capacity(regions.len());
        // The first row without a region so far; `None` behind the last.
        let mut next = Some(Vec::new());
        for region in regions {
            if let Some(gap) = next.take().filter(|next| *next < region.rows.start) {
                let stop = Some(region.rows.start.clone());
                records.push(self.empty_region(&descriptor, RowRange { start: gap, stop }));
            }
            next.clone_from(&region.rows.stop);
            records.push(self.region(&descriptor, region)?);
        }
        if let Some(start) = next {
            records.push(self.empty_region(&descriptor, RowRange { start, stop: None }));
        }
        Ok(TableRecord { descriptor, regions: records })
    }

    /// Returns an empty region for rows without any data.
    fn empty_region(&mut self, descriptor: &TableDescriptor, rows: RowRange) -> RegionRecord {
        let id = RegionId(self.next_region);
        self.next_region += 1;
        self.lose(format!("table \"{}\": a region without any files", descriptor.name));
        let files = vec![Vec::new(); descriptor.families.len()];
        let history = vec![NO_BEGIN; files.len()];
        let created_micros = UNKNOWN_CREATION;
        let RowRange { start, stop } = rows;
        RegionRecord { id, start, stop, flushed: 0, files, history, created_micros }
    }

    fn region(
        &mut self,
        descriptor: &TableDescriptor,
        region: RegionSource,
    ) -> Result<RegionRecord> {
        self.salvaged.regions += 1;
        self.next_region = self.next_region.max(region.id.0 + 1);
        let mut by_family = Vec::with_capacity(descriptor.families.len());
        let (mut is_whole, mut newest) = (region.listed, 0);
        for family in 0..descriptor.families.len() {
            let sources = region.files.get(family).map_or(&[][..], Vec::as_slice);
            let mut opened = Vec::with_capacity(sources.len());
            for (index, source) in sources.iter().enumerate() {
                match self.readable(descriptor, (region.id, family, index), source)? {
                    Some(file) => {
                        newest = newest.max(file.properties().max_sequence.0);
                        opened.push(file);
                    }
                    None => is_whole = false,
                }
            }
            by_family.push(opened);
        }
        self.newest = self.newest.max(newest);
        // The log may have the cells of lost files, or of memstores that were not flushed.
        let (flushed, replayed) = match is_whole {
            true => (region.flushed, Vec::new()),
            false => {
                let mut replayed = self.logged.remove(&region.id).unwrap_or_default();
                replayed.retain(|sequence| sequence.0 <= newest);
                // Cells of a load with an unknown commit would be mistaken for those of another
                // one.
                let is_load = |source: &SalvagedFile| source.adopted == Some(UNKNOWN_LOAD);
                if region.files.iter().flatten().any(is_load) {
                    replayed.retain(|sequence| sequence.0 > UNKNOWN_LOAD);
                }
                (replayed.first().map_or(newest, |first| first.0 - 1), replayed)
            }
        };
        let mut files = Vec::with_capacity(by_family.len());
        for (family, opened) in by_family.into_iter().enumerate() {
            let merged = self.merge(descriptor, (&region, family), opened, &replayed)?;
            files.push(merged.into_iter().collect());
        }
        let RowRange { start, stop } = region.rows;
        let history = vec![NO_BEGIN; files.len()];
        let (id, created_micros) = (region.id, UNKNOWN_CREATION);
        Ok(RegionRecord { id, start, stop, flushed, files, history, created_micros })
    }

    /// Returns a completely readable file: the existing one, or a copy of its readable cells.
    fn readable(
        &mut self,
        descriptor: &TableDescriptor,
        (region, family, index): (RegionId, usize, usize),
        source: &SalvagedFile,
    ) -> Result<Option<StoreFile>> {
        let of_table = |what: String| format!("table \"{}\": {what}", descriptor.name);
        let file = match self.open(source) {
            Ok(file) => file,
            Err(error @ (Error::Corrupt { .. } | Error::Io { .. })) => {
                self.lose(of_table(error.to_string()));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.salvaged.files += 1;
        let damage = rescue(&file, &mut |_, _| Ok(()))?;
        if damage.is_empty() {
            return Ok(Some(file));
        }
        self.salvaged.losses.extend(damage.iter().map(|error| of_table(error.to_string())));
        let path = self.to.join(format!("rest-{}-{family}-{index}", region.0));
        let mut writer = FileWriter::new(Arc::clone(self.env), &path, &descriptor.families[family]);
        drop(rescue(&file, &mut |key, value| writer.add(key, value))?);
        if writer.finish()?.is_none() {
            return Ok(None);
        }
        let rest = SalvagedFile { path, adopted: source.adopted, identity: None };
        let file = self.open(&rest)?;
        // The last reader removes it.
        file.mark_obsolete();
        Ok(Some(file))
    }

    /// Writes the cells of a family of a region to one file, except those of commits that the
    /// first opening replays from the log.
    fn merge(
        &mut self,
        descriptor: &TableDescriptor,
        (region, family): (&RegionSource, usize),
        files: Vec<StoreFile>,
        replayed: &[Sequence],
    ) -> Result<Option<FileRecord>> {
        let directory = directory_of(&self.to.join("regions"), region.id).join(family.to_string());
        self.env.create_directory(&directory)?;
        if files.is_empty() {
            return Ok(None);
        }
        let id = FileId(1);
        let identity = FileIdentity {
            database: self.database,
            table: descriptor.id,
            region: region.id,
            family: family as u8,
            file: id,
        };
        let path = directory.join(file_name(family as u8, id));
        let mut writer = FileWriter::new(Arc::clone(self.env), &path, &descriptor.families[family])
            .identified(identity);
        let partitioning = Partitioning::of(descriptor);
        let range = match partitioning {
            Partitioning::Row => region.rows.clone(),
            Partitioning::BaseRow => RowRange::default(),
        };
        let cursors = files
            .into_iter()
            .map(|file| FileCursor::forward(Arc::new(file), &range.start, Caching::Bypass));
        let mut merge = Merge::new(cursors.collect::<Result<_>>()?, RowOrder::Forward)?;
        let mut previous: Vec<u8> = Vec::new();
        while let Some(key) = merge.key() {
            if !range.is_before_stop(row_of(key)) {
                break;
            }
            let is_of_region = partitioning.holds(&region.rows, row_of(key));
            // A file and the output of its compaction may both exist.
            let is_new = previous.is_empty() || compare_keys(&previous, key).is_lt();
            let is_replayed = KeyParts::decode(key)
                .is_some_and(|parts| replayed.binary_search(&parts.sequence).is_ok());
            if is_new && is_of_region && !is_replayed {
                writer.add(key, merge.value())?;
                previous.clear();
                previous.extend_from_slice(key);
                self.salvaged.cells += 1;
            }
            merge.advance()?;
        }
        let written = writer.finish()?;
        let now = self.env.now_micros();
        let record = FileRecord { identity: Some(identity), ..FileRecord::alone(id, now) };
        Ok(written.map(|_| record))
    }
}

/// Returns whether two ranges overlap.
fn overlap(a: &RowRange, b: &RowRange) -> bool {
    a.is_before_stop(&b.start) && b.is_before_stop(&a.start)
}
