//! The writes of an open transaction.
//!
//! Staged cells are in one memstore for each table and family, with sequences above all commits
//! ([`Sequence::STAGED`]) that count the edits. So reads merge them like any other source, a
//! statement can exclude its own effects, and a savepoint is a number.
//!
//! A memstore only grows. When rollbacks to savepoints have undone more than half of one, the
//! remaining cells move to another, and the old memory is freed after the last scan of the old
//! one.
//!
//! Cells beyond the memory limit are written to sorted runs (`spill`).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use smallvec::SmallVec;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp, expiring_value};
use crate::descriptor::TableId;
use crate::error::{Error, Result, WriteFailure};
use crate::memory_limits::TransactionMemory;
use crate::memstore::Memstore;
use crate::mutation::{Edit, Mutation};
use crate::observer::{BatchOutcome, RegionChain};
use crate::spill::SpillDirectory;
use crate::staged::{StagedFamilies, StagedFamily};
use crate::table::Table;
use crate::transaction::progression::ProgressionSet;
use crate::transaction::spill;
use crate::wal::LoggedCells;

/// The writes of an open transaction.
#[derive(Default)]
pub(crate) struct Staging {
    tables: SmallVec<[StagedTable; 2]>,
    /// Edits so far.
    count: u64,
    kept: Vec<ObservedBatch>,
    /// Numbers of edits that delete a row which their own mutation puts again, ascending.
    replacing: ProgressionSet,
    /// True if anything was spilled.
    is_spilled: bool,
    /// The failure to remove undone cells from the runs; nothing may be read or committed then.
    failure: Option<WriteFailure>,
    /// The memory as last accounted; `None` while it is small.
    pub(crate) charge: Option<TransactionMemory>,
}

/// The writes to one table.
pub(crate) struct StagedTable {
    /// The table.
    pub(crate) table: Arc<Table>,
    /// Its cells.
    pub(crate) families: StagedFamilies,
}

/// A batch whose observers are called again after the commit.
pub(crate) struct ObservedBatch {
    /// Number of edits before it.
    after: u64,
    /// The observers.
    chain: Arc<RegionChain>,
    /// The batch.
    batch: Vec<Mutation>,
}

impl ObservedBatch {
    /// Calls its observers after the commit, while the rows are still locked.
    pub(crate) fn committed(&self) {
        self.chain.post_batch(&self.batch);
    }

    /// Reports the outcome to its observers.
    pub(crate) fn ended(&self, fate: BatchOutcome) {
        self.chain.post_mutations(&self.batch, fate);
    }
}

impl Staging {
    /// Returns the number of edits staged so far, which serves as a savepoint.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Skips a number; returns the number of edits staged before.
    pub(crate) fn skip(&mut self) -> u64 {
        self.count += 1;
        debug_assert!(self.count < Sequence::STAGED, "all numbers of edits are used up");
        self.count - 1
    }

    /// Returns the sequence of the edit staged last.
    pub(crate) fn last_sequence(&self) -> Sequence {
        Sequence(Sequence::STAGED | self.count)
    }

    /// Returns the cells of a table, if there are any.
    pub(crate) fn families_of(&self, table: TableId) -> Option<&StagedFamilies> {
        self.tables.iter().find(|staged| staged.table.id() == table).map(|staged| &staged.families)
    }

    /// Returns the writes by table.
    pub(crate) fn tables(&self) -> &[StagedTable] {
        &self.tables
    }

    /// Returns the bytes of memory in use.
    pub(crate) fn held_bytes(&self) -> u64 {
        let of_kept = |kept: &ObservedBatch| {
            kept.batch.iter().map(|kept| kept.byte_count() as u64).sum::<u64>()
        };
        self.memstore_bytes()
            + self.kept.iter().map(of_kept).sum::<u64>()
            + self.replacing.held_bytes()
    }

    /// Returns the bytes of memory that cells take.
    pub(crate) fn memstore_bytes(&self) -> u64 {
        let families = self.tables.iter().flat_map(|staged| staged.families.iter().flatten());
        families.map(|family| family.memstore().held_bytes()).sum()
    }

    /// Returns whether some cells are on disk.
    pub(crate) fn is_spilled(&self) -> bool {
        self.is_spilled
    }

    /// Checks that the runs match the staged edits.
    ///
    /// # Errors
    ///
    /// [`Error::FlushFailed`] if a savepoint could not be restored.
    pub(crate) fn check(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), |failure| Err(Error::FlushFailed(failure)))
    }

    /// Writes the cells in memory to sorted runs.
    ///
    /// # Errors
    ///
    /// Errors of writing: cells that were not written are still in memory. [`Error::Cancelled`].
    pub(crate) fn spill(&mut self, files: &SpillDirectory, cancelled: &AtomicBool) -> Result<()> {
        for staged in &mut self.tables {
            let descriptor = staged.table.descriptor();
            for (slot, family) in staged.families.iter_mut().zip(&descriptor.families) {
                if let Some(staged) = slot {
                    spill::spill(staged, family, files)?;
                    self.is_spilled |= !staged.runs().is_empty();
                    spill::merge(staged, family, files, cancelled)?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether anything is staged.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables
            .iter()
            .all(|staged| staged.families.iter().flatten().all(StagedFamily::is_empty))
    }

    /// Stages the edits of a batch; the caller has checked the families.
    pub(crate) fn stage(&mut self, table: &Arc<Table>, batch: &[Mutation]) {
        let index = self.enter(table);
        let families = &mut self.tables[index].families;
        for mutation in batch {
            for (at, edit) in mutation.edits.iter().enumerate() {
                self.count += 1;
                if let Edit::DeleteRow { .. } | Edit::DeleteFamily { .. } = edit
                    && mutation.edits[at..].iter().any(|edit| matches!(edit, Edit::Put { .. }))
                {
                    self.replacing.push(self.count);
                }
                stage_edit(families, &mutation.row, edit, Sequence(Sequence::STAGED | self.count));
            }
        }
    }

    /// Returns whether a row was changed by an edit after the first `since`.
    pub(crate) fn has_changed(&self, table: TableId, row: &[u8], since: u64) -> Result<bool> {
        Ok(self.next_edit(table, row, since, |_| true)?.is_some())
    }

    /// Returns the number of the first edit after `since` that deletes a row.
    pub(crate) fn deletion_after(
        &self,
        table: TableId,
        row: &[u8],
        since: u64,
    ) -> Result<Option<u64>> {
        let mut after = since;
        let is_deletion = |kind| kind == CellType::DeleteFamily;
        while let Some(found) = self.next_edit(table, row, after, is_deletion)? {
            if !self.replacing.contains(found) {
                return Ok(Some(found));
            }
            after = found;
        }
        Ok(None)
    }

    /// Returns the number of the first edit of a row after `since` that wrote a matching cell.
    fn next_edit(
        &self,
        table: TableId,
        row: &[u8],
        since: u64,
        wanted: impl Fn(CellType) -> bool,
    ) -> Result<Option<u64>> {
        self.check()?;
        let after = Sequence(Sequence::STAGED | since);
        let mut first: Option<Sequence> = None;
        for family in self.families_of(table).into_iter().flatten().flatten() {
            let next = family.next_sequence(row, after, &wanted)?;
            first = first.into_iter().chain(next).min();
        }
        Ok(first.map(|first| first.0 & !Sequence::STAGED))
    }

    /// Adds the table, if it is new; returns its index.
    fn enter(&mut self, table: &Arc<Table>) -> usize {
        let family_count = table.descriptor().families.len();
        let index = match self.tables.iter().position(|s| s.table.id() == table.id()) {
            Some(index) => index,
            None => {
                let families = StagedFamilies::new();
                self.tables.push(StagedTable { table: Arc::clone(table), families });
                self.tables.len() - 1
            }
        };
        let families = &mut self.tables[index].families;
        if families.len() < family_count {
            families.resize(family_count, None);
        }
        index
    }

    /// Stages the cells of a decoded commit, all as one edit, so that they do not mask each
    /// other. Cells of families that the table does not have are skipped.
    pub(crate) fn restore(&mut self, table: &Arc<Table>, cells: LoggedCells<'_>) {
        let index = self.enter(table);
        self.count = self.count.max(1);
        let families = &mut self.tables[index].families;
        let (sequence, family_count) = (Sequence(Sequence::STAGED | 1), families.len());
        for cell in cells.filter(|cell| usize::from(cell.family) < family_count) {
            let key = KeyParts { sequence, ..cell.key };
            memstore_of(families, usize::from(cell.family)).insert(&key, cell.value);
        }
    }

    /// Retains a batch for its observers.
    pub(crate) fn keep(&mut self, chain: Arc<RegionChain>, batch: Vec<Mutation>) {
        // An empty batch may have no edit, so its position is one less than the count.
        let after = self.count.saturating_sub(1);
        self.kept.push(ObservedBatch { after, chain, batch });
    }

    /// Takes the batches retained for observers.
    pub(crate) fn take_kept(&mut self) -> Vec<ObservedBatch> {
        std::mem::take(&mut self.kept)
    }

    /// Undoes all but the first `count` edits; returns the undone batches that were retained for
    /// observers.
    pub(crate) fn roll_back_to(
        &mut self,
        count: u64,
        files: &SpillDirectory,
    ) -> Vec<ObservedBatch> {
        if self.count <= count {
            return Vec::new();
        }
        let from = Sequence(Sequence::STAGED | (count + 1));
        for staged in &mut self.tables {
            let descriptor = staged.table.descriptor();
            for (index, slot) in staged.families.iter_mut().enumerate() {
                let Some(family) = slot else { continue };
                let settings = descriptor.families.get(index);
                if let Err(error) = spill::remove_from(family, from, settings, files) {
                    tracing::error!(%error, "a savepoint cannot be restored");
                    self.failure.get_or_insert_with(|| WriteFailure::from(&error));
                }
                let memstore = family.memstore();
                memstore.remove_from(from);
                if family.is_empty() {
                    *slot = None;
                } else if memstore.live_bytes() < memstore.byte_count() / 2 {
                    let copy = memstore.copy();
                    family.set_memstore(copy);
                }
            }
        }
        // A table created since then is removed, and nothing may refer to it.
        self.tables.retain(|staged| staged.families.iter().any(Option::is_some));
        debug_assert!(
            self.tables.iter().flat_map(|staged| staged.families.iter().flatten()).all(|family| {
                let files = family.runs().iter().flat_map(|run| run.files());
                self.failure.is_some()
                    || files.into_iter().all(|live| live.file.properties().max_sequence < from)
            }),
            "an undone cell is on disk"
        );
        self.replacing.truncate(count);
        self.kept.extract_if(.., |kept| kept.after >= count).collect()
    }
}

fn stage_edit(families: &mut StagedFamilies, row: &[u8], edit: &Edit, sequence: Sequence) {
    let family_count = families.len();
    let timestamp = edit.timestamp().unwrap_or(Timestamp::LATEST);
    let mut stage = |family: usize, qualifier: &[u8], cell_type, value: &[u8]| {
        let key = KeyParts { row, qualifier, timestamp, sequence, cell_type };
        memstore_of(families, family).insert(&key, value);
    };
    match edit {
        Edit::Put { family, qualifier, value, ttl: None, .. } => {
            stage(usize::from(*family), qualifier, CellType::Put, value);
        }
        Edit::Put { family, qualifier, value, ttl: Some(ttl), .. } => {
            let stored = expiring_value(*ttl, value);
            stage(usize::from(*family), qualifier, CellType::ExpiringPut, &stored);
        }
        Edit::DeleteRow { .. } => {
            (0..family_count).for_each(|family| stage(family, &[], CellType::DeleteFamily, &[]));
        }
        Edit::DeleteFamily { family, .. } => {
            stage(usize::from(*family), &[], CellType::DeleteFamily, &[]);
        }
        Edit::DeleteFamilyVersion { family, .. } => {
            stage(usize::from(*family), &[], CellType::DeleteFamilyVersion, &[]);
        }
        Edit::DeleteColumn { family, qualifier, .. } => {
            stage(usize::from(*family), qualifier, CellType::DeleteColumn, &[]);
        }
        Edit::DeleteVersion { family, qualifier, .. } => {
            stage(usize::from(*family), qualifier, CellType::Delete, &[]);
        }
    }
}

fn memstore_of(families: &mut StagedFamilies, family: usize) -> &Memstore {
    families[family].get_or_insert_default().memstore()
}
