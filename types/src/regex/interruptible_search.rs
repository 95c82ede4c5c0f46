//! Cancellable searches in long texts: steps the `regex` crate's automaton byte by byte and
//! checks the interrupt flag.
//!
//! A search by the crate cannot be cancelled, and one in a text of a gigabyte takes seconds.
//! Short texts are searched by the crate itself, whose literal search is faster.
//!
//! The automaton does not support Unicode word boundaries next to non-ASCII characters; such
//! searches have the result [`SearchResult::Unknown`].

use std::ops::Range;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{self, Cache, DFA};
use regex_automata::hybrid::regex::Regex;
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input};

use crate::error::Result;
use crate::interruptible::{CHUNK_BYTES, InterruptPacer};

/// Maximum bytes of a compiled pattern.
pub(super) const SIZE_MAX: usize = 8 << 20;

/// The automata of a pattern for forward and reverse search.
#[derive(Debug)]
pub(super) struct SteppedRegex(Regex);

/// Cached states of the automata.
pub(super) type States = regex_automata::hybrid::regex::Cache;

/// Result of a search.
pub(super) enum SearchResult<T> {
    Match(T),
    Nothing,
    /// The automaton cannot determine it.
    Unknown,
}

impl SteppedRegex {
    /// Compiles a pattern; `None` if it is too large.
    pub(super) fn new(pattern: &str) -> Option<SteppedRegex> {
        let config = dfa::Config::new().unicode_word_boundary(true).skip_cache_capacity_check(true);
        let size = thompson::Config::new().nfa_size_limit(Some(SIZE_MAX));
        let regex = Regex::builder().dfa(config).thompson(size).build(pattern).ok()?;
        Some(SteppedRegex(regex))
    }

    /// Creates an empty cache of states.
    pub(super) fn states(&self) -> States {
        self.0.create_cache()
    }

    /// Returns whether there is a match.
    pub(super) fn is_match(
        &self,
        text: &str,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<SearchResult<()>> {
        let mut states = self.states();
        Ok(match self.end(text, 0, true, &mut states, pace)? {
            SearchResult::Match(_) => SearchResult::Match(()),
            SearchResult::Nothing => SearchResult::Nothing,
            SearchResult::Unknown => SearchResult::Unknown,
        })
    }

    /// Returns the first match from a byte on.
    pub(super) fn find(
        &self,
        text: &str,
        from: usize,
        states: &mut States,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<SearchResult<Range<usize>>> {
        let end = match self.end(text, from, false, states, pace)? {
            SearchResult::Match(end) => end,
            SearchResult::Nothing => return Ok(SearchResult::Nothing),
            SearchResult::Unknown => return Ok(SearchResult::Unknown),
        };
        let (_, backward) = states.as_parts_mut();
        let start = start(self.0.reverse(), text, from..end, backward, pace)?;
        Ok(match start {
            // A match within a character is invalid.
            Some(start) if text.is_char_boundary(start) && text.is_char_boundary(end) => {
                SearchResult::Match(start..end)
            }
            _ => SearchResult::Unknown,
        })
    }

    /// Returns the end of the first match, or, with `any`, the first match end that is found.
    fn end(
        &self,
        text: &str,
        from: usize,
        any: bool,
        states: &mut States,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<SearchResult<usize>> {
        let (cache, _) = states.as_parts_mut();
        let input = Input::new(text).range(from..).earliest(any);
        let first = self.0.forward().start_state_forward(cache, &input).ok();
        let mut walk = AutomatonRun { dfa: self.0.forward(), cache, state: first, last: None };
        let mut at = from;
        for piece in text.as_bytes()[from..].chunks(CHUNK_BYTES) {
            for byte in piece {
                if !walk.step(*byte, at) || (any && walk.last.is_some()) {
                    return Ok(walk.found());
                }
                at += 1;
            }
            pace.count_steps(piece.len())?;
        }
        walk.finish(at);
        Ok(walk.found())
    }
}

/// Returns the start of the longest match that ends at the end of a range.
fn start(
    dfa: &DFA,
    text: &str,
    within: Range<usize>,
    cache: &mut Cache,
    pace: &mut InterruptPacer<'_>,
) -> Result<Option<usize>> {
    let bytes = text.as_bytes();
    let input = Input::new(text).range(within.clone()).anchored(Anchored::Yes);
    let first = dfa.start_state_reverse(cache, &input).ok();
    let mut walk = AutomatonRun { dfa, cache, state: first, last: None };
    let mut at = within.end;
    for piece in bytes[within.clone()].rchunks(CHUNK_BYTES) {
        for byte in piece.iter().rev() {
            if !walk.step(*byte, at) {
                return Ok(walk.last.filter(|_| walk.state.is_some()));
            }
            at -= 1;
        }
        pace.count_steps(piece.len())?;
    }
    // The byte before the range determines whether a match may begin there.
    match within.start.checked_sub(1) {
        Some(before) => _ = walk.step(bytes[before], at),
        None => walk.finish(at),
    }
    Ok(walk.last.filter(|_| walk.state.is_some()))
}

/// A run of an automaton, which reports a match one byte late.
struct AutomatonRun<'a> {
    dfa: &'a DFA,
    cache: &'a mut Cache,
    /// `None` once the automaton has given no answer.
    state: Option<LazyStateID>,
    /// The position of the best match so far.
    last: Option<usize>,
}

impl AutomatonRun<'_> {
    /// Steps over the byte next to a position; returns false if the following bytes do not
    /// matter.
    #[inline]
    fn step(&mut self, byte: u8, place: usize) -> bool {
        let Some(state) = self.state else { return false };
        let next = self.dfa.next_state(self.cache, state, byte);
        self.enter(next.ok(), place)
    }

    /// Processes the end of the text.
    fn finish(&mut self, place: usize) {
        if let Some(state) = self.state {
            let next = self.dfa.next_eoi_state(self.cache, state);
            self.enter(next.ok(), place);
        }
    }

    #[inline]
    fn enter(&mut self, next: Option<LazyStateID>, place: usize) -> bool {
        self.state = next.filter(|state| !state.is_quit());
        let Some(state) = self.state else { return false };
        if state.is_match() {
            self.last = Some(place);
        }
        !state.is_dead()
    }

    fn found(&self) -> SearchResult<usize> {
        match (self.state, self.last) {
            (None, _) => SearchResult::Unknown,
            (_, Some(place)) => SearchResult::Match(place),
            (_, None) => SearchResult::Nothing,
        }
    }
}
