//! From a catalog record to a table in use: layouts made, SQL text bound.

use std::sync::Arc;

use coprocessors::constraint::{Check, ConstraintSpec};
use coprocessors::index::IndexSpec;
use coprocessors::violation::TableName;
use types::expr::{DomainChecks, Expr};
use types::function::quote_ident;
use types::rowcode::{KeyColumn, LayoutColumn, Place, RowLayout};
use types::text::TextStyle;
use types::{DataType, Datum, SqlType};

use crate::ast;
use crate::ast::{Collation, Deferral};
use crate::binder;
use crate::binder::Names;
use crate::binder::TableClause;
use crate::catalog::domain::{Domain, DomainRecord, VALUE, shown_name};
use crate::catalog::record::{
    CheckRecord, ColumnRecord, CoprocessorRecords, IndexKeyRecord, IndexRecord, KeyRecord,
    TableRecord,
};
use crate::catalog::table::{Column, Index, IndexState, Table};
use crate::catalog::user_type::OID_OFFSET;
use crate::catalog::{Catalog, collation};
use crate::error::Result;
use crate::parser;

/// Version written into the packed rows of indexes, whose columns do not change.
const INDEX_SCHEMA_VERSION: u32 = 1;

/// What texts are bound in.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    /// The catalog, for the names in them.
    pub catalog: &'a Catalog,
    /// A text that cannot be bound is an error where it is computed, and none before.
    pub fail_late: bool,
}

impl Texts<'_> {
    /// Binds a text over the columns of a row.
    fn bind(
        &self,
        text: &str,
        columns: &[(String, SqlType)],
        target: Option<SqlType>,
    ) -> Result<Expr> {
        let bound = expression(self.catalog, text, columns, target);
        if !self.fail_late {
            return bound;
        }
        Ok(bound.unwrap_or_else(|error| Expr::Unreadable {
            reason: format!("\"{text}\" cannot be read: {}", error.message).into(),
            data_type: target.map_or(DataType::Text, |target| target.base),
        }))
    }
}

/// Returns the table that a record describes, with what is attached to it.
///
/// # Errors
///
/// Whatever is wrong with the SQL text of a DEFAULT, CHECK or index key.
pub fn table(
    catalog: &Catalog,
    record: &TableRecord,
    coprocessors: Arc<CoprocessorRecords>,
) -> Result<Table> {
    table_of(Texts { catalog, fail_late: false }, record, coprocessors)
}

/// As [`table`], with texts bound in a way.
///
/// # Errors
///
/// A type that is not there; what is wrong with texts, unless that is told late.
pub fn table_of(
    texts: Texts<'_>,
    record: &TableRecord,
    coprocessors: Arc<CoprocessorRecords>,
) -> Result<Table> {
    let catalog = texts.catalog;
    let names = catalog.columns_of(&record.columns)?;
    let layout = Arc::new(base_layout(catalog, record)?);
    let mut columns = Vec::with_capacity(record.columns.len());
    for (column, (name, sql_type)) in record.columns.iter().zip(&names) {
        let default = match &column.default {
            Some(text) => Some(texts.bind(text, &[], Some(*sql_type))?),
            None => None,
        };
        columns.push(Column {
            name: name.clone(),
            sql_type: *sql_type,
            not_null: column.not_null,
            default,
            generated: match &column.generated {
                Some(text) => Some(texts.bind(text, &names, Some(*sql_type))?),
                None => None,
            },
            identity: column.identity,
            domain: sql_type.domain.and_then(|oid| catalog.domain(oid)).cloned(),
            collation: column.collation.or_else(|| collation::of(catalog, *sql_type)),
            dropped: column.dropped,
        });
    }
    let indexes = record
        .indexes
        .iter()
        .map(|index| self::index(texts, record, index, &names, &layout).map(Arc::new))
        .collect::<Result<_>>()?;
    let generated = (0..columns.len()).filter(|&column| columns[column].generated.is_some());
    Ok(Table {
        generated: generated.collect(),
        oid: record.oid,
        id: record.descriptor.id,
        schema: record.schema.clone(),
        name: record.name.clone(),
        kind: *record.kind,
        columns,
        constraints: Arc::new(constraints(texts, record, &names, &layout)?),
        layout,
        primary_key_name: record.primary_key_name.clone(),
        indexes,
        foreign_keys: record.foreign_keys.clone(),
        coprocessors,
        descriptor: Arc::new(record.descriptor.clone()),
    })
}

/// Returns the domain that a record describes.
///
/// # Errors
///
/// Whatever is wrong with the type and the SQL text.
pub fn domain(catalog: &Catalog, record: DomainRecord) -> Result<Domain> {
    domain_of(Texts { catalog, fail_late: false }, record)
}

/// As [`domain`], with texts bound in a way.
///
/// # Errors
///
/// A type that is not there; what is wrong with texts, unless that is told late.
pub fn domain_of(texts: Texts<'_>, record: DomainRecord) -> Result<Domain> {
    let catalog = texts.catalog;
    let over = catalog.stored_type(record.type_oid, record.modifier)?;
    let below = over.domain.and_then(|oid| catalog.domain(oid));
    let (mut not_null, mut checks, mut elements) = (record.not_null, Vec::new(), None);
    if let Some(below) = below {
        not_null |= below.checks.not_null;
        elements.clone_from(&below.checks.elements);
        checks.clone_from(&below.checks.checks);
    }
    let mut own: Vec<&CheckRecord> = record.checks.iter().collect();
    own.sort_by(|a, b| a.name.cmp(&b.name));
    let columns = [(VALUE.to_owned(), over)];
    for check in own {
        let target = Some(DataType::Bool.into());
        let bound = texts.bind(&check.predicate, &columns, target)?;
        checks.push((check.name.clone(), bound));
    }
    let default = match &record.default {
        Some(text) => Some(texts.bind(text, &[], Some(over.below()))?),
        None => None,
    };
    let oid = record.number + OID_OFFSET;
    let checks = DomainChecks {
        oid,
        schema: record.schema.clone(),
        name: record.name.clone(),
        shown: shown_name(&record.schema, &record.name),
        not_null,
        checks,
        elements,
        fields: Vec::new(),
    };
    let sql_type = SqlType { domain: Some(oid), ..over };
    let collation = record.collation.or_else(|| collation::of(catalog, over));
    let checks = Arc::new(checks);
    let domain = Domain { record, over, sql_type, collation, default, checks, array: None };
    Ok(domain.with_array())
}

/// Binds SQL text that the catalog keeps over the columns of a row.
pub fn expression(
    catalog: &Catalog,
    text: &str,
    columns: &[(String, SqlType)],
    target: Option<SqlType>,
) -> Result<Expr> {
    let names = Names::stored(catalog);
    binder::bind_table_expression(
        TableClause::Stored,
        &parser::parse_expression(text)?,
        columns,
        target,
        names,
    )
}

/// Returns how the rows of a table are stored.
pub fn base_layout(catalog: &Catalog, record: &TableRecord) -> Result<RowLayout> {
    let mut slots = vec![0; record.descriptor.families.len()];
    let mut columns = Vec::with_capacity(record.columns.len());
    for (position, column) in record.columns.iter().enumerate() {
        let in_key = record.primary_key.iter().position(|key| key.column as usize == position);
        let place = match in_key {
            Some(key) => Place::Key(key),
            None => {
                let family = usize::from(column.family);
                slots[family] += 1;
                Place::Packed { family, slot: slots[family] - 1 }
            }
        };
        let data_type = catalog.column_type(column)?.base;
        let missing = match &column.missing {
            None => Datum::Null,
            Some(text) => types::text::parse(text, data_type, &TextStyle::default())?,
        };
        columns.push(LayoutColumn { data_type, place, missing });
    }
    Ok(RowLayout {
        columns,
        key: record.primary_key.iter().map(key_column).collect(),
        family_count: record.descriptor.families.len(),
        salt_buckets: record.salt_buckets,
        schema_version: record.schema_version,
    })
}

fn key_column(key: &KeyRecord) -> KeyColumn {
    KeyColumn {
        column: key.column as usize,
        descending: key.descending,
        nulls_first: key.nulls_first,
    }
}

fn constraints(
    texts: Texts<'_>,
    record: &TableRecord,
    names: &[(String, SqlType)],
    layout: &Arc<RowLayout>,
) -> Result<ConstraintSpec> {
    let checks = record
        .checks
        .iter()
        .map(|check| {
            let predicate = texts.bind(&check.predicate, names, Some(DataType::Bool.into()))?;
            Ok(Check { name: check.name.clone(), predicate })
        })
        .collect::<Result<_>>()?;
    let not_null = record.columns.iter().enumerate().filter(|(_, column)| column.not_null);
    // Messages show rows without what is dropped, as without a hidden key.
    let shown = |column: &ColumnRecord| match column.dropped {
        true => String::new(),
        false => column.name.clone(),
    };
    Ok(ConstraintSpec {
        table: TableName { schema: record.schema.clone(), name: record.name.clone() },
        column_names: record.columns.iter().map(shown).collect(),
        layout: Arc::clone(layout),
        not_null: not_null.map(|(position, _)| position).collect(),
        checks,
        primary_key_name: record.primary_key_name.clone(),
    })
}

/// Returns the collations that the texts of an index's keys give them.
fn collations(index: &IndexRecord) -> Vec<Option<Collation>> {
    let collation = |key: &IndexKeyRecord| match parser::parse_expression(&key.expression) {
        Ok(ast::Expr::Collate { collation, .. }) => Some(collation),
        _ => None,
    };
    index.keys.iter().map(collation).collect()
}

/// Returns one index of a table. The order of its columns is [`IndexSpec`]'s.
fn index(
    texts: Texts<'_>,
    table: &TableRecord,
    record: &IndexRecord,
    names: &[(String, SqlType)],
    base_layout: &Arc<RowLayout>,
) -> Result<Index> {
    let keys: Vec<Expr> = record
        .keys
        .iter()
        .map(|key| texts.bind(&key.expression, names, None))
        .collect::<Result<_>>()?;
    let name = |column: usize| quote_ident(&names[column].0);
    let key_names = keys.iter().map(|key| key.describe_operand(&name)).collect();
    // Of one that is deferrable two rows may have one key for a while.
    let unique = record.unique && *record.deferral == Deferral::Never;
    let (mut columns, mut key, mut slot) = (Vec::new(), Vec::new(), 0);
    let mut add = |data_type: DataType, key_position: Option<usize>| {
        let place = match key_position {
            Some(position) => Place::Key(position),
            None => {
                slot += 1;
                Place::Packed { family: 0, slot: slot - 1 }
            }
        };
        columns.push(LayoutColumn { data_type, place, missing: Datum::Null });
    };
    for (position, (expression, declared)) in keys.iter().zip(&record.keys).enumerate() {
        add(expression.data_type(), Some(position));
        key.push(KeyColumn {
            column: position,
            descending: declared.descending,
            nulls_first: declared.nulls_first,
        });
    }
    for (offset, base) in base_layout.key.iter().enumerate() {
        let position = (!unique).then_some(keys.len() + offset);
        add(base_layout.columns[base.column].data_type, position);
        if position.is_some() {
            key.push(KeyColumn { column: keys.len() + offset, ..*base });
        }
    }
    for column in &record.include {
        add(names[*column as usize].1.base, None);
    }
    let layout = RowLayout {
        columns,
        key,
        family_count: 1,
        salt_buckets: record.salt_buckets,
        schema_version: INDEX_SCHEMA_VERSION,
    };
    let condition = |text: &String| texts.bind(text, names, Some(DataType::Bool.into()));
    let spec = IndexSpec {
        name: record.name.clone(),
        table: TableName { schema: table.schema.clone(), name: table.name.clone() },
        store_table: record.descriptor.id,
        unique,
        unique_later: record.unique && !unique,
        nulls_not_distinct: *record.nulls_not_distinct,
        keys,
        key_names,
        include: record.include.iter().map(|column| *column as usize).collect(),
        predicate: record.predicate.as_ref().map(condition).transpose()?,
        base_layout: Arc::clone(base_layout),
        layout: Arc::new(layout),
    };
    Ok(Index {
        oid: record.oid,
        name: record.name.clone(),
        constraint: record.constraint,
        primary: *record.primary,
        collations: collations(record),
        texts: record.texts().cloned().collect(),
        deferral: *record.deferral,
        state: state(record, &spec),
        spec: Arc::new(spec),
    })
}

/// Returns whether queries may use an index.
fn state(record: &IndexRecord, spec: &IndexSpec) -> IndexState {
    let is_unreadable = |one: &Expr| matches!(one, Expr::Unreadable { .. });
    let is_damaged = spec.keys.iter().chain(&spec.predicate).any(is_unreadable);
    if *record.building || is_damaged { IndexState::Building } else { IndexState::Active }
}
