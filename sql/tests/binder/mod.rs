//! Binder script runner: binds the statements of the scripts over the tables of [`TABLES`] and
//! prints their logical plans.

#![expect(clippy::unwrap_used, reason = "tables that are wrong here fail the tests")]

mod plan;

use std::sync::Arc;

use coprocessors::constraint::ConstraintSpec;
use coprocessors::index::IndexSpec;
use sql::ast::{ConstraintKind, CreateIndex, CreateTable, Statement};
use sql::binder::{
    NameContext, SessionConstants, SystemCatalog, TableClause, bind, bind_table_expression,
};
use sql::catalog::name::ObjectName;
use sql::catalog::table::{Column, Index, IndexState, Table};
use sql::catalog::{Catalog, CatalogObject};
use sql::logical::OutputColumn;
use sql::parser::parse_statements;
use store::{FamilyDescriptor, TableDescriptor, TableId};
use types::rowcode::{ColumnPlace, KeyColumn, LayoutColumn, RowLayout};
use types::{DataType, Datum, SqlType};

/// Tables of the scripts.
const TABLES: &str = "
create table users (id int primary key, name text not null, city varchar(20), age smallint,
    born date, created timestamptz default now(), active bool default true);
create unique index users_name on users (name);
create index users_city on users (city);
create table orders (id int, line int, user_id bigint, amount numeric(10, 2), code char(4),
    note text default 'none', primary key (id, line));
create table counters (name varchar(10) primary key, stats.n bigint, stats.seen timestamp);
";

/// System views of the scripts.
struct System;

fn column(name: &str, data_type: &DataType) -> OutputColumn {
    OutputColumn { name: name.to_owned(), sql_type: data_type.into(), origin: None }
}

impl SystemCatalog for System {
    fn view(&self, schema: Option<&str>, name: &str) -> Option<Vec<OutputColumn>> {
        (schema == Some("bennu") && name == "regions")
            .then(|| vec![column("table_name", &DataType::Text), column("region", &DataType::Int8)])
    }
}

/// Returns the plans of the statements, or the first error.
pub(crate) fn answer(sql: &str) -> String {
    let catalog = catalog();
    let statements = match parse_statements(sql) {
        Ok(statements) => statements,
        Err(error) => return format!("parser error {}: {}", error.sqlstate, error.message),
    };
    let mut constants = SessionConstants::new();
    constants.insert("current_user", Datum::Text("bennu".into()));
    constants.insert("version", Datum::Text("PostgreSQL 15".into()));
    let mut text = String::new();
    for parsed in &statements {
        text += &match bind(&parsed.statement, &catalog, &System, &constants, &[]) {
            Ok(bound) => plan::print(&bound),
            Err(error) => plan::error(&error),
        };
    }
    text
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    for parsed in parse_statements(TABLES).unwrap() {
        let id = TableId(u32::try_from(catalog.version).unwrap() + 1);
        catalog = match parsed.statement {
            Statement::CreateTable(create) => {
                catalog.with(CatalogObject::Table(Arc::new(table(&create, id)), None))
            }
            Statement::CreateIndex(create) => with_index(&catalog, &create, id),
            other => panic!("{other:?}"),
        };
    }
    catalog
}

#[expect(clippy::too_many_lines, reason = "a flat list of fields")]
fn table(create: &CreateTable, id: TableId) -> Table {
    let name = create.name.name.value.clone();
    let key = create.constraints.iter().find_map(|constraint| match &constraint.kind {
        ConstraintKind::PrimaryKey(key) => Some(key.clone()),
        _ => None,
    });
    let position =
        |wanted: &str| create.columns.iter().position(|one| one.name.name.value == wanted).unwrap();
    let key: Vec<usize> = key.unwrap().iter().map(|one| position(&one.name.name.value)).collect();
    let mut families = vec![FamilyDescriptor::new("0")];
    let mut columns = Vec::new();
    let mut layout = Vec::new();
    for (index, one) in create.columns.iter().enumerate() {
        let family = one.name.family.as_ref().map_or(0, |family| {
            if !families.iter().any(|other| other.name == family.value) {
                families.push(FamilyDescriptor::new(&family.value));
            }
            families.iter().position(|other| other.name == family.value).unwrap()
        });
        let sql_type = &one.type_name.sql_type;
        let place = key.iter().position(|column| *column == index);
        let place =
            place.map_or(ColumnPlace::Packed { cell: family, slot: index }, ColumnPlace::Key);
        layout.push(LayoutColumn { data_type: sql_type.base.clone(), place, missing: Datum::Null });
        let default = one.default.as_ref();
        columns.push(Column {
            generated: None,
            name: one.name.name.value.clone(),
            sql_type: sql_type.clone(),
            not_null: one.not_null || key.contains(&index),
            default: default.map(|one| bound(&one.expr, &[], Some(sql_type.clone()))),
            identity: None,
            domain: None,
            dropped: false,
            collation: None,
        });
    }
    let key = |column: &usize| KeyColumn { column: *column, descending: false, nulls_first: false };
    let layout = Arc::new(RowLayout {
        schema_version: 1,
        ..RowLayout::new(layout, columns_key(create, &key), families.len())
    });
    let descriptor = TableDescriptor::new(id, name.clone(), families);
    let primary_key_name = format!("{name}_pkey");
    let constraints = ConstraintSpec {
        table: coprocessors::violation::TableName {
            schema: "public".to_owned(),
            name: name.clone(),
        },
        column_names: columns.iter().map(|column| column.name.clone()).collect(),
        layout: Arc::clone(&layout),
        not_null: Vec::new(),
        checks: Vec::new(),
        primary_key_name: primary_key_name.clone(),
    };
    Table {
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
        primary_key_name,
        constraints: Arc::new(constraints),
        indexes: Vec::new(),
        coprocessors: Arc::default(),
        descriptor: Arc::new(descriptor),
        row_type: Default::default(),
    }
}

fn columns_key(create: &CreateTable, key: &dyn Fn(&usize) -> KeyColumn) -> Vec<KeyColumn> {
    let names = create.constraints.iter().find_map(|constraint| match &constraint.kind {
        ConstraintKind::PrimaryKey(key) => Some(key),
        _ => None,
    });
    let position = |name: &str| create.columns.iter().position(|one| one.name.name.value == name);
    names.unwrap().iter().map(|one| key(&position(&one.name.name.value).unwrap())).collect()
}

fn with_index(catalog: &Catalog, create: &CreateIndex, id: TableId) -> Catalog {
    let mut table =
        Table::clone(catalog.table_named(&ObjectName::public(&create.table.name.value)).unwrap());
    let columns: Vec<(String, SqlType)> =
        table.columns.iter().map(|column| (column.name.clone(), column.sql_type.clone())).collect();
    let key = |expr| bound(expr, &columns, None);
    let name = create.name.as_ref().unwrap().value.clone();
    let spec = IndexSpec {
        inverted: None,
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
        keys: create.keys.iter().map(|one| key(&one.source.expr)).collect(),
        key_names: create.keys.iter().map(|one| one.source.text.clone()).collect(),
        include: Vec::new(),
        predicate: None,
        base_layout: Arc::clone(&table.layout),
        layout: Arc::clone(&table.layout),
        families: coprocessors::index::EntryFamilies::of_rows(),
    };
    table.indexes.push(Arc::new(Index {
        oid: spec.store_table.0,
        name,
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
    }));
    catalog.with(CatalogObject::Table(Arc::new(table), None))
}

/// Binds an expression over a table without user-defined types.
fn bound(
    expr: &sql::ast::Expr,
    columns: &[(String, SqlType)],
    target: Option<SqlType>,
) -> types::expr::Expr {
    let catalog = Catalog::default();
    let names = NameContext::stored(&catalog);
    bind_table_expression(TableClause::Catalog, expr, columns, target, names).unwrap()
}
