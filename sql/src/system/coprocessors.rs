//! System views `bennu.coprocessors` and `bennu.available_coprocessors`, and calls of attached
//! endpoints.
//!
//! The first view joins the chains in the catalog with the counters of the store; the second lists
//! the registry of the server. [`call_endpoint`] runs an endpoint for a table function in FROM.

use std::sync::Arc;

use coprocessors::registry::{
    ArgumentKind, Arguments, CallableEndpoint, EndpointCall, Parameter, ParameterRequirement,
};
use store::observer::{CoprocessorScope, CoprocessorState, CoprocessorStatus};
use types::{DataType, Datum};

use crate::binder::EndpointShape;
use crate::catalog::record::{CoprocessorKind, CoprocessorRecord};
use crate::catalog::table::Table;
use crate::error::{Error, Result, sqlstate};
use crate::exec::EndpointRequest;
use crate::system::{Row, SystemContext, SystemView, int8, output, text};
use crate::table_coprocessors::{
    AttachmentScope, CONSTRAINT_PRIORITY, CoprocessorRegistry, INDEX_PRIORITY,
};

pub(super) const VIEW: SystemView = SystemView {
    name: "coprocessors",
    columns: &[
        ("table_name", DataType::Text),
        ("name", DataType::Text),
        ("coprocessor", DataType::Text),
        ("kind", DataType::Text),
        ("scope", DataType::Text),
        ("priority", DataType::Int4),
        ("arguments", DataType::Text),
        ("state", DataType::Text),
        ("calls", DataType::Int8),
        ("rejections", DataType::Int8),
        ("failures", DataType::Int8),
        ("total_ms", DataType::Float8),
        ("last_failure", DataType::Text),
    ],
    rows: coprocessors,
};

pub(super) const AVAILABLE: SystemView = SystemView {
    name: "available_coprocessors",
    columns: &[
        ("name", DataType::Text),
        ("kind", DataType::Text),
        ("arguments", DataType::Text),
        ("description", DataType::Text),
    ],
    rows: available,
};

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

/// Returns the rows of `bennu.coprocessors`: the chain of each table, in execution order, with the
/// counters of the store.
fn coprocessors(source: &SystemContext) -> Result<Vec<Row>> {
    let figures = source.engine.store().coprocessors();
    let mut rows = Vec::new();
    for table in source.catalog.tables() {
        let scope = CoprocessorScope::Table(table.id);
        let links = links(source, table);
        let figures: Vec<_> = figures.iter().filter(|one| one.scope == scope).collect();
        for (position, link) in links.iter().enumerate() {
            // Both lists are in chain order, but a transaction may see another chain than the
            // store runs.
            let figures = figures
                .get(position)
                .filter(|figures| figures.priority == link.priority && figures.name == link.name);
            rows.push(coprocessor_row(&table.full_name().short(), link, figures.copied()));
        }
    }
    Ok(rows)
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

fn coprocessor_row(table: &str, link: &ChainLink, figures: Option<&CoprocessorStatus>) -> Row {
    let state = match figures.map(|figures| figures.state) {
        _ if !link.is_available => "unavailable",
        Some(CoprocessorState::Suspended) => "suspended",
        _ => "active",
    };
    let mut row = vec![
        text(table),
        text(&link.name),
        text(&link.coprocessor),
        text(kind_name(link.kind)),
        text(link.scope),
        match link.kind {
            CoprocessorKind::Observer => Datum::Int4(link.priority),
            CoprocessorKind::Endpoint => Datum::Null,
        },
        text(&link.arguments),
        text(state),
    ];
    match figures {
        Some(figures) => row.extend([
            int8(figures.calls),
            int8(figures.refusals),
            int8(figures.errors + figures.panics + figures.overruns),
            Datum::Float8(figures.spent.as_secs_f64() * 1e3),
            figures.last_error.as_deref().map_or(Datum::Null, text),
        ]),
        // It is not in the running chain: an open transaction has attached or detached it.
        None => row.extend(std::iter::repeat_n(Datum::Null, 5)),
    }
    row
}

fn kind_name(kind: CoprocessorKind) -> &'static str {
    match kind {
        CoprocessorKind::Observer => "observer",
        CoprocessorKind::Endpoint => "endpoint",
    }
}

/// Returns the rows of `bennu.available_coprocessors`: the factories that ATTACH COPROCESSOR
/// accepts.
fn available(source: &SystemContext) -> Result<Vec<Row>> {
    let registry = source.engine.coprocessors.registry();
    let row = |name: &str, kind, parameters: &[Parameter], about: &str| {
        let arguments: Vec<String> = parameters.iter().map(parameter_text).collect();
        (
            name.to_owned(),
            vec![text(name), text(kind_name(kind)), text(arguments.join(", ")), text(about)],
        )
    };
    let factories = registry.factories().map(|factory| {
        row(factory.name(), CoprocessorKind::Observer, factory.parameters(), factory.about())
    });
    let endpoints = registry.endpoints().map(|endpoint| {
        row(endpoint.name(), CoprocessorKind::Endpoint, endpoint.parameters(), endpoint.about())
    });
    let mut rows: Vec<(String, Row)> = factories.chain(endpoints).collect();
    rows.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
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

/// Returns the parameters and columns of an endpoint, for the binder.
pub(super) fn endpoint_shape(
    coprocessors: &CoprocessorRegistry,
    table: &Table,
    name: &str,
) -> Result<EndpointShape> {
    let (_, endpoint) = coprocessors.endpoint_of(table, name)?;
    let columns: Vec<(&str, DataType)> =
        endpoint.columns().iter().map(|column| (column.name, column.data_type)).collect();
    let parameters = endpoint.parameters().iter().map(|parameter| parameter.name).collect();
    Ok(EndpointShape { parameters, columns: output(&columns) })
}

/// Calls an endpoint that is attached to a table. Arguments of the call override those of ATTACH.
pub(super) fn call_endpoint(
    source: &SystemContext,
    request: &EndpointRequest<'_>,
) -> Result<Vec<Vec<Datum>>> {
    let EndpointRequest { table, name, arguments, ranges } = request;
    let (record, endpoint) = source.engine.coprocessors.endpoint_of(table, name)?;
    let is_given = |name: &String| arguments.iter().any(|(given, _)| given == name);
    let of_attach = record.arguments.iter().filter(|(name, _)| !is_given(name));
    let written: Vec<(String, String)> = of_attach.chain(arguments).cloned().collect();
    let shape = Arc::new(table.shape());
    let arguments = Arguments::read(name, endpoint.parameters(), &shape, &written)?;
    let attached = source.transaction.attached_endpoint(table.id, name).map_err(|error| {
        match error {
            // Another transaction is detaching it.
            store::Error::InvalidRequest(message) => {
                Error::new(sqlstate::UNDEFINED_OBJECT, message)
            }
            error => error.into(),
        }
    })?;
    let call = EndpointCall { name, table: &shape, arguments: &arguments };
    Ok(CallableEndpoint::run(&**endpoint, attached, &call, ranges)?)
}
