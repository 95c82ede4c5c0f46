//! Vectorized kernels of arithmetic operators.
//!
//! A loop computes every position and records whether a valid one failed. The row path then
//! determines which one and its error, so that the loop stays simple.

use super::kernel_compare::{as_f64, as_i64};
use super::operand::{Operand, OperandSide, Typed, both_valid};
use crate::datatype::DataType;
use crate::error::{Error, Result};
use crate::function::ArithmeticOp;
use crate::interruptible::InterruptPacer;
use crate::numeric::Numeric;
use crate::vector::VectorData;

/// Computes an operator on two number operands, with a result of type `data_type`; `None` if
/// there is no kernel for them. Neither is the constant NULL, and at least one is a vector.
///
/// # Errors
///
/// An arbitrary error if a row fails; the row path determines the right one.
pub(super) fn arithmetic<'a>(
    op: ArithmeticOp,
    left: &Operand<'_>,
    right: &Operand<'_>,
    data_type: &DataType,
    pace: &mut InterruptPacer<'_>,
) -> Option<Result<Operand<'a>>> {
    let validity = both_valid(left, right);
    let valid = validity.as_deref();
    let data = match (left.typed(), right.typed()) {
        (Typed::I16(left), Typed::I16(right)) => {
            integers(op, left, right, valid).map(VectorData::Int2)
        }
        (Typed::I32(left), Typed::I32(right)) => {
            integers(op, left, right, valid).map(VectorData::Int4)
        }
        (Typed::I64(left), Typed::I64(right)) => {
            integers(op, left, right, valid).map(VectorData::Int8)
        }
        (Typed::F32(left), Typed::F32(right)) => {
            floats(op, left, right, valid).map(VectorData::Float4)
        }
        (Typed::F64(left), Typed::F64(right)) => {
            floats(op, left, right, valid).map(VectorData::Float8)
        }
        (left @ (Typed::Numeric(_) | Typed::NumericSame(_)), right) => {
            numerics(op, (&left, &right), valid, pace)?.map(VectorData::Numeric)
        }
        (left, right) => mixed(op, &left, &right, valid, data_type)?,
    };
    Some(data.map(|data| Operand::owned(data, validity)))
}

fn mixed(
    op: ArithmeticOp,
    left: &Typed<'_>,
    right: &Typed<'_>,
    valid: Option<&[bool]>,
    data_type: &DataType,
) -> Option<Result<VectorData>> {
    match data_type {
        DataType::Int4 => {
            let (left, right) = (as_i32(left)?, as_i32(right)?);
            Some(integers(op, left.side(), right.side(), valid).map(VectorData::Int4))
        }
        DataType::Int8 => {
            let (left, right) = (as_i64(left)?, as_i64(right)?);
            Some(integers(op, left.side(), right.side(), valid).map(VectorData::Int8))
        }
        DataType::Float8 => {
            let (left, right) = (as_f64(left)?, as_f64(right)?);
            Some(floats(op, left.side(), right.side(), valid).map(VectorData::Float8))
        }
        _ => None,
    }
}

fn as_i32(typed: &Typed<'_>) -> Option<super::operand::Widened<i32>> {
    match typed {
        Typed::I16(side) => Some(side.map_to_vec(i32::from)),
        Typed::I32(side) => Some(side.map_to_vec(|value| value)),
        _ => None,
    }
}

/// Placeholder for the error that the row path determines.
fn some_row_failed() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "value out of range")
}

/// Integers with PostgreSQL's arithmetic; each operation also returns whether it failed.
trait Integer: Copy {
    fn add(self, other: Self) -> (Self, bool);
    fn subtract(self, other: Self) -> (Self, bool);
    fn multiply(self, other: Self) -> (Self, bool);
    fn divide(self, other: Self) -> (Self, bool);
    fn remainder(self, other: Self) -> (Self, bool);
}

macro_rules! integer {
    ($($type:ty),*) => {
        $(impl Integer for $type {
            #[inline]
            fn add(self, other: Self) -> (Self, bool) {
                self.overflowing_add(other)
            }
            #[inline]
            fn subtract(self, other: Self) -> (Self, bool) {
                self.overflowing_sub(other)
            }
            #[inline]
            fn multiply(self, other: Self) -> (Self, bool) {
                self.overflowing_mul(other)
            }
            #[inline]
            fn divide(self, other: Self) -> (Self, bool) {
                if other == 0 { (0, true) } else { self.overflowing_div(other) }
            }
            #[inline]
            fn remainder(self, other: Self) -> (Self, bool) {
                if other == 0 { (0, true) } else { (self.wrapping_rem(other), false) }
            }
        })*
    };
}

integer!(i16, i32, i64);

fn integers<T: Integer>(
    op: ArithmeticOp,
    left: OperandSide<'_, T>,
    right: OperandSide<'_, T>,
    valid: Option<&[bool]>,
) -> Result<Vec<T>> {
    match op {
        ArithmeticOp::Add => pairs(left, right, valid, T::add),
        ArithmeticOp::Subtract => pairs(left, right, valid, T::subtract),
        ArithmeticOp::Multiply => pairs(left, right, valid, T::multiply),
        ArithmeticOp::Divide => pairs(left, right, valid, T::divide),
        ArithmeticOp::Remainder => pairs(left, right, valid, T::remainder),
    }
}

/// Floats with PostgreSQL's checks.
trait Float: Copy + PartialEq + Default {
    fn raw(op: ArithmeticOp, left: Self, right: Self) -> Self;
    fn infinite(self) -> bool;
    fn nan(self) -> bool;
}

macro_rules! float {
    ($($type:ty),*) => {
        $(impl Float for $type {
            #[inline]
            fn raw(op: ArithmeticOp, left: Self, right: Self) -> Self {
                match op {
                    ArithmeticOp::Add => left + right,
                    ArithmeticOp::Subtract => left - right,
                    ArithmeticOp::Multiply => left * right,
                    ArithmeticOp::Divide => left / right,
                    ArithmeticOp::Remainder => left % right,
                }
            }
            #[inline]
            fn infinite(self) -> bool {
                self.is_infinite()
            }
            #[inline]
            fn nan(self) -> bool {
                self.is_nan()
            }
        })*
    };
}

float!(f32, f64);

fn floats<T: Float>(
    op: ArithmeticOp,
    left: OperandSide<'_, T>,
    right: OperandSide<'_, T>,
    valid: Option<&[bool]>,
) -> Result<Vec<T>> {
    match op {
        ArithmeticOp::Add => pairs(left, right, valid, |a, b| checked(ArithmeticOp::Add, a, b)),
        ArithmeticOp::Subtract => {
            pairs(left, right, valid, |a, b| checked(ArithmeticOp::Subtract, a, b))
        }
        ArithmeticOp::Multiply => {
            pairs(left, right, valid, |a, b| checked(ArithmeticOp::Multiply, a, b))
        }
        ArithmeticOp::Divide => {
            pairs(left, right, valid, |a, b| checked(ArithmeticOp::Divide, a, b))
        }
        ArithmeticOp::Remainder => {
            pairs(left, right, valid, |a, b| checked(ArithmeticOp::Remainder, a, b))
        }
    }
}

#[inline]
fn checked<T: Float>(op: ArithmeticOp, left: T, right: T) -> (T, bool) {
    let result = T::raw(op, left, right);
    let zero = T::default();
    let overflow = result.infinite() && !left.infinite() && !right.infinite();
    let lossy = match op {
        ArithmeticOp::Multiply => result == zero && left != zero && right != zero,
        ArithmeticOp::Divide => {
            let underflow = result == zero && left != zero && !right.infinite();
            underflow || (right == zero && !left.nan())
        }
        _ => false,
    };
    (result, overflow || lossy)
}

#[inline]
fn pairs<T: Copy>(
    left: OperandSide<'_, T>,
    right: OperandSide<'_, T>,
    valid: Option<&[bool]>,
    compute: impl Fn(T, T) -> (T, bool),
) -> Result<Vec<T>> {
    match (left, right) {
        (OperandSide::Slice(left), OperandSide::Slice(right)) => {
            collect(left.iter().zip(right).map(|(a, b)| compute(*a, *b)), valid)
        }
        (OperandSide::Slice(left), OperandSide::Same(b)) => {
            collect(left.iter().map(|a| compute(*a, b)), valid)
        }
        (OperandSide::Same(a), OperandSide::Slice(right)) => {
            collect(right.iter().map(|b| compute(a, *b)), valid)
        }
        (OperandSide::Same(a), OperandSide::Same(b)) => {
            collect(std::iter::once(compute(a, b)), valid)
        }
    }
}

#[inline]
fn collect<T>(
    results: impl ExactSizeIterator<Item = (T, bool)>,
    valid: Option<&[bool]>,
) -> Result<Vec<T>> {
    let mut values = Vec::with_capacity(results.len());
    let mut failed = false;
    match valid {
        None => values.extend(results.map(|(value, wrong)| {
            failed |= wrong;
            value
        })),
        Some(valid) => values.extend(results.zip(valid).map(|((value, wrong), valid)| {
            failed |= wrong & valid;
            value
        })),
    }
    if failed { Err(some_row_failed()) } else { Ok(values) }
}

fn numerics(
    op: ArithmeticOp,
    (left, right): (&Typed<'_>, &Typed<'_>),
    valid: Option<&[bool]>,
    pace: &mut InterruptPacer<'_>,
) -> Option<Result<Vec<Numeric>>> {
    let none = |_: &Numeric, _: &Numeric| None;
    match op {
        ArithmeticOp::Add => {
            each_numeric(left, right, valid, Numeric::quick_add, Numeric::checked_add)
        }
        ArithmeticOp::Subtract => {
            each_numeric(left, right, valid, Numeric::quick_sub, Numeric::checked_sub)
        }
        ArithmeticOp::Multiply => {
            each_numeric(left, right, valid, Numeric::quick_mul, |a, b| a.checked_mul(b, pace))
        }
        ArithmeticOp::Divide => {
            each_numeric(left, right, valid, none, |a, b| a.checked_div(b, pace))
        }
        ArithmeticOp::Remainder => {
            each_numeric(left, right, valid, none, |a, b| a.checked_rem(b, pace))
        }
    }
}

/// Computes each position with `quick`, and with `exact` where that returns `None`.
#[inline]
fn each_numeric(
    left: &Typed<'_>,
    right: &Typed<'_>,
    valid: Option<&[bool]>,
    quick: impl Fn(&Numeric, &Numeric) -> Option<Numeric>,
    mut exact: impl FnMut(&Numeric, &Numeric) -> Result<Numeric>,
) -> Option<Result<Vec<Numeric>>> {
    let counts = |index: usize| valid.is_none_or(|valid| valid[index]);
    let mut one = |index: usize, left: &Numeric, right: &Numeric| match quick(left, right) {
        Some(value) => Ok(value),
        None if counts(index) => exact(left, right),
        None => Ok(Numeric::default()),
    };
    let count = |side: &Typed<'_>| if let Typed::Numeric(values) = side { values.len() } else { 0 };
    let mut values = Vec::with_capacity(count(left).max(count(right)));
    let mut put = |index: usize, left: &Numeric, right: &Numeric| {
        values.push(one(index, left, right)?);
        Ok(())
    };
    let done = match (left, right) {
        (Typed::Numeric(left), Typed::Numeric(right)) => {
            let mut pairs = left.iter().zip(*right).enumerate();
            pairs.try_for_each(|(index, (left, right))| put(index, left, right))
        }
        (Typed::Numeric(left), Typed::NumericSame(right)) => {
            left.iter().enumerate().try_for_each(|(index, left)| put(index, left, right))
        }
        (Typed::NumericSame(left), Typed::Numeric(right)) => {
            right.iter().enumerate().try_for_each(|(index, right)| put(index, left, right))
        }
        _ => return None,
    };
    Some(done.map(|()| values))
}
