//! Calls of a table's observers, hook by hook.

use crate::cell::CellBatch;
use crate::compaction::CellFilter;
use crate::descriptor::TableId;
use crate::error::Result;
use crate::mutation::{Edit, Mutation};
use crate::observer::call_statistics::CoprocessorScope;
use crate::observer::chain::{Chain, Seat};
use crate::observer::context::{
    Attachment, Caller, HookContext, ObservedTransaction, RegionRef, TableContext, WriteContext,
};
use crate::observer::filters::{Filters, MonitoredFilter};
use crate::observer::hook::{BatchOutcome, Flow, Hook, Hooks};
use crate::observer::region::{BulkLoadRef, RegionObserver, Rewrite, Rewritten, StoreFileRef};
use crate::row_mutation::{Condition, RowChange, RowMutation, WrittenValue};
use crate::scan::{Get, Scan};

/// The observers of a table.
pub(crate) type RegionChain = Chain<dyn RegionObserver>;

/// Origin of a write that observers see.
#[derive(Clone, Copy)]
pub(crate) struct Write<'a> {
    /// The transaction.
    pub(crate) transaction: &'a dyn ObservedTransaction,
    /// The coprocessor that added it, if any.
    pub(crate) caller: Option<&'a Caller<'a>>,
    /// The attachment of the write.
    pub(crate) attachment: Option<Attachment<'a>>,
}

impl RegionChain {
    fn table(&self) -> TableId {
        match self.scope() {
            CoprocessorScope::Table(table) => table,
            // The chain of a table is made with its id.
            CoprocessorScope::Wal | CoprocessorScope::Master => TableId(0),
        }
    }

    /// Calls `code` with the context of a write for one observer.
    fn in_write<T>(
        &self,
        write: Write<'_>,
        (seat, hook): (&Seat<dyn RegionObserver>, &HookContext<'_>),
        code: impl FnOnce(&dyn RegionObserver, &WriteContext<'_>) -> T,
    ) -> T {
        let caller = Caller {
            coprocessor: &seat.warden.name,
            table_name: &self.table_name,
            behind: write.caller,
            attachment: write.attachment,
        };
        let table = self.table();
        let context = WriteContext { table, transaction: write.transaction, caller, hook };
        code(&*seat.observer, &context)
    }

    fn ask_table(
        &self,
        hook: Hook,
        mut code: impl FnMut(&dyn RegionObserver, &TableContext<'_>) -> Result<()>,
    ) -> Result<()> {
        self.call_vetoable(hook, |seat, context| {
            code(&*seat.observer, &TableContext::new(self.table(), context))
        })
    }

    fn tell_table(
        &self,
        hook: Hook,
        mut code: impl FnMut(&dyn RegionObserver, &TableContext<'_>) -> Result<()>,
    ) {
        self.notify(hook, |seat, context| {
            code(&*seat.observer, &TableContext::new(self.table(), context))
        });
    }

    /// Calls `pre_open` for a region.
    pub(crate) fn pre_open(&self, region: RegionRef<'_>) -> Result<()> {
        self.ask_table(Hook::PreOpen, |observer, context| observer.pre_open(context, region))
    }

    /// Calls `post_open` for a region.
    pub(crate) fn post_open(&self, region: RegionRef<'_>) {
        self.tell_table(Hook::PostOpen, |observer, context| observer.post_open(context, region));
    }

    /// Calls `pre_close` for a region.
    pub(crate) fn pre_close(&self, region: RegionRef<'_>) {
        self.tell_table(Hook::PreClose, |observer, context| observer.pre_close(context, region));
    }

    /// Calls `post_close` for a region.
    pub(crate) fn post_close(&self, region: RegionRef<'_>) {
        self.tell_table(Hook::PostClose, |observer, context| observer.post_close(context, region));
    }

    /// Calls `pre_flush`.
    pub(crate) fn pre_flush(&self, region: RegionRef<'_>) -> Result<()> {
        self.ask_table(Hook::PreFlush, |observer, context| observer.pre_flush(context, region))
    }

    /// Calls `pre_flush_store` and returns the filters.
    pub(crate) fn pre_flush_store(
        &self,
        rewrite: &Rewrite<'_>,
    ) -> Result<Option<Box<dyn CellFilter>>> {
        self.filters(Hook::PreFlushStore, |observer, context| {
            observer.pre_flush_store(context, rewrite)
        })
    }

    /// Calls `post_flush`.
    pub(crate) fn post_flush(&self, region: RegionRef<'_>, done: &Rewritten) {
        self.tell_table(Hook::PostFlush, |observer, context| {
            observer.post_flush(context, region, done)
        });
    }

    /// Calls `pre_compact` and returns the filters.
    pub(crate) fn pre_compact(&self, rewrite: &Rewrite<'_>) -> Result<Option<Box<dyn CellFilter>>> {
        self.filters(Hook::PreCompact, |observer, context| observer.pre_compact(context, rewrite))
    }

    /// Calls `post_compact`.
    pub(crate) fn post_compact(&self, rewrite: &Rewrite<'_>, done: &Rewritten) {
        self.tell_table(Hook::PostCompact, |observer, context| {
            observer.post_compact(context, rewrite, done)
        });
    }

    fn filters(
        &self,
        hook: Hook,
        mut code: impl FnMut(
            &dyn RegionObserver,
            &TableContext<'_>,
        ) -> Result<Option<Box<dyn CellFilter>>>,
    ) -> Result<Option<Box<dyn CellFilter>>> {
        let mut filters = Vec::new();
        self.call_vetoable(hook, |seat, context| {
            let context = TableContext::new(self.table(), context);
            let filter = code(&*seat.observer, &context)?;
            filters.extend(filter.map(|filter| MonitoredFilter::new(filter, &seat.warden, hook)));
            Ok(())
        })?;
        Ok(match filters.is_empty() {
            true => None,
            false => Some(Box::new(Filters(filters))),
        })
    }

    /// Calls `pre_commit_store_file`.
    pub(crate) fn pre_commit_store_file(&self, file: &StoreFileRef<'_>) -> Result<()> {
        self.ask_table(Hook::PreCommitStoreFile, |observer, context| {
            observer.pre_commit_store_file(context, file)
        })
    }

    /// Calls `post_commit_store_file`.
    pub(crate) fn post_commit_store_file(&self, file: &StoreFileRef<'_>) {
        self.tell_table(Hook::PostCommitStoreFile, |observer, context| {
            observer.post_commit_store_file(context, file)
        });
    }

    /// Calls `pre_bulk_load`.
    pub(crate) fn pre_bulk_load(&self, load: &BulkLoadRef<'_>) -> Result<()> {
        self.ask_table(Hook::PreBulkLoad, |observer, context| observer.pre_bulk_load(context, load))
    }

    /// Calls `post_bulk_load`.
    pub(crate) fn post_bulk_load(&self, load: &BulkLoadRef<'_>) {
        self.tell_table(Hook::PostBulkLoad, |observer, context| {
            observer.post_bulk_load(context, load)
        });
    }

    /// Reads a row with the hooks around it, and appends it to `out`; returns whether it exists.
    pub(crate) fn around_get(
        &self,
        get: &Get,
        out: &mut CellBatch,
        read: impl FnOnce(&Get, &mut CellBatch) -> Result<bool>,
    ) -> Result<bool> {
        // Observers see whole values.
        let mut get = Get { sections: None, ..get.clone() };
        let mut row = CellBatch::new();
        if self.pre_get(&mut get, &mut row)? == Flow::Proceed {
            row.clear();
            read(&get, &mut row)?;
            self.post_get(&get, &mut row)?;
        }
        // A get is of one row, regardless of the observers.
        row.truncate(1);
        out.append(&row);
        Ok(!row.is_empty())
    }

    /// Checks the existence of a row with the hooks around it.
    pub(crate) fn around_exists(
        &self,
        get: &Get,
        look: impl FnOnce(&Get) -> Result<bool>,
    ) -> Result<bool> {
        let mut get = get.clone();
        match self.pre_exists(&mut get)? {
            Flow::Bypass(exists) => Ok(exists),
            Flow::Proceed => {
                let mut exists = look(&get)?;
                self.post_exists(&get, &mut exists)?;
                Ok(exists)
            }
        }
    }

    fn pre_get(&self, get: &mut Get, row: &mut CellBatch) -> Result<Flow> {
        self.ask_until(Hook::PreGet, |seat, context| {
            seat.observer.pre_get(&TableContext::new(self.table(), context), get, row)
        })
    }

    fn post_get(&self, get: &Get, row: &mut CellBatch) -> Result<()> {
        self.ask_table(Hook::PostGet, |observer, context| observer.post_get(context, get, row))
    }

    fn pre_exists(&self, get: &mut Get) -> Result<Flow<bool>> {
        self.ask_until(Hook::PreExists, |seat, context| {
            seat.observer.pre_exists(&TableContext::new(self.table(), context), get)
        })
    }

    fn post_exists(&self, get: &Get, exists: &mut bool) -> Result<()> {
        self.ask_table(Hook::PostExists, |observer, context| {
            observer.post_exists(context, get, exists)
        })
    }

    /// Calls `pre_scanner_open`.
    pub(crate) fn pre_scanner_open(&self, scan: &mut Scan) -> Result<()> {
        self.ask_table(Hook::PreScannerOpen, |observer, context| {
            observer.pre_scanner_open(context, scan)
        })
    }

    /// Calls `post_scanner_open`.
    pub(crate) fn post_scanner_open(&self, scan: &Scan) -> Result<()> {
        self.ask_table(Hook::PostScannerOpen, |observer, context| {
            observer.post_scanner_open(context, scan)
        })
    }

    /// Calls `pre_scanner_next`; `rows` is empty before.
    pub(crate) fn pre_scanner_next(&self, scan: &Scan, rows: &mut CellBatch) -> Result<Flow> {
        self.ask_until(Hook::PreScannerNext, |seat, context| {
            seat.observer.pre_scanner_next(&TableContext::new(self.table(), context), scan, rows)
        })
    }

    /// Calls `post_scanner_next`.
    pub(crate) fn post_scanner_next(&self, scan: &Scan, rows: &mut CellBatch) -> Result<()> {
        self.ask_table(Hook::PostScannerNext, |observer, context| {
            observer.post_scanner_next(context, scan, rows)
        })
    }

    /// Calls `post_scanner_close`.
    pub(crate) fn post_scanner_close(&self, scan: &Scan) {
        self.tell_table(Hook::PostScannerClose, |observer, context| {
            observer.post_scanner_close(context, scan)
        });
    }

    /// Calls `pre_put` and `pre_delete` and removes bypassed mutations from the batch.
    pub(crate) fn pre_mutations(&self, write: Write<'_>, batch: &mut Vec<Mutation>) -> Result<()> {
        if !self.wants(Hooks::of(&[Hook::PrePut, Hook::PreDelete])) {
            return Ok(());
        }
        let mut kept = Vec::with_capacity(batch.len());
        for mut mutation in batch.drain(..) {
            let hook = if writes(&mutation) { Hook::PrePut } else { Hook::PreDelete };
            let flow = self.ask_until(hook, |seat, context| {
                self.in_write(write, (seat, context), |observer, context| match hook {
                    Hook::PrePut => observer.pre_put(context, &mut mutation),
                    _ => observer.pre_delete(context, &mut mutation),
                })
            })?;
            if flow == Flow::Proceed {
                kept.push(mutation);
            }
        }
        *batch = kept;
        Ok(())
    }

    /// Calls `pre_batch`.
    pub(crate) fn pre_batch(&self, write: Write<'_>, batch: &mut [Mutation]) -> Result<()> {
        self.call_vetoable(Hook::PreBatch, |seat, context| {
            self.in_write(write, (seat, context), |observer, context| {
                observer.pre_batch(context, batch)
            })
        })
    }

    /// Calls `post_batch`.
    pub(crate) fn post_batch(&self, batch: &[Mutation]) {
        self.tell_table(Hook::PostBatch, |observer, context| observer.post_batch(context, batch));
    }

    /// Calls the last hooks of a batch: `post_put` and `post_delete` if it was committed, and
    /// `post_batch_indispensably`.
    pub(crate) fn post_mutations(&self, batch: &[Mutation], fate: BatchOutcome) {
        if fate == BatchOutcome::Committed {
            for mutation in batch {
                if writes(mutation) {
                    self.tell_table(Hook::PostPut, |observer, context| {
                        observer.post_put(context, mutation)
                    });
                } else {
                    self.tell_table(Hook::PostDelete, |observer, context| {
                        observer.post_delete(context, mutation)
                    });
                }
            }
        }
        self.tell_table(Hook::PostBatchIndispensably, |observer, context| {
            observer.post_batch_indispensably(context, batch, fate)
        });
    }

    /// Calls `pre_increment` and `pre_append`, if the mutation has such changes.
    pub(crate) fn pre_row_mutation(
        &self,
        write: Write<'_>,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Vec<WrittenValue>>> {
        for (hook, _) in ROW_CHANGES {
            if !has_changes(mutation, hook) {
                continue;
            }
            let flow = self.ask_until(hook, |seat, context| {
                self.in_write(write, (seat, context), |observer, context| match hook {
                    Hook::PreIncrement => observer.pre_increment(context, mutation),
                    _ => observer.pre_append(context, mutation),
                })
            })?;
            if let Flow::Bypass(written) = flow {
                return Ok(Flow::Bypass(written));
            }
        }
        Ok(Flow::Proceed)
    }

    /// Calls `post_increment` and `post_append`, if the mutation has such changes.
    pub(crate) fn post_row_mutation(
        &self,
        write: Write<'_>,
        mutation: &RowMutation,
        written: &mut Vec<WrittenValue>,
    ) -> Result<()> {
        for (before, hook) in ROW_CHANGES {
            if !has_changes(mutation, before) {
                continue;
            }
            self.call_vetoable(hook, |seat, context| {
                self.in_write(write, (seat, context), |observer, context| match hook {
                    Hook::PostIncrement => observer.post_increment(context, mutation, written),
                    _ => observer.post_append(context, mutation, written),
                })
            })?;
        }
        Ok(())
    }

    /// Calls `pre_check_and_mutate`.
    pub(crate) fn pre_check_and_mutate(
        &self,
        write: Write<'_>,
        condition: &mut Condition,
        mutation: &mut RowMutation,
    ) -> Result<Flow<Option<Vec<WrittenValue>>>> {
        self.ask_until(Hook::PreCheckAndMutate, |seat, context| {
            self.in_write(write, (seat, context), |observer, context| {
                observer.pre_check_and_mutate(context, condition, mutation)
            })
        })
    }

    /// Calls `post_check_and_mutate`.
    pub(crate) fn post_check_and_mutate(
        &self,
        write: Write<'_>,
        condition: &Condition,
        result: &mut Option<Vec<WrittenValue>>,
    ) -> Result<()> {
        self.call_vetoable(Hook::PostCheckAndMutate, |seat, context| {
            self.in_write(write, (seat, context), |observer, context| {
                observer.post_check_and_mutate(context, condition, result)
            })
        })
    }
}

/// The hooks around increments and appends.
const ROW_CHANGES: [(Hook, Hook); 2] =
    [(Hook::PreIncrement, Hook::PostIncrement), (Hook::PreAppend, Hook::PostAppend)];

/// Returns whether a mutation has changes of the kind of this hook.
fn has_changes(mutation: &RowMutation, hook: Hook) -> bool {
    mutation.changes.iter().any(|change| match change {
        RowChange::Increment { .. } => hook == Hook::PreIncrement,
        RowChange::Append { .. } => hook == Hook::PreAppend,
        RowChange::Edit(_) | RowChange::DeleteNewest { .. } => false,
    })
}

/// Returns whether a mutation writes cells, rather than only deleting.
fn writes(mutation: &Mutation) -> bool {
    mutation.edits.is_empty() || mutation.edits.iter().any(|edit| matches!(edit, Edit::Put { .. }))
}
