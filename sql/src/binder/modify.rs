//! UPDATE, DELETE and RETURNING.

use std::sync::Arc;

use types::DataType;
use types::expr::Expr;

use crate::ast::{self, Hint, SelectItem, TableName};
use crate::binder::from::{TIMESTAMP_NAME, scan_of};
use crate::binder::level::{Binder, Clause};
use crate::binder::locks::apply_hints;
use crate::binder::rows::{Rows, has_subquery};
use crate::binder::scope::{Relation, Scope};
use crate::binder::select::Target;
use crate::catalog::table::Table;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{Delete, Logical, Returning, Update};

/// The rows that a statement changes.
struct Changed {
    table: Arc<Table>,
    alias: String,
    rows: Rows,
    scope: Scope,
}

impl Binder<'_> {
    /// Returns the table that a statement writes.
    pub(super) fn written_table(&mut self, name: &TableName) -> Result<Arc<Table>> {
        if let Some(table) = self.find_table(name) {
            return Ok(Arc::clone(table));
        }
        if let Some(view) = self.find_view(name) {
            let what = format!("changing rows through view \"{}\"", view.name);
            let error = Error::not_supported(what, "Change the tables that it reads.");
            return Err(error.at(name.position()));
        }
        let schema = name.schema.as_ref().map(|schema| schema.value.as_str());
        if self.system.view(schema, &name.name.value).is_some() {
            let message = format!("cannot change system view \"{}\"", name.name.value);
            return Err(Error::new(sqlstate::INSUFFICIENT_PRIVILEGE, message).at(name.position()));
        }
        Err(self.no_table(name))
    }

    fn changed(
        &mut self,
        name: &TableName,
        alias: Option<&ast::Ident>,
        hints: &[Hint],
    ) -> Result<Changed> {
        let table = self.written_table(name)?;
        let alias = alias.map_or(&table.name, |alias| &alias.value).clone();
        let (mut rows, mut scope) = scan_of(&table, &alias, None);
        // The executor checks the predicate again on the locked row, which has no such column.
        for relation in &mut scope.relations {
            relation.hidden.clear();
        }
        if let Logical::Scan(scan) = &mut rows.plan {
            scan.columns.truncate(table.columns.len());
        }
        rows.types.truncate(table.columns.len());
        apply_hints(&mut rows.plan, &scope, hints, name.position())?;
        Ok(Changed { table, alias, rows, scope })
    }

    /// Binds UPDATE.
    pub(super) fn bind_update(&mut self, update: &ast::Update) -> Result<Update> {
        let with = update.with.as_ref().map(|with| self.open_with(with)).transpose()?;
        let Changed { table, alias, mut rows, scope } =
            self.changed(&update.table, update.alias.as_ref(), &update.hints)?;
        let bind = |binder: &mut Self| {
            let assignments = binder.bind_set(&table, &update.assignments)?;
            let predicate = binder.bind_selection(update.selection.as_ref())?;
            Ok((assignments, predicate))
        };
        let (bound, level) = self.within(scope, Clause::Set, bind).map_err(explain_timestamp)?;
        let (mut assignments, predicate) = bound;
        let recheck = predicate.clone().filter(|predicate| !has_subquery(predicate));
        if let Some(predicate) = predicate {
            rows.filter(predicate, &level.subqueries);
        }
        for assignment in &mut assignments {
            assignment.value = rows.place(assignment.value.clone(), &level.subqueries);
        }
        if let Some(with) = with {
            rows.plan = self.close_with(with, rows.plan);
        }
        let returning = self.bind_returning(&table, &alias, &update.returning)?;
        Ok(Update { table, source: rows.plan, recheck, assignments, returning })
    }

    /// Binds DELETE.
    pub(super) fn bind_delete(&mut self, delete: &ast::Delete) -> Result<Delete> {
        let with = delete.with.as_ref().map(|with| self.open_with(with)).transpose()?;
        let Changed { table, alias, mut rows, scope } =
            self.changed(&delete.table, delete.alias.as_ref(), &delete.hints)?;
        let bind = |binder: &mut Self| binder.bind_selection(delete.selection.as_ref());
        let (predicate, level) =
            self.within(scope, Clause::Where, bind).map_err(explain_timestamp)?;
        let recheck = predicate.clone().filter(|predicate| !has_subquery(predicate));
        if let Some(predicate) = predicate {
            rows.filter(predicate, &level.subqueries);
        }
        if let Some(with) = with {
            rows.plan = self.close_with(with, rows.plan);
        }
        let returning = self.bind_returning(&table, &alias, &delete.returning)?;
        Ok(Delete { table, source: rows.plan, recheck, returning })
    }

    fn bind_selection(&mut self, selection: Option<&ast::Expr>) -> Result<Option<Expr>> {
        selection.map(|selection| self.bind_condition(selection, Clause::Where)).transpose()
    }

    /// Binds RETURNING over the row in table order.
    pub(super) fn bind_returning(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        items: &[SelectItem],
    ) -> Result<Option<Returning>> {
        if items.is_empty() {
            return Ok(None);
        }
        let scope = Scope::of(Relation::of_table(alias, table, 0));
        let bind = |binder: &mut Self| {
            let mut targets = binder.bind_items(items, 1)?;
            for target in &mut targets {
                if target.value.base() == DataType::Unknown {
                    target.value = binder.known(target.value.clone())?;
                }
            }
            Ok(targets)
        };
        let (targets, level) =
            self.within(scope, Clause::Returning, bind).map_err(explain_timestamp)?;
        level.refuse_subqueries("RETURNING")?;
        let columns = targets.iter().map(Target::column).collect();
        let expressions = targets.into_iter().map(|target| target.value.expr).collect();
        Ok(Some(Returning { expressions, columns }))
    }
}

/// The pseudo-column is there, only not here.
fn explain_timestamp(error: Error) -> Error {
    if error.sqlstate != sqlstate::UNDEFINED_COLUMN || !error.message.contains(TIMESTAMP_NAME) {
        return error;
    }
    let refused =
        Error::not_supported("_timestamp in a statement that writes", "Read it with SELECT.");
    Error { position: error.position, ..refused }
}
