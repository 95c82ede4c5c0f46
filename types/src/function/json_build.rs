//! `json` and `jsonb` made of values, and written in other ways.
//!
//! The binder passes the arguments of the `…_build_…` functions, which are of any types, through
//! `to_json` or `to_jsonb`.

use std::sync::Arc;

use super::argument::{array, grown_jsonb, json_datum, json_text, jsonb, jsonb_datum, text_datum};
use super::records::{jsonb_of_record, labelled};
use super::strings::invalid_parameter;
use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, AnyArray, AnyElement, Bool, Json as JsonType, Jsonb, Text};
use crate::datetime;
use crate::datum::{Array, Datum, Json, Nested, Record};
use crate::error::{Error, Result};
use crate::text::{self, JsonParts, TextStyle, json_parts, write_json_string};

const TEXTS: DataType = DataType::Array(&Text);

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("to_json", &[AnyElement], JsonType, |a, c| Ok(json_datum(to_json(&a[0], "", c)))).stable(),
    row("to_jsonb", &[AnyElement], Jsonb, |a, c| to_jsonb(&a[0], c).and_then(grown_jsonb)).stable(),
    row("array_to_json", &[AnyArray], JsonType, |a, c| Ok(json_datum(to_json(&a[0], "", c))))
        .stable(),
    row("array_to_json", &[AnyArray, Bool], JsonType, |a, c| {
        let line = if a[1].as_bool() == Some(true) { "\n " } else { "" };
        Ok(json_datum(to_json(&a[0], line, c)))
    })
    .stable(),
    row("json_build_array", &[], JsonType, |_, _| Ok(json_datum("[]".to_owned()))).stable(),
    row("json_build_array", &[JsonType, JsonType], JsonType, build_array)
        .variadic()
        .takes_null()
        .stable(),
    row(" no json key", &[AnyElement], JsonType, |_, _| Err(no_scalar())),
    row(" no jsonb key", &[AnyElement], Jsonb, |_, _| Err(no_scalar())),
    row("json_build_object", &[], JsonType, |_, _| Ok(json_datum("{}".to_owned()))).stable(),
    row("json_build_object", &[JsonType, JsonType], JsonType, build_object)
        .variadic()
        .takes_null()
        .stable(),
    row("jsonb_build_array", &[], Jsonb, |_, _| Ok(jsonb_datum(Json::Array(Vec::new())))).stable(),
    row("jsonb_build_array", &[Jsonb, Jsonb], Jsonb, build_jsonb_array)
        .variadic()
        .takes_null()
        .stable(),
    row("jsonb_build_object", &[], Jsonb, |_, _| Ok(jsonb_datum(Json::object(Vec::new()))))
        .stable(),
    row("jsonb_build_object", &[Jsonb, Jsonb], Jsonb, build_jsonb_object)
        .variadic()
        .takes_null()
        .stable(),
    row("json_object", &[TEXTS], JsonType, |a, _| text_object(&pairs_of(array(&a[0]))?)),
    row("json_object", &[TEXTS, TEXTS], JsonType, |a, _| text_object(&zipped(a)?)),
    row("jsonb_object", &[TEXTS], Jsonb, |a, _| jsonb_object(&pairs_of(array(&a[0]))?)),
    row("jsonb_object", &[TEXTS, TEXTS], Jsonb, |a, _| jsonb_object(&zipped(a)?)),
    row("json_strip_nulls", &[JsonType], JsonType, |a, _| {
        let mut out = String::new();
        strip_text(json_text(&a[0]), &mut out)?;
        Ok(json_datum(out))
    }),
    row("jsonb_strip_nulls", &[Jsonb], Jsonb, |a, _| Ok(jsonb_datum(stripped(jsonb(&a[0]))))),
    row("jsonb_pretty", &[Jsonb], Text, |a, _| {
        let mut out = String::new();
        pretty(jsonb(&a[0]), 0, &mut out);
        Ok(text_datum(out))
    }),
];

/// Returns the text of a `jsonb`.
pub(super) fn jsonb_text(json: &Json) -> String {
    let mut out = Vec::new();
    let value = jsonb_datum(json.clone());
    text::write(&value, Jsonb, &TextStyle::default(), &mut out);
    String::from_utf8(out).expect("the text of a value is UTF-8")
}

fn quoted(string: &str) -> String {
    let mut out = Vec::with_capacity(string.len() + 2);
    write_json_string(string, &mut out);
    String::from_utf8(out).expect("the text of a value is UTF-8")
}

/// Returns the text of a value as strings of JSON have it: dates and times as ISO 8601 writes them.
fn string_of(value: &Datum, context: &EvalContext) -> String {
    let mut style = context.text_style();
    style.formats.style.date = datetime::DateStyle::Iso;
    let mut out = Vec::new();
    text::write(value, DataType::Unknown, &style, &mut out);
    let mut written = String::from_utf8(out).expect("the text of a value is UTF-8");
    if let Datum::Timestamp(at) | Datum::Timestamptz(at) = value
        && datetime::is_finite_timestamp(*at)
    {
        if let Some(blank) = written.find(' ') {
            written.replace_range(blank..=blank, "T");
        }
        let zoned = matches!(value, Datum::Timestamptz(_));
        let sign = written.rfind(['+', '-']).filter(|_| zoned);
        if sign.is_some_and(|sign| !written[sign..].contains([':', ' '])) {
            written.push_str(":00");
        }
    }
    written
}

/// Returns whether a value is a number, `true` or `false` in JSON; the text of it, if so.
fn bare(value: &Datum, context: &EvalContext) -> Option<String> {
    match value {
        Datum::Bool(value) => Some(value.to_string()),
        Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Int8(_)
        | Datum::Float4(_)
        | Datum::Float8(_)
        | Datum::Numeric(_) => {
            let text = string_of(value, context);
            (!text.contains(['N', 'I'])).then_some(text)
        }
        _ => None,
    }
}

fn to_json(value: &Datum, line: &str, context: &EvalContext) -> String {
    match value {
        Datum::Null => "null".to_owned(),
        Datum::Nested(Nested::Json(text)) => text.to_string(),
        Datum::Nested(Nested::Jsonb(json)) => jsonb_text(json),
        Datum::Nested(Nested::Array(array)) => {
            let mut elements = array.elements.iter();
            array_json(array, 0, &mut elements, line, context)
        }
        Datum::Nested(Nested::Record(record)) => json_of_record(record, "", context),
        other => bare(other, context).unwrap_or_else(|| quoted(&string_of(other, context))),
    }
}

/// Returns a record as the text of a JSON object; `line` stands between its fields.
pub(super) fn json_of_record(record: &Record, line: &str, context: &EvalContext) -> String {
    let pair = |(value, (name, data_type)): (&Datum, &(Arc<str>, DataType))| {
        format!("{}:{}", quoted(name), to_json(&labelled(value, *data_type), "", context))
    };
    let pairs = record.values.iter().zip(record.fields.iter()).map(pair);
    format!("{{{}}}", pairs.collect::<Vec<String>>().join(&format!(",{line}")))
}

/// Returns the JSON text of a value, as `to_json` makes it.
pub(crate) fn json_of(value: &Datum, context: &EvalContext) -> String {
    to_json(value, "", context)
}

/// Returns the JSON of a value, as `to_jsonb` makes it.
///
/// # Errors
///
/// 54001 if it is nested too deeply.
pub(crate) fn jsonb_of(value: &Datum, context: &EvalContext) -> Result<Json> {
    to_jsonb(value, context)
}

/// Returns a value as the key of an object, which is text; NULL stays.
///
/// # Errors
///
/// 22023 for values made of values.
pub(crate) fn json_key(value: &Datum, context: &EvalContext) -> Result<Datum> {
    match value {
        Datum::Null => Ok(Datum::Null),
        Datum::Nested(
            Nested::Array(_) | Nested::Json(_) | Nested::Jsonb(_) | Nested::Record(_),
        ) => Err(no_scalar()),
        value => {
            let text = bare(value, context).unwrap_or_else(|| string_of(value, context));
            Ok(Datum::text(text))
        }
    }
}

fn array_json(
    array: &Array,
    level: usize,
    elements: &mut std::slice::Iter<'_, Datum>,
    line: &str,
    context: &EvalContext,
) -> String {
    let Some(dimension) = array.dimensions.get(level) else { return "[]".to_owned() };
    let inner = level + 1 < array.dimensions.len();
    let part = |_| match inner {
        true => array_json(array, level + 1, elements, "", context),
        false => to_json(elements.next().unwrap_or(&Datum::Null), "", context),
    };
    let parts: Vec<String> = (0..dimension.length).map(part).collect();
    format!("[{}]", parts.join(&format!(",{line}")))
}

fn to_jsonb(value: &Datum, context: &EvalContext) -> Result<Json> {
    Ok(match value {
        Datum::Null => Json::Null,
        Datum::Bool(value) => Json::Bool(*value),
        Datum::Nested(Nested::Jsonb(json)) => (**json).clone(),
        Datum::Nested(Nested::Json(text)) => {
            match text::parse(text, Jsonb, &TextStyle::default())? {
                Datum::Nested(Nested::Jsonb(json)) => (*json).clone(),
                _ => Json::Null,
            }
        }
        Datum::Nested(Nested::Array(array)) => {
            let mut elements = array.elements.iter();
            array_jsonb(array, 0, &mut elements, context)?
        }
        Datum::Nested(Nested::Record(record)) => jsonb_of_record(record, context)?,
        other => match bare(other, context) {
            Some(number) => Json::Number(crate::numeric::Numeric::parse(&number)?),
            None => Json::String(string_of(other, context).into()),
        },
    })
}

fn array_jsonb(
    array: &Array,
    level: usize,
    elements: &mut std::slice::Iter<'_, Datum>,
    context: &EvalContext,
) -> Result<Json> {
    let Some(dimension) = array.dimensions.get(level) else { return Ok(Json::Array(Vec::new())) };
    let inner = level + 1 < array.dimensions.len();
    let part = |_| match inner {
        true => array_jsonb(array, level + 1, elements, context),
        false => to_jsonb(elements.next().unwrap_or(&Datum::Null), context),
    };
    (0..dimension.length).map(part).collect::<Result<_>>().map(Json::Array)
}

/// Returns the text of a part, `null` for NULL.
fn part(datum: &Datum) -> &str {
    match datum {
        Datum::Null => "null",
        other => json_text(other),
    }
}

fn or_null(datum: &Datum) -> Json {
    match datum {
        Datum::Null => Json::Null,
        other => jsonb(other).clone(),
    }
}

pub(super) fn build_array(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let parts: Vec<&str> = arguments.iter().map(part).collect();
    Ok(json_datum(format!("[{}]", parts.join(", "))))
}

pub(super) fn build_jsonb_array(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    grown_jsonb(Json::Array(arguments.iter().map(or_null).collect()))
}

fn check_even(arguments: &[Datum], function: &str) -> Result<()> {
    if arguments.len().is_multiple_of(2) {
        return Ok(());
    }
    let hint = format!("The arguments of {function} must consist of alternating keys and values.");
    Err(invalid_parameter("argument list must have even number of elements").with_hint(hint))
}

fn null_key(index: usize) -> Error {
    let message = format!("argument {} cannot be null", index * 2 + 1);
    invalid_parameter(message).with_hint("Object keys should be text.")
}

fn no_scalar() -> Error {
    invalid_parameter("key value must be scalar, not array, composite, or json")
}

pub(super) fn build_object(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    check_even(arguments, "json_build_object()")?;
    let mut pairs = Vec::with_capacity(arguments.len() / 2);
    for (index, pair) in arguments.chunks_exact(2).enumerate() {
        if pair[0].is_null() {
            return Err(null_key(index));
        }
        let key = match json_parts(json_text(&pair[0]))? {
            JsonParts::String(text) => quoted(&text),
            JsonParts::Other => quoted(json_text(&pair[0])),
            _ => return Err(no_scalar()),
        };
        pairs.push(format!("{key} : {}", part(&pair[1])));
    }
    Ok(json_datum(format!("{{{}}}", pairs.join(", "))))
}

pub(super) fn build_jsonb_object(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    check_even(arguments, "jsonb_build_object()")?;
    let mut pairs = Vec::with_capacity(arguments.len() / 2);
    for (index, pair) in arguments.chunks_exact(2).enumerate() {
        if pair[0].is_null() {
            let message = format!("argument {}: key must not be null", index * 2 + 1);
            return Err(invalid_parameter(message));
        }
        let key: Arc<str> = match jsonb(&pair[0]) {
            Json::String(text) => Arc::clone(text),
            scalar if !scalar.is_container() => jsonb_text(scalar).into(),
            _ => return Err(no_scalar()),
        };
        pairs.push((key, or_null(&pair[1])));
    }
    grown_jsonb(Json::object(pairs))
}

type TextPairs<'a> = Vec<(&'a str, Option<&'a str>)>;

fn subscript_error(message: &str) -> Error {
    Error::new("2202E", message)
}

/// Returns the pairs of `{a,1,b,2}` or `{{a,1},{b,2}}`.
fn pairs_of(array: &Array) -> Result<TextPairs<'_>> {
    match array.dimensions.as_slice() {
        [] => {}
        [only] if only.length.is_multiple_of(2) => {}
        [_] => return Err(subscript_error("array must have even number of elements")),
        [_, two] if two.length == 2 => {}
        [_, _] => return Err(subscript_error("array must have two columns")),
        _ => return Err(subscript_error("wrong number of array subscripts")),
    }
    array.elements.chunks_exact(2).map(|pair| text_pair(&pair[0], &pair[1])).collect()
}

fn text_pair<'a>(key: &'a Datum, value: &'a Datum) -> Result<(&'a str, Option<&'a str>)> {
    match key.as_str() {
        Some(key) => Ok((key, value.as_str())),
        None => Err(Error::new("22004", "null value not allowed for object key")),
    }
}

fn zipped(arguments: &[Datum]) -> Result<TextPairs<'_>> {
    let (keys, values) = (array(&arguments[0]), array(&arguments[1]));
    if keys.dimensions.len() > 1 || keys.dimensions.len() != values.dimensions.len() {
        return Err(subscript_error("wrong number of array subscripts"));
    }
    if keys.elements.len() != values.elements.len() {
        return Err(subscript_error("mismatched array dimensions"));
    }
    keys.elements.iter().zip(&values.elements).map(|(k, v)| text_pair(k, v)).collect()
}

fn text_object(pairs: &TextPairs<'_>) -> Result<Datum> {
    let pair = |(key, value): &(&str, Option<&str>)| {
        format!("{} : {}", quoted(key), value.map_or("null".to_owned(), quoted))
    };
    let pairs: Vec<String> = pairs.iter().map(pair).collect();
    Ok(json_datum(format!("{{{}}}", pairs.join(", "))))
}

fn jsonb_object(pairs: &TextPairs<'_>) -> Result<Datum> {
    let pair = |(key, value): &(&str, Option<&str>)| {
        (Arc::from(*key), value.map_or(Json::Null, |value| Json::String(value.into())))
    };
    Ok(jsonb_datum(Json::object(pairs.iter().map(pair).collect())))
}

/// Writes a `json` without the fields of objects that are null, and without blanks.
fn strip_text(json: &str, out: &mut String) -> Result<()> {
    match json_parts(json)? {
        JsonParts::Object(pairs) => {
            out.push('{');
            let mut first = true;
            for (key, value) in pairs {
                if matches!(json_parts(value)?, JsonParts::Null) {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    out.push(',');
                }
                out.push_str(&quoted(&key));
                out.push(':');
                strip_text(value, out)?;
            }
            out.push('}');
        }
        JsonParts::Array(elements) => {
            out.push('[');
            for (index, element) in elements.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                strip_text(element, out)?;
            }
            out.push(']');
        }
        JsonParts::String(text) => out.push_str(&quoted(&text)),
        JsonParts::Null | JsonParts::Other => out.push_str(json.trim()),
    }
    Ok(())
}

fn stripped(json: &Json) -> Json {
    match json {
        Json::Object(pairs) => {
            let kept = pairs.iter().filter(|(_, value)| *value != Json::Null);
            Json::Object(kept.map(|(key, value)| (Arc::clone(key), stripped(value))).collect())
        }
        Json::Array(elements) => Json::Array(elements.iter().map(stripped).collect()),
        scalar => scalar.clone(),
    }
}

fn pretty(json: &Json, depth: usize, out: &mut String) {
    let indent = |depth: usize, out: &mut String| {
        out.push('\n');
        out.push_str(&"    ".repeat(depth));
    };
    match json {
        Json::Object(pairs) => {
            out.push('{');
            for (index, (key, value)) in pairs.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                indent(depth + 1, out);
                out.push_str(&quoted(key));
                out.push_str(": ");
                pretty(value, depth + 1, out);
            }
            indent(depth, out);
            out.push('}');
        }
        Json::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                indent(depth + 1, out);
                pretty(element, depth + 1, out);
            }
            indent(depth, out);
            out.push(']');
        }
        scalar => out.push_str(&jsonb_text(scalar)),
    }
}
