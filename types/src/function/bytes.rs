//! Binary strings: byte and bit access, overlay, conversion between encodings.
//!
//! Text is UTF-8; `convert_from` and `convert_to` support the encodings of [`crate::encoding`].

use super::argument::{bytea, bytea_datum, int4, int8, text, text_datum};
use super::strings::{count, joined};
use super::substrings::check_end;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bytea, Int4, Int8, Name, Text};
use crate::datum::Datum;
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::interruptible::{CHUNK_BYTES, InterruptPacer, chunks};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("get_byte", &[Bytea, Int4], Int4, |a, _| {
        let (bytes, index) = (bytea(&a[0]), int4(&a[1]));
        let at = position(index.into(), bytes.len())?;
        Ok(Datum::Int4(bytes[at].into()))
    }),
    row("set_byte", &[Bytea, Int4, Int4], Bytea, |a, c| {
        let at = position(int4(&a[1]).into(), bytea(&a[0]).len())?;
        let mut bytes: Vec<u8> = c.pace().copy(bytea(&a[0]))?;
        bytes[at] = int4(&a[2]) as u8;
        Ok(bytea_datum(bytes))
    }),
    row("get_bit", &[Bytea, Int8], Int4, |a, _| {
        let bytes = bytea(&a[0]);
        let bit = position(int8(&a[1]), bytes.len() * 8)?;
        Ok(Datum::Int4((bytes[bit / 8] >> (bit % 8) & 1).into()))
    }),
    row("set_bit", &[Bytea, Int8, Int4], Bytea, set_bit),
    row("bit_count", &[Bytea], Int8, |a, c| {
        let (mut ones, mut pace) = (0, c.pace());
        for piece in chunks(bytea(&a[0])) {
            ones += piece.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>();
            pace.count_steps(piece.len())?;
        }
        Ok(Datum::Int8(ones))
    }),
    row("overlay", &[Bytea, Bytea, Int4], Bytea, overlay),
    row("overlay", &[Bytea, Bytea, Int4, Int4], Bytea, overlay),
    row("length", &[Bytea, Name], Int4, |a, c| {
        let mut pace = c.pace();
        let decoded = decoded(bytea(&a[0]), text(&a[1]), "", &mut pace)?;
        count(pace.count(&decoded)?)
    })
    .stable(),
    row("convert_from", &[Bytea, Name], Text, |a, c| {
        decoded(bytea(&a[0]), text(&a[1]), "source ", &mut c.pace()).map(text_datum)
    })
    .stable(),
    row("convert_to", &[Text, Name], Bytea, |a, c| {
        encoded(text(&a[0]), text(&a[1]), &mut c.pace()).map(bytea_datum)
    })
    .stable(),
    row("convert", &[Bytea, Name, Name], Bytea, |a, c| {
        let mut pace = c.pace();
        let decoded = decoded(bytea(&a[0]), text(&a[1]), "source ", &mut pace)?;
        encoded(&decoded, text(&a[2]), &mut pace).map(bytea_datum)
    })
    .stable(),
];

/// Checks an index of a byte or bit.
fn position(index: i64, length: usize) -> Result<usize> {
    usize::try_from(index).ok().filter(|index| *index < length).ok_or_else(|| {
        let last = length as i64 - 1;
        err!(ARRAY_SUBSCRIPT_ERROR: "index {index} out of valid range, 0..{last}")
    })
}

fn set_bit(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let bit = position(int8(&arguments[1]), bytea(&arguments[0]).len() * 8)?;
    let mut bytes: Vec<u8> = context.pace().copy(bytea(&arguments[0]))?;
    let mask = 1 << (bit % 8);
    match int4(&arguments[2]) {
        0 => bytes[bit / 8] &= !mask,
        1 => bytes[bit / 8] |= mask,
        _ => bail!(INVALID_PARAMETER_VALUE: "new bit must be 0 or 1"),
    }
    Ok(bytea_datum(bytes))
}

fn overlay(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (bytes, replacement) = (bytea(&arguments[0]), bytea(&arguments[1]));
    let start = i64::from(int4(&arguments[2]));
    if start <= 0 {
        bail!(SUBSTRING_ERROR: "negative substring length not allowed");
    }
    let replaced = arguments.get(3).map_or(replacement.len() as i64, |length| int4(length).into());
    check_end(start, replaced)?;
    let clip = |at: i64| usize::try_from(at).unwrap_or(0).min(bytes.len());
    let (head, tail) = (&bytes[..clip(start - 1)], &bytes[clip(start - 1 + replaced)..]);
    joined::<Vec<u8>>(&[head, replacement, tail], context).map(bytea_datum)
}

fn encoding(name: &str, role: &str) -> Result<&'static Encoding> {
    let found = Encoding::by_name(name)
        .ok_or_else(|| err!(INVALID_PARAMETER_VALUE: "invalid {role}encoding name \"{name}\""))?;
    // Text in SQL_ASCII has no known encoding that could be converted.
    if !found.is_supported() || found.name == "SQL_ASCII" {
        bail!(FEATURE_NOT_SUPPORTED: "conversion of text in encoding {name} is not supported");
    }
    Ok(found)
}

fn decoded(bytes: &[u8], name: &str, role: &str, pace: &mut InterruptPacer<'_>) -> Result<String> {
    let encoding = encoding(name, role)?;
    if !encoding.is_utf8() {
        let (mut decoded, mut rest) = (pace.buffer::<String>(bytes.len())?, bytes);
        while !rest.is_empty() {
            // A chunk of whole characters; an incomplete character at the end is an error.
            let most = rest.len().min(CHUNK_BYTES);
            let whole = encoding.whole_length(&rest[..most]);
            let (piece, behind) = rest.split_at(if whole == 0 { most } else { whole });
            decoded.push_str(&encoding.decode(piece)?);
            pace.count_steps(piece.len())?;
            rest = behind;
        }
        if decoded.contains('\0') {
            return Err(invalid_sequence(encoding.name, &[0]));
        }
        return Ok(decoded);
    }
    let decoded = pace.decode(bytes)?;
    if decoded.contains('\0') {
        return Err(invalid_sequence("UTF8", &[0]));
    }
    match &bytes[decoded.len()..] {
        [] => Ok(decoded),
        rest => {
            let whole = std::str::from_utf8(&rest[..rest.len().min(4)]);
            let invalid = whole.err().and_then(|error| error.error_len()).unwrap_or(rest.len());
            let shown = invalid.max(sequence_length(rest[0]));
            Err(invalid_sequence("UTF8", &rest[..shown.min(rest.len())]))
        }
    }
}

/// Returns the length of a UTF-8 sequence according to its first byte.
fn sequence_length(first: u8) -> usize {
    match first {
        0xf0..=0xf7 => 4,
        0xe0..=0xef => 3,
        0xc0..=0xdf => 2,
        _ => 1,
    }
}

fn invalid_sequence(name: &str, bytes: &[u8]) -> Error {
    let shown: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    err!(CHARACTER_NOT_IN_REPERTOIRE: "invalid byte sequence for encoding \"{name}\": {}", shown.join(" "))
}

fn encoded(string: &str, name: &str, pace: &mut InterruptPacer<'_>) -> Result<Vec<u8>> {
    let encoding = encoding(name, "destination ")?;
    if encoding.is_utf8() {
        return pace.copy(string.as_bytes());
    }
    let mut encoded: Vec<u8> = pace.buffer(string.len())?;
    for character in string.chars() {
        let mut buffer = [0; 4];
        encoding.encode(character.encode_utf8(&mut buffer), &mut encoded)?;
        pace.count_steps(1)?;
    }
    Ok(encoded)
}
