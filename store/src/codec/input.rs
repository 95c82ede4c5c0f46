//! Cursor over encoded bytes, and variable-length integers: unsigned LEB128, seven bits per byte,
//! the lowest first.

/// Appends an unsigned LEB128 number.
pub(crate) fn push_varint(out: &mut impl Extend<u8>, mut value: u64) {
    while value >= 0x80 {
        out.extend(Some(value as u8 | 0x80));
        value >>= 7;
    }
    out.extend(Some(value as u8));
}

/// Cursor over the bytes still to be decoded.
#[derive(Debug, Clone)]
pub(crate) struct Input<'a> {
    pub(crate) bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*taken)
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        if let [byte @ 0..0x80, rest @ ..] = self.bytes {
            self.bytes = rest;
            return Some(u64::from(*byte));
        }
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn slice(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }
}
