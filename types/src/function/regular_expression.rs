//! POSIX-style regular expressions: patterns, and the operators `~` and `SIMILAR TO`. The functions
//! on them are in `regular_expression_functions`.
//!
//! Patterns are PostgreSQL's advanced regular expressions, rewritten where the `regex` crate spells
//! the same thing differently (`\m`, `\y`, `\Z`, `***=`). Two differences remain: back-references
//! and look-around are refused, and of several matches at one place the leftmost *alternative* wins
//! where PostgreSQL prefers the longest. A mere test (`~`) is not affected by the second.
//!
//! Compiled patterns are kept per thread, most recent first, as PostgreSQL keeps them per backend.

use std::cell::RefCell;

use regex::{Regex, RegexBuilder};

use super::argument::{text, text_datum};
use super::like::invalid_escape;
use super::strings::invalid_parameter;
use super::{Row, row};
use crate::datatype::DataType::{Bool, Char, Name, Text};
use crate::datum::Datum;
use crate::error::{Error, Result, sqlstate};

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("~", &[Text, Text], Bool, |a, _| found(a, false)),
    row("~", &[Name, Text], Bool, |a, _| found(a, false)),
    row("~", &[Char, Text], Bool, |a, _| found(a, false)),
    row("!~", &[Text, Text], Bool, |a, _| found(a, false).map(not)),
    row("!~", &[Name, Text], Bool, |a, _| found(a, false).map(not)),
    row("!~", &[Char, Text], Bool, |a, _| found(a, false).map(not)),
    row("~*", &[Text, Text], Bool, |a, _| found(a, true)),
    row("~*", &[Name, Text], Bool, |a, _| found(a, true)),
    row("~*", &[Char, Text], Bool, |a, _| found(a, true)),
    row("!~*", &[Text, Text], Bool, |a, _| found(a, true).map(not)),
    row("!~*", &[Name, Text], Bool, |a, _| found(a, true).map(not)),
    row("!~*", &[Char, Text], Bool, |a, _| found(a, true).map(not)),
    row("similar_to_escape", &[Text], Text, |a, _| similar(text(&a[0]), Some('\\'))),
    row("similar_to_escape", &[Text, Text], Text, |a, _| {
        let mut escape = text(&a[1]).chars();
        match (escape.next(), escape.next()) {
            (first, None) => similar(text(&a[0]), first),
            _ => Err(invalid_escape()),
        }
    }),
];

/// How a pattern is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Flags {
    ignore_case: bool,
    /// `^` and `$` match at line ends, `.` and `[^…]` do not match a newline.
    newline_sensitive: bool,
    expanded: bool,
    literal: bool,
    /// `.` does not match a newline.
    stops_at_lines: bool,
    /// `^` and `$` match at line ends.
    matches_lines: bool,
    /// All matches, not the first only.
    pub(super) global: bool,
}

impl Flags {
    /// Returns the flags without `g`, which compiles to the same pattern.
    pub(super) fn without_global(self) -> Flags {
        Flags { global: false, ..self }
    }

    /// Returns the flags of `like_regex`. A dot stops at the end of a line unless `s` is there.
    pub(super) fn of_path(letters: &str) -> Flags {
        let literal = letters.contains('q');
        Flags {
            ignore_case: letters.contains('i'),
            literal,
            stops_at_lines: !literal && !letters.contains('s'),
            matches_lines: !literal && letters.contains('m'),
            ..Flags::default()
        }
    }

    pub(super) fn parse(letters: &str) -> Result<Flags> {
        let mut flags = Flags::default();
        for letter in letters.chars() {
            match letter {
                'g' => flags.global = true,
                'i' => flags.ignore_case = true,
                'c' => flags.ignore_case = false,
                'n' | 'm' => flags.newline_sensitive = true,
                's' => flags.newline_sensitive = false,
                'x' => flags.expanded = true,
                't' => flags.expanded = false,
                'q' => flags.literal = true,
                other => {
                    let message = format!("invalid regular expression option: \"{other}\"");
                    return Err(invalid_parameter(message));
                }
            }
        }
        Ok(flags)
    }
}

/// The patterns compiled last on this thread, the last one first.
struct Cache(Vec<(String, Flags, Regex)>);

const CACHED_PATTERNS: usize = 32;

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new(Cache(Vec::new())) };
}

/// Calls `work` with the compiled pattern.
pub(super) fn with_regex<T>(
    pattern: &str,
    flags: Flags,
    work: impl FnOnce(&Regex) -> T,
) -> Result<T> {
    CACHE.with_borrow_mut(|Cache(entries)| {
        match entries.iter().position(|entry| entry.1 == flags && entry.0 == pattern) {
            Some(0) => {}
            Some(index) => entries[..=index].rotate_right(1),
            None => {
                let regex = compile(pattern, flags)?;
                entries.truncate(CACHED_PATTERNS - 1);
                entries.insert(0, (pattern.to_owned(), flags, regex));
            }
        }
        Ok(work(&entries[0].2))
    })
}

fn compile(pattern: &str, flags: Flags) -> Result<Regex> {
    let (pattern, literal) = match pattern.strip_prefix("***=") {
        Some(literal) => (literal, true),
        None => (pattern.strip_prefix("***:").unwrap_or(pattern), flags.literal),
    };
    let translated = if literal { regex::escape(pattern) } else { translate(pattern) };
    RegexBuilder::new(&translated)
        .case_insensitive(flags.ignore_case)
        .multi_line(flags.newline_sensitive || flags.matches_lines)
        .dot_matches_new_line(!flags.newline_sensitive && !flags.stops_at_lines)
        .ignore_whitespace(flags.expanded)
        .size_limit(8 << 20)
        .build()
        .map_err(|error| refuse(pattern, &error))
}

fn refuse(pattern: &str, error: &regex::Error) -> Error {
    let text = error.to_string();
    if text.contains("backreferences are not supported") || text.contains("look-around") {
        let message = "back-references and look-around in regular expressions are not supported";
        return Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
            .with_detail(format!("The pattern is \"{pattern}\"."));
    }
    let reason = text.lines().last().unwrap_or_default();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    let reason = match reason {
        "unclosed group" | "unopened group" => "parentheses () not balanced",
        "unclosed character class" => "brackets [] not balanced",
        "repetition operator missing expression" => "quantifier operand invalid",
        "invalid character class range, the start must be <= the end" => "invalid character range",
        "invalid repetition count range, the start must be <= the end" => {
            "invalid repetition count(s)"
        }
        "unclosed counted repetition" => "braces {} not balanced",
        other => other,
    };
    Error::new("2201B", format!("invalid regular expression: {reason}"))
}

/// Rewrites the escapes that PostgreSQL and the `regex` crate spell differently.
fn translate(pattern: &str) -> String {
    let mut translated = String::with_capacity(pattern.len() + 8);
    let mut characters = pattern.chars();
    let mut within_brackets = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('m') if !within_brackets => translated.push_str(r"\b{start}"),
                Some('M') if !within_brackets => translated.push_str(r"\b{end}"),
                Some('y') if !within_brackets => translated.push_str(r"\b"),
                Some('Y') if !within_brackets => translated.push_str(r"\B"),
                Some('Z') if !within_brackets => translated.push_str(r"\z"),
                Some(other) if other.is_alphanumeric() || other.is_ascii_punctuation() => {
                    translated.push('\\');
                    translated.push(other);
                }
                Some(other) => translated.push(other),
                None => translated.push('\\'),
            },
            '[' if within_brackets => {
                let class = characters.as_str().starts_with(':');
                translated.push_str(if class { "[" } else { r"\[" });
                if class && let Some(end) = characters.as_str().find(":]") {
                    translated.push_str(&characters.as_str()[..end + 2]);
                    characters = characters.as_str()[end + 2..].chars();
                }
            }
            '&' | '~' if within_brackets => {
                translated.push('\\');
                translated.push(character);
            }
            '[' => {
                within_brackets = true;
                translated.push('[');
                for leading in ['^', ']'] {
                    if let Some(rest) = characters.as_str().strip_prefix(leading) {
                        translated.push_str(if leading == ']' { r"\]" } else { "^" });
                        characters = rest.chars();
                    }
                }
            }
            ']' if within_brackets => {
                within_brackets = false;
                translated.push(']');
            }
            other => translated.push(other),
        }
    }
    translated
}

fn found(arguments: &[Datum], ignore_case: bool) -> Result<Datum> {
    let flags = Flags { ignore_case, ..Flags::default() };
    let string = text(&arguments[0]);
    with_regex(text(&arguments[1]), flags, |regex| Datum::Bool(regex.is_match(string)))
}

fn not(found: Datum) -> Datum {
    match found {
        Datum::Bool(found) => Datum::Bool(!found),
        other => other,
    }
}

/// Rewrites a `SIMILAR TO` pattern into a regular expression. Two separators (an escape before a
/// double quote) cut it into three parts, of which the first matches as little as it can and the
/// second is what `substring` returns.
pub(super) fn similar(pattern: &str, escape: Option<char>) -> Result<Datum> {
    let mut parts = vec![String::with_capacity(pattern.len() + 8)];
    let mut escaped = false;
    let mut within_brackets = false;
    for character in pattern.chars() {
        let rewritten = parts.last_mut().expect("there is always a part");
        if escaped && character == '"' && !within_brackets {
            parts.push(String::new());
            escaped = false;
        } else if escaped {
            rewritten.push('\\');
            rewritten.push(character);
            escaped = false;
        } else if Some(character) == escape {
            escaped = true;
        } else if within_brackets {
            if character == '\\' {
                rewritten.push('\\');
            }
            within_brackets = character != ']';
            rewritten.push(character);
        } else {
            within_brackets = character == '[';
            match character {
                '%' => rewritten.push_str(".*"),
                '_' => rewritten.push('.'),
                '(' => rewritten.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    rewritten.push('\\');
                    rewritten.push(character);
                }
                other => rewritten.push(other),
            }
        }
    }
    match parts.as_slice() {
        [all] => Ok(text_datum(format!("^(?:{all})$"))),
        [before, found] => Ok(text_datum(format!("^(?U:{before})({found})$"))),
        [before, found, after] => Ok(text_datum(format!("^(?U:{before})({found})(?:{after})$"))),
        _ => {
            let message = "SQL regular expression may not contain more than two \
                           escape-double-quote separators";
            Err(Error::new("2200C", message))
        }
    }
}
