//! Parsing of OPEN, FETCH, MOVE and CLOSE.

use super::body_tree::{
    CountedDirection, OpenQuery, OpenStatement, ScrollDirection, SqlFragment, StatementAction,
    VariableType,
};
use super::parser::{BodyParser, Result};
use super::token::TokenKind;
use crate::ast::FetchDirection;
use crate::parser::ParseError;

impl BodyParser<'_> {
    /// Reads a cursor variable.
    fn cursor(&mut self) -> Result<usize> {
        let position = self.position();
        let Some((target, length)) = self.peek_target() else {
            return Err(self.not_a_variable_error());
        };
        self.at += length;
        let of = &self.variables[target.variable].of;
        let is_text = |of: &VariableType| match of {
            VariableType::Named(name, _) => name.sql_type.base == types::DataType::Text,
            VariableType::Parameter(_) | VariableType::Cursor => true,
            _ => false,
        };
        if is_text(of) && target.path.is_empty() {
            return Ok(target.variable);
        }
        let name = &self.variables[target.variable].name;
        let message = format!("variable \"{name}\" must be of type cursor or refcursor");
        Err(ParseError::new("42804", message, position))
    }

    pub(super) fn open(&mut self) -> Result<StatementAction> {
        self.at += 1;
        let cursor = self.cursor()?;
        if self.variables[cursor].cursor.is_some() {
            let query = OpenQuery::Bound(self.cursor_arguments(cursor, &[";"])?);
            self.expect_symbol(";")?;
            return Ok(StatementAction::Open(OpenStatement { cursor, query, scroll: None }));
        }
        let scroll = self.scroll();
        self.expect_word("for")?;
        let query = OpenQuery::Query(self.query(&[";"])?);
        self.expect_symbol(";")?;
        Ok(StatementAction::Open(OpenStatement { cursor, query, scroll }))
    }

    /// Reads the arguments for opening a bound cursor.
    pub(super) fn cursor_arguments(
        &mut self,
        cursor: usize,
        _ends: &[&str],
    ) -> Result<Vec<(usize, SqlFragment)>> {
        let bound = self.variables[cursor].cursor.as_ref();
        let declared = bound.map_or(Vec::new(), |bound| bound.arguments.clone());
        let name = self.variables[cursor].name.clone();
        if !self.is_symbol("(") {
            if declared.is_empty() {
                return Ok(Vec::new());
            }
            return Err(self.error(format!("cursor \"{name}\" has arguments")));
        }
        if declared.is_empty() {
            return Err(self.error(format!("cursor \"{name}\" has no arguments")));
        }
        self.at += 1;
        let mut given: Vec<(usize, SqlFragment)> = Vec::new();
        loop {
            let mut at = given.len();
            let position = self.position();
            if self.is_symbol_at(1, ":=") || self.is_symbol_at(1, "=>") {
                let argument = self.any_name()?;
                self.at += 1;
                let named = |number: &usize| self.variables[*number].name == argument;
                at = declared.iter().position(named).ok_or_else(|| {
                    let message = format!("cursor \"{name}\" has no argument named \"{argument}\"");
                    ParseError::syntax(message, position)
                })?;
            }
            let Some(variable) = declared.get(at) else {
                return Err(self.error(format!("too many arguments for cursor \"{name}\"")));
            };
            if given.iter().any(|(known, _)| *known == at) {
                let argument = &self.variables[*variable].name;
                let message = format!(
                    "value for parameter \"{argument}\" of cursor \"{name}\" specified more than once"
                );
                return Err(ParseError::syntax(message, position));
            }
            given.push((at, self.expression(&[",", ")"])?));
            if !self.take_symbol(",") {
                break;
            }
        }
        if given.len() < declared.len() {
            return Err(self.error(format!("not enough arguments for cursor \"{name}\"")));
        }
        self.expect_symbol(")")?;
        Ok(given)
    }

    pub(super) fn fetch(&mut self, moves: bool) -> Result<StatementAction> {
        self.at += 1;
        let direction = self.direction()?;
        let _ = self.take_word("from") || self.take_word("in");
        let cursor = self.cursor()?;
        let into = match moves {
            true => None,
            false => {
                self.expect_word("into")?;
                Some(self.into()?)
            }
        };
        self.expect_symbol(";")?;
        let many = match &direction {
            ScrollDirection::Fixed(direction) => {
                matches!(direction, FetchDirection::ForwardAll | FetchDirection::BackwardAll)
            }
            ScrollDirection::Counted(of, _) => {
                matches!(of, CountedDirection::Forward | CountedDirection::Backward)
            }
        };
        if many && !moves {
            let message = "FETCH statement cannot return multiple rows";
            return Err(ParseError::new("0A000", message, self.position()));
        }
        Ok(StatementAction::Fetch { cursor, direction, into })
    }

    fn direction(&mut self) -> Result<ScrollDirection> {
        let fixed = |direction| Ok(ScrollDirection::Fixed(direction));
        let TokenKind::Word(word) = self.token().kind.clone() else {
            return match self.token().kind {
                TokenKind::Number => self.counted(CountedDirection::Forward),
                _ => fixed(FetchDirection::Forward(1)),
            };
        };
        let counted = match word.as_str() {
            "next" => (None, FetchDirection::Forward(1)),
            "prior" => (None, FetchDirection::Forward(-1)),
            "first" => (None, FetchDirection::Absolute(1)),
            "last" => (None, FetchDirection::Absolute(-1)),
            "all" => (None, FetchDirection::ForwardAll),
            "forward" => (Some(CountedDirection::Forward), FetchDirection::Forward(1)),
            "backward" => (Some(CountedDirection::Backward), FetchDirection::Forward(-1)),
            "absolute" => (Some(CountedDirection::Absolute), FetchDirection::Absolute(0)),
            "relative" => (Some(CountedDirection::Relative), FetchDirection::Relative(0)),
            _ => return fixed(FetchDirection::Forward(1)),
        };
        // The cursor variable may have that name.
        if self.peek_target().is_some() && (self.is_word_at(1, "into") || self.is_symbol_at(1, ";"))
        {
            return fixed(FetchDirection::Forward(1));
        }
        self.at += 1;
        match counted {
            (None, direction) => fixed(direction),
            (Some(CountedDirection::Forward), _) if self.take_word("all") => {
                fixed(FetchDirection::ForwardAll)
            }
            (Some(CountedDirection::Backward), _) if self.take_word("all") => {
                fixed(FetchDirection::BackwardAll)
            }
            (Some(CountedDirection::Forward | CountedDirection::Backward), one)
                if self.is_word("from") || self.is_word("in") || self.peek_target().is_some() =>
            {
                fixed(one)
            }
            (Some(of), _) => self.counted(of),
        }
    }

    fn counted(&mut self, of: CountedDirection) -> Result<ScrollDirection> {
        Ok(ScrollDirection::Counted(of, self.expression(&["from", "in"])?))
    }

    pub(super) fn close(&mut self) -> Result<StatementAction> {
        self.at += 1;
        let cursor = self.cursor()?;
        self.expect_symbol(";")?;
        Ok(StatementAction::Close(cursor))
    }
}
