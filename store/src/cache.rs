//! The block cache: one for the process, sharded, scan-resistant, bounded by bytes.
//!
//! Eviction is `quick_cache`'s (a variant of S3-FIFO): a block must be asked for twice before it
//! can push out one that is in use, so a long scan does not empty the cache.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

/// Shards at most; and each shard holds at least this many bytes, because an entry that is larger
/// than a shard's share is not taken.
const SHARDS_MAX: u64 = 8;
const SHARD_BYTES_MIN: u64 = 4 << 20;
/// What an entry costs beside its bytes.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// Names a block: the file (by a number that no other open file of the process has) and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// The file.
    pub file_number: u64,
    /// Where the block begins.
    pub offset: u64,
}

/// A block as it is read: checked and decompressed. Clones share the bytes, which lie beside
/// their count of owners: to look at a block from the cache costs one cache line, not three.
#[derive(Debug, Clone)]
pub struct Block {
    bytes: Arc<[u8]>,
    encoding: u8,
    /// Parts that are opened when they are asked for first, of blocks that have any.
    parts: Option<Arc<Parts>>,
}

#[derive(Debug)]
struct Parts {
    slots: Box<[OnceLock<Box<[u8]>>]>,
    /// Bytes of all of them once they are open.
    byte_count: usize,
}

impl Block {
    /// Returns a block of a copy of these bytes; `encoding` is the code of their layout, which
    /// only the readers of data blocks ask for.
    pub fn new(encoding: u8, bytes: &[u8]) -> Block {
        Block::of_buffer(encoding, bytes.into())
    }

    /// Returns a block of these bytes.
    pub fn of_buffer(encoding: u8, bytes: Arc<[u8]>) -> Block {
        Block { bytes, encoding, parts: None }
    }

    /// Makes room for `part_count` parts that are compressed within the bytes and take
    /// `parts_bytes` when all are open; the cache counts them as if they were.
    pub fn with_parts(self, part_count: usize, parts_bytes: usize) -> Block {
        let slots = (0..part_count).map(|_| OnceLock::new()).collect();
        Block { parts: Some(Arc::new(Parts { slots, byte_count: parts_bytes })), ..self }
    }

    /// Returns a part, opened by `open` if nobody has asked for it before. `None` if there is no
    /// such part or it cannot be opened.
    pub fn part(&self, index: usize, open: impl FnOnce() -> Option<Box<[u8]>>) -> Option<&[u8]> {
        let slot = self.parts.as_ref()?.slots.get(index)?;
        if slot.get().is_none() {
            // Another reader may have been faster; both opened the same.
            let _ = slot.set(open()?);
        }
        slot.get().map(AsRef::as_ref)
    }

    /// Returns the bytes that the block takes at most.
    pub fn byte_count(&self) -> usize {
        let of_parts = |parts: &Arc<Parts>| parts.byte_count + size_of_val(&*parts.slots);
        self.bytes.len() + self.parts.as_ref().map_or(0, of_parts)
    }

    /// Returns the code of the layout.
    pub fn encoding(&self) -> u8 {
        self.encoding
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The block cache.
pub struct BlockCache {
    blocks: Cache<BlockKey, Block, BlockWeighter, ahash::RandomState>,
    hit_count: AtomicU64,
    miss_count: AtomicU64,
}

#[derive(Clone)]
struct BlockWeighter;

impl Weighter<BlockKey, Block> for BlockWeighter {
    fn weight(&self, _key: &BlockKey, block: &Block) -> u64 {
        (block.byte_count() + ENTRY_OVERHEAD_BYTES) as u64
    }
}

/// Figures of the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Blocks found.
    pub hit_count: u64,
    /// Blocks that had to be read.
    pub miss_count: u64,
    /// Blocks held.
    pub block_count: u64,
    /// Bytes held.
    pub byte_count: u64,
    /// Bytes held at most.
    pub capacity_bytes: u64,
}

impl BlockCache {
    /// Returns an empty cache of at most `capacity_bytes`.
    pub fn new(capacity_bytes: u64) -> BlockCache {
        let shard_count = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX) as usize;
        let options = OptionsBuilder::new()
            .shards(shard_count)
            .estimated_items_capacity((capacity_bytes / (32 << 10)).max(16) as usize)
            .weight_capacity(capacity_bytes)
            .build()
            .expect("both capacities are given");
        let blocks = Cache::with_options(
            options,
            BlockWeighter,
            ahash::RandomState::default(),
            DefaultLifecycle::default(),
        );
        BlockCache { blocks, hit_count: AtomicU64::new(0), miss_count: AtomicU64::new(0) }
    }

    /// Returns a block, from the cache or from `read`.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn block_or_read<E>(
        &self,
        key: BlockKey,
        read: impl FnOnce() -> Result<Block, E>,
    ) -> Result<Block, E> {
        if let Some(block) = self.blocks.get(&key) {
            self.hit_count.fetch_add(1, Relaxed);
            return Ok(block);
        }
        self.miss_count.fetch_add(1, Relaxed);
        let block = read()?;
        self.blocks.insert(key, block.clone());
        Ok(block)
    }

    /// Returns a block if it is there; counts nothing and keeps nothing warm.
    pub fn peek(&self, key: BlockKey) -> Option<Block> {
        self.blocks.peek(&key)
    }

    /// Forgets a block.
    pub fn remove(&self, key: BlockKey) {
        self.blocks.remove(&key);
    }

    /// Returns the figures.
    pub fn status(&self) -> CacheStatus {
        CacheStatus {
            hit_count: self.hit_count.load(Relaxed),
            miss_count: self.miss_count.load(Relaxed),
            block_count: self.blocks.len() as u64,
            byte_count: self.blocks.weight(),
            capacity_bytes: self.blocks.capacity(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_once_and_bounded() {
        let cache = BlockCache::new(1 << 20);
        let key = |offset| BlockKey { file_number: 1, offset };
        let read = |key| cache.block_or_read::<()>(key, || Ok(Block::new(0, &[7; 32 << 10])));
        read(key(0)).unwrap();
        read(key(0)).unwrap();
        assert_eq!((cache.status().hit_count, cache.status().miss_count), (1, 1));
        for offset in 1..200 {
            read(key(offset)).unwrap();
        }
        assert!(cache.status().byte_count <= 1 << 20);
        assert!(cache.status().block_count > 16);
        let failed = cache.block_or_read(key(999), || Err("no disk"));
        assert_eq!(failed.err(), Some("no disk"));
    }
}
