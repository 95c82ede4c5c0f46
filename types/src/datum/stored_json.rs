//! The stored form of `jsonb`, and access to it without decoding. Byte by byte:
//! `docs/formats/packed-row.md`.
//!
//! Most statements read one member of a value. [`StoredJson`] finds it without a tree of all the
//! others; [`Jsonb`](crate::datum::Jsonb) owns the bytes.
//!
//! # Invariants
//!
//! 1. The bytes of a [`StoredJson`] come from [`check`] or [`write()`]; they are well-formed, texts
//!    are UTF-8, and keys are sorted.
//!
//! In debug builds, [`write()`] asserts the order of keys, and a
//! [`Jsonb`](crate::datum::Jsonb) of a part of another value asserts 1.

use std::cmp::Ordering;
use std::sync::Arc;

use super::json::{Json, compare_keys};
use crate::error::{Result, corrupt};
use crate::numeric::Numeric;
use crate::varint;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const STRING: u8 = 4;
const ARRAY: u8 = 5;
const OBJECT: u8 = 6;

/// Maximum depth of a stored value, more than the parser accepts.
const MAX_DEPTH: usize = 1_100;

/// Appends a value.
pub(crate) fn write(json: &Json, out: &mut Vec<u8>) {
    match json {
        Json::Null => out.push(NULL),
        Json::Bool(false) => out.push(FALSE),
        Json::Bool(true) => out.push(TRUE),
        Json::Number(number) => {
            out.push(NUMBER);
            let mut bytes = Vec::new();
            number.write_stored(&mut bytes);
            put_bytes(&bytes, out);
        }
        Json::String(text) => {
            out.push(STRING);
            put_bytes(text.as_bytes(), out);
        }
        Json::Array(elements) => {
            out.push(ARRAY);
            varint::put(elements.len() as u64, out);
            elements.iter().for_each(|element| write(element, out));
        }
        Json::Object(pairs) => {
            debug_assert!(
                pairs.is_sorted_by(|(a, _), (b, _)| {
                    compare_keys(a.as_bytes(), b.as_bytes()) == Ordering::Less
                }),
                "keys are not in order"
            );
            out.push(OBJECT);
            varint::put(pairs.len() as u64, out);
            for (key, value) in pairs {
                put_bytes(key.as_bytes(), out);
                write(value, out);
            }
        }
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint::put(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Returns an error unless `bytes` are exactly one value.
///
/// # Errors
///
/// `XX001` with the reason.
pub(crate) fn check(bytes: &[u8]) -> Result<()> {
    let mut reader = StoredJsonReader { bytes };
    reader.check(0)?;
    match reader.bytes {
        [] => Ok(()),
        _ => Err(corrupt("trailing bytes after a value")),
    }
}

/// A stored value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredJson<'a>(&'a [u8]);

impl<'a> StoredJson<'a> {
    /// Returns the value of checked bytes.
    pub(crate) fn of_checked(bytes: &'a [u8]) -> StoredJson<'a> {
        StoredJson(bytes)
    }

    /// Returns the bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the value as a tree.
    pub(crate) fn tree(self) -> Json {
        self.reader().json().expect("what is stored was checked")
    }

    /// Returns a reader of the value's tokens.
    pub(crate) fn reader(self) -> StoredJsonReader<'a> {
        StoredJsonReader { bytes: self.0 }
    }

    /// Returns whether this is an array or an object.
    pub(crate) fn is_container(self) -> bool {
        matches!(self.0.first(), Some(&(ARRAY | OBJECT)))
    }

    /// Returns whether this is `null`.
    pub(crate) fn is_null(self) -> bool {
        self.0.first() == Some(&NULL)
    }

    /// Returns whether this is an array.
    pub(crate) fn is_array(self) -> bool {
        self.0.first() == Some(&ARRAY)
    }

    /// Returns whether this is an object.
    pub(crate) fn is_object(self) -> bool {
        self.0.first() == Some(&OBJECT)
    }

    /// Returns the bytes of a string, which are UTF-8; `None` for other values.
    pub(crate) fn as_text(self) -> Option<&'a [u8]> {
        let (&tag, bytes) = self.0.split_first()?;
        match tag {
            STRING => StoredJsonReader { bytes }.key().ok(),
            _ => None,
        }
    }

    /// Returns a number; `None` for other values.
    pub(crate) fn as_number(self) -> Option<Numeric> {
        let (&tag, bytes) = self.0.split_first()?;
        match tag {
            NUMBER => StoredJsonReader { bytes }.number().ok(),
            _ => None,
        }
    }

    /// Returns the value of a key; `None` if this is not an object or has no such key.
    pub(crate) fn get(self, key: &str) -> Option<StoredJson<'a>> {
        let (&tag, bytes) = self.0.split_first()?;
        let mut reader = StoredJsonReader { bytes };
        if tag != OBJECT {
            return None;
        }
        for _ in 0..reader.varint().ok()? {
            let name = reader.key().ok()?;
            match compare_keys(name, key.as_bytes()) {
                Ordering::Less => reader.value().map(drop).ok()?,
                Ordering::Equal => return reader.value().ok().map(StoredJson),
                Ordering::Greater => return None,
            }
        }
        None
    }

    /// Returns an element as [`Json::element`] does.
    pub(crate) fn element(self, index: i64) -> Option<StoredJson<'a>> {
        let (&tag, bytes) = self.0.split_first()?;
        let mut reader = StoredJsonReader { bytes };
        if tag != ARRAY {
            return None;
        }
        let count = reader.varint().ok()?;
        let index = if index < 0 { index + count as i64 } else { index };
        let index = usize::try_from(index).ok().filter(|index| *index < count)?;
        for _ in 0..index {
            reader.value().ok()?;
        }
        reader.value().ok().map(StoredJson)
    }
}

/// A scalar, or the start of an array or object.
pub(crate) enum JsonToken<'a> {
    Null,
    Bool(bool),
    Number(Numeric),
    String(&'a str),
    /// The number of values that follow.
    Array(usize),
    /// The number of keys that follow, each with its value.
    Object(usize),
}

/// Reader of a sequence of values.
pub(crate) struct StoredJsonReader<'a> {
    bytes: &'a [u8],
}

impl<'a> StoredJsonReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or_else(|| corrupt("truncated value"))?;
        self.bytes = rest;
        Ok(taken)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.bytes.split_first().ok_or_else(|| corrupt("truncated value"))?;
        self.bytes = rest;
        Ok(byte)
    }

    #[inline]
    fn varint(&mut self) -> Result<usize> {
        let length = varint::take(&mut self.bytes).ok_or_else(|| corrupt("unterminated length"))?;
        usize::try_from(length).map_err(|_| corrupt("invalid length"))
    }

    #[inline]
    fn key(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        self.take(length)
    }

    /// Reads the next token.
    pub(crate) fn token(&mut self) -> Result<JsonToken<'a>> {
        Ok(match self.byte()? {
            NULL => JsonToken::Null,
            FALSE => JsonToken::Bool(false),
            TRUE => JsonToken::Bool(true),
            NUMBER => JsonToken::Number(self.number()?),
            STRING => JsonToken::String(self.text()?),
            ARRAY => JsonToken::Array(self.varint()?),
            OBJECT => JsonToken::Object(self.varint()?),
            _ => return Err(corrupt("invalid first byte of a jsonb")),
        })
    }

    /// Reads a key.
    pub(crate) fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.key()?).map_err(|_| corrupt("invalid UTF-8 text"))
    }

    /// Reads and validates the bytes of a text; most are short ASCII.
    #[inline]
    fn checked_text(&mut self) -> Result<&'a [u8]> {
        let bytes = self.key()?;
        match bytes.is_ascii() || std::str::from_utf8(bytes).is_ok() {
            true => Ok(bytes),
            false => Err(corrupt("invalid UTF-8 text")),
        }
    }

    fn number(&mut self) -> Result<Numeric> {
        Numeric::read_stored(self.key()?).ok_or_else(|| corrupt("invalid number"))
    }

    /// Skips one checked value and returns its bytes.
    fn value(&mut self) -> Result<&'a [u8]> {
        let start = self.bytes;
        // Number of values to skip, including those in arrays and objects.
        let mut left = 1_usize;
        while left > 0 {
            left -= 1;
            match self.byte()? {
                NUMBER | STRING => drop(self.key()?),
                ARRAY => left += self.varint()?,
                OBJECT => {
                    for _ in 0..self.varint()? {
                        self.key()?;
                        self.value()?;
                    }
                }
                _ => {}
            }
        }
        Ok(&start[..start.len() - self.bytes.len()])
    }

    fn check(&mut self, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(corrupt("a jsonb is nested too deeply"));
        }
        match self.byte()? {
            NULL | FALSE | TRUE => Ok(()),
            NUMBER => match Numeric::is_stored(self.key()?) {
                true => Ok(()),
                false => Err(corrupt("invalid number")),
            },
            STRING => self.checked_text().map(drop),
            ARRAY => (0..self.varint()?).try_for_each(|_| self.check(depth + 1)),
            OBJECT => {
                let mut last: Option<&[u8]> = None;
                for _ in 0..self.varint()? {
                    let key = self.checked_text()?;
                    if last.is_some_and(|last| compare_keys(last, key).is_ge()) {
                        return Err(corrupt("keys of a jsonb are not in ascending order"));
                    }
                    last = Some(key);
                    self.check(depth + 1)?;
                }
                Ok(())
            }
            _ => Err(corrupt("invalid first byte of a jsonb")),
        }
    }

    fn json(&mut self) -> Result<Json> {
        Ok(match self.token()? {
            JsonToken::Null => Json::Null,
            JsonToken::Bool(value) => Json::Bool(value),
            JsonToken::Number(number) => Json::Number(number),
            JsonToken::String(text) => Json::String(text.into()),
            JsonToken::Array(count) => {
                let mut elements = Vec::with_capacity(count.min(self.bytes.len()));
                for _ in 0..count {
                    elements.push(self.json()?);
                }
                Json::Array(elements)
            }
            JsonToken::Object(count) => {
                let mut pairs = Vec::with_capacity(count.min(self.bytes.len()));
                for _ in 0..count {
                    let key: Arc<str> = self.text()?.into();
                    pairs.push((key, self.json()?));
                }
                Json::Object(pairs)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::DataType;
    use crate::datum::{Datum, Nested};
    use crate::text::{self, TextStyle};

    fn tree(text: &str) -> Json {
        match text::parse(text, &DataType::Jsonb, &TextStyle::default()).unwrap() {
            Datum::Nested(Nested::Jsonb(json)) => json.into_json(),
            other => panic!("{text} is {other:?}"),
        }
    }

    const VALUES: [&str; 8] = [
        r#"{"b": [1, 2.50, null, true], "a": {"": "x", "y": [[], {}]}, "bb": false, "ccc": "é"}"#,
        r#"[{"a": [{"b": 1}]}, "z", [1, [2, [3]]], -7, {"k": {"l": {}}}]"#,
        "[]",
        "{}",
        r#""text""#,
        "12345678901234567890.5",
        "null",
        r#"{"a": 1, "c": 2, "aa": 3, "ca": {"a": 4}}"#,
    ];

    /// Asserts that the stored form and the tree agree in all parts.
    fn agree(stored: StoredJson<'_>, json: &Json) {
        assert_eq!(stored.tree(), *json);
        assert_eq!(stored.is_container(), json.is_container());
        assert_eq!(stored.is_array(), matches!(json, Json::Array(_)));
        assert_eq!(stored.is_object(), matches!(json, Json::Object(_)));
        let text = if let Json::String(text) = json { Some(&**text) } else { None };
        assert_eq!(stored.as_text(), text.map(str::as_bytes));
        let number = if let Json::Number(number) = json { Some(number.clone()) } else { None };
        assert_eq!(stored.as_number(), number);
        for key in ["", "a", "b", "c", "y", "aa", "bb", "ca", "cb", "ccc", "dddd"] {
            match (stored.get(key), json.get(key)) {
                (Some(stored), Some(json)) => agree(stored, json),
                (stored, json) => assert_eq!((stored.map(StoredJson::tree), json), (None, None)),
            }
        }
        for index in -6..6 {
            match (stored.element(index), json.element(index)) {
                (Some(stored), Some(json)) => agree(stored, json),
                (stored, json) => assert_eq!((stored.map(StoredJson::tree), json), (None, None)),
            }
        }
    }

    #[test]
    fn stored_json_access_matches_tree() {
        for text in VALUES {
            let (json, mut bytes) = (tree(text), Vec::new());
            write(&json, &mut bytes);
            check(&bytes).unwrap();
            agree(StoredJson::of_checked(&bytes), &json);
        }
    }

    #[test]
    fn checked_stored_json_is_readable() {
        for text in VALUES {
            let mut bytes = Vec::new();
            write(&tree(text), &mut bytes);
            for cut in 0..bytes.len() {
                assert!(check(&bytes[..cut]).is_err(), "{text} {cut}");
            }
            for (at, flip) in (0..bytes.len()).flat_map(|at| (1..=255).map(move |flip| (at, flip)))
            {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                if check(&damaged).is_ok() {
                    let stored = StoredJson::of_checked(&damaged);
                    agree(stored, &stored.tree());
                }
            }
        }
        let unsorted = [OBJECT, 2, 1, b'b', NULL, 1, b'a', NULL];
        assert!(check(&unsorted).is_err());
    }
}
