//! Parsing of `FAMILY f (column …, …) [WITH (option = value, …)]` in CREATE TABLE.

use sqlparser::tokenizer::Token;
use types::DataType;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{CreateTable, Ident};

impl TokenCursor<'_> {
    /// Returns whether `FAMILY f (` is next with columns, and not a column of that name.
    pub(super) fn begins_family_clause(&self) -> bool {
        let token = |at: usize| &self.parser.peek_nth_token_ref(at).token;
        let is_type = match token(1) {
            Token::Word(word) => {
                let is_type = DataType::from_name(&word.value.to_ascii_lowercase()).is_some();
                word.quote_style.is_none() && is_type
            }
            _ => return false,
        };
        // The modifier of a type is a list of numbers or words: `family geometry(Point, 4326)`.
        let lists_columns =
            matches!(token(3), Token::Word(_)) && !matches!(token(4), Token::Comma | Token::RParen);
        self.is_word("family") && token(2) == &Token::LParen && (!is_type || lists_columns)
    }

    /// Reads the clause, with a family that is none of `families`; returns the family.
    pub(super) fn family_clause(
        &mut self,
        table: &mut CreateTable,
        families: &[Ident],
    ) -> Result<Ident> {
        self.expect_words(&["family"])?;
        let family = self.label()?;
        if families.iter().any(|other| other.value == family.value) {
            let message = format!("column family \"{}\" specified more than once", family.value);
            return Err(ParseError::new("42710", message, family.position));
        }
        self.expect(&Token::LParen)?;
        if self.peek() == &Token::RParen {
            let message = format!("column family \"{}\" has no columns", family.value);
            return Err(ParseError::new("42P16", message, family.position)
                .with_hint("Use ALTER TABLE t ADD FAMILY f () for a family without columns."));
        }
        loop {
            let position = self.position();
            let refused = match () {
                () if self.begins_constraint() => Some("a table constraint in a FAMILY clause"),
                () if self.is_word("like") => Some("LIKE in a FAMILY clause"),
                () if self.begins_family_clause() => Some("a FAMILY clause in another"),
                () => None,
            };
            if let Some(what) = refused {
                return Err(ParseError::unsupported(what, position)
                    .with_hint("Write it after the clause, separated by a comma."));
            }
            self.table_element(table, Some(&family))?;
            if !self.take(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::RParen)?;
        if self.take_word("with") {
            for mut option in self.parenthesized(Self::option)? {
                if let Some(other) = option.family.replace(family.clone()) {
                    return Err(self.syntax_error_near(other.position));
                }
                table.options.push(option);
            }
        }
        Ok(family)
    }
}
