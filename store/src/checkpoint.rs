//! Checkpoints: a copy of the store in another directory, made of hard links, while the store is
//! in use.
//!
//! ```text
//!   all memstores flushed, as a start
//!   write gates of all regions closed --> the sequence S, memstores frozen --> gates open
//!   region by region: frozen memstores are written, its files are linked into DIR.tmp
//!   a manifest with "all commits up to S are in these files", no log
//!   DIR.tmp synced and renamed to DIR
//! ```
//!
//! The gates are closed while the memstores are frozen: microseconds for each region. Flushes of
//! a region wait from then until its files are linked; commits do not.
//!
//! # Invariants
//!
//! 1. A directory under the name of the checkpoint is complete. A crash leaves the name with the
//!    suffix `.tmp`, which the next checkpoint with that name removes.
//! 2. Opened as a store, it has exactly the commits up to S, including those that skip the log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cell::{Sequence, Timestamp};
use crate::descriptor::TableDescriptor;
use crate::engine::{CommitClock, Engine};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::family_store::ReadView;
use crate::manifest::{ManifestState, RegionRecord, TableRecord, write_manifest};
use crate::region::{HeldFlushes, Region, RegionServices, directory_of};
use crate::table::Table;

/// Content of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// All commits up to here, and none above.
    pub sequence: Sequence,
    /// The time of that commit.
    pub timestamp: Timestamp,
    /// Store files linked.
    pub file_count: u64,
    /// Their bytes.
    pub file_bytes: u64,
}

/// The regions of a table, in row order, with its settings at the checkpoint's sequence.
struct TableAt {
    descriptor: Arc<TableDescriptor>,
    regions: Vec<Arc<Region>>,
}

/// Makes a checkpoint. Tables and regions do not change until the memstores are frozen.
pub(crate) fn write(engine: &Engine, directory: &Path) -> Result<Checkpoint> {
    engine.check_running()?;
    let env = &*engine.options().env;
    let temporary = begin(env, directory)?;
    for region in engine.regions() {
        region.flush(engine)?;
    }
    let defining = engine.ddl_lock.lock();
    let tables = tables(engine);
    let mut regions: Vec<&Arc<Region>> = tables.iter().flat_map(|table| &table.regions).collect();
    regions.sort_unstable_by_key(|region| region.id());
    let (clock, held) = freeze(engine, &regions)?;
    drop(defining);
    let mut copy = Copy { env, temporary: &temporary, clock, file_count: 0, file_bytes: 0 };
    let mut records = Vec::with_capacity(regions.len());
    for (region, held) in regions.iter().zip(held) {
        records.push(copy.region(region, &held.write(engine)?)?);
    }
    write_manifest(env, &temporary, &copy.state(tables, records))?;
    env.rename(&temporary, directory)?;
    Ok(Checkpoint {
        sequence: clock.sequence,
        timestamp: clock.timestamp,
        file_count: copy.file_count,
        file_bytes: copy.file_bytes,
    })
}

fn tables(engine: &Engine) -> Vec<TableAt> {
    let tables = engine.tables.load();
    let table = |table: &Arc<Table>| TableAt {
        descriptor: Arc::clone(&table.descriptor()),
        regions: table.regions().all().to_vec(),
    };
    tables.values().map(table).collect()
}

/// Creates the temporary directory of the checkpoint.
fn begin(env: &dyn Env, directory: &Path) -> Result<PathBuf> {
    let refuse = |why: &str| {
        let path = directory.display();
        Err(Error::InvalidRequest(format!("cannot write a checkpoint to \"{path}\": {why}")))
    };
    let Some(name) = directory.file_name() else { return refuse("it has no name") };
    let parent = match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    env.create_directory(parent)?;
    let mut temporary_name = name.to_owned();
    temporary_name.push(".tmp");
    let names = env.list(parent)?;
    if names.iter().any(|other| other.as_os_str() == name) {
        return refuse("it already exists");
    }
    let temporary = parent.join(&temporary_name);
    if names.iter().any(|other| *other.as_os_str() == *temporary_name) {
        env.remove_directory(&temporary)?;
    }
    env.create_directory(&temporary)?;
    Ok(temporary)
}

/// Freezes the memstores of all regions at one commit. `regions` is sorted by id.
fn freeze<'a>(
    engine: &Engine,
    regions: &[&'a Arc<Region>],
) -> Result<(CommitClock, Vec<HeldFlushes<'a>>)> {
    let mut held = Vec::with_capacity(regions.len());
    for region in regions {
        held.push(region.hold_flushes(engine)?);
    }
    let gates: Vec<_> = regions.iter().map(|region| region.close_write_gate()).collect();
    // No commit is in progress: each writes to a region.
    let clock = engine.clock();
    debug_assert_eq!(clock.sequence, engine.last_sequence());
    held.iter_mut().for_each(|held| held.freeze(clock.sequence));
    drop(gates);
    Ok((clock, held))
}

/// A checkpoint under construction.
struct Copy<'a> {
    env: &'a dyn Env,
    temporary: &'a Path,
    clock: CommitClock,
    file_count: u64,
    file_bytes: u64,
}

impl Copy<'_> {
    /// Links the files of a region.
    fn region(&mut self, region: &Region, views: &[Arc<ReadView>]) -> Result<RegionRecord> {
        let directory = directory_of(&self.temporary.join("regions"), region.id());
        let mut files = Vec::with_capacity(views.len());
        let history = views.iter().map(|view| view.history_begin.0).collect();
        for (family, view) in views.iter().enumerate() {
            view.check_whole()?;
            let directory = directory.join(family.to_string());
            self.env.create_directory(&directory)?;
            for live in view.runs.iter().flat_map(|run| run.files()) {
                assert!(
                    live.file.properties().max_sequence <= self.clock.sequence,
                    "a commit after the checkpoint's is in its files"
                );
                let path = live.file.path();
                let name = path.file_name().ok_or_else(|| nameless(path))?;
                self.env.link(path, &directory.join(name))?;
                self.file_count += 1;
                self.file_bytes += live.file.byte_count();
            }
            self.env.sync_directory(&directory)?;
            files.push(view.runs.iter().flat_map(|run| run.records()).collect());
        }
        Ok(RegionRecord {
            id: region.id(),
            start: region.start().to_vec(),
            stop: region.stop().map(<[u8]>::to_vec),
            flushed: self.clock.sequence.0,
            files,
            history,
            created_micros: region.created_micros(),
        })
    }

    /// Returns the manifest state; `records` are sorted by the ids of their regions.
    fn state(&self, tables: Vec<TableAt>, records: Vec<RegionRecord>) -> ManifestState {
        debug_assert!(records.is_sorted_by(|one, next| one.id < next.id), "sorted by id");
        let mut state = ManifestState {
            next_region: records.last().map_or(0, |record| record.id.0 + 1),
            last_sequence: self.clock.sequence.0,
            last_timestamp: self.clock.timestamp.0,
            released: self.clock.sequence.0,
            ..ManifestState::default()
        };
        for table in tables {
            let family_count = table.descriptor.families.len();
            let find = |region: &Arc<Region>| {
                let index = records.binary_search_by_key(&region.id(), |record| record.id).ok()?;
                let mut record = records[index].clone();
                // A family that was added later has no files here.
                record.files.truncate(family_count);
                record.history.truncate(family_count);
                Some(record)
            };
            let regions: Vec<RegionRecord> = table.regions.iter().filter_map(find).collect();
            assert_eq!(regions.len(), table.regions.len(), "a region without a record");
            let descriptor = Arc::clone(&table.descriptor);
            state.tables.insert(descriptor.id, Arc::new(TableRecord { descriptor, regions }));
        }
        state
    }
}

fn nameless(path: &Path) -> Error {
    Error::InvalidRequest(format!("store file \"{}\" has no name", path.display()))
}
