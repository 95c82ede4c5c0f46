//! One lock: who holds it, in which mode, and who waits for it.
//!
//! # Invariants
//!
//! 1. No two holders have modes that conflict.
//! 2. A waiter conflicts with a holder, or with a waiter before it.
//! 3. A transaction is a holder once, in all modes that it was granted, and waits once.
//! 4. Only who holds a lock alone has deleted what it is of; only who keeps others from changing it
//!    has changed it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::descriptor::TableId;
use crate::lock::Owner;
use crate::lock_mode::{LockMode, ModeSet};

/// A lock that somebody holds.
pub(super) struct LockEntry {
    /// The only holder, or the first of several.
    holder: Owner,
    crowd: Option<Box<Crowd>>,
    table: TableId,
    modes: ModeSet,
    /// The holder has deleted the row: of those who wait for it now, none is to take another one
    /// that has its key when they get the lock.
    is_deleted: bool,
    /// The holder that keeps others from changing the row has changed it.
    is_changed: bool,
}

/// What an entry has only when several transactions want it.
#[derive(Default)]
struct Crowd {
    /// Holders beside the first.
    sharers: SmallVec<[(Owner, ModeSet); 4]>,
    queue: VecDeque<LockWaiter>,
}

/// A transaction in the queue of a lock.
pub(super) struct LockWaiter {
    /// Who waits.
    pub(super) owner: Owner,
    /// For which mode.
    pub(super) mode: LockMode,
    /// Since when.
    pub(super) since: Instant,
    /// What it sleeps on.
    pub(super) ticket: Arc<Ticket>,
}

/// What a waiter sleeps on.
#[derive(Default)]
pub(super) struct Ticket {
    /// Whether the lock is the waiter's.
    pub(super) granted: Mutex<bool>,
    /// Signalled when it is.
    pub(super) changed: Condvar,
    /// The row was deleted while it was waited for.
    pub(super) is_gone: AtomicBool,
}

impl LockEntry {
    /// Returns a lock that one transaction holds.
    pub(super) fn new(table: TableId, holder: Owner, mode: LockMode) -> LockEntry {
        let modes = ModeSet::of(mode);
        LockEntry { holder, crowd: None, table, modes, is_deleted: false, is_changed: false }
    }

    /// Returns the table that the lock is of.
    pub(super) fn table(&self) -> TableId {
        self.table
    }

    /// Returns table and modes if it is the lock of a row, and nobody but its holder, which is
    /// `owner`, wants it.
    pub(super) fn of_row_alone(&self, owner: Owner) -> Option<(TableId, ModeSet)> {
        let is_alone = self.holder == owner && self.crowd.is_none() && self.modes.is_of_row();
        is_alone.then_some((self.table, self.modes))
    }

    /// Returns who holds it.
    pub(super) fn holders(&self) -> impl Iterator<Item = (Owner, ModeSet)> + '_ {
        let sharers = self.crowd.iter().flat_map(|crowd| crowd.sharers.iter().copied());
        std::iter::once((self.holder, self.modes)).chain(sharers)
    }

    /// Returns who waits for it, the first to get it first.
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

    /// Notes that its holder has deleted the row, or has not after all; returns whether that is
    /// news.
    pub(super) fn set_deleted(&mut self, owner: Owner, is_deleted: bool) -> bool {
        let is_news = self.holder == owner && self.is_deleted != is_deleted;
        self.is_deleted ^= is_news;
        is_news
    }

    /// Notes that the row is changed by the holder who keeps others from changing it.
    pub(super) fn note_change(&mut self, changes: bool) {
        self.is_changed |= changes;
    }

    /// Returns whether another holder than a transaction changes the row.
    pub(super) fn is_changed_by_other(&self, owner: Owner) -> bool {
        self.is_changed && !self.modes_of(owner).is_some_and(is_of_changer)
    }

    /// Returns whether a transaction holds it and has deleted the row.
    pub(super) fn is_deleted_by(&self, owner: Owner) -> bool {
        self.is_deleted && self.holder == owner
    }

    /// Tells who waits that the row is gone, if its holder, whose commit this is, has deleted it.
    pub(super) fn tell_deleted(&self, owner: Owner) {
        if self.is_deleted_by(owner) {
            self.queue().for_each(|waiter| waiter.ticket.is_gone.store(true, Ordering::Release));
        }
    }

    /// Returns the holders, but for `owner` itself, with whom a mode conflicts.
    pub(super) fn conflicting_holders(
        &self,
        owner: Owner,
        mode: LockMode,
    ) -> impl Iterator<Item = Owner> + '_ {
        let conflicts =
            move |(holder, held): &(Owner, ModeSet)| *holder != owner && held.conflicts_with(mode);
        self.holders().filter(conflicts).map(|(holder, _)| holder)
    }

    /// Grants a mode to a transaction if nobody is in the way. Returns whether it did.
    ///
    /// In the way of a mode of rows are holders only: a reference to a row that others refer to is
    /// not held up by who waits to delete it, as in PostgreSQL (`heap_lock_tuple` waits for the
    /// transactions that have the row). In the way of a mode of tables are the waiters, too, behind
    /// whom it would stand.
    pub(super) fn try_grant(&mut self, owner: Owner, mode: LockMode) -> bool {
        let waits = |waiter: &LockWaiter| mode.conflicts_with(waiter.mode);
        let is_behind = matches!(mode, LockMode::Table(_))
            && self.queue().take(self.place_of(owner, mode)).any(waits);
        if is_behind || self.conflicting_holders(owner, mode).next().is_some() {
            return false;
        }
        self.hold(owner, mode);
        true
    }

    /// Returns the place in the queue of who wants a mode: who has the row in a weaker one goes to
    /// the front, who has the table in one before the first for whom that is in the way, all others
    /// to the end.
    fn place_of(&self, owner: Owner, mode: LockMode) -> usize {
        let Some(held) = self.modes_of(owner) else { return usize::MAX };
        let kept_out = |waiter: &LockWaiter| held.conflicts_with(waiter.mode);
        match mode {
            LockMode::Table(_) => self.queue().position(kept_out).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    /// Makes a transaction a holder, or gives it another mode.
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

    /// Puts a waiter into the queue.
    pub(super) fn enqueue(&mut self, waiter: LockWaiter) {
        let place = self.place_of(waiter.owner, waiter.mode);
        let queue = &mut self.crowd.get_or_insert_default().queue;
        queue.insert(place.min(queue.len()), waiter);
    }

    /// Takes a waiter out of the queue and lets those behind it have the lock, if they only waited
    /// for it. Returns whether the waiter was there.
    pub(super) fn leave(&mut self, ticket: &Arc<Ticket>) -> bool {
        let Some(crowd) = &mut self.crowd else { return false };
        let before = crowd.queue.len();
        crowd.queue.retain(|waiter| !Arc::ptr_eq(&waiter.ticket, ticket));
        let found = crowd.queue.len() < before;
        self.grant_waiters();
        found
    }

    /// Takes a holder out and hands the lock on. Returns whether anybody holds it now.
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

    /// Makes another transaction, which does not have it, the holder in the place of one; returns
    /// whether that had it.
    pub(super) fn hand_over(&mut self, from: Owner, to: Owner) -> bool {
        if self.holder == from {
            self.holder = to;
            return true;
        }
        let mut sharers = self.crowd.iter_mut().flat_map(|crowd| &mut crowd.sharers);
        let found = sharers.find(|(sharer, _)| *sharer == from);
        found.map(|(sharer, _)| *sharer = to).is_some()
    }

    /// Leaves a holder some of its modes and hands on what others may have of the rest.
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

    /// Puts the queue into an order and lets those have the lock who may.
    pub(super) fn reorder(&mut self, order: &[Owner]) {
        let Some(crowd) = &mut self.crowd else { return };
        let place = |waiter: &LockWaiter| order.iter().position(|owner| *owner == waiter.owner);
        crowd.queue.make_contiguous().sort_by_key(place);
        self.grant_waiters();
    }

    /// Lets those in the queue have the lock who conflict with no holder and nobody before them.
    fn grant_waiters(&mut self) {
        let mut place = 0;
        let mut ahead = ModeSet::default();
        while let Some(waiter) = self.crowd.as_ref().and_then(|crowd| crowd.queue.get(place)) {
            let (owner, mode) = (waiter.owner, waiter.mode);
            let is_held = self.conflicting_holders(owner, mode).next().is_some();
            if is_held || ahead.conflicts_with(mode) {
                // Nobody gets past who wants the lock alone.
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
    }
}

/// Returns whether a holder with these modes may change the row: there is no other such holder.
fn is_of_changer(modes: ModeSet) -> bool {
    modes.covers(LockMode::NoKeyExclusive)
}

impl Ticket {
    fn grant(&self) {
        *self.granted.lock() = true;
        self.changed.notify_one();
    }
}
