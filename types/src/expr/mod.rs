//! Bound expressions and their evaluation, over one row or a batch.
//!
//! An [`Expr`] is the binder's translation of SQL text: names are resolved, implicit casts are
//! explicit, and each call has one implementation. It needs only its input row and its
//! parameters, so the same tree is evaluated in the session and inside regions.
//!
//! Three-valued logic, evaluation order of CASE, COALESCE, AND and OR, and all errors are
//! PostgreSQL's. A batch evaluation raises an error only for rows that reach the failing
//! subexpression (`case when b <> 0 then a / b end` never divides by zero).
//!
//! * `row` evaluates one row; it is the reference implementation.
//! * `batch` evaluates many rows, column by column, with vectorized `kernels`.
//! * `in_place_change` modifies the value of a parameter in place.
//! * `analysis` traverses expressions for the planner, `implication` proves one condition from
//!   others;
//!   `fold` folds constants;
//!   `describe` formats them for EXPLAIN.

mod analysis;
mod batch;
mod in_place_change;
mod describe;
mod domain;
mod failure;
mod fold;
mod implication;
mod kernel_arithmetic;
mod kernel_compare;
mod kernel_json;
mod kernel_text;
mod operand;
mod routine;
mod row;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::datatype::{DataType, SqlType};
use crate::datum::Datum;
use crate::function::FunctionId;

pub use self::domain::DomainChecks;
pub use crate::context::EvalContext;
pub use crate::function::CompareOp;
pub use crate::routine::Routine;

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
    /// A value that is known when execution starts: a statement parameter, or an outer column or
    /// subquery result that the executor supplies.
    Parameter {
        /// Position in [`EvalContext::parameters`].
        index: usize,
        /// Its type.
        data_type: DataType,
    },
    /// A call of a function or operator.
    Call {
        /// The function.
        function: FunctionId,
        /// The arguments, already of the types that the function takes.
        arguments: Vec<Expr>,
        /// The type of the result.
        data_type: DataType,
    },
    /// A call of a user-defined function that was not inlined.
    Routine {
        /// The function.
        routine: Arc<Routine>,
        /// The arguments, already of the types that the function takes.
        arguments: Vec<Expr>,
    },
    /// A cast, explicit or made by the binder.
    Cast {
        /// The value to cast.
        operand: Box<Expr>,
        /// Its type.
        from: DataType,
        /// The target type, with the modifier to apply.
        to: SqlType,
        /// An explicit cast truncates where an assignment cast raises an error (`varchar(n)`).
        explicit: bool,
    },
    /// A conversion of a value to a domain.
    Domain {
        /// The value, of the domain's base type.
        operand: Box<Expr>,
        /// The constraints.
        checks: Arc<DomainChecks>,
        /// The cast was written explicitly.
        explicit: bool,
    },
    /// AND.
    And(Vec<Expr>),
    /// OR.
    Or(Vec<Expr>),
    /// NOT.
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
        /// The tested value.
        operand: Box<Expr>,
        /// The list.
        list: Arc<Vec<Expr>>,
    },
    /// `CASE WHEN … THEN … ELSE … END`; the simple form is bound to comparisons.
    Case {
        /// Conditions and results.
        branches: Vec<(Expr, Expr)>,
        /// The value of ELSE; a NULL constant if there is no ELSE.
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
    /// An expression whose text in the catalog can no longer be read: its evaluation raises an
    /// error.
    Unreadable {
        /// The error message.
        reason: Arc<str>,
        /// The type of the value.
        data_type: DataType,
    },
}
