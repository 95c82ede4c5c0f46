//! `jsonb_ops` and `jsonb_path_ops`: the terms of a `jsonb`.
//!
//! ```text
//!   {"a": ["b", {"c": 1}]}   jsonb_ops:       key a, key b, key c, number 1
//!                            jsonb_path_ops:  hash of a, string b; hash of a, c, number 1
//! ```
//!
//! * `jsonb_ops` has a term for each key, each element and each value of a key. A string in an
//!   array is a key, because `?` finds it.
//! * `jsonb_path_ops` has a term for each scalar: a hash of it and the keys above it. Arrays are
//!   not part of the path.
//!
//! Source: PostgreSQL's `jsonb_gin.c`.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{InvertedClass, TermOperator, TermQuery, json_path, term};
use crate::datatype::DataType;
use crate::datum::stored_json::{self, JsonToken, StoredJson, StoredJsonReader};
use crate::datum::{Datum, Jsonb, Nested};
use crate::error::Result;
use crate::keycode;
use crate::numeric::Numeric;

const KEY: u8 = 1;
const NULL: u8 = 2;
const FALSE: u8 = 3;
const TRUE: u8 = 4;
const NUMBER: u8 = 5;
const STRING: u8 = 6;

/// The hash of the path of the value as a whole.
pub(super) const ROOT: u64 = 0;

/// A scalar in a value.
pub(super) enum JsonScalar<'a> {
    Null,
    Bool(bool),
    Number(&'a Numeric),
    String(&'a str),
}

pub(super) fn terms(class: InvertedClass, value: &Datum) -> Result<Vec<Vec<u8>>> {
    let Datum::Nested(Nested::Jsonb(json)) = value else { return Ok(Vec::new()) };
    let mut stored = Vec::new();
    let stored = stored_form(json, &mut stored);
    let mut terms = Vec::new();
    match class {
        InvertedClass::JsonbPath => add_paths(&mut stored.reader(), ROOT, &mut terms)?,
        _ => add_parts(&mut stored.reader(), true, &mut terms)?,
    }
    Ok(terms)
}

fn stored_form<'a>(json: &'a Jsonb, buffer: &'a mut Vec<u8>) -> StoredJson<'a> {
    match json.stored() {
        Some(stored) => stored,
        None => {
            stored_json::write(json, buffer);
            StoredJson::of_checked(buffer)
        }
    }
}

pub(super) fn query(
    class: InvertedClass,
    operator: TermOperator,
    operand: &Datum,
) -> Result<TermQuery> {
    Ok(match (operator, operand) {
        (TermOperator::Contains, operand) => {
            TermQuery::all_of(terms(class, operand)?.into_iter().map(TermQuery::Term))
        }
        (TermOperator::HasKey, Datum::Text(key)) => key_term(key),
        (TermOperator::HasAnyKey, keys) => TermQuery::any_of(key_terms(keys)),
        (TermOperator::HasAllKeys, keys) => TermQuery::all_of(key_terms(keys)),
        (TermOperator::PathExists, Datum::Nested(Nested::JsonPath(path))) => {
            json_path::of_exists(class, path)?
        }
        (TermOperator::PathMatches, Datum::Nested(Nested::JsonPath(path))) => {
            json_path::of_match(class, path)?
        }
        _ => TermQuery::All,
    })
}

fn key_terms(keys: &Datum) -> Vec<TermQuery> {
    let Datum::Nested(Nested::Array(keys)) = keys else { return vec![TermQuery::All] };
    keys.elements.iter().filter_map(Datum::as_str).map(key_term).collect()
}

/// Returns the term of a key, or of a string in an array.
pub(super) fn key_term(key: &str) -> TermQuery {
    TermQuery::Term(tagged(KEY, key.as_bytes()))
}

/// Returns the term of a scalar for `jsonb_ops`, of the value of a key unless it is a string in an
/// array.
pub(super) fn part_term(scalar: &JsonScalar<'_>, is_element: bool) -> Result<Vec<u8>> {
    match scalar {
        JsonScalar::String(text) if is_element => Ok(tagged(KEY, text.as_bytes())),
        scalar => scalar.bytes().map(term),
    }
}

/// Returns the hash of a path that is continued by a key.
pub(super) fn path_of_key(path: u64, key: &str) -> u64 {
    xxh3_64_with_seed(key.as_bytes(), path)
}

/// Returns the term of a scalar at a path for `jsonb_path_ops`.
pub(super) fn path_term(scalar: &JsonScalar<'_>, path: u64) -> Result<Vec<u8>> {
    let hash = xxh3_64_with_seed(&scalar.bytes()?, path);
    Ok(hash.to_be_bytes().to_vec())
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    term([&[tag], bytes].concat())
}

impl JsonScalar<'_> {
    /// Returns its type and value; equal numbers have equal bytes.
    fn bytes(&self) -> Result<Vec<u8>> {
        Ok(match self {
            JsonScalar::Null => vec![NULL],
            JsonScalar::Bool(false) => vec![FALSE],
            JsonScalar::Bool(true) => vec![TRUE],
            JsonScalar::String(text) => [&[STRING], text.as_bytes()].concat(),
            JsonScalar::Number(number) => {
                let mut bytes = vec![NUMBER];
                let number = Datum::Numeric((*number).clone());
                keycode::encode(&number, &DataType::Numeric, false, false, &mut bytes)?;
                bytes
            }
        })
    }
}

/// Adds the terms of the next value for `jsonb_ops`.
fn add_parts(
    reader: &mut StoredJsonReader<'_>,
    is_element: bool,
    terms: &mut Vec<Vec<u8>>,
) -> Result<()> {
    let scalar = match reader.token()? {
        JsonToken::Array(count) => {
            return (0..count).try_for_each(|_| add_parts(reader, true, terms));
        }
        JsonToken::Object(count) => {
            for _ in 0..count {
                terms.push(tagged(KEY, reader.text()?.as_bytes()));
                add_parts(reader, false, terms)?;
            }
            return Ok(());
        }
        JsonToken::Null => part_term(&JsonScalar::Null, is_element),
        JsonToken::Bool(value) => part_term(&JsonScalar::Bool(value), is_element),
        JsonToken::Number(number) => part_term(&JsonScalar::Number(&number), is_element),
        JsonToken::String(text) => part_term(&JsonScalar::String(text), is_element),
    };
    terms.push(scalar?);
    Ok(())
}

/// Adds the terms of the next value, which is at a path, for `jsonb_path_ops`.
fn add_paths(reader: &mut StoredJsonReader<'_>, path: u64, terms: &mut Vec<Vec<u8>>) -> Result<()> {
    let scalar = match reader.token()? {
        JsonToken::Array(count) => {
            return (0..count).try_for_each(|_| add_paths(reader, path, terms));
        }
        JsonToken::Object(count) => {
            for _ in 0..count {
                let path = path_of_key(path, reader.text()?);
                add_paths(reader, path, terms)?;
            }
            return Ok(());
        }
        JsonToken::Null => path_term(&JsonScalar::Null, path),
        JsonToken::Bool(value) => path_term(&JsonScalar::Bool(value), path),
        JsonToken::Number(number) => path_term(&JsonScalar::Number(&number), path),
        JsonToken::String(text) => path_term(&JsonScalar::String(text), path),
    };
    terms.push(scalar?);
    Ok(())
}
