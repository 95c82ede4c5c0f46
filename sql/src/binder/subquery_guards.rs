//! Guards of subqueries that were pulled up from FROM.
//!
//! A guard is the condition under which the value of a subquery is read; the executor runs the
//! subquery for no other row. [`Rows::place`](crate::binder::rows::Rows::place) derives it from
//! the expression that contains the subquery. For a subquery in the select list of a query in
//! FROM, the readers are the expressions of the outer query after
//! [`pull_up`](crate::binder::pull_up); this module derives the guard from them.
//!
//! A guard may be wider than the condition, never narrower: volatile conditions, and conditions
//! over columns that are computed above the subquery, are left out.

use std::sync::Arc;

use types::expr::Expr;

use crate::binder::guard::{is_not_false, is_not_true, is_null};
use crate::binder::tree::{conjunction, for_each_column, width};
use crate::logical::{Apply, ApplyKind, Logical};

/// The maximum number of alternative conditions in a guard; above it, no guard is made.
const ALTERNATIVES_MAX: usize = 16;

/// The maximum number of conditions collected around an expression; further ones are left out.
const TERMS_MAX: usize = 64;

/// The maximum number of expression nodes of a guard; above it, the guard is not changed.
const NODES_MAX: usize = 512;

/// Uses of the columns of subqueries.
struct ColumnUses {
    /// The columns of the subqueries, ascending.
    wanted: Vec<usize>,
    uses: Vec<ColumnUse>,
}

/// A use of a column.
struct ColumnUse {
    column: usize,
    /// Conditions that hold for a row where the column is read.
    terms: Vec<Expr>,
    /// True if a condition was left out of the terms.
    is_wider: bool,
}

/// The condition under which a column is read.
enum ReadCondition {
    Never,
    Always,
    When { condition: Expr, is_wider: bool },
}

/// The conditions of the enclosing expressions during the walk.
#[derive(Default)]
struct PathConditions {
    terms: Vec<Expr>,
    is_wider: bool,
}

/// Adds guards to the subqueries at the top of a plan, given the expressions that read its rows,
/// each with the condition under which it is evaluated, if any.
pub(super) fn guard_subqueries(plan: &mut Logical, read: &[(&Expr, Option<&Expr>)]) {
    let wanted = subquery_columns(plan);
    if wanted.is_empty() {
        return;
    }
    let mut demand = ColumnUses { wanted, uses: Vec::new() };
    for (expr, condition) in read {
        demand.add(expr, *condition, usize::MAX);
    }
    let mut next = Some(plan);
    while let Some(plan) = next {
        next = match plan {
            Logical::Filter { input, predicate } => {
                demand.pass_filter();
                demand.add(predicate, None, usize::MAX);
                Some(input)
            }
            Logical::Project { input, expressions } if adds_columns(input, expressions) => {
                expressions[width(input)..].iter().for_each(|expr| {
                    demand.add(expr, None, usize::MAX);
                });
                Some(input)
            }
            Logical::Apply(apply) if is_value(apply) => {
                demand.guard(apply);
                Some(&mut apply.input)
            }
            _ => None,
        };
    }
}

/// Returns whether a subquery appends one value to each row.
pub(super) fn is_value(apply: &Apply) -> bool {
    !matches!(apply.kind, ApplyKind::Rows { .. })
}

/// Returns whether a projection returns the columns of its input followed by others.
pub(super) fn adds_columns(input: &Logical, expressions: &[Expr]) -> bool {
    let is_same =
        |(at, expr): (usize, &Expr)| matches!(expr, Expr::Column { index, .. } if *index == at);
    let width = width(input);
    expressions.len() > width && expressions[..width].iter().enumerate().all(is_same)
}

/// Returns the columns of the subqueries at the top of a plan.
pub(super) fn subquery_columns(plan: &Logical) -> Vec<usize> {
    let mut found = Vec::new();
    let mut next = Some(plan);
    while let Some(plan) = next {
        next = match plan {
            Logical::Filter { input, .. } => Some(input),
            Logical::Project { input, expressions } if adds_columns(input, expressions) => {
                Some(input)
            }
            Logical::Apply(apply) if is_value(apply) => {
                found.push(width(&apply.input));
                Some(&apply.input)
            }
            _ => None,
        };
    }
    found.reverse();
    found
}

impl ColumnUses {
    /// Records the uses of columns below `end` in an expression.
    fn add(&mut self, expr: &Expr, condition: Option<&Expr>, end: usize) {
        let mut around = PathConditions::default();
        if let Some(condition) = condition {
            around.enter(condition.clone());
        }
        self.walk(expr, &mut around, end);
    }

    fn is_read(&self, expr: &Expr, end: usize) -> bool {
        let mut found = false;
        for_each_column(expr, &mut |index| {
            found |= index < end && self.wanted.binary_search(&index).is_ok();
        });
        found
    }

    fn walk(&mut self, expr: &Expr, around: &mut PathConditions, end: usize) {
        if !self.is_read(expr, end) {
            return;
        }
        let before = (around.terms.len(), around.is_wider);
        match expr {
            Expr::Column { index, .. } => {
                let (terms, is_wider) = (around.terms.clone(), around.is_wider);
                self.uses.push(ColumnUse { column: *index, terms, is_wider });
            }
            Expr::And(operands) => self.walk_operands(operands, &is_not_false, around, end),
            Expr::Or(operands) => self.walk_operands(operands, &is_not_true, around, end),
            Expr::Coalesce { operands, .. } => {
                self.walk_operands(operands, &is_null, around, end);
            }
            Expr::InList { operand, list } => {
                self.walk(operand, around, end);
                let differs = |item: Expr| {
                    let list = Arc::new(vec![item]);
                    is_not_true(Expr::InList { operand: operand.clone(), list })
                };
                self.walk_operands(list, &differs, around, end);
            }
            Expr::Case { branches, otherwise, .. } => {
                for (condition, result) in branches {
                    self.walk(condition, around, end);
                    let outside = (around.terms.len(), around.is_wider);
                    around.enter(condition.clone());
                    self.walk(result, around, end);
                    around.leave(outside);
                    around.enter(is_not_true(condition.clone()));
                }
                self.walk(otherwise, around, end);
            }
            other => other.for_each_child(&mut |operand| self.walk(operand, around, end)),
        }
        around.leave(before);
    }

    /// Walks through operands that are evaluated in order; `goes_on` returns the condition under
    /// which evaluation continues after an operand.
    fn walk_operands(
        &mut self,
        operands: &[Expr],
        goes_on: &dyn Fn(Expr) -> Expr,
        around: &mut PathConditions,
        end: usize,
    ) {
        let Some(last) = operands.iter().rposition(|operand| self.is_read(operand, end)) else {
            return;
        };
        for (at, operand) in operands[..=last].iter().enumerate() {
            self.walk(operand, around, end);
            if at < last {
                around.enter(goes_on(operand.clone()));
            }
        }
    }

    /// Accounts for a filter: expressions above it are not evaluated for rows that it removes, so
    /// a condition that may fail must not become a guard below it.
    fn pass_filter(&mut self) {
        for one in &mut self.uses {
            if one.terms.iter().any(Expr::may_fail) {
                one.terms.clear();
                one.is_wider = true;
            }
        }
    }

    /// Adds a guard to a subquery from the uses so far, then records the columns that the subquery
    /// itself uses.
    fn guard(&mut self, apply: &mut Apply) {
        let column = width(&apply.input);
        if let ReadCondition::When { condition, is_wider } = self.reading(column) {
            // The uses already include those by the expressions of the existing guard.
            let known = apply.guard.take().filter(|_| is_wider);
            apply.guard = conjunction([condition].into_iter().chain(known).collect());
        }
        let guard = apply.guard.clone();
        let types = apply.input.column_types();
        for (_, column) in &apply.bindings {
            self.add(&Expr::column(*column, &types[*column]), guard.as_ref(), usize::MAX);
        }
        if let Some(guard) = &guard {
            self.add(guard, None, usize::MAX);
        }
        if let Some(condition) = apply.kind.condition() {
            self.add(condition, guard.as_ref(), column);
        }
    }

    /// Returns the condition under which a column is read, in terms of the columns before it.
    fn reading(&self, column: usize) -> ReadCondition {
        let mut alternatives: Vec<Expr> = Vec::new();
        let mut is_wider = false;
        let mut is_read = false;
        for one in self.uses.iter().filter(|one| one.column == column) {
            is_read = true;
            is_wider |= one.is_wider;
            let mut terms = one.terms.clone();
            terms.retain(|term| {
                let mut is_there = true;
                for_each_column(term, &mut |index| is_there &= index < column);
                is_there
            });
            is_wider |= terms.len() < one.terms.len();
            match conjunction(terms) {
                None => return ReadCondition::Always,
                Some(all) if alternatives.contains(&all) => {}
                Some(all) => alternatives.push(all),
            }
        }
        match alternatives.len() {
            _ if !is_read => ReadCondition::Never,
            _ if nodes(&alternatives) > NODES_MAX => ReadCondition::Always,
            1 => ReadCondition::When { condition: alternatives.remove(0), is_wider },
            2..=ALTERNATIVES_MAX => {
                ReadCondition::When { condition: Expr::Or(alternatives), is_wider }
            }
            _ => ReadCondition::Always,
        }
    }
}

fn nodes(expressions: &[Expr]) -> usize {
    let mut nodes = 0;
    expressions.iter().for_each(|expr| expr.walk(&mut |_| nodes += 1));
    nodes
}

impl PathConditions {
    fn enter(&mut self, condition: Expr) {
        match condition.is_session_only() || self.terms.len() >= TERMS_MAX {
            true => self.is_wider = true,
            false => self.terms.push(condition),
        }
    }

    fn leave(&mut self, (count, is_wider): (usize, bool)) {
        self.terms.truncate(count);
        self.is_wider = is_wider;
    }
}
