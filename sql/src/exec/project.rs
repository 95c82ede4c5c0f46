//! Projection: columns computed from the input's columns.
//!
//! Long values are computed in slices of a batch, so that results remain at about a mebibyte.
//! Over a parallel scan the projection is a pipeline stage, unless an expression must be
//! evaluated in the session.

use std::sync::Arc;

use parking_lot::Mutex;
use types::expr::{EvalContext, Expr};
use types::vector::{BATCH_BYTES, BATCH_ROWS};
use types::{Batch, DataType, Vector};

use crate::batch_buffer::byte_count;
use crate::error::{Error, Result};
use crate::exec::stage::{PipelineStage, SingleRowInput, StageInput, StageOutput};
use crate::exec::{Context, Operator, build};
use crate::plan::ProjectNode;

/// Projection operator.
pub(super) struct Project {
    node: Arc<ProjectNode>,
    context: Arc<Context>,
    input: StageInput,
    /// True if an expression must be evaluated exactly once per row, in order: it has side
    /// effects.
    stays: bool,
    rows: SingleRowInput,
    /// Error of an expression on the row after those that were returned.
    failure: Option<Error>,
    slices: BatchSlicer,
}

/// Slicing of batches: number of rows that are computed at a time, fewer where values are long.
#[derive(Clone)]
struct BatchSlicer {
    /// True if results may be longer than their arguments.
    may_grow: bool,
    /// Average row size of the last result, in bytes.
    row_bytes: Option<usize>,
    /// Rest of the current batch, and the number of rows that were computed.
    rest: Option<(Batch, usize)>,
}

/// Number of rows that are computed before result sizes are known.
const FIRST_ROWS: usize = 8;

/// Returns whether values of a type may take megabytes.
fn is_long(data_type: &DataType) -> bool {
    !matches!(
        data_type,
        DataType::Bool
            | DataType::Int2
            | DataType::Int4
            | DataType::Int8
            | DataType::Float4
            | DataType::Float8
            | DataType::Numeric
            | DataType::Date
            | DataType::Time
            | DataType::Timestamp
            | DataType::Timestamptz
            | DataType::Interval
            | DataType::Uuid
    )
}

impl BatchSlicer {
    fn new(expressions: &[Expr]) -> BatchSlicer {
        let grows = |expression: &Expr| match expression {
            Expr::Column { .. } => false,
            Expr::Constant { value, .. } => value.heap_bytes() > BATCH_BYTES / BATCH_ROWS,
            computed => is_long(computed.data_type()),
        };
        let constants: usize = expressions
            .iter()
            .map(|expression| match expression {
                Expr::Constant { value, .. } => value.heap_bytes(),
                _ => 0,
            })
            .sum();
        let row_bytes = Some(constants).filter(|bytes| *bytes > BATCH_BYTES / FIRST_ROWS);
        BatchSlicer { may_grow: expressions.iter().any(grows), row_bytes, rest: None }
    }

    /// Returns the first slice of a batch; the other slices come next.
    fn first(&mut self, batch: Batch) -> Batch {
        if !self.may_grow || batch.row_count <= self.row_limit() {
            return batch;
        }
        let (slice, end) = self.slice(&batch, 0);
        self.rest = Some((batch, end));
        slice
    }

    fn row_limit(&self) -> usize {
        match self.row_bytes {
            None => FIRST_ROWS,
            Some(bytes) => (BATCH_BYTES / bytes.max(1)).max(1),
        }
    }

    /// Returns the next slice of the batch, if rows are left.
    fn next(&mut self) -> Option<Batch> {
        let (batch, start) = self.rest.take()?;
        let (slice, end) = self.slice(&batch, start);
        if end < batch.row_count {
            self.rest = Some((batch, end));
        }
        Some(slice)
    }

    fn slice(&self, batch: &Batch, start: usize) -> (Batch, usize) {
        let end = batch.row_count.min(start + self.row_limit());
        let slice: Vec<u32> = (start as u32..end as u32).collect();
        (batch.take(&slice), end)
    }

    fn note(&mut self, computed: &Batch) {
        if self.may_grow && computed.row_count > 0 {
            self.row_bytes = Some(byte_count(computed) / computed.row_count);
        }
    }
}

/// Computes one column; a plain column reference is not copied.
pub(super) fn column_of(
    expression: &Expr,
    batch: &Batch,
    context: &EvalContext,
) -> Result<Arc<Vector>> {
    match expression {
        Expr::Column { index, .. } => Ok(Arc::clone(&batch.columns[*index])),
        expression => Ok(Arc::new(expression.eval_batch(batch, context)?)),
    }
}

/// Computes columns.
pub(super) fn columns_of(
    expressions: &[Expr],
    batch: &Batch,
    context: &EvalContext,
) -> Result<Vec<Arc<Vector>>> {
    let calls = expressions.iter().filter(|expression| expression.calls_routines());
    if calls.count() > 1 {
        return row_by_row(expressions, batch, context);
    }
    expressions.iter().map(|expression| column_of(expression, batch, context)).collect()
}

/// Computes columns row by row, in the call order of user-defined functions.
fn row_by_row(
    expressions: &[Expr],
    batch: &Batch,
    context: &EvalContext,
) -> Result<Vec<Arc<Vector>>> {
    let column = |expression: &Expr| Vector::new(expression.data_type(), batch.row_count);
    let mut columns: Vec<Vector> = expressions.iter().map(column).collect();
    for at in 0..batch.row_count {
        let row = batch.row(at);
        for (column, expression) in columns.iter_mut().zip(expressions) {
            column.push(&expression.eval_row(&row, context)?);
        }
    }
    Ok(columns.into_iter().map(Arc::new).collect())
}

impl Project {
    /// Opens the operator and its input.
    pub(super) fn open(node: &Arc<ProjectNode>, context: &Arc<Context>) -> Result<Project> {
        let input = StageInput::new(build(&node.input, context)?);
        let stays = node.expressions.iter().any(Expr::is_session_only);
        let rows = SingleRowInput::new(context.row_by_row && stays);
        let (node, context) = (Arc::clone(node), Arc::clone(context));
        let slices = BatchSlicer::new(&node.expressions);
        Ok(Project { node, context, input, stays, rows, failure: None, slices })
    }

    /// Computes the columns of the rows before the one for which an expression fails.
    fn before_failure(&mut self, batch: &Batch, failure: Error) -> Result<Option<Batch>> {
        let (eval, expressions) = (&self.context.eval, &self.node.expressions);
        let fails = |at: &u32| {
            let row = batch.row(*at as usize);
            expressions.iter().any(|expression| expression.eval_row(&row, eval).is_err())
        };
        let count = (0..batch.row_count as u32).find(fails).unwrap_or_default();
        let before: Vec<u32> = (0..count).collect();
        if before.is_empty() {
            return Err(failure);
        }
        let columns = columns_of(expressions, &batch.take(&before), eval)?;
        self.failure = Some(failure);
        Ok(Some(Batch { columns, row_count: before.len() }))
    }
}

/// Projection as a stage of region threads.
struct ProjectStage {
    node: Arc<ProjectNode>,
    /// Slicing state, from the last result of any thread.
    slices: Mutex<BatchSlicer>,
}

/// Batch that is computed slice by slice.
struct SlicedBatch {
    stage: Arc<ProjectStage>,
    slices: BatchSlicer,
    next: Option<Batch>,
    context: Arc<Context>,
}

impl PipelineStage for ProjectStage {
    fn begin(self: Arc<Self>, batch: Batch, context: &Arc<Context>) -> Result<StageOutput> {
        let mut slices = self.slices.lock().clone();
        let first = slices.first(batch);
        if slices.rest.is_some() {
            let context = Arc::clone(context);
            let sliced = SlicedBatch { stage: self, slices, next: Some(first), context };
            return Ok(StageOutput::Batches(Box::new(sliced)));
        }
        let columns = columns_of(&self.node.expressions, &first, &context.eval)?;
        let computed = Batch { columns, row_count: first.row_count };
        if slices.may_grow {
            self.slices.lock().note(&computed);
        }
        Ok(StageOutput::Batch(computed))
    }
}

impl Operator for SlicedBatch {
    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(slice) = self.next.take() else { return Ok(None) };
        let columns = columns_of(&self.stage.node.expressions, &slice, &self.context.eval)?;
        let computed = Batch { columns, row_count: slice.row_count };
        self.slices.note(&computed);
        self.stage.slices.lock().note(&computed);
        self.next = self.slices.next();
        Ok(Some(computed))
    }
}

impl Project {
    fn own_stage(&self) -> Arc<dyn PipelineStage> {
        let slices = Mutex::new(BatchSlicer::new(&self.node.expressions));
        Arc::new(ProjectStage { node: Arc::clone(&self.node), slices })
    }
}

impl Operator for Project {
    fn next(&mut self) -> Result<Option<Batch>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let batch = match self.slices.next() {
            Some(slice) => slice,
            None => match self.rows.next(&mut self.input)? {
                Some(batch) if self.input.is_attached() => return Ok(Some(batch)),
                Some(batch) => self.slices.first(batch),
                None => return Ok(None),
            },
        };
        match columns_of(&self.node.expressions, &batch, &self.context.eval) {
            Ok(columns) => {
                let computed = Batch { columns, row_count: batch.row_count };
                self.slices.note(&computed);
                Ok(Some(computed))
            }
            // Expressions with side effects are evaluated only once.
            Err(failure) if self.stays || batch.row_count == 1 || self.context.check().is_err() => {
                Err(failure)
            }
            Err(failure) => self.before_failure(&batch, failure),
        }
    }

    fn rewind(&mut self) -> Result<bool> {
        self.rows.clear();
        self.slices.rest = None;
        self.input.rewind()
    }

    fn takes_stages(&self) -> bool {
        !self.stays && self.input.takes_stages()
    }

    fn attach(&mut self, stage: &Arc<dyn PipelineStage>) -> Result<bool> {
        let own = self.own_stage();
        Ok(!self.stays && self.input.attach(|| own, stage)?)
    }
}
