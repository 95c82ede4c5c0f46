//! Arrays: construction, concatenation, dimensions, and element access.
//!
//! The binder makes the calls of special syntax. Their names have blanks, so that no statement
//! can call them: `array of` is `ARRAY[…]`, `array element` is `a[1][2]`, `array slice` is
//! `a[1:2]` with a lower and an upper bound for each dimension, the extremes of `integer` for
//! omitted ones.

use std::sync::Arc;

use super::argument::{array, array_datum, int4};
use super::{FunctionRow, change_row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{
    self, AnyArray, AnyElement, Compatible, CompatibleArray, Int4, Text,
};
use crate::datatype::ElementType;
use crate::datum::{Array, Datum, Dimension, MAX_DIMENSIONS, MAX_ELEMENTS, Nested};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::interruptible::InterruptPacer;

/// The function table of this family.
const INTS: DataType = DataType::Array(ElementType::BuiltIn(&Int4));

pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("array of", &[Compatible, Compatible], CompatibleArray, |a, _| {
        Ok(array_datum(Array::from_elements(a.to_vec())))
    })
    .variadic()
    .takes_null(),
    row("int2vector of", &[Compatible, Compatible], CompatibleArray, |a, _| {
        vector(a, "int2vector")
    })
    .variadic()
    .takes_null(),
    row("oidvector of", &[Compatible, Compatible], CompatibleArray, |a, _| vector(a, "oidvector"))
        .variadic()
        .takes_null(),
    row("array of arrays", &[CompatibleArray, CompatibleArray], CompatibleArray, |a, c| {
        nested(a, &mut c.pace())
    })
    .variadic()
    .takes_null(),
    row("array element", &[AnyArray, Int4], AnyElement, element).variadic(),
    row("array slice", &[AnyArray, Int4], AnyArray, slice).variadic(),
    change_row("array_append", &[CompatibleArray, Compatible], CompatibleArray, append),
    row("array_prepend", &[Compatible, CompatibleArray], CompatibleArray, prepend).takes_null(),
    change_row("array_cat", &[CompatibleArray, CompatibleArray], CompatibleArray, cat),
    change_row("||", &[CompatibleArray, Compatible], CompatibleArray, append),
    row("||", &[Compatible, CompatibleArray], CompatibleArray, prepend).takes_null(),
    change_row("||", &[CompatibleArray, CompatibleArray], CompatibleArray, cat),
    row("array_ndims", &[AnyArray], Int4, |a, _| Ok(count(array(&a[0]).dimensions.len()))),
    row("array_dims", &[AnyArray], Text, |a, _| {
        let bounds = array(&a[0]).dimensions.iter();
        let written: String = bounds.map(|d| format!("[{}:{}]", d.lower, d.upper())).collect();
        Ok(if written.is_empty() { Datum::Null } else { Datum::text(written) })
    }),
    row("array_length", &[AnyArray, Int4], Int4, |a, _| {
        Ok(dimension(a).map_or(Datum::Null, |dimension| Datum::Int4(dimension.length as i32)))
    }),
    row("array_lower", &[AnyArray, Int4], Int4, |a, _| {
        Ok(dimension(a).map_or(Datum::Null, |dimension| Datum::Int4(dimension.lower)))
    }),
    row("array_upper", &[AnyArray, Int4], Int4, |a, _| {
        Ok(dimension(a).map_or(Datum::Null, |dimension| Datum::Int4(dimension.upper())))
    }),
    row("cardinality", &[AnyArray], Int4, |a, _| {
        Ok(Datum::Int4(array(&a[0]).elements.len() as i32))
    }),
    row("trim_array", &[AnyArray, Int4], AnyArray, trim),
    row("array_fill", &[AnyElement, INTS], AnyArray, fill).takes_null(),
    row("array_fill", &[AnyElement, INTS, INTS], AnyArray, fill).takes_null(),
];

/// Returns the `int2vector` or `oidvector` of an array; a vector has subscripts from 1 here.
fn vector(numbers: &[Datum], name: &str) -> Result<Datum> {
    if numbers.iter().any(Datum::is_null) {
        bail!(DATATYPE_MISMATCH: "array is not a valid {name}");
    }
    Ok(array_datum(Array::from_elements(numbers.to_vec())))
}

/// Returns a number of dimensions; NULL for an empty array.
fn count(dimensions: usize) -> Datum {
    if dimensions == 0 { Datum::Null } else { Datum::Int4(dimensions as i32) }
}

fn dimension(arguments: &[Datum]) -> Option<&Dimension> {
    let index = usize::try_from(int4(&arguments[1])).ok()?.checked_sub(1)?;
    array(&arguments[0]).dimensions.get(index)
}

pub(super) fn subscript_error(message: &str) -> Error {
    err!(ARRAY_SUBSCRIPT_ERROR: message)
}

pub(super) fn too_large() -> Error {
    err!(PROGRAM_LIMIT_EXCEEDED: "array size exceeds the maximum allowed ({MAX_ELEMENTS})")
}

/// Computes `ARRAY[a, b]` of arrays: adds a dimension.
fn nested(arguments: &[Datum], pace: &mut InterruptPacer<'_>) -> Result<Datum> {
    let arrays = arguments.iter().filter_map(|argument| match argument {
        Datum::Nested(Nested::Array(array)) if !array.dimensions.is_empty() => Some(array),
        _ => None,
    });
    let arrays: Vec<&Arc<Array>> = arrays.collect();
    let Some(first) = arrays.first() else { return Ok(array_datum(Array::default())) };
    let same = arrays.iter().all(|array| array.dimensions == first.dimensions);
    if !same || arrays.len() != arguments.len() {
        let message =
            "multidimensional arrays must have array expressions with matching dimensions";
        return Err(subscript_error(message));
    }
    if first.dimensions.len() == MAX_DIMENSIONS {
        bail!(PROGRAM_LIMIT_EXCEEDED: "number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
            MAX_DIMENSIONS + 1);
    }
    let mut dimensions = vec![Dimension { lower: 1, length: arrays.len() }];
    dimensions.extend_from_slice(&first.dimensions);
    let mut elements = Vec::new();
    for element in arrays.iter().flat_map(|array| &array.elements) {
        pace.push(&mut elements, element.clone())?;
    }
    Ok(array_datum(Array { dimensions, elements }))
}

/// Returns the array of some values, which may be arrays of equal dimensions.
///
/// # Errors
///
/// 22004 and 2202E for arrays that are NULL, empty or of different dimensions.
pub fn gathered(values: Vec<Datum>, of_arrays: bool, interrupt: &Interrupt) -> Result<Datum> {
    if !of_arrays || values.is_empty() {
        return Ok(array_datum(Array::from_elements(values)));
    }
    for value in &values {
        match value {
            Datum::Nested(Nested::Array(array)) if array.dimensions.is_empty() => {
                return Err(subscript_error("cannot accumulate empty arrays"));
            }
            Datum::Null => bail!(NULL_VALUE_NOT_ALLOWED: "cannot accumulate null arrays"),
            _ => {}
        }
    }
    let shape = |value: &Datum| match value {
        Datum::Nested(Nested::Array(array)) => array.dimensions.clone(),
        _ => Vec::new(),
    };
    if values.iter().any(|value| shape(value) != shape(&values[0])) {
        return Err(subscript_error("cannot accumulate arrays of different dimensionality"));
    }
    nested(&values, &mut InterruptPacer::new(interrupt))
}

fn element(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (array, subscripts) = (array(&arguments[0]), &arguments[1..]);
    if subscripts.len() != array.dimensions.len() {
        return Ok(Datum::Null);
    }
    let mut index = 0;
    for (dimension, subscript) in array.dimensions.iter().zip(subscripts) {
        let offset = i64::from(int4(subscript)) - i64::from(dimension.lower);
        match usize::try_from(offset) {
            Ok(offset) if offset < dimension.length => index = index * dimension.length + offset,
            _ => return Ok(Datum::Null),
        }
    }
    Ok(array.elements[index].clone())
}

fn slice(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (array, bounds) = (array(&arguments[0]), &arguments[1..]);
    if bounds.len() / 2 > array.dimensions.len() {
        return Ok(array_datum(Array::default()));
    }
    // The range of each dimension in the slice: offsets from its lower bound.
    let mut kept = Vec::with_capacity(array.dimensions.len());
    for (index, dimension) in array.dimensions.iter().enumerate() {
        let (lower, upper) = match bounds.get(index * 2..index * 2 + 2) {
            Some([lower, upper]) => (int4(lower), int4(upper)),
            _ => (i32::MIN, i32::MAX),
        };
        let (lower, upper) = (lower.max(dimension.lower), upper.min(dimension.upper()));
        if lower > upper {
            return Ok(array_datum(Array::default()));
        }
        let start = (i64::from(lower) - i64::from(dimension.lower)) as usize;
        let end = (i64::from(upper) - i64::from(dimension.lower)) as usize + 1;
        kept.push(start..end);
    }
    let mut elements = Vec::new();
    take_slice(array, &kept, 0, &mut elements, &mut context.pace())?;
    let dimensions = kept.iter().map(|range| Dimension { lower: 1, length: range.len() }).collect();
    Ok(array_datum(Array { dimensions, elements }))
}

/// Appends the slice of the subarray that begins with element `start`.
fn take_slice(
    array: &Array,
    kept: &[std::ops::Range<usize>],
    start: usize,
    elements: &mut Vec<Datum>,
    pace: &mut InterruptPacer<'_>,
) -> Result<()> {
    let level = array.dimensions.len() - kept.len();
    let Some((range, inner)) = kept.split_first() else {
        return match array.elements.get(start) {
            Some(element) => pace.push(elements, element.clone()),
            None => Ok(()),
        };
    };
    range.clone().try_for_each(|offset| {
        let at = start * array.dimensions[level].length + offset;
        take_slice(array, inner, at, elements, pace)
    })
}

/// Returns the array of an argument; an empty one for NULL.
pub(super) fn array_or_empty(datum: &Datum, context: &EvalContext) -> Result<Array> {
    match datum {
        Datum::Nested(Nested::Array(array)) => copy_of(array, array.elements.len(), context),
        _ => Ok(Array::default()),
    }
}

/// Returns a value's array for modification; NULL becomes an empty array. The array is copied if
/// it is shared.
pub(super) fn array_mut<'a>(value: &'a mut Datum, context: &EvalContext) -> Result<&'a mut Array> {
    let is_own = match value {
        Datum::Nested(Nested::Array(array)) => Arc::get_mut(array).is_some(),
        _ => false,
    };
    if !is_own {
        *value = array_datum(array_or_empty(value, context)?);
    }
    match value {
        Datum::Nested(Nested::Array(array)) => Ok(Arc::make_mut(array)),
        _ => bail!(INTERNAL_ERROR: "a value to be changed is not an array"),
    }
}

/// Reserves space for more elements; at least doubles the capacity if a reallocation is needed.
pub(super) fn make_room(
    elements: &mut Vec<Datum>,
    count: usize,
    pace: &mut InterruptPacer<'_>,
) -> Result<()> {
    let needed = elements.len() + count;
    if needed > elements.capacity() {
        let mut larger = pace.list(needed.max(elements.len() * 2))?;
        larger.append(elements);
        *elements = larger;
    }
    Ok(())
}

/// Returns a copy of the first `count` elements of an array, with space for one more.
fn copy_of(array: &Array, count: usize, context: &EvalContext) -> Result<Array> {
    let mut pace = context.pace();
    let mut elements = pace.list(count + 1)?;
    for element in &array.elements[..count] {
        pace.push(&mut elements, element.clone())?;
    }
    Ok(Array { dimensions: array.dimensions.clone(), elements })
}

/// Returns the only dimension of an array, after adding it to an empty array.
fn one_dimension(array: &mut Array) -> Result<&mut Dimension> {
    if array.dimensions.is_empty() {
        array.dimensions.push(Dimension { lower: 1, length: 0 });
    }
    match array.dimensions.as_mut_slice() {
        [only] => Ok(only),
        _ => bail!(DATA_EXCEPTION: "argument must be empty or one-dimensional array"),
    }
}

fn append(value: &mut Datum, others: &[Datum], context: &EvalContext) -> Result<()> {
    let array = array_mut(value, context)?;
    make_room(&mut array.elements, 1, &mut context.pace())?;
    let dimension = one_dimension(array)?;
    if dimension.upper() == i32::MAX {
        bail!(NUMERIC_VALUE_OUT_OF_RANGE: "integer out of range");
    }
    dimension.length += 1;
    array.elements.push(others[0].clone());
    Ok(())
}

fn prepend(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let mut array = array_or_empty(&arguments[1], context)?;
    one_dimension(&mut array)?.length += 1;
    array.elements.insert(0, arguments[0].clone());
    Ok(array_datum(array))
}

fn cat(value: &mut Datum, others: &[Datum], context: &EvalContext) -> Result<()> {
    let is_empty = |value: &Datum| value.is_null() || array(value).dimensions.is_empty();
    let right = match (&*value, &others[0]) {
        (_, Datum::Null) => return Ok(()),
        (Datum::Null, right) => {
            value.clone_from(right);
            return Ok(());
        }
        (_, right) if is_empty(right) => return Ok(()),
        (left, right) if is_empty(left) => {
            value.clone_from(right);
            return Ok(());
        }
        (_, right) => array(right),
    };
    let left = array(value);
    let incompatible = |detail: String| {
        Err(subscript_error("cannot concatenate incompatible arrays").with_detail(detail))
    };
    let (m, n) = (left.dimensions.len(), right.dimensions.len());
    let lengths =
        |dimensions: &[Dimension]| dimensions.iter().map(|d| d.length).collect::<Vec<_>>();
    let (inner_left, inner_right) = match (m, n) {
        _ if m == n => (&left.dimensions[1..], &right.dimensions[1..]),
        _ if m == n + 1 => (&left.dimensions[1..], &right.dimensions[..]),
        _ if m + 1 == n => (&left.dimensions[..], &right.dimensions[1..]),
        _ => {
            return incompatible(format!(
                "Arrays of {m} and {n} dimensions are not compatible for concatenation."
            ));
        }
    };
    if lengths(inner_left) != lengths(inner_right) {
        let what = if m == n { "element " } else { "" };
        return incompatible(format!(
            "Arrays with differing {what}dimensions are not compatible for concatenation."
        ));
    }
    let mut dimensions = if m >= n { left.dimensions.clone() } else { right.dimensions.clone() };
    dimensions[0].length = match (m, n) {
        _ if m == n => left.dimensions[0].length + right.dimensions[0].length,
        _ => dimensions[0].length + 1,
    };
    let count = left.elements.len() + right.elements.len();
    if count > MAX_ELEMENTS {
        return Err(too_large());
    }
    let mut pace = context.pace();
    let array = array_mut(value, context)?;
    make_room(&mut array.elements, right.elements.len(), &mut pace)?;
    let before = array.elements.len();
    for element in &right.elements {
        if let Err(error) = pace.push(&mut array.elements, element.clone()) {
            array.elements.truncate(before);
            return Err(error);
        }
    }
    array.dimensions = dimensions;
    Ok(())
}

fn trim(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let array = array(&arguments[0]);
    let outer = array.dimensions.first().map_or(0, |dimension| dimension.length);
    let Some(kept) = usize::try_from(int4(&arguments[1])).ok().and_then(|n| outer.checked_sub(n))
    else {
        let message = format!("number of elements to trim must be between 0 and {outer}");
        return Err(subscript_error(&message));
    };
    if kept == 0 {
        return Ok(array_datum(Array::default()));
    }
    let mut array = copy_of(array, array.elements.len() / outer * kept, context)?;
    array.dimensions.iter_mut().for_each(|dimension| dimension.lower = 1);
    array.dimensions[0].length = kept;
    Ok(array_datum(array))
}

fn fill(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let null = || Err(Error::new("22004", "dimension array or low bound array cannot be null"));
    if arguments[1..].iter().any(Datum::is_null) {
        return null();
    }
    let mut numbers = Vec::with_capacity(2);
    for argument in &arguments[1..] {
        let argument = array(argument);
        if argument.dimensions.len() > 1 || argument.dimensions.iter().any(|d| d.lower != 1) {
            return Err(subscript_error("wrong number of array subscripts")
                .with_detail("Dimension array must be one dimensional."));
        }
        if argument.elements.iter().any(Datum::is_null) {
            bail!(NULL_VALUE_NOT_ALLOWED: "dimension values cannot be null");
        }
        numbers.push(argument.elements.iter().map(int4).collect::<Vec<i32>>());
    }
    let lengths = &numbers[0];
    let lowers = numbers.get(1).cloned().unwrap_or_else(|| vec![1; lengths.len()]);
    if lowers.len() != lengths.len() {
        return Err(subscript_error("wrong number of array subscripts")
            .with_detail("Low bound array has different size than dimensions array."));
    }
    if lengths.len() > MAX_DIMENSIONS {
        bail!(PROGRAM_LIMIT_EXCEEDED: "number of array dimensions ({}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
            lengths.len());
    }
    let mut count = usize::from(!lengths.is_empty());
    let mut dimensions = Vec::with_capacity(lengths.len());
    for (&length, &lower) in lengths.iter().zip(&lowers) {
        let length = usize::try_from(length).map_err(|_| too_large())?;
        count = count.saturating_mul(length);
        dimensions.push(Dimension { lower, length });
    }
    if count > MAX_ELEMENTS {
        return Err(too_large());
    }
    if count == 0 {
        return Ok(array_datum(Array::default()));
    }
    let mut pace = context.pace();
    let mut elements = pace.list(count)?;
    for _ in 0..count {
        pace.push(&mut elements, arguments[0].clone())?;
    }
    Ok(array_datum(Array { dimensions, elements }))
}
