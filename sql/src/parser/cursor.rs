//! The token cursor of the parser.
//!
//! It wraps the parser of `sqlparser`, translates that parser's errors into PostgreSQL's, and
//! reads the elements that all statements have in common: keywords, names, lists.

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};
use types::key_words;

use super::create_as::SelectIntoClause;
use super::error::{ParseError, Result};
use super::limits;
use super::name;
use super::rewrite_from::JoinAliases;
use super::source::ScriptText;
use super::window::Exclusions;
use crate::ast::{ColumnName, Ident, TableName};

/// A token cursor.
pub(crate) struct TokenCursor<'a> {
    pub(super) parser: Parser<'a>,
    pub(super) source: &'a ScriptText<'a>,
    pub(super) token_count: usize,
    /// Unqualified names of tables in FROM read so far, without those of completed WITH clauses.
    pub(super) table_names: Vec<String>,
    /// The EXCLUDE clauses of frames, which were removed from the tokens.
    pub(super) exclusions: Exclusions,
    /// The aliases of JOIN … USING, which were removed from the tokens.
    pub(super) join_aliases: JoinAliases,
    /// The INTO clause of a SELECT.
    pub(super) into: SelectIntoClause,
}

impl TokenCursor<'_> {
    // ---- tokens ----

    pub(super) fn peek(&self) -> &Token {
        &self.parser.peek_token_ref().token
    }

    pub(super) fn position_of(&self, token: &TokenWithSpan) -> usize {
        match self.source.position(token.span.start) {
            0 => self.source.end(),
            position => position,
        }
    }

    /// Returns the position of the next token, or the end of the text.
    pub(super) fn position(&self) -> usize {
        self.position_of(self.parser.peek_token_ref())
    }

    /// Returns the byte offset of the next token.
    pub(super) fn byte(&self) -> usize {
        let token = self.parser.peek_token_ref();
        if token.span.start.line == 0 {
            return self.source.text().len();
        }
        self.source.byte(token.span.start)
    }

    /// Returns the text from a byte offset to the next token, trimmed.
    pub(super) fn text_since(&self, start: usize) -> String {
        // Rewritten tokens may have become blanks; their text counts, up to the next token, except
        // comments.
        let mut end = self.byte();
        let last = self.parser.get_current_index();
        let behind = (last + 1..)
            .take_while(|&index| matches!(self.parser.token_at(index).token, Token::Whitespace(_)));
        for index in behind.collect::<Vec<_>>().into_iter().rev() {
            let TokenWithSpan { token, span } = self.parser.token_at(index);
            let range = self.source.byte(span.start)..self.source.byte(span.end);
            let written = self.source.text().get(range.clone()).unwrap_or_default();
            if *token == Token::Whitespace(Whitespace::Space) && !written.trim().is_empty() {
                break;
            }
            end = range.start;
        }
        self.source.text()[start..end.max(start)].trim().to_owned()
    }

    pub(super) fn advance(&mut self) {
        self.parser.advance_token();
    }

    pub(super) fn take(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, token: &Token) -> Result<()> {
        if self.take(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Returns whether the statement is at its end.
    pub(super) fn at_end(&self) -> bool {
        matches!(self.peek(), Token::EOF | Token::SemiColon)
    }

    // ---- words ----

    fn nth_is_word(&self, n: usize, word: &str) -> bool {
        match &self.parser.peek_nth_token_ref(n).token {
            Token::Word(found) => {
                found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word)
            }
            _ => false,
        }
    }

    /// Returns whether the next words are these, given in lower case.
    pub(super) fn is_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| self.nth_is_word(n, word))
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.nth_is_word(0, word)
    }

    pub(super) fn take_words(&mut self, words: &[&str]) -> bool {
        let found = self.is_words(words);
        if found {
            words.iter().for_each(|_| self.advance());
        }
        found
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.take_words(&[word])
    }

    pub(super) fn expect_words(&mut self, words: &[&str]) -> Result<()> {
        for word in words {
            if !self.take_word(word) {
                return Err(self.unexpected());
            }
        }
        Ok(())
    }

    /// Returns the next word in lower case without reading it; empty if it is not a word, or
    /// quoted.
    pub(super) fn peek_word(&self) -> String {
        match self.peek() {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
            _ => String::new(),
        }
    }

    // ---- names ----

    pub(super) fn identifier(&mut self, allowed: fn(&str) -> bool) -> Result<Ident> {
        let position = self.position();
        let Token::Word(word) = self.peek() else { return Err(self.unexpected()) };
        let quoted = word.quote_style.is_some();
        let value = name::fold(&word.value, quoted);
        if quoted && value.is_empty() {
            return Err(ParseError::syntax("zero-length delimited identifier", position));
        }
        if !quoted && !allowed(&value) {
            return Err(self.unexpected());
        }
        self.advance();
        Ok(Ident { value, position })
    }

    /// Reads a column or table name: not a reserved keyword unless quoted.
    pub(super) fn name(&mut self) -> Result<Ident> {
        self.identifier(key_words::is_column_name)
    }

    /// Reads the name of a parameter of a function.
    pub(super) fn parameter_name(&mut self) -> Result<Ident> {
        self.identifier(key_words::is_type_or_function)
    }

    /// Reads the name of a function, which allows other keywords than the name of a table.
    pub(super) fn routine_name(&mut self) -> Result<TableName> {
        if self.parser.peek_nth_token_ref(1).token == Token::Period {
            return self.table_name();
        }
        Ok(TableName { schema: None, name: self.parameter_name()? })
    }

    /// Reads a noise word, unless it is the name that must follow.
    pub(super) fn take_noise(&mut self, word: &str) -> bool {
        let is_last =
            matches!(self.parser.peek_nth_token_ref(1).token, Token::EOF | Token::SemiColon);
        !is_last && self.take_word(word)
    }

    /// Reads a label, which may be any keyword: after AS or a period.
    pub(super) fn label(&mut self) -> Result<Ident> {
        self.identifier(|_| true)
    }

    pub(super) fn table_name(&mut self) -> Result<TableName> {
        let first = self.name()?;
        if !self.take(&Token::Period) {
            return Ok(TableName { schema: None, name: first });
        }
        let second = self.label()?;
        if !self.take(&Token::Period) {
            return Ok(TableName { schema: Some(first), name: second });
        }
        let mut parts = vec![first, second, self.label()?];
        while self.take(&Token::Period) {
            parts.push(self.label()?);
        }
        self.without_database(parts)
    }

    /// Returns a name from its parts: the last one, its schema, and optionally the database.
    pub(super) fn without_database(&self, mut parts: Vec<Ident>) -> Result<TableName> {
        let written: Vec<String> = parts.iter().map(|part| part.value.clone()).collect();
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        let (Some(name), schema) = (parts.pop(), parts.pop()) else {
            return Err(self.unexpected());
        };
        self.source.note_database(name::database_of(&parts, &written)?);
        Ok(TableName { schema, name })
    }

    pub(super) fn column_name(&mut self) -> Result<ColumnName> {
        let first = self.name()?;
        if !self.take(&Token::Period) {
            return Ok(ColumnName { family: None, name: first });
        }
        let name = self.label()?;
        if self.peek() == &Token::Period {
            let what = "an assignment to a field of a field";
            return Err(ParseError::unsupported(what, first.position)
                .with_hint("Assign the whole field: SET c.f = ROW(…)."));
        }
        Ok(ColumnName { family: Some(first), name })
    }

    // ---- lists ----

    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.take(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(super) fn parenthesized<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.expect(&Token::LParen)?;
        let items = self.list(item)?;
        self.expect(&Token::RParen)?;
        Ok(items)
    }

    // ---- literals ----

    /// Returns whether a string literal of any form follows the current token.
    pub(super) fn second_is_string(&self) -> bool {
        matches!(
            self.parser.peek_nth_token_ref(1).token,
            Token::SingleQuotedString(_)
                | Token::EscapedStringLiteral(_)
                | Token::UnicodeStringLiteral(_)
                | Token::DollarQuotedString(_)
        )
    }

    /// Reads a string literal of any form.
    pub(super) fn string(&mut self) -> Result<String> {
        let value = match self.peek() {
            Token::SingleQuotedString(value)
            | Token::EscapedStringLiteral(value)
            | Token::UnicodeStringLiteral(value) => value.clone(),
            Token::DollarQuotedString(quoted) => quoted.value.clone(),
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(value)
    }

    /// Returns the texts of the comments directly after the current token.
    pub(super) fn comments(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for n in 0.. {
            match self.parser.peek_nth_token_no_skip(n).token {
                Token::Whitespace(Whitespace::MultiLineComment(text)) => texts.push(text),
                Token::Whitespace(_) => {}
                _ => break,
            }
        }
        texts
    }

    // ---- errors ----

    /// Returns PostgreSQL's syntax error at the next token.
    pub(super) fn unexpected(&self) -> ParseError {
        self.syntax_error_at(self.parser.peek_token_ref())
    }

    pub(super) fn syntax_error_at(&self, token: &TokenWithSpan) -> ParseError {
        if token.token == Token::EOF || token.span.start.line == 0 {
            return ParseError::syntax("syntax error at end of input", self.source.end());
        }
        let start = self.source.byte(token.span.start);
        let end = self.source.byte(token.span.end).max(start);
        let text = &self.source.text()[start..end];
        ParseError::syntax(
            format!("syntax error at or near \"{text}\""),
            self.source.position(token.span.start),
        )
    }

    /// Returns PostgreSQL's syntax error at the token that starts at a position.
    pub(super) fn syntax_error_near(&self, position: usize) -> ParseError {
        match self.token_index(position) {
            Some(index) => self.syntax_error_at(self.parser.token_at(index)),
            None => ParseError::syntax("syntax error at end of input", self.source.end()),
        }
    }

    /// Translates an error of `sqlparser`, which has the position only in its message.
    pub(super) fn translate(&self, error: ParserError) -> ParseError {
        let message = match error {
            ParserError::RecursionLimitExceeded => return limits::too_complex(self.position()),
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
        };
        if message.contains("found: EOF") {
            return ParseError::syntax("syntax error at end of input", self.source.end());
        }
        let Some(position) = self.position_in(&message) else { return self.unexpected() };
        self.unsupported_syntax(position).unwrap_or_else(|| self.syntax_error_near(position))
    }

    fn position_in(&self, message: &str) -> Option<usize> {
        let (_, place) = message.rsplit_once(" at Line: ")?;
        let (line, column) = place.split_once(", Column: ")?;
        let location = sqlparser::tokenizer::Location {
            line: line.parse().ok()?,
            column: column.trim().parse().ok()?,
        };
        Some(self.source.position(location)).filter(|position| *position > 0)
    }

    /// Returns a specific error for PostgreSQL syntax that `sqlparser` does not know.
    fn unsupported_syntax(&self, position: usize) -> Option<ParseError> {
        let index = self.token_index(position)?;
        let word = |index: Option<usize>| match &self.parser.token_at(index?).token {
            Token::Word(word) if word.quote_style.is_none() => {
                Some(word.value.to_ascii_lowercase())
            }
            _ => None,
        };
        let found = word(Some(index)).unwrap_or_default();
        let previous = word(self.token_before(index)).unwrap_or_default();
        let construct = match (previous.as_str(), found.as_str()) {
            ("for", "system_time") => "this form of FOR SYSTEM_TIME",
            _ => return None,
        };
        Some(ParseError::unsupported(construct, position))
    }

    // ---- positions of tokens ----

    /// Returns the index of the token that starts at a position, or the first one after it.
    pub(super) fn token_index(&self, position: usize) -> Option<usize> {
        let (mut low, mut high) = (0, self.token_count);
        while low < high {
            let middle = low.midpoint(high);
            if self.source.position(self.parser.token_at(middle).span.start) < position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < self.token_count).then_some(low)
    }

    /// Returns the index of the last token before this one that is not white space.
    pub(super) fn token_before(&self, index: usize) -> Option<usize> {
        (0..index)
            .rev()
            .find(|index| !matches!(self.parser.token_at(*index).token, Token::Whitespace(_)))
    }

    /// Returns the index of the next token after this one that is not white space.
    pub(super) fn token_after(&self, index: usize) -> Option<usize> {
        (index + 1..self.token_count)
            .find(|index| !matches!(self.parser.token_at(*index).token, Token::Whitespace(_)))
    }

    /// Returns the position of a token.
    pub(super) fn start_of(&self, index: usize) -> usize {
        self.source.position(self.parser.token_at(index).span.start)
    }

    /// Returns the position of the last token before `position` that `wanted` accepts, among the
    /// preceding few tokens; `position` itself if there is none.
    pub(super) fn start_before(&self, position: usize, wanted: impl Fn(&Token) -> bool) -> usize {
        let mut index = self.token_index(position);
        for _ in 0..8 {
            index = index.and_then(|index| self.token_before(index));
            let Some(index) = index else { break };
            let token = self.parser.token_at(index);
            if wanted(&token.token) {
                return self.source.position(token.span.start);
            }
        }
        position
    }

    /// Returns the position of the last occurrence of a word before `position`.
    pub(super) fn word_before(&self, position: usize, word: &str) -> usize {
        self.start_before(position, |token| match token {
            Token::Word(found) => found.value.eq_ignore_ascii_case(word),
            _ => false,
        })
    }
}
