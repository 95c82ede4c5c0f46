//! Values that replace one of their arguments: `a := a || x`, `a[i] := x`.
//!
//! The value of a parameter that is not shared is changed in place, so that an array that grows
//! element by element is not copied each time.

use smallvec::SmallVec;

use super::{EvalContext, Expr};
use crate::datum::Datum;
use crate::error::Result;
use crate::function;

impl Expr {
    /// Returns the parameter whose value the expression changes, if it is a function of it that can
    /// do so in place.
    pub fn changed_parameter(&self) -> Option<usize> {
        let Expr::Call { function, arguments, .. } = self else { return None };
        match arguments.first() {
            Some(Expr::Parameter { index, .. }) if function::is_change(*function) => Some(*index),
            _ => None,
        }
    }

    /// Computes the value, and takes that of [`Expr::changed_parameter`] out of the context for it.
    ///
    /// # Errors
    ///
    /// As for [`Expr::eval_row`]; the parameters are as they were then.
    pub fn eval_changing(&self, context: &mut EvalContext) -> Result<Datum> {
        let (Expr::Call { function, arguments, .. }, Some(parameter)) =
            (self, self.changed_parameter())
        else {
            return self.eval_row(&[], context);
        };
        let others = arguments[1..].iter().map(|argument| argument.eval_row(&[], context));
        let others: SmallVec<[Datum; 4]> = others.collect::<Result<_>>()?;
        let mut value = std::mem::replace(&mut context.parameters[parameter], Datum::Null);
        let changed = function::change(*function, &mut value, &others, context);
        if let Err(error) = changed {
            context.parameters[parameter] = value;
            return Err(error);
        }
        Ok(value)
    }
}
