//! Per-table settings that are not persistent: observers, required families, and forced logging.
//!
//! They are in memory only, so the caller sets them again after each opening of the store.

use std::sync::Arc;

use crate::descriptor::TableId;
use crate::error::Result;
use crate::observer::{
    Chain, CoprocessorScope, CoprocessorStatus, MasterObserver, RegionObserver, WalObserver,
};
use crate::read_path::check_families;
use crate::store::Store;
use crate::table::Table;

impl Store {
    /// Replaces the observers of a table: `(priority, observer)`, lower first, equal ones in the
    /// given order. Takes effect for statements that begin after the call. Observers that were
    /// attached before, or have the name of one that was, keep their statistics and their state.
    ///
    /// For each region, `pre_open` and `post_open` are called on new observers, `pre_close` and
    /// `post_close` on removed ones.
    ///
    /// # Errors
    ///
    /// Nothing changes then: [`Error::NoSuchTable`](crate::Error::NoSuchTable), and errors of
    /// `pre_open`.
    pub fn set_observers(
        &self,
        table: TableId,
        observers: Vec<(i32, Arc<dyn RegionObserver>)>,
    ) -> Result<()> {
        let table = self.engine().table(table)?;
        let _attaching = table.attaching.lock();
        let before = table.observers().chain();
        let name = table.descriptor().name.clone();
        let place = (CoprocessorScope::Table(table.id()), name.as_str());
        let runtime = &self.engine().observers.runtime;
        let chain = Chain::new(place, observers, before.as_deref(), runtime)?;
        let coming = chain.without(before.as_deref());
        let going = before.map(|before| before.without(Some(&chain)));
        let regions = Arc::clone(&table.regions());
        for region in regions.all() {
            coming.pre_open(region.observer_ref())?;
        }
        for region in regions.all() {
            going.iter().for_each(|going| going.pre_close(region.observer_ref()));
        }
        table.observers().set(chain);
        for region in regions.all() {
            coming.post_open(region.observer_ref());
            going.iter().for_each(|going| going.post_close(region.observer_ref()));
        }
        Ok(())
    }

    /// Sets the families in which a row of a table must have a visible cell to exist: if the
    /// cells in one of them expire, the row disappears. With none, the default, a row exists as
    /// long as it has a cell in any family. Raw scans, and scans with partial rows, return all
    /// cells.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable);
    /// [`Error::InvalidRequest`](crate::Error::InvalidRequest) for an unknown family.
    pub fn require_families(&self, table: TableId, mut families: Vec<u8>) -> Result<()> {
        let table = self.engine().table(table)?;
        families.sort_unstable();
        families.dedup();
        check_families(Some(&families), &[], &table.descriptor())?;
        table.set_required(families);
        Ok(())
    }

    /// Forces commits of a table to be logged even with `SkipWal` durability: other tables are
    /// derived from it, or it from another one, and a crash must lose both or neither. Such
    /// commits do not wait for the disk (`AsyncWal`).
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable).
    pub fn keep_logged(&self, table: TableId, logged: bool) -> Result<()> {
        self.engine().table(table)?.set_logged(logged);
        Ok(())
    }

    /// Notifies the observers of a table that all its regions are about to be closed.
    pub(crate) fn begin_closing(&self, table: &Table) {
        let Some(chain) = table.observers().chain() else { return };
        table.regions().all().iter().for_each(|region| chain.pre_close(region.observer_ref()));
    }

    /// Notifies the observers of a table that all its regions are closed, and removes them.
    pub(crate) fn end_closing(&self, table: &Table) {
        let Some(chain) = table.observers().take() else { return };
        table.regions().all().iter().for_each(|region| chain.post_close(region.observer_ref()));
    }

    /// Replaces the observers of the log, as [`Store::set_observers`] does for those of a table.
    ///
    /// # Errors
    ///
    /// An observer panics when it is queried for its name.
    pub fn set_wal_observers(&self, observers: Vec<(i32, Arc<dyn WalObserver>)>) -> Result<()> {
        self.engine().observers.set_wal(observers)
    }

    /// Replaces the observers of the definitions of tables, as [`Store::set_observers`] does for
    /// those of one table.
    ///
    /// # Errors
    ///
    /// An observer panics when it is queried for its name.
    pub fn set_master_observers(
        &self,
        observers: Vec<(i32, Arc<dyn MasterObserver>)>,
    ) -> Result<()> {
        self.engine().observers.set_master(observers)
    }

    /// Returns the statistics and states of all observers: those of the log, of the master, and
    /// of the tables by id; for one place in the order of their calls.
    pub fn coprocessors(&self) -> Vec<CoprocessorStatus> {
        let mut status = self.engine().observers.status();
        let tables = self.engine().tables.load();
        let mut tables: Vec<_> = tables.values().collect();
        tables.sort_unstable_by_key(|table| table.id());
        for chain in tables.iter().filter_map(|table| table.observers().chain()) {
            status.extend(chain.status());
        }
        status
    }

    /// Resumes suspended observers with a name; returns whether there are any with that name. To
    /// be called once the cause is fixed; an observer that replaces one with its name inherits
    /// the suspension.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable).
    pub fn resume_coprocessor(&self, scope: CoprocessorScope, name: &str) -> Result<bool> {
        let CoprocessorScope::Table(table) = scope else {
            return Ok(self.engine().observers.resume(scope, name));
        };
        let chain = self.engine().table(table)?.observers().chain();
        Ok(chain.is_some_and(|chain| chain.resume(name)))
    }
}
