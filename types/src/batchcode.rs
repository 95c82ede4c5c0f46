//! Serialization of batches for temporary files of a statement.
//!
//! The format is not persistent: the same process reads it with the same types.
//!
//! ```text
//! batch  = row count u32, a column each
//! column = 0, or 1 and a validity byte a row (0: NULL), then the values
//! values = fixed width: one after the other, zeros for NULL
//!          variable:    the end of each u32, then their bytes
//! ```
//!
//! Values are encoded as in a packed row ([`rowcode`](crate::rowcode)); numbers are
//! little-endian.

use std::sync::Arc;

use crate::datatype::DataType;
use crate::datatype::composite::Fields;
use crate::error::{Error, Result};
use crate::rowcode::value;
use crate::vector::{Batch, BytesVector, Vector, VectorData};

#[cold]
fn corrupt(what: &str) -> Error {
    err!(DATA_CORRUPTED: "cannot decode spilled data: {what}")
}

/// Appends a batch. `fields` receives the fields of values of type `record`.
pub fn write_batch(batch: &Batch, types: &[DataType], fields: &mut Vec<Fields>, out: &mut Vec<u8>) {
    batch.check();
    assert_eq!(batch.columns.len(), types.len(), "each column has a type");
    out.extend(length(batch.row_count).to_le_bytes());
    for (column, data_type) in batch.columns.iter().zip(types) {
        write_column(column, data_type, fields, out);
    }
}

/// Decodes a batch of columns of these types, written with these fields of records.
///
/// # Errors
///
/// `XX001` if the bytes are malformed.
pub fn read_batch(types: &[DataType], fields: &[Fields], bytes: &[u8]) -> Result<Batch> {
    let mut reader = Reader { bytes, fields };
    let row_count = reader.length()?;
    let columns: Result<Vec<_>> =
        types.iter().map(|data_type| reader.column(data_type, row_count).map(Arc::new)).collect();
    Ok(Batch { columns: columns?, row_count })
}

fn length(value: usize) -> u32 {
    u32::try_from(value).expect("a vector holds less than 4 GiB")
}

fn write_column(
    column: &Vector,
    data_type: &DataType,
    fields: &mut Vec<Fields>,
    out: &mut Vec<u8>,
) {
    out.push(u8::from(column.validity.is_some()));
    if let Some(validity) = &column.validity {
        out.extend(validity.iter().map(|valid| u8::from(*valid)));
    }
    match (&column.data, value::width(data_type)) {
        (VectorData::Int4(values) | VectorData::Date(values), _) => {
            values.iter().for_each(|value| out.extend(value.to_le_bytes()));
        }
        (
            VectorData::Int8(values)
            | VectorData::Time(values)
            | VectorData::Timestamp(values)
            | VectorData::Timestamptz(values),
            _,
        ) => values.iter().for_each(|value| out.extend(value.to_le_bytes())),
        (VectorData::Float8(values), _) => {
            values.iter().for_each(|value| out.extend(value.to_le_bytes()));
        }
        (VectorData::Text(values) | VectorData::Bytea(values), _) => {
            write_variable(&values.ends, &values.bytes, out);
        }
        (_, Some(width)) => {
            for row in 0..column.len() {
                let start = out.len();
                value::write(&column.datum(row), fields, out);
                debug_assert!(out.len() <= start + width, "a value exceeds its {width} bytes");
                out.resize(start + width, 0);
            }
        }
        (_, None) => {
            let (mut ends, mut bytes) = (Vec::with_capacity(column.len()), Vec::new());
            for row in 0..column.len() {
                value::write(&column.datum(row), fields, &mut bytes);
                ends.push(length(bytes.len()));
            }
            write_variable(&ends, &bytes, out);
        }
    }
}

fn write_variable(ends: &[u32], bytes: &[u8], out: &mut Vec<u8>) {
    debug_assert!(ends.is_sorted(), "values end before their start");
    debug_assert_eq!(ends.last().map_or(0, |end| *end as usize), bytes.len());
    ends.iter().for_each(|end| out.extend(end.to_le_bytes()));
    out.extend_from_slice(bytes);
}

struct Reader<'a> {
    bytes: &'a [u8],
    fields: &'a [Fields],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or_else(|| corrupt("truncated batch"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, count: usize) -> Result<&'a [[u8; N]]> {
        let (values, _) = self.take(count.saturating_mul(N))?.as_chunks::<N>();
        Ok(values)
    }

    fn length(&mut self) -> Result<usize> {
        Ok(u32::from_le_bytes(self.array::<4>(1)?[0]) as usize)
    }

    fn column(&mut self, data_type: &DataType, row_count: usize) -> Result<Vector> {
        let validity = match self.take(1)? {
            [0] => None,
            _ => Some(self.take(row_count)?.iter().map(|byte| *byte != 0).collect::<Vec<bool>>()),
        };
        let mut column = Vector::new(data_type, row_count);
        let width = value::width(data_type);
        match (&mut column.data, width) {
            (VectorData::Int4(values) | VectorData::Date(values), _) => {
                values.extend(self.array(row_count)?.iter().map(|v| i32::from_le_bytes(*v)));
            }
            (
                VectorData::Int8(values)
                | VectorData::Time(values)
                | VectorData::Timestamp(values)
                | VectorData::Timestamptz(values),
                _,
            ) => values.extend(self.array(row_count)?.iter().map(|v| i64::from_le_bytes(*v))),
            (VectorData::Float8(values), _) => {
                values.extend(self.array(row_count)?.iter().map(|v| f64::from_le_bytes(*v)));
            }
            (VectorData::Bytea(values), _) => *values = self.variable(row_count)?,
            (VectorData::Text(values), _) => {
                let read = self.variable(row_count)?;
                let text = std::str::from_utf8(&read.bytes);
                let text = text.map_err(|_| corrupt("invalid UTF-8 text"))?;
                if read.ends.iter().any(|end| !text.is_char_boundary(*end as usize)) {
                    return Err(corrupt("invalid UTF-8 text"));
                }
                *values = read;
            }
            (_, Some(width)) => {
                let bytes = self.take(row_count.saturating_mul(width))?;
                let rows = bytes.chunks_exact(width);
                return each_value(column, rows, validity.as_deref(), (data_type, self.fields));
            }
            (_, None) => {
                let values = self.variable(row_count)?;
                return each_value(
                    column,
                    values.iter(),
                    validity.as_deref(),
                    (data_type, self.fields),
                );
            }
        }
        column.validity = validity;
        Ok(column)
    }

    fn variable(&mut self, row_count: usize) -> Result<BytesVector> {
        let ends = self.array::<4>(row_count)?;
        let ends: Vec<u32> = ends.iter().map(|end| u32::from_le_bytes(*end)).collect();
        if !ends.is_sorted() {
            return Err(corrupt("a batch has values with an end before their start"));
        }
        let bytes = self.take(ends.last().map_or(0, |end| *end as usize))?;
        Ok(BytesVector { ends, bytes: bytes.to_vec() })
    }
}

/// Appends values one by one.
fn each_value<'a>(
    mut column: Vector,
    values: impl Iterator<Item = &'a [u8]>,
    validity: Option<&[bool]>,
    (data_type, fields): (&DataType, &[Fields]),
) -> Result<Vector> {
    for (row, bytes) in values.enumerate() {
        match validity {
            Some(validity) if !validity[row] => column.push_null(),
            _ => value::read(bytes, data_type, fields, &mut column)?,
        }
    }
    Ok(column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datum::Datum;
    use crate::text::{self, TextStyle};

    #[test]
    fn batch_encoding_round_trips_and_detects_truncation() {
        let texts = [
            (DataType::Bool, ["t", "f"]),
            (DataType::Int2, ["-7", "32767"]),
            (DataType::Int4, ["-7", "2147483647"]),
            (DataType::Int8, ["-7", "9223372036854775807"]),
            (DataType::Float4, ["-1.5", "NaN"]),
            (DataType::Float8, ["0.1", "-Infinity"]),
            (DataType::Numeric, ["12345678901234567890.123", "-0.00"]),
            (DataType::Text, ["", "ä b"]),
            (DataType::Bytea, ["\\x00ff", "\\x"]),
            (DataType::Date, ["2024-02-29", "infinity"]),
            (DataType::Time, ["12:34:56.789", "24:00:00"]),
            (DataType::Timetz, ["12:34:56.789+03:30", "24:00:00-08"]),
            (DataType::Varbit, ["101100111", ""]),
            (DataType::JsonPath, ["$.a[*] ? (@ > 1)", "strict $"]),
            (DataType::Timestamp, ["2024-02-29 12:00:00", "0044-03-15 12:00:00 BC"]),
            (DataType::Timestamptz, ["2024-02-29 12:00:00+02", "infinity"]),
            (DataType::Interval, ["1 mon -2 days 03:04:05", "0"]),
            (
                DataType::Uuid,
                ["00000000-0000-0000-0000-000000000000", "6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"],
            ),
        ];
        let types: Vec<DataType> = texts.iter().map(|(data_type, _)| data_type.clone()).collect();
        let parse = |data_type: &DataType, value: &str| {
            text::parse(value, data_type, &TextStyle::default()).unwrap()
        };
        let row = |at: usize| -> Vec<Datum> {
            texts.iter().map(|(data_type, values)| parse(data_type, values[at])).collect()
        };
        let nulls = vec![Datum::Null; types.len()];
        for rows in [vec![], vec![row(0), row(1)], vec![row(1), nulls.clone(), row(0)], vec![nulls]]
        {
            let batch = Batch::from_rows(&types, &rows);
            let mut bytes = Vec::new();
            let mut fields = Vec::new();
            write_batch(&batch, &types, &mut fields, &mut bytes);
            let read = read_batch(&types, &fields, &bytes).unwrap();
            assert_eq!(read.row_count, rows.len());
            let read: Vec<Vec<Datum>> = (0..read.row_count).map(|row| read.row(row)).collect();
            // Compared as text, because NaN is not equal to itself.
            assert_eq!(format!("{read:?}"), format!("{rows:?}"));
            // Any truncation is detected.
            for cut in 0..bytes.len() {
                read_batch(&types, &fields, &bytes[..cut]).unwrap_err();
            }
        }
    }
}
