//! DROP of tables, views, sequences, indexes and schemas, with their dependent objects.

use std::sync::Arc;

use store::Mutation;
use store::transaction::TableLockMode;

use crate::ast::{self, TableName};
use crate::catalog::name::SearchPath;
use crate::catalog::object::Object;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::record::{COPROCESSORS_PREFIX, IndexRecord, TableRecord, object_key};
use crate::catalog::table::Index;
use crate::catalog::{Catalog, CatalogEntry, ObjectId};
use crate::ddl::dependency;
use crate::ddl::objects::NameUse;
use crate::ddl::{Ddl, no_schema, undefined_table};
use crate::error::{Error, Result};
use crate::maintained_views;
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
            let usage = (NameUse::Drop, statement.if_exists);
            let Some(object) = self.named_object(&catalog, reference, usage)? else { continue };
            if let Some((name, owner)) = required_by(&catalog, &object, &self.path) {
                let noun = reference.kind.noun();
                bail!(DEPENDENT_OBJECTS_STILL_EXIST: "cannot drop {noun} {name} because {owner} requires it";
                    hint "You can drop {owner} instead.");
            }
            if !named.contains(&object) {
                named.push(object);
            }
        }
        self.drop_objects(&named, statement.cascade)
    }

    /// Reports that a publication, rule or other object of an unsupported kind does not exist.
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
                Object::Whole(ObjectId::Table(number) | ObjectId::View(number)) => Some(number),
                _ => None,
            })
            .collect();
        // As in PostgreSQL, dependents of any owner go with their object.
        self.with_others(|ddl| {
            going.iter().try_for_each(|one| ddl.remove(&one.object, cascade, &tables))
        })
    }

    /// Removes an object, without its dependents.
    pub(super) fn remove(&mut self, object: &Object, cascade: bool, tables: &[u32]) -> Result<()> {
        self.forget_comments(object)?;
        let is_dropped = |whole: Object| match whole {
            Object::Whole(ObjectId::Table(table)) => tables.contains(&table),
            _ => false,
        };
        if object.wholes().any(is_dropped) {
            // It goes with the record of its table, which may name types that are gone already.
            return Ok(());
        }
        match object {
            Object::Whole(ObjectId::Table(table)) => self.remove_table(*table, cascade, tables),
            Object::Whole(ObjectId::Sequence(oid)) => {
                let catalog = self.changes.catalog(self.engine);
                let Some(sequence) = catalog.sequence(*oid) else { return Ok(()) };
                let mode = TableLockMode::AccessExclusive;
                self.lock_relation(sequence.id, mode)?;
                self.changes.dropped_sequences.push(sequence.id);
                self.remove_object(&CatalogEntry::Object(ObjectId::Sequence(*oid)))
            }
            // It is dropped with its constraint.
            Object::Index(table, name) if self.is_primary(*table, name) => Ok(()),
            Object::Index(table, name) => {
                let catalog = self.changes.catalog(self.engine);
                let indexes = catalog.table(*table).into_iter().flat_map(|table| &table.indexes);
                if let Some(index) = indexes.into_iter().find(|index| index.name == *name) {
                    self.forget_index_history(*table, index.oid)?;
                    self.end_build(index.oid)?;
                }
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
            Object::Attribute(number, at) => self.remove_attribute(*number, *at),
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
            Object::Trigger(table, name) => {
                self.change_trigger_records(*table, (EXCLUSIVE_MODE, true), |triggers| {
                    triggers.retain(|trigger| trigger.name != *name);
                })
            }
            Object::Policy(table, name) => {
                self.change_left((*table, EXCLUSIVE_MODE), true, |_, record| {
                    record.policies.retain(|policy| policy.name != *name);
                })
            }
            Object::Column(table, column) => self.remove_column(*table, *column),
            // The row of an extension is that of its comment, which is removed.
            whole => whole.entry().map_or(Ok(()), |entry| self.remove_object(&entry)),
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
            self.transaction.mutate(self.engine.catalog_table, vec![row])?;
        }
        self.forget_history(oid)?;
        self.changes.dropped.push(id);
        self.changes.dropped.extend(table.indexes.iter().map(|index| index.spec.store_table));
        let quota = CatalogEntry::Quota(QuotaSubject::Table(id));
        let of_table = [
            CatalogEntry::Object(ObjectId::Table(oid)),
            CatalogEntry::Object(ObjectId::View(oid)),
            quota,
        ];
        of_table.iter().try_for_each(|entry| self.remove_object(entry))?;
        self.remove_object(&CatalogEntry::Statistics(id))?;
        let sources = maintained_views::tables_of(&catalog, &table).into_iter();
        let mut sources = sources.filter(|source| !tables.contains(source));
        sources.try_for_each(|source| self.attach_views(source))
    }

    /// Changes the record of a table, under its exclusive lock.
    pub(super) fn change_record(
        &mut self,
        oid: u32,
        change: impl FnOnce(&mut super::CatalogChanges, &mut TableRecord),
    ) -> Result<()> {
        self.change_left((oid, EXCLUSIVE_MODE), false, change)
    }

    /// Changes the record of an index, under the lock that DROP INDEX needs.
    pub(super) fn change_index(
        &mut self,
        (oid, index): (u32, u32),
        change: impl FnOnce(&mut IndexRecord),
    ) -> Result<()> {
        self.change_left((oid, self.index_drop_mode), true, |_, record| {
            record.indexes.iter_mut().find(|one| one.oid == index).map_or((), change)
        })
    }

    /// Changes a record as [`Ddl::change_record`] does; texts that cannot be parsed may remain.
    pub(super) fn change_left(
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

/// Returns the name of an index or sequence that cannot be dropped alone, and its constraint or
/// identity column.
fn required_by(catalog: &Catalog, object: &Object, path: &SearchPath) -> Option<(String, String)> {
    match object {
        Object::Index(table, name) => {
            let table = catalog.table(*table)?;
            let of_constraint = |index: &Arc<Index>| index.constraint && index.name == *name;
            let is_required =
                table.primary_key_name == *name || table.indexes.iter().any(of_constraint);
            let constraint = format!("constraint {name} on table {}", table.name);
            is_required.then(|| (name.clone(), constraint))
        }
        Object::Whole(ObjectId::Sequence(number)) => {
            let owner = identity_of(catalog, *number)?.describe(catalog, path);
            Some((object.name(catalog)?.name, owner))
        }
        _ => None,
    }
}

/// Returns the identity column that owns a sequence.
pub(super) fn identity_of(catalog: &Catalog, sequence: u32) -> Option<Object> {
    let (table, column) = catalog.sequence(sequence)?.owned_by?;
    let table = catalog.table(table)?;
    let identity = table.columns.get(column as usize)?.identity;
    identity.map(|_| Object::Column(table.oid, column as usize))
}
