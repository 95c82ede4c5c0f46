//! Parsing of CREATE, ALTER and DROP TRIGGER.

use sqlparser::tokenizer::Token;

use crate::ast::{
    CreateTrigger, Deferral, DropTrigger, Ident, RenameTrigger, Statement, TransitionTable,
    TriggerEvent, TriggerStatement, TriggerTiming,
};
use crate::parser::cursor::TokenCursor;
use crate::parser::error::{ParseError, Result};

impl TokenCursor<'_> {
    /// Reads CREATE TRIGGER from `CONSTRAINT` or `TRIGGER`.
    pub(super) fn create_trigger(&mut self, or_replace: bool) -> Result<Statement> {
        let position = self.position();
        let is_constraint = self.take_word("constraint");
        self.expect_words(&["trigger"])?;
        if is_constraint && or_replace {
            let what = "CREATE OR REPLACE CONSTRAINT TRIGGER";
            return Err(ParseError::unsupported(what, position));
        }
        let name = self.name()?;
        let timing = self.trigger_timing(is_constraint)?;
        let (events, columns) = self.trigger_events()?;
        self.expect_words(&["on"])?;
        let table = self.table_name()?;
        let referenced = match is_constraint && self.take_word("from") {
            true => Some(self.table_name()?),
            false => None,
        };
        let deferral = match is_constraint {
            true => self.column_attributes(true)?,
            false => Deferral::Never,
        };
        let transitions = match !is_constraint && self.take_word("referencing") {
            true => self.transition_tables()?,
            false => Vec::new(),
        };
        let is_row = self.trigger_level(is_constraint)?;
        let condition = match self.take_word("when") {
            true => Some(self.parenthesized_source()?),
            false => None,
        };
        self.expect_words(&["execute"])?;
        if !self.take_word("function") {
            self.expect_words(&["procedure"])?;
        }
        let function = self.routine_name()?;
        let arguments = self.trigger_arguments()?;
        let create = CreateTrigger {
            or_replace,
            is_constraint,
            name,
            timing,
            events,
            columns,
            table,
            referenced,
            deferral,
            transitions,
            is_row,
            condition,
            function,
            arguments,
        };
        Ok(Statement::Trigger(Box::new(TriggerStatement::Create(Box::new(create)))))
    }

    fn parenthesized_source(&mut self) -> Result<crate::ast::SourceExpr> {
        self.expect(&Token::LParen)?;
        let condition = self.source_expr()?;
        self.expect(&Token::RParen)?;
        Ok(condition)
    }

    fn trigger_timing(&mut self, is_constraint: bool) -> Result<TriggerTiming> {
        if is_constraint {
            self.expect_words(&["after"])?;
            return Ok(TriggerTiming::After);
        }
        Ok(if self.take_word("before") {
            TriggerTiming::Before
        } else if self.take_word("after") {
            TriggerTiming::After
        } else {
            self.expect_words(&["instead", "of"])?;
            TriggerTiming::InsteadOf
        })
    }

    /// Reads the events, and the columns of UPDATE OF.
    fn trigger_events(&mut self) -> Result<(Vec<TriggerEvent>, Vec<Ident>)> {
        let (mut events, mut columns) = (Vec::new(), Vec::new());
        loop {
            let (position, word) = (self.position(), self.peek_word().to_uppercase());
            let event = if self.take_word("insert") {
                TriggerEvent::Insert
            } else if self.take_word("delete") {
                TriggerEvent::Delete
            } else if self.take_word("truncate") {
                TriggerEvent::Truncate
            } else {
                self.expect_words(&["update"])?;
                TriggerEvent::Update
            };
            if events.contains(&event) {
                let message = format!("duplicate trigger events specified at or near \"{word}\"");
                return Err(ParseError::syntax(message, position));
            }
            events.push(event);
            if event == TriggerEvent::Update && self.take_word("of") {
                columns = self.list(Self::name)?;
            }
            if !self.take_word("or") {
                return Ok((events, columns));
            }
        }
    }

    fn transition_tables(&mut self) -> Result<Vec<TransitionTable>> {
        let mut tables = Vec::new();
        loop {
            let is_new = self.is_word("new");
            if !is_new && !self.is_word("old") {
                break;
            }
            self.advance();
            if self.take_word("row") {
                return Err(ParseError::unsupported(
                    "ROW variable naming in the REFERENCING clause",
                    None,
                )
                .with_hint("Use OLD TABLE or NEW TABLE for naming transition tables."));
            }
            self.expect_words(&["table"])?;
            self.take_word("as");
            tables.push(TransitionTable { is_new, name: self.name()? });
        }
        if tables.is_empty() { Err(self.unexpected()) } else { Ok(tables) }
    }

    /// Reads `FOR [EACH] {ROW | STATEMENT}`; returns whether it is ROW.
    fn trigger_level(&mut self, is_constraint: bool) -> Result<bool> {
        if is_constraint {
            self.expect_words(&["for"])?;
            self.take_word("each");
            self.expect_words(&["row"])?;
            return Ok(true);
        }
        if !self.take_word("for") {
            return Ok(false);
        }
        self.take_word("each");
        let is_row = self.take_word("row");
        if !is_row {
            self.expect_words(&["statement"])?;
        }
        Ok(is_row)
    }

    /// Reads the arguments: strings, numbers and words.
    fn trigger_arguments(&mut self) -> Result<Vec<String>> {
        self.expect(&Token::LParen)?;
        let mut arguments = Vec::new();
        while self.peek() != &Token::RParen {
            if !arguments.is_empty() {
                self.expect(&Token::Comma)?;
            }
            arguments.push(match self.peek().clone() {
                Token::Number(number, _) => {
                    self.advance();
                    number
                }
                Token::Word(_) => self.identifier(|_| true)?.value,
                _ => self.string()?,
            });
        }
        self.expect(&Token::RParen)?;
        Ok(arguments)
    }

    /// Reads DROP TRIGGER after its words.
    pub(super) fn drop_trigger(&mut self) -> Result<Statement> {
        let if_exists = self.take_words(&["if", "exists"]);
        let name = self.name()?;
        self.expect_words(&["on"])?;
        let table = self.table_name()?;
        let cascade = self.cascade();
        let drop = DropTrigger { if_exists, name, table, cascade };
        Ok(Statement::Trigger(Box::new(TriggerStatement::Drop(drop))))
    }

    /// Reads ALTER TRIGGER after its words.
    pub(super) fn alter_trigger(&mut self) -> Result<Statement> {
        let name = self.name()?;
        self.expect_words(&["on"])?;
        let table = self.table_name()?;
        if self.is_word("depends") || self.is_word("no") {
            return Err(ParseError::unsupported(
                "ALTER TRIGGER … DEPENDS ON EXTENSION",
                self.position(),
            )
            .with_hint("Omit it. The functions of an extension are part of the server."));
        }
        self.expect_words(&["rename", "to"])?;
        let rename = RenameTrigger { name, table, to: self.name()? };
        Ok(Statement::Trigger(Box::new(TriggerStatement::Rename(rename))))
    }
}
