//! ON conditions with subqueries.
//!
//! Those of an inner join are computed over the pairs of rows. Those of an outer join are computed
//! beside the rows of one side, as columns that the condition then reads and that go afterwards:
//! a subquery must not take columns of both sides.

use types::expr::Expr;

use crate::binder::level::{AGGREGATE, Binder, Level, SUBQUERY, SUBQUERY_COLUMN, SubqueryUse};
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
    /// Joins on a condition, which was bound over the columns of both sides; `bindings` are what a
    /// LATERAL right side takes from the left one.
    pub(super) fn join_on(
        &mut self,
        rows: &mut Rows,
        (right, bindings): (Rows, Vec<(usize, usize)>),
        kind: JoinKind,
        on: Expr,
        level: &Level,
    ) -> Result<()> {
        if kind != JoinKind::Inner {
            return outer_join(rows, (right, bindings), kind, on, &level.subqueries);
        }
        let (late, early): (Vec<Expr>, Vec<Expr>) =
            conjuncts(on).into_iter().partition(has_subquery);
        let on = if early.is_empty() { boolean(true) } else { all_of(early) };
        rows.join_lateral(right, kind, on, bindings);
        if !late.is_empty() {
            rows.filter(all_of(late), &level.subqueries);
        }
        Ok(())
    }
}

fn outer_join(
    rows: &mut Rows,
    (mut right, bindings): (Rows, Vec<(usize, usize)>),
    kind: JoinKind,
    mut on: Expr,
    subqueries: &[SubqueryUse],
) -> Result<()> {
    let (left_width, right_width) = (rows.types.len(), right.types.len());
    let mut used = Vec::new();
    for_each_column(&on, &mut |index| {
        if (SUBQUERY..SUBQUERY_COLUMN).contains(&index) {
            used.push(index);
        }
    });
    let of_right = shifted(subqueries, left_width);
    let mut placed: Vec<(usize, Side, usize)> = Vec::new();
    for index in used {
        let subquery = &subqueries[index - SUBQUERY];
        let side = side_of(subquery, subqueries, left_width)?;
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
    Ok(())
}

/// Returns the side whose columns a subquery takes; the right one of none.
fn side_of(subquery: &SubqueryUse, all: &[SubqueryUse], left_width: usize) -> Result<Side> {
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
    if left && right {
        let what = "a subquery over both sides in the condition of an outer join";
        let hint = "Join one side with the subquery's rows in FROM.";
        return Err(Error::not_supported(what, hint).at(subquery.position));
    }
    Ok(if left { Side::Left } else { Side::Right })
}

/// Returns subqueries that take columns of the right side alone, as that side numbers them.
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
