//! LOCK TABLE and REINDEX.

use sqlparser::tokenizer::Token;
use store::transaction::TableLockMode;
use types::key_words;

use super::cursor::Cursor;
use super::error::{ParseError, Result};
use crate::ast::{LockTables, Reindex, ReindexTarget, Statement};

/// Modes of LOCK TABLE, those that begin like others first.
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

impl Cursor<'_> {
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
        let mut concurrently = false;
        if self.peek() == &Token::LParen {
            for (name, on) in self.parenthesized(Self::reindex_option)? {
                if name != "concurrently" {
                    let construct = format!("REINDEX option {}", name.to_uppercase());
                    return Err(ParseError::unsupported(construct, self.position()));
                }
                concurrently = on;
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
        Ok(Statement::Reindex(Reindex { target, concurrently }))
    }

    fn reindex_option(&mut self) -> Result<(String, bool)> {
        let name = self.identifier(key_words::is_not_reserved)?.value;
        let off = ["false", "off"].iter().any(|word| self.take_word(word));
        if !off {
            let _ = ["true", "on"].iter().any(|word| self.take_word(word));
        }
        Ok((name, !off))
    }
}
