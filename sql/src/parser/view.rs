//! Parsing of CREATE VIEW.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use super::{parse_query, quoted};
use crate::ast::{CheckOption, CreateView, Ident, OptionValue, SourceQuery, Statement};

impl TokenCursor<'_> {
    /// Reads a statement from the word VIEW.
    pub(super) fn create_view(&mut self, or_replace: bool) -> Result<Statement> {
        let recursive = self.take_word("recursive");
        self.expect_words(&["view"])?;
        let if_not_exists = !or_replace && !recursive && self.take_words(&["if", "not", "exists"]);
        let name = self.table_name()?;
        self.refuse_own_columns()?;
        let columns = match self.peek() {
            _ if recursive => self.parenthesized(Self::name)?,
            Token::LParen => self.parenthesized(Self::name)?,
            _ => Vec::new(),
        };
        let mut check_option = None;
        if self.take_word("with") {
            check_option = self.view_options()?;
        }
        self.expect_words(&["as"])?;
        let mut query = self.source_query()?;
        if recursive {
            query = recursive_query(&name.name, &columns, query)?;
        }
        if self.take_word("with") {
            if recursive {
                let message = "WITH CHECK OPTION not supported on recursive views";
                return Err(ParseError::new("0A000", message, self.position()));
            }
            let local = self.take_word("local");
            if !local {
                self.take_word("cascaded");
            }
            self.expect_words(&["check", "option"])?;
            check_option = Some(if local { CheckOption::Local } else { CheckOption::Cascaded });
        }
        let view = CreateView { or_replace, if_not_exists, name, columns, query, check_option };
        Ok(Statement::CreateView(Box::new(view)))
    }

    /// Rejects Phoenix's columns with types, which only the view has.
    fn refuse_own_columns(&self) -> Result<()> {
        let token = |at: usize| &self.parser.peek_nth_token_ref(at).token;
        let is_typed = matches!(token(1), Token::Word(_)) && matches!(token(2), Token::Word(_));
        if self.peek() != &Token::LParen || !is_typed {
            return Ok(());
        }
        Err(ParseError::unsupported("a view with columns of its own", self.position())
            .with_hint("Add the columns to the table with ALTER TABLE … ADD."))
    }

    /// Reads `(check_option = …)`.
    pub(super) fn view_options(&mut self) -> Result<Option<CheckOption>> {
        let mut check_option = None;
        for option in self.parenthesized(Self::option)? {
            self.check_view_option(&option.name)?;
            let value = match &option.value {
                OptionValue::String(word) | OptionValue::Word(word) => word.to_ascii_lowercase(),
                OptionValue::Number(text) => text.clone(),
                OptionValue::Boolean(on) => on.to_string(),
            };
            check_option = Some(match value.as_str() {
                "local" => CheckOption::Local,
                "cascaded" => CheckOption::Cascaded,
                _ => {
                    let message =
                        format!("invalid value for enum option \"check_option\": {value}");
                    return Err(ParseError::new(sqlstate::INVALID_PARAMETER_VALUE, message, None)
                        .with_detail("Valid values are \"local\" and \"cascaded\"."));
                }
            });
        }
        Ok(check_option)
    }

    /// Rejects unsupported and unknown options of views.
    pub(super) fn check_view_option(&self, name: &Ident) -> Result<()> {
        match name.value.as_str() {
            "check_option" => Ok(()),
            "security_barrier" | "security_invoker" => {
                let construct = format!("option {} of a view", name.value);
                Err(ParseError::unsupported(construct, name.position))
            }
            other => {
                let message = format!("unrecognized parameter \"{other}\"");
                Err(ParseError::new(sqlstate::INVALID_PARAMETER_VALUE, message, None))
            }
        }
    }

    /// Reads a query with its text.
    pub(super) fn source_query(&mut self) -> Result<SourceQuery> {
        let (position, start) = (self.position(), self.byte());
        match self.peek_word().as_str() {
            "select" | "values" | "with" => {}
            "" if self.peek() == &Token::LParen => {}
            _ => return Err(self.unexpected()),
        }
        let query = self.query()?;
        Ok(SourceQuery { query, text: self.text_since(start), position })
    }
}

/// Returns the query of a recursive view: `WITH RECURSIVE name (columns) AS (query) SELECT columns
/// FROM name`.
fn recursive_query(name: &Ident, columns: &[Ident], query: SourceQuery) -> Result<SourceQuery> {
    let columns: Vec<String> = columns.iter().map(|column| quoted(&column.value)).collect();
    let (name, columns) = (quoted(&name.value), columns.join(", "));
    let SourceQuery { text, position, .. } = query;
    let text =
        format!("WITH RECURSIVE {name} ({columns}) AS ({text}) SELECT {columns} FROM {name}");
    Ok(SourceQuery { query: parse_query(&text)?, text, position })
}
