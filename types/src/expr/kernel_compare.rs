//! Vectorized kernels of comparisons.
//!
//! Positions where an operand is NULL are computed like the others, on placeholder values; the
//! validity list marks their results as NULL.

use super::operand::{Operand, OperandSide, Typed, both_valid};
use crate::datetime::Interval;
use crate::datum::compare_floats;
use crate::function::{CompareOp, midnight};
use crate::item_set::trimmed;
use crate::vector::VectorData;

/// Compares two operands of one type, or of two number types; `None` if there is no kernel for
/// them. Neither is the constant NULL, and at least one is a vector of `row_count` rows.
pub(super) fn compare<'a>(
    op: CompareOp,
    left: &Operand<'_>,
    right: &Operand<'_>,
    row_count: usize,
) -> Option<Operand<'a>> {
    let results = match (left.typed(), right.typed()) {
        (Typed::Bool(left), Typed::Bool(right)) => loop_over(op, left, right, row_count),
        (Typed::I16(left), Typed::I16(right)) => loop_over(op, left, right, row_count),
        (Typed::I32(left), Typed::I32(right)) => loop_over(op, left, right, row_count),
        (Typed::I64(left), Typed::I64(right)) => loop_over(op, left, right, row_count),
        (Typed::F32(left), Typed::F32(right)) => loop_over(op, left, right, row_count),
        (Typed::F64(left), Typed::F64(right)) => loop_over(op, left, right, row_count),
        (Typed::Interval(left), Typed::Interval(right)) => loop_over(op, left, right, row_count),
        (Typed::Uuid(left), Typed::Uuid(right)) => loop_over(op, left, right, row_count),
        (Typed::Numeric(left), Typed::Numeric(right)) => {
            each(row_count, |i| op.accepts(left[i].cmp(&right[i])))
        }
        (Typed::Numeric(left), Typed::NumericSame(right)) => {
            each(row_count, |i| op.accepts(left[i].cmp(right)))
        }
        (Typed::NumericSame(left), Typed::Numeric(right)) => {
            each(row_count, |i| op.accepts(left.cmp(&right[i])))
        }
        (Typed::Bytes(left), Typed::Bytes(right)) => {
            each(row_count, |i| op.accepts(left.get(i).cmp(right.get(i))))
        }
        (Typed::Bytes(left), Typed::BytesSame(right)) => match op {
            CompareOp::Eq => each(row_count, |i| left.get(i) == right),
            CompareOp::Ne => each(row_count, |i| left.get(i) != right),
            _ => each(row_count, |i| op.accepts(left.get(i).cmp(right))),
        },
        (Typed::BytesSame(_), Typed::Bytes(_)) => {
            return compare(op.flip(), right, left, row_count);
        }
        (left, right) => mixed(op, &left, &right, row_count)?,
    };
    Some(Operand::owned(VectorData::Bool(results), both_valid(left, right)))
}

/// Compares texts without trailing blanks, as `char(n)`; `None` for operands of other types, see
/// [`compare`].
pub(super) fn compare_blanks<'a>(
    op: CompareOp,
    left: &Operand<'_>,
    right: &Operand<'_>,
    row_count: usize,
) -> Option<Operand<'a>> {
    let order = |left: &[u8], right: &[u8]| op.accepts(trimmed(left).cmp(trimmed(right)));
    let results = match (left.typed(), right.typed()) {
        (Typed::Bytes(left), Typed::Bytes(right)) => {
            each(row_count, |i| order(left.get(i), right.get(i)))
        }
        (Typed::Bytes(left), Typed::BytesSame(right)) => {
            each(row_count, |i| order(left.get(i), right))
        }
        (Typed::BytesSame(left), Typed::Bytes(right)) => {
            each(row_count, |i| order(left, right.get(i)))
        }
        _ => return None,
    };
    Some(Operand::owned(VectorData::Bool(results), both_valid(left, right)))
}

/// Compares dates, as their midnights, with timestamps; `None` for operands of other types, see
/// [`compare`].
pub(super) fn compare_midnights<'a>(
    op: CompareOp,
    left: &Operand<'_>,
    right: &Operand<'_>,
    row_count: usize,
) -> Option<Operand<'a>> {
    let results = match (left.typed(), right.typed()) {
        (Typed::I32(left), Typed::I64(right)) => {
            loop_over(op, left.map_to_vec(midnight).side(), right, row_count)
        }
        (Typed::I64(left), Typed::I32(right)) => {
            loop_over(op, left, right.map_to_vec(midnight).side(), row_count)
        }
        _ => return None,
    };
    Some(Operand::owned(VectorData::Bool(results), both_valid(left, right)))
}

/// Compares numbers of different widths in the wider type.
fn mixed(
    op: CompareOp,
    left: &Typed<'_>,
    right: &Typed<'_>,
    row_count: usize,
) -> Option<Vec<bool>> {
    if let (Some(left), Some(right)) = (as_i64(left), as_i64(right)) {
        return Some(loop_over(op, left.side(), right.side(), row_count));
    }
    let (left, right) = (as_f64(left)?, as_f64(right)?);
    Some(loop_over(op, left.side(), right.side(), row_count))
}

/// Returns integers as `i64`.
pub(super) fn as_i64(typed: &Typed<'_>) -> Option<super::operand::Widened<i64>> {
    match typed {
        Typed::I16(side) => Some(side.map_to_vec(i64::from)),
        Typed::I32(side) => Some(side.map_to_vec(i64::from)),
        Typed::I64(side) => Some(side.map_to_vec(|value| value)),
        _ => None,
    }
}

/// Returns floats as `f64`.
pub(super) fn as_f64(typed: &Typed<'_>) -> Option<super::operand::Widened<f64>> {
    match typed {
        Typed::F32(side) => Some(side.map_to_vec(f64::from)),
        Typed::F64(side) => Some(side.map_to_vec(|value| value)),
        _ => None,
    }
}

fn each(row_count: usize, test: impl Fn(usize) -> bool) -> Vec<bool> {
    (0..row_count).map(test).collect()
}

/// Values with SQL's order, which for floats is not Rust's.
trait Ordered: Copy {
    fn equals(self, other: Self) -> bool;
    fn precedes(self, other: Self) -> bool;
}

macro_rules! ordered {
    ($($type:ty),*) => {
        $(impl Ordered for $type {
            #[inline]
            fn equals(self, other: Self) -> bool {
                self == other
            }
            #[inline]
            fn precedes(self, other: Self) -> bool {
                self < other
            }
        })*
    };
}

ordered!(bool, i16, i32, i64, [u8; 16], Interval);

impl Ordered for f64 {
    #[inline]
    fn equals(self, other: f64) -> bool {
        compare_floats(self, other).is_eq()
    }
    #[inline]
    fn precedes(self, other: f64) -> bool {
        compare_floats(self, other).is_lt()
    }
}

impl Ordered for f32 {
    #[inline]
    fn equals(self, other: f32) -> bool {
        f64::from(self).equals(f64::from(other))
    }
    #[inline]
    fn precedes(self, other: f32) -> bool {
        f64::from(self).precedes(f64::from(other))
    }
}

fn loop_over<T: Ordered>(
    op: CompareOp,
    left: OperandSide<'_, T>,
    right: OperandSide<'_, T>,
    row_count: usize,
) -> Vec<bool> {
    match op {
        CompareOp::Eq => pairs(left, right, row_count, T::equals),
        CompareOp::Ne => pairs(left, right, row_count, |a, b| !a.equals(b)),
        CompareOp::Lt => pairs(left, right, row_count, T::precedes),
        CompareOp::Le => pairs(left, right, row_count, |a, b| !b.precedes(a)),
        CompareOp::Gt => pairs(left, right, row_count, |a, b| b.precedes(a)),
        CompareOp::Ge => pairs(left, right, row_count, |a, b| !a.precedes(b)),
    }
}

#[inline]
fn pairs<T: Copy>(
    left: OperandSide<'_, T>,
    right: OperandSide<'_, T>,
    row_count: usize,
    test: impl Fn(T, T) -> bool,
) -> Vec<bool> {
    match (left, right) {
        (OperandSide::Slice(left), OperandSide::Slice(right)) => {
            left.iter().zip(right).map(|(a, b)| test(*a, *b)).collect()
        }
        (OperandSide::Slice(left), OperandSide::Same(b)) => {
            left.iter().map(|a| test(*a, b)).collect()
        }
        (OperandSide::Same(a), OperandSide::Slice(right)) => {
            right.iter().map(|b| test(a, *b)).collect()
        }
        (OperandSide::Same(a), OperandSide::Same(b)) => vec![test(a, b); row_count],
    }
}
