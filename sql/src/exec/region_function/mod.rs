//! Functions over the regions of a table: `endpoint('table', 'name', …)`, which runs a coprocessor
//! endpoint on the regions of a key range, like HBase's coprocessor service calls, and
//! [`cells`].

mod cells;

use std::sync::Arc;

use store::transaction::PartitionRange;
use types::rowcode::RowLayout;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Datum};

use crate::error::{Error, Result};
use crate::exec::{Context, EndpointRequest, Operator};
use crate::logical::{RegionFunction, RegionFunctionTarget};
use crate::plan::SystemRowsNode;

use cells::CellRows;

/// The evaluated arguments of a call.
struct RegionArguments {
    /// Arguments by name, without those that are NULL, which count as not given.
    given: Vec<(String, Datum)>,
    /// Row ranges, one for each salt bucket.
    ranges: Vec<PartitionRange>,
}

/// Opens a call.
pub(super) fn open(
    node: &Arc<SystemRowsNode>,
    target: &Arc<RegionFunctionTarget>,
    context: &Arc<Context>,
) -> Result<Box<dyn Operator>> {
    Ok(match &target.function {
        RegionFunction::Endpoint(name) => Box::new(EndpointRows {
            node: Arc::clone(node),
            target: Arc::clone(target),
            name: name.clone(),
            context: Arc::clone(context),
            rows: None,
        }),
        RegionFunction::Cells(_) => {
            let RegionArguments { given, ranges } = arguments(node, target, context)?;
            Box::new(CellRows::open(&node.types, target, (&given, ranges), context)?)
        }
    })
}

/// Result rows of an endpoint. The call is made when the first row is read.
struct EndpointRows {
    node: Arc<SystemRowsNode>,
    target: Arc<RegionFunctionTarget>,
    name: String,
    context: Arc<Context>,
    rows: Option<std::vec::IntoIter<Vec<Datum>>>,
}

impl EndpointRows {
    fn call(&self) -> Result<Vec<Vec<Datum>>> {
        let RegionArguments { given, ranges } = arguments(&self.node, &self.target, &self.context)?;
        let arguments = given
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())))
            .collect();
        let (table, name) = (&self.target.table, &self.name);
        self.context.system.call_endpoint(&EndpointRequest { table, name, arguments, ranges })
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

/// Evaluates the arguments of a call.
fn arguments(
    node: &SystemRowsNode,
    target: &RegionFunctionTarget,
    context: &Context,
) -> Result<RegionArguments> {
    let mut values = Vec::with_capacity(node.arguments.len());
    for argument in &node.arguments {
        values.push(context.value(argument)?);
    }
    let key = values.split_off(target.arguments.len());
    let (start, stop) = key.split_at(target.start_count);
    let given = target.arguments.iter().cloned().zip(values);
    Ok(RegionArguments {
        given: given.filter(|(_, value)| !value.is_null()).collect(),
        ranges: ranges(target, start, stop)?,
    })
}

/// Returns the row ranges from `start` to before `stop`, in each salt bucket. Both are values of
/// leading key columns.
fn ranges(
    target: &RegionFunctionTarget,
    start: &[Datum],
    stop: &[Datum],
) -> Result<Vec<PartitionRange>> {
    let (start, stop) = (prefix(target, start)?, prefix(target, stop)?);
    let buckets = target.layout().salt_buckets;
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
fn prefix(target: &RegionFunctionTarget, values: &[Datum]) -> Result<Option<Vec<u8>>> {
    let mut key = Vec::new();
    let layout: &RowLayout = target.layout();
    for (value, column) in values.iter().zip(&layout.key) {
        if value.is_null() {
            let name = &target.column_names()[column.column];
            bail!(INVALID_PARAMETER_VALUE: "key range has NULL for column \"{name}\"");
        }
        let data_type = &layout.columns[column.column].data_type;
        let order = (column.descending, column.nulls_first);
        types::keycode::encode(value, data_type, order.0, order.1, &mut key)?;
    }
    Ok((!values.is_empty()).then_some(key))
}
