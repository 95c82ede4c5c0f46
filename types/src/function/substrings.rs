//! Parts of strings: cutting out, finding, replacing.
//!
//! Positions count characters from 1.

use super::argument::{bytea, bytea_datum, int4, text, text_datum};
use super::arithmetic::int4_range;
use super::strings::{count, invalid_parameter};
use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bytea, Int4, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("substr", &[Text, Int4], Text, substring),
    row("substr", &[Text, Int4, Int4], Text, substring),
    row("substring", &[Text, Int4], Text, substring),
    row("substring", &[Text, Int4, Int4], Text, substring),
    row("substr", &[Bytea, Int4], Bytea, substring_bytes),
    row("substr", &[Bytea, Int4, Int4], Bytea, substring_bytes),
    row("substring", &[Bytea, Int4], Bytea, substring_bytes),
    row("substring", &[Bytea, Int4, Int4], Bytea, substring_bytes),
    row("left", &[Text, Int4], Text, |a, _| {
        let string = text(&a[0]);
        Ok(text_datum(&string[..byte_position(string, head_length(string, int4(&a[1])))]))
    }),
    row("right", &[Text, Int4], Text, |a, _| {
        let string = text(&a[0]);
        let wanted = int4(&a[1]);
        let skipped = match usize::try_from(wanted) {
            Ok(wanted) => string.chars().count().saturating_sub(wanted),
            // The smallest has no opposite: PostgreSQL then leaves nothing out.
            Err(_) => wanted.checked_neg().map_or(0, |skipped| skipped as usize),
        };
        Ok(text_datum(&string[byte_position(string, skipped)..]))
    }),
    row("position", &[Text, Text], Int4, position),
    row("strpos", &[Text, Text], Int4, position),
    row("position", &[Bytea, Bytea], Int4, |a, _| {
        let (bytes, wanted) = (bytea(&a[0]), bytea(&a[1]));
        if wanted.is_empty() {
            return Ok(Datum::Int4(1));
        }
        count(bytes.windows(wanted.len()).position(|w| w == wanted).map_or(0, |at| at + 1))
    }),
    row("replace", &[Text, Text, Text], Text, |a, _| {
        let (string, from) = (text(&a[0]), text(&a[1]));
        if from.is_empty() {
            return Ok(a[0].clone());
        }
        Ok(text_datum(string.replace(from, text(&a[2]))))
    }),
    row("translate", &[Text, Text, Text], Text, translate),
    row("split_part", &[Text, Text, Int4], Text, split_part),
    row("overlay", &[Text, Text, Int4], Text, overlay),
    row("overlay", &[Text, Text, Int4, Int4], Text, overlay),
];

/// Returns the half-open range of zero-based positions that `substring(… from start for length)`
/// names.
fn span(arguments: &[Datum]) -> Result<std::ops::Range<usize>> {
    let start = i64::from(int4(&arguments[1])) - 1;
    let end = match arguments.get(2) {
        None => i64::MAX,
        Some(length) if int4(length) < 0 => {
            return Err(Error::new("22011", "negative substring length not allowed"));
        }
        Some(length) => start + i64::from(int4(length)),
    };
    let clip = |position: i64| usize::try_from(position.max(0)).unwrap_or(usize::MAX);
    Ok(clip(start)..clip(end))
}

/// Returns the byte at which character `index` of a string begins; its length if there is none.
fn byte_position(string: &str, index: usize) -> usize {
    if string.is_ascii() {
        return index.min(string.len());
    }
    string.char_indices().nth(index).map_or(string.len(), |(at, _)| at)
}

fn substring(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (string, span) = (text(&arguments[0]), span(arguments)?);
    let rest = &string[byte_position(string, span.start)..];
    Ok(text_datum(&rest[..byte_position(rest, span.end - span.start)]))
}

fn substring_bytes(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (bytes, span) = (bytea(&arguments[0]), span(arguments)?);
    let (start, end) = (span.start.min(bytes.len()), span.end.min(bytes.len()));
    Ok(bytea_datum(&bytes[start..end]))
}

/// Returns the characters that `left(string, wanted)` keeps.
fn head_length(string: &str, wanted: i32) -> usize {
    match usize::try_from(wanted) {
        Ok(wanted) => wanted,
        Err(_) => string.chars().count().saturating_sub(wanted.unsigned_abs() as usize),
    }
}

fn position(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let string = text(&arguments[0]);
    match string.find(text(&arguments[1])) {
        Some(at) => count(string[..at].chars().count() + 1),
        None => Ok(Datum::Int4(0)),
    }
}

fn translate(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let from: Vec<char> = text(&arguments[1]).chars().collect();
    let to: Vec<char> = text(&arguments[2]).chars().collect();
    let change = |character: char| match from.iter().position(|c| *c == character) {
        Some(index) => to.get(index).copied(),
        None => Some(character),
    };
    Ok(text_datum(text(&arguments[0]).chars().filter_map(change).collect::<String>()))
}

fn split_part(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (string, separator) = (text(&arguments[0]), text(&arguments[1]));
    let field = int4(&arguments[2]);
    if field == 0 {
        return Err(invalid_parameter("field position must not be zero"));
    }
    if separator.is_empty() {
        return Ok(text_datum(if field.unsigned_abs() == 1 { string } else { "" }));
    }
    let skipped = field.unsigned_abs() as usize - 1;
    let part = if field > 0 {
        string.split(separator).nth(skipped)
    } else {
        let parts: Vec<&str> = string.split(separator).collect();
        parts.iter().rev().nth(skipped).copied()
    };
    Ok(text_datum(part.unwrap_or("")))
}

/// Checks that the end of what is replaced is a number that PostgreSQL can hold.
pub(super) fn check_end(start: i64, length: i64) -> Result<()> {
    i32::try_from(start + length).map(drop).map_err(|_| int4_range())
}

fn overlay(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (string, replacement) = (text(&arguments[0]), text(&arguments[1]));
    let start = int4(&arguments[2]);
    if start <= 0 {
        return Err(Error::new("22011", "negative substring length not allowed"));
    }
    let replaced = match arguments.get(3) {
        Some(length) => i64::from(int4(length)),
        None => replacement.chars().count() as i64,
    };
    check_end(start.into(), replaced)?;
    let head = i64::from(start) - 1;
    let index = |at: i64| byte_position(string, usize::try_from(at.max(0)).unwrap_or(usize::MAX));
    let (head, tail) = (&string[..index(head)], &string[index(head + replaced)..]);
    Ok(text_datum([head, replacement, tail].concat()))
}
