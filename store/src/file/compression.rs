//! Block compression: codes, reusable contexts, and bounded decompression.

use std::cell::RefCell;
use std::sync::Arc;

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use crate::descriptor::Compression;

/// Codes on disk.
pub(super) const NONE: u8 = 0;
pub(super) const LZ4: u8 = 1;
pub(super) const ZSTD: u8 = 2;

/// The level of zstd: the fastest one, whose output is much smaller than that of LZ4; higher
/// levels cost twice the time for a twentieth of the size.
const ZSTD_LEVEL: i32 = 1;
/// The maximal raw size of a block in a zstd frame, and its minimal stored size with its header.
const ZSTD_BLOCK_BYTES: usize = 128 << 10;
const ZSTD_BLOCK_STORED_BYTES: usize = 4;

/// Compressor of blocks.
#[derive(Default)]
pub(super) struct Compressor {
    lz4: CompressTable,
    /// Created on first use.
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Compressor {
    /// Appends the bytes to `out`, compressed if that makes them smaller, and returns the code of
    /// the compression used.
    pub(super) fn append(&mut self, compression: Compression, raw: &[u8], out: &mut Vec<u8>) -> u8 {
        self.append_below(raw.len(), compression, raw, out).unwrap_or_else(|| {
            out.extend_from_slice(raw);
            NONE
        })
    }

    /// Appends the compressed bytes and returns the code, if they take fewer than `limit` bytes;
    /// otherwise appends nothing.
    pub(super) fn append_below(
        &mut self,
        limit: usize,
        compression: Compression,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<u8> {
        let start = out.len();
        let (code, length) = match compression {
            Compression::None => return None,
            Compression::Lz4 => {
                out.resize(start + get_maximum_output_size(raw.len()), 0);
                (LZ4, compress_into_with_table(raw, &mut out[start..], &mut self.lz4).ok())
            }
            Compression::Zstd => {
                out.resize(start + raw.len(), 0);
                (ZSTD, self.zstd(raw, &mut out[start..]))
            }
        };
        let length = length.filter(|&length| length < limit);
        out.truncate(start + length.unwrap_or(0));
        length.map(|_| code)
    }

    /// `None` if there is no room for the compressed bytes, or no memory for the context.
    fn zstd(&mut self, raw: &[u8], out: &mut [u8]) -> Option<usize> {
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Compressor::new(ZSTD_LEVEL).ok();
        }
        self.zstd.as_mut()?.compress_to_buffer(raw, out).ok()
    }
}

/// Returns whether `stored_length` bytes can decompress to `raw_length`: checked before
/// allocating the length that a header claims.
pub(super) fn can_become(code: u8, stored_length: usize, raw_length: usize) -> bool {
    match code {
        NONE => raw_length == stored_length,
        // LZ4 cannot shrink by more than 255 times.
        LZ4 => raw_length / 256 <= stored_length,
        ZSTD => raw_length / ZSTD_BLOCK_BYTES <= stored_length / ZSTD_BLOCK_STORED_BYTES,
        _ => false,
    }
}

/// Decompresses the stored bytes into `raw`; `None` if the length differs or the bytes are
/// invalid.
pub(super) fn decompress_into(code: u8, stored: &[u8], raw: &mut [u8]) -> Option<()> {
    thread_local! {
        /// A context takes longer to create than a block to decompress.
        static ZSTD_CONTEXT: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
            const { RefCell::new(None) };
    }
    let length = match code {
        NONE if stored.len() == raw.len() => {
            raw.copy_from_slice(stored);
            raw.len()
        }
        LZ4 => lz4_flex::block::decompress_into(stored, raw).ok()?,
        ZSTD => ZSTD_CONTEXT.with_borrow_mut(|context| {
            if context.is_none() {
                *context = zstd::bulk::Decompressor::new().ok();
            }
            context.as_mut()?.decompress_to_buffer(stored, raw).ok()
        })?,
        _ => return None,
    };
    (length == raw.len()).then_some(())
}

/// Returns the raw bytes of a block, or `None` if the code is unknown or the bytes are invalid.
pub(super) fn decompress(code: u8, stored: &[u8], raw_length: usize) -> Option<Arc<[u8]>> {
    if !can_become(code, stored.len(), raw_length) {
        return None;
    }
    if code == NONE {
        return Some(stored.into());
    }
    let mut raw: Arc<[u8]> = std::iter::repeat_n(0, raw_length).collect();
    let bytes = Arc::get_mut(&mut raw).expect("nobody else has it yet");
    decompress_into(code, stored, bytes).map(|()| raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn compression_round_trips_and_stores_incompressible_bytes_raw() {
        let mut compressor = Compressor::default();
        let text = b"a block of cells, of cells, of cells".repeat(100);
        for (compression, code) in
            [(Compression::None, NONE), (Compression::Lz4, LZ4), (Compression::Zstd, ZSTD)]
        {
            for raw in [&text[..], &noise(1000), &text[..7], &[0; 100_000], b""] {
                let mut out = b"before".to_vec();
                let used = compressor.append(compression, raw, &mut out);
                let stored = &out[6..];
                assert!(stored.len() < raw.len() || used == NONE);
                assert_eq!(used == code, raw.len() > 1000 || code == NONE);
                assert_eq!(&decompress(used, stored, raw.len()).unwrap()[..], raw);
                // Neither longer nor shorter.
                assert_eq!(decompress(used, stored, raw.len() + 1), None);
                assert!(raw.is_empty() || decompress(used, stored, raw.len() - 1).is_none());
            }
        }
    }

    #[test]
    fn decompression_rejects_implausible_raw_length() {
        for code in [NONE, LZ4, ZSTD, 9] {
            assert_eq!(decompress(code, &[0; 100], 1 << 30), None);
        }
    }

    #[test]
    fn decompression_of_corrupt_bytes_does_not_panic() {
        let raw = b"a block of cells, of cells, of cells".repeat(100);
        let mut compressor = Compressor::default();
        for compression in [Compression::Lz4, Compression::Zstd] {
            let mut good = Vec::new();
            let code = compressor.append(compression, &raw, &mut good);
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 1 << (at % 8);
                let found = decompress(code, &bad, raw.len());
                assert!(found.is_none_or(|found| found.len() == raw.len()));
                assert_eq!(decompress(code, &good[..at], raw.len()), None);
            }
        }
    }
}
