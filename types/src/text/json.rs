//! Text format of `json` and `jsonb`: parser with PostgreSQL's errors, and output.

use std::sync::Arc;

use crate::datum::stored_json::{self, JsonToken};
use crate::datum::{Json, MAX_JSON_DEPTH, Text};
use crate::error::{Error, ErrorFields, Result};
use crate::interruptible::{InterruptPacer, chunks};
use crate::numeric::Numeric;

/// Parses a `jsonb`.
pub(super) fn parse(text: &str, pace: &mut InterruptPacer<'_>) -> Result<Json> {
    let mut reader = Reader { text, at: 0, depth: 0, unescape: true, pace };
    reader.document()
}

/// Checks that a text is JSON.
pub(super) fn check(text: &str, pace: &mut InterruptPacer<'_>) -> Result<()> {
    let mut reader = Reader { text, at: 0, depth: 0, unescape: false, pace };
    reader.document().map(drop)
}

struct Reader<'a, 'p, 'i> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// String values are needed, and their escapes must be valid.
    unescape: bool,
    pace: &'p mut InterruptPacer<'i>,
}

/// Maximum bytes of a line in CONTEXT.
const EXCERPT_BYTES: usize = 50;

impl<'a> Reader<'a, '_, '_> {
    fn document(&mut self) -> Result<Json> {
        let value = self.value()?;
        match self.peek()? {
            None => Ok(value),
            Some(token) => Err(self.unexpected("end of input", token)),
        }
    }

    /// Returns the error of text that ends at byte `end`, with a context as in PostgreSQL's
    /// `report_json_context`.
    fn invalid(&self, end: usize, detail: impl Into<String>) -> Error {
        let error = err!(INVALID_TEXT_REPRESENTATION: "invalid input syntax for type json");
        self.located(error.with_detail(detail), end)
    }

    fn located(&self, mut error: Error, end: usize) -> Error {
        let before = &self.text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let mut start = line_start;
        while end - start >= EXCERPT_BYTES {
            start += self.text[start..].chars().next().map_or(1, char::len_utf8);
        }
        if start - line_start <= 3 {
            start = line_start;
        }
        let prefix = if start > line_start { "..." } else { "" };
        let goes_on = !matches!(self.text.as_bytes().get(end), None | Some(b'\n' | b'\r'));
        let suffix = if goes_on { "..." } else { "" };
        let excerpt = &self.text[start..end];
        let context = format!("JSON data, line {line}: {prefix}{excerpt}{suffix}");
        let context = Some(context);
        error.subject = Some(Box::new(ErrorFields { context, ..ErrorFields::default() }));
        error
    }

    /// Returns the error of an unexpected token.
    fn unexpected(&self, expected: &str, token: &str) -> Error {
        let detail = format!("Expected {expected}, but found \"{token}\".");
        self.invalid(self.at + token.len(), detail)
    }

    /// Returns the error of an invalid token of `length` bytes.
    fn no_token(&self, length: usize) -> Error {
        let token = &self.rest()[..length];
        self.invalid(self.at + length, format!("Token \"{token}\" is invalid."))
    }

    fn ended(&self) -> Error {
        self.invalid(self.text.len(), "The input string ended unexpectedly.")
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the next token without consuming it; `None` at the end.
    fn peek(&mut self) -> Result<Option<&'a str>> {
        let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
        self.at = self.text.len() - self.rest().trim_start_matches(blank).len();
        self.pace.count_steps(TOKEN)?;
        let rest = self.rest();
        let length = match rest.bytes().next() {
            None => return Ok(None),
            Some(b'{' | b'}' | b'[' | b']' | b',' | b':') => 1,
            Some(b'"') => self.string_length()?,
            Some(b'-' | b'0'..=b'9') => {
                number_length(rest).map_err(|length| self.no_token(length))?
            }
            Some(_) => {
                let length = word_length(rest);
                if !matches!(&rest[..length], "true" | "false" | "null") {
                    return Err(self.no_token(length));
                }
                length
            }
        };
        Ok(Some(&rest[..length]))
    }

    /// Returns the next token, which is required.
    fn expect(&mut self) -> Result<&'a str> {
        self.peek()?.ok_or_else(|| self.ended())
    }

    fn value(&mut self) -> Result<Json> {
        let token = self.expect()?;
        match token.as_bytes()[0] {
            b'{' => self.nested(Reader::object),
            b'[' => self.nested(Reader::array),
            b'"' => self.string(token).map(Json::String),
            b'}' | b']' | b',' | b':' => Err(self.unexpected("JSON value", token)),
            byte => {
                self.at += token.len();
                match byte {
                    b't' => Ok(Json::Bool(true)),
                    b'f' => Ok(Json::Bool(false)),
                    b'n' => Ok(Json::Null),
                    _ => Numeric::parse(token).map(Json::Number),
                }
            }
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Json>) -> Result<Json> {
        if self.depth == MAX_JSON_DEPTH {
            return Err(too_deep());
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn array(&mut self) -> Result<Json> {
        let mut elements = Vec::new();
        if self.expect()? == "]" {
            self.at += 1;
            return Ok(Json::Array(elements));
        }
        loop {
            let value = self.value()?;
            self.pace.push(&mut elements, value)?;
            match self.expect()? {
                "," => self.at += 1,
                "]" => {
                    self.at += 1;
                    return Ok(Json::Array(elements));
                }
                token => return Err(self.unexpected("\",\" or \"]\"", token)),
            }
        }
    }

    fn object(&mut self) -> Result<Json> {
        let mut pairs = Vec::new();
        let first = self.expect()?;
        if first == "}" {
            self.at += 1;
            return Ok(Json::object(pairs));
        }
        if !first.starts_with('"') {
            return Err(self.unexpected("string or \"}\"", first));
        }
        loop {
            let token = self.expect()?;
            if !token.starts_with('"') {
                return Err(self.unexpected("string", token));
            }
            let key = self.string(token)?;
            let colon = self.expect()?;
            if colon != ":" {
                return Err(self.unexpected("\":\"", colon));
            }
            self.at += 1;
            let value = self.value()?;
            self.pace.push(&mut pairs, (key.into(), value))?;
            match self.expect()? {
                "," => self.at += 1,
                "}" => {
                    self.at += 1;
                    return Json::object_at(pairs, self.pace);
                }
                token => return Err(self.unexpected("\",\" or \"}\"", token)),
            }
        }
    }

    /// Returns the length of the string literal at the current position, quotes included.
    fn string_length(&mut self) -> Result<usize> {
        let bytes = self.rest().as_bytes();
        let mut at = 1;
        while let Some(&byte) = bytes.get(at) {
            self.pace.count_steps(1)?;
            match byte {
                b'"' => return Ok(at + 1),
                b'\\' => at += 2,
                0..0x20 => {
                    let detail = format!("Character with value 0x{byte:02x} must be escaped.");
                    return Err(self.invalid(self.at + at, detail));
                }
                _ => at += 1,
            }
        }
        Err(self.no_token(self.rest().len()))
    }

    /// Consumes a string literal and returns its value.
    fn string(&mut self, token: &'a str) -> Result<Text> {
        self.at += token.len();
        let mut rest = &token[1..token.len() - 1];
        let mut out: String = self.pace.buffer(rest.len())?;
        while let Some(at) = rest.find('\\') {
            self.pace.append(&mut out, &rest[..at])?;
            let Some(letter) = rest[at + 1..].chars().next() else { break };
            rest = &rest[at + 1 + letter.len_utf8()..];
            match letter {
                '"' | '\\' | '/' => out.push(letter),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'u' => rest = self.unicode(rest, &mut out)?,
                other => {
                    let detail = format!("Escape sequence \"\\{other}\" is invalid.");
                    return Err(self.invalid(self.place(rest), detail));
                }
            }
        }
        self.pace.append(&mut out, rest)?;
        Ok(out.into())
    }

    /// Returns the position of the rest of the string that was consumed last.
    fn place(&self, rest: &str) -> usize {
        self.at - 1 - rest.len()
    }

    /// Parses four hexadecimal digits.
    fn hexadecimal(&self, rest: &'a str) -> Result<(u32, &'a str)> {
        let digits = rest.bytes().take(4).take_while(u8::is_ascii_hexdigit).count();
        if digits == 4
            && let Ok(code) = u32::from_str_radix(&rest[..4], 16)
        {
            return Ok((code, &rest[4..]));
        }
        let bad = rest[digits..].chars().next().map_or(0, char::len_utf8);
        let detail = "\"\\u\" must be followed by four hexadecimal digits.";
        Err(self.invalid(self.place(rest) + digits + bad, detail))
    }

    /// Parses the escape after `\u`, and the second half of a surrogate pair.
    fn unicode(&self, rest: &'a str, out: &mut String) -> Result<&'a str> {
        let alone = |rest: &str, more: usize| {
            let detail = "Unicode low surrogate must follow a high surrogate.";
            self.invalid(self.place(rest) + more, detail)
        };
        let (first, mut rest) = self.hexadecimal(rest)?;
        if !self.unescape {
            return Ok(rest);
        }
        let code = match first {
            0 => {
                let error = err!(UNTRANSLATABLE_CHARACTER: "unsupported Unicode escape sequence";
                    detail "\\u0000 cannot be converted to text.");
                return Err(self.located(error, self.place(rest)));
            }
            0xd800..=0xdbff => {
                let after = rest.strip_prefix("\\u").ok_or_else(|| {
                    // The text at that position: a character, or an escape as a whole.
                    let length = if rest.starts_with('\\') { 2 } else { 1 };
                    let behind = self.text[self.place(rest)..].chars().take(length);
                    alone(rest, behind.map(char::len_utf8).sum())
                })?;
                let (second, after) = self.hexadecimal(after)?;
                rest = after;
                match second {
                    0xdc00..=0xdfff => 0x10000 + ((first & 0x3ff) << 10) + (second & 0x3ff),
                    0xd800..=0xdbff => {
                        let detail = "Unicode high surrogate must not follow a high surrogate.";
                        return Err(self.invalid(self.place(rest), detail));
                    }
                    _ => return Err(alone(rest, 0)),
                }
            }
            other => other,
        };
        out.push(char::from_u32(code).ok_or_else(|| alone(rest, 0))?);
        Ok(rest)
    }
}

/// Returns the error of a value that exceeds the nesting limit.
pub(crate) fn too_deep() -> Error {
    err!(STATEMENT_TOO_COMPLEX: "stack depth limit exceeded";
        hint "The maximum nesting depth of JSON values is {MAX_JSON_DEPTH}.")
}

/// Returns the length of a run of letters and digits, or of one other character.
fn word_length(rest: &str) -> usize {
    let word = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || !c.is_ascii();
    match rest.chars().take_while(word).map(char::len_utf8).sum() {
        0 => rest.chars().next().map_or(0, char::len_utf8),
        length => length,
    }
}

/// Returns the length of a number, or of the invalid token.
fn number_length(rest: &str) -> std::result::Result<usize, usize> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(bytes[0] == b'-');
    let whole = digits(at);
    let mut good = whole > 0 && (whole == 1 || bytes[at] != b'0');
    at += if whole > 0 && bytes[at] == b'0' { 1 } else { whole };
    if good && bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        good = fraction > 0;
        at += 1 + fraction;
    }
    if good && matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = if at <= bytes.len() { digits(at) } else { 0 };
        good = exponent > 0;
        at += exponent;
    }
    let word = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || !c.is_ascii();
    let behind: usize = rest[at..].chars().take_while(word).map(char::len_utf8).sum();
    if !good || behind > 0 {
        return Err(at + behind);
    }
    Ok(at)
}

/// Cost of a token in addition to the bytes of a string, for the interrupt check.
const TOKEN: usize = 16;

/// Appends a value in PostgreSQL's `jsonb` format.
pub(super) fn write(json: &Json, pace: &mut InterruptPacer<'_>, out: &mut Vec<u8>) -> Result<()> {
    pace.step(out, TOKEN)?;
    match json {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(number) => number.write(out),
        Json::String(text) => write_string(text, pace, out)?,
        Json::Array(elements) => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                out.extend_from_slice(if index > 0 { b", " } else { b"" });
                write(element, pace, out)?;
            }
            out.push(b']');
        }
        Json::Object(pairs) => {
            out.push(b'{');
            for (index, (key, value)) in pairs.iter().enumerate() {
                out.extend_from_slice(if index > 0 { b", " } else { b"" });
                write_string(key, pace, out)?;
                out.extend_from_slice(b": ");
                write(value, pace, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

/// Appends the next stored value in PostgreSQL's `jsonb` format.
pub(super) fn write_stored(
    stored: &mut stored_json::StoredJsonReader<'_>,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    pace.step(out, TOKEN)?;
    match stored.token()? {
        JsonToken::Null => out.extend_from_slice(b"null"),
        JsonToken::Bool(true) => out.extend_from_slice(b"true"),
        JsonToken::Bool(false) => out.extend_from_slice(b"false"),
        JsonToken::Number(number) => number.write(out),
        JsonToken::String(text) => write_string(text, pace, out)?,
        JsonToken::Array(count) => {
            out.push(b'[');
            for index in 0..count {
                out.extend_from_slice(if index > 0 { b", " } else { b"" });
                write_stored(stored, pace, out)?;
            }
            out.push(b']');
        }
        JsonToken::Object(count) => {
            out.push(b'{');
            for index in 0..count {
                out.extend_from_slice(if index > 0 { b", " } else { b"" });
                write_string(stored.text()?, pace, out)?;
                out.extend_from_slice(b": ");
                write_stored(stored, pace, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

/// Appends a string literal.
pub(super) fn write_string(
    text: &str,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'"');
    for piece in chunks(text) {
        pace.reserve(out, piece.len() + 2)?;
        let mut rest = piece.as_bytes();
        let is_special = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
        while let Some(at) = rest.iter().position(is_special) {
            out.extend_from_slice(&rest[..at]);
            match rest[at] {
                byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
                0x08 => out.extend_from_slice(b"\\b"),
                0x0c => out.extend_from_slice(b"\\f"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                byte => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            }
            rest = &rest[at + 1..];
        }
        out.extend_from_slice(rest);
        pace.count_steps(piece.len())?;
    }
    out.push(b'"');
    Ok(())
}

/// The top-level parts of a `json`, as written.
pub enum JsonParts<'a> {
    /// The pairs, in the order of the text.
    Object(Vec<(Arc<str>, &'a str)>),
    /// The elements.
    Array(Vec<&'a str>),
    /// A string with its value.
    String(Text),
    /// `null`
    Null,
    /// A number, `true` or `false`.
    Other,
}

/// Returns the top-level parts of a `json`.
///
/// # Errors
///
/// Those of invalid escapes in strings, which the input function does not check.
pub fn parts<'a>(text: &'a str, pace: &mut InterruptPacer<'_>) -> Result<JsonParts<'a>> {
    let mut reader = Reader { text, at: 0, depth: 0, unescape: true, pace };
    let token = reader.expect()?;
    match token.as_bytes()[0] {
        b'"' => reader.string(token).map(JsonParts::String),
        b'n' => Ok(JsonParts::Null),
        opening @ (b'{' | b'[') => {
            reader.at += 1;
            reader.members(opening == b'{')
        }
        _ => Ok(JsonParts::Other),
    }
}

/// Checks the escapes of all strings, as PostgreSQL does before it processes a `json`.
///
/// # Errors
///
/// 22P02 for unpaired surrogates, 22P05 for `\u0000`.
pub fn check_escapes(text: &str, pace: &mut InterruptPacer<'_>) -> Result<()> {
    if !text.contains("\\u") {
        return Ok(());
    }
    let mut reader = Reader { text, at: 0, depth: 0, unescape: true, pace };
    reader.document().map(drop)
}

impl<'a> Reader<'a, '_, '_> {
    /// Parses the members of a valid object or array after its opening bracket.
    fn members(&mut self, object: bool) -> Result<JsonParts<'a>> {
        let (mut pairs, mut elements) = (Vec::new(), Vec::new());
        while let Some((key, value)) = self.member(object)? {
            match key {
                Some(key) => self.pace.push(&mut pairs, (key.into(), value))?,
                None => self.pace.push(&mut elements, value)?,
            }
        }
        Ok(if object { JsonParts::Object(pairs) } else { JsonParts::Array(elements) })
    }

    /// Parses the next member: its key, if it has one, and its value; `None` at the end.
    fn member(&mut self, object: bool) -> Result<Option<(Option<Text>, &'a str)>> {
        let mut token = self.expect()?;
        if token == "," {
            self.at += 1;
            token = self.expect()?;
        }
        if matches!(token, "}" | "]") {
            return Ok(None);
        }
        let key = if object { Some(self.string(token)?) } else { None };
        if object {
            self.expect()?;
            self.at += 1;
        }
        self.expect()?;
        let start = self.at;
        self.unescape = false;
        self.value()?;
        self.unescape = true;
        Ok(Some((key, &self.text[start..self.at])))
    }
}

/// Kind of a `json` value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// An object.
    Object,
    /// An array.
    Array,
    /// Anything else.
    Scalar,
}

/// Returns the kind of a `json`, from its first character.
pub fn json_kind(text: &str) -> JsonKind {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => JsonKind::Object,
        Some(b'[') => JsonKind::Array,
        _ => JsonKind::Scalar,
    }
}

/// Returns the next member of an object or array after `place`, which is initially 0 and is
/// advanced; `None` at the end.
///
/// # Errors
///
/// Those of [`parts`].
pub fn next_member<'a>(
    text: &'a str,
    place: &mut usize,
    pace: &mut InterruptPacer<'_>,
) -> Result<Option<(Option<Text>, &'a str)>> {
    let object = json_kind(text) == JsonKind::Object;
    let mut reader = Reader { text, at: *place, depth: 0, unescape: true, pace };
    if *place == 0 {
        reader.expect()?;
        reader.at += 1;
    }
    let member = reader.member(object)?;
    *place = reader.at;
    Ok(member)
}
