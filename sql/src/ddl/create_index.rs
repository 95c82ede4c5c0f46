//! CREATE INDEX: from the statement to the catalog record.

use store::TableId;
use types::SqlType;

use crate::ast;
use crate::ast::SortOrder;
use crate::binder;
use crate::catalog::Catalog;
use crate::catalog::record::{IndexKeyRecord, IndexRecord, TableRecord};
use crate::ddl::create_table::{index_descriptor, nulls_first, salt_split_points};
use crate::ddl::name;
use crate::error::{Error, Result, sqlstate};

/// Returns the record of an index to be created on a table.
///
/// # Errors
///
/// What PostgreSQL reports for the same mistake.
pub fn record(
    statement: &ast::CreateIndex,
    table: &TableRecord,
    catalog: &Catalog,
    id: TableId,
) -> Result<IndexRecord> {
    if let Some(predicate) = &statement.predicate {
        return Err(Error::not_supported(
            "an index with WHERE",
            format!("Leave out WHERE {}, or index the expression.", predicate.text),
        ));
    }
    if !statement.splits.is_empty() {
        return Err(Error::not_supported(
            "SPLIT ON of an index",
            "Use SALT_BUCKETS to spread an index from the start.",
        ));
    }
    let names = column_types(table)?;
    let mut keys = Vec::with_capacity(statement.keys.len());
    let mut parts: Vec<String> = Vec::with_capacity(statement.keys.len());
    for key in &statement.keys {
        let bound = binder::bind_table_expression(&key.source.expr, &names, None)?;
        if !bound.is_immutable() {
            return Err(Error::new(
                "42P17",
                "functions in index expression must be marked IMMUTABLE",
            ));
        }
        parts.push(match bound {
            types::expr::Expr::Column { index, .. } => names[index].0.clone(),
            _ => "expr".to_owned(),
        });
        let descending = key.order == SortOrder::Descending;
        keys.push(IndexKeyRecord {
            expression: key.source.text.clone(),
            descending,
            nulls_first: nulls_first(descending, key.nulls),
        });
    }
    let index_name = chosen_name(statement, table, catalog, &parts)?;
    let salt_buckets = salt_buckets(statement)?;
    if salt_buckets > 0 && statement.unique {
        return Err(Error::not_supported(
            "SALT_BUCKETS of a unique index",
            "Leave SALT_BUCKETS out, or leave UNIQUE out.",
        ));
    }
    let mut descriptor = index_descriptor(&table.descriptor, id, &index_name);
    descriptor.split_points = salt_split_points(salt_buckets);
    Ok(IndexRecord {
        name: index_name,
        unique: statement.unique,
        keys,
        include: include(statement, table)?,
        salt_buckets,
        descriptor,
    })
}

fn column_types(table: &TableRecord) -> Result<Vec<(String, SqlType)>> {
    let columns = table.columns.iter();
    columns.map(|column| Ok((column.name.clone(), column.sql_type()?))).collect()
}

fn chosen_name(
    statement: &ast::CreateIndex,
    table: &TableRecord,
    catalog: &Catalog,
    parts: &[String],
) -> Result<String> {
    let taken = name::Taken::of(catalog);
    let Some(written) = &statement.name else {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let stem = name::index(&table.name, &parts);
        return Ok(name::numbered(&stem, |candidate| taken.contains(candidate)));
    };
    if taken.contains(&written.value) {
        return Err(Error::new(
            sqlstate::DUPLICATE_TABLE,
            format!("relation \"{}\" already exists", written.value),
        )
        .at(written.position));
    }
    Ok(written.value.clone())
}

fn salt_buckets(statement: &ast::CreateIndex) -> Result<u8> {
    let mut salt_buckets = 0;
    for option in &statement.options {
        if option.name.value != "salt_buckets" || option.family.is_some() {
            return Err(Error::new(
                sqlstate::INVALID_PARAMETER_VALUE,
                format!("unrecognized parameter \"{}\"", option.name.value),
            )
            .with_hint("An index takes SALT_BUCKETS; its other rules are those of its table.")
            .at(option.name.position));
        }
        salt_buckets =
            super::options::TableOptions::read(std::slice::from_ref(option))?.salt_buckets;
    }
    Ok(salt_buckets)
}

/// Returns the positions of the included columns. Key columns of the table are in every index.
fn include(statement: &ast::CreateIndex, table: &TableRecord) -> Result<Vec<u32>> {
    let mut include = Vec::with_capacity(statement.include.len());
    for column in &statement.include {
        let ident = &column.name;
        let position = table.column_index(&ident.value).ok_or_else(|| {
            let message = format!("column \"{}\" does not exist", ident.value);
            Error::new(sqlstate::UNDEFINED_COLUMN, message).at(ident.position)
        })? as u32;
        let in_key = table.primary_key.iter().any(|key| key.column == position);
        if !in_key && !include.contains(&position) {
            include.push(position);
        }
    }
    Ok(include)
}
