//! Cancellation of long computations: an interrupt flag, and a sort that checks it.
//!
//! The session sets the flag when a statement is cancelled or times out; long evaluations check
//! it every few milliseconds. The flag is part of the [`EvalContext`](crate::expr::EvalContext),
//! so that it is available wherever expressions are evaluated, including regions.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use crate::error::{Error, Result};

/// Called at each check: lets statements that wait for an execution slot run, and may wait for a
/// slot. Fast otherwise.
pub type YieldHook = fn();

/// Called before a long value is allocated: returns whether the statement's memory limit allows
/// it.
pub type AllocationHook = fn(usize) -> bool;

/// An optional interrupt flag, with optional callbacks for admission control and memory limits.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    flag: Option<Arc<AtomicBool>>,
    yield_hook: Option<YieldHook>,
    allocation_hook: Option<AllocationHook>,
}

impl Interrupt {
    /// An interrupt without a flag.
    pub const NEVER: Interrupt = Interrupt { flag: None, yield_hook: None, allocation_hook: None };

    /// Creates an interrupt with a flag.
    pub fn new(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt { flag: Some(flag), ..Interrupt::NEVER }
    }

    /// Returns it with a callback for admission control.
    pub fn with_yield_hook(self, give_way: YieldHook) -> Interrupt {
        Interrupt { yield_hook: Some(give_way), ..self }
    }

    /// Returns it with a callback for large allocations.
    pub fn with_allocation_hook(self, may_take: AllocationHook) -> Interrupt {
        Interrupt { allocation_hook: Some(may_take), ..self }
    }

    /// Returns whether a value of this size may be allocated.
    pub(crate) fn may_allocate(&self, bytes: usize) -> bool {
        self.allocation_hook.is_none_or(|may_take| may_take(bytes))
    }

    /// Returns the flag.
    pub fn flag(&self) -> Option<&Arc<AtomicBool>> {
        self.flag.as_ref()
    }

    /// Returns whether the flag is set, after yielding the execution slot if required.
    #[inline]
    pub fn is_set(&self) -> bool {
        if let Some(give_way) = self.yield_hook {
            give_way();
        }
        self.flag.as_ref().is_some_and(|flag| flag.load(atomic::Ordering::Relaxed))
    }

    /// Returns an error if the flag is set.
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
    /// Interrupt of the statement that the thread is parsing or planning.
    static PLANNED: RefCell<Interrupt> = const { RefCell::new(Interrupt::NEVER) };
}

/// Scope in which [`check_planned`] checks an interrupt, on the thread that entered it.
#[must_use]
pub struct PlanningScope {
    before: Interrupt,
}

impl Interrupt {
    /// Makes this the interrupt of parsing and planning on the thread.
    pub fn enter_planning(self) -> PlanningScope {
        PlanningScope { before: PLANNED.replace(self) }
    }
}

impl Drop for PlanningScope {
    fn drop(&mut self) {
        PLANNED.set(std::mem::take(&mut self.before));
    }
}

/// Returns an error if the statement that the thread is parsing or planning is cancelled. Called
/// by the parser for each expression, and by functions that walk the tree.
///
/// # Errors
///
/// `57014`.
pub fn check_planned() -> Result<()> {
    PLANNED.with_borrow(Interrupt::check)
}

/// Returns the cancellation error.
#[cold]
pub(crate) fn cancelled() -> Error {
    err!(QUERY_CANCELED: "canceling statement due to user request")
}

/// Items that are sorted without a check: some milliseconds.
const PIECE: usize = 1 << 15;
/// Items that are merged between two checks.
const LOOK: usize = 1 << 14;

/// Sorts items by a strict order: sorts chunks, and merges them pairwise with checks of the flag
/// in between.
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
    fn chunked_sort_matches_std_sort() {
        for count in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 5 * PIECE + 7] {
            // A permutation, since the factor is odd.
            let items: Vec<u64> = (0..count as u64)
                .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                .collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            assert_eq!(sort(items, &Interrupt::default(), u64::cmp).unwrap(), expected);
        }
    }

    #[test]
    fn sort_is_interruptible_between_chunks_and_within_merges() {
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
