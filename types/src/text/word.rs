//! Text format of [word types](crate::datatype::FixedWidthKind): `tid`, `xid`, `macaddr`, `pg_lsn`
//! and others.

use super::{money, write_i64};
use crate::datatype::{DataType, FixedWidthKind};
use crate::error::{Error, Result};

/// Appends a value.
pub(super) fn write(held: i64, kind: FixedWidthKind, out: &mut Vec<u8>) {
    let number = kind.to_unsigned(held);
    match kind {
        FixedWidthKind::Tid => {
            out.extend_from_slice(format!("({},{})", number >> 16, number & 0xffff).as_bytes());
        }
        FixedWidthKind::Xid | FixedWidthKind::Cid => write_i64(held, out),
        FixedWidthKind::Xid8 => out.extend_from_slice(number.to_string().as_bytes()),
        FixedWidthKind::PgLsn => {
            out.extend_from_slice(format!("{:X}/{:X}", number >> 32, number as u32).as_bytes());
        }
        FixedWidthKind::MacAddr => write_bytes(&number.to_be_bytes()[2..], out),
        FixedWidthKind::MacAddr8 => write_bytes(&number.to_be_bytes(), out),
        FixedWidthKind::Money => money::write(held, out),
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.push(b':');
        }
        out.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
}

/// Parses a value.
pub(super) fn parse(text: &str, kind: FixedWidthKind) -> Result<i64> {
    let bad = || Error::bad_text(DataType::Word(kind).sql_name(), text);
    let number = match kind {
        FixedWidthKind::Tid => parse_tid(text).ok_or_else(bad)?,
        FixedWidthKind::Xid | FixedWidthKind::Cid => {
            u64::from(scan_unsigned(text, None).number as u32)
        }
        FixedWidthKind::Xid8 => scan_unsigned(text, None).number,
        FixedWidthKind::PgLsn => parse_lsn(text).ok_or_else(bad)?,
        FixedWidthKind::MacAddr => parse_macaddr(text).ok_or_else(bad)?.ok_or_else(|| {
            err!(NUMERIC_VALUE_OUT_OF_RANGE: "invalid octet value in \"macaddr\" value: \"{text}\"")
        })?,
        FixedWidthKind::MacAddr8 => parse_macaddr8(text).ok_or_else(bad)?,
        FixedWidthKind::Money => return money::parse(text),
    };
    Ok(kind.of_unsigned(number))
}

/// A number at the start of a text.
struct ScannedNumber<'a> {
    /// 0 if there is no number, the maximum on overflow.
    number: u64,
    is_too_large: bool,
    /// The text after the number; all text if there is none.
    rest: &'a str,
}

/// Parses a number as C's `strtoull` does: in any base if `base` is `None`; a minus subtracts it
/// from 2^64.
fn scan_unsigned(text: &str, base: Option<u32>) -> ScannedNumber<'_> {
    let start = super::trimmed_start(text);
    let (negative, digits) = match start.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, start.strip_prefix('+').unwrap_or(start)),
    };
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let hex = hex.filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (digits, base) = match (base, hex) {
        (Some(base), _) => (digits, base),
        (None, Some(rest)) => (rest, 16),
        (None, None) if digits.starts_with('0') => (digits, 8),
        (None, None) => (digits, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    let (number, rest) = digits.split_at(end);
    if number.is_empty() {
        return ScannedNumber { number: 0, is_too_large: false, rest: text };
    }
    let read = u64::from_str_radix(number, base).ok();
    let number = match read {
        Some(number) if negative => number.wrapping_neg(),
        number => number.unwrap_or(u64::MAX),
    };
    ScannedNumber { number, is_too_large: read.is_none(), rest }
}

/// Parses `(block,offset)`; text before and after it is ignored.
fn parse_tid(text: &str) -> Option<u64> {
    let mut starts = Vec::with_capacity(2);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b')' => break,
            b',' => starts.push(at + 1),
            b'(' if starts.is_empty() => starts.push(at + 1),
            _ => {}
        }
        if starts.len() == 2 {
            break;
        }
    }
    let &[first, second] = starts.as_slice() else { return None };
    let block = scan_unsigned(&text[first..], Some(10));
    let offset = scan_unsigned(&text[second..], Some(10));
    let held = block.number as u32;
    let is_number = block.number == u64::from(held)
        || block.number == i64::from(held.cast_signed()).cast_unsigned();
    let is_good = is_number
        && !block.is_too_large
        && block.rest.starts_with(',')
        && offset.rest.starts_with(')')
        && offset.number <= 0xffff;
    is_good.then_some(u64::from(held) << 16 | offset.number)
}

/// Parses `hex/hex`, up to 8 digits each.
fn parse_lsn(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let half = |digits: &str| {
        let fits = (1..=8).contains(&digits.len());
        let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        (fits && hex).then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    Some(half(high)? << 32 | half(low)?)
}

/// The forms of a `macaddr`: separators after the numbers, and maximum digits of a number.
const MACADDR_FORMS: [([&str; 5], usize); 7] = [
    ([":"; 5], usize::MAX),
    (["-"; 5], usize::MAX),
    (["", "", ":", "", ""], 2),
    (["", "", "-", "", ""], 2),
    (["", ".", "", ".", ""], 2),
    (["", "-", "", "-", ""], 2),
    ([""; 5], 2),
];

/// Parses six bytes, as C's `sscanf` would with one of the forms; `Some(None)` if one is too
/// large.
fn parse_macaddr(text: &str) -> Option<Option<u64>> {
    let numbers = MACADDR_FORMS.iter().find_map(|(separators, width)| {
        let mut rest = text;
        let mut numbers = [0; 6];
        for (index, number) in numbers.iter_mut().enumerate() {
            (*number, rest) = scan_hex(rest, *width)?;
            rest = rest.strip_prefix(separators.get(index).copied().unwrap_or_default())?;
        }
        super::trimmed(rest).is_empty().then_some(numbers)
    })?;
    let bytes = numbers.iter().try_fold(0, |all, number| {
        u8::try_from(*number).ok().map(|byte| all << 8 | u64::from(byte))
    });
    Some(bytes)
}

/// Parses a hexadecimal number of at most `width` characters, after optional blanks.
fn scan_hex(text: &str, width: usize) -> Option<(u64, &str)> {
    let text = super::trimmed_start(text);
    let limit = text.char_indices().nth(width).map_or(text.len(), |(at, _)| at);
    let field = &text[..limit];
    let unsigned = field.strip_prefix(['+', '-']).unwrap_or(field);
    let bare = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
    let digits = bare.filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let digits = digits.unwrap_or(unsigned);
    let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    if count == 0 {
        return None;
    }
    let value = u64::from_str_radix(&digits[..count], 16).unwrap_or(u64::MAX);
    let value = if field.starts_with('-') && value != 0 { u64::MAX } else { value };
    Some((value, &text[limit - (digits.len() - count)..]))
}

/// Parses six or eight bytes, with one kind of separator or none.
fn parse_macaddr8(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let is_blank = |byte: u8| byte.is_ascii_whitespace() || byte == 0x0b;
    let mut at = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    let (mut values, mut separator) = (Vec::with_capacity(8), None);
    while at + 1 < bytes.len() {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let value = digit(bytes[at])? << 4 | digit(bytes[at + 1])?;
        if values.len() == 8 {
            return None;
        }
        values.push(value as u8);
        at += 2;
        if let Some(found @ (b':' | b'-' | b'.')) = bytes.get(at).copied() {
            if *separator.get_or_insert(found) != found {
                return None;
            }
            at += 1;
        }
        if matches!(values.len(), 6 | 8) && bytes.get(at).copied().is_some_and(is_blank) {
            at += bytes[at..].iter().take_while(|byte| is_blank(**byte)).count();
            if at < bytes.len() {
                return None;
            }
        }
    }
    if let &[a, b, c, d, e, f] = values.as_slice() {
        values = vec![a, b, c, 0xff, 0xfe, d, e, f];
    }
    Some(u64::from_be_bytes(values.try_into().ok()?))
}
