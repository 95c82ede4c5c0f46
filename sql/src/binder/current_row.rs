//! `WHERE CURRENT OF`, and the keys that the rows of a cursor have for it behind their columns.
//!
//! Source: PostgreSQL's `execCurrentOf` (execCurrent.c).

use types::expr::Expr;

use crate::ast::{Cursor, Ident, NamedQueryBody, Select, Selection};
use crate::binder::level::{Binder, Clause, Level};
use crate::binder::lock_rows::HeldFrom;
use crate::binder::locks::mark_only_scan;
use crate::binder::operators::all_of;
use crate::binder::rows::Rows;
use crate::binder::typed::Typed;
use crate::binder::written::Written;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{CurrentRow, CursorTable, LockedTable};

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

    /// Returns the keys of the tables of which a row of a cursor's query can be changed, over the
    /// columns of its FROM: of those that it locks, or else of the only one that it reads.
    pub(super) fn cursor_keys(
        &mut self,
        rows: &mut Rows,
        select: &Select,
        (level, held): (&Level, Option<&HeldFrom>),
        locks: bool,
    ) -> Vec<(CursorTable, Vec<Typed>)> {
        let is_plain = select.distinct.is_none() && level.window_calls.is_empty();
        if !is_plain || !level.set_uses.is_empty() {
            return Vec::new();
        }
        let only = match held.is_none() && !locks && mark_only_scan(&mut rows.plan) {
            true => Some(self.hold_rows(rows)),
            false => None,
        };
        let tables = held.or(only.as_ref()).map_or(&[][..], HeldFrom::tables);
        let keys = tables.iter().map(|LockedTable { table, key, .. }| {
            let value = |(&at, column): (&usize, usize)| {
                let sql_type = table.columns[column].sql_type;
                Typed { expr: Expr::column(at, sql_type.base), sql_type, position: 1 }
            };
            let values = key.iter().zip(table.key_columns()).map(value).collect();
            (CursorTable { table: table.id, columns: Vec::new() }, values)
        });
        keys.collect()
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
