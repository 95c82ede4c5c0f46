//! Quoting for SQL statements: identifiers and literals, and `format`.

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::argument::{text, text_datum};
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::Text;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::{InterruptPacer, MAX_BYTES, chunks};
use crate::key_words;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("quote_ident", &[Text], Text, |a, c| {
        quoted_ident(text(&a[0]), &mut c.pace()).map(text_datum)
    }),
    row("quote_literal", &[Text], Text, |a, c| {
        quote_literal(text(&a[0]), &mut c.pace()).map(text_datum)
    }),
    row("quote_nullable", &[Text], Text, |a, c| {
        quote_nullable(&a[0], &mut c.pace()).map(text_datum)
    })
    .takes_null(),
    row("format", &[Text, Text], Text, format_text).variadic().takes_null().stable(),
];

/// Returns an identifier, quoted if necessary.
pub fn quote_ident(name: &str) -> String {
    quoted_ident(name, &mut InterruptPacer::without_interrupt())
        .expect("there is no flag to be set")
}

fn quoted_ident(name: &str, pace: &mut InterruptPacer<'_>) -> Result<String> {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && key_words::is_unreserved(name);
    if plain { pace.copy(name) } else { quoted("\"", name, &['"'], pace) }
}

/// Returns a text in quotes (the last character of `opening`), with some characters doubled.
fn quoted(
    opening: &str,
    text: &str,
    doubled: &[char],
    pace: &mut InterruptPacer<'_>,
) -> Result<String> {
    let mut out: String = pace.buffer(text.len() + opening.len() + 1)?;
    out.push_str(opening);
    for piece in chunks(text) {
        pace.reserve(&mut out, piece.len() * 2 + 1)?;
        for part in piece.split_inclusive(doubled) {
            out.push_str(part);
            out.extend(part.chars().next_back().filter(|last| doubled.contains(last)));
            // A short part costs more than its bytes.
            pace.count_steps(part.len() + 32)?;
        }
    }
    out.extend(opening.chars().next_back());
    Ok(out)
}

/// Returns a string as an SQL literal.
fn quote_literal(string: &str, pace: &mut InterruptPacer<'_>) -> Result<String> {
    match pace.find(&Finder::new("\\"), string.as_bytes())? {
        Some(_) => quoted("E'", string, &['\'', '\\'], pace),
        None => quoted("'", string, &['\''], pace),
    }
}

fn quote_nullable(value: &Datum, pace: &mut InterruptPacer<'_>) -> Result<String> {
    match value {
        Datum::Null => Ok("NULL".to_owned()),
        value => quote_literal(text(value), pace),
    }
}

/// One format specifier of a template.
struct Specifier {
    /// The explicit argument number, from 1; `None` for the next argument.
    position: Option<usize>,
    left: bool,
    width: Width,
    conversion: char,
}

enum Width {
    Fixed(i64),
    /// The value of an argument, by number from 1; `None` for the next argument.
    Argument(Option<usize>),
}

/// Replaces the `%s`, `%I` and `%L` of a template with texts.
pub(super) fn format_text(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let Some((Datum::Text(template), arguments)) = arguments.split_first() else {
        return Ok(Datum::Null);
    };
    let mut pace = context.pace();
    let mut out: String = pace.buffer(template.len())?;
    let mut rest: &str = template;
    let mut next = 0;
    while let Some((before, after)) = rest.split_once('%') {
        pace.enlarge(&mut out, before)?;
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (specifier, after) = specifier(after)?;
        rest = after;
        let mut take = |position: Option<usize>| {
            next = position.unwrap_or(next + 1);
            let few = || invalid_parameter("too few arguments for format()");
            arguments.get(next - 1).ok_or_else(few)
        };
        let (width, mut left) = (width_of(&specifier.width, &mut take)?, specifier.left);
        left |= width < 0;
        let value = take(specifier.position)?;
        let value = match (specifier.conversion, value) {
            ('s', Datum::Null) => Cow::Borrowed(""),
            ('s', value) => Cow::Borrowed(text(value)),
            ('L', value) => Cow::Owned(quote_nullable(value, &mut pace)?),
            (_, Datum::Null) => {
                bail!(NULL_VALUE_NOT_ALLOWED: "null values cannot be formatted as an SQL identifier");
            }
            (_, value) => Cow::Owned(quoted_ident(text(value), &mut pace)?),
        };
        if width == 0 {
            pace.enlarge(&mut out, &*value)?;
            continue;
        }
        let width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        let padding = width.saturating_sub(pace.count(&value)?);
        if padding > MAX_BYTES {
            return Err(super::strings::too_long());
        }
        if left {
            pace.enlarge(&mut out, &*value)?;
        }
        super::strings::append_repeated(&mut out, " ", padding, &mut pace)?;
        if !left {
            pace.enlarge(&mut out, &*value)?;
        }
    }
    pace.enlarge(&mut out, rest)?;
    Ok(text_datum(out))
}

fn width_of<'a>(
    width: &Width,
    take: &mut impl FnMut(Option<usize>) -> Result<&'a Datum>,
) -> Result<i64> {
    match width {
        Width::Fixed(width) => Ok(*width),
        Width::Argument(position) => match take(*position)? {
            Datum::Null => Ok(0),
            value => match text(value).trim().parse::<i32>() {
                Ok(width) => Ok(width.into()),
                Err(_) => Err(Error::bad_text("integer", text(value))),
            },
        },
    }
}

/// Parses the specifier after a `%`; also returns the remaining text.
fn specifier(template: &str) -> Result<(Specifier, &str)> {
    let mut specifier =
        Specifier { position: None, left: false, width: Width::Fixed(0), conversion: 's' };
    let mut rest = template;
    if let (Some(number), after) = digits(rest)? {
        if let Some(after) = after.strip_prefix('$') {
            specifier.position = Some(argument_number(number)?);
            rest = after;
        } else {
            specifier.width = Width::Fixed(number);
            rest = after;
            return conversion(specifier, rest);
        }
    }
    while let Some(after) = rest.strip_prefix('-') {
        specifier.left = true;
        rest = after;
    }
    if let Some(after) = rest.strip_prefix('*') {
        let (number, after) = digits(after)?;
        specifier.width = Width::Argument(number.map(argument_number).transpose()?);
        rest = match number {
            None => after,
            Some(_) => after.strip_prefix('$').ok_or_else(|| {
                invalid_parameter("width argument position must be ended by \"$\"")
            })?,
        };
    } else if let (Some(number), after) = digits(rest)? {
        specifier.width = Width::Fixed(number);
        rest = after;
    }
    conversion(specifier, rest)
}

fn conversion(mut specifier: Specifier, rest: &str) -> Result<(Specifier, &str)> {
    const HINT: &str = "For a single \"%\" use \"%%\".";
    match rest.chars().next() {
        Some(letter @ ('s' | 'I' | 'L')) => {
            specifier.conversion = letter;
            Ok((specifier, &rest[1..]))
        }
        Some(letter) => {
            let message = format!("unrecognized format() type specifier \"{letter}\"");
            Err(invalid_parameter(message).with_hint(HINT))
        }
        None => Err(invalid_parameter("unterminated format() type specifier").with_hint(HINT)),
    }
}

fn argument_number(number: i64) -> Result<usize> {
    match usize::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => {
            let message = "format specifies argument 0, but arguments are numbered from 1";
            Err(invalid_parameter(message))
        }
    }
}

/// Parses a number; also returns the remaining text.
fn digits(text: &str) -> Result<(Option<i64>, &str)> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    if end == 0 {
        return Ok((None, text));
    }
    match text[..end].parse::<i32>() {
        Ok(number) => Ok((Some(number.into()), &text[end..])),
        Err(_) => bail!(NUMERIC_VALUE_OUT_OF_RANGE: "number is out of range"),
    }
}
