//! The store: tables, their regions, the log, and what runs in the background.

use std::path::Path;
use std::sync::Arc;

use crate::descriptor::{RegionId, TableDescriptor, TableId};
use crate::error::Result;
use crate::observer::RegionObserver;
use crate::options::Options;
use crate::transaction::{Transaction, TransactionOptions};

/// An open data directory.
pub struct Store {
    _private: (),
}

/// One region, for system views.
#[derive(Debug, Clone)]
pub struct RegionStatus {
    /// The region.
    pub region: RegionId,
    /// Its table.
    pub table: TableId,
    /// First row.
    pub start: Vec<u8>,
    /// Row after the last; `None` for open.
    pub stop: Option<Vec<u8>>,
    /// Bytes in memstores.
    pub memstore_bytes: u64,
    /// Store files of all families.
    pub file_count: usize,
    /// Their bytes.
    pub file_bytes: u64,
    /// Rows read since start.
    pub rows_read: u64,
    /// Rows written since start.
    pub rows_written: u64,
}

impl Store {
    /// Opens a data directory, creating it if need be, and replays the log.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`](crate::Error::InUse), [`Error::Corrupt`](crate::Error::Corrupt),
    /// [`Error::Io`](crate::Error::Io).
    pub fn open(directory: &Path, options: Options) -> Result<Arc<Store>> {
        let _ = (directory, options);
        todo!("store/store")
    }

    /// Creates a table with its regions; durable on return.
    pub fn create_table(&self, descriptor: TableDescriptor) -> Result<()> {
        let _ = descriptor;
        todo!("store/store")
    }

    /// Removes a table and its data; durable on return. Open scans of it go on to their end.
    pub fn drop_table(&self, table: TableId) -> Result<()> {
        let _ = table;
        todo!("store/store")
    }

    /// Replaces the rules of a table's families and its other settings, except its regions.
    pub fn alter_table(&self, descriptor: TableDescriptor) -> Result<()> {
        let _ = descriptor;
        todo!("store/store")
    }

    /// Returns the descriptors of all tables.
    pub fn tables(&self) -> Vec<Arc<TableDescriptor>> {
        todo!("store/store")
    }

    /// Replaces the observers of a table: `(priority, observer)`, lower first, equal ones in the
    /// given order. Takes effect for batches that are staged after the call.
    pub fn set_observers(
        &self,
        table: TableId,
        observers: Vec<(i32, Arc<dyn RegionObserver>)>,
    ) -> Result<()> {
        let _ = (table, observers);
        todo!("store/store")
    }

    /// Begins a transaction.
    pub fn begin(self: &Arc<Store>, options: TransactionOptions) -> Transaction {
        let _ = options;
        todo!("store/store")
    }

    /// Returns the regions of a table in row order.
    pub fn regions(&self, table: TableId) -> Result<Vec<RegionStatus>> {
        let _ = table;
        todo!("store/store")
    }

    /// Flushes the memstores of a table to store files.
    pub fn flush(&self, table: TableId) -> Result<()> {
        let _ = table;
        todo!("store/store")
    }

    /// Compacts the store files of a table: all of a store's files into one if `major`.
    pub fn compact(&self, table: TableId, major: bool) -> Result<()> {
        let _ = (table, major);
        todo!("store/store")
    }

    /// Stops a region from answering until the guard is dropped: calls wait, or time out where they
    /// carry a time-out. For tests of what clients see when a region stalls.
    pub fn hold_region(&self, region: RegionId) -> Result<HoldGuard> {
        let _ = region;
        todo!("store/store")
    }

    /// Stops background work, syncs the log and refuses new work. Nothing acknowledged is lost
    /// without it; it makes the next start quicker.
    pub fn shut_down(&self) -> Result<()> {
        todo!("store/store")
    }
}

/// Holds a region still; see [`Store::hold_region`].
pub struct HoldGuard {
    _private: (),
}
