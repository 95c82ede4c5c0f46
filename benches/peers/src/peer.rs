//! What a store must do to be measured: one file for each store implements [`Peer`].

use std::path::PathBuf;

/// Settings that every store honours, so that all are set alike.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory of the store.
    pub directory: PathBuf,
    /// Block cache, in bytes.
    pub cache_bytes: usize,
    /// Size of one memory buffer of writes, in bytes.
    pub memstore_bytes: usize,
    /// Bytes of a data block before compression.
    pub block_bytes: usize,
    /// LZ4 compression of blocks, or none.
    pub lz4: bool,
    /// Background threads for flushes and compactions.
    pub background_threads: usize,
}

/// Sorted entries for a bulk load.
pub type Entries<'a> = &'a mut dyn Iterator<Item = ([u8; 16], &'a [u8])>;

/// A store under measurement. All calls take `&self`: threads share it.
pub trait Peer: Send + Sync {
    /// Writes one entry; on return the operating system has the log record (no sync).
    fn put(&self, key: &[u8], value: &[u8]);
    /// Writes one entry that survives a loss of power once the call returns.
    fn put_synced(&self, key: &[u8], value: &[u8]);
    /// Writes entries in one atomic batch, logged, without a sync.
    fn put_batch(&self, entries: &[([u8; 16], &[u8])]);
    /// Loads sorted entries by the store's best path; returns whether it has one.
    fn ingest(&self, entries: Entries<'_>) -> bool;
    /// Copies the value of `key` to `value`; returns whether there is one.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> bool;
    /// Visits up to `limit` entries from `from` on (inclusive), downwards if asked. Returns how
    /// many and the bytes of their keys and values.
    fn scan(&self, from: Option<&[u8]>, limit: u64, reverse: bool) -> (u64, u64);
    /// Writes all buffers to files and waits until background work rests.
    fn settle(&self);
    /// Merges everything into one sorted run.
    fn compact(&self);
}
