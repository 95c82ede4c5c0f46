//! Bit strings: the values of `bit` and `bit varying`.

use std::cmp::Ordering;

use crate::error::{Error, Result};

/// A bit string. The first bit is the highest of the first byte; unused bits are 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Bits {
    length: usize,
    bytes: Vec<u8>,
}

/// Maximum number of bits, PostgreSQL's `VARBITMAXLEN`.
pub const MAX_BITS: usize = 0x7fff_fff8;

impl Bits {
    /// Returns a string of zeros.
    pub fn zeros(length: usize) -> Bits {
        Bits { length, bytes: vec![0; length.div_ceil(8)] }
    }

    /// Returns the first `length` bits of `bytes`; `None` if the number of bytes does not match.
    pub fn from_bytes(length: usize, bytes: &[u8]) -> Option<Bits> {
        if bytes.len() != length.div_ceil(8) {
            return None;
        }
        let mut bits = Bits { length, bytes: bytes.to_vec() };
        bits.clear_rest();
        Some(bits)
    }

    /// Creates a string of these bits.
    pub fn from_bits(bits: impl IntoIterator<Item = bool>) -> Bits {
        let mut all = Bits::default();
        bits.into_iter().for_each(|bit| all.push(bit));
        all
    }

    /// Clears the unused bits.
    fn clear_rest(&mut self) {
        if let (Some(last), used @ 1..) = (self.bytes.last_mut(), self.length % 8) {
            *last &= 0xff << (8 - used);
        }
    }

    /// Asserts that the unused bits are 0 and that the number of bytes is that of the length.
    fn check(&self) {
        debug_assert_eq!(self.bytes.len(), self.length.div_ceil(8), "{} bits", self.length);
        let used = self.length % 8;
        let last = self.bytes.last().copied().unwrap_or(0);
        debug_assert!(used == 0 || last & (0xff >> used) == 0, "an unused bit is set: {last:08b}");
    }

    /// Returns the number of bits.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        self.check();
        &self.bytes
    }

    /// Returns a bit by its index from 0; `None` after the last one.
    pub fn get(&self, index: usize) -> Option<bool> {
        (index < self.length).then(|| self.bytes[index / 8] >> (7 - index % 8) & 1 == 1)
    }

    /// Sets an existing bit.
    pub fn set(&mut self, index: usize, bit: bool) {
        debug_assert!(index < self.length, "the bit is there");
        let mask = 1 << (7 - index % 8);
        if bit {
            self.bytes[index / 8] |= mask;
        } else {
            self.bytes[index / 8] &= !mask;
        }
    }

    /// Appends a bit.
    pub fn push(&mut self, bit: bool) {
        if self.length.is_multiple_of(8) {
            self.bytes.push(0);
        }
        self.length += 1;
        self.set(self.length - 1, bit);
    }

    /// Iterates over the bits.
    pub fn iter(&self) -> impl Iterator<Item = bool> {
        (0..self.length).filter_map(|index| self.get(index))
    }

    /// Returns up to `length` bits from `start` on.
    #[must_use]
    pub fn slice(&self, start: usize, length: usize) -> Bits {
        let end = self.length.min(start.saturating_add(length));
        if start.is_multiple_of(8) && start < end {
            let bytes = &self.bytes[start / 8..end.div_ceil(8)];
            return Bits::from_bytes(end - start, bytes).unwrap_or_default();
        }
        Bits::from_bits((start..end).filter_map(|index| self.get(index)))
    }

    /// Returns the string truncated or zero-padded to a length.
    #[must_use]
    pub fn resized(&self, length: usize) -> Bits {
        let mut bits = self.clone();
        bits.bytes.resize(length.div_ceil(8), 0);
        bits.length = length;
        bits.clear_rest();
        bits
    }

    /// Returns the concatenation of this string and another.
    ///
    /// # Errors
    ///
    /// 54000 if it is too long.
    pub fn concat(&self, other: &Bits) -> Result<Bits> {
        if self.length + other.length > MAX_BITS {
            bail!(PROGRAM_LIMIT_EXCEEDED: "bit string length exceeds the maximum allowed ({MAX_BITS})");
        }
        let mut bits = self.clone();
        if self.length.is_multiple_of(8) {
            bits.bytes.extend_from_slice(&other.bytes);
            bits.length += other.length;
        } else {
            other.iter().for_each(|bit| bits.push(bit));
        }
        Ok(bits)
    }

    /// Returns the string with `change` applied to each byte and its index.
    #[must_use]
    pub fn map_bytes(&self, change: impl Fn(usize, u8) -> u8) -> Bits {
        let bytes = self.bytes.iter().enumerate();
        let bytes = bytes.map(|(index, byte)| change(index, *byte)).collect();
        let mut bits = Bits { length: self.length, bytes };
        bits.clear_rest();
        bits
    }

    /// Compares bit by bit, shorter strings first, as PostgreSQL's `bit_cmp` does.
    pub fn compare(&self, other: &Bits) -> Ordering {
        self.check();
        other.check();
        let common = self.bytes.len().min(other.bytes.len());
        self.bytes[..common]
            .cmp(&other.bytes[..common])
            .then_with(|| self.length.cmp(&other.length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Bits {
        Bits::from_bits(text.bytes().map(|byte| byte == b'1'))
    }

    #[test]
    fn bit_substrings_match_text_model() {
        let text = "1011001110001";
        let whole = bits(text);
        assert_eq!((whole.len(), whole.bytes().len()), (13, 2));
        for start in 0..14 {
            for length in 0..14 {
                let piece: String = text.chars().skip(start).take(length).collect();
                assert_eq!(whole.slice(start, length), bits(&piece), "{start} {length}");
                let joined = bits(&text[..start.min(13)]).concat(&bits(&piece)).unwrap();
                assert_eq!(joined, bits(&format!("{}{piece}", &text[..start.min(13)])));
            }
        }
        assert_eq!(whole.resized(3), bits("101"));
        assert_eq!(whole.resized(15), bits("101100111000100"));
        assert_eq!(whole.map_bytes(|_, byte| !byte), bits("0100110001110"));
    }

    #[test]
    fn bit_strings_sort_prefix_first() {
        let sorted = ["", "0", "00", "01", "1", "10", "10000000", "100000000", "11"];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(bits(a).compare(&bits(b)), i.cmp(&j), "{a} {b}");
            }
        }
    }
}
