//! Usage views of `information_schema`: types that columns and domains use, columns that views and
//! generated columns read, and element types of arrays.

use std::sync::Arc;

use types::SqlType;

use crate::ast::Collation;
use crate::catalog::Catalog;
use crate::catalog::domain::Domain;
use crate::catalog::function::{Function, ReturnRecord};
use crate::system::catalog_objects::{
    Attribute, CatalogObjects, DATABASE_NAME, SystemRelation, SystemRelationKind, user_oid,
};
use crate::system::information_schema::{is_table, is_view, type_names};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{text, text_or_null};
use crate::system::{Row, definition};

/// An object that has a type: a column, attribute, domain, parameter or result.
struct TypedObject<'o> {
    schema: &'o str,
    name: String,
    /// `TABLE`, `DOMAIN`, `ROUTINE`, `USER-DEFINED TYPE`
    kind: &'static str,
    /// `dtd_identifier`: unique within the object; `None` for a procedure, which has no result.
    identifier: Option<String>,
    sql_type: Option<SqlType>,
}

/// Returns the rows of a view; `None` if it is not one of these.
pub(super) fn rows(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    catalog: &Catalog,
) -> Option<Vec<Row>> {
    let relations = || objects.relations.iter().filter(|one| is_table(one) || is_view(one));
    Some(match shape.name {
        "data_type_privileges" => {
            let row = |one: &TypedObject<'_>| {
                let identifier = one.identifier.as_ref();
                let mut row = one.object(shape);
                let identifier = text_or_null(identifier);
                shape.set(&mut row, [("dtd_identifier", identifier)]);
                row
            };
            all(objects, catalog).iter().map(row).collect()
        }
        "element_types" => {
            all(objects, catalog).iter().filter_map(|one| one.element(shape, objects)).collect()
        }
        "view_column_usage" => {
            objects.relations.iter().flat_map(|one| view_columns(shape, objects, one)).collect()
        }
        "column_column_usage" => {
            objects.relations.iter().flat_map(|one| generated_from(shape, objects, one)).collect()
        }
        "collations" | "collation_character_set_applicability" => collations(shape),
        "column_udt_usage" => relations().flat_map(|one| columns(shape, objects, one)).collect(),
        "domain_udt_usage" => {
            let row = |domain: &Arc<Domain>| {
                let (_, udt_schema, udt_name) = type_names(objects, domain.base_type);
                shape.row([
                    ("udt_catalog", text(DATABASE_NAME)),
                    ("udt_schema", text(udt_schema)),
                    ("udt_name", text(udt_name)),
                    ("domain_catalog", text(DATABASE_NAME)),
                    ("domain_schema", text(&domain.record.schema)),
                    ("domain_name", text(&domain.record.name)),
                ])
            };
            objects.domains.iter().map(row).collect()
        }
        _ => return None,
    })
}

/// Returns the base type of a domain; other types unchanged.
fn below(objects: &CatalogObjects, sql_type: SqlType) -> SqlType {
    let domain = sql_type.domain.and_then(|oid| objects.domain(oid));
    domain.map_or(sql_type, |domain| domain.base_type)
}

fn columns(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> Vec<Row> {
    let row = |column: &Attribute| {
        let (_, udt_schema, udt_name) = type_names(objects, below(objects, column.sql_type));
        shape.row([
            ("udt_catalog", text(DATABASE_NAME)),
            ("udt_schema", text(udt_schema)),
            ("udt_name", text(udt_name)),
            ("table_catalog", text(DATABASE_NAME)),
            ("table_schema", text(objects.namespace(relation.schema))),
            ("table_name", text(&relation.name)),
            ("column_name", text(&column.name)),
        ])
    };
    relation.columns.iter().map(row).collect()
}

/// Returns all objects that have a type.
fn all<'o>(objects: &'o CatalogObjects, catalog: &'o Catalog) -> Vec<TypedObject<'o>> {
    let mut all = Vec::new();
    for relation in &objects.relations {
        let kind = match relation.kind {
            SystemRelationKind::Composite(_) => "USER-DEFINED TYPE",
            _ if is_table(relation) || is_view(relation) => "TABLE",
            _ => continue,
        };
        all.extend(relation.columns.iter().map(|column| TypedObject {
            schema: objects.namespace(relation.schema),
            name: relation.name.clone(),
            kind,
            identifier: Some(column.number.to_string()),
            sql_type: Some(column.sql_type),
        }));
    }
    all.extend(objects.domains.iter().map(|domain| TypedObject {
        schema: &domain.record.schema,
        name: domain.record.name.clone(),
        kind: "DOMAIN",
        identifier: Some("1".to_owned()),
        sql_type: Some(domain.base_type),
    }));
    for function in catalog.functions() {
        routine(catalog, function, &mut all);
    }
    all
}

/// Adds the parameters and the result of a function.
fn routine<'o>(catalog: &Catalog, function: &'o Function, all: &mut Vec<TypedObject<'o>>) {
    let record = &function.record;
    let typed = |identifier: Option<String>, sql_type: Option<SqlType>| TypedObject {
        schema: &record.schema,
        name: format!("{}_{}", record.name, function.oid()),
        kind: "ROUTINE",
        identifier,
        sql_type,
    };
    for (at, one) in record.declared().iter().enumerate() {
        let sql_type = catalog.stored_type(one.type_oid, -1).ok();
        all.push(typed(Some((at + 1).to_string()), sql_type));
    }
    let result = match &record.returns {
        ReturnRecord::Value(oid) | ReturnRecord::Set(oid) => catalog.stored_type(*oid, -1).ok(),
        ReturnRecord::Table(_) => None,
    };
    all.push(typed((!record.is_procedure()).then(|| "0".to_owned()), result));
}

impl TypedObject<'_> {
    fn object(&self, shape: &RelationDefinition) -> Row {
        shape.row([
            ("object_catalog", text(DATABASE_NAME)),
            ("object_schema", text(self.schema)),
            ("object_name", text(&self.name)),
            ("object_type", text(self.kind)),
        ])
    }

    /// Returns the row of `element_types`, if the type is an array and not a domain over one.
    fn element(&self, shape: &RelationDefinition, objects: &CatalogObjects) -> Option<Row> {
        let identifier = self.identifier.as_ref()?;
        let sql_type = self.sql_type.filter(|one| one.domain.is_none())?;
        let element = SqlType::from(sql_type.base.element()?);
        let (data_type, udt_schema, udt_name) = type_names(objects, element);
        let mut row = self.object(shape);
        let values = [
            ("collection_type_identifier", text(identifier)),
            ("data_type", text(data_type)),
            ("udt_catalog", text(DATABASE_NAME)),
            ("udt_schema", text(udt_schema)),
            ("udt_name", text(udt_name)),
            ("dtd_identifier", text(format!("a{identifier}"))),
        ];
        shape.set(&mut row, values);
        Some(row)
    }
}

/// Returns the rows of `collations` and `collation_character_set_applicability`.
fn collations(shape: &RelationDefinition) -> Vec<Row> {
    let row = |collation: &Collation| {
        shape.row([
            ("collation_catalog", text(DATABASE_NAME)),
            ("collation_schema", text("pg_catalog")),
            ("collation_name", text(collation.name())),
            ("pad_attribute", text("NO PAD")),
            ("character_set_name", text("UTF8")),
        ])
    };
    Collation::ALL.iter().map(row).collect()
}

/// Returns the rows of `column_column_usage`: the columns that generated columns depend on.
fn generated_from(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> Vec<Row> {
    let SystemRelationKind::Table(table) = &relation.kind else { return Vec::new() };
    let mut rows = Vec::new();
    for made in &table.columns {
        let read = made.generated.iter().flat_map(definition::columns_of);
        for read in read.filter_map(|position| table.columns.get(position)) {
            rows.push(shape.row([
                ("table_catalog", text(DATABASE_NAME)),
                ("table_schema", text(objects.namespace(relation.schema))),
                ("table_name", text(&relation.name)),
                ("column_name", text(&read.name)),
                ("dependent_column", text(&made.name)),
            ]));
        }
    }
    rows
}

fn view_columns(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> Vec<Row> {
    let SystemRelationKind::View(view) = &relation.kind else { return Vec::new() };
    let mut rows = Vec::new();
    for read in &view.relations {
        let Some(on) = objects.relation(user_oid(read.oid)) else { continue };
        let used = read.used.iter().filter_map(|at| read.columns.get(*at as usize));
        for name in used.filter(|name| !name.is_empty()) {
            let row = shape.row([
                ("view_catalog", text(DATABASE_NAME)),
                ("view_schema", text(objects.namespace(relation.schema))),
                ("view_name", text(&relation.name)),
                ("table_catalog", text(DATABASE_NAME)),
                ("table_schema", text(objects.namespace(on.schema))),
                ("table_name", text(&on.name)),
                ("column_name", text(name)),
            ]);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    rows
}
