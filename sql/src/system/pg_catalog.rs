//! Rows of the tables of `pg_catalog`, computed from the catalog.
//!
//! A table that is not listed in [`rows`] is empty, since there are no such objects:
//! policies, partitions and so on.

use std::sync::Arc;

use types::{DataType, Datum};

use crate::ast::{Collation, Deferral, IndexMethod, ReferentialAction, StorageKind};
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege::SELECT;
use crate::catalog::access::role::{MembershipRecord, RoleRecord};
use crate::catalog::database::DatabaseRecord;
use crate::catalog::domain::Domain;
use crate::catalog::extension::{EXTENSIONS, Extension};
use crate::catalog::ignored_attributes::{IgnoredColumnAttributes, Parameter, ReplicaIdentity};
use crate::catalog::name;
use crate::catalog::policy::RowSecurityMode;
use crate::catalog::record::{IdentityRecord, IndexRecord};
use crate::catalog::schema::PUBLIC_OID;
use crate::catalog::sequence::Sequence;
use crate::catalog::table::{Index, IndexState, Table};
use crate::catalog::user_type::UserType;
use crate::catalog::{Catalog, collation};
use crate::deparse::DeparseContext;
use crate::storage_options;
use crate::system::catalog_objects::{
    AUTHID, Attribute, CatalogConstraint, CatalogObjects, ConstraintRowKind, DATABASE_CLASS,
    ForeignKeyTarget, OWNER, SystemRelation, SystemRelationKind, acl_list, acl_of,
    composite_relation_oid, database_oid, extension_oid, hashed_oid, owner_oid, role_oid,
    schema_oid_of, subject_of, user_oid,
};
use crate::system::definition;
use crate::system::pg_type::{self, TypeFacts};
use crate::system::privileges;
use crate::system::pseudo_types;
use crate::system::relation_definitions::{PG_CATALOG, RelationDefinition};
use crate::system::value::{array, char, int2, int4, int8, oid, text, text_or_null, vector};
use crate::system::{
    Row, constants, pg_cast, pg_depend, pg_opclass, pg_proc, pg_trigger, usage, user_functions,
};

/// OID of access method `heap`.
pub(super) const HEAP: u32 = 2;
/// OID of access method `btree`.
pub(super) const BTREE: u32 = 403;
/// OID of access method `hash`; hash indexes are stored ordered, as `btree` ones are.
pub(super) const HASH: u32 = 405;
/// OID of access method `gin`.
const GIN: u32 = 2_742;
/// OID of tablespace `pg_default`.
pub(super) const TABLESPACE: u32 = 1_663;
/// `pg_index.indoption`: descending order.
const DESCENDING: i16 = 1;
/// `pg_index.indoption`: NULLS FIRST.
const NULLS_FIRST: i16 = 2;
/// Returns the rows of a table; `None` if it is always empty.
pub(super) fn rows(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    catalog: &Catalog,
) -> Option<Vec<Row>> {
    Some(match shape.name {
        "pg_class" => {
            let row = |relation| class(shape, relation, (objects, catalog), false);
            objects.relations.iter().map(row).collect()
        }
        "pg_attribute" => attributes(shape, objects, catalog),
        "pg_attrdef" => attribute_defaults(shape, objects),
        "pg_namespace" => namespaces(shape, objects, catalog),
        "pg_type" => types(shape, catalog, objects),
        "pg_enum" => labels(shape, catalog),
        "pg_index" => {
            objects.relations.iter().filter_map(|one| index(shape, one, catalog)).collect()
        }
        "pg_constraint" => {
            objects.constraints.iter().map(|one| constraint(shape, objects, one)).collect()
        }
        "pg_proc" => {
            let mut rows = pg_proc::functions(shape);
            let of_users = catalog.functions();
            rows.extend(of_users.map(|one| user_functions::row(shape, (objects, catalog), one)));
            rows
        }
        "pg_cast" => pg_cast::rows(shape),
        "pg_amop" => pg_opclass::operators(shape),
        "pg_operator" => pg_proc::operators(shape),
        "pg_database" => catalog.databases().map(|one| database(shape, catalog, one)).collect(),
        "pg_default_acl" => privileges::future_privileges(shape, catalog),
        "pg_db_role_setting" => stored_settings(shape, catalog),
        "pg_sequence" => catalog.sequences().map(|one| sequence(shape, one)).collect(),
        "pg_depend" => pg_depend::rows(shape, objects, catalog),
        "pg_description" | "pg_shdescription" => {
            let shared = shape.name == "pg_shdescription";
            let all = objects.comments.iter();
            let is_shared = |class| [DATABASE_CLASS, AUTHID].contains(class);
            let here = all.filter(|((class, ..), _)| is_shared(class) == shared);
            here.map(|one| comment(shape, one)).collect()
        }
        "pg_auth_members" => memberships(shape, catalog),
        "pg_trigger" => pg_trigger::rows(shape, catalog),
        "pg_policy" => privileges::policies(shape, catalog),
        "pg_rewrite" => objects.relations.iter().filter_map(|one| rule(shape, one)).collect(),
        "pg_extension" => created_extensions(catalog).map(|one| extension(shape, one)).collect(),
        "pg_available_extensions" => available_extensions(shape, catalog),
        "pg_available_extension_versions" => extension_versions(shape, catalog),
        "view_column_usage" => usage::view_columns(shape, objects, catalog),
        "column_column_usage" => usage::generated_columns(shape, objects, catalog),
        _ => return constants::rows(shape, pg_proc::internal_oid),
    })
}

/// Returns the `pg_class` row of a relation. `portable` leaves out the options that PostgreSQL
/// does not know.
pub(super) fn class(
    shape: &RelationDefinition,
    relation: &SystemRelation,
    (objects, catalog): (&CatalogObjects, &Catalog),
    portable: bool,
) -> Row {
    let rows = |table: &Table| {
        let statistics = catalog.statistics(table.id);
        statistics.map_or(-1.0, |statistics| statistics.rows as f32)
    };
    let (method, rows, checks, has_index) = match &relation.kind {
        SystemRelationKind::Table(table) | SystemRelationKind::Materialized(table, _) => {
            let indexed = !table.primary_key_name.is_empty() || !table.indexes.is_empty();
            let checks = table.constraints.checks.len();
            (HEAP, rows(table), checks, indexed)
        }
        SystemRelationKind::Index(table, index) => {
            let record = index_record(catalog, table, index);
            let method = method_oid(record.map(IndexRecord::method).unwrap_or_default());
            let statistics = catalog.statistics(table.id);
            let entries = match index.spec.predicate {
                Some(_) => statistics.and_then(|statistics| statistics.entries(index.oid)),
                None => statistics.map(|statistics| statistics.rows),
            };
            (method, entries.map_or(-1.0, |entries| entries as f32), 0, false)
        }
        SystemRelationKind::PrimaryKey(table) => (BTREE, rows(table), 0, false),
        SystemRelationKind::Sequence(_) => (0, 1.0, 0, false),
        SystemRelationKind::System(shape) if shape.is_table => (HEAP, -1.0, 0, false),
        SystemRelationKind::View(_)
        | SystemRelationKind::Composite(_)
        | SystemRelationKind::System(_) => (0, -1.0, 0, false),
    };
    let has_triggers = pg_trigger::has_triggers(&relation.kind, catalog);
    let (is_secured, is_forced) = relation.row_security();
    let kind = relation.relkind();
    let has_rows = matches!(kind, 'r' | 'm');
    let is_temporary = name::is_temporary(objects.namespace(relation.schema));
    let options = options(relation, catalog, portable);
    let options = options.iter().map(|(name, value)| text(format!("{name}={value}")));
    let options: Vec<Datum> = options.collect();
    let options = (!options.is_empty()).then(|| array(options));
    let (persistence, identity) = persistence(relation, objects, catalog);
    let persistence = if is_temporary { 't' } else { persistence };
    let identity = if has_rows && relation.is_user() { identity } else { 'n' };
    let subject = subject_of(relation);
    shape.row([
        ("reloptions", options.unwrap_or(Datum::Null)),
        ("oid", oid(relation.oid)),
        ("relname", text(&relation.name)),
        ("relnamespace", oid(relation.schema)),
        ("reltype", oid(relation.row_type())),
        ("relowner", owner_oid(catalog, subject)),
        ("relacl", if kind == 'i' { Datum::Null } else { acl_of(catalog, subject) }),
        ("relam", oid(method)),
        ("relfilenode", oid(if matches!(kind, 'v' | 'c') { 0 } else { relation.oid })),
        ("reltuples", Datum::Float4(rows)),
        ("relhasindex", Datum::Bool(has_index)),
        ("relpersistence", char(persistence)),
        ("relkind", char(kind)),
        ("relnatts", int2(relation.last_column())),
        ("relchecks", int2(checks)),
        ("relhasrules", Datum::Bool(matches!(kind, 'v' | 'm'))),
        ("relhastriggers", Datum::Bool(has_triggers)),
        ("relrowsecurity", Datum::Bool(is_secured)),
        ("relforcerowsecurity", Datum::Bool(is_forced)),
        ("relispopulated", Datum::Bool(relation.is_populated())),
        ("relreplident", char(identity)),
    ])
}

/// Returns `relpersistence` and `relreplident`.
fn persistence(
    relation: &SystemRelation,
    objects: &CatalogObjects,
    catalog: &Catalog,
) -> (char, char) {
    // A sequence has the persistence of the table of its identity column; pg_dump then omits it.
    let identity_of = |sequence: &Sequence| {
        let is_identity = objects.is_identity(sequence);
        sequence.owned_by.filter(|_| is_identity).and_then(|(table, _)| catalog.table(table))
    };
    let table = match &relation.kind {
        SystemRelationKind::Table(table) | SystemRelationKind::Materialized(table, _) => {
            Some(table)
        }
        SystemRelationKind::PrimaryKey(table) | SystemRelationKind::Index(table, _) => Some(table),
        SystemRelationKind::Sequence(sequence) => identity_of(sequence),
        _ => None,
    };
    let Some(table) = table else { return ('p', 'd') };
    let Some(record) = catalog.record(table.oid) else { return ('p', 'd') };
    let identity = match record.retained.replica_identity {
        ReplicaIdentity::Default => 'd',
        ReplicaIdentity::Full => 'f',
        ReplicaIdentity::Nothing => 'n',
        ReplicaIdentity::Index(_) => 'i',
    };
    (if record.retained.unlogged { 'u' } else { 'p' }, identity)
}

/// Returns the storage parameters of a relation and, unless `portable`, the options that only
/// bennu has.
fn options(relation: &SystemRelation, catalog: &Catalog, portable: bool) -> Vec<Parameter> {
    let record = |table: &Table| catalog.record(table.oid);
    match &relation.kind {
        SystemRelationKind::Table(table) | SystemRelationKind::Materialized(table, _) => {
            record(table).map(|record| storage_options::of_table(record, portable))
        }
        SystemRelationKind::PrimaryKey(table) => {
            record(table).map(|record| record.retained.key_parameters.clone())
        }
        SystemRelationKind::Index(table, index) => index_record(catalog, table, index)
            .map(|index| storage_options::of_index(index, portable)),
        SystemRelationKind::View(view) => Some(view.options()),
        _ => None,
    }
    .unwrap_or_default()
}

/// Returns the record of an index.
pub(super) fn index_record<'c>(
    catalog: &'c Catalog,
    table: &Table,
    index: &Index,
) -> Option<&'c IndexRecord> {
    catalog.record(table.oid)?.indexes.iter().find(|one| one.oid == index.oid)
}

fn method_oid(method: IndexMethod) -> u32 {
    match method {
        IndexMethod::Btree => BTREE,
        IndexMethod::Hash => HASH,
        IndexMethod::Gin => GIN,
    }
}

fn collation_oid(collation: Option<Collation>) -> Datum {
    oid(collation.map_or(0, Collation::oid))
}

fn attributes(shape: &RelationDefinition, objects: &CatalogObjects, catalog: &Catalog) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        let record = match &relation.kind {
            SystemRelationKind::Table(table) | SystemRelationKind::Materialized(table, _) => {
                catalog.record(table.oid)
            }
            _ => None,
        };
        for column in &relation.columns {
            let mut row = attribute(shape, relation, column);
            set_acl(shape, &mut row, (catalog, relation, column));
            let mut columns = record.iter().flat_map(|record| &record.columns);
            let own = columns.find(|one| !one.dropped && one.name == column.name);
            if let Some(own) = own.filter(|own| own.retained != IgnoredColumnAttributes::default())
            {
                set_retained(shape, &mut row, &own.retained);
            }
            rows.push(row);
        }
        for number in relation.dropped_columns() {
            rows.push(dropped_attribute(shape, relation, number));
        }
    }
    rows
}

/// Sets the privileges of a column in its row.
fn set_acl(
    shape: &RelationDefinition,
    row: &mut Row,
    (catalog, relation, column): (&Catalog, &SystemRelation, &Attribute),
) {
    let Some(subject) = subject_of(relation) else { return };
    let access = catalog.access(subject);
    if access.columns.is_empty() {
        return;
    }
    let position = match subject {
        AccessSubject::Relation(number) => match catalog.table(number) {
            Some(table) => table.column_index(&column.name),
            None => usize::try_from(column.number - 1).ok(),
        },
        _ => None,
    };
    let acl = position.map(|at| access.column(at)).filter(|acl| !acl.0.is_empty());
    let at = shape.columns.iter().position(|(name, _)| *name == "attacl");
    if let (Some(acl), Some(at)) = (acl, at) {
        row[at] = acl_list(catalog, &acl.0);
    }
}

/// Returns the row of a dropped column. It retains its attribute number, since pg_dump rejects a
/// relation with gaps.
fn dropped_attribute(shape: &RelationDefinition, relation: &SystemRelation, number: i16) -> Row {
    shape.row([
        ("attrelid", oid(relation.oid)),
        ("attname", text(format!("........pg.dropped.{number}........"))),
        ("atttypid", oid(0)),
        ("attnum", int2(number)),
        ("attcacheoff", int4(-1)),
        ("atttypmod", int4(-1)),
        ("attalign", char('i')),
        ("attstorage", char('p')),
        ("attcompression", text("")),
        ("attidentity", text("")),
        ("attgenerated", text("")),
        ("attisdropped", Datum::Bool(true)),
        ("attislocal", Datum::Bool(true)),
    ])
}

/// Sets the properties of a column that are stored but have no effect: statistics target, storage
/// and compression.
fn set_retained(shape: &RelationDefinition, row: &mut Row, retained: &IgnoredColumnAttributes) {
    if let Some(target) = retained.statistics {
        shape.set(row, [("attstattarget", int4(target))]);
    }
    if let Some(storage) = retained.storage {
        let letter = match storage {
            StorageKind::Plain => 'p',
            StorageKind::External => 'e',
            StorageKind::Extended => 'x',
            StorageKind::Main => 'm',
        };
        shape.set(row, [("attstorage", char(letter))]);
    }
    if let Some(method) = retained.compression {
        shape.set(row, [("attcompression", char(method))]);
    }
    if !retained.options.is_empty() {
        let options = retained.options.iter().map(|(name, value)| text(format!("{name}={value}")));
        shape.set(row, [("attoptions", array(options.collect()))]);
    }
}

fn attribute(shape: &RelationDefinition, relation: &SystemRelation, column: &Attribute) -> Row {
    let base = &column.sql_type.base;
    let facts = pg_type::of(base);
    let identity = match column.identity {
        None => "",
        Some(IdentityRecord::Always) => "a",
        Some(IdentityRecord::ByDefault) => "d",
    };
    shape.row([
        ("attrelid", oid(relation.oid)),
        ("attname", text(&column.name)),
        ("atttypid", oid(column.sql_type.oid())),
        ("attstattarget", int4(-1)),
        ("attlen", int2(base.length())),
        ("attnum", int2(column.number)),
        ("attndims", int4(i32::from(matches!(base, DataType::Array(_))))),
        ("attcacheoff", int4(-1)),
        ("atttypmod", int4(column.sql_type.stored_oid_and_modifier().1)),
        ("attbyval", Datum::Bool(facts.as_ref().is_some_and(|facts| facts.by_value))),
        ("attalign", char(facts.as_ref().map_or('i', |facts| facts.align))),
        ("attstorage", char(facts.map_or('x', |facts| facts.storage))),
        ("attcompression", text("")),
        ("attnotnull", Datum::Bool(column.not_null)),
        ("atthasdef", Datum::Bool(column.default.is_some())),
        ("attidentity", text(identity)),
        ("attgenerated", text(if column.is_generated { "s" } else { "" })),
        ("attislocal", Datum::Bool(true)),
        ("attcollation", collation_oid(column.collation)),
    ])
}

/// Returns the OID of a column's default.
pub(super) fn default_oid(relation: u32, column: &Attribute) -> u32 {
    hashed_oid(relation, &column.number.to_string())
}

fn attribute_defaults(shape: &RelationDefinition, objects: &CatalogObjects) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in objects.relations.iter().filter(|relation| relation.is_user()) {
        for column in &relation.columns {
            let Some(default) = &column.default else { continue };
            rows.push(shape.row([
                ("oid", oid(default_oid(relation.oid, column))),
                ("adrelid", oid(relation.oid)),
                ("adnum", int2(column.number)),
                ("adbin", text(default)),
            ]));
        }
    }
    rows
}

fn memberships(shape: &RelationDefinition, catalog: &Catalog) -> Vec<Row> {
    let of_role = |member: &Arc<RoleRecord>| {
        let row = |one: &MembershipRecord| {
            shape.row([
                ("roleid", oid(role_oid(one.role))),
                ("member", oid(role_oid(member.number))),
                ("grantor", oid(role_oid(one.grantor))),
                ("admin_option", Datum::Bool(one.admin_option)),
            ])
        };
        member.member_of.iter().map(row).collect::<Vec<_>>()
    };
    catalog.roles().flat_map(of_role).collect()
}

fn namespaces(shape: &RelationDefinition, objects: &CatalogObjects, catalog: &Catalog) -> Vec<Row> {
    let row = |namespace: &super::catalog_objects::Namespace| {
        let schema = catalog.schema(&namespace.name);
        let subject = schema.map(|schema| AccessSubject::Schema(schema.oid));
        shape.row([
            ("oid", oid(namespace.oid)),
            ("nspname", text(&namespace.name)),
            ("nspowner", owner_oid(catalog, subject)),
            ("nspacl", acl_of(catalog, subject)),
        ])
    };
    objects.namespaces.iter().map(row).collect()
}

fn database(shape: &RelationDefinition, catalog: &Catalog, record: &DatabaseRecord) -> Row {
    shape.row([
        ("oid", oid(database_oid(record.oid))),
        ("datname", text(&record.name)),
        ("datdba", oid(role_oid(record.owner()))),
        ("encoding", int4(6)),
        ("datlocprovider", char('c')),
        ("datistemplate", Datum::Bool(record.is_template)),
        ("datallowconn", Datum::Bool(!record.rejects_connections)),
        ("datconnlimit", int4(record.connection_limit.map_or(-1, |limit| limit.cast_signed()))),
        ("dattablespace", oid(TABLESPACE)),
        ("datcollate", text("C.UTF-8")),
        ("datctype", text("C.UTF-8")),
        ("datacl", acl_of(catalog, Some(AccessSubject::Database(record.oid)))),
    ])
}

/// Returns the row of the settings of a database, if it has any.
/// Returns the settings of databases and of roles.
fn stored_settings(shape: &RelationDefinition, catalog: &Catalog) -> Vec<Row> {
    let of_databases =
        catalog.databases().map(|one| (database_oid(one.oid), 0, one.settings.as_slice()));
    let of_roles = catalog.roles().flat_map(|role| {
        role.settings.iter().map(|one| {
            let database = one.database.map_or(0, database_oid);
            (database, role_oid(role.number), one.settings.as_slice())
        })
    });
    let rows = of_databases.chain(of_roles).filter(|(.., settings)| !settings.is_empty());
    let line = |(name, value): &(String, String)| text(format!("{name}={value}"));
    let rows = rows.map(|(database, role, settings)| {
        shape.row([
            ("setdatabase", oid(database)),
            ("setrole", oid(role)),
            ("setconfig", array(settings.iter().map(line).collect())),
        ])
    });
    rows.collect()
}

/// Sets the owner and the privileges of a user-defined type in its row; a row type belongs to the
/// owner of its relation.
fn set_owner(shape: &RelationDefinition, row: &mut Row, catalog: &Catalog, number: u32) {
    let is_created = catalog.created_type(number).is_some();
    let subject = match is_created {
        true => AccessSubject::Type(number),
        false => AccessSubject::Relation(number),
    };
    let acl = if is_created { acl_of(catalog, Some(subject)) } else { Datum::Null };
    let values = [("typowner", owner_oid(catalog, Some(subject))), ("typacl", acl)];
    for (name, value) in values {
        if let Some(at) = shape.columns.iter().position(|(known, _)| *known == name) {
            row[at] = value;
        }
    }
}

fn types(shape: &RelationDefinition, catalog: &Catalog, objects: &CatalogObjects) -> Vec<Row> {
    let built_in = pg_type::all().map(|facts| type_row(shape, facts, PG_CATALOG));
    let namespace = |schema: &str| {
        objects.namespace_named(schema).map_or(PUBLIC_OID, |namespace| namespace.oid)
    };
    let mut own = catalog.types_and_row_types();
    own.retain(|one| !matches!(one.as_ref(), UserType::Domain(_)));
    let of_users = own.into_iter().flat_map(|one| {
        let namespace = namespace(one.schema());
        let types = [Some(one.sql_type()), one.array()].into_iter().flatten();
        types.filter_map(move |of| Some((one, pg_type::of(&of.base)?, namespace)))
    });
    let of_users = of_users.map(|(one, facts, namespace)| {
        let mut row = type_row(shape, &facts, namespace);
        set_owner(shape, &mut row, catalog, one.number());
        if let (UserType::Composite(composite), DataType::Composite(_)) =
            (one.as_ref(), facts.data_type)
        {
            let relation = match composite.is_of_rows() {
                true => one.oid(),
                false => composite_relation_oid(composite.number),
            };
            shape.set(&mut row, [("typrelid", oid(relation))]);
        }
        row
    });
    let domains = objects.domains.iter();
    let domains = domains.flat_map(|one| {
        let namespace = namespace(&one.record.schema);
        let rows =
            [domain_row(shape, one, namespace, catalog), domain_array_row(shape, one, namespace)];
        rows.map(|row| {
            row.map(|mut row| {
                set_owner(shape, &mut row, catalog, one.record.number);
                row
            })
        })
    });
    let pseudo = pseudo_types::rows(shape);
    built_in.chain(pseudo).chain(of_users).chain(domains.flatten()).collect()
}

/// Returns the row of a domain's array type: that of the base type's array with its own names.
fn domain_array_row(shape: &RelationDefinition, domain: &Domain, namespace: u32) -> Option<Row> {
    let array = domain.array.as_ref()?;
    let mut row = type_row(shape, &pg_type::of(&array.sql_type.base)?, namespace);
    let own = [
        ("oid", oid(array.sql_type.oid())),
        ("typname", text(&array.record.name)),
        ("typelem", oid(domain.sql_type.oid())),
        ("typmodin", oid(0)),
        ("typmodout", oid(0)),
    ];
    shape.set(&mut row, own);
    Some(row)
}

/// Returns the row of a domain: that of its base type with the columns of the domain.
fn domain_row(
    shape: &RelationDefinition,
    domain: &Domain,
    namespace: u32,
    catalog: &Catalog,
) -> Option<Row> {
    let mut row = type_row(shape, &pg_type::of(&domain.sql_type.base)?, namespace);
    let function = |name: &str| oid(pg_proc::internal_oid(name));
    let default = domain.record.default.as_ref();
    let default =
        default.map(|text| definition::default(text, domain, DeparseContext::new(catalog)));
    let own = [
        ("oid", oid(domain.sql_type.oid())),
        ("typname", text(&domain.record.name)),
        ("typtype", char('d')),
        ("typispreferred", Datum::Bool(false)),
        ("typsubscript", oid(0)),
        ("typelem", oid(0)),
        ("typarray", oid(domain.array.as_ref().map_or(0, |array| array.sql_type.oid()))),
        ("typinput", function("domain_in")),
        ("typreceive", function("domain_recv")),
        ("typmodin", oid(0)),
        ("typmodout", oid(0)),
        ("typnotnull", Datum::Bool(domain.record.not_null)),
        ("typcollation", collation_oid(domain.collation)),
        ("typbasetype", oid(domain.base_type.oid())),
        ("typtypmod", int4(domain.base_type.stored_oid_and_modifier().1)),
        ("typdefaultbin", text_or_null(default.clone())),
        ("typdefault", text_or_null(default)),
    ];
    shape.set(&mut row, own);
    Some(row)
}

fn labels(shape: &RelationDefinition, catalog: &Catalog) -> Vec<Row> {
    let mut rows = Vec::new();
    for one in catalog.types() {
        let UserType::Enum(of) = one.as_ref() else { continue };
        for (position, label) in of.enum_type.labels().iter().enumerate() {
            rows.push(shape.row([
                ("oid", oid(label.oid)),
                ("enumtypid", oid(one.oid())),
                ("enumsortorder", Datum::Float4(position as f32 + 1.0)),
                ("enumlabel", text(&label.name)),
            ]));
        }
    }
    rows
}

/// Returns the row of `pg_type` of a type.
pub(super) fn type_row(shape: &RelationDefinition, facts: &TypeFacts, namespace: u32) -> Row {
    let data_type = &facts.data_type;
    let [input, output, receive, send] = facts.io_functions();
    let function = |name: &str| oid(pg_proc::internal_oid(name));
    let modifier = |suffix: &str| match facts.modified && data_type.element().is_none() {
        true => {
            let stem = facts.functions.trim_end_matches('_');
            function(&format!("{stem}typmod{suffix}"))
        }
        false => oid(0),
    };
    let is_array = matches!(data_type, DataType::Array(_));
    let subscripts = match data_type.element() {
        Some(_) => function("array_subscript_handler"),
        None => oid(0),
    };
    let array = match data_type {
        DataType::CString => pseudo_types::CSTRING_ARRAY,
        _ => data_type.array().filter(|_| !is_array).map_or(0, |array| array.oid()),
    };
    shape.row([
        ("oid", oid(data_type.oid())),
        ("typname", text(data_type.internal_name())),
        ("typnamespace", oid(namespace)),
        ("typowner", oid(OWNER)),
        ("typlen", int2(data_type.length())),
        ("typbyval", Datum::Bool(facts.by_value)),
        ("typtype", char(facts.kind)),
        ("typcategory", char(facts.category)),
        ("typispreferred", Datum::Bool(facts.preferred)),
        ("typisdefined", Datum::Bool(true)),
        ("typdelim", char(data_type.element().unwrap_or(data_type).delimiter())),
        ("typsubscript", subscripts),
        ("typelem", oid(data_type.element().map_or(0, DataType::oid))),
        ("typarray", oid(array)),
        ("typinput", function(&input)),
        ("typoutput", function(&output)),
        ("typreceive", function(&receive)),
        ("typsend", function(&send)),
        ("typmodin", modifier("in")),
        ("typmodout", modifier("out")),
        ("typalign", char(facts.align)),
        ("typstorage", char(facts.storage)),
        ("typtypmod", int4(-1)),
        ("typcollation", collation_oid(collation::of_type(data_type))),
    ])
}

fn index(shape: &RelationDefinition, relation: &SystemRelation, catalog: &Catalog) -> Option<Row> {
    let (table, keys, included, unique) = match &relation.kind {
        SystemRelationKind::PrimaryKey(table) => {
            let included = definition::primary_key_included(table, catalog);
            (table, definition::primary_key(table), included, true)
        }
        SystemRelationKind::Index(table, index) => {
            let included = definition::included(table, index);
            (table, definition::index_keys(table, index), included, index.is_unique())
        }
        _ => return None,
    };
    let is_primary = definition::is_primary(relation);
    let state = match &relation.kind {
        SystemRelationKind::Index(_, index) => index.state,
        _ => IndexState::Active,
    };
    let numbers = keys.iter().map(|key| key.number).chain(included.iter().copied());
    let option = |key: &definition::IndexKeyDefinition| {
        let descending = if key.descending { DESCENDING } else { 0 };
        int2(descending | if key.nulls_first { NULLS_FIRST } else { 0 })
    };
    let collations = keys.iter().map(|key| collation_oid(key.collation));
    let record = match &relation.kind {
        SystemRelationKind::Index(table, index) => index_record(catalog, table, index),
        _ => None,
    };
    let method = method_oid(record.map(IndexRecord::method).unwrap_or_default());
    let classes = (0..).zip(&keys).map(|(position, key)| {
        let name = record.and_then(|record| record.operator_class(position));
        oid(pg_opclass::of_key(&key.sql_type.base, name, method))
    });
    let number = match &relation.kind {
        SystemRelationKind::Index(_, index) => index.oid,
        _ => table.oid,
    };
    let table_record = catalog.record(table.oid);
    let of_table = table_record.map(|record| record.retained.clone()).unwrap_or_default();
    let is_clustered = of_table.clustered_on == Some(number);
    let is_identity = of_table.replica_identity == ReplicaIdentity::Index(number);
    let (texts, predicate): (&[String], _) = match &relation.kind {
        SystemRelationKind::Index(_, index) => (index.key_texts(), index.predicate_text()),
        _ => (&[], None),
    };
    let expressions = keys.iter().zip(texts).filter(|(key, _)| key.number == 0);
    let expressions: Vec<&str> = expressions.map(|(_, text)| text.as_str()).collect();
    let expressions = (!expressions.is_empty()).then(|| expressions.join(", "));
    Some(shape.row([
        ("indexrelid", oid(relation.oid)),
        ("indrelid", oid(user_oid(table.oid))),
        ("indnatts", int2(keys.len() + included.len())),
        ("indnkeyatts", int2(keys.len())),
        ("indisunique", Datum::Bool(unique)),
        ("indnullsnotdistinct", Datum::Bool(definition::nulls_not_distinct(relation))),
        ("indisprimary", Datum::Bool(is_primary)),
        ("indimmediate", Datum::Bool(definition::deferral(relation) == Deferral::Never)),
        ("indisvalid", Datum::Bool(state == IndexState::Active)),
        ("indisclustered", Datum::Bool(is_clustered)),
        ("indisreplident", Datum::Bool(is_identity)),
        ("indisready", Datum::Bool(state != IndexState::Disabled)),
        ("indislive", Datum::Bool(true)),
        ("indkey", vector(numbers.map(int2).collect())),
        ("indcollation", vector(collations.collect())),
        ("indclass", vector(classes.collect())),
        ("indoption", vector(keys.iter().map(option).collect())),
        ("indexprs", text_or_null(expressions)),
        ("indpred", text_or_null(predicate)),
    ]))
}

fn constraint(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    constraint: &CatalogConstraint,
) -> Row {
    let (kind, check) = match &constraint.kind {
        ConstraintRowKind::Check { text } => ('c', Some(text)),
        ConstraintRowKind::PrimaryKey(_) => ('p', None),
        ConstraintRowKind::Unique(_) => ('u', None),
        ConstraintRowKind::ForeignKey(_) => ('f', None),
    };
    let deferral = definition::constraint_deferral(objects, constraint);
    let mut row = shape.row([
        ("oid", oid(constraint.oid)),
        ("conname", text(&constraint.name)),
        ("connamespace", oid(constraint.schema)),
        ("contype", char(kind)),
        ("convalidated", Datum::Bool(constraint.valid)),
        ("conrelid", oid(constraint.table)),
        ("contypid", oid(constraint.domain)),
        ("conindid", oid(constraint.index())),
        ("confupdtype", char(' ')),
        ("confdeltype", char(' ')),
        ("confmatchtype", char(' ')),
        ("conislocal", Datum::Bool(true)),
        ("connoinherit", Datum::Bool(kind != 'c')),
        ("conkey", array(constraint.columns.iter().map(|number| int2(*number)).collect())),
        ("conbin", text_or_null(check)),
        ("condeferrable", Datum::Bool(deferral != Deferral::Never)),
        ("condeferred", Datum::Bool(deferral == Deferral::Deferred)),
    ]);
    if let ConstraintRowKind::ForeignKey(ForeignKeyTarget {
        table,
        columns,
        index,
        key,
        delete_columns,
    }) = &constraint.kind
    {
        let set = match delete_columns.as_slice() {
            [] => Datum::Null,
            numbers => array(numbers.iter().map(|number| int2(*number)).collect()),
        };
        let values = [
            ("conindid", oid(*index)),
            ("confrelid", oid(*table)),
            ("confkey", array(columns.iter().map(|number| int2(*number)).collect())),
            ("confupdtype", char(action(key.on_update))),
            ("confdeltype", char(action(key.on_delete))),
            ("confdelsetcols", set),
            ("confmatchtype", char(if key.match_full { 'f' } else { 's' })),
        ];
        shape.set(&mut row, values);
    }
    row
}

/// Returns the `confupdtype` or `confdeltype` letter of a referential action.
fn action(action: ReferentialAction) -> char {
    match action {
        ReferentialAction::NoAction => 'a',
        ReferentialAction::Restrict => 'r',
        ReferentialAction::Cascade => 'c',
        ReferentialAction::SetNull => 'n',
        ReferentialAction::SetDefault => 'd',
    }
}

fn sequence(shape: &RelationDefinition, sequence: &Sequence) -> Row {
    shape.row([
        ("seqrelid", oid(user_oid(sequence.oid))),
        ("seqtypid", oid(sequence.type_oid)),
        ("seqstart", int8(sequence.start)),
        ("seqincrement", int8(sequence.increment)),
        ("seqmax", int8(sequence.max)),
        ("seqmin", int8(sequence.min)),
        ("seqcache", int8(sequence.cache)),
        ("seqcycle", Datum::Bool(sequence.cycle)),
    ])
}

/// Returns the `_RETURN` rule of a view.
fn rule(shape: &RelationDefinition, relation: &SystemRelation) -> Option<Row> {
    let (SystemRelationKind::View(view) | SystemRelationKind::Materialized(_, view)) =
        &relation.kind
    else {
        return None;
    };
    Some(shape.row([
        ("oid", oid(hashed_oid(relation.oid, "_RETURN"))),
        ("rulename", text("_RETURN")),
        ("ev_class", oid(relation.oid)),
        ("ev_type", char('1')),
        ("ev_enabled", char('O')),
        ("is_instead", Datum::Bool(true)),
        ("ev_action", text(&view.text)),
    ]))
}

fn comment(
    shape: &RelationDefinition,
    (&(class, object, column), description): (&(u32, u32, i32), &Arc<str>),
) -> Row {
    shape.row([
        ("objoid", oid(object)),
        ("classoid", oid(class)),
        ("objsubid", int4(column)),
        ("description", text(&**description)),
    ])
}

/// Returns the installed extensions with the OIDs of their schemas.
pub(super) fn created_extensions(
    catalog: &Catalog,
) -> impl Iterator<Item = (&'static Extension, u32)> {
    EXTENSIONS.into_iter().filter_map(|one| {
        let schema = match one.schema(catalog)? {
            0 => PG_CATALOG,
            number => schema_oid_of(catalog.schemas().find(|schema| schema.oid == number)?),
        };
        Some((one, schema))
    })
}

fn extension(shape: &RelationDefinition, (extension, schema): (&Extension, u32)) -> Row {
    shape.row([
        ("oid", oid(extension_oid(extension))),
        ("extname", text(extension.name)),
        ("extowner", oid(OWNER)),
        ("extnamespace", oid(schema)),
        ("extrelocatable", Datum::Bool(extension.is_relocatable())),
        ("extversion", text(extension.version)),
    ])
}

fn available_extensions(shape: &RelationDefinition, catalog: &Catalog) -> Vec<Row> {
    let row = |one: &&Extension| {
        let installed = one.schema(catalog).map(|_| one.version);
        shape.row([
            ("name", text(one.name)),
            ("default_version", text(one.version)),
            ("installed_version", text_or_null(installed)),
            ("comment", text(one.comment)),
        ])
    };
    EXTENSIONS.iter().map(row).collect()
}

fn extension_versions(shape: &RelationDefinition, catalog: &Catalog) -> Vec<Row> {
    let row = |one: &&Extension| {
        shape.row([
            ("name", text(one.name)),
            ("version", text(one.version)),
            ("installed", Datum::Bool(one.schema(catalog).is_some())),
            ("superuser", Datum::Bool(true)),
            ("trusted", Datum::Bool(true)),
            ("relocatable", Datum::Bool(one.is_relocatable())),
            ("schema", text_or_null((!one.is_relocatable()).then_some("pg_catalog"))),
            ("comment", text(one.comment)),
        ])
    };
    EXTENSIONS.iter().map(row).collect()
}

/// Returns the rows of `pg_stats` from the statistics of ANALYZE.
/// Returns the statistics of the columns that a role may read.
pub(super) fn statistics(shape: &RelationDefinition, catalog: &Catalog, role: u32) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in catalog.tables() {
        let Some(statistics) = catalog.statistics(table.id) else { continue };
        let held = catalog.privileges_on(role, AccessSubject::Relation(table.oid)).0;
        for column in &statistics.columns {
            let of_column = || {
                let at = table.column_index(&column.name);
                at.map_or(0, |at| catalog.column_privileges(role, table.oid, at))
            };
            let is_hidden = catalog.has_row_security(table, role, RowSecurityMode::On);
            if is_hidden || held & SELECT == 0 && of_column() & SELECT == 0 {
                continue;
            }
            let Some(data_type) = DataType::from_oid(column.type_oid) else { continue };
            let values = |forms: &mut dyn Iterator<Item = &Vec<u8>>| {
                let decode = |form: &Vec<u8>| {
                    types::keycode::decode(form, &data_type, false, false)
                        .ok()
                        .map(|(value, _)| value)
                };
                let values: Vec<Datum> = forms.filter_map(decode).collect();
                let of = data_type.array().filter(|_| !values.is_empty());
                let Some(of) = of else { return Datum::Null };
                let mut out = Vec::new();
                types::text::write_short(
                    &array(values),
                    &of,
                    &types::text::TextStyle::default(),
                    &mut out,
                );
                text(String::from_utf8_lossy(&out))
            };
            let rows_known = statistics.rows as f64;
            // Above a tenth of the rows, `n_distinct` is the negative fraction of the rows.
            let distinct = match column.distinct > rows_known / 10.0 && rows_known > 0.0 {
                true => -(column.distinct / rows_known),
                false => column.distinct,
            };
            let fractions: Vec<Datum> =
                column.common.iter().map(|(_, part)| Datum::Float4(*part as f32)).collect();
            let fractions = if fractions.is_empty() { Datum::Null } else { array(fractions) };
            rows.push(shape.row([
                ("schemaname", text(&table.schema)),
                ("tablename", text(&table.name)),
                ("attname", text(&column.name)),
                ("inherited", Datum::Bool(false)),
                ("null_frac", Datum::Float4(column.null_fraction as f32)),
                ("n_distinct", Datum::Float4(distinct as f32)),
                ("most_common_vals", values(&mut column.common.iter().map(|(form, _)| form))),
                ("most_common_freqs", fractions),
                ("histogram_bounds", values(&mut column.bounds.iter())),
            ]));
        }
    }
    rows
}
