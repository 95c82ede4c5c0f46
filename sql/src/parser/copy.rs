//! Parsing of COPY.

use sqlparser::tokenizer::Token;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use crate::ast::{
    Copy, CopyColumns, CopyDirection, CopyFormatOption, CopyHeader, CopyOptions, CopyTarget,
    OptionValue, Statement,
};

impl TokenCursor<'_> {
    /// Reads the boolean value of an option; true if omitted.
    pub(super) fn boolean_option(&mut self, name: &str) -> Result<bool> {
        if matches!(self.peek(), Token::Comma | Token::RParen) || self.at_end() {
            return Ok(true);
        }
        match self.option_value()? {
            OptionValue::Boolean(value) => Ok(value),
            OptionValue::Word(word) | OptionValue::String(word) | OptionValue::Number(word) => {
                match word.to_ascii_lowercase().as_str() {
                    "on" | "true" | "1" => Ok(true),
                    "off" | "false" | "0" => Ok(false),
                    _ => Err(ParseError::syntax(format!("{name} requires a Boolean value"), None)),
                }
            }
        }
    }

    pub(super) fn copy(&mut self) -> Result<Statement> {
        self.expect_words(&["copy"])?;
        // COPY BINARY t, the syntax from before PostgreSQL 7.3
        let binary = self.is_word("binary")
            && matches!(&self.parser.peek_nth_token_ref(1).token, Token::Word(word)
                if !["to", "from"].iter().any(|next| word.value.eq_ignore_ascii_case(next)));
        if binary {
            self.advance();
        }
        let target = if self.take(&Token::LParen) {
            let statement = Box::new(self.copied_statement()?);
            self.expect(&Token::RParen)?;
            CopyTarget::Statement(statement)
        } else {
            let name = self.table_name()?;
            let columns = if self.peek() == &Token::LParen {
                self.parenthesized(Self::column_name)?
            } else {
                Vec::new()
            };
            CopyTarget::Table { name, columns }
        };
        let direction = self.copy_direction(&target)?;
        let mut options = CopyOptions::default();
        if binary {
            options.format = CopyFormatOption::Binary;
        }
        self.take_word("with");
        if self.take(&Token::LParen) {
            let mut names: Vec<String> = Vec::new();
            loop {
                let (name, position) = (self.peek_word(), self.position());
                if names.contains(&name) {
                    let message = "conflicting or redundant options";
                    return Err(ParseError::syntax(message, position));
                }
                names.push(name);
                self.copy_option(&mut options)?;
                if !self.take(&Token::Comma) {
                    break;
                }
            }
            self.expect(&Token::RParen)?;
        } else {
            while !self.at_end() && !self.is_word("where") {
                self.legacy_option(&mut options)?;
            }
        }
        let position = self.position();
        let filter = match self.take_word("where") {
            true if direction == CopyDirection::ToStdout => {
                return Err(ParseError::syntax("WHERE clause not allowed with COPY TO", position));
            }
            true => Some(self.source_expr()?.expr),
            false => None,
        };
        Ok(Statement::Copy(Box::new(Copy { target, direction, options, filter })))
    }

    /// Reads the statement in the parentheses of `COPY (…) TO`.
    fn copied_statement(&mut self) -> Result<Statement> {
        let position = self.position();
        let statement = match self.peek_word().as_str() {
            "insert" | "update" | "delete" | "merge" => self.statement()?,
            "with" => self.with_statement()?,
            _ => self.query_statement()?,
        };
        let refused = |message: &str| ParseError::new("0A000", message, None);
        let returning = match &statement {
            Statement::Query(_) => return Ok(statement),
            Statement::Insert(insert) => &insert.returning,
            Statement::Update(update) => &update.returning,
            Statement::Delete(delete) => &delete.returning,
            Statement::Merge(_) => return Err(refused("MERGE not supported in COPY")),
            Statement::CreateTableAs(_) => {
                return Err(refused("COPY (SELECT INTO) is not supported"));
            }
            _ => return Err(self.syntax_error_near(position)),
        };
        match returning.is_empty() {
            true => Err(refused("COPY query must have a RETURNING clause")),
            false => Ok(statement),
        }
    }

    fn copy_direction(&mut self, target: &CopyTarget) -> Result<CopyDirection> {
        let to = !self.take_word("from");
        if to {
            self.expect_words(&["to"])?;
        } else if matches!(target, CopyTarget::Statement(_)) {
            return Err(self.syntax_error_near(self.word_before(self.position(), "from")));
        }
        if self.take_word("stdin") || self.take_word("stdout") {
            return Ok(if to { CopyDirection::ToStdout } else { CopyDirection::FromStdin });
        }
        match self.peek() {
            Token::Word(word) if word.value.eq_ignore_ascii_case("program") => {
                Err(ParseError::unsupported("COPY with a program", self.position())
                    .with_hint("Use COPY … FROM STDIN or TO STDOUT, or \\copy in psql."))
            }
            Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => {
                Err(ParseError::unsupported("COPY with a file of the server", self.position())
                    .with_hint("Use COPY … FROM STDIN or TO STDOUT, or \\copy in psql."))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn copy_option(&mut self, options: &mut CopyOptions) -> Result<()> {
        let name = self.label()?;
        match name.value.as_str() {
            "format" => {
                let position = self.position();
                let format = self.option_value()?;
                options.format = match &format {
                    OptionValue::Word(word) | OptionValue::String(word) if word == "csv" => {
                        CopyFormatOption::Csv
                    }
                    OptionValue::Word(word) | OptionValue::String(word) if word == "text" => {
                        CopyFormatOption::Text
                    }
                    OptionValue::Word(word) | OptionValue::String(word) if word == "binary" => {
                        CopyFormatOption::Binary
                    }
                    OptionValue::Word(word) | OptionValue::String(word) => {
                        let message = format!("COPY format \"{word}\" not recognized");
                        let code = sqlstate::INVALID_PARAMETER_VALUE;
                        return Err(ParseError::new(code, message, name.position));
                    }
                    _ => return Err(self.syntax_error_near(position)),
                };
            }
            "delimiter" => options.delimiter = Some(self.string()?),
            "null" => options.null = Some(self.string()?),
            "header" => {
                let position = self.position();
                options.header = if self.take_word("match") {
                    CopyHeader::Match
                } else if self.boolean_option("header").map_err(|_| {
                    let message = "header requires a Boolean value or \"match\"";
                    ParseError::syntax(message, position)
                })? {
                    CopyHeader::Present
                } else {
                    CopyHeader::Absent
                };
            }
            "quote" => options.quote = Some(self.string()?),
            "escape" => options.escape = Some(self.string()?),
            "encoding" => options.encoding = Some(self.string()?),
            "force_quote" => {
                options.force_quote = Some(if self.take(&Token::Mul) {
                    CopyColumns::All
                } else {
                    CopyColumns::Named(self.parenthesized(Self::name)?)
                });
            }
            "force_not_null" => {
                options.force_not_null = Some(CopyColumns::Named(self.parenthesized(Self::name)?));
            }
            "force_null" => {
                options.force_null = Some(CopyColumns::Named(self.parenthesized(Self::name)?));
            }
            "freeze" => {
                options.freeze = self.boolean_option("freeze")?;
            }
            "on_error" => {
                let construct = format!("COPY option {}", name.value);
                return Err(ParseError::unsupported(construct, name.position));
            }
            other => {
                let message = format!("option \"{other}\" not recognized");
                return Err(ParseError::syntax(message, name.position));
            }
        }
        Ok(())
    }

    /// Reads an option in the syntax before PostgreSQL 9.0: `CSV HEADER NULL 'NA'`.
    fn legacy_option(&mut self, options: &mut CopyOptions) -> Result<()> {
        let word = self.peek_word();
        match word.as_str() {
            "csv" => options.format = CopyFormatOption::Csv,
            "header" => options.header = CopyHeader::Present,
            "delimiter" | "delimiters" | "null" | "quote" | "escape" | "encoding" => {
                self.advance();
                self.take_word("as");
                let value = Some(self.string()?);
                match word.as_str() {
                    "null" => options.null = value,
                    "quote" => options.quote = value,
                    "escape" => options.escape = value,
                    "encoding" => options.encoding = value,
                    _ => options.delimiter = value,
                }
                return Ok(());
            }
            "binary" => options.format = CopyFormatOption::Binary,
            "force" => {
                self.advance();
                return self.legacy_force(options);
            }
            "freeze" => options.freeze = true,
            _ => return Err(self.unexpected()),
        }
        self.advance();
        Ok(())
    }
}

impl TokenCursor<'_> {
    /// Reads `QUOTE a, b`, `QUOTE *`, `NOT NULL a, b` or `NULL a, b`.
    fn legacy_force(&mut self, options: &mut CopyOptions) -> Result<()> {
        let quote = self.take_word("quote");
        let not = !quote && self.take_word("not");
        if !quote {
            self.expect_words(&["null"])?;
        }
        let columns = if quote && self.take(&Token::Mul) {
            CopyColumns::All
        } else {
            CopyColumns::Named(self.list(Self::name)?)
        };
        *match (quote, not) {
            (true, _) => &mut options.force_quote,
            (false, true) => &mut options.force_not_null,
            (false, false) => &mut options.force_null,
        } = Some(columns);
        Ok(())
    }
}
