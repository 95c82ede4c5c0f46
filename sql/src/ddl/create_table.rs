//! CREATE TABLE: from the statement to the catalog record.

use std::sync::Arc;

use store::TableDescriptor;
use store::TableId;
use store::descriptor::DataBlockEncoding;
use types::DataType;
use types::expr::EvalContext;
use types::rowcode::RowLayout;

use crate::ast;
use crate::ast::ConstraintKind;
use crate::binder::{self, NameContext, TableClause};
use crate::catalog::ignored_attributes::{IgnoredColumnAttributes, IgnoredTableAttributes};
use crate::catalog::record::{CheckRecord, ColumnRecord, IdentityRecord, KeyRecord, TableRecord};
use crate::catalog::table::COLUMNS_MAX;
use crate::catalog::{Catalog, collation};
use crate::ddl::alter_column::refuse_system_column;
use crate::ddl::key_constraint::{
    DEFAULT_FAMILY, key_constraints, key_indexes, primary_key, retain_key,
};
use crate::ddl::name;
use crate::ddl::options::{
    TableOptions, check_cell_options, check_normalizer_targets, undefined_family,
};
use crate::ddl::pre_split::{SplitKey, split_points};
use crate::ddl::sequence::bound_default;
use crate::ddl::user_type::stored_text;
use crate::ddl::{foreign_key, generated};
use crate::error::{Error, Result, sqlstate};
use crate::relation_assembly;
use crate::storage_options::{OptionScope, RowStorage, TimestampSource, set_unlogged};

/// Returns the record of a new table in a schema; `storage` is the default. `ids` returns new ids
/// for the table and the indexes of its UNIQUE constraints; `eval` is the context to compute the
/// values of SPLIT ON.
///
/// # Errors
///
/// PostgreSQL's.
pub fn record(
    (statement, storage): (&ast::CreateTable, RowStorage),
    schema: &str,
    names: NameContext<'_>,
    eval: &EvalContext,
    ids: &mut dyn FnMut() -> Result<TableId>,
) -> Result<TableRecord> {
    let options = TableOptions::with_storage(storage, &statement.options, OptionScope::Table)?;
    let table_name = statement.name.name.value.clone();
    options.check_families(statement)?;
    let (catalog, mut families) = (names.catalog, vec![DEFAULT_FAMILY.to_owned()]);
    let mut columns = columns((statement, &options), names, &mut families)?;
    let of_column = |column: &ColumnRecord| families[usize::from(column.family)].clone();
    let family_names: Arc<[String]> = columns.iter().map(of_column).collect();
    generated::check(names.with_families(&family_names), &mut columns, |name| {
        let column = statement.columns.iter().find(|column| column.name.name.value == name);
        column?.generated.as_ref().map(|generated| &generated.expr)
    })?;
    let mut taken = name::NamesInUse::of(catalog, schema);
    taken.add(&table_name);
    let constraints = key_constraints(statement)?;
    let (primary_key, primary_key_name) =
        primary_key((&table_name, constraints.first(), &options), &mut taken, &mut columns)?;
    for (family, _) in &options.settings.column_families {
        if !families.contains(family) {
            families.push(family.clone());
        }
    }
    drop_unused_default_family(&mut families, &mut columns, &primary_key);
    check_families(&options.overrides, &families)?;
    let id = ids()?;
    let mut record = TableRecord {
        oid: id.0,
        schema: schema.to_owned(),
        name: table_name.clone(),
        columns,
        primary_key,
        primary_key_name,
        checks: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        salt_buckets: options.settings.salt_buckets,
        schema_version: 1,
        descriptor: Arc::new(TableDescriptor {
            id,
            name: table_name,
            families: families.iter().map(|name| options.family(name)).collect::<Result<_>>()?,
            ..options.settings.table.clone()
        }),
        kind: Default::default(),
        on_commit: statement.on_commit.unwrap_or_default(),
        retained: retained_attributes(statement, &options),
        column_cells: options.settings.storage == RowStorage::Cell,
        without_triggers: Default::default(),
        triggers: Default::default(),
        policies: Default::default(),
        row_security: Default::default(),
        forces_row_security: Default::default(),
        client_timestamps: options.settings.timestamps == TimestampSource::Client,
        cell_ttl: options.settings.cell_ttl,
        unknown: Default::default(),
    };
    check_cell_options(&record)?;
    check_normalizer_targets(&record)?;
    set_unlogged(&mut record, statement.unlogged);
    if let Some(key) = constraints.first().filter(|_| !record.primary_key_name.is_empty()) {
        retain_key(key, &mut record)?;
    }
    let layout = relation_assembly::base_layout(catalog, &record)?;
    set_value_layouts(&mut record, &layout)?;
    record.checks = checks(statement, names, &record)?;
    let key = split_key(catalog, &record)?;
    Arc::make_mut(&mut record.descriptor).split_points =
        split_points(&statement.splits, &options.settings, &key, eval, names)?;
    key_indexes(&constraints, &mut record, &mut taken, ids)?;
    Ok(record)
}

/// Returns the attributes without effect of a new table.
fn retained_attributes(
    statement: &ast::CreateTable,
    options: &TableOptions,
) -> IgnoredTableAttributes {
    IgnoredTableAttributes {
        parameters: options.parameters.clone(),
        unlogged: statement.unlogged,
        ..IgnoredTableAttributes::default()
    }
}

/// Checks that options of single families name existing ones.
fn check_families(overrides: &[ast::TableOption], families: &[String]) -> Result<()> {
    for option in overrides {
        let family = option.family.as_ref().map_or("", |family| family.value.as_str());
        if !families.iter().any(|known| known == family) {
            return Err(undefined_family(family, option.name.position));
        }
    }
    Ok(())
}

fn columns(
    (statement, options): (&ast::CreateTable, &TableOptions),
    names: NameContext<'_>,
    families: &mut Vec<String>,
) -> Result<Vec<ColumnRecord>> {
    if statement.columns.len() > COLUMNS_MAX {
        bail!(TOO_MANY_COLUMNS: "tables can have at most {COLUMNS_MAX} columns");
    }
    let has_sequences =
        statement.columns.iter().any(|column| column.serial || column.identity.is_some());
    let mut columns: Vec<ColumnRecord> = Vec::with_capacity(statement.columns.len());
    for column in &statement.columns {
        let column_name = &column.name.name;
        refuse_system_column(&column_name.value)?;
        if columns.iter().any(|other| other.name == column_name.value) {
            bail!(DUPLICATE_COLUMN: "column \"{}\" specified more than once", column_name.value);
        }
        let written = column.name.family.as_ref().map(|family| family.value.as_str());
        let written = written.or_else(|| options.family_of(&column_name.value));
        let family = written.unwrap_or(DEFAULT_FAMILY);
        let family = families.iter().position(|known| known == family).unwrap_or_else(|| {
            families.push(family.to_owned());
            families.len() - 1
        });
        let sql_type = names.catalog.type_named(&column.type_name, names.path)?;
        columns.push(ColumnRecord {
            name: column_name.value.clone(),
            type_oid: sql_type.stored_oid_and_modifier().0,
            modifier: sql_type.stored_oid_and_modifier().1,
            not_null: column.not_null,
            default: match &column.default {
                Some(default) => {
                    match bound_default(names, default, (&column_name.value, sql_type.clone())) {
                        Ok((text, _)) => Some(text),
                        // It may refer to a sequence of the table, which is created later.
                        Err(error)
                            if has_sequences && error.sqlstate == sqlstate::UNDEFINED_TABLE =>
                        {
                            None
                        }
                        Err(error) => return Err(error),
                    }
                }
                None => None,
            },
            // `generated::check` replaces it by the stored text.
            generated: column.generated.as_ref().map(|made| made.text.clone()),
            family: u8::try_from(family)
                .map_err(|_| Error::new("54011", "tables can have at most 256 column families"))?,
            identity: column.identity.as_ref().map(|identity| match identity.kind {
                ast::IdentityKind::Always => IdentityRecord::Always,
                ast::IdentityKind::ByDefault => IdentityRecord::ByDefault,
            }),
            collation: collation::written(&column.type_name, &sql_type)?,
            retained: IgnoredColumnAttributes {
                storage: column.storage,
                compression: column.compression,
                ..IgnoredColumnAttributes::default()
            },
            ..Default::default()
        });
    }
    Ok(columns)
}

/// Sets the defaults that refer to the table's own sequences, after these were created.
pub(super) fn take_late_defaults(
    statement: &ast::CreateTable,
    names: NameContext<'_>,
    record: &mut TableRecord,
) -> Result<()> {
    for (column, kept) in statement.columns.iter().zip(&mut record.columns) {
        let Some(default) = column.default.as_ref().filter(|_| kept.default.is_none()) else {
            continue;
        };
        let sql_type = names.catalog.type_named(&column.type_name, names.path)?;
        kept.default = Some(bound_default(names, default, (&kept.name, sql_type))?.0);
    }
    Ok(())
}

/// Sets the value layout of each family with columnar blocks, derived from the row layout and the
/// present value layout.
pub(super) fn set_value_layouts(record: &mut TableRecord, layout: &RowLayout) -> Result<()> {
    for (index, family) in Arc::make_mut(&mut record.descriptor).families.iter_mut().enumerate() {
        if family.data_block_encoding == DataBlockEncoding::Columnar {
            family.value_layout =
                coprocessors::columns::value_layout(layout, index, &family.value_layout)?.into();
        }
    }
    Ok(())
}

/// Removes the default family if it has no columns but others have.
fn drop_unused_default_family(
    families: &mut Vec<String>,
    columns: &mut [ColumnRecord],
    primary_key: &[KeyRecord],
) {
    for key in primary_key {
        columns[key.column as usize].family = 0;
    }
    let used = columns.iter().enumerate().any(|(position, column)| {
        column.family == 0 && !primary_key.iter().any(|key| key.column as usize == position)
    });
    if families.len() == 1 || used {
        return;
    }
    families.remove(0);
    for column in columns {
        column.family = column.family.saturating_sub(1);
    }
}

/// Returns the columns of the primary key for pre-splitting.
pub fn split_key(catalog: &Catalog, table: &TableRecord) -> Result<Vec<SplitKey>> {
    let column = |key: &KeyRecord| {
        let of = &table.columns[key.column as usize];
        Ok(SplitKey {
            sql_type: catalog.column_type(of)?,
            descending: key.descending,
            nulls_first: key.nulls_first,
            nullable: !of.not_null,
        })
    };
    table.primary_key.iter().map(column).collect()
}

fn checks(
    statement: &ast::CreateTable,
    names: NameContext<'_>,
    record: &TableRecord,
) -> Result<Vec<CheckRecord>> {
    let table = &statement.name.name.value;
    let columns = names.catalog.columns_of(&record.columns)?;
    let families = record.family_names().into();
    let names = names.with_families(&families);
    let mut checks: Vec<CheckRecord> = Vec::new();
    for constraint in &statement.constraints {
        let ConstraintKind::Check(predicate) = &constraint.kind else { continue };
        let target = Some(DataType::Bool.into());
        let bound = binder::bind_table_expression(
            TableClause::Check,
            &predicate.expr,
            &columns,
            target.clone(),
            names,
        )?;
        let check_name = match &constraint.name {
            Some(name) => name.value.clone(),
            None => {
                let used = bound.columns();
                let known: Vec<&str> =
                    used.iter().map(|column| columns[*column].0.as_str()).collect();
                name::check(table, &known).free(|candidate| {
                    checks.iter().any(|check| check.name == candidate)
                        || name::is_constraint(names.catalog, &record.schema, candidate)
                })
            }
        };
        if check_name == record.primary_key_name {
            return Err(foreign_key::duplicate(record, &check_name));
        }
        if checks.iter().any(|check| check.name == check_name) {
            bail!(DUPLICATE_OBJECT: "check constraint \"{check_name}\" already exists");
        }
        checks.push(CheckRecord {
            name: check_name,
            predicate: stored_text(names, &predicate.text, &columns, target)?,
            valid: true,
            unknown: Default::default(),
        });
    }
    Ok(checks)
}
