//! Calls of user-defined functions.
//!
//! Their bodies are statements, which only a session can execute. So such an expression is
//! evaluated on the session's own thread ([`Expr::calls_routines`]).

use super::{EvalContext, Expr};
use crate::datum::Datum;
use crate::error::Result;
use crate::routine::Routine;

impl Routine {
    /// Returns the value for some arguments.
    ///
    /// # Errors
    ///
    /// Those of the statements of the function.
    pub fn call(&self, arguments: Vec<Datum>, context: &EvalContext) -> Result<Datum> {
        if self.strict && arguments.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        context.style.system.source()?.call_routine(self, arguments)
    }
}

impl Expr {
    /// Returns whether it must be evaluated on the session's own thread: it is volatile, or
    /// executes statements of the session.
    pub fn is_session_only(&self) -> bool {
        self.is_volatile() || self.calls_routines()
    }

    /// Returns whether a user-defined function is called.
    pub fn calls_routines(&self) -> bool {
        self.any(&|node| matches!(node, Expr::Routine { .. }))
    }

    /// Returns whether a volatile user-defined function is called, which sees the changes of the
    /// current statement.
    pub fn calls_volatile_routines(&self) -> bool {
        self.any(&|node| matches!(node, Expr::Routine { routine, .. } if routine.is_volatile))
    }
}
