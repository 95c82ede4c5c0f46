//! Arrays: searching, replacing, containing, and quantified comparisons.
//!
//! `any of` and `all of` are `x op ANY (array)` and `ALL`: their first argument is the id of the
//! comparison. The binder makes these calls; no statement can name them.

use super::argument::{array, array_datum, int4};
use super::{FunctionId, Row, row, typed_row};
use crate::context::EvalContext;
use crate::datatype::DataType::{
    self, AnyArray, Array as ArrayOf, Bool, Compatible, CompatibleArray, Int4,
};
use crate::datum::{Array, Datum, Dimension, Nested};
use crate::error::{Error, Result, sqlstate};

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("any of", &[Int4, Compatible, AnyArray], Bool, |a, c| quantified(a, true, c))
        .takes_null()
        .stable(),
    row("all of", &[Int4, Compatible, AnyArray], Bool, |a, c| quantified(a, false, c))
        .takes_null()
        .stable(),
    typed_row("@>", &[AnyArray, AnyArray], Bool, |a, of| contains(&a[0], &a[1], of)),
    typed_row("<@", &[AnyArray, AnyArray], Bool, |a, of| contains(&a[1], &a[0], of)),
    typed_row("&&", &[AnyArray, AnyArray], Bool, |a, of| {
        let (left, right) = (array(&a[0]), array(&a[1]));
        let shared = left.elements.iter().any(|one| !one.is_null() && has(right, one, of));
        Ok(Datum::Bool(shared))
    }),
    typed_row("array_position", &[CompatibleArray, Compatible], Int4, position).takes_null(),
    typed_row("array_position", &[CompatibleArray, Compatible, Int4], Int4, position).takes_null(),
    typed_row("array_positions", &[CompatibleArray, Compatible], ArrayOf(&Int4), positions)
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

/// Returns whether two elements of an array of type `of` are the same, NULL being like NULL.
fn same(left: &Datum, right: &Datum, of: DataType) -> bool {
    left.compare_typed(right, of.element().unwrap_or(DataType::Unknown)).is_eq()
}

fn has(array: &Array, wanted: &Datum, of: DataType) -> bool {
    array.elements.iter().any(|one| !one.is_null() && same(one, wanted, of))
}

fn contains(outer: &Datum, inner: &Datum, of: DataType) -> Result<Datum> {
    let (outer, inner) = (array(outer), array(inner));
    Ok(Datum::Bool(inner.elements.iter().all(|one| !one.is_null() && has(outer, one, of))))
}

fn quantified(arguments: &[Datum], any: bool, context: &EvalContext) -> Result<Datum> {
    let Datum::Nested(Nested::Array(array)) = &arguments[2] else { return Ok(Datum::Null) };
    let comparison = u16::try_from(int4(&arguments[0])).map(FunctionId);
    let comparison = comparison.expect("the binder passes the id of a function");
    let first = super::signature(comparison).arguments[0];
    let mut unknown = false;
    for element in &array.elements {
        let pair = [arguments[1].clone(), element.clone()];
        match super::call(comparison, &pair, first, context)? {
            Datum::Bool(answer) if answer == any => return Ok(Datum::Bool(any)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!any) })
}

/// Returns an array of one dimension at most, and its lower bound.
fn one_dimension<'a>(datum: &'a Datum, doing: &str) -> Result<(&'a Array, i32)> {
    let array = array(datum);
    match array.dimensions.as_slice() {
        [] => Ok((array, 1)),
        [only] => Ok((array, only.lower)),
        _ => {
            let message = format!("{doing} multidimensional arrays is not supported");
            Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message))
        }
    }
}

fn position(arguments: &[Datum], of: DataType) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let (array, lower) = one_dimension(&arguments[0], "searching for elements in")?;
    if array.elements.is_empty() {
        return Ok(Datum::Null);
    }
    let first = match arguments.get(2) {
        Some(Datum::Null) => {
            return Err(Error::new("22004", "initial position must not be null"));
        }
        Some(first) => int4(first),
        None => lower,
    };
    let places = (i64::from(lower)..).zip(&array.elements);
    let found = places.filter(|(place, _)| *place >= i64::from(first));
    let found =
        found.map(|(place, one)| (place, same(one, &arguments[1], of))).find(|found| found.1);
    Ok(found.map_or(Datum::Null, |(place, _)| Datum::Int4(place as i32)))
}

fn positions(arguments: &[Datum], of: DataType) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let (array, lower) = one_dimension(&arguments[0], "searching for elements in")?;
    let places = (i64::from(lower)..).zip(&array.elements);
    let found = places.filter(|(_, one)| same(one, &arguments[1], of));
    let found = found.map(|(place, _)| Datum::Int4(place as i32)).collect();
    Ok(array_datum(Array::from_elements(found)))
}

fn remove(arguments: &[Datum], of: DataType) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let (array, lower) = one_dimension(&arguments[0], "removing elements from")?;
    let kept = array.elements.iter().filter(|one| !same(one, &arguments[1], of)).cloned();
    let elements: Vec<Datum> = kept.collect();
    if elements.len() == array.elements.len() {
        return Ok(arguments[0].clone());
    }
    if elements.is_empty() {
        return Ok(array_datum(Array::default()));
    }
    let dimensions = vec![Dimension { lower, length: elements.len() }];
    Ok(array_datum(Array { dimensions, elements }))
}

fn replace(arguments: &[Datum], of: DataType) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let array = array(&arguments[0]);
    let replaced = array.elements.iter().map(|one| match same(one, &arguments[1], of) {
        true => arguments[2].clone(),
        false => one.clone(),
    });
    let elements = replaced.collect();
    Ok(array_datum(Array { dimensions: array.dimensions.clone(), elements }))
}
