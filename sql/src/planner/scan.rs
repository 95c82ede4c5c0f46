//! Scan construction: from a chosen access path to decoded columns, filters and base-table fetch.
//!
//! [`access_paths`](crate::planner::access_paths) chooses the path; this module derives the
//! [`ScanNode`]: the columns to decode from index and base table, the filters that the path leaves,
//! and the re-evaluation of locked rows. It also recognises point gets.

use std::sync::{Arc, OnceLock};

use coprocessors::columns::wanted_sections;
use coprocessors::row::ReadColumns;
use types::expr::Expr;

use crate::logical::{Logical, SortKey, TIMESTAMP_COLUMN, TableScan};
use crate::plan::scan::{
    AccessPath, BaseTableFetchNode, DistinctPrefix, PathShape, ScanLock, ScanNode,
};
use crate::plan::{FilterNode, Node, PointGet, RowGoal};
use crate::planner::access_paths::{
    PathCandidate, PathGroups, PathOrder, ScanRequirements, choose, needed,
};
use crate::planner::conjunct::{Columns, add_columns, all, as_column, renumber, within};
use crate::planner::cost;
use crate::planner::estimate::Estimator;
use crate::planner::estimate_recording::EstimateRecorder;
use crate::planner::lookup::{FilteredTable, LookupKey, filtered_table};
use crate::planner::physical_properties::{ProvidedProperties, RequiredGroups, RequiredProperties};

/// Returns whether [`build`] yields rows in the required order.
pub(super) fn provides_order(
    scan: &TableScan,
    conjuncts: &[Expr],
    wanted: &RequiredProperties,
) -> bool {
    let conjuncts = over_table(scan, conjuncts.to_vec());
    let order = order_over_table(scan, wanted);
    let goal = wanted.goal.as_ref().map(RowGoal::estimate);
    let groups = groups_over_table(scan, wanted);
    let question = ScanRequirements {
        groups: groups.as_ref(),
        ..ScanRequirements::of_first(scan, &conjuncts, (&order, goal))
    };
    choose_paths(&question).0.order.is_some() && !order.is_empty()
}

/// Returns the chosen path, and if that is an index for time travel, the path for times before the
/// history of the index; if it is an inverted index, the path without such indexes. Such an index
/// does not provide an order, which the other path may lack. Row versions are read from the table,
/// in no order: several have one key.
fn choose_paths(question: &ScanRequirements<'_>) -> (PathCandidate, Option<PathCandidate>) {
    let candidate = choose(question);
    let ScanRequirements { scan, conjuncts, .. } = *question;
    if scan.system_time.is_none() || scan.lock.is_some() {
        let other = ScanRequirements { may_use_inverted: false, groups: None, ..*question };
        let other = candidate.inverted.as_ref().map(|_| choose(&other));
        return (candidate, other.map(|path| PathCandidate { order: None, ..path }));
    }
    let all = ScanRequirements::of_all(scan, conjuncts);
    if scan.has_versions() {
        return (PathCandidate { order: None, ..choose(&all) }, None);
    }
    let by_index = choose(&ScanRequirements { may_time_travel_by_index: true, ..all });
    let is_plain = |candidate: &PathCandidate| {
        !candidate.rest.iter().any(|&position| conjuncts[position].is_session_only())
    };
    let before_history = choose(&all);
    match by_index.index.is_some() && is_plain(&by_index) && is_plain(&before_history) {
        true => (PathCandidate { order: None, ..by_index }, Some(before_history)),
        false => (candidate, None),
    }
}

fn order_over_table(scan: &TableScan, wanted: &RequiredProperties) -> Vec<SortKey> {
    let over_table =
        |key: &SortKey| SortKey { expression: to_table(scan, key.expression.clone()), ..*key };
    wanted.order.iter().map(over_table).collect()
}

fn groups_over_table(scan: &TableScan, wanted: &RequiredProperties) -> Option<RequiredGroups> {
    let is_plain = scan.lock.is_none() && !scan.has_versions();
    let has_choice = scan.statistics.is_some() || scan.index_hint.is_some();
    let groups = wanted.groups.as_ref().filter(|_| is_plain && has_choice);
    groups.map(|groups| groups.map(&|expression| to_table(scan, expression)))
}

/// Returns the scan of a table with conditions over its columns.
pub(super) fn build(
    scan: &TableScan,
    conjuncts: Vec<Expr>,
    wanted: &RequiredProperties,
    notes: EstimateRecorder<'_>,
) -> ProvidedProperties {
    let over_scan = conjuncts;
    let conjuncts = over_table(scan, over_scan.clone());
    let order = order_over_table(scan, wanted);
    let goal = wanted.goal.as_ref().map(RowGoal::estimate);
    let groups = groups_over_table(scan, wanted);
    let question = ScanRequirements {
        groups: groups.as_ref(),
        ..ScanRequirements::of_first(scan, &conjuncts, (&order, goal))
    };
    let (candidate, without_index) = choose_paths(&question);
    let ordered = candidate.order.is_some() && !order.is_empty();
    let PathOrder { reverse, merged } = candidate.order.unwrap_or_default();
    // Conditions that must be evaluated in the session become a filter above, unless the path
    // implies them.
    let (called, rest): (Vec<usize>, Vec<usize>) =
        candidate.rest.iter().partition(|&&position| conjuncts[position].is_session_only());
    let called = all(called.into_iter().map(|position| over_scan[position].clone()).collect());
    // A sort or filter above needs all rows.
    let goal = wanted.goal.clone().filter(|_| called.is_none() && (order.is_empty() || ordered));
    let cost = match (&candidate.distinct, &scan.statistics) {
        (Some(_), Some(known)) => {
            Some(candidate.cost(&question, Estimator { statistics: known.as_ref() }))
        }
        // By a hint.
        (Some(_), None) => Some(0.0),
        _ => notes.path_cost(&candidate, &question),
    };
    let with_lock = |node: ScanNode| {
        let lock = scan.lock.map(|lock| {
            let read = node.lookup.as_ref().map_or(&node.read, |lookup| &lookup.read);
            let recheck = all(conjuncts.clone()).map(|predicate| over(predicate, read));
            ScanLock { lock, recheck }
        });
        ScanNode { lock, goal: goal.clone(), ..node }
    };
    let index_rows_max = match (&candidate.inverted, &without_index, &scan.statistics) {
        (Some(_), Some(other), Some(known)) => {
            let cost = other.cost(&question, Estimator { statistics: known.as_ref() });
            Some((cost / cost::GET) as u64)
        }
        _ => None,
    };
    let mut node = with_lock(scan_node(scan, (&conjuncts, &rest), candidate, cost));
    node.index_rows_max = index_rows_max;
    node.path = AccessPath { reverse, ordered, merged, ..node.path };
    node.without_index = without_index.map(|path| {
        let is_own = |position: &usize| !conjuncts[*position].is_session_only();
        let rest: Vec<usize> = path.rest.iter().copied().filter(is_own).collect();
        Arc::new(with_lock(scan_node(scan, (&conjuncts, &rest), path, None)))
    });
    let node = Node::Scan(Arc::new(node));
    let node = match called {
        None => node,
        Some(predicate) => Node::Filter(Arc::new(FilterNode { input: node, predicate })),
    };
    ProvidedProperties { node, ordered }
}

/// Returns the scan of a table by look-up keys, and the used keys; `None` if it can use none.
/// Their parameters begin at `first`, and only the path uses them.
pub(super) fn build_lookup(
    plan: &Logical,
    (first, keys): (usize, &[LookupKey]),
    notes: EstimateRecorder<'_>,
) -> Option<(Node, Vec<usize>)> {
    let FilteredTable { scan, mut conjuncts } = filtered_table(plan)?;
    let own = conjuncts.len();
    for (at, key) in keys.iter().enumerate() {
        conjuncts.push(key.bound(scan, first + at)?);
    }
    let question = ScanRequirements::of_lookup(scan, &conjuncts);
    let mut candidate = choose(&question);
    // The keys of the look-up are not known when the scan is opened.
    candidate.base_conditions.clear();
    let used: Vec<usize> =
        (0..keys.len()).filter(|key| !candidate.rest.contains(&(own + key))).collect();
    if used.is_empty() || scan.lock.is_some() || scan.has_versions() {
        return None;
    }
    let rest: Vec<usize> =
        candidate.rest.iter().copied().filter(|&position| position < own).collect();
    let cost = notes.path_cost(&candidate, &question);
    let node = scan_node(scan, (&conjuncts, &rest), candidate, cost);
    Some((Node::Scan(Arc::new(node)), used))
}

/// Returns the scan of a table along a path, with the conditions `rest` as filter; without lock
/// and row goal.
fn scan_node(
    scan: &TableScan,
    (conjuncts, rest): (&[Expr], &[usize]),
    candidate: PathCandidate,
    cost: Option<f64>,
) -> ScanNode {
    let rest = rest.iter().map(|&position| conjuncts[position].clone()).collect();
    let reading = match candidate.lookup {
        false => direct(scan, &candidate, rest),
        true => with_lookup(scan, &candidate, rest),
    };
    ScanNode {
        table: Arc::clone(&scan.table),
        alias: scan.alias.clone(),
        path: path_of(candidate, cost),
        read: reading.read,
        filter: reading.filter,
        lookup: reading.lookup,
        output: reading.output,
        types: scan.columns.iter().map(|&column| scan.column_type(column)).collect(),
        system_time: scan.system_time.clone(),
        without_index: None,
        index_rows_max: None,
        lock: None,
        goal: None,
        sections: OnceLock::new(),
    }
}

/// Returns the chosen path, ascending and without a required order.
pub(super) fn path_of(candidate: PathCandidate, cost: Option<f64>) -> AccessPath {
    AccessPath {
        index: candidate.index,
        store_table: candidate.store_table,
        layout: candidate.layout,
        conditions: candidate.conditions,
        branches: candidate.branches,
        inverted: candidate.inverted,
        base_conditions: candidate.base_conditions,
        shape: candidate.shape,
        reverse: false,
        ordered: false,
        merged: 0,
        distinct: candidate.distinct.map(|PathGroups { keys, conditions }| DistinctPrefix {
            columns: keys.len(),
            conditions,
        }),
        cost,
    }
}

/// Converts expressions over the scan's columns to the table's.
fn over_table(scan: &TableScan, expressions: Vec<Expr>) -> Vec<Expr> {
    expressions.into_iter().map(|expression| to_table(scan, expression)).collect()
}

fn to_table(scan: &TableScan, expression: Expr) -> Expr {
    renumber(expression, &|index| scan.columns[index])
}

/// Converts an expression over table columns to `read`.
fn over(expression: Expr, read: &[usize]) -> Expr {
    renumber(expression, &|column| position(read, column))
}

fn position(read: &[usize], column: usize) -> usize {
    read.iter().position(|&other| other == column).expect("all columns that are used are read")
}

/// Columns and filters along a path, in the form of a [`ScanNode`].
pub(super) struct ScanColumns {
    pub read: Vec<usize>,
    pub filter: Option<Expr>,
    lookup: Option<BaseTableFetchNode>,
    pub output: Vec<usize>,
}

/// Returns the table columns that are returned, filtered, or re-evaluated under a lock.
fn table_columns(scan: &TableScan, rest: &[Expr]) -> Vec<usize> {
    let mut columns: Columns = scan.columns.iter().copied().collect();
    rest.iter().for_each(|conjunct| add_columns(conjunct, &mut columns));
    columns.into_iter().collect()
}

/// Plans a scan whose columns are all in the store table of the path.
pub(super) fn direct(scan: &TableScan, candidate: &PathCandidate, rest: Vec<Expr>) -> ScanColumns {
    let mut columns = table_columns(scan, &rest);
    if scan.lock.is_some() {
        let mut all_columns = needed(scan, []);
        all_columns.extend(columns.iter().copied());
        all_columns.extend(scan.table.key_columns());
        columns = all_columns.into_iter().collect();
    }
    let filter = all(rest).map(|predicate| over(predicate, &columns));
    let output = scan.columns.iter().map(|&column| position(&columns, column)).collect();
    let read = match &candidate.index {
        None => columns,
        Some(index) => columns.iter().map(|&column| in_index(index, column)).collect(),
    };
    ScanColumns { read, filter, lookup: None, output }
}

/// Returns the position of a table column in an index's layout.
fn in_index(index: &crate::catalog::table::Index, column: usize) -> usize {
    let covered = index.spec.covered_columns();
    let found = covered.iter().find(|(base, _)| *base == column);
    found.map(|(_, position)| *position).expect("the index covers the columns that are needed")
}

/// Plans an index scan with base-table fetch; conditions on covered columns are checked before
/// the fetch.
fn with_lookup(scan: &TableScan, candidate: &PathCandidate, rest: Vec<Expr>) -> ScanColumns {
    let index = candidate.index.as_ref().expect("only an index needs a look-up");
    let covered: Columns = index.spec.covered_columns().iter().map(|(base, _)| *base).collect();
    let is_covered = |conjunct: &Expr| {
        let mut columns = Columns::new();
        add_columns(conjunct, &mut columns);
        columns.is_subset(&covered)
    };
    let (before, after): (Vec<Expr>, Vec<Expr>) = rest.into_iter().partition(is_covered);
    let mut first: Columns = scan.table.key_columns().collect();
    before.iter().for_each(|conjunct| add_columns(conjunct, &mut first));
    let first: Vec<usize> = first.into_iter().collect();
    let mut rows = table_columns(scan, &after);
    if scan.lock.is_some() {
        // Conditions checked on the index are re-evaluated on the locked row.
        let mut again: Columns = rows.iter().copied().collect();
        again.extend(0..scan.table.layout.columns.len());
        rows = again.into_iter().collect();
    }
    let lookup = BaseTableFetchNode {
        key: scan.table.key_columns().map(|column| position(&first, column)).collect(),
        filter: all(after).map(|predicate| over(predicate, &rows)),
        read: rows,
    };
    ScanColumns {
        filter: all(before).map(|predicate| over(predicate, &first)),
        read: first.iter().map(|&column| in_index(index, column)).collect(),
        output: scan.columns.iter().map(|&column| position(&lookup.read, column)).collect(),
        lookup: Some(lookup),
    }
}

/// Narrows a scan's output to the columns `used`, and its decoded columns accordingly.
pub(super) fn narrow(scan: Arc<ScanNode>, used: &[usize]) -> Arc<ScanNode> {
    let Ok(mut scan) = Arc::try_unwrap(scan) else { unreachable!("a scan is shared once built") };
    scan.output = used.iter().map(|&column| scan.output[column]).collect();
    scan.types = used.iter().map(|&column| scan.types[column].clone()).collect();
    scan.without_index = scan.without_index.map(|scan| narrow(scan, used));
    let recheck = scan.lock.as_mut().and_then(|lock| lock.recheck.as_mut());
    match &mut scan.lookup {
        Some(lookup) => {
            shrink(&mut lookup.read, &mut scan.output, [lookup.filter.as_mut(), recheck]);
        }
        None => shrink(&mut scan.read, &mut scan.output, [scan.filter.as_mut(), recheck]),
    }
    Arc::new(scan)
}

/// Removes unused decoded columns.
fn shrink(read: &mut Vec<usize>, output: &mut [usize], checks: [Option<&mut Expr>; 2]) {
    let mut kept: Columns = output.iter().copied().collect();
    checks.iter().flatten().for_each(|check| add_columns(check, &mut kept));
    let kept: Vec<usize> = kept.into_iter().collect();
    *read = kept.iter().map(|&old| read[old]).collect();
    let new = |old: usize| kept.binary_search(&old).expect("it was kept");
    output.iter_mut().for_each(|old| *old = new(*old));
    for check in checks.into_iter().flatten() {
        *check = renumber(check.clone(), &new);
    }
}

/// Returns the key of a scan that is a single get by the primary key without a filter.
pub(super) fn point_key(scan: &ScanNode) -> Option<Vec<Expr>> {
    let plain = scan.path.index.is_none()
        && scan.path.shape == PathShape::Points(1)
        && scan.filter.is_none()
        && scan.lock.is_none()
        && scan.system_time.is_none();
    if !plain {
        return None;
    }
    let value = |condition: &crate::plan::scan::KeyCondition| match condition.terms.as_slice() {
        [crate::plan::scan::KeyTerm::Equal(value)] => Some(value.clone()),
        _ => None,
    };
    scan.path.conditions.iter().map(value).collect()
}

/// Returns the point get of a plan that is a single get of plain columns.
pub(super) fn point_get(node: &Node) -> Option<PointGet> {
    let (scan, columns): (&ScanNode, Vec<usize>) = match node {
        Node::Scan(scan) => (scan, (0..scan.output.len()).collect()),
        Node::Project(project) => match &project.input {
            Node::Scan(scan) => {
                (scan, project.expressions.iter().map(as_column).collect::<Option<_>>()?)
            }
            _ => return None,
        },
        _ => return None,
    };
    let key = point_key(scan)?;
    let columns: Vec<usize> =
        columns.into_iter().map(|column| scan.read[scan.output[column]]).collect();
    if columns.contains(&TIMESTAMP_COLUMN) || !key.iter().all(|value| within(value, 0..0)) {
        return None;
    }
    let layout = &scan.table.layout;
    let read = ReadColumns::of(layout, &columns);
    let sections = wanted_sections(layout, &columns).ok()?;
    Some(PointGet { table: Arc::clone(&scan.table), key, columns, read, sections })
}
