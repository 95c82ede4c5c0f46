//! Row-level security outside of plans: COPY FROM, and the details of constraint violations.
//!
//! As in PostgreSQL, an error does not show the values of a row to a role that policies of its
//! table apply to, or that may not read all of its columns: it could learn values of other rows
//! (`BuildIndexValueDescription`, `ExecBuildSlotValueDescription`, `ri_ReportViolation`).

use std::sync::Arc;

use store::TableId;

use crate::catalog::Catalog;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::SELECT;
use crate::catalog::policy::RowSecurityMode;
use crate::catalog::table::Table;
use crate::error::{Error, Result, sqlstate};
use crate::session::statement_executor::StatementExecutor;

/// The class of violations of constraints.
const VIOLATIONS: &str = "23";

impl StatementExecutor {
    /// Rejects COPY FROM of a table whose policies apply.
    ///
    /// # Errors
    ///
    /// 0A000; 42501 if `row_security` is off.
    pub(super) fn refuse_secured_copy(&self, table: &Table) -> Result<()> {
        let (catalog, path) = (self.catalog(), self.constants.search_path());
        if !catalog.has_row_security(table, path.role(), path.row_security()) {
            return Ok(());
        }
        match path.row_security() {
            RowSecurityMode::Off => Err(catalog.affected_by_policies(table, path.role())),
            RowSecurityMode::On | RowSecurityMode::Integrity => {
                bail!(FEATURE_NOT_SUPPORTED: "COPY FROM not supported with row-level security";
                    hint "Use INSERT statements instead.")
            }
        }
    }

    /// Removes the values of rows from the detail of a violation, where policies apply. `written`:
    /// the tables that the statement writes.
    pub(super) fn without_secured_detail(&self, error: Error, written: &[TableId]) -> Error {
        let is_of_view = error.sqlstate == sqlstate::WITH_CHECK_OPTION_VIOLATION;
        let is_violation = error.sqlstate.starts_with(VIOLATIONS) || is_of_view;
        if !is_violation || error.detail.is_none() {
            return error;
        }
        let catalog = self.catalog();
        let tables: Vec<Arc<Table>> = match is_of_view {
            true => written.iter().filter_map(|id| catalog.table_stored(*id)).cloned().collect(),
            false => violated(&catalog, &error).into_iter().collect(),
        };
        let path = self.constants.search_path();
        let (role, mode) = (path.role(), path.row_security());
        let is_secret = |table: &Arc<Table>| {
            catalog.has_row_security(table, role, mode) || !may_read(&catalog, role, table)
        };
        if !tables.iter().any(is_secret) {
            return error;
        }
        let detail = match error.sqlstate == sqlstate::FOREIGN_KEY_VIOLATION {
            true => error.detail.as_deref().map(without_values),
            false => None,
        };
        Error { detail, ..error }
    }
}

/// Returns whether a role may read all columns of a table.
fn may_read(catalog: &Catalog, role: u32, table: &Table) -> bool {
    let of_table = catalog.privileges_on(role, AccessSubject::Relation(table.oid)).0;
    let of_column = |at: usize| catalog.column_privileges(role, table.oid, at) & SELECT != 0;
    of_table & SELECT != 0 || table.visible_columns().all(of_column)
}

/// Returns the table whose values the detail of a violation shows: for the removal of a referenced
/// key the table that is referenced.
fn violated(catalog: &Catalog, error: &Error) -> Option<Arc<Table>> {
    let (schema, name) = (error.schema.as_deref()?, error.table.as_deref()?);
    let mut tables = catalog.tables_by_age();
    let table = tables.find(|table| table.schema == schema && table.name == name)?;
    let is_removal = error.detail.as_deref().is_some_and(|detail| detail.contains(REFERENCED));
    if !is_removal {
        return Some(Arc::clone(table));
    }
    let constraint = error.constraint.as_deref()?;
    let key = table.foreign_keys.iter().find(|key| key.name == constraint)?;
    catalog.table(key.table).cloned()
}

/// The words of a violation by the removal of a referenced key.
const REFERENCED: &str = " is still referenced from table ";

/// Returns the detail of a foreign key's violation without the values of the key.
fn without_values(detail: &str) -> String {
    let words = [REFERENCED, " is not present in table "];
    match words.iter().find_map(|words| detail.rfind(words)) {
        Some(at) => format!("Key{}", &detail[at..]),
        None => detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_keep_the_table() {
        assert_eq!(
            without_values(
                "Key (a)=( is not present in table \"x\") is not present in table \"p\"."
            ),
            "Key is not present in table \"p\"."
        );
        let detail = "Key (a)=(1) is still referenced from table \"c\".";
        assert_eq!(without_values(detail), "Key is still referenced from table \"c\".");
        let mixed = "MATCH FULL does not allow mixing of null and nonnull key values.";
        assert_eq!(without_values(mixed), mixed);
    }
}
