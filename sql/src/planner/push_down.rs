//! Rule: predicate pushdown: conditions move down to the source of their columns.
//!
//! Conjuncts pass through projections (with their expressions substituted), groups (if over
//! keys), sorts and unions, and stop above nodes that they cannot pass: limits, the column that a
//! subquery adds. Joins are flattened ([`JoinGroup`]) and rebuilt in the cheapest order
//! ([`join_tree`]); each condition is applied at the first join that has all its columns.
//! Volatile conditions are not moved.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use types::DataType;
use types::aggregate::Aggregate;
use types::expr::Expr;

use crate::logical::{
    Apply, ApplyGroups, ApplyKind, GroupingSets, Join, JoinKind, LockRows, Logical, ProjectSet,
    RecursiveUnion, ScanStatistics, SetOperation, TableScan, Window, With,
};
use crate::planner::barrier::is_leakproof;
use crate::planner::conjunct::{
    all, as_column, boolean, columns_of, is_never_true, is_volatile, renumber, split, substitute,
    within,
};
use crate::planner::decorrelate::decorrelated;
use crate::planner::estimate::{Estimator, ROUNDS};
use crate::planner::first_rows::FirstRows;
use crate::planner::join_group::JoinGroup;
use crate::planner::join_part::JoinPlanner;
use crate::planner::join_tree;
use crate::planner::lateral;
use crate::planner::limit_pushdown::{insert_below_columns, is_for_each_row};
use crate::planner::order_preservation::{RowOrdering, order_of};
use crate::planner::plan_properties::{is_empty, no_rows, padded, width_of};
use crate::planner::row_locking::move_into_scan;
use crate::planner::scalar_subquery_first::{ValueFirst, value_first};
use crate::planner::semi_join::{self, SplitExists};
use crate::planner::statistics::Statistics;
use crate::planner::validate;

/// Returns the plan with pushed-down conditions and ordered joins. `next_parameter`: the first
/// unused parameter of the statement; look-ups allocate some.
pub(super) fn push_down(
    plan: Logical,
    statistics: &dyn Statistics,
    next_parameter: &Cell<usize>,
) -> Logical {
    let chooser = JoinPlanner { estimator: Estimator { statistics }, next_parameter };
    PushDown { chooser }.push(plan, Vec::new())
}

/// Predicate pushdown, with the estimator.
struct PushDown<'a> {
    chooser: JoinPlanner<'a>,
}

fn filter(input: Logical, conjuncts: Vec<Expr>) -> Logical {
    match all(conjuncts) {
        None => input,
        Some(predicate) => Logical::Filter { input: Box::new(input), predicate },
    }
}

/// Returns whether a condition that is evaluated in the session only uses one join input and may
/// be moved there: its value does not depend on the place of evaluation.
fn goes_to_one(plan: &Logical, condition: &Expr) -> bool {
    let mut inputs = Vec::new();
    if let Logical::Join(_) = plan {
        join_inputs(plan, 0, &mut inputs);
    }
    !condition.is_volatile() && inputs.into_iter().any(|input| within(condition, input))
}

/// Collects the column ranges of join inputs.
fn join_inputs(plan: &Logical, first: usize, found: &mut Vec<Range<usize>>) {
    match plan {
        Logical::Join(join) => {
            join_inputs(&join.left, first, found);
            if !matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
                join_inputs(&join.right, first + width_of(&join.left), found);
            }
        }
        plan => found.push(first..first + width_of(plan)),
    }
}

/// Writes the estimated rows of a named query into its scans.
fn note_rows(plan: &mut Logical, id: usize, rows: f64) {
    if let Logical::CteScan(scan) = plan
        && scan.id == id
    {
        scan.rows = Some(rows);
    }
    plan.inputs_mut().into_iter().for_each(|input| note_rows(input, id, rows));
}

fn is_scan(plan: &Logical) -> bool {
    matches!(plan, Logical::Scan(_))
}

impl PushDown<'_> {
    fn boxed(&self, plan: Logical, conjuncts: Vec<Expr>) -> Box<Logical> {
        Box::new(self.push(plan, conjuncts))
    }

    fn boxed_first(
        &self,
        plan: Logical,
        conjuncts: Vec<Expr>,
        first: Option<FirstRows>,
    ) -> Box<Logical> {
        Box::new(self.push_first(plan, conjuncts, first))
    }

    /// Returns the statistics of a table with several access paths: other indexes, or some columns
    /// of its key.
    fn known(&self, scan: &TableScan) -> Option<Arc<ScanStatistics>> {
        let table = &scan.table;
        let has_one_path = table.indexes.is_empty() && table.layout.key.len() == 1;
        if has_one_path || scan.index_hint.is_some() {
            return None;
        }
        let estimator = self.chooser.estimator;
        Some(Arc::new(ScanStatistics {
            rows: estimator.table_rows(table),
            columnar_part: estimator.statistics.columnar_part(table.id),
            statistics: estimator.statistics.table(table.id)?,
        }))
    }

    fn push_filter(
        &self,
        (input, predicate): (Logical, Expr),
        mut conjuncts: Vec<Expr>,
        first: Option<FirstRows>,
    ) -> Logical {
        let mut own = Vec::new();
        split(predicate, &mut own);
        if own.iter().any(is_never_true) {
            return no_rows(input.column_types());
        }
        let stays = |one: &Expr| is_volatile(one) && !goes_to_one(&input, one);
        let (mut stay, mut go): (Vec<Expr>, Vec<Expr>) = own.into_iter().partition(stays);
        if stay.is_empty() {
            go.append(&mut conjuncts);
            return self.push_first(input, go, first);
        }
        // Projections are computed after the filter, for qualifying rows only.
        let input = match input {
            Logical::Apply(mut apply) if !matches!(apply.kind, ApplyKind::Rows { .. }) => {
                let width = width_of(&apply.input);
                let (below, rest): (Vec<Expr>, Vec<Expr>) =
                    stay.into_iter().partition(|one| within(one, 0..width));
                stay = rest;
                if !below.is_empty() {
                    apply.input = Box::new(filter(*apply.input, below));
                }
                Logical::Apply(apply)
            }
            Logical::Project { input, expressions } if !expressions.iter().any(is_volatile) => {
                let below = |one: Expr| substitute(one, &expressions);
                let own: Vec<Expr> = stay.into_iter().chain(go).map(below).collect();
                let input = Box::new(filter(*input, own));
                return self.push(Logical::Project { input, expressions }, conjuncts);
            }
            input => input,
        };
        let stay: Vec<Expr> = stay.into_iter().chain(conjuncts).collect();
        match self.push(input, go) {
            // An index may have the called function as key: all conditions of the scan are
            // planned together.
            Logical::Filter { input, predicate } if is_scan(&input) => {
                let mut own = Vec::new();
                split(predicate, &mut own);
                filter(*input, own.into_iter().chain(stay).collect())
            }
            input => filter(input, stay),
        }
    }

    /// Returns `plan` with `conjuncts`, which are over its columns, applied to it.
    fn push(&self, plan: Logical, conjuncts: Vec<Expr>) -> Logical {
        self.push_first(plan, conjuncts, None)
    }

    /// Like [`PushDown::push`], for a parent node that may only read the first rows.
    fn push_first(&self, plan: Logical, conjuncts: Vec<Expr>, first: Option<FirstRows>) -> Logical {
        match plan {
            Logical::Scan(scan) => self.push_scan(scan, conjuncts),
            Logical::SystemRows(_)
            | Logical::Values { .. }
            | Logical::Constants(_)
            | Logical::CteScan(_) => filter(plan, conjuncts),
            Logical::Window(window) => self.push_window(window, conjuncts),
            Logical::With(with) => {
                let query = self.boxed(*with.query, Vec::new());
                let mut body = *with.body;
                note_rows(&mut body, with.id, self.chooser.estimator.rows(&query));
                let body = self.boxed_first(body, conjuncts, first);
                Logical::With(With { query, body, ..with })
            }
            Logical::RecursiveUnion(union) => {
                let start = self.boxed(*union.start, Vec::new());
                let mut step = *union.step;
                note_rows(&mut step, union.id, self.chooser.estimator.rows(&start) * ROUNDS);
                let step = self.boxed(step, Vec::new());
                let union = RecursiveUnion { start, step, ..union };
                filter(Logical::RecursiveUnion(union), conjuncts)
            }
            Logical::Filter { input, predicate } => {
                self.push_filter((*input, predicate), conjuncts, first)
            }
            Logical::Barrier { input } => self.push_barrier(*input, conjuncts, first),
            Logical::Project { input, expressions } => {
                self.push_project((*input, expressions), conjuncts, first)
            }
            Logical::Join(join) => self.push_join(join, conjuncts, first),
            Logical::Apply(apply) => self.push_apply(apply, conjuncts, first),
            Logical::Aggregate { input, group_by, aggregates } => {
                self.push_aggregate(*input, (group_by, aggregates), conjuncts)
            }
            Logical::ProjectSet(sets) => self.push_project_set(sets, conjuncts),
            Logical::GroupingSets(grouping) => self.push_grouping_sets(grouping, conjuncts),
            Logical::Sort { input, keys } => {
                let first = first.and_then(|first| first.sorted(&keys));
                Logical::Sort { input: self.boxed_first(*input, conjuncts, first), keys }
            }
            Logical::LockRows(lock) => {
                let again = self.boxed(*lock.re_evaluation, conjuncts.clone());
                let input = self.boxed(*lock.input, conjuncts);
                let lock = LockRows { input, re_evaluation: again, ..lock };
                move_into_scan(&lock).unwrap_or(Logical::LockRows(lock))
            }
            // Volatile functions and subqueries are evaluated for the returned rows only.
            Logical::Limit { input, limit, offset, ties }
                if ties.is_empty() && is_for_each_row(&input, offset.is_none()) =>
            {
                let limited = insert_below_columns(*input, |input| {
                    Box::new(Logical::Limit { input, limit, offset, ties })
                });
                self.push(limited, conjuncts)
            }
            Logical::Limit { input, limit, offset, ties } => {
                let first = FirstRows::of_limit(&limit, &offset, &ties);
                let input = self.boxed_first(*input, Vec::new(), first);
                filter(Logical::Limit { input, limit, offset, ties }, conjuncts)
            }
            Logical::Distinct { input, on } => self.push_distinct(*input, on, conjuncts),
            Logical::SetOperation(operation) => self.push_set_operation(operation, conjuncts),
            Logical::Append { inputs } => Logical::Append {
                inputs: inputs
                    .into_iter()
                    .map(|input| self.push(input, conjuncts.clone()))
                    .collect(),
            },
        }
    }

    fn push_scan(&self, mut scan: TableScan, conjuncts: Vec<Expr>) -> Logical {
        // The binder applies the policies; a scan whose policies were forgotten has no rows.
        if scan.policies.is_some() {
            debug_assert!(false, "a scan of {} without its policies", scan.table.name);
            return no_rows(Logical::Scan(scan).column_types());
        }
        scan.statistics = self.known(&scan);
        filter(Logical::Scan(scan), conjuncts)
    }

    /// Pushes leakproof conditions below a barrier.
    fn push_barrier(
        &self,
        input: Logical,
        conjuncts: Vec<Expr>,
        first: Option<FirstRows>,
    ) -> Logical {
        let (go, stay): (Vec<Expr>, Vec<Expr>) = conjuncts.into_iter().partition(is_leakproof);
        let first = first.filter(|_| stay.is_empty());
        let input = self.boxed_first(input, go, first);
        filter(Logical::Barrier { input }, stay)
    }

    /// Pushes conditions on group keys below the aggregation.
    fn push_aggregate(
        &self,
        input: Logical,
        (group_by, aggregates): (Vec<Expr>, Vec<Aggregate>),
        conjuncts: Vec<Expr>,
    ) -> Logical {
        let keys = group_by.len();
        let is_of_keys = |conjunct: &Expr| keys > 0 && within(conjunct, 0..keys);
        let (go, stay): (Vec<Expr>, Vec<Expr>) = conjuncts.into_iter().partition(is_of_keys);
        let go = go.into_iter().map(|conjunct| substitute(conjunct, &group_by)).collect();
        let input = self.boxed(input, go);
        filter(Logical::Aggregate { input, group_by, aggregates }, stay)
    }

    /// Pushes conditions below DISTINCT; for DISTINCT ON only those on its keys.
    fn push_distinct(&self, input: Logical, on: Vec<Expr>, conjuncts: Vec<Expr>) -> Logical {
        let is_on = |at: usize| on.iter().any(|key| as_column(key) == Some(at));
        let passes =
            |conjunct: &Expr| on.is_empty() || columns_of(conjunct).iter().all(|&at| is_on(at));
        let (go, stay): (Vec<Expr>, Vec<Expr>) = conjuncts.into_iter().partition(passes);
        filter(Logical::Distinct { input: self.boxed(input, go), on }, stay)
    }

    /// Pushes conditions on the input's columns, which are the same for all rows of a call.
    fn push_project_set(&self, sets: ProjectSet, conjuncts: Vec<Expr>) -> Logical {
        let width = width_of(&sets.input);
        let (go, stay): (Vec<Expr>, Vec<Expr>) =
            conjuncts.into_iter().partition(|conjunct| within(conjunct, 0..width));
        let input = self.boxed(*sets.input, go);
        filter(Logical::ProjectSet(ProjectSet { input, ..sets }), stay)
    }

    /// Pushes conditions on keys that are in all sets.
    fn push_grouping_sets(&self, grouping: GroupingSets, conjuncts: Vec<Expr>) -> Logical {
        let keys = grouping.group_by.len();
        let passes = |conjunct: &Expr| {
            let columns = columns_of(conjunct);
            !columns.is_empty() && columns.iter().all(|&at| at < keys && grouping.is_in_all(at))
        };
        let (go, stay): (Vec<Expr>, Vec<Expr>) = conjuncts.into_iter().partition(passes);
        let go = go.into_iter().map(|conjunct| substitute(conjunct, &grouping.group_by)).collect();
        let input = self.boxed(*grouping.input, go);
        filter(Logical::GroupingSets(GroupingSets { input, ..grouping }), stay)
    }

    /// Pushes conditions on PARTITION BY columns, which select whole partitions.
    fn push_window(&self, window: Window, conjuncts: Vec<Expr>) -> Logical {
        let is_key = |at: usize| window.partition_by.iter().any(|key| as_column(key) == Some(at));
        let passes = |conjunct: &Expr| {
            let columns = columns_of(conjunct);
            !columns.is_empty() && columns.iter().all(|&at| is_key(at))
        };
        let (go, stay): (Vec<Expr>, Vec<Expr>) = conjuncts.into_iter().partition(passes);
        let input = self.boxed(*window.input, go);
        filter(Logical::Window(Window { input, ..window }), stay)
    }

    /// Pushes conditions to the left side, and to the right side if equal values are identical:
    /// `1.0` equals `1.00` and may have another text.
    fn push_set_operation(&self, operation: SetOperation, conjuncts: Vec<Expr>) -> Logical {
        let types = operation.left.column_types();
        let exact = |conjunct: &&Expr| columns_of(conjunct).iter().all(|&at| is_exact(&types[at]));
        let to_right = conjuncts.iter().filter(exact).cloned().collect();
        let right = self.boxed(*operation.right, to_right);
        let left = self.boxed(*operation.left, conjuncts);
        Logical::SetOperation(SetOperation { left, right, ..operation })
    }

    fn push_project(
        &self,
        (input, expressions): (Logical, Vec<Expr>),
        conjuncts: Vec<Expr>,
        first: Option<FirstRows>,
    ) -> Logical {
        let volatile: Vec<usize> = expressions
            .iter()
            .enumerate()
            .filter(|(_, expression)| is_volatile(expression))
            .map(|(position, _)| position)
            .collect();
        let (stay, go): (Vec<Expr>, Vec<Expr>) = conjuncts.into_iter().partition(|conjunct| {
            columns_of(conjunct).iter().any(|column| volatile.contains(column))
        });
        let go = go.into_iter().map(|conjunct| substitute(conjunct, &expressions)).collect();
        let first = first.filter(|_| stay.is_empty()).map(|first| first.over(&expressions));
        let input = self.boxed_first(input, go, first);
        filter(Logical::Project { input, expressions }, stay)
    }

    /// Flattens joins and rebuilds them in the cheapest order, with conditions pushed down.
    fn push_join(&self, join: Join, conjuncts: Vec<Expr>, first: Option<FirstRows>) -> Logical {
        let group = JoinGroup::new(join, conjuncts);
        let push = &mut |plan, conjuncts| match plan {
            // A full join that remained in the group is not flattened.
            Logical::Join(join) if join.kind == JoinKind::Full => {
                self.push_full_join(join, conjuncts)
            }
            plan => self.push(plan, conjuncts),
        };
        let plan = join_tree::build_tree(group, first, self.chooser, push);
        self.validate("join_tree", &plan);
        plan
    }

    /// Sorts the rows of a join by which a rule has replaced an order-preserving node.
    fn in_order(&self, plan: Logical, order: RowOrdering) -> Logical {
        self.validate("semi_join, lateral or decorrelate", &plan);
        match order {
            RowOrdering::By(keys) => Logical::Sort { input: Box::new(plan), keys },
            RowOrdering::None | RowOrdering::Lost => plan,
        }
    }

    /// Checks the plan of a rule in debug builds.
    fn validate(&self, rule: &str, plan: &Logical) {
        validate::logical(rule, plan, self.chooser.next_parameter.get());
    }

    fn push_full_join(&self, join: Join, conjuncts: Vec<Expr>) -> Logical {
        let (left, right) =
            (self.boxed(*join.left, Vec::new()), self.boxed(*join.right, Vec::new()));
        let mut on = Vec::new();
        split(join.on.clone(), &mut on);
        let (no_left, no_right) = (is_empty(&left), is_empty(&right));
        if !no_left && !no_right && !on.iter().any(is_never_true) {
            return filter(Logical::Join(Join { left, right, ..join }), conjuncts);
        }
        // No pair of rows matches.
        let (left_types, right_types) = (left.column_types(), right.column_types());
        let sides = [padded(&[], *left, &right_types), padded(&left_types, *right, &[])];
        let mut inputs: Vec<Logical> = sides.into_iter().filter(|side| !is_empty(side)).collect();
        let plan = match inputs.len() {
            0 => no_rows([left_types, right_types].concat()),
            1 => inputs.remove(0),
            _ => Logical::Append { inputs },
        };
        filter(plan, conjuncts)
    }

    /// Pushes conditions on the input's columns below an apply. A condition that is the added
    /// column, or its negation, may turn the apply into a semi or anti join.
    fn push_apply(
        &self,
        mut apply: Apply,
        conjuncts: Vec<Expr>,
        first: Option<FirstRows>,
    ) -> Logical {
        let width = width_of(&apply.input);
        if let Some(alternatives) = semi_join::by_alternatives(&mut apply) {
            return self.push_alternatives(alternatives, conjuncts, first);
        }
        let (mut go, mut stay): (Vec<Expr>, Vec<Expr>) =
            conjuncts.into_iter().partition(|conjunct| within(conjunct, 0..width));
        let wanted = stay.iter().enumerate().find_map(|(position, conjunct)| match conjunct {
            conjunct if as_column(conjunct) == Some(width) => Some((position, true)),
            Expr::Not(operand) if as_column(operand) == Some(width) => Some((position, false)),
            _ => None,
        });
        let order = order_of(&apply.input);
        if let Some((position, wanted)) = wanted
            && !matches!(order, RowOrdering::Lost)
            && let Some(join) = semi_join::from_apply(&mut apply, wanted)
        {
            stay.remove(position);
            let first = first.filter(|_| stay.is_empty());
            return filter(self.push_first(self.in_order(join, order), go, first), stay);
        }
        if !matches!(order, RowOrdering::Lost)
            && let Some(plan) = lateral::joined(&mut apply).or_else(|| {
                let goal = first.as_ref().filter(|_| go.is_empty() && stay.is_empty());
                let goal = goal.and_then(|first| self.rows_read(first, &apply.input));
                decorrelated(&mut apply, (&go, goal), self.chooser.estimator)
            })
        {
            go.extend(stay);
            return self.push_first(self.in_order(plan, order), go, first);
        }
        let parameter = self.chooser.next_parameter.get();
        if let Some(first) = value_first(&apply, (&go, &stay), parameter) {
            self.chooser.next_parameter.set(parameter + 1);
            return self.push_value_first(first, parameter);
        }
        let own = first.as_ref().filter(|_| stay.is_empty());
        let own = own.and_then(|first| first.within(0..width));
        let input = self.boxed_first(*apply.input, go, own);
        let mut kind = apply.kind;
        let below = match &mut kind {
            ApplyKind::Rows { on, outer } => {
                // For an inner lateral join, join condition and filter are equivalent.
                let mut matches = Vec::new();
                split(std::mem::replace(on, boolean(true)), &mut matches);
                if !*outer {
                    matches.append(&mut stay);
                }
                let of_subquery =
                    |conjunct: &Expr| !is_volatile(conjunct) && within(conjunct, width..usize::MAX);
                if matches.iter().any(is_never_true) {
                    let added = apply.subquery.column_types();
                    return match *outer {
                        true => filter(padded(&[], *input, &added), stay),
                        false => no_rows([input.column_types(), added].concat()),
                    };
                }
                let (below, rest): (Vec<Expr>, Vec<Expr>) =
                    matches.into_iter().partition(of_subquery);
                *on = all(rest).unwrap_or_else(|| boolean(true));
                below.into_iter().map(|e| renumber(e, &|index| index - width)).collect()
            }
            _ => Vec::new(),
        };
        // EXISTS reads one row.
        let first = matches!(kind, ApplyKind::Exists).then(|| FirstRows::of(1.0));
        let subquery = self.boxed_first(*apply.subquery, below, first);
        let groups = apply.groups.map(|groups| {
            Box::new(ApplyGroups { plan: self.push(groups.plan, Vec::new()), ..*groups })
        });
        let (bindings, guard) = (apply.bindings, apply.guard);
        filter(Logical::Apply(Apply { input, subquery, bindings, kind, guard, groups }), stay)
    }

    /// Returns the number of input rows that are read for the first rows of the parent node;
    /// `None`: all, as they must be sorted.
    fn rows_read(&self, first: &FirstRows, input: &Logical) -> Option<f64> {
        let own = first.within(0..width_of(input))?;
        own.cost(input, self.chooser.estimator).map(|_| own.rows)
    }

    /// Pushes conditions on an EXISTS into one apply for each alternative.
    fn push_alternatives(
        &self,
        SplitExists { plan, columns }: SplitExists,
        conjuncts: Vec<Expr>,
        first: Option<FirstRows>,
    ) -> Logical {
        self.validate("semi_join", &plan);
        let mut over = Vec::new();
        conjuncts.into_iter().for_each(|one| split(substitute(one, &columns), &mut over));
        let first = first.map(|first| first.over(&columns));
        let input = self.boxed_first(plan, over, first);
        Logical::Project { input, expressions: columns }
    }

    fn push_value_first(&self, first: ValueFirst, parameter: usize) -> Logical {
        let table = Apply {
            input: self.boxed(first.value, Vec::new()),
            subquery: self.boxed(first.table, first.conjuncts),
            bindings: vec![(parameter, 0)],
            kind: ApplyKind::Rows { on: boolean(true), outer: false },
            guard: None,
            groups: None,
        };
        let input = Box::new(Logical::Apply(table));
        filter(Logical::Project { input, expressions: first.output }, first.rest)
    }
}

/// Returns whether equal values of a type are identical.
fn is_exact(data_type: &DataType) -> bool {
    !matches!(
        data_type,
        DataType::Numeric
            | DataType::Float4
            | DataType::Float8
            | DataType::Char
            | DataType::Interval
    )
}
