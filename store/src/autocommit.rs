//! Autocommit calls without a transaction: a get of the newest snapshot, and puts without reads.
//!
//! [`Store::put`] stages nothing and holds no row locks: the cells are encoded once, in the log's
//! format, and applied at once if none of the rows is locked. Otherwise (a row is locked, the
//! table has observers) the puts are made in a transaction.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::cell::CellBatch;
use crate::cell::{CellType, KeyParts, ROW_BYTES_MAX, Sequence, Timestamp};
use crate::descriptor::{Durability, TableId};
use crate::engine::{CommitWrites, Engine, RegionWrites, UNPLACED};
use crate::error::{Error, Result};
use crate::mutation::{Edit, Mutation};
use crate::observer::Hooks;
use crate::read_path::{ReadTarget, RequiredFamilies, check_views};
use crate::scan::{Get, ReadSpec};
use crate::store::Store;
use crate::table::Table;
use crate::transaction::{Commit, TransactionOptions};
use crate::wal::{Cells, LoggedCells};

/// A single call cannot be cancelled.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Puts that are committed atomically.
///
/// Of two puts to the same version of a column the later one wins.
#[derive(Debug, Clone, Default)]
pub struct PutBatch {
    cells: Cells,
    /// Number of rows, if puts of the same row are adjacent.
    row_count: u64,
    row_bytes_max: usize,
    family_max: u8,
}

impl PutBatch {
    /// Returns an empty batch.
    pub fn new() -> PutBatch {
        PutBatch::default()
    }

    /// Returns an empty batch with this capacity of bytes of keys and values.
    pub fn with_capacity(byte_count: usize) -> PutBatch {
        PutBatch { cells: Cells::with_capacity(byte_count), ..PutBatch::default() }
    }

    /// Adds a version of a column; [`Timestamp::LATEST`] means the commit time.
    pub fn put(&mut self, column: Column<'_>, timestamp: Timestamp, value: &[u8]) {
        let Column { row, family, qualifier } = column;
        let sequence = Sequence::default();
        let key = KeyParts { row, qualifier, timestamp, sequence, cell_type: CellType::Put };
        self.row_count += u64::from(self.cells.push(family, &key, value));
        self.row_bytes_max = self.row_bytes_max.max(row.len());
        self.family_max = self.family_max.max(family);
    }

    /// Returns whether there is no put.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }
}

/// A column of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// The row key.
    pub row: &'a [u8],
    /// Index of the family.
    pub family: u8,
    /// The qualifier.
    pub qualifier: &'a [u8],
}

impl Store {
    /// Commits puts; on return they are applied, and durable once the ticket is ready. `None` as
    /// `durability` means that of the table.
    ///
    /// # Errors
    ///
    /// Nothing is committed then: [`Error::NoSuchTable`], [`Error::InvalidRequest`] for a row key
    /// that is too long or an unknown family, [`Error::LogFailed`], [`Error::ShutDown`], and
    /// vetoes of observers of the table.
    pub fn put(
        self: &Arc<Store>,
        table: TableId,
        batch: PutBatch,
        durability: Option<Durability>,
    ) -> Result<Commit> {
        let engine = self.engine();
        let present = engine.table(table)?;
        check(&present, &batch)?;
        let durability = durability.unwrap_or(present.descriptor().durability);
        let blocking = &*engine.options().blocking;
        engine.pressure.wait_for_memory(&NEVER, blocking)?;
        engine.settle_tables()?;
        let is_plain = !batch.is_empty() && !present.is_observed();
        let writes = by_region(&present, batch);
        if !is_plain {
            return self.put_in_transaction(table, &writes, durability);
        }
        for part in &writes.regions {
            part.region.check_whole()?;
            part.region.service().enter(None, &[&NEVER], blocking)?;
            engine.wait_for_files(part, &NEVER)?;
        }
        let rows = writes.regions.iter().flat_map(|part| cells_of(part).map(|cell| cell.key.row));
        let Some(held) = engine.locks.exclude(table, rows) else {
            return self.put_in_transaction(table, &writes, durability);
        };
        let place = engine.commit_then(writes, durability, |commit| held.release(commit))?;
        engine.wait_applied(place.sequence);
        Ok(Commit {
            sequence: Some(place.sequence),
            timestamp: place.timestamp,
            durable: engine.wal.wait_for(place.sequence),
        })
    }

    /// Commits puts in a transaction: with row locks, through the observers.
    fn put_in_transaction(
        self: &Arc<Store>,
        table: TableId,
        writes: &CommitWrites,
        durability: Durability,
    ) -> Result<Commit> {
        let durability = Some(durability);
        let transaction = self.begin(TransactionOptions { durability, ..Default::default() });
        let mutations = writes.regions.iter().flat_map(cells_of).map(|cell| {
            let mut mutation = Mutation::new(cell.key.row);
            let at = cell.key.timestamp;
            mutation.edits.push(Edit::Put {
                family: cell.family,
                qualifier: cell.key.qualifier.to_vec(),
                timestamp: (at != Timestamp::LATEST).then_some(at),
                value: cell.value.to_vec(),
                ttl: None,
            });
            mutation
        });
        transaction.mutate(table, mutations.collect())?;
        transaction.commit()
    }

    /// Appends one row of the newest visible commits to `out`; returns whether it exists.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::InvalidRequest`] for an unknown family,
    /// [`Error::Io`], [`Error::Corrupt`], [`Error::ShutDown`].
    pub fn get(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool> {
        let engine = self.engine();
        engine.check_running()?;
        let tables = engine.tables.load();
        let table = tables.get(&table).ok_or(Error::NoSuchTable(table))?;
        match table.observers().chain_for(Hooks::GET) {
            None => get_newest(engine, table, get, out),
            Some(chain) => {
                chain.around_get(get, out, |get, row| get_newest(engine, table, get, row))
            }
        }
    }
}

/// Gets a row without its observers.
fn get_newest(engine: &Engine, table: &Table, get: &Get, out: &mut CellBatch) -> Result<bool> {
    loop {
        if let Some(found) = get_now(engine, table, get, out)? {
            return Ok(found);
        }
    }
}

/// Gets a row from its region. `None` if the region was replaced meanwhile: it may lack visible
/// cells.
fn get_now(engine: &Engine, table: &Table, get: &Get, out: &mut CellBatch) -> Result<Option<bool>> {
    let map = table.regions();
    let region = map.of_row(&get.row);
    region.service().enter(None, &[&NEVER], &*engine.options().blocking)?;
    let required = RequiredFamilies(table.required());
    let wanted = required.with(get.families.as_deref());
    let wanted = wanted.as_deref();
    let (views, snapshot) = region.views_of_now(wanted, || engine.visible());
    if region.is_dropped() {
        engine.table(region.table())?;
        return Ok(None);
    }
    check_views(&views, wanted)?;
    // Reading the clock costs as much as a filter look-up.
    let may_expire = views.iter().any(|(_, view)| view.may_expire());
    let now_micros = if may_expire { engine.options().env.now_micros() } else { 0 };
    let spec = ReadSpec {
        snapshot,
        staged_through: Sequence(0),
        time_range: get.time_range,
        max_versions: get.max_versions,
        raw: false,
        now_micros,
    };
    let source = (&**region, ReadTarget::Primary);
    let found = engine.reads.get(source, &views, (get, &spec, None), None, out)?;
    Ok(Some(found && required.keep_last(out)))
}

fn check(table: &Table, batch: &PutBatch) -> Result<()> {
    if batch.row_bytes_max > ROW_BYTES_MAX {
        return Err(Error::KeyTooLong { bytes: batch.row_bytes_max, limit: ROW_BYTES_MAX });
    }
    let descriptor = table.descriptor();
    if usize::from(batch.family_max) >= descriptor.families.len() {
        return Err(Error::InvalidRequest(format!(
            "table \"{}\" has no column family {}",
            descriptor.name, batch.family_max
        )));
    }
    Ok(())
}

/// Distributes the puts to their regions.
fn by_region(table: &Table, batch: PutBatch) -> CommitWrites {
    let map = table.regions();
    let mut writes = CommitWrites::default();
    if let [only] = map.all() {
        let row_count = batch.row_count;
        writes.regions.push(RegionWrites {
            region: Arc::clone(only),
            cells: batch.cells,
            row_count,
        });
        return writes;
    }
    for cell in batch.cells.of(UNPLACED) {
        let slot = writes.slot_of(map.of_row(cell.key.row), 0);
        let part = &mut writes.regions[slot];
        part.row_count += u64::from(part.cells.push(cell.family, &cell.key, cell.value));
    }
    writes
}

fn cells_of(part: &RegionWrites) -> LoggedCells<'_> {
    part.cells.of(UNPLACED)
}
