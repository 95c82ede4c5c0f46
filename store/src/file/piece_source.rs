//! File access for cached blocks: pieces that are not in the front of a block are read on demand.
//!
//! The cache holds fronts together with the pieces that were read since. They do not own the
//! file, so that the cache does not hold unused files open.

use std::cell::RefCell;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use crate::cache::{BlockKey, FamilyCache};
use crate::env::ReadFile;
use crate::error::Error;
use crate::file::encoding::{BlockError, Malformed};
use crate::file::format::{BLOCK_HEADER_BYTES, BlockHandle, CHECKSUM_BYTES, check};

/// A buffer above this size is freed after use.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// Stored bytes between the file and their decompression.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An open file, as seen by its blocks.
pub(super) struct BlockSource {
    pub(super) file: Arc<dyn ReadFile>,
    pub(super) path: PathBuf,
    pub(super) cache: Arc<FamilyCache>,
    pub(super) file_number: u64,
}

impl BlockSource {
    pub(super) fn key(&self, handle: BlockHandle) -> BlockKey {
        BlockKey { file_number: self.file_number, offset: handle.offset }
    }

    pub(super) fn corrupt(&self, handle: BlockHandle, detail: &str) -> Error {
        Error::corrupt(&self.path, handle.offset, detail)
    }
}

/// Source of the remaining bytes of a block.
pub(super) struct PieceSource {
    source: Weak<BlockSource>,
    handle: BlockHandle,
}

impl std::fmt::Debug for PieceSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.handle)
    }
}

impl PieceSource {
    pub(super) fn new(source: &Arc<BlockSource>, handle: BlockHandle) -> PieceSource {
        PieceSource { source: Arc::downgrade(source), handle }
    }

    /// Returns the bytes of the block without its frame.
    pub(super) fn body_bytes(&self) -> usize {
        (self.handle.size as usize).saturating_sub(BLOCK_HEADER_BYTES + CHECKSUM_BYTES)
    }

    /// The calling reader holds the file open.
    fn source(&self) -> Result<Arc<BlockSource>, Malformed> {
        self.source.upgrade().ok_or(Malformed)
    }

    /// Reads a range of the block, relative to the end of the frame's header, and passes it to
    /// `open`.
    pub(super) fn read<R>(
        &self,
        range: Range<usize>,
        open: impl FnOnce(&[u8]) -> Result<R, BlockError>,
    ) -> Result<R, BlockError> {
        let source = self.source()?;
        let mut scratch = SCRATCH.with_borrow_mut(std::mem::take);
        scratch.resize(range.len().max(scratch.len()), 0);
        let stored = &mut scratch[..range.len()];
        let offset = self.handle.offset + (BLOCK_HEADER_BYTES + range.start) as u64;
        let opened = match source.file.read_at(offset, stored) {
            Ok(()) => open(stored),
            Err(error) => Err(error.into()),
        };
        if scratch.len() <= SCRATCH_BYTES_MAX {
            SCRATCH.with_borrow_mut(|slot| *slot = scratch);
        }
        opened
    }

    /// Checks bytes that end with their checksum.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), BlockError> {
        check(bytes).map_err(|detail| match self.source() {
            Ok(source) => source.corrupt(self.handle, &detail).into(),
            Err(malformed) => malformed.into(),
        })
    }

    /// Updates the weight of the block, which has grown, in the cache.
    pub(super) fn weigh(&self) {
        if let Ok(source) = self.source() {
            source.cache.weigh(source.key(self.handle));
        }
    }
}
