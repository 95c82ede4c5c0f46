//! In-place modification of values: `a := a || x`, `a[i] := x`.
//!
//! The value of a parameter that is not shared is modified in place, so that an array that grows
//! element by element is not copied each time.

use smallvec::SmallVec;

use super::{EvalContext, Expr};
use crate::datum::Datum;
use crate::error::Result;
use crate::function;

impl Expr {
    /// Returns the parameter that the expression modifies, if its function supports that in
    /// place.
    pub fn in_place_parameter(&self) -> Option<usize> {
        let Expr::Call { function, arguments, .. } = self else { return None };
        match arguments.first() {
            Some(Expr::Parameter { index, .. }) if function::is_change(*function) => Some(*index),
            _ => None,
        }
    }

    /// Computes the value from that of [`Expr::in_place_parameter`], which it takes out of the
    /// context.
    ///
    /// # Errors
    ///
    /// As for [`Expr::eval_row`]; the parameters are then unchanged.
    pub fn eval_in_place(&self, context: &mut EvalContext) -> Result<Datum> {
        let (Expr::Call { function, arguments, .. }, Some(parameter)) =
            (self, self.in_place_parameter())
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
