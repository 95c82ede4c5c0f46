//! Functions, casts and aggregates against recorded answers of PostgreSQL 15.
//!
//! The files under `postgres/` have one case per line with PostgreSQL's answer: text, or SQLSTATE
//! and message. Lines with an intended difference are listed in [`DIFFERS`] with the reason.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]

use std::fmt::Write;
use std::slice::from_ref;

use types::aggregate::{self, Aggregate, AggregateStates, PartialStates};
use types::cast;
use types::datetime::TimeZone;
use types::expr::{EvalContext, Expr};
use types::function::{self, Signature};
use types::text::{self, TextStyle};
use types::{Batch, DataType, Datum, Error, SqlType};

/// Beginnings of lines with intended differences, and the reasons.
const DIFFERS: &[(&str, &str)] =
    &[("cbrt | float8:27 |", "the last digit is the C library's, and ours is the better one")];

fn context() -> EvalContext {
    let time_zone = TimeZone::parse_setting("America/New_York").expect("the zone exists");
    let style = TextStyle { time_zone, now: Some(0), ..TextStyle::default() };
    EvalContext { style, ..EvalContext::default() }
}

/// Runs `answer` on every case of a file and compares.
fn check(file: &str, answer: impl Fn(&[String]) -> Result<String, Error>) {
    let mut failures = String::new();
    let mut failure_count = 0;
    let cases = file.lines().filter(|line| !line.starts_with("##") && !line.is_empty());
    for line in cases {
        if DIFFERS.iter().any(|(start, _)| line.starts_with(start)) {
            continue;
        }
        let mut fields: Vec<String> = line.split(" | ").map(unescape).collect();
        let expected = fields.pop().expect("a line has an answer");
        let sign = fields.pop().expect("a line has a sign");
        let (found_sign, found) = match answer(&fields) {
            Ok(text) => ("=", text),
            Err(error) => ("!", format!("{} {}", error.sqlstate, error.message)),
        };
        if (sign.as_str(), expected.as_str()) != (found_sign, found.as_str()) {
            failure_count += 1;
            writeln!(failures, "{line}\n    but here: {found_sign} {found}").expect("to a string");
        }
    }
    assert!(failures.is_empty(), "{failure_count} answers differ:\n{failures}");
}

fn unescape(field: &str) -> String {
    let mut plain = String::new();
    let mut characters = field.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.push(match characters.next() {
                Some('n') => '\n',
                Some('p') => '|',
                _ => '\\',
            }),
            other => plain.push(other),
        }
    }
    plain
}

/// Splits `int4:5` and parses the value.
fn argument(field: &str) -> Result<(Datum, DataType), Error> {
    let (name, value) = field.split_once(':').expect("an argument is type:value");
    let data_type = DataType::from_name(name).unwrap_or_else(|| panic!("type {name}"));
    Ok((parse(value, &data_type)?, data_type))
}

fn parse(value: &str, data_type: &DataType) -> Result<Datum, Error> {
    match value {
        "null" => Ok(Datum::Null),
        _ => text::parse(value, data_type, &style()),
    }
}

fn style() -> TextStyle {
    context().style
}

fn written(value: &Datum, data_type: &DataType) -> String {
    if *value == Datum::Null {
        return "NULL".to_owned();
    }
    let mut bytes = Vec::new();
    text::write_short(value, data_type, &style(), &mut bytes);
    String::from_utf8(bytes).expect("text is UTF-8")
}

/// Finds the overload with exactly these types, including repeated ones.
fn resolve(name: &str, types: &[DataType]) -> &'static Signature {
    let takes = |signature: &&Signature| {
        let wanted = signature.arguments;
        if !signature.variadic {
            return wanted == types;
        }
        let (last, fixed) = wanted.split_last().expect("a variadic function has an argument");
        types.len() >= fixed.len()
            && types[..fixed.len()] == *fixed
            && types[fixed.len()..].iter().all(|found| found == last)
    };
    function::overloads(name)
        .iter()
        .find(takes)
        .unwrap_or_else(|| panic!("no function {name}{types:?}"))
}

#[test]
fn function_results_match_postgresql() {
    let context = context();
    check(include_str!("postgres/functions.golden"), |fields| {
        let arguments =
            fields[1..].iter().map(|field| argument(field)).collect::<Result<Vec<_>, Error>>()?;
        let (values, types): (Vec<Datum>, Vec<DataType>) = arguments.into_iter().unzip();
        let signature = resolve(&fields[0], &types);
        let value = function::call(
            signature.id,
            &values,
            &signature.arguments.first().cloned().unwrap_or(DataType::Unknown),
            &context,
        )?;
        assert!(value.fits(&signature.result), "{fields:?}: {value:?}");

        // A batch with the same row twice gives the same result twice.
        let arguments = (0..types.len()).map(|index| Expr::column(index, &types[index])).collect();
        let data_type = signature.result.clone();
        let call = Expr::Call { function: signature.id, arguments, data_type: data_type.clone() };
        let batch = Batch::from_rows(&types, &[values.clone(), values]);
        let answers = call.eval_batch(&batch, &context)?;
        assert_eq!(
            written(&answers.datum(1), &data_type),
            written(&value, &data_type),
            "{fields:?}"
        );
        Ok(written(&value, &signature.result))
    });
}

/// Parses `numeric(5,2)`.
fn sql_type(text: &str) -> SqlType {
    let (name, modifiers) = text.trim_end_matches(')').split_once('(').unwrap_or((text, ""));
    let base = DataType::from_name(name).unwrap_or_else(|| panic!("type {name}"));
    let numbers: Vec<i32> = modifiers.split(',').filter_map(|number| number.parse().ok()).collect();
    let modifier = match (base.clone(), numbers.as_slice()) {
        (DataType::Numeric, [precision, scale]) => ((precision << 16) | scale) + 4,
        (DataType::Varchar | DataType::Char, [length]) => length + 4,
        (DataType::Interval, [digits]) => (0x7fff << 16) | digits,
        (_, [digits]) => *digits,
        _ => -1,
    };
    SqlType::new(base, modifier)
}

#[test]
fn cast_results_match_postgresql() {
    let context = context();
    check(include_str!("postgres/casts.golden"), |fields| {
        let (value, from) = argument(&fields[0])?;
        let to = sql_type(&fields[1]);
        if cast::cast_context(&from, &to.base).is_none() {
            let names = (from.sql_name(), to.base.sql_name());
            let message = format!("cannot cast type {} to {}", names.0, names.1);
            return Err(Error::new("42846", message));
        }
        let cast = cast::cast(&value, &from, &to, true, &context)?;
        assert!(cast.is_null() || cast.fits(&to.base), "{fields:?}: {cast:?}");
        let batch = Batch::from_rows(from_ref(&from), &[vec![value.clone()], vec![value]]);
        let vector = cast::cast_vector(&batch.columns[0], &from, &to, true, &context)?;
        assert_eq!(written(&vector.datum(1), &to.base), written(&cast, &to.base), "{fields:?}");
        Ok(written(&cast, &to.base))
    });
}

#[test]
fn aggregate_results_match_postgresql() {
    check(include_str!("postgres/aggregates.golden"), |fields| {
        let data_type = DataType::from_name(&fields[1]).expect("a type");
        let found = aggregate::resolve(&fields[0], from_ref(&data_type)).expect("an aggregate");
        let (taken, result) = (found.arguments[0].clone(), found.data_type);
        let call = Aggregate {
            kind: found.kind,
            arguments: vec![Expr::column(0, &taken)],
            distinct: false,
            order_by: Vec::new(),
            filter: None,
            data_type: result.clone(),
        };
        let rows = fields[2..]
            .iter()
            .map(|value| Ok(vec![parse(value, &data_type)?]))
            .collect::<Result<Vec<_>, Error>>()?;
        let context = context();
        let mut whole = AggregateStates::new(&call, &context);
        whole.resize(1);
        let batch = Batch::from_rows(&[taken], &rows);
        whole.feed(&vec![0; rows.len()], &batch, &context)?;

        // Each row in a separate group, all merged into one: equal except for rounding.
        let mut parts = AggregateStates::new(&call, &context);
        parts.resize(rows.len());
        let groups: Vec<u32> = (0..rows.len() as u32).collect();
        parts.feed(&groups, &batch, &context)?;
        let partial = parts.into_partial(rows.len())?;
        let PartialStates::States(states) = &partial else {
            panic!("rows are kept for DISTINCT only: {partial:?}");
        };
        assert_eq!(states.len(), call.partial_types().len());
        for (column, data_type) in states.iter().zip(call.partial_types()) {
            let fits = |row| column.is_null(row) || column.datum(row).fits(&data_type);
            assert!((0..rows.len()).all(fits), "{fields:?}: {states:?}");
        }
        let mut merged = AggregateStates::new(&call, &context);
        merged.resize(1);
        merged.merge(&partial, &vec![0; rows.len()])?;
        let answer = whole.finish(0..1)?.datum(0);
        let merged = merged.finish(0..1)?.datum(0);
        assert_eq!(written(&merged, &result), written(&answer, &result), "{fields:?}");
        Ok(written(&answer, &result))
    });
}

/// Functions with other signatures in PostgreSQL: polymorphic, variadic, keywords, defaults,
/// sequence names as `regclass`, unsupported types; and functions that PostgreSQL does not have.
const OURS: &[&str] = &[
    "show_create_table",
    "hold_primary",
    "hold_replicas",
    "release_holds",
    "wait_for_index",
    "acldefault",
    "inet_client_addr",
    "inet_client_port",
    "inet_server_addr",
    "inet_server_port",
    "pg_get_expr",
    "pg_has_role",
    "concat",
    "concat_ws",
    "greatest",
    "least",
    "current_date",
    "current_time",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "make_interval",
    "format",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "json_extract_path",
    "json_extract_path_text",
    "jsonb_extract_path",
    "jsonb_extract_path_text",
    "normalize",
    "nextval",
    "currval",
    "lastval",
    "setval",
    "num_nulls",
    "num_nonnulls",
];

fn shown_types(types: &[DataType]) -> String {
    types.iter().map(|data_type| data_type.internal_name()).collect::<Vec<_>>().join(" ")
}

#[test]
fn overloads_match_postgresql() {
    let theirs: Vec<String> = include_str!("postgres/overloads.golden")
        .lines()
        .filter(|line| !line.starts_with("## Operators"))
        .map(str::to_owned)
        .collect();
    let mut wrong = Vec::new();
    for signature in function::all() {
        let volatility = match signature.volatility {
            function::Volatility::Immutable => "i",
            // They depend on roles and on the time zone, although PostgreSQL declares them
            // immutable.
            function::Volatility::Stable
                if signature.name == "makeaclitem"
                    || signature.name == "age" && signature.arguments.len() == 2 =>
            {
                "i"
            }
            function::Volatility::Stable => "s",
            function::Volatility::Volatile => "v",
        };
        let line = format!(
            "{} | {} | {} | {volatility} | {}",
            if signature.name == "!=" { "<>" } else { signature.name },
            shown_types(signature.arguments),
            signature.result.internal_name(),
            if signature.strict { "t" } else { "f" },
        );
        // With an explicit default they are listed with one argument more.
        let shortened = match signature.name {
            "jsonb_set" | "jsonb_insert" => signature.arguments.len() == 3,
            "jsonb_set_lax" => signature.arguments.len() < 5,
            "parse_ident" | "is_normalized" | "pg_terminate_backend" => {
                signature.arguments.len() == 1
            }
            "jsonb_path_exists_opr" | "jsonb_path_match_opr" => false,
            name => name.starts_with("jsonb_path_") && signature.arguments.len() < 4,
        };
        let ours =
            OURS.contains(&signature.name) || function::is_internal(signature.name) || shortened;
        if !theirs.contains(&line) && !ours {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "not in PostgreSQL:\n{}", wrong.join("\n"));
    let missing: Vec<&String> = theirs
        .iter()
        .filter(|line| {
            let mut fields = line.split(" | ");
            let (name, arguments) = (fields.next().unwrap(), fields.next().unwrap());
            !function::overloads(name)
                .iter()
                .any(|signature| shown_types(signature.arguments) == arguments)
        })
        .filter(|line| !MISSING.contains(&line.as_str()))
        .collect();
    assert!(missing.is_empty(), "not here: {missing:#?}");
}

/// Overloads of PostgreSQL that are not supported yet.
const MISSING: &[&str] = &[
    "gcd | numeric numeric | numeric | i | t",
    "lcm | numeric numeric | numeric | i | t",
    "length | bytea name | int4 | s | t",
    "like | bytea bytea | bool | i | t",
    "like | name text | bool | i | t",
    "notlike | bytea bytea | bool | i | t",
    "notlike | name text | bool | i | t",
    "overlay | bytea bytea int4 | bytea | i | t",
    "overlay | bytea bytea int4 int4 | bytea | i | t",
    "regexp_count | text text int4 | int4 | i | t",
    "regexp_count | text text int4 text | int4 | i | t",
    "regexp_replace | text text text int4 | text | i | t",
    "regexp_replace | text text text int4 int4 | text | i | t",
    "regexp_replace | text text text int4 int4 text | text | i | t",
    "regexp_substr | text text int4 | text | i | t",
    "regexp_substr | text text int4 int4 | text | i | t",
    "regexp_substr | text text int4 int4 text | text | i | t",
    "regexp_substr | text text int4 int4 text int4 | text | i | t",
    "substring | text text text | text | i | t",
    "to_char | float4 text | text | s | t",
    "to_char | float8 text | text | s | t",
    "to_char | int4 text | text | s | t",
    "to_char | int8 text | text | s | t",
    "to_char | interval text | text | s | t",
    "to_char | numeric text | text | s | t",
    "to_timestamp | text text | timestamptz | s | t",
    "width_bucket | numeric numeric numeric int4 | int4 | i | t",
];

#[test]
fn cast_contexts_match_postgresql() {
    use cast::CastContext::{Assignment, Explicit, Implicit};
    let rows: Vec<Vec<&str>> = include_str!("postgres/cast_contexts.golden")
        .lines()
        .filter(|line| !line.starts_with("##"))
        .map(|line| line.split(" | ").collect())
        .collect();
    let types: Vec<DataType> = function::all()
        .iter()
        .flat_map(|signature| signature.arguments.iter().cloned())
        // Arrays have the casts of their elements.
        .filter(|data_type| data_type.element().is_none() && !data_type.is_polymorphic())
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    assert!(types.len() >= 19, "{types:?}");
    for from in &types {
        for to in &types {
            let row = rows
                .iter()
                .find(|row| row[0] == from.internal_name() && row[1] == to.internal_name());
            let expected = match row.map(|row| row[2]) {
                _ if from == to => Some(Implicit),
                Some("i") => Some(Implicit),
                Some("a") => Some(Assignment),
                Some("e") => Some(Explicit),
                Some(other) => panic!("context {other}"),
                None if to.is_text() => Some(Assignment),
                None if from.is_text() => Some(Explicit),
                None => None,
            };
            assert_eq!(cast::cast_context(from, to), expected, "{from:?} to {to:?}");
        }
    }
}
