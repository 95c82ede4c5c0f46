//! Bound expressions, and how they are computed over one row and over a batch.
//!
//! An [`Expr`] is what the binder makes of SQL text: every name resolved, every implicit cast
//! explicit, every call one implementation. It needs nothing but its input row and its parameters,
//! so the same tree is evaluated in the session and inside regions.
//!
//! Three-valued logic, evaluation order of CASE, COALESCE, AND and OR, and all errors are
//! PostgreSQL's. A batch evaluation raises an error only for rows that reach the failing
//! subexpression (`case when b <> 0 then a / b end` never divides by zero).

use crate::datatype::{DataType, SqlType};
use crate::datum::Datum;
use crate::error::Result;
use crate::function::FunctionId;
use crate::vector::{Batch, Vector};

pub use crate::context::EvalContext;
pub use crate::function::CompareOp;

/// A bound expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A constant.
    Constant {
        /// The value.
        value: Datum,
        /// Its type.
        data_type: DataType,
    },
    /// A column of the input row.
    Column {
        /// Position in the input row.
        index: usize,
        /// Its type.
        data_type: DataType,
    },
    /// A value that is known when execution starts: a statement's parameter, or an outer column or
    /// subquery result that the executor supplies.
    Parameter {
        /// Position in [`EvalContext::parameters`].
        index: usize,
        /// Its type.
        data_type: DataType,
    },
    /// A call of a function or operator.
    Call {
        /// Which one.
        function: FunctionId,
        /// The arguments, already of the types that the function takes.
        arguments: Vec<Expr>,
        /// The type of the result.
        data_type: DataType,
    },
    /// A cast, explicit or made by the binder.
    Cast {
        /// What is cast.
        operand: Box<Expr>,
        /// Its type.
        from: DataType,
        /// To what, with the modifier to apply.
        to: SqlType,
        /// An explicit cast truncates where an assignment cast raises an error (`varchar(n)`).
        explicit: bool,
    },
    /// All are true.
    And(Vec<Expr>),
    /// One is true.
    Or(Vec<Expr>),
    /// Not.
    Not(Box<Expr>),
    /// `IS NULL`
    IsNull(Box<Expr>),
    /// `IS [NOT] DISTINCT FROM`; operands of one type.
    IsDistinct {
        /// Left side.
        left: Box<Expr>,
        /// Right side.
        right: Box<Expr>,
        /// `IS NOT DISTINCT FROM`
        negated: bool,
    },
    /// `operand IN (list)`; all of one type. `NOT IN` is `Not` of it.
    InList {
        /// What is looked for.
        operand: Box<Expr>,
        /// Where.
        list: Vec<Expr>,
    },
    /// `CASE WHEN … THEN … ELSE … END`; the simple form is bound to comparisons.
    Case {
        /// Conditions and results.
        branches: Vec<(Expr, Expr)>,
        /// What no branch catches; a NULL constant if there is no ELSE.
        otherwise: Box<Expr>,
        /// The type of the result.
        data_type: DataType,
    },
    /// The first operand that is not NULL.
    Coalesce {
        /// The operands, all of one type.
        operands: Vec<Expr>,
        /// Their type.
        data_type: DataType,
    },
}

impl Expr {
    /// Returns the type of the value.
    pub fn data_type(&self) -> DataType {
        todo!("types/expr")
    }

    /// Computes the value for one row.
    ///
    /// # Errors
    ///
    /// What PostgreSQL raises for the same values.
    pub fn eval_row(&self, row: &[Datum], context: &EvalContext) -> Result<Datum> {
        let _ = (row, context);
        todo!("types/expr")
    }

    /// Computes the values for all rows of a batch.
    ///
    /// # Errors
    ///
    /// What PostgreSQL raises for the same values; the first failing row decides which.
    pub fn eval_batch(&self, batch: &Batch, context: &EvalContext) -> Result<Vector> {
        let _ = (batch, context);
        todo!("types/expr")
    }

    /// Computes a boolean expression and returns the positions of the rows for which it is true
    /// (neither false nor NULL), ascending.
    pub fn filter_batch(&self, batch: &Batch, context: &EvalContext) -> Result<Vec<u32>> {
        let _ = (batch, context);
        todo!("types/expr")
    }

    /// Calls `visit` on this expression and everything below it, parents first.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        let _ = visit;
        todo!("types/expr")
    }

    /// Returns the same expression with every node replaced by `change` of it, children first.
    #[must_use]
    pub fn transform(self, change: &mut dyn FnMut(Expr) -> Expr) -> Expr {
        let _ = change;
        todo!("types/expr")
    }

    /// Returns whether the value depends on nothing but its inputs (no `random()`, no clock).
    pub fn is_immutable(&self) -> bool {
        todo!("types/expr")
    }
}
