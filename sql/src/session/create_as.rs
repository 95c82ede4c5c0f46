//! CREATE TABLE … AS, SELECT … INTO and CREATE MATERIALIZED VIEW: a table of the columns of a
//! query, filled with its rows.

use std::sync::Arc;

use store::admission::Work;
use types::{Batch, DataType, Datum};

use crate::ast::{
    ColumnDefinition, ColumnName, CreateTable, CreateTableAs, Ident, Made, Statement, TypeName,
};
use crate::catalog::table::Table;
use crate::error::{Error, Result, sqlstate};
use crate::exec;
use crate::exec::Operator;
use crate::exec::insert::RowSink;
use crate::logical::OutputColumn;
use crate::rows::Completion;
use crate::session::prepared::{PlannedQuery, PlannedStatement};
use crate::session::{Execution, Planned, Session};

/// The rows of a query, batch by batch.
enum Source {
    Running(Box<dyn Operator>),
    /// A statement with changes in its WITH has run to its end.
    Done(std::vec::IntoIter<Batch>),
}

impl Source {
    fn next(&mut self) -> Result<Option<Batch>> {
        match self {
            Source::Running(operator) => operator.next(),
            Source::Done(batches) => Ok(batches.next()),
        }
    }
}

impl Session {
    /// Creates a table from a query.
    pub(super) fn run_create_as(&mut self, statement: &CreateTableAs) -> Result<Execution> {
        let tag = match statement.made {
            Made::Table => "CREATE TABLE AS",
            Made::Into => "SELECT INTO",
            Made::MaterializedView(_) => "CREATE MATERIALIZED VIEW",
        };
        let done = |tag: String| Ok(Execution::Done(Completion::new(tag)));
        // What the query reads is to stay what it is until the table is there.
        self.in_ddl(tag, |ddl| ddl.lock_catalog())?;
        let PlannedQuery { statement: query, types, values } =
            self.planned_query(&statement.query)?;
        let PlannedStatement { planned, parameter_types, columns, .. } =
            self.with_planning(|planning| planning.plan(&query, &types))?;
        if parameter_types.len() > values.len() {
            return Err(Error::new(sqlstate::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        let columns = columns.unwrap_or_else(|| Arc::from([]));
        let definition = definition(statement, &columns)?;
        let created = match &statement.made {
            Made::Table | Made::Into => self.in_ddl(tag, |ddl| ddl.create_table(&definition))?,
            Made::MaterializedView(source) => {
                let view = self.with_planning(|planning| planning.define_view(source))?;
                let with_data = statement.with_data;
                self.in_ddl(tag, |ddl| ddl.create_materialized_view(&definition, view, with_data))?
            }
        };
        let Some(table) = created.filter(|_| statement.with_data) else {
            return done(tag.to_owned());
        };
        let row_count = self.fill(&table, &planned, values)?;
        done(format!("SELECT {row_count}"))
    }

    /// Returns the query that a table is made of.
    fn planned_query(&self, query: &Statement) -> Result<PlannedQuery> {
        let planned = self.query_of(query)?;
        match planned.statement {
            Statement::Query(_) => Ok(planned),
            _ => Err(Error::new(sqlstate::WRONG_OBJECT_TYPE, "prepared statement is not a SELECT")),
        }
    }

    /// Inserts the rows of a query into a table that nobody else sees; returns their number.
    pub(super) fn fill(
        &mut self,
        table: &Arc<Table>,
        planned: &Planned,
        mut parameters: Vec<Datum>,
    ) -> Result<u64> {
        planned.check_populated()?;
        let open = self.begin_request();
        let _turn = open.transaction.turn(Work::Write)?;
        for &written in planned.writes.iter().chain([&table.id]) {
            self.lock_for_write(written)?;
        }
        let open = self.open.as_ref().expect("a statement was begun");
        parameters.resize(planned.parameter_count, Datum::Null);
        let context = self.context(open, parameters);
        let mut source = match planned.writes.is_empty() {
            true => Source::Running(exec::open(&planned.plan, context)?),
            false => Source::Done(self.modify(planned, context)?.returning.into_iter()),
        };
        let visible: Vec<usize> = table.visible_columns().collect();
        let mut row = vec![Datum::Null; table.columns.len()];
        let open = self.open.as_ref().expect("a statement was begun");
        let mut sink = RowSink::new(Arc::clone(table), self.context(open, Vec::new()));
        while let Some(batch) = source.next()? {
            for at in 0..batch.row_count {
                for (column, value) in visible.iter().zip(batch.row(at)) {
                    row[*column] = value;
                }
                sink.push(&mut row)?;
            }
        }
        sink.finish()
    }
}

/// Returns the table that a query makes, as CREATE TABLE would say it.
fn definition(statement: &CreateTableAs, columns: &[OutputColumn]) -> Result<CreateTable> {
    if statement.columns.len() > columns.len() {
        let message = "too many column names were specified";
        return Err(Error::new(sqlstate::SYNTAX_ERROR, message));
    }
    let named = statement.columns.iter().map(|name| &name.value);
    let rest = columns.iter().skip(statement.columns.len()).map(|column| &column.name);
    let names: Vec<&String> = named.chain(rest).collect();
    for (at, (name, column)) in names.iter().zip(columns).enumerate() {
        if names[..at].contains(name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(Error::new(sqlstate::DUPLICATE_COLUMN, message));
        }
        let base = column.sql_type.base;
        let pseudo = base.element().unwrap_or(base);
        if matches!(pseudo, DataType::Record | DataType::Void) {
            let message = format!("column \"{name}\" has pseudo-type {}", base.sql_name());
            return Err(Error::new(sqlstate::INVALID_TABLE_DEFINITION, message));
        }
    }
    let position = statement.name.position();
    let column = |(name, column): (&String, &OutputColumn)| {
        let name = ColumnName { family: None, name: Ident { value: name.clone(), position } };
        let type_name =
            TypeName { sql_type: column.sql_type, named: None, collation: None, position };
        ColumnDefinition::new(name, type_name)
    };
    Ok(CreateTable {
        if_not_exists: statement.if_not_exists,
        on_commit: statement.on_commit,
        columns: names.into_iter().zip(columns).map(column).collect(),
        options: statement.options.clone(),
        ..CreateTable::new(statement.name.clone())
    })
}
