//! Opening of a data directory: its content is checked for completeness before anything is
//! changed.
//!
//! ```text
//!   names --> lock --> manifest --> store files --> log replayed   read-only so far
//!         --> new segment --> manifest rewritten --> leftovers removed
//! ```
//!
//! Manifest and log record each other's length on disk ([`crate::manifest`], [`crate::wal`]),
//! store files record their identity. If one of them is missing, is shorter than recorded or is a
//! different one, the directory is not opened and stays unchanged.
//!
//! # Invariants
//!
//! 1. An opening that finds something missing removes nothing.
//! 2. A removed file has a name that this program gives, and a complete manifest does not list
//!    it: a leftover of a flush, a compaction, a bulk load, a split or a drop that a crash
//!    interrupted.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::admission::Admission;
use crate::budget::Budget;
use crate::cache::BlockCache;
use crate::cell::{Sequence, Timestamp};
use crate::descriptor::{RegionId, TableDescriptor};
use crate::engine::{CommitClock, Engine, EngineComponents, Tables};
use crate::env::Env;
use crate::error::{Error, RESTORE, Result};
use crate::family_store::StoreContext;
use crate::manifest::{self, Manifest, RegionRecord};
use crate::options::Options;
use crate::read_path::ReadPath;
use crate::region::{Region, RegionMap};
use crate::replica::{ReplicaFeed, Replicated};
use crate::snapshot::{SnapshotLimits, Snapshots};
use crate::spill::{self, SpillDirectory};
use crate::table::Table;
use crate::wal::{ManifestLogState, Record, Wal, WalOptions};

/// The lock file.
const LOCK: &str = "LOCK";
/// Directory of the log.
const LOG: &str = "wal";
/// Directory of the regions' files.
const REGIONS: &str = "regions";
/// Temporary name of a new manifest.
const NEW_MANIFEST: &str = "MANIFEST.new";

/// Opens a data directory, or creates one.
///
/// # Errors
///
/// As for [`crate::Store::open`].
pub(crate) fn open_engine(directory: &Path, options: Options) -> Result<Engine> {
    let (admission, options) = Admission::new(options);
    let env = Arc::clone(&options.env);
    check_names(&*env, directory)?;
    env.create_directory(directory)?;
    env.protect_directory(directory)?;
    let directory_lock = env.lock(&directory.join(LOCK))?;
    let mut manifest = Manifest::read(Arc::clone(&env), directory)?;
    if manifest.is_new() {
        // First of all: without a manifest, other content is not opened.
        manifest.begin(None)?;
    }
    let cache = Arc::new(BlockCache::new(Budget::of(options.memory_bytes).cache));
    let database = manifest.database();
    let context = Arc::new(StoreContext { options: options.clone(), cache, database });
    let regions_directory = directory.join(REGIONS);
    let tables = open_tables(&context, &regions_directory, &manifest)?;
    let regions: Vec<Arc<Region>> =
        tables.values().flat_map(|table| table.regions().all().to_vec()).collect();
    let is_whole = regions.iter().all(|region| region.check_whole().is_ok());
    let wal = replay(directory, &options, (&manifest, is_whole), &regions)?;
    // Everything known was found. From here on the directory is changed.
    let directories = RegionDirectories::find(&*env, &regions_directory, &manifest)?;
    manifest.skip_regions(directories.next_region);
    begin_manifest(&mut manifest, &wal)?;
    for table in tables.values() {
        let descriptor = table.descriptor();
        for region in table.regions().all() {
            region.create_directories()?;
            region.describe_once(&descriptor)?;
        }
    }
    if is_whole {
        let mut leftovers = directories.unlisted;
        for region in &regions {
            leftovers.files.extend(region.unlisted_files()?);
        }
        leftovers.remove(&*env)?;
        spill::clear(&*env, &directory.join(spill::NAME))?;
    } else {
        tracing::warn!(
            "a store file is damaged; files that the manifest does not list are not removed"
        );
    }
    let staged = directory.join(spill::NAME);
    let spill = Arc::new(SpillDirectory::new(Arc::clone(&env), staged, &context.cache));
    let feed = Arc::new(ReplicaFeed::new());
    let limits =
        SnapshotLimits { age_max: options.snapshot_age_max, count_max: options.snapshot_count_max };
    let reads = ReadPath { options, snapshots: Arc::new(Snapshots::new(limits)), feed };
    let engine = Engine::new(EngineComponents {
        reads: Arc::new(reads),
        admission,
        context,
        regions_directory,
        spill,
        tables,
        wal,
        manifest,
        directory_lock,
    });
    for region in engine.regions() {
        engine.pressure.add(region.report_bytes().1);
    }
    Ok(engine)
}

/// Writes the manifest again, to be appended to. On a full disk the database can be read: each edit
/// tries to write the file again.
fn begin_manifest(manifest: &mut Manifest, wal: &Wal) -> Result<()> {
    match manifest.begin(Some(wal.synced())) {
        Err(error) if error.is_disk_full() && wal.status().failed.is_some() => {
            tracing::warn!(%error, "could not write the manifest");
            Ok(())
        }
        outcome => outcome,
    }
}

/// Opens the regions of a table.
///
/// # Errors
///
/// Errors of [`Region::open`].
pub(crate) fn open_table(
    context: &Arc<StoreContext>,
    regions_directory: &Path,
    descriptor: Arc<TableDescriptor>,
    regions: &[RegionRecord],
) -> Result<Table> {
    let mut opened = Vec::with_capacity(regions.len());
    for record in regions {
        opened.push(Arc::new(Region::open(context, regions_directory, &descriptor, record)?));
    }
    Ok(Table::new(descriptor, RegionMap::new(opened)))
}

/// Checks by the names in a directory that it is a data directory or can become one.
fn check_names(env: &dyn Env, directory: &Path) -> Result<()> {
    let names = env.list(directory)?;
    let has = |wanted: &str| names.iter().any(|name| name.as_os_str() == wanted);
    if has(manifest::NAME) {
        return Ok(());
    }
    if let Some(part) = [LOG, REGIONS].into_iter().find(|part| has(part)) {
        let detail = format!(
            "the manifest is missing, but the directory contains \"{part}\" of a database; \
             {RESTORE}"
        );
        return Err(Error::corrupt(directory.join(manifest::NAME), 0, detail));
    }
    // Leftovers of a failed first opening.
    let is_own = |name: &&PathBuf| [LOCK, NEW_MANIFEST].map(OsStr::new).contains(&name.as_os_str());
    match names.iter().find(|name| !is_own(name)) {
        None => Ok(()),
        Some(foreign) => Err(Error::InvalidRequest(format!(
            "directory \"{}\" contains no database but is not empty: it contains \"{}\"; empty it, \
             or specify another directory",
            directory.display(),
            foreign.display()
        ))),
    }
}

fn open_tables(
    context: &Arc<StoreContext>,
    regions_directory: &Path,
    manifest: &Manifest,
) -> Result<Tables> {
    let mut tables = Tables::default();
    for (id, record) in &manifest.state().tables {
        let descriptor = Arc::clone(&record.descriptor);
        let table = open_table(context, regions_directory, descriptor, &record.regions)?;
        for region in table.regions().all() {
            let count = usize::from(record.descriptor.region_replication.saturating_sub(1));
            region.begin_replicas(count, region.flushed());
        }
        tables.insert(*id, Arc::new(table));
    }
    Ok(tables)
}

/// Opens the log and applies to the regions the commits that are not in their files.
fn replay(
    directory: &Path,
    options: &Options,
    (manifest, is_whole): (&Manifest, bool),
    regions: &[Arc<Region>],
) -> Result<Wal> {
    let state = manifest.state();
    let known = ManifestLogState {
        released: Sequence(state.released),
        last: CommitClock {
            sequence: Sequence(state.last_sequence),
            timestamp: Timestamp(state.last_timestamp),
        },
        durable: state.log,
        manifest: manifest.mark(),
        manifest_path: manifest.path(),
        keeps_strays: !is_whole,
    };
    let regions: HashMap<RegionId, &Arc<Region>> =
        regions.iter().map(|region| (region.id(), region)).collect();
    let mut record_count = 0u64;
    let mut apply = |record: &Record<'_>| -> Result<()> {
        record_count += 1;
        let sequence = record.clock().sequence;
        for (id, cells) in record.edits() {
            let Some(region) = regions.get(&id) else {
                if id.0 >= state.next_region {
                    return Err(unknown_region(manifest, id));
                }
                // It was dropped, or other regions have its rows.
                continue;
            };
            if sequence > region.flushed() {
                region.apply_to_replicas(sequence, &cells);
                region.apply(sequence, cells);
            }
        }
        Ok(())
    };
    let wal_options = WalOptions {
        env: Arc::clone(&options.env),
        directory: directory.join(LOG),
        database: manifest.database(),
        segment_bytes: options.wal_segment_bytes,
        archive: options.wal_archive.clone(),
        unsynced_bytes_max: Budget::of(options.memory_bytes).unsynced,
    };
    let wal = Wal::open(wal_options, &known, &mut apply)?;
    tracing::info!(
        records = record_count,
        last = wal.clock().sequence.0,
        "replayed the write-ahead log"
    );
    Ok(wal)
}

fn unknown_region(manifest: &Manifest, region: RegionId) -> Error {
    let detail = format!(
        "the manifest is truncated: the write-ahead log has writes to region {}, which the \
         manifest does not list; {RESTORE}",
        region.0
    );
    Error::corrupt(manifest.path(), manifest.mark().byte_count, detail)
}

/// Content of the directory of the regions.
struct RegionDirectories {
    /// Directories that the manifest does not list.
    unlisted: Leftovers,
    /// Lower bound for new ids, above all existing ones.
    next_region: u64,
}

impl RegionDirectories {
    fn find(env: &dyn Env, directory: &Path, manifest: &Manifest) -> Result<RegionDirectories> {
        let tables = manifest.state().tables.values();
        let listed: HashSet<u64> =
            tables.flat_map(|table| &table.regions).map(|region| region.id.0).collect();
        let mut found = RegionDirectories { unlisted: Leftovers::default(), next_region: 0 };
        for name in env.list(directory)? {
            let region = name.to_str().and_then(|name| name.parse::<u64>().ok());
            // In canonical form, not "+7" or "007".
            match region.filter(|region| name.as_os_str() == region.to_string().as_str()) {
                None => {
                    let name = name.display();
                    tracing::warn!(%name, "ignoring a directory that is not a region directory");
                }
                Some(region) => {
                    found.next_region = found.next_region.max(region.saturating_add(1));
                    if !listed.contains(&region) {
                        found.unlisted.directories.push(directory.join(name));
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Files and directories that no manifest lists.
#[derive(Default)]
struct Leftovers {
    files: Vec<PathBuf>,
    directories: Vec<PathBuf>,
}

impl Leftovers {
    fn remove(self, env: &dyn Env) -> Result<()> {
        for path in &self.files {
            tracing::info!(path = %path.display(), "removing an incomplete file");
            env.remove(path)?;
        }
        for path in &self.directories {
            tracing::info!(path = %path.display(), "removing the files of a dropped region");
            env.remove_directory(path)?;
        }
        Ok(())
    }
}
