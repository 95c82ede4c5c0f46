//! Cell filters of user code in flushes and compactions: they may drop cells and change values.
//! They cannot add cells or change keys, so cell order is preserved.

use crate::cell::{CellRef, CellType, KeyParts, expiring_value, split_expiring};
use crate::compaction::rewrite::Sink;
use crate::error::Result;

/// Decision about a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CellVerdict {
    /// It is written unchanged.
    Keep,
    /// It is not written.
    Drop,
    /// It is written with this value.
    Change(Vec<u8>),
}

/// Filter of the cells that a flush or a compaction is about to write to one family.
///
/// It is called for versions of columns, in cell order, after retention (versions, TTL, deletes)
/// has dropped cells; never for delete markers, because the cells that they mask may be in
/// another file. Two properties to note:
///
/// * A dropped version disappears for all readers, including open snapshots, and an older version
///   of the column may become visible instead.
/// * A cell passes the filter each time it is rewritten, and perhaps never: files that a
///   compaction moves or leaves as they are, are not read. A decision must not depend on the
///   number of calls.
pub trait CellFilter: Send {
    /// Decides about a cell.
    ///
    /// # Errors
    ///
    /// Fails the flush or compaction: nothing of it becomes live, and it is retried later.
    fn judge(&mut self, cell: &CellRef<'_>) -> Result<CellVerdict>;
}

/// A sink that applies a filter first.
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
