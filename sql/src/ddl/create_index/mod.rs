//! CREATE INDEX: from the statement to the catalog record. Building the index is in
//! [`ddl`](crate::ddl).

pub(in crate::ddl) mod eventual;

use store::{TableDescriptor, TableId};
use types::expr::{EvalContext, Expr};
use types::inverted::InvertedClass;
use types::{DataType, SqlType};

use crate::ast;
use crate::ast::{IndexMethod, SortOrder};
use crate::binder::{self, NameContext, TableClause};
use crate::catalog::Catalog;
use crate::catalog::ignored_attributes::{IgnoredIndexAttributes, Parameter};
use crate::catalog::record::{IndexKeyRecord, IndexRecord, TableRecord};
use crate::ddl::alter_table::without_position;
use crate::ddl::create_table;
use crate::ddl::key_constraint::{included, index_descriptor, nulls_first};
use crate::ddl::name;
use crate::ddl::options::TableOptions;
use crate::ddl::pre_split::{SplitKey, split_points};
use crate::ddl::user_type::stored_text;
use crate::error::{Error, Result, sqlstate};
use crate::relation_assembly;
use crate::storage_options::{IndexConsistency, OptionScope};

/// Returns the record of a new index on a table. `eval` is the context to compute the values of
/// SPLIT ON.
///
/// # Errors
///
/// PostgreSQL's.
pub fn record(
    statement: &ast::CreateIndex,
    table: &TableRecord,
    names: NameContext<'_>,
    eval: &EvalContext,
    id: TableId,
) -> Result<IndexRecord> {
    let catalog = names.catalog;
    let columns = catalog.columns_of(&table.columns)?;
    let families = table.family_names().into();
    let names = names.with_families(&families);
    check_method(statement)?;
    let (mut operator_classes, mut inverted) = (Vec::new(), None);
    let mut keys = Vec::with_capacity(statement.keys.len());
    let mut split_key = Vec::with_capacity(statement.keys.len());
    let mut parts: Vec<String> = Vec::with_capacity(statement.keys.len());
    for key in &statement.keys {
        let bound = bound_key(key, &columns, names)?;
        let data_type = bound.data_type();
        let class = match statement.method {
            IndexMethod::Gin => {
                inverted = Some(inverted_class(key, data_type)?.name().to_owned());
                None
            }
            method => {
                types::keycode::check_type(data_type)?;
                written_class(key, data_type, method)?
            }
        };
        parts.push(match bound {
            Expr::Column { index, .. } => columns[index].0.clone(),
            _ => binder::index_column_name(&key.source.expr),
        });
        operator_classes.extend(class.map(|class| (keys.len() as u32, class)));
        let descending = key.order == Some(SortOrder::Descending);
        let nulls_first = nulls_first(descending, key.nulls);
        let expression = stored_text(names, &key.source.text, &columns, None)?;
        keys.push(IndexKeyRecord { expression, descending, nulls_first, ..Default::default() });
        let sql_type = match statement.method {
            IndexMethod::Gin => DataType::Bytea.into(),
            _ => SqlType::from(data_type),
        };
        split_key.push(SplitKey { sql_type, descending, nulls_first, nullable: true });
    }
    if !statement.unique {
        split_key.extend(create_table::split_key(catalog, table)?);
    }
    let index_name = chosen_name(statement, table, catalog, &parts)?;
    let TableOptions { settings, parameters, .. } = options(statement)?;
    let eventual = settings.consistency == IndexConsistency::Eventual;
    if eventual {
        eventual::check((statement.unique, statement.local), table)?;
    }
    let mut descriptor = index_descriptor(&table.descriptor, id, &index_name);
    descriptor.split_points = split_points(&statement.splits, &settings, &split_key, eval, names)?;
    make_local(statement, table, (&mut descriptor, settings.salt_buckets))?;
    Ok(IndexRecord {
        oid: id.0,
        name: index_name,
        unique: statement.unique,
        constraint: false,
        keys,
        include: included(&statement.include, table)?,
        salt_buckets: settings.salt_buckets,
        descriptor: descriptor.into(),
        nulls_not_distinct: statement.nulls_not_distinct,
        predicate: predicate(statement, &columns, names)?,
        building: statement.concurrently || statement.is_async,
        deferral: Default::default(),
        primary: Default::default(),
        inverted,
        restriction: None,
        eventual,
        followed: None,
        retained: retained(statement, parameters, operator_classes),
        unknown: Default::default(),
    })
}

/// Makes an index local if the statement says so: its regions are those of its table.
///
/// # Errors
///
/// 0A000 for salt buckets or regions of its own.
fn make_local(
    statement: &ast::CreateIndex,
    table: &TableRecord,
    (descriptor, salt_buckets): (&mut TableDescriptor, u16),
) -> Result<()> {
    if !statement.local {
        return Ok(());
    }
    if salt_buckets > 0 {
        let hint = "Omit SALT_BUCKETS: the entries are in the regions of their rows.";
        return Err(Error::not_supported("SALT_BUCKETS of a local index", hint));
    }
    if !descriptor.split_points.is_empty() {
        let hint = "Omit SPLIT ON: the entries are in the regions of their rows.";
        return Err(Error::not_supported("SPLIT ON of a local index", hint));
    }
    descriptor.colocated_with = Some(table.descriptor.id);
    Ok(())
}

/// Returns the attributes of an index that have no effect.
fn retained(
    statement: &ast::CreateIndex,
    parameters: Vec<Parameter>,
    operator_classes: Vec<(u32, String)>,
) -> IgnoredIndexAttributes {
    IgnoredIndexAttributes {
        parameters,
        is_hash: statement.method == IndexMethod::Hash,
        operator_classes,
        unknown: Default::default(),
    }
}

/// Returns the bound expression of a key.
fn bound_key(
    key: &ast::IndexKey,
    columns: &[(String, SqlType)],
    names: NameContext<'_>,
) -> Result<Expr> {
    let clause = TableClause::IndexExpression;
    let bound = binder::bind_table_expression(clause, &key.source.expr, columns, None, names);
    let bound = match &key.source.expr {
        ast::Expr::Column(_) => bound.map_err(without_position)?,
        _ => bound?,
    };
    if !bound.is_immutable() {
        bail!(INVALID_OBJECT_DEFINITION: "functions in index expression must be marked IMMUTABLE");
    }
    Ok(bound)
}

/// Returns the text of the predicate of a partial index.
fn predicate(
    statement: &ast::CreateIndex,
    columns: &[(String, SqlType)],
    names: NameContext<'_>,
) -> Result<Option<String>> {
    let Some(predicate) = &statement.predicate else { return Ok(None) };
    let clause = TableClause::IndexPredicate;
    let target = Some(DataType::Bool.into());
    let bound =
        binder::bind_table_expression(clause, &predicate.expr, columns, target.clone(), names)?;
    if !bound.is_immutable() {
        bail!(INVALID_OBJECT_DEFINITION: "functions in index predicate must be marked IMMUTABLE");
    }
    stored_text(names, &predicate.text, columns, target).map(Some)
}

/// Returns the operator class of a key, if it is written and not the type's default.
fn written_class(
    key: &ast::IndexKey,
    data_type: &DataType,
    method: IndexMethod,
) -> Result<Option<String>> {
    let Some(class) = &key.operator_class else { return Ok(None) };
    let is_other = check_operator_class(class, data_type, method.name())?;
    Ok(is_other.then(|| class.value.clone()))
}

/// Returns the operator class of the key of an inverted index.
fn inverted_class(key: &ast::IndexKey, data_type: &DataType) -> Result<InvertedClass> {
    let Some(written) = &key.operator_class else {
        return InvertedClass::default_of(data_type)
            .ok_or_else(|| relation_assembly::no_inverted_class(data_type, None));
    };
    let name = written.value.as_str();
    match InvertedClass::named(name) {
        None => {
            bail!(UNDEFINED_OBJECT: "operator class \"{name}\" does not exist for access method \"gin\"")
        }
        Some(class) if class.accepts(data_type) => Ok(class),
        Some(_) => {
            let type_name = data_type.sql_name();
            bail!(DATATYPE_MISMATCH: "operator class \"{name}\" does not accept data type {type_name}";
            with_type_mention data_type)
        }
    }
}

/// Rejects clauses that PostgreSQL's hash and GIN indexes do not support.
fn check_method(statement: &ast::CreateIndex) -> Result<()> {
    if statement.method == IndexMethod::Btree {
        return Ok(());
    }
    let method = statement.method.name();
    let refused = |what: &str| {
        Err(err!(FEATURE_NOT_SUPPORTED: "access method \"{method}\" does not support {what}"))
    };
    if statement.unique {
        return refused("unique indexes");
    }
    if !statement.include.is_empty() {
        return refused("included columns");
    }
    if statement.keys.len() > 1 && statement.method == IndexMethod::Hash {
        return refused("multicolumn indexes");
    }
    if statement.keys.iter().any(|key| key.order.is_some()) {
        return refused("ASC/DESC options");
    }
    if statement.keys.iter().any(|key| key.nulls.is_some()) {
        return refused("NULLS FIRST/LAST options");
    }
    if statement.keys.len() > 1 {
        let hint = "Create an index for each column.";
        return Err(Error::not_supported("an inverted index of several columns", hint));
    }
    Ok(())
}

/// Checks that an operator class exists for a type, and returns whether it is not the type's
/// default. All classes of a type have the same order here, because text is sorted by its bytes.
fn check_operator_class(class: &ast::Ident, data_type: &DataType, method: &str) -> Result<bool> {
    let name = class.value.as_str();
    let base = |data_type: &DataType| match data_type {
        DataType::Array(_) => "array_ops".to_owned(),
        DataType::Enum(_) => "enum_ops".to_owned(),
        DataType::Record => "record_ops".to_owned(),
        other => format!("{}_ops", other.internal_name()),
    };
    let fits = match data_type {
        DataType::Text | DataType::Varchar => {
            let text = ["text_ops", "text_pattern_ops", "varchar_ops", "varchar_pattern_ops"];
            text.contains(&name)
        }
        DataType::Char => ["bpchar_ops", "bpchar_pattern_ops"].contains(&name),
        other => base(other) == name,
    };
    if fits {
        let default = match data_type {
            DataType::Text | DataType::Varchar => "text_ops".to_owned(),
            other => base(other),
        };
        return Ok(default != name);
    }
    let patterns = ["text_pattern_ops", "varchar_pattern_ops", "bpchar_pattern_ops"];
    let special = ["array_ops", "enum_ops", "record_ops"];
    let known = patterns.contains(&name)
        || special.contains(&name)
        || DataType::all().any(|one| one.element().is_none() && base(&one) == name);
    let (code, message) = if known {
        bail!(DATATYPE_MISMATCH: "operator class \"{name}\" does not accept data type {}", data_type.sql_name();
            with_type_mention data_type);
    } else {
        let message =
            format!("operator class \"{name}\" does not exist for access method \"{method}\"");
        (sqlstate::UNDEFINED_OBJECT, message)
    };
    Err(Error::new(code, message))
}

fn chosen_name(
    statement: &ast::CreateIndex,
    table: &TableRecord,
    catalog: &Catalog,
    parts: &[String],
) -> Result<String> {
    let taken = name::NamesInUse::of(catalog, &table.schema);
    let Some(written) = &statement.name else {
        let included = statement.include.iter().map(|column| &column.name.value);
        let mut columns: Vec<String> = Vec::new();
        for part in parts.iter().chain(included) {
            let column = name::numbered(part, |one| columns.iter().any(|column| column == one));
            columns.push(column);
        }
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let stem = name::index(&table.name, &columns);
        return Ok(stem.free(|candidate| taken.contains(candidate)));
    };
    if taken.contains(&written.value) {
        bail!(DUPLICATE_TABLE: "relation \"{}\" already exists", written.value);
    }
    Ok(written.value.clone())
}

/// Reads the storage options of an index.
fn options(statement: &ast::CreateIndex) -> Result<TableOptions> {
    TableOptions::read(&statement.options, OptionScope::of_index(statement.method))
}
