//! The stored form of `jsonb`, and looking into it as it lies there. Byte by byte:
//! `docs/formats/packed-row.md`.
//!
//! Most statements want one member of a value. [`Stored`] finds it without a tree of all the
//! others; [`Jsonb`](crate::datum::Jsonb) is what holds one.
//!
//! # Invariants
//!
//! 1. Only [`check`] and [`write()`] make bytes that [`Stored`] is made of; so what it reads is
//!    whole, its texts are UTF-8, its keys ascend.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::datum::{Datum, Json, compare_json_keys};
use crate::error::Result;
use crate::numeric::Numeric;
use crate::rowcode::{corrupt, read_number, write_number};

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const STRING: u8 = 4;
const ARRAY: u8 = 5;
const OBJECT: u8 = 6;

/// The deepest value that is read, more than text can be.
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
            write_number(number, &mut bytes);
            put_bytes(&bytes, out);
        }
        Json::String(text) => {
            out.push(STRING);
            put_bytes(text.as_bytes(), out);
        }
        Json::Array(elements) => {
            out.push(ARRAY);
            put_varint(elements.len(), out);
            elements.iter().for_each(|element| write(element, out));
        }
        Json::Object(pairs) => {
            out.push(OBJECT);
            put_varint(pairs.len(), out);
            for (key, value) in pairs {
                put_bytes(key.as_bytes(), out);
                write(value, out);
            }
        }
    }
}

fn put_varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Returns whether all of `bytes` are one value.
///
/// # Errors
///
/// `XX001` that says what is wrong if they are not.
pub(crate) fn check(bytes: &[u8]) -> Result<()> {
    let mut reader = Reader { bytes };
    reader.check(0)?;
    match reader.bytes {
        [] => Ok(()),
        _ => Err(corrupt("bytes are left behind a value")),
    }
}

/// A value as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a>(&'a [u8]);

impl<'a> Stored<'a> {
    /// Returns the value of bytes that were checked.
    pub(crate) fn of_checked(bytes: &'a [u8]) -> Stored<'a> {
        Stored(bytes)
    }

    /// Returns the bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the value as a tree.
    pub(crate) fn tree(self) -> Json {
        Reader { bytes: self.0 }.json().expect("what is stored was checked")
    }

    /// Returns whether this is an array or an object.
    pub(crate) fn is_container(self) -> bool {
        matches!(self.0.first(), Some(&(ARRAY | OBJECT)))
    }

    /// Returns whether this is an array.
    pub(crate) fn is_array(self) -> bool {
        self.0.first() == Some(&ARRAY)
    }

    /// Returns whether this is an object.
    pub(crate) fn is_object(self) -> bool {
        self.0.first() == Some(&OBJECT)
    }

    /// Returns a string as it is; `None` for all others.
    pub(crate) fn as_str(self) -> Option<&'a str> {
        let (&tag, bytes) = self.0.split_first()?;
        match tag {
            STRING => Reader { bytes }.text().ok(),
            _ => None,
        }
    }

    /// Returns whether this is `null`.
    pub(crate) fn is_null(self) -> bool {
        self.0.first() == Some(&NULL)
    }

    /// Returns the value of a key; `None` if this is no object or has no such key.
    pub(crate) fn get(self, key: &str) -> Option<Stored<'a>> {
        let (&tag, bytes) = self.0.split_first()?;
        let mut reader = Reader { bytes };
        if tag != OBJECT {
            return None;
        }
        for _ in 0..reader.varint().ok()? {
            let name = reader.key().ok()?;
            match compare_json_keys(name, key.as_bytes()) {
                Ordering::Less => reader.value().map(drop).ok()?,
                Ordering::Equal => return reader.value().ok().map(Stored),
                Ordering::Greater => return None,
            }
        }
        None
    }

    /// Returns an element as [`Json::element`] does.
    pub(crate) fn element(self, index: i64) -> Option<Stored<'a>> {
        let (&tag, bytes) = self.0.split_first()?;
        let mut reader = Reader { bytes };
        if tag != ARRAY {
            return None;
        }
        let count = reader.varint().ok()?;
        let index = if index < 0 { index + count as i64 } else { index };
        let index = usize::try_from(index).ok().filter(|index| *index < count)?;
        for _ in 0..index {
            reader.value().ok()?;
        }
        reader.value().ok().map(Stored)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or_else(|| corrupt("a value is cut off"))?;
        self.bytes = rest;
        Ok(taken)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) =
            self.bytes.split_first().ok_or_else(|| corrupt("a value is cut off"))?;
        self.bytes = rest;
        Ok(byte)
    }

    #[inline]
    fn varint(&mut self) -> Result<usize> {
        let mut value = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return usize::try_from(value).map_err(|_| corrupt("a length is too large"));
            }
        }
        Err(corrupt("a length has no end"))
    }

    #[inline]
    fn key(&mut self) -> Result<&'a [u8]> {
        let length = self.varint()?;
        self.take(length)
    }

    fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.key()?).map_err(|_| corrupt("a text is not UTF-8"))
    }

    fn number(&mut self) -> Result<Numeric> {
        read_number(self.key()?)
    }

    /// Passes one value by, which was checked, and returns its bytes.
    fn value(&mut self) -> Result<&'a [u8]> {
        let start = self.bytes;
        // How many values are still to be passed: objects and arrays bring more.
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
            return Err(corrupt("a jsonb is nested too deep"));
        }
        match self.byte()? {
            NULL | FALSE | TRUE => Ok(()),
            NUMBER => self.number().map(drop),
            STRING => self.text().map(drop),
            ARRAY => (0..self.varint()?).try_for_each(|_| self.check(depth + 1)),
            OBJECT => {
                let mut last: Option<&[u8]> = None;
                for _ in 0..self.varint()? {
                    let key = self.text()?.as_bytes();
                    if last.is_some_and(|last| compare_json_keys(last, key).is_ge()) {
                        return Err(corrupt("the keys of a jsonb do not ascend"));
                    }
                    last = Some(key);
                    self.check(depth + 1)?;
                }
                Ok(())
            }
            _ => Err(corrupt("a jsonb begins with a bad byte")),
        }
    }

    fn json(&mut self) -> Result<Json> {
        Ok(match self.byte()? {
            NULL => Json::Null,
            FALSE => Json::Bool(false),
            TRUE => Json::Bool(true),
            NUMBER => Json::Number(self.number()?),
            STRING => Json::String(self.text()?.into()),
            ARRAY => {
                let count = self.varint()?;
                let mut elements = Vec::with_capacity(count.min(self.bytes.len()));
                for _ in 0..count {
                    elements.push(self.json()?);
                }
                Json::Array(elements)
            }
            OBJECT => {
                let count = self.varint()?;
                let mut pairs = Vec::with_capacity(count.min(self.bytes.len()));
                for _ in 0..count {
                    let key: Arc<str> = self.text()?.into();
                    pairs.push((key, self.json()?));
                }
                Json::Object(pairs)
            }
            _ => return Err(corrupt("a jsonb begins with a bad byte")),
        })
    }
}
