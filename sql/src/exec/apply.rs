//! Apply: a subquery per row, with columns of the row as its parameters.
//!
//! A subquery is executed for the rows that satisfy its guard: those for which the enclosing
//! expression needs its value. An uncorrelated subquery is executed once, at the first such row;
//! once per statement if it depends on nothing else. Otherwise results are cached by the values
//! of the outer columns, up to [`MEMO_ENTRIES`] and [`MEMO_BYTES`], unless the subquery is
//! volatile. `column IN (subquery)` with an uncorrelated subquery probes a hash set.
//!
//! If the rows come from region threads, these also execute the subquery
//! ([`stage`](crate::exec::stage)), if it only reads tables: a plan on a region thread must not
//! wait for another region thread.
//! region thread waits for no other one.

use std::sync::{Arc, OnceLock};

use ahash::{AHashMap, AHashSet};
use parking_lot::Mutex;
use types::aggregate::Aggregate;
use types::datatype::composite::Fields;
use types::expr::Expr;
use types::vector::BATCH_BYTES;
use types::{Batch, DataType, Datum, Vector};
use types::{batchcode, keycode};

use crate::error::{Error, Result};
use crate::exec::apply_groups::DecorrelatedGroups;
use crate::exec::stage::{PipelineStage, StageInput, StageOutput};
use crate::exec::{Context, Operator, build, memory};
use crate::logical::ApplyKind;
use crate::plan::{ApplyNode, Node};
use crate::planner::key_term::is_integer;

/// Maximum number of cached results; beyond it the cache is cleared.
const MEMO_ENTRIES: usize = 1024;
/// Size of cached results in bytes beyond which all but the last are dropped.
const MEMO_BYTES: usize = 8 * BATCH_BYTES;

/// Apply operator; see the module.
pub(super) struct ApplyOperator {
    subquery: Arc<SubqueryEvaluator>,
    input: StageInput,
    was_begun: bool,
    /// Input batch and next row, if the subquery is executed row by row.
    rows: Option<(Batch, usize)>,
    /// Current rows.
    asking: SubqueryRows,
}

/// Batch of rows for which the subquery is evaluated.
#[derive(Default)]
struct SubqueryRows {
    batch: Batch,
    /// Rows that satisfy the guard; `None`: all.
    asking: Option<Vec<u32>>,
    /// Values of all rows, if they come from the decorrelated groups.
    grouped: Option<Vector>,
    /// Next row.
    next: usize,
    /// Error of the subquery for the row after them.
    failure: Option<Error>,
}

/// Evaluator of the subquery.
struct SubqueryEvaluator {
    node: Arc<ApplyNode>,
    context: Arc<Context>,
    memo: Mutex<SubqueryCache>,
    /// Outer column and subquery column of `column = ANY (subquery)` with an uncorrelated
    /// subquery.
    equality: Option<(usize, usize)>,
    /// Decorrelated groups, computed at the first row; `None` inside if there is no such plan, or
    /// it fails.
    groups: OnceLock<Option<DecorrelatedGroups>>,
}

/// Cached results by the values of the outer columns.
#[derive(Default)]
struct SubqueryCache {
    answers: AHashMap<Vec<u8>, Arc<SubqueryResult>>,
    /// The fields of records in the keys.
    fields: Vec<Fields>,
    byte_count: usize,
}

impl SubqueryCache {
    fn insert(&mut self, key: Vec<u8>, answer: Arc<SubqueryResult>) {
        let bytes = key.len() + answer.byte_count();
        if self.answers.len() >= MEMO_ENTRIES || self.byte_count + bytes > MEMO_BYTES {
            self.answers.clear();
            self.byte_count = 0;
        }
        self.byte_count += bytes;
        self.answers.insert(key, answer);
    }
}

/// Results of subqueries that are executed once per statement, by the address of their node.
#[derive(Clone, Default)]
pub struct UncorrelatedResults(Arc<Mutex<AHashMap<usize, Arc<SubqueryResult>>>>);

/// Result of a subquery.
enum SubqueryResult {
    /// Value of a scalar subquery or EXISTS.
    Value(Datum),
    /// Rows, to be compared with each outer row.
    Rows(Vec<Batch>),
    /// Set of the values of its only column.
    Set(ValueSet),
}

impl SubqueryResult {
    /// Returns its approximate size in bytes.
    fn byte_count(&self) -> usize {
        match self {
            SubqueryResult::Value(value) => value.heap_bytes(),
            SubqueryResult::Rows(batches) => {
                let columns = batches.iter().flat_map(|batch| &batch.columns);
                columns.map(|column| column.byte_count()).sum()
            }
            SubqueryResult::Set(ValueSet { integers, forms, .. }) => {
                size_of::<i64>() * integers.len() + forms.iter().map(Vec::len).sum::<usize>()
            }
        }
    }
}

/// Hash set of the values of one column.
#[derive(Default)]
struct ValueSet {
    /// Integers of any width.
    integers: AHashSet<i64>,
    /// Other values, in key encoding.
    forms: AHashSet<Vec<u8>>,
    has_null: bool,
}

impl ValueSet {
    fn form(value: &Datum, data_type: &DataType) -> Result<Vec<u8>> {
        let mut form = Vec::new();
        keycode::encode(value, data_type, false, false, &mut form)?;
        Ok(form)
    }

    fn add(&mut self, value: &Datum, data_type: &DataType) -> Result<()> {
        match value.as_i64() {
            _ if value.is_null() => self.has_null = true,
            Some(integer) => {
                self.integers.insert(integer);
            }
            None => {
                self.forms.insert(ValueSet::form(value, data_type)?);
            }
        }
        Ok(())
    }

    /// Returns the value of `value = ANY (values)`.
    fn any_equals(&self, value: &Datum, data_type: &DataType) -> Result<Datum> {
        if self.integers.is_empty() && self.forms.is_empty() && !self.has_null {
            return Ok(Datum::Bool(false));
        }
        if value.is_null() {
            return Ok(Datum::Null);
        }
        let found = match value.as_i64() {
            Some(integer) => self.integers.contains(&integer),
            None => self.forms.contains(&ValueSet::form(value, data_type)?),
        };
        Ok(if !found && self.has_null { Datum::Null } else { Datum::Bool(found) })
    }
}

/// Returns the columns of an equality between an outer column and one of the subquery.
fn equality(node: &ApplyNode) -> Option<(usize, usize)> {
    let ApplyKind::Any { comparison: Expr::Call { function, arguments, .. } } = &node.kind else {
        return None;
    };
    if !node.bindings.is_empty() || types::function::signature(*function).name != "=" {
        return None;
    }
    let [Expr::Column { index: a, .. }, Expr::Column { index: b, .. }] = arguments.as_slice()
    else {
        return None;
    };
    let width = node.input_types.len();
    let (outer, inner) = (*a.min(b), a.max(b).checked_sub(width)?);
    let (left, right) = (node.input_types.get(outer)?, node.subquery_types.get(inner)?);
    let alike = left == right || (is_integer(left) && is_integer(right));
    let has_form = |data_type| keycode::check_type(data_type).is_ok();
    (alike && has_form(left) && has_form(right)).then_some((outer, inner))
}

/// Returns whether a plan only reads tables and computes.
fn only_reads(plan: &Node) -> bool {
    let own = match plan {
        Node::Scan(scan) => {
            scan.lock.is_none() && !scan.filter.as_ref().is_some_and(Expr::is_session_only)
        }
        Node::Filter(filter) => !filter.predicate.is_session_only(),
        Node::Project(project) => !project.expressions.iter().any(Expr::is_session_only),
        Node::Aggregate(aggregate) => {
            let mut parts = aggregate.aggregates.iter().flat_map(Aggregate::expressions);
            aggregate.group_by.is_empty() && !parts.any(Expr::is_session_only)
        }
        Node::LookupJoin(join) => join.before_index_history.is_none(),
        Node::Limit(_) => true,
        _ => false,
    };
    own && plan.inputs().into_iter().all(only_reads)
}

impl ApplyOperator {
    /// Opens the operator and its input.
    pub(super) fn open(node: &Arc<ApplyNode>, context: &Arc<Context>) -> Result<ApplyOperator> {
        let subquery = SubqueryEvaluator {
            node: Arc::clone(node),
            context: Arc::clone(context),
            memo: Mutex::default(),
            equality: equality(node),
            groups: OnceLock::new(),
        };
        let input = StageInput::new(build(&node.input, context)?);
        let subquery = Arc::new(subquery);
        let asking = SubqueryRows::default();
        Ok(ApplyOperator { subquery, input, was_begun: false, rows: None, asking })
    }

    /// Returns the next input rows: a single one if the subquery has side effects, so that those
    /// of a row precede those of the next one.
    fn next_rows(&mut self) -> Result<Option<Batch>> {
        if !self.subquery.node.is_volatile {
            return self.input.next();
        }
        let (batch, row) = match self.rows.take() {
            Some(rows) => rows,
            None => match self.input.next()? {
                Some(batch) => (batch, 0),
                None => return Ok(None),
            },
        };
        let one = batch.take(&[row as u32]);
        if row + 1 < batch.row_count {
            self.rows = Some((batch, row + 1));
        }
        Ok(Some(one))
    }

    /// Returns whether region threads may execute the subquery.
    fn may_be_handed_down(&self) -> bool {
        let node = &self.subquery.node;
        !node.bindings.is_empty()
            && node.groups.is_none()
            && self.input.takes_stages()
            && only_reads(&node.subquery)
    }

    /// Returns the stage for region threads.
    fn handed_down(&self) -> Arc<dyn PipelineStage> {
        let SubqueryEvaluator { node, context, equality, .. } = &*self.subquery;
        let context = Context { parallel: false, ..context.as_ref().clone() };
        Arc::new(SubqueryEvaluator {
            node: Arc::clone(node),
            context: Arc::new(context),
            memo: Mutex::default(),
            equality: *equality,
            groups: OnceLock::new(),
        })
    }
}

impl SubqueryEvaluator {
    fn value_type(&self) -> &DataType {
        match &self.node.kind {
            ApplyKind::Scalar => self.node.subquery_types.first().unwrap_or(&DataType::Unknown),
            ApplyKind::Array { data_type } => data_type,
            ApplyKind::Exists
            | ApplyKind::Any { .. }
            | ApplyKind::All { .. }
            | ApplyKind::Rows { .. } => &DataType::Bool,
        }
    }

    fn value(&self, batch: &Batch, row: usize) -> Result<Datum> {
        let answer = self.answer(batch, row)?;
        match (answer.as_ref(), &self.node.kind) {
            (SubqueryResult::Value(value), _) => Ok(value.clone()),
            (SubqueryResult::Rows(rows), ApplyKind::Any { comparison }) => {
                self.compare(comparison, batch, row, rows, true)
            }
            (SubqueryResult::Rows(rows), ApplyKind::All { comparison }) => {
                self.compare(comparison, batch, row, rows, false)
            }
            (SubqueryResult::Set(values), _) => match self.equality {
                Some((outer, _)) => {
                    let value = batch.columns[outer].datum(row);
                    values.any_equals(&value, &self.node.input_types[outer])
                }
                None => Ok(Datum::Null),
            },
            (SubqueryResult::Rows(_), _) => Ok(Datum::Null),
        }
    }

    /// Returns the values from the decorrelated groups, if there are any; NULL for rows that do
    /// not satisfy the guard.
    fn grouped_values(&self, batch: &Batch, asking: Option<&[u32]>) -> Result<Option<Vector>> {
        let Some(node) = &self.node.groups else { return Ok(None) };
        if asking.map_or(batch.row_count, <[u32]>::len) == 0 {
            let values = Vector::new(self.value_type(), batch.row_count);
            return Ok((batch.row_count == 0).then_some(values));
        }
        if self.groups.get().is_none() {
            let made = DecorrelatedGroups::make(node, &self.context)?;
            self.groups.get_or_init(|| made);
        }
        let Some(groups) = self.groups.get().and_then(Option::as_ref) else { return Ok(None) };
        let Some(asking) = asking else {
            return groups.values(node, batch.clone(), &self.context).map(Some);
        };
        let asked = groups.values(node, batch.take(asking), &self.context)?;
        let mut values = Vector::new(self.value_type(), batch.row_count);
        let mut next = 0;
        for row in 0..batch.row_count {
            match asking.get(next) {
                Some(at) if *at as usize == row => {
                    values.push(&asked.datum(next));
                    next += 1;
                }
                _ => values.push_null(),
            }
        }
        debug_assert_eq!(next, asking.len(), "rows that ask are not ascending");
        Ok(Some(values))
    }

    /// Returns the result of the subquery for a row, from the cache if possible.
    fn answer(&self, batch: &Batch, row: usize) -> Result<Arc<SubqueryResult>> {
        if self.node.is_volatile {
            return self.run(&self.context_of(batch, row)).map(Arc::new);
        }
        if self.node.is_uncorrelated {
            return self.answer_of_statement();
        }
        let mut key = Vec::new();
        let (mut columns, mut types) = (Vec::new(), Vec::new());
        for &(_, column) in &self.node.bindings {
            columns.push(Arc::new(batch.columns[column].take(&[row as u32])));
            types.push(self.node.input_types[column].clone());
        }
        // Equal values that are not identical, such as 1.0 and 1.00, may give different results.
        if !columns.is_empty() {
            let batch = Batch { columns, row_count: 1 };
            batchcode::write_batch(&batch, &types, &mut self.memo.lock().fields, &mut key);
        }
        if let Some(answer) = self.memo.lock().answers.get(&key) {
            return Ok(Arc::clone(answer));
        }
        let answer = Arc::new(self.run(&self.context_of(batch, row))?);
        self.memo.lock().insert(key, Arc::clone(&answer));
        Ok(answer)
    }

    /// Returns the result of the subquery for the statement, from the cache if possible.
    fn answer_of_statement(&self) -> Result<Arc<SubqueryResult>> {
        let UncorrelatedResults(answers) = &self.context.uncorrelated_results;
        let address = Arc::as_ptr(&self.node) as usize;
        if let Some(answer) = answers.lock().get(&address) {
            return Ok(Arc::clone(answer));
        }
        let answer = Arc::new(self.run(&self.context)?);
        answers.lock().insert(address, Arc::clone(&answer));
        Ok(answer)
    }

    /// Returns the context of the subquery for a row, with the values of the outer columns.
    fn context_of(&self, batch: &Batch, row: usize) -> Arc<Context> {
        if self.node.bindings.is_empty() {
            return Arc::clone(&self.context);
        }
        let mut context = self.context.as_ref().clone();
        for &(parameter, column) in &self.node.bindings {
            context.eval.parameters[parameter] = batch.columns[column].datum(row);
        }
        Arc::new(context)
    }

    fn run(&self, context: &Arc<Context>) -> Result<SubqueryResult> {
        context.check()?;
        let mut subquery = build(&self.node.subquery, context)?;
        match &self.node.kind {
            ApplyKind::Exists => Ok(SubqueryResult::Value(Datum::Bool(subquery.next()?.is_some()))),
            ApplyKind::Scalar => {
                let Some(batch) = subquery.next()? else {
                    return Ok(SubqueryResult::Value(Datum::Null));
                };
                if batch.row_count > 1 || subquery.next()?.is_some() {
                    bail!(CARDINALITY_VIOLATION: "more than one row returned by a subquery used as an expression");
                }
                Ok(SubqueryResult::Value(batch.columns[0].datum(0)))
            }
            ApplyKind::Array { data_type } => self.array(subquery.as_mut(), data_type),
            ApplyKind::Any { .. } | ApplyKind::All { .. } | ApplyKind::Rows { .. } => {
                if let Some((_, inner)) = self.equality {
                    return self.value_set(subquery.as_mut(), inner).map(SubqueryResult::Set);
                }
                let mut batches: Vec<Batch> = Vec::new();
                let mut bytes = 0;
                while let Some(batch) = subquery.next()? {
                    bytes += batch.columns.iter().map(|c| c.byte_count()).sum::<usize>();
                    memory::check(bytes, context.work_mem())?;
                    batches.push(batch);
                }
                Ok(SubqueryResult::Rows(batches))
            }
        }
    }

    /// Collects the values of the only column.
    fn array(&self, subquery: &mut dyn Operator, data_type: &DataType) -> Result<SubqueryResult> {
        let mut values = Vec::new();
        let mut bytes = 0;
        while let Some(batch) = subquery.next()? {
            self.context.check()?;
            let column = &batch.columns[0];
            bytes += column.byte_count();
            memory::check(bytes, self.context.work_mem())?;
            let pace = &mut self.context.eval.pace();
            for row in 0..batch.row_count {
                let value = column.datum_at(row, pace)?;
                pace.push(&mut values, value)?;
            }
        }
        let of_arrays = self.node.subquery_types.first() == Some(data_type);
        Ok(SubqueryResult::Value(types::function::gathered(
            values,
            of_arrays,
            &self.context.eval.style.interrupt,
        )?))
    }

    fn value_set(&self, subquery: &mut dyn Operator, column: usize) -> Result<ValueSet> {
        let mut set = ValueSet::default();
        let mut bytes = 0;
        while let Some(batch) = subquery.next()? {
            self.context.check()?;
            let values = &batch.columns[column];
            bytes += values.byte_count();
            memory::check(bytes, self.context.work_mem())?;
            for row in 0..batch.row_count {
                set.add(&values.datum(row), &self.node.subquery_types[column])?;
            }
        }
        Ok(set)
    }

    /// Compares an outer row with all rows of the subquery, in three-valued logic. `decisive`:
    /// TRUE for ANY, FALSE for ALL; one such comparison decides, otherwise a NULL does.
    fn compare(
        &self,
        comparison: &Expr,
        batch: &Batch,
        row: usize,
        rows: &[Batch],
        decisive: bool,
    ) -> Result<Datum> {
        let width = self.node.input_types.len();
        let comparison = comparison.clone().transform(&mut |part| match part {
            Expr::Column { index, data_type } if index < width => {
                Expr::Constant { value: batch.columns[index].datum(row), data_type }
            }
            Expr::Column { index, data_type } => Expr::Column { index: index - width, data_type },
            part => part,
        });
        let mut any_null = false;
        for rows in rows {
            let results = comparison.eval_batch(rows, &self.context.eval)?;
            for row in 0..rows.row_count {
                match results.datum(row) {
                    Datum::Bool(value) if value == decisive => return Ok(Datum::Bool(decisive)),
                    Datum::Null => any_null = true,
                    _ => {}
                }
            }
        }
        Ok(if any_null { Datum::Null } else { Datum::Bool(!decisive) })
    }
}

impl SubqueryEvaluator {
    /// Starts a batch of rows.
    fn turn_to(&self, batch: Batch) -> Result<SubqueryRows> {
        let mut rows = SubqueryRows { batch, asking: None, grouped: None, next: 0, failure: None };
        let Err(failure) = self.prepare(&mut rows) else { return Ok(rows) };
        self.context.check()?;
        // The reader may not need the row that fails.
        let fails = |at: &u32| {
            let mut row =
                SubqueryRows { batch: rows.batch.take(&[*at]), ..SubqueryRows::default() };
            self.prepare(&mut row).is_err()
        };
        let before = (0..rows.batch.row_count as u32).find(fails).unwrap_or_default();
        if before == 0 {
            return Err(failure);
        }
        rows.batch = rows.batch.take(&(0..before).collect::<Vec<u32>>());
        self.prepare(&mut rows)?;
        rows.failure = Some(failure);
        Ok(rows)
    }

    /// Evaluates the guard, and the values that come from groups.
    fn prepare(&self, rows: &mut SubqueryRows) -> Result<()> {
        if let Some(guard) = &self.node.guard {
            rows.asking = Some(guard.filter_batch(&rows.batch, &self.context.eval)?);
        }
        rows.grouped = self.grouped_values(&rows.batch, rows.asking.as_deref())?;
        Ok(())
    }

    /// Returns the next rows with their values: all that are left, or about a mebibyte of values.
    fn answered(&self, rows: &mut SubqueryRows) -> Result<Option<Batch>> {
        let start = rows.next;
        if start == rows.batch.row_count {
            return rows.failure.take().map_or(Ok(None), Err);
        }
        let values = match rows.grouped.take() {
            Some(values) => {
                rows.next = rows.batch.row_count;
                values
            }
            None => self.values(rows)?,
        };
        let mut batch = match (start, rows.next) {
            (0, end) if end == rows.batch.row_count => rows.batch.clone(),
            (start, end) => rows.batch.take(&(start as u32..end as u32).collect::<Vec<u32>>()),
        };
        batch.columns.push(Arc::new(values));
        Ok(Some(batch))
    }

    /// Returns the values of the next rows.
    fn values(&self, rows: &mut SubqueryRows) -> Result<Vector> {
        let start = rows.next;
        let (mut values, mut bytes) = (Vector::new(self.value_type(), 0), 0);
        while rows.next < rows.batch.row_count && bytes < BATCH_BYTES {
            let value = match rows.asks() {
                false => Ok(Datum::Null),
                true => {
                    self.context.check()?;
                    self.value(&rows.batch, rows.next)
                }
            };
            match value {
                Ok(value) => {
                    bytes += value.heap_bytes();
                    values.push(&value);
                }
                Err(failure) if rows.next > start => {
                    (rows.failure, rows.batch) = (Some(failure), rows.before_next());
                    break;
                }
                Err(failure) => return Err(failure),
            }
            rows.next += 1;
        }
        Ok(values)
    }
}

impl SubqueryRows {
    /// Returns whether the next row satisfies the guard.
    fn asks(&self) -> bool {
        let asking = self.asking.as_ref();
        asking.is_none_or(|asking| asking.binary_search(&(self.next as u32)).is_ok())
    }

    fn before_next(&self) -> Batch {
        self.batch.take(&(0..self.next as u32).collect::<Vec<u32>>())
    }
}

/// Rows for which the subquery is evaluated by the thread that has produced them.
struct SubqueryBatch {
    subquery: Arc<SubqueryEvaluator>,
    rows: SubqueryRows,
}

impl Operator for SubqueryBatch {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.subquery.answered(&mut self.rows)
    }
}

impl PipelineStage for SubqueryEvaluator {
    fn begin(self: Arc<Self>, batch: Batch, _: &Arc<Context>) -> Result<StageOutput> {
        let rows = self.turn_to(batch)?;
        Ok(StageOutput::Batches(Box::new(SubqueryBatch { subquery: self, rows })))
    }
}

impl Operator for ApplyOperator {
    fn next(&mut self) -> Result<Option<Batch>> {
        if !std::mem::replace(&mut self.was_begun, true) && self.may_be_handed_down() {
            let own = self.handed_down();
            self.input.attach_own(|| own)?;
        }
        if self.input.is_attached() {
            return self.input.next();
        }
        loop {
            if let Some(batch) = self.subquery.answered(&mut self.asking)? {
                return Ok(Some(batch));
            }
            let Some(batch) = self.next_rows()? else { return Ok(None) };
            self.asking = self.subquery.turn_to(batch)?;
        }
    }

    fn takes_stages(&self) -> bool {
        self.input.is_attached() || self.may_be_handed_down()
    }

    fn attach(&mut self, stage: &Arc<dyn PipelineStage>) -> Result<bool> {
        if !self.takes_stages() {
            return Ok(false);
        }
        self.was_begun = true;
        let own = self.handed_down();
        self.input.attach(|| own, stage)
    }
}
