//! Text dump of a store file: `bennu job storefile`; without output, its verification: `CHECK
//! STORE`.
//!
//! A dump reads every byte of the file through its checksums, and checks the invariants of
//! readers: keys ascend, the index has the last key of each block, filters admit every existing
//! row, and the counts match the properties.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cache::{BlockCache, FamilyCache};
use crate::cell::{KeyParts, compare_keys};
use crate::descriptor::BloomFilter;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::file::columnar::KnownLayout;
use crate::file::encoding::{AnyCursor, BlockCursor, Malformed, prepare};
use crate::file::format::{
    BlockHandle, BlockKind, FILE_VERSION, TRAILER_BYTES, open_block, u32_at,
};
use crate::file::index::{TreeRoot, child};
use crate::file::properties::FileProperties;
use crate::file::reader::StoreFile;
use crate::file::row_block::RowBlock;

/// Bytes of the cache for blocks of filters.
const FILTER_CACHE_BYTES: u64 = 1 << 20;

/// Optional parts of a dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DumpSpec {
    /// True to show each block with its offset and sizes.
    pub blocks: bool,
    /// True to show each cell.
    pub cells: bool,
}

/// Writes a text dump of a store file to `out`.
///
/// # Errors
///
/// [`Error::Corrupt`] at the first damage; [`Error::Io`] if the file cannot be read or `out`
/// cannot be written.
pub fn dump(env: Arc<dyn Env>, path: &Path, spec: DumpSpec, out: &mut dyn Write) -> Result<()> {
    read_whole(env, path, (spec, &AtomicBool::new(false)), out)
}

/// Reads and checks a whole store file.
///
/// # Errors
///
/// [`Error::Corrupt`] at the first damage; [`Error::Io`]; [`Error::Cancelled`].
pub fn verify(env: Arc<dyn Env>, path: &Path, cancelled: &AtomicBool) -> Result<()> {
    read_whole(env, path, (DumpSpec::default(), cancelled), &mut std::io::sink())
}

fn read_whole(
    env: Arc<dyn Env>,
    path: &Path,
    (spec, cancelled): (DumpSpec, &AtomicBool),
    out: &mut dyn Write,
) -> Result<()> {
    // Each block of a filter is used by many neighbouring rows.
    let cache = Arc::new(BlockCache::new(FILTER_CACHE_BYTES));
    let file = StoreFile::open(env, path, Arc::new(FamilyCache::new(cache)))?;
    let (ranges, state) = (Vec::new(), DumpCounts::default());
    let mut dump = Dump { file: &file, path, spec, cancelled, out, ranges, state };
    dump.properties()?;
    dump.tree(file.properties().bloom_index, BlockKind::Bloom)?;
    dump.tree(file.properties().data_index, BlockKind::Data)?;
    dump.check_whole()
}

struct Dump<'a> {
    file: &'a StoreFile,
    path: &'a Path,
    spec: DumpSpec,
    cancelled: &'a AtomicBool,
    out: &'a mut dyn Write,
    /// Byte ranges of the blocks read.
    ranges: Vec<(u64, u64)>,
    state: DumpCounts,
}

/// Counts so far.
#[derive(Default)]
struct DumpCounts {
    cell_count: u64,
    row_count: u64,
    data_blocks: u64,
    index_blocks: u64,
    bloom_blocks: u64,
    previous_key: Vec<u8>,
    known_layout: KnownLayout,
}

impl Dump<'_> {
    fn line(&mut self, line: &str) -> Result<()> {
        writeln!(self.out, "{line}").map_err(|source| Error::io(self.path, source))
    }

    fn corrupt(&self, offset: u64, detail: &str) -> Error {
        Error::corrupt(self.path, offset, detail)
    }

    fn properties(&mut self) -> Result<()> {
        let properties: &FileProperties = self.file.properties();
        let [puts, deletes, family_versions, columns, families] = properties.type_counts;
        let filter = match properties.bloom_filter {
            BloomFilter::None => "none",
            BloomFilter::Row => "rows",
            BloomFilter::RowCol => "rows and columns",
        };
        let tree = |root: TreeRoot| match root.levels {
            0 => "none".to_owned(),
            levels => {
                format!("{levels}, root of {} bytes at {}", root.handle.size, root.handle.offset)
            }
        };
        let puts_from = match puts {
            0 => String::new(),
            _ => format!(", puts from {}", properties.min_put_timestamp.0),
        };
        let lines = [
            format!("store file, version {FILE_VERSION}, {} bytes", self.file.byte_count()),
            format!(
                "rows: {}, from {} to {}",
                properties.row_count,
                text(&properties.first_row),
                text(&properties.last_row)
            ),
            format!(
                "cells: {}, {} bytes of keys and values",
                properties.cell_count, properties.raw_bytes
            ),
            format!(
                "puts: {puts}, deletes: {deletes} of versions, {columns} of columns, {families} of \
                 families, {family_versions} of family versions"
            ),
            format!(
                "timestamps: {} to {}{puts_from}",
                properties.min_timestamp.0, properties.max_timestamp.0
            ),
            format!(
                "sequence numbers: {} to {}",
                properties.min_sequence.0, properties.max_sequence.0
            ),
            format!("filter: {filter}; index levels: {}", tree(properties.bloom_index)),
            format!("data index levels: {}", tree(properties.data_index)),
        ];
        lines.iter().try_for_each(|line| self.line(line))
    }

    /// Reads and checks a block, and shows it if requested.
    fn frame(&mut self, kind: BlockKind, handle: BlockHandle) -> Result<Vec<u8>> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let framed = self.file.framed(handle)?;
        self.ranges.push((handle.offset, handle.offset + u64::from(handle.size)));
        if self.spec.blocks {
            let kind = match kind {
                BlockKind::Data => "data",
                BlockKind::Bloom => "bloom",
                BlockKind::Index => "index",
                BlockKind::Properties => "properties",
            };
            // The header is complete: the file has checked the length of a block already.
            let at = |index: usize| framed.get(index).copied().unwrap_or_default();
            let compression = match at(1) {
                0 => "not compressed",
                1 => "lz4",
                2 => "zstd",
                _ => "unknown compression",
            };
            let layout = match (at(0), at(2)) {
                (1, 1) => ", rows",
                (1, 2 | 3) => ", columnar",
                _ => "",
            };
            let raw_bytes = u32_at(&framed, 4).unwrap_or_default();
            let line = format!(
                "block at {}: {kind}{layout}, {} bytes, {raw_bytes} raw, {compression}",
                handle.offset, handle.size
            );
            self.line(&line)?;
        }
        Ok(framed)
    }

    fn tree(&mut self, root: TreeRoot, leaves: BlockKind) -> Result<()> {
        match root.levels {
            0 => Ok(()),
            levels => self.branch(root.handle, levels, leaves, None),
        }
    }

    /// Reads an index block and all blocks below it. `last` is the key of its entry.
    fn branch(
        &mut self,
        handle: BlockHandle,
        levels: u8,
        leaves: BlockKind,
        last: Option<&[u8]>,
    ) -> Result<()> {
        let framed = self.frame(BlockKind::Index, handle)?;
        self.state.index_blocks += 1;
        let block = open_block(BlockKind::Index, &framed)
            .map_err(|detail| Error::corrupt(self.path, handle.offset, detail))?;
        let file = self.file;
        let malformed = |Malformed| file.malformed_index(handle.offset);
        let view = RowBlock::of(block.bytes()).map_err(malformed)?;
        let mut key: &[u8] = &[];
        for entry in 0..view.restart_count() {
            key = view.restart(entry).map_err(malformed)?.0;
            let below = child(view, entry).map_err(malformed)?;
            match leaves {
                _ if levels > 1 => self.branch(below, levels - 1, leaves, Some(key))?,
                BlockKind::Data => self.data(below, key)?,
                _ => self.bloom(below)?,
            }
        }
        match last {
            Some(last) if last != key => {
                Err(self.corrupt(handle.offset, "last key of the block does not match the index"))
            }
            _ => Ok(()),
        }
    }

    fn bloom(&mut self, handle: BlockHandle) -> Result<()> {
        let framed = self.frame(BlockKind::Bloom, handle)?;
        self.state.bloom_blocks += 1;
        open_block(BlockKind::Bloom, &framed)
            .map(|_| ())
            .map_err(|detail| Error::corrupt(self.path, handle.offset, detail))
    }

    fn data(&mut self, handle: BlockHandle, last: &[u8]) -> Result<()> {
        let framed = self.frame(BlockKind::Data, handle)?;
        self.state.data_blocks += 1;
        let block = open_block(BlockKind::Data, &framed)
            .map_err(|detail| Error::corrupt(self.path, handle.offset, detail))?;
        let path = self.path;
        let corrupt = || Error::corrupt(path, handle.offset, "the block is malformed");
        let malformed = |Malformed| corrupt();
        let mut cursor = AnyCursor::default();
        let block = prepare(block, &self.state.known_layout).map_err(malformed)?;
        cursor.open(block).map_err(malformed)?;
        cursor.first().map_err(|_| corrupt())?;
        while let Some(key) = cursor.key() {
            self.cell(handle, key, cursor.value())?;
            cursor.advance().map_err(|_| corrupt())?;
        }
        if self.state.previous_key != last {
            return Err(
                self.corrupt(handle.offset, "last key of the block does not match the index")
            );
        }
        Ok(())
    }

    fn cell(&mut self, handle: BlockHandle, key: &[u8], value: &[u8]) -> Result<()> {
        let Some(parts) = KeyParts::decode(key) else {
            return Err(self.corrupt(handle.offset, "the key of a cell is malformed"));
        };
        let previous = std::mem::take(&mut self.state.previous_key);
        if !previous.is_empty() && compare_keys(&previous, key).is_ge() {
            return Err(self.corrupt(handle.offset, "cells are not in ascending order"));
        }
        let is_new_row = previous.is_empty() || crate::cell::row_of(&previous) != parts.row;
        self.state.previous_key = previous;
        self.state.previous_key.clear();
        self.state.previous_key.extend_from_slice(key);
        self.state.cell_count += 1;
        self.state.row_count += u64::from(is_new_row);
        let is_admitted = self.file.may_contain_row(parts.row)?
            && (parts.cell_type.is_family_marker()
                || self.file.may_contain_column(parts.row, parts.qualifier)?);
        if !is_admitted {
            return Err(self.corrupt(
                handle.offset,
                "bloom filter has a false negative for a cell of the block",
            ));
        }
        if self.spec.cells {
            let line = format!(
                "{} {} @{} #{} {:?} = {}",
                text(parts.row),
                text(parts.qualifier),
                parts.timestamp.0,
                parts.sequence.0,
                parts.cell_type,
                text(value)
            );
            self.line(&line)?;
        }
        Ok(())
    }

    /// Checks the counts, and that the blocks cover the whole file.
    fn check_whole(&mut self) -> Result<()> {
        let handle = self.file.properties_handle();
        self.frame(BlockKind::Properties, handle)?;
        let properties = self.file.properties();
        let counts = (self.state.cell_count, self.state.row_count);
        if counts != (properties.cell_count, properties.row_count) {
            let detail =
                format!("{} cells in {} rows do not match the file properties", counts.0, counts.1);
            return Err(self.corrupt(handle.offset, &detail));
        }
        self.ranges.sort_unstable();
        let mut end = 0;
        for &(start, block_end) in &self.ranges {
            if start != end {
                return Err(self.corrupt(end, "no block, or more than one, begins at this offset"));
            }
            end = block_end;
        }
        if end + TRAILER_BYTES as u64 != self.file.byte_count() {
            return Err(self.corrupt(end, "no block, or more than one, begins at this offset"));
        }
        let DumpCounts { data_blocks, index_blocks, bloom_blocks, .. } = self.state;
        let line = format!(
            "all blocks are valid: {data_blocks} data, {index_blocks} index, {bloom_blocks} bloom \
             blocks"
        );
        self.line(&line)
    }
}

/// Returns quoted bytes, with unprintable ones in hexadecimal.
fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests;
