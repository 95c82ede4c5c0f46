//! Parsing of LOCK TABLE, REINDEX and CHECK.

use sqlparser::tokenizer::Token;
use store::transaction::TableLockMode;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{
    Check, CheckStore, CheckTarget, Ident, LockTables, OptionValue, Reindex, ReindexTarget,
    Statement,
};

/// Modes of LOCK TABLE, longer ones before their prefixes.
const MODES: &[(&[&str], TableLockMode)] = &[
    (&["access", "share"], TableLockMode::AccessShare),
    (&["access", "exclusive"], TableLockMode::AccessExclusive),
    (&["row", "share"], TableLockMode::RowShare),
    (&["row", "exclusive"], TableLockMode::RowExclusive),
    (&["share", "update", "exclusive"], TableLockMode::ShareUpdateExclusive),
    (&["share", "row", "exclusive"], TableLockMode::ShareRowExclusive),
    (&["share"], TableLockMode::Share),
    (&["exclusive"], TableLockMode::Exclusive),
];

impl TokenCursor<'_> {
    pub(super) fn lock(&mut self) -> Result<Statement> {
        self.expect_words(&["lock"])?;
        self.take_word("table");
        let names = self.list(|cursor| {
            cursor.take_word("only");
            let name = cursor.table_name()?;
            cursor.take(&Token::Mul);
            Ok(name)
        })?;
        let mut mode = TableLockMode::AccessExclusive;
        if self.take_word("in") {
            let written = MODES.iter().find(|(words, _)| self.take_words(words));
            mode = written.ok_or_else(|| self.unexpected())?.1;
            self.expect_words(&["mode"])?;
        }
        let nowait = self.take_word("nowait");
        Ok(Statement::LockTables(LockTables { names, mode, nowait }))
    }

    pub(super) fn reindex(&mut self) -> Result<Statement> {
        self.expect_words(&["reindex"])?;
        let (mut concurrently, mut verbose) = (false, false);
        if self.peek() == &Token::LParen {
            for (name, on) in self.parenthesized(Self::reindex_option)? {
                match name.value.as_str() {
                    "concurrently" => concurrently = on,
                    "verbose" => verbose = on,
                    "tablespace" => {
                        return Err(ParseError::unsupported("TABLESPACE", name.position));
                    }
                    other => {
                        let message = format!("unrecognized REINDEX option \"{other}\"");
                        return Err(ParseError::syntax(message, name.position));
                    }
                }
            }
        }
        let kind = self.peek_word();
        if !["index", "table", "schema", "database", "system"].contains(&kind.as_str()) {
            return Err(self.unexpected());
        }
        self.advance();
        concurrently |= self.take_word("concurrently");
        let target = match kind.as_str() {
            "index" => ReindexTarget::Index(self.table_name()?),
            "table" => ReindexTarget::Table(self.table_name()?),
            "schema" => ReindexTarget::Schema(self.name()?),
            "database" => ReindexTarget::Database(self.name()?),
            _ => ReindexTarget::System(self.name()?),
        };
        Ok(Statement::Reindex(Reindex { target, concurrently, verbose }))
    }

    /// Reads `CHECK { INDEX i [ON t] | TABLE t } [REPAIR] [LIMIT n]`.
    pub(super) fn check(&mut self) -> Result<Statement> {
        self.expect_words(&["check"])?;
        if self.take_word("store") {
            return self.check_store();
        }
        let target = if self.take_word("index") {
            let index = self.table_name()?;
            let table = if self.take_word("on") { Some(self.table_name()?) } else { None };
            CheckTarget::Index(index, table)
        } else {
            self.expect_words(&["table"])?;
            CheckTarget::Table(self.table_name()?)
        };
        let repair = self.take_word("repair");
        let limit = self.check_limit()?;
        Ok(Statement::Check(Check { target, repair, limit }))
    }

    /// Reads `[t] [LIMIT n]`.
    fn check_store(&mut self) -> Result<Statement> {
        let ends = self.at_end() || self.is_word("limit") || self.is_word("repair");
        let table = if ends { None } else { Some(self.table_name()?) };
        if self.is_word("repair") {
            return Err(ParseError::unsupported("CHECK STORE … REPAIR", self.position())
                .with_hint(
                    "Restore the file, or copy what is readable with \"bennu job salvage\".",
                ));
        }
        let limit = self.check_limit()?;
        Ok(Statement::CheckStore(CheckStore { table, limit }))
    }

    /// Reads `[LIMIT n]`.
    fn check_limit(&mut self) -> Result<Option<usize>> {
        if !self.take_word("limit") {
            return Ok(None);
        }
        let position = self.position();
        match self.option_value()? {
            OptionValue::Number(text) => {
                text.parse().map(Some).map_err(|_| self.syntax_error_near(position))
            }
            _ => Err(self.syntax_error_near(position)),
        }
    }

    fn reindex_option(&mut self) -> Result<(Ident, bool)> {
        let name = self.label()?;
        if matches!(self.peek(), Token::Comma | Token::RParen) || name.value == "tablespace" {
            if name.value == "tablespace" {
                self.advance();
            }
            return Ok((name, true));
        }
        let position = self.position();
        let value = match self.option_value()? {
            OptionValue::Boolean(on) => Some(on),
            OptionValue::Number(text) if text == "0" || text == "1" => Some(text == "1"),
            OptionValue::Word(text) | OptionValue::String(text) => {
                match text.to_ascii_lowercase().as_str() {
                    "true" | "on" => Some(true),
                    "false" | "off" => Some(false),
                    _ => None,
                }
            }
            OptionValue::Number(_) => None,
        };
        let on = value.ok_or_else(|| {
            let message = format!("{} requires a Boolean value", name.value);
            ParseError::syntax(message, position)
        })?;
        Ok((name, on))
    }
}
