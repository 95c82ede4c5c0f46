//! Rows of `information_schema.view_column_usage` and `column_column_usage`: the columns that views
//! and generated columns read, which `pg_depend` does not have.

use crate::catalog::Catalog;
use crate::system::catalog_objects::{
    CatalogObjects, SystemRelation, SystemRelationKind, user_oid,
};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::text;
use crate::system::{Row, definition};

/// Returns the rows of `column_column_usage`: the columns that generated columns depend on.
pub(super) fn generated_columns(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    catalog: &Catalog,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        let SystemRelationKind::Table(table) = &relation.kind else { continue };
        for made in &table.columns {
            let read = made.generated.iter().flat_map(definition::columns_of);
            for read in read.filter_map(|position| table.columns.get(position)) {
                rows.push(shape.row([
                    ("table_catalog", text(catalog.current_database())),
                    ("table_schema", text(objects.namespace(relation.schema))),
                    ("table_name", text(&relation.name)),
                    ("column_name", text(&read.name)),
                    ("dependent_column", text(&made.name)),
                ]));
            }
        }
    }
    rows
}

/// Returns the rows of `view_column_usage`: the columns that views read.
pub(super) fn view_columns(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    catalog: &Catalog,
) -> Vec<Row> {
    let columns = |one| columns_of_view(shape, (objects, catalog), one);
    objects.relations.iter().flat_map(columns).collect()
}

fn columns_of_view(
    shape: &RelationDefinition,
    (objects, catalog): (&CatalogObjects, &Catalog),
    relation: &SystemRelation,
) -> Vec<Row> {
    let SystemRelationKind::View(view) = &relation.kind else { return Vec::new() };
    let mut rows = Vec::new();
    for read in &view.relations {
        let Some(on) = objects.relation(user_oid(read.oid)) else { continue };
        let used = read.used.iter().filter_map(|at| read.columns.get(*at as usize));
        for name in used.filter(|name| !name.is_empty()) {
            let row = shape.row([
                ("view_catalog", text(catalog.current_database())),
                ("view_schema", text(objects.namespace(relation.schema))),
                ("view_name", text(&relation.name)),
                ("table_catalog", text(catalog.current_database())),
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
