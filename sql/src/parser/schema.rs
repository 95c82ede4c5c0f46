//! Parsing of CREATE and ALTER SCHEMA, RENAME TO, SET SCHEMA and OWNER TO.

use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use super::tokens::{is_blank, is_word, next};
use crate::ast::{CreateSchema, ObjectReference, Rename, RenameTarget, Statement};

impl TokenCursor<'_> {
    /// Reads a statement from the word SCHEMA.
    pub(super) fn create_schema(&mut self) -> Result<Statement> {
        self.expect_words(&["schema"])?;
        let if_not_exists = self.take_words(&["if", "not", "exists"]);
        let mut name = None;
        if !self.is_word("authorization") {
            name = Some(self.name()?);
        }
        let owner = if self.take_word("authorization") { Some(self.role()?) } else { None };
        if name.is_none() && owner.is_none() {
            return Err(self.unexpected());
        }
        let mut elements = Vec::new();
        while self.is_before_element() {
            self.advance();
            if if_not_exists {
                let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
                let position = self.position();
                return Err(ParseError::new(sqlstate::FEATURE_NOT_SUPPORTED, message, position));
            }
            elements.push(self.schema_element()?);
        }
        // The elements are created by kind, regardless of their order in the text.
        elements.sort_by_key(|element| match element {
            Statement::CreateSequence(_) => 0,
            Statement::CreateTable(_) => 1,
            Statement::CreateView(_) => 2,
            Statement::Grant(_) => 4,
            _ => 3,
        });
        Ok(Statement::CreateSchema(CreateSchema { if_not_exists, name, owner, elements }))
    }

    /// Returns whether the next token is the semicolon that [`part_elements`] has inserted before
    /// an element.
    fn is_before_element(&self) -> bool {
        let place = |n| self.parser.peek_nth_token_ref(n).span.start;
        self.peek() == &Token::SemiColon && place(0) == place(1)
    }

    /// Reads an element of CREATE SCHEMA.
    fn schema_element(&mut self) -> Result<Statement> {
        let words = [
            "table",
            "temp",
            "temporary",
            "view",
            "recursive",
            "or",
            "sequence",
            "index",
            "unique",
        ];
        if self.is_word("create") && !words.iter().any(|word| self.nth_word_is(1, word)) {
            self.advance();
            return Err(self.unexpected());
        }
        let position = self.position();
        match self.statement()? {
            element @ (Statement::CreateTable(_)
            | Statement::CreateView(_)
            | Statement::CreateSequence(_)
            | Statement::CreateIndex(_)
            | Statement::Grant(_)) => Ok(element),
            Statement::CreateTableAs(_) => {
                Err(ParseError::syntax("syntax error at or near \"as\"", position))
            }
            _ => Err(ParseError::unsupported("this element of CREATE SCHEMA", position)),
        }
    }

    /// Reads `RENAME TO name`, `SET SCHEMA name` or `OWNER TO role` of ALTER, if it follows.
    pub(super) fn rename(
        &mut self,
        object: &ObjectReference,
        if_exists: bool,
    ) -> Result<Option<Statement>> {
        let to = if self.take_words(&["rename", "to"]) {
            RenameTarget::Name(self.name()?)
        } else if self.take_words(&["set", "schema"]) {
            RenameTarget::Schema(self.name()?)
        } else if self.take_words(&["owner", "to"]) {
            RenameTarget::Owner(self.role()?)
        } else {
            return Ok(None);
        };
        Ok(Some(Statement::Rename(Box::new(Rename { object: object.clone(), if_exists, to }))))
    }
}

/// Inserts a semicolon before each element of CREATE SCHEMA, at the element's position, so that
/// statements end there. CREATE and GRANT cannot be unquoted names.
pub(super) fn part_elements(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = next(tokens, 0).filter(|_| tokens.first().is_some_and(is_blank)).unwrap_or(0);
    while at < tokens.len() {
        let is_schema = is_word(&tokens[at], "create")
            && next(tokens, at).is_some_and(|second| is_word(&tokens[second], "schema"));
        let mut depth = 0;
        let mut before = at;
        while let Some(here) = next(tokens, before) {
            match tokens[here].token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::SemiColon if depth == 0 => break,
                _ => {}
            }
            let starts = is_word(&tokens[here], "create") || is_word(&tokens[here], "grant");
            let is_label = is_word(&tokens[before], "as") || tokens[before].token == Token::Period;
            before = here;
            if is_schema && depth == 0 && starts && !is_label {
                let place = tokens[here].span.start;
                let span = Span { start: place, end: place };
                tokens.insert(here, TokenWithSpan { token: Token::SemiColon, span });
                before = here + 1;
            }
        }
        let Some(end) = next(tokens, before) else { return };
        let Some(first) = next(tokens, end) else { return };
        at = first;
    }
}
