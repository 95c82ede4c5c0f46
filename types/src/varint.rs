//! Variable-length integers of stored values: seven bits per byte, the lowest first, with the
//! highest bit set if more bytes follow.

/// Appends a number.
pub(crate) fn put(mut number: u64, out: &mut Vec<u8>) {
    debug_assert!(number < 1 << 35, "{number} cannot be read again");
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Consumes a number of up to 35 bits; `None` if the bytes end within it.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    if let [byte @ 0..=0x7f, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(u64::from(*byte));
    }
    let mut number = 0;
    for shift in [0, 7, 14, 21, 28] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip() {
        for number in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), (1 << 35) - 1] {
            let mut out = Vec::new();
            put(number, &mut out);
            out.push(7);
            let mut rest = out.as_slice();
            assert_eq!((take(&mut rest), rest), (Some(number), [7].as_slice()));
        }
        for endless in [[].as_slice(), &[0x80], &[0xff; 5]] {
            assert_eq!(take(&mut { endless }), None);
        }
    }
}
