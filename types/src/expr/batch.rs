//! Batch evaluation: computes an expression for many rows, column by column.
//!
//! A node is computed only for the rows that reach it: AND, OR, CASE and COALESCE pass the
//! undecided rows to the next operand as a selection. The result of a node has one value for each
//! row of its selection.
//!
//! # Errors
//!
//! The first error of column-by-column evaluation need not be that of the first failing row. So
//! if anything fails, the batch is evaluated again row by row, and the first error of that
//! evaluation is returned. Only failing statements pay this cost.

use std::borrow::Cow;
use std::sync::Arc;

use super::operand::{Operand, Typed};
use super::row::{first_type, is_distinct};
use super::{EvalContext, Expr, kernel_arithmetic, kernel_compare, kernel_json, kernel_text};
use crate::cast;
use crate::datatype::DataType;
use crate::datum::{Array, Datum, Nested};
use crate::error::{Error, Result};
use crate::function::{self, CompareOp, FunctionId, KernelKind, LikePattern, Volatility};
use crate::item_set::ItemSet;
use crate::vector::{Batch, Vector, VectorData, positions};

impl Expr {
    /// Computes the values for all rows of a batch.
    ///
    /// # Errors
    ///
    /// As PostgreSQL for the same values; those of the first failing row.
    pub fn eval_batch(&self, batch: &Batch, context: &EvalContext) -> Result<Vector> {
        // A user-defined function may have side effects, so it must not be evaluated twice.
        if self.calls_routines() {
            return self.eval_rows(batch, context);
        }
        match evaluate(self, RowSelection { batch, selection: None }, context) {
            Ok(operand) => operand.into_vector(self.data_type(), batch.row_count, context),
            Err(_) => self.eval_rows(batch, context),
        }
    }

    /// Computes the values for all rows of a batch; a plain column is shared, not copied.
    ///
    /// # Errors
    ///
    /// Those of [`Expr::eval_batch`].
    pub fn eval_column(&self, batch: &Batch, context: &EvalContext) -> Result<Arc<Vector>> {
        match self {
            Expr::Column { index, .. } => Ok(Arc::clone(&batch.columns[*index])),
            _ => self.eval_batch(batch, context).map(Arc::new),
        }
    }

    /// Computes the values for the selected rows of a batch, in the order of the selection.
    ///
    /// # Errors
    ///
    /// Those of [`Expr::eval_batch`], for these rows.
    pub fn eval_selected(
        &self,
        batch: &Batch,
        selection: &[u32],
        context: &EvalContext,
    ) -> Result<Vector> {
        if self.calls_routines() {
            return self.eval_rows(&batch.take(selection), context);
        }
        let rows = RowSelection { batch, selection: Some(selection) };
        match evaluate(self, rows, context) {
            Ok(operand) => operand.into_vector(self.data_type(), selection.len(), context),
            Err(_) => self.eval_rows(&batch.take(selection), context),
        }
    }

    /// Computes a boolean expression and returns the positions of the rows for which it is true
    /// (neither false nor NULL), ascending.
    ///
    /// # Errors
    ///
    /// Those of [`Expr::eval_batch`].
    pub fn filter_batch(&self, batch: &Batch, context: &EvalContext) -> Result<Vec<u32>> {
        let (selection, failure) = self.filter_until(batch, context);
        failure.map_or(Ok(selection), Err)
    }

    /// As [`Expr::filter_batch`], but returns the positions before the first failing row and its
    /// error.
    pub fn filter_until(&self, batch: &Batch, context: &EvalContext) -> (Vec<u32>, Option<Error>) {
        if !self.calls_routines()
            && let Ok(selection) = filter(self, RowSelection { batch, selection: None }, context)
        {
            return (selection, None);
        }
        let mut selection = Vec::new();
        let failure = self.filter_rows(batch, context, &mut selection).err();
        (selection, failure)
    }

    /// Computes [`Expr::eval_batch`] row by row.
    fn eval_rows(&self, batch: &Batch, context: &EvalContext) -> Result<Vector> {
        let mut values = Vector::new(self.data_type(), batch.row_count);
        for index in 0..batch.row_count {
            context.style.interrupt.check()?;
            values.push_at(&self.eval_row(&batch.row(index), context)?, &mut context.pace())?;
        }
        Ok(values)
    }

    /// Computes [`Expr::filter_batch`] row by row.
    fn filter_rows(
        &self,
        batch: &Batch,
        context: &EvalContext,
        selection: &mut Vec<u32>,
    ) -> Result<()> {
        for index in 0..batch.row_count {
            context.style.interrupt.check()?;
            if self.passes_row(&batch.row(index), context)? {
                selection.push(position(index));
            }
        }
        Ok(())
    }
}

/// Returns whether column-by-column evaluation fails, so that the row path would be used.
#[cfg(test)]
pub(super) fn fails(expr: &Expr, batch: &Batch, context: &EvalContext) -> bool {
    evaluate(expr, RowSelection { batch, selection: None }, context).is_err()
}

/// The selected rows of a batch.
#[derive(Clone, Copy)]
struct RowSelection<'a> {
    batch: &'a Batch,
    /// Row numbers; `None` for all.
    selection: Option<&'a [u32]>,
}

impl<'a> RowSelection<'a> {
    fn count(self) -> usize {
        self.selection.map_or(self.batch.row_count, <[u32]>::len)
    }

    /// Returns the row of the batch at position `index` of the selection.
    fn row(self, index: u32) -> u32 {
        self.selection.map_or(index, |selection| selection[index as usize])
    }

    /// Returns the rows of the batch at these positions of the selection.
    fn rows(self, indexes: &[u32]) -> Vec<u32> {
        indexes.iter().map(|index| self.row(*index)).collect()
    }

    fn select<'b>(self, selection: &'b [u32]) -> RowSelection<'b>
    where
        'a: 'b,
    {
        RowSelection { batch: self.batch, selection: Some(selection) }
    }
}

fn position(index: usize) -> u32 {
    u32::try_from(index).expect("a batch has fewer than 2^32 rows")
}

/// Computes an expression for the selected rows.
fn evaluate<'a>(expr: &Expr, rows: RowSelection<'a>, context: &EvalContext) -> Result<Operand<'a>> {
    if rows.count() == 0 {
        return Ok(Operand::Vector(Cow::Owned(Vector::new(expr.data_type(), 0))));
    }
    match expr {
        Expr::Constant { value, .. } => Ok(Operand::Constant(value.clone())),
        Expr::Parameter { index, .. } => Ok(Operand::Constant(context.parameters[*index].clone())),
        Expr::Column { index, .. } => {
            let column = &rows.batch.columns[*index];
            Ok(Operand::Vector(match rows.selection {
                None => Cow::Borrowed(column),
                Some(selection) => Cow::Owned(column.take(selection)),
            }))
        }
        Expr::Call { function, arguments, data_type } => {
            if let Some(path) = kernel_json::MemberChain::of(expr, context) {
                let values = evaluate(path.base, rows, context)?;
                if let Some(found) = path.follow(&values, context) {
                    return found;
                }
            }
            if let Some((operand, items)) = equal_to_any(*function, arguments) {
                let value = evaluate(operand, rows, context)?;
                if let Operand::Vector(vector) = &value {
                    let make = || ItemSet::new(&items.elements, operand.data_type());
                    return Ok(among(vector, &context.item_sets.of(items, make)));
                }
            }
            let mut operands = Vec::with_capacity(arguments.len());
            for argument in arguments {
                operands.push(evaluate(argument, rows, context)?);
            }
            let (id, first) = (*function, first_type(arguments));
            let called = ResolvedCall { id, first, result: data_type };
            call(called, &operands, rows.count(), context)
        }
        Expr::Routine { .. } | Expr::Unreadable { .. } => row_by_row(expr, rows, context),
        Expr::Cast { operand, from, to, explicit } => match evaluate(operand, rows, context)? {
            Operand::Constant(value) => {
                cast::cast(&value, from, to, *explicit, context).map(Operand::Constant)
            }
            Operand::Vector(vector) => {
                let cast = cast::cast_vector(&vector, from, to, *explicit, context)?;
                Ok(Operand::Vector(Cow::Owned(cast)))
            }
        },
        Expr::Domain { operand, checks, .. } => {
            let values = evaluate(operand, rows, context)?;
            (0..rows.count()).try_for_each(|index| checks.check(&values.datum(index), context))?;
            Ok(values)
        }
        Expr::And(operands) => connect(operands, false, rows, context),
        Expr::Or(operands) => connect(operands, true, rows, context),
        Expr::Not(operand) => Ok(not(evaluate(operand, rows, context)?)),
        Expr::IsNull(operand) => Ok(is_null(&evaluate(operand, rows, context)?)),
        Expr::IsDistinct { left, right, negated } => {
            let data_type = left.data_type();
            let left = evaluate(left, rows, context)?;
            let right = evaluate(right, rows, context)?;
            let test = |i| is_distinct(&left.datum(i), &right.datum(i), data_type) != *negated;
            Ok(Operand::owned(VectorData::Bool((0..rows.count()).map(test).collect()), None))
        }
        Expr::InList { operand, list } => in_list(operand, list, rows, context),
        Expr::Case { branches, otherwise, data_type } => {
            case(branches, otherwise, data_type, rows, context)
        }
        Expr::Coalesce { operands, data_type } => coalesce(operands, data_type, rows, context),
    }
}

/// Computes an expression row by row.
fn row_by_row<'a>(
    expr: &Expr,
    rows: RowSelection<'_>,
    context: &EvalContext,
) -> Result<Operand<'a>> {
    let mut vector = Vector::new(expr.data_type(), rows.count());
    for index in 0..position(rows.count()) {
        context.style.interrupt.check()?;
        let row = rows.batch.row(rows.row(index) as usize);
        vector.push_at(&expr.eval_row(&row, context)?, &mut context.pace())?;
    }
    Ok(Operand::Vector(Cow::Owned(vector)))
}

/// Computes a boolean expression for the selected rows and returns the rows of the batch where it
/// is true.
fn filter(expr: &Expr, rows: RowSelection<'_>, context: &EvalContext) -> Result<Vec<u32>> {
    if let Expr::And(conjuncts) = expr {
        let mut selection: Option<Vec<u32>> = None;
        for conjunct in conjuncts {
            let open = match &selection {
                None => rows,
                Some(selection) => rows.select(selection),
            };
            selection = Some(filter(conjunct, open, context)?);
        }
        return Ok(selection.unwrap_or_else(|| rows.rows(&all(rows.count()))));
    }
    if let Some(selection) = rows.selection
        && selection.len() >= rows.batch.row_count / SPARSE
        && is_plain_comparison(expr)
    {
        let all_rows = RowSelection { batch: rows.batch, selection: None };
        let result = evaluate(expr, all_rows, context)?;
        let accepted = |row: &u32| boolean(&result, *row as usize) == Some(true);
        return Ok(selection.iter().copied().filter(accepted).collect());
    }
    let accepted = where_true(&evaluate(expr, rows, context)?, rows.count());
    Ok(match rows.selection {
        None => accepted,
        Some(_) => rows.rows(&accepted),
    })
}

/// Inverse selectivity above which selected rows are gathered before a comparison.
const SPARSE: usize = 8;

/// Returns whether an expression compares a column with a column, constant or parameter in a
/// typed loop that cannot fail, and may therefore be computed for unselected rows.
fn is_plain_comparison(expr: &Expr) -> bool {
    let Expr::Call { function, arguments, .. } = expr else {
        return false;
    };
    let plain = |argument: &Expr| {
        matches!(argument, Expr::Column { .. } | Expr::Constant { .. } | Expr::Parameter { .. })
    };
    matches!(function::shape(*function), KernelKind::Compare(_))
        && comparison(function::signature(*function).arguments).is_some()
        && arguments.iter().all(plain)
}

fn all(count: usize) -> Vec<u32> {
    (0..position(count)).collect()
}

/// Returns the positions where a boolean is true.
fn where_true(operand: &Operand<'_>, row_count: usize) -> Vec<u32> {
    let vector = match operand {
        Operand::Constant(Datum::Bool(true)) => return all(row_count),
        Operand::Constant(_) => return Vec::new(),
        Operand::Vector(vector) => vector,
    };
    let VectorData::Bool(values) = &vector.data else {
        unreachable!("a condition is a boolean");
    };
    match &vector.validity {
        None => positions(values.iter().copied()),
        Some(valid) => positions(values.iter().zip(valid).map(|(value, valid)| *value && *valid)),
    }
}

/// A function with the types of its first argument and of its result in this call.
#[derive(Clone, Copy)]
struct ResolvedCall<'a> {
    id: FunctionId,
    first: &'a DataType,
    result: &'a DataType,
}

impl ResolvedCall<'_> {
    fn with(self, values: &[Datum], context: &EvalContext) -> Result<Datum> {
        function::call(self.id, values, self.first, context)
    }
}

fn call<'a>(
    called: ResolvedCall<'_>,
    operands: &[Operand<'a>],
    row_count: usize,
    context: &EvalContext,
) -> Result<Operand<'a>> {
    let signature = function::signature(called.id);
    let constant = operands.iter().all(|operand| matches!(operand, Operand::Constant(_)));
    if constant && signature.volatility != Volatility::Volatile {
        let values: Vec<Datum> = operands.iter().map(|operand| operand.datum(0)).collect();
        return called.with(&values, context).map(Operand::Constant);
    }
    if signature.strict && operands.iter().any(Operand::is_constant_null) {
        return Ok(Operand::Constant(Datum::Null));
    }
    if function::shape(called.id) == KernelKind::Join
        && let Some(joined) = kernel_text::join(operands, !signature.strict, row_count)
    {
        return Ok(joined);
    }
    if let [left, right] = operands {
        let fast = match function::shape(called.id) {
            KernelKind::Compare(op) => match comparison(signature.arguments) {
                Some(kernel) => kernel(op, left, right, row_count).map(Ok),
                None => None,
            },
            KernelKind::Arithmetic(op) => {
                kernel_arithmetic::arithmetic(op, left, right, called.result, &mut context.pace())
            }
            KernelKind::Like { negated, ignore_case } => {
                like((left, right), negated, ignore_case, context)
            }
            _ => None,
        };
        if let Some(result) = fast {
            return result;
        }
    }
    call_each(called, operands, row_count, context)
}

/// Typed loops of a comparison.
type Comparison<'a> = fn(CompareOp, &Operand<'_>, &Operand<'_>, usize) -> Option<Operand<'a>>;

/// Returns the typed loop for values of these types, if there is one for their representations.
fn comparison<'a>(types: &[DataType]) -> Option<Comparison<'a>> {
    match types {
        [DataType::Char, DataType::Char] => Some(kernel_compare::compare_blanks),
        [DataType::Date, DataType::Timestamp] | [DataType::Timestamp, DataType::Date] => {
            Some(kernel_compare::compare_midnights)
        }
        [left, right] if left == right || (left.is_number() && right.is_number()) => {
            Some(kernel_compare::compare)
        }
        _ => None,
    }
}

/// Calls a function for each row.
fn call_each<'a>(
    called: ResolvedCall<'_>,
    operands: &[Operand<'_>],
    row_count: usize,
    context: &EvalContext,
) -> Result<Operand<'a>> {
    let strict = function::signature(called.id).strict;
    let mut results = Vector::new(called.result, row_count);
    let mut values: Vec<Datum> = vec![Datum::Null; operands.len()];
    for (value, operand) in values.iter_mut().zip(operands) {
        if let Operand::Constant(constant) = operand {
            *value = constant.clone();
        }
    }
    for index in 0..row_count {
        if strict && operands.iter().any(|operand| operand.is_null(index)) {
            results.push_null();
            continue;
        }
        context.style.interrupt.check()?;
        for (value, operand) in values.iter_mut().zip(operands) {
            if let Operand::Vector(vector) = operand {
                *value = vector.datum_at(index, &mut context.pace())?;
            }
        }
        results.push_at(&called.with(&values, context)?, &mut context.pace())?;
    }
    Ok(Operand::Vector(Cow::Owned(results)))
}

fn like<'a>(
    (strings, pattern): (&Operand<'_>, &Operand<'_>),
    negated: bool,
    ignore_case: bool,
    context: &EvalContext,
) -> Option<Result<Operand<'a>>> {
    let (Typed::Bytes(values), Operand::Constant(Datum::Text(pattern))) =
        (strings.typed(), pattern)
    else {
        return None;
    };
    let pattern = LikePattern::new(pattern, ignore_case);
    let validity = strings.validity().map(<[bool]>::to_vec);
    if let Some(mut found) = pattern.match_all(values) {
        if negated {
            found.iter_mut().for_each(|found| *found = !*found);
        }
        return Some(Ok(Operand::owned(VectorData::Bool(found), validity)));
    }
    let mut pace = context.pace();
    let test = |index| {
        if strings.is_null(index) {
            return Ok(false);
        }
        context.style.interrupt.check()?;
        pattern.matches(values.get(index), &mut pace).map(|found| found != negated)
    };
    let results: Result<Vec<bool>> = (0..values.len()).map(test).collect();
    Some(results.map(|results| Operand::owned(VectorData::Bool(results), validity)))
}

fn not(operand: Operand<'_>) -> Operand<'_> {
    match operand {
        Operand::Constant(Datum::Bool(value)) => Operand::Constant(Datum::Bool(!value)),
        Operand::Constant(_) => Operand::Constant(Datum::Null),
        Operand::Vector(vector) => {
            let VectorData::Bool(values) = &vector.data else {
                unreachable!("NOT is over a boolean");
            };
            let negated = values.iter().map(|value| !value).collect();
            Operand::owned(VectorData::Bool(negated), vector.validity.clone())
        }
    }
}

fn is_null<'a>(operand: &Operand<'_>) -> Operand<'a> {
    match operand {
        Operand::Constant(value) => Operand::Constant(Datum::Bool(*value == Datum::Null)),
        Operand::Vector(vector) => match &vector.validity {
            None => Operand::Constant(Datum::Bool(false)),
            Some(valid) => {
                Operand::owned(VectorData::Bool(valid.iter().map(|valid| !valid).collect()), None)
            }
        },
    }
}

/// Computes AND (`decisive` false) or OR (`decisive` true). Rows that an operand decides are
/// removed from the selection.
fn connect<'a>(
    operands: &[Expr],
    decisive: bool,
    rows: RowSelection<'a>,
    context: &EvalContext,
) -> Result<Operand<'a>> {
    let count = rows.count();
    let mut values = vec![!decisive; count];
    let mut valid = vec![true; count];
    let mut open: Option<Vec<u32>> = None;
    for operand in operands {
        let result = match &open {
            None => evaluate(operand, rows, context)?,
            Some(open) if open.is_empty() => break,
            Some(open) => evaluate(operand, rows.select(&rows.rows(open)), context)
                .and_then(|result| result.into_vector(&DataType::Bool, open.len(), context))
                .map(|vector| Operand::Vector(Cow::Owned(vector)))?,
        };
        let indexes = open.unwrap_or_else(|| all(count));
        let mut still_open = Vec::with_capacity(indexes.len());
        for (place, index) in indexes.into_iter().enumerate() {
            match boolean(&result, place) {
                Some(value) if value == decisive => {
                    values[index as usize] = decisive;
                    valid[index as usize] = true;
                    continue;
                }
                Some(_) => {}
                None => valid[index as usize] = false,
            }
            still_open.push(index);
        }
        open = Some(still_open);
    }
    let validity = if valid.iter().all(|valid| *valid) { None } else { Some(valid) };
    Ok(Operand::owned(VectorData::Bool(values), validity))
}

/// Returns the boolean of a row; `None` for NULL.
fn boolean(operand: &Operand<'_>, index: usize) -> Option<bool> {
    match operand {
        Operand::Constant(Datum::Bool(value)) => Some(*value),
        Operand::Constant(_) => None,
        Operand::Vector(vector) if vector.is_null(index) => None,
        Operand::Vector(vector) => match &vector.data {
            VectorData::Bool(values) => Some(values[index]),
            _ => unreachable!("operands of AND and OR are booleans"),
        },
    }
}

/// The results of CASE and COALESCE, which are computed for several selections and put in row
/// order at the end.
struct SelectedResults {
    values: Vector,
    /// For each row, the position of its value in `values`.
    places: Vec<u32>,
}

impl SelectedResults {
    fn new(data_type: &DataType, row_count: usize) -> SelectedResults {
        SelectedResults { values: Vector::new(data_type, row_count), places: vec![0; row_count] }
    }

    /// Adds the values of the rows `indexes`, which are at `from` in `operand`.
    fn add(&mut self, indexes: &[u32], operand: Operand<'_>, from: impl Fn(usize) -> usize) {
        let start = self.values.len();
        match operand {
            Operand::Constant(value) => {
                self.values.push(&value);
                for index in indexes {
                    self.places[*index as usize] = position(start);
                }
            }
            Operand::Vector(vector) => {
                self.values.append(&vector);
                for (place, index) in indexes.iter().enumerate() {
                    self.places[*index as usize] = position(start + from(place));
                }
            }
        }
    }

    fn finish<'a>(self) -> Operand<'a> {
        Operand::Vector(Cow::Owned(self.values.take(&self.places)))
    }
}

fn case<'a>(
    branches: &[(Expr, Expr)],
    otherwise: &Expr,
    data_type: &DataType,
    rows: RowSelection<'a>,
    context: &EvalContext,
) -> Result<Operand<'a>> {
    let mut pieces = SelectedResults::new(data_type, rows.count());
    let mut open = all(rows.count());
    for (condition, result) in branches {
        if open.is_empty() {
            break;
        }
        let rows_open = rows.rows(&open);
        let condition = evaluate(condition, rows.select(&rows_open), context)?;
        let taken_places = where_true(&condition, open.len());
        if taken_places.is_empty() {
            continue;
        }
        let taken: Vec<u32> = taken_places.iter().map(|place| open[*place as usize]).collect();
        let value = evaluate(result, rows.select(&rows.rows(&taken)), context).map(detach)?;
        pieces.add(&taken, value, |place| place);
        open = without(&open, &taken_places);
    }
    if !open.is_empty() {
        let value = evaluate(otherwise, rows.select(&rows.rows(&open)), context).map(detach)?;
        pieces.add(&open, value, |place| place);
    }
    Ok(pieces.finish())
}

/// Returns the operand with owned values, independent of its selection.
fn detach<'b>(operand: Operand<'_>) -> Operand<'b> {
    match operand {
        Operand::Constant(value) => Operand::Constant(value),
        Operand::Vector(vector) => Operand::Vector(Cow::Owned(vector.into_owned())),
    }
}

/// Returns the entries except those at `places`, which are ascending.
fn without(entries: &[u32], places: &[u32]) -> Vec<u32> {
    let mut left = Vec::with_capacity(entries.len() - places.len());
    let mut leaving = places.iter().peekable();
    for (place, entry) in entries.iter().enumerate() {
        if leaving.next_if(|leaving| **leaving as usize == place).is_none() {
            left.push(*entry);
        }
    }
    left
}

fn coalesce<'a>(
    operands: &[Expr],
    data_type: &DataType,
    rows: RowSelection<'a>,
    context: &EvalContext,
) -> Result<Operand<'a>> {
    let mut pieces = SelectedResults::new(data_type, rows.count());
    let mut open = all(rows.count());
    for operand in operands {
        if open.is_empty() {
            break;
        }
        let rows_open = rows.rows(&open);
        let value = evaluate(operand, rows.select(&rows_open), context)?;
        if value.is_constant_null() {
            continue;
        }
        let missing: Vec<u32> =
            (0..position(open.len())).filter(|place| value.is_null(*place as usize)).collect();
        let places = without(&all(open.len()), &missing);
        let taken: Vec<u32> = places.iter().map(|place| open[*place as usize]).collect();
        let still_open = missing.iter().map(|place| open[*place as usize]).collect();
        pieces.add(&taken, value, |place| places[place] as usize);
        open = still_open;
    }
    if !open.is_empty() {
        pieces.add(&open, Operand::Constant(Datum::Null), |place| place);
    }
    Ok(pieces.finish())
}

fn in_list<'a>(
    operand: &Expr,
    list: &Arc<Vec<Expr>>,
    rows: RowSelection<'a>,
    context: &EvalContext,
) -> Result<Operand<'a>> {
    let data_type = operand.data_type();
    let value = evaluate(operand, rows, context)?;
    let simple = |item: &Expr| matches!(item, Expr::Constant { .. } | Expr::Parameter { .. });
    let Operand::Vector(vector) = &value else {
        return connect_list(&value, data_type, list, rows, context);
    };
    if !list.iter().all(simple) {
        return connect_list(&value, data_type, list, rows, context);
    }
    let mut items = Vec::with_capacity(list.len());
    if list.iter().all(|item| matches!(item, Expr::Constant { .. })) {
        let constants = list.iter().filter_map(|item| match item {
            Expr::Constant { value, .. } => Some(value),
            _ => None,
        });
        let set = context.item_sets.of(list, || ItemSet::new(constants, data_type));
        return Ok(among(vector, &set));
    }
    for item in list.iter() {
        items.push(item.eval_row(&[], context)?);
    }
    Ok(among(vector, &ItemSet::new(&items, data_type)))
}

/// Returns the operand and the array of `value = ANY (array)`, if the array is a constant with
/// many elements of the operand's type.
fn equal_to_any(function: FunctionId, arguments: &[Expr]) -> Option<(&Expr, &Arc<Array>)> {
    const FEW: usize = 8;
    let [Expr::Constant { value: Datum::Int4(comparison), .. }, operand, array] = arguments else {
        return None;
    };
    let Expr::Constant { value: Datum::Nested(Nested::Array(array)), .. } = array else {
        return None;
    };
    let comparison = function::signature(FunctionId(u16::try_from(*comparison).ok()?));
    let data_type = operand.data_type();
    let is_so = function::signature(function).name == "any of"
        && comparison.name == "="
        && comparison.arguments.iter().all(|one| one == data_type)
        && array.elements.len() > FEW;
    is_so.then_some((operand, array))
}

/// Returns for each value of a vector whether it is in a set.
fn among<'a>(vector: &Vector, items: &ItemSet) -> Operand<'a> {
    let (found, validity) = items.find(vector);
    Operand::owned(VectorData::Bool(found), validity)
}

/// Computes IN with a list of expressions. Rows with an equal item are removed from the
/// selection.
fn connect_list<'a>(
    value: &Operand<'_>,
    data_type: &DataType,
    list: &[Expr],
    rows: RowSelection<'a>,
    context: &EvalContext,
) -> Result<Operand<'a>> {
    let count = rows.count();
    let mut results = Vector::new(&DataType::Bool, count);
    let mut outcome: Vec<Option<bool>> = vec![Some(false); count];
    let mut open: Vec<u32> = Vec::with_capacity(count);
    for index in all(count) {
        if !list.is_empty() && value.is_null(index as usize) {
            outcome[index as usize] = None;
        } else {
            open.push(index);
        }
    }
    for item in list {
        let rows_open = rows.rows(&open);
        let items = evaluate(item, rows.select(&rows_open), context)?;
        let mut still_open = Vec::with_capacity(open.len());
        for (place, index) in open.iter().enumerate() {
            let item = items.datum(place);
            if item == Datum::Null {
                outcome[*index as usize] = None;
            } else if !is_distinct(&value.datum(*index as usize), &item, data_type) {
                outcome[*index as usize] = Some(true);
                continue;
            }
            still_open.push(*index);
        }
        open = still_open;
    }
    for outcome in outcome {
        match outcome {
            Some(value) => results.push(&Datum::Bool(value)),
            None => results.push_null(),
        }
    }
    Ok(Operand::Vector(Cow::Owned(results)))
}
