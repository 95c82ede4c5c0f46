//! Observers of a table: hooks around operations on its regions, rows and files.

use crate::cell::CellBatch;
use crate::compaction::CellFilter;
use crate::descriptor::FileId;
use crate::error::Result;
use crate::mutation::Mutation;
use crate::observer::context::{ObserverContext, RegionRef, TableContext};
use crate::observer::hook::{BatchOutcome, Flow, Hooks};
use crate::row_mutation::{Condition, RowMutation, WrittenValue};
use crate::scan::{Get, Horizon, Scan};

/// Kind of operation that rewrites cells to store files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteKind {
    /// A flush of memstores.
    Flush,
    /// A compaction of some files: other files may have older versions of the same columns.
    Minor,
    /// A compaction that reads all older cells of its rows.
    Major,
}

/// A flush or a compaction of one family of a region.
#[derive(Debug, Clone, Copy)]
pub struct Rewrite<'a> {
    /// The region.
    pub region: RegionRef<'a>,
    /// Index of the family.
    pub family: u8,
    /// Kind of the operation.
    pub kind: RewriteKind,
    /// The files that a compaction replaces; none for a flush.
    pub inputs: &'a [FileId],
    /// The oldest snapshot and time of open reads.
    pub horizon: Horizon,
}

/// Result of a flush or a compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Cells read.
    pub cells_in: u64,
    /// Cells written.
    pub cells_out: u64,
    /// Files written.
    pub files_out: u64,
}

/// Origin of a store file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOrigin {
    /// A flush.
    Flush,
    /// A compaction.
    Compaction,
    /// A bulk load.
    BulkLoad,
}

/// A store file, before or after it becomes live.
#[derive(Debug, Clone, Copy)]
pub struct StoreFileRef<'a> {
    /// The region.
    pub region: RegionRef<'a>,
    /// Index of the family.
    pub family: u8,
    /// Its name within the family.
    pub file: FileId,
    /// Its origin.
    pub origin: FileOrigin,
}

/// A bulk load, before or after it is adopted.
#[derive(Debug, Clone, Copy)]
pub struct BulkLoadRef<'a> {
    /// The regions that it has files for, in row order.
    pub regions: &'a [RegionRef<'a>],
    /// Number of files.
    pub file_count: u64,
    /// Number of cells in them.
    pub cell_count: u64,
}

/// User code that runs around operations on a table.
///
/// Every method has a default that does nothing, so an observer implements only the hooks it
/// needs; it declares them in [`RegionObserver::hooks`], so that the others cost nothing. The
/// chain of a table runs by priority, lower first, then in the order of attachment.
///
/// # Errors
///
/// The effect of an error is described at each hook. If it fails a statement, nothing of the
/// statement is staged, neither its rows nor mutations that observers added, and the transaction
/// may continue. An [`Error::Vetoed`](crate::Error::Vetoed) reaches the client unchanged, except
/// that the name of the coprocessor is filled in. Any other error of the coprocessor's own
/// making, a panic and an overrun of the time limit become an error that names the coprocessor,
/// and count as failures; see [`CoprocessorLimits`](super::CoprocessorLimits). After something
/// that cannot be undone an error is only logged and counted.
///
/// # Threads
///
/// Hooks run on the thread that serves the call, concurrently for different rows, regions and
/// statements. Keep state behind `&self`. No hook runs under a latch of the store; the locks that
/// are held are described at each hook.
#[expect(unused_variables, reason = "the defaults do nothing with what they are told")]
pub trait RegionObserver: Send + Sync {
    /// A short name for logs, errors and system views, for example `index`.
    fn name(&self) -> &str;

    /// The hooks to call; queried once, when the observer is attached. Default: all, which is
    /// correct but retains batches until their commit and measures the time of every call.
    fn hooks(&self) -> Hooks {
        Hooks::ALL
    }

    /// True if it must not be skipped: while it is suspended, operations with a hook of it that
    /// could veto them fail, instead of proceeding without it. For observers that keep data
    /// consistent (indexes, constraints) or protected.
    fn is_essential(&self) -> bool {
        false
    }

    // Lifecycle.

    /// Called before the observer begins to observe a region: it is being attached to the table,
    /// or the region results from a split or merge. May veto: then it is not attached, or the
    /// regions stay unchanged.
    fn pre_open(&self, context: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Called when the observer observes a region from now on. Cannot veto.
    fn post_open(&self, context: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Called before the observer ceases to observe a region: it is being detached, or the region
    /// was split or merged, or its table dropped, or the store shuts down. Statements may still
    /// be running. Cannot veto.
    fn pre_close(&self, context: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Called when the observer is no longer called for new statements. Cannot veto.
    fn post_close(&self, context: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        Ok(())
    }

    // Flushes, on the flushing thread: a background thread, or that of FLUSH, checkpoints, bulk
    // loads. The region's flush lock is held; commits continue.

    /// Called before the memstores of a region are written. Frozen or not, they may be empty. An
    /// error fails the flush, which is retried, and counts as a failure: unflushed cells fill the
    /// memory.
    fn pre_flush(&self, context: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Called before the memstore of one family is written. May return a filter, which is then
    /// called for each cell that would be written, after those of earlier observers. Errors as in
    /// [`RegionObserver::pre_flush`].
    fn pre_flush_store(
        &self,
        context: &TableContext<'_>,
        rewrite: &Rewrite<'_>,
    ) -> Result<Option<Box<dyn CellFilter>>> {
        Ok(None)
    }

    /// Called when the files of a flush are live; `done` is the sum over families. Cannot veto.
    fn post_flush(
        &self,
        context: &TableContext<'_>,
        region: RegionRef<'_>,
        done: &Rewritten,
    ) -> Result<()> {
        Ok(())
    }

    // Compactions, on a background thread, with no lock. The files are already selected.

    /// Called before files are merged. May return a filter, as in
    /// [`RegionObserver::pre_flush_store`]; files that are moved or dropped whole are not read,
    /// nor are those that a policy keeps unchanged. An error fails the compaction, which is
    /// retried after a pause, and counts as a failure.
    fn pre_compact(
        &self,
        context: &TableContext<'_>,
        rewrite: &Rewrite<'_>,
    ) -> Result<Option<Box<dyn CellFilter>>> {
        Ok(None)
    }

    /// Called when the files of a compaction have replaced its inputs. Cannot veto.
    fn post_compact(
        &self,
        context: &TableContext<'_>,
        rewrite: &Rewrite<'_>,
        done: &Rewritten,
    ) -> Result<()> {
        Ok(())
    }

    // Files.

    /// Called when a new file is on disk, before it is added to the manifest. An error fails the
    /// flush (retried with the same file), the compaction or the bulk load (their files are
    /// removed), and counts as a failure. In flushes and bulk loads the region's flush lock is
    /// held.
    fn pre_commit_store_file(
        &self,
        context: &TableContext<'_>,
        file: &StoreFileRef<'_>,
    ) -> Result<()> {
        Ok(())
    }

    /// Called when the file is in the manifest and visible to reads. Cannot veto.
    fn post_commit_store_file(
        &self,
        context: &TableContext<'_>,
        file: &StoreFileRef<'_>,
    ) -> Result<()> {
        Ok(())
    }

    /// Called before the files of a bulk load are adopted, with no lock. The cells bypass
    /// [`RegionObserver::pre_batch`]; an observer that must see each of them can veto here.
    fn pre_bulk_load(&self, context: &TableContext<'_>, load: &BulkLoadRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Called when the bulk load is on disk and visible. Cannot veto.
    fn post_bulk_load(&self, context: &TableContext<'_>, load: &BulkLoadRef<'_>) -> Result<()> {
        Ok(())
    }

    // Reads by clients, including those of endpoints. No locks are held except those that the
    // transaction took before. Reads on behalf of writes (of conditions, increments, observers,
    // locked rows) are not observed. An error fails the statement, in `pre_` and `post_` hooks.

    /// Called before one row is read. May change the get; may bypass, with the row in `row` if it
    /// exists.
    fn pre_get(
        &self,
        context: &TableContext<'_>,
        get: &mut Get,
        row: &mut CellBatch,
    ) -> Result<Flow> {
        Ok(Flow::Proceed)
    }

    /// Called after one row was read into `row`, if it exists. May change it.
    fn post_get(&self, context: &TableContext<'_>, get: &Get, row: &mut CellBatch) -> Result<()> {
        Ok(())
    }

    /// Called before an existence check. May change the get; may bypass with the answer.
    fn pre_exists(&self, context: &TableContext<'_>, get: &mut Get) -> Result<Flow<bool>> {
        Ok(Flow::Proceed)
    }

    /// Called after an existence check. May change the answer.
    fn post_exists(&self, context: &TableContext<'_>, get: &Get, exists: &mut bool) -> Result<()> {
        Ok(())
    }

    /// Called before a scan is opened. May change it. Runs once for a scan over all regions, and
    /// once in each page of each region for that of an endpoint.
    fn pre_scanner_open(&self, context: &TableContext<'_>, scan: &mut Scan) -> Result<()> {
        Ok(())
    }

    /// Called after a scan was opened; nothing was read yet.
    fn post_scanner_open(&self, context: &TableContext<'_>, scan: &Scan) -> Result<()> {
        Ok(())
    }

    /// Called before a batch of rows is read. May bypass with the next rows in `rows`; if there
    /// are none, the scan ends. A bypass does not move the scan.
    fn pre_scanner_next(
        &self,
        context: &TableContext<'_>,
        scan: &Scan,
        rows: &mut CellBatch,
    ) -> Result<Flow> {
        Ok(Flow::Proceed)
    }

    /// Called after a batch of rows was read. May remove rows ([`CellBatch::retain_rows`]) or
    /// change them; removed rows do not count towards the limit of the scan, unless it returns
    /// partial rows.
    fn post_scanner_next(
        &self,
        context: &TableContext<'_>,
        scan: &Scan,
        rows: &mut CellBatch,
    ) -> Result<()> {
        Ok(())
    }

    /// Called after a scan was closed, at its end or before. Cannot veto.
    fn post_scanner_close(&self, context: &TableContext<'_>, scan: &Scan) -> Result<()> {
        Ok(())
    }

    // Writes. Mutations added through `context` are part of the statement.

    /// Called before a mutation that writes cells is processed: its row is not locked yet, unless
    /// the transaction has locked it before. May change anything in it; may bypass: it is removed
    /// from its batch. Not called for the puts of increments and appends.
    fn pre_put(&self, context: &dyn ObserverContext, mutation: &mut Mutation) -> Result<Flow> {
        Ok(Flow::Proceed)
    }

    /// As [`RegionObserver::pre_put`], for a mutation that only deletes.
    fn pre_delete(&self, context: &dyn ObserverContext, mutation: &mut Mutation) -> Result<Flow> {
        Ok(Flow::Proceed)
    }

    /// Called before a batch is staged: its rows are locked until the end of the transaction, so
    /// that reads of them through `context` are reliable, and their expectations hold. No row
    /// occurs twice. May change mutations, but not their rows, and add others. Sees every write
    /// of the table except bulk loads.
    ///
    /// # Errors
    ///
    /// Any error rejects the whole batch: nothing of it is staged, neither its rows nor mutations
    /// that observers added.
    fn pre_batch(&self, context: &dyn ObserverContext, batch: &mut [Mutation]) -> Result<()> {
        Ok(())
    }

    /// Called after a batch was committed and applied; the row locks are still held. Not called
    /// for batches that were rolled back. Cannot veto.
    fn post_batch(&self, context: &TableContext<'_>, batch: &[Mutation]) -> Result<()> {
        Ok(())
    }

    /// Called after a mutation that writes cells was committed; the row locks are released. Its
    /// record may not be on disk yet. Cannot veto.
    fn post_put(&self, context: &TableContext<'_>, mutation: &Mutation) -> Result<()> {
        Ok(())
    }

    /// As [`RegionObserver::post_put`], for a mutation that only deletes.
    fn post_delete(&self, context: &TableContext<'_>, mutation: &Mutation) -> Result<()> {
        Ok(())
    }

    /// Called last for a batch for which [`RegionObserver::pre_batch`] ran, of this observer or
    /// of an earlier one: it was committed, or its statement failed, or it was rolled back. After
    /// a commit no row locks are held; otherwise they may be. Cannot veto.
    fn post_batch_indispensably(
        &self,
        context: &TableContext<'_>,
        batch: &[Mutation],
        fate: BatchOutcome,
    ) -> Result<()> {
        Ok(())
    }

    // Changes that depend on the row. The row is locked until the end of the transaction. Their
    // results are passed to pre_batch as puts of the new values.

    /// Called before a row mutation with an increment is executed. May change it; may bypass,
    /// with the new values.
    fn pre_increment(
        &self,
        context: &dyn ObserverContext,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Vec<WrittenValue>>> {
        Ok(Flow::Proceed)
    }

    /// Called after a row mutation with an increment was staged. May change the values that are
    /// returned to the caller, not the cells.
    fn post_increment(
        &self,
        context: &dyn ObserverContext,
        mutation: &RowMutation,
        written: &mut Vec<WrittenValue>,
    ) -> Result<()> {
        Ok(())
    }

    /// As [`RegionObserver::pre_increment`], for a row mutation with an append; called after it,
    /// if the mutation has both.
    fn pre_append(
        &self,
        context: &dyn ObserverContext,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Vec<WrittenValue>>> {
        Ok(Flow::Proceed)
    }

    /// As [`RegionObserver::post_increment`], for a row mutation with an append.
    fn post_append(
        &self,
        context: &dyn ObserverContext,
        mutation: &RowMutation,
        written: &mut Vec<WrittenValue>,
    ) -> Result<()> {
        Ok(())
    }

    /// Called before a condition is checked. May change it and the mutation; may bypass: `None`
    /// means that the condition did not hold.
    fn pre_check_and_mutate(
        &self,
        context: &dyn ObserverContext,
        condition: &mut Condition,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Option<Vec<WrittenValue>>>> {
        Ok(Flow::Proceed)
    }

    /// Called after the condition did not hold (`None`), or the mutation was staged. May change
    /// the result for the caller.
    fn post_check_and_mutate(
        &self,
        context: &dyn ObserverContext,
        condition: &Condition,
        result: &mut Option<Vec<WrittenValue>>,
    ) -> Result<()> {
        Ok(())
    }
}
