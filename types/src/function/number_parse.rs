//! Parsing of numbers by a template: `to_number('1,234.50-', '9G999D99S')`.
//!
//! Source: PostgreSQL's formatting.c (`NUM_numpart_from_char`), in the C locale.

use super::argument::text;
use super::number_template::{Layout, NumberTemplateItem, SignPlace, read};
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Numeric, Text};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;
use crate::numeric as decimal;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] =
    &[row("to_number", &[Text, Text], Numeric, to_number).stable()];

fn to_number(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let (input, template) = (text(&arguments[0]), text(&arguments[1]));
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    let template = read(template, &mut context.pace())?;
    let (pieces, layout) = (&template.pieces, template.layout);
    let unsupported =
        |what: &str| Err(err!(FEATURE_NOT_SUPPORTED: "\"{what}\" not supported for input"));
    if layout.scientific {
        return unsupported("EEEE");
    }
    if layout.roman {
        return unsupported("RN");
    }
    let (pre, multi) = (layout.pre, layout.multi);
    let reader = Reader { rest: input, layout, sign: ' ', digits: String::new(), point: None };
    let reader = reader.run(pieces);
    let scale = reader.decimals();
    let written = format!("{}{}", reader.sign, reader.digits.trim_end_matches('.'));
    let value =
        decimal::Numeric::parse(&written).map_err(|_| Error::bad_text("numeric", &written))?;
    let precision = pre + multi + scale;
    let modifier = (precision << 16 | scale) + 4;
    let value = value.apply_modifier(i32::try_from(modifier).unwrap_or(-1))?;
    if multi == 0 {
        return Ok(Datum::Numeric(value));
    }
    let factor = decimal::Numeric::from_i128(10)
        .pow(&(-(multi as i64)).into(), &mut InterruptPacer::without_interrupt())?;
    value.checked_mul(&factor, &mut InterruptPacer::without_interrupt()).map(Datum::Numeric)
}

/// Parser state.
struct Reader<'a> {
    rest: &'a str,
    layout: Layout,
    /// A blank if no sign was read.
    sign: char,
    digits: String,
    /// The number of digits before the point, once it was read.
    point: Option<usize>,
}

impl<'a> Reader<'a> {
    fn run(mut self, pieces: &[NumberTemplateItem]) -> Reader<'a> {
        for piece in pieces {
            if self.rest.is_empty() {
                break;
            }
            match piece {
                NumberTemplateItem::Nine | NumberTemplateItem::Zero | NumberTemplateItem::Point => {
                    self.number(matches!(piece, NumberTemplateItem::Point));
                    self.skip(1);
                }
                // Separators are optional in the input.
                NumberTemplateItem::Comma | NumberTemplateItem::Group => {
                    if !self.layout.fill && self.rest.starts_with(',') {
                        self.skip(1);
                    }
                }
                NumberTemplateItem::Currency => self.skip_other(1),
                NumberTemplateItem::Ordinal { .. } => self.skip_other(2),
                NumberTemplateItem::Minus => self.take_sign(&['-']),
                NumberTemplateItem::Plus => self.take_sign(&['+']),
                NumberTemplateItem::Sign => self.take_sign(&['-', '+']),
                NumberTemplateItem::Literal(_) => self.skip(1),
                NumberTemplateItem::Roman { .. } | NumberTemplateItem::Mark => {}
            }
        }
        self
    }

    fn decimals(&self) -> usize {
        self.point.map_or(0, |before| self.digits.len() - before - 1)
    }

    fn any_digit(&self) -> bool {
        self.digits.len() > usize::from(self.point.is_some())
    }

    fn next(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self, count: usize) {
        let mut characters = self.rest.chars();
        characters.by_ref().take(count).for_each(drop);
        self.rest = characters.as_str();
    }

    /// Skips characters that cannot be part of a number.
    fn skip_other(&mut self, count: usize) {
        for _ in 0..count {
            match self.next() {
                Some('0'..='9' | '.' | ',' | '+' | '-') | None => return,
                Some(_) => self.skip(1),
            }
        }
    }

    fn take_sign(&mut self, signs: &[char]) {
        match self.next() {
            Some(sign) if signs.contains(&sign) => {
                self.sign = sign;
                self.skip(1);
            }
            _ => self.skip_other(1),
        }
    }

    /// Reads a digit or the point, with a sign before or after it. The caller skips the last
    /// character of it.
    fn number(&mut self, point: bool) {
        if self.next() == Some(' ') {
            self.skip(1);
        }
        if self.sign == ' ' && !point && !self.any_digit() {
            self.leading_sign();
        }
        let mut read = false;
        match self.next() {
            None => return,
            Some(digit @ '0'..='9') => {
                if self.point.is_some() && self.decimals() == self.layout.post {
                    return;
                }
                self.digits.push(digit);
                read = true;
            }
            Some('.') if self.layout.point && self.point.is_none() => {
                self.point = Some(self.digits.len());
                self.digits.push('.');
                read = true;
            }
            Some(_) => {}
        }
        if self.sign == ' ' && self.any_digit() {
            self.trailing_sign(read);
        }
    }

    fn leading_sign(&mut self) {
        let sign = match self.next() {
            Some(sign @ ('-' | '+')) => sign,
            Some('<') if self.layout.bracket => '-',
            _ => return,
        };
        if !self.layout.s || self.layout.sign == SignPlace::Before {
            self.sign = sign;
            self.skip(1);
        }
    }

    fn trailing_sign(&mut self, read: bool) {
        if self.layout.s && read {
            if let Some(sign @ ('-' | '+')) = self.rest.chars().nth(1) {
                self.sign = sign;
                self.skip(1);
            }
        } else if !read
            && !self.layout.s
            && (self.layout.plus || self.layout.minus)
            && let Some(sign @ ('-' | '+')) = self.next()
        {
            self.sign = sign;
        }
    }
}
