//! The loop that flush and compaction share: what retention keeps of a source goes to a sink.

use crate::cell::KeyParts;
use crate::error::Result;
use crate::scan::merge::Cursor;
use crate::scan::retention::{Retention, Verdict};

/// Cells between two reports.
const REPORT_CELLS: u64 = 1024;
/// Bytes between two reports.
const REPORT_BYTES: u64 = 256 << 10;

/// Takes cells in cell order.
pub trait Sink {
    /// Begins a row. It may stay without cells.
    fn start_row(&mut self) -> Result<()>;

    /// Takes a cell by its encoded key.
    fn add(&mut self, key: &[u8], parts: &KeyParts<'_>, value: &[u8]) -> Result<()>;
}

/// Watches a rewrite.
pub trait Progress {
    /// Takes note of cells that were read since the last call; may wait.
    ///
    /// # Errors
    ///
    /// The rewrite ends with it.
    fn advanced(&self, cells: u64, bytes: u64) -> Result<()>;
}

/// Lets a rewrite run on its own.
#[derive(Debug, Clone, Copy)]
pub struct Unwatched;

impl Progress for Unwatched {
    fn advanced(&self, _cells: u64, _bytes: u64) -> Result<()> {
        Ok(())
    }
}

/// Streams what retention keeps of a source, up to a row at which others begin, into a sink, and
/// returns the number of cells read.
pub fn rewrite(
    source: &mut impl Cursor,
    stop: Option<&[u8]>,
    retention: &mut Retention,
    sink: &mut impl Sink,
    progress: &impl Progress,
) -> Result<u64> {
    let (mut cells_in, mut cells, mut bytes) = (0, 0, 0);
    let mut previous: Vec<u8> = Vec::new();
    let mut row_length = usize::MAX;
    while let Some(key) = source.key() {
        bytes += (key.len() + source.value().len()) as u64;
        // The same cell in two sources: once is enough.
        if let Some(parts) = KeyParts::decode(key)
            && previous != key
        {
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
