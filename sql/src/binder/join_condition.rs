//! ON conditions with subqueries.
//!
//! For an inner join, they are evaluated as a filter over the joined rows. For an outer join, a
//! subquery is evaluated on one input, as an extra column that the condition reads and a
//! projection then removes. If a subquery uses columns of both sides, or may fail for a row
//! without a partner, the nullable side becomes LATERAL: the condition filters it for each row of
//! the other side. A full join does not support such subqueries.

use types::expr::Expr;

use crate::binder::level::{AGGREGATE, Binder, QueryLevel, SUBQUERY, SUBQUERY_COLUMN, SubqueryUse};
use crate::binder::operators::all_of;
use crate::binder::rows::{Rows, has_subquery};
use crate::binder::tree::{conjuncts, for_each_column, identity, map_columns};
use crate::binder::typed::boolean;
use crate::error::{Error, Result};
use crate::logical::{ApplyKind, JoinKind};

/// The side of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Binder<'_> {
    /// Adds a join on a condition that was bound over the columns of both sides; `bindings` are
    /// the parameters of a LATERAL right side.
    pub(super) fn join_on(
        &mut self,
        rows: &mut Rows,
        (right, bindings): (Rows, Vec<(usize, usize)>),
        kind: JoinKind,
        on: Expr,
        level: &QueryLevel,
    ) -> Result<()> {
        if kind != JoinKind::Inner {
            let takes_both = self.takes_both(&on, level, rows.types.len(), kind)?;
            if takes_both {
                self.outer_join_lateral(rows, (right, bindings), kind, on, &level.subqueries);
            } else {
                outer_join(rows, (right, bindings), kind, on, &level.subqueries);
            }
            // The subqueries of the next condition, or of the query, have the same numbers.
            rows.begin_level();
            return Ok(());
        }
        let (late, early): (Vec<Expr>, Vec<Expr>) =
            conjuncts(on).into_iter().partition(has_subquery);
        let on = if early.is_empty() { boolean(true) } else { all_of(early) };
        rows.join_lateral(right, kind, on, bindings);
        if !late.is_empty() {
            select(rows, all_of(late), &level.subqueries);
        }
        Ok(())
    }

    /// Returns whether an outer join needs a LATERAL side: a subquery of its condition uses
    /// columns of both sides, or may fail or have effects.
    fn takes_both(
        &self,
        on: &Expr,
        level: &QueryLevel,
        left_width: usize,
        kind: JoinKind,
    ) -> Result<bool> {
        for index in subqueries_of(on) {
            let subquery = &level.subqueries[index - SUBQUERY];
            if side_of(subquery, &level.subqueries, left_width).is_some() {
                let is_asked_of_all = kind == JoinKind::Full
                    || subquery.bindings.is_empty()
                    || !(subquery.plan.may_fail() || subquery.plan.has_effects());
                if is_asked_of_all {
                    continue;
                }
                return Ok(true);
            }
            if kind == JoinKind::Full {
                let what = "a subquery that references both sides in the condition of a full join";
                let hint = "Join one side with the rows of the subquery in FROM.";
                return Err(Error::not_supported(what, hint).at(subquery.position));
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Joins each row of the preserved side with the rows of the nullable side that satisfy the
    /// condition.
    fn outer_join_lateral(
        &mut self,
        rows: &mut Rows,
        (mut right, mut bindings): (Rows, Vec<(usize, usize)>),
        kind: JoinKind,
        mut on: Expr,
        subqueries: &[SubqueryUse],
    ) {
        let left_width = rows.types.len();
        let of_padded = |index: usize| (index >= left_width) == (kind == JoinKind::Left);
        let start = if kind == JoinKind::Left { left_width } else { 0 };
        let mut taken: Vec<(usize, Expr)> = Vec::new();
        let mut take = |expr: &mut Expr| {
            let whole = std::mem::replace(expr, Expr::And(Vec::new()));
            *expr = whole.transform(&mut |part| match part {
                Expr::Column { index, data_type } if index < AGGREGATE && of_padded(index) => {
                    Expr::Column { index: index - start, data_type }
                }
                Expr::Column { index, data_type } if index < AGGREGATE => {
                    let column = Expr::Column {
                        index: index - (left_width - start),
                        data_type: data_type.clone(),
                    };
                    let known = taken.iter().find(|(_, of)| *of == column).map(|(at, _)| *at);
                    let parameter = known.unwrap_or_else(|| self.parameters.outer());
                    if known.is_none() {
                        taken.push((parameter, column));
                    }
                    Expr::Parameter { index: parameter, data_type }
                }
                part => part,
            });
        };
        take(&mut on);
        let mut subqueries = subqueries.to_vec();
        for subquery in &mut subqueries {
            subquery.bindings.iter_mut().for_each(|(_, value)| take(value));
            subquery.kind.condition_mut().into_iter().for_each(&mut take);
        }
        if kind == JoinKind::Left {
            select(&mut right, on, &subqueries);
            bindings.extend(rows.bind(taken));
            rows.join_lateral(right, kind, boolean(true), bindings);
            return;
        }
        select(rows, on, &subqueries);
        let bindings = right.bind(taken);
        let right_width = right.types.len();
        let left = std::mem::replace(rows, right);
        rows.join_lateral(left, JoinKind::Left, boolean(true), bindings);
        let mut columns = identity(&rows.types);
        columns.rotate_left(right_width);
        rows.project(columns);
    }
}

/// Filters rows by a predicate, and removes the columns that its subqueries have added.
fn select(rows: &mut Rows, predicate: Expr, subqueries: &[SubqueryUse]) {
    let columns = identity(&rows.types);
    rows.filter(predicate, subqueries);
    rows.project(columns);
}

/// Returns the subqueries whose values an expression reads.
fn subqueries_of(expr: &Expr) -> Vec<usize> {
    let mut used = Vec::new();
    for_each_column(expr, &mut |index| {
        if (SUBQUERY..SUBQUERY_COLUMN).contains(&index) {
            used.push(index);
        }
    });
    used
}

fn outer_join(
    rows: &mut Rows,
    (mut right, bindings): (Rows, Vec<(usize, usize)>),
    kind: JoinKind,
    mut on: Expr,
    subqueries: &[SubqueryUse],
) {
    let (left_width, right_width) = (rows.types.len(), right.types.len());
    let of_right = shifted(subqueries, left_width);
    let mut placed: Vec<(usize, Side, usize)> = Vec::new();
    for index in subqueries_of(&on) {
        let subquery = &subqueries[index - SUBQUERY];
        let Some(side) = side_of(subquery, subqueries, left_width) else { continue };
        let value = Expr::Column { index, data_type: types::DataType::Bool };
        let value = match side {
            Side::Left => rows.place(value, subqueries),
            Side::Right => right.place(value, &of_right),
        };
        for_each_column(&value, &mut |column| placed.push((index, side, column)));
    }
    let grown = rows.types.len();
    map_columns(&mut on, &|index| match placed.iter().find(|(of, _, _)| *of == index) {
        Some((_, Side::Left, column)) => *column,
        Some((_, Side::Right, column)) => grown + column,
        None if index < left_width => index,
        None => index - left_width + grown,
    });
    let has_more = grown > left_width || right.types.len() > right_width;
    rows.join_lateral(right, kind, on, bindings);
    if has_more {
        let mut columns = identity(&rows.types);
        columns.truncate(grown + right_width);
        columns.drain(left_width..grown);
        rows.project(columns);
    }
}

/// Returns the side whose columns a subquery uses; the right one if it uses none, `None` if both.
fn side_of(subquery: &SubqueryUse, all: &[SubqueryUse], left_width: usize) -> Option<Side> {
    let (mut left, mut right) = (false, false);
    let mut waiting = vec![subquery];
    while let Some(next) = waiting.pop() {
        next.for_each_taken(&mut |taken| {
            for_each_column(taken, &mut |index| match index {
                0..AGGREGATE if index < left_width => left = true,
                0..AGGREGATE => right = true,
                SUBQUERY..SUBQUERY_COLUMN => waiting.push(&all[index - SUBQUERY]),
                _ => {}
            });
        });
    }
    match (left, right) {
        (true, true) => None,
        (true, false) => Some(Side::Left),
        _ => Some(Side::Right),
    }
}

/// Returns subqueries that use only columns of the right side, with these numbered from that
/// side's first column.
fn shifted(subqueries: &[SubqueryUse], left_width: usize) -> Vec<SubqueryUse> {
    let shift = |expr: &mut Expr| {
        map_columns(expr, &|index| match index {
            0..AGGREGATE => index.saturating_sub(left_width),
            _ => index,
        });
    };
    let mut shifted = subqueries.to_vec();
    for subquery in &mut shifted {
        subquery.bindings.iter_mut().for_each(|(_, value)| shift(value));
        if let ApplyKind::Any { comparison } | ApplyKind::All { comparison } = &mut subquery.kind {
            shift(comparison);
        }
    }
    shifted
}
