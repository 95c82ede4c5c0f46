//! CREATE TABLE AS, SELECT INTO and CREATE MATERIALIZED VIEW: tables defined and filled by a
//! query.
//!
//! The query is planned, a table definition is derived from its columns and executed as DDL, and
//! the query's rows are inserted in the same transaction.

use std::sync::Arc;

use types::{Batch, DataType, Datum};

use crate::ast::{
    self, ColumnDefinition, ColumnName, CreateTable, CreateTableAs, Ident, Statement, TypeName,
};
use crate::batch_buffer::BatchBuffer;
use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::exec;
use crate::exec::Operator;
use crate::exec::insert::RowSink;
use crate::logical::OutputColumn;
use crate::plan::profile::ExecutionProfile;
use crate::rows::Completion;
use crate::session::prepared::{PlannedQuery, PlannedStatement, PlanningContext};
use crate::session::{Execution, Session, StatementPlan};

/// Rows of a query, batch by batch.
enum CreateAsRows {
    Running(Box<dyn Operator>),
    /// Rows of a query with data-changing WITH, which was run to completion.
    Done(Box<BatchBuffer>),
}

impl CreateAsRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        match self {
            CreateAsRows::Running(operator) => operator.next(),
            CreateAsRows::Done(batches) => batches.pop_front(),
        }
    }
}

/// Planned query of a new table.
pub(super) struct CreateAsQuery<'a> {
    pub(super) planned: &'a StatementPlan,
    pub(super) columns: &'a [OutputColumn],
    pub(super) values: Vec<Datum>,
}

impl Session {
    /// Executes CREATE TABLE AS or SELECT INTO.
    pub(super) fn run_create_as(&mut self, statement: &CreateTableAs) -> Result<Execution> {
        let tag = statement.made.tag();
        self.check_may_define(tag)?;
        let PlannedQuery { statement: query, types, values } =
            self.planned_query(&statement.query)?;
        let PlannedStatement { planned, parameter_types, columns, .. } = self
            .planned_and_locked(|planning| planning.plan(&query, &types), |made| &made.planned)?;
        if parameter_types.len() > values.len() {
            bail!(UNDEFINED_PARAMETER: "there is no parameter $1");
        }
        let columns = columns.unwrap_or_else(|| Arc::from([]));
        let query = CreateAsQuery { planned: &planned, columns: &columns, values };
        let tag = match self.created(statement, &query)? {
            Some(table) if statement.with_data => {
                format!("SELECT {}", self.fill(&table, &planned, query.values, None)?.0)
            }
            _ => tag.to_owned(),
        };
        Ok(Execution::Done(Completion::new(tag)))
    }

    /// Like [`Session::run_create_as`], recording the plan nodes' statistics for EXPLAIN ANALYZE;
    /// returns the number of rows and of spilled bytes.
    pub(super) fn make(
        &mut self,
        statement: &CreateTableAs,
        query: CreateAsQuery<'_>,
        profile: Option<&Arc<ExecutionProfile>>,
    ) -> Result<(u64, u64)> {
        match self.created(statement, &query)? {
            Some(table) if statement.with_data => {
                self.fill(&table, query.planned, query.values, profile)
            }
            _ => Ok((0, 0)),
        }
    }

    /// Returns whether the table of the statement exists, with a notice if so.
    ///
    /// # Errors
    ///
    /// 42P07 if it exists and the statement lacks IF NOT EXISTS.
    pub(super) fn is_made(&mut self, statement: &CreateTableAs) -> Result<bool> {
        self.in_any_ddl(|ddl| ddl.relation_exists(&statement.name, statement.if_not_exists))
    }

    /// Creates the table without rows; `None` if it exists.
    fn created(
        &mut self,
        statement: &CreateTableAs,
        query: &CreateAsQuery<'_>,
    ) -> Result<Option<Arc<Table>>> {
        let tag = statement.made.tag();
        let definition = definition(statement, query.columns)?;
        match &statement.made {
            ast::CreateAsKind::Table | ast::CreateAsKind::Into => {
                self.in_ddl(tag, |ddl| ddl.create_table(&definition))
            }
            ast::CreateAsKind::MaterializedView(source) => {
                self.begin_statement();
                let open = self.open.as_ref();
                let style = open.map(|open| self.eval_context(open, Vec::new()).style);
                let style = style.unwrap_or_else(|| self.text_style());
                let view = self.with_planning(|planning| planning.define_view(source, &style))?;
                let with_data = statement.with_data;
                self.in_ddl(tag, |ddl| {
                    ddl.create_materialized_view(&definition, view.clone(), with_data)
                })
            }
        }
    }

    /// Plans the query of a new table and locks the tables that it reads, so that the plan
    /// remains valid until the table is created.
    pub(super) fn planned_and_locked<T>(
        &mut self,
        plan: impl Fn(&PlanningContext<'_>) -> Result<T>,
        planned: impl Fn(&T) -> &StatementPlan,
    ) -> Result<T> {
        loop {
            let made = self.with_planning(&plan)?;
            self.begin_statement();
            self.lock_to_read(planned(&made))?;
            self.wait_for_publication();
            if self.catalog().version == planned(&made).validity.catalog_version {
                return Ok(made);
            }
        }
    }

    /// Returns the query that defines the table.
    pub(super) fn planned_query(&mut self, query: &Statement) -> Result<PlannedQuery> {
        let planned = self.query_of(query)?;
        match planned.statement {
            Statement::Query(_) => Ok(planned),
            _ => bail!(WRONG_OBJECT_TYPE: "prepared statement is not a SELECT"),
        }
    }

    /// Inserts the rows of a query into a table that no other session sees. Returns the number of
    /// rows and of spilled bytes.
    pub(super) fn fill(
        &mut self,
        table: &Arc<Table>,
        planned: &StatementPlan,
        mut parameters: Vec<Datum>,
        profile: Option<&Arc<ExecutionProfile>>,
    ) -> Result<(u64, u64)> {
        planned.check_privileges()?;
        if table.is_maintained() {
            let rows = self.in_any_ddl(|ddl| ddl.fill_maintained(table.oid))?;
            return Ok((rows, 0));
        }
        planned.constants.check(&parameters)?;
        self.check_readiness(planned)?;
        let open = self.begin_request();
        let _turn = open.transaction.turn();
        for &written in planned.writes.iter().chain([&table.id]) {
            self.lock_for_write(written)?;
        }
        self.lock_to_read(planned)?;
        let open = self.open.as_ref().expect("a statement was begun");
        parameters.resize(planned.parameter_count, Datum::Null);
        let profile = profile.map(Arc::clone);
        let context = exec::Context { profile, ..self.context(open, parameters) };
        let spill = Arc::clone(&context.spill);
        let mut source = match planned.writes.is_empty() {
            true => CreateAsRows::Running(exec::open(&planned.plan, context)?),
            false => CreateAsRows::Done(Box::new(self.modify(planned, context)?.returning)),
        };
        let visible: Vec<usize> = table.visible_columns().collect();
        let mut row = vec![Datum::Null; table.columns.len()];
        let open = self.open.as_ref().expect("a statement was begun");
        let mut sink = RowSink::new(Arc::clone(table), self.context(open, Vec::new()))?;
        while let Some(batch) = source.next()? {
            for at in 0..batch.row_count {
                for (column, value) in visible.iter().zip(batch.row(at)) {
                    row[*column] = value;
                }
                sink.push(&mut row)?;
            }
        }
        Ok((sink.finish()?, spill.written_bytes()))
    }
}

/// Returns the table definition that a query implies.
fn definition(statement: &CreateTableAs, columns: &[OutputColumn]) -> Result<CreateTable> {
    if statement.columns.len() > columns.len() {
        bail!(SYNTAX_ERROR: "too many column names were specified");
    }
    let named = statement.columns.iter().map(|name| &name.value);
    let rest = columns.iter().skip(statement.columns.len()).map(|column| &column.name);
    let names: Vec<&String> = named.chain(rest).collect();
    for (at, (name, column)) in names.iter().zip(columns).enumerate() {
        if names[..at].contains(name) {
            bail!(DUPLICATE_COLUMN: "column \"{name}\" specified more than once");
        }
        let base = &column.sql_type.base;
        let pseudo = base.element().unwrap_or(base);
        if matches!(pseudo, DataType::Record | DataType::CString | DataType::Void) {
            bail!(INVALID_TABLE_DEFINITION: "column \"{name}\" has pseudo-type {}", base.sql_name());
        }
    }
    let position = statement.name.position();
    let column = |(name, column): (&String, &OutputColumn)| {
        let name = ColumnName { family: None, name: Ident { value: name.clone(), position } };
        let type_name =
            TypeName { sql_type: column.sql_type.clone(), named: None, collation: None, position };
        ColumnDefinition::new(name, type_name)
    };
    Ok(CreateTable {
        if_not_exists: statement.if_not_exists,
        on_commit: statement.on_commit,
        unlogged: statement.unlogged,
        columns: names.into_iter().zip(columns).map(column).collect(),
        options: statement.options.clone(),
        ..CreateTable::new(statement.name.clone())
    })
}
