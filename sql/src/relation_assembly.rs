//! Catalog record to relation: row layouts, bound DEFAULT, CHECK and index expressions.
//!
//! The catalog stores definitions as records with SQL text. When the engine loads the catalog and
//! when DDL changes it, the functions here bind the texts and compute the layouts of tables,
//! domains and indexes, and return the in-memory objects that planner and executor use.

use std::sync::Arc;
use std::time::Duration;

use coprocessors::constraint::{Check, ConstraintSpec};
use coprocessors::index::{EntryFamilies, EntryFamily, IndexSpec};
use coprocessors::violation::TableName;
use store::FamilyDescriptor;
use store::descriptor::KeepDeletedCells;
use types::expr::{DomainChecks, Expr};
use types::function::quote_ident;
use types::inverted::InvertedClass;
use types::rowcode::column_qualifier;
use types::rowcode::{ColumnCell, ColumnPlace, KeyColumn, LayoutColumn, RowLayout};
use types::text::TextStyle;
use types::{DataType, Datum, SqlType};

use crate::ast;
use crate::ast::{Collation, Deferral, IndexRestriction};
use crate::binder;
use crate::binder::NameContext;
use crate::binder::TableClause;
use crate::catalog::access::row_security::row_security_of;
use crate::catalog::derived_cache::DerivedCache;
use crate::catalog::domain::{Domain, DomainRecord, VALUE, display_name};
use crate::catalog::record::{
    CheckRecord, ColumnRecord, CoprocessorRecords, IndexKeyRecord, IndexRecord, KeyRecord,
    TableRecord,
};
use crate::catalog::table::{Column, Index, IndexState, Table};
use crate::catalog::trigger::{Trigger, TriggerRecord};
use crate::catalog::user_type::OID_OFFSET;
use crate::catalog::{Catalog, collation};
use crate::error::{Error, Result};
use crate::parser;

/// Block size of index tables, in bytes of cells. An index is usually read for a few entries, and
/// a block is read and decompressed as a whole.
const INDEX_BLOCK_BYTES: u32 = 8 << 10;

/// Schema version in the packed rows of indexes, whose columns never change.
const INDEX_SCHEMA_VERSION: u32 = 1;

/// Name of the family of columns without an explicit one, and of index entries that have the life
/// of their row.
pub const DEFAULT_FAMILY: &str = "0";

/// Binding mode of the SQL texts of a definition.
#[derive(Clone, Copy)]
pub struct TextBinding<'a> {
    /// Catalog that resolves the names in the texts.
    pub catalog: &'a Catalog,
    /// True if a text that cannot be bound raises its error when it is evaluated, not when it is
    /// bound.
    pub fail_late: bool,
}

impl TextBinding<'_> {
    /// Binds a text over the columns of a row.
    fn bind(
        &self,
        text: &str,
        columns: &[(String, SqlType)],
        target: Option<SqlType>,
    ) -> Result<Expr> {
        self.or_late(text, expression(self.catalog, text, columns, target.clone()), target)
    }

    /// Returns a bound text, or one that raises the error when it is evaluated.
    fn or_late(&self, text: &str, bound: Result<Expr>, target: Option<SqlType>) -> Result<Expr> {
        if !self.fail_late {
            return bound;
        }
        Ok(bound.unwrap_or_else(|error| Expr::Unreadable {
            reason: format!("\"{text}\" cannot be read: {}", error.message).into(),
            data_type: target.map_or(DataType::Text, |target| target.base.clone()),
        }))
    }
}

/// Returns the table that a record describes, with its coprocessors.
///
/// # Errors
///
/// Errors of binding the text of a DEFAULT, CHECK or index key.
pub fn table(
    catalog: &Catalog,
    record: &TableRecord,
    coprocessors: Arc<CoprocessorRecords>,
) -> Result<Table> {
    table_of(TextBinding { catalog, fail_late: false }, record, coprocessors)
}

/// Like [`table`], with a binding mode.
///
/// # Errors
///
/// A missing type; errors of binding, unless they are deferred to the evaluation.
pub fn table_of(
    texts: TextBinding<'_>,
    record: &TableRecord,
    coprocessors: Arc<CoprocessorRecords>,
) -> Result<Table> {
    let catalog = texts.catalog;
    let names = catalog.columns_of(&record.columns)?;
    let layout = Arc::new(base_layout(catalog, record)?);
    let mut columns = Vec::with_capacity(record.columns.len());
    for (column, (name, sql_type)) in record.columns.iter().zip(&names) {
        let default = match &column.default {
            Some(text) => Some(texts.bind(text, &[], Some(sql_type.clone()))?),
            None => None,
        };
        columns.push(Column {
            name: name.clone(),
            sql_type: sql_type.clone(),
            not_null: column.not_null,
            default,
            generated: match &column.generated {
                Some(text) => Some(texts.bind(text, &names, Some(sql_type.clone()))?),
                None => None,
            },
            identity: column.identity,
            domain: sql_type.domain.and_then(|oid| catalog.domain(oid)).cloned(),
            collation: column.collation.or_else(|| collation::of(catalog, sql_type)),
            dropped: column.dropped,
        });
    }
    let indexes = record
        .indexes
        .iter()
        .map(|index| self::index(texts, record, index, &names, &layout).map(Arc::new))
        .collect::<Result<_>>()?;
    let generated = (0..columns.len()).filter(|&column| columns[column].generated.is_some());
    let mut table = Table {
        generated: generated.collect(),
        oid: record.oid,
        id: record.descriptor.id,
        schema: record.schema.clone(),
        name: record.name.clone(),
        kind: record.kind,
        is_view: false,
        columns,
        constraints: Arc::new(constraints(texts, record, &names, &layout)?),
        layout,
        column_cells: record.column_cells,
        primary_key_name: record.primary_key_name.clone(),
        indexes,
        foreign_keys: record.foreign_keys.clone(),
        without_triggers: record.without_triggers,
        client_timestamps: record.client_timestamps,
        cell_ttl: record.cell_ttl,
        triggers: Vec::new(),
        row_security: row_security_of(record, catalog)?,
        coprocessors,
        descriptor: Arc::clone(&record.descriptor),
        row_type: DerivedCache::default(),
    };
    if !record.triggers.is_empty() {
        table.triggers = triggers(texts, &record.triggers, &Arc::new(table.clone()))?;
    }
    Ok(table)
}

/// Returns the triggers of a table by name, with their bound conditions.
fn triggers(
    texts: TextBinding<'_>,
    records: &[TriggerRecord],
    table: &Arc<Table>,
) -> Result<Vec<Arc<Trigger>>> {
    let trigger = |record: &TriggerRecord| {
        let condition = record.condition.as_ref().map(|text| {
            let names = NameContext::stored(texts.catalog);
            let bound = parser::parse_expression(text).map_err(Error::from).and_then(|condition| {
                binder::bind_trigger_condition(TableClause::Catalog, &condition, table, names)
            });
            texts.or_late(text, bound, Some(DataType::Bool.into()))
        });
        Ok(Arc::new(Trigger { record: record.clone(), condition: condition.transpose()? }))
    };
    let mut triggers = records.iter().map(trigger).collect::<Result<Vec<_>>>()?;
    triggers.sort_by(|a, b| a.record.name.cmp(&b.record.name));
    Ok(triggers)
}

/// Returns the domain that a record describes.
///
/// # Errors
///
/// Errors of binding the type and the SQL text.
pub fn domain(catalog: &Catalog, record: DomainRecord) -> Result<Domain> {
    domain_of(TextBinding { catalog, fail_late: false }, record)
}

/// Like [`domain`], with a binding mode.
///
/// # Errors
///
/// A missing type; errors of binding, unless they are deferred to the evaluation.
pub fn domain_of(texts: TextBinding<'_>, record: DomainRecord) -> Result<Domain> {
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
    let columns = [(VALUE.to_owned(), over.clone())];
    for check in own {
        let target = Some(DataType::Bool.into());
        let bound = texts.bind(&check.predicate, &columns, target)?;
        checks.push((check.name.clone(), bound));
    }
    let default = match &record.default {
        Some(text) => Some(texts.bind(text, &[], Some(over.base_type()))?),
        None => None,
    };
    let oid = record.number + OID_OFFSET;
    let checks = DomainChecks {
        oid,
        schema: record.schema.clone(),
        name: record.name.clone(),
        shown: display_name(&record.schema, &record.name),
        not_null,
        checks,
        elements,
        fields: Vec::new(),
    };
    let sql_type = SqlType { domain: Some(oid), ..over.clone() };
    let collation = record.collation.or_else(|| collation::of(catalog, &over));
    let checks = Arc::new(checks);
    let domain =
        Domain { record, base_type: over, sql_type, collation, default, checks, array: None };
    Ok(domain.with_array())
}

/// Binds SQL text from the catalog over the columns of a row.
pub fn expression(
    catalog: &Catalog,
    text: &str,
    columns: &[(String, SqlType)],
    target: Option<SqlType>,
) -> Result<Expr> {
    let names = NameContext::stored(catalog);
    binder::bind_table_expression(
        TableClause::Catalog,
        &parser::parse_expression(text)?,
        columns,
        target,
        names,
    )
}

/// Returns the row layout of a table.
pub fn base_layout(catalog: &Catalog, record: &TableRecord) -> Result<RowLayout> {
    let family_count = record.descriptor.families.len();
    let mut slots = vec![0; family_count];
    let mut column_cells: Vec<ColumnCell> = Vec::new();
    let mut columns = Vec::with_capacity(record.columns.len());
    for (position, column) in record.columns.iter().enumerate() {
        let in_key = record.primary_key.iter().position(|key| key.column as usize == position);
        let place = match in_key {
            Some(key) => ColumnPlace::Key(key),
            None if record.column_cells => {
                column_cells.push(ColumnCell {
                    column: position,
                    family: usize::from(column.family),
                    qualifier: column_qualifier(position as u16).to_vec(),
                });
                ColumnPlace::Packed { cell: family_count + column_cells.len() - 1, slot: 0 }
            }
            None => {
                let family = usize::from(column.family);
                slots[family] += 1;
                ColumnPlace::Packed { cell: family, slot: slots[family] - 1 }
            }
        };
        let data_type = catalog.column_type(column)?.base;
        let missing = match &column.missing {
            None => Datum::Null,
            Some(text) => types::text::parse(text, &data_type, &TextStyle::default())?,
        };
        columns.push(LayoutColumn { data_type, place, missing });
    }
    Ok(RowLayout {
        columns,
        key: record.primary_key.iter().map(key_column).collect(),
        family_count,
        column_cells,
        expiring: expiring_families(record),
        has_version_deletes: record.client_timestamps && has_several_cells(record),
        dropped: dropped_families(record),
        salt_buckets: record.salt_buckets,
        schema_version: record.schema_version,
    })
}

/// Returns the families whose cells may expire before the row does.
fn expiring_families(record: &TableRecord) -> Vec<usize> {
    let families = &record.descriptor.families;
    let may_expire = |family: &FamilyDescriptor| {
        life_of(family).is_some() || (record.cell_ttl && !family.is_dropped())
    };
    let expiring = (0..families.len()).filter(|&family| may_expire(&families[family]));
    // The only cell of a row has the life of the row.
    if has_several_cells(record) { expiring.collect() } else { Vec::new() }
}

/// Returns whether rows may have several cells.
fn has_several_cells(record: &TableRecord) -> bool {
    let living = record.descriptor.families.iter().filter(|family| !family.is_dropped());
    record.column_cells || living.count() > 1
}

fn dropped_families(record: &TableRecord) -> Vec<usize> {
    let families = &record.descriptor.families;
    (0..families.len()).filter(|&family| families[family].is_dropped()).collect()
}

/// Returns the maximum life of the newest version of a cell.
fn life_of(family: &FamilyDescriptor) -> Option<Duration> {
    family.ttl.filter(|_| family.expires_rows())
}

/// Returns the families of an index's store table. Entries are stored by the life of the data
/// that they represent, and their history is retained by the rules of the table.
fn stored_families(
    (table, layout): (&TableRecord, &RowLayout),
    families: &EntryFamilies,
) -> Vec<FamilyDescriptor> {
    let base = &table.descriptor.families;
    let versions = base.iter().map(|family| family.versions).max().unwrap_or(1);
    let keeps = |family: &FamilyDescriptor| family.keep_deleted_cells != KeepDeletedCells::False;
    let keep_deleted_cells = match base.iter().any(keeps) {
        true => KeepDeletedCells::True,
        false => KeepDeletedCells::False,
    };
    let in_memory = base.iter().all(|family| family.in_memory || family.is_dropped());
    let stored = |name: &str, ttl| FamilyDescriptor {
        ttl,
        in_memory,
        versions,
        keep_deleted_cells,
        block_bytes: INDEX_BLOCK_BYTES,
        ..FamilyDescriptor::new(name)
    };
    let family = |one: &EntryFamily| match one {
        EntryFamily::Row => stored(DEFAULT_FAMILY, None),
        EntryFamily::Of { cell, .. } => {
            let family = &base[layout.family_of_cell(*cell)];
            let name = match layout.column_of_cell(*cell) {
                Some(column) => &format!("{}.{}", family.name, column + 1),
                None if layout.living_families() == 1 => DEFAULT_FAMILY,
                None => &family.name,
            };
            stored(name, life_of(family))
        }
    };
    families.all().iter().map(family).collect()
}

/// Sets the families that the entries of a table's index need, and the table whose regions a local
/// one follows. Called before the index's store
/// table is created.
///
/// # Errors
///
/// 0A000 for an index whose entries could not expire with their rows; errors of binding its keys.
pub fn set_index_families(catalog: &Catalog, table: &mut TableRecord, at: usize) -> Result<()> {
    let names = catalog.columns_of(&table.columns)?;
    let layout = base_layout(catalog, table)?;
    let Some(index) = table.indexes.get(at) else { return Ok(()) };
    let bound = |text: &String| expression(catalog, text, &names, None);
    let texts: Vec<Expr> = index.texts().map(bound).collect::<Result<_>>()?;
    let families = entry_families(table, &layout, &texts, index);
    if families.is_any_family_sufficient() && index.unique && index.deferral == Deferral::Never {
        return Err(Error::not_supported(
            "a unique index on only primary key columns when all column families have a TTL",
            "The primary key is unique already.",
        ));
    }
    check_unique_local((table, index), &texts)?;
    let families = stored_families((table, &layout), &families);
    let base = table.descriptor.id;
    let descriptor = Arc::make_mut(&mut table.indexes[at].descriptor);
    descriptor.families = families;
    descriptor.colocated_with = descriptor.colocated_with.map(|_| base);
    check_replicas(table)
}

/// Checks that the keys of a unique local index include the primary key: other rows with the same
/// keys could be in different regions. `texts`: the keys, then the predicate.
fn check_unique_local((table, index): (&TableRecord, &IndexRecord), texts: &[Expr]) -> Result<()> {
    if !index.unique || !index.is_local() {
        return Ok(());
    }
    let keys = &texts[..index.keys.len().min(texts.len())];
    let is_key = |column: u32| {
        keys.iter()
            .any(|key| matches!(key, Expr::Column { index, .. } if *index == column as usize))
    };
    let Some(missing) = table.primary_key.iter().find(|key| !is_key(key.column)) else {
        return Ok(());
    };
    let detail = match table.primary_key_name.is_empty() {
        true => format!("Table \"{}\" has no primary key.", table.name),
        false => {
            let (name, column) = (&index.name, &table.columns[missing.column as usize].name);
            format!("Index \"{name}\" lacks column \"{column}\" of the primary key.")
        }
    };
    bail!(FEATURE_NOT_SUPPORTED: "a unique local index must include all columns of the primary key";
        detail detail; hint "Create a global index: CREATE UNIQUE INDEX.")
}

/// Checks that a table with local indexes, which cannot have region replicas, has none.
///
/// # Errors
///
/// 0A000.
pub fn check_replicas(table: &TableRecord) -> Result<()> {
    match table.indexes.iter().any(IndexRecord::is_local) && table.descriptor.region_replication > 1
    {
        false => Ok(()),
        true => Err(Error::not_supported(
            "local indexes of a table with region replicas",
            "Create a global index, or use REGION_REPLICATION = 1.",
        )),
    }
}

/// Returns the families that the entries of an index depend on, given its keys and predicate.
fn entry_families<'e>(
    table: &TableRecord,
    layout: &RowLayout,
    texts: impl IntoIterator<Item = &'e Expr>,
    index: &IndexRecord,
) -> EntryFamilies {
    let inputs: Vec<usize> = texts.into_iter().flat_map(Expr::columns).collect();
    let include: Vec<usize> = index.include.iter().map(|column| *column as usize).collect();
    let rows_expire = table.descriptor.families.iter().any(|one| life_of(one).is_some());
    EntryFamilies::of(layout, &inputs, &include, rows_expire)
}

fn key_column(key: &KeyRecord) -> KeyColumn {
    KeyColumn {
        column: key.column as usize,
        descending: key.descending,
        nulls_first: key.nulls_first,
    }
}

fn constraints(
    texts: TextBinding<'_>,
    record: &TableRecord,
    names: &[(String, SqlType)],
    layout: &Arc<RowLayout>,
) -> Result<ConstraintSpec> {
    let checks = record
        .checks
        .iter()
        .map(|check| {
            let predicate = texts.bind(&check.predicate, names, Some(DataType::Bool.into()))?;
            Ok(Check { name: check.name.clone(), predicate, valid: check.valid })
        })
        .collect::<Result<_>>()?;
    let not_null = record.columns.iter().enumerate().filter(|(_, column)| column.not_null);
    // Messages omit dropped columns, as they omit a hidden key.
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

/// Returns the collations that the texts of an index's keys specify.
fn collations(index: &IndexRecord) -> Vec<Option<Collation>> {
    let collation = |key: &IndexKeyRecord| match parser::parse_expression(&key.expression) {
        Ok(ast::Expr::Collate { collation, .. }) => Some(collation),
        _ => None,
    };
    index.keys.iter().map(collation).collect()
}

/// Returns one index of a table. The order of its columns is that of [`IndexSpec`].
fn index(
    texts: TextBinding<'_>,
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
    let inverted = inverted_class(record, &keys)?;
    let name = |column: usize| quote_ident(&names[column].0);
    let key_names = keys.iter().map(|key| key.describe_operand(&name)).collect();
    let local = record.is_local();
    // With a deferrable constraint, two rows may have the same key until the check. Keys of a local
    // index that is unique include the primary key.
    let unique = record.unique && record.deferral == Deferral::Never && !local;
    let condition = |text: &String| texts.bind(text, names, Some(DataType::Bool.into()));
    let predicate = record.predicate.as_ref().map(condition).transpose()?;
    let families = entry_families(table, base_layout, keys.iter().chain(&predicate), record);
    // An index that an older version created may lack the families that give its entries a TTL.
    let is_known = has_families(record, &stored_families((table, base_layout), &families));
    let families = if is_known { families } else { EntryFamilies::of_rows() };
    let entries = IndexLayoutInputs { keys: &keys, inverted, families: &families, unique };
    let layout = index_layout(record, &entries, names, base_layout);
    let spec = IndexSpec {
        name: record.name.clone(),
        table: TableName { schema: table.schema.clone(), name: table.name.clone() },
        store_table: record.descriptor.id,
        unique,
        deferrable_unique: record.unique && !unique && !local,
        local,
        nulls_not_distinct: record.nulls_not_distinct,
        keys,
        inverted,
        key_names,
        include: record.include.iter().map(|column| *column as usize).collect(),
        predicate,
        base_layout: Arc::clone(base_layout),
        layout: Arc::new(layout),
        families,
    };
    Ok(Index {
        oid: record.oid,
        name: record.name.clone(),
        unique: record.unique,
        constraint: record.constraint,
        primary: record.primary,
        collations: collations(record),
        texts: record.texts().cloned().collect(),
        deferral: record.deferral,
        is_eventual: record.eventual,
        is_followed: record.is_followed(),
        state: match state(record, &spec) {
            IndexState::Disabled => IndexState::Disabled,
            _ if !is_known => IndexState::Building,
            known => known,
        },
        spec: Arc::new(spec),
    })
}

/// Returns the operator class of an inverted index.
fn inverted_class(record: &IndexRecord, keys: &[Expr]) -> Result<Option<InvertedClass>> {
    let Some(name) = &record.inverted else { return Ok(None) };
    let Some(class) = InvertedClass::named(name) else {
        bail!(DATA_CORRUPTED: "index \"{}\" has the unknown operator class \"{name}\"", record.name);
    };
    let mut readable = keys.iter().filter(|key| !matches!(key, Expr::Unreadable { .. }));
    match readable.find(|key| !class.accepts(key.data_type())) {
        None => Ok(Some(class)),
        Some(key) => Err(no_inverted_class(key.data_type(), Some(class))),
    }
}

/// Returns the error for a type without a default operator class of inverted indexes, or that an
/// operator class does not accept.
pub(crate) fn no_inverted_class(data_type: &DataType, class: Option<InvertedClass>) -> Error {
    let type_name = data_type.sql_name();
    let has_default = InvertedClass::default_of(data_type).is_some();
    match class.filter(|class| !class.is_default() || has_default) {
        Some(class) => {
            let name = class.name();
            err!(DATATYPE_MISMATCH: "operator class \"{name}\" does not accept data type {type_name}";
                with_type_mention data_type)
        }
        None => {
            err!(UNDEFINED_OBJECT: "data type {type_name} has no default operator class for access method \"gin\"";
                hint "You must specify an operator class for the index or define a default operator class for the data type.";
                with_type_mention data_type)
        }
    }
}

/// Inputs of an index layout.
struct IndexLayoutInputs<'a> {
    keys: &'a [Expr],
    inverted: Option<InvertedClass>,
    families: &'a EntryFamilies,
    unique: bool,
}

/// Returns the row layout of an index's entries.
fn index_layout(
    record: &IndexRecord,
    entries: &IndexLayoutInputs<'_>,
    names: &[(String, SqlType)],
    base_layout: &RowLayout,
) -> RowLayout {
    let IndexLayoutInputs { keys, inverted, families, unique } = *entries;
    let (mut columns, mut key) = (Vec::new(), Vec::new());
    let mut slots = vec![0; families.all().len()];
    let mut add = |data_type: DataType, key_position: Option<usize>, family: usize| {
        let place = match key_position {
            Some(position) => ColumnPlace::Key(position),
            None => {
                slots[family] += 1;
                ColumnPlace::Packed { cell: family, slot: slots[family] - 1 }
            }
        };
        columns.push(LayoutColumn { data_type, place, missing: Datum::Null });
    };
    for (position, (expression, declared)) in keys.iter().zip(&record.keys).enumerate() {
        let data_type = match inverted {
            None => expression.data_type().clone(),
            Some(_) => DataType::Bytea,
        };
        add(data_type, Some(position), 0);
        key.push(KeyColumn {
            column: position,
            descending: declared.descending,
            nulls_first: declared.nulls_first,
        });
    }
    for (offset, base) in base_layout.key.iter().enumerate() {
        let position = (!unique).then_some(keys.len() + offset);
        add(base_layout.columns[base.column].data_type.clone(), position, 0);
        if position.is_some() {
            key.push(KeyColumn { column: keys.len() + offset, ..*base });
        }
    }
    for column in &record.include {
        let family = families.of_column(base_layout, *column as usize);
        add(names[*column as usize].1.base.clone(), None, family);
    }
    RowLayout {
        columns,
        key,
        family_count: families.all().len(),
        column_cells: Vec::new(),
        expiring: families.expiring(),
        has_version_deletes: false,
        dropped: Vec::new(),
        salt_buckets: record.salt_buckets,
        schema_version: INDEX_SCHEMA_VERSION,
    }
}

/// Returns whether an index's store table has these families.
fn has_families(record: &IndexRecord, families: &[FamilyDescriptor]) -> bool {
    let present = &record.descriptor.families;
    let is_like =
        |(a, b): (&FamilyDescriptor, &FamilyDescriptor)| a.name == b.name && a.ttl == b.ttl;
    present.len() == families.len() && present.iter().zip(families).all(is_like)
}

/// Returns whether queries may use an index.
fn state(record: &IndexRecord, spec: &IndexSpec) -> IndexState {
    let is_unreadable = |one: &Expr| matches!(one, Expr::Unreadable { .. });
    let is_damaged = spec.keys.iter().chain(&spec.predicate).any(is_unreadable);
    match record.restriction {
        Some(IndexRestriction::Disabled) => IndexState::Disabled,
        _ if record.building || is_damaged => IndexState::Building,
        Some(IndexRestriction::Unusable) => IndexState::Unusable,
        None => IndexState::Active,
    }
}
