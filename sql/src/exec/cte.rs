//! WITH: named queries that are computed at most once, on demand, and materialised.
//!
//! The `With` node registers the buffer of a query's rows ([`CteRows`]) in the [`Context`] of its
//! body; [`CteScanOperator`] reads them there. The work table of a recursive query is such a
//! buffer, too.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use types::{Batch, DataType};

use crate::batch_buffer::BatchBuffer;
use crate::error::Result;
use crate::exec::{Context, Operator, build};
use crate::plan::{CteScanNode, Node, WithNode};

/// Named queries that are visible to an operator, by number.
#[derive(Clone, Default)]
pub struct CteScope {
    rows: Arc<AHashMap<usize, Arc<CteRows>>>,
    /// The query that changes with each iteration of a recursive query.
    work_table: Option<usize>,
}

/// Rows of a named query, computed on demand.
pub(super) struct CteRows {
    state: Mutex<CteState>,
}

struct CteState {
    batches: BatchBuffer,
    source: CteSource,
}

/// Source of further rows.
enum CteSource {
    /// Not opened yet.
    Closed {
        node: Node,
        context: Arc<Context>,
    },
    Open {
        operator: Box<dyn Operator>,
        context: Arc<Context>,
    },
    Finished,
}

impl Context {
    /// Returns the context of operators that may read a named query.
    pub(super) fn with_rows(&self, id: usize, rows: Arc<CteRows>) -> Arc<Context> {
        let mut context = self.clone();
        Arc::make_mut(&mut context.cte_scope.rows).insert(id, rows);
        Arc::new(context)
    }

    /// Returns the context of the recursive term, which reads a work table.
    pub(super) fn with_work_table(&self, id: usize, rows: Arc<CteRows>) -> Arc<Context> {
        let mut context = self.with_rows(id, rows);
        Arc::make_mut(&mut context).cte_scope.work_table = Some(id);
        context
    }

    /// Returns whether the rows of a node are the same in each iteration and may be retained for
    /// the next.
    pub(super) fn is_iteration_invariant(&self, node: &Node) -> bool {
        self.cte_scope.work_table.is_some_and(|id| !reads(node, id))
    }
}

/// Returns whether a plan tree scans the query with this number.
fn reads(node: &Node, id: usize) -> bool {
    matches!(node, Node::CteScan(scan) if scan.id == id)
        || node.inputs().into_iter().any(|input| reads(input, id))
}

impl CteRows {
    /// Returns completely computed rows.
    pub(super) fn ready(batches: BatchBuffer) -> CteRows {
        let state = CteState { batches, source: CteSource::Finished };
        CteRows { state: Mutex::new(state) }
    }

    /// Replaces completely computed rows, and returns the previous ones.
    pub(super) fn replace(&self, batches: BatchBuffer) -> BatchBuffer {
        let mut state = self.state.lock();
        debug_assert!(matches!(state.source, CteSource::Finished), "rows that are being computed");
        std::mem::replace(&mut state.batches, batches)
    }

    /// Returns the rows of a query that is not opened yet.
    pub(super) fn closed(node: &Node, context: &Arc<Context>) -> CteRows {
        let source = CteSource::Closed { node: node.clone(), context: Arc::clone(context) };
        CteRows { state: Mutex::new(CteState { batches: BatchBuffer::default(), source }) }
    }

    /// Returns a batch by number, with columns of these types; computes it if necessary.
    fn batch(&self, number: usize, types: &Arc<[DataType]>) -> Result<Option<Batch>> {
        let mut state = self.state.lock();
        if state.batches.is_empty() && matches!(state.source, CteSource::Closed { .. }) {
            state.batches = BatchBuffer::new(Arc::clone(types));
        }
        while state.batches.len() <= number {
            if !state.read()? {
                break;
            }
        }
        state.batches.batch(number)
    }
}

impl CteState {
    /// Computes one more batch; returns whether there was one.
    fn read(&mut self) -> Result<bool> {
        if let CteSource::Closed { node, context } = &self.source {
            let operator = build(node, context)?;
            self.source = CteSource::Open { operator, context: Arc::clone(context) };
        }
        let CteSource::Open { operator, context } = &mut self.source else { return Ok(false) };
        match operator.next()? {
            None => {
                self.source = CteSource::Finished;
                Ok(false)
            }
            Some(batch) => {
                self.batches.push(batch, &context.room())?;
                Ok(true)
            }
        }
    }
}

/// Opens the body of a WITH.
pub(super) fn open_with(node: &WithNode, context: &Arc<Context>) -> Result<Box<dyn Operator>> {
    let rows = CteRows::closed(&node.query, context);
    build(&node.body, &context.with_rows(node.id, Arc::new(rows)))
}

/// Scan of a named query.
pub(super) struct CteScanOperator {
    context: Arc<Context>,
    /// Rows of the query; `None` only by a bug of the binder: every scan is below its WITH.
    rows: Option<Arc<CteRows>>,
    types: Arc<[DataType]>,
    next: usize,
}

impl CteScanOperator {
    /// Opens the scan.
    pub(super) fn open(node: &CteScanNode, context: &Arc<Context>) -> CteScanOperator {
        let rows = context.cte_scope.rows.get(&node.id).cloned();
        debug_assert!(rows.is_some(), "scan of {} outside of its WITH", node.name);
        CteScanOperator {
            context: Arc::clone(context),
            rows,
            types: Arc::from(&*node.types),
            next: 0,
        }
    }
}

impl Operator for CteScanOperator {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.context.check()?;
        let Some(rows) = &self.rows else { return Ok(None) };
        let batch = rows.batch(self.next, &self.types)?;
        self.next += 1;
        Ok(batch)
    }

    fn rewind(&mut self) -> Result<bool> {
        self.next = 0;
        Ok(true)
    }
}
