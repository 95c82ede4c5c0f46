//! Compression of blocks: by code, with contexts that are used again, and bounded on the way back.

use std::sync::Arc;

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use crate::descriptor::Compression;

/// Codes in the header of a block.
const NONE: u8 = 0;
const LZ4: u8 = 1;

/// Compresses blocks, one after the other.
#[derive(Default)]
pub(super) struct Compressor {
    lz4: CompressTable,
}

impl Compressor {
    /// Appends the bytes to `out`, compressed if that makes them smaller, and returns the code of
    /// what was done.
    pub(super) fn append(&mut self, compression: Compression, raw: &[u8], out: &mut Vec<u8>) -> u8 {
        let start = out.len();
        let (code, length) = match compression {
            Compression::None => (NONE, None),
            Compression::Lz4 => {
                out.resize(start + get_maximum_output_size(raw.len()), 0);
                (LZ4, compress_into_with_table(raw, &mut out[start..], &mut self.lz4).ok())
            }
        };
        match length {
            Some(length) if length < raw.len() => {
                out.truncate(start + length);
                code
            }
            _ => {
                out.truncate(start);
                out.extend_from_slice(raw);
                NONE
            }
        }
    }
}

/// Returns the raw bytes of a block, or `None` if the code is not known or they cannot be had.
/// Allocates no more than the compressed bytes could come from, whatever `raw_length` says.
pub(super) fn decompress(code: u8, stored: &[u8], raw_length: usize) -> Option<Arc<[u8]>> {
    match code {
        NONE if raw_length == stored.len() => Some(stored.into()),
        // LZ4 cannot shrink by more than 255 times.
        LZ4 if raw_length / 256 <= stored.len() => {
            filled(raw_length, |raw| lz4_flex::block::decompress_into(stored, raw).ok())
        }
        _ => None,
    }
}

fn filled(length: usize, fill: impl FnOnce(&mut [u8]) -> Option<usize>) -> Option<Arc<[u8]>> {
    let mut raw: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
    let bytes = Arc::get_mut(&mut raw).expect("nobody else has it yet");
    (fill(bytes)? == length).then_some(raw)
}
