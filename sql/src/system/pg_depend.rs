//! Rows of `pg_depend`.
//!
//! Relations depend on their schemas; defaults, constraints, indexes and owned sequences on their
//! columns; rules on their views and on the relations that the views read. The dependencies that
//! the catalog tracks ([`dependencies`]) follow: types, functions, and the primary keys that a
//! GROUP BY relies on. pg_dump derives its order from these rows.

use std::collections::BTreeSet;

use crate::catalog::extension::PLPGSQL;
use crate::catalog::name;
use crate::catalog::object::Object;
use crate::catalog::standard_function::PHOENIX_SCHEMA;
use crate::catalog::user_type::{OID_OFFSET, UserType};
use crate::catalog::{Catalog, ObjectId};
use crate::ddl::dependencies;
use crate::system::Row;
use crate::system::catalog_objects::{
    AUTHID, CatalogObjects, ConstraintRowKind, DATABASE_CLASS, EXTENSION, ForeignKeyTarget, POLICY,
    SystemRelationKind, TRIGGER, attribute_number, composite_relation_oid, database_oid,
    extension_oid, hashed_oid, role_oid, user_oid,
};
use crate::system::definition;
use crate::system::pg_catalog::{created_extensions, default_oid};
use crate::system::relation_definitions::{BENNU, PG_CATALOG, RelationDefinition};
use crate::system::value::{char, int4, oid};

const CLASS: u32 = 1_259;
const NAMESPACE: u32 = 2_615;
const PROC: u32 = 1_255;
const TYPE: u32 = 1_247;
const ATTRDEF: u32 = 2_604;
const CONSTRAINT: u32 = 2_606;
const REWRITE: u32 = 2_618;

/// The OID of the catalog, the OID of the object and the attribute number.
type ObjectAddress = (u32, u32, i32);

/// Returns the rows of `pg_depend`.
pub(super) fn rows(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    catalog: &Catalog,
) -> Vec<Row> {
    let mut all: Vec<(ObjectAddress, ObjectAddress, char)> = Vec::new();
    of_relations(objects, &mut all);
    of_constraints(objects, &mut all);
    of_triggers(catalog, &mut all);
    of_policies(catalog, &mut all);
    of_composites(catalog, &mut all);
    of_schemas(objects, catalog, &mut all);
    of_bennu(objects, catalog, &mut all);
    for (dependent, on) in dependencies(catalog) {
        let addresses =
            (address_of(&dependent, objects, catalog), address_of(&on, objects, catalog));
        if let (Some(dependent), Some(on)) = addresses {
            all.push((dependent, on, 'n'));
        }
    }
    let row = |((class, object, column), on, kind): (ObjectAddress, ObjectAddress, char)| {
        shape.row([
            ("classid", oid(class)),
            ("objid", oid(object)),
            ("objsubid", int4(column)),
            ("refclassid", oid(on.0)),
            ("refobjid", oid(on.1)),
            ("refobjsubid", int4(on.2)),
            ("deptype", char(kind)),
        ])
    };
    all.into_iter().map(row).collect()
}

fn of_relations(objects: &CatalogObjects, all: &mut Vec<(ObjectAddress, ObjectAddress, char)>) {
    for relation in objects.relations.iter().filter(|relation| relation.is_user()) {
        let itself = (CLASS, relation.oid, 0);
        for column in relation.columns.iter().filter(|column| column.default.is_some()) {
            let default = (ATTRDEF, default_oid(relation.oid, column), 0);
            all.push((default, (CLASS, relation.oid, i32::from(column.number)), 'a'));
            for sequence in &column.sequences {
                all.push((default, (CLASS, user_oid(*sequence), 0), 'n'));
            }
        }
        match &relation.kind {
            SystemRelationKind::Index(table, index)
                if objects.constraint_of_index(relation.oid).is_none() =>
            {
                let keys = definition::index_keys(table, index);
                for key in keys.iter().filter(|key| key.number > 0) {
                    all.push((itself, (CLASS, user_oid(table.oid), i32::from(key.number)), 'a'));
                }
            }
            SystemRelationKind::PrimaryKey(_) | SystemRelationKind::Index(..) => {
                if let Some(constraint) = objects.constraint_of_index(relation.oid) {
                    all.push((itself, (CONSTRAINT, constraint.oid, 0), 'i'));
                }
            }
            SystemRelationKind::View(_) | SystemRelationKind::Materialized(..) => {
                let rule = (REWRITE, hashed_oid(relation.oid, "_RETURN"), 0);
                all.push((rule, itself, 'i'));
                for on in objects.view_dependencies(relation) {
                    all.push((rule, (CLASS, on.oid, 0), 'n'));
                }
            }
            SystemRelationKind::Sequence(sequence) => {
                if let Some((table, column)) = objects.owner(sequence) {
                    let kind = if objects.is_identity(sequence) { 'i' } else { 'a' };
                    all.push((itself, (CLASS, table.oid, i32::from(column.number)), kind));
                }
            }
            SystemRelationKind::Table(_)
            | SystemRelationKind::Composite(_)
            | SystemRelationKind::System(_) => {}
        }
        if matches!(relation.relkind(), 'r' | 'v' | 'm' | 'S') {
            all.push((itself, (NAMESPACE, relation.schema, 0), 'n'));
        }
        let row_type = relation.row_type();
        if row_type != 0 && !matches!(relation.kind, SystemRelationKind::Composite(_)) {
            all.push(((TYPE, row_type, 0), itself, 'i'));
        }
    }
}

fn of_constraints(objects: &CatalogObjects, all: &mut Vec<(ObjectAddress, ObjectAddress, char)>) {
    for constraint in &objects.constraints {
        let itself = (CONSTRAINT, constraint.oid, 0);
        if let ConstraintRowKind::ForeignKey(ForeignKeyTarget { table, columns, index, .. }) =
            &constraint.kind
        {
            for number in columns {
                all.push((itself, (CLASS, *table, i32::from(*number)), 'n'));
            }
            all.push((itself, (CLASS, *index, 0), 'n'));
        }
        for number in &constraint.columns {
            all.push((itself, (CLASS, constraint.table, i32::from(*number)), 'a'));
        }
    }
}

/// Adds the dependencies of triggers on their tables and columns; those on functions are tracked.
fn of_triggers(catalog: &Catalog, all: &mut Vec<(ObjectAddress, ObjectAddress, char)>) {
    for table in catalog.with_triggers() {
        for trigger in &table.triggers {
            let itself = (TRIGGER, user_oid(trigger.record.number), 0);
            all.push((itself, (CLASS, user_oid(table.oid), 0), 'a'));
            let width = table.columns.len();
            for column in (0..width).filter(|column| trigger.reads_column(*column, width)) {
                let number = i32::from(attribute_number(table, column));
                all.push((itself, (CLASS, user_oid(table.oid), number), 'n'));
            }
        }
    }
}

/// Adds the dependencies of policies on their tables, and on the tables, views and columns that
/// their expressions reference; those on functions are tracked.
fn of_policies(catalog: &Catalog, all: &mut Vec<(ObjectAddress, ObjectAddress, char)>) {
    for table in catalog.tables() {
        for policy in &table.row_security.policies {
            let itself = (POLICY, user_oid(policy.record.number), 0);
            all.push((itself, (CLASS, user_oid(table.oid), 0), 'a'));
            let mut used = BTreeSet::new();
            for relation in policy.expressions().flat_map(|query| &query.relations) {
                let of = catalog.table(relation.oid);
                let number = |at: &u32| of.map(|of| attribute_number(of, *at as usize));
                used.extend(
                    relation
                        .used
                        .iter()
                        .filter_map(|at| Some((user_oid(relation.oid), i32::from(number(at)?)))),
                );
                if relation.oid != table.oid && relation.used.is_empty() {
                    used.insert((user_oid(relation.oid), 0));
                }
            }
            all.extend(used.into_iter().map(|(of, at)| (itself, (CLASS, of, at), 'n')));
        }
    }
}

/// Adds the dependency of the `pg_class` row of each composite type on the type.
fn of_composites(catalog: &Catalog, all: &mut Vec<(ObjectAddress, ObjectAddress, char)>) {
    for one in catalog.types().filter(|one| matches!(one.as_ref(), UserType::Composite(_))) {
        let relation = (CLASS, composite_relation_oid(one.number()), 0);
        all.push((relation, (TYPE, one.oid(), 0), 'i'));
    }
}

/// Adds the membership of schema `bennu`, its views and its functions in the extension that is
/// always present, so that pg_dump leaves them out.
fn of_bennu(
    objects: &CatalogObjects,
    catalog: &Catalog,
    all: &mut Vec<(ObjectAddress, ObjectAddress, char)>,
) {
    let views = objects.relations.iter().filter(|relation| relation.schema == BENNU);
    let views = views.map(|relation| (CLASS, relation.oid, 0));
    let extension = (EXTENSION, extension_oid(&PLPGSQL), 0);
    let functions = catalog.functions().filter(|one| one.record.schema == PHOENIX_SCHEMA);
    let functions = functions.map(|one| (PROC, one.oid(), 0));
    let members = views.chain(functions).chain([(NAMESPACE, BENNU, 0)]);
    all.extend(members.map(|member| (member, extension, 'e')));
}

/// Adds the dependencies of types, functions and extensions on their schemas.
fn of_schemas(
    objects: &CatalogObjects,
    catalog: &Catalog,
    all: &mut Vec<(ObjectAddress, ObjectAddress, char)>,
) {
    let types = catalog.types().map(|one| ((TYPE, one.oid(), 0), one.schema()));
    let functions = catalog.functions();
    let functions = functions.map(|one| ((PROC, one.oid(), 0), one.record.schema.as_str()));
    // Schema `pg_catalog` cannot be dropped, so nothing depends on it.
    for (itself, schema) in types.chain(functions).filter(|(_, schema)| *schema != name::PG_CATALOG)
    {
        all.push((itself, (NAMESPACE, objects.schema_oid(schema), 0), 'n'));
    }
    for (extension, schema) in
        created_extensions(catalog).filter(|(_, schema)| *schema != PG_CATALOG)
    {
        all.push(((EXTENSION, extension_oid(extension), 0), (NAMESPACE, schema, 0), 'n'));
    }
}

/// Returns the address of an object of the catalog.
fn address_of(
    object: &Object,
    objects: &CatalogObjects,
    catalog: &Catalog,
) -> Option<ObjectAddress> {
    let number_at = |table: u32, at: usize| {
        let table = catalog.table(table)?;
        Some(i32::from(attribute_number(table, at)))
    };
    Some(match object {
        Object::Whole(ObjectId::Table(number)) | Object::Whole(ObjectId::Sequence(number)) => {
            (CLASS, user_oid(*number), 0)
        }
        Object::Whole(ObjectId::View(number)) => {
            (REWRITE, hashed_oid(user_oid(*number), "_RETURN"), 0)
        }
        Object::Whole(ObjectId::Type(number)) => (TYPE, catalog.user_type(*number)?.oid(), 0),
        Object::Whole(ObjectId::Function(number)) => (PROC, number + OID_OFFSET, 0),
        Object::Whole(ObjectId::Role(number)) => (AUTHID, role_oid(*number), 0),
        Object::Whole(ObjectId::Database(number)) => (DATABASE_CLASS, database_oid(*number), 0),
        Object::Column(table, at) => (CLASS, user_oid(*table), number_at(*table, *at)?),
        Object::Default(table, at) => {
            let relation = objects.relation(user_oid(*table))?;
            let name = &catalog.table(*table)?.columns.get(*at)?.name;
            (ATTRDEF, default_oid(relation.oid, relation.column(name)?), 0)
        }
        Object::Attribute(number, at) => {
            (CLASS, composite_relation_oid(*number), i32::try_from(*at).ok()? + 1)
        }
        Object::Index(table, name) => {
            let relation = objects.relation(user_oid(*table))?;
            let index = objects.relation_named(relation.schema, name)?;
            (CLASS, index.oid, 0)
        }
        Object::Constraint(table, name) => {
            let of_table = |one: &&crate::system::catalog_objects::CatalogConstraint| {
                one.table == user_oid(*table) && one.name == *name
            };
            (CONSTRAINT, objects.constraints.iter().find(of_table)?.oid, 0)
        }
        Object::Trigger(table, name) => {
            let trigger = catalog.table_or_view(*table)?.trigger(name)?;
            (TRIGGER, user_oid(trigger.record.number), 0)
        }
        Object::Policy(table, name) => {
            let policy = catalog.table(*table)?.row_security.policy(name)?;
            (POLICY, user_oid(policy.record.number), 0)
        }
        Object::Whole(ObjectId::Schema(_)) | Object::Extension(_) => return None,
    })
}
