//! Endpoint call: the table function `endpoint('table', 'name', …)`.
//!
//! It runs a coprocessor endpoint on the regions of a key range, like HBase's coprocessor service
//! calls.

use std::sync::Arc;

use store::transaction::PartitionRange;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Datum};

use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::exec::{Context, EndpointRequest, Operator};
use crate::logical::EndpointTarget;
use crate::plan::SystemRowsNode;

/// Result rows of an endpoint. The call is made when the first row is read.
pub(super) struct EndpointRows {
    node: Arc<SystemRowsNode>,
    target: Arc<EndpointTarget>,
    context: Arc<Context>,
    rows: Option<std::vec::IntoIter<Vec<Datum>>>,
}

impl EndpointRows {
    /// Opens the call.
    pub(super) fn open(
        node: &Arc<SystemRowsNode>,
        target: &Arc<EndpointTarget>,
        context: &Arc<Context>,
    ) -> EndpointRows {
        EndpointRows {
            node: Arc::clone(node),
            target: Arc::clone(target),
            context: Arc::clone(context),
            rows: None,
        }
    }

    fn call(&self) -> Result<Vec<Vec<Datum>>> {
        let target = &self.target;
        let mut values = Vec::with_capacity(self.node.arguments.len());
        for argument in &self.node.arguments {
            values.push(self.context.value(argument)?);
        }
        let (given, key) = values.split_at(target.arguments.len());
        let (start, stop) = key.split_at(target.start_count);
        // A NULL argument counts as not specified.
        let arguments = target
            .arguments
            .iter()
            .zip(given)
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        self.context.system.call_endpoint(&EndpointRequest {
            table: &target.table,
            name: &target.name,
            arguments: arguments.collect(),
            ranges: ranges(&target.table, start, stop)?,
        })
    }
}

impl Operator for EndpointRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.context.check()?;
        let rows = match &mut self.rows {
            Some(rows) => rows,
            None => {
                let rows = self.call()?.into_iter();
                self.rows.insert(rows)
            }
        };
        let rows: Vec<Vec<Datum>> = rows.take(BATCH_ROWS).collect();
        let types: &[DataType] = &self.node.types;
        Ok((!rows.is_empty()).then(|| Batch::from_rows(types, &rows)))
    }
}

/// Returns the row ranges from `start` to before `stop`, in each salt bucket. Both are values of
/// leading key columns.
fn ranges(table: &Table, start: &[Datum], stop: &[Datum]) -> Result<Vec<PartitionRange>> {
    let (start, stop) = (prefix(table, start)?, prefix(table, stop)?);
    let buckets = table.layout.salt_buckets;
    let mut ranges = Vec::new();
    for bucket in 0..buckets.max(1) {
        let in_bucket = |key: &[u8]| match buckets {
            0 => key.to_vec(),
            _ => [&[bucket as u8], key].concat(),
        };
        let first = in_bucket(start.as_deref().unwrap_or_default());
        let end = match &stop {
            Some(stop) => Some(in_bucket(stop)),
            None if bucket + 1 < buckets => Some(vec![(bucket + 1) as u8]),
            None => None,
        };
        if end.as_ref().is_none_or(|end| first < *end) {
            ranges.push((first, end));
        }
    }
    Ok(ranges)
}

/// Returns the unsalted key prefix of these values; `None` without values.
fn prefix(table: &Table, values: &[Datum]) -> Result<Option<Vec<u8>>> {
    let mut key = Vec::new();
    for (value, column) in values.iter().zip(&table.layout.key) {
        if value.is_null() {
            let name = &table.columns[column.column].name;
            bail!(INVALID_PARAMETER_VALUE: "key range of an endpoint has NULL for column \"{name}\"");
        }
        let data_type = &table.layout.columns[column.column].data_type;
        let order = (column.descending, column.nulls_first);
        types::keycode::encode(value, data_type, order.0, order.1, &mut key)?;
    }
    Ok((!values.is_empty()).then_some(key))
}
