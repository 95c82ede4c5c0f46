//! Record image comparison, `*=` and related operators: compares records by the binary images
//! that values have in PostgreSQL.
//!
//! The image of a pass-by-value type is its word; of strings their bytes; of `numeric` sign,
//! scale, weight and digits. Arrays, rows and `jsonb` are compared by their binary form: equality
//! agrees with PostgreSQL, though the order differs.
//!
//! Source: PostgreSQL's `record_image_cmp` (rowtypes.c).

use std::cmp::Ordering;

use super::records::{check_alike, record};
use super::{CompareOp, FunctionRow, row};
use crate::binary;
use crate::datatype::DataType::{self, Bool, Record as RecordType};
use crate::datum::{Datum, Record};
use crate::encoding::Encoding;
use crate::error::Result;
use crate::interruptible::InterruptPacer;

/// The function table of this family.
pub(super) fn functions() -> Vec<FunctionRow> {
    let all: [(&'static str, super::Implementation); 6] = [
        ("*=", |a, _| compared(CompareOp::Eq, a)),
        ("*<>", |a, _| compared(CompareOp::Ne, a)),
        ("*<", |a, _| compared(CompareOp::Lt, a)),
        ("*<=", |a, _| compared(CompareOp::Le, a)),
        ("*>", |a, _| compared(CompareOp::Gt, a)),
        ("*>=", |a, _| compared(CompareOp::Ge, a)),
    ];
    let of =
        |(symbol, implementation)| row(symbol, &[RecordType, RecordType], Bool, implementation);
    all.into_iter().map(of).collect()
}

fn compared(op: CompareOp, arguments: &[Datum]) -> Result<Datum> {
    let (left, right) = (record(&arguments[0])?, record(&arguments[1])?);
    check_alike(left, right)?;
    Ok(Datum::Bool(op.accepts(compare(left, right))))
}

fn compare(left: &Record, right: &Record) -> Ordering {
    let pairs = left.values.iter().zip(&right.values).zip(left.fields.iter());
    let mut orderings = pairs.map(|((a, b), (_, data_type))| match (a, b) {
        (Datum::Null, Datum::Null) => Ordering::Equal,
        // NULL comes last.
        (Datum::Null, _) => Ordering::Greater,
        (_, Datum::Null) => Ordering::Less,
        (a, b) => image(a, data_type).cmp(&image(b, data_type)),
    });
    orderings.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
}

fn image(value: &Datum, data_type: &DataType) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let (DataType::Enum(of), Datum::Int8(rank)) = (data_type, value) {
        let label = of.labels().iter().find(|label| label.rank == *rank);
        return label.map_or(0, |label| label.oid).to_be_bytes().to_vec();
    }
    binary::write(
        value,
        data_type,
        Encoding::utf8(),
        &mut InterruptPacer::without_interrupt(),
        &mut bytes,
    )
    .expect("there is no flag to be set");
    let is_word = matches!(
        data_type,
        DataType::Int2
            | DataType::Int4
            | DataType::Int8
            | DataType::Float4
            | DataType::Float8
            | DataType::Date
            | DataType::Time
            | DataType::Timestamp
            | DataType::Timestamptz
    );
    match data_type {
        // A sign-extended word, compared as unsigned.
        _ if is_word => {
            let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { 0xff } else { 0 };
            let mut word = vec![sign; 8 - bytes.len().min(8)];
            word.append(&mut bytes);
            word
        }
        DataType::Numeric => numeric_image(&bytes).unwrap_or(bytes),
        _ => bytes,
    }
}

/// Returns the image of a numeric with a short header, from its binary form: little-endian words.
fn numeric_image(binary: &[u8]) -> Option<Vec<u8>> {
    let words: Vec<u16> =
        binary.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let [_, weight, sign, scale, digits @ ..] = words.as_slice() else { return None };
    let weight = weight.cast_signed();
    let header = match *sign {
        0x0000 | 0x4000 if *scale <= 63 && (-64..=63).contains(&weight) => {
            let negative = if *sign == 0x4000 { 0x2000 } else { 0 };
            vec![0x8000 | negative | (*scale << 7) | (weight.cast_unsigned() & 0x7f)]
        }
        0x0000 | 0x4000 => vec![*sign | *scale, weight.cast_unsigned()],
        special => vec![special],
    };
    Some(header.into_iter().chain(digits.iter().copied()).flat_map(u16::to_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{TextStyle, parse};

    #[test]
    fn record_images_distinguish_equal_values() {
        let of = |text: &str, data_type| {
            image(&parse(text, data_type, &TextStyle::default()).unwrap(), data_type)
        };
        assert_ne!(of("1.0", &DataType::Numeric), of("1.00", &DataType::Numeric));
        assert_eq!(of("1.0", &DataType::Numeric), of("1.0", &DataType::Numeric));
        // A negative number compares as a large one.
        assert!(of("-1", &DataType::Int4) > of("1", &DataType::Int4));
        assert!(of("a", &DataType::Text) < of("ab", &DataType::Text));
    }
}
