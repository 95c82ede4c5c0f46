//! Copy of a template for CREATE DATABASE: the rows of its catalog, with new ids in the store.
//!
//! Objects keep their numbers, which are unique in a database only. Ids of store tables and of
//! sequence states are unique in the store, so the copy has others.

use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use store::codec::tagged::FieldValue;
use store::{CellBatch, Mutation, Scan, TableId};

use crate::catalog::database::DatabaseRecord;
use crate::catalog::is_shared_row;
use crate::catalog::quota::{QUOTA_PREFIX, QuotaSubject};
use crate::catalog::record::{
    ROW_IDS_PREFIX, TABLES_PREFIX, TableRecord, decode, encode, object_key, row_ids_key,
};
use crate::catalog::sequence::{SEQUENCES_PREFIX, STATES_PREFIX, Sequence, state_key};
use crate::catalog::statistics::{STATISTICS_PREFIX, statistics_key, table_of_key};
use crate::catalog_reader::create_catalog_table;
use crate::ddl::Ddl;
use crate::engine::Engine;
use crate::error::Result;
use crate::index_builds::followers::FOLLOWERS_PREFIX;
use crate::index_builds::{BUILDS_PREFIX, IndexBuild};

/// A row of a catalog table: key and value.
type CatalogRow = (Vec<u8>, Vec<u8>);

/// New ids of a copy, and what else differs in it.
#[derive(Default)]
struct CopiedIds {
    /// By the ids of store tables and of sequence states of the template.
    ids: AHashMap<u32, u32>,
    /// Store tables of eventual indexes that lack no commit: writers maintain their copies, until
    /// the server follows them again.
    caught_up: AHashSet<u32>,
}

impl Ddl<'_> {
    /// Copies the catalog and the tables of a template. The caller has claimed it.
    pub(super) fn copy_template(
        &mut self,
        template: &DatabaseRecord,
        copy: &DatabaseRecord,
    ) -> Result<()> {
        if self.engine.store().table(template.catalog_table()).is_none() {
            // It was never opened; nor does the copy need more than its record.
            return Ok(());
        }
        let engines = self.engine.engines();
        let engine = engines.iter().find(|engine| engine.database == template.oid);
        let engine = engine.map(Arc::as_ref);
        // What its sessions have committed must be visible.
        self.engine.store().wait_for_commits()?;
        if let Some(engine) = engine {
            engine.sequences.return_reserved()?;
            let cancelled = self.eval.style.interrupt.flag().cloned().unwrap_or_default();
            let newest = || engine.catalog();
            engine.followers.advance(engine.store(), newest, (&self.eval, &cancelled))?;
        }
        self.transaction.begin_statement();
        let rows = self.catalog_rows(template.catalog_table())?;
        let ids = self.copied_ids(&rows, engine)?;
        let mut mutations = Vec::with_capacity(rows.len());
        for (key, value) in rows.iter().filter(|(key, _)| !key.starts_with(FOLLOWERS_PREFIX)) {
            let (key, value) = ids.copied_row(key, value)?;
            mutations.push(Mutation::new(key).put(0, Vec::new(), value));
        }
        let target = copy.catalog_table();
        create_catalog_table(self.engine.store(), target)?;
        self.changes.created.push(target);
        self.transaction.created_table(target)?;
        self.transaction.mutate(target, mutations)?;
        self.copy_tables(&rows, &ids)
    }

    /// Returns the rows of a catalog table without those of shared objects.
    fn catalog_rows(&self, catalog_table: TableId) -> Result<Vec<CatalogRow>> {
        let mut rows = Vec::new();
        let all = Scan::range(Vec::new(), None);
        let mut scanner = self.transaction.scan(catalog_table, all)?;
        let mut batch = CellBatch::new();
        while scanner.next_batch(1_000, &mut batch)? {
            for row in batch.rows().filter(|row| !is_shared_row(row.key())) {
                let value = row.value(0, b"").unwrap_or_default();
                rows.push((row.key().to_vec(), value.to_vec()));
            }
        }
        Ok(rows)
    }

    /// Reserves ids for the copies of the store tables and the sequence states.
    fn copied_ids(&self, rows: &[CatalogRow], engine: Option<&Engine>) -> Result<CopiedIds> {
        let mut old: Vec<u32> = Vec::new();
        let mut caught_up = AHashSet::new();
        for (key, value) in rows {
            if key.starts_with(TABLES_PREFIX) {
                let record: TableRecord = decode(value)?;
                old.push(record.descriptor.id.0);
                let indexes = record.indexes.iter().map(|index| index.descriptor.id);
                old.extend(indexes.clone().map(|index| index.0));
                let is_caught_up = |index: &TableId| {
                    engine.is_some_and(|engine| engine.followers.views(*index).is_some())
                };
                caught_up.extend(indexes.filter(is_caught_up).map(|index| index.0));
            } else if key.starts_with(SEQUENCES_PREFIX) {
                old.push(decode::<Sequence>(value)?.id);
            }
        }
        let count = u32::try_from(old.len()).unwrap_or(u32::MAX);
        if count == 0 {
            return Ok(CopiedIds::default());
        }
        let first = self.take_ids(count)?;
        Ok(CopiedIds { ids: old.into_iter().zip(first..).collect(), caught_up })
    }

    /// Copies the store tables of the tables in these rows, by links to their files.
    fn copy_tables(&mut self, rows: &[CatalogRow], ids: &CopiedIds) -> Result<()> {
        let mut copies = Vec::new();
        for (_, value) in rows.iter().filter(|(key, _)| key.starts_with(TABLES_PREFIX)) {
            let record: TableRecord = decode(value)?;
            let indexes = record.indexes.iter().map(|index| index.descriptor.id);
            let tables = std::iter::once(record.descriptor.id).chain(indexes);
            copies.extend(tables.map(|table| (table, TableId(ids.of(table.0)))));
        }
        // A failure may leave some of them.
        self.changes.created.extend(copies.iter().map(|(_, copy)| *copy));
        Ok(self.engine.store().link_tables(&copies)?)
    }
}

impl CopiedIds {
    /// Returns the id of a copy; unknown ids stay.
    fn of(&self, id: u32) -> u32 {
        self.ids.get(&id).copied().unwrap_or(id)
    }

    /// Returns the row of the copy.
    fn copied_row(&self, key: &[u8], value: &[u8]) -> Result<CatalogRow> {
        let number = |prefix: &[u8]| {
            let number = key.strip_prefix(prefix).and_then(|rest| rest.try_into().ok());
            number.map_or(0, u32::from_be_bytes)
        };
        let unchanged = || (key.to_vec(), value.to_vec());
        Ok(match key.get(..1).unwrap_or_default() {
            TABLES_PREFIX => (key.to_vec(), changed(value, |one| self.change_table(one))?),
            SEQUENCES_PREFIX => {
                (key.to_vec(), changed(value, |one: &mut Sequence| one.id = self.of(one.id))?)
            }
            STATES_PREFIX => (state_key(self.of(number(STATES_PREFIX))), value.to_vec()),
            ROW_IDS_PREFIX => {
                (row_ids_key(TableId(self.of(number(ROW_IDS_PREFIX)))), value.to_vec())
            }
            STATISTICS_PREFIX => match table_of_key(key.get(1..).unwrap_or_default()) {
                Some(table) => (statistics_key(TableId(self.of(table.0))), value.to_vec()),
                None => unchanged(),
            },
            QUOTA_PREFIX => match QuotaSubject::of_key(key.get(1..).unwrap_or_default())? {
                QuotaSubject::Table(table) => {
                    (QuotaSubject::Table(TableId(self.of(table.0))).key(), value.to_vec())
                }
                QuotaSubject::Schema(_) | QuotaSubject::Role(_) | QuotaSubject::Database(_) => {
                    unchanged()
                }
            },
            BUILDS_PREFIX => {
                let change = |one: &mut IndexBuild| {
                    one.base_table = self.of(one.base_table);
                    one.store_table = self.of(one.store_table);
                };
                (object_key(BUILDS_PREFIX, number(BUILDS_PREFIX)), changed(value, change)?)
            }
            _ => unchanged(),
        })
    }

    fn change_table(&self, record: &mut TableRecord) {
        let own = std::iter::once(&mut record.descriptor);
        let indexes = record.indexes.iter_mut();
        let indexes = indexes.map(|index| {
            let followed = index.followed.filter(|id| !self.caught_up.contains(id));
            index.followed = followed.map(|id| self.of(id));
            &mut index.descriptor
        });
        for descriptor in own.chain(indexes) {
            let descriptor = Arc::make_mut(descriptor);
            descriptor.id = TableId(self.of(descriptor.id.0));
            let base = descriptor.colocated_with;
            descriptor.colocated_with = base.map(|base| TableId(self.of(base.0)));
        }
    }
}

/// Returns an encoded record after a change.
fn changed<T: FieldValue>(value: &[u8], change: impl FnOnce(&mut T)) -> Result<Vec<u8>> {
    let mut record: T = decode(value)?;
    change(&mut record);
    Ok(encode(&record))
}
