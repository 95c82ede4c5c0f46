//! Conversion between arrays and text: joining elements, splitting text, regular expression
//! matches.

use memchr::memmem::Finder;

use super::argument::{array, array_datum, text, text_datum};
use super::regular_expression::{Flags, with_regex};
use super::regular_expression_functions::{for_each_match, groups_of, no_global};
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, AnyArray, Text};
use crate::datatype::ElementType;
use crate::datum::{Array, Datum};
use crate::error::Result;
use crate::interruptible::InterruptPacer;
use crate::text;

const TEXTS: DataType = DataType::Array(ElementType::BuiltIn(&Text));

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
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
    let style = &context.style;
    let mut out = Vec::new();
    let mut first = true;
    let mut pace = context.pace();
    for element in &array(&arguments[0]).elements {
        pace.count_steps(16)?;
        if element.is_null() && null.is_none() {
            continue;
        }
        if !std::mem::take(&mut first) {
            pace.append(&mut out, text(&arguments[1]).as_bytes())?;
        }
        pace.step(&mut out, 0)?;
        match element {
            Datum::Null => pace.append(&mut out, null.unwrap_or_default().as_bytes())?,
            value => text::write(value, &DataType::Unknown, style, &mut out)?,
        }
    }
    pace.text(out).map(text_datum)
}

/// Returns the text of an element in the output format.
pub(super) fn element_text(element: &Datum, context: &EvalContext) -> Result<String> {
    let mut out = Vec::new();
    text::write(element, &DataType::Unknown, &context.style, &mut out)?;
    context.pace().text(out)
}

/// Parts of a text, for `string_to_array` and `string_to_table`.
pub(super) struct TextParts<'a> {
    string: &'a str,
    /// `None`: each character is a part.
    separator: Option<Finder<'a>>,
    null: Option<&'a str>,
    pace: InterruptPacer<'a>,
}

impl<'a> TextParts<'a> {
    /// Creates the iterator of the first argument, which is not NULL.
    pub(super) fn new(arguments: &'a [Datum], context: &'a EvalContext) -> TextParts<'a> {
        TextParts {
            string: text(&arguments[0]),
            separator: arguments[1].as_str().map(Finder::new),
            null: arguments.get(2).filter(|null| !null.is_null()).map(text),
            pace: context.pace(),
        }
    }

    /// Returns the part that begins at `place` and advances `place`; `None` at the end.
    pub(super) fn next(&mut self, place: &mut usize) -> Result<Option<Datum>> {
        let Some(rest) = self.string.get(*place..) else { return Ok(None) };
        if self.string.is_empty() || (self.separator.is_none() && rest.is_empty()) {
            return Ok(None);
        }
        self.pace.count_steps(PART)?;
        let (length, width) = match &self.separator {
            None => (rest.chars().next().map_or(0, char::len_utf8), 0),
            Some(separator) if separator.needle().is_empty() => (rest.len(), 1),
            Some(separator) => match self.pace.find(separator, rest.as_bytes())? {
                Some(at) => (at, separator.needle().len()),
                None => (rest.len(), 1),
            },
        };
        *place += length + width;
        let part = &rest[..length];
        Ok(Some(match self.null == Some(part) {
            true => Datum::Null,
            false => text_datum(self.pace.copy::<String>(part)?),
        }))
    }
}

/// Cost of a part in addition to its bytes, for the interrupt check.
const PART: usize = 64;

fn to_array(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    if arguments[0].is_null() {
        return Ok(Datum::Null);
    }
    let mut parts = TextParts::new(arguments, context);
    let (mut elements, mut place, mut pace) = (Vec::new(), 0, context.pace());
    while let Some(part) = parts.next(&mut place)? {
        pace.push(&mut elements, part)?;
    }
    Ok(array_datum(Array::from_elements(elements)))
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
    let (mut elements, mut place, mut pace) =
        (Vec::new(), SplitProgress::default(), context.pace());
    loop {
        let parts = split_parts(arguments, "regexp_split_to_array()", &mut place, context)?;
        if parts.is_empty() {
            return Ok(array_datum(Array::from_elements(elements)));
        }
        for part in parts {
            let part = text_datum(pace.copy::<String>(part)?);
            pace.push(&mut elements, part)?;
        }
    }
}

/// Progress of splitting a text.
#[derive(Debug, Default)]
pub(super) struct SplitProgress {
    /// Start of the next part; beyond the end if there is none.
    start: usize,
    /// Start of the next search.
    from: usize,
}

/// Maximum number of parts and matches per batch, which is large because restarting a search is
/// expensive.
pub(super) const FOUND: usize = 1 << 17;

/// Returns the parts between the next matches of a pattern; none at the end. Flags are an
/// optional third argument.
pub(super) fn split_parts<'a>(
    arguments: &'a [Datum],
    function: &str,
    place: &mut SplitProgress,
    context: &EvalContext,
) -> Result<Vec<&'a str>> {
    let flags = Flags::parse(arguments.get(2).map_or("", text))?;
    let flags = no_global(flags, function)?;
    let string = text(&arguments[0]);
    let mut parts = Vec::new();
    if place.start > string.len() {
        return Ok(parts);
    }
    with_regex(text(&arguments[1]), flags, context, |regex| {
        for_each_match(regex, string, &mut place.from, |found| {
            let found = found.all();
            // Empty matches at the ends and directly after a match do not split.
            if found.end > 0 && found.start < string.len() && found.end > place.start {
                parts.push(&string[place.start..found.start]);
                place.start = found.end;
            }
            parts.len() < FOUND
        })
    })?;
    if parts.len() < FOUND {
        parts.push(&string[place.start..]);
        place.start = string.len() + 1;
    }
    Ok(parts)
}
