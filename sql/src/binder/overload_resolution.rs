//! Overload resolution for functions and operators.
//!
//! Source: PostgreSQL's `func_select_candidate` (parse_func.c) and `oper` (parse_oper.c),
//! described in chapter 10 of its documentation. It depends only on the signatures and the types.

use types::DataType;
use types::function::{Signature, overloads, sets};

use crate::binder::polymorphic::{argument_type, instantiate};
use crate::binder::typed::{Category, can_coerce, category, is_preferred};

/// An overload candidate.
pub(super) trait Candidate: Clone {
    /// Returns the declared type of a parameter.
    fn takes(&self, index: usize) -> &DataType;

    /// Returns whether arguments of these types can be implicitly cast to the parameter types.
    fn accepts(&self, arguments: &[DataType]) -> bool;
}

impl Candidate for &'static Signature {
    fn takes(&self, index: usize) -> &DataType {
        argument_type(self, index)
    }

    fn accepts(&self, arguments: &[DataType]) -> bool {
        let taken = |wanted: Vec<DataType>| {
            arguments.iter().zip(wanted).all(|(from, to)| can_coerce(from, &to))
        };
        takes_count(self, arguments.len())
            && instantiate(self, arguments).is_some_and(|(wanted, _)| taken(wanted))
    }
}

/// The result of overload resolution.
#[derive(Debug, Clone, Copy)]
pub(super) enum Match<C = &'static Signature> {
    /// The best candidate.
    One(C),
    /// No candidate accepts the arguments.
    None,
    /// Several candidates do, and none is best.
    Ambiguous,
}

/// Resolves a function by its arguments.
pub(super) fn resolve_function(name: &str, arguments: &[DataType]) -> Match {
    resolve_among(overloads(name), arguments)
}

/// Resolves a set-returning function by its arguments.
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

/// Resolves an operator. An operand of unknown type is first assumed to have the type of the
/// other.
pub(super) fn resolve_operator(symbol: &str, arguments: &[DataType]) -> Match {
    let candidates = overloads(symbol);
    let assumed: Vec<DataType> = match arguments {
        [DataType::Unknown, known] | [known, DataType::Unknown] => {
            vec![known.clone(), known.clone()]
        }
        other => other.to_vec(),
    };
    if let Some(signature) = candidates.iter().find(|one| one.arguments == assumed.as_slice()) {
        return Match::One(signature);
    }
    // An unknown operand next to an array is assumed to be an array, too, unless an operator is
    // declared for exactly that array type.
    let is_own = |(from, to): (&DataType, &DataType)| *from != DataType::Unknown && from == to;
    let has_own = candidates.iter().any(|one| arguments.iter().zip(one.arguments).any(is_own));
    if let ([DataType::Array(_), DataType::Array(_)], true, false) =
        (assumed.as_slice(), arguments.contains(&DataType::Unknown), has_own)
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
    let fitting = candidates.iter().filter(|signature| signature.accepts(arguments));
    select(fitting.collect(), arguments)
}

/// Chooses among candidates that accept the arguments.
pub(super) fn select<C: Candidate>(candidates: Vec<C>, arguments: &[DataType]) -> Match<C> {
    let candidates = match settled(candidates) {
        Ok(answer) => return answer,
        Err(candidates) => candidates,
    };
    let exact = |from: &DataType, to: &DataType| from == to;
    let candidates = match settled(keep_best(candidates, arguments, exact)) {
        Ok(answer) => return answer,
        Err(candidates) => candidates,
    };
    let preferred = |from: &DataType, to: &DataType| {
        from == to || (is_preferred(to) && category(to) == category(from))
    };
    let candidates = match settled(keep_best(candidates, arguments, preferred)) {
        Ok(answer) => return answer,
        Err(candidates) => candidates,
    };
    if !arguments.contains(&DataType::Unknown) {
        return Match::Ambiguous;
    }
    let candidates = match settle_unknowns(&candidates, arguments) {
        Some(kept) if !kept.is_empty() => kept,
        _ => candidates,
    };
    match settled(candidates) {
        Ok(answer) => answer,
        Err(candidates) => assume_one_type(candidates, arguments),
    }
}

fn settled<C>(mut candidates: Vec<C>) -> Result<Match<C>, Vec<C>> {
    match candidates.len() {
        0 => Ok(Match::None),
        1 => Ok(Match::One(candidates.remove(0))),
        _ => Err(candidates),
    }
}

/// Retains the candidates with the most matching known arguments.
fn keep_best<C: Candidate>(
    candidates: Vec<C>,
    arguments: &[DataType],
    matches: impl Fn(&DataType, &DataType) -> bool,
) -> Vec<C> {
    let score = |candidate: &C| {
        let known = arguments.iter().enumerate().filter(|(_, from)| **from != DataType::Unknown);
        known.filter(|(index, from)| matches(from, candidate.takes(*index))).count()
    };
    let best = candidates.iter().map(&score).max().unwrap_or(0);
    candidates.into_iter().filter(|candidate| score(candidate) == best).collect()
}

/// Chooses a type category for each unknown argument (string if any candidate accepts one) and
/// retains the candidates of these categories, with the preferred type if a candidate has it.
/// `None` if there is no common category.
fn settle_unknowns<C: Candidate>(candidates: &[C], arguments: &[DataType]) -> Option<Vec<C>> {
    let mut kept = candidates.to_vec();
    for (index, _) in arguments.iter().enumerate().filter(|(_, from)| **from == DataType::Unknown) {
        let (slot, has_preferred) = slot_category(candidates, index)?;
        kept.retain(|candidate| {
            let to = candidate.takes(index);
            category(to) == slot && (!has_preferred || is_preferred(to))
        });
    }
    Some(kept)
}

fn slot_category<C: Candidate>(candidates: &[C], index: usize) -> Option<(Category, bool)> {
    let mut slot: Option<(Category, bool)> = None;
    let mut conflict = false;
    for candidate in candidates {
        let to = candidate.takes(index);
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

/// Assumes that unknown arguments have the type of the known ones, if these all have the same
/// type.
fn assume_one_type<C: Candidate>(candidates: Vec<C>, arguments: &[DataType]) -> Match<C> {
    let mut known = arguments.iter().filter(|from| **from != DataType::Unknown);
    let Some(first) = known.next() else { return Match::Ambiguous };
    if known.any(|other| other != first) {
        return Match::Ambiguous;
    }
    let assumed = vec![first.clone(); arguments.len()];
    let mut fitting = candidates.into_iter().filter(|candidate| candidate.accepts(&assumed));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Match::One(one),
        _ => Match::Ambiguous,
    }
}
