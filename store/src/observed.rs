//! What whoever opens a store says of its tables: who observes them, what makes a row
//! of them, and whether they may do without the log.
//!
//! That is in memory only: who opens the store says it again.

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
    /// given order. Takes effect for statements that begin after the call. Those that were there
    /// already, or have the name of one that was, keep their figures and their state.
    ///
    /// `pre_open` and `post_open` are called of those that are new, `pre_close` and `post_close` of
    /// those that go, for each region.
    ///
    /// # Errors
    ///
    /// Nothing changes then: [`Error::NoSuchTable`](crate::Error::NoSuchTable), and what `pre_open`
    /// refuses.
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
            coming.pre_open(region.shown())?;
        }
        for region in regions.all() {
            going.iter().for_each(|going| going.pre_close(region.shown()));
        }
        table.observers().set(chain);
        for region in regions.all() {
            coming.post_open(region.shown());
            going.iter().for_each(|going| going.post_close(region.shown()));
        }
        Ok(())
    }

    /// Says in which families a row of a table must have a visible cell to be there: what expires
    /// in one of them takes the row with it. None, as at the beginning: a row is there as long as
    /// it has a cell in any. Raw scans, and scans whose rows come in pieces, show all cells.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable);
    /// [`Error::InvalidRequest`](crate::Error::InvalidRequest) for a family that is not there.
    pub fn require_families(&self, table: TableId, mut families: Vec<u8>) -> Result<()> {
        let table = self.engine().table(table)?;
        families.sort_unstable();
        families.dedup();
        check_families(Some(&families), &[], &table.descriptor())?;
        table.set_required(families);
        Ok(())
    }

    /// Has the commits of a table logged, even if its durability says that they are not: other
    /// tables are derived from it, or it from another one, and a crash is to lose both or neither.
    /// They wait for nothing (`AsyncWal`).
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`](crate::Error::NoSuchTable).
    pub fn keep_logged(&self, table: TableId, logged: bool) -> Result<()> {
        self.engine().table(table)?.set_logged(logged);
        Ok(())
    }

    /// Tells the observers of a table that all its regions are about to be closed.
    pub(crate) fn begin_closing(&self, table: &Table) {
        let Some(chain) = table.observers().chain() else { return };
        table.regions().all().iter().for_each(|region| chain.pre_close(region.shown()));
    }

    /// Tells the observers of a table that all its regions are closed, and forgets them.
    pub(crate) fn end_closing(&self, table: &Table) {
        let Some(chain) = table.observers().take() else { return };
        table.regions().all().iter().for_each(|region| chain.post_close(region.shown()));
    }

    /// Replaces the observers of the log, as [`Store::set_observers`] does for those of a table.
    ///
    /// # Errors
    ///
    /// An observer panics when it is asked for its name.
    pub fn set_wal_observers(&self, observers: Vec<(i32, Arc<dyn WalObserver>)>) -> Result<()> {
        self.engine().observers.set_wal(observers)
    }

    /// Replaces the observers of the definitions of tables, as [`Store::set_observers`] does for
    /// those of one table.
    ///
    /// # Errors
    ///
    /// An observer panics when it is asked for its name.
    pub fn set_master_observers(
        &self,
        observers: Vec<(i32, Arc<dyn MasterObserver>)>,
    ) -> Result<()> {
        self.engine().observers.set_master(observers)
    }

    /// Returns the figures and states of all observers: those of the log, of the master, and of the
    /// tables by id; of one place in the order in which they run.
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

    /// Lets suspended observers of a name be called again; returns whether there are any of that
    /// name. To be called once the cause is mended; an observer that takes the place of one of its
    /// name is suspended as that was.
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
