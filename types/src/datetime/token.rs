//! Tokenizer of dates and intervals: PostgreSQL's `ParseDateTime`.

/// The shape of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Digits, optionally with a decimal point.
    Number,
    /// Digits and letters with separators, or a zone name.
    Date,
    /// Digits and colons.
    Time,
    /// A sign followed by digits.
    Signed,
    /// Letters.
    Word,
}

/// A token, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DateToken {
    pub(super) shape: TokenKind,
    pub(super) text: String,
}

/// Splits a text into tokens; `None` for an unexpected character.
pub(super) fn tokens(text: &str) -> Option<Vec<DateToken>> {
    let mut cutter = Tokenizer { text, at: 0 };
    let mut tokens = Vec::new();
    while let Some(c) = cutter.peek() {
        let start = cutter.at;
        let shape = match c {
            b'0'..=b'9' => cutter.take_digits(),
            b'.' => {
                cutter.at += 1;
                cutter.skip(|c| c.is_ascii_digit());
                TokenKind::Number
            }
            b'+' | b'-' => {
                tokens.push(cutter.take_sign()?);
                continue;
            }
            _ if c.is_ascii_alphabetic() => cutter.take_letters(),
            _ if c.is_ascii_whitespace() || c.is_ascii_punctuation() || c == b'\x0b' => {
                cutter.at += 1;
                continue;
            }
            _ => return None,
        };
        tokens.push(DateToken { shape, text: text[start..cutter.at].to_ascii_lowercase() });
    }
    Some(tokens)
}

/// A position in a text. It is always a character boundary, because only ASCII is skipped.
struct Tokenizer<'a> {
    text: &'a str,
    at: usize,
}

impl Tokenizer<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn is_at(&self, test: impl Fn(u8) -> bool) -> bool {
        self.peek().is_some_and(test)
    }

    fn skip(&mut self, test: impl Fn(u8) -> bool) {
        while self.is_at(&test) {
            self.at += 1;
        }
    }

    /// Reads a token that begins with a digit: a number, a time or a date.
    fn take_digits(&mut self) -> TokenKind {
        self.skip(|c| c.is_ascii_digit());
        let delimiter = match self.peek() {
            Some(b':') => {
                self.skip(|c| c.is_ascii_digit() || c == b':' || c == b'.');
                return TokenKind::Time;
            }
            Some(delimiter @ (b'-' | b'/' | b'.')) => delimiter,
            _ => return TokenKind::Number,
        };
        self.at += 1;
        if !self.is_at(|c| c.is_ascii_digit()) {
            self.skip(|c| c.is_ascii_alphanumeric() || c == delimiter);
            return TokenKind::Date;
        }
        self.skip(|c| c.is_ascii_digit());
        if self.is_at(|c| c == delimiter) {
            self.skip(|c| c.is_ascii_digit() || c == delimiter);
            return TokenKind::Date;
        }
        if delimiter == b'.' { TokenKind::Number } else { TokenKind::Date }
    }

    /// Reads a token that begins with a letter: a word, or a date or zone name with separators.
    fn take_letters(&mut self) -> TokenKind {
        let start = self.at;
        self.skip(|c| c.is_ascii_alphabetic());
        let word = self.text[start..self.at].to_ascii_lowercase();
        let goes_on = self.is_at(|c| match c {
            b'-' | b'/' | b'.' => true,
            b'+' | b'0'..=b'9' => !is_keyword(&word),
            _ => false,
        });
        if !goes_on {
            return TokenKind::Word;
        }
        self.skip(|c| {
            matches!(c, b'+' | b'-' | b'/' | b'_' | b'.' | b':') || c.is_ascii_alphanumeric()
        });
        TokenKind::Date
    }

    /// Reads a sign and the number or word after it.
    fn take_sign(&mut self) -> Option<DateToken> {
        let sign = char::from(self.peek()?);
        self.at += 1;
        self.skip(|c| c.is_ascii_whitespace());
        let start = self.at;
        let shape = if self.is_at(|c| c.is_ascii_digit() || c == b'.') {
            self.skip(|c| c.is_ascii_digit() || matches!(c, b':' | b'.' | b'-'));
            TokenKind::Signed
        } else if self.is_at(|c| c.is_ascii_alphabetic()) {
            self.skip(|c| c.is_ascii_alphabetic());
            TokenKind::Word
        } else {
            return None;
        };
        let text = format!("{sign}{}", self.text[start..self.at].to_ascii_lowercase());
        Some(DateToken { shape, text })
    }
}

/// The months, in lower case.
pub(super) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// The days of the week, Sunday first, in lower case.
pub(super) const DAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// Returns the month of a name or its abbreviation.
pub(super) fn month_of(word: &str) -> Option<u32> {
    let full = |name: &&str| {
        word == *name || word == &name[..3] || (word == "sept" && name.starts_with("sept"))
    };
    MONTHS.iter().position(full).map(|index| index as u32 + 1)
}

/// Returns whether a word is a day of the week.
pub(super) fn is_day_name(word: &str) -> bool {
    let abbreviations = ["tues", "weds", "thur", "thurs"];
    DAYS.iter().any(|name| word == *name || word == &name[..3]) || abbreviations.contains(&word)
}

/// Returns whether a word before digits is a separate token.
fn is_keyword(word: &str) -> bool {
    month_of(word).is_some()
        || is_day_name(word)
        || matches!(
            word,
            "t" | "at"
                | "on"
                | "am"
                | "pm"
                | "ad"
                | "bc"
                | "j"
                | "jd"
                | "julian"
                | "d"
                | "h"
                | "m"
                | "mm"
                | "s"
                | "y"
                | "dow"
                | "doy"
                | "dst"
                | "isodow"
                | "isoyear"
                | "now"
                | "today"
                | "tomorrow"
                | "yesterday"
                | "epoch"
                | "infinity"
                | "allballs"
        )
}
