//! Rows of the views of `information_schema`, as in the SQL standard and PostgreSQL.
//!
//! Modules [`grants`], [`usage`] and [`type_modifier_columns`] have the views of privileges, of
//! type usage and the columns of type modifiers.
//!
//! [`grants`]: crate::system::privilege_views
//! [`usage`]: crate::system::usage
//! [`type_modifier_columns`]: crate::system::type_modifier_columns

use types::{DataType, Datum, SqlType};

use crate::ast::{Collation, Deferral};
use crate::catalog::Catalog;
use crate::catalog::domain::Domain;
use crate::catalog::name::is_temporary;
use crate::catalog::record::IdentityRecord;
use crate::deparse::{DeparseContext, Layout};
use crate::system::catalog_objects::{
    Attribute, CatalogConstraint, CatalogObjects, ConstraintRowKind, DATABASE_NAME,
    ForeignKeyTarget, OWNER_NAME, SystemRelation, SystemRelationKind,
};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::updatable::Updatable;
use crate::system::value::{int4, text, text_or_null, yes_or_no};
use crate::system::views::DefinitionContext;
use crate::system::{
    Row, definition, privilege_views, type_modifier_columns, usage, user_functions,
};

/// Returns the rows of `views`.
pub(super) fn views(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    viewer: &DefinitionContext<'_>,
) -> Vec<Row> {
    objects.relations.iter().filter_map(|one| view(shape, (objects, viewer), one)).collect()
}

/// Returns the rows of a view that depends on nothing but the catalog and the search path of
/// `reader`; `None` if it is always empty.
pub(super) fn rows(
    shape: &RelationDefinition,
    reader: DeparseContext<'_>,
    objects: &CatalogObjects,
) -> Option<Vec<Row>> {
    let catalog = reader.catalog;
    let relations = objects.relations.iter();
    let constraints = objects.constraints.iter();
    Some(match shape.name {
        "information_schema_catalog_name" => {
            vec![shape.row([("catalog_name", text(DATABASE_NAME))])]
        }
        "schemata" => objects.namespaces.iter().map(|one| schema(shape, &one.name)).collect(),
        "tables" => relations.filter_map(|one| table(shape, (objects, catalog), one)).collect(),
        "columns" => relations.flat_map(|one| columns(shape, (objects, reader), one)).collect(),
        "view_table_usage" => relations.flat_map(|one| view_tables(shape, objects, one)).collect(),
        "sequences" => relations.filter_map(|one| sequence(shape, objects, one)).collect(),
        "table_constraints" => {
            let not_null = relations.flat_map(|one| not_nulls(objects, one));
            let named = constraints.filter(|one| one.table != 0);
            let named = named.map(|one| table_constraint(shape, objects, one));
            let not_null = not_null.map(|one| one.table_constraint(shape));
            named.chain(not_null).collect()
        }
        "key_column_usage" => {
            let keys =
                constraints.filter(|one| !matches!(one.kind, ConstraintRowKind::Check { .. }));
            keys.flat_map(|one| key_columns(shape, objects, one)).collect()
        }
        "constraint_column_usage" => {
            constraints.flat_map(|one| used_columns(shape, objects, one)).collect()
        }
        "constraint_table_usage" => {
            let keys =
                constraints.filter(|one| !matches!(one.kind, ConstraintRowKind::Check { .. }));
            keys.map(|one| used_table(shape, objects, one)).collect()
        }
        "referential_constraints" => {
            constraints.filter_map(|one| referential(shape, objects, one)).collect()
        }
        "check_constraints" => {
            let not_null = relations.flat_map(|one| not_nulls(objects, one));
            let named = constraints.filter_map(|one| check(shape, (objects, reader), one));
            named.chain(not_null.map(|one| one.check(shape))).collect()
        }
        "routines" => {
            let of_users = catalog.functions();
            of_users.map(|one| user_functions::routine(shape, objects, one)).collect()
        }
        "parameters" => {
            let of_users = catalog.functions();
            of_users
                .flat_map(|one| user_functions::parameters(shape, reader, objects, one))
                .collect()
        }
        "enabled_roles" => vec![shape.row([("role_name", text(OWNER_NAME))])],
        "character_sets" => vec![shape.row([
            ("character_set_name", text("UTF8")),
            ("character_repertoire", text("UCS")),
            ("form_of_use", text("UTF8")),
            ("default_collate_catalog", text(DATABASE_NAME)),
        ])],
        _ => return of_types(shape, (objects, reader)),
    })
}

/// Returns the rows of a view that describes types.
fn of_types(
    shape: &RelationDefinition,
    (objects, reader): (&CatalogObjects, DeparseContext<'_>),
) -> Option<Vec<Row>> {
    let relations = objects.relations.iter();
    let constraints = objects.constraints.iter();
    Some(match shape.name {
        "domains" => {
            let domains = objects.domains.iter();
            domains.map(|one| domain(shape, (objects, reader), one)).collect()
        }
        "domain_constraints" => {
            constraints.filter_map(|one| domain_constraint(shape, objects, one)).collect()
        }
        "attributes" => {
            let composites =
                relations.filter(|one| matches!(one.kind, SystemRelationKind::Composite(_)));
            let row = |one: &SystemRelation| {
                let columns = one.columns.iter();
                columns.map(|of| attribute(shape, objects, one, of)).collect::<Vec<Row>>()
            };
            composites.flat_map(row).collect()
        }
        "user_defined_types" => {
            let composites =
                relations.filter(|one| matches!(one.kind, SystemRelationKind::Composite(_)));
            let row = |one: &SystemRelation| {
                shape.row([
                    ("user_defined_type_catalog", text(DATABASE_NAME)),
                    ("user_defined_type_schema", text(objects.namespace(one.schema))),
                    ("user_defined_type_name", text(&one.name)),
                    ("user_defined_type_category", text("STRUCTURED")),
                    ("is_instantiable", yes_or_no(true)),
                ])
            };
            composites.map(row).collect()
        }
        "column_domain_usage" => {
            relations.flat_map(|one| domain_columns(shape, objects, one)).collect()
        }
        _ => {
            let grants = privilege_views::rows(shape, objects, reader.catalog);
            return grants.or_else(|| usage::rows(shape, objects, reader.catalog));
        }
    })
}

fn schema(shape: &RelationDefinition, name: &str) -> Row {
    shape.row([
        ("catalog_name", text(DATABASE_NAME)),
        ("schema_name", text(name)),
        ("schema_owner", text(OWNER_NAME)),
    ])
}

pub(super) fn is_table(relation: &SystemRelation) -> bool {
    match &relation.kind {
        SystemRelationKind::Table(_) => true,
        SystemRelationKind::System(shape) => shape.is_table,
        _ => false,
    }
}

pub(super) fn is_view(relation: &SystemRelation) -> bool {
    relation.relkind() == 'v'
}

fn table(
    shape: &RelationDefinition,
    (objects, catalog): (&CatalogObjects, &Catalog),
    relation: &SystemRelation,
) -> Option<Row> {
    let kind = match () {
        () if is_temporary(objects.namespace(relation.schema)) && is_table(relation) => {
            "LOCAL TEMPORARY"
        }
        () if is_table(relation) => "BASE TABLE",
        () if is_view(relation) => "VIEW",
        () => return None,
    };
    let insertable = Updatable::of(catalog, relation).is_insertable();
    Some(shape.row([
        ("table_catalog", text(DATABASE_NAME)),
        ("table_schema", text(objects.namespace(relation.schema))),
        ("table_name", text(&relation.name)),
        ("table_type", text(kind)),
        ("is_insertable_into", yes_or_no(insertable)),
        ("is_typed", yes_or_no(false)),
    ]))
}

/// Returns the `data_type` of the standard for a type, and the type's schema and name.
pub(super) fn type_names(objects: &CatalogObjects, sql_type: SqlType) -> (&str, &str, &str) {
    if let Some(domain) = sql_type.domain.and_then(|oid| objects.domain(oid)) {
        return ("USER-DEFINED", &domain.record.schema, &domain.record.name);
    }
    if let Some(array) = sql_type.domain.and_then(|oid| objects.array_of_domain(oid)) {
        return ("ARRAY", &array.record.schema, &array.record.name);
    }
    let base = sql_type.base;
    let data_type = match base {
        DataType::Array(_) => "ARRAY",
        DataType::Enum(_) | DataType::Composite(_) => "USER-DEFINED",
        other => other.sql_name(),
    };
    let schema = match base.element().unwrap_or(base) {
        DataType::Enum(of) => &of.definition().schema,
        DataType::Composite(of) => &of.definition().schema,
        _ => "pg_catalog",
    };
    (data_type, schema, base.internal_name())
}

fn domain(
    shape: &RelationDefinition,
    (objects, reader): (&CatalogObjects, DeparseContext<'_>),
    domain: &Domain,
) -> Row {
    let default = domain.record.default.as_ref();
    let default = default.map(|text| definition::default(text, domain, reader));
    let (data_type, udt_schema, udt_name) = type_names(objects, domain.base_type);
    // PostgreSQL shows ARRAY for columns only.
    let data_type = if data_type == "ARRAY" { domain.base_type.base.sql_name() } else { data_type };
    let mut row = shape.row([
        ("domain_catalog", text(DATABASE_NAME)),
        ("domain_schema", text(&domain.record.schema)),
        ("domain_name", text(&domain.record.name)),
        ("data_type", text(data_type)),
        ("domain_default", text_or_null(default)),
        ("udt_catalog", text(DATABASE_NAME)),
        ("udt_schema", text(udt_schema)),
        ("udt_name", text(udt_name)),
        ("dtd_identifier", text("1")),
    ]);
    type_modifier_columns::set(shape, &mut row, domain.base_type);
    shape.set(&mut row, collation_columns(domain.collation));
    row
}

fn domain_constraint(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
) -> Option<Row> {
    let domain = objects.domain(constraint.domain)?;
    Some(shape.row([
        ("constraint_catalog", text(DATABASE_NAME)),
        ("constraint_schema", text(objects.namespace(constraint.schema))),
        ("constraint_name", text(&constraint.name)),
        ("domain_catalog", text(DATABASE_NAME)),
        ("domain_schema", text(&domain.record.schema)),
        ("domain_name", text(&domain.record.name)),
        ("is_deferrable", yes_or_no(false)),
        ("initially_deferred", yes_or_no(false)),
    ]))
}

fn domain_columns(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> Vec<Row> {
    if !is_table(relation) && !is_view(relation) {
        return Vec::new();
    }
    let row = |column: &Attribute| {
        let domain = objects.domain(column.sql_type.domain?)?;
        Some(shape.row([
            ("domain_catalog", text(DATABASE_NAME)),
            ("domain_schema", text(&domain.record.schema)),
            ("domain_name", text(&domain.record.name)),
            ("table_catalog", text(DATABASE_NAME)),
            ("table_schema", text(objects.namespace(relation.schema))),
            ("table_name", text(&relation.name)),
            ("column_name", text(&column.name)),
        ]))
    };
    relation.columns.iter().filter_map(row).collect()
}

fn columns(
    shape: &RelationDefinition,
    (objects, reader): (&CatalogObjects, DeparseContext<'_>),
    relation: &SystemRelation,
) -> Vec<Row> {
    if !is_table(relation) && !is_view(relation) {
        return Vec::new();
    }
    let updatable = Updatable::of(reader.catalog, relation);
    let row = |one: &Attribute| {
        let mut row = column(shape, objects, relation, one);
        let default = one.default.as_ref().map(|text| {
            let layout = Layout::QUERY;
            definition::shown_expression(text, Some(relation), reader, layout)
        });
        let name = if one.is_generated { "generation_expression" } else { "column_default" };
        shape.set(&mut row, [(name, text_or_null(default))]);
        let is_updatable = updatable.has_column(i64::from(one.number));
        shape.set(&mut row, [("is_updatable", yes_or_no(is_updatable))]);
        row
    };
    relation.columns.iter().map(row).collect()
}

fn attribute(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    composite: &SystemRelation,
    one: &Attribute,
) -> Row {
    let domain = one.sql_type.domain.and_then(|oid| objects.domain(oid));
    let over = domain.map_or(one.sql_type, |domain| domain.base_type);
    let (data_type, udt_schema, udt_name) = type_names(objects, over);
    let mut row = shape.row([
        ("udt_catalog", text(DATABASE_NAME)),
        ("udt_schema", text(objects.namespace(composite.schema))),
        ("udt_name", text(&composite.name)),
        ("attribute_name", text(&one.name)),
        ("ordinal_position", int4(one.number)),
        ("is_nullable", yes_or_no(true)),
        ("data_type", text(data_type)),
        ("attribute_udt_catalog", text(DATABASE_NAME)),
        ("attribute_udt_schema", text(udt_schema)),
        ("attribute_udt_name", text(udt_name)),
        ("dtd_identifier", text(one.number.to_string())),
        ("is_derived_reference_attribute", yes_or_no(false)),
    ]);
    type_modifier_columns::set(shape, &mut row, over);
    shape.set(&mut row, collation_columns(one.collation));
    row
}

/// Returns the columns of a collation; NULL for the database's default.
fn collation_columns(collation: Option<Collation>) -> [(&'static str, Datum); 3] {
    let shown = collation.filter(|collation| *collation != Collation::Default);
    [
        ("collation_catalog", text_or_null(shown.map(|_| DATABASE_NAME))),
        ("collation_schema", text_or_null(shown.map(|_| "pg_catalog"))),
        ("collation_name", text_or_null(shown.map(Collation::name))),
    ]
}

fn column(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
    column: &Attribute,
) -> Row {
    let domain = column.sql_type.domain.and_then(|oid| objects.domain(oid));
    let over = domain.map_or(column.sql_type, |domain| domain.base_type);
    let refuses_null = domain.is_some_and(|domain| domain.record.not_null);
    let (data_type, udt_schema, udt_name) = type_names(objects, over);
    let identity = column.identity.map(|identity| match identity {
        IdentityRecord::Always => "ALWAYS",
        IdentityRecord::ByDefault => "BY DEFAULT",
    });
    let mut row = shape.row([
        ("table_catalog", text(DATABASE_NAME)),
        ("table_schema", text(objects.namespace(relation.schema))),
        ("table_name", text(&relation.name)),
        ("column_name", text(&column.name)),
        ("ordinal_position", int4(column.number)),
        ("is_nullable", yes_or_no(!column.not_null && !refuses_null)),
        ("data_type", text(data_type)),
        ("udt_catalog", text(DATABASE_NAME)),
        ("udt_schema", text(udt_schema)),
        ("udt_name", text(udt_name)),
        ("domain_catalog", text_or_null(domain.map(|_| DATABASE_NAME))),
        ("domain_schema", text_or_null(domain.map(|domain| &domain.record.schema))),
        ("domain_name", text_or_null(domain.map(|domain| &domain.record.name))),
        ("dtd_identifier", text(column.number.to_string())),
        ("is_self_referencing", yes_or_no(false)),
        ("is_identity", yes_or_no(identity.is_some())),
        ("identity_generation", text_or_null(identity)),
        ("identity_cycle", yes_or_no(false)),
        ("is_generated", text(if column.is_generated { "ALWAYS" } else { "NEVER" })),
    ]);
    type_modifier_columns::set(shape, &mut row, over);
    shape.set(&mut row, collation_columns(column.collation));
    if identity.is_some()
        && let Some(sequence) = objects.sequence_of(relation.oid, column)
    {
        let values = [
            ("identity_start", text(sequence.start.to_string())),
            ("identity_increment", text(sequence.increment.to_string())),
            ("identity_maximum", text(sequence.max.to_string())),
            ("identity_minimum", text(sequence.min.to_string())),
            ("identity_cycle", yes_or_no(sequence.cycle)),
        ];
        shape.set(&mut row, values);
    }
    row
}

fn view(
    shape: &RelationDefinition,
    (objects, viewer): (&CatalogObjects, &DefinitionContext<'_>),
    relation: &SystemRelation,
) -> Option<Row> {
    let no = || yes_or_no(false);
    is_view(relation).then(|| {
        let updatable = Updatable::of(viewer.catalog, relation);
        let definition = definition::view(relation, viewer, Layout::QUERY);
        shape.row([
            ("table_catalog", text(DATABASE_NAME)),
            ("table_schema", text(objects.namespace(relation.schema))),
            ("table_name", text(&relation.name)),
            ("view_definition", text_or_null(definition)),
            ("check_option", text(definition::check_option(relation).unwrap_or("NONE"))),
            ("is_updatable", yes_or_no(updatable.is_updatable())),
            ("is_insertable_into", yes_or_no(updatable.is_insertable())),
            ("is_trigger_updatable", no()),
            ("is_trigger_deletable", no()),
            ("is_trigger_insertable_into", no()),
        ])
    })
}

fn view_tables(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> Vec<Row> {
    let row = |on: &SystemRelation| {
        shape.row([
            ("view_catalog", text(DATABASE_NAME)),
            ("view_schema", text(objects.namespace(relation.schema))),
            ("view_name", text(&relation.name)),
            ("table_catalog", text(DATABASE_NAME)),
            ("table_schema", text(objects.namespace(on.schema))),
            ("table_name", text(&on.name)),
        ])
    };
    objects.view_dependencies(relation).map(row).collect()
}

fn sequence(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> Option<Row> {
    let SystemRelationKind::Sequence(sequence) = &relation.kind else { return None };
    if objects.is_identity(sequence) {
        return None;
    }
    let data_type = DataType::from_oid(sequence.type_oid).unwrap_or(DataType::Int8);
    let [precision, radix, scale] = type_modifier_columns::number(data_type, -1);
    Some(shape.row([
        ("sequence_catalog", text(DATABASE_NAME)),
        ("sequence_schema", text(objects.namespace(relation.schema))),
        ("sequence_name", text(&relation.name)),
        ("data_type", text(data_type.sql_name())),
        ("numeric_precision", precision),
        ("numeric_precision_radix", radix),
        ("numeric_scale", scale),
        ("start_value", text(sequence.start.to_string())),
        ("minimum_value", text(sequence.min.to_string())),
        ("maximum_value", text(sequence.max.to_string())),
        ("increment", text(sequence.increment.to_string())),
        ("cycle_option", yes_or_no(sequence.cycle)),
    ]))
}

/// NOT NULL of a column, which the standard represents as a CHECK constraint.
struct NotNullConstraint<'o> {
    schema: &'o str,
    table: &'o SystemRelation,
    column: &'o Attribute,
}

fn not_nulls<'o>(
    objects: &'o CatalogObjects,
    relation: &'o SystemRelation,
) -> Vec<NotNullConstraint<'o>> {
    if !matches!(relation.kind, SystemRelationKind::Table(_)) {
        return Vec::new();
    }
    let schema = objects.namespace(relation.schema);
    let columns = relation.columns.iter().filter(|column| column.not_null);
    columns.map(|column| NotNullConstraint { schema, table: relation, column }).collect()
}

impl NotNullConstraint<'_> {
    /// Returns the name that PostgreSQL generates for it; the OIDs make it unique.
    fn name(&self) -> String {
        let NotNullConstraint { table, column, .. } = self;
        format!("{}_{}_{}_not_null", table.schema, table.oid, column.number)
    }

    fn table_constraint(&self, shape: &RelationDefinition) -> Row {
        shape.row([
            ("constraint_catalog", text(DATABASE_NAME)),
            ("constraint_schema", text(self.schema)),
            ("constraint_name", text(self.name())),
            ("table_catalog", text(DATABASE_NAME)),
            ("table_schema", text(self.schema)),
            ("table_name", text(&self.table.name)),
            ("constraint_type", text("CHECK")),
            ("is_deferrable", yes_or_no(false)),
            ("initially_deferred", yes_or_no(false)),
            ("enforced", yes_or_no(true)),
        ])
    }

    fn check(&self, shape: &RelationDefinition) -> Row {
        shape.row([
            ("constraint_catalog", text(DATABASE_NAME)),
            ("constraint_schema", text(self.schema)),
            ("constraint_name", text(self.name())),
            ("check_clause", text(format!("{} IS NOT NULL", self.column.name))),
        ])
    }
}

fn table_constraint(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
) -> Row {
    let schema = || text(objects.namespace(constraint.schema));
    let (kind, nulls) = match &constraint.kind {
        ConstraintRowKind::Check { .. } => ("CHECK", Datum::Null),
        ConstraintRowKind::PrimaryKey(_) => ("PRIMARY KEY", Datum::Null),
        ConstraintRowKind::Unique(index) => {
            let index = objects.relation(*index);
            ("UNIQUE", yes_or_no(!index.is_some_and(definition::nulls_not_distinct)))
        }
        ConstraintRowKind::ForeignKey(_) => ("FOREIGN KEY", Datum::Null),
    };
    let deferral = definition::constraint_deferral(objects, constraint);
    shape.row([
        ("constraint_catalog", text(DATABASE_NAME)),
        ("constraint_schema", schema()),
        ("constraint_name", text(&constraint.name)),
        ("table_catalog", text(DATABASE_NAME)),
        ("table_schema", schema()),
        ("table_name", table_name(objects, constraint)),
        ("constraint_type", text(kind)),
        ("is_deferrable", yes_or_no(deferral != Deferral::Never)),
        ("initially_deferred", yes_or_no(deferral == Deferral::Deferred)),
        ("enforced", yes_or_no(true)),
        ("nulls_distinct", nulls),
    ])
}

fn table_name(objects: &CatalogObjects, constraint: &CatalogConstraint) -> Datum {
    text_or_null(objects.relation(constraint.table).map(|table| &table.name))
}

/// Returns the names of the columns of a constraint, in its order.
fn column_names(objects: &CatalogObjects, constraint: &CatalogConstraint) -> Vec<String> {
    let table = objects.relation(constraint.table);
    let name = |number: &i16| {
        let column = table?.columns.iter().find(|column| column.number == *number)?;
        Some(column.name.clone())
    };
    constraint.columns.iter().filter_map(name).collect()
}

fn key_columns(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
) -> Vec<Row> {
    let schema = || text(objects.namespace(constraint.schema));
    let row = |(position, name): (usize, String)| {
        shape.row([
            ("constraint_catalog", text(DATABASE_NAME)),
            ("constraint_schema", schema()),
            ("constraint_name", text(&constraint.name)),
            ("table_catalog", text(DATABASE_NAME)),
            ("table_schema", schema()),
            ("table_name", table_name(objects, constraint)),
            ("column_name", text(name)),
            ("ordinal_position", int4(position + 1)),
            ("position_in_unique_constraint", position_there(objects, constraint, position)),
        ])
    };
    column_names(objects, constraint).into_iter().enumerate().map(row).collect()
}

/// Returns the position, in the referenced unique constraint, of the column that a column of a
/// foreign key references.
fn position_there(
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
    position: usize,
) -> Datum {
    let ConstraintRowKind::ForeignKey(key) = &constraint.kind else { return Datum::Null };
    let unique = objects.constraint_of_index(key.index);
    let there = unique
        .zip(key.columns.get(position))
        .and_then(|(unique, number)| unique.columns.iter().position(|one| one == number));
    there.map_or(Datum::Null, |there| int4(there + 1))
}

/// Returns the table and the columns that a constraint uses: those referenced for a foreign key,
/// else its own.
fn used<'o>(
    objects: &'o CatalogObjects,
    constraint: &'o CatalogConstraint,
) -> (Option<&'o SystemRelation>, &'o [i16]) {
    match &constraint.kind {
        ConstraintRowKind::ForeignKey(key) => (objects.relation(key.table), &key.columns),
        _ => (objects.relation(constraint.table), &constraint.columns),
    }
}

fn used_columns(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
) -> Vec<Row> {
    let (Some(table), numbers) = used(objects, constraint) else { return Vec::new() };
    let named = |number: &i16| table.columns.iter().find(|column| column.number == *number);
    let row = |column: &Attribute| {
        shape.row([
            ("table_catalog", text(DATABASE_NAME)),
            ("table_schema", text(objects.namespace(table.schema))),
            ("table_name", text(&table.name)),
            ("column_name", text(&column.name)),
            ("constraint_catalog", text(DATABASE_NAME)),
            ("constraint_schema", text(objects.namespace(constraint.schema))),
            ("constraint_name", text(&constraint.name)),
        ])
    };
    numbers.iter().filter_map(named).map(row).collect()
}

fn used_table(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
) -> Row {
    let table = used(objects, constraint).0;
    shape.row([
        ("table_catalog", text(DATABASE_NAME)),
        ("table_schema", text_or_null(table.map(|table| objects.namespace(table.schema)))),
        ("table_name", text_or_null(table.map(|table| &table.name))),
        ("constraint_catalog", text(DATABASE_NAME)),
        ("constraint_schema", text(objects.namespace(constraint.schema))),
        ("constraint_name", text(&constraint.name)),
    ])
}

fn referential(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
) -> Option<Row> {
    let ConstraintRowKind::ForeignKey(ForeignKeyTarget { index, key, .. }) = &constraint.kind
    else {
        return None;
    };
    let unique = objects.constraint_of_index(*index);
    Some(shape.row([
        ("constraint_catalog", text(DATABASE_NAME)),
        ("constraint_schema", text(objects.namespace(constraint.schema))),
        ("constraint_name", text(&constraint.name)),
        ("unique_constraint_catalog", text_or_null(unique.map(|_| DATABASE_NAME))),
        (
            "unique_constraint_schema",
            text_or_null(unique.map(|unique| objects.namespace(unique.schema))),
        ),
        ("unique_constraint_name", text_or_null(unique.map(|unique| &unique.name))),
        ("match_option", text(if key.match_full { "FULL" } else { "NONE" })),
        ("update_rule", text(definition::action_words(key.on_update))),
        ("delete_rule", text(definition::action_words(key.on_delete))),
    ]))
}

fn check(
    shape: &RelationDefinition,
    (objects, reader): (&CatalogObjects, DeparseContext<'_>),
    constraint: &CatalogConstraint,
) -> Option<Row> {
    let ConstraintRowKind::Check { text: clause } = &constraint.kind else { return None };
    let shown = (reader, Layout::QUERY);
    let clause = definition::check(clause, objects, constraint, shown);
    Some(shape.row([
        ("constraint_catalog", text(DATABASE_NAME)),
        ("constraint_schema", text(objects.namespace(constraint.schema))),
        ("constraint_name", text(&constraint.name)),
        ("check_clause", text(format!("({clause})"))),
    ]))
}
