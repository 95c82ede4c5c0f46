//! A query that was bound, as the query around it sees it.

use types::expr::Expr;

use crate::binder::typed::Typed;
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
