//! Visibility of new indexes and rewritten tables to older snapshots.
//!
//! An index has entries for the rows that its build has seen. An older snapshot sees none of
//! them: a transaction at REPEATABLE READ that began before the index was built reads the table
//! or another index. Likewise, a table whose rows were all rewritten (TRUNCATE, REFRESH, ALTER
//! TABLE) would be empty to an older snapshot, which is an error instead. The commit from which
//! an index or table is complete is tracked in memory only, as no snapshot outlives the process.
//!
//! Source: PostgreSQL's `indcheckxmin`, and the wait of CREATE INDEX CONCURRENTLY for old
//! snapshots. There, rewritten tables are empty to older snapshots, except after REFRESH.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::AHashMap;
use arc_swap::ArcSwap;
use store::{Sequence, TableId};

use crate::catalog::table::{Index, IndexState, Table};
use crate::catalog::{Catalog, CatalogObject};

/// First commit at which an index or a table is complete, by its store table.
type FirstVisibleCommit = AHashMap<TableId, Sequence>;

/// Recently created indexes and rewritten tables; see the module.
#[derive(Default)]
pub(crate) struct RelationVisibility {
    /// Highest commit in `since`.
    newest: AtomicU64,
    since: ArcSwap<FirstVisibleCommit>,
}

/// Indexes and tables that one snapshot may not see.
#[derive(Clone)]
pub(crate) struct InvisibleRelations {
    since: Arc<FirstVisibleCommit>,
    snapshot: Sequence,
}

impl RelationVisibility {
    /// Records the indexes that a new catalog makes usable, and the tables whose rows have moved
    /// to another store table. `oldest`: the oldest open snapshot.
    pub(crate) fn record(
        &self,
        (before, catalog): (&Catalog, &Catalog),
        since: Sequence,
        oldest: Option<Sequence>,
    ) {
        // The entries of an eventual index show an earlier moment than a snapshot.
        let is_active = |index: &Index| index.state == IndexState::Active && !index.is_followed;
        let mut new = Vec::new();
        for entry in catalog.difference(before) {
            let Some(CatalogObject::Table(table, _)) = catalog.object(&entry) else { continue };
            let old = before.table(table.oid);
            let had = |one: &Index| {
                let mut indexes = old.iter().flat_map(|old| &old.indexes);
                let is_it = |old: &Index| old.spec.store_table == one.spec.store_table;
                indexes.any(|old| is_it(old) && is_active(old))
            };
            let made = table.indexes.iter().filter(|index| is_active(index) && !had(index));
            new.extend(made.map(|index| (index.spec.store_table, since)));
            // Other salt buckets have the same row versions. A new view answers queries of a table.
            let is_new = old.is_none() && table.is_maintained();
            if is_new
                || old.is_some_and(|old| old.id != table.id && !is_salted_otherwise(old, table))
            {
                new.push((table.id, since));
            }
        }
        if new.is_empty() {
            return;
        }
        let mut all = FirstVisibleCommit::clone(&self.since.load());
        all.retain(|_, since| oldest.is_some_and(|oldest| *since > oldest));
        all.extend(new);
        self.since.store(Arc::new(all));
        self.newest.fetch_max(since.0, Ordering::Release);
    }

    /// Returns the indexes and tables that a snapshot may not see; `None`: it sees all.
    pub(crate) fn newer_than(&self, snapshot: Sequence) -> Option<InvisibleRelations> {
        (snapshot.0 < self.newest.load(Ordering::Acquire))
            .then(|| InvisibleRelations { since: self.since.load_full(), snapshot })
    }
}

/// Returns the store tables of the tables whose number of salt buckets has changed, before and
/// after.
pub(crate) fn exchanged_tables(before: &Catalog, catalog: &Catalog) -> Vec<(TableId, TableId)> {
    let entries = catalog.difference(before).into_iter();
    let exchanged = entries.filter_map(|entry| {
        let CatalogObject::Table(table, _) = catalog.object(&entry)? else { return None };
        let old = before.table(table.oid)?;
        is_salted_otherwise(old, table).then_some((old.id, table.id))
    });
    exchanged.collect()
}

fn is_salted_otherwise(old: &Table, table: &Table) -> bool {
    old.layout.salt_buckets != table.layout.salt_buckets
}

impl InvisibleRelations {
    /// Returns the snapshot that does not see them.
    pub(crate) fn snapshot(&self) -> Sequence {
        self.snapshot
    }

    fn has(&self, index: &Index) -> bool {
        self.is_newer(index.spec.store_table)
    }

    /// Returns whether the rows of a table were rewritten after the snapshot was taken.
    pub(crate) fn has_rows_of(&self, table: &Table) -> bool {
        self.is_newer(table.id)
    }

    fn is_newer(&self, table: TableId) -> bool {
        self.since.get(&table).is_some_and(|since| *since > self.snapshot)
    }

    /// Returns the table with newer indexes marked as not usable; `None` if it has none.
    pub(crate) fn without_newer_indexes(&self, table: &Table) -> Option<Table> {
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
