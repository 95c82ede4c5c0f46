//! Parsing of COMMENT ON.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{CommentOn, CommentSubject, Ident, Statement};

impl TokenCursor<'_> {
    pub(super) fn comment_on(&mut self) -> Result<Statement> {
        self.expect_words(&["comment", "on"])?;
        let subject = self.comment_subject()?;
        self.expect_words(&["is"])?;
        let text = match self.take_word("null") {
            true => None,
            false => Some(self.string()?).filter(|text| !text.is_empty()),
        };
        Ok(Statement::Comment(Box::new(CommentOn { subject, text })))
    }

    fn comment_subject(&mut self) -> Result<CommentSubject> {
        let position = self.position();
        if let Some(kind) = self.object_kind() {
            return self.object(kind).map(CommentSubject::Object);
        }
        if self.take_word("column") {
            return self.column_of_table().map(CommentSubject::Column);
        }
        if self.take_word("constraint") {
            let name = self.name()?;
            self.expect_words(&["on"])?;
            if self.take_word("domain") {
                return Ok(CommentSubject::DomainConstraint(name, self.table_name()?));
            }
            return Ok(CommentSubject::Constraint(name, self.table_name()?));
        }
        if self.take_word("trigger") {
            let name = self.name()?;
            self.expect_words(&["on"])?;
            return Ok(CommentSubject::Trigger(name, self.table_name()?));
        }
        if self.take_word("policy") {
            let name = self.name()?;
            self.expect_words(&["on"])?;
            return Ok(CommentSubject::Policy(name, self.table_name()?));
        }
        if self.take_word("database") {
            return Ok(CommentSubject::Database(self.name()?));
        }
        match self.peek_word().to_uppercase() {
            word if word.is_empty() => Err(self.unexpected()),
            word => Err(ParseError::unsupported(format!("COMMENT ON {word}"), position)),
        }
    }

    /// Reads `t.c`, `t.f.c`, `s.t.c` or `s.t.f.c`.
    fn column_of_table(&mut self) -> Result<Vec<Ident>> {
        let mut parts = vec![self.name()?];
        while self.take(&Token::Period) {
            parts.push(self.label()?);
        }
        match parts.len() {
            1 => Err(ParseError::syntax("column name must be qualified", None)),
            2..=4 => Ok(parts),
            _ => Err(self.unexpected()),
        }
    }
}
