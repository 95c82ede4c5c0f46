//! Index check: compares an index with its table in both directions, at one snapshot.
//!
//! ```text
//!   regions of the index, in parallel    entry --> its row --> entry of that row
//!                                                              another, or none: extra
//!   regions of the table, in parallel    row --> its entry --> stored entry
//!                                                              none: missing
//!                                                              other values: differs
//! ```
//!
//! It takes no locks. Rows and entries are compared in batches of a bounded size.

use ahash::AHashMap;
use store::endpoint::{Endpoint, EndpointContext, Page};
use store::scan::ScanPosition;
use store::transaction::TableReader;
use store::{CellBatch, Get, RowRef, Scan, StatementView, TableId, Transaction};
use types::expr::EvalContext;

use super::IndexSpec;
use super::entry::{EntryCells, EntryWriter, base_key, base_reads, cells_of, entries_equal};
use crate::change::RowState;
use crate::row::{PackedCells, ReadColumns, packed_cells};
use crate::violation::{self, short_text};

/// Name of the endpoints, in `bennu.endpoint_calls`.
const INDEX_CHECK: &str = "index_check";
/// Rows that are compared at a time.
const CHECK_ROWS: usize = 1000;
/// Bytes of rows that are compared at a time.
const CHECK_BYTES: usize = 4 << 20;
/// Number of differences at which a page ends.
const PAGE_DIFFERENCES: usize = 1000;

/// Kind of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// A row has no entry.
    Missing,
    /// An entry has no row, or that row has another entry.
    Extra,
    /// The entry of a row has other values, or expires at another time.
    Differs,
    /// The entry of a row is that of another row, which has the same key.
    Duplicate,
}

impl DifferenceKind {
    /// Returns its name for users.
    pub fn name(self) -> &'static str {
        match self {
            DifferenceKind::Missing => "missing",
            DifferenceKind::Extra => "extra",
            DifferenceKind::Differs => "differs",
            DifferenceKind::Duplicate => "duplicate",
        }
    }
}

/// A difference between an index and its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDifference {
    /// Its kind.
    pub kind: DifferenceKind,
    /// The row's key in the base table; `None` if the entry does not name one.
    pub row_key: Option<Vec<u8>>,
    /// The key of the entry.
    pub entry_key: Vec<u8>,
    /// The primary key of the row, as text.
    pub primary_key: Option<String>,
    /// The stored entry, as text.
    pub stored: Option<String>,
    /// The entry that the row has, as text.
    pub expected: Option<String>,
}

/// Numbers of compared rows and entries, and of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckCounts {
    /// Rows of the table.
    pub row_count: u64,
    /// Entries of the index.
    pub entry_count: u64,
    /// Differences of kind [`DifferenceKind::Missing`].
    pub missing: u64,
    /// Differences of kind [`DifferenceKind::Extra`].
    pub extra: u64,
    /// Differences of kind [`DifferenceKind::Differs`].
    pub differing: u64,
    /// Differences of kind [`DifferenceKind::Duplicate`].
    pub duplicate: u64,
}

impl CheckCounts {
    fn count(&mut self, difference: &IndexDifference) {
        let counter = match difference.kind {
            DifferenceKind::Missing => &mut self.missing,
            DifferenceKind::Extra => &mut self.extra,
            DifferenceKind::Differs => &mut self.differing,
            DifferenceKind::Duplicate => &mut self.duplicate,
        };
        *counter += 1;
    }

    /// Returns the number of differences.
    pub fn differences(&self) -> u64 {
        self.missing + self.extra + self.differing + self.duplicate
    }
}

/// Inputs of a check.
#[derive(Clone, Copy)]
pub struct IndexCheck<'a> {
    /// The transaction whose snapshot is read.
    pub transaction: &'a Transaction,
    /// Views of rows and entries instead of that snapshot.
    pub views: Option<(&'a StatementView, &'a StatementView)>,
    /// The table.
    pub base_table: TableId,
    /// The index.
    pub spec: &'a IndexSpec,
    /// Evaluation context of expressions.
    pub context: &'a EvalContext,
    /// Names of the columns of the index, in the order of its layout, for the texts.
    pub column_names: &'a [String],
}

/// Compares an index with its table under the snapshot of the present statement, and passes the
/// differences to `take`: those of entries before those of rows.
///
/// # Errors
///
/// `XX001` if rows do not decode; errors of functional keys, and of `take`.
pub fn check<F: From<store::Error>>(
    check: &IndexCheck<'_>,
    mut take: impl FnMut(Vec<IndexDifference>) -> Result<(), F>,
) -> Result<CheckCounts, F> {
    let (base_table, store_table) = (check.base_table, check.spec.store_table);
    let (rows, entries) = match check.views {
        None => (check.transaction.reader(base_table)?, check.transaction.reader(store_table)?),
        Some((of_rows, of_entries)) => (
            check.transaction.reader_of(of_rows, base_table)?,
            check.transaction.reader_of(of_entries, store_table)?,
        ),
    };
    let whole = [(Vec::new(), None)];
    let mut counts = CheckCounts::default();
    let mut take = |page: CheckPage| {
        counts.row_count += page.row_count;
        counts.entry_count += page.entry_count;
        page.differences.iter().for_each(|difference| counts.count(difference));
        if page.differences.is_empty() { Ok(()) } else { take(page.differences) }
    };
    let endpoint = EntryCheck { check, rows: rows.clone() };
    check.transaction.call_endpoint(&entries, &whole, &endpoint, &(), &mut take)?;
    let endpoint = RowCheck { check, entries, rows: rows.clone() };
    check.transaction.call_endpoint(&rows, &whole, &endpoint, &(), &mut take)?;
    Ok(counts)
}

/// Differences of the rows or entries of a page.
#[derive(Default)]
struct CheckPage {
    row_count: u64,
    entry_count: u64,
    differences: Vec<IndexDifference>,
}

/// The endpoint in the regions of the table: each row has its entries.
struct RowCheck<'c> {
    check: &'c IndexCheck<'c>,
    entries: TableReader,
    rows: TableReader,
}

/// The endpoint in the regions of the index: each entry has its row.
struct EntryCheck<'c> {
    check: &'c IndexCheck<'c>,
    rows: TableReader,
}

/// An entry that a row has.
struct ExpectedEntry {
    row_key: Vec<u8>,
    key: Vec<u8>,
    cells: EntryCells,
}

impl IndexCheck<'_> {
    fn value_error(&self, error: types::Error) -> store::Error {
        violation::value_error(&self.spec.name, error)
    }

    fn writer(&self) -> store::Result<EntryWriter<'_>> {
        EntryWriter::new(self.spec, self.context).map_err(|error| self.value_error(error))
    }

    /// Returns the entries of a stored row.
    fn expected(
        &self,
        writer: &mut EntryWriter<'_>,
        row: &RowRef<'_>,
    ) -> store::Result<Vec<ExpectedEntry>> {
        let state = RowState::of(row, &self.spec.base_layout);
        let mut expected = || {
            if !writer.read(row.key(), &state)? {
                return Ok(Vec::new());
            }
            let cells = writer.cells(&state)?;
            let keys = writer.entry_keys(row.key())?.into_iter();
            let entry = |key| {
                let (row_key, cells) = (row.key().to_vec(), cells.clone());
                ExpectedEntry { row_key, key, cells }
            };
            Ok(keys.map(entry).collect())
        };
        expected().map_err(|error| self.value_error(error))
    }

    /// Returns a difference with its texts.
    fn difference(
        &self,
        kind: DifferenceKind,
        (row_key, entry_key): (Option<&[u8]>, &[u8]),
        (stored, expected): (Option<&RowRef<'_>>, Option<&ExpectedEntry>),
    ) -> IndexDifference {
        let stored_text = |entry: &RowRef<'_>| {
            self.entry_text(entry.key(), &packed_cells(entry, &self.spec.layout))
        };
        let expected_text = |entry: &ExpectedEntry| {
            let cells = entry.cells.iter();
            let packed: PackedCells<'_> =
                cells.map(|cell| cell.as_ref().map(|cell| cell.value.as_slice())).collect();
            self.entry_text(&entry.key, &packed)
        };
        IndexDifference {
            kind,
            row_key: row_key.map(<[u8]>::to_vec),
            entry_key: entry_key.to_vec(),
            primary_key: row_key.map(|key| self.primary_key_text(key)),
            stored: stored.map(stored_text),
            expected: expected.map(expected_text),
        }
    }

    fn entry_text(&self, key: &[u8], packed: &PackedCells<'_>) -> String {
        let Ok(values) = self.spec.layout.unpack(key, packed) else { return hex(key) };
        let types = self.spec.layout.columns.iter().map(|column| &column.data_type);
        short_text(self.column_names, types.zip(&values), &self.context.style)
    }

    fn primary_key_text(&self, row_key: &[u8]) -> String {
        let layout = &self.spec.base_layout;
        let Ok(values) = layout.decode_key(row_key) else { return hex(row_key) };
        let types = layout.key.iter().map(|key| &layout.columns[key.column].data_type);
        let names = self.column_names.get(self.spec.keys.len()..).unwrap_or_default();
        let names = &names[..names.len().min(layout.key.len())];
        short_text(names, types.zip(&values), &self.context.style)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("\\x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// Passes the rows of a page to `compare`, and returns the row at which it ends.
fn scan_page(
    region: &dyn EndpointContext,
    columns: &ReadColumns,
    mut compare: impl FnMut(&CellBatch) -> store::Result<usize>,
) -> store::Result<Option<Vec<u8>>> {
    let mut rows = CellBatch::new();
    for (start, stop) in region.ranges() {
        let range = Scan::range(start.clone(), stop.clone());
        let mut scanner = region.scan(columns.scan(range))?;
        while scanner.next_batch(CHECK_ROWS, &mut rows)? {
            let difference_count = compare(&rows)?;
            let is_full =
                region.note_rows(rows.row_count() as u64)? | (difference_count >= PAGE_DIFFERENCES);
            if is_full && let ScanPosition::At(row) = scanner.position()? {
                return Ok(Some(row));
            }
        }
    }
    Ok(None)
}

impl Endpoint for RowCheck<'_> {
    type Request = ();
    type Response = CheckPage;

    fn name(&self) -> &str {
        INDEX_CHECK
    }

    fn call(&self, region: &dyn EndpointContext, (): &()) -> store::Result<Page<CheckPage>> {
        let mut writer = self.check.writer()?;
        let mut response = CheckPage::default();
        let rest = scan_page(region, &base_reads(self.check.spec), |rows| {
            self.compare(&mut writer, rows, &mut response)?;
            Ok(response.differences.len())
        })?;
        Ok(Page { response, rest })
    }
}

impl RowCheck<'_> {
    fn compare(
        &self,
        writer: &mut EntryWriter<'_>,
        rows: &CellBatch,
        page: &mut CheckPage,
    ) -> store::Result<()> {
        page.row_count += rows.row_count() as u64;
        let mut expected = Vec::with_capacity(rows.row_count());
        for row in rows.rows() {
            expected.extend(self.check.expected(writer, &row)?);
        }
        let gets: Vec<Get> = expected.iter().map(|entry| Get::new(entry.key.clone())).collect();
        let (mut found, mut done) = (CellBatch::new(), 0);
        while done < gets.len() {
            found.clear();
            let count = self.entries.multi_get_some(&gets[done..], CHECK_BYTES, &mut found)?;
            let stored: AHashMap<&[u8], RowRef<'_>> =
                found.rows().map(|entry| (entry.key(), entry)).collect();
            for entry in &expected[done..done + count] {
                let stored = stored.get(entry.key.as_slice());
                let kind = match stored {
                    None => DifferenceKind::Missing,
                    Some(stored) => match self.compare_entry(writer, entry, stored)? {
                        None => continue,
                        Some(kind) => kind,
                    },
                };
                let keys = (Some(entry.row_key.as_slice()), entry.key.as_slice());
                page.differences.push(self.check.difference(kind, keys, (stored, Some(entry))));
            }
            done += count;
        }
        Ok(())
    }

    /// Compares the entry of a row with the stored one of the same key.
    fn compare_entry(
        &self,
        writer: &mut EntryWriter<'_>,
        entry: &ExpectedEntry,
        stored: &RowRef<'_>,
    ) -> store::Result<Option<DifferenceKind>> {
        let spec = self.check.spec;
        if entries_equal(spec, &cells_of(spec, stored), &entry.cells) {
            return Ok(None);
        }
        let owner = base_key(spec, stored).ok().filter(|owner| *owner != entry.row_key);
        if let Some(owner) = owner {
            let mut found = CellBatch::new();
            self.rows.multi_get(&[base_reads(spec).get(Get::new(owner))], &mut found)?;
            for row in found.rows() {
                let other = self.check.expected(writer, &row)?;
                if other.iter().any(|other| other.key == entry.key) {
                    return Ok(Some(DifferenceKind::Duplicate));
                }
            }
        }
        Ok(Some(DifferenceKind::Differs))
    }
}

impl Endpoint for EntryCheck<'_> {
    type Request = ();
    type Response = CheckPage;

    fn name(&self) -> &str {
        INDEX_CHECK
    }

    fn call(&self, region: &dyn EndpointContext, (): &()) -> store::Result<Page<CheckPage>> {
        let mut writer = self.check.writer()?;
        let mut response = CheckPage::default();
        let rest = scan_page(region, &ReadColumns::default(), |entries| {
            self.compare(&mut writer, entries, &mut response)?;
            Ok(response.differences.len())
        })?;
        Ok(Page { response, rest })
    }
}

impl EntryCheck<'_> {
    fn compare(
        &self,
        writer: &mut EntryWriter<'_>,
        entries: &CellBatch,
        page: &mut CheckPage,
    ) -> store::Result<()> {
        page.entry_count += entries.row_count() as u64;
        let spec = self.check.spec;
        let (mut named, mut gets) = (Vec::new(), Vec::new());
        for entry in entries.rows() {
            match base_key(spec, &entry) {
                Ok(key) => {
                    gets.push(base_reads(spec).get(Get::new(key)));
                    named.push(entry);
                }
                Err(_) => {
                    let keys = (None, entry.key());
                    let extra = DifferenceKind::Extra;
                    page.differences.push(self.check.difference(extra, keys, (Some(&entry), None)));
                }
            }
        }
        let (mut found, mut done) = (CellBatch::new(), 0);
        while done < gets.len() {
            found.clear();
            let count = self.rows.multi_get_some(&gets[done..], CHECK_BYTES, &mut found)?;
            let mut expected: AHashMap<&[u8], Vec<ExpectedEntry>> = AHashMap::new();
            for row in found.rows() {
                expected.insert(row.key(), self.check.expected(writer, &row)?);
            }
            for (entry, get) in named[done..done + count].iter().zip(&gets[done..]) {
                let of_row = expected.get(get.row.as_slice()).map_or(&[][..], Vec::as_slice);
                if of_row.iter().any(|one| one.key == entry.key()) {
                    continue;
                }
                let (kind, keys) = (DifferenceKind::Extra, (Some(&*get.row), entry.key()));
                page.differences.push(self.check.difference(
                    kind,
                    keys,
                    (Some(entry), of_row.first()),
                ));
            }
            done += count;
        }
        Ok(())
    }
}
