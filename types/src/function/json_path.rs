//! SQL functions and operators of `jsonpath`.

use super::argument::{bool_of, json_path, jsonb, jsonb_datum};
use super::json_path_search::{Executor, Status};
use super::json_path_value::Value;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, JsonPath as PathType, Jsonb};
use crate::datum::{Datum, Json};
use crate::error::{Error, Result};

/// The names of the parameters.
pub(super) const NAMES: &[&str] = &["target", "path", "vars", "silent"];

/// The overloads of a name: without variables, with variables, and with `silent`.
macro_rules! family {
    ($name:literal, $result:expr, $implementation:expr) => {
        [
            row($name, &[Jsonb, PathType], $result, |a, c| $implementation(a, c, false))
                .named(NAMES),
            row($name, &[Jsonb, PathType, Jsonb], $result, |a, c| $implementation(a, c, false))
                .named(NAMES),
            row($name, &[Jsonb, PathType, Jsonb, Bool], $result, |a, c| {
                $implementation(a, c, false)
            })
            .named(NAMES),
        ]
    };
    ($name:literal, $result:expr, $implementation:expr, zoned) => {
        [
            row($name, &[Jsonb, PathType], $result, |a, c| $implementation(a, c, true))
                .named(NAMES)
                .stable(),
            row($name, &[Jsonb, PathType, Jsonb], $result, |a, c| $implementation(a, c, true))
                .named(NAMES)
                .stable(),
            row($name, &[Jsonb, PathType, Jsonb, Bool], $result, |a, c| {
                $implementation(a, c, true)
            })
            .named(NAMES)
            .stable(),
        ]
    };
}

/// Returns the function table of this family.
pub(super) fn functions() -> Vec<FunctionRow> {
    let families = [
        family!("jsonb_path_exists", Bool, exists),
        family!("jsonb_path_exists_tz", Bool, exists, zoned),
        family!("jsonb_path_match", Bool, matches),
        family!("jsonb_path_match_tz", Bool, matches, zoned),
        family!("jsonb_path_query_array", Jsonb, query_array),
        family!("jsonb_path_query_array_tz", Jsonb, query_array, zoned),
        family!("jsonb_path_query_first", Jsonb, query_first),
        family!("jsonb_path_query_first_tz", Jsonb, query_first, zoned),
    ];
    let mut rows: Vec<FunctionRow> = families.into_iter().flatten().collect();
    let operators: [(&str, &str, super::Implementation); 2] = [
        ("@?", "jsonb_path_exists_opr", |a, c| exists(&silent(a), c, false)),
        ("@@", "jsonb_path_match_opr", |a, c| matches(&silent(a), c, false)),
    ];
    for (symbol, name, implementation) in operators {
        rows.push(row(symbol, &[Jsonb, PathType], Bool, implementation));
        rows.push(row(name, &[Jsonb, PathType], Bool, implementation));
    }
    rows
}

/// Returns the arguments of an operator as those of a function call with `silent`.
fn silent(arguments: &[Datum]) -> Vec<Datum> {
    vec![arguments[0].clone(), arguments[1].clone(), Datum::Null, Datum::Bool(true)]
}

fn exists(arguments: &[Datum], context: &EvalContext, zoned: bool) -> Result<Datum> {
    let (status, _) = run(arguments, context, zoned, false)?;
    Ok(match status {
        Status::Error => Datum::Null,
        status => Datum::Bool(status == Status::Found),
    })
}

fn matches(arguments: &[Datum], context: &EvalContext, zoned: bool) -> Result<Datum> {
    let (_, found) = run(arguments, context, zoned, true)?;
    match found.as_slice() {
        [Json::Bool(value)] => Ok(Datum::Bool(*value)),
        [Json::Null] => Ok(Datum::Null),
        _ if is_silent(arguments) => Ok(Datum::Null),
        _ => bail!(SINGLETON_SQL_JSON_ITEM_REQUIRED: "single boolean result is expected"),
    }
}

fn query_array(arguments: &[Datum], context: &EvalContext, zoned: bool) -> Result<Datum> {
    let (_, found) = run(arguments, context, zoned, true)?;
    Ok(jsonb_datum(Json::Array(found)))
}

fn query_first(arguments: &[Datum], context: &EvalContext, zoned: bool) -> Result<Datum> {
    let (_, found) = run(arguments, context, zoned, true)?;
    Ok(found.into_iter().next().map_or(Datum::Null, jsonb_datum))
}

/// Returns all values that match a path: `jsonb_path_query`.
pub(super) fn query(arguments: &[Datum], context: &EvalContext, zoned: bool) -> Result<Vec<Json>> {
    run(arguments, context, zoned, true).map(|(_, found)| found)
}

fn is_silent(arguments: &[Datum]) -> bool {
    arguments.get(3).is_some_and(bool_of)
}

/// Evaluates a path; collects the values only if they are `wanted`.
fn run(
    arguments: &[Datum],
    context: &EvalContext,
    zoned: bool,
    wanted: bool,
) -> Result<(Status, Vec<Json>)> {
    let (root, path) = (jsonb(&arguments[0]), json_path(&arguments[1]));
    let none = Json::Object(Vec::new());
    let variables = match arguments.get(2) {
        Some(Datum::Null) => None,
        given => Some(given.map_or(&none, jsonb)),
    };
    if variables.is_some_and(|variables| !matches!(variables, Json::Object(_))) {
        bail!(INVALID_PARAMETER_VALUE: "\"vars\" argument is not an object";
            detail "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.");
    }
    let mut executor = Executor {
        path,
        root,
        variables,
        current: Value::of(root),
        array_size: None,
        passes_structure: path.lax,
        throws: !is_silent(arguments),
        zoned,
        context,
        pace: context.pace(),
    };
    let mut found = Vec::new();
    let all = wanted || !path.lax;
    let status = executor.item(&path.root, &Value::of(root), all.then_some(&mut found))?;
    let status = match (status, wanted) {
        (Status::Error, _) => Status::Error,
        (status, true) => status,
        (status, false) if path.lax => status,
        _ if found.is_empty() => Status::Nothing,
        _ => Status::Found,
    };
    Ok((status, found.into_iter().map(Value::into_json).collect()))
}
