//! Assignment of values to columns: targets of INSERT and UPDATE, assignment casts.
//!
//! Source: PostgreSQL's `transformAssignedExpr` (parse_target.c), documentation section 10.4.

use types::cast::CastContext;
use types::expr::Expr;

use crate::ast::{AssignedValue, ColumnName};
use crate::binder::from::TIMESTAMP_NAME;
use crate::binder::level::Binder;
use crate::binder::typed::{Typed, null};
use crate::catalog::record::IdentityRecord;
use crate::catalog::table::{Column, Table};
use crate::error::{Error, Result};

impl Binder<'_> {
    /// Converts a value to the type of a column with an assignment cast.
    pub(super) fn assign(&mut self, value: Typed, column: &Column) -> Result<Expr> {
        let (from, position) = (value.sql_type.clone(), value.position);
        self.coerce(value, &column.sql_type, CastContext::Assignment)?.ok_or_else(|| {
            err!(DATATYPE_MISMATCH: "column \"{}\" is of type {} but expression is of type {}",
                column.name, self.type_name(&column.sql_type), self.type_name(&from);
                hint "You will need to rewrite or cast the expression."; at position)
        })
    }

    /// Binds the value that is assigned to a column.
    pub(super) fn assigned(&mut self, value: &AssignedValue, column: &Column) -> Result<Expr> {
        match value {
            AssignedValue::Default { .. } => Ok(default_of(column)),
            AssignedValue::Expr(expr) => {
                check_identity(column)?;
                let value = self.bind_expr(expr)?;
                self.assign(value, column)
            }
        }
    }
}

/// Rejects any value but DEFAULT for a generated column or an identity column GENERATED ALWAYS.
pub(super) fn check_identity(column: &Column) -> Result<()> {
    let what = match column.identity {
        _ if column.generated.is_some() => "a generated column",
        Some(IdentityRecord::Always) => "an identity column defined as GENERATED ALWAYS",
        _ => return Ok(()),
    };
    bail!(GENERATED_ALWAYS: "column \"{}\" can only be updated to DEFAULT", column.name;
        detail "Column \"{}\" is {what}.", column.name)
}

/// Returns the default of a column.
pub(super) fn default_of(column: &Column) -> Expr {
    column.default_expression().unwrap_or_else(|| null(&column.sql_type.base))
}

/// Returns the position of a target column in the table.
pub(super) fn target_column(table: &Table, name: &ColumnName) -> Result<usize> {
    let wanted = &name.name;
    table.find_column(name)?.ok_or_else(|| {
        let full = match &name.family {
            Some(family) if has_family(table, &family.value) => {
                format!("{}.{}", family.value, wanted.value)
            }
            Some(family) => family.value.clone(),
            None => wanted.value.clone(),
        };
        if full == TIMESTAMP_NAME {
            let hint = "The server sets _timestamp to the commit time.";
            return Error::not_supported("writing column _timestamp", hint).at(wanted.position);
        }
        let position = name.family.as_ref().map_or(wanted.position, |family| family.position);
        err!(UNDEFINED_COLUMN: "column \"{full}\" of relation \"{}\" does not exist", table.name; at position)
    })
}

pub(super) fn has_family(table: &Table, family: &str) -> bool {
    table.descriptor.families.iter().any(|one| one.name.eq_ignore_ascii_case(family))
}
