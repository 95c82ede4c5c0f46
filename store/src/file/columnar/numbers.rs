//! Frame-of-reference encoding of numbers: the least, and the difference of each to it in as few
//! bytes as the largest difference needs; none if all are equal.
//!
//! `least (8) | width (1) | differences (width each)`, little endian.

use crate::file::columnar::Malformed;

/// Bytes before the differences.
const HEAD_BYTES: usize = 8 + 1;

/// Appends numbers.
pub(super) fn append_numbers(numbers: &[u64], out: &mut Vec<u8>) {
    let least = numbers.iter().copied().min().unwrap_or(0);
    let farthest = numbers.iter().copied().max().unwrap_or(0) - least;
    let width = (64 - farthest.leading_zeros()).div_ceil(8) as usize;
    out.extend_from_slice(&least.to_le_bytes());
    out.push(width as u8);
    for number in numbers {
        out.extend_from_slice(&(number - least).to_le_bytes()[..width]);
    }
}

/// Decoded head of a number part.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumbersHead {
    least: u64,
    width: u8,
}

impl NumbersHead {
    /// Decodes the head of a part of `count` numbers, and checks its length.
    pub(super) fn read(part: &[u8], count: usize) -> Result<NumbersHead, Malformed> {
        let (least, rest) = part.split_first_chunk::<8>().ok_or(Malformed)?;
        let (&width, differences) = rest.split_first().ok_or(Malformed)?;
        if width > 8 || differences.len() != count * usize::from(width) {
            return Err(Malformed);
        }
        Ok(NumbersHead { least: u64::from_le_bytes(*least), width })
    }

    /// Returns number `index` of the part that the head was decoded from; the least one if
    /// `index` is out of range.
    pub(super) fn get(self, part: &[u8], index: usize) -> u64 {
        let width = usize::from(self.width);
        let mut bytes = [0; 8];
        let at = HEAD_BYTES + index * width;
        if let Some(difference) = part.get(at..at + width) {
            for (to, from) in bytes.iter_mut().zip(difference) {
                *to = *from;
            }
        }
        self.least.wrapping_add(u64::from_le_bytes(bytes))
    }

    /// Returns the common value of all numbers, if they are equal.
    pub(super) fn only(self) -> Option<u64> {
        (self.width == 0).then_some(self.least)
    }
}
