//! Assignment to array elements and slices: `SET a[1] = …`, `SET a[2:3] = …`.
//!
//! The binder makes the calls; their names have blanks, so that no statement can call them. A
//! NULL array is treated as an empty one. Source: PostgreSQL's `array_set_element` and
//! `array_set_slice`.

use std::ops::Range;

use super::argument::{array, array_datum, int4};
use super::array::{array_mut, array_or_empty, make_room, subscript_error, too_large};
use super::{FunctionRow, change_row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{AnyArray, AnyElement, Int4};
use crate::datum::{Array, Datum, Dimension, MAX_DIMENSIONS, MAX_ELEMENTS};
use crate::error::{Error, Result};

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    change_row("array with element", &[AnyArray, AnyElement, Int4], AnyArray, with_element)
        .variadic(),
    row("array with slice", &[AnyArray, AnyArray, Int4], AnyArray, with_slice)
        .variadic()
        .takes_null(),
];

fn subscripts(arguments: &[Datum]) -> Result<Vec<i64>> {
    if arguments.iter().any(Datum::is_null) {
        bail!(NULL_VALUE_NOT_ALLOWED: "array subscript in assignment must not be null");
    }
    Ok(arguments.iter().map(|subscript| i64::from(int4(subscript))).collect())
}

fn wrong_number() -> Error {
    subscript_error("wrong number of array subscripts")
}

fn out_of_range() -> Error {
    subscript_error("array subscript out of range")
}

fn with_element(target: &mut Datum, others: &[Datum], context: &EvalContext) -> Result<()> {
    let subscripts = subscripts(&others[1..])?;
    let array = array_mut(target, context)?;
    let value = others[0].clone();
    if subscripts.len() > MAX_DIMENSIONS {
        return Err(wrong_number());
    }
    if array.dimensions.is_empty() {
        let dimension = |&lower: &i64| Dimension { lower: lower as i32, length: 1 };
        array.dimensions = subscripts.iter().map(dimension).collect();
        array.elements = vec![value];
        return Ok(());
    }
    if subscripts.len() != array.dimensions.len() {
        return Err(wrong_number());
    }
    if let [subscript] = subscripts[..] {
        widen(array, (subscript, subscript), context)?;
    }
    let mut index = 0;
    for (dimension, subscript) in array.dimensions.iter().zip(subscripts) {
        let offset = usize::try_from(subscript - i64::from(dimension.lower)).ok();
        let offset = offset.filter(|offset| *offset < dimension.length);
        index = index * dimension.length + offset.ok_or_else(out_of_range)?;
    }
    array.elements[index] = value;
    Ok(())
}

/// Extends a one-dimensional array to a range of subscripts; new elements are NULL.
fn widen(array: &mut Array, (lower, upper): (i64, i64), context: &EvalContext) -> Result<()> {
    let dimension = array.dimensions[0];
    let before = (i64::from(dimension.lower) - lower).max(0) as usize;
    let after = (upper - i64::from(dimension.upper())).max(0) as usize;
    let length = dimension.length + before + after;
    if length > MAX_ELEMENTS {
        return Err(too_large());
    }
    make_room(&mut array.elements, before + after, &mut context.pace())?;
    let dimension = &mut array.dimensions[0];
    dimension.length = length;
    dimension.lower -= before as i32;
    array.elements.splice(0..0, std::iter::repeat_n(Datum::Null, before));
    array.elements.resize(length, Datum::Null);
    Ok(())
}

fn with_slice(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let bounds = subscripts(&arguments[2..])?;
    if arguments[1].is_null() {
        return Ok(arguments[0].clone());
    }
    let (mut target, source) = (array_or_empty(&arguments[0], context)?, array(&arguments[1]));
    let bounds: Vec<(i64, i64)> = bounds.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    if bounds.len() > MAX_DIMENSIONS {
        return Err(wrong_number());
    }
    if target.dimensions.is_empty() {
        return new_slice(&bounds, source);
    }
    if bounds.len() > target.dimensions.len() {
        return Err(wrong_number());
    }
    let is_flat = target.dimensions.len() == 1;
    let mut kept: Vec<Range<usize>> = Vec::with_capacity(target.dimensions.len());
    for at in 0..target.dimensions.len() {
        let dimension = target.dimensions[at];
        let own = (i64::from(dimension.lower), i64::from(dimension.upper()));
        let (lower, upper) = bounds.get(at).copied().unwrap_or((OPEN_LOWER, OPEN_UPPER));
        let lower = if lower == OPEN_LOWER { own.0 } else { lower };
        let upper = if upper == OPEN_UPPER { own.1 } else { upper };
        if lower > upper {
            return Err(subscript_error("upper bound cannot be less than lower bound"));
        }
        if is_flat {
            widen(&mut target, (lower, upper), context)?;
        } else if lower < own.0 || upper > own.1 {
            return Err(out_of_range());
        }
        let first = i64::from(target.dimensions[at].lower);
        kept.push((lower - first) as usize..(upper - first) as usize + 1);
    }
    let count: usize = kept.iter().map(Range::len).product();
    if count > source.elements.len() {
        return Err(too_small());
    }
    let mut values = source.elements.iter();
    put_slice(&mut target, &kept, 0, &mut values);
    Ok(array_datum(target))
}

/// The binder's values for omitted bounds.
const OPEN_LOWER: i64 = i32::MIN as i64;
const OPEN_UPPER: i64 = i32::MAX as i64;

fn too_small() -> Error {
    subscript_error("source array too small")
}

/// Returns the result of assigning a slice of an empty array.
fn new_slice(bounds: &[(i64, i64)], source: &Array) -> Result<Datum> {
    let mut dimensions = Vec::with_capacity(bounds.len());
    let mut count: usize = 1;
    for &(lower, upper) in bounds {
        if lower == OPEN_LOWER || upper == OPEN_UPPER {
            let message = "array slice subscript must provide both boundaries";
            return Err(subscript_error(message).with_detail(
                "When assigning to a slice of an empty array value, slice boundaries must be \
                 fully specified.",
            ));
        }
        let length = usize::try_from(upper - lower + 1).map_err(|_| too_large())?;
        count = count.saturating_mul(length);
        dimensions.push(Dimension { lower: lower as i32, length });
    }
    if count > MAX_ELEMENTS {
        return Err(too_large());
    }
    if count > source.elements.len() {
        return Err(too_small());
    }
    if count == 0 {
        return Ok(array_datum(Array::default()));
    }
    let elements = source.elements[..count].to_vec();
    Ok(array_datum(Array { dimensions, elements }))
}

/// Assigns values, in their order, to the elements in the ranges of all dimensions.
fn put_slice(
    target: &mut Array,
    kept: &[Range<usize>],
    start: usize,
    values: &mut std::slice::Iter<'_, Datum>,
) {
    let level = target.dimensions.len() - kept.len();
    let Some((range, inner)) = kept.split_first() else {
        if let (Some(place), Some(value)) = (target.elements.get_mut(start), values.next()) {
            place.clone_from(value);
        }
        return;
    };
    for offset in range.clone() {
        let at = start * target.dimensions[level].length + offset;
        put_slice(target, inner, at, values);
    }
}
