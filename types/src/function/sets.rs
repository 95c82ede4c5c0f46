//! Functions that return sets of rows, for FROM.
//!
//! They are resolved as all functions are, among themselves. What their arguments hold is in memory
//! already, so the rows are made at once, but for those of `generate_series` ([`Series`]).

use std::sync::LazyLock;

use super::argument::text_datum;
use super::argument::{array, int4, json_datum, json_text, jsonb, jsonb_datum, text};
use super::array_text::{pieces, split_pieces};
use super::json_access::{plain, written};
use super::json_path::query;
use super::regular_expression::{Flags, with_regex};
use super::regular_expression_functions::{for_each_match, groups_of};
pub use super::series::Series;
use super::strings::invalid_parameter;
use super::{FunctionId, Signature, Volatility};
use crate::context::EvalContext;
use crate::datatype::DataType::{
    self, AnyArray, AnyElement, Bool, Int4, Int8, Interval, Json as JsonType, JsonPath, Jsonb,
    Numeric, Text, Timestamp, Timestamptz,
};
use crate::datatype::RegKind;
use crate::datum::{Datum, Json};
use crate::error::Result;
use crate::text::{JsonParts, json_parts};

/// A column of the rows: its name and type.
type Column = (&'static str, DataType);

/// Computes the rows. Arguments of strict functions are never NULL.
type MakeRows = fn(&[Datum], &EvalContext) -> Result<Vec<Vec<Datum>>>;

/// How the rows come about.
enum Implementation {
    /// All at once.
    Rows(MakeRows),
    /// One by one.
    Series,
}

/// One row of the table.
struct Row {
    name: &'static str,
    arguments: &'static [DataType],
    columns: &'static [Column],
    strict: bool,
    implementation: Implementation,
}

/// Returns the row of a strict function.
const fn row(
    name: &'static str,
    arguments: &'static [DataType],
    columns: &'static [Column],
    implementation: MakeRows,
) -> Row {
    Row {
        name,
        arguments,
        columns,
        strict: true,
        implementation: Implementation::Rows(implementation),
    }
}

/// Returns the row of `generate_series`.
const fn series(arguments: &'static [DataType], columns: &'static [Column]) -> Row {
    let implementation = Implementation::Series;
    Row { name: "generate_series", arguments, columns, strict: true, implementation }
}

impl Row {
    const fn takes_null(self) -> Row {
        Row { strict: false, ..self }
    }
}

const TEXTS: DataType = DataType::Array(&Text);

/// The columns of `pg_get_keywords`.
const KEYWORD: &[Column] = &[
    ("word", Text),
    ("catcode", Text),
    ("barelabel", Bool),
    ("catdesc", Text),
    ("baredesc", Text),
];

/// The columns of `jsonb_path_query` and `jsonb_path_query_tz`.
const FOUND: &[Column] = &[("jsonb_path_query", Jsonb)];
const FOUND_ZONED: &[Column] = &[("jsonb_path_query_tz", Jsonb)];

/// All of them, sorted by name.
const FUNCTIONS: &[Row] = &[
    series(&[Int4, Int4], &[("generate_series", Int4)]),
    series(&[Int4, Int4, Int4], &[("generate_series", Int4)]),
    series(&[Int8, Int8], &[("generate_series", Int8)]),
    series(&[Int8, Int8, Int8], &[("generate_series", Int8)]),
    series(&[Numeric, Numeric], &[("generate_series", Numeric)]),
    series(&[Numeric, Numeric, Numeric], &[("generate_series", Numeric)]),
    series(&[Timestamp, Timestamp, Interval], &[("generate_series", Timestamp)]),
    series(&[Timestamptz, Timestamptz, Interval], &[("generate_series", Timestamptz)]),
    row("generate_subscripts", &[AnyArray, Int4], &[("generate_subscripts", Int4)], subscripts),
    row(
        "generate_subscripts",
        &[AnyArray, Int4, Bool],
        &[("generate_subscripts", Int4)],
        subscripts,
    ),
    row("json_array_elements", &[JsonType], &[("value", JsonType)], |a, _| {
        let elements = json_elements(json_text(&a[0]), "json_array_elements")?;
        Ok(elements.into_iter().map(|one| vec![json_datum(one.to_owned())]).collect())
    }),
    row("json_array_elements_text", &[JsonType], &[("value", Text)], |a, _| {
        let elements = json_elements(json_text(&a[0]), "json_array_elements_text")?;
        elements.into_iter().map(|one| Ok(vec![plain(Some(one))?])).collect()
    }),
    row("json_each", &[JsonType], &[("key", Text), ("value", JsonType)], |a, _| {
        let pairs = json_pairs(json_text(&a[0]))?;
        let pair = |(key, value): (Datum, &str)| vec![key, json_datum(value.to_owned())];
        Ok(pairs.into_iter().map(pair).collect())
    }),
    row("json_each_text", &[JsonType], &[("key", Text), ("value", Text)], |a, _| {
        let pairs = json_pairs(json_text(&a[0]))?;
        pairs.into_iter().map(|(key, value)| Ok(vec![key, plain(Some(value))?])).collect()
    }),
    row("json_object_keys", &[JsonType], &[("json_object_keys", Text)], |a, _| {
        let keys = match json_parts(json_text(&a[0]))? {
            JsonParts::Object(pairs) => pairs.into_iter().map(|(key, _)| Datum::Text(key)),
            JsonParts::Array(_) => return Err(no_object("json_object_keys", "an array")),
            _ => return Err(no_object("json_object_keys", "a scalar")),
        };
        Ok(keys.map(|key| vec![key]).collect())
    }),
    row("jsonb_array_elements", &[Jsonb], &[("value", Jsonb)], |a, _| {
        let elements = jsonb_elements(jsonb(&a[0]))?;
        Ok(elements.iter().map(|one| vec![jsonb_datum(one.clone())]).collect())
    }),
    row("jsonb_array_elements_text", &[Jsonb], &[("value", Text)], |a, _| {
        let elements = jsonb_elements(jsonb(&a[0]))?;
        Ok(elements.iter().map(|one| vec![written(Some(one))]).collect())
    }),
    row("jsonb_each", &[Jsonb], &[("key", Text), ("value", Jsonb)], |a, _| {
        let Json::Object(pairs) = jsonb(&a[0]) else { return Err(no_pairs("jsonb_each")) };
        let pair = |(key, value): &(_, Json)| vec![text_of(key), jsonb_datum(value.clone())];
        Ok(pairs.iter().map(pair).collect())
    }),
    row("jsonb_each_text", &[Jsonb], &[("key", Text), ("value", Text)], |a, _| {
        let Json::Object(pairs) = jsonb(&a[0]) else { return Err(no_pairs("jsonb_each_text")) };
        let pair = |(key, value): &(_, Json)| vec![text_of(key), written(Some(value))];
        Ok(pairs.iter().map(pair).collect())
    }),
    row("jsonb_object_keys", &[Jsonb], &[("jsonb_object_keys", Text)], |a, _| match jsonb(&a[0]) {
        Json::Object(pairs) => Ok(pairs.iter().map(|(key, _)| vec![text_of(key)]).collect()),
        Json::Array(_) => Err(no_object("jsonb_object_keys", "an array")),
        _ => Err(no_object("jsonb_object_keys", "a scalar")),
    }),
    row("jsonb_path_query", &[Jsonb, JsonPath], FOUND, path_query),
    row("jsonb_path_query", &[Jsonb, JsonPath, Jsonb], FOUND, path_query),
    row("jsonb_path_query", &[Jsonb, JsonPath, Jsonb, Bool], FOUND, path_query),
    row("jsonb_path_query_tz", &[Jsonb, JsonPath], FOUND_ZONED, zoned_path_query),
    row("jsonb_path_query_tz", &[Jsonb, JsonPath, Jsonb], FOUND_ZONED, zoned_path_query),
    row("jsonb_path_query_tz", &[Jsonb, JsonPath, Jsonb, Bool], FOUND_ZONED, zoned_path_query),
    // Tables have no partitions.
    row("pg_get_keywords", &[], KEYWORD, |_, _| Ok(keywords())),
    row(
        "pg_partition_ancestors",
        &[DataType::Reg(RegKind::Class)],
        &[("relid", DataType::Reg(RegKind::Class))],
        |_, _| Ok(Vec::new()),
    ),
    row("regexp_matches", &[Text, Text], &[("regexp_matches", TEXTS)], matches),
    row("regexp_matches", &[Text, Text, Text], &[("regexp_matches", TEXTS)], matches),
    row("regexp_split_to_table", &[Text, Text], &[("regexp_split_to_table", Text)], split),
    row("regexp_split_to_table", &[Text, Text, Text], &[("regexp_split_to_table", Text)], split),
    row("string_to_table", &[Text, Text], &[("string_to_table", Text)], |a, c| {
        Ok(single(pieces(a, c)?))
    })
    .takes_null(),
    row("string_to_table", &[Text, Text, Text], &[("string_to_table", Text)], |a, c| {
        Ok(single(pieces(a, c)?))
    })
    .takes_null(),
    row("unnest", &[AnyArray], &[("unnest", AnyElement)], |a, _| {
        Ok(single(Some(array(&a[0]).elements.clone())))
    }),
];

static SIGNATURES: LazyLock<Vec<Signature>> = LazyLock::new(|| {
    let signature = |(index, row): (usize, &Row)| Signature {
        id: FunctionId(u16::try_from(index).expect("there are fewer than 65,536 functions")),
        name: row.name,
        arguments: row.arguments,
        variadic: false,
        result: row.columns[0].1,
        volatility: Volatility::Immutable,
        strict: row.strict,
        names: &[],
    };
    FUNCTIONS.iter().enumerate().map(signature).collect()
});

/// Returns the overloads of a name; empty if there is none. The result is the type of the first
/// column.
pub fn overloads(name: &str) -> &'static [Signature] {
    let start = SIGNATURES.partition_point(|signature| signature.name < name);
    let end = SIGNATURES.partition_point(|signature| signature.name <= name);
    &SIGNATURES[start..end]
}

/// Returns the columns of the rows of a function.
pub fn columns(id: FunctionId) -> &'static [(&'static str, DataType)] {
    FUNCTIONS[usize::from(id.0)].columns
}

/// Rows to come.
pub enum SetRows {
    /// Rows that are made.
    Made(std::vec::IntoIter<Vec<Datum>>),
    /// Of one column each.
    Series(Series),
}

impl SetRows {
    /// Returns the next row.
    ///
    /// # Errors
    ///
    /// What PostgreSQL raises for it.
    pub fn next(&mut self, context: &EvalContext) -> Result<Option<Vec<Datum>>> {
        match self {
            SetRows::Made(rows) => Ok(rows.next()),
            SetRows::Series(series) => Ok(series.next(context)?.map(|value| vec![value])),
        }
    }
}

/// Calls a function.
///
/// # Errors
///
/// What PostgreSQL raises for the same arguments.
pub fn open(id: FunctionId, arguments: &[Datum], context: &EvalContext) -> Result<SetRows> {
    let row = &FUNCTIONS[usize::from(id.0)];
    if row.strict && arguments.iter().any(Datum::is_null) {
        return Ok(SetRows::Made(Vec::new().into_iter()));
    }
    match row.implementation {
        Implementation::Rows(make) => Ok(SetRows::Made(make(arguments, context)?.into_iter())),
        Implementation::Series => Series::new(arguments).map(SetRows::Series),
    }
}

/// Returns the signature of a function.
pub fn signature(id: FunctionId) -> &'static Signature {
    &SIGNATURES[usize::from(id.0)]
}

fn single(values: Option<Vec<Datum>>) -> Vec<Vec<Datum>> {
    values.into_iter().flatten().map(|value| vec![value]).collect()
}

fn path_query(arguments: &[Datum], context: &EvalContext) -> Result<Vec<Vec<Datum>>> {
    let found = query(arguments, context, false)?;
    Ok(found.into_iter().map(|json| vec![jsonb_datum(json)]).collect())
}

fn zoned_path_query(arguments: &[Datum], context: &EvalContext) -> Result<Vec<Vec<Datum>>> {
    let found = query(arguments, context, true)?;
    Ok(found.into_iter().map(|json| vec![jsonb_datum(json)]).collect())
}

fn text_of(key: &std::sync::Arc<str>) -> Datum {
    Datum::Text(std::sync::Arc::clone(key))
}

fn subscripts(arguments: &[Datum], _: &EvalContext) -> Result<Vec<Vec<Datum>>> {
    let index = usize::try_from(int4(&arguments[1])).ok().and_then(|index| index.checked_sub(1));
    let dimensions = &array(&arguments[0]).dimensions;
    let Some(dimension) = index.and_then(|index| dimensions.get(index)) else {
        return Ok(Vec::new());
    };
    let mut all: Vec<Datum> = (dimension.lower..=dimension.upper()).map(Datum::Int4).collect();
    if arguments.get(2).and_then(Datum::as_bool) == Some(true) {
        all.reverse();
    }
    Ok(single(Some(all)))
}

/// Returns the rows of `pg_get_keywords`, by word.
fn keywords() -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    let (mut code, mut is_bare) = ("U", true);
    let lines = include_str!("keywords.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let mut words = line.split_whitespace();
        if !line.starts_with(' ') {
            code = words.next().unwrap_or_default();
            is_bare = words.next() == Some("b");
        }
        let category = match code {
            "C" => "unreserved (cannot be function or type name)",
            "T" => "reserved (can be function or type name)",
            "R" => "reserved",
            _ => "unreserved",
        };
        let label = if is_bare { "can be bare label" } else { "requires AS" };
        rows.extend(words.map(|word| (word, code, is_bare, category, label)));
    }
    rows.sort_unstable();
    rows.into_iter()
        .map(|(word, code, is_bare, category, label)| {
            let [word, code, category, label] = [word, code, category, label].map(text_datum);
            vec![word, code, Datum::Bool(is_bare), category, label]
        })
        .collect()
}

fn no_object(function: &str, what: &str) -> crate::error::Error {
    invalid_parameter(format!("cannot call {function} on {what}"))
}

fn no_pairs(function: &str) -> crate::error::Error {
    invalid_parameter(format!("cannot call {function} on a non-object"))
}

fn json_elements<'a>(json: &'a str, function: &str) -> Result<Vec<&'a str>> {
    match json_parts(json)? {
        JsonParts::Array(elements) => Ok(elements),
        JsonParts::Object(_) => {
            Err(invalid_parameter(format!("cannot call {function} on a non-array")))
        }
        _ => Err(invalid_parameter(format!("cannot call {function} on a scalar"))),
    }
}

fn jsonb_elements(json: &Json) -> Result<&[Json]> {
    match json {
        Json::Array(elements) => Ok(elements),
        Json::Object(_) => Err(invalid_parameter("cannot extract elements from an object")),
        _ => Err(invalid_parameter("cannot extract elements from a scalar")),
    }
}

fn json_pairs(json: &str) -> Result<Vec<(Datum, &str)>> {
    match json_parts(json)? {
        JsonParts::Object(pairs) => {
            Ok(pairs.into_iter().map(|(key, value)| (Datum::Text(key), value)).collect())
        }
        JsonParts::Array(_) => Err(invalid_parameter("cannot deconstruct an array as an object")),
        _ => Err(invalid_parameter("cannot deconstruct a scalar")),
    }
}

/// One row a match: its groups, or all of it if there are none.
fn matches(arguments: &[Datum], context: &EvalContext) -> Result<Vec<Vec<Datum>>> {
    let flags = Flags::parse(arguments.get(2).map_or("", text))?;
    let mut rows = Vec::new();
    with_regex(text(&arguments[1]), flags.without_global(), context, |regex| {
        for_each_match(regex, text(&arguments[0]), 0, |found| {
            rows.push(vec![groups_of(found, text(&arguments[0]))]);
            flags.global
        })
    })?;
    Ok(rows)
}

fn split(arguments: &[Datum], context: &EvalContext) -> Result<Vec<Vec<Datum>>> {
    let pieces = split_pieces(arguments, "regexp_split_to_table()", context)?;
    Ok(pieces.into_iter().map(|piece| vec![text_datum(piece)]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        assert!(FUNCTIONS.is_sorted_by_key(|row| row.name));
    }
}
