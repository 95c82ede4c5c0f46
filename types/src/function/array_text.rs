//! Arrays and text: joining elements, splitting text, matches of regular expressions.

use super::argument::{array, array_datum, text, text_datum};
use super::regular_expression::{Flags, with_regex};
use super::regular_expression_functions::{for_each_match, groups_of, no_global};
use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, AnyArray, Text};
use crate::datum::{Array, Datum};
use crate::error::Result;
use crate::text;

const TEXTS: DataType = DataType::Array(&Text);

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("array_to_string", &[AnyArray, Text], Text, to_string).stable(),
    row("array_to_string", &[AnyArray, Text, Text], Text, to_string).takes_null().stable(),
    row("string_to_array", &[Text, Text], TEXTS, to_array).takes_null(),
    row("string_to_array", &[Text, Text, Text], TEXTS, to_array).takes_null(),
    row("regexp_match", &[Text, Text], TEXTS, regexp_match),
    row("regexp_match", &[Text, Text, Text], TEXTS, regexp_match),
    row("regexp_split_to_array", &[Text, Text], TEXTS, split),
    row("regexp_split_to_array", &[Text, Text, Text], TEXTS, split),
];

fn to_string(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    if arguments[..2].iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let null = arguments.get(2).filter(|null| !null.is_null()).map(text);
    let style = context.text_style();
    let mut out = Vec::new();
    let mut first = true;
    for element in &array(&arguments[0]).elements {
        if element.is_null() && null.is_none() {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.extend_from_slice(text(&arguments[1]).as_bytes());
        }
        match element {
            Datum::Null => out.extend_from_slice(null.unwrap_or_default().as_bytes()),
            value => text::write(value, DataType::Unknown, &style, &mut out),
        }
    }
    Ok(text_datum(String::from_utf8(out).expect("the text of a value is UTF-8")))
}

/// Returns an element as output shows it.
pub(super) fn element_text(element: &Datum, context: &EvalContext) -> String {
    let mut out = Vec::new();
    text::write(element, DataType::Unknown, &context.text_style(), &mut out);
    String::from_utf8(out).expect("the text of a value is UTF-8")
}

/// Returns the parts of a text, as `string_to_array` and `string_to_table` have them.
pub(super) fn pieces(arguments: &[Datum], context: &EvalContext) -> Result<Option<Vec<Datum>>> {
    if arguments[0].is_null() {
        return Ok(None);
    }
    let string = text(&arguments[0]);
    let null = arguments.get(2).filter(|null| !null.is_null()).map(text);
    let part = |part: &str| {
        context.interrupt.check()?;
        Ok(if Some(part) == null { Datum::Null } else { text_datum(part) })
    };
    let parts: Result<Vec<Datum>> = match &arguments[1] {
        _ if string.is_empty() => Ok(Vec::new()),
        Datum::Null => string.chars().map(|c| part(c.encode_utf8(&mut [0; 4]))).collect(),
        separator if text(separator).is_empty() => part(string).map(|part| vec![part]),
        separator => string.split(text(separator)).map(part).collect(),
    };
    parts.map(Some)
}

fn to_array(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let parts = pieces(arguments, context)?;
    Ok(parts.map_or(Datum::Null, |parts| array_datum(Array::from_elements(parts))))
}

fn regexp_match(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let flags = Flags::parse(arguments.get(2).map_or("", text))?;
    if flags.global {
        return no_global(flags, "regexp_match()")
            .map(|_| Datum::Null)
            .map_err(|error| error.with_hint("Use the regexp_matches function instead."));
    }
    with_regex(text(&arguments[1]), flags, context, |regex| {
        let string = text(&arguments[0]);
        let found = regex.search(string).find_at(0)?;
        Ok(found.map_or(Datum::Null, |found| groups_of(&found, string)))
    })
}

fn split(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let pieces = split_pieces(arguments, "regexp_split_to_array()", context)?;
    let pieces = pieces.into_iter().map(text_datum).collect();
    Ok(array_datum(Array::from_elements(pieces)))
}

/// Returns what is between the matches of a pattern, flags being an optional third argument.
pub(super) fn split_pieces<'a>(
    arguments: &'a [Datum],
    function: &str,
    context: &EvalContext,
) -> Result<Vec<&'a str>> {
    let flags = Flags::parse(arguments.get(2).map_or("", text))?;
    let flags = no_global(flags, function)?;
    let string = text(&arguments[0]);
    let mut pieces = Vec::new();
    let mut start = 0;
    with_regex(text(&arguments[1]), flags, context, |regex| {
        for_each_match(regex, string, 0, |found| {
            let found = found.all();
            // Empty matches at the ends and right behind a match do not split.
            if found.end > 0 && found.start < string.len() && found.end > start {
                pieces.push(&string[start..found.start]);
                start = found.end;
            }
            true
        })
    })?;
    pieces.push(&string[start..]);
    Ok(pieces)
}
