//! `parse_ident`, which splits a qualified name as SQL does; subscripts of names.

use super::argument::{array_datum, bool_of, int4, text};
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::datatype::DataType::{self, Bool, Int4, InternalChar, Name, Text};
use crate::datatype::ElementType;
use crate::datum::{Array, Datum};
use crate::error::{Error, Result};
use crate::text::{char_of, unquoted_name};

const TEXTS: DataType = DataType::Array(ElementType::BuiltIn(&Text));
const NAMES: &[&str] = &["str", "strict"];

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("parse_ident", &[Text], TEXTS, |a, _| parts(text(&a[0]), true)).named(NAMES),
    row("parse_ident", &[Text, Bool], TEXTS, |a, _| parts(text(&a[0]), bool_of(&a[1])))
        .named(NAMES),
    // A subscript of a name: `typname[0]`. No statement can call it.
    row("name element", &[Name, Int4], InternalChar, |a, _| {
        Ok(name_element(text(&a[0]).as_bytes(), int4(&a[1])))
    }),
];

/// Bytes of a name with its terminator, as in PostgreSQL.
const NAME_BYTES: i32 = 64;

/// Returns a byte of a name, counted from 0; NULL outside of its 64 bytes.
fn name_element(name: &[u8], index: i32) -> Datum {
    if !(0..NAME_BYTES).contains(&index) {
        return Datum::Null;
    }
    char_of(name.get(index as usize).copied().unwrap_or(0))
}

fn bad(name: &str, detail: &str) -> Error {
    let error = invalid_parameter(format!("string is not a valid identifier: \"{name}\""));
    if detail.is_empty() { error } else { error.with_detail(detail) }
}

fn blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Returns the parts; in `strict` mode text after them is an error.
fn parts(name: &str, strict: bool) -> Result<Datum> {
    let mut parts = Vec::new();
    let mut rest = name.trim_start_matches(blank);
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (part, behind) = unquoted_name(quoted)
                .ok_or_else(|| bad(name, "String has unclosed double quotes."))?;
            if part.is_empty() {
                return Err(bad(name, "Quoted identifier must not be empty."));
            }
            parts.push(Datum::text(part));
            rest = behind;
        } else {
            let starts =
                |first: char| first.is_ascii_alphabetic() || first == '_' || !first.is_ascii();
            let goes_on = |next: char| starts(next) || next.is_ascii_digit() || next == '$';
            if !rest.starts_with(starts) {
                return Err(bad(
                    name,
                    match rest.starts_with('.') {
                        true => "No valid identifier before \".\".",
                        false if !parts.is_empty() => "No valid identifier after \".\".",
                        false => "",
                    },
                ));
            }
            let end = rest.find(|next| !goes_on(next)).unwrap_or(rest.len());
            parts.push(Datum::text(rest[..end].to_ascii_lowercase()));
            rest = &rest[end..];
        }
        rest = rest.trim_start_matches(blank);
        match rest.strip_prefix('.') {
            Some(next) => rest = next.trim_start_matches(blank),
            None if rest.is_empty() || !strict => {
                return Ok(array_datum(Array::from_elements(parts)));
            }
            None => return Err(bad(name, "")),
        }
    }
}
