//! POSIX regular expressions: pattern cache, and the operators `~` and `SIMILAR TO`. The
//! functions are in `regular_expression_functions`.
//!
//! Patterns are PostgreSQL's advanced regular expressions ([`crate::regex`]). Compiled patterns
//! are cached per thread, most recent first, as PostgreSQL caches them per backend.

use std::cell::RefCell;

use super::argument::{text, text_datum};
use super::like::invalid_escape;
use super::recent_cache::RecentCache;
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, Char, Name, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::regex::{Options, Pattern, Search};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("~", &[Text, Text], Bool, |a, c| found(a, false, c)),
    row("~", &[Name, Text], Bool, |a, c| found(a, false, c)),
    row("~", &[Char, Text], Bool, |a, c| found(a, false, c)),
    row("!~", &[Text, Text], Bool, |a, c| found(a, false, c).map(not)),
    row("!~", &[Name, Text], Bool, |a, c| found(a, false, c).map(not)),
    row("!~", &[Char, Text], Bool, |a, c| found(a, false, c).map(not)),
    row("~*", &[Text, Text], Bool, |a, c| found(a, true, c)),
    row("~*", &[Name, Text], Bool, |a, c| found(a, true, c)),
    row("~*", &[Char, Text], Bool, |a, c| found(a, true, c)),
    row("!~*", &[Text, Text], Bool, |a, c| found(a, true, c).map(not)),
    row("!~*", &[Name, Text], Bool, |a, c| found(a, true, c).map(not)),
    row("!~*", &[Char, Text], Bool, |a, c| found(a, true, c).map(not)),
    row("similar_to_escape", &[Text], Text, |a, _| similar(text(&a[0]), Some('\\'))),
    row("similar_to_escape", &[Text, Text], Text, similar_escape),
    row("similar_escape", &[Text, Text], Text, |a, c| match (&a[0], &a[1]) {
        (Datum::Null, _) => Ok(Datum::Null),
        (pattern, Datum::Null) => similar(text(pattern), Some('\\')),
        _ => similar_escape(a, c),
    })
    .takes_null(),
];

fn similar_escape(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let mut escape = text(&arguments[1]).chars();
    match (escape.next(), escape.next()) {
        (first, None) => similar(text(&arguments[0]), first),
        _ => Err(invalid_escape()),
    }
}

/// Compile options of a pattern, and the option `g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Flags {
    options: Options,
    /// All matches, not only the first.
    pub(super) global: bool,
}

impl Flags {
    /// Returns the flags without `g`, which compiles to the same pattern.
    pub(super) fn without_global(self) -> Flags {
        Flags { global: false, ..self }
    }

    /// Returns the flags of `like_regex`.
    pub(super) fn of_path(letters: &str) -> Flags {
        Flags { options: Options::of_path(letters), global: false }
    }

    pub(super) fn parse(letters: &str) -> Result<Flags> {
        let mut flags = Flags::default();
        for letter in letters.chars() {
            match letter {
                'g' => flags.global = true,
                'b' => {
                    bail!(FEATURE_NOT_SUPPORTED: "basic regular expressions are not supported";
                        hint "Omit flag b and use an advanced regular expression.");
                }
                letter if flags.options.take(letter) => {}
                other => {
                    let message = format!("invalid regular expression option: \"{other}\"");
                    return Err(invalid_parameter(message));
                }
            }
        }
        Ok(flags)
    }
}

thread_local! {
    /// The cache of compiled patterns.
    static PATTERNS: RefCell<RecentCache<Flags, Pattern>> = const { RefCell::new(RecentCache::new()) };
}

/// A compiled pattern with the context of the statement.
pub(super) struct Regex<'p> {
    pattern: &'p Pattern,
    context: &'p EvalContext,
}

impl<'p> Regex<'p> {
    /// Returns whether there is a match.
    pub(super) fn is_match(&self, text: &str) -> Result<bool> {
        self.pattern.is_match(text, &self.context.style.interrupt)
    }

    /// Starts a search.
    pub(super) fn search(&self, text: &'p str) -> Search<'p> {
        self.pattern.search(text, &self.context.style.interrupt)
    }

    /// Returns the number of capture groups.
    pub(super) fn group_count(&self) -> usize {
        self.pattern.group_count()
    }
}

/// Calls `work` with the compiled pattern.
pub(super) fn with_regex<T>(
    pattern: &str,
    flags: Flags,
    context: &EvalContext,
    work: impl FnOnce(&Regex<'_>) -> Result<T>,
) -> Result<T> {
    PATTERNS.with_borrow_mut(|patterns| {
        let compile = |pattern: &str| Pattern::new(pattern, flags.options);
        let pattern = patterns.get(pattern, flags, compile)?;
        work(&Regex { pattern, context })
    })
}

fn found(arguments: &[Datum], ignore_case: bool, context: &EvalContext) -> Result<Datum> {
    let options = Options { ignore_case, ..Options::default() };
    let flags = Flags { options, global: false };
    let string = text(&arguments[0]);
    with_regex(text(&arguments[1]), flags, context, |regex| regex.is_match(string).map(Datum::Bool))
}

fn not(found: Datum) -> Datum {
    match found {
        Datum::Bool(found) => Datum::Bool(!found),
        other => other,
    }
}

/// Translates a `SIMILAR TO` pattern to a regular expression. Two separators (an escape before a
/// double quote) divide it into three parts, of which the first is non-greedy and the second is
/// the result of `substring`.
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
        [before, found] => Ok(text_datum(format!("^(?:{before}){{1,1}}?({found})$"))),
        [before, found, after] => {
            Ok(text_datum(format!("^(?:{before}){{1,1}}?({found}){{1,1}}(?:{after})$")))
        }
        _ => {
            bail!(INVALID_USE_OF_ESCAPE_CHARACTER: "SQL regular expression may not contain more than two escape-double-quote \
                separators")
        }
    }
}
