//! Range index: right rows of an index nested-loop join, sorted by a key and searched by ranges.
//!
//! Each left row finds the right rows between its bounds by binary search.

use std::sync::Arc;

use types::keycode::{self, prefix_end};
use types::{Batch, DataType, Datum, Vector};

use crate::error::Result;
use crate::exec::Context;
use crate::exec::join_core::JoinCandidates;
use crate::exec::project::columns_of;
use crate::plan::{KeyRange, LookupJoinNode, RangeBound};
use crate::planner::key_term::is_integer;

/// Sorted index of right rows; see the module.
pub(super) struct RangeIndex {
    node: Arc<LookupJoinNode>,
    range: KeyRange,
    /// Encoded keys of the right rows, in order, and their row numbers.
    entries: Vec<(Vec<u8>, u32)>,
    row_count: u32,
    form_bytes: usize,
}

/// Candidates of each row of a batch: a half-open range of entries.
pub(super) struct EntryRanges(Vec<(u32, u32)>);

impl RangeIndex {
    /// Returns an empty index: by the equality keys of the join, then by its range.
    pub(super) fn new(node: &Arc<LookupJoinNode>, range: &KeyRange) -> RangeIndex {
        RangeIndex {
            node: Arc::clone(node),
            range: range.clone(),
            entries: Vec::new(),
            row_count: 0,
            form_bytes: 0,
        }
    }

    /// Returns the entry range of a left row with these keys and bounds.
    fn entries_of(&self, keys: &[u8], bounds: [Option<&[u8]>; 2]) -> (u32, u32) {
        let [low, high] = bounds;
        let is_before = |form: &[u8], bound: &RangeBound, value: &[u8], below: bool| {
            let end = [keys, value].concat();
            // A value equal to the bound has the same encoding, with nothing after it.
            if bound.is_inclusive == below { form < end.as_slice() } else { form <= end.as_slice() }
        };
        let start = self.entries.partition_point(|(form, _)| match (&self.range.low, low) {
            (Some(bound), Some(value)) => is_before(form, bound, value, true),
            _ => form.as_slice() < keys,
        });
        let past = prefix_end(keys).filter(|_| !keys.is_empty());
        let stop =
            self.entries.partition_point(|(form, _)| match (&self.range.high, high, &past) {
                (Some(bound), Some(value), _) => is_before(form, bound, value, false),
                (_, _, Some(past)) => form < past,
                _ => true,
            });
        (start as u32, stop.max(start) as u32)
    }
}

/// Appends the encoding of a value, which is the same for equal values; returns `false` for NULL,
/// which equals nothing.
fn push_form(value: &Datum, data_type: &DataType, form: &mut Vec<u8>) -> Result<bool> {
    let (value, data_type) = match (value.as_i64(), data_type) {
        _ if value.is_null() => return Ok(false),
        (Some(integer), data_type) if is_integer(data_type) => {
            (&Datum::Int8(integer), &DataType::Int8)
        }
        (_, DataType::Varchar | DataType::Name) => (value, &DataType::Text),
        (_, data_type) => (value, data_type),
    };
    keycode::encode(value, data_type, false, false, form)?;
    Ok(true)
}

/// Appends the encodings of a row's values; returns whether none of them is NULL.
fn push_forms(columns: &[(Arc<Vector>, DataType)], row: usize, form: &mut Vec<u8>) -> Result<bool> {
    for (column, data_type) in columns {
        if !push_form(&column.datum(row), data_type, form)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Computes expressions, with their types.
fn typed_columns<'e>(
    expressions: impl Iterator<Item = &'e types::expr::Expr>,
    batch: &Batch,
    context: &Context,
) -> Result<Vec<(Arc<Vector>, DataType)>> {
    let expressions: Vec<_> = expressions.cloned().collect();
    let columns = columns_of(&expressions, batch, &context.eval)?;
    Ok(columns.into_iter().zip(expressions.iter().map(|one| one.data_type().clone())).collect())
}

impl JoinCandidates for RangeIndex {
    type LeftProbe = EntryRanges;

    fn clear(&mut self) {
        self.entries.clear();
        (self.row_count, self.form_bytes) = (0, 0);
    }

    fn add(&mut self, batch: &Batch, context: &Context) -> Result<()> {
        let key = std::iter::once(&self.range.key);
        let columns = typed_columns(self.node.right_keys.iter().chain(key), batch, context)?;
        for row in 0..batch.row_count {
            let mut form = Vec::new();
            if push_forms(&columns, row, &mut form)? {
                self.form_bytes += form.capacity() + size_of::<(Vec<u8>, u32)>();
                self.entries.push((form, self.row_count + row as u32));
            }
        }
        self.row_count += batch.row_count as u32;
        // Rows are usually sorted by the keys already.
        self.entries.sort();
        Ok(())
    }

    fn probe(&self, batch: &Batch, context: &Context) -> Result<EntryRanges> {
        let keys = typed_columns(self.node.left_keys.iter(), batch, context)?;
        let bound = |bound: &Option<RangeBound>| {
            typed_columns(bound.iter().map(|bound| &bound.value), batch, context)
        };
        let (low, high) = (bound(&self.range.low)?, bound(&self.range.high)?);
        let mut ranges = Vec::with_capacity(batch.row_count);
        let (mut key, mut from, mut to) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..batch.row_count {
            [&mut key, &mut from, &mut to].into_iter().for_each(Vec::clear);
            let is_some = push_forms(&keys, row, &mut key)?
                && push_forms(&low, row, &mut from)?
                && push_forms(&high, row, &mut to)?;
            ranges.push(match is_some {
                true => self.entries_of(&key, [Some(&from), Some(&to)]),
                false => (0, 0),
            });
        }
        Ok(EntryRanges(ranges))
    }

    fn first(&self, EntryRanges(ranges): &EntryRanges, left_row: usize) -> Option<u32> {
        let (start, stop) = *ranges.get(left_row)?;
        (start < stop).then_some(start)
    }

    fn after(&self, probe: &EntryRanges, left_row: usize, entry: u32) -> Option<u32> {
        let EntryRanges(ranges) = probe;
        (entry + 1 < ranges[left_row].1).then_some(entry + 1)
    }

    fn row(&self, entry: u32) -> u32 {
        self.entries[entry as usize].1
    }

    fn byte_count(&self) -> usize {
        self.form_bytes
    }
}
