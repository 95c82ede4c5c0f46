//! Decoder of COPY … FROM STDIN: bytes in text or CSV format to fields.
//!
//! Input arrives in chunks of any size; the decoder passes on complete records. A record is
//! contiguous in one buffer, so that fields without escapes are borrowed from it. CSV is decoded
//! here and not by a crate, because an unquoted empty field is NULL and a quoted one is not,
//! which the maintained CSV crates do not report.

use memchr::{memchr2, memchr3};
use smallvec::SmallVec;
use sql::Error;
use sql::session::CopyFormat;
use types::encoding::Encoding;

/// Maximum bytes of a record: PostgreSQL's largest line buffer.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// Characters of a record in messages, as in PostgreSQL.
const SHOWN_CHARS: usize = 100;

/// The receiver of records: their line (from 1) and their fields.
pub type RowSink<'a> = dyn FnMut(u64, &[Option<&str>]) -> sql::Result<()> + 'a;

/// Decoder that splits a stream into records and fields.
pub struct Decoder {
    format: CopyFormat,
    /// Received bytes that are not a complete record yet.
    buffer: Vec<u8>,
    /// Number of bytes of `buffer` that were searched for the end of a record.
    searched: usize,
    /// CSV: the search is within quotes.
    in_quotes: bool,
    /// Line of the next record, from 1.
    line: u64,
    /// Lines of the record being searched, without its first.
    extra_lines: u64,
    /// The end marker `\.` was read; further data is ignored.
    ended: bool,
    header_pending: bool,
    /// The beginning of the record that caused an error.
    failed: Option<String>,
}

/// Location of a field, in the record or in the text with resolved escapes.
#[derive(Clone, Copy)]
enum Field {
    Null,
    Plain { start: usize, end: usize },
    Resolved { start: usize, end: usize },
}

impl Decoder {
    /// Creates a decoder at the start of the data.
    pub fn new(format: CopyFormat) -> Decoder {
        Decoder {
            header_pending: format.header,
            format,
            buffer: Vec::new(),
            searched: 0,
            in_quotes: false,
            line: 1,
            extra_lines: 0,
            ended: false,
            failed: None,
        }
    }

    /// Returns the line of the next record, for messages.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the beginning of the record that caused an error.
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Decodes the next bytes and passes the completed records to `sink`.
    ///
    /// # Errors
    ///
    /// 22P04 and 22021 for malformed data, and errors of `sink`.
    pub fn push(&mut self, bytes: &[u8], sink: &mut RowSink<'_>) -> sql::Result<()> {
        if self.ended {
            return Ok(());
        }
        self.buffer.extend_from_slice(bytes);
        let mut start = 0;
        let buffer = std::mem::take(&mut self.buffer);
        let mut result = Ok(());
        while let Some((end, next)) = self.find_record(&buffer, start) {
            debug_assert!(end < next && next <= buffer.len(), "a record ends at {end}");
            result = self.record(&buffer[start..end], sink);
            start = next;
            self.searched = next;
            if result.is_err() || self.ended {
                break;
            }
            self.line += 1 + std::mem::take(&mut self.extra_lines);
        }
        self.buffer = buffer;
        self.buffer.drain(..start);
        debug_assert!(self.searched >= start, "a record ends where it was searched");
        self.searched -= start;
        debug_assert!(self.searched <= self.buffer.len(), "only received bytes were searched");
        if self.buffer.len() > RECORD_BYTES_MAX {
            bail!(PROGRAM_LIMIT_EXCEEDED: "COPY line is longer than 1 GB");
        }
        result
    }

    /// Passes on the last record, which may lack a line end.
    ///
    /// # Errors
    ///
    /// As for [`Decoder::push`]; also an unterminated CSV quote.
    pub fn finish(&mut self, sink: &mut RowSink<'_>) -> sql::Result<()> {
        if self.ended || self.buffer.is_empty() {
            return Ok(());
        }
        if self.in_quotes {
            return Err(malformed("unterminated CSV quoted field"));
        }
        let mut record = std::mem::take(&mut self.buffer);
        if record.last() == Some(&b'\r') {
            record.pop();
        }
        self.record(&record, sink)
    }

    /// Finds the end of the record at `start` and the start of the next one.
    fn find_record(&mut self, buffer: &[u8], start: usize) -> Option<(usize, usize)> {
        let mut at = self.searched.max(start);
        while let Some(found) = self.next_mark(&buffer[at..]) {
            at += found;
            let (byte, is_last) = (buffer[at], at + 1 >= buffer.len());
            let escapes = match self.format.csv {
                true => byte == self.format.escape && byte != self.format.quote && self.in_quotes,
                false => byte == b'\\',
            };
            if escapes {
                // The escaped byte, which has not arrived yet, cannot end the record or the
                // field.
                if is_last {
                    self.searched = at;
                    return None;
                }
                // An escaped line end is data.
                self.extra_lines += u64::from(!self.format.csv && buffer[at + 1] == b'\n');
                at += 2;
                continue;
            }
            if self.format.csv && byte == self.format.quote {
                self.in_quotes = !self.in_quotes;
            } else if byte == b'\n' && self.in_quotes {
                self.extra_lines += 1;
            } else if byte == b'\n' {
                self.searched = at + 1;
                let cut = usize::from(at > start && buffer[at - 1] == b'\r');
                return Some((at - cut, at + 1));
            }
            at += 1;
        }
        self.searched = buffer.len();
        None
    }

    /// Returns the position of the next byte that can end a record or change the quoting.
    fn next_mark(&self, bytes: &[u8]) -> Option<usize> {
        match self.format.csv {
            true => memchr3(b'\n', self.format.quote, self.format.escape, bytes),
            false => memchr2(b'\n', b'\\', bytes),
        }
    }

    fn record(&mut self, record: &[u8], sink: &mut RowSink<'_>) -> sql::Result<()> {
        let result = self.read_record(record, sink);
        if result.is_err() {
            let text = String::from_utf8_lossy(record);
            let shown: String = text.chars().take(SHOWN_CHARS).collect();
            let dots = if shown.len() < text.len() { "..." } else { "" };
            self.failed = Some(format!("{shown}{dots}"));
        }
        result
    }

    fn read_record(&mut self, record: &[u8], sink: &mut RowSink<'_>) -> sql::Result<()> {
        let is_header = std::mem::take(&mut self.header_pending);
        if is_header && self.format.forced.header.is_none() {
            return Ok(());
        }
        if record == b"\\." {
            self.ended = true;
            return Ok(());
        }
        let text = &*Encoding::utf8().decode_text(record)?;
        let mut resolved = String::new();
        let mut fields: SmallVec<[Field; 32]> = SmallVec::new();
        if self.format.csv {
            self.split_csv(text, &mut fields, &mut resolved)?;
        } else {
            self.split_text(text, &mut fields, &mut resolved)?;
        }
        let mut values: SmallVec<[Option<&str>; 32]> = fields
            .iter()
            .map(|field| match *field {
                Field::Null => None,
                Field::Plain { start, end } => Some(&text[start..end]),
                Field::Resolved { start, end } => Some(&resolved[start..end]),
            })
            .collect();
        if let Some(names) = self.format.forced.header.as_ref().filter(|_| is_header) {
            return self.check_header(&values, names);
        }
        let forced = &self.format.forced;
        let is_forced = |columns: &[bool], at: usize| columns.get(at) == Some(&true);
        for (at, value) in values.iter_mut().enumerate() {
            if value.is_none() && is_forced(&forced.not_null, at) {
                *value = Some(&self.format.null);
            } else if *value == Some(&self.format.null) && is_forced(&forced.null, at) {
                *value = None;
            }
        }
        sink(self.line, &values)
    }

    /// Compares the header with the expected names.
    fn check_header(&self, found: &[Option<&str>], names: &[String]) -> sql::Result<()> {
        if found.len() != names.len() {
            let (found, expected) = (found.len(), names.len());
            return Err(malformed(&format!(
                "wrong number of fields in header line: got {found}, expected {expected}"
            )));
        }
        for (index, (found, name)) in found.iter().zip(names).enumerate() {
            let got = match found {
                Some(found) if found == name => continue,
                Some(found) => format!("got \"{found}\""),
                None => format!("got null value (\"{}\")", self.format.null),
            };
            let field = index + 1;
            return Err(malformed(&format!(
                "column name mismatch in header line field {field}: {got}, expected \"{name}\""
            )));
        }
        Ok(())
    }

    fn split_text(
        &self,
        text: &str,
        fields: &mut SmallVec<[Field; 32]>,
        resolved: &mut String,
    ) -> sql::Result<()> {
        let bytes = text.as_bytes();
        let mut start = 0;
        loop {
            let mut end = start;
            let mut escaped = false;
            while let Some(found) = memchr2(self.format.delimiter, b'\\', &bytes[end..]) {
                end += found;
                if bytes[end] != b'\\' {
                    break;
                }
                escaped = true;
                // The escaped byte, if any, is data.
                end = (end + 2).min(bytes.len());
            }
            if bytes.get(end) != Some(&self.format.delimiter) {
                end = bytes.len();
            }
            // NULL is compared with the raw text, before escapes are resolved.
            if text[start..end] == self.format.null {
                fields.push(Field::Null);
            } else if escaped {
                let from = resolved.len();
                unescape(&text[start..end], resolved)?;
                fields.push(Field::Resolved { start: from, end: resolved.len() });
            } else {
                fields.push(Field::Plain { start, end });
            }
            if end == bytes.len() {
                return Ok(());
            }
            start = end + 1;
        }
    }

    fn split_csv(
        &self,
        text: &str,
        fields: &mut SmallVec<[Field; 32]>,
        resolved: &mut String,
    ) -> sql::Result<()> {
        let bytes = text.as_bytes();
        let mut start = 0;
        loop {
            let found = memchr2(self.format.delimiter, self.format.quote, &bytes[start..]);
            let mut end = found.map_or(bytes.len(), |found| start + found);
            if end == bytes.len() || bytes[end] == self.format.delimiter {
                let null = text[start..end] == self.format.null;
                fields.push(if null { Field::Null } else { Field::Plain { start, end } });
            } else {
                let from = resolved.len();
                end = self.unquote(text, start, resolved)?;
                fields.push(Field::Resolved { start: from, end: resolved.len() });
            }
            if end == bytes.len() {
                return Ok(());
            }
            start = end + 1;
        }
    }

    /// Resolves a field with quotes; returns its end.
    fn unquote(&self, text: &str, start: usize, out: &mut String) -> sql::Result<usize> {
        let bytes = text.as_bytes();
        let (quote, escape) = (self.format.quote, self.format.escape);
        let mut at = start;
        let mut in_quotes = false;
        let mut copied = start;
        let delimiter = self.format.delimiter;
        loop {
            let found = match in_quotes {
                true => memchr2(quote, escape, &bytes[at..]),
                false => memchr2(quote, delimiter, &bytes[at..]),
            };
            let Some(found) = found else {
                at = bytes.len();
                break;
            };
            at += found;
            let byte = bytes[at];
            let next = bytes.get(at + 1).copied();
            if in_quotes && byte == escape && next.is_some_and(|b| b == quote || b == escape) {
                out.push_str(&text[copied..at]);
                copied = at + 1;
                at += 2;
            } else if byte == quote {
                out.push_str(&text[copied..at]);
                in_quotes = !in_quotes;
                at += 1;
                copied = at;
            } else if !in_quotes {
                break;
            } else {
                at += 1;
            }
        }
        if in_quotes {
            return Err(malformed("unterminated CSV quoted field"));
        }
        out.push_str(&text[copied..at]);
        Ok(at)
    }
}

/// Resolves the backslash escapes of the text format. Numeric escapes are bytes, of which several
/// may form a character.
fn unescape(text: &str, out: &mut String) -> sql::Result<()> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let Some(next) = rest.chars().next() else {
            bytes.push(b'\\');
            break;
        };
        let (digits, radix) = match next {
            'x' => (leading(&rest[1..], 16, 2), 16),
            '0'..='7' => (leading(rest, 8, 3), 8),
            _ => (0, 0),
        };
        if digits > 0 {
            let skip = usize::from(radix == 16);
            let code = u32::from_str_radix(&rest[skip..skip + digits], radix).unwrap_or(u32::MAX);
            bytes.push(code as u8);
            rest = &rest[skip + digits..];
            continue;
        }
        let control = match next {
            'b' => 0x8,
            'f' => 0xc,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 0xb,
            // Any other character stands for itself.
            _ => {
                bytes.extend_from_slice(&rest.as_bytes()[..next.len_utf8()]);
                rest = &rest[next.len_utf8()..];
                continue;
            }
        };
        bytes.push(control);
        rest = &rest[1..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    out.push_str(&Encoding::utf8().decode_text(&bytes)?);
    Ok(())
}

/// Returns the number of leading digits of a radix, at most `limit`.
fn leading(text: &str, radix: u32, limit: usize) -> usize {
    text.chars().take(limit).take_while(|c| c.is_digit(radix)).count()
}

fn malformed(message: &str) -> Error {
    err!(BAD_COPY_FILE_FORMAT: message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::session::ColumnOptions;

    fn text() -> CopyFormat {
        CopyFormat {
            csv: false,
            binary: false,
            delimiter: b'\t',
            null: "\\N".to_owned(),
            header: false,
            encoding: None,
            quote: b'"',
            escape: b'"',
            column_count: 0,
            forced: ColumnOptions::default(),
        }
    }

    fn csv() -> CopyFormat {
        CopyFormat { csv: true, delimiter: b',', null: String::new(), ..text() }
    }

    /// Decodes data that arrives `piece` bytes at a time, as lines of fields joined by `|`.
    fn decode(format: &CopyFormat, data: &[u8], piece: usize) -> sql::Result<Vec<String>> {
        let mut rows = Vec::new();
        let mut sink = |line: u64, fields: &[Option<&str>]| {
            let fields: Vec<&str> = fields.iter().map(|field| field.unwrap_or("∅")).collect();
            rows.push(format!("{line}: {}", fields.join("|")));
            Ok(())
        };
        let mut decoder = Decoder::new(format.clone());
        for bytes in data.chunks(piece) {
            decoder.push(bytes, &mut sink)?;
        }
        decoder.finish(&mut sink)?;
        Ok(rows)
    }

    /// Decodes in chunks of every size and asserts that the results are equal.
    fn decode_all(format: &CopyFormat, data: &str) -> sql::Result<Vec<String>> {
        let whole = decode(format, data.as_bytes(), data.len().max(1));
        for piece in 1..data.len() {
            assert_eq!(decode(format, data.as_bytes(), piece), whole, "in pieces of {piece}");
        }
        whole
    }

    #[test]
    fn text_fields_with_escapes_and_nulls() {
        let rows = decode_all(&text(), "a\t\\N\tc\\td\r\n\\\\N\t\\x41\\102\t\n\\.\nignored\n");
        assert_eq!(rows.unwrap(), ["1: a|∅|c\td", "2: \\N|AB|"]);
    }

    #[test]
    fn escaped_bytes_form_characters() {
        assert_eq!(decode_all(&text(), "a\\303\\xA9\\é\n").unwrap(), ["1: aéé"]);
    }

    #[test]
    fn backslash_before_line_end_is_data() {
        assert_eq!(decode_all(&text(), "a\\\nb\tc\nd").unwrap(), ["1: a\nb|c", "3: d"]);
    }

    #[test]
    fn csv_quotes_newlines_and_nulls() {
        let data = "a,\"b \"\"x\"\", c\",\n\"two\nlines\",\"\",z\r\nlast,,";
        let rows = decode_all(&csv(), data).unwrap();
        assert_eq!(rows, ["1: a|b \"x\", c|∅", "2: two\nlines||z", "4: last|∅|∅"]);
    }

    #[test]
    fn csv_with_its_own_escape_and_null() {
        let format = CopyFormat { escape: b'\\', null: "NA".to_owned(), header: true, ..csv() };
        let rows = decode_all(&format, "h1,h2\nNA,\"NA\"\n\"a\\\"b\",c\n").unwrap();
        assert_eq!(rows, ["2: ∅|NA", "3: a\"b|c"]);
    }

    #[test]
    fn malformed_copy_data_is_reported() {
        assert_eq!(decode_all(&csv(), "a,\"b").unwrap_err().sqlstate, "22P04");
        let error = decode(&text(), b"a\xffb\n", 8).unwrap_err();
        assert_eq!(error.message, "invalid byte sequence for encoding \"UTF8\": 0xff");
        for zero in [&b"a\0b\n"[..], b"a\\000b\n", b"a\\x0\n"] {
            let error = decode(&text(), zero, 8).unwrap_err();
            assert_eq!(error.message, "invalid byte sequence for encoding \"UTF8\": 0x00");
        }
        let error = decode(&text(), b"a\\303(\n", 8).unwrap_err();
        assert_eq!(error.message, "invalid byte sequence for encoding \"UTF8\": 0xc3 0x28");
    }
}
