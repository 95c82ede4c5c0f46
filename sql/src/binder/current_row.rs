//! `WHERE CURRENT OF`, and the row keys that a cursor's query appends to its columns for it.
//!
//! Source: PostgreSQL's `execCurrentOf` (execCurrent.c).

use types::expr::Expr;

use crate::ast::{DeclareCursor, Ident, NamedQueryBody, Select, Selection};
use crate::binder::level::{Binder, Clause, QueryLevel};
use crate::binder::lock_marks::mark_only_scan;
use crate::binder::lock_rows::LockedFrom;
use crate::binder::operators::all_of;
use crate::binder::rows::Rows;
use crate::binder::typed::Typed;
use crate::binder::update_target::UpdateTarget;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{CurrentRow, CursorTable, LockedTable};

impl Binder<'_> {
    /// Binds the condition of the rows that UPDATE or DELETE changes.
    pub(super) fn bind_selection(
        &mut self,
        written: &UpdateTarget,
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

    /// Returns the condition for the current row of a cursor: its key equals parameters, which the
    /// session sets.
    fn is_current(&mut self, written: &UpdateTarget, cursor: &Ident) -> Result<Expr> {
        if !written.is_table() {
            bail!(FEATURE_NOT_SUPPORTED: "WHERE CURRENT OF on a view is not implemented");
        }
        if self.frame.is_some() {
            let hint = "Pass the key of the row to the function.";
            return Err(
                Error::not_supported("WHERE CURRENT OF in a function", hint).at(cursor.position)
            );
        }
        let table = &written.table;
        let (mut parameters, mut equal) = (Vec::new(), Vec::new());
        for column in table.key_columns() {
            let sql_type = &table.columns[column].sql_type;
            let index = self.parameters.outer();
            parameters.push(index);
            let side = |expr| Typed { expr, sql_type: sql_type.clone(), position: cursor.position };
            let left = side(Expr::column(column, &sql_type.base));
            let right = side(Expr::Parameter { index, data_type: sql_type.base.clone() });
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

    /// Returns the row keys of the tables whose rows are updatable through the cursor, over the
    /// columns of FROM: the tables that the query locks, or else the only table that it reads.
    pub(super) fn cursor_keys(
        &mut self,
        rows: &mut Rows,
        select: &Select,
        (level, held): (&QueryLevel, Option<&LockedFrom>),
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
        let tables = held.or(only.as_ref()).map_or(&[][..], LockedFrom::tables);
        let keys = tables.iter().map(|LockedTable { table, key, .. }| {
            let value = |(&at, column): (&usize, usize)| {
                let sql_type = &table.columns[column].sql_type;
                Typed {
                    expr: Expr::column(at, &sql_type.base),
                    sql_type: sql_type.clone(),
                    position: 1,
                }
            };
            let values = key.iter().zip(table.key_columns()).map(value).collect();
            (CursorTable { table: table.id, columns: Vec::new() }, values)
        });
        keys.collect()
    }
}

/// Checks the options of a cursor against its query.
///
/// # Errors
///
/// 0A000 and 42P11, as PostgreSQL's `transformDeclareCursorStmt` raises them.
pub fn check_cursor(cursor: &DeclareCursor) -> Result<()> {
    let mut parts = cursor.query.with.iter().flat_map(|with| &with.queries);
    if parts.any(|part| matches!(part.body, NamedQueryBody::Change(_))) {
        bail!(FEATURE_NOT_SUPPORTED: "DECLARE CURSOR must not contain data-modifying statements in WITH");
    }
    let Some(locking) = cursor.query.locking.first() else { return Ok(()) };
    let clause = locking.strength.clause();
    let not_supported = sqlstate::FEATURE_NOT_SUPPORTED;
    let (code, message, which) = if cursor.hold == Some(true) {
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
