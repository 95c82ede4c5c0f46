//! Text format of values: the output of `psql`, and the input of literals, COPY and text
//! parameters.
//!
//! Input and output are PostgreSQL's to the byte, with the session's format settings
//! ([`Formats`]). Dates are converted in [`datetime`], numerics in [`numeric`](crate::numeric),
//! floats in `text/float.rs`.

mod access;
mod array;
mod bits;
mod bytea;
mod float;
mod geometry;
mod json;
mod json_path;
mod money;
mod record;
mod word;

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use crate::datatype::{DataType, IntervalFields, SqlType};
use crate::datetime;
use crate::datetime::ParseSettings;
use crate::datetime::TimeZone;
use crate::datum::stored_json::StoredJson;
use crate::datum::{Datum, Json, Jsonb, Nested};
use crate::encoding::Encoding;
use crate::error::Error;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::interruptible::InterruptPacer;
use crate::numeric::Numeric;
use crate::system::CatalogHandle;
use crate::vector::{Vector, VectorData};

pub(crate) use self::access::acl_item;
pub(crate) use self::float::general;
pub use self::float::{write_f32, write_f64};
pub(crate) use self::json::too_deep as json_too_deep;
pub use self::json::{
    JsonKind, check_escapes as check_json_escapes, json_kind, next_member as next_json_member,
};
pub use self::json::{JsonParts, parts as json_parts};

/// Maximum bytes of a `name`.
const MAX_NAME_BYTES: usize = 63;

/// Settings of output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats {
    /// Formats of dates and intervals (`DateStyle`, `IntervalStyle`).
    pub style: datetime::Style,
    /// `extra_float_digits`: additional digits of floats. Positive values select the shortest
    /// precise output.
    pub float_digits: i8,
    /// The escape format of `bytea` (`bytea_output`); hex by default.
    pub escape_bytea: bool,
}

impl Default for Formats {
    fn default() -> Formats {
        Formats { style: datetime::Style::default(), float_digits: 1, escape_bytea: false }
    }
}

/// The settings and context that text conversion depends on.
#[derive(Debug, Clone, Default)]
pub struct TextStyle {
    /// The session's time zone, for `timestamptz`.
    pub time_zone: TimeZone,
    /// The session's format settings.
    pub formats: Formats,
    /// The instant of `now`, `today` and related words (microseconds since 2000-01-01 UTC). With
    /// `None`, the default, they are errors.
    pub now: Option<i64>,
    /// The catalog, for `regclass` and other OID types.
    pub system: CatalogHandle,
    /// Interrupt of long conversions.
    pub interrupt: Interrupt,
    /// The client encoding. Conversions in this crate ignore it; text is converted when it is
    /// sent.
    pub encoding: &'static Encoding,
}

/// Appends the decimal digits of an integer.
#[inline]
pub fn write_i64(value: i64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&buffer[at..]);
}

fn write_uuid(uuid: &[u8; 16], out: &mut Vec<u8>) {
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend_from_slice(&bytea::hex(*byte));
    }
}

/// Appends the text of a value that is not NULL.
///
/// # Errors
///
/// `57014` if the interrupt flag is set during a long conversion.
pub fn write(
    value: &Datum,
    data_type: &DataType,
    style: &TextStyle,
    out: &mut Vec<u8>,
) -> Result<()> {
    write_at(value, data_type, style, &mut InterruptPacer::new(&style.interrupt), out)
}

/// Appends the text of a value that is not NULL, without interrupt checks: for short values, in
/// messages and definitions.
pub fn write_short(value: &Datum, data_type: &DataType, style: &TextStyle, out: &mut Vec<u8>) {
    write_at(value, data_type, style, &mut InterruptPacer::without_interrupt(), out)
        .expect("there is no flag to be set");
}

fn write_at(
    value: &Datum,
    data_type: &DataType,
    style: &TextStyle,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    match value {
        Datum::Null => {}
        Datum::Bool(value) => out.push(if *value { b't' } else { b'f' }),
        Datum::Int2(value) => write_i64(i64::from(*value), out),
        Datum::Int4(value) => write_i64(i64::from(*value), out),
        Datum::Int8(value) => write_number(*value, data_type, style, out),
        Datum::Float4(value) => float::put_f32(*value, style.formats.float_digits, out),
        Datum::Float8(value) => float::put_f64(*value, style.formats.float_digits, out),
        Datum::Numeric(value) => value.write(out),
        Datum::Text(text) if *data_type == DataType::InternalChar => write_char(text, out),
        Datum::Text(text) => pace.append(out, text.as_bytes())?,
        Datum::Bytea(bytes) => bytea::write(bytes, style.formats.escape_bytea, pace, out)?,
        Datum::Date(value) => datetime::write_date(*value, style.formats.style, out),
        Datum::Time(value) => datetime::write_time(*value, out),
        Datum::Timestamp(value) => datetime::write_timestamp(*value, style.formats.style, out),
        Datum::Timestamptz(value) => {
            datetime::write_timestamptz(*value, &style.time_zone, style.formats.style, out)
        }
        Datum::Interval(value) => {
            datetime::write_interval(*value, style.formats.style.interval, out)
        }
        Datum::Uuid(value) => write_uuid(value, out),
        Datum::Nested(value) => write_nested(value, data_type, style, pace, out)?,
    }
    Ok(())
}

/// Appends a value that is represented as a 64-bit number.
#[inline]
fn write_number(value: i64, data_type: &DataType, style: &TextStyle, out: &mut Vec<u8>) {
    match data_type {
        DataType::Reg(kind) => style.system.write_reg_name(*kind, value, out),
        DataType::Enum(of) => match of.name_of(value) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => write_i64(value, out),
        },
        DataType::Word(kind) => word::write(value, *kind, out),
        _ => write_i64(value, out),
    }
}

fn write_nested(
    value: &Nested,
    data_type: &DataType,
    style: &TextStyle,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    match value {
        Nested::Array(value) => match data_type {
            DataType::Int2Vector | DataType::OidVector => array::write_vector(value, out),
            _ => {
                let element = data_type.element().unwrap_or(&DataType::Unknown);
                array::write(value, element, style, pace, out)?;
            }
        },
        Nested::Json(text) => pace.append(out, text.as_bytes())?,
        Nested::Jsonb(value) => write_jsonb(value, pace, out)?,
        Nested::JsonPath(path) => json_path::write(path, out),
        Nested::Record(record) => record::write(record, style, pace, out)?,
        Nested::Bits(value) => bits::write(value, pace, out)?,
        Nested::Geometry(value) => geometry::write(value, style.formats.float_digits, pace, out)?,
        Nested::Timetz { time, west } => datetime::write_timetz(*time, *west, out),
    }
    Ok(())
}

/// Appends a `jsonb` in PostgreSQL's format.
///
/// # Errors
///
/// Those of [`write()`].
pub fn write_jsonb(value: &Jsonb, pace: &mut InterruptPacer<'_>, out: &mut Vec<u8>) -> Result<()> {
    match value.stored() {
        Some(stored) => json::write_stored(&mut stored.reader(), pace, out),
        None => json::write(value, pace, out),
    }
}

/// Appends a tree as [`write_jsonb`] does.
pub(crate) fn write_json_tree(
    json: &Json,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    json::write(json, pace, out)
}

/// Appends a stored value as [`write_jsonb`] does.
pub(crate) fn write_stored_json(
    stored: StoredJson<'_>,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    json::write_stored(&mut stored.reader(), pace, out)
}

/// Appends a JSON string literal.
///
/// # Errors
///
/// Those of [`write()`].
pub fn write_json_string(
    text: &str,
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    json::write_string(text, pace, out)
}

/// Appends the text of row `index` of a vector, without a [`Datum`]; nothing for NULL.
///
/// # Errors
///
/// Those of [`write()`].
pub fn write_row(
    vector: &Vector,
    index: usize,
    data_type: &DataType,
    style: &TextStyle,
    out: &mut Vec<u8>,
) -> Result<()> {
    if vector.is_null(index) {
        return Ok(());
    }
    let pace = &mut InterruptPacer::new(&style.interrupt);
    match &vector.data {
        VectorData::Bool(values) => out.push(if values[index] { b't' } else { b'f' }),
        VectorData::Int2(values) => write_i64(i64::from(values[index]), out),
        VectorData::Int4(values) => write_i64(i64::from(values[index]), out),
        VectorData::Int8(values) => write_number(values[index], data_type, style, out),
        VectorData::Float4(values) => {
            float::put_f32(values[index], style.formats.float_digits, out)
        }
        VectorData::Float8(values) => {
            float::put_f64(values[index], style.formats.float_digits, out)
        }
        VectorData::Numeric(values) => values[index].write(out),
        VectorData::Text(values) if *data_type == DataType::InternalChar => {
            write_char(values.str(index), out);
        }
        VectorData::Text(values) => pace.append(out, values.get(index))?,
        VectorData::Bytea(values) => {
            bytea::write(values.get(index), style.formats.escape_bytea, pace, out)?;
        }
        VectorData::Date(values) => datetime::write_date(values[index], style.formats.style, out),
        VectorData::Time(values) => datetime::write_time(values[index], out),
        VectorData::Timestamp(values) => {
            datetime::write_timestamp(values[index], style.formats.style, out)
        }
        VectorData::Timestamptz(values) => {
            datetime::write_timestamptz(values[index], &style.time_zone, style.formats.style, out);
        }
        VectorData::Interval(values) => {
            datetime::write_interval(values[index], style.formats.style.interval, out)
        }
        VectorData::Uuid(values) => write_uuid(&values[index], out),
        VectorData::Nested(values) => write_nested(&values[index], data_type, style, pace, out)?,
    }
    Ok(())
}

/// Appends a `"char"`: a non-ASCII byte in octal digits, because it is not valid text.
fn write_char(text: &str, out: &mut Vec<u8>) {
    match char_byte(text) {
        byte if text.is_empty() || byte.is_ascii() => out.extend_from_slice(text.as_bytes()),
        byte => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
    }
}

/// Parses a `"char"`: the first byte, or the byte of three octal digits after a backslash.
fn parse_char(text: &str) -> Datum {
    let octal = text.strip_prefix('\\').filter(|digits| digits.len() == 3);
    let octal = octal.filter(|digits| digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte)));
    let octal = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
    char_of(octal.unwrap_or_else(|| text.bytes().next().unwrap_or(0)))
}

/// Returns the byte of a `"char"`.
pub(crate) fn char_byte(text: &str) -> u8 {
    text.chars().next().and_then(|first| u8::try_from(first).ok()).unwrap_or(0)
}

/// Returns the `"char"` of a byte.
pub(crate) fn char_of(byte: u8) -> Datum {
    match byte {
        0 => Datum::text(""),
        byte => Datum::text(char::from(byte).to_string()),
    }
}

/// Returns a text without surrounding C white space.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
}

/// Returns a text without leading C white space.
fn trimmed_start(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
}

/// Parses an integer of a type that holds the values of `T`.
fn parse_integer<T: FromStr>(text: &str, data_type: &DataType) -> Result<T> {
    let trimmed = trimmed(text);
    if let Ok(value) = trimmed.parse() {
        return Ok(value);
    }
    let sign = trimmed.len() - trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed).len();
    let digits = trimmed[sign..].bytes().take_while(u8::is_ascii_digit).count();
    // As in PostgreSQL, overflow of the digits is detected before trailing characters.
    if digits == 0 || trimmed[..sign + digits].parse::<T>().is_ok() {
        return Err(Error::bad_text(data_type.sql_name(), text));
    }
    Err(out_of_range(text, data_type))
}

fn out_of_range(text: impl Display, data_type: &DataType) -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "value \"{text}\" is out of range for type {}", data_type.sql_name())
}

/// Parses an OID; negative numbers are increased by 2^32.
fn parse_oid(text: &str) -> Result<i64> {
    // A number that does not fit unsigned is parsed as by C's `strtoul`.
    let value = match trimmed(text).parse::<u64>() {
        Ok(value) => value.cast_signed(),
        Err(_) => parse_integer(text, &DataType::Oid)?,
    };
    if let Ok(oid) = u32::try_from(value) {
        return Ok(i64::from(oid));
    }
    match i32::try_from(value) {
        Ok(negative) => Ok(i64::from(negative as u32)),
        Err(_) => Err(out_of_range(text, &DataType::Oid)),
    }
}

/// Parses a boolean: `t`, `true`, `yes`, `on`, `1`, their opposites and their unambiguous
/// prefixes.
fn parse_bool(text: &str) -> Result<bool> {
    let word = trimmed(text).to_ascii_lowercase();
    let begins = |whole: &str, shortest: usize| word.len() >= shortest && whole.starts_with(&word);
    if word == "1" || begins("true", 1) || begins("yes", 1) || begins("on", 2) {
        Ok(true)
    } else if word == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2) {
        Ok(false)
    } else {
        Err(Error::bad_text("boolean", text))
    }
}

fn parse_uuid(text: &str) -> Result<[u8; 16]> {
    let bad = || Error::bad_text("uuid", text);
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').ok_or_else(bad)?,
        None => text,
    };
    let mut uuid = [0u8; 16];
    let mut rest = inner.as_bytes();
    for (i, byte) in uuid.iter_mut().enumerate() {
        let [high, low, tail @ ..] = rest else { return Err(bad()) };
        let digit = |c: u8| char::from(c).to_digit(16);
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(bad()) };
        *byte = (high * 16 + low) as u8;
        rest = tail;
        if i % 2 == 1 && i < 15 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
    }
    if rest.is_empty() { Ok(uuid) } else { Err(bad()) }
}

/// Returns a text truncated to a `name`, at a character boundary.
fn cut_name(text: &str) -> &str {
    let mut end = text.len().min(MAX_NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Parses a value of a type whose modifier affects parsing.
///
/// # Errors
///
/// Those of [`parse`].
pub fn parse_as(text: &str, to: &SqlType, style: &TextStyle) -> Result<Datum> {
    if to.base != DataType::Interval {
        return parse(text, &to.base, style);
    }
    let fields = IntervalFields::from_modifier(to.modifier);
    let style = style.formats.style.interval;
    Ok(Datum::Interval(datetime::parse_interval(text, style, fields)?))
}

/// Parses a value.
///
/// # Errors
///
/// `22P02`, `22003`, `22007`, `22008` with PostgreSQL's messages.
pub fn parse(text: &str, data_type: &DataType, style: &TextStyle) -> Result<Datum> {
    let formats = style.formats.style;
    let pace = &mut InterruptPacer::new(&style.interrupt);
    let reading = ParseSettings { zone: &style.time_zone, now: style.now, style: formats };
    Ok(match data_type {
        DataType::Bool => Datum::Bool(parse_bool(text)?),
        DataType::Int2 => Datum::Int2(parse_integer(text, data_type)?),
        DataType::Int4 => Datum::Int4(parse_integer(text, data_type)?),
        DataType::Int8 => Datum::Int8(parse_integer(text, data_type)?),
        DataType::Oid => Datum::Int8(parse_oid(text)?),
        DataType::Reg(kind) => Datum::Int8(style.system.parse_reg_name(*kind, text)?),
        DataType::Enum(of) => Datum::Int8(of.parse(text)?),
        DataType::Word(kind) => Datum::Int8(word::parse(text, *kind)?),
        DataType::Geometry(kind) => geometry::parse(text, *kind, pace)?,
        DataType::AclItem => access::parse(text, style)?,
        DataType::Int2Vector | DataType::OidVector => {
            Datum::Nested(Nested::Array(Arc::new(array::parse_vector(text, data_type, style)?)))
        }
        DataType::Float4 => Datum::Float4(float::parse_f32(text)?),
        DataType::Float8 => Datum::Float8(float::parse_f64(text)?),
        DataType::Numeric => Datum::Numeric(Numeric::parse(text)?),
        DataType::Text
        | DataType::Varchar
        | DataType::Char
        | DataType::RefCursor
        | DataType::CString
        | DataType::Unknown => Datum::text(pace.copy::<String>(text)?),
        DataType::Name => Datum::text(cut_name(text)),
        DataType::InternalChar => parse_char(text),
        DataType::Bytea => Datum::bytea(bytea::parse(text, pace)?),
        DataType::Bit | DataType::Varbit => bits::parse(text, pace)?,
        DataType::Date => Datum::Date(datetime::parse_date(text, &reading)?),
        DataType::Time => Datum::Time(datetime::parse_time(text, &reading)?),
        DataType::Timetz => {
            let (time, west) = datetime::parse_timetz(text, &reading)?;
            Datum::Nested(Nested::Timetz { time, west })
        }
        DataType::Timestamp => Datum::Timestamp(datetime::parse_timestamp(text, &reading)?),
        DataType::Timestamptz => Datum::Timestamptz(datetime::parse_timestamptz(text, &reading)?),
        DataType::Interval => {
            Datum::Interval(datetime::parse_interval(text, formats.interval, None)?)
        }
        DataType::Uuid => Datum::Uuid(parse_uuid(text)?),
        DataType::Json => {
            json::check(text, pace)?;
            Datum::Nested(Nested::Json(Arc::new(pace.copy(text)?)))
        }
        DataType::Jsonb => Datum::Nested(Nested::Jsonb((json::parse(text, pace)?).into())),
        DataType::JsonPath => Datum::Nested(Nested::JsonPath(Arc::new(json_path::parse(text)?))),
        DataType::Record => {
            bail!(FEATURE_NOT_SUPPORTED: "input of anonymous composite types is not implemented");
        }
        DataType::Composite(of) => {
            Datum::Nested(Nested::Record(Arc::new(record::parse(text, of, style)?)))
        }
        DataType::Array(element) => {
            Datum::Nested(Nested::Array(Arc::new(array::parse(text, element, style)?)))
        }
        // Polymorphic, internal and shell types.
        _ => bail!(FEATURE_NOT_SUPPORTED: "cannot accept a value of type {}", data_type.sql_name()),
    })
}

/// Returns a quoted name whose opening quote was consumed, and the text after its closing quote;
/// `None` if there is no closing quote.
pub fn unquoted_name(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"')?;
        part.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(behind) => {
                part.push('"');
                rest = behind;
            }
            None => return Some((part, rest)),
        }
    }
}

#[cfg(test)]
mod tests;
