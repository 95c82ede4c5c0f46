//! Order-preserving bytes: `memcmp(encode(a), encode(b)) == compare(a, b)` for every type,
//! ascending or descending, NULLs first or last, decodable without knowing the value's length.
//!
//! Byte by byte: `docs/formats/key-encoding.md`.

use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;

/// Appends the key form of a value.
pub fn encode(
    value: &Datum,
    data_type: DataType,
    descending: bool,
    nulls_first: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let _ = (value, data_type, descending, nulls_first, out);
    todo!("types/keycode")
}

/// Returns the value at the start of `bytes` and the bytes it took.
///
/// # Errors
///
/// `XX001` if the bytes are not a key form of the type.
pub fn decode(
    bytes: &[u8],
    data_type: DataType,
    descending: bool,
    nulls_first: bool,
) -> Result<(Datum, usize)> {
    let _ = (bytes, data_type, descending, nulls_first);
    todo!("types/keycode")
}

/// Returns the smallest byte string greater than every string that begins with `prefix`; `None` if
/// there is none (`prefix` is empty or all 0xFF): the range is open.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}
