//! Keeps an index in step with its table: for each changed row, the old entry goes and the new one
//! comes, in the transaction that changes the row.
//!
//! # Invariants
//!
//! 1. Every base row has exactly one entry, computed from its newest version; an entry without its
//!    row does not exist. Both become visible in one commit.
//! 2. An entry that only one row can own (its key holds the primary key) is covered by the lock of
//!    that row. A unique entry has a lock of its own, taken before it is looked for, so that of two
//!    transactions with one value the second waits and then fails.
//! 3. Within a batch entries go before others come, so that one statement may swap unique values.
//! 4. An entry's version is the newest version of its row's cells, so that it is never hidden behind
//!    the entry that it replaces, whatever timestamps clients choose.

use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use store::observer::{ObserverContext, RegionObserver};
use store::transaction::{Expect, Locking};
use store::{Edit, Mutation, Timestamp};

use super::IndexSpec;
use super::entry::{EntryWriter, base_families, duplicate_veto, put};
use crate::change::{Change, changes, load_previous};
use crate::violation::{self, DuplicateKey, INDEX};

/// Keeps one index in step with its table.
pub struct IndexObserver {
    spec: Arc<IndexSpec>,
    /// Families of the base table that entries are computed from.
    families: Vec<usize>,
}

/// What a batch does to the index.
#[derive(Debug, Default)]
struct Additions {
    deletes: Vec<Mutation>,
    puts: Vec<Mutation>,
}

impl IndexObserver {
    /// Returns an observer for this index.
    pub fn new(spec: impl Into<Arc<IndexSpec>>) -> IndexObserver {
        let spec = spec.into();
        IndexObserver { families: base_families(&spec), spec }
    }

    fn additions(&self, changes: &[Change<'_>]) -> types::Result<Additions> {
        let mut writer = EntryWriter::new(&self.spec);
        let mut additions = Additions::default();
        for change in changes {
            self.add_change(&mut writer, change, &mut additions)?;
        }
        Ok(additions)
    }

    fn add_change(
        &self,
        writer: &mut EntryWriter<'_>,
        change: &Change<'_>,
        additions: &mut Additions,
    ) -> types::Result<()> {
        let Change { row, old, new, timestamp } = change;
        match (old.exists(), new.exists()) {
            (false, false) => {}
            (false, true) => {
                writer.read(row, &new.packed())?;
                additions.puts.push(writer.put(writer.key(row)?, *timestamp)?);
            }
            (true, false) => {
                writer.read(row, &old.packed())?;
                let key = writer.key(row)?;
                additions.deletes.push(self.delete(writer, key, *timestamp));
            }
            (true, true) if old.same_bytes(new, &self.families) => {}
            (true, true) => {
                writer.read(row, &old.packed())?;
                let old_key = writer.key(row)?;
                let old_value = writer.value()?;
                let delete = self.delete(writer, old_key, *timestamp);
                writer.read(row, &new.packed())?;
                let key = writer.key(row)?;
                if key != delete.row {
                    additions.deletes.push(delete);
                    additions.puts.push(writer.put(key, *timestamp)?);
                    return Ok(());
                }
                let value = writer.value()?;
                if value != old_value {
                    // The row owns the entry: its lock covers the new version.
                    let replacing = put(key, value, *timestamp);
                    additions.puts.push(Mutation { locking: Locking::Covered, ..replacing });
                }
            }
        }
        Ok(())
    }

    /// Returns the delete of the entry of the row that `writer` took up last.
    fn delete(
        &self,
        writer: &EntryWriter<'_>,
        key: Vec<u8>,
        timestamp: Option<Timestamp>,
    ) -> Mutation {
        let mut mutation = Mutation::new(key);
        mutation.edits.push(Edit::DeleteRow { timestamp });
        if !self.spec.unique || writer.has_null_key() {
            mutation.locking = Locking::Covered;
        }
        mutation
    }

    fn duplicate(&self, index_key: &[u8]) -> store::Error {
        match duplicate_veto(&self.spec, index_key, |key: &DuplicateKey<'_>| key.exists(INDEX)) {
            Ok(veto) => store::Error::Vetoed(Box::new(veto)),
            Err(error) => violation::value_error(INDEX, error),
        }
    }
}

impl Additions {
    /// Settles what the batch does twice to one key: an entry that goes for one row and comes for
    /// another only gets a new version. Returns the key that two rows want, if there is one.
    fn settle(&mut self) -> Option<Vec<u8>> {
        if self.puts.len() > 1 {
            let mut taken = AHashSet::with_capacity(self.puts.len());
            if let Some(put) = self.puts.iter().find(|put| !taken.insert(put.row.as_slice())) {
                return Some(put.row.clone());
            }
        }
        if self.puts.is_empty() || self.deletes.is_empty() {
            return None;
        }
        let mut going: AHashMap<&[u8], bool> =
            self.deletes.iter().map(|delete| (delete.row.as_slice(), false)).collect();
        for put in &mut self.puts {
            if let Some(is_replaced) = going.get_mut(put.row.as_slice()) {
                *is_replaced = true;
                put.expect = Expect::Anything;
            }
        }
        let replaced: Vec<bool> =
            self.deletes.iter().map(|delete| going[delete.row.as_slice()]).collect();
        let mut replaced = replaced.into_iter();
        self.deletes.retain(|_| !replaced.next().unwrap_or(false));
        None
    }

    /// Returns all of it, what goes first.
    fn into_mutations(mut self) -> Vec<Mutation> {
        self.deletes.append(&mut self.puts);
        self.deletes
    }
}

impl RegionObserver for IndexObserver {
    fn name(&self) -> &str {
        INDEX
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        load_previous(context, batch, |_| true)?;
        let changes = changes(self.spec.base_layout.family_count, batch);
        let mut additions =
            self.additions(&changes).map_err(|error| violation::value_error(INDEX, error))?;
        if let Some(index_key) = additions.settle() {
            return Err(self.duplicate(&index_key));
        }
        let mutations = additions.into_mutations();
        if mutations.is_empty() {
            return Ok(());
        }
        match context.add(self.spec.store_table, mutations) {
            Err(store::Error::RowExists { table, row }) if table == self.spec.store_table => {
                Err(self.duplicate(&row))
            }
            outcome => outcome,
        }
    }
}
