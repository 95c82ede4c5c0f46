//! Writes a store file from a stream of cells. Holds one data block, one bloom chunk and the index;
//! never the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cell::{KeyParts, compare_keys};
use crate::descriptor::{BloomFilter, Compression, FamilyDescriptor};
use crate::env::{AppendFile, Env};
use crate::error::{Error, Result};
use crate::file::bloom::{self, CHUNK_KEY_COUNT};
use crate::file::encoding::{AnyBuilder, BlockBuilder, encoding_code};
use crate::file::format::{BlockFrame, BlockHandle, BlockKind, FileProperties};
use crate::file::format::{append_block, trailer};
use crate::file::index::Index;

/// Bytes gathered before they are given to the system.
const OUTPUT_BYTES: usize = 256 << 10;
/// Keys and values of one cell together must stay below this, so that offsets in a block fit.
const CELL_BYTES_MAX: usize = 1 << 30;

/// A store file being written.
pub struct FileWriter {
    env: Arc<dyn Env>,
    path: PathBuf,
    /// Created with the first bytes, so that an empty flush leaves no file.
    file: Option<Box<dyn AppendFile>>,
    compression: Compression,
    encoding: u8,
    block_bytes: usize,
    block: AnyBuilder,
    /// Raw bytes of the block that is being finished.
    raw: Vec<u8>,
    previous_key: Vec<u8>,
    output: Vec<u8>,
    /// Bytes given to the system.
    written_bytes: u64,
    data_index: Index,
    bloom_index: Index,
    bloom_hashes: Vec<u64>,
    bloom_filter: Vec<u8>,
    properties: FileProperties,
}

impl FileWriter {
    /// Returns a writer of a file that does not exist yet.
    pub fn new(env: Arc<dyn Env>, path: &Path, family: &FamilyDescriptor) -> FileWriter {
        FileWriter {
            env,
            path: path.to_owned(),
            file: None,
            compression: family.compression,
            encoding: encoding_code(family.data_block_encoding),
            block_bytes: family.block_bytes as usize,
            block: AnyBuilder::new(family),
            raw: Vec::new(),
            previous_key: Vec::new(),
            output: Vec::new(),
            written_bytes: 0,
            data_index: Index::default(),
            bloom_index: Index::default(),
            bloom_hashes: Vec::new(),
            bloom_filter: Vec::new(),
            properties: FileProperties::new(family.bloom_filter),
        }
    }

    /// Returns the number of cells added.
    pub fn cell_count(&self) -> u64 {
        self.properties.cell_count
    }

    /// Returns the bytes of the finished blocks.
    pub fn byte_count(&self) -> u64 {
        self.written_bytes + self.output.len() as u64
    }

    /// Adds a cell by its encoded key.
    ///
    /// # Panics
    ///
    /// If the key is not one, or is not after the key added before it: the file would give wrong
    /// answers for as long as it lives.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let parts = KeyParts::decode(key).expect("the writer is given encoded keys");
        let is_first = self.properties.cell_count == 0;
        assert!(
            is_first || compare_keys(&self.previous_key, key).is_lt(),
            "cells of a store file must ascend"
        );
        if key.len() + value.len() > CELL_BYTES_MAX {
            let detail = format!("a cell of {} bytes is too large", value.len());
            return Err(Error::InvalidRequest(detail));
        }
        if is_first {
            self.properties.first_row = parts.row.to_vec();
        }
        self.count_bloom(&parts, is_first)?;
        let cell_bytes = key.len() + value.len();
        if !self.block.is_empty() && self.block.byte_count() + cell_bytes > self.block_bytes {
            self.finish_block()?;
        }
        self.block.add(key, value);
        self.properties.count(&parts, cell_bytes);
        self.previous_key.clear();
        self.previous_key.extend_from_slice(key);
        Ok(())
    }

    fn count_bloom(&mut self, parts: &KeyParts<'_>, is_first: bool) -> Result<()> {
        let kind = self.properties.bloom_filter;
        if kind == BloomFilter::None {
            return Ok(());
        }
        let (row, qualifier) = if is_first {
            (None, None)
        } else {
            let (row, qualifier) = crate::cell::column_of(&self.previous_key);
            (Some(row), Some(qualifier))
        };
        let new_row = row != Some(parts.row);
        let new_column = new_row || qualifier != Some(parts.qualifier);
        if new_row {
            if self.bloom_hashes.len() >= CHUNK_KEY_COUNT {
                self.finish_bloom()?;
            }
            self.bloom_hashes.push(bloom::row_hash(parts.row));
        }
        if new_column && kind == BloomFilter::RowCol {
            let hash = bloom::column_hash(bloom::row_hash(parts.row), parts.qualifier);
            self.bloom_hashes.push(hash);
        }
        Ok(())
    }

    fn finish_block(&mut self) -> Result<()> {
        let start = self.output.len();
        self.raw.clear();
        self.block.finish(&mut self.raw);
        let (encoding, compression) =
            (self.encoding, self.block.frame_compression(self.compression));
        let frame = BlockFrame { kind: BlockKind::Data, encoding, compression };
        append_block(frame, &self.raw, &mut self.output);
        let handle = self.handle_from(start);
        self.data_index.push(&self.previous_key, handle);
        self.drain_output(OUTPUT_BYTES)
    }

    fn finish_bloom(&mut self) -> Result<()> {
        let start = self.output.len();
        self.bloom_filter.clear();
        bloom::build(&self.bloom_hashes, &mut self.bloom_filter);
        self.bloom_hashes.clear();
        append_block(plain_frame(BlockKind::Bloom), &self.bloom_filter, &mut self.output);
        let handle = self.handle_from(start);
        self.bloom_index.push(crate::cell::row_of(&self.previous_key), handle);
        self.drain_output(OUTPUT_BYTES)
    }

    fn handle_from(&self, start: usize) -> BlockHandle {
        BlockHandle {
            offset: self.written_bytes + start as u64,
            size: (self.output.len() - start) as u32,
        }
    }

    fn drain_output(&mut self, above: usize) -> Result<()> {
        if self.output.len() <= above {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(self.env.create(&self.path)?),
        };
        file.append(&self.output)?;
        self.written_bytes += self.output.len() as u64;
        self.output.clear();
        Ok(())
    }

    /// Writes what is left, syncs the file and its name. `None`, and no file, if no cell was added.
    pub fn finish(mut self) -> Result<Option<FileProperties>> {
        if self.properties.cell_count == 0 {
            return Ok(None);
        }
        self.finish_block()?;
        if !self.bloom_hashes.is_empty() {
            self.finish_bloom()?;
        }
        self.properties.last_row = crate::cell::row_of(&self.previous_key).to_vec();
        let data_index = std::mem::take(&mut self.data_index);
        self.properties.data_index = self.append_index(&data_index);
        let bloom_index = std::mem::take(&mut self.bloom_index);
        self.properties.bloom_index = self.append_index(&bloom_index);
        let mut raw = Vec::new();
        self.properties.encode(&mut raw);
        let start = self.output.len();
        append_block(plain_frame(BlockKind::Properties), &raw, &mut self.output);
        let handle = self.handle_from(start);
        let file_bytes =
            handle.offset + u64::from(handle.size) + crate::file::format::TRAILER_BYTES as u64;
        self.output.extend_from_slice(&trailer(handle, file_bytes));
        self.drain_output(0)?;
        if let Some(file) = &mut self.file {
            file.sync()?;
        }
        if let Some(directory) = self.path.parent() {
            self.env.sync_directory(directory)?;
        }
        Ok(Some(self.properties))
    }

    fn append_index(&mut self, index: &Index) -> BlockHandle {
        let mut raw = Vec::new();
        index.encode(&mut raw);
        let start = self.output.len();
        let frame = BlockFrame { compression: self.compression, ..plain_frame(BlockKind::Index) };
        append_block(frame, &raw, &mut self.output);
        self.handle_from(start)
    }
}

fn plain_frame(kind: BlockKind) -> BlockFrame {
    BlockFrame { kind, encoding: 0, compression: Compression::None }
}
