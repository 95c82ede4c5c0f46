//! The block cache: one for the process, sharded, scan-resistant, bounded by bytes.
//!
//! Eviction is `quick_cache`'s (a variant of S3-FIFO): a block must be requested twice before it
//! can evict one that is in use, so a long scan does not empty the cache.
//!
//! Every read of a file needs its filter and its index, and a look-up in the hash table costs as
//! much as their use. So an open file may *keep* such blocks outside the table ([`PinnedBlock`]),
//! up to half of the cache's bytes for all files together; the table has the rest.
//!
//! Blocks of families that are IN_MEMORY are not evicted while all of those take at most a quarter
//! of the table ([`InMemoryShare`]); beyond that they are blocks like the others. This is the share
//! of HBase's in-memory blocks.
//!
//! While memory is short the table lends up to three quarters of its bytes
//! ([`BlockCache::set_lent_bytes`]); it fills again afterwards.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, OptionsBuilder, Weighter};

use crate::memory::give_to_server;

/// Maximal number of shards; each shard holds at least this many bytes, because an entry that is
/// larger than a shard's share is rejected.
const SHARDS_MAX: u64 = 8;
const SHARD_BYTES_MIN: u64 = 4 << 20;
/// Overhead of an entry, in addition to its bytes.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// Key of a block: the file (by a number that is unique among open files of the process) and its
/// offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// The file.
    pub file_number: u64,
    /// Offset of the block.
    pub offset: u64,
}

/// A verified and decompressed block. Clones share the bytes, which are adjacent to their
/// reference count: an access to a cached block costs one cache line, not three.
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

/// Decoded metadata of a block that is cached together with it.
pub(crate) trait PreparedBlock: Any + Debug + Send + Sync {
    /// Returns the bytes of the block.
    fn bytes(&self) -> &Arc<[u8]>;

    /// Returns the maximal bytes, including those of the block.
    fn byte_count(&self) -> usize;
}

impl Block {
    /// Returns a block with a copy of these bytes; `encoding` is the code of their layout, which
    /// only readers of data blocks use.
    pub fn new(encoding: u8, bytes: &[u8]) -> Block {
        Block::of_buffer(encoding, bytes.into())
    }

    /// Returns a block with these bytes.
    pub fn of_buffer(encoding: u8, bytes: Arc<[u8]>) -> Block {
        Block { content: Content::Bytes(bytes), encoding }
    }

    /// Returns the block with the decoded metadata of its encoding.
    pub(crate) fn into_prepared(self, prepared: impl PreparedBlock) -> Block {
        Block { content: Content::Prepared(Arc::new(prepared)), ..self }
    }

    /// Returns the decoded metadata, if it is of this type.
    pub(crate) fn prepared<T: PreparedBlock>(&self) -> Option<Arc<T>> {
        match &self.content {
            Content::Bytes(_) => None,
            Content::Prepared(prepared) => {
                let any: Arc<dyn Any + Send + Sync> = Arc::clone(prepared) as _;
                any.downcast().ok()
            }
        }
    }

    /// As [`Block::prepared`], consuming the block, without a change of the reference count.
    pub(crate) fn take_prepared<T: PreparedBlock>(self) -> Option<Arc<T>> {
        match self.content {
            Content::Bytes(_) => None,
            Content::Prepared(prepared) => {
                let any: Arc<dyn Any + Send + Sync> = prepared;
                any.downcast().ok()
            }
        }
    }

    /// Returns the maximal bytes of the block.
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

    /// Returns the bytes with shared ownership.
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
    /// Bytes of the table reserved for them. Grows by steps and never shrinks: closed files make
    /// room for the blocks of new ones.
    reserved_bytes: Mutex<u64>,
    /// Bytes that the table has lent because memory is short.
    lent_bytes: AtomicU64,
    in_memory: Arc<InMemoryShare>,
}

/// The share of the table that blocks of IN_MEMORY families may occupy without being evicted.
#[derive(Debug, Default)]
struct InMemoryShare {
    bytes: AtomicU64,
    limit_bytes: AtomicU64,
}

/// A cached block of an IN_MEMORY family; dropping it returns its bytes to the share.
#[derive(Debug)]
struct InMemoryBlock {
    weight: u64,
    share: Arc<InMemoryShare>,
    /// True while the family is IN_MEMORY.
    has_priority: Arc<AtomicBool>,
}

impl InMemoryBlock {
    fn new(weight: u64, share: &Arc<InMemoryShare>, has_priority: &Arc<AtomicBool>) -> Arc<Self> {
        share.bytes.fetch_add(weight, Relaxed);
        let (share, has_priority) = (Arc::clone(share), Arc::clone(has_priority));
        Arc::new(InMemoryBlock { weight, share, has_priority })
    }

    fn is_pinned(&self) -> bool {
        let InMemoryShare { bytes, limit_bytes } = &*self.share;
        self.has_priority.load(Relaxed) && bytes.load(Relaxed) <= limit_bytes.load(Relaxed)
    }
}

impl Drop for InMemoryBlock {
    fn drop(&mut self) {
        self.share.bytes.fetch_sub(self.weight, Relaxed);
    }
}

/// Number of steps in which the table's bytes are reserved.
const RESERVATIONS: u64 = 32;
/// Divisor: the part of its bytes that the table never lends.
const KEPT_PART: u64 = 4;
/// Divisor: the part of the table for blocks of IN_MEMORY families.
const IN_MEMORY_PART: u64 = 4;

/// A block that an open file keeps outside the table; dropping it returns its bytes to the cache.
pub struct PinnedBlock {
    block: Block,
    cache: Arc<BlockCache>,
}

impl Deref for PinnedBlock {
    type Target = Block;

    fn deref(&self) -> &Block {
        &self.block
    }
}

impl Drop for PinnedBlock {
    fn drop(&mut self) {
        let weight = weight(&self.block);
        let before = self.cache.kept_bytes.fetch_sub(weight, Relaxed);
        debug_assert!(before >= weight, "a kept block has grown");
    }
}

/// A family's access to the block cache: counts hits and misses, and may exclude its data blocks.
pub struct FamilyCache {
    blocks: Arc<BlockCache>,
    hits: Counter,
    misses: Counter,
    takes_data: AtomicBool,
    in_memory: Arc<AtomicBool>,
}

/// A counter with striped cache lines for concurrent threads.
#[derive(Default)]
struct Counter {
    /// Allocated at the first count.
    stripes: OnceLock<Box<[Stripe; STRIPES]>>,
}

#[derive(Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

const STRIPES: usize = 8;

impl Counter {
    fn add_one(&self) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static STRIPE: usize = NEXT.fetch_add(1, Relaxed) % STRIPES);
        let stripes = self.stripes.get_or_init(Box::default);
        STRIPE.with(|stripe| stripes[*stripe].0.fetch_add(1, Relaxed));
    }

    fn total(&self) -> u64 {
        let stripes = self.stripes.get().into_iter().flat_map(|stripes| stripes.iter());
        stripes.map(|stripe| stripe.0.load(Relaxed)).sum()
    }
}

/// Hits and misses of the block cache for a family, a region or a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// Number of hits.
    pub hit_count: u64,
    /// Number of misses.
    pub miss_count: u64,
}

impl std::ops::AddAssign for CacheUse {
    fn add_assign(&mut self, other: CacheUse) {
        self.hit_count += other.hit_count;
        self.miss_count += other.miss_count;
    }
}

impl FamilyCache {
    /// Returns the access of a family without hits and misses, whose data blocks enter the cache.
    pub fn new(blocks: Arc<BlockCache>) -> FamilyCache {
        FamilyCache {
            blocks,
            hits: Counter::default(),
            misses: Counter::default(),
            takes_data: AtomicBool::new(true),
            in_memory: Arc::default(),
        }
    }

    /// Sets whether data blocks that are read from now on enter the cache. Index and Bloom blocks
    /// always do.
    pub fn set_takes_data(&self, takes_data: bool) {
        self.takes_data.store(takes_data, Relaxed);
    }

    /// Sets whether the family's blocks have priority in the cache, those that are cached from now
    /// on, and those that were cached while it was set.
    pub fn set_in_memory(&self, in_memory: bool) {
        self.in_memory.store(in_memory, Relaxed);
    }

    /// Returns a block as an entry of the table.
    fn weighed(&self, block: Block) -> Weighed {
        let weight = weight(&block);
        let is_in_memory = self.in_memory.load(Relaxed);
        let of = |share| InMemoryBlock::new(weight, share, &self.in_memory);
        let in_memory = is_in_memory.then(|| of(&self.blocks.in_memory));
        Weighed { block, weight, in_memory }
    }

    /// Returns whether data blocks enter the cache.
    pub fn takes_data(&self) -> bool {
        self.takes_data.load(Relaxed)
    }

    /// Returns a block, from the cache or from `read`, which enters the cache if `enters`.
    ///
    /// # Errors
    ///
    /// Errors of `read`.
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
            let weighed = self.weighed(block.clone());
            give_to_server(weighed.weight.cast_signed());
            self.blocks.blocks.insert(key, weighed);
        }
        Ok(block)
    }

    /// Moves a block out of the table for its file to keep, if there is room for it.
    pub fn keep(&self, key: BlockKey, block: &Block) -> Option<PinnedBlock> {
        if !self.blocks.reserve(weight(block)) {
            return None;
        }
        self.blocks.blocks.remove(&key);
        Some(PinnedBlock { block: block.clone(), cache: Arc::clone(&self.blocks) })
    }

    /// Returns a block if it is cached; changes neither counters nor eviction order.
    pub fn peek(&self, key: BlockKey) -> Option<Block> {
        self.blocks.blocks.peek(&key).map(|weighed| weighed.block)
    }

    /// Updates the weight of a cached block that has grown, which may evict others.
    pub fn weigh(&self, key: BlockKey) {
        let Some(block) = self.peek(key) else { return };
        let weighed = self.weighed(block);
        let weight = weighed.weight.cast_signed();
        // It may have been evicted meanwhile. The weight before was released with the old entry.
        if self.blocks.blocks.replace(key, weighed, true).is_ok() {
            give_to_server(weight);
        }
    }

    /// Removes a block.
    pub fn remove(&self, key: BlockKey) {
        self.blocks.blocks.remove(&key);
    }

    /// Returns hits and misses.
    pub fn usage(&self) -> CacheUse {
        CacheUse { hit_count: self.hits.total(), miss_count: self.misses.total() }
    }
}

/// Frees evicted blocks only after the cache is unlocked; their memory is charged to the evicting
/// thread's account.
#[derive(Debug, Clone)]
struct Eviction;

impl Lifecycle<BlockKey, Weighed> for Eviction {
    type RequestState = [Option<Weighed>; 2];

    fn is_pinned(&self, _key: &BlockKey, block: &Weighed) -> bool {
        block.in_memory.as_ref().is_some_and(|block| block.is_pinned())
    }

    fn on_evict(&self, evicted: &mut [Option<Weighed>; 2], _key: BlockKey, block: Weighed) {
        give_to_server(-block.weight.cast_signed());
        if let Some(free) = evicted.iter_mut().find(|evicted| evicted.is_none()) {
            *free = Some(block);
        }
    }
}

/// A block with its weight when it was last weighed: the table requires that the weight does not
/// change silently.
#[derive(Clone)]
struct Weighed {
    block: Block,
    weight: u64,
    in_memory: Option<Arc<InMemoryBlock>>,
}

#[derive(Clone)]
struct BlockWeighter;

impl Weighter<BlockKey, Weighed> for BlockWeighter {
    fn weight(&self, _key: &BlockKey, weighed: &Weighed) -> u64 {
        weighed.weight
    }
}

/// Returns the weight of a block in bytes.
fn weight(block: &Block) -> u64 {
    (block.byte_count() + ENTRY_OVERHEAD_BYTES) as u64
}

/// Statistics of the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Number of cached blocks, without those that files keep.
    pub block_count: u64,
    /// Bytes of cached blocks, including those that files keep.
    pub byte_count: u64,
    /// Bytes of filters and indexes that files keep.
    pub kept_bytes: u64,
    /// Maximal bytes.
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
        let limit_bytes = AtomicU64::new(capacity_bytes / IN_MEMORY_PART);
        let in_memory = Arc::new(InMemoryShare { bytes: AtomicU64::new(0), limit_bytes });
        BlockCache { blocks, capacity_bytes, kept_bytes, reserved_bytes, lent_bytes, in_memory }
    }

    /// Reserves bytes for a block that a file keeps; returns whether there is room.
    fn reserve(&self, byte_count: u64) -> bool {
        let limit = self.capacity_bytes / 2;
        let add = |kept: u64| Some(kept + byte_count).filter(|kept| *kept <= limit);
        let Ok(before) = self.kept_bytes.fetch_update(Relaxed, Relaxed, add) else { return false };
        let mut reserved = self.reserved_bytes.lock();
        debug_assert!(*reserved <= self.capacity_bytes, "more is reserved than there is");
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
        let capacity = left.max(whole / KEPT_PART);
        self.in_memory.limit_bytes.store(capacity / IN_MEMORY_PART, Relaxed);
        self.blocks.set_capacity(capacity);
    }

    /// Sets the bytes that the table lends: blocks beyond the rest are evicted. Lends at most its
    /// bytes less a [`KEPT_PART`].
    pub(crate) fn set_lent_bytes(&self, bytes: u64) {
        let reserved = self.reserved_bytes.lock();
        let most = self.capacity_bytes.saturating_sub(*reserved);
        let bytes = bytes.min(most - most / KEPT_PART);
        if self.lent_bytes.swap(bytes, Relaxed) != bytes {
            self.set_capacity(*reserved);
        }
    }

    /// Returns the bytes that the table has lent because memory is short.
    pub(crate) fn lent_bytes(&self) -> u64 {
        self.lent_bytes.load(Relaxed)
    }

    /// Returns the statistics.
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
    fn pinned_blocks_are_limited_to_half_of_cache() {
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
    fn lent_memory_shrinks_cache_until_returned() {
        let cache = Arc::new(BlockCache::new(1 << 20));
        let family = FamilyCache::new(cache.clone());
        let fill = || {
            (0..64).for_each(|offset| read(&family, offset));
            cache.status().byte_count
        };
        assert!(fill() > 900 << 10);
        cache.set_lent_bytes(512 << 10);
        assert!(cache.status().byte_count <= 512 << 10);
        assert!(fill() <= 512 << 10);
        cache.set_lent_bytes(u64::MAX);
        assert_eq!(cache.lent_bytes(), 768 << 10);
        assert!((1..=256 << 10).contains(&fill()));
        cache.set_lent_bytes(0);
        assert!(fill() > 900 << 10);
    }

    #[test]
    fn cached_blocks_are_read_once_within_capacity() {
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

    /// A block whose pieces are opened while it is cached.
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
    fn growing_block_is_reweighed() {
        let cache = Arc::new(BlockCache::new(1 << 20));
        let family = FamilyCache::new(cache.clone());
        let growing = Growing(AtomicUsize::new(1000), Arc::from([]));
        let block = Block::new(0, &[]).into_prepared(growing);
        family.block_or_read(key(0), || true, || Ok::<_, ()>(block.clone())).unwrap();
        let before = cache.status().byte_count;
        block.prepared::<Growing>().unwrap().0.store(51_000, Relaxed);
        family.weigh(key(0));
        assert_eq!(cache.status().byte_count, before + 50_000);
        // A block that is not cached is not inserted.
        family.weigh(key(1));
        assert_eq!(cache.status().block_count, 1);
        family.remove(key(0));
        assert_eq!(cache.status().byte_count, 0);
    }

    #[test]
    fn long_scan_does_not_evict_hot_blocks() {
        let cache = Arc::new(BlockCache::new(32 << 20));
        let (points, scans) = (FamilyCache::new(cache.clone()), FamilyCache::new(cache));
        // 12 MiB that are read repeatedly, and eight times the cache that is read once.
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
    fn blocks_of_in_memory_families_outlive_others() {
        let cache = Arc::new(BlockCache::new(32 << 20));
        let (small, others) = (FamilyCache::new(cache.clone()), FamilyCache::new(cache.clone()));
        let fill = |from: u64| {
            // Twice the cache, each block read repeatedly.
            (0..3).for_each(|_| (from..from + 2048).for_each(|offset| read(&others, offset)));
        };
        let misses = |offsets: std::ops::Range<u64>| {
            let before = small.usage().miss_count;
            offsets.for_each(|offset| read(&small, offset));
            small.usage().miss_count - before
        };
        fill(10_000);
        small.set_in_memory(true);
        assert_eq!(misses(1000..1200), 200);
        fill(20_000);
        assert_eq!(misses(1000..1200), 0);
        // More than a quarter of the cache: the blocks are evicted as others are.
        assert_eq!(misses(3000..3900), 900);
        fill(30_000);
        assert!(cache.status().byte_count <= 32 << 20);
        small.set_in_memory(false);
        (0..50_000).for_each(|offset| small.remove(key(offset)));
        assert_eq!(cache.in_memory.bytes.load(Relaxed), 0);
    }

    #[test]
    fn family_can_bypass_block_cache() {
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
