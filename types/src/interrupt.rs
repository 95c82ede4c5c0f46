//! How long computations end early: a flag that they look at, and a sort that does.
//!
//! Whoever runs a statement sets the flag when it is cancelled or its time is up; an evaluation
//! that may take long looks at it every few milliseconds. A part of
//! [`EvalContext`](crate::expr::EvalContext), so that it is known wherever expressions are
//! computed, in regions too.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use crate::error::{Error, Result, sqlstate};

/// Called at a look: lets others work if it is their turn, and may wait for that. Quick otherwise.
pub type GiveWay = fn();

/// Called before a long value is made: returns whether the statement may take so many bytes more.
pub type MayTake = fn(usize) -> bool;

/// A flag that ends what looks at it, or none; who is asked at a look to let others work, and who
/// before much memory is taken at once.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    flag: Option<Arc<AtomicBool>>,
    give_way: Option<GiveWay>,
    may_take: Option<MayTake>,
}

impl Interrupt {
    /// No flag.
    pub const NEVER: Interrupt = Interrupt { flag: None, give_way: None, may_take: None };

    /// Returns one that looks at a flag.
    pub fn new(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt { flag: Some(flag), ..Interrupt::NEVER }
    }

    /// Returns it with who is asked to let others work.
    pub fn giving_way(self, give_way: GiveWay) -> Interrupt {
        Interrupt { give_way: Some(give_way), ..self }
    }

    /// Returns it with who is asked before much memory is taken at once.
    pub fn within(self, may_take: MayTake) -> Interrupt {
        Interrupt { may_take: Some(may_take), ..self }
    }

    /// Returns whether a value of so many bytes may be made.
    pub(crate) fn may_take(&self, bytes: usize) -> bool {
        self.may_take.is_none_or(|may_take| may_take(bytes))
    }

    /// Returns the flag.
    pub fn flag(&self) -> Option<&Arc<AtomicBool>> {
        self.flag.as_ref()
    }

    /// Returns whether the flag is set, after others have worked if it was their turn.
    #[inline]
    pub fn is_set(&self) -> bool {
        if let Some(give_way) = self.give_way {
            give_way();
        }
        self.flag.as_ref().is_some_and(|flag| flag.load(atomic::Ordering::Relaxed))
    }

    /// Fails if the flag is set.
    ///
    /// # Errors
    ///
    /// `57014`.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(cancelled()) } else { Ok(()) }
    }
}

thread_local! {
    /// What ends the statement that the thread parses and plans.
    static PLANNED: RefCell<Interrupt> = const { RefCell::new(Interrupt::NEVER) };
}

/// While it lives, [`check_planned`] looks at its flag, on the thread that has entered it.
#[must_use]
pub struct PlanningScope {
    before: Interrupt,
}

impl Interrupt {
    /// Has the thread look at this flag while it parses and plans a statement.
    pub fn enter_planning(self) -> PlanningScope {
        PlanningScope { before: PLANNED.replace(self) }
    }
}

impl Drop for PlanningScope {
    fn drop(&mut self) {
        PLANNED.set(std::mem::take(&mut self.before));
    }
}

/// Fails if the statement that the thread parses and plans is to end: for the parser, which is
/// called in many places and asks for each expression, and for who walks what it gives.
///
/// # Errors
///
/// `57014`.
pub fn check_planned() -> Result<()> {
    PLANNED.with_borrow(Interrupt::check)
}

/// Returns the error of what the flag has ended.
#[cold]
pub(crate) fn cancelled() -> Error {
    Error::new(sqlstate::QUERY_CANCELED, "canceling statement due to user request")
}

/// Items that are sorted at once: some milliseconds.
const PIECE: usize = 1 << 15;
/// Items merged between two looks.
const LOOK: usize = 1 << 14;

/// Sorts items by an order in which no two are equal: pieces first, which are then merged two by
/// two, so that there are looks at the flag between.
///
/// # Errors
///
/// Those of [`Interrupt::check`].
pub fn sort<T: Copy>(
    mut items: Vec<T>,
    interrupt: &Interrupt,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<Vec<T>> {
    for piece in items.chunks_mut(PIECE) {
        interrupt.check()?;
        piece.sort_unstable_by(&compare);
    }
    let mut width = PIECE;
    let mut merged = Vec::new();
    while width < items.len() {
        merged.clear();
        merged.reserve(items.len());
        for pair in items.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &mut merged, interrupt, &compare)?;
        }
        std::mem::swap(&mut items, &mut merged);
        width *= 2;
    }
    Ok(items)
}

fn merge<T: Copy>(
    mut left: &[T],
    mut right: &[T],
    merged: &mut Vec<T>,
    interrupt: &Interrupt,
    compare: &impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    let mut until_look = LOOK;
    while let (Some((first, left_rest)), Some((second, right_rest))) =
        (left.split_first(), right.split_first())
    {
        if compare(second, first).is_lt() {
            merged.push(*second);
            right = right_rest;
        } else {
            merged.push(*first);
            left = left_rest;
        }
        until_look -= 1;
        if until_look == 0 {
            interrupt.check()?;
            until_look = LOOK;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_merged() {
        for count in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 5 * PIECE + 7] {
            // A permutation, as the factor is odd.
            let items: Vec<u64> = (0..count as u64)
                .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            assert_eq!(sort(items, &Interrupt::default(), u64::cmp).unwrap(), expected);
        }
    }

    #[test]
    fn a_flag_ends_a_sort_between_pieces_and_within_merges() {
        let flag = Arc::new(AtomicBool::new(true));
        let interrupt = Interrupt::new(Arc::clone(&flag));
        let error = sort(vec![2, 1], &interrupt, i32::cmp).unwrap_err();
        assert_eq!(error.sqlstate, "57014");
        flag.store(false, atomic::Ordering::Relaxed);
        let (left, right): (Vec<usize>, Vec<usize>) = (0..4 * LOOK).partition(|i| i % 2 == 0);
        let mut merged = Vec::new();
        let stopping = |a: &usize, b: &usize| {
            flag.store(*a == LOOK, atomic::Ordering::Relaxed);
            a.cmp(b)
        };
        assert!(merge(&left, &right, &mut merged, &interrupt, &stopping).is_ok());
        let stopping = |a: &usize, b: &usize| {
            flag.store(*a >= LOOK / 2, atomic::Ordering::Relaxed);
            a.cmp(b)
        };
        merged.clear();
        assert!(merge(&left, &right, &mut merged, &interrupt, &stopping).is_err());
        assert_eq!(merged.len(), LOOK, "at the next look");
    }
}
