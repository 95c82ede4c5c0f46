//! What a statement writes to: a table, or a table through a view.
//!
//! A view can be written through if each of its rows is a row of one table: its query is a
//! selection of columns and expressions over that table, or over another such view, with
//! conditions and an order at most. The statement is then bound over the row of the table, in which
//! the names of the view stand for expressions, and the conditions of the view are added to its
//! own. Only columns that are columns of the table can be assigned.
//!
//! Source: PostgreSQL's `rewriteTargetView` and `view_query_is_auto_updatable`
//! (rewriteHandler.c). Not here: WITH CHECK OPTION, and views with subqueries in their conditions.

use std::sync::Arc;

use types::DataType;
use types::expr::Expr;

use crate::ast::{self, ColumnName, QueryBody, TableName, TableRef};
use crate::binder::assignment::target_column;
use crate::binder::level::Binder;
use crate::binder::scope::{Relation, RelationKind, ScopeColumn};
use crate::binder::tree::{conjunction, for_each_column};
use crate::catalog;
use crate::catalog::table::Table;
use crate::catalog::view::View;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{Logical, OutputColumn};

/// What a statement does with the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// INSERT and UPSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// MERGE.
    Merge,
}

/// What a statement writes to.
pub(super) struct Written {
    /// The table whose rows are written.
    pub(super) table: Arc<Table>,
    change: Change,
    through: Option<Through>,
}

/// A view over rows of one table.
struct Through {
    view: Arc<View>,
    /// Its columns, over the row of the table.
    columns: Vec<ScopeColumn>,
    /// Which rows of the table it has.
    predicate: Option<Expr>,
}

/// Rows of one table, as a plan yields them.
struct Simple {
    table: Arc<Table>,
    expressions: Vec<Expr>,
    predicates: Vec<Expr>,
}

impl Simple {
    /// Returns whether only columns of the table are used, not what is told of its rows.
    fn is_of_table(&self) -> bool {
        let mut is_of_table = true;
        for expr in self.expressions.iter().chain(&self.predicates) {
            for_each_column(expr, &mut |index| is_of_table &= index < self.table.columns.len());
        }
        is_of_table
    }
}

impl Written {
    /// Returns the name that the rows go by without an alias.
    pub(super) fn name(&self) -> &str {
        self.through.as_ref().map_or(&self.table.name, |through| &through.view.name)
    }

    /// Returns whether the table is written through a view.
    pub(super) fn is_view(&self) -> bool {
        self.through.is_some()
    }

    /// Returns which rows of the table can be reached.
    pub(super) fn predicate(&self) -> Option<&Expr> {
        self.through.as_ref()?.predicate.as_ref()
    }

    /// Returns the columns that can be named, over the row of the table.
    pub(super) fn relation(&self, alias: &str) -> Relation {
        let Some(Through { columns, .. }) = &self.through else {
            return Relation::of_table(alias, &self.table, 0);
        };
        let none: [OutputColumn; 0] = [];
        let relation = Relation::new(alias, &none);
        Relation { columns: columns.clone(), kind: RelationKind::Opaque, ..relation }
    }

    /// Returns the position in the table of a column that is to be written.
    pub(super) fn target(&self, name: &ColumnName) -> Result<usize> {
        let Some(through) = &self.through else { return target_column(&self.table, name) };
        let wanted = &name.name;
        let column = match &name.family {
            None => through.columns.iter().find(|column| column.name == wanted.value),
            Some(_) => None,
        };
        let column = column.ok_or_else(|| {
            let message = format!(
                "column \"{}\" of relation \"{}\" does not exist",
                wanted.value, through.view.name
            );
            Error::new(sqlstate::UNDEFINED_COLUMN, message).at(wanted.position)
        })?;
        self.position_of(through, column)
    }

    fn position_of(&self, through: &Through, column: &ScopeColumn) -> Result<usize> {
        match column.expr {
            Expr::Column { index, .. } => Ok(index),
            _ => {
                let verb = if self.change == Change::Insert { "insert into" } else { "update" };
                let message = format!(
                    "cannot {verb} column \"{}\" of view \"{}\"",
                    column.name, through.view.name
                );
                Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message).with_detail(
                    "View columns that are not columns of their base relation are not updatable.",
                ))
            }
        }
    }

    /// Returns the positions of the columns that INSERT without names writes, of which a statement
    /// may give values for the first ones only, `width` of them.
    pub(super) fn all_targets(&self, width: usize) -> Result<Vec<usize>> {
        match &self.through {
            None => Ok(self.table.visible_columns().collect()),
            Some(through) => {
                let columns = through.columns.iter().take(width);
                columns.map(|column| self.position_of(through, column)).collect()
            }
        }
    }
}

impl Binder<'_> {
    /// Returns what a statement writes to.
    pub(super) fn written(&mut self, name: &TableName, change: Change) -> Result<Written> {
        match self.find_relation(name) {
            Some(catalog::Relation::Table(table)) if table.is_materialized() => {
                let message = format!("cannot change materialized view \"{}\"", table.name);
                return Err(Error::new(sqlstate::WRONG_OBJECT_TYPE, message));
            }
            Some(catalog::Relation::Table(table)) => {
                let table = Arc::clone(table);
                return Ok(Written { table, change, through: None });
            }
            Some(catalog::Relation::View(view)) => {
                let view = Arc::clone(view);
                return self.written_view(view, change);
            }
            Some(catalog::Relation::Sequence(sequence)) => {
                let message = format!("cannot change sequence \"{}\"", sequence.name);
                return Err(Error::new(sqlstate::WRONG_OBJECT_TYPE, message).at(name.position()));
            }
            _ => {}
        }
        let schema = name.schema.as_ref().map(|schema| schema.value.as_str());
        if self.system.view(schema, &name.name.value).is_some() {
            let message = format!("cannot change system view \"{}\"", name.name.value);
            return Err(Error::new(sqlstate::INSUFFICIENT_PRIVILEGE, message).at(name.position()));
        }
        Err(self.no_table(name))
    }

    fn written_view(&mut self, view: Arc<View>, change: Change) -> Result<Written> {
        if change == Change::Merge {
            let message = format!("cannot execute MERGE on relation \"{}\"", view.name);
            return Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                .with_detail("This operation is not supported for views."));
        }
        let (rows, scope) = self.bind_view_rows(&view, &view.name)?;
        let refused = |detail: &str| Err(refusal(&view.name, change, detail));
        if let Some(detail) = why_not(&view.query, &rows.plan) {
            return refused(detail);
        }
        let found = simple(rows.plan).filter(Simple::is_of_table);
        let Some(Simple { table, expressions, predicates }) = found else {
            // The fault may be of the view that this one is over.
            if let [relation] = view.relations.as_slice()
                && let Some(inner) = self.catalog.view(relation.oid)
            {
                return self.written_view(Arc::clone(inner), change);
            }
            if has_subquery(&view.query) {
                let what =
                    format!("changing rows through view \"{}\", which has a subquery,", view.name);
                return Err(Error::not_supported(what, "Change the tables that it reads."));
            }
            return refused(SINGLE);
        };
        let columns: Vec<ScopeColumn> = scope
            .columns()
            .into_iter()
            .zip(expressions)
            .map(|(column, expr)| ScopeColumn { expr, ..column.clone() })
            .collect();
        let is_column = |column: &ScopeColumn| matches!(column.expr, Expr::Column { .. });
        if change != Change::Delete && !columns.iter().any(is_column) {
            return refused(
                "Views that have no updatable columns are not automatically updatable.",
            );
        }
        let through = Some(Through { view, columns, predicate: conjunction(predicates) });
        Ok(Written { table, change, through })
    }
}

const SINGLE: &str =
    "Views that do not select from a single table or view are not automatically updatable.";

fn refusal(view: &str, change: Change, detail: &str) -> Error {
    let (verb, doing, event) = match change {
        Change::Insert => ("insert into", "inserting into", "INSERT"),
        Change::Delete => ("delete from", "deleting from", "DELETE"),
        Change::Update | Change::Merge => ("update", "updating", "UPDATE"),
    };
    let hint = format!(
        "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional ON \
         {event} DO INSTEAD rule."
    );
    let message = format!("cannot {verb} view \"{view}\"");
    Error::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .with_detail(detail)
        .with_hint(hint)
}

/// Returns why a query is not one of rows of one table, in the order of PostgreSQL's tests.
fn why_not(query: &ast::Query, plan: &Logical) -> Option<&'static str> {
    let QueryBody::Select(select) = &query.body else {
        return Some(match query.body {
            QueryBody::Values { .. } => SINGLE,
            _ => "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
        });
    };
    let limited = query.limit.is_some() || query.offset.is_some();
    let tests = [
        (select.distinct.is_some(), "Views containing DISTINCT are not automatically updatable."),
        (!select.group_by.is_empty(), "Views containing GROUP BY are not automatically updatable."),
        (select.having.is_some(), "Views containing HAVING are not automatically updatable."),
        (query.with.is_some(), "Views containing WITH are not automatically updatable."),
        (limited, "Views containing LIMIT or OFFSET are not automatically updatable."),
        (!matches!(select.from.as_slice(), [TableRef::Table { sample: None, .. }]), SINGLE),
        (
            has_node(plan, &|node| matches!(node, Logical::Aggregate { .. })),
            "Views that return aggregate functions are not automatically updatable.",
        ),
        (
            has_node(plan, &|node| matches!(node, Logical::Window(_))),
            "Views that return window functions are not automatically updatable.",
        ),
        (
            has_node(plan, &|node| matches!(node, Logical::ProjectSet(_))),
            "Views that return set-returning functions are not automatically updatable.",
        ),
    ];
    tests.into_iter().find(|(found, _)| *found).map(|(_, detail)| detail)
}

/// Returns whether one of the nodes above the source of the rows is of a kind.
fn has_node(plan: &Logical, is: &dyn Fn(&Logical) -> bool) -> bool {
    is(plan)
        || match plan {
            Logical::Project { input, .. }
            | Logical::Filter { input, .. }
            | Logical::Sort { input, .. } => has_node(input, is),
            _ => false,
        }
}

fn has_subquery(query: &ast::Query) -> bool {
    matches!(&query.body, QueryBody::Select(select) if select.selection.is_some())
}

/// Returns the rows of one table that a plan yields; `None` if it yields others.
fn simple(plan: Logical) -> Option<Simple> {
    match plan {
        Logical::Scan(scan) => {
            let table = Arc::clone(&scan.table);
            let column = |&index: &usize| {
                let data_type = table
                    .columns
                    .get(index)
                    .map_or(DataType::Timestamptz, |column| column.sql_type.base);
                Expr::Column { index, data_type }
            };
            let expressions = scan.columns.iter().map(column).collect();
            let is_plain = scan.as_of.is_none() && scan.lock.is_none() && !table.is_materialized();
            is_plain.then_some(Simple { table, expressions, predicates: Vec::new() })
        }
        Logical::Filter { input, predicate } => {
            let mut rows = simple(*input)?;
            let predicate = over(predicate, &rows.expressions)?;
            rows.predicates.push(predicate);
            Some(rows)
        }
        Logical::Project { input, expressions } => {
            let rows = simple(*input)?;
            let expressions = expressions.into_iter().map(|one| over(one, &rows.expressions));
            let expressions = expressions.collect::<Option<Vec<_>>>()?;
            Some(Simple { expressions, ..rows })
        }
        Logical::Sort { input, .. } => simple(*input),
        _ => None,
    }
}

/// Returns an expression over other expressions in the place of columns; `None` if it uses a column
/// that is none of them.
fn over(expr: Expr, columns: &[Expr]) -> Option<Expr> {
    let mut known = true;
    let expr = expr.transform(&mut |part| match part {
        Expr::Column { index, .. } => columns.get(index).cloned().unwrap_or_else(|| {
            known = false;
            part
        }),
        part => part,
    });
    known.then_some(expr)
}
