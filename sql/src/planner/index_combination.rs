//! Rule: index combination: entries of several keys or indexes of one table are united for OR and
//! intersected for AND.
//!
//! ```text
//! WHERE a = 1 OR b = 2        Lookup join: by primary key, filter: a = 1 OR b = 2
//!                             ├─ Distinct
//!                             │  └─ Append
//!                             │     ├─ Scan: index on a, key: a = 1        primary keys only
//!                             │     └─ Scan: index on b, key: b = 2
//!                             └─ Scan: table, point get
//! ```
//!
//! Each input reads the primary keys of one alternative from one index, with all conditions that
//! its entries can check. The rows are fetched once for all of them and re-checked, unless only
//! key columns are needed and all conditions are checked. The rule applies if the cost is lower
//! than that of the best single path. Without statistics it applies to alternatives that each fix
//! a key column, where otherwise the whole table would be read.
//!
//! Source: PostgreSQL's BitmapOr and BitmapAnd; a set of primary keys replaces the bitmap.

use std::cell::Cell;
use std::sync::Arc;

use types::DataType;
use types::expr::Expr;

use crate::catalog::table::Index;
use crate::logical::{
    ApplyKind, Join, JoinDecision, JoinKind, Logical, SetKind, SetOperation, TableScan,
};
use crate::plan::scan::PathShape;
use crate::planner::access_paths::{ScanRequirements, choose, is_checked_by_entry, of_index};
use crate::planner::conjunct::{Columns, add_columns, all, boolean, column, renumber, split};
use crate::planner::cost;
use crate::planner::equivalence::equal;
use crate::planner::estimate::Estimator;
use crate::planner::first_rows::FirstRows;
use crate::planner::lookup::{FilteredTable, filtered_table};
use crate::planner::plan_properties::width_of;
use crate::planner::statistics::Statistics;

/// Maximum number of alternatives that are each read by an index.
const ALTERNATIVES_MAX: usize = 64;

/// Applies the rule to all tables of a plan. `next_parameter`: see
/// [`push_down`](super::push_down::push_down).
/// [`push_down`](super::push_down::push_down).
pub(super) fn combine(
    plan: &mut Logical,
    statistics: &dyn Statistics,
    next_parameter: &Cell<usize>,
) {
    let estimator = Estimator { statistics };
    IndexCombination { estimator, next_parameter }.apply(plan, None);
}

struct IndexCombination<'a> {
    estimator: Estimator<'a>,
    next_parameter: &'a Cell<usize>,
}

/// Primary keys of the rows that satisfy some conditions, from one index.
struct KeyEntries<'a> {
    index: Option<&'a Arc<Index>>,
    /// Conditions that its entries check, over the table's columns.
    conjuncts: Vec<Expr>,
    /// Estimated number of keys.
    rows: f64,
    cost: f64,
    /// True if a key column is fixed to values.
    is_fixed: bool,
    /// True if no condition remains to be checked.
    is_exact: bool,
}

/// Combined primary keys.
struct CombinedKeys {
    plan: Logical,
    /// True if all of these rows qualify.
    is_exact: bool,
}

impl IndexCombination<'_> {
    /// Applies the rule to a plan. `first`: the first rows that the parent node reads, if not
    /// all.
    fn apply(&self, plan: &mut Logical, first: Option<FirstRows>) {
        if let Some(combined) = self.combined(plan, first.as_ref()) {
            *plan = combined;
            return;
        }
        match plan {
            Logical::Limit { input, limit, offset, ties } => {
                self.apply(input, FirstRows::of_limit(limit, offset, ties));
            }
            Logical::Sort { input, keys } => {
                self.apply(input, first.and_then(|first| first.sorted(keys)));
            }
            Logical::Project { input, expressions } => {
                self.apply(input, first.map(|first| first.over(expressions)));
            }
            Logical::Filter { input, .. } => self.apply(input, first),
            Logical::Join(join) => {
                let width = width_of(&join.left);
                let of_left = first.filter(|_| join.keeps_order());
                self.apply(&mut join.left, of_left.and_then(|first| first.within(0..width)));
                // A look-up already has an access path.
                if join.choice.lookup.is_none() {
                    self.apply(&mut join.right, None);
                }
            }
            Logical::Apply(apply) => {
                let width = width_of(&apply.input);
                self.apply(&mut apply.input, first.and_then(|first| first.within(0..width)));
                let one = matches!(apply.kind, ApplyKind::Exists).then(|| FirstRows::of(1.0));
                self.apply(&mut apply.subquery, one);
                if let Some(groups) = &mut apply.groups {
                    self.apply(&mut groups.plan, None);
                }
            }
            plan => plan.inputs_mut().into_iter().for_each(|input| self.apply(input, None)),
        }
    }

    /// Returns the replacement of a table with conditions, if it costs less.
    fn combined(&self, plan: &Logical, first: Option<&FirstRows>) -> Option<Logical> {
        let table = filtered_table(plan)?;
        let scan = table.scan;
        let is_plain =
            scan.lock.is_none() && scan.system_time.is_none() && scan.index_hint.is_none();
        let key_types = scan.table.key_columns().map(|key| scan.column_type(key));
        // Padded values may be equal with different bytes.
        let has_key = key_types.into_iter().all(|key| key != DataType::Char && key.has_equality());
        if table.conjuncts.is_empty() || scan.table.indexes.is_empty() || !is_plain || !has_key {
            return None;
        }
        let most = self.cost_of_one_path(plan, &table, first);
        let rows = self.estimator.rows(plan);
        match &scan.statistics {
            Some(_) => {
                let united = self.union(&table, rows);
                let intersected = self.intersection(&table);
                let least = [united, intersected].into_iter().flatten();
                let (cost, keys) = least.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
                (cost < most).then(|| self.fetched(&table, keys, rows))
            }
            None => {
                let question = ScanRequirements::of_all(scan, &table.conjuncts);
                let has_path = choose(&question).shape != PathShape::Full;
                if has_path || first.is_some_and(|first| !first.order.is_empty()) {
                    return None;
                }
                let (_, keys) = self.union(&table, rows)?;
                Some(self.fetched(&table, keys, rows))
            }
        }
    }

    /// Returns the cost of the best single path, as far as it is read.
    fn cost_of_one_path(
        &self,
        plan: &Logical,
        table: &FilteredTable<'_>,
        first: Option<&FirstRows>,
    ) -> f64 {
        let whole = table.scan_cost(self.estimator);
        match first {
            None => whole,
            Some(first) => first.cost(plan, self.estimator).unwrap_or(f64::INFINITY).min(whole),
        }
    }

    /// Returns the united keys of the alternatives of a condition, each from one index, at the
    /// lowest cost.
    fn union(&self, table: &FilteredTable<'_>, rows: f64) -> Option<(f64, CombinedKeys)> {
        let alternatives = |(position, conjunct): (usize, &Expr)| match conjunct {
            Expr::Or(operands) if operands.len() <= ALTERNATIVES_MAX => {
                let entries = operands.iter().map(|operand| {
                    let mut conjuncts = Vec::new();
                    split(operand.clone(), &mut conjuncts);
                    let others = table.conjuncts.iter().enumerate();
                    let others = others.filter(|(other, _)| *other != position);
                    conjuncts.extend(others.map(|(_, conjunct)| conjunct.clone()));
                    self.best_entries(table.scan, &conjuncts)
                });
                let entries: Vec<KeyEntries<'_>> = entries.collect::<Option<_>>()?;
                let named: f64 = entries.iter().map(|entries| entries.rows).sum();
                let read: f64 = entries.iter().map(|entries| entries.cost).sum();
                let is_exact = entries.iter().all(|entries| entries.is_exact);
                let fetch = match is_exact && yields_key(table.scan) {
                    true => 0.0,
                    false => cost::lookup_join(named.max(rows), cost::GET, rows),
                };
                Some((read + cost::BUILD * named + fetch, entries))
            }
            _ => None,
        };
        let all = table.conjuncts.iter().enumerate().filter_map(alternatives);
        let (cost, entries) = all.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
        let is_exact = entries.iter().all(|entries| entries.is_exact);
        let inputs = entries.iter().map(|entries| keys_of(table.scan, entries)).collect();
        let input = Box::new(Logical::Append { inputs });
        let plan = Logical::Distinct { input, on: Vec::new() };
        Some((cost, CombinedKeys { plan, is_exact }))
    }

    /// Returns the intersected keys of two indexes, at the lowest cost.
    fn intersection(&self, table: &FilteredTable<'_>) -> Option<(f64, CombinedKeys)> {
        let scan = table.scan;
        let indexes = scan.table.indexes.iter();
        let entries = indexes.filter_map(|index| {
            self.entries(scan, Some(index), &table.conjuncts).filter(|entries| entries.is_fixed)
        });
        let entries: Vec<KeyEntries<'_>> = entries.collect();
        let mut best: Option<(f64, &KeyEntries<'_>, &KeyEntries<'_>)> = None;
        for (position, a) in entries.iter().enumerate() {
            for b in &entries[position + 1..] {
                let mut both = a.conjuncts.clone();
                both.extend(b.conjuncts.iter().filter(|one| !a.conjuncts.contains(one)).cloned());
                if both.len() == a.conjuncts.len() || both.len() == b.conjuncts.len() {
                    continue;
                }
                let rows = self.rows_of(scan, &both);
                let pairs = cost::hash_join(a.rows.max(b.rows), a.rows.min(b.rows), rows);
                let cost = a.cost + b.cost + pairs + cost::lookup_join(rows, cost::GET, rows);
                if best.is_none_or(|(least, ..)| cost < least) {
                    best = Some((cost, a, b));
                }
            }
        }
        let (cost, a, b) = best?;
        let (left, right) = if a.rows < b.rows { (b, a) } else { (a, b) };
        let (left, right) = (Box::new(keys_of(scan, left)), Box::new(keys_of(scan, right)));
        let operation = SetOperation { kind: SetKind::Intersect, all: false, left, right };
        let plan = Logical::SetOperation(operation);
        Some((cost, CombinedKeys { plan, is_exact: false }))
    }

    /// Returns the cheapest source of the primary keys for these conditions.
    fn best_entries<'t>(&self, scan: &'t TableScan, conjuncts: &[Expr]) -> Option<KeyEntries<'t>> {
        let indexes = std::iter::once(None).chain(scan.table.indexes.iter().map(Some));
        let entries = indexes.filter_map(|index| self.entries(scan, index, conjuncts));
        let usable = entries.filter(|entries| scan.statistics.is_some() || entries.is_fixed);
        usable.min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    /// Returns the keys from an index for these conditions, if they restrict its scan.
    fn entries<'t>(
        &self,
        scan: &TableScan,
        index: Option<&'t Arc<Index>>,
        conjuncts: &[Expr],
    ) -> Option<KeyEntries<'t>> {
        let is_checked = |conjunct: &&Expr| match index {
            None => true,
            Some(index) => is_checked_by_entry(index, conjunct),
        };
        let is_exact = conjuncts.iter().all(|conjunct| is_checked(&conjunct));
        let conjuncts: Vec<Expr> = conjuncts.iter().filter(is_checked).cloned().collect();
        let keys = TableScan { columns: scan.table.key_columns().collect(), ..scan.clone() };
        let question = ScanRequirements::of_all(&keys, &conjuncts);
        // It may show another moment than the rows that are fetched afterwards.
        if index.is_some_and(|index| index.is_followed) {
            return None;
        }
        let candidate = of_index(index, &question)?;
        if candidate.shape == PathShape::Full || candidate.lookup {
            return None;
        }
        let leading = candidate.conditions.first();
        let is_fixed = leading.map(|first| first.point_count().is_some()).unwrap_or(true);
        let cost = candidate.cost(&question, self.estimator);
        let rows = self.rows_of(scan, &conjuncts);
        Some(KeyEntries { index, conjuncts, rows, cost, is_fixed, is_exact })
    }

    /// Estimates the number of table rows that satisfy conditions.
    fn rows_of(&self, scan: &TableScan, conjuncts: &[Expr]) -> f64 {
        let columns = (0..scan.table.layout.columns.len()).collect();
        let table = Logical::Scan(TableScan { columns, ..scan.clone() });
        self.estimator.rows(&table) * self.estimator.selectivity_of_all(conjuncts, &table)
    }

    /// Returns the rows with these keys, with all conditions checked.
    fn fetched(&self, table: &FilteredTable<'_>, keys: CombinedKeys, rows: f64) -> Logical {
        let scan = table.scan;
        let key: Vec<usize> = scan.table.key_columns().collect();
        if keys.is_exact && yields_key(scan) {
            let place = |of_table: &usize| key.iter().position(|key| key == of_table);
            let output = scan
                .columns
                .iter()
                .filter_map(|of_table| Some(column(place(of_table)?, scan.column_type(*of_table))));
            let expressions = output.collect();
            return Logical::Project { input: Box::new(keys.plan), expressions };
        }
        let read = with_columns(scan, &scan.columns, &table.conjuncts);
        let on = key.iter().enumerate().filter_map(|(position, &of_table)| {
            let data_type = scan.column_type(of_table);
            let right = key.len() + place(&read, of_table);
            equal(&column(position, &data_type), &column(right, data_type))
        });
        let on: Vec<Expr> = on.collect();
        let lookup = self.next_parameter.replace(self.next_parameter.get() + on.len());
        let output =
            scan.columns.iter().enumerate().map(|(position, &of_table)| {
                column(key.len() + position, scan.column_type(of_table))
            });
        let expressions = output.collect();
        let join = Join {
            kind: JoinKind::Inner,
            left: Box::new(keys.plan),
            right: Box::new(filtered(read, &table.conjuncts)),
            on: all(on).unwrap_or_else(|| boolean(true)),
            choice: JoinDecision {
                rows: Some(rows),
                left_rows_per_row: Some(1.0),
                lookup: Some(lookup),
                merge: false,
            },
        };
        Logical::Project { input: Box::new(Logical::Join(join)), expressions }
    }
}

/// Returns whether a scan only returns columns of the primary key.
fn yields_key(scan: &TableScan) -> bool {
    scan.columns.iter().all(|column| scan.table.key_columns().any(|key| key == *column))
}

/// Returns a plan of the primary keys in index entries.
fn keys_of(scan: &TableScan, entries: &KeyEntries<'_>) -> Logical {
    let key: Vec<usize> = scan.table.key_columns().collect();
    let hint = entries.index.iter().map(|index| index.name.clone()).collect();
    let read = with_columns(scan, &key, &entries.conjuncts);
    let read = TableScan { index_hint: Some(hint), ..read };
    let key = key.iter().enumerate();
    let expressions = key.map(|(at, &of_table)| column(at, scan.column_type(of_table))).collect();
    Logical::Project { input: Box::new(filtered(read, &entries.conjuncts)), expressions }
}

/// Returns the scan of these columns, followed by those that conditions use.
fn with_columns(scan: &TableScan, columns: &[usize], conjuncts: &[Expr]) -> TableScan {
    let mut used: Columns = scan.table.key_columns().collect();
    conjuncts.iter().for_each(|conjunct| add_columns(conjunct, &mut used));
    let others = used.into_iter().filter(|column| !columns.contains(column));
    let columns = columns.iter().copied().chain(others).collect();
    TableScan { columns, ..scan.clone() }
}

/// Returns the position of a table column in the output of a scan.
fn place(scan: &TableScan, column: usize) -> usize {
    let found = scan.columns.iter().position(|&other| other == column);
    found.expect("the columns of keys and conditions are read")
}

/// Returns a scan with a filter of conditions over table columns.
fn filtered(scan: TableScan, conjuncts: &[Expr]) -> Logical {
    let over_scan = |one: &Expr| renumber(one.clone(), &|column| place(&scan, column));
    let predicate = all(conjuncts.iter().map(over_scan).collect());
    let input = Box::new(Logical::Scan(scan));
    match predicate {
        None => *input,
        Some(predicate) => Logical::Filter { input, predicate },
    }
}
