//! The coprocessors that can be attached to tables by name.
//!
//! ```text
//! ALTER TABLE t ATTACH COPROCESSOR audit WITH (table = 'log')
//!   -> Registry::factory("audit")        is there one?
//!   -> Arguments::read                   does it take these arguments, has t the columns?
//!   -> CoprocessorFactory::target        the table that it writes to: made or checked
//!   -> CoprocessorFactory::build         the observer, which joins the chain of t
//!   -> CoprocessorFactory::fill          what follows from the rows that are there already
//! ```
//!
//! All of it but the last step runs again whenever a chain is made anew: when the server starts,
//! after other changes of the table. A program that has bennu inside adds factories of its own with
//! [`Registry::add`]; [`audit`](crate::audit) is a good one to copy. Endpoints, which are attached
//! the same way and called by name, are added with [`Registry::add_endpoint`].

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

pub use argument::{ArgumentKind, Arguments, Need, Parameter};
pub use definition::{ColumnDefinition, TableDefinition};
pub use endpoint::{AnswerColumn, CallableEndpoint, EndpointCall, TableEndpoint};

use crate::violation::UNDEFINED_TABLE;

/// A table as coprocessors know it.
#[derive(Debug, Clone, PartialEq)]
pub struct TableShape {
    /// Its id in the store.
    pub id: TableId,
    /// Its name.
    pub name: String,
    /// The columns, in order; [`RowLayout::columns`] goes by the same index.
    pub columns: Vec<ColumnShape>,
    /// How rows are stored.
    pub layout: Arc<RowLayout>,
    /// What the store knows of it: families with their TTL and versions.
    pub descriptor: Arc<TableDescriptor>,
}

/// A column of a [`TableShape`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnShape {
    /// Its name.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// NULL is refused.
    pub not_null: bool,
}

impl TableShape {
    /// Returns the position of a column by name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// One coprocessor on one table, about to be built.
pub struct Attachment<'a> {
    /// Its name on the table, for messages: what `AS` said, or the coprocessor's own.
    pub name: &'a str,
    /// The table.
    pub table: &'a Arc<TableShape>,
    /// The arguments.
    pub arguments: &'a Arguments,
    /// The clock, for observers that write the time.
    pub env: &'a Arc<dyn Env>,
    /// The other tables that arguments name, as far as they exist.
    pub others: &'a [Arc<TableShape>],
}

impl Attachment<'_> {
    /// Returns a table that an argument of kind [`ArgumentKind::Table`] names.
    ///
    /// # Errors
    ///
    /// `42P01` if there is none.
    pub fn other(&self, parameter: &str) -> Result<Arc<TableShape>> {
        let name = self.arguments.table(parameter).unwrap_or_default();
        let found = self.others.iter().find(|table| table.name == name);
        found.cloned().ok_or_else(|| {
            Error::new(UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
        })
    }
}

/// Makes one kind of coprocessor.
pub trait CoprocessorFactory: Send + Sync {
    /// The name that ATTACH COPROCESSOR knows it by, in lower case.
    fn name(&self) -> &str;

    /// What it is for, in one sentence.
    fn about(&self) -> &str;

    /// The arguments it takes.
    fn parameters(&self) -> &[Parameter] {
        &[]
    }

    /// Whether it can watch any table, so that the configuration file may attach it to all of them.
    fn suits_every_table(&self) -> bool {
        false
    }

    /// Where it stands in the chain unless ATTACH says otherwise; `None`: where all others stand.
    fn default_priority(&self) -> Option<i32> {
        None
    }

    /// Whether rows go by themselves because of it. What is kept of every row (an index, and
    /// coprocessors that say [`CoprocessorFactory::follows_every_row`]) cannot be on the same
    /// table.
    fn expires_rows(&self) -> bool {
        false
    }

    /// Whether what it keeps is wrong if a row goes without being deleted.
    fn follows_every_row(&self) -> bool {
        false
    }

    /// The table that it writes to, if it has one: named by an argument of kind
    /// [`ArgumentKind::Table`]. ATTACH creates it, or checks that what is there can take the rows.
    ///
    /// # Errors
    ///
    /// What is wrong with the table or the arguments.
    fn target(&self, attachment: &Attachment<'_>) -> Result<Option<TableDefinition>> {
        let _ = attachment;
        Ok(None)
    }

    /// Makes the observer. All tables that arguments name exist.
    ///
    /// # Errors
    ///
    /// What is wrong with the table or the arguments.
    fn build(&self, attachment: &Attachment<'_>) -> Result<Arc<dyn RegionObserver>>;

    /// Brings what the coprocessor keeps up to the rows that are there when it is attached, in the
    /// transaction that attaches it. The observer is in the chain already; nobody else writes to
    /// the table.
    ///
    /// # Errors
    ///
    /// Any error refuses the attachment.
    fn fill(&self, attachment: &Attachment<'_>, transaction: &Transaction) -> store::Result<()> {
        let _ = (attachment, transaction);
        Ok(())
    }
}

/// What can be attached, by name. [`shipped`](crate::shipped::registry) begins with what this crate
/// has.
#[derive(Clone, Default)]
pub struct Registry {
    factories: BTreeMap<String, Arc<dyn CoprocessorFactory>>,
    endpoints: BTreeMap<String, Arc<dyn CallableEndpoint>>,
}

impl Registry {
    /// Adds a factory, in the place of what has the same name.
    pub fn add(&mut self, factory: Arc<dyn CoprocessorFactory>) {
        self.endpoints.remove(factory.name());
        self.factories.insert(factory.name().to_owned(), factory);
    }

    /// Adds an endpoint, in the place of what has the same name.
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

    /// Returns the names of all, in order.
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
