//! The writes of an open transaction.
//!
//! Staged cells stand in a memstore for each table and family, with sequences of their own
//! ([`Sequence::STAGED`]) that count the edits, so that reads merge them like any other source, a
//! statement can be kept from seeing its own effects, and a savepoint is a number.
//!
//! A memstore only grows. So when rollbacks to savepoints have taken more than half of one, what
//! is left moves to another, and the memory goes with the last scan that reads the old one.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp, expiring_value};
use crate::descriptor::TableId;
use crate::memstore::Memstore;
use crate::mutation::{Edit, Mutation};
use crate::observer::{Fate, RegionChain};
use crate::pressure::Charge;
use crate::read_path::StagedFamilies;
use crate::table::Table;
use crate::wal::LoggedCells;

/// The writes of an open transaction.
#[derive(Default)]
pub(crate) struct Staging {
    tables: SmallVec<[StagedTable; 2]>,
    /// Edits so far.
    count: u64,
    kept: Vec<KeptBatch>,
    /// Edits that delete a row which their own mutation puts again, by their number, ascending.
    replacing: Vec<u64>,
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
        let families = self.tables.iter().flat_map(|staged| staged.families.iter().flatten());
        let of_kept = |kept: &KeptBatch| kept.batch.iter().map(mutation_bytes).sum::<u64>();
        families.map(|memstore| memstore.held_bytes()).sum::<u64>()
            + self.kept.iter().map(of_kept).sum::<u64>()
            + size_of_val(&*self.replacing) as u64
    }

    /// Returns whether anything is staged.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.iter().all(|staged| staged.families.iter().flatten().all(|f| f.is_empty()))
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
    pub(crate) fn has_changed(&self, table: TableId, row: &[u8], since: u64) -> bool {
        self.next_edit(table, row, since, |_| true).is_some()
    }

    /// Returns the number of the first edit after `since` that deletes a row.
    pub(crate) fn deletion_after(&self, table: TableId, row: &[u8], since: u64) -> Option<u64> {
        let mut after = since;
        loop {
            after = self.next_edit(table, row, after, |kind| kind == CellType::DeleteFamily)?;
            if self.replacing.binary_search(&after).is_err() {
                return Some(after);
            }
        }
    }

    /// Returns the number of the first edit of a row after `since` that wrote a cell of a kind.
    fn next_edit(
        &self,
        table: TableId,
        row: &[u8],
        since: u64,
        wanted: impl Fn(CellType) -> bool,
    ) -> Option<u64> {
        let after = Sequence(Sequence::STAGED | since);
        let of = |memstore: &Arc<Memstore>| memstore.next_sequence(row, after, &wanted);
        let first = self.families_of(table)?.iter().flatten().filter_map(of).min()?;
        Some(first.0 & !Sequence::STAGED)
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
    pub(crate) fn roll_back_to(&mut self, count: u64) -> Vec<KeptBatch> {
        if self.count <= count {
            return Vec::new();
        }
        let from = Sequence(Sequence::STAGED | (count + 1));
        for slot in self.tables.iter_mut().flat_map(|staged| staged.families.iter_mut()) {
            let Some(memstore) = slot else { continue };
            memstore.remove_from(from);
            if memstore.is_empty() {
                *slot = None;
            } else if memstore.live_bytes() < memstore.byte_count() / 2 {
                *slot = Some(Arc::new(memstore.copy()));
            }
        }
        // A table that was created since goes, and nothing may be left that names it.
        self.tables.retain(|staged| staged.families.iter().any(Option::is_some));
        self.replacing.truncate(self.replacing.partition_point(|edit| *edit <= count));
        self.kept.extract_if(.., |kept| kept.after >= count).collect()
    }
}

/// Returns about how many bytes a mutation takes.
fn mutation_bytes(mutation: &Mutation) -> u64 {
    let value_bytes = |edit: &Edit| match edit {
        Edit::Put { qualifier, value, .. } => qualifier.len() + value.len(),
        _ => 0,
    };
    let edits = mutation.edits.iter().map(|edit| value_bytes(edit) + size_of::<Edit>());
    (mutation.row.len() + size_of::<Mutation>() + edits.sum::<usize>()) as u64
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
    families[family].get_or_insert_with(|| Arc::new(Memstore::new()))
}
