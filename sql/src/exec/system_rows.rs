//! System views and table functions: rows from the [`SystemSource`](crate::exec::SystemSource),
//! and functions over regions.

use std::sync::Arc;

use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Datum};

use crate::error::Result;
use crate::exec::{self, Context, CteScope, Operator, UncorrelatedResults, region_function};
use crate::plan::{Plan, SystemRowsNode};

/// Opens a view or function.
pub(super) fn open(
    node: &Arc<SystemRowsNode>,
    context: &Arc<Context>,
) -> Result<Box<dyn Operator>> {
    if let Some(target) = &node.target {
        return region_function::open(node, target, context);
    }
    let mut arguments = Vec::with_capacity(node.arguments.len());
    for argument in &node.arguments {
        arguments.push(context.value(argument)?);
    }
    if let Some(batches) = context.system.shared_rows(&node.name, &|plan| rows_of(plan, context))? {
        return Ok(Box::new(SharedRows { context: Arc::clone(context), batches, next: 0 }));
    }
    let rows = context.system.rows(&node.name, &arguments)?;
    Ok(Box::new(SystemRows {
        types: node.types.clone(),
        context: Arc::clone(context),
        rows: rows.into_iter(),
    }))
}

/// Executes the query of a view, which has parameters and subqueries of its own.
fn rows_of(plan: &Arc<Plan>, context: &Context) -> Result<Vec<Batch>> {
    let mut context = Context {
        profile: None,
        cte_scope: CteScope::default(),
        uncorrelated_results: UncorrelatedResults::default(),
        ..context.clone()
    };
    context.eval.parameters.clear();
    let mut operator = exec::open(plan, context)?;
    let mut batches = Vec::new();
    while let Some(batch) = operator.next()? {
        batches.push(batch);
    }
    Ok(batches)
}

/// Rows that are shared with other statements.
struct SharedRows {
    context: Arc<Context>,
    batches: Arc<Vec<Batch>>,
    next: usize,
}

impl Operator for SharedRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.context.check()?;
        self.next += 1;
        Ok(self.batches.get(self.next - 1).cloned())
    }
}

struct SystemRows {
    types: Vec<DataType>,
    context: Arc<Context>,
    rows: std::vec::IntoIter<Vec<Datum>>,
}

impl Operator for SystemRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.context.check()?;
        let rows: Vec<Vec<Datum>> = self.rows.by_ref().take(BATCH_ROWS).collect();
        Ok((!rows.is_empty()).then(|| Batch::from_rows(&self.types, &rows)))
    }
}
