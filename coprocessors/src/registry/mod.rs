//! Registry of the coprocessors that can be attached to tables by name.
//!
//! ```text
//! ALTER TABLE t ATTACH COPROCESSOR audit WITH (table = 'log')
//!   -> Registry::factory("audit")        finds the factory
//!   -> Arguments::read                   checks the arguments against parameters and columns of t
//!   -> CoprocessorFactory::target        defines the table that it writes to: created or checked
//!   -> CoprocessorFactory::build         creates the observer, which joins the chain of t
//!   -> CoprocessorFactory::fill          processes the existing rows
//! ```
//!
//! All steps except the last run again whenever a chain is rebuilt: when the server starts, and
//! after other changes of the table. A program that embeds bennu adds factories with
//! [`Registry::add`]; [`audit`](crate::audit) can serve as a template. Endpoints, which are
//! attached in the same way and called by name, are added with [`Registry::add_endpoint`].

mod argument;
mod definition;
mod endpoint;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use store::env::Env;
use store::observer::RegionObserver;
use store::{TableDescriptor, TableId, Transaction};
use types::rowcode::RowLayout;
use types::{Error, Result, SqlType};

pub use argument::{ArgumentKind, Arguments, Parameter, ParameterRequirement};
pub use definition::{ColumnDefinition, TableDefinition};
pub use endpoint::{AnswerColumn, CallableEndpoint, EndpointCall, TableEndpoint};

/// A table's definition, for coprocessors.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSchema {
    /// Its id in the store.
    pub id: TableId,
    /// Its name.
    pub name: String,
    /// The columns, in the order of [`RowLayout::columns`].
    pub columns: Vec<ColumnSchema>,
    /// Storage layout of the rows.
    pub layout: Arc<RowLayout>,
    /// The descriptor in the store: families with their TTL and versions.
    pub descriptor: Arc<TableDescriptor>,
}

/// A column of a [`TableSchema`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Its name.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// NULL is rejected.
    pub not_null: bool,
}

impl TableSchema {
    /// Returns the position of a column by name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// The parameters for building one coprocessor of one table.
pub struct Attachment<'a> {
    /// Its name on the table, for messages: the name after `AS`, or the coprocessor's own.
    pub name: &'a str,
    /// The table.
    pub table: &'a Arc<TableSchema>,
    /// The arguments.
    pub arguments: &'a Arguments,
    /// The clock, for observers that write the time.
    pub env: &'a Arc<dyn Env>,
    /// The existing tables among those named by arguments.
    pub others: &'a [Arc<TableSchema>],
}

impl Attachment<'_> {
    /// Returns a table named by an argument of kind [`ArgumentKind::Table`].
    ///
    /// # Errors
    ///
    /// `42P01` if it does not exist.
    pub fn referenced_table(&self, parameter: &str) -> Result<Arc<TableSchema>> {
        let name = self.arguments.table(parameter).unwrap_or_default();
        let found = self.others.iter().find(|table| table.name == name);
        found.cloned().ok_or_else(|| err!(UNDEFINED_TABLE: "relation \"{name}\" does not exist"))
    }
}

/// A factory of one kind of coprocessor.
pub trait CoprocessorFactory: Send + Sync {
    /// Returns its name in ATTACH COPROCESSOR, in lower case.
    fn name(&self) -> &str;

    /// Returns a one-sentence description.
    fn about(&self) -> &str;

    /// Returns its parameters.
    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    /// Returns whether it can observe any table, so that the configuration file may attach it to
    /// all.
    fn suits_every_table(&self) -> bool {
        false
    }

    /// Returns its default priority in the chain, which ATTACH may override; `None` is the
    /// general default.
    fn default_priority(&self) -> Option<i32> {
        None
    }

    /// Returns whether it makes rows expire. Such a coprocessor excludes from its table
    /// everything that depends on each row: indexes, and coprocessors with
    /// [`CoprocessorFactory::follows_every_row`].
    fn expires_rows(&self) -> bool {
        false
    }

    /// Returns whether its derived data becomes wrong if a row disappears without a delete.
    fn follows_every_row(&self) -> bool {
        false
    }

    /// Returns the definition of the table that it writes to, if any: the one in an argument of
    /// kind [`ArgumentKind::Table`]. ATTACH creates it, or checks that an existing table fits.
    ///
    /// # Errors
    ///
    /// Those of an unsuitable table or invalid arguments.
    fn target(&self, attachment: &Attachment<'_>) -> Result<Option<TableDefinition>> {
        let _ = attachment;
        Ok(None)
    }

    /// Creates the observer. All tables named by arguments exist.
    ///
    /// # Errors
    ///
    /// Those of an unsuitable table or invalid arguments.
    fn build(&self, attachment: &Attachment<'_>) -> Result<Arc<dyn RegionObserver>>;

    /// Processes the rows that exist when the coprocessor is attached, in the transaction that
    /// attaches it. The observer is already in the chain; there are no concurrent writers.
    ///
    /// # Errors
    ///
    /// Any error rejects the attachment.
    fn fill(&self, attachment: &Attachment<'_>, transaction: &Transaction) -> store::Result<()> {
        let _ = (attachment, transaction);
        Ok(())
    }
}

/// The registered coprocessors, by name. [`builtin`](crate::builtin::registry) returns one with
/// those of this crate.
#[derive(Clone, Default)]
pub struct Registry {
    factories: BTreeMap<String, Arc<dyn CoprocessorFactory>>,
    endpoints: BTreeMap<String, Arc<dyn CallableEndpoint>>,
}

impl Registry {
    /// Adds a factory and replaces an existing entry of the same name.
    pub fn add(&mut self, factory: Arc<dyn CoprocessorFactory>) {
        self.endpoints.remove(factory.name());
        self.factories.insert(factory.name().to_owned(), factory);
    }

    /// Adds an endpoint and replaces an existing entry of the same name.
    pub fn add_endpoint(&mut self, endpoint: Arc<dyn CallableEndpoint>) {
        self.factories.remove(endpoint.name());
        self.endpoints.insert(endpoint.name().to_owned(), endpoint);
    }

    /// Returns a factory by name.
    pub fn factory(&self, name: &str) -> Option<&Arc<dyn CoprocessorFactory>> {
        self.factories.get(name)
    }

    /// Returns an endpoint by name.
    pub fn endpoint(&self, name: &str) -> Option<&Arc<dyn CallableEndpoint>> {
        self.endpoints.get(name)
    }

    /// Returns all factories, by name.
    pub fn factories(&self) -> impl Iterator<Item = &Arc<dyn CoprocessorFactory>> {
        self.factories.values()
    }

    /// Returns all endpoints, by name.
    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<dyn CallableEndpoint>> {
        self.endpoints.values()
    }

    /// Returns all names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.factories.keys().chain(self.endpoints.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
