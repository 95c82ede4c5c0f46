//! Translation of patterns for the `regex` crate, which matches at the same positions, but not
//! always with the same extent.

use super::set::Set;
use super::tree::{Kind, Part, Place, Preference};

/// Appends a pattern that matches at the same positions; returns false if the crate does not
/// support it.
pub(super) fn write(part: &Part, out: &mut String) -> bool {
    let open = if part.group.is_some() { "(" } else { "(?:" };
    if !matches!(part.kind, Kind::Set(_)) || part.group.is_some() {
        out.push_str(open);
    }
    let known = match &part.kind {
        Kind::Run(parts) => parts.iter().all(|part| write(part, out)),
        Kind::Pair(first, second) => write(first, out) && write(second, out),
        Kind::Either(parts) => parts.iter().enumerate().all(|(index, part)| {
            if index > 0 {
                out.push('|');
            }
            write(part, out)
        }),
        Kind::Set(set) => {
            out.push_str(&set.pattern());
            true
        }
        Kind::Place(place) => {
            out.push_str(match place {
                Place::Begin => r"\A",
                Place::End => r"\z",
                Place::LineBegin => "(?m:^)",
                Place::LineEnd => "(?m:$)",
                Place::WordBegin => r"\b{start}",
                Place::WordEnd => r"\b{end}",
                Place::WordEdge => r"\b",
                Place::NotWordEdge => r"\B",
            });
            true
        }
        Kind::Repeat { part: inner, count } => {
            let known = write(inner, out);
            let max = count.max.map_or(String::new(), |max| max.to_string());
            out.push_str(&format!("{{{},{max}}}", count.min));
            if part.preference == Some(Preference::Shortest) {
                out.push('?');
            }
            known
        }
        Kind::Look { .. } | Kind::Reference { .. } => false,
    };
    if !matches!(part.kind, Kind::Set(_)) || part.group.is_some() {
        out.push(')');
    }
    known
}

/// An item of a sequence of atoms.
enum Item<'p> {
    Set { set: &'p Set, varies: bool, least: usize, shortest: bool },
    End,
}

/// Returns whether the crate's match is PostgreSQL's, because there is only one match from any
/// position: the pattern is a sequence of atoms, each of which ends where the next begins.
pub(super) fn is_exact(part: &Part) -> bool {
    let mut items = Vec::new();
    if !flatten(part, &mut items) {
        return false;
    }
    let varying = items.iter().filter_map(|item| match item {
        Item::Set { varies: true, shortest, .. } => Some(*shortest),
        _ => None,
    });
    match varying.collect::<Vec<_>>()[..] {
        [] => return true,
        [shortest] => return shortest == (part.preference == Some(Preference::Shortest)),
        _ if part.preference == Some(Preference::Shortest) => return false,
        _ => {}
    }
    items.iter().enumerate().all(|(index, item)| match (item, items.get(index + 1)) {
        (Item::Set { shortest: true, varies: true, .. }, _) => false,
        (Item::Set { set, varies: true, .. }, Some(Item::Set { set: next, least, .. })) => {
            *least > 0 && set.is_disjoint(next)
        }
        _ => true,
    })
}

fn flatten<'p>(part: &'p Part, items: &mut Vec<Item<'p>>) -> bool {
    match &part.kind {
        Kind::Run(parts) => parts.iter().all(|part| flatten(part, items)),
        Kind::Pair(first, second) => flatten(first, items) && flatten(second, items),
        Kind::Set(set) => {
            items.push(Item::Set { set, varies: false, least: 1, shortest: false });
            true
        }
        Kind::Repeat { part: inner, count } => {
            let Kind::Set(set) = &inner.kind else { return false };
            let varies = count.max != Some(count.min);
            let shortest = part.preference == Some(Preference::Shortest);
            items.push(Item::Set { set, varies, least: count.min, shortest });
            true
        }
        Kind::Place(Place::Begin) => items.is_empty(),
        Kind::Place(Place::End) => {
            items.push(Item::End);
            true
        }
        _ => false,
    }
}
