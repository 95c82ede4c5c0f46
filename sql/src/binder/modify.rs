//! Binding of UPDATE, DELETE and RETURNING.
//!
//! The rows to change are a plan whose first columns are those of the target table, followed by
//! those of FROM or USING that values and RETURNING need.

use std::collections::BTreeSet;
use std::sync::Arc;

use store::transaction::LockWait;
use types::cast::CastContext;
use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::{
    self, CellAttributes, Hint, Ident, LockStrength, PolicyCommand, SelectItem, TableName, TableRef,
};
use crate::binder::from::{TIMESTAMP_NAME, scan_of};
use crate::binder::level::{Binder, Clause};
use crate::binder::lock_rows::LockedFrom;
use crate::binder::rows::{Rows, has_subquery};
use crate::binder::scope::Scope;
use crate::binder::select::Target;
use crate::binder::tree::{conjunction, conjuncts, for_each_column, identity, map_columns};
use crate::binder::typed::boolean;
use crate::binder::update_target::{StatementKind, UpdateTarget};
use crate::catalog::table::Table;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{
    BoundPlan, CteScan, Delete, JoinKind, Logical, NamedStep, OutputColumn, Query, Returning,
    RowLock, Steps, TableScan, Update,
};

/// The rows that a statement changes.
pub(super) struct ModifiedRows {
    /// The target.
    pub(super) written: UpdateTarget,
    /// The condition, over the table's columns, of the view through which the table is changed.
    pub(super) predicate: Option<Expr>,
    /// The rows, with all columns.
    pub(super) rows: Rows,
    /// The names of the columns.
    pub(super) scope: Scope,
}

impl Binder<'_> {
    /// Returns the rows of a table that a statement changes.
    pub(super) fn changed(
        &mut self,
        (name, change): (&TableName, StatementKind),
        alias: Option<&Ident>,
        hints: &[Hint],
    ) -> Result<ModifiedRows> {
        let written = self.written(name, change)?;
        if written.table.is_view {
            return self.changed_view(written, alias, (hints, name.position()));
        }
        let table = &written.table;
        let alias = alias.map_or(written.name(), |alias| &alias.value);
        let (mut rows, mut scope) = scan_of(table, alias, None);
        if change == StatementKind::Merge || written.is_through_view() {
            hide_timestamp(&mut scope);
            drop_timestamp(&mut rows, table.columns.len());
        }
        self.apply_hints(&mut rows.plan, &scope, hints, name.position())?;
        if written.is_through_view() {
            scope = Scope::of(written.relation(alias));
        }
        let predicate = written.narrow(&mut rows);
        Ok(ModifiedRows { written, predicate, rows, scope })
    }

    /// Returns the rows of a view whose INSTEAD OF triggers a statement calls.
    fn changed_view(
        &mut self,
        written: UpdateTarget,
        alias: Option<&Ident>,
        (hints, position): (&[Hint], usize),
    ) -> Result<ModifiedRows> {
        let alias = alias.map_or(written.name(), |alias| &alias.value);
        let number = written.table.oid;
        let view = self.catalog.view(number).cloned();
        let view = view.ok_or_else(|| err!(INTERNAL_ERROR: "no view with number {number}"))?;
        let (mut rows, mut scope) = self.bind_view_rows(&view, alias, &[])?;
        scope.relations.iter_mut().for_each(|one| one.row_type = Some(number));
        self.apply_hints(&mut rows.plan, &scope, hints, position)?;
        Ok(ModifiedRows { written, predicate: None, rows, scope })
    }

    /// Joins the rows to change with those of FROM or USING.
    fn join_changed(&mut self, changed: &mut ModifiedRows, tables: &[TableRef]) -> Result<()> {
        if tables.is_empty() {
            return Ok(());
        }
        let (rows, scope) = self.bind_from_of_target(tables, &changed.scope)?;
        let own = std::mem::take(&mut changed.scope);
        changed.scope = own.join(scope, changed.rows.types.len())?;
        changed.rows.join(rows, JoinKind::Inner, boolean(true));
        Ok(())
    }

    /// If a condition or value has a subquery, adds a LockRows node for the rows to change, so
    /// that a row that was changed concurrently is re-evaluated with the subquery. Other
    /// conditions are rechecked when the row is written.
    fn hold_changed<'e>(
        &mut self,
        (table, rows): (&Table, &mut Rows),
        strength: LockStrength,
        mut expressions: impl Iterator<Item = &'e Expr>,
    ) -> Option<LockedFrom> {
        if table.is_view || !expressions.any(has_subquery) {
            return None;
        }
        mark_changed(&mut rows.plan, strength);
        Some(self.hold_rows(rows))
    }

    /// Binds UPDATE.
    pub(super) fn bind_update(&mut self, update: &ast::UpdateStatement) -> Result<BoundPlan> {
        let mut changed = self.changed(
            (&update.table, StatementKind::Update),
            update.alias.as_ref(),
            &update.hints,
        )?;
        self.join_changed(&mut changed, &update.from)?;
        let ModifiedRows { written, predicate: reached, mut rows, scope } = changed;
        let bind = |binder: &mut Self| {
            // The order is PostgreSQL's: the first use of a parameter determines its type.
            let predicate = binder.bind_selection(&written, update.selection.as_ref())?;
            binder.level().clause = Clause::Set;
            let assignments = binder.bind_set(&written, &update.assignments)?;
            Ok((assignments, predicate))
        };
        let (bound, mut level) = self.in_new_level(scope, Clause::Where, bind)?;
        let (mut assignments, predicate) = bound;
        let width = written.table.columns.len();
        let values = assignments.iter().map(|assignment| &assignment.value);
        let has_timestamp = written.is_table() && values.chain(&predicate).any(reads(width));
        if !has_timestamp {
            drop_timestamp(&mut rows, width);
        }
        hide_timestamp(&mut level.scope);
        let returns = !update.returning.is_empty();
        let plan = &mut rows.plan;
        let policy = self.secure_target(&written, plan, (PolicyCommand::Update, returns))?;
        let mut recheck = recheck_of([policy.as_ref(), reached.as_ref(), predicate.as_ref()]);
        let values = assignments.iter().map(|assignment| &assignment.value);
        // A change of the key acquires the stronger lock mode when the row is written.
        let strength = LockStrength::NoKeyUpdate;
        let mut held = self.hold_changed(
            (&written.table, &mut rows),
            strength,
            values.chain(&predicate).chain(&policy),
        );
        if let Some(predicate) = predicate {
            rows.filter(predicate, &level.subqueries);
        }
        let table = Arc::clone(&written.table);
        for assignment in &mut assignments {
            assignment.value = rows.place(assignment.value.clone(), &level.subqueries);
        }
        let types = rows.types.clone();
        let (mut returning, query) = self.bind_returning(level.scope, types, &update.returning)?;
        let values = assignments.iter_mut().map(|assignment| &mut assignment.value);
        let shown = returning.iter_mut().flat_map(|returning| &mut returning.expressions);
        let used: Vec<&mut Expr> = values.chain(shown).chain(&mut recheck).collect();
        let reads_timestamp = has_timestamp && used.iter().map(|expr| &**expr).any(reads(width));
        narrow(&mut rows, width, used, held.as_mut());
        if let Some(held) = held {
            rows.over(|input| held.over(input));
        }
        let repeats = !update.from.is_empty() && !table.is_view;
        let mut checks = written.checks(&mut self.parameters);
        checks.extend(self.update_checks(&written, returns)?);
        let source = rows.plan;
        let update = Update {
            table,
            source,
            reads_timestamp,
            recheck,
            assignments,
            repeats,
            checks,
            returning,
        };
        Ok(returning_query(BoundPlan::Update(update), query))
    }

    /// Binds DELETE.
    pub(super) fn bind_delete(&mut self, delete: &ast::DeleteStatement) -> Result<BoundPlan> {
        if let Some(limit) = &delete.limit {
            let delete = self.limited_delete(delete, limit)?;
            return self.bind_delete(&delete);
        }
        let mut changed = self.changed(
            (&delete.table, StatementKind::Delete),
            delete.alias.as_ref(),
            &delete.hints,
        )?;
        self.join_changed(&mut changed, &delete.using)?;
        let ModifiedRows { written, predicate: reached, mut rows, scope } = changed;
        let bind = |binder: &mut Self| binder.bind_selection(&written, delete.selection.as_ref());
        let (predicate, mut level) = self.in_new_level(scope, Clause::Where, bind)?;
        let width = written.table.columns.len();
        let has_timestamp = written.is_table() && predicate.iter().any(reads(width));
        if !has_timestamp {
            drop_timestamp(&mut rows, width);
        }
        hide_timestamp(&mut level.scope);
        let plan = &mut rows.plan;
        let command = (PolicyCommand::Delete, !delete.returning.is_empty());
        let policy = self.secure_target(&written, plan, command)?;
        let mut recheck = recheck_of([policy.as_ref(), reached.as_ref(), predicate.as_ref()]);
        let conditions = predicate.iter().chain(&policy);
        let mut held =
            self.hold_changed((&written.table, &mut rows), LockStrength::Update, conditions);
        if let Some(predicate) = predicate {
            rows.filter(predicate, &level.subqueries);
        }
        let table = Arc::clone(&written.table);
        let types = rows.types.clone();
        let (mut returning, query) = self.bind_returning(level.scope, types, &delete.returning)?;
        let shown = returning.iter_mut().flat_map(|returning| &mut returning.expressions);
        let used: Vec<&mut Expr> = shown.chain(&mut recheck).collect();
        let reads_timestamp = has_timestamp && used.iter().map(|expr| &**expr).any(reads(width));
        narrow(&mut rows, width, used, held.as_mut());
        if let Some(held) = held {
            rows.over(|input| held.over(input));
        }
        let attributes = self.bind_cell_attributes(&table, &delete.attributes)?;
        let source = rows.plan;
        let delete = Delete { table, source, reads_timestamp, recheck, attributes, returning };
        Ok(returning_query(BoundPlan::Delete(delete), query))
    }

    /// Returns a DELETE with dynamic columns or `LIMIT n` as the deletion of the rows whose keys a
    /// query yields.
    fn limited_delete(
        &mut self,
        delete: &ast::DeleteStatement,
        limit: &ast::DeleteLimit,
    ) -> Result<ast::DeleteStatement> {
        let written = self.written(&delete.table, StatementKind::Delete)?;
        let position = limit.position;
        let selection = match &delete.selection {
            Some(ast::Selection::Where(condition)) => Some(condition.clone()),
            None => None,
            Some(ast::Selection::CurrentOf(_)) => return Err(unlimited(position)),
        };
        let has_key = written.is_table() && written.table.row_id_column().is_none();
        if !has_key || !delete.using.is_empty() {
            return Err(unlimited(position));
        }
        let column = |at: usize| {
            let value = written.table.columns[at].name.clone();
            ast::Expr::Column(vec![Ident { value, position }])
        };
        let mut keys: Vec<ast::Expr> = written.table.key_columns().map(column).collect();
        let items = keys.iter().map(|key| SelectItem::Expr { expr: key.clone(), alias: None });
        let mut select = ast::Select::of_items(items.collect(), position);
        select.selection = selection;
        let alias = delete.alias.clone();
        select.from.push(TableRef::Table {
            name: delete.table.clone(),
            dynamic_columns: limit.dynamic_columns.clone(),
            alias: alias.map(|name| ast::TableAlias { name, columns: Vec::new() }),
            system_time: None,
            sample: None,
            locking: Vec::new(),
        });
        let query = ast::QueryExpr {
            order_by: limit.order_by.clone(),
            limit: limit.limit.clone(),
            ..ast::QueryExpr::bare(ast::QueryBody::Select(Box::new(select)), position)
        };
        let operand = match keys.len() {
            1 => keys.remove(0),
            _ => ast::Expr::Row { fields: keys, position },
        };
        let chosen = ast::Expr::InSubquery {
            operand: Box::new(operand),
            query: Box::new(query),
            negated: false,
            position,
        };
        let selection = Some(ast::Selection::Where(chosen));
        Ok(ast::DeleteStatement { selection, limit: None, ..delete.clone() })
    }

    /// Binds the attributes of the cells that a statement writes to a table.
    pub(super) fn bind_cell_attributes(
        &mut self,
        table: &Table,
        attributes: &CellAttributes,
    ) -> Result<CellAttributes<Expr>> {
        let CellAttributes { timestamp, version, ttl } = attributes;
        let refuse = |first: &ast::Expr, what: &str, option: &str| {
            let name = types::function::quote_ident(&table.name);
            err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "statements cannot set {what} of table \"{}\"", table.name;
                hint "Use ALTER TABLE {name} SET ({option})."; at first.position())
        };
        if let Some(first) = timestamp.iter().chain(version).next()
            && !table.client_timestamps
        {
            return Err(refuse(first, "timestamps", "timestamps = 'client'"));
        }
        if let Some(first) = ttl
            && !table.cell_ttl
        {
            return Err(refuse(first, "TTLs", "cell_ttl = true"));
        }
        let mut bind = |name: &str, written: &Option<ast::Expr>, to: DataType| match written {
            Some(written) => self.bind_cell_attribute(name, written, &to.into()).map(Some),
            None => Ok(None),
        };
        Ok(CellAttributes {
            timestamp: bind("TIMESTAMP", timestamp, DataType::Timestamptz)?,
            version: bind("VERSION", version, DataType::Timestamptz)?,
            ttl: bind("TTL", ttl, DataType::Interval)?,
        })
    }

    fn bind_cell_attribute(
        &mut self,
        name: &str,
        written: &ast::Expr,
        to: &SqlType,
    ) -> Result<Expr> {
        let bind = |binder: &mut Self| {
            let value = binder.bind_expr(written)?;
            let (from, position) = (value.base().clone(), value.position);
            binder.coerce(value, to, CastContext::Assignment)?.ok_or_else(|| {
                err!(DATATYPE_MISMATCH: "argument of WITH {name} must be type {}, not type {}",
                    to.base.sql_name(), from.sql_name(); with_type_mention from; at position)
            })
        };
        let (expr, level) = self.in_new_level(Scope::default(), Clause::CellAttributes, bind)?;
        level.refuse_subqueries("WITH of a data-changing statement")?;
        Ok(expr)
    }

    /// Binds RETURNING over the row in table order, with columns of these types. If it has
    /// subqueries, the statement returns the whole row, and a second query evaluates RETURNING
    /// over these rows.
    pub(super) fn bind_returning(
        &mut self,
        scope: Scope,
        types: Vec<DataType>,
        items: &[SelectItem],
    ) -> Result<(Option<Returning>, Option<ReturningQuery>)> {
        if items.is_empty() {
            return Ok((None, None));
        }
        let bind = |binder: &mut Self| {
            let mut targets = binder.bind_items(items, 1)?;
            for target in &mut targets {
                if *target.value.base() == DataType::Unknown {
                    target.value = binder.resolve_unknown(target.value.clone())?;
                }
            }
            Ok(targets)
        };
        let (targets, level) =
            self.in_new_level(scope, Clause::Returning, bind).map_err(explain_timestamp)?;
        let columns: Vec<OutputColumn> = targets.iter().map(Target::column).collect();
        let values = targets.into_iter().map(|target| target.value.expr);
        if level.subqueries.is_empty() {
            return Ok((Some(Returning { expressions: values.collect(), columns }), None));
        }
        let row = |data_type: &DataType| OutputColumn {
            name: "row".to_owned(),
            sql_type: data_type.into(),
            origin: None,
        };
        let raw: Vec<OutputColumn> = types.iter().map(row).collect();
        let id = self.new_name();
        let name = "changed rows".to_owned();
        let scan = CteScan {
            id,
            name: name.clone(),
            columns: raw.clone(),
            is_work_table: false,
            rows: None,
        };
        let expressions = identity(&types);
        let mut rows = Rows::new(Logical::CteScan(scan), types);
        let values = values.map(|value| rows.place(value, &level.subqueries)).collect();
        rows.project(values);
        let query = Query { plan: rows.plan, columns };
        let query = ReturningQuery { id, name, query };
        Ok((Some(Returning { expressions, columns: raw }), Some(query)))
    }
}

/// Marks the scan of the target table for [`Binder::hold_rows`].
pub(super) fn mark_changed(plan: &mut Logical, strength: LockStrength) {
    let lock = RowLock { strength, wait: LockWait::Wait, for_change: true };
    if let Some(scan) = changed_scan(plan) {
        scan.lock = Some(lock);
    }
}

/// Returns the scan of the target table: the first input of all nodes.
pub(super) fn changed_scan(plan: &mut Logical) -> Option<&mut TableScan> {
    match plan {
        Logical::Scan(scan) => Some(scan),
        Logical::Join(join) => changed_scan(&mut join.left),
        Logical::Apply(apply) => changed_scan(&mut apply.input),
        Logical::Filter { input, .. }
        | Logical::Project { input, .. }
        | Logical::Barrier { input } => changed_scan(input),
        _ => None,
    }
}

/// Returns the condition to recheck on a locked row: those of the policies, of the view and of the
/// statement, which are evaluated in this order, as far as they have no subquery.
fn recheck_of(conditions: [Option<&Expr>; 3]) -> Option<Expr> {
    let [policy, reached, own] = conditions;
    let own = own.filter(|predicate| !has_subquery(predicate));
    let parts = [policy, reached, own].into_iter().flatten().cloned().flat_map(conjuncts);
    conjunction(parts.filter(|part| !has_subquery(part)).collect())
}

/// A query over the rows that a statement returns.
pub(super) struct ReturningQuery {
    id: usize,
    name: String,
    query: Query,
}

/// Returns the statement followed by the query of its RETURNING.
pub(super) fn returning_query(bound: BoundPlan, query: Option<ReturningQuery>) -> BoundPlan {
    let Some(ReturningQuery { id, name, query }) = query else { return bound };
    let before = vec![NamedStep { id, name, bound }];
    BoundPlan::Steps(Steps { before, last: Box::new(BoundPlan::Query(query)) })
}

/// Removes the columns after those of the table that neither the expressions nor the row locks
/// use. Returns the number of columns without those for the row locks.
pub(super) fn narrow(
    rows: &mut Rows,
    width: usize,
    mut expressions: Vec<&mut Expr>,
    held: Option<&mut LockedFrom>,
) -> usize {
    let mut used = BTreeSet::new();
    for expr in &expressions {
        for_each_column(expr, &mut |index| {
            if index >= width {
                used.insert(index);
            }
        });
    }
    let mut kept: Vec<usize> = (0..width).chain(used).collect();
    let count = kept.len();
    if let Some(held) = &held {
        let of_held = held.needed().filter(|column| !kept.contains(column));
        let of_held: BTreeSet<usize> = of_held.collect();
        kept.extend(of_held);
    }
    if kept.iter().cloned().eq(0..rows.types.len()) {
        return count;
    }
    let column = |&index: &usize| Expr::column(index, &rows.types[index]);
    let columns = kept.iter().map(column).collect();
    rows.project(columns);
    let place = |index| kept.iter().position(|&column| column == index).unwrap_or(index);
    for expr in &mut expressions {
        map_columns(expr, &place);
    }
    if let Some(held) = held {
        held.renumber(&place);
    }
    count
}

/// Returns a function that returns whether an expression reads a column.
fn reads(column: usize) -> impl Fn(&Expr) -> bool {
    move |expr| {
        let mut found = false;
        for_each_column(expr, &mut |index| found |= index == column);
        found
    }
}

/// Hides `_timestamp` of the target table: a condition on it could not be rechecked, and in
/// RETURNING it is unknown until the transaction commits.
fn hide_timestamp(scope: &mut Scope) {
    if let Some(relation) = scope.relations.first_mut() {
        relation.hidden.retain(|column| column.name != TIMESTAMP_NAME);
    }
}

/// Removes `_timestamp` from a scan of a table if nothing reads it. Joins retain it until
/// [`narrow`].
fn drop_timestamp(rows: &mut Rows, width: usize) {
    if let Logical::Scan(scan) = &mut rows.plan {
        scan.columns.truncate(width);
        rows.types.truncate(width);
    }
}

/// Explains that the pseudo-column exists but is not available in RETURNING.
fn explain_timestamp(error: Error) -> Error {
    if error.sqlstate != sqlstate::UNDEFINED_COLUMN || !error.message.contains(TIMESTAMP_NAME) {
        return error;
    }
    let hint = "It is assigned at commit. Read it with SELECT after the commit.";
    let refused = Error::not_supported("_timestamp in RETURNING", hint);
    Error { position: error.position, ..refused }
}

/// Returns the error for dynamic columns or LIMIT of a DELETE whose rows have no key that a query
/// can yield.
fn unlimited(position: usize) -> Error {
    let what = "LIMIT or dynamic columns in DELETE of a view, without a primary key, with USING or CURRENT OF";
    let hint = "Use a subquery: WHERE column IN (SELECT column … LIMIT n).";
    Error::not_supported(what, hint).at(position)
}
