//! Test schema: tables and indexes from CREATE statements, without a stored catalog.

use std::sync::Arc;

use coprocessors::constraint::ConstraintSpec;
use coprocessors::index::IndexSpec;
use sql::ast::SortOrder;
use sql::ast::{ConstraintKind, CreateIndex, CreateTable, IndexMethod, NullsOrder, OptionValue};
use sql::binder::{NameContext, TableClause, bind_table_expression};
use sql::catalog::Catalog;
use sql::catalog::table::{Column, Index, IndexState, Table};
use store::{FamilyDescriptor, TableDescriptor, TableId};
use types::expr::Expr;
use types::inverted::InvertedClass;
use types::rowcode::{ColumnPlace, KeyColumn, LayoutColumn, RowLayout};
use types::{DataType, Datum, SqlType};

fn option(create: &[sql::ast::TableOption], name: &str) -> Option<usize> {
    let option = create.iter().find(|option| option.name.value == name)?;
    match &option.value {
        OptionValue::Number(number) => number.parse().ok(),
        _ => None,
    }
}

fn key_column(column: usize, order: Option<SortOrder>, nulls: &Option<NullsOrder>) -> KeyColumn {
    let descending = order == Some(SortOrder::Descending);
    let nulls_first = match nulls {
        Some(NullsOrder::First) => true,
        Some(NullsOrder::Last) => false,
        None => descending,
    };
    KeyColumn { column, descending, nulls_first }
}

/// Returns the columns of the primary key.
fn primary_key(create: &CreateTable) -> &[sql::ast::KeyColumn] {
    let written = create.constraints.iter().find_map(|constraint| match &constraint.kind {
        ConstraintKind::PrimaryKey(key) => Some(key),
        _ => None,
    });
    written.unwrap()
}

/// Returns the table of a CREATE TABLE. Options: `salt_buckets`, `regions` (for integer keys).
pub(crate) fn table(create: &CreateTable, id: TableId) -> Table {
    let name = create.name.name.value.clone();
    let position =
        |wanted: &str| create.columns.iter().position(|one| one.name.name.value == wanted).unwrap();
    let key: Vec<KeyColumn> = primary_key(create)
        .iter()
        .map(|one| key_column(position(&one.name.name.value), Some(one.order), &one.nulls))
        .collect();
    let mut families = vec![FamilyDescriptor::new("0")];
    // `slots`: next slot of each family.
    let (mut columns, mut layout_columns, mut slots) = (Vec::new(), Vec::new(), vec![0]);
    for (index, one) in create.columns.iter().enumerate() {
        let family = one.name.family.as_ref().map_or(0, |family| {
            if !families.iter().any(|other| other.name == family.value) {
                families.push(FamilyDescriptor::new(&family.value));
            }
            families.iter().position(|other| other.name == family.value).unwrap()
        });
        let sql_type = &one.type_name.sql_type;
        let in_key = key.iter().position(|key| key.column == index);
        slots.resize(families.len().max(slots.len()), 0);
        let place = in_key
            .map_or(ColumnPlace::Packed { cell: family, slot: slots[family] }, ColumnPlace::Key);
        slots[family] += usize::from(in_key.is_none());
        let data_type = sql_type.base.clone();
        layout_columns.push(LayoutColumn { data_type, place, missing: Datum::Null });
        columns.push(Column {
            generated: None,
            name: one.name.name.value.clone(),
            sql_type: sql_type.clone(),
            not_null: one.not_null || in_key.is_some(),
            default: one.default.as_ref().map(|one| bound(&one.expr, &[], Some(sql_type.clone()))),
            identity: None,
            domain: None,
            dropped: false,
            collation: None,
        });
    }
    let salt_buckets = option(&create.options, "salt_buckets").unwrap_or(0) as u16;
    let layout = Arc::new(layout(layout_columns, key, families.len(), salt_buckets));
    if let Some(versions) = option(&create.options, "versions") {
        families.iter_mut().for_each(|family| family.versions = versions as u32);
    }
    let constraints = constraints(&name, &columns, &layout);
    Table {
        descriptor: Arc::new(descriptor(id, &name, families, splits(&layout, create))),
        column_cells: false,
        generated: Vec::new(),
        foreign_keys: Vec::new(),
        without_triggers: false,
        triggers: Vec::new(),
        row_security: Default::default(),
        client_timestamps: false,
        cell_ttl: false,
        kind: sql::catalog::record::TableKind::Ordinary,
        is_view: false,
        oid: id.0,
        id,
        schema: "public".to_owned(),
        name,
        columns,
        layout,
        primary_key_name: constraints.primary_key_name.clone(),
        constraints: Arc::new(constraints),
        indexes: Vec::new(),
        coprocessors: Arc::default(),
        row_type: Default::default(),
    }
}

fn constraints(name: &str, columns: &[Column], layout: &Arc<RowLayout>) -> ConstraintSpec {
    ConstraintSpec {
        table: coprocessors::violation::TableName {
            schema: "public".to_owned(),
            name: name.to_owned(),
        },
        column_names: columns.iter().map(|column| column.name.clone()).collect(),
        layout: Arc::clone(layout),
        not_null: (0..columns.len()).filter(|&column| columns[column].not_null).collect(),
        checks: Vec::new(),
        primary_key_name: format!("{name}_pkey"),
    }
}

fn splits(layout: &RowLayout, create: &CreateTable) -> Vec<Vec<u8>> {
    if layout.salt_buckets > 0 {
        return (1..layout.salt_buckets).map(|bucket| vec![bucket as u8]).collect();
    }
    let regions = option(&create.options, "regions").unwrap_or(1);
    (1..regions)
        .map(|region| layout.encode_key_prefix(&[Datum::Int4(region as i32 * 10)]).unwrap())
        .collect()
}

fn descriptor(
    id: TableId,
    name: &str,
    families: Vec<FamilyDescriptor>,
    split_points: Vec<Vec<u8>>,
) -> TableDescriptor {
    TableDescriptor { split_points, ..TableDescriptor::new(id, name.to_owned(), families) }
}

fn layout(
    columns: Vec<LayoutColumn>,
    key: Vec<KeyColumn>,
    family_count: usize,
    salt_buckets: u16,
) -> RowLayout {
    RowLayout { salt_buckets, schema_version: 1, ..RowLayout::new(columns, key, family_count) }
}

/// Returns the index of a CREATE INDEX, and the descriptor of its store table.
pub(crate) fn index(table: &Table, create: &CreateIndex, id: TableId) -> (Index, TableDescriptor) {
    let columns: Vec<(String, SqlType)> =
        table.columns.iter().map(|column| (column.name.clone(), column.sql_type.clone())).collect();
    let keys: Vec<Expr> =
        create.keys.iter().map(|one| bound(&one.source.expr, &columns, None)).collect();
    let include: Vec<usize> =
        create.include.iter().map(|one| table.column_index(&one.name.value).unwrap()).collect();
    let primary_key: Vec<usize> = table.key_columns().collect();
    let inverted = inverted_class(create, &keys);
    let types: Vec<DataType> = keys
        .iter()
        .map(|key| inverted.map_or_else(|| key.data_type().clone(), |_| DataType::Bytea))
        .chain(
            primary_key
                .iter()
                .chain(&include)
                .map(|&column| table.layout.columns[column].data_type.clone()),
        )
        .collect();
    let mut key: Vec<KeyColumn> = create
        .keys
        .iter()
        .enumerate()
        .map(|(position, one)| key_column(position, one.order, &one.nulls))
        .collect();
    if !create.unique {
        let first = keys.len();
        key.extend(
            (0..primary_key.len())
                .map(|offset| KeyColumn { column: first + offset, ..table.layout.key[offset] }),
        );
    }
    let place = |position: usize| {
        if position < key.len() {
            ColumnPlace::Key(position)
        } else {
            ColumnPlace::Packed { cell: 0, slot: position - key.len() }
        }
    };
    let layout_column = |(position, data_type): (usize, &DataType)| LayoutColumn {
        data_type: data_type.clone(),
        place: place(position),
        missing: Datum::Null,
    };
    let salt_buckets = option(&create.options, "salt_buckets").unwrap_or(0) as u16;
    let stored = types.iter().enumerate().map(layout_column).collect();
    let layout = layout(stored, key.clone(), 1, salt_buckets);
    let name = create.name.as_ref().unwrap().value.clone();
    let splits = (1..layout.salt_buckets).map(|bucket| vec![bucket as u8]).collect();
    let descriptor = descriptor(id, &name, vec![FamilyDescriptor::new("0")], splits);
    let spec = IndexSpec {
        inverted,
        nulls_not_distinct: false,
        deferrable_unique: false,
        local: false,
        name: name.clone(),
        table: coprocessors::violation::TableName {
            schema: "public".to_owned(),
            name: table.name.clone(),
        },
        store_table: id,
        unique: create.unique,
        keys,
        key_names: create.keys.iter().map(|one| one.source.text.clone()).collect(),
        include,
        predicate: predicate(create, &columns),
        base_layout: Arc::clone(&table.layout),
        layout: Arc::new(layout),
        families: coprocessors::index::EntryFamilies::of_rows(),
    };
    (active(id, &name, spec), descriptor)
}

fn inverted_class(create: &CreateIndex, keys: &[Expr]) -> Option<InvertedClass> {
    let is_inverted = create.method == IndexMethod::Gin;
    is_inverted.then(|| InvertedClass::default_of(keys[0].data_type()).unwrap())
}

fn active(id: TableId, name: &str, spec: IndexSpec) -> Index {
    Index {
        oid: id.0,
        name: name.to_owned(),
        unique: spec.unique,
        constraint: false,
        primary: false,
        collations: Vec::new(),
        texts: spec.key_names.clone(),
        spec: Arc::new(spec),
        state: IndexState::Active,
        deferral: sql::ast::Deferral::Never,
        is_eventual: false,
        is_followed: false,
    }
}

fn predicate(create: &CreateIndex, columns: &[(String, SqlType)]) -> Option<Expr> {
    let target = Some(DataType::Bool.into());
    create.predicate.as_ref().map(|one| bound(&one.expr, columns, target))
}

/// Binds an expression over a table without user-defined types.
fn bound(expr: &sql::ast::Expr, columns: &[(String, SqlType)], target: Option<SqlType>) -> Expr {
    let catalog = Catalog::default();
    let names = NameContext::stored(&catalog);
    bind_table_expression(TableClause::Catalog, expr, columns, target, names).unwrap()
}
