//! Row and distinct-value estimates of logical plans.
//!
//! Statistics of ANALYZE are used first ([`ColumnStatistics`]). Otherwise the selectivities are
//! PostgreSQL's defaults (`selfuncs.h`), so that plans resemble PostgreSQL's. Conditions count as
//! independent, except those that together fix a unique key.

use std::sync::Arc;

use types::expr::{CompareOp, Expr};
use types::{DataType, Datum};

use crate::catalog::statistics::{ColumnStatistics, key_form};
use crate::catalog::table::{Index, Table};
use crate::logical::{
    ApplyKind, Join, JoinDecision, JoinKind, LockRows, Logical, OPERATION_COLUMN, SetKind,
    TIMESTAMP_COLUMN, TableScan, pseudo_column_type,
};
use crate::plan::scan::ARRAY_VALUES;
use crate::planner::conjunct::{as_equal_to_any, as_operator, is_free};
use crate::planner::plan_properties::is_unit;
use crate::planner::sampled_selectivity;
use crate::planner::statistics::{Statistics, UNKNOWN_ROWS};

/// Default number of distinct values of a column.
const DISTINCT: f64 = 200.0;
/// Default selectivity of an inequality.
const INEQUALITY: f64 = 1.0 / 3.0;
/// Default selectivity of a range between two bounds.
const RANGE: f64 = 0.005;
/// Default selectivity of pattern matching: LIKE, ILIKE, regular expressions.
const MATCH: f64 = 0.005;
/// Default selectivity of `IS NULL`.
const IS_NULL: f64 = 0.005;
/// Minimum selectivity.
const LEAST: f64 = 1e-9;
/// Rounding error of sums of fractions.
const ROUNDING: f64 = 1e-6;
/// Selectivity of conditions that are not analysed.
const UNKNOWN: f64 = 1.0 / 3.0;
/// Selectivity of containment in arrays and documents: PostgreSQL's default for arrays.
const CONTAINED: f64 = 0.005;
/// Assumed number of iterations of a recursive query.
pub(super) const ROUNDS: f64 = 10.0;
/// Assumed rows of a table function, a system view or a named query.
const SYSTEM_ROWS: f64 = 1_000.0;
/// Assumed rows of a function that is called for each input row.
const ROWS_OF_CALL: f64 = 10.0;

/// Estimator that uses these statistics.
#[derive(Clone, Copy)]
pub(super) struct Estimator<'a> {
    pub statistics: &'a dyn Statistics,
}

impl Estimator<'_> {
    /// Estimates the number of rows of a plan; at least one, so that products remain meaningful.
    #[expect(clippy::too_many_lines, reason = "a flat match over the kinds of steps")]
    pub(super) fn rows(&self, plan: &Logical) -> f64 {
        let rows = match plan {
            Logical::Scan(scan) => self.table_rows(&scan.table),
            Logical::SystemRows(_) => SYSTEM_ROWS,
            Logical::Values { rows, .. } => rows.len() as f64,
            Logical::Constants(constants) => constants.rows.row_count as f64,
            Logical::Filter { input, predicate } => {
                self.rows(input) * self.selectivity(predicate, input)
            }
            Logical::Project { input, .. }
            | Logical::Barrier { input }
            | Logical::Sort { input, .. }
            | Logical::LockRows(LockRows { input, .. }) => self.rows(input),
            Logical::Join(Join { choice: JoinDecision { rows: Some(rows), .. }, .. }) => *rows,
            Logical::Join(join) => {
                let (left, right) = (self.rows(&join.left), self.rows(&join.right));
                let pairs = left * right * self.selectivity(&join.on, plan);
                match join.kind {
                    JoinKind::Inner => pairs,
                    JoinKind::Left => pairs.max(left),
                    JoinKind::Right => pairs.max(right),
                    JoinKind::Full => pairs.max(left + right),
                    JoinKind::Semi => left * (pairs / left).min(0.9),
                    JoinKind::Anti => left * (1.0 - pairs / left).max(0.1),
                }
            }
            Logical::Apply(apply) => match &apply.kind {
                ApplyKind::Rows { on, .. } => {
                    let pairs = self.rows(&apply.input) * self.rows(&apply.subquery);
                    pairs * self.selectivity(on, plan)
                }
                _ => self.rows(&apply.input),
            },
            Logical::ProjectSet(sets) if is_unit(&sets.input) => SYSTEM_ROWS,
            Logical::ProjectSet(sets) => self.rows(&sets.input) * ROWS_OF_CALL,
            Logical::Aggregate { input, group_by, .. } => match group_by.is_empty() {
                true => 1.0,
                false => self.group_count(input, group_by),
            },
            Logical::GroupingSets(grouping) => {
                let key = |&key: &usize| grouping.group_by[key].clone();
                let count = |set: &Vec<usize>| {
                    let keys: Vec<Expr> = set.iter().map(key).collect();
                    self.group_count(&grouping.input, &keys)
                };
                grouping.sets.iter().map(count).sum()
            }
            Logical::Limit { input, limit, .. } => {
                let rows = self.rows(input);
                match limit {
                    Some(Expr::Constant { value, .. }) => match value.as_i64() {
                        Some(limit) => rows.min(limit as f64),
                        None => rows,
                    },
                    Some(_) => rows * 0.1,
                    None => rows,
                }
            }
            Logical::Distinct { input, on } if on.is_empty() => {
                let types = input.column_types();
                let columns = types.iter().enumerate();
                let keys: Vec<Expr> = columns.map(|(i, t)| Expr::column(i, t)).collect();
                self.group_count(input, &keys)
            }
            Logical::Distinct { input, on } => self.group_count(input, on),
            Logical::Window(window) => self.rows(&window.input),
            Logical::With(with) => self.rows(&with.body),
            Logical::CteScan(scan) => scan.rows.unwrap_or(SYSTEM_ROWS),
            Logical::RecursiveUnion(union) => self.rows(&union.start) * ROUNDS,
            Logical::SetOperation(operation) => {
                let left = self.rows(&operation.left);
                match operation.kind {
                    SetKind::Intersect => left.min(self.rows(&operation.right)),
                    SetKind::Except => left,
                }
            }
            Logical::Append { inputs } => inputs.iter().map(|input| self.rows(input)).sum(),
        };
        debug_assert!(!rows.is_nan(), "an estimate of rows that is not a number");
        rows.max(1.0)
    }

    fn group_count(&self, input: &Logical, keys: &[Expr]) -> f64 {
        let rows = self.rows(input);
        let groups: f64 = keys.iter().map(|key| self.distinct(key, input)).product();
        groups.min(rows)
    }

    /// Estimates the number of rows of a table.
    pub(super) fn table_rows(&self, table: &Table) -> f64 {
        self.statistics.row_count(table.id).unwrap_or(UNKNOWN_ROWS).max(1.0)
    }

    /// Estimates the number of rows of a plan without the filters on it.
    pub(super) fn unfiltered_rows(&self, plan: &Logical) -> f64 {
        match plan {
            Logical::Filter { input, .. } => self.unfiltered_rows(input),
            Logical::Project { input, .. }
            | Logical::Barrier { input }
            | Logical::Sort { input, .. } => self.unfiltered_rows(input),
            plan => self.rows(plan),
        }
    }

    /// Estimates the number of distinct values of an expression over a plan's rows, without
    /// regard to filters. Limited by the rows of tables, not by those of the plan.
    pub(super) fn distinct(&self, expression: &Expr, plan: &Logical) -> f64 {
        if *expression.data_type() == DataType::Bool {
            return 2.0;
        }
        if is_free(expression) {
            return 1.0;
        }
        match column_below_casts(expression) {
            Some(column) => self.column_distinct(column, plan),
            None => DISTINCT,
        }
    }

    fn column_distinct(&self, column: usize, plan: &Logical) -> f64 {
        match plan {
            Logical::Scan(scan) => self.table_distinct(scan, column),
            Logical::Filter { input, .. }
            | Logical::Barrier { input }
            | Logical::Sort { input, .. }
            | Logical::Limit { input, .. }
            | Logical::Distinct { input, .. }
            | Logical::LockRows(LockRows { input, .. }) => self.column_distinct(column, input),
            Logical::SetOperation(operation) => self.column_distinct(column, &operation.left),
            Logical::Project { input, expressions } => self.distinct(&expressions[column], input),
            Logical::Apply(apply) => self.distinct_in(&[&apply.input], column).unwrap_or(DISTINCT),
            Logical::Join(join) => {
                self.distinct_in(&[&join.left, &join.right], column).unwrap_or(DISTINCT)
            }
            Logical::Aggregate { input, group_by, .. } => match group_by.get(column) {
                Some(key) => self.distinct(key, input),
                None => DISTINCT,
            },
            Logical::ProjectSet(sets) => {
                self.distinct_in(&[&sets.input], column).unwrap_or(SYSTEM_ROWS)
            }
            Logical::GroupingSets(grouping) => match grouping.group_by.get(column) {
                Some(key) => self.distinct(key, &grouping.input),
                None => DISTINCT,
            },
            Logical::Constants(constants) => constants.rows.row_count as f64,
            Logical::Values { rows, .. } => rows.len() as f64,
            Logical::SystemRows(_) => SYSTEM_ROWS,
            Logical::Window(window) => {
                self.distinct_in(&[&window.input], column).unwrap_or(DISTINCT)
            }
            Logical::With(with) => self.column_distinct(column, &with.body),
            Logical::CteScan(_) | Logical::RecursiveUnion(_) | Logical::Append { .. } => DISTINCT,
        }
    }

    fn distinct_in(&self, inputs: &[&Logical], mut column: usize) -> Option<f64> {
        for input in inputs {
            let width = crate::planner::plan_properties::width_of(input);
            if column < width {
                return Some(self.column_distinct(column, input));
            }
            column -= width;
        }
        None
    }

    fn table_distinct(&self, scan: &TableScan, column: usize) -> f64 {
        let rows = self.table_rows(&scan.table);
        let column = scan.columns[column];
        if column == OPERATION_COLUMN {
            return 2.0;
        }
        if column == TIMESTAMP_COLUMN || is_unique(&scan.table, &[column]) {
            return rows;
        }
        if let Some(known) = self.analysed(scan, column, |column| column.distinct) {
            return known.clamp(1.0, rows);
        }
        if scan.table.layout.columns[column].data_type == DataType::Bool {
            return rows.min(2.0);
        }
        rows.min(DISTINCT)
    }

    /// Returns a value from the ANALYZE statistics of a table's column.
    fn analysed<T>(
        &self,
        scan: &TableScan,
        column: usize,
        tell: impl FnOnce(&ColumnStatistics) -> T,
    ) -> Option<T> {
        let table = &scan.table;
        let statistics = self.statistics.table(table.id)?;
        let known = statistics.column(&table.columns[column].name)?;
        (known.type_oid == table.layout.columns[column].data_type.oid()).then(|| tell(known))
    }

    /// Returns the selectivity of a comparison by ANALYZE statistics; `None` without any.
    fn analysed_selectivity(&self, conjunct: &Expr, plan: &Logical) -> Option<f64> {
        let of = |operand: &Expr| base_column(plan, column_below_casts(operand)?);
        match conjunct {
            Expr::IsNull(operand) => {
                let (scan, column) = of(operand)?;
                self.analysed(scan, column, |known| known.null_fraction)
            }
            Expr::InList { operand, list } => {
                let (scan, column) = of(operand)?;
                let data_type = &scan.table.layout.columns[column].data_type;
                let form = |value: &Expr| constant_form(value, data_type);
                self.analysed(scan, column, |known| {
                    list.iter()
                        .map(|value| known.equality_selectivity(form(value).as_deref()))
                        .sum::<f64>()
                })
                .map(|part| part.min(1.0))
            }
            conjunct => {
                let (left, op, right) = conjunct.as_comparison()?;
                let (operand, op, value) = match is_free(right) {
                    true => (left, op, right),
                    false => (right, flipped(op), left),
                };
                let (scan, column) = of(operand).filter(|_| is_free(value))?;
                let data_type = &scan.table.layout.columns[column].data_type;
                let value = constant_form(value, data_type);
                self.analysed(scan, column, |known| {
                    let present = 1.0 - known.null_fraction;
                    let equal = known.equality_selectivity(value.as_deref());
                    let less = value.as_deref().map(|value| known.less_selectivity(value));
                    Some(match (op, less) {
                        (CompareOp::Eq, _) => equal,
                        (CompareOp::Ne, _) => (present - equal).max(0.0),
                        (CompareOp::Lt, Some(less)) => less,
                        (CompareOp::Le, Some(less)) => (less + equal).min(present),
                        (CompareOp::Gt, Some(less)) => (present - less - equal).max(0.0),
                        (CompareOp::Ge, Some(less)) => (present - less).max(0.0),
                        (_, None) => return None,
                    })
                })?
            }
        }
    }

    /// Returns the fraction of the sampled values of a column that satisfy a condition on it
    /// alone.
    fn sampled_selectivity(&self, conjunct: &Expr, plan: &Logical) -> Option<f64> {
        let (scan, column) = base_column(plan, sampled_selectivity::only_column(conjunct)?)?;
        let data_type = &scan.table.layout.columns[column].data_type;
        let mut is_as_stored = true;
        conjunct.walk(&mut |part| {
            if let Expr::Column { data_type: seen, .. } = part {
                is_as_stored &= *seen == *data_type;
            }
        });
        let tried =
            |known: &_| sampled_selectivity::sampled_selectivity(conjunct, known, data_type);
        self.analysed(scan, column, tried).flatten().filter(|_| is_as_stored)
    }

    /// Estimates the selectivity of a predicate on a plan's rows. For a join, on all its pairs.
    pub(super) fn selectivity(&self, predicate: &Expr, plan: &Logical) -> f64 {
        match predicate {
            Expr::And(operands) => self.selectivity_of_all(operands, plan),
            predicate => self.selectivity_of_all(std::slice::from_ref(predicate), plan),
        }
    }

    /// Estimates the selectivity of a condition over pairs of relations, without statistics of
    /// their values.
    pub(super) fn blind_selectivity(&self, condition: &Expr) -> f64 {
        let unknown = Logical::Append { inputs: Vec::new() };
        self.selectivity(condition, &unknown)
    }

    /// Estimates the selectivity of a conjunction on a plan's rows.
    pub(super) fn selectivity_of_all(&self, conjuncts: &[Expr], plan: &Logical) -> f64 {
        let mut fixed: Vec<usize> = Vec::new();
        let mut low: Vec<(&Expr, f64)> = Vec::new();
        let mut high: Vec<(&Expr, f64)> = Vec::new();
        let mut product = 1.0;
        for conjunct in conjuncts {
            let part = self.conjunct_selectivity(conjunct, plan).max(LEAST);
            debug_assert!(part <= 1.0 + ROUNDING, "selectivity {part} of {conjunct:?}");
            if let Some((left, op, right)) = conjunct.as_comparison() {
                let (operand, op) = if is_free(right) { (left, op) } else { (right, flipped(op)) };
                if is_free(left) || is_free(right) {
                    match op {
                        CompareOp::Eq => fixed.extend(column_below_casts(operand)),
                        CompareOp::Gt | CompareOp::Ge => low.push((operand, part)),
                        CompareOp::Lt | CompareOp::Le => high.push((operand, part)),
                        CompareOp::Ne => {}
                    }
                }
            }
            product *= part;
        }
        for (operand, part) in low {
            let same = |(other, _): &(&Expr, f64)| *other == operand;
            if let Some(position) = high.iter().position(same) {
                let (_, other) = high.swap_remove(position);
                let default = part == INEQUALITY || other == INEQUALITY;
                // A lower and an upper bound on the same expression are not independent.
                let both = if default { RANGE } else { (part + other - 1.0).max(LEAST) };
                product *= both / (part * other).max(LEAST * LEAST);
            }
        }
        // A whole unique key selects one row.
        let mut below = plan;
        while let Logical::Filter { input, .. } = below {
            below = input;
        }
        if let Logical::Scan(scan) = below {
            let columns: Vec<usize> = fixed.iter().map(|&column| scan.columns[column]).collect();
            if !scan.has_versions() && is_unique(&scan.table, &columns) {
                return product.min(1.0 / self.table_rows(&scan.table));
            }
        }
        product.min(1.0)
    }

    fn conjunct_selectivity(&self, conjunct: &Expr, plan: &Logical) -> f64 {
        if let Some(known) = self.analysed_selectivity(conjunct, plan) {
            return known;
        }
        let is_made_of_others = matches!(conjunct, Expr::And(_) | Expr::Or(_) | Expr::Not(_));
        if !is_made_of_others && let Some(tried) = self.sampled_selectivity(conjunct, plan) {
            return tried;
        }
        match conjunct {
            Expr::Constant { value: Datum::Bool(true), .. } => 1.0,
            Expr::Constant { .. } => 0.0,
            Expr::And(operands) => self.selectivity_of_all(operands, plan),
            Expr::Or(operands) => {
                let none: f64 =
                    operands.iter().map(|one| 1.0 - self.selectivity(one, plan)).product();
                1.0 - none
            }
            Expr::Not(operand) => 1.0 - self.selectivity(operand, plan),
            Expr::IsNull(_) => IS_NULL,
            Expr::InList { operand, list } => {
                (list.len() as f64 / self.distinct(operand, plan)).min(1.0)
            }
            Expr::Column { data_type: DataType::Bool, .. } => 0.5,
            conjunct => match conjunct.as_comparison() {
                Some((left, op, right)) => self.comparison_selectivity(left, op, right, plan),
                None => match as_operator(conjunct).map(|(symbol, ..)| symbol) {
                    Some("~~" | "~~*" | "~" | "~*") => MATCH,
                    Some("!~~" | "!~~*" | "!~" | "!~*") => 1.0 - MATCH,
                    Some("@>" | "<@" | "&&" | "?" | "?|" | "?&" | "@?" | "@@") => CONTAINED,
                    _ => as_equal_to_any(conjunct).map_or(UNKNOWN, |(operand, array)| {
                        if is_free(operand) && !is_free(array) {
                            return CONTAINED;
                        }
                        (ARRAY_VALUES as f64 / self.distinct(operand, plan)).min(1.0)
                    }),
                },
            },
        }
    }

    fn comparison_selectivity(
        &self,
        left: &Expr,
        op: CompareOp,
        right: &Expr,
        plan: &Logical,
    ) -> f64 {
        let equal = || {
            let (left, right) = (self.distinct(left, plan), self.distinct(right, plan));
            1.0 / left.max(right).max(1.0)
        };
        match op {
            CompareOp::Eq => equal(),
            CompareOp::Ne => 1.0 - equal(),
            CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge => INEQUALITY,
        }
    }
}

/// Returns the table column that a column of a plan refers to, if any.
fn base_column(plan: &Logical, column: usize) -> Option<(&TableScan, usize)> {
    match plan {
        Logical::Scan(scan) => {
            let column = scan.columns[column];
            pseudo_column_type(column).is_none().then_some((scan, column))
        }
        Logical::Filter { input, .. } | Logical::Sort { input, .. } => base_column(input, column),
        Logical::Project { input, expressions } => {
            base_column(input, column_below_casts(&expressions[column])?)
        }
        Logical::Join(join) if join.kind == JoinKind::Inner => {
            let width = crate::planner::plan_properties::width_of(&join.left);
            match column.checked_sub(width) {
                None => base_column(&join.left, column),
                Some(column) => base_column(&join.right, column),
            }
        }
        _ => None,
    }
}

/// Returns a constant in the key encoding of a column's type.
fn constant_form(value: &Expr, column: &DataType) -> Option<Vec<u8>> {
    match value {
        Expr::Constant { value, data_type } => key_form(value, data_type, column),
        _ => None,
    }
}

fn flipped(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        CompareOp::Eq | CompareOp::Ne => op,
    }
}

/// Returns the column of a column reference, without casts.
fn column_below_casts(expression: &Expr) -> Option<usize> {
    match expression {
        Expr::Column { index, .. } => Some(*index),
        Expr::Cast { operand, .. } => column_below_casts(operand),
        _ => None,
    }
}

/// Returns whether these table columns contain a whole unique key.
pub(super) fn is_unique(table: &Table, columns: &[usize]) -> bool {
    if table.key_columns().all(|column| columns.contains(&column)) {
        return true;
    }
    let is_whole = |index: &&Arc<Index>| index.spec.is_unique_everywhere() && index.is_complete();
    table.indexes.iter().filter(is_whole).any(|index| {
        index.spec.keys.iter().all(|key| match key {
            Expr::Column { index, .. } => columns.contains(index),
            _ => false,
        })
    })
}
