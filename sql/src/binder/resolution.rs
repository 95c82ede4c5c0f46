//! Which overload of a function or operator is meant.
//!
//! Source: PostgreSQL's `func_select_candidate` (parse_func.c) and `oper` (parse_oper.c), described
//! in chapter 10 of its documentation. Pure: needs nothing but the signatures and the types.

use types::DataType;
use types::function::{Signature, overloads, sets};

use crate::binder::polymorphic::{argument_type, instantiate};
use crate::binder::typed::{Category, can_coerce, category, is_preferred};

/// The answer of a resolution.
#[derive(Debug, Clone, Copy)]
pub(super) enum Match {
    /// This one.
    One(&'static Signature),
    /// No candidate takes the arguments.
    None,
    /// Several do, and none is best.
    Ambiguous,
}

/// Resolves a function by its arguments.
pub(super) fn resolve_function(name: &str, arguments: &[DataType]) -> Match {
    resolve_among(overloads(name), arguments)
}

/// Resolves a function that returns a set by its arguments.
pub(super) fn resolve_set(name: &str, arguments: &[DataType]) -> Match {
    resolve_among(sets::overloads(name), arguments)
}

fn resolve_among(candidates: &'static [Signature], arguments: &[DataType]) -> Match {
    let exact = |signature: &&Signature| !signature.variadic && signature.arguments == arguments;
    if let Some(signature) = candidates.iter().find(exact) {
        return Match::One(signature);
    }
    select_among(candidates, arguments)
}

/// Resolves an operator; an unknown side of two is first taken for the type of the other.
pub(super) fn resolve_operator(symbol: &str, arguments: &[DataType]) -> Match {
    let candidates = overloads(symbol);
    let assumed: Vec<DataType> = match arguments {
        [DataType::Unknown, known] | [known, DataType::Unknown] => vec![*known, *known],
        other => other.to_vec(),
    };
    if let Some(signature) = candidates.iter().find(|one| one.arguments == assumed.as_slice()) {
        return Match::One(signature);
    }
    // What is not known beside an array is taken for one, too.
    if let ([DataType::Array(_), DataType::Array(_)], true) =
        (assumed.as_slice(), arguments.contains(&DataType::Unknown))
    {
        return select_among(candidates, &assumed);
    }
    select_among(candidates, arguments)
}

fn takes_count(signature: &Signature, count: usize) -> bool {
    let declared = signature.arguments.len();
    if signature.variadic { count + 1 >= declared } else { count == declared }
}

fn select_among(candidates: &'static [Signature], arguments: &[DataType]) -> Match {
    let fits = |signature: &&'static Signature| {
        let taken = |wanted: Vec<DataType>| {
            arguments.iter().zip(wanted).all(|(from, to)| can_coerce(*from, to))
        };
        takes_count(signature, arguments.len())
            && instantiate(signature, arguments).is_some_and(|(wanted, _)| taken(wanted))
    };
    let fitting: Vec<&'static Signature> = candidates.iter().filter(fits).collect();
    select(fitting, arguments)
}

fn select(candidates: Vec<&'static Signature>, arguments: &[DataType]) -> Match {
    if let Some(answer) = settled(&candidates) {
        return answer;
    }
    let exact = |from: DataType, to: DataType| from == to;
    let candidates = keep_best(candidates, arguments, exact);
    if let Some(answer) = settled(&candidates) {
        return answer;
    }
    let preferred = |from: DataType, to: DataType| {
        from == to || (is_preferred(to) && category(to) == category(from))
    };
    let candidates = keep_best(candidates, arguments, preferred);
    if let Some(answer) = settled(&candidates) {
        return answer;
    }
    if !arguments.contains(&DataType::Unknown) {
        return Match::Ambiguous;
    }
    let candidates = match settle_unknowns(&candidates, arguments) {
        Some(kept) if !kept.is_empty() => kept,
        _ => candidates,
    };
    if let Some(answer) = settled(&candidates) {
        return answer;
    }
    assume_one_type(&candidates, arguments)
}

fn settled(candidates: &[&'static Signature]) -> Option<Match> {
    match candidates {
        [] => Some(Match::None),
        [one] => Some(Match::One(one)),
        _ => None,
    }
}

/// Keeps the candidates with the most known arguments that match.
fn keep_best(
    candidates: Vec<&'static Signature>,
    arguments: &[DataType],
    matches: impl Fn(DataType, DataType) -> bool,
) -> Vec<&'static Signature> {
    let score = |signature: &Signature| {
        let known = arguments.iter().enumerate().filter(|(_, from)| **from != DataType::Unknown);
        known.filter(|(index, from)| matches(**from, argument_type(signature, *index))).count()
    };
    let best = candidates.iter().map(|signature| score(signature)).max().unwrap_or(0);
    candidates.into_iter().filter(|signature| score(signature) == best).collect()
}

/// Chooses a category for each unknown argument (string if any candidate takes one) and keeps the
/// candidates of those categories, of the preferred type where one has it. `None`: no category.
fn settle_unknowns(
    candidates: &[&'static Signature],
    arguments: &[DataType],
) -> Option<Vec<&'static Signature>> {
    let mut kept = candidates.to_vec();
    for (index, _) in arguments.iter().enumerate().filter(|(_, from)| **from == DataType::Unknown) {
        let (slot, has_preferred) = slot_category(candidates, index)?;
        kept.retain(|signature| {
            let to = argument_type(signature, index);
            category(to) == slot && (!has_preferred || is_preferred(to))
        });
    }
    Some(kept)
}

fn slot_category(candidates: &[&'static Signature], index: usize) -> Option<(Category, bool)> {
    let mut slot: Option<(Category, bool)> = None;
    let mut conflict = false;
    for signature in candidates {
        let to = argument_type(signature, index);
        let current = (category(to), is_preferred(to));
        slot = Some(match slot {
            None => current,
            Some((chosen, preferred)) if chosen == current.0 => (chosen, preferred || current.1),
            Some(_) if current.0 == Category::String => current,
            Some(chosen) => {
                conflict = true;
                chosen
            }
        });
    }
    slot.filter(|(chosen, _)| !conflict || *chosen == Category::String)
}

/// If all known arguments have one type, the unknown ones are taken to have it too.
fn assume_one_type(candidates: &[&'static Signature], arguments: &[DataType]) -> Match {
    let mut known = arguments.iter().copied().filter(|from| *from != DataType::Unknown);
    let Some(first) = known.next() else { return Match::Ambiguous };
    if known.any(|other| other != first) {
        return Match::Ambiguous;
    }
    let mut fitting = candidates.iter().filter(|signature| {
        let assumed = vec![first; arguments.len()];
        instantiate(signature, &assumed)
            .is_some_and(|(wanted, _)| wanted.iter().all(|to| can_coerce(first, *to)))
    });
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Match::One(one),
        _ => Match::Ambiguous,
    }
}
