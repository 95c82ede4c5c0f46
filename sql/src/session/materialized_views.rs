//! REFRESH MATERIALIZED VIEW: replacement of a view's rows by those of its query.

use std::sync::Arc;

use types::Datum;

use crate::ast::Refresh;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::role::SessionRole;
use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::exec;
use crate::parser;
use crate::session::Session;

/// Command tag.
const TAG: &str = "REFRESH MATERIALIZED VIEW";

impl Session {
    /// Replaces the rows of a materialized view by those of its query, or removes them.
    pub(super) fn run_refresh(&mut self, statement: &Refresh) -> Result<()> {
        let path = self.constants.search_path();
        let view = self.catalog().find_table(&statement.name, path).map(|table| table.oid);
        match view {
            Some(view) => self.as_owner_of(view, |session| session.refresh(statement)),
            None => self.refresh(statement),
        }
    }

    /// Executes a statement as the owner of a relation, if the current role may act as the owner:
    /// a function of the owner must not act with the privileges of others.
    fn as_owner_of(
        &mut self,
        relation: u32,
        run: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let (catalog, role) = (self.catalog(), self.current_role());
        let subject = AccessSubject::Relation(relation);
        let owner = catalog.access(subject).owner;
        let other =
            catalog.role(owner).filter(|_| owner != role && catalog.is_owner(role, subject));
        let Some(other) = other else { return run(self) };
        // A rollback restores the settings from the begin of the transaction.
        self.begin_statement();
        let roles = Arc::clone(self.settings.roles());
        self.settings.enter_definer(SessionRole::of(other));
        self.follow_search_path();
        let done = run(self);
        self.settings.leave_definer(roles);
        self.follow_search_path();
        done
    }

    fn refresh(&mut self, statement: &Refresh) -> Result<()> {
        let view = self.in_ddl(TAG, |ddl| ddl.begin_refresh(statement))?;
        let planned = match statement.with_data {
            true => Some(
                self.planned_and_locked(|planning| planning.plan_materialized(&view), |made| made)?,
            ),
            false => None,
        };
        let begun = self.in_ddl(TAG, |ddl| ddl.begin_rows(view.oid, statement.with_data))?;
        let Some((table, indexes)) = begun else { return Ok(()) };
        if let Some(planned) = planned {
            self.fill(&table, &planned, Vec::new(), None)?;
        }
        if statement.concurrently {
            self.refuse_equal_rows(&table)?;
        }
        self.in_ddl(TAG, |ddl| ddl.build_indexes(table.oid, indexes.clone()))
    }

    /// Rejects duplicate rows: with CONCURRENTLY, PostgreSQL finds changed rows by their values
    /// and cannot distinguish duplicates.
    fn refuse_equal_rows(&mut self, table: &Table) -> Result<()> {
        let columns = table.visible_columns().map(|column| &table.columns[column].name);
        let columns: Vec<String> = columns.map(|name| parser::quoted(name)).collect();
        let given: Vec<String> = columns.iter().map(|name| format!("{name} IS NOT NULL")).collect();
        let (list, given) = (columns.join(", "), given.join(" AND "));
        let text = format!(
            "SELECT ROW({list})::text FROM {} WHERE {given} GROUP BY {list} HAVING count(*) > 1 LIMIT 1",
            table.full_name()
        );
        let statement = parser::parse_statements(&text)?
            .pop()
            .ok_or_else(|| err!(INTERNAL_ERROR: "the query of equal rows is empty"))?;
        let planned = self.with_planning(|planning| planning.plan(&statement.statement, &[]))?;
        let planned = planned.planned;
        self.begin_statement();
        let open = self.open.as_ref().expect("a statement was begun");
        let _turn = open.transaction.turn();
        let parameters = vec![Datum::Null; planned.parameter_count];
        let mut rows = exec::open(&planned.plan, self.context(open, parameters))?;
        while let Some(batch) = rows.next()? {
            if batch.row_count == 0 {
                continue;
            }
            let row = match batch.row(0).pop() {
                Some(Datum::Text(row)) => row.to_string(),
                _ => String::new(),
            };
            let name = &table.name;
            bail!(CARDINALITY_VIOLATION: "new data for materialized view \"{name}\" contains duplicate rows without any null \
                columns"; detail "Row: {row}");
        }
        Ok(())
    }
}
