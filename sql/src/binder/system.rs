//! Interfaces of the binder to the server: system views, table functions, session constants.

use std::sync::Arc;

use ahash::AHashMap;
use types::Datum;
use types::datatype::RegKind;

use crate::catalog::Catalog;
use crate::catalog::access::role::SessionRoles;
use crate::catalog::name::SearchPath;
use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::logical::OutputColumn;

/// System relations: tables and functions whose rows the server computes.
pub trait SystemCatalog {
    /// Returns the columns of a system view.
    fn view(&self, schema: Option<&str>, name: &str) -> Option<Vec<OutputColumn>>;

    /// Returns the OID of a system view that is a table in PostgreSQL.
    fn table_oid(&self, _schema: Option<&str>, _name: &str) -> Option<u32> {
        None
    }

    /// Checks that the object that a literal of a `reg…` type names exists. The default checks
    /// nothing, for texts of the catalog.
    ///
    /// # Errors
    ///
    /// PostgreSQL's if there is no object of this name.
    fn check_name(&self, _catalog: &Catalog, _kind: RegKind, _text: &str) -> Result<()> {
        Ok(())
    }

    /// Returns the endpoint that is attached to a table under this name.
    ///
    /// # Errors
    ///
    /// 42704 if there is none; 42809 and 55000 if it cannot be called.
    fn endpoint(&self, table: &Table, name: &str) -> Result<EndpointShape> {
        Err(no_endpoint(table, name))
    }
}

/// Returns the error for an endpoint that is not attached.
pub fn no_endpoint(table: &Table, name: &str) -> Error {
    err!(UNDEFINED_OBJECT: "table \"{}\" has no endpoint \"{name}\" attached", table.name)
}

/// The signature of an endpoint.
#[derive(Debug, Clone)]
pub struct EndpointShape {
    /// The names of its arguments.
    pub parameters: Vec<&'static str>,
    /// The columns of its result.
    pub columns: Vec<OutputColumn>,
}

/// The search path, and values of the functions that are constant within a session, by name:
/// `current_user`, `session_user`, `user`, `current_database`, `current catalog`, `version`,
/// `pg_backend_pid`. Names that are `current_…` or end in `user` are of type `name`. Without a
/// session there are none, and calls of the functions are bound.
#[derive(Debug, Clone, Default)]
pub struct SessionConstants {
    values: AHashMap<String, Datum>,
    search_path: Arc<SearchPath>,
    roles: Arc<SessionRoles>,
}

impl SessionConstants {
    /// Returns no constants.
    pub fn new() -> SessionConstants {
        SessionConstants::default()
    }

    /// Returns constants with dummy values, for callers that need no values.
    pub fn unknown() -> SessionConstants {
        let mut constants = SessionConstants::default();
        for name in ["current_user", "session_user", "user", "current_database", "current_catalog"]
        {
            constants.insert(name, Datum::text(""));
        }
        constants.insert("version", Datum::text(""));
        constants.insert("pg_backend_pid", Datum::Int4(0));
        constants
    }

    /// Adds a constant.
    pub fn insert(&mut self, name: impl Into<String>, value: Datum) {
        self.values.insert(name.into(), value);
    }

    /// Sets the search path for unqualified names.
    pub fn set_search_path(&mut self, path: Arc<SearchPath>) {
        self.search_path = path;
    }

    /// Returns the search path for unqualified names.
    pub fn search_path(&self) -> &Arc<SearchPath> {
        &self.search_path
    }

    /// Sets the roles of the session.
    pub fn set_roles(&mut self, roles: Arc<SessionRoles>) {
        self.roles = roles;
    }

    /// Returns the roles of the session.
    pub fn roles(&self) -> &Arc<SessionRoles> {
        &self.roles
    }

    /// Returns whether they are of a session: expressions stored in the catalog are bound without
    /// one.
    pub fn are_of_session(&self) -> bool {
        !self.values.is_empty()
    }

    /// Returns the value of a function.
    pub fn value(&self, name: &str) -> Option<&Datum> {
        self.values.get(name)
    }
}
