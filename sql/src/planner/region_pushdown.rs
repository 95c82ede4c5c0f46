//! Pushdown to regions: aggregates, and top-N of one table.
//!
//! Both read one table by its key or by a covering index, at the statement's snapshot, without
//! locks; the session merges the results of the regions.

use std::sync::Arc;

use types::Datum;
use types::aggregate::Aggregate;
use types::expr::Expr;

use crate::catalog::table::Table;
use crate::logical::{Logical, SortKey, TIMESTAMP_COLUMN, TableScan};
use crate::plan::scan::{AccessPath, PathShape};
use crate::plan::{Node, RegionAggregateNode, RegionTopNNode, RowGoal};
use crate::planner::access_paths::{ScanRequirements, choose};
use crate::planner::conjunct::{Columns, add_columns, is_volatile, renumber};
use crate::planner::estimate_recording::EstimateRecorder;
use crate::planner::lookup::{FilteredTable, filtered_table};
use crate::planner::scan::{direct, path_of};

/// Scan of a table within its regions.
struct RegionScan {
    table: Arc<Table>,
    alias: String,
    path: AccessPath,
    read: Vec<usize>,
    filter: Option<Expr>,
    /// Used columns of the logical scan, and the position of each in `read`.
    used: Vec<usize>,
    places: Vec<usize>,
}

impl RegionScan {
    /// Plans a scan for `parts`, if the input is one table that is read without base-table
    /// fetches.
    fn of(input: &Logical, parts: &[&Expr], notes: EstimateRecorder<'_>) -> Option<RegionScan> {
        let FilteredTable { scan, conjuncts } = filtered_table(input)?;
        let timestamp = scan.columns.contains(&TIMESTAMP_COLUMN);
        let volatile = parts.iter().copied().any(is_volatile);
        if volatile || timestamp || scan.lock.is_some() || scan.system_time.is_some() {
            return None;
        }
        // Only the columns that the expressions use are read.
        let mut used = Columns::new();
        parts.iter().for_each(|part| add_columns(part, &mut used));
        let columns = used.iter().map(|&index| scan.columns[index]).collect();
        let narrowed = TableScan { columns, ..scan.clone() };
        let question = ScanRequirements::of_all(&narrowed, &conjuncts);
        let candidate = choose(&question);
        if candidate.lookup || matches!(candidate.shape, PathShape::Points(_)) {
            return None;
        }
        let rest = candidate.rest.iter().map(|&position| conjuncts[position].clone()).collect();
        let reading = direct(&narrowed, &candidate, rest);
        let cost = notes.path_cost(&candidate, &question);
        Some(RegionScan {
            table: Arc::clone(&scan.table),
            alias: scan.alias.clone(),
            path: path_of(candidate, cost),
            read: reading.read,
            filter: reading.filter,
            used: used.into_iter().collect(),
            places: reading.output,
        })
    }

    /// Converts an expression over the logical scan to one over `read`.
    fn put(&self, part: Expr) -> Expr {
        renumber(part, &|index| self.place(index))
    }

    /// Returns the position in `read` of a column of the logical scan.
    fn place(&self, index: usize) -> usize {
        let narrow = self.used.binary_search(&index).expect("it was among the parts");
        self.places[narrow]
    }
}

/// Returns the region aggregate, if it is possible.
pub(super) fn aggregate(
    input: &Logical,
    group_by: &[Expr],
    aggregates: &[Aggregate],
    notes: EstimateRecorder<'_>,
) -> Option<Node> {
    // Aggregates as large as their input are computed in the session.
    if aggregates.iter().any(Aggregate::is_partial_unreduced) {
        return None;
    }
    let parts: Vec<&Expr> =
        aggregates.iter().flat_map(Aggregate::expressions).chain(group_by).collect();
    let scan = RegionScan::of(input, &parts, notes)?;
    let put = |part: Expr| scan.put(part);
    let of_aggregate = |aggregate: &Aggregate| aggregate.clone().map_expressions(&put);
    let aggregates = aggregates.iter().map(of_aggregate).collect();
    let group_by = group_by.iter().cloned().map(put).collect();
    Some(Node::RegionAggregate(Arc::new(RegionAggregateNode {
        table: scan.table,
        alias: scan.alias,
        path: scan.path,
        group_by,
        aggregates,
        filter: scan.filter,
        read: scan.read,
    })))
}

/// First rows in an order, with the expressions over them.
pub(super) struct TopNQuery {
    /// Input.
    pub input: Logical,
    /// Sort keys, over the input's columns.
    pub keys: Vec<SortKey>,
    /// Row goal.
    pub goal: RowGoal,
    /// Expressions over the input's columns.
    pub expressions: Vec<Expr>,
}

/// Callback that builds a sort which returns some columns.
pub(super) type SortColumns<'a> = &'a dyn Fn(Logical, Vec<SortKey>, &[usize]) -> Node;

/// Returns the top-N node, if it is possible and the number of rows is small, and the expressions
/// over its columns.
pub(super) fn top_n(
    top: TopNQuery,
    sort: SortColumns<'_>,
    notes: EstimateRecorder<'_>,
) -> Option<(Node, Vec<Expr>)> {
    let TopNQuery { input, keys, goal, expressions } = top;
    let number = |number: &Expr| match number {
        Expr::Constant { value: Datum::Int8(value), .. } => Some(*value),
        _ => None,
    };
    let offset = goal.offset.as_ref().map_or(Some(0), number);
    let wanted =
        number(&goal.limit).zip(offset).map(|(limit, offset)| limit.saturating_add(offset));
    if wanted.is_some_and(|wanted| wanted > RegionTopNNode::ROWS_MAX as i64) {
        return None;
    }
    let parts: Vec<&Expr> = keys.iter().map(|key| &key.expression).chain(&expressions).collect();
    let scan = RegionScan::of(&input, &parts, notes)?;
    let mut yielded = Columns::new();
    expressions.iter().for_each(|expression| add_columns(expression, &mut yielded));
    let yielded: Vec<usize> = yielded.into_iter().collect();
    let position = |index: usize| yielded.binary_search(&index).expect("it was gathered above");
    let expressions =
        expressions.into_iter().map(|expression| renumber(expression, &position)).collect();
    let key = |key: &SortKey| SortKey { expression: scan.put(key.expression.clone()), ..*key };
    let node = Node::RegionTopN(Arc::new(RegionTopNNode {
        keys: keys.iter().map(key).collect(),
        output: yielded.iter().map(|&index| scan.place(index)).collect(),
        otherwise: sort(input, keys, &yielded),
        table: scan.table,
        alias: scan.alias,
        path: scan.path,
        read: scan.read,
        filter: scan.filter,
        goal,
    }));
    Some((node, expressions))
}
