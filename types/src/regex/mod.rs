//! Regular expressions with PostgreSQL's syntax and matches.
//!
//! A pattern is parsed into a tree (`regex/parse.rs`, `regex/tree.rs`). The `regex` crate finds
//! whether and where it matches (`regex/plain.rs`), and the extent of the match if that is
//! certain to be PostgreSQL's. Otherwise `regex/matcher.rs` finds the extent of the match and of
//! its groups: the longest, or the shortest for a non-greedy pattern. It also matches patterns
//! with back-references and look-around, which the crate does not support. In long texts the
//! crate's automaton is stepped byte by byte (`regex/stepped.rs`), so that a search can be
//! cancelled.
//!
//! Source: PostgreSQL's `src/backend/regex`, whose engine is Henry Spencer's.

mod bits;
mod matcher;
mod parse;
mod crate_pattern;
mod set;
mod interruptible_search;
mod tree;

use std::ops::Range;
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, cancelled};
use crate::interruptible::{CHUNK_BYTES, InterruptPacer};
use interruptible_search::{SearchResult, States, SteppedRegex};
use matcher::{Matcher, SearchAbort};
use tree::RegexNode;

/// The syntax of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Syntax {
    /// Advanced regular expressions.
    #[default]
    Advanced,
    /// POSIX extended regular expressions.
    Extended,
    /// Literal text.
    Literal,
}

/// Compile options of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The syntax.
    pub syntax: Syntax,
    /// Case-insensitive matching.
    pub ignore_case: bool,
    /// White space and comments are ignored.
    pub expanded: bool,
    /// `.` and `[^…]` do not match a newline.
    pub stop_at_lines: bool,
    /// `^` and `$` match at line ends.
    pub line_anchors: bool,
}

impl Options {
    /// Returns the options for the flags of `like_regex`. A dot does not match a newline unless
    /// `s` is set.
    pub fn of_path(letters: &str) -> Options {
        let literal = letters.contains('q');
        Options {
            syntax: if literal { Syntax::Literal } else { Syntax::Advanced },
            ignore_case: letters.contains('i'),
            expanded: false,
            stop_at_lines: !literal && !letters.contains('s'),
            line_anchors: !literal && letters.contains('m'),
        }
    }

    /// Applies an option letter, as in `(?…)` at the start of a pattern; returns false if it is
    /// unknown.
    pub fn take(&mut self, letter: char) -> bool {
        match letter {
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'n' | 'm' => (self.stop_at_lines, self.line_anchors) = (true, true),
            'p' => (self.stop_at_lines, self.line_anchors) = (true, false),
            'w' => (self.stop_at_lines, self.line_anchors) = (false, true),
            's' => (self.stop_at_lines, self.line_anchors) = (false, false),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.syntax = Syntax::Literal,
            'e' => self.syntax = Syntax::Extended,
            _ => return false,
        }
        true
    }
}

/// A match: its byte range and those of its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match(Vec<Option<Range<usize>>>);

impl Match {
    /// Returns the byte range of a group, where 0 is the match itself; `None` if it did not
    /// participate.
    pub fn group(&self, index: usize) -> Option<Range<usize>> {
        self.0.get(index).cloned().flatten()
    }

    /// Returns the byte range of the match.
    pub fn all(&self) -> Range<usize> {
        self.group(0).unwrap_or_default()
    }

    /// Returns the byte ranges of the groups.
    pub fn groups(&self) -> impl Iterator<Item = Option<Range<usize>>> + '_ {
        self.0.iter().skip(1).cloned()
    }
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern {
    part: RegexNode,
    groups: usize,
    ignore_case: bool,
    /// A pattern of the crate that matches at the same positions.
    plain: Option<regex::Regex>,
    /// The automaton for long texts, once it was built; `None` if it is too large.
    stepped: OnceLock<Option<SteppedRegex>>,
    /// The extent of the crate's matches is PostgreSQL's.
    exact: bool,
}

/// Maximum bytes of a pattern, because parsing cannot be cancelled. PostgreSQL's limit is that of
/// its automaton, which 50,000 plain characters reach.
const PATTERN_BYTES_MAX: usize = 50_000;

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// 2201B with PostgreSQL's message.
    pub fn new(pattern: &str, options: Options) -> Result<Pattern> {
        let bad = |reason| err!(INVALID_REGULAR_EXPRESSION: "invalid regular expression: {reason}");
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(bad(parse::TOO_COMPLEX));
        }
        let parse::ParsedPattern { part, groups, options } =
            parse::parse(pattern, options).map_err(bad)?;
        let mut written = String::new();
        let known = crate_pattern::write(&part, &mut written);
        let built = || {
            regex::RegexBuilder::new(&written)
                .size_limit(interruptible_search::SIZE_MAX)
                .build()
                .ok()
        };
        let plain = if known { built() } else { None };
        let all = plain.as_ref().is_some_and(|plain| plain.captures_len() == groups + 1);
        let exact = all && crate_pattern::is_exact(&part);
        let (ignore_case, stepped) = (options.ignore_case, OnceLock::new());
        Ok(Pattern { part, groups, ignore_case, plain, stepped, exact })
    }

    /// Returns the number of groups.
    pub fn group_count(&self) -> usize {
        self.groups
    }

    /// Returns whether there is a match.
    ///
    /// # Errors
    ///
    /// 54001 if the search takes too many steps, 57014 if it is cancelled.
    pub fn is_match(&self, text: &str, interrupt: &Interrupt) -> Result<bool> {
        let Some(plain) = &self.plain else {
            return Ok(self.search(text, interrupt).find_at(0)?.is_some());
        };
        if let Some(stepped) = self.stepped(plain, text.len()) {
            match stepped.is_match(text, &mut InterruptPacer::new(interrupt))? {
                SearchResult::Match(()) => return Ok(true),
                SearchResult::Nothing => return Ok(false),
                SearchResult::Unknown => {}
            }
        }
        Ok(plain.is_match(text))
    }

    /// Returns the cancellable automaton, for a text of many bytes.
    fn stepped(&self, plain: &regex::Regex, bytes: usize) -> Option<&SteppedRegex> {
        let stepped = || self.stepped.get_or_init(|| SteppedRegex::new(plain.as_str())).as_ref();
        if bytes > CHUNK_BYTES { stepped() } else { None }
    }

    /// Starts a search, which ends when the statement is cancelled.
    pub fn search<'p>(&'p self, text: &'p str, interrupt: &'p Interrupt) -> Search<'p> {
        Search {
            pattern: self,
            pace: InterruptPacer::new(interrupt),
            text,
            states: None,
            characters: Vec::new(),
            bytes: Vec::new(),
        }
    }
}

/// Cost of a match in addition to its steps.
const MATCH: usize = 64;

/// A search in a text.
pub struct Search<'p> {
    pattern: &'p Pattern,
    pace: InterruptPacer<'p>,
    text: &'p str,
    /// Cached states of the automaton.
    states: Option<States>,
    /// The characters and their byte positions; empty until they are needed.
    characters: Vec<char>,
    bytes: Vec<usize>,
}

impl Search<'_> {
    /// Returns the first match from a byte on.
    ///
    /// # Errors
    ///
    /// 54001 if it takes too many steps, 57014 if it is cancelled.
    pub fn find_at(&mut self, from: usize) -> Result<Option<Match>> {
        let pattern = self.pattern;
        debug_assert!(self.text.is_char_boundary(from), "{from} is within a character");
        let mut begin = from;
        if let Some(plain) = &pattern.plain {
            self.pace.count_steps(MATCH)?;
            match self.find_stepped(plain, from)? {
                SearchResult::Nothing => return Ok(None),
                SearchResult::Match(found) if pattern.exact && pattern.groups == 0 => {
                    return Ok(Some(Match(vec![Some(found)])));
                }
                // The groups of a long match are found by the matcher below.
                SearchResult::Match(found) if pattern.exact && found.len() <= CHUNK_BYTES => {
                    return Ok(captures(plain, &self.text[..found.end], found.start));
                }
                SearchResult::Match(found) => begin = found.start,
                SearchResult::Unknown if pattern.exact => {
                    return Ok(captures(plain, self.text, from));
                }
                SearchResult::Unknown => match plain.find_at(self.text, from) {
                    Some(found) => begin = found.start(),
                    None => return Ok(None),
                },
            }
        }
        self.find_ours(begin)
    }

    /// Returns the first match from a byte on, according to the crate's automaton.
    fn find_stepped(
        &mut self,
        plain: &regex::Regex,
        from: usize,
    ) -> Result<SearchResult<Range<usize>>> {
        let left = self.text.len().saturating_sub(from);
        let Some(stepped) = self.pattern.stepped(plain, left) else {
            return Ok(SearchResult::Unknown);
        };
        let states = self.states.get_or_insert_with(|| stepped.states());
        stepped.find(self.text, from, states, &mut self.pace)
    }

    /// Returns the first match from a byte on, according to bennu's matcher.
    fn find_ours(&mut self, begin: usize) -> Result<Option<Match>> {
        let pattern = self.pattern;
        if self.bytes.is_empty() {
            for (at, character) in self.text.char_indices() {
                self.pace.push(&mut self.characters, character)?;
                self.pace.push(&mut self.bytes, at)?;
            }
            self.bytes.push(self.text.len());
        }
        let first = self.bytes.partition_point(|byte| *byte < begin);
        let (groups, interrupt) = (pattern.groups, self.pace.interrupt());
        let mut matcher = Matcher::new(&self.characters, groups, pattern.ignore_case, interrupt);
        let stopped = |why| match why {
            SearchAbort::TooComplex => {
                err!(STATEMENT_TOO_COMPLEX: "regular expression failed: regular expression is too complex")
            }
            SearchAbort::Cancelled => cancelled(),
        };
        let (part, last) = (&pattern.part, self.characters.len());
        let mut start = first;
        loop {
            // For patterns with back-references PostgreSQL (`cfindloop`) tries start positions up
            // to the end of the first possible match, then continues after it, but not at the end
            // of the text only.
            let close = match part.refers {
                true => match matcher.first_end(part, start).map_err(stopped)? {
                    Some(close) => close,
                    None => return Ok(None),
                },
                false => last,
            };
            for at in start..=close {
                self.pace.count_steps(1)?;
                if let Some(places) = matcher.match_at(part, at).map_err(stopped)? {
                    let range = |(from, to): (usize, usize)| self.bytes[from]..self.bytes[to];
                    return Ok(Some(Match(places.into_iter().map(|p| p.map(range)).collect())));
                }
            }
            start = close + 1;
            if start >= last {
                return Ok(None);
            }
        }
    }
}

fn captures(plain: &regex::Regex, text: &str, from: usize) -> Option<Match> {
    let found = plain.captures_at(text, from)?;
    Some(Match(found.iter().map(|group| group.map(|group| group.range())).collect()))
}

#[cfg(test)]
mod tests;
