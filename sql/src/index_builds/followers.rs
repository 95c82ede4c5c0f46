//! Followers of eventual indexes: the server changes their entries after the commits, from the rows
//! that the commits have changed.
//!
//! ```text
//!   writers: maintain the index        no writer         server follows the index
//!   --------------------------- table locked, view p --- rows changed in (p, q]:
//!                                                        entries at p --> entries at q, position q
//! ```
//!
//! An eventual index is built, and at first maintained, like any other. Then it is handed over: its
//! record names the store table of its entries, its observer is detached, and its position has a
//! row in the catalog table under [`FOLLOWERS_PREFIX`]. If a definition gives the entries another
//! store table (TRUNCATE, REINDEX, new forms), the record no longer names it: writers maintain it
//! again, until the next handover.
//!
//! # Invariants
//!
//! 1. The entries show the table as of the stored position. Entries and position change in one
//!    transaction, so a round is repeated as a whole after a crash, or not at all.
//! 2. A view at the position is open, so that changed rows can be read as they were. After a
//!    restart the store retains all versions until these views are open.
//! 3. The view is replaced once the new position is on disk, or if no row of the table has changed
//!    since the stored one: both show the same rows.
//!
//! An index whose view was closed, that lags by more than an hour, or whose keys cannot be computed
//! for a row, is lost: it is disabled, and except in the last case rebuilt.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use coprocessors::index::{IndexObserver, follow_rows};
use parking_lot::{Condvar, Mutex, MutexGuard};
use store::codec::tagged::UnknownFields;
use store::env::process::monotonic_now;
use store::transaction::TransactionOptions;
use store::{
    ChangeFeed, ChangedRows, Mutation, Sequence, StatementView, Store, TableId, Transaction,
};
use types::expr::EvalContext;

use crate::catalog::Catalog;
use crate::catalog::access::owner_context::as_owner;
use crate::catalog::record::{encode, object_key};
use crate::catalog::table::Index;
use crate::error::{Error, Result};
use crate::exec::FollowedViews;

/// Key prefix of positions in the catalog; the number of the index follows.
pub const FOLLOWERS_PREFIX: &[u8] = b"w";

/// Bytes of queued commits above which changed rows are looked up in the tables instead.
const QUEUE_BYTES: usize = 16 << 20;
/// Lag from which an index is rebuilt instead: the versions since its position are retained.
const LAG_MAX: Duration = Duration::from_secs(3600);
/// Number of rows that are read at a time.
const ROWS_AT_ONCE: usize = 500;
/// Interval at which a waiter checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);

/// Stored position of an eventual index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexPosition {
    /// Number of the table.
    pub table: u32,
    /// Number of the index.
    pub index: u32,
    /// Id of the table in the store.
    pub base_table: u32,
    /// Id of the index in the store.
    pub store_table: u32,
    /// The last commit that its entries show.
    pub sequence: u64,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

store::tagged_fields!(IndexPosition {
    1 table, 2 index, 3 base_table, 4 store_table, 5 sequence,
} unknown);

impl IndexPosition {
    /// Returns the put of its row in the catalog table.
    pub fn row(&self) -> Mutation {
        Mutation::new(object_key(FOLLOWERS_PREFIX, self.index)).put(0, Vec::new(), encode(self))
    }

    /// Returns the delete of the row of an index.
    pub fn delete(index: u32) -> Mutation {
        Mutation::new(object_key(FOLLOWERS_PREFIX, index)).delete_row()
    }
}

/// Number of commits that an index lacks at most, and the age of its position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexLag {
    /// Number of commits, of any table.
    pub commits: u64,
    /// The age; zero if it lacks no commit.
    pub age: Duration,
}

/// An index that is followed.
struct Follower {
    position: IndexPosition,
    views: FollowedViews,
    /// True if the rows that changed since the position have to be looked up in the table.
    has_gap: bool,
}

/// An index that cannot be followed any more.
#[derive(Debug, Clone)]
pub struct LostIndex {
    /// The number of its table.
    pub table: u32,
    /// Its own number.
    pub index: u32,
    /// The error that a rebuild would repeat.
    pub error: Option<String>,
}

/// Followers of all eventual indexes; see the module.
pub struct IndexFollowers {
    /// The catalog table that has the positions.
    catalog_table: TableId,
    feed: OnceLock<Arc<ChangeFeed>>,
    /// Held during a round.
    round: Mutex<()>,
    /// By the store table of the index.
    followers: Mutex<AHashMap<TableId, Follower>>,
    /// By number.
    lost: Mutex<BTreeMap<u32, LostIndex>>,
    advanced: Condvar,
    /// True once an index was or is about to be handed over.
    is_used: AtomicBool,
}

/// Indexes of a table with the same position.
#[derive(Clone)]
struct FollowerGroup {
    table: u32,
    base_table: TableId,
    before: StatementView,
    has_gap: bool,
    indexes: Vec<Arc<Index>>,
}

impl IndexFollowers {
    /// Returns the followers of a database, by its catalog table.
    pub fn new(catalog_table: TableId) -> IndexFollowers {
        IndexFollowers {
            catalog_table,
            feed: OnceLock::new(),
            round: Mutex::default(),
            followers: Mutex::default(),
            lost: Mutex::default(),
            advanced: Condvar::new(),
            is_used: AtomicBool::new(false),
        }
    }

    /// Returns whether there may be followed indexes.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Begins to collect changed rows. Called before an index is handed over.
    pub fn begin(&self, store: &Store) {
        self.feed.get_or_init(|| store.follow_changes(QUEUE_BYTES));
        self.is_used.store(true, Ordering::Release);
    }

    /// Holds up rounds. A handover does that until its index is added: a round that saw the
    /// handover would find no index to follow, and one that did not would forget the index.
    ///
    /// `None`: the present round takes longer than `longest`.
    pub fn pause(&self, longest: Duration) -> Option<MutexGuard<'_, ()>> {
        self.round.try_lock_for(longest)
    }

    /// Adds an index that was handed over. Its changed rows are looked up in the table at first.
    pub fn add(&self, position: IndexPosition, views: FollowedViews) {
        let store_table = TableId(position.store_table);
        let follower = Follower { position, views, has_gap: true };
        self.followers.lock().insert(store_table, follower);
        self.advanced.notify_all();
    }

    /// Records that an index cannot be followed.
    pub fn lose(&self, lost: LostIndex) {
        self.is_used.store(true, Ordering::Release);
        self.lost.lock().insert(lost.index, lost);
    }

    /// Returns the indexes that cannot be followed any more, or lag too much.
    pub fn lost(&self, store: &Store) -> Vec<LostIndex> {
        let (visible, now) = (store.visible(), store.now_micros());
        let mut late = Vec::new();
        self.followers.lock().retain(|_, follower| {
            let rows = &follower.views.rows;
            // The time of a position from before the start is not known.
            let since = follower.views.time_micros.max(rows.opened_micros());
            let age = now.saturating_sub(since).max(0).unsigned_abs();
            let is_late = rows.commit() < visible && Duration::from_micros(age) > LAG_MAX;
            if is_late {
                let IndexPosition { table, index, .. } = follower.position;
                tracing::warn!(index, "an index lags too much to be followed, and is rebuilt");
                late.push(LostIndex { table, index, error: None });
            }
            !is_late
        });
        late.into_iter().for_each(|index| self.lose(index));
        self.lost.lock().values().cloned().collect()
    }

    /// Forgets an index that could not be followed.
    pub fn note_disabled(&self, index: u32) {
        self.lost.lock().remove(&index);
    }

    /// Returns the views of an index, by its store table.
    pub fn views(&self, index: TableId) -> Option<FollowedViews> {
        self.followers.lock().get(&index).map(|follower| follower.views.clone())
    }

    /// Returns how far an index is behind, by its store table.
    pub fn lag(&self, store: &Store, index: TableId) -> Option<IndexLag> {
        let views = self.views(index)?;
        let commits = store.visible().0.saturating_sub(views.rows.commit().0);
        let age = match commits {
            0 => 0,
            _ => store.now_micros().saturating_sub(views.time_micros).max(0),
        };
        Some(IndexLag { commits, age: Duration::from_micros(age.unsigned_abs()) })
    }

    /// Waits until the views of an index satisfy a condition; `None` if the deadline passes before
    /// that.
    ///
    /// # Errors
    ///
    /// 57014.
    pub fn wait(
        &self,
        (store, index): (&Store, TableId),
        is_enough: impl Fn(&FollowedViews) -> bool,
        (cancelled, deadline): (&AtomicBool, Option<Instant>),
    ) -> Result<Option<FollowedViews>> {
        let find = |followers: &AHashMap<TableId, Follower>| {
            let views = followers.get(&index).map(|follower| &follower.views);
            views.filter(|views| is_enough(views)).cloned()
        };
        if let Some(views) = find(&self.followers.lock()) {
            return Ok(Some(views));
        }
        let mut outcome = Ok(None);
        store.wait_without_slot(&mut || {
            let mut followers = self.followers.lock();
            outcome = loop {
                if let Some(views) = find(&followers) {
                    break Ok(Some(views));
                }
                if cancelled.load(Ordering::Relaxed) {
                    break Err(store::Error::Cancelled.into());
                }
                let left = deadline.map(|at| at.saturating_duration_since(monotonic_now()));
                if left == Some(Duration::ZERO) {
                    break Ok(None);
                }
                let nap = left.map_or(CANCEL_POLL, |left| left.min(CANCEL_POLL));
                self.advanced.wait_for(&mut followers, nap);
            };
        });
        outcome
    }

    /// Returns whether there are commits that followed indexes may lack. Those that lack none show
    /// the present.
    pub fn is_behind(&self, store: &Store) -> bool {
        let now_micros = store.now_micros();
        let visible = store.visible();
        let mut is_any = false;
        for follower in self.followers.lock().values_mut() {
            match follower.views.rows.commit() < visible {
                true => is_any = true,
                false => follower.views.time_micros = now_micros,
            }
        }
        is_any
    }

    /// Brings all followed indexes to the newest commit. Indexes that are no longer followed in the
    /// newest catalog are forgotten.
    ///
    /// # Errors
    ///
    /// 57014, errors of the store; the round is repeated by the next call.
    pub fn advance(
        &self,
        store: &Arc<Store>,
        newest_catalog: impl FnOnce() -> Arc<Catalog>,
        (context, cancelled): (&EvalContext, &Arc<AtomicBool>),
    ) -> Result<()> {
        let Some(feed) = self.feed.get() else { return Ok(()) };
        let _round = self.round.lock();
        let catalog = newest_catalog();
        let now = store.view(None);
        feed.wait_for(now.commit(), cancelled)?;
        let changed = feed.take(store, now.commit());
        let groups = self.groups(&catalog, changed.has_gap);
        let round = FollowRound {
            store,
            catalog_table: self.catalog_table,
            now: &now,
            changed: &changed,
            catalog: &catalog,
            context,
            cancelled,
        };
        for group in &groups {
            if let Err(error) = round.advance(group) {
                self.advance_each(&round, group, error)?;
            }
        }
        let entries = store.view(None);
        let mut followers = self.followers.lock();
        for index in groups.iter().flat_map(|group| &group.indexes) {
            if let Some(follower) = followers.get_mut(&index.spec.store_table) {
                follower.views = FollowedViews {
                    rows: now.clone(),
                    entries: entries.clone(),
                    time_micros: now.opened_micros(),
                };
                follower.has_gap = false;
            }
        }
        drop(followers);
        self.advanced.notify_all();
        Ok(())
    }

    /// Advances the indexes of a group one by one, after an error of one of them; those that cannot
    /// be followed are lost.
    fn advance_each(
        &self,
        round: &FollowRound<'_>,
        group: &FollowerGroup,
        error: store::Error,
    ) -> Result<()> {
        if !is_lasting(&error) {
            return Err(error.into());
        }
        for index in &group.indexes {
            let alone = FollowerGroup { indexes: vec![Arc::clone(index)], ..group.clone() };
            let Err(error) = round.advance(&alone) else { continue };
            if !is_lasting(&error) {
                return Err(error.into());
            }
            let is_repeated = !matches!(error, store::Error::SnapshotTooOld);
            let error = Error::from(error);
            tracing::warn!(index = index.name, %error, "an index cannot be followed");
            self.followers.lock().remove(&index.spec.store_table);
            let error = is_repeated.then_some(error.message);
            self.lose(LostIndex { table: group.table, index: index.oid, error });
        }
        Ok(())
    }

    /// Returns the followed indexes of a catalog, and forgets the others. If the round fails, the
    /// next one looks for changed rows in the tables.
    fn groups(&self, catalog: &Catalog, has_gap: bool) -> Vec<FollowerGroup> {
        let mut groups: BTreeMap<(u32, Sequence, bool), FollowerGroup> = BTreeMap::new();
        let mut lost = Vec::new();
        self.followers.lock().retain(|store_table, follower| {
            let position = &follower.position;
            let table = catalog.table(position.table);
            let mut indexes = table.iter().flat_map(|table| &table.indexes);
            let Some(index) = indexes.find(|one| one.spec.store_table == *store_table) else {
                return false;
            };
            if !index.is_followed {
                return false;
            }
            if table.is_some_and(|table| table.id != TableId(position.base_table)) {
                let (table, index) = (position.table, position.index);
                lost.push(LostIndex { table, index, error: None });
                return false;
            }
            let before = follower.views.rows.clone();
            let has_gap = follower.has_gap || has_gap;
            let key = (position.base_table, before.commit(), has_gap);
            let group = groups.entry(key).or_insert_with(|| FollowerGroup {
                table: position.table,
                base_table: TableId(position.base_table),
                before,
                has_gap,
                indexes: Vec::new(),
            });
            follower.has_gap = true;
            group.indexes.push(Arc::clone(index));
            true
        });
        lost.into_iter().for_each(|lost| self.lose(lost));
        groups.into_values().collect()
    }
}

/// One round: from the positions of the indexes to the newest commit.
struct FollowRound<'a> {
    store: &'a Arc<Store>,
    catalog_table: TableId,
    now: &'a StatementView,
    changed: &'a ChangedRows,
    catalog: &'a Catalog,
    context: &'a EvalContext,
    cancelled: &'a Arc<AtomicBool>,
}

impl FollowRound<'_> {
    /// Changes the entries of the rows that changed, and the positions, in one transaction.
    fn advance(&self, group: &FollowerGroup) -> store::Result<()> {
        let cancelled = Arc::clone(self.cancelled);
        let options = TransactionOptions { cancelled, ..TransactionOptions::default() };
        let transaction = self.store.begin(options);
        transaction.begin_statement();
        if !self.write_entries(group, &transaction)? {
            return Ok(());
        }
        let position = |index: &Arc<Index>| IndexPosition {
            table: group.table,
            index: index.oid,
            base_table: group.base_table.0,
            store_table: index.spec.store_table.0,
            sequence: self.now.commit().0,
            unknown: UnknownFields::default(),
        };
        let positions = group.indexes.iter().map(|index| position(index).row()).collect();
        transaction.mutate(self.catalog_table, positions)?;
        transaction.commit()?.durable.wait()
    }

    /// Stages the changes of entries; returns whether any row may have changed.
    fn write_entries(
        &self,
        group: &FollowerGroup,
        transaction: &Transaction,
    ) -> store::Result<bool> {
        let observers =
            group.indexes.iter().map(|index| IndexObserver::new(Arc::clone(&index.spec)));
        let observers: Vec<IndexObserver> = observers.collect();
        let before = transaction.reader_of(&group.before, group.base_table)?;
        let after = transaction.reader_of(self.now, group.base_table)?;
        let context = as_owner(self.context, self.catalog, group.table);
        let follow = |rows: &[Vec<u8>]| {
            transaction.check_cancelled()?;
            follow_rows(&observers, (&before, &after), rows, &context, |index, mutations| {
                transaction.mutate(index, mutations)
            })
        };
        if !group.has_gap {
            let Some(rows) = self.changed.rows.get(&group.base_table) else { return Ok(false) };
            rows.chunks(ROWS_AT_ONCE).try_for_each(follow)?;
            return Ok(true);
        }
        let mut any = false;
        let since = (group.base_table, group.before.commit());
        self.store.rows_changed_after(since, self.cancelled, |rows| {
            any = true;
            rows.chunks(ROWS_AT_ONCE).try_for_each(follow)
        })?;
        Ok(any)
    }
}

/// Returns whether an error would be repeated by the next round.
fn is_lasting(error: &store::Error) -> bool {
    use store::Error::{InvalidRequest, KeyTooLong, SnapshotTooOld, Vetoed};
    matches!(error, Vetoed(_) | SnapshotTooOld | InvalidRequest(_) | KeyTooLong { .. })
}
