//! Bloom filters: blocked, one cache line for each key, over xxh3.
//!
//! A file has one filter for about every [`CHUNK_KEY_COUNT`] keys, divided between rows and found
//! through an index by last row. So a filter is built while the file is written, and a get reads
//! one chunk.

use crate::prefetch::prefetch;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Number of keys from which a chunk is closed, at the next row: 31 KiB, so that a chunk that is
/// not in the cache costs a get little more than a data block.
pub(super) const CHUNK_KEY_COUNT: usize = 25_000;
const LINE_BYTES: usize = 64;
const BITS_PER_KEY: usize = 10;
const PROBES: u32 = 6;
const _: () = assert!(LINE_BYTES * 8 == 1 << (32 - 23), "a probe is a bit of a line");

/// Returns the hash of a row.
pub(super) fn row_hash(row: &[u8]) -> u64 {
    xxh3_64(row)
}

/// Returns the hash of a column of a row.
pub(super) fn column_hash(row_hash: u64, qualifier: &[u8]) -> u64 {
    xxh3_64_with_seed(qualifier, row_hash)
}

/// Appends the filter of some hashes: a number of whole lines.
pub(super) fn build(hashes: &[u64], out: &mut Vec<u8>) {
    debug_assert!(!hashes.is_empty(), "a filter has a key");
    let line_count = (hashes.len() * BITS_PER_KEY).div_ceil(LINE_BYTES * 8).max(1);
    let start = out.len();
    out.resize(start + line_count * LINE_BYTES, 0);
    let filter = &mut out[start..];
    for &hash in hashes {
        let line = line_of(hash, line_count) * LINE_BYTES;
        for bit in bits_of(hash) {
            filter[line + bit / 8] |= 1 << (bit % 8);
        }
    }
}

/// A row to look up in filters, with its hash.
pub(crate) struct HashedRow<'a> {
    pub(super) row: &'a [u8],
    pub(super) hash: u64,
}

impl<'a> HashedRow<'a> {
    /// Returns the row with its hash.
    pub(crate) fn new(row: &'a [u8]) -> HashedRow<'a> {
        HashedRow { row, hash: row_hash(row) }
    }
}

/// Result of a filter for a row or a column.
pub(crate) enum FilterResult<'a> {
    /// The file does not have it.
    No,
    /// The file may have it.
    Maybe,
    /// The file may have it if this line of the filter has the bits of the hash. The line is
    /// being prefetched: a reader of several files gets all results first, and waits for all
    /// lines at once.
    Looked(&'a [u8; LINE_BYTES], u64),
}

impl<'a> FilterResult<'a> {
    /// Looks a hash up in a filter. A filter without a line may contain anything.
    pub(super) fn of(filter: &'a [u8], hash: u64) -> FilterResult<'a> {
        let (lines, _) = filter.as_chunks::<LINE_BYTES>();
        match lines.get(line_of(hash, lines.len())) {
            Some(line) => {
                prefetch(&line[0]);
                FilterResult::Looked(line, hash)
            }
            None => FilterResult::Maybe,
        }
    }

    /// Returns whether the file may have it.
    pub(crate) fn may_contain(&self) -> bool {
        match *self {
            FilterResult::No => false,
            FilterResult::Maybe => true,
            // All bits are tested, without an early exit, which would be an unpredictable branch.
            FilterResult::Looked(line, hash) => {
                bits_of(hash).fold(1, |all, bit| all & (line[bit / 8] >> (bit % 8))) & 1 != 0
            }
        }
    }

    /// Returns the result without the filter.
    pub(super) fn evaluated(self) -> FilterResult<'static> {
        if self.may_contain() { FilterResult::Maybe } else { FilterResult::No }
    }
}

/// The upper half of the hash chooses the line,
fn line_of(hash: u64, line_count: usize) -> usize {
    (((hash >> 32) * line_count as u64) >> 32) as usize
}

/// the lower half the bits within it.
fn bits_of(hash: u64) -> impl Iterator<Item = usize> {
    let low = hash as u32;
    let step = low.rotate_left(15) | 1;
    (0..PROBES).map(move |probe| (low.wrapping_add(step.wrapping_mul(probe)) >> 23) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bloom_filter_has_no_false_negatives() {
        let hashes: Vec<u64> = (0..50_000_u32).map(|n| row_hash(&n.to_be_bytes())).collect();
        let mut filter = Vec::new();
        build(&hashes, &mut filter);
        let may_contain = |hash| FilterResult::of(&filter, hash).may_contain();
        assert!(hashes.iter().all(|&hash| may_contain(hash)));
        let wrong =
            (50_000..150_000_u32).filter(|n| may_contain(row_hash(&n.to_be_bytes()))).count();
        assert!(wrong < 2_500, "{wrong} of 100000");
    }
}
