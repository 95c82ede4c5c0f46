//! Key encoding of arrays: each element after a marker byte, then an end byte, then the
//! dimensions.
//!
//! ```text
//! (0x02 element | 0x03)* 0x01  number of dimensions u8, lengths u32, lower bounds i32 (biased)
//! ```
//!
//! So arrays sort by their elements, NULL last, shorter ones first, then by dimensions, as in
//! PostgreSQL. Element types that lose information in keys are not supported, since residues of
//! elements are not stored.

use std::sync::Arc;

use super::{corrupt, decode_value, encode, fixed};
use crate::datatype::DataType;
use crate::datum::{Array, Datum, Dimension, MAX_DIMENSIONS, Nested};
use crate::error::Result;
use crate::vector::ValueSink;

const END: u8 = 0x01;
const VALUE: u8 = 0x02;
const NULL: u8 = 0x03;

pub(super) fn put(array: &Array, element: &DataType, out: &mut Vec<u8>) -> Result<()> {
    array.check();
    for value in &array.elements {
        encode(value, element, false, false, out)?;
    }
    out.push(END);
    out.push(array.dimensions.len() as u8);
    for dimension in &array.dimensions {
        out.extend_from_slice(&(dimension.length as u32).to_be_bytes());
    }
    for dimension in &array.dimensions {
        out.extend_from_slice(&(dimension.lower ^ i32::MIN).to_be_bytes());
    }
    Ok(())
}

pub(super) fn decode(
    bytes: &[u8],
    element: &DataType,
    mask: u8,
    sink: &mut impl ValueSink,
) -> Result<usize> {
    let mut elements = Vec::new();
    let mut at = 0;
    loop {
        let [marker] = fixed(&bytes[at..], mask)?;
        at += 1;
        match marker {
            END => break,
            NULL => elements.push(Datum::Null),
            VALUE => {
                let mut datum = Datum::Null;
                at += decode_value(&bytes[at..], element, mask, &mut datum)?;
                elements.push(datum);
            }
            _ => return Err(corrupt("invalid first byte of an element")),
        }
    }
    let [count] = fixed(&bytes[at..], mask)?;
    at += 1;
    if usize::from(count) > MAX_DIMENSIONS {
        return Err(corrupt("an array has too many dimensions"));
    }
    let mut dimensions = Vec::with_capacity(count.into());
    for _ in 0..count {
        let length = u32::from_be_bytes(fixed(&bytes[at..], mask)?) as usize;
        dimensions.push(Dimension { lower: 1, length });
        at += 4;
    }
    for dimension in &mut dimensions {
        dimension.lower = i32::from_be_bytes(fixed(&bytes[at..], mask)?) ^ i32::MIN;
        at += 4;
    }
    let expected = dimensions.iter().fold(usize::from(count > 0), |product, dimension| {
        product.saturating_mul(dimension.length)
    });
    if expected != elements.len() {
        return Err(corrupt("array does not match its dimensions"));
    }
    sink.put_nested(Nested::Array(Arc::new(Array { dimensions, elements })));
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keycode;
    use crate::text::{self, TextStyle};

    fn key(text: &str, data_type: &DataType, descending: bool) -> (Datum, Vec<u8>) {
        let value = text::parse(text, data_type, &TextStyle::default()).unwrap();
        let mut out = Vec::new();
        encode(&value, data_type, descending, false, &mut out).unwrap();
        (value, out)
    }

    fn check(data_type: &DataType, texts: &[&str]) {
        for left in texts {
            for right in texts {
                for descending in [false, true] {
                    let (a, left_key) = key(left, data_type, descending);
                    let (b, right_key) = key(right, data_type, descending);
                    let order = a.compare_typed(&b, data_type);
                    let order = if descending { order.reverse() } else { order };
                    assert_eq!(left_key.cmp(&right_key), order, "{left} {right} {descending}");
                    let (read, taken) =
                        keycode::decode(&left_key, data_type, descending, false).unwrap();
                    assert_eq!((read, taken), (a, left_key.len()), "{left}");
                    for cut in 0..left_key.len() {
                        let cut = &left_key[..cut];
                        keycode::decode(cut, data_type, descending, false).unwrap_err();
                    }
                }
            }
        }
    }

    #[test]
    fn array_keys_sort_like_arrays() {
        let integers = ["{}", "{1}", "{1,2}", "{1,NULL}", "{-5}", "{{1,2}}", "[0:1]={1,2}", "{2}"];
        check(&DataType::array_of(&DataType::Int4), &integers);
        let texts = ["{}", "{a}", "{a,b}", "{ab}", "{\"\"}", "{NULL}", "{b,a}", "{{a},{b}}"];
        check(&DataType::array_of(&DataType::Text), &texts);
    }

    #[test]
    fn lossy_element_types_are_rejected_in_array_keys() {
        assert!(keycode::check_type(&DataType::array_of(&DataType::Uuid)).is_ok());
        let refused = keycode::check_type(&DataType::array_of(&DataType::Numeric)).unwrap_err();
        assert_eq!(refused.sqlstate, "0A000");
        let of_documents = DataType::array_of(&DataType::Jsonb);
        assert_eq!(keycode::check_type(&of_documents).unwrap_err().sqlstate, "0A000");
        assert_eq!(keycode::check_type(&DataType::Json).unwrap_err().sqlstate, "42704");
    }
}
