//! Human-readable sizes: `pg_size_pretty` and `pg_size_bytes`.

use super::argument::{int8, numeric, text, text_datum};
use super::strings::invalid_parameter;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Int8, Numeric, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::numeric as decimal;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("pg_size_pretty", &[Int8], Text, |a, _| Ok(text_datum(pretty(int8(&a[0]).into())))),
    row("pg_size_pretty", &[Numeric], Text, pretty_numeric),
    row("pg_size_bytes", &[Text], Int8, size_bytes),
];

/// Units and their powers of two.
const UNITS: [(&str, u32); 6] =
    [("bytes", 0), ("kB", 10), ("MB", 20), ("GB", 30), ("TB", 40), ("PB", 50)];

/// Formats a size. A unit is used up to about ten thousand of the previous one.
fn pretty(size: i128) -> String {
    const LIMIT: i128 = 10 * 1024;
    if size.abs() < LIMIT {
        return format!("{size} bytes");
    }
    let mut unit = 1;
    // Half units, so that the last step can round.
    let mut halves = size >> 9;
    while halves.abs() >= LIMIT * 2 - 1 && unit + 1 < UNITS.len() {
        halves /= 1 << 10;
        unit += 1;
    }
    let rounded = (halves + halves.signum()) / 2;
    format!("{rounded} {}", UNITS[unit].0)
}

fn pretty_numeric(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let size = numeric(&arguments[0]);
    let limit = decimal::Numeric::from_i128(10 * 1024);
    if !size.is_finite() {
        return Ok(text_datum(format!("{size} {}", UNITS[UNITS.len() - 1].0)));
    }
    if size.abs() < limit {
        return Ok(text_datum(format!("{size} bytes")));
    }
    match size.to_i128() {
        Some(size) => Ok(text_datum(pretty(size))),
        None => Err(invalid_parameter("invalid size")),
    }
}

fn size_bytes(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let written = text(&arguments[0]);
    let invalid = || invalid_parameter(format!("invalid size: \"{written}\""));
    let trimmed = written.trim();
    let number_end = trimmed
        .char_indices()
        .find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || (*at == 0 && "+-".contains(*c))))
        .map_or(trimmed.len(), |(at, _)| at);
    let (mut number, mut unit) = trimmed.split_at(number_end);
    if let Some(exponent) = exponent_length(unit) {
        (number, unit) = trimmed.split_at(number_end + exponent);
    }
    let value = decimal::Numeric::parse(number).map_err(|_| invalid())?;
    let unit = unit.trim();
    let power = match unit {
        "" => Some(0),
        _ => UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, p)| *p),
    };
    let Some(power) = power else {
        return Err(invalid()
            .with_detail(format!("Invalid size unit: \"{unit}\"."))
            .with_hint("Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\"."));
    };
    let bytes = value
        .checked_mul(
            &decimal::Numeric::from_i128(1 << power),
            &mut InterruptPacer::without_interrupt(),
        )?
        .round(0)
        .to_i64();
    bytes.map(Datum::Int8).ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE: "bigint out of range"))
}

/// Returns the length of `e5` or `E-3` at the start of a text.
fn exponent_length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(['e', 'E'])?;
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    (count > 0).then(|| text.len() - digits.len() + count)
}
