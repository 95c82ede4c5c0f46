//! The binary form of values on the wire, as PostgreSQL's `typsend` and `typreceive` define it.

use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Result;

/// Appends the binary form of a value that is not NULL, without a length word.
pub fn write(value: &Datum, data_type: DataType, out: &mut Vec<u8>) {
    let _ = (value, data_type, out);
    todo!("types/binary")
}

/// Returns the value of a binary form.
///
/// # Errors
///
/// `22P03` if the bytes are not of the type.
pub fn parse(bytes: &[u8], data_type: DataType) -> Result<Datum> {
    let _ = (bytes, data_type);
    todo!("types/binary")
}
