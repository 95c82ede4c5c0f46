//! Calls of functions of users.
//!
//! What they do is statements, which only a session can run. So such an expression stays in the
//! session's own thread ([`Expr::calls_routines`]).

use super::{EvalContext, Expr};
use crate::datum::Datum;
use crate::error::Result;
use crate::routine::Routine;

impl Routine {
    /// Returns the value for some arguments.
    ///
    /// # Errors
    ///
    /// What the statements of the function raise.
    pub fn call(&self, arguments: Vec<Datum>, context: &EvalContext) -> Result<Datum> {
        if self.strict && arguments.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        context.style.system.source()?.call_routine(self, arguments)
    }
}

impl Expr {
    /// Returns whether it is computed by the session's own thread alone: its value may change from
    /// call to call, or takes statements of the session to compute.
    pub fn stays(&self) -> bool {
        self.is_volatile() || self.calls_routines()
    }

    /// Returns whether a function of users is called.
    pub fn calls_routines(&self) -> bool {
        self.any(&|node| matches!(node, Expr::Routine { .. }))
    }

    /// Returns whether a volatile user-defined function is called: it sees what the statement has
    /// changed.
    pub fn calls_volatile_routines(&self) -> bool {
        self.any(&|node| matches!(node, Expr::Routine { routine, .. } if routine.is_volatile))
    }
}
