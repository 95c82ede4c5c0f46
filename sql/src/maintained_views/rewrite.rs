//! Aggregation over the rows of a maintained view instead of those of its table.
//!
//! ```text
//! SELECT day, sum(amount) FROM sale WHERE shop = 'a' GROUP BY day
//!     view: SELECT shop, day, count(*), sum(amount) AS s FROM sale GROUP BY shop, day
//! SELECT day, sum(s) FROM view WHERE shop = 'a' GROUP BY day
//! ```
//!
//! An aggregation is replaced if
//!
//! 1. it reads the table of the view, and its WHERE has each condition of the view's;
//! 2. its keys, and the other conditions, are expressions over the keys of the view;
//! 3. its aggregates are columns of the view, or can be added up from them, if it has fewer keys.
//!
//! The view is read in the snapshot of the statement, with the transaction's own changes, so that
//! the answer is the same. Statements that change rows are left as they are: they must not see what
//! they write themselves.
//!
//! Source: Oracle's query rewrite; Goldstein and Larson, "Optimizing Queries Using Materialized
//! Views" (2001). Difference: one table, and no choice by cost, since a view has at most as many
//! rows as its table.

use std::collections::BTreeSet;
use std::sync::Arc;

use store::TableId;
use types::aggregate::{Aggregate, AggregateKind};
use types::expr::Expr;
use types::rowcode::key_loses_form;
use types::{DataType, Datum, SqlType};

use crate::binder;
use crate::catalog::Catalog;
use crate::catalog::table::Table;
use crate::logical::{BoundPlan, Logical, TableScan};
use crate::maintained_views::{self, MaintainedQuery, SourceRows};

/// First number of a column of the view in expressions that also refer to columns of its table.
const VIEW_COLUMNS: usize = 1 << 16;

/// An aggregation over a table. Expressions refer to the columns of the table by position.
struct Aggregation<'p> {
    scan: &'p TableScan,
    filters: Vec<Expr>,
    keys: Vec<Expr>,
    aggregates: Vec<Aggregate>,
}

/// A view that may answer an aggregation.
struct ViewMatch<'v> {
    view: &'v Arc<Table>,
    /// Its conditions.
    filters: Vec<Expr>,
    /// Its keys, with their columns.
    keys: Vec<(Expr, usize)>,
    /// Its aggregates, with their columns.
    aggregates: Vec<(Aggregate, usize)>,
}

/// Replaces aggregations of a query over tables by those over their maintained views; returns the
/// views. Those that are not `visible` are not used.
pub(crate) fn read_views(
    bound: &mut BoundPlan,
    catalog: &Catalog,
    visible: &dyn Fn(&Table) -> bool,
) -> Vec<TableId> {
    let mut used = Vec::new();
    if !matches!(bound, BoundPlan::Query(_)) || !catalog.has_maintained_views() {
        return used;
    }
    binder::for_each_node(bound, &mut |node| {
        let Some(aggregation) = Aggregation::of(node, catalog) else { return };
        for (view, definition) in maintained_views::views_of(catalog, aggregation.scan.table.oid) {
            if !visible(&view) {
                continue;
            }
            let query = MaintainedQuery::of_view(&definition, catalog);
            let Ok(query) = query else { continue };
            if let Some(replacement) = ViewMatch::of(&view, query).answer(&aggregation) {
                used.push(view.id);
                *node = replacement;
                return;
            }
        }
    });
    used
}

impl<'p> Aggregation<'p> {
    /// Returns the aggregation of a node over a table with maintained views.
    fn of(node: &'p Logical, catalog: &Catalog) -> Option<Aggregation<'p>> {
        let Logical::Aggregate { input, group_by, aggregates } = node else { return None };
        let rows = SourceRows::of(input).ok()?;
        let scan = rows.scan;
        if catalog.maintained_views(scan.table.oid).is_empty()
            || scan.lock.is_some()
            || scan.index_hint.is_some()
        {
            return None;
        }
        let of_table = |expression: &Expr| in_table(rows.expression(expression), &scan.columns);
        Some(Aggregation {
            scan,
            filters: conjuncts(rows.filters.iter().map(|one| in_table(one.clone(), &scan.columns))),
            keys: group_by.iter().map(of_table).collect(),
            aggregates: aggregates
                .iter()
                .map(|one| one.clone().map_expressions(&|expression| of_table(&expression)))
                .collect(),
        })
    }
}

impl<'v> ViewMatch<'v> {
    fn of(view: &'v Arc<Table>, query: MaintainedQuery) -> ViewMatch<'v> {
        let columns = &query.columns;
        let (key_count, outputs) = (query.keys.len(), &query.outputs);
        let column_of = |output: usize| outputs.iter().position(|one| *one == output);
        let keys = query.keys.iter().enumerate();
        let keys =
            keys.filter_map(|(at, key)| Some((in_table(key.clone(), columns), column_of(at)?)));
        let aggregates = query.aggregates.iter().enumerate();
        let aggregates = aggregates.filter_map(|(at, one)| {
            let of_table = one.clone().map_expressions(&|expression| in_table(expression, columns));
            Some((of_table, column_of(key_count + at)?))
        });
        ViewMatch {
            view,
            filters: conjuncts(query.filters.iter().map(|one| in_table(one.clone(), columns))),
            keys: keys.collect(),
            aggregates: aggregates.collect(),
        }
    }

    /// Returns the same rows as an aggregation, from the view.
    fn answer(&self, aggregation: &Aggregation<'_>) -> Option<Logical> {
        if !self.filters.iter().all(|filter| aggregation.filters.contains(filter)) {
            return None;
        }
        let rest = aggregation.filters.iter().filter(|filter| !self.filters.contains(filter));
        let rest: Vec<Expr> = rest.map(|filter| self.over_keys(filter)).collect::<Option<_>>()?;
        let keys = aggregation.keys.iter().map(|key| self.over_keys(key));
        let keys: Vec<Expr> = keys.collect::<Option<_>>()?;
        let is_key = |column: usize| keys.contains(&self.column(column));
        let has_all_keys = self.keys.iter().all(|(_, column)| is_key(*column));
        let results = aggregation.aggregates.iter();
        let results = results.map(|one| self.aggregate(one).map(|column| self.column(column)));
        let results: Vec<Expr> = results.collect::<Option<_>>()?;
        let read = columns_of(rest.iter().chain(&keys).chain(&results));
        let rows = self.rows(&aggregation.scan.table, rest, &read);
        let on_view = |one: Expr| on_view(one, &read);
        if has_all_keys {
            let expressions = keys.into_iter().chain(results).map(on_view).collect();
            return Some(Logical::Project { input: Box::new(rows), expressions });
        }
        let key_count = keys.len();
        let sums = aggregation.aggregates.iter().zip(results);
        let sums = sums.map(|(one, result)| sum(one, on_view(result)));
        let (aggregates, results): (Vec<_>, Vec<_>) =
            sums.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        let key_columns = keys.iter().enumerate();
        let key_columns = key_columns.map(|(at, key)| Expr::column(at, key.data_type().clone()));
        let results = results.into_iter().enumerate();
        let results = results.map(|(at, result)| result.over(key_count + at));
        let expressions = key_columns.chain(results).collect();
        let input = Box::new(Logical::Aggregate {
            input: Box::new(rows),
            group_by: keys.into_iter().map(on_view).collect(),
            aggregates,
        });
        Some(Logical::Project { input, expressions })
    }

    /// Returns some columns of the rows of the view that satisfy some conditions.
    fn rows(&self, table: &Table, conditions: Vec<Expr>, columns: &[usize]) -> Logical {
        let scan = Logical::Scan(TableScan {
            table: Arc::clone(self.view),
            alias: format!("in place of {}", table.name),
            columns: columns.to_vec(),
            system_time: None,
            lock: None,
            index_hint: None,
            statistics: None,
            policies: None,
        });
        match conditions.is_empty() {
            true => scan,
            false => Logical::Filter {
                input: Box::new(scan),
                predicate: on_view(Expr::conjunction(conditions), columns),
            },
        }
    }

    /// Returns a column of the view.
    fn column(&self, column: usize) -> Expr {
        let data_type = self.view.columns[column].sql_type.base.clone();
        Expr::column(VIEW_COLUMNS + column, data_type)
    }

    /// Returns an expression over the table as one over the keys of the view; `None` if it is none.
    fn over_keys(&self, expression: &Expr) -> Option<Expr> {
        if let Some((_, column)) = self.keys.iter().find(|(key, _)| key == expression) {
            return Some(self.column(*column));
        }
        // A key has one of several forms of its value, 1.0 or 1.00, which functions may tell apart.
        let exact = |key: &Expr| !key_loses_form(key.data_type());
        let over = expression.clone().transform(&mut |node| match self
            .keys
            .iter()
            .find(|(key, _)| *key == node && exact(key))
        {
            Some((_, column)) => self.column(*column),
            None => node,
        });
        let columns = VIEW_COLUMNS..VIEW_COLUMNS + self.view.columns.len();
        let mut is_over_view = !over.is_volatile();
        over.walk(&mut |node| {
            is_over_view &= !matches!(node, Expr::Column { index, .. } if !columns.contains(index));
        });
        is_over_view.then_some(over)
    }

    /// Returns the column of an aggregate.
    fn aggregate(&self, aggregate: &Aggregate) -> Option<usize> {
        self.aggregates.iter().find(|(known, _)| known == aggregate).map(|(_, column)| *column)
    }
}

/// Returns an aggregate over the rows of a view that adds up the results of another one, with the
/// form of its result.
fn sum(aggregate: &Aggregate, results: Expr) -> Option<(Aggregate, AddedResult)> {
    let is_count = matches!(aggregate.kind, AggregateKind::CountRows | AggregateKind::Count);
    let (kind, added) = match aggregate.kind {
        AggregateKind::Min | AggregateKind::Max => (aggregate.kind, results.data_type().clone()),
        AggregateKind::CountRows | AggregateKind::Count | AggregateKind::Sum
            if !aggregate.distinct =>
        {
            (AggregateKind::Sum, DataType::Numeric)
        }
        _ => return None,
    };
    let result =
        AddedResult { is_count, added: added.clone(), data_type: aggregate.data_type.clone() };
    let sum = Aggregate {
        kind,
        arguments: vec![results],
        distinct: false,
        order_by: Vec::new(),
        filter: None,
        data_type: added,
    };
    Some((sum, result))
}

/// Form of a result that was added up.
struct AddedResult {
    /// A count of no rows is 0.
    is_count: bool,
    added: DataType,
    data_type: DataType,
}

impl AddedResult {
    /// Returns the result over a column.
    fn over(self, column: usize) -> Expr {
        let AddedResult { is_count, added, data_type } = self;
        let sum = Expr::column(column, added.clone());
        let cast = match added == data_type {
            true => sum,
            false => Expr::Cast {
                operand: Box::new(sum),
                from: added,
                to: SqlType::from(&data_type),
                explicit: false,
            },
        };
        if !is_count {
            return cast;
        }
        let zero = Expr::Constant { value: Datum::Int8(0), data_type: DataType::Int8 };
        Expr::Coalesce { operands: vec![cast, zero], data_type }
    }
}

/// Returns an expression over the columns of a scan as one over those of its table.
fn in_table(expression: Expr, columns: &[usize]) -> Expr {
    expression.remap_columns(&|index| columns[index])
}

/// Returns the columns of the view in some expressions, ascending.
fn columns_of<'e>(expressions: impl Iterator<Item = &'e Expr>) -> Vec<usize> {
    let mut columns = BTreeSet::new();
    for expression in expressions {
        columns.extend(expression.columns().into_iter().map(|index| index - VIEW_COLUMNS));
    }
    columns.into_iter().collect()
}

/// Returns an expression over the columns of the view as one over a scan of some of them.
fn on_view(expression: Expr, scanned: &[usize]) -> Expr {
    let position = |index: usize| scanned.iter().position(|one| one + VIEW_COLUMNS == index);
    expression.remap_columns(&|index| position(index).unwrap_or_default())
}

/// Returns the conditions of conditions that are connected by AND.
fn conjuncts(conditions: impl Iterator<Item = Expr>) -> Vec<Expr> {
    let mut all = Vec::new();
    for condition in conditions {
        match condition {
            Expr::And(conditions) => all.extend(conjuncts(conditions.into_iter())),
            condition => all.push(condition),
        }
    }
    all
}
