//! System information and administration functions (PostgreSQL's documentation, 9.26 and 9.27)
//! that read the catalog or the session, and the setting changes of a running statement.
//!
//! The executor calls them by name through [`CatalogAccess`]; functions on privileges, names, text
//! search and sessions are in modules of their own.

use std::sync::Arc;

use store::TableId;
use types::datatype::RegKind;
use types::datum::{Nested, Record};
use types::encoding::Encoding;
use types::expr::Routine;
use types::system::CatalogAccess;
use types::{DataType, Datum, FixedWidthKind, SqlType};

use crate::ast::Collation;
use crate::catalog::Catalog;
use crate::catalog::access::role::SessionRole;
use crate::catalog::function::Function;
use crate::catalog::name::SearchPath;
use crate::catalog::policy::RowSecurityMode;
use crate::catalog::user_type::{OID_OFFSET, UserType};
use crate::catalog_reader::store_tables_of;
use crate::deparse::Layout;
use crate::error::{Error, Result, sqlstate};
use crate::settings::Settings;
use crate::system::catalog_objects::{
    AUTHID, CatalogObjects, DATABASE_CLASS, SystemRelation, SystemRelationKind, database_of_oid,
    hashed_oid,
};
use crate::system::definition::{self, qualified};
use crate::system::relation_definitions::PG_CATALOG;
use crate::system::updatable::Updatable;
use crate::system::value::{array, int4, int8, text, text_or_null};
use crate::system::view_cache::SystemViewCache;
use crate::system::views::{DefinitionContext, roles, timestamptz};
use crate::system::{
    Row, SystemContext, constants, eventual_indexes, pg_proc, privileges, pseudo_types, reg_names,
    session, table_definition, user_functions,
};

/// The arguments of a call. Arguments of strict functions are not NULL.
pub(super) type Arguments<'a> = &'a [Datum];

fn text_at(arguments: Arguments<'_>, at: usize) -> &str {
    arguments.get(at).and_then(Datum::as_str).unwrap_or_default()
}

/// Returns an argument as an OID; 0 if it is missing.
pub(super) fn oid_at(arguments: Arguments<'_>, at: usize) -> u32 {
    let value = arguments.get(at).and_then(Datum::as_i64);
    value.and_then(|value| u32::try_from(value).ok()).unwrap_or_default()
}

fn is_true(arguments: Arguments<'_>, at: usize) -> bool {
    arguments.get(at) == Some(&Datum::Bool(true))
}

/// The names of one catalog, for input and output of values of `reg…` types.
pub struct CatalogNames {
    /// The catalog.
    pub catalog: Arc<Catalog>,
    /// The session's settings.
    pub settings: Settings,
}

impl CatalogAccess for CatalogNames {
    fn call(&self, function: &str, _: &[Datum]) -> types::Result<Datum> {
        let message = format!("function {function}() cannot be called here");
        Err(types::Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message))
    }

    fn reg_name(&self, kind: RegKind, oid: u32) -> Option<String> {
        let viewer = DefinitionContext {
            catalog: &self.catalog,
            settings: &self.settings,
            coprocessors: None,
        };
        reg_names::name_of(&viewer, &SystemViewCache::of(&self.catalog).objects, kind, oid)
    }

    fn reg_oid(&self, kind: RegKind, text: &str) -> types::Result<u32> {
        let viewer = DefinitionContext {
            catalog: &self.catalog,
            settings: &self.settings,
            coprocessors: None,
        };
        let snapshot = SystemViewCache::of(&self.catalog);
        reg_names::oid_of(&viewer, &snapshot.objects, kind, text).map_err(Error::into_value_error)
    }
}

impl CatalogAccess for SystemContext {
    fn as_role(&self, role: u32) -> Option<Arc<dyn CatalogAccess>> {
        let role = SessionRole::of(self.catalog.role(role)?);
        let mut settings = self.settings.clone();
        settings.enter_definer(role);
        let routines = self.routines.for_other_settings();
        Some(Arc::new(SystemContext { settings, routines, ..self.clone() }))
    }

    fn call(&self, function: &str, arguments: &[Datum]) -> types::Result<Datum> {
        let snapshot = SystemViewCache::of(&self.catalog);
        call(self, &snapshot.objects, function, arguments).map_err(Error::into_value_error)
    }

    fn call_routine(&self, routine: &Routine, arguments: Vec<Datum>) -> types::Result<Datum> {
        let rows = self.routines.rows(self, routine, arguments);
        let row = rows.map_err(Error::into_value_error)?.into_iter().next();
        Ok(row.map_or(Datum::Null, |row| value_of(routine, row)))
    }

    fn reg_name(&self, kind: RegKind, oid: u32) -> Option<String> {
        reg_names::name_of(&self.viewer(), &SystemViewCache::of(&self.catalog).objects, kind, oid)
    }

    fn reg_oid(&self, kind: RegKind, text: &str) -> types::Result<u32> {
        let snapshot = SystemViewCache::of(&self.catalog);
        reg_names::oid_of(&self.viewer(), &snapshot.objects, kind, text)
            .map_err(Error::into_value_error)
    }
}

/// Returns the value of a user-defined function from the row that it returned.
fn value_of(routine: &Routine, mut row: Row) -> Datum {
    match &routine.fields {
        Some(fields) => {
            let record = Record { of: None, fields: Arc::clone(fields), values: row };
            Datum::Nested(Nested::Record(Arc::new(record)))
        }
        None => row.pop().unwrap_or(Datum::Null),
    }
}

fn call(
    source: &SystemContext,
    objects: &CatalogObjects,
    function: &str,
    arguments: Arguments<'_>,
) -> Result<Datum> {
    let first = oid_at(arguments, 0);
    if let Some(kind) = function.strip_prefix("to_reg") {
        return to_reg(source, objects, kind, text_at(arguments, 0));
    }
    if function.starts_with("has_") || ["pg_has_role", "acldefault"].contains(&function) {
        return privileges::has_privilege(source, objects, function, arguments);
    }
    if function.ends_with("_is_visible") {
        return Ok(visible(source, objects, function, first));
    }
    if let (Some(value), []) = (source.constants.value(function), arguments) {
        return Ok(value.clone());
    }
    if let Some(answer) = session::call(source, function, arguments)? {
        return Ok(answer);
    }
    if function.ends_with("_description") {
        return Ok(text_or_null(description(objects, function, arguments)));
    }
    if let Some(answer) = defined(source, objects, function, arguments)? {
        return Ok(answer);
    }
    Ok(match function {
        "wait_for_index" => eventual_indexes::wait(source, objects, arguments)?,
        "pg_relation_size" | "pg_table_size" | "pg_indexes_size" | "pg_total_relation_size" => {
            relation_size(source, objects, function, first)?
        }
        // The default tablespace is the data directory.
        "pg_tablespace_location" => text(""),
        "pg_database_size" => database_size(source, arguments)?,
        "current_schema" => {
            let schema = source.catalog.current_schema(source.constants.search_path());
            text_or_null(schema)
        }
        "current_setting" => current_setting(source, arguments)?,
        "set_config" => set_config(source, arguments)?,
        "current_schemas" => current_schemas(source, objects, arguments),
        "getdatabaseencoding" => text("UTF8"),
        "pg_client_encoding" => current_setting(source, &[Datum::text("client_encoding")])?,
        "pg_char_to_encoding" => {
            int4(Encoding::by_name(text_at(arguments, 0)).map_or(-1, |found| found.number))
        }
        "pg_encoding_to_char" => {
            let number = arguments[0].as_i64().and_then(|number| i32::try_from(number).ok());
            text(number.and_then(Encoding::by_number).map_or("", |found| found.name))
        }
        "pg_relation_is_updatable" | "pg_column_is_updatable" => {
            updatable(source, objects, function, arguments)
        }
        "pg_is_in_recovery" | "pg_is_other_temp_schema" | "pg_relation_is_publishable" => {
            Datum::Bool(false)
        }
        "row_security_active" => row_security_active(source, objects, arguments)?,
        "pg_postmaster_start_time" | "pg_conf_load_time" => {
            timestamptz(source.engine.opened_micros)
        }
        "pg_my_temp_schema" => Datum::Int8(0),
        "pg_trigger_depth" => int4(source.trigger_depth),
        "txid_current" | "txid_current_if_assigned" => int8(source.transaction.id()),
        "age" => age(source, arguments[0].as_i64().unwrap_or_default()),
        "pg_current_xact_id" | "pg_current_xact_id_if_assigned" => {
            let number = source.transaction.id();
            Datum::Int8(FixedWidthKind::Xid8.of_unsigned(number))
        }
        "inet_client_addr" | "inet_client_port" | "inet_server_addr" | "inet_server_port" => {
            // PostgreSQL returns NULL to clients on Unix-domain sockets. Sessions do not know the
            // socket.
            Datum::Null
        }
        _ => bail!(FEATURE_NOT_SUPPORTED: "{function}() is not supported"),
    })
}

/// Returns the number of transactions since a transaction id of 32 bits. The numbers 0 to 2 are no
/// transactions; they are infinitely old, as in PostgreSQL.
fn age(source: &SystemContext, xid: i64) -> Datum {
    let current = source.transaction.id() as u32;
    Datum::Int4(if xid < 3 { i32::MAX } else { current.wrapping_sub(xid as u32) as i32 })
}

fn updatable(
    source: &SystemContext,
    objects: &CatalogObjects,
    function: &str,
    arguments: Arguments<'_>,
) -> Datum {
    let relation = objects.relation(oid_at(arguments, 0));
    let snapshot = SystemViewCache::of(&source.catalog);
    let of = relation.map(|one| snapshot.updatable(&source.catalog, one));
    if function == "pg_relation_is_updatable" {
        let with_triggers = arguments.get(1).and_then(Datum::as_bool) == Some(true);
        let of_triggers = relation.filter(|_| with_triggers).map_or(0, Updatable::trigger_events);
        return int4(of.map_or(0, |of| of.events()) | of_triggers);
    }
    let number = arguments[1].as_i64().unwrap_or_default();
    Datum::Bool(number > 0 && of.is_some_and(|of| of.has_column(number)))
}

fn index_definition(
    source: &SystemContext,
    objects: &CatalogObjects,
    arguments: Arguments<'_>,
) -> Datum {
    let Some(relation) = objects.relation(oid_at(arguments, 0)) else { return Datum::Null };
    let column = arguments.get(1).and_then(Datum::as_i64).unwrap_or_default() as i32;
    let (viewer, pretty) = (source.viewer(), is_true(arguments, 2));
    let path = viewer.search_path();
    let shown = definition::IndexDefinitionStyle {
        reader: viewer.reader(&path),
        layout: Layout { pretty, ..Layout::QUERY },
        hides_schema: pretty && reg_names::is_visible(&viewer, objects, relation),
        is_portable: viewer.settings.is_on("portable_definitions"),
    };
    text_or_null(definition::index(objects, relation, column, shown))
}

/// Returns the statements that create a table.
fn create_statement(
    source: &SystemContext,
    objects: &CatalogObjects,
    number: u32,
) -> Result<Datum> {
    let Some(relation) = objects.relation(number) else { return Ok(Datum::Null) };
    let table = match &relation.kind {
        SystemRelationKind::Table(table) => table,
        SystemRelationKind::View(_) | SystemRelationKind::Materialized(..) => {
            let name = &relation.name;
            let error = err!(WRONG_OBJECT_TYPE: "\"{name}\" is not a table");
            let name = name.replace('\'', "''");
            return Err(error.with_hint(format!("Use SELECT pg_get_viewdef('{name}').")));
        }
        _ => bail!(WRONG_OBJECT_TYPE: "\"{}\" is not a table", relation.name),
    };
    let text = table_definition::statements(objects, (relation, table), &source.viewer());
    Ok(text_or_null(text))
}

/// Returns the comment that COMMENT ON has set.
fn description<'o>(
    objects: &'o CatalogObjects,
    function: &str,
    arguments: Arguments<'_>,
) -> Option<&'o str> {
    let first = oid_at(arguments, 0);
    let class = arguments.get(1).and_then(Datum::as_str);
    let comment = match function {
        "col_description" => {
            let column = arguments.get(1).and_then(Datum::as_i64).unwrap_or_default() as i32;
            let class = objects.relation_named(PG_CATALOG, "pg_class").map_or(0, |of| of.oid);
            objects.comments.get(&(class, first, column))
        }
        "shobj_description" => {
            let class = match class {
                Some("pg_database") => DATABASE_CLASS,
                Some("pg_authid") => AUTHID,
                _ => return None,
            };
            objects.comments.get(&(class, first, 0))
        }
        _ => {
            let class = class.map(|name| objects.relation_named(PG_CATALOG, name).map(|of| of.oid));
            let is_it = |(kind, of, number): &(u32, u32, i32)| {
                *of == first
                    && *number == 0
                    && ![DATABASE_CLASS, AUTHID].contains(kind)
                    && class.is_none_or(|class| class == Some(*kind))
            };
            let mut comments = objects.comments.iter();
            comments.find(|(address, _)| is_it(address)).map(|(_, comment)| comment)
        }
    };
    comment.map(|comment| &**comment)
}

/// Calls a function that returns a definition; `None` for other functions.
fn defined(
    source: &SystemContext,
    objects: &CatalogObjects,
    function: &str,
    arguments: Arguments<'_>,
) -> Result<Option<Datum>> {
    let first = oid_at(arguments, 0);
    Ok(Some(match function {
        "format_type" => format_type(&source.catalog, &source.viewer().search_path(), arguments),
        "pg_get_constraintdef" => {
            let (viewer, found) = (source.viewer(), objects.constraint(first));
            let path = viewer.search_path();
            let reader = viewer.reader(&path);
            let shown = (reader, Layout { pretty: is_true(arguments, 1), ..Layout::QUERY });
            let is_visible = |one: &SystemRelation| reg_names::is_visible(&viewer, objects, one);
            text_or_null(found.map(|one| definition::constraint(objects, one, shown, &is_visible)))
        }
        "pg_get_expr" => shown_expression(source, objects, arguments),
        "pg_get_indexdef" => index_definition(source, objects, arguments),
        "pg_get_viewdef" => view_definition(source, objects, arguments)?,
        "show_create_table" => create_statement(source, objects, first)?,
        "pg_get_serial_sequence" => serial_sequence(source, objects, arguments)?,
        "pg_get_userbyid" => {
            let role = roles(&source.viewer()).into_iter().find(|(number, _)| *number == first);
            text(role.map_or_else(|| format!("unknown (OID={first})"), |(_, name)| name))
        }
        "pg_get_function_arguments" | "pg_get_function_identity_arguments" => {
            let of_users = of_user_function(source, first, |names, one| {
                names.arguments(one, function == "pg_get_function_arguments")
            });
            let built_in = || pg_proc::by_oid(first).map(|one| one.argument_list(", "));
            text_or_null(of_users.or_else(built_in))
        }
        "pg_get_function_result" => {
            let of_users = of_user_function(source, first, |names, one| names.result(one));
            let built_in = || pg_proc::by_oid(first).map(|one| one.result());
            text_or_null(of_users.unwrap_or_else(built_in))
        }
        "pg_get_functiondef" | "pg_get_function_sqlbody" => {
            let text = of_user_function(source, first, |names, one| match function {
                "pg_get_functiondef" => Some(names.definition(one)),
                _ => names.body(one),
            });
            text_or_null(text.flatten())
        }
        "pg_get_function_arg_default" => {
            let Some(Datum::Int4(number)) = arguments.get(1) else { return Ok(None) };
            let of_users =
                of_user_function(source, first, |names, one| names.argument_default(one, *number));
            text_or_null(of_users.flatten())
        }
        "pg_get_ruledef" => {
            let mut views = objects.relations.iter();
            let view = views.find(|one| hashed_oid(one.oid, "_RETURN") == first);
            let viewer = source.viewer();
            let pretty = is_true(arguments, 1);
            text_or_null(view.and_then(|view| definition::rule(view, &viewer, objects, pretty)))
        }
        "pg_get_triggerdef" => {
            let viewer = source.viewer();
            let path = viewer.search_path();
            let layout = Layout { pretty: is_true(arguments, 1), ..Layout::QUERY };
            text_or_null(definition::trigger(first, viewer.reader(&path), layout))
        }
        "pg_get_partkeydef" | "pg_get_statisticsobjdef_columns" => {
            // The catalog has no objects of this kind.
            Datum::Null
        }
        _ => return Ok(None),
    }))
}

/// `pg_get_viewdef` of a view by OID or name, with an optional argument for the layout.
/// `pg_get_expr`
fn shown_expression(
    source: &SystemContext,
    objects: &CatalogObjects,
    arguments: Arguments<'_>,
) -> Datum {
    let layout = Layout { pretty: is_true(arguments, 2), ..Layout::QUERY };
    let (viewer, relation) = (source.viewer(), objects.relation(oid_at(arguments, 1)));
    let path = viewer.search_path();
    let reader = viewer.reader(&path);
    let shown = |text| match definition::policy(text, relation, &viewer, layout) {
        Some(shown) => shown,
        None => definition::shown_expression(text, relation, reader, layout),
    };
    text_or_null(arguments[0].as_str().map(shown))
}

/// Returns whether the policies of a table apply to the current role.
fn row_security_active(
    source: &SystemContext,
    objects: &CatalogObjects,
    arguments: Arguments<'_>,
) -> Result<Datum> {
    let relation = match arguments.first() {
        Some(Datum::Text(name)) => Some(reg_names::relation(&source.viewer(), objects, name)?),
        _ => objects.relation(oid_at(arguments, 0)),
    };
    let role = source.settings.roles().current.number;
    let is_active = match relation.map(|relation| &relation.kind) {
        Some(SystemRelationKind::Table(table)) => {
            source.catalog.has_row_security(table, role, RowSecurityMode::On)
        }
        _ => false,
    };
    Ok(Datum::Bool(is_active))
}

fn view_definition(
    source: &SystemContext,
    objects: &CatalogObjects,
    arguments: Arguments<'_>,
) -> Result<Datum> {
    let viewer = source.viewer();
    let view = match arguments.first() {
        Some(Datum::Text(name)) => Some(reg_names::relation(&viewer, objects, name)?),
        _ => objects.relation(oid_at(arguments, 0)),
    };
    let layout = match arguments.get(1) {
        // The column at which lists are wrapped, if any.
        Some(Datum::Int4(width)) => {
            let width = usize::try_from(*width).unwrap_or(usize::MAX);
            Layout { pretty: true, wrap: Some(width) }
        }
        _ => Layout { pretty: is_true(arguments, 1), ..Layout::QUERY },
    };
    Ok(text_or_null(view.and_then(|view| definition::view(view, &viewer, layout))))
}

/// Calls `ask` with the user-defined function of an OID; `None` if it does not exist.
fn of_user_function<T>(
    source: &SystemContext,
    oid: u32,
    ask: impl FnOnce(&user_functions::FunctionNames<'_>, &Function) -> T,
) -> Option<T> {
    let function = source.catalog.function(oid.checked_sub(OID_OFFSET)?)?;
    let path = source.viewer().search_path();
    Some(ask(&user_functions::FunctionNames { catalog: &source.catalog, path: &path }, function))
}

fn to_reg(
    source: &SystemContext,
    objects: &CatalogObjects,
    kind: &str,
    name: &str,
) -> Result<Datum> {
    let kind = match kind {
        "class" => RegKind::Class,
        "collation" => RegKind::Collation,
        "namespace" => RegKind::Namespace,
        "oper" => RegKind::Oper,
        "operator" => RegKind::Operator,
        "proc" => RegKind::Proc,
        "procedure" => RegKind::Procedure,
        "role" => RegKind::Role,
        _ => RegKind::Type,
    };
    match reg_names::oid_of(&source.viewer(), objects, kind, name) {
        Ok(number) => Ok(Datum::Int8(i64::from(number))),
        Err(error) if error.sqlstate == sqlstate::INVALID_NAME => Err(error),
        Err(_) => Ok(Datum::Null),
    }
}

fn format_type(catalog: &Catalog, path: &SearchPath, arguments: Arguments<'_>) -> Datum {
    if arguments[0].is_null() {
        return Datum::Null;
    }
    let modifier = arguments[1].as_i64().unwrap_or(-1) as i32;
    let number = oid_at(arguments, 0);
    if let Some(known) = pseudo_types::sql_name(number) {
        return text(known);
    }
    let known = match number {
        0 => return text("-"),
        number => catalog.type_with_oid(number),
    };
    match known {
        // Without a modifier, `character` is written `bpchar`, which has no length.
        Some(SqlType { base: DataType::Char, .. }) if modifier < 0 && !arguments[1].is_null() => {
            text("bpchar")
        }
        Some(_) => text_or_null(catalog.shown_type_with(oid_at(arguments, 0), modifier, path)),
        None => text("???"),
    }
}

fn visible(source: &SystemContext, objects: &CatalogObjects, function: &str, oid: u32) -> Datum {
    let known = match function {
        "pg_table_is_visible" => objects
            .relation(oid)
            .map(|relation| reg_names::is_visible(&source.viewer(), objects, relation)),
        "pg_type_is_visible" => {
            let known = source.catalog.type_of_oid(oid);
            let found = |known: &UserType| {
                let path = source.viewer().search_path();
                let found = source.catalog.find_type(None, known.name(), &path);
                found.is_some_and(|found| found.number() == known.number())
            };
            match known {
                Some(known) => Some(found(known)),
                None => source.catalog.type_with_oid(oid).map(|_| true),
            }
        }
        "pg_function_is_visible" => {
            let of_users = of_user_function(source, oid, |names, one| names.is_visible(one));
            of_users.or_else(|| pg_proc::by_oid(oid).map(|_| true))
        }
        "pg_operator_is_visible" => pg_proc::operator_by_oid(oid).map(|_| true),
        "pg_opclass_is_visible" | "pg_opfamily_is_visible" => Some(true),
        "pg_collation_is_visible" => {
            Collation::ALL.into_iter().any(|one| one.oid() == oid).then_some(true)
        }
        "pg_ts_config_is_visible" => constants::name_of("pg_ts_config", oid).map(|_| true),
        "pg_ts_dict_is_visible" => constants::name_of("pg_ts_dict", oid).map(|_| true),
        _ => None,
    };
    known.map_or(Datum::Null, Datum::Bool)
}

/// Returns the relation of an argument that is a name or an OID.
pub(super) fn relation_at<'o>(
    source: &SystemContext,
    objects: &'o CatalogObjects,
    argument: &Datum,
) -> Result<Option<&'o SystemRelation>> {
    match argument {
        Datum::Text(name) => reg_names::relation(&source.viewer(), objects, name).map(Some),
        other => Ok(other.as_i64().and_then(|oid| objects.relation(u32::try_from(oid).ok()?))),
    }
}

fn serial_sequence(
    source: &SystemContext,
    objects: &CatalogObjects,
    arguments: Arguments<'_>,
) -> Result<Datum> {
    let table = reg_names::relation(&source.viewer(), objects, text_at(arguments, 0))?;
    let name = text_at(arguments, 1);
    let Some(column) = table.column(name) else {
        bail!(UNDEFINED_COLUMN: "column \"{name}\" of relation \"{}\" does not exist", table.name);
    };
    let sequence = objects.sequence_of(table.oid, column);
    Ok(text_or_null(sequence.map(|one| qualified(&one.schema, &one.name))))
}

fn relation_size(
    source: &SystemContext,
    objects: &CatalogObjects,
    function: &str,
    oid: u32,
) -> Result<Datum> {
    let Some(relation) = objects.relation(oid) else { return Ok(Datum::Null) };
    let (own, indexes) = match &relation.kind {
        SystemRelationKind::Table(table) | SystemRelationKind::Materialized(table, _) => {
            let indexes = table.indexes.iter().map(|index| index.spec.store_table);
            (Some(table.id), indexes.collect())
        }
        SystemRelationKind::Index(_, index) => (Some(index.spec.store_table), Vec::new()),
        // The primary key is stored in the table itself.
        _ => (None, Vec::new()),
    };
    let bytes = |tables: &[TableId]| -> store::Result<u64> {
        tables.iter().map(|table| source.engine.store().table_bytes(*table)).sum()
    };
    let bytes = match function {
        "pg_indexes_size" => bytes(&indexes),
        "pg_total_relation_size" => {
            bytes(own.as_slice()).and_then(|own| Ok(own + bytes(&indexes)?))
        }
        _ => bytes(own.as_slice()),
    };
    match bytes {
        Ok(bytes) => Ok(int8(bytes)),
        // A concurrent transaction has dropped it or replaced its storage.
        Err(store::Error::NoSuchTable(_)) => Ok(Datum::Null),
        Err(error) => Err(error.into()),
    }
}

fn database_size(source: &SystemContext, arguments: Arguments<'_>) -> Result<Datum> {
    let catalog = &source.catalog;
    let database = match arguments.first() {
        Some(Datum::Text(name)) => match catalog.database_named(name) {
            Some(database) => database,
            None => bail!(INVALID_CATALOG_NAME: "database \"{name}\" does not exist"),
        },
        Some(Datum::Int8(oid)) => {
            let database = u32::try_from(*oid).ok().and_then(|oid| database_of_oid(catalog, oid));
            let Some(database) = database else { return Ok(Datum::Null) };
            database
        }
        _ => return Ok(Datum::Null),
    };
    let store = source.engine.store();
    let mut bytes = 0;
    for table in store_tables_of(store, database)? {
        bytes += match store.table_bytes(table) {
            Ok(bytes) => bytes,
            // A concurrent transaction has dropped it or replaced its storage.
            Err(store::Error::NoSuchTable(_)) => 0,
            Err(error) => return Err(error.into()),
        };
    }
    Ok(int8(bytes))
}

fn current_setting(source: &SystemContext, arguments: Arguments<'_>) -> Result<Datum> {
    let settings = source.changed.settings(&source.settings);
    match settings.show(text_at(arguments, 0)) {
        Ok((_, value)) => Ok(text(value)),
        Err(_) if is_true(arguments, 1) => Ok(Datum::Null),
        Err(error) => Err(error),
    }
}

fn set_config(source: &SystemContext, arguments: Arguments<'_>) -> Result<Datum> {
    let [name, value, local] = arguments else { return Ok(Datum::Null) };
    let Some(name) = name.as_str() else {
        bail!(NULL_VALUE_NOT_ALLOWED: "SET requires parameter name");
    };
    let local = *local == Datum::Bool(true);
    let value =
        source.changed.set((&source.catalog, &source.settings), name, value.as_str(), local)?;
    Ok(text(value))
}

/// Settings that functions of the running statement change; the session adopts them at its end.
#[derive(Default)]
pub struct ChangedSettings(parking_lot::Mutex<SettingChangeList>);

/// The changes, in order.
#[derive(Default)]
struct SettingChangeList {
    list: Vec<ChangedSetting>,
    /// Incremented by each change of the list.
    generation: u64,
}

impl SettingChangeList {
    fn change(&mut self, change: impl FnOnce(&mut Vec<ChangedSetting>)) {
        change(&mut self.list);
        self.generation += 1;
    }
}

/// A change of a setting.
pub struct ChangedSetting {
    /// Its name.
    pub name: String,
    /// The new value; `None` for the default.
    pub value: Option<String>,
    /// Valid until the end of the transaction only, as with SET LOCAL.
    pub local: bool,
    /// The settings after the change.
    after: Settings,
}

impl ChangedSettings {
    /// Returns `before` with the changes applied.
    fn settings(&self, before: &Settings) -> Settings {
        let mut settings = before.clone();
        self.apply_to(&mut settings);
        settings
    }

    /// Records a change of a setting; returns the new value as SHOW displays it.
    ///
    /// # Errors
    ///
    /// See [`Settings::set`].
    pub fn set(
        &self,
        (catalog, before): (&Catalog, &Settings),
        name: &str,
        value: Option<&str>,
        local: bool,
    ) -> Result<String> {
        let mut settings = self.settings(before);
        settings.set_with(catalog, name, value)?;
        let shown = settings.show(name)?.1.to_owned();
        let (name, value) = (name.to_owned(), value.map(str::to_owned));
        let change = ChangedSetting { name, value, local, after: settings };
        self.0.lock().change(|list| list.push(change));
        Ok(shown)
    }

    /// Returns the number of changes.
    pub fn count(&self) -> usize {
        self.0.lock().list.len()
    }

    /// Returns a number that differs after each modification of the list of changes.
    pub fn generation(&self) -> u64 {
        self.0.lock().generation
    }

    /// Discards all changes but the first `count`.
    pub fn truncate(&self, count: usize) {
        self.0.lock().change(|list| list.truncate(count));
    }

    /// Records the settings of a function's SET clauses, which the caller has validated.
    pub fn push_function_settings(&self, settings: &[(String, String)], after: &Settings) {
        let noted = settings.iter().map(|(name, value)| ChangedSetting {
            name: name.clone(),
            value: Some(value.clone()),
            local: true,
            after: after.clone(),
        });
        self.0.lock().change(|list| list.extend(noted));
    }

    /// Discards the changes since there were `count` of them that are local and concern the
    /// settings of the function's SET clauses. Changes that the function made for the session
    /// stay.
    pub fn pop_function_settings(&self, settings: &[(String, String)], count: usize) {
        let is_of = |one: &ChangedSetting| {
            one.local && settings.iter().any(|(name, _)| name.eq_ignore_ascii_case(&one.name))
        };
        self.0.lock().change(|list| {
            let since = list.split_off(count.min(list.len()));
            list.extend(since.into_iter().filter(|one| !is_of(one)));
        });
    }

    /// Applies the changes to some settings.
    pub fn apply_to(&self, settings: &mut Settings) {
        for one in &self.0.lock().list {
            // `set` validated it before it was recorded.
            let _ = settings.restore(&one.name, &one.after);
        }
    }

    /// Removes and returns the changes.
    pub fn take(&self) -> Vec<ChangedSetting> {
        let mut noted = self.0.lock();
        if !noted.list.is_empty() {
            noted.generation += 1;
        }
        std::mem::take(&mut noted.list)
    }
}

/// Returns the existing schemas of the search path; if the argument is true, also the implicit
/// ones: the temporary schema and `pg_catalog`.
fn current_schemas(
    source: &SystemContext,
    objects: &CatalogObjects,
    arguments: Arguments<'_>,
) -> Datum {
    let path = source.viewer().search_path();
    let all = is_true(arguments, 0);
    let temp = path
        .of_relations()
        .take(usize::from(all))
        .filter(|_| path.temp().is_some_and(|temp| path.schemas().iter().all(|one| one != temp)));
    let temp = temp.map(String::as_str);
    let known = path.schemas().iter().map(String::as_str);
    let is_there = |name: &&str| {
        // A user may have the name of schema `bennu` of the system views.
        *name != "bennu" && objects.namespace_named(name).is_some()
    };
    let (temp, known) = (temp.filter(is_there), known.filter(is_there));
    let hidden = all && known.clone().all(|name| name != "pg_catalog");
    let hidden = hidden.then_some("pg_catalog");
    array(temp.chain(hidden).chain(known).map(text).collect())
}
