//! UNIQUE and PRIMARY KEY constraints: from the statement to the row key, or to the index of the
//! constraint.
//!
//! The primary key is the row key in the store, so it needs no index. A deferrable one may be
//! violated temporarily; it has a unique index, as UNIQUE has, and the row key is a hidden column.

use store::{TableDescriptor, TableId};
use types::DataType;

use crate::ast;
use crate::ast::UniqueKey;
use crate::ast::{ConstraintKind, Deferral, KeyColumn, NullsOrder, SortOrder, TableConstraint};
use crate::catalog::Catalog;
use crate::catalog::ignored_attributes::{IgnoredIndexAttributes, Parameter};
use crate::catalog::record::{ColumnRecord, IndexKeyRecord, IndexRecord, KeyRecord, TableRecord};
use crate::catalog::table::ROW_ID_NAME;
use crate::ddl::options::TableOptions;
use crate::ddl::{foreign_key, name};
use crate::error::{Error, Result};
use crate::parser;
use crate::storage_options::{OptionScope, has_nullable_key};

pub(super) use crate::relation_assembly::DEFAULT_FAMILY;

/// Returns the PRIMARY KEY, if any, followed by the UNIQUE constraints of a new table. Of
/// equivalent constraints only one remains, with the first explicit name.
///
/// # Errors
///
/// 42P16 if there are two primary keys.
pub(super) fn key_constraints(statement: &ast::CreateTable) -> Result<Vec<TableConstraint>> {
    let is_key = |one: &&TableConstraint| {
        matches!(one.kind, ConstraintKind::PrimaryKey(_) | ConstraintKind::Unique(_))
    };
    let mut written: Vec<&TableConstraint> = statement.constraints.iter().filter(is_key).collect();
    written.sort_by_key(|one| !one.is_primary());
    if let Some(second) = written.get(1).filter(|one| one.is_primary()) {
        let table = &statement.name.name.value;
        bail!(INVALID_TABLE_DEFINITION: "multiple primary keys for table \"{table}\" are not allowed"; at second.position);
    }
    let mut kept: Vec<TableConstraint> = Vec::with_capacity(written.len());
    for one in written {
        match kept.iter_mut().find(|other| demands(other) == demands(one)) {
            Some(other) if other.name.is_none() => other.name.clone_from(&one.name),
            Some(_) => {}
            None => kept.push(one.clone()),
        }
    }
    Ok(kept)
}

/// The properties by which keys are equivalent: columns, whether NULLs are equal, and the deferral
/// mode.
type KeyProperties<'a> = (Vec<(&'a str, SortOrder, Option<NullsOrder>)>, bool, Deferral);

fn demands(constraint: &TableConstraint) -> KeyProperties<'_> {
    let (columns, nulls): (&[KeyColumn], bool) = match &constraint.kind {
        ConstraintKind::PrimaryKey(columns) => (columns, false),
        ConstraintKind::Unique(key) => (&key.columns, key.nulls_not_distinct),
        _ => (&[], false),
    };
    let columns = columns.iter().map(|key| (key.name.name.value.as_str(), key.order, key.nulls));
    (columns.collect(), nulls, constraint.deferral)
}

/// Returns the row key and the name of its constraint, given the first key of a new table, if any.
/// The key columns become NOT NULL; only the first if the others may be NULL. Without a primary
/// key, or if it has an index, a hidden column is added. An explicit name that a relation has is
/// replaced by a generated one: the row key has no index that needs it.
///
/// # Errors
///
/// PostgreSQL's.
pub(super) fn primary_key(
    (table, first, options): (&str, Option<&TableConstraint>, &TableOptions),
    taken: &mut name::NamesInUse<'_>,
    columns: &mut Vec<ColumnRecord>,
) -> Result<(Vec<KeyRecord>, String)> {
    if let Some(constraint) = first
        && let ConstraintKind::PrimaryKey(key) = &constraint.kind
    {
        let keys = key_records(taken.catalog(), key, (columns, constraint))?;
        let allows_null = has_nullable_key(&options.parameters);
        for (at, key) in keys.iter().enumerate() {
            columns[key.column as usize].not_null |= at == 0 || !allows_null;
        }
        if constraint.deferral == Deferral::Never {
            let chosen = name::primary_key(table);
            let name = match &constraint.name {
                // Phoenix scripts name the key of every table alike.
                Some(name) if taken.contains(&name.value) => {
                    chosen.free(|candidate| taken.contains_constraint(candidate))
                }
                _ => name::of_index(constraint, taken, || chosen)?,
            };
            taken.add(&name);
            return Ok((keys, name));
        }
    }
    let column = columns.len() as u32;
    columns.push(row_id_column());
    Ok((vec![KeyRecord { column, ..Default::default() }], String::new()))
}

/// Returns the records of the columns of a key.
pub(super) fn key_records(
    catalog: &Catalog,
    key: &[KeyColumn],
    (columns, constraint): (&[ColumnRecord], &TableConstraint),
) -> Result<Vec<KeyRecord>> {
    let mut records: Vec<KeyRecord> = Vec::with_capacity(key.len());
    for written in key {
        let ident = &written.name.name;
        let column = columns
            .iter()
            .position(|one| !one.dropped && one.name == ident.value)
            .ok_or_else(|| {
                err!(UNDEFINED_COLUMN: "column \"{}\" named in key does not exist", ident.value; at constraint.position)
            })? as u32;
        if records.iter().any(|record| record.column == column) {
            let what = if constraint.is_primary() { "primary key" } else { "unique" };
            bail!(DUPLICATE_COLUMN: "column \"{}\" appears twice in {what} constraint", ident.value; at constraint.position);
        }
        types::keycode::check_type(&catalog.column_type(&columns[column as usize])?.base)
            .map_err(|error| Error::from(error).at(ident.position))?;
        let descending = written.order == SortOrder::Descending;
        records.push(KeyRecord {
            column,
            descending,
            nulls_first: nulls_first(descending, written.nulls),
            unknown: Default::default(),
        });
    }
    Ok(records)
}

/// Adds the indexes of the UNIQUE constraints of a new table, and of a deferrable primary key.
///
/// # Errors
///
/// PostgreSQL's.
pub(super) fn key_indexes(
    constraints: &[TableConstraint],
    record: &mut TableRecord,
    taken: &mut name::NamesInUse<'_>,
    ids: &mut dyn FnMut() -> Result<TableId>,
) -> Result<()> {
    for constraint in constraints {
        if let Some(key) = constraint.index_key() {
            let index = index_of_constraint((record, taken), (constraint, &key), ids)?;
            taken.add(&index.name);
            record.indexes.push(index);
        }
    }
    Ok(())
}

/// Returns the index of a constraint. `id` returns its id.
///
/// # Errors
///
/// PostgreSQL's.
pub(super) fn index_of_constraint(
    (table, taken): (&TableRecord, &name::NamesInUse<'_>),
    (constraint, key): (&TableConstraint, &UniqueKey),
    id: &mut dyn FnMut() -> Result<TableId>,
) -> Result<IndexRecord> {
    let is_primary = constraint.is_primary();
    let keys = key_records(taken.catalog(), &key.columns, (&table.columns, constraint))?;
    let name_of = |key: &KeyRecord| table.columns[key.column as usize].name.as_str();
    let name = name::of_index(constraint, taken, || match is_primary {
        true => name::primary_key(&table.name),
        false => {
            let included = constraint.index.include.iter().map(|column| column.name.value.as_str());
            name::unique(&table.name, &keys.iter().map(name_of).chain(included).collect::<Vec<_>>())
        }
    })?;
    if constraint.name.is_some() && foreign_key::has_constraint(table, &name) {
        return Err(foreign_key::duplicate(table, &name));
    }
    let key_of = |key: &KeyRecord| IndexKeyRecord {
        expression: parser::quoted(name_of(key)),
        descending: key.descending,
        nulls_first: key.nulls_first,
        unknown: Default::default(),
    };
    let descriptor = index_descriptor(&table.descriptor, id()?, &name);
    Ok(IndexRecord {
        oid: descriptor.id.0,
        name,
        unique: true,
        keys: keys.iter().map(key_of).collect(),
        constraint: true,
        include: included(&constraint.index.include, table)?,
        salt_buckets: 0,
        descriptor: descriptor.into(),
        nulls_not_distinct: key.nulls_not_distinct,
        predicate: Default::default(),
        building: Default::default(),
        restriction: None,
        eventual: false,
        followed: None,
        deferral: constraint.deferral,
        primary: is_primary,
        inverted: None,
        retained: IgnoredIndexAttributes {
            parameters: parameters(constraint)?,
            ..IgnoredIndexAttributes::default()
        },
        unknown: Default::default(),
    })
}

/// Returns the storage parameters of the index of a constraint.
fn parameters(constraint: &TableConstraint) -> Result<Vec<Parameter>> {
    Ok(TableOptions::read(&constraint.index.options, OptionScope::Constraint)?.parameters)
}

/// Returns the positions of the included columns of an index, without duplicates. Columns of the
/// row key are included, although every index contains them, to show the definition as written.
///
/// # Errors
///
/// 42703 for a column that does not exist.
pub(super) fn included(columns: &[ast::ColumnName], table: &TableRecord) -> Result<Vec<u32>> {
    let mut include = Vec::with_capacity(columns.len());
    for column in columns {
        let ident = &column.name;
        let position = table.find_column(column)?.ok_or_else(|| {
            err!(UNDEFINED_COLUMN: "column \"{}\" does not exist", ident.value; at column.position())
        })? as u32;
        if !include.contains(&position) {
            include.push(position);
        }
    }
    Ok(include)
}

/// Stores the INCLUDE columns and storage parameters of a primary key that is the row key; they
/// have no effect.
///
/// # Errors
///
/// As of [`included`] and [`TableOptions::read`].
pub(super) fn retain_key(constraint: &TableConstraint, record: &mut TableRecord) -> Result<()> {
    let mut include = Vec::with_capacity(constraint.index.include.len());
    for column in &constraint.index.include {
        let ident = &column.name;
        let position = record.column_index(&ident.value).ok_or_else(|| {
            err!(UNDEFINED_COLUMN: "column \"{}\" named in key does not exist", ident.value; at ident.position)
        })?;
        include.push(position as u32);
    }
    record.retained.key_include = include;
    record.retained.key_parameters = parameters(constraint)?;
    Ok(())
}

/// Returns the hidden key column of a table without a primary key.
pub(super) fn row_id_column() -> ColumnRecord {
    ColumnRecord {
        name: ROW_ID_NAME.to_owned(),
        type_oid: DataType::Int8.oid(),
        modifier: -1,
        not_null: true,
        family: 0,
        ..Default::default()
    }
}

/// Returns whether NULLs come first: in descending order by default, as in PostgreSQL.
pub(super) fn nulls_first(descending: bool, written: Option<NullsOrder>) -> bool {
    written.map_or(descending, |nulls| nulls == NullsOrder::First)
}

/// Returns the descriptor of the store table of an index. Its families are set later, when its
/// keys are known ([`set_index_families`](crate::relation_assembly::set_index_families)).
pub(super) fn index_descriptor(base: &TableDescriptor, id: TableId, name: &str) -> TableDescriptor {
    TableDescriptor {
        id,
        name: name.to_owned(),
        families: vec![store::FamilyDescriptor::new(DEFAULT_FAMILY)],
        split_points: Vec::new(),
        ..base.clone()
    }
}

/// Sets the options that an index has from its table.
pub(super) fn take_table_settings(index: &mut TableDescriptor, table: &TableDescriptor) {
    index.region_replication = table.region_replication;
    index.durability = table.durability;
    index.memstore_flush_bytes = table.memstore_flush_bytes;
    index.split = table.split.clone();
}
