//! Rule: decorrelation: a subquery per row becomes a join with its groups.
//!
//! ```text
//! (SELECT sum(y) FROM t WHERE t.k = o.k)    LEFT JOIN (SELECT k, sum(y) FROM t GROUP BY k) ON k
//! EXISTS (SELECT 1 FROM t WHERE t.k = o.k)
//!                                         LEFT JOIN (SELECT DISTINCT k FROM t) ON k, k IS NOT NULL
//! LATERAL (SELECT count(*), max(y) FROM t WHERE t.k = o.k)
//!                         LEFT JOIN (SELECT k, count(*), max(y) FROM t GROUP BY k) ON k
//! ```
//!
//! All outer columns of the subquery must be in equalities. A row with NULL outer values, or
//! without a group, gets the aggregate of no rows. EXISTS and IN in filters become semi joins
//! ([`semi_join`]), which is tried first.
//!
//! If computing the groups may fail, the error may come from a group that no row uses: such
//! groups are tried first, besides the apply ([`ApplyGroups`]), which executes the subquery for
//! each row if they fail.
//!
//! The rule applies if the groups cost less than the executions of the subquery for the needed
//! rows. Results of expression subqueries are cached by their outer values, so that these are
//! executed at most once per distinct value.

use types::aggregate::{Aggregate, AggregateKind, PairStatistic};
use types::expr::Expr;
use types::{DataType, Datum};

use crate::logical::{Apply, ApplyGroups, ApplyKind, Join, JoinDecision, JoinKind, Logical};
use crate::planner::conjunct::{
    Columns, all, as_column, column, is_free, is_volatile, split, substitute, uses_parameters,
};
use crate::planner::cost;
use crate::planner::equivalence::{equal, sides};
use crate::planner::estimate::Estimator;
use crate::planner::lookup::{FilteredTable, filtered_table};
use crate::planner::plan_properties::width_of;
use crate::planner::semi_join::{self, UncorrelatedSubquery, bind, extract_correlated, take_input};

/// Cost of starting a subquery.
const RUN: f64 = 50.0;

/// Returns the replacement of an apply, if it costs less; it takes over the apply's input.
/// `conjuncts` hold for its rows, of which the parent node reads `goal`, or all. If the groups
/// may fail, the apply remains and gets the groups.
pub(super) fn decorrelated(
    apply: &mut Apply,
    (conjuncts, goal): (&[Expr], Option<f64>),
    estimator: Estimator<'_>,
) -> Option<Logical> {
    if apply.bindings.is_empty() || apply.subquery.has_effects() {
        return None;
    }
    let mut grouped = match apply.kind {
        ApplyKind::Scalar => scalar(apply)?,
        ApplyKind::Exists => exists(apply)?,
        ApplyKind::Rows { .. } => lateral_row(apply)?,
        ApplyKind::Array { .. } | ApplyKind::Any { .. } | ApplyKind::All { .. } => return None,
    };
    let conjuncts: Vec<Expr> = conjuncts.iter().chain(&apply.guard).cloned().collect();
    let outer_rows = outer_rows(apply, &conjuncts, estimator);
    let outer_rows = goal.map_or(outer_rows, |goal| outer_rows.min(goal));
    if !grouped.pays(apply, outer_rows, estimator) {
        return None;
    }
    if grouped.may_fail() {
        if !matches!(apply.kind, ApplyKind::Rows { .. }) {
            apply.groups = grouped.beside(apply).map(Box::new);
        }
        return None;
    }
    grouped.guard = apply.guard.clone();
    Some(grouped.joined(apply))
}

/// Estimates the number of rows for which the subquery is needed. A subquery below that filters
/// them counts as a semi join.
fn outer_rows(apply: &Apply, conjuncts: &[Expr], estimator: Estimator<'_>) -> f64 {
    let mut conjuncts = conjuncts.to_vec();
    let mut rows = estimator.rows(&apply.input);
    let input = match apply.input.as_ref() {
        Logical::Filter { input, predicate } => {
            split(predicate.clone(), &mut conjuncts);
            input
        }
        input => input,
    };
    if let Logical::Apply(below) = input {
        let decides = |conjunct: &Expr| as_column(conjunct) == Some(width_of(&below.input));
        if conjuncts.iter().any(decides)
            && let Some(join) = semi_join::from_apply(&mut below.clone(), true)
        {
            conjuncts.retain(|conjunct| !decides(conjunct));
            rows = estimator.rows(&join);
        }
    }
    rows * estimator.selectivity_of_all(&conjuncts, &apply.input).max(f64::MIN_POSITIVE)
}

/// A subquery as groups of what it compares with outer columns.
struct GroupedSubquery {
    /// Source of its rows, without the conditions on outer columns.
    inner: Logical,
    /// Compared expressions over the inner rows.
    keys: Vec<Expr>,
    /// Outer side of each comparison; without columns, with parameters for the outer ones.
    outer: Vec<Expr>,
    /// The same comparisons as conditions on the inner rows.
    conditions: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    /// Columns of the subquery over the aggregates; none for EXISTS.
    values: Vec<Expr>,
    /// Outer rows for which the value is needed.
    guard: Option<Expr>,
}

fn scalar(apply: &Apply) -> Option<GroupedSubquery> {
    let mut summary = summary(&apply.subquery)?;
    let mut value = summary.value.into_iter().next()?;
    if let Some(holds) = all(std::mem::take(&mut summary.holds)) {
        let data_type = value.data_type().clone();
        let otherwise = Box::new(Expr::constant(Datum::Null, &data_type));
        value = Expr::Case { branches: vec![(holds, value)], otherwise, data_type };
    }
    summarised(AggregateSubquery { value: vec![value], ..summary }, apply)
}

/// Returns the groups of a LATERAL subquery that yields exactly one row for each outer row.
fn lateral_row(apply: &Apply) -> Option<GroupedSubquery> {
    let ApplyKind::Rows { on, outer } = &apply.kind else { return None };
    let is_true = matches!(on, Expr::Constant { value: Datum::Bool(true), .. });
    let summary = summary(&apply.subquery)?;
    let has_row = summary.holds.is_empty() && (is_true || !outer) && !is_volatile(on);
    if has_row { summarised(summary, apply) } else { None }
}

fn summarised(summary: AggregateSubquery<'_>, apply: &Apply) -> Option<GroupedSubquery> {
    let outer: Columns = apply.bindings.iter().map(|(parameter, _)| *parameter).collect();
    let AggregateSubquery { value: values, aggregates, input, .. } = summary;
    let inner = extract_correlated(input, &outer)?;
    let put_in = |part: Expr| substitute(part, &inner.output);
    let aggregates: Vec<Aggregate> =
        aggregates.iter().map(|a| a.clone().map_expressions(&put_in)).collect();
    // A column of the input may be an outer column.
    let refused = |part: &Expr| uses_parameters(part, &outer) || is_volatile(part);
    if aggregates.iter().flat_map(Aggregate::expressions).any(refused)
        || values.iter().any(is_volatile)
    {
        return None;
    }
    grouped(inner, aggregates, values, &outer)
}

fn exists(apply: &Apply) -> Option<GroupedSubquery> {
    let outer: Columns = apply.bindings.iter().map(|(parameter, _)| *parameter).collect();
    grouped(extract_correlated(&apply.subquery, &outer)?, Vec::new(), Vec::new(), &outer)
}

fn grouped(
    inner: UncorrelatedSubquery,
    aggregates: Vec<Aggregate>,
    values: Vec<Expr>,
    outer: &Columns,
) -> Option<GroupedSubquery> {
    let (mut keys, mut others) = (Vec::new(), Vec::new());
    for conjunct in &inner.correlated {
        let (a, b) = sides(conjunct).filter(|_| !is_volatile(conjunct))?;
        let is_key = |side: &Expr| !uses_parameters(side, outer) && !is_free(side);
        let (key, other) = if is_key(a) { (a, b) } else { (b, a) };
        if !is_key(key) || !is_free(other) {
            return None;
        }
        keys.push(key.clone());
        others.push(other.clone());
    }
    let conditions = inner.correlated;
    (!keys.is_empty()).then_some(GroupedSubquery {
        inner: inner.plan,
        keys,
        outer: others,
        conditions,
        aggregates,
        values,
        guard: None,
    })
}

/// A subquery that yields one row of aggregates.
struct AggregateSubquery<'a> {
    /// Its columns, over the aggregates.
    value: Vec<Expr>,
    /// HAVING conditions, over the aggregates.
    holds: Vec<Expr>,
    aggregates: &'a [Aggregate],
    input: &'a Logical,
}

fn summary(plan: &Logical) -> Option<AggregateSubquery<'_>> {
    match plan {
        Logical::Project { input, expressions } => {
            let below = summary(input)?;
            let value = expressions.iter().map(|e| substitute(e.clone(), &below.value));
            Some(AggregateSubquery { value: value.collect(), ..below })
        }
        Logical::Filter { input, predicate } if !is_volatile(predicate) => {
            let mut below = summary(input)?;
            below.holds.push(substitute(predicate.clone(), &below.value));
            Some(below)
        }
        Logical::Aggregate { input, group_by, aggregates } if group_by.is_empty() => {
            let value = aggregates.iter().enumerate();
            let value = value.map(|(index, aggregate)| column(index, &aggregate.data_type));
            aggregates.iter().all(|aggregate| of_no_rows(aggregate).is_some()).then(|| {
                AggregateSubquery { value: value.collect(), holds: Vec::new(), aggregates, input }
            })
        }
        _ => None,
    }
}

/// Returns the result of an aggregate over no rows; `None` if it is unknown.
fn of_no_rows(aggregate: &Aggregate) -> Option<Datum> {
    use AggregateKind::{
        AnyValue, ApproxCountDistinct, ApproxPercentile, ArrayAgg, Avg, BitAnd, BitOr, BitXor,
        BoolAnd, BoolOr, Count, CountRows, JsonAgg, JsonObjectAgg, JsonbAgg, JsonbObjectAgg, Max,
        Min, Mode, Pairs, PercentileCont, PercentileDisc, StddevPop, StddevSamp, StringAgg, Sum,
        VarPop, VarSamp,
    };
    let counted = Pairs(PairStatistic::Count);
    if matches!(aggregate.kind, CountRows | Count | ApproxCountDistinct)
        || aggregate.kind == counted
    {
        return Some(Datum::Int8(0));
    }
    let null = matches!(
        aggregate.kind,
        Sum | Avg
            | Min
            | Max
            | BoolAnd
            | BoolOr
            | StddevPop
            | StddevSamp
            | VarPop
            | VarSamp
            | ApproxPercentile
            | BitAnd
            | BitOr
            | BitXor
            | AnyValue
            | ArrayAgg
            | StringAgg
            | JsonAgg
            | JsonbAgg
            | JsonObjectAgg
            | JsonbObjectAgg
            | PercentileCont
            | PercentileDisc
            | Mode
            | Pairs(_)
    );
    null.then_some(Datum::Null)
}

impl GroupedSubquery {
    /// Returns whether computing the groups may raise an error.
    fn may_fail(&self) -> bool {
        let own = self.keys.iter().chain(&self.outer).chain(&self.conditions);
        let aggregates = self.aggregates.iter().flat_map(Aggregate::expressions);
        self.inner.may_fail()
            || own.chain(aggregates).any(Expr::may_fail)
            || self.aggregates.iter().any(Aggregate::may_fail)
    }

    /// Returns whether the groups cost less than the executions of the subquery.
    fn pays(&self, apply: &Apply, outer_rows: f64, estimator: Estimator<'_>) -> bool {
        let values = apply
            .bindings
            .iter()
            .map(|(_, input)| estimator.distinct(&column(*input, DataType::Unknown), &apply.input));
        // Rows of a lateral subquery are not cached.
        let runs = match apply.kind {
            ApplyKind::Rows { .. } => outer_rows.max(1.0),
            _ => outer_rows.max(1.0).min(values.product()),
        };
        let inner_rows = estimator.rows(&self.inner);
        let (read, run) = match filtered_table(&self.inner) {
            Some(table) => {
                let read = table.scan_cost(estimator);
                let over_table = |conjunct: &Expr| table.over_table(conjunct.clone());
                let bound: Vec<Expr> = self.conditions.iter().map(over_table).collect();
                let conjuncts = table.conjuncts.iter().cloned().chain(bound).collect();
                (read, FilteredTable { conjuncts, ..table }.scan_cost(estimator))
            }
            None => (inner_rows, inner_rows),
        };
        let together =
            read + cost::BUILD * inner_rows + cost::hash_join(outer_rows, 0.0, outer_rows);
        together < runs * (RUN + run)
    }

    /// Returns the columns of the subquery, over the columns of the outer row followed by those
    /// of its group.
    fn values(&self, apply: &Apply, left_types: &[DataType]) -> Vec<Expr> {
        let width = left_types.len();
        let of_group = |index: usize| {
            let aggregate = &self.aggregates[index];
            let value = column(width + self.keys.len() + index, &aggregate.data_type);
            match of_no_rows(aggregate) {
                None | Some(Datum::Null) => value,
                Some(none) => {
                    let data_type = aggregate.data_type.clone();
                    let none = Expr::constant(none, &data_type);
                    Expr::Coalesce { operands: vec![value, none], data_type }
                }
            }
        };
        if matches!(apply.kind, ApplyKind::Exists) {
            let first = column(width, self.keys[0].data_type());
            return vec![Expr::Not(Box::new(Expr::IsNull(Box::new(first))))];
        }
        let groups: Vec<Expr> = (0..self.aggregates.len()).map(of_group).collect();
        let values = self.values.iter();
        values.map(|value| bind(substitute(value.clone(), &groups), apply, left_types)).collect()
    }

    /// Returns the groups for the apply; `None` if a key has no key encoding, by which rows find
    /// their group.
    fn beside(self, apply: &Apply) -> Option<ApplyGroups> {
        let has_form = |key: &Expr| types::keycode::check_type(key.data_type()).is_ok();
        if !self.keys.iter().chain(&self.outer).all(has_form) {
            return None;
        }
        let left_types = apply.input.column_types();
        let value = self.values(apply, &left_types).pop()?;
        let keys = self.outer.into_iter().map(|outer| bind(outer, apply, &left_types)).collect();
        let input = Box::new(self.inner);
        let plan = Logical::Aggregate { input, group_by: self.keys, aggregates: self.aggregates };
        Some(ApplyGroups { plan, keys, value })
    }

    fn joined(self, apply: &mut Apply) -> Logical {
        let left_types = apply.input.column_types();
        let width = left_types.len();
        let mut on = Vec::new();
        for (position, (key, outer)) in self.keys.iter().zip(&self.outer).enumerate() {
            let key = column(width + position, key.data_type());
            let outer = bind(outer.clone(), apply, &left_types);
            on.push(equal(&outer, &key).expect("it was an equality"));
        }
        let guarded = |value: Expr| match self.guard.clone().filter(|_| value.may_fail()) {
            None => value,
            Some(guard) => {
                let data_type = value.data_type().clone();
                let otherwise = Box::new(Expr::constant(Datum::Null, &data_type));
                Expr::Case { branches: vec![(guard, value)], otherwise, data_type }
            }
        };
        let mut output: Vec<Expr> =
            left_types.iter().enumerate().map(|(index, t)| column(index, t)).collect();
        output.extend(self.values(apply, &left_types).into_iter().map(guarded));
        let matched = match &apply.kind {
            ApplyKind::Rows { on, .. } => Some(substitute(on.clone(), &output)),
            _ => None,
        };
        let right = Logical::Aggregate {
            input: Box::new(self.inner),
            group_by: self.keys,
            aggregates: self.aggregates,
        };
        let join = Join {
            kind: JoinKind::Left,
            left: take_input(apply),
            right: Box::new(right),
            on: all(on).unwrap_or_else(|| Expr::constant(Datum::Bool(true), DataType::Bool)),
            choice: JoinDecision::default(),
        };
        let mut input = Box::new(Logical::Join(join));
        if let Some(predicate) = matched {
            input = Box::new(Logical::Filter { input, predicate });
        }
        Logical::Project { input, expressions: output }
    }
}
