//! Settings with units: parsing and printing of times and sizes as in PostgreSQL.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::settings::value_error::{invalid, outside};

/// Maximum of most integer settings.
pub(super) const INTEGER_MAX: i64 = i32::MAX as i64;

/// Returns a quantity within bounds in the form that SHOW prints.
pub(super) fn whole_quantity(
    (name, value): (&str, &str),
    units: Units,
    (low, high): (i64, i64),
) -> Result<String> {
    let unread = || unread_quantity(name, value, units);
    let quantity = parse_quantity(value, units).ok_or_else(unread)?;
    if (low..=high).contains(&quantity) {
        return Ok(print_quantity(quantity, units));
    }
    if quantity > INTEGER_MAX {
        return Err(invalid(name, value).with_hint("Value exceeds integer range."));
    }
    let unit = units[0].0;
    Err(outside(name, &format!("{quantity} {unit}"), (&low.to_string(), &high.to_string())))
}

/// Returns the error of an invalid quantity.
pub(super) fn unread_quantity(name: &str, value: &str, units: Units) -> Error {
    let error = invalid(name, value);
    let number = value.trim().trim_end_matches(|c: char| !c.is_ascii_digit());
    if number.parse::<f64>().is_err() {
        return error;
    }
    if number_and_unit(value, units).is_some() {
        return error.with_hint("Value exceeds integer range.");
    }
    let valid = match units[0].0 {
        "kB" => "\"B\", \"kB\", \"MB\", \"GB\", and \"TB\"",
        _ => "\"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"",
    };
    error.with_hint(format!("Valid units for this parameter are {valid}."))
}

/// Units with their size in thousandths of the base unit; the base unit first, then ascending.
pub(super) type Units = &'static [(&'static str, i64)];

pub(super) const TIME_UNITS: Units = &[
    ("ms", 1_000),
    ("us", 1),
    ("s", 1_000_000),
    ("min", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];

pub(super) const SECOND_UNITS: Units =
    &[("s", 1_000), ("ms", 1), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Size of a PostgreSQL page in KiB.
pub(super) const PAGE_KILOBYTES: i64 = 8;

pub(super) const SIZE_UNITS: Units = &[
    ("kB", 1_024),
    ("B", 1),
    ("MB", 1_024 * 1_024),
    ("GB", 1_024 * 1_024 * 1_024),
    ("TB", 1_024 * 1_024 * 1_024 * 1_024),
];

/// Parses a number of bytes, such as `10MB`; without a unit, bytes.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let is_bare = text.trim().bytes().all(|byte| byte.is_ascii_digit());
    if is_bare {
        return text.trim().parse().ok();
    }
    let unit = text.trim().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let number: u64 = text.trim()[..text.trim().len() - unit.len()].trim_end().parse().ok()?;
    let (_, size) = SIZE_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(u64::try_from(*size).ok()?)
}

/// Parses a quantity such as `10s` or `1.5s` to the base unit, rounded to an integer; without a
/// unit, it is in the base unit.
pub(super) fn parse_quantity(text: &str, units: Units) -> Option<i64> {
    let (number, size, base) = number_and_unit(text, units)?;
    if let Ok(whole) = number.parse::<i64>()
        && size >= base
    {
        return whole.checked_mul(size / base);
    }
    let quantity = parse_real(text, units)?.round_ties_even();
    // Larger integers are not represented exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (-EXACT..=EXACT).contains(&quantity).then_some(quantity as i64)
}

/// Parses a quantity to the base unit, with its fraction.
pub(super) fn parse_real(text: &str, units: Units) -> Option<f64> {
    let (number, size, base) = number_and_unit(text, units)?;
    let number: f64 = number.parse().ok()?;
    Some(number * size as f64 / base as f64).filter(|quantity| quantity.is_finite())
}

/// Returns the number of a quantity, and the sizes of its unit and of the base unit.
fn number_and_unit(text: &str, units: Units) -> Option<(&str, i64, i64)> {
    let text = text.trim();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let split = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
    let unit = text[split..].trim();
    let base = units[0].1;
    let size = match unit {
        "" => base,
        _ => units.iter().find(|(name, _)| *name == unit)?.1,
    };
    Some((&text[..split], size, base))
}

/// Prints milliseconds in the largest unit that divides them, at least microseconds.
pub(super) fn print_millis(millis: f64) -> String {
    let micros = (millis * 1_000.0).round_ties_even() as i64;
    match micros % 1_000 {
        0 => print_quantity(micros / 1_000, TIME_UNITS),
        _ => format!("{micros}us"),
    }
}

/// Parses a time, such as `500ms` or `2min`; without a unit, milliseconds.
pub fn parse_time(text: &str) -> Option<Duration> {
    let millis = parse_quantity(text, TIME_UNITS)?;
    u64::try_from(millis).ok().map(Duration::from_millis)
}

/// Prints a time in the form that [`parse_time`] accepts.
pub(super) fn print_time(time: Duration) -> String {
    print_quantity(i64::try_from(time.as_millis()).unwrap_or(i64::MAX), TIME_UNITS)
}

/// Prints a quantity in the largest unit that divides it.
pub(super) fn print_quantity(quantity: i64, units: Units) -> String {
    let base = units[0].1;
    if quantity == 0 {
        return "0".to_owned();
    }
    let (name, size) = units
        .iter()
        .filter(|(_, size)| *size >= base && quantity % (size / base) == 0)
        .max_by_key(|(_, size)| *size)
        .expect("the base unit divides everything");
    format!("{}{name}", quantity / (size / base))
}
