//! Physical planning: logical nodes to plan nodes, and access paths for scans.
//!
//! Works top down with the required properties of the parent node ([`RequiredProperties`]): an
//! order, which a scan may provide without a sort, and a row goal. Both pass through projections,
//! filters, and joins that preserve the order of their left side.

use std::cell::Cell;
use std::sync::Arc;

use types::aggregate::{Aggregate, AggregateKind};
use types::expr::Expr;
use types::{DataType, Datum};

use crate::logical::{
    ApplyGroups, ApplyKind, ConstantRows, GroupingSets, JoinKind, Logical, ProjectSet, SetKind,
    SetOperation, SortKey, Window, sort_keys,
};
use crate::plan::{
    AggregateNode, AppendNode, ApplyGroupsNode, ApplyNode, CteScanNode, DistinctNode, FilterNode,
    GroupingSetsNode, LoopJoinNode, Node, ProjectNode, ProjectSetNode, RecursiveUnionNode, RowGoal,
    SetOperationNode, SortNode, SystemRowsNode, ValuesNode, WindowAggNode, WithNode,
};
use crate::planner::conjunct::{
    Columns, all, column, columns_of, is_volatile, renumber, split, substitute, within,
};
use crate::planner::distinct_aggregates::{GroupingLevels, levels};
use crate::planner::estimate::Estimator;
use crate::planner::estimate_recording::EstimateRecorder;
use crate::planner::grouping_sets;
use crate::planner::join_method;
use crate::planner::limit_pushdown::{insert_below_columns, is_for_each_row};
use crate::planner::lookup::filtered_table;
use crate::planner::physical_properties::{ProvidedProperties, RequiredGroups, RequiredProperties};
use crate::planner::plan_properties::width_of;
use crate::planner::push_down::push_down;
use crate::planner::region_pushdown::{self, TopNQuery};
use crate::planner::row_locking;
use crate::planner::scan::{self, narrow};
use crate::planner::statistics::{NoStatistics, Statistics};

/// Assumed number of input rows of a filter per output row.
const FILTERED: f64 = 3.0;

/// Maximum number of min/max aggregates that are read from keys one by one.
const EXTREMES_MAX: usize = 32;

/// Returns the physical plan of a query.
pub(super) fn build(plan: Logical, notes: EstimateRecorder<'_>) -> Node {
    build_wanted(plan, RequiredProperties::default(), notes).node
}

fn unordered(node: Node) -> ProvidedProperties {
    ProvidedProperties { node, ordered: false }
}

fn build_wanted(
    plan: Logical,
    wanted: RequiredProperties,
    notes: EstimateRecorder<'_>,
) -> ProvidedProperties {
    let noted = notes.begin(&plan);
    let built = build_step(plan, wanted, notes);
    notes.end(noted, &built.node);
    built
}

#[expect(clippy::too_many_lines, reason = "a flat match over the kinds of steps")]
fn build_step(
    plan: Logical,
    wanted: RequiredProperties,
    notes: EstimateRecorder<'_>,
) -> ProvidedProperties {
    let wanted = wanted.of_rows(&plan);
    match plan {
        Logical::Scan(table_scan) => scan::build(&table_scan, Vec::new(), &wanted, notes),
        Logical::SystemRows(rows) => unordered(Node::SystemRows(Arc::new(SystemRowsNode {
            types: rows.columns.iter().map(|column| column.sql_type.base.clone()).collect(),
            names: rows.columns.into_iter().map(|column| column.name).collect(),
            name: rows.name,
            arguments: rows.arguments,
            target: rows.target,
        }))),
        Logical::Values { types, rows } => {
            unordered(Node::Values(Arc::new(ValuesNode { types, rows, constants: None })))
        }
        Logical::Constants(ConstantRows { types, rows }) => {
            let constants = Some(rows);
            unordered(Node::Values(Arc::new(ValuesNode { types, rows: Vec::new(), constants })))
        }
        Logical::Filter { input, predicate } => match *input {
            Logical::Scan(table_scan) => {
                build_filtered_scan(&table_scan, predicate, &wanted, notes)
            }
            input => {
                // Rows that the filter drops do not count towards the goal.
                let input = build_wanted(input, wanted.below(FILTERED), notes);
                let node = FilterNode { input: input.node, predicate };
                ProvidedProperties { node: Node::Filter(Arc::new(node)), ordered: input.ordered }
            }
        },
        Logical::Barrier { input } => build_wanted(*input, wanted, notes),
        Logical::Project { input, expressions } => {
            build_project(*input, expressions, wanted, notes)
        }
        Logical::Join(join) => join_method::build(join, wanted, notes, &|plan, wanted| {
            build_wanted(plan, wanted, notes)
        }),
        Logical::Apply(apply) => {
            let input_types = apply.input.column_types();
            let width = input_types.len();
            // The number of needed input rows of a lateral join is unknown.
            let wanted = match apply.kind {
                ApplyKind::Rows { .. } => wanted.below(1.0),
                _ => wanted,
            };
            let passes = wanted.order.iter().all(|key| within(&key.expression, 0..width));
            let wanted = if passes { wanted } else { RequiredProperties::default() };
            let input = build_wanted(*apply.input, wanted, notes);
            let varies = !apply.bindings.is_empty() && apply.subquery.has_effects();
            let once = apply.bindings.is_empty() && depends_on_nothing(&apply.subquery);
            let groups = apply.groups.map(|groups| {
                let types = groups.plan.column_types();
                let ApplyGroups { plan, keys, value } = *groups;
                ApplyGroupsNode { plan: build(plan, notes), types, keys, value }
            });
            let node = ApplyNode {
                input: input.node,
                subquery_types: apply.subquery.column_types(),
                subquery: build_subquery(*apply.subquery, &apply.kind, notes),
                bindings: apply.bindings,
                kind: apply.kind,
                guard: apply.guard,
                groups,
                is_volatile: varies,
                is_uncorrelated: once,
                input_types,
            };
            ProvidedProperties {
                node: Node::Apply(Arc::new(node)),
                ordered: passes && input.ordered,
            }
        }
        Logical::ProjectSet(sets) => {
            let width = width_of(&sets.input);
            let passes = wanted.order.iter().all(|key| within(&key.expression, 0..width));
            let wanted = if passes { wanted.below(1.0) } else { RequiredProperties::default() };
            let ProjectSet { input, functions, ordinality, outer, unread } = sets;
            let input = build_wanted(*input, wanted, notes);
            let input_node = input.node;
            let node = ProjectSetNode { input: input_node, functions, ordinality, outer, unread };
            ProvidedProperties {
                node: Node::ProjectSet(Arc::new(node)),
                ordered: passes && input.ordered,
            }
        }
        Logical::Aggregate { input, group_by, aggregates } => {
            unordered(build_aggregate(*input, group_by, aggregates, notes))
        }
        Logical::GroupingSets(grouping) => unordered(build_grouping_sets(grouping, notes)),
        Logical::Sort { input, keys } => ProvidedProperties {
            node: build_sort(*input, RequiredProperties::of_sort(keys, wanted.exact_goal()), notes),
            ordered: false,
        },
        Logical::Limit { input, limit, offset, ties }
            if ties.is_empty() && is_for_each_row(&input, offset.is_none()) =>
        {
            let limited =
                |input| Box::new(Logical::Limit { input, limit, offset, ties: Vec::new() });
            build_wanted(insert_below_columns(*input, limited), wanted, notes)
        }
        Logical::LockRows(lock) => {
            unordered(row_locking::build(lock, wanted.exact_goal(), notes, &build_wanted))
        }
        Logical::Limit { input, limit, offset, ties } => {
            let goal = if ties.is_empty() { RowGoal::of(&limit, &offset) } else { None };
            let input =
                build_wanted(*input, RequiredProperties::of_sort(Vec::new(), goal), notes).node;
            unordered(Node::limit(input, (limit, offset), ties))
        }
        Logical::Distinct { input, on } if on.is_empty() => build_distinct(*input, wanted, notes),
        Logical::Distinct { input, on } => {
            // The binder has sorted the input of DISTINCT ON.
            let groups = Some(RequiredGroups { keys: on.clone(), order: Vec::new() });
            let goal = wanted.goal.map(|goal| goal.below(1.0));
            let input = match *input {
                Logical::Sort { input, keys } => {
                    let wanted = RequiredProperties { order: keys, goal, groups };
                    build_sorted_groups(*input, wanted, notes)
                }
                input => build(input, notes),
            };
            unordered(Node::Distinct(Arc::new(DistinctNode { input, on, sorted: true })))
        }
        Logical::SetOperation(operation) => {
            let SetOperation { kind, all, left, right } = operation;
            let types = left.column_types();
            let (left, right) = (build(*left, notes), build(*right, notes));
            let on = types.iter().enumerate().map(|(i, t)| Expr::column(i, t)).collect();
            let node = SetOperationNode { kind, all, left, right, types };
            let node = Node::SetOperation(Arc::new(node));
            unordered(match (kind, all) {
                (SetKind::Except, false) => {
                    let node = DistinctNode { input: node, on, sorted: false };
                    Node::Distinct(Arc::new(node))
                }
                _ => node,
            })
        }
        Logical::Window(window) => build_window(window, &wanted, notes),
        Logical::With(with) => {
            let query = build(*with.query, notes);
            let body = build_wanted(*with.body, wanted, notes);
            let node = WithNode { id: with.id, name: with.name, query, body: body.node };
            ProvidedProperties { node: Node::With(Arc::new(node)), ordered: body.ordered }
        }
        Logical::CteScan(scan) => unordered(Node::CteScan(Arc::new(CteScanNode {
            types: scan.columns.iter().map(|column| column.sql_type.base.clone()).collect(),
            names: scan.columns.into_iter().map(|column| column.name).collect(),
            id: scan.id,
            name: scan.name,
            is_work_table: scan.is_work_table,
        }))),
        Logical::RecursiveUnion(union) => {
            let types = union.start.column_types();
            let (start, step) = (build(*union.start, notes), build(*union.step, notes));
            let (id, name, all) = (union.id, union.name, union.all);
            let node = RecursiveUnionNode { id, name, all, start, step, types };
            unordered(Node::RecursiveUnion(Arc::new(node)))
        }
        Logical::Append { inputs } => {
            let goal = wanted.goal;
            let build_input = |input| {
                let wanted = RequiredProperties::of_sort(Vec::new(), goal.clone());
                build_wanted(input, wanted, notes).node
            };
            let inputs = inputs.into_iter().map(build_input).collect();
            unordered(Node::Append(Arc::new(AppendNode { inputs })))
        }
    }
}

/// Returns whether a plan uses neither named queries nor parameters other than its own bindings.
fn depends_on_nothing(plan: &Logical) -> bool {
    let (mut set, mut used, mut named) = (Columns::new(), Columns::new(), false);
    plan.walk(&mut |step| match step {
        Logical::Apply(apply) => set.extend(apply.bindings.iter().map(|(parameter, _)| *parameter)),
        Logical::CteScan(_) | Logical::RecursiveUnion(_) => named = true,
        _ => {}
    });
    plan.for_each_expression(&mut |expr| {
        expr.walk(&mut |part| {
            if let Expr::Parameter { index, .. } = part {
                used.insert(*index);
            }
        });
    });
    !named && used.is_subset(&set)
}

/// Limits the rows of a subquery: EXISTS needs one row, a scalar subquery at most two, to detect
/// that it has too many.
fn build_subquery(subquery: Logical, kind: &ApplyKind, notes: EstimateRecorder<'_>) -> Node {
    let rows = match kind {
        ApplyKind::Exists => 1,
        ApplyKind::Scalar if !subquery.is_single_row() => 2,
        ApplyKind::Scalar
        | ApplyKind::Array { .. }
        | ApplyKind::Any { .. }
        | ApplyKind::All { .. }
        | ApplyKind::Rows { .. } => {
            return build(subquery, notes);
        }
    };
    let limit = Expr::Constant { value: Datum::Int8(rows), data_type: DataType::Int8 };
    let input = Box::new(subquery);
    let limited = Logical::Limit { input, limit: Some(limit), offset: None, ties: Vec::new() };
    build(limited, notes)
}

fn all_columns(plan: &Logical) -> Vec<Expr> {
    let types = plan.column_types();
    types.iter().enumerate().map(|(index, data_type)| column(index, data_type)).collect()
}

/// Splits a predicate into volatile and other conjuncts.
fn volatile_parts(predicate: Expr) -> (Vec<Expr>, Vec<Expr>) {
    let mut conjuncts = Vec::new();
    split(predicate, &mut conjuncts);
    conjuncts.into_iter().partition(Expr::is_volatile)
}

fn build_filtered_scan(
    table_scan: &crate::logical::TableScan,
    predicate: Expr,
    wanted: &RequiredProperties,
    notes: EstimateRecorder<'_>,
) -> ProvidedProperties {
    let (volatile, conjuncts) = volatile_parts(predicate);
    let Some(predicate) = all(volatile) else {
        return scan::build(table_scan, conjuncts, wanted, notes);
    };
    let wanted = wanted.clone().below(FILTERED).of_all_rows();
    let built = scan::build(table_scan, conjuncts, &wanted, notes);
    let node = FilterNode { input: built.node, predicate };
    ProvidedProperties { node: Node::Filter(Arc::new(node)), ordered: built.ordered }
}

fn build_project(
    input: Logical,
    mut expressions: Vec<Expr>,
    wanted: RequiredProperties,
    notes: EstimateRecorder<'_>,
) -> ProvidedProperties {
    let mut input = input;
    // Nested projections are merged, unless an expression would be computed twice.
    while let Logical::Project { input: below, expressions: inner } = input {
        let plain = |e: &Expr| {
            matches!(e, Expr::Column { .. } | Expr::Constant { .. } | Expr::Parameter { .. })
        };
        if !inner.iter().all(plain) {
            input = Logical::Project { input: below, expressions: inner };
            break;
        }
        expressions = expressions.into_iter().map(|e| substitute(e, &inner)).collect();
        input = *below;
    }
    let order = wanted
        .order
        .into_iter()
        .map(|key| SortKey { expression: substitute(key.expression, &expressions), ..key })
        .collect();
    let groups = wanted.groups.map(|groups| groups.map(&|key| substitute(key, &expressions)));
    let wanted = RequiredProperties { order, goal: wanted.goal, groups };
    let built = build_wanted(input, wanted, notes);
    let (node, expressions) = narrowed(built.node, expressions);
    let node = match &node {
        Node::Scan(scan) if scan.output.len() == expressions.len() && is_identity(&expressions) => {
            node
        }
        _ => Node::Project(Arc::new(ProjectNode { input: node, expressions })),
    };
    ProvidedProperties { node, ordered: built.ordered }
}

/// Narrows the output of a scan to the columns that the expressions use, in the order of first
/// use.
fn narrowed(node: Node, expressions: Vec<Expr>) -> (Node, Vec<Expr>) {
    let Node::Scan(scan) = node else { return (node, expressions) };
    let mut used: Vec<usize> = Vec::new();
    for expression in &expressions {
        expression.walk(&mut |part| {
            if let Expr::Column { index, .. } = part
                && !used.contains(index)
            {
                used.push(*index);
            }
        });
    }
    let expressions = expressions
        .into_iter()
        .map(|expression| {
            renumber(expression, &|index| {
                used.iter().position(|&column| column == index).expect("it was gathered above")
            })
        })
        .collect();
    (Node::Scan(narrow(scan, &used)), expressions)
}

/// Tries an input that provides the order, then a top-N in the regions; otherwise sorts.
fn build_sort(input: Logical, wanted: RequiredProperties, notes: EstimateRecorder<'_>) -> Node {
    let types = input.column_types();
    let (keys, goal) = (wanted.order.clone(), wanted.exact_goal());
    if keys.iter().all(|key| !is_volatile(&key.expression)) {
        if provides_order(&input, wanted.clone()) {
            let built = build_wanted(input.clone(), wanted, notes);
            if built.ordered {
                return built.node;
            }
        }
        if let Some(goal) = &goal
            && let Some(node) = build_top_n(input.clone(), &keys, goal, notes)
        {
            return node;
        }
    }
    let is_sorted = is_sorted(&input, &keys);
    let input = build(input, notes);
    if is_sorted {
        return input;
    }
    Node::Sort(Arc::new(SortNode { input, keys, goal, types }))
}

/// Returns the input of projections, sort keys over its columns, and the projected columns as
/// expressions over them.
fn below_projections(input: Logical, keys: &[SortKey]) -> (Logical, Vec<SortKey>, Vec<Expr>) {
    let sorted_by = keys.iter().map(|key| key.expression.clone());
    let parts = sorted_by.chain(all_columns(&input)).collect();
    let (input, mut parts, _) = without_projections(input, parts, Vec::new());
    let expressions = parts.split_off(keys.len());
    let key = |(key, expression): (&SortKey, Expr)| SortKey { expression, ..*key };
    (input, keys.iter().zip(parts).map(key).collect(), expressions)
}

/// Builds a top-N in the regions; expressions of its rows are computed in the session.
fn build_top_n(
    input: Logical,
    keys: &[SortKey],
    goal: &RowGoal,
    notes: EstimateRecorder<'_>,
) -> Option<Node> {
    let (input, keys, expressions) = below_projections(input, keys);
    let sort = |input: Logical, keys: Vec<SortKey>, yielded: &[usize]| {
        let types = input.column_types();
        let column = |&index: &usize| Expr::column(index, &types[index]);
        let expressions = yielded.iter().map(column).collect();
        let goal = Some(goal.clone());
        let input =
            Node::Sort(Arc::new(SortNode { input: build(input, notes), keys, goal, types }));
        Node::Project(Arc::new(ProjectNode { input, expressions }))
    };
    let top = TopNQuery { input, keys, goal: goal.clone(), expressions };
    let (node, expressions) = region_pushdown::top_n(top, &sort, notes)?;
    let Node::RegionTopN(top) = &node else { return Some(node) };
    if top.output.len() == expressions.len() && is_identity(&expressions) {
        return Some(node);
    }
    Some(Node::Project(Arc::new(ProjectNode { input: node, expressions })))
}

/// Returns whether the expressions are the first columns of a row, in order.
fn is_identity(expressions: &[Expr]) -> bool {
    let plain =
        |(index, e): (usize, &Expr)| matches!(e, Expr::Column { index: i, .. } if *i == index);
    expressions.iter().enumerate().all(plain)
}

/// Returns whether rows are already sorted because of a window function.
fn is_sorted(plan: &Logical, keys: &[SortKey]) -> bool {
    match plan {
        Logical::Project { input, expressions } => {
            let below = |key: &SortKey| SortKey {
                expression: substitute(key.expression.clone(), expressions),
                ..key.clone()
            };
            is_sorted(input, &keys.iter().map(below).collect::<Vec<SortKey>>())
        }
        Logical::Filter { input, .. } => is_sorted(input, keys),
        Logical::Window(window) => {
            sort_keys(&window.partition_by, &window.order_by).starts_with(keys)
        }
        _ => false,
    }
}

/// Builds window functions over sorted rows; sorts them by partition and order if necessary.
fn build_window(
    window: Window,
    wanted: &RequiredProperties,
    notes: EstimateRecorder<'_>,
) -> ProvidedProperties {
    let Window { input, partition_by, order_by, functions } = window;
    let keys = sort_keys(&partition_by, &order_by);
    let ordered = keys.starts_with(&wanted.order);
    let input_types = input.column_types();
    let input = match keys.is_empty() {
        true => build(*input, notes),
        false => build_sort(*input, RequiredProperties::of_sort(keys, None), notes),
    };
    let node = WindowAggNode { input, partition_by, order_by, functions, input_types };
    ProvidedProperties { node: Node::WindowAgg(Arc::new(node)), ordered }
}

/// Returns whether a plan provides the required order without a sort. Builds no nodes: sorts may
/// be deeply nested.
fn provides_order(plan: &Logical, wanted: RequiredProperties) -> bool {
    let wanted = wanted.of_rows(plan);
    let passes = |width: usize| wanted.order.iter().all(|key| within(&key.expression, 0..width));
    match plan {
        Logical::Scan(scan) => scan::provides_order(scan, &[], &wanted),
        Logical::Filter { input, predicate } => match input.as_ref() {
            Logical::Scan(scan) => {
                let (volatile, conjuncts) = volatile_parts(predicate.clone());
                let wanted = match volatile.is_empty() {
                    true => wanted,
                    false => wanted.below(FILTERED).of_all_rows(),
                };
                scan::provides_order(scan, &conjuncts, &wanted)
            }
            input => provides_order(input, wanted.below(FILTERED)),
        },
        Logical::Project { input, expressions } => {
            let over = |key: SortKey| SortKey {
                expression: substitute(key.expression, expressions),
                ..key
            };
            let order = wanted.order.into_iter().map(over).collect();
            let groups =
                wanted.groups.map(|groups| groups.map(&|key| substitute(key, expressions)));
            provides_order(input, RequiredProperties { order, goal: wanted.goal, groups })
        }
        Logical::Distinct { input, on } if on.is_empty() => {
            build_sorted_distinct(input, &wanted, EstimateRecorder::NONE).is_some()
        }
        Logical::Apply(apply) => {
            let wanted_below = match apply.kind {
                ApplyKind::Rows { .. } => wanted.clone().below(1.0),
                _ => wanted.clone(),
            };
            passes(width_of(&apply.input)) && provides_order(&apply.input, wanted_below)
        }
        Logical::ProjectSet(sets) => {
            passes(width_of(&sets.input)) && provides_order(&sets.input, wanted.below(1.0))
        }
        Logical::Join(join) => {
            let width = width_of(&join.left);
            let has_order = join.keeps_order() && passes(width);
            has_order
                && provides_order(&join.left, join_method::wanted_of_left(join, wanted, width))
        }
        _ => false,
    }
}

/// Tells whether only filters and projections are above a scan.
fn is_filtered_scan(plan: &Logical) -> bool {
    match plan {
        Logical::Scan(_) => true,
        Logical::Filter { input, .. } | Logical::Project { input, .. } => is_filtered_scan(input),
        _ => false,
    }
}

fn reaches_scan(plan: &Logical) -> bool {
    match plan {
        Logical::Scan(_) => true,
        Logical::Filter { input, .. } | Logical::Project { input, .. } => reaches_scan(input),
        Logical::Apply(apply) => reaches_scan(&apply.input),
        Logical::ProjectSet(sets) => reaches_scan(&sets.input),
        _ => false,
    }
}

/// Substitutes the projections below an aggregation into its expressions.
fn without_projections(
    mut input: Logical,
    mut group_by: Vec<Expr>,
    mut aggregates: Vec<Aggregate>,
) -> (Logical, Vec<Expr>, Vec<Aggregate>) {
    while let Logical::Project { input: below, expressions } = input {
        if expressions.iter().any(is_volatile) {
            input = Logical::Project { input: below, expressions };
            break;
        }
        group_by = group_by.into_iter().map(|key| substitute(key, &expressions)).collect();
        let put_in = |part: Expr| substitute(part, &expressions);
        aggregates = aggregates.into_iter().map(|one| one.map_expressions(&put_in)).collect();
        input = *below;
    }
    (input, group_by, aggregates)
}

fn build_aggregate(
    input: Logical,
    group_by: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    notes: EstimateRecorder<'_>,
) -> Node {
    let (input, group_by, aggregates) = without_projections(input, group_by, aggregates);
    if group_by.is_empty()
        && let Some(node) = build_extremes(&input, &aggregates, notes)
    {
        return node;
    }
    if let Some(GroupingLevels { below, group_by, aggregates }) = levels(&group_by, &aggregates) {
        let input = build_groups(input, below, Vec::new(), notes);
        return Node::Aggregate(Arc::new(AggregateNode { input, group_by, aggregates }));
    }
    build_groups(input, group_by, aggregates, notes)
}

fn build_groups(
    input: Logical,
    group_by: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    notes: EstimateRecorder<'_>,
) -> Node {
    if let Some(node) = build_groups_of_extremes(&input, &group_by, &aggregates, notes) {
        return node;
    }
    if let Some(node) = region_pushdown::aggregate(&input, &group_by, &aggregates, notes) {
        return node;
    }
    let input = build(input, notes);
    Node::Aggregate(Arc::new(AggregateNode { input, group_by, aggregates }))
}

/// Builds GROUPING SETS. If one of the sets has all keys, the regions group by these; otherwise
/// each row is added to all sets.
fn build_grouping_sets(grouping: GroupingSets, notes: EstimateRecorder<'_>) -> Node {
    let GroupingSets { input, group_by, aggregates, sets, grouping_calls: groupings } = grouping;
    let has_all = sets.iter().any(|set| set.len() == group_by.len());
    let (input, mut group_by, aggregates) = without_projections(*input, group_by, aggregates);
    let regions = match has_all && !grouping_sets::differ(&aggregates) {
        true => region_pushdown::aggregate(&input, &group_by, &aggregates, notes),
        false => None,
    };
    let mut sets = grouping_sets::with_aggregates(sets, &group_by, &aggregates);
    let in_regions = regions.is_some();
    let input = regions.unwrap_or_else(|| {
        let parts = grouping_sets::take_parts(&mut group_by, &mut sets);
        build_project(input, parts, RequiredProperties::default(), notes).node
    });
    let node = GroupingSetsNode { input, in_regions, group_by, sets, groupings };
    Node::GroupingSets(Arc::new(node))
}

/// Builds DISTINCT: from the first rows of the groups, or as groups in the regions. With a row goal
/// the session can end early instead.
fn build_distinct(
    input: Logical,
    wanted: RequiredProperties,
    notes: EstimateRecorder<'_>,
) -> ProvidedProperties {
    if let Some(node) = build_sorted_distinct(&input, &wanted, notes) {
        return ProvidedProperties { node, ordered: true };
    }
    let on = all_columns(&input);
    let groups = RequiredGroups { keys: on.clone(), order: Vec::new() };
    if let Some(input) = build_first_rows(&input, on.clone(), groups, notes) {
        return unordered(Node::Distinct(Arc::new(DistinctNode { input, on, sorted: false })));
    }
    if wanted.goal.is_none() && reaches_scan(&input) {
        let (below, keys, _) = without_projections(input.clone(), on.clone(), Vec::new());
        if let Some(node) = region_pushdown::aggregate(&below, &keys, &[], notes) {
            return unordered(node);
        }
    }
    let input = build(input, notes);
    unordered(Node::Distinct(Arc::new(DistinctNode { input, on, sorted: false })))
}

/// Builds DISTINCT in the required order, if it has one and first rows of groups are read in it.
fn build_sorted_distinct(
    input: &Logical,
    wanted: &RequiredProperties,
    notes: EstimateRecorder<'_>,
) -> Option<Node> {
    let last = wanted.order.last()?;
    if !is_filtered_scan(input) {
        return None;
    }
    let on = all_columns(input);
    let mut order = wanted.order.clone();
    let is_missing = |one: &&Expr| !wanted.order.iter().any(|key| key.expression == **one);
    order.extend(
        on.iter().filter(is_missing).map(|one| SortKey { expression: one.clone(), ..*last }),
    );
    let goal = wanted.goal.clone().map(|goal| goal.below(1.0));
    let groups = Some(RequiredGroups { keys: on.clone(), order: Vec::new() });
    let wanted = RequiredProperties { order, goal, groups };
    let built = build_wanted(input.clone(), wanted.clone(), EstimateRecorder::NONE);
    if !built.ordered || first_rows_cost(&built.node).is_none() {
        return None;
    }
    let input = build_wanted(input.clone(), wanted, notes).node;
    Some(Node::Distinct(Arc::new(DistinctNode { input, on, sorted: true })))
}

/// Builds the sorted input of DISTINCT ON: its groups in the required order, or else their first
/// rows, which are then sorted.
fn build_sorted_groups(
    input: Logical,
    wanted: RequiredProperties,
    notes: EstimateRecorder<'_>,
) -> Node {
    let (keys, goal) = (wanted.order.clone(), wanted.goal.clone());
    if let Some(groups) = wanted.groups.clone().filter(|_| goal.is_none()) {
        let sorted = build_sort(input.clone(), wanted.clone(), EstimateRecorder::NONE);
        let is_within = |key: &&SortKey| !groups.keys.contains(&key.expression);
        let order = keys.iter().filter(is_within).cloned().collect();
        let groups = RequiredGroups { order, ..groups };
        if first_rows_cost(&sorted).is_none()
            && let Some(rows) = build_first_rows(&input, all_columns(&input), groups, notes)
        {
            let types = input.column_types();
            return Node::Sort(Arc::new(SortNode { input: rows, keys, goal, types }));
        }
    }
    build_sort(input, wanted, notes)
}

/// Builds the columns of the first rows of groups over them, if a scan reads only these.
fn build_first_rows(
    input: &Logical,
    columns: Vec<Expr>,
    groups: RequiredGroups,
    notes: EstimateRecorder<'_>,
) -> Option<Node> {
    if !is_filtered_scan(input) {
        return None;
    }
    let build = |notes| {
        let groups = Some(groups.clone());
        let wanted = RequiredProperties { groups, ..RequiredProperties::default() };
        build_project(input.clone(), columns.clone(), wanted, notes).node
    };
    first_rows_cost(&build(EstimateRecorder::NONE)).map(|_| build(notes))
}

/// Returns the cost of a scan of the first rows of groups; `None` for other nodes.
fn first_rows_cost(node: &Node) -> Option<f64> {
    match node {
        Node::Scan(scan) => scan.path.cost.filter(|_| scan.path.distinct.is_some()),
        Node::Project(project) => first_rows_cost(&project.input),
        Node::Filter(filter) => first_rows_cost(&filter.input),
        _ => None,
    }
}

/// Builds groups with min and max of columns behind the keys, each from the first rows of the
/// groups in its order, if these scans cost less than one of all rows.
fn build_groups_of_extremes(
    input: &Logical,
    group_by: &[Expr],
    aggregates: &[Aggregate],
    notes: EstimateRecorder<'_>,
) -> Option<Node> {
    let table = filtered_table(input)?;
    let known = table.scan.statistics.clone();
    let statistics: &dyn Statistics = match &known {
        Some(known) => known.as_ref(),
        None => &NoStatistics,
    };
    if group_by.is_empty() || aggregates.len() > EXTREMES_MAX {
        return None;
    }
    let keys: Vec<Expr> =
        group_by.iter().enumerate().map(|(at, key)| column(at, key.data_type())).collect();
    let mut inputs = Vec::with_capacity(aggregates.len() + 1);
    let mut has_all_groups = false;
    let nulls: Vec<Expr> = aggregates.iter().map(|one| null_of(&one.data_type)).collect();
    let columns = |values: &[Expr]| group_by.iter().chain(values).cloned().collect();
    for (at, aggregate) in aggregates.iter().enumerate() {
        let (key, present) = extreme_key(input, aggregate, statistics)?;
        // The scan provides other values, too, as far as they are of the same expression.
        let value = |other: &Aggregate| match other.arguments.first() {
            Some(argument) if *argument == key.expression => argument.clone(),
            _ => null_of(&other.data_type),
        };
        let values: Vec<Expr> = aggregates.iter().map(value).collect();
        let rows = |input: &Logical, nulls_first: bool| {
            let expression = column(keys.len() + at, &aggregate.data_type);
            let order = vec![SortKey { expression, nulls_first, ..key.clone() }];
            let groups = RequiredGroups { keys: keys.clone(), order };
            build_first_rows(input, columns(&values), groups, notes)
        };
        let plain = rows(input, false);
        // Of rows with a value it does not matter where NULLs are; groups without one are missing.
        has_all_groups |= plain.is_some();
        let present = || rows(&present, true).or_else(|| rows(&present, false));
        inputs.push(plain.or_else(present)?);
    }
    if !has_all_groups {
        let groups = RequiredGroups { keys: keys.clone(), order: Vec::new() };
        inputs.push(build_first_rows(input, columns(&nulls), groups, notes)?);
    }
    let cost: f64 = inputs.iter().filter_map(first_rows_cost).sum();
    if known.is_some() && inputs.len() > 1 && cost > table.scan_cost(Estimator { statistics }) {
        return None;
    }
    let input = match inputs.len() {
        1 => inputs.pop()?,
        _ => Node::Append(Arc::new(AppendNode { inputs })),
    };
    let value = |(at, aggregate): (usize, &Aggregate)| Aggregate {
        arguments: vec![column(keys.len() + at, &aggregate.data_type)],
        ..aggregate.clone()
    };
    let aggregates = aggregates.iter().enumerate().map(value).collect();
    Some(Node::Aggregate(Arc::new(AggregateNode { input, group_by: keys, aggregates })))
}

fn null_of(data_type: &DataType) -> Expr {
    Expr::Constant { value: Datum::Null, data_type: data_type.clone() }
}

/// Returns a single row of several extremes ([`build_extreme`]), each with a separate scan, if
/// all aggregates are min or max of keys.
fn build_extremes(
    input: &Logical,
    aggregates: &[Aggregate],
    notes: EstimateRecorder<'_>,
) -> Option<Node> {
    if aggregates.len() > EXTREMES_MAX {
        return None;
    }
    let (first, others) = aggregates.split_first()?;
    let mut node = build_extreme(input, first, notes)?;
    let mut left_types = vec![first.data_type.clone()];
    for aggregate in others {
        let right = build_extreme(input, aggregate, notes)?;
        let right_types = vec![aggregate.data_type.clone()];
        let mut types = left_types.clone();
        types.push(aggregate.data_type.clone());
        let join = LoopJoinNode {
            kind: JoinKind::Inner,
            left: node,
            right,
            on: None,
            left_types,
            right_types,
            keeps_order: false,
        };
        node = Node::LoopJoin(Arc::new(join));
        left_types = types;
    }
    Some(node)
}

/// Builds `min(x)` or `max(x)` as the first row in key order, if no other condition applies to
/// the rows.
fn build_extreme(
    input: &Logical,
    aggregate: &Aggregate,
    notes: EstimateRecorder<'_>,
) -> Option<Node> {
    let (key, present) = extreme_key(input, aggregate, &NoStatistics)?;
    let limit = Some(Expr::Constant { value: Datum::Int8(1), data_type: DataType::Int8 });
    let wanted = RequiredProperties::of_sort(vec![key], RowGoal::of(&limit, &None));
    let built = build_wanted(present, wanted, notes);
    let exact = matches!(&built.node, Node::Scan(scan) if !scan.has_filter());
    if !built.ordered || !exact {
        return None;
    }
    let input = Node::limit(built.node, (limit, None), Vec::new());
    let aggregates = vec![aggregate.clone()];
    Some(Node::Aggregate(Arc::new(AggregateNode { input, group_by: Vec::new(), aggregates })))
}

/// Returns the order in which the value of `min(x)` or `max(x)` is first, and the rows where it is
/// not NULL.
fn extreme_key(
    input: &Logical,
    aggregate: &Aggregate,
    statistics: &dyn Statistics,
) -> Option<(SortKey, Logical)> {
    let descending = match aggregate.kind {
        AggregateKind::Min => false,
        AggregateKind::Max => true,
        _ => return None,
    };
    let argument = aggregate.arguments.first()?.clone();
    // Rules that add parameters do not apply to such an input.
    let volatile = is_volatile(&argument) || !is_filtered_scan(input);
    if aggregate.filter.is_some() || columns_of(&argument).is_empty() || volatile {
        return None;
    }
    let not_null = Expr::Not(Box::new(Expr::IsNull(Box::new(argument.clone()))));
    let present = Logical::Filter { input: Box::new(input.clone()), predicate: not_null };
    let key = SortKey { expression: argument, descending, nulls_first: descending };
    Some((key, push_down(present, statistics, &Cell::new(0))))
}
