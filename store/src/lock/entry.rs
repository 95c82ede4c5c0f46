//! One lock: who holds it, in which mode, and who waits for it.
//!
//! # Invariants
//!
//! 1. No two holders have modes that conflict.
//! 2. A waiter conflicts with a holder, or with a waiter before it.
//! 3. A transaction is a holder once, in the strongest mode that it was granted, and waits once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::descriptor::TableId;
use crate::lock::Owner;
use crate::mutation::LockMode;

/// A lock that somebody holds.
pub(super) struct LockEntry {
    /// The only holder, or the first of several.
    holder: Owner,
    crowd: Option<Box<Crowd>>,
    table: TableId,
    mode: LockMode,
}

/// What an entry has only when several transactions want it.
#[derive(Default)]
struct Crowd {
    /// Holders beside the first.
    sharers: SmallVec<[(Owner, LockMode); 4]>,
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
}

impl LockEntry {
    /// Returns a lock that one transaction holds.
    pub(super) fn new(table: TableId, holder: Owner, mode: LockMode) -> LockEntry {
        LockEntry { holder, crowd: None, table, mode }
    }

    /// Returns the table that the lock is of.
    pub(super) fn table(&self) -> TableId {
        self.table
    }

    /// Returns who holds it.
    pub(super) fn holders(&self) -> impl Iterator<Item = (Owner, LockMode)> + '_ {
        let sharers = self.crowd.iter().flat_map(|crowd| crowd.sharers.iter().copied());
        std::iter::once((self.holder, self.mode)).chain(sharers)
    }

    /// Returns who waits for it, the first to get it first.
    pub(super) fn queue(&self) -> impl Iterator<Item = &LockWaiter> + '_ {
        self.crowd.iter().flat_map(|crowd| crowd.queue.iter())
    }

    /// Returns the mode in which a transaction holds it.
    pub(super) fn mode_of(&self, owner: Owner) -> Option<LockMode> {
        if self.holder == owner {
            return Some(self.mode);
        }
        self.holders().find(|(holder, _)| *holder == owner).map(|(_, mode)| mode)
    }

    /// Returns the holders, but for `owner` itself, with whom a mode conflicts.
    pub(super) fn conflicting_holders(
        &self,
        owner: Owner,
        mode: LockMode,
    ) -> impl Iterator<Item = Owner> + '_ {
        let conflicts = move |(holder, held): &(Owner, LockMode)| {
            *holder != owner && mode.conflicts_with(*held)
        };
        self.holders().filter(conflicts).map(|(holder, _)| holder)
    }

    /// Grants a mode to a transaction if nobody is in the way: holders, and waiters if it does not
    /// hold the lock already. Returns whether it did.
    pub(super) fn try_grant(&mut self, owner: Owner, mode: LockMode) -> bool {
        let holds = self.mode_of(owner).is_some();
        let waits = |waiter: &LockWaiter| mode.conflicts_with(waiter.mode);
        if self.conflicting_holders(owner, mode).next().is_some()
            || (!holds && self.queue().any(waits))
        {
            return false;
        }
        self.hold(owner, mode);
        true
    }

    /// Makes a transaction a holder, or its mode stronger.
    fn hold(&mut self, owner: Owner, mode: LockMode) {
        if self.holder == owner {
            self.mode = self.mode.max(mode);
            return;
        }
        let sharers = &mut self.crowd.get_or_insert_default().sharers;
        match sharers.iter_mut().find(|(sharer, _)| *sharer == owner) {
            Some((_, held)) => *held = mode.max(*held),
            None => sharers.push((owner, mode)),
        }
    }

    /// Puts a waiter into the queue: a holder that wants a stronger mode before all others.
    pub(super) fn enqueue(&mut self, waiter: LockWaiter) {
        let holds = self.mode_of(waiter.owner).is_some();
        let queue = &mut self.crowd.get_or_insert_default().queue;
        if holds { queue.push_front(waiter) } else { queue.push_back(waiter) }
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
        if self.holder == owner {
            let Some(crowd) = &mut self.crowd else { return false };
            if let Some((next, mode)) = crowd.sharers.pop() {
                (self.holder, self.mode) = (next, mode);
            } else {
                let Some(first) = crowd.queue.pop_front() else { return false };
                (self.holder, self.mode) = (first.owner, first.mode);
                first.ticket.grant();
            }
        } else if let Some(crowd) = &mut self.crowd {
            crowd.sharers.retain(|(sharer, _)| *sharer != owner);
        }
        self.grant_waiters();
        true
    }

    /// Makes the mode of a holder weaker and hands on what others may have of it.
    pub(super) fn weaken(&mut self, owner: Owner, mode: LockMode) {
        if self.holder == owner {
            self.mode = mode;
        } else if let Some(crowd) = &mut self.crowd
            && let Some((_, held)) = crowd.sharers.iter_mut().find(|(sharer, _)| *sharer == owner)
        {
            *held = mode;
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
        let mut ahead: SmallVec<[LockMode; 4]> = SmallVec::new();
        while let Some(waiter) = self.crowd.as_ref().and_then(|crowd| crowd.queue.get(place)) {
            let (owner, mode) = (waiter.owner, waiter.mode);
            let is_held = self.conflicting_holders(owner, mode).next().is_some();
            if is_held || ahead.iter().any(|other| mode.conflicts_with(*other)) {
                // Nobody gets past who wants the lock alone.
                if mode == LockMode::Exclusive {
                    break;
                }
                if !ahead.contains(&mode) {
                    ahead.push(mode);
                }
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

impl Ticket {
    fn grant(&self) {
        *self.granted.lock() = true;
        self.changed.notify_one();
    }
}
