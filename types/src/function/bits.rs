//! Bit operators on integers: `& | # ~ << >>`.
//!
//! Shift distances are taken modulo the width of the type, as by the processor and PostgreSQL;
//! `smallint` is shifted as an `integer` and truncated.

use super::argument::{int2, int4, int8};
use super::{FunctionRow, row};
use crate::datatype::DataType::{Int2, Int4, Int8};
use crate::datum::Datum;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("&", &[Int2, Int2], Int2, |a, _| Ok(Datum::Int2(int2(&a[0]) & int2(&a[1])))),
    row("&", &[Int4, Int4], Int4, |a, _| Ok(Datum::Int4(int4(&a[0]) & int4(&a[1])))),
    row("&", &[Int8, Int8], Int8, |a, _| Ok(Datum::Int8(int8(&a[0]) & int8(&a[1])))),
    row("|", &[Int2, Int2], Int2, |a, _| Ok(Datum::Int2(int2(&a[0]) | int2(&a[1])))),
    row("|", &[Int4, Int4], Int4, |a, _| Ok(Datum::Int4(int4(&a[0]) | int4(&a[1])))),
    row("|", &[Int8, Int8], Int8, |a, _| Ok(Datum::Int8(int8(&a[0]) | int8(&a[1])))),
    row("#", &[Int2, Int2], Int2, |a, _| Ok(Datum::Int2(int2(&a[0]) ^ int2(&a[1])))),
    row("#", &[Int4, Int4], Int4, |a, _| Ok(Datum::Int4(int4(&a[0]) ^ int4(&a[1])))),
    row("#", &[Int8, Int8], Int8, |a, _| Ok(Datum::Int8(int8(&a[0]) ^ int8(&a[1])))),
    row("~", &[Int2], Int2, |a, _| Ok(Datum::Int2(!int2(&a[0])))),
    row("~", &[Int4], Int4, |a, _| Ok(Datum::Int4(!int4(&a[0])))),
    row("~", &[Int8], Int8, |a, _| Ok(Datum::Int8(!int8(&a[0])))),
    row("<<", &[Int2, Int4], Int2, |a, _| {
        Ok(Datum::Int2(i32::from(int2(&a[0])).wrapping_shl(int4(&a[1]).cast_unsigned()) as i16))
    }),
    row("<<", &[Int4, Int4], Int4, |a, _| {
        Ok(Datum::Int4(int4(&a[0]).wrapping_shl(int4(&a[1]).cast_unsigned())))
    }),
    row("<<", &[Int8, Int4], Int8, |a, _| {
        Ok(Datum::Int8(int8(&a[0]).wrapping_shl(int4(&a[1]).cast_unsigned())))
    }),
    row(">>", &[Int2, Int4], Int2, |a, _| {
        Ok(Datum::Int2(i32::from(int2(&a[0])).wrapping_shr(int4(&a[1]).cast_unsigned()) as i16))
    }),
    row(">>", &[Int4, Int4], Int4, |a, _| {
        Ok(Datum::Int4(int4(&a[0]).wrapping_shr(int4(&a[1]).cast_unsigned())))
    }),
    row(">>", &[Int8, Int4], Int8, |a, _| {
        Ok(Datum::Int8(int8(&a[0]).wrapping_shr(int4(&a[1]).cast_unsigned())))
    }),
];
