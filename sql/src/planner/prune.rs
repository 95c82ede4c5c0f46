//! Rule: column pruning: unread columns are not computed, unless they are volatile.
//!
//! As in PostgreSQL, volatile expressions in the select list of a subquery in FROM are evaluated
//! for each of its rows, read or not.
//!
//! Works top down: each node gets the set of its columns that are read above it, and returns the
//! retained ones ([`PrunedPlan::kept`], original positions, ascending); the parent node renumbers
//! its expressions.

use std::sync::Arc;

use types::Batch;
use types::aggregate::Aggregate;
use types::expr::Expr;

use crate::logical::{
    Apply, ApplyGroups, ApplyKind, ConstantRows, GroupingSets, Join, JoinKind, Logical, ProjectSet,
    RecursiveUnion, SetFunction, SetOperation, Window, WindowFunction, With,
};
use crate::planner::conjunct::{Columns, add_columns, column, renumber};
use crate::planner::plan_properties::width_of;
use crate::planner::row_locking;

/// A plan with some of its columns.
struct PrunedPlan {
    plan: Logical,
    /// Retained columns by original position, ascending.
    kept: Vec<usize>,
}

impl PrunedPlan {
    fn position(&self, index: usize) -> usize {
        self.kept.binary_search(&index).expect("a column that is read was asked for")
    }

    fn renumber(&self, expression: Expr) -> Expr {
        renumber(expression, &|index| self.position(index))
    }
}

/// Returns the plan with the same columns and pruned inputs.
fn prune(plan: Logical) -> Logical {
    let all = (0..width_of(&plan)).collect();
    exactly(plan, &all)
}

/// Returns the plan with pruned inputs and its first `count` columns, possibly followed by
/// others.
pub(super) fn to_first(plan: Logical, count: usize) -> Logical {
    // Retained columns are in order, so these come first.
    pruned(plan, &(0..count).collect()).plan
}

/// Prunes to exactly these columns.
fn exactly(plan: Logical, required: &Columns) -> Logical {
    let pruned = pruned(plan, required);
    if pruned.kept.len() == required.len() {
        return pruned.plan;
    }
    let types = pruned.plan.column_types();
    let expressions = required
        .iter()
        .map(|&index| pruned.position(index))
        .map(|position| column(position, &types[position]))
        .collect();
    Logical::Project { input: Box::new(pruned.plan), expressions }
}

fn keep<T>(items: Vec<T>, required: &Columns) -> Vec<T> {
    let items = items.into_iter().enumerate();
    items.filter(|(index, _)| required.contains(index)).map(|(_, item)| item).collect()
}

/// Returns the required columns with those of volatile expressions.
fn with_volatile<'a>(
    required: &Columns,
    computed: impl Iterator<Item = (usize, &'a Expr)>,
) -> Columns {
    let volatile = computed.filter(|(_, expression)| expression.is_volatile());
    required.iter().copied().chain(volatile.map(|(index, _)| index)).collect()
}

fn numbered(expressions: &[Expr]) -> impl Iterator<Item = (usize, &Expr)> {
    expressions.iter().enumerate()
}

fn of_aggregates(keys: usize, aggregates: &[Aggregate]) -> impl Iterator<Item = (usize, &Expr)> {
    let all = aggregates.iter().enumerate();
    all.flat_map(move |(at, one)| one.expressions().map(move |part| (keys + at, part)))
}

fn list(required: &Columns) -> Vec<usize> {
    required.iter().copied().collect()
}

/// Prunes a plan to at least the required columns.
fn pruned(plan: Logical, required: &Columns) -> PrunedPlan {
    let pruned = pruned_step(plan, required);
    debug_assert!(pruned.kept.is_sorted_by(|a, b| a < b), "columns {:?}", pruned.kept);
    debug_assert!(
        required.iter().all(|column| pruned.kept.binary_search(column).is_ok()),
        "{:?} are retained of {required:?}",
        pruned.kept
    );
    debug_assert_eq!(pruned.kept.len(), width_of(&pruned.plan), "retained columns");
    pruned
}

#[expect(clippy::too_many_lines, reason = "a flat match over the kinds of steps")]
fn pruned_step(plan: Logical, required: &Columns) -> PrunedPlan {
    match plan {
        Logical::Scan(mut scan) => {
            scan.columns = keep(scan.columns, required);
            PrunedPlan { plan: Logical::Scan(scan), kept: list(required) }
        }
        Logical::SystemRows(rows) => {
            let kept = (0..rows.columns.len()).collect();
            PrunedPlan { plan: Logical::SystemRows(rows), kept }
        }
        Logical::Constants(ConstantRows { types, rows }) => {
            let columns = keep(rows.columns.clone(), required);
            let rows = Arc::new(Batch { columns, row_count: rows.row_count });
            let plan = Logical::Constants(ConstantRows { types: keep(types, required), rows });
            PrunedPlan { plan, kept: list(required) }
        }
        Logical::Values { types, rows } => {
            let required = &with_volatile(required, rows.iter().flat_map(|row| numbered(row)));
            let rows = rows.into_iter().map(|row| keep(row, required)).collect();
            let plan = Logical::Values { types: keep(types, required), rows };
            PrunedPlan { plan, kept: list(required) }
        }
        Logical::Filter { input, predicate } => {
            let mut need = required.clone();
            add_columns(&predicate, &mut need);
            let input = pruned(*input, &need);
            let predicate = input.renumber(predicate);
            let kept = input.kept.clone();
            PrunedPlan { plan: Logical::Filter { input: Box::new(input.plan), predicate }, kept }
        }
        Logical::Barrier { input } => {
            let PrunedPlan { plan, kept } = pruned(*input, required);
            PrunedPlan { plan: Logical::Barrier { input: Box::new(plan) }, kept }
        }
        Logical::Project { input, expressions } => {
            let required = &with_volatile(required, numbered(&expressions));
            let expressions = keep(expressions, required);
            let mut need = Columns::new();
            expressions.iter().for_each(|expression| add_columns(expression, &mut need));
            let input = pruned(*input, &need);
            let expressions = expressions.into_iter().map(|e| input.renumber(e)).collect();
            let plan = Logical::Project { input: Box::new(input.plan), expressions };
            PrunedPlan { plan, kept: list(required) }
        }
        Logical::Join(join) => prune_join(join, required),
        Logical::Apply(apply) => prune_apply(apply, required),
        Logical::Aggregate { input, group_by, aggregates } => {
            let keys = group_by.len();
            let required = &with_volatile(required, of_aggregates(keys, &aggregates));
            let aggregates: Vec<_> = aggregates
                .into_iter()
                .enumerate()
                .filter(|(index, _)| required.contains(&(keys + index)))
                .map(|(_, aggregate)| aggregate)
                .collect();
            let mut need = Columns::new();
            group_by.iter().for_each(|key| add_columns(key, &mut need));
            for aggregate in &aggregates {
                aggregate.expressions().for_each(|part| add_columns(part, &mut need));
            }
            let input = pruned(*input, &need);
            let group_by = group_by.into_iter().map(|key| input.renumber(key)).collect();
            let aggregates = aggregates
                .into_iter()
                .map(|aggregate| aggregate.map_expressions(&|part| input.renumber(part)))
                .collect();
            let kept = (0..keys).chain(required.range(keys..).copied()).collect();
            let input = Box::new(input.plan);
            PrunedPlan { plan: Logical::Aggregate { input, group_by, aggregates }, kept }
        }
        Logical::ProjectSet(sets) => prune_project_set(sets, required),
        Logical::GroupingSets(grouping) => prune_grouping_sets(grouping, required),
        Logical::Sort { input, mut keys } => {
            let mut need = required.clone();
            keys.iter().for_each(|key| add_columns(&key.expression, &mut need));
            let input = pruned(*input, &need);
            for key in &mut keys {
                key.expression = input.renumber(key.expression.clone());
            }
            let kept = input.kept.clone();
            PrunedPlan { plan: Logical::Sort { input: Box::new(input.plan), keys }, kept }
        }
        Logical::LockRows(lock) => {
            let prune = |plan, need: &Columns| {
                let pruned = pruned(plan, need);
                (pruned.plan, pruned.kept)
            };
            let (lock, kept) = row_locking::pruned(lock, required, prune);
            PrunedPlan { plan: Logical::LockRows(lock), kept }
        }
        Logical::Limit { input, limit, offset, ties } => {
            let (input, ties, kept) = prune_below(*input, ties, required);
            PrunedPlan { plan: Logical::Limit { input, limit, offset, ties }, kept }
        }
        Logical::Distinct { input, on } if on.is_empty() => {
            let kept = (0..width_of(&input)).collect();
            PrunedPlan { plan: Logical::Distinct { input: Box::new(prune(*input)), on }, kept }
        }
        Logical::Distinct { input, on } => {
            let (input, on, kept) = prune_below(*input, on, required);
            PrunedPlan { plan: Logical::Distinct { input, on }, kept }
        }
        Logical::Window(window) => prune_window(window, required),
        Logical::With(with) => {
            let query = Box::new(prune(*with.query));
            let body = pruned(*with.body, required);
            let plan = Logical::With(With { query, body: Box::new(body.plan), ..with });
            PrunedPlan { plan, kept: body.kept }
        }
        Logical::CteScan(scan) => {
            let kept = (0..scan.columns.len()).collect();
            PrunedPlan { plan: Logical::CteScan(scan), kept }
        }
        Logical::RecursiveUnion(union) => {
            let (start, step) = (prune(*union.start), prune(*union.step));
            let kept = (0..width_of(&start)).collect();
            let (start, step) = (Box::new(start), Box::new(step));
            let plan = Logical::RecursiveUnion(RecursiveUnion { start, step, ..union });
            PrunedPlan { plan, kept }
        }
        Logical::SetOperation(operation) => {
            let (left, right) = (prune(*operation.left), prune(*operation.right));
            let kept = (0..width_of(&left)).collect();
            let (left, right) = (Box::new(left), Box::new(right));
            let plan = Logical::SetOperation(SetOperation { left, right, ..operation });
            PrunedPlan { plan, kept }
        }
        Logical::Append { inputs } => {
            let inputs = inputs.into_iter().map(|input| exactly(input, required)).collect();
            PrunedPlan { plan: Logical::Append { inputs }, kept: list(required) }
        }
    }
}

/// Prunes the input of a node that passes its columns through and also uses some.
fn prune_below(
    input: Logical,
    used: Vec<Expr>,
    required: &Columns,
) -> (Box<Logical>, Vec<Expr>, Vec<usize>) {
    let mut need = required.clone();
    used.iter().for_each(|expression| add_columns(expression, &mut need));
    let input = pruned(input, &need);
    let used = used.into_iter().map(|expression| input.renumber(expression)).collect();
    (Box::new(input.plan), used, input.kept)
}

/// Prunes GROUPING SETS. Keys are retained, as they define the groups.
fn prune_grouping_sets(grouping: GroupingSets, required: &Columns) -> PrunedPlan {
    let keys = grouping.group_by.len();
    let required = &with_volatile(required, of_aggregates(keys, &grouping.aggregates));
    let groupings = keys + grouping.aggregates.len();
    let wanted = |from: usize, index: usize| required.contains(&(from + index));
    let aggregates = grouping.aggregates.into_iter().enumerate();
    let aggregates: Vec<_> =
        aggregates.filter(|(at, _)| wanted(keys, *at)).map(|(_, aggregate)| aggregate).collect();
    let asked = grouping.grouping_calls.into_iter().enumerate();
    let asked = asked.filter(|(at, _)| wanted(groupings, *at)).map(|(_, keys)| keys).collect();
    let mut need = Columns::new();
    grouping.group_by.iter().for_each(|key| add_columns(key, &mut need));
    for aggregate in &aggregates {
        aggregate.expressions().for_each(|part| add_columns(part, &mut need));
    }
    let input = pruned(*grouping.input, &need);
    let group_by = grouping.group_by.into_iter().map(|key| input.renumber(key)).collect();
    let aggregates = aggregates
        .into_iter()
        .map(|aggregate| aggregate.map_expressions(&|part| input.renumber(part)))
        .collect();
    let kept = (0..keys).chain(required.range(keys..).copied()).collect();
    let (input, sets) = (Box::new(input.plan), grouping.sets);
    let grouping = GroupingSets { input, group_by, aggregates, sets, grouping_calls: asked };
    PrunedPlan { plan: Logical::GroupingSets(grouping), kept }
}

fn prune_window(window: Window, required: &Columns) -> PrunedPlan {
    let width = width_of(&window.input);
    let Window { input, partition_by, order_by, functions } = window;
    let keys = partition_by.iter().chain(order_by.iter().map(|key| &key.expression));
    let is_volatile = keys.into_iter().any(Expr::is_volatile);
    let is_needed = |(index, function): &(usize, WindowFunction)| {
        let mut is_needed = is_volatile || required.contains(&(width + index));
        function.for_each_expression(&mut |expression| is_needed |= expression.is_volatile());
        is_needed
    };
    let (numbers, functions): (Vec<usize>, Vec<_>) =
        functions.into_iter().enumerate().filter(is_needed).unzip();
    if functions.is_empty() {
        return pruned(*input, required);
    }
    let mut window = Window { input, partition_by, order_by, functions };
    let mut need: Columns = required.range(..width).copied().collect();
    window.for_each_expression(&mut |expression| add_columns(expression, &mut need));
    let nothing = Box::new(Logical::Append { inputs: Vec::new() });
    let input = pruned(*std::mem::replace(&mut window.input, nothing), &need);
    window.for_each_expression_mut(&mut |expression| {
        *expression = input.renumber(expression.clone());
    });
    window.input = Box::new(input.plan);
    let mut kept = input.kept;
    kept.extend(numbers.into_iter().map(|index| width + index));
    PrunedPlan { plan: Logical::Window(window), kept }
}

fn prune_join(join: Join, required: &Columns) -> PrunedPlan {
    let left_width = width_of(&join.left);
    let mut need = required.clone();
    add_columns(&join.on, &mut need);
    let right_need: Columns = need.range(left_width..).map(|index| index - left_width).collect();
    let left_need: Columns = need.range(..left_width).copied().collect();
    let left = pruned(*join.left, &left_need);
    let right = pruned(*join.right, &right_need);
    let width = left.kept.len();
    let on = renumber(join.on, &|index| {
        if index < left_width {
            left.position(index)
        } else {
            width + right.position(index - left_width)
        }
    });
    let mut kept = left.kept;
    if !matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
        kept.extend(right.kept.iter().map(|index| index + left_width));
    }
    let (left, right) = (Box::new(left.plan), Box::new(right.plan));
    PrunedPlan { plan: Logical::Join(Join { left, right, on, ..join }), kept }
}

fn prune_apply(apply: Apply, required: &Columns) -> PrunedPlan {
    let width = width_of(&apply.input);
    let yields_rows = matches!(apply.kind, ApplyKind::Rows { .. });
    if !yields_rows && !required.contains(&width) && !apply.subquery.is_volatile() {
        return pruned(*apply.input, required);
    }
    let mut need: Columns = required.range(..width).copied().collect();
    need.extend(apply.bindings.iter().map(|(_, input)| *input));
    let mut subquery_need = Columns::new();
    match &apply.kind {
        ApplyKind::Scalar | ApplyKind::Array { .. } => {
            subquery_need.insert(0);
        }
        ApplyKind::Rows { .. } => {
            subquery_need.extend(required.range(width..).map(|index| index - width));
        }
        ApplyKind::Exists | ApplyKind::Any { .. } | ApplyKind::All { .. } => {}
    }
    if let Some(guard) = &apply.guard {
        add_columns(guard, &mut need);
    }
    if let Some(groups) = &apply.groups {
        let mut used = Columns::new();
        groups.keys.iter().chain([&groups.value]).for_each(|e| add_columns(e, &mut used));
        need.extend(used.range(..width));
    }
    if let Some(condition) = apply.kind.condition() {
        let mut used = Columns::new();
        add_columns(condition, &mut used);
        need.extend(used.range(..width));
        subquery_need.extend(used.range(width..).map(|index| index - width));
    }
    let input = pruned(*apply.input, &need);
    let subquery = pruned(*apply.subquery, &subquery_need);
    let bindings = apply
        .bindings
        .into_iter()
        .map(|(parameter, index)| (parameter, input.position(index)))
        .collect();
    let new_width = input.kept.len();
    let mut kind = apply.kind;
    if let Some(condition) = kind.condition_mut() {
        *condition = renumber(condition.clone(), &|index| {
            if index < width {
                input.position(index)
            } else {
                new_width + subquery.position(index - width)
            }
        });
    }
    let guard = apply.guard.map(|guard| input.renumber(guard));
    let groups = apply.groups.map(|groups| Box::new(prune_groups(*groups, width, &input)));
    let mut kept = input.kept.clone();
    match yields_rows {
        true => kept.extend(subquery.kept.iter().map(|index| index + width)),
        false => kept.push(width),
    }
    let (input, subquery) = (Box::new(input.plan), Box::new(subquery.plan));
    PrunedPlan {
        plan: Logical::Apply(Apply { input, subquery, bindings, kind, guard, groups }),
        kept,
    }
}

/// Prunes the groups of an apply. All their columns are retained.
fn prune_groups(groups: ApplyGroups, width: usize, input: &PrunedPlan) -> ApplyGroups {
    let position = |index: usize| match index.checked_sub(width) {
        None => input.position(index),
        Some(of_groups) => input.kept.len() + of_groups,
    };
    ApplyGroups {
        plan: prune(groups.plan),
        keys: groups.keys.into_iter().map(|key| input.renumber(key)).collect(),
        value: renumber(groups.value, &position),
    }
}

/// Prunes set-returning functions. All their columns are retained, as they produce the rows.
fn prune_project_set(sets: ProjectSet, required: &Columns) -> PrunedPlan {
    let width = width_of(&sets.input);
    let mut need: Columns = required.range(..width).copied().collect();
    sets.arguments().for_each(|argument| add_columns(argument, &mut need));
    let ProjectSet { input, mut functions, ordinality, outer, .. } = sets;
    let input = pruned(*input, &need);
    for argument in functions.iter_mut().flat_map(SetFunction::arguments_mut) {
        *argument = input.renumber(argument.clone());
    }
    let mut kept = input.kept.clone();
    let unread = (0..kept.len()).filter(|&at| !required.contains(&kept[at])).collect();
    let sets = ProjectSet { input: Box::new(input.plan), functions, ordinality, outer, unread };
    kept.extend((0..sets.set_types().count()).map(|index| width + index));
    PrunedPlan { plan: Logical::ProjectSet(sets), kept }
}
