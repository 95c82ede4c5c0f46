//! The writes of an open transaction.
//!
//! Staged cells stand in a memstore for each table and family, with sequences of their own
//! ([`Sequence::STAGED`]) that count the edits, so that reads merge them like any other source, a
//! statement can be kept from seeing its own effects, and a savepoint is a number.
//!
//! A memstore only grows. So when rollbacks to savepoints have taken more than half of one, what
//! is left moves to another, and the memory goes with the last scan that reads the old one.
//!
//! What is too much for memory is written to sorted runs (`spill`).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use smallvec::SmallVec;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp, expiring_value};
use crate::descriptor::TableId;
use crate::error::{Error, Result, WriteFailure};
use crate::memstore::Memstore;
use crate::mutation::{Edit, Mutation};
use crate::observer::{Fate, RegionChain};
use crate::pressure::Charge;
use crate::spill::SpillDirectory;
use crate::staged::{StagedFamilies, StagedFamily};
use crate::table::Table;
use crate::transaction::progression::Progressions;
use crate::transaction::spill;
use crate::wal::LoggedCells;

/// The writes of an open transaction.
#[derive(Default)]
pub(crate) struct Staging {
    tables: SmallVec<[StagedTable; 2]>,
    /// Edits so far.
    count: u64,
    kept: Vec<KeptBatch>,
    /// Edits that delete a row which their own mutation puts again, by their number, ascending.
    replacing: Progressions,
    /// Whether anything was spilled.
    is_spilled: bool,
    /// Why what was undone could not be taken out of the runs; nothing may be read or committed.
    failure: Option<WriteFailure>,
    /// The memory as it was counted last; `None` while it is little.
    pub(crate) charge: Option<Charge>,
}

/// The writes to one table.
pub(crate) struct StagedTable {
    /// The table.
    pub(crate) table: Arc<Table>,
    /// Its cells.
    pub(crate) families: StagedFamilies,
}

/// A batch that an observer wants to see after the commit.
pub(crate) struct KeptBatch {
    /// Edits before it.
    after: u64,
    /// Who wants it.
    chain: Arc<RegionChain>,
    /// The batch.
    batch: Vec<Mutation>,
}

impl KeptBatch {
    /// Tells its observers that it was committed; the rows are locked still.
    pub(crate) fn committed(&self) {
        self.chain.post_batch(&self.batch);
    }

    /// Tells its observers what became of it.
    pub(crate) fn ended(&self, fate: Fate) {
        self.chain.post_mutations(&self.batch, fate);
    }
}

impl Staging {
    /// Returns how many edits were staged so far: a place to roll back to.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Leaves a number out; returns how many edits were staged before.
    pub(crate) fn skip(&mut self) -> u64 {
        self.count += 1;
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

    /// Returns the bytes of memory that it holds.
    pub(crate) fn held_bytes(&self) -> u64 {
        let of_kept =
            |kept: &KeptBatch| kept.batch.iter().map(|kept| kept.byte_count() as u64).sum::<u64>();
        self.memstore_bytes()
            + self.kept.iter().map(of_kept).sum::<u64>()
            + self.replacing.held_bytes()
    }

    /// Returns the bytes of memory that cells take.
    pub(crate) fn memstore_bytes(&self) -> u64 {
        let families = self.tables.iter().flat_map(|staged| staged.families.iter().flatten());
        families.map(|family| family.memstore().held_bytes()).sum()
    }

    /// Returns whether some of it is on disk.
    pub(crate) fn is_spilled(&self) -> bool {
        self.is_spilled
    }

    /// Checks that what is on disk is what was staged.
    ///
    /// # Errors
    ///
    /// [`Error::FlushFailed`] if a savepoint could not be restored.
    pub(crate) fn check(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), |failure| Err(Error::FlushFailed(failure)))
    }

    /// Writes what is in memory to sorted runs.
    ///
    /// # Errors
    ///
    /// Those of writing: what was not written is still in memory. [`Error::Cancelled`].
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

    /// Stages the edits of a batch, whose families the caller has checked.
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

    /// Returns the number of the first edit of a row after `since` that wrote a cell of a kind.
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

    /// Makes room for the cells of a table; returns its index.
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

    /// Stages cells that a commit would have written: all as one edit, so that they stay what they
    /// are. Those of families that the table does not have are left out.
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

    /// Keeps a batch for its observers.
    pub(crate) fn keep(&mut self, chain: Arc<RegionChain>, batch: Vec<Mutation>) {
        // An edit may be missing in an empty batch, so the place before it is one less than the
        // count.
        let after = self.count.saturating_sub(1);
        self.kept.push(KeptBatch { after, chain, batch });
    }

    /// Returns the batches that observers want to see.
    pub(crate) fn take_kept(&mut self) -> Vec<KeptBatch> {
        std::mem::take(&mut self.kept)
    }

    /// Forgets all but the first `count` edits; returns the batches among what is forgotten that
    /// observers want to hear of.
    pub(crate) fn roll_back_to(&mut self, count: u64, files: &SpillDirectory) -> Vec<KeptBatch> {
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
        // A table that was created since goes, and nothing may be left that names it.
        self.tables.retain(|staged| staged.families.iter().any(Option::is_some));
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
