//! Serializable snapshot isolation: conflicts between SERIALIZABLE transactions, checked at commit.
//!
//! A SERIALIZABLE transaction reads one snapshot, as at REPEATABLE READ, and its reads are
//! tracked ([`ReadTracker`]). Two concurrent transactions have a *conflict*, written `R -> W`, if
//! R read an old version of something that W wrote: in any serial order R comes before W. A
//! history that is not serializable has three transactions `T1 -> T2 -> T3` that overlap, of
//! which T3 committed first; T1 and T3 may be the same (Cahill, Röhm, Fekete; Ports and
//! Grittner). So a transaction that would complete such a chain is aborted. If T1 wrote nothing,
//! the chain is harmful only if T3 committed before T1 took its snapshot.
//!
//! ```text
//!   first read       begin      snapshot taken, listed as active
//!   each read        tracker    its own mutex, nothing shared
//!   each write       check      40001 at once if it cannot commit any more
//!   COMMIT           validate   compared with the commits since its snapshot; 40001 or
//!                               listed as validated, its commit sequence still unknown
//!                    log        assigns the commit sequence
//!                    committed  sequence recorded; retained while an active one has an older
//!                               snapshot
//! ```
//!
//! All conflicts of a chain are known when the last of its transactions validates, because writes
//! are staged until then: both ends of a conflict are compared when the later one of the two
//! validates, so the last one of the chain to commit is aborted, and can be retried at once. The
//! next write of a transaction that would be aborted already fails.
//!
//! # Pending transactions
//!
//! Between validation and its commit record a transaction is *pending*: very briefly, or as long
//! as it is prepared (two-phase commit), and then it can no longer be aborted. Its commit
//! sequence is only known by bounds: above all commits so far, and below infinity. Each check
//! uses the bound that finds more chains.
//!
//! # Invariants
//!
//! 1. An active transaction is listed with a snapshot not above the one that it reads.
//! 2. A validated transaction is listed until each active one has a snapshot that shows it.
//! 3. No chain is complete among those that were validated.
//! 4. Memory is bounded: sets are coarsened ([`footprint`]), and of more than [`LISTED_MAX`]
//!    validated transactions the oldest are merged into one that conflicts with more.
//!
//! In debug builds, `validate` asserts 1, `committed` and `abandon` assert 2 for pending
//! transactions, and `Graph::check` asserts 3 for up to `CHECKED` transactions with exact sets, and
//! 4.
//!
//! # Out of scope
//!
//! Writes over a row that changed since the snapshot: row locks ([`crate::lock`]) and the check of
//! REPEATABLE READ. Other isolation levels: neither their reads nor their writes count here.

mod footprint;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::admission::holds_slot;
use crate::cell::Sequence;
use crate::descriptor::TableId;
use crate::error::{Error, Result};
use crate::options::BlockingSection;
use crate::snapshot::Snapshot;

pub(crate) use footprint::{FootprintAccount, ReadSet, WriteSet};

/// Maximal number of validated transactions that are listed individually.
const LISTED_MAX: usize = 1024;
/// Maximal number of transactions that are checked for chains in debug builds.
const CHECKED: usize = 8;
/// Interval at which a transaction that waits for a safe snapshot checks for cancellation, or
/// tries another snapshot.
const POLL: Duration = Duration::from_millis(20);
/// Position of a transaction that has not been logged yet.
const OPEN: Sequence = Sequence(u64::MAX);

/// Access mode of a SERIALIZABLE transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SerializableMode {
    /// It may write.
    ReadWrite,
    /// It makes no writes that others can see.
    ReadOnly,
    /// As `ReadOnly`, and it waits for a safe snapshot.
    Deferrable,
}

/// The SERIALIZABLE transactions of a store.
pub(crate) struct Serializable {
    graph: Mutex<Graph>,
    /// Signalled when a transaction has ended that others wait for.
    ended: Condvar,
    account: Arc<FootprintAccount>,
}

#[derive(Default)]
struct Graph {
    active: HashMap<u64, Active>,
    /// In the order of validation.
    validated: Vec<Validated>,
    /// Transactions that wait for a safe snapshot.
    deferred: HashMap<u64, Deferred>,
    /// True once transactions were merged or recovered, which conflict with more than they did.
    is_coarse: bool,
    /// Tables whose rows have moved to another one, with that; see [`Serializable::exchange`].
    exchanged: Vec<(TableId, TableId)>,
}

/// A transaction that has begun to read.
struct Active {
    snapshot: Sequence,
    /// True if it may write.
    writes: bool,
}

/// A transaction that is committing or has committed.
struct Validated {
    transaction: u64,
    snapshot: Sequence,
    reads: ReadSet,
    writes: WriteSet,
    /// Lower bound of its commit sequence; if it wrote nothing, its snapshot.
    low: Sequence,
    /// Upper bound of its commit sequence; [`OPEN`] while it is pending.
    high: Sequence,
    /// Lower bound of the commits T with a conflict from this one: this -> T.
    earliest_out: Option<Sequence>,
    /// Transactions T that were pending when a conflict was found: T -> this.
    pending_readers: SmallVec<[u64; 2]>,
}

/// A transaction that waits for a safe snapshot.
struct Deferred {
    snapshot: Sequence,
    /// Transactions that may still make the snapshot unsafe.
    waits_for: HashSet<u64>,
    is_unsafe: bool,
}

/// Tracker of the reads of one transaction.
pub(crate) struct ReadTracker {
    reads: Mutex<Option<ReadSet>>,
    /// True while reads are tracked; false if the snapshot is safe.
    is_on: AtomicBool,
    /// True if it has read a version newer than its snapshot.
    has_seen_newer: AtomicBool,
    /// True if it is listed as active.
    is_listed: AtomicBool,
    /// The highest commit sequence of T3 that is harmful if a transaction that has read what this
    /// one staged is T1; 0 for none.
    harm_through: AtomicU64,
}

/// Input of a validation.
pub(crate) struct Validation<'a> {
    /// Its number.
    pub(crate) transaction: u64,
    /// Its snapshot.
    pub(crate) snapshot: Sequence,
    /// Tracker of its reads.
    pub(crate) tracker: &'a ReadTracker,
    /// Its write set.
    pub(crate) writes: WriteSet,
}

/// A validated transaction without a commit sequence. Dropping it removes the transaction.
pub(crate) struct PendingCommit<'a> {
    serializable: &'a Serializable,
    transaction: u64,
}

impl ReadTracker {
    /// Returns the tracker of a transaction that has read nothing.
    fn new(account: &Arc<FootprintAccount>) -> ReadTracker {
        ReadTracker {
            reads: Mutex::new(Some(ReadSet::new(account))),
            is_on: AtomicBool::new(true),
            has_seen_newer: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
            harm_through: AtomicU64::new(0),
        }
    }

    /// Returns whether reads are tracked.
    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Tracks a row that was read, or found to be absent.
    pub(crate) fn note_row(&self, table: TableId, row: &[u8]) {
        if self.is_on()
            && let Some(reads) = &mut *self.reads.lock()
        {
            reads.add_row(table, row);
        }
    }

    /// Tracks a range, from `start` to before `stop`, that is about to be read.
    pub(crate) fn note_range(&self, table: TableId, start: Vec<u8>, stop: Option<Vec<u8>>) {
        if self.is_on()
            && let Some(reads) = &mut *self.reads.lock()
        {
            reads.add_range(table, start, stop);
        }
    }

    /// Returns whether a row was read.
    pub(crate) fn has_read(&self, table: TableId, row: &[u8]) -> bool {
        self.reads.lock().as_ref().is_some_and(|reads| reads.has(table, row))
    }

    /// Records that a version newer than the snapshot was read: the transaction is ordered after
    /// all commits so far, so it must not have a conflict with any of them.
    pub(crate) fn note_newer(&self) {
        self.has_seen_newer.store(true, Ordering::Release);
    }
}

impl Serializable {
    /// Returns an empty list. `limit_bytes` is the approximate memory limit of all read and write
    /// sets.
    pub(crate) fn new(limit_bytes: u64) -> Serializable {
        Serializable {
            graph: Mutex::default(),
            ended: Condvar::new(),
            account: FootprintAccount::new(limit_bytes),
        }
    }

    /// Returns a tracker for a new transaction.
    pub(crate) fn tracker(&self) -> Arc<ReadTracker> {
        Arc::new(ReadTracker::new(&self.account))
    }

    /// Returns an empty set of writes.
    pub(crate) fn write_set(&self) -> WriteSet {
        WriteSet::new(&self.account)
    }

    /// Takes the snapshot of a transaction and lists it as active. A read-only one with a safe
    /// snapshot is neither listed nor tracked.
    pub(crate) fn begin(
        &self,
        (transaction, tracker): (u64, &ReadTracker),
        is_read_only: bool,
        open: impl FnOnce() -> Snapshot,
    ) -> Snapshot {
        let mut graph = self.graph.lock();
        let snapshot = open();
        let sequence = snapshot.sequence();
        if is_read_only && graph.is_safe(sequence) {
            tracker.is_on.store(false, Ordering::Release);
            return snapshot;
        }
        let active = Active { snapshot: sequence, writes: !is_read_only };
        graph.active.insert(transaction, active);
        tracker.is_listed.store(true, Ordering::Release);
        snapshot
    }

    /// Waits for a safe snapshot, with which no tracking is needed.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`].
    pub(crate) fn begin_deferrable(
        &self,
        (transaction, tracker): (u64, &ReadTracker),
        open: impl Fn() -> Snapshot,
        cancelled: &AtomicBool,
        blocking: &dyn BlockingSection,
    ) -> Result<Snapshot> {
        loop {
            let mut graph = self.graph.lock();
            let snapshot = open();
            let sequence = snapshot.sequence();
            if graph.is_safe(sequence) {
                tracker.is_on.store(false, Ordering::Release);
                return Ok(snapshot);
            }
            let deferred = graph.deferred_at(sequence);
            graph.deferred.insert(transaction, deferred);
            drop(graph);
            let mut outcome = Ok(false);
            blocking.run(&mut || {
                debug_assert!(!holds_slot(), "a slot is held during a wait for a safe snapshot");
                outcome = self.wait_until_safe(transaction, cancelled);
            });
            self.graph.lock().deferred.remove(&transaction);
            if outcome? {
                tracker.is_on.store(false, Ordering::Release);
                return Ok(snapshot);
            }
        }
    }

    /// Returns whether the snapshot of a waiting transaction has become safe; `false`, after a
    /// pause, if it cannot become so.
    fn wait_until_safe(&self, transaction: u64, cancelled: &AtomicBool) -> Result<bool> {
        let mut graph = self.graph.lock();
        loop {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let Some(deferred) = graph.deferred.get(&transaction) else { return Ok(false) };
            let is_unsafe = deferred.is_unsafe;
            if !is_unsafe && deferred.waits_for.is_empty() {
                return Ok(true);
            }
            self.ended.wait_for(&mut graph, POLL);
            if is_unsafe {
                return Ok(false);
            }
        }
    }

    /// Checks, when a transaction has staged some writes, that it could still commit.
    ///
    /// # Errors
    ///
    /// [`Error::Dependencies`] if it could not: with its reads and writes so far it completes a
    /// chain.
    pub(crate) fn check_writes(
        &self,
        snapshot: Sequence,
        tracker: &ReadTracker,
        writes: &WriteSet,
    ) -> Result<()> {
        let graph = self.graph.lock();
        let reads = tracker.reads.lock();
        let Some(reads) = &*reads else { return Ok(()) };
        let mut earliest_out: Option<Sequence> = None;
        let mut harm_through = tracker.harm_through.load(Ordering::Relaxed);
        for other in graph.validated.iter().filter(|other| other.high > snapshot) {
            if graph.meet(reads, &other.writes) {
                if other.earliest_out.is_some() {
                    return Err(conflict("Canceled on conflict out to a pivot, during write."));
                }
                earliest_out = Some(earliest_out.map_or(other.low, |out| out.min(other.low)));
            }
            if graph.meet(&other.reads, writes) {
                harm_through = harm_through.max(other.harm_through().0);
            }
        }
        tracker.harm_through.store(harm_through, Ordering::Relaxed);
        match earliest_out.is_some_and(|out| out.0 <= harm_through) {
            true => Err(conflict("Canceled on identification as a pivot, during write.")),
            false => Ok(()),
        }
    }

    /// Records that the rows of a table have moved to another one, under other keys: a transaction
    /// that has read the one conflicts with each that has written the other. Readers of the old
    /// one do not begin after the next call.
    pub(crate) fn exchange(&self, old: TableId, new: TableId) {
        let mut graph = self.graph.lock();
        if graph.active.is_empty() && graph.validated.is_empty() {
            graph.exchanged.clear();
        }
        let before = graph.exchanged.iter().filter(|(_, to)| *to == old);
        let mut added: Vec<_> = before.map(|(from, _)| (*from, new)).collect();
        added.push((old, new));
        graph.exchanged.extend(added);
    }

    /// Returns the transactions that a transaction waiting for a safe snapshot waits for.
    pub(crate) fn safe_snapshot_blockers(&self, transaction: u64) -> Vec<u64> {
        let graph = self.graph.lock();
        let Some(deferred) = graph.deferred.get(&transaction) else { return Vec::new() };
        deferred.waits_for.iter().copied().collect()
    }

    /// Validates a transaction for commit. If it writes, it is pending until its commit is
    /// logged. `clock`: the last commit sequence; `visible`: the least that new snapshots show.
    ///
    /// # Errors
    ///
    /// [`Error::Dependencies`] if it would complete a chain. It must be rolled back then.
    pub(crate) fn validate(
        &self,
        asked: Validation<'_>,
        clock: impl FnOnce() -> Sequence,
        visible: impl FnOnce() -> Sequence,
    ) -> Result<Option<PendingCommit<'_>>> {
        let Validation { transaction, snapshot, tracker, writes } = asked;
        let mut graph = self.graph.lock();
        debug_assert!(
            graph.active.get(&transaction).is_none_or(|active| active.snapshot <= snapshot),
            "an active transaction reads an older snapshot than it is listed with"
        );
        let taken = if tracker.is_on() { tracker.reads.lock().take() } else { None };
        let reads = taken.unwrap_or_else(|| ReadSet::new(&self.account));
        let is_read_only = writes.is_empty();
        let low = if is_read_only { snapshot } else { Sequence(clock().0 + 1) };
        let high = if is_read_only { snapshot } else { OPEN };
        let has_seen_newer = tracker.has_seen_newer.load(Ordering::Acquire);
        let mut this = Validated {
            transaction,
            snapshot,
            reads,
            writes,
            low,
            high,
            earliest_out: None,
            pending_readers: SmallVec::new(),
        };
        graph.find_conflicts(&mut this, has_seen_newer)?;
        graph.active.remove(&transaction);
        tracker.is_listed.store(false, Ordering::Release);
        graph.note_end(transaction, this.earliest_out);
        // A read-only transaction can only be T1 of chains whose T2 has an older snapshot.
        let older = |active: &Active| active.writes && active.snapshot < snapshot;
        if !is_read_only || graph.active.values().any(older) {
            graph.validated.push(this);
        }
        graph.forget(visible());
        graph.limit(&self.account);
        graph.check();
        drop(graph);
        self.ended.notify_all();
        Ok((!is_read_only).then(|| PendingCommit { serializable: self, transaction }))
    }

    /// Removes a transaction that has not been validated.
    pub(crate) fn end(&self, transaction: u64, tracker: &ReadTracker) {
        drop(tracker.reads.lock().take());
        if !tracker.is_listed.swap(false, Ordering::AcqRel) {
            return;
        }
        let mut graph = self.graph.lock();
        if graph.active.remove(&transaction).is_some() {
            graph.note_end(transaction, None);
        }
        drop(graph);
        self.ended.notify_all();
    }

    /// Lists a transaction that was prepared before a restart. Its reads are unknown: it counts
    /// as having read everything, and as having a conflict with an earlier commit.
    pub(crate) fn recover(&self, transaction: u64, tables: &[TableId], writes: WriteSet) {
        let reads = ReadSet::of_tables(&self.account, tables);
        let validated = Validated {
            transaction,
            snapshot: Sequence(0),
            reads,
            writes,
            low: Sequence(1),
            high: OPEN,
            earliest_out: Some(Sequence(0)),
            pending_readers: SmallVec::new(),
        };
        let mut graph = self.graph.lock();
        graph.is_coarse = true;
        graph.validated.push(validated);
        graph.check();
    }

    /// Records the commit sequence of a pending transaction.
    pub(crate) fn committed(&self, transaction: u64, place: Sequence) {
        let mut graph = self.graph.lock();
        let this = graph.pending(transaction);
        debug_assert!(this.is_some(), "a pending transaction is listed until it ends");
        if let Some(this) = this {
            debug_assert!(this.low <= place, "it is committed before it was validated");
            (this.low, this.high) = (place, place);
        }
        drop(graph);
        self.ended.notify_all();
    }

    /// Removes a pending transaction, which was rolled back.
    pub(crate) fn abandon(&self, transaction: u64) {
        let mut graph = self.graph.lock();
        let count = graph.validated.len();
        graph.validated.retain(|one| one.transaction != transaction || one.high != OPEN);
        debug_assert_eq!(graph.validated.len() + 1, count, "one pending transaction ends");
        drop(graph);
        self.ended.notify_all();
    }

    /// Returns the bytes of all read and write sets.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.account.bytes()
    }
}

impl PendingCommit<'_> {
    /// Records its commit sequence.
    pub(crate) fn committed(self, place: Sequence) {
        self.serializable.committed(self.transaction, place);
        std::mem::forget(self);
    }
}

impl PendingCommit<'_> {
    /// Leaves it pending, because it is prepared.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for PendingCommit<'_> {
    fn drop(&mut self) {
        self.serializable.abandon(self.transaction);
    }
}

impl Validated {
    fn is_pending(&self) -> bool {
        self.high == OPEN
    }

    /// Returns the highest commit sequence of T3 that is harmful if this is T1.
    fn harm_through(&self) -> Sequence {
        if self.writes.is_empty() { self.snapshot } else { self.high }
    }

    fn lower_out(&mut self, place: Sequence) {
        self.earliest_out = Some(self.earliest_out.map_or(place, |known| known.min(place)));
    }
}

impl Graph {
    fn pending(&mut self, transaction: u64) -> Option<&mut Validated> {
        let mut all = self.validated.iter_mut();
        all.find(|one| one.transaction == transaction && one.is_pending())
    }

    /// Compares a transaction with those that it overlaps, and records the conflicts.
    ///
    /// # Errors
    ///
    /// [`Error::Dependencies`] if it completes a chain; nothing is recorded then.
    fn find_conflicts(&mut self, this: &mut Validated, has_seen_newer: bool) -> Result<()> {
        let is_read_only = this.writes.is_empty();
        let (mut outs, mut ins) = (Vec::new(), Vec::new());
        for (at, other) in self.validated.iter().enumerate() {
            if other.high <= this.snapshot {
                continue;
            }
            if self.meet(&this.reads, &other.writes) {
                outs.push(at);
            }
            if self.meet(&other.reads, &this.writes) {
                ins.push(at);
            }
        }
        for &at in &outs {
            let other = &self.validated[at];
            // this = T1, other = T2
            let harms = |out: Sequence| !is_read_only || out <= this.snapshot;
            if other.earliest_out.is_some_and(harms) {
                return Err(conflict(
                    "Canceled on conflict out to a pivot, during commit attempt.",
                ));
            }
            this.lower_out(other.low);
        }
        if has_seen_newer && !outs.is_empty() {
            return Err(conflict("Canceled after reading over a newer commit."));
        }
        for &at in &ins {
            let other = &self.validated[at];
            // other = T1, this = T2
            if this.earliest_out.is_some_and(|out| out <= other.harm_through()) {
                return Err(conflict(
                    "Canceled on identification as a pivot, during commit attempt.",
                ));
            }
            // a pending transaction = T1, other = T2, this = T3: neither T1 nor T2 can be aborted
            // any more
            if other.is_pending() && self.is_any_pending(&other.pending_readers) {
                return Err(conflict("Canceled on conflict with a prepared pivot."));
            }
        }
        for at in ins {
            let other = &mut self.validated[at];
            if other.is_pending() {
                other.lower_out(this.low);
                this.pending_readers.push(other.transaction);
            }
        }
        for at in outs.into_iter().filter(|_| !is_read_only) {
            let other = &mut self.validated[at];
            if other.is_pending() {
                other.pending_readers.push(this.transaction);
            }
        }
        Ok(())
    }

    /// Returns whether something was read that was written, also across exchanged tables.
    fn meet(&self, reads: &ReadSet, writes: &WriteSet) -> bool {
        let crosses = |(one, other): &(TableId, TableId)| {
            (reads.has_table(*one) && writes.has_table(*other))
                || (reads.has_table(*other) && writes.has_table(*one))
        };
        reads.meets(writes) || self.exchanged.iter().any(crosses)
    }

    fn is_any_pending(&self, transactions: &[u64]) -> bool {
        let is_listed =
            |one: &Validated| one.is_pending() && transactions.contains(&one.transaction);
        !transactions.is_empty() && self.validated.iter().any(is_listed)
    }

    /// Returns whether a snapshot is safe for a read-only transaction: no overlapping writer has,
    /// or can still get, a conflict with a commit that the snapshot shows.
    fn is_safe(&self, snapshot: Sequence) -> bool {
        let Deferred { waits_for, is_unsafe, .. } = self.deferred_at(snapshot);
        !is_unsafe && waits_for.is_empty()
    }

    fn deferred_at(&self, snapshot: Sequence) -> Deferred {
        let overlaps = |active: &Active| active.writes && active.snapshot < snapshot;
        let open = self.active.iter().filter(|(_, active)| overlaps(active));
        let harms = |one: &Validated| {
            one.high > snapshot && one.earliest_out.is_some_and(|out| out <= snapshot)
        };
        Deferred {
            snapshot,
            waits_for: open.map(|(transaction, _)| *transaction).collect(),
            is_unsafe: self.validated.iter().any(harms),
        }
    }

    /// Updates the transactions that wait for a safe snapshot: `transaction` has ended, or cannot
    /// be aborted any more, with this earliest conflict.
    fn note_end(&mut self, transaction: u64, earliest_out: Option<Sequence>) {
        for deferred in self.deferred.values_mut() {
            if deferred.waits_for.remove(&transaction) {
                deferred.is_unsafe |= earliest_out.is_some_and(|out| out <= deferred.snapshot);
            }
        }
    }

    /// Removes transactions that all active ones see. New snapshots show all commits up to
    /// `visible`.
    fn forget(&mut self, visible: Sequence) {
        let oldest = self.active.values().map(|active| active.snapshot).min();
        let shown = oldest.map_or(visible, |oldest| oldest.min(visible));
        self.validated.retain(|one| one.high > shown);
    }

    /// Merges the oldest transactions if there are too many, or if they take too much memory.
    fn limit(&mut self, account: &FootprintAccount) {
        if self.validated.len() <= LISTED_MAX && !account.is_full() {
            return;
        }
        let ended = self.validated.iter().filter(|one| !one.is_pending()).count();
        let mut merged: Option<Validated> = None;
        let mut rest = Vec::with_capacity(self.validated.len());
        let mut left = ended / 2;
        for one in self.validated.drain(..) {
            if one.is_pending() || left == 0 {
                rest.push(one);
                continue;
            }
            left -= 1;
            match &mut merged {
                Some(merged) => merged.absorb(&one),
                none => *none = Some(one),
            }
        }
        self.is_coarse |= merged.is_some();
        rest.extend(merged);
        self.validated = rest;
    }

    /// Asserts the invariants, in debug builds.
    fn check(&self) {
        for one in &self.validated {
            debug_assert!(one.low <= one.high, "bounds of a place");
            debug_assert!(!one.writes.is_empty() || one.high == one.snapshot, "a reader's place");
            debug_assert!(!self.active.contains_key(&one.transaction), "listed twice");
        }
        let pending = self.validated.iter().filter(|one| one.is_pending()).count();
        debug_assert!(self.validated.len() <= LISTED_MAX + pending, "too many are listed");
        if cfg!(debug_assertions) && !self.is_coarse && self.validated.len() <= CHECKED {
            self.check_chains();
        }
    }

    /// Asserts that no chain `T1 -> T2 -> T3` is complete: `earliest_out` of T2 is T3.
    fn check_chains(&self) {
        for second in &self.validated {
            let Some(third) = second.earliest_out else { continue };
            for first in self.validated.iter().filter(|one| one.transaction != second.transaction) {
                let overlap = first.high > second.snapshot && second.high > first.snapshot;
                let is_chain =
                    third <= first.harm_through() && self.meet(&first.reads, &second.writes);
                assert!(
                    !(overlap && is_chain),
                    "the chain {} -> {} -> commit {} is complete",
                    first.transaction,
                    second.transaction,
                    third.0
                );
            }
        }
    }
}

impl Validated {
    /// Merges two ended transactions into one that conflicts with any transaction that conflicts
    /// with either.
    fn absorb(&mut self, other: &Validated) {
        let harm_through = self.harm_through().max(other.harm_through());
        self.reads.absorb(&other.reads);
        self.writes.absorb(&other.writes);
        self.snapshot = self.snapshot.max(other.snapshot);
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high).max(harm_through);
        if self.writes.is_empty() {
            self.snapshot = harm_through;
            self.high = harm_through;
        }
        if let Some(out) = other.earliest_out {
            self.lower_out(out);
        }
    }
}

fn conflict(reason: &str) -> Error {
    Error::Dependencies { reason: reason.to_owned() }
}
