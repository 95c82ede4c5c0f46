//! Parsing of CREATE VIEW.

use sqlparser::tokenizer::Token;
use types::text::TextStyle;
use types::{DataType, Datum};

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use super::{parse_query, quoted};
use crate::ast::{
    CheckOption, CreateView, Ident, OptionValue, SourceQuery, Statement, TableOption, ViewOption,
};

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
        let mut options = Vec::new();
        if self.take_word("with") {
            options = self.view_options()?;
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
            let option = if local { CheckOption::Local } else { CheckOption::Cascaded };
            options.push(ViewOption::Check(Some(option)));
        }
        let view = CreateView { or_replace, if_not_exists, name, columns, query, options };
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

    /// Reads `(option = value, …)`.
    pub(super) fn view_options(&mut self) -> Result<Vec<ViewOption>> {
        let options = self.parenthesized(Self::option)?;
        options.iter().map(|option| self.view_option(option)).collect()
    }

    fn view_option(&self, option: &TableOption) -> Result<ViewOption> {
        let value = match &option.value {
            OptionValue::String(word) | OptionValue::Word(word) => word.to_ascii_lowercase(),
            OptionValue::Number(text) => text.clone(),
            OptionValue::Boolean(on) => on.to_string(),
        };
        let invalid =
            |message: String| ParseError::new(sqlstate::INVALID_PARAMETER_VALUE, message, None);
        let flag = || match boolean(&value) {
            Some(flag) => Ok(Some(flag)),
            None => {
                let name = &option.name.value;
                Err(invalid(format!("invalid value for boolean option \"{name}\": {value}")))
            }
        };
        Ok(match self.unset_view_option(&option.name)? {
            ViewOption::SecurityInvoker(_) => ViewOption::SecurityInvoker(flag()?),
            ViewOption::SecurityBarrier(_) => ViewOption::SecurityBarrier(flag()?),
            ViewOption::Check(_) => match value.as_str() {
                "local" => ViewOption::Check(Some(CheckOption::Local)),
                "cascaded" => ViewOption::Check(Some(CheckOption::Cascaded)),
                _ => {
                    let message =
                        format!("invalid value for enum option \"check_option\": {value}");
                    return Err(invalid(message)
                        .with_detail("Valid values are \"local\" and \"cascaded\"."));
                }
            },
        })
    }

    /// Returns the option of a name, without a value.
    pub(super) fn unset_view_option(&self, name: &Ident) -> Result<ViewOption> {
        match name.value.as_str() {
            "check_option" => Ok(ViewOption::Check(None)),
            "security_invoker" => Ok(ViewOption::SecurityInvoker(None)),
            "security_barrier" => Ok(ViewOption::SecurityBarrier(None)),
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

/// Returns the value of a boolean option in any of PostgreSQL's spellings.
fn boolean(text: &str) -> Option<bool> {
    match types::text::parse(text, &DataType::Bool, &TextStyle::default()) {
        Ok(Datum::Bool(value)) => Some(value),
        _ => None,
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
