//! Translation of patterns for the `regex` crate, which matches at the same positions, but not
//! always with the same extent.

use super::set::CharSet;
use super::tree::{PositionConstraint, Preference, RegexNode, RegexNodeKind};

/// Appends a pattern that matches at the same positions; returns false if the crate does not
/// support it.
pub(super) fn write(part: &RegexNode, out: &mut String) -> bool {
    let open = if part.group.is_some() { "(" } else { "(?:" };
    if !matches!(part.kind, RegexNodeKind::Set(_)) || part.group.is_some() {
        out.push_str(open);
    }
    let known = match &part.kind {
        RegexNodeKind::Run(parts) => parts.iter().all(|part| write(part, out)),
        RegexNodeKind::Pair(first, second) => write(first, out) && write(second, out),
        RegexNodeKind::Either(parts) => parts.iter().enumerate().all(|(index, part)| {
            if index > 0 {
                out.push('|');
            }
            write(part, out)
        }),
        RegexNodeKind::Set(set) => {
            out.push_str(&set.pattern());
            true
        }
        RegexNodeKind::Place(place) => {
            out.push_str(match place {
                PositionConstraint::Begin => r"\A",
                PositionConstraint::End => r"\z",
                PositionConstraint::LineBegin => "(?m:^)",
                PositionConstraint::LineEnd => "(?m:$)",
                PositionConstraint::WordBegin => r"\b{start}",
                PositionConstraint::WordEnd => r"\b{end}",
                PositionConstraint::WordEdge => r"\b",
                PositionConstraint::NotWordEdge => r"\B",
            });
            true
        }
        RegexNodeKind::Repeat { part: inner, count } => {
            let known = write(inner, out);
            let max = count.max.map_or(String::new(), |max| max.to_string());
            out.push_str(&format!("{{{},{max}}}", count.min));
            if part.preference == Some(Preference::Shortest) {
                out.push('?');
            }
            known
        }
        RegexNodeKind::Look { .. } | RegexNodeKind::Reference { .. } => false,
    };
    if !matches!(part.kind, RegexNodeKind::Set(_)) || part.group.is_some() {
        out.push(')');
    }
    known
}

/// An item of a sequence of atoms.
enum AtomItem<'p> {
    Set { set: &'p CharSet, varies: bool, least: usize, shortest: bool },
    End,
}

/// Returns whether the crate's match is PostgreSQL's, because there is only one match from any
/// position: the pattern is a sequence of atoms, each of which ends where the next begins.
pub(super) fn is_exact(part: &RegexNode) -> bool {
    let mut items = Vec::new();
    if !flatten(part, &mut items) {
        return false;
    }
    let varying = items.iter().filter_map(|item| match item {
        AtomItem::Set { varies: true, shortest, .. } => Some(*shortest),
        _ => None,
    });
    match varying.collect::<Vec<_>>()[..] {
        [] => return true,
        [shortest] => return shortest == (part.preference == Some(Preference::Shortest)),
        _ if part.preference == Some(Preference::Shortest) => return false,
        _ => {}
    }
    items.iter().enumerate().all(|(index, item)| match (item, items.get(index + 1)) {
        (AtomItem::Set { shortest: true, varies: true, .. }, _) => false,
        (AtomItem::Set { set, varies: true, .. }, Some(AtomItem::Set { set: next, least, .. })) => {
            *least > 0 && set.is_disjoint(next)
        }
        _ => true,
    })
}

fn flatten<'p>(part: &'p RegexNode, items: &mut Vec<AtomItem<'p>>) -> bool {
    match &part.kind {
        RegexNodeKind::Run(parts) => parts.iter().all(|part| flatten(part, items)),
        RegexNodeKind::Pair(first, second) => flatten(first, items) && flatten(second, items),
        RegexNodeKind::Set(set) => {
            items.push(AtomItem::Set { set, varies: false, least: 1, shortest: false });
            true
        }
        RegexNodeKind::Repeat { part: inner, count } => {
            let RegexNodeKind::Set(set) = &inner.kind else { return false };
            let varies = count.max != Some(count.min);
            let shortest = part.preference == Some(Preference::Shortest);
            items.push(AtomItem::Set { set, varies, least: count.min, shortest });
            true
        }
        RegexNodeKind::Place(PositionConstraint::Begin) => items.is_empty(),
        RegexNodeKind::Place(PositionConstraint::End) => {
            items.push(AtomItem::End);
            true
        }
        _ => false,
    }
}
