//! Whole strings: joining, case, padding, trimming, counting.
//!
//! Lengths and positions count characters, not bytes. Case follows Unicode's one-to-one mappings,
//! as PostgreSQL's C.UTF-8 and libc locales do.

use super::argument::{bytea, bytea_datum, int4, int8, text, text_datum};
use super::arithmetic::int4_range;
use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, Bytea, Char, Int4, Int8, Text};
use crate::datum::Datum;
use crate::error::{Error, Result, sqlstate};

/// The longest string that a function makes: PostgreSQL's limit of one gigabyte.
pub(super) const MAX_TEXT_BYTES: usize = 0x3fff_ffff;

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("||", &[Text, Text], Text, join),
    row("textcat", &[Text, Text], Text, join),
    row("||", &[Bytea, Bytea], Bytea, |a, _| {
        Ok(bytea_datum([bytea(&a[0]), bytea(&a[1])].concat()))
    }),
    row("concat", &[Text], Text, concat).variadic().takes_null(),
    row("concat_ws", &[Text, Text], Text, concat_ws).variadic().takes_null(),
    row("length", &[Text], Int4, |a, _| count(text(&a[0]).chars().count())),
    row("length", &[Char], Int4, |a, _| count(unpadded(&a[0]).chars().count())),
    row("length", &[Bytea], Int4, |a, _| count(bytea(&a[0]).len())),
    row("char_length", &[Text], Int4, |a, _| count(text(&a[0]).chars().count())),
    row("char_length", &[Char], Int4, |a, _| count(unpadded(&a[0]).chars().count())),
    row("character_length", &[Text], Int4, |a, _| count(text(&a[0]).chars().count())),
    row("character_length", &[Char], Int4, |a, _| count(unpadded(&a[0]).chars().count())),
    row("octet_length", &[Text], Int4, |a, _| count(text(&a[0]).len())),
    row("octet_length", &[Char], Int4, |a, _| count(text(&a[0]).len())),
    row("octet_length", &[Bytea], Int4, |a, _| count(bytea(&a[0]).len())),
    row("bit_length", &[Text], Int4, |a, _| count(text(&a[0]).len() * 8)),
    row("bit_length", &[Bytea], Int4, |a, _| count(bytea(&a[0]).len() * 8)),
    row("lower", &[Text], Text, |a, _| Ok(text_datum(lower(text(&a[0]))))),
    row("upper", &[Text], Text, |a, _| Ok(text_datum(upper(text(&a[0]))))),
    row("initcap", &[Text], Text, |a, _| Ok(text_datum(initcap(text(&a[0]))))),
    row("btrim", &[Text], Text, |a, _| Ok(text_datum(text(&a[0]).trim_matches(' ')))),
    row("btrim", &[Text, Text], Text, |a, _| {
        let set = text(&a[1]);
        Ok(text_datum(text(&a[0]).trim_matches(|c| set.contains(c))))
    }),
    row("btrim", &[Bytea, Bytea], Bytea, |a, _| Ok(trim_bytes(a, true, true))),
    row("ltrim", &[Text], Text, |a, _| Ok(text_datum(text(&a[0]).trim_start_matches(' ')))),
    row("ltrim", &[Text, Text], Text, |a, _| {
        let set = text(&a[1]);
        Ok(text_datum(text(&a[0]).trim_start_matches(|c| set.contains(c))))
    }),
    row("ltrim", &[Bytea, Bytea], Bytea, |a, _| Ok(trim_bytes(a, true, false))),
    row("rtrim", &[Text], Text, |a, _| Ok(text_datum(text(&a[0]).trim_end_matches(' ')))),
    row("rtrim", &[Text, Text], Text, |a, _| {
        let set = text(&a[1]);
        Ok(text_datum(text(&a[0]).trim_end_matches(|c| set.contains(c))))
    }),
    row("rtrim", &[Bytea, Bytea], Bytea, |a, _| Ok(trim_bytes(a, false, true))),
    row("lpad", &[Text, Int4], Text, |a, _| pad(text(&a[0]), int4(&a[1]), " ", true)),
    row("lpad", &[Text, Int4, Text], Text, |a, _| pad(text(&a[0]), int4(&a[1]), text(&a[2]), true)),
    row("rpad", &[Text, Int4], Text, |a, _| pad(text(&a[0]), int4(&a[1]), " ", false)),
    row("rpad", &[Text, Int4, Text], Text, |a, _| {
        pad(text(&a[0]), int4(&a[1]), text(&a[2]), false)
    }),
    row("repeat", &[Text, Int4], Text, repeat),
    row("reverse", &[Text], Text, |a, _| {
        Ok(text_datum(text(&a[0]).chars().rev().collect::<String>()))
    }),
    row("starts_with", &[Text, Text], Bool, starts_with),
    row("^@", &[Text, Text], Bool, starts_with),
    row("ascii", &[Text], Int4, |a, _| {
        Ok(Datum::Int4(text(&a[0]).chars().next().map_or(0, |c| u32::from(c).cast_signed())))
    }),
    row("chr", &[Int4], Text, chr),
    row("to_hex", &[Int4], Text, |a, _| Ok(text_datum(format!("{:x}", int4(&a[0]))))),
    row("to_hex", &[Int8], Text, |a, _| Ok(text_datum(format!("{:x}", int8(&a[0]))))),
];

fn join(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (left, right) = (text(&arguments[0]), text(&arguments[1]));
    let mut joined = String::with_capacity(left.len() + right.len());
    joined.push_str(left);
    joined.push_str(right);
    Ok(text_datum(joined))
}

fn concat(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let mut joined = String::new();
    for argument in arguments {
        if let Datum::Text(part) = argument {
            joined.push_str(part);
        }
    }
    Ok(text_datum(joined))
}

fn concat_ws(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let Datum::Text(separator) = &arguments[0] else {
        return Ok(Datum::Null);
    };
    let mut joined = String::new();
    let parts = arguments[1..].iter().filter(|part| !matches!(part, Datum::Null));
    for (index, part) in parts.enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text(part));
    }
    Ok(text_datum(joined))
}

/// Returns a `char` value without its padding.
fn unpadded(datum: &Datum) -> &str {
    text(datum).trim_end_matches(' ')
}

pub(super) fn count(length: usize) -> Result<Datum> {
    i32::try_from(length).map(Datum::Int4).map_err(|_| int4_range())
}

/// Returns the string in lower case.
pub(super) fn lower(string: &str) -> String {
    string.chars().map(lower_char).collect()
}

/// Returns the character in lower case, if that is one character.
pub(super) fn lower_char(character: char) -> char {
    let mut lowered = character.to_lowercase();
    match (lowered.next(), lowered.next()) {
        (Some(one), None) => one,
        _ => character,
    }
}

fn upper_char(character: char) -> char {
    let mut raised = character.to_uppercase();
    match (raised.next(), raised.next()) {
        (Some(one), None) => one,
        _ => character,
    }
}

fn upper(string: &str) -> String {
    string.chars().map(upper_char).collect()
}

fn initcap(string: &str) -> String {
    let mut within_word = false;
    let mut capitalise = |character: char| {
        let changed = if within_word { lower_char(character) } else { upper_char(character) };
        within_word = character.is_alphanumeric();
        changed
    };
    string.chars().map(&mut capitalise).collect()
}

fn trim_bytes(arguments: &[Datum], start: bool, end: bool) -> Datum {
    let (mut bytes, set) = (bytea(&arguments[0]), bytea(&arguments[1]));
    while let Some((first, rest)) = bytes.split_first()
        && start
        && set.contains(first)
    {
        bytes = rest;
    }
    while let Some((last, rest)) = bytes.split_last()
        && end
        && set.contains(last)
    {
        bytes = rest;
    }
    bytea_datum(bytes)
}

fn pad(string: &str, length: i32, fill: &str, left: bool) -> Result<Datum> {
    let length = usize::try_from(length).unwrap_or(0);
    let have = string.chars().count();
    if have >= length || fill.is_empty() {
        return Ok(text_datum(string.chars().take(length).collect::<String>()));
    }
    // As PostgreSQL does, each character counts as the longest there is.
    if length.saturating_mul(4) > MAX_TEXT_BYTES {
        return Err(too_long());
    }
    let padding = fill.chars().cycle().take(length - have);
    let padded: String = if left {
        padding.chain(string.chars()).collect()
    } else {
        string.chars().chain(padding).collect()
    };
    Ok(text_datum(padded))
}

fn repeat(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (string, times) = (text(&arguments[0]), usize::try_from(int4(&arguments[1])).unwrap_or(0));
    match string.len().checked_mul(times) {
        Some(bytes) if bytes <= MAX_TEXT_BYTES => Ok(text_datum(string.repeat(times))),
        _ => Err(too_long()),
    }
}

pub(super) fn too_long() -> Error {
    Error::new("54000", "requested length too large")
}

fn starts_with(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    Ok(Datum::Bool(text(&arguments[0]).starts_with(text(&arguments[1]))))
}

fn chr(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    const PROGRAM_LIMIT_EXCEEDED: &str = "54000";
    let code = int4(&arguments[0]);
    if code == 0 {
        return Err(Error::new(PROGRAM_LIMIT_EXCEEDED, "null character not permitted"));
    }
    let Ok(point) = u32::try_from(code) else {
        return Err(invalid_parameter("character number must be positive"));
    };
    match char::from_u32(point) {
        Some(character) => Ok(text_datum(character.to_string())),
        None if point > 0x0010_ffff => Err(Error::new(
            PROGRAM_LIMIT_EXCEEDED,
            format!("requested character too large for encoding: {code}"),
        )),
        None => Err(Error::new(
            PROGRAM_LIMIT_EXCEEDED,
            format!("requested character not valid for encoding: {code}"),
        )),
    }
}

/// Returns the error of a parameter that makes no sense.
pub(super) fn invalid_parameter(message: impl Into<String>) -> Error {
    Error::new(sqlstate::INVALID_PARAMETER_VALUE, message)
}
