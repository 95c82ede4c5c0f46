//! Parsing of RAISE, ASSERT and GET DIAGNOSTICS.

use super::body_tree::{Diagnostic, Raise, RaiseLevel, RaiseOption, StatementAction};
use super::parser::{BodyParser, Result};
use super::token::TokenKind;
use crate::parser::ParseError;

impl BodyParser<'_> {
    pub(super) fn raise(&mut self) -> Result<StatementAction> {
        self.at += 1;
        let mut raise = Raise {
            level: RaiseLevel::Exception,
            condition: None,
            format: None,
            arguments: Vec::new(),
            options: Vec::new(),
        };
        let levels = [
            ("exception", RaiseLevel::Exception),
            ("warning", RaiseLevel::Warning),
            ("notice", RaiseLevel::Notice),
            ("info", RaiseLevel::Info),
            ("log", RaiseLevel::Log),
            ("debug", RaiseLevel::Debug),
        ];
        if let Some((_, level)) = levels.into_iter().find(|(word, _)| self.is_word(word)) {
            self.at += 1;
            raise.level = level;
        }
        if self.take_symbol(";") {
            return Ok(StatementAction::Raise(raise));
        }
        match &self.token().kind {
            TokenKind::Text(format) => {
                raise.format = Some(format.clone());
                self.at += 1;
                while self.take_symbol(",") {
                    raise.arguments.push(self.expression(&[",", ";", "using"])?);
                }
            }
            TokenKind::Word(word) if word == "sqlstate" => {
                self.at += 1;
                let code = self.sqlstate_literal()?;
                raise.condition = Some((code.clone(), code));
            }
            TokenKind::Word(word) if word != "using" => {
                let Some(code) = types::sqlstate::codes_of_condition(word).first().copied() else {
                    let message = format!("unrecognized exception condition \"{word}\"");
                    return Err(ParseError::new("42704", message, None));
                };
                raise.condition = Some((word.clone(), code.to_owned()));
                self.at += 1;
            }
            TokenKind::Word(_) => {}
            _ => return Err(self.unexpected()),
        }
        if self.take_word("using") {
            self.raise_options(&mut raise)?;
        }
        self.expect_symbol(";")?;
        check_arguments(&raise)?;
        Ok(StatementAction::Raise(raise))
    }

    fn raise_options(&mut self, raise: &mut Raise) -> Result<()> {
        loop {
            let option = match self.any_name()?.as_str() {
                "errcode" => RaiseOption::Code,
                "message" => RaiseOption::Message,
                "detail" => RaiseOption::Detail,
                "hint" => RaiseOption::Hint,
                "column" => RaiseOption::Column,
                "constraint" => RaiseOption::Constraint,
                "datatype" => RaiseOption::DataType,
                "table" => RaiseOption::Table,
                "schema" => RaiseOption::Schema,
                _ => {
                    self.at -= 1;
                    return Err(self.error_at_token("unrecognized RAISE statement option"));
                }
            };
            if !self.take_symbol("=") {
                self.expect_symbol(":=")?;
            }
            raise.options.push((option, self.expression(&[",", ";"])?));
            if !self.take_symbol(",") {
                return Ok(());
            }
        }
    }

    pub(super) fn assert(&mut self) -> Result<StatementAction> {
        self.at += 1;
        let condition = self.expression(&[",", ";"])?;
        let message = match self.take_symbol(",") {
            true => Some(self.expression(&[";"])?),
            false => None,
        };
        self.expect_symbol(";")?;
        Ok(StatementAction::Assert(condition, message))
    }

    pub(super) fn diagnostics(&mut self) -> Result<StatementAction> {
        let start = self.position();
        self.at += 1;
        let stacked = self.take_word("stacked");
        if !stacked {
            self.take_word("current");
        }
        self.expect_word("diagnostics")?;
        let mut items = Vec::new();
        loop {
            let target = self.target()?;
            if self.is_record(&target) {
                let name = &self.variables[target.variable].name;
                return Err(self.error(format!("\"{name}\" is not a scalar variable")));
            }
            if !self.take_symbol("=") {
                self.expect_symbol(":=")?;
            }
            let name = self.any_name()?;
            let Some((item, of_stacked)) = diagnostic(&name) else {
                self.at -= 1;
                return Err(self.error_at_token("unrecognized GET DIAGNOSTICS item"));
            };
            if of_stacked != stacked && item != Diagnostic::Context {
                let word = if stacked { "STACKED" } else { "CURRENT" };
                let item = name.to_uppercase();
                let message =
                    format!("diagnostics item {item} is not allowed in GET {word} DIAGNOSTICS");
                return Err(ParseError::syntax(message, start));
            }
            items.push((target, item));
            if !self.take_symbol(",") {
                break;
            }
        }
        self.expect_symbol(";")?;
        Ok(StatementAction::Diagnostics { stacked, items })
    }
}

/// Returns a diagnostics item, with true if it is available only with STACKED.
fn diagnostic(name: &str) -> Option<(Diagnostic, bool)> {
    Some(match name {
        "row_count" => (Diagnostic::RowCount, false),
        "pg_context" => (Diagnostic::Context, false),
        "returned_sqlstate" => (Diagnostic::Code, true),
        "message_text" => (Diagnostic::Message, true),
        "pg_exception_detail" => (Diagnostic::Detail, true),
        "pg_exception_hint" => (Diagnostic::Hint, true),
        "pg_exception_context" => (Diagnostic::ErrorContext, true),
        "column_name" => (Diagnostic::Column, true),
        "constraint_name" => (Diagnostic::Constraint, true),
        "pg_datatype_name" => (Diagnostic::DataType, true),
        "table_name" => (Diagnostic::Table, true),
        "schema_name" => (Diagnostic::Schema, true),
        _ => return None,
    })
}

/// Checks that RAISE has as many arguments as its format has placeholders.
fn check_arguments(raise: &Raise) -> Result<()> {
    let Some(format) = &raise.format else { return Ok(()) };
    let places = format.replace("%%", "").matches('%').count();
    let message = match raise.arguments.len() {
        count if count > places => "too many parameters specified for RAISE",
        count if count < places => "too few parameters specified for RAISE",
        _ => return Ok(()),
    };
    Err(ParseError::syntax(message, None))
}
