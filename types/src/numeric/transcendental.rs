//! Exponential, logarithms and powers of big decimals, with PostgreSQL's choice of result scale.
//!
//! The series, the argument reductions and the guard digits are those of PostgreSQL's `numeric.c`
//! (`exp_var`, `ln_var`, `log_var`, `power_var`, `power_var_int`), so that results agree with it to
//! the last digit.

use std::cmp::Ordering;
use std::f64::consts::{LOG10_2, LOG10_E};

use super::digits::BASE;
use super::digits::DECIMALS;
use super::digits::Digits;
use super::digits::Rounding;
use super::overflow;
use super::{MAX_DISPLAY_SCALE, MIN_SIGNIFICANT_DIGITS};
use crate::error::Error;
use crate::error::Result;
use crate::interruptible::InterruptPacer;

/// Number of digits before or after the point above which a result is an overflow or zero.
const MAX_RESULT_SCALE: f64 = 2000.0;
/// Maximum weight of the format.
const MAX_WEIGHT: i32 = 32_767;

/// Returns a result scale with at least 16 significant digits and the scale of the input.
fn result_scale(decimal_weight: i32, input_scale: u32) -> i32 {
    (MIN_SIGNIFICANT_DIGITS - decimal_weight).max(input_scale as i32).clamp(0, MAX_DISPLAY_SCALE)
}

/// Returns the square root with PostgreSQL's scale. The value must not be negative.
pub(super) fn sqrt(value: &Digits, pace: &mut InterruptPacer<'_>) -> Result<Digits> {
    let weight = value.weight * DECIMALS / 2 + 1;
    value.sqrt(result_scale(weight, value.scale), pace)
}

/// Returns e to the power.
pub(super) fn exp(value: &Digits, pace: &mut InterruptPacer<'_>) -> Result<Digits> {
    let estimate = (value.to_f64() * LOG10_E).clamp(-MAX_RESULT_SCALE, MAX_RESULT_SCALE);
    exp_at(value, result_scale(estimate as i32, value.scale), pace)
}

fn exp_at(value: &Digits, scale: i32, pace: &mut InterruptPacer<'_>) -> Result<Digits> {
    let mut estimate = value.to_f64();
    if estimate.abs() >= MAX_RESULT_SCALE * 3.0 {
        if estimate > 0.0 {
            return Err(overflow());
        }
        return Ok(Digits { scale: scale as u32, ..Digits::default() });
    }
    let decimal_weight = (estimate * LOG10_E) as i32;
    let mut halvings = 0;
    let mut x = value.clone();
    if estimate.abs() > 0.01 {
        while estimate.abs() > 0.01 {
            halvings += 1;
            estimate /= 2.0;
        }
        let divisor = Digits::from_mantissa(1i128 << halvings, 0);
        x = x.div(&divisor, (x.scale as i32 + halvings, Rounding::Nearest), pace)?;
    }
    let significant =
        (1 + decimal_weight + scale + (f64::from(halvings) * LOG10_2) as i32).max(0) + 8;
    let local = significant - 1;
    let mut result = Digits::one().add(&x);
    let mut term = x.clone();
    let mut n = 2;
    loop {
        let product = term.mul(&x, local, pace)?;
        term = product.div(&Digits::from_mantissa(n, 0), (local, Rounding::Nearest), pace)?;
        if term.is_zero() {
            break;
        }
        result = result.add(&term);
        n += 1;
    }
    for _ in 0..halvings {
        let local = (significant - result.weight * 2 * DECIMALS).max(0);
        result = result.mul(&result, local, pace)?;
    }
    result.set_scale(scale, Rounding::Nearest);
    Ok(result)
}

/// Returns 0.9 and 1.1, between which the series of the logarithm converges fast.
fn near_one() -> (Digits, Digits) {
    (Digits::from_mantissa(9, 1), Digits::from_mantissa(11, 1))
}

/// Returns the approximate number of decimal digits of the natural logarithm before the point.
fn ln_weight(value: &Digits) -> i32 {
    if value.negative || value.is_zero() {
        return 0;
    }
    let (low, high) = near_one();
    if value.cmp(&low) != Ordering::Less && value.cmp(&high) != Ordering::Greater {
        let x = value.sub(&Digits::one());
        return match x.digits.first() {
            Some(&first) => x.weight * DECIMALS + f64::from(first).log10() as i32,
            None => 0,
        };
    }
    let mut digits = f64::from(value.digits[0]);
    let mut weight = value.weight * DECIMALS;
    if let Some(&second) = value.digits.get(1) {
        digits = digits * f64::from(BASE) + f64::from(second);
        weight -= DECIMALS;
    }
    let ln = digits.ln() + f64::from(weight) * std::f64::consts::LN_10;
    ln.abs().log10() as i32
}

fn check_logarithm(value: &Digits) -> Result<()> {
    let what = match (value.is_zero(), value.negative) {
        (true, _) => "zero",
        (false, true) => "a negative number",
        (false, false) => return Ok(()),
    };
    bail!(INVALID_ARGUMENT_FOR_LOGARITHM: "cannot take logarithm of {what}")
}

/// Returns the natural logarithm.
pub(super) fn ln(value: &Digits, pace: &mut InterruptPacer<'_>) -> Result<Digits> {
    check_logarithm(value)?;
    ln_at(value, result_scale(ln_weight(value), value.scale), pace)
}

fn ln_at(value: &Digits, scale: i32, pace: &mut InterruptPacer<'_>) -> Result<Digits> {
    let (low, high) = near_one();
    let mut x = value.clone();
    let mut roots = 0u32;
    while x.cmp(&low) != Ordering::Greater || x.cmp(&high) != Ordering::Less {
        // For a large number, fewer digits than it has before the point.
        x = x.sqrt(scale - x.weight * DECIMALS / 2 + 8, pace)?;
        roots += 1;
    }
    let local = scale + (f64::from(roots + 1) * LOG10_2) as i32 + 8;
    let one = Digits::one();
    let z = x.sub(&one).div(&x.add(&one), (local, Rounding::Nearest), pace)?;
    let square = z.mul(&z, local, pace)?;
    let mut power = z.clone();
    let mut result = z;
    let mut n = 1;
    loop {
        n += 2;
        power = power.mul(&square, local, pace)?;
        let term = power.div(&Digits::from_mantissa(n, 0), (local, Rounding::Nearest), pace)?;
        if term.is_zero() {
            break;
        }
        result = result.add(&term);
        if term.weight < result.weight - local * 2 / DECIMALS {
            break;
        }
    }
    let factor = Digits::from_mantissa(1i128 << (roots + 1), 0);
    result.mul(&factor, scale, pace)
}

/// Returns the logarithm to a base.
pub(super) fn log(base: &Digits, value: &Digits, pace: &mut InterruptPacer<'_>) -> Result<Digits> {
    check_logarithm(base)?;
    check_logarithm(value)?;
    let base_weight = ln_weight(base);
    let value_weight = ln_weight(value);
    let weight = value_weight - base_weight;
    let scale = result_scale(weight, base.scale.max(value.scale));
    let ln_base = ln_at(base, (scale + weight - base_weight + 8).max(0), pace)?;
    let ln_value = ln_at(value, (scale + weight - value_weight + 8).max(0), pace)?;
    if ln_base.is_zero() {
        return Err(super::division_by_zero());
    }
    ln_value.div(&ln_base, (scale, Rounding::Nearest), pace)
}

/// Returns `base` to the power `exponent`. The caller has rejected 0 to a negative power and
/// negative numbers to non-integer powers.
pub(super) fn power(
    base: &Digits,
    exponent: &Digits,
    pace: &mut InterruptPacer<'_>,
) -> Result<Digits> {
    if exponent.is_integral() {
        let whole = Digits { scale: 0, ..exponent.clone() };
        if let Some(Ok(n)) = whole.mantissa().map(i32::try_from) {
            return power_whole(base, n, pace);
        }
    }
    if base.is_zero() {
        return Ok(Digits { scale: MIN_SIGNIFICANT_DIGITS as u32, ..Digits::default() });
    }
    let odd = exponent.weight >= 0
        && exponent.is_integral()
        && exponent.digits.len() as i32 == exponent.weight + 1
        && exponent.digits.last().is_some_and(|last| last % 2 == 1);
    let negative = base.negative && odd;
    let base = &Digits { negative: false, ..base.clone() };

    let base_weight = ln_weight(base);
    // For a base near 1 the logarithm may begin far behind the displayed decimals.
    let local = (8 - base_weight).max(0);
    let estimate = ln_at(base, local, pace)?.mul(exponent, local, pace)?.to_f64();
    if estimate.abs() > MAX_RESULT_SCALE * 3.01 {
        if estimate > 0.0 {
            return Err(overflow());
        }
        return Ok(Digits { scale: MAX_DISPLAY_SCALE as u32, ..Digits::default() });
    }
    let weight = (estimate * LOG10_E) as i32;
    let scale = result_scale(weight, base.scale.max(exponent.scale));
    let significant = (scale + weight).max(0);
    let local = (significant - base_weight + 8).max(0);
    let ln = ln_at(base, local, pace)?.mul(exponent, local, pace)?;
    let mut result = exp_at(&ln, scale, pace)?;
    result.negative = negative && !result.is_zero();
    Ok(result)
}

/// Returns an estimate of log10 of `base` to the power `exponent`.
fn power_estimate(base: &Digits, exponent: i32) -> f64 {
    let Some((&first, rest)) = base.digits.split_first() else { return 0.0 };
    let mut f = f64::from(first);
    let mut p = base.weight * DECIMALS;
    for &digit in rest.iter().take(3) {
        f = f * f64::from(BASE) + f64::from(digit);
        p -= DECIMALS;
    }
    f64::from(exponent) * (f.log10() + f64::from(p))
}

fn power_whole(base: &Digits, exponent: i32, pace: &mut InterruptPacer<'_>) -> Result<Digits> {
    let scale = (base.scale as i32).clamp(MIN_SIGNIFICANT_DIGITS, MAX_DISPLAY_SCALE);
    let estimate = power_estimate(base, exponent);
    if estimate > f64::from((MAX_WEIGHT + 1) * DECIMALS) {
        return Err(overflow());
    }
    if estimate + 1.0 < f64::from(-scale) {
        return Ok(Digits { scale: scale as u32, ..Digits::default() });
    }
    match exponent {
        0 => return Ok(Digits { scale: scale as u32, ..Digits::one() }),
        1 => {
            let mut result = base.clone();
            result.set_scale(scale, Rounding::Nearest);
            return Ok(result);
        }
        2 => return base.mul(base, scale, pace),
        _ => {}
    }
    if base.is_zero() {
        if exponent < 0 {
            return Err(super::division_by_zero());
        }
        return Ok(Digits { scale: scale as u32, ..Digits::default() });
    }
    if exponent == -1 {
        return Digits::one().div(base, (scale, Rounding::Nearest), pace);
    }
    let significant = 1 + scale + estimate as i32 + f64::from(exponent).abs().ln() as i32 + 8;
    let mut mask = exponent.unsigned_abs();
    let mut product = base.clone();
    let mut result = if mask & 1 == 1 { base.clone() } else { Digits::one() };
    mask >>= 1;
    while mask > 0 {
        let local =
            (significant - 2 * product.weight * DECIMALS).min(2 * product.scale as i32).max(0);
        product = product.mul(&product, local, pace)?;
        if mask & 1 == 1 {
            let local = (significant - (product.weight + result.weight) * DECIMALS)
                .min((product.scale + result.scale) as i32)
                .max(0);
            result = product.mul(&result, local, pace)?;
        }
        if product.weight > MAX_WEIGHT || result.weight > MAX_WEIGHT {
            if exponent > 0 {
                return Err(overflow());
            }
            return Ok(Digits { scale: scale as u32, ..Digits::default() });
        }
        mask >>= 1;
    }
    if exponent < 0 {
        if result.is_zero() {
            return Err(overflow());
        }
        return Digits::one().div(&result, (scale, Rounding::Nearest), pace);
    }
    result.set_scale(scale, Rounding::Nearest);
    Ok(result)
}
