//! Rule: conditions move down to where their columns come from.
//!
//! Conjuncts are carried down through projections (their expressions put in), groups (those over
//! keys), sorts and unions, and stop above what they cannot pass: limits, the column a subquery
//! adds. Joins are taken apart ([`JoinGroup`]) and put together again in an order chosen by cost
//! ([`join_tree`]); each condition stands at the first join that has all its columns.
//! Conditions that call volatile functions stay where they are.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use types::DataType;
use types::expr::Expr;

use crate::logical::{
    Apply, ApplyGroups, ApplyKind, GroupingSets, Join, JoinKind, KnownTable, LockRows, Logical,
    ProjectSet, RecursiveUnion, SetOperation, TableScan, Window, With,
};
use crate::planner::conjunct::{
    all, as_column, boolean, columns_of, is_never_true, is_volatile, renumber, split, substitute,
    within,
};
use crate::planner::decorrelate::decorrelated;
use crate::planner::estimate::Estimator;
use crate::planner::join_group::JoinGroup;
use crate::planner::join_tree::{self, Chooser};
use crate::planner::kept_order::{Order, order_of};
use crate::planner::lateral;
use crate::planner::limited::{below_values, is_for_each_row};
use crate::planner::locked::at_the_scan;
use crate::planner::semi_join;
use crate::planner::shape::width_of;
use crate::planner::statistics::Statistics;
use crate::planner::value_first::{ValueFirst, value_first};

/// Returns the plan with every condition as far down as it goes, and joins in the best order.
/// `next_parameter`: the first parameter of the statement that nobody uses; look-ups take some.
pub(super) fn push_down(
    plan: Logical,
    statistics: &dyn Statistics,
    next_parameter: &Cell<usize>,
) -> Logical {
    let chooser = Chooser { estimator: Estimator { statistics }, next_parameter };
    PushDown { chooser }.push(plan, Vec::new())
}

/// The rule, with what it chooses by.
struct PushDown<'a> {
    chooser: Chooser<'a>,
}

fn filter(input: Logical, conjuncts: Vec<Expr>) -> Logical {
    match all(conjuncts) {
        None => input,
        Some(predicate) => Logical::Filter { input: Box::new(input), predicate },
    }
}

/// Returns whether a condition is over one of the inputs of joins and may go there, though only the
/// session computes it: it gives the same wherever that is done.
fn goes_to_one(plan: &Logical, condition: &Expr) -> bool {
    let mut inputs = Vec::new();
    if let Logical::Join(_) = plan {
        join_inputs(plan, 0, &mut inputs);
    }
    !condition.is_volatile() && inputs.into_iter().any(|input| within(condition, input))
}

/// Gathers the columns of what is joined.
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

fn is_scan(plan: &Logical) -> bool {
    matches!(plan, Logical::Scan(_))
}

impl PushDown<'_> {
    fn boxed(&self, plan: Logical, conjuncts: Vec<Expr>) -> Box<Logical> {
        Box::new(self.push(plan, conjuncts))
    }

    /// Returns what is known of a table that has paths to choose among.
    fn known(&self, scan: &TableScan) -> Option<Arc<KnownTable>> {
        let table = &scan.table;
        if table.indexes.is_empty() || scan.index_hint.is_some() || scan.as_of.is_some() {
            return None;
        }
        let estimator = self.chooser.estimator;
        Some(Arc::new(KnownTable {
            rows: estimator.table_rows(table),
            columnar_part: estimator.statistics.columnar_part(table.id),
            statistics: estimator.statistics.table(table.id)?,
        }))
    }

    fn push_filter(&self, input: Logical, predicate: Expr, mut conjuncts: Vec<Expr>) -> Logical {
        let mut own = Vec::new();
        split(predicate, &mut own);
        if own.iter().any(is_never_true) {
            let types = input.column_types();
            return Logical::Values { types, rows: Vec::new() };
        }
        let stays = |one: &Expr| is_volatile(one) && !goes_to_one(&input, one);
        let (stay, mut go): (Vec<Expr>, Vec<Expr>) = own.into_iter().partition(stays);
        if stay.is_empty() {
            go.append(&mut conjuncts);
            return self.push(input, go);
        }
        // What is computed of the rows is computed for those that pass.
        let input = match input {
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
            // An index may be over what is called: they are looked at together.
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
        match plan {
            Logical::Scan(mut scan) => {
                scan.known = self.known(&scan);
                filter(Logical::Scan(scan), conjuncts)
            }
            Logical::SystemRows(_) | Logical::Values { .. } | Logical::CteScan(_) => {
                filter(plan, conjuncts)
            }
            Logical::Window(window) => self.push_window(window, conjuncts),
            Logical::With(with) => {
                let query = self.boxed(*with.query, Vec::new());
                let body = self.boxed(*with.body, conjuncts);
                Logical::With(With { query, body, ..with })
            }
            Logical::RecursiveUnion(union) => {
                let start = self.boxed(*union.start, Vec::new());
                let step = self.boxed(*union.step, Vec::new());
                let union = RecursiveUnion { start, step, ..union };
                filter(Logical::RecursiveUnion(union), conjuncts)
            }
            Logical::Filter { input, predicate } => self.push_filter(*input, predicate, conjuncts),
            Logical::Project { input, expressions } => {
                self.push_project(*input, expressions, conjuncts)
            }
            Logical::Join(join) => self.push_join(join, conjuncts),
            Logical::Apply(apply) => self.push_apply(apply, conjuncts),
            Logical::Aggregate { input, group_by, aggregates } => {
                let keys = group_by.len();
                let (go, stay): (Vec<Expr>, Vec<Expr>) = conjuncts
                    .into_iter()
                    .partition(|conjunct| keys > 0 && within(conjunct, 0..keys));
                let go = go.into_iter().map(|conjunct| substitute(conjunct, &group_by)).collect();
                let input = self.boxed(*input, go);
                filter(Logical::Aggregate { input, group_by, aggregates }, stay)
            }
            Logical::ProjectSet(sets) => self.push_project_set(sets, conjuncts),
            Logical::GroupingSets(grouping) => self.push_grouping_sets(grouping, conjuncts),
            Logical::Sort { input, keys } => {
                Logical::Sort { input: self.boxed(*input, conjuncts), keys }
            }
            Logical::LockRows(lock) => {
                let again = self.boxed(*lock.again, conjuncts.clone());
                let input = self.boxed(*lock.input, conjuncts);
                let lock = LockRows { input, again, ..lock };
                at_the_scan(&lock).unwrap_or(Logical::LockRows(lock))
            }
            // What changes from call to call is called for the rows that are asked for, and so are
            // subqueries.
            Logical::Limit { input, limit, offset, ties }
                if ties.is_empty() && is_for_each_row(&input, offset.is_none()) =>
            {
                let limited = below_values(*input, |input| {
                    Box::new(Logical::Limit { input, limit, offset, ties })
                });
                self.push(limited, conjuncts)
            }
            Logical::Limit { input, limit, offset, ties } => {
                let input = self.boxed(*input, Vec::new());
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

    /// Where all rows that agree in some columns but one go, conditions on these alone may pass.
    fn push_distinct(&self, input: Logical, on: Vec<Expr>, conjuncts: Vec<Expr>) -> Logical {
        let is_on = |at: usize| on.iter().any(|key| as_column(key) == Some(at));
        let passes =
            |conjunct: &Expr| on.is_empty() || columns_of(conjunct).iter().all(|&at| is_on(at));
        let (go, stay): (Vec<Expr>, Vec<Expr>) = conjuncts.into_iter().partition(passes);
        filter(Logical::Distinct { input: self.boxed(input, go), on }, stay)
    }

    /// Conditions on the input's columns are the same for all rows of a call.
    fn push_project_set(&self, sets: ProjectSet, conjuncts: Vec<Expr>) -> Logical {
        let width = width_of(&sets.input);
        let (go, stay): (Vec<Expr>, Vec<Expr>) =
            conjuncts.into_iter().partition(|conjunct| within(conjunct, 0..width));
        let input = self.boxed(*sets.input, go);
        filter(Logical::ProjectSet(ProjectSet { input, ..sets }), stay)
    }

    /// Conditions on keys that all sets have leave whole groups out.
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

    /// Conditions on what all functions are partitioned by leave whole partitions out.
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

    /// The rows are those of the left side. Conditions narrow the right side as well where equal
    /// values are the same value: `1.0` equals `1.00` and may yet be another text.
    fn push_set_operation(&self, operation: SetOperation, conjuncts: Vec<Expr>) -> Logical {
        let types = operation.left.column_types();
        let exact = |conjunct: &&Expr| columns_of(conjunct).iter().all(|&at| is_exact(types[at]));
        let to_right = conjuncts.iter().filter(exact).cloned().collect();
        let right = self.boxed(*operation.right, to_right);
        let left = self.boxed(*operation.left, conjuncts);
        Logical::SetOperation(SetOperation { left, right, ..operation })
    }

    fn push_project(
        &self,
        input: Logical,
        expressions: Vec<Expr>,
        conjuncts: Vec<Expr>,
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
        let input = Box::new(self.push(input, go));
        filter(Logical::Project { input, expressions }, stay)
    }

    /// Joins are taken apart and put together in the best order, each condition as low as it goes.
    fn push_join(&self, join: Join, conjuncts: Vec<Expr>) -> Logical {
        let group = JoinGroup::new(join, conjuncts);
        let push = &mut |plan, conjuncts| match plan {
            // What is still one in a group is done as it is.
            Logical::Join(join) if join.kind == JoinKind::Full => {
                self.push_full_join(join, conjuncts)
            }
            plan => self.push(plan, conjuncts),
        };
        join_tree::put_together(group, self.chooser, push)
    }

    fn push_full_join(&self, join: Join, conjuncts: Vec<Expr>) -> Logical {
        let (left, right) =
            (self.boxed(*join.left, Vec::new()), self.boxed(*join.right, Vec::new()));
        filter(Logical::Join(Join { left, right, ..join }), conjuncts)
    }

    /// Conditions on the input's columns pass an apply. One that is the added column itself, or its
    /// negation, may turn the apply into a semi or anti join.
    fn push_apply(&self, mut apply: Apply, conjuncts: Vec<Expr>) -> Logical {
        let width = width_of(&apply.input);
        let (mut go, mut stay): (Vec<Expr>, Vec<Expr>) =
            conjuncts.into_iter().partition(|conjunct| within(conjunct, 0..width));
        let wanted = stay.iter().enumerate().find_map(|(position, conjunct)| match conjunct {
            conjunct if as_column(conjunct) == Some(width) => Some((position, true)),
            Expr::Not(operand) if as_column(operand) == Some(width) => Some((position, false)),
            _ => None,
        });
        let order = order_of(&apply.input);
        if let Some((position, wanted)) = wanted
            && !matches!(order, Order::Lost)
            && let Some(join) = semi_join::from_apply(&mut apply, wanted)
        {
            stay.remove(position);
            return filter(self.push(in_order(join, order), go), stay);
        }
        if !matches!(order, Order::Lost)
            && let Some(plan) = lateral::joined(&mut apply)
                .or_else(|| decorrelated(&mut apply, &go, self.chooser.estimator))
        {
            go.extend(stay);
            return self.push(in_order(plan, order), go);
        }
        let parameter = self.chooser.next_parameter.get();
        if let Some(first) = value_first(&apply, (&go, &stay), parameter) {
            self.chooser.next_parameter.set(parameter + 1);
            return self.push_value_first(first, parameter);
        }
        let input = self.boxed(*apply.input, go);
        let mut kind = apply.kind;
        let below = match &mut kind {
            ApplyKind::Rows { on, outer } => {
                // What an inner one has to match may as well be a condition above, and the reverse.
                let mut matches = Vec::new();
                split(std::mem::replace(on, boolean(true)), &mut matches);
                if !*outer {
                    matches.append(&mut stay);
                }
                let of_subquery =
                    |conjunct: &Expr| !is_volatile(conjunct) && within(conjunct, width..usize::MAX);
                let (below, rest): (Vec<Expr>, Vec<Expr>) =
                    matches.into_iter().partition(of_subquery);
                *on = all(rest).unwrap_or_else(|| boolean(true));
                below.into_iter().map(|e| renumber(e, &|index| index - width)).collect()
            }
            _ => Vec::new(),
        };
        let subquery = self.boxed(*apply.subquery, below);
        let groups = apply.groups.map(|groups| {
            Box::new(ApplyGroups { plan: self.push(groups.plan, Vec::new()), ..*groups })
        });
        let (bindings, guard) = (apply.bindings, apply.guard);
        filter(Logical::Apply(Apply { input, subquery, bindings, kind, guard, groups }), stay)
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

/// Sorts the rows of a join that stands for a step which kept them in order.
fn in_order(plan: Logical, order: Order) -> Logical {
    match order {
        Order::By(keys) => Logical::Sort { input: Box::new(plan), keys },
        Order::None | Order::Lost => plan,
    }
}

/// Returns whether equal values of a type cannot be told apart.
fn is_exact(data_type: DataType) -> bool {
    !matches!(
        data_type,
        DataType::Numeric
            | DataType::Float4
            | DataType::Float8
            | DataType::Char
            | DataType::Interval
    )
}
