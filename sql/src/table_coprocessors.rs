//! Coprocessors of tables: their registry and the observer chain of each table.
//!
//! The engine builds a table's chain when it is opened and when DDL changes the table, and passes
//! it to [`Store::set_observers`](store::Store::set_observers). A chain has four kinds of links,
//! in the order of their priority; links of equal priority are in this order:
//!
//! ```text
//!   100  constraint          NOT NULL and CHECK of the table
//!   200  index               one for each index, oldest first
//!   500  of the server       from the configuration file, on every table
//!  1000  of the table        ALTER TABLE … ATTACH COPROCESSOR; endpoints, which have no hooks
//! ```
//!
//! The priorities of the last two are defaults that the configuration and ATTACH can override. By
//! default coprocessors thus see rows that have passed the constraints; one that changes rows
//! before the checks needs a lower priority, such as PRIORITY 50.
//!
//! # Invariants
//!
//! 1. The tables that a coprocessor writes to are known from its arguments
//!    ([`AttachedCoprocessor::writes`]). A statement that writes to a table also takes the shared
//!    locks of those tables, so that CREATE INDEX on one of them waits for the writer.
//! 2. An observer that cannot be built (the program lacks it, or its table no longer fits) is
//!    replaced by one that rejects all writes, until it is detached. An endpoint in that state
//!    rejects calls.
//! 3. A table that a coprocessor of the server writes to is not observed by coprocessors of the
//!    server.
//!
//! [`CoprocessorRegistry::chain`] asserts 2 and 3. The store's locks of tables ensure 1.

use std::collections::BTreeSet;
use std::sync::Arc;

use coprocessors::constraint::ConstraintObserver;
use coprocessors::index::IndexObserver;
use coprocessors::maintained_view::MaintainedViewObserver;
use coprocessors::registry::{
    Arguments, Attachment, CallableEndpoint, CoprocessorFactory, Registry, TableDefinition,
    TableSchema,
};
use coprocessors::violation::CONSTRAINT;
use store::env::Env;
use store::error::Veto;
use store::observer::{EndpointSeat, Hook, Hooks, ObserverContext, RegionObserver};
use store::{Mutation, TableDescriptor, TableId};
use types::rowcode::RowLayout;

use crate::catalog::Catalog;
use crate::catalog::name::{ObjectName, PUBLIC};
use crate::catalog::record::{CoprocessorKind, CoprocessorRecord};
use crate::catalog::table::{Index, IndexState, Table};
use crate::catalog::view::View;
use crate::error::{Error, Result, sqlstate};
use crate::maintained_views::{self, MaintainedQuery};

/// Priority of constraints in the chain of observers.
pub const CONSTRAINT_PRIORITY: i32 = 100;
/// Priority of indexes: after the constraints, so that a rejected row costs no index look-up.
pub const INDEX_PRIORITY: i32 = 200;
/// Priority of maintained views: after the constraints, too.
pub const VIEW_PRIORITY: i32 = 300;
/// Default priority of coprocessors of the server.
pub const SERVER_PRIORITY: i32 = 500;
/// Default priority of coprocessors of a table.
pub const TABLE_PRIORITY: i32 = 1_000;

/// Observers with their priorities, as [`Store::set_observers`](store::Store::set_observers) takes
/// them.
type ObserverChain = Vec<(i32, Arc<dyn RegionObserver>)>;

/// Origin of a coprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentScope {
    /// The configuration file.
    Server,
    /// ALTER TABLE.
    Table,
}

/// A coprocessor in the chain of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedCoprocessor {
    /// Name of the table.
    pub table: String,
    /// Origin of the coprocessor.
    pub scope: AttachmentScope,
    /// Name, kind, priority and arguments.
    pub record: CoprocessorRecord,
    /// Tables that the coprocessor writes to.
    pub writes: Vec<TableId>,
    /// True if no other writer may write to them.
    pub is_exclusive: bool,
    /// Reason why it cannot be built, if it cannot.
    pub unavailable: Option<String>,
}

/// Registry of coprocessors of an engine, and the coprocessors of the server.
pub(crate) struct CoprocessorRegistry {
    registry: Registry,
    server: Vec<CoprocessorRecord>,
    /// Names of the tables that coprocessors of the server write to.
    server_targets: BTreeSet<String>,
    env: Arc<dyn Env>,
}

/// A coprocessor with checked arguments, bound to a table.
pub(crate) struct CheckedCoprocessor {
    pub factory: Arc<dyn CoprocessorFactory>,
    pub arguments: Arguments,
    name: String,
    table: Arc<TableSchema>,
    env: Arc<dyn Env>,
    others: Vec<Arc<TableSchema>>,
}

impl CoprocessorRegistry {
    /// Returns whether there are coprocessors of the server.
    pub(crate) fn has_server_coprocessors(&self) -> bool {
        !self.server.is_empty()
    }

    /// Checks the coprocessors of the server.
    ///
    /// # Errors
    ///
    /// An unknown or duplicate coprocessor, or one that cannot observe every table; wrong
    /// arguments.
    pub(crate) fn new(
        registry: Registry,
        server: Vec<CoprocessorRecord>,
        env: Arc<dyn Env>,
    ) -> Result<CoprocessorRegistry> {
        let mut names = BTreeSet::new();
        let mut server_targets = BTreeSet::new();
        for record in &server {
            if !names.insert(&record.name) {
                return Err(duplicate(&record.name, "the server"));
            }
            if registry.endpoint(&record.coprocessor).is_some() {
                bail!(INVALID_PARAMETER_VALUE: "coprocessor \"{}\" is an endpoint", record.coprocessor;
                    hint "Attach it to individual tables with ALTER TABLE … ATTACH COPROCESSOR.");
            }
            let factory = factory(&registry, &record.coprocessor)?;
            if !factory.suits_every_table() {
                bail!(INVALID_PARAMETER_VALUE: "coprocessor \"{}\" cannot be attached to all tables", record.coprocessor;
                    hint "Attach it to individual tables with ALTER TABLE … ATTACH COPROCESSOR.");
            }
            let arguments = Arguments::read(
                &record.coprocessor,
                factory.parameters(),
                &no_table(),
                &record.arguments,
            )?;
            server_targets.extend(arguments.tables().map(str::to_owned));
        }
        Ok(CoprocessorRegistry { registry, server, server_targets, env })
    }

    /// Returns a factory by name.
    pub(crate) fn factory(&self, name: &str) -> Result<&Arc<dyn CoprocessorFactory>> {
        factory(&self.registry, name)
    }

    /// Returns an endpoint by name, if there is one.
    pub(crate) fn endpoint(&self, name: &str) -> Option<&Arc<dyn CallableEndpoint>> {
        self.registry.endpoint(name)
    }

    /// Returns the registry of attachable coprocessors.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the endpoint that is attached to a table under a name.
    ///
    /// # Errors
    ///
    /// `42704` if there is none, `42809` if it is no endpoint, `55000` if the program lacks it.
    pub(crate) fn endpoint_of<'t>(
        &self,
        table: &'t Table,
        name: &str,
    ) -> Result<(&'t CoprocessorRecord, &Arc<dyn CallableEndpoint>)> {
        let all = table.coprocessors.attached.iter();
        let Some(record) = all.clone().find(|record| record.name == name) else {
            if self.has_link(table, name) {
                return Err(no_endpoint(name));
            }
            let endpoints = all.filter(|record| record.kind == CoprocessorKind::Endpoint);
            let names: Vec<&str> = endpoints.map(|record| record.name.as_str()).collect();
            let error = err!(UNDEFINED_OBJECT: "table \"{}\" has no endpoint \"{name}\" attached", table.name);
            return Err(match names[..] {
                [] => error.with_hint("Attach it with ALTER TABLE … ATTACH COPROCESSOR."),
                _ => error.with_hint(format!("Available are: {}.", names.join(", "))),
            });
        };
        if record.kind != CoprocessorKind::Endpoint {
            return Err(no_endpoint(name));
        }
        match self.registry.endpoint(&record.coprocessor) {
            Some(endpoint) => Ok((record, endpoint)),
            None => {
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "endpoint \"{name}\" of table \"{}\" is not available", table.name;
                    hint "Start a server that includes it, or detach it.")
            }
        }
    }

    /// Returns the coprocessors of the server that observe a table.
    pub(crate) fn of_server(&self, table: &Table) -> &[CoprocessorRecord] {
        if self.server_writes_to(table) { &[] } else { &self.server }
    }

    /// Returns whether a link in the chain of a table has this name.
    pub(crate) fn has_link(&self, table: &Table, name: &str) -> bool {
        let attached = table.coprocessors.attached.iter().chain(self.of_server(table));
        name == CONSTRAINT
            || table.indexes.iter().any(|index| index.name == name)
            || attached.map(|record| &record.name).any(|known| known == name)
    }

    /// Returns whether a coprocessor of the server writes to a table.
    pub(crate) fn server_writes_to(&self, table: &Table) -> bool {
        table.schema == PUBLIC && self.server_targets.contains(&table.name)
    }

    /// Checks a coprocessor against its present or future table.
    pub(crate) fn check(
        &self,
        record: &CoprocessorRecord,
        table: &Table,
        catalog: &Catalog,
    ) -> Result<CheckedCoprocessor> {
        let factory = Arc::clone(self.factory(&record.coprocessor)?);
        let table = Arc::new(table.shape());
        let arguments =
            Arguments::read(&record.coprocessor, factory.parameters(), &table, &record.arguments)?;
        let mut checked = CheckedCoprocessor {
            factory,
            arguments,
            name: record.name.clone(),
            table,
            env: Arc::clone(&self.env),
            others: Vec::new(),
        };
        checked.resolve_tables(catalog);
        Ok(checked)
    }

    /// Checks an endpoint against its present or future table.
    pub(crate) fn check_endpoint(&self, record: &CoprocessorRecord, table: &Table) -> Result<()> {
        let name = &record.coprocessor;
        let endpoint = self.registry.endpoint(name).ok_or_else(|| unknown(&self.registry, name))?;
        let parameters = endpoint.parameters();
        Arguments::read_partial(name, parameters, &table.shape(), &record.arguments)?;
        Ok(())
    }

    /// Returns what lets single rows of a table expire: a coprocessor, or the option CELL_TTL.
    /// `added`: a coprocessor that is about to be attached.
    pub(crate) fn expiring(
        &self,
        table: &Table,
        added: Option<&CoprocessorRecord>,
    ) -> Option<String> {
        if table.cell_ttl {
            return Some("option CELL_TTL".to_owned());
        }
        let mut all = table.coprocessors.attached.iter().chain(added);
        let expiring = all.find(|record| {
            let factory = self.registry.factory(&record.coprocessor);
            factory.is_some_and(|factory| factory.expires_rows())
        });
        expiring.map(|record| format!("coprocessor \"{}\"", record.name))
    }

    /// Returns whether a coprocessor stores data about every row.
    pub(crate) fn stores_every_row(&self, record: &CoprocessorRecord) -> bool {
        let factory = self.registry.factory(&record.coprocessor);
        factory.is_some_and(|factory| factory.follows_every_row())
    }

    /// Checks that single rows of a table do not expire while a coprocessor stores data about
    /// every row. `added`: a coprocessor that is about to be attached.
    pub(crate) fn check_expiry(
        &self,
        table: &Table,
        added: Option<&CoprocessorRecord>,
    ) -> Result<()> {
        let Some(expiring) = self.expiring(table, added) else { return Ok(()) };
        let mut all = table.coprocessors.attached.iter().chain(added);
        let follower = all.find(|record| {
            let factory = self.registry.factory(&record.coprocessor);
            factory.is_some_and(|factory| factory.follows_every_row())
        });
        let Some(follower) = follower else { return Ok(()) };
        Err(Error::not_supported(
            format!("coprocessor \"{}\" together with {expiring}", follower.name),
            "Expired rows would remain in the output table. Use only one of the two.",
        ))
    }

    /// Returns the chain of a table, and descriptions of the attached coprocessors.
    pub(crate) fn chain(
        &self,
        table: &Table,
        catalog: &Catalog,
    ) -> (ObserverChain, Vec<AttachedCoprocessor>) {
        let mut observers: ObserverChain = Vec::new();
        let constraints = &table.constraints;
        if !constraints.not_null.is_empty() || !constraints.checks.is_empty() {
            let observer = ConstraintObserver::new(Arc::clone(constraints));
            observers.push((CONSTRAINT_PRIORITY, Arc::new(observer)));
        }
        let is_maintained =
            |one: &&Arc<Index>| one.state != IndexState::Disabled && !one.is_followed;
        for index in table.indexes.iter().filter(is_maintained) {
            let observer = IndexObserver::new(Arc::clone(&index.spec));
            observers.push((INDEX_PRIORITY, Arc::new(observer)));
        }
        for (view, query) in maintained_views::views_of(catalog, table.oid) {
            observers.push((VIEW_PRIORITY, maintained_view(table, &view, &query, catalog)));
        }
        let server = self.of_server(table).iter().map(|record| (AttachmentScope::Server, record));
        let own = table.coprocessors.attached.iter().map(|record| (AttachmentScope::Table, record));
        let mut attached = Vec::new();
        for (scope, record) in server.chain(own) {
            let (observer, known) = self.link(scope, record, table, catalog);
            debug_assert!(
                scope != AttachmentScope::Server || !known.writes.contains(&table.id),
                "coprocessor {} of the server observes table {}, which it writes to",
                record.name,
                table.name
            );
            observers.push((record.priority, observer));
            attached.push(known);
        }
        let links = self.of_server(table).len() + table.coprocessors.attached.len();
        assert_eq!(attached.len(), links, "links of the coprocessors of table {}", table.name);
        (observers, attached)
    }

    fn link(
        &self,
        scope: AttachmentScope,
        record: &CoprocessorRecord,
        table: &Table,
        catalog: &Catalog,
    ) -> (Arc<dyn RegionObserver>, AttachedCoprocessor) {
        let mut attached = AttachedCoprocessor {
            table: table.name.clone(),
            scope,
            record: record.clone(),
            writes: Vec::new(),
            is_exclusive: false,
            unavailable: None,
        };
        if record.kind == CoprocessorKind::Endpoint {
            let checked = self.check_endpoint(record, table);
            attached.unavailable = checked.err().map(|error| error.message);
            return (Arc::new(EndpointSeat::new(&record.name)), attached);
        }
        let built = self.check(record, table, catalog).and_then(|checked| {
            attached.writes = checked.others.iter().map(|other| other.id).collect();
            let target = checked.target()?;
            attached.is_exclusive = target.is_some_and(|definition| definition.is_exclusive);
            checked.build()
        });
        let observer = built.unwrap_or_else(|error| {
            attached.unavailable = Some(error.message.clone());
            unavailable(&record.name, table, error)
        });
        (observer, attached)
    }
}

/// Returns the observer of a table that maintains a view.
fn maintained_view(
    table: &Table,
    view: &Table,
    query: &Arc<View>,
    catalog: &Catalog,
) -> Arc<dyn RegionObserver> {
    match MaintainedQuery::of_view(query, catalog) {
        Ok(query) => Arc::new(MaintainedViewObserver::new(query.definition(view))),
        Err(error) => unavailable(&view.name, table, error),
    }
}

/// Returns the observer that replaces one that cannot be built.
fn unavailable(name: &str, table: &Table, error: Error) -> Arc<dyn RegionObserver> {
    tracing::error!(
        table = table.name,
        coprocessor = name,
        %error,
        "coprocessor is not available; writes to its table are rejected"
    );
    Arc::new(UnavailableObserver {
        name: name.to_owned(),
        table: table.name.clone(),
        why: error.message,
    })
}

impl CheckedCoprocessor {
    fn attachment(&self) -> Attachment<'_> {
        Attachment {
            name: &self.name,
            table: &self.table,
            arguments: &self.arguments,
            env: &self.env,
            others: &self.others,
        }
    }

    /// Resolves the tables in the arguments against a newer catalog.
    pub(crate) fn resolve_tables(&mut self, catalog: &Catalog) {
        let found = self.arguments.tables().filter_map(|name| target(catalog, name));
        self.others = found.map(|table| Arc::new(table.shape())).collect();
    }

    /// Returns the definition that the coprocessor's target table must have.
    pub(crate) fn target(&self) -> Result<Option<TableDefinition>> {
        Ok(self.factory.target(&self.attachment())?)
    }

    /// Returns the observer.
    pub(crate) fn build(&self) -> Result<Arc<dyn RegionObserver>> {
        Ok(self.factory.build(&self.attachment())?)
    }

    /// Initialises the coprocessor's data from the existing rows.
    pub(crate) fn fill(&self, transaction: &store::Transaction) -> Result<()> {
        Ok(self.factory.fill(&self.attachment(), transaction)?)
    }
}

/// Returns the table of schema `public` that a coprocessor's argument names.
pub(crate) fn target<'c>(catalog: &'c Catalog, name: &str) -> Option<&'c Arc<Table>> {
    catalog.table_named(&ObjectName::public(name))
}

fn factory<'r>(registry: &'r Registry, name: &str) -> Result<&'r Arc<dyn CoprocessorFactory>> {
    registry.factory(name).ok_or_else(|| unknown(registry, name))
}

fn unknown(registry: &Registry, name: &str) -> Error {
    err!(UNDEFINED_OBJECT: "coprocessor \"{name}\" does not exist"; hint "Available are: {}.", registry.names().join(", "))
}

fn no_endpoint(name: &str) -> Error {
    err!(WRONG_OBJECT_TYPE: "coprocessor \"{name}\" is not an endpoint")
}

/// Returns the error `coprocessor "audit" of table "t" already exists`.
pub(crate) fn duplicate(name: &str, owner: &str) -> Error {
    err!(DUPLICATE_OBJECT: "coprocessor \"{name}\" of {owner} already exists";
        hint "Specify another name with ATTACH COPROCESSOR … AS name.")
}

/// Returns a table without columns, for arguments that must not depend on a table.
fn no_table() -> TableSchema {
    let layout = RowLayout::new(Vec::new(), Vec::new(), 0);
    TableSchema {
        id: TableId(0),
        name: "any".to_owned(),
        columns: Vec::new(),
        layout: Arc::new(layout),
        descriptor: Arc::new(TableDescriptor::new(TableId(0), "any".to_owned(), Vec::new())),
    }
}

/// Observer that replaces a coprocessor which cannot be built; it rejects all writes.
struct UnavailableObserver {
    name: String,
    table: String,
    why: String,
}

impl RegionObserver for UnavailableObserver {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch])
    }

    fn pre_batch(&self, _: &dyn ObserverContext, _: &mut [Mutation]) -> store::Result<()> {
        Err(store::Error::Vetoed(Box::new(Veto {
            coprocessor: self.name.clone(),
            code: sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE.to_owned(),
            message: format!(
                "coprocessor \"{}\" of table \"{}\" is not available",
                self.name, self.table
            ),
            detail: format!("{}: start a server that includes it, or detach it.", self.why),
            table: self.table.clone(),
            ..Veto::default()
        })))
    }
}
