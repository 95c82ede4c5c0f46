//! Rows from JSON: `json_populate_record`, `json_to_record` and related functions.
//!
//! The binder calls ` populate` with a record that describes the fields, the row with the default
//! values, and the JSON; ` populate all` makes an array of the rows of a JSON array.
//!
//! Source: PostgreSQL's `populate_record_field` and related functions (jsonfuncs.c).

use std::sync::Arc;

use super::argument::array_datum;
use super::json_access::{plain, written};
use super::json_build::jsonb_text;
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, AnyElement, Record as RecordType};
use crate::datatype::ElementType;
use crate::datatype::SqlType;
use crate::datum::{Array, Datum, Dimension, Json, Nested, Record};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::modifier;
use crate::text::{self, JsonParts, TextStyle, check_json_escapes, json_parts};

const RECORDS: DataType = DataType::Array(ElementType::BuiltIn(&RecordType));

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] =
    &[
        row(" populate", &[RecordType, RecordType, AnyElement], RecordType, |a, c| {
            match JsonSource::of(&a[2]) {
                None => Ok(a[1].clone()),
                Some(json) => {
                    json.check_escapes(&c.style)?;
                    record(&a[0], &a[1], json, &c.style)
                }
            }
        })
        .takes_null()
        .stable(),
        row(" populate all", &[RecordType, RecordType, AnyElement, AnyElement], RECORDS, all)
            .takes_null()
            .stable(),
    ];

/// A `json` or `jsonb` value.
#[derive(Clone, Copy)]
enum JsonSource<'a> {
    Json(&'a str),
    Jsonb(&'a Json),
}

/// Kind of a JSON value.
enum Kind<'a> {
    Null,
    String,
    Other,
    Array(Vec<JsonSource<'a>>),
    Object,
}

impl<'a> JsonSource<'a> {
    /// Returns the value of an argument; `None` for NULL.
    fn of(datum: &'a Datum) -> Option<JsonSource<'a>> {
        match datum {
            Datum::Nested(Nested::Json(text)) => Some(JsonSource::Json(text)),
            Datum::Nested(Nested::Jsonb(json)) => Some(JsonSource::Jsonb(json)),
            _ => None,
        }
    }

    fn kind(self, style: &TextStyle) -> Result<Kind<'a>> {
        Ok(match self {
            JsonSource::Json(text) => {
                match json_parts(text, &mut InterruptPacer::new(&style.interrupt))? {
                    JsonParts::Null => Kind::Null,
                    JsonParts::String(_) => Kind::String,
                    JsonParts::Other => Kind::Other,
                    JsonParts::Array(all) => {
                        Kind::Array(all.into_iter().map(JsonSource::Json).collect())
                    }
                    JsonParts::Object(_) => Kind::Object,
                }
            }
            JsonSource::Jsonb(json) => match json {
                Json::Null => Kind::Null,
                Json::String(_) => Kind::String,
                Json::Bool(_) | Json::Number(_) => Kind::Other,
                Json::Array(all) => Kind::Array(all.iter().map(JsonSource::Jsonb).collect()),
                Json::Object(_) => Kind::Object,
            },
        })
    }

    fn check_escapes(self, style: &TextStyle) -> Result<()> {
        match self {
            JsonSource::Json(text) => {
                check_json_escapes(text, &mut InterruptPacer::new(&style.interrupt))
            }
            JsonSource::Jsonb(_) => Ok(()),
        }
    }

    /// Returns the values of an object by key; of equal keys the last one wins.
    fn members(self, keys: &[&str], style: &TextStyle) -> Result<Vec<Option<JsonSource<'a>>>> {
        match self {
            JsonSource::Json(text) => {
                let JsonParts::Object(pairs) =
                    json_parts(text, &mut InterruptPacer::new(&style.interrupt))?
                else {
                    return Ok(vec![None; keys.len()]);
                };
                let member = |key: &&str| pairs.iter().rfind(|(name, _)| **name == **key);
                let value = |key| member(key).map(|(_, value)| JsonSource::Json(value));
                Ok(keys.iter().map(value).collect())
            }
            JsonSource::Jsonb(Json::Object(pairs)) => {
                let member = |key: &&str| pairs.iter().find(|(name, _)| **name == **key);
                let value = |key| member(key).map(|(_, value)| JsonSource::Jsonb(value));
                Ok(keys.iter().map(value).collect())
            }
            JsonSource::Jsonb(_) => Ok(vec![None; keys.len()]),
        }
    }

    /// Returns the text of the value, strings without quotes.
    fn plain(self, style: &TextStyle) -> Result<Datum> {
        let mut pace = InterruptPacer::new(&style.interrupt);
        match self {
            JsonSource::Json(text) => plain(Some(text), &mut pace),
            JsonSource::Jsonb(json) => written(Some(json), &mut pace),
        }
    }

    /// Returns the value as JSON text.
    fn json(self, style: &TextStyle) -> Result<String> {
        let mut pace = InterruptPacer::new(&style.interrupt);
        match self {
            JsonSource::Json(text) => pace.copy(text),
            JsonSource::Jsonb(json) => jsonb_text(json, &mut pace),
        }
    }
}

/// Location of a value, for hints.
struct ValueLocation<'a> {
    key: &'a str,
    subscripts: Vec<usize>,
}

fn described(datum: &Datum) -> Result<&Record> {
    match datum {
        Datum::Nested(Nested::Record(record)) => Ok(record),
        _ => bail!(INTERNAL_ERROR: "a record is expected"),
    }
}

/// Returns the row of a JSON object.
fn record(
    description: &Datum,
    base: &Datum,
    json: JsonSource<'_>,
    style: &TextStyle,
) -> Result<Datum> {
    let description = described(description)?;
    let call = |what: &str| invalid_parameter(format!("cannot call populate_composite on {what}"));
    match json.kind(style)? {
        Kind::Object => {}
        Kind::Array(_) => return Err(call("an array")),
        Kind::Null | Kind::String | Kind::Other => return Err(call("a scalar")),
    }
    let keys: Vec<&str> = description.fields.iter().map(|(name, _)| &**name).collect();
    let members = json.members(&keys, style)?;
    let before = match base {
        Datum::Null => vec![Datum::Null; keys.len()],
        base => {
            let base = described(base)?;
            let mut types = base.fields.iter().zip(&*description.fields);
            let fits = |((_, own), (_, wanted)): (&(_, DataType), &(_, DataType))| own == wanted;
            if base.values.len() != keys.len() || !types.all(fits) {
                bail!(DATATYPE_MISMATCH: "function return row and query-specified return row do not match");
            }
            base.values.clone()
        }
    };
    let mut values = Vec::with_capacity(keys.len());
    for (at, (member, before)) in members.into_iter().zip(before).enumerate() {
        let Some(member) = member else {
            values.push(before);
            continue;
        };
        let to = match &description.of {
            Some(of) => of.attributes()[at].sql_type.clone(),
            None => SqlType::from(&description.fields[at].1),
        };
        let mut place = ValueLocation { key: keys[at], subscripts: Vec::new() };
        values.push(value(member, &to, (&before, &mut place), style)?);
    }
    let fields = Arc::clone(&description.fields);
    let made = Record { of: description.of.clone(), fields, values };
    Ok(Datum::Nested(Nested::Record(Arc::new(made))))
}

/// Converts a JSON value to a type; fields of a row that the JSON lacks come from the row
/// `before`.
fn value(
    json: JsonSource<'_>,
    to: &SqlType,
    (before, place): (&Datum, &mut ValueLocation<'_>),
    style: &TextStyle,
) -> Result<Datum> {
    let kind = json.kind(style)?;
    match (&to.base, &kind) {
        (_, Kind::Null) => return Ok(Datum::Null),
        (DataType::Json, _) => return Ok(Datum::Nested(Nested::Json(Arc::new(json.json(style)?)))),
        (DataType::Jsonb, _) => return text::parse(&json.json(style)?, &DataType::Jsonb, style),
        (DataType::Composite(of), Kind::Object | Kind::Array(_) | Kind::Other) => {
            let description = Datum::Nested(Nested::Record(Arc::new(Record::of_type(of, vec![]))));
            return record(&description, before, json, style);
        }
        (DataType::Array(element), Kind::Array(_)) => {
            let mut found = Elements::default();
            let to = &SqlType::new(DataType::clone(element), to.modifier);
            found.add((json, 0), to, place, style)?;
            return found.array();
        }
        (DataType::Array(_), Kind::Object | Kind::Other) => return Err(no_array(place)),
        _ => {}
    }
    let Datum::Text(plain) = json.plain(style)? else { return Ok(Datum::Null) };
    let value = text::parse(&plain, &to.base, style)?;
    if to.modifier < 0 { Ok(value) } else { modifier::apply(value, to, false) }
}

/// The elements of an array during conversion.
#[derive(Default)]
struct Elements {
    values: Vec<Datum>,
    /// Length of each dimension, from its first array.
    lengths: Vec<usize>,
    /// The nesting level of the elements, once it is known.
    deepest: Option<usize>,
}

impl Elements {
    fn add(
        &mut self,
        (json, depth): (JsonSource<'_>, usize),
        to: &SqlType,
        place: &mut ValueLocation<'_>,
        style: &TextStyle,
    ) -> Result<()> {
        let Kind::Array(parts) = json.kind(style)? else { return Err(no_array(place)) };
        match self.lengths.get(depth) {
            Some(length) if *length != parts.len() => return Err(ragged()),
            Some(_) => {}
            None => self.lengths.push(parts.len()),
        }
        for (at, part) in parts.into_iter().enumerate() {
            place.subscripts.push(at);
            let is_array = matches!(part.kind(style)?, Kind::Array(_));
            let goes_deeper = match self.deepest {
                Some(deepest) => depth < deepest,
                None => is_array && !matches!(to.base, DataType::Json | DataType::Jsonb),
            };
            if goes_deeper {
                self.add((part, depth + 1), to, place, style)?;
            } else if is_array && !matches!(to.base, DataType::Json | DataType::Jsonb) {
                return Err(ragged());
            } else {
                self.deepest = Some(depth);
                self.values.push(value(part, to, (&Datum::Null, place), style)?);
            }
            place.subscripts.pop();
        }
        Ok(())
    }

    fn array(self) -> Result<Datum> {
        if self.values.is_empty() {
            return Ok(array_datum(Array::default()));
        }
        let dimension = |length| Dimension { lower: 1, length };
        let dimensions = self.lengths.into_iter().map(dimension).collect();
        Ok(array_datum(Array { dimensions, elements: self.values }))
    }
}

fn no_array(place: &ValueLocation<'_>) -> Error {
    let hint = match place.subscripts.as_slice() {
        [] => format!("See the value of key \"{}\".", place.key),
        some => {
            let subscripts: String = some.iter().map(|one| format!("[{one}]")).collect();
            format!("See the array element {subscripts} of key \"{}\".", place.key)
        }
    };
    err!(INVALID_TEXT_REPRESENTATION: "expected JSON array"; hint hint)
}

fn ragged() -> Error {
    err!(INVALID_TEXT_REPRESENTATION: "malformed JSON array";
        detail "Multidimensional arrays must have sub-arrays with matching dimensions.")
}

/// Returns the rows of an array of objects; the last argument is the name of the called function.
fn all(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let Some(json) = JsonSource::of(&arguments[2]) else { return Ok(Datum::Null) };
    let function = arguments[3].as_str().unwrap_or_default();
    let style = &context.style;
    json.check_escapes(style)?;
    let parts = match (json.kind(style)?, json) {
        (Kind::Array(parts), _) => parts,
        (kind, source) => {
            let what = match (kind, source) {
                (_, JsonSource::Jsonb(_)) => "a non-array",
                (Kind::Object, _) => "an object",
                _ => "a scalar",
            };
            return Err(invalid_parameter(format!("cannot call {function} on {what}")));
        }
    };
    let mut rows = Vec::with_capacity(parts.len());
    for part in parts {
        if !matches!(part.kind(style)?, Kind::Object) {
            let message = format!("argument of {function} must be an array of objects");
            return Err(invalid_parameter(message));
        }
        rows.push(record(&arguments[0], &arguments[1], part, style)?);
    }
    Ok(array_datum(Array::from_elements(rows)))
}
