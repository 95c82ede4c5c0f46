//! Construction of `json` and `jsonb` from values, and formatting functions.
//!
//! The binder converts the arguments of the `…_build_…` functions, which have any type, with
//! `to_json` or `to_jsonb`.

use std::sync::Arc;

use super::argument::{array, grown_jsonb, json_datum, json_text, jsonb, jsonb_datum, text_datum};
use super::records::{jsonb_of_record, labelled};
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, AnyArray, AnyElement, Bool, Json as JsonType, Jsonb, Text};
use crate::datatype::ElementType;
use crate::datetime;
use crate::datum::{Array, Datum, Dimension, Json, Nested, Record};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::text::{self, JsonParts, check_json_escapes, json_parts, write_json_string};

const TEXTS: DataType = DataType::Array(ElementType::BuiltIn(&Text));

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("to_json", &[AnyElement], JsonType, |a, c| to_json(&a[0], "", c)).stable(),
    row("to_jsonb", &[AnyElement], Jsonb, |a, c| to_jsonb(&a[0], c).and_then(grown_jsonb)).stable(),
    row("array_to_json", &[AnyArray], JsonType, |a, c| to_json(&a[0], "", c)).stable(),
    row("array_to_json", &[AnyArray, Bool], JsonType, |a, c| {
        let line = if a[1].as_bool() == Some(true) { "\n " } else { "" };
        to_json(&a[0], line, c)
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
    row("json_object", &[TEXTS], JsonType, |a, c| text_object(&pairs_of(array(&a[0]))?, c)),
    row("json_object", &[TEXTS, TEXTS], JsonType, |a, c| text_object(&zipped(a)?, c)),
    row("jsonb_object", &[TEXTS], Jsonb, |a, c| jsonb_object(&pairs_of(array(&a[0]))?, c)),
    row("jsonb_object", &[TEXTS, TEXTS], Jsonb, |a, c| jsonb_object(&zipped(a)?, c)),
    row("json_strip_nulls", &[JsonType], JsonType, |a, c| {
        let (mut out, mut pace) = (Vec::new(), c.pace());
        check_json_escapes(json_text(&a[0]), &mut pace)?;
        strip_text(json_text(&a[0]), &mut pace, &mut out)?;
        pace.text(out).map(json_datum)
    }),
    row("jsonb_strip_nulls", &[Jsonb], Jsonb, |a, c| {
        stripped(jsonb(&a[0]), &mut c.pace()).map(jsonb_datum)
    }),
    row("jsonb_pretty", &[Jsonb], Text, |a, c| {
        let (mut out, mut pace) = (Vec::new(), c.pace());
        pretty(jsonb(&a[0]), 0, &mut pace, &mut out)?;
        pace.text(out).map(text_datum)
    }),
];

/// Returns the text of a `jsonb`.
pub(super) fn jsonb_text(json: &Json, pace: &mut InterruptPacer<'_>) -> Result<String> {
    let mut out = Vec::new();
    text::write_json_tree(json, pace, &mut out)?;
    pace.text(out)
}

/// Returns the text of a value in a JSON string: dates and times are in ISO 8601 format.
fn string_of(value: &Datum, context: &EvalContext) -> Result<String> {
    let mut style = context.style.clone();
    style.formats.style.date = datetime::DateStyle::Iso;
    let mut out = Vec::new();
    text::write(value, &DataType::Unknown, &style, &mut out)?;
    let mut written = context.pace().text(out)?;
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
    Ok(written)
}

/// Returns the text of a value that is a number or boolean in JSON; `None` for others.
fn bare(value: &Datum, context: &EvalContext) -> Result<Option<String>> {
    Ok(match value {
        Datum::Bool(value) => Some(value.to_string()),
        Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Int8(_)
        | Datum::Float4(_)
        | Datum::Float8(_)
        | Datum::Numeric(_) => {
            let text = string_of(value, context)?;
            (!text.contains(['N', 'I'])).then_some(text)
        }
        _ => None,
    })
}

/// Writer of values as JSON.
struct Writer<'a> {
    context: &'a EvalContext,
    pace: InterruptPacer<'a>,
    out: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(context: &'a EvalContext) -> Writer<'a> {
        Writer { context, pace: context.pace(), out: Vec::new() }
    }

    fn text(mut self) -> Result<String> {
        self.pace.text(self.out)
    }

    fn put(&mut self, text: &str) -> Result<()> {
        self.pace.append(&mut self.out, text.as_bytes())
    }

    /// Writes a value; `line` separates the elements of an array.
    fn value(&mut self, value: &Datum, line: &str) -> Result<()> {
        self.pace.step(&mut self.out, 1)?;
        match value {
            Datum::Null => self.put("null"),
            Datum::Nested(Nested::Json(text)) => self.put(text),
            Datum::Nested(Nested::Jsonb(json)) => {
                text::write_jsonb(json, &mut self.pace, &mut self.out)
            }
            Datum::Nested(Nested::Array(array)) => {
                self.array(&array.dimensions, &mut array.elements.iter(), line)
            }
            Datum::Nested(Nested::Record(record)) => self.record(record, ""),
            other => match bare(other, self.context)? {
                Some(bare) => self.put(&bare),
                None => self.string(&string_of(other, self.context)?),
            },
        }
    }

    fn string(&mut self, text: &str) -> Result<()> {
        write_json_string(text, &mut self.pace, &mut self.out)
    }

    fn array(
        &mut self,
        dimensions: &[Dimension],
        elements: &mut std::slice::Iter<'_, Datum>,
        line: &str,
    ) -> Result<()> {
        let Some((outer, inner)) = dimensions.split_first() else { return self.put("[]") };
        self.put("[")?;
        for index in 0..outer.length {
            if index > 0 {
                self.put(",")?;
                self.put(line)?;
            }
            match inner {
                [] => self.value(elements.next().unwrap_or(&Datum::Null), "")?,
                _ => self.array(inner, elements, "")?,
            }
        }
        self.put("]")
    }

    fn record(&mut self, record: &Record, line: &str) -> Result<()> {
        self.put("{")?;
        for (index, (value, (name, data_type))) in
            record.values.iter().zip(record.fields.iter()).enumerate()
        {
            if index > 0 {
                self.put(",")?;
                self.put(line)?;
            }
            self.string(name)?;
            self.put(":")?;
            self.value(&*labelled(value, data_type, self.context)?, "")?;
        }
        self.put("}")
    }
}

fn to_json(value: &Datum, line: &str, context: &EvalContext) -> Result<Datum> {
    let mut writer = Writer::new(context);
    writer.value(value, line)?;
    writer.text().map(json_datum)
}

/// Returns a record as the text of a JSON object; `line` separates its fields.
pub(super) fn json_of_record(record: &Record, line: &str, context: &EvalContext) -> Result<String> {
    let mut writer = Writer::new(context);
    writer.record(record, line)?;
    writer.text()
}

/// Returns the JSON text of a value, as `to_json` makes it.
///
/// # Errors
///
/// `57014` if the interrupt flag is set during a long conversion.
pub(crate) fn json_of(value: &Datum, context: &EvalContext) -> Result<String> {
    let mut writer = Writer::new(context);
    writer.value(value, "")?;
    writer.text()
}

/// Returns the `jsonb` of a value, as `to_jsonb` makes it.
///
/// # Errors
///
/// 54001 if it is nested too deeply.
pub(crate) fn jsonb_of(value: &Datum, context: &EvalContext) -> Result<Json> {
    to_jsonb(value, context)
}

/// Returns a value as the key of an object, which is text; NULL for NULL.
///
/// # Errors
///
/// 22023 for arrays, JSON and records.
pub(crate) fn json_key(value: &Datum, context: &EvalContext) -> Result<Datum> {
    match value {
        Datum::Null => Ok(Datum::Null),
        Datum::Nested(
            Nested::Array(_) | Nested::Json(_) | Nested::Jsonb(_) | Nested::Record(_),
        ) => Err(no_scalar()),
        value => Ok(Datum::text(match bare(value, context)? {
            Some(bare) => bare,
            None => string_of(value, context)?,
        })),
    }
}

fn to_jsonb(value: &Datum, context: &EvalContext) -> Result<Json> {
    Ok(match value {
        Datum::Null => Json::Null,
        Datum::Bool(value) => Json::Bool(*value),
        Datum::Nested(Nested::Jsonb(json)) => json.copy(&mut context.pace())?,
        Datum::Nested(Nested::Json(text)) => match text::parse(text, &Jsonb, &context.style)? {
            Datum::Nested(Nested::Jsonb(json)) => json.into_json(),
            _ => Json::Null,
        },
        Datum::Nested(Nested::Array(array)) => {
            let mut elements = array.elements.iter();
            array_jsonb(&array.dimensions, &mut elements, context)?
        }
        Datum::Nested(Nested::Record(record)) => jsonb_of_record(record, context)?,
        other => match bare(other, context)? {
            Some(number) => Json::Number(crate::numeric::Numeric::parse(&number)?),
            None => Json::String(string_of(other, context)?.into()),
        },
    })
}

fn array_jsonb(
    dimensions: &[Dimension],
    elements: &mut std::slice::Iter<'_, Datum>,
    context: &EvalContext,
) -> Result<Json> {
    let Some((outer, inner)) = dimensions.split_first() else { return Ok(Json::Array(Vec::new())) };
    let mut parts = Vec::with_capacity(outer.length);
    let mut pace = context.pace();
    for _ in 0..outer.length {
        pace.count_steps(size_of::<Json>())?;
        parts.push(match inner {
            [] => to_jsonb(elements.next().unwrap_or(&Datum::Null), context)?,
            _ => array_jsonb(inner, elements, context)?,
        });
    }
    Ok(Json::Array(parts))
}

/// Returns the JSON text of an argument, `null` for NULL.
fn part(datum: &Datum) -> &str {
    match datum {
        Datum::Null => "null",
        other => json_text(other),
    }
}

fn or_null(datum: &Datum, pace: &mut InterruptPacer<'_>) -> Result<Json> {
    match datum {
        Datum::Null => Ok(Json::Null),
        other => jsonb(other).copy(pace),
    }
}

pub(super) fn build_array(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let mut writer = Writer::new(context);
    writer.put("[")?;
    for (index, argument) in arguments.iter().enumerate() {
        writer.put(if index > 0 { ", " } else { "" })?;
        writer.put(part(argument))?;
    }
    writer.put("]")?;
    writer.text().map(json_datum)
}

pub(super) fn build_jsonb_array(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let pace = &mut context.pace();
    let elements = arguments.iter().map(|argument| or_null(argument, pace));
    grown_jsonb(Json::Array(elements.collect::<Result<_>>()?))
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

pub(super) fn build_object(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    check_even(arguments, "json_build_object()")?;
    let mut writer = Writer::new(context);
    writer.put("{")?;
    for (index, pair) in arguments.chunks_exact(2).enumerate() {
        if pair[0].is_null() {
            return Err(null_key(index));
        }
        writer.put(if index > 0 { ", " } else { "" })?;
        match json_parts(json_text(&pair[0]), &mut context.pace())? {
            JsonParts::String(text) => writer.string(&text)?,
            JsonParts::Other => writer.string(json_text(&pair[0]))?,
            _ => return Err(no_scalar()),
        }
        writer.put(" : ")?;
        writer.put(part(&pair[1]))?;
    }
    writer.put("}")?;
    writer.text().map(json_datum)
}

pub(super) fn build_jsonb_object(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    check_even(arguments, "jsonb_build_object()")?;
    let mut pairs = Vec::with_capacity(arguments.len() / 2);
    let pace = &mut context.pace();
    for (index, pair) in arguments.chunks_exact(2).enumerate() {
        if pair[0].is_null() {
            let message = format!("argument {}: key must not be null", index * 2 + 1);
            return Err(invalid_parameter(message));
        }
        let key: Arc<str> = match jsonb(&pair[0]) {
            Json::String(text) => text.clone().into(),
            scalar if !scalar.is_container() => jsonb_text(scalar, pace)?.into(),
            _ => return Err(no_scalar()),
        };
        pairs.push((key, or_null(&pair[1], pace)?));
    }
    grown_jsonb(Json::object_at(pairs, pace)?)
}

type TextPairs<'a> = Vec<(&'a str, Option<&'a str>)>;

fn subscript_error(message: &str) -> Error {
    err!(ARRAY_SUBSCRIPT_ERROR: message)
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
        None => bail!(NULL_VALUE_NOT_ALLOWED: "null value not allowed for object key"),
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

fn text_object(pairs: &TextPairs<'_>, context: &EvalContext) -> Result<Datum> {
    let mut writer = Writer::new(context);
    writer.put("{")?;
    for (index, (key, value)) in pairs.iter().enumerate() {
        writer.put(if index > 0 { ", " } else { "" })?;
        writer.string(key)?;
        writer.put(" : ")?;
        match value {
            Some(value) => writer.string(value)?,
            None => writer.put("null")?,
        }
    }
    writer.put("}")?;
    writer.text().map(json_datum)
}

fn jsonb_object(pairs: &TextPairs<'_>, context: &EvalContext) -> Result<Datum> {
    let (mut members, mut pace) = (Vec::with_capacity(pairs.len()), context.pace());
    for (key, value) in pairs {
        let value = value.map(|value| pace.copy::<String>(value)).transpose()?;
        let value = value.map_or(Json::Null, |value| Json::String(value.into()));
        pace.push(&mut members, (Arc::from(*key), value))?;
    }
    Json::object_at(members, &mut pace).map(jsonb_datum)
}

/// Writes a `json` without null fields of objects and without blanks.
fn strip_text(json: &str, pace: &mut InterruptPacer<'_>, out: &mut Vec<u8>) -> Result<()> {
    pace.step(out, 1)?;
    match json_parts(json, pace)? {
        JsonParts::Object(pairs) => {
            out.push(b'{');
            let mut first = true;
            for (key, value) in pairs {
                if matches!(json_parts(value, pace)?, JsonParts::Null) {
                    continue;
                }
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                write_json_string(&key, pace, out)?;
                out.push(b':');
                strip_text(value, pace, out)?;
            }
            out.push(b'}');
        }
        JsonParts::Array(elements) => {
            out.push(b'[');
            for (index, element) in elements.into_iter().enumerate() {
                out.extend_from_slice(if index > 0 { b"," } else { b"" });
                strip_text(element, pace, out)?;
            }
            out.push(b']');
        }
        JsonParts::String(text) => write_json_string(&text, pace, out)?,
        JsonParts::Null | JsonParts::Other => pace.append(out, json.trim().as_bytes())?,
    }
    Ok(())
}

fn stripped(json: &Json, pace: &mut InterruptPacer<'_>) -> Result<Json> {
    pace.count_steps(size_of::<Json>())?;
    Ok(match json {
        Json::Object(pairs) => {
            let kept = pairs.iter().filter(|(_, value)| *value != Json::Null);
            let kept = kept.map(|(key, value)| Ok((Arc::clone(key), stripped(value, pace)?)));
            Json::Object(kept.collect::<Result<_>>()?)
        }
        Json::Array(elements) => {
            let kept = elements.iter().map(|element| stripped(element, pace));
            Json::Array(kept.collect::<Result<_>>()?)
        }
        scalar => scalar.clone(),
    })
}

fn pretty(
    json: &Json,
    depth: usize,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    fn indent(depth: usize, pace: &mut InterruptPacer<'_>, out: &mut Vec<u8>) -> Result<()> {
        out.push(b'\n');
        (0..depth).try_for_each(|_| pace.append(out, &b"    "[..]))
    }
    match json {
        Json::Object(pairs) => {
            out.push(b'{');
            for (index, (key, value)) in pairs.iter().enumerate() {
                out.extend_from_slice(if index > 0 { b"," } else { b"" });
                indent(depth + 1, pace, out)?;
                write_json_string(key, pace, out)?;
                out.extend_from_slice(b": ");
                pretty(value, depth + 1, pace, out)?;
            }
            indent(depth, pace, out)?;
            out.push(b'}');
        }
        Json::Array(elements) => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                out.extend_from_slice(if index > 0 { b"," } else { b"" });
                indent(depth + 1, pace, out)?;
                pretty(element, depth + 1, pace, out)?;
            }
            indent(depth, pace, out)?;
            out.push(b']');
        }
        scalar => text::write_json_tree(scalar, pace, out)?,
    }
    Ok(())
}
