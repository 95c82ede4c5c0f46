//! Tokenizer of PL/pgSQL bodies.
//!
//! SQL fragments are passed to the SQL parser as text, so values of literals are decoded only for
//! PL/pgSQL itself: the format of RAISE, SQLSTATEs.
//!
//! Source: PostgreSQL's scan.l, which both languages share.

use crate::parser::ParseError;

/// The kind of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// An unquoted word, folded.
    Word(String),
    /// A quoted name.
    Quoted(String),
    /// A string literal.
    Text(String),
    /// A number.
    Number,
    /// `$1`
    Parameter,
    /// An operator or a punctuation mark.
    Symbol,
    /// The end of the text.
    End,
}

/// A token with its position.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Byte offsets.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The line, from 1.
    pub(super) line: u32,
}

/// The characters of operators.
const OPERATORS: &[u8] = b"+-*/<>=~!@#%^&|`?";

/// Returns the tokens of a text, followed by one of kind [`TokenKind::End`].
///
/// # Errors
///
/// 42601 for an unterminated token.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
    let mut scanner = Scanner { text, at: 0, line: 1 };
    let mut tokens = Vec::new();
    loop {
        scanner.skip_blanks()?;
        let (start, line) = (scanner.at, scanner.line);
        let kind = scanner.token()?;
        let is_end = kind == TokenKind::End;
        let passed = &text.as_bytes()[start..scanner.at];
        scanner.line += passed.iter().filter(|byte| **byte == b'\n').count() as u32;
        tokens.push(Token { kind, start, end: scanner.at, line });
        if is_end {
            return Ok(tokens);
        }
    }
}

/// Returns the 1-based character offset of a byte.
pub(super) fn position(text: &str, byte: usize) -> usize {
    text.get(..byte).map_or(0, |before| before.chars().count()) + 1
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn unterminated(&self, what: &str, start: usize) -> ParseError {
        let rest = &self.text[start..];
        let message = format!("unterminated {what} at or near \"{rest}\"");
        ParseError::syntax(message, position(self.text, start))
    }

    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        loop {
            let rest = self.rest();
            if rest.starts_with("--") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.skip_comment()?;
            } else if let Some(blank) = rest.chars().next().filter(|c| c.is_ascii_whitespace()) {
                self.line += u32::from(blank == '\n');
                self.at += 1;
            } else if self.byte(0) == 0x0b {
                self.at += 1;
            } else {
                return Ok(());
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), ParseError> {
        let start = self.at;
        let mut depth = 0;
        loop {
            match (self.byte(0), self.byte(1)) {
                _ if self.at >= self.text.len() => {
                    return Err(self.unterminated("/* comment", start));
                }
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                (byte, _) => {
                    self.line += u32::from(byte == b'\n');
                    self.at += 1;
                }
            }
        }
    }

    fn token(&mut self) -> Result<TokenKind, ParseError> {
        let (first, second) = (self.byte(0), self.byte(1));
        match first {
            _ if self.at >= self.text.len() => Ok(TokenKind::End),
            b'\'' => self.string(0, false),
            b'e' | b'E' if second == b'\'' => self.string(1, true),
            b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if second == b'\'' => self.string(1, false),
            b'u' | b'U' if second == b'&' && matches!(self.byte(2), b'\'' | b'"') => {
                self.at += 2;
                if self.byte(0) == b'"' { self.quoted() } else { self.string(0, false) }
            }
            b'"' => self.quoted(),
            b'$' if second.is_ascii_digit() => {
                self.at += 1;
                self.skip_while(|byte| byte.is_ascii_digit());
                Ok(TokenKind::Parameter)
            }
            b'$' => self.dollar_quoted(),
            b'0'..=b'9' => Ok(self.number()),
            b'.' if second.is_ascii_digit() => Ok(self.number()),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => {
                let start = self.at;
                let in_word = |byte: u8| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
                };
                self.skip_while(in_word);
                Ok(TokenKind::Word(self.text[start..self.at].to_ascii_lowercase()))
            }
            _ => Ok(self.symbol()),
        }
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.at < self.text.len() && wanted(self.byte(0)) {
            self.at += 1;
        }
    }

    fn string(&mut self, prefix: usize, escapes: bool) -> Result<TokenKind, ParseError> {
        let start = self.at;
        self.at += prefix + 1;
        let mut value = Vec::new();
        loop {
            match (self.byte(0), self.byte(1)) {
                _ if self.at >= self.text.len() => {
                    return Err(self.unterminated("quoted string", start));
                }
                (b'\'', b'\'') => {
                    value.push(b'\'');
                    self.at += 2;
                }
                (b'\'', _) => {
                    self.at += 1;
                    let value = String::from_utf8_lossy(&value).into_owned();
                    return Ok(TokenKind::Text(value));
                }
                (b'\\', next) if escapes && self.at + 1 < self.text.len() => {
                    match next {
                        b'n' => value.push(b'\n'),
                        b't' => value.push(b'\t'),
                        b'r' => value.push(b'\r'),
                        other => value.push(other),
                    }
                    self.at += 2;
                }
                (byte, _) => {
                    value.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn quoted(&mut self) -> Result<TokenKind, ParseError> {
        let start = self.at;
        self.at += 1;
        loop {
            let Some(end) = self.rest().find('"') else {
                return Err(self.unterminated("quoted identifier", start));
            };
            self.at += end + 1;
            if self.byte(0) != b'"' {
                let name = self.text[start + 1..self.at - 1].replace("\"\"", "\"");
                return Ok(TokenKind::Quoted(name));
            }
            self.at += 1;
        }
    }

    fn dollar_quoted(&mut self) -> Result<TokenKind, ParseError> {
        let start = self.at;
        let of_tag = |c: char| c == '_' || c.is_alphanumeric();
        let tag = self.rest()[1..].find(|c| !of_tag(c)).map_or(self.text.len(), |at| at + 1);
        if self.byte(tag) != b'$' {
            self.at += 1;
            return Ok(TokenKind::Symbol);
        }
        let delimiter = self.rest()[..=tag].to_owned();
        self.at += delimiter.len();
        let Some(length) = self.rest().find(&delimiter) else {
            return Err(self.unterminated("dollar-quoted string", start));
        };
        let value = self.rest()[..length].to_owned();
        self.at += length + delimiter.len();
        Ok(TokenKind::Text(value))
    }

    fn number(&mut self) -> TokenKind {
        self.skip_while(|byte| byte.is_ascii_digit());
        // `1..10` is a range.
        if self.byte(0) == b'.' && self.byte(1) != b'.' {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        let signed = usize::from(matches!(self.byte(1), b'+' | b'-'));
        if matches!(self.byte(0), b'e' | b'E') && self.byte(1 + signed).is_ascii_digit() {
            self.at += 1 + signed;
            self.skip_while(|byte| byte.is_ascii_digit());
        }
        TokenKind::Number
    }

    fn symbol(&mut self) -> TokenKind {
        let rest = self.rest();
        if ["::", ":=", ".."].iter().any(|pair| rest.starts_with(pair)) {
            self.at += 2;
            return TokenKind::Symbol;
        }
        let bytes = rest.as_bytes();
        let mut length = bytes.iter().take_while(|byte| OPERATORS.contains(byte)).count();
        for comment in ["--", "/*"] {
            if let Some(at) = rest[..length].find(comment) {
                length = at;
            }
        }
        let is_special = bytes[..length].iter().any(|byte| b"~!@#%^&|`?".contains(byte));
        while length > 1 && !is_special && matches!(bytes[length - 1], b'+' | b'-') {
            length -= 1;
        }
        // Non-ASCII characters are part of words.
        self.at += length.max(1);
        TokenKind::Symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let tokens = tokens(text).unwrap();
        tokens.iter().map(|token| text[token.start..token.end].to_owned()).collect()
    }

    #[test]
    fn plpgsql_tokens_match_sql() {
        assert_eq!(texts("x:=-1..10;"), ["x", ":=", "-", "1", "..", "10", ";", ""]);
        assert_eq!(texts("a>=-1.5e3 <<b>>"), ["a", ">=", "-", "1.5e3", "<<", "b", ">>", ""]);
        assert_eq!(
            texts("'a''b' E'\\'' $x$;$x$ \"A\"\"b\""),
            ["'a''b'", "E'\\''", "$x$;$x$", "\"A\"\"b\"", ""]
        );
        assert_eq!(texts("t.a%TYPE -- c\n/* /* */ */ $1"), ["t", ".", "a", "%", "TYPE", "$1", ""]);
        let lines: Vec<u32> = tokens("a\n'\n' b").unwrap().iter().map(|one| one.line).collect();
        assert_eq!(lines, [1, 2, 3, 3]);
        assert!(tokens("'a").is_err() && tokens("$$a").is_err() && tokens("/*").is_err());
    }
}
