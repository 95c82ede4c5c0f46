//! A bound subquery with the types and positions of its columns, for the enclosing query.

use types::expr::Expr;

use crate::ast::QueryExpr;
use crate::binder::typed::Typed;
use crate::error::{Error, Result};
use crate::logical::{Logical, OutputColumn};

/// A bound query with the positions of its columns.
#[derive(Debug)]
pub(super) struct BoundQuery {
    /// The plan.
    pub(super) plan: Logical,
    /// Its columns. The type is unknown for a literal or parameter whose context will determine
    /// it.
    pub(super) columns: Vec<OutputColumn>,
    /// The position of each column's expression in the statement.
    pub(super) positions: Vec<usize>,
}

impl BoundQuery {
    /// Returns a column as an expression over the rows of the query.
    pub(super) fn typed(&self, index: usize) -> Typed {
        let sql_type = &self.columns[index].sql_type;
        let expr = Expr::Column { index, data_type: sql_type.base.clone() };
        Typed { expr, sql_type: sql_type.clone(), position: self.positions[index] }
    }
}

/// Rejects row-locking clauses in a set operation and in its operands.
pub(super) fn refuse_locks_of_part(query: &QueryExpr) -> Result<()> {
    let Some(locking) = query.locking.first() else { return Ok(()) };
    let strength = locking.strength.clause();
    bail!(FEATURE_NOT_SUPPORTED: "{strength} is not allowed with UNION/INTERSECT/EXCEPT")
}
