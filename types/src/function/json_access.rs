//! `json` and `jsonb` access: by key, position and path; containment and existence.

use ahash::AHashSet;

use super::argument::{
    array, int4, json_datum, json_text, jsonb, jsonb_datum, jsonb_form, text, text_datum,
};
use super::strings::invalid_parameter;
use super::{FunctionRow, KernelKind, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, Bool, Int4, Json as JsonType, Text};
use crate::datatype::ElementType;
use crate::datum::stored_json::StoredJson;
use crate::datum::{Datum, Json, Jsonb, Nested};
use crate::error::Result;
use crate::interruptible::InterruptPacer;
use crate::text::{JsonParts, check_json_escapes, json_parts, write_json_tree, write_stored_json};

const TEXTS: DataType = DataType::Array(ElementType::BuiltIn(&Text));

/// Cost of the look-up of a key in steps of a [`InterruptPacer`].
const KEY_STEPS: usize = 32;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("->", &[JsonType, Text], JsonType, |a, c| raw(member(a, &a[1], c)?, c)),
    row("->", &[JsonType, Int4], JsonType, |a, c| raw(member(a, &a[1], c)?, c)),
    row("->>", &[JsonType, Text], Text, |a, c| plain(member(a, &a[1], c)?, &mut c.pace())),
    row("->>", &[JsonType, Int4], Text, |a, c| plain(member(a, &a[1], c)?, &mut c.pace())),
    row("#>", &[JsonType, TEXTS], JsonType, |a, c| raw(at_path(a, &path(&a[1]), c)?, c)),
    row("#>>", &[JsonType, TEXTS], Text, |a, c| plain(at_path(a, &path(&a[1]), c)?, &mut c.pace())),
    row("json_extract_path", &[JsonType, Text], JsonType, |a, c| raw(at_path(a, &a[1..], c)?, c))
        .variadic(),
    row("json_extract_path_text", &[JsonType, Text], Text, |a, c| {
        plain(at_path(a, &a[1..], c)?, &mut c.pace())
    })
    .variadic(),
    row("->", &[DataType::Jsonb, Text], DataType::Jsonb, |a, c| {
        JsonbPart::of(&a[0]).child(&a[1]).whole(c)
    })
    .shaped(KernelKind::Member { as_text: false }),
    row("->", &[DataType::Jsonb, Int4], DataType::Jsonb, |a, c| {
        JsonbPart::of(&a[0]).child(&a[1]).whole(c)
    })
    .shaped(KernelKind::Member { as_text: false }),
    row("->>", &[DataType::Jsonb, Text], Text, |a, c| JsonbPart::of(&a[0]).child(&a[1]).text(c))
        .shaped(KernelKind::Member { as_text: true }),
    row("->>", &[DataType::Jsonb, Int4], Text, |a, c| JsonbPart::of(&a[0]).child(&a[1]).text(c))
        .shaped(KernelKind::Member { as_text: true }),
    row("#>", &[DataType::Jsonb, TEXTS], DataType::Jsonb, |a, c| {
        JsonbPart::of(&a[0]).descend(&path(&a[1])).whole(c)
    }),
    row("#>>", &[DataType::Jsonb, TEXTS], Text, |a, c| {
        JsonbPart::of(&a[0]).descend(&path(&a[1])).text(c)
    }),
    row("jsonb_extract_path", &[DataType::Jsonb, Text], DataType::Jsonb, |a, c| {
        JsonbPart::of(&a[0]).descend(&a[1..]).whole(c)
    })
    .variadic(),
    row("jsonb_extract_path_text", &[DataType::Jsonb, Text], Text, |a, c| {
        JsonbPart::of(&a[0]).descend(&a[1..]).text(c)
    })
    .variadic(),
    row("@>", &[DataType::Jsonb, DataType::Jsonb], Bool, |a, c| contains(&a[0], &a[1], c)),
    row("<@", &[DataType::Jsonb, DataType::Jsonb], Bool, |a, c| contains(&a[1], &a[0], c)),
    row("?", &[DataType::Jsonb, Text], Bool, |a, _| Ok(Datum::Bool(has_key(&a[0], text(&a[1]))))),
    row("?|", &[DataType::Jsonb, TEXTS], Bool, |a, c| has_keys(a, true, c)),
    row("?&", &[DataType::Jsonb, TEXTS], Bool, |a, c| has_keys(a, false, c)),
    row("json_typeof", &[JsonType], Text, |a, c| {
        Ok(text_datum(match json_parts(json_text(&a[0]), &mut c.pace())? {
            JsonParts::Object(_) => "object",
            JsonParts::Array(_) => "array",
            JsonParts::String(_) => "string",
            JsonParts::Null => "null",
            JsonParts::Other if json_text(&a[0]).trim_start().starts_with(['t', 'f']) => "boolean",
            JsonParts::Other => "number",
        }))
    }),
    row("jsonb_typeof", &[DataType::Jsonb], Text, |a, _| Ok(text_datum(kind(jsonb(&a[0]))))),
    row("json_array_length", &[JsonType], Int4, |a, c| {
        match json_parts(json_text(&a[0]), &mut c.pace())? {
            JsonParts::Array(elements) => Ok(Datum::Int4(elements.len() as i32)),
            JsonParts::Object(_) => {
                Err(invalid_parameter("cannot get array length of a non-array"))
            }
            _ => Err(invalid_parameter("cannot get array length of a scalar")),
        }
    }),
    row("jsonb_array_length", &[DataType::Jsonb], Int4, |a, _| match jsonb(&a[0]) {
        Json::Array(elements) => Ok(Datum::Int4(elements.len() as i32)),
        Json::Object(_) => Err(invalid_parameter("cannot get array length of a non-array")),
        _ => Err(invalid_parameter("cannot get array length of a scalar")),
    }),
];

/// Returns the result of `jsonb_typeof`.
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

/// Returns the member with a key or a position, as written.
fn member_of<'a>(
    json: &'a str,
    step: &Datum,
    pace: &mut InterruptPacer<'_>,
) -> Result<Option<&'a str>> {
    Ok(match (json_parts(json, pace)?, step) {
        // Of equal keys the last one wins.
        (JsonParts::Object(pairs), Datum::Text(key)) => {
            pairs.into_iter().rev().find(|(name, _)| **name == **key).map(|(_, value)| value)
        }
        (JsonParts::Array(elements), Datum::Int4(index)) => {
            let index = i64::from(*index);
            let index = if index < 0 { index + elements.len() as i64 } else { index };
            usize::try_from(index).ok().and_then(|index| elements.get(index).copied())
        }
        _ => None,
    })
}

fn member<'a>(
    arguments: &'a [Datum],
    step: &Datum,
    context: &EvalContext,
) -> Result<Option<&'a str>> {
    let (json, pace) = (json_text(&arguments[0]), &mut context.pace());
    check_json_escapes(json, pace)?;
    member_of(json, step, pace)
}

fn at_path<'a>(
    arguments: &'a [Datum],
    steps: &[Datum],
    context: &EvalContext,
) -> Result<Option<&'a str>> {
    let mut json: &'a str = json_text(&arguments[0]);
    let pace = &mut context.pace();
    check_json_escapes(json, pace)?;
    for step in steps {
        let Datum::Text(word) = step else { return Ok(None) };
        let found = match json_parts(json, pace)? {
            JsonParts::Array(_) => match word.parse::<i32>() {
                Ok(index) => member_of(json, &Datum::Int4(index), pace)?,
                Err(_) => None,
            },
            _ => member_of(json, step, pace)?,
        };
        match found {
            Some(found) => json = found,
            None => return Ok(None),
        }
    }
    Ok(Some(json))
}

fn raw(json: Option<&str>, context: &EvalContext) -> Result<Datum> {
    json.map_or(Ok(Datum::Null), |json| context.pace().copy(json.trim()).map(json_datum))
}

pub(super) fn plain(json: Option<&str>, pace: &mut InterruptPacer<'_>) -> Result<Datum> {
    let Some(json) = json else { return Ok(Datum::Null) };
    Ok(match json_parts(json, pace)? {
        JsonParts::Null => Datum::Null,
        JsonParts::String(text) => Datum::Text(text),
        _ => text_datum(pace.copy::<String>(json.trim())?),
    })
}

/// A part of a `jsonb`, in its present form.
#[derive(Clone, Copy)]
enum JsonbPart<'a> {
    Tree(&'a Json),
    Stored(StoredJson<'a>),
    /// The part does not exist.
    Missing,
}

impl<'a> JsonbPart<'a> {
    fn of(datum: &'a Datum) -> JsonbPart<'a> {
        JsonbPart::of_form(jsonb_form(datum))
    }

    fn of_form(jsonb: &'a Jsonb) -> JsonbPart<'a> {
        match jsonb.stored() {
            Some(stored) => JsonbPart::Stored(stored),
            None => JsonbPart::Tree(jsonb),
        }
    }

    fn is_container(self) -> bool {
        match self {
            JsonbPart::Tree(json) => json.is_container(),
            JsonbPart::Stored(stored) => stored.is_container(),
            JsonbPart::Missing => false,
        }
    }

    fn is_array(self) -> bool {
        match self {
            JsonbPart::Tree(json) => matches!(json, Json::Array(_)),
            JsonbPart::Stored(stored) => stored.is_array(),
            JsonbPart::Missing => false,
        }
    }

    fn get(self, key: &str) -> JsonbPart<'a> {
        match self {
            JsonbPart::Tree(json) => json.get(key).map_or(JsonbPart::Missing, JsonbPart::Tree),
            JsonbPart::Stored(stored) => {
                stored.get(key).map_or(JsonbPart::Missing, JsonbPart::Stored)
            }
            JsonbPart::Missing => JsonbPart::Missing,
        }
    }

    fn element(self, index: i64) -> JsonbPart<'a> {
        match self {
            JsonbPart::Tree(json) => {
                json.element(index).map_or(JsonbPart::Missing, JsonbPart::Tree)
            }
            JsonbPart::Stored(stored) => {
                stored.element(index).map_or(JsonbPart::Missing, JsonbPart::Stored)
            }
            JsonbPart::Missing => JsonbPart::Missing,
        }
    }

    fn child(self, step: &Datum) -> JsonbPart<'a> {
        match step {
            Datum::Text(key) => self.get(key),
            // A scalar is treated as an array of one element.
            Datum::Int4(0 | -1) if !self.is_container() => self,
            index => self.element(int4(index).into()),
        }
    }

    fn descend(self, steps: &[Datum]) -> JsonbPart<'a> {
        let step = |part: JsonbPart<'a>, step: &Datum| {
            let word = step.as_str()?;
            Some(match part.is_array() {
                true => part.element(word.parse::<i32>().ok()?.into()),
                false => part.get(word),
            })
        };
        steps.iter().try_fold(self, step).unwrap_or(JsonbPart::Missing)
    }

    fn whole(self, context: &EvalContext) -> Result<Datum> {
        match self {
            JsonbPart::Tree(json) => json.copy(&mut context.pace()).map(jsonb_datum),
            JsonbPart::Stored(stored) => Ok(Datum::Nested(Nested::Jsonb(stored.into()))),
            JsonbPart::Missing => Ok(Datum::Null),
        }
    }

    fn text(self, context: &EvalContext) -> Result<Datum> {
        let (mut out, mut pace) = (Vec::new(), context.pace());
        match self {
            JsonbPart::Tree(json) => written(Some(json), &mut pace),
            part if part.write(&mut out, &mut pace)? => pace.text(out).map(text_datum),
            _ => Ok(Datum::Null),
        }
    }

    /// Appends the part as text; for NULL returns `false` and appends nothing.
    fn write(self, out: &mut Vec<u8>, pace: &mut InterruptPacer<'_>) -> Result<bool> {
        match self {
            JsonbPart::Missing | JsonbPart::Tree(Json::Null) => return Ok(false),
            JsonbPart::Tree(Json::String(text)) => pace.append(out, text.as_bytes())?,
            JsonbPart::Tree(json) => write_json_tree(json, pace, out)?,
            JsonbPart::Stored(stored) => {
                if let Some(text) = stored.as_text() {
                    pace.append(out, text)?;
                } else if stored.is_null() {
                    return Ok(false);
                } else {
                    write_stored_json(stored, pace, out)?;
                }
            }
        }
        Ok(true)
    }
}

/// Appends the text of a chain of `->` and a final `->>` on a `jsonb`; returns `false` for NULL.
pub(crate) fn write_member<'a>(
    value: &Nested,
    steps: impl Iterator<Item = &'a Datum>,
    out: &mut Vec<u8>,
    pace: &mut InterruptPacer<'_>,
) -> Result<bool> {
    let Nested::Jsonb(jsonb) = value else { return Ok(false) };
    steps.fold(JsonbPart::of_form(jsonb), |part, step| part.child(step)).write(out, pace)
}

/// Returns the result of a chain of `->` on a `jsonb`; `None` for NULL.
pub(crate) fn member_at<'a>(
    value: &Nested,
    steps: impl Iterator<Item = &'a Datum>,
    context: &EvalContext,
) -> Result<Option<Nested>> {
    let Nested::Jsonb(jsonb) = value else { return Ok(None) };
    let part = steps.fold(JsonbPart::of_form(jsonb), |part, step| part.child(step));
    Ok(match part.whole(context)? {
        Datum::Nested(member) => Some(member),
        _ => None,
    })
}

/// Returns a value as text: strings without quotes, `null` as NULL.
pub(super) fn written(json: Option<&Json>, pace: &mut InterruptPacer<'_>) -> Result<Datum> {
    match json {
        None | Some(Json::Null) => Ok(Datum::Null),
        Some(Json::String(text)) => Ok(Datum::Text(text.clone())),
        Some(other) => super::json_build::jsonb_text(other, pace).map(text_datum),
    }
}

/// Computes `?|` and `?&`: returns `decisive` if the look-up of any key has this result,
/// otherwise its negation.
fn has_keys(arguments: &[Datum], decisive: bool, context: &EvalContext) -> Result<Datum> {
    let (json, mut pace) = (&arguments[0], context.pace());
    let keys = array(&arguments[1]).elements.iter().filter_map(Datum::as_str);
    // An array is searched once for all keys; an object has sorted keys.
    let strings: Option<AHashSet<&str>> = match JsonbPart::of(json) {
        JsonbPart::Stored(stored) if stored.is_object() => None,
        _ => match jsonb(json) {
            Json::Array(elements) => {
                pace.count_steps(elements.len() * KEY_STEPS)?;
                Some(elements.iter().filter_map(json_string).collect())
            }
            _ => None,
        },
    };
    for key in keys {
        pace.count_steps(KEY_STEPS)?;
        let is_found = match &strings {
            Some(strings) => strings.contains(key),
            None => has_key(json, key),
        };
        if is_found == decisive {
            return Ok(Datum::Bool(decisive));
        }
    }
    Ok(Datum::Bool(!decisive))
}

fn json_string(json: &Json) -> Option<&str> {
    match json {
        Json::String(text) => Some(text),
        _ => None,
    }
}

fn has_key(json: &Datum, key: &str) -> bool {
    match JsonbPart::of(json) {
        JsonbPart::Stored(stored) if stored.is_object() => stored.get(key).is_some(),
        _ => match jsonb(json) {
            object @ Json::Object(_) => object.get(key).is_some(),
            Json::Array(elements) => {
                elements.iter().any(|one| matches!(one, Json::String(text) if **text == *key))
            }
            Json::String(text) => **text == *key,
            _ => false,
        },
    }
}

/// Computes `@>`: at the top level an array also contains a scalar.
fn contains(outer: &Datum, inner: &Datum, context: &EvalContext) -> Result<Datum> {
    let pace = &mut context.pace();
    let found = match (JsonbPart::of(outer), jsonb(inner)) {
        (JsonbPart::Stored(outer), Json::Object(pairs)) if outer.is_object() => {
            // Only the members of the inner object are read.
            let lacks = any(pairs, |(key, value)| match outer.get(key) {
                Some(found) => Ok(!stored_contains(found, value, pace)?),
                None => Ok(true),
            });
            lacks.map(|lacks| !lacks)
        }
        (_, inner) => match jsonb(outer) {
            Json::Array(elements) if !inner.is_container() => {
                any(elements, |one| Ok(one.compare_at(inner, pace)?.is_eq()))
            }
            outer => contains_within(outer, inner, pace),
        },
    };
    found.map(Datum::Bool)
}

/// Computes `@>` within a value; decodes only the parts that it needs as a tree.
fn stored_contains(
    outer: StoredJson<'_>,
    inner: &Json,
    pace: &mut InterruptPacer<'_>,
) -> Result<bool> {
    match inner {
        Json::String(text) => Ok(outer.as_text() == Some(text.as_bytes())),
        Json::Number(number) => Ok(outer.as_number().is_some_and(|found| found == *number)),
        inner => contains_within(&outer.tree(), inner, pace),
    }
}

/// Returns whether `test` is true for an item.
fn any<T>(items: &[T], mut test: impl FnMut(&T) -> Result<bool>) -> Result<bool> {
    for item in items {
        if test(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains_within(outer: &Json, inner: &Json, pace: &mut InterruptPacer<'_>) -> Result<bool> {
    pace.count_steps(size_of::<Json>())?;
    match (outer, inner) {
        (Json::Object(_), Json::Object(pairs)) => {
            let lacks = any(pairs, |(key, value)| match outer.get(key) {
                Some(found) => Ok(!contains_within(found, value, pace)?),
                None => Ok(true),
            });
            Ok(!lacks?)
        }
        (Json::Array(elements), Json::Array(wanted)) => {
            let lacks =
                any(wanted, |one| Ok(!any(elements, |found| contains_within(found, one, pace))?));
            Ok(!lacks?)
        }
        (outer, inner) => Ok(!outer.is_container()
            && !inner.is_container()
            && outer.compare_at(inner, pace)?.is_eq()),
    }
}
