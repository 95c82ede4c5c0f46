//! A query that was bound, as the query around it sees it.

use types::expr::Expr;

use crate::ast::Query;
use crate::binder::typed::Typed;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{Logical, OutputColumn};

/// A bound query.
#[derive(Debug)]
pub(super) struct BoundQuery {
    /// The plan.
    pub(super) plan: Logical,
    /// Its columns; of unknown type where a literal or parameter waits for its context.
    pub(super) columns: Vec<OutputColumn>,
    /// Where each column's expression stands.
    pub(super) positions: Vec<usize>,
}

impl BoundQuery {
    /// Returns a column as an expression over the query's rows.
    pub(super) fn typed(&self, index: usize) -> Typed {
        let sql_type = self.columns[index].sql_type;
        let expr = Expr::Column { index, data_type: sql_type.base };
        Typed { expr, sql_type, position: self.positions[index] }
    }
}

/// Checks that a part of a set operation, or a whole one, does not lock rows.
pub(super) fn refuse_locks_of_part(query: &Query) -> Result<()> {
    let Some(locking) = query.locking.first() else { return Ok(()) };
    let strength = locking.strength.clause();
    let message = format!("{strength} is not allowed with UNION/INTERSECT/EXCEPT");
    Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message))
}
