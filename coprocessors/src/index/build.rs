//! Index build: fills an index from existing rows in one sorted load, without concurrent writers.
//! [`fill`](super::fill) is for those.
//!
//! ```text
//!   regions, in parallel                          caller                all threads
//!   rows --> entries --> sorted chunk of a page --> EntrySorter --> merge --> bulk load
//!                                                  \--> staged: few entries, or one snapshot
//! ```
//!
//! In a sorted load the index is new and invisible to others until the transaction commits; if
//! the transaction does not commit, the index is dropped with its files. Loaded files are
//! committed to the store before the transaction commits and are visible to its next statements.
//! A transaction with one snapshot for all statements would not see them, so its entries are
//! staged. Entries are also staged if one of their cells has a TTL that starts at the commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use store::bulk_load::BulkCell;
use store::cell::{expiring_value, split_expiring};
use store::endpoint::{Endpoint, EndpointContext, Page};
use store::error::RejectedPut;
use store::scan::ScanPosition;
use store::sorted_load::{EntryChunk, ScratchSpace, SortedChunk, SortedLoad};
use store::transaction::{Isolation, Locking, RowExpectation};
use store::{CellBatch, CellType, ColumnSlice, Edit, Mutation, Scan, Store, TableId};
use store::{Timestamp, Transaction};

use types::expr::EvalContext;
use types::text::TextStyle;

use super::IndexSpec;
use super::entry::{EntryWriter, after_index_keys, base_reads, duplicate_veto};
use super::families::EntryFamily;
use crate::change::RowState;
use crate::columns::SliceDecoder;
use crate::row::{RowError, packed_puts, vectors_for};
use crate::rows::{StoredRows, StoredRowsChunk};
use crate::violation::{self, DuplicateKey};

/// Name of the endpoint, in `bennu.endpoint_calls`.
const INDEX_BUILD: &str = "index_build";
/// Rows that are read, and entries that are staged, at a time.
const BUILD_ROWS: usize = 1000;
/// Maximum number of entries that are staged like other rows: separate files would cost more.
const STAGED_ENTRIES: u64 = 10_000;

/// A row key with its puts.
type Entry = (Vec<u8>, Vec<RejectedPut>);

/// The environment of an index build.
pub struct BuildEnvironment<'a> {
    /// The store of the tables.
    pub store: &'a Arc<Store>,
    /// The transaction that sees the rows, and the index after the build.
    pub transaction: &'a Transaction,
    /// Scratch space for sort runs.
    pub scratch: Arc<dyn ScratchSpace>,
    /// Evaluation context of expressions.
    pub context: &'a EvalContext,
    /// Progress of the build.
    pub progress: &'a BuildProgress,
}

/// Progress of a build, which other threads read.
#[derive(Debug, Default)]
pub struct BuildProgress {
    row_count: AtomicU64,
    is_loading: AtomicBool,
}

impl BuildProgress {
    /// Returns the number of rows whose entries were computed.
    pub fn row_count(&self) -> u64 {
        self.row_count.load(Ordering::Relaxed)
    }

    /// Sets the number of rows whose entries were computed.
    pub fn set_row_count(&self, row_count: u64) {
        self.row_count.store(row_count, Ordering::Relaxed);
    }

    /// Returns whether all entries were computed, and are written to the index.
    pub fn is_loading(&self) -> bool {
        self.is_loading.load(Ordering::Relaxed)
    }
}

/// Fills a new index from all rows of the base table, and returns the number of entries.
///
/// Entries take no locks: the caller excludes other writers from the table until it has
/// committed, and drops the index if the transaction does not commit.
///
/// # Errors
///
/// `23505` `could not create unique index "i"` if a key occurs twice; errors of functional keys.
pub fn index_build(
    environment: &BuildEnvironment<'_>,
    base_table: TableId,
    spec: &IndexSpec,
) -> store::Result<u64> {
    let BuildEnvironment { store, transaction, context, progress, .. } = *environment;
    // The sorted load finds duplicates by row and family, which does not identify the row of an
    // entry with several cells.
    let is_staged = transaction.isolation() != Isolation::ReadCommitted
        || (spec.unique && spec.layout.family_count > 1);
    let mut sorter = store.sorter(Arc::clone(&environment.scratch));
    let endpoint = BuildEndpoint { spec, context, progress, chunk_bytes: sorter.chunk_bytes() };
    let stage = |chunk: &SortedChunk| stage(transaction, spec, &context.style, chunk);
    let (mut entry_count, mut late) = (0, Vec::new());
    let reader = transaction.reader(base_table)?;
    let take = |page: BuildPage| -> store::Result<()> {
        entry_count += (page.entries.row_count() + page.late.row_count()) as u64;
        late.push(page.late);
        match is_staged {
            true => stage(&page.entries),
            false => sorter.add(page.entries),
        }
    };
    transaction.call_endpoint(&reader, &[(Vec::new(), None)], &endpoint, &(), take)?;
    progress.is_loading.store(true, Ordering::Relaxed);
    if sorter.entry_count() <= STAGED_ENTRIES && sorter.is_small() {
        sorter.chunks().try_for_each(stage)?;
    } else {
        let mut load = store.bulk_load(spec.store_table)?;
        if let SortedLoad::Duplicate { row, family, value } = sorter.load(&mut load, transaction)? {
            let put = RejectedPut { family, qualifier: Vec::new(), value };
            return Err(duplicated(spec, (&row, &[put]), &context.style));
        }
        drop(sorter);
        load.adopt()?;
        transaction.begin_statement();
    }
    late.iter().try_for_each(stage)?;
    if spec.deferrable_unique
        && let Some((index_key, puts)) = first_duplicate(transaction, spec)?
    {
        return Err(duplicated(spec, (&index_key, &puts), &context.style));
    }
    Ok(entry_count)
}

/// Stages sorted entries of a new index.
fn stage(
    transaction: &Transaction,
    spec: &IndexSpec,
    style: &TextStyle,
    chunk: &SortedChunk,
) -> store::Result<()> {
    let mut entries: Vec<Mutation> = Vec::with_capacity(BUILD_ROWS + 1);
    for cell in chunk.cells() {
        if let Some(last) = entries.last()
            && last.row == cell.row
        {
            let is_twice =
                |edit: &Edit| matches!(edit, Edit::Put { family, .. } if *family == cell.family);
            if last.edits.iter().any(is_twice) {
                return Err(duplicated(spec, (&last.row, &last.puts()), style));
            }
        } else {
            if entries.len() >= BUILD_ROWS {
                stage_some(transaction, spec, style, std::mem::take(&mut entries))?;
            }
            let locking = Locking::Covered;
            let expect =
                if spec.unique { RowExpectation::Absent } else { RowExpectation::Anything };
            entries.push(Mutation { locking, expect, ..Mutation::new(cell.row) });
        }
        let expiring = match cell.cell_type {
            CellType::ExpiringPut => split_expiring(cell.value),
            _ => None,
        };
        let (ttl, value) = expiring.map_or((None, cell.value), |(ttl, value)| (Some(ttl), value));
        let (family, timestamp, value) = (cell.family, cell.timestamp, value.to_vec());
        let edit = Edit::Put { family, qualifier: Vec::new(), timestamp, value, ttl };
        entries.last_mut().expect("one was pushed").edits.push(edit);
    }
    stage_some(transaction, spec, style, entries)
}

fn stage_some(
    transaction: &Transaction,
    spec: &IndexSpec,
    style: &TextStyle,
    entries: Vec<Mutation>,
) -> store::Result<()> {
    match transaction.mutate(spec.store_table, entries) {
        Err(store::Error::RowExists { table, row, puts }) if table == spec.store_table => {
            Err(duplicated(spec, (&row, &puts), style))
        }
        outcome => outcome.map(drop),
    }
}

/// The endpoint that computes the entries of a region's rows, sorted page by page.
struct BuildEndpoint<'s> {
    spec: &'s IndexSpec,
    context: &'s EvalContext,
    progress: &'s BuildProgress,
    /// Bytes of entries at which a page ends.
    chunk_bytes: usize,
}

/// The sorted entries of some rows.
struct BuildPage {
    entries: SortedChunk,
    /// Entries that are written with the commit timestamp.
    late: SortedChunk,
}

impl Endpoint for BuildEndpoint<'_> {
    type Request = ();
    type Response = BuildPage;

    fn name(&self) -> &str {
        INDEX_BUILD
    }

    fn call(&self, region: &dyn EndpointContext, (): &()) -> store::Result<Page<BuildPage>> {
        let failed = |error: RowError| error.into_store_error(&self.spec.name);
        let mut writer = PageWriter::new(self).map_err(|error| failed(error.into()))?;
        let columns = base_reads(self.spec);
        let mut rows = StoredRows::new();
        for (start, stop) in region.ranges() {
            let range = Scan::range(start.clone(), stop.clone());
            let mut scanner = region.scan(columns.scan(range))?;
            loop {
                rows.clear();
                let more = rows.read(&mut scanner, BUILD_ROWS)?;
                rows.chunks().iter().try_for_each(|piece| writer.add(piece)).map_err(failed)?;
                let row_count = rows.row_count() as u64;
                self.progress.row_count.fetch_add(row_count, Ordering::Relaxed);
                let is_full = region.note_rows(row_count)?
                    | (writer.entries.byte_count() >= self.chunk_bytes);
                if !more {
                    break;
                }
                if is_full && let ScanPosition::At(row) = scanner.position()? {
                    return Ok(Page::until(row, writer.finish()));
                }
            }
        }
        Ok(Page::whole(writer.finish()))
    }
}

/// Builder of a page.
struct PageWriter<'s> {
    spec: &'s IndexSpec,
    entry: EntryWriter<'s>,
    slices: SliceDecoder,
    entries: EntryChunk,
    late: EntryChunk,
    /// Buffer.
    value: Vec<u8>,
}

impl<'s> PageWriter<'s> {
    fn new(endpoint: &BuildEndpoint<'s>) -> types::Result<PageWriter<'s>> {
        let spec = endpoint.spec;
        let entry = EntryWriter::new(spec, endpoint.context)?;
        let slices = SliceDecoder::new(&spec.base_layout, entry.columns())?;
        let (entries, late) = (EntryChunk::new(), EntryChunk::new());
        Ok(PageWriter { spec, entry, slices, entries, late, value: Vec::new() })
    }

    fn finish(self) -> BuildPage {
        BuildPage { entries: self.entries.sort(), late: self.late.sort() }
    }

    fn add(&mut self, rows: &StoredRowsChunk) -> Result<(), RowError> {
        match rows {
            StoredRowsChunk::Cells(cells) => cells.rows().try_for_each(|row| {
                let state = RowState::of(&row, &self.spec.base_layout);
                match self.entry.read(row.key(), &state)? {
                    true => self.add_row(row.key(), &state),
                    false => Ok(()),
                }
            }),
            StoredRowsChunk::Slice(slice) => self.add_slice(slice),
        }
    }

    /// Adds the entries of the row that `entry` has read.
    fn add_row(&mut self, base_key: &[u8], state: &RowState<'_>) -> Result<(), RowError> {
        let cells = self.entry.cells(state)?;
        let families = self.spec.families.all();
        // The commit time of a cell with a TTL is not yet known: all cells of the entry are
        // staged.
        let is_late = cells.iter().zip(families).any(|(cell, family)| {
            let expires = matches!(family, EntryFamily::Of { expires: true, .. });
            cell.as_ref().is_some_and(|cell| {
                cell.timestamp == Timestamp::LATEST && (expires || cell.ttl.is_some())
            })
        });
        let chunk = if is_late { &mut self.late } else { &mut self.entries };
        self.entry.for_each_key(base_key, |_, row| {
            for (family, cell) in (0u8..).zip(&cells) {
                let Some(cell) = cell else { continue };
                let expiring = cell.ttl.map(|ttl| expiring_value(ttl, &cell.value));
                let (cell_type, value) = match &expiring {
                    None => (CellType::Put, &cell.value),
                    Some(value) => (CellType::ExpiringPut, value),
                };
                let timestamp = (cell.timestamp != Timestamp::LATEST).then_some(cell.timestamp);
                let qualifier = &[];
                chunk.push(BulkCell { row, family, qualifier, timestamp, cell_type, value })?;
            }
            Ok(())
        })
    }

    /// Adds the entries of a slice. Each entry has one cell, in family 0.
    fn add_slice(&mut self, slice: &ColumnSlice) -> Result<(), RowError> {
        let count = slice.row_count();
        let mut columns = vectors_for(&self.spec.base_layout, self.entry.columns(), count);
        self.slices.decode(slice, None, &mut columns)?;
        let (mut keys, mut ends) = (Vec::new(), Vec::new());
        slice.append_row_keys(0..count, &mut keys, &mut ends)?;
        let mut start = 0;
        for (row, (end, timestamp)) in ends.into_iter().zip(slice.timestamps()?).enumerate() {
            let base_key = &keys[start..end as usize];
            start = end as usize;
            if !self.entry.read_columns(&columns, row)? {
                continue;
            }
            let (value, entries, families) =
                (&mut self.value, &mut self.entries, self.spec.families.all());
            self.entry.for_each_key(base_key, |entry, row| {
                for (family, of) in (0u8..).zip(families) {
                    if !matches!(of, EntryFamily::Row | EntryFamily::Of { cell: 0, .. }) {
                        continue;
                    }
                    value.clear();
                    entry.value_into(usize::from(family), value)?;
                    entries.push(BulkCell {
                        row,
                        family,
                        qualifier: &[],
                        timestamp: Some(timestamp),
                        cell_type: CellType::Put,
                        value,
                    })?;
                }
                Ok::<(), RowError>(())
            })?;
        }
        Ok(())
    }
}

/// Returns the row key and the values of an entry whose index keys equal those of another entry.
fn first_duplicate(transaction: &Transaction, spec: &IndexSpec) -> store::Result<Option<Entry>> {
    let value_error = |error| violation::value_error(&spec.name, error);
    // A new statement sees the entries, which this transaction has written.
    transaction.begin_statement();
    let mut scanner = transaction.scan(spec.store_table, Scan::all())?;
    let mut entries = CellBatch::new();
    let mut last = Vec::new();
    while scanner.next_batch(BUILD_ROWS, &mut entries)? {
        for entry in entries.rows() {
            let key = entry.key();
            let rest = after_index_keys(spec, key).map_err(value_error)?;
            let keys = &key[..key.len() - rest.len()];
            let values = spec.layout.decode_key(key).map_err(value_error)?;
            if keys == last.as_slice() && !spec.is_distinct_by_null(&values[..spec.keys.len()]) {
                let puts = entry.cells().map(|cell| RejectedPut {
                    family: cell.family,
                    qualifier: cell.qualifier.to_vec(),
                    value: cell.value.to_vec(),
                });
                return Ok(Some((key.to_vec(), puts.collect())));
            }
            keys.clone_into(&mut last);
        }
    }
    Ok(None)
}

/// Returns the error of a unique index build for an entry whose key occurs twice.
pub(super) fn duplicated(
    spec: &IndexSpec,
    (index_key, puts): (&[u8], &[RejectedPut]),
    style: &TextStyle,
) -> store::Error {
    let packed = packed_puts(puts, &spec.layout);
    let veto = spec.layout.unpack(index_key, &packed).and_then(|values| {
        let duplicated = |key: &DuplicateKey<'_>| key.duplicated_veto(&spec.name);
        duplicate_veto(spec, index_key, (Some(&values), style), duplicated)
    });
    match veto {
        Ok(veto) => store::Error::Vetoed(Box::new(veto)),
        Err(error) => violation::value_error(&spec.name, error),
    }
}
