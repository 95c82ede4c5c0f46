//! Text format of `money`: dollars and cents, as in PostgreSQL with `lc_monetary` C.

use crate::error::{Error, Result};

const FRACTION_DIGITS: usize = 2;

/// Appends a value: `-$1,234.50`.
pub(super) fn write(cents: i64, out: &mut Vec<u8>) {
    let number = cents.unsigned_abs();
    if cents < 0 {
        out.push(b'-');
    }
    out.push(b'$');
    let whole = (number / 100).to_string();
    for (index, digit) in whole.bytes().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(b',');
        }
        out.push(digit);
    }
    out.extend_from_slice(format!(".{:02}", number % 100).as_bytes());
}

/// Parses a value: `$`, a sign or a parenthesis, `$`, digits with commas, a point and digits, of
/// which the third rounds the second; then again signs, `$` and parentheses.
pub(super) fn parse(text: &str) -> Result<i64> {
    let range =
        || err!(NUMERIC_VALUE_OUT_OF_RANGE: "value \"{text}\" is out of range for type money");
    let blanks = super::trimmed_start;
    let after_symbol = |rest| str::strip_prefix(rest, '$').unwrap_or(rest);
    let mut rest = blanks(after_symbol(blanks(text)));
    let mut negative = rest.starts_with(['-', '(']);
    rest = after_symbol(blanks(rest.strip_prefix(['-', '(', '+']).unwrap_or(rest)));
    // Accumulates the negative value, because the negative range is larger by one.
    let times_ten = |value: i64, digit: i64| {
        value.checked_mul(10).and_then(|value| value.checked_sub(digit)).ok_or_else(range)
    };
    let (mut value, mut decimals, mut point) = (0_i64, 0, false);
    while let Some(next) = rest.chars().next() {
        match next {
            digit @ '0'..='9' if decimals < FRACTION_DIGITS => {
                value = times_ten(value, i64::from(digit as u8 - b'0'))?;
                decimals += usize::from(point);
            }
            '.' if !point => point = true,
            ',' => {}
            _ => break,
        }
        rest = &rest[1..];
    }
    for _ in decimals..FRACTION_DIGITS {
        value = times_ten(value, 0)?;
    }
    if rest.starts_with(['5', '6', '7', '8', '9']) {
        value = value.checked_sub(1).ok_or_else(range)?;
    }
    rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let tail = |c: char| c.is_ascii_whitespace() || matches!(c, '\x0b' | ')' | '-' | '+' | '$');
    if !rest.chars().all(tail) {
        return Err(Error::bad_text("money", text));
    }
    negative |= rest.contains('-');
    if negative { Ok(value) } else { value.checked_neg().ok_or_else(range) }
}
