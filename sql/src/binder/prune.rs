//! The last pass of the binder: column pruning, final parameter numbers and types, constant
//! folding, and removal of identity projections.
//!
//! Each node requests some columns of its input, and gets their new positions. An input may retain
//! more columns than requested; it never reorders them.

use types::expr::{EvalContext, Expr};
use types::{DataType, Datum};

use crate::binder::constant_errors::{ConstantErrors, KnownParameters, is_never_true};
use crate::binder::parameters::Parameters;
use crate::binder::pull_up::pull_up;
use crate::binder::subquery_guards::is_value;
use crate::binder::tree::{
    for_each_column, for_each_expression, for_each_input, for_each_source,
    for_each_statement_expression, for_each_step, map_columns, walk_plan, width,
};
use crate::logical::{Apply, ApplyKind, BoundPlan, Join, JoinKind, Logical};

/// The position of each column of a plan after pruning; `None` if it was removed.
type Places = Vec<Option<usize>>;

/// Finishes a statement; returns the errors of constant folding.
pub(super) fn finish(
    bound: &mut BoundPlan,
    parameters: &mut Parameters,
    known: KnownParameters,
) -> ConstantErrors {
    for_each_source(bound, &mut |plan| {
        prune_all(plan);
        drop_identities(plan);
        if pull_up(plan, parameters) {
            prune_all(plan);
            drop_identities(plan);
        }
    });
    let errors = ConstantErrors::new(known);
    let mut last_pass = LastPass { parameters, errors, guards: Vec::new(), is_reached: true };
    for_each_source(bound, &mut |plan| last_pass.finish_plan(plan));
    for_each_step(bound, &mut |step| {
        for_each_statement_expression(step, &mut |expr| last_pass.finish(expr));
    });
    last_pass.errors
}

/// Folds the expressions of a statement and records those that fail.
struct LastPass<'a> {
    parameters: &'a Parameters,
    errors: ConstantErrors,
    /// The guards of the enclosing subqueries.
    guards: Vec<Expr>,
    /// False if a constant guard rules out that the expressions are evaluated.
    is_reached: bool,
}

impl LastPass<'_> {
    fn finish(&mut self, expr: &mut Expr) {
        let mut error = None;
        finish_noting(expr, self.parameters, &mut error);
        if self.is_reached {
            self.errors.note(expr, error, &self.guards);
        }
    }

    /// Finishes a plan: a node before its inputs, except LIMIT, as PostgreSQL does.
    fn finish_plan(&mut self, plan: &mut Logical) {
        let parameters = self.parameters;
        match plan {
            Logical::Apply(apply) => return self.finish_apply(apply),
            Logical::LockRows(lock) => {
                let held = &mut lock.locked_tables;
                held.for_each_parameter_mut(&mut |index| *index = parameters.final_index(*index));
            }
            _ => {}
        }
        let is_limit = matches!(plan, Logical::Limit { .. });
        if !is_limit {
            for_each_expression(plan, &mut |expr| self.finish(expr));
        }
        for_each_input(plan, &mut |input| self.finish_plan(input));
        if is_limit {
            for_each_expression(plan, &mut |expr| self.finish(expr));
        }
    }

    fn finish_apply(&mut self, apply: &mut Apply) {
        for (parameter, _) in &mut apply.bindings {
            *parameter = self.parameters.final_index(*parameter);
        }
        apply.expressions_mut().for_each(|expr| self.finish(expr));
        let was_reached = self.is_reached;
        if let Some(guard) = &apply.guard {
            self.is_reached &= !is_never_true(guard);
            self.guards.push(guard.clone());
        }
        self.finish_plan(&mut apply.subquery);
        if apply.guard.is_some() {
            self.guards.pop();
        }
        self.is_reached = was_reached;
        self.finish_plan(&mut apply.input);
    }
}

pub(super) fn finish_expression(expr: &mut Expr, parameters: &Parameters) {
    finish_noting(expr, parameters, &mut None);
}

fn finish_noting(expr: &mut Expr, parameters: &Parameters, error: &mut Option<types::Error>) {
    expr.walk_mut(&mut |node| match node {
        Expr::Parameter { index, data_type } => {
            if *data_type == DataType::Unknown {
                *data_type = parameters.final_type(*index).base;
            }
            *index = parameters.final_index(*index);
        }
        Expr::Constant { value: Datum::Null | Datum::Text(_), data_type }
            if *data_type == DataType::Unknown =>
        {
            *data_type = DataType::Text;
        }
        _ => {}
    });
    let whole = std::mem::replace(expr, Expr::And(Vec::new()));
    // Only immutable functions are folded, so no clock and no time zone is needed.
    *expr = whole.fold_with_error(&EvalContext::planning(), error);
}

fn mark(expr: &Expr, needed: &mut [bool]) {
    for_each_column(expr, &mut |index| {
        if let Some(slot) = needed.get_mut(index) {
            *slot = true;
        }
    });
}

fn remap(expr: &mut Expr, places: &Places) {
    map_columns(expr, &|index| places[index].expect("a column that is used was asked for"));
}

fn unchanged(count: usize) -> Places {
    (0..count).map(Some).collect()
}

/// Returns the new positions, given which columns are retained.
fn numbered(kept: impl Iterator<Item = bool>) -> Places {
    let mut next = 0;
    let place = |keep: bool| {
        keep.then(|| {
            next += 1;
            next - 1
        })
    };
    kept.map(place).collect()
}

fn retain<T>(list: &mut Vec<T>, needed: &[bool]) {
    let mut flags = needed.iter();
    list.retain(|_| flags.next().copied().unwrap_or(true));
}

/// Removes unneeded columns of a plan, where the node supports it.
#[expect(clippy::too_many_lines, reason = "a flat match over the kinds of steps")]
fn prune(plan: &mut Logical, needed: &[bool]) -> Places {
    match plan {
        Logical::Scan(scan) => {
            retain(&mut scan.columns, needed);
            numbered(needed.iter().copied())
        }
        Logical::Values { types, rows } if is_one_calm_row(rows) => {
            retain(types, needed);
            rows.iter_mut().for_each(|row| retain(row, needed));
            numbered(needed.iter().copied())
        }
        Logical::SystemRows(_)
        | Logical::Values { .. }
        | Logical::Constants(_)
        | Logical::CteScan(_) => unchanged(needed.len()),
        Logical::Filter { input, predicate } => {
            let mut needed = needed.to_vec();
            mark(predicate, &mut needed);
            let places = prune(input, &needed);
            remap(predicate, &places);
            places
        }
        Logical::Barrier { input } => prune(input, needed),
        Logical::Project { input, expressions } => {
            // Volatile expressions are evaluated even if nothing reads them.
            let is_needed = |(expr, needed): (&Expr, &bool)| *needed || expr.is_volatile();
            let needed: Vec<bool> = expressions.iter().zip(needed).map(is_needed).collect();
            retain(expressions, &needed);
            prune_input(input, expressions);
            numbered(needed.iter().copied())
        }
        Logical::Join(join) => prune_join(join, needed),
        Logical::Apply(apply) if is_unread(apply, needed) => {
            *plan = std::mem::replace(&mut apply.input, Logical::Append { inputs: Vec::new() });
            let mut places = prune(plan, &needed[..needed.len() - 1]);
            places.push(None);
            places
        }
        Logical::Apply(apply) => prune_apply(apply, needed),
        Logical::Aggregate { input, group_by, aggregates } => {
            let mut all: Vec<&mut Expr> = group_by.iter_mut().collect();
            for aggregate in aggregates {
                all.extend(aggregate.expressions_mut());
            }
            prune_input(input, all);
            unchanged(needed.len())
        }
        Logical::ProjectSet(sets) => {
            let input_width = width(&sets.input);
            let mut below = needed[..input_width].to_vec();
            sets.arguments().for_each(|expr| mark(expr, &mut below));
            let mut places = prune(&mut sets.input, &below);
            sets.arguments_mut().for_each(|expr| remap(expr, &places));
            let first = width(&sets.input);
            places.extend((0..sets.set_types().count()).map(|index| Some(first + index)));
            places
        }
        Logical::GroupingSets(grouping) => {
            let mut all: Vec<&mut Expr> = grouping.group_by.iter_mut().collect();
            for aggregate in &mut grouping.aggregates {
                all.extend(aggregate.expressions_mut());
            }
            prune_input(&mut grouping.input, all);
            unchanged(needed.len())
        }
        Logical::Sort { input, keys } => {
            let mut needed = needed.to_vec();
            keys.iter().for_each(|key| mark(&key.expression, &mut needed));
            let places = prune(input, &needed);
            keys.iter_mut().for_each(|key| remap(&mut key.expression, &places));
            places
        }
        Logical::LockRows(lock) => {
            let mut needed = needed.to_vec();
            lock.locked_tables.needed().for_each(|column| needed[column] = true);
            let places = prune(&mut lock.input, &needed);
            let place =
                |column: usize| places[column].expect("a column that is used was asked for");
            lock.locked_tables.renumber(&place);
            keep_places(&mut lock.re_evaluation, &places);
            places
        }
        Logical::Limit { input, ties, .. } => prune_below(input, needed, ties),
        Logical::Distinct { input, on } if on.is_empty() => prune_all(input),
        Logical::Distinct { input, on } => prune_below(input, needed, on),
        Logical::Window(window) => {
            let input_width = width(&window.input);
            let mut below = needed[..input_width].to_vec();
            window.for_each_expression(&mut |expr| mark(expr, &mut below));
            let mut places = prune(&mut window.input, &below);
            window.for_each_expression_mut(&mut |expr| remap(expr, &places));
            let first = width(&window.input);
            places.extend((0..window.functions.len()).map(|index| Some(first + index)));
            places
        }
        Logical::With(with) => {
            prune_all(&mut with.query);
            prune(&mut with.body, needed)
        }
        Logical::RecursiveUnion(union) => {
            prune_all(&mut union.start);
            prune_all(&mut union.step)
        }
        Logical::SetOperation(operation) => {
            prune_all(&mut operation.left);
            prune_all(&mut operation.right)
        }
        Logical::Append { inputs } => {
            inputs.iter_mut().for_each(|input| drop(prune_all(input)));
            unchanged(needed.len())
        }
    }
}

/// Adds a projection that retains the columns with a position.
fn keep_places(plan: &mut Logical, places: &Places) {
    let types = plan.column_types();
    let kept = (0..places.len()).filter(|&at| places[at].is_some());
    let expressions = kept.map(|at| Expr::column(at, &types[at])).collect();
    let nothing = Logical::Append { inputs: Vec::new() };
    let input = Box::new(std::mem::replace(plan, nothing));
    *plan = Logical::Project { input, expressions };
    prune_all(plan);
}

/// Prunes the inputs of a plan, but none of its own columns.
fn prune_all(plan: &mut Logical) -> Places {
    let all = vec![true; width(plan)];
    prune(plan, &all)
}

/// Prunes the input of a node that passes its columns through, given the needed columns and the
/// node's own expressions.
fn prune_below(input: &mut Logical, needed: &[bool], used: &mut [Expr]) -> Places {
    let mut needed = needed.to_vec();
    used.iter().for_each(|expr| mark(expr, &mut needed));
    let places = prune(input, &needed);
    used.iter_mut().for_each(|expr| remap(expr, &places));
    places
}

/// Prunes an input to the columns that the expressions above it use.
fn prune_input<'a>(input: &mut Logical, expressions: impl IntoIterator<Item = &'a mut Expr>) {
    let mut expressions: Vec<&mut Expr> = expressions.into_iter().collect();
    let mut needed = vec![false; width(input)];
    expressions.iter().for_each(|expr| mark(expr, &mut needed));
    let places = prune(input, &needed);
    expressions.iter_mut().for_each(|expr| remap(expr, &places));
}

fn prune_join(join: &mut Join, needed: &[bool]) -> Places {
    let left_width = width(&join.left);
    let one_sided = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
    let mut all = needed.to_vec();
    all.resize(left_width + width(&join.right), false);
    mark(&join.on, &mut all);
    let (left_needed, right_needed) = all.split_at(left_width);
    let mut places = prune(&mut join.left, left_needed);
    let right = prune(&mut join.right, right_needed);
    let shift = width(&join.left);
    places.extend(right.into_iter().map(|place| place.map(|place| place + shift)));
    remap(&mut join.on, &places);
    if one_sided {
        places.truncate(left_width);
    }
    places
}

/// Returns whether the rows are a single row without volatile values, from which values may be
/// removed.
fn is_one_calm_row(rows: &[Vec<Expr>]) -> bool {
    matches!(rows, [row] if !row.iter().any(Expr::is_volatile))
}

/// Returns whether neither the value of a subquery is read nor its side effects are needed.
fn is_unread(apply: &Apply, needed: &[bool]) -> bool {
    is_value(apply) && needed.last() == Some(&false) && !apply.subquery.has_effects()
}

fn prune_apply(apply: &mut Apply, needed: &[bool]) -> Places {
    let input_width = width(&apply.input);
    let subquery_width = width(&apply.subquery);
    let yields_rows = matches!(apply.kind, ApplyKind::Rows { .. });
    let mut all = needed[..input_width].to_vec();
    if yields_rows {
        all.extend(&needed[input_width..]);
    }
    let all_of_subquery = matches!(apply.kind, ApplyKind::Scalar | ApplyKind::Array { .. });
    all.resize(input_width + subquery_width, all_of_subquery);
    for (_, column) in &apply.bindings {
        all[*column] = true;
    }
    if let Some(condition) = apply.kind.condition() {
        mark(condition, &mut all);
    }
    if let Some(guard) = &apply.guard {
        mark(guard, &mut all);
    }
    let mut places = prune(&mut apply.input, &all[..input_width]);
    let below = prune(&mut apply.subquery, &all[input_width..]);
    let shift = width(&apply.input);
    for (_, column) in &mut apply.bindings {
        *column = places[*column].expect("a column that is bound was asked for");
    }
    let below = below.into_iter().map(|place| place.map(|place| place + shift));
    let both: Places = places.iter().copied().chain(below).collect();
    apply.expressions_mut().for_each(|expr| remap(expr, &both));
    if yields_rows {
        return both;
    }
    places.push(Some(shift));
    places
}

/// Removes projections that return their input unchanged.
fn drop_identities(plan: &mut Logical) {
    walk_plan(plan, &mut |node| {
        while let Logical::Project { input, expressions } = node {
            let same = |(at, expr): (usize, &Expr)| matches!(expr, Expr::Column { index, .. } if *index == at);
            let identity =
                expressions.len() == width(input) && expressions.iter().enumerate().all(same);
            if !identity {
                break;
            }
            let empty = Logical::Append { inputs: Vec::new() };
            *node = std::mem::replace(&mut **input, empty);
        }
    });
}
