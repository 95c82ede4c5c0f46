//! WITH: rows that are computed at most once, as far as somebody reads them, and kept.
//!
//! `With` makes the place where they are kept known to what is below it, in the [`Context`];
//! [`CteScan`] reads there. The work table of a recursive query is such a place, too.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use types::{Batch, DataType};

use crate::batch_buffer::BatchBuffer;
use crate::error::Result;
use crate::exec::{Context, Operator, build};
use crate::plan::{CteScanNode, Node, WithNode};

/// The rows of the named queries around a step, by their numbers.
#[derive(Clone, Default)]
pub struct NamedRows {
    rows: Arc<AHashMap<usize, Arc<KeptRows>>>,
    /// Which of them changes from round to round; the other ones do not.
    work_table: Option<usize>,
}

/// Rows of a named query.
pub(super) struct KeptRows {
    state: Mutex<State>,
}

struct State {
    batches: BatchBuffer,
    source: Source,
}

/// Where more rows come from.
enum Source {
    /// Nobody has asked yet.
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
    /// Returns the context for steps that may read a named query.
    pub(super) fn with_rows(&self, id: usize, rows: Arc<KeptRows>) -> Arc<Context> {
        let mut context = self.clone();
        Arc::make_mut(&mut context.named.rows).insert(id, rows);
        Arc::new(context)
    }

    /// Returns the context for a step that is done round after round, over a work table.
    pub(super) fn with_work_table(&self, id: usize, rows: Arc<KeptRows>) -> Arc<Context> {
        let mut context = self.with_rows(id, rows);
        Arc::make_mut(&mut context).named.work_table = Some(id);
        context
    }

    /// Returns whether what a step yields is to be kept for the next round: it is the same then.
    pub(super) fn keeps(&self, node: &Node) -> bool {
        self.named.work_table.is_some_and(|id| !reads(node, id))
    }
}

/// Returns whether a step reads the rows of this number.
fn reads(node: &Node, id: usize) -> bool {
    matches!(node, Node::CteScan(scan) if scan.id == id)
        || node.inputs().into_iter().any(|input| reads(input, id))
}

impl KeptRows {
    /// Returns rows that are all there.
    pub(super) fn ready(batches: BatchBuffer) -> KeptRows {
        let state = State { batches, source: Source::Finished };
        KeptRows { state: Mutex::new(state) }
    }

    /// Replaces rows that are all there, and returns those that were.
    pub(super) fn replace(&self, batches: BatchBuffer) -> BatchBuffer {
        std::mem::replace(&mut self.state.lock().batches, batches)
    }

    /// Returns the rows of a query that nobody has asked for yet.
    pub(super) fn closed(node: &Node, context: &Arc<Context>) -> KeptRows {
        let source = Source::Closed { node: node.clone(), context: Arc::clone(context) };
        KeptRows { state: Mutex::new(State { batches: BatchBuffer::default(), source }) }
    }

    /// Returns a batch by its number, computed now if it was not yet, of columns of these types.
    fn batch(&self, number: usize, types: &Arc<[DataType]>) -> Result<Option<Batch>> {
        let mut state = self.state.lock();
        if state.batches.is_empty() && matches!(state.source, Source::Closed { .. }) {
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

impl State {
    /// Computes one more batch; returns whether there was one.
    fn read(&mut self) -> Result<bool> {
        if let Source::Closed { node, context } = &self.source {
            let operator = build(node, context)?;
            self.source = Source::Open { operator, context: Arc::clone(context) };
        }
        let Source::Open { operator, context } = &mut self.source else { return Ok(false) };
        match operator.next()? {
            None => {
                self.source = Source::Finished;
                Ok(false)
            }
            Some(batch) => {
                self.batches.push(batch, &context.room())?;
                Ok(true)
            }
        }
    }
}

/// Opens what is below a WITH.
pub(super) fn open_with(node: &WithNode, context: &Arc<Context>) -> Result<Box<dyn Operator>> {
    let rows = KeptRows::closed(&node.query, context);
    build(&node.body, &context.with_rows(node.id, Arc::new(rows)))
}

/// Reads the rows of a named query.
pub(super) struct CteScan {
    context: Arc<Context>,
    /// `None` never, but for a bug of the binder: every scan is below its WITH.
    rows: Option<Arc<KeptRows>>,
    types: Arc<[DataType]>,
    next: usize,
}

impl CteScan {
    /// Opens it.
    pub(super) fn open(node: &CteScanNode, context: &Arc<Context>) -> CteScan {
        let rows = context.named.rows.get(&node.id).cloned();
        debug_assert!(rows.is_some(), "scan of {} outside of its WITH", node.name);
        CteScan { context: Arc::clone(context), rows, types: Arc::from(&*node.types), next: 0 }
    }
}

impl Operator for CteScan {
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
