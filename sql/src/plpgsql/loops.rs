//! Parsing of loops, EXIT, CONTINUE and RETURN.

use super::body_tree::{BodyQuery, IntoClause, Loop, LoopIteration, StatementAction, VariableType};
use super::parser::{BodyParser, Result, ReturnKind};
use super::token::TokenKind;
use crate::parser::ParseError;

impl BodyParser<'_> {
    pub(super) fn loop_statement(&mut self, label: Option<String>) -> Result<StatementAction> {
        let outer = self.enter(label.as_ref(), true)?;
        let over = match self.any_name()?.as_str() {
            "while" => LoopIteration::While(self.expression(&["loop"])?),
            "for" => self.for_clause()?,
            "foreach" => self.foreach_clause()?,
            _ => {
                self.at -= 1;
                LoopIteration::Forever
            }
        };
        self.expect_word("loop")?;
        let body = self.statements(&["end"])?;
        self.expect_word("end")?;
        self.expect_word("loop")?;
        self.leave(outer)?;
        self.expect_symbol(";")?;
        Ok(StatementAction::Loop(Loop { label, over, body }))
    }

    /// Reads the clause between FOR and LOOP.
    fn for_clause(&mut self) -> Result<LoopIteration> {
        let (first, line) = (self.at, self.line());
        let known = self.peek_target();
        let targets = match known {
            Some(_) => Some(self.into()?),
            None => {
                self.any_name()?;
                None
            }
        };
        if !self.is_word("in") {
            self.at = first;
            return Err(self.unexpected());
        }
        self.at += 1;
        if self.is_word("execute") {
            let query = self.query(&["loop"])?;
            return Ok(LoopIteration::Rows(self.row_targets(targets, first)?, query));
        }
        if let Some((target, 1)) = self.peek_target()
            && matches!(self.variables[target.variable].of, VariableType::Cursor)
            && (self.is_symbol_at(1, "(") || self.is_word_at(1, "loop"))
        {
            return self.cursor_clause((targets, first), target.variable, line);
        }
        let reverse = self.take_word("reverse");
        if reverse || self.has_range() {
            return self.range((targets, first), reverse, line);
        }
        let query = BodyQuery::Fixed(self.sql(&["loop"])?);
        Ok(LoopIteration::Rows(self.row_targets(targets, first)?, query))
    }

    /// Returns whether `..` comes before LOOP, so that the loop is over integers.
    fn has_range(&self) -> bool {
        let mut depth = 0_i32;
        for ahead in 0.. {
            match () {
                () if self.nth(ahead).kind == TokenKind::End => return false,
                () if depth == 0 && self.is_word_at(ahead, "loop") => return false,
                () if self.is_symbol_at(ahead, ";") => return false,
                () if self.is_symbol_at(ahead, "..") && depth == 0 => return true,
                () if self.is_symbol_at(ahead, "(") => depth += 1,
                () if self.is_symbol_at(ahead, ")") => depth -= 1,
                () => {}
            }
        }
        false
    }

    fn range(
        &mut self,
        (targets, first): (Option<IntoClause>, usize),
        reverse: bool,
        line: u32,
    ) -> Result<LoopIteration> {
        let low = self.expression(&[".."])?;
        self.at += 1;
        let high = self.expression(&["loop", "by"])?;
        let step = match self.take_word("by") {
            true => Some(self.expression(&["loop"])?),
            false => None,
        };
        if targets.is_some_and(|into| into.targets.len() > 1) {
            let message = "integer FOR loop must have only one target variable";
            let position = self.position_of(self.nth_token(first));
            return Err(ParseError::syntax(message, position));
        }
        // The loop declares its own variable, even if an outer one has the same name.
        let name = self.name_at(first);
        let int = super::parser::builtin(&types::DataType::Int4);
        let of = VariableType::Named(int, "integer".to_owned());
        let variable = self.declare(&name, of, line);
        Ok(LoopIteration::Range { variable, low, high, step, reverse })
    }

    fn name_at(&self, at: usize) -> String {
        match &self.nth_token(at).kind {
            TokenKind::Word(name) | TokenKind::Quoted(name) => name.clone(),
            _ => String::new(),
        }
    }

    /// Returns the targets of a loop over rows.
    fn row_targets(&self, targets: Option<IntoClause>, first: usize) -> Result<IntoClause> {
        targets.ok_or_else(|| {
            let message = "loop variable of loop over rows must be a record variable or list of \
                           scalar variables";
            ParseError::new("42804", message, self.position_of(self.nth_token(first)))
        })
    }

    fn cursor_clause(
        &mut self,
        (_, first): (Option<IntoClause>, usize),
        cursor: usize,
        line: u32,
    ) -> Result<LoopIteration> {
        let position = self.position();
        if self.variables[cursor].cursor.is_none() {
            let message = "cursor FOR loop must use a bound cursor variable";
            return Err(ParseError::syntax(message, position));
        }
        self.at += 1;
        let arguments = self.cursor_arguments(cursor, &["loop"])?;
        let name = self.name_at(first);
        let row = self.declare(&name, VariableType::Record, line);
        Ok(LoopIteration::Cursor { row, cursor, arguments })
    }

    fn foreach_clause(&mut self) -> Result<LoopIteration> {
        let targets = vec![self.target()?];
        let mut targets = IntoClause { targets, strict: false };
        while self.take_symbol(",") {
            targets.targets.push(self.target()?);
        }
        let mut slice = 0;
        if self.take_word("slice") {
            let text = self.text_of(self.token());
            slice = text.parse().map_err(|_| self.unexpected())?;
            self.at += 1;
        }
        self.expect_word("in")?;
        self.expect_word("array")?;
        let array = self.expression(&["loop"])?;
        Ok(LoopIteration::Elements { targets, slice, array })
    }

    pub(super) fn leave_statement(&mut self) -> Result<StatementAction> {
        let continues = self.is_word("continue");
        self.at += 1;
        let mut label = None;
        if !self.is_symbol(";") && !self.is_word("when") {
            let position = self.position();
            let name = self.any_name()?;
            let around = self.labels.iter().rev();
            let mut around = around.filter(|(label, _)| label.as_ref() == Some(&name));
            match around.next() {
                None => {
                    let message = format!(
                        "there is no label \"{name}\" attached to any block or loop enclosing \
                         this statement"
                    );
                    return Err(ParseError::syntax(message, position));
                }
                Some((_, false)) if continues => {
                    let message = format!("block label \"{name}\" cannot be used in CONTINUE");
                    return Err(ParseError::syntax(message, position));
                }
                Some(_) => label = Some(name),
            }
        } else if !self.labels.iter().any(|(_, is_loop)| *is_loop) {
            let message = match continues {
                true => "CONTINUE cannot be used outside a loop",
                false => "EXIT cannot be used outside a loop, unless it has a label",
            };
            let position = self.position_of(self.nth_token(self.at - 1));
            return Err(ParseError::syntax(message, position));
        }
        let condition = match self.take_word("when") {
            true => Some(self.expression(&[";"])?),
            false => None,
        };
        self.expect_symbol(";")?;
        Ok(StatementAction::Leave { continues, label, condition })
    }

    pub(super) fn return_statement(&mut self) -> Result<StatementAction> {
        self.at += 1;
        if self.is_word("next") {
            self.check_set("RETURN NEXT")?;
            self.at += 1;
            return self.return_next();
        }
        if self.is_word("query") {
            self.check_set("RETURN QUERY")?;
            self.at += 1;
            let query = self.query(&[";"])?;
            self.expect_symbol(";")?;
            return Ok(StatementAction::ReturnQuery(query));
        }
        let is_bare = self.is_symbol(";");
        let wrong = match self.returning {
            ReturnKind::Set | ReturnKind::SetOfParameters if !is_bare => {
                let hint = "Use RETURN NEXT or RETURN QUERY.";
                let message = "RETURN cannot have a parameter in function returning set";
                return Err(self.mismatch(message).with_hint(hint));
            }
            ReturnKind::Nothing if !is_bare && self.is_procedure => {
                "RETURN cannot have a parameter in a procedure"
            }
            ReturnKind::Nothing if !is_bare => {
                "RETURN cannot have a parameter in function returning void"
            }
            ReturnKind::Parameters if !is_bare => {
                "RETURN cannot have a parameter in function with OUT parameters"
            }
            ReturnKind::Value if is_bare => return Err(self.error_at_token("missing expression")),
            _ => "",
        };
        if !wrong.is_empty() {
            return Err(self.mismatch(wrong));
        }
        let value = match is_bare {
            true => None,
            false => Some(self.expression(&[";"])?),
        };
        self.expect_symbol(";")?;
        Ok(StatementAction::Return(value))
    }

    fn check_set(&self, what: &str) -> Result<()> {
        if matches!(self.returning, ReturnKind::Set | ReturnKind::SetOfParameters) {
            return Ok(());
        }
        let position = self.position_of(self.nth_token(self.at - 1));
        let message = format!("cannot use {what} in a non-SETOF function");
        Err(ParseError::new("42804", message, position))
    }

    fn return_next(&mut self) -> Result<StatementAction> {
        let is_bare = self.is_symbol(";");
        if !is_bare && self.returning == ReturnKind::SetOfParameters {
            let message = "RETURN NEXT cannot have a parameter in function with OUT parameters";
            return Err(self.mismatch(message));
        }
        if is_bare && self.returning == ReturnKind::Set {
            return Err(self.error_at_token("missing expression"));
        }
        let value = match is_bare {
            true => None,
            false => Some(self.expression(&[";"])?),
        };
        self.expect_symbol(";")?;
        Ok(StatementAction::ReturnNext(value))
    }
}
