//! Parsing of DROP and TRUNCATE.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{Drop, DropUnsupported, Ident, ObjectKind, Statement, TableName, Truncate};

impl TokenCursor<'_> {
    pub(super) fn drop(&mut self) -> Result<Statement> {
        let position = self.position();
        self.expect_words(&["drop"])?;
        if self.take_word("type") {
            return self.drop_type(false);
        }
        if let Some(word) = self.routine_word() {
            return self.drop_function(word);
        }
        if self.take_word("domain") {
            return self.drop_type(true);
        }
        if self.take_word("extension") {
            return self.drop_extension();
        }
        if let Some(drop) = self.drop_nothing()? {
            return Ok(drop);
        }
        let Some(kind) = self.take_kind() else {
            return match self.peek_word().to_uppercase() {
                word if word.is_empty() => Err(self.unexpected()),
                word => Err(ParseError::unsupported(format!("DROP {word}"), position)),
            };
        };
        let concurrently = kind == ObjectKind::Index && self.take_word("concurrently");
        let if_exists = self.take_words(&["if", "exists"]);
        let names = match kind {
            ObjectKind::Schema => {
                let names = self.list(Self::name)?;
                names.into_iter().map(|name| TableName { schema: None, name }).collect()
            }
            _ => self.list(Self::table_name)?,
        };
        let table = match kind == ObjectKind::Index && self.take_word("on") {
            true => Some(self.table_name()?),
            false => None,
        };
        let cascade = self.cascade();
        Ok(Statement::Drop(Drop { kind, if_exists, names, table, cascade, concurrently }))
    }

    /// Reads the rest of DROP for kinds of objects that are not supported.
    fn drop_nothing(&mut self) -> Result<Option<Statement>> {
        let of_table = ["trigger", "rule", "policy"];
        let others = ["publication", "server", "database"];
        let kind = self.peek_word();
        if !of_table.iter().chain(&others).any(|known| **known == kind) {
            return Ok(None);
        }
        self.advance();
        let if_exists = self.take_words(&["if", "exists"]);
        let (names, table) = match of_table.contains(&kind.as_str()) {
            true => {
                let name = self.name()?;
                self.expect_words(&["on"])?;
                (vec![name], Some(self.table_name()?))
            }
            false if kind == "database" => (vec![self.database_to_drop()?], None),
            false => (self.list(Self::name)?, None),
        };
        if kind != "database" {
            self.cascade();
        }
        Ok(Some(Statement::DropNothing(Box::new(DropUnsupported {
            kind,
            if_exists,
            names,
            table,
        }))))
    }

    /// Reads the name of a database with its options.
    fn database_to_drop(&mut self) -> Result<Ident> {
        let name = self.name()?;
        let with = self.take_word("with");
        if self.take(&Token::LParen) {
            self.list(|cursor| cursor.expect_words(&["force"]))?;
            self.expect(&Token::RParen)?;
        } else if with {
            return Err(self.unexpected());
        }
        Ok(name)
    }

    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.expect_words(&["truncate"])?;
        self.take_word("table");
        let names = self.list(|cursor| {
            cursor.take_word("only");
            let name = cursor.table_name()?;
            cursor.take(&Token::Mul);
            Ok(name)
        })?;
        let restart_identity = self.take_words(&["restart", "identity"]);
        if !restart_identity {
            self.take_words(&["continue", "identity"]);
        }
        let cascade = self.cascade();
        Ok(Statement::Truncate(Truncate { names, restart_identity, cascade }))
    }

    /// Reads the word for a kind of object.
    pub(super) fn take_kind(&mut self) -> Option<ObjectKind> {
        let kind = match self.peek_word().as_str() {
            "table" => ObjectKind::Table,
            "view" => ObjectKind::View,
            "sequence" => ObjectKind::Sequence,
            "index" => ObjectKind::Index,
            "schema" => ObjectKind::Schema,
            "materialized" if self.nth_word_is(1, "view") => {
                self.advance();
                ObjectKind::MaterializedView
            }
            _ => return None,
        };
        self.advance();
        Some(kind)
    }

    pub(super) fn cascade(&mut self) -> bool {
        let cascade = self.take_word("cascade");
        if !cascade {
            self.take_word("restrict");
        }
        cascade
    }
}
