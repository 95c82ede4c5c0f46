//! Test database without sessions: a catalog, a store, and execution of statements on it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use coprocessors::constraint::ConstraintObserver;
use coprocessors::index::IndexObserver;
use sql::ast::Statement;
use sql::binder::{SessionConstants, SystemCatalog, bind};
use sql::catalog::name::ObjectName;
use sql::catalog::statistics::TableStatistics;
use sql::catalog::table::Table;
use sql::catalog::{Catalog, CatalogObject};
use sql::exec::{self, Context, CteScope, SystemSource, UncorrelatedResults};
use sql::logical::OutputColumn;
use sql::parser::parse_statements;
use sql::plan::Plan;
use sql::planner::statistics::Statistics;
use sql::spill::SpillArea;
use sql::{Error, Result};
use store::env::RealEnv;
use store::observer::RegionObserver;
use store::transaction::TransactionOptions;
use store::{Options, Store, TableId, Transaction};
use types::expr::EvalContext;
use types::interrupt::Interrupt;
use types::text::TextStyle;
use types::{Batch, DataType, Datum, SqlType};

use crate::queries::schema;

/// Catalog, and a store once one is needed.
#[derive(Default)]
pub(crate) struct Database {
    catalog: Catalog,
    next_table: u32,
    store: Option<(tempfile::TempDir, Arc<Store>)>,
    /// Row counts from plan scripts.
    row_counts: HashMap<TableId, f64>,
}

/// System catalog with one view.
struct System;

fn column(name: &str, data_type: &DataType) -> OutputColumn {
    OutputColumn { name: name.to_owned(), sql_type: data_type.into(), origin: None }
}

impl SystemCatalog for System {
    fn view(&self, schema: Option<&str>, name: &str) -> Option<Vec<OutputColumn>> {
        (schema == Some("bennu") && name == "regions")
            .then(|| vec![column("region", &DataType::Int8)])
    }
}

impl SystemSource for System {
    fn rows(&self, _name: &str, _arguments: &[Datum]) -> Result<Vec<Vec<Datum>>> {
        Ok(vec![vec![Datum::Int8(1)], vec![Datum::Int8(2)]])
    }

    fn row_ids(&self, _table: TableId, _count: u64) -> Result<Range<u64>> {
        panic!("all tables here have a primary key")
    }
}

impl Database {
    fn new_id(&mut self) -> TableId {
        self.next_table += 1;
        TableId(self.next_table)
    }

    /// Executes CREATE TABLE and CREATE INDEX on the catalog. Returns the changed table.
    fn create(&mut self, statement: &Statement) -> Option<Arc<Table>> {
        let id = self.new_id();
        let name = match statement {
            Statement::CreateTable(create) => {
                let table = schema::table(create, id);
                if let Some((_, store)) = &self.store {
                    store.create_table(table.descriptor.as_ref().clone()).unwrap();
                }
                self.catalog = self.catalog.with(CatalogObject::Table(Arc::new(table), None));
                create.name.name.value.clone()
            }
            Statement::CreateIndex(create) => {
                let name = create.table.name.value.clone();
                let mut table =
                    Table::clone(self.catalog.table_named(&ObjectName::public(&name)).unwrap());
                let (index, descriptor) = schema::index(&table, create, id);
                if let Some((_, store)) = &self.store {
                    store.create_table(descriptor).unwrap();
                }
                table.indexes.push(Arc::new(index));
                self.catalog = self.catalog.with(CatalogObject::Table(Arc::new(table), None));
                name
            }
            _ => return None,
        };
        let table = Arc::clone(self.catalog.table_named(&ObjectName::public(&name)).unwrap());
        if let Some((_, store)) = &self.store {
            store.set_observers(table.id, observers(&table)).unwrap();
        }
        Some(table)
    }

    /// Returns a database whose store has these options.
    pub(crate) fn with(options: Options) -> Database {
        let mut database = Database::default();
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), options).unwrap();
        database.store = Some((directory, store));
        database
    }

    /// Opens the store; tables created before are not in it.
    pub(crate) fn open(&mut self) -> Arc<Store> {
        let (_, store) = self.store.get_or_insert_with(|| {
            let directory = tempfile::tempdir().unwrap();
            let store = Store::open(directory.path(), Options::default()).unwrap();
            (directory, store)
        });
        Arc::clone(store)
    }

    /// Plans a statement.
    pub(crate) fn plan(&self, statement: &Statement, types: &[Option<DataType>]) -> Result<Plan> {
        let constants = SessionConstants::new();
        let types: Vec<_> = types.iter().map(|one| one.as_ref().map(SqlType::from)).collect();
        let bound = bind(statement, &self.catalog, &System, &constants, &types)?;
        sql::planner::plan(&bound.bound, self)
    }

    /// Records the row count of a line `# rows: table 1000`.
    pub(crate) fn note_rows(&mut self, line: &str) {
        let Some((name, rows)) = line.strip_prefix("# rows: ").and_then(|l| l.split_once(' '))
        else {
            return;
        };
        let table = self.catalog.table_named(&ObjectName::public(name)).unwrap().id;
        self.row_counts.insert(table, rows.parse().unwrap());
    }

    /// Returns the plans of EXPLAIN statements; creates tables only in the catalog.
    pub(crate) fn plan_script(&mut self, sql: &str) -> String {
        let mut text = String::new();
        for parsed in parse_statements(sql).unwrap() {
            match &parsed.statement {
                Statement::Explain(explain) => match self.plan(&explain.statement, &[]) {
                    Ok(plan) => text += &plan.explain(&|_| None).join("\n"),
                    Err(error) => text += &line_of(&error),
                },
                statement => {
                    self.create(statement).expect("plan scripts create and explain");
                    text += "ok";
                }
            }
            text.push('\n');
        }
        text
    }

    /// Executes statements, each in a separate transaction.
    pub(crate) fn script(&mut self, sql: &str) -> String {
        self.open();
        let mut text = String::new();
        for parsed in parse_statements(sql).unwrap() {
            if self.create(&parsed.statement).is_some() {
                text += "ok\n";
                continue;
            }
            text += &match self.run(&parsed.statement, Vec::new()) {
                Ok(answer) => answer,
                Err(error) => line_of(&error) + "\n",
            };
        }
        text
    }

    /// Executes a statement and commits. Returns its rows or its tag as text.
    pub(crate) fn run(&mut self, statement: &Statement, parameters: Vec<Datum>) -> Result<String> {
        let store = self.open();
        let transaction = Arc::new(store.begin(TransactionOptions::default()));
        let plan = Arc::new(self.plan(statement, &[])?);
        transaction.begin_statement();
        let answer = answer(&plan, &transaction, parameters)?;
        commit(&transaction)?;
        Ok(answer)
    }

    /// Executes a statement in a transaction of the caller.
    pub(crate) fn within(
        &self,
        transaction: &Arc<Transaction>,
        sql: &str,
        parameters: Vec<Datum>,
    ) -> Result<String> {
        let parsed = parse_statements(sql).unwrap();
        let plan = Arc::new(self.plan(&parsed[0].statement, &[])?);
        transaction.begin_statement();
        answer(&plan, transaction, parameters)
    }

    /// Begins a transaction.
    pub(crate) fn begin(&self) -> Arc<Transaction> {
        let (_, store) = self.store.as_ref().expect("a script has opened the store");
        Arc::new(store.begin(TransactionOptions::default()))
    }

    /// Returns a table.
    pub(crate) fn table(&self, name: &str) -> &Arc<Table> {
        self.catalog.table_named(&ObjectName::public(name)).unwrap()
    }

    /// Executes a query in text form.
    pub(crate) fn query(&mut self, sql: &str) -> Result<Vec<String>> {
        let parsed = parse_statements(sql).unwrap();
        let answer = self.run(&parsed[0].statement, Vec::new())?;
        Ok(answer.lines().filter(|line| *line != "no rows").map(str::to_owned).collect())
    }

    /// Returns the EXPLAIN lines of a query.
    pub(crate) fn explain(&self, sql: &str) -> Vec<String> {
        let parsed = parse_statements(sql).unwrap();
        self.plan(&parsed[0].statement, &[]).unwrap().explain(&|_| None)
    }
}

/// Commits and waits until the commit is visible. As in a session, a region thread may hold the
/// transaction slightly longer than its statement.
pub(crate) fn commit(transaction: &Transaction) -> Result<()> {
    transaction.commit()?.durable.wait()?;
    Ok(())
}

impl Statistics for Database {
    /// Returns the row count that a script specifies (`rows: table 1000`), or the store's
    /// estimate.
    fn row_count(&self, table: TableId) -> Option<f64> {
        let store =
            || self.store.as_ref()?.1.row_estimate(table).ok().map(|found| found.rows as f64);
        self.row_counts.get(&table).copied().or_else(store)
    }

    fn columnar_part(&self, _table: TableId) -> f64 {
        0.0
    }

    fn table(&self, _table: TableId) -> Option<Arc<TableStatistics>> {
        None
    }
}

fn observers(table: &Table) -> Vec<(i32, Arc<dyn RegionObserver>)> {
    let constraints = ConstraintObserver::new(Arc::clone(&table.constraints));
    let mut observers: Vec<(i32, Arc<dyn RegionObserver>)> = vec![(0, Arc::new(constraints))];
    for index in &table.indexes {
        observers.push((100, Arc::new(IndexObserver::new(Arc::clone(&index.spec)))));
    }
    observers
}

fn line_of(error: &Error) -> String {
    let detail =
        error.detail.as_ref().map_or(String::new(), |detail| format!("\ndetail: {detail}"));
    format!("error {}: {}{detail}", error.sqlstate, error.message)
}

/// Spill area of all statements.
static SPILL: LazyLock<(tempfile::TempDir, Arc<SpillArea>)> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let area = SpillArea::open(Arc::new(RealEnv::default()), directory.path().to_owned()).unwrap();
    (directory, area)
});

/// Returns the cancel flag of a context.
pub(crate) fn stop_flag(context: &Context) -> Arc<AtomicBool> {
    context.eval.style.interrupt.flag().cloned().expect("it has one")
}

/// Returns the execution context of a plan.
pub(crate) fn context(transaction: &Arc<Transaction>, parameters: Vec<Datum>) -> Context {
    Context {
        locks_one_by_one: false,
        row_by_row: false,
        nested_statements_before: 0,
        key_updates: Default::default(),
        constraint_queue: None,
        transaction: Arc::clone(transaction),
        eval: EvalContext {
            parameters,
            ..EvalContext::with_interrupt(Interrupt::new(Arc::default()))
        },
        system: Arc::new(System),
        requires_key_order: false,
        parallel: true,
        profile: None,
        cte_scope: CteScope::default(),
        uncorrelated_results: UncorrelatedResults::default(),
        changed_rows: None,
        work_mem: 4 << 20,
        spill: SPILL.1.begin(None),
        view: Arc::default(),
        followed_views: Arc::default(),
    }
}

/// Executes a plan and returns its rows as text, with `|` between columns.
fn answer(
    plan: &Arc<Plan>,
    transaction: &Arc<Transaction>,
    parameters: Vec<Datum>,
) -> Result<String> {
    let types: Vec<DataType> =
        plan.columns().iter().map(|column| column.sql_type.base.clone()).collect();
    let mut text = String::new();
    if !plan.is_query() {
        let mut outcome = exec::modify(plan, context(transaction, parameters))?;
        while let Some(batch) = outcome.returning.pop_front()? {
            text += &rows_text(&batch, &types);
        }
        return Ok(text + &format!("{} rows\n", outcome.row_count));
    }
    if plan.point.is_some() {
        let row = exec::point(plan, &mut context(transaction, parameters.clone()))?;
        if let Some(row) = row.expect("the plan is a point get") {
            text += &row_text(&row, &types);
        }
    }
    let mut rows = exec::open(plan, context(transaction, parameters))?;
    let mut batches = String::new();
    while let Some(batch) = rows.next()? {
        batches += &rows_text(&batch, &types);
    }
    // The point get must return the same as the operators.
    assert!(plan.point.is_none() || text == batches, "{text} / {batches}");
    Ok(if batches.is_empty() { "no rows\n".to_owned() } else { batches })
}

fn rows_text(batch: &Batch, types: &[DataType]) -> String {
    (0..batch.row_count).map(|row| row_text(&batch.row(row), types)).collect()
}

fn row_text(row: &[Datum], types: &[DataType]) -> String {
    let value = |(value, data_type): (&Datum, &DataType)| {
        if value.is_null() {
            return "NULL".to_owned();
        }
        let mut bytes = Vec::new();
        types::text::write_short(value, data_type, &TextStyle::default(), &mut bytes);
        String::from_utf8(bytes).unwrap()
    };
    let values: Vec<String> = row.iter().zip(types).map(value).collect();
    values.join("|") + "\n"
}
