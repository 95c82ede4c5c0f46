//! Key encoding of `numeric`: class, exponent and digits to the base 100.
//!
//! The digits are those of `0.d1 d2 d3 … × 100^exponent` without leading and trailing zero
//! digits, so that the encoding does not depend on the scale.

use smallvec::SmallVec;

use super::corrupt;
use crate::error::Result;
use crate::numeric::Numeric;
use crate::numeric::NumericForm;

const NEGATIVE_INFINITY: u8 = 0x10;
const NEGATIVE: u8 = 0x20;
const ZERO: u8 = 0x30;
const POSITIVE: u8 = 0x40;
const INFINITY: u8 = 0x50;
const NAN: u8 = 0x60;

/// Exponents that are encoded in one byte, biased by [`EXPONENT_BIAS`].
const SHORT_EXPONENTS: std::ops::RangeInclusive<i32> = -126..=125;
const EXPONENT_BIAS: i32 = 0x80;
/// Prefix of a three-byte exponent below the short ones.
const LONG_LOW: u8 = 0x01;
/// Prefix of a three-byte exponent above the short ones.
const LONG_HIGH: u8 = 0xFE;
const LONG_BIAS: i32 = 1 << 23;
/// End of the digits, which are stored plus one.
const END: u8 = 0x00;

/// Appends the key encoding of a number.
pub(super) fn encode(number: &Numeric, out: &mut Vec<u8>) {
    match number.parts() {
        NumericForm::NegativeInfinity => out.push(NEGATIVE_INFINITY),
        NumericForm::Infinity => out.push(INFINITY),
        NumericForm::NaN => out.push(NAN),
        NumericForm::Small { mantissa: 0, .. } => out.push(ZERO),
        NumericForm::Small { mantissa, scale } => encode_small(mantissa, scale, out),
        NumericForm::Big { digits: [], .. } => out.push(ZERO),
        NumericForm::Big { negative, weight, digits, .. } => {
            let pairs: SmallVec<[u8; 64]> = digits
                .iter()
                .flat_map(|digit| [(digit / 100) as u8, (digit % 100) as u8])
                .collect();
            let skip = usize::from(pairs[0] == 0);
            put(negative, (weight + 1) * 2 - skip as i32, &pairs[skip..], out);
        }
    }
}

fn encode_small(mantissa: i64, scale: u32, out: &mut Vec<u8>) {
    let odd = scale % 2;
    let mut rest = u128::from(mantissa.unsigned_abs());
    if odd == 1 {
        rest *= 10;
    }
    let mut pairs = [0u8; 12];
    let mut at = pairs.len();
    // Above 64 bits only for the largest mantissas.
    while rest > u128::from(u64::MAX) {
        at -= 1;
        pairs[at] = (rest % 100) as u8;
        rest /= 100;
    }
    let mut rest = rest as u64;
    while rest != 0 {
        at -= 1;
        pairs[at] = (rest % 100) as u8;
        rest /= 100;
    }
    let exponent = (pairs.len() - at) as i32 - (scale + odd) as i32 / 2;
    put(mantissa < 0, exponent, &pairs[at..], out);
}

fn put(negative: bool, exponent: i32, pairs: &[u8], out: &mut Vec<u8>) {
    out.push(if negative { NEGATIVE } else { POSITIVE });
    let start = out.len();
    if SHORT_EXPONENTS.contains(&exponent) {
        out.push((exponent + EXPONENT_BIAS) as u8);
    } else {
        out.push(if exponent < 0 { LONG_LOW } else { LONG_HIGH });
        out.extend_from_slice(&(exponent + LONG_BIAS).to_be_bytes()[1..]);
    }
    let zeros = pairs.iter().rev().take_while(|&&pair| pair == 0).count();
    out.extend(pairs[..pairs.len() - zeros].iter().map(|pair| pair + 1));
    out.push(END);
    if negative {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

/// Returns the number at the start of `bytes`, after xor with `mask`, and its length. Its scale
/// is the minimum.
pub(super) fn decode(bytes: &[u8], mask: u8) -> Result<(Numeric, usize)> {
    let class = *bytes.first().ok_or_else(|| corrupt("truncated numeric"))? ^ mask;
    let negative = match class {
        NEGATIVE_INFINITY => return Ok((Numeric::NEGATIVE_INFINITY, 1)),
        INFINITY => return Ok((Numeric::INFINITY, 1)),
        NAN => return Ok((Numeric::NAN, 1)),
        ZERO => return Ok((Numeric::ZERO, 1)),
        NEGATIVE => true,
        POSITIVE => false,
        _ => return Err(corrupt("invalid class of a numeric")),
    };
    let mask = if negative { !mask } else { mask };
    let mut at = 1;
    let mut next = || {
        let byte = bytes.get(at).map(|byte| byte ^ mask);
        at += 1;
        byte.ok_or_else(|| corrupt("truncated numeric"))
    };
    let first = next()?;
    let exponent = match first {
        LONG_LOW | LONG_HIGH => {
            let long = [0, next()?, next()?, next()?];
            i32::from_be_bytes(long) - LONG_BIAS
        }
        short => i32::from(short) - EXPONENT_BIAS,
    };
    let long = matches!(first, LONG_LOW | LONG_HIGH);
    if long == SHORT_EXPONENTS.contains(&exponent)
        || (long && (first == LONG_LOW) != (exponent < 0))
    {
        return Err(corrupt("invalid exponent of a numeric"));
    }
    let mut pairs: SmallVec<[u8; 32]> = SmallVec::new();
    loop {
        match next()? {
            END => break,
            digit @ 1..=100 => pairs.push(digit - 1),
            _ => return Err(corrupt("invalid digit of a numeric")),
        }
    }
    let ends = (pairs.first().copied(), pairs.last().copied());
    if matches!(ends, (None | Some(0), _) | (_, None | Some(0))) {
        return Err(corrupt("a numeric has trailing zeros"));
    }
    let number = assemble(negative, exponent, &pairs);
    Ok((number.ok_or_else(|| corrupt("a numeric is out of range"))?, at))
}

fn assemble(negative: bool, exponent: i32, pairs: &[u8]) -> Option<Numeric> {
    let count = pairs.len() as i32;
    let mut scale = (count - exponent) * 2;
    if count <= 9 && (-18..=36).contains(&scale) {
        let mut mantissa = pairs.iter().fold(0u64, |sum, &pair| sum * 100 + u64::from(pair));
        if scale > 0 && mantissa.is_multiple_of(10) {
            mantissa /= 10;
            scale -= 1;
        }
        let mut mantissa = i128::from(mantissa);
        while scale < 0 {
            mantissa *= 10;
            scale += 1;
        }
        return Some(Numeric::from_mantissa(
            if negative { -mantissa } else { mantissa },
            scale as u32,
        ));
    }
    let mut digits = Vec::with_capacity(pairs.len() / 2 + 1);
    let mut rest = pairs;
    if exponent.rem_euclid(2) == 1 {
        digits.push(u16::from(pairs[0]));
        rest = &pairs[1..];
    }
    for chunk in rest.chunks(2) {
        digits.push(u16::from(chunk[0]) * 100 + chunk.get(1).copied().map_or(0, u16::from));
    }
    let weight = (exponent + 1).div_euclid(2) - 1;
    let last_zero = pairs.last().is_some_and(|pair| pair % 10 == 0);
    let scale = (scale - i32::from(last_zero)).max(0) as u32;
    Numeric::from_parts(negative, weight, scale, digits)
}
