//! Sort. With a row goal only the first rows are kept while reading; what does not fit into
//! `work_mem` is sorted piece by piece, set aside as runs, and merged.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::sync::Arc;

use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::merge_runs::{MergeRuns, RunWriter, merge_until};
use crate::exec::pairs::Collected;
use crate::exec::project::columns_of;
use crate::exec::scan::goal_rows;
use crate::exec::{Context, Operator, build};
use crate::logical::SortKey;
use crate::plan::SortNode;
use crate::spill::SpillFile;
use types::expr::Expr;

/// With a goal, rows are gathered up to so many more before they are cut to the goal.
const SLACK_ROWS: usize = 8 * BATCH_ROWS;

/// See the module.
pub(super) struct Sort {
    node: Arc<SortNode>,
    context: Arc<Context>,
    input: Box<dyn Operator>,
    goal: Option<usize>,
    order: Arc<RowOrder>,
    sorted: Option<Sorted>,
}

/// How rows are ordered: by some of their columns.
pub(super) struct RowOrder {
    keys: Vec<OrderKey>,
    /// Types of the columns: those that are yielded, then what is computed to sort by.
    pub(super) types: Arc<[DataType]>,
    /// What is computed.
    computed: Vec<Expr>,
}

/// A column to order by.
struct OrderKey {
    column: usize,
    descending: bool,
    nulls_first: bool,
    /// Trailing blanks do not count.
    is_char: bool,
}

/// What is yielded.
enum Sorted {
    /// All rows and their order.
    Memory { rows: Collected, order: Vec<u32>, next: usize },
    /// Runs.
    Disk(MergeRuns),
}

impl RowOrder {
    /// Returns the order of rows with columns of `types` by `keys`, most significant first.
    pub(super) fn new(keys: &[SortKey], types: &[DataType]) -> RowOrder {
        let (mut types, mut computed) = (types.to_vec(), Vec::new());
        let key = |key: &SortKey| {
            let column = match &key.expression {
                Expr::Column { index, .. } => *index,
                expression => {
                    types.push(expression.data_type());
                    computed.push(expression.clone());
                    types.len() - 1
                }
            };
            OrderKey {
                column,
                descending: key.descending,
                nulls_first: key.nulls_first,
                is_char: key.expression.data_type() == DataType::Char,
            }
        };
        let keys = keys.iter().map(key).collect();
        RowOrder { keys, types: types.into(), computed }
    }

    /// Adds what is computed to a batch.
    fn complete(&self, mut batch: Batch, context: &Context) -> Result<Batch> {
        if !self.computed.is_empty() {
            let columns = columns_of(&self.computed, &batch, &context.eval)?;
            batch.columns.extend(columns);
        }
        Ok(batch)
    }

    /// Compares row `i` of some columns with row `j` of others.
    pub(super) fn compare<V: Borrow<Vector>, W: Borrow<Vector>>(
        &self,
        (a, i): (&[V], usize),
        (b, j): (&[W], usize),
    ) -> Ordering {
        for key in &self.keys {
            let (a, b): (&Vector, &Vector) = (a[key.column].borrow(), b[key.column].borrow());
            let order = match (a.is_null(i), b.is_null(j)) {
                (true, true) => Ordering::Equal,
                (true, false) if key.nulls_first => Ordering::Less,
                (true, false) => Ordering::Greater,
                (false, true) if key.nulls_first => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => {
                    let order = match key.is_char {
                        true => a.datum(i).compare_typed(&b.datum(j), DataType::Char),
                        false => a.compare(i, b, j),
                    };
                    if key.descending { order.reverse() } else { order }
                }
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }

    /// Returns the rows in order, the first `goal` of them. Rows that sort alike keep the order in
    /// which they came.
    fn sort(&self, rows: &Collected, goal: Option<usize>) -> Vec<u32> {
        let mut order: Vec<u32> = (0..rows.row_count as u32).collect();
        let columns = &rows.columns[..];
        let compare = |a: &u32, b: &u32| {
            self.compare((columns, *a as usize), (columns, *b as usize)).then(a.cmp(b))
        };
        match goal {
            Some(goal) if goal < order.len() => {
                if goal > 0 {
                    order.select_nth_unstable_by(goal - 1, compare);
                }
                order.truncate(goal);
            }
            _ => {}
        }
        order.sort_unstable_by(compare);
        order
    }
}

impl Sort {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<SortNode>, context: &Arc<Context>) -> Result<Sort> {
        let goal = goal_rows(&node.goal, context)?;
        Ok(Sort {
            input: build(&node.input, context)?,
            order: Arc::new(RowOrder::new(&node.keys, &node.types)),
            node: Arc::clone(node),
            context: Arc::clone(context),
            goal: goal.map(|goal| usize::try_from(goal).unwrap_or(usize::MAX)),
            sorted: None,
        })
    }

    fn read_all(&mut self) -> Result<Sorted> {
        let order = Arc::clone(&self.order);
        let mut rows = Collected::new(&order.types);
        let mut runs: Vec<Arc<SpillFile>> = Vec::new();
        while let Some(batch) = self.input.next()? {
            self.context.check()?;
            rows.add(&order.complete(batch, &self.context)?);
            let full = |goal: usize| rows.row_count >= goal.saturating_add(SLACK_ROWS.max(goal));
            if let Some(goal) = self.goal
                && full(goal)
            {
                let first = order.sort(&rows, Some(goal));
                rows.keep(&first);
            }
            if rows.byte_count() > self.context.work_mem {
                runs.push(self.set_aside(&rows)?);
                rows = Collected::new(&order.types);
            }
        }
        if runs.is_empty() {
            let order = order.sort(&rows, self.goal);
            return Ok(Sorted::Memory { rows, order, next: 0 });
        }
        runs.push(self.set_aside(&rows)?);
        drop(rows);
        let runs = merge_until(runs, &order, &self.context)?;
        Ok(Sorted::Disk(MergeRuns::open(&runs, &order)?))
    }

    /// Writes rows as a run.
    fn set_aside(&self, rows: &Collected) -> Result<Arc<SpillFile>> {
        let order = self.order.sort(rows, self.goal);
        let mut run = RunWriter::create(&self.order.types, &self.context)?;
        for part in order.chunks(BATCH_ROWS) {
            self.context.check()?;
            run.add(&rows.batch(part))?;
        }
        run.finish()
    }

    /// Leaves out what was computed to sort by.
    fn yielded(&self, mut batch: Batch) -> Batch {
        batch.columns.truncate(self.node.types.len());
        batch
    }
}

impl Operator for Sort {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.sorted.is_none() {
            self.sorted = Some(self.read_all()?);
        }
        self.context.check()?;
        let batch = match &mut self.sorted {
            None => None,
            Some(Sorted::Disk(runs)) => runs.next()?,
            Some(Sorted::Memory { rows, order, next }) => {
                let to = order.len().min(*next + BATCH_ROWS);
                let part = &order[*next..to];
                *next = to;
                (!part.is_empty()).then(|| rows.batch(part))
            }
        };
        Ok(batch.map(|batch| self.yielded(batch)))
    }
}
