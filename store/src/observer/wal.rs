//! The observer of the log.

use crate::descriptor::{Durability, RegionId, TableId};
use crate::error::Result;
use crate::observer::context::HookContext;
use crate::observer::hook::Hooks;
use crate::wal::{Cells, CommitClock};

/// What a commit writes to one region.
#[derive(Debug, Clone, Copy)]
pub struct WalEdit<'a> {
    /// The table.
    pub table: TableId,
    /// The region.
    pub region: RegionId,
    /// Rows among the cells.
    pub row_count: u64,
    /// The cells, without place and time: `cells.of(clock)` reads them.
    pub cells: &'a Cells,
}

/// A commit that is about to get its record, or has it.
#[derive(Debug, Clone, Copy)]
pub struct WalCommit<'a> {
    /// What it waits for.
    pub durability: Durability,
    /// What it writes.
    pub edits: &'a [WalEdit<'a>],
}

/// Goes on from one segment of the log to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalRoll {
    /// Number of the segment that is not written any more.
    pub closed: u32,
    /// Number of the segment that is written now.
    pub opened: u32,
}

/// Code that runs around the writes of the log, for all tables.
///
/// Errors, threads and order are those of [`RegionObserver`](super::RegionObserver). There is no
/// hook before a roll: it cannot be refused, and happens under the lock of the log.
#[expect(unused_variables, reason = "the defaults do nothing with what they are told")]
pub trait WalObserver: Send + Sync {
    /// A short name for logs, errors and system views.
    fn name(&self) -> &str;

    /// The hooks to call; asked once, when the observer is attached. Default: all.
    fn hooks(&self) -> Hooks {
        Hooks::ALL
    }

    /// Whether commits fail while it is suspended, instead of going on without it.
    fn is_essential(&self) -> bool {
        false
    }

    /// Before a commit gets its place and its record, also one that skips the log. The row locks of
    /// the transaction are held. An error fails the commit: nothing of it is written.
    fn pre_wal_append(&self, context: &HookContext<'_>, commit: &WalCommit<'_>) -> Result<()> {
        Ok(())
    }

    /// The commit has its place, and its cells are applied; the record may not be on disk yet. Row
    /// locks may still be held. Cannot refuse.
    fn post_wal_append(
        &self,
        context: &HookContext<'_>,
        commit: &WalCommit<'_>,
        place: CommitClock,
    ) -> Result<()> {
        Ok(())
    }

    /// The log went on to another segment. On the thread that wrote it, often that of a commit,
    /// with no lock. Two rolls may come as one. Cannot refuse.
    fn post_wal_roll(&self, context: &HookContext<'_>, roll: WalRoll) -> Result<()> {
        Ok(())
    }
}
