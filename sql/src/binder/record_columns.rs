//! Fields of anonymous records in the columns of a subquery, for `(r).x` and `(r).*`.
//!
//! The type `record` does not determine the fields; they are found in the plan node that
//! constructs the row, as PostgreSQL's `expandRecordVariable` does.

use types::DataType;
use types::expr::Expr;

use crate::ast;
use crate::binder::level::Binder;
use crate::binder::records::{field_of, fields, fields_of};
use crate::binder::scope::{Fields, ScopeRelation};
use crate::binder::typed::Typed;
use crate::error::Result;
use crate::logical::{LockRows, Logical, SetCall};

use std::sync::Arc;

/// The fields of a row by name.
type Named = Vec<(Arc<str>, Typed)>;

impl ScopeRelation {
    /// Records the fields of record columns; the columns are those of a plan.
    pub(super) fn learn_fields(&mut self, plan: &Logical) {
        for column in &mut self.columns {
            if let Expr::Column { index, data_type: DataType::Record } = column.expr {
                column.fields = made_of(plan, index);
            }
        }
    }
}

impl Binder<'_> {
    /// Returns the fields of a row that an expression stands for, if they are known.
    pub(super) fn fields_of_row(&self, operand: &ast::Expr, row: &Typed) -> Result<Option<Named>> {
        if let Some(known) = fields(row) {
            return Ok(Some(known));
        }
        let ast::Expr::Column(parts) = operand else { return Ok(None) };
        for level in self.levels.iter().rev() {
            let Some(column) = level.scope.find(parts)? else { continue };
            let Some(known) = &column.fields else { return Ok(None) };
            let field = |(at, (name, base)): (usize, &(Arc<str>, DataType))| {
                let expr = field_of(row.expr.clone(), at, base);
                (Arc::clone(name), Typed::new(expr, base.clone(), row.position))
            };
            return Ok(Some(known.iter().enumerate().map(field).collect()));
        }
        Ok(None)
    }
}

/// Returns the fields of the rows in a column of a plan.
pub(super) fn made_of(plan: &Logical, column: usize) -> Option<Fields> {
    match plan {
        Logical::Project { input, expressions } => match expressions.get(column)? {
            Expr::Column { index, .. } => made_of(input, *index),
            Expr::Routine { routine, .. } => routine.fields.clone(),
            row => fields_of(row).map(|(fields, _)| fields),
        },
        Logical::ProjectSet(set) => {
            let width = set.input.column_types().len();
            if column < width {
                return made_of(&set.input, column);
            }
            match set.functions.get(column - width).map(|one| &one.call) {
                Some(SetCall::Value(row)) => fields_of(row).map(|(fields, _)| fields),
                _ => None,
            }
        }
        Logical::Filter { input, .. }
        | Logical::Sort { input, .. }
        | Logical::Limit { input, .. }
        | Logical::Distinct { input, .. }
        | Logical::LockRows(LockRows { input, .. }) => made_of(input, column),
        Logical::Join(join) => {
            let width = join.left.column_types().len();
            match column.checked_sub(width) {
                None => made_of(&join.left, column),
                Some(column) => made_of(&join.right, column),
            }
        }
        _ => None,
    }
}
