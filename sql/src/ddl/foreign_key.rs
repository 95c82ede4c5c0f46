//! FOREIGN KEY constraints: from the statement to the catalog record, and the check of existing
//! rows.

use std::sync::Arc;

use ahash::AHashSet;
use coprocessors::row::packed_cells;
use store::CellBatch;
use store::transaction::TableLockMode;
use types::{DataType, Datum};

use crate::ast;
use crate::ast::{ColumnName, ConstraintKind, Deferral, Ident, ReferentialAction, TableConstraint};
use crate::binder::NameContext;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::REFERENCES;
use crate::catalog::foreign_key::{ForeignKey, are_comparable};
use crate::catalog::record::{IndexRecord, TableRecord};
use crate::catalog::table::Table;
use crate::catalog::{Catalog, CatalogRelation};
use crate::ddl::temporary::check_reference;
use crate::ddl::{Ddl, name, undefined_table};
use crate::error::{Error, Result};
use crate::exec::constraint_queue::{ForeignKeyCheck, KeyChange, ReferenceCheck};
use crate::relation_assembly;

impl Ddl<'_> {
    /// Adds the foreign keys of a new table to its record; locks the referenced tables.
    pub(super) fn add_foreign_keys(
        &mut self,
        statement: &ast::CreateTable,
        record: &mut TableRecord,
    ) -> Result<()> {
        for constraint in &statement.constraints {
            if let ConstraintKind::ForeignKey(key) = &constraint.kind {
                let mut key = self.foreign_key(record, key, constraint.name.as_ref())?;
                key.deferral = constraint.deferral;
                record.foreign_keys.push(key);
            }
        }
        Ok(())
    }

    /// Returns the record of a foreign key of a table; locks the referenced table.
    pub(super) fn foreign_key(
        &mut self,
        record: &TableRecord,
        written: &ast::ForeignKeyClause,
        constraint: Option<&Ident>,
    ) -> Result<ForeignKey> {
        let catalog = self.changes.catalog(self.engine);
        let referenced = self.referenced_record(&catalog, record, written)?;
        check_reference(record, &referenced)?;
        let columns = self.key_columns(record, &written.columns)?;
        let (columns_there, index) = match written.referenced.as_slice() {
            [] => (primary_key(&referenced)?, None),
            names => {
                let positions = self.key_columns(&referenced, names)?;
                let index = unique_over(&referenced, &positions)?;
                (positions, index)
            }
        };
        if columns.len() != columns_there.len() {
            bail!(INVALID_FOREIGN_KEY: "number of referencing and referenced columns for foreign key disagree");
        }
        let names: Vec<&str> =
            columns.iter().map(|column| record.columns[*column as usize].name.as_str()).collect();
        let name = match constraint {
            Some(name) => name.value.clone(),
            None => name::foreign_key(&record.name, &names).free(|name| {
                has_constraint(record, name) || name::is_constraint(&catalog, &record.schema, name)
            }),
        };
        if has_constraint(record, &name) {
            return Err(duplicate(record, &name));
        }
        let names = self.names(&catalog);
        check_types(names, (record, &columns), (&referenced, &columns_there), &name)?;
        check_actions(record, &columns, written)?;
        let delete_columns = self.delete_columns(record, &columns, written)?;
        self.check_tables(&catalog, record, &referenced)?;
        Ok(ForeignKey {
            name,
            columns,
            table: referenced.oid,
            referenced: columns_there,
            index,
            match_full: written.match_full,
            on_delete: written.on_delete,
            on_update: written.on_update,
            valid: true,
            deferral: Default::default(),
            delete_columns,
            unknown: Default::default(),
        })
    }

    /// Returns the columns that `ON DELETE SET …` sets, by position; none for all.
    fn delete_columns(
        &self,
        record: &TableRecord,
        columns: &[u32],
        written: &ast::ForeignKeyClause,
    ) -> Result<Vec<u32>> {
        let mut set = self.key_columns(record, &written.delete_columns)?;
        if let Some(other) = set.iter().position(|column| !columns.contains(column)) {
            let name = &written.delete_columns[other].name.value;
            bail!(INVALID_COLUMN_REFERENCE: "column \"{name}\" referenced in ON DELETE SET action must be part of foreign key");
        }
        let mut seen = Vec::new();
        set.retain(|column| {
            !seen.contains(column) && {
                seen.push(*column);
                true
            }
        });
        Ok(set)
    }

    /// Returns the record of the referenced table, after locking it.
    fn referenced_record(
        &mut self,
        catalog: &Catalog,
        record: &TableRecord,
        written: &ast::ForeignKeyClause,
    ) -> Result<Arc<TableRecord>> {
        match self.find(catalog, &written.table) {
            Some(CatalogRelation::Table(table)) if !table.is_materialized() => {
                if table.oid != record.oid {
                    let (role, subject) =
                        (self.roles.current.number, AccessSubject::Relation(table.oid));
                    if catalog.privileges_on(role, subject).0 & REFERENCES == 0 {
                        return Err(catalog.denied(subject));
                    }
                    self.lock_table(table.id, TableLockMode::ShareRowExclusive)?;
                    return self.record_of(catalog, table);
                }
                Ok(Arc::new(record.clone()))
            }
            // The table that is being created references itself.
            None if written.table.name.value == record.name
                && written.table.schema.as_ref().is_none_or(|of| of.value == record.schema) =>
            {
                Ok(Arc::new(record.clone()))
            }
            None => Err(undefined_table(&written.table)),
            Some(_) => {
                bail!(WRONG_OBJECT_TYPE: "referenced relation \"{}\" is not a table", written.table.name.value)
            }
        }
    }

    fn key_columns(&self, record: &TableRecord, names: &[ColumnName]) -> Result<Vec<u32>> {
        let mut columns: Vec<u32> = Vec::with_capacity(names.len());
        for name in names {
            let Some(column) = record.find_column(name)? else {
                let name = &name.name.value;
                bail!(UNDEFINED_COLUMN: "column \"{name}\" referenced in foreign key constraint does not exist");
            };
            columns.push(column as u32);
        }
        Ok(columns)
    }

    /// Rejects referenced tables whose rows may expire, and tables to which writers bypass the
    /// checks.
    fn check_tables(
        &self,
        catalog: &Catalog,
        record: &TableRecord,
        referenced: &TableRecord,
    ) -> Result<()> {
        let expires = referenced.descriptor.families.iter().any(|family| family.ttl.is_some());
        let by_coprocessor = catalog
            .table(referenced.oid)
            .and_then(|table| self.engine.coprocessors.expiring(table, None));
        if expires || by_coprocessor.is_some() {
            let what = "a foreign key that references a table with a TTL";
            return Err(Error::not_supported(what, "Remove TTL from the referenced table."));
        }
        if [record, referenced].iter().any(|one| one.client_timestamps || one.cell_ttl) {
            let what = "a foreign key of or to a table with TIMESTAMPS = CLIENT or CELL_TTL";
            let hint = "Create the tables without the options.";
            return Err(Error::not_supported(what, hint));
        }
        for id in [record.descriptor.id, referenced.descriptor.id] {
            if let Some((_, writer)) = self.engine.writers_to(id).first() {
                let name = &writer.record.name;
                let what =
                    format!("a foreign key on a table that coprocessor \"{name}\" writes to");
                return Err(Error::not_supported(what, "Detach the coprocessor first."));
            }
        }
        Ok(())
    }

    /// Adds a foreign key to a table, whose lock must be held; its rows are checked unless NOT
    /// VALID is given.
    pub(super) fn add_foreign_key(
        &mut self,
        table: &Table,
        mut record: TableRecord,
        (written, constraint): (&ast::ForeignKeyClause, &TableConstraint),
    ) -> Result<()> {
        let mut key = self.foreign_key(&record, written, constraint.name.as_ref())?;
        key.deferral = constraint.deferral;
        key.valid = !constraint.not_valid;
        if key.valid {
            self.check_references(table, &key, TableLockMode::ShareRowExclusive)?;
        }
        record.foreign_keys.push(key);
        self.store_changed(table, record)
    }

    /// Checks that the referenced rows of a table exist. The table must be locked; the referenced
    /// one is locked in `mode`.
    pub(super) fn check_references(
        &mut self,
        table: &Table,
        key: &ForeignKey,
        mode: TableLockMode,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(referenced) = catalog.table(key.table).cloned() else { return Ok(()) };
        self.lock_table(referenced.id, mode)?;
        let foreign_key = Arc::new(ForeignKeyCheck {
            key: key.clone(),
            referencing: Arc::new(table.clone()),
            referenced: Arc::clone(&referenced),
            at_once: true,
            is_deferred: false,
        });
        let transaction = Arc::clone(self.transaction);
        let style = self.eval.style.clone();
        let violation = |values: Vec<Datum>| {
            let (foreign_key, change) = (Arc::clone(&foreign_key), KeyChange::Reference(None));
            ReferenceCheck { foreign_key, values, change }.violation(&style)
        };
        let mut known = AHashSet::new();
        let mut cells = CellBatch::new();
        self.each_row(table, &mut |row| {
            let values = key.values(row);
            if values.iter().any(Datum::is_null) {
                return match key.match_full && !values.iter().all(Datum::is_null) {
                    true => Err(violation(values)),
                    false => Ok(()),
                };
            }
            let Some(place) = key.place(&referenced, &values)? else {
                return Err(violation(values));
            };
            if known.contains(&place) {
                return Ok(());
            }
            if !transaction.exists_locked(place.table, &place.row)? {
                // Either row may have been deleted since, or the reference changed.
                cells.clear();
                let own = table.get(&table.layout.encode_key(row)?);
                if !transaction.get_locked(table.id, &own, &mut cells)? {
                    return Ok(());
                }
                let present = cells.row(0);
                let packed = packed_cells(&present, &table.layout);
                if key.values(&table.layout.unpack(present.key(), &packed)?) != values {
                    return Ok(());
                }
                return Err(violation(values));
            }
            if known.len() < KNOWN_KEYS_MAX {
                known.insert(place);
            }
            Ok(())
        })
    }

    /// Rejects TRUNCATE of tables that others reference, unless those are truncated, too.
    pub(super) fn refuse_referenced(&self, catalog: &Catalog, tables: &[Arc<Table>]) -> Result<()> {
        for table in tables {
            let mut others = catalog.referencing(table.oid);
            let other = others.find(|(other, _)| tables.iter().all(|table| table.oid != other.oid));
            let Some((other, _)) = other else { continue };
            bail!(FEATURE_NOT_SUPPORTED: "cannot truncate a table referenced in a foreign key constraint";
                detail "Table \"{}\" references \"{}\".", other.name, table.name;
                hint "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.", other.name);
        }
        Ok(())
    }

    /// Rejects a change of the type of a column in a foreign key.
    pub(super) fn refuse_type_of_key(&self, table: &Table, position: usize) -> Result<()> {
        let column = position as u32;
        let own = table.foreign_keys.iter().find(|key| key.columns.contains(&column));
        let catalog = self.changes.catalog(self.engine);
        let mut others = catalog.referencing(table.oid).map(|(_, key)| key);
        let other = others.find(|key| key.referenced.contains(&column));
        let Some(key) = own.or(other) else { return Ok(()) };
        let what = format!("ALTER COLUMN TYPE of a column of foreign key \"{}\"", key.name);
        Err(Error::not_supported(what, "Drop the constraint first, and add it again."))
    }
}

/// The maximum number of keys cached while rows are checked.
const KNOWN_KEYS_MAX: usize = 65_536;

/// Returns the error for a duplicate constraint name.
pub(super) fn duplicate(record: &TableRecord, name: &str) -> Error {
    err!(DUPLICATE_OBJECT: "constraint \"{name}\" for relation \"{}\" already exists", record.name)
}

/// Returns whether a table has a constraint of this name.
pub(super) fn has_constraint(record: &TableRecord, name: &str) -> bool {
    record.checks.iter().any(|check| check.name == name)
        || record.foreign_keys.iter().any(|key| key.name == name)
        || record.indexes.iter().any(|index| index.constraint && index.name == name)
        || (!record.primary_key_name.is_empty() && record.primary_key_name == name)
}

fn primary_key(referenced: &TableRecord) -> Result<Vec<u32>> {
    if referenced.indexes.iter().any(|index| index.primary) {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "cannot use a deferrable primary key for referenced table \"{}\"",
            referenced.name);
    }
    if referenced.primary_key_name.is_empty() {
        bail!(UNDEFINED_OBJECT: "there is no primary key for referenced table \"{}\"", referenced.name);
    }
    Ok(referenced.primary_key.iter().map(|key| key.column).collect())
}

/// Returns the unique index over some columns of a table, in any order; `None` for the primary
/// key.
fn unique_over(referenced: &TableRecord, columns: &[u32]) -> Result<Option<u32>> {
    let mut wanted = columns.to_vec();
    wanted.sort_unstable();
    let duplicate = wanted.windows(2).any(|pair| pair[0] == pair[1]);
    let is_over = |mut found: Vec<u32>| {
        found.sort_unstable();
        !duplicate && found == wanted
    };
    if !referenced.primary_key_name.is_empty()
        && is_over(referenced.primary_key.iter().map(|key| key.column).collect())
    {
        return Ok(None);
    }
    let columns_of = |index: &IndexRecord| -> Option<Vec<u32>> {
        let column = |text: &String| {
            let name = crate::parser::parse_relation_name(text).ok()?.name.value;
            referenced.column_index(&name).map(|column| column as u32)
        };
        index.keys.iter().map(|key| column(&key.expression)).collect()
    };
    let unique = referenced
        .indexes
        .iter()
        .filter(|index| index.unique && index.predicate.is_none() && !index.building);
    let mut unique = unique.filter(|index| columns_of(index).is_some_and(is_over));
    match unique.next() {
        Some(index) if index.deferral != Deferral::Never => {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "cannot use a deferrable unique constraint for referenced table \"{}\"",
                referenced.name)
        }
        Some(index) => Ok(Some(index.oid)),
        None => {
            bail!(INVALID_FOREIGN_KEY: "there is no unique constraint matching given keys for referenced table \"{}\"",
                referenced.name)
        }
    }
}

fn check_types(
    names: NameContext<'_>,
    (record, columns): (&TableRecord, &[u32]),
    (referenced, columns_there): (&TableRecord, &[u32]),
    constraint: &str,
) -> Result<()> {
    let catalog = names.catalog;
    for (column, there) in columns.iter().zip(columns_there) {
        let (own, other) =
            (&record.columns[*column as usize], &referenced.columns[*there as usize]);
        let (from, to) = (catalog.column_type(own)?.base, catalog.column_type(other)?.base);
        if are_comparable(&from, &to) {
            continue;
        }
        let shown = |base: &DataType| catalog.shown_type_of(&base.into(), names.path);
        let (from_name, to_name) = (shown(&from), shown(&to));
        if is_comparable(catalog, &from, &to) {
            let what = format!("a foreign key from {from_name} to {to_name}");
            return Err(Error::not_supported(what, "Use the same type for both columns."));
        }
        bail!(DATATYPE_MISMATCH: "foreign key constraint \"{constraint}\" cannot be implemented";
            detail "Key columns \"{}\" and \"{}\" are of incompatible types: {from_name} and {to_name}.", own.name, other.name);
    }
    Ok(())
}

/// Returns whether PostgreSQL has an operator to compare values of two types.
fn is_comparable(catalog: &Catalog, from: &DataType, to: &DataType) -> bool {
    let columns = [("a".to_owned(), from.into()), ("b".to_owned(), to.into())];
    relation_assembly::expression(catalog, "a = b", &columns, None).is_ok()
}

/// Rejects referential actions that would write to generated columns.
fn check_actions(record: &TableRecord, columns: &[u32], key: &ast::ForeignKeyClause) -> Result<()> {
    let mut columns = columns.iter().map(|column| &record.columns[*column as usize]);
    if columns.all(|column| column.generated.is_none()) {
        return Ok(());
    }
    let sets = [ReferentialAction::SetNull, ReferentialAction::SetDefault];
    let refused = match (key.on_update, key.on_delete) {
        (update, _) if update == ReferentialAction::Cascade || sets.contains(&update) => "UPDATE",
        (_, delete) if sets.contains(&delete) => "DELETE",
        _ => return Ok(()),
    };
    bail!(SYNTAX_ERROR: "invalid ON {refused} action for foreign key constraint containing generated column")
}
