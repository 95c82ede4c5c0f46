//! Encoding of internal metadata records: frames, tagged records, and the only user of `bincode`.
//!
//! ```text
//! offset  size  field
//!      0     4  length   u32, bytes of the payload
//!      4     4  crc32c   u32, of the payload
//!      8     n  payload: a version byte, then the record
//! ```
//!
//! Integers of the frame are little-endian. Records of the manifest are in bincode's standard form:
//! variable-length integers, sequences with their length in front (`docs/formats/manifest.md`).
//! Records of the catalog consist of tagged fields ([`tagged`], `docs/formats/catalog.md`). Cells,
//! log records and store files have hand-written encodings instead.

mod input;
pub mod tagged;

use bincode::config;

pub(crate) use crate::codec::input::{Input, push_varint};
use crate::codec::tagged::{FieldInput, FieldValue};

/// Version of the records of the manifest: the first byte of each payload.
pub const RECORD_VERSION: u8 = 1;

/// Version of tagged records.
pub const TAGGED_VERSION: u8 = 2;

/// Bytes of a frame before its payload.
pub const FRAME_HEAD_BYTES: usize = 8;

/// Reason why the bytes at an offset are not a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordDamage {
    /// The frame is incomplete or its checksum is wrong: a torn write, if nothing follows.
    Broken(String),
    /// The frame is complete, but its content is of another version or invalid.
    Unreadable(String),
}

/// Limit of the memory that a decoded record may claim, far above any real one: prevents the
/// allocation of an invalid length.
const RECORD_MEMORY_MAX: usize = 1 << 30;

/// Appends a record with its frame.
pub fn append_record<T: bincode::Encode>(record: &T, out: &mut Vec<u8>) {
    append_frame(RECORD_VERSION, out, |out| {
        bincode::encode_into_std_write(record, out, config::standard())
            .expect("a vector takes all bytes and metadata has no type that cannot be encoded");
    });
}

/// Returns a tagged record with its frame.
pub fn encode_tagged<T: FieldValue>(record: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    append_frame(TAGGED_VERSION, &mut bytes, |out| record.append(out));
    bytes
}

fn append_frame(version: u8, out: &mut Vec<u8>, append_record: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
    out.push(version);
    append_record(out);
    let payload_start = start + FRAME_HEAD_BYTES;
    assert!(u32::try_from(out.len() - payload_start).is_ok(), "the record fits its frame");
    let length = (out.len() - payload_start) as u32;
    let checksum = crc32c::crc32c(&out[payload_start..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..payload_start].copy_from_slice(&checksum.to_le_bytes());
}

/// Decodes a tagged record with its frame.
///
/// # Errors
///
/// As [`read_record`]; trailing bytes.
pub fn decode_tagged<T: FieldValue>(bytes: &[u8]) -> Result<T, RecordDamage> {
    let payload = versioned_payload(bytes, TAGGED_VERSION)?;
    let trailing = bytes.len() - FRAME_HEAD_BYTES - payload.len();
    if trailing > 0 {
        return Err(RecordDamage::Unreadable(format!("{trailing} trailing bytes")));
    }
    T::read(FieldInput::of_payload(payload, 1)).map_err(RecordDamage::Unreadable)
}

/// Decodes the record at the start of `bytes`; returns it with its length. `context` is what the
/// record's decoding depends on: the version of its file, or nothing.
///
/// # Errors
///
/// [`RecordDamage`] distinguishes a damaged frame from damaged content.
pub fn read_record<C, T: bincode::Decode<C>>(
    bytes: &[u8],
    context: C,
) -> Result<(T, usize), RecordDamage> {
    let payload = versioned_payload(bytes, RECORD_VERSION)?;
    let limited = config::standard().with_limit::<RECORD_MEMORY_MAX>();
    let (record, used) =
        bincode::decode_from_slice_with_context(&payload[1..], limited, context)
            .map_err(|error| RecordDamage::Unreadable(format!("cannot decode record: {error}")))?;
    if used != payload.len() - 1 {
        return Err(RecordDamage::Unreadable(format!(
            "{} trailing bytes",
            payload.len() - 1 - used
        )));
    }
    Ok((record, FRAME_HEAD_BYTES + payload.len()))
}

/// Returns whether a complete record begins anywhere in `bytes`: distinguishes damage from a torn
/// tail.
pub fn holds_record(bytes: &[u8]) -> bool {
    (0..bytes.len()).any(|offset| frame_payload(&bytes[offset..]).is_ok())
}

fn versioned_payload(bytes: &[u8], supported: u8) -> Result<&[u8], RecordDamage> {
    let payload = frame_payload(bytes).map_err(RecordDamage::Broken)?;
    match payload[0] {
        version if version == supported => Ok(payload),
        version => Err(RecordDamage::Unreadable(format!(
            "unsupported record version {version}; the supported version is {supported}"
        ))),
    }
}

fn frame_payload(bytes: &[u8]) -> Result<&[u8], String> {
    let Some((head, rest)) = bytes.split_at_checked(FRAME_HEAD_BYTES) else {
        return Err(format!("{} bytes are too short for a record", bytes.len()));
    };
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (length, checksum) = (word(0) as usize, word(4));
    if length == 0 {
        return Err("record is empty".into());
    }
    let Some(payload) = rest.get(..length) else {
        return Err(format!("record of {length} bytes is truncated to {} bytes", rest.len()));
    };
    let found = crc32c::crc32c(payload);
    if found != checksum {
        return Err(format!("checksum mismatch: computed {found:08x}, stored {checksum:08x}"));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_detect_corruption() {
        let mut bytes = Vec::new();
        append_record(&(7u64, String::from("seven")), &mut bytes);
        let whole = bytes.len();
        append_record(&(8u64, String::from("eight")), &mut bytes);
        let (record, used) = read_record::<(), (u64, String)>(&bytes, ()).unwrap();
        assert_eq!((record.0, record.1.as_str(), used), (7, "seven", whole));

        let torn = read_record::<(), (u64, String)>(&bytes[whole..bytes.len() - 1], ());
        assert!(matches!(torn, Err(RecordDamage::Broken(_))), "{torn:?}");
        bytes[whole - 1] ^= 1;
        assert!(matches!(
            read_record::<(), (u64, String)>(&bytes, ()),
            Err(RecordDamage::Broken(_))
        ));
        assert!(holds_record(&bytes[1..]), "the second record is whole");
        assert!(!holds_record(&bytes[whole + 1..]));
    }

    #[test]
    fn unknown_record_version_is_rejected() {
        let mut bytes = Vec::new();
        append_record(&1u8, &mut bytes);
        bytes[FRAME_HEAD_BYTES] = 9;
        let checksum = crc32c::crc32c(&bytes[FRAME_HEAD_BYTES..]);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        assert!(matches!(read_record::<(), u8>(&bytes, ()), Err(RecordDamage::Unreadable(_))));
    }

    #[test]
    fn oversized_length_field_is_rejected() {
        let mut bytes = Vec::new();
        append_record(&u64::MAX, &mut bytes);
        assert!(matches!(
            read_record::<(), Vec<u64>>(&bytes, ()),
            Err(RecordDamage::Unreadable(_))
        ));
        let mut bytes = Vec::new();
        append_record(&(1u64 << 40), &mut bytes);
        assert!(matches!(
            read_record::<(), Vec<u64>>(&bytes, ()),
            Err(RecordDamage::Unreadable(_))
        ));
    }
}
