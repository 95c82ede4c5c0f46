//! Parsing of EXPLAIN.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result};
use crate::ast::{Explain, ExplainFormat, OptionValue, Statement};

const OPTIONS: [&str; 9] =
    ["analyze", "analyse", "verbose", "costs", "settings", "buffers", "timing", "summary", "wal"];

impl TokenCursor<'_> {
    pub(super) fn explain(&mut self) -> Result<Statement> {
        self.expect_words(&["explain"])?;
        let mut explain = Explain {
            analyze: false,
            verbose: false,
            costs: true,
            settings: false,
            buffers: None,
            timing: None,
            summary: None,
            format: ExplainFormat::Text,
            statement: Statement::Commit { chain: false },
        };
        if self.peek() == &Token::LParen && !self.starts_query() {
            self.explain_options(&mut explain)?;
        } else {
            explain.analyze = self.take_word("analyze") || self.take_word("analyse");
            explain.verbose = self.take_word("verbose");
        }
        let position = self.position();
        if self.is_word("explain") || self.is_word("prepare") {
            return Err(self.unexpected());
        }
        explain.statement = self.statement()?;
        match explain.statement {
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Upsert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::CreateTableAs(_)
            | Statement::DeclareCursor(_)
            | Statement::Refresh(_)
            | Statement::Execute { .. } => Ok(Statement::Explain(Box::new(explain))),
            _ => Err(self.syntax_error_near(position)),
        }
    }

    fn starts_query(&self) -> bool {
        self.parser.peek_nth_token_ref(1).token == Token::LParen || self.query_word_follows()
    }

    /// Returns whether the first word of a query follows the current token.
    pub(super) fn query_word_follows(&self) -> bool {
        match &self.parser.peek_nth_token_ref(1).token {
            Token::Word(word) => ["select", "values", "with"]
                .iter()
                .any(|query| word.value.eq_ignore_ascii_case(query)),
            _ => false,
        }
    }

    fn explain_options(&mut self, explain: &mut Explain) -> Result<()> {
        self.expect(&Token::LParen)?;
        loop {
            self.explain_option(explain)?;
            if !self.take(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::RParen)?;
        if explain.timing == Some(true) && !explain.analyze {
            let message = "EXPLAIN option TIMING requires ANALYZE";
            return Err(ParseError::new("22023", message, None));
        }
        Ok(())
    }

    fn explain_option(&mut self, explain: &mut Explain) -> Result<()> {
        let name = self.label()?;
        if name.value == "format" {
            explain.format = self.explain_format(name.position)?;
            return Ok(());
        }
        if !OPTIONS.contains(&name.value.as_str()) {
            let message = format!("unrecognized EXPLAIN option \"{}\"", name.value);
            return Err(ParseError::syntax(message, name.position));
        }
        let on = self.boolean_option(&name.value)?;
        match name.value.as_str() {
            "analyze" | "analyse" => explain.analyze = on,
            "verbose" => explain.verbose = on,
            "costs" => explain.costs = on,
            "settings" => explain.settings = on,
            "buffers" => explain.buffers = Some(on),
            "timing" => explain.timing = Some(on),
            "summary" => explain.summary = Some(on),
            _ if on => {
                let hint =
                    "Use ANALYZE, BUFFERS, COSTS, FORMAT, SETTINGS, SUMMARY, TIMING or VERBOSE.";
                let error = ParseError::unsupported("EXPLAIN option WAL", name.position);
                return Err(error.with_hint(hint));
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the value of the option FORMAT, which is at `position`.
    fn explain_format(&mut self, position: usize) -> Result<ExplainFormat> {
        let value_position = self.position();
        let (OptionValue::Word(word) | OptionValue::String(word)) = self.option_value()? else {
            return Err(self.syntax_error_near(value_position));
        };
        match word.to_ascii_lowercase().as_str() {
            "text" => Ok(ExplainFormat::Text),
            "json" => Ok(ExplainFormat::Json),
            "xml" => Ok(ExplainFormat::Xml),
            "yaml" => Ok(ExplainFormat::Yaml),
            other => {
                let message =
                    format!("unrecognized value for EXPLAIN option \"format\": \"{other}\"");
                Err(ParseError::new("22023", message, position))
            }
        }
    }
}
