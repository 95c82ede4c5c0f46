//! Eventual indexes: definition, handover from writers to the server, and return to writers.

use store::StatementView;
use store::transaction::TableLockMode;

use crate::ast::IndexRestriction;
use crate::catalog::name::is_temporary;
use crate::catalog::record::{IndexRecord, TableRecord};
use crate::catalog::table::Table;
use crate::ddl::{Ddl, IndexOf, index_of};
use crate::error::{Error, Result};
use crate::index_builds::IndexBuild;
use crate::index_builds::followers::{IndexPosition, LostIndex};

/// Hint of definitions that a table with eventual indexes cannot have.
pub(in crate::ddl) const MAKE_STRONG: &str = "Use ALTER INDEX … CONSISTENCY = STRONG first.";

/// Checks that an index of a table may be eventual.
///
/// # Errors
///
/// 0A000 if not.
pub(in crate::ddl) fn check((unique, local): (bool, bool), table: &TableRecord) -> Result<()> {
    if unique {
        return Err(Error::not_supported(
            "CONSISTENCY = EVENTUAL of a unique index",
            "Each write has to check a unique index: omit UNIQUE, or use CONSISTENCY = STRONG.",
        ));
    }
    if local {
        return Err(Error::not_supported(
            "CONSISTENCY = EVENTUAL of a local index",
            "Omit LOCAL, or use CONSISTENCY = STRONG.",
        ));
    }
    if table.cell_ttl {
        return Err(Error::not_supported(
            "CONSISTENCY = EVENTUAL on a table with CELL_TTL",
            "Use CONSISTENCY = STRONG.",
        ));
    }
    if is_temporary(&table.schema) {
        return Err(Error::not_supported(
            "CONSISTENCY = EVENTUAL on a temporary table",
            "Use CONSISTENCY = STRONG.",
        ));
    }
    Ok(())
}

impl Ddl<'_> {
    /// Lets the server follow an index from the present state of the table on; returns its
    /// position, with a view. `None` if there is nothing to hand over.
    pub fn hand_over_index(
        &mut self,
        of: IndexOf,
    ) -> Result<Option<(IndexPosition, StatementView)>> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(of.0).cloned() else { return Ok(None) };
        self.waits_without_queueing = true;
        // Running statements read the index as one that writers maintain.
        self.lock_table(table.id, TableLockMode::AccessExclusive)?;
        let found = table.indexes.iter().find(|one| one.oid == of.1);
        let Some(index) = found.filter(|index| index.is_to_hand_over()) else { return Ok(None) };
        let store = self.engine.store();
        store.wait_for_commits()?;
        let view = store.view(None);
        let position = IndexPosition {
            table: of.0,
            index: of.1,
            base_table: table.id.0,
            store_table: index.spec.store_table.0,
            sequence: view.commit().0,
            unknown: Default::default(),
        };
        self.transaction.mutate(self.engine.catalog_table, vec![position.row()])?;
        let followed = Some(position.store_table);
        self.change_eventual((&table, of.1), |record| record.followed = followed)?;
        Ok(Some((position, view)))
    }

    /// Locks the table of an index against writers, and waits for their commits. Returns whether
    /// the index is followed.
    pub fn lock_followed(&mut self, of: IndexOf) -> Result<bool> {
        let catalog = self.changes.catalog(self.engine);
        let Some((table, index)) = index_of(&catalog, of) else { return Ok(false) };
        self.waits_without_queueing = true;
        self.lock_table(table, TableLockMode::Share)?;
        self.engine.store().wait_for_commits()?;
        Ok(index.is_followed)
    }

    /// Sets the consistency of an index. Writers maintain it from the commit on; the caller has
    /// locked the table against them, and the entries are complete.
    ///
    /// # Errors
    ///
    /// 0A000 if the index cannot be eventual.
    pub fn set_consistency(&mut self, of: IndexOf, eventual: bool) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(of.0).cloned() else { return Ok(()) };
        let record = self.record_of(&catalog, &table)?;
        let Some(index) = record.indexes.iter().find(|one| one.oid == of.1) else { return Ok(()) };
        if index.eventual == eventual {
            return Ok(());
        }
        if eventual {
            check((index.unique, index.is_local()), &record)?;
        }
        if index.is_followed() {
            // Its entries have the times of the rounds.
            self.begin_index_history(of.0, of.1)?;
        }
        self.transaction.mutate(self.engine.catalog_table, vec![IndexPosition::delete(of.1)])?;
        self.change_eventual((&table, of.1), |record| {
            record.eventual = eventual;
            record.followed = None;
        })
    }

    /// Disables an index that cannot be followed any more, and begins a new copy of it unless that
    /// would fail.
    pub fn disable_lost_index(&mut self, lost: &LostIndex) -> Result<()> {
        let of = (lost.table, lost.index);
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(of.0).cloned() else { return Ok(()) };
        let Some((_, index)) = index_of(&catalog, of).filter(|(_, index)| index.is_followed) else {
            return Ok(());
        };
        self.waits_without_queueing = true;
        self.lock_table(table.id, TableLockMode::Share)?;
        self.transaction.mutate(self.engine.catalog_table, vec![IndexPosition::delete(of.1)])?;
        self.change_eventual((&table, of.1), |record| {
            record.followed = None;
            record.restriction = Some(IndexRestriction::Disabled);
        })?;
        match &lost.error {
            None => self.begin_new_form(of, None).map(drop),
            error => {
                let build = IndexBuild::new((of.0, table.id), (of.1, index.spec.store_table));
                self.store_build(&IndexBuild { error: error.clone(), ..build })
            }
        }
    }

    /// Removes the stored positions of indexes.
    pub fn forget_positions(&self, indexes: &[u32]) -> Result<()> {
        let deletes = indexes.iter().map(|index| IndexPosition::delete(*index)).collect();
        Ok(self.transaction.mutate(self.engine.catalog_table, deletes)?)
    }

    fn change_eventual(
        &mut self,
        (table, index): (&Table, u32),
        change: impl FnOnce(&mut IndexRecord),
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let mut record = TableRecord::clone(self.record_of(&catalog, table)?.as_ref());
        if let Some(index) = record.indexes.iter_mut().find(|one| one.oid == index) {
            change(index);
        }
        self.store_changed(table, record)
    }
}
