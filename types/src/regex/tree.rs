//! Tree of a pattern, built like PostgreSQL's compiler, because the extent of matches depends on
//! it. A run of plain atoms is one node; atoms with groups, back-references, or another
//! preference than the atoms before them have separate nodes.

use super::set::CharSet;

/// A constraint on a position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PositionConstraint {
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
pub(super) struct RegexNode {
    pub(super) kind: RegexNodeKind,
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
pub(super) enum RegexNodeKind {
    /// A sequence of atoms whose separate extents do not matter; empty for the empty match.
    Run(Vec<RegexNode>),
    Set(CharSet),
    Place(PositionConstraint),
    Look {
        ahead: bool,
        negated: bool,
        part: Box<RegexNode>,
    },
    Pair(Box<RegexNode>, Box<RegexNode>),
    Either(Vec<RegexNode>),
    Repeat {
        part: Box<RegexNode>,
        count: RepeatCount,
    },
    Reference {
        group: usize,
        count: RepeatCount,
    },
}

/// A repetition count; `None` is unbounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RepeatCount {
    pub(super) min: usize,
    pub(super) max: Option<usize>,
}

/// A quantifier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantifier {
    pub(super) count: RepeatCount,
    pub(super) preference: Option<Preference>,
}

impl RegexNode {
    pub(super) fn plain(kind: RegexNodeKind) -> RegexNode {
        let (preference, group) = (None, None);
        RegexNode { kind, preference, mixed: false, captures: false, refers: false, group }
    }

    pub(super) fn empty() -> RegexNode {
        RegexNode::plain(RegexNodeKind::Run(Vec::new()))
    }

    fn is_empty(&self) -> bool {
        matches!(&self.kind, RegexNodeKind::Run(parts) if parts.is_empty()) && self.group.is_none()
    }

    /// Returns whether the assignment of text to nodes below matters.
    pub(super) fn needs_backtracking(&self) -> bool {
        self.mixed || self.captures || self.refers
    }

    /// Returns the concatenation of two nodes.
    fn pair(first: RegexNode, second: RegexNode) -> RegexNode {
        if first.is_empty() {
            return second;
        }
        if second.is_empty() {
            return first;
        }
        let preference = first.preference.or(second.preference);
        let mut pair = RegexNode::plain(RegexNodeKind::Run(Vec::new()));
        pair.inherit(&[&first, &second]);
        pair.preference = preference;
        pair.kind = RegexNodeKind::Pair(Box::new(first), Box::new(second));
        pair
    }

    /// Sets the flags from those of child nodes.
    fn inherit(&mut self, parts: &[&RegexNode]) {
        self.captures = parts.iter().any(|part| part.captures);
        self.refers = parts.iter().any(|part| part.refers);
        let some = |wanted| parts.iter().any(|part| part.preference == Some(wanted));
        self.mixed = parts.iter().any(|part| part.mixed)
            || some(Preference::Longest) && some(Preference::Shortest);
    }

    /// Returns a node with alternatives.
    pub(super) fn alternatives(mut branches: Vec<RegexNode>) -> RegexNode {
        if branches.len() == 1 {
            return branches.remove(0);
        }
        let mut either = RegexNode::plain(RegexNodeKind::Run(Vec::new()));
        let all: Vec<&RegexNode> = branches.iter().collect();
        either.inherit(&all);
        // Alternatives prefer the longest match, which conflicts with branches that prefer the
        // shortest.
        either.mixed |= branches.iter().any(|part| part.preference == Some(Preference::Shortest));
        either.preference = Some(Preference::Longest);
        either.kind = RegexNodeKind::Either(branches);
        either
    }

    /// Returns the node as a capture group.
    pub(super) fn grouped(self, group: usize) -> RegexNode {
        let inner = match self.group {
            None => self,
            Some(_) => {
                let mut outer = RegexNode::plain(RegexNodeKind::Run(Vec::new()));
                outer.inherit(&[&self]);
                outer.preference = self.preference;
                outer.kind = RegexNodeKind::Pair(Box::new(self), Box::new(RegexNode::empty()));
                outer
            }
        };
        RegexNode { group: Some(group), captures: true, ..inner }
    }

    /// Returns the node without capture groups.
    fn without_groups(&self) -> RegexNode {
        let boxed = |part: &RegexNode| Box::new(part.without_groups());
        let all = |parts: &[RegexNode]| parts.iter().map(RegexNode::without_groups).collect();
        let kind = match &self.kind {
            RegexNodeKind::Run(parts) => RegexNodeKind::Run(all(parts)),
            RegexNodeKind::Either(parts) => RegexNodeKind::Either(all(parts)),
            RegexNodeKind::Pair(first, second) => RegexNodeKind::Pair(boxed(first), boxed(second)),
            RegexNodeKind::Repeat { part, count } => {
                RegexNodeKind::Repeat { part: boxed(part), count: *count }
            }
            other => other.clone(),
        };
        RegexNode { kind, captures: false, mixed: false, group: None, ..*self }
    }

    /// Returns the node with a quantifier.
    fn repeated(self, quantifier: Quantifier) -> RegexNode {
        let Quantifier { count, preference: wanted } = quantifier;
        let preference = wanted.or(self.preference);
        let disagree = wanted.is_some() && self.preference.is_some_and(|own| Some(own) != wanted);
        if let RegexNodeKind::Reference { group, .. } = self.kind
            && self.group.is_none()
        {
            return RegexNode {
                kind: RegexNodeKind::Reference { group, count },
                preference,
                ..self
            };
        }
        let once = RepeatCount { min: 1, max: Some(1) };
        if count == once && !(disagree || wanted.is_some() && self.mixed) {
            return RegexNode { preference, ..self };
        }
        let (captures, refers) = (self.captures, self.refers);
        let mixed = self.mixed || disagree;
        let about = RegexNode { preference, mixed, captures, refers, ..RegexNode::empty() };
        let repeat = |part, count| RegexNodeKind::Repeat { part: Box::new(part), count };
        if !captures && !refers {
            let inner = self.without_groups();
            return RegexNode { kind: repeat(inner, count), mixed, ..about };
        }
        if count.min > 0 && !refers {
            let fewer = RepeatCount { min: count.min - 1, max: count.max.map(|max| max - 1) };
            let before = RegexNode::plain(repeat(self.without_groups(), fewer));
            let before = RegexNode { preference, ..before };
            return RegexNode {
                kind: RegexNodeKind::Pair(Box::new(before), Box::new(self)),
                ..about
            };
        }
        RegexNode { kind: repeat(self, count), ..about }
    }
}

/// An atom of a branch with its quantifier.
pub(super) struct QuantifiedAtom {
    pub(super) atom: RegexNode,
    pub(super) quantifier: Option<Quantifier>,
}

/// Builds the node of a branch from its atoms.
pub(super) fn branch(pieces: Vec<QuantifiedAtom>) -> RegexNode {
    // The remaining atoms are built first.
    let mut pieces = pieces.into_iter();
    let mut run = RegexNode::empty();
    while let Some(QuantifiedAtom { atom, quantifier }) = pieces.next() {
        let wanted = quantifier.and_then(|quantifier| quantifier.preference);
        let all = [run.preference, wanted, atom.preference];
        let disagree =
            all.contains(&Some(Preference::Longest)) && all.contains(&Some(Preference::Shortest));
        let is_reference = matches!(atom.kind, RegexNodeKind::Reference { .. });
        let messy = atom.needs_backtracking() || is_reference || disagree;
        let none = Some(RepeatCount { min: 0, max: Some(0) });
        if quantifier.map(|quantifier| quantifier.count) == none {
            continue;
        }
        let piece = match quantifier {
            Some(quantifier) => atom.repeated(quantifier),
            None => atom,
        };
        if messy {
            let rest = branch(pieces.collect());
            return RegexNode::pair(run, RegexNode::pair(piece, rest));
        }
        run.preference = run.preference.or(piece.preference);
        if let RegexNodeKind::Run(parts) = &mut run.kind {
            parts.push(piece);
        }
    }
    run
}
