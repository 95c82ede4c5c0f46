//! Decimal numbers of any length as base-10,000 digits: the arithmetic of a [`Numeric`] that does
//! not fit its inline form.
//!
//! The representation is PostgreSQL's `NumericVar`: the value is the sum of
//! `digits[i] * 10000^(weight - i)`, and `scale` is the number of *displayed* decimal digits
//! after the point. Addition, multiplication and division are schoolbook algorithms; division is
//! Knuth's algorithm D.
//!
//! # Invariants
//!
//! 1. Neither the first nor the last digit is 0.
//! 2. Zero has no digits, weight 0 and is not negative.
//! 3. No non-zero digit is beyond `scale` decimal places, except during a computation.
//!
//! In debug builds, [`Digits::check`] asserts all three before a [`Numeric`] is made.
//!
//! [`Numeric`]: crate::numeric::Numeric

use std::cmp::Ordering;

use crate::error::Result;
use crate::interruptible::InterruptPacer;

/// The base of a digit.
pub(super) const BASE: u32 = 10_000;
/// Decimal digits in a digit.
pub(super) const DECIMALS: i32 = 4;
/// Powers of ten below the base.
const POWERS: [u32; 4] = [1, 10, 100, 1000];

/// A finite decimal number.
#[derive(Debug, Clone, Default)]
pub(super) struct Digits {
    /// The value is negative.
    pub(super) negative: bool,
    /// The exponent of the first digit, to the base.
    pub(super) weight: i32,
    /// Displayed decimal digits after the point.
    pub(super) scale: u32,
    /// Base-10,000 digits, most significant first.
    pub(super) digits: Vec<u16>,
}

/// Rounding of digits beyond a scale.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    /// Half away from zero.
    Nearest,
    /// Towards zero.
    Truncate,
}

impl Digits {
    /// Returns 1.
    pub(super) fn one() -> Digits {
        Digits { negative: false, weight: 0, scale: 0, digits: vec![1] }
    }

    /// Creates `mantissa * 10^-scale`, with the display scale `scale`.
    pub(super) fn from_mantissa(mantissa: i128, scale: u32) -> Digits {
        let mut rest = mantissa.unsigned_abs();
        let mut reversed: Vec<u16> = Vec::with_capacity(11);
        let partial = scale % 4;
        if partial != 0 {
            let power = u128::from(POWERS[partial as usize]);
            let low = (rest % power) as u32 * POWERS[4 - partial as usize];
            rest /= power;
            reversed.push(low as u16);
        }
        while rest != 0 {
            reversed.push((rest % u128::from(BASE)) as u16);
            rest /= u128::from(BASE);
        }
        let weight = reversed.len() as i32 - 1 - scale.div_ceil(4) as i32;
        reversed.reverse();
        let mut result = Digits { negative: mantissa < 0, weight, scale, digits: reversed };
        result.normalize();
        result
    }

    /// Returns the mantissa at `scale` if it fits an i128.
    pub(super) fn mantissa(&self) -> Option<i128> {
        let places = self.scale.div_ceil(4) as i32;
        let count = self.weight + 1 + places;
        if count > 11 {
            return None;
        }
        let mut value: i128 = 0;
        for i in 0..count.max(0) as usize {
            let digit = self.digits.get(i).copied().unwrap_or(0);
            value = value.checked_mul(i128::from(BASE))?.checked_add(i128::from(digit))?;
        }
        if count < 0 && !self.digits.is_empty() {
            return None;
        }
        let excess = places as u32 * 4 - self.scale;
        value /= i128::from(POWERS[excess as usize]);
        Some(if self.negative { -value } else { value })
    }

    /// Returns whether this is 0.
    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Returns whether the value is an integer.
    pub(super) fn is_integral(&self) -> bool {
        self.digits.len() as i32 <= self.weight + 1
    }

    /// Restores invariants 1 and 2.
    pub(super) fn normalize(&mut self) {
        let leading = self.digits.iter().take_while(|&&digit| digit == 0).count();
        if leading > 0 {
            self.digits.drain(..leading);
            self.weight -= leading as i32;
        }
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.weight = 0;
            self.negative = false;
        }
    }

    /// Returns whether invariants 1 and 2 hold.
    fn is_normalized(&self) -> bool {
        match (self.digits.first(), self.digits.last()) {
            (Some(first), Some(last)) => *first != 0 && *last != 0,
            _ => self.weight == 0 && !self.negative,
        }
    }

    /// Asserts the invariants.
    pub(super) fn check(&self) {
        debug_assert!(self.is_normalized(), "not normalized: {self:?}");
        debug_assert!(self.min_scale() <= self.scale, "digits beyond the scale: {self:?}");
        debug_assert!(self.digits.iter().all(|digit| u32::from(*digit) < BASE), "{self:?}");
    }

    /// Returns the exponent of the last digit, to the base.
    fn low(&self) -> i32 {
        self.weight - self.digits.len() as i32 + 1
    }

    /// Returns the digit with an exponent, to the base.
    fn at(&self, power: i32) -> u32 {
        let index = self.weight - power;
        if index < 0 { 0 } else { u32::from(self.digits.get(index as usize).copied().unwrap_or(0)) }
    }

    /// Compares absolute values.
    pub(super) fn cmp_abs(&self, other: &Digits) -> Ordering {
        debug_assert!(self.is_normalized() && other.is_normalized(), "{self:?}, {other:?}");
        match (self.is_zero(), other.is_zero()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        self.weight.cmp(&other.weight).then_with(|| self.digits.cmp(&other.digits))
    }

    /// Compares values regardless of the scale.
    pub(super) fn cmp(&self, other: &Digits) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.cmp_abs(other),
            (true, true) => other.cmp_abs(self),
        }
    }

    fn add_abs(&self, other: &Digits) -> Digits {
        if self.is_zero() {
            return Digits { negative: false, ..other.clone() };
        }
        if other.is_zero() {
            return Digits { negative: false, ..self.clone() };
        }
        let top = self.weight.max(other.weight) + 1;
        let low = self.low().min(other.low());
        let mut digits = vec![0u16; (top - low + 1) as usize];
        let mut carry = 0;
        for power in low..=top {
            let sum = self.at(power) + other.at(power) + carry;
            carry = u32::from(sum >= BASE);
            digits[(top - power) as usize] = (sum - carry * BASE) as u16;
        }
        debug_assert_eq!(carry, 0, "a sum has one digit more at most");
        let mut result = Digits { negative: false, weight: top, scale: 0, digits };
        result.normalize();
        result
    }

    /// Returns `|self| - |other|`, which must not be negative.
    fn sub_abs(&self, other: &Digits) -> Digits {
        if other.is_zero() {
            return Digits { negative: false, ..self.clone() };
        }
        let top = self.weight;
        let low = self.low().min(other.low());
        let mut digits = vec![0u16; (top - low + 1) as usize];
        let mut borrow = 0;
        for power in low..=top {
            let taken = other.at(power) + borrow;
            let digit = self.at(power);
            borrow = u32::from(digit < taken);
            digits[(top - power) as usize] = (digit + borrow * BASE - taken) as u16;
        }
        debug_assert_eq!(borrow, 0, "subtracted the larger value");
        let mut result = Digits { negative: false, weight: top, scale: 0, digits };
        result.normalize();
        result
    }

    /// Returns the exact sum, with the larger scale.
    pub(super) fn add(&self, other: &Digits) -> Digits {
        let mut result = if self.negative == other.negative {
            let mut sum = self.add_abs(other);
            sum.negative = self.negative && !sum.is_zero();
            sum
        } else {
            match self.cmp_abs(other) {
                Ordering::Equal => Digits::default(),
                Ordering::Greater => {
                    let mut rest = self.sub_abs(other);
                    rest.negative = self.negative;
                    rest
                }
                Ordering::Less => {
                    let mut rest = other.sub_abs(self);
                    rest.negative = other.negative;
                    rest
                }
            }
        };
        result.scale = self.scale.max(other.scale);
        result
    }

    /// Returns the negated value.
    pub(super) fn negated(&self) -> Digits {
        Digits { negative: !self.negative && !self.is_zero(), ..self.clone() }
    }

    /// Returns the exact difference, with the larger scale.
    pub(super) fn sub(&self, other: &Digits) -> Digits {
        self.add(&other.negated())
    }

    /// Returns the product rounded to `scale`.
    pub(super) fn mul(
        &self,
        other: &Digits,
        scale: i32,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<Digits> {
        let mut product = vec![0u64; self.digits.len() + other.digits.len()];
        for (i, &a) in self.digits.iter().enumerate() {
            let row = &mut product[i + 1..];
            for (slot, &b) in row.iter_mut().zip(&other.digits) {
                *slot += u64::from(a) * u64::from(b);
            }
            pace.count_steps(other.digits.len())?;
        }
        let mut carry = 0u64;
        let mut digits = vec![0u16; product.len()];
        for (slot, sum) in digits.iter_mut().zip(&product).rev() {
            let sum = sum + carry;
            carry = sum / u64::from(BASE);
            *slot = (sum % u64::from(BASE)) as u16;
        }
        debug_assert_eq!(carry, 0, "a product has as many digits as both factors");
        let mut result = Digits {
            negative: self.negative != other.negative,
            weight: self.weight + other.weight + 1,
            scale: self.scale + other.scale,
            digits,
        };
        result.normalize();
        result.set_scale(scale, Rounding::Nearest);
        Ok(result)
    }

    /// Returns the quotient at `scale`. The divisor must not be 0.
    pub(super) fn div(
        &self,
        divisor: &Digits,
        (scale, rounding): (i32, Rounding),
        pace: &mut InterruptPacer<'_>,
    ) -> Result<Digits> {
        assert!(!divisor.is_zero(), "the caller checks for division by zero");
        let places = (scale + 1).div_euclid(DECIMALS) + 1;
        let shift = self.low() - divisor.low() + places;
        let mut dividend = self.digits.clone();
        if shift >= 0 {
            dividend.resize(dividend.len() + shift as usize, 0);
        } else {
            dividend.truncate(dividend.len().saturating_sub(shift.unsigned_abs() as usize));
        }
        let quotient = divide(&dividend, &divisor.digits, pace)?;
        let mut result = Digits {
            negative: self.negative != divisor.negative,
            weight: quotient.len() as i32 - 1 - places,
            scale: 0,
            digits: quotient,
        };
        result.normalize();
        result.set_scale(scale, rounding);
        Ok(result)
    }

    /// Returns the square root, rounded to `scale` (before the point, if that is negative). The
    /// value must not be negative.
    pub(super) fn sqrt(&self, scale: i32, pace: &mut InterruptPacer<'_>) -> Result<Digits> {
        debug_assert!(!self.negative, "the caller checks for negative values");
        let places = (scale + 1).div_euclid(DECIMALS) + 1;
        let mut radicand = self.digits.clone();
        let shift = self.low() + 2 * places;
        if shift >= 0 {
            radicand.resize(radicand.len() + shift as usize, 0);
        } else {
            radicand.truncate(radicand.len().saturating_sub(shift.unsigned_abs() as usize));
        }
        let root = integer_sqrt(&radicand, pace)?;
        let mut result = Digits {
            negative: false,
            weight: root.len() as i32 - 1 - places,
            scale: 0,
            digits: root,
        };
        result.normalize();
        result.set_scale(scale, Rounding::Nearest);
        Ok(result)
    }

    /// Truncates, rounds or extends the value to `scale` digits after the point (before it, if
    /// negative).
    pub(super) fn set_scale(&mut self, scale: i32, rounding: Rounding) {
        self.scale = scale.max(0) as u32;
        let kept = (self.weight + 1) * DECIMALS + scale;
        if self.is_zero() || kept >= self.digits.len() as i32 * DECIMALS {
            return;
        }
        if kept < 0 {
            *self = Digits { scale: self.scale, ..Digits::default() };
            return;
        }
        let partial = (kept % DECIMALS) as usize;
        let whole = (kept / DECIMALS) as usize;
        let up = if partial == 0 {
            let up = self.digits[whole] >= (BASE / 2) as u16;
            self.digits.truncate(whole);
            u32::from(up)
        } else {
            let unit = POWERS[4 - partial];
            let digit = u32::from(self.digits[whole]);
            let rest = digit % unit;
            self.digits.truncate(whole + 1);
            self.digits[whole] = (digit - rest) as u16;
            if rest * 2 >= unit { unit } else { 0 }
        };
        if up > 0 && rounding == Rounding::Nearest {
            self.add_to_last(up);
        }
        self.normalize();
    }

    /// Adds to the absolute value, in units of the last remaining digit.
    fn add_to_last(&mut self, addend: u32) {
        debug_assert!(addend < BASE, "a carry is 1");
        let mut carry = addend;
        for digit in self.digits.iter_mut().rev() {
            let sum = u32::from(*digit) + carry;
            carry = u32::from(sum >= BASE);
            *digit = (sum - carry * BASE) as u16;
            if carry == 0 {
                return;
            }
        }
        self.digits.insert(0, carry as u16);
        self.weight += 1;
    }

    /// Returns the nearest double; infinite on overflow.
    pub(super) fn to_f64(&self) -> f64 {
        let mut text = Vec::new();
        self.write(&mut text);
        String::from_utf8_lossy(&text).parse().unwrap_or(f64::NAN)
    }

    /// Returns the minimum scale that represents the value exactly.
    pub(super) fn min_scale(&self) -> u32 {
        let Some(&last) = self.digits.last() else { return 0 };
        let places = -self.low() * DECIMALS;
        if places <= 0 {
            return 0;
        }
        let zeros = (1..4).take_while(|&i| u32::from(last).is_multiple_of(POWERS[i])).count();
        places as u32 - zeros as u32
    }

    /// Appends the text form.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
        if self.weight < 0 {
            out.push(b'0');
        }
        for power in (0..=self.weight).rev() {
            let text = four(self.at(power));
            let skip = if power == self.weight {
                text.iter().take(3).take_while(|&&c| c == b'0').count()
            } else {
                0
            };
            out.extend_from_slice(&text[skip..]);
        }
        if self.scale > 0 {
            out.push(b'.');
            let end = out.len() + self.scale as usize;
            for group in 1..=self.scale.div_ceil(4) as i32 {
                out.extend_from_slice(&four(self.at(-group)));
            }
            out.truncate(end);
        }
    }
}

/// Returns a digit as four characters.
fn four(digit: u32) -> [u8; 4] {
    debug_assert!(digit < BASE, "{digit} is not a digit");
    let mut text = [b'0'; 4];
    let mut rest = digit;
    for slot in text.iter_mut().rev() {
        *slot = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

/// Returns the digits without leading zeros.
fn trimmed(digits: &[u16]) -> &[u16] {
    let zeros = digits.iter().take_while(|&&digit| digit == 0).count();
    &digits[zeros..]
}

/// Divides integers, most significant digit first; Knuth volume 2, 4.3.1, algorithm D.
fn divide(dividend: &[u16], divisor: &[u16], pace: &mut InterruptPacer<'_>) -> Result<Vec<u16>> {
    let dividend = trimmed(dividend);
    let divisor = trimmed(divisor);
    debug_assert!(!divisor.is_empty(), "division by zero");
    if dividend.len() < divisor.len() {
        return Ok(Vec::new());
    }
    pace.count_steps(dividend.len())?;
    if let [single] = divisor {
        let mut rest = 0u32;
        let digits = dividend.iter().map(|&digit| {
            let value = rest * BASE + u32::from(digit);
            rest = value % u32::from(*single);
            (value / u32::from(*single)) as u16
        });
        return Ok(digits.collect());
    }
    let factor = i64::from(BASE) / (i64::from(divisor[0]) + 1);
    let base = i64::from(BASE);
    let mut u = scaled(dividend, factor, true);
    let v = scaled(divisor, factor, false);
    let n = v.len();
    let mut quotient = Vec::with_capacity(u.len() - n);
    for j in 0..u.len() - n {
        let top = u[j] * base + u[j + 1];
        let mut guess = top / v[0];
        let mut rest = top % v[0];
        while guess >= base || guess * v[1] > rest * base + u[j + 2] {
            guess -= 1;
            rest += v[0];
            if rest >= base {
                break;
            }
        }
        let mut borrow = 0i64;
        for i in (0..n).rev() {
            let value = u[j + 1 + i] - guess * v[i] + borrow;
            u[j + 1 + i] = value.rem_euclid(base);
            borrow = value.div_euclid(base);
        }
        u[j] += borrow;
        if u[j] < 0 {
            guess -= 1;
            let mut carry = 0i64;
            for i in (0..n).rev() {
                let value = u[j + 1 + i] + v[i] + carry;
                carry = i64::from(value >= base);
                u[j + 1 + i] = value - carry * base;
            }
            u[j] += carry;
        }
        debug_assert_eq!(u[j], 0, "the remainder is below the divisor");
        debug_assert!((0..base).contains(&guess), "{guess} is not a digit");
        quotient.push(guess as u16);
        // A step of a division takes several times as long as one of a multiplication.
        pace.count_steps(n * 8)?;
    }
    Ok(quotient)
}

/// Returns digits multiplied by a small factor, with one more leading digit if `room`.
fn scaled(digits: &[u16], factor: i64, room: bool) -> Vec<i64> {
    let mut carry = 0i64;
    let mut result: Vec<i64> = vec![0; digits.len() + usize::from(room)];
    for (slot, &digit) in result.iter_mut().rev().zip(digits.iter().rev()) {
        let value = i64::from(digit) * factor + carry;
        *slot = value % i64::from(BASE);
        carry = value / i64::from(BASE);
    }
    if room {
        result[0] = carry;
    }
    debug_assert!(room || carry == 0, "the product needs one more digit");
    result
}

/// Returns the integer part of the square root of an integer: starts with that of its upper half
/// of digits and continues with Newton's method from above, which takes about one step.
fn integer_sqrt(radicand: &[u16], pace: &mut InterruptPacer<'_>) -> Result<Vec<u16>> {
    let radicand = trimmed(radicand);
    if radicand.len() <= 4 {
        let value = radicand.iter().fold(0, |sum, &d| sum * u64::from(BASE) + u64::from(d));
        let mut root = Digits::from_mantissa(i128::from(value.isqrt()), 0);
        root.digits.resize((root.weight + 1).max(0) as usize, 0);
        return Ok(root.digits);
    }
    let whole = integer(radicand);
    let lower = (radicand.len().div_ceil(2) - 1) / 2;
    let mut guess = integer_sqrt(&radicand[..radicand.len() - 2 * lower], pace)?;
    guess.resize(guess.len() + lower, 0);
    let two = Digits::from_mantissa(2, 0);
    let mut step = |root: &Digits| {
        let quotient = whole.div(root, (0, Rounding::Truncate), pace)?;
        root.add(&quotient).div(&two, (0, Rounding::Truncate), pace)
    };
    // From below, the first step yields a value above the root, or the root.
    let mut root = step(&integer(&guess))?;
    loop {
        let next = step(&root)?;
        if next.cmp_abs(&root) != Ordering::Less {
            break;
        }
        root = next;
    }
    root.digits.resize((root.weight + 1).max(0) as usize, 0);
    Ok(root.digits)
}

/// Returns an integer from its digits.
fn integer(digits: &[u16]) -> Digits {
    let mut result = Digits {
        negative: false,
        weight: digits.len() as i32 - 1,
        scale: 0,
        digits: digits.to_vec(),
    };
    result.normalize();
    result
}
