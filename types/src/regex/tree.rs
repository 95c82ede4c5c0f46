//! Tree of a pattern, built like PostgreSQL's compiler, because the extent of matches depends on
//! it. A run of plain atoms is one node; atoms with groups, back-references, or another
//! preference than the atoms before them have separate nodes.

use super::set::Set;

/// A constraint on a position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// `\A`, and `^` without line anchors.
    Begin,
    /// `\Z`, and `$` without line anchors.
    End,
    LineBegin,
    LineEnd,
    WordBegin,
    WordEnd,
    WordEdge,
    NotWordEdge,
}

/// Preferred length of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preference {
    Longest,
    Shortest,
}

/// A node of the tree.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) kind: Kind,
    pub(super) preference: Option<Preference>,
    /// Nodes below have different preferences.
    pub(super) mixed: bool,
    /// There are capture groups below.
    pub(super) captures: bool,
    /// There are back-references below.
    pub(super) refers: bool,
    /// The number of the capture group that this node is.
    pub(super) group: Option<usize>,
}

/// Kind of a node.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// A sequence of atoms whose separate extents do not matter; empty for the empty match.
    Run(Vec<Part>),
    Set(Set),
    Place(Place),
    Look {
        ahead: bool,
        negated: bool,
        part: Box<Part>,
    },
    Pair(Box<Part>, Box<Part>),
    Either(Vec<Part>),
    Repeat {
        part: Box<Part>,
        count: Count,
    },
    Reference {
        group: usize,
        count: Count,
    },
}

/// A repetition count; `None` is unbounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) min: usize,
    pub(super) max: Option<usize>,
}

/// A quantifier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantifier {
    pub(super) count: Count,
    pub(super) preference: Option<Preference>,
}

impl Part {
    pub(super) fn plain(kind: Kind) -> Part {
        let (preference, group) = (None, None);
        Part { kind, preference, mixed: false, captures: false, refers: false, group }
    }

    pub(super) fn empty() -> Part {
        Part::plain(Kind::Run(Vec::new()))
    }

    fn is_empty(&self) -> bool {
        matches!(&self.kind, Kind::Run(parts) if parts.is_empty()) && self.group.is_none()
    }

    /// Returns whether the assignment of text to nodes below matters.
    pub(super) fn is_messy(&self) -> bool {
        self.mixed || self.captures || self.refers
    }

    /// Returns the concatenation of two nodes.
    fn pair(first: Part, second: Part) -> Part {
        if first.is_empty() {
            return second;
        }
        if second.is_empty() {
            return first;
        }
        let preference = first.preference.or(second.preference);
        let mut pair = Part::plain(Kind::Run(Vec::new()));
        pair.inherit(&[&first, &second]);
        pair.preference = preference;
        pair.kind = Kind::Pair(Box::new(first), Box::new(second));
        pair
    }

    /// Sets the flags from those of child nodes.
    fn inherit(&mut self, parts: &[&Part]) {
        self.captures = parts.iter().any(|part| part.captures);
        self.refers = parts.iter().any(|part| part.refers);
        let some = |wanted| parts.iter().any(|part| part.preference == Some(wanted));
        self.mixed = parts.iter().any(|part| part.mixed)
            || some(Preference::Longest) && some(Preference::Shortest);
    }

    /// Returns a node with alternatives.
    pub(super) fn either(mut branches: Vec<Part>) -> Part {
        if branches.len() == 1 {
            return branches.remove(0);
        }
        let mut either = Part::plain(Kind::Run(Vec::new()));
        let all: Vec<&Part> = branches.iter().collect();
        either.inherit(&all);
        // Alternatives prefer the longest match, which conflicts with branches that prefer the
        // shortest.
        either.mixed |= branches.iter().any(|part| part.preference == Some(Preference::Shortest));
        either.preference = Some(Preference::Longest);
        either.kind = Kind::Either(branches);
        either
    }

    /// Returns the node as a capture group.
    pub(super) fn grouped(self, group: usize) -> Part {
        let inner = match self.group {
            None => self,
            Some(_) => {
                let mut outer = Part::plain(Kind::Run(Vec::new()));
                outer.inherit(&[&self]);
                outer.preference = self.preference;
                outer.kind = Kind::Pair(Box::new(self), Box::new(Part::empty()));
                outer
            }
        };
        Part { group: Some(group), captures: true, ..inner }
    }

    /// Returns the node without capture groups.
    fn without_groups(&self) -> Part {
        let boxed = |part: &Part| Box::new(part.without_groups());
        let all = |parts: &[Part]| parts.iter().map(Part::without_groups).collect();
        let kind = match &self.kind {
            Kind::Run(parts) => Kind::Run(all(parts)),
            Kind::Either(parts) => Kind::Either(all(parts)),
            Kind::Pair(first, second) => Kind::Pair(boxed(first), boxed(second)),
            Kind::Repeat { part, count } => Kind::Repeat { part: boxed(part), count: *count },
            other => other.clone(),
        };
        Part { kind, captures: false, mixed: false, group: None, ..*self }
    }

    /// Returns the node with a quantifier.
    fn repeated(self, quantifier: Quantifier) -> Part {
        let Quantifier { count, preference: wanted } = quantifier;
        let preference = wanted.or(self.preference);
        let disagree = wanted.is_some() && self.preference.is_some_and(|own| Some(own) != wanted);
        if let Kind::Reference { group, .. } = self.kind
            && self.group.is_none()
        {
            return Part { kind: Kind::Reference { group, count }, preference, ..self };
        }
        let once = Count { min: 1, max: Some(1) };
        if count == once && !(disagree || wanted.is_some() && self.mixed) {
            return Part { preference, ..self };
        }
        let (captures, refers) = (self.captures, self.refers);
        let mixed = self.mixed || disagree;
        let about = Part { preference, mixed, captures, refers, ..Part::empty() };
        let repeat = |part, count| Kind::Repeat { part: Box::new(part), count };
        if !captures && !refers {
            let inner = self.without_groups();
            return Part { kind: repeat(inner, count), mixed, ..about };
        }
        if count.min > 0 && !refers {
            let fewer = Count { min: count.min - 1, max: count.max.map(|max| max - 1) };
            let before = Part::plain(repeat(self.without_groups(), fewer));
            let before = Part { preference, ..before };
            return Part { kind: Kind::Pair(Box::new(before), Box::new(self)), ..about };
        }
        Part { kind: repeat(self, count), ..about }
    }
}

/// An atom of a branch with its quantifier.
pub(super) struct Piece {
    pub(super) atom: Part,
    pub(super) quantifier: Option<Quantifier>,
}

/// Builds the node of a branch from its atoms.
pub(super) fn branch(pieces: Vec<Piece>) -> Part {
    // The remaining atoms are built first.
    let mut pieces = pieces.into_iter();
    let mut run = Part::empty();
    while let Some(Piece { atom, quantifier }) = pieces.next() {
        let wanted = quantifier.and_then(|quantifier| quantifier.preference);
        let all = [run.preference, wanted, atom.preference];
        let disagree =
            all.contains(&Some(Preference::Longest)) && all.contains(&Some(Preference::Shortest));
        let is_reference = matches!(atom.kind, Kind::Reference { .. });
        let messy = atom.is_messy() || is_reference || disagree;
        let none = Some(Count { min: 0, max: Some(0) });
        if quantifier.map(|quantifier| quantifier.count) == none {
            continue;
        }
        let piece = match quantifier {
            Some(quantifier) => atom.repeated(quantifier),
            None => atom,
        };
        if messy {
            let rest = branch(pieces.collect());
            return Part::pair(run, Part::pair(piece, rest));
        }
        run.preference = run.preference.or(piece.preference);
        if let Kind::Run(parts) = &mut run.kind {
            parts.push(piece);
        }
    }
    run
}
