//! DDL: statements that change the catalog, as part of their transaction.
//!
//! Catalog rows are written like other rows, so a rollback discards them. Changes that cannot be
//! staged (tables of the store, attached observers) take effect immediately and are recorded in
//! [`CatalogChanges`]: undone by a rollback, completed by the commit, and, after a crash, cleaned
//! up when the store is opened.
//!
//! Several transactions may run DDL concurrently. The changes of each are a difference over the
//! catalog that was published when its statement began ([`changes`]); the difference is applied to
//! the newest catalog before each of its statements, and again when it commits.
//!
//! # Locks
//!
//! Locks are row locks of the catalog table: one row for each table, locked in shared modes by
//! writers of the table and exclusively by changes of its definition; and rows for all objects and
//! names, which only DDL statements lock ([`object_locks`]). As ordinary row locks, they are part
//! of deadlock detection.

pub mod name;
mod changes;
mod shared_changes;
mod object_locks;
mod ignored_attributes;
mod history_marks;
pub mod options;
pub mod pre_split;
mod key_constraint;
mod column_name;
pub mod create_table;
pub mod create_index;
mod alter_column;
mod alter_type;
mod primary_key;
mod alter_table;
mod dependency;
mod objects;
mod user_type;
mod composite;
mod comment;
mod enumeration;
mod extension;
mod foreign_key;
mod generated;
mod identity;
mod index_constraint;
mod domain;
mod function;
mod function_settings;
mod trigger;
mod policy;
mod like;
mod drop;
mod access;
mod databases;
mod schema;
mod truncate;
mod sequence;
mod view;
mod materialized;
mod temporary;
mod coprocessor;
mod reindex;
mod statistics;

pub use changes::CatalogChanges;
pub use function::{body_error, parse_body};
pub use object_locks::RetryReason;
pub use options::salting::TableSalting;
pub use shared_changes::SharedChanges;

pub use dependency::dependencies;
pub use reindex::{IndexOf, index_named, index_of};

use std::sync::Arc;

use coprocessors::index::{BuildEnvironment, BuildProgress, index_build};
use store::descriptor::Durability;
use store::transaction::{LockMode, LockWait, TableLockMode};
use store::{LockName, Mutation, TableId, Transaction};
use types::expr::EvalContext;
use types::text::TextStyle;

use crate::ast::{self, ObjectKind};
use crate::binder::{NameContext, SystemCatalog};
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::owner_context::as_owner;
use crate::catalog::access::role::SessionRoles;
use crate::catalog::name::{SearchPath, TEMP, is_temporary};
use crate::catalog::object::Object;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::record::{CATALOG_TABLE, TableKind, TableRecord};
use crate::catalog::schema::SYSTEM_SCHEMAS;
use crate::catalog::table::Table;
use crate::catalog::{
    Catalog, CatalogEntry, CatalogObject, CatalogRelation, ObjectId, standard_domain,
};
use crate::engine::Engine;
use crate::error::{Error, Result, sqlstate};
use crate::index_builds::{BuildClaim, IndexBuild};
use crate::maintained_views;
use crate::relation_assembly;
use crate::settings::Settings;
use crate::spill::ScratchArea;
use crate::storage_options::RowStorage;

/// Locks a table until the end of the transaction. Writers lock it in `ROW EXCLUSIVE`, changes of
/// its definition mostly in `ACCESS EXCLUSIVE`.
pub fn lock_table(transaction: &Transaction, table: TableId, mode: TableLockMode) -> Result<()> {
    lock_relation(transaction, table.0, mode, LockWait::Wait)
}

/// Returns the row of the catalog table that represents the lock of a table or a sequence.
pub fn relation_lock(relation: u32) -> Vec<u8> {
    [b"x", relation.to_be_bytes().as_slice()].concat()
}

/// Returns the name of the lock of a table, by its number in the store, or of a sequence.
pub fn relation_lock_name(relation: u32) -> LockName {
    LockName::new(CATALOG_TABLE, &relation_lock(relation))
}

/// Returns whether a transaction has locked a table or a sequence in a mode.
pub fn has_relation_lock(transaction: &Transaction, relation: u32, mode: TableLockMode) -> bool {
    transaction.has_lock(CATALOG_TABLE, &relation_lock(relation), LockMode::Table(mode))
}

/// Locks a table, by its number in the store, or a sequence.
pub fn lock_relation(
    transaction: &Transaction,
    relation: u32,
    mode: TableLockMode,
    wait: LockWait,
) -> Result<()> {
    let row = relation_lock(relation);
    transaction.lock_present_row(CATALOG_TABLE, &row, LockMode::Table(mode), wait)?;
    Ok(())
}

/// The executor of one DDL statement.
pub struct Ddl<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// The statement's transaction.
    pub transaction: &'a Arc<Transaction>,
    /// The catalog changes of the transaction.
    pub changes: &'a mut CatalogChanges,
    /// The context to evaluate expressions of the statement.
    pub eval: EvalContext,
    /// The search path for unqualified names.
    pub path: Arc<SearchPath>,
    /// The roles of the session.
    pub roles: SessionRoles,
    /// The system views and table functions.
    pub system: Box<dyn SystemCatalog + 'a>,
    /// The settings of the session.
    pub settings: Option<Settings>,
    /// Notices for the client.
    pub notices: Vec<Error>,
    /// Indexes to rebuild after the statement.
    pub stale_indexes: Vec<IndexOf>,
    /// True if the statement stops instead of waiting for a lock. The caller then waits for the
    /// lock and runs the statement again, because the lock's holder may have changed the meaning
    /// of names.
    pub stops_at_locks: bool,
    /// The lock mode for tables whose indexes are dropped.
    pub index_drop_mode: TableLockMode,
    /// The lock or conflict for which it stopped.
    pub retry_reason: Option<RetryReason>,
    /// True if its waits for table locks do not block later requests.
    pub waits_without_queueing: bool,
    /// Tables with rows whose deferred constraints are not checked yet.
    pub pending: Vec<u32>,
    /// Number of the session.
    pub process_id: i32,
    /// True while the statement changes objects of other owners, which it has the right to.
    pub changes_others: bool,
}

impl Ddl<'_> {
    /// Creates a table and returns it. With IF NOT EXISTS, an existing relation is only a notice.
    pub fn create_table(&mut self, statement: &ast::CreateTable) -> Result<Option<Arc<Table>>> {
        materialized::refuse_maintained(&statement.options)?;
        self.create_relation(statement, DerivedTable::default())
    }

    /// Creates a table or the table of a materialized view.
    fn create_relation(
        &mut self,
        statement: &ast::CreateTable,
        derived: DerivedTable<'_>,
    ) -> Result<Option<Arc<Table>>> {
        let catalog = self.catalog();
        let schema = self.creation_schema(&catalog, &statement.name)?;
        let new = (ObjectKind::Table, schema.as_str(), statement.name.name.value.as_str());
        if self.name_exists(&catalog, new, statement.if_not_exists)? {
            return Ok(None);
        }
        self.check_row_type_name(&catalog, &schema, &statement.name.name.value)?;
        if statement.on_commit.is_some() && !is_temporary(&schema) {
            bail!(INVALID_TABLE_DEFINITION: "ON COMMIT can only be used on temporary tables");
        }
        if statement.unlogged && is_temporary(&schema) {
            let position = statement.name.position();
            bail!(INVALID_TABLE_DEFINITION: "only temporary relations may be created in temporary schemas"; at position);
        }
        let (expanded, indexes);
        let mut statement = statement;
        let commented = self.comment_sources(&catalog, &statement.likes);
        if !statement.likes.is_empty() {
            (expanded, indexes) = self.expanded(&catalog, statement)?;
            statement = &expanded;
        } else {
            indexes = Vec::new();
        }
        self.create_new_table(statement, &schema, derived)?;
        indexes.iter().try_for_each(|index| self.create_index(index))?;
        self.copy_comments(&statement.name, &commented)?;
        let catalog = self.changes.catalog(self.engine);
        Ok(catalog.find_table(&statement.name, &self.path).cloned())
    }

    /// Creates a table whose name is unused.
    fn create_new_table(
        &mut self,
        statement: &ast::CreateTable,
        schema: &str,
        derived: DerivedTable<'_>,
    ) -> Result<()> {
        let mut statement = column_name::in_definition(statement)?;
        if self.is_phoenix_compatible() {
            allow_null_keys(&mut statement);
        }
        let statement = &statement;
        let catalog = self.changes.catalog(self.engine);
        let ids = &self.engine.object_ids;
        let mut take_id = || ids.take(1).map(TableId);
        let names = self.names(&catalog);
        let defined = (statement, self.default_storage());
        let mut record = create_table::record(defined, schema, names, &self.eval, &mut take_id)?;
        self.note_options(&statement.options);
        self.note_key_name(statement, &record);
        for &column in derived.nullable {
            record.columns[column].not_null = false;
        }
        record.kind = derived.kind;
        if matches!(derived.kind, TableKind::Maintained { .. }) {
            materialized::add_states(&mut record)?;
        }
        self.add_foreign_keys(statement, &mut record)?;
        self.create_own_sequences(statement, &mut record)?;
        let with_sequences = self.changes.catalog(self.engine);
        create_table::take_late_defaults(statement, self.names(&with_sequences), &mut record)?;
        for at in 0..record.indexes.len() {
            relation_assembly::set_index_families(&catalog, &mut record, at)?;
        }
        let table = relation_assembly::table(&catalog, &record, Arc::default())?;
        self.create_in_store(&record.descriptor)?;
        for index in &record.indexes {
            self.create_in_store(&index.descriptor)?;
        }
        self.prepare_server_targets(&table)?;
        if !table.client_timestamps {
            self.begin_history(table.oid)?;
        }
        for index in &record.indexes {
            self.begin_index_history(table.oid, index.oid)?;
        }
        let catalog = self.changes.catalog(self.engine);
        self.store_record(&catalog, table, record)
    }

    /// Adds a notice if the primary key of a new table did not get the name in the statement.
    fn note_key_name(&mut self, statement: &ast::CreateTable, record: &TableRecord) {
        let mut keys = statement.constraints.iter().filter(|one| one.is_primary());
        let name = keys.find_map(|key| key.index_key().is_none().then_some(key.name.as_ref())?);
        if let Some(name) = name.filter(|name| name.value != record.primary_key_name) {
            let (written, chosen) = (&name.value, &record.primary_key_name);
            let message = format!(
                "relation \"{written}\" already exists, primary key of table \"{}\" is named \"{chosen}\"",
                record.name
            );
            self.add_notice(sqlstate::DUPLICATE_TABLE, message);
        }
    }

    /// Returns the storage of a table whose definition has none.
    fn default_storage(&self) -> RowStorage {
        let setting = self.settings.as_ref().map(|settings| settings.value("default_storage"));
        match setting {
            Some("cell") => RowStorage::Cell,
            _ => RowStorage::Row,
        }
    }

    /// Creates and fills an index. With IF NOT EXISTS, an existing one is only a notice.
    pub fn create_index(&mut self, statement: &ast::CreateIndex) -> Result<()> {
        self.add_index(statement).map(drop)
    }

    /// Creates an index as [`Ddl::create_index`] does; returns the numbers of the table and the
    /// index if the index is to be filled concurrently with writers.
    pub fn add_index(&mut self, statement: &ast::CreateIndex) -> Result<Option<(u32, u32)>> {
        let catalog = self.catalog();
        let table = self.table(&catalog, &statement.table).map_err(|error| {
            let hint = "An index on the table can have the condition of a view as its predicate.";
            if error.sqlstate == sqlstate::WRONG_OBJECT_TYPE {
                error.with_hint(hint)
            } else {
                error
            }
        })?;
        let record = self.record_of(&catalog, &table)?;
        if let Some(name) = &statement.name
            && statement.if_not_exists
            && self.name_exists(&catalog, (ObjectKind::Index, &table.schema, &name.value), true)?
        {
            return Ok(None);
        }
        let is_online = statement.concurrently || statement.is_async;
        self.waits_without_queueing = is_online;
        self.lock_table(table.id, TableLockMode::Share)?;
        self.refuse_pending(&table, "CREATE INDEX")?;
        let id = self.take_ids(1)?;
        let index = create_index::record(
            statement,
            &record,
            self.names(&catalog),
            &self.eval,
            TableId(id),
        )?;
        let mut record = TableRecord::clone(&record);
        record.indexes.push(index);
        let at = record.indexes.len() - 1;
        self.build_index(&catalog, &table, record, at)?;
        if is_online {
            self.store_build(&IndexBuild::new((table.oid, table.id), (id, TableId(id))))?;
        }
        Ok(Some((table.oid, id)))
    }

    /// Creates the store table of an index, fills it unless that is done concurrently with
    /// writers, and stores the record. `at` is the position of the index in the record. The
    /// table's lock must be held.
    fn build_index(
        &mut self,
        catalog: &Catalog,
        table: &Table,
        mut record: TableRecord,
        at: usize,
    ) -> Result<()> {
        self.lock_observed_table(table.oid)?;
        relation_assembly::set_index_families(catalog, &mut record, at)?;
        let changed = relation_assembly::table(catalog, &record, Arc::clone(&table.coprocessors))?;
        let index = changed.indexes.get(at).map(Arc::clone);
        if let Some(index) = record.indexes.get(at) {
            self.create_in_store(&index.descriptor)?;
        }
        // The exclusive lock excludes concurrent writers. Earlier commits must be completely
        // visible, including those that are applied but not yet durable.
        self.engine.store().wait_for_commits()?;
        if table.descriptor.durability == Durability::SkipWal {
            // Index entries are in the WAL, so the rows that they refer to must not be lost.
            self.engine.store().flush(table.id)?;
        }
        self.transaction.begin_statement();
        self.store_record(catalog, changed, record)?;
        if let Some(index) = index.filter(|index| index.is_complete()) {
            let temp_file_limit =
                self.settings.as_ref().and_then(|settings| settings.parsed().temp_file_limit);
            let command = match table.indexes.iter().any(|one| one.oid == index.oid) {
                true => "REINDEX",
                false => "CREATE INDEX",
            };
            let of = (table.oid, index.oid);
            let claim = self.engine.claim_build(catalog, of, (self.process_id, command));
            let unseen = BuildProgress::default();
            let context = as_owner(&self.eval, catalog, table.oid);
            let environment = BuildEnvironment {
                store: self.engine.store(),
                transaction: self.transaction,
                scratch: Arc::new(ScratchArea(self.engine.spill.begin(temp_file_limit))),
                context: &context,
                progress: claim.as_ref().map_or(&unseen, BuildClaim::progress),
            };
            index_build(&environment, table.id, &index.spec)?;
            self.begin_index_history(table.oid, index.oid)?;
        }
        Ok(())
    }

    /// Rejects a change of a table with rows whose deferred constraints are not checked yet.
    fn refuse_pending(&self, table: &Table, what: &str) -> Result<()> {
        if !self.pending.contains(&table.oid) {
            return Ok(());
        }
        let name = &table.name;
        bail!(OBJECT_IN_USE: "cannot {what} \"{name}\" because it has pending trigger events")
    }

    // ---- names ----

    /// Returns the settings for literals in definitions.
    pub fn literal_style(&self) -> &TextStyle {
        &self.eval.style
    }

    /// Returns the context for names in expressions of the statement.
    fn names<'c>(&'c self, catalog: &'c Catalog) -> NameContext<'c> {
        NameContext { catalog, path: &self.path, session: Some(&self.eval.style), families: None }
    }

    /// Returns the relation of a name in the statement.
    fn find<'c>(&self, catalog: &'c Catalog, name: &ast::TableName) -> Option<CatalogRelation<'c>> {
        catalog.find(name, &self.path)
    }

    /// Returns the table of a name in the statement.
    fn any_table(&self, catalog: &Catalog, name: &ast::TableName) -> Result<Arc<Table>> {
        let table = catalog.find_table(name, &self.path).cloned();
        table.ok_or_else(|| no_table(catalog, name, &self.path))
    }

    /// Returns the table of a name in the statement, which the current role must own.
    fn table(&self, catalog: &Catalog, name: &ast::TableName) -> Result<Arc<Table>> {
        let table = self.any_table(catalog, name)?;
        self.check_owns(catalog, &Object::Whole(ObjectId::Table(table.oid)))?;
        Ok(table)
    }

    fn record_of(&self, catalog: &Catalog, table: &Table) -> Result<Arc<TableRecord>> {
        catalog
            .record(table.oid)
            .cloned()
            .ok_or_else(|| err!(INTERNAL_ERROR: "no catalog record of table \"{}\"", table.name))
    }

    /// Returns the schema in which an object of this name is to be created.
    fn creation_schema(&mut self, catalog: &Catalog, name: &ast::TableName) -> Result<String> {
        let is_own = |schema: &str| schema == TEMP || self.path.temp() == Some(schema);
        if name.schema.as_ref().is_some_and(|schema| is_own(&schema.value)) {
            return self.temporary_schema();
        }
        let Some(schema) = &name.schema else {
            let Some(current) = catalog.current_schema(&self.path) else {
                bail!(INVALID_SCHEMA_NAME: "no schema has been selected to create in"; at name.name.position);
            };
            if catalog.schema(current).is_none() {
                bail!(INSUFFICIENT_PRIVILEGE: "permission denied to create \"{current}.{}\"", name.name.value;
                    detail "System catalog modifications are currently disallowed.");
            }
            self.check_may_create_in(catalog, (self.roles.current.number, current))?;
            return Ok(current.to_owned());
        };
        if catalog.schema(&schema.value).is_some() {
            self.check_may_create_in(catalog, (self.roles.current.number, &schema.value))?;
            return Ok(schema.value.clone());
        }
        if SYSTEM_SCHEMAS.contains(&schema.value.as_str()) {
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied for schema {}", schema.value; at schema.position);
        }
        if !self.is_phoenix_compatible() {
            return Err(no_schema(&schema.value).at(schema.position));
        }
        let name = self.create_schema(&ast::CreateSchema {
            if_not_exists: true,
            name: Some(schema.clone()),
            owner: None,
            elements: Vec::new(),
        })?;
        self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, format!("schema \"{name}\" was created"));
        Ok(name)
    }

    /// Returns whether setting `phoenix_compatibility` is on.
    fn is_phoenix_compatible(&self) -> bool {
        self.settings.as_ref().is_some_and(|settings| settings.parsed().phoenix_compatibility)
    }

    /// Returns whether a relation to create already exists, which is an error unless the statement
    /// says IF NOT EXISTS.
    pub fn relation_exists(&mut self, name: &ast::TableName, if_not_exists: bool) -> Result<bool> {
        let catalog = self.changes.catalog(self.engine);
        let schema = self.creation_schema(&catalog, name)?;
        self.name_exists(&catalog, (ObjectKind::Table, &schema, &name.name.value), if_not_exists)
    }

    /// Adds a notice for a missing object (`IF EXISTS`).
    ///
    /// # Errors
    ///
    /// `missing`, without IF EXISTS.
    fn missing_object(&mut self, missing: Error, if_exists: bool) -> Result<()> {
        if !if_exists {
            return Err(missing);
        }
        self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, format!("{}, skipping", missing.message));
        Ok(())
    }

    /// Adds a notice for the client.
    fn add_notice(&mut self, code: &'static str, message: String) {
        self.notices.push(Error::new(code, message));
    }

    // ---- locks ----

    /// Locks a table until the end of the transaction.
    pub(super) fn lock_table(&mut self, table: TableId, mode: TableLockMode) -> Result<()> {
        self.lock_relation(table.0, mode)
    }

    /// Locks a table, by its number in the store, or a sequence.
    pub(super) fn lock_relation(&mut self, relation: u32, mode: TableLockMode) -> Result<()> {
        let locked = self.lock_catalog_row(relation_lock(relation), mode);
        if self.waits_without_queueing
            && let Some(RetryReason::Lock(row, mode)) = self.retry_reason.take()
        {
            self.retry_reason = Some(RetryReason::LockBeside(row, mode));
        }
        locked
    }

    // ---- the catalog ----

    /// Returns the catalog that the statement sees: the one published when it began, with the
    /// changes of its transaction.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.changes.catalog(self.engine)
    }

    /// Reserves consecutive numbers for new objects; returns the first.
    fn take_ids(&self, count: u32) -> Result<u32> {
        self.engine.object_ids.take(count)
    }

    fn create_in_store(&mut self, descriptor: &Arc<store::TableDescriptor>) -> Result<()> {
        self.engine.store().create_table(Arc::clone(descriptor))?;
        self.changes.created.push(descriptor.id);
        self.transaction.created_table(descriptor.id)?;
        Ok(())
    }

    /// Stores the state of an index build.
    pub fn store_build(&self, build: &IndexBuild) -> Result<()> {
        Ok(self.transaction.mutate(self.engine.catalog_table, vec![build.row()])?)
    }

    /// Removes the state of the build of an index.
    pub fn end_build(&self, index: u32) -> Result<()> {
        Ok(self.transaction.mutate(self.engine.catalog_table, vec![IndexBuild::delete(index)])?)
    }

    /// Returns the catalog table that has the row of an entry.
    fn rows_of(&self, entry: &CatalogEntry) -> TableId {
        if entry.is_shared() { CATALOG_TABLE } else { self.engine.catalog_table }
    }

    /// Checks that the current role owns an object that changes.
    fn check_changes(&self, catalog: &Catalog, entry: &CatalogEntry) -> Result<()> {
        match entry.object_id() {
            Some(id) if !self.changes_others => self.check_owns(catalog, &Object::Whole(id)),
            _ => Ok(()),
        }
    }

    /// Runs a part of the statement that may change objects of other owners.
    fn with_others<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = std::mem::replace(&mut self.changes_others, true);
        let done = run(self);
        self.changes_others = before;
        done
    }

    /// Stores an object and adds it to the visible catalog.
    fn store_object(&mut self, object: CatalogObject) -> Result<()> {
        check_not_standard(&object.entry())?;
        let Some((key, value)) = object.row() else { return Ok(()) };
        let row = Mutation::new(key).put(0, vec![], value);
        self.transaction.mutate(self.rows_of(&object.entry()), vec![row])?;
        let catalog = self.changes.catalog(self.engine);
        let entry = object.entry();
        let is_new = catalog.object(&entry).is_none();
        if !is_new {
            self.check_changes(&catalog, &entry)?;
        }
        let changed = catalog.with(object);
        self.check_used_types((&catalog, &changed), &entry)?;
        self.changes.set_catalog(changed);
        match entry.object_id().filter(|_| is_new) {
            Some(id) => self.own_new_object(id),
            None => Ok(()),
        }
    }

    /// Removes an object, if it exists, from the visible catalog, with its row.
    fn remove_object(&mut self, entry: &CatalogEntry) -> Result<()> {
        check_not_standard(entry)?;
        let catalog = self.changes.catalog(self.engine);
        let Some((key, _)) = catalog.object(entry).and_then(CatalogObject::row) else {
            return Ok(());
        };
        self.check_changes(&catalog, entry)?;
        let row = Mutation::new(key).delete_row();
        self.transaction.mutate(self.rows_of(entry), vec![row])?;
        self.changes.set_catalog(catalog.without(entry));
        if let Some(ObjectId::Schema(schema)) = entry.object_id() {
            self.forget_future_objects(|subject, _| subject.schema == schema)?;
            self.remove_object(&CatalogEntry::Quota(QuotaSubject::Schema(schema)))?;
        }
        match entry.object_id().and_then(AccessSubject::of) {
            Some(subject) => self.remove_object(&CatalogEntry::Access(subject)),
            None => Ok(()),
        }
    }

    /// Stores a table's record, attaches its observers and adds it to the visible catalog.
    fn store_record(&mut self, catalog: &Catalog, table: Table, record: TableRecord) -> Result<()> {
        let table = Arc::new(table);
        let object = CatalogObject::Table(Arc::clone(&table), Some(Arc::new(record)));
        let changed = catalog.with(object.clone());
        maintained_views::check_table(&changed, &table)?;
        self.engine.attach_observers(&table, &changed)?;
        self.store_object(object)?;
        self.follow_rows(catalog, table.oid)
    }
}

/// Adds the option that allows NULL in key columns without NOT NULL, as Phoenix does, unless the
/// statement has it.
fn allow_null_keys(statement: &mut ast::CreateTable) {
    let is_option = |option: &ast::TableOption| option.name.value == "nullable_key";
    let key = statement.constraints.iter().find_map(|one| match &one.kind {
        ast::ConstraintKind::PrimaryKey(key) => Some(key),
        _ => None,
    });
    let may_be_null = |key: &ast::KeyColumn| {
        let mut columns = statement.columns.iter();
        columns.any(|one| one.name.name.value == key.name.name.value && !one.not_null)
    };
    let is_nullable = key.is_some_and(|key| key.iter().skip(1).any(may_be_null));
    if is_nullable && !statement.options.iter().any(is_option) {
        let name = ast::Ident { value: "nullable_key".to_owned(), position: 1 };
        let value = ast::OptionValue::Boolean(true);
        statement.options.push(ast::TableOption { family: None, name, value });
    }
}

/// Rejects a change of a standard domain.
fn check_not_standard(entry: &CatalogEntry) -> Result<()> {
    match entry {
        CatalogEntry::Object(ObjectId::Type(number)) if standard_domain::is_standard(*number) => {
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied: types of pg_catalog cannot be changed")
        }
        _ => Ok(()),
    }
}

/// Properties that only the tables of coprocessors and of materialized views have.
#[derive(Debug, Clone, Copy, Default)]
struct DerivedTable<'a> {
    /// Columns that allow NULL although they are in the primary key.
    nullable: &'a [usize],
    /// The kind of a materialized view.
    kind: TableKind,
}

/// Returns the error for a name that is not a table.
pub fn no_table(catalog: &Catalog, name: &ast::TableName, path: &SearchPath) -> Error {
    let written = &name.name.value;
    let message = match catalog.find(name, path) {
        None => return undefined_table(name),
        Some(CatalogRelation::View(_)) => format!("\"{written}\" is a view, not a table"),
        Some(_) => format!("\"{written}\" is not a table"),
    };
    err!(WRONG_OBJECT_TYPE: message)
}

/// Returns `relation "t" does not exist`, which PostgreSQL reports without a position.
pub fn undefined_table(name: &ast::TableName) -> Error {
    err!(UNDEFINED_TABLE: "relation \"{}\" does not exist", name_as_written(name))
}

/// Returns `schema "s" does not exist`.
pub fn no_schema(name: &str) -> Error {
    err!(INVALID_SCHEMA_NAME: "schema \"{name}\" does not exist")
}

/// Returns a name as written, for messages.
fn name_as_written(name: &ast::TableName) -> String {
    match &name.schema {
        Some(schema) => format!("{}.{}", schema.value, name.name.value),
        None => name.name.value.clone(),
    }
}
