//! Observers of table definitions and of operations on whole tables (as on HBase's master).

use std::path::Path;

use crate::descriptor::{TableDescriptor, TableId};
use crate::error::Result;
use crate::observer::context::{HookContext, RegionRef};
use crate::observer::hook::Hooks;
use crate::observer::region::{RewriteKind, Rewritten};

/// User code that runs around table definitions and operations on whole tables, for all tables.
///
/// Errors, threads and order are as for [`RegionObserver`](super::RegionObserver). `pre_` hooks
/// run on the caller's thread, before any lock is taken unless stated otherwise, and an error
/// fails the call. `post_` hooks run only if the operation succeeded, and cannot veto.
#[expect(unused_variables, reason = "the defaults do nothing with what they are told")]
pub trait MasterObserver: Send + Sync {
    /// A short name for logs, errors and system views.
    fn name(&self) -> &str;

    /// The hooks to call; queried once, when the observer is attached. Default: all.
    fn hooks(&self) -> Hooks {
        Hooks::ALL
    }

    /// True if observed operations must fail while it is suspended, instead of proceeding without
    /// it.
    fn is_essential(&self) -> bool {
        false
    }

    /// Called before a table is created. May change the descriptor, except the id.
    fn pre_create_table(
        &self,
        context: &HookContext<'_>,
        descriptor: &mut TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// Called after a table was created; it is durable and can be used.
    fn post_create_table(
        &self,
        context: &HookContext<'_>,
        descriptor: &TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// Called before the settings of a table are replaced. May change the new ones, except the
    /// id.
    fn pre_alter_table(
        &self,
        context: &HookContext<'_>,
        before: &TableDescriptor,
        after: &mut TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// Called after the settings of a table were replaced.
    fn post_alter_table(
        &self,
        context: &HookContext<'_>,
        before: &TableDescriptor,
        after: &TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// Called before a table is dropped.
    fn pre_drop_table(
        &self,
        context: &HookContext<'_>,
        descriptor: &TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// Called after a table was dropped.
    fn post_drop_table(
        &self,
        context: &HookContext<'_>,
        descriptor: &TableDescriptor,
    ) -> Result<()> {
        Ok(())
    }

    /// Called before an explicit flush of a table's memstores.
    fn pre_flush_table(&self, context: &HookContext<'_>, table: TableId) -> Result<()> {
        Ok(())
    }

    /// Called after that flush.
    fn post_flush_table(
        &self,
        context: &HookContext<'_>,
        table: TableId,
        done: &Rewritten,
    ) -> Result<()> {
        Ok(())
    }

    /// Called before an explicit compaction of a table's files.
    fn pre_compact_table(
        &self,
        context: &HookContext<'_>,
        table: TableId,
        kind: RewriteKind,
    ) -> Result<()> {
        Ok(())
    }

    /// Called after that compaction.
    fn post_compact_table(
        &self,
        context: &HookContext<'_>,
        table: TableId,
        kind: RewriteKind,
        done: &Rewritten,
    ) -> Result<()> {
        Ok(())
    }

    /// Called before a checkpoint (a copy of the store at one commit) is made.
    fn pre_checkpoint(&self, context: &HookContext<'_>, directory: &Path) -> Result<()> {
        Ok(())
    }

    /// Called after the checkpoint is complete.
    fn post_checkpoint(&self, context: &HookContext<'_>, directory: &Path) -> Result<()> {
        Ok(())
    }

    /// Called before a region is split at a row, by policy or by statement. An error prevents the
    /// split; a policy retries later. The DDL lock of tables and regions is held, here and in the
    /// three hooks below, so the hook must not define tables or regions.
    fn pre_split(
        &self,
        context: &HookContext<'_>,
        region: RegionRef<'_>,
        split_row: &[u8],
    ) -> Result<()> {
        Ok(())
    }

    /// Called after a region was split, and its daughters serve its rows.
    fn post_split(
        &self,
        context: &HookContext<'_>,
        parent: RegionRef<'_>,
        daughters: [RegionRef<'_>; 2],
    ) -> Result<()> {
        Ok(())
    }

    /// Called before neighbouring regions, in row order, are merged. An error prevents the merge.
    fn pre_merge(&self, context: &HookContext<'_>, regions: &[RegionRef<'_>]) -> Result<()> {
        Ok(())
    }

    /// Called after the merge; the merged region serves the rows.
    fn post_merge(
        &self,
        context: &HookContext<'_>,
        regions: &[RegionRef<'_>],
        merged: RegionRef<'_>,
    ) -> Result<()> {
        Ok(())
    }
}
