//! Date and time templates of `to_char`, `to_date` and `to_timestamp`, such as `YYYY-MM-DD`.
//!
//! A template is parsed from left to right; the longest keyword matches; text in double quotes
//! and other text is literal. `FM` before a keyword suppresses padding, `TH` after it adds the
//! ordinal suffix; with `TM` names are English, too, but not padded; `SP` is ignored.

use std::cell::RefCell;
use std::rc::Rc;

use super::number_template::quoted;
use super::recent_cache::{LONGEST_TEMPLATE, RecentCache};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;

/// An item of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateTemplateItem {
    /// A keyword.
    Field(TemplateField),
    /// A blank.
    Space(char),
    /// A character other than a letter, digit or blank.
    Separator(char),
    /// Any other character, and quoted text.
    Literal(char),
}

/// A keyword with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TemplateField {
    /// In upper case.
    pub(super) keyword: &'static str,
    pub(super) spelling: Spelling,
    /// `FM`: without padding.
    pub(super) unpadded: bool,
    /// `TH` or `th`.
    pub(super) ordinal: Option<Spelling>,
}

/// Case of a keyword, which determines the case of its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// `MONTH`
    Upper,
    /// `Month`
    Title,
    /// `month`
    Lower,
}

impl TemplateField {
    /// Returns whether the field is a number that has an ordinal suffix.
    pub(super) fn is_counted(&self) -> bool {
        !matches!(
            self.keyword,
            "AM" | "PM"
                | "A.M."
                | "P.M."
                | "AD"
                | "BC"
                | "A.D."
                | "B.C."
                | "MONTH"
                | "MON"
                | "DAY"
                | "DY"
                | "RM"
                | "TZ"
                | "TZH"
                | "TZM"
                | "OF"
                | "FX"
        )
    }

    /// Returns the keyword as in the template.
    pub(super) fn name(&self) -> String {
        match self.spelling {
            Spelling::Upper => self.keyword.to_owned(),
            Spelling::Lower => self.keyword.to_lowercase(),
            Spelling::Title => self.keyword[..1].to_owned() + &self.keyword[1..].to_lowercase(),
        }
    }
}

/// The keywords; longer ones precede their prefixes.
const KEYWORDS: &[&str] = &[
    "SSSSS", "SSSS", "SS", "Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "IDDD", "ID",
    "IW", "I", "MONTH", "MON", "MM", "MI", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6",
    "FX", "HH24", "HH12", "HH", "A.M.", "P.M.", "A.D.", "B.C.", "AM", "PM", "AD", "BC", "DAY",
    "DY", "DDD", "DD", "D", "WW", "W", "CC", "J", "Q", "RM", "TZH", "TZM", "TZ", "OF",
];

/// Keywords that may be capitalised.
const NAMES: &[&str] = &["MONTH", "MON", "DAY", "DY"];

/// Parses a template, or returns it from the cache.
pub(super) fn read(
    template: &str,
    pace: &mut InterruptPacer<'_>,
) -> Result<Rc<[DateTemplateItem]>> {
    thread_local! {
        static READ: RefCell<RecentCache<(), Rc<[DateTemplateItem]>>> = const { RefCell::new(RecentCache::new()) };
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

fn parse(template: &str, pace: &mut InterruptPacer<'_>) -> Result<Rc<[DateTemplateItem]>> {
    let mut pieces = pace.list(template.len())?;
    let mut rest = template;
    while !rest.is_empty() {
        pace.count_steps(KEYWORDS.len())?;
        let unpadded = rest.starts_with("FM") || rest.starts_with("fm");
        let translated = rest.starts_with("TM") || rest.starts_with("tm");
        if unpadded || translated {
            rest = &rest[2..];
        }
        let Some(first) = rest.chars().next() else { break };
        if let Some((keyword, spelling)) = keyword(rest) {
            rest = &rest[keyword.len()..];
            let mut ordinal = None;
            if rest.starts_with("TH") || rest.starts_with("th") {
                let upper = rest.starts_with('T');
                ordinal = Some(if upper { Spelling::Upper } else { Spelling::Lower });
                rest = &rest[2..];
            } else if rest.starts_with("SP") {
                rest = &rest[2..];
            }
            let unpadded = unpadded || translated && NAMES.contains(&keyword);
            pieces.push(DateTemplateItem::Field(TemplateField {
                keyword,
                spelling,
                unpadded,
                ordinal,
            }));
        } else if first == '"' {
            rest = quoted(&rest[1..], pace, |character| {
                pieces.push(DateTemplateItem::Literal(character));
            })?;
        } else {
            let escaped = rest.starts_with("\\\"");
            let character = if escaped { '"' } else { first };
            pieces.push(match character {
                '"' if escaped => DateTemplateItem::Separator('"'),
                blank if blank.is_ascii_whitespace() => DateTemplateItem::Space(blank),
                separator if is_separator(separator) => DateTemplateItem::Separator(separator),
                other => DateTemplateItem::Literal(other),
            });
            rest = &rest[usize::from(escaped) + character.len_utf8()..];
        }
    }
    Ok(pieces.into())
}

/// The kinds of fields in a template.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FieldKinds {
    pub(super) date: bool,
    pub(super) time: bool,
    pub(super) zone: bool,
}

/// Returns the kinds of fields in a template.
pub(super) fn named(template: &str, pace: &mut InterruptPacer<'_>) -> Result<FieldKinds> {
    let mut named = FieldKinds::default();
    for piece in read(template, pace)?.iter() {
        pace.count_steps(1)?;
        let DateTemplateItem::Field(field) = piece else { continue };
        match field.keyword {
            "FX" => {}
            "A.M." | "P.M." | "AM" | "PM" | "HH" | "HH12" | "HH24" | "MI" | "SS" | "MS" | "US"
            | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" | "SSSS" | "SSSSS" => named.time = true,
            "TZ" | "OF" | "TZH" | "TZM" => named.zone = true,
            _ => named.date = true,
        }
    }
    Ok(named)
}

/// Checks that a template has only keywords, separators of SQL/JSON, and text in double quotes.
pub(super) fn check_standard(template: &str, pace: &mut InterruptPacer<'_>) -> Result<()> {
    let mut rest = template;
    while let Some(first) = rest.chars().next() {
        pace.count_steps(KEYWORDS.len())?;
        if ["FM", "fm", "TM", "tm"].iter().any(|prefix| rest.starts_with(prefix)) {
            rest = &rest[2..];
        } else if let Some((keyword, _)) = keyword(rest) {
            rest = &rest[keyword.len()..];
            if ["TH", "th", "SP"].iter().any(|suffix| rest.starts_with(suffix)) {
                rest = &rest[2..];
            }
        } else if first == '"' {
            rest = quoted(&rest[1..], pace, |_| {})?;
        } else if "-./,':; ".contains(first) {
            rest = &rest[1..];
        } else {
            bail!(INVALID_DATETIME_FORMAT: "invalid datetime format separator: \"{first}\"");
        }
    }
    Ok(())
}

/// Returns whether a character is a separator of fields.
pub(super) fn is_separator(character: char) -> bool {
    character.is_ascii_punctuation()
}

fn keyword(rest: &str) -> Option<(&'static str, Spelling)> {
    KEYWORDS.iter().find_map(|keyword| {
        let written = rest.get(..keyword.len())?;
        if written == *keyword {
            return Some((*keyword, Spelling::Upper));
        }
        if !written.eq_ignore_ascii_case(keyword) {
            return None;
        }
        let lower = |text: &str| !text.bytes().any(|byte| byte.is_ascii_uppercase());
        if lower(written) {
            Some((*keyword, Spelling::Lower))
        } else {
            let title = NAMES.contains(keyword) && lower(&written[1..]);
            title.then_some((*keyword, Spelling::Title))
        }
    })
}
