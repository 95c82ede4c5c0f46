//! DataRow encoder: writes rows of column batches directly into the output buffer.

use std::num::NonZeroU32;

use smallvec::SmallVec;
use sql::Error;
use sql::logical::OutputColumn;
use sql::session::portals::FormatCodes;
use types::binary;
use types::interruptible::{CHUNK_BYTES, InterruptPacer};
use types::text::TextStyle;
use types::vector::VectorData;
use types::{Batch, DataType, Vector};

use crate::vector_text;

/// Maximum bytes of a row that clients accept.
const ROW_BYTES_MAX: usize = 0x3fff_ffff;

/// Transfer format of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The output of the type's output function.
    Text,
    /// The output of the type's `typsend` function.
    Binary,
}

impl Format {
    /// Returns the format of a protocol code.
    pub(crate) fn from_code(code: i16) -> sql::Result<Format> {
        match code {
            0 => Ok(Format::Text),
            1 => Ok(Format::Binary),
            _ => bail!(INVALID_PARAMETER_VALUE: "unsupported format code: {code}"),
        }
    }

    /// Returns the protocol code.
    pub(crate) fn code(self) -> i16 {
        match self {
            Format::Text => 0,
            Format::Binary => 1,
        }
    }
}

/// The formats of a list of values, as in Bind: none, one for all, or one for each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Formats(SmallVec<[Format; 8]>);

impl Formats {
    /// Returns the protocol codes.
    pub(crate) fn codes(&self) -> FormatCodes {
        self.0.iter().map(|format| format.code()).collect()
    }

    /// Converts protocol codes.
    pub(crate) fn read(codes: &[i16]) -> sql::Result<Formats> {
        codes.iter().map(|code| Format::from_code(*code)).collect::<sql::Result<_>>().map(Formats)
    }

    /// Returns the binary format for all values.
    pub(crate) fn binary() -> Formats {
        Formats(SmallVec::from_slice(&[Format::Binary]))
    }

    /// Returns the number of codes.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the number of codes is valid for `count` values.
    pub(crate) fn suit(&self, count: usize) -> bool {
        self.0.len() <= 1 || self.0.len() == count
    }

    /// Returns the format of one value.
    pub(crate) fn at(&self, position: usize) -> Format {
        match self.0.as_slice() {
            [] => Format::Text,
            [all] => *all,
            each => each.get(position).copied().unwrap_or(Format::Text),
        }
    }
}

/// The encoder of the rows of one result.
pub(crate) struct RowEncoder {
    /// For each column its type, the array type if it is an array of a domain, and its format.
    columns: SmallVec<[(DataType, Option<NonZeroU32>, Format); 8]>,
}

impl RowEncoder {
    /// Creates the encoder of a result with these columns.
    pub(crate) fn new(columns: &[OutputColumn], formats: &Formats) -> RowEncoder {
        let form = |(at, column): (usize, &OutputColumn)| {
            (column.sql_type.base.clone(), column.sql_type.domain_array, formats.at(at))
        };
        RowEncoder { columns: columns.iter().enumerate().map(form).collect() }
    }

    /// Appends rows from `row` on, until the batch ends or the output exceeds `limit` bytes.
    /// Returns the row to continue with.
    ///
    /// # Errors
    ///
    /// 54000 if a row is too long for a message; 22P05 if the client's encoding lacks a
    /// character; 57014. A failed row leaves no bytes.
    pub(crate) fn write_rows(
        &self,
        batch: &Batch,
        mut row: usize,
        style: &TextStyle,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> sql::Result<usize> {
        batch.check();
        // UTF-8 clients do not pay for conversions.
        let write = match style.encoding.is_utf8() {
            true => RowEncoder::write_row::<true>,
            false => RowEncoder::write_row::<false>,
        };
        while row < batch.row_count && out.len() < limit {
            let start = out.len();
            if let Err(error) = write(self, batch, row, style, out) {
                out.truncate(start);
                return Err(error);
            }
            row += 1;
        }
        Ok(row)
    }

    /// Appends a row. `UTF8` is set if it is the client's encoding.
    fn write_row<const UTF8: bool>(
        &self,
        batch: &Batch,
        row: usize,
        style: &TextStyle,
        out: &mut Vec<u8>,
    ) -> sql::Result<()> {
        debug_assert_eq!(batch.columns.len(), self.columns.len(), "a format for each column");
        let start = out.len();
        out.extend_from_slice(&[b'D', 0, 0, 0, 0]);
        out.extend_from_slice(&(self.columns.len() as u16).to_be_bytes());
        for (vector, (data_type, of_domain, format)) in batch.columns.iter().zip(&self.columns) {
            if vector.is_null(row) {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            }
            let value = out.len();
            out.extend_from_slice(&[0; 4]);
            match format {
                Format::Text => {
                    vector_text::write(vector, row, data_type, style, out)?;
                    if !UTF8 {
                        let mut pace = InterruptPacer::new(&style.interrupt);
                        style.encoding.encode_tail(out, value + 4, &mut pace)?;
                    }
                }
                Format::Binary => {
                    write_binary(vector, row, data_type, style, out)?;
                    if let Some(array) = of_domain {
                        // The domain's OID is one less than its array type's.
                        let element = value + 4 + ARRAY_ELEMENT;
                        let domain = (array.get() - 1).to_be_bytes();
                        out[element..element + 4].copy_from_slice(&domain);
                    }
                }
            }
            let length = (out.len() - value - 4) as u32;
            out[value..value + 4].copy_from_slice(&length.to_be_bytes());
        }
        let length = out.len() - start - 1;
        if length > ROW_BYTES_MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED: "row is too long for the client: more than 1 GB");
        }
        out[start + 1..start + 5].copy_from_slice(&(length as u32).to_be_bytes());
        if length >= CHUNK_BYTES {
            // Long values are sent whole, at the client's speed, so the flag is checked here.
            style.interrupt.check()?;
        }
        Ok(())
    }
}

/// Offset of the element type in the binary form of an array: behind the number of dimensions and
/// the NULL flag.
const ARRAY_ELEMENT: usize = 8;

/// Appends the binary form of a value that is not NULL.
fn write_binary(
    vector: &Vector,
    row: usize,
    data_type: &DataType,
    style: &TextStyle,
    out: &mut Vec<u8>,
) -> sql::Result<()> {
    let mut pace = InterruptPacer::new(&style.interrupt);
    match &vector.data {
        VectorData::Int2(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        VectorData::Int4(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        VectorData::Int8(values) if *data_type == DataType::Int8 => {
            out.extend_from_slice(&values[row].to_be_bytes());
        }
        VectorData::Float4(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        VectorData::Float8(values) => out.extend_from_slice(&values[row].to_be_bytes()),
        VectorData::Bytea(values) => pace.append(out, values.get(row))?,
        VectorData::Text(values)
            if *data_type != DataType::InternalChar && style.encoding.is_utf8() =>
        {
            pace.append(out, values.get(row))?;
        }
        _ => binary::write(&vector.datum(row), data_type, style.encoding, &mut pace, out)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Datum;
    use types::encoding::Encoding;

    fn columns(types: &[DataType]) -> Vec<OutputColumn> {
        let column = |data_type: &DataType| OutputColumn {
            name: "c".to_owned(),
            sql_type: (data_type).into(),
            origin: None,
        };
        types.iter().map(column).collect()
    }

    fn encode(
        types: &[DataType],
        rows: &[Vec<Datum>],
        codes: &[i16],
        limit: usize,
    ) -> Vec<Vec<u8>> {
        let batch = Batch::from_rows(types, rows);
        let encoder = RowEncoder::new(&columns(types), &Formats::read(codes).unwrap());
        let mut pieces = Vec::new();
        let mut row = 0;
        while row < batch.row_count {
            let mut out = Vec::new();
            row = encoder.write_rows(&batch, row, &TextStyle::default(), limit, &mut out).unwrap();
            pieces.push(out);
        }
        pieces
    }

    #[test]
    fn rows_are_framed_with_lengths_and_nulls() {
        let types = [DataType::Int4, DataType::Text];
        let rows = [vec![Datum::Int4(-7), Datum::Null], vec![Datum::Null, Datum::text("ab")]];
        let pieces = encode(&types, &rows, &[], usize::MAX);
        let first = b"D\0\0\0\x10\0\x02\0\0\0\x02-7\xff\xff\xff\xff";
        let second = b"D\0\0\0\x10\0\x02\xff\xff\xff\xff\0\0\0\x02ab";
        assert_eq!(pieces, [[first.as_slice(), second].concat()]);
    }

    #[test]
    fn formats_are_per_column_and_output_is_chunked() {
        let types = [DataType::Int4, DataType::Int4];
        let rows = vec![vec![Datum::Int4(258), Datum::Int4(258)]; 3];
        let pieces = encode(&types, &rows, &[1, 0], 1);
        let row = b"D\0\0\0\x15\0\x02\0\0\0\x04\0\0\x01\x02\0\0\0\x03258".to_vec();
        assert_eq!(pieces, vec![row; 3]);
    }

    #[test]
    fn short_binary_forms_match_general_encoder() {
        let cases = [
            (DataType::Int2, Datum::Int2(-2)),
            (DataType::Int8, Datum::Int8(i64::MIN)),
            (DataType::Oid, Datum::Int8(4_000_000_000)),
            (DataType::Float4, Datum::Float4(1.5)),
            (DataType::Float8, Datum::Float8(f64::NAN)),
            (DataType::Text, Datum::text("é")),
            (DataType::Bytea, Datum::bytea([1_u8, 2])),
            (DataType::Bool, Datum::Bool(true)),
            (DataType::Date, Datum::Date(-1)),
        ];
        for (data_type, datum) in cases {
            let vector = Vector::constant(&datum, &data_type, 1);
            let (mut short, mut long) = (Vec::new(), Vec::new());
            write_binary(&vector, 0, &data_type, &TextStyle::default(), &mut short).unwrap();
            let utf8 = Encoding::utf8();
            binary::write(
                &datum,
                &data_type,
                utf8,
                &mut InterruptPacer::without_interrupt(),
                &mut long,
            )
            .unwrap();
            assert_eq!(short, long, "{datum:?}");
        }
    }

    #[test]
    fn row_text_uses_client_encoding() {
        let types = [DataType::Text, DataType::Text];
        let latin = Encoding::by_name("latin1").unwrap();
        let style = TextStyle { encoding: latin, ..TextStyle::default() };
        let rows = ["é", "€"].map(|text| vec![Datum::text(text), Datum::text(text)]);
        let batch = Batch::from_rows(&types, &rows);
        let encoder = RowEncoder::new(&columns(&types), &Formats::read(&[0, 1]).unwrap());
        let mut out = Vec::new();
        let refused = encoder.write_rows(&batch, 0, &style, usize::MAX, &mut out);
        assert_eq!(refused.unwrap_err().sqlstate, "22P05");
        assert_eq!(out, b"D\0\0\0\x10\0\x02\0\0\0\x01\xe9\0\0\0\x01\xe9");
    }

    #[test]
    fn invalid_format_codes_are_rejected() {
        let formats = Formats::read(&[1, 0]).unwrap();
        assert!(formats.suit(2) && !formats.suit(3));
        assert!(Formats::read(&[1]).unwrap().suit(9));
        assert_eq!(Formats::read(&[2]).unwrap_err().sqlstate, "22023");
    }
}
