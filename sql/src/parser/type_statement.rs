//! Parsing of CREATE, ALTER and DROP TYPE.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{
    AlterType, AlterTypeAction, AttributeChange, CreateComposite, CreateEnum, LabelPosition,
    Statement, TableName, TypeStatement,
};

impl TokenCursor<'_> {
    /// Reads a statement from the word TYPE.
    pub(super) fn create_type(&mut self) -> Result<Statement> {
        self.expect_words(&["type"])?;
        let name = self.table_name()?;
        let position = self.position();
        if self.is_word("as") && self.parser.peek_nth_token_ref(1).token == Token::LParen {
            self.advance();
            return self.create_composite(name);
        }
        if !self.take_words(&["as", "enum"]) {
            let what = match self.is_word("as") {
                true => "this kind of type",
                false => "a base type",
            };
            let hint = "Create an enum (CREATE TYPE … AS ENUM (…)), a composite type (CREATE TYPE … \
                        AS (…)) or a domain (CREATE DOMAIN).";
            return Err(ParseError::unsupported(what, position).with_hint(hint));
        }
        self.expect(&Token::LParen)?;
        let mut labels = Vec::new();
        if !self.take(&Token::RParen) {
            labels = self.list(Self::string)?;
            self.expect(&Token::RParen)?;
        }
        Ok(Statement::Type(Box::new(TypeStatement::Create(CreateEnum { name, labels }))))
    }

    fn create_composite(&mut self, name: TableName) -> Result<Statement> {
        self.expect(&Token::LParen)?;
        let mut attributes = Vec::new();
        if !self.take(&Token::RParen) {
            attributes = self.list(|cursor| Ok((cursor.name()?, cursor.collated_type()?)))?;
            self.expect(&Token::RParen)?;
        }
        let create = CreateComposite { name, attributes };
        Ok(Statement::Type(Box::new(TypeStatement::CreateComposite(create))))
    }

    /// Reads a change of an attribute in ALTER TYPE; `None` if there is none.
    fn attribute_change(&mut self) -> Result<Option<AttributeChange>> {
        let change = if self.take_words(&["add", "attribute"]) {
            AttributeChange::Add { name: self.name()?, type_name: self.collated_type()? }
        } else if self.take_words(&["drop", "attribute"]) {
            let if_exists = self.take_words(&["if", "exists"]);
            AttributeChange::Drop { name: self.name()?, if_exists }
        } else if self.take_words(&["rename", "attribute"]) {
            let name = self.name()?;
            self.expect_words(&["to"])?;
            AttributeChange::Rename { name, to: self.name()? }
        } else if self.take_words(&["alter", "attribute"]) {
            let name = self.name()?;
            self.take_words(&["set", "data"]);
            self.expect_words(&["type"])?;
            AttributeChange::Type { name, type_name: self.collated_type()? }
        } else {
            return Ok(None);
        };
        // CASCADE has no effect, because there are no typed tables.
        self.cascade();
        Ok(Some(change))
    }

    /// Reads the rest of ALTER TYPE.
    pub(super) fn alter_type(&mut self, name: TableName) -> Result<Statement> {
        let position = self.position();
        let action = if let Some(first) = self.attribute_change()? {
            let mut changes = vec![first];
            while self.take(&Token::Comma) {
                changes.push(self.attribute_change()?.ok_or_else(|| self.unexpected())?);
            }
            AlterTypeAction::Attributes(changes)
        } else if self.take_words(&["add", "value"]) {
            let if_not_exists = self.take_words(&["if", "not", "exists"]);
            let label = self.string()?;
            let before = self.take_word("before");
            let place = match before || self.take_word("after") {
                true => Some(LabelPosition { before, label: self.string()? }),
                false => None,
            };
            AlterTypeAction::AddValue { if_not_exists, label, place }
        } else if self.take_words(&["rename", "value"]) {
            let from = self.string()?;
            self.expect_words(&["to"])?;
            AlterTypeAction::RenameValue { from, to: self.string()? }
        } else {
            let construct = format!("ALTER TYPE … {}", self.peek_word().to_uppercase());
            return Err(ParseError::unsupported(construct, position));
        };
        Ok(Statement::Type(Box::new(TypeStatement::Alter(AlterType { name, action }))))
    }
}
