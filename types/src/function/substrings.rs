//! Functions of parts of strings: extraction, search, replacement.
//!
//! Positions count characters from 1.

use ahash::AHashMap;
use memchr::memmem::Finder;
use smallvec::SmallVec;

use super::argument::{bytea, bytea_datum, int4, text, text_datum};
use super::arithmetic::int4_range;
use super::strings::{count, invalid_parameter, joined};
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bytea, Int4, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("substr", &[Text, Int4], Text, substring),
    row("substr", &[Text, Int4, Int4], Text, substring),
    row("substring", &[Text, Int4], Text, substring),
    row("substring", &[Text, Int4, Int4], Text, substring),
    row("substr", &[Bytea, Int4], Bytea, substring_bytes),
    row("substr", &[Bytea, Int4, Int4], Bytea, substring_bytes),
    row("substring", &[Bytea, Int4], Bytea, substring_bytes),
    row("substring", &[Bytea, Int4, Int4], Bytea, substring_bytes),
    row("left", &[Text, Int4], Text, |a, c| {
        let (string, mut pace) = (text(&a[0]), c.pace());
        let kept = head_length(string, int4(&a[1]), &mut pace)?;
        let end = pace.byte_position(string, kept)?;
        pace.copy::<String>(&string[..end]).map(text_datum)
    }),
    row("right", &[Text, Int4], Text, |a, c| {
        let (string, mut pace) = (text(&a[0]), c.pace());
        let wanted = int4(&a[1]);
        let skipped = match usize::try_from(wanted) {
            Ok(wanted) => pace.count(string)?.saturating_sub(wanted),
            // The minimum integer cannot be negated: PostgreSQL then skips nothing.
            Err(_) => wanted.checked_neg().map_or(0, |skipped| skipped as usize),
        };
        let start = pace.byte_position(string, skipped)?;
        pace.copy::<String>(&string[start..]).map(text_datum)
    }),
    row("position", &[Text, Text], Int4, position),
    row("strpos", &[Text, Text], Int4, position),
    row("position", &[Bytea, Bytea], Int4, |a, c| {
        let sought = Finder::new(bytea(&a[1]));
        count(c.pace().find(&sought, bytea(&a[0]))?.map_or(0, |at| at + 1))
    }),
    row("replace", &[Text, Text, Text], Text, replace),
    row("translate", &[Text, Text, Text], Text, translate),
    row("split_part", &[Text, Text, Int4], Text, split_part),
    row("overlay", &[Text, Text, Int4], Text, overlay),
    row("overlay", &[Text, Text, Int4, Int4], Text, overlay),
];

/// Returns the half-open range of zero-based positions of `substring(… from start for length)`.
fn span(arguments: &[Datum]) -> Result<std::ops::Range<usize>> {
    let start = i64::from(int4(&arguments[1])) - 1;
    let end = match arguments.get(2) {
        None => i64::MAX,
        Some(length) if int4(length) < 0 => {
            bail!(SUBSTRING_ERROR: "negative substring length not allowed");
        }
        Some(length) => start + i64::from(int4(length)),
    };
    let clip = |position: i64| usize::try_from(position.max(0)).unwrap_or(usize::MAX);
    Ok(clip(start)..clip(end))
}

fn substring(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (string, span) = (text(&arguments[0]), span(arguments)?);
    let mut pace = context.pace();
    let rest = &string[pace.byte_position(string, span.start)?..];
    let end = pace.byte_position(rest, span.end - span.start)?;
    pace.copy::<String>(&rest[..end]).map(text_datum)
}

fn substring_bytes(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (bytes, span) = (bytea(&arguments[0]), span(arguments)?);
    let (start, end) = (span.start.min(bytes.len()), span.end.min(bytes.len()));
    context.pace().copy::<Vec<u8>>(&bytes[start..end]).map(bytea_datum)
}

/// Returns the number of characters in `left(string, wanted)`.
fn head_length(string: &str, wanted: i32, pace: &mut InterruptPacer<'_>) -> Result<usize> {
    match usize::try_from(wanted) {
        Ok(wanted) => Ok(wanted),
        Err(_) => Ok(pace.count(string)?.saturating_sub(wanted.unsigned_abs() as usize)),
    }
}

fn position(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let string = text(&arguments[0]);
    let mut pace = context.pace();
    match pace.find(&Finder::new(text(&arguments[1])), string.as_bytes())? {
        Some(at) => count(pace.count(&string[..at])? + 1),
        None => Ok(Datum::Int4(0)),
    }
}

fn replace(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (from, to) = (text(&arguments[1]), text(&arguments[2]));
    if from.is_empty() {
        return Ok(arguments[0].clone());
    }
    let sought = Finder::new(from);
    let mut pace = context.pace();
    let mut rest = text(&arguments[0]);
    let mut out: String = pace.buffer(rest.len())?;
    while let Some(at) = pace.find(&sought, rest.as_bytes())? {
        pace.enlarge(&mut out, &rest[..at])?;
        pace.enlarge(&mut out, to)?;
        rest = &rest[at + from.len()..];
    }
    pace.enlarge(&mut out, rest)?;
    Ok(text_datum(out))
}

/// Number of characters above which a hash table is used.
const FEW: usize = 16;

fn translate(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let string = text(&arguments[0]);
    let mut to = text(&arguments[2]).chars();
    let changes = text(&arguments[1]).chars().map(|from| (from, to.next()));
    let mut pace = context.pace();
    if arguments[1].as_str().is_some_and(|from| from.len() <= FEW) {
        let changes: SmallVec<[(char, Option<char>); FEW]> = changes.collect();
        let change = |character: char| {
            let change = changes.iter().find(|(from, _)| *from == character);
            change.map_or(Some(character), |(_, to)| *to)
        };
        return pace.map_chars(string, change).map(text_datum);
    }
    let mut known: AHashMap<char, Option<char>> = AHashMap::new();
    for (from, to) in changes {
        known.entry(from).or_insert(to);
        pace.count_steps(1)?;
    }
    let change = |character: char| known.get(&character).copied().unwrap_or(Some(character));
    pace.map_chars(string, change).map(text_datum)
}

fn split_part(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (string, separator) = (text(&arguments[0]), text(&arguments[1]));
    let field = int4(&arguments[2]);
    if field == 0 {
        return Err(invalid_parameter("field position must not be zero"));
    }
    if separator.is_empty() {
        return Ok(if field.unsigned_abs() == 1 { arguments[0].clone() } else { text_datum("") });
    }
    let sought = Finder::new(separator);
    let mut pace = context.pace();
    let mut skipped = field.unsigned_abs() as usize - 1;
    if field < 0 {
        let mut count = 1;
        let mut rest = string;
        while let Some(at) = pace.find(&sought, rest.as_bytes())? {
            count += 1;
            rest = &rest[at + separator.len()..];
        }
        match (count - 1_usize).checked_sub(skipped) {
            Some(before) => skipped = before,
            None => return Ok(text_datum("")),
        }
    }
    let mut rest = string;
    loop {
        let end = pace.find(&sought, rest.as_bytes())?;
        if skipped == 0 {
            return pace.copy::<String>(&rest[..end.unwrap_or(rest.len())]).map(text_datum);
        }
        match end {
            Some(end) => rest = &rest[end + separator.len()..],
            None => return Ok(text_datum("")),
        }
        skipped -= 1;
    }
}

/// Checks that the end position of a replacement is an `integer`.
pub(super) fn check_end(start: i64, length: i64) -> Result<()> {
    i32::try_from(start + length).map(drop).map_err(|_| int4_range())
}

fn overlay(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (string, replacement) = (text(&arguments[0]), text(&arguments[1]));
    let start = int4(&arguments[2]);
    if start <= 0 {
        bail!(SUBSTRING_ERROR: "negative substring length not allowed");
    }
    let mut pace = context.pace();
    let replaced = match arguments.get(3) {
        Some(length) => i64::from(int4(length)),
        None => pace.count(replacement)? as i64,
    };
    check_end(start.into(), replaced)?;
    let head = i64::from(start) - 1;
    let mut index =
        |at: i64| pace.byte_position(string, usize::try_from(at.max(0)).unwrap_or(usize::MAX));
    let (head, tail) = (&string[..index(head)?], &string[index(head + replaced)?..]);
    joined::<String>(&[head, replacement, tail], context).map(text_datum)
}
