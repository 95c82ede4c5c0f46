//! Targets of data-modifying statements: a table, or an automatically updatable view.
//!
//! A view is updatable if each of its rows is a row of one table: its query selects columns and
//! expressions over that table, or over another such view, with at most conditions and an order.
//! The statement is then bound over the row of the table: the names of the view are replaced by
//! expressions, and the conditions of the view are added to the statement's. Only view columns
//! that are columns of the table can be assigned.
//!
//! Source: PostgreSQL's `rewriteTargetView` and `view_query_is_auto_updatable` (rewriteHandler.c).
//! Subqueries in conditions become Apply nodes on the rows of the table; a check option with a
//! subquery is evaluated for each written row, in a plan over that row alone.

use std::ops::Range;
use std::sync::Arc;

use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::{
    self, CheckOption, ColumnName, Ident, QueryBody, TableName, TableRef, TriggerEvent,
};
use crate::binder::assignment::{has_family, target_column};
use crate::binder::conflict::{column_types, given_row};
use crate::binder::insert::not_default;
use crate::binder::level::{Binder, SecuredTable};
use crate::binder::parameters::Parameters;
use crate::binder::rows::{ApplyStep, Rows};
use crate::binder::scope::{RelationKind, ScopeColumn, ScopeRelation};
use crate::binder::system::{SessionConstants, SystemCatalog};
use crate::binder::tree::{conjunction, conjuncts, for_each_column};
use crate::binder::{NameContext, TableClause, bind_table_expression};
use crate::catalog::access::privilege::{DELETE, INSERT, SELECT, UPDATE};
use crate::catalog::table::{Column, Table};
use crate::catalog::view::View;
use crate::catalog::{self, Catalog, collation};
use crate::error::{Error, Result, sqlstate};
use crate::logical::{Apply, CheckSubject, LockRows, Logical, OutputColumn, RowAtHand, RowCheck};
use crate::parser;

/// The kind of a data-modifying statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementKind {
    /// INSERT and UPSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// MERGE.
    Merge,
}

impl StatementKind {
    /// Returns the privileges that the target needs, besides those of the actions of MERGE.
    fn privileges(self) -> u32 {
        match self {
            StatementKind::Insert => INSERT,
            StatementKind::Update => UPDATE,
            StatementKind::Delete => DELETE,
            StatementKind::Merge => SELECT,
        }
    }

    /// Returns the event of triggers; `None` for MERGE, which has several.
    fn trigger_event(self) -> Option<TriggerEvent> {
        match self {
            StatementKind::Insert => Some(TriggerEvent::Insert),
            StatementKind::Update => Some(TriggerEvent::Update),
            StatementKind::Delete => Some(TriggerEvent::Delete),
            StatementKind::Merge => None,
        }
    }
}

/// The target of a data-modifying statement.
pub(super) struct UpdateTarget {
    /// The table whose rows change.
    pub(super) table: Arc<Table>,
    change: StatementKind,
    through: Option<UpdatableView>,
    /// The role that the table is checked as; `None` for the current role.
    pub(super) check_as: Option<u32>,
}

/// The default that a view has for a column of a table, by the column's name.
type NamedDefault = (String, Expr);

/// An updatable view over a table.
struct UpdatableView {
    view: Arc<View>,
    /// The view, or one that it reads, is a security barrier.
    is_barrier: bool,
    /// Its columns, over the row of the table.
    columns: Vec<ScopeColumn>,
    /// The conditions of the view, over the row of the table followed by the columns of the
    /// subqueries.
    predicates: Vec<Expr>,
    /// The subqueries, in their order.
    steps: Vec<ApplyStep>,
    /// The views with a check option, and the views below them: the name and the range of its
    /// predicates, the view next to the table first.
    checks: Vec<(String, Range<usize>)>,
    /// The view's own defaults, by the names of the table's columns.
    defaults: Vec<NamedDefault>,
}

/// The rows of one table, as a view's plan returns them.
struct SingleTableRows {
    table: Arc<Table>,
    /// The output of the plan, over the row of the table followed by the columns of the
    /// subqueries.
    expressions: Vec<Expr>,
    /// The predicates over the same, those of the innermost view first.
    predicates: Vec<Expr>,
    steps: Vec<ApplyStep>,
    /// The number of columns of the table and the subqueries.
    width: usize,
}

impl SingleTableRows {
    /// Returns whether only columns of the table are used, and not pseudo-columns.
    fn is_of_table(&self) -> bool {
        let columns = self.table.columns.len();
        self.expressions.iter().all(|expr| is_within(expr, columns))
            && self.predicates.iter().all(|predicate| is_within(predicate, self.width))
    }
}

impl UpdateTarget {
    /// Returns the name of the target without an alias.
    pub(super) fn name(&self) -> &str {
        self.through.as_ref().map_or(&self.table.name, |through| &through.view.name)
    }

    /// Returns the view's own DEFAULT for a column of the table, which UPDATE through the view
    /// uses; defaults of underlying views do not count.
    pub(super) fn default_of_view(&self, column: &Column) -> Option<&Expr> {
        let through = self.through.as_ref()?;
        let named = |one: &NamedDefault| one.0 == column.name;
        through.defaults.iter().find(|one| named(one)).map(|(_, default)| default)
    }

    /// Returns the table with the role that it is checked as.
    pub(super) fn secured(&self) -> SecuredTable<'_> {
        SecuredTable { table: &self.table, check_as: self.check_as }
    }

    /// Returns the number of the relation that the statement names.
    pub(super) fn named(&self) -> u32 {
        self.through.as_ref().map_or(self.table.oid, |through| through.view.oid)
    }

    /// Returns whether the table is written through a view.
    pub(super) fn is_through_view(&self) -> bool {
        self.through.is_some()
    }

    /// Returns whether the statement names the table itself, whose rows have keys and `_timestamp`.
    pub(super) fn is_table(&self) -> bool {
        !self.is_through_view() && !self.table.is_view
    }

    /// Filters the rows of the table by the conditions of the view; returns the conditions over
    /// the row itself.
    pub(super) fn narrow(&self, rows: &mut Rows) -> Option<Expr> {
        let through = self.through.as_ref()?;
        let (own, others): (Vec<Expr>, Vec<Expr>) = through
            .predicates
            .iter()
            .flat_map(|predicate| conjuncts(predicate.clone()))
            .partition(|predicate| is_within(predicate, self.table.columns.len()));
        let own = conjunction(own);
        if let Some(predicate) = &own {
            rows.filter(predicate.clone(), &[]);
        }
        through.steps.iter().for_each(|step| rows.apply_plan(step.clone()));
        if let Some(predicate) = conjunction(others) {
            rows.filter(predicate, &[]);
        }
        if through.is_barrier {
            rows.over(|input| Logical::Barrier { input });
        }
        own
    }

    /// Returns the check options for written rows.
    pub(super) fn checks(&self, parameters: &mut Parameters) -> Vec<RowCheck> {
        let Some(through) = &self.through else { return Vec::new() };
        let mut checks = Vec::new();
        for (view, own) in &through.checks {
            let own = through.predicates.get(own.clone()).unwrap_or_default();
            let Some(predicate) = conjunction(own.to_vec()) else { continue };
            let subject = CheckSubject::View(view.clone());
            if is_within(&predicate, self.table.columns.len()) {
                checks.push(RowCheck { subject, predicate, row: None });
                continue;
            }
            let (parameters, mut rows) = given_row(column_types(&self.table), parameters);
            through.steps.iter().for_each(|step| rows.apply_plan(step.clone()));
            rows.project(vec![predicate]);
            let row = Some(Box::new(RowAtHand { parameters, plan: rows.plan }));
            let predicate = Expr::column(0, DataType::Bool);
            checks.push(RowCheck { subject, predicate, row });
        }
        checks
    }

    /// Returns the visible columns, over the row of the table.
    pub(super) fn relation(&self, alias: &str) -> ScopeRelation {
        let Some(UpdatableView { columns, .. }) = &self.through else {
            return ScopeRelation::of_table(alias, &self.table, 0);
        };
        let none: [OutputColumn; 0] = [];
        let relation = ScopeRelation::new(alias, &none);
        ScopeRelation { columns: columns.clone(), kind: RelationKind::Opaque, ..relation }
    }

    /// Returns the position of a target column in the table.
    pub(super) fn target(&self, name: &ColumnName) -> Result<usize> {
        let Some(through) = &self.through else { return target_column(&self.table, name) };
        let wanted = &name.name;
        let column = match &name.family {
            None => through.columns.iter().find(|column| column.name == wanted.value),
            Some(_) => None,
        };
        let column = column.ok_or_else(|| {
            err!(UNDEFINED_COLUMN: "column \"{}\" of relation \"{}\" does not exist", wanted.value, through.view.name;
                at wanted.position)
        })?;
        self.position_of(through, column)
    }

    /// Returns the column of a name whose fields can be assigned; `None` if the name is a family.
    pub(super) fn column_with_fields(&self, name: &Ident) -> Result<Option<usize>> {
        match &self.through {
            None if has_family(&self.table, &name.value) => Ok(None),
            None => Ok(self.table.column_index(&name.value)),
            Some(through) => {
                let column = through.columns.iter().find(|column| column.name == name.value);
                column.map(|column| self.position_of(through, column)).transpose()
            }
        }
    }

    fn position_of(&self, through: &UpdatableView, column: &ScopeColumn) -> Result<usize> {
        match column.expr {
            Expr::Column { index, .. } => Ok(index),
            _ => {
                let verb =
                    if self.change == StatementKind::Insert { "insert into" } else { "update" };
                Err(not_a_column(verb, &column.name, &through.view.name))
            }
        }
    }

    /// Returns the positions of the target columns of INSERT without a column list; through a
    /// view, of the first `width` ones.
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
    /// Returns the target of a statement.
    pub(super) fn written(
        &mut self,
        name: &TableName,
        change: StatementKind,
    ) -> Result<UpdateTarget> {
        match self.find_relation(name) {
            Some(catalog::CatalogRelation::Table(table)) if table.is_materialized() => {
                bail!(WRONG_OBJECT_TYPE: "cannot change materialized view \"{}\"", table.name);
            }
            Some(catalog::CatalogRelation::Table(table)) => {
                let table = Arc::clone(table);
                self.note_relation(name, table.oid, std::iter::empty());
                self.request(table.oid, change.privileges());
                let check_as = self.checked_role();
                return Ok(UpdateTarget { table, change, through: None, check_as });
            }
            Some(catalog::CatalogRelation::View(view)) => {
                let view = Arc::clone(view);
                self.note_relation(name, view.oid, std::iter::empty());
                if change.trigger_event().is_some_and(|event| view.has_instead(event)) {
                    self.request(view.oid, change.privileges());
                    let table = target_of_view(self.catalog, &view)?;
                    let check_as = self.checked_role();
                    return Ok(UpdateTarget { table, change, through: None, check_as });
                }
                let check_as = self.request_through(view.oid, change.privileges());
                let written = self.written_view(view, change)?;
                return Ok(UpdateTarget { check_as, ..written });
            }
            Some(catalog::CatalogRelation::Sequence(sequence)) => {
                bail!(WRONG_OBJECT_TYPE: "cannot change sequence \"{}\"", sequence.name; at name.position());
            }
            _ => {}
        }
        let schema = name.schema.as_ref().map(|schema| schema.value.as_str());
        if self.system.view(schema, &name.name.value).is_some() {
            bail!(INSUFFICIENT_PRIVILEGE: "cannot change system view \"{}\"", name.name.value; at name.position());
        }
        Err(self.no_table(name))
    }

    fn written_view(&mut self, view: Arc<View>, change: StatementKind) -> Result<UpdateTarget> {
        if change == StatementKind::Merge {
            bail!(FEATURE_NOT_SUPPORTED: "cannot execute MERGE on relation \"{}\"", view.name;
                detail "This operation is not supported for views.");
        }
        let (rows, scope) = self.bind_written_rows(&view)?;
        let refused = |detail: &str| Err(refusal(&view.name, change, detail));
        if let Some(detail) = why_not(view.query()?, &rows.plan) {
            return refused(detail);
        }
        if let [relation] = view.relations.as_slice()
            && let Some(inner) = self.catalog.view(relation.oid)
            && change.trigger_event().is_some_and(|event| inner.has_instead(event))
        {
            let what = "a change through a view of a view with INSTEAD OF triggers";
            let hint = "Create an INSTEAD OF trigger on the outer view, or change the inner view.";
            return Err(Error::not_supported(what, hint));
        }
        let is_barrier = has_node(&rows.plan, &|node| matches!(node, Logical::Barrier { .. }));
        let found = simple(rows.plan).filter(SingleTableRows::is_of_table);
        let Some(SingleTableRows { table, expressions, predicates, steps, .. }) = found else {
            // The reason may be in the underlying view.
            if let [relation] = view.relations.as_slice()
                && let Some(inner) = self.catalog.view(relation.oid)
            {
                return self.written_view(Arc::clone(inner), change);
            }
            if has_subquery(view.query()?) {
                let what = format!("modifying rows through view \"{}\" with a subquery", view.name);
                return Err(Error::not_supported(what, "Modify the underlying tables."));
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
        if change != StatementKind::Delete && !columns.iter().any(is_column) {
            return refused(
                "Views that have no updatable columns are not automatically updatable.",
            );
        }
        let checks = self.check_options(&view, predicates.len())?;
        let (table, defaults) = self.with_defaults(table, &view, (&columns, change))?;
        let through =
            Some(UpdatableView { view, is_barrier, columns, predicates, steps, checks, defaults });
        Ok(UpdateTarget { table, change, through, check_as: None })
    }

    /// Returns a table with the defaults that a view, and the underlying views, have for its
    /// columns: the outermost one counts. Also returns those of the view itself.
    fn with_defaults(
        &mut self,
        table: Arc<Table>,
        view: &Arc<View>,
        (columns, change): (&[ScopeColumn], StatementKind),
    ) -> Result<(Arc<Table>, Vec<NamedDefault>)> {
        let mut own = None;
        let mut found: Vec<(usize, Expr)> = Vec::new();
        let mut places: Vec<Expr> = columns.iter().map(|column| column.expr.clone()).collect();
        let mut next = Some(Arc::clone(view));
        while let Some(view) = next {
            for (column, place) in view.columns.iter().zip(&places) {
                let Some(text) = &column.default else { continue };
                match place {
                    Expr::Column { index, .. } if found.iter().any(|(at, _)| at == index) => {}
                    Expr::Column { index, .. }
                        if change == StatementKind::Insert
                            && table
                                .columns
                                .get(*index)
                                .is_some_and(|one| one.generated.is_some()) =>
                    {
                        return Err(not_default(&table.columns[*index].name));
                    }
                    Expr::Column { index, .. } => {
                        let target = Some(column.sql_type.clone());
                        let default = stored_expression(self.catalog, text, target)?;
                        found.push((*index, default));
                    }
                    _ if change == StatementKind::Insert => {
                        return Err(not_a_column("insert into", &column.name, &view.name));
                    }
                    _ => {}
                }
            }
            own.get_or_insert_with(|| found.clone());
            next = view.relations.first().and_then(|one| self.catalog.view(one.oid)).cloned();
            if let Some(inner) = &next {
                let (rows, _) = self.bind_written_rows(inner)?;
                places = simple(rows.plan).map_or(Vec::new(), |rows| rows.expressions);
            }
        }
        if found.is_empty() {
            return Ok((table, Vec::new()));
        }
        let named = |(at, default): (usize, Expr)| (table.columns[at].name.clone(), default);
        let own = own.into_iter().flatten().map(named).collect();
        let mut table = table.as_ref().clone();
        for (at, default) in found {
            table.columns[at].default = Some(default);
        }
        Ok((Arc::new(table), own))
    }

    /// Returns the views whose check options apply, with the range of each one's predicates among
    /// the first `count`, the view next to the table first.
    fn check_options(
        &mut self,
        view: &Arc<View>,
        mut count: usize,
    ) -> Result<Vec<(String, Range<usize>)>> {
        let (mut checks, mut cascades, mut next) = (Vec::new(), false, Some(Arc::clone(view)));
        while let Some(view) = next {
            let inner = view.relations.first().and_then(|one| self.catalog.view(one.oid));
            let inner = inner.cloned();
            let below = match &inner {
                None => 0,
                Some(inner) => {
                    let (rows, _) = self.bind_written_rows(inner)?;
                    simple(rows.plan).map_or(0, |rows| rows.predicates.len())
                }
            };
            if cascades || view.check_option.is_some() {
                checks.insert(0, (view.name.clone(), below..count));
            }
            cascades |= view.check_option == Some(CheckOption::Cascaded);
            (count, next) = (below, inner);
        }
        Ok(checks)
    }
}

/// Rejects a check option on a view that is not updatable.
///
/// # Errors
///
/// 0A000, with PostgreSQL's reason as the hint.
pub fn check_writable(
    view: &Arc<View>,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
) -> Result<()> {
    let constants = SessionConstants::new();
    let mut binder = Binder::new(catalog, system, &constants, Parameters::none());
    match binder.written_view(Arc::clone(view), StatementKind::Update) {
        Ok(_) => Ok(()),
        Err(error) if error.sqlstate == sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE => {
            let refused = err!(FEATURE_NOT_SUPPORTED: "WITH CHECK OPTION is supported only on automatically updatable views");
            Err(Error { hint: error.detail, ..refused })
        }
        Err(error) => Err(error),
    }
}

/// Returns for each column of a view whether it is updatable; `None` if the view is not updatable.
pub fn updatable_columns(
    view: &Arc<View>,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
) -> Option<Vec<bool>> {
    let constants = SessionConstants::new();
    let mut binder = Binder::new(catalog, system, &constants, Parameters::none());
    let through = binder.written_view(Arc::clone(view), StatementKind::Delete).ok()?.through?;
    let is_column = |column: &ScopeColumn| matches!(column.expr, Expr::Column { .. });
    Some(through.columns.iter().map(is_column).collect())
}

/// Returns the form of a view that INSTEAD OF triggers are on, with bound defaults.
///
/// # Errors
///
/// The error of a default, which a later change of an object can cause.
pub fn target_of_view(catalog: &Catalog, view: &View) -> Result<Arc<Table>> {
    let mut table = Table::clone(view.as_table());
    for (column, known) in table.columns.iter_mut().zip(&view.columns) {
        let oid = column.sql_type.domain;
        column.domain = oid.and_then(|oid| catalog.domain(oid)).cloned();
        column.collation = collation::of(catalog, &column.sql_type);
        let target = Some(column.sql_type.clone());
        column.default = match &known.default {
            Some(text) => Some(stored_expression(catalog, text, target)?),
            None => None,
        };
    }
    Ok(Arc::new(table))
}

fn stored_expression(catalog: &Catalog, text: &str, target: Option<SqlType>) -> Result<Expr> {
    let names = NameContext::stored(catalog);
    let expression = parser::parse_expression(text)?;
    bind_table_expression(TableClause::Catalog, &expression, &[], target, names)
}

/// Returns whether an expression uses only the leading columns.
fn is_within(expr: &Expr, columns: usize) -> bool {
    let mut is_within = true;
    for_each_column(expr, &mut |index| is_within &= index < columns);
    is_within
}

fn not_a_column(verb: &str, column: &str, view: &str) -> Error {
    err!(FEATURE_NOT_SUPPORTED: "cannot {verb} column \"{column}\" of view \"{view}\"";
        detail "View columns that are not columns of their base relation are not updatable.")
}

const SINGLE: &str =
    "Views that do not select from a single table or view are not automatically updatable.";

fn refusal(view: &str, change: StatementKind, detail: &str) -> Error {
    let (verb, doing, event) = match change {
        StatementKind::Insert => ("insert into", "inserting into", "INSERT"),
        StatementKind::Delete => ("delete from", "deleting from", "DELETE"),
        StatementKind::Update | StatementKind::Merge => ("update", "updating", "UPDATE"),
    };
    err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "cannot {verb} view \"{view}\""; detail detail;
        hint "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule.")
}

/// Returns the reason why a view's query is not updatable, in the order of PostgreSQL's tests.
fn why_not(query: &ast::QueryExpr, plan: &Logical) -> Option<&'static str> {
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

/// Returns whether a node above the source of the rows is of a kind.
fn has_node(plan: &Logical, is: &dyn Fn(&Logical) -> bool) -> bool {
    is(plan)
        || match plan {
            Logical::Project { input, .. }
            | Logical::Filter { input, .. }
            | Logical::Sort { input, .. }
            | Logical::Barrier { input }
            | Logical::LockRows(LockRows { input, .. }) => has_node(input, is),
            _ => false,
        }
}

fn has_subquery(query: &ast::QueryExpr) -> bool {
    matches!(&query.body, QueryBody::Select(select) if select.selection.is_some())
}

/// Returns the rows of one table that a plan returns; `None` if the plan is not of that form.
fn simple(plan: Logical) -> Option<SingleTableRows> {
    match plan {
        Logical::Scan(scan) => {
            let table = Arc::clone(&scan.table);
            let column = |&index: &usize| {
                let data_type = table
                    .columns
                    .get(index)
                    .map_or(DataType::Timestamptz, |column| column.sql_type.base.clone());
                Expr::Column { index, data_type }
            };
            let expressions = scan.columns.iter().map(column).collect();
            let is_plain =
                scan.system_time.is_none() && scan.lock.is_none() && !table.is_materialized();
            let width = table.columns.len();
            let (predicates, steps) = (Vec::new(), Vec::new());
            is_plain.then_some(SingleTableRows { table, expressions, predicates, steps, width })
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
            Some(SingleTableRows { expressions, ..rows })
        }
        Logical::Sort { input, .. }
        | Logical::LockRows(LockRows { input, .. })
        | Logical::Barrier { input } => simple(*input),
        Logical::Apply(apply) => applied(apply),
        _ => None,
    }
}

/// Returns rows with the columns that a subquery appends.
fn applied(apply: Apply) -> Option<SingleTableRows> {
    let Apply { input, subquery, bindings, mut kind, guard, .. } = apply;
    let mut rows = simple(*input)?;
    let guard = match guard {
        Some(guard) => Some(over(guard, &rows.expressions)?),
        None => None,
    };
    let bindings =
        bindings.into_iter().map(|(parameter, column)| match rows.expressions.get(column)? {
            Expr::Column { index, .. } => Some((parameter, *index)),
            _ => None,
        });
    let bindings = bindings.collect::<Option<Vec<_>>>()?;
    let column = |(at, data_type): (usize, DataType)| Expr::column(rows.width + at, data_type);
    let types = subquery.column_types();
    if let Some(condition) = kind.condition_mut() {
        let own = types.iter().cloned().enumerate().map(column);
        let columns: Vec<Expr> = rows.expressions.iter().cloned().chain(own).collect();
        *condition = over(condition.clone(), &columns)?;
    }
    let added: Vec<Expr> = kind.added_types(types).into_iter().enumerate().map(column).collect();
    rows.width += added.len();
    rows.expressions.extend(added);
    rows.steps.push(ApplyStep { subquery, bindings, kind, guard });
    Some(rows)
}

/// Returns an expression with its columns replaced by these expressions; `None` if it uses a
/// column that is none of them.
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
