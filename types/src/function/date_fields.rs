//! Parser of date fields according to a template.
//!
//! Without `FX`, blanks before fields are skipped, and one separator of the template matches one
//! of the input or none. Source: PostgreSQL's formatting.c (`DCH_from_char`).

use super::date_format::{DAYS, MONTHS, ROMAN};
use super::date_template::{DateTemplateItem, TemplateField, check_standard, is_separator, read};
use crate::error::{Error, Result};
use crate::interruptible::InterruptPacer;

/// The parsed fields; 0 if a field is absent, as in PostgreSQL.
#[derive(Debug, Default)]
pub(super) struct ParsedFields {
    pub(super) hh: i32,
    pub(super) pm: i32,
    pub(super) mi: i32,
    pub(super) ss: i32,
    pub(super) ssss: i32,
    /// 1 for Sunday.
    pub(super) d: i32,
    pub(super) dd: i32,
    pub(super) ddd: i32,
    pub(super) mm: i32,
    pub(super) ms: i32,
    pub(super) us: i32,
    /// The precision of `FF`, to which the value is rounded.
    pub(super) fraction_digits: i32,
    pub(super) year: i32,
    pub(super) year_digits: i32,
    pub(super) bc: i32,
    pub(super) ww: i32,
    pub(super) w: i32,
    pub(super) cc: i32,
    pub(super) j: i32,
    /// 1, -1, or 0 if there is no zone.
    pub(super) zone_sign: i32,
    pub(super) tzh: i32,
    pub(super) tzm: i32,
    pub(super) twelve_hours: bool,
    /// The fields are those of ISO weeks.
    pub(super) iso: bool,
    gregorian: bool,
}

/// Parser state.
pub(super) struct DateFieldReader<'a> {
    input: &'a str,
    at: usize,
    parts: ParsedFields,
    /// The template has `FX`.
    exact: bool,
    /// Input and template must match exactly, as in SQL/JSON.
    standard: bool,
    /// Skipped characters in excess of the template's.
    extra: i32,
}

impl<'a> DateFieldReader<'a> {
    pub(super) fn new(input: &'a str) -> DateFieldReader<'a> {
        DateFieldReader {
            input,
            at: 0,
            parts: ParsedFields::default(),
            exact: false,
            standard: false,
            extra: 0,
        }
    }

    /// Creates a parser for SQL/JSON templates, which match exactly.
    pub(super) fn for_json_template(input: &'a str) -> DateFieldReader<'a> {
        DateFieldReader { exact: true, standard: true, ..DateFieldReader::new(input) }
    }

    /// Parses the fields of the template, or as many as the input has.
    pub(super) fn run(
        mut self,
        template: &str,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<ParsedFields> {
        if self.standard {
            check_standard(template, pace)?;
        }
        let pieces = read(template, pace)?;
        for (index, piece) in pieces.iter().enumerate() {
            pace.count_steps(1)?;
            if self.rest().is_empty() {
                if self.standard {
                    return Err(unlike("input string is too short for datetime format".to_owned()));
                }
                break;
            }
            let fx = matches!(piece, DateTemplateItem::Field(field) if field.keyword == "FX");
            if !self.exact && !fx && (index == 0 || matches!(piece, DateTemplateItem::Field(_))) {
                self.skip_blanks();
            }
            match piece {
                DateTemplateItem::Space(character) | DateTemplateItem::Separator(character)
                    if self.standard =>
                {
                    self.same(*character, "separator")?;
                }
                DateTemplateItem::Literal(character) if self.standard => {
                    self.same(*character, "character")?
                }
                DateTemplateItem::Space(_) | DateTemplateItem::Separator(_) => self.separator(),
                DateTemplateItem::Literal(_) if !self.exact && self.extra > 0 => self.extra -= 1,
                DateTemplateItem::Literal(_) => self.skip(1),
                DateTemplateItem::Field(field) => {
                    self.field(field, next_is_separator(field, pieces.get(index + 1)))?;
                    if !self.exact {
                        self.extra = 0;
                        self.skip_blanks();
                    }
                }
            }
        }
        if self.standard && !self.rest().trim_ascii_start().is_empty() {
            let message = "trailing characters remain in input string after datetime format";
            return Err(unlike(message.to_owned()));
        }
        Ok(self.parts)
    }

    /// Consumes a required character.
    fn same(&mut self, character: char, what: &str) -> Result<()> {
        if !self.rest().starts_with(character) {
            return Err(unlike(format!("unmatched format {what} \"{character}\"")));
        }
        self.skip(1);
        Ok(())
    }

    fn rest(&self) -> &'a str {
        &self.input[self.at..]
    }

    fn skip(&mut self, count: usize) {
        for character in self.rest().chars().take(count) {
            self.at += character.len_utf8();
        }
    }

    fn skip_blanks(&mut self) {
        while self.rest().starts_with(|c: char| c.is_ascii_whitespace()) {
            self.at += 1;
            self.extra += 1;
        }
    }

    fn separator(&mut self) {
        if self.exact {
            self.skip(1);
            return;
        }
        self.extra -= 1;
        if self.rest().starts_with(|c: char| c.is_ascii_whitespace() || is_separator(c)) {
            self.at += 1;
            self.extra += 1;
        }
    }

    #[expect(clippy::too_many_lines, reason = "one line for each keyword")]
    fn field(&mut self, field: &TemplateField, open: bool) -> Result<()> {
        self.check_mode(field.keyword)?;
        let keyword = field.keyword;
        match keyword {
            "FX" => self.exact = true,
            "AM" | "PM" | "A.M." | "P.M." => {
                let dotted = keyword.contains('.');
                let half =
                    self.word(field, if dotted { &["A.M.", "P.M."] } else { &["AM", "PM"] })?;
                set(&mut self.parts.pm, half, &field.name())?;
                self.parts.twelve_hours = true;
            }
            "AD" | "BC" | "A.D." | "B.C." => {
                let dotted = keyword.contains('.');
                let era =
                    self.word(field, if dotted { &["A.D.", "B.C."] } else { &["AD", "BC"] })?;
                set(&mut self.parts.bc, era, &field.name())?;
            }
            "MONTH" => {
                let month = self.word(field, &MONTHS)?;
                set(&mut self.parts.mm, month + 1, &field.name())?;
            }
            "MON" => {
                let month = self.word(field, &MONTHS.map(|month| &month[..3]))?;
                set(&mut self.parts.mm, month + 1, &field.name())?;
            }
            "RM" => {
                let mut backwards = ROMAN;
                backwards.reverse();
                let month = self.word(field, &backwards)?;
                set(&mut self.parts.mm, 12 - month, &field.name())?;
            }
            "DAY" => {
                let day = self.word(field, &DAYS)?;
                set(&mut self.parts.d, day, &field.name())?;
                self.parts.d += 1;
            }
            "DY" => {
                let day = self.word(field, &DAYS.map(|day| &day[..3]))?;
                set(&mut self.parts.d, day, &field.name())?;
                self.parts.d += 1;
            }
            "TZ" | "OF" => {
                bail!(FEATURE_NOT_SUPPORTED: "formatting field \"{}\" is only supported in to_char", field.name());
            }
            "TZH" => {
                let sign = self.rest().chars().next();
                if matches!(sign, Some('+' | '-' | ' ')) {
                    self.skip(1);
                }
                let swallowed = self.extra > 0 && self.input[..self.at].ends_with('-');
                let negative = sign == Some('-') || (!matches!(sign, Some('+' | ' ')) && swallowed);
                self.parts.zone_sign = if negative { -1 } else { 1 };
                self.number(field, 2, open, |parts| &mut parts.tzh)?;
            }
            "TZM" => {
                if self.parts.zone_sign == 0 {
                    self.parts.zone_sign = 1;
                }
                self.number(field, 2, open, |parts| &mut parts.tzm)?;
            }
            "MS" => {
                let length = self.number(field, 3, open, |parts| &mut parts.ms)?;
                self.parts.ms *= [100, 10].get(length.wrapping_sub(1)).unwrap_or(&1);
            }
            "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                let digits = if keyword == "US" { b'6' } else { keyword.as_bytes()[2] };
                let digits = usize::from(digits - b'0');
                if keyword != "US" {
                    self.parts.fraction_digits = digits as i32;
                }
                let length = self.number(field, digits, open, |parts| &mut parts.us)?;
                const SCALES: [i32; 5] = [100_000, 10_000, 1_000, 100, 10];
                self.parts.us *= SCALES.get(length.wrapping_sub(1)).unwrap_or(&1);
            }
            "Y,YYY" => self.year_with_comma(field)?,
            "YYYY" | "IYYY" | "YYY" | "IYY" | "YY" | "IY" | "Y" | "I" => {
                let digits = keyword.len();
                let read = self.number(field, digits, open, |parts| &mut parts.year)?;
                if digits < 4 && read < 4 {
                    self.parts.year = near_2020(self.parts.year);
                }
                self.parts.year_digits = digits as i32;
            }
            "ID" => {
                self.number(field, 1, open, |parts| &mut parts.d)?;
                self.parts.d = if self.parts.d >= 7 { 1 } else { self.parts.d + 1 };
            }
            "Q" => {
                let mut ignored = std::mem::take(&mut self.parts.d);
                let read = self.number(field, 1, open, |parts| &mut parts.d);
                std::mem::swap(&mut ignored, &mut self.parts.d);
                read?;
            }
            _ => self.plain_number(field, open)?,
        }
        if field.ordinal.is_some() && field.is_counted() {
            self.skip(2);
        }
        Ok(())
    }

    fn plain_number(&mut self, field: &TemplateField, open: bool) -> Result<()> {
        let digits = field.keyword.len();
        let (digits, part): (usize, fn(&mut ParsedFields) -> &mut i32) = match field.keyword {
            "HH12" | "HH" => {
                self.parts.twelve_hours = true;
                (2, |parts| &mut parts.hh)
            }
            "HH24" => (2, |parts| &mut parts.hh),
            "MI" => (digits, |parts| &mut parts.mi),
            "SS" => (digits, |parts| &mut parts.ss),
            "SSSS" | "SSSSS" => (digits, |parts| &mut parts.ssss),
            "MM" => (digits, |parts| &mut parts.mm),
            "DDD" => (digits, |parts| &mut parts.ddd),
            "IDDD" => (3, |parts| &mut parts.ddd),
            "DD" => (digits, |parts| &mut parts.dd),
            "D" => (digits, |parts| &mut parts.d),
            "WW" | "IW" => (digits, |parts| &mut parts.ww),
            "W" => (digits, |parts| &mut parts.w),
            "CC" => (digits, |parts| &mut parts.cc),
            "J" => (digits, |parts| &mut parts.j),
            other => unreachable!("{other} is in the list of keywords"),
        };
        self.number(field, digits, open, part).map(drop)
    }

    /// Checks that fields of ISO weeks and others are not mixed.
    fn check_mode(&mut self, keyword: &str) -> Result<()> {
        match keyword {
            "IDDD" | "ID" | "IW" | "IYYY" | "IYY" | "IY" | "I" => self.parts.iso = true,
            "DDD" | "DD" | "D" | "MM" | "MONTH" | "MON" | "RM" | "WW" | "W" | "Y,YYY" | "YYYY"
            | "YYY" | "YY" | "Y" => self.parts.gregorian = true,
            _ => {}
        }
        if self.parts.iso && self.parts.gregorian {
            bail!(INVALID_DATETIME_FORMAT: "invalid combination of date conventions";
                hint "Do not mix Gregorian and ISO week date conventions in a formatting template.");
        }
        Ok(())
    }

    /// Parses one of some words, case-insensitively, and returns its index.
    fn word(&mut self, field: &TemplateField, words: &[&str]) -> Result<i32> {
        let rest = self.rest();
        let matches = |word: &&str| {
            rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        match words.iter().position(matches) {
            Some(index) => {
                self.at += words[index].len();
                Ok(index as i32)
            }
            None => {
                let shown = rest.split(|c: char| c.is_ascii_whitespace()).next().unwrap_or(rest);
                Err(invalid_value(shown, &field.name()).with_detail(
                    "The given value did not match any of the allowed values for this field.",
                ))
            }
        }
    }

    fn year_with_comma(&mut self, field: &TemplateField) -> Result<()> {
        let invalid = || err!(INVALID_DATETIME_FORMAT: "invalid input string for \"Y,YYY\"");
        let rest = self.rest();
        let (thousands, behind) = whole_number(rest).ok_or_else(invalid)?;
        let behind = rest[behind..].strip_prefix(',').ok_or_else(invalid)?;
        let digits = behind.bytes().take(3).take_while(u8::is_ascii_digit).count();
        let years: i64 = behind[..digits].parse().map_err(|_| invalid())?;
        let year = i32::try_from(thousands * 1000 + years).map_err(|_| invalid())?;
        set(&mut self.parts.year, year, &field.name())?;
        self.parts.year_digits = 4;
        self.at = self.input.len() - behind.len() + digits;
        Ok(())
    }

    /// Parses a number of the given number of digits, or of all digits if a separator follows.
    /// Returns the number of characters.
    fn number(
        &mut self,
        field: &TemplateField,
        digits: usize,
        open: bool,
        part: fn(&mut ParsedFields) -> &mut i32,
    ) -> Result<usize> {
        const HINT: &str =
            "If your source string is not fixed-width, try using the \"FM\" modifier.";
        let start = self.at;
        let blanks = self.rest().len() - self.rest().trim_ascii_start().len();
        let source = &self.input[start + blanks..];
        let end = source.char_indices().nth(digits).map_or(source.len(), |(at, _)| at);
        let copy = &source[..end];
        let value = if field.unpadded || open {
            whole_number(source).map(|(value, length)| {
                self.at += blanks + length;
                value
            })
        } else {
            if copy.len() < digits {
                bail!(INVALID_DATETIME_FORMAT: "source string too short for \"{}\" formatting field", field.name();
                    detail "Field requires {digits} characters, but only {} remain.", copy.len(); hint HINT);
            }
            let read = whole_number(copy);
            if let Some((_, used)) = read
                && used < digits
            {
                let detail =
                    format!("Field requires {digits} characters, but only {used} could be parsed.");
                return Err(invalid_value(copy, &field.name()).with_detail(detail).with_hint(HINT));
            }
            read.map(|(value, used)| {
                self.at += blanks + used;
                value
            })
        };
        let Some(value) = value else {
            // PostgreSQL shows this number of bytes.
            let shown = &copy[..copy.floor_char_boundary(digits)];
            let error = invalid_value(shown, &field.name());
            return Err(error.with_detail("Value must be an integer."));
        };
        let Ok(value) = i32::try_from(value) else {
            bail!(DATETIME_FIELD_OVERFLOW: "value for \"{}\" in source string is out of range", field.name();
                detail "Value must be in the range -2147483648 to 2147483647.");
        };
        set(part(&mut self.parts), value, &field.name())?;
        Ok(self.at - start)
    }
}

/// Returns whether the next item of the template cannot be a digit, so that all digits belong to
/// the number.
fn next_is_separator(field: &TemplateField, next: Option<&DateTemplateItem>) -> bool {
    if field.ordinal.is_some() {
        return true;
    }
    match next {
        None => true,
        Some(DateTemplateItem::Field(next)) => matches!(
            next.keyword,
            "AM" | "PM"
                | "A.M."
                | "P.M."
                | "AD"
                | "BC"
                | "A.D."
                | "B.C."
                | "MONTH"
                | "MON"
                | "RM"
                | "DAY"
                | "DY"
                | "FX"
                | "OF"
                | "TZ"
                | "TZH"
        ),
        Some(DateTemplateItem::Literal(character)) => !character.is_ascii_digit(),
        Some(DateTemplateItem::Space(_) | DateTemplateItem::Separator(_)) => true,
    }
}

fn unlike(message: String) -> Error {
    err!(INVALID_DATETIME_FORMAT: message)
}

fn invalid_value(value: &str, keyword: &str) -> Error {
    err!(INVALID_DATETIME_FORMAT: "invalid value \"{value}\" for \"{keyword}\"")
}

fn set(part: &mut i32, value: i32, keyword: &str) -> Result<()> {
    if *part != 0 && *part != value {
        bail!(INVALID_DATETIME_FORMAT: "conflicting values for \"{keyword}\" field in formatting string";
            detail "This value contradicts a previous setting for the same field type.");
    }
    *part = value;
    Ok(())
}

/// Parses an integer as C's `strtol` does; also returns the number of bytes.
fn whole_number(text: &str) -> Option<(i64, usize)> {
    let trimmed = text.trim_ascii_start();
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return None;
    }
    let length = text.len() - digits.len() + count;
    let magnitude = digits[..count].parse::<i64>().unwrap_or(i64::MAX);
    let negative = trimmed.starts_with('-');
    Some((if negative { -magnitude } else { magnitude }, length))
}

/// Completes a year of fewer than four digits to the one nearest to 2020.
fn near_2020(year: i32) -> i32 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}
