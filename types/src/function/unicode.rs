//! Unicode: normal forms, and text with escaped code points.

use unicode_normalization::UnicodeNormalization;

use super::argument::{text, text_datum};
use super::strings::invalid_parameter;
use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("normalize", &[Text], Text, |a, _| normalized(text(&a[0]), "NFC").map(text_datum)),
    row("normalize", &[Text, Text], Text, |a, _| {
        normalized(text(&a[0]), text(&a[1])).map(text_datum)
    }),
    row("is_normalized", &[Text, Text], Bool, |a, _| {
        Ok(Datum::Bool(normalized(text(&a[0]), text(&a[1]))? == text(&a[0])))
    }),
    row("is_normalized", &[Text], Bool, |a, _| {
        Ok(Datum::Bool(normalized(text(&a[0]), "NFC")? == text(&a[0])))
    }),
    row("unistr", &[Text], Text, unistr),
];

fn normalized(string: &str, form: &str) -> Result<String> {
    match form.to_ascii_uppercase().as_str() {
        "NFC" => Ok(string.nfc().collect()),
        "NFD" => Ok(string.nfd().collect()),
        "NFKC" => Ok(string.nfkc().collect()),
        "NFKD" => Ok(string.nfkd().collect()),
        _ => Err(invalid_parameter(format!("invalid normalization form: {form}"))),
    }
}

/// Replaces `\XXXX`, `\+XXXXXX`, `\uXXXX`, `\UXXXXXXXX` and `\\`.
fn unistr(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let mut rest = text(&arguments[0]);
    let mut out = String::with_capacity(rest.len());
    let mut first_half: Option<u32> = None;
    while let Some(at) = rest.find('\\') {
        if at > 0 && first_half.is_some() {
            return Err(invalid_pair());
        }
        out.push_str(&rest[..at]);
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
    out.push_str(rest);
    Ok(text_datum(out))
}

/// Reads what follows a backslash: the code point and the rest.
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
    Error::new("42601", "invalid Unicode surrogate pair")
}

fn invalid_escape() -> Error {
    Error::new("42601", "invalid Unicode escape")
        .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
}
