//! Encoding of [`Nested`] values (arrays, `json`, `jsonb` and others) in packed rows. Byte by
//! byte: `docs/formats/packed-row.md`.

use std::sync::Arc;

use super::{corrupt, value};
use crate::datatype::composite::{CompositeType, Fields};
use crate::datatype::{DataType, GeometryKind};
use crate::datum::stored_json;
use crate::datum::{
    Array, Bits, Datum, Dimension, Geometry, Jsonb, MAX_DIMENSIONS, Nested, Record,
};
use crate::error::Result;
use crate::text::{self, TextStyle};
use crate::varint;

/// Appends a value.
pub(super) fn write(nested: &Nested, fields: &mut Vec<Fields>, out: &mut Vec<u8>) {
    match nested {
        Nested::Array(array) => write_array(array, fields, out),
        Nested::Json(text) => out.extend_from_slice(text.as_bytes()),
        Nested::Jsonb(json) => match json.stored() {
            Some(stored) => out.extend_from_slice(stored.bytes()),
            None => stored_json::write(json, out),
        },
        Nested::JsonPath(_) => {
            text::write_short(
                &Datum::Nested(nested.clone()),
                &DataType::JsonPath,
                &TextStyle::default(),
                out,
            );
        }
        Nested::Record(record) => match &record.of {
            Some(of) => write_composite(record, of, fields, out),
            None => write_record(record, fields, out),
        },
        Nested::Bits(bits) => {
            varint::put(bits.len() as u64, out);
            out.extend_from_slice(bits.bytes());
        }
        Nested::Geometry(value) => {
            if value.kind() == GeometryKind::Path {
                out.push(u8::from(value.is_closed_path()));
            }
            value.numbers().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        }
        Nested::Timetz { time, west } => {
            out.extend_from_slice(&time.to_le_bytes());
            out.extend_from_slice(&west.to_le_bytes());
        }
    }
}

/// Appends a value of a composite type, with values by attribute number; NULL for dropped
/// attributes.
fn write_composite(
    record: &Record,
    of: &CompositeType,
    fields: &mut Vec<Fields>,
    out: &mut Vec<u8>,
) {
    let attributes = of.attributes();
    let count = attributes.last().map_or(0, |last| last.number + 1);
    varint::put(count as u64, out);
    let mut next = 0;
    for (datum, attribute) in record.values.iter().zip(attributes) {
        (next..attribute.number).for_each(|_| out.push(0));
        write_element(datum, fields, out);
        next = attribute.number + 1;
    }
}

/// Appends a value after its length plus 1; 0 for NULL.
fn write_element(element: &Datum, fields: &mut Vec<Fields>, out: &mut Vec<u8>) {
    if element.is_null() {
        out.push(0);
        return;
    }
    let mut bytes = Vec::new();
    value::write(element, fields, &mut bytes);
    varint::put((bytes.len() + 1) as u64, out);
    out.extend_from_slice(&bytes);
}

/// Appends a record after the position in `fields` of the names and types of its fields, which
/// its type does not contain.
fn write_record(record: &Record, fields: &mut Vec<Fields>, out: &mut Vec<u8>) {
    let position = fields.iter().position(|known| *known == record.fields);
    varint::put(position.unwrap_or(fields.len()) as u64, out);
    if position.is_none() {
        fields.push(Arc::clone(&record.fields));
    }
    record.values.iter().for_each(|datum| write_element(datum, fields, out));
}

/// Decodes all of `bytes`.
pub(super) fn read(bytes: &[u8], data_type: &DataType, fields: &[Fields]) -> Result<Nested> {
    let mut reader = Reader { bytes, fields };
    let nested = match data_type {
        DataType::Json => {
            let text = std::str::from_utf8(bytes).map_err(|_| corrupt("invalid UTF-8 json"))?;
            return Ok(Nested::Json(Arc::new(text.to_owned())));
        }
        DataType::Jsonb => return Jsonb::of_stored(bytes).map(Nested::Jsonb),
        DataType::JsonPath => {
            let path = std::str::from_utf8(bytes).ok();
            let path = path.map(|path| text::parse(path, data_type, &TextStyle::default()));
            return match path {
                Some(Ok(Datum::Nested(path))) => Ok(path),
                _ => Err(corrupt("invalid jsonpath")),
            };
        }
        DataType::Record => Nested::Record(Arc::new(reader.record()?)),
        DataType::Composite(of) => Nested::Record(Arc::new(reader.composite(of)?)),
        DataType::Bit | DataType::Varbit => {
            let length = reader.varint()?;
            let bytes = std::mem::take(&mut reader.bytes);
            let bits = Bits::from_bytes(length, bytes);
            Nested::Bits(Arc::new(bits.ok_or_else(|| corrupt("truncated bit string"))?))
        }
        DataType::Geometry(kind) => Nested::Geometry(Arc::new(reader.geometry(*kind)?)),
        DataType::Timetz => {
            let time = reader.take(8)?.first_chunk().copied().unwrap_or_default();
            let west = reader.take(4)?.first_chunk().copied().unwrap_or_default();
            Nested::Timetz { time: i64::from_le_bytes(time), west: i32::from_le_bytes(west) }
        }
        _ => match data_type.element() {
            Some(element) => Nested::Array(Arc::new(reader.array(element)?)),
            None => return Err(corrupt("a value is not an array, record or domain")),
        },
    };
    match reader.bytes {
        [] => Ok(nested),
        _ => Err(corrupt("trailing bytes after a value")),
    }
}

fn write_array(array: &Array, fields: &mut Vec<Fields>, out: &mut Vec<u8>) {
    array.check();
    out.push(array.dimensions.len() as u8);
    for dimension in &array.dimensions {
        out.extend_from_slice(&dimension.lower.to_le_bytes());
        varint::put(dimension.length as u64, out);
    }
    array.elements.iter().for_each(|element| write_element(element, fields, out));
}

struct Reader<'a> {
    bytes: &'a [u8],
    fields: &'a [Fields],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or_else(|| corrupt("truncated value"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<usize> {
        let length = varint::take(&mut self.bytes).ok_or_else(|| corrupt("unterminated length"))?;
        usize::try_from(length).map_err(|_| corrupt("invalid length"))
    }

    fn geometry(&mut self, kind: GeometryKind) -> Result<Geometry> {
        let is_closed = kind == GeometryKind::Path && self.byte()? != 0;
        let (numbers, rest) = self.bytes.as_chunks::<8>();
        self.bytes = rest;
        let numbers: Vec<f64> = numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        Geometry::of_numbers(kind, is_closed, &numbers)
            .ok_or_else(|| corrupt("invalid geometric value"))
    }

    fn array(&mut self, element: &DataType) -> Result<Array> {
        let dimension_count = usize::from(self.byte()?);
        if dimension_count > MAX_DIMENSIONS {
            return Err(corrupt("an array has too many dimensions"));
        }
        let mut dimensions = Vec::with_capacity(dimension_count);
        let mut count = usize::from(dimension_count > 0);
        for _ in 0..dimension_count {
            let lower = self.take(4)?.first_chunk().copied().unwrap_or_default();
            let length = self.varint()?;
            count = count.saturating_mul(length);
            dimensions.push(Dimension { lower: i32::from_le_bytes(lower), length });
        }
        // Each element takes at least one byte.
        if count > self.bytes.len() || dimensions.iter().any(|dimension| dimension.length == 0) {
            return Err(corrupt("truncated array"));
        }
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(self.element(element)?);
        }
        Ok(Array { dimensions, elements })
    }

    fn record(&mut self) -> Result<Record> {
        let fields = self.fields.get(self.varint()?);
        let fields = fields.ok_or_else(|| corrupt("a record has unknown fields"))?;
        let values = fields.iter().map(|(_, data_type)| self.element(data_type));
        let values = values.collect::<Result<_>>()?;
        Ok(Record { of: None, fields: Arc::clone(fields), values })
    }

    /// Reads a value of a composite type. Attributes added since are NULL; values of dropped ones
    /// are skipped.
    fn composite(&mut self, of: &Arc<CompositeType>) -> Result<Record> {
        let count = self.varint()?;
        let mut values = vec![Datum::Null; of.attributes().len()];
        let mut attributes = of.attributes().iter().zip(&mut values).peekable();
        for number in 0..count {
            match attributes.next_if(|(attribute, _)| attribute.number == number) {
                Some((attribute, value)) => *value = self.element(&attribute.sql_type.base)?,
                None => {
                    let length = self.varint()?.saturating_sub(1);
                    self.take(length)?;
                }
            }
        }
        Ok(Record::of_type(of, values))
    }

    fn element(&mut self, data_type: &DataType) -> Result<Datum> {
        let mut datum = Datum::Null;
        if let Some(length) = self.varint()?.checked_sub(1) {
            value::read(self.take(length)?, data_type, self.fields, &mut datum)?;
        }
        Ok(datum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::composite::Attribute;
    use crate::datatype::identity::TypeIdentity;

    fn bytes(text: &str, data_type: &DataType) -> (Nested, Vec<u8>) {
        let value = text::parse(text, data_type, &TextStyle::default()).unwrap();
        let Datum::Nested(nested) = value else { panic!("{text} is not nested") };
        let mut out = Vec::new();
        write(&nested, &mut Vec::new(), &mut out);
        (nested, out)
    }

    #[test]
    fn nested_values_round_trip_and_detect_corruption() {
        let array = |element: DataType| element.array().unwrap();
        let cases = [
            (array(DataType::Int4), "{1,NULL,-3}"),
            (array(DataType::Text), "[0:1][2:3]={{a,\"\"},{NULL,\"x,y\"}}"),
            (array(DataType::Numeric), "{1.50,NaN,12345678901234567890.5}"),
            (array(DataType::Jsonb), r#"{"{\"a\": 1}",NULL}"#),
            (array(DataType::Bool), "{}"),
            (DataType::Jsonb, r#"{"b": [1, 2.50, null, true], "a": {"": "x"}, "bb": false}"#),
            (DataType::Jsonb, "[]"),
            (DataType::Json, "{ \"a\" : 1 }"),
        ];
        for (data_type, text) in cases {
            let (value, written) = bytes(text, &data_type);
            assert_eq!(read(&written, &data_type, &[]).unwrap(), value, "{text}");
            for cut in 0..written.len() {
                // A truncated text is a valid shorter text.
                let result = read(&written[..cut], &data_type, &[]);
                assert!(result.is_err() || data_type == DataType::Json, "{text} {cut}");
            }
            for at in 0..written.len() {
                let mut damaged = written.clone();
                damaged[at] ^= 0x55;
                drop(read(&damaged, &data_type, &[]));
            }
        }
    }

    fn composite(attributes: &[(usize, &str, DataType)]) -> DataType {
        let attribute = |(number, name, base): &(usize, &str, DataType)| Attribute {
            name: (*name).into(),
            sql_type: base.clone().into(),
            number: *number,
        };
        let identity = TypeIdentity::new((98_000, 98_001), ("public", "c"), "c".to_owned());
        let attributes = attributes.iter().map(attribute).collect();
        DataType::Composite(Arc::new(CompositeType::new(identity, attributes)))
    }

    #[test]
    fn composite_values_survive_attribute_changes() {
        let (int, text) = (DataType::Int4, DataType::Text);
        let before = composite(&[(0, "a", int.clone()), (1, "b", text.clone())]);
        let (_, written) = bytes("(258,x)", &before);
        assert_eq!(written, [2, 5, 2, 1, 0, 0, 2, b'x']);
        let shown = |data_type: DataType| {
            let value = Datum::Nested(read(&written, &data_type, &[]).unwrap());
            let mut out = Vec::new();
            text::write(&value, &data_type, &TextStyle::default(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(before), "(258,x)");
        let after = composite(&[(1, "b", text), (2, "c", int)]);
        assert_eq!(shown(after.clone()), "(x,)");
        let (_, written) = bytes("(x,7)", &after);
        assert_eq!(written, [3, 0, 2, b'x', 5, 7, 0, 0, 0]);
        for cut in 0..written.len() {
            assert!(read(&written[..cut], &after, &[]).is_err(), "{cut}");
        }
    }

    #[test]
    fn nested_encoding_matches_documentation() {
        let (_, array) = bytes("{258,NULL}", &DataType::array_of(&DataType::Int4));
        assert_eq!(array, [1, 1, 0, 0, 0, 2, 5, 2, 1, 0, 0, 0]);
        let (_, json) = bytes(r#"{"n": 7, "a": [true, null]}"#, &DataType::Jsonb);
        assert_eq!(json, [6, 2, 1, b'a', 5, 2, 2, 0, 1, b'n', 3, 2, 0, 7]);
    }
}
