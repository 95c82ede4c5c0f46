//! `numeric`: decimal numbers of any precision, with display scale, NaN and the infinities,
//! computed as PostgreSQL computes them.
//!
//! A [`Numeric`] is small or big. Small values, nearly all that tables hold, are an `i64` mantissa
//! and a scale, held inline; their arithmetic is integer arithmetic in `i128` and allocates
//! nothing. What does not fit is an array of base-10,000 digits (`numeric/digits.rs`), shared
//! behind an
//! `Arc`. Result scales, rounding and limits follow PostgreSQL's `numeric.c`: up to 131,072 digits
//! before the point and 16,383 after it.
//!
//! Equality, order and hash are those of SQL: `1.0` equals `1.00`, NaN equals NaN and is greater
//! than everything else.
//!
//! # Invariants
//!
//! 1. A small value's scale is at most `MAX_SMALL_SCALE`.
//! 2. A big value keeps the invariants of `numeric/digits.rs` and the limits of the format.

mod digits;
mod text;
mod transcendental;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use self::digits::Digits;
use self::digits::Rounding;
use crate::error::Error;
use crate::error::Result;
use crate::error::sqlstate;

/// The largest scale of the inline form.
const MAX_SMALL_SCALE: u32 = 36;
/// The largest scale that the format can show.
const MAX_SCALE: u32 = 16_383;
/// The largest weight, in digits of base 10,000.
const MAX_WEIGHT: i32 = 32_767;
/// Digits shown at least by division and the transcendental functions.
const MIN_SIGNIFICANT_DIGITS: i32 = 16;
/// The most digits after the point that a function chooses by itself.
const MAX_DISPLAY_SCALE: i32 = 1000;

/// Powers of ten that fit an i128.
const POWERS: [i128; 39] = {
    let mut powers = [1i128; 39];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// Powers of ten that fit an i64.
const SMALL_POWERS: [i64; 19] = {
    let mut powers = [1i64; 19];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// A `numeric` value. At most 16 bytes with 8-byte alignment, so that a `Datum` stays at 24.
#[derive(Clone)]
pub struct Numeric(Repr);

#[derive(Clone)]
enum Repr {
    Small { scale: u16, mantissa: i64 },
    Big(Arc<Digits>),
    NegativeInfinity,
    Infinity,
    NaN,
}

const _: () = assert!(size_of::<Numeric>() == 16 && align_of::<Numeric>() == 8);

/// A value's kind as storage and keys see it.
pub(crate) enum Parts<'a> {
    /// `mantissa * 10^-scale`
    Small { mantissa: i64, scale: u32 },
    /// Base-10,000 digits, the first counting 10000^weight.
    Big { negative: bool, weight: i32, scale: u32, digits: &'a [u16] },
    /// -Infinity
    NegativeInfinity,
    /// Infinity
    Infinity,
    /// NaN
    NaN,
}

/// Returns PostgreSQL's error for a value outside of the format.
fn overflow() -> Error {
    Error::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

/// Returns PostgreSQL's error for a division by zero.
fn division_by_zero() -> Error {
    Error::new(sqlstate::DIVISION_BY_ZERO, "division by zero")
}

/// Divides and rounds half away from zero. The divisor is above zero.
fn div_round(value: i128, divisor: i128) -> i128 {
    let quotient = value / divisor;
    let rest = (value % divisor).abs();
    if rest >= divisor - rest { quotient + value.signum() } else { quotient }
}

impl Numeric {
    /// 0
    pub const ZERO: Numeric = Numeric(Repr::Small { scale: 0, mantissa: 0 });
    /// 1
    pub const ONE: Numeric = Numeric(Repr::Small { scale: 0, mantissa: 1 });
    /// NaN, equal to itself and greater than all else.
    pub const NAN: Numeric = Numeric(Repr::NaN);
    /// Infinity
    pub const INFINITY: Numeric = Numeric(Repr::Infinity);
    /// -Infinity
    pub const NEGATIVE_INFINITY: Numeric = Numeric(Repr::NegativeInfinity);

    /// Returns a whole number.
    pub fn from_i128(value: i128) -> Numeric {
        Numeric::from_mantissa(value, 0)
    }

    /// Returns `mantissa * 10^-scale`, shown with `scale` digits after the point.
    #[inline]
    pub(crate) fn from_small(mantissa: i64, scale: u8) -> Numeric {
        match u32::from(scale) <= MAX_SMALL_SCALE {
            true => Numeric(Repr::Small { scale: u16::from(scale), mantissa }),
            false => Numeric::from_mantissa(i128::from(mantissa), u32::from(scale)),
        }
    }

    /// Returns `mantissa * 10^-scale`, shown with `scale` digits after the point, at most 16,383.
    pub fn from_mantissa(mantissa: i128, scale: u32) -> Numeric {
        let scale = scale.min(MAX_SCALE);
        match i64::try_from(mantissa) {
            Ok(mantissa) if scale <= MAX_SMALL_SCALE => {
                Numeric(Repr::Small { scale: scale as u16, mantissa })
            }
            _ => Numeric(Repr::Big(Arc::new(Digits::from_mantissa(mantissa, scale)))),
        }
    }

    /// Returns the mantissa and scale if the value is finite and its mantissa fits an i128.
    pub fn to_mantissa(&self) -> Option<(i128, u32)> {
        match &self.0 {
            Repr::Small { scale, mantissa } => Some((i128::from(*mantissa), u32::from(*scale))),
            Repr::Big(digits) => Some((digits.mantissa()?, digits.scale)),
            _ => None,
        }
    }

    /// Returns the value of a double as PostgreSQL casts it: to 15 significant digits.
    pub fn try_from_f64(value: f64) -> Result<Numeric> {
        Numeric::from_float_text(value, &format!("{value:.14e}"))
    }

    /// Returns the value of a float as PostgreSQL casts it: to 6 significant digits.
    pub fn try_from_f32(value: f32) -> Result<Numeric> {
        Numeric::from_float_text(f64::from(value), &format!("{value:.5e}"))
    }

    fn from_float_text(value: f64, text: &str) -> Result<Numeric> {
        if value.is_nan() {
            return Ok(Numeric::NAN);
        }
        if value.is_infinite() {
            return Ok(if value > 0.0 { Numeric::INFINITY } else { Numeric::NEGATIVE_INFINITY });
        }
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        Numeric::parse(&format!("{mantissa}e{exponent}"))
    }

    /// Checks the limits of the format and takes the inline form if it fits.
    fn from_digits(digits: Digits) -> Result<Numeric> {
        if digits.weight > MAX_WEIGHT || digits.scale > MAX_SCALE {
            return Err(overflow());
        }
        if digits.scale <= MAX_SMALL_SCALE
            && let Some(Ok(mantissa)) = digits.mantissa().map(i64::try_from)
        {
            return Ok(Numeric(Repr::Small { scale: digits.scale as u16, mantissa }));
        }
        Ok(Numeric(Repr::Big(Arc::new(digits))))
    }

    /// Returns the digits of a finite value.
    fn to_digits(&self) -> Option<Digits> {
        match &self.0 {
            Repr::Small { scale, mantissa } => {
                Some(Digits::from_mantissa(i128::from(*mantissa), u32::from(*scale)))
            }
            Repr::Big(digits) => Some(Digits::clone(digits)),
            _ => None,
        }
    }

    /// Returns what the value is made of.
    pub(crate) fn parts(&self) -> Parts<'_> {
        match &self.0 {
            Repr::Small { scale, mantissa } => {
                Parts::Small { mantissa: *mantissa, scale: u32::from(*scale) }
            }
            Repr::Big(digits) => Parts::Big {
                negative: digits.negative,
                weight: digits.weight,
                scale: digits.scale,
                digits: &digits.digits,
            },
            Repr::NegativeInfinity => Parts::NegativeInfinity,
            Repr::Infinity => Parts::Infinity,
            Repr::NaN => Parts::NaN,
        }
    }

    /// Returns the same value with its digits spelled out, whether it fits the inline form or not.
    pub(crate) fn as_digits(&self) -> Numeric {
        match self.to_digits() {
            Some(digits) => Numeric(Repr::Big(Arc::new(digits))),
            None => self.clone(),
        }
    }

    /// Returns the value of base-10,000 digits, the first counting 10000^weight; what lies beyond
    /// `scale` is cut off. `None` if a digit or a limit of the format is exceeded.
    pub(crate) fn from_parts(
        negative: bool,
        weight: i32,
        scale: u32,
        digits: Vec<u16>,
    ) -> Option<Numeric> {
        let fits = digits.iter().all(|&digit| u32::from(digit) < digits::BASE)
            && weight.unsigned_abs() <= 1 << 20
            && scale <= MAX_SCALE;
        if !fits {
            return None;
        }
        let mut value = Digits { negative, weight, scale, digits };
        value.normalize();
        value.set_scale(scale as i32, Rounding::Truncate);
        Numeric::from_digits(value).ok()
    }

    /// Returns the nearest double; infinite if there is none.
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            Repr::Small { scale, mantissa }
                if *scale <= 22 && mantissa.unsigned_abs() < 1 << 53 =>
            {
                *mantissa as f64 / POWERS[usize::from(*scale)] as f64
            }
            Repr::Small { .. } => self.to_string().parse().unwrap_or(f64::NAN),
            Repr::Big(digits) => digits.to_f64(),
            Repr::NegativeInfinity => f64::NEG_INFINITY,
            Repr::Infinity => f64::INFINITY,
            Repr::NaN => f64::NAN,
        }
    }

    /// Returns the nearest whole number, half away from zero; `None` if it is no i64.
    pub fn to_i64(&self) -> Option<i64> {
        i64::try_from(self.to_i128()?).ok()
    }

    /// Returns the nearest whole number, half away from zero; `None` if it is no i128.
    pub fn to_i128(&self) -> Option<i128> {
        match &self.0 {
            Repr::Small { scale, mantissa } => {
                Some(div_round(i128::from(*mantissa), POWERS[usize::from(*scale)]))
            }
            Repr::Big(digits) => {
                let mut whole = Digits::clone(digits);
                whole.set_scale(0, Rounding::Nearest);
                whole.mantissa()
            }
            _ => None,
        }
    }

    /// Returns the digits shown after the point; 0 for NaN and the infinities.
    pub fn scale(&self) -> u32 {
        match &self.0 {
            Repr::Small { scale, .. } => u32::from(*scale),
            Repr::Big(digits) => digits.scale,
            _ => 0,
        }
    }

    /// Returns how many digits after the point are needed to show the value exactly.
    pub fn min_scale(&self) -> u32 {
        match &self.0 {
            Repr::Small { scale, mantissa } => reduced(*mantissa, u32::from(*scale)).1,
            Repr::Big(digits) => digits.min_scale(),
            _ => 0,
        }
    }

    /// Returns the same value shown with `scale` digits, or with as many as it needs if these are
    /// more.
    #[must_use]
    pub fn with_scale(&self, scale: u32) -> Numeric {
        self.round(scale.max(self.min_scale()).min(MAX_SCALE) as i32)
    }

    /// Returns the bytes held outside of the value itself.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Big(digits) => size_of::<Digits>() + 16 + digits.digits.capacity() * 2,
            _ => 0,
        }
    }

    /// Returns whether this is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self.0, Repr::NaN)
    }

    /// Returns whether this is an infinity.
    pub fn is_infinite(&self) -> bool {
        matches!(self.0, Repr::Infinity | Repr::NegativeInfinity)
    }

    /// Returns whether this is neither NaN nor an infinity.
    pub fn is_finite(&self) -> bool {
        matches!(self.0, Repr::Small { .. } | Repr::Big(_))
    }

    /// Returns whether this is 0.
    pub fn is_zero(&self) -> bool {
        self.sign() == 0 && self.is_finite()
    }

    /// Returns -1, 0 or 1; 0 also for NaN.
    fn sign(&self) -> i32 {
        match &self.0 {
            Repr::Small { mantissa, .. } => mantissa.signum() as i32,
            Repr::Big(digits) => match (digits.is_zero(), digits.negative) {
                (true, _) => 0,
                (false, true) => -1,
                (false, false) => 1,
            },
            Repr::Infinity => 1,
            Repr::NegativeInfinity => -1,
            Repr::NaN => 0,
        }
    }

    fn infinity(sign: i32) -> Numeric {
        match sign.cmp(&0) {
            Ordering::Less => Numeric::NEGATIVE_INFINITY,
            Ordering::Equal => Numeric::NAN,
            Ordering::Greater => Numeric::INFINITY,
        }
    }

    /// Returns -1, 0 or 1, or NaN for NaN.
    #[must_use]
    pub fn signum(&self) -> Numeric {
        if self.is_nan() { Numeric::NAN } else { Numeric::from(i64::from(self.sign())) }
    }

    /// Returns the value with the other sign.
    #[must_use]
    pub fn neg(&self) -> Numeric {
        match &self.0 {
            Repr::Small { scale, mantissa } => {
                Numeric::from_mantissa(-i128::from(*mantissa), u32::from(*scale))
            }
            Repr::Big(digits) => Numeric(Repr::Big(Arc::new(digits.negated()))),
            Repr::NegativeInfinity => Numeric::INFINITY,
            Repr::Infinity => Numeric::NEGATIVE_INFINITY,
            Repr::NaN => Numeric::NAN,
        }
    }

    /// Returns the absolute value.
    #[must_use]
    pub fn abs(&self) -> Numeric {
        if self.sign() < 0 { self.neg() } else { self.clone() }
    }

    /// Returns the sum.
    ///
    /// # Errors
    ///
    /// `22003` if the result is outside of the format; the same for the other operations.
    pub fn checked_add(&self, other: &Numeric) -> Result<Numeric> {
        if let (
            Repr::Small { scale: a_scale, mantissa: a },
            Repr::Small { scale: b_scale, mantissa: b },
        ) = (&self.0, &other.0)
        {
            if a_scale == b_scale
                && let Some(mantissa) = a.checked_add(*b)
            {
                return Ok(Numeric(Repr::Small { scale: *a_scale, mantissa }));
            }
            let scale = (*a_scale).max(*b_scale);
            if let (Some(a), Some(b)) =
                (at_scale(*a, *a_scale, scale), at_scale(*b, *b_scale, scale))
                && let Some(sum) = a.checked_add(b)
            {
                return Ok(Numeric::from_mantissa(sum, u32::from(scale)));
            }
        }
        self.add_slow(other)
    }

    fn add_slow(&self, other: &Numeric) -> Result<Numeric> {
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => Numeric::from_digits(a.add(&b)),
            _ if self.is_nan() || other.is_nan() => Ok(Numeric::NAN),
            (Some(_), None) => Ok(other.clone()),
            (None, Some(_)) => Ok(self.clone()),
            (None, None) if self.sign() == other.sign() => Ok(self.clone()),
            (None, None) => Ok(Numeric::NAN),
        }
    }

    /// Returns the sum of small values, if it is one and easily found.
    #[inline]
    pub(crate) fn quick_add(&self, other: &Numeric) -> Option<Numeric> {
        let (a, b, scale) = self.alike(other)?;
        Some(Numeric(Repr::Small { scale, mantissa: a.checked_add(b)? }))
    }

    /// Returns the difference of small values, if it is one and easily found.
    #[inline]
    pub(crate) fn quick_sub(&self, other: &Numeric) -> Option<Numeric> {
        let (a, b, scale) = self.alike(other)?;
        Some(Numeric(Repr::Small { scale, mantissa: a.checked_sub(b)? }))
    }

    /// Returns the product of small values, if it is one and easily found.
    #[inline]
    pub(crate) fn quick_mul(&self, other: &Numeric) -> Option<Numeric> {
        let (
            Repr::Small { scale: a_scale, mantissa: a },
            Repr::Small { scale: b_scale, mantissa: b },
        ) = (&self.0, &other.0)
        else {
            return None;
        };
        let (mantissa, scale) = (a.checked_mul(*b)?, a_scale + b_scale);
        let fits = u32::from(scale) <= MAX_SMALL_SCALE;
        fits.then_some(Numeric(Repr::Small { scale, mantissa }))
    }

    /// Returns the mantissas of two small values at the larger of their scales, and that.
    #[inline]
    fn alike(&self, other: &Numeric) -> Option<(i64, i64, u16)> {
        let (
            Repr::Small { scale: a_scale, mantissa: a },
            Repr::Small { scale: b_scale, mantissa: b },
        ) = (&self.0, &other.0)
        else {
            return None;
        };
        if a_scale == b_scale {
            return Some((*a, *b, *a_scale));
        }
        let scale = (*a_scale).max(*b_scale);
        let at = |mantissa: i64, from: u16| {
            mantissa.checked_mul(*SMALL_POWERS.get(usize::from(scale - from))?)
        };
        Some((at(*a, *a_scale)?, at(*b, *b_scale)?, scale))
    }

    /// Returns the mantissa and the scale of a small value.
    #[inline]
    pub(crate) fn small(&self) -> Option<(i64, u32)> {
        match self.0 {
            Repr::Small { scale, mantissa } => Some((mantissa, u32::from(scale))),
            _ => None,
        }
    }

    /// Returns the difference.
    #[inline]
    pub fn checked_sub(&self, other: &Numeric) -> Result<Numeric> {
        if let (
            Repr::Small { scale: a_scale, mantissa: a },
            Repr::Small { scale: b_scale, mantissa: b },
        ) = (&self.0, &other.0)
            && a_scale == b_scale
            && let Some(mantissa) = a.checked_sub(*b)
        {
            return Ok(Numeric(Repr::Small { scale: *a_scale, mantissa }));
        }
        self.checked_add(&other.neg())
    }

    /// Returns the product.
    #[inline]
    pub fn checked_mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (
            Repr::Small { scale: a_scale, mantissa: a },
            Repr::Small { scale: b_scale, mantissa: b },
        ) = (&self.0, &other.0)
        {
            let product = i128::from(*a) * i128::from(*b);
            return Ok(Numeric::from_mantissa(product, u32::from(*a_scale + *b_scale)));
        }
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => {
                let scale = (a.scale + b.scale).min(MAX_SCALE);
                Numeric::from_digits(a.mul(&b, scale as i32))
            }
            _ if self.is_nan() || other.is_nan() => Ok(Numeric::NAN),
            _ => Ok(Numeric::infinity(self.sign() * other.sign())),
        }
    }

    /// Returns the quotient, with at least 16 significant digits.
    ///
    /// # Errors
    ///
    /// `22012` for a division by zero.
    pub fn checked_div(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        if let (
            Repr::Small { scale: a_scale, mantissa: a },
            Repr::Small { scale: b_scale, mantissa: b },
        ) = (&self.0, &other.0)
        {
            let scale = small_div_scale((*a, u32::from(*a_scale)), (*b, u32::from(*b_scale)));
            let shift = scale + i32::from(*b_scale) - i32::from(*a_scale);
            if let Some(power) = usize::try_from(shift).ok().and_then(|shift| POWERS.get(shift))
                && let Some(dividend) = i128::from(*a).checked_mul(*power)
            {
                let divisor = i128::from(*b);
                let quotient = div_round(dividend, divisor.abs()) * divisor.signum();
                return Ok(Numeric::from_mantissa(quotient, scale as u32));
            }
        }
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => {
                let scale = div_scale(leading(&a), leading(&b), a.scale.max(b.scale));
                Numeric::from_digits(a.div(&b, scale, Rounding::Nearest))
            }
            (Some(_), None) => Ok(Numeric::ZERO),
            (None, Some(_)) => Ok(Numeric::infinity(self.sign() * other.sign())),
            (None, None) => Ok(Numeric::NAN),
        }
    }

    /// Returns the quotient cut to a whole number (`div`).
    ///
    /// # Errors
    ///
    /// `22012` for a division by zero.
    pub fn checked_div_trunc(&self, other: &Numeric) -> Result<Numeric> {
        if !self.is_nan() && !other.is_nan() && other.is_zero() {
            return Err(division_by_zero());
        }
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => Numeric::from_digits(a.div(&b, 0, Rounding::Truncate)),
            _ => self.checked_div(other),
        }
    }

    /// Returns the rest of the division, with the sign of `self`.
    ///
    /// # Errors
    ///
    /// `22012` for a division by zero.
    pub fn checked_rem(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        if let (
            Repr::Small { scale: a_scale, mantissa: a },
            Repr::Small { scale: b_scale, mantissa: b },
        ) = (&self.0, &other.0)
        {
            let scale = (*a_scale).max(*b_scale);
            if let (Some(a), Some(b)) =
                (at_scale(*a, *a_scale, scale), at_scale(*b, *b_scale, scale))
            {
                return Ok(Numeric::from_mantissa(a % b, u32::from(scale)));
            }
        }
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => {
                let quotient = a.div(&b, 0, Rounding::Truncate);
                let scale = a.scale.max(b.scale) as i32;
                Numeric::from_digits(a.sub(&b.mul(&quotient, scale)))
            }
            (Some(_), None) => Ok(self.clone()),
            _ => Ok(Numeric::NAN),
        }
    }

    /// Returns the value rounded, half away from zero, to `scale` digits after the point, or before
    /// it if negative.
    #[must_use]
    pub fn round(&self, scale: i32) -> Numeric {
        self.rescaled(scale, Rounding::Nearest)
    }

    /// Returns the value cut to `scale` digits after the point, or before it if negative.
    #[must_use]
    pub fn trunc(&self, scale: i32) -> Numeric {
        self.rescaled(scale, Rounding::Truncate)
    }

    fn rescaled(&self, scale: i32, rounding: Rounding) -> Numeric {
        let scale = scale.clamp(-(MAX_WEIGHT + 1) * 4, MAX_SCALE as i32);
        if let Repr::Small { scale: from, mantissa } = &self.0
            && let Ok(to) = u32::try_from(scale)
            && to <= MAX_SMALL_SCALE
        {
            let from = u32::from(*from);
            let mantissa = i128::from(*mantissa);
            if to >= from {
                if let Some(mantissa) = mantissa.checked_mul(POWERS[(to - from) as usize]) {
                    return Numeric::from_mantissa(mantissa, to);
                }
            } else {
                let power = POWERS[(from - to) as usize];
                let mantissa = match rounding {
                    Rounding::Nearest => div_round(mantissa, power),
                    Rounding::Truncate => mantissa / power,
                };
                return Numeric::from_mantissa(mantissa, to);
            }
        }
        let Some(mut digits) = self.to_digits() else { return self.clone() };
        digits.set_scale(scale, rounding);
        Numeric::from_digits(digits).unwrap_or_else(|_| self.clone())
    }

    /// Returns the smallest whole number that is not below the value.
    #[must_use]
    pub fn ceil(&self) -> Numeric {
        let whole = self.trunc(0);
        if whole < *self { whole.checked_add(&Numeric::ONE).unwrap_or(whole) } else { whole }
    }

    /// Returns the largest whole number that is not above the value.
    #[must_use]
    pub fn floor(&self) -> Numeric {
        let whole = self.trunc(0);
        if whole > *self { whole.checked_sub(&Numeric::ONE).unwrap_or(whole) } else { whole }
    }

    /// Applies a `numeric(p, s)` modifier: rounds to the scale and checks the precision.
    ///
    /// # Errors
    ///
    /// `22003` if the rounded value needs more digits than the precision allows.
    pub fn apply_modifier(&self, modifier: i32) -> Result<Numeric> {
        if modifier < 4 || self.is_nan() {
            return Ok(self.clone());
        }
        let precision = (modifier - 4) >> 16 & 0xffff;
        let scale = (((modifier - 4) & 0x7ff) ^ 1024) - 1024;
        let failed = |detail: String| {
            Error::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")
                .with_detail(format!("A field with precision {precision}, scale {scale} {detail}."))
        };
        if self.is_infinite() {
            return Err(failed("cannot hold an infinite value".to_string()));
        }
        let rounded = self.round(scale);
        let most = precision - scale;
        let fits = rounded.is_zero() || decimal_weight(&rounded) < most;
        if fits {
            return Ok(rounded);
        }
        let bound = if most == 0 { "1".to_string() } else { format!("10^{most}") };
        Err(failed(format!("must round to an absolute value less than {bound}")))
    }

    /// Returns the square root.
    ///
    /// # Errors
    ///
    /// `2201F` for a negative number.
    pub fn sqrt(&self) -> Result<Numeric> {
        if self.sign() < 0 {
            return Err(Error::new("2201F", "cannot take square root of a negative number"));
        }
        match self.to_digits() {
            Some(digits) => Numeric::from_digits(transcendental::sqrt(&digits)),
            None => Ok(self.clone()),
        }
    }

    /// Returns the square root of a number that is not negative, to so many decimals.
    ///
    /// # Errors
    ///
    /// `22003` if it is out of range.
    pub(crate) fn sqrt_to(&self, scale: i32) -> Result<Numeric> {
        match self.to_digits() {
            Some(digits) => Numeric::from_digits(digits.sqrt(scale)),
            None => Ok(self.clone()),
        }
    }

    /// Returns e to this power.
    ///
    /// # Errors
    ///
    /// `22003` if the result is too large.
    pub fn exp(&self) -> Result<Numeric> {
        match self.to_digits() {
            Some(digits) => Numeric::from_digits(transcendental::exp(&digits)?),
            None if self.sign() < 0 => Ok(Numeric::ZERO),
            None => Ok(self.clone()),
        }
    }

    /// Returns the natural logarithm.
    ///
    /// # Errors
    ///
    /// `2201E` for numbers that are not above zero.
    pub fn ln(&self) -> Result<Numeric> {
        match self.to_digits() {
            Some(digits) => Numeric::from_digits(transcendental::ln(&digits)?),
            None if self.sign() < 0 => {
                Err(Error::new("2201E", "cannot take logarithm of a negative number"))
            }
            None => Ok(self.clone()),
        }
    }

    /// Returns the logarithm to the base 10.
    ///
    /// # Errors
    ///
    /// `2201E` for numbers that are not above zero.
    pub fn log10(&self) -> Result<Numeric> {
        self.log(&Numeric::from(10))
    }

    /// Returns the logarithm to a base.
    ///
    /// # Errors
    ///
    /// `2201E` for numbers that are not above zero, `22012` for the base 1.
    pub fn log(&self, base: &Numeric) -> Result<Numeric> {
        if self.is_nan() || base.is_nan() {
            return Ok(Numeric::NAN);
        }
        match (base.to_digits(), self.to_digits()) {
            (Some(base), Some(value)) => Numeric::from_digits(transcendental::log(&base, &value)?),
            (base_digits, value) => {
                for (number, digits) in [(base, &base_digits), (self, &value)] {
                    match number.sign() {
                        -1 => {
                            let message = "cannot take logarithm of a negative number";
                            return Err(Error::new("2201E", message));
                        }
                        0 => return Err(Error::new("2201E", "cannot take logarithm of zero")),
                        _ => debug_assert!(digits.is_some() || number.is_infinite()),
                    }
                }
                Ok(match (base_digits, value) {
                    (None, None) => Numeric::NAN,
                    (None, Some(_)) => Numeric::ZERO,
                    _ => Numeric::INFINITY,
                })
            }
        }
    }

    /// Returns this to the power `exponent`.
    ///
    /// # Errors
    ///
    /// `2201F` for zero to a negative power and for a negative number to a power that is not whole;
    /// `22003` if the result is too large.
    pub fn pow(&self, exponent: &Numeric) -> Result<Numeric> {
        if self.is_nan() || exponent.is_nan() {
            let one = exponent.is_zero() || *self == Numeric::ONE;
            return Ok(if one { Numeric::ONE } else { Numeric::NAN });
        }
        if self.is_zero() && exponent.sign() < 0 {
            return Err(Error::new("2201F", "zero raised to a negative power is undefined"));
        }
        if self.sign() < 0 && !exponent.is_integral() {
            let message = "a negative number raised to a non-integer power yields a complex result";
            return Err(Error::new("2201F", message));
        }
        match (self.to_digits(), exponent.to_digits()) {
            (Some(base), Some(power)) => {
                Numeric::from_digits(transcendental::power(&base, &power)?)
            }
            _ => Ok(self.pow_infinite(exponent)),
        }
    }

    /// Returns the power where base or exponent is infinite, by the rules of POSIX `pow`.
    fn pow_infinite(&self, exponent: &Numeric) -> Numeric {
        if *self == Numeric::ONE || exponent.is_zero() {
            return Numeric::ONE;
        }
        if self.is_zero() {
            return Numeric::ZERO;
        }
        let grows = exponent.sign() > 0;
        if exponent.is_infinite() {
            if *self == Numeric::from(-1) {
                return Numeric::ONE;
            }
            let large = self.abs() > Numeric::ONE;
            return if large == grows { Numeric::INFINITY } else { Numeric::ZERO };
        }
        if !grows {
            return Numeric::ZERO;
        }
        let odd = exponent.checked_rem(&Numeric::from(2)).is_ok_and(|rest| !rest.is_zero());
        if self.sign() < 0 && odd { Numeric::NEGATIVE_INFINITY } else { Numeric::INFINITY }
    }

    /// Returns whether there is nothing after the point; the infinities count as whole.
    pub fn is_integral(&self) -> bool {
        match &self.0 {
            Repr::Small { scale, mantissa } => {
                i128::from(*mantissa) % POWERS[usize::from(*scale)] == 0
            }
            Repr::Big(digits) => digits.is_integral(),
            Repr::NaN => false,
            Repr::Infinity | Repr::NegativeInfinity => true,
        }
    }
}

/// Returns a mantissa brought to a larger scale.
fn at_scale(mantissa: i64, from: u16, to: u16) -> Option<i128> {
    i128::from(mantissa).checked_mul(POWERS[usize::from(to - from)])
}

/// Returns the mantissa and scale without trailing zeros after the point.
fn reduced(mantissa: i64, scale: u32) -> (i64, u32) {
    let (mut mantissa, mut scale) = (mantissa, scale);
    if mantissa == 0 {
        return (0, 0);
    }
    while scale > 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        scale -= 1;
    }
    (mantissa, scale)
}

/// Returns the power of ten that the first digit counts. The value is finite and not 0.
fn decimal_weight(value: &Numeric) -> i32 {
    match &value.0 {
        Repr::Small { scale, mantissa } => {
            mantissa.unsigned_abs().checked_ilog10().map_or(0, |log| log as i32) - i32::from(*scale)
        }
        Repr::Big(digits) => {
            let first = digits.digits.first().copied().unwrap_or(1);
            digits.weight * 4 + first.ilog10() as i32
        }
        _ => 0,
    }
}

/// Returns weight and value of the first digit in base 10,000.
fn leading(digits: &Digits) -> (i32, u32) {
    (digits.weight, digits.digits.first().copied().map_or(0, u32::from))
}

/// Returns weight and value of the first digit in base 10,000 of a small value.
fn small_leading(mantissa: i64, scale: u32) -> (i32, u32) {
    let value = mantissa.unsigned_abs();
    let Some(log) = value.checked_ilog10() else { return (0, 0) };
    let exponent = log as i32 - scale as i32;
    let wanted = exponent.rem_euclid(4) as u32;
    let first = if log >= wanted {
        value / 10u64.pow(log - wanted)
    } else {
        value * 10u64.pow(wanted - log)
    };
    (exponent.div_euclid(4), first as u32)
}

/// PostgreSQL's `select_div_scale`: at least 16 significant digits and the scale of the inputs.
fn div_scale(dividend: (i32, u32), divisor: (i32, u32), input_scale: u32) -> i32 {
    let mut weight = dividend.0 - divisor.0;
    if dividend.1 <= divisor.1 {
        weight -= 1;
    }
    (MIN_SIGNIFICANT_DIGITS - weight * 4).max(input_scale as i32).clamp(0, MAX_DISPLAY_SCALE)
}

fn small_div_scale(dividend: (i64, u32), divisor: (i64, u32)) -> i32 {
    div_scale(
        small_leading(dividend.0, dividend.1),
        small_leading(divisor.0, divisor.1),
        dividend.1.max(divisor.1),
    )
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric(Repr::Small { scale: 0, mantissa: value })
    }
}

impl Default for Numeric {
    fn default() -> Numeric {
        Numeric::ZERO
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        if let (
            Repr::Small { scale: a_scale, mantissa: a },
            Repr::Small { scale: b_scale, mantissa: b },
        ) = (&self.0, &other.0)
        {
            if a_scale == b_scale {
                return a.cmp(b);
            }
            let scale = (*a_scale).max(*b_scale);
            if let (Some(a), Some(b)) =
                (at_scale(*a, *a_scale, scale), at_scale(*b, *b_scale, scale))
            {
                return a.cmp(&b);
            }
        }
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Numeric {
    /// Returns the place of the special values among the finite ones, which are 0.
    fn rank(&self) -> i8 {
        match self.0 {
            Repr::NegativeInfinity => -1,
            Repr::Small { .. } | Repr::Big(_) => 0,
            Repr::Infinity => 1,
            Repr::NaN => 2,
        }
    }
}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::Small { scale, mantissa } => reduced(*mantissa, u32::from(*scale)).hash(state),
            Repr::Big(digits) => {
                let mut shortest = Digits::clone(digits);
                shortest.scale = shortest.min_scale();
                let small = if shortest.scale <= MAX_SMALL_SCALE {
                    shortest.mantissa().and_then(|mantissa| i64::try_from(mantissa).ok())
                } else {
                    None
                };
                match small {
                    Some(mantissa) => reduced(mantissa, shortest.scale).hash(state),
                    None => {
                        shortest.negative.hash(state);
                        shortest.weight.hash(state);
                        shortest.digits.hash(state);
                    }
                }
            }
            _ => self.rank().hash(state),
        }
    }
}

#[cfg(test)]
mod tests;
