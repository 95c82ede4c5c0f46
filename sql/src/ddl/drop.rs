//! DROP of tables, views, sequences, indexes and schemas, with their dependent objects.

use std::sync::Arc;

use store::Mutation;
use store::transaction::TableLockMode;

use crate::ast;
use crate::ast::{DATABASE, ObjectKind, ObjectReference, TableName};
use crate::catalog::extension::PLPGSQL;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::record::{
    CATALOG_TABLE, COPROCESSORS_PREFIX, IndexRecord, TableRecord, object_key,
};
use crate::catalog::schema::SYSTEM_SCHEMAS;
use crate::catalog::{Catalog, CatalogEntry, CatalogRelation};
use crate::ddl::dependency::{self, Object};
use crate::ddl::extension::created;
use crate::ddl::{Ddl, no_schema, undefined_table};
use crate::error::{Error, Result, sqlstate};
use crate::relation_assembly::{self, TextBinding};

/// The lock mode that excludes all other access to the table.
const EXCLUSIVE_MODE: TableLockMode = TableLockMode::AccessExclusive;

impl Ddl<'_> {
    /// Drops the objects that a statement names, and with CASCADE their dependents. With IF
    /// EXISTS, missing objects are only notices.
    pub fn drop(&mut self, statement: &ast::Drop) -> Result<()> {
        let catalog = self.catalog();
        if statement.concurrently {
            // Older snapshots may still read the index; writers must stop maintaining it.
            self.index_drop_mode = TableLockMode::Share;
            self.waits_without_queueing = true;
        }
        let mut named = Vec::new();
        for reference in &statement.objects {
            if let ObjectReference::Routine(_, function) = reference {
                self.tell_column_types(&catalog, function.types())?;
            }
            match self.named_object(&catalog, statement.table.as_ref(), reference) {
                Ok(object) if named.contains(&object) => {}
                Ok(object) => named.push(object),
                Err(DropError::Gone(error)) => self.missing_object(error, statement.if_exists)?,
                Err(DropError::Wrong(error)) => return Err(error),
            }
        }
        if named.contains(&Object::Extension(PLPGSQL.number)) {
            let message = "cannot drop extension plpgsql because it is required by the database \
                           system";
            return Err(Error::new(sqlstate::DEPENDENT_OBJECTS_STILL_EXIST, message));
        }
        self.drop_objects(&named, statement.cascade)
    }

    /// Reports that a publication, trigger or other object of an unsupported kind does not exist.
    pub fn drop_nothing(&mut self, statement: &ast::DropUnsupported) -> Result<()> {
        let catalog = self.catalog();
        let (kind, table) = (&statement.kind, &statement.table);
        if let Some(name) = table
            && self.find(&catalog, name).is_none()
        {
            let schema = name.schema.as_ref().filter(|_| statement.if_exists);
            if let Some(schema) = schema.filter(|one| catalog.schema(&one.value).is_none()) {
                return self.missing_object(no_schema(&schema.value), true);
            }
            let missing = Error { position: None, ..undefined_table(name) };
            return self.missing_object(missing, statement.if_exists);
        }
        for name in &statement.names {
            if kind == "database" {
                let missing = missing_database(&name.value)?;
                self.missing_object(missing, statement.if_exists)?;
                continue;
            }
            // The noun is PostgreSQL's, which depends on the statement.
            let word = if statement.if_exists || kind == "rule" { "relation" } else { "table" };
            let shown = |table: &TableName| match statement.if_exists {
                true => super::name_as_written(table),
                false => table.name.value.clone(),
            };
            let on = table.as_ref().map(|table| format!(" for {word} \"{}\"", shown(table)));
            self.missing_object(
                err!(UNDEFINED_OBJECT: "{kind} \"{}\"{} does not exist", name.value, on.unwrap_or_default()),
                statement.if_exists,
            )?;
        }
        Ok(())
    }

    /// Drops objects, with their dependents.
    pub(super) fn drop_objects(&mut self, named: &[Object], cascade: bool) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let going = dependency::dropped_objects(&catalog, self.system.as_ref(), named);
        self.notices.extend(dependency::check(&catalog, &self.path, &going, cascade)?);
        let tables: Vec<u32> = going
            .iter()
            .filter_map(|one| match one.object {
                Object::Table(table) => Some(table),
                _ => None,
            })
            .collect();
        for one in &going {
            self.remove(&one.object, cascade, &tables)?;
        }
        Ok(())
    }

    /// Returns the object that a statement names; `on` is the table of `DROP INDEX i ON t`.
    fn named_object(
        &self,
        catalog: &Catalog,
        on: Option<&TableName>,
        reference: &ObjectReference,
    ) -> std::result::Result<Object, DropError> {
        let missing = |error: Error, code: &str| match &*error.sqlstate {
            found if [code, sqlstate::INVALID_SCHEMA_NAME].contains(&found) => {
                DropError::Gone(error)
            }
            _ => DropError::Wrong(error),
        };
        let of_type = |name: &TableName, domain: bool| {
            let found = self.droppable(catalog, name, domain).map(Object::Type);
            found.map_err(|error| missing(error, sqlstate::UNDEFINED_OBJECT))
        };
        match reference {
            ObjectReference::Object(ObjectKind::Schema, name) => {
                named_schema(catalog, &name.name.value)
            }
            ObjectReference::Object(kind, name) => self.named_relation(catalog, on, (*kind, name)),
            ObjectReference::Type(name) => of_type(name, false),
            ObjectReference::Domain(name) => of_type(name, true),
            ObjectReference::Routine(word, function) => {
                let found = self.known_function(catalog, function, *word);
                let found = found.map(|function| Object::Function(function.record.number));
                found.map_err(|error| missing(error, sqlstate::UNDEFINED_FUNCTION))
            }
            ObjectReference::Extension(name) => {
                let found = created(catalog, &name.value).map(|(known, _)| known.number);
                found.map(Object::Extension).map_err(DropError::Gone)
            }
        }
    }

    fn named_relation(
        &self,
        catalog: &Catalog,
        on: Option<&TableName>,
        (kind, name): (ObjectKind, &TableName),
    ) -> std::result::Result<Object, DropError> {
        let written = &name.name.value;
        if let Some(schema) = &name.schema
            && catalog.schema(&schema.value).is_none()
        {
            return Err(DropError::Gone(no_schema(&schema.value)));
        }
        let found = self.find(catalog, name);
        let of_table = |relation: &CatalogRelation<'_>| match (on, relation) {
            (Some(owner), CatalogRelation::Index(table, _)) => {
                catalog.find_table(owner, &self.path).is_some_and(|owner| owner.oid == table.oid)
            }
            _ => true,
        };
        let Some(relation) = found.filter(of_table) else {
            let code = match kind {
                ObjectKind::Index => sqlstate::UNDEFINED_OBJECT,
                _ => sqlstate::UNDEFINED_TABLE,
            };
            let kind = kind.name();
            return Err(DropError::Gone(Error::new(
                code,
                format!("{kind} \"{written}\" does not exist"),
            )));
        };
        let kind = kind.name();
        if relation.kind() != kind {
            let article = if kind == "index" { "an" } else { "a" };
            let other = relation.kind();
            let an = if other == "index" { "an" } else { "a" };
            let error = err!(WRONG_OBJECT_TYPE: "\"{written}\" is not {article} {kind}";
                hint "Use DROP {} to remove {an} {other}.", other.to_uppercase());
            return Err(DropError::Wrong(error));
        }
        match relation {
            CatalogRelation::PrimaryKey(table) => {
                Err(DropError::Wrong(constraint_index(written, &table.name)))
            }
            CatalogRelation::Index(table, index) => {
                let record = catalog.record(table.oid);
                let mut indexes = record.iter().flat_map(|record| &record.indexes);
                match indexes.any(|one| one.name == index.name && one.constraint) {
                    true => Err(DropError::Wrong(constraint_index(written, &table.name))),
                    false => Ok(Object::of(relation)),
                }
            }
            CatalogRelation::Sequence(sequence) => match identity_of(catalog, sequence.oid) {
                Some(column) => {
                    let what = column.describe(catalog, &self.path);
                    let error = err!(DEPENDENT_OBJECTS_STILL_EXIST: "cannot drop sequence {written} because {what} requires it");
                    let hint = format!("You can drop {what} instead.");
                    Err(DropError::Wrong(error.with_hint(hint)))
                }
                None => Ok(Object::of(relation)),
            },
            relation => Ok(Object::of(relation)),
        }
    }

    pub(super) fn remove(&mut self, object: &Object, cascade: bool, tables: &[u32]) -> Result<()> {
        self.forget_comments(object)?;
        match object {
            Object::Schema(name) => {
                let catalog = self.changes.catalog(self.engine);
                let schema = catalog.schema(name).map(|schema| CatalogEntry::Schema(schema.oid));
                schema.map_or(Ok(()), |schema| self.remove_object(&schema))
            }
            Object::Table(table) => self.remove_table(*table, cascade, tables),
            Object::View(oid) => self.remove_object(&CatalogEntry::View(*oid)),
            Object::Sequence(oid) => {
                let catalog = self.changes.catalog(self.engine);
                let Some(sequence) = catalog.sequence(*oid) else { return Ok(()) };
                let mode = TableLockMode::AccessExclusive;
                self.lock_relation(sequence.id, mode)?;
                self.changes.dropped_sequences.push(sequence.id);
                self.remove_object(&CatalogEntry::Sequence(*oid))
            }
            // It is dropped with its constraint.
            Object::Index(table, name) if self.is_primary(*table, name) => Ok(()),
            Object::Index(table, name) => {
                self.change_left((*table, self.index_drop_mode), true, |changes, record| {
                    let dropped = record.indexes.iter().filter(|index| index.name == *name);
                    changes.dropped.extend(dropped.map(|index| index.descriptor.id));
                    record.indexes.retain(|index| index.name != *name);
                })
            }
            Object::Default(table, column) => {
                self.change_left((*table, EXCLUSIVE_MODE), true, |_, record| {
                    record.columns[*column].default = None;
                })
            }
            Object::Type(number) => self.remove_object(&CatalogEntry::Type(*number)),
            Object::Attribute(number, at) => self.remove_attribute(*number, *at),
            Object::Function(number) => self.remove_object(&CatalogEntry::Function(*number)),
            // Its row is that of its comment, which is removed.
            Object::Extension(_) => Ok(()),
            Object::Constraint(table, name) if self.is_primary(*table, name) => {
                self.drop_primary_key(*table)
            }
            Object::Constraint(table, name) => {
                self.change_left((*table, EXCLUSIVE_MODE), true, |changes, record| {
                    let is_it = |index: &IndexRecord| index.constraint && index.name == *name;
                    let dropped = record.indexes.iter().filter(|index| is_it(index));
                    changes.dropped.extend(dropped.map(|index| index.descriptor.id));
                    record.indexes.retain(|index| !is_it(index));
                    record.checks.retain(|check| check.name != *name);
                    record.foreign_keys.retain(|key| key.name != *name);
                })
            }
            Object::Column(table, _) if tables.contains(table) => Ok(()),
            Object::Column(table, column) => self.remove_column(*table, *column),
        }
    }

    fn is_primary(&self, table: u32, name: &str) -> bool {
        let catalog = self.changes.catalog(self.engine);
        catalog.table(table).is_some_and(|table| table.primary_key_name == name)
    }

    fn remove_table(&mut self, oid: u32, cascade: bool, tables: &[u32]) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(()) };
        let id = table.id;
        self.lock_table(id, TableLockMode::AccessExclusive)?;
        self.refuse_pending(&table, "DROP TABLE")?;
        self.release_target(&table, cascade, tables)?;
        if !table.coprocessors.attached.is_empty() {
            let row = Mutation::new(object_key(COPROCESSORS_PREFIX, oid)).delete_row();
            self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        }
        self.forget_history(oid)?;
        self.changes.dropped.push(id);
        self.changes.dropped.extend(table.indexes.iter().map(|index| index.spec.store_table));
        let quota = CatalogEntry::Quota(QuotaSubject::Table(id));
        let of_table = [CatalogEntry::Table(oid), CatalogEntry::View(oid), quota];
        of_table.iter().try_for_each(|entry| self.remove_object(entry))?;
        self.remove_object(&CatalogEntry::Statistics(id))
    }

    /// Changes the record of a table, under its exclusive lock.
    pub(super) fn change_record(
        &mut self,
        oid: u32,
        change: impl FnOnce(&mut super::CatalogChanges, &mut TableRecord),
    ) -> Result<()> {
        self.change_left((oid, EXCLUSIVE_MODE), false, change)
    }

    /// Changes a record as [`Ddl::change_record`] does; texts that cannot be parsed may remain.
    fn change_left(
        &mut self,
        (oid, mode): (u32, TableLockMode),
        fail_late: bool,
        change: impl FnOnce(&mut super::CatalogChanges, &mut TableRecord),
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(()) };
        self.lock_table(table.id, mode)?;
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        change(self.changes, &mut record);
        let texts = TextBinding { catalog: &catalog, fail_late };
        let changed = relation_assembly::table_of(texts, &record, Arc::clone(&table.coprocessors))?;
        self.lock_observed_table(oid)?;
        self.store_record(&catalog, changed, record)
    }
}

/// The reason why an object cannot be dropped.
enum DropError {
    /// It does not exist, which IF EXISTS allows.
    Gone(Error),
    /// The name refers to another kind of object, or the object cannot be dropped alone.
    Wrong(Error),
}

fn named_schema(catalog: &Catalog, name: &str) -> std::result::Result<Object, DropError> {
    if SYSTEM_SCHEMAS.contains(&name) {
        return Err(DropError::Wrong(
            err!(DEPENDENT_OBJECTS_STILL_EXIST: "cannot drop schema {name} because it is required by \
                the database system"),
        ));
    }
    match catalog.schema(name) {
        Some(schema) => Ok(Object::Schema(schema.name.clone())),
        None => Err(DropError::Gone(no_schema(name))),
    }
}

/// Returns the error for an index that a constraint requires.
fn constraint_index(index: &str, table: &str) -> Error {
    let constraint = format!("constraint {index} on table {table}");
    err!(DEPENDENT_OBJECTS_STILL_EXIST: "cannot drop index {index} because {constraint} requires it";
        hint "You can drop {constraint} instead.")
}

/// Returns the identity column that owns a sequence.
pub(super) fn identity_of(catalog: &Catalog, sequence: u32) -> Option<Object> {
    let (table, column) = catalog.sequence(sequence)?.owned_by?;
    let table = catalog.table(table)?;
    let identity = table.columns.get(column as usize)?.identity;
    identity.map(|_| Object::Column(table.oid, column as usize))
}

/// Returns the error for a database that does not exist.
///
/// # Errors
///
/// 55006 if it exists: it is the open database.
fn missing_database(name: &str) -> Result<Error> {
    if name == DATABASE {
        bail!(OBJECT_IN_USE: "cannot drop the currently open database");
    }
    Ok(err!(INVALID_CATALOG_NAME: "database \"{name}\" does not exist"))
}
