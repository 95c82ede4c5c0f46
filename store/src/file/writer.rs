//! Writer of a store file from a sorted stream of cells: builds blocks, properties and Bloom
//! filters. It holds some blocks and one Bloom chunk in memory, never the file. Compression,
//! framing and the index are in [`crate::file::sink`].

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use crate::cell::{KeyParts, column_of, compare_keys, row_of};
use crate::descriptor::{BloomFilter, Compression, FamilyDescriptor, FileIdentity};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::file::bloom::{self, CHUNK_KEY_COUNT};
use crate::file::encoding::{AnyBuilder, BlockBuilder, encoding_code};
use crate::file::format::{BlockFrame, BlockKind};
use crate::file::properties::FileProperties;
use crate::file::sink::SinkOutput;
use crate::file::sink_threads::{self, PendingJob};

/// Upper limit of key and value bytes of one cell, so that offsets in a block fit.
const CELL_BYTES_MAX: usize = 1 << 30;

/// A store file being written.
pub struct FileWriter {
    compression: Compression,
    encoding: u8,
    block_bytes: usize,
    block: AnyBuilder,
    previous_key: Vec<u8>,
    bloom_hashes: Vec<u64>,
    properties: FileProperties,
    output: SinkOutput,
}

impl FileWriter {
    /// Returns a writer of a file that does not exist yet.
    pub fn new(env: Arc<dyn Env>, path: &Path, family: &FamilyDescriptor) -> FileWriter {
        FileWriter {
            compression: family.compression,
            encoding: encoding_code(family.data_block_encoding),
            block_bytes: family.block_bytes as usize,
            block: AnyBuilder::new(family),
            previous_key: Vec::new(),
            bloom_hashes: Vec::new(),
            properties: FileProperties::new(family.bloom_filter),
            output: SinkOutput::new(env, path.to_owned(), family.compression),
        }
    }

    /// Sets the identity that the file records.
    #[must_use]
    pub fn identified(mut self, identity: FileIdentity) -> FileWriter {
        self.properties.identity = Some(identity);
        self
    }

    /// Returns the number of cells added.
    pub fn cell_count(&self) -> u64 {
        self.properties.cell_count
    }

    /// Returns the bytes of the finished blocks; approximate for a large file.
    pub fn byte_count(&self) -> u64 {
        self.output.byte_count()
    }

    /// Adds a cell by its encoded key.
    ///
    /// # Panics
    ///
    /// If the key is malformed, or is not above the previous one: the file would give wrong
    /// answers permanently.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let parts = KeyParts::decode(key).expect("the writer is given encoded keys");
        let is_first = self.properties.cell_count == 0;
        assert!(
            is_first || compare_keys(&self.previous_key, key).is_lt(),
            "cells of a store file must be in ascending order"
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
        self.properties.count_expiry(&parts, value);
        self.previous_key.clear();
        self.previous_key.extend_from_slice(key);
        Ok(())
    }

    fn count_bloom(&mut self, parts: &KeyParts<'_>, is_first: bool) -> Result<()> {
        let previous = if is_first { None } else { Some(column_of(&self.previous_key)) };
        let is_new_row = previous.is_none_or(|(row, _)| row != parts.row);
        let is_new_column = is_new_row || previous.is_none_or(|(_, of)| of != parts.qualifier);
        self.properties.row_count += u64::from(is_new_row);
        let kind = self.properties.bloom_filter;
        if kind != BloomFilter::None && is_new_row {
            if self.bloom_hashes.len() >= CHUNK_KEY_COUNT {
                self.finish_bloom()?;
            }
            self.bloom_hashes.push(bloom::row_hash(parts.row));
        }
        if kind == BloomFilter::RowCol && is_new_column {
            let hash = bloom::column_hash(bloom::row_hash(parts.row), parts.qualifier);
            self.bloom_hashes.push(hash);
        }
        Ok(())
    }

    fn finish_block(&mut self) -> Result<()> {
        assert!(!self.block.is_empty(), "a block has a cell");
        let compression = self.block.frame_compression(self.compression);
        let frame = BlockFrame { kind: BlockKind::Data, encoding: self.encoding, compression };
        let (block, key) = (&mut self.block, &self.previous_key);
        self.output.push(frame, key, |raw| block.finish(raw))
    }

    fn finish_bloom(&mut self) -> Result<()> {
        assert!(!self.bloom_hashes.is_empty(), "a filter has a key");
        let (hashes, key) = (&self.bloom_hashes, &self.previous_key);
        // Filters do not compress.
        let frame =
            BlockFrame { kind: BlockKind::Bloom, encoding: 0, compression: Compression::None };
        self.output.push(frame, key, |raw| bloom::build(hashes, raw))?;
        self.bloom_hashes.clear();
        Ok(())
    }

    /// Writes the remaining blocks, syncs the file and its directory entry. `None`, and no file,
    /// if no cell was added.
    pub fn finish(mut self) -> Result<Option<FileProperties>> {
        if self.properties.cell_count == 0 {
            return Ok(None);
        }
        self.finish_block()?;
        if !self.bloom_hashes.is_empty() {
            self.finish_bloom()?;
        }
        self.properties.last_row = row_of(&self.previous_key).to_vec();
        assert_eq!(self.properties.objection(), None, "properties of a new file");
        self.output.finish(&mut self.properties)?;
        Ok(Some(self.properties))
    }

    /// As [`FileWriter::finish`], on another thread if the system has one: several files are
    /// synced in the time of one.
    pub(crate) fn finish_on_thread(self) -> PendingFile {
        let (hand_over, taken) = sync_channel::<FileWriter>(1);
        let work = move || match taken.recv() {
            Ok(writer) => writer.finish().map(drop),
            // The caller has kept it.
            Err(_) => Ok(()),
        };
        match sink_threads::run(work) {
            Ok(job) => {
                hand_over.send(self).expect("the thread waits for it");
                PendingFile::Thread(job)
            }
            Err(_) => PendingFile::Done(self.finish().map(drop)),
        }
    }
}

/// A file that is being finished.
pub(crate) enum PendingFile {
    /// On another thread.
    Thread(PendingJob<Result<()>>),
    /// Already.
    Done(Result<()>),
}

impl PendingFile {
    /// Waits until the file is on disk.
    ///
    /// # Errors
    ///
    /// Those of [`FileWriter::finish`].
    pub(crate) fn wait(self) -> Result<()> {
        match self {
            PendingFile::Thread(job) => job.join(),
            PendingFile::Done(result) => result,
        }
    }
}
