//! Records: made of values, compared, and written as JSON.
//!
//! The binder calls ` row` for rows as values, with a record that describes the fields in front,
//! and ` path` and its kin for the columns that SEARCH and CYCLE add.

use std::sync::Arc;

use super::json_build::{json_of_record, jsonb_of};
use super::{CompareOp, Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, AnyElement, Bool, Int8, Json, Record as RecordType};
use crate::datum::{Array, Datum, Nested, Record};
use crate::error::{Error, Result, sqlstate};
use crate::function::argument::{array, array_datum, bool_of, json_datum};

/// `record[]`
const RECORDS: DataType = DataType::Array(&RecordType);

/// The rows of this family.
pub(super) fn functions() -> Vec<Row> {
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
    let mut rows: Vec<Row> =
        CompareOp::ALL.into_iter().map(|op| comparison(op.symbol(), op)).collect();
    rows.push(comparison("!=", CompareOp::Ne));
    rows.push(row(" row", &[RecordType, AnyElement], RecordType, make).variadic().takes_null());
    rows.push(row(" path", &[RecordType], RECORDS, |a, _| {
        Ok(array_datum(Array::from_elements(vec![a[0].clone()])))
    }));
    rows.push(row(" longer path", &[RECORDS, RecordType], RECORDS, |a, _| {
        let mut elements = array(&a[0]).elements.clone();
        elements.push(a[1].clone());
        Ok(array_datum(Array::from_elements(elements)))
    }));
    rows.push(row(" is on path", &[RECORDS, RecordType], Bool, |a, _| {
        let is_it = |one: &Datum| one.compare_typed(&a[1], RecordType).is_eq();
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

fn record(datum: &Datum) -> Result<&Record> {
    match datum {
        Datum::Nested(Nested::Record(record)) => Ok(record),
        _ => Err(Error::new("XX000", "a record is wanted")),
    }
}

fn make(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let fields = Arc::clone(&record(&arguments[0])?.fields);
    Ok(Datum::Nested(Nested::Record(Arc::new(Record { fields, values: arguments[1..].to_vec() }))))
}

fn compared(op: CompareOp, arguments: &[Datum]) -> Result<Datum> {
    let (left, right) = (record(&arguments[0])?, record(&arguments[1])?);
    for (index, (a, b)) in left.fields.iter().zip(right.fields.iter()).enumerate() {
        if a.1 != b.1 {
            let message = format!(
                "cannot compare dissimilar column types {} and {} at record column {}",
                a.1.sql_name(),
                b.1.sql_name(),
                index + 1
            );
            return Err(Error::new(sqlstate::DATATYPE_MISMATCH, message));
        }
    }
    if left.fields.len() != right.fields.len() {
        let message = "cannot compare record types with different numbers of columns";
        return Err(Error::new(sqlstate::DATATYPE_MISMATCH, message));
    }
    Ok(Datum::Bool(op.accepts(left.compare(right))))
}

fn to_json(arguments: &[Datum], pretty: bool, context: &EvalContext) -> Result<Datum> {
    let line = if pretty { "\n " } else { "" };
    Ok(json_datum(json_of_record(record(&arguments[0])?, line, context)))
}

/// Returns a record as a JSON object.
pub(super) fn jsonb_of_record(
    record: &Record,
    context: &EvalContext,
) -> Result<crate::datum::Json> {
    let pair = |(value, (name, _)): (&Datum, &(Arc<str>, DataType))| {
        Ok((Arc::clone(name), jsonb_of(value, context)?))
    };
    let pairs = record.values.iter().zip(record.fields.iter()).map(pair);
    pairs.collect::<Result<Vec<_>>>().map(crate::datum::Json::object)
}
