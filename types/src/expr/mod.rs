//! Bound expressions, and how they are computed over one row and over a batch.
//!
//! An [`Expr`] is what the binder makes of SQL text: every name resolved, every implicit cast
//! explicit, every call one implementation. It needs nothing but its input row and its parameters,
//! so the same tree is evaluated in the session and inside regions.
//!
//! Three-valued logic, evaluation order of CASE, COALESCE, AND and OR, and all errors are
//! PostgreSQL's. A batch evaluation raises an error only for rows that reach the failing
//! subexpression (`case when b <> 0 then a / b end` never divides by zero).
//!
//! * `row` computes one row: the reference for what an expression means.
//! * `batch` computes many, column by column, over typed `kernels`.
//! * `change` computes a value that replaces one of its arguments, in place.
//! * `analysis` takes expressions apart for the planner, `implication` says what follows from them;
//!   `fold` computes what is constant;
//!   `describe` prints them as EXPLAIN shows them.

mod analysis;
mod batch;
mod change;
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
    /// A call of a function that a user has defined, and that is more than an expression.
    Routine {
        /// Which one.
        routine: Arc<Routine>,
        /// The arguments, already of the types that the function takes.
        arguments: Vec<Expr>,
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
    /// A value that becomes one of a domain.
    Domain {
        /// The value, of the type below the domain.
        operand: Box<Expr>,
        /// What is demanded of it.
        checks: Arc<DomainChecks>,
        /// A cast that somebody wrote.
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
        list: Arc<Vec<Expr>>,
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
    /// What the catalog keeps a text for that cannot be read any more: computing it is an error.
    Unreadable {
        /// What is said then.
        reason: Arc<str>,
        /// The type of the value that there would be.
        data_type: DataType,
    },
}
