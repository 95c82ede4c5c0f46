//! Casts: the table of casts with their contexts, and their evaluation.
//!
//! [`cast_context`] is PostgreSQL's `pg_cast` for the types that bennu has, plus the automatic
//! I/O conversions: any type *to* a string type in assignments, any type *from* a string type in
//! explicit casts.

mod geometry;
mod word;

use std::sync::Arc;

use crate::context::EvalContext;
use crate::datatype::{DataType, FixedWidthKind, GeometryKind, RegKind, SqlType};
use crate::datetime::{self, Interval};
use crate::datum::{Array, Bits, Datum, Json, Nested, Record, Text};
use crate::error::{Error, Result};
use crate::modifier;
use crate::numeric::Numeric;
use crate::text::{self, TextStyle};
use crate::vector::{BytesVector, Vector, VectorData};

/// The context of a cast, as in `pg_cast.castcontext`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Implicit, in any expression.
    Implicit,
    /// In assignments to a column.
    Assignment,
    /// Only in explicit casts.
    Explicit,
}

/// Returns the least demanding context in which values of `from` are cast to `to`, or `None` if
/// there is no cast. PostgreSQL's automatic I/O conversions are included.
///
/// A literal of type `unknown` is implicitly cast to any type; no type is cast to `unknown`.
pub fn cast_context(from: &DataType, to: &DataType) -> Option<CastContext> {
    use CastContext::{Assignment, Explicit, Implicit};
    use DataType::{
        Bit, Bool, Char, Date, Float4, Float8, Int2, Int4, Int8, InternalChar, Interval, Name,
        Numeric, Oid, Reg, Text, Time, Timestamp, Timestamptz, Timetz, Unknown, Varbit, Varchar,
    };
    if from == to || *from == Unknown {
        return Some(Implicit);
    }
    if *to == Unknown {
        return None;
    }
    let context = match (from, to) {
        (Bool, Int4) | (Int4, Bool) => Explicit,
        (InternalChar, Int4) | (Int4, InternalChar) | (Int4 | Int8, Bit) | (Bit, Int4 | Int8) => {
            Explicit
        }
        (InternalChar, Text) | (Bit, Varbit) | (Varbit, Bit) | (Time, Timetz) => Implicit,
        (InternalChar, Varchar | Char)
        | (Text | Varchar | Char, InternalChar)
        | (Timestamptz, Timetz)
        | (Timetz, Time) => Assignment,
        (Int2, Int4 | Int8 | Float4 | Float8 | Numeric | Oid | Reg(_))
        | (Int4, Int8 | Float4 | Float8 | Numeric | Oid | Reg(_))
        | (Int8, Float4 | Float8 | Numeric | Oid | Reg(_))
        | (Oid, Reg(_))
        | (Reg(_), Oid)
        | (Reg(RegKind::Proc), Reg(RegKind::Procedure))
        | (Reg(RegKind::Procedure), Reg(RegKind::Proc))
        | (Reg(RegKind::Oper), Reg(RegKind::Operator))
        | (Reg(RegKind::Operator), Reg(RegKind::Oper))
        | (Text | Varchar, Reg(RegKind::Class))
        | (Float4, Float8)
        | (Numeric, Float4 | Float8) => Implicit,
        (Int4, Int2)
        | (Int8, Int2 | Int4)
        | (Oid | Reg(_), Int4 | Int8)
        | (Float4, Int2 | Int4 | Int8 | Numeric)
        | (Float8, Int2 | Int4 | Int8 | Float4 | Numeric)
        | (Numeric, Int2 | Int4 | Int8) => Assignment,
        (Text, Varchar | Char | Name)
        | (Varchar, Text | Char | Name)
        | (Char, Text | Varchar | Name)
        | (Name, Text) => Implicit,
        (Name, Varchar | Char) => Assignment,
        (Date, Timestamp | Timestamptz) | (Timestamp, Timestamptz) | (Time, Interval) => Implicit,
        (Timestamp, Date | Time) | (Timestamptz, Date | Time | Timestamp) | (Interval, Time) => {
            Assignment
        }
        (DataType::Array(from), DataType::Array(to)) => return of_elements(from, to),
        (DataType::Int2Vector, DataType::Array(to)) => return cast_context(&Int2, to),
        (DataType::OidVector, DataType::Array(to)) => return cast_context(&Oid, to),
        (DataType::Json, DataType::Jsonb) | (DataType::Jsonb, DataType::Json) => Assignment,
        (DataType::Jsonb, Bool | Int2 | Int4 | Int8 | Float4 | Float8 | Numeric) => Explicit,
        (DataType::Enum(_), DataType::Enum(_)) => return None,
        // The binder converts the fields of a row one by one.
        (DataType::Composite(_), DataType::Record) | (DataType::Record, DataType::Composite(_)) => {
            Implicit
        }
        (DataType::Geometry(from), DataType::Geometry(to)) => {
            return between_geometries(*from, *to);
        }
        (from, to) if of_word(from, to).is_some() => return of_word(from, to),
        (DataType::NodeTree, Text) => Implicit,
        (DataType::Void, string) if string.is_text() => Assignment,
        (DataType::Void, _) | (_, DataType::Void) => return None,
        (DataType::Trigger, _) | (_, DataType::Trigger) => return None,
        (_, string) if string.is_text() => Assignment,
        (string, _) if string.is_text() => Explicit,
        _ => return None,
    };
    Some(context)
}

/// Returns the context of casts of arrays with these types of elements.
fn of_elements(from: &DataType, to: &DataType) -> Option<CastContext> {
    match (from, to) {
        (DataType::Record, DataType::Composite(_)) => None,
        (from, to) => cast_context(from, to),
    }
}

/// Returns the context of casts from or to word types, without I/O conversions.
fn of_word(from: &DataType, to: &DataType) -> Option<CastContext> {
    match (from, to) {
        (DataType::Word(FixedWidthKind::MacAddr), DataType::Word(FixedWidthKind::MacAddr8))
        | (DataType::Word(FixedWidthKind::MacAddr8), DataType::Word(FixedWidthKind::MacAddr)) => {
            Some(CastContext::Implicit)
        }
        (DataType::Word(FixedWidthKind::Xid8), DataType::Word(FixedWidthKind::Xid)) => {
            Some(CastContext::Explicit)
        }
        (DataType::Word(FixedWidthKind::Money), DataType::Numeric)
        | (
            DataType::Numeric | DataType::Int4 | DataType::Int8,
            DataType::Word(FixedWidthKind::Money),
        ) => Some(CastContext::Assignment),
        _ => None,
    }
}

/// Returns the context of casts between geometric types.
fn between_geometries(from: GeometryKind, to: GeometryKind) -> Option<CastContext> {
    use GeometryKind::{Box, Circle, Lseg, Path, Point, Polygon};
    match (from, to) {
        (Point, Box) | (Path, Polygon) | (Box, Polygon) | (Polygon, Path) => {
            Some(CastContext::Assignment)
        }
        (Lseg | Box | Polygon | Circle, Point)
        | (Box, Lseg | Circle)
        | (Polygon, Box | Circle)
        | (Circle, Box | Polygon) => Some(CastContext::Explicit),
        _ => None,
    }
}

/// Returns whether a cast is immutable: it depends neither on settings (`TimeZone`, `DateStyle`,
/// `IntervalStyle`) nor on names in the catalog nor on the clock, which text such as `today`
/// refers to. Arrays and rows depend on their elements and fields. A literal is converted once
/// and is therefore immutable.
pub fn is_immutable(from: &DataType, to: &DataType) -> bool {
    if from == to || from.is_row() && to.is_row() {
        return true;
    }
    if let (Some(from), Some(to)) = (from.element(), to.element()) {
        return is_immutable(from, to);
    }
    match (from, to) {
        (from, to) if from.is_text() && to.is_text() => true,
        (DataType::Unknown, to) if !has_leaf(to, &is_named) => {
            !has_leaf(to, &|leaf| matches!(leaf, DataType::Timestamptz | DataType::Timetz))
        }
        (from, to) if from.is_text() => !has_leaf(to, &|leaf| is_named(leaf) || is_timed(leaf)),
        (from, to) if to.is_text() => !has_leaf(from, &|leaf| {
            // Times of day have the same text in all styles.
            let styled = is_timed(leaf) && !matches!(leaf, DataType::Time | DataType::Timetz);
            is_named(leaf) || styled || *leaf == DataType::Record
        }),
        // Labels can be renamed, too; in a key expression those of the present definition are
        // used.
        (from, to) if is_named(from) && !to.is_oid() || is_named(to) && !from.is_number() => false,
        (DataType::Time, DataType::Timetz) | (DataType::Timestamptz, _) => false,
        (DataType::Date | DataType::Timestamp, to) => *to != DataType::Timestamptz,
        _ => true,
    }
}

/// Returns whether the text of values contains names, which can be reassigned.
fn is_named(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Reg(_) | DataType::Enum(_) | DataType::AclItem)
}

fn is_timed(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Date
            | DataType::Time
            | DataType::Timetz
            | DataType::Timestamp
            | DataType::Timestamptz
            | DataType::Interval
    )
}

/// Returns whether `test` is true for a type, or for one of its elements or fields at any depth.
pub fn has_leaf(data_type: &DataType, test: &dyn Fn(&DataType) -> bool) -> bool {
    match (data_type, data_type.element()) {
        (_, Some(element)) => has_leaf(element, test),
        (DataType::Composite(of), _) => of.fields().iter().any(|(_, field)| has_leaf(field, test)),
        (leaf, _) => test(leaf),
    }
}

/// Returns whether a cast may be evaluated once for all executions of a statement. In addition to
/// casts that are not immutable, this excludes the text of floats and bytea: PostgreSQL treats it
/// as immutable, even in indexes, although it depends on settings.
pub fn is_foldable(from: &DataType, to: &DataType) -> bool {
    if let (Some(from), Some(to)) = (from.element(), to.element()) {
        return is_foldable(from, to);
    }
    let styled =
        |leaf: &DataType| matches!(leaf, DataType::Float4 | DataType::Float8 | DataType::Bytea);
    is_immutable(from, to) && !(to.is_text() && has_leaf(from, &styled))
}

/// Casts a value and applies the modifier of `to`.
///
/// # Errors
///
/// Bad text, overflow; a value too long for `varchar(n)` unless `explicit`.
pub fn cast(
    value: &Datum,
    from: &DataType,
    to: &SqlType,
    explicit: bool,
    context: &EvalContext,
) -> Result<Datum> {
    if matches!(value, Datum::Null) {
        return Ok(Datum::Null);
    }
    if let (DataType::Bit, Some(number)) = (&to.base, value.as_i64()) {
        let width = if *from == DataType::Int4 { 32 } else { 64 };
        return Ok(bits_of(number, width, usize::try_from(to.modifier).unwrap_or(1)));
    }
    let converted = convert(value, from, &to.base, context)?;
    if to.modifier < 0 {
        return Ok(converted);
    }
    modifier::apply(converted, to, explicit)
}

/// Casts all values of a vector.
///
/// # Errors
///
/// Those of [`cast`], for the first value that raises one.
pub fn cast_vector(
    vector: &Vector,
    from: &DataType,
    to: &SqlType,
    explicit: bool,
    context: &EvalContext,
) -> Result<Vector> {
    if to.modifier < 0
        && let Some(data) = widen(&vector.data, from, &to.base)
    {
        return Ok(Vector { data, validity: vector.validity.clone() });
    }
    if to.modifier < 0
        && let Some(texts) = write_texts(vector, from, &to.base, context)?
    {
        let data = VectorData::Text(texts);
        return Ok(Vector { data, validity: vector.validity.clone() });
    }
    let mut results = Vector::new(&to.base, vector.len());
    for index in 0..vector.len() {
        if vector.is_null(index) {
            results.push_null();
        } else {
            let value = vector.datum_at(index, &mut context.pace())?;
            results.push_at(&cast(&value, from, to, explicit, context)?, &mut context.pace())?;
        }
    }
    Ok(results)
}

/// Writes the texts of all values into one vector, for casts that are plain output conversions.
fn write_texts(
    vector: &Vector,
    from: &DataType,
    to: &DataType,
    context: &EvalContext,
) -> Result<Option<BytesVector>> {
    let written = match &vector.data {
        VectorData::Text(_) => *from == DataType::Char,
        VectorData::Bool(_) => false,
        _ => true,
    };
    if !written || !matches!(to, DataType::Text | DataType::Varchar) {
        return Ok(None);
    }
    let mut texts = BytesVector::with_capacity(vector.len());
    for index in 0..vector.len() {
        context.style.interrupt.check()?;
        text::write_row(vector, index, from, &context.style, &mut texts.bytes)?;
        if *from == DataType::Char {
            let start = texts.ends.last().map_or(0, |end| *end as usize);
            let blanks = texts.bytes[start..].iter().rev().take_while(|byte| **byte == b' ');
            let end = texts.bytes.len() - blanks.count();
            texts.bytes.truncate(end);
        }
        texts.try_end_value()?;
    }
    Ok(Some(texts))
}

/// Converts values in a simple loop, for casts that cannot fail.
fn widen(data: &VectorData, from: &DataType, to: &DataType) -> Option<VectorData> {
    if from == to {
        return Some(data.clone());
    }
    Some(match (data, to) {
        (VectorData::Int2(values), DataType::Int4) => VectorData::Int4(each(values, i32::from)),
        (VectorData::Int2(values), DataType::Int8) => VectorData::Int8(each(values, i64::from)),
        (VectorData::Int4(values), DataType::Int8) => VectorData::Int8(each(values, i64::from)),
        (VectorData::Int2(values), DataType::Float4) => VectorData::Float4(each(values, f32::from)),
        (VectorData::Int4(values), DataType::Float4) => {
            VectorData::Float4(each(values, |value| value as f32))
        }
        (VectorData::Int8(values), DataType::Float4) => {
            VectorData::Float4(each(values, |value| value as f32))
        }
        (VectorData::Int2(values), DataType::Float8) => VectorData::Float8(each(values, f64::from)),
        (VectorData::Int4(values), DataType::Float8) => VectorData::Float8(each(values, f64::from)),
        (VectorData::Int8(values), DataType::Float8) => {
            VectorData::Float8(each(values, |value| value as f64))
        }
        (VectorData::Float4(values), DataType::Float8) => {
            VectorData::Float8(each(values, f64::from))
        }
        (VectorData::Int2(values), DataType::Numeric) => {
            VectorData::Numeric(each(values, |value| Numeric::from(i64::from(value))))
        }
        (VectorData::Int4(values), DataType::Numeric) => {
            VectorData::Numeric(each(values, |value| Numeric::from(i64::from(value))))
        }
        (VectorData::Int8(values), DataType::Numeric) => {
            VectorData::Numeric(each(values, Numeric::from))
        }
        (VectorData::Text(_), DataType::Text | DataType::Varchar | DataType::Char)
            if *from != DataType::Char && *from != DataType::Unknown =>
        {
            data.clone()
        }
        _ => return None,
    })
}

fn each<T: Copy, U>(values: &[T], change: impl Fn(T) -> U) -> Vec<U> {
    values.iter().map(|value| change(*value)).collect()
}

/// Converts a value to another type without modifier.
fn convert(value: &Datum, from: &DataType, to: &DataType, context: &EvalContext) -> Result<Datum> {
    if from == to {
        return Ok(value.clone());
    }
    if *from == DataType::CString || *to == DataType::CString {
        return through_text(value, from, to, context);
    }
    if let (Datum::Nested(nested), false) = (value, to.is_text()) {
        return from_nested(nested, from, to, context);
    }
    match (value, to) {
        (Datum::Text(string), _) if *from == DataType::InternalChar => from_char(string, to),
        // An OID in digits is accepted as a name, too.
        (Datum::Text(string), DataType::Reg(RegKind::Class)) => context
            .style
            .system
            .source()?
            .reg_oid(RegKind::Class, string)
            .map(|oid| Datum::Int8(oid.into())),
        (Datum::Text(string), _) => from_text(string, from, to, context),
        (Datum::Int4(value), DataType::InternalChar) => match i8::try_from(*value) {
            Ok(byte) => Ok(text::char_of(byte.cast_unsigned())),
            Err(_) => Err(out_of_range(to)),
        },
        (Datum::Int4(value), DataType::Bit) => Ok(bits_of(i64::from(*value), 32, 1)),
        (Datum::Int8(value), DataType::Bit) => Ok(bits_of(*value, 64, 1)),
        (Datum::Bool(value), DataType::Name) => {
            Ok(Datum::Text(if *value { "t" } else { "f" }.into()))
        }
        (Datum::Bool(value), _) if to.is_text() => {
            Ok(Datum::Text(if *value { "true" } else { "false" }.into()))
        }
        (_, to) if to.is_text() => {
            let mut bytes = Vec::new();
            text::write(value, from, &context.style, &mut bytes)?;
            let string = context.pace().text(bytes)?;
            Ok(Datum::Text(if *to == DataType::Name {
                name(&string).into()
            } else {
                string.into()
            }))
        }
        (Datum::Int8(value), _) if let DataType::Word(kind) = from => {
            word::from_word(*value, *kind, to)
        }
        (_, DataType::Word(kind)) => word::to_word(value, from, *kind),
        (Datum::Bool(value), DataType::Int4) => Ok(Datum::Int4(i32::from(*value))),
        (Datum::Int4(value), DataType::Bool) => Ok(Datum::Bool(*value != 0)),
        (Datum::Int4(value), DataType::Oid | DataType::Reg(_)) => {
            Ok(Datum::Int8(i64::from(value.cast_unsigned())))
        }
        (Datum::Int8(value), DataType::Int4) if from.is_oid() => {
            Ok(Datum::Int4(u32::try_from(*value).unwrap_or(0).cast_signed()))
        }
        (Datum::Int2(value), DataType::Oid | DataType::Reg(_)) => {
            Ok(Datum::Int8(i64::from(i32::from(*value).cast_unsigned())))
        }
        (Datum::Int2(value), _) => from_integer(i64::from(*value), from, to),
        (Datum::Int4(value), _) => from_integer(i64::from(*value), from, to),
        (Datum::Int8(value), _) => from_integer(*value, from, to),
        (Datum::Float4(value), DataType::Numeric) => {
            Numeric::try_from_f32(*value).map(Datum::Numeric)
        }
        (Datum::Float4(value), _) => from_float(f64::from(*value), from, to),
        (Datum::Float8(value), _) => from_float(*value, from, to),
        (Datum::Numeric(value), _) => from_numeric(value, from, to),
        _ => from_datetime(value, from, to, context),
    }
}

/// Casts from or to `cstring`, through text.
fn through_text(
    value: &Datum,
    from: &DataType,
    to: &DataType,
    context: &EvalContext,
) -> Result<Datum> {
    let mut bytes = Vec::new();
    text::write(value, from, &context.style, &mut bytes)?;
    let string = context.pace().text(bytes)?;
    text::parse(&string, to, &context.style)
}

fn from_nested(
    nested: &Nested,
    from: &DataType,
    to: &DataType,
    context: &EvalContext,
) -> Result<Datum> {
    match (nested, from.element(), to.element()) {
        (Nested::Array(array), Some(from), Some(to)) => {
            let change = |value: &Datum| match value {
                Datum::Null => Ok(Datum::Null),
                value => convert(value, from, to, context),
            };
            let mut pace = context.pace();
            let mut elements = pace.list(array.elements.len())?;
            for element in &array.elements {
                pace.push(&mut elements, change(element)?)?;
            }
            let array = Array { dimensions: array.dimensions.clone(), elements };
            Ok(Datum::Nested(Nested::Array(Arc::new(array))))
        }
        (Nested::Json(text), ..) => text::parse(text, to, &context.style),
        (Nested::Jsonb(json), ..) => match to {
            DataType::Json => {
                let (mut bytes, mut pace) = (Vec::new(), context.pace());
                text::write_jsonb(json, &mut pace, &mut bytes)?;
                Ok(Datum::Nested(Nested::Json(Arc::new(pace.text(bytes)?))))
            }
            _ => from_json(json, to, context),
        },
        (Nested::Record(record), ..) if *to == DataType::Record => {
            let record = Record { of: None, ..record.as_ref().clone() };
            Ok(Datum::Nested(Nested::Record(Arc::new(record))))
        }
        (Nested::Bits(_), ..) if matches!(to, DataType::Bit | DataType::Varbit) => {
            Ok(Datum::Nested(nested.clone()))
        }
        (Nested::Bits(bits), ..) => integer_of(bits, from, to),
        (Nested::Geometry(value), ..) => geometry::convert(value, to, &mut context.pace()),
        (Nested::Timetz { time, .. }, ..) if *to == DataType::Time => Ok(Datum::Time(*time)),
        _ => Err(cannot_cast(from, to)),
    }
}

/// Returns the lowest bits of a number, sign-extended.
fn bits_of(number: i64, width: usize, length: usize) -> Datum {
    let bit = |place: usize| number >> place.min(width - 1) & 1 == 1;
    let bits = Bits::from_bits((0..length).rev().map(bit));
    Datum::Nested(Nested::Bits(Arc::new(bits)))
}

fn integer_of(bits: &Bits, from: &DataType, to: &DataType) -> Result<Datum> {
    let width = match to {
        DataType::Int4 => 32,
        DataType::Int8 => 64,
        _ => return Err(cannot_cast(from, to)),
    };
    if bits.len() > width {
        return Err(out_of_range(to));
    }
    let number = bits.iter().fold(0_u64, |number, bit| number << 1 | u64::from(bit));
    Ok(match to {
        DataType::Int4 => Datum::Int4((number as u32).cast_signed()),
        _ => Datum::Int8(number.cast_signed()),
    })
}

/// Casts a `"char"`.
fn from_char(string: &Text, to: &DataType) -> Result<Datum> {
    match to {
        DataType::Int4 => Ok(Datum::Int4(i32::from(text::char_byte(string).cast_signed()))),
        to if to.is_text() => {
            let mut bytes = Vec::new();
            let value = Datum::Text(string.clone());
            text::write_short(&value, &DataType::InternalChar, &TextStyle::default(), &mut bytes);
            Ok(Datum::text(String::from_utf8_lossy(&bytes)))
        }
        to => Err(cannot_cast(&DataType::InternalChar, to)),
    }
}

/// Casts a `jsonb` boolean or number.
fn from_json(json: &Json, to: &DataType, context: &EvalContext) -> Result<Datum> {
    let kind = match json {
        Json::Bool(value) if *to == DataType::Bool => return Ok(Datum::Bool(*value)),
        Json::Number(number) if *to != DataType::Bool => {
            return convert(&Datum::Numeric(number.clone()), &DataType::Numeric, to, context);
        }
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "numeric",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    bail!(INVALID_PARAMETER_VALUE: "cannot cast jsonb {kind} to type {}", to.sql_name())
}

fn cannot_cast(from: &DataType, to: &DataType) -> Error {
    let (from, to) = (from.sql_name(), to.sql_name());
    err!(CANNOT_COERCE: "cannot cast type {from} to {to}")
}

fn from_text(
    string: &Text,
    from: &DataType,
    to: &DataType,
    context: &EvalContext,
) -> Result<Datum> {
    let unpadded = if *from == DataType::Char { string.trim_end_matches(' ') } else { string };
    match to {
        DataType::Text | DataType::Varchar | DataType::Char | DataType::Unknown => {
            Ok(Datum::Text(match unpadded.len() == string.len() {
                true => string.clone(),
                false => context.pace().copy::<String>(unpadded)?.into(),
            }))
        }
        DataType::Name => Ok(Datum::Text(name(unpadded).into())),
        _ => text::parse(string, to, &context.style),
    }
}

/// Truncates a string to a `name`: 63 bytes, at a character boundary.
fn name(string: &str) -> &str {
    const NAME_BYTES: usize = 63;
    &string[..string.floor_char_boundary(NAME_BYTES)]
}

fn from_integer(value: i64, from: &DataType, to: &DataType) -> Result<Datum> {
    match to {
        DataType::Int2 => i16::try_from(value).map(Datum::Int2).map_err(|_| out_of_range(to)),
        DataType::Int4 => i32::try_from(value).map(Datum::Int4).map_err(|_| out_of_range(to)),
        DataType::Int8 => Ok(Datum::Int8(value)),
        DataType::Oid | DataType::Reg(_) => {
            u32::try_from(value).map(|_| Datum::Int8(value)).map_err(|_| out_of_range(to))
        }
        DataType::Float4 => Ok(Datum::Float4(value as f32)),
        DataType::Float8 => Ok(Datum::Float8(value as f64)),
        DataType::Numeric => Ok(Datum::Numeric(Numeric::from(value))),
        _ => Err(cannot_cast(from, to)),
    }
}

fn from_float(value: f64, from: &DataType, to: &DataType) -> Result<Datum> {
    let rounded = value.round_ties_even();
    let within = |low: f64, end: f64| rounded >= low && rounded < end;
    match to {
        DataType::Int2 if within(-32_768.0, 32_768.0) => Ok(Datum::Int2(rounded as i16)),
        DataType::Int4 if within(-2_147_483_648.0, 2_147_483_648.0) => {
            Ok(Datum::Int4(rounded as i32))
        }
        DataType::Int8 if within(-9_223_372_036_854_775_808.0, 9_223_372_036_854_775_808.0) => {
            Ok(Datum::Int8(rounded as i64))
        }
        DataType::Int2 | DataType::Int4 | DataType::Int8 => Err(out_of_range(to)),
        DataType::Float8 => Ok(Datum::Float8(value)),
        DataType::Float4 => single(value).map(Datum::Float4),
        DataType::Numeric => Numeric::try_from_f64(value).map(Datum::Numeric),
        _ => Err(cannot_cast(from, to)),
    }
}

/// Narrows a double; overflow and underflow to zero are errors.
fn single(value: f64) -> Result<f32> {
    let narrow = value as f32;
    let wrong = |what| Err(err!(NUMERIC_VALUE_OUT_OF_RANGE: "value out of range: {what}"));
    if narrow.is_infinite() && value.is_finite() {
        return wrong("overflow");
    }
    if narrow == 0.0 && value != 0.0 {
        return wrong("underflow");
    }
    Ok(narrow)
}

fn from_numeric(value: &Numeric, from: &DataType, to: &DataType) -> Result<Datum> {
    if matches!(to, DataType::Int2 | DataType::Int4 | DataType::Int8) {
        if !value.is_finite() {
            let what = if value.is_nan() { "NaN" } else { "infinity" };
            bail!(FEATURE_NOT_SUPPORTED: "cannot convert {what} to {}", to.sql_name());
        }
        let whole = value.round(0).to_i64().ok_or_else(|| out_of_range(to))?;
        return from_integer(whole, from, to);
    }
    let double = value.to_f64();
    if double.is_infinite() && value.is_finite() {
        bail!(NUMERIC_VALUE_OUT_OF_RANGE: "\"{value}\" is out of range for type {}", to.sql_name());
    }
    match to {
        DataType::Float8 => Ok(Datum::Float8(double)),
        DataType::Float4 => match single(double) {
            Ok(narrow) => Ok(Datum::Float4(narrow)),
            Err(_) => {
                bail!(NUMERIC_VALUE_OUT_OF_RANGE: "\"{value}\" is out of range for type real")
            }
        },
        _ => Err(cannot_cast(from, to)),
    }
}

fn from_datetime(
    value: &Datum,
    from: &DataType,
    to: &DataType,
    context: &EvalContext,
) -> Result<Datum> {
    let zone = &context.style.time_zone;
    let time = |timestamp| datetime::timestamp_to_time(timestamp).map_or(Datum::Null, Datum::Time);
    match (value, to) {
        (Datum::Date(date), DataType::Timestamp) => {
            datetime::date_to_timestamp(*date).map(Datum::Timestamp)
        }
        (Datum::Date(date), DataType::Timestamptz) => {
            datetime::date_to_timestamptz(*date, zone).map(Datum::Timestamptz)
        }
        (Datum::Timestamp(at), DataType::Date) => Ok(Datum::Date(datetime::timestamp_to_date(*at))),
        (Datum::Timestamp(at), DataType::Time) => Ok(time(*at)),
        (Datum::Timestamp(at), DataType::Timestamptz) => {
            datetime::local_to_timestamptz(*at, zone).map(Datum::Timestamptz)
        }
        (Datum::Timestamptz(at), DataType::Timestamp) => {
            datetime::timestamptz_to_local(*at, zone).map(Datum::Timestamp)
        }
        (Datum::Timestamptz(at), DataType::Date) => {
            let local = datetime::timestamptz_to_local(*at, zone)?;
            Ok(Datum::Date(datetime::timestamp_to_date(local)))
        }
        (Datum::Timestamptz(at), DataType::Time) => {
            Ok(time(datetime::timestamptz_to_local(*at, zone)?))
        }
        (Datum::Time(time), DataType::Timetz) => {
            let now = context.transaction_timestamp();
            let (time, west) = datetime::time_to_timetz(*time, zone, now)?;
            Ok(Datum::Nested(Nested::Timetz { time, west }))
        }
        (Datum::Timestamptz(at), DataType::Timetz) => {
            let time = datetime::timestamptz_to_timetz(*at, zone)?;
            let datum = |(time, west)| Datum::Nested(Nested::Timetz { time, west });
            Ok(time.map_or(Datum::Null, datum))
        }
        (Datum::Time(time), DataType::Interval) => Ok(Datum::Interval(Interval::new(0, 0, *time))),
        (Datum::Interval(interval), DataType::Time) => {
            Ok(Datum::Time(interval.microseconds.rem_euclid(datetime::MICROS_PER_DAY)))
        }
        _ => Err(cannot_cast(from, to)),
    }
}

/// Returns PostgreSQL's `integer out of range`, with the name of the type.
fn out_of_range(to: &DataType) -> Error {
    let name = if to.is_oid() { "OID" } else { to.sql_name() };
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "{name} out of range")
}
