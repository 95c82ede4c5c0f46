//! The four arithmetic operations, with the result scales of `numeric.c`.

use std::sync::Arc;

use super::digits::{Digits, Rounding};
use super::{
    MAX_DISPLAY_SCALE, MAX_SCALE, MAX_SMALL_SCALE, MIN_SIGNIFICANT_DIGITS, Numeric, POWERS, Repr,
    SMALL_POWERS, at_scale, div_round, division_by_zero,
};
use crate::error::Result;
use crate::interruptible::InterruptPacer;

impl Numeric {
    /// Returns -1, 0 or 1, or NaN for NaN.
    #[must_use]
    pub fn signum(&self) -> Numeric {
        if self.is_nan() { Numeric::NAN } else { Numeric::from(i64::from(self.sign())) }
    }

    /// Returns the negated value.
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
    /// `22003` if the result exceeds the range of the format; likewise for the other operations.
    pub fn checked_add(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(((a, a_scale), (b, b_scale))) = self.small_pair(other) {
            if a_scale == b_scale
                && let Some(mantissa) = a.checked_add(b)
            {
                return Ok(Numeric(Repr::Small { scale: a_scale, mantissa }));
            }
            let scale = a_scale.max(b_scale);
            if let (Some(a), Some(b)) = (at_scale(a, a_scale, scale), at_scale(b, b_scale, scale))
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

    /// Returns the sum of small values, if it is small and computed without a conversion.
    #[inline]
    pub(crate) fn quick_add(&self, other: &Numeric) -> Option<Numeric> {
        let (a, b, scale) = self.alike(other)?;
        Some(Numeric(Repr::Small { scale, mantissa: a.checked_add(b)? }))
    }

    /// Returns the difference of small values, if it is small and computed without a conversion.
    #[inline]
    pub(crate) fn quick_sub(&self, other: &Numeric) -> Option<Numeric> {
        let (a, b, scale) = self.alike(other)?;
        Some(Numeric(Repr::Small { scale, mantissa: a.checked_sub(b)? }))
    }

    /// Returns the product of small values, if it is small and computed without a conversion.
    #[inline]
    pub(crate) fn quick_mul(&self, other: &Numeric) -> Option<Numeric> {
        let ((a, a_scale), (b, b_scale)) = self.small_pair(other)?;
        let (mantissa, scale) = (a.checked_mul(b)?, a_scale + b_scale);
        let fits = u32::from(scale) <= MAX_SMALL_SCALE;
        fits.then_some(Numeric(Repr::Small { scale, mantissa }))
    }

    /// Returns the mantissas of two small values at the larger of their scales, and that scale.
    #[inline]
    fn alike(&self, other: &Numeric) -> Option<(i64, i64, u16)> {
        let ((a, a_scale), (b, b_scale)) = self.small_pair(other)?;
        if a_scale == b_scale {
            return Some((a, b, a_scale));
        }
        let scale = a_scale.max(b_scale);
        let at = |mantissa: i64, from: u16| {
            mantissa.checked_mul(*SMALL_POWERS.get(usize::from(scale - from))?)
        };
        Some((at(a, a_scale)?, at(b, b_scale)?, scale))
    }

    /// Returns the mantissas and the scales of two small values.
    #[inline]
    pub(super) fn small_pair(&self, other: &Numeric) -> Option<((i64, u16), (i64, u16))> {
        match (&self.0, &other.0) {
            (
                Repr::Small { scale: a_scale, mantissa: a },
                Repr::Small { scale: b_scale, mantissa: b },
            ) => Some(((*a, *a_scale), (*b, *b_scale))),
            _ => None,
        }
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
        if let Some(((a, a_scale), (b, b_scale))) = self.small_pair(other)
            && a_scale == b_scale
            && let Some(mantissa) = a.checked_sub(b)
        {
            return Ok(Numeric(Repr::Small { scale: a_scale, mantissa }));
        }
        self.checked_add(&other.neg())
    }

    /// Returns the product.
    #[inline]
    pub fn checked_mul(&self, other: &Numeric, pace: &mut InterruptPacer<'_>) -> Result<Numeric> {
        if let Some(((a, a_scale), (b, b_scale))) = self.small_pair(other) {
            let product = i128::from(a) * i128::from(b);
            return Ok(Numeric::from_mantissa(product, u32::from(a_scale + b_scale)));
        }
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => {
                let scale = (a.scale + b.scale).min(MAX_SCALE);
                Numeric::from_digits(a.mul(&b, scale as i32, pace)?)
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
    pub fn checked_div(&self, other: &Numeric, pace: &mut InterruptPacer<'_>) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        if let Some(((a, a_scale), (b, b_scale))) = self.small_pair(other) {
            let scale = small_div_scale((a, u32::from(a_scale)), (b, u32::from(b_scale)));
            let shift = scale + i32::from(b_scale) - i32::from(a_scale);
            if let Some(power) = usize::try_from(shift).ok().and_then(|shift| POWERS.get(shift))
                && let Some(dividend) = i128::from(a).checked_mul(*power)
            {
                let divisor = i128::from(b);
                let quotient = div_round(dividend, divisor.abs()) * divisor.signum();
                return Ok(Numeric::from_mantissa(quotient, scale as u32));
            }
        }
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => {
                let scale = div_scale(leading(&a), leading(&b), a.scale.max(b.scale));
                Numeric::from_digits(a.div(&b, (scale, Rounding::Nearest), pace)?)
            }
            (Some(_), None) => Ok(Numeric::ZERO),
            (None, Some(_)) => Ok(Numeric::infinity(self.sign() * other.sign())),
            (None, None) => Ok(Numeric::NAN),
        }
    }

    /// Returns the quotient truncated to an integer (`div`).
    ///
    /// # Errors
    ///
    /// `22012` for a division by zero.
    pub fn checked_div_trunc(
        &self,
        other: &Numeric,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<Numeric> {
        if !self.is_nan() && !other.is_nan() && other.is_zero() {
            return Err(division_by_zero());
        }
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => Numeric::from_digits(a.div(&b, (0, Rounding::Truncate), pace)?),
            _ => self.checked_div(other, pace),
        }
    }

    /// Returns the remainder, with the sign of `self`.
    ///
    /// # Errors
    ///
    /// `22012` for a division by zero.
    pub fn checked_rem(&self, other: &Numeric, pace: &mut InterruptPacer<'_>) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.is_zero() {
            return Err(division_by_zero());
        }
        if let Some(((a, a_scale), (b, b_scale))) = self.small_pair(other) {
            let scale = a_scale.max(b_scale);
            if let (Some(a), Some(b)) = (at_scale(a, a_scale, scale), at_scale(b, b_scale, scale)) {
                return Ok(Numeric::from_mantissa(a % b, u32::from(scale)));
            }
        }
        match (self.to_digits(), other.to_digits()) {
            (Some(a), Some(b)) => {
                let quotient = a.div(&b, (0, Rounding::Truncate), pace)?;
                let scale = a.scale.max(b.scale) as i32;
                Numeric::from_digits(a.sub(&b.mul(&quotient, scale, pace)?))
            }
            (Some(_), None) => Ok(self.clone()),
            _ => Ok(Numeric::NAN),
        }
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

/// Computes PostgreSQL's `select_div_scale`: at least 16 significant digits and the scale of the
/// inputs.
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
