//! Text format of records: `(1,"a b",)`.

use std::sync::Arc;

use super::{TextStyle, parse as parse_value};
use crate::datatype::composite::{Attribute, CompositeType};
use crate::datum::{Datum, Record};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::modifier;

pub(super) fn write(
    record: &Record,
    style: &TextStyle,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'(');
    let mut text = Vec::new();
    for (index, (value, (_, data_type))) in
        record.values.iter().zip(record.fields.iter()).enumerate()
    {
        if index > 0 {
            out.push(b',');
        }
        if value.is_null() {
            continue;
        }
        text.clear();
        super::write_at(value, data_type, style, pace, &mut text)?;
        let special = |byte: &u8| {
            matches!(byte, b'"' | b'\\' | b'(' | b')' | b',' | 0x0b) || byte.is_ascii_whitespace()
        };
        if !text.is_empty() && !text.iter().any(special) {
            pace.append(out, &*text)?;
            continue;
        }
        out.push(b'"');
        for &byte in &text {
            pace.step(out, 1)?;
            if matches!(byte, b'"' | b'\\') {
                out.push(byte);
            }
            out.push(byte);
        }
        out.push(b'"');
    }
    out.push(b')');
    Ok(())
}

/// Parses a value of a composite type, as PostgreSQL's `record_in` does.
pub(super) fn parse(text: &str, of: &Arc<CompositeType>, style: &TextStyle) -> Result<Record> {
    let mut rest = text.trim_start_matches(is_blank);
    rest = rest.strip_prefix('(').ok_or_else(|| malformed(text, "Missing left parenthesis."))?;
    let mut values = Vec::with_capacity(of.attributes().len());
    for (index, attribute) in of.attributes().iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(',').ok_or_else(|| malformed(text, "Too few columns."))?;
        }
        if rest.starts_with([',', ')']) {
            values.push(Datum::Null);
            continue;
        }
        let (value, behind) = field(text, rest, &mut InterruptPacer::new(&style.interrupt))?;
        rest = behind;
        values.push(attribute_value(&value, attribute, style)?);
    }
    rest = rest.strip_prefix(')').ok_or_else(|| malformed(text, "Too many columns."))?;
    if !rest.trim_start_matches(is_blank).is_empty() {
        return Err(malformed(text, "Junk after right parenthesis."));
    }
    Ok(Record::of_type(of, values))
}

fn attribute_value(text: &str, attribute: &Attribute, style: &TextStyle) -> Result<Datum> {
    let sql_type = &attribute.sql_type;
    let value = parse_value(text, &sql_type.base, style)?;
    if sql_type.modifier < 0 { Ok(value) } else { modifier::apply(value, sql_type, false) }
}

/// Parses the text of a field, quoted or not; also returns the remaining text.
fn field<'a>(
    text: &str,
    rest: &'a str,
    pace: &mut InterruptPacer<'_>,
) -> Result<(String, &'a str)> {
    let mut value = String::new();
    let mut is_quoted = false;
    let mut characters = rest.chars();
    loop {
        pace.step(&mut value, 1)?;
        let behind = characters.as_str();
        match characters.next() {
            Some(',' | ')') if !is_quoted => return Ok((value, behind)),
            Some('\\') => match characters.next() {
                Some(escaped) => value.push(escaped),
                None => return Err(malformed(text, "Unexpected end of input.")),
            },
            Some('"') if is_quoted && characters.as_str().starts_with('"') => {
                characters.next();
                value.push('"');
            }
            Some('"') => is_quoted = !is_quoted,
            Some(other) => value.push(other),
            None => return Err(malformed(text, "Unexpected end of input.")),
        }
    }
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn malformed(text: &str, detail: &str) -> Error {
    err!(INVALID_TEXT_REPRESENTATION: "malformed record literal: \"{text}\""; detail detail)
}
