//! Vectorized kernels of `jsonb` member access. A chain such as `j -> 'a' -> 0 ->> 'b'` with
//! known steps extracts the last member of each value without building the intermediate ones.

use smallvec::SmallVec;

use super::operand::Operand;
use super::{EvalContext, Expr};
use crate::datum::{Datum, Nested};
use crate::error::Result;
use crate::function::{self, KernelKind, json_access};
use crate::vector::{BytesVector, Vector, VectorData};

/// A chain of member accesses.
pub(super) struct MemberChain<'e> {
    /// The expression of the `jsonb` values.
    pub(super) base: &'e Expr,
    /// Keys and positions, in reverse order.
    steps: SmallVec<[&'e Datum; 4]>,
    as_text: bool,
}

impl<'e> MemberChain<'e> {
    /// Returns the chain that ends with a call, if there is one.
    pub(super) fn of(call: &'e Expr, context: &'e EvalContext) -> Option<MemberChain<'e>> {
        let (base, step, as_text) = member(call, context)?;
        let mut path = MemberChain { base, steps: SmallVec::from_slice(&[step]), as_text };
        while let Some((base, step, false)) = member(path.base, context) {
            path.base = base;
            path.steps.push(step);
        }
        Some(path)
    }

    /// Returns the member of each value at the end of the chain; `None` if the values are not a
    /// vector.
    pub(super) fn follow<'a>(
        &self,
        values: &Operand<'_>,
        context: &EvalContext,
    ) -> Option<Result<Operand<'a>>> {
        let Operand::Vector(vector) = values else { return None };
        let VectorData::Nested(values) = &vector.data else { return None };
        Some(match self.as_text {
            true => self.texts(values, vector, context),
            false => self.members(values, vector, context),
        })
    }

    fn texts<'a>(
        &self,
        values: &[Nested],
        vector: &Vector,
        context: &EvalContext,
    ) -> Result<Operand<'a>> {
        let mut texts = BytesVector::with_capacity(values.len());
        let mut pace = context.pace();
        let mut valid = vec![true; values.len()];
        for (index, value) in values.iter().enumerate() {
            context.style.interrupt.check()?;
            valid[index] = !vector.is_null(index)
                && json_access::write_member(value, self.steps(), &mut texts.bytes, &mut pace)?;
            texts.try_end_value()?;
        }
        let validity = valid.contains(&false).then_some(valid);
        Ok(Operand::owned(VectorData::Text(texts), validity))
    }

    fn members<'a>(
        &self,
        values: &[Nested],
        vector: &Vector,
        context: &EvalContext,
    ) -> Result<Operand<'a>> {
        let mut members = Vec::with_capacity(values.len());
        let mut valid = vec![true; values.len()];
        for (index, value) in values.iter().enumerate() {
            context.style.interrupt.check()?;
            let member = match vector.is_null(index) {
                true => None,
                false => json_access::member_at(value, self.steps(), context)?,
            };
            valid[index] = member.is_some();
            members.push(member.unwrap_or_default());
        }
        let validity = valid.contains(&false).then_some(valid);
        Ok(Operand::owned(VectorData::Nested(members), validity))
    }

    /// Returns the steps in order.
    fn steps(&self) -> impl Iterator<Item = &'e Datum> {
        self.steps.iter().rev().copied()
    }
}

/// Returns the value, the step and whether the result is text, if a call is a member access with
/// a known step.
fn member<'e>(call: &'e Expr, context: &'e EvalContext) -> Option<(&'e Expr, &'e Datum, bool)> {
    let Expr::Call { function, arguments, .. } = call else { return None };
    let (KernelKind::Member { as_text }, [value, step]) =
        (function::shape(*function), &**arguments)
    else {
        return None;
    };
    let step = match step {
        Expr::Constant { value, .. } => value,
        Expr::Parameter { index, .. } => context.parameters.get(*index)?,
        _ => return None,
    };
    (!step.is_null()).then_some((value, step, as_text))
}
