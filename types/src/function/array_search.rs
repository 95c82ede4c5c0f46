//! Arrays: search, replacement, containment, and quantified comparisons.
//!
//! `any of` and `all of` are `x op ANY (array)` and `ALL`: their first argument is the id of the
//! comparison function. The binder makes these calls; no statement can call them.

use super::argument::{array, array_datum, int4};
use super::{CompareOp, FunctionId, FunctionRow, KernelKind, row, typed_row};
use crate::context::EvalContext;
use crate::datatype::DataType::{
    self, AnyArray, Bool, Compatible, CompatibleArray, Date, Int4, Text, Uuid,
};
use crate::datum::{Array, Datum, Dimension, Nested};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("any of", &[Int4, Compatible, AnyArray], Bool, |a, c| quantified(a, true, c))
        .takes_null()
        .stable(),
    row("all of", &[Int4, Compatible, AnyArray], Bool, |a, c| quantified(a, false, c))
        .takes_null()
        .stable(),
    typed_row("@>", &[AnyArray, AnyArray], Bool, |a, of, c| contains(&a[0], &a[1], of, c)),
    typed_row("<@", &[AnyArray, AnyArray], Bool, |a, of, c| contains(&a[1], &a[0], of, c)),
    typed_row("&&", &[AnyArray, AnyArray], Bool, shares),
    typed_row("array_position", &[CompatibleArray, Compatible], Int4, position).takes_null(),
    typed_row("array_position", &[CompatibleArray, Compatible, Int4], Int4, position).takes_null(),
    typed_row(
        "array_positions",
        &[CompatibleArray, Compatible],
        DataType::array_of(&Int4),
        positions,
    )
    .takes_null(),
    typed_row("array_remove", &[CompatibleArray, Compatible], CompatibleArray, remove).takes_null(),
    typed_row(
        "array_replace",
        &[CompatibleArray, Compatible, Compatible],
        CompatibleArray,
        replace,
    )
    .takes_null(),
];

/// Returns whether two elements of an array of type `of` are not distinct; NULL equals NULL.
fn same(left: &Datum, right: &Datum, of: &DataType) -> bool {
    left.compare_typed(right, of.element().unwrap_or(&DataType::Unknown)).is_eq()
}

/// Returns the position of an element that is not distinct from another, from a position on.
fn find(
    array: &Array,
    from: usize,
    wanted: &Datum,
    of: &DataType,
    pace: &mut InterruptPacer<'_>,
) -> Result<Option<usize>> {
    for (index, one) in array.elements.iter().enumerate().skip(from) {
        pace.count_steps(ELEMENT)?;
        if same(one, wanted, of) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Cost of an element, for the interrupt check.
pub(super) const ELEMENT: usize = 16;

fn contains(outer: &Datum, inner: &Datum, of: &DataType, context: &EvalContext) -> Result<Datum> {
    let (outer, inner) = (array(outer), array(inner));
    let mut pace = context.pace();
    for one in &inner.elements {
        if one.is_null() || find(outer, 0, one, of, &mut pace)?.is_none() {
            return Ok(Datum::Bool(false));
        }
    }
    Ok(Datum::Bool(true))
}

fn shares(arguments: &[Datum], of: &DataType, context: &EvalContext) -> Result<Datum> {
    let (left, right) = (array(&arguments[0]), array(&arguments[1]));
    let mut pace = context.pace();
    for one in left.elements.iter().filter(|one| !one.is_null()) {
        if find(right, 0, one, of, &mut pace)?.is_some() {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(Datum::Bool(false))
}

fn quantified(arguments: &[Datum], any: bool, context: &EvalContext) -> Result<Datum> {
    let Datum::Nested(Nested::Array(array)) = &arguments[2] else { return Ok(Datum::Null) };
    let comparison = u16::try_from(int4(&arguments[0])).map(FunctionId);
    let comparison = comparison.expect("the binder passes the id of a function");
    let first = &super::signature(comparison).arguments[0];
    let operator = plain_comparison(comparison);
    let (mut unknown, mut pace) = (false, context.pace());
    let mut pair = [arguments[1].clone(), Datum::Null];
    for element in &array.elements {
        pace.count_steps(ELEMENT)?;
        let answer = match operator {
            Some(operator) if !pair[0].is_null() && !element.is_null() => {
                Datum::Bool(operator.accepts(pair[0].compare_typed(element, first)))
            }
            Some(_) => Datum::Null,
            None => {
                pair[1] = element.clone();
                super::call(comparison, &pair, first, context)?
            }
        };
        match answer {
            Datum::Bool(answer) if answer == any => return Ok(Datum::Bool(any)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!any) })
}

/// Returns the operator of a comparison of two values of a scalar type, whose comparison is fast.
fn plain_comparison(comparison: FunctionId) -> Option<CompareOp> {
    let (KernelKind::Compare(operator), [left, right]) =
        (super::shape(comparison), super::signature(comparison).arguments)
    else {
        return None;
    };
    let plain = left == right && (left.is_number() || matches!(left, Text | Date | Uuid));
    plain.then_some(operator)
}

/// Returns an array of at most one dimension, and its lower bound.
fn one_dimension<'a>(datum: &'a Datum, doing: &str) -> Result<(&'a Array, i32)> {
    let array = array(datum);
    match array.dimensions.as_slice() {
        [] => Ok((array, 1)),
        [only] => Ok((array, only.lower)),
        _ => bail!(FEATURE_NOT_SUPPORTED: "{doing} multidimensional arrays is not supported"),
    }
}

fn position(arguments: &[Datum], of: &DataType, context: &EvalContext) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let (array, lower) = one_dimension(&arguments[0], "searching for elements in")?;
    if array.elements.is_empty() {
        return Ok(Datum::Null);
    }
    let first = match arguments.get(2) {
        Some(Datum::Null) => bail!(NULL_VALUE_NOT_ALLOWED: "initial position must not be null"),
        Some(first) => int4(first),
        None => lower,
    };
    let from = usize::try_from(i64::from(first) - i64::from(lower)).unwrap_or(0);
    let found = find(array, from, &arguments[1], of, &mut context.pace())?;
    Ok(found.map_or(Datum::Null, |index| place(index, lower)))
}

/// Returns the subscript of a position.
fn place(index: usize, lower: i32) -> Datum {
    Datum::Int4((index as i64 + i64::from(lower)) as i32)
}

fn positions(arguments: &[Datum], of: &DataType, context: &EvalContext) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let (array, lower) = one_dimension(&arguments[0], "searching for elements in")?;
    let (mut found, mut pace) = (Vec::new(), context.pace());
    let mut from = 0;
    while let Some(index) = find(array, from, &arguments[1], of, &mut pace)? {
        pace.push(&mut found, place(index, lower))?;
        from = index + 1;
    }
    Ok(array_datum(Array::from_elements(found)))
}

fn remove(arguments: &[Datum], of: &DataType, context: &EvalContext) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let (array, lower) = one_dimension(&arguments[0], "removing elements from")?;
    let (mut elements, mut pace) = (Vec::new(), context.pace());
    for one in &array.elements {
        pace.count_steps(ELEMENT)?;
        if !same(one, &arguments[1], of) {
            pace.push(&mut elements, one.clone())?;
        }
    }
    if elements.len() == array.elements.len() {
        return Ok(arguments[0].clone());
    }
    if elements.is_empty() {
        return Ok(array_datum(Array::default()));
    }
    let dimensions = vec![Dimension { lower, length: elements.len() }];
    Ok(array_datum(Array { dimensions, elements }))
}

fn replace(arguments: &[Datum], of: &DataType, context: &EvalContext) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let array = array(&arguments[0]);
    let mut pace = context.pace();
    let mut elements = pace.list(array.elements.len())?;
    for one in &array.elements {
        let replaced = if same(one, &arguments[1], of) { &arguments[2] } else { one };
        pace.push(&mut elements, replaced.clone())?;
    }
    Ok(array_datum(Array { dimensions: array.dimensions.clone(), elements }))
}
