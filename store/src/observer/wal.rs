//! Observers of the write-ahead log: trait and arguments of its hooks.

use crate::descriptor::{Durability, RegionId, TableId};
use crate::error::Result;
use crate::observer::context::HookContext;
use crate::observer::hook::Hooks;
use crate::wal::{Cells, CommitClock};

/// The cells that a commit writes to one region.
#[derive(Debug, Clone, Copy)]
pub struct WalEdit<'a> {
    /// The table.
    pub table: TableId,
    /// The region.
    pub region: RegionId,
    /// Number of distinct rows of the cells.
    pub row_count: u64,
    /// The cells, without sequence and commit time: `cells.of(clock)` reads them.
    pub cells: &'a Cells,
}

/// A commit before or after its record is appended.
#[derive(Debug, Clone, Copy)]
pub struct WalCommit<'a> {
    /// Durability that it waits for.
    pub durability: Durability,
    /// The cells that it writes.
    pub edits: &'a [WalEdit<'a>],
}

/// Roll from one log segment to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalRoll {
    /// Number of the closed segment.
    pub closed: u32,
    /// Number of the new active segment.
    pub opened: u32,
}

/// User code that runs around the writes of the log, for all tables.
///
/// Errors, threads and order are as for [`RegionObserver`](super::RegionObserver). There is no
/// hook before a roll: it cannot be vetoed, and happens under the lock of the log.
#[expect(unused_variables, reason = "the defaults do nothing with what they are told")]
pub trait WalObserver: Send + Sync {
    /// A short name for logs, errors and system views.
    fn name(&self) -> &str;

    /// The hooks to call; queried once, when the observer is attached. Default: all.
    fn hooks(&self) -> Hooks {
        Hooks::ALL
    }

    /// True if commits must fail while it is suspended, instead of proceeding without it.
    fn is_essential(&self) -> bool {
        false
    }

    /// Called before a commit gets its sequence and its record, also if it skips the log. The row
    /// locks of the transaction are held. An error fails the commit: none of it is written.
    fn pre_wal_append(&self, context: &HookContext<'_>, commit: &WalCommit<'_>) -> Result<()> {
        Ok(())
    }

    /// Called when the commit has its sequence and its cells are applied; the record may not be
    /// on disk yet. Row locks may still be held. Cannot veto.
    fn post_wal_append(
        &self,
        context: &HookContext<'_>,
        commit: &WalCommit<'_>,
        place: CommitClock,
    ) -> Result<()> {
        Ok(())
    }

    /// Called after a roll to another segment, on the thread that wrote the log, often that of a
    /// commit, with no lock. Two rolls may be reported as one. Cannot veto.
    fn post_wal_roll(&self, context: &HookContext<'_>, roll: WalRoll) -> Result<()> {
        Ok(())
    }
}
