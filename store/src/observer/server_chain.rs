//! Observers of the whole store, that is, of its log and of its definitions, and the calls of
//! their hooks.

use std::path::Path;
use std::sync::Arc;

use crate::descriptor::{TableDescriptor, TableId};
use crate::env::Env;
use crate::error::Result;
use crate::observer::call_statistics::{CoprocessorScope, CoprocessorStatus};
use crate::observer::chain::{Attached, Chain, ObserverSlot, Runtime};
use crate::observer::context::RegionRef;
use crate::observer::hook::{Hook, Hooks};
use crate::observer::master::MasterObserver;
use crate::observer::region::{RewriteKind, Rewritten};
use crate::observer::wal::{WalCommit, WalObserver, WalRoll};
use crate::options::CoprocessorLimits;
use crate::wal::{CommitClock, RollWatcher};

/// The observers of the log.
pub(crate) type WalChain = Chain<dyn WalObserver>;

/// The observers of the definitions of tables.
type MasterChain = Chain<dyn MasterObserver>;

/// The observers of the log and of the master, and the runtime that all observers of the store
/// share.
pub(crate) struct ServerObservers {
    pub(crate) runtime: Arc<Runtime>,
    wal: ObserverSlot<dyn WalObserver>,
    master: ObserverSlot<dyn MasterObserver>,
}

impl ServerObservers {
    /// Returns an empty set.
    pub(crate) fn new(env: Arc<dyn Env>, limits: CoprocessorLimits) -> ServerObservers {
        let runtime = Arc::new(Runtime { env, limits });
        ServerObservers { runtime, wal: ObserverSlot::default(), master: ObserverSlot::default() }
    }

    /// Replaces the observers of the log.
    pub(crate) fn set_wal(&self, observers: Attached<dyn WalObserver>) -> Result<()> {
        let before = self.wal.chain();
        let place = (CoprocessorScope::Wal, "");
        self.wal.set(Chain::new(place, observers, before.as_deref(), &self.runtime)?);
        Ok(())
    }

    /// Replaces the observers of the master.
    pub(crate) fn set_master(&self, observers: Attached<dyn MasterObserver>) -> Result<()> {
        let before = self.master.chain();
        let place = (CoprocessorScope::Master, "");
        self.master.set(Chain::new(place, observers, before.as_deref(), &self.runtime)?);
        Ok(())
    }

    /// Returns the chain of the log if it observes commits.
    #[inline]
    pub(crate) fn of_commits(&self) -> Option<Arc<WalChain>> {
        self.wal.chain_for(Hooks::of(&[Hook::PreWalAppend, Hook::PostWalAppend]))
    }

    /// Returns the observers of the master.
    pub(crate) fn master(&self) -> Option<Arc<MasterChain>> {
        self.master.chain()
    }

    /// Returns the statistics of all.
    pub(crate) fn status(&self) -> Vec<CoprocessorStatus> {
        let (wal, master) = (self.wal.chain(), self.master.chain());
        let wal = wal.iter().flat_map(|chain| chain.status());
        wal.chain(master.iter().flat_map(|chain| chain.status())).collect()
    }

    /// Resumes the observers with a name; returns whether there are any.
    pub(crate) fn resume(&self, scope: CoprocessorScope, name: &str) -> bool {
        match scope {
            CoprocessorScope::Table(_) => false,
            CoprocessorScope::Wal => self.wal.chain().is_some_and(|chain| chain.resume(name)),
            CoprocessorScope::Master => self.master.chain().is_some_and(|chain| chain.resume(name)),
        }
    }
}

impl RollWatcher for ServerObservers {
    fn rolled(&self, closed: u32, opened: u32) {
        if let Some(chain) = self.wal.chain_for(Hooks::of(&[Hook::PostWalRoll])) {
            chain.notify(Hook::PostWalRoll, |seat, context| {
                seat.observer.post_wal_roll(context, WalRoll { closed, opened })
            });
        }
    }
}

impl WalChain {
    /// Calls `pre_wal_append`.
    pub(crate) fn pre_append(&self, commit: &WalCommit<'_>) -> Result<()> {
        self.call_vetoable(Hook::PreWalAppend, |seat, context| {
            seat.observer.pre_wal_append(context, commit)
        })
    }

    /// Calls `post_wal_append`.
    pub(crate) fn post_append(&self, commit: &WalCommit<'_>, place: CommitClock) {
        self.notify(Hook::PostWalAppend, |seat, context| {
            seat.observer.post_wal_append(context, commit, place)
        });
    }
}

impl MasterChain {
    /// Calls `pre_create_table`.
    pub(crate) fn pre_create_table(&self, descriptor: &mut TableDescriptor) -> Result<()> {
        self.call_vetoable(Hook::PreCreateTable, |seat, context| {
            seat.observer.pre_create_table(context, descriptor)
        })
    }

    /// Calls `post_create_table`.
    pub(crate) fn post_create_table(&self, descriptor: &TableDescriptor) {
        self.notify(Hook::PostCreateTable, |seat, context| {
            seat.observer.post_create_table(context, descriptor)
        });
    }

    /// Calls `pre_alter_table`.
    pub(crate) fn pre_alter_table(
        &self,
        before: &TableDescriptor,
        after: &mut TableDescriptor,
    ) -> Result<()> {
        self.call_vetoable(Hook::PreAlterTable, |seat, context| {
            seat.observer.pre_alter_table(context, before, after)
        })
    }

    /// Calls `post_alter_table`.
    pub(crate) fn post_alter_table(&self, before: &TableDescriptor, after: &TableDescriptor) {
        self.notify(Hook::PostAlterTable, |seat, context| {
            seat.observer.post_alter_table(context, before, after)
        });
    }

    /// Calls `pre_drop_table`.
    pub(crate) fn pre_drop_table(&self, descriptor: &TableDescriptor) -> Result<()> {
        self.call_vetoable(Hook::PreDropTable, |seat, context| {
            seat.observer.pre_drop_table(context, descriptor)
        })
    }

    /// Calls `post_drop_table`.
    pub(crate) fn post_drop_table(&self, descriptor: &TableDescriptor) {
        self.notify(Hook::PostDropTable, |seat, context| {
            seat.observer.post_drop_table(context, descriptor)
        });
    }

    /// Calls `pre_flush_table`.
    pub(crate) fn pre_flush_table(&self, table: TableId) -> Result<()> {
        self.call_vetoable(Hook::PreFlushTable, |seat, context| {
            seat.observer.pre_flush_table(context, table)
        })
    }

    /// Calls `post_flush_table`.
    pub(crate) fn post_flush_table(&self, table: TableId, done: &Rewritten) {
        self.notify(Hook::PostFlushTable, |seat, context| {
            seat.observer.post_flush_table(context, table, done)
        });
    }

    /// Calls `pre_compact_table`.
    pub(crate) fn pre_compact_table(&self, table: TableId, kind: RewriteKind) -> Result<()> {
        self.call_vetoable(Hook::PreCompactTable, |seat, context| {
            seat.observer.pre_compact_table(context, table, kind)
        })
    }

    /// Calls `post_compact_table`.
    pub(crate) fn post_compact_table(&self, table: TableId, kind: RewriteKind, done: &Rewritten) {
        self.notify(Hook::PostCompactTable, |seat, context| {
            seat.observer.post_compact_table(context, table, kind, done)
        });
    }

    /// Calls `pre_checkpoint`.
    pub(crate) fn pre_checkpoint(&self, directory: &Path) -> Result<()> {
        self.call_vetoable(Hook::PreCheckpoint, |seat, context| {
            seat.observer.pre_checkpoint(context, directory)
        })
    }

    /// Calls `post_checkpoint`.
    pub(crate) fn post_checkpoint(&self, directory: &Path) {
        self.notify(Hook::PostCheckpoint, |seat, context| {
            seat.observer.post_checkpoint(context, directory)
        });
    }

    /// Calls `pre_split`.
    pub(crate) fn pre_split(&self, region: RegionRef<'_>, split_row: &[u8]) -> Result<()> {
        self.call_vetoable(Hook::PreSplit, |seat, context| {
            seat.observer.pre_split(context, region, split_row)
        })
    }

    /// Calls `post_split`.
    pub(crate) fn post_split(&self, parent: RegionRef<'_>, daughters: [RegionRef<'_>; 2]) {
        self.notify(Hook::PostSplit, |seat, context| {
            seat.observer.post_split(context, parent, daughters)
        });
    }

    /// Calls `pre_merge`.
    pub(crate) fn pre_merge(&self, regions: &[RegionRef<'_>]) -> Result<()> {
        self.call_vetoable(Hook::PreMerge, |seat, context| {
            seat.observer.pre_merge(context, regions)
        })
    }

    /// Calls `post_merge`.
    pub(crate) fn post_merge(&self, regions: &[RegionRef<'_>], merged: RegionRef<'_>) {
        self.notify(Hook::PostMerge, |seat, context| {
            seat.observer.post_merge(context, regions, merged)
        });
    }
}
