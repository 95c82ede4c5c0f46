//! LockRows node: locks rows one by one as its parent reads them.
//!
//! ```text
//! row of the input -> lock each table's row -> all as the statement saw them? -> the row
//!                                          \-> re-read them -> re-evaluate the row (EvalPlanQual)
//! ```
//!
//! A row is skipped, with the locks acquired so far, if a lock is held and SKIP LOCKED is
//! specified, if one of its table rows was deleted meanwhile, or if it does not qualify any more.
//! At REPEATABLE READ a changed row is an error. Source: PostgreSQL's `ExecLockRows`
//! (nodeLockRows.c).

use std::collections::VecDeque;
use std::sync::Arc;

use coprocessors::rows::{Decoder, StoredRows};
use types::{Batch, Datum};

use crate::error::Result;
use crate::exec::scan::goal_rows;
use crate::exec::scan_lock::{LockedRow, take_lock};
use crate::exec::{Context, Operator, build};
use crate::logical::LockedTable;
use crate::plan::{LockRowsNode, LockedTablesNode};

/// LockRows operator; see the module.
pub(super) struct LockRowsOperator {
    node: Arc<LockRowsNode>,
    context: Arc<Context>,
    input: Box<dyn Operator>,
    /// Decoders of each table's columns that the re-evaluation needs.
    decoders: Vec<Decoder>,
    /// Current batch; the rows before `next` are processed.
    batch: Option<Batch>,
    next: usize,
    /// Re-evaluated rows to be returned.
    ready: VecDeque<Batch>,
    /// Remaining rows of the row goal.
    left: Option<u64>,
}

/// Outcome of locking a row.
enum LockOutcome {
    /// Unchanged since the snapshot.
    Unchanged,
    /// Does not qualify any more, or is skipped.
    LeftOut,
    /// Changed; its new values.
    Made(Batch),
}

impl LockRowsOperator {
    /// Opens the operator and its input.
    pub(super) fn open(
        node: &Arc<LockRowsNode>,
        context: &Arc<Context>,
    ) -> Result<LockRowsOperator> {
        let decoder = |locked: &LockedTable| {
            let columns: Vec<usize> = locked.newest.iter().map(|(_, column)| *column).collect();
            Ok(Decoder::new(&locked.table.layout, &columns)?)
        };
        Ok(LockRowsOperator {
            decoders: node.held.tables.iter().map(decoder).collect::<Result<_>>()?,
            input: build(&node.input, context)?,
            batch: None,
            next: 0,
            ready: VecDeque::new(),
            left: goal_rows(&node.goal, context)?,
            node: Arc::clone(node),
            context: Arc::clone(context),
        })
    }

    /// Locks the next rows of a batch, as many as are needed; puts the result into `ready`.
    fn lock(&mut self, batch: &Batch) -> Result<()> {
        let wanted = self.left.unwrap_or(u64::MAX);
        let wanted = if self.context.locks_one_by_one { wanted.min(1) } else { wanted };
        let mut unchanged: Vec<u32> = Vec::new();
        let mut count = 0;
        while self.next < batch.row_count && count < wanted {
            self.context.check()?;
            let row = self.next;
            self.next += 1;
            let made = match self.lock_row(batch, row)? {
                LockOutcome::LeftOut => continue,
                LockOutcome::Unchanged => {
                    unchanged.push(row as u32);
                    None
                }
                LockOutcome::Made(row) => Some(row),
            };
            count += 1;
            if let Some(made) = made {
                self.yield_rows(batch, &mut unchanged);
                self.ready.push_back(made);
            }
        }
        self.yield_rows(batch, &mut unchanged);
        if let Some(left) = &mut self.left {
            *left -= count;
        }
        Ok(())
    }

    fn yield_rows(&mut self, batch: &Batch, rows: &mut Vec<u32>) {
        if !rows.is_empty() {
            self.ready.push_back(batch.take(rows));
            rows.clear();
        }
    }

    fn lock_row(&self, batch: &Batch, row: usize) -> Result<LockOutcome> {
        let context = &*self.context;
        let mut rows = Vec::with_capacity(self.node.held.tables.len());
        let mut has_changed = false;
        for locked in &self.node.held.tables {
            let value = |&column: &usize| batch.columns[column].datum(row);
            let values: Vec<Datum> = locked.key.iter().map(value).collect();
            let key = locked.table.layout.encode_key_values(&values)?;
            let Some(row) = take_lock((&locked.table, key), locked.lock, context)? else {
                return Ok(LockOutcome::LeftOut);
            };
            let transaction = &context.transaction;
            // A newer version has the same keys, as the lock was granted.
            if let Some(view) = context.view.get()
                && !row.is_own
                && !transaction.isolation().is_repeatable()
            {
                has_changed |= transaction.is_newer(locked.table.id, &row.key, view)?;
            }
            rows.push(row);
        }
        if !has_changed {
            return Ok(LockOutcome::Unchanged);
        }
        Ok(match self.again(batch, row, &rows)? {
            None => LockOutcome::LeftOut,
            Some(row) => LockOutcome::Made(row),
        })
    }

    /// Re-evaluates a row with the newest rows of the tables, which are locked; `None` if one was
    /// deleted, or the row does not qualify any more.
    fn again(&self, batch: &Batch, row: usize, rows: &[LockedRow]) -> Result<Option<Batch>> {
        let held = &self.node.held;
        let context = &*self.context;
        let mut newest = Vec::with_capacity(rows.len());
        let mut stored = StoredRows::new();
        for ((locked, decoder), row) in held.tables.iter().zip(&self.decoders).zip(rows) {
            stored.clear();
            let (table, get) = (locked.table.id, locked.table.get(row.key.as_slice()));
            stored
                .add_cells(|cells| context.transaction.get_locked(table, &get, cells).map(drop))?;
            if stored.is_empty() {
                row.release(&locked.table, context)?;
                return Ok(None);
            }
            let columns = decoder.decode(&stored, None, &context.eval)?;
            newest.extend(columns.iter().map(|column| column.datum(0)));
        }
        re_evaluate(held, newest, (batch, row), context)
    }
}

/// Re-evaluates a row with the newest values of the locked tables' columns, table by table;
/// `None` if it does not qualify any more.
pub(super) fn re_evaluate(
    held: &LockedTablesNode,
    newest: Vec<Datum>,
    (batch, row): (&Batch, usize),
    context: &Context,
) -> Result<Option<Batch>> {
    let mut context = Context::clone(context);
    let count: usize = held.tables.iter().map(|locked| locked.newest.len()).sum();
    debug_assert_eq!(newest.len(), count, "newest values of the locked tables");
    let parameters = held.tables.iter().flat_map(|locked| &locked.newest);
    for ((parameter, _), value) in parameters.zip(newest) {
        context.eval.parameters[*parameter] = value;
    }
    for &(parameter, column) in &held.copies {
        context.eval.parameters[parameter] = batch.columns[column].datum(row);
    }
    let made = build(&held.again, &Arc::new(context))?.next()?;
    let row_count = made.as_ref().map_or(0, |made| made.row_count);
    debug_assert!(row_count <= 1, "{row_count} rows of a re-evaluated row");
    Ok(made)
}

impl Operator for LockRowsOperator {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if self.left == Some(0) {
                return Ok(None);
            }
            match self.batch.take() {
                Some(batch) if self.next < batch.row_count => {
                    self.lock(&batch)?;
                    self.batch = Some(batch);
                }
                _ => match self.input.next()? {
                    None => return Ok(None),
                    batch => {
                        self.batch = batch;
                        self.next = 0;
                    }
                },
            }
        }
    }
}
