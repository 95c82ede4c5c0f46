//! Roots, powers and logarithms: special values; digits are computed in `transcendental.rs`.

use super::{Numeric, transcendental};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;

impl Numeric {
    /// Returns the square root.
    ///
    /// # Errors
    ///
    /// `2201F` for a negative number.
    pub fn sqrt(&self, pace: &mut InterruptPacer<'_>) -> Result<Numeric> {
        if self.sign() < 0 {
            bail!(INVALID_ARGUMENT_FOR_POWER_FUNCTION: "cannot take square root of a negative number");
        }
        match self.to_digits() {
            Some(digits) => Numeric::from_digits(transcendental::sqrt(&digits, pace)?),
            None => Ok(self.clone()),
        }
    }

    /// Returns the square root of a non-negative number, to a number of decimals.
    ///
    /// # Errors
    ///
    /// `22003` if it is out of range.
    pub(crate) fn sqrt_to(&self, scale: i32, pace: &mut InterruptPacer<'_>) -> Result<Numeric> {
        match self.to_digits() {
            Some(digits) => Numeric::from_digits(digits.sqrt(scale, pace)?),
            None => Ok(self.clone()),
        }
    }

    /// Returns e to this power.
    ///
    /// # Errors
    ///
    /// `22003` if the result is too large.
    pub fn exp(&self, pace: &mut InterruptPacer<'_>) -> Result<Numeric> {
        match self.to_digits() {
            Some(digits) => Numeric::from_digits(transcendental::exp(&digits, pace)?),
            None if self.sign() < 0 => Ok(Numeric::ZERO),
            None => Ok(self.clone()),
        }
    }

    /// Returns the natural logarithm.
    ///
    /// # Errors
    ///
    /// `2201E` unless the number is positive.
    pub fn ln(&self, pace: &mut InterruptPacer<'_>) -> Result<Numeric> {
        match self.to_digits() {
            Some(digits) => Numeric::from_digits(transcendental::ln(&digits, pace)?),
            None if self.sign() < 0 => {
                bail!(INVALID_ARGUMENT_FOR_LOGARITHM: "cannot take logarithm of a negative number")
            }
            None => Ok(self.clone()),
        }
    }

    /// Returns the logarithm to the base 10.
    ///
    /// # Errors
    ///
    /// `2201E` unless the number is positive.
    pub fn log10(&self, pace: &mut InterruptPacer<'_>) -> Result<Numeric> {
        self.log(&Numeric::from(10), pace)
    }

    /// Returns the logarithm to a base.
    ///
    /// # Errors
    ///
    /// `2201E` unless both numbers are positive, `22012` for the base 1.
    pub fn log(&self, base: &Numeric, pace: &mut InterruptPacer<'_>) -> Result<Numeric> {
        if self.is_nan() || base.is_nan() {
            return Ok(Numeric::NAN);
        }
        match (base.to_digits(), self.to_digits()) {
            (Some(base), Some(value)) => {
                Numeric::from_digits(transcendental::log(&base, &value, pace)?)
            }
            (base_digits, value) => {
                let signs = [base.sign(), self.sign()];
                if signs.contains(&-1) {
                    bail!(INVALID_ARGUMENT_FOR_LOGARITHM: "cannot take logarithm of a negative number");
                }
                if signs.contains(&0) {
                    bail!(INVALID_ARGUMENT_FOR_LOGARITHM: "cannot take logarithm of zero");
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
    /// `2201F` for zero to a negative power and for a negative number to a non-integer power;
    /// `22003` if the result is too large.
    pub fn pow(&self, exponent: &Numeric, pace: &mut InterruptPacer<'_>) -> Result<Numeric> {
        if self.is_nan() || exponent.is_nan() {
            let one = exponent.is_zero() || *self == Numeric::ONE;
            return Ok(if one { Numeric::ONE } else { Numeric::NAN });
        }
        if self.is_zero() && exponent.sign() < 0 {
            bail!(INVALID_ARGUMENT_FOR_POWER_FUNCTION: "zero raised to a negative power is undefined");
        }
        if self.sign() < 0 && !exponent.is_integral() {
            bail!(INVALID_ARGUMENT_FOR_POWER_FUNCTION: "a negative number raised to a non-integer power yields a complex result");
        }
        match (self.to_digits(), exponent.to_digits()) {
            (Some(base), Some(power)) => {
                Numeric::from_digits(transcendental::power(&base, &power, pace)?)
            }
            _ => Ok(self.pow_infinite(exponent)),
        }
    }

    /// Returns the power of an infinite base or exponent, by the rules of POSIX `pow`.
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
        let odd = exponent
            .checked_rem(&Numeric::from(2), &mut InterruptPacer::without_interrupt())
            .is_ok_and(|rest| !rest.is_zero());
        if self.sign() < 0 && odd { Numeric::NEGATIVE_INFINITY } else { Numeric::INFINITY }
    }
}
