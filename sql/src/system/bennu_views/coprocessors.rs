//! Views `bennu.coprocessors` and `bennu.available_coprocessors`: the chains in the catalog with
//! the counters of the store, and the registry of the server.

use coprocessors::registry::{ArgumentKind, Parameter, ParameterRequirement};
use store::observer::{CoprocessorScope, CoprocessorState, CoprocessorStatus};
use types::DataType;

use crate::catalog::record::{CoprocessorKind, CoprocessorRecord};
use crate::catalog::table::Table;
use crate::error::Result;
use crate::system::SystemContext;
use crate::system::bennu_views::{SystemView, SystemViewColumn, ViewValue, system_view};
use crate::table_coprocessors::{AttachmentScope, CONSTRAINT_PRIORITY, INDEX_PRIORITY};

/// An attached coprocessor, as the catalog has it.
struct ChainLink {
    priority: i32,
    name: String,
    coprocessor: String,
    kind: CoprocessorKind,
    scope: &'static str,
    arguments: String,
    is_available: bool,
}

system_view! {
    COPROCESSORS: "coprocessors", "Coprocessors of tables, in the order of execution", coprocessors => |(table, link, status)| {
        table_name Text = table, "Table";
        name Text = link.name, "Name on the table";
        coprocessor Text = link.coprocessor, "Coprocessor";
        kind Text = kind_name(link.kind), "`observer` or `endpoint`";
        scope Text = link.scope, "`schema`: part of the table's definition, `server`: of all tables, `table`: attached";
        priority Int4 = (link.kind == CoprocessorKind::Observer).then_some(link.priority), "Priority; smaller runs first";
        arguments Text = link.arguments, "Arguments";
        state Text = state(link.is_available, status.as_ref()), "`active`, `suspended`, or `unavailable`: unknown to the server";
        calls Int8 = status.as_ref().map(|one| one.calls), "Number of calls; NULL before the commit of ATTACH";
        rejections Int8 = status.as_ref().map(|one| one.refusals), "Number of writes that it rejected";
        failures Int8 = status.as_ref().map(|one| one.errors + one.panics + one.overruns), "Number of failed calls";
        total_ms Float8 = status.as_ref().map(|one| one.spent.as_secs_f64() * 1e3), "Total time of calls in milliseconds";
        last_failure Text = status.and_then(|one| one.last_error), "Message of the last failure";
    }
}

/// Returns the chain of each table with the counters of the store; `None` if it is not in the
/// running chain: an open transaction has attached or detached it.
fn coprocessors(
    source: &SystemContext,
) -> Result<Vec<(String, ChainLink, Option<CoprocessorStatus>)>> {
    let statuses = source.engine.store().coprocessors();
    let mut rows = Vec::new();
    for table in source.catalog.tables() {
        let scope = CoprocessorScope::Table(table.id);
        let running: Vec<_> = statuses.iter().filter(|one| one.scope == scope).collect();
        for (position, link) in links(source, table).into_iter().enumerate() {
            // Both lists are in chain order, but a transaction may see another chain than the
            // store runs.
            let status = running.get(position).copied();
            let status =
                status.filter(|one| one.priority == link.priority && one.name == link.name);
            rows.push((table.full_name().short(), link, status.cloned()));
        }
    }
    Ok(rows)
}

fn state(is_available: bool, status: Option<&CoprocessorStatus>) -> &'static str {
    match status.map(|status| status.state) {
        _ if !is_available => "unavailable",
        Some(CoprocessorState::Suspended) => "suspended",
        _ => "active",
    }
}

fn links(source: &SystemContext, table: &Table) -> Vec<ChainLink> {
    let schema = |priority, name: &str, coprocessor: &str, arguments| ChainLink {
        priority,
        name: name.to_owned(),
        coprocessor: coprocessor.to_owned(),
        kind: CoprocessorKind::Observer,
        scope: "schema",
        arguments,
        is_available: true,
    };
    let mut links = Vec::new();
    let constraints = &table.constraints;
    if !constraints.not_null.is_empty() || !constraints.checks.is_empty() {
        let counts = (constraints.not_null.len(), constraints.checks.len());
        let arguments = format!("{} NOT NULL, {} CHECK", counts.0, counts.1);
        links.push(schema(CONSTRAINT_PRIORITY, "constraint", "constraint", arguments));
    }
    for index in &table.indexes {
        let keys = index.spec.key_names.join(", ");
        links.push(schema(INDEX_PRIORITY, &index.name, "index", keys));
    }
    let attached = source.engine.attached(table.id).unwrap_or_default();
    let mut add = |record: &CoprocessorRecord, scope: AttachmentScope| {
        let known =
            attached.iter().find(|one| one.scope == scope && one.record.name == record.name);
        let arguments = record.arguments.iter();
        let arguments =
            arguments.map(|(name, value)| format!("{name} = '{}'", value.replace('\'', "''")));
        links.push(ChainLink {
            priority: record.priority,
            name: record.name.clone(),
            coprocessor: record.coprocessor.clone(),
            kind: record.kind,
            scope: if scope == AttachmentScope::Server { "server" } else { "table" },
            arguments: arguments.collect::<Vec<_>>().join(", "),
            is_available: known.is_none_or(|one| one.unavailable.is_none()),
        });
    };
    for record in source.engine.coprocessors.of_server(table) {
        add(record, AttachmentScope::Server);
    }
    table.coprocessors.attached.iter().for_each(|record| add(record, AttachmentScope::Table));
    links.sort_by_key(|link| link.priority);
    links
}

fn kind_name(kind: CoprocessorKind) -> &'static str {
    match kind {
        CoprocessorKind::Observer => "observer",
        CoprocessorKind::Endpoint => "endpoint",
    }
}

system_view! {
    AVAILABLE_COPROCESSORS: "available_coprocessors", "Coprocessors that ATTACH COPROCESSOR accepts",
    available => |(name, kind, arguments, about)| {
        name Text = name, "Name";
        kind Text = kind, "`observer` or `endpoint`";
        arguments Text = arguments, "Arguments with their types";
        description Text = about, "Description";
    }
}

/// Returns names, kinds, arguments and descriptions, by name.
fn available(source: &SystemContext) -> Result<Vec<(String, &'static str, String, String)>> {
    let registry = source.engine.coprocessors.registry();
    let row = |name: &str, kind, parameters: &[Parameter], about: &str| {
        let arguments: Vec<String> = parameters.iter().map(parameter_text).collect();
        (name.to_owned(), kind_name(kind), arguments.join(", "), about.to_owned())
    };
    let factories = registry.factories().map(|factory| {
        row(factory.name(), CoprocessorKind::Observer, factory.parameters(), factory.about())
    });
    let endpoints = registry.endpoints().map(|endpoint| {
        row(endpoint.name(), CoprocessorKind::Endpoint, endpoint.parameters(), endpoint.about())
    });
    let mut rows: Vec<_> = factories.chain(endpoints).collect();
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(rows)
}

/// Returns a parameter as text, such as `width integer required`.
fn parameter_text(parameter: &Parameter) -> String {
    let kind = match parameter.kind {
        ArgumentKind::Text => "text",
        ArgumentKind::Integer => "integer",
        ArgumentKind::Boolean => "boolean",
        ArgumentKind::Duration => "interval",
        ArgumentKind::Column => "column",
        ArgumentKind::Columns => "columns",
        ArgumentKind::Table => "table",
    };
    match parameter.need {
        ParameterRequirement::Required => format!("{} {kind} required", parameter.name),
        ParameterRequirement::Optional => format!("{} {kind}", parameter.name),
        ParameterRequirement::Default(value) => {
            format!("{} {kind} default {value}", parameter.name)
        }
    }
}
