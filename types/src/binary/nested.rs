//! Binary format of arrays, `json`, `jsonb`, and other [`Nested`] values.
//!
//! * Array: number of dimensions, NULL flag, OID of the element type (4 bytes each); length and
//!   lower bound of each dimension; the elements, each preceded by its length, -1 for NULL.
//! * `jsonb` and `jsonpath`: a version byte and the text. `json`: the text.
//! * Record: the number of fields; for each the OID of its type and the value as an element.
//! * Bit string: the number of bits (4 bytes), then the bytes.
//! * `timetz`: the microseconds (8 bytes) and the seconds west of Greenwich (4 bytes).

use std::num::NonZeroU32;
use std::sync::Arc;

use super::{bad, geometry};
use crate::datatype::composite::CompositeType;
use crate::datatype::{DataType, SqlType};
use crate::datetime::MICROS_PER_DAY;
use crate::datum::{Array, Bits, Datum, Dimension, MAX_DIMENSIONS, MAX_ELEMENTS, Nested, Record};
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::modifier;
use crate::text::{self, TextStyle};

/// The version of the binary forms of `jsonb` and `jsonpath`.
const JSON_VERSION: u8 = 1;

pub(super) fn write(
    nested: &Nested,
    data_type: &DataType,
    encoding: &'static Encoding,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    match nested {
        Nested::Array(array) => {
            let element = data_type.element().unwrap_or(&DataType::Unknown);
            return write_array(array, element, encoding, pace, out);
        }
        Nested::Record(record) => return write_record(record, encoding, pace, out),
        Nested::Json(text) => pace.append(out, text.as_bytes())?,
        Nested::Jsonb(json) => {
            out.push(JSON_VERSION);
            text::write_jsonb(json, pace, out)?;
        }
        Nested::JsonPath(_) => {
            out.push(JSON_VERSION);
            let value = Datum::Nested(nested.clone());
            text::write_short(&value, data_type, &TextStyle::default(), out);
        }
        Nested::Bits(bits) => {
            out.extend_from_slice(&(bits.len() as u32).to_be_bytes());
            out.extend_from_slice(bits.bytes());
            return Ok(());
        }
        Nested::Geometry(value) => return geometry::write(value, pace, out),
        Nested::Timetz { time, west } => {
            out.extend_from_slice(&time.to_be_bytes());
            out.extend_from_slice(&west.to_be_bytes());
            return Ok(());
        }
    }
    encoding.encode_tail(out, start, pace)
}

fn write_array(
    array: &Array,
    element: &DataType,
    encoding: &'static Encoding,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let has_null = array.elements.iter().any(Datum::is_null);
    out.extend_from_slice(&(array.dimensions.len() as u32).to_be_bytes());
    out.extend_from_slice(&u32::from(has_null).to_be_bytes());
    out.extend_from_slice(&element.oid().to_be_bytes());
    for dimension in &array.dimensions {
        out.extend_from_slice(&(dimension.length as u32).to_be_bytes());
        out.extend_from_slice(&dimension.lower.to_be_bytes());
    }
    array.elements.iter().try_for_each(|value| write_element(value, element, encoding, pace, out))
}

/// Appends a value, preceded by its length.
fn write_element(
    value: &Datum,
    data_type: &DataType,
    encoding: &'static Encoding,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    pace.step(out, ELEMENT)?;
    if value.is_null() {
        out.extend_from_slice(&(-1_i32).to_be_bytes());
        return Ok(());
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    super::write(value, data_type, encoding, pace, out)?;
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Cost of an element in addition to its bytes, for the interrupt check.
const ELEMENT: usize = 16;

fn write_record(
    record: &Record,
    encoding: &'static Encoding,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.extend_from_slice(&(record.values.len() as u32).to_be_bytes());
    for (index, value) in record.values.iter().enumerate() {
        let data_type = &record.fields[index].1;
        let declared = record.of.as_ref().map(|of| of.attributes()[index].sql_type.oid());
        out.extend_from_slice(&declared.unwrap_or_else(|| data_type.oid()).to_be_bytes());
        write_element(value, data_type, encoding, pace, out)?;
    }
    Ok(())
}

pub(super) fn parse(
    bytes: &[u8],
    data_type: &DataType,
    encoding: &'static Encoding,
) -> Result<Datum> {
    let nested = match data_type {
        DataType::Jsonb | DataType::JsonPath => {
            let Some((&JSON_VERSION, json)) = bytes.split_first() else {
                let version = bytes.first().copied().unwrap_or_default();
                let name = data_type.sql_name();
                bail!(INTERNAL_ERROR: "unsupported {name} version number {version}");
            };
            return text::parse(&encoding.decode_text(json)?, data_type, &TextStyle::default());
        }
        DataType::Json => {
            let text = encoding.decode_text(bytes)?;
            return text::parse(&text, &DataType::Json, &TextStyle::default());
        }
        DataType::Record => {
            bail!(FEATURE_NOT_SUPPORTED: "input of anonymous composite types is not implemented");
        }
        DataType::Composite(of) => {
            let mut reader = Reader { bytes, encoding };
            let record = reader.composite(of)?;
            if !reader.bytes.is_empty() {
                return Err(bad("incorrect binary data format"));
            }
            Nested::Record(Arc::new(record))
        }
        DataType::Bit | DataType::Varbit => {
            let mut reader = Reader { bytes, encoding };
            let length = usize::try_from(reader.word()?)
                .map_err(|_| bad("invalid length in external bit string"))?;
            let bits = Bits::from_bytes(length, reader.bytes);
            let bits = bits.ok_or_else(|| bad("insufficient data left in message"))?;
            Nested::Bits(Arc::new(bits))
        }
        DataType::Geometry(kind) => Nested::Geometry(Arc::new(geometry::parse(bytes, *kind)?)),
        DataType::Timetz => {
            let value: [u8; 12] = super::fixed(bytes, data_type)?;
            let (time, west) = value.split_at(8);
            let time = i64::from_be_bytes(time.try_into().unwrap_or_default());
            let west = i32::from_be_bytes(west.try_into().unwrap_or_default());
            if !(0..=MICROS_PER_DAY).contains(&time) {
                bail!(DATETIME_FIELD_OVERFLOW: "time out of range");
            }
            // PostgreSQL's TZDISP_LIMIT: less than 16 hours.
            if west.unsigned_abs() >= 16 * 3600 {
                bail!(INVALID_TIME_ZONE_DISPLACEMENT_VALUE: "time zone displacement out of range");
            }
            Nested::Timetz { time, west }
        }
        other => {
            let Some(element) = other.element() else {
                return Err(bad(&format!("no binary form of type {}", other.sql_name())));
            };
            return array_of(bytes, (element, element.oid()), encoding);
        }
    };
    Ok(Datum::Nested(nested))
}

/// Decodes an array of a domain over a type; `array` is the OID of the domain's array type, which
/// follows that of the domain.
pub(super) fn parse_array(
    bytes: &[u8],
    (element, array): (&DataType, NonZeroU32),
    encoding: &'static Encoding,
) -> Result<Datum> {
    array_of(bytes, (element, array.get() - 1), encoding)
}

/// Decodes an array. Its element type may be given as `oid` (of a domain) instead.
fn array_of(
    bytes: &[u8],
    (element, oid): (&DataType, u32),
    encoding: &'static Encoding,
) -> Result<Datum> {
    let mut reader = Reader { bytes, encoding };
    let array = reader.array(element, oid)?;
    if !reader.bytes.is_empty() {
        return Err(bad("incorrect binary data format for an array"));
    }
    Ok(Datum::Nested(Nested::Array(Arc::new(array))))
}

struct Reader<'a> {
    bytes: &'a [u8],
    encoding: &'static Encoding,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(count)
            .ok_or_else(|| bad("insufficient data left in message"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn word(&mut self) -> Result<i32> {
        let bytes = self.take(4)?.first_chunk().copied().unwrap_or_default();
        Ok(i32::from_be_bytes(bytes))
    }

    fn array(&mut self, element: &DataType, domain: u32) -> Result<Array> {
        let dimension_count = self.word()?;
        let count = usize::try_from(dimension_count).ok().filter(|n| *n <= MAX_DIMENSIONS);
        let count = count
            .ok_or_else(|| bad(&format!("invalid number of dimensions: {dimension_count}")))?;
        let flags = self.word()?;
        if !(0..=1).contains(&flags) {
            return Err(bad("invalid array flags"));
        }
        let oid = self.word()?.cast_unsigned();
        if ![element.oid(), domain].contains(&oid) {
            bail!(DATATYPE_MISMATCH: "binary data has array element type {oid} instead of expected {domain}");
        }
        let mut dimensions = Vec::with_capacity(count);
        let mut element_count = usize::from(count > 0);
        for _ in 0..count {
            let (length, lower) = (self.word()?, self.word()?);
            let length = usize::try_from(length).map_err(|_| bad("invalid array dimension"))?;
            element_count = element_count.saturating_mul(length);
            dimensions.push(Dimension { lower, length });
        }
        // Each element takes at least four bytes.
        if element_count > MAX_ELEMENTS || element_count > self.bytes.len() / 4 {
            return Err(bad("insufficient data left in message"));
        }
        if element_count == 0 {
            return Ok(Array::default());
        }
        let mut elements = Vec::with_capacity(element_count);
        let sql_type = SqlType::from(element.clone());
        for _ in 0..element_count {
            elements.push(self.element(&sql_type)?);
        }
        Ok(Array { dimensions, elements })
    }

    fn element(&mut self, sql_type: &SqlType) -> Result<Datum> {
        match self.word()? {
            -1 => Ok(Datum::Null),
            length => {
                let length = usize::try_from(length)
                    .map_err(|_| bad("insufficient data left in message"))?;
                super::parse_as(self.take(length)?, sql_type, self.encoding)
            }
        }
    }

    fn composite(&mut self, of: &Arc<CompositeType>) -> Result<Record> {
        let (count, expected) = (self.word()?, of.attributes().len());
        if usize::try_from(count) != Ok(expected) {
            bail!(DATATYPE_MISMATCH: "wrong number of columns: {count}, expected {expected}");
        }
        let mut values = Vec::with_capacity(expected);
        for (index, attribute) in of.attributes().iter().enumerate() {
            let SqlType { base, modifier, .. } = &attribute.sql_type;
            let (found, wanted) = (self.word()?.cast_unsigned(), attribute.sql_type.oid());
            if found != wanted {
                let name = |oid, own: &str| match DataType::from_oid(oid) {
                    Some(known) => known.sql_name().to_owned(),
                    None => own.to_owned(),
                };
                let message = format!(
                    "binary data has type {found} ({}) instead of expected {wanted} ({}) \
                     in record column {}",
                    name(found, "???"),
                    name(wanted, base.sql_name()),
                    index + 1
                );
                bail!(DATATYPE_MISMATCH: message);
            }
            let value = self.element(&attribute.sql_type)?;
            values.push(match modifier {
                ..0 => value,
                _ => modifier::apply(value, &attribute.sql_type, false)?,
            });
        }
        Ok(Record::of_type(of, values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary;

    fn value(text: &str, data_type: &DataType) -> Datum {
        text::parse(text, data_type, &TextStyle::default()).unwrap()
    }

    #[test]
    fn array_elements_may_have_domain_type() {
        let int4s = DataType::array_of(&DataType::Int4);
        let array = NonZeroU32::new(90_001);
        let of_domain =
            SqlType { domain: Some(90_001), domain_array: array, ..int4s.clone().into() };
        let mut bytes = Vec::new();
        let value = value("{1,2}", &int4s);
        let pace = &mut InterruptPacer::without_interrupt();
        binary::write(&value, &int4s, Encoding::utf8(), pace, &mut bytes).unwrap();
        let read = |bytes: &[u8]| binary::parse_as(bytes, &of_domain, Encoding::utf8());
        assert_eq!(read(&bytes).unwrap(), value);
        bytes[8..12].copy_from_slice(&90_000_u32.to_be_bytes());
        assert_eq!(read(&bytes).unwrap(), value);
        let plain = binary::parse(&bytes, &int4s, Encoding::utf8());
        assert_eq!(plain.unwrap_err().sqlstate, "42804");
        bytes[8..12].copy_from_slice(&90_001_u32.to_be_bytes());
        assert_eq!(read(&bytes).unwrap_err().sqlstate, "42804");
    }

    #[test]
    fn binary_array_layout_matches_postgresql() {
        let int4s = DataType::array_of(&DataType::Int4);
        let mut bytes = Vec::new();
        binary::write(
            &value("{7,NULL}", &int4s),
            &int4s,
            Encoding::utf8(),
            &mut InterruptPacer::without_interrupt(),
            &mut bytes,
        )
        .unwrap();
        let words: [i32; 8] = [1, 1, 23, 2, 1, 4, 7, -1];
        let expected: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn nested_binary_values_round_trip_and_detect_corruption() {
        let array = |element: DataType| element.array().unwrap();
        for (data_type, text) in [
            (array(DataType::Text), "[2:3]={a,NULL}"),
            (array(DataType::Timestamptz), "{infinity,2024-01-01 00:00:00+00}"),
            (array(DataType::Oid), "{{1,4000000000}}"),
            (DataType::Jsonb, r#"{"a": [1, 2.50]}"#),
            (DataType::Json, " [1 ] "),
        ] {
            let value = value(text, &data_type);
            let mut bytes = Vec::new();
            binary::write(
                &value,
                &data_type,
                Encoding::utf8(),
                &mut InterruptPacer::without_interrupt(),
                &mut bytes,
            )
            .unwrap();
            assert_eq!(
                binary::parse(&bytes, &data_type, Encoding::utf8()).unwrap(),
                value,
                "{text}"
            );
            for cut in 0..bytes.len() - 1 {
                let cut = binary::parse(&bytes[..cut], &data_type, Encoding::utf8());
                assert!(cut.is_err() || data_type == DataType::Json, "{text}");
            }
        }
        let int4s = DataType::array_of(&DataType::Int4);
        let mut other = Vec::new();
        let int8s = DataType::array_of(&DataType::Int8);
        binary::write(
            &value("{1}", &int8s),
            &int8s,
            Encoding::utf8(),
            &mut InterruptPacer::without_interrupt(),
            &mut other,
        )
        .unwrap();
        assert_eq!(binary::parse(&other, &int4s, Encoding::utf8()).unwrap_err().sqlstate, "42804");
    }
}
