//! Formatting of numbers by a template: `to_char(number, 'FM999,990.00')`.
//!
//! Source: PostgreSQL's formatting.c (`NUM_processor`, `NUM_numpart_to_char`), in the C locale:
//! the decimal point is `.`, the group separator `,`, the currency symbol a blank.

use super::argument::{float4, float8, int4, int8, numeric, text, text_datum};
use super::arithmetic::int4_range;
use super::number_template::{Layout, NumberTemplateItem, SignPlace, read};
use super::{FunctionRow, row};
use crate::datatype::DataType::{Float4, Float8, Int4, Int8, Numeric, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::numeric as decimal;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("to_char", &[Int4, Text], Text, |a, context| {
        formatted(
            &decimal::Numeric::from_i128(int4(&a[0]).into()),
            text(&a[1]),
            &mut context.pace(),
        )
    })
    .stable(),
    row("to_char", &[Int8, Text], Text, |a, context| {
        formatted(
            &decimal::Numeric::from_i128(int8(&a[0]).into()),
            text(&a[1]),
            &mut context.pace(),
        )
    })
    .stable(),
    row("to_char", &[Numeric, Text], Text, |a, context| {
        formatted(numeric(&a[0]), text(&a[1]), &mut context.pace())
    })
    .stable(),
    row("to_char", &[Float4, Text], Text, |a, context| {
        formatted_float(float4(&a[0]).into(), 6, (text(&a[1]), &mut context.pace()))
    })
    .stable(),
    row("to_char", &[Float8, Text], Text, |a, context| {
        formatted_float(float8(&a[0]), 15, (text(&a[1]), &mut context.pace()))
    })
    .stable(),
];

/// Cost of an item of a template in bytes, for the interrupt check.
const STEPS_OF_PIECE: usize = 16;

/// The digits of a number for formatting.
struct Number {
    digits: String,
    negative: bool,
}

fn formatted(
    value: &decimal::Numeric,
    template: &str,
    pace: &mut InterruptPacer<'_>,
) -> Result<Datum> {
    let template = read(template, pace)?;
    let (pieces, mut layout) = (&template.pieces, template.layout);
    if layout.roman {
        if !value.is_finite() {
            let what = if value.is_nan() { "NaN" } else { "infinity" };
            bail!(FEATURE_NOT_SUPPORTED: "cannot convert {what} to integer");
        }
        let whole = value.round(0).to_i64().and_then(|whole| i32::try_from(whole).ok());
        let whole = whole.ok_or_else(int4_range)?;
        return Ok(write_roman(pieces, &layout, whole));
    }
    if layout.scientific {
        return Ok(text_datum(scientific(value, &layout)));
    }
    let mut value = value.clone();
    if layout.shifted {
        let factor = decimal::Numeric::from_i128(10)
            .pow(&(layout.multi as i64).into(), &mut InterruptPacer::without_interrupt())?;
        value = value.checked_mul(&factor, &mut InterruptPacer::without_interrupt())?;
        layout.pre += layout.multi;
    }
    let scale = i32::try_from(layout.post).unwrap_or(i32::MAX);
    let written = value.round(scale).to_string();
    lay_out(pieces, layout, (&written, pace))
}

fn formatted_float(
    value: f64,
    precision: usize,
    (template, pace): (&str, &mut InterruptPacer<'_>),
) -> Result<Datum> {
    let template = read(template, pace)?;
    let (pieces, mut layout) = (&template.pieces, template.layout);
    if layout.roman {
        // NaN and infinities have no Roman numeral either.
        return Ok(write_roman(pieces, &layout, value.round_ties_even() as i32));
    }
    if layout.scientific {
        if !value.is_finite() {
            return Ok(text_datum(no_exponent(&layout)));
        }
        let written = format!("{value:.*e}", layout.post);
        return Ok(text_datum(with_exponent(&written, value.is_sign_negative())));
    }
    let mut value = value;
    if layout.shifted {
        value *= 10_f64.powi(i32::try_from(layout.multi).unwrap_or(i32::MAX));
        layout.pre += layout.multi;
    }
    let whole = float_text(value.abs(), 0).len();
    if whole >= precision {
        layout.post = 0;
    } else if whole + layout.post > precision {
        layout.post = precision - whole;
    }
    let written = float_text(value, layout.post);
    lay_out(pieces, layout, (&written, pace))
}

/// Formats a float with a number of decimals, as C's `%.*f` does.
fn float_text(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        format!("{value:.decimals$}")
    }
}

/// Returns the output for a number without an exponent.
fn no_exponent(layout: &Layout) -> String {
    let mut hashes: Vec<u8> = vec![b'#'; layout.pre + layout.post + 6];
    hashes[0] = b' ';
    hashes[layout.pre + 1] = b'.';
    String::from_utf8_lossy(&hashes).into_owned()
}

fn scientific(value: &decimal::Numeric, layout: &Layout) -> String {
    if !value.is_finite() {
        return no_exponent(layout);
    }
    let negative = value < &decimal::Numeric::ZERO;
    let digits = value.abs().to_string();
    let point = digits.find('.').unwrap_or(digits.len()) as i64;
    let plain: String = digits.chars().filter(char::is_ascii_digit).collect();
    let exponent = match plain.find(|digit| digit != '0') {
        Some(first) => point - 1 - first as i64,
        None => 0,
    };
    // The mantissa is rounded as a numeric; one that is rounded up to 10 is not normalised.
    let mut shifted = shifted_text(&plain, point - exponent);
    // Rounding needs only a few more digits; all of them could exceed the limit of numeric.
    const BEHIND: usize = 8;
    shifted
        .truncate(shifted.find('.').unwrap_or(shifted.len()).saturating_add(layout.post + BEHIND));
    let scale = i32::try_from(layout.post).unwrap_or(i32::MAX);
    let mantissa = decimal::Numeric::parse(&shifted).unwrap_or(decimal::Numeric::ZERO);
    let mantissa = mantissa.round(scale);
    with_exponent(&format!("{mantissa}e{exponent}"), negative)
}

/// Returns digits with the decimal point at a position, which may be outside of them.
fn shifted_text(digits: &str, point: i64) -> String {
    if point <= 0 {
        let zeros = "0".repeat(point.unsigned_abs() as usize);
        return format!("0.{zeros}{digits}");
    }
    let point = point as usize;
    let padded = format!("{digits:0<point$}");
    let (whole, fraction) = padded.split_at(point);
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Converts `1.5e7` to `1.5e+07`, with a leading blank unless negative.
fn with_exponent(written: &str, negative: bool) -> String {
    let written = written.trim_start_matches('-');
    let (mantissa, exponent) = written.split_once('e').unwrap_or((written, "0"));
    let sign = if exponent.starts_with('-') { '-' } else { '+' };
    let exponent = exponent.trim_start_matches('-');
    let lead = if negative { '-' } else { ' ' };
    format!("{lead}{mantissa}e{sign}{exponent:0>2}")
}

fn write_roman(pieces: &[NumberTemplateItem], layout: &Layout, value: i32) -> Datum {
    let roman = roman(value);
    let mut out = String::new();
    for piece in pieces {
        let word = match piece {
            NumberTemplateItem::Roman { upper: true } => roman.clone(),
            NumberTemplateItem::Roman { upper: false } => roman.to_lowercase(),
            NumberTemplateItem::Literal(character) => {
                out.push(*character);
                continue;
            }
            NumberTemplateItem::Comma
            | NumberTemplateItem::Group
            | NumberTemplateItem::Minus
            | NumberTemplateItem::Plus
                if !layout.fill =>
            {
                " ".to_owned()
            }
            _ => continue,
        };
        let padded = matches!(piece, NumberTemplateItem::Roman { .. }) && !layout.fill;
        out.push_str(&if padded { format!("{word:>15}") } else { word });
    }
    text_datum(out)
}

fn roman(mut value: i32) -> String {
    const STEPS: [(i32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..4000).contains(&value) {
        return "#".repeat(15);
    }
    let mut letters = String::new();
    for (step, word) in STEPS {
        while value >= step {
            letters.push_str(word);
            value -= step;
        }
    }
    letters
}

/// Formats the text of a number, which was rounded to the digits of the layout.
fn lay_out(
    pieces: &[NumberTemplateItem],
    layout: Layout,
    (written, pace): (&str, &mut InterruptPacer<'_>),
) -> Result<Datum> {
    let (digits, negative) = match written.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (written, false),
    };
    let whole = digits.find('.').unwrap_or(digits.len());
    let (spaces, digits) = if whole > layout.pre {
        let mut hashes = vec![b'#'; layout.pre + layout.post + 1];
        hashes[layout.pre] = b'.';
        (0, String::from_utf8_lossy(&hashes).into_owned())
    } else {
        (layout.pre - whole, digits.to_owned())
    };
    let number = Number { digits, negative };
    NumberFormatter::new(layout, number, spaces).run(pieces, pace).map(text_datum)
}

/// Formatting state of a number.
struct NumberFormatter {
    layout: Layout,
    number: Number,
    spaces: usize,
    sign_written: bool,
    /// The last significant digit where trailing zeros are dropped.
    last_relevant: Option<usize>,
    digit_count: usize,
    /// Number of template digits processed.
    current: usize,
    /// Number of digits written.
    at: usize,
    /// The last item of the template wrote a digit.
    in_number: bool,
    out: String,
}

impl NumberFormatter {
    fn new(mut layout: Layout, number: Number, spaces: usize) -> NumberFormatter {
        let sign_written = if layout.plus || layout.minus {
            !layout.plus || layout.minus
        } else {
            if !number.negative && layout.fill {
                layout.bracket = false;
            }
            if layout.sign == SignPlace::Before && layout.pre == layout.digits_before_sign {
                layout.sign = SignPlace::After;
            }
            !number.negative && layout.fill && !layout.s
        };
        let last_relevant = if layout.fill && layout.point {
            last_relevant(&number.digits, &layout, spaces)
        } else {
            None
        };
        let digit_count = layout.pre + layout.post + usize::from(!sign_written && spaces == 0);
        NumberFormatter {
            layout,
            number,
            spaces,
            sign_written,
            last_relevant,
            digit_count,
            current: 0,
            at: 0,
            in_number: false,
            out: String::new(),
        }
    }

    fn run(
        mut self,
        pieces: &[NumberTemplateItem],
        pace: &mut InterruptPacer<'_>,
    ) -> Result<String> {
        for piece in pieces {
            pace.count_steps(STEPS_OF_PIECE)?;
            match *piece {
                NumberTemplateItem::Nine => self.digit(false),
                NumberTemplateItem::Zero => self.digit(true),
                NumberTemplateItem::Point => self.digit(false),
                NumberTemplateItem::Comma | NumberTemplateItem::Group => {
                    match (self.in_number, self.layout.fill) {
                        (true, _) => self.out.push(','),
                        (false, false) => self.out.push(' '),
                        (false, true) => {}
                    }
                }
                NumberTemplateItem::Currency => self.out.push(' '),
                NumberTemplateItem::Ordinal { upper } => self.ordinal(upper)?,
                NumberTemplateItem::Minus => self.sign_or_blank(self.number.negative, '-'),
                NumberTemplateItem::Plus => self.sign_or_blank(!self.number.negative, '+'),
                NumberTemplateItem::Sign => {
                    self.out.push(if self.number.negative { '-' } else { '+' })
                }
                NumberTemplateItem::Literal(character) => self.out.push(character),
                NumberTemplateItem::Roman { .. } | NumberTemplateItem::Mark => {}
            }
        }
        // A NUL ends the output.
        Ok(match self.out.find('\0') {
            Some(end) => self.out[..end].to_owned(),
            None => self.out,
        })
    }

    fn sign_or_blank(&mut self, there: bool, sign: char) {
        if there {
            self.out.push(sign);
        } else if !self.layout.fill {
            self.out.push(' ');
        }
    }

    fn ordinal(&mut self, upper: bool) -> Result<()> {
        let overflown = self.number.digits.starts_with('#');
        if overflown || self.number.negative || self.layout.point {
            return Ok(());
        }
        if !self.number.digits.ends_with(|last: char| last.is_ascii_digit()) {
            bail!(INVALID_TEXT_REPRESENTATION: "\"{}\" is not a number", self.number.digits);
        }
        let suffix = super::date_format::ordinal(&self.number.digits);
        self.out.push_str(&if upper { suffix.to_uppercase() } else { suffix.to_owned() });
        Ok(())
    }

    fn byte(&self) -> Option<u8> {
        self.number.digits.as_bytes().get(self.at).copied()
    }

    /// Returns whether the zero before the point is omitted: `0.5` as `9.9` is ` .5`.
    fn skips_zero(&self) -> bool {
        !self.layout.zero()
            && self.at == 0
            && self.number.digits.starts_with('0')
            && self.layout.post != 0
    }

    fn ends_at_point(&self) -> bool {
        self.last_relevant.is_some_and(|at| self.number.digits.as_bytes()[at] == b'.')
    }

    /// Writes the digit or point for a `9`, `0`, `.` or `D`.
    fn digit(&mut self, zero: bool) {
        self.in_number = false;
        let within_zeros = self.layout.zero_start.is_some_and(|start| start <= self.current);
        let at_zeros = self.layout.zero_start == Some(self.current);
        if !self.sign_written
            && (self.current >= self.spaces || at_zeros)
            && (!self.skips_zero() || self.ends_at_point())
        {
            self.leading_sign();
        }
        if self.current < self.spaces && !within_zeros {
            if !self.layout.fill {
                self.out.push(' ');
            }
        } else if self.current < self.spaces {
            self.out.push('0');
            self.in_number = true;
        } else {
            self.next_digit(zero);
            if self.at < self.number.digits.len() {
                self.at += 1;
            }
        }
        let end = self.digit_count + usize::from(self.spaces > 0) + usize::from(self.layout.point);
        if self.last_relevant != Some(self.at) && self.current + 2 == end {
            self.trailing_sign();
        }
        self.current += 1;
    }

    fn leading_sign(&mut self) {
        let negative = self.number.negative;
        if self.layout.s {
            if self.layout.sign == SignPlace::Before {
                self.out.push(if negative { '-' } else { '+' });
                self.sign_written = true;
            }
        } else if self.layout.bracket {
            self.out.push(if negative { '<' } else { ' ' });
            self.sign_written = true;
        } else {
            if negative {
                self.out.push('-');
            } else if !self.layout.fill {
                self.out.push(' ');
            }
            self.sign_written = true;
        }
    }

    fn trailing_sign(&mut self) {
        let negative = self.number.negative;
        if self.sign_written && self.layout.bracket {
            self.out.push(if negative { '>' } else { ' ' });
        } else if self.layout.s && self.layout.sign == SignPlace::After {
            self.out.push(if negative { '-' } else { '+' });
        }
    }

    fn next_digit(&mut self, zero: bool) {
        let byte = self.byte();
        if byte == Some(b'.') {
            if !self.ends_at_point() || self.layout.fill {
                self.out.push('.');
            }
        } else if self.last_relevant.is_some_and(|last| self.at > last) && !zero {
            // A dropped trailing zero.
        } else if self.skips_zero() {
            if !self.layout.fill {
                self.out.push(' ');
            } else if self.ends_at_point() {
                self.out.push('0');
            }
        } else {
            self.out.push(byte.map_or('\0', char::from));
            self.in_number = true;
        }
    }
}

/// Returns the position of the last digit after the point that is not zero or must be shown.
fn last_relevant(digits: &str, layout: &Layout, spaces: usize) -> Option<usize> {
    let point = digits.find('.')?;
    let last = digits.rfind(|digit| digit != '0').unwrap_or(point).max(point);
    if layout.zero_end > spaces {
        return Some(last.max((digits.len() - 1).min(layout.zero_end - spaces)));
    }
    Some(last)
}
