//! Validation of physical plans.

use types::DataType;
use types::expr::Expr;
use types::rowcode::RowLayout;

use crate::logical::{JoinKind, SortKey, pseudo_column_type, sort_keys};
use crate::plan::scan::{
    AccessPath, InvertedCondition, KeyCondition, KeyTerm, PathShape, ScanNode,
};
use crate::plan::{
    ApplyNode, DistinctNode, GroupingSetsNode, KeyJoinNode, KeyRange, LockRowsNode, LookupJoinNode,
    LoopJoinNode, Node, ProjectSetNode, RegionAggregateNode, RegionTopNNode, ValuesNode,
    WindowAggNode,
};
use crate::planner::validate::expression::{Row, alike};
use crate::planner::validate::sorted::{Order, provides};
use crate::planner::validate::{Validation, require, same};

/// Checks a plan, and returns the types of its columns.
pub(super) fn check(plan: &Node) -> Validation<Vec<DataType>> {
    match plan {
        Node::Scan(scan) => check_scan(scan),
        Node::RegionAggregate(node) => region_aggregate(node),
        Node::RegionTopN(node) => region_top_n(node),
        Node::SystemRows(node) => {
            row(&[]).check_all(&node.arguments)?;
            Ok(node.types.clone())
        }
        Node::Values(node) => values(node),
        Node::Filter(node) => {
            let types = check(&node.input)?;
            row(&types).check_predicate(&node.predicate)?;
            Ok(types)
        }
        Node::Project(node) => row(&check(&node.input)?).check_all(&node.expressions),
        Node::ProjectSet(node) => project_set(node),
        Node::HashJoin(node) => key_join(node),
        Node::MergeJoin(node) => merge_join(node),
        Node::LookupJoin(node) => lookup_join(node),
        Node::LoopJoin(node) => loop_join(node),
        Node::Apply(node) => apply(node),
        Node::Aggregate(node) => {
            let types = check(&node.input)?;
            let keys = row(&types).check_all(&node.group_by)?;
            Ok([keys, row(&types).check_aggregates(&node.aggregates)?].concat())
        }
        Node::GroupingSets(node) => grouping_sets(node),
        Node::Sort(node) => {
            let types = check(&node.input)?;
            same("the input of a sort", &types, &node.types)?;
            row(&types).check_keys(&node.keys)?;
            Ok(types)
        }
        Node::LockRows(node) => lock_rows(node),
        Node::Limit(node) => {
            let types = check(&node.input)?;
            row(&types).check_all(&node.ties)?;
            Ok(types)
        }
        Node::Distinct(node) => distinct(node),
        Node::SetOperation(node) => {
            same("the left input", &check(&node.left)?, &node.types)?;
            same("the right input", &check(&node.right)?, &node.types)?;
            Ok(node.types.clone())
        }
        Node::WindowAgg(node) => window_agg(node),
        Node::With(node) => {
            check(&node.query)?;
            check(&node.body)
        }
        Node::CteScan(node) => Ok(node.types.clone()),
        Node::RecursiveUnion(node) => {
            same("the non-recursive term", &check(&node.start)?, &node.types)?;
            same("the recursive term", &check(&node.step)?, &node.types)?;
            Ok(node.types.clone())
        }
        Node::Append(node) => append(&node.inputs),
    }
}

/// Returns rows of these columns. Parameters are checked in the logical plan.
fn row(columns: &[DataType]) -> Row<'_> {
    Row { columns, parameter: &|_, _| Ok(()) }
}

fn require_order(input: &Node, order: &Order, node: &str) -> Validation<()> {
    require(provides(input, order), || format!("the input of {node} does not provide {order:?}"))
}

/// Returns the types of decoded columns.
fn read_types(layout: &RowLayout, read: &[usize]) -> Validation<Vec<DataType>> {
    let data_type = |&column: &usize| match pseudo_column_type(column) {
        Some(data_type) => Ok(data_type),
        None => {
            let found = layout.columns.get(column).map(|one| one.data_type.clone());
            found.ok_or_else(|| format!("column {column} of {}", layout.columns.len()))
        }
    };
    read.iter().map(data_type).collect()
}

/// Returns the types of some columns.
fn picked(types: &[DataType], output: &[usize]) -> Validation<Vec<DataType>> {
    let pick = |&at: &usize| {
        let found = types.get(at).cloned();
        found.ok_or_else(|| format!("output of column {at} of {}", types.len()))
    };
    output.iter().map(pick).collect()
}

/// Checks the conditions of an access path.
fn check_path(path: &AccessPath) -> Validation<()> {
    let keys = &path.layout.key;
    require(path.branches.is_empty() || path.conditions.is_empty(), || {
        "a path with conditions and alternatives".to_owned()
    })?;
    if let Some(inverted) = &path.inverted {
        require(path.conditions.is_empty() && path.branches.is_empty(), || {
            "a scan of an inverted index with conditions on keys".to_owned()
        })?;
        inverted.operators().into_iter().try_for_each(|one| match one {
            InvertedCondition::Operator { operand, .. } => row(&[]).check(operand),
            _ => Ok(()),
        })?;
    }
    for conditions in path.branches.iter().chain([&path.conditions]) {
        require(conditions.len() <= keys.len(), || {
            format!("{} conditions on {} key columns", conditions.len(), keys.len())
        })?;
        for (condition, key) in conditions.iter().zip(keys) {
            require(condition.key == *key, || {
                format!("a condition on {:?} for key column {key:?}", condition.key)
            })?;
            condition.terms.iter().try_for_each(check_term)?;
        }
    }
    let is_list = |condition: &KeyCondition| condition.point_count().is_some();
    require(path.conditions.iter().take_while(|one| is_list(one)).count() >= path.merged, || {
        format!("ranges merged over {} columns that are no lists of values", path.merged)
    })?;
    let is_whole = |conditions: &Vec<KeyCondition>| conditions.len() == keys.len();
    match path.shape {
        PathShape::Points(_) if path.branches.is_empty() => {
            require(is_whole(&path.conditions), || "points without whole keys".to_owned())
        }
        PathShape::Points(_) => {
            require(path.branches.iter().all(is_whole), || "points without whole keys".to_owned())
        }
        PathShape::Ranges(_) => Ok(()),
        PathShape::Full => require(path.conditions.is_empty() && path.branches.is_empty(), || {
            "a full scan with conditions".to_owned()
        }),
    }
}

/// Checks that the values of a term have no columns.
fn check_term(term: &KeyTerm) -> Validation<()> {
    match term {
        KeyTerm::Equal(value)
        | KeyTerm::InArray(value)
        | KeyTerm::Compare(_, value)
        | KeyTerm::Like(value) => row(&[]).check(value),
        KeyTerm::In(values) => values.iter().try_for_each(|value| row(&[]).check(value)),
        KeyTerm::Computed(computed) => {
            computed.bounds.iter().try_for_each(|(_, bound)| row(&[]).check(bound))
        }
        KeyTerm::IsNull | KeyTerm::IsNotNull => Ok(()),
        KeyTerm::Any(terms) => terms.iter().try_for_each(check_term),
    }
}

fn check_scan(scan: &ScanNode) -> Validation<Vec<DataType>> {
    check_path(&scan.path)?;
    let read = read_types(&scan.path.layout, &scan.read)?;
    scan.filter.iter().try_for_each(|filter| row(&read).check_predicate(filter))?;
    let rows = match &scan.lookup {
        None => read,
        Some(lookup) => {
            let key = picked(&read, &lookup.key)?;
            let table = &scan.table.layout;
            let key_columns: Vec<usize> = table.key.iter().map(|part| part.column).collect();
            same("the key of a fetch", &key, &read_types(table, &key_columns)?)?;
            let rows = read_types(table, &lookup.read)?;
            lookup.filter.iter().try_for_each(|filter| row(&rows).check_predicate(filter))?;
            rows
        }
    };
    let recheck = scan.lock.iter().flat_map(|lock| &lock.recheck);
    recheck.into_iter().try_for_each(|recheck| row(&rows).check_predicate(recheck))?;
    let output = picked(&rows, &scan.output)?;
    same("the output of a scan", &output, &scan.types)?;
    if let Some(other) = &scan.without_index {
        same("the scan without its index", &check_scan(other)?, &output)?;
    }
    Ok(output)
}

fn region_aggregate(node: &RegionAggregateNode) -> Validation<Vec<DataType>> {
    check_path(&node.path)?;
    let read = read_types(&node.path.layout, &node.read)?;
    node.filter.iter().try_for_each(|filter| row(&read).check_predicate(filter))?;
    let keys = row(&read).check_all(&node.group_by)?;
    Ok([keys, row(&read).check_aggregates(&node.aggregates)?].concat())
}

fn region_top_n(node: &RegionTopNNode) -> Validation<Vec<DataType>> {
    check_path(&node.path)?;
    let read = read_types(&node.path.layout, &node.read)?;
    node.filter.iter().try_for_each(|filter| row(&read).check_predicate(filter))?;
    row(&read).check_keys(&node.keys)?;
    let output = picked(&read, &node.output)?;
    same("the fallback of a top-N", &check(&node.otherwise)?, &output)?;
    Ok(output)
}

fn values(node: &ValuesNode) -> Validation<Vec<DataType>> {
    for values in &node.rows {
        same("a row of values", &row(&[]).check_all(values)?, &node.types)?;
    }
    let width = node.constants.as_ref().map_or(node.types.len(), |rows| rows.columns.len());
    require(width == node.types.len(), || format!("{width} constant columns"))?;
    Ok(node.types.clone())
}

fn project_set(node: &ProjectSetNode) -> Validation<Vec<DataType>> {
    let mut types = check(&node.input)?;
    for function in &node.functions {
        row(&types).check_all(function.arguments())?;
    }
    let outside = node.unread.iter().find(|&&column| column >= types.len());
    require(outside.is_none(), || format!("unread column {outside:?} of {}", types.len()))?;
    let columns = node.functions.iter().flat_map(|function| &function.columns);
    types.extend(columns.map(|column| column.sql_type.base.clone()));
    types.extend(node.ordinality.then_some(DataType::Int8));
    Ok(types)
}

/// Checks the sides of a join, and returns the types of both and of the output.
fn sides(
    (left, left_types): (&Node, &[DataType]),
    (right, right_types): (&Node, &[DataType]),
    kind: JoinKind,
) -> Validation<(Vec<DataType>, Vec<DataType>)> {
    same("the left side", &check(left)?, left_types)?;
    same("the right side", &check(right)?, right_types)?;
    let both = [left_types, right_types].concat();
    let output = match kind {
        JoinKind::Semi | JoinKind::Anti => left_types.to_vec(),
        _ => both.clone(),
    };
    Ok((both, output))
}

/// Checks the keys of a join: as many on both sides, of comparable types.
fn check_join_keys(
    (left, left_types): (&[Expr], &[DataType]),
    (right, right_types): (&[Expr], &[DataType]),
) -> Validation<()> {
    let left = row(left_types).check_all(left)?;
    let right = row(right_types).check_all(right)?;
    let fit = left.len() == right.len() && left.iter().zip(&right).all(|(a, b)| alike(a, b));
    require(fit, || format!("join keys of types {left:?} and {right:?}"))
}

fn key_join(node: &KeyJoinNode) -> Validation<Vec<DataType>> {
    let (left, right) = ((&node.left, &node.left_types[..]), (&node.right, &node.right_types[..]));
    let (both, output) = sides(left, right, node.kind)?;
    let left_keys = (&node.left_keys[..], left.1);
    check_join_keys(left_keys, (&node.right_keys, right.1))?;
    require(!node.left_keys.is_empty(), || "a join by no keys".to_owned())?;
    node.join_filter.iter().try_for_each(|filter| row(&both).check_predicate(filter))?;
    if !node.order.is_empty() {
        require_order(&node.left, &Order::Keys(node.order.clone()), "a join in order")?;
    }
    Ok(output)
}

fn merge_join(node: &KeyJoinNode) -> Validation<Vec<DataType>> {
    let output = key_join(node)?;
    let streams = !matches!(node.kind, JoinKind::Right | JoinKind::Full);
    require(streams, || format!("a merge join of kind {:?}", node.kind))?;
    require_order(&node.left, &Order::ascending(&node.left_keys), "a merge join")?;
    require_order(&node.right, &Order::ascending(&node.right_keys), "a merge join")?;
    Ok(output)
}

fn lookup_join(node: &LookupJoinNode) -> Validation<Vec<DataType>> {
    let (left, right) = ((&node.left, &node.left_types[..]), (&node.right, &node.right_types[..]));
    let (both, output) = sides(left, right, node.kind)?;
    let streams = !matches!(node.kind, JoinKind::Right | JoinKind::Full);
    require(streams, || format!("a look-up join of kind {:?}", node.kind))?;
    let is_scan = matches!(&node.right, Node::Scan(scan) if scan.lock.is_none());
    require(is_scan, || "a look-up join of a plan that is not a plain scan".to_owned())?;
    let left_keys = (&node.left_keys[..], left.1);
    check_join_keys(left_keys, (&node.right_keys, right.1))?;
    node.bindings.iter().try_for_each(|(_, value)| row(left.1).check(value))?;
    if let Some(KeyRange { key, low, high }) = &node.range {
        row(right.1).check(key)?;
        let mut bounds = low.iter().chain(high);
        bounds.try_for_each(|bound| row(left.1).check(&bound.value))?;
    }
    node.residual.iter().try_for_each(|filter| row(&both).check_predicate(filter))?;
    if let Some(before) = &node.before_index_history {
        same("the join before the history of an index", &check(before)?, &output)?;
    }
    Ok(output)
}

fn loop_join(node: &LoopJoinNode) -> Validation<Vec<DataType>> {
    let (left, right) = ((&node.left, &node.left_types[..]), (&node.right, &node.right_types[..]));
    let (both, output) = sides(left, right, node.kind)?;
    node.on.iter().try_for_each(|on| row(&both).check_predicate(on))?;
    Ok(output)
}

fn apply(node: &ApplyNode) -> Validation<Vec<DataType>> {
    same("the input of a subquery", &check(&node.input)?, &node.input_types)?;
    same("a subquery", &check(&node.subquery)?, &node.subquery_types)?;
    let input = &node.input_types;
    let outside = node.bindings.iter().find(|(_, column)| *column >= input.len());
    require(outside.is_none(), || format!("binding {outside:?} of {} columns", input.len()))?;
    let both = [&input[..], &node.subquery_types].concat();
    let condition = node.kind.condition();
    condition.into_iter().try_for_each(|one| row(&both).check_predicate(one))?;
    node.guard.iter().try_for_each(|guard| row(input).check_predicate(guard))?;
    if let Some(groups) = &node.groups {
        same("the groups of a subquery", &check(&groups.plan)?, &groups.types)?;
        row(input).check_all(&groups.keys)?;
        row(&[&input[..], &groups.types].concat()).check(&groups.value)?;
    }
    Ok([input.clone(), node.kind.added_types(node.subquery_types.clone())].concat())
}

fn grouping_sets(node: &GroupingSetsNode) -> Validation<Vec<DataType>> {
    let input = check(&node.input)?;
    require(!node.sets.is_empty(), || "no grouping set".to_owned())?;
    let keys: Vec<DataType> = node.group_by.iter().map(Expr::data_type).cloned().collect();
    let mut types = Vec::new();
    for set in &node.sets {
        let missing = set.keys.iter().find(|&&key| key >= keys.len());
        require(missing.is_none(), || format!("grouping key {missing:?} of {}", keys.len()))?;
        types = set.aggregates.iter().map(|one| one.data_type.clone()).collect();
        if node.in_regions {
            // The regions evaluate the expressions, and the session only merges their groups.
            same("groups of the regions", &input, &[&keys[..], &types].concat())?;
        } else {
            row(&input).check_all(&node.group_by)?;
            row(&input).check_aggregates(&set.aggregates)?;
        }
    }
    Ok([keys, types, vec![DataType::Int4; node.groupings.len()]].concat())
}

fn lock_rows(node: &LockRowsNode) -> Validation<Vec<DataType>> {
    let types = check(&node.input)?;
    same("the re-evaluated row", &check(&node.held.again)?, &types)?;
    let keys = node.held.tables.iter().flat_map(|table| &table.key);
    let copies = node.held.copies.iter().map(|(_, column)| column);
    let outside = keys.chain(copies).find(|&&column| column >= types.len());
    require(outside.is_none(), || format!("locked column {outside:?} of {}", types.len()))?;
    Ok(types)
}

fn distinct(node: &DistinctNode) -> Validation<Vec<DataType>> {
    let types = check(&node.input)?;
    let keys = row(&types).check_all(&node.on)?;
    if node.sorted {
        require_order(&node.input, &Order::Groups(node.on.clone()), "DISTINCT ON")?;
    } else {
        same("the keys of DISTINCT", &keys, &types)?;
    }
    Ok(types)
}

fn window_agg(node: &WindowAggNode) -> Validation<Vec<DataType>> {
    same("the input of window functions", &check(&node.input)?, &node.input_types)?;
    let mut checked = Ok(());
    for function in &node.functions {
        function.for_each_expression(&mut |one| {
            if checked.is_ok() {
                checked = row(&node.input_types).check(one);
            }
        });
    }
    checked?;
    let keys: Vec<SortKey> = sort_keys(&node.partition_by, &node.order_by);
    row(&node.input_types).check_keys(&keys)?;
    require_order(&node.input, &Order::Keys(keys), "window functions")?;
    let added = node.functions.iter().map(|function| function.data_type.clone());
    Ok(node.input_types.iter().cloned().chain(added).collect())
}

fn append(inputs: &[Node]) -> Validation<Vec<DataType>> {
    let Some((first, others)) = inputs.split_first() else { return Ok(Vec::new()) };
    let types = check(first)?;
    for other in others {
        same("an input", &check(other)?, &types)?;
    }
    Ok(types)
}
