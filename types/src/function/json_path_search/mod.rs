//! Evaluation of `jsonpath` over a `jsonb`.
//!
//! Each value that an item finds is passed to the next item of its chain before the next value is
//! searched, so that a search that needs one value stops at the first, and later errors are not
//! raised. Predicates catch the errors of their operands and are then unknown ([`predicate`]).
//!
//! The `id` of `.keyvalue()` is the index of the object among those of the document, from 0.
//!
//! Source: PostgreSQL's `jsonpath_exec.c`.

mod predicate;

use std::borrow::Cow;

use super::json_path_value::{Value, moment};
use crate::context::EvalContext;
use crate::datatype::DataType;
use crate::datum::json_path::{Arithmetic, Item, JsonPath, Kind, Method};
use crate::datum::{Datum, Json};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::numeric::Numeric;
use crate::sqlstate;
use crate::text;

/// Outcome of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Found,
    Nothing,
    /// With a suppressed error.
    Error,
}

/// The value of a predicate; `None` is unknown.
type Truth = Option<bool>;

type Found<'f, 'a> = Option<&'f mut Vec<Value<'a>>>;

pub(super) struct Executor<'a> {
    pub(super) path: &'a JsonPath,
    pub(super) root: &'a Json,
    /// `None` for operators, which have no variables.
    pub(super) variables: Option<&'a Json>,
    /// `@`
    pub(super) current: Value<'a>,
    /// The size of the array whose subscripts are being evaluated, for `last`.
    pub(super) array_size: Option<usize>,
    /// Structural errors are suppressed.
    pub(super) passes_structure: bool,
    /// Errors are raised, not returned as [`Status::Error`].
    pub(super) throws: bool,
    /// The session's time zone may be used.
    pub(super) zoned: bool,
    pub(super) context: &'a EvalContext,
    /// Interrupt check per item; a cancellation ends the search even if errors are suppressed.
    pub(super) pace: InterruptPacer<'a>,
}

/// Cost of an item with a value in steps of a [`InterruptPacer`].
const ITEM_STEPS: usize = 1_024;

fn structure(code: &'static str, message: impl Into<String>) -> Error {
    Error::new(code, message.into())
}

impl<'a> Executor<'a> {
    /// Raises an error, or returns it as a status. Cancellation and lack of memory are raised
    /// even if errors are suppressed.
    fn fail(&self, error: Error) -> Result<Status> {
        let ends_statement =
            [sqlstate::QUERY_CANCELED, sqlstate::OUT_OF_MEMORY].contains(&error.sqlstate);
        if self.throws || ends_statement { Err(error) } else { Ok(Status::Error) }
    }

    /// Raises a structural error, which lax mode suppresses.
    fn misfit(&self, error: Error) -> Result<Status> {
        if self.passes_structure { Ok(Status::Nothing) } else { self.fail(error) }
    }

    /// Evaluates an item and the rest of its chain; lax mode unwraps arrays.
    pub(super) fn item(
        &mut self,
        item: &'a Item,
        value: &Value<'a>,
        found: Found<'_, 'a>,
    ) -> Result<Status> {
        self.target(item, value, self.path.lax, found)
    }

    /// Evaluates the next item of a chain for a value; at the end of the chain the value is a
    /// result.
    fn next(&mut self, item: &'a Item, value: &Value<'a>, found: Found<'_, 'a>) -> Result<Status> {
        match (&item.next, found) {
            (Some(next), found) => self.item(next, value, found),
            (None, Some(found)) => {
                found.push(value.clone());
                Ok(Status::Found)
            }
            (None, None) => Ok(Status::Found),
        }
    }

    /// Evaluates `each` for the elements of an array.
    fn elements(
        &mut self,
        value: &Value<'a>,
        mut found: Found<'_, 'a>,
        mut each: impl FnMut(&mut Self, &Value<'a>, Found<'_, 'a>) -> Result<Status>,
    ) -> Result<Status> {
        let mut status = Status::Nothing;
        for element in value.elements() {
            status = each(self, &element, found.as_deref_mut())?;
            if status == Status::Error || (status == Status::Found && found.is_none()) {
                break;
            }
        }
        Ok(status)
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of item")]
    fn target(
        &mut self,
        item: &'a Item,
        value: &Value<'a>,
        unwraps: bool,
        mut found: Found<'_, 'a>,
    ) -> Result<Status> {
        self.pace.count_steps(ITEM_STEPS)?;
        let unwrapped = unwraps && value.is_array();
        match &item.kind {
            kind if kind.is_predicate() => {
                let truth = self.truth(item, value)?;
                if item.next.is_none() && found.is_none() {
                    return Ok(Status::Found);
                }
                let truth = truth.map_or(Json::Null, Json::Bool);
                self.next(item, &Value::Json(Cow::Owned(truth)), found)
            }
            Kind::Null => self.constant(item, || Json::Null, found),
            Kind::Bool(value) => self.constant(item, || Json::Bool(*value), found),
            Kind::Number(number) => self.constant(item, || Json::Number(number.clone()), found),
            Kind::String(text) => self.constant(item, || Json::String(text.clone().into()), found),
            Kind::Variable(name) => {
                let variable = match self.variables {
                    // An operator has no variables.
                    None => &Json::Null,
                    Some(variables) => variables.get(name).ok_or_else(
                        || err!(UNDEFINED_OBJECT: "could not find jsonpath variable \"{name}\""),
                    )?,
                };
                self.next(item, &Value::of(variable), found)
            }
            Kind::Root => {
                let root = Value::of(self.root);
                self.next(item, &root, found)
            }
            Kind::Current => {
                let current = self.current.clone();
                self.next(item, &current, found)
            }
            Kind::Last => {
                let Some(size) = self.array_size else {
                    bail!(INTERNAL_ERROR: "evaluating jsonpath LAST outside of array subscript");
                };
                let last = Json::Number(Numeric::from(size as i64 - 1));
                self.next(item, &Value::Json(Cow::Owned(last)), found)
            }
            Kind::Key(key) => match value.member(key) {
                Some(Some(member)) => self.next(item, &member, found),
                Some(None) => {
                    let message = format!("JSON object does not contain key \"{key}\"");
                    self.misfit(structure("2203A", message))
                }
                None if unwrapped => self.elements(value, found, |this, one, found| {
                    this.target(item, one, false, found)
                }),
                None => {
                    let message = "jsonpath member accessor can only be applied to an object";
                    self.misfit(structure("2203A", message))
                }
            },
            Kind::AnyKey => match value.members() {
                Some(members) => {
                    let mut status = Status::Nothing;
                    for member in members {
                        status = self.next(item, &member, found.as_deref_mut())?;
                        if status == Status::Error || (status == Status::Found && found.is_none()) {
                            break;
                        }
                    }
                    Ok(status)
                }
                None if unwrapped => self.elements(value, found, |this, one, found| {
                    this.target(item, one, false, found)
                }),
                None => {
                    let message =
                        "jsonpath wildcard member accessor can only be applied to an object";
                    self.misfit(structure("2203C", message))
                }
            },
            Kind::AnyArray if value.is_array() => {
                self.elements(value, found, |this, one, found| this.next(item, one, found))
            }
            Kind::AnyArray if self.path.lax => self.next(item, value, found),
            Kind::AnyArray => {
                let message = "jsonpath wildcard array accessor can only be applied to an array";
                self.misfit(structure("22039", message))
            }
            Kind::Subscripts(list) => self.subscripts(item, list, value, found),
            Kind::AnyLevel { first, last } => self.any_level(item, (*first, *last), value, found),
            Kind::Filter(_) if unwrapped => {
                self.elements(value, found, |this, one, found| this.target(item, one, false, found))
            }
            Kind::Filter(condition) => {
                let outer = std::mem::replace(&mut self.current, value.clone());
                let truth = self.truth(condition, value);
                self.current = outer;
                match truth? {
                    Some(true) => self.next(item, value, found),
                    _ => Ok(Status::Nothing),
                }
            }
            Kind::Method(Method::Type) => {
                let name = Json::String(value.type_name().into());
                self.next(item, &Value::Json(Cow::Owned(name)), found)
            }
            Kind::Method(Method::Size) => {
                let size = match value.size() {
                    Some(size) => size,
                    None if self.path.lax => 1,
                    None => {
                        let message =
                            "jsonpath item method .size() can only be applied to an array";
                        return self.misfit(structure("22039", message));
                    }
                };
                let size = Json::Number(Numeric::from(size as i64));
                self.next(item, &Value::Json(Cow::Owned(size)), found)
            }
            Kind::Method(_) | Kind::Datetime(_) if unwrapped => {
                self.elements(value, found, |this, one, found| this.target(item, one, false, found))
            }
            Kind::Method(Method::KeyValue) => self.key_values(item, value, found),
            Kind::Method(method) => match number_method(*method, value) {
                Ok(number) => {
                    self.next(item, &Value::Json(Cow::Owned(Json::Number(number))), found)
                }
                Err(error) => self.fail(error),
            },
            Kind::Datetime(template) => match moment(value, template.as_deref(), &mut self.pace) {
                Ok(moment) => self.next(item, &moment, found),
                Err(error) => self.fail(error),
            },
            Kind::Sign { negative, operand } => self.signed(item, *negative, operand, value, found),
            Kind::Arithmetic(operator, left, right) => {
                let mut number = |side: &str, operand: &'a Item| {
                    let mut values = Vec::new();
                    if self.unwrapped(operand, value, true, Some(&mut values))? == Status::Error {
                        return Ok(None);
                    }
                    match values.as_slice() {
                        [one] if one.number().is_some() => Ok(one.number().cloned()),
                        _ => {
                            self.fail(err!(SINGLETON_SQL_JSON_ITEM_REQUIRED: "{side} operand of jsonpath operator {} is not a \
                                single numeric value", operator.symbol())).map(|_| None)
                        }
                    }
                };
                let Some(left) = number("left", left)? else { return Ok(Status::Error) };
                let Some(right) = number("right", right)? else { return Ok(Status::Error) };
                match computed(*operator, &left, &right) {
                    Ok(_) if item.next.is_none() && found.is_none() => Ok(Status::Found),
                    Ok(number) => {
                        self.next(item, &Value::Json(Cow::Owned(Json::Number(number))), found)
                    }
                    Err(error) => self.fail(error),
                }
            }
            other => unreachable!("{other:?} is a predicate"),
        }
    }

    fn constant(
        &mut self,
        item: &'a Item,
        value: impl FnOnce() -> Json,
        found: Found<'_, 'a>,
    ) -> Result<Status> {
        if item.next.is_none() && found.is_none() {
            return Ok(Status::Found);
        }
        self.next(item, &Value::Json(Cow::Owned(value())), found)
    }

    fn subscripts(
        &mut self,
        item: &'a Item,
        list: &'a [(Item, Option<Item>)],
        value: &Value<'a>,
        mut found: Found<'_, 'a>,
    ) -> Result<Status> {
        if !value.is_array() && !self.path.lax {
            let message = "jsonpath array accessor can only be applied to an array";
            return self.misfit(structure("22039", message));
        }
        let size = value.size().unwrap_or(1);
        let outer = self.array_size.replace(size);
        let mut status = Status::Nothing;
        'all: for (from, to) in list {
            let bounds = self.subscript(from, value).and_then(|from| {
                let to = to.as_ref().map_or(Ok(from), |to| self.subscript(to, value))?;
                Ok((from, to))
            });
            let (from, to) = match bounds? {
                (Some(from), Some(to)) => (from, to),
                _ => {
                    status = Status::Error;
                    break;
                }
            };
            let outside = from < 0 || from > to || to >= size as i64;
            if outside && !self.passes_structure {
                let message = "jsonpath array subscript is out of bounds";
                status = self.fail(structure("22033", message))?;
                break;
            }
            status = Status::Nothing;
            for index in from.max(0)..=to.min(size as i64 - 1) {
                let element = match value.is_array() {
                    true => value.element(index as usize),
                    false => Some(value.clone()),
                };
                let Some(element) = element else { continue };
                if item.next.is_none() && found.is_none() {
                    status = Status::Found;
                    break 'all;
                }
                status = self.next(item, &element, found.as_deref_mut())?;
                if status == Status::Error || (status == Status::Found && found.is_none()) {
                    break 'all;
                }
            }
        }
        self.array_size = outer;
        Ok(status)
    }

    /// Returns the value of a subscript; `None` for a suppressed error.
    fn subscript(&mut self, item: &'a Item, value: &Value<'a>) -> Result<Option<i64>> {
        let mut values = Vec::new();
        if self.item(item, value, Some(&mut values))? == Status::Error {
            return Ok(None);
        }
        let number = match values.as_slice() {
            [one] => one.number(),
            _ => None,
        };
        let Some(number) = number else {
            let message = "jsonpath array subscript is not a single numeric value";
            return self.fail(structure("22033", message)).map(|_| None);
        };
        let index = number.trunc(0).to_i64().filter(|index| i32::try_from(*index).is_ok());
        if index.is_none() {
            let message = "jsonpath array subscript is out of integer range";
            self.fail(structure("22033", message))?;
        }
        Ok(index)
    }

    fn any_level(
        &mut self,
        item: &'a Item,
        (first, last): (u32, u32),
        value: &Value<'a>,
        mut found: Found<'_, 'a>,
    ) -> Result<Status> {
        let mut status = Status::Nothing;
        if first == 0 {
            status = self.passing(|this| this.next(item, value, found.as_deref_mut()))?;
            if status == Status::Found && found.is_none() {
                return Ok(status);
            }
        }
        if value.is_container() {
            status = self.below(item, value, (1, first, last), found)?;
        }
        Ok(status)
    }

    /// Runs `work` with structural errors suppressed.
    fn passing<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.passes_structure, true);
        let done = work(self);
        self.passes_structure = before;
        done
    }

    fn below(
        &mut self,
        item: &'a Item,
        value: &Value<'a>,
        (level, first, last): (u32, u32, u32),
        mut found: Found<'_, 'a>,
    ) -> Result<Status> {
        let mut status = Status::Nothing;
        if level > last {
            return Ok(status);
        }
        let ends = |status: Status, found: &Found<'_, 'a>| {
            status == Status::Error || (status == Status::Found && found.is_none())
        };
        for child in value.children() {
            let leaf = first == u32::MAX && last == u32::MAX && !child.is_container();
            if level >= first || leaf {
                status = self.passing(|this| this.next(item, &child, found.as_deref_mut()))?;
                if ends(status, &found) {
                    break;
                }
            }
            if level < last && child.is_container() {
                status =
                    self.below(item, &child, (level + 1, first, last), found.as_deref_mut())?;
                if ends(status, &found) {
                    break;
                }
            }
        }
        Ok(status)
    }

    fn signed(
        &mut self,
        item: &'a Item,
        negative: bool,
        operand: &'a Item,
        value: &Value<'a>,
        mut found: Found<'_, 'a>,
    ) -> Result<Status> {
        let mut values = Vec::new();
        if self.unwrapped(operand, value, true, Some(&mut values))? == Status::Error {
            return Ok(Status::Error);
        }
        let mut status = Status::Nothing;
        for one in values {
            let number = match one.number() {
                Some(_) if found.is_none() && item.next.is_none() => return Ok(Status::Found),
                Some(number) if negative => number.neg(),
                Some(number) => number.clone(),
                None if found.is_none() && item.next.is_none() => continue,
                None => {
                    let sign = if negative { "-" } else { "+" };
                    return self.fail(err!(SQL_JSON_NUMBER_NOT_FOUND: "operand of unary jsonpath operator {sign} is not a \
                        numeric value"));
                }
            };
            let number = Value::Json(Cow::Owned(Json::Number(number)));
            status = match self.next(item, &number, found.as_deref_mut())? {
                Status::Error => return Ok(Status::Error),
                Status::Found if found.is_none() => return Ok(Status::Found),
                Status::Found => Status::Found,
                Status::Nothing => status,
            };
        }
        Ok(status)
    }

    fn key_values(
        &mut self,
        item: &'a Item,
        value: &Value<'a>,
        mut found: Found<'_, 'a>,
    ) -> Result<Status> {
        let Some(pairs) = value.pairs() else {
            let message = "jsonpath item method .keyvalue() can only be applied to an object";
            return self.fail(structure("2203C", message));
        };
        if pairs.is_empty() {
            return Ok(Status::Nothing);
        }
        if item.next.is_none() && found.is_none() {
            return Ok(Status::Found);
        }
        let id = value.id_in(self.root);
        let mut status = Status::Nothing;
        for (key, value) in pairs {
            let object = Json::object(vec![
                ("key".into(), Json::String(key.into())),
                ("value".into(), value),
                ("id".into(), Json::Number(Numeric::from(id))),
            ]);
            status = self.next(item, &Value::Json(Cow::Owned(object)), found.as_deref_mut())?;
            if status == Status::Error || (status == Status::Found && found.is_none()) {
                break;
            }
        }
        Ok(status)
    }

    /// Evaluates an item; in lax mode arrays among its results are replaced by their elements.
    fn unwrapped(
        &mut self,
        item: &'a Item,
        value: &Value<'a>,
        unwraps: bool,
        found: Found<'_, 'a>,
    ) -> Result<Status> {
        let found = match found {
            Some(found) if unwraps && self.path.lax => found,
            found => return self.item(item, value, found),
        };
        let mut values = Vec::new();
        let status = self.item(item, value, Some(&mut values))?;
        if status == Status::Error {
            return Ok(status);
        }
        for value in values {
            match value.is_array() {
                true => found.extend(value.elements()),
                false => found.push(value),
            }
        }
        Ok(Status::Found)
    }
}

fn computed(operator: Arithmetic, left: &Numeric, right: &Numeric) -> Result<Numeric> {
    match operator {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right, &mut InterruptPacer::without_interrupt()),
        Arithmetic::Divide => left.checked_div(right, &mut InterruptPacer::without_interrupt()),
        Arithmetic::Modulo => left.checked_rem(right, &mut InterruptPacer::without_interrupt()),
    }
}

fn number_method(method: Method, value: &Value<'_>) -> Result<Numeric> {
    let misfit = |what: &str| {
        let name = method.name();
        err!(NON_NUMERIC_SQL_JSON_ITEM: "jsonpath item method .{name}() can only be applied to a {what}")
    };
    match (method, value.number()) {
        (Method::Abs, Some(number)) => Ok(number.abs()),
        (Method::Floor, Some(number)) => Ok(number.floor()),
        (Method::Ceiling, Some(number)) => Ok(number.ceil()),
        (Method::Double, Some(number)) => match number.to_f64().is_finite() {
            true => Ok(number.clone()),
            false => {
                bail!(NON_NUMERIC_SQL_JSON_ITEM: "numeric argument of jsonpath item method .double() is out of range for \
                    type double precision")
            }
        },
        (Method::Double, None) => {
            let string = value.string().ok_or_else(|| misfit("string or numeric value"))?;
            let double = text::parse(string, &DataType::Float8, &text::TextStyle::default());
            match double {
                Ok(Datum::Float8(double)) if double.is_finite() => Numeric::try_from_f64(double),
                _ => {
                    bail!(NON_NUMERIC_SQL_JSON_ITEM: "string argument of jsonpath item method .double() is not a valid \
                        representation of a double precision number")
                }
            }
        }
        _ => Err(misfit("numeric value")),
    }
}
