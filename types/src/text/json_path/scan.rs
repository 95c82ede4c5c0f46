//! Scanner of `jsonpath`.

use std::ops::Range;

use crate::error::{Error, Result};

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PathToken {
    /// An unquoted name: a keyword or a key.
    Word(String),
    /// A quoted string.
    String(String),
    Variable(String),
    Number(String),
    Integer(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

/// A token with the text for error messages.
pub(super) struct LocatedToken {
    pub(super) token: PathToken,
    /// The text that PostgreSQL's scanner has read last when it returns the token: the closing
    /// quote of a string, the blanks after a name, or nothing.
    pub(super) near: Range<usize>,
}

const SIGNS: [&str; 30] = [
    "**", "&&", "||", "==", "!=", "<>", "<=", ">=", "<", ">", "!", "?", "$", "@", "*", "+", "-",
    "/", "%", ".", ",", "(", ")", "[", "]", "{", "}", "=", ":", "#",
];

const BLANKS: [char; 5] = [' ', '\t', '\n', '\r', '\x0c'];

/// Returns a syntax error.
pub(super) fn syntax(message: impl Into<String>) -> Error {
    err!(SYNTAX_ERROR: message.into())
}

/// Returns a syntax error near some text; at the end if it is empty.
pub(super) fn at(message: &str, near: &str) -> Error {
    match near {
        "" => syntax(format!("{message} at end of jsonpath input")),
        near => syntax(format!("{message} at or near \"{near}\" of jsonpath input")),
    }
}

/// Scanner state.
pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the next token; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<LocatedToken>> {
        self.skip_blanks()?;
        let start = self.at;
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let token = self.token(first)?;
        let near = match &token {
            // A word directly before a comment is lost, as in PostgreSQL.
            PathToken::Word(_) if self.rest().starts_with("/*") => return self.next(),
            PathToken::Word(_) => {
                let blanks = self.rest().len() - self.rest().trim_start_matches(BLANKS).len();
                self.at..self.at + blanks
            }
            PathToken::String(_) => self.at - 1..self.at,
            _ => start..self.at,
        };
        Ok(Some(LocatedToken { token, near }))
    }

    fn token(&mut self, first: char) -> Result<PathToken> {
        Ok(match first {
            '"' => PathToken::String(self.quoted()?),
            '$' if self.rest()[1..].starts_with('"') => {
                self.at += 1;
                PathToken::Variable(self.quoted()?)
            }
            '$' if self.rest()[1..].chars().next().is_some_and(is_name) => {
                self.at += 1;
                PathToken::Variable(self.name()?)
            }
            '0'..='9' => self.number()?,
            '.' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number()?,
            first if is_name(first) => PathToken::Word(self.name()?),
            _ => {
                let sign = SIGNS.iter().find(|sign| self.rest().starts_with(**sign));
                match sign {
                    Some(sign) => {
                        self.at += sign.len();
                        PathToken::Sign(sign)
                    }
                    None => return Err(at("syntax error", &first.to_string())),
                }
            }
        })
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(BLANKS);
            self.at += rest.len() - trimmed.len();
            let Some(comment) = trimmed.strip_prefix("/*") else { return Ok(()) };
            let end = comment.find("*/").ok_or_else(|| at("unexpected end of comment", ""))?;
            self.at += end + 4;
        }
    }

    /// Scans a number, or a name that begins with a digit, whichever is longer.
    fn number(&mut self) -> Result<PathToken> {
        let rest = self.rest();
        let digits =
            |from: usize| from + rest[from..].bytes().take_while(u8::is_ascii_digit).count();
        let whole = if rest.starts_with('0') { 1 } else { digits(0) };
        let mut end = if rest[whole..].starts_with('.') { digits(whole + 1) } else { whole };
        if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let last = digits(end + 1 + sign);
            if last > end + 1 + sign {
                end = last;
            } else if sign > 0 {
                return Err(at("invalid numeric literal", &rest[..end + 2]));
            }
        }
        let other = |next: &char| is_name(*next) && *next != '\\';
        let junk = end + rest[end..].chars().next().filter(other).map_or(0, char::len_utf8);
        let name: usize = rest.chars().take_while(other).map(char::len_utf8).sum();
        if name > junk {
            return Ok(PathToken::Word(self.name()?));
        }
        if junk > end {
            return Err(at("trailing junk after numeric literal", &rest[..junk]));
        }
        self.at += end;
        let number = rest[..end].to_owned();
        Ok(if end == whole { PathToken::Integer(number) } else { PathToken::Number(number) })
    }

    fn name(&mut self) -> Result<String> {
        let mut name = String::new();
        while let Some(next) = self.rest().chars().next() {
            match next {
                '\\' => self.escape(&mut name)?,
                next if is_name(next) => {
                    name.push(next);
                    self.at += next.len_utf8();
                }
                _ => break,
            }
        }
        Ok(name)
    }

    fn quoted(&mut self) -> Result<String> {
        let mut string = String::new();
        self.at += 1;
        loop {
            match self.rest().chars().next() {
                None => return Err(at("unexpected end of quoted string", "")),
                Some('"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some('\\') => self.escape(&mut string)?,
                Some(other) => {
                    string.push(other);
                    self.at += other.len_utf8();
                }
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<()> {
        let rest = self.rest();
        let mut characters = rest.chars();
        characters.next();
        let Some(kind) = characters.next() else {
            return Err(at("unexpected end after backslash", "\\"));
        };
        let plain = match kind {
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'x' => {
                let code = rest.get(2..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let bad = || at("invalid hex character sequence", escaped(rest, 2));
                let code = code.ok_or_else(bad)?;
                self.at += 4;
                return push_code(code, out);
            }
            'u' => return self.unicode(out),
            other => other,
        };
        out.push(plain);
        self.at += 1 + kind.len_utf8();
        Ok(())
    }

    /// Parses `\uXXXX` or `\u{X…}`, or two of them for a surrogate pair.
    fn unicode(&mut self, out: &mut String) -> Result<()> {
        let near = escaped(self.rest(), 4);
        let bad = || at("invalid unicode sequence", near);
        let mut one = || {
            let rest = self.rest().strip_prefix("\\u").ok_or_else(bad)?;
            let (digits, taken) = match rest.strip_prefix('{') {
                Some(braced) => {
                    let end = braced.find('}').ok_or_else(bad)?;
                    (&braced[..end], end + 4)
                }
                None => (rest.get(..4).ok_or_else(bad)?, 6),
            };
            let code = u32::from_str_radix(digits, 16).map_err(|_| bad())?;
            self.at += taken;
            Ok(code)
        };
        let first: u32 = one()?;
        let surrogates = |message: &str| {
            err!(INVALID_TEXT_REPRESENTATION: "invalid input syntax for type jsonpath";
                detail message)
        };
        match first {
            0xd800..=0xdbff => {
                let second = one().map_err(|_: Error| {
                    surrogates("Unicode low surrogate must follow a high surrogate.")
                })?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    let message = "Unicode low surrogate must follow a high surrogate.";
                    return Err(surrogates(message));
                }
                push_code(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), out)
            }
            0xdc00..=0xdfff => {
                Err(surrogates("Unicode low surrogate must follow a high surrogate."))
            }
            code => push_code(code, out),
        }
    }
}

/// Returns the present part of an escape with a number of hexadecimal digits.
fn escaped(rest: &str, digits: usize) -> &str {
    let found = rest[2..].bytes().take(digits).take_while(u8::is_ascii_hexdigit).count();
    &rest[..2 + found]
}

fn push_code(code: u32, out: &mut String) -> Result<()> {
    match char::from_u32(code) {
        Some('\0') => Err(Error::new("22P05", "unsupported Unicode escape sequence")
            .with_detail("\\u0000 cannot be converted to text.")),
        Some(character) => {
            out.push(character);
            Ok(())
        }
        None => Err(at("invalid Unicode escape sequence", "")),
    }
}

fn is_name(character: char) -> bool {
    !character.is_ascii_whitespace() && !"?%$.[]{}()|&!=<>@#,*:-+/\"".contains(character)
}
