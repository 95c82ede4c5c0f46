//! Rows of the views of `pg_catalog`, and dispatch of all rows that depend on the session.
//!
//! [`shared_rows`] has the views that [`SystemViewCache`] caches; [`rows`] computes the others for
//! each scan.
//!
//! [`SystemViewCache`]: crate::system::view_cache::SystemViewCache

use types::Datum;
use types::datetime::UNIX_EPOCH_SECONDS;

use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::catalog::quota::QuotaSubject;
use crate::deparse::{DeparseContext, Layout};
use crate::error::Result;
use crate::settings::{SettingDescription, Settings};
use crate::system::catalog_objects::{
    CatalogObjects, DATABASE_OWNER, DATABASE_OWNER_NAME, OWNER, OWNER_NAME, SystemRelation,
    SystemRelationKind, hashed_oid,
};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{array, int4, int8, oid, text, text_or_null};
use crate::system::{
    Row, SystemContext, definition, information_schema, locks, pg_catalog, session,
};
use crate::table_coprocessors::CoprocessorRegistry;

/// Returns the rows of a view that depends on nothing but the catalog; `None` for other views.
pub(super) fn shared_rows(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
) -> Option<Vec<Row>> {
    let relations = objects.relations.iter();
    Some(match shape.name {
        "pg_tables" => relations.filter_map(|one| table(shape, objects, one)).collect(),
        _ => return None,
    })
}

/// Returns the rows of a view that depends on the session; `None` if it is always empty.
pub(super) fn rows(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    source: &SystemContext,
) -> Result<Option<Vec<Row>>> {
    let (relations, viewer) = (objects.relations.iter(), source.viewer());
    Ok(Some(match shape.name {
        // Reached only under `portable_definitions`; otherwise the cached rows are used.
        "pg_class" => {
            let row = |one| pg_catalog::class(shape, one, (objects, viewer.catalog), true);
            relations.map(row).collect()
        }
        "pg_views" => relations.filter_map(|one| view(shape, objects, one, &viewer)).collect(),
        "pg_matviews" => {
            relations.filter_map(|one| materialized(shape, objects, one, &viewer)).collect()
        }
        "pg_indexes" => relations.filter_map(|one| index(shape, objects, one, &viewer)).collect(),
        "views" => information_schema::views(shape, objects, &viewer),
        "pg_roles" | "pg_authid" => roles(&source.viewer())
            .iter()
            .map(|(number, name)| role(shape, *number, name))
            .collect(),
        "pg_user" | "pg_shadow" => roles(&source.viewer())
            .iter()
            .filter(|(number, _)| *number != DATABASE_OWNER)
            .map(|(number, name)| user(shape, *number, name))
            .collect(),
        "pg_settings" => settings(shape, source),
        "pg_stat_activity" => session::activity(shape, source),
        "pg_prepared_statements" => session::prepared_statements(shape, source),
        "pg_prepared_xacts" => session::prepared_transactions(shape, source),
        "pg_cursors" => session::cursors(shape, source),
        "pg_locks" => locks::locks(shape, source),
        "pg_sequences" => sequences(shape, objects, source)?,
        _ => return Ok(None),
    }))
}

/// The catalog and the session for which definitions and names are written.
pub(super) struct DefinitionContext<'s> {
    pub(super) catalog: &'s Catalog,
    pub(super) settings: &'s Settings,
    /// The callable endpoints of coprocessors; `None` where no view is deparsed.
    pub(super) coprocessors: Option<&'s CoprocessorRegistry>,
}

impl DefinitionContext<'_> {
    /// Returns the context in which definitions are deparsed: catalog, search path and literal
    /// style.
    pub(super) fn reader<'a>(&'a self, path: &'a SearchPath) -> DeparseContext<'a> {
        DeparseContext { catalog: self.catalog, path, style: self.settings.style() }
    }

    /// Returns the search path of the session.
    pub(super) fn search_path(&self) -> SearchPath {
        self.settings.search_path()
    }
}

/// Returns the roles: the owner, the database owner, the session's user, and those with quotas.
pub(super) fn roles(viewer: &DefinitionContext<'_>) -> Vec<(u32, String)> {
    let mut roles =
        vec![(OWNER, OWNER_NAME.to_owned()), (DATABASE_OWNER, DATABASE_OWNER_NAME.to_owned())];
    let limited = viewer.catalog.quotas().keys().filter_map(|subject| match subject {
        QuotaSubject::Role(name) => Some(name.as_str()),
        QuotaSubject::Table(_) => None,
    });
    for name in std::iter::once(viewer.settings.value("session_authorization")).chain(limited) {
        if !roles.iter().any(|(_, known)| known == name) {
            roles.push((hashed_oid(0, name), name.to_owned()));
        }
    }
    roles
}

/// Returns the row of a role. All roles are superusers, except `pg_database_owner`.
fn role(shape: &RelationDefinition, number: u32, name: &str) -> Row {
    if number == DATABASE_OWNER {
        return shape.row([
            ("oid", oid(number)),
            ("rolname", text(name)),
            ("rolsuper", Datum::Bool(false)),
            ("rolinherit", Datum::Bool(true)),
            ("rolcreaterole", Datum::Bool(false)),
            ("rolcreatedb", Datum::Bool(false)),
            ("rolcanlogin", Datum::Bool(false)),
            ("rolreplication", Datum::Bool(false)),
            ("rolbypassrls", Datum::Bool(false)),
            ("rolconnlimit", int4(-1)),
            ("rolpassword", password(shape)),
        ]);
    }
    shape.row([
        ("oid", oid(number)),
        ("rolname", text(name)),
        ("rolsuper", Datum::Bool(true)),
        ("rolinherit", Datum::Bool(true)),
        ("rolcreaterole", Datum::Bool(true)),
        ("rolcreatedb", Datum::Bool(true)),
        ("rolcanlogin", Datum::Bool(true)),
        ("rolreplication", Datum::Bool(true)),
        ("rolbypassrls", Datum::Bool(true)),
        ("rolconnlimit", int4(-1)),
        ("rolpassword", password(shape)),
    ])
}

/// Returns the password column of a role: roles have no password, and PostgreSQL's public views
/// mask it.
fn password(shape: &RelationDefinition) -> Datum {
    match shape.name {
        "pg_authid" | "pg_shadow" => Datum::Null,
        _ => text("********"),
    }
}

fn user(shape: &RelationDefinition, number: u32, name: &str) -> Row {
    shape.row([
        ("usename", text(name)),
        ("usesysid", oid(number)),
        ("usecreatedb", Datum::Bool(true)),
        ("usesuper", Datum::Bool(true)),
        ("userepl", Datum::Bool(true)),
        ("usebypassrls", Datum::Bool(true)),
        ("passwd", password(shape)),
    ])
}

fn settings(shape: &RelationDefinition, source: &SystemContext) -> Vec<Row> {
    let row = |setting: SettingDescription<'_>| {
        let words = setting.words.map(|words| array(words.iter().map(text).collect()));
        shape.row([
            ("name", text(setting.name)),
            ("setting", text(setting.value)),
            ("category", text("bennu")),
            ("short_desc", text(setting.about)),
            ("context", text(if setting.is_fixed { "internal" } else { "user" })),
            ("vartype", text(setting.kind)),
            (
                "source",
                text(match setting.value == setting.initial {
                    _ if setting.is_fixed => "default",
                    true if setting.is_default => "default",
                    true => "client",
                    false => "session",
                }),
            ),
            ("enumvals", words.unwrap_or(Datum::Null)),
            ("boot_val", text(setting.default)),
            ("reset_val", text(setting.initial)),
            ("pending_restart", Datum::Bool(false)),
        ])
    };
    source.settings.describe().map(row).collect()
}

fn sequences(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    source: &SystemContext,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for relation in &objects.relations {
        let SystemRelationKind::Sequence(sequence) = &relation.kind else { continue };
        rows.push(shape.row([
            ("schemaname", text(objects.namespace(relation.schema))),
            ("sequencename", text(&relation.name)),
            ("sequenceowner", text(OWNER_NAME)),
            ("data_type", oid(sequence.type_oid)),
            ("start_value", int8(sequence.start)),
            ("min_value", int8(sequence.min)),
            ("max_value", int8(sequence.max)),
            ("increment_by", int8(sequence.increment)),
            ("cycle", Datum::Bool(sequence.cycle)),
            ("cache_size", int8(sequence.cache)),
            ("last_value", source.engine.sequences.last(sequence)?.map_or(Datum::Null, int8)),
        ]));
    }
    Ok(rows)
}

fn table(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> Option<Row> {
    let has_indexes = match &relation.kind {
        SystemRelationKind::Table(table) => {
            !table.primary_key_name.is_empty() || !table.indexes.is_empty()
        }
        SystemRelationKind::System(shape) if shape.is_table => false,
        _ => return None,
    };
    Some(shape.row([
        ("schemaname", text(objects.namespace(relation.schema))),
        ("tablename", text(&relation.name)),
        ("tableowner", text(OWNER_NAME)),
        ("hasindexes", Datum::Bool(has_indexes)),
        ("hasrules", Datum::Bool(false)),
        ("hastriggers", Datum::Bool(false)),
        ("rowsecurity", Datum::Bool(false)),
    ]))
}

fn view(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
    viewer: &DefinitionContext<'_>,
) -> Option<Row> {
    let text_of = match &relation.kind {
        SystemRelationKind::View(_) => definition::view(relation, viewer, Layout::QUERY),
        SystemRelationKind::System(shape) if !shape.is_table => None,
        _ => return None,
    };
    Some(shape.row([
        ("schemaname", text(objects.namespace(relation.schema))),
        ("viewname", text(&relation.name)),
        ("viewowner", text(OWNER_NAME)),
        ("definition", text_or_null(text_of)),
    ]))
}

fn materialized(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
    viewer: &DefinitionContext<'_>,
) -> Option<Row> {
    let SystemRelationKind::Materialized(table, _) = &relation.kind else { return None };
    Some(shape.row([
        ("schemaname", text(objects.namespace(relation.schema))),
        ("matviewname", text(&relation.name)),
        ("matviewowner", text(OWNER_NAME)),
        ("hasindexes", Datum::Bool(!table.indexes.is_empty())),
        ("ispopulated", Datum::Bool(relation.is_populated())),
        ("definition", text_or_null(definition::view(relation, viewer, Layout::QUERY))),
    ]))
}

fn index(
    shape: &RelationDefinition,
    objects: &CatalogObjects,
    relation: &SystemRelation,
    viewer: &DefinitionContext<'_>,
) -> Option<Row> {
    let path = viewer.search_path();
    let shown = definition::IndexDefinitionStyle {
        reader: viewer.reader(&path),
        layout: Layout::QUERY,
        hides_schema: false,
        is_portable: viewer.settings.is_on("portable_definitions"),
    };
    let (SystemRelationKind::PrimaryKey(table) | SystemRelationKind::Index(table, _)) =
        &relation.kind
    else {
        return None;
    };
    Some(shape.row([
        ("schemaname", text(objects.namespace(relation.schema))),
        ("tablename", text(&table.name)),
        ("indexname", text(&relation.name)),
        ("indexdef", text_or_null(definition::index(objects, relation, 0, shown))),
    ]))
}

/// Returns microseconds of the Unix epoch as a `timestamptz`.
pub(super) fn timestamptz(unix_micros: i64) -> Datum {
    Datum::Timestamptz(unix_micros.saturating_sub(UNIX_EPOCH_SECONDS * 1_000_000))
}
