//! Text form of one value of a column, for results and COPY, without an allocation per value.
//!
//! The rules are those of [`types::text`]; this module only avoids the copy into a
//! [`types::Datum`] for some types.

use types::interruptible::InterruptPacer;
use types::text;
use types::text::TextStyle;
use types::vector::VectorData;
use types::{DataType, Vector};

/// Appends the text form of the value at `row`, which is not NULL.
///
/// # Errors
///
/// `57014` if the interrupt flag of the style is set during a long conversion.
#[inline]
pub(crate) fn write(
    vector: &Vector,
    row: usize,
    data_type: &DataType,
    style: &TextStyle,
    out: &mut Vec<u8>,
) -> types::Result<()> {
    match &vector.data {
        VectorData::Int4(values) => write_integer(i64::from(values[row]), out),
        VectorData::Int8(values) if !data_type.is_written_number() => {
            write_integer(values[row], out);
        }
        VectorData::Int2(values) => write_integer(i64::from(values[row]), out),
        VectorData::Text(values) if *data_type != DataType::InternalChar => {
            InterruptPacer::new(&style.interrupt).append(out, values.get(row))?;
        }
        VectorData::Bool(values) => out.push(if values[row] { b't' } else { b'f' }),
        _ => text::write_row(vector, row, data_type, style, out)?,
    }
    Ok(())
}

fn write_integer(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Datum;
    use types::text::Formats;

    #[test]
    fn fast_text_output_matches_general_output() {
        let cases = [
            (DataType::Int2, Datum::Int2(i16::MIN)),
            (DataType::Int4, Datum::Int4(0)),
            (DataType::Int4, Datum::Int4(-1_234_567)),
            (DataType::Int8, Datum::Int8(i64::MIN)),
            (DataType::Int8, Datum::Int8(i64::MAX)),
            (DataType::Oid, Datum::Int8(4_294_967_295)),
            (DataType::Bool, Datum::Bool(true)),
            (DataType::Bool, Datum::Bool(false)),
            (DataType::Char, Datum::text("ab  ")),
            (DataType::Text, Datum::text("é")),
            (DataType::Bytea, Datum::bytea([0_u8, 255, 16])),
            (DataType::Float8, Datum::Float8(0.1)),
        ];
        for escape_bytea in [false, true] {
            let formats = Formats { escape_bytea, ..Formats::default() };
            let style = TextStyle { formats, ..TextStyle::default() };
            for (data_type, datum) in &cases {
                let vector = Vector::constant(datum, data_type, 2);
                let (mut short, mut long) = (Vec::new(), Vec::new());
                write(&vector, 1, data_type, &style, &mut short).unwrap();
                text::write(datum, data_type, &style, &mut long).unwrap();
                assert_eq!(short, long, "{datum:?}");
            }
        }
    }
}
