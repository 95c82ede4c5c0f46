//! Binary format of values in the wire protocol, as defined by PostgreSQL's `typsend` and
//! `typreceive`.

mod geometry;
mod nested;

use crate::datatype::{DataType, FixedWidthKind, Representation, SqlType};
use crate::datetime::Interval;
use crate::datetime::MICROS_PER_DAY;
use crate::datum::Datum;
use crate::encoding::Encoding;
use crate::error::Error;
use crate::error::Result;
use crate::interruptible::InterruptPacer;
use crate::numeric::Numeric;
use crate::numeric::NumericForm;
use crate::text::{self, TextStyle};

/// Signs of a numeric on the wire.
const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;

/// Appends the binary form of a value that is not NULL, without a length word. Text is converted
/// to `encoding`.
///
/// # Errors
///
/// `57014` if the interrupt flag is set during a long conversion; 22P05.
pub fn write(
    value: &Datum,
    data_type: &DataType,
    encoding: &'static Encoding,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    match value {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int2(value) => out.extend_from_slice(&value.to_be_bytes()),
        Datum::Int4(value) | Datum::Date(value) => out.extend_from_slice(&value.to_be_bytes()),
        Datum::Int8(_) if matches!(data_type, DataType::Enum(_)) => {
            text::write_short(value, data_type, &TextStyle::default(), out);
            encoding.encode_tail(out, start, pace)?;
        }
        Datum::Int8(value) if data_type.is_oid() => {
            out.extend_from_slice(&(*value as u32).to_be_bytes());
        }
        Datum::Int8(value) => match data_type {
            DataType::Word(kind) => {
                let bytes = kind.to_unsigned(*value).to_be_bytes();
                out.extend_from_slice(&bytes[bytes.len() - kind.byte_count()..]);
            }
            _ => out.extend_from_slice(&value.to_be_bytes()),
        },
        Datum::Time(value) | Datum::Timestamp(value) | Datum::Timestamptz(value) => {
            out.extend_from_slice(&value.to_be_bytes())
        }
        Datum::Float4(value) => out.extend_from_slice(&value.to_be_bytes()),
        Datum::Float8(value) => out.extend_from_slice(&value.to_be_bytes()),
        Datum::Numeric(value) => write_numeric(value, out),
        Datum::Text(text) if *data_type == DataType::InternalChar => {
            out.push(text::char_byte(text));
        }
        Datum::Text(_) if *data_type == DataType::AclItem => {
            bail!(UNDEFINED_FUNCTION: "no binary output function available for type aclitem");
        }
        Datum::Text(text) => {
            pace.append(out, text.as_bytes())?;
            encoding.encode_tail(out, start, pace)?;
        }
        Datum::Bytea(bytes) => pace.append(out, &**bytes)?,
        Datum::Interval(value) => {
            out.extend_from_slice(&value.microseconds.to_be_bytes());
            out.extend_from_slice(&value.days.to_be_bytes());
            out.extend_from_slice(&value.months.to_be_bytes());
        }
        Datum::Uuid(value) => out.extend_from_slice(value),
        Datum::Nested(value) => nested::write(value, data_type, encoding, pace, out)?,
    }
    Ok(())
}

fn write_numeric(value: &Numeric, out: &mut Vec<u8>) {
    let big;
    let parts = match value.parts() {
        NumericForm::Small { .. } => {
            big = value.as_digits();
            big.parts()
        }
        parts => parts,
    };
    let mut put = |words: &[u16]| {
        for word in words {
            out.extend_from_slice(&word.to_be_bytes());
        }
    };
    match parts {
        NumericForm::Big { negative, weight, scale, digits } => {
            let sign = if negative { NEGATIVE } else { POSITIVE };
            put(&[digits.len() as u16, weight as i16 as u16, sign, scale as u16]);
            put(digits);
        }
        NumericForm::Small { .. } | NumericForm::NaN => put(&[0, 0, NAN, 0]),
        // PostgreSQL writes its infinities with this scale.
        NumericForm::Infinity => put(&[0, 0, INFINITY, 0x20]),
        NumericForm::NegativeInfinity => put(&[0, 0, NEGATIVE_INFINITY, 0x20]),
    }
}

fn bad(message: &str) -> Error {
    err!(INVALID_BINARY_REPRESENTATION: message)
}

/// Returns the bytes of a value of fixed width.
fn fixed<const N: usize>(bytes: &[u8], data_type: &DataType) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| {
        bad(&format!("incorrect binary data format for type {}", data_type.sql_name()))
    })
}

fn parse_numeric(bytes: &[u8]) -> Result<Numeric> {
    let (words, []) = bytes.as_chunks::<2>() else {
        return Err(bad("incorrect binary data format for type numeric"));
    };
    let words: Vec<u16> = words.iter().map(|word| u16::from_be_bytes(*word)).collect();
    let [count, weight, sign, scale, digits @ ..] = words.as_slice() else {
        return Err(bad("insufficient data left in message"));
    };
    if digits.len() != usize::from(*count) {
        return Err(bad("insufficient data left in message"));
    }
    if *scale & 0x3FFF != *scale {
        return Err(bad("invalid scale in external \"numeric\" value"));
    }
    if digits.iter().any(|&digit| digit >= 10_000) {
        return Err(bad("invalid digit in external \"numeric\" value"));
    }
    match *sign {
        NAN => Ok(Numeric::NAN),
        INFINITY => Ok(Numeric::INFINITY),
        NEGATIVE_INFINITY => Ok(Numeric::NEGATIVE_INFINITY),
        POSITIVE | NEGATIVE => {
            let weight = i32::from(*weight as i16);
            let number =
                Numeric::from_parts(*sign == NEGATIVE, weight, u32::from(*scale), digits.to_vec());
            number.ok_or_else(|| bad("incorrect binary data format for type numeric"))
        }
        _ => Err(bad("invalid sign in external \"numeric\" value")),
    }
}

/// Returns the unsigned number of a word type.
fn parse_word(bytes: &[u8], kind: FixedWidthKind) -> Result<u64> {
    if let (FixedWidthKind::MacAddr8, &[a, b, c, d, e, f]) = (kind, bytes) {
        return Ok(u64::from_be_bytes([a, b, c, 0xff, 0xfe, d, e, f]));
    }
    if bytes.len() != kind.byte_count() {
        return Err(match bytes.len() < kind.byte_count() {
            true => bad("insufficient data left in message"),
            false => {
                let data_type = DataType::Word(kind);
                let name = data_type.sql_name();
                bad(&format!("incorrect binary data format for type {name}"))
            }
        });
    }
    Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// As [`parse`], for a declared type: the element type of an array of a domain may be the OID of
/// the domain.
///
/// # Errors
///
/// As for [`parse`].
pub fn parse_as(bytes: &[u8], sql_type: &SqlType, encoding: &'static Encoding) -> Result<Datum> {
    match (sql_type.base.element(), sql_type.domain_array) {
        (Some(element), Some(array)) => nested::parse_array(bytes, (element, array), encoding),
        _ => parse(bytes, &sql_type.base, encoding),
    }
}

/// Decodes a value from its binary form.
///
/// # Errors
///
/// `22P03` if the bytes are malformed for the type; 22021 and 22P05 if text is not valid in the
/// encoding.
pub fn parse(bytes: &[u8], data_type: &DataType, encoding: &'static Encoding) -> Result<Datum> {
    Ok(match data_type {
        DataType::Bool => Datum::Bool(fixed::<1>(bytes, data_type)? != [0]),
        DataType::Int2 => Datum::Int2(i16::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Int4 => Datum::Int4(i32::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Int8 => Datum::Int8(i64::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Oid | DataType::Reg(_) => {
            Datum::Int8(i64::from(u32::from_be_bytes(fixed(bytes, data_type)?)))
        }
        DataType::Float4 => Datum::Float4(f32::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Float8 => Datum::Float8(f64::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Numeric => Datum::Numeric(parse_numeric(bytes)?),
        DataType::Date => Datum::Date(i32::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Time => {
            let time = i64::from_be_bytes(fixed(bytes, data_type)?);
            if !(0..=MICROS_PER_DAY).contains(&time) {
                bail!(DATETIME_FIELD_OVERFLOW: "time out of range");
            }
            Datum::Time(time)
        }
        DataType::Timestamp => Datum::Timestamp(i64::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Timestamptz => Datum::Timestamptz(i64::from_be_bytes(fixed(bytes, data_type)?)),
        DataType::Interval => {
            let value = u128::from_be_bytes(fixed(bytes, data_type)?);
            let (months, days) = (value as u32 as i32, (value >> 32) as u32 as i32);
            Datum::Interval(Interval::new(months, days, (value >> 64) as u64 as i64))
        }
        DataType::Uuid => Datum::Uuid(fixed(bytes, data_type)?),
        DataType::Enum(of) => Datum::Int8(of.parse(&encoding.decode_text(bytes)?)?),
        DataType::Bytea => Datum::bytea(bytes),
        DataType::InternalChar => text::char_of(fixed::<1>(bytes, data_type)?[0]),
        DataType::Word(kind) => Datum::Int8(kind.of_unsigned(parse_word(bytes, *kind)?)),
        DataType::AclItem | DataType::NodeTree => {
            bail!(UNDEFINED_FUNCTION: "no binary input function available for type {}", data_type.sql_name());
        }
        _ if data_type.representation() == Representation::Nested => {
            nested::parse(bytes, data_type, encoding)?
        }
        _ => Datum::text(&*encoding.decode_text(bytes)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(value: &Datum, data_type: &DataType) -> Datum {
        let mut bytes = Vec::new();
        write(
            value,
            data_type,
            Encoding::utf8(),
            &mut InterruptPacer::without_interrupt(),
            &mut bytes,
        )
        .unwrap();
        parse(&bytes, data_type, Encoding::utf8()).unwrap()
    }

    #[test]
    fn binary_numeric_preserves_scale() {
        for text in ["0", "0.00", "1.10", "-12345.678", "1e30", "NaN", "-Infinity", "0.00001"] {
            let value = Datum::Numeric(Numeric::parse(text).unwrap());
            let read = back(&value, &DataType::Numeric);
            assert_eq!(format!("{read:?}"), format!("{value:?}"), "{text}");
        }
        let mut bytes = Vec::new();
        let value = Datum::Numeric(Numeric::parse("1.10").unwrap());
        write(
            &value,
            &DataType::Numeric,
            Encoding::utf8(),
            &mut InterruptPacer::without_interrupt(),
            &mut bytes,
        )
        .unwrap();
        assert_eq!(bytes, [0, 2, 0, 0, 0, 0, 0, 2, 0, 1, 3, 232]);
    }

    #[test]
    fn binary_values_of_wrong_width_are_rejected() {
        assert_eq!(
            parse(&[0, 1], &DataType::Int4, Encoding::utf8()).unwrap_err().sqlstate,
            "22P03"
        );
        assert_eq!(
            parse(&[1; 9], &DataType::Numeric, Encoding::utf8()).unwrap_err().sqlstate,
            "22P03"
        );
        let interval = Datum::Interval(Interval::new(14, -3, 5));
        assert_eq!(format!("{:?}", back(&interval, &DataType::Interval)), format!("{interval:?}"));
        assert_eq!(back(&Datum::Int8(4_000_000_000), &DataType::Oid), Datum::Int8(4_000_000_000));
    }

    #[test]
    fn binary_parser_does_not_panic() {
        for length in 0..24 {
            for byte in [0u8, 1, 0x27, 0x40, 0xC0, 0xFF] {
                let _ = parse(&vec![byte; length], &DataType::Numeric, Encoding::utf8());
                let _ = parse(&vec![byte; length], &DataType::Text, Encoding::utf8());
            }
        }
    }
    #[test]
    fn binary_text_is_converted_at_any_nesting_depth() {
        let latin = Encoding::by_name("latin1").unwrap();
        let arrays = DataType::Text.array().unwrap();
        for (data_type, text, bytes) in [
            (DataType::Text, "é", &b"\xe9"[..]),
            (DataType::Jsonb, "[\"é\"]", b"\x01[\"\xe9\"]"),
            (DataType::Json, "\"é\"", b"\"\xe9\""),
            (arrays, "{é}", b"\0\0\0\x01\0\0\0\0\0\0\0\x19\0\0\0\x01\0\0\0\x01\0\0\0\x01\xe9"),
        ] {
            let value = text::parse(text, &data_type, &TextStyle::default()).unwrap();
            let mut out = Vec::new();
            write(&value, &data_type, latin, &mut InterruptPacer::without_interrupt(), &mut out)
                .unwrap();
            assert_eq!(out, bytes, "{text}");
            assert_eq!(parse(&out, &data_type, latin).unwrap(), value, "{text}");
            assert_eq!(parse(&out, &data_type, Encoding::utf8()).unwrap_err().sqlstate, "22021");
        }
        let euro = Datum::text("€");
        let mut out = Vec::new();
        let refused = write(
            &euro,
            &DataType::Text,
            latin,
            &mut InterruptPacer::without_interrupt(),
            &mut out,
        );
        assert_eq!(refused.unwrap_err().sqlstate, "22P05");
    }
}
