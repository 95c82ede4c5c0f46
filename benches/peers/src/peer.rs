//! Interface of a benchmarked store: one file for each store implements [`Peer`].

use std::path::PathBuf;

/// Settings that every store applies, so that all are configured alike.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory of the store.
    pub directory: PathBuf,
    /// Block cache, in bytes.
    pub cache_bytes: usize,
    /// Size of a memtable, in bytes.
    pub memstore_bytes: usize,
    /// Bytes of a data block before compression.
    pub block_bytes: usize,
    /// LZ4 compression of blocks; otherwise none.
    pub lz4: bool,
    /// Background threads for flushes and compactions.
    pub background_threads: usize,
}

/// Sorted entries for a bulk load.
pub type Entries<'a> = &'a mut dyn Iterator<Item = ([u8; 16], &'a [u8])>;

/// A benchmarked store. All methods take `&self`: threads share it.
pub trait Peer: Send + Sync {
    /// Writes one entry; on return the operating system has the log record (no sync).
    fn put(&self, key: &[u8], value: &[u8]);
    /// Writes one entry with a sync; on return it survives a power failure.
    fn put_synced(&self, key: &[u8], value: &[u8]);
    /// Writes entries in one atomic batch, logged, without a sync.
    fn put_batch(&self, entries: &[([u8; 16], &[u8])]);
    /// Loads sorted entries with the store's bulk load; returns whether it has one.
    fn ingest(&self, entries: Entries<'_>) -> bool;
    /// Copies the value of `key` to `value`; returns whether the key exists.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> bool;
    /// Visits up to `limit` entries from `from` on (inclusive), in descending order with
    /// `reverse`. Returns the number of entries and the bytes of their keys and values.
    fn scan(&self, from: Option<&[u8]>, limit: u64, reverse: bool) -> (u64, u64);
    /// Flushes all memtables and waits until background work has finished.
    fn settle(&self);
    /// Compacts everything into one sorted run.
    fn compact(&self);
}
