//! Indexes, and rows of tables, that are newer than snapshots.
//!
//! An index has entries of the rows that its builder has seen. To a snapshot that is older, none of
//! them is there: a transaction at REPEATABLE READ that began before an index was made reads the
//! table, or another index. Likewise the rows of a table that were all written anew (TRUNCATE,
//! REFRESH, ALTER TABLE): the table would be empty to the snapshot, which is an error instead. What
//! each needs of a snapshot is known in memory alone, as no snapshot outlives the process.
//!
//! Source: PostgreSQL's `indcheckxmin`, and the wait of CREATE INDEX CONCURRENTLY for old
//! snapshots. Tables written anew are empty to older snapshots there, but for REFRESH.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::AHashMap;
use arc_swap::ArcSwap;
use store::{Sequence, TableId};

use crate::catalog::Catalog;
use crate::catalog::table::{Index, IndexState, Table};

/// From which commit on an index or a table, by its table of the store, is whole.
type Since = AHashMap<TableId, Sequence>;

/// See the module.
#[derive(Default)]
pub(crate) struct NewRelations {
    /// The highest of all.
    newest: AtomicU64,
    since: ArcSwap<Since>,
}

/// The indexes and tables that a snapshot may not show.
#[derive(Clone)]
pub(crate) struct NewerRelations {
    since: Arc<Since>,
    snapshot: Sequence,
}

impl NewRelations {
    /// Notes the indexes that queries may use by a catalog, and not by the one before it, and the
    /// tables that have their rows elsewhere. `oldest`: the oldest snapshot that is open.
    pub(crate) fn note(
        &self,
        (before, catalog): (&Catalog, &Catalog),
        since: Sequence,
        oldest: Option<Sequence>,
    ) {
        let is_active = |index: &Index| index.state == IndexState::Active;
        let mut new = Vec::new();
        for table in catalog.tables() {
            let old = before.table(table.oid);
            if old.is_some_and(|old| Arc::ptr_eq(old, table)) {
                continue;
            }
            let had = |one: &Index| {
                let mut indexes = old.iter().flat_map(|old| &old.indexes);
                let is_it = |old: &Index| old.spec.store_table == one.spec.store_table;
                indexes.any(|old| is_it(old) && is_active(old))
            };
            let made = table.indexes.iter().filter(|index| is_active(index) && !had(index));
            new.extend(made.map(|index| (index.spec.store_table, since)));
            if old.is_some_and(|old| old.id != table.id) {
                new.push((table.id, since));
            }
        }
        if new.is_empty() {
            return;
        }
        let mut all = Since::clone(&self.since.load());
        all.retain(|_, since| oldest.is_some_and(|oldest| *since > oldest));
        all.extend(new);
        self.since.store(Arc::new(all));
        self.newest.fetch_max(since.0, Ordering::Release);
    }

    /// Returns the indexes and tables that a snapshot may not show; `None`: it shows all.
    pub(crate) fn newer_than(&self, snapshot: Sequence) -> Option<NewerRelations> {
        (snapshot.0 < self.newest.load(Ordering::Acquire))
            .then(|| NewerRelations { since: self.since.load_full(), snapshot })
    }
}

impl NewerRelations {
    fn has(&self, index: &Index) -> bool {
        self.is_newer(index.spec.store_table)
    }

    /// Returns whether the rows of a table were written anew since the snapshot was taken.
    pub(crate) fn has_rows_of(&self, table: &Table) -> bool {
        self.is_newer(table.id)
    }

    fn is_newer(&self, table: TableId) -> bool {
        self.since.get(&table).is_some_and(|since| *since > self.snapshot)
    }

    /// Returns a table as queries of the snapshot are to know it, if it has such indexes.
    pub(crate) fn without(&self, table: &Table) -> Option<Table> {
        if !table.indexes.iter().any(|index| self.has(index)) {
            return None;
        }
        let known = |index: &Arc<Index>| match self.has(index) {
            true => Arc::new(Index { state: IndexState::Building, ..Index::clone(index) }),
            false => Arc::clone(index),
        };
        let indexes = table.indexes.iter().map(known).collect();
        Some(Table { indexes, ..table.clone() })
    }
}
