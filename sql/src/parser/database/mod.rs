//! Parsing of CREATE, ALTER and DROP DATABASE.

use sqlparser::tokenizer::Token;

use crate::ast::{AlterDatabaseAction, DatabaseOption, DatabaseStatement, Ident, Statement};
use crate::parser::cursor::TokenCursor;
use crate::parser::error::Result;

impl TokenCursor<'_> {
    /// Reads the rest of CREATE from the word DATABASE.
    pub(in crate::parser) fn create_database(&mut self) -> Result<Statement> {
        self.expect_words(&["database"])?;
        let name = self.name()?;
        self.take_word("with");
        let options = self.database_options()?;
        Ok(statement(DatabaseStatement::Create { name, options }))
    }

    /// Reads the rest of ALTER behind the word DATABASE.
    pub(in crate::parser) fn alter_database(&mut self) -> Result<Statement> {
        let name = self.name()?;
        let action = if self.take_words(&["rename", "to"]) {
            AlterDatabaseAction::Rename(self.name()?)
        } else if self.take_words(&["owner", "to"]) {
            AlterDatabaseAction::Owner(self.role()?)
        } else if self.take_words(&["refresh", "collation", "version"]) {
            AlterDatabaseAction::RefreshCollation
        } else if self.is_words(&["set", "tablespace"]) {
            self.advance();
            AlterDatabaseAction::Options(vec![self.database_option()?])
        } else if self.is_word("set") || self.is_word("reset") {
            AlterDatabaseAction::Setting(self.setting_clause()?)
        } else {
            let with = self.take_word("with");
            if self.at_end() && !with {
                return Err(self.unexpected());
            }
            AlterDatabaseAction::Options(self.database_options()?)
        };
        Ok(statement(DatabaseStatement::Alter { name, action }))
    }

    /// Reads the rest of DROP behind the word DATABASE.
    pub(in crate::parser) fn drop_database(&mut self) -> Result<Statement> {
        let if_exists = self.take_words(&["if", "exists"]);
        let name = self.name()?;
        let with = self.take_word("with");
        let force = self.take(&Token::LParen);
        if force {
            self.list(|cursor| cursor.expect_words(&["force"]))?;
            self.expect(&Token::RParen)?;
        } else if with {
            return Err(self.unexpected());
        }
        Ok(statement(DatabaseStatement::Drop { name, if_exists, force }))
    }

    fn database_options(&mut self) -> Result<Vec<DatabaseOption>> {
        let mut options = Vec::new();
        while !self.at_end() {
            options.push(self.database_option()?);
        }
        Ok(options)
    }

    fn database_option(&mut self) -> Result<DatabaseOption> {
        let position = self.position();
        let name = match self.take_words(&["connection", "limit"]) {
            true => Ident { value: "connection_limit".to_owned(), position },
            false => self.option_name()?,
        };
        self.take(&Token::Eq);
        let value_position = self.position();
        let value = match self.take_word("default") {
            true => None,
            false => Some(self.option_value()?),
        };
        Ok(DatabaseOption { name, value, value_position })
    }
}

fn statement(statement: DatabaseStatement) -> Statement {
    Statement::Database(Box::new(statement))
}
