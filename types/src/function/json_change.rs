//! Modification of `jsonb`: concatenation, deletion, replacement and insertion.

use ahash::AHashSet;

use super::argument::{array, grown_jsonb, int4, jsonb, jsonb_datum, text};
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, Bool, Int4, Jsonb, Text};
use crate::datatype::ElementType;
use crate::datum::{Datum, Json};
use crate::error::{Error, Result};

/// Cost of an item of a document in steps of a
/// [`InterruptPacer`](crate::interruptible::InterruptPacer).
const ITEM_STEPS: usize = 32;

const TEXTS: DataType = DataType::Array(ElementType::BuiltIn(&Text));

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("||", &[Jsonb, Jsonb], Jsonb, |a, _| grown_jsonb(joined(jsonb(&a[0]), jsonb(&a[1])))),
    row("-", &[Jsonb, Text], Jsonb, |a, c| without_keys(jsonb(&a[0]), &[text(&a[1])], c)),
    row("-", &[Jsonb, TEXTS], Jsonb, |a, c| {
        check_list(&a[1])?;
        let keys: Vec<&str> = array(&a[1]).elements.iter().filter_map(Datum::as_str).collect();
        without_keys(jsonb(&a[0]), &keys, c)
    }),
    row("-", &[Jsonb, Int4], Jsonb, without_element),
    row("#-", &[Jsonb, TEXTS], Jsonb, without_path),
    row("jsonb_set", &[Jsonb, TEXTS, Jsonb], Jsonb, |a, _| set(a, true)),
    row("jsonb_set", &[Jsonb, TEXTS, Jsonb, Bool], Jsonb, |a, _| {
        set(a, a[3].as_bool() == Some(true))
    })
    .named(&["jsonb_in", "path", "replacement", "create_if_missing"]),
    row("jsonb_set_lax", &[Jsonb, TEXTS, Jsonb], Jsonb, set_lax).takes_null(),
    row("jsonb_set_lax", &[Jsonb, TEXTS, Jsonb, Bool], Jsonb, set_lax).takes_null(),
    row("jsonb_set_lax", &[Jsonb, TEXTS, Jsonb, Bool, Text], Jsonb, set_lax).takes_null().named(&[
        "jsonb_in",
        "path",
        "replacement",
        "create_if_missing",
        "null_value_treatment",
    ]),
    row("jsonb_insert", &[Jsonb, TEXTS, Jsonb], Jsonb, |a, _| insert(a, false)),
    row("jsonb_insert", &[Jsonb, TEXTS, Jsonb, Bool], Jsonb, |a, _| {
        insert(a, a[3].as_bool() == Some(true))
    })
    .named(&["jsonb_in", "path", "replacement", "insert_after"]),
];

/// Concatenates two objects, where the second one's keys win, or two arrays. A value that is not
/// an array is treated as an array of one element.
fn joined(left: &Json, right: &Json) -> Json {
    if let (Json::Object(left), Json::Object(right)) = (left, right) {
        return Json::object(left.iter().chain(right).cloned().collect());
    }
    let elements = |json: &Json| match json {
        Json::Array(elements) => elements.clone(),
        other => vec![other.clone()],
    };
    let mut all = elements(left);
    all.extend(elements(right));
    Json::Array(all)
}

fn without_keys(json: &Json, keys: &[&str], context: &EvalContext) -> Result<Datum> {
    let mut pace = context.pace();
    pace.count_steps(keys.len() * ITEM_STEPS)?;
    let keys: AHashSet<&str> = keys.iter().copied().collect();
    Ok(jsonb_datum(match json {
        Json::Object(pairs) => {
            let mut remaining = Vec::new();
            for pair in pairs {
                pace.count_steps(ITEM_STEPS)?;
                if !keys.contains(&*pair.0) {
                    remaining.push(pair.clone());
                }
            }
            Json::Object(remaining)
        }
        Json::Array(elements) => {
            let mut remaining = Vec::new();
            for element in elements {
                pace.count_steps(ITEM_STEPS)?;
                if !matches!(element, Json::String(text) if keys.contains(&**text)) {
                    remaining.push(element.clone());
                }
            }
            Json::Array(remaining)
        }
        _ => return Err(invalid_parameter("cannot delete from scalar")),
    }))
}

fn without_element(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    match jsonb(&arguments[0]) {
        Json::Array(elements) => {
            let mut elements = elements.clone();
            if let Some(at) = place(int4(&arguments[1]).into(), elements.len()) {
                elements.remove(at);
            }
            Ok(jsonb_datum(Json::Array(elements)))
        }
        Json::Object(_) => Err(invalid_parameter("cannot delete from object using integer index")),
        _ => Err(invalid_parameter("cannot delete from scalar")),
    }
}

/// Returns the position of an index that may count from the end.
fn place(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 { index + length as i64 } else { index };
    usize::try_from(index).ok().filter(|index| *index < length)
}

/// Rejects arrays of several dimensions.
fn check_list(datum: &Datum) -> Result<()> {
    match array(datum).dimensions.len() {
        0 | 1 => Ok(()),
        _ => bail!(ARRAY_SUBSCRIPT_ERROR: "wrong number of array subscripts"),
    }
}

/// Returns the steps of a path; NULL steps are an error only if they are reached.
fn steps(datum: &Datum) -> Vec<Option<&str>> {
    array(datum).elements.iter().map(Datum::as_str).collect()
}

fn without_path(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let json = jsonb(&arguments[0]);
    check_list(&arguments[1])?;
    if !json.is_container() {
        return Err(invalid_parameter("cannot delete path in scalar"));
    }
    let steps = steps(&arguments[1]);
    if steps.is_empty() || is_empty(json) {
        return Ok(arguments[0].clone());
    }
    change(json, &steps, 0, &mut |_| Ok(Change::Remove)).map(jsonb_datum)
}

/// The change at the end of a path.
enum Change {
    Remove,
    Put(Json),
    /// Inserts next to the existing element of an array.
    Before(Json),
    After(Json),
    Keep,
}

/// The target at the end of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathTarget {
    /// An existing value, in an array or in an object.
    Element,
    Field,
    /// A new field, or an element before or after all others.
    NewField,
    NewElement,
}

/// Returns a value with a change at the end of a path; unchanged if the path does not exist.
fn change(
    json: &Json,
    steps: &[Option<&str>],
    depth: usize,
    decide: &mut dyn FnMut(PathTarget) -> Result<Change>,
) -> Result<Json> {
    if !json.is_container() {
        return Ok(json.clone());
    }
    let Some(step) = steps[depth] else {
        bail!(NULL_VALUE_NOT_ALLOWED: "path element at position {} is null", depth + 1);
    };
    let last = depth + 1 == steps.len();
    match json {
        Json::Object(pairs) => {
            let found = pairs.iter().position(|(name, _)| **name == *step);
            let mut pairs = pairs.clone();
            match found {
                Some(at) if !last => {
                    pairs[at].1 = change(&pairs[at].1, steps, depth + 1, decide)?;
                }
                Some(at) => match decide(PathTarget::Field)? {
                    Change::Remove => drop(pairs.remove(at)),
                    Change::Put(value) => pairs[at].1 = value,
                    _ => {}
                },
                None if last => {
                    if let Change::Put(value) = decide(PathTarget::NewField)? {
                        pairs.push((step.into(), value));
                        return Ok(Json::object(pairs));
                    }
                }
                None => {}
            }
            Ok(Json::Object(pairs))
        }
        Json::Array(elements) => {
            let Ok(index) = step.trim_start().parse::<i32>() else {
                bail!(INVALID_TEXT_REPRESENTATION: "path element at position {} is not an integer: \"{step}\"", depth + 1);
            };
            let mut elements = elements.clone();
            match place(index.into(), elements.len()) {
                Some(at) if !last => {
                    elements[at] = change(&elements[at], steps, depth + 1, decide)?;
                }
                Some(at) => match decide(PathTarget::Element)? {
                    Change::Remove => drop(elements.remove(at)),
                    Change::Put(value) => elements[at] = value,
                    Change::Before(value) => elements.insert(at, value),
                    Change::After(value) => elements.insert(at + 1, value),
                    Change::Keep => {}
                },
                None if last => {
                    let behind = index >= 0;
                    if let Change::Put(value) = decide(PathTarget::NewElement)? {
                        elements.insert(if behind { elements.len() } else { 0 }, value);
                    }
                }
                None => {}
            }
            Ok(Json::Array(elements))
        }
        scalar => Ok(scalar.clone()),
    }
}

fn is_empty(json: &Json) -> bool {
    match json {
        Json::Object(pairs) => pairs.is_empty(),
        Json::Array(elements) => elements.is_empty(),
        _ => false,
    }
}

fn set(arguments: &[Datum], create: bool) -> Result<Datum> {
    let json = jsonb(&arguments[0]);
    check_list(&arguments[1])?;
    if !json.is_container() {
        return Err(invalid_parameter("cannot set path in scalar"));
    }
    let steps = steps(&arguments[1]);
    if steps.is_empty() || is_empty(json) && !create {
        return Ok(arguments[0].clone());
    }
    let value = jsonb(&arguments[2]);
    let decide = &mut |place| {
        let there = matches!(place, PathTarget::Element | PathTarget::Field);
        Ok(if there || create { Change::Put(value.clone()) } else { Change::Keep })
    };
    change(json, &steps, 0, decide).and_then(grown_jsonb)
}

/// As `jsonb_set`, with the treatment of NULL as an argument.
fn set_lax(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let create = arguments.get(3).map_or(Some(true), Datum::as_bool);
    let (false, false, Some(create)) = (arguments[0].is_null(), arguments[1].is_null(), create)
    else {
        return Ok(Datum::Null);
    };
    let treatment = arguments.get(4).map_or(Some("use_json_null"), Datum::as_str);
    if treatment.is_some() && !arguments[2].is_null() {
        return set(&arguments[..3], create);
    }
    let (target, path) = (arguments[0].clone(), arguments[1].clone());
    match treatment {
        Some("use_json_null") => set(&[target, path, jsonb_datum(Json::Null)], create),
        Some("delete_key") => without_path(&arguments[..2], context),
        Some("return_target") => Ok(target),
        Some("raise_exception") => bail!(NULL_VALUE_NOT_ALLOWED: "JSON value must not be null";
            detail "Exception was raised because null_value_treatment is \"raise_exception\".";
            hint "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed."),
        _ => Err(invalid_parameter(
            "null_value_treatment must be \"delete_key\", \"return_target\", \
             \"use_json_null\", or \"raise_exception\"",
        )),
    }
}

fn insert(arguments: &[Datum], after: bool) -> Result<Datum> {
    let json = jsonb(&arguments[0]);
    check_list(&arguments[1])?;
    if !json.is_container() {
        return Err(invalid_parameter("cannot set path in scalar"));
    }
    let steps = steps(&arguments[1]);
    if steps.is_empty() {
        return Ok(arguments[0].clone());
    }
    let value = jsonb(&arguments[2]);
    let decide = &mut |place| match place {
        PathTarget::Element if after => Ok(Change::After(value.clone())),
        PathTarget::Element => Ok(Change::Before(value.clone())),
        PathTarget::Field => Err(invalid_parameter("cannot replace existing key")
            .with_hint("Try using the function jsonb_set to replace key value.")),
        PathTarget::NewField | PathTarget::NewElement => Ok(Change::Put(value.clone())),
    };
    change(json, &steps, 0, decide).and_then(grown_jsonb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_concatenation_is_limited_to_readable_depth() {
        let function = crate::function::find("||", &[Jsonb, Jsonb]).expect("it is there");
        let array = |json: Json| jsonb_datum(Json::Array(vec![json]));
        let (mut deep, empty) = (Json::Null, jsonb_datum(Json::Array(Vec::new())));
        for _ in 0..1_000 {
            deep = Json::Array(vec![deep]);
        }
        let context = EvalContext::default();
        let joined = |value: Datum| {
            crate::function::call(function, &[value, empty.clone()], &Jsonb, &context)
        };
        assert!(joined(jsonb_datum(deep.clone())).is_ok());
        assert_eq!(joined(array(deep)).unwrap_err().sqlstate, "54001");
    }
}
