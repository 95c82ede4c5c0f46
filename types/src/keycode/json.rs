//! Key encoding of `jsonb`: a type byte in PostgreSQL's order, then the value.
//!
//! ```text
//! 0x10  an empty array at the top level
//! 0x20  null
//! 0x30  string   as text
//! 0x40  number   as numeric
//! 0x50  boolean  0x00 or 0x01
//! 0x60  array    number of elements u32, each element
//! 0x70  object   number of pairs u32, of each the key as text and the value
//! ```
//!
//! Numbers are big-endian. So arrays and objects sort by size first. Equal values have the same
//! key; [`rowcode`](crate::rowcode) stores the scales of their numbers.

use std::sync::Arc;

use super::{corrupt, decimal, decode_bytes, fixed, put_bytes};
use crate::datum::{Json, MAX_JSON_DEPTH, Nested};
use crate::error::Result;
use crate::vector::ValueSink;

const EMPTY: u8 = 0x10;
const NULL: u8 = 0x20;
const STRING: u8 = 0x30;
const NUMBER: u8 = 0x40;
const BOOLEAN: u8 = 0x50;
const ARRAY: u8 = 0x60;
const OBJECT: u8 = 0x70;

pub(super) fn put(json: &Json, out: &mut Vec<u8>) {
    match json {
        Json::Array(elements) if elements.is_empty() => out.push(EMPTY),
        json => put_within(json, out),
    }
}

fn put_within(json: &Json, out: &mut Vec<u8>) {
    let count = |count: usize| (count as u32).to_be_bytes();
    match json {
        Json::Null => out.push(NULL),
        Json::String(text) => {
            out.push(STRING);
            put_bytes(text.as_bytes(), out);
        }
        Json::Number(number) => {
            out.push(NUMBER);
            decimal::encode(number, out);
        }
        Json::Bool(value) => out.extend_from_slice(&[BOOLEAN, u8::from(*value)]),
        Json::Array(elements) => {
            out.push(ARRAY);
            out.extend_from_slice(&count(elements.len()));
            elements.iter().for_each(|element| put_within(element, out));
        }
        Json::Object(pairs) => {
            out.push(OBJECT);
            out.extend_from_slice(&count(pairs.len()));
            for (key, value) in pairs {
                put_bytes(key.as_bytes(), out);
                put_within(value, out);
            }
        }
    }
}

pub(super) fn decode(bytes: &[u8], mask: u8, sink: &mut impl ValueSink) -> Result<usize> {
    let mut reader = Reader { bytes, mask, at: 0, depth: 0 };
    let json = match fixed(bytes, mask)? {
        [EMPTY] => {
            reader.at = 1;
            Json::Array(Vec::new())
        }
        _ => reader.value()?,
    };
    sink.put_nested(Nested::Jsonb(json.into()));
    Ok(reader.at)
}

struct Reader<'a> {
    bytes: &'a [u8],
    mask: u8,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = fixed(self.rest(), self.mask)?;
        self.at += N;
        Ok(taken)
    }

    fn text(&mut self) -> Result<Arc<str>> {
        let mut text: Option<Arc<str>> = None;
        let taken = decode_bytes(self.rest(), self.mask, |bytes| {
            let read = std::str::from_utf8(bytes).map_err(|_| corrupt("invalid UTF-8 text"))?;
            text = Some(Arc::from(read));
            Ok(())
        })?;
        self.at += taken;
        text.ok_or_else(|| corrupt("a text is missing"))
    }

    /// Reads a number of values, each of which takes at least one byte.
    fn count(&mut self) -> Result<usize> {
        let count = u32::from_be_bytes(self.take()?) as usize;
        match count <= self.rest().len() {
            true => Ok(count),
            false => Err(corrupt("truncated jsonb")),
        }
    }

    fn value(&mut self) -> Result<Json> {
        Ok(match self.take()? {
            [NULL] => Json::Null,
            [STRING] => Json::String(self.text()?.into()),
            [NUMBER] => {
                let (number, taken) = decimal::decode(self.rest(), self.mask)?;
                self.at += taken;
                Json::Number(number)
            }
            [BOOLEAN] => Json::Bool(self.take()? != [0]),
            [kind @ (ARRAY | OBJECT)] => {
                self.depth += 1;
                if self.depth > MAX_JSON_DEPTH {
                    return Err(corrupt("a jsonb is nested too deeply"));
                }
                let count = self.count()?;
                let json = if kind == ARRAY { self.array(count)? } else { self.object(count)? };
                self.depth -= 1;
                json
            }
            _ => return Err(corrupt("invalid first byte of a jsonb")),
        })
    }

    fn array(&mut self, count: usize) -> Result<Json> {
        (0..count).map(|_| self.value()).collect::<Result<_>>().map(Json::Array)
    }

    fn object(&mut self, count: usize) -> Result<Json> {
        let pairs = (0..count).map(|_| Ok((self.text()?, self.value()?)));
        pairs.collect::<Result<_>>().map(Json::Object)
    }
}
