//! GROUP BY and aggregates: from expressions over the base row to expressions over groups.

use types::DataType;
use types::expr::Expr;

use crate::binder::level::{AGGREGATE, Level, SUBQUERY, SUBQUERY_COLUMN, WINDOW};
use crate::binder::rows::Rows;
use crate::binder::scope::ScopeColumn;
use crate::binder::tree::for_each_child;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{ApplyKind, Logical};

/// The groups of a query: maps expressions over the base row to the aggregate node's columns.
pub(super) struct Groups {
    /// The keys, over the base row.
    keys: Vec<Expr>,
    /// Subqueries that were mapped already.
    mapped: Vec<usize>,
}

impl Groups {
    /// Puts the aggregate node above the rows.
    pub(super) fn new(rows: &mut Rows, mut keys: Vec<Expr>, level: &Level) -> Groups {
        add_dependent_columns(&mut keys, level);
        let group_by: Vec<Expr> =
            keys.iter().map(|key| rows.place(key.clone(), &level.subqueries)).collect();
        let mut aggregates = level.aggregates.clone();
        for aggregate in &mut aggregates {
            for expr in aggregate.expressions_mut() {
                *expr = rows.place(expr.clone(), &level.subqueries);
            }
        }
        let key_types = group_by.iter().map(Expr::data_type);
        let types: Vec<DataType> =
            key_types.chain(aggregates.iter().map(|aggregate| aggregate.data_type)).collect();
        rows.replace(types, |input| Logical::Aggregate { input, group_by, aggregates });
        Groups { keys, mapped: Vec::new() }
    }

    /// Maps an expression, and the subqueries in it.
    ///
    /// # Errors
    ///
    /// 42803 if it uses a column that is not constant within a group.
    pub(super) fn map(&mut self, expr: &mut Expr, level: &mut Level) -> Result<()> {
        self.map_within(expr, level, false)
    }

    /// Checks that the direct arguments of ordered-set aggregates are constant within a group.
    ///
    /// # Errors
    ///
    /// 42803 if they are not.
    pub(super) fn check_direct_arguments(&mut self, level: &mut Level) -> Result<()> {
        let aggregates = level.aggregates.clone();
        let ordered = aggregates.iter().filter(|aggregate| aggregate.kind.is_ordered_set());
        for aggregate in ordered {
            for direct in &aggregate.arguments[..aggregate.direct_count()] {
                self.map(&mut direct.clone(), level).map_err(|error| {
                    error.with_detail(
                        "Direct arguments of an ordered-set aggregate must use only grouped \
                         columns.",
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Maps the calls of window functions and what they are over.
    pub(super) fn map_windows(&mut self, level: &mut Level) -> Result<()> {
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

    fn map_within(
        &mut self,
        expr: &mut Expr,
        level: &mut Level,
        from_subquery: bool,
    ) -> Result<()> {
        if let Some(index) = self.keys.iter().position(|key| key == expr) {
            *expr = Expr::Column { index, data_type: expr.data_type() };
            return Ok(());
        }
        if let Expr::Column { index, .. } = expr {
            match *index {
                SUBQUERY_COLUMN.. => {}
                SUBQUERY.. => self.map_subquery(*index - SUBQUERY, level)?,
                WINDOW.. => {}
                AGGREGATE.. => *index = self.keys.len() + *index - AGGREGATE,
                ungrouped => return Err(ungrouped_column(ungrouped, level, from_subquery)),
            }
            return Ok(());
        }
        let mut result = Ok(());
        for_each_child(expr, &mut |child| {
            if result.is_ok() {
                result = self.map_within(child, level, from_subquery);
            }
        });
        result
    }

    fn map_subquery(&mut self, index: usize, level: &mut Level) -> Result<()> {
        if self.mapped.contains(&index) {
            return Ok(());
        }
        self.mapped.push(index);
        let mut subquery = level.subqueries[index].clone();
        for (_, value) in &mut subquery.bindings {
            self.map_within(value, level, true)?;
        }
        if let ApplyKind::Any { comparison } | ApplyKind::All { comparison } = &mut subquery.kind {
            self.map_within(comparison, level, false)?;
        }
        level.subqueries[index] = subquery;
        Ok(())
    }
}

/// Where a table's whole primary key is grouped by, its other columns are constant in a group too:
/// those that are used become keys.
fn add_dependent_columns(keys: &mut Vec<Expr>, level: &Level) {
    for relation in &level.scope.relations {
        let Some(table) = &relation.table else { continue };
        let mut key_columns = table.key_columns().map(|column| relation.table_column(column));
        let is_grouped_by =
            |column: Option<&ScopeColumn>| column.is_some_and(|column| keys.contains(&column.expr));
        if !key_columns.all(is_grouped_by) {
            continue;
        }
        for column in &relation.columns {
            let Expr::Column { index, .. } = column.expr else { continue };
            let used = level.references.iter().any(|reference| reference.index == index);
            if used && !keys.contains(&column.expr) {
                keys.push(column.expr.clone());
            }
        }
    }
}

fn ungrouped_column(index: usize, level: &Level, from_subquery: bool) -> Error {
    let name = level.scope.describe(index).unwrap_or_default();
    let message = if from_subquery {
        format!("subquery uses ungrouped column \"{name}\" from outer query")
    } else {
        format!(
            "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
        )
    };
    let error = Error::new(sqlstate::GROUPING_ERROR, message);
    let mut references = level.references.iter();
    match references.find(|one| one.index == index && one.from_subquery == from_subquery) {
        Some(reference) => error.at(reference.position),
        None => error,
    }
}
