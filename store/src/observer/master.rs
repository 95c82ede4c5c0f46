//! The observer of what is defined and ordered for whole tables: what HBase's master does.

use std::path::Path;

use crate::descriptor::{TableDescriptor, TableId};
use crate::error::Result;
use crate::observer::context::{HookContext, RegionRef};
use crate::observer::hook::Hooks;
use crate::observer::region::{RewriteKind, Rewritten};

/// Code that runs around the definition of tables and what is ordered for them, for all tables.
///
/// Errors, threads and order are those of [`RegionObserver`](super::RegionObserver). Hooks before
/// something run on the caller's thread, before any lock is taken if nothing else is said, and an
/// error fails the call; hooks after it run only if it was done, and cannot refuse.
#[expect(unused_variables, reason = "the defaults do nothing with what they are told")]
pub trait MasterObserver: Send + Sync {
    /// A short name for logs, errors and system views.
    fn name(&self) -> &str;

    /// The hooks to call; asked once, when the observer is attached. Default: all.
    fn hooks(&self) -> Hooks {
        Hooks::ALL
    }

    /// Whether what it watches fails while it is suspended, instead of going on without it.
    fn is_essential(&self) -> bool {
        false
    }

    /// Before a table is created. May change the descriptor, but for the id.
    fn pre_create_table(
        &self,
        context: &HookContext<'_>,
        descriptor: &mut TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// A table was created; it is durable and can be used.
    fn post_create_table(
        &self,
        context: &HookContext<'_>,
        descriptor: &TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// Before the settings of a table are replaced. May change what they are to be, but for the id.
    fn pre_alter_table(
        &self,
        context: &HookContext<'_>,
        before: &TableDescriptor,
        after: &mut TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// The settings of a table were replaced.
    fn post_alter_table(
        &self,
        context: &HookContext<'_>,
        before: &TableDescriptor,
        after: &TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// Before a table is dropped.
    fn pre_drop_table(
        &self,
        context: &HookContext<'_>,
        descriptor: &TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// A table was dropped.
    fn post_drop_table(
        &self,
        context: &HookContext<'_>,
        descriptor: &TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// Before the memstores of a table are flushed because somebody asked for it.
    fn pre_flush_table(&self, context: &HookContext<'_>, table: TableId) -> Result<()> {
        Ok(())
    }

    /// They were flushed.
    fn post_flush_table(
        &self,
        context: &HookContext<'_>,
        table: TableId,
        done: &Rewritten,
    ) -> Result<()> {
        Ok(())
    }

    /// Before the files of a table are compacted because somebody asked for it.
    fn pre_compact_table(
        &self,
        context: &HookContext<'_>,
        table: TableId,
        kind: RewriteKind,
    ) -> Result<()> {
        Ok(())
    }

    /// They were compacted.
    fn post_compact_table(
        &self,
        context: &HookContext<'_>,
        table: TableId,
        kind: RewriteKind,
        done: &Rewritten,
    ) -> Result<()> {
        Ok(())
    }

    /// Before a checkpoint (a copy of the store at one commit) is made.
    fn pre_checkpoint(&self, context: &HookContext<'_>, directory: &Path) -> Result<()> {
        Ok(())
    }

    /// The checkpoint is whole.
    fn post_checkpoint(&self, context: &HookContext<'_>, directory: &Path) -> Result<()> {
        Ok(())
    }

    /// Before a region is cut in two at a row, by policy or by statement. An error keeps it whole;
    /// a policy asks again later. Held, here and in the three hooks below: the lock of who defines
    /// tables and regions, so that the hook must not do that.
    fn pre_split(
        &self,
        context: &HookContext<'_>,
        region: RegionRef<'_>,
        split_row: &[u8],
    ) -> Result<()> {
        Ok(())
    }

    /// A region was cut in two, and its daughters serve its rows.
    fn post_split(
        &self,
        context: &HookContext<'_>,
        parent: RegionRef<'_>,
        daughters: [RegionRef<'_>; 2],
    ) -> Result<()> {
        Ok(())
    }

    /// Before neighbours, in row order, become one region. An error keeps them apart.
    fn pre_merge(&self, context: &HookContext<'_>, regions: &[RegionRef<'_>]) -> Result<()> {
        Ok(())
    }

    /// Neighbours became one region, which serves their rows.
    fn post_merge(
        &self,
        context: &HookContext<'_>,
        regions: &[RegionRef<'_>],
        merged: RegionRef<'_>,
    ) -> Result<()> {
        Ok(())
    }
}
