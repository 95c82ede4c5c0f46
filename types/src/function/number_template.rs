//! Number templates of `to_char` and `to_number`, such as `FM999,990.00`.
//!
//! A template is parsed into items, and their combination into a [`Layout`]. Source: PostgreSQL's
//! formatting.c (`NUMDesc_prepare`).

use std::cell::RefCell;
use std::rc::Rc;

use super::recent_cache::{LONGEST_TEMPLATE, RecentCache};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;

/// An item of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberTemplateItem {
    /// `9`
    Nine,
    /// `0`
    Zero,
    /// `.` or `D`
    Point,
    /// `,`
    Comma,
    /// `G`
    Group,
    /// `L`
    Currency,
    /// `MI`
    Minus,
    /// `PL`
    Plus,
    /// `SG`
    Sign,
    /// `RN` or `rn`
    Roman {
        /// Capital letters.
        upper: bool,
    },
    /// `TH` or `th`
    Ordinal {
        /// Capital letters.
        upper: bool,
    },
    /// A keyword that affects only the layout: `B`, `C`, `EEEE`, `FM`, `PR`, `S`, `SP`, `V`.
    Mark,
    /// A literal character.
    Literal(char),
}

/// Position of the sign for `S`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SignPlace {
    #[default]
    None,
    Before,
    After,
}

/// The layout that a template defines.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword that is there or not")]
pub(super) struct Layout {
    /// Digits before the point.
    pub(super) pre: usize,
    /// Digits after the point.
    pub(super) post: usize,
    /// Digits after `V`.
    pub(super) multi: usize,
    pub(super) sign: SignPlace,
    /// Digits before `S`.
    pub(super) digits_before_sign: usize,
    /// The index of the first `0` among the digits, from 0.
    pub(super) zero_start: Option<usize>,
    /// The number of digits up to the last `0`.
    pub(super) zero_end: usize,
    pub(super) point: bool,
    pub(super) fill: bool,
    pub(super) s: bool,
    pub(super) bracket: bool,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) roman: bool,
    pub(super) shifted: bool,
    pub(super) scientific: bool,
    blank: bool,
}

/// The keywords, longer ones first. Mixed case is not recognized.
const KEYWORDS: &[&str] = &[
    "EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", ",", ".", "0", "9", "B", "C", "D", "G",
    "L", "S", "V",
];

/// A parsed template.
pub(super) struct Template {
    pub(super) pieces: Vec<NumberTemplateItem>,
    pub(super) layout: Layout,
}

/// Parses a template, or returns it from the cache.
pub(super) fn read(template: &str, pace: &mut InterruptPacer<'_>) -> Result<Rc<Template>> {
    thread_local! {
        static READ: RefCell<RecentCache<(), Rc<Template>>> = const { RefCell::new(RecentCache::new()) };
    }
    match template.len() <= LONGEST_TEMPLATE {
        true => READ.with_borrow_mut(|read| {
            read.get(template, (), |template| {
                parse(template, &mut InterruptPacer::without_interrupt())
            })
            .cloned()
        }),
        false => parse(template, pace),
    }
}

fn parse(template: &str, pace: &mut InterruptPacer<'_>) -> Result<Rc<Template>> {
    let mut pieces = Vec::with_capacity(template.len());
    let mut layout = Layout::default();
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        pace.count_steps(KEYWORDS.len())?;
        if let Some((keyword, upper)) = keyword(rest) {
            rest = &rest[keyword.len()..];
            pieces.push(layout.take(keyword, upper)?);
        } else if first == '"' {
            rest = quoted(&rest[1..], pace, |character| {
                pieces.push(NumberTemplateItem::Literal(character));
            })?;
        } else if rest.starts_with("\\\"") {
            pieces.push(NumberTemplateItem::Literal('"'));
            rest = &rest[2..];
        } else {
            pieces.push(NumberTemplateItem::Literal(first));
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(Rc::new(Template { pieces, layout }))
}

fn keyword(rest: &str) -> Option<(&'static str, bool)> {
    KEYWORDS.iter().find_map(|keyword| {
        if rest.starts_with(keyword) {
            return Some((*keyword, true));
        }
        let lower = rest.get(..keyword.len())?;
        let folded = keyword.bytes().map(|byte| byte.to_ascii_lowercase());
        lower.bytes().eq(folded).then_some((*keyword, false))
    })
}

/// Passes the characters up to the closing quote to `take`; returns the text after it.
pub(super) fn quoted<'a>(
    template: &'a str,
    pace: &mut InterruptPacer<'_>,
    mut take: impl FnMut(char),
) -> Result<&'a str> {
    let mut characters = template.chars();
    while let Some(character) = characters.next() {
        pace.count_steps(1)?;
        match character {
            '"' => break,
            '\\' => match characters.next() {
                Some(escaped) => take(escaped),
                None => take('\\'),
            },
            other => take(other),
        }
    }
    Ok(characters.as_str())
}

fn wrong(message: &str) -> Error {
    err!(SYNTAX_ERROR: message)
}

impl Layout {
    /// Returns whether any digit is a `0`.
    pub(super) fn zero(&self) -> bool {
        self.zero_start.is_some()
    }

    fn take(&mut self, keyword: &str, upper: bool) -> Result<NumberTemplateItem> {
        if self.scientific && keyword != "EEEE" {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        match keyword {
            "9" | "0" => self.digit(keyword == "0"),
            "B" => {
                self.blank |= self.pre == 0 && self.post == 0 && !self.zero();
                Ok(NumberTemplateItem::Mark)
            }
            "." | "D" => self.take_point(),
            "V" => {
                if self.point {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.shifted = true;
                Ok(NumberTemplateItem::Mark)
            }
            "EEEE" => self.take_exponent(),
            "FM" => {
                self.fill = true;
                Ok(NumberTemplateItem::Mark)
            }
            "RN" => {
                self.roman = true;
                Ok(NumberTemplateItem::Roman { upper })
            }
            "TH" => Ok(NumberTemplateItem::Ordinal { upper }),
            "," => Ok(NumberTemplateItem::Comma),
            "G" => Ok(NumberTemplateItem::Group),
            "L" => Ok(NumberTemplateItem::Currency),
            "S" | "MI" | "PL" | "SG" | "PR" => self.take_sign(keyword),
            _ => Ok(NumberTemplateItem::Mark),
        }
    }

    fn digit(&mut self, zero: bool) -> Result<NumberTemplateItem> {
        if self.bracket {
            let digit = if zero { 0 } else { 9 };
            return Err(wrong(&format!("\"{digit}\" must be ahead of \"PR\"")));
        }
        if !zero && self.shifted {
            self.multi += 1;
            return Ok(NumberTemplateItem::Nine);
        }
        if zero && !self.zero() && !self.point {
            self.zero_start = Some(self.pre);
        }
        if self.point {
            self.post += 1;
        } else {
            self.pre += 1;
        }
        if zero {
            self.zero_end = self.pre + self.post;
        }
        Ok(if zero { NumberTemplateItem::Zero } else { NumberTemplateItem::Nine })
    }

    fn take_point(&mut self) -> Result<NumberTemplateItem> {
        if self.point {
            return Err(wrong("multiple decimal points"));
        }
        if self.shifted {
            return Err(wrong("cannot use \"V\" and decimal point together"));
        }
        self.point = true;
        Ok(NumberTemplateItem::Point)
    }

    fn take_exponent(&mut self) -> Result<NumberTemplateItem> {
        if self.scientific {
            return Err(wrong("cannot use \"EEEE\" twice"));
        }
        let others = self.blank
            || self.fill
            || self.s
            || self.bracket
            || self.minus
            || self.plus
            || self.roman
            || self.shifted;
        if others {
            return Err(wrong("\"EEEE\" is incompatible with other formats").with_detail(
                "\"EEEE\" may only be used together with digit and decimal point patterns.",
            ));
        }
        self.scientific = true;
        Ok(NumberTemplateItem::Mark)
    }

    fn take_sign(&mut self, keyword: &str) -> Result<NumberTemplateItem> {
        let refused = match keyword {
            "S" if self.s => Some("cannot use \"S\" twice"),
            "S" if self.plus || self.minus || self.bracket => {
                Some("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together")
            }
            "MI" if self.s => Some("cannot use \"S\" and \"MI\" together"),
            "PL" if self.s => Some("cannot use \"S\" and \"PL\" together"),
            "SG" if self.s => Some("cannot use \"S\" and \"SG\" together"),
            "PR" if self.s || self.plus || self.minus => {
                Some("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together")
            }
            _ => None,
        };
        if let Some(message) = refused {
            return Err(wrong(message));
        }
        match keyword {
            "S" => {
                self.s = true;
                if self.point {
                    self.sign = SignPlace::After;
                } else {
                    self.sign = SignPlace::Before;
                    self.digits_before_sign = self.pre;
                }
                Ok(NumberTemplateItem::Mark)
            }
            "MI" => {
                self.minus = true;
                Ok(NumberTemplateItem::Minus)
            }
            "PL" => {
                self.plus = true;
                Ok(NumberTemplateItem::Plus)
            }
            "SG" => {
                (self.minus, self.plus) = (true, true);
                Ok(NumberTemplateItem::Sign)
            }
            _ => {
                self.bracket = true;
                Ok(NumberTemplateItem::Mark)
            }
        }
    }
}
