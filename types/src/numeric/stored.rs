//! Stored form of numbers in rows: a byte for form and scale, then a mantissa in the minimum
//! number of bytes, or base-10,000 digits. Byte by byte: `docs/formats/packed-row.md`.

use super::{Numeric, NumericForm};

/// Maximum scale that the first byte of a small numeric can hold.
const MAX_SMALL_SCALE: u8 = 0x7F;
const BIG: u8 = 0x80;
const BIG_NEGATIVE: u8 = 0x81;
const NAN: u8 = 0x82;
const INFINITY: u8 = 0x83;
const NEGATIVE_INFINITY: u8 = 0x84;

impl Numeric {
    /// Appends the stored form.
    pub(crate) fn write_stored(&self, out: &mut Vec<u8>) {
        match self.parts() {
            NumericForm::Small { mantissa, scale } => {
                debug_assert!(scale <= u32::from(MAX_SMALL_SCALE), "small scale");
                out.push(scale as u8);
                let used = (64 - (mantissa ^ (mantissa >> 63)).leading_zeros()) / 8 + 1;
                let used = if mantissa == 0 { 0 } else { used as usize };
                out.extend_from_slice(&mantissa.to_le_bytes()[..used]);
            }
            NumericForm::Big { negative, weight, scale, digits } => {
                out.push(if negative { BIG_NEGATIVE } else { BIG });
                out.extend_from_slice(&weight.to_le_bytes());
                out.extend_from_slice(&(scale as u16).to_le_bytes());
                for digit in digits {
                    out.extend_from_slice(&digit.to_le_bytes());
                }
            }
            NumericForm::NaN => out.push(NAN),
            NumericForm::Infinity => out.push(INFINITY),
            NumericForm::NegativeInfinity => out.push(NEGATIVE_INFINITY),
        }
    }

    /// Returns whether the bytes are a valid stored form.
    #[inline]
    pub(crate) fn is_stored(bytes: &[u8]) -> bool {
        match bytes.split_first() {
            Some((0..=MAX_SMALL_SCALE, rest)) if rest.len() <= 8 => true,
            Some((&tag, rest)) => read_large(tag, rest).is_some(),
            None => false,
        }
    }

    /// Returns the number of a stored form; `None` if the bytes are malformed.
    #[inline]
    pub(crate) fn read_stored(bytes: &[u8]) -> Option<Numeric> {
        let (&tag, rest) = bytes.split_first()?;
        match rest.len() <= 8 && tag <= MAX_SMALL_SCALE {
            true => {
                // From the highest byte, which contains the sign. Usually there are few.
                let (mut mantissa, mut bytes) = (0, rest.iter().rev());
                if let Some(&highest) = bytes.next() {
                    mantissa = i64::from(highest.cast_signed());
                }
                for &byte in bytes {
                    mantissa = mantissa << 8 | i64::from(byte);
                }
                Some(Numeric::from_small(mantissa, tag))
            }
            false => read_large(tag, rest),
        }
    }
}

fn read_large(tag: u8, rest: &[u8]) -> Option<Numeric> {
    match tag {
        BIG | BIG_NEGATIVE => {
            let (weight, rest) = rest.split_first_chunk::<4>()?;
            let (scale, rest) = rest.split_first_chunk::<2>()?;
            let (digits, []) = rest.as_chunks::<2>() else { return None };
            let digits = digits.iter().map(|digit| u16::from_le_bytes(*digit)).collect();
            let scale = u32::from(u16::from_le_bytes(*scale));
            Numeric::from_parts(tag == BIG_NEGATIVE, i32::from_le_bytes(*weight), scale, digits)
        }
        NAN if rest.is_empty() => Some(Numeric::NAN),
        INFINITY if rest.is_empty() => Some(Numeric::INFINITY),
        NEGATIVE_INFINITY if rest.is_empty() => Some(Numeric::NEGATIVE_INFINITY),
        _ => None,
    }
}
