//! Candidate access paths, and what they are compared by: their cost, or their rank by rule.

use std::sync::Arc;

use store::TableId;
use types::expr::{CompareOp, Expr};
use types::inverted::InvertedClass;
use types::rowcode::RowLayout;

use crate::catalog::table::Index;
use crate::logical::{
    Logical, OPERATION_COLUMN, SortKey, TIMESTAMP_COLUMN, TableScan, pseudo_column_type,
};
use crate::plan::scan::{InvertedCondition, KeyCondition, PathShape};
use crate::planner::conjunct::{
    Columns, add_columns, as_column, columns_of, parameter_count, renumber,
};
use crate::planner::cost;
use crate::planner::estimate::Estimator;
use crate::planner::physical_properties::RequiredGroups;

/// See [`ScanRequirements::open_range`]: an unnecessary index scan costs a bounded amount, the gain
/// is not bounded.
const OPEN_RANGE: f64 = 0.05;

/// Assumed number of rows with the terms of a rare condition, and what part of the rows is rare.
const TERM_ROWS: f64 = 10.0;
const RARE_PART: f64 = 0.05;

/// Candidate access path, and the conditions that it leaves to the filter.
#[derive(Debug)]
pub(in crate::planner) struct PathCandidate {
    /// Index; `None` for the table itself.
    pub index: Option<Arc<Index>>,
    /// Store table.
    pub store_table: TableId,
    /// Row layout of the store table.
    pub layout: Arc<RowLayout>,
    /// Conditions on the leading key columns.
    pub conditions: Vec<KeyCondition>,
    /// See [`AccessPath::branches`](crate::plan::scan::AccessPath::branches).
    pub branches: Vec<Vec<KeyCondition>>,
    /// See [`AccessPath::inverted`](crate::plan::scan::AccessPath::inverted).
    pub inverted: Option<InvertedCondition>,
    /// See [`AccessPath::base_conditions`](crate::plan::scan::AccessPath::base_conditions).
    pub base_conditions: Vec<KeyCondition>,
    /// Number of keys or ranges.
    pub shape: PathShape,
    /// Conjuncts that restrict the rows that are read, by position.
    pub answered: Vec<usize>,
    /// Conjuncts left to the filter, by position.
    pub rest: Vec<usize>,
    /// True if rows must be fetched from the base table.
    pub lookup: bool,
    /// Match with the required order.
    pub order: Option<PathOrder>,
    /// Leading columns of which one row for each combination of values suffices.
    pub distinct: Option<PathGroups>,
}

/// Leading key columns whose combinations of values include the required groups.
#[derive(Debug)]
pub(in crate::planner) struct PathGroups {
    /// Expressions of the columns over table columns.
    pub keys: Vec<Expr>,
    /// See [`DistinctPrefix::conditions`](crate::plan::scan::DistinctPrefix::conditions).
    pub conditions: Vec<KeyCondition>,
}

/// Required order that a path provides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::planner) struct PathOrder {
    /// In descending key order.
    pub reverse: bool,
    /// See [`AccessPath::merged`](crate::plan::scan::AccessPath::merged).
    pub merged: usize,
}

/// Requirements of a scan, over table columns.
#[derive(Clone, Copy)]
pub(in crate::planner) struct ScanRequirements<'a> {
    /// The scan.
    pub scan: &'a TableScan,
    /// Conjuncts of the filter.
    pub conjuncts: &'a [Expr],
    /// Required order of the parent node, over table columns.
    pub order: &'a [SortKey],
    /// Number of first rows that will be read, with required groups the number of groups.
    pub goal: Option<f64>,
    /// Groups of which the first rows suffice.
    pub groups: Option<&'a RequiredGroups>,
    /// Upper limit of the selectivity of a range with a bound that is only known at execution.
    pub open_range: f64,
    /// An index may be used for time travel: the scan or join has an alternative for a time before
    /// the history of the index.
    pub may_time_travel_by_index: bool,
    /// Inverted indexes may be used.
    pub may_use_inverted: bool,
}

impl<'a> ScanRequirements<'a> {
    /// Requires all rows in any order.
    pub(in crate::planner) fn of_all(
        scan: &'a TableScan,
        conjuncts: &'a [Expr],
    ) -> ScanRequirements<'a> {
        ScanRequirements::of_first(scan, conjuncts, (&[], None))
    }

    /// Requires rows in an order, and only the first `goal` of them, if it is given.
    pub(in crate::planner) fn of_first(
        scan: &'a TableScan,
        conjuncts: &'a [Expr],
        (order, goal): (&'a [SortKey], Option<f64>),
    ) -> ScanRequirements<'a> {
        let may_time_travel_by_index = false;
        ScanRequirements {
            scan,
            conjuncts,
            order,
            goal,
            groups: None,
            open_range: OPEN_RANGE,
            may_time_travel_by_index,
            may_use_inverted: true,
        }
    }

    /// Requires all rows of one of many look-ups; the join has an alternative for a time before
    /// the history of the index.
    pub(in crate::planner) fn of_lookup(
        scan: &'a TableScan,
        conjuncts: &'a [Expr],
    ) -> ScanRequirements<'a> {
        ScanRequirements {
            open_range: 1.0,
            may_time_travel_by_index: true,
            may_use_inverted: false,
            ..ScanRequirements::of_all(scan, conjuncts)
        }
    }
}

/// Returns whether a condition can be checked by an index entry.
pub(in crate::planner) fn is_checked_by_entry(index: &Index, conjunct: &Expr) -> bool {
    let covered: Columns = index.spec.covered_columns().iter().map(|(base, _)| *base).collect();
    columns_of(conjunct).is_subset(&covered) || is_of_all_entries(index, conjunct)
}

pub(super) fn is_open_range(conjunct: &Expr) -> bool {
    let Some((left, op, right)) = conjunct.as_comparison() else { return false };
    let is_range = !matches!(op, CompareOp::Eq | CompareOp::Ne);
    is_range && parameter_count(left).max(parameter_count(right)) > 0
}

/// Returns whether a conjunct is true for all rows that have entries in an index.
pub(super) fn is_of_all_entries(index: &Index, conjunct: &Expr) -> bool {
    index.spec.predicate.iter().any(|predicate| conjunct.follows_from(&[predicate]))
}

impl PathCandidate {
    /// Returns the cost of the scan.
    pub(in crate::planner) fn cost(
        &self,
        question: &ScanRequirements<'_>,
        estimator: Estimator<'_>,
    ) -> f64 {
        let scan = question.scan;
        // Conditions over all columns of a table refer to pseudo-columns by these numbers.
        let width = scan.table.columns.len();
        let columns = (0..width).chain([TIMESTAMP_COLUMN, OPERATION_COLUMN]).collect();
        let table = Logical::Scan(TableScan { columns, ..scan.clone() });
        let place = |column: usize| match column {
            OPERATION_COLUMN => width + 1,
            column => column.min(width),
        };
        let part_of = |conjuncts: &mut dyn Iterator<Item = usize>| {
            let conjuncts = conjuncts.map(|c| question.conjuncts[c].clone());
            let conjuncts: Vec<Expr> = conjuncts.map(|one| renumber(one, &place)).collect();
            let part = estimator.selectivity_of_all(&conjuncts, &table);
            let open = conjuncts.iter().any(is_open_range);
            if open { part.min(question.open_range) } else { part }
        };
        let positions = 0..question.conjuncts.len();
        let answered = |position: &usize| self.answered.contains(position);
        let table_rows = estimator.table_rows(&scan.table);
        let part = part_of(&mut positions.clone().filter(answered));
        // The rows with rare terms are counted when the scan is opened.
        let is_rare = self.inverted.is_some() && part < RARE_PART;
        let rows_max = if is_rare { TERM_ROWS } else { f64::INFINITY };
        let rows = (table_rows * part).min(rows_max).max(1.0);
        // Indexes have row blocks.
        let columnar_part = match self.index {
            None => estimator.statistics.columnar_part(scan.table.id),
            Some(_) => 0.0,
        };
        let row = cost::scanned_row(columnar_part, needed(scan, question.conjuncts).len());
        let mut cost = match self.shape {
            PathShape::Points(count) => count as f64 * cost::GET,
            PathShape::Ranges(count) => count as f64 * cost::RANGE + rows * row,
            PathShape::Full => rows * row,
        };
        // The frequent terms of the keys are merged, too.
        let class = self.index.as_ref().and_then(|index| index.spec.inverted);
        cost += if class == Some(InvertedClass::Jsonb) { cost::RANGE } else { 0.0 };
        if self.lookup {
            let in_entry =
                |position: &usize| answered(position) || self.is_covered(*position, question);
            let rows = table_rows * part_of(&mut positions.clone().filter(in_entry));
            cost += rows.min(rows_max).max(1.0) * cost::GET;
        }
        let wanted = (table_rows * part_of(&mut positions.clone())).max(1.0);
        let groups_of = |keys: &[Expr], part: f64| {
            let groups: f64 = keys.iter().map(|key| estimator.distinct(key, &table)).product();
            (groups * part).clamp(1.0, wanted)
        };
        if let Some(PathGroups { keys, conditions }) = &self.distinct {
            let leading = |position: &usize| {
                columns_of(&question.conjuncts[*position]).is_subset(&plain_columns(keys))
            };
            let groups = groups_of(keys, part_of(&mut positions.clone().filter(leading)));
            let buckets = f64::from(self.layout.salt_buckets.max(1));
            let seeks = if conditions.is_empty() { 1.0 } else { 2.0 };
            let fetch = if self.lookup { cost::GET } else { 0.0 };
            let cost = groups * buckets * (seeks * cost::RANGE + fetch);
            return cost * question.goal.map_or(1.0, |goal| (goal / groups).min(1.0));
        }
        // The rows of the groups before the last one that is read are read, too.
        let rows_of_group = |groups: &RequiredGroups| wanted / groups_of(&groups.keys, 1.0);
        let goal = question.goal.map(|goal| goal * question.groups.map_or(1.0, rows_of_group));
        let sorted = question.order.is_empty() || self.order.is_some();
        // All merged ranges are opened for the first row.
        let opened = match (self.order, self.shape) {
            (Some(PathOrder { merged: 1.., .. }), PathShape::Ranges(count)) => count,
            _ => 1,
        };
        match goal {
            Some(goal) if sorted => cost * (goal / wanted).min(1.0) + opened as f64 * cost::RANGE,
            Some(_) => cost + wanted * cost::TOP,
            None if sorted => cost,
            None => cost + wanted * cost::COMPARISON * wanted.log2(),
        }
    }

    /// Returns whether a condition can be checked by an index entry.
    pub(super) fn is_covered(&self, position: usize, question: &ScanRequirements<'_>) -> bool {
        let Some(index) = &self.index else { return true };
        let covered: Columns = index.spec.covered_columns().iter().map(|(base, _)| *base).collect();
        let mut columns = Columns::new();
        add_columns(&question.conjuncts[position], &mut columns);
        columns.is_subset(&covered)
    }

    /// Returns whether the candidate has the better rank, or the same one and leaves fewer
    /// conditions to the filter.
    pub(super) fn is_narrower(
        &self,
        other: &PathCandidate,
        question: &ScanRequirements<'_>,
    ) -> bool {
        let rank = |one: &PathCandidate| (one.rank(question), std::cmp::Reverse(one.rest.len()));
        rank(self) > rank(other)
    }

    /// Returns the rank of the candidate by rule; larger is better.
    pub(super) fn rank(&self, question: &ScanRequirements<'_>) -> [usize; 7] {
        let points = matches!(self.shape, PathShape::Points(_));
        let primary = self.index.is_none();
        let unique = self.index.as_ref().is_some_and(|index| index.spec.unique);
        let leading = |conditions: &Vec<KeyCondition>| {
            let fixed = conditions.iter().take_while(|c| c.point_count().is_some());
            let ranges = conditions.len() - fixed.clone().count();
            (fixed.filter(|condition| !condition.by_definition).count(), ranges)
        };
        let branches = self.branches.iter().map(leading).min();
        let (fixed, range) = match self.inverted {
            Some(_) => (1, 0),
            None => branches.unwrap_or_else(|| leading(&self.conditions)),
        };
        let hinted =
            !primary && question.scan.index_hint.as_ref().is_some_and(|names| !names.is_empty());
        let ordered = self.order.is_some() && !question.order.is_empty();
        let by_definition = self.conditions.iter().any(|condition| condition.by_definition);
        let class = if points && primary && !by_definition {
            3
        } else if hinted {
            2
        } else {
            usize::from(points && unique)
        };
        // With a goal, the required order saves reading and sorting all other rows.
        let goal_order = usize::from(ordered && question.goal.is_some());
        [
            class,
            fixed,
            range + goal_order,
            goal_order,
            usize::from(ordered),
            usize::from(!self.lookup),
            usize::from(primary),
        ]
    }
}

/// Returns the columns among expressions.
pub(super) fn plain_columns(expressions: &[Expr]) -> Columns {
    expressions.iter().filter_map(as_column).collect()
}

/// Returns the table columns that the scan returns or checks.
pub(in crate::planner) fn needed<'e>(
    scan: &TableScan,
    conjuncts: impl IntoIterator<Item = &'e Expr>,
) -> Columns {
    let mut columns: Columns = scan.columns.iter().copied().collect();
    conjuncts.into_iter().for_each(|conjunct| add_columns(conjunct, &mut columns));
    debug_assert!(
        columns
            .iter()
            .all(|&c| { pseudo_column_type(c).is_some() || c < scan.table.layout.columns.len() })
    );
    columns
}
