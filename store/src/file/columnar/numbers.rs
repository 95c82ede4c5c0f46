//! Numbers near to each other: the least, and how far each is above it in as few bytes as the
//! farthest needs; none if all are equal.
//!
//! `least (8) | width (1) | differences (width each)`, little endian.

use crate::file::columnar::Malformed;

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

/// Numbers of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers<'b> {
    least: u64,
    width: usize,
    differences: &'b [u8],
}

impl<'b> Numbers<'b> {
    pub(super) fn open(part: &'b [u8], count: usize) -> Result<Numbers<'b>, Malformed> {
        let (least, rest) = part.split_first_chunk::<8>().ok_or(Malformed)?;
        let (&width, differences) = rest.split_first().ok_or(Malformed)?;
        let width = usize::from(width);
        if width > 8 || differences.len() != count * width {
            return Err(Malformed);
        }
        Ok(Numbers { least: u64::from_le_bytes(*least), width, differences })
    }

    /// Returns number `index`; the least one if there are not so many.
    pub(super) fn get(&self, index: usize) -> u64 {
        let mut bytes = [0; 8];
        if let Some(difference) = self.differences.get(index * self.width..(index + 1) * self.width)
        {
            bytes[..self.width].copy_from_slice(difference);
        }
        self.least.wrapping_add(u64::from_le_bytes(bytes))
    }

    /// Returns the number that all are, if they are.
    pub(super) fn only(&self) -> Option<u64> {
        (self.width == 0).then_some(self.least)
    }
}
