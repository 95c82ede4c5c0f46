//! `to_ascii`: removes accents from text in a single-byte encoding.
//!
//! PostgreSQL interprets the bytes of the text in the named encoding, regardless of the database
//! encoding; so does this module with UTF-8 text. Bytes that do not occur in UTF-8 are blanks in
//! the tables.

use super::argument::{int4, text, text_datum};
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Int4, Name, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("to_ascii", &[Text], Text, |_, _| Err(unsupported("UTF8"))),
    row("to_ascii", &[Text, Int4], Text, by_code),
    row("to_ascii", &[Text, Name], Text, by_name),
];

/// Names of PostgreSQL's encodings, by number.
const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

const LATIN1: usize = 8;
const LATIN2: usize = 9;
const LATIN9: usize = 16;
const WIN1250: usize = 29;

/// Returns the replacements of the bytes from 0x80 on.
#[rustfmt::skip]
fn table(code: usize) -> Option<&'static [u8; 128]> {
    Some(match code {
        LATIN1 => b"                                  cL Y  \"Ca  -R     'u .,      ?  \
            AAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooo           ",
        LATIN2 => b"                                 A L LS \"SSTZ-ZZ a,l'ls ,sstz\"zz  \
            AAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoo           ",
        LATIN9 => b"                                  cL YS sCa  -R     Zu .z   EeY?  \
            AAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooo           ",
        WIN1250 => b"  ' \"    %S<STZZ `'\"\".--  s>stzz   L A  \"CS  -RZ  ,l'u .,as L\"lz  \
            AAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoo           ",
        _ => return None,
    })
}

fn unsupported(encoding: &str) -> Error {
    err!(FEATURE_NOT_SUPPORTED: "encoding conversion from {encoding} to ASCII not supported")
}

fn by_code(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let code = int4(&arguments[1]);
    let known = usize::try_from(code).ok().filter(|code| *code < ENCODINGS.len());
    let known =
        known.ok_or_else(|| err!(UNDEFINED_OBJECT: "{code} is not a valid encoding code"))?;
    without_accents(text(&arguments[0]), known, context)
}

fn by_name(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let name = text(&arguments[1]);
    // Only letters and digits of a name are compared.
    let plain = |name: &str| -> String {
        let kept = name.chars().filter(char::is_ascii_alphanumeric);
        kept.map(|c| c.to_ascii_lowercase()).collect()
    };
    let code = ENCODINGS.iter().position(|known| plain(known) == plain(name));
    let code = code.ok_or_else(|| err!(UNDEFINED_OBJECT: "{name} is not a valid encoding name"))?;
    without_accents(text(&arguments[0]), code, context)
}

fn without_accents(string: &str, code: usize, context: &EvalContext) -> Result<Datum> {
    let table = table(code).ok_or_else(|| unsupported(ENCODINGS[code]))?;
    let plain = string.bytes().map(|byte| match byte.checked_sub(0x80) {
        None => char::from(byte),
        Some(above) => char::from(table[usize::from(above)]),
    });
    context.pace().collect(plain, string.len()).map(text_datum)
}
