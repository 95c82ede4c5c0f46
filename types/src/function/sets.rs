//! Set-returning functions for FROM.
//!
//! They are resolved like other functions, in a separate table. Their rows are produced in
//! batches from the arguments of a call and a position in them.

use std::sync::{Arc, LazyLock};

use smallvec::{SmallVec, smallvec};

use super::argument::text_datum;
use super::argument::{array, int4, json_datum, json_text, jsonb, jsonb_datum, text};
use super::array_text::{FOUND as FOUND_AT_ONCE, SplitProgress, TextParts, split_parts};
use super::fixed_width_types::access_list;
use super::json_access::{plain, written};
use super::json_path::{NAMES as PATH_NAMES, query};
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
use crate::datatype::ElementType;
use crate::datatype::RegKind;
use crate::datum::{Array, Datum, Json, Nested};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::key_words::{self, KeyWord, KeywordCategory};
use crate::text::{JsonKind, acl_item, check_json_escapes, json_kind, next_json_member};
use crate::vector::Vector;

/// A column of the rows: its name and type.
type Column = (&'static str, DataType);

/// A row; most have one column.
pub type SetRow = SmallVec<[Datum; 1]>;

/// Computes the next batch of rows; empty at the end. Arguments of strict functions are never
/// NULL.
type MakeRows = fn(&[Datum], &mut CallProgress, &EvalContext) -> Result<Vec<SetRow>>;

/// Progress of a call through its arguments.
#[derive(Debug, Default)]
pub struct CallProgress {
    /// Index of an element, or byte of a text; initially 0.
    at: usize,
    /// Progress of splitting a text.
    split: SplitProgress,
}

/// Maximum number of rows in a batch.
const ROWS: usize = 1024;

/// Implementation of a set-returning function.
enum Implementation {
    /// Batches of rows.
    Rows(MakeRows),
    /// A series, value by value.
    Series,
    /// The elements of an array.
    Elements,
}

/// One row of the function table.
struct SetFunctionRow {
    name: &'static str,
    arguments: &'static [DataType],
    columns: &'static [Column],
    strict: bool,
    implementation: Implementation,
    /// The parameter names, for named notation.
    names: &'static [&'static str],
}

/// Returns the row of a strict function.
const fn row(
    name: &'static str,
    arguments: &'static [DataType],
    columns: &'static [Column],
    implementation: MakeRows,
) -> SetFunctionRow {
    SetFunctionRow {
        name,
        arguments,
        columns,
        strict: true,
        implementation: Implementation::Rows(implementation),
        names: &[],
    }
}

/// Returns the row of `generate_series`.
const fn series(arguments: &'static [DataType], columns: &'static [Column]) -> SetFunctionRow {
    let implementation = Implementation::Series;
    let names: &[&str] = &[];
    SetFunctionRow {
        name: "generate_series",
        arguments,
        columns,
        strict: true,
        implementation,
        names,
    }
}

impl SetFunctionRow {
    const fn takes_null(self) -> SetFunctionRow {
        SetFunctionRow { strict: false, ..self }
    }

    const fn named(self, names: &'static [&'static str]) -> SetFunctionRow {
        SetFunctionRow { names, ..self }
    }
}

const ACL: DataType = DataType::Array(ElementType::BuiltIn(&DataType::AclItem));
const TEXTS: DataType = DataType::Array(ElementType::BuiltIn(&Text));

/// The columns of `aclexplode`.
const PRIVILEGE: &[Column] = &[
    ("grantor", DataType::Oid),
    ("grantee", DataType::Oid),
    ("privilege_type", Text),
    ("is_grantable", Bool),
];

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

/// All functions, sorted by name.
const FUNCTIONS: &[SetFunctionRow] = &[
    row("aclexplode", &[ACL], PRIVILEGE, privileges),
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
    row("json_array_elements", &[JsonType], &[("value", JsonType)], |a, place, c| {
        json_elements(a, place, "json_array_elements", c, |one, pace| {
            pace.copy(one).map(json_datum)
        })
    }),
    row("json_array_elements_text", &[JsonType], &[("value", Text)], |a, place, c| {
        json_elements(a, place, "json_array_elements_text", c, |one, pace| plain(Some(one), pace))
    }),
    row("json_each", &[JsonType], &[("key", Text), ("value", JsonType)], |a, place, c| {
        json_pairs(a, place, c, |value, pace| pace.copy(value).map(json_datum))
    }),
    row("json_each_text", &[JsonType], &[("key", Text), ("value", Text)], |a, place, c| {
        json_pairs(a, place, c, |value, pace| plain(Some(value), pace))
    }),
    row("json_object_keys", &[JsonType], &[("json_object_keys", Text)], |a, place, c| {
        match json_kind(json_text(&a[0])) {
            JsonKind::Object => members(a, place, c, |key, _, _| Ok(smallvec![key])),
            JsonKind::Array => Err(no_object("json_object_keys", "an array")),
            JsonKind::Scalar => Err(no_object("json_object_keys", "a scalar")),
        }
    }),
    row("jsonb_array_elements", &[Jsonb], &[("value", Jsonb)], |a, place, c| {
        let copied =
            |one: &Json, pace: &mut InterruptPacer<'_>| Ok(smallvec![jsonb_datum(one.copy(pace)?)]);
        some(jsonb_elements(jsonb(&a[0]))?, place, c, copied)
    }),
    row("jsonb_array_elements_text", &[Jsonb], &[("value", Text)], |a, place, c| {
        let text =
            |one: &Json, pace: &mut InterruptPacer<'_>| Ok(smallvec![written(Some(one), pace)?]);
        some(jsonb_elements(jsonb(&a[0]))?, place, c, text)
    }),
    row("jsonb_each", &[Jsonb], &[("key", Text), ("value", Jsonb)], |a, place, c| {
        let Json::Object(pairs) = jsonb(&a[0]) else { return Err(no_pairs("jsonb_each")) };
        some(pairs, place, c, |(key, value), pace| {
            Ok(smallvec![text_of(key), jsonb_datum(value.copy(pace)?)])
        })
    }),
    row("jsonb_each_text", &[Jsonb], &[("key", Text), ("value", Text)], |a, place, c| {
        let Json::Object(pairs) = jsonb(&a[0]) else { return Err(no_pairs("jsonb_each_text")) };
        some(pairs, place, c, |(key, value), pace| {
            Ok(smallvec![text_of(key), written(Some(value), pace)?])
        })
    }),
    row("jsonb_object_keys", &[Jsonb], &[("jsonb_object_keys", Text)], |a, place, c| {
        match jsonb(&a[0]) {
            Json::Object(pairs) => some(pairs, place, c, |(key, _), _| Ok(smallvec![text_of(key)])),
            Json::Array(_) => Err(no_object("jsonb_object_keys", "an array")),
            _ => Err(no_object("jsonb_object_keys", "a scalar")),
        }
    }),
    row("jsonb_path_query", &[Jsonb, JsonPath], FOUND, |a, p, c| queried(a, p, c, false)),
    row("jsonb_path_query", &[Jsonb, JsonPath, Jsonb], FOUND, |a, p, c| queried(a, p, c, false)),
    row("jsonb_path_query", &[Jsonb, JsonPath, Jsonb, Bool], FOUND, |a, p, c| {
        queried(a, p, c, false)
    })
    .named(PATH_NAMES),
    row("jsonb_path_query_tz", &[Jsonb, JsonPath], FOUND_ZONED, |a, p, c| queried(a, p, c, true)),
    row("jsonb_path_query_tz", &[Jsonb, JsonPath, Jsonb], FOUND_ZONED, |a, p, c| {
        queried(a, p, c, true)
    }),
    row("jsonb_path_query_tz", &[Jsonb, JsonPath, Jsonb, Bool], FOUND_ZONED, |a, p, c| {
        queried(a, p, c, true)
    })
    .named(PATH_NAMES),
    // Tables have no partitions.
    row("pg_get_keywords", &[], KEYWORD, |_, place, _| once(place, || Ok(keywords()))),
    row("pg_listening_channels", &[], &[("pg_listening_channels", Text)], |_, place, c| {
        once(place, || {
            let channels = c.style.system.source()?.call("pg_listening_channels", &[])?;
            Ok(array(&channels).elements.iter().map(|channel| smallvec![channel.clone()]).collect())
        })
    }),
    row(
        "pg_options_to_table",
        &[TEXTS],
        &[("option_name", Text), ("option_value", Text)],
        |a, place, _| once(place, || Ok(options(array(&a[0])))),
    ),
    row(
        "pg_partition_ancestors",
        &[DataType::Reg(RegKind::Class)],
        &[("relid", DataType::Reg(RegKind::Class))],
        none,
    ),
    row("regexp_matches", &[Text, Text], &[("regexp_matches", TEXTS)], matches),
    row("regexp_matches", &[Text, Text, Text], &[("regexp_matches", TEXTS)], matches),
    row("regexp_split_to_table", &[Text, Text], &[("regexp_split_to_table", Text)], split),
    row("regexp_split_to_table", &[Text, Text, Text], &[("regexp_split_to_table", Text)], split),
    row("string_to_table", &[Text, Text], &[("string_to_table", Text)], parts).takes_null(),
    row("string_to_table", &[Text, Text, Text], &[("string_to_table", Text)], parts).takes_null(),
    SetFunctionRow {
        name: "unnest",
        arguments: &[AnyArray],
        columns: &[("unnest", AnyElement)],
        strict: true,
        implementation: Implementation::Elements,
        names: &[],
    },
];

/// Makes rows of the next batch of items.
fn some<T>(
    items: &[T],
    place: &mut CallProgress,
    context: &EvalContext,
    mut row: impl FnMut(&T, &mut InterruptPacer<'_>) -> Result<SetRow>,
) -> Result<Vec<SetRow>> {
    let items = &items[place.at..items.len().min(place.at + ROWS)];
    place.at += items.len();
    let mut pace = context.pace();
    items.iter().map(|item| row(item, &mut pace)).collect()
}

/// Returns all rows at the first call.
fn once(
    place: &mut CallProgress,
    rows: impl FnOnce() -> Result<Vec<SetRow>>,
) -> Result<Vec<SetRow>> {
    match std::mem::replace(&mut place.at, 1) {
        0 => rows(),
        _ => Ok(Vec::new()),
    }
}

static SIGNATURES: LazyLock<Vec<Signature>> = LazyLock::new(|| {
    let signature = |(index, row): (usize, &SetFunctionRow)| Signature {
        id: FunctionId(u16::try_from(index).expect("there are fewer than 65,536 functions")),
        name: row.name,
        arguments: row.arguments,
        variadic: false,
        result: row.columns[0].1.clone(),
        volatility: Volatility::Immutable,
        strict: row.strict,
        names: row.names,
    };
    FUNCTIONS.iter().enumerate().map(signature).collect()
});

/// Returns the overloads of a name; empty if there are none. The result type is that of the first
/// column.
pub fn overloads(name: &str) -> &'static [Signature] {
    let start = SIGNATURES.partition_point(|signature| signature.name < name);
    let end = SIGNATURES.partition_point(|signature| signature.name <= name);
    &SIGNATURES[start..end]
}

/// Returns all functions, sorted by name.
pub fn all() -> &'static [Signature] {
    &SIGNATURES
}

/// Returns the columns of the rows of a function.
pub fn columns(id: FunctionId) -> &'static [(&'static str, DataType)] {
    FUNCTIONS[usize::from(id.0)].columns
}

/// The remaining rows of a call.
pub enum SetRows {
    /// Batches of rows.
    Made {
        /// The rest of the present batch.
        rows: std::vec::IntoIter<SetRow>,
        /// The producer of further batches.
        rest: RowProducer,
    },
    /// A series in one column.
    Series(Series),
    /// The elements of an array from a position on.
    Elements(Arc<Array>, usize),
    /// There are no more rows.
    Ended,
}

/// The producer of the remaining batches.
pub struct RowProducer {
    make: MakeRows,
    arguments: Vec<Datum>,
    place: CallProgress,
}

impl SetRows {
    /// Appends up to `limit` rows to columns and returns their number.
    ///
    /// # Errors
    ///
    /// As PostgreSQL for the same rows.
    pub fn append(
        &mut self,
        columns: &mut [Vector],
        limit: usize,
        context: &EvalContext,
    ) -> Result<usize> {
        match (self, columns) {
            (SetRows::Made { rows, rest }, columns) => rest.append(rows, columns, limit, context),
            (SetRows::Series(series), [column]) => {
                for count in 0..limit {
                    let Some(value) = series.next(context)? else { return Ok(count) };
                    column.push(&value);
                }
                Ok(limit)
            }
            (SetRows::Elements(array, at), [column]) => {
                let rest = &array.elements[*at..];
                let some = &rest[..limit.min(rest.len())];
                some.iter().for_each(|value| column.push(value));
                *at += some.len();
                Ok(some.len())
            }
            _ => Ok(0),
        }
    }
}

impl RowProducer {
    fn append(
        &mut self,
        rows: &mut std::vec::IntoIter<SetRow>,
        columns: &mut [Vector],
        limit: usize,
        context: &EvalContext,
    ) -> Result<usize> {
        for count in 0..limit {
            if rows.len() == 0 {
                context.style.interrupt.check()?;
                *rows = (self.make)(&self.arguments, &mut self.place, context)?.into_iter();
            }
            let Some(row) = rows.next() else { return Ok(count) };
            for (index, column) in columns.iter_mut().enumerate() {
                column.push(row.get(index).unwrap_or(&Datum::Null));
            }
        }
        Ok(limit)
    }
}

/// Calls a function.
///
/// # Errors
///
/// As PostgreSQL for the same arguments.
pub fn open(id: FunctionId, arguments: &[Datum], context: &EvalContext) -> Result<SetRows> {
    let row = &FUNCTIONS[usize::from(id.0)];
    if row.strict && arguments.iter().any(Datum::is_null) {
        return Ok(SetRows::Ended);
    }
    match (&row.implementation, arguments) {
        (Implementation::Rows(make), _) => {
            let (make, arguments) = (*make, arguments.to_vec());
            let mut rest = RowProducer { make, arguments, place: CallProgress::default() };
            let rows = (rest.make)(&rest.arguments, &mut rest.place, context)?.into_iter();
            Ok(SetRows::Made { rows, rest })
        }
        (Implementation::Series, _) => Series::new(arguments).map(SetRows::Series),
        (Implementation::Elements, [Datum::Nested(Nested::Array(array))]) => {
            Ok(SetRows::Elements(Arc::clone(array), 0))
        }
        (Implementation::Elements, _) => Ok(SetRows::Ended),
    }
}

fn none(_: &[Datum], _: &mut CallProgress, _: &EvalContext) -> Result<Vec<SetRow>> {
    Ok(Vec::new())
}

/// Returns the signature of a function.
pub fn signature(id: FunctionId) -> &'static Signature {
    &SIGNATURES[usize::from(id.0)]
}

fn queried(
    arguments: &[Datum],
    place: &mut CallProgress,
    context: &EvalContext,
    zoned: bool,
) -> Result<Vec<SetRow>> {
    once(place, || {
        let found = query(arguments, context, zoned)?;
        Ok(found.into_iter().map(|json| smallvec![jsonb_datum(json)]).collect())
    })
}

fn text_of(key: &Arc<str>) -> Datum {
    Datum::Text(Arc::clone(key).into())
}

fn subscripts(
    arguments: &[Datum],
    place: &mut CallProgress,
    _: &EvalContext,
) -> Result<Vec<SetRow>> {
    let index = usize::try_from(int4(&arguments[1])).ok().and_then(|index| index.checked_sub(1));
    let dimensions = &array(&arguments[0]).dimensions;
    let Some(dimension) = index.and_then(|index| dimensions.get(index)) else {
        return Ok(Vec::new());
    };
    let from_end = arguments.get(2).and_then(Datum::as_bool) == Some(true);
    let subscript = |at: usize| match from_end {
        true => dimension.upper() - at as i32,
        false => dimension.lower + at as i32,
    };
    let range = place.at..dimension.length.min(place.at + ROWS);
    place.at = range.end;
    Ok(range.map(|at| smallvec![Datum::Int4(subscript(at))]).collect())
}

/// Makes rows of the privileges of the next items of an access list.
fn privileges(
    arguments: &[Datum],
    place: &mut CallProgress,
    context: &EvalContext,
) -> Result<Vec<SetRow>> {
    let mut rows = Vec::new();
    let items = access_list(array(&arguments[0]))?.iter().skip(place.at).take(ROWS);
    for item in items.filter_map(Datum::as_str) {
        place.at += 1;
        let system = &context.style.system;
        let item = acl_item(item, system)?;
        rows.extend(item.names().map(|(name, is_grantable)| {
            let [grantor, grantee] =
                [item.grantor, item.grantee].map(|oid| Datum::Int8(oid.into()));
            smallvec![grantor, grantee, text_datum(name), Datum::Bool(is_grantable)]
        }));
    }
    Ok(rows)
}

/// Returns the rows of `pg_get_keywords`, by word.
fn keywords() -> Vec<SetRow> {
    let row = |(word, found): (&str, KeyWord)| {
        let (code, category) = match found.category {
            KeywordCategory::Unreserved => ("U", "unreserved"),
            KeywordCategory::ColumnName => ("C", "unreserved (cannot be function or type name)"),
            KeywordCategory::TypeOrFunction => ("T", "reserved (can be function or type name)"),
            KeywordCategory::Reserved => ("R", "reserved"),
        };
        let label = if found.is_bare_label { "can be bare label" } else { "requires AS" };
        let [word, code, category, label] = [word, code, category, label].map(text_datum);
        smallvec![word, code, Datum::Bool(found.is_bare_label), category, label]
    };
    key_words::key_words().map(row).collect()
}

/// Returns the rows of `pg_options_to_table`: `name=value`, with an optional value.
fn options(written: &Array) -> Vec<SetRow> {
    let texts = written.elements.iter().filter_map(Datum::as_str);
    let row = |text: &str| match text.split_once('=') {
        Some((name, value)) => smallvec![text_datum(name), text_datum(value)],
        None => smallvec![text_datum(text), Datum::Null],
    };
    texts.map(row).collect()
}

fn no_object(function: &str, what: &str) -> Error {
    invalid_parameter(format!("cannot call {function} on {what}"))
}

fn no_pairs(function: &str) -> Error {
    invalid_parameter(format!("cannot call {function} on a non-object"))
}

/// Makes rows of the next members of a `json`: key (NULL in an array) and value.
fn members(
    arguments: &[Datum],
    place: &mut CallProgress,
    context: &EvalContext,
    mut row: impl FnMut(Datum, &str, &mut InterruptPacer<'_>) -> Result<SetRow>,
) -> Result<Vec<SetRow>> {
    let (mut rows, mut pace) = (Vec::new(), context.pace());
    while rows.len() < ROWS {
        let member = next_json_member(json_text(&arguments[0]), &mut place.at, &mut pace)?;
        let Some((key, value)) = member else { break };
        rows.push(row(key.map_or(Datum::Null, Datum::Text), value, &mut pace)?);
    }
    Ok(rows)
}

fn json_elements(
    arguments: &[Datum],
    place: &mut CallProgress,
    function: &str,
    context: &EvalContext,
    value: impl Fn(&str, &mut InterruptPacer<'_>) -> Result<Datum>,
) -> Result<Vec<SetRow>> {
    match json_kind(json_text(&arguments[0])) {
        JsonKind::Array => {
            members(arguments, place, context, |_, one, pace| Ok(smallvec![value(one, pace)?]))
        }
        JsonKind::Object => {
            Err(invalid_parameter(format!("cannot call {function} on a non-array")))
        }
        JsonKind::Scalar => Err(invalid_parameter(format!("cannot call {function} on a scalar"))),
    }
}

fn json_pairs(
    arguments: &[Datum],
    place: &mut CallProgress,
    context: &EvalContext,
    value: impl Fn(&str, &mut InterruptPacer<'_>) -> Result<Datum>,
) -> Result<Vec<SetRow>> {
    match json_kind(json_text(&arguments[0])) {
        JsonKind::Object => {
            if place.at == 0 {
                check_json_escapes(json_text(&arguments[0]), &mut context.pace())?;
            }
            members(arguments, place, context, |key, one, pace| {
                Ok(smallvec![key, value(one, pace)?])
            })
        }
        JsonKind::Array => Err(invalid_parameter("cannot deconstruct an array as an object")),
        JsonKind::Scalar => Err(invalid_parameter("cannot deconstruct a scalar")),
    }
}

fn jsonb_elements(json: &Json) -> Result<&[Json]> {
    match json {
        Json::Array(elements) => Ok(elements),
        Json::Object(_) => Err(invalid_parameter("cannot extract elements from an object")),
        _ => Err(invalid_parameter("cannot extract elements from a scalar")),
    }
}

/// Returns one row per match: its groups, or the whole match if there are none.
fn matches(
    arguments: &[Datum],
    place: &mut CallProgress,
    context: &EvalContext,
) -> Result<Vec<SetRow>> {
    let flags = Flags::parse(arguments.get(2).map_or("", text))?;
    let string = text(&arguments[0]);
    let mut rows = Vec::new();
    if place.at > string.len() {
        return Ok(rows);
    }
    with_regex(text(&arguments[1]), flags.without_global(), context, |regex| {
        for_each_match(regex, string, &mut place.at, |found| {
            rows.push(smallvec![groups_of(found, string)]);
            flags.global && rows.len() < FOUND_AT_ONCE
        })
    })?;
    if !flags.global {
        place.at = string.len() + 1;
    }
    Ok(rows)
}

fn split(
    arguments: &[Datum],
    place: &mut CallProgress,
    context: &EvalContext,
) -> Result<Vec<SetRow>> {
    let function = "regexp_split_to_table()";
    let parts = split_parts(arguments, function, &mut place.split, context)?;
    Ok(parts.into_iter().map(|part| smallvec![text_datum(part)]).collect())
}

fn parts(
    arguments: &[Datum],
    place: &mut CallProgress,
    context: &EvalContext,
) -> Result<Vec<SetRow>> {
    let mut rows = Vec::new();
    if arguments[0].is_null() {
        return Ok(rows);
    }
    let mut parts = TextParts::new(arguments, context);
    while rows.len() < ROWS {
        match parts.next(&mut place.at)? {
            Some(part) => rows.push(smallvec![part]),
            None => break,
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_returning_functions_are_sorted_by_name() {
        assert!(FUNCTIONS.is_sorted_by_key(|row| row.name));
    }
}
