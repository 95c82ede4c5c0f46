//! System catalogs, system views and table functions: rows that the server computes.
//!
//! The binder finds their columns through [`SystemNames`]; scans read their rows from a
//! [`SystemContext`]. Views of schema `bennu` are declared in [`bennu_views`]. Relations of
//! `pg_catalog` and `information_schema` are defined in [`relation_definitions`]: views have a
//! query ([`view_query`]), other relations a function. The rows of most depend on the
//! catalog alone and are cached in its [`view_cache`].

mod bennu_views;
mod coprocessors;
mod definition;
mod eventual_indexes;
mod functions;
mod history;
mod locks;
mod reg_names;
mod catalog_objects;
mod pg_cast;
mod pg_catalog;
mod pg_depend;
mod pg_opclass;
mod pg_proc;
mod pg_trigger;
mod pg_type;
mod privileges;
mod pseudo_types;
mod session;
mod table_definition;
mod view_query;
mod relation_definitions;
mod view_cache;
mod constants;
mod updatable;
mod usage;
mod user_functions;
mod value;
mod views;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use store::{TableId, Timestamp, Transaction};
use types::datatype::RegKind;
use types::expr::Routine;
use types::text::TextStyle;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Datum, SqlType};

use crate::advisory::SessionLocks;
use crate::ast::TableName;
use crate::binder::{self, EndpointShape, SEQUENCE_ROWS, SessionConstants, SystemCatalog};
use crate::catalog::Catalog;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::privilege;
use crate::catalog::access::role::{READ_ALL_STATS_ROLE, SessionRoles};
use crate::catalog::policy::RowSecurityMode;
use crate::catalog::table::{Index, Table};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::exec::{EndpointRequest, FollowedViews, HistoryBegin, SystemSource};
use crate::logical::{Origin, OutputColumn};
use crate::notifications::SessionNotifications;
use crate::plan::Plan;
use crate::session_objects::SessionObjects;
use crate::settings::Settings;
use crate::system::value::text;
use crate::system::view_cache::SystemViewCache;
use crate::system::view_query::ViewDependency;
use crate::system::views::DefinitionContext;
use crate::table_coprocessors::CoprocessorRegistry;

pub use bennu_views::{SystemView, SystemViewColumn, VIEWS};
pub use functions::{CatalogNames, ChangedSetting, ChangedSettings};
pub(crate) use session::exported_named;

type Row = Vec<Datum>;

/// Columns of system views and table functions, for the binder.
pub struct SystemNames<'e> {
    /// The callable endpoints of coprocessors; `None` if there are none.
    coprocessors: Option<&'e CoprocessorRegistry>,
    /// The settings that `reg…` literals are resolved with; without them no name is checked.
    settings: Option<&'e Settings>,
}

impl SystemNames<'_> {
    /// Returns the names of an engine, with its endpoints.
    pub fn of(engine: &Engine) -> SystemNames<'_> {
        SystemNames { coprocessors: Some(&engine.coprocessors), settings: None }
    }
}

impl<'e> SystemNames<'e> {
    /// Returns the names with `reg…` literals resolved by a session's search path.
    #[must_use]
    pub fn for_session(self, settings: &'e Settings) -> SystemNames<'e> {
        SystemNames { settings: Some(settings), ..self }
    }
}

impl SystemCatalog for SystemNames<'_> {
    fn view(&self, schema: Option<&str>, name: &str) -> Option<Vec<OutputColumn>> {
        let shape = relation_definitions::find(schema, name)?;
        let column = |(at, (name, sql_type)): (usize, &(&str, SqlType))| OutputColumn {
            name: (*name).to_owned(),
            sql_type: sql_type.clone(),
            origin: Some((Origin::System(shape.oid), at)),
        };
        Some(shape.columns.iter().enumerate().map(column).collect())
    }

    fn table_oid(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        relation_definitions::find(schema, name)
            .filter(|shape| shape.is_table)
            .map(|shape| shape.oid)
    }

    fn check_name(&self, catalog: &Catalog, kind: RegKind, text: &str) -> Result<()> {
        let Some(settings) = self.settings else { return Ok(()) };
        let viewer = DefinitionContext { catalog, settings, coprocessors: None };
        if kind == RegKind::Class && catalog.find_text(text, &viewer.search_path())?.is_some() {
            return Ok(());
        }
        reg_names::oid_of(&viewer, &SystemViewCache::of(catalog).objects, kind, text).map(drop)
    }

    fn endpoint(&self, table: &Table, name: &str) -> Result<EndpointShape> {
        match self.coprocessors {
            Some(coprocessors) => coprocessors::endpoint_shape(coprocessors, table, name),
            None => Err(binder::no_endpoint(table, name)),
        }
    }
}

/// Returns true if a name is that of a system catalog that is a table in PostgreSQL.
pub(crate) fn is_catalog_table(name: &TableName) -> bool {
    let schema = name.schema.as_ref().map(|schema| schema.value.as_str());
    relation_definitions::find(schema, &name.name.value).is_some_and(|shape| shape.is_table)
}

/// Returns the OID of the relation and the attribute number that each column of a result comes
/// from; zeros for a computed column.
pub(crate) fn origins(catalog: &Catalog, columns: &[OutputColumn]) -> Vec<(u32, i16)> {
    let number = |position: usize| i16::try_from(position + 1).unwrap_or(0);
    let origin = |column: &OutputColumn| match column.origin? {
        (Origin::System(oid), position) => Some((oid, number(position))),
        (Origin::Relation(oid), position) => match catalog.table(oid) {
            Some(table) => Some((
                catalog_objects::user_oid(oid),
                catalog_objects::attribute_number(table, position),
            )),
            None => catalog.view(oid).map(|_| (catalog_objects::user_oid(oid), number(position))),
        },
    };
    columns.iter().map(|column| origin(column).unwrap_or_default()).collect()
}

/// Context of system views and functions for one statement.
#[derive(Clone)]
pub struct SystemContext {
    /// The engine.
    pub engine: Arc<Engine>,
    /// The catalog that the statement sees.
    pub catalog: Arc<Catalog>,
    /// The session's settings.
    pub settings: Settings,
    /// The statement's transaction.
    pub transaction: Arc<Transaction>,
    /// Setting changes by functions of the statement.
    pub changed: Arc<ChangedSettings>,
    /// The session's advisory locks.
    pub locks: Arc<SessionLocks>,
    /// The session's notifications.
    pub notifications: Arc<SessionNotifications>,
    /// The session's prepared statements and cursors.
    pub own_objects: Arc<SessionObjects>,
    /// Set by a request to cancel the statement.
    pub cancelled: Arc<AtomicBool>,
    /// Values that are constant within the session.
    pub constants: Arc<SessionConstants>,
    /// Nesting depth of the trigger calls around the statement.
    pub trigger_depth: usize,
    /// Executes the user-defined functions that the statement calls.
    pub routines: Arc<dyn RoutineExecutor>,
}

/// Executor of user-defined functions.
pub trait RoutineExecutor: Send + Sync {
    /// Executes a call for the statement of `source` and returns its rows: at most one unless the
    /// function returns a set.
    ///
    /// # Errors
    ///
    /// Errors of the statements of the function.
    fn rows(
        &self,
        source: &SystemContext,
        routine: &Routine,
        arguments: Vec<Datum>,
    ) -> Result<Vec<Row>>;

    /// Returns an executor for the same statement with other settings.
    fn for_other_settings(&self) -> Arc<dyn RoutineExecutor>;
}

impl SystemContext {
    /// Returns the settings that the texts of definitions depend on.
    fn text_settings(&self) -> String {
        let portable = self.settings.is_on("portable_definitions");
        let TextStyle { time_zone, formats, .. } = self.settings.style();
        format!("{:?} {time_zone:?} {formats:?} {portable}", self.settings.search_path())
    }

    /// Returns the tables that views of the storage and of statistics show to the role of the
    /// session: they contain values of keys and columns. Members of `pg_read_all_stats` see all.
    fn readable_tables(&self) -> Vec<&Arc<Table>> {
        let role = self.settings.roles().current.number;
        let mut tables = self.catalog.tables();
        tables.retain(|table| !self.catalog.has_row_security(table, role, RowSecurityMode::On));
        if !self.catalog.has_privileges_of(role, READ_ALL_STATS_ROLE) {
            tables.retain(|table| {
                let subject = AccessSubject::Relation(table.oid);
                self.catalog.privileges_on(role, subject).0 & privilege::SELECT != 0
            });
        }
        tables
    }

    fn viewer(&self) -> DefinitionContext<'_> {
        DefinitionContext {
            catalog: &self.catalog,
            settings: &self.settings,
            coprocessors: Some(&self.engine.coprocessors),
        }
    }
}

impl SystemSource for SystemContext {
    fn rows(&self, name: &str, arguments: &[Datum]) -> Result<Vec<Row>> {
        if name == SEQUENCE_ROWS {
            return sequence_row(self, arguments);
        }
        if let Some(name) = name.strip_prefix("bennu.") {
            let mut views = VIEWS.iter();
            let view = views.find(|view| view.name == name).ok_or_else(|| no_rows(name))?;
            return (view.rows)(self);
        }
        let shape = shape_named(name).ok_or_else(|| no_rows(name))?;
        let snapshot = SystemViewCache::of(&self.catalog);
        Ok(views::rows(shape, &snapshot.objects, self)?.unwrap_or_default())
    }

    fn followed_views(&self, index: &Index) -> Result<FollowedViews> {
        eventual_indexes::views(self, index)
    }

    fn shared_rows(
        &self,
        name: &str,
        run: &dyn Fn(&Arc<Plan>) -> Result<Vec<Batch>>,
    ) -> Result<Option<Arc<Vec<Batch>>>> {
        let Some(shape) = shape_named(name) else { return Ok(None) };
        let snapshot = SystemViewCache::of(&self.catalog);
        if let Some(query) = &shape.query {
            let names = SystemNames { coprocessors: None, settings: None };
            let plan = query.plan(&shape.columns, &self.catalog, &names)?;
            let settings = match query.dependency {
                ViewDependency::Catalog => self.text_settings(),
                ViewDependency::Role => {
                    format!("{} {}", self.text_settings(), self.settings.roles().current.number)
                }
                ViewDependency::Other => return run(&plan).map(|rows| Some(Arc::new(rows))),
            };
            return snapshot.view(shape, settings, || run(&plan).map(Some));
        }
        if shape.name == "pg_class" && self.settings.is_on("portable_definitions") {
            return Ok(None);
        }
        snapshot.view(shape, String::new(), || {
            let rows = pg_catalog::rows(shape, &snapshot.objects, &self.catalog);
            let types: Vec<DataType> =
                shape.columns.iter().map(|(_, of)| of.base.clone()).collect();
            let batch = |rows: &[Row]| Batch::from_rows(&types, rows);
            Ok(rows.map(|rows| rows.chunks(BATCH_ROWS).map(batch).collect()))
        })
    }

    fn history_begin(&self, table: &Table, columns: &[usize]) -> Result<HistoryBegin> {
        history::history_begin(self, table, columns)
    }

    fn index_history_begin(&self, table: &Table, index: &Index) -> Result<Timestamp> {
        history::index_history_begin(self, table, index)
    }

    fn row_ids(&self, table: TableId, count: u64) -> Result<Range<u64>> {
        self.engine.row_ids.take(table, count)
    }

    fn routine_rows(&self, routine: &Routine, arguments: Vec<Datum>) -> Result<Vec<Row>> {
        self.routines.rows(self, routine, arguments)
    }

    fn call_endpoint(&self, request: &EndpointRequest<'_>) -> Result<Vec<Row>> {
        coprocessors::call_endpoint(self, request)
    }
}

fn no_rows(name: &str) -> Error {
    err!(INTERNAL_ERROR: "no rows for system view \"{name}\"")
}

/// Returns the definition of a relation of `pg_catalog` or `information_schema` by its full name.
fn shape_named(name: &str) -> Option<&'static relation_definitions::RelationDefinition> {
    match name.split_once('.') {
        Some((schema, name)) => relation_definitions::find(Some(schema), name),
        None => relation_definitions::find(None, name),
    }
}

/// Returns the row of a sequence that is queried as a table.
fn sequence_row(source: &SystemContext, arguments: &[Datum]) -> Result<Vec<Row>> {
    let number = arguments.first().and_then(Datum::as_i64);
    let number = number.and_then(|number| u32::try_from(number).ok());
    let Some(sequence) = number.and_then(|number| source.catalog.sequence(number)) else {
        return Ok(Vec::new());
    };
    let (value, is_called) = source.engine.sequences.state_of(sequence)?;
    Ok(vec![vec![Datum::Int8(value), Datum::Int8(0), Datum::Bool(is_called)]])
}

/// Returns the values of session information functions that the binder replaces by constants.
pub fn session_constants(
    engine: &Engine,
    settings: &Settings,
    process_id: i32,
) -> SessionConstants {
    let database = engine.record().map(|record| record.name.clone()).unwrap_or_default();
    let version = format!("PostgreSQL {}", settings.value("server_version"));
    let mut constants = SessionConstants::new();
    constants.set_search_path(Arc::new(settings.search_path()));
    set_roles(&mut constants, settings.roles());
    constants.insert("current_database", text(&database));
    constants.insert("current catalog", text(&database));
    constants.insert("version", text(version));
    constants.insert("pg_backend_pid", Datum::Int4(process_id));
    constants
}

/// Sets the roles of a session, which the binder replaces `current_user` and so on by.
pub fn set_roles(constants: &mut SessionConstants, roles: &Arc<SessionRoles>) {
    for name in ["current_user", "user", "current_role"] {
        constants.insert(name, text(&*roles.current.name));
    }
    constants.insert("session_user", text(&*roles.session.name));
    constants.set_roles(Arc::clone(roles));
}
