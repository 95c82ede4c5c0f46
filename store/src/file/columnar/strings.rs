//! Encoding of byte strings with access by index: the common prefix, then the end offsets unless
//! all have one length, then the rest of each string.
//!
//! `length of the prefix (2) | width of ends: 0, 2, 4 (1) | zero (1) | length, if width is 0 (4) |
//! prefix | ends (width each) | bytes`, little endian. Lengths and ends are those behind the
//! prefix.

use std::ops::Range;

use crate::file::columnar::Malformed;
use crate::file::format::u32_at;
use crate::prefetch::prefetch;

/// Bytes before the prefix.
const HEAD_BYTES: usize = 2 + 1 + 1 + 4;

/// Builder of a string part.
#[derive(Default)]
pub(super) struct StringsBuilder {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl StringsBuilder {
    pub(super) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Returns the number of strings.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the string pushed last.
    pub(super) fn last(&self) -> Option<&[u8]> {
        self.get(self.ends.len().checked_sub(1)?)
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        let end = *self.ends.get(index)? as usize;
        Some(&self.bytes[start..end])
    }

    /// Returns the end offset of string `index`.
    pub(super) fn end(&self, index: usize) -> usize {
        self.ends[index] as usize
    }

    /// Appends the strings, which share their first `prefix_length` bytes.
    pub(super) fn append(&self, prefix_length: usize, out: &mut Vec<u8>) {
        let count = self.ends.len();
        let length_of = |index: usize| self.get(index).map_or(0, |string| string.len());
        let length = length_of(0);
        let same = (1..count).all(|index| length_of(index) == length);
        debug_assert!(
            (0..count).all(|index| length_of(index) >= prefix_length),
            "a string is shorter than the common prefix"
        );
        let rest_bytes = self.bytes.len() - count * prefix_length;
        let width = match (same, u16::try_from(rest_bytes)) {
            (true, _) => 0,
            (false, Ok(_)) => 2,
            (false, Err(_)) => 4,
        };
        out.extend_from_slice(&(prefix_length as u16).to_le_bytes());
        out.extend_from_slice(&[width, 0]);
        let length = if same { length.saturating_sub(prefix_length) } else { 0 };
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&self.get(0).unwrap_or_default()[..prefix_length]);
        for (index, end) in self.ends.iter().enumerate() {
            let end = end - ((index + 1) * prefix_length) as u32;
            out.extend_from_slice(&end.to_le_bytes()[..usize::from(width)]);
        }
        if prefix_length == 0 {
            out.extend_from_slice(&self.bytes);
        } else {
            for index in 0..count {
                out.extend_from_slice(&self.get(index).unwrap_or_default()[prefix_length..]);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Decoded head of a string part.
#[derive(Debug, Clone, Copy)]
pub(super) struct StringsHead {
    prefix_length: u16,
    end_width: u8,
    /// Length of each string, if `end_width` is 0.
    length: u32,
    /// Offset of the bytes of the strings.
    bytes_at: u32,
}

impl StringsHead {
    /// Decodes the head of a part of `count` strings, and checks that their bytes exist.
    pub(super) fn read(part: &[u8], count: usize) -> Result<StringsHead, Malformed> {
        let head = StringsHead::of_head(part, count)?;
        let byte_count = part.len() - head.bytes_at as usize;
        let all = (head.length as usize).checked_mul(count).ok_or(Malformed)?;
        if head.end_width == 0 && byte_count != all { Err(Malformed) } else { Ok(head) }
    }

    /// Decodes the head of `count` strings, whose bytes need not be loaded.
    pub(super) fn of_head(part: &[u8], count: usize) -> Result<StringsHead, Malformed> {
        let [low, high, end_width, 0] = *part.get(..4).ok_or(Malformed)? else {
            return Err(Malformed);
        };
        let length = u32_at(part, 4).ok_or(Malformed)?;
        let prefix_length = u16::from_le_bytes([low, high]);
        let bytes_at = HEAD_BYTES + usize::from(prefix_length) + count * usize::from(end_width);
        if bytes_at > part.len() || !matches!(end_width, 0 | 2 | 4) {
            return Err(Malformed);
        }
        let bytes_at = u32::try_from(bytes_at).map_err(|_| Malformed)?;
        Ok(StringsHead { prefix_length, end_width, length, bytes_at })
    }

    /// Returns the strings of the part that the head was decoded from.
    pub(super) fn of(self, part: &[u8]) -> Strings<'_> {
        Strings { head: self, part }
    }
}

/// Strings of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strings<'b> {
    head: StringsHead,
    part: &'b [u8],
}

impl<'b> Strings<'b> {
    pub(super) fn open(part: &'b [u8], count: usize) -> Result<Strings<'b>, Malformed> {
        Ok(StringsHead::read(part, count)?.of(part))
    }

    /// Returns the common prefix of all strings.
    pub(super) fn prefix(&self) -> &'b [u8] {
        let length = usize::from(self.head.prefix_length);
        self.part.get(HEAD_BYTES..HEAD_BYTES + length).unwrap_or_default()
    }

    /// Prefetches the bytes that a binary search reads in its first steps.
    pub(super) fn prefetch(&self) {
        let ends_at = HEAD_BYTES + usize::from(self.head.prefix_length);
        let bytes_at = self.head.bytes_at as usize;
        for range in [ends_at..bytes_at, bytes_at..self.part.len()] {
            for eighth in 1..8 {
                if let Some(byte) = self.part.get(range.start + range.len() / 8 * eighth)
                    && !range.is_empty()
                {
                    prefetch(byte);
                }
            }
        }
    }

    /// Returns the end offset of string `index`.
    pub(super) fn end(&self, index: usize) -> Option<usize> {
        let ends_at = HEAD_BYTES + usize::from(self.head.prefix_length);
        match self.head.end_width {
            0 => Some((index + 1) * self.head.length as usize),
            2 => {
                let end = self.part.get(ends_at + index * 2..)?.first_chunk::<2>()?;
                Some(usize::from(u16::from_le_bytes(*end)))
            }
            _ => u32_at(self.part, ends_at + index * 4).map(|end| end as usize),
        }
    }

    /// Returns string `index` without the prefix. The index must be in range.
    pub(super) fn get(&self, index: usize) -> Result<&'b [u8], Malformed> {
        let start = match index.checked_sub(1) {
            None => 0,
            Some(before) => self.end(before).ok_or(Malformed)?,
        };
        let end = self.end(index).ok_or(Malformed)?;
        let bytes = self.part.get(self.head.bytes_at as usize..).ok_or(Malformed)?;
        bytes.get(start..end).ok_or(Malformed)
    }

    /// Returns some strings concatenated, without the prefix, and appends the end offset of each
    /// to `ends`: they ascend. The range must be valid.
    pub(super) fn run(
        &self,
        strings: Range<usize>,
        ends: &mut Vec<u32>,
    ) -> Result<&'b [u8], Malformed> {
        let end_before = |index: usize| match index.checked_sub(1) {
            None => Some(0),
            Some(before) => self.end(before),
        };
        let start = end_before(strings.start).ok_or(Malformed)?;
        let end = end_before(strings.end).ok_or(Malformed)?;
        let bytes = self.part.get(self.head.bytes_at as usize..).ok_or(Malformed)?;
        let bytes = bytes.get(start..end).ok_or(Malformed)?;
        let first = ends.len();
        let from_start = |end: u32| end.wrapping_sub(start as u32);
        match self.head.end_width {
            0 => ends.extend((1..=strings.len() as u32).map(|number| number * self.head.length)),
            2 => ends.extend(
                self.stored_ends::<2>(strings)?
                    .iter()
                    .map(|end| from_start(u32::from(u16::from_le_bytes(*end)))),
            ),
            _ => ends.extend(
                self.stored_ends::<4>(strings)?
                    .iter()
                    .map(|end| from_start(u32::from_le_bytes(*end))),
            ),
        }
        if ends[first..].is_sorted() { Ok(bytes) } else { Err(Malformed) }
    }

    /// Returns the stored end offsets of some strings, of `WIDTH` bytes each.
    fn stored_ends<const WIDTH: usize>(
        &self,
        strings: Range<usize>,
    ) -> Result<&'b [[u8; WIDTH]], Malformed> {
        let ends_at = HEAD_BYTES + usize::from(self.head.prefix_length);
        let range = ends_at + strings.start * WIDTH..ends_at + strings.end * WIDTH;
        Ok(self.part.get(range).ok_or(Malformed)?.as_chunks().0)
    }

    /// Returns the first eight bytes of string `index`, without the prefix, padded with zeros, as
    /// a number that sorts as they do. The index must be in range.
    pub(super) fn first_bytes(&self, index: usize) -> Result<u64, Malformed> {
        let string = self.get(index)?;
        Ok(match string.first_chunk() {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => first_bytes(string),
        })
    }

    /// Returns the common value of all strings, if they are equal.
    pub(super) fn only(&self) -> Option<&'b [u8]> {
        (self.head.end_width == 0 && self.head.length == 0).then_some(self.prefix())
    }
}

/// Returns the first eight bytes, padded with zeros, as a number that sorts as they do.
pub(super) fn first_bytes(string: &[u8]) -> u64 {
    // A loop, as most are short: a copy would be a call.
    let bytes = string.iter().take(8);
    bytes
        .fold((0, 64), |(number, left), &byte| (number | u64::from(byte) << (left - 8), left - 8))
        .0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(strings: &[&[u8]], prefix_length: usize) -> Vec<u8> {
        let mut builder = StringsBuilder::default();
        strings.iter().for_each(|string| builder.push(string));
        let mut part = Vec::new();
        builder.append(prefix_length, &mut part);
        part
    }

    #[test]
    fn string_runs_equal_individual_reads() {
        let long = vec![b'x'; 70_000];
        let cases: [(&[&[u8]], usize); 4] = [
            (&[b"ab", b"cd", b"ef"], 0),
            (&[b"pa", b"p", b"pbcd"], 1),
            (&[b"a", &long, b"", b"b"], 0),
            (&[b"", b""], 0),
        ];
        for (strings, prefix_length) in cases {
            let part = part(strings, prefix_length);
            let opened = Strings::open(&part, strings.len()).unwrap();
            for from in 0..strings.len() {
                for to in from..=strings.len() {
                    let mut ends = vec![7];
                    let bytes = opened.run(from..to, &mut ends).unwrap();
                    let mut start = 0;
                    for (number, end) in (from..to).zip(&ends[1..]) {
                        assert_eq!(&bytes[start..*end as usize], opened.get(number).unwrap());
                        start = *end as usize;
                    }
                    assert_eq!((start, ends.len()), (bytes.len(), to - from + 1));
                }
            }
        }
    }

    #[test]
    fn non_ascending_string_ends_are_corruption() {
        let mut part = part(&[b"a", b"bc", b"d"], 0);
        // The end of the second string, behind the end of the third.
        part[HEAD_BYTES + 2] = 9;
        let opened = Strings::open(&part, 3).unwrap();
        assert!(opened.run(0..3, &mut Vec::new()).is_err());
        assert!(opened.run(0..1, &mut Vec::new()).is_ok());
    }
}
