//! Tokens of strings and names with escapes: `E'…'`, `U&'…'`, `U&"…"`.
//!
//! The tokenizer of `sqlparser` splits `U&'…'` into a word, an operator and an unescaped string;
//! they are combined into one token here. It knows only the common escapes of `E'…'`; where it
//! stops, the string is read by PostgreSQL's rules, and the tokenizer continues after it.

use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace, Word};

use super::constant_runs;
use super::dialect::BennuDialect;
use super::error::{ParseError, Result, sqlstate};
use super::source::ScriptText;
use super::token_error;

/// Returns the tokens of a text.
pub(super) fn tokens(
    dialect: &BennuDialect,
    source: &ScriptText<'_>,
) -> Result<Vec<TokenWithSpan>> {
    let mut tokens = Vec::with_capacity(source.text().len() / 4);
    // The start of the text that the tokenizer reads next.
    let mut from = Location::new(1, 1);
    let mut runs = source.runs().iter().peekable();
    loop {
        let first = tokens.len();
        let start = source.byte(from);
        while runs.next_if(|run| run.range.start < start).is_some() {}
        let end = runs.peek().map_or(source.text().len(), |run| run.range.start);
        let rest = &source.text()[start..end];
        let read = Tokenizer::new(dialect, rest).tokenize_with_location_into_buf(&mut tokens);
        for token in &mut tokens[first..] {
            token.span.start = moved(token.span.start, from);
            token.span.end = moved(token.span.end, from);
        }
        if let Some(at) = continued(&tokens[first..], source) {
            tokens.truncate(first + at + 1);
            let Some(start) = tokens.pop().map(|token| token.span.start) else { break };
            let token = EscapedStringReader::read(source, start, &|| {
                let message = "unterminated quoted string";
                ParseError::syntax(message, source.position(start))
            })?;
            from = token.span.end;
            tokens.push(token);
            continue;
        }
        let Err(mut error) = read else {
            let Some(run) = runs.next() else { break };
            let (start, end) = (run.range.start, run.range.end);
            from = source.location(end);
            let token = Token::Placeholder(constant_runs::token(run));
            let span = source.location(start).span_to(from);
            tokens.push(TokenWithSpan { token, span });
            continue;
        };
        error.location = moved(error.location, from);
        let start = tokens.last().map_or(from, |token| token.span.end);
        let begins = source.text()[source.byte(start)..].starts_with(['e', 'E']);
        if !begins || !error.message.contains("encoded string") {
            return Err(token_error(&error, source));
        }
        let token = EscapedStringReader::read(source, start, &|| token_error(&error, source))?;
        from = token.span.end;
        tokens.push(token);
    }
    unicode(&mut tokens, source)?;
    Ok(tokens)
}

/// Returns the index of the first `E'…'` token that continues on another line.
fn continued(tokens: &[TokenWithSpan], source: &ScriptText<'_>) -> Option<usize> {
    let goes_on = |token: &TokenWithSpan| {
        matches!(token.token, Token::EscapedStringLiteral(_))
            && continuation(&source.text()[source.byte(token.span.end)..]).is_some()
    };
    tokens.iter().position(goes_on)
}

/// Returns the length of the separator between a string and its continuation: blanks that include
/// a newline, and comments.
fn continuation(text: &str) -> Option<usize> {
    let mut rest = text;
    let mut has_newline = false;
    loop {
        let blanks = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        has_newline |= rest[..rest.len() - blanks.len()].contains(['\n', '\r']);
        rest = blanks;
        match rest.find('\n') {
            Some(end) if rest.starts_with("--") => rest = &rest[end..],
            _ => break,
        }
    }
    (has_newline && rest.starts_with('\'')).then(|| text.len() - rest.len())
}

/// Converts a location in the part of the text that begins at `from`.
fn moved(location: Location, from: Location) -> Location {
    match location.line {
        1 => Location::new(from.line, from.column + location.column - 1),
        line => Location::new(from.line + line - 1, location.column),
    }
}

/// Four digits, as in hints.
const X4: &str = concat!("XX", "XX");

/// The pending first half of a surrogate pair, if any.
#[derive(Default)]
struct SurrogatePair(Option<u32>);

/// The error of an escaped character.
enum EscapeError {
    Pair,
    Value,
}

impl SurrogatePair {
    /// Adds an escaped character; returns `None` for the first half of a pair.
    fn take(&mut self, code: u32) -> std::result::Result<Option<char>, EscapeError> {
        let code = match (self.0.take(), code) {
            (None, 0xD800..=0xDBFF) => {
                self.0 = Some(code);
                return Ok(None);
            }
            (Some(first), 0xDC00..=0xDFFF) => 0x10000 + ((first - 0xD800) << 10) + code - 0xDC00,
            (Some(_), _) | (None, 0xDC00..=0xDFFF) => return Err(EscapeError::Pair),
            (None, code) => code,
        };
        char::from_u32(code).filter(|c| *c != '\0').map(Some).ok_or(EscapeError::Value)
    }
}

/// Reader of a string `E'…'`.
struct EscapedStringReader<'a> {
    source: &'a ScriptText<'a>,
    rest: &'a str,
    at: Location,
    value: Vec<u8>,
    pair: SurrogatePair,
}

impl<'a> EscapedStringReader<'a> {
    /// Reads the string at a location, with its continuations on other lines.
    fn read(
        source: &'a ScriptText<'a>,
        start: Location,
        unterminated: &dyn Fn() -> ParseError,
    ) -> Result<TokenWithSpan> {
        let rest = &source.text()[source.byte(start)..];
        let mut string = EscapedStringReader {
            source,
            rest,
            at: start,
            value: Vec::new(),
            pair: SurrogatePair::default(),
        };
        string.next();
        string.next();
        loop {
            let before = (string.rest, string.at);
            match string.next() {
                None => return Err(unterminated()),
                Some('\\') => string.escape(before)?,
                Some('\'') if string.rest.starts_with('\'') => {
                    string.pair_ends(before)?;
                    string.next();
                    string.value.push(b'\'');
                }
                Some('\'') => {
                    string.pair_ends(before)?;
                    let Some(length) = continuation(string.rest) else { break };
                    let next = string.rest.len() - length - 1;
                    while string.rest.len() > next {
                        string.next();
                    }
                }
                Some(c) => {
                    string.pair_ends(before)?;
                    string.push(c);
                }
            }
        }
        let token = match String::from_utf8(string.value) {
            Ok(value) if !value.contains('\0') => Token::EscapedStringLiteral(value),
            Ok(_) => return Err(no_text(&[0])),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                return Err(no_text(&error.as_bytes()[valid..]));
            }
        };
        Ok(TokenWithSpan { token, span: start.span_to(string.at) })
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        self.at = match c {
            '\n' => Location::new(self.at.line + 1, 1),
            _ => Location::new(self.at.line, self.at.column + 1),
        };
        Some(c)
    }

    fn push(&mut self, c: char) {
        self.value.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Reads at most `most` digits.
    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut code = None;
        for _ in 0..most {
            let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            code = Some(code.unwrap_or(0) * radix + digit);
            self.next();
        }
        code
    }

    /// Reads the rest of an escape whose backslash is at `before`.
    fn escape(&mut self, before: (&str, Location)) -> Result<()> {
        let Some(c) = self.next() else { return Ok(()) };
        if let 'u' | 'U' = c {
            return self.unicode(if c == 'u' { 4 } else { 8 }, before);
        }
        self.pair_ends(before)?;
        let byte = match c {
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '0'..='7' => {
                let first = c.to_digit(8).unwrap_or(0);
                let before = self.rest.len();
                let more = self.digits(8, 2).unwrap_or(0);
                let shift = 3 * (before - self.rest.len());
                ((first << shift) + more).to_le_bytes()[0]
            }
            'x' => match self.digits(16, 2) {
                Some(code) => code.to_le_bytes()[0],
                None => b'x',
            },
            other => {
                self.push(other);
                return Ok(());
            }
        };
        self.value.push(byte);
        Ok(())
    }

    fn unicode(&mut self, length: usize, before: (&str, Location)) -> Result<()> {
        let position = self.source.position(before.1);
        let text = self.rest;
        let code = self.digits(16, length);
        let taken = text.len() - self.rest.len();
        let Some(code) = code.filter(|_| taken == length) else {
            let message = "invalid Unicode escape";
            return Err(ParseError::new(sqlstate::INVALID_ESCAPE_SEQUENCE, message, position)
                .with_hint(format!("Unicode escapes must be \\u{X4} or \\U{X4}{X4}.")));
        };
        match self.pair.take(code) {
            Ok(c) => {
                c.into_iter().for_each(|c| self.push(c));
                Ok(())
            }
            Err(wrong) => {
                let what = match wrong {
                    EscapeError::Pair => "surrogate pair",
                    EscapeError::Value => "escape value",
                };
                let near = before.0.get(..length + 2).unwrap_or_default();
                let message = format!("invalid Unicode {what} at or near \"{near}\"");
                Err(ParseError::syntax(message, position))
            }
        }
    }

    /// Rejects the first half of a surrogate pair without a second one at `before`.
    fn pair_ends(&self, before: (&str, Location)) -> Result<()> {
        if self.pair.0.is_none() {
            return Ok(());
        }
        let near: String = before.0.chars().take(1).collect();
        let message = format!("invalid Unicode surrogate pair at or near \"{near}\"");
        Err(ParseError::syntax(message, self.source.position(before.1)))
    }
}

/// Returns the error for bytes that are not valid UTF-8.
fn no_text(bytes: &[u8]) -> ParseError {
    let length = match bytes.first() {
        Some(0xC0..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF7) => 4,
        _ => 1,
    };
    let shown: Vec<String> =
        bytes.iter().take(length).map(|byte| format!("0x{byte:02x}")).collect();
    let message = format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "));
    ParseError::new(sqlstate::CHARACTER_NOT_IN_REPERTOIRE, message, None)
}

/// Combines each `U&'…'` and `U&"…"` with its UESCAPE into one token.
fn unicode(tokens: &mut Vec<TokenWithSpan>, source: &ScriptText<'_>) -> Result<()> {
    let is_start = |tokens: &[TokenWithSpan]| match tokens {
        [word, ampersand, text, ..] => {
            matches!(&word.token, Token::Word(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("u"))
                && ampersand.token == Token::Ampersand
                && word.span.end == ampersand.span.start
                && ampersand.span.end == text.span.start
                && is_piece(&text.token)
        }
        _ => false,
    };
    let Some(mut at) = (0..tokens.len()).find(|at| is_start(&tokens[*at..])) else {
        return Ok(());
    };
    let mut out: Vec<TokenWithSpan> = tokens[..at].to_vec();
    while at < tokens.len() {
        if is_start(&tokens[at..]) {
            let (token, used) = one(&tokens[at..], source)?;
            out.push(token);
            at += used;
        } else {
            out.push(tokens[at].clone());
            at += 1;
        }
    }
    *tokens = out;
    Ok(())
}

fn is_piece(token: &Token) -> bool {
    match token {
        Token::SingleQuotedString(_) => true,
        Token::Word(word) => word.quote_style == Some('"'),
        _ => false,
    }
}

/// Reads the string or name at the start of these tokens; also returns the number of its tokens.
fn one(tokens: &[TokenWithSpan], source: &ScriptText<'_>) -> Result<(TokenWithSpan, usize)> {
    let mut used = 3;
    let (mut text, is_name) = match &tokens[2].token {
        Token::Word(word) => (word.value.clone(), true),
        Token::SingleQuotedString(text) => (text.clone(), false),
        _ => (String::new(), false),
    };
    let behind = |used: usize| {
        let blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
        let blanks = tokens[used..].iter().take_while(blank);
        let newline = Token::Whitespace(Whitespace::Newline);
        let newlines = blanks.clone().any(|blank| blank.token == newline);
        (used + blanks.count(), newlines)
    };
    while let (next, true) = behind(used)
        && let Some(Token::SingleQuotedString(more)) = tokens.get(next).map(|next| &next.token)
        && !is_name
    {
        text.push_str(more);
        used = next + 1;
    }
    let (next, _) = behind(used);
    let mut escape = '\\';
    if matches!(tokens.get(next).map(|next| &next.token), Some(Token::Word(word))
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("uescape"))
    {
        let (character, _) = behind(next + 1);
        escape = escape_character(tokens.get(character), source)?;
        used = character + 1;
    }
    let start = tokens[0].span.start;
    let value = decoded(&text, escape, source.position(start) + 3)?;
    let token = match is_name {
        true => Token::Word(Word {
            value,
            quote_style: Some('"'),
            keyword: sqlparser::keywords::Keyword::NoKeyword,
        }),
        false => Token::SingleQuotedString(value),
    };
    Ok((TokenWithSpan { token, span: start.span_to(tokens[used - 1].span.end) }, used))
}

fn escape_character(token: Option<&TokenWithSpan>, source: &ScriptText<'_>) -> Result<char> {
    let text = token.map_or("", |token| {
        let bytes = source.byte(token.span.start)..source.byte(token.span.end);
        source.text().get(bytes).unwrap_or_default()
    });
    let position = token.map_or_else(|| source.end(), |token| source.position(token.span.start));
    let Some(Token::SingleQuotedString(escape)) = token.map(|token| &token.token) else {
        let near = if text.is_empty() { "end of input" } else { "near" };
        let shown = if text.is_empty() { String::new() } else { format!(" \"{text}\"") };
        let message = "UESCAPE must be followed by a simple string literal";
        return Err(ParseError::syntax(format!("{message} at or {near}{shown}"), position));
    };
    let is_valid = |c: char| {
        !c.is_ascii_hexdigit() && !matches!(c, '+' | '\'' | '"') && !" \t\n\r\x0c".contains(c)
    };
    match escape.as_bytes() {
        [byte] if is_valid(char::from(*byte)) => Ok(char::from(*byte)),
        _ => {
            let message = format!("invalid Unicode escape character at or near \"{text}\"");
            Err(ParseError::syntax(message, position))
        }
    }
}

/// Returns a text with its escapes decoded; its first character is at `position`.
fn decoded(text: &str, escape: char, position: usize) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut pair = SurrogatePair::default();
    let chars: Vec<char> = text.chars().collect();
    let wrong_pair =
        |at: usize| ParseError::syntax("invalid Unicode surrogate pair", position + at);
    let mut at = 0;
    while at < chars.len() {
        let doubled = chars.get(at + 1) == Some(&escape);
        if chars[at] != escape || doubled {
            if pair.0.is_some() {
                return Err(wrong_pair(at));
            }
            out.push(chars[at]);
            at += if chars[at] == escape { 2 } else { 1 };
            continue;
        }
        let (skipped, length) = if chars.get(at + 1) == Some(&'+') { (2, 6) } else { (1, 4) };
        let digits = chars.get(at + skipped..at + skipped + length).unwrap_or_default();
        let code = digits.iter().try_fold(0, |code, c| Some(code * 16 + c.to_digit(16)?));
        let Some(code) = code.filter(|_| !digits.is_empty()) else {
            return Err(ParseError::syntax("invalid Unicode escape", position + at)
                .with_hint(format!("Unicode escapes must be \\{X4} or \\+{X4}XX.")));
        };
        match pair.take(code) {
            Ok(c) => out.extend(c),
            Err(EscapeError::Pair) => return Err(wrong_pair(at)),
            Err(EscapeError::Value) => {
                let message = "invalid Unicode escape value";
                return Err(ParseError::syntax(message, position + at));
            }
        }
        at += skipped + length;
    }
    match pair.0 {
        Some(_) => Err(wrong_pair(at)),
        None => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Token>> {
        let tokens = tokens(&BennuDialect::default(), &ScriptText::new(text))?;
        Ok(tokens.into_iter().map(|token| token.token).collect())
    }

    #[test]
    fn tokens_after_escaped_string_keep_position() {
        let text = "E'\\uD83D\\uDE00\né' x U&'\\0061'\n'b' y";
        let tokens = tokens(&BennuDialect::default(), &ScriptText::new(text)).unwrap();
        assert_eq!(tokens[0].token, Token::EscapedStringLiteral("😀\né".to_owned()));
        assert_eq!(tokens[2].span.start, Location::new(2, 4));
        assert_eq!(tokens[4].token, Token::SingleQuotedString("ab".to_owned()));
        assert_eq!(tokens[6].span.start, Location::new(3, 5));
    }

    #[test]
    fn literal_errors_match_postgresql() {
        for (text, message, position) in [
            ("x U&'ab\\061'", "invalid Unicode escape", Some(8)),
            ("x U&'a\\DE00'", "invalid Unicode surrogate pair", Some(7)),
            ("x U&'\\0000'", "invalid Unicode escape value", Some(6)),
            ("U&'a' UESCAPE '+'", "invalid Unicode escape character at or near \"'+'\"", Some(15)),
            ("x E'\\u00'", "invalid Unicode escape", Some(5)),
            ("E'\\uD83Dx'", "invalid Unicode surrogate pair at or near \"x\"", Some(9)),
            ("E'\\u0000'", "invalid Unicode escape value at or near \"\\u0000\"", Some(3)),
            ("E'\\xc3x'", "invalid byte sequence for encoding \"UTF8\": 0xc3 0x78", None),
            ("E'\\000'", "invalid byte sequence for encoding \"UTF8\": 0x00", None),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!((error.message.as_str(), error.position), (message, position), "{text}");
        }
    }
}
