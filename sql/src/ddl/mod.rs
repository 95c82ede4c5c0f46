//! DDL: statements that change the catalog, as part of the transaction they run in.
//!
//! The catalog rows are written like any rows, so a rollback takes them back. What cannot be staged
//! (tables of the store, attached observers) is done at once and noted in [`Changes`]: undone by a
//! rollback, finished by the commit, and, after a crash, cleaned up when the store is opened.
//!
//! # Locks
//!
//! Rows of the catalog table stand for what is locked: [`CATALOG_LOCK`] for the whole catalog, held
//! by one DDL transaction at a time; a row for each table, shared by those who write to it and
//! exclusive to those who change it. They are ordinary row locks, so deadlocks are found.

pub mod name;
pub mod options;
pub mod pre_split;
pub mod create_table;
pub mod create_index;
mod alter_column;
mod dependency;
mod enumeration;
mod sequence;
mod view;
mod coprocessor;
mod split_options;
mod quota;
mod statistics;

use std::sync::Arc;

use store::transaction::{LockMode, LockWait, Savepoint};
use store::{CellBatch, Get, Mutation, TableId, Transaction};
use types::expr::EvalContext;

use crate::assemble;
use crate::ast;
use crate::catalog::Catalog;
use crate::catalog::record::{
    CATALOG_TABLE, FIRST_USER_TABLE, NEXT_ID_KEY, TableRecord, coprocessors_key, encode, table_key,
};
use crate::catalog::table::Table;
use crate::engine::Engine;
use crate::error::{Error, Result, sqlstate};

/// The row whose lock serialises changes of the catalog.
const CATALOG_LOCK: &[u8] = b"lock";

/// What DDL statements of an open transaction have done so far.
#[derive(Default)]
pub struct Changes {
    /// The catalog as this transaction sees it; `None` while it has changed nothing.
    catalog: Option<Arc<Catalog>>,
    /// Tables created in the store, dropped again by a rollback.
    created: Vec<TableId>,
    /// Tables to drop from the store after the commit.
    dropped: Vec<TableId>,
    /// Sequences whose state is forgotten after the commit.
    dropped_sequences: Vec<u32>,
    /// Names of tables whose observers were changed.
    touched: Vec<String>,
    /// Names of tables whose regions are split otherwise after the commit.
    split_anew: Vec<String>,
    /// States to go back to.
    savepoints: Vec<(Savepoint, Mark)>,
}

/// Where [`Changes`] stood at a savepoint.
struct Mark {
    catalog: Option<Arc<Catalog>>,
    created: usize,
    dropped: usize,
    dropped_sequences: usize,
    split_anew: usize,
}

impl Changes {
    /// Returns the catalog that statements of this transaction see.
    pub fn catalog(&self, engine: &Engine) -> Arc<Catalog> {
        self.catalog.clone().unwrap_or_else(|| engine.catalog())
    }

    fn set_catalog(&mut self, catalog: Catalog) {
        self.catalog = Some(Arc::new(catalog));
    }

    /// Returns whether the transaction has changed the catalog.
    pub fn is_empty(&self) -> bool {
        self.catalog.is_none()
    }

    /// Returns whether the transaction has dropped a table.
    pub fn drops(&self, table: TableId) -> bool {
        self.dropped.contains(&table)
    }

    /// Notes a savepoint.
    pub fn savepoint(&mut self, savepoint: Savepoint) {
        let mark = Mark {
            catalog: self.catalog.clone(),
            created: self.created.len(),
            dropped: self.dropped.len(),
            dropped_sequences: self.dropped_sequences.len(),
            split_anew: self.split_anew.len(),
        };
        self.savepoints.push((savepoint, mark));
    }

    /// Takes back what was done after a savepoint, which stays.
    pub fn rollback_to(&mut self, engine: &Engine, savepoint: Savepoint) {
        while self.savepoints.last().is_some_and(|(later, _)| *later > savepoint) {
            self.savepoints.pop();
        }
        let Some((_, mark)) = self.savepoints.last() else { return };
        self.catalog.clone_from(&mark.catalog);
        self.dropped.truncate(mark.dropped);
        self.dropped_sequences.truncate(mark.dropped_sequences);
        self.split_anew.truncate(mark.split_anew);
        let created = self.created.split_off(mark.created);
        self.restore_observers(engine);
        drop_tables(engine, &created);
    }

    /// Takes everything back and rolls the transaction back.
    pub fn rollback(&mut self, engine: &Engine, transaction: &Transaction) {
        let changes = std::mem::take(self);
        let restored = Changes { touched: changes.touched, ..Changes::default() };
        // Before the locks go: whoever waits for a table is to find its own observers.
        restored.restore_observers(engine);
        transaction.rollback();
        drop_tables(engine, &changes.created);
    }

    /// Makes the changes those of all sessions; called after the commit with `publishing` held
    /// since before it.
    pub fn publish(&mut self, engine: &Engine) {
        let changes = std::mem::take(self);
        if let Some(catalog) = changes.catalog {
            split_options::apply(engine, &catalog, &changes.split_anew);
            engine.publish(catalog);
        }
        drop_tables(engine, &changes.dropped);
        for id in changes.dropped_sequences {
            if let Err(error) = engine.sequences.forget(id) {
                tracing::warn!(sequence = id, %error, "could not forget the state of a sequence");
            }
        }
    }

    /// Attaches the observers of the touched tables as the visible catalog has them.
    fn restore_observers(&self, engine: &Engine) {
        let catalog = self.catalog(engine);
        for name in &self.touched {
            let Some(table) = catalog.table(name) else { continue };
            if let Err(error) = engine.attach_observers(table, &catalog) {
                tracing::error!(table = %name, %error, "could not restore the observers of a table");
            }
        }
    }
}

/// Drops tables from the store. A failure leaves an orphan, which the next start removes.
fn drop_tables(engine: &Engine, tables: &[TableId]) {
    for table in tables {
        engine.forget_attached(*table);
        if let Err(error) = engine.row_ids.forget(*table) {
            tracing::warn!(table = table.0, %error, "could not forget the row numbers of a table");
        }
        if let Err(error) = engine.store().drop_table(*table) {
            tracing::warn!(table = table.0, %error, "could not drop a table from the store");
        }
    }
}

/// Locks a table against others for the rest of the transaction: shared by writers, exclusive for
/// those who change the table itself.
pub fn lock_table(transaction: &Transaction, table: TableId, mode: LockMode) -> Result<()> {
    let row = [b"x", table.0.to_be_bytes().as_slice()].concat();
    transaction.lock_row(CATALOG_TABLE, &row, mode, LockWait::Wait)?;
    Ok(())
}

/// One DDL statement at work.
pub struct Ddl<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// The statement's transaction.
    pub transaction: &'a Arc<Transaction>,
    /// What the transaction has done.
    pub changes: &'a mut Changes,
    /// What values in the statement are computed with.
    pub eval: EvalContext,
}

impl Ddl<'_> {
    /// Creates a table. Returns a notice instead if it exists and the statement allows that.
    pub fn create_table(&mut self, statement: &ast::CreateTable) -> Result<Option<String>> {
        let catalog = self.lock_catalog()?;
        let name = &statement.name.name;
        check_schema(&statement.name)?;
        if name::Taken::of(&catalog).contains(&name.value) {
            if statement.if_not_exists {
                return Ok(Some(format!("relation \"{}\" already exists, skipping", name.value)));
            }
            return Err(Error::new(
                sqlstate::DUPLICATE_TABLE,
                format!("relation \"{}\" already exists", name.value),
            ));
        }
        self.create_new_table(statement, &[])?;
        Ok(None)
    }

    /// Creates a table whose name is free. The columns in `nullable` take NULL although they are in
    /// the primary key, which only tables of coprocessors can have.
    fn create_new_table(&mut self, statement: &ast::CreateTable, nullable: &[usize]) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let first_id = self.next_id()?;
        let mut next_id = first_id;
        let mut take_id = || {
            next_id += 1;
            TableId(next_id - 1)
        };
        let mut record = create_table::record(statement, &catalog, &self.eval, &mut take_id)?;
        for &column in nullable {
            record.columns[column].not_null = false;
        }
        self.write_next_id(next_id)?;
        self.create_own_sequences(statement, &mut record)?;
        let table = assemble::table(&record, Arc::default())?;
        self.create_in_store(&record.descriptor)?;
        for index in &record.indexes {
            self.create_in_store(&index.descriptor)?;
        }
        self.prepare_server_targets(&table)?;
        let catalog = self.changes.catalog(self.engine);
        self.store_record(&catalog, table, record)
    }

    /// Drops tables. Returns notices for those that do not exist, if the statement allows that.
    pub fn drop_table(&mut self, statement: &ast::DropTable) -> Result<Vec<String>> {
        let mut notices = Vec::new();
        let dropped_too: Vec<String> =
            statement.names.iter().map(|name| name.name.value.clone()).collect();
        let catalog = self.lock_catalog()?;
        let is_view = |name: &&String| catalog.view(name).is_some();
        if let Some(name) = dropped_too.iter().find(is_view) {
            return Err(Error::new(
                sqlstate::WRONG_OBJECT_TYPE,
                format!("\"{name}\" is not a table"),
            )
            .with_hint("Use DROP VIEW to remove a view."));
        }
        notices.extend(self.drop_dependents(&dropped_too, statement.cascade)?);
        for name in &statement.names {
            let catalog = self.lock_catalog()?;
            check_schema(name)?;
            let name = &name.name.value;
            let Some(table) = catalog.table(name).cloned() else {
                let message = format!("table \"{name}\" does not exist");
                if statement.if_exists {
                    notices.push(format!("{message}, skipping"));
                    continue;
                }
                return Err(Error::new(sqlstate::UNDEFINED_TABLE, message));
            };
            lock_table(self.transaction, table.id, LockMode::Exclusive)?;
            self.release_target(&table, statement.cascade, &dropped_too)?;
            let mut rows = vec![Mutation::new(table_key(name)).delete_row()];
            if !table.coprocessors.attached.is_empty() {
                rows.push(Mutation::new(coprocessors_key(name)).delete_row());
            }
            self.transaction.mutate(CATALOG_TABLE, rows)?;
            self.changes.dropped.push(table.id);
            let indexes = table.indexes.iter().map(|index| index.spec.store_table);
            self.changes.dropped.extend(indexes);
            let catalog = self.changes.catalog(self.engine);
            let catalog = self.drop_quota(catalog.without_table(name), table.id)?;
            let catalog = self.drop_statistics(catalog, table.id)?;
            self.changes.catalog = Some(Arc::new(catalog));
            self.drop_owned_sequences(name)?;
        }
        Ok(notices)
    }

    /// Creates an index and fills it. Returns a notice instead if it exists and the statement
    /// allows that.
    pub fn create_index(&mut self, statement: &ast::CreateIndex) -> Result<Option<String>> {
        let catalog = self.lock_catalog()?;
        check_schema(&statement.table)?;
        let table_name = &statement.table.name.value;
        let undefined = || no_table(&catalog, &statement.table);
        let table = catalog.table(table_name).cloned().ok_or_else(undefined)?;
        let record = catalog.record(table_name).cloned().ok_or_else(undefined)?;
        if let Some(name) = &statement.name
            && statement.if_not_exists
            && name::Taken::of(&catalog).contains(&name.value)
        {
            return Ok(Some(format!("relation \"{}\" already exists, skipping", name.value)));
        }
        lock_table(self.transaction, table.id, LockMode::Exclusive)?;
        self.engine.coprocessors.check_expiry(&table, None, true)?;
        let id = self.next_id()?;
        let index = create_index::record(statement, &record, &catalog, &self.eval, TableId(id))?;
        self.write_next_id(id + 1)?;
        self.create_in_store(&index.descriptor)?;
        let mut record = TableRecord::clone(&record);
        record.indexes.push(index);
        let changed = assemble::table(&record, Arc::clone(&table.coprocessors))?;
        let index = changed.indexes.last().map(Arc::clone);
        // No writer is under way: the table's lock is exclusive. What was committed before is to be
        // seen whole, also what is applied but not yet durable.
        self.engine.store().wait_for_commits()?;
        self.transaction.begin_statement();
        self.changes.touched.push(table_name.clone());
        self.store_record(&catalog, changed, record)?;
        if let Some(index) = index {
            coprocessors::index::index_build(self.transaction, table.id, &index.spec)?;
        }
        Ok(None)
    }

    /// Drops indexes. Returns notices for those that do not exist, if the statement allows that.
    pub fn drop_index(&mut self, statement: &ast::DropIndex) -> Result<Vec<String>> {
        let mut notices = Vec::new();
        for name in &statement.names {
            let catalog = self.lock_catalog()?;
            check_schema(name)?;
            let name = &name.name.value;
            let table = catalog.table_of_index(name).filter(|table| {
                statement.table.as_ref().is_none_or(|owner| owner.name.value == table.name)
            });
            let (Some(table), Some(record)) =
                (table.cloned(), table.and_then(|table| catalog.record(&table.name)))
            else {
                let message = format!("index \"{name}\" does not exist");
                if statement.if_exists {
                    notices.push(format!("{message}, skipping"));
                    continue;
                }
                return Err(Error::new(sqlstate::UNDEFINED_OBJECT, message));
            };
            lock_table(self.transaction, table.id, LockMode::Exclusive)?;
            let mut record = TableRecord::clone(record);
            let dropped = record.indexes.iter().filter(|index| &index.name == name);
            self.changes.dropped.extend(dropped.map(|index| index.descriptor.id));
            record.indexes.retain(|index| &index.name != name);
            self.changes.touched.push(table.name.clone());
            let changed = assemble::table(&record, Arc::clone(&table.coprocessors))?;
            self.store_record(&catalog, changed, record)?;
        }
        Ok(notices)
    }

    /// Takes the catalog's lock and returns the catalog that this transaction may change.
    pub fn lock_catalog(&mut self) -> Result<Arc<Catalog>> {
        self.transaction.lock_row(
            CATALOG_TABLE,
            CATALOG_LOCK,
            LockMode::Exclusive,
            LockWait::Wait,
        )?;
        // The holder before us gives the lock back when it has committed and publishes right after.
        let _published = self.engine.publishing.lock();
        Ok(self.changes.catalog(self.engine))
    }

    /// Reads the first id that was never given out.
    fn next_id(&self) -> Result<u32> {
        let mut batch = CellBatch::new();
        let counter = Get::new(NEXT_ID_KEY);
        if !self.transaction.get_locked(CATALOG_TABLE, &counter, &mut batch)? {
            return Ok(FIRST_USER_TABLE);
        }
        batch
            .row(0)
            .value(0, b"")
            .and_then(|value| value.try_into().ok())
            .map(u32::from_be_bytes)
            .ok_or_else(|| Error::new(sqlstate::DATA_CORRUPTED, "damaged counter of table ids"))
    }

    fn write_next_id(&self, next_id: u32) -> Result<()> {
        let value = next_id.to_be_bytes().to_vec();
        let row = Mutation::new(NEXT_ID_KEY).put(0, Vec::new(), value);
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        Ok(())
    }

    fn create_in_store(&mut self, descriptor: &store::TableDescriptor) -> Result<()> {
        self.engine.store().create_table(descriptor.clone())?;
        self.changes.created.push(descriptor.id);
        Ok(())
    }

    /// Writes a table's record, attaches its observers and makes it part of the visible catalog.
    fn store_record(&mut self, catalog: &Catalog, table: Table, record: TableRecord) -> Result<()> {
        let catalog = catalog.with_stored(table.clone(), record.clone());
        self.engine.attach_observers(&table, &catalog)?;
        let row = Mutation::new(table_key(&record.name)).put(0, Vec::new(), encode(&record));
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        self.changes.catalog = Some(Arc::new(catalog));
        Ok(())
    }
}

/// Refuses names in schemas that are not there.
pub fn check_schema(name: &ast::TableName) -> Result<()> {
    match &name.schema {
        Some(schema) if schema.value != "public" => Err(Error::new(
            sqlstate::INVALID_SCHEMA_NAME,
            format!("schema \"{}\" does not exist", schema.value),
        )
        .with_hint("Tables are in schema \"public\".")
        .at(schema.position)),
        _ => Ok(()),
    }
}

/// Returns the error of a name that is no table.
pub fn no_table(catalog: &Catalog, name: &ast::TableName) -> Error {
    match catalog.view(&name.name.value) {
        None => undefined_table(name),
        Some(view) => {
            let message = format!("\"{}\" is a view, not a table", view.name);
            Error::new(sqlstate::WRONG_OBJECT_TYPE, message)
        }
    }
}

/// Returns `relation "t" does not exist` at its place.
pub fn undefined_table(name: &ast::TableName) -> Error {
    let message = format!("relation \"{}\" does not exist", name.name.value);
    Error::new(sqlstate::UNDEFINED_TABLE, message).at(name.position())
}
