//! REFERENCES.

use sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::error::{ParseError, Result};
use crate::ast::{ForeignKey, Ident, ReferentialAction};

impl Cursor<'_> {
    /// Reads REFERENCES and what follows it, for these columns.
    pub(super) fn references(&mut self, columns: Vec<Ident>) -> Result<ForeignKey> {
        self.expect_words(&["references"])?;
        let table = self.table_name()?;
        let referenced = match self.peek() {
            Token::LParen => self.parenthesized(Self::name)?,
            _ => Vec::new(),
        };
        let mut key = ForeignKey {
            columns,
            table,
            referenced,
            match_full: false,
            on_delete: ReferentialAction::NoAction,
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
            match deleted {
                true => key.on_delete = action,
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
        if self.peek() == &Token::LParen {
            return Err(ParseError::unsupported(
                "an action on some of the columns",
                self.position(),
            )
            .with_hint("Leave out the list: the action is for all columns of the key."));
        }
        Ok(action)
    }
}
