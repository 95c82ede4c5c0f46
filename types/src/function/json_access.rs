//! `json` and `jsonb`: reading values by key, position and path.

use std::sync::Arc;

use super::argument::{array, int4, json_datum, json_text, jsonb, jsonb_datum, text, text_datum};
use super::strings::invalid_parameter;
use super::{Row, row};
use crate::datatype::DataType::{self, Bool, Int4, Json as JsonType, Jsonb, Text};
use crate::datum::{Datum, Json};
use crate::error::Result;
use crate::text::{JsonParts, json_parts};

const TEXTS: DataType = DataType::Array(&Text);

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("->", &[JsonType, Text], JsonType, |a, _| Ok(raw(member(json_text(&a[0]), &a[1])?))),
    row("->", &[JsonType, Int4], JsonType, |a, _| Ok(raw(member(json_text(&a[0]), &a[1])?))),
    row("->>", &[JsonType, Text], Text, |a, _| plain(member(json_text(&a[0]), &a[1])?)),
    row("->>", &[JsonType, Int4], Text, |a, _| plain(member(json_text(&a[0]), &a[1])?)),
    row("#>", &[JsonType, TEXTS], JsonType, |a, _| Ok(raw(at_path(a, &path(&a[1]))?))),
    row("#>>", &[JsonType, TEXTS], Text, |a, _| plain(at_path(a, &path(&a[1]))?)),
    row("json_extract_path", &[JsonType, Text], JsonType, |a, _| Ok(raw(at_path(a, &a[1..])?)))
        .variadic(),
    row("json_extract_path_text", &[JsonType, Text], Text, |a, _| plain(at_path(a, &a[1..])?))
        .variadic(),
    row("->", &[Jsonb, Text], Jsonb, |a, _| Ok(whole(child(jsonb(&a[0]), &a[1])))),
    row("->", &[Jsonb, Int4], Jsonb, |a, _| Ok(whole(child(jsonb(&a[0]), &a[1])))),
    row("->>", &[Jsonb, Text], Text, |a, _| Ok(written(child(jsonb(&a[0]), &a[1])))),
    row("->>", &[Jsonb, Int4], Text, |a, _| Ok(written(child(jsonb(&a[0]), &a[1])))),
    row("#>", &[Jsonb, TEXTS], Jsonb, |a, _| Ok(whole(descend(jsonb(&a[0]), &path(&a[1]))))),
    row("#>>", &[Jsonb, TEXTS], Text, |a, _| Ok(written(descend(jsonb(&a[0]), &path(&a[1]))))),
    row("jsonb_extract_path", &[Jsonb, Text], Jsonb, |a, _| {
        Ok(whole(descend(jsonb(&a[0]), &a[1..])))
    })
    .variadic(),
    row("jsonb_extract_path_text", &[Jsonb, Text], Text, |a, _| {
        Ok(written(descend(jsonb(&a[0]), &a[1..])))
    })
    .variadic(),
    row("@>", &[Jsonb, Jsonb], Bool, |a, _| Ok(Datum::Bool(contains(jsonb(&a[0]), jsonb(&a[1]))))),
    row("<@", &[Jsonb, Jsonb], Bool, |a, _| Ok(Datum::Bool(contains(jsonb(&a[1]), jsonb(&a[0]))))),
    row("?", &[Jsonb, Text], Bool, |a, _| Ok(Datum::Bool(has_key(jsonb(&a[0]), text(&a[1]))))),
    row("?|", &[Jsonb, TEXTS], Bool, |a, _| {
        let mut keys = array(&a[1]).elements.iter().filter_map(Datum::as_str);
        Ok(Datum::Bool(keys.any(|key| has_key(jsonb(&a[0]), key))))
    }),
    row("?&", &[Jsonb, TEXTS], Bool, |a, _| {
        let mut keys = array(&a[1]).elements.iter().filter_map(Datum::as_str);
        Ok(Datum::Bool(keys.all(|key| has_key(jsonb(&a[0]), key))))
    }),
    row("json_typeof", &[JsonType], Text, |a, _| {
        Ok(text_datum(match json_parts(json_text(&a[0]))? {
            JsonParts::Object(_) => "object",
            JsonParts::Array(_) => "array",
            JsonParts::String(_) => "string",
            JsonParts::Null => "null",
            JsonParts::Other if json_text(&a[0]).trim_start().starts_with(['t', 'f']) => "boolean",
            JsonParts::Other => "number",
        }))
    }),
    row("jsonb_typeof", &[Jsonb], Text, |a, _| Ok(text_datum(kind(jsonb(&a[0]))))),
    row("json_array_length", &[JsonType], Int4, |a, _| match json_parts(json_text(&a[0]))? {
        JsonParts::Array(elements) => Ok(Datum::Int4(elements.len() as i32)),
        JsonParts::Object(_) => Err(invalid_parameter("cannot get array length of a non-array")),
        _ => Err(invalid_parameter("cannot get array length of a scalar")),
    }),
    row("jsonb_array_length", &[Jsonb], Int4, |a, _| match jsonb(&a[0]) {
        Json::Array(elements) => Ok(Datum::Int4(elements.len() as i32)),
        Json::Object(_) => Err(invalid_parameter("cannot get array length of a non-array")),
        _ => Err(invalid_parameter("cannot get array length of a scalar")),
    }),
];

/// Returns what `jsonb_typeof` says.
pub(super) fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::String(_) => "string",
        Json::Number(_) => "number",
        Json::Bool(_) => "boolean",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn path(datum: &Datum) -> Vec<Datum> {
    array(datum).elements.clone()
}

/// Returns the member that a key or a position names, as it was written.
fn member<'a>(json: &'a str, step: &Datum) -> Result<Option<&'a str>> {
    Ok(match (json_parts(json)?, step) {
        // Of equal keys the last one counts.
        (JsonParts::Object(pairs), Datum::Text(key)) => {
            pairs.into_iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
        }
        (JsonParts::Array(elements), Datum::Int4(index)) => {
            let index = i64::from(*index);
            let index = if index < 0 { index + elements.len() as i64 } else { index };
            usize::try_from(index).ok().and_then(|index| elements.get(index).copied())
        }
        _ => None,
    })
}

fn at_path<'a>(arguments: &'a [Datum], steps: &[Datum]) -> Result<Option<&'a str>> {
    let mut json: &'a str = json_text(&arguments[0]);
    for step in steps {
        let Datum::Text(word) = step else { return Ok(None) };
        let found = match json_parts(json)? {
            JsonParts::Array(_) => match word.parse::<i32>() {
                Ok(index) => member(json, &Datum::Int4(index))?,
                Err(_) => None,
            },
            _ => member(json, step)?,
        };
        match found {
            Some(found) => json = found,
            None => return Ok(None),
        }
    }
    Ok(Some(json))
}

fn raw(json: Option<&str>) -> Datum {
    json.map_or(Datum::Null, |json| json_datum(json.trim().to_owned()))
}

pub(super) fn plain(json: Option<&str>) -> Result<Datum> {
    let Some(json) = json else { return Ok(Datum::Null) };
    Ok(match json_parts(json)? {
        JsonParts::Null => Datum::Null,
        JsonParts::String(text) => Datum::Text(text),
        _ => text_datum(json.trim()),
    })
}

fn child<'a>(json: &'a Json, step: &Datum) -> Option<&'a Json> {
    match step {
        Datum::Text(key) => json.get(key),
        // A scalar is its own only element.
        Datum::Int4(0 | -1) if !json.is_container() => Some(json),
        index => json.element(int4(index).into()),
    }
}

/// Returns what a path leads to.
pub(super) fn descend<'a>(json: &'a Json, steps: &[Datum]) -> Option<&'a Json> {
    steps.iter().try_fold(json, |json, step| {
        let word = step.as_str()?;
        match json {
            Json::Array(_) => json.element(word.parse::<i32>().ok()?.into()),
            other => other.get(word),
        }
    })
}

fn whole(json: Option<&Json>) -> Datum {
    json.map_or(Datum::Null, |json| jsonb_datum(json.clone()))
}

/// Returns a value as text: a string as it is, `null` as NULL.
pub(super) fn written(json: Option<&Json>) -> Datum {
    match json {
        None | Some(Json::Null) => Datum::Null,
        Some(Json::String(text)) => Datum::Text(Arc::clone(text)),
        Some(other) => text_datum(super::json_build::jsonb_text(other)),
    }
}

fn has_key(json: &Json, key: &str) -> bool {
    match json {
        Json::Object(_) => json.get(key).is_some(),
        Json::Array(elements) => {
            elements.iter().any(|one| matches!(one, Json::String(text) if **text == *key))
        }
        Json::String(text) => **text == *key,
        _ => false,
    }
}

/// `@>`: an array at the top contains what stands for itself, too.
fn contains(outer: &Json, inner: &Json) -> bool {
    match (outer, inner) {
        (Json::Array(elements), scalar) if !scalar.is_container() => {
            elements.iter().any(|one| one.compare(scalar).is_eq())
        }
        _ => contains_within(outer, inner),
    }
}

fn contains_within(outer: &Json, inner: &Json) -> bool {
    match (outer, inner) {
        (Json::Object(_), Json::Object(pairs)) => pairs
            .iter()
            .all(|(key, value)| outer.get(key).is_some_and(|found| contains_within(found, value))),
        (Json::Array(elements), Json::Array(wanted)) => {
            wanted.iter().all(|one| elements.iter().any(|found| contains_within(found, one)))
        }
        (outer, inner) => {
            !outer.is_container() && !inner.is_container() && outer.compare(inner).is_eq()
        }
    }
}
