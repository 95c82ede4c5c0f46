//! Access path selection: keys or ranges of the table or of an index for a scan.
//!
//! Candidates are the primary key and every active index. Each is matched against the conjuncts,
//! key column by key column: matching continues while a column is fixed to values, and ends with
//! the first range. If the table was analysed, the candidate with the lowest estimated cost is
//! chosen; a single get by the primary key is always chosen. Otherwise the best one by rule is
//! chosen, so that plans do not depend on guesses, by: whole primary key, whole key of a unique
//! index, more fixed columns, a range after them, the required order, no base-table fetch,
//! primary key before indexes.
//!
//! An inverted index is a candidate if a condition has terms ([`key_term::inverted`]). It counts as
//! one with a fixed column; all conditions are checked on the fetched rows.
//!
//! The alternatives of an OR are matched one by one, each with all other conjuncts, if each
//! restricts the key; `(a, b) IN ((1, 2), (3, 4))` is such an OR.

use std::sync::Arc;

use store::TableId;
use types::DataType;
use types::expr::{CompareOp, Expr};
use types::inverted::InvertedClass;
use types::rowcode::{ColumnPlace, KeyColumn, RowLayout};

use crate::catalog::table::{Index, IndexState, Table};
use crate::logical::{
    Logical, OPERATION_COLUMN, SortKey, TIMESTAMP_COLUMN, TableScan, pseudo_column_type,
};
use crate::plan::scan::{InvertedCondition, KeyCondition, KeyTerm, PathShape};
use crate::planner::conjunct::{
    Columns, add_columns, as_column, column, columns_of, is_free, parameter_count, renumber, split,
};
use crate::planner::cost;
use crate::planner::estimate::Estimator;
use crate::planner::key_term::computed_values::{self, DefinedValues};
use crate::planner::key_term::{self, generated};
use crate::planner::physical_properties::RequiredGroups;

/// Maximum number of keys or ranges, which multiply; beyond it the next column is left to the
/// filter.
const RANGES_MAX: usize = 4096;

/// Maximum number of ranges that are merged, as of salt buckets.
const MERGED_MAX: usize = 256;

/// Maximum number of conditions that are matched in order to split alternatives.
const BRANCH_CONDITIONS_MAX: usize = 1 << 16;

/// Maximum number of alternatives within an alternative that are multiplied with its conditions.
const INNER_ALTERNATIVES_MAX: usize = 4;

/// See [`ScanRequirements::open_range`]: an unnecessary index scan costs a bounded amount, the gain
/// is not bounded.
const OPEN_RANGE: f64 = 0.05;
/// Assumed number of rows with the terms of a rare condition, and what part of the rows is rare.
const TERM_ROWS: f64 = 10.0;
const RARE_PART: f64 = 0.05;

/// Candidate access path, and the conditions that it leaves to the filter.
#[derive(Debug)]
pub(super) struct PathCandidate {
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
pub(super) struct PathGroups {
    /// Expressions of the columns over table columns.
    pub keys: Vec<Expr>,
    /// See [`DistinctPrefix::conditions`](crate::plan::scan::DistinctPrefix::conditions).
    pub conditions: Vec<KeyCondition>,
}

/// Required order that a path provides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PathOrder {
    /// In descending key order.
    pub reverse: bool,
    /// See [`AccessPath::merged`](crate::plan::scan::AccessPath::merged).
    pub merged: usize,
}

/// Requirements of a scan, over table columns.
#[derive(Clone, Copy)]
pub(super) struct ScanRequirements<'a> {
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
    pub(super) fn of_all(scan: &'a TableScan, conjuncts: &'a [Expr]) -> ScanRequirements<'a> {
        ScanRequirements::of_first(scan, conjuncts, (&[], None))
    }

    /// Requires rows in an order, and only the first `goal` of them, if it is given.
    pub(super) fn of_first(
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
    pub(super) fn of_lookup(scan: &'a TableScan, conjuncts: &'a [Expr]) -> ScanRequirements<'a> {
        ScanRequirements {
            open_range: 1.0,
            may_time_travel_by_index: true,
            may_use_inverted: false,
            ..ScanRequirements::of_all(scan, conjuncts)
        }
    }
}

/// Returns the best candidate: by cost if the table was analysed, else by rule.
pub(super) fn choose(question: &ScanRequirements<'_>) -> PathCandidate {
    match &question.scan.statistics {
        Some(known) => cheapest(question, Estimator { statistics: known.as_ref() }),
        None => best_by_rule(question),
    }
}

/// Returns the candidate of an index, or of the primary key; `None` if the index lacks entries of
/// some rows, or must not be used.
pub(super) fn of_index(
    index: Option<&Arc<Index>>,
    question: &ScanRequirements<'_>,
) -> Option<PathCandidate> {
    match index {
        None => Some(primary(question)),
        Some(index) if is_usable(index, question) => of_usable(index, question),
        Some(_) => None,
    }
}

/// Returns whether a condition can be checked by an index entry.
pub(super) fn is_checked_by_entry(index: &Index, conjunct: &Expr) -> bool {
    let covered: Columns = index.spec.covered_columns().iter().map(|(base, _)| *base).collect();
    columns_of(conjunct).is_subset(&covered) || is_of_all_entries(index, conjunct)
}

fn cheapest(question: &ScanRequirements<'_>, estimator: Estimator<'_>) -> PathCandidate {
    let mut best = primary(question);
    // A single get is always the best.
    if matches!(best.shape, PathShape::Points(1)) {
        return best;
    }
    let mut least = best.cost(question, estimator);
    for index in &question.scan.table.indexes {
        if is_usable(index, question)
            && let Some(candidate) = of_usable(index, question)
        {
            let cost = candidate.cost(question, estimator);
            if cost < least {
                (best, least) = (candidate, cost);
            }
        }
    }
    best
}

fn best_by_rule(question: &ScanRequirements<'_>) -> PathCandidate {
    let mut best = primary(question);
    for index in &question.scan.table.indexes {
        if !is_usable(index, question) {
            continue;
        }
        let Some(candidate) = of_usable(index, question) else { continue };
        let hinted = question.scan.index_hint.is_some();
        let useful = hinted
            || candidate.shape != PathShape::Full
            || (candidate.order.is_some() && (question.goal.is_some() || !candidate.lookup));
        if useful && candidate.rank(question) > best.rank(question) {
            best = candidate;
        }
    }
    best
}

/// Returns whether a hint names the index.
fn is_hinted(index: Option<&Arc<Index>>, scan: &TableScan) -> bool {
    let hint = scan.index_hint.as_ref();
    index.is_some_and(|index| hint.is_some_and(|names| names.contains(&index.name)))
}

fn is_open_range(conjunct: &Expr) -> bool {
    let Some((left, op, right)) = conjunct.as_comparison() else { return false };
    let is_range = !matches!(op, CompareOp::Eq | CompareOp::Ne);
    is_range && parameter_count(left).max(parameter_count(right)) > 0
}

fn is_usable(index: &Index, question: &ScanRequirements<'_>) -> bool {
    let scan = question.scan;
    let hinted = scan.index_hint.as_ref().is_none_or(|names| names.contains(&index.name));
    hinted
        && index.state == IndexState::Active
        && (scan.system_time.is_none() || question.may_time_travel_by_index)
        && holds_all(index, question)
}

/// Returns whether an index has entries of all requested rows.
fn holds_all(index: &Index, question: &ScanRequirements<'_>) -> bool {
    if !rejects_expired(index, question) {
        return false;
    }
    let Some(predicate) = &index.spec.predicate else { return true };
    let known: Vec<&Expr> = question.conjuncts.iter().collect();
    predicate.follows_from(&known)
}

/// Returns whether the conjuncts reject rows whose cell of an index key has expired: such a row
/// has no entry, and its columns in the cell are NULL.
fn rejects_expired(index: &Index, question: &ScanRequirements<'_>) -> bool {
    let layout = &index.spec.base_layout;
    let inputs = index.spec.expiring_inputs();
    let cell = |column: usize| match layout.columns[column].place {
        ColumnPlace::Packed { cell, .. } => Some(cell),
        ColumnPlace::Key(_) => None,
    };
    inputs.iter().all(|&input| {
        let has_expired = |part: &Expr| match part {
            Expr::Column { index, .. } => cell(*index) == cell(input),
            _ => false,
        };
        question.conjuncts.iter().any(|conjunct| conjunct.rejects_nulls(&has_expired))
    })
}

/// Returns whether a conjunct is true for all rows that have entries in an index.
fn is_of_all_entries(index: &Index, conjunct: &Expr) -> bool {
    index.spec.predicate.iter().any(|predicate| conjunct.follows_from(&[predicate]))
}

impl PathCandidate {
    /// Returns the cost of the scan.
    pub(super) fn cost(&self, question: &ScanRequirements<'_>, estimator: Estimator<'_>) -> f64 {
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
    fn is_covered(&self, position: usize, question: &ScanRequirements<'_>) -> bool {
        let Some(index) = &self.index else { return true };
        let covered: Columns = index.spec.covered_columns().iter().map(|(base, _)| *base).collect();
        let mut columns = Columns::new();
        add_columns(&question.conjuncts[position], &mut columns);
        columns.is_subset(&covered)
    }

    /// Returns whether the candidate has the better rank, or the same one and leaves fewer
    /// conditions to the filter.
    fn is_narrower(&self, other: &PathCandidate, question: &ScanRequirements<'_>) -> bool {
        let rank = |one: &PathCandidate| (one.rank(question), std::cmp::Reverse(one.rest.len()));
        rank(self) > rank(other)
    }

    /// Returns the rank of the candidate by rule; larger is better.
    fn rank(&self, question: &ScanRequirements<'_>) -> [usize; 7] {
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

/// Key column of a candidate.
struct KeyPart {
    /// Its expression over table columns.
    value: Expr,
    key: KeyColumn,
    data_type: DataType,
    name: String,
    nullable: bool,
    /// The expression of a generated column that is not NULL, over table columns.
    generated: Option<Expr>,
    /// The expression by which its values are computed: that of a generated column or of an index;
    /// else the column itself.
    definition: Expr,
}

impl KeyPart {
    /// Returns the conjunction of terms on the column.
    fn condition(&self, terms: Vec<KeyTerm>) -> KeyCondition {
        KeyCondition {
            terms,
            data_type: self.data_type.clone(),
            key: self.key,
            name: self.name.clone(),
            by_definition: false,
        }
    }
}

/// Returns the expression by which the values of a key part are computed.
fn definition(table: &Table, value: &Expr) -> Expr {
    let generated = as_column(value).and_then(|column| table.columns[column].generated.as_ref());
    generated.unwrap_or(value).clone()
}

/// Returns the expression of a generated column that is not NULL.
fn generated_expression(table: &Table, column: usize) -> Option<Expr> {
    let generated = table.columns[column].generated.as_ref();
    generated.filter(|_| table.is_never_null(column)).cloned()
}

/// Returns the part of a key that is a column of the table.
fn of_table_column(table: &Table, position: usize, key: KeyColumn) -> KeyPart {
    let data_type = &table.layout.columns[position].data_type;
    let value = column(position, data_type);
    KeyPart {
        definition: definition(table, &value),
        value,
        key,
        data_type: data_type.clone(),
        name: table.columns[position].name.clone(),
        nullable: !table.is_never_null(position),
        generated: generated_expression(table, position),
    }
}

fn primary(question: &ScanRequirements<'_>) -> PathCandidate {
    let table = &question.scan.table;
    let parts: Vec<KeyPart> =
        table.layout.key.iter().map(|&key| of_table_column(table, key.column, key)).collect();
    candidate(question, &parts, None, table.id, Arc::clone(&table.layout))
}

fn secondary(index: &Arc<Index>, question: &ScanRequirements<'_>) -> PathCandidate {
    let spec = &index.spec;
    let table = &question.scan.table;
    let primary_key: Vec<usize> = table.key_columns().collect();
    let parts: Vec<KeyPart> = spec
        .layout
        .key
        .iter()
        .map(|&key| {
            let data_type = &spec.layout.columns[key.column].data_type;
            match spec.keys.get(key.column) {
                Some(value) => KeyPart {
                    definition: definition(table, value),
                    value: value.clone(),
                    key,
                    data_type: data_type.clone(),
                    name: spec.key_names.get(key.column).cloned().unwrap_or_default(),
                    nullable: match value {
                        Expr::Column { index, .. } => !table.is_never_null(*index),
                        _ => true,
                    },
                    generated: as_column(value)
                        .and_then(|column| generated_expression(table, column)),
                },
                None => of_table_column(table, primary_key[key.column - spec.keys.len()], key),
            }
        })
        .collect();
    let mut candidate =
        candidate(question, &parts, Some(index), spec.store_table, Arc::clone(&spec.layout));
    candidate.rest.retain(|&position| !is_of_all_entries(index, &question.conjuncts[position]));
    candidate.answered = without(question.conjuncts.len(), &candidate.rest);
    candidate
}

/// Returns the candidate of an index that may be used; `None` if it is inverted and no condition
/// has terms.
fn of_usable(index: &Arc<Index>, question: &ScanRequirements<'_>) -> Option<PathCandidate> {
    match index.spec.inverted {
        None => Some(secondary(index, question)),
        Some(class) => inverted(index, class, question),
    }
}

/// Returns the candidate of an inverted index. Its entries only show which rows to check.
fn inverted(
    index: &Arc<Index>,
    class: InvertedClass,
    question: &ScanRequirements<'_>,
) -> Option<PathCandidate> {
    let spec = &index.spec;
    let key = spec.keys.first()?;
    let (mut conditions, mut answered) = (Vec::new(), Vec::new());
    for (position, conjunct) in question.conjuncts.iter().enumerate() {
        if let Some(condition) = key_term::inverted::of_conjunct(conjunct, key, class) {
            conditions.push(condition);
            answered.push(position);
        } else if is_of_all_entries(index, conjunct) {
            answered.push(position);
        }
    }
    (!conditions.is_empty() && question.may_use_inverted).then(|| PathCandidate {
        index: Some(Arc::clone(index)),
        store_table: spec.store_table,
        layout: Arc::clone(&spec.layout),
        conditions: Vec::new(),
        branches: Vec::new(),
        inverted: Some(InvertedCondition::All(conditions)),
        shape: PathShape::Ranges(1),
        answered,
        rest: (0..question.conjuncts.len()).collect(),
        lookup: true,
        order: None,
        distinct: None,
    })
}

/// Returns the positions of `count` conjuncts that are not among some.
fn without(count: usize, positions: &[usize]) -> Vec<usize> {
    (0..count).filter(|position| !positions.contains(position)).collect()
}

fn candidate(
    question: &ScanRequirements<'_>,
    parts: &[KeyPart],
    index: Option<&Arc<Index>>,
    store_table: TableId,
    layout: Arc<RowLayout>,
) -> PathCandidate {
    let conjuncts: Vec<&Expr> = question.conjuncts.iter().collect();
    let known = known_of_rows(question);
    let known: Vec<&Expr> = known.iter().collect();
    let mut found = leading(parts, (&conjuncts, &known), index.is_some());
    let order = match order_of(parts, &found.conditions, question.order) {
        None => merged_order(parts, &mut found, question),
        order => order,
    };
    let mut order = order;
    let distinct = match question.scan.statistics.is_some() || is_hinted(index, question.scan) {
        true => path_groups(parts, &mut found, &mut order, question),
        false => None,
    };
    let LeadingConditions { conditions, count, done, whole, .. } = found;
    let shape = match (conditions.is_empty(), whole) {
        (true, _) => PathShape::Full,
        (false, true) => PathShape::Points(count),
        (false, false) => PathShape::Ranges(count),
    };
    let plain = PathCandidate {
        index: index.cloned(),
        store_table,
        layout,
        inverted: None,
        shape,
        answered: (0..done.len()).filter(|&position| done[position]).collect(),
        rest: (0..done.len()).filter(|&position| !done[position]).collect(),
        lookup: index.is_some_and(|index| needs_lookup(index, question)),
        order,
        distinct,
        conditions,
        branches: Vec::new(),
    };
    let mut best: Option<PathCandidate> = None;
    for (position, conjunct) in conjuncts.iter().enumerate() {
        if let Expr::Or(operands) = conjunct
            && let Some(branched) = branched(&plain, question, parts, (position, operands))
            && branched.is_narrower(best.as_ref().unwrap_or(&plain), question)
        {
            best = Some(branched);
        }
    }
    best.unwrap_or(plain)
}

/// Conditions on the leading columns of a key.
struct LeadingConditions {
    conditions: Vec<KeyCondition>,
    /// Number of keys or ranges.
    count: usize,
    /// Flags of the conjuncts that the conditions imply.
    done: Vec<bool>,
    /// True if all key columns are fixed.
    whole: bool,
    /// Conditions on the columns after these by their definition, which only a merge needs, and the
    /// number of ranges with them.
    surplus: (Vec<KeyCondition>, usize),
}

fn leading(
    parts: &[KeyPart],
    (conjuncts, known): (&[&Expr], &[&Expr]),
    of_index: bool,
) -> LeadingConditions {
    let mut conditions: Vec<KeyCondition> = Vec::new();
    let mut done = vec![false; conjuncts.len()];
    let mut counts = vec![1];
    for part in parts {
        let has_array = conditions.iter().any(KeyCondition::has_array);
        let conjuncts = Conjuncts { all: conjuncts, known, has_array };
        let mut count = counts.last().copied().unwrap_or(1);
        let Some(condition) = condition(part, &conjuncts, &mut count, &mut done) else {
            break;
        };
        let fixed = condition.point_count().is_some();
        conditions.push(condition);
        counts.push(count);
        if !fixed {
            break;
        }
    }
    let is_stated = |condition: &KeyCondition| !condition.by_definition;
    let used = conditions.iter().rposition(is_stated).map_or(0, |last| last + 1);
    let surplus = (conditions.split_off(used), counts.last().copied().unwrap_or(1));
    let count = counts[used];
    // An index entry with a NULL has a longer key, so it needs a range.
    let whole = conditions.len() == parts.len()
        && conditions.iter().all(|condition| {
            condition.point_count().is_some()
                && !(of_index && condition.terms.iter().any(|term| term.allows_null()))
        });
    LeadingConditions { conditions, count, done, whole, surplus }
}

/// Returns the conditions that each row satisfies. A past row need not satisfy a constraint of the
/// present.
fn known_of_rows(question: &ScanRequirements<'_>) -> Vec<Expr> {
    let mut conjuncts = Vec::new();
    if question.scan.system_time.is_none() {
        let checks = question.scan.table.constraints.checks.iter().filter(|check| check.valid);
        checks.for_each(|check| split(check.predicate.clone(), &mut conjuncts));
    }
    conjuncts
}

/// Returns the required order of the first rows by a merge of the ranges with different values of
/// leading columns, and adds the conditions that it needs.
fn merged_order(
    parts: &[KeyPart],
    found: &mut LeadingConditions,
    question: &ScanRequirements<'_>,
) -> Option<PathOrder> {
    question.goal?;
    let (surplus, count) = &found.surplus;
    let all: Vec<&KeyCondition> = found.conditions.iter().chain(surplus).collect();
    let is_list =
        |condition: &&&KeyCondition| condition.point_count().is_some() && !condition.has_array();
    let lists = all.iter().take_while(is_list).count();
    let stated = found.conditions.len();
    for merged in 1..=lists {
        let product = all[..merged].iter().filter_map(|one| one.point_count()).product::<usize>();
        let conditions: Vec<KeyCondition> =
            all[..merged.max(stated)].iter().map(|&one| one.clone()).collect();
        if product > MERGED_MAX || found.whole {
            break;
        }
        let Some(order) = order_after(parts, merged, &conditions, question.order) else { continue };
        if conditions.len() > stated {
            found.count = *count;
        }
        found.conditions = conditions;
        return Some(order);
    }
    None
}

/// Matches the alternatives of a disjunction one by one, each with all other conjuncts: `(a = 1
/// AND b = 2) OR (a = 3 AND b = 4)`, which `(a, b) IN ((1, 2), (3, 4))` is. `None`: one of them
/// does not restrict the key, or there are too many.
fn branched(
    plain: &PathCandidate,
    question: &ScanRequirements<'_>,
    parts: &[KeyPart],
    (position, operands): (usize, &[Expr]),
) -> Option<PathCandidate> {
    let others: Vec<usize> = (0..question.conjuncts.len()).filter(|&p| p != position).collect();
    let alternatives = alternatives(operands);
    let many = alternatives.len().saturating_mul(others.len() + 1) > BRANCH_CONDITIONS_MAX;
    if many || alternatives.iter().all(|own| own.len() == 1) {
        return None;
    }
    let mut branches = Vec::with_capacity(alternatives.len());
    let (mut count, mut whole, mut exact) = (0_usize, true, true);
    let mut answered = vec![true; others.len()];
    for own in alternatives {
        let shared = others.iter().map(|&other| &question.conjuncts[other]);
        let all: Vec<&Expr> = own.iter().copied().chain(shared).collect();
        let found = leading(parts, (&all, &[]), plain.index.is_some());
        count = count.saturating_add(found.count);
        if found.conditions.is_empty() || count > RANGES_MAX {
            return None;
        }
        whole &= found.whole;
        exact &= found.done[..own.len()].iter().all(|&done| done);
        answered.iter_mut().zip(&found.done[own.len()..]).for_each(|(all, &one)| *all &= one);
        branches.push(found.conditions);
    }
    let others = others.into_iter().zip(answered).filter(|(_, answered)| !answered);
    let mut rest: Vec<usize> = others.map(|(other, _)| other).collect();
    if !exact {
        rest.push(position);
        rest.sort_unstable();
    }
    Some(PathCandidate {
        index: plain.index.clone(),
        store_table: plain.store_table,
        layout: Arc::clone(&plain.layout),
        conditions: Vec::new(),
        inverted: None,
        answered: without(question.conjuncts.len(), &rest),
        shape: if whole { PathShape::Points(count) } else { PathShape::Ranges(count) },
        rest,
        lookup: plain.lookup,
        order: order_of(parts, &branches[0][..shared_conditions(&branches)], question.order),
        distinct: None,
        branches,
    })
}

/// Returns the leading columns that include the keys of the required groups, if their first rows
/// are those of the groups: all conditions are on these columns, or on those behind them by their
/// values. Sets the order in which the rows are first.
fn path_groups(
    parts: &[KeyPart],
    found: &mut LeadingConditions,
    order: &mut Option<PathOrder>,
    question: &ScanRequirements<'_>,
) -> Option<PathGroups> {
    let groups = question.groups.filter(|_| !found.whole)?;
    let place = |key: &Expr| parts.iter().position(|part| part.value == *key);
    let places: Vec<usize> =
        groups.keys.iter().filter(|key| !is_free(key)).map(place).collect::<Option<_>>()?;
    let columns = places.into_iter().max()? + 1;
    let keys: Vec<Expr> = parts[..columns].iter().map(|part| part.value.clone()).collect();
    let mut done = found.done.clone();
    let mut conditions = Vec::new();
    if found.conditions.len() <= columns {
        let conjuncts: Vec<&Expr> = question.conjuncts.iter().collect();
        let conjuncts = Conjuncts { all: &conjuncts, known: &[], has_array: false };
        let mut count = 1;
        for part in &parts[columns..] {
            let condition = condition(part, &conjuncts, &mut count, &mut done);
            let Some(condition) = condition.filter(|condition| !condition.by_definition) else {
                break;
            };
            let is_fixed = condition.point_count().is_some();
            conditions.push(condition);
            if !is_fixed {
                break;
            }
        }
    }
    let of_prefix = plain_columns(&keys);
    let is_checked =
        |(conjunct, done): (&Expr, &bool)| *done || columns_of(conjunct).is_subset(&of_prefix);
    if !question.conjuncts.iter().zip(&done).all(is_checked) {
        return None;
    }
    let first = match question.order.is_empty() {
        false => order.filter(|order| order.merged == 0)?,
        true => {
            let is_behind = |key: &&SortKey| !keys.contains(&key.expression);
            let within: Vec<SortKey> = groups.order.iter().filter(is_behind).cloned().collect();
            let mut all = found.conditions.clone();
            if all.len() <= columns {
                // The columns between have no single value.
                let free = |part: &KeyPart| part.condition(Vec::new());
                all.extend(parts[all.len()..columns].iter().map(free));
                all.extend(conditions.iter().cloned());
            }
            PathOrder { merged: 0, ..order_after(parts, columns, &all, &within)? }
        }
    };
    found.done = done;
    *order = Some(first);
    Some(PathGroups { keys, conditions })
}

/// Returns the columns among expressions.
fn plain_columns(expressions: &[Expr]) -> Columns {
    expressions.iter().filter_map(as_column).collect()
}

/// Returns the number of leading columns that all branches fix to the same value.
fn shared_conditions(branches: &[Vec<KeyCondition>]) -> usize {
    let Some((first, others)) = branches.split_first() else { return 0 };
    let is_shared = |(at, condition): &(usize, &KeyCondition)| {
        let is_equal = |other: &Vec<KeyCondition>| {
            other.get(*at).is_some_and(|other| other.terms == condition.terms)
        };
        condition.is_single_point() && others.iter().all(is_equal)
    };
    first.iter().enumerate().take_while(is_shared).count()
}

/// Returns the alternatives of a disjunction, each as its conditions. `(a, b, c) > (1, 2, 3)` has
/// alternatives within an alternative, which are multiplied with its other conditions.
fn alternatives(operands: &[Expr]) -> Vec<Vec<&Expr>> {
    let mut all = Vec::with_capacity(operands.len());
    for operand in operands {
        let Expr::And(list) = operand else {
            all.push(vec![operand]);
            continue;
        };
        let inner = list.iter().find_map(|one| match one {
            Expr::Or(inner) if inner.len() <= INNER_ALTERNATIVES_MAX => Some((one, inner)),
            _ => None,
        });
        let Some((divided, inner)) = inner else {
            all.push(list.iter().collect());
            continue;
        };
        let others = || list.iter().filter(|one| !std::ptr::eq(*one, divided));
        all.extend(alternatives(inner).into_iter().map(|own| others().chain(own).collect()));
    }
    all
}

struct Conjuncts<'a> {
    all: &'a [&'a Expr],
    /// Conditions that each row satisfies.
    known: &'a [&'a Expr],
    /// True if a column before this one has the values of an array. It may be long, so that a
    /// second array is not multiplied with it.
    has_array: bool,
}

/// Collects the terms on a key column from the conjuncts. Marks the conjuncts that they imply.
fn condition(
    part: &KeyPart,
    conjuncts: &Conjuncts<'_>,
    count: &mut usize,
    done: &mut [bool],
) -> Option<KeyCondition> {
    let mut terms = Vec::new();
    let mut exact = Vec::new();
    for (position, conjunct) in conjuncts.all.iter().enumerate() {
        if let Some(matched) = key_term::of_conjunct(conjunct, &part.value)
            && !(conjuncts.has_array && matched.term.has_array())
        {
            terms.push(matched.term);
            if matched.exact {
                exact.push(position);
            }
        }
    }
    if let Some(expression) = part.generated.as_ref().filter(|_| terms.is_empty()) {
        terms = generated::implied(expression, conjuncts.all);
    }
    let mut by_definition = false;
    if terms.is_empty()
        && let Some(DefinedValues { term, is_restricted }) =
            computed_values::of_definition(&part.definition, conjuncts.all, conjuncts.known)
    {
        by_definition = !is_restricted;
        terms.push(match part.nullable {
            true => KeyTerm::Any(vec![term, KeyTerm::IsNull]),
            false => term,
        });
    }
    let condition = KeyCondition { by_definition, ..part.condition(terms) };
    let only_not_null =
        condition.terms.iter().all(|term| matches!(term, KeyTerm::IsNotNull) && !part.nullable);
    if only_not_null {
        // The condition is implied by NOT NULL and needs no check.
        exact.into_iter().for_each(|position| done[position] = true);
        return None;
    }
    let product = count.saturating_mul(condition.range_count());
    if product > RANGES_MAX {
        return None;
    }
    *count = product;
    exact.into_iter().for_each(|position| done[position] = true);
    Some(condition)
}

fn needs_lookup(index: &Index, question: &ScanRequirements<'_>) -> bool {
    if question.scan.lock.is_some() {
        return true;
    }
    let covered: Columns = index.spec.covered_columns().iter().map(|(base, _)| *base).collect();
    let checked = question.conjuncts.iter().filter(|one| !is_of_all_entries(index, one));
    needed(question.scan, checked).iter().any(|column| !covered.contains(column))
}

/// Returns the table columns that the scan returns or checks.
pub(super) fn needed<'e>(
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

/// Returns how the key order, or its reverse, is the required order.
fn order_of(
    parts: &[KeyPart],
    conditions: &[KeyCondition],
    order: &[SortKey],
) -> Option<PathOrder> {
    order_after(parts, 0, conditions, order)
}

/// As [`order_of`], with ranges that are merged over the first `merged` columns.
fn order_after(
    parts: &[KeyPart],
    merged: usize,
    conditions: &[KeyCondition],
    order: &[SortKey],
) -> Option<PathOrder> {
    let mut reverse = None;
    let is_whole_order = merged == 0 && parts.iter().all(|part| !part.nullable);
    let mut following: Option<bool> = None;
    let mut parts = parts.iter().enumerate().skip(merged);
    'keys: for key in order {
        for (position, part) in parts.by_ref() {
            let fixed = conditions.get(position).is_some_and(KeyCondition::is_single_point);
            if part.value != key.expression {
                // A column with a single value does not affect the order.
                if fixed {
                    continue;
                }
                // Nor does one that never decreases with the next column.
                let source = part.generated.as_ref().and_then(generated::ordering_source);
                if following.is_none() && source.as_ref() == Some(&key.expression) {
                    following = Some(part.key.descending);
                    continue;
                }
                return None;
            }
            if following.take().is_some_and(|descending| descending != part.key.descending) {
                return None;
            }
            if fixed {
                continue 'keys;
            }
            let nulls_agree = part.key.nulls_first == key.nulls_first;
            let same = part.key.descending == key.descending;
            if part.nullable && nulls_agree != same {
                return None;
            }
            if *reverse.get_or_insert(!same) == same {
                return None;
            }
            continue 'keys;
        }
        // After the whole key no two rows are equal, unless it contains a NULL, or rows of merged
        // ranges differ only in the columns before.
        let order = PathOrder { reverse: reverse.unwrap_or(false), merged };
        return (is_whole_order && following.is_none()).then_some(order);
    }
    Some(PathOrder { reverse: reverse.unwrap_or(false), merged })
}
