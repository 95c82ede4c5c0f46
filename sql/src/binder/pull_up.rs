//! Pull-up of computed columns of queries in FROM: they are evaluated where the outer query reads
//! them, and not for rows for which it does not.
//!
//! ```text
//! SELECT CASE WHEN a > 0 THEN x END FROM (SELECT a, 1 / b AS x FROM t) q
//!
//! Project: CASE WHEN a > 0 THEN x        Project: CASE WHEN a > 0 THEN 1 / b
//! └─ Project: a, 1 / b             ──►   └─ Scan: t
//!    └─ Scan: t
//! ```
//!
//! The columns of a query *float* ([`FloatingColumns`]) upwards through filters, joins (from the
//! nullable side of an outer join only strict ones, which are NULL there anyway), subqueries and
//! window functions, up to a node that computes columns, where they are substituted for the
//! references to them. Subqueries in them stay in place, or move above a join, and get guards from
//! the expressions that read them ([`subquery_guards`](crate::binder::subquery_guards)).
//!
//! A query floats if PostgreSQL pulls it up: it has no groups, window functions, set-returning
//! functions, DISTINCT, ORDER BY, LIMIT or set operations, and no volatile columns; and if that
//! makes a difference: a column may fail, or is a subquery or a constant. WITH queries that are
//! read once, and views, are queries in FROM at this point.
//!
//! Source: PostgreSQL's `pull_up_simple_subquery` and `is_simple_subquery` (prepjointree.c).

use types::expr::Expr;
use types::{DataType, function};

use crate::binder::guard::Guard;
use crate::binder::parameters::Parameters;
use crate::binder::subquery_guards::{guard_subqueries, is_value, subquery_columns};
use crate::binder::tree::{
    for_each_column, for_each_expression, for_each_input, identity, map_columns, walk_plan, width,
};
use crate::logical::{Apply, ApplyKind, Join, JoinKind, Logical};

/// The factor by which expressions may grow.
const GROWTH: usize = 4;

/// The number of nodes to which expressions may grow. Nested queries that each read a column twice
/// double the size at each level.
const GROWN_MAX: usize = 512;

/// The maximum number of nodes of an expression that a subquery evaluates itself instead of
/// reading its value as a parameter.
const PASSED_MAX: usize = 64;

/// A plan, with columns over its rows that are not yet computed.
struct FloatingColumns {
    plan: Logical,
    /// `None` if they are the plan's own columns.
    columns: Option<Vec<Expr>>,
    /// True if floating columns of an input were substituted into the columns.
    is_merged: bool,
}

/// Pulls up columns in a plan; returns whether it changed.
pub(super) fn pull_up(plan: &mut Logical, parameters: &mut Parameters) -> bool {
    if !has_floating(plan, false) {
        return false;
    }
    settle(plan, parameters);
    true
}

/// Returns whether a projection that computes columns is below another node that does.
fn has_floating(plan: &Logical, mut is_below: bool) -> bool {
    match plan {
        Logical::Project { input, expressions } => {
            let is_output = !is_of_binder(input, expressions);
            if is_below && is_output && is_worth(input, expressions) {
                return true;
            }
            is_below |= is_output;
        }
        Logical::Apply(apply) if is_value(apply) => {
            return has_floating(&apply.subquery, false) || has_floating(&apply.input, is_below);
        }
        Logical::Sort { .. } | Logical::Limit { .. } => {}
        _ => is_below = true,
    }
    plan.inputs().into_iter().any(|input| has_floating(input, is_below))
}

/// Returns whether a projection is not a select list, but appends a column that the binder has
/// made for a guard of subqueries ([`Rows::settled`](crate::binder::rows::Rows::settled)).
fn is_of_binder(input: &Logical, expressions: &[Expr]) -> bool {
    let Some((added, rest)) = expressions.split_last() else { return false };
    *added.data_type() == DataType::Bool
        && !matches!(added, Expr::Column { .. })
        && rest.iter().all(|one| matches!(one, Expr::Column { .. }))
        && is_reading(added, &subquery_columns(input))
}

fn is_reading(expr: &Expr, columns: &[usize]) -> bool {
    let mut found = false;
    for_each_column(expr, &mut |index| found |= columns.binary_search(&index).is_ok());
    found
}

fn take(plan: &mut Logical) -> Logical {
    std::mem::replace(plan, Logical::Append { inputs: Vec::new() })
}

fn settle(plan: &mut Logical, parameters: &mut Parameters) {
    *plan = floating(take(plan), parameters).settled();
}

impl FloatingColumns {
    fn none(plan: Logical) -> FloatingColumns {
        FloatingColumns { plan, columns: None, is_merged: false }
    }

    fn of(plan: Logical, columns: Vec<Expr>) -> FloatingColumns {
        FloatingColumns { plan, columns: Some(columns), is_merged: true }
    }

    /// Returns the plan with a projection that computes its columns.
    fn settled(mut self) -> Logical {
        let Some(expressions) = self.columns else { return self.plan };
        if self.is_merged {
            guard_by(&mut self.plan, &expressions);
        }
        Logical::Project { input: Box::new(self.plan), expressions }
    }

    /// Stops floating: a projection computes the columns here.
    fn settle(&mut self) {
        let (plan, columns) = (take(&mut self.plan), self.columns.take());
        let is_merged = std::mem::take(&mut self.is_merged);
        self.plan = FloatingColumns { plan, columns, is_merged }.settled();
    }

    /// Computes a guard column of the binder, the last of the expressions, after the columns that
    /// are still needed.
    fn with_column(mut self, mut expressions: Vec<Expr>) -> FloatingColumns {
        if !self.put_into(expressions.iter_mut().collect()) {
            let input = Box::new(self.plan);
            return FloatingColumns::none(Logical::Project { input, expressions });
        }
        let mut own = identity(&self.plan.column_types());
        if let Some(value) = expressions.last_mut() {
            let above = Expr::column(own.len(), value.data_type());
            own.push(std::mem::replace(value, above));
        }
        let input = Box::new(self.plan);
        FloatingColumns::of(Logical::Project { input, expressions: own }, expressions)
    }

    /// Computes the columns here that may not be NULL in a null-extended row.
    fn settle_unless_padded(&mut self) {
        let Some(columns) = &mut self.columns else { return };
        let mut expressions = identity(&self.plan.column_types());
        let width = expressions.len();
        for column in columns {
            let mut reads = false;
            for_each_column(column, &mut |_| reads = true);
            if !reads || !is_strict(column) {
                let above = Expr::column(expressions.len(), column.data_type());
                expressions.push(std::mem::replace(column, above));
            }
        }
        if expressions.len() > width {
            let input = Box::new(take(&mut self.plan));
            self.plan = Logical::Project { input, expressions };
        }
    }

    /// Substitutes the columns into expressions over them. If these would become too large, the
    /// columns are computed here instead. Returns whether they were substituted.
    fn put_into(&mut self, mut expressions: Vec<&mut Expr>) -> bool {
        let Some(columns) = &self.columns else { return false };
        let put = |expr: &&mut Expr| substituted((*expr).clone(), columns);
        let changed: Vec<Expr> = expressions.iter().map(put).collect();
        let before = size(expressions.iter().map(|expr| &**expr)) + size(columns);
        if is_overgrown(size(&changed), before) {
            self.settle();
            return false;
        }
        for (expr, changed) in expressions.iter_mut().zip(changed) {
            **expr = changed;
        }
        true
    }

    /// Returns the columns as expressions over the plan.
    fn expressions(&self) -> Vec<Expr> {
        self.columns.clone().unwrap_or_else(|| identity(&self.plan.column_types()))
    }
}

/// Returns whether an expression is NULL if any column in it is.
fn is_strict(expr: &Expr) -> bool {
    let is_own = match expr {
        Expr::Column { .. } | Expr::Cast { .. } | Expr::Not(_) => true,
        Expr::Constant { .. } | Expr::Parameter { .. } => true,
        Expr::Call { function, .. } => function::signature(*function).strict,
        _ => false,
    };
    let mut all = is_own;
    expr.for_each_child(&mut |child| all = all && is_strict(child));
    all
}

/// Returns whether expressions would become too large, given the number of nodes after and before.
fn is_overgrown(now: usize, before: usize) -> bool {
    now > GROWTH * before || (now > before && now > GROWN_MAX)
}

fn size<'e>(expressions: impl IntoIterator<Item = &'e Expr>) -> usize {
    let mut nodes = 0;
    expressions.into_iter().for_each(|expr| expr.walk(&mut |_| nodes += 1));
    nodes
}

/// Returns an expression with its column references replaced by these expressions.
fn substituted(expr: Expr, columns: &[Expr]) -> Expr {
    expr.transform(&mut |node| match node {
        Expr::Column { index, .. } => columns[index].clone(),
        node => node,
    })
}

fn shifted(mut expr: Expr, by: usize) -> Expr {
    map_columns(&mut expr, &|index| index + by);
    expr
}

fn guard_by(plan: &mut Logical, expressions: &[Expr]) {
    let read: Vec<(&Expr, Option<&Expr>)> = expressions.iter().map(|expr| (expr, None)).collect();
    guard_subqueries(plan, &read);
}

fn floating(plan: Logical, parameters: &mut Parameters) -> FloatingColumns {
    match plan {
        Logical::Project { input, expressions } => {
            floating_project(*input, expressions, parameters)
        }
        Logical::Filter { input, mut predicate } => {
            let mut below = floating(*input, parameters);
            below.put_into(vec![&mut predicate]);
            let input = Box::new(take(&mut below.plan));
            FloatingColumns { plan: Logical::Filter { input, predicate }, ..below }
        }
        Logical::Join(join) => floating_join(join, parameters),
        Logical::Apply(apply) if is_value(&apply) => floating_apply(apply, parameters),
        Logical::Apply(apply) => floating_lateral(apply, parameters),
        Logical::Window(_) | Logical::ProjectSet(_) => floating_added(plan, parameters),
        Logical::Aggregate { .. } | Logical::GroupingSets(_) => {
            FloatingColumns::none(grouped(plan, parameters))
        }
        mut other => {
            for_each_input(&mut other, &mut |input| settle(input, parameters));
            FloatingColumns::none(other)
        }
    }
}

fn floating_project(
    input: Logical,
    mut expressions: Vec<Expr>,
    parameters: &mut Parameters,
) -> FloatingColumns {
    let is_output = !is_of_binder(&input, &expressions);
    let mut below = floating(input, parameters);
    if !is_output {
        return below.with_column(expressions);
    }
    let is_merged = below.put_into(expressions.iter_mut().collect());
    let floats = is_simple(&below.plan)
        && is_worth(&below.plan, &expressions)
        && !is_volatile(&below.plan, &expressions);
    let all = FloatingColumns { plan: below.plan, columns: Some(expressions), is_merged };
    match floats {
        true => all,
        false => FloatingColumns::none(all.settled()),
    }
}

/// Returns whether a plan consists only of FROM and WHERE.
fn is_simple(plan: &Logical) -> bool {
    match plan {
        Logical::Filter { input, .. } => is_simple(input),
        Logical::Apply(apply) => is_simple(&apply.input),
        Logical::Project { input, expressions } => {
            !expressions.iter().any(Expr::is_volatile) && is_simple(input)
        }
        Logical::Join(_)
        | Logical::Scan(_)
        | Logical::SystemRows(_)
        | Logical::Values { .. }
        | Logical::Constants(_)
        | Logical::CteScan(_) => true,
        _ => false,
    }
}

/// Returns whether it makes a difference where the columns are evaluated.
fn is_worth(plan: &Logical, columns: &[Expr]) -> bool {
    let subqueries = subquery_columns(plan);
    columns.iter().any(|column| {
        let is_constant = matches!(column, Expr::Constant { .. });
        is_constant || column.may_fail() || is_reading(column, &subqueries)
    })
}

/// Returns whether the columns, or subqueries that they read, are volatile.
fn is_volatile(plan: &Logical, columns: &[Expr]) -> bool {
    let mut read = Vec::new();
    columns.iter().for_each(|column| for_each_column(column, &mut |index| read.push(index)));
    let mut next = Some(plan);
    let mut found = columns.iter().any(Expr::is_volatile);
    while let Some(plan) = next {
        next = match plan {
            Logical::Filter { input, .. } | Logical::Project { input, .. } => Some(input),
            Logical::Apply(apply) => {
                let is_read = is_value(apply) && read.contains(&width(&apply.input));
                found |= is_read && apply.subquery.has_effects();
                Some(&apply.input)
            }
            _ => None,
        };
    }
    found
}

/// Lets columns float from the inputs of a join; from a nullable side only strict ones.
fn floating_join(mut join: Join, parameters: &mut Parameters) -> FloatingColumns {
    let mut left = floating(take(&mut join.left), parameters);
    let mut right = floating(take(&mut join.right), parameters);
    let (pads_left, pads_right) = match join.kind {
        JoinKind::Inner => (false, false),
        JoinKind::Left => (false, true),
        JoinKind::Right => (true, false),
        JoinKind::Full => (true, true),
        // Semi-joins and anti-joins come from the planner.
        JoinKind::Semi | JoinKind::Anti => {
            left.settle();
            right.settle();
            (true, true)
        }
    };
    if pads_left {
        left.settle_unless_padded();
    }
    if pads_right {
        right.settle_unless_padded();
    }
    let mut both = FloatingColumns::none(Logical::Append { inputs: Vec::new() });
    let mut first_right = width(&left.plan);
    if left.columns.is_some() || right.columns.is_some() {
        let of_right = right.expressions().into_iter().map(|expr| shifted(expr, first_right));
        let columns: Vec<Expr> = left.expressions().into_iter().chain(of_right).collect();
        both = FloatingColumns::of(both.plan, columns);
        if !both.put_into(vec![&mut join.on]) {
            both.columns = None;
            left.settle();
            right.settle();
            first_right = width(&left.plan);
        }
    }
    let raised = [
        if pads_left { Vec::new() } else { raise(&mut left, &join.on, 0) },
        if pads_right { Vec::new() } else { raise(&mut right, &join.on, first_right) },
    ];
    let widths = [width(&left.plan), width(&right.plan)];
    let raised = RaisedSubqueries { widths, raised };
    raised.renumber(&mut join.on);
    (*join.left, *join.right) = (left.plan, right.plan);
    both.plan = raised.over(Logical::Join(join));
    if let Some(columns) = &mut both.columns {
        columns.iter_mut().for_each(|column| raised.renumber(column));
    }
    both
}

/// Subqueries that move from the inputs of a join to above it.
struct RaisedSubqueries {
    /// The number of columns of each side that stay below.
    widths: [usize; 2],
    /// The subqueries of each side, the lowest first.
    raised: [Vec<Apply>; 2],
}

impl RaisedSubqueries {
    /// Returns the position of a side's column above the join and the subqueries.
    fn place(&self, side: usize, index: usize) -> usize {
        let below = self.widths[0] + self.widths[1];
        match index.checked_sub(self.widths[side]) {
            None => index + side * self.widths[0],
            Some(nth) => below + side * self.raised[0].len() + nth,
        }
    }

    /// Renumbers an expression over the original columns of both sides.
    fn renumber(&self, expr: &mut Expr) {
        let left = self.widths[0] + self.raised[0].len();
        map_columns(expr, &|index| match index.checked_sub(left) {
            None => self.place(0, index),
            Some(index) => self.place(1, index),
        });
    }

    /// Adds the subqueries above the join.
    fn over(&self, mut plan: Logical) -> Logical {
        for (side, raised) in self.raised.iter().enumerate() {
            for (nth, apply) in raised.iter().enumerate() {
                let (end, end_above) = (self.widths[side] + nth, width(&plan));
                let mut apply = apply.clone();
                let place = |index: usize| match index.checked_sub(end) {
                    None => self.place(side, index),
                    Some(of_subquery) => end_above + of_subquery,
                };
                apply.expressions_mut().for_each(|expr| map_columns(expr, &place));
                apply.bindings.iter_mut().for_each(|(_, column)| *column = place(*column));
                *apply.input = plan;
                plan = Logical::Apply(apply);
            }
        }
        plan
    }
}

/// Removes, from the top of a side, the subqueries that may fail and that the join condition does
/// not read. `first` is the position of the side's first column in the condition.
fn raise(side: &mut FloatingColumns, on: &Expr, first: usize) -> Vec<Apply> {
    let mut raised = Vec::new();
    if side.columns.is_some() {
        let mut used = Vec::new();
        for_each_column(on, &mut |index| used.push(index));
        raise_from(&mut side.plan, &|index| used.contains(&(index + first)), &mut raised);
    }
    raised.reverse();
    raised
}

fn raise_from(plan: &mut Logical, is_used: &dyn Fn(usize) -> bool, raised: &mut Vec<Apply>) {
    match plan {
        Logical::Filter { input, predicate } => {
            let mut used = Vec::new();
            for_each_column(predicate, &mut |index| used.push(index));
            raise_from(input, &|index| is_used(index) || used.contains(&index), raised);
        }
        Logical::Apply(apply)
            if is_value(apply)
                && !is_used(width(&apply.input))
                && !apply.subquery.has_effects()
                && (apply.subquery.may_fail() || apply.kind == ApplyKind::Scalar) =>
        {
            let Logical::Apply(mut apply) = take(plan) else { return };
            *plan = take(&mut apply.input);
            raised.push(apply);
            raise_from(plan, is_used, raised);
        }
        _ => {}
    }
}

/// Replaces the columns of the input that a subquery uses by parameters. The subquery evaluates
/// floating columns that may fail itself, because it may not need them. The others are computed
/// below.
fn bind(apply: &mut Apply, below: &mut FloatingColumns, parameters: &mut Parameters) {
    let guard = apply.guard.clone().map_or_else(Guard::default, Guard::of);
    let columns = below.expressions();
    let types = below.plan.column_types();
    let mut expressions = identity(&types);
    let is_fixed = apply.subquery.has_effects();
    let mut bindings: Vec<(usize, usize)> = Vec::new();
    for (parameter, column) in std::mem::take(&mut apply.bindings) {
        let value = columns[column].clone();
        if let Expr::Column { index, .. } = value {
            bindings.push((parameter, index));
        } else if is_fixed || !value.may_fail() || size([&value]) > PASSED_MAX {
            bindings.push((parameter, expressions.len()));
            expressions.push(guard.guarded(value));
        } else {
            let value = value.transform(&mut |node| match node {
                Expr::Column { index, data_type } => {
                    let parameter = parameters.outer();
                    bindings.push((parameter, index));
                    Expr::Parameter { index: parameter, data_type }
                }
                node => node,
            });
            put_in_place(&mut apply.subquery, parameter, &value);
        }
    }
    apply.bindings = bindings;
    if expressions.len() > types.len() {
        let input = Box::new(take(&mut below.plan));
        below.plan = Logical::Project { input, expressions };
    }
}

fn put_in_place(plan: &mut Logical, parameter: usize, value: &Expr) {
    walk_plan(plan, &mut |step| {
        for_each_expression(step, &mut |expr| {
            expr.walk_mut(&mut |node| {
                if matches!(node, Expr::Parameter { index, .. } if *index == parameter) {
                    node.clone_from(value);
                }
            });
        });
    });
}

fn floating_apply(mut apply: Apply, parameters: &mut Parameters) -> FloatingColumns {
    let mut below = floating(take(&mut apply.input), parameters);
    settle(&mut apply.subquery, parameters);
    let changed = below.columns.as_ref().and_then(|columns| over_floating(&apply, columns));
    let Some(changed) = changed else {
        *apply.input = below.settled();
        return FloatingColumns::none(Logical::Apply(apply));
    };
    for (expr, changed) in apply.expressions_mut().zip(changed) {
        *expr = changed;
    }
    bind(&mut apply, &mut below, parameters);
    let width = width(&below.plan);
    let place = |index: usize| match index.checked_sub(OF_SUBQUERY) {
        None => index,
        Some(of_subquery) => width + of_subquery,
    };
    apply.expressions_mut().for_each(|expr| map_columns(expr, &place));
    let added = apply.kind.added_types(apply.subquery.column_types());
    let mut columns = below.expressions();
    columns.extend(behind(width, &added));
    *apply.input = below.plan;
    FloatingColumns::of(Logical::Apply(apply), columns)
}

/// The first position of the subquery's columns in its comparison, until their final position is
/// known.
const OF_SUBQUERY: usize = 1 << 43;

/// Returns the expressions of a subquery with the floating columns substituted; `None` if they
/// would become too large.
fn over_floating(apply: &Apply, columns: &[Expr]) -> Option<Vec<Expr>> {
    let of_subquery = behind(OF_SUBQUERY, &apply.subquery.column_types()).collect::<Vec<Expr>>();
    let all = [columns, &of_subquery].concat();
    let changed = apply.expressions().map(|expr| substituted(expr.clone(), &all));
    let changed: Vec<Expr> = changed.collect();
    let before = size(apply.expressions()) + size(columns);
    (!is_overgrown(size(&changed), before)).then_some(changed)
}

/// Returns columns with positions from `width`.
fn behind(width: usize, types: &[DataType]) -> impl Iterator<Item = Expr> {
    types.iter().enumerate().map(move |(at, data_type)| Expr::column(width + at, data_type))
}

/// Lets columns float through LATERAL and its joins.
fn floating_lateral(mut apply: Apply, parameters: &mut Parameters) -> FloatingColumns {
    let mut below = floating(take(&mut apply.input), parameters);
    let mut subquery = floating(take(&mut apply.subquery), parameters);
    if matches!(apply.kind, ApplyKind::Rows { outer: true, .. }) {
        subquery.settle_unless_padded();
    }
    if below.columns.is_none() && subquery.columns.is_none() {
        (*apply.input, *apply.subquery) = (below.plan, subquery.plan);
        return FloatingColumns::none(Logical::Apply(apply));
    }
    let own = below.expressions();
    let bindings = apply.bindings.clone();
    *apply.subquery = subquery.plan;
    bind(&mut apply, &mut below, parameters);
    subquery.plan = take(&mut apply.subquery);
    let width = width(&below.plan);
    let of_subquery = subquery.expressions().into_iter().map(|expr| {
        shifted(expr, width).transform(&mut |node| match node {
            Expr::Parameter { index, .. } => {
                let outer = bindings.iter().find(|(parameter, _)| *parameter == index);
                outer.map_or(node, |(_, column)| own[*column].clone())
            }
            node => node,
        })
    });
    let columns: Vec<Expr> = own.iter().cloned().chain(of_subquery).collect();
    apply.expressions_mut().for_each(|expr| *expr = substituted(expr.clone(), &columns));
    (*apply.input, *apply.subquery) = (below.plan, subquery.plan);
    FloatingColumns::of(Logical::Apply(apply), columns)
}

/// Lets columns float through nodes that append columns: window functions and set-returning
/// functions.
fn floating_added(mut plan: Logical, parameters: &mut Parameters) -> FloatingColumns {
    let types = plan.column_types();
    let mut below = FloatingColumns::none(Logical::Append { inputs: Vec::new() });
    let is_fixed = matches!(&plan, Logical::ProjectSet(sets) if !sets.unread.is_empty());
    for_each_input(&mut plan, &mut |input| {
        below = floating(take(input), parameters);
        if is_fixed {
            below.settle();
        }
    });
    let own = below.expressions().len();
    let mut expressions = Vec::new();
    for_each_expression(&mut plan, &mut |expr| expressions.push(expr.clone()));
    let is_put = below.put_into(expressions.iter_mut().collect());
    if is_put {
        let mut changed = expressions.into_iter();
        for_each_expression(&mut plan, &mut |expr| {
            if let Some(changed) = changed.next() {
                *expr = changed;
            }
        });
    }
    let mut columns = below.expressions();
    columns.extend(behind(width(&below.plan), &types[own..]));
    for_each_input(&mut plan, &mut |input| *input = take(&mut below.plan));
    match is_put {
        true => FloatingColumns::of(plan, columns),
        false => FloatingColumns::none(plan),
    }
}

/// Substitutes floating columns into the keys and arguments of an Aggregate node.
fn grouped(mut plan: Logical, parameters: &mut Parameters) -> Logical {
    let mut below = FloatingColumns::none(Logical::Append { inputs: Vec::new() });
    for_each_input(&mut plan, &mut |input| below = floating(take(input), parameters));
    let (group_by, aggregates) = match &mut plan {
        Logical::Aggregate { group_by, aggregates, .. } => (group_by, aggregates),
        Logical::GroupingSets(grouping) => (&mut grouping.group_by, &mut grouping.aggregates),
        _ => unreachable!("the caller matched the step"),
    };
    let of_aggregates = aggregates.iter_mut().flat_map(|aggregate| aggregate.expressions_mut());
    if below.put_into(group_by.iter_mut().chain(of_aggregates).collect()) {
        let mut read: Vec<(&Expr, Option<&Expr>)> = Vec::new();
        read.extend(group_by.iter().map(|key| (key, None)));
        for aggregate in aggregates.iter() {
            let filter = aggregate.filter.as_ref();
            read.extend(filter.map(|filter| (filter, None)));
            let keys = aggregate.order_by.iter().map(|key| &key.expression);
            read.extend(aggregate.arguments.iter().chain(keys).map(|expr| (expr, filter)));
        }
        guard_subqueries(&mut below.plan, &read);
    }
    for_each_input(&mut plan, &mut |input| *input = take(&mut below.plan));
    plan
}
