//! Functions of whole strings: concatenation, case, padding, trimming, counting.
//!
//! Lengths and positions count characters, not bytes. Case conversion uses Unicode's one-to-one
//! mappings, as PostgreSQL's C.UTF-8 and libc locales do.

use std::borrow::Cow;

use ahash::AHashSet;

use super::argument::{bytea, bytea_datum, int4, int8, text, text_datum};
use super::arithmetic::int4_range;
use super::{FunctionRow, KernelKind, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, Bytea, Char, Int4, Int8, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::{
    CHUNK_BYTES, ChunkedSlice, GrowableBuffer, InterruptPacer, MAX_BYTES, chunks, chunks_from_end,
};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("||", &[Text, Text], Text, join).shaped(KernelKind::Join),
    row("textcat", &[Text, Text], Text, join).shaped(KernelKind::Join),
    row("||", &[Bytea, Bytea], Bytea, |a, c| {
        joined::<Vec<u8>>(&[bytea(&a[0]), bytea(&a[1])], c).map(bytea_datum)
    })
    .shaped(KernelKind::Join),
    row("concat", &[Text], Text, concat).variadic().takes_null().shaped(KernelKind::Join),
    row("concat_ws", &[Text, Text], Text, concat_ws).variadic().takes_null(),
    row("length", &[Text], Int4, length),
    row("length", &[Char], Int4, |a, _| count(unpadded(&a[0]).chars().count())),
    row("length", &[Bytea], Int4, |a, _| count(bytea(&a[0]).len())),
    row("char_length", &[Text], Int4, length),
    row("char_length", &[Char], Int4, |a, _| count(unpadded(&a[0]).chars().count())),
    row("character_length", &[Text], Int4, length),
    row("character_length", &[Char], Int4, |a, _| count(unpadded(&a[0]).chars().count())),
    row("octet_length", &[Text], Int4, |a, _| count(text(&a[0]).len())),
    row("octet_length", &[Char], Int4, |a, _| count(text(&a[0]).len())),
    row("octet_length", &[Bytea], Int4, |a, _| count(bytea(&a[0]).len())),
    row("bit_length", &[Text], Int4, |a, _| count(text(&a[0]).len() * 8)),
    row("bit_length", &[Bytea], Int4, |a, _| count(bytea(&a[0]).len() * 8)),
    row("lower", &[Text], Text, |a, c| changed(a, lower_char, str::to_ascii_lowercase, c)),
    row("upper", &[Text], Text, |a, c| changed(a, upper_char, str::to_ascii_uppercase, c)),
    row("initcap", &[Text], Text, initcap),
    row("btrim", &[Text], Text, |a, c| trim_text(a, Sides::BOTH, c)),
    row("btrim", &[Text, Text], Text, |a, c| trim_text(a, Sides::BOTH, c)),
    row("btrim", &[Bytea, Bytea], Bytea, |a, c| trim_bytes(a, Sides::BOTH, c)),
    row("ltrim", &[Text], Text, |a, c| trim_text(a, Sides::LEFT, c)),
    row("ltrim", &[Text, Text], Text, |a, c| trim_text(a, Sides::LEFT, c)),
    row("ltrim", &[Bytea, Bytea], Bytea, |a, c| trim_bytes(a, Sides::LEFT, c)),
    row("rtrim", &[Text], Text, |a, c| trim_text(a, Sides::RIGHT, c)),
    row("rtrim", &[Text, Text], Text, |a, c| trim_text(a, Sides::RIGHT, c)),
    row("rtrim", &[Bytea, Bytea], Bytea, |a, c| trim_bytes(a, Sides::RIGHT, c)),
    row("lpad", &[Text, Int4], Text, |a, c| pad(a, true, c)),
    row("lpad", &[Text, Int4, Text], Text, |a, c| pad(a, true, c)),
    row("rpad", &[Text, Int4], Text, |a, c| pad(a, false, c)),
    row("rpad", &[Text, Int4, Text], Text, |a, c| pad(a, false, c)),
    row("repeat", &[Text, Int4], Text, repeat),
    row("reverse", &[Text], Text, reverse),
    row("starts_with", &[Text, Text], Bool, starts_with),
    row("^@", &[Text, Text], Bool, starts_with),
    row("ascii", &[Text], Int4, |a, _| {
        Ok(Datum::Int4(text(&a[0]).chars().next().map_or(0, |c| u32::from(c).cast_signed())))
    }),
    row("chr", &[Int4], Text, chr),
    row("to_hex", &[Int4], Text, |a, _| Ok(text_datum(format!("{:x}", int4(&a[0]))))),
    row("to_hex", &[Int8], Text, |a, _| Ok(text_datum(format!("{:x}", int8(&a[0]))))),
];

fn join(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    joined::<String>(&[text(&arguments[0]), text(&arguments[1])], context).map(text_datum)
}

/// Returns the concatenation of parts.
pub(super) fn joined<B: GrowableBuffer>(parts: &[&B::Part], context: &EvalContext) -> Result<B> {
    let length: usize = parts.iter().map(|part| part.length()).sum();
    if length > MAX_BYTES - 4 {
        bail!(INTERNAL_ERROR: "invalid memory alloc request size {}", length + 4);
    }
    let mut pace = context.pace();
    let mut joined: B = pace.buffer(length)?;
    parts.iter().try_for_each(|part| pace.append(&mut joined, part))?;
    Ok(joined)
}

fn concat(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let mut joined = String::new();
    let mut pace = context.pace();
    for argument in arguments {
        if let Datum::Text(part) = argument {
            pace.enlarge(&mut joined, &**part)?;
        }
    }
    Ok(text_datum(joined))
}

fn concat_ws(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let Datum::Text(separator) = &arguments[0] else {
        return Ok(Datum::Null);
    };
    let mut joined = String::new();
    let mut pace = context.pace();
    let parts = arguments[1..].iter().filter(|part| !matches!(part, Datum::Null));
    for (index, part) in parts.enumerate() {
        if index > 0 {
            pace.enlarge(&mut joined, &**separator)?;
        }
        pace.enlarge(&mut joined, text(part))?;
    }
    Ok(text_datum(joined))
}

fn length(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    count(context.pace().count(text(&arguments[0]))?)
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
    match string.is_ascii() {
        true => string.to_ascii_lowercase(),
        false => string.chars().map(lower_char).collect(),
    }
}

/// Returns the character in lower case, if that is one character.
pub(crate) fn lower_char(character: char) -> char {
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

/// Converts characters one by one; a short ASCII text at once.
fn changed(
    arguments: &[Datum],
    change: impl Fn(char) -> char,
    change_ascii: impl Fn(&str) -> String,
    context: &EvalContext,
) -> Result<Datum> {
    let string = text(&arguments[0]);
    if string.len() < CHUNK_BYTES && string.is_ascii() {
        return Ok(text_datum(change_ascii(string)));
    }
    let change = |character| Some(change(character));
    context.pace().map_chars(string, change).map(text_datum)
}

fn initcap(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let mut within_word = false;
    let capitalise = |character: char| {
        let changed = if within_word { lower_char(character) } else { upper_char(character) };
        within_word = character.is_alphanumeric();
        Some(changed)
    };
    context.pace().map_chars(text(&arguments[0]), capitalise).map(text_datum)
}

fn reverse(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let string = text(&arguments[0]);
    let mut pace = context.pace();
    let mut reversed: String = pace.buffer(string.len())?;
    for piece in chunks_from_end(string) {
        reversed.extend(piece.chars().rev());
        pace.count_steps(piece.len())?;
    }
    Ok(text_datum(reversed))
}

/// Sides that are trimmed.
#[derive(Clone, Copy)]
struct Sides {
    left: bool,
    right: bool,
}

impl Sides {
    const LEFT: Sides = Sides { left: true, right: false };
    const RIGHT: Sides = Sides { left: false, right: true };
    const BOTH: Sides = Sides { left: true, right: true };

    /// Returns a trimmed text or bytes. The functions return the number of bytes to trim at the
    /// start or end of a chunk.
    fn trim<'p, P: ChunkedSlice + ?Sized>(
        self,
        part: &'p P,
        pace: &mut InterruptPacer<'_>,
        [at_left, at_right]: [&dyn Fn(&P) -> usize; 2],
    ) -> Result<&'p P> {
        let mut rest = part;
        let mut lost = 0;
        for piece in chunks(part).take_while(|_| self.left) {
            let blank = at_left(piece);
            pace.count_steps(blank)?;
            lost += blank;
            if blank < piece.length() {
                break;
            }
        }
        rest = rest.cut(lost).1;
        let mut kept = rest.length();
        for piece in chunks_from_end(rest).take_while(|_| self.right) {
            let blank = at_right(piece);
            pace.count_steps(blank)?;
            kept -= blank;
            if blank < piece.length() {
                break;
            }
        }
        Ok(rest.cut(kept).0)
    }
}

/// Set of characters with a constant look-up time.
struct CharacterSet {
    ascii: [bool; 128],
    others: AHashSet<char>,
}

impl CharacterSet {
    fn new(characters: &str, pace: &mut InterruptPacer<'_>) -> Result<CharacterSet> {
        let mut set = CharacterSet { ascii: [false; 128], others: AHashSet::new() };
        for piece in chunks(characters) {
            pace.count_steps(piece.len())?;
            for character in piece.chars() {
                match set.ascii.get_mut(character as usize) {
                    Some(is_in_set) => *is_in_set = true,
                    None => drop(set.others.insert(character)),
                }
            }
        }
        Ok(set)
    }

    fn contains(&self, character: char) -> bool {
        let ascii = self.ascii.get(character as usize);
        ascii.copied().unwrap_or_else(|| self.others.contains(&character))
    }
}

fn trim_text(arguments: &[Datum], sides: Sides, context: &EvalContext) -> Result<Datum> {
    let string = text(&arguments[0]);
    let set = arguments.get(1).map_or(" ", text);
    let mut pace = context.pace();
    let set = CharacterSet::new(set, &mut pace)?;
    let at_left = |piece: &str| piece.len() - piece.trim_start_matches(|c| set.contains(c)).len();
    let at_right = |piece: &str| piece.len() - piece.trim_end_matches(|c| set.contains(c)).len();
    let kept = sides.trim(string, &mut pace, [&at_left, &at_right])?;
    match kept.len() == string.len() {
        true => Ok(arguments[0].clone()),
        false => pace.copy::<String>(kept).map(text_datum),
    }
}

fn trim_bytes(arguments: &[Datum], sides: Sides, context: &EvalContext) -> Result<Datum> {
    let bytes = bytea(&arguments[0]);
    let mut pace = context.pace();
    let mut set = [false; 256];
    for piece in chunks(bytea(&arguments[1])) {
        pace.count_steps(piece.len())?;
        piece.iter().for_each(|byte| set[usize::from(*byte)] = true);
    }
    let is_in_set = |byte: &&u8| set[usize::from(**byte)];
    let at_left = |piece: &[u8]| piece.iter().take_while(is_in_set).count();
    let at_right = |piece: &[u8]| piece.iter().rev().take_while(is_in_set).count();
    let kept = sides.trim(bytes, &mut pace, [&at_left, &at_right])?;
    pace.copy::<Vec<u8>>(kept).map(bytea_datum)
}

fn pad(arguments: &[Datum], left: bool, context: &EvalContext) -> Result<Datum> {
    let (string, fill) = (text(&arguments[0]), arguments.get(2).map_or(" ", text));
    let length = usize::try_from(int4(&arguments[1])).unwrap_or(0);
    let mut pace = context.pace();
    let have = pace.count(string)?;
    if have >= length || fill.is_empty() {
        let kept = pace.byte_position(string, length)?;
        return pace.copy::<String>(&string[..kept]).map(text_datum);
    }
    // As in PostgreSQL, each character counts with the maximum length.
    if length.saturating_mul(4) > MAX_BYTES {
        return Err(too_long());
    }
    let (missing, width) = (length - have, pace.count(fill)?);
    let rest = &fill[..pace.byte_position(fill, missing % width)?];
    let times = missing / width;
    let mut padded: String = pace.buffer(string.len() + fill.len() * times + rest.len())?;
    if !left {
        pace.append(&mut padded, string)?;
    }
    append_repeated(&mut padded, fill, times, &mut pace)?;
    pace.append(&mut padded, rest)?;
    if left {
        pace.append(&mut padded, string)?;
    }
    Ok(text_datum(padded))
}

/// Appends a text a number of times.
pub(super) fn append_repeated(
    out: &mut String,
    unit: &str,
    times: usize,
    pace: &mut InterruptPacer<'_>,
) -> Result<()> {
    if unit.is_empty() {
        return Ok(());
    }
    let at_once = (CHUNK_BYTES / unit.len()).clamp(1, times.max(1));
    let block = if at_once > 1 { Cow::Owned(unit.repeat(at_once)) } else { Cow::Borrowed(unit) };
    (0..times / at_once).try_for_each(|_| pace.append(out, &*block))?;
    pace.append(out, &block[..unit.len() * (times % at_once)])
}

fn repeat(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (string, times) = (text(&arguments[0]), usize::try_from(int4(&arguments[1])).unwrap_or(0));
    match string.len().checked_mul(times) {
        Some(bytes) if bytes <= MAX_BYTES => {
            let mut pace = context.pace();
            let mut repeated: String = pace.buffer(bytes)?;
            append_repeated(&mut repeated, string, times, &mut pace)?;
            Ok(text_datum(repeated))
        }
        _ => Err(too_long()),
    }
}

pub(super) fn too_long() -> Error {
    err!(PROGRAM_LIMIT_EXCEEDED: "requested length too large")
}

fn starts_with(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    Ok(Datum::Bool(text(&arguments[0]).starts_with(text(&arguments[1]))))
}

fn chr(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let code = int4(&arguments[0]);
    if code == 0 {
        bail!(PROGRAM_LIMIT_EXCEEDED: "null character not permitted");
    }
    let Ok(point) = u32::try_from(code) else {
        return Err(invalid_parameter("character number must be positive"));
    };
    match char::from_u32(point) {
        Some(character) => Ok(text_datum(character.to_string())),
        None if point > 0x0010_ffff => {
            bail!(PROGRAM_LIMIT_EXCEEDED: "requested character too large for encoding: {code}")
        }
        None => {
            bail!(PROGRAM_LIMIT_EXCEEDED: "requested character not valid for encoding: {code}")
        }
    }
}

/// Returns the error of an invalid parameter.
pub(super) fn invalid_parameter(message: impl Into<String>) -> Error {
    err!(INVALID_PARAMETER_VALUE: message)
}
