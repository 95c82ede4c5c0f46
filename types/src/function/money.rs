//! Functions and operators of `money`.

use super::argument::{float4, float8, int2, int4, int8, text_datum};
use super::{FunctionRow, row};
use crate::datatype::DataType::{self, Float4, Float8, Int2, Int4, Int8, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::geometry;

const MONEY: DataType = DataType::MONEY;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("+", &[MONEY, MONEY], MONEY, |a, _| whole(int8(&a[0]).checked_add(int8(&a[1])))),
    row("-", &[MONEY, MONEY], MONEY, |a, _| whole(int8(&a[0]).checked_sub(int8(&a[1])))),
    row("/", &[MONEY, MONEY], Float8, |a, _| {
        let divisor = int8(&a[1]) as f64;
        if divisor == 0.0 {
            Err(by_zero())
        } else {
            Ok(Datum::Float8(int8(&a[0]) as f64 / divisor))
        }
    }),
    row("*", &[MONEY, Int2], MONEY, |a, _| times(&a[0], i64::from(int2(&a[1])))),
    row("*", &[MONEY, Int4], MONEY, |a, _| times(&a[0], i64::from(int4(&a[1])))),
    row("*", &[MONEY, Int8], MONEY, |a, _| times(&a[0], int8(&a[1]))),
    row("*", &[Int2, MONEY], MONEY, |a, _| times(&a[1], i64::from(int2(&a[0])))),
    row("*", &[Int4, MONEY], MONEY, |a, _| times(&a[1], i64::from(int4(&a[0])))),
    row("*", &[Int8, MONEY], MONEY, |a, _| times(&a[1], int8(&a[0]))),
    row("*", &[MONEY, Float4], MONEY, |a, _| scaled(&a[0], f64::from(float4(&a[1])))),
    row("*", &[MONEY, Float8], MONEY, |a, _| scaled(&a[0], float8(&a[1]))),
    row("*", &[Float4, MONEY], MONEY, |a, _| scaled(&a[1], f64::from(float4(&a[0])))),
    row("*", &[Float8, MONEY], MONEY, |a, _| scaled(&a[1], float8(&a[0]))),
    row("/", &[MONEY, Int2], MONEY, |a, _| by(&a[0], i64::from(int2(&a[1])))),
    row("/", &[MONEY, Int4], MONEY, |a, _| by(&a[0], i64::from(int4(&a[1])))),
    row("/", &[MONEY, Int8], MONEY, |a, _| by(&a[0], int8(&a[1]))),
    row("/", &[MONEY, Float4], MONEY, |a, _| by_float(&a[0], f64::from(float4(&a[1])))),
    row("/", &[MONEY, Float8], MONEY, |a, _| by_float(&a[0], float8(&a[1]))),
    row("cash_words", &[MONEY], Text, |a, _| Ok(text_datum(words(int8(&a[0]))))),
];

fn out_of_range() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE: "money out of range")
}

fn by_zero() -> Error {
    err!(DIVISION_BY_ZERO: "division by zero")
}

fn whole(cents: Option<i64>) -> Result<Datum> {
    cents.map(Datum::Int8).ok_or_else(out_of_range)
}

fn times(money: &Datum, factor: i64) -> Result<Datum> {
    whole(int8(money).checked_mul(factor))
}

fn by(money: &Datum, divisor: i64) -> Result<Datum> {
    if divisor == 0 {
        return Err(by_zero());
    }
    whole(int8(money).checked_div(divisor))
}

fn rounded(cents: f64) -> Result<Datum> {
    let cents = cents.round_ties_even();
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&cents);
    whole(fits.then_some(cents as i64))
}

fn scaled(money: &Datum, factor: f64) -> Result<Datum> {
    rounded(geometry::multiply(int8(money) as f64, factor)?)
}

fn by_float(money: &Datum, divisor: f64) -> Result<Datum> {
    rounded(geometry::divide(int8(money) as f64, divisor)?)
}

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const GROUPS: [&str; 6] =
    ["", " thousand ", " million ", " billion ", " trillion ", " quadrillion "];

/// Returns a number below 1,000 in words.
fn small_words(number: usize) -> String {
    let (hundreds, rest) = (number / 100, number % 100);
    let tail = match rest {
        _ if rest < 20 => SMALL[rest].to_owned(),
        _ if rest.is_multiple_of(10) => TENS[rest / 10].to_owned(),
        _ => format!("{} {}", TENS[rest / 10], SMALL[rest % 10]),
    };
    match hundreds {
        0 => tail,
        _ if rest == 0 => format!("{} hundred", SMALL[hundreds]),
        _ if rest < 20 => format!("{} hundred and {tail}", SMALL[hundreds]),
        _ => format!("{} hundred {tail}", SMALL[hundreds]),
    }
}

/// Returns an amount in words.
fn words(cents: i64) -> String {
    let number = cents.unsigned_abs();
    let (dollars, cents_left) = (number / 100, (number % 100) as usize);
    let mut text = String::new();
    for (index, group) in GROUPS.iter().enumerate().rev() {
        let part = (dollars / 1_000_u64.pow(index as u32) % 1_000) as usize;
        if part > 0 {
            text.push_str(&small_words(part));
            text.push_str(group);
        }
    }
    if text.is_empty() {
        text.push_str("zero");
    }
    text.push_str(if dollars == 1 { " dollar and " } else { " dollars and " });
    text.push_str(&small_words(cents_left));
    text.push_str(if cents_left == 1 { " cent" } else { " cents" });
    if cents < 0 {
        text.insert_str(0, "minus ");
    }
    text[..1].to_ascii_uppercase() + &text[1..]
}
