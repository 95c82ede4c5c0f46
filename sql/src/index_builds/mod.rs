//! Index builds with concurrent writers: their stored state, and the progress of running ones.
//!
//! A build has a row in the catalog table under [`BUILDS_PREFIX`]. The transaction that creates
//! the index writes it, those that add entries advance it, and the one that makes the index usable
//! deletes it. So a build that a crash interrupted resumes after the last committed entries
//! ([`Session::build_due`](crate::session::Session::build_due)).
//!
//! One session at a time has a build, by its [`BuildClaim`]. An index whose build failed and that
//! could not be dropped either, because the disk was full, is dropped by the server later. After a
//! crash before that the build resumes.

pub mod followers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coprocessors::index::BuildProgress;
use parking_lot::Mutex;
use store::codec::tagged::UnknownFields;
use store::{Mutation, TableId};

use crate::catalog::record::{encode, object_key};

/// Key prefix of index builds in the catalog; the number of the index follows.
pub const BUILDS_PREFIX: &[u8] = b"i";

/// Stored state of a build.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexBuild {
    /// Number of the table.
    pub table: u32,
    /// Number of the index.
    pub index: u32,
    /// Number of the index that it will replace.
    pub replaces: Option<u32>,
    /// Id of the table in the store, when the build began.
    pub base_table: u32,
    /// Id of the index in the store, when the build began.
    pub store_table: u32,
    /// First row of the table whose entry may be missing.
    pub next_row: Vec<u8>,
    /// Number of rows before it.
    pub row_count: u64,
    /// Error that ended the build.
    pub error: Option<String>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

store::tagged_fields!(IndexBuild {
    1 table, 2 index, 3 replaces, 4 base_table, 5 store_table, 6 next_row, 7 row_count, 8 error,
} unknown);

impl IndexBuild {
    /// Creates the state of a build that begins.
    pub fn new(
        (table, base_table): (u32, TableId),
        (index, store_table): (u32, TableId),
    ) -> IndexBuild {
        IndexBuild {
            table,
            index,
            replaces: None,
            base_table: base_table.0,
            store_table: store_table.0,
            next_row: Vec::new(),
            row_count: 0,
            error: None,
            unknown: UnknownFields::default(),
        }
    }

    /// Returns the state at the begin of the build, if table or index have other ids in the store:
    /// their rows were rewritten since.
    #[must_use]
    pub fn for_stores(self, base_table: TableId, store_table: TableId) -> IndexBuild {
        if (self.base_table, self.store_table) == (base_table.0, store_table.0) {
            return self;
        }
        let begun = IndexBuild::new((self.table, base_table), (self.index, store_table));
        IndexBuild { replaces: self.replaces, ..begun }
    }

    /// Returns the put of its row in the catalog table.
    pub fn row(&self) -> Mutation {
        Mutation::new(object_key(BUILDS_PREFIX, self.index)).put(0, Vec::new(), encode(self))
    }

    /// Returns the delete of the row of an index.
    pub fn delete(index: u32) -> Mutation {
        Mutation::new(object_key(BUILDS_PREFIX, index)).delete_row()
    }
}

/// Running build, for system views.
#[derive(Debug)]
pub struct RunningBuild {
    /// Number of the session.
    pub session: i32,
    /// Number of the table.
    pub table: u32,
    /// Number of the index.
    pub index: u32,
    /// Command in `pg_stat_progress_create_index`.
    pub command: &'static str,
    /// Estimated number of rows of the table.
    pub rows_total: u64,
    /// Its progress.
    pub progress: BuildProgress,
}

/// The running builds, by index, and the indexes to drop.
#[derive(Debug, Default)]
pub struct IndexBuilds {
    running: Mutex<BTreeMap<u32, Arc<RunningBuild>>>,
    abandoned: Mutex<BTreeSet<u32>>,
}

/// Exclusive right to build an index; dropping it ends it.
pub struct BuildClaim {
    builds: Arc<IndexBuilds>,
    build: Arc<RunningBuild>,
}

impl IndexBuilds {
    /// Claims a build; `None` if another session has it.
    pub fn claim(self: &Arc<IndexBuilds>, build: RunningBuild) -> Option<BuildClaim> {
        let build = Arc::new(build);
        let mut running = self.running.lock();
        if running.contains_key(&build.index) {
            return None;
        }
        running.insert(build.index, Arc::clone(&build));
        Some(BuildClaim { builds: Arc::clone(self), build })
    }

    /// Returns the running builds.
    pub fn all(&self) -> Vec<Arc<RunningBuild>> {
        self.running.lock().values().cloned().collect()
    }

    /// Returns whether a session builds an index.
    pub fn is_running(&self, index: u32) -> bool {
        self.running.lock().contains_key(&index)
    }

    /// Records that an index is to be dropped.
    pub fn abandon(&self, index: u32) {
        self.abandoned.lock().insert(index);
    }

    /// Returns whether an index is to be dropped.
    pub fn is_abandoned(&self, index: u32) -> bool {
        self.abandoned.lock().contains(&index)
    }

    /// Records that an index was dropped.
    pub fn note_dropped(&self, index: u32) {
        self.abandoned.lock().remove(&index);
    }
}

impl BuildClaim {
    /// Returns the progress of the build.
    pub fn progress(&self) -> &BuildProgress {
        &self.build.progress
    }
}

impl Drop for BuildClaim {
    fn drop(&mut self) {
        self.builds.running.lock().remove(&self.build.index);
    }
}
