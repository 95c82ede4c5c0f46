//! What user code does to the cells that a flush or a compaction writes: it may drop some and
//! change the values of others. It cannot add cells or change keys, so cell order is kept.

use crate::cell::{CellRef, CellType, KeyParts, expiring_value, split_expiring};
use crate::compaction::rewrite::Sink;
use crate::error::Result;

/// What becomes of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellVerdict {
    /// It is written as it is.
    Keep,
    /// It is not written.
    Drop,
    /// It is written with this value.
    Change(Vec<u8>),
}

/// Decides about the cells that a flush or a compaction is about to write to one family.
///
/// It is asked about versions of columns, in cell order, after retention (versions, TTL, deletes)
/// has left out what need not be kept; never about delete markers, because what they mask may be in
/// another file. Two things to know:
///
/// * A version that is dropped is gone for everybody, open snapshots included, and an older version
///   of the column may be seen in its place.
/// * A cell meets the filter again each time it is rewritten, and perhaps never: files that a
///   compaction moves or keeps as they are, are not read. A verdict must not depend on how often it
///   was asked.
pub trait CellFilter: Send {
    /// Returns what becomes of a cell.
    ///
    /// # Errors
    ///
    /// Ends the flush or compaction: nothing of it becomes live, and it is tried again later.
    fn judge(&mut self, cell: &CellRef<'_>) -> Result<CellVerdict>;
}

/// A sink behind a filter.
pub(crate) struct FilteredSink<'a, S> {
    pub(crate) sink: &'a mut S,
    pub(crate) filter: &'a mut dyn CellFilter,
    pub(crate) family: u8,
    /// Set once the filter has dropped a cell.
    pub(crate) dropped: &'a mut bool,
}

impl<S: Sink> Sink for FilteredSink<'_, S> {
    fn start_row(&mut self) -> Result<()> {
        self.sink.start_row()
    }

    fn add(&mut self, key: &[u8], parts: &KeyParts<'_>, value: &[u8]) -> Result<()> {
        if !parts.cell_type.is_put() {
            return self.sink.add(key, parts, value);
        }
        match self.filter.judge(&CellRef::of_stored(self.family, parts, value))? {
            CellVerdict::Keep => self.sink.add(key, parts, value),
            CellVerdict::Drop => {
                *self.dropped = true;
                Ok(())
            }
            CellVerdict::Change(changed) => {
                let expiring = match parts.cell_type {
                    CellType::ExpiringPut => split_expiring(value),
                    _ => None,
                };
                match expiring {
                    None => self.sink.add(key, parts, &changed),
                    Some((ttl, _)) => self.sink.add(key, parts, &expiring_value(ttl, &changed)),
                }
            }
        }
    }
}
