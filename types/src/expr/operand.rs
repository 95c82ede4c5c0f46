//! Operands of batch evaluation: the result of a node, a constant or a column.

use std::borrow::Cow;

use crate::context::EvalContext;
use crate::datatype::DataType;
use crate::datetime::Interval;
use crate::datum::Datum;
use crate::error::Result;
use crate::numeric::Numeric;
use crate::vector::{BytesVector, Vector, VectorData};

/// The values of a subexpression for some rows.
pub(super) enum Operand<'a> {
    /// The same value for every row.
    Constant(Datum),
    /// A value for each row.
    Vector(Cow<'a, Vector>),
}

impl<'a> Operand<'a> {
    /// Returns an operand that owns a vector.
    pub(super) fn owned(data: VectorData, validity: Option<Vec<bool>>) -> Operand<'a> {
        Operand::Vector(Cow::Owned(Vector { data, validity }))
    }

    /// Returns the value of row `index`.
    pub(super) fn datum(&self, index: usize) -> Datum {
        match self {
            Operand::Constant(value) => value.clone(),
            Operand::Vector(vector) => vector.datum(index),
        }
    }

    /// Returns whether the value of row `index` is NULL.
    pub(super) fn is_null(&self, index: usize) -> bool {
        match self {
            Operand::Constant(value) => matches!(value, Datum::Null),
            Operand::Vector(vector) => vector.is_null(index),
        }
    }

    /// Returns whether the operand is the constant NULL.
    pub(super) fn is_constant_null(&self) -> bool {
        matches!(self, Operand::Constant(Datum::Null))
    }

    /// Returns the validity list; a constant has none, since the caller has excluded NULL.
    pub(super) fn validity(&self) -> Option<&[bool]> {
        match self {
            Operand::Constant(_) => None,
            Operand::Vector(vector) => vector.validity.as_deref(),
        }
    }

    /// Returns the values as a vector of `row_count` rows.
    pub(super) fn into_vector(
        self,
        data_type: &DataType,
        row_count: usize,
        context: &EvalContext,
    ) -> Result<Vector> {
        let value = match self {
            Operand::Vector(vector) => return Ok(vector.into_owned()),
            Operand::Constant(value) => value,
        };
        let mut vector = Vector::new(data_type, row_count);
        let mut pace = context.pace();
        (0..row_count).try_for_each(|_| vector.push_at(&value, &mut pace))?;
        Ok(vector)
    }
}

/// Returns the positions where neither operand is NULL; `None` if all are.
pub(super) fn both_valid(left: &Operand<'_>, right: &Operand<'_>) -> Option<Vec<bool>> {
    match (left.validity(), right.validity()) {
        (None, None) => None,
        (Some(valid), None) | (None, Some(valid)) => Some(valid.to_vec()),
        (Some(left), Some(right)) => {
            Some(left.iter().zip(right).map(|(left, right)| *left && *right).collect())
        }
    }
}

/// Typed access to an operand: the slice of a vector or the value of a constant.
#[derive(Clone, Copy)]
pub(super) enum OperandSide<'a, T> {
    /// One value per row.
    Slice(&'a [T]),
    /// The same value for every row.
    Same(T),
}

impl<T: Copy> OperandSide<'_, T> {
    /// Returns the values converted to another type.
    pub(super) fn map_to_vec<U: Copy>(&self, change: impl Fn(T) -> U) -> Widened<U> {
        match self {
            OperandSide::Slice(values) => {
                Widened::Values(values.iter().map(|v| change(*v)).collect())
            }
            OperandSide::Same(value) => Widened::Same(change(*value)),
        }
    }
}

/// The values of an operand, converted to a wider type.
pub(super) enum Widened<T> {
    /// One value per row.
    Values(Vec<T>),
    /// The same value for every row.
    Same(T),
}

impl<T: Copy> Widened<T> {
    /// Returns typed access to the values.
    pub(super) fn side(&self) -> OperandSide<'_, T> {
        match self {
            Widened::Values(values) => OperandSide::Slice(values),
            Widened::Same(value) => OperandSide::Same(*value),
        }
    }
}

/// An operand by the Rust type of its values.
pub(super) enum Typed<'a> {
    Bool(OperandSide<'a, bool>),
    I16(OperandSide<'a, i16>),
    I32(OperandSide<'a, i32>),
    I64(OperandSide<'a, i64>),
    F32(OperandSide<'a, f32>),
    F64(OperandSide<'a, f64>),
    Uuid(OperandSide<'a, [u8; 16]>),
    Numeric(&'a [Numeric]),
    NumericSame(&'a Numeric),
    Bytes(&'a BytesVector),
    BytesSame(&'a [u8]),
    Interval(OperandSide<'a, Interval>),
    /// Nested values, for which there are no kernels.
    Nested,
    /// The constant NULL.
    Null,
}

impl Operand<'_> {
    /// Returns typed access to the values.
    pub(super) fn typed(&self) -> Typed<'_> {
        match self {
            Operand::Vector(vector) => match &vector.data {
                VectorData::Bool(values) => Typed::Bool(OperandSide::Slice(values)),
                VectorData::Int2(values) => Typed::I16(OperandSide::Slice(values)),
                VectorData::Int4(values) | VectorData::Date(values) => {
                    Typed::I32(OperandSide::Slice(values))
                }
                VectorData::Int8(values)
                | VectorData::Time(values)
                | VectorData::Timestamp(values)
                | VectorData::Timestamptz(values) => Typed::I64(OperandSide::Slice(values)),
                VectorData::Float4(values) => Typed::F32(OperandSide::Slice(values)),
                VectorData::Float8(values) => Typed::F64(OperandSide::Slice(values)),
                VectorData::Numeric(values) => Typed::Numeric(values),
                VectorData::Text(values) | VectorData::Bytea(values) => Typed::Bytes(values),
                VectorData::Interval(values) => Typed::Interval(OperandSide::Slice(values)),
                VectorData::Uuid(values) => Typed::Uuid(OperandSide::Slice(values)),
                VectorData::Nested(_) => Typed::Nested,
            },
            Operand::Constant(value) => match value {
                Datum::Null => Typed::Null,
                Datum::Bool(value) => Typed::Bool(OperandSide::Same(*value)),
                Datum::Int2(value) => Typed::I16(OperandSide::Same(*value)),
                Datum::Int4(value) | Datum::Date(value) => Typed::I32(OperandSide::Same(*value)),
                Datum::Int8(value)
                | Datum::Time(value)
                | Datum::Timestamp(value)
                | Datum::Timestamptz(value) => Typed::I64(OperandSide::Same(*value)),
                Datum::Float4(value) => Typed::F32(OperandSide::Same(*value)),
                Datum::Float8(value) => Typed::F64(OperandSide::Same(*value)),
                Datum::Numeric(value) => Typed::NumericSame(value),
                Datum::Text(value) => Typed::BytesSame(value.as_bytes()),
                Datum::Bytea(value) => Typed::BytesSame(value),
                Datum::Interval(value) => Typed::Interval(OperandSide::Same(*value)),
                Datum::Uuid(value) => Typed::Uuid(OperandSide::Same(*value)),
                Datum::Nested(_) => Typed::Nested,
            },
        }
    }
}
