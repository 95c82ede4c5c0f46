//! LOCK TABLE.
//!
//! A table lock is a lock on the table's row in the catalog table, in PostgreSQL's modes.
//! Writers, row locks and DDL acquire it, too; plain reads are registered in `store::ReadLocks`.

use std::sync::Arc;

use store::TableId;
use store::transaction::{LockWait, TableLockMode};

use crate::ast::LockTables;
use crate::catalog::CatalogRelation;
use crate::catalog::table::Table;
use crate::ddl;
use crate::ddl::undefined_table;
use crate::error::{Error, Result, sqlstate};
use crate::session::Session;

impl Session {
    /// Locks tables until the end of the transaction.
    ///
    /// # Errors
    ///
    /// 25P01 outside of a transaction block, 42P01, 42809; 55P03 for NOWAIT.
    pub(super) fn run_lock(&mut self, statement: &LockTables) -> Result<()> {
        if !self.is_in_block() {
            bail!(NO_ACTIVE_SQL_TRANSACTION: "LOCK TABLE can only be used in transaction blocks");
        }
        for name in &statement.names {
            loop {
                let tables = self.tables_to_lock(name, statement.mode)?;
                for table in &tables {
                    self.lock_one(table, statement)?;
                }
                // A previous lock holder may have replaced the table: resolve the name again.
                drop(self.engine.publishing.lock());
                let again = self.tables_to_lock(name, statement.mode)?;
                let ids = |tables: &[Arc<Table>]| -> Vec<TableId> {
                    tables.iter().map(|table| table.id).collect()
                };
                if ids(&again) == ids(&tables) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns a table, or the tables that a view reads.
    fn tables_to_lock(
        &self,
        name: &crate::ast::TableName,
        mode: TableLockMode,
    ) -> Result<Vec<Arc<Table>>> {
        let catalog = self.catalog();
        let path = self.constants.search_path();
        match catalog.find(name, path) {
            Some(CatalogRelation::Table(table)) => {
                self.check_may_lock(table.oid, mode)?;
                Ok(vec![Arc::clone(table)])
            }
            Some(CatalogRelation::View(view)) => {
                self.check_may_lock(view.oid, mode)?;
                let (mut views, mut tables) = (vec![Arc::clone(view)], Vec::new());
                while let Some(view) = views.pop() {
                    for relation in &view.relations {
                        tables.extend(catalog.table(relation.oid).cloned());
                        views.extend(catalog.view(relation.oid).cloned());
                    }
                }
                Ok(tables)
            }
            Some(other) => {
                let kinds = match other {
                    CatalogRelation::Sequence(_) => "sequences",
                    _ => "indexes",
                };
                bail!(WRONG_OBJECT_TYPE: "cannot lock relation \"{}\"", name.name.value;
                    detail "This operation is not supported for {kinds}.")
            }
            None => Err(Error { position: None, ..undefined_table(name) }),
        }
    }

    fn lock_one(&mut self, table: &Table, statement: &LockTables) -> Result<()> {
        let open = self.begin_locking();
        let wait = if statement.nowait { LockWait::NoWait } else { LockWait::Wait };
        let taken = ddl::lock_relation(&open.transaction, table.id.0, statement.mode, wait);
        taken.map_err(|error| match error.sqlstate.as_ref() {
            sqlstate::LOCK_NOT_AVAILABLE if statement.nowait => {
                let message = format!("could not obtain lock on relation \"{}\"", table.name);
                Error { message, ..error }
            }
            _ => error,
        })
    }
}
