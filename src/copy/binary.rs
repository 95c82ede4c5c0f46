//! The binary format of COPY: a header, rows of length-prefixed fields, and an end marker.
//!
//! ```text
//! PGCOPY\n\xff\r\n\0   flags u32   length of an extension u32   the extension
//! row: number of fields i16, then for each: length i32 (-1: NULL) and the bytes
//! end: i16 -1
//! ```
//!
//! All numbers are big-endian. Source: PostgreSQL's `BeginCopyFrom` and `NextCopyFrom`
//! (copyfrom.c, copyfromparse.c), and the documentation of COPY.

use smallvec::SmallVec;
use sql::Error;

/// The signature at the start of the data.
pub const SIGNATURE: [u8; 11] = *b"PGCOPY\n\xff\r\n\0";
/// The header of COPY TO: no flags, no extension.
pub const HEADER: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The end marker.
pub const END: [u8; 2] = (-1_i16).to_be_bytes();
/// Flags that a reader must reject if it does not know them; all of them here.
const CRITICAL_FLAGS: u32 = 0xffff_0000;
/// The flag of rows with OIDs, which PostgreSQL no longer supports.
const OIDS_FLAG: u32 = 1 << 16;
/// Maximum bytes of a row.
const ROW_BYTES_MAX: usize = 1 << 30;

/// The receiver of rows: their number (from 1) and their fields.
pub type BinarySink<'a> = dyn FnMut(u64, &[Option<&[u8]>]) -> sql::Result<()> + 'a;

/// Decoder that splits a stream into rows and fields.
#[derive(Default)]
pub struct BinaryDecoder {
    /// Received bytes that are not a complete row yet.
    buffer: Vec<u8>,
    header_read: bool,
    ended: bool,
    rows: u64,
}

/// Result of reading a part of the data.
enum DecodeStep<T> {
    Whole(T),
    /// Incomplete: more bytes are needed.
    Cut,
}

impl BinaryDecoder {
    /// Returns the number of the current row, for messages; `None` within the header.
    pub fn row(&self) -> Option<u64> {
        self.header_read.then_some(self.rows + 1)
    }

    /// Decodes the next bytes and passes the completed rows to `sink`.
    ///
    /// # Errors
    ///
    /// 22P04 for malformed data, and errors of `sink`.
    pub fn push(&mut self, bytes: &[u8], sink: &mut BinarySink<'_>) -> sql::Result<()> {
        self.buffer.extend_from_slice(bytes);
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = buffer.as_slice();
        let result = self.read(&mut rest, sink);
        let read = buffer.len() - rest.len();
        self.buffer = buffer;
        self.buffer.drain(..read);
        if self.buffer.len() > ROW_BYTES_MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED: "COPY row is longer than 1 GB");
        }
        result
    }

    /// Ends the data.
    ///
    /// # Errors
    ///
    /// 22P04 if a row or the header is incomplete.
    pub fn finish(self) -> sql::Result<()> {
        match (self.header_read, self.buffer.len()) {
            (false, _) => Err(malformed("COPY file signature not recognized")),
            // One byte cannot start a row: the field count has two.
            (true, 0 | 1) => Ok(()),
            _ => Err(malformed("unexpected EOF in COPY data")),
        }
    }

    fn read(&mut self, rest: &mut &[u8], sink: &mut BinarySink<'_>) -> sql::Result<()> {
        if !self.header_read {
            match header(rest)? {
                DecodeStep::Whole(()) => self.header_read = true,
                DecodeStep::Cut => return Ok(()),
            }
        }
        while !rest.is_empty() {
            if self.ended {
                return Err(malformed("received copy data after EOF marker"));
            }
            let mut after = *rest;
            let Some(count) = take(&mut after).map(i16::from_be_bytes) else { break };
            let Ok(count) = usize::try_from(count) else {
                self.ended = true;
                *rest = after;
                continue;
            };
            let DecodeStep::Whole(fields) = fields(&mut after, count)? else { break };
            sink(self.rows + 1, &fields)?;
            self.rows += 1;
            *rest = after;
        }
        Ok(())
    }
}

/// Reads the header.
fn header(rest: &mut &[u8]) -> sql::Result<DecodeStep<()>> {
    let known = rest.len().min(SIGNATURE.len());
    if rest[..known] != SIGNATURE[..known] {
        return Err(malformed("COPY file signature not recognized"));
    }
    let mut after = &rest[known..];
    let (Some(flags), Some(length)) = (take(&mut after), take(&mut after)) else {
        return Ok(DecodeStep::Cut);
    };
    let (flags, length) = (u32::from_be_bytes(flags), i32::from_be_bytes(length));
    if flags & OIDS_FLAG != 0 {
        return Err(malformed("invalid COPY file header (WITH OIDS)"));
    }
    if flags & CRITICAL_FLAGS != 0 {
        return Err(malformed("unrecognized critical flags in COPY file header"));
    }
    let Ok(length) = usize::try_from(length) else {
        return Err(malformed("invalid COPY file header (missing length)"));
    };
    let Some((_, after)) = after.split_at_checked(length) else { return Ok(DecodeStep::Cut) };
    *rest = after;
    Ok(DecodeStep::Whole(()))
}

/// The fields of a row; `None` is NULL.
type Fields<'a> = SmallVec<[Option<&'a [u8]>; 32]>;

/// Reads the fields of a row.
fn fields<'a>(rest: &mut &'a [u8], count: usize) -> sql::Result<DecodeStep<Fields<'a>>> {
    let mut fields = Fields::new();
    for _ in 0..count {
        let Some(length) = take(rest).map(i32::from_be_bytes) else { return Ok(DecodeStep::Cut) };
        if length == -1 {
            fields.push(None);
            continue;
        }
        let length = usize::try_from(length).map_err(|_| malformed("invalid field size"))?;
        let Some((field, after)) = rest.split_at_checked(length) else {
            return Ok(DecodeStep::Cut);
        };
        fields.push(Some(field));
        *rest = after;
    }
    Ok(DecodeStep::Whole(fields))
}

/// Reads `N` bytes, if they are available.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}

fn malformed(message: &str) -> Error {
    err!(BAD_COPY_FILE_FORMAT: message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes data that arrives `piece` bytes at a time.
    fn decode(data: &[u8], piece: usize) -> sql::Result<Vec<String>> {
        let mut rows = Vec::new();
        let mut sink = |row: u64, fields: &[Option<&[u8]>]| {
            rows.push(format!("{row}: {fields:?}"));
            Ok(())
        };
        let mut decoder = BinaryDecoder::default();
        for bytes in data.chunks(piece) {
            decoder.push(bytes, &mut sink)?;
        }
        decoder.finish()?;
        Ok(rows)
    }

    fn data(rows: &[u8]) -> Vec<u8> {
        [HEADER.as_slice(), rows].concat()
    }

    #[test]
    fn binary_copy_accepts_chunks_of_any_size() {
        let rows = b"\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x02\0\0\0\0\0\0\0\x01c\xff\xff";
        let expected = ["1: [Some([97, 98]), None]", "2: [Some([]), Some([99])]"];
        for piece in 1..60 {
            assert_eq!(decode(&data(rows), piece).unwrap(), expected, "in pieces of {piece}");
        }
        // The end marker may be missing.
        assert_eq!(decode(&data(&rows[..rows.len() - 2]), 7).unwrap(), expected);
    }

    #[test]
    fn malformed_binary_copy_is_rejected() {
        let refusal = |bytes: &[u8]| decode(bytes, 5).unwrap_err().message;
        assert_eq!(refusal(b"PGCOPX\n"), "COPY file signature not recognized");
        assert_eq!(refusal(b"PGC"), "COPY file signature not recognized");
        assert_eq!(refusal(&data(b"\0\x01\0\0")), "unexpected EOF in COPY data");
        assert_eq!(refusal(&data(b"\0\x01\xff\xff\xff\xfe")), "invalid field size");
        assert_eq!(refusal(&data(b"\xff\xffx")), "received copy data after EOF marker");
        let mut flagged = data(b"");
        flagged[12] = 1;
        assert_eq!(refusal(&flagged), "invalid COPY file header (WITH OIDS)");
        flagged[12] = 2;
        assert_eq!(refusal(&flagged), "unrecognized critical flags in COPY file header");
    }
}
