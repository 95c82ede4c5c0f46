//! Unicode: normalization, and text with escaped code points.

use unicode_normalization::UnicodeNormalization;

use super::argument::{text, text_datum};
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("normalize", &[Text], Text, |a, c| normalized(a, c).map(text_datum)),
    row("normalize", &[Text, Text], Text, |a, c| normalized(a, c).map(text_datum)),
    row("is_normalized", &[Text, Text], Bool, is_normalized),
    row("is_normalized", &[Text], Bool, is_normalized),
    row("unistr", &[Text], Text, unistr),
];

fn normalized(arguments: &[Datum], context: &EvalContext) -> Result<String> {
    let (string, form) = (text(&arguments[0]), arguments.get(1).map_or("NFC", text));
    let mut pace = context.pace();
    match form.to_ascii_uppercase().as_str() {
        "NFC" => pace.collect(string.nfc(), string.len()),
        "NFD" => pace.collect(string.nfd(), string.len()),
        "NFKC" => pace.collect(string.nfkc(), string.len()),
        "NFKD" => pace.collect(string.nfkd(), string.len()),
        _ => Err(invalid_parameter(format!("invalid normalization form: {form}"))),
    }
}

fn is_normalized(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    Ok(Datum::Bool(normalized(arguments, context)? == text(&arguments[0])))
}

/// Replaces `\XXXX`, `\+XXXXXX`, `\uXXXX`, `\UXXXXXXXX` and `\\`.
fn unistr(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let mut rest = text(&arguments[0]);
    let mut pace = context.pace();
    let mut out: String = pace.buffer(rest.len())?;
    let mut first_half: Option<u32> = None;
    while let Some(at) = rest.find('\\') {
        if at > 0 && first_half.is_some() {
            return Err(invalid_pair());
        }
        pace.append(&mut out, &rest[..at])?;
        pace.count_steps(1)?;
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\\') {
            if first_half.is_some() {
                return Err(invalid_pair());
            }
            out.push('\\');
            rest = after;
            continue;
        }
        let (code, after) = escaped(rest).ok_or_else(invalid_escape)?;
        rest = after;
        let code = match (first_half.take(), code) {
            (None, 0xd800..=0xdbff) => {
                first_half = Some(code);
                continue;
            }
            (Some(high), 0xdc00..=0xdfff) => 0x10000 + ((high & 0x3ff) << 10) + (code & 0x3ff),
            (None, 0xdc00..=0xdfff) | (Some(_), _) => return Err(invalid_pair()),
            (None, code) => code,
        };
        match char::from_u32(code) {
            Some(character) if code != 0 => out.push(character),
            _ => return Err(invalid_parameter(format!("invalid Unicode code point: {code:04X}"))),
        }
    }
    if first_half.is_some() {
        return Err(invalid_pair());
    }
    pace.append(&mut out, rest)?;
    Ok(text_datum(out))
}

/// Parses the code point after a backslash; also returns the remaining text.
fn escaped(rest: &str) -> Option<(u32, &str)> {
    let (digits, rest) = match rest.chars().next()? {
        '+' => (6, &rest[1..]),
        'u' => (4, &rest[1..]),
        'U' => (8, &rest[1..]),
        _ => (4, rest),
    };
    let code = rest.get(..digits)?;
    let hexadecimal = code.bytes().all(|byte| byte.is_ascii_hexdigit());
    hexadecimal.then(|| u32::from_str_radix(code, 16).ok().map(|code| (code, &rest[digits..])))?
}

fn invalid_pair() -> Error {
    err!(SYNTAX_ERROR: "invalid Unicode surrogate pair")
}

fn invalid_escape() -> Error {
    err!(SYNTAX_ERROR: "invalid Unicode escape"; hint "Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
}
