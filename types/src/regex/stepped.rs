//! Searches in long texts, which look at the flag: the `regex` crate's automaton, one byte at a
//! time.
//!
//! One search of the crate cannot be stopped, and one in a text of a gigabyte takes seconds. What
//! is short is searched by the crate itself, whose look for literals is faster.
//!
//! The automaton knows no edges of words among characters other than ASCII. A pattern that asks
//! for them where there are such has no answer here.

use std::ops::Range;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{self, Cache, DFA};
use regex_automata::hybrid::regex::Regex;
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input};

use crate::error::Result;
use crate::pieces::{PIECE, Pace};

/// Bytes that a pattern may take.
pub(super) const SIZE_MAX: usize = 8 << 20;

/// A pattern, and the same from its end.
#[derive(Debug)]
pub(super) struct Stepped(Regex);

/// The states that searches have come to.
pub(super) type States = regex_automata::hybrid::regex::Cache;

/// What the automaton says.
pub(super) enum Found<T> {
    Match(T),
    Nothing,
    /// It cannot tell.
    Unknown,
}

impl Stepped {
    /// Reads a pattern; `None` if it is too large.
    pub(super) fn new(pattern: &str) -> Option<Stepped> {
        let config = dfa::Config::new().unicode_word_boundary(true).skip_cache_capacity_check(true);
        let size = thompson::Config::new().nfa_size_limit(Some(SIZE_MAX));
        let regex = Regex::builder().dfa(config).thompson(size).build(pattern).ok()?;
        Some(Stepped(regex))
    }

    /// Returns what searches begin with.
    pub(super) fn states(&self) -> States {
        self.0.create_cache()
    }

    /// Returns whether there is a match.
    pub(super) fn is_match(&self, text: &str, pace: &mut Pace<'_>) -> Result<Found<()>> {
        let mut states = self.states();
        Ok(match self.end(text, 0, true, &mut states, pace)? {
            Found::Match(_) => Found::Match(()),
            Found::Nothing => Found::Nothing,
            Found::Unknown => Found::Unknown,
        })
    }

    /// Returns the first match from a byte on.
    pub(super) fn find(
        &self,
        text: &str,
        from: usize,
        states: &mut States,
        pace: &mut Pace<'_>,
    ) -> Result<Found<Range<usize>>> {
        let end = match self.end(text, from, false, states, pace)? {
            Found::Match(end) => end,
            Found::Nothing => return Ok(Found::Nothing),
            Found::Unknown => return Ok(Found::Unknown),
        };
        let (_, backward) = states.as_parts_mut();
        let start = start(self.0.reverse(), text, from..end, backward, pace)?;
        Ok(match start {
            // A match within a character is none.
            Some(start) if text.is_char_boundary(start) && text.is_char_boundary(end) => {
                Found::Match(start..end)
            }
            _ => Found::Unknown,
        })
    }

    /// Returns where the first match ends, or the first that is seen to end.
    fn end(
        &self,
        text: &str,
        from: usize,
        any: bool,
        states: &mut States,
        pace: &mut Pace<'_>,
    ) -> Result<Found<usize>> {
        let (cache, _) = states.as_parts_mut();
        let input = Input::new(text).range(from..).earliest(any);
        let first = self.0.forward().start_state_forward(cache, &input).ok();
        let mut walk = Walk { dfa: self.0.forward(), cache, state: first, last: None };
        let mut at = from;
        for piece in text.as_bytes()[from..].chunks(PIECE) {
            for byte in piece {
                if !walk.step(*byte, at) || (any && walk.last.is_some()) {
                    return Ok(walk.found());
                }
                at += 1;
            }
            pace.spend(piece.len())?;
        }
        walk.finish(at);
        Ok(walk.found())
    }
}

/// Returns where the longest match begins that ends at the end of a range.
fn start(
    dfa: &DFA,
    text: &str,
    within: Range<usize>,
    cache: &mut Cache,
    pace: &mut Pace<'_>,
) -> Result<Option<usize>> {
    let bytes = text.as_bytes();
    let input = Input::new(text).range(within.clone()).anchored(Anchored::Yes);
    let first = dfa.start_state_reverse(cache, &input).ok();
    let mut walk = Walk { dfa, cache, state: first, last: None };
    let mut at = within.end;
    for piece in bytes[within.clone()].rchunks(PIECE) {
        for byte in piece.iter().rev() {
            if !walk.step(*byte, at) {
                return Ok(walk.last.filter(|_| walk.state.is_some()));
            }
            at -= 1;
        }
        pace.spend(piece.len())?;
    }
    // What stands before the range decides whether a match may begin there.
    match within.start.checked_sub(1) {
        Some(before) => _ = walk.step(bytes[before], at),
        None => walk.finish(at),
    }
    Ok(walk.last.filter(|_| walk.state.is_some()))
}

/// A walk through the states of an automaton, which tells of a match one byte late.
struct Walk<'a> {
    dfa: &'a DFA,
    cache: &'a mut Cache,
    /// `None` once the automaton cannot tell.
    state: Option<LazyStateID>,
    /// Where the match lies that is the best so far.
    last: Option<usize>,
}

impl Walk<'_> {
    /// Takes the byte next to a place; false if nothing behind it counts.
    #[inline]
    fn step(&mut self, byte: u8, place: usize) -> bool {
        let Some(state) = self.state else { return false };
        let next = self.dfa.next_state(self.cache, state, byte);
        self.enter(next.ok(), place)
    }

    /// Takes the end of the text.
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

    fn found(&self) -> Found<usize> {
        match (self.state, self.last) {
            (None, _) => Found::Unknown,
            (_, Some(place)) => Found::Match(place),
            (_, None) => Found::Nothing,
        }
    }
}
