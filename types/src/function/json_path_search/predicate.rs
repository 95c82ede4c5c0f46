//! Predicates of `jsonpath`: conditions over all pairs of values of two operands.

use std::cmp::Ordering;

use super::{Executor, ITEM_STEPS, Status, Truth};
use crate::context::EvalContext;
use crate::datum::Json;
use crate::datum::json_path::{Comparison, Item, Kind};
use crate::error::Result;
use crate::function::json_path_value::{Value, compare_moments, compare_strings};
use crate::function::regular_expression::{Flags, with_regex};

impl<'a> Executor<'a> {
    /// Returns the values of an operand; `None` for an error.
    pub(super) fn operands(
        &mut self,
        item: &'a Item,
        value: &Value<'a>,
        unwraps: bool,
    ) -> Result<Option<Vec<Value<'a>>>> {
        let mut values = Vec::new();
        let throws = std::mem::replace(&mut self.throws, false);
        let status = match unwraps && self.path.lax {
            true => self.unwrapped(item, value, true, Some(&mut values)),
            false => self.item(item, value, Some(&mut values)),
        };
        self.throws = throws;
        Ok((status? != Status::Error).then_some(values))
    }

    pub(super) fn truth(&mut self, item: &'a Item, value: &Value<'a>) -> Result<Truth> {
        match &item.kind {
            Kind::And(left, right) => match self.truth(left, value)? {
                Some(false) => Ok(Some(false)),
                left => Ok(match self.truth(right, value)? {
                    Some(true) => left,
                    right => right,
                }),
            },
            Kind::Or(left, right) => match self.truth(left, value)? {
                Some(true) => Ok(Some(true)),
                left => Ok(match self.truth(right, value)? {
                    Some(false) => left,
                    right => right,
                }),
            },
            Kind::Not(operand) => Ok(self.truth(operand, value)?.map(|truth| !truth)),
            Kind::IsUnknown(operand) => Ok(Some(self.truth(operand, value)?.is_none())),
            Kind::Exists(operand) => self.is_there(operand, value),
            Kind::Compare(comparison, left, right) => {
                let zoned = self.zoned.then_some(self.context);
                self.predicate(left, Some((right, true)), value, |left, right| {
                    let Some(right) = right else { return Ok(None) };
                    compared(*comparison, left, right, zoned)
                })
            }
            Kind::StartsWith(whole, initial) => {
                self.predicate(whole, Some((initial, false)), value, |whole, initial| {
                    let strings = whole.string().zip(initial.and_then(Value::string));
                    Ok(strings.map(|(whole, initial)| whole.starts_with(initial)))
                })
            }
            Kind::LikeRegex { operand, pattern, flags } => {
                let (flags, context) = (Flags::of_path(flags), self.context);
                self.predicate(operand, None, value, |operand, _| match operand.string() {
                    Some(text) => {
                        with_regex(pattern, flags, context, |regex| regex.is_match(text)).map(Some)
                    }
                    None => Ok(None),
                })
            }
            other => unreachable!("{other:?} is no predicate"),
        }
    }

    fn is_there(&mut self, operand: &'a Item, value: &Value<'a>) -> Result<Truth> {
        if !self.path.lax {
            let values = self.operands(operand, value, false)?;
            return Ok(values.map(|values| !values.is_empty()));
        }
        let throws = std::mem::replace(&mut self.throws, false);
        let status = self.item(operand, value, None);
        self.throws = throws;
        Ok(match status? {
            Status::Error => None,
            status => Some(status == Status::Found),
        })
    }

    /// Returns whether a condition holds for any pair of values of two operands.
    fn predicate(
        &mut self,
        left: &'a Item,
        right: Option<(&'a Item, bool)>,
        value: &Value<'a>,
        holds: impl Fn(&Value<'a>, Option<&Value<'a>>) -> Result<Truth>,
    ) -> Result<Truth> {
        let Some(lefts) = self.operands(left, value, true)? else { return Ok(None) };
        let rights = match right {
            None => vec![None],
            Some((right, unwraps)) => match self.operands(right, value, unwraps)? {
                None => return Ok(None),
                Some(rights) => rights.into_iter().map(Some).collect(),
            },
        };
        let (mut unknown, mut found) = (false, false);
        for left in &lefts {
            for right in &rights {
                self.pace.count_steps(ITEM_STEPS)?;
                match holds(left, right.as_ref())? {
                    None if !self.path.lax => return Ok(None),
                    None => unknown = true,
                    Some(true) if self.path.lax => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                }
            }
        }
        Ok(match (found, unknown) {
            (true, _) => Some(true),
            (_, true) => None,
            _ => Some(false),
        })
    }
}

/// Compares two values; unknown if they cannot be compared.
fn compared(
    comparison: Comparison,
    left: &Value<'_>,
    right: &Value<'_>,
    zoned: Option<&EvalContext>,
) -> Result<Truth> {
    let order = match (left, right) {
        (Value::Json(left), Value::Json(right)) => match (left.as_ref(), right.as_ref()) {
            (Json::Null, Json::Null) => Ordering::Equal,
            (Json::Null, _) | (_, Json::Null) => {
                return Ok(Some(comparison == Comparison::NotEqual));
            }
            (Json::Bool(left), Json::Bool(right)) => left.cmp(right),
            (Json::Number(left), Json::Number(right)) => left.cmp(right),
            (Json::String(left), Json::String(right)) => compare_strings(left, right),
            _ => return Ok(None),
        },
        (Value::Moment { datum: left, .. }, Value::Moment { datum: right, .. }) => {
            match compare_moments(left, right, zoned)? {
                Some(order) => order,
                None => return Ok(None),
            }
        }
        (Value::Json(json), _) | (_, Value::Json(json)) if **json == Json::Null => {
            return Ok(Some(comparison == Comparison::NotEqual));
        }
        _ => return Ok(None),
    };
    Ok(Some(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }))
}
