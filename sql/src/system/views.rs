//! Rows of `pg_catalog` that depend on the session, which are computed for each scan.

use types::Datum;
use types::datetime::UNIX_EPOCH_SECONDS;

use crate::ast::RoleAttribute;
use crate::catalog::Catalog;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::role::RoleRecord;
use crate::catalog::name::SearchPath;
use crate::catalog::sequence::Sequence;
use crate::deparse::DeparseContext;
use crate::error::Result;
use crate::settings::{SettingDescription, Settings};
use crate::system::catalog_objects::{CatalogObjects, SystemRelationKind, role_oid};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{array, int4, int8, oid, text};
use crate::system::{Row, SystemContext, locks, pg_catalog, session};
use crate::table_coprocessors::CoprocessorRegistry;

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
        "pg_authid" => {
            let sees = viewer.catalog.is_superuser(viewer.settings.roles().current.number);
            viewer.catalog.roles().map(|one| role(shape, one, sees)).collect()
        }
        "pg_stats" => {
            let role = viewer.settings.roles().current.number;
            pg_catalog::statistics(shape, viewer.catalog, role)
        }
        "pg_settings" => settings(shape, source),
        "pg_stat_activity" => session::activity(shape, source),
        "pg_prepared_statements" => session::prepared_statements(shape, source),
        "pg_stat_progress_create_index" => session::index_builds(shape, source),
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

/// Returns the roles, by OID.
pub(super) fn roles(viewer: &DefinitionContext<'_>) -> Vec<(u32, String)> {
    viewer.catalog.roles().map(|role| (role_oid(role.number), role.name.clone())).collect()
}

/// Returns the row of a role. Only a superuser sees passwords.
fn role(shape: &RelationDefinition, role: &RoleRecord, sees_passwords: bool) -> Row {
    let has = |attribute| Datum::Bool(role.has(attribute));
    let verifier = role.verifier.as_ref().filter(|_| sees_passwords);
    let limit = role.connection_limit.and_then(|limit| i32::try_from(limit).ok());
    shape.row([
        ("oid", oid(role_oid(role.number))),
        ("rolname", text(&role.name)),
        ("rolsuper", has(RoleAttribute::Superuser)),
        ("rolinherit", has(RoleAttribute::Inherit)),
        ("rolcreaterole", has(RoleAttribute::CreateRole)),
        ("rolcreatedb", has(RoleAttribute::CreateDatabase)),
        ("rolcanlogin", has(RoleAttribute::Login)),
        ("rolreplication", has(RoleAttribute::Replication)),
        ("rolbypassrls", has(RoleAttribute::BypassRowSecurity)),
        ("rolconnlimit", int4(limit.unwrap_or(-1))),
        ("rolpassword", verifier.map_or(Datum::Null, text)),
        ("rolvaliduntil", role.valid_until.map_or(Datum::Null, Datum::Timestamptz)),
    ])
}

fn settings(shape: &RelationDefinition, source: &SystemContext) -> Vec<Row> {
    let row = |setting: SettingDescription<'_>| {
        let words = setting.words.map(|words| array(words.iter().map(text).collect()));
        shape.row([
            ("name", text(setting.name)),
            ("setting", text(setting.in_unit(setting.value))),
            ("unit", setting.unit().map_or(Datum::Null, text)),
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
            ("boot_val", text(setting.in_unit(setting.default))),
            ("reset_val", text(setting.in_unit(setting.initial))),
            ("pending_restart", Datum::Bool(false)),
        ])
    };
    source.settings.describe().map(row).collect()
}

fn owner_of(sequence: &Sequence, source: &SystemContext) -> String {
    let owner = source.catalog.access(AccessSubject::Relation(sequence.oid)).owner;
    source.catalog.role(owner).map(|role| role.name.clone()).unwrap_or_default()
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
            ("sequenceowner", text(owner_of(sequence, source))),
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

/// Returns microseconds of the Unix epoch as a `timestamptz`.
pub(super) fn timestamptz(unix_micros: i64) -> Datum {
    Datum::Timestamptz(unix_micros.saturating_sub(UNIX_EPOCH_SECONDS * 1_000_000))
}
