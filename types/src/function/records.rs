//! Records: construction, comparison, and conversion to JSON.
//!
//! The binder calls ` row` for row constructors, with a record that describes the fields as the
//! first argument, ` field` and ` with field` for access to a field, and ` path` and related
//! functions for the columns of SEARCH and CYCLE.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::json_build::{json_of_record, jsonb_of};
use super::{CompareOp, FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, AnyElement, Bool, Int4, Int8, Json, Record as RecordType};
use crate::datatype::ElementType;
use crate::datum::{Array, Datum, Nested, Record};
use crate::error::{Error, Result};
use crate::function::argument::{array, array_datum, bool_of, json_datum};
use crate::text;

/// `record[]`
const RECORDS: DataType = DataType::Array(ElementType::BuiltIn(&RecordType));

/// The function table of this family.
pub(super) fn functions() -> Vec<FunctionRow> {
    let comparison = |symbol, op: CompareOp| {
        let implementation: super::Implementation = match op {
            CompareOp::Eq => |a, _| compared(CompareOp::Eq, a),
            CompareOp::Ne => |a, _| compared(CompareOp::Ne, a),
            CompareOp::Lt => |a, _| compared(CompareOp::Lt, a),
            CompareOp::Le => |a, _| compared(CompareOp::Le, a),
            CompareOp::Gt => |a, _| compared(CompareOp::Gt, a),
            CompareOp::Ge => |a, _| compared(CompareOp::Ge, a),
        };
        row(symbol, &[RecordType, RecordType], Bool, implementation)
    };
    let mut rows: Vec<FunctionRow> =
        CompareOp::ALL.into_iter().map(|op| comparison(op.symbol(), op)).collect();
    rows.push(comparison("!=", CompareOp::Ne));
    rows.push(row(" row", &[RecordType, AnyElement], RecordType, make).variadic().takes_null());
    rows.push(row(" field", &[RecordType, Int4], AnyElement, |a, _| {
        Ok(record(&a[0])?.values.get(field_index(&a[1])).cloned().unwrap_or(Datum::Null))
    }));
    rows.push(
        row(" with field", &[RecordType, RecordType, Int4, AnyElement], RecordType, with_field)
            .takes_null(),
    );
    rows.push(row(" is null row", &[RecordType], Bool, |a, _| all_null(&a[0])).takes_null());
    rows.push(row(" is full row", &[RecordType], Bool, |a, _| none_null(&a[0])).takes_null());
    rows.push(row(" path", &[RecordType], RECORDS, |a, _| {
        Ok(array_datum(Array::from_elements(vec![a[0].clone()])))
    }));
    rows.push(row(" longer path", &[RECORDS, RecordType], RECORDS, |a, _| {
        let mut elements = array(&a[0]).elements.clone();
        elements.push(a[1].clone());
        Ok(array_datum(Array::from_elements(elements)))
    }));
    rows.push(row(" is on path", &[RECORDS, RecordType], Bool, |a, _| {
        let is_it = |one: &Datum| one.compare_typed(&a[1], &RecordType).is_eq();
        Ok(Datum::Bool(array(&a[0]).elements.iter().any(is_it)))
    }));
    rows.push(row(" next depth", &[RecordType], Int8, |a, _| {
        let depth = record(&a[0])?.values.first().and_then(Datum::as_i64);
        Ok(Datum::Int8(depth.unwrap_or_default() + 1))
    }));
    rows.push(row("row_to_json", &[RecordType], Json, |a, c| to_json(a, false, c)).stable());
    rows.push(
        row("row_to_json", &[RecordType, Bool], Json, |a, c| to_json(a, bool_of(&a[1]), c))
            .stable(),
    );
    rows
}

pub(super) fn record(datum: &Datum) -> Result<&Record> {
    match datum {
        Datum::Nested(Nested::Record(record)) => Ok(record),
        _ => bail!(INTERNAL_ERROR: "a record is expected"),
    }
}

fn make(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let description = record(&arguments[0])?;
    let fields = Arc::clone(&description.fields);
    let values = arguments[1..].to_vec();
    Ok(datum(Record { of: description.of.clone(), fields, values }))
}

fn datum(record: Record) -> Datum {
    Datum::Nested(Nested::Record(Arc::new(record)))
}

fn field_index(index: &Datum) -> usize {
    index.as_i64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX)
}

/// Returns a row, described by the first argument, with a replaced field.
fn with_field(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let mut row = match &arguments[1] {
        Datum::Null => {
            let description = record(&arguments[0])?.clone();
            Record { values: vec![Datum::Null; description.fields.len()], ..description }
        }
        row => record(row)?.clone(),
    };
    if let Some(value) = row.values.get_mut(field_index(&arguments[2])) {
        value.clone_from(&arguments[3]);
    }
    Ok(datum(row))
}

/// Computes `row IS NULL`: the row is NULL, or all of its fields are.
fn all_null(row: &Datum) -> Result<Datum> {
    Ok(Datum::Bool(row.is_null() || record(row)?.values.iter().all(Datum::is_null)))
}

/// Computes `row IS NOT NULL`: the row and all of its fields are not NULL.
fn none_null(row: &Datum) -> Result<Datum> {
    Ok(Datum::Bool(!row.is_null() && !record(row)?.values.iter().any(Datum::is_null)))
}

fn compared(op: CompareOp, arguments: &[Datum]) -> Result<Datum> {
    let (left, right) = (record(&arguments[0])?, record(&arguments[1])?);
    // Fields after the first difference are not compared.
    for (index, (a, b)) in left.values.iter().zip(&right.values).enumerate() {
        let of = alike_field(left, right, index)?;
        check_comparable(op, of)?;
        let ordering = a.compare_typed(b, of);
        if ordering.is_ne() {
            return Ok(Datum::Bool(op.accepts(ordering)));
        }
    }
    check_count(left, right)?;
    Ok(Datum::Bool(op.accepts(Ordering::Equal)))
}

/// Checks that values of a type can be compared.
fn check_comparable(op: CompareOp, of: &DataType) -> Result<()> {
    let what = match op {
        CompareOp::Eq | CompareOp::Ne if !of.has_equality() => "an equality operator",
        CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge if !of.is_ordered() => {
            "a comparison function"
        }
        _ => return Ok(()),
    };
    bail!(UNDEFINED_FUNCTION: "could not identify {what} for type {}", of.sql_name(); with_type_mention of.oid(), of.sql_name())
}

/// Checks that two records have the same field types.
pub(super) fn check_alike(left: &Record, right: &Record) -> Result<()> {
    for index in 0..left.fields.len().min(right.fields.len()) {
        alike_field(left, right, index)?;
    }
    check_count(left, right)
}

/// Returns the type of a field, which must be equal in both records.
fn alike_field<'a>(left: &'a Record, right: &Record, index: usize) -> Result<&'a DataType> {
    let (a, b) = (&left.fields[index].1, &right.fields[index].1);
    if a == b {
        return Ok(a);
    }
    bail!(DATATYPE_MISMATCH: "cannot compare dissimilar column types {} and {} at record column {}",
        a.sql_name(), b.sql_name(), index + 1;
        with_type_mention a.oid(), a.sql_name(); with_type_mention b.oid(), b.sql_name())
}

fn check_count(left: &Record, right: &Record) -> Result<()> {
    if left.fields.len() != right.fields.len() {
        bail!(DATATYPE_MISMATCH: "cannot compare record types with different numbers of columns");
    }
    Ok(())
}

fn to_json(arguments: &[Datum], pretty: bool, context: &EvalContext) -> Result<Datum> {
    let line = if pretty { "\n " } else { "" };
    json_of_record(record(&arguments[0])?, line, context).map(json_datum)
}

/// Returns a record as a JSON object.
pub(super) fn jsonb_of_record(
    record: &Record,
    context: &EvalContext,
) -> Result<crate::datum::Json> {
    let pair = |(value, (name, data_type)): (&Datum, &(Arc<str>, DataType))| {
        Ok((Arc::clone(name), jsonb_of(&*labelled(value, data_type, context)?, context)?))
    };
    let pairs = record.values.iter().zip(record.fields.iter()).map(pair);
    pairs.collect::<Result<Vec<_>>>().map(crate::datum::Json::object)
}

/// Returns whether the text form of values is used in JSON, as a string.
fn is_labelled(data_type: &DataType) -> bool {
    data_type.is_oid() || data_type.is_written_number()
}

/// Returns a value for JSON conversion: values of enums, OID types and word types are replaced by
/// their text.
pub(super) fn labelled<'a>(
    value: &'a Datum,
    data_type: &DataType,
    context: &EvalContext,
) -> Result<Cow<'a, Datum>> {
    Ok(match (value, data_type) {
        (Datum::Int8(_), of) if of.is_oid() || matches!(of, DataType::Word(_)) => {
            let mut bytes = Vec::new();
            text::write(value, of, &context.style, &mut bytes)?;
            Cow::Owned(Datum::Text(context.pace().text(bytes)?.into()))
        }
        (Datum::Int8(rank), DataType::Enum(of)) => {
            of.name_of(*rank).map_or(Cow::Borrowed(value), |label| {
                Cow::Owned(Datum::Text(Arc::clone(label).into()))
            })
        }
        (Datum::Null, _) => Cow::Borrowed(value),
        (Datum::Nested(Nested::Array(array)), of) if of.element().is_some_and(is_labelled) => {
            let element = of.element().unwrap_or(of);
            let elements = array.elements.iter();
            let elements = elements.map(|one| Ok(labelled(one, element, context)?.into_owned()));
            let elements = elements.collect::<Result<_>>()?;
            let dimensions = array.dimensions.clone();
            Cow::Owned(array_datum(Array { dimensions, elements }))
        }
        _ => Cow::Borrowed(value),
    })
}
