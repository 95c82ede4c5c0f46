//! Calls of attached endpoints: their parameters and columns for the binder, and [`call_endpoint`],
//! which runs an endpoint for a table function in FROM.

use std::sync::Arc;

use coprocessors::registry::{Arguments, CallableEndpoint, EndpointCall};
use types::{DataType, Datum};

use crate::binder::EndpointShape;
use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::exec::EndpointRequest;
use crate::logical::OutputColumn;
use crate::system::SystemContext;
use crate::table_coprocessors::CoprocessorRegistry;

/// Returns the parameters and columns of an endpoint, for the binder.
pub(super) fn endpoint_shape(
    coprocessors: &CoprocessorRegistry,
    table: &Table,
    name: &str,
) -> Result<EndpointShape> {
    let (_, endpoint) = coprocessors.endpoint_of(table, name)?;
    let columns: Vec<(&str, DataType)> =
        endpoint.columns().iter().map(|column| (column.name, column.data_type.clone())).collect();
    let parameters = endpoint.parameters().iter().map(|parameter| parameter.name).collect();
    Ok(EndpointShape { parameters, columns: OutputColumn::computed(&columns) })
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
                err!(UNDEFINED_OBJECT: message)
            }
            error => error.into(),
        }
    })?;
    let call = EndpointCall { name, table: &shape, arguments: &arguments };
    Ok(CallableEndpoint::run(&**endpoint, attached, &call, ranges)?)
}
