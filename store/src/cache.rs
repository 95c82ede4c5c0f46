//! The block cache.

/// The block cache: one for the process, sharded, bounded by bytes.
pub struct BlockCache {
    _private: (),
}
