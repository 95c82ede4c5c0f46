//! Assignment to `jsonb` subscripts: `SET j['a'][1] = …`.
//!
//! The binder makes the calls; their name has blanks, so that no statement can call it. A missing
//! target is created, with all missing parents. Source: PostgreSQL's `jsonbsubs.c`, and `setPath`
//! with `JB_PATH_FILL_GAPS`. Reading is `jsonb_extract_path`.

use std::sync::Arc;

use super::argument::{bool_of, grown_jsonb, jsonb, text};
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, Jsonb, Text};
use crate::datum::{Datum, Json};
use crate::error::{Error, Result};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] =
    &[row("jsonb with element", &[Jsonb, Jsonb, Bool, Text], Jsonb, with_element)
        .variadic()
        .takes_null()];

/// Arguments: `(value, new, whether the first subscript is a number, subscripts…)`
fn with_element(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    if arguments[3..].iter().any(Datum::is_null) {
        bail!(NULL_VALUE_NOT_ALLOWED: "jsonb subscript in assignment must not be null");
    }
    let steps: Vec<&str> = arguments[3..].iter().map(text).collect();
    let new = match &arguments[1] {
        Datum::Null => Json::Null,
        value => jsonb(value).clone(),
    };
    let old = match &arguments[0] {
        Datum::Null if bool_of(&arguments[2]) => Json::Array(Vec::new()),
        Datum::Null => Json::object(Vec::new()),
        value => jsonb(value).clone(),
    };
    grown_jsonb(replaced(old, &steps, 0, new)?)
}

/// Returns a value with `new` at the end of a path.
fn replaced(json: Json, steps: &[&str], depth: usize, new: Json) -> Result<Json> {
    let (step, last) = (steps[depth], depth + 1 == steps.len());
    let inner = |old: Option<Json>, new: Json| match old {
        _ if last => Ok(new),
        Some(old) => replaced(old, steps, depth + 1, new),
        None => Ok(path_to(&steps[depth + 1..], new)),
    };
    match json {
        Json::Object(mut pairs) => match pairs.iter().position(|(name, _)| **name == *step) {
            Some(at) => {
                let old = std::mem::replace(&mut pairs[at].1, Json::Null);
                pairs[at].1 = inner(Some(old), new)?;
                Ok(Json::Object(pairs))
            }
            None => {
                pairs.push((Arc::from(step), inner(None, new)?));
                Ok(Json::object(pairs))
            }
        },
        Json::Array(mut elements) => {
            let at = array_place(step, depth, elements.len())?;
            if at >= elements.len() {
                elements.resize(at, Json::Null);
                elements.push(inner(None, new)?);
            } else {
                let old = std::mem::replace(&mut elements[at], Json::Null);
                elements[at] = inner(Some(old), new)?;
            }
            Ok(Json::Array(elements))
        }
        _ => Err(invalid_parameter("cannot replace existing key")
            .with_detail("The path assumes key is a composite object, but it is a scalar value.")),
    }
}

/// Maximum length of an array created by a subscript; PostgreSQL's limit of elements.
const MOST_ELEMENTS: usize = 0x0fff_ffff;

fn array_place(step: &str, depth: usize, length: usize) -> Result<usize> {
    let Ok(index) = step.trim_start().parse::<i32>() else {
        bail!(INVALID_TEXT_REPRESENTATION: "path element at position {} is not an integer: \"{step}\"", depth + 1);
    };
    let from_end = if index < 0 { length as i64 } else { 0 };
    let Ok(place) = usize::try_from(i64::from(index) + from_end) else {
        let message = format!("path element at position {} is out of range: {index}", depth + 1);
        return Err(invalid_parameter(message));
    };
    if place > MOST_ELEMENTS {
        bail!(PROGRAM_LIMIT_EXCEEDED: "number of jsonb array elements exceeds the maximum allowed ({MOST_ELEMENTS})");
    }
    Ok(place)
}

/// Returns a value that contains only `new` at the end of a path.
fn path_to(steps: &[&str], new: Json) -> Json {
    steps.iter().rev().fold(new, |value, step| match step.parse::<i32>() {
        Ok(index) => {
            let before = usize::try_from(index).unwrap_or(0).min(MOST_ELEMENTS);
            let mut elements = vec![Json::Null; before];
            elements.push(value);
            Json::Array(elements)
        }
        Err(_) => Json::object(vec![(Arc::from(*step), value)]),
    })
}
