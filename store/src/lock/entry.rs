//! Lock entry: the holders of one lock, their modes, and the queue of waiters.
//!
//! # Invariants
//!
//! 1. No two holders have conflicting modes.
//! 2. A waiter conflicts with a holder, or with an earlier waiter.
//! 3. A transaction is a holder once, in all modes that it was granted, and waits once.
//! 4. Only a holder that excludes other writers has changed or deleted the row.
//!
//! `LockEntry::check` asserts them after each change in debug builds, for up to `CHECKED` holders
//! and waiters.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::descriptor::TableId;
use crate::lock::Owner;
use crate::lock_mode::{LockMode, ModeSet};

/// Maximal number of holders, and of waiters, of a lock that is checked in debug builds.
const CHECKED: usize = 8;

/// A lock that has at least one holder.
pub(super) struct LockEntry {
    /// The only holder, or the first of several.
    holder: Owner,
    crowd: Option<Box<LockContention>>,
    table: TableId,
    modes: ModeSet,
    /// True if the holder has deleted the row: its present waiters must not take another row that
    /// has its key when they are granted the lock.
    is_deleted: bool,
    /// True if the holder that excludes other writers has changed the row.
    is_changed: bool,
}

/// Further holders and waiters, only if several transactions want the lock.
#[derive(Default)]
struct LockContention {
    /// Holders except the first.
    sharers: SmallVec<[(Owner, ModeSet); 4]>,
    queue: VecDeque<LockWaiter>,
}

/// A transaction in the queue of a lock.
pub(super) struct LockWaiter {
    /// The waiting owner.
    pub(super) owner: Owner,
    /// The requested mode.
    pub(super) mode: LockMode,
    /// The start of the wait.
    pub(super) since: Instant,
    /// The ticket that it sleeps on.
    pub(super) ticket: Arc<Ticket>,
}

/// Wake-up state of a waiter.
#[derive(Default)]
pub(super) struct Ticket {
    /// True once the lock is granted.
    pub(super) granted: Mutex<bool>,
    /// Signalled when it is granted.
    pub(super) changed: Condvar,
    /// True if the row was deleted during the wait.
    pub(super) is_gone: AtomicBool,
}

impl LockEntry {
    /// Returns a lock that one transaction holds.
    pub(super) fn new(table: TableId, holder: Owner, mode: LockMode) -> LockEntry {
        let modes = ModeSet::of(mode);
        LockEntry { holder, crowd: None, table, modes, is_deleted: false, is_changed: false }
    }

    /// Returns the table of the lock.
    pub(super) fn table(&self) -> TableId {
        self.table
    }

    /// Returns table and modes if it is the lock of a row, `owner` is its only holder, and there
    /// is no waiter.
    pub(super) fn of_row_alone(&self, owner: Owner) -> Option<(TableId, ModeSet)> {
        let is_alone = self.holder == owner && self.crowd.is_none() && self.modes.is_of_row();
        is_alone.then_some((self.table, self.modes))
    }

    /// Returns the holders.
    pub(super) fn holders(&self) -> impl Iterator<Item = (Owner, ModeSet)> + '_ {
        let sharers = self.crowd.iter().flat_map(|crowd| crowd.sharers.iter().copied());
        std::iter::once((self.holder, self.modes)).chain(sharers)
    }

    /// Returns the waiters in queue order.
    pub(super) fn queue(&self) -> impl Iterator<Item = &LockWaiter> + '_ {
        self.crowd.iter().flat_map(|crowd| crowd.queue.iter())
    }

    /// Returns the modes in which a transaction holds it.
    pub(super) fn modes_of(&self, owner: Owner) -> Option<ModeSet> {
        if self.holder == owner {
            return Some(self.modes);
        }
        self.holders().find(|(holder, _)| *holder == owner).map(|(_, modes)| modes)
    }

    /// Sets or clears the deletion flag of the row if `owner` is the holder; returns whether it
    /// changed.
    pub(super) fn set_deleted(&mut self, owner: Owner, is_deleted: bool) -> bool {
        let is_news = self.holder == owner && self.is_deleted != is_deleted;
        self.is_deleted ^= is_news;
        is_news
    }

    /// Records that the holder that excludes other writers changes the row.
    pub(super) fn note_change(&mut self, changes: bool) {
        self.is_changed |= changes;
    }

    /// Returns whether a holder other than `owner` has changed the row.
    pub(super) fn is_changed_by_other(&self, owner: Owner) -> bool {
        self.is_changed && !self.modes_of(owner).is_some_and(is_of_changer)
    }

    /// Returns whether a transaction holds it and has deleted the row.
    pub(super) fn is_deleted_by(&self, owner: Owner) -> bool {
        self.is_deleted && self.holder == owner
    }

    /// Marks the row as deleted in the tickets of the waiters, if its committing holder has
    /// deleted it.
    pub(super) fn tell_deleted(&self, owner: Owner) {
        if self.is_deleted_by(owner) {
            self.queue().for_each(|waiter| waiter.ticket.is_gone.store(true, Ordering::Release));
        }
    }

    /// Returns the holders other than `owner` with whose modes `mode` conflicts.
    pub(super) fn conflicting_holders(
        &self,
        owner: Owner,
        mode: LockMode,
    ) -> impl Iterator<Item = Owner> + '_ {
        let conflicts =
            move |(holder, held): &(Owner, ModeSet)| *holder != owner && held.conflicts_with(mode);
        self.holders().filter(conflicts).map(|(holder, _)| holder)
    }

    /// Grants a mode to a transaction if nothing conflicts. Returns whether it did.
    ///
    /// A mode of rows conflicts only with holders: a foreign key check (FOR KEY SHARE) is not
    /// blocked by a waiter that is about to delete the row, as in PostgreSQL (`heap_lock_tuple`
    /// waits for the transactions that have the row). A mode of tables also conflicts with the
    /// waiters behind which it would be queued.
    pub(super) fn try_grant(&mut self, owner: Owner, mode: LockMode) -> bool {
        let waits = |waiter: &LockWaiter| mode.conflicts_with(waiter.mode);
        let is_behind = matches!(mode, LockMode::Table(_))
            && self.queue().take(self.place_of(owner, mode)).any(waits);
        if is_behind || self.conflicting_holders(owner, mode).next().is_some() {
            return false;
        }
        self.hold(owner, mode);
        self.check();
        true
    }

    /// Returns the queue position of a request: a holder of the row in a weaker mode goes to the
    /// front, a holder of the table before the first waiter that its held modes block, all others
    /// to the end.
    fn place_of(&self, owner: Owner, mode: LockMode) -> usize {
        let Some(held) = self.modes_of(owner) else { return usize::MAX };
        let kept_out = |waiter: &LockWaiter| held.conflicts_with(waiter.mode);
        match mode {
            LockMode::Table(_) => self.queue().position(kept_out).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// Adds a holder, or adds a mode to a holder.
    pub(super) fn hold(&mut self, owner: Owner, mode: LockMode) {
        if self.holder == owner {
            self.modes.add(mode);
            return;
        }
        let sharers = &mut self.crowd.get_or_insert_default().sharers;
        match sharers.iter_mut().find(|(sharer, _)| *sharer == owner) {
            Some((_, held)) => held.add(mode),
            None => sharers.push((owner, ModeSet::of(mode))),
        }
    }

    /// Adds a waiter to the queue.
    pub(super) fn enqueue(&mut self, waiter: LockWaiter) {
        let place = self.place_of(waiter.owner, waiter.mode);
        let queue = &mut self.crowd.get_or_insert_default().queue;
        queue.insert(place.min(queue.len()), waiter);
        self.check();
    }

    /// Removes a waiter from the queue and grants the lock to later waiters that only it blocked.
    /// Returns whether the waiter was in the queue.
    pub(super) fn leave(&mut self, ticket: &Arc<Ticket>) -> bool {
        let Some(crowd) = &mut self.crowd else { return false };
        let before = crowd.queue.len();
        crowd.queue.retain(|waiter| !Arc::ptr_eq(&waiter.ticket, ticket));
        let found = crowd.queue.len() < before;
        self.grant_waiters();
        found
    }

    /// Removes a holder and grants the lock to waiters. Returns whether it has a holder now.
    pub(super) fn release(&mut self, owner: Owner) -> bool {
        self.is_changed &= !self.modes_of(owner).is_some_and(is_of_changer);
        if self.holder == owner {
            self.is_deleted = false;
            let Some(crowd) = &mut self.crowd else { return false };
            if let Some((next, modes)) = crowd.sharers.pop() {
                (self.holder, self.modes) = (next, modes);
            } else {
                let Some(first) = crowd.queue.pop_front() else { return false };
                (self.holder, self.modes) = (first.owner, ModeSet::of(first.mode));
                first.ticket.grant();
            }
        } else if let Some(crowd) = &mut self.crowd {
            crowd.sharers.retain(|(sharer, _)| *sharer != owner);
        }
        self.grant_waiters();
        true
    }

    /// Replaces a holder by another transaction, which does not hold the lock; returns whether it
    /// was a holder.
    pub(super) fn hand_over(&mut self, from: Owner, to: Owner) -> bool {
        debug_assert!(self.modes_of(to).is_none(), "{to} is a holder");
        if self.holder == from {
            self.holder = to;
            return true;
        }
        let mut sharers = self.crowd.iter_mut().flat_map(|crowd| &mut crowd.sharers);
        let found = sharers.find(|(sharer, _)| *sharer == from);
        found.map(|(sharer, _)| *sharer = to).is_some()
    }

    /// Reduces a holder's modes and grants the lock to waiters that this unblocks.
    pub(super) fn weaken(&mut self, owner: Owner, modes: ModeSet) {
        self.is_changed &= is_of_changer(modes) || !self.modes_of(owner).is_some_and(is_of_changer);
        if self.holder == owner {
            self.modes = modes;
        } else if let Some(crowd) = &mut self.crowd
            && let Some((_, held)) = crowd.sharers.iter_mut().find(|(sharer, _)| *sharer == owner)
        {
            *held = modes;
        }
        self.grant_waiters();
    }

    /// Reorders the queue and grants the lock to waiters where possible.
    pub(super) fn reorder(&mut self, order: &[Owner]) {
        let Some(crowd) = &mut self.crowd else { return };
        let place = |waiter: &LockWaiter| order.iter().position(|owner| *owner == waiter.owner);
        crowd.queue.make_contiguous().sort_by_key(place);
        self.grant_waiters();
    }

    /// Grants the lock to waiters that conflict with no holder and no earlier waiter.
    fn grant_waiters(&mut self) {
        let mut place = 0;
        let mut ahead = ModeSet::default();
        while let Some(waiter) = self.crowd.as_ref().and_then(|crowd| crowd.queue.get(place)) {
            let (owner, mode) = (waiter.owner, waiter.mode);
            let is_held = self.conflicting_holders(owner, mode).next().is_some();
            if is_held || ahead.conflicts_with(mode) {
                // No waiter overtakes one that wants an exclusive mode.
                if mode.is_alone() {
                    break;
                }
                ahead.add(mode);
                place += 1;
                continue;
            }
            self.hold(owner, mode);
            if let Some(crowd) = &mut self.crowd
                && let Some(waiter) = crowd.queue.remove(place)
            {
                waiter.ticket.grant();
            }
        }
        if self.crowd.as_ref().is_some_and(|c| c.queue.is_empty() && c.sharers.is_empty()) {
            self.crowd = None;
        }
        self.check();
    }

    /// Asserts the invariants, in debug builds.
    pub(super) fn check(&self) {
        let is_small = self
            .crowd
            .as_ref()
            .is_none_or(|crowd| crowd.sharers.len() < CHECKED && crowd.queue.len() <= CHECKED);
        if !cfg!(debug_assertions) || !is_small {
            return;
        }
        for (place, (holder, modes)) in self.holders().enumerate() {
            assert!(!modes.is_empty(), "{holder} holds a lock in no mode");
            for (other, others) in self.holders().skip(place + 1) {
                assert!(holder != other, "{holder} is a holder twice");
                let conflicts = others.iter().any(|mode| modes.conflicts_with(mode));
                assert!(!conflicts, "the modes of {holder} and {other} conflict");
            }
        }
        for (place, LockWaiter { owner, mode, .. }) in self.queue().enumerate() {
            let mut ahead = self.queue().take(place);
            assert!(ahead.all(|other| other.owner != *owner), "{owner} waits twice");
            let mut ahead = self.queue().take(place);
            assert!(
                self.conflicting_holders(*owner, *mode).next().is_some()
                    || ahead.any(|other| mode.conflicts_with(other.mode)),
                "{owner} waits for nobody"
            );
        }
        assert!(
            !self.is_deleted || is_of_changer(self.modes),
            "a row was deleted by a holder that does not exclude other writers"
        );
        assert!(
            !self.is_changed || self.holders().any(|(_, modes)| is_of_changer(modes)),
            "a row was changed by no holder"
        );
    }
}

/// Returns whether a holder with these modes may change the row; at most one holder can.
fn is_of_changer(modes: ModeSet) -> bool {
    modes.covers(LockMode::NoKeyExclusive)
}

impl Ticket {
    fn grant(&self) {
        *self.granted.lock() = true;
        self.changed.notify_one();
    }
}
