//! The observer of a table: hooks around what is done to its regions, rows and files.

use crate::cell::CellBatch;
use crate::compaction::CellFilter;
use crate::descriptor::FileId;
use crate::error::Result;
use crate::mutation::Mutation;
use crate::observer::context::{ObserverContext, RegionRef, TableContext};
use crate::observer::hook::{Fate, Flow, Hooks};
use crate::row_mutation::{Condition, RowMutation, Written};
use crate::scan::{Get, Horizon, Scan};

/// What writes store files anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteKind {
    /// A flush of memstores.
    Flush,
    /// A compaction of some files: others may have older versions of the same columns.
    Minor,
    /// A compaction that reads all that is older of its rows.
    Major,
}

/// A flush or a compaction of one family of a region.
#[derive(Debug, Clone, Copy)]
pub struct Rewrite<'a> {
    /// The region.
    pub region: RegionRef<'a>,
    /// Index of the family.
    pub family: u8,
    /// What it is.
    pub kind: RewriteKind,
    /// The files that a compaction puts others in the place of; none for a flush.
    pub inputs: &'a [FileId],
    /// How far back open reads look, and the time by which they expire cells.
    pub horizon: Horizon,
}

/// What a flush or a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Cells read.
    pub cells_in: u64,
    /// Cells written.
    pub cells_out: u64,
    /// Files written.
    pub files_out: u64,
}

/// Where a store file comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOrigin {
    /// A flush.
    Flush,
    /// A compaction.
    Compaction,
    /// A bulk load.
    BulkLoad,
}

/// A store file that is about to become live, or did.
#[derive(Debug, Clone, Copy)]
pub struct StoreFileRef<'a> {
    /// The region.
    pub region: RegionRef<'a>,
    /// Index of the family.
    pub family: u8,
    /// Its name within the family.
    pub file: FileId,
    /// Where it comes from.
    pub origin: FileOrigin,
}

/// A bulk load that is about to be adopted, or was.
#[derive(Debug, Clone, Copy)]
pub struct BulkLoadRef<'a> {
    /// The regions it has files for, in row order.
    pub regions: &'a [RegionRef<'a>],
    /// Its files.
    pub file_count: u64,
    /// The cells in them.
    pub cell_count: u64,
}

/// Code that runs around what is done to a table.
///
/// Every method has a default that does nothing, so an observer names only the hooks it wants; it
/// names them again in [`RegionObserver::hooks`], so that the others cost nothing. The chain of a
/// table runs by priority, lower first, then in the order of attachment.
///
/// # Errors
///
/// What an error does is said at each hook. Where it fails a statement, nothing of the statement is
/// staged, neither its rows nor what observers added, and the transaction may go on. An
/// [`Error::Vetoed`](crate::Error::Vetoed) reaches the client as it is, except that the name of the
/// coprocessor is filled in. Any other error of the coprocessor's own making, a panic and an
/// overrun of the time limit become one that names the coprocessor, and count as failures; see
/// [`CoprocessorLimits`](super::CoprocessorLimits). After something that cannot be undone an error
/// is logged and counted, and nothing more.
///
/// # Threads
///
/// Hooks run on the thread that serves the call, concurrently for different rows, regions and
/// statements. Keep state behind `&self`. No hook runs under a latch of the store; which locks are
/// held is said at each.
#[expect(unused_variables, reason = "the defaults do nothing with what they are told")]
pub trait RegionObserver: Send + Sync {
    /// A short name for logs, errors and system views, for example `index`.
    fn name(&self) -> &str;

    /// The hooks to call; asked once, when the observer is attached. Default: all, which is right
    /// but keeps batches until their commit and measures the time of every call.
    fn hooks(&self) -> Hooks {
        Hooks::ALL
    }

    /// Whether what it does must not be left out: while it is suspended, operations with a hook of
    /// it that could refuse them fail, instead of going on without it. For whoever keeps data right
    /// (indexes, constraints) or hidden.
    fn is_essential(&self) -> bool {
        false
    }

    // Lifecycle.

    /// Before the observer begins to watch a region: it is being attached to the table, or the
    /// region comes from a split or merge. May refuse: then it is not attached, or the regions stay
    /// as they were.
    fn pre_open(&self, context: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        Ok(())
    }

    /// The observer watches a region from now on. Cannot refuse.
    fn post_open(&self, context: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Before the observer ceases to watch a region: it is being detached, or the region was split
    /// or merged, or its table dropped, or the store shuts down. Statements may still be under way.
    /// Cannot refuse.
    fn pre_close(&self, context: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        Ok(())
    }

    /// The observer is not called for statements that begin now. Cannot refuse.
    fn post_close(&self, context: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        Ok(())
    }

    // Flushes, on the thread that flushes: of the background, or of FLUSH, checkpoints, bulk loads.
    // The lock is held that keeps flushes of the region apart; commits go on.

    /// Before the memstores of a region are written. Frozen or not, they may be empty. An error
    /// fails the flush, which is tried again, and counts as a failure: what is not flushed fills
    /// the memory.
    fn pre_flush(&self, context: &TableContext<'_>, region: RegionRef<'_>) -> Result<()> {
        Ok(())
    }

    /// Before the memstore of one family is written. May return a filter, which is then asked about
    /// each cell that would be written, behind those of the observers before. An error as in
    /// [`RegionObserver::pre_flush`].
    fn pre_flush_store(
        &self,
        context: &TableContext<'_>,
        rewrite: &Rewrite<'_>,
    ) -> Result<Option<Box<dyn CellFilter>>> {
        Ok(None)
    }

    /// The files of a flush are live; `done` is the sum over families. Cannot refuse.
    fn post_flush(
        &self,
        context: &TableContext<'_>,
        region: RegionRef<'_>,
        done: &Rewritten,
    ) -> Result<()> {
        Ok(())
    }

    // Compactions, on a thread of the background, with no lock. The files are chosen by then.

    /// Before files are merged. May return a filter, as in [`RegionObserver::pre_flush_store`];
    /// files that are moved or dropped whole are not read, nor are those that a policy keeps as
    /// they are. An error fails the compaction, which rests and is tried again, and counts as a
    /// failure.
    fn pre_compact(
        &self,
        context: &TableContext<'_>,
        rewrite: &Rewrite<'_>,
    ) -> Result<Option<Box<dyn CellFilter>>> {
        Ok(None)
    }

    /// The files of a compaction are live in the place of its inputs. Cannot refuse.
    fn post_compact(
        &self,
        context: &TableContext<'_>,
        rewrite: &Rewrite<'_>,
        done: &Rewritten,
    ) -> Result<()> {
        Ok(())
    }

    // Files.

    /// A new file is written and on disk, and is about to be put into the manifest. An error fails
    /// the flush (tried again with the same file), the compaction or the bulk load (their files are
    /// removed), and counts as a failure. Held: in flushes and bulk loads the lock that keeps
    /// flushes of the region apart.
    fn pre_commit_store_file(
        &self,
        context: &TableContext<'_>,
        file: &StoreFileRef<'_>,
    ) -> Result<()> {
        Ok(())
    }

    /// The file is in the manifest and part of what is read. Cannot refuse.
    fn post_commit_store_file(
        &self,
        context: &TableContext<'_>,
        file: &StoreFileRef<'_>,
    ) -> Result<()> {
        Ok(())
    }

    /// Before the files of a bulk load are adopted, with no lock. The cells go past
    /// [`RegionObserver::pre_batch`]; who must see each of them refuses here.
    fn pre_bulk_load(&self, context: &TableContext<'_>, load: &BulkLoadRef<'_>) -> Result<()> {
        Ok(())
    }

    /// The bulk load is on disk and visible. Cannot refuse.
    fn post_bulk_load(&self, context: &TableContext<'_>, load: &BulkLoadRef<'_>) -> Result<()> {
        Ok(())
    }

    // Reads by clients, endpoints among them. No locks are held, but those that the transaction has
    // taken before. Reads that writes need (of conditions, increments, observers, locked rows) are
    // not observed. An error fails the statement, after the read as well as before.

    /// Before one row is read. May change the get; may bypass, with the row in `row` if it exists.
    fn pre_get(
        &self,
        context: &TableContext<'_>,
        get: &mut Get,
        row: &mut CellBatch,
    ) -> Result<Flow> {
        Ok(Flow::Proceed)
    }

    /// One row was read: `row` has it, or nothing. May change it.
    fn post_get(&self, context: &TableContext<'_>, get: &Get, row: &mut CellBatch) -> Result<()> {
        Ok(())
    }

    /// Before it is looked whether a row exists. May change the get; may bypass with the answer.
    fn pre_exists(&self, context: &TableContext<'_>, get: &mut Get) -> Result<Flow<bool>> {
        Ok(Flow::Proceed)
    }

    /// It was looked whether a row exists. May change the answer.
    fn post_exists(&self, context: &TableContext<'_>, get: &Get, exists: &mut bool) -> Result<()> {
        Ok(())
    }

    /// Before a scan is opened. May change it. Runs once for a scan over all regions, and once in
    /// each page of each region for that of an endpoint.
    fn pre_scanner_open(&self, context: &TableContext<'_>, scan: &mut Scan) -> Result<()> {
        Ok(())
    }

    /// A scan was opened; nothing was read yet.
    fn post_scanner_open(&self, context: &TableContext<'_>, scan: &Scan) -> Result<()> {
        Ok(())
    }

    /// Before a batch of rows is read. May bypass with the next rows in `rows`; none: the scan is
    /// at its end. The scan stays where it is then.
    fn pre_scanner_next(
        &self,
        context: &TableContext<'_>,
        scan: &Scan,
        rows: &mut CellBatch,
    ) -> Result<Flow> {
        Ok(Flow::Proceed)
    }

    /// A batch of rows was read. May leave rows out ([`CellBatch::retain_rows`]) or change them;
    /// those left out do not count towards the limit of the scan, unless rows come in pieces.
    fn post_scanner_next(
        &self,
        context: &TableContext<'_>,
        scan: &Scan,
        rows: &mut CellBatch,
    ) -> Result<()> {
        Ok(())
    }

    /// A scan was closed, at its end or before. Cannot refuse.
    fn post_scanner_close(&self, context: &TableContext<'_>, scan: &Scan) -> Result<()> {
        Ok(())
    }

    // Writes. What is added through `context` is part of the statement.

    /// Before a mutation that writes cells is looked at: its row is not locked yet, unless the
    /// transaction has locked it before. May change anything in it; may bypass: it is left out of
    /// its batch. Not called for what increments and appends write.
    fn pre_put(&self, context: &dyn ObserverContext, mutation: &mut Mutation) -> Result<Flow> {
        Ok(Flow::Proceed)
    }

    /// The same for a mutation that only deletes.
    fn pre_delete(&self, context: &dyn ObserverContext, mutation: &mut Mutation) -> Result<Flow> {
        Ok(Flow::Proceed)
    }

    /// Before a batch is staged: its rows are locked until the end of the transaction, so that what
    /// `context` reads of them can be trusted, and what was expected of them holds. No row comes
    /// twice. May change mutations, but not their rows, and add others. Sees every write of the
    /// table, but for bulk loads.
    ///
    /// # Errors
    ///
    /// Any error rejects the whole batch: nothing of it is staged, neither its rows nor what
    /// observers added.
    fn pre_batch(&self, context: &dyn ObserverContext, batch: &mut [Mutation]) -> Result<()> {
        Ok(())
    }

    /// A batch was committed and applied; the row locks are still held. Not called for what was
    /// rolled back. Cannot refuse.
    fn post_batch(&self, context: &TableContext<'_>, batch: &[Mutation]) -> Result<()> {
        Ok(())
    }

    /// A mutation that writes cells was committed; the row locks are given back. Its record may not
    /// be on disk yet. Cannot refuse.
    fn post_put(&self, context: &TableContext<'_>, mutation: &Mutation) -> Result<()> {
        Ok(())
    }

    /// The same for a mutation that only deletes.
    fn post_delete(&self, context: &TableContext<'_>, mutation: &Mutation) -> Result<()> {
        Ok(())
    }

    /// The last word on a batch for which [`RegionObserver::pre_batch`] was run, by this observer
    /// or by one before it: it was committed, or its statement failed, or it was rolled back. With
    /// no row locks after a commit; else they may be held. Cannot refuse.
    fn post_batch_indispensably(
        &self,
        context: &TableContext<'_>,
        batch: &[Mutation],
        fate: Fate,
    ) -> Result<()> {
        Ok(())
    }

    // Changes that depend on the row. The row is locked until the end of the transaction. What they
    // write comes to pre_batch as puts with the new values.

    /// Before a row mutation with an increment is carried out. May change it; may bypass, with the
    /// new values.
    fn pre_increment(
        &self,
        context: &dyn ObserverContext,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Vec<Written>>> {
        Ok(Flow::Proceed)
    }

    /// A row mutation with an increment was staged. May change what the caller is told of the new
    /// values; the cells stay as they are.
    fn post_increment(
        &self,
        context: &dyn ObserverContext,
        mutation: &RowMutation,
        written: &mut Vec<Written>,
    ) -> Result<()> {
        Ok(())
    }

    /// As [`RegionObserver::pre_increment`], for a row mutation with an append; behind it, if it
    /// has both.
    fn pre_append(
        &self,
        context: &dyn ObserverContext,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Vec<Written>>> {
        Ok(Flow::Proceed)
    }

    /// As [`RegionObserver::post_increment`], for a row mutation with an append.
    fn post_append(
        &self,
        context: &dyn ObserverContext,
        mutation: &RowMutation,
        written: &mut Vec<Written>,
    ) -> Result<()> {
        Ok(())
    }

    /// Before a condition is looked at. May change it and the mutation; may bypass: `None` says
    /// that the condition did not hold.
    fn pre_check_and_mutate(
        &self,
        context: &dyn ObserverContext,
        condition: &mut Condition,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Option<Vec<Written>>>> {
        Ok(Flow::Proceed)
    }

    /// The condition did not hold (`None`), or the mutation was staged. May change what the caller
    /// is told.
    fn post_check_and_mutate(
        &self,
        context: &dyn ObserverContext,
        condition: &Condition,
        result: &mut Option<Vec<Written>>,
    ) -> Result<()> {
        Ok(())
    }
}
