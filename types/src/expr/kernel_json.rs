//! Typed loops that look into `jsonb`: `j -> 'a' -> 0 ->> 'b'`, all steps known before, goes from
//! each value to the member that is asked for, and what is on the way is not made.

use smallvec::SmallVec;

use super::operand::Operand;
use super::{EvalContext, Expr};
use crate::datum::{Datum, Nested};
use crate::error::Result;
use crate::function::{self, Shape, json_access};
use crate::vector::{BytesVector, Vector, VectorData};

/// A way into values.
pub(super) struct Path<'e> {
    /// Yields the values.
    pub(super) base: &'e Expr,
    /// Keys and positions, the last one first.
    steps: SmallVec<[&'e Datum; 4]>,
    as_text: bool,
}

impl<'e> Path<'e> {
    /// Returns the way that a call goes, if it goes one.
    pub(super) fn of(call: &'e Expr, context: &'e EvalContext) -> Option<Path<'e>> {
        let (base, step, as_text) = member(call, context)?;
        let mut path = Path { base, steps: SmallVec::from_slice(&[step]), as_text };
        while let Some((base, step, false)) = member(path.base, context) {
            path.base = base;
            path.steps.push(step);
        }
        Some(path)
    }

    /// Returns what each of the values has at the end of the way; `None` if they are no vector.
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

    /// Returns the steps in their order.
    fn steps(&self) -> impl Iterator<Item = &'e Datum> {
        self.steps.iter().rev().copied()
    }
}

/// Returns the value, the step and whether text is wanted, if a call takes a step that is known.
fn member<'e>(call: &'e Expr, context: &'e EvalContext) -> Option<(&'e Expr, &'e Datum, bool)> {
    let Expr::Call { function, arguments, .. } = call else { return None };
    let (Shape::Member { as_text }, [value, step]) = (function::shape(*function), &**arguments)
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
