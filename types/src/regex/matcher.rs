//! Matcher by position sets, which also determines the parts of the text that groups match.
//!
//! For each part of the pattern it computes the set of end positions for a set of start
//! positions, without backtracking: the cost is at most the length of the pattern times the
//! square of the text's. Groups are then assigned as in PostgreSQL (`cdissect`): from left to
//! right, each part takes the longest or shortest piece that leaves a match for the rest. Only
//! back-references, which position sets cannot represent, can require many attempts, so there is
//! a limit of steps.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

use super::bits::CharacterBits;
use super::set::{CharSet, Class};
use super::tree::{PositionConstraint, Preference, RegexNode, RegexNodeKind, RepeatCount};
use crate::interrupt::Interrupt;

/// Maximum number of steps of a search. A step takes some nanoseconds.
const STEPS_MAX: usize = 50_000_000;

/// The class of word characters, cached because it is expensive to compile.
static WORD: LazyLock<CharSet> = LazyLock::new(|| {
    let mut word = CharSet::default();
    word.add_class(Class::Word, false, false);
    word.finish()
});

/// Reason for ending a search early.
#[derive(Debug)]
pub(super) enum SearchAbort {
    /// It has taken too many steps.
    TooComplex,
    /// The statement was cancelled.
    Cancelled,
}

type Result<T> = std::result::Result<T, SearchAbort>;

/// The positions of groups; the match itself is first.
pub(super) type Places = Vec<Option<(usize, usize)>>;

/// A search in one text.
pub(super) struct Matcher<'a> {
    text: &'a [char],
    ignore_case: bool,
    steps: usize,
    interrupt: &'a Interrupt,
    /// End positions of parts, by the address of the part and the start position.
    known: HashMap<(usize, usize), Rc<CharacterBits>>,
    groups: Places,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(
        text: &'a [char],
        groups: usize,
        ignore_case: bool,
        interrupt: &'a Interrupt,
    ) -> Matcher<'a> {
        let groups = vec![None; groups + 1];
        Matcher { text, ignore_case, steps: 0, interrupt, known: HashMap::new(), groups }
    }

    /// Returns the match that begins at a position.
    pub(super) fn match_at(&mut self, part: &RegexNode, begin: usize) -> Result<Option<Places>> {
        let ends = self.ends_from(part, begin)?;
        let shortest = part.preference == Some(Preference::Shortest);
        let mut next = match shortest {
            true => ends.first_from(begin),
            false => ends.last_within(self.text.len()),
        };
        while let Some(end) = next {
            self.groups.fill(None);
            if self.dissect(part, begin, end)? {
                self.groups[0] = Some((begin, end));
                return Ok(Some(self.groups.clone()));
            }
            next = match shortest {
                true if end < self.text.len() => ends.first_from(end + 1),
                false if end > begin => ends.last_within(end - 1),
                _ => None,
            };
        }
        Ok(None)
    }

    /// Returns the smallest end of the matches that begin at a position or later, under the
    /// assumption that back-references match any text.
    pub(super) fn first_end(&mut self, part: &RegexNode, from: usize) -> Result<Option<usize>> {
        let mut first: Option<usize> = None;
        for begin in from..=self.text.len() {
            if first.is_some_and(|end| begin > end) {
                break;
            }
            if let Some(end) = self.ends_from(part, begin)?.first_from(begin) {
                first = Some(first.map_or(end, |first| first.min(end)));
            }
        }
        Ok(first)
    }

    fn step(&mut self, steps: usize) -> Result<()> {
        self.steps += steps;
        if self.interrupt.is_set() {
            return Err(SearchAbort::Cancelled);
        }
        if self.steps > STEPS_MAX { Err(SearchAbort::TooComplex) } else { Ok(()) }
    }

    fn ends_from(&mut self, part: &RegexNode, begin: usize) -> Result<Rc<CharacterBits>> {
        let key = (std::ptr::from_ref(part) as usize, begin);
        if let Some(known) = self.known.get(&key) {
            return Ok(Rc::clone(known));
        }
        let mut starts = CharacterBits::new(self.text.len());
        starts.set(begin);
        let ends = Rc::new(self.ends(part, &starts)?);
        self.step(ends.cost() + 8)?;
        self.known.insert(key, Rc::clone(&ends));
        Ok(ends)
    }

    /// Returns the end positions of a part for some start positions.
    fn ends(&mut self, part: &RegexNode, starts: &CharacterBits) -> Result<CharacterBits> {
        self.step(starts.cost() + 1)?;
        if starts.is_empty() {
            return Ok(starts.clone());
        }
        match &part.kind {
            RegexNodeKind::Run(parts) => {
                let mut ends = starts.clone();
                for part in parts {
                    ends = self.ends(part, &ends)?;
                }
                Ok(ends)
            }
            RegexNodeKind::Pair(first, second) => {
                let between = self.ends(first, starts)?;
                self.ends(second, &between)
            }
            RegexNodeKind::Either(parts) => {
                let mut ends = CharacterBits::new(self.text.len());
                for part in parts {
                    ends.absorb(&self.ends(part, starts)?);
                }
                Ok(ends)
            }
            RegexNodeKind::Set(set) => {
                let mut ends = CharacterBits::new(self.text.len());
                let mut count = 0;
                for at in starts.iter() {
                    count += 1;
                    if self.text.get(at).is_some_and(|c| set.contains(*c)) {
                        ends.set(at + 1);
                    }
                }
                self.step(count)?;
                Ok(ends)
            }
            RegexNodeKind::Place(place) => Ok(self.kept(starts, |this, at| this.is_at(*place, at))),
            RegexNodeKind::Look { ahead, negated, part } => {
                self.look(part, *ahead, *negated, starts)
            }
            RegexNodeKind::Repeat { part, count } => self.repeated(part, *count, starts),
            // The text of a back-reference is not known before groups are: any end is possible.
            RegexNodeKind::Reference { .. } => {
                let mut ends = CharacterBits::new(self.text.len());
                let first = starts.first_from(0).unwrap_or(0);
                (first..=self.text.len()).for_each(|at| ends.set(at));
                Ok(ends)
            }
        }
    }

    fn kept(&self, starts: &CharacterBits, keep: impl Fn(&Self, usize) -> bool) -> CharacterBits {
        let mut kept = CharacterBits::new(self.text.len());
        starts.iter().filter(|at| keep(self, *at)).for_each(|at| kept.set(at));
        kept
    }

    fn repeated(
        &mut self,
        part: &RegexNode,
        count: RepeatCount,
        starts: &CharacterBits,
    ) -> Result<CharacterBits> {
        let mut now = starts.clone();
        for _ in 0..count.min {
            let next = self.ends(part, &now)?;
            if next == now {
                break;
            }
            now = next;
        }
        let mut all = now.clone();
        let mut left = count.max.map(|max| max - count.min);
        while left != Some(0) && !now.is_empty() {
            let next = self.ends(part, &now)?;
            now = all.absorb(&next);
            left = left.map(|left| left - 1);
        }
        Ok(all)
    }

    fn look(
        &mut self,
        part: &RegexNode,
        ahead: bool,
        negated: bool,
        starts: &CharacterBits,
    ) -> Result<CharacterBits> {
        if !ahead {
            let mut everywhere = CharacterBits::new(self.text.len());
            (0..=self.text.len()).for_each(|at| everywhere.set(at));
            let ends = self.ends(part, &everywhere)?;
            return Ok(self.kept(starts, |_, at| ends.has(at) != negated));
        }
        let mut kept = CharacterBits::new(self.text.len());
        for at in starts.iter() {
            if self.ends_from(part, at)?.is_empty() == negated {
                kept.set(at);
            }
        }
        Ok(kept)
    }

    fn is_at(&self, place: PositionConstraint, at: usize) -> bool {
        let before = at.checked_sub(1).map(|at| self.text[at]);
        let after = self.text.get(at).copied();
        let is_word = |c: Option<char>| c.is_some_and(|c| WORD.contains(c));
        let begins = || !is_word(before) && is_word(after);
        let ends = || is_word(before) && !is_word(after);
        match place {
            PositionConstraint::Begin => before.is_none(),
            PositionConstraint::End => after.is_none(),
            PositionConstraint::LineBegin => before.is_none_or(|c| c == '\n'),
            PositionConstraint::LineEnd => after.is_none_or(|c| c == '\n'),
            PositionConstraint::WordBegin => begins(),
            PositionConstraint::WordEnd => ends(),
            PositionConstraint::WordEdge => begins() || ends(),
            PositionConstraint::NotWordEdge => !(begins() || ends()),
        }
    }

    /// Assigns the groups of a part that matches from `begin` to `end`; returns false if
    /// back-references do not match.
    fn dissect(&mut self, part: &RegexNode, begin: usize, end: usize) -> Result<bool> {
        debug_assert!(begin <= end && end <= self.text.len(), "{begin} to {end} is in the text");
        self.step(1)?;
        let found = match &part.kind {
            RegexNodeKind::Reference { group, count } => self.refers(*group, *count, begin, end)?,
            _ if !(part.captures || part.refers) => true,
            RegexNodeKind::Pair(first, second) => self.dissect_pair(first, second, begin, end)?,
            RegexNodeKind::Either(parts) => {
                let mut found = false;
                for part in parts {
                    let before = self.groups.clone();
                    if self.ends_from(part, begin)?.has(end) && self.dissect(part, begin, end)? {
                        found = true;
                        break;
                    }
                    self.groups = before;
                }
                found
            }
            RegexNodeKind::Repeat { part: inner, count } => {
                let shortest = inner.preference == Some(Preference::Shortest);
                self.dissect_repeat(inner, *count, shortest, (begin, end))?
            }
            _ => true,
        };
        if found && let Some(group) = part.group {
            self.groups[group] = Some((begin, end));
        }
        Ok(found)
    }

    fn dissect_pair(
        &mut self,
        first: &RegexNode,
        second: &RegexNode,
        begin: usize,
        end: usize,
    ) -> Result<bool> {
        let shortest = first.preference == Some(Preference::Shortest);
        let ends = self.ends_from(first, begin)?;
        let mut next = if shortest { ends.first_from(begin) } else { ends.last_within(end) };
        while let Some(between) = next.filter(|between| *between <= end) {
            self.step(1)?;
            let before = self.groups.clone();
            if self.ends_from(second, between)?.has(end)
                && self.dissect(first, begin, between)?
                && self.dissect(second, between, end)?
            {
                return Ok(true);
            }
            self.groups = before;
            next = match shortest {
                true if between < end => ends.first_from(between + 1),
                false if between > begin => ends.last_within(between - 1),
                _ => None,
            };
        }
        Ok(false)
    }

    /// Finds the iterations of a repetition: PostgreSQL's `citerdissect` and `creviterdissect`.
    fn dissect_repeat(
        &mut self,
        part: &RegexNode,
        count: RepeatCount,
        shortest: bool,
        (begin, end): (usize, usize),
    ) -> Result<bool> {
        let nothing = count.min == 0 && begin == end;
        if nothing && shortest {
            return Ok(true);
        }
        let before = self.groups.clone();
        let least = count.min.max(1);
        let most = (end - begin).min(count.max.unwrap_or(usize::MAX)).max(least);
        let mut pieces = RepetitionMatches { ends: vec![begin], least, end, shortest };
        let mut bound = if shortest { begin } else { end };
        while !pieces.ends.is_empty() {
            self.step(1)?;
            let k = pieces.ends.len();
            let last = pieces.ends[k - 1];
            if shortest {
                let wanted = k >= least || least - k < end - bound;
                if bound == last && bound != end && wanted {
                    bound += 1;
                }
                if k >= most {
                    bound = end;
                }
            }
            let ends = self.ends_from(part, last)?;
            let next = match shortest {
                true => ends.first_from(bound).filter(|found| *found <= end),
                false => ends.last_within(bound),
            };
            let Some(found) = next else {
                match pieces.back() {
                    Some(next) => bound = next,
                    None => break,
                }
                continue;
            };
            pieces.ends.push(found);
            let useless = !shortest && found == last && (k >= least || least - k < end - found);
            let goes_on = if found == end {
                k >= least && self.dissect_pieces(part, &pieces.ends)?
            } else if k < most && !useless {
                bound = if shortest { found } else { end };
                continue;
            } else {
                if k >= most {
                    pieces.ends.pop();
                }
                false
            };
            if goes_on {
                return Ok(true);
            }
            match pieces.back() {
                Some(next) => bound = next,
                None => break,
            }
        }
        self.groups = before;
        Ok(nothing)
    }

    fn dissect_pieces(&mut self, part: &RegexNode, ends: &[usize]) -> Result<bool> {
        for piece in ends.windows(2) {
            clear(part, &mut self.groups);
            if !self.dissect(part, piece[0], piece[1])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn refers(
        &mut self,
        group: usize,
        count: RepeatCount,
        begin: usize,
        end: usize,
    ) -> Result<bool> {
        let Some((from, to)) = self.groups[group] else { return Ok(false) };
        let (length, target) = (to - from, end - begin);
        if length == 0 {
            return Ok(target == 0 && count.max.is_none_or(|max| count.min <= max));
        }
        if target == 0 {
            return Ok(count.min == 0);
        }
        let times = target / length;
        if target % length != 0 || times < count.min || count.max.is_some_and(|max| times > max) {
            return Ok(false);
        }
        self.step(target)?;
        let lower = |c: char| c.to_lowercase().next().unwrap_or(c);
        let same = |a: char, b: char| a == b || self.ignore_case && lower(a) == lower(b);
        let text = self.text;
        Ok((0..target).all(|at| same(text[begin + at], text[from + at % length])))
    }
}

/// The iterations of a repetition during backtracking.
struct RepetitionMatches {
    /// The start of the repetition, and the end of each iteration.
    ends: Vec<usize>,
    /// Minimum number of iterations.
    least: usize,
    end: usize,
    shortest: bool,
}

impl RepetitionMatches {
    /// Backtracks to the last iteration that can be shorter (or longer, for the shortest match),
    /// removes it and returns its new bound; `None` if there is none.
    fn back(&mut self) -> Option<usize> {
        while self.ends.len() > 1 {
            let k = self.ends.len() - 1;
            let (last, before) = (self.ends.pop()?, self.ends[k - 1]);
            if self.shortest {
                if last < self.end {
                    return Some(last + 1);
                }
            } else if last > before {
                let bound = last - 1;
                if bound > before || k < self.least && self.least - k >= self.end - before {
                    return Some(bound);
                }
            }
        }
        None
    }
}

/// Clears the groups of a part.
fn clear(part: &RegexNode, groups: &mut Places) {
    if let Some(group) = part.group {
        groups[group] = None;
    }
    match &part.kind {
        RegexNodeKind::Run(parts) | RegexNodeKind::Either(parts) => {
            parts.iter().for_each(|p| clear(p, groups))
        }
        RegexNodeKind::Pair(first, second) => {
            clear(first, groups);
            clear(second, groups);
        }
        RegexNodeKind::Repeat { part, .. } => clear(part, groups),
        _ => {}
    }
}
