//! The block cache: one for the process, sharded, scan-resistant, bounded by bytes.
//!
//! Eviction is `quick_cache`'s (a variant of S3-FIFO): a block must be asked for twice before it
//! can push out one that is in use, so a long scan does not empty the cache.
//!
//! Every read of a file asks for its filter and its index, and to find them in the table costs as
//! much as to look into them. So an open file may *keep* such blocks for itself ([`KeptBlock`]), up
//! to half of the cache's bytes for all files together; the table has what is left.
//!
//! While memory is short the table gives up to three quarters of its bytes
//! ([`BlockCache::lend`]); it fills again afterwards.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};

use crate::memory::give_to_server;

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
    content: Content,
    encoding: u8,
}

#[derive(Debug, Clone)]
enum Content {
    Bytes(Arc<[u8]>),
    Prepared(Arc<dyn PreparedBlock>),
}

/// What an encoding has found out about a block that is worth keeping with it.
pub(crate) trait PreparedBlock: Any + Debug + Send + Sync {
    /// Returns the bytes of the block.
    fn bytes(&self) -> &Arc<[u8]>;

    /// Returns all bytes that it may take, those of the block included.
    fn byte_count(&self) -> usize;
}

impl Block {
    /// Returns a block of a copy of these bytes; `encoding` is the code of their layout, which
    /// only the readers of data blocks ask for.
    pub fn new(encoding: u8, bytes: &[u8]) -> Block {
        Block::of_buffer(encoding, bytes.into())
    }

    /// Returns a block of these bytes.
    pub fn of_buffer(encoding: u8, bytes: Arc<[u8]>) -> Block {
        Block { content: Content::Bytes(bytes), encoding }
    }

    /// Returns the block with what its encoding has found out about it.
    pub(crate) fn into_prepared(self, prepared: impl PreparedBlock) -> Block {
        Block { content: Content::Prepared(Arc::new(prepared)), ..self }
    }

    /// Returns what was found out about the block, if it is of this kind.
    pub(crate) fn prepared<T: PreparedBlock>(&self) -> Option<Arc<T>> {
        match &self.content {
            Content::Bytes(_) => None,
            Content::Prepared(prepared) => {
                let any: Arc<dyn Any + Send + Sync> = Arc::clone(prepared) as _;
                any.downcast().ok()
            }
        }
    }

    /// As [`Block::prepared`], of a block that is not needed any more: its owners are not counted.
    pub(crate) fn take_prepared<T: PreparedBlock>(self) -> Option<Arc<T>> {
        match self.content {
            Content::Bytes(_) => None,
            Content::Prepared(prepared) => {
                let any: Arc<dyn Any + Send + Sync> = prepared;
                any.downcast().ok()
            }
        }
    }

    /// Returns the bytes that the block takes at most.
    pub fn byte_count(&self) -> usize {
        match &self.content {
            Content::Bytes(bytes) => bytes.len(),
            Content::Prepared(prepared) => prepared.byte_count(),
        }
    }

    /// Returns the code of the layout.
    pub fn encoding(&self) -> u8 {
        self.encoding
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        self.shared_bytes()
    }

    /// Returns the bytes, which can be kept.
    pub(crate) fn shared_bytes(&self) -> &Arc<[u8]> {
        match &self.content {
            Content::Bytes(bytes) => bytes,
            Content::Prepared(prepared) => prepared.bytes(),
        }
    }
}

/// The block cache.
pub struct BlockCache {
    blocks: Cache<BlockKey, Weighed, BlockWeighter, ahash::RandomState, Eviction>,
    capacity_bytes: u64,
    /// Bytes of the blocks that files keep.
    kept_bytes: AtomicU64,
    /// Bytes that the table has given up for them. Grows by steps and never shrinks: files that go
    /// make room for the blocks of those that come.
    reserved_bytes: Mutex<u64>,
    /// Bytes that the table has given up because memory is short.
    lent_bytes: AtomicU64,
}

/// Steps in which the table gives up its bytes.
const RESERVATIONS: u64 = 32;
/// What the table keeps however short memory is: this part of its bytes.
const KEPT_PART: u64 = 4;

/// A block that an open file keeps for itself; its bytes are the cache's again when it is dropped.
pub struct KeptBlock {
    block: Block,
    cache: Arc<BlockCache>,
}

impl Deref for KeptBlock {
    type Target = Block;

    fn deref(&self) -> &Block {
        &self.block
    }
}

impl Drop for KeptBlock {
    fn drop(&mut self) {
        self.cache.kept_bytes.fetch_sub(weight(&self.block), Relaxed);
    }
}

/// A family's way to the block cache: counts what its reads find there, and may keep its data
/// blocks out of it.
pub struct FamilyCache {
    blocks: Arc<BlockCache>,
    hits: Counter,
    misses: Counter,
    takes_data: AtomicBool,
}

/// A count to which threads add on cache lines of their own.
#[derive(Default)]
struct Counter {
    stripes: [Stripe; STRIPES],
}

#[derive(Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

const STRIPES: usize = 8;

impl Counter {
    fn add_one(&self) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static STRIPE: usize = NEXT.fetch_add(1, Relaxed) % STRIPES);
        STRIPE.with(|stripe| self.stripes[*stripe].0.fetch_add(1, Relaxed));
    }

    fn total(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.0.load(Relaxed)).sum()
    }
}

/// How often reads of a family, a region or a table found a block in the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Blocks found.
    pub hit_count: u64,
    /// Blocks that had to be read.
    pub miss_count: u64,
}

impl std::ops::AddAssign for CacheUse {
    fn add_assign(&mut self, other: CacheUse) {
        self.hit_count += other.hit_count;
        self.miss_count += other.miss_count;
    }
}

impl FamilyCache {
    /// Returns the way of a family that was not read yet; its data blocks are taken.
    pub fn new(blocks: Arc<BlockCache>) -> FamilyCache {
        FamilyCache {
            blocks,
            hits: Counter::default(),
            misses: Counter::default(),
            takes_data: AtomicBool::new(true),
        }
    }

    /// Lets data blocks that are read from now on into the cache or keeps them out. Index and bloom
    /// blocks always enter it.
    pub fn set_takes_data(&self, takes_data: bool) {
        self.takes_data.store(takes_data, Relaxed);
    }

    /// Returns whether data blocks enter the cache.
    pub fn takes_data(&self) -> bool {
        self.takes_data.load(Relaxed)
    }

    /// Returns a block, from the cache or from `read`, which enters the cache if `enters`.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn block_or_read<E>(
        &self,
        key: BlockKey,
        enters: impl FnOnce() -> bool,
        read: impl FnOnce() -> Result<Block, E>,
    ) -> Result<Block, E> {
        if let Some(weighed) = self.blocks.blocks.get(&key) {
            self.hits.add_one();
            return Ok(weighed.block);
        }
        self.misses.add_one();
        let block = read()?;
        if enters() {
            let weighed = Weighed::new(block.clone());
            give_to_server(weighed.weight.cast_signed());
            self.blocks.blocks.insert(key, weighed);
        }
        Ok(block)
    }

    /// Takes a block out of the table for its file to keep, if there is room for it.
    pub fn keep(&self, key: BlockKey, block: &Block) -> Option<KeptBlock> {
        if !self.blocks.reserve(weight(block)) {
            return None;
        }
        self.blocks.blocks.remove(&key);
        Some(KeptBlock { block: block.clone(), cache: Arc::clone(&self.blocks) })
    }

    /// Returns a block if it is there; counts nothing and keeps nothing warm.
    pub fn peek(&self, key: BlockKey) -> Option<Block> {
        self.blocks.blocks.peek(&key).map(|weighed| weighed.block)
    }

    /// Weighs a block again that has grown, if it is there: others may have to go.
    pub fn weigh(&self, key: BlockKey) {
        let Some(block) = self.peek(key) else { return };
        let weighed = Weighed::new(block);
        let weight = weighed.weight.cast_signed();
        // It may have gone meanwhile. What was there before was evicted, and charged back.
        if self.blocks.blocks.replace(key, weighed, true).is_ok() {
            give_to_server(weight);
        }
    }

    /// Forgets a block.
    pub fn remove(&self, key: BlockKey) {
        self.blocks.blocks.remove(&key);
    }

    /// Returns what was found and what was not.
    pub fn usage(&self) -> CacheUse {
        CacheUse { hit_count: self.hits.total(), miss_count: self.misses.total() }
    }
}

/// Has blocks that are pushed out freed when the cache is unlocked again, by whom they are charged
/// to then.
#[derive(Debug, Clone)]
struct Eviction;

impl Lifecycle<BlockKey, Weighed> for Eviction {
    type RequestState = [Option<Weighed>; 2];

    fn on_evict(&self, evicted: &mut [Option<Weighed>; 2], _key: BlockKey, block: Weighed) {
        give_to_server(-block.weight.cast_signed());
        if let Some(free) = evicted.iter_mut().find(|evicted| evicted.is_none()) {
            *free = Some(block);
        }
    }
}

/// A block with the weight that it had when it was weighed: the table counts on that it does not
/// change by itself.
#[derive(Clone)]
struct Weighed {
    block: Block,
    weight: u64,
}

impl Weighed {
    fn new(block: Block) -> Weighed {
        let weight = weight(&block);
        Weighed { block, weight }
    }
}

#[derive(Clone)]
struct BlockWeighter;

impl Weighter<BlockKey, Weighed> for BlockWeighter {
    fn weight(&self, _key: &BlockKey, weighed: &Weighed) -> u64 {
        weighed.weight
    }
}

/// Returns the bytes for which a block counts.
fn weight(block: &Block) -> u64 {
    (block.byte_count() + ENTRY_OVERHEAD_BYTES) as u64
}

/// Figures of the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Blocks held, not counting those that files keep.
    pub block_count: u64,
    /// Bytes held, with those that files keep.
    pub byte_count: u64,
    /// Bytes of filters and indexes that files keep.
    pub kept_bytes: u64,
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
        let blocks =
            Cache::with_options(options, BlockWeighter, ahash::RandomState::default(), Eviction);
        let (kept_bytes, reserved_bytes) = (AtomicU64::new(0), Mutex::new(0));
        let lent_bytes = AtomicU64::new(0);
        BlockCache { blocks, capacity_bytes, kept_bytes, reserved_bytes, lent_bytes }
    }

    /// Makes room for so many bytes of a block that a file keeps; returns whether there is some.
    fn reserve(&self, byte_count: u64) -> bool {
        let limit = self.capacity_bytes / 2;
        let add = |kept: u64| Some(kept + byte_count).filter(|kept| *kept <= limit);
        let Ok(before) = self.kept_bytes.fetch_update(Relaxed, Relaxed, add) else { return false };
        let mut reserved = self.reserved_bytes.lock();
        if before + byte_count > *reserved {
            let step = (self.capacity_bytes / RESERVATIONS).max(1);
            *reserved = (before + byte_count).next_multiple_of(step);
            self.set_capacity(*reserved);
        }
        true
    }

    fn set_capacity(&self, reserved: u64) {
        let whole = self.capacity_bytes.saturating_sub(reserved);
        let left = whole.saturating_sub(self.lent_bytes.load(Relaxed));
        self.blocks.set_capacity(left.max(whole / KEPT_PART));
    }

    /// Has the table give up so many bytes, instead of those that it has given up before: blocks
    /// beyond what is left are evicted. Gives no more than it has, less a [`KEPT_PART`].
    pub(crate) fn lend(&self, bytes: u64) {
        let reserved = self.reserved_bytes.lock();
        let most = self.capacity_bytes.saturating_sub(*reserved);
        let bytes = bytes.min(most - most / KEPT_PART);
        if self.lent_bytes.swap(bytes, Relaxed) != bytes {
            self.set_capacity(*reserved);
        }
    }

    /// Returns the bytes that the table has given up because memory is short.
    pub(crate) fn lent_bytes(&self) -> u64 {
        self.lent_bytes.load(Relaxed)
    }

    /// Returns the figures.
    pub fn status(&self) -> CacheStatus {
        let kept_bytes = self.kept_bytes.load(Relaxed);
        CacheStatus {
            block_count: self.blocks.len() as u64,
            byte_count: self.blocks.weight() + kept_bytes,
            kept_bytes,
            capacity_bytes: self.capacity_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(offset: u64) -> BlockKey {
        BlockKey { file_number: 1, offset }
    }

    fn read(family: &FamilyCache, offset: u64) {
        let read = || Ok::<_, ()>(Block::new(0, &[7; 32 << 10]));
        family.block_or_read(key(offset), || family.takes_data(), read).unwrap();
    }

    #[test]
    fn files_keep_up_to_half_of_the_cache() {
        let cache = Arc::new(BlockCache::new(1 << 20));
        let family = FamilyCache::new(cache.clone());
        for offset in 0..64 {
            read(&family, offset);
        }
        let kept: Vec<_> = (0..64)
            .filter_map(|offset| family.keep(key(offset), &Block::new(0, &[7; 32 << 10])))
            .collect();
        assert_eq!(kept.len(), 15);
        let status = cache.status();
        assert_eq!(status.kept_bytes, 15 * ((32 << 10) + ENTRY_OVERHEAD_BYTES as u64));
        assert!(status.byte_count <= 1 << 20, "{status:?}");
        assert!(status.block_count > 5, "{status:?}");
        drop(kept);
        assert_eq!(cache.status().kept_bytes, 0);
        assert!(family.keep(key(0), &Block::new(0, &[7; 400 << 10])).is_some());
    }

    #[test]
    fn what_is_lent_is_evicted_and_filled_again() {
        let cache = Arc::new(BlockCache::new(1 << 20));
        let family = FamilyCache::new(cache.clone());
        let fill = || {
            (0..64).for_each(|offset| read(&family, offset));
            cache.status().byte_count
        };
        assert!(fill() > 900 << 10);
        cache.lend(512 << 10);
        assert!(cache.status().byte_count <= 512 << 10);
        assert!(fill() <= 512 << 10);
        cache.lend(u64::MAX);
        assert_eq!(cache.lent_bytes(), 768 << 10);
        assert!((1..=256 << 10).contains(&fill()));
        cache.lend(0);
        assert!(fill() > 900 << 10);
    }

    #[test]
    fn blocks_are_read_once_and_bounded() {
        let cache = Arc::new(BlockCache::new(1 << 20));
        let family = FamilyCache::new(cache.clone());
        read(&family, 0);
        read(&family, 0);
        assert_eq!(family.usage(), CacheUse { hit_count: 1, miss_count: 1 });
        for offset in 1..200 {
            read(&family, offset);
        }
        assert!(cache.status().byte_count <= 1 << 20);
        assert!(cache.status().block_count > 16);
        let failed = family.block_or_read(key(999), || true, || Err("no disk"));
        assert_eq!(failed.err(), Some("no disk"));
    }

    /// A block of which more is opened while the cache has it.
    #[derive(Debug)]
    struct Growing(AtomicUsize, Arc<[u8]>);

    impl PreparedBlock for Growing {
        fn bytes(&self) -> &Arc<[u8]> {
            &self.1
        }

        fn byte_count(&self) -> usize {
            self.0.load(Relaxed)
        }
    }

    #[test]
    fn a_block_that_grows_is_weighed_again() {
        let cache = Arc::new(BlockCache::new(1 << 20));
        let family = FamilyCache::new(cache.clone());
        let growing = Growing(AtomicUsize::new(1000), Arc::from([]));
        let block = Block::new(0, &[]).into_prepared(growing);
        family.block_or_read(key(0), || true, || Ok::<_, ()>(block.clone())).unwrap();
        let before = cache.status().byte_count;
        block.prepared::<Growing>().unwrap().0.store(51_000, Relaxed);
        family.weigh(key(0));
        assert_eq!(cache.status().byte_count, before + 50_000);
        // One that is not there stays out.
        family.weigh(key(1));
        assert_eq!(cache.status().block_count, 1);
        family.remove(key(0));
        assert_eq!(cache.status().byte_count, 0);
    }

    #[test]
    fn a_long_scan_leaves_what_is_in_use() {
        let cache = Arc::new(BlockCache::new(32 << 20));
        let (points, scans) = (FamilyCache::new(cache.clone()), FamilyCache::new(cache));
        // 12 MiB that are read again and again, and eight times the cache that is read once.
        let hot = 384;
        for offset in (0..hot).chain(0..hot).chain(0..hot) {
            read(&points, offset);
        }
        for offset in hot..hot + 8192 {
            read(&scans, offset);
        }
        let before = points.usage();
        (0..hot).for_each(|offset| read(&points, offset));
        let hits = points.usage().hit_count - before.hit_count;
        assert!(hits * 10 >= hot * 9, "{hits} of {hot} blocks are still there");
        assert_eq!(scans.usage().hit_count, 0);
    }

    #[test]
    fn a_family_can_stay_out() {
        let cache = Arc::new(BlockCache::new(1 << 20));
        let family = FamilyCache::new(cache.clone());
        family.set_takes_data(false);
        read(&family, 0);
        read(&family, 0);
        assert_eq!((family.usage().miss_count, cache.status().block_count), (2, 0));
        family.set_takes_data(true);
        read(&family, 0);
        assert_eq!(cache.status().block_count, 1);
    }
}
