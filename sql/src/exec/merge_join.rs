//! Merge join: both sides are sorted by the keys, so that only right rows for the current left
//! rows are in memory.
//!
//! ```text
//! left batch   1  4  4  7          window of right rows   2  4  4  6
//!              ----------> complete: rows below the last key of the window (all once the right
//!                          side has ended), joined by hash with the window
//!                       7: waits for more right rows; those before it are dropped
//! ```
//!
//! # Invariants
//!
//! 1. A left row is joined once all right rows with its key are in the window, and only once.
//! 2. A right row remains in the window as long as an unjoined left row may have its key.
//! 3. Both sides have ascending keys.
//!
//! `MergeJoin::turn_to` and `KeyWindow::add` assert 1 to 3 in debug builds.
//!
//! NULL keys are sorted like other values and match nothing.

use std::sync::Arc;

use types::expr::Expr;
use types::{Batch, DataType, keycode};

use crate::error::Result;
use crate::exec::hash_join::JoinHashTable;
use crate::exec::join_core::{ColumnRows, JoinParts, RunningJoin};
use crate::exec::lookup_join::OneBatch;
use crate::exec::project::columns_of;
use crate::exec::{Context, Operator, build, memory};
use crate::plan::KeyJoinNode;

/// Merge join operator; see the module.
pub(super) struct MergeJoin {
    node: Arc<KeyJoinNode>,
    context: Arc<Context>,
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    /// Left rows that are not joined yet.
    waiting: Option<KeyWindow>,
    /// Window of right rows that may match them.
    stretch: KeyWindow,
    right_ended: bool,
    /// Key of the last joined left row.
    joined: Vec<u8>,
    /// Join of the current left rows with their right rows.
    pairs: Option<RunningJoin<JoinHashTable>>,
}

/// Rows sorted by their keys.
struct KeyWindow {
    rows: ColumnRows,
    keys: ColumnRows,
    key_types: Vec<DataType>,
    /// Key of the last row that was dropped.
    dropped: Vec<u8>,
}

impl KeyWindow {
    fn new(types: &[DataType], keys: &[Expr]) -> KeyWindow {
        let key_types: Vec<DataType> = keys.iter().map(Expr::data_type).cloned().collect();
        let (rows, keys) = (ColumnRows::new(types), ColumnRows::new(&key_types));
        KeyWindow { rows, keys, key_types, dropped: Vec::new() }
    }

    fn add(&mut self, batch: &Batch, keys: &[Expr], context: &Context) -> Result<()> {
        let columns = columns_of(keys, batch, &context.eval)?;
        let known = self.row_count();
        self.keys.add(&Batch { columns, row_count: batch.row_count });
        self.rows.add(batch);
        if cfg!(debug_assertions) {
            let mut last = self.dropped.clone();
            for row in known.saturating_sub(1)..self.row_count() {
                let key = self.key(row)?;
                debug_assert!(last <= key, "the input of a merge join is not sorted");
                last = key;
            }
        }
        Ok(())
    }

    fn row_count(&self) -> usize {
        self.rows.row_count
    }

    /// Returns the encoded key of a row, by which keys are compared.
    fn key(&self, row: usize) -> Result<Vec<u8>> {
        let mut form = Vec::new();
        for (column, data_type) in self.keys.columns.iter().zip(&self.key_types) {
            keycode::encode(&column.datum(row), data_type, false, false, &mut form)?;
        }
        Ok(form)
    }

    /// Returns the number of leading rows with smaller keys.
    fn count_before(&self, key: &[u8]) -> Result<usize> {
        self.count_while(|other| other < key)
    }

    /// Returns the number of leading rows with keys that are not greater.
    fn count_until(&self, key: &[u8]) -> Result<usize> {
        self.count_while(|other| other <= key)
    }

    fn count_while(&self, holds: impl Fn(&[u8]) -> bool) -> Result<usize> {
        let mut range = 0..self.row_count();
        while !range.is_empty() {
            let middle = usize::midpoint(range.start, range.end);
            match holds(&self.key(middle)?) {
                true => range.start = middle + 1,
                false => range.end = middle,
            }
        }
        Ok(range.start)
    }

    /// Returns the first rows.
    fn first(&self, count: usize) -> Batch {
        let rows: Vec<u32> = (0..count as u32).collect();
        self.rows.batch(&rows)
    }

    /// Removes the first rows.
    fn drop_first(&mut self, count: usize) -> Result<()> {
        if count > 0 {
            self.dropped = self.key(count - 1)?;
            let rows: Vec<u32> = (count as u32..self.row_count() as u32).collect();
            self.rows.keep(&rows);
            self.keys.keep(&rows);
        }
        Ok(())
    }
}

impl MergeJoin {
    /// Opens the operator and both inputs.
    pub(super) fn open(node: &Arc<KeyJoinNode>, context: &Arc<Context>) -> Result<MergeJoin> {
        Ok(MergeJoin {
            left: build(&node.left, context)?,
            right: build(&node.right, context)?,
            waiting: None,
            stretch: KeyWindow::new(&node.right_types, &node.right_keys),
            right_ended: false,
            joined: Vec::new(),
            pairs: None,
            node: Arc::clone(node),
            context: Arc::clone(context),
        })
    }

    /// Advances to left rows whose right rows are all in the window; `false` at the end.
    fn advance(&mut self) -> Result<bool> {
        loop {
            self.context.check()?;
            let waiting = match &mut self.waiting {
                Some(waiting) => waiting,
                None => {
                    let Some(batch) = self.left.next()? else { return Ok(false) };
                    let mut waiting = KeyWindow::new(&self.node.left_types, &self.node.left_keys);
                    waiting.add(&batch, &self.node.left_keys, &self.context)?;
                    self.waiting.insert(waiting)
                }
            };
            let complete = match (self.right_ended, self.stretch.row_count()) {
                (true, _) => waiting.row_count(),
                (false, 0) => 0,
                (false, count) => waiting.count_before(&self.stretch.key(count - 1)?)?,
            };
            if complete > 0 {
                self.turn_to(complete)?;
                return Ok(true);
            }
            let first = waiting.key(0)?;
            self.stretch.drop_first(self.stretch.count_before(&first)?)?;
            match self.right.next()? {
                Some(batch) => self.stretch.add(&batch, &self.node.right_keys, &self.context)?,
                None => self.right_ended = true,
            }
            let bytes = self.stretch.rows.byte_count() + self.stretch.keys.byte_count();
            memory::check(bytes, self.context.work_mem())?;
        }
    }

    /// Joins the first waiting rows.
    fn turn_to(&mut self, complete: usize) -> Result<()> {
        let Some(waiting) = &mut self.waiting else { return Ok(()) };
        let (first, last) = (waiting.key(0)?, waiting.key(complete - 1)?);
        debug_assert!(self.joined <= first, "left rows are joined out of order");
        debug_assert!(
            self.stretch.dropped.is_empty() || self.stretch.dropped < first,
            "a right row of an unjoined left row was dropped"
        );
        if cfg!(debug_assertions) && !self.right_ended {
            let newest = self.stretch.key(self.stretch.row_count() - 1)?;
            debug_assert!(last < newest, "right rows of a joined left row are not read");
        }
        let (left, right) = (waiting.first(complete), self.stretch.count_until(&last)?);
        let right = self.stretch.first(right);
        // A later left row may have the last key, too.
        self.stretch.drop_first(self.stretch.count_before(&last)?)?;
        waiting.drop_first(complete)?;
        self.joined = last;
        if waiting.row_count() == 0 {
            self.waiting = None;
        }
        let node = &self.node;
        let parts = JoinParts {
            kind: node.kind,
            left: Box::new(OneBatch(Some(left))),
            right: Box::new(OneBatch(Some(right))),
            candidates: JoinHashTable::new(node.left_keys.clone(), node.right_keys.clone()),
            on: node.join_filter.clone(),
            left_types: node.left_types.clone(),
            right_types: node.right_types.clone(),
        };
        self.pairs = Some(RunningJoin::new(parts, &self.context));
        Ok(())
    }
}

impl Operator for MergeJoin {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(pairs) = &mut self.pairs {
                if let Some(batch) = pairs.next()? {
                    return Ok(Some(batch));
                }
                self.pairs = None;
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }
}
