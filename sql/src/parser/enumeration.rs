//! CREATE, ALTER and DROP TYPE.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::error::{ParseError, Result};
use crate::ast::{
    AlterType, AlterTypeAction, CreateEnum, DropType, LabelPlace, Statement, TypeStatement,
};

impl Cursor<'_> {
    /// Reads a statement from the word TYPE on.
    pub(super) fn create_type(&mut self) -> Result<Statement> {
        self.expect_words(&["type"])?;
        let name = self.table_name()?;
        let position = self.position();
        if !self.take_words(&["as", "enum"]) {
            let hint = "Enums and domains are there: CREATE TYPE … AS ENUM (…), CREATE DOMAIN.";
            return Err(ParseError::unsupported("this kind of type", position).with_hint(hint));
        }
        self.expect(&Token::LParen)?;
        let mut labels = Vec::new();
        if !self.take(&Token::RParen) {
            labels = self.list(Self::string)?;
            self.expect(&Token::RParen)?;
        }
        Ok(Statement::Type(Box::new(TypeStatement::Create(CreateEnum { name, labels }))))
    }

    /// Reads a statement behind the words ALTER TYPE.
    pub(super) fn alter_type(&mut self) -> Result<Statement> {
        let name = self.table_name()?;
        let position = self.position();
        let action = if self.take_words(&["add", "value"]) {
            let if_not_exists = self.take_words(&["if", "not", "exists"]);
            let label = self.string()?;
            let before = self.take_word("before");
            let place = match before || self.take_word("after") {
                true => Some(LabelPlace { before, label: self.string()? }),
                false => None,
            };
            AlterTypeAction::AddValue { if_not_exists, label, place }
        } else if self.take_words(&["rename", "value"]) {
            let from = self.string()?;
            self.expect_words(&["to"])?;
            AlterTypeAction::RenameValue { from, to: self.string()? }
        } else if self.take_words(&["rename", "to"]) {
            AlterTypeAction::Rename(self.name()?)
        } else if self.take_words(&["set", "schema"]) {
            AlterTypeAction::SetSchema(self.name()?)
        } else {
            let construct = format!("ALTER TYPE … {}", self.peek_word().to_uppercase());
            return Err(ParseError::unsupported(construct, position));
        };
        Ok(Statement::Type(Box::new(TypeStatement::Alter(AlterType { name, action }))))
    }

    /// Reads a statement behind the words DROP TYPE or DROP DOMAIN.
    pub(super) fn drop_type(&mut self, domain: bool) -> Result<Statement> {
        let if_exists = self.take_words(&["if", "exists"]);
        let names = self.list(Self::table_name)?;
        let cascade = self.cascade();
        let drop = DropType { names, if_exists, cascade, domain };
        Ok(Statement::Type(Box::new(TypeStatement::Drop(drop))))
    }
}
