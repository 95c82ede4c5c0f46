//! `LIKE` and `ILIKE`.
//!
//! A pattern is analysed once ([`LikePattern`]); most patterns are a prefix, a suffix, a
//! substring or the whole string, and need no matching of single characters. The others are
//! matched with backtracking to the last `%` only, which is linear in practice.

use memchr::memmem::Finder;

use super::argument::{bytea, bytea_datum, text, text_datum};
use super::strings::{lower, lower_char};
use super::{FunctionRow, KernelKind, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, Bytea, Char, Name, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::{CHUNK_BYTES, InterruptPacer};
use crate::vector::BytesVector;

const fn shape(negated: bool, ignore_case: bool) -> KernelKind {
    KernelKind::Like { negated, ignore_case }
}

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("~~", &[Text, Text], Bool, like).shaped(shape(false, false)),
    row("~~", &[Name, Text], Bool, like).shaped(shape(false, false)),
    row("~~", &[Char, Text], Bool, like).shaped(shape(false, false)),
    row("!~~", &[Text, Text], Bool, not_like).shaped(shape(true, false)),
    row("!~~", &[Name, Text], Bool, not_like).shaped(shape(true, false)),
    row("!~~", &[Char, Text], Bool, not_like).shaped(shape(true, false)),
    row("~~*", &[Text, Text], Bool, ilike).shaped(shape(false, true)),
    row("~~*", &[Name, Text], Bool, ilike).shaped(shape(false, true)),
    row("~~*", &[Char, Text], Bool, ilike).shaped(shape(false, true)),
    row("!~~*", &[Text, Text], Bool, not_ilike).shaped(shape(true, true)),
    row("!~~*", &[Name, Text], Bool, not_ilike).shaped(shape(true, true)),
    row("!~~*", &[Char, Text], Bool, not_ilike).shaped(shape(true, true)),
    row("like", &[Text, Text], Bool, like).shaped(shape(false, false)),
    row("notlike", &[Text, Text], Bool, not_like).shaped(shape(true, false)),
    row("~~", &[Bytea, Bytea], Bool, |a, c| {
        matches_bytes(bytea(&a[0]), bytea(&a[1]), Unit::Byte, &mut c.pace()).map(Datum::Bool)
    }),
    row("!~~", &[Bytea, Bytea], Bool, |a, c| {
        matches_bytes(bytea(&a[0]), bytea(&a[1]), Unit::Byte, &mut c.pace())
            .map(|found| Datum::Bool(!found))
    }),
    row("like_escape", &[Text, Text], Text, like_escape),
    row("like_escape", &[Bytea, Bytea], Bytea, like_escape_bytes),
];

fn like(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (string, pattern) = (text(&arguments[0]), text(&arguments[1]));
    let (string, pattern) = (string.as_bytes(), pattern.as_bytes());
    matches_bytes(string, pattern, Unit::Character, &mut context.pace()).map(Datum::Bool)
}

fn not_like(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    like(arguments, context).map(negate)
}

fn ilike(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let mut pace = context.pace();
    let string = lowered(text(&arguments[0]), &mut pace)?;
    let pattern = lowered(text(&arguments[1]), &mut pace)?;
    let (string, pattern) = (string.as_bytes(), pattern.as_bytes());
    matches_bytes(string, pattern, Unit::Character, &mut pace).map(Datum::Bool)
}

/// Returns a string of any length in lower case.
fn lowered(string: &str, pace: &mut InterruptPacer<'_>) -> Result<String> {
    match string.len() < CHUNK_BYTES {
        true => Ok(lower(string)),
        false => pace.map_chars(string, |character| Some(lower_char(character))),
    }
}

fn not_ilike(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    ilike(arguments, context).map(negate)
}

fn negate(found: Datum) -> Datum {
    match found {
        Datum::Bool(found) => Datum::Bool(!found),
        other => other,
    }
}

/// A pattern that was analysed for matching many strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikePattern {
    form: Form,
    ignore_case: bool,
}

/// Form of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// No wildcard.
    Whole(Vec<u8>),
    /// `abc%`
    Prefix(Vec<u8>),
    /// `%abc`
    Suffix(Vec<u8>),
    /// `%abc%`
    Piece(Vec<u8>),
    /// Other patterns.
    General(Vec<u8>),
}

impl LikePattern {
    /// Analyses a pattern whose escape character is the backslash.
    pub fn new(pattern: &str, ignore_case: bool) -> LikePattern {
        let pattern = if ignore_case { lower(pattern) } else { pattern.to_owned() };
        LikePattern { form: Form::new(&pattern), ignore_case }
    }

    /// Returns whether a string, which is UTF-8, matches.
    ///
    /// # Errors
    ///
    /// `22025` if matching reaches an escape character at the end of the pattern; `57014`.
    pub fn matches(&self, string: &[u8], pace: &mut InterruptPacer<'_>) -> Result<bool> {
        if !self.ignore_case {
            return self.form.matches(string, pace);
        }
        let string = match string.len() < CHUNK_BYTES {
            true => String::from_utf8_lossy(string),
            false => pace.decode(string)?.into(),
        };
        let lowered = lowered(&string, pace)?;
        self.form.matches(lowered.as_bytes(), pace)
    }

    /// Returns for each string whether it matches, if that only needs byte comparisons and the
    /// strings are short enough to omit interrupt checks.
    pub fn match_all(&self, strings: &BytesVector) -> Option<Vec<bool>> {
        if self.ignore_case || strings.bytes.len() > 8 * CHUNK_BYTES {
            return None;
        }
        Some(match &self.form {
            Form::Whole(whole) => compare_all(strings, |string| string == whole),
            Form::Prefix(prefix) => match PrefixMask::of(prefix) {
                Some(head) => head.match_all(strings),
                None => compare_all(strings, |string| string.starts_with(prefix)),
            },
            Form::Suffix(suffix) => compare_all(strings, |string| string.ends_with(suffix)),
            Form::Piece(piece) => find_in_all(strings, piece),
            Form::General(_) => return None,
        })
    }
}

fn compare_all(strings: &BytesVector, matches: impl Fn(&[u8]) -> bool) -> Vec<bool> {
    strings.iter().map(matches).collect()
}

/// Returns for each string whether it contains a substring, with one search through all of them.
/// Both are UTF-8, so matching bytes are matching characters.
fn find_in_all(strings: &BytesVector, piece: &[u8]) -> Vec<bool> {
    let finder = Finder::new(piece);
    let mut found = vec![false; strings.len()];
    let (mut row, mut from) = (0, 0);
    while let Some(at) = finder.find(&strings.bytes[from..]) {
        let (start, end) = (from + at, from + at + piece.len());
        row += strings.ends[row..].partition_point(|row_end| *row_end as usize <= start);
        let row_end = strings.ends[row] as usize;
        if end <= row_end {
            found[row] = true;
            from = row_end;
        } else {
            // The match extends into the next string.
            from = start + 1;
        }
    }
    found
}

/// A prefix of up to eight bytes, which is compared as a number.
struct PrefixMask {
    length: usize,
    number: u64,
    mask: u64,
}

impl PrefixMask {
    fn of(prefix: &[u8]) -> Option<PrefixMask> {
        let length = prefix.len();
        (1..=8).contains(&length).then(|| PrefixMask {
            length,
            number: first_bytes(prefix),
            mask: u64::MAX >> (64 - 8 * length),
        })
    }

    fn match_all(&self, strings: &BytesVector) -> Vec<bool> {
        let mut start = 0;
        let matches = |&end: &u32| {
            let (from, end) = (start, end as usize);
            start = end;
            end - from >= self.length
                && first_bytes(&strings.bytes[from..]) & self.mask == self.number
        };
        strings.ends.iter().map(matches).collect()
    }
}

/// Returns the first eight bytes as a number, zero-padded.
fn first_bytes(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(first) => u64::from_le_bytes(*first),
        None => bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

impl Form {
    fn new(pattern: &str) -> Form {
        let general = || Form::General(pattern.as_bytes().to_vec());
        if pattern.contains(['\\', '_']) {
            return general();
        }
        let inner = pattern.trim_matches('%');
        if inner.contains('%') || (inner.is_empty() && !pattern.is_empty()) {
            return general();
        }
        let bytes = inner.as_bytes().to_vec();
        match (pattern.starts_with('%'), pattern.ends_with('%')) {
            (false, false) => Form::Whole(bytes),
            (false, true) => Form::Prefix(bytes),
            (true, false) => Form::Suffix(bytes),
            (true, true) => Form::Piece(bytes),
        }
    }

    fn matches(&self, string: &[u8], pace: &mut InterruptPacer<'_>) -> Result<bool> {
        Ok(match self {
            Form::Whole(whole) => string == whole,
            Form::Prefix(prefix) => string.starts_with(prefix),
            Form::Suffix(suffix) => string.ends_with(suffix),
            Form::Piece(piece) => pace.find(&Finder::new(piece), string)?.is_some(),
            Form::General(pattern) => {
                return matches_bytes(string, pattern, Unit::Character, pace);
            }
        })
    }
}

/// Unit matched by `_`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte,
    Character,
}

/// Returns the length of the character that begins at `at`.
fn width(string: &[u8], at: usize, unit: Unit) -> usize {
    match (unit, string[at]) {
        (Unit::Byte, _) | (_, 0..0xc0) => 1,
        (_, 0xc0..0xe0) => 2,
        (_, 0xe0..0xf0) => 3,
        _ => 4,
    }
}

/// Matches a string against a pattern with `%`, `_` and `\`.
fn matches_bytes(
    string: &[u8],
    pattern: &[u8],
    unit: Unit,
    pace: &mut InterruptPacer<'_>,
) -> Result<bool> {
    let (mut s, mut p) = (0, 0);
    // Restart position after a mismatch: after the last `%`, with one more character matched by
    // it.
    let mut retry: Option<(usize, usize)> = None;
    while s < string.len() {
        pace.count_steps(1)?;
        match pattern.get(p) {
            Some(b'%') => {
                retry = Some((p + 1, s));
                p += 1;
                continue;
            }
            Some(b'_') => {
                s += width(string, s, unit);
                p += 1;
                continue;
            }
            Some(b'\\') => match pattern.get(p + 1) {
                None => return Err(dangling_escape()),
                Some(literal) if *literal == string[s] => {
                    s += 1;
                    p += 2;
                    continue;
                }
                Some(_) => {}
            },
            Some(literal) if *literal == string[s] => {
                s += 1;
                p += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, under)) = retry else {
            return Ok(false);
        };
        s = under + width(string, under, unit);
        p = after;
        retry = Some((after, s));
    }
    while pattern.get(p) == Some(&b'%') {
        p += 1;
    }
    Ok(p == pattern.len())
}

fn dangling_escape() -> Error {
    err!(INVALID_ESCAPE_SEQUENCE: "LIKE pattern must not end with escape character")
}

/// Rewrites a pattern with another escape character, or none, to one with the backslash.
fn like_escape(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (pattern, escape) = (text(&arguments[0]), text(&arguments[1]));
    let mut characters = escape.chars();
    let (escape, more) = (characters.next(), characters.next());
    if more.is_some() {
        return Err(invalid_escape());
    }
    let mut rewritten = String::with_capacity(pattern.len() + 4);
    let mut escaped = false;
    for character in pattern.chars() {
        if Some(character) == escape && !escaped {
            rewritten.push('\\');
            escaped = true;
            continue;
        }
        if character == '\\' && escape != Some('\\') && !escaped {
            rewritten.push('\\');
        }
        rewritten.push(character);
        escaped = false;
    }
    Ok(text_datum(rewritten))
}

fn like_escape_bytes(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (pattern, escape) = (bytea(&arguments[0]), bytea(&arguments[1]));
    if escape.len() > 1 {
        return Err(invalid_escape());
    }
    let escape = escape.first().copied();
    let mut rewritten = Vec::with_capacity(pattern.len() + 4);
    let mut escaped = false;
    for byte in pattern.iter().copied() {
        if Some(byte) == escape && !escaped {
            rewritten.push(b'\\');
            escaped = true;
            continue;
        }
        if byte == b'\\' && escape != Some(b'\\') && !escaped {
            rewritten.push(b'\\');
        }
        rewritten.push(byte);
        escaped = false;
    }
    Ok(bytea_datum(rewritten))
}

/// `invalid escape string`
pub(super) fn invalid_escape() -> Error {
    err!(INVALID_ESCAPE_SEQUENCE: "invalid escape string"; hint "Escape string must be empty or one character.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_like_matches_single_values() {
        let strings = ["", "a", "ab", "abc", "abcdefg", "abcdefgh", "abcdefghi", "é", "aé", "b"];
        let mut values = BytesVector::default();
        strings.iter().for_each(|string| values.push(string.as_bytes()));
        // Some substrings begin in one string and end in the next.
        for pattern in [
            "",
            "a",
            "a%",
            "abcdefgh%",
            "abcdefghi%",
            "é%",
            "aé%",
            "%c",
            "%é",
            "b%",
            "%a%",
            "%bc%",
            "%aa%",
            "%ca%",
            "%ghab%",
            "%éa%",
            "%é%",
            "%ib%",
        ] {
            let pattern = LikePattern::new(pattern, false);
            let expected: Vec<bool> = values
                .iter()
                .map(|string| {
                    pattern.matches(string, &mut InterruptPacer::without_interrupt()).unwrap()
                })
                .collect();
            assert_eq!(pattern.match_all(&values), Some(expected), "{pattern:?}");
        }
        for pattern in ["%", "a_", "a%c"] {
            assert_eq!(LikePattern::new(pattern, false).match_all(&values), None);
        }
        assert_eq!(LikePattern::new("a%", true).match_all(&values), None);
    }
}
