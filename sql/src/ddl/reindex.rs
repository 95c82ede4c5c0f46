//! REINDEX, and index builds concurrent with writers.
//!
//! CREATE INDEX CONCURRENTLY first commits the index in the building state: from that commit on
//! writers maintain it, and queries do not use it. Then
//! [`index_fill`](coprocessors::index::index_fill) adds the entries of the existing rows, and
//! another commit activates it for queries. The state of the build is stored
//! ([`index_builds`](crate::index_builds)); after a crash the server resumes it.

use std::sync::Arc;

use store::TableId;
use store::transaction::TableLockMode;

use crate::ast::{self, IndexRestriction};
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::name::SearchPath;
use crate::catalog::object::Object;
use crate::catalog::record::TableRecord;
use crate::catalog::table::{Index, Table};
use crate::catalog::{Catalog, CatalogRelation, ObjectId};
use crate::ddl::pre_split::salt_points;
use crate::ddl::{Ddl, no_schema, no_table, undefined_table};
use crate::error::{Error, Result, sqlstate};
use crate::index_builds::IndexBuild;

/// The suffix of the name of a new index until it replaces the old one.
const NEW_FORM: &str = "_ccnew";

/// An index, by the numbers of its table and of itself.
pub type IndexOf = (u32, u32);

impl Ddl<'_> {
    /// Returns the indexes that a REINDEX rebuilds, and adds notices for tables without any.
    ///
    /// # Errors
    ///
    /// 42P01, 42809 and 3F000 for names that do not exist, or that refer to something else.
    pub fn to_reindex(&mut self, statement: &ast::Reindex) -> Result<Vec<IndexOf>> {
        let catalog = self.catalog();
        let database = AccessSubject::Database(catalog.database);
        let of_table = |oid: u32| {
            let table = catalog.table(oid);
            let indexes = table.iter().flat_map(|table| &table.indexes);
            indexes.map(|index| (oid, index.oid)).collect::<Vec<_>>()
        };
        match &statement.target {
            ast::ReindexTarget::Index(name) => match self.find(&catalog, name) {
                Some(CatalogRelation::Index(table, index)) => {
                    self.check_owns(&catalog, &Object::Index(table.oid, index.name.clone()))?;
                    Ok(vec![(table.oid, index.oid)])
                }
                // It is the row key, with no separate index.
                Some(CatalogRelation::PrimaryKey(table)) => {
                    let key = Object::Index(table.oid, table.primary_key_name.clone());
                    self.check_owns(&catalog, &key)?;
                    Ok(Vec::new())
                }
                found => Err(wrong(found, name, "an index")),
            },
            ast::ReindexTarget::Table(name) => match self.find(&catalog, name) {
                Some(CatalogRelation::Table(table)) => {
                    self.check_owns(&catalog, &Object::Whole(ObjectId::Table(table.oid)))?;
                    let found = of_table(table.oid);
                    if found.is_empty() && table.primary_key_name.is_empty() {
                        let what = match statement.concurrently {
                            true => "indexes that can be reindexed concurrently",
                            false => "indexes to reindex",
                        };
                        let message = format!("table \"{}\" has no {what}", table.name);
                        self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message);
                    }
                    Ok(found)
                }
                found => Err(wrong(found, name, "a table or materialized view")),
            },
            ast::ReindexTarget::Schema(name) if catalog.schema(&name.value).is_none() => {
                Err(no_schema(&name.value))
            }
            ast::ReindexTarget::Schema(name) => {
                if let Some(schema) = catalog.schema(&name.value) {
                    self.check_owns(&catalog, &Object::Whole(ObjectId::Schema(schema.oid)))?;
                }
                let tables = catalog.tables().into_iter().filter(|one| one.schema == name.value);
                Ok(tables.flat_map(|table| of_table(table.oid)).collect())
            }
            ast::ReindexTarget::Database(_)
                if !catalog.is_owner(self.roles.current.number, database) =>
            {
                Err(catalog.not_owner(database))
            }
            ast::ReindexTarget::Database(_) => {
                Ok(catalog.tables().into_iter().flat_map(|table| of_table(table.oid)).collect())
            }
            ast::ReindexTarget::System(_) => Ok(Vec::new()),
        }
    }

    /// Rebuilds an index while writers are blocked. `activates`: queries may use it then.
    pub fn rebuild_index(&mut self, (oid, index): IndexOf, activates: bool) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(()) };
        self.lock_table(table.id, TableLockMode::AccessExclusive)?;
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        let Some(at) = record.indexes.iter().position(|one| one.oid == index) else {
            return Ok(());
        };
        let id = self.take_ids(1)?;
        let rebuilt = &mut record.indexes[at];
        self.changes.dropped.push(rebuilt.descriptor.id);
        Arc::make_mut(&mut rebuilt.descriptor).id = TableId(id);
        rebuilt.building = false;
        if activates {
            rebuilt.restriction = None;
        }
        self.build_index(&catalog, &table, record, at)?;
        self.end_build(index)
    }

    /// Creates a new copy of an index, to be filled concurrently with writers; returns it. `None`
    /// if the index was dropped. `salt_buckets`: another number of salt buckets for the copy.
    pub fn begin_new_form(
        &mut self,
        (oid, index): IndexOf,
        salt_buckets: Option<u16>,
    ) -> Result<Option<IndexOf>> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(None) };
        // Readers do not matter: the store table that an old snapshot reads is dropped later.
        self.waits_without_queueing = true;
        self.lock_table(table.id, TableLockMode::Share)?;
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        let Some(old) = record.indexes.iter().find(|one| one.oid == index) else {
            return Ok(None);
        };
        let mut new = old.clone();
        new.oid = self.take_ids(1)?;
        let taken = crate::ddl::name::NamesInUse::of(&catalog, &table.schema);
        let name = format!("{}{NEW_FORM}", new.name);
        new.name = crate::ddl::name::numbered(&name, |one| taken.contains(one));
        new.constraint = false;
        new.primary = false;
        new.building = true;
        new.restriction = None;
        new.followed = None;
        let descriptor = Arc::make_mut(&mut new.descriptor);
        descriptor.id = TableId(new.oid);
        if let Some(salt_buckets) = salt_buckets {
            new.salt_buckets = salt_buckets;
            descriptor.split_points = salt_points(salt_buckets);
        }
        let added = (oid, new.oid);
        record.indexes.push(new);
        let at = record.indexes.len() - 1;
        self.build_index(&catalog, &table, record, at)?;
        let build = IndexBuild::new((oid, table.id), (added.1, TableId(added.1)));
        self.store_build(&IndexBuild { replaces: Some(index), ..build })?;
        Ok(Some(added))
    }

    /// Replaces an index by its new copy, if these store tables of table and copy are complete.
    /// Returns whether that is so, or one of them was dropped.
    pub fn replace_index(
        &mut self,
        (oid, index): IndexOf,
        new_form: u32,
        filled: (TableId, TableId),
    ) -> Result<bool> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(true) };
        // Readers do not matter: the store table that an old snapshot reads is dropped later.
        self.waits_without_queueing = true;
        self.lock_table(table.id, TableLockMode::Share)?;
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        let find =
            |record: &TableRecord, oid: u32| record.indexes.iter().position(|one| one.oid == oid);
        let Some(new) = find(&record, new_form).map(|at| record.indexes.remove(at)) else {
            return Ok(true);
        };
        if (table.id, new.descriptor.id) != filled {
            return Ok(false);
        }
        self.end_build(new_form)?;
        let Some(at) = find(&record, index) else {
            self.changes.dropped.push(new.descriptor.id);
            self.store_changed(&table, record)?;
            return Ok(true);
        };
        let old = &mut record.indexes[at];
        self.changes.dropped.push(old.descriptor.id);
        let descriptor = Arc::make_mut(&mut old.descriptor);
        descriptor.id = new.descriptor.id;
        descriptor.split_points.clone_from(&new.descriptor.split_points);
        old.salt_buckets = new.salt_buckets;
        old.building = false;
        old.restriction = None;
        self.begin_index_history(oid, index)?;
        self.end_build(index)?;
        self.store_changed(&table, record)?;
        Ok(true)
    }

    /// Activates an index for queries, if these store tables of table and index are complete.
    /// Returns whether that is so, or one of them was dropped.
    pub fn finish_index(
        &mut self,
        (oid, index): IndexOf,
        filled: (TableId, TableId),
    ) -> Result<bool> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(true) };
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        let Some(built) = record.indexes.iter_mut().find(|one| one.oid == index) else {
            return Ok(true);
        };
        if (table.id, built.descriptor.id) != filled {
            return Ok(false);
        }
        built.building = false;
        self.begin_index_history(oid, index)?;
        self.end_build(index)?;
        self.store_changed(&table, record)?;
        Ok(true)
    }

    /// Changes the restriction of an index.
    ///
    /// # Errors
    ///
    /// 55000 if it is not complete; 0A000 for a unique index that is to be disabled, because writes
    /// check it.
    pub fn restrict_index(
        &mut self,
        (oid, index): IndexOf,
        restriction: Option<IndexRestriction>,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some((_, found)) = index_of(&catalog, (oid, index)) else { return Ok(()) };
        let name = &found.name;
        match restriction {
            Some(IndexRestriction::Disabled) if found.is_unique() => {
                return Err(Error::not_supported(
                    format!("DISABLE of the unique index \"{name}\""),
                    "Use ALTER INDEX … UNUSABLE, or drop the index.",
                ));
            }
            Some(IndexRestriction::Disabled) => self.end_build(index)?,
            _ if !found.is_complete() => {
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "index \"{name}\" is not valid";
                    hint "Rebuild it with ALTER INDEX … REBUILD.");
            }
            _ => {}
        }
        self.change_index((oid, index), |record| {
            record.restriction = restriction;
            record.building &= restriction != Some(IndexRestriction::Disabled);
        })
    }

    /// Drops an index that could not be filled.
    pub fn abandon_index(&mut self, (oid, index): IndexOf) -> Result<()> {
        let catalog = self.catalog();
        let table = catalog.table(oid);
        let found = table.iter().flat_map(|table| &table.indexes).find(|one| one.oid == index);
        match found {
            Some(index) => self.remove(&Object::Index(oid, index.name.clone()), false, &[]),
            None => Ok(()),
        }
    }
}

fn wrong(found: Option<CatalogRelation<'_>>, name: &ast::TableName, wanted: &str) -> Error {
    match found {
        None => undefined_table(name),
        Some(_) => err!(WRONG_OBJECT_TYPE: "\"{}\" is not {wanted}", name.name.value),
    }
}

/// Returns an index and its table, by its name and that of its table if that is known.
///
/// # Errors
///
/// 42P01, 42704; 0A000 for the index of a primary key.
pub fn index_named(
    catalog: &Catalog,
    path: &SearchPath,
    (name, table): (&ast::TableName, Option<&ast::TableName>),
    command: &str,
) -> Result<(Arc<Table>, Arc<Index>)> {
    let index_name = &name.name.value;
    let undefined =
        || err!(UNDEFINED_OBJECT: "index \"{index_name}\" does not exist"; at name.position());
    if let Some(on) = table {
        let table = catalog.find_table(on, path);
        let table = table.ok_or_else(|| no_table(catalog, on, path))?;
        if let Some(index) = table.indexes.iter().find(|index| index.name == *index_name) {
            return Ok((Arc::clone(table), Arc::clone(index)));
        }
        if table.primary_key_name != *index_name {
            bail!(UNDEFINED_OBJECT: "table \"{}\" has no index \"{index_name}\"", on.name.value; at name.position());
        }
    } else {
        match catalog.find(name, path) {
            Some(CatalogRelation::Index(table, index)) => {
                return Ok((Arc::clone(table), Arc::clone(index)));
            }
            Some(CatalogRelation::PrimaryKey(_)) => {}
            _ => return Err(undefined()),
        }
    }
    Err(Error::not_supported(
        format!("{command} of primary key \"{index_name}\""),
        "The rows are stored by their primary key, without an index.",
    ))
}

/// Returns an index by its numbers.
pub fn index_of(catalog: &Catalog, (oid, index): IndexOf) -> Option<(TableId, Arc<Index>)> {
    let table = catalog.table(oid)?;
    let found = table.indexes.iter().find(|one| one.oid == index)?;
    Some((table.id, Arc::clone(found)))
}
