//! `numeric`: decimal numbers of any precision, with display scale, NaN and infinities, computed
//! as in PostgreSQL.
//!
//! A [`Numeric`] is small or big. Small values, nearly all in tables, are an `i64` mantissa and a
//! scale, stored inline; their arithmetic (`numeric/arithmetic.rs`) uses `i128` and does not
//! allocate. Other values are an array of base-10,000 digits (`numeric/digits.rs`), shared behind
//! an `Arc`. Result scales, rounding and limits follow PostgreSQL's `numeric.c`: up to 131,072
//! digits before the point and 16,383 after it.
//!
//! Equality, order and hash are those of SQL: `1.0` equals `1.00`, NaN equals NaN and is greater
//! than all other values.
//!
//! # Invariants
//!
//! 1. A small value's scale is at most `MAX_SMALL_SCALE`.
//! 2. A big value satisfies the invariants of `numeric/digits.rs` and the limits of the format.
//!
//! In debug builds, [`Numeric::from_digits`] and [`Numeric::parts`] assert them.

mod arithmetic;
mod digits;
mod order;
mod powers;
mod stored;
mod text;
mod transcendental;

use std::cmp::Ordering;
use std::sync::Arc;

use self::digits::Digits;
use self::digits::Rounding;
use crate::error::Error;
use crate::error::Result;

/// Maximum scale of the inline form.
const MAX_SMALL_SCALE: u32 = 36;
/// Maximum scale of the format.
const MAX_SCALE: u32 = 16_383;
/// Maximum weight, in base-10,000 digits.
const MAX_WEIGHT: i32 = 32_767;
/// Minimum number of significant digits of division and the transcendental functions.
const MIN_SIGNIFICANT_DIGITS: i32 = 16;
/// Maximum number of digits after the point that a function selects.
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

/// Decomposition of a value for storage and keys.
pub(crate) enum NumericForm<'a> {
    /// `mantissa * 10^-scale`
    Small { mantissa: i64, scale: u32 },
    /// Base-10,000 digits, the first with the factor 10000^weight.
    Big { negative: bool, weight: i32, scale: u32, digits: &'a [u16] },
    /// -Infinity
    NegativeInfinity,
    /// Infinity
    Infinity,
    /// NaN
    NaN,
}

/// Returns PostgreSQL's error for a value outside the range of the format.
fn overflow() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "value overflows numeric format")
}

/// Returns PostgreSQL's error for a division by zero.
fn division_by_zero() -> Error {
    err!(DIVISION_BY_ZERO: "division by zero")
}

/// Divides and rounds half away from zero. The divisor must be positive.
fn div_round(value: i128, divisor: i128) -> i128 {
    debug_assert!(divisor > 0, "the divisor {divisor} is not positive");
    let quotient = value / divisor;
    let rest = (value % divisor).abs();
    if rest >= divisor - rest { quotient + value.signum() } else { quotient }
}

impl Numeric {
    /// 0
    pub const ZERO: Numeric = Numeric(Repr::Small { scale: 0, mantissa: 0 });
    /// 1
    pub const ONE: Numeric = Numeric(Repr::Small { scale: 0, mantissa: 1 });
    /// NaN, equal to itself and greater than all other values.
    pub const NAN: Numeric = Numeric(Repr::NaN);
    /// Infinity
    pub const INFINITY: Numeric = Numeric(Repr::Infinity);
    /// -Infinity
    pub const NEGATIVE_INFINITY: Numeric = Numeric(Repr::NegativeInfinity);

    /// Creates an integer.
    pub fn from_i128(value: i128) -> Numeric {
        Numeric::from_mantissa(value, 0)
    }

    /// Creates `mantissa * 10^-scale`, with the display scale `scale`.
    #[inline]
    pub(crate) fn from_small(mantissa: i64, scale: u8) -> Numeric {
        match u32::from(scale) <= MAX_SMALL_SCALE {
            true => Numeric(Repr::Small { scale: u16::from(scale), mantissa }),
            false => Numeric::from_mantissa(i128::from(mantissa), u32::from(scale)),
        }
    }

    /// Creates `mantissa * 10^-scale`, with the display scale `scale`, at most 16,383.
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

    /// Converts a double as PostgreSQL's cast does: to 15 significant digits.
    pub fn try_from_f64(value: f64) -> Result<Numeric> {
        Numeric::from_float_text(value, &format!("{value:.14e}"))
    }

    /// Converts a float as PostgreSQL's cast does: to 6 significant digits.
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

    /// Checks the limits of the format and selects the inline form if possible.
    fn from_digits(digits: Digits) -> Result<Numeric> {
        digits.check();
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

    /// Returns the decomposition of the value.
    pub(crate) fn parts(&self) -> NumericForm<'_> {
        match &self.0 {
            Repr::Small { scale, mantissa } => {
                debug_assert!(u32::from(*scale) <= MAX_SMALL_SCALE, "scale {scale} is not small");
                NumericForm::Small { mantissa: *mantissa, scale: u32::from(*scale) }
            }
            Repr::Big(digits) => {
                debug_assert!(digits.weight <= MAX_WEIGHT, "weight {}", digits.weight);
                debug_assert!(digits.scale <= MAX_SCALE, "scale {}", digits.scale);
                NumericForm::Big {
                    negative: digits.negative,
                    weight: digits.weight,
                    scale: digits.scale,
                    digits: &digits.digits,
                }
            }
            Repr::NegativeInfinity => NumericForm::NegativeInfinity,
            Repr::Infinity => NumericForm::Infinity,
            Repr::NaN => NumericForm::NaN,
        }
    }

    /// Returns the value in the big form, even if it fits the inline form.
    pub(crate) fn as_digits(&self) -> Numeric {
        match self.to_digits() {
            Some(digits) => Numeric(Repr::Big(Arc::new(digits))),
            None => self.clone(),
        }
    }

    /// Returns the value of base-10,000 digits, the first with the factor 10000^weight; digits
    /// beyond `scale` are truncated. `None` if a digit or a limit of the format is exceeded.
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

    /// Returns the nearest double; infinite on overflow.
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

    /// Returns the nearest integer, half away from zero; `None` if it exceeds i64.
    pub fn to_i64(&self) -> Option<i64> {
        i64::try_from(self.to_i128()?).ok()
    }

    /// Returns the nearest integer, half away from zero; `None` if it exceeds i128.
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

    /// Returns the display scale; 0 for NaN and the infinities.
    pub fn scale(&self) -> u32 {
        match &self.0 {
            Repr::Small { scale, .. } => u32::from(*scale),
            Repr::Big(digits) => digits.scale,
            _ => 0,
        }
    }

    /// Returns the minimum scale that represents the value exactly.
    pub fn min_scale(&self) -> u32 {
        match &self.0 {
            Repr::Small { scale, mantissa } => reduced(*mantissa, u32::from(*scale)).1,
            Repr::Big(digits) => digits.min_scale(),
            _ => 0,
        }
    }

    /// Returns the value with a display scale of `scale`, or of its minimum scale if that is
    /// greater.
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

    /// Returns whether this is finite.
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

    /// Returns the value rounded, half away from zero, to `scale` digits after the point, or
    /// before it if negative.
    #[must_use]
    pub fn round(&self, scale: i32) -> Numeric {
        self.rescaled(scale, Rounding::Nearest)
    }

    /// Returns the value rounded as [`Numeric::round`] does.
    ///
    /// # Errors
    ///
    /// `22003` if the result exceeds the maximum number of digits.
    pub fn checked_round(&self, scale: i32) -> Result<Numeric> {
        let lowest = -(MAX_WEIGHT + 1) * 4 - 1;
        match self.to_digits().filter(|_| scale < 0) {
            Some(mut digits) => {
                digits.set_scale(scale.max(lowest), Rounding::Nearest);
                Numeric::from_digits(digits)
            }
            None => Ok(self.round(scale)),
        }
    }

    /// Returns the value truncated to `scale` digits after the point, or before it if negative.
    #[must_use]
    pub fn trunc(&self, scale: i32) -> Numeric {
        self.rescaled(scale, Rounding::Truncate)
    }

    fn rescaled(&self, scale: i32, rounding: Rounding) -> Numeric {
        let scale = scale.clamp(-(MAX_WEIGHT + 1) * 4 - 1, MAX_SCALE as i32);
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

    /// Returns the smallest integer that is not below the value.
    #[must_use]
    pub fn ceil(&self) -> Numeric {
        let whole = self.trunc(0);
        if whole < *self { whole.checked_add(&Numeric::ONE).unwrap_or(whole) } else { whole }
    }

    /// Returns the largest integer that is not above the value.
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
            err!(NUMERIC_VALUE_OUT_OF_RANGE: "numeric field overflow";
                detail "A field with precision {precision}, scale {scale} {detail}.")
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

    /// Returns whether the value is an integer; the infinities count as integers.
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

/// Returns a mantissa converted to a larger scale.
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

/// Returns the exponent of the first decimal digit. The value is finite and not 0.
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

#[cfg(test)]
mod tests;
