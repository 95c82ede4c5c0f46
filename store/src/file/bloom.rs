//! Bloom filters: blocked, one cache line for each key, over xxh3.
//!
//! A file has one filter for every [`CHUNK_KEY_COUNT`] keys or so, cut between rows and found
//! through an index by last row; so a filter is built while the file streams out, and a get reads
//! one chunk.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Keys at which a chunk is closed, at the next row: 31 KiB, so that a chunk that is not in the
/// cache costs a get little more than a data block.
pub(super) const CHUNK_KEY_COUNT: usize = 25_000;
const LINE_BYTES: usize = 64;
const BITS_PER_KEY: usize = 10;
const PROBES: u32 = 6;

/// Returns the hash of a row.
pub(super) fn row_hash(row: &[u8]) -> u64 {
    xxh3_64(row)
}

/// Returns the hash of a column of a row.
pub(super) fn column_hash(row_hash: u64, qualifier: &[u8]) -> u64 {
    xxh3_64_with_seed(qualifier, row_hash)
}

/// Appends the filter of some hashes: whole lines.
pub(super) fn build(hashes: &[u64], out: &mut Vec<u8>) {
    let line_count = (hashes.len() * BITS_PER_KEY).div_ceil(LINE_BYTES * 8).max(1);
    let start = out.len();
    out.resize(start + line_count * LINE_BYTES, 0);
    let filter = &mut out[start..];
    for &hash in hashes {
        let line = line_of(hash, line_count);
        for bit in bits_of(hash) {
            filter[line + bit / 8] |= 1 << (bit % 8);
        }
    }
}

/// Returns whether a filter may hold a hash. A filter without a line may hold anything.
pub(super) fn may_contain(filter: &[u8], hash: u64) -> bool {
    let line_count = filter.len() / LINE_BYTES;
    if line_count == 0 {
        return true;
    }
    let line = &filter[line_of(hash, line_count)..][..LINE_BYTES];
    // All bits are looked at, whatever the first say: no branch that cannot be foreseen, so that
    // the processor goes on to the next file's line while this one comes.
    bits_of(hash).fold(1, |all, bit| all & (line[bit / 8] >> (bit % 8))) & 1 != 0
}

/// The upper half of the hash chooses the line,
fn line_of(hash: u64, line_count: usize) -> usize {
    (((hash >> 32) * line_count as u64) >> 32) as usize * LINE_BYTES
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
    fn no_false_negatives_and_few_false_positives() {
        let hashes: Vec<u64> = (0..50_000_u32).map(|n| row_hash(&n.to_be_bytes())).collect();
        let mut filter = Vec::new();
        build(&hashes, &mut filter);
        assert!(hashes.iter().all(|&hash| may_contain(&filter, hash)));
        let wrong = (50_000..150_000_u32)
            .filter(|n| may_contain(&filter, row_hash(&n.to_be_bytes())))
            .count();
        assert!(wrong < 2_500, "{wrong} of 100000");
    }
}
