//! Queries of maintained views: `SELECT keys, aggregates FROM one table WHERE … GROUP BY keys`.
//!
//! The query is bound again whenever the observers of its table are attached, as that of any view.
//! [`MaintainedQuery::of_plan`] decides what can be maintained, and names the reason if a query
//! cannot.

pub(crate) mod rewrite;

use std::sync::Arc;

use coprocessors::maintained_view::{AGGREGATES_MAX, MaintainedView, Maintenance};
use types::aggregate::{Aggregate, AggregateKind};
use types::expr::Expr;
use types::{DataType, keycode};

use crate::binder::{self, EmptySystemCatalog, SessionConstants, SystemCatalog};
use crate::catalog::Catalog;
use crate::catalog::table::Table;
use crate::catalog::view::View;
use crate::error::{Error, Result};
use crate::logical::{BoundPlan, Logical, TableScan};

/// The hint for a view that can only be computed again.
const BY_HAND: &str = "Leave out the option maintained, and use REFRESH MATERIALIZED VIEW.";

/// The hint for rows that expire.
pub(crate) const NO_EXPIRY: &str = "Delete old rows with DELETE instead of a TTL.";

/// A query that can be maintained.
#[derive(Debug, Clone)]
pub(crate) struct MaintainedQuery {
    /// The table.
    pub table: Arc<Table>,
    /// Columns of the table, by position. Expressions refer to them in this order.
    pub columns: Vec<usize>,
    /// Conditions on rows.
    pub filters: Vec<Expr>,
    /// Keys of the groups.
    pub keys: Vec<Expr>,
    /// Aggregates of the groups.
    pub aggregates: Vec<Aggregate>,
    /// For each column of the result, its position among the keys followed by the aggregates.
    pub outputs: Vec<usize>,
}

/// Rows of a table that a query reads: conditions and columns over the columns of the scan.
pub(crate) struct SourceRows<'p> {
    /// The scan.
    pub scan: &'p TableScan,
    /// Conditions.
    pub filters: Vec<Expr>,
    /// Columns of the rows.
    pub columns: Vec<Expr>,
}

/// Returns the maintained views of a table, with their queries.
pub(crate) fn views_of(catalog: &Catalog, table: u32) -> Vec<(Arc<Table>, Arc<View>)> {
    let views = catalog.maintained_views(table).iter();
    let found = |&view: &u32| Some((catalog.table(view)?.clone(), catalog.view(view)?.clone()));
    views.filter_map(found).collect()
}

/// Returns the tables of a maintained view, by number.
pub(crate) fn tables_of(catalog: &Catalog, view: &Table) -> Vec<u32> {
    let view = catalog.view(view.oid).filter(|_| view.is_maintained());
    view.iter().flat_map(|view| &view.relations).map(|relation| relation.oid).collect()
}

impl MaintainedQuery {
    /// Binds the query of a view.
    ///
    /// # Errors
    ///
    /// 0A000 with the reason if it cannot be maintained; errors of the query, which a later change
    /// of an object can cause.
    pub(crate) fn of_view(view: &Arc<View>, catalog: &Catalog) -> Result<MaintainedQuery> {
        MaintainedQuery::of_new_view(view, catalog, &EmptySystemCatalog)
    }

    /// As [`MaintainedQuery::of_view`], for a query that may read system relations.
    ///
    /// # Errors
    ///
    /// See [`MaintainedQuery::of_view`].
    pub(crate) fn of_new_view(
        view: &Arc<View>,
        catalog: &Catalog,
        system: &dyn SystemCatalog,
    ) -> Result<MaintainedQuery> {
        let constants = SessionConstants::unknown();
        let bound = binder::bind_materialized(view, catalog, system, &constants)?;
        let query = match &bound.bound {
            BoundPlan::Query(query) => MaintainedQuery::of_plan(&query.plan)?,
            _ => return Err(no_groups()),
        };
        match view.relations.iter().any(|relation| relation.oid != query.table.oid) {
            true => Err(refusal("of a view", "Write the query of the view in its place.")),
            false => Ok(query),
        }
    }

    /// Returns the query of a plan.
    ///
    /// # Errors
    ///
    /// 0A000 with the reason if it cannot be maintained.
    pub(crate) fn of_plan(plan: &Logical) -> Result<MaintainedQuery> {
        let (expressions, grouped) = match plan {
            Logical::Project { input, expressions } => (Some(expressions), input.as_ref()),
            plan => (None, plan),
        };
        let Logical::Aggregate { input, group_by, aggregates } = grouped else {
            return Err(reason(grouped));
        };
        let rows = SourceRows::of(input)?;
        let keys: Vec<Expr> = group_by.iter().map(|key| rows.expression(key)).collect();
        let aggregates = aggregates
            .iter()
            .map(|one| one.clone().map_expressions(&|expression| rows.expression(&expression)));
        let outputs = match expressions {
            Some(expressions) => expressions.iter().map(output).collect::<Result<_>>()?,
            None => (0..keys.len() + aggregates.len()).collect(),
        };
        let query = MaintainedQuery {
            table: Arc::clone(&rows.scan.table),
            columns: rows.scan.columns.clone(),
            keys,
            aggregates: aggregates.collect(),
            outputs,
            filters: rows.filters,
        };
        query.check()?;
        Ok(query)
    }

    fn check(&self) -> Result<()> {
        if self.keys.is_empty() {
            return Err(refusal(
                "without GROUP BY",
                "Group by a column, and add up the groups in queries of the view.",
            ));
        }
        let missing = |at: &usize| !self.outputs.contains(at);
        if (0..self.keys.len()).any(|key| missing(&key)) {
            return Err(refusal(
                "that does not select a column of its GROUP BY",
                "Add the columns of GROUP BY to the select list.",
            ));
        }
        if self.outputs.iter().all(|output| *output < self.keys.len()) {
            return Err(refusal("without an aggregate", "Add count(*) to the select list."));
        }
        if self.aggregates.len() > AGGREGATES_MAX {
            let what = format!("with more than {AGGREGATES_MAX} aggregates");
            return Err(refusal(&what, "Create several views."));
        }
        for key in &self.keys {
            if keycode::check_type(key.data_type()).is_err() {
                let what = format!("grouped by type {}", key.data_type().sql_name());
                return Err(refusal(&what, "Group by a cast to text."));
            }
        }
        for aggregate in &self.aggregates {
            if Maintenance::of(aggregate).is_none() {
                return Err(no_maintenance(aggregate));
            }
        }
        if self.expressions().any(|expression| !is_stored(expression)) {
            return Err(refusal(
                "with a function that is user-defined or not IMMUTABLE",
                "Use only expressions whose value depends on nothing but the row.",
            ));
        }
        if self.columns.iter().any(|column| *column >= self.table.columns.len()) {
            return Err(refusal("of a system column", "Use only columns of the table."));
        }
        check_source(&self.table)
    }

    fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let aggregates = self.aggregates.iter().flat_map(Aggregate::expressions);
        self.filters.iter().chain(&self.keys).chain(aggregates)
    }

    /// Returns the columns of the result that are the keys, in key order.
    pub(crate) fn key_columns(&self) -> Vec<usize> {
        let column = |key: usize| self.outputs.iter().position(|output| *output == key);
        (0..self.keys.len()).filter_map(column).collect()
    }

    /// Returns the definition of a view with this query for its observer.
    pub(crate) fn definition(&self, view: &Table) -> MaintainedView {
        MaintainedView {
            name: view.name.clone(),
            layout: Arc::clone(&self.table.layout),
            columns: self.columns.clone(),
            filter: (!self.filters.is_empty()).then(|| Expr::conjunction(self.filters.clone())),
            keys: self.keys.clone(),
            aggregates: self.aggregates.clone(),
            outputs: self.outputs.clone(),
            target: view.id,
            target_layout: Arc::clone(&view.layout),
        }
    }
}

impl<'p> SourceRows<'p> {
    /// Returns the rows of a plan that reads one table.
    ///
    /// # Errors
    ///
    /// 0A000 with the reason if it does not.
    pub(crate) fn of(plan: &'p Logical) -> Result<SourceRows<'p>> {
        match plan {
            Logical::Scan(scan) => {
                if scan.system_time.is_some() {
                    return Err(refusal("with FOR SYSTEM_TIME", "Query the view with it."));
                }
                let column = |(at, &column): (usize, &usize)| {
                    let known = scan.table.columns.get(column);
                    let pseudo = || crate::logical::pseudo_column_type(column);
                    let data_type = known.map(|known| known.sql_type.base.clone()).or_else(pseudo);
                    Expr::column(at, data_type.unwrap_or(DataType::Int8))
                };
                let columns = scan.columns.iter().enumerate().map(column).collect();
                Ok(SourceRows { scan, filters: Vec::new(), columns })
            }
            Logical::Filter { input, predicate } => {
                let mut rows = SourceRows::of(input)?;
                rows.filters.push(rows.expression(predicate));
                Ok(rows)
            }
            Logical::Project { input, expressions } => {
                let rows = SourceRows::of(input)?;
                let columns = expressions.iter().map(|one| rows.expression(one)).collect();
                Ok(SourceRows { columns, ..rows })
            }
            other => Err(reason(other)),
        }
    }

    /// Returns an expression over the rows as one over the columns of the scan.
    pub(crate) fn expression(&self, expression: &Expr) -> Expr {
        expression.clone().transform(&mut |node| match node {
            Expr::Column { index, .. } => self.columns[index].clone(),
            node => node,
        })
    }
}

/// Checks that each change of the rows of a table is seen by the observer of a view.
///
/// # Errors
///
/// 0A000 with the reason.
pub(crate) fn check_source(table: &Table) -> Result<()> {
    let name = &table.name;
    if table.is_materialized() {
        return Err(refusal(&format!("of materialized view \"{name}\""), BY_HAND));
    }
    if table.cell_ttl || table.descriptor.families.iter().any(|family| family.ttl.is_some()) {
        let what = format!("of table \"{name}\", whose rows expire,");
        return Err(refusal(&what, NO_EXPIRY));
    }
    if table.client_timestamps {
        return Err(refusal(&format!("of table \"{name}\" with timestamps = client"), BY_HAND));
    }
    Ok(())
}

/// Checks that the rows of a table do not disappear from a maintained view, or those of the view.
///
/// # Errors
///
/// 0A000 with the reason.
pub(crate) fn check_table(catalog: &Catalog, table: &Table) -> Result<()> {
    let views = views_of(catalog, table.oid);
    if let Some((view, _)) = views.first() {
        check_source(table).map_err(|error| {
            error.with_hint(format!("Drop materialized view \"{}\" first.", view.name))
        })?;
    }
    let expires = table.cell_ttl || table.descriptor.families.iter().any(|one| one.ttl.is_some());
    if table.is_maintained() && (expires || table.client_timestamps) {
        return Err(Error::not_supported(
            format!("expiry or timestamps = client of maintained view \"{}\"", table.name),
            "Leave out the option.",
        ));
    }
    Ok(())
}

/// Returns the error for a query that cannot be maintained.
fn refusal(what: &str, hint: &str) -> Error {
    Error::not_supported(format!("a maintained view {what}"), hint)
}

fn no_groups() -> Error {
    refusal("without GROUP BY", "Use a query with GROUP BY and aggregates.")
}

/// Returns the error for a query with this node.
fn reason(node: &Logical) -> Error {
    match node {
        Logical::Filter { input, .. } if matches!(**input, Logical::Aggregate { .. }) => {
            refusal("with HAVING", "Put the condition into queries of the view.")
        }
        Logical::Join(_) => refusal(
            "of a join",
            "Create the view of the large table, grouped by the columns of the join, and join the view.",
        ),
        Logical::Apply(_) => refusal("with a subquery", BY_HAND),
        Logical::Barrier { .. } => {
            refusal("by a role that row-level security policies apply to", BY_HAND)
        }
        Logical::Sort { .. } | Logical::Limit { .. } => {
            refusal("with ORDER BY or LIMIT", "Sort and limit the rows in queries of the view.")
        }
        Logical::GroupingSets(_) => refusal("with grouping sets", "Create a view for each set."),
        Logical::Distinct { .. } => refusal("with DISTINCT", "Use GROUP BY and count(*)."),
        Logical::Window(_) => refusal("with window functions", "Use them in queries of the view."),
        Logical::Scan(_) | Logical::Project { .. } | Logical::Filter { .. } => no_groups(),
        _ => refusal("that reads anything but one table", BY_HAND),
    }
}

fn output(expression: &Expr) -> Result<usize> {
    match expression {
        Expr::Column { index, .. } => Ok(*index),
        _ => Err(refusal(
            "that computes with aggregates or columns of GROUP BY",
            "Select them unchanged, and compute in queries of the view.",
        )),
    }
}

fn no_maintenance(aggregate: &Aggregate) -> Error {
    let name = aggregate.kind.name();
    let what = match aggregate.distinct {
        true => format!("with {name}(DISTINCT)"),
        false => format!("with {name}"),
    };
    let argument = aggregate.arguments.first().map(Expr::data_type);
    let floats = matches!(argument, Some(DataType::Float4 | DataType::Float8));
    match aggregate.kind {
        AggregateKind::Sum | AggregateKind::Avg if floats => refusal(
            &format!("{what} of floating-point numbers"),
            "Floating-point addition cannot be undone exactly; cast the argument to numeric.",
        ),
        AggregateKind::BoolAnd | AggregateKind::BoolOr => {
            refusal(&what, "Use count(*) FILTER (WHERE …), and compare it with count(*).")
        }
        _ => refusal(
            &what,
            "count, sum, avg, min, max and count(DISTINCT) of integers, numerics and types with an \
             order are maintained.",
        ),
    }
}

/// Returns whether the value of an expression depends on nothing but the row.
fn is_stored(expression: &Expr) -> bool {
    let mut calls = false;
    expression.walk(&mut |node| {
        calls |= matches!(node, Expr::Routine { .. } | Expr::Parameter { .. });
    });
    expression.is_foldable() && !calls
}
