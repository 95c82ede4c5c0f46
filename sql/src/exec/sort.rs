//! Sort, in memory. With a row goal only the first rows are kept while reading.

use std::cmp::Ordering;
use std::sync::Arc;

use types::vector::{BATCH_ROWS, BytesVector, VectorData};
use types::{Batch, DataType, Vector};

use crate::error::Result;
use crate::exec::pairs::Collected;
use crate::exec::project::columns_of;
use crate::exec::scan::goal_rows;
use crate::exec::{Context, Operator, build, memory};
use crate::plan::SortNode;

/// With a goal, rows are gathered up to so many more before they are cut to the goal.
const SLACK_ROWS: usize = 8 * BATCH_ROWS;

/// See the module.
pub(super) struct Sort {
    node: Arc<SortNode>,
    context: Arc<Context>,
    input: Box<dyn Operator>,
    goal: Option<usize>,
    sorted: Option<Sorted>,
}

/// All rows and their order.
struct Sorted {
    columns: Vec<Vector>,
    order: Vec<u32>,
    next: usize,
}

impl Sort {
    /// Opens it and what is below.
    pub(super) fn open(node: &Arc<SortNode>, context: &Arc<Context>) -> Result<Sort> {
        let goal = goal_rows(&node.goal, context)?;
        Ok(Sort {
            input: build(&node.input, context)?,
            node: Arc::clone(node),
            context: Arc::clone(context),
            goal: goal.map(|goal| usize::try_from(goal).unwrap_or(usize::MAX)),
            sorted: None,
        })
    }

    fn empty(&self) -> (Collected, Collected) {
        let key_types: Vec<DataType> =
            self.node.keys.iter().map(|key| key.expression.data_type()).collect();
        (Collected::new(&self.node.types), Collected::new(&key_types))
    }

    fn read_all(&mut self) -> Result<Sorted> {
        let expressions: Vec<_> = self.node.keys.iter().map(|key| key.expression.clone()).collect();
        let (mut rows, mut keys) = self.empty();
        while let Some(batch) = self.input.next()? {
            self.context.check()?;
            let columns = columns_of(&expressions, &batch, &self.context.eval)?;
            keys.add(&Batch { columns, row_count: batch.row_count });
            rows.add(&batch);
            let full = |goal: usize| rows.row_count >= goal.saturating_add(SLACK_ROWS.max(goal));
            if let Some(goal) = self.goal
                && full(goal)
            {
                let order = self.order(&keys, Some(goal));
                cut(&mut rows, &order);
                cut(&mut keys, &order);
            }
            memory::check(rows.byte_count() + keys.byte_count(), self.context.work_mem)?;
        }
        let order = self.order(&keys, self.goal);
        Ok(Sorted { columns: rows.columns, order, next: 0 })
    }

    /// Returns the rows in order, the first `goal` of them.
    fn order(&self, keys: &Collected, goal: Option<usize>) -> Vec<u32> {
        let mut order: Vec<u32> = (0..keys.row_count as u32).collect();
        let compare = |a: &u32, b: &u32| self.compare(keys, *a as usize, *b as usize);
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

    fn compare(&self, keys: &Collected, a: usize, b: usize) -> Ordering {
        for (key, vector) in self.node.keys.iter().zip(&keys.columns) {
            let order = match (vector.is_null(a), vector.is_null(b)) {
                (true, true) => Ordering::Equal,
                (true, false) if key.nulls_first => Ordering::Less,
                (true, false) => Ordering::Greater,
                (false, true) if key.nulls_first => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => {
                    let order = compare_values(vector, key.expression.data_type(), a, b);
                    if key.descending { order.reverse() } else { order }
                }
            };
            if order.is_ne() {
                return order;
            }
        }
        // Rows that sort alike keep the order they came in.
        a.cmp(&b)
    }
}

fn cut(rows: &mut Collected, order: &[u32]) {
    rows.columns.iter_mut().for_each(|column| *column = column.take(order));
    rows.row_count = order.len();
}

fn bytes(vector: &BytesVector, row: usize) -> &[u8] {
    let start = if row == 0 { 0 } else { vector.ends[row - 1] };
    &vector.bytes[start as usize..vector.ends[row] as usize]
}

/// Compares two values of a vector that are not NULL.
fn compare_values(vector: &Vector, data_type: DataType, a: usize, b: usize) -> Ordering {
    match &vector.data {
        VectorData::Bool(values) => values[a].cmp(&values[b]),
        VectorData::Int2(values) => values[a].cmp(&values[b]),
        VectorData::Int4(values) | VectorData::Date(values) => values[a].cmp(&values[b]),
        VectorData::Int8(values)
        | VectorData::Time(values)
        | VectorData::Timestamp(values)
        | VectorData::Timestamptz(values) => values[a].cmp(&values[b]),
        VectorData::Uuid(values) => values[a].cmp(&values[b]),
        VectorData::Text(values) if data_type != DataType::Char => {
            bytes(values, a).cmp(bytes(values, b))
        }
        VectorData::Bytea(values) => bytes(values, a).cmp(bytes(values, b)),
        VectorData::Float4(_)
        | VectorData::Float8(_)
        | VectorData::Numeric(_)
        | VectorData::Interval(_)
        | VectorData::Text(_) => vector.datum(a).compare_typed(&vector.datum(b), data_type),
    }
}

impl Operator for Sort {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.sorted.is_none() {
            self.sorted = Some(self.read_all()?);
        }
        let Some(sorted) = &mut self.sorted else { return Ok(None) };
        let to = sorted.order.len().min(sorted.next + BATCH_ROWS);
        let rows = &sorted.order[sorted.next..to];
        if rows.is_empty() {
            return Ok(None);
        }
        sorted.next = to;
        let columns = sorted.columns.iter().map(|column| Arc::new(column.take(rows))).collect();
        Ok(Some(Batch { columns, row_count: rows.len() }))
    }
}
