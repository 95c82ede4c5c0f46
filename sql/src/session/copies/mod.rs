//! COPY between a client and a table, a view with INSTEAD OF triggers, or a query.

use std::sync::Arc;

use types::SqlType;
use types::expr::Expr;

use crate::ast::{self, Statement, TriggerEvent};
use crate::binder::{self, NameContext, TableClause};
use crate::catalog::CatalogRelation;
use crate::catalog::table::Table;
use crate::catalog::view::View;
use crate::copy::{self, CopyFormat, CopyIn};
use crate::ddl;
use crate::error::{Error, Result};
use crate::exec;
use crate::parser::{self, ParsedStatement};
use crate::rows::{CommandTag, ResultRows, RunningPlan};
use crate::session::{Execution, ParsedRequest, Session};

impl Session {
    pub(super) fn run_copy(
        &mut self,
        parsed: &ParsedStatement,
        statement: &ast::Copy,
    ) -> Result<Execution> {
        let (name, columns) = match &statement.target {
            ast::CopyTarget::Table { name, columns } => (name, columns),
            ast::CopyTarget::Statement(copied) => {
                let copied = Statement::clone(copied);
                let copied =
                    ParsedStatement { statement: copied, ..ParsedStatement::clone(parsed) };
                let prepared = self.prepare(&ParsedRequest { statement: Arc::new(copied) }, &[])?;
                let columns = prepared.columns.clone().unwrap_or_else(|| Arc::from([]));
                let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                let format = CopyFormat::read(&statement.options, &names, statement.direction)?;
                let Execution::Rows(rows) = self.run_prepared(&prepared, Vec::new())? else {
                    bail!(INTERNAL_ERROR: "COPY has no rows");
                };
                return Ok(Execution::CopyOut(rows, format));
            }
        };
        if statement.direction == ast::CopyDirection::ToStdout {
            return self.run_copy_out(statement, name, columns);
        }
        self.begin_request();
        let mut table = self.copy_target(name)?;
        self.check_writes(&[table.id], "COPY FROM")?;
        if table.is_materialized() {
            bail!(WRONG_OBJECT_TYPE: "cannot copy to materialized view \"{}\"", table.name);
        }
        loop {
            self.lock_for_write(table.id)?;
            // A previous lock holder may have changed or replaced the table.
            let locked = std::mem::replace(&mut table, self.copy_target(name)?);
            if locked.id == table.id {
                break;
            }
        }
        let is_own = self.open.as_ref().is_some_and(|open| open.changes.creates(table.id));
        if statement.options.freeze && !is_own {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "cannot perform COPY FREEZE because the table was not created or truncated \
                in the current subtransaction");
        }
        let columns = copy::columns(&table, columns)?;
        self.check_may_copy(&table, &columns)?;
        self.refuse_secured_copy(&table)?;
        let names: Vec<&str> =
            columns.iter().map(|column| table.columns[*column].name.as_str()).collect();
        let format = CopyFormat::read(&statement.options, &names, statement.direction)?;
        let watch = self.constraint_queue(&[table.id])?;
        let open = self.open.as_ref().expect("a statement was begun");
        let context = exec::Context { constraint_queue: watch, ..self.context(open, Vec::new()) };
        let filter = match &statement.filter {
            Some(filter) => Some(self.copy_filter(filter, &table)?),
            None => None,
        };
        let copy = CopyIn::new(table, &columns, format, context, (filter, self.catalog()))?;
        Ok(Execution::CopyIn(Box::new(copy)))
    }

    /// Returns the bound WHERE condition of COPY FROM.
    fn copy_filter(&self, filter: &ast::Expr, table: &Table) -> Result<Expr> {
        let catalog = self.catalog();
        let families: Arc<[String]> =
            (0..table.columns.len()).map(|column| table.family_name(column).to_owned()).collect();
        let path = self.constants.search_path();
        let names =
            NameContext { catalog: &catalog, path, session: None, families: Some(&families) };
        // Columns without a name cannot be referenced.
        let mut columns: Vec<(String, SqlType)> =
            table.columns.iter().map(|column| (String::new(), column.sql_type.clone())).collect();
        for at in table.visible_columns() {
            columns[at].0.clone_from(&table.columns[at].name);
        }
        let target = Some(types::DataType::Bool.into());
        let bound =
            binder::bind_table_expression(TableClause::CopyWhere, filter, &columns, target, names)?;
        let mut used = bound.columns().into_iter();
        if let Some(at) = used.find(|at| table.columns[*at].generated.is_some()) {
            let name = &table.columns[at].name;
            bail!(INVALID_COLUMN_REFERENCE: "generated columns are not supported in COPY FROM WHERE conditions";
                detail "Column \"{name}\" is a generated column.");
        }
        Ok(bound)
    }

    fn run_copy_out(
        &mut self,
        statement: &ast::Copy,
        name: &ast::TableName,
        columns: &[ast::ColumnName],
    ) -> Result<Execution> {
        let table = self.relation_of_copy(name, |view| {
            Err(err!(WRONG_OBJECT_TYPE: "cannot copy from view \"{}\"", view.name;
                hint "Try the COPY (SELECT ...) TO variant."))
        })?;
        if table.is_materialized() {
            bail!(WRONG_OBJECT_TYPE: "cannot copy from materialized view \"{}\"", table.name;
                hint "Try the COPY (SELECT ...) TO variant.");
        }
        let columns = copy::columns(&table, columns)?;
        let names: Vec<&str> =
            columns.iter().map(|column| table.columns[*column].name.as_str()).collect();
        let format = CopyFormat::read(&statement.options, &names, statement.direction)?;
        let list: Vec<String> =
            columns.iter().map(|column| parser::quoted(&table.columns[*column].name)).collect();
        let query = format!("SELECT {} FROM {}", list.join(", "), table.full_name());
        let copied = self.cached_statement(&query, &[])?;
        let mut planned = self.with_planning(|planning| copied.planned(planning))?;
        self.begin_request();
        self.lock_for_query(&copied, &mut planned, &mut Vec::new())?;
        self.check_readiness(&planned)?;
        let open = self.open.as_ref().expect("a statement was begun");
        let transaction = Arc::clone(&open.transaction);
        let _turn = transaction.turn();
        let operator = exec::open(&planned.plan, self.context(open, Vec::new()))?;
        let operator = RunningPlan { operator, transaction: Arc::clone(&transaction) };
        let columns = copied.columns.clone().unwrap_or_else(|| Arc::from([]));
        let stop = Arc::clone(&self.stop);
        let rows = ResultRows::streaming(columns, operator, CommandTag::Returned("COPY"), stop);
        Ok(Execution::CopyOut(rows, format))
    }

    /// Returns the table that COPY FROM fills, or the view whose triggers take the rows.
    fn copy_target(&self, name: &ast::TableName) -> Result<Arc<Table>> {
        let catalog = self.catalog();
        self.relation_of_copy(name, |view| match view.has_instead(TriggerEvent::Insert) {
            true => binder::target_of_view(&catalog, view),
            false => Err(err!(WRONG_OBJECT_TYPE: "cannot copy to view \"{}\"", view.name;
                hint "To enable copying to a view, provide an INSTEAD OF INSERT trigger.")),
        })
    }

    /// Returns the table of a name, or what `of_view` makes of the view.
    fn relation_of_copy(
        &self,
        name: &ast::TableName,
        of_view: impl FnOnce(&View) -> Result<Arc<Table>>,
    ) -> Result<Arc<Table>> {
        let path = self.constants.search_path();
        self.with_planning(|planning| match planning.catalog.find(name, path) {
            Some(CatalogRelation::Table(table)) => Ok(Arc::clone(table)),
            Some(CatalogRelation::View(view)) => of_view(view),
            _ => Err(ddl::no_table(planning.catalog, name, path)),
        })
    }
}
