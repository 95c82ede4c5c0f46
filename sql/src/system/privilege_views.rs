//! Privilege views of `information_schema`, such as `table_privileges` and `routine_privileges`.
//!
//! There are no access control lists. All objects have the privileges that PostgreSQL gives by
//! default: the owner has all, PUBLIC may use types, execute functions and read system catalogs.

use types::Datum;

use crate::catalog::Catalog;
use crate::catalog::domain::DomainRecord;
use crate::catalog::function::Function;
use crate::system::Row;
use crate::system::catalog_objects::{
    CatalogObjects, DATABASE_NAME, OWNER_NAME, SystemRelation, SystemRelationKind,
};
use crate::system::information_schema::{is_table, is_view};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{text, yes_or_no};

const EVERYBODY: &str = "PUBLIC";

/// Returns the rows of a view; `None` if it is not one of these.
pub(super) fn rows(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    catalog: &Catalog,
) -> Option<Vec<Row>> {
    let relations = || objects.relations.iter().filter(|one| is_table(one) || is_view(one));
    Some(match shape.name {
        "table_privileges" | "role_table_grants" => {
            relations().flat_map(|one| of_relation(shape, objects, one)).collect()
        }
        "column_privileges" | "role_column_grants" => {
            relations().flat_map(|one| of_columns(shape, objects, one)).collect()
        }
        "routine_privileges" | "role_routine_grants" => {
            catalog.functions().flat_map(|one| of_function(shape, one)).collect()
        }
        "udt_privileges" | "role_udt_grants" => {
            let with_rows = |one: &&SystemRelation| {
                matches!(
                    one.kind,
                    SystemRelationKind::Composite(_)
                        | SystemRelationKind::Table(_)
                        | SystemRelationKind::View(_)
                ) || matches!(one.kind, SystemRelationKind::Materialized(..))
            };
            let composites = objects.relations.iter().filter(with_rows);
            composites.flat_map(|one| of_row_type(shape, objects, one)).collect()
        }
        "usage_privileges" | "role_usage_grants" => {
            objects.domains.iter().flat_map(|one| of_domain(shape, &one.record)).collect()
        }
        _ => return None,
    })
}

/// Returns two rows of a privilege: the owner with grant option, and PUBLIC.
fn for_all(row: Row, shape: &RelationDefinition, privilege: &str) -> [Row; 2] {
    let to = |grantee: &str, is_grantable: bool| {
        let mut row = row.clone();
        let values = [
            ("grantor", text(OWNER_NAME)),
            ("grantee", text(grantee)),
            ("privilege_type", text(privilege)),
            ("is_grantable", yes_or_no(is_grantable)),
        ];
        shape.set(&mut row, values);
        row
    };
    [to(OWNER_NAME, true), to(EVERYBODY, false)]
}

/// Returns the privileges on a relation, and their grantee.
fn granted(
    relation: &SystemRelation,
    all: &'static [&'static str],
) -> (&'static [&'static str], &'static str) {
    match relation.kind {
        SystemRelationKind::System(_) => (&["SELECT"], EVERYBODY),
        _ => (all, OWNER_NAME),
    }
}

fn of_relation(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> Vec<Row> {
    const ALL: &[&str] =
        &["INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];
    let (privileges, grantee) = granted(relation, ALL);
    let row = |privilege: &&str| {
        let mut row = of_table(shape, objects, relation, (privilege, grantee));
        shape.set(&mut row, [("with_hierarchy", yes_or_no(*privilege == "SELECT"))]);
        row
    };
    privileges.iter().map(row).collect()
}

fn of_columns(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> Vec<Row> {
    let (privileges, grantee) = granted(relation, &["INSERT", "SELECT", "UPDATE", "REFERENCES"]);
    let mut rows = Vec::new();
    for privilege in privileges {
        for column in &relation.columns {
            let mut row = of_table(shape, objects, relation, (privilege, grantee));
            shape.set(&mut row, [("column_name", text(&column.name))]);
            rows.push(row);
        }
    }
    rows
}

fn of_table(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
    (privilege, grantee): (&str, &str),
) -> Row {
    shape.row([
        ("grantor", text(OWNER_NAME)),
        ("grantee", text(grantee)),
        ("table_catalog", text(DATABASE_NAME)),
        ("table_schema", text(objects.namespace(relation.schema))),
        ("table_name", text(&relation.name)),
        ("privilege_type", text(privilege)),
        ("is_grantable", yes_or_no(grantee == OWNER_NAME)),
    ])
}

fn of_function(shape: &RelationDefinition, function: &Function) -> [Row; 2] {
    let record = &function.record;
    let row = shape.row([
        ("specific_catalog", text(DATABASE_NAME)),
        ("specific_schema", text(&record.schema)),
        ("specific_name", text(format!("{}_{}", record.name, function.oid()))),
        ("routine_catalog", text(DATABASE_NAME)),
        ("routine_schema", text(&record.schema)),
        ("routine_name", text(&record.name)),
    ]);
    for_all(row, shape, "EXECUTE")
}

fn of_row_type(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> [Row; 2] {
    let row = shape.row([
        ("udt_catalog", text(DATABASE_NAME)),
        ("udt_schema", text(objects.namespace(relation.schema))),
        ("udt_name", text(&relation.name)),
    ]);
    for_all(row, shape, "TYPE USAGE")
}

fn of_domain(shape: &RelationDefinition, record: &DomainRecord) -> [Row; 2] {
    let object: [(&str, Datum); 4] = [
        ("object_catalog", text(DATABASE_NAME)),
        ("object_schema", text(&record.schema)),
        ("object_name", text(&record.name)),
        ("object_type", text("DOMAIN")),
    ];
    for_all(shape.row(object), shape, "USAGE")
}
