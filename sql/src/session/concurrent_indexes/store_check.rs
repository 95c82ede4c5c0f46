//! CHECK STORE: verification of store files.

use store::TableId;
use store::store::FileCheck;
use types::Datum;

use crate::ast::{CheckStore, Statement, TableName};
use crate::catalog::table::stores;
use crate::ddl::no_table;
use crate::error::{Error, Result};
use crate::session::concurrent_indexes::check::LISTED_MAX;
use crate::session::{Execution, Session};

impl Session {
    /// Executes CHECK STORE: verifies store files, and returns a row for each damaged one.
    ///
    /// # Errors
    ///
    /// 42P01, 57014. Damage is not an error.
    pub(in crate::session) fn run_check_store(&mut self, check: &CheckStore) -> Result<Execution> {
        let rows_max = check.limit.unwrap_or(LISTED_MAX);
        let (mut rows, mut file_count, mut byte_count, mut damaged) = (Vec::new(), 0, 0, 0);
        for (table, id) in self.stores_to_check(check.table.as_ref())? {
            let found = &mut |check: FileCheck| {
                file_count += 1;
                byte_count += check.byte_count;
                let Some(error) = check.damage else { return };
                damaged += 1;
                if rows.len() < rows_max {
                    rows.push(vec![
                        Datum::text(&*table),
                        Datum::Int8(check.region.0.cast_signed()),
                        Datum::text(&*check.family.name),
                        check.file.map_or(Datum::Null, |file| Datum::Int8(file.0.cast_signed())),
                        Datum::text(error.to_string()),
                    ]);
                }
            };
            match self.engine.store().check_files(id, &self.stop.stop, found) {
                // It was dropped.
                Err(store::Error::NoSuchTable(_)) => {}
                outcome => outcome?,
            }
        }
        self.notice(
            "INFO",
            err!(SUCCESSFUL_COMPLETION: "{file_count} store files, {byte_count} bytes; {damaged} damaged"),
        );
        Ok(self.check_result(&Statement::CheckStore(check.clone()), &rows))
    }

    /// Returns names and ids of store tables: of a table, or of all with those of the catalog.
    fn stores_to_check(&self, name: Option<&TableName>) -> Result<Vec<(String, TableId)>> {
        let path = self.constants.search_path();
        self.with_planning(|planning| {
            let catalog = planning.catalog;
            let named = |table| stores(table).map(|store| (store.name, store.id));
            if let Some(name) = name {
                let table = catalog.find_table(name, path);
                let table = table.ok_or_else(|| no_table(catalog, name, path))?;
                self.check_owns(table)?;
                return Ok(named(table).collect());
            }
            if !catalog.is_superuser(self.current_role()) {
                bail!(INSUFFICIENT_PRIVILEGE: "must be superuser to check all store files");
            }
            let mut all: Vec<_> = catalog.tables().into_iter().flat_map(named).collect();
            for descriptor in self.engine.store().tables() {
                if !all.iter().any(|(_, id)| *id == descriptor.id) {
                    all.push((descriptor.name.clone(), descriptor.id));
                }
            }
            Ok(all)
        })
    }
}
