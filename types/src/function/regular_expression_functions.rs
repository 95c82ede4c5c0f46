//! The `regexp_…` functions, and `substring` by pattern.
//!
//! After a match the search continues at its end; after an empty one, a character later. So an
//! empty match may directly follow a longer one, as in PostgreSQL.

use super::argument::{array_datum, int4, text, text_datum};
use super::like::invalid_escape;
use super::regular_expression::{Flags, Regex, similar, with_regex};
use super::strings::{count, invalid_parameter};
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, Int4, Text};
use crate::datum::{Array, Datum};
use crate::error::Result;
use crate::regex::Match;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("regexp_like", &[Text, Text], Bool, regexp_like),
    row("regexp_like", &[Text, Text, Text], Bool, regexp_like),
    row("regexp_count", &[Text, Text], Int4, regexp_count),
    row("regexp_count", &[Text, Text, Int4], Int4, regexp_count),
    row("regexp_count", &[Text, Text, Int4, Text], Int4, regexp_count),
    row("regexp_instr", &[Text, Text], Int4, regexp_instr),
    row("regexp_instr", &[Text, Text, Int4], Int4, regexp_instr),
    row("regexp_instr", &[Text, Text, Int4, Int4], Int4, regexp_instr),
    row("regexp_instr", &[Text, Text, Int4, Int4, Int4], Int4, regexp_instr),
    row("regexp_instr", &[Text, Text, Int4, Int4, Int4, Text], Int4, regexp_instr),
    row("regexp_instr", &[Text, Text, Int4, Int4, Int4, Text, Int4], Int4, regexp_instr),
    row("regexp_substr", &[Text, Text], Text, regexp_substr),
    row("regexp_substr", &[Text, Text, Int4], Text, regexp_substr),
    row("regexp_substr", &[Text, Text, Int4, Int4], Text, regexp_substr),
    row("regexp_substr", &[Text, Text, Int4, Int4, Text], Text, regexp_substr),
    row("regexp_substr", &[Text, Text, Int4, Int4, Text, Int4], Text, regexp_substr),
    row("regexp_replace", &[Text, Text, Text], Text, |a, c| replace(a, (0, Some(1)), "", c)),
    row("regexp_replace", &[Text, Text, Text, Text], Text, regexp_replace),
    row("regexp_replace", &[Text, Text, Text, Int4], Text, regexp_replace_from),
    row("regexp_replace", &[Text, Text, Text, Int4, Int4], Text, regexp_replace_from),
    row("regexp_replace", &[Text, Text, Text, Int4, Int4, Text], Text, regexp_replace_from),
    row("substring", &[Text, Text], Text, |a, c| substring(text(&a[0]), text(&a[1]), c)),
    row("substring", &[Text, Text, Text], Text, |a, c| {
        let mut escape = text(&a[2]).chars();
        let pattern = match (escape.next(), escape.next()) {
            (first, None) => similar(text(&a[1]), first)?,
            _ => return Err(invalid_escape()),
        };
        substring(text(&a[0]), text(&pattern), c)
    }),
];

/// Calls `visit` for each match from a byte on, until it returns false.
pub(super) fn for_each_match(
    regex: &Regex<'_>,
    string: &str,
    from: &mut usize,
    mut visit: impl FnMut(&Match) -> bool,
) -> Result<()> {
    let mut search = regex.search(string);
    while *from <= string.len() {
        let Some(found) = search.find_at(*from)? else {
            *from = string.len() + 1;
            break;
        };
        let all = found.all();
        *from = all.end;
        if all.is_empty() {
            *from += string[*from..].chars().next().map_or(1, char::len_utf8);
        }
        if !visit(&found) {
            break;
        }
    }
    Ok(())
}

/// Returns the text of all groups of a match, or of the whole match if the pattern has no groups.
pub(super) fn groups_of(found: &Match, string: &str) -> Datum {
    let part = |range: Option<std::ops::Range<usize>>| {
        range.map_or(Datum::Null, |range| text_datum(&string[range]))
    };
    let mut groups: Vec<Datum> = found.groups().map(part).collect();
    if groups.is_empty() {
        groups.push(part(Some(found.all())));
    }
    array_datum(Array::from_elements(groups))
}

/// Rejects the flag `g`.
pub(super) fn no_global(flags: Flags, function: &str) -> Result<Flags> {
    if flags.global {
        let message = format!("{function} does not support the \"global\" option");
        return Err(invalid_parameter(message));
    }
    Ok(flags)
}

/// Returns an integer argument, which must be at least `least`.
fn number(arguments: &[Datum], index: usize, name: &str, least: i32) -> Result<Option<usize>> {
    let Some(value) = arguments.get(index).map(int4) else { return Ok(None) };
    if value < least {
        let message = format!("invalid value for parameter \"{name}\": {value}");
        return Err(invalid_parameter(message));
    }
    Ok(Some(value.unsigned_abs() as usize))
}

/// Returns the byte at which the search begins; `None` if it is beyond the end.
fn start(arguments: &[Datum], index: usize) -> Result<Option<usize>> {
    let string = text(&arguments[0]);
    let skipped = number(arguments, index, "start", 1)?.unwrap_or(1) - 1;
    let ends = std::iter::once(string.len());
    Ok(string.char_indices().map(|(at, _)| at).chain(ends).nth(skipped))
}

fn regexp_like(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let flags = Flags::parse(arguments.get(2).map_or("", text))?;
    let flags = no_global(flags, "regexp_like()")?;
    let string = text(&arguments[0]);
    with_regex(text(&arguments[1]), flags, context, |regex| regex.is_match(string).map(Datum::Bool))
}

fn regexp_count(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let from = start(arguments, 2)?;
    let flags = Flags::parse(arguments.get(3).map_or("", text))?;
    let flags = no_global(flags, "regexp_count()")?;
    let mut found = 0;
    with_regex(text(&arguments[1]), flags, context, |regex| {
        if let Some(mut from) = from {
            for_each_match(regex, text(&arguments[0]), &mut from, |_| {
                found += 1;
                true
            })?;
        }
        Ok(())
    })?;
    count(found)
}

/// Returns the byte range of a group of the nth match.
fn nth_group(
    arguments: &[Datum],
    from: Option<usize>,
    n: usize,
    (flags, group): (Flags, usize),
    context: &EvalContext,
) -> Result<Option<std::ops::Range<usize>>> {
    let mut left = n;
    let mut range = None;
    with_regex(text(&arguments[1]), flags, context, |regex| {
        let Some(mut from) = from else { return Ok(()) };
        for_each_match(regex, text(&arguments[0]), &mut from, |found| {
            left -= 1;
            if left == 0 {
                range = found.group(group);
            }
            left > 0
        })
    })?;
    Ok(range)
}

fn regexp_instr(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let from = start(arguments, 2)?;
    let n = number(arguments, 3, "n", 1)?.unwrap_or(1);
    let end = number(arguments, 4, "endoption", 0)?.unwrap_or(0);
    if end > 1 {
        let message = format!("invalid value for parameter \"endoption\": {end}");
        return Err(invalid_parameter(message));
    }
    let group = number(arguments, 6, "subexpr", 0)?.unwrap_or(0);
    let flags = Flags::parse(arguments.get(5).map_or("", text))?;
    let flags = no_global(flags, "regexp_instr()")?;
    match nth_group(arguments, from, n, (flags, group), context)? {
        None => Ok(Datum::Int4(0)),
        Some(range) => {
            let at = if end == 1 { range.end } else { range.start };
            count(text(&arguments[0])[..at].chars().count() + 1)
        }
    }
}

fn regexp_substr(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let from = start(arguments, 2)?;
    let n = number(arguments, 3, "n", 1)?.unwrap_or(1);
    let group = number(arguments, 5, "subexpr", 0)?.unwrap_or(0);
    let flags = Flags::parse(arguments.get(4).map_or("", text))?;
    let flags = no_global(flags, "regexp_substr()")?;
    let range = nth_group(arguments, from, n, (flags, group), context)?;
    Ok(range.map_or(Datum::Null, |range| text_datum(&text(&arguments[0])[range])))
}

fn regexp_replace(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let letters = text(&arguments[3]);
    if let Some(digit) = letters.chars().next().filter(char::is_ascii_digit) {
        let message = format!("invalid regular expression option: \"{digit}\"");
        return Err(invalid_parameter(message).with_hint(
            "If you meant to use regexp_replace() with a start parameter, cast the fourth \
             argument to integer explicitly.",
        ));
    }
    replace(arguments, (0, None), letters, context)
}

fn regexp_replace_from(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let from = start(arguments, 3)?;
    let n = number(arguments, 4, "n", 0)?.unwrap_or(1);
    let letters = arguments.get(5).map_or("", text);
    match from {
        Some(from) => replace(arguments, (from, Some(n)), letters, context),
        None => {
            Flags::parse(letters)?;
            Ok(arguments[0].clone())
        }
    }
}

/// Replaces the nth match from a byte on; 0 for all; `None` for the first or all, according to
/// the flag `g`.
fn replace(
    arguments: &[Datum],
    (mut from, n): (usize, Option<usize>),
    letters: &str,
    context: &EvalContext,
) -> Result<Datum> {
    let flags = Flags::parse(letters)?;
    let n = n.unwrap_or(usize::from(!flags.global));
    let (string, replacement) = (text(&arguments[0]), text(&arguments[2]));
    let mut replaced: String = context.pace().buffer(string.len())?;
    let (mut copied, mut seen) = (0, 0);
    with_regex(text(&arguments[1]), flags.without_global(), context, |regex| {
        for_each_match(regex, string, &mut from, |found| {
            seen += 1;
            let all = found.all();
            if n == 0 || seen == n {
                replaced.push_str(&string[copied..all.start]);
                expand(replacement, (found, string), &mut replaced);
                copied = all.end;
            }
            n == 0 || seen < n
        })
    })?;
    replaced.push_str(&string[copied..]);
    Ok(text_datum(replaced))
}

/// Expands `\1` … `\9`, `\&` and `\\` of a replacement.
fn expand(replacement: &str, (found, string): (&Match, &str), expanded: &mut String) {
    let mut characters = replacement.chars();
    let capture = |index: usize, expanded: &mut String| {
        expanded.push_str(found.group(index).map_or("", |group| &string[group]));
    };
    while let Some(character) = characters.next() {
        if character != '\\' {
            expanded.push(character);
            continue;
        }
        match characters.next() {
            Some('&') => capture(0, expanded),
            Some(digit @ '1'..='9') => capture(digit as usize - '0' as usize, expanded),
            Some('\\') | None => expanded.push('\\'),
            Some(other) => {
                expanded.push('\\');
                expanded.push(other);
            }
        }
    }
}

/// Returns the first group of the match, or the whole match if the pattern has no groups.
fn substring(string: &str, pattern: &str, context: &EvalContext) -> Result<Datum> {
    with_regex(pattern, Flags::default(), context, |regex| {
        let group = regex.group_count().min(1);
        let found = regex.search(string).find_at(0)?.and_then(|found| found.group(group));
        Ok(found.map_or(Datum::Null, |group| text_datum(&string[group])))
    })
}
