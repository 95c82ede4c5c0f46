//! Change feed: the rows that commits have changed, in commit order, for data that is derived from
//! tables after the commits.
//!
//! ```text
//!   commit --> log --durable--> ChangeFeed --> take(through): rows by table
//!                                   \--------> gap: rows_changed_after(table, sequence)
//! ```
//!
//! Commits are queued in memory, as references to the edits that the log has anyway. A commit whose
//! rows are not known leaves a gap: a bulk load, one before the feed began, and all that are queued
//! when they exceed the limit. The reader then looks for cells with newer sequences in the
//! memstores and in the files that may have any ([`Store::rows_changed_after`]).
//!
//! Rows may be reported that did not change, and the same row repeatedly. No changed row is left
//! out.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ahash::AHashMap;
use parking_lot::{Condvar, Mutex};

use crate::bulk_load::table_copy::cells_of;
use crate::cell::Sequence;
use crate::descriptor::{RowRange, TableId};
use crate::error::{Error, Result};
use crate::scan::merge::Cursor;
use crate::store::Store;
use crate::transaction::StatementView;
use crate::wal::{CommitClock, RegionEdit, WalFollower};

/// Interval at which a waiter checks for cancellation.
const CANCEL_POLL: Duration = Duration::from_millis(50);
/// Number of rows that are reported together.
const ROWS_AT_ONCE: usize = 1_000;

/// Feed of the rows that commits have changed; see the module.
pub struct ChangeFeed {
    state: Mutex<FeedState>,
    advanced: Condvar,
    /// Bytes of queued cells from which the queue is given up.
    bytes_max: usize,
}

struct FeedState {
    /// The last commit that the log has reported.
    told: Sequence,
    queue: VecDeque<QueuedChanges>,
    bytes: usize,
    /// The last commit whose rows are not in the queue.
    gap: Option<Sequence>,
}

struct QueuedChanges {
    sequence: Sequence,
    edits: Arc<Vec<RegionEdit>>,
}

/// Rows that commits have changed.
#[derive(Debug, Default)]
pub struct ChangedRows {
    /// The rows by table, ascending.
    pub rows: AHashMap<TableId, Vec<Vec<u8>>>,
    /// True if there are others, in any table.
    pub has_gap: bool,
}

impl ChangeFeed {
    fn new(bytes_max: usize) -> ChangeFeed {
        let state = FeedState { told: Sequence(0), queue: VecDeque::new(), bytes: 0, gap: None };
        ChangeFeed { state: Mutex::new(state), advanced: Condvar::new(), bytes_max }
    }

    /// Waits until the log has reported the commits up to `sequence`, which are durable.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`].
    pub fn wait_for(&self, sequence: Sequence, cancelled: &AtomicBool) -> Result<()> {
        let mut state = self.state.lock();
        while state.told < sequence {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            self.advanced.wait_for(&mut state, CANCEL_POLL);
        }
        Ok(())
    }

    /// Takes the rows that commits up to `through` have changed since the last call.
    pub fn take(&self, store: &Store, through: Sequence) -> ChangedRows {
        let mut state = self.state.lock();
        let count = state.queue.partition_point(|queued| queued.sequence <= through);
        let taken: Vec<QueuedChanges> = state.queue.drain(..count).collect();
        let bytes: usize = taken.iter().map(QueuedChanges::byte_count).sum();
        state.bytes -= bytes;
        let mut changed = ChangedRows { has_gap: state.gap.is_some(), ..ChangedRows::default() };
        state.gap = state.gap.filter(|gap| *gap > through);
        drop(state);
        for queued in &taken {
            queued.add_to(store, &mut changed);
        }
        for rows in changed.rows.values_mut() {
            rows.sort_unstable();
            rows.dedup();
        }
        changed
    }
}

impl QueuedChanges {
    fn byte_count(&self) -> usize {
        self.edits.iter().map(|edit| edit.cells.byte_count()).sum()
    }

    fn add_to(&self, store: &Store, changed: &mut ChangedRows) {
        let clock = CommitClock { sequence: self.sequence, ..CommitClock::default() };
        for edit in self.edits.iter() {
            let Some(region) = store.engine().region(edit.region) else {
                // It was split since, or dropped.
                changed.has_gap = true;
                continue;
            };
            let rows = changed.rows.entry(region.table()).or_default();
            for cell in edit.cells.of(clock) {
                if rows.last().is_none_or(|last| last.as_slice() != cell.key.row) {
                    rows.push(cell.key.row.to_vec());
                }
            }
        }
    }
}

impl WalFollower for ChangeFeed {
    fn follow(&self, clock: CommitClock, edits: Option<&Arc<Vec<RegionEdit>>>) {
        let mut state = self.state.lock();
        state.told = clock.sequence;
        match edits {
            Some(edits) => {
                let queued = QueuedChanges { sequence: clock.sequence, edits: Arc::clone(edits) };
                state.bytes += queued.byte_count();
                state.queue.push_back(queued);
                if state.bytes > self.bytes_max {
                    state.queue.clear();
                    state.bytes = 0;
                    state.gap = Some(clock.sequence);
                }
            }
            None => state.gap = Some(clock.sequence),
        }
        self.advanced.notify_all();
    }
}

impl Store {
    /// Returns a view of what is visible now, or of the commits up to a sequence. The caller of the
    /// latter holds a view at that commit or before it.
    pub fn view(&self, at: Option<Sequence>) -> StatementView {
        StatementView::open(self.engine(), at)
    }

    /// Returns a feed of the rows that commits change from now on, whose queue is given up when it
    /// holds more than `bytes_max` bytes of cells. The log is followed until it is closed.
    pub fn follow_changes(&self, bytes_max: usize) -> Arc<ChangeFeed> {
        let feed = Arc::new(ChangeFeed::new(bytes_max));
        let since = self.engine().wal.follow(feed.clone());
        let mut state = feed.state.lock();
        state.told = state.told.max(since.sequence);
        drop(state);
        feed
    }

    /// Reports the rows of a table with cells of commits after `above`, some rows at a time. The
    /// caller holds a snapshot at `above` or before it, so that no such cell was dropped.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`], [`Error::Cancelled`], [`Error::Corrupt`], [`Error::Io`], those of
    /// `take`.
    pub fn rows_changed_after<E: From<Error>>(
        &self,
        (table, above): (TableId, Sequence),
        cancelled: &AtomicBool,
        mut take: impl FnMut(Vec<Vec<u8>>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let table = self.engine().table(table)?;
        let map = Arc::clone(&table.regions());
        let family_count = table.descriptor().families.len();
        let mut views = Vec::new();
        for region in map.all() {
            region.check_whole()?;
            let families = (0..family_count).filter_map(|family| region.view(family));
            let stop = region.stop().map(<[u8]>::to_vec);
            let rows = RowRange { start: region.start().to_vec(), stop };
            views.extend(families.map(|view| (view, rows.clone())));
        }
        for (view, range) in views {
            let mut cells = cells_of(&view, &range, above)?;
            let mut more = ControlFlow::Continue(());
            while more.is_continue() {
                if cancelled.load(Ordering::Relaxed) {
                    return Err(Error::Cancelled.into());
                }
                let mut rows: Vec<Vec<u8>> = Vec::new();
                let mut cell_count = 0;
                more = ControlFlow::Break(());
                cells.walk(&mut |parts, _| {
                    if range.stop.as_deref().is_some_and(|stop| parts.row >= stop) {
                        return false;
                    }
                    cell_count += 1;
                    if rows.len() == ROWS_AT_ONCE || cell_count > 64 * ROWS_AT_ONCE {
                        more = ControlFlow::Continue(());
                        return false;
                    }
                    if parts.sequence > above
                        && rows.last().is_none_or(|last| last.as_slice() != parts.row)
                    {
                        rows.push(parts.row.to_vec());
                    }
                    true
                })?;
                if !rows.is_empty() {
                    take(rows)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cell::CellBatch;
    use crate::descriptor::{FamilyDescriptor, TableDescriptor};
    use crate::env::fault::{FaultEnv, Unsynced};
    use crate::options::Options;
    use crate::scan::Get;
    use crate::transaction::{Mutation, TransactionOptions};

    const TABLE: TableId = TableId(7);

    fn open(env: FaultEnv, holds_recovered_versions: bool) -> Arc<Store> {
        let options =
            Options { env: Arc::new(env), holds_recovered_versions, ..Options::default() };
        Store::open(Path::new("/data"), options).unwrap()
    }

    fn store(env: FaultEnv) -> Arc<Store> {
        let store = open(env, false);
        let descriptor = TableDescriptor::new(TABLE, "t", vec![FamilyDescriptor::new("0")]);
        store.create_table(descriptor).unwrap();
        store
    }

    fn put(store: &Arc<Store>, rows: &[&str], value_bytes: usize) {
        let transaction = store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let put = |row: &&str| Mutation::new(*row).put(0, Vec::new(), vec![b'x'; value_bytes]);
        transaction.mutate(TABLE, rows.iter().map(put).collect()).unwrap();
        transaction.commit().unwrap().durable.wait().unwrap();
    }

    fn take(store: &Store, feed: &ChangeFeed) -> (Vec<String>, bool) {
        let now = store.visible();
        feed.wait_for(now, &AtomicBool::new(false)).unwrap();
        let changed = feed.take(store, now);
        let rows = changed.rows.get(&TABLE).into_iter().flatten();
        let rows = rows.map(|row| String::from_utf8(row.clone()).unwrap());
        (rows.collect(), changed.has_gap)
    }

    fn changed_after(store: &Store, above: Sequence) -> Vec<String> {
        let mut rows = Vec::new();
        let take = |some: Vec<Vec<u8>>| {
            rows.extend(some.into_iter().map(|row| String::from_utf8(row).unwrap()));
            Ok::<(), Error>(())
        };
        store.rows_changed_after((TABLE, above), &AtomicBool::new(false), take).unwrap();
        rows
    }

    #[test]
    fn changed_rows_are_taken_once_and_in_order() {
        let store = store(FaultEnv::new(1));
        put(&store, &["a", "b"], 1);
        let feed = store.follow_changes(1 << 20);
        put(&store, &["d", "c"], 1);
        put(&store, &["d"], 1);
        assert_eq!(take(&store, &feed), (vec!["c".to_owned(), "d".to_owned()], false));
        assert_eq!(take(&store, &feed), (Vec::new(), false));
    }

    #[test]
    fn queue_is_bounded_and_rows_are_found_in_table() {
        let store = store(FaultEnv::new(1));
        put(&store, &["a", "b"], 1);
        store.flush(TABLE).unwrap();
        let view = store.view(None);
        let feed = store.follow_changes(1_000);
        put(&store, &["b", "c"], 2_000);
        store.flush(TABLE).unwrap();
        put(&store, &["d"], 10);
        let (_, has_gap) = take(&store, &feed);
        assert!(has_gap);
        let mut changed = changed_after(&store, view.commit());
        changed.sort();
        assert_eq!(changed, ["b", "c", "d"]);
        put(&store, &["e"], 10);
        assert_eq!(take(&store, &feed), (vec!["e".to_owned()], false));
        assert!(changed_after(&store, store.visible()).is_empty());
    }

    #[test]
    fn versions_that_were_found_at_opening_are_retained() {
        let env = FaultEnv::new(1);
        let before = {
            let store = store(env.clone());
            put(&store, &["a"], 3);
            let before = store.visible();
            put(&store, &["a"], 5);
            before
        };
        let store = open(env.after_crash(Unsynced::Kept), true);
        let length = || {
            store.flush(TABLE).unwrap();
            store.compact(TABLE, true).unwrap();
            let transaction = store.begin(TransactionOptions::default());
            let reader = transaction.reader_of(&store.view(Some(before)), TABLE).unwrap();
            let mut found = CellBatch::new();
            reader.multi_get(&[Get::new("a")], &mut found).unwrap();
            (!found.is_empty()).then(|| found.row(0).value(0, b"").unwrap().len())
        };
        assert_eq!(length(), Some(3));
        let view = store.view(Some(before));
        store.release_recovered_versions();
        put(&store, &["a"], 7);
        assert_eq!(length(), Some(3));
        drop(view);
    }
}
