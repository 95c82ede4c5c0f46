//! Grouping: the Aggregate node, and the mapping of expressions over the base row to its output
//! columns.
//!
//! [`select`](crate::binder::select) makes a [`Groups`] if the query has GROUP BY or aggregates,
//! then maps HAVING, the select list, ORDER BY and window definitions. Columns that are
//! functionally dependent on a grouped primary key become keys, too.

use types::aggregate::Aggregate;
use types::expr::Expr;
use types::{DataType, Datum};

use crate::binder::grouping_sets::GroupBy;
use crate::binder::level::{AGGREGATE, GROUPING, QueryLevel, SUBQUERY, SUBQUERY_COLUMN, WINDOW};
use crate::binder::rows::Rows;
use crate::binder::scope::ScopeColumn;
use crate::binder::set_functions::{SetColumns, calls_in};
use crate::error::{Error, Result};
use crate::logical::{GroupingSets, Logical};

/// The output columns of the Aggregate node, by the expressions over the base row that they hold.
pub(super) struct Groups {
    /// The keys, over the base row.
    keys: Vec<Expr>,
    /// The number of aggregates.
    aggregate_count: usize,
    /// True with several grouping sets, so that there are columns for GROUPING.
    has_sets: bool,
    /// Subqueries that were mapped already.
    mapped: Vec<usize>,
}

impl Groups {
    /// Adds the Aggregate node above the rows.
    ///
    /// # Errors
    ///
    /// 42803 if an argument of GROUPING is not a grouping key.
    pub(super) fn new(
        rows: &mut Rows,
        group_by: GroupBy,
        level: &QueryLevel,
        sets_below: &SetColumns,
    ) -> Result<Groups> {
        let GroupBy { mut keys, mut sets, .. } = group_by;
        let groupings = grouping_keys(&keys, level)?;
        drop(add_dependent_columns(&mut keys, sets.as_deref_mut(), level));
        let place = |key: &Expr| {
            let mut key = key.clone();
            sets_below.map(&mut key);
            rows.place(key, &level.subqueries)
        };
        let group_by: Vec<Expr> = keys.iter().map(place).collect();
        let mut aggregates = level.aggregates.clone();
        for aggregate in &mut aggregates {
            let guard = rows.place_filter(&mut aggregate.filter, &level.subqueries);
            let keys = aggregate.order_by.iter_mut().map(|key| &mut key.expression);
            for expr in aggregate.arguments.iter_mut().chain(keys) {
                *expr = rows.place_under(expr.clone(), &guard, &level.subqueries);
            }
        }
        let key_types = group_by.iter().map(Expr::data_type).cloned();
        let types: Vec<DataType> = key_types
            .chain(aggregates.iter().map(|aggregate| aggregate.data_type.clone()))
            .collect();
        let (aggregate_count, has_sets) = (aggregates.len(), sets.is_some());
        match sets {
            // Without keys and aggregates the result is one row, independent of the input.
            None if types.is_empty() => *rows = Rows::unit(),
            None => rows.replace(types, |input| Logical::Aggregate { input, group_by, aggregates }),
            Some(sets) => {
                let of_groupings = groupings.iter().map(|_| DataType::Int4);
                let types = types.into_iter().chain(of_groupings).collect();
                rows.replace(types, |input| {
                    Logical::GroupingSets(GroupingSets {
                        input,
                        group_by,
                        aggregates,
                        sets,
                        grouping_calls: groupings,
                    })
                });
            }
        }
        Ok(Groups { keys, aggregate_count, has_sets, mapped: Vec::new() })
    }

    /// Maps an expression, and the subqueries in it.
    ///
    /// # Errors
    ///
    /// 42803 if it uses a column that is not constant within a group.
    pub(super) fn map(&mut self, expr: &mut Expr, level: &mut QueryLevel) -> Result<()> {
        self.map_within(expr, level, false)
    }

    /// Checks that the direct arguments of ordered-set aggregates are constant within a group.
    ///
    /// # Errors
    ///
    /// 42803 if they are not.
    pub(super) fn check_direct_arguments(&mut self, level: &mut QueryLevel) -> Result<()> {
        let aggregates = level.aggregates.clone();
        for direct in aggregates.iter().flat_map(Aggregate::direct_arguments) {
            self.map(&mut direct.clone(), level).map_err(|error| {
                error.with_detail(
                    "Direct arguments of an ordered-set aggregate must use only grouped columns.",
                )
            })?;
        }
        Ok(())
    }

    /// Maps the window functions and their window definitions.
    pub(super) fn map_windows(&mut self, level: &mut QueryLevel) -> Result<()> {
        let mut result = Ok(());
        let mut calls = std::mem::take(&mut level.window_calls);
        let mut windows = std::mem::take(&mut level.windows);
        let mut map = |expr: &mut Expr| {
            if result.is_ok() {
                result = self.map(expr, level);
            }
        };
        for call in &mut calls {
            call.function.for_each_expression_mut(&mut map);
        }
        for window in &mut windows {
            window.partition_by.iter_mut().for_each(&mut map);
            window.order_by.iter_mut().for_each(|key| map(&mut key.expression));
        }
        level.window_calls = calls;
        level.windows = windows;
        result
    }

    /// Maps the arguments of set-returning functions.
    pub(super) fn map_sets(&mut self, level: &mut QueryLevel) -> Result<()> {
        let mut sets = std::mem::take(&mut level.set_uses);
        // A call that is a grouping key was evaluated below the Aggregate node.
        let below: Vec<usize> = self.keys.iter().flat_map(calls_in).collect();
        let mut result = Ok(());
        for (number, set) in sets.iter_mut().enumerate() {
            for argument in set.function.arguments_mut() {
                if result.is_ok() && !below.contains(&number) {
                    result = self.map(argument, level);
                }
            }
        }
        level.set_uses = sets;
        result
    }

    fn map_within(
        &mut self,
        expr: &mut Expr,
        level: &mut QueryLevel,
        from_subquery: bool,
    ) -> Result<()> {
        if let Some(index) = self.keys.iter().position(|key| key == expr) {
            *expr = Expr::Column { index, data_type: expr.data_type().clone() };
            return Ok(());
        }
        if let Expr::Column { index, .. } = expr {
            match *index {
                SUBQUERY_COLUMN.. => {}
                SUBQUERY.. => self.map_subquery(*index - SUBQUERY, level)?,
                WINDOW.. => {}
                // With a single grouping set GROUPING is always 0.
                GROUPING.. if !self.has_sets => {
                    *expr = Expr::constant(Datum::Int4(0), DataType::Int4)
                }
                GROUPING.. => {
                    *index = self.keys.len() + self.aggregate_count + *index - GROUPING;
                }
                AGGREGATE.. => *index = self.keys.len() + *index - AGGREGATE,
                ungrouped => return Err(ungrouped_column(ungrouped, level, from_subquery)),
            }
            return Ok(());
        }
        let mut result = Ok(());
        expr.for_each_child_mut(&mut |child| {
            if result.is_ok() {
                result = self.map_within(child, level, from_subquery);
            }
        });
        result
    }

    fn map_subquery(&mut self, index: usize, level: &mut QueryLevel) -> Result<()> {
        if self.mapped.contains(&index) {
            return Ok(());
        }
        self.mapped.push(index);
        let mut subquery = level.subqueries[index].clone();
        for (_, value) in &mut subquery.bindings {
            self.map_within(value, level, true)?;
        }
        if let Some(condition) = subquery.kind.condition_mut() {
            self.map_within(condition, level, false)?;
        }
        level.subqueries[index] = subquery;
        Ok(())
    }
}

/// Returns the positions of the keys that are arguments of each GROUPING call.
fn grouping_keys(keys: &[Expr], level: &QueryLevel) -> Result<Vec<Vec<usize>>> {
    let of_argument = |(argument, position): &(Expr, usize)| {
        keys.iter().position(|key| key == argument).ok_or_else(|| {
            err!(GROUPING_ERROR: "arguments to GROUPING must be grouping expressions of the associated query level";
                at *position)
        })
    };
    level.groupings.iter().map(|call| call.arguments.iter().map(of_argument).collect()).collect()
}

/// Returns the tables, by number, whose ungrouped columns may be used because their primary key is
/// grouped.
pub(super) fn determining_tables(group_by: &GroupBy, level: &QueryLevel) -> Vec<u32> {
    let GroupBy { keys, sets, .. } = group_by;
    add_dependent_columns(&mut keys.clone(), sets.clone().as_deref_mut(), level)
}

/// Adds the columns that are functionally dependent on a grouped primary key to the keys, and to
/// all grouping sets if there are several. Returns the tables that have such columns.
fn add_dependent_columns(
    keys: &mut Vec<Expr>,
    mut sets: Option<&mut [Vec<usize>]>,
    level: &QueryLevel,
) -> Vec<u32> {
    let mut determining = Vec::new();
    for relation in &level.scope.relations {
        let Some(table) = relation.table.as_ref().filter(|_| !relation.has_versions) else {
            continue;
        };
        let mut key_columns = table.key_columns().map(|column| relation.table_column(column));
        let in_all = |key: usize| {
            sets.as_deref().is_none_or(|sets| sets.iter().all(|set| set.contains(&key)))
        };
        let is_key = |expr: &Expr| keys.iter().position(|key| key == expr).is_some_and(in_all);
        let is_grouped_by =
            |column: Option<&ScopeColumn>| column.is_some_and(|column| is_key(&column.expr));
        if !key_columns.all(is_grouped_by) {
            continue;
        }
        for column in &relation.columns {
            let Expr::Column { index, .. } = column.expr else { continue };
            let used = level.references.iter().any(|reference| reference.index == index);
            if used && !keys.contains(&column.expr) {
                sets.iter_mut()
                    .flat_map(|sets| sets.iter_mut())
                    .for_each(|set| set.push(keys.len()));
                keys.push(column.expr.clone());
                determining.push(table.oid);
            }
        }
    }
    determining
}

fn ungrouped_column(index: usize, level: &QueryLevel, from_subquery: bool) -> Error {
    let name = level.scope.describe(index).unwrap_or_default();
    let message = if from_subquery {
        format!("subquery uses ungrouped column \"{name}\" from outer query")
    } else {
        format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        )
    };
    let error = err!(GROUPING_ERROR: message);
    let mut references = level.references.iter();
    match references.find(|one| one.index == index && one.from_subquery == from_subquery) {
        Some(reference) => error.at(reference.position),
        None => error,
    }
}
