//! CREATE VIEW.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::error::{ParseError, Result};
use crate::ast::{CreateView, SourceQuery, Statement};

impl Cursor<'_> {
    /// Reads a statement from the word VIEW on.
    pub(super) fn create_view(&mut self, or_replace: bool) -> Result<Statement> {
        self.expect_words(&["view"])?;
        let name = self.table_name()?;
        let columns = match self.peek() {
            Token::LParen => self.parenthesized(Self::name)?,
            _ => Vec::new(),
        };
        if self.is_word("with") {
            return Err(ParseError::unsupported("an option of a view", self.position()));
        }
        self.expect_words(&["as"])?;
        let query = self.source_query()?;
        if self.is_word("with") {
            return Err(ParseError::unsupported("WITH CHECK OPTION", self.position())
                .with_hint("Leave it out: views are for reading."));
        }
        Ok(Statement::CreateView(Box::new(CreateView { or_replace, name, columns, query })))
    }

    /// Reads a query and keeps its text.
    pub(super) fn source_query(&mut self) -> Result<SourceQuery> {
        let (position, start) = (self.position(), self.byte());
        match self.peek_word().as_str() {
            "select" | "values" | "with" => {}
            "" if self.peek() == &Token::LParen => {}
            _ => return Err(self.unexpected()),
        }
        let query = self.query()?;
        Ok(SourceQuery { query, text: self.text_since(start), position })
    }
}
