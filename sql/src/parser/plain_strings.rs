//! Backslashes in plain strings, for sessions with `standard_conforming_strings = off`.
//!
//! The text is rewritten before it is parsed: a plain string with a backslash, `'a\'b'`, becomes
//! `E'a\'b'`, whose meaning does not depend on the setting. So texts that the catalog stores, and
//! that are parsed again later, keep their meaning. Positions in errors include the inserted
//! letters.
//!
//! Source: PostgreSQL's scan.l (`xqs`, `xe`, `warn_on_first_escape`).

use std::ops::Range;

use super::error::{ParseError, Result, sqlstate};
use super::lexical_span::{comment_length, dollar_quote_length, length_through};

/// The first escape of a string, of which PostgreSQL warns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscapeInString {
    /// `\'`
    Quote,
    /// `\\`
    Backslash,
    /// Any other.
    Other,
}

/// Returns a text with its plain strings rewritten, and the first escape of each of them with the
/// position of the string, 1-based in characters.
///
/// # Errors
///
/// 0A000 for `U&'…'`, in which a backslash would be ambiguous.
pub fn to_standard_strings(sql: &str) -> Result<(String, Vec<(EscapeInString, usize)>)> {
    let mut reader = Reader { sql, at: 0, copied: 0, out: String::new(), escapes: Vec::new() };
    while reader.at < sql.len() {
        reader.token()?;
    }
    reader.out.push_str(&sql[reader.copied..]);
    Ok((reader.out, reader.escapes))
}

struct Reader<'a> {
    sql: &'a str,
    at: usize,
    /// The number of bytes that were copied to `out`.
    copied: usize,
    out: String,
    escapes: Vec<(EscapeInString, usize)>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.sql[self.at..]
    }

    /// Skips anything but a string; reads a string.
    fn token(&mut self) -> Result<()> {
        let rest = self.rest();
        let first = rest.as_bytes()[0];
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
        match first {
            b'\'' => self.plain(self.at),
            b'"' => self.at += length_through(rest, 1, "\""),
            b'-' if rest.starts_with("--") => self.at += length_through(rest, 2, "\n"),
            b'/' if rest.starts_with("/*") => self.at += comment_length(rest),
            b'$' => self.at += dollar_quote_length(rest),
            _ if rest.starts_with(is_word) => {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let (word, start) = (&rest[..length], self.at);
                self.at += length;
                return self.after_word(word, start);
            }
            _ => self.at += rest.chars().next().map_or(1, char::len_utf8),
        }
        Ok(())
    }

    /// Reads a string whose prefix letter changes its syntax.
    fn after_word(&mut self, word: &str, start: usize) -> Result<()> {
        let rest = self.rest();
        let is_unicode = word.eq_ignore_ascii_case("u") && rest.starts_with("&'");
        if is_unicode {
            let position = self.sql[..start].chars().count() + 1;
            let message = "unsafe use of string constant with Unicode escapes";
            return Err(ParseError::new(sqlstate::FEATURE_NOT_SUPPORTED, message, position)
                .with_hint(
                    "String constants with Unicode escapes cannot be used when \
                     standard_conforming_strings is off.",
                ));
        }
        if !rest.starts_with('\'') {
            return Ok(());
        }
        match word {
            "e" | "E" => {
                let gaps = self.string(|_| ());
                self.copy(&gaps);
            }
            "b" | "B" | "x" | "X" => self.at += length_through(rest, 1, "'"),
            "n" | "N" => self.plain(start),
            _ => self.plain(self.at),
        }
        Ok(())
    }

    /// Reads a plain string; its prefix letter, if any, is at `start`.
    fn plain(&mut self, start: usize) {
        let quote = self.at;
        let mut first = None;
        let gaps = self.string(|escape| {
            first.get_or_insert(escape);
        });
        let Some(first) = first else { return };
        let before = &self.sql[..start];
        self.escapes.push((first, before.chars().count() + 1));
        self.out.push_str(&self.sql[self.copied..start]);
        let joins = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
        self.out.push_str(if joins { " E" } else { "E" });
        self.copied = quote;
        self.copy(&gaps);
    }

    /// Copies a string, joining its continuations on further lines.
    fn copy(&mut self, gaps: &[Range<usize>]) {
        for gap in gaps {
            self.out.push_str(&self.sql[self.copied..gap.start]);
            self.copied = gap.end;
        }
    }

    /// Skips a string with escapes and its continuations on further lines; returns the gaps
    /// between the parts, quotes included.
    fn string(&mut self, mut found: impl FnMut(EscapeInString)) -> Vec<Range<usize>> {
        let bytes = self.sql.as_bytes();
        let mut gaps = Vec::new();
        self.at += 1;
        while self.at < bytes.len() {
            match bytes[self.at] {
                b'\\' => {
                    found(match bytes.get(self.at + 1) {
                        Some(b'\'') => EscapeInString::Quote,
                        Some(b'\\') => EscapeInString::Backslash,
                        _ => EscapeInString::Other,
                    });
                    let escaped = self.sql[self.at + 1..].chars().next();
                    self.at += 1 + escaped.map_or(0, char::len_utf8);
                }
                b'\'' if bytes.get(self.at + 1) == Some(&b'\'') => self.at += 2,
                b'\'' => {
                    let end = self.at;
                    self.at += 1;
                    let rest = self.rest();
                    let next = rest.trim_start();
                    let blank = &rest[..rest.len() - next.len()];
                    if !blank.contains(['\n', '\r']) || !next.starts_with('\'') {
                        break;
                    }
                    self.at += blank.len() + 1;
                    gaps.push(end..self.at);
                }
                _ => self.at += 1,
            }
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(sql: &str) -> String {
        to_standard_strings(sql).unwrap().0
    }

    #[test]
    fn plain_strings_with_backslashes_become_escape_strings() {
        for (text, expected) in [
            (r"SELECT 'a\'b', 'c'", r"SELECT E'a\'b', 'c'"),
            (r"SELECT 'a''\\', E'\\', N'\n'", r"SELECT E'a''\\', E'\\', E'\n'"),
            (r"SELECT date'\\' \d", r"SELECT date E'\\' \d"),
            ("SELECT 'a'\n  'b\\t' 'c\\'", "SELECT E'ab\\t' E'c\\'"),
            ("SELECT E'a'\n  '\\t', 'c'\n'd'", "SELECT E'a\\t', 'c'\n'd'"),
            (r#"SELECT "a\" -- '\'"#, r#"SELECT "a\" -- '\'"#),
            (r"/* /* '\' */ '\' */ '\é'", r"/* /* '\' */ '\' */ E'\é'"),
            (r"SELECT $a$ '\' $a$, $1, '\$'", r"SELECT $a$ '\' $a$, $1, E'\$'"),
            (r"SELECT B'1\', x'\', '", r"SELECT B'1\', x'\', '"),
            (r"SELECT '\", r"SELECT E'\"),
        ] {
            assert_eq!(rewritten(text), expected);
        }
    }

    #[test]
    fn first_escape_of_string_is_reported() {
        let (_, escapes) = to_standard_strings(r"'a\'\\' '\\' '\n\'' 'x'").unwrap();
        let expected = [
            (EscapeInString::Quote, 1),
            (EscapeInString::Backslash, 9),
            (EscapeInString::Other, 14),
        ];
        assert_eq!(escapes, expected);
        assert!(to_standard_strings(r"SELECT U&'\0061'").is_err());
    }
}
