//! Rows with the terms of an inverted index that a condition needs: the entries of each term, which
//! are in the order of the primary key, are merged.
//!
//! ```text
//!   term a   salt 0   1   4   9 ...  \
//!            salt 1   2   7 ...       > any: 1 2 4 7 9 \
//!   term b            4   5   7 ...  -----------------  > all: 4 7
//! ```
//!
//! A conjunction lets the input with the least key skip to the greatest: within the rows that were
//! read, else by a new scan. A rare term therefore reads little of a frequent one. A term with so
//! many more entries than another that to read them takes longer than to fetch the rows is left
//! out: the condition is evaluated on the rows in any case.

use std::sync::Arc;

use coprocessors::columns::SectionsOfGet;
use coprocessors::row::ReadColumns;
use store::transaction::TableReader;
use store::{CellBatch, RowRef};
use types::expr::EvalContext;
use types::inverted::{TermOperator, TermQuery};
use types::keycode::{self, prefix_end};
use types::rowcode::RowLayout;
use types::vector::{BATCH_BYTES, BATCH_ROWS};
use types::{DataType, Datum};

use crate::error::{Error, Result};
use crate::exec::Context;
use crate::exec::key_range::{RowRange, as_key, base_rows};
use crate::exec::range_reader::{RangeReader, RowOptions, copy_row};
use crate::exec::time_travel::ScanVersions;
use crate::plan::scan::{AccessPath, InvertedCondition, ScanNode};

/// Maximum number of inputs: terms by salt buckets.
const INPUTS_MAX: usize = 256;
/// Number of rows of the first batch of an input.
const FIRST_ROWS: usize = 32;
/// Maximum number of rows of the batches of all inputs.
const ROWS_MAX: usize = 16 * BATCH_ROWS;

/// Number of entries that a conjunction reads before it leaves out terms.
const COMPARED_ENTRIES: u64 = 2048;
/// Number of entries that are read in the time that it takes to fetch a row and to evaluate the
/// condition on it.
const ENTRIES_PER_ROW: u64 = 24;

/// Returns the terms that a condition needs.
pub(super) fn query(
    condition: &InvertedCondition,
    path: &AccessPath,
    eval: &EvalContext,
) -> Result<TermQuery> {
    let Some((class, key)) = path.index.as_ref().and_then(|index| {
        let spec = &index.spec;
        Some((spec.inverted?, spec.keys.first()?))
    }) else {
        return Ok(TermQuery::All);
    };
    let data_type = key.data_type();
    condition.query(&|operator, operand| {
        let mut operand = operand.eval_row(&[], eval)?;
        if operator == TermOperator::Element
            && let Some(element) = data_type.element()
        {
            let Some(value) = as_key(&operand, element) else { return Ok(TermQuery::None) };
            operand = value;
        }
        Ok(class.query(operator, &operand, data_type)?)
    })
}

/// Returns the scan that reads the rows: the scan itself, or its
/// [alternative](ScanNode::without_index) if the terms of its condition restrict nothing, are too
/// many, or have [many rows](ScanNode::index_rows_max).
pub(super) fn restricted(
    node: Arc<ScanNode>,
    versions: ScanVersions,
    context: &Context,
) -> Result<Arc<ScanNode>> {
    let (Some(condition), Some(without_index)) = (&node.path.inverted, &node.without_index) else {
        return Ok(node);
    };
    let query = query(condition, &node.path, &context.eval)?;
    let inputs = query.term_count() * usize::from(node.path.layout.salt_buckets).max(1);
    let is_unrestricted = query == TermQuery::All || inputs > INPUTS_MAX;
    match is_unrestricted || has_many_rows(&query, &node, (versions, context))? {
        true => Ok(Arc::clone(without_index)),
        false => Ok(node),
    }
}

/// Returns whether more rows have the terms than an index scan should fetch. Reads the entries of
/// no more.
fn has_many_rows(
    query: &TermQuery,
    node: &ScanNode,
    (versions, context): (ScanVersions, &Context),
) -> Result<bool> {
    let Some(rows_max) = node.index_rows_max else { return Ok(false) };
    let path = &node.path;
    let table = Arc::new(context.path_reader(path)?);
    let options = RowOptions {
        columns: ReadColumns::of(&path.layout, &[]),
        sections: SectionsOfGet::default(),
        versions,
        limit: None,
        reverse: false,
        base_rows: base_rows(path, &context.eval)?,
        skip: None,
    };
    let mut merge = TermMerge::open(query, &path.layout, (&table, &options))?;
    let (mut rows, mut row_count) = (CellBatch::new(), 0);
    while row_count <= rows_max && merge.next(BATCH_ROWS, &mut rows, context)? {
        row_count += rows.row_count() as u64;
        rows.clear();
    }
    Ok(row_count > rows_max)
}

/// Returns the key ranges of a term, without salt bytes: all entries with it.
pub(super) fn range_of(term: &[u8]) -> Result<RowRange> {
    let mut start = Vec::with_capacity(term.len() + 3);
    keycode::encode(&Datum::bytea(term), &DataType::Bytea, false, false, &mut start)?;
    Ok(RowRange { stop: prefix_end(&start), start })
}

/// Merge of the entries of several terms; see the module. Returns one entry of each row.
pub(super) struct TermMerge {
    root: MergeNode,
}

enum MergeNode {
    Entries(Box<EntryInput>),
    /// Rows of one of the inputs.
    Any(Vec<MergeNode>),
    /// Rows of all inputs, which are at the same key.
    All(Vec<MergeNode>),
}

/// Entries of one term, of one salt bucket.
struct EntryInput {
    /// Length of the bytes before the primary key.
    prefix: usize,
    range: RowRange,
    reader: RangeReader,
    cells: CellBatch,
    next: usize,
    batch_rows: usize,
    entries_read: u64,
    source: EntrySource,
}

/// Source of the scans of an input.
#[derive(Clone)]
struct EntrySource {
    table: Arc<TableReader>,
    options: RowOptions,
    batch_rows_max: usize,
}

impl TermMerge {
    /// Opens the scans of the terms.
    pub(super) fn open(
        query: &TermQuery,
        layout: &RowLayout,
        (table, options): (&Arc<TableReader>, &RowOptions),
    ) -> Result<TermMerge> {
        let inputs = query.term_count() * usize::from(layout.salt_buckets).max(1);
        let batch_rows_max = (ROWS_MAX / inputs.max(1)).clamp(FIRST_ROWS, BATCH_ROWS);
        let (table, options) = (Arc::clone(table), options.clone());
        let source = EntrySource { table, options, batch_rows_max };
        Ok(TermMerge { root: MergeNode::open(query, layout, &source)? })
    }

    /// Appends the next entries to `out`, at most `row_limit`. Returns whether there are any.
    pub(super) fn next(
        &mut self,
        row_limit: usize,
        out: &mut CellBatch,
        context: &Context,
    ) -> Result<bool> {
        while out.row_count() < row_limit && out.byte_count() < BATCH_BYTES {
            let Some(entry) = self.root.entry() else { break };
            copy_row(&entry, out);
            self.root.advance(context)?;
        }
        Ok(!out.is_empty())
    }
}

impl MergeNode {
    fn open(query: &TermQuery, layout: &RowLayout, source: &EntrySource) -> Result<MergeNode> {
        let all = |queries: &[TermQuery]| -> Result<Vec<MergeNode>> {
            queries.iter().map(|query| MergeNode::open(query, layout, source)).collect()
        };
        match query {
            TermQuery::Term(term) => {
                let range = range_of(term)?;
                match layout.salt_buckets {
                    0 => Ok(MergeNode::Entries(EntryInput::open(range, 0, source)?.into())),
                    buckets => {
                        let inputs = (0..buckets).map(|bucket| {
                            let range = range.salted(bucket as u8);
                            let input = EntryInput::open(range, 1, source)?;
                            Ok(MergeNode::Entries(input.into()))
                        });
                        Ok(MergeNode::Any(inputs.collect::<Result<_>>()?))
                    }
                }
            }
            TermQuery::Or(queries) => Ok(MergeNode::Any(all(queries)?)),
            TermQuery::And(queries) => {
                let mut inputs = all(queries)?;
                align(&mut inputs)?;
                Ok(MergeNode::All(inputs))
            }
            TermQuery::None => Ok(MergeNode::Any(Vec::new())),
            TermQuery::All => bail!(INTERNAL_ERROR: "a scan of an inverted index without terms"),
        }
    }

    /// Returns the entry of the current row; `None` at the end.
    fn entry(&self) -> Option<RowRef<'_>> {
        match self {
            MergeNode::Entries(input) => input.entry(),
            MergeNode::Any(inputs) => first(inputs)?.entry(),
            MergeNode::All(inputs) => inputs.first()?.entry(),
        }
    }

    /// Returns the primary key of the current row; `None` at the end.
    fn key(&self) -> Option<&[u8]> {
        match self {
            MergeNode::Entries(input) => input.key(),
            MergeNode::Any(inputs) => first(inputs)?.key(),
            MergeNode::All(inputs) => inputs.first()?.key(),
        }
    }

    /// Continues with the next row.
    fn advance(&mut self, context: &Context) -> Result<()> {
        match self {
            MergeNode::Entries(input) => input.advance(),
            MergeNode::Any(inputs) => {
                let Some(key) = first(inputs).and_then(MergeNode::key) else { return Ok(()) };
                let key = key.to_vec();
                let mut current = inputs.iter_mut().filter(|one| one.key() == Some(&key[..]));
                current.try_for_each(|one| one.advance(context))
            }
            MergeNode::All(inputs) => {
                context.check()?;
                leave_out_frequent(inputs);
                if let Some(input) = inputs.first_mut() {
                    input.advance(context)?;
                }
                align(inputs)
            }
        }
    }

    /// Returns the number of entries that were read.
    fn entries_read(&self) -> u64 {
        match self {
            MergeNode::Entries(input) => input.entries_read,
            MergeNode::Any(inputs) => inputs.iter().map(MergeNode::entries_read).sum(),
            MergeNode::All(inputs) => inputs.iter().map(MergeNode::entries_read).min().unwrap_or(0),
        }
    }

    /// Skips to the first row whose key is not less than `key`.
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        match self {
            MergeNode::Entries(input) => input.seek(key),
            MergeNode::Any(inputs) => inputs.iter_mut().try_for_each(|one| one.seek(key)),
            MergeNode::All(inputs) => {
                inputs.iter_mut().try_for_each(|one| one.seek(key))?;
                align(inputs)
            }
        }
    }
}

/// Returns the input with the least key.
fn first(inputs: &[MergeNode]) -> Option<&MergeNode> {
    let present = inputs.iter().filter_map(|one| Some((one.key()?, one)));
    present.min_by_key(|(key, _)| *key).map(|(_, one)| one)
}

/// Removes the inputs of a conjunction that cost more to read than the rows that they exclude.
/// All inputs are at the same key, so the entries that were read tell how frequent a term is.
fn leave_out_frequent(inputs: &mut Vec<MergeNode>) {
    let read = || inputs.iter().map(MergeNode::entries_read);
    if inputs.len() > 1 && read().sum::<u64>() >= COMPARED_ENTRIES {
        let least = read().min().unwrap_or(0).max(1);
        inputs.retain(|one| one.entries_read() <= least * ENTRIES_PER_ROW);
    }
}

/// Lets all inputs skip to the first key that they share, or to the end.
fn align(inputs: &mut Vec<MergeNode>) -> Result<()> {
    loop {
        let greatest = inputs.iter().map(MergeNode::key).try_fold(&[][..], |a, b| Some(a.max(b?)));
        let Some(greatest) = greatest.map(<[u8]>::to_vec) else {
            inputs.clear();
            return Ok(());
        };
        let Some(behind) = inputs.iter_mut().find(|one| one.key() != Some(&greatest[..])) else {
            return Ok(());
        };
        behind.seek(&greatest)?;
    }
}

impl EntryInput {
    fn open(range: RowRange, salt_bytes: usize, source: &EntrySource) -> Result<EntryInput> {
        let mut input = EntryInput {
            prefix: range.start.len(),
            reader: source.reader(range.clone()),
            range,
            cells: CellBatch::new(),
            next: 0,
            batch_rows: FIRST_ROWS,
            entries_read: 0,
            source: source.clone(),
        };
        debug_assert!(input.prefix > salt_bytes, "a range of a term");
        input.read()?;
        Ok(input)
    }

    fn entry(&self) -> Option<RowRef<'_>> {
        (self.next < self.cells.row_count()).then(|| self.cells.row(self.next))
    }

    fn key(&self) -> Option<&[u8]> {
        (self.next < self.cells.row_count()).then(|| self.key_of(self.next))
    }

    fn key_of(&self, row: usize) -> &[u8] {
        &self.cells.row(row).key()[self.prefix..]
    }

    /// Reads the next batch.
    fn read(&mut self) -> Result<()> {
        (self.next, self.cells) = (0, std::mem::take(&mut self.cells));
        self.cells.clear();
        self.reader.next_cells(self.batch_rows, &mut self.cells)?;
        self.entries_read += self.cells.row_count() as u64;
        self.batch_rows = (self.batch_rows * 4).min(self.source.batch_rows_max);
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        self.next += 1;
        if self.next == self.cells.row_count() { self.read() } else { Ok(()) }
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.skip_in_batch(key);
        if self.key().is_none() && !self.cells.is_empty() {
            self.read()?;
            self.skip_in_batch(key);
        }
        if self.key().is_none() && !self.cells.is_empty() {
            let start = [&self.range.start, key].concat();
            self.reader = self.source.reader(RowRange { start, stop: self.range.stop.clone() });
            self.batch_rows = FIRST_ROWS;
            self.read()?;
        }
        Ok(())
    }

    /// Skips the rows of the batch with lesser keys.
    fn skip_in_batch(&mut self, key: &[u8]) {
        let (mut from, mut to) = (self.next, self.cells.row_count());
        while from < to {
            let middle = from.midpoint(to);
            match self.key_of(middle) < key {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        self.next = from;
    }
}

impl EntrySource {
    fn reader(&self, range: RowRange) -> RangeReader {
        RangeReader::new(&self.table, [range], &self.options)
    }
}
