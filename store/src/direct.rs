//! Reads for programs that need no transaction of their own: one call sees one snapshot, the newest.

use std::sync::atomic::AtomicBool;

use crate::cell::CellBatch;
use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::error::{Error, Result};
use crate::mutation::Consistency;
use crate::read_path::Caller;
use crate::scan::{Get, ReadSpec};
use crate::snapshot::{Holder, SnapshotPurpose};
use crate::store::Store;

/// Nobody stops a single read: it waits for nothing but a region that is held still.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Store {
    /// Appends one row, as the newest visible commits left it, to `out`; returns whether it exists.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::InvalidRequest`] for a family that is not there,
    /// [`Error::Io`], [`Error::Corrupt`], [`Error::SnapshotTooOld`], [`Error::ShutDown`].
    pub fn get(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool> {
        let engine = self.engine();
        engine.check_running()?;
        let tables = engine.tables.load();
        let table = tables.get(&table).ok_or(Error::NoSuchTable(table))?;
        let map = table.regions();
        let region = map.of_row(&get.row);
        let now_micros = engine.options().env.now_micros();
        let (purpose, opened_micros) = (SnapshotPurpose::Get, now_micros);
        let snapshot = engine.open_snapshot(Holder { purpose, transaction: 0, opened_micros });
        let caller = Caller { consistency: Consistency::Strong, cancelled: &[&NEVER] };
        let source = engine.reads.enter(region, table.id(), snapshot.sequence(), &caller)?;
        let spec = ReadSpec {
            snapshot: snapshot.sequence(),
            staged_through: Sequence(0),
            time_range: get.time_range,
            max_versions: get.max_versions,
            raw: false,
            now_micros,
        };
        let found = engine.reads.get(region, &source, (get, &spec), None, out)?;
        snapshot.check()?;
        Ok(found)
    }
}
