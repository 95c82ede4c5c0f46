//! `WHERE CURRENT OF`, and the keys that the rows of a cursor have for it behind their columns.
//!
//! Source: PostgreSQL's `execCurrentOf` (execCurrent.c).

use types::expr::Expr;

use crate::ast::{Cursor, Ident, NamedQueryBody, Query, Select, Selection};
use crate::binder::level::{Binder, Clause, Level};
use crate::binder::operators::all_of;
use crate::binder::scope::RelationKind;
use crate::binder::typed::Typed;
use crate::binder::written::Written;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{CurrentRow, CursorTable};

impl Binder<'_> {
    /// Binds which rows a statement changes.
    pub(super) fn bind_selection(
        &mut self,
        written: &Written,
        selection: Option<&Selection>,
    ) -> Result<Option<Expr>> {
        match selection {
            None => Ok(None),
            Some(Selection::Where(condition)) => {
                self.bind_condition(condition, Clause::Where).map(Some)
            }
            Some(Selection::CurrentOf(cursor)) => self.is_current(written, cursor).map(Some),
        }
    }

    /// Returns the condition that a row of the table is the one that a cursor stands on: its key
    /// is that of parameters.
    fn is_current(&mut self, written: &Written, cursor: &Ident) -> Result<Expr> {
        if written.is_view() {
            let message = "WHERE CURRENT OF on a view is not implemented";
            return Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
        }
        if self.frame.is_some() {
            let hint = "Give the key of the row to the function.";
            return Err(
                Error::not_supported("WHERE CURRENT OF in a function", hint).at(cursor.position)
            );
        }
        let table = &written.table;
        let (mut parameters, mut equal) = (Vec::new(), Vec::new());
        for column in table.key_columns() {
            let sql_type = table.columns[column].sql_type;
            let index = self.parameters.outer();
            parameters.push(index);
            let side = |expr| Typed { expr, sql_type, position: cursor.position };
            let left = side(Expr::column(column, sql_type.base));
            let right = side(Expr::Parameter { index, data_type: sql_type.base });
            equal.push(self.operator("=", left, right, cursor.position)?.expr);
        }
        self.current_row = Some(CurrentRow {
            cursor: cursor.value.clone(),
            table: table.id,
            table_name: table.name.clone(),
            parameters,
        });
        Ok(all_of(equal))
    }

    /// Returns the keys of the tables of which a row of a cursor's query can be changed: of those
    /// that it locks, or else of the only one that it reads.
    pub(super) fn cursor_keys(
        &self,
        select: &Select,
        query: &Query,
        level: &Level,
    ) -> Vec<(CursorTable, Vec<Typed>)> {
        let is_plain = select.distinct.is_none() && level.window_calls.is_empty();
        if !is_plain || !level.set_uses.is_empty() {
            return Vec::new();
        }
        let relations = &level.scope.relations;
        let is_locked = |alias: &str| {
            query.locking.iter().any(|one| one.of.as_ref().is_none_or(|of| of.value == *alias))
        };
        let mut keys = Vec::new();
        for relation in relations.iter().filter(|one| one.kind == RelationKind::Table) {
            let wanted = match query.locking.is_empty() {
                true => relations.len() == 1,
                false => is_locked(&relation.alias),
            };
            let Some(table) = relation.table.as_ref().filter(|_| wanted) else { continue };
            let place = |column: &crate::binder::scope::ScopeColumn| match column.expr {
                Expr::Column { index, .. } => index.checked_sub(column.origin?.1),
                _ => None,
            };
            let Some(first) = relation.columns.first().and_then(place) else { continue };
            let key = table.key_columns().map(|column| {
                let sql_type = table.columns[column].sql_type;
                let expr = Expr::column(first + column, sql_type.base);
                Typed { expr, sql_type, position: 1 }
            });
            let of = CursorTable { table: table.id, columns: Vec::new() };
            keys.push((of, key.collect()));
        }
        keys
    }
}

/// Checks that a cursor can be as it is declared.
///
/// # Errors
///
/// 0A000 and 42P11, as PostgreSQL's `transformDeclareCursorStmt` has them.
pub fn check_cursor(cursor: &Cursor) -> Result<()> {
    let mut parts = cursor.query.with.iter().flat_map(|with| &with.queries);
    if parts.any(|part| matches!(part.body, NamedQueryBody::Change(_))) {
        let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
        return Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
    }
    let Some(locking) = cursor.query.locking.first() else { return Ok(()) };
    let clause = locking.strength.clause();
    let not_supported = sqlstate::FEATURE_NOT_SUPPORTED;
    let (code, message, which) = if cursor.hold {
        let message = format!("DECLARE CURSOR WITH HOLD ... {clause} is not supported");
        (not_supported, message, "Holdable")
    } else if cursor.scroll == Some(true) {
        let message = format!("DECLARE SCROLL CURSOR ... {clause} is not supported");
        (not_supported, message, "Scrollable")
    } else if cursor.insensitive {
        let message = format!("DECLARE INSENSITIVE CURSOR ... {clause} is not valid");
        (sqlstate::INVALID_CURSOR_DEFINITION, message, "Insensitive")
    } else {
        return Ok(());
    };
    Err(Error::new(code, message).with_detail(format!("{which} cursors must be READ ONLY.")))
}
