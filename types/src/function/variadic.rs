//! Functions called with `VARIADIC array`, whose elements are the arguments. The binder makes
//! these calls; other variadic functions of PostgreSQL are replaced by functions of arrays
//! (`concat(VARIADIC a)` by `array_to_string(a, '')`).

use super::argument::array;
use super::array_text::element_text;
use super::json_build::{build_array, build_jsonb_array, build_jsonb_object, build_object};
use super::json_build::{json_of, jsonb_of};
use super::quoting::format_text;
use super::{FunctionRow, Implementation, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{AnyArray, Int4, Json as JsonType, Jsonb, Text};
use crate::datum::{Datum, Nested};
use crate::error::Result;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("format variadic", &[Text, AnyArray], Text, format_array).takes_null().stable(),
    row("json_build_array variadic", &[AnyArray], JsonType, |a, c| json(a, c, build_array))
        .stable(),
    row("json_build_object variadic", &[AnyArray], JsonType, |a, c| json(a, c, build_object))
        .stable(),
    row("jsonb_build_array variadic", &[AnyArray], Jsonb, |a, c| jsonb(a, c, build_jsonb_array))
        .stable(),
    row("jsonb_build_object variadic", &[AnyArray], Jsonb, |a, c| jsonb(a, c, build_jsonb_object))
        .stable(),
    row("num_nulls variadic", &[AnyArray], Int4, |a, _| Ok(count(&a[0], true))),
    row("num_nonnulls variadic", &[AnyArray], Int4, |a, _| Ok(count(&a[0], false))),
];

/// Formats with the elements of an array; a NULL array means no arguments.
fn format_array(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let mut texts = vec![arguments[0].clone()];
    if !arguments[1].is_null() {
        let text = |element: &Datum| match element {
            Datum::Null => Ok(Datum::Null),
            element => element_text(element, context).map(Datum::text),
        };
        let elements = array(&arguments[1]).elements.iter().map(text);
        texts.extend(elements.collect::<Result<Vec<Datum>>>()?);
    }
    format_text(&texts, context)
}

fn json(arguments: &[Datum], context: &EvalContext, build: Implementation) -> Result<Datum> {
    let part = |element: &Datum| match element {
        Datum::Null => Ok(Datum::Null),
        element => Ok(Datum::Nested(Nested::Json(json_of(element, context)?.into()))),
    };
    let parts = array(&arguments[0]).elements.iter().map(part);
    build(&parts.collect::<Result<Vec<Datum>>>()?, context)
}

fn jsonb(arguments: &[Datum], context: &EvalContext, build: Implementation) -> Result<Datum> {
    let part = |element: &Datum| match element {
        Datum::Null => Ok(Datum::Null),
        element => {
            let json = jsonb_of(element, context)?;
            Ok(Datum::Nested(Nested::Jsonb(json.into())))
        }
    };
    let parts = array(&arguments[0]).elements.iter().map(part);
    build(&parts.collect::<Result<Vec<Datum>>>()?, context)
}

fn count(elements: &Datum, null: bool) -> Datum {
    let found = array(elements).elements.iter().filter(|element| element.is_null() == null);
    Datum::Int4(i32::try_from(found.count()).unwrap_or(i32::MAX))
}
