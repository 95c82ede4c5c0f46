//! Parsing of REFERENCES.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use crate::ast::{ColumnName, ForeignKeyClause, ReferentialAction};

impl TokenCursor<'_> {
    /// Reads a REFERENCES clause for these columns.
    pub(super) fn references(&mut self, columns: Vec<ColumnName>) -> Result<ForeignKeyClause> {
        self.expect_words(&["references"])?;
        let table = self.table_name()?;
        let referenced = match self.peek() {
            Token::LParen => self.parenthesized(Self::column_name)?,
            _ => Vec::new(),
        };
        let mut key = ForeignKeyClause {
            columns,
            table,
            referenced,
            match_full: false,
            on_delete: ReferentialAction::NoAction,
            delete_columns: Vec::new(),
            on_update: ReferentialAction::NoAction,
        };
        if self.take_word("match") {
            key.match_full = self.is_word("full");
            match self.peek_word().as_str() {
                "full" | "simple" => self.advance(),
                "partial" => {
                    return Err(ParseError::unsupported("MATCH PARTIAL", self.position())
                        .with_hint("Use MATCH SIMPLE or MATCH FULL."));
                }
                _ => return Err(self.unexpected()),
            }
        }
        let (mut deletes, mut updates) = (false, false);
        while self.is_word("on") {
            self.advance();
            let deleted = self.is_word("delete");
            let given = if deleted { &mut deletes } else { &mut updates };
            if std::mem::replace(given, true) || !(deleted || self.is_word("update")) {
                return Err(self.unexpected());
            }
            self.advance();
            let action = self.referential_action()?;
            let columns = self.action_columns(action, deleted)?;
            match deleted {
                true => (key.on_delete, key.delete_columns) = (action, columns),
                false => key.on_update = action,
            }
        }
        Ok(key)
    }

    fn referential_action(&mut self) -> Result<ReferentialAction> {
        let action = if self.take_words(&["no", "action"]) {
            ReferentialAction::NoAction
        } else if self.take_word("restrict") {
            ReferentialAction::Restrict
        } else if self.take_word("cascade") {
            ReferentialAction::Cascade
        } else if self.take_words(&["set", "null"]) {
            ReferentialAction::SetNull
        } else if self.take_words(&["set", "default"]) {
            ReferentialAction::SetDefault
        } else {
            return Err(self.unexpected());
        };
        Ok(action)
    }

    /// Reads the column list of an `ON DELETE SET …` action, if there is one.
    fn action_columns(
        &mut self,
        action: ReferentialAction,
        deleted: bool,
    ) -> Result<Vec<ColumnName>> {
        let words = match action {
            ReferentialAction::SetNull => "SET NULL",
            ReferentialAction::SetDefault => "SET DEFAULT",
            _ => return Ok(Vec::new()),
        };
        if self.peek() != &Token::LParen {
            return Ok(Vec::new());
        }
        let position = self.position();
        let columns = self.parenthesized(Self::column_name)?;
        if !deleted {
            let message =
                format!("a column list with {words} is only supported for ON DELETE actions");
            return Err(ParseError::new(sqlstate::FEATURE_NOT_SUPPORTED, message, position));
        }
        Ok(columns)
    }
}
