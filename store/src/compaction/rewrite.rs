//! Rewrite loop of flushes and compactions: passes the cells that retention keeps to a sink.

use crate::cell::{KeyParts, compare_keys};
use crate::error::Result;
use crate::scan::merge::Cursor;
use crate::scan::retention::{Retention, Verdict};

/// Cells between two progress reports.
const REPORT_CELLS: u64 = 1024;
/// Bytes between two progress reports.
const REPORT_BYTES: u64 = 256 << 10;

/// Consumer of cells in cell order.
pub trait Sink {
    /// Begins a row, which may have no cells.
    fn start_row(&mut self) -> Result<()>;

    /// Adds a cell by its encoded key.
    fn add(&mut self, key: &[u8], parts: &KeyParts<'_>, value: &[u8]) -> Result<()>;
}

/// Observer of a rewrite's progress.
pub trait RewriteProgress {
    /// Reports cells that were read since the last call; may wait.
    ///
    /// # Errors
    ///
    /// An error ends the rewrite.
    fn advanced(&self, cells: u64, bytes: u64) -> Result<()>;
}

/// Progress observer without effect.
#[derive(Debug, Clone, Copy)]
pub struct NoProgress;

impl RewriteProgress for NoProgress {
    fn advanced(&self, _cells: u64, _bytes: u64) -> Result<()> {
        Ok(())
    }
}

/// Passes the cells of a source that retention keeps, up to the row `stop`, to a sink, and
/// returns the number of cells read.
pub fn rewrite(
    source: &mut impl Cursor,
    stop: Option<&[u8]>,
    retention: &mut Retention,
    sink: &mut impl Sink,
    progress: &impl RewriteProgress,
) -> Result<u64> {
    let (mut cells_in, mut cells, mut bytes) = (0, 0, 0);
    let mut previous: Vec<u8> = Vec::new();
    let mut row_length = usize::MAX;
    while let Some(key) = source.key() {
        bytes += (key.len() + source.value().len()) as u64;
        // A cell that is in two sources is written once.
        if let Some(parts) = KeyParts::decode(key)
            && previous != key
        {
            debug_assert!(
                previous.is_empty() || compare_keys(&previous, key).is_lt(),
                "the cells of a merge ascend"
            );
            cells += 1;
            let same_row = row_length == parts.row.len() && previous.starts_with(parts.row);
            if !same_row {
                if stop.is_some_and(|stop| parts.row >= stop) {
                    break;
                }
                row_length = parts.row.len();
                retention.start_row();
                sink.start_row()?;
            }
            if retention.judge(&parts, || source.value()) == Verdict::Keep {
                sink.add(key, &parts, source.value())?;
            }
            previous.clear();
            previous.extend_from_slice(key);
        }
        if cells >= REPORT_CELLS || bytes >= REPORT_BYTES {
            cells_in += cells;
            progress.advanced(cells, bytes)?;
            (cells, bytes) = (0, 0);
        }
        source.advance()?;
    }
    progress.advanced(cells, bytes)?;
    Ok(cells_in + cells)
}
